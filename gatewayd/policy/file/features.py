"""Which of the policy's features this version enforces. Building one means changing its line here to None.

A section that uses a feature with a reason is refused at start-up and on reload, never ignored; `requires_features` knows the
names here and no others.
"""

from collections.abc import Mapping
from typing import Final

FEATURES: Final[Mapping[str, str | None]] = {
    "databases": None,
    "table_access": None,
    "functions": None,
    "guardrails": None,
    "limits": None,
    "column_masks": None,
    "mask_source_rewrite": None,
    "approvals": None,
    "taint": None,
}
