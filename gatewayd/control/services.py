"""What runs beside the listener for as long as the control plane does. To add a service, give it a line in SERVICES.

A service is `async def name(console: Console) -> None`, that never returns. One that only one replica may run uses `run_leased`.
"""

from collections.abc import Awaitable, Callable
from typing import Final

from gatewayd.control.approvals.sweep import sweep_approvals
from gatewayd.control.audit.retention import forget_audit
from gatewayd.control.console import Console
from gatewayd.control.engines.service import run_engines
from gatewayd.control.gateways.silence import watch_silence
from gatewayd.control.notifications.send import forget_deliveries, send_notifications
from gatewayd.control.people.sweep import sweep_people
from gatewayd.control.proxy.write_use import write_token_use
from gatewayd.control.store.days import make_days
from gatewayd.control.store.lease import run_leased
from gatewayd.control.tokens.budgets import hold_budgets
from gatewayd.control.trail.heads import keep_heads

Service = Callable[[Console], Awaitable[None]]


async def audit_days(console: Console) -> None:
    """Keeps the audit's tables of the next days made."""

    async def make(_fence: int) -> None:
        await make_days(console.store, console.now_ms())

    await run_leased(console.store, "audit days", console.replica, make)


async def wake_polls(console: Console) -> None:
    """Wakes the polls of gateways that are held here when there is something new for them."""
    await console.link.run(console.store)


async def wake_pages(console: Console) -> None:
    """Tells live pages that are served here when what they show has changed."""
    await console.live.run(console.store)


async def wake_approvals(console: Console) -> None:
    """Wakes those who wait here for a decision or for a change of a list."""
    await console.approvals.run(console.store, console.now_ms)


SERVICES: Final[tuple[Service, ...]] = (
    audit_days,
    sweep_people,
    wake_polls,
    wake_pages,
    wake_approvals,
    sweep_approvals,
    forget_audit,
    run_engines,
    write_token_use,
    hold_budgets,
    keep_heads,
    send_notifications,
    forget_deliveries,
    watch_silence,
)
