"""A gateway in a few lines: signs requests with the pure formats, and makes audit rows with their tree. For tests and a bench."""

import hashlib
import random
import time
from typing import Any

import httpx
import msgspec

from gatewayd.audit.heads import sign_head
from gatewayd.audit.ids import RisingIds, new_ulid
from gatewayd.audit.leaf import canonical, commitment_of, erased_payload, facts_of, leaf_of
from gatewayd.audit.rows import COLUMNS
from gatewayd.audit.tree import CompactRange
from gatewayd.keys.ed25519 import SigningKey
from gatewayd.link.formats.answers import EnrolAnswer, PollAnswer, read_enrolment
from gatewayd.link.formats.documents import public_text
from gatewayd.link.formats.enrolment import read_token
from gatewayd.link.formats.requests import PATHS, EnrolBody, LinkRequest, RequestKind, SentRequest, sign_request
from gatewayd.link.formats.rows import AuditBody, PushedRow
from gatewayd.link.formats.status import PollBody, Supports
from gatewayd.link.formats.trust import Trust, first_trust


def now_ms() -> int:
    return time.time_ns() // 1_000_000


class Rows:
    """An audit file: rows in order, with leaves and the tree of the present instance."""

    def __init__(self, seed: int = 1, tenant: str = "__self_host__") -> None:
        self.dice = random.Random(seed)
        self.tenant = tenant
        self.ids = RisingIds(self.dice.randbytes)
        self.instance = self.ulid()
        self.first_seq = 1
        self.rows: list[dict[str, Any]] = []
        self.salts: list[bytes] = []
        self.leaves: list[bytes] = []

    def ulid(self, ms: int | None = None) -> str:
        return new_ulid(ms or now_ms(), self.dice.randbytes)

    def add(self, event_type: str, payload: dict[str, Any], **columns: Any) -> dict[str, Any]:
        ts = columns.pop("ts", None) or now_ms()
        row: dict[str, Any] = {
            "id": self.ids.next(ts), "query_id": self.ulid(ts), "tenant_id": self.tenant, "database": "shop",
            "agent_name": "claude", "agent_version": "1", "agent_intent": "count", "mcp_token_id": None, "ts": ts,
            "event_type": event_type, "payload": canonical(payload).decode(), "schema_version": 3,
        }  # fmt: skip
        row |= columns
        self.rows.append(row)
        self.salts.append(self.dice.randbytes(32))
        facts = facts_of([row[name] for name in COLUMNS])
        self.leaves.append(leaf_of(len(self.rows), facts.envelope, commitment_of(self.salts[-1], facts.details)))
        return row

    def query(
        self,
        sql: str = "SELECT count(*) FROM orders WHERE id = 7",
        *,
        deny: str | None = None,
        table: str = "public.orders",
        bundle: int | None = None,
        **columns: Any,
    ) -> str:
        """The three rows of a query that ran, the two of one that was denied; its id."""
        ts = columns.pop("ts", None) or now_ms()
        query_id = columns.pop("query_id", None) or self.ulid(ts)
        shared = {"query_id": query_id, "ts": ts, **columns}
        fingerprint = hashlib.sha256(sql.encode()).hexdigest()[:16]
        self.add("ATTEMPTED", {"sql_raw": sql, "sql_fingerprint": fingerprint}, **shared)
        decided: dict[str, Any] = {"statement_type": "SELECT", "tables_touched": [table], "dialect": "postgres"}
        decided |= {"bundle": bundle} if bundle is not None else {}
        if deny is not None:
            self.add("DECIDED", {"decision": "DENY", "policy_rule": deny, "reason": f"no {table}", **decided}, **shared)
        else:
            self.add("DECIDED", {"decision": "ALLOW", **decided}, **shared)
            self.add("EXECUTED", {"exec_ms": 2, "overhead_ms": 1, "rows_returned": 3, "truncated": False}, **shared)
        return str(query_id)

    def batch(self, start: int = 0, end: int | None = None, **changes: Any) -> AuditBody:
        """Rows `start` to `end` of the file, counted from 0."""
        end = len(self.rows) if end is None else end
        tree = CompactRange()
        tree.extend(self.leaves[self.first_seq - 1 : end])
        rows = tuple(self.pushed(place) for place in range(start, end))
        body = AuditBody(self.instance, self.first_seq, start + 1, end, rows, tree.size, tree.root().hex())
        return msgspec.structs.replace(body, **changes)

    def pushed(self, place: int, details: str = "full", statement: str | None = None) -> PushedRow:
        row, salt = self.rows[place], self.salts[place]
        commitment = commitment_of(salt, facts_of([row[name] for name in COLUMNS]).details)
        leaf = self.leaves[place].hex()
        if details == "full":
            return PushedRow(place + 1, leaf, commitment.hex(), row, "full", salt.hex())
        bare = row | {"payload": erased_payload(row["payload"]), "agent_intent": row["agent_intent"] and ""}
        kind: Any = details
        return PushedRow(place + 1, leaf, commitment.hex(), bare, kind, None, statement)

    def note(self, identity: SigningKey, size: int | None = None) -> str:
        tree = CompactRange()
        tree.extend(self.leaves[self.first_seq - 1 :][:size])
        return sign_head(self.instance, tree.size, tree.root(), identity)


class TestGateway:
    """Speaks to a control plane at `url`. `trust` and `id` are there once it is enrolled."""

    __test__ = False

    def __init__(self, url: str, seed: int = 1) -> None:
        self.url = url
        self.identity = SigningKey(random.Random(seed).randbytes(32))
        self.rows = Rows(seed)
        self.run = self.rows.ulid()
        self.n = 0
        self.id = self.project = ""
        self.trust: Trust | None = None

    @property
    def issuer(self) -> str:
        return self.trust.issuer if self.trust is not None else ""

    def request(self, kind: RequestKind, body: Any, **changes: Any) -> SentRequest:
        self.n += 1
        raw = msgspec.Raw(msgspec.json.encode(body))
        request = LinkRequest(self.issuer, self.id, kind, self.run, self.n, now_ms(), raw)
        return sign_request(msgspec.structs.replace(request, **changes), self.identity)

    async def send(self, sent: SentRequest, path: str | None = None) -> httpx.Response:
        async with httpx.AsyncClient(trust_env=False, timeout=60) as client:
            return await client.post(self.url + (path or PATHS[sent.request.kind]), content=sent.data)

    async def ask(self, kind: RequestKind, body: Any, **changes: Any) -> tuple[httpx.Response, SentRequest]:
        sent = self.request(kind, body, **changes)
        return await self.send(sent), sent

    async def enrol(self, token: str) -> httpx.Response:
        read = read_token(token)
        body = EnrolBody(read.secret, public_text(self.identity.public), "nonce", "1.0")
        answer, sent = await self.ask("enrol", body, issuer="", gateway="")
        if answer.status_code == 200:
            found = msgspec.json.decode(answer.content, type=EnrolAnswer)
            self.trust = first_trust(bytes(found.trust), read.fingerprint)
            enrolment = read_enrolment(bytes(found.enrolment), self.trust, now_ms(), request=sent.digest, nonce="nonce")
            self.id, self.project = enrolment.gateway, enrolment.project
            self.rows.tenant = enrolment.tenant_id
        return answer

    def status(self, **changes: Any) -> PollBody:
        assert self.trust is not None
        body = PollBody("waiting", False, 0, "", 0, self.trust.version, Supports(1, (), "1.0"), 0)
        return msgspec.structs.replace(body, **changes)

    async def poll(self, **changes: Any) -> tuple[httpx.Response, SentRequest]:
        return await self.ask("poll", self.status(**changes))

    async def push(self, body: AuditBody | None = None) -> tuple[httpx.Response, SentRequest]:
        return await self.ask("audit", body or self.rows.batch())


def outside(answer: httpx.Response) -> PollAnswer:
    assert answer.status_code == 200, answer.text
    return msgspec.json.decode(answer.content, type=PollAnswer)
