"""PostgreSQL's node trees as text (nodes/outfuncs.c, readfuncs.c) -> plain values: what pg_proc.prosqlbody holds.

A node is a dict with its name under "node", a list is a list, also one of integers or oids, whose first member says so; every
other value is the text that stands there, `<>` is None.
"""

import re
from typing import Any, Final

Node = dict[str, Any]
_TOKEN: Final = re.compile(r'[{}()\[\]]|"(?:[^"\\]|\\.)*"|(?:\\.|[^\s{}()\[\]\\"])+')


def parse(text: str) -> Any:
    """The value that the text holds."""
    tokens = _TOKEN.findall(text)
    root: list[Any] = []
    stack: list[Any] = [root]
    fields: list[str | None] = [None]
    index = 0
    while index < len(tokens):
        token = tokens[index]
        index += 1
        if token == "{":
            node: Node = {"node": tokens[index]}
            index += 1
            _put(stack, fields, node)
            stack.append(node)
            fields.append(None)
        elif token in "([":
            items: list[Any] = []
            _put(stack, fields, items)
            stack.append(items)
            fields.append(None)
        elif token in "})]":
            stack.pop()
            fields.pop()
        elif token.startswith(":") and isinstance(stack[-1], dict) and len(token) > 1:
            fields[-1] = token[1:]
        else:
            _put(stack, fields, None if token == "<>" else token)
    return root[0] if len(root) == 1 else root


def _put(stack: list[Any], fields: list[str | None], value: Any) -> None:
    holder, field = stack[-1], fields[-1]
    if isinstance(holder, list):
        holder.append(value)
    elif field is not None and field not in holder:
        holder[field] = value
    elif field is not None:  # a constant's bytes follow their length
        holder[field + " bytes"] = value


def nodes(tree: Any) -> list[Node]:
    """Every node of a tree, outside in."""
    found: list[Node] = []
    pending = [tree]
    while pending:
        value = pending.pop()
        if isinstance(value, dict):
            found.append(value)
            pending.extend(value.values())
        elif isinstance(value, list):
            pending.extend(reversed(value))
    return found
