"""Writes what psql's backslash commands send, as test data: `python -m tests.shields.capture_psql HOST PORT DATABASE PSQL OUT`.

The database is one made of introspected.sql. `psql -E` shows the queries; object numbers in them are those of that database, so
each is written as a subquery that names the object.
"""

import re
import subprocess
import sys
from pathlib import Path

OBJECTS = (
    "people", "teams", "hidden", "events", "events_2025", "badges", 'app."Mixed Case"', "app.grown", "app.counted", "over_hidden",
    "vouched", "people_id_seq", "app.tickets", "people_lower", "secret_index", "kept_hidden", "hidden_id_seq", "mood",
)  # fmt: skip
LISTS = (
    "d", "dS", "dt", "dt+", "di", "di+", "dv", "dv+", "dm", "dm+", "ds", "ds+", "dE", "dE+", "df", "df+", "dfa+", "dfn",
    "dft+", "da", "dA", "dA+", "dAc", "dAf", "dAo", "dAp", "db", "db+", "dc", "dc+", "dC", "dC+", "dd", "dD", "dD+", "ddp",
    "des", "des+", "det", "det+", "deu", "dew", "dew+", "dF", "dF+", "dFd", "dFp", "dFt", "dg", "dg+", "dL", "dL+", "dn",
    "dn+", "do", "do+", "dO", "dO+", "dp", "dP", "dP+", "dPn", "drds", "dRp", "dRp+", "dRs", "dT", "dT+", "du", "du+", "dx",
    "dx+", "dX", "dy", "dy+", "l", "l+", "sv app.grown", "sv over_hidden", "sf add", "ef add", "z", "dconfig",
    "dconfig work_mem", "dl", "dtivmsE+ app.*", "dd size_fits", "dp hidden", "dX+", "dRp+ told", "dT+ mood", "df+ add",
    "dti pg_catalog.pg_c*",
)  # fmt: skip
_QUERY = re.compile(r"^[/*]+ QUERY [/*]+\n(.*?)^[/*]{10,}", re.MULTILINE | re.DOTALL)
_NUMBER = re.compile(r"'(\d{5,})'")


def main(host: str, port: str, database: str, psql: str, out: str) -> None:
    base = [psql, "--no-psqlrc", "--host", host, "--port", port, "--username", "postgres", "--dbname", database]

    def run(*words: str) -> str:
        return subprocess.run([*base, *words], capture_output=True, text=True, check=False).stdout

    names = {}
    for line in run("-Atc", "SELECT oid, oid::regclass FROM pg_class WHERE oid >= 16384").splitlines():
        number, _, name = line.partition("|")
        names[number] = name

    def named(found: re.Match[str]) -> str:
        name = names.get(found[1])
        return f"'{name}'::pg_catalog.regclass" if name is not None else found[0]

    seen: dict[str, None] = {}
    for command in [*LISTS, *(f"{each} {name}" for name in OBJECTS for each in ("d", "d+"))]:
        for query in _QUERY.findall(run("-E", "-c", f"\\{command}")):
            seen[f"-- \\{command}\n" + _NUMBER.sub(named, query.strip())] = None
    texts: dict[str, str] = {}
    for each in seen:
        head, _, query = each.partition("\n")
        texts.setdefault(query, head)
    Path(out).write_text("\n\n".join(f"{head}\n{query}" for query, head in texts.items()) + "\n", encoding="utf-8")
    print(len(texts), "statements")


if __name__ == "__main__":
    main(*sys.argv[1:])
