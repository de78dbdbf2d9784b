"""Proves on a real server what a refused statement does when nobody refuses it (README.md: the table of effects)."""

import itertools
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Final

from gatewayd.postgres.embedded import EmbeddedPostgres
from tests.corpus.server import DATABASE, TEMPLATE
from tests.corpus.wire import Answer, Wire

# What changes a hidden relation, and all that is kept of it elsewhere.
CHANGES: Final[Mapping[str, str]] = {
    "secrets": "UPDATE secrets SET value = 'other-' || value, pin = 'other', weight = weight + 7 WHERE true;"
    "INSERT INTO secrets (id, name, value, weight)"
    " SELECT i, 'new' || i, 'new value ' || i, i FROM generate_series(101, 180) AS i;"
    "REFRESH MATERIALIZED VIEW m_secrets; SELECT setval('secrets_id_seq', 500); ANALYZE secrets",
    "vault.keys": "UPDATE vault.keys SET key = 'other', owner = 'other'; INSERT INTO vault.keys VALUES (9, 'ninth', 'x');"
    "SELECT setval('vault.key_numbers', 77); ANALYZE vault.keys",
    "vault.cards": "UPDATE vault.cards SET number = 'other'; INSERT INTO vault.cards VALUES (9, 2, 'ninth')",
    "Secrets": """UPDATE "Secrets" SET value = 'other'; INSERT INTO "Secrets" VALUES (9, 'ninth')""",
    "geheim ü": """UPDATE "geheim ü" SET wert = 'other'; INSERT INTO "geheim ü" VALUES (9, 'ninth')""",
    "agents": "UPDATE agents SET name = 'Other', codename = 'other'; INSERT INTO agents VALUES (9, 'Ninth', '009')",
    "hidden_parts": "UPDATE hidden_parts SET amount = amount + 5; INSERT INTO hidden_parts VALUES (9, 'eu', 9)",
    "archive.events_2022": "UPDATE archive.events_2022 SET kind = 'other'; INSERT INTO events VALUES (9, '2022-01-01', 'ninth')",
    "orders": "UPDATE orders SET total = total + 1, note = 'other'; INSERT INTO orders (id, total) VALUES (99, 9)",
    "employees": "UPDATE employees SET salary = salary + 1; INSERT INTO employees VALUES (9, 'Ninth')",
}
# No rollback takes back what ANALYZE counted in place, nor the state of a sequence: each reading starts from the same.
BEFORE: Final = "ANALYZE secrets; ANALYZE vault.keys; SELECT setval('secrets_id_seq', 3); SELECT setval('vault.key_numbers', 1)"
CATALOGS: Final = """
    pg_class pg_attribute pg_attrdef pg_constraint pg_index pg_rewrite pg_trigger pg_policy pg_type pg_enum pg_proc pg_aggregate
    pg_operator pg_opclass pg_opfamily pg_amop pg_cast pg_conversion pg_namespace pg_language pg_extension pg_description
    pg_seclabel pg_shdescription pg_authid pg_auth_members pg_database pg_db_role_setting pg_default_acl pg_foreign_server
    pg_foreign_data_wrapper pg_user_mapping pg_event_trigger pg_publication pg_publication_rel pg_publication_namespace
    pg_statistic_ext pg_ts_config pg_ts_config_map pg_ts_dict pg_ts_parser pg_ts_template pg_transform pg_collation pg_am
    pg_sequence pg_inherits pg_partitioned_table pg_largeobject_metadata pg_parameter_acl pg_depend pg_shdepend pg_subscription
"""
DEFINITIONS: Final = "SELECT " + ", ".join(
    f"(SELECT count(*) || '/' || count(*) FILTER (WHERE xmin = pg_current_xact_id()::xid) FROM {name})"
    for name in CATALOGS.split()
)
LOCKS: Final = (
    "SELECT locktype, relation::regclass, mode, objid FROM pg_locks WHERE pid = pg_backend_pid() "
    "AND (locktype = 'advisory' OR locktype = 'relation' AND mode <> 'AccessShareLock') ORDER BY 1, 2, 3, 4"
)
_NUMBERS = itertools.count(1)  # of databases of their own


class Server:
    """The corpus' server, as the proofs use it."""

    def __init__(self, server: EmbeddedPostgres) -> None:
        self.server = server

    @contextmanager
    def session(self, database: str = DATABASE, name: str = "corpus") -> Iterator[Wire]:
        with Wire(self.server, database, name=name) as wire:
            _taken(wire.ask("SET statement_timeout = '5s'; SET lock_timeout = '2s'"))
            yield wire

    @contextmanager
    def own_database(self) -> Iterator[Wire]:
        """A session in a copy of the sample database that nobody else uses; it stays until the server goes."""
        database = f"own_{next(_NUMBERS)}"
        with Wire(self.server, "postgres") as wire:
            _taken(wire.ask(f"CREATE DATABASE {database} TEMPLATE {TEMPLATE}"))
        with self.session(database) as wire:
            yield wire


def prove(server: Server, sql: str, effect: str | Mapping[str, str]) -> str:
    """Empty when the statement has this effect; else what was seen instead."""
    [(kind, value)] = effect.items() if isinstance(effect, Mapping) else [(effect, "")]
    return _PROOFS[kind](server, sql, value)


def _taken(answer: Answer) -> Answer:
    assert not answer.error, answer.error
    return answer


def _in_transaction(wire: Wire, sql: str, before: str = "") -> Answer:
    """The answer of `sql` in a transaction of its own, rolled back; what ends the transaction proves nothing."""
    _taken(wire.ask("BEGIN"))
    if before:
        _taken(wire.ask(before))
    answer = wire.ask(sql)
    if answer.state == "I":
        raise AssertionError("the statement ended the transaction: its effect belongs `outside`")
    if answer.state:
        wire.ask("ROLLBACK")
    return answer


def _reads(server: Server, sql: str, relation: str) -> str:
    with server.session() as wire:
        first = _in_transaction(wire, sql, BEFORE)
        second = _in_transaction(wire, sql, BEFORE)
        changed = _in_transaction(wire, sql, CHANGES[relation])
    if first.text != second.text:
        return f"the answer is never twice the same: {first.text[:200]} / {second.text[:200]}"
    return f"the answer stays: {first.text[:300]}" if first.text == changed.text else ""


def _shows(server: Server, sql: str, text: str) -> str:
    with server.session() as wire:
        answer = _in_transaction(wire, sql)
    return "" if text in answer.text else f"the answer is {answer.text[:300]}"


def _changes(server: Server, sql: str, query: str) -> str:
    with server.session() as wire:
        _taken(wire.ask("BEGIN"))
        before = _taken(wire.ask(query))
        answer = wire.ask(sql)
        if answer.error or answer.state != "T":
            return f"it failed, or ended the transaction: {answer.error}"
        after = _taken(wire.ask(query))
        wire.ask("ROLLBACK")
    return "" if before.rows != after.rows else f"nothing changes; the answer is {answer.text[:200]}"


def _writes(server: Server, sql: str, relation: str) -> str:
    return _changes(server, sql, f"SELECT count(*), sum(hashtextextended(t::text, 0)) FROM {relation} AS t")


def _sleeps(server: Server, sql: str, _: str) -> str:
    with server.session() as wire:
        answer = _in_transaction(wire, sql, "SET LOCAL statement_timeout = '60ms'")
    return "" if answer.code == "57014" else f"it ended before the timeout: {answer.text[:200]}"


def _notifies(server: Server, sql: str, channel: str) -> str:
    with server.session() as listener, server.session() as wire:
        _taken(listener.ask(f"LISTEN {channel}"))
        _taken(wire.ask(sql))
        return "" if channel in listener.ask("SELECT 1").notified else "no notification came"


def _ends_a_session(server: Server, sql: str, _: str) -> str:
    with server.session(name="victim") as victim, server.session() as wire:
        answer = _in_transaction(wire, sql)
        return "" if victim.ask("SELECT 1").state == "" else f"the session lives: {answer.text[:200]}"


def _ends_the_transaction(server: Server, sql: str, _: str) -> str:
    with server.session() as wire:
        _taken(wire.ask("BEGIN"))
        answer = wire.ask(sql)
    return "" if answer.state == "I" else f"the transaction goes on: {answer.text[:200]}"


def _outside(server: Server, sql: str, query: str) -> str:
    with server.own_database() as wire:
        before = _taken(wire.ask(query))
        answer = wire.ask(sql)
        wire.ask("ROLLBACK")
        after = _taken(wire.ask(query))
    return "" if before.rows != after.rows else f"nothing changes; the answer is {answer.text[:200]}"


def _runs(server: Server, sql: str, _: str) -> str:
    with server.session() as wire:
        answer = _in_transaction(wire, sql)
    return f"it fails: {answer.error}" if answer.error else ""


def _runs_outside(server: Server, sql: str, _: str) -> str:
    with server.own_database() as wire:
        answer = wire.ask(sql)
    return f"it fails: {answer.error}" if answer.error else ""


def _refuses(server: Server, sql: str, code: str) -> str:
    with server.session() as wire:
        answer = _in_transaction(wire, sql)
    return "" if answer.code == code else f"the server says {answer.code}: {answer.text[:200]}"


def _none(server: Server, sql: str, why: str) -> str:
    return "" if why else "say why"


_PROOFS: Final[Mapping[str, Callable[[Server, str, str], str]]] = {
    "reads": _reads,
    "shows": _shows,
    "writes": _writes,
    "changes": _changes,
    "setting": lambda server, sql, name: _changes(server, sql, f"SELECT current_setting('{name}', true)"),
    "defines": lambda server, sql, _: _changes(server, sql, DEFINITIONS),
    "locks": lambda server, sql, _: _changes(server, sql, LOCKS),
    "sleeps": _sleeps,
    "notifies": _notifies,
    "ends a session": _ends_a_session,
    "ends the transaction": _ends_the_transaction,
    "outside": _outside,
    "runs": _runs,
    "runs outside": _runs_outside,
    "refuses": _refuses,
    "none": _none,
}
