"""SHOW and EXPLAIN: run as written, each row a JSON object of text columns; EXPLAIN (FORMAT JSON) is embedded (decision 6)."""

import msgspec

from gatewayd.policy.file.model import Limits
from gatewayd.postgres.driver.session import Connection
from gatewayd.postgres.execute.failure import FAILURES, failed
from gatewayd.postgres.execute.result import Result
from gatewayd.postgres.execute.wrap import as_written
from gatewayd.sql.facts.statement import Statement


async def show(connection: Connection, statement: Statement, limits: Limits, *, undone: bool = False) -> Result:
    """The session is READ ONLY unless a transaction says otherwise, so EXPLAIN ANALYZE cannot write. `undone` as in `read`: the
    planner, too, runs functions."""
    sent = as_written(statement)
    begins = connection.pins_locally or undone
    try:
        if begins:
            await connection.begin("READ ONLY")
        answer = await connection.fetch_described(sent.text)
        if begins:
            await connection.execute("ROLLBACK" if undone else "COMMIT")
    except FAILURES as error:
        await connection.rollback()
        raise failed(error, sent.position) from error
    rows: list[bytes] = []
    bytes_left = limits.max_bytes
    for record in answer.records:
        row = msgspec.json.encode(
            {
                name: msgspec.Raw(value.encode()) if type_name in ("json", "jsonb") and value is not None else value
                for name, type_name, value in zip(answer.names, answer.types, record, strict=True)
            }
        )
        bytes_left -= len(row)
        if len(rows) == limits.max_rows or bytes_left < 0:
            break
        rows.append(row)
    return Result(rows=tuple(rows), rows_returned=len(rows), truncated=len(rows) < len(answer.records))
