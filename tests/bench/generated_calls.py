"""Audit rows of agents' calls by the million, as ingest would have stored them, for a store to measure queries on.

A call is one of some thousand kinds (agent, statement, how it ended), whose texts are made once. Ids, times, numbers in the
statement, salts, commitments and leaves are each row's own, so that heads and proofs hold.
`tests/control/test_control_generated_store.py` compares the rows with what `check_batch` makes of the same calls. Pure.
"""

import random
from collections import Counter
from collections.abc import Sequence
from functools import cached_property
from typing import Final

import msgspec

from gatewayd.audit.events import EVENT_TYPE, SCHEMA_VERSION, Agent, Attempted, Decided, Event, Executed, Failed, Query, QueryId
from gatewayd.audit.ids import ulid_text, ulid_value
from gatewayd.audit.leaf import DETAIL_KEYS, commitment_of, leaf_of
from gatewayd.audit.rows import row_of
from gatewayd.control.audit import rollup, statement_days
from gatewayd.control.audit.batch import keys_of
from gatewayd.sql.text.redact import redacted

TABLES: Final = (
    "orders", "order_items", "customers", "products", "payments", "refunds", "shipments", "invoices", "carts",
    "coupons", "reviews", "sessions", "events", "tickets", "comments", "teams", "members", "plans", "subscriptions",
    "usage", "inventory", "warehouses", "suppliers", "prices", "taxes", "regions", "currencies", "campaigns", "emails",
    "leads", "contacts", "accounts", "ledger", "transfers", "audits", "jobs", "files", "tags", "notes", "payroll",
)  # fmt: skip
FORMS: Final = (
    ("SELECT", "SELECT id, status, updated_at FROM {table} WHERE id = {number}"),
    ("SELECT", "SELECT count(*) FROM {table} WHERE created_at > now() - make_interval(days => {number})"),
    ("SELECT", "SELECT status, count(*) AS n FROM {table} WHERE id > {number} GROUP BY status ORDER BY n DESC LIMIT 20"),
    ("SELECT", "SELECT * FROM {table} WHERE customer_id = {number} ORDER BY created_at DESC LIMIT 50"),
    ("SELECT", "SELECT a.id, b.name FROM {table} AS a JOIN {other} AS b ON b.id = a.{other}_id WHERE a.id = {number}"),
    ("SELECT", "SELECT date_trunc('day', created_at) AS day, sum(amount) FROM {table} WHERE id < {number} GROUP BY 1 ORDER BY 1"),
    ("SELECT", "SELECT max(updated_at) FROM {table} WHERE owner_id = {number}"),
    ("UPDATE", "UPDATE {table} SET status = 'done' WHERE id = {number}"),
    ("INSERT", "INSERT INTO {table} (id, status) VALUES ({number}, 'new')"),
    ("DELETE", "DELETE FROM {table} WHERE id = {number}"),
)
AGENTS: Final = (
    ("claude-code", "2.1", 40), ("cursor", "1.7", 20), ("support-bot", "5", 15), ("claude-ai", "1", 10),
    ("nightly-report", "0.3", 6), ("codex", "0.9", 5), ("analyst", "12", 3), ("migration-helper", "1.0", 1), (None, None, 1),
)  # fmt: skip
INTENTS: Final = ("look up an order for a customer", "check yesterday's numbers", "find out why the job failed", None)
POLICY: Final = "5e" * 32
VARIANTS: Final = 4
_NUMBER: Final = 424_242_424_242
"""Stands in a kind's texts where each call has a number of its own."""
_QUERY: Final = "01JDAAAAAAAAAAAAAAAAAAAAAA"
_ID: Final = "01JDBBBBBBBBBBBBBBBBBBBBBB"
_TS: Final = 1_499_999_999_999
CallPayload = Attempted | Decided | Executed | Failed
_encode = msgspec.json.Encoder(order="sorted").encode


class Statement(msgspec.Struct, frozen=True):
    """`text` has no constants; `tables` are qualified."""

    sql: str
    fingerprint: str
    text: str
    kind: str
    tables: tuple[str, ...]


class RowText(msgspec.Struct, frozen=True):
    """One row of a kind of call. `envelope` is cut where id, query_id and ts go, `details` where the number goes; `stored` and
    `keys` are columns as COPY takes them."""

    event_type: str
    envelope: tuple[bytes, bytes, bytes, bytes]
    details: tuple[bytes, ...]
    stored: str
    keys: str
    after_ms: int


class Kind(msgspec.Struct, frozen=True):
    """A kind of call: its rows, and what it counts as."""

    rows: tuple[RowText, ...]
    counted: tuple[rollup.Counted, ...]
    calls: tuple[statement_days.StatementCall, ...]


class Project:
    """What is called in one project, how often. `tokens`: one for each of AGENTS."""

    def __init__(self, project_id: str, tenant: str, databases: Sequence[str], tokens: Sequence[str], seed: int) -> None:
        self.project_id = project_id
        self.tenant = tenant
        self.databases = databases
        self.tokens = tokens
        self._dice = random.Random(seed)
        self._kinds: dict[tuple[int, int, int], Kind] = {}

    @cached_property
    def statements(self) -> list[Statement]:
        """The most frequent first: the n-th is asked 1/n as often as the first."""
        found = []
        for table in TABLES:
            for kind, form in FORMS:
                other = TABLES[(TABLES.index(table) + 1) % len(TABLES)]
                sql = form.format(table=table, other=other, number=_NUMBER)
                text = redacted(sql)
                assert text is not None
                tables = tuple(f"public.{each}" for each in (table, other) if each == table or "{other}" in form)
                found.append(Statement(sql, f"{self._dice.getrandbits(64):016x}", text, kind, tables))
        self._dice.shuffle(found)
        return found

    def choose(self, count: int, dice: random.Random) -> list[Kind]:
        """The kinds of `count` calls."""
        agents = dice.choices(range(len(AGENTS)), [weight for *_, weight in AGENTS], k=count)
        weights = [1 / (rank + 1) for rank in range(len(self.statements))]
        asked = dice.choices(range(len(weights)), weights, k=count)
        return [self._kind(agent, statement, dice.randrange(VARIANTS)) for agent, statement in zip(agents, asked, strict=True)]

    def _kind(self, agent: int, statement: int, variant: int) -> Kind:
        found = self._kinds.get((agent, statement, variant))
        if found is None:
            found = self._kinds[agent, statement, variant] = self._made(agent, self.statements[statement], variant)
        return found

    def _made(self, agent: int, statement: Statement, variant: int) -> Kind:
        name, version, _ = AGENTS[agent]
        database = self.databases[agent % len(self.databases)]
        query = Query(
            QueryId(_QUERY), database, Agent(name, version, self.tokens[agent]), INTENTS[(agent + variant) % len(INTENTS)],
            self.tenant,
        )  # fmt: skip
        payloads: list[tuple[int, CallPayload]] = [(0, Attempted(statement.sql, statement.fingerprint))]
        decided = Decided(
            "ALLOW", statement.kind, statement.tables, dialect="postgres", policy=POLICY, bundle=3,
            approved_by="Ada" if statement.kind in ("INSERT", "UPDATE") and variant == 0 else None,
        )  # fmt: skip
        rule = "table_access" if "public.payroll" in statement.tables else "block_dml" if statement.kind == "DELETE" else None
        took = 2 + variant * 7 + len(statement.text) % 11
        if rule is not None:
            reason = f"{statement.tables[0]} may not be touched so"
            payloads.append((1, msgspec.structs.replace(decided, decision="DENY", policy_rule=rule, reason=reason)))
        else:
            payloads.append((1, decided))
            if variant == 3 and len(statement.text) % 8 == 0:
                failed = Failed(took, 1, "42703", f"column of {statement.tables[0]} does not exist")
                payloads.append((1 + took, failed))
            else:
                payloads.append((1 + took, Executed(took, 1, rows_returned=1 + variant * 5, truncated=False)))
        return self._kind_of(query, statement, payloads)

    def _kind_of(self, query: Query, statement: Statement, payloads: list[tuple[int, CallPayload]]) -> Kind:
        rows: list[RowText] = []
        counted: list[rollup.Counted] = []
        calls: list[statement_days.StatementCall] = []
        for after_ms, payload in payloads:
            row, event_type = row_of(Event(query, _TS, payload)), EVENT_TYPE[type(payload)]
            fields = msgspec.json.decode(_encode(payload), type=dict[str, object])
            fields |= {key: "" for key in DETAIL_KEYS if key in fields}
            who = (query.database, query.agent.name)
            keys = keys_of(self.project_id, event_type, *who, query.agent.token_id, fields, statement.fingerprint)
            stored = (
                event_type, query.tenant_id, query.database, query.agent.name, query.agent.version,
                "t" if query.intent is not None else "f", _uuid(query.agent.token_id), _encode(fields).decode(), SCHEMA_VERSION,
            )  # fmt: skip
            rows.append(
                RowText(
                    event_type,
                    _cut(row.envelope(_ID), _ID, _QUERY, str(_TS)),
                    tuple(row.details.split(str(_NUMBER).encode())),
                    "\t".join(_copied(each) for each in stored),
                    "{" + ",".join(map(str, keys)) + "}",
                    after_ms,
                )
            )
            counted.append(rollup.counted(0, event_type, *who, query.agent.token_id, fields))
            call = statement_days.call_of(event_type, *who, _QUERY, 0, statement.fingerprint, fields)
            if call is not None:
                calls.append(call)
        return Kind(tuple(rows), tuple(counted), tuple(calls))


class Calls:
    """Rows of one gateway's file, one call after the other. `events` and `details` are text as COPY takes it."""

    def __init__(self, project: Project, gateway_id: str, instance: str, seed: int) -> None:
        self.project = project
        self._dice = random.Random(seed)
        self._origin = f"{_uuid(project.project_id)}\t{_uuid(gateway_id)}\t{_uuid(instance)}\t"
        self._last_id = 0
        self.seq = 0
        self.leaves: list[bytes] = []
        self.events: list[bytes] = []
        self.details: list[bytes] = []

    def add(self, times_ms: Sequence[int], into: "Counts") -> None:
        """Calls at these times, which rise."""
        for ts, kind in zip(times_ms, self.project.choose(len(times_ms), self._dice), strict=True):
            query = ts << 80 | self._dice.getrandbits(80)
            self._add(kind, ts, query)
            into.add(kind, ts, query)

    def take(self) -> tuple[bytes, bytes, list[bytes]]:
        """Events, details and leaves since the last time."""
        found = b"".join(self.events), b"".join(self.details), self.leaves
        self.events, self.details, self.leaves = [], [], []
        return found

    def _add(self, kind: Kind, began_ms: int, query: int) -> None:
        number, text = b"%d" % self._dice.getrandbits(24), ulid_text(query).encode()
        for row in kind.rows:
            ts = began_ms + row.after_ms
            id_ = self._last_id = max(self._last_id + 1, ts << 80 | self._dice.getrandbits(79))
            self.seq += 1
            details, salt = number.join(row.details), self._dice.randbytes(32)
            commitment = commitment_of(salt, details)
            head, middle, then, tail = row.envelope
            envelope = b"".join((head, ulid_text(id_).encode(), middle, text, then, b"%d" % ts, tail))
            self.leaves.append(leaf_of(self.seq, envelope, commitment))
            place = f"{self._origin}{self.seq}\t"
            event = f"{id_:032x}\t{query:032x}\t{ts}\t{ts + 2000}\t{row.stored}\t\\\\x{commitment.hex()}\tf\t{row.keys}\n"
            self.events.append((place + event).encode())
            self.details.append(b"%b%b\t\\\\x%b\n" % (place.encode(), details.replace(b"\\", b"\\\\"), salt.hex().encode()))


class Counts:
    """Rollups and counted statements of one project, as ingest would have added them up."""

    def __init__(self) -> None:
        self._hours: Counter[tuple[int, int]] = Counter()
        self._kinds: dict[int, Kind] = {}
        self._last: dict[tuple[int, int], tuple[int, int]] = {}

    def add(self, kind: Kind, ts: int, query: int) -> None:
        known = id(kind)
        self._kinds[known] = kind
        hour = ts // 3_600_000
        self._hours[hour, known] += 1
        self._last[hour // 24, known] = ts, query

    def rollup(self) -> rollup.Rollup:
        found: rollup.Rollup = {}
        for (hour, known), count in self._hours.items():
            for keys, added in self._kinds[known].counted:
                for _, _, name, value in keys:
                    total = found.setdefault((hour // 24, hour % 24, name, value), [0, 0, 0, 0, 0])
                    for place, each in enumerate(added):
                        total[place] += each * count
        return found

    def calls(self) -> dict[int, list[tuple[statement_days.StatementCall, int]]]:
        """By day: each kind of statement, agent and answer, with its number of calls."""
        counts: Counter[tuple[int, int]] = Counter()
        for (hour, known), count in self._hours.items():
            counts[hour // 24, known] += count
        found: dict[int, list[tuple[statement_days.StatementCall, int]]] = {}
        for (day, known), count in counts.items():
            ts, query = self._last[day, known]
            for call in self._kinds[known].calls:
                newest = msgspec.structs.replace(call, ts=ts, query_id=ulid_text(query))
                found.setdefault(day, []).append((newest, count))
        return found


def _cut(data: bytes, *places: str) -> tuple[bytes, bytes, bytes, bytes]:
    found = []
    for place in places:
        before, held, data = data.partition(place.encode())
        assert held, place
        found.append(before)
    first, second, third = found
    return first, second, third, data


def _uuid(ulid: str | None) -> str | None:
    return None if ulid is None else f"{ulid_value(ulid):032x}"


def _copied(value: object) -> str:
    return "\\N" if value is None else str(value).replace("\\", "\\\\")
