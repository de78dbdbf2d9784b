"""PostgreSQL's node trees as text (nodes/outfuncs.c, readfuncs.c) -> plain values: what pg_proc.prosqlbody holds.

A node is a dict with its name under "node", a list is a list, also one of integers or oids, whose first member says so; every
other value is the text that stands there, `<>` is None. The bytes of a constant are left out.
"""

import re
from typing import Any, Final

Node = dict[str, Any]
_TOKEN: Final = re.compile(r"[{}()]|(?:\\.|[^\s{}()\\])+", re.DOTALL)
"""As pg_strtok cuts them: quotes and square brackets are like other characters."""


def parse(text: str) -> Any:
    """The value that the text holds."""
    tokens = iter(_TOKEN.findall(text))
    root: list[Any] = []
    stack: list[Any] = [root]
    fields: list[str | None] = [None]
    for token in tokens:
        holder = stack[-1]
        if token in ("{", "("):
            made: Any = {"node": next(tokens)} if token == "{" else []
            _put(holder, fields[-1], made)
            stack.append(made)
            fields.append(None)
        elif token in ("}", ")"):
            stack.pop()
            fields.pop()
        elif token == "[" and isinstance(holder, dict) and fields[-1] in holder:
            while next(tokens) != "]":
                pass
        elif token.startswith(":") and isinstance(holder, dict) and len(token) > 1:
            fields[-1] = token[1:]
        else:
            _put(holder, fields[-1], None if token == "<>" else token)
    return root[0] if len(root) == 1 else root


def _put(holder: Any, field: str | None, value: Any) -> None:
    if isinstance(holder, list):
        holder.append(value)
    elif field is not None:
        holder.setdefault(field, value)


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
