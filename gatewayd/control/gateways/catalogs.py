"""Catalogs as gateways send them after a change, kept for simulation: by their digest, the newest of each database
as its head."""

from hashlib import sha256
from typing import Final

import msgspec

from gatewayd.control.console import Console
from gatewayd.control.gateways.reply import BAD, Reply
from gatewayd.control.store.directory import ProjectPlace
from gatewayd.control.store.statement import Statement
from gatewayd.control.store.store import Transaction
from gatewayd.link.formats.documents import DocumentRefused
from gatewayd.link.formats.requests import ReadRequest, read_body
from gatewayd.link.formats.verdicts import CatalogBody

FORMAT: Final = 1
_NAME: Final = 100

KEEP: Final = Statement(
    "INSERT INTO catalogs (project_id, database_name, sha256, gateway_id, format, body, taken_ms) VALUES ($1, $2, $3,"
    " $4, $5, $6, $7)"
    " ON CONFLICT (project_id, database_name, sha256) DO UPDATE SET taken_ms = excluded.taken_ms, gateway_id ="
    " excluded.gateway_id"
)
HEAD: Final = Statement(
    "INSERT INTO catalog_heads (project_id, database_name, sha256, changed_ms) VALUES ($1, $2, $3, $4)"
    " ON CONFLICT (project_id, database_name) DO UPDATE SET sha256 = excluded.sha256, changed_ms = excluded.changed_ms"
)
FORGET: Final = Statement("DELETE FROM catalogs WHERE project_id = $1 AND database_name = $2 AND sha256 <> $3 AND taken_ms < $4")
_KEPT_MS: Final = 30 * 24 * 3600 * 1000


async def receive(console: Console, place: ProjectPlace, found: ReadRequest) -> Reply:
    try:
        body = read_body(found.request.body, CatalogBody)
    except DocumentRefused:
        return BAD
    if not 0 < len(body.database) <= _NAME or "\0" in body.database:
        return BAD
    data = msgspec.json.encode(body.catalog, order="sorted")
    digest, now_ms = sha256(data).digest(), console.now_ms()

    async def work(tx: Transaction) -> None:
        await tx.run(KEEP, place.project_id, body.database, digest, place.id, FORMAT, data, now_ms)
        await tx.run(HEAD, place.project_id, body.database, digest, now_ms)
        await tx.run(FORGET, place.project_id, body.database, digest, now_ms - _KEPT_MS)

    await console.store.transaction(work)
    return Reply(200, b"{}")
