"""The texts of statements without their constants, by fingerprint: what a search by text looks through. A text is kept once, and
apart from the events: what is erased of those is not in it."""

from typing import Final

import trio

from gatewayd.control.audit.batch import StatementText
from gatewayd.control.console import Console
from gatewayd.control.store.statement import Statement
from gatewayd.control.store.store import Transaction
from gatewayd.sql.text.redact import redacted

_TEXT: Final = 20_000
_SQL: Final = 200_000

ADD: Final = Statement(
    "INSERT INTO statements (project_id, fingerprint, text, first_ms, last_ms) SELECT $1::uuid, f, t, m, m"
    " FROM unnest($2::text[], $3::text[], $4::bigint[]) AS new (f, t, m)"
    " ON CONFLICT (project_id, fingerprint) DO NOTHING"
)
KNOWN: Final = Statement("SELECT fingerprint FROM statements WHERE project_id = $1 AND fingerprint = ANY($2)")
MATCHING: Final = Statement(
    "SELECT fingerprint FROM statements WHERE project_id = $1 AND text ILIKE $2 ORDER BY last_ms DESC, fingerprint LIMIT $3"
)
TEXTS: Final = Statement("SELECT fingerprint, text FROM statements WHERE project_id = $1 AND fingerprint = ANY($2)")


async def keep_statements(console: Console, project_id: str, statements: list[StatementText]) -> None:
    """Those that are not known yet. One that cannot be parsed has no text without constants, and is left out."""
    new = [each for each in statements if not console.link.knows(project_id, each.fingerprint)]
    if not new:
        return

    def without_constants() -> list[tuple[str, str, int]]:
        texts = ((each, _text_of(each)) for each in new)
        return [(each.fingerprint, text.replace("\0", "")[:_TEXT], each.ts) for each, text in texts if text is not None]

    found = sorted(await trio.to_thread.run_sync(without_constants))
    if found:
        columns = [list(each) for each in zip(*found, strict=True)]

        async def work(tx: Transaction) -> None:
            await tx.run(ADD, project_id, *columns)

        await console.store.transaction(work)
    for each in new:
        console.link.learn(project_id, each.fingerprint)


def _text_of(statement: StatementText) -> str | None:
    if statement.is_redacted:
        return statement.sql
    return redacted(statement.sql) if len(statement.sql) <= _SQL else None


def pattern(text: str) -> str:
    """For ILIKE: `text` anywhere."""
    escaped = text.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")
    return f"%{escaped}%"
