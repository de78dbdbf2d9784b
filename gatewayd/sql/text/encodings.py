"""Names that a server whose encoding is not UTF-8 reads otherwise than the parser, which reads UTF-8 (decision 3.3). Pure.

Both cut a name after 63 bytes, each in its own encoding; and a server with one byte a character also folds letters beyond ASCII.
"""

from typing import Final

from gatewayd.sql.text.parse import parse, tokens_of
from gatewayd.sql.text.tokens import Token

NAME_BYTES: Final = 63


def other_name(sql: str) -> Token | None:
    """The first identifier that such a server may take for another name. `sql` is a text that the parser took."""
    if sql.isascii() and "&" not in sql:
        return None
    data = sql.encode()
    for token in tokens_of(parse(sql)):
        if token.name not in ("IDENT", "UIDENT"):
            continue
        text = data[token.start : token.end].decode()
        is_escaped, is_quoted = token.name == "UIDENT", text.startswith('"')
        if text.isascii() and not is_escaped:
            continue
        length = token.end - token.start - (4 if is_escaped else 2 if is_quoted else 0)  # an escape is longer than what it means
        if length > NAME_BYTES or (not is_escaped and not is_quoted and text != text.lower()):
            return token
    return None
