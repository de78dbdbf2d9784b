"""The catalogs that gateways have sent, as the values that decisions are made with.

The last few are kept: reading one of thousands of tables takes a second of CPU, so it is done in a thread.
"""

from collections import OrderedDict
from typing import Final

import msgspec
import trio

from gatewayd.catalog import Catalog
from gatewayd.control.store.statement import Statement
from gatewayd.control.store.store import Store
from gatewayd.link.formats.catalogs import catalog_of
from gatewayd.link.formats.documents import DocumentRefused
from gatewayd.link.formats.verdicts import CatalogBody

KEPT: Final = 8

HEADS: Final = Statement(
    "SELECT database_name, sha256, changed_ms FROM catalog_heads WHERE project_id = $1 ORDER BY database_name LIMIT 1000"
)
BODY: Final = Statement("SELECT body FROM catalogs WHERE project_id = $1 AND database_name = $2 AND sha256 = $3")


class CatalogHead(msgspec.Struct, frozen=True):
    """`changed_ms`: when a gateway last sent it."""

    database_name: str
    sha256: bytes
    changed_ms: int


class _Body(msgspec.Struct, frozen=True):
    body: bytes


class HeldCatalogs:
    """Of one replica, by the digest of what was sent."""

    def __init__(self) -> None:
        self._kept: OrderedDict[bytes, Catalog] = OrderedDict()

    async def find(self, store: Store, project_id: str, head: CatalogHead) -> Catalog | None:
        """None where it is not held any more, or has no shape that this version reads."""
        kept = self._kept.get(head.sha256)
        if kept is None:
            row = await store.row(_Body, BODY, project_id, head.database_name, head.sha256)
            if row is None:
                return None
            try:
                kept = await trio.to_thread.run_sync(_read, head.database_name, row.body)
            except (DocumentRefused, msgspec.MsgspecError):
                return None
            self._kept[head.sha256] = kept
            while len(self._kept) > KEPT:
                self._kept.popitem(last=False)
        self._kept.move_to_end(head.sha256)
        return kept


async def catalog_heads(store: Store, project_id: str) -> dict[str, CatalogHead]:
    """By the name of the database."""
    return {each.database_name: each for each in await store.rows(CatalogHead, HEADS, project_id)}


def _read(database: str, body: bytes) -> Catalog:
    return catalog_of(CatalogBody(database, 0, 0, msgspec.json.decode(body)))
