"""A database of another encoding than UTF-8: there PostgreSQL cuts long names elsewhere than the parser, which reads UTF-8."""

from pathlib import Path

from gatewayd.corridor.answer import Answered, Refused
from tests.conftest import Postgres
from tests.faults.corridor import corridor

HIDDEN, OPEN = "ü" * 40, "ü" * 31  # the parser cuts the first to the second
POLICY = f'table_access: {{default: deny, tables: {{"{OPEN}": read}}}}\n'


async def test_a_hidden_table_is_not_read_under_the_name_that_the_parser_cuts(postgres: Postgres, tmp_path: Path) -> None:
    postgres.execute("CREATE DATABASE latin ENCODING 'LATIN1' LC_COLLATE 'C' LC_CTYPE 'C' TEMPLATE template0")
    dsn = postgres.dsn("latin")
    postgres.execute(
        f"SET client_encoding = 'UTF8'; CREATE TABLE \"{OPEN}\" (id int); CREATE TABLE \"{HIDDEN}\" AS SELECT 'x' AS word", dsn
    )
    async with corridor(dsn, tmp_path, POLICY) as open_one:
        for name in (HIDDEN, f'"{HIDDEN}"', 'U&"' + "\\00fc" * 40 + '"'):
            answer = await open_one.query(f"SELECT * FROM {name}")
            assert isinstance(answer, Refused)
            assert "LATIN1" in answer.denied.reason
        assert isinstance(await open_one.query(f'SELECT * FROM "{OPEN}"'), Answered)
