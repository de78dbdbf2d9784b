"""What people did, for scripts and for download: lists, the signed head, the proof of one act, exports that prove themselves."""

import csv
import io
from datetime import UTC, datetime
from typing import Final

import msgspec

from gatewayd.control.store.statement import Statement
from gatewayd.control.trail.heads import head_of, inclusion, leaves
from gatewayd.control.trail.proof import ExportedHead, act_proof, exported, sign_head, verifier_of
from gatewayd.control.trail.record import NEWEST, Event
from gatewayd.control.trust.signing import signers
from gatewayd.control.web.answer import Answer, Refusal, json
from gatewayd.control.web.call import Call
from gatewayd.control.web.csv_file import cell
from gatewayd.control.web.route import Route

_ROWS: Final = 100
_ALL: Final = "/api/v1/trail"
_COLUMNS: Final = ("seq", "time", "action", "person", "project", "target", "details")
_EMPTY: Final = "nothing was done yet"

EVENTS: Final = Statement(
    "SELECT seq, event_id, ts_ms, action, person_id, project_id, envelope, details, salt, leaf FROM org_events"
    " WHERE org_id = $1 AND seq > $2 AND seq <= $3 ORDER BY seq LIMIT $4"
)


class Act(msgspec.Struct, frozen=True):
    """`details` None: erased."""

    seq: int
    ts_ms: int
    action: str
    person: str | None
    project: str | None
    details: dict[str, str | int] | None


class Acts(msgspec.Struct, frozen=True):
    """The newest first. `next`: the `before` of the page after this one, None at the end."""

    acts: list[Act]
    next: int | None


class ProofOfAct(msgspec.Struct, frozen=True):
    """For `gatewayd control verify-trail`. `key` is what the head is signed with, `name+hash+base64`."""

    text: str
    key: str


async def _list(call: Call) -> Answer:
    events = await call.console.store.rows(Event, NEWEST, call.org_id, number(call, "before", 1 << 62), _ROWS + 1)
    acts = [
        Act(
            each.seq, each.ts_ms, each.action, each.person_id, each.project_id,
            msgspec.json.decode(each.details, type=dict[str, str | int]) if each.details is not None else None,
        )
        for each in events[:_ROWS]
    ]  # fmt: skip
    return json(Acts(acts, acts[-1].seq if len(events) > _ROWS else None))


async def _head(call: Call) -> Answer:
    return json(await signed_head(call))


async def signed_head(call: Call, size: int | None = None) -> ExportedHead:
    """Over the first `size` acts, else all. Raises Refusal."""
    head = await head_of(call.console.store, call.org_id, size)
    if head is None:
        raise Refusal(404, _EMPTY)
    key = signers(call.console.secrets.signing)[0]
    return ExportedHead(sign_head(head, key), str(verifier_of(key)))


async def _proof(call: Call) -> Answer:
    text = call.args["seq"]
    seq = int(text) if text.isascii() and text.isdigit() and len(text) < 18 else 0
    found = await call.console.store.rows(Event, EVENTS, call.org_id, seq - 1, seq, 1)
    head = await head_of(call.console.store, call.org_id)
    if not found or head is None:
        raise Refusal(404, "there is nothing here")
    key = signers(call.console.secrets.signing)[0]
    hashes = inclusion(await leaves(call.console.store, call.org_id, head.size), seq - 1)
    return json(ProofOfAct(act_proof(exported(found[0]), hashes, sign_head(head, key)), str(verifier_of(key))))


async def export(call: Call) -> Answer:
    """A page of an export, the oldest first; `Link: <…>; rel="next"` leads to the next one. The last of JSON lines is the signed
    head over all acts up to `until`, which the first page settles, so that pages put together prove themselves."""
    kind = call.incoming.query.get("format", "csv")
    if kind not in ("csv", "lines"):
        raise Refusal(400, "format: expected csv or lines")
    newest = await head_of(call.console.store, call.org_id)
    size = newest.size if newest is not None else 0
    after, until = number(call, "after", 0), min(number(call, "until", size), size)
    events = await call.console.store.rows(Event, EVENTS, call.org_id, after, until, call.console.bounds.trail_rows)
    is_last = not events or events[-1].seq >= until
    if kind == "csv":
        body, content_type = _csv(events, with_head=after == 0), "text/csv; charset=utf-8"
    else:
        body = b"".join(msgspec.json.encode(exported(each)) + b"\n" for each in events)
        body += msgspec.json.encode(await signed_head(call, until)) + b"\n" if is_last else b""
        content_type = "application/jsonl"
    answer = Answer(200, body, content_type, (("Content-Disposition", f'attachment; filename="trail.{kind}"'),))
    if is_last:
        return answer
    following = f"{call.incoming.path}?format={kind}&after={events[-1].seq}&until={until}"
    return answer.with_header("Link", f'<{following}>; rel="next"')


def number(call: Call, name: str, otherwise: int) -> int:
    """A number in the address; what is none is `otherwise`."""
    text = call.incoming.query.get(name, "")
    return int(text) if text.isascii() and text.isdigit() and len(text) < 18 else otherwise


def _csv(events: list[Event], *, with_head: bool) -> bytes:
    text = io.StringIO()
    writer = csv.writer(text, quoting=csv.QUOTE_ALL, lineterminator="\r\n")
    if with_head:
        writer.writerow(_COLUMNS)
    for each in events:
        target = msgspec.json.decode(each.envelope, type=dict[str, str | int]).get("target")
        when = datetime.fromtimestamp(each.ts_ms / 1000, UTC).isoformat(timespec="milliseconds")
        row = (each.seq, when, each.action, each.person_id, each.project_id, target, each.details)
        writer.writerow([cell(value) for value in row])
    return text.getvalue().encode()


ROUTES: Final = (
    Route("GET", _ALL, _list, door="key", right="org.audit", answer=Acts, summary="what people did, newest first; `before`"),
    Route("GET", f"{_ALL}/head", _head, door="key", right="org.audit", answer=ExportedHead, summary="its signed head of now"),
    Route(
        "GET", f"{_ALL}/acts/<seq>/proof", _proof, door="key", right="org.audit", answer=ProofOfAct,
        summary="one act with its proof, for `gatewayd control verify-trail`",
    ),
    Route("GET", f"{_ALL}/export", export, door="key", right="org.audit", summary="CSV, or JSON lines with the head"),
    Route("GET", "/trail/export", export, door="person", right="org.audit"),
)  # fmt: skip
