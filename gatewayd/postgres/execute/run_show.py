"""SHOW and EXPLAIN: run as written, each row a JSON object of text columns; EXPLAIN (FORMAT JSON) is embedded (decision 6).

Neither can stand inside a query, so the limits cannot be put on the server: the rows come in pieces, and no more are asked for
once a limit is reached. A plan may have a line for each of a million conditions, or be one JSON value of a gigabyte.
"""

import msgspec

from gatewayd.policy.file.model import Limits
from gatewayd.postgres.driver.session import Connection, Described
from gatewayd.postgres.execute.evidence import Evidence
from gatewayd.postgres.execute.failure import FAILURES, failed
from gatewayd.postgres.execute.guard import ask
from gatewayd.postgres.execute.result import ExecutionFailed, Result
from gatewayd.postgres.execute.run_read import refused
from gatewayd.postgres.execute.wrap import as_written
from gatewayd.sql.facts.statement import Statement


async def show(
    connection: Connection, statement: Statement, limits: Limits, evidence: Evidence | None = None, *, undone: bool = False
) -> Result:
    """READ ONLY, so EXPLAIN ANALYZE cannot write. `undone` as in `read`: the planner, too, runs functions."""
    sent = as_written(statement)
    shown = _Shown(limits)
    try:
        await connection.begin("READ ONLY")
        await connection.fetch_in_pieces(sent.text, shown.keep)
        if evidence is not None:
            await ask(connection, evidence)
        await connection.execute("ROLLBACK" if undone else "COMMIT")
    except FAILURES as error:
        raise await refused(connection, failed(error, sent.position), evidence) from error
    except ExecutionFailed:  # the guard's, or one row is too large
        await connection.rollback()
        raise
    return Result(rows=tuple(shown.rows), rows_returned=len(shown.rows), truncated=shown.is_truncated)


class _Shown:
    """The rows within the limits."""

    def __init__(self, limits: Limits) -> None:
        self.rows: list[bytes] = []
        self.is_truncated = False
        self._rows_left = limits.max_rows
        self._bytes_left = limits.max_bytes

    def keep(self, answer: Described) -> bool:
        for record in answer.records:
            row = msgspec.json.encode(
                {
                    name: msgspec.Raw(value.encode()) if type_name in ("json", "jsonb") and value is not None else value
                    for name, type_name, value in zip(answer.names, answer.types, record, strict=True)
                }
            )
            self._bytes_left -= len(row)
            self._rows_left -= 1
            if self._rows_left < 0 or self._bytes_left < 0:
                self.is_truncated = True
                return False
            self.rows.append(row)
        return True
