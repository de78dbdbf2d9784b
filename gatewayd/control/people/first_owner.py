"""The first owner: while there is nobody, each start makes a link that works once. Only the newest is valid."""

from gatewayd.control.console import Console
from gatewayd.control.people.links import DROP_FIRST_OWNER, new_link, store_link
from gatewayd.control.people.person import ANYBODY
from gatewayd.control.store.store import Transaction


async def first_owner_link(console: Console) -> str | None:
    """The address to open, or None when somebody is there already."""
    new = new_link(console, "first_owner", role="owner")

    async def work(tx: Transaction) -> bool:
        if await tx.value(ANYBODY) is not None:
            return False
        await tx.run(DROP_FIRST_OWNER)
        await store_link(tx, new)
        return True

    return new.address(console.settings.public_url) if await console.store.transaction(work) else None
