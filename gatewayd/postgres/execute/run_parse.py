"""A statement that names what does not exist is parsed by the server and never executed: its words are the answer."""

from collections.abc import Hashable

from gatewayd.policy.decide.outcomes import Permit
from gatewayd.policy.file.model import Limits
from gatewayd.postgres.execute.failure import FAILURES, failed
from gatewayd.postgres.execute.wrap import as_written
from gatewayd.postgres.pool import Pool


async def parse(pool: Pool, permit: Permit, limits: Limits, caller: Hashable = None) -> None:
    """Raises ExecutionFailed in the server's words. Returns when the server can parse it after all; nothing has run.

    Cancelled, the session is left without a transaction, or closed.
    """
    sent = as_written(permit.allowed.statement)
    connection = await pool.acquire(limits, caller)
    try:
        if connection.pins_locally:
            await connection.begin("READ ONLY")
        await connection.describe(sent.text)
        if connection.pins_locally:
            await connection.execute("COMMIT")
    except FAILURES as error:
        await connection.rollback()
        raise failed(error, sent.position) from error
    finally:
        pool.release(connection, caller)
