"""One database from outside in: name, port, login, encryption, version, what the role may do besides the policy, catalog, canary.

The policy is one wall and the rights of the role are the other; these checks find where the second is missing.
"""

import os
from collections.abc import AsyncIterator, Iterator
from typing import Any, Final
from urllib.parse import parse_qs, unquote, urlsplit

import msgspec
import trio

from gatewayd.catalog import Catalog
from gatewayd.cli.doctor.canary import canary
from gatewayd.cli.doctor.finding import Check, fail, ok, warn
from gatewayd.cli.doctor.server_log import server_log
from gatewayd.cli.policyfile import DatabaseEntry
from gatewayd.config.environment import is_loopback
from gatewayd.masking.rules.mask_rules import problems
from gatewayd.policy.decide.access import resolve
from gatewayd.postgres.catalog.read_catalog import read_catalog
from gatewayd.postgres.execute.result import ExecutionFailed
from gatewayd.postgres.pool import Pool

REACH_S: Final = 5.0
MAINTAINED: Final = 14
GRAMMAR: Final = 18  # pglast 8
_NAMED: Final = 3

_ROLE: Final = """
SELECT r.rolname::text AS name, r.rolsuper, r.rolbypassrls, r.rolcreaterole, r.rolcreatedb, r.rolreplication,
       ARRAY(SELECT p.rolname::text FROM pg_catalog.pg_roles AS p WHERE p.rolname = ANY ($1::text[])
             AND pg_catalog.pg_has_role(r.oid, p.oid, 'USAGE') ORDER BY 1) AS member_of,
       (SELECT s.ssl FROM pg_catalog.pg_stat_ssl AS s WHERE s.pid = pg_catalog.pg_backend_pid()) AS ssl,
       pg_catalog.has_database_privilege(pg_catalog.current_database(), 'CREATE') AS creates_schemas,
       ARRAY(SELECT n.nspname::text FROM pg_catalog.pg_namespace AS n WHERE n.nspname !~ '^pg_'
             AND pg_catalog.has_schema_privilege(n.oid, 'CREATE') ORDER BY n.nspname <> 'public', 1) AS creates_in
FROM pg_catalog.pg_roles AS r WHERE r.rolname = CURRENT_USER
"""
_POWERFUL: Final = (
    *("pg_read_all_data", "pg_write_all_data", "pg_read_server_files", "pg_write_server_files", "pg_execute_server_program"),
    *("pg_signal_backend", "pg_maintain", "pg_create_subscription"),
)
_RIGHTS: Final = """
SELECT n.nspname::text AS schema, c.relname::text AS name,
       pg_catalog.has_table_privilege(c.oid, 'SELECT') AS reads,
       pg_catalog.has_table_privilege(c.oid, 'INSERT, UPDATE, DELETE, TRUNCATE') AS writes
FROM pg_catalog.pg_class AS c JOIN pg_catalog.pg_namespace AS n ON n.oid = c.relnamespace
WHERE c.relkind IN ('r', 'p', 'v', 'm', 'f') AND n.nspname !~ '^pg_' AND n.nspname <> 'information_schema'
      AND pg_catalog.has_schema_privilege(n.oid, 'USAGE') ORDER BY 1, 2
"""
_FLAGS: Final = {
    "rolbypassrls": "passes row-level security by (BYPASSRLS)",
    "rolcreaterole": "can make and change roles (CREATEROLE)",
    "rolcreatedb": "can make databases (CREATEDB)",
    "rolreplication": "can read the whole server as a replica (REPLICATION)",
}
_ROLE_REMEDY: Final = "use a role of its own with no more than it needs (README has the SQL)"


async def checks(entry: DatabaseEntry, *, rewriting: bool) -> AsyncIterator[Check]:
    """In their order; a check that fails ends those that need it. `rewriting` is what GATEWAY_MASK_SOURCE_REWRITE says."""
    assert entry.url is not None
    reached = [check async for check in _reach(entry.url)]
    is_reachable = any(check.outcome == "OK" for check in reached)
    for check in reached:  # one of several hosts may be down
        yield msgspec.structs.replace(check, outcome="WARN") if is_reachable and check.outcome == "FAIL" else check
    if not is_reachable:
        return
    pool = Pool(entry.name, entry.url, entry.policy.limits, size=1)
    try:
        async with pool.connection() as connection:
            (role,) = await connection.fetch(_ROLE, list(_POWERFUL))
            rights = await connection.fetch(_RIGHTS)
            logged = await server_log(connection, entry, rewriting=rewriting)
        yield ok("login", f"as role {role['name']}")
        yield _encryption(entry.url, is_encrypted=bool(role["ssl"]))
        catalog = await read_catalog(pool, 1)
        yield _version(catalog)
        for check in (*_masks(entry, catalog), *_role(role), *(_rights(entry, rights) if not role["rolsuper"] else ())):
            yield check
        if logged is not None:
            yield logged
        yield ok("catalog", f"{_own(catalog)} relations and {len(catalog.functions)} functions of its own in {catalog.database}")
    except ExecutionFailed as failed:
        yield fail(
            "login", f"{failed.message} ({failed.sqlstate})", "look at user, password, database and sslmode of the address"
        )
        return
    finally:
        with trio.CancelScope(shield=True):
            await pool.aclose()
    yield await canary(entry)


async def _reach(url: str) -> AsyncIterator[Check]:
    """Name and port of each host that the address names, in the order in which they are tried."""
    for host, port in hosts(url):
        if host.startswith("/"):
            path = f"{host}/.s.PGSQL.{port}"
            if await trio.Path(path).exists():
                yield ok("reach", f"socket {path}")
            else:
                yield fail("reach", f"there is no socket {path}", "start PostgreSQL, or correct host and port of the address")
            continue
        found: Check | None = None
        with trio.move_on_after(REACH_S):
            try:
                await trio.socket.getaddrinfo(host, port)
                stream = await trio.open_tcp_stream(host, port)
                await stream.aclose()
                found = ok("reach", f"{host} port {port} takes connections")
            except trio.socket.gaierror:
                found = fail("reach", f"the name {host} cannot be resolved", "correct the host of the address, or the DNS")
            except OSError:
                found = fail("reach", f"{host} port {port} refuses connections", "start PostgreSQL, or correct host and port")
        yield found or fail("reach", f"{host} port {port} does not answer", "look at firewall, route and the host of the address")


def hosts(url: str) -> list[tuple[str, int]]:
    """Hosts and ports that a connection string names; libpq's variables and defaults for what it leaves out."""
    parts = urlsplit(url)
    query = parse_qs(parts.query)
    default = (query.get("port") or [os.environ.get("PGPORT", "5432")])[0].split(",")
    netloc = parts.netloc.rpartition("@")[2]
    named = query["host"][0].split(",") if "host" in query else netloc.split(",") if netloc else []
    found: list[tuple[str, int]] = []
    for number, spec in enumerate(named or [os.environ.get("PGHOST") or "localhost"]):
        text = unquote(spec)
        usual = int(default[min(number, len(default) - 1)])
        if text.startswith("/"):
            found.append((text, usual))
            continue
        host, _, after = text.rpartition(":") if ":" in text and not text.endswith("]") else (text, "", "")
        found.append((host.strip("[]"), int(after or usual)))
    return found


def _encryption(url: str, *, is_encrypted: bool) -> Check:
    names = [host for host, _ in hosts(url)]
    if all(name.startswith("/") or is_loopback(name) for name in names):
        return ok("encryption", "on this machine; none is needed" if not is_encrypted else "TLS")
    if not is_encrypted:
        return warn(
            "encryption", "rows and statements cross the network in plain text", "add ?sslmode=verify-full to the address"
        )
    mode = (parse_qs(urlsplit(url).query).get("sslmode") or ["prefer"])[0]
    if mode != "verify-full":
        return warn("encryption", f"TLS, but sslmode={mode} takes any server for the right one", "use sslmode=verify-full")
    return ok("encryption", "TLS, and the server proves its name")


def _version(catalog: Catalog) -> Check:
    major = catalog.server_version // 10000
    if major < MAINTAINED:
        return warn(
            "version", f"PostgreSQL {major}, which its makers maintain no longer", f"use PostgreSQL {MAINTAINED} or newer"
        )
    if major > GRAMMAR:
        found = f"PostgreSQL {major}, newer than the grammar that gatewayd reads statements by ({GRAMMAR})"
        return warn("version", found, "what is new in it is denied; look for a newer gatewayd")
    return ok("version", f"PostgreSQL {major}")


def _masks(entry: DatabaseEntry, catalog: Catalog) -> Iterator[Check]:
    misfits = list(problems(entry.policy, catalog))
    for misfit in misfits:
        yield fail("masks", misfit, "correct it: gatewayd refuses a policy whose masks do not fit its database")
    masked = sum(map(len, entry.policy.column_masks.values()))
    if masked and not misfits:
        yield ok("masks", f"{masked} column{'' if masked == 1 else 's'} masked")


def _role(role: Any) -> Iterator[Check]:
    name = role["name"]
    if role["rolsuper"]:
        yield warn("role", f"{name} is a superuser: the policy is the only wall", _ROLE_REMEDY)
        return
    powers = [words for flag, words in _FLAGS.items() if role[flag]]
    if role["member_of"]:
        powers.append(f"is a member of {', '.join(role['member_of'])}")
    if powers:
        yield warn("role", f"{name} {', '.join(powers)}", _ROLE_REMEDY)
    else:
        yield ok("role", f"{name} has no special powers")
    if role["creates_in"] or role["creates_schemas"]:
        places = [f"in schema {_some(role['creates_in'])}"] if role["creates_in"] else []
        places += ["schemas"] if role["creates_schemas"] else []
        schemas = ", ".join(role["creates_in"][:_NAMED]) or "public"
        yield warn(
            "role",
            f"{name} can create {' and '.join(places)}",
            f"REVOKE CREATE ON SCHEMA {schemas} FROM PUBLIC, {name}, unless agents are to make tables",
        )


def _rights(entry: DatabaseEntry, rights: list[Any]) -> Iterator[Check]:
    access = entry.policy.table_access
    writes: list[str] = []
    reads: list[str] = []
    for row in rights:
        level = resolve(access, row["schema"], row["name"]).level
        name = f"{row['schema']}.{row['name']}"
        if row["writes"] and level != "read_write":
            writes.append(name)
        if row["reads"] and level == "deny":
            reads.append(name)
    if writes:
        yield warn(
            "rights",
            f"the role can write {_tables(writes)} that the policy does not let be written: {_some(writes)}",
            "REVOKE INSERT, UPDATE, DELETE, TRUNCATE on them, so that a second wall stands",
        )
    if reads:
        yield warn(
            "rights",
            f"the role can read {_tables(reads)} that the policy denies: {_some(reads)}",
            "REVOKE SELECT on them, so that a second wall stands",
        )
    if not writes and not reads:
        yield ok("rights", "the role can do no more than the policy allows")


def _tables(names: list[str]) -> str:
    return f"{len(names)} table{'' if len(names) == 1 else 's'}"


def _some(names: list[str]) -> str:
    return ", ".join(names[:_NAMED]) + (", ..." if len(names) > _NAMED else "")


def _own(catalog: Catalog) -> int:
    return sum(relation.schema not in ("pg_catalog", "information_schema") for relation in catalog.relations.values())
