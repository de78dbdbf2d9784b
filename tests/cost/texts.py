"""Statements that are meant to be expensive: places filled with long lists of what makes a gateway work (pieces.txt).

A text is drawn as a `Clause` tree and changed by `mutated`; `written` gives its SQL, at most LONGEST bytes of it.
"""

from pathlib import Path
from random import Random
from typing import Final

import msgspec

from gatewayd.sql.text.parse import MAX_BYTES

LONGEST: Final = MAX_BYTES
COUNTS: Final = (1, 2, 8, 60, 199, 600, 1_990, 6_000, 19_990, 60_000, 200_000)
WHOLE: Final = "whole"


class Place(msgspec.Struct, frozen=True):
    """What may fill one place of a statement."""

    separators: tuple[str, ...]
    pieces: tuple[str, ...]


def _places_of(lines: list[str]) -> dict[str, Place]:
    found: dict[str, tuple[tuple[str, ...], list[str]]] = {}
    pieces: list[str] = []
    for line in lines:
        if line.startswith("["):
            name, _, separators = line[1:].partition("] ")
            pieces = []
            found[name] = tuple(f" {each} " for each in separators.split("|")), pieces
        elif line and not line.startswith("#"):
            pieces.append(line)
    return {name: Place(separators, tuple(each)) for name, (separators, each) in found.items()}


PLACES: Final = _places_of((Path(__file__).parent / "pieces.txt").read_text(encoding="utf-8").splitlines())


class Part(msgspec.Struct):
    """`count` times one piece. `inner` fills its places."""

    piece: str
    count: int
    inner: dict[str, "Clause"]


class Clause(msgspec.Struct):
    """What fills one place: parts one after the other."""

    parts: list[Part]
    separator: str


def drawn(chance: Random) -> Clause:
    """A statement of any of the shapes."""
    return Clause([_part(chance, chance.choice(PLACES[WHOLE].pieces), 1, 0)], ";")


def mutated(clause: Clause, chance: Random) -> Clause:
    """A copy that differs in one to three things."""
    changed = msgspec.convert(msgspec.to_builtins(clause), Clause)
    for _ in range(chance.randint(1, 3)):
        kind, place, depth = chance.choice(_filled(changed, WHOLE, 0))
        if kind == WHOLE:
            if chance.random() < 0.2:
                place.parts[0] = _part(chance, chance.choice(PLACES[WHOLE].pieces), 1, 0)
            continue
        part = chance.choice(place.parts)
        match chance.randrange(6):
            case 0 | 1:
                part.count = max(1, min(400_000, int(part.count * chance.choice((0.3, 0.7, 1.5, 3, 10)))))
            case 2:
                part.count = chance.choice(COUNTS)
            case 3:
                place.parts.insert(chance.randint(0, len(place.parts)), _drawn_part(chance, kind, depth))
            case 4:
                place.parts[place.parts.index(part)] = _drawn_part(chance, kind, depth)
            case 5 if len(place.parts) > 1:
                place.parts.remove(part)
            case _:
                place.separator = chance.choice(PLACES[kind].separators)
    return changed


def written(clause: Clause) -> str:
    """Its SQL. Lists are cut until it fits."""
    room = LONGEST
    while len((text := _text(clause, room)).encode()) > LONGEST:
        room = room * 2 // 3
    return text


def _filled(clause: Clause, kind: str, depth: int) -> "list[tuple[str, Clause, int]]":
    found = [(kind, clause, depth)]
    for part in clause.parts:
        for inner_kind, inner in part.inner.items():
            found += _filled(inner, inner_kind, depth + 1)
    return found


def _drawn_part(chance: Random, kind: str, depth: int) -> Part:
    count = chance.choice(COUNTS) if chance.random() < (0.5 if depth < 2 else 0.2) else chance.randint(1, 3)
    return _part(chance, chance.choice(PLACES[kind].pieces), count, depth)


def _part(chance: Random, piece: str, count: int, depth: int) -> Part:
    inner = {}
    for kind, place in PLACES.items():
        if "{" + kind + "}" in piece:
            first = Part(place.pieces[0], 1, {}) if depth > 3 else _drawn_part(chance, kind, depth + 1)
            inner[kind] = Clause([first], place.separators[0])
    return Part(piece, count, inner)


def _text(clause: Clause, room: int) -> str:
    """Each list of it has about `room` characters at most."""
    found: list[str] = []
    held = number = 0
    for part in clause.parts:
        pattern = part.piece
        for kind, inner in part.inner.items():
            pattern = pattern.replace("{" + kind + "}", _text(inner, room))
        for _ in range(part.count):
            number += 1
            found.append(pattern.replace("{n}", str(number)).replace("{before}", str(number - 1)))
            held += len(found[-1]) + len(clause.separator)
            if held > room:
                return clause.separator.join(found)
    return clause.separator.join(found)
