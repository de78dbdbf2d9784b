"""Makes a failing statement smaller: leaves out tokens, from long runs to single ones, as long as it still fails."""

from collections.abc import Awaitable, Callable

from tests.properties.mutations import tokens


async def shrink(sql: str, fails: Callable[[str], Awaitable[bool]], tries: int = 400) -> str:
    """The smallest text found with at most `tries` questions. Works on any text that PostgreSQL's scanner takes."""
    left = tries
    step = max(len(tokens(sql)) // 2, 1)
    while step >= 1 and left > 0:
        at = 0
        while left > 0:
            found = tokens(sql)
            if at >= len(found):
                break
            last = min(at + step, len(found)) - 1
            shorter = (sql[: found[at][1]] + sql[found[last][2] :]).strip()
            left -= 1
            if shorter != sql and await fails(shorter):
                sql = shorter
            else:
                at += 1 if step <= 8 else step // 2
        step //= 2
    return sql
