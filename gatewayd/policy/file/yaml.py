"""Strict YAML: text to a tree of nodes that know their lines (decision 2). Knows nothing of policies.

PyYAML's event stream is taken without its resolver, composer and constructors: those give YAML 1.1's scalars (`on`, 1_000, 0o17,
10:30, dates), let the last duplicate key win, and follow aliases and recursion as deep as a text asks. Here a scalar is null,
true, false, a decimal number or a string; anchors, aliases, tags, merge keys and further documents are problems; depth is bounded
by a stack.
"""

import math
import re
from collections.abc import Iterator
from typing import Any, Final

import msgspec
import yaml

from gatewayd.policy.file.problem import Path, Problem, dotted, quoted

MAX_BYTES: Final = 8 * 1024 * 1024
MAX_DEPTH: Final = 16  # the deepest place of the policy file is databases[] → column_masks → table → column → key: 6
MAX_EVENTS: Final = 1_000_000  # some 400 000 table keys: seconds of reading, where 8 MiB of commas would be half a minute

_NUMBER_CHARACTERS: Final = 30  # a longer one is a mistake, and int() refuses thousands of digits
# Signs, leading zeros, hex and octal stay strings: YAML 1.1 and 1.2 read them differently, so their meaning is not certain.
_INTEGER: Final = re.compile(r"-?(?:0|[1-9][0-9]*)", re.ASCII)
_FLOAT: Final = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][-+]?[0-9]{1,3})?", re.ASCII)

# libyaml's scanner gives the same events and is some forty times faster; wheels carry it, a build without it falls back.
_LOADER: Final = getattr(yaml, "CLoader", yaml.Loader)


class YamlScalar(msgspec.Struct, frozen=True):
    """null, a boolean, a number or a text."""

    value: str | int | float | bool | None
    line: int


class YamlSequence(msgspec.Struct, frozen=True):
    """A list of nodes."""

    items: list["YamlNode"]
    line: int


class YamlEntry(msgspec.Struct, frozen=True):
    """The value of a key, and the line of the key."""

    value: "YamlNode"
    line: int  # of the key


class YamlMapping(msgspec.Struct, frozen=True):
    """Keys are the text of the scalar as written: `on`, `1` and `true` name tables too."""

    entries: dict[str, YamlEntry]
    line: int


class YamlBroken(msgspec.Struct, frozen=True):
    """A place whose problem is reported already."""

    line: int


YamlNode = YamlScalar | YamlSequence | YamlMapping | YamlBroken


def parse(text: str | bytes, max_events: int = MAX_EVENTS) -> tuple[YamlNode | None, list[Problem]]:
    """The root node, None for an empty document, and every problem of form. With problems the tree is what could be read.

    A document of more than `max_events` keys and values is one problem.
    """
    try:
        data = text.encode() if isinstance(text, str) else text
        if len(data) > MAX_BYTES:
            return None, [Problem("", 0, f"found more than {MAX_BYTES} bytes; expected a policy")]
        decoded = data.decode()
    except UnicodeError:
        return None, [Problem("", 0, "found bytes that are not UTF-8; expected UTF-8 text")]
    builder = _Builder()
    try:
        builder.build(yaml.parse(decoded.removeprefix("\ufeff"), Loader=_LOADER), max_events)
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else 0
        builder.report((), line, f"found a YAML syntax error ({error.problem}); expected a YAML document")
    except yaml.YAMLError:  # the reader's: a character that YAML does not allow
        builder.report((), 0, "found a control character that YAML does not allow; expected a YAML document")
    except _TooMuch as bound:
        builder.report((), bound.line, f"found more than {bound}; expected a policy")
    return builder.root, builder.problems


class _TooMuch(Exception):
    def __init__(self, what: str, line: int) -> None:
        super().__init__(what)
        self.line = line


class _Open(msgspec.Struct):
    """A container being filled. In a mapping, `key` is the key that waits for its value; None there drops the value."""

    node: YamlSequence | YamlMapping
    path: Path
    key: str | None = None
    key_line: int = 0
    has_key: bool = False
    is_tagged: bool = False


class _Builder:
    def __init__(self) -> None:
        self.root: YamlNode | None = None
        self.problems: list[Problem] = []
        self._open: list[_Open] = []

    def report(self, path: Path, line: int, message: str) -> None:
        self.problems.append(Problem(dotted(path), line, message))

    def build(self, events: Iterator[Any], max_events: int) -> None:
        documents = 0
        for count, event in enumerate(events):
            line = event.start_mark.line + 1 if event.start_mark else 0
            if count > max_events:
                raise _TooMuch(f"{max_events} keys and values", line)
            match event:
                case yaml.DocumentStartEvent():
                    documents += 1
                    if documents > 1:
                        self.report((), line, "found a second document; expected one")
                        return
                    if event.version and tuple(event.version) != (1, 2):
                        self.report((), line, "found a %YAML directive of another version; expected YAML 1.2")
                case yaml.AliasEvent():
                    self.report(self._here(), line, "found an alias; expected the value written out (anchors are not taken)")
                    self._put(YamlBroken(line))
                case yaml.ScalarEvent():
                    self._scalar(event, line)
                case yaml.SequenceStartEvent():
                    self._start(event, YamlSequence([], line))
                case yaml.MappingStartEvent():
                    self._start(event, YamlMapping({}, line))
                case yaml.SequenceEndEvent() | yaml.MappingEndEvent():
                    done = self._open.pop()
                    self._put(YamlBroken(done.node.line) if done.is_tagged else done.node)

    def _here(self) -> Path:
        if not self._open:
            return ()
        top = self._open[-1]
        if isinstance(top.node, YamlSequence):
            return (*top.path, len(top.node.items))
        return (*top.path, top.key) if top.has_key and top.key is not None else top.path

    def _check(self, event: Any, line: int) -> None:
        if event.anchor is not None:
            self.report(self._here(), line, "found an anchor; expected the value written out where it is needed")
        if event.tag is not None:
            self.report(self._here(), line, "found a tag; expected a value without one")

    def _start(self, event: Any, node: YamlSequence | YamlMapping) -> None:
        self._check(event, node.line)
        if len(self._open) >= MAX_DEPTH:
            raise _TooMuch(f"{MAX_DEPTH} levels of nesting", node.line)
        self._open.append(_Open(node, self._here(), is_tagged=event.tag is not None))

    def _scalar(self, event: Any, line: int) -> None:
        self._check(event, line)
        text: str = event.value
        if event.tag is not None:
            self._put(YamlBroken(line))
        elif "\0" in text or any("\ud800" <= c <= "\udfff" for c in text):
            self.report(self._here(), line, "found an escaped character that no text can hold; expected text")
            self._put(YamlBroken(line))
        elif not event.implicit[0]:
            self._put(YamlScalar(text, line), text)
        elif not self._open and text == "":
            self.root = None  # "---" and nothing: an empty document
        else:
            self._put(YamlScalar(_plain(text), line), text)

    def _put(self, node: YamlNode, text: str | None = None) -> None:
        """Hands a finished node to the container around it. `text` is a scalar's as written, the form that keys have."""
        if not self._open:
            self.root = node
            return
        top = self._open[-1]
        if isinstance(top.node, YamlSequence):
            top.node.items.append(node)
        elif top.has_key:
            if top.key is not None:
                top.node.entries[top.key] = YamlEntry(node, top.key_line)
            top.has_key = False
        else:
            top.key, top.key_line, top.has_key = self._key(top, node, text), node.line, True

    def _key(self, top: _Open, node: YamlNode, text: str | None) -> str | None:
        assert isinstance(top.node, YamlMapping)
        if isinstance(node, YamlBroken):
            return None
        if text is None:
            self.report(top.path, node.line, "found a list or mapping as a key; expected a name")
        elif isinstance(node, YamlScalar) and node.value is None:
            self.report(top.path, node.line, "found a key without a name; expected a name")
        elif text == "<<":
            self.report(top.path, node.line, "found a merge key; expected the keys written out")
        elif text in top.node.entries:
            first = top.node.entries[text].line
            self.report(
                (*top.path, text), node.line, f"found the key {quoted(text)} again; expected it once (first on line {first})"
            )
        else:
            return text
        return None


def _plain(text: str) -> str | int | float | bool | None:
    if text in ("", "~", "null", "Null", "NULL"):
        return None
    if text in ("true", "false"):
        return text == "true"
    if len(text) <= _NUMBER_CHARACTERS:
        if _INTEGER.fullmatch(text):
            return int(text)
        if _FLOAT.fullmatch(text) and math.isfinite(number := float(text)):
            return number
    return text
