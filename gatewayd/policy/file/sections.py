"""YAML nodes read by a shape: plain values out, every problem with its path and line (decision 2). Knows no section by name."""

from collections.abc import Sequence
from typing import Final, assert_never

from gatewayd.policy.file import yaml
from gatewayd.policy.file.problem import SHOWN, Path, Problem, did_you_mean, dotted, quoted
from gatewayd.policy.file.shape import (
    Address,
    Choice,
    Each,
    Either,
    Flag,
    Integer,
    KeyedObject,
    MaskRule,
    Object,
    Ratio,
    Shape,
    Text,
)


class Invalid:
    """Stands for a value that has a problem; containers leave it out."""


INVALID: Final = Invalid()


class Reader:
    """`value()` gives dicts, lists, strings, numbers and what a text form parses to; `problems` collects on the way."""

    def __init__(self) -> None:
        self.problems: list[Problem] = []

    def report(self, path: Path, line: int, message: str) -> Invalid:
        """Notes a problem at this place."""
        self.problems.append(Problem(dotted(path), line, message))
        return INVALID

    def _meant(self, found: str, known: Sequence[str]) -> str:
        """A guess at the word that was meant; empty for problems that are only counted and not shown."""
        return did_you_mean(found, known) if len(self.problems) < SHOWN else ""

    def value(self, node: yaml.YamlNode, shape: Shape, path: Path) -> object:
        """The node's value in the form that `shape` asks for, INVALID where it has a problem."""
        if isinstance(node, yaml.YamlBroken):
            return INVALID
        if isinstance(node, yaml.YamlScalar) and node.value is None:
            return self.report(path, node.line, f"found no value; expected {shape.expected}")
        match shape:
            case Object():
                return self._object(node, shape, path)
            case KeyedObject():
                return self._keyed(node, shape, path)
            case Each():
                return self._each(node, shape, path)
            case MaskRule():
                return self._mask(node, shape, path)
            case Flag():
                if isinstance(node, yaml.YamlScalar) and isinstance(node.value, bool):
                    return node.value
            case Integer():
                if isinstance(node, yaml.YamlScalar) and type(node.value) is int and shape.low <= node.value <= shape.high:
                    return node.value
            case Ratio():
                if _is_ratio(node, shape):
                    return node.value  # type: ignore[union-attr]  # _is_ratio holds for scalars only
            case Either():
                if _is_ratio(node, shape.number) or (isinstance(node, yaml.YamlScalar) and node.value in shape.choice.words):
                    return node.value  # type: ignore[union-attr]  # as above
                return self._mistaken(node, shape, path, shape.choice.words)
            case Choice():
                if isinstance(node, yaml.YamlScalar) and isinstance(node.value, str) and node.value in shape.words:
                    return node.value
                return self._mistaken(node, shape, path, shape.words)
            case Text():
                if isinstance(node, yaml.YamlScalar) and isinstance(node.value, str):
                    try:
                        return shape.form.parse(node.value)
                    except ValueError as error:
                        return self.report(path, node.line, str(error))
            case Address():
                if isinstance(node, yaml.YamlScalar) and isinstance(node.value, str):
                    return node.value
                return self.report(path, node.line, f"found {_kind(node)}; expected {shape.expected}")
            case _ as unreachable:
                assert_never(unreachable)
        return self._mistaken(node, shape, path, ())

    def _mistaken(self, node: yaml.YamlNode, shape: Shape, path: Path, words: Sequence[str]) -> Invalid:
        found = node.value if isinstance(node, yaml.YamlScalar) else None
        meant = self._meant(found, words) if isinstance(found, str) else ""
        return self.report(path, node.line, f"found {_found(node)}{meant}; expected {shape.expected}")

    def _object(self, node: yaml.YamlNode, shape: Object, path: Path, *, also: str = "") -> object:
        if not isinstance(node, yaml.YamlMapping):
            return self.report(path, node.line, f"found {_found(node)}; expected {shape.expected}")
        values: dict[str, object] = {}
        for key, entry in node.entries.items():
            if key == also:
                continue
            field = shape.fields.get(key)
            if field is None:
                known = ", ".join(shape.fields) or "no further key"
                meant = self._meant(key, list(shape.fields))
                self.report((*path, key), entry.line, f"found an unknown key{meant}; expected one of {known}")
                continue
            value = self.value(entry.value, field, (*path, key))
            if value is not INVALID:
                values[key] = value
        for key in shape.fields:
            if key in shape.required and key not in node.entries:
                self.report(path, node.line, f"found no key {key}; expected {key}: {shape.fields[key].expected}")
        return values

    def _keyed(self, node: yaml.YamlNode, shape: KeyedObject, path: Path) -> object:
        if not isinstance(node, yaml.YamlMapping):
            return self.report(path, node.line, f"found {_found(node)}; expected {shape.expected}")
        values: dict[object, object] = {}
        first: dict[object, tuple[str, int]] = {}
        for key, entry in node.entries.items():
            here = (*path, key)
            value = self.value(entry.value, shape.value, here)
            try:
                name = shape.key.parse(key)
            except ValueError as error:
                self.report(here, entry.line, str(error))
                continue
            if name in first:
                other, line = first[name]
                message = f"found the same table as {quoted(other)} on line {line}; expected one key for it"
                self.report(here, entry.line, message)
                continue
            first[name] = (key, entry.line)
            if value is not INVALID:
                values[name] = value
        return values

    def _each(self, node: yaml.YamlNode, shape: Each, path: Path) -> object:
        if not isinstance(node, yaml.YamlSequence):
            return self.report(path, node.line, f"found {_found(node)}; expected a list, each item {shape.item.expected}")
        if len(node.items) < shape.least:
            return self.report(path, node.line, f"found an empty list; expected at least {shape.least}")
        values = [self.value(item, shape.item, (*path, index)) for index, item in enumerate(node.items)]
        return [value for value in values if value is not INVALID]

    def _mask(self, node: yaml.YamlNode, shape: MaskRule, path: Path) -> object:
        """{t: word, …} whichever of the two forms stood there."""
        if isinstance(node, yaml.YamlScalar):
            rule = shape.rules.get(node.value) if isinstance(node.value, str) else None
            if rule is None:
                return self._mistaken(node, shape, path, list(shape.rules))
            if rule.required:
                needed = ", ".join(f"{key}: …" for key in rule.fields)
                return self.report(
                    path, node.line, f"found {node.value} without its fields; expected {{t: {node.value}, {needed}}}"
                )
            return {"t": node.value}
        if not isinstance(node, yaml.YamlMapping):
            return self.report(path, node.line, f"found {_found(node)}; expected {shape.expected}")
        entry = node.entries.get("t")
        if entry is None:
            return self.report(path, node.line, f"found a mask without the key t; expected t: {shape.expected}")
        word = self.value(entry.value, Choice(tuple(shape.rules)), (*path, "t"))
        if not isinstance(word, str):
            return INVALID
        before = len(self.problems)
        values = self._object(node, shape.rules[word], path, also="t")
        return {"t": word, **values} if isinstance(values, dict) and len(self.problems) == before else INVALID


def _is_ratio(node: yaml.YamlNode, shape: Ratio) -> bool:
    if not isinstance(node, yaml.YamlScalar) or type(node.value) not in (int, float):
        return False
    assert isinstance(node.value, int | float)
    return node.value > 0 and (shape.high is None or node.value <= shape.high)


def _kind(node: yaml.YamlNode) -> str:
    match node:
        case yaml.YamlMapping():
            return "a mapping"
        case yaml.YamlSequence():
            return "a list"
        case yaml.YamlScalar(value=str()):
            return "a text"
        case _:
            return "a number or boolean"


def _found(node: yaml.YamlNode) -> str:
    """What stands there, in words."""
    if not isinstance(node, yaml.YamlScalar):
        return _kind(node)
    if isinstance(node.value, bool):
        return "true" if node.value else "false"
    if isinstance(node.value, str):
        return quoted(node.value)
    return str(node.value)
