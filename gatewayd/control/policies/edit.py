"""A value of a policy's text changed in place: what stands around it, comments among it, stays as it was written. Pure.

A line is changed, added or taken out, and the result is read again: it must say what was said before, but for this one value.
Where no such line is found, as in a text that is written in one line, the whole text is written anew, without its comments.
"""

import re
from functools import lru_cache
from typing import Any, Final

import msgspec

from gatewayd.policy.file import yaml

Path = tuple[str | int, ...]
_PLAIN: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]*")
_WORDS: Final = frozenset({"true", "false", "null", "yes", "no", "on", "off", "y", "n"})


class NotEdited(Exception):
    """The text is no policy that can be changed in place; its problems say why."""


def set_value(text: str, path: Path, value: object) -> str:
    """The text with `value` at `path`; None takes the key out. Raises NotEdited."""
    root, said = _read(text)
    wanted = _with(said, path, value)
    if wanted == said:
        return text
    for made in (_changed_line(text, root, path, value), _added_line(text, root, path, value), _dumped(wanted, 0)):
        if made is not None and _says(made, wanted):
            return made
    raise NotEdited("this value cannot be changed here; change it in the text")


def value_at(text: str, path: Path) -> Any:
    """What stands there, None where nothing does. Raises NotEdited."""
    _, found = _read(text)
    for key in path:
        try:
            found = found[key]
        except (KeyError, IndexError, TypeError):
            return None
    return found


@lru_cache(maxsize=4)
def _read(text: str) -> tuple[yaml.YamlNode, Any]:
    """The nodes and what they say: a page sends hundreds of choices for one text, and most of them change nothing."""
    root, problems = yaml.parse(text)
    if problems or root is None:
        raise NotEdited("the text has problems")
    return root, _plain(root)


def _says(text: str, wanted: object) -> bool:
    root, problems = yaml.parse(text)
    return not problems and root is not None and _plain(root) == wanted


def _plain(node: yaml.YamlNode) -> Any:
    match node:
        case yaml.YamlScalar():
            return node.value
        case yaml.YamlSequence():
            return [_plain(each) for each in node.items]
        case yaml.YamlMapping():
            return {key: _plain(entry.value) for key, entry in node.entries.items()}
        case yaml.YamlBroken():
            raise NotEdited("the text has problems")


def _with(whole: Any, path: Path, value: object) -> Any:
    """A copy with that one value. Mappings that become empty go, too."""
    key = path[0]
    if isinstance(whole, list):
        return [_with(each, path[1:], value) if place == key else each for place, each in enumerate(whole)]
    found = dict(whole) if isinstance(whole, dict) else {}
    if len(path) == 1:
        if value is None:
            found.pop(str(key), None)
        else:
            found[str(key)] = value
        return found
    below = _with(found.get(str(key), {}), path[1:], value)
    if below in ({}, None):
        found.pop(str(key), None)
    else:
        found[str(key)] = below
    return found


def _changed_line(text: str, root: yaml.YamlNode, path: Path, value: object) -> str | None:
    """The key has a line of its own."""
    entry = _entry(root, path)
    if entry is None:
        return None
    lines = text.split("\n")
    found = re.fullmatch(r"(\s*(?:- +)?)([^\s:#][^:#]*|\"[^\"]*\"|'[^']*')(\s*:\s+)([^#]*?)(\s*(?:#.*)?)", lines[entry.line - 1])
    if found is None:
        return None
    if value is None:
        del lines[entry.line - 1]
    else:
        lines[entry.line - 1] = f"{found[1]}{found[2]}{found[3]}{_flow(value)}{found[5]}"
    return "\n".join(lines)


def _added_line(text: str, root: yaml.YamlNode, path: Path, value: object) -> str | None:
    """Below the last line of the nearest mapping that is there, as far in as its keys are."""
    if value is None:
        return None
    for depth in range(len(path) - 1, 0, -1):
        parent = _node(root, path[:depth])
        if isinstance(parent, yaml.YamlMapping) and parent.entries:
            lines = text.split("\n")
            first = lines[min(entry.line for entry in parent.entries.values()) - 1]
            indent = len(first) - len(first.lstrip(" -"))
            at = _last_line(parent)
            rest: object = value
            for key in reversed(path[depth + 1 :]):
                rest = {str(key): rest}
            added = _dumped({str(path[depth]): rest}, indent).rstrip("\n").split("\n")
            return "\n".join([*lines[:at], *added, *lines[at:]])
    return None


def _last_line(node: yaml.YamlNode) -> int:
    match node:
        case yaml.YamlMapping():
            return max([node.line, *(max(entry.line, _last_line(entry.value)) for entry in node.entries.values())])
        case yaml.YamlSequence():
            return max([node.line, *map(_last_line, node.items)])
        case _:
            return node.line


def _node(root: yaml.YamlNode, path: Path) -> yaml.YamlNode | None:
    node: yaml.YamlNode | None = root
    for key in path:
        match node, key:
            case yaml.YamlMapping(), str():
                entry = node.entries.get(key)
                node = entry.value if entry is not None else None
            case yaml.YamlSequence(), int() if key < len(node.items):
                node = node.items[key]
            case _:
                return None
    return node


def _entry(root: yaml.YamlNode, path: Path) -> yaml.YamlEntry | None:
    parent = _node(root, path[:-1])
    return parent.entries.get(str(path[-1])) if isinstance(parent, yaml.YamlMapping) else None


def _dumped(value: Any, indent: int) -> str:
    """YAML in blocks; what is small in one line."""
    space = " " * indent
    lines: list[str] = []
    for key, inner in value.items():
        if isinstance(inner, dict) and inner and not (key != "databases" and _is_small(inner)):
            lines.append(f"{space}{_key(key)}:\n{_dumped(inner, indent + 2)}")
        elif isinstance(inner, list) and inner and isinstance(inner[0], dict):
            lines.append(f"{space}{_key(key)}:\n{''.join(_item(each, indent + 2) for each in inner)}")
        else:
            lines.append(f"{space}{_key(key)}: {_flow(inner)}\n")
    return "".join(lines)


def _item(value: Any, indent: int) -> str:
    text = _dumped(value, indent + 2)
    return f"{' ' * indent}- {text[indent + 2 :]}"


def _is_small(value: dict[str, Any]) -> bool:
    """A mask: a mapping that says its kind."""
    return "t" in value


def _flow(value: Any) -> str:
    match value:
        case dict():
            return "{" + ", ".join(f"{_key(key)}: {_flow(inner)}" for key, inner in value.items()) + "}"
        case list():
            return "[" + ", ".join(map(_flow, value)) + "]"
        case str():
            return _key(value)
        case _:
            return msgspec.json.encode(value).decode()


def _key(text: str) -> str:
    if _PLAIN.fullmatch(text) and text.lower() not in _WORDS:
        return text
    return "".join(c if c.isprintable() else f"\\U{ord(c):08x}" for c in msgspec.json.encode(text).decode())
