"""Containment over the link: a gateway says that a grant has read a source, and asks before a contained action whether it has.

The answer to `mark` is the acknowledgement without which rows of the source do not leave the gateway.
"""

from typing import Final

from gatewayd.audit.ids import is_ulid
from gatewayd.control.console import Console
from gatewayd.control.gateways.reply import BAD, Reply
from gatewayd.control.store.directory import ProjectPlace
from gatewayd.control.store.store import Transaction
from gatewayd.control.taint.grants import OF_GRANT, Taint, grant_key, mark
from gatewayd.control.trust.signing import signers
from gatewayd.link.formats.documents import DocumentRefused
from gatewayd.link.formats.requests import ReadRequest, read_body
from gatewayd.link.formats.verdicts import TaintAnswer, TaintBody, sign_taint

_TEXT: Final = 300


async def answer(console: Console, place: ProjectPlace, found: ReadRequest) -> Reply:
    try:
        body = read_body(found.request.body, TaintBody)
    except DocumentRefused:
        return BAD
    if (body.grant and not is_ulid(body.grant)) or not is_ulid(body.query_id) or "\0" in body.database + body.source:
        return BAD
    if body.action == "mark" and not (body.source and body.database and ":" not in body.database):
        return BAD
    key, event_id, now_ms = grant_key(body.grant, place.id), console.new_id(), console.now_ms()
    shown = body.grant or f"gateway {place.id}"
    source = f"{body.database[:_TEXT]}:{body.source[:_TEXT]}"
    new = Taint(key, shown, source, body.query_id, place.id, now_ms)

    async def work(tx: Transaction) -> Taint | None:
        if body.action == "mark":
            await mark(tx, place.project_id, new, event_id)
        return await tx.row(Taint, OF_GRANT, place.project_id, key)

    held = await console.store.transaction(work)
    database, _, table = held.source.partition(":") if held is not None else ("", "", "")
    told = TaintAnswer(
        gateway=place.id, request=found.digest, query_id=body.query_id, grant=body.grant, tainted=held is not None, ts=now_ms,
        source=table if held else None, database=database if held else None, since=held.tainted_ms if held else None,
    )  # fmt: skip
    return Reply(200, sign_taint(told, signers(console.secrets.signing)))
