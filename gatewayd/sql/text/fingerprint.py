"""sql_fingerprint (decision 3.9): one value for one intent, whatever its constants.

Works on the parser's JSON text, which is many times faster than the tree; only unusual lists (IN, VALUES) need that.
"""

import re
from hashlib import sha256
from typing import Any

import msgspec

from gatewayd.sql.text import bulk

# Each pattern starts with plain text, which the engine finds fast.
_LOCATION = re.compile(r',"location":-?\d+')
_LIST_PLACES = re.compile(r',"rexpr_list_start":-?\d+,"rexpr_list_end":-?\d+')
_LENGTH = re.compile(r',"stmt_len":\d+')
_OTHER_POSITIONS = re.compile(r'"(?:\w*location|stmt_len|\w*list_(?:start|end))":-?\d+,?')
_OTHERS = ('ocation":', 'list_end":')
# Long runs of what lists are shortened to anyway.
_SAME_ROWS = re.compile(r'(\{"List":\{"items":\[[^\[\]]{1,65536}\]\}\})(?:,\1)+')
_LONG_LIST = re.compile(r'(?:\{"\?":0\},){1664,}')
# The lists of most statements: constants after IN, one row after VALUES.
_CONSTANT_LIST = re.compile(r'"rexpr":\{"List":\{"items":\[\{"\?":0\}(?:,\{"\?":0\})*\]\}\}')
_SHORT_LIST = '"rexpr":{"List":{"items":[{"?":0}]}}'
_ONE_ROW = re.compile(r'"valuesLists":\[\{"List":\{"items":\[[^\[\]]*\]\}\}\]')


def of_tree(json: str, size: int = bulk.PIECE_BYTES) -> str:
    """16 hex digits for the parser's answer to one statement, which is read `size` characters at a time."""
    text = json[json.index('"stmts"') :]
    text = "".join(map(_bare, bulk.pieces(text, size))) if len(text) > size else _bare(text)
    if '"List":{' in text:
        text = _CONSTANT_LIST.sub(_SHORT_LIST, _SAME_ROWS.sub(r"\1", _LONG_LIST.sub('{"?":0},', text)))
        plain = text.count('"rexpr":{"List":') == text.count(_SHORT_LIST)
        if not plain or text.count('"valuesLists":') != len(_ONE_ROW.findall(text)):
            text = _with_short_lists("{" + text)
    return _digest(text)


def of_text(sql: str) -> str:
    """16 hex digits for a text that is no statement."""
    return _digest(sql)


def _bare(text: str) -> str:
    """Without constants and positions."""
    text = _LENGTH.sub("", _LIST_PLACES.sub("", _LOCATION.sub("", bulk.CONSTANT.sub('"?":0', text))))
    if any(mark in text for mark in _OTHERS):
        text = _OTHER_POSITIONS.sub("", text).replace(",}", "}")
    if '"List":{' in text:
        text = _LONG_LIST.sub('{"?":0},', _SAME_ROWS.sub(r"\1", text))
    return text


def _digest(text: str) -> str:
    return sha256(text.encode(errors="surrogatepass")).hexdigest()[:16]


def _with_short_lists(text: str) -> str:
    """The same tree with one of each kind of element in IN lists and of each kind of row in VALUES."""
    tree = bulk.decode(text)
    lists: list[tuple[dict[str, Any], str]] = []
    pending: list[Any] = [tree]
    while pending:
        part = pending.pop()
        if isinstance(part, dict):
            if part.get("kind") == "AEXPR_IN" and "List" in part.get("rexpr", ()):
                lists.append((part["rexpr"]["List"], "items"))
            if "valuesLists" in part:
                lists.append((part, "valuesLists"))
            pending.extend(part.values())
        elif isinstance(part, list):
            pending.extend(part)
    for holder, field in reversed(lists):  # inner lists first
        kinds = {msgspec.json.encode(element): element for element in holder[field]}
        holder[field] = list(kinds.values())
    return msgspec.json.encode(tree).decode()
