"""A control plane for tests: what it knows and how it answers, as plain code; and its listener, which can be told to go wrong.

It keeps everything in memory, and does with the pure formats what a control plane does: it enrols, issues bundles, tells
freshness, holds polls, takes audit batches under the tree's rules, and signs every answer.
"""

import json
import secrets
import ssl
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Final, Self

import msgspec

from gatewayd.audit.leaf import commitment_of, facts_of, leaf_of
from gatewayd.audit.rows import COLUMNS
from gatewayd.audit.tree import CompactRange, inclusion_proof
from gatewayd.keys.ed25519 import PublicKey, SigningKey
from gatewayd.keys.envelope import parse
from gatewayd.link.formats import requests as asked
from gatewayd.link.formats.answers import Ack, Conflict, Enrolment, Freshness, RefusalAnswer, RefusalReason, TreeHead, sign_answer
from gatewayd.link.formats.bundle import Bundle, bundle_sha256, sign_bundle
from gatewayd.link.formats.documents import DocumentRefused, digest, public_key, public_text
from gatewayd.link.formats.enrolment import EnrolmentToken, token_text
from gatewayd.link.formats.requests import EnrolBody, ReadRequest, read_body
from gatewayd.link.formats.rotation import RotateBody, next_key
from gatewayd.link.formats.rows import AuditBody, PushedRow
from gatewayd.link.formats.status import PollBody
from gatewayd.link.formats.trust import USES, Trust, WorkingKey, fingerprint_of, sign_trust

ISSUER: Final = "https://control.example.com"
YEAR_MS: Final = 365 * 24 * 3600 * 1000
Answer = tuple[int, bytes]


class Tree:
    """The rows of one instance as they are held: leaves in order, each row beside its seq."""

    def __init__(self, first_seq: int) -> None:
        self.first_seq = first_seq
        self.leaves: list[bytes] = []
        self.rows: dict[int, PushedRow] = {}

    def range(self) -> CompactRange:
        found = CompactRange()
        found.extend(self.leaves)
        return found

    def proof(self, index: int) -> list[bytes]:
        def subtree(level: int, place: int) -> bytes:
            part = CompactRange()
            part.extend(self.leaves[place << level : (place + 1) << level])
            return part.root()

        return inclusion_proof(index, len(self.leaves), subtree)


class Gateway:
    """What is known of one gateway. `statuses` are its polls' bodies in order."""

    def __init__(self, id_: str, key: PublicKey, project: str) -> None:
        self.id = id_
        self.key = key
        self.project = project
        self.before: asked.PollsBefore | None = None
        self.cut: RefusalReason | None = None
        self.statuses: list[PollBody] = []
        self.urls: tuple[str, ...] = ()
        self.trees: dict[str, Tree] = {}
        self.newest_instance = ""


class StandIn:
    """The control plane itself, without a network. Every method but `handle` is for tests."""

    def __init__(self) -> None:
        self.changed = threading.Condition()
        self.project = "01JPR0JECT0000000000000000"
        self.tenant = "01JTENANT00000000000000000"
        self.root, self.working = SigningKey.generate(), SigningKey.generate()
        self.trusts: list[bytes] = []
        self.trust_version = 0
        self.bundles: list[tuple[Bundle, bytes]] = []
        self.tokens: dict[str, str | None] = {}
        self.gateways: dict[str, Gateway] = {}
        self.clock_off_ms = 0
        self.refuse_status: str | None = None
        self.seen_bodies: list[bytes] = []
        self.holds = True
        self.handlers: dict[str, Callable[[Gateway, ReadRequest], Answer]] = {"audit": self._audit, "rotate": self._rotate}
        self.new_trust()

    # -- what a person does there

    def now_ms(self) -> int:
        return time.time_ns() // 1_000_000 + self.clock_off_ms

    def new_trust(self, *, working: SigningKey | None = None, root: SigningKey | None = None) -> None:
        """A next trust document; with `root` the root changes too."""
        with self.changed:
            self.working = working or self.working
            self.trust_version += 1
            keys = (WorkingKey(public_text(self.working.public), USES, self.now_ms() + YEAR_MS),)
            after = public_text(root.public) if root is not None else None
            trust = Trust(self.trust_version, ISSUER, public_text(self.root.public), keys, self.now_ms(), after)
            self.trusts.append(sign_trust(trust, self.root, root))
            self.root = root or self.root
            self.changed.notify_all()

    def token(self) -> str:
        secret = secrets.token_hex(16)
        self.tokens[secret] = None
        return token_text(EnrolmentToken(secret, fingerprint_of(self.root.public)))

    def publish(self, policy: str, *, version: int | None = None, signer: SigningKey | None = None, **more: Any) -> Bundle:
        with self.changed:
            number = version if version is not None else (self.bundles[-1][0].version + 1 if self.bundles else 1)
            whole = {"format": 1, "issuer": ISSUER, "project": self.project, "tenant_id": self.tenant, "issued_at": self.now_ms()}
            bundle = msgspec.convert({**whole, **more, "version": number, "policy": policy}, Bundle)
            self.bundles.append((bundle, sign_bundle(bundle, [signer or self.working])))
            self.changed.notify_all()
            return bundle

    def the_gateway(self) -> Gateway:
        (only,) = self.gateways.values()
        return only

    def wait_for(self, told: Callable[[PollBody], bool], within_s: float = 60) -> PollBody:
        """The first status, from now on or the last one, of which `told` is true."""
        with self.changed:
            deadline = time.monotonic() + within_s
            while True:
                for gateway in self.gateways.values():
                    if gateway.statuses and told(gateway.statuses[-1]):
                        return gateway.statuses[-1]
                left = deadline - time.monotonic()
                last = [gateway.statuses[-1:] for gateway in self.gateways.values()]
                assert left > 0, f"no such status came; the last one was {last}"
                self.changed.wait(left)

    def cut(self, reason: RefusalReason | None) -> None:
        with self.changed:
            self.the_gateway().cut = reason
            self.changed.notify_all()

    def seen_payloads(self) -> list[bytes]:
        """What gateways sent, out of its envelopes."""
        return [parse(data).payload for data in self.seen_bodies]

    # -- requests

    def handle(self, path: str, data: bytes) -> Answer:
        self.seen_bodies.append(data)
        try:
            if path == asked.PATHS["enrol"]:
                return self._enrol(data)
            gateway = self.gateways.get(asked.claimed(data).gateway)
            if gateway is None:
                return 404, b"{}"
            found = asked.read_request(data, gateway.key)
        except DocumentRefused:
            return 400, b'{"error":"bad request"}'
        if gateway.cut is not None:
            return self.refusal(gateway, found, gateway.cut)
        kind = found.request.kind
        if kind == "poll":
            return self._poll(gateway, found)
        if asked.is_off_clock(found.request, self.now_ms()):
            return self.refusal(gateway, found, "clock")
        handler = self.handlers.get(kind)
        return handler(gateway, found) if handler is not None else (404, b"{}")

    def refusal(self, gateway: Gateway, found: ReadRequest, reason: RefusalReason, message: str = "") -> Answer:
        return 403, sign_answer(RefusalAnswer(gateway.id, found.digest, reason, self.now_ms(), message), [self.working])

    def _enrol(self, data: bytes) -> Answer:
        body = read_body(read_body(parse(data).payload, asked.LinkRequest).body, EnrolBody)
        key = public_key(body.public_key)
        found = asked.read_request(data, key)
        with self.changed:
            holder = self.tokens.get(body.token, "unknown")
            if holder not in (None, key.key_id):  # the same identity may ask again: its answer was lost
                return 403, b"{}"
            self.tokens[body.token] = key.key_id
            known = next((gateway for gateway in self.gateways.values() if gateway.key == key), None)
            gateway = known or Gateway(f"01JGATEWAY{len(self.gateways):016d}", key, self.project)
            self.gateways[gateway.id] = gateway
        answer = Enrolment(gateway.id, self.project, ISSUER, self.tenant, found.digest, body.nonce, self.now_ms())
        return 200, b'{"enrolment":%b,"trust":%b}' % (sign_answer(answer, [self.working]), self.trusts[-1])

    def _rotate(self, gateway: Gateway, found: ReadRequest) -> Answer:
        body = read_body(found.request.body, RotateBody)
        with self.changed:
            try:
                gateway.key = next_key(body, gateway=gateway.id, signer=gateway.key)
            except DocumentRefused:
                return 400, b"{}"
        answer = Enrolment(gateway.id, self.project, ISSUER, self.tenant, found.digest, body.nonce, self.now_ms())
        return 200, sign_answer(answer, [self.working])

    def _poll(self, gateway: Gateway, found: ReadRequest) -> Answer:
        with self.changed:
            order = asked.order_of(found, gateway.before, self.now_ms())
            if order == "duplicated":
                gateway.cut = "duplicated"
                return self.refusal(gateway, found, "duplicated")
            if order in ("late", "clock"):
                return self.refusal(gateway, found, "late" if order == "late" else "clock")
            if order == "next":
                gateway.before = asked.after(found, gateway.before)
            body = read_body(found.request.body, PollBody)
            if self.refuse_status is not None:
                return self.refusal(gateway, found, "status", self.refuse_status)
            gateway.statuses.append(body)
            self.changed.notify_all()
            deadline = time.monotonic() + (body.wait_s if self.holds else 0)
            while not self._news(body) and gateway.cut is None and time.monotonic() < deadline:
                self.changed.wait(min(0.5, max(0.0, deadline - time.monotonic())))
            if gateway.cut is not None:
                return self.refusal(gateway, found, gateway.cut)
            newest, envelope = self.bundles[-1] if self.bundles else (None, b"")
            fresh = Freshness(
                gateway=gateway.id,
                project=self.project,
                version=newest.version if newest else 0,
                sha256=bundle_sha256(newest) if newest else "",
                ts=self.now_ms(),
                request=found.digest,
                run=found.request.run,
                n=found.request.n,
                head=self.head_of(gateway),
                public_urls=gateway.urls,
            )
            trusts = b",".join(self.trusts[body.trust_version :])
            answer = b'{"freshness":%b,"trust":[%b]' % (sign_answer(fresh, [self.working]), trusts)
            if self.bundles and self._has_newer(body):
                answer += b',"bundle":' + envelope
            return 200, answer + b"}"

    def _news(self, body: PollBody) -> bool:
        if len(self.trusts) > body.trust_version:
            return True
        return bool(self.bundles) and self._has_newer(body)

    def _has_newer(self, body: PollBody) -> bool:
        """A bundle that the gateway cannot enforce, or has refused, is not sent again at once: that would change nothing."""
        newest, envelope = self.bundles[-1]
        if (newest.version, bundle_sha256(newest)) == (body.version, body.sha256):
            return False
        problem = body.problem
        return problem is None or (problem.version != newest.version and problem.envelope != digest(envelope))

    def head_of(self, gateway: Gateway) -> TreeHead | None:
        tree = gateway.trees.get(gateway.newest_instance)
        return self._head(gateway.newest_instance, tree) if tree is not None else None

    # -- audit

    @staticmethod
    def _head(instance: str, tree: Tree) -> TreeHead:
        return TreeHead(instance, len(tree.leaves), tree.range().root().hex())

    def _audit(self, gateway: Gateway, found: ReadRequest) -> Answer:
        """Checks that the batch follows what is held and that its root comes out; a row that is held is compared by its leaf."""
        body = read_body(found.request.body, AuditBody)
        with self.changed:
            tree = gateway.trees.get(body.instance) or Tree(body.first_seq)
            index = body.from_seq - body.first_seq
            seqs = list(range(body.from_seq, body.to_seq + 1))
            if body.first_seq != tree.first_seq or index > len(tree.leaves) or [row.seq for row in body.rows] != seqs:
                return 422, b"{}"
            for row in body.rows:
                check_row(row)
            leaves = [bytes.fromhex(row.leaf) for row in body.rows]
            for place, leaf in enumerate(leaves, index):
                if place < len(tree.leaves) and tree.leaves[place] != leaf:
                    return 409, sign_answer(self._conflict(gateway, found, body, tree, place), [self.working])
            after = CompactRange()
            after.extend([*tree.leaves[:index], *leaves])
            if after.size != body.size:
                return 422, b"{}"
            if after.root().hex() != body.root:  # a row before these is another one
                if not index:
                    return 422, b"{}"
                place = min(len(tree.leaves), index + len(leaves)) - 1
                return 409, sign_answer(self._conflict(gateway, found, body, tree, place), [self.working])
            tree.leaves[index : index + len(leaves)] = leaves
            tree.rows.update((row.seq, row) for row in body.rows)
            gateway.trees[body.instance], gateway.newest_instance = tree, body.instance
            self.changed.notify_all()
            ack = Ack(gateway.id, body.instance, body.from_seq, body.to_seq, found.digest, body.size, body.root, self.now_ms())
            return 200, sign_answer(ack, [self.working])

    def _conflict(self, gateway: Gateway, found: ReadRequest, body: AuditBody, tree: Tree, place: int) -> Conflict:
        proof = tuple(each.hex() for each in tree.proof(place))
        return Conflict(
            gateway.id,
            body.instance,
            found.digest,
            body.first_seq + place,
            tree.leaves[place].hex(),
            proof,
            self._head(body.instance, tree),
            body.first_seq,
            self.now_ms(),
        )

    def wait_for_rows(self, holds: Callable[[list[PushedRow]], bool], within_s: float = 60) -> list[PushedRow]:
        """All rows that are held, over all instances in the order of their seqs, once this holds of them."""
        with self.changed:
            deadline = time.monotonic() + within_s
            while True:
                rows = self.held()
                if holds(rows):
                    return rows
                left = deadline - time.monotonic()
                assert left > 0, f"held: {[(row.seq, row.row['event_type']) for row in rows]}"
                self.changed.wait(left)

    def held(self) -> list[PushedRow]:
        trees = [tree for gateway in self.gateways.values() for tree in gateway.trees.values()]
        return [tree.rows[seq] for tree in sorted(trees, key=lambda tree: tree.first_seq) for seq in sorted(tree.rows)]


def check_row(row: PushedRow) -> None:
    """The leaf is made from what was sent, whatever was left out; a full row's commitment too."""
    columns = tuple(row.row[name] for name in COLUMNS)
    facts = facts_of(columns)
    if '"sql_fingerprint":""' not in str(row.row["payload"]):
        assert leaf_of(row.seq, facts.envelope, bytes.fromhex(row.commitment)).hex() == row.leaf
    if row.details == "full":
        assert row.salt is not None
        assert commitment_of(bytes.fromhex(row.salt), facts.details).hex() == row.commitment


Spoil = Callable[[str, Answer], Answer | None]
Handle = Callable[[str, bytes], Answer | None]


class Door:
    """What answers on 127.0.0.1. `spoil` may change an answer, or give None: the connection then ends without one."""

    def __init__(self, handle: Handle, port: int, tls: ssl.SSLContext | None = None) -> None:
        self.spoil: Spoil = lambda _path, answer: answer
        self.lose_requests = False
        self.bytes_in = self.bytes_out = self.requests = 0
        self.heads: list[bytes] = []
        listener = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                data = self.rfile.read(int(self.headers["content-length"]))
                listener.requests += 1
                listener.heads.append(f"{self.requestline}\n{self.headers}".encode())
                listener.bytes_in += len(data) + len(str(self.headers)) + len(self.requestline)
                if listener.lose_requests:
                    self.close_connection = True
                    return
                good = handle(self.path, data)
                answer = listener.spoil(self.path, good) if good is not None else None
                if answer is None:
                    self.close_connection = True
                    return
                status, body = answer
                self.send_response(status)
                self.send_header("content-length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)
                listener.bytes_out += len(body) + 100

            def log_message(self, *_: object) -> None:
                pass

        class Server(ThreadingHTTPServer):
            daemon_threads = True
            allow_reuse_address = True

            def handle_error(self, *_: object) -> None:
                pass  # the gateway went away: what it does then is under test

        self._server = Server(("127.0.0.1", port), Handler)
        if tls is not None:
            self._server.socket = tls.wrap_socket(self._server.socket, server_side=True)
        self.url = f"{'http' if tls is None else 'https'}://127.0.0.1:{self._server.server_port}"
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()


class Listener(Door):
    """The stand-in behind it."""

    def __init__(self, control: StandIn, port: int, tls: ssl.SSLContext | None = None) -> None:
        super().__init__(lambda path, data: control.handle(path, data), port, tls)
        self.control = control

    def __exit__(self, *_: object) -> None:
        super().__exit__()
        with self.control.changed:
            self.control.changed.notify_all()


@contextmanager
def listening(control: StandIn, port: int = 0) -> Iterator[Listener]:
    with Listener(control, port) as listener:
        yield listener


def told(lines: str) -> list[dict[str, Any]]:
    """The JSON lines of a log."""
    return [json.loads(line) for line in lines.splitlines() if line.startswith("{")]
