"""A database of another encoding than UTF-8: there PostgreSQL cuts long names elsewhere than the parser, which reads UTF-8."""

from pathlib import Path

from gatewayd.corridor.answer import Answered, Refused
from tests.conftest import Postgres
from tests.faults.corridor import corridor

HALF = "a" * 57 + "üü"  # 61 bytes: names made of it are cut within a letter
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


async def test_names_cut_within_a_letter_do_not_stop_the_catalog(postgres: Postgres, tmp_path: Path) -> None:
    postgres.execute("CREATE DATABASE ascii ENCODING 'SQL_ASCII' LC_COLLATE 'C' LC_CTYPE 'C' TEMPLATE template0")
    dsn = postgres.dsn("ascii")
    postgres.execute(
        f'CREATE TABLE "{HALF}" (id serial PRIMARY KEY, "größe" int CHECK ("größe" > 0)); INSERT INTO "{HALF}" VALUES (1, 2);'
        f"CREATE TABLE hidden (id int); CREATE VIEW v AS SELECT 'é' AS word",
        dsn,
    )
    cut = "SELECT count(*) AS n FROM pg_class WHERE encode(relname::text::bytea, 'hex') LIKE '%c35f%'"
    assert postgres.query(cut, dsn) != [{"n": 0}], "no name is cut within a letter"
    async with corridor(dsn, tmp_path, "table_access: {default: read, tables: {hidden: deny}}\n") as there:
        relation = there.database.catalog.relation("public", HALF)
        assert relation is not None
        assert [column.name for column in relation.columns] == ["id", "größe"]
        answer = await there.query(f'SELECT "größe", word FROM "{HALF}", v')
        assert isinstance(answer, Answered), answer
        assert answer.result.rows == ('{"größe":2,"word":"é"}'.encode(),)
        assert isinstance(await there.query("SELECT * FROM hidden"), Refused)
