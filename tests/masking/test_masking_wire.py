"""What goes between gatewayd and PostgreSQL under masks: values stay on the one side, the salt on the other (decision 10)."""

import re

import pytest
import trio

from gatewayd.masking.transforms.in_python import padded
from gatewayd.postgres.execute.result import Result
from tests.conftest import Postgres
from tests.masking.honest_statements import STATEMENTS
from tests.masking.masking_rig import SALT, rig
from tests.masking.masking_shop import HIDING, KEYED, SCHEMA, SHOWING, data
from tests.postgres.relay import between

RAW = re.compile(rb"(?:mail|ssn|tel|card)\d{9}")
KEYS = (SALT, *padded(SALT))


class Heard:
    """Both ways of all connections, each in one piece."""

    def __init__(self) -> None:
        self.asked = b""
        self.answered = b""

    async def relay(self, client: trio.SocketStream, server: trio.SocketStream) -> None:
        async def answers() -> None:
            async for data in server:
                self.answered += data
                await client.send_all(data)

        async with trio.open_nursery() as nursery:
            nursery.start_soon(answers)
            async for data in client:
                self.asked += data
                await server.send_all(data)
            nursery.cancel_scope.cancel()


@pytest.mark.parametrize(
    ("policy", "path", "values_leave", "keys_arrive"),
    [
        (HIDING, "post_exec", False, False),
        (HIDING, "source_rewrite", False, False),
        (SHOWING, "source_rewrite", False, True),
        (KEYED, "post_exec", True, False),
    ],
)
async def test_values_stay_there_and_keys_here(
    postgres: Postgres, policy: str, path: str, values_leave: bool, keys_arrive: bool
) -> None:
    """But for masks with a key: either their values come here, or their keys go there, which are not the salt either."""
    heard = Heard()
    async with (
        between(postgres, heard.relay) as port,
        rig(through(port, postgres.create_database(SCHEMA + data(21))), policy, rewriting=path == "source_rewrite") as ask,
    ):
        assert not RAW.search(heard.answered), "the catalog"
        answered = [isinstance(await ask(sql), Result) for sql in (*STATEMENTS, "SELECT * FROM users", "SELECT * FROM contacts")]
    assert answered.count(True) > 100
    assert bool(RAW.search(heard.answered)) == values_leave
    assert SALT not in heard.asked
    assert any(key in heard.asked for key in KEYS) == keys_arrive


def through(port: str, dsn: str) -> str:
    """The database of `dsn` by the way of `port`."""
    name = dsn.split("@", 1)[1].split("/", 1)[1].split("?", 1)[0]
    return re.sub(r"(@[^/]*/)[^?]*", rf"\g<1>{name}", port)
