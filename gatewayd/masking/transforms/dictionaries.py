"""The entries that `pseudonymize` chooses from: 256 a kind, invented, all different (decision 10). Data only.

Addresses are under example.com (RFC 2606), numbers in the range 555-01xx that is kept for fiction: none is a real person's.
Changing an entry changes masked values.
"""

from itertools import product
from typing import Final, Literal

Kind = Literal["email", "name", "phone"]

_FIRST: Final = (
    "Ada",
    "Ben",
    "Cleo",
    "Dana",
    "Eli",
    "Fay",
    "Gus",
    "Hana",
    "Ivo",
    "Jade",
    "Kai",
    "Lena",
    "Milo",
    "Nora",
    "Otto",
    "Pia",
)
_LAST: Final = (
    "Alder", "Birch", "Cedar", "Dogwood", "Elm", "Fir", "Ginkgo", "Hazel",
    "Ironwood", "Juniper", "Kapok", "Larch", "Maple", "Nutmeg", "Oakley", "Poplar",
)  # fmt: skip
_AREAS: Final = (201, 202, 212, 213, 303, 305, 312, 404, 415, 503, 512, 602, 617, 702, 713, 808)

ENTRIES: Final[dict[Kind, tuple[str, ...]]] = {
    "name": tuple(f"{first} {last}" for first, last in product(_FIRST, _LAST)),
    "email": tuple(f"{first}.{last}@example.com".lower() for first, last in product(_FIRST, _LAST)),
    "phone": tuple(f"+1-{area}-555-01{number:02}" for area, number in product(_AREAS, range(16))),
}
