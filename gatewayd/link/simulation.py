"""Sends the catalogs of the served databases to the control plane, which simulates policies by them: after each change, in the
background, best effort."""

from collections.abc import Callable
from typing import Final

import trio

from gatewayd import log
from gatewayd.catalog import Catalog
from gatewayd.corridor.gateway import Gateway
from gatewayd.link.client import ControlPlane, RequestRefused, Unreachable
from gatewayd.link.formats.catalogs import catalog_body
from gatewayd.link.formats.trust import Trust

LOOK_S: Final = 5.0
AGAIN_S: Final = 60.0
WITHIN_S: Final = 60.0


async def send_catalogs(
    control: ControlPlane, gateway: Gateway, trust: Callable[[], Trust], definitions: Callable[[], bool]
) -> None:
    """Until cancelled. A control plane that takes none is asked again a minute later, for the newest catalog then."""
    sent: dict[str, tuple[Catalog, bool]] = {}
    while True:
        await trio.sleep(LOOK_S)
        for name, database in list(gateway.databases.items()):
            present = database.catalog, definitions()
            if not present[0].is_read or sent.get(name) == present:
                continue
            if await _send(control, trust(), name, *present):
                sent[name] = present
            else:
                await trio.sleep(AGAIN_S)


async def _send(control: ControlPlane, trust: Trust, name: str, catalog: Catalog, definitions: bool) -> bool:
    body = await trio.to_thread.run_sync(lambda: catalog_body(name, catalog, definitions=definitions))
    if body.withheld:
        log.warning(log.VIEWS_WITHHELD, database=name, count=body.withheld)
    sent = await trio.to_thread.run_sync(control.numbered, "catalog", body)
    try:
        answered = await control.send(sent, WITHIN_S, trust)
    except (Unreachable, RequestRefused):
        return False
    return answered.status == 200
