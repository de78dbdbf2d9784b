"""Every organisation there is, for work that is done for all of them."""

from typing import Final

import msgspec

from gatewayd.control.projects.find import FIRST_ID
from gatewayd.control.store.statement import Statement
from gatewayd.control.store.store import Store

_MOST: Final = 500

ORGANISATIONS: Final = Statement("SELECT org_id FROM organisations WHERE org_id > $1 ORDER BY org_id LIMIT $2")


class _Organisation(msgspec.Struct, frozen=True):
    org_id: str


async def every_organisation(store: Store) -> list[str]:
    """Their ids, in order."""
    found: list[str] = []
    while rows := await store.rows(_Organisation, ORGANISATIONS, found[-1] if found else FIRST_ID, _MOST):
        found += [each.org_id for each in rows]
    return found
