"""The way to the database: TLS as libpq means it, a pooler that refuses start-up parameters, a cut connection."""

import shutil
import ssl
import struct
import subprocess
from pathlib import Path
from typing import Any

import pytest
import trio

from gatewayd.policy.file.model import Limits
from gatewayd.postgres.driver.pins import UNDER_A_POOLER
from tests.postgres.postgres_asking import asking, until
from tests.postgres.relay import Relay, between, pass_both_ways, pass_on


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Certificate and key of `localhost`, signed by itself, in one file."""
    if shutil.which("openssl") is None:
        pytest.skip("the openssl program, which makes the certificate, is not installed")
    path = tmp_path_factory.mktemp("tls") / "both.pem"
    words = ["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-subj", "/CN=localhost"]
    subprocess.run(
        ["openssl", *words, "-addext", "subjectAltName=DNS:localhost", "-keyout", path, "-out", path.with_suffix(".crt")],
        check=True, capture_output=True,
    )  # fmt: skip
    path.write_text(path.read_text() + path.with_suffix(".crt").read_text())
    return path


def in_tls(certificate: Path) -> Relay:
    """The embedded server is built without TLS: the relay speaks it, as a proxy before a server does."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)

    async def relay(client: trio.SocketStream, server: trio.SocketStream) -> None:
        assert await client.receive_some() == struct.pack("!ii", 8, 80877103), "no SSLRequest"
        await client.send_all(b"S")
        stream = trio.SSLStream(client, context, server_side=True, https_compatible=True)

        async def inwards() -> None:
            async for data in stream:
                await server.send_all(data)
            await server.send_eof()

        async def outwards() -> None:
            async for data in server:
                await stream.send_all(data)
            nursery.cancel_scope.cancel()

        try:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(inwards)
                nursery.start_soon(outwards)
        except* trio.BrokenResourceError:
            pass  # the client did not like the certificate, or has closed

    return relay


@pytest.mark.parametrize("mode", ["prefer", "require"])
async def test_statements_of_any_size_pass_tls(postgres: Any, certificate: Path, mode: str) -> None:
    async with between(postgres, in_tls(certificate), f"?sslmode={mode}") as dsn, asking(dsn, size=1) as ask:
        (row,) = await ask.rows("SELECT repeat('x', 900000) AS x")
        assert len(row["x"]) == 900_000
        assert await ask.rows("SELECT length('" + "y" * 900_000 + "') AS n") == [{"n": 900_000}]
        async with trio.open_nursery() as nursery:
            nursery.start_soon(ask, "SELECT pg_sleep(60), 'behind tls'")
            found = "SELECT FROM pg_stat_activity WHERE wait_event = 'PgSleep' AND query LIKE '%behind tl_%'"
            await until(lambda: bool(postgres.query(found)))
            nursery.cancel_scope.cancel()
        assert ask.pool.statistics().idle == 1


@pytest.mark.parametrize(
    ("mode", "host", "is_trusted"),
    [("verify-ca", "127.0.0.1", True), ("verify-full", "localhost", True), ("verify-full", "127.0.0.1", False)],
)
async def test_certificates_are_checked_as_libpq_does(
    postgres: Any, certificate: Path, mode: str, host: str, is_trusted: bool
) -> None:
    query = f"?sslmode={mode}&sslrootcert={certificate.with_suffix('.crt')}"
    async with between(postgres, in_tls(certificate), query) as dsn, asking(dsn.replace("127.0.0.1", host)) as ask:
        if is_trusted:
            assert await ask.rows("SELECT 1 AS a") == [{"a": 1}]
        else:
            failure = await ask.fails("SELECT 1 AS a")
            assert (failure.sqlstate, failure.message) == ("08001", "no TLS connection to the database could be agreed on")


async def refuse_startup_parameters(client: trio.SocketStream, server: trio.SocketStream) -> None:
    """What pgbouncer does with a parameter that it does not track."""
    first = await client.receive_some()
    if b"search_path" in first:
        fields = b"SFATAL\0C08P01\0Munsupported startup parameter: search_path\0\0"
        await client.send_all(b"E" + struct.pack("!i", 4 + len(fields)) + fields)
        return
    await server.send_all(first)
    await pass_both_ways(client, server)


async def test_behind_a_pooler_settings_hold_for_each_transaction(own_postgres: Any) -> None:
    own_postgres.execute(
        "CREATE TABLE t (id int); INSERT INTO t VALUES (1); ALTER ROLE postgres SET IntervalStyle = 'sql_standard'"
    )
    show = "SELECT current_setting('search_path') AS p, current_setting('transaction_read_only') AS r, interval '1 day' AS i"
    pinned = {"p": "public, pg_temp", "r": "on", "i": "P1D"}
    async with between(own_postgres, refuse_startup_parameters) as dsn, asking(dsn, size=1) as ask:
        assert await ask.rows(show) == [pinned]
        assert (await ask.fails("SELECT 'ü', nope FROM t")).position == 13
        assert await ask.rows("SHOW IntervalStyle") == [{"IntervalStyle": "iso_8601"}]
        assert (await ask("UPDATE t SET id = 2 RETURNING *")).rows == (b'{"id":2}',)
        assert (await ask("SELECT *, id FROM t AS a JOIN t AS b USING (id)")).rows == (b'{"id":2,"id_2":2}',)
        assert (await ask.fails("SHOW nothing.such")).sqlstate == "42704"
        assert await ask.rows(show) == [pinned]
        async with ask.pool.connection() as connection:
            assert (await connection.fetch("SELECT current_setting('IntervalStyle') AS i"))[0]["i"] == "sql_standard"
        assert ask.pool.statistics().idle == 1


def without_a_word(kept: frozenset[bytes]) -> Relay:
    """What pgbouncer does with parameters that `ignore_startup_parameters` lists."""

    async def relay(client: trio.SocketStream, server: trio.SocketStream) -> None:
        first = bytes(await client.receive_some())
        fields = first[8:].rstrip(b"\0").split(b"\0")
        pairs = [fields[at : at + 2] for at in range(0, len(fields), 2) if fields[at] in kept or fields[at] in _WHO]
        told = first[4:8] + b"".join(name + b"\0" + value + b"\0" for name, value in pairs) + b"\0"
        await server.send_all(struct.pack("!i", 4 + len(told)) + told)
        await pass_both_ways(client, server)

    return relay


_WHO = (b"user", b"database", b"client_encoding")


async def test_a_pooler_that_ignores_our_settings_is_found_out(own_postgres: Any) -> None:
    """Else a read would run READ WRITE, without timeouts, on whatever search_path the role has."""
    show = "SELECT current_setting('search_path') AS p, current_setting('transaction_read_only') AS r"
    tracked = frozenset(name.encode() for name in UNDER_A_POOLER)
    async with between(own_postgres, without_a_word(tracked)) as dsn, asking(dsn, size=1) as ask:
        for _ in range(2):
            assert await ask.rows(show) == [{"p": "public, pg_temp", "r": "on"}]
        assert await ask.rows("SHOW statement_timeout") == [{"statement_timeout": "30s"}]
    async with between(own_postgres, without_a_word(tracked - {b"TimeZone"})) as dsn, asking(dsn, size=1) as ask:
        failure = await ask.fails(show)
        assert (failure.sqlstate, failure.message) == ("08001", "the pooler before the database does not pass on TimeZone")


async def test_a_connection_cut_in_an_answer_is_08006(postgres: Any) -> None:
    async def cut_long_answers(client: trio.SocketStream, server: trio.SocketStream) -> None:
        async def pass_some() -> None:
            left = 100_000
            async for data in server:
                await client.send_all(data[:left])
                left -= len(data)
                if left <= 0:
                    break
            nursery.cancel_scope.cancel()

        async with trio.open_nursery() as nursery:
            nursery.start_soon(pass_on, client, server)
            nursery.start_soon(pass_some)

    async with between(postgres, cut_long_answers) as dsn, asking(dsn) as ask:
        failure = await ask.fails("SELECT repeat('x', 900000) AS x")
        assert (failure.sqlstate, failure.message) == ("08006", "the connection to the database was lost")
        assert await ask.rows("SELECT 1 AS a") == [{"a": 1}]


async def test_a_statement_whose_connection_is_cut_ends_on_the_server(postgres: Any) -> None:
    """PostgreSQL does not look whether anybody waits for the answer: it would go on until statement_timeout."""
    endless = "SELECT count(*) FROM generate_series(1, 1000000) AS cut_one, generate_series(1, 1000000) AS b"
    asked = f"SELECT 1 FROM pg_stat_activity WHERE pid <> pg_backend_pid() AND state = 'active' AND query LIKE '%{endless[20:]}%'"
    cut = trio.Event()
    open_still: list[Any] = []

    async def relay(client: trio.SocketStream, server: trio.SocketStream) -> None:
        """The server's side stays open, as behind a router that has forgotten the connection."""
        async with trio.open_nursery() as nursery:
            nursery.start_soon(pass_both_ways, client, server)
            if not open_still:
                open_still.append(server.socket.dup())
                await cut.wait()
                nursery.cancel_scope.cancel()

    async with between(postgres, relay) as dsn, asking(dsn) as ask, trio.open_nursery() as nursery:
        nursery.start_soon(ask.fails, endless, Limits(statement_timeout_ms=600_000))
        await until(lambda: bool(postgres.query(asked)))
        cut.set()
        await until(lambda: not postgres.query(asked))
    open_still[0].close()


async def test_an_answer_that_comes_byte_by_byte_is_the_same(postgres: Any) -> None:
    async def drip(client: trio.SocketStream, server: trio.SocketStream) -> None:
        async def pass_bytes() -> None:
            async for data in server:
                for byte in data:
                    await client.send_all(bytes([byte]))

        async with trio.open_nursery() as nursery:
            nursery.start_soon(pass_on, client, server)
            nursery.start_soon(pass_bytes)

    async with between(postgres, drip) as dsn, asking(dsn) as ask:
        assert await ask.rows("SELECT i FROM generate_series(1, 50) AS i") == [{"i": i} for i in range(1, 51)]


async def test_words_that_are_not_the_protocols_are_a_lost_connection(postgres: Any) -> None:
    async def babble(client: trio.SocketStream, server: trio.SocketStream) -> None:
        await client.receive_some()
        await client.send_all(b"HTTP/1.1 400 Bad Request\r\n\r\n")

    async with between(postgres, babble) as dsn, asking(dsn) as ask:
        assert (await ask.fails("SELECT 1 AS a")).sqlstate.startswith("08")
