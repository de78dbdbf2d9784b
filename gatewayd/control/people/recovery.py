"""Recovery of an account by somebody at the machine: an owner without mail or password. Called by the command line."""

from typing import Final

from gatewayd.control.console import Console
from gatewayd.control.people.links import DROP_RECOVERY, new_link, store_link
from gatewayd.control.people.person import BY_EMAIL, MEMBERSHIPS, Membership, Person, email_key
from gatewayd.control.store.statement import Statement
from gatewayd.control.store.store import Transaction
from gatewayd.control.trail.record import Act, record

EVERYBODY: Final = Statement(
    "SELECT person_id, email, name, password, zone, created_ms, disabled_ms FROM people ORDER BY person_id LIMIT 10000"
)


async def everybody(console: Console) -> list[Person]:
    return await console.store.rows(Person, EVERYBODY)


async def recovery_link(console: Console, email: str) -> str | None:
    """The address at which a new password is set, or None when there is no such account. Links made before are void."""
    person = await console.store.row(Person, BY_EMAIL, email_key(email))
    if person is None:
        return None
    new = new_link(console, "recovery", person_id=person.person_id)
    event_id, salt, now_ms = console.new_id(), console.entropy(32), console.now_ms()

    async def work(tx: Transaction) -> None:
        await tx.run(DROP_RECOVERY, person.person_id)
        await store_link(tx, new)
        for membership in await tx.rows(Membership, MEMBERSHIPS, person.person_id):
            act = Act("recovery.begun_at_the_machine", None, target=person.person_id)
            await record(tx, membership.org_id, act, event_id, salt, now_ms)

    await console.store.transaction(work)
    return new.address(console.settings.public_url)
