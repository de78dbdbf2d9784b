"""Names that a server of another encoding than UTF-8 cuts or folds otherwise than the parser."""

import pytest

from gatewayd.sql.text.encodings import other_name

LONG = "ü" * 32  # 64 bytes of UTF-8, 32 of LATIN1


@pytest.mark.parametrize(
    "sql",
    [
        f"SELECT * FROM {LONG}",
        f'SELECT * FROM "{LONG}"',
        f'SELECT 1 AS a FROM t WHERE "{LONG}" = 1',
        f"SELECT {LONG}(1)",
        'SELECT * FROM U&"' + "\\00fc" * 32 + '"',
        "SELECT * FROM Ürsprung",
        "SELECT * FROM übeR",
    ],
)
def test_a_name_that_such_a_server_may_read_otherwise(sql: str) -> None:
    assert other_name(sql) is not None


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT * FROM " + "a" * 70,
        'SELECT * FROM "Ürsprung", übel',
        f"SELECT '{LONG}' FROM t -- {LONG} Ü",
        'SELECT * FROM U&"\\00fcber" WHERE a & 1 = 1',
        f'SELECT * FROM "{"ü" * 30}"',
    ],
)
def test_a_name_that_every_server_reads_alike(sql: str) -> None:
    assert other_name(sql) is None
