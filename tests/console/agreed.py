"""What people agree on in the world's shop: groups and rules, a write that one of two has approved, a grant for a shape, and a
publication that waits for a second person."""

from gatewayd.control.approvals import reviewer_rows as rows
from gatewayd.control.console import Console
from gatewayd.control.policies import proposals
from gatewayd.control.policies.checked import first_policy
from gatewayd.control.policies.issue import NEWEST_POLICY, PolicyVersion, policy_digest
from gatewayd.control.projects.change import SET_TERMS
from gatewayd.control.projects.terms import ProjectTerms, terms_text
from tests.console.held import ask_for, decide
from tests.console.world import World
from tests.control.browser import Browser


async def agree(world: World, console: Console, grace: Browser) -> dict[str, str]:
    """Places of what was made."""
    store, shop = console.store, world.places["shop"]
    await store.run(SET_TERMS, world.org, shop, terms_text(ProjectTerms(shape_grants=True)))
    finance = await group(world, console, shop, "Finance", "grace", "ada")
    await store.run(rows.ADD_RULE, shop, console.new_id(), "*", "public.customers", finance, 2)
    empty = await group(world, console, shop, "Nobody yet")
    await store.run(rows.ADD_RULE, shop, console.new_id(), "reporting", "billing.*", empty, 1)
    given = await decide(grace, shop, world.places["together"], decision="approve", note="the address is right", rows_at_most="1")
    assert given == 303
    asked = await ask_for(console, world.org, shop, "UPDATE orders SET note = 'seen' WHERE id = 5", fingerprint="shape")
    form = {"rows_at_most": "3", "times": "20", "minutes": "600", "note": "marking orders as seen"}
    assert (await grace.post(f"/projects/{shop}/approvals/{asked}/grant", form)).status_code == 303
    return {"proposal": await propose(world, console, shop, "emmy")}


async def group(world: World, console: Console, project: str, name: str, *people: str) -> str:
    group_id = console.new_id()
    await console.store.run(rows.ADD_GROUP, project, group_id, name, name.casefold())
    for each in people:
        await console.store.run(rows.ADD_MEMBER, project, group_id, world.people[each])
    return group_id


async def propose(world: World, console: Console, project: str, who: str) -> str:
    """A publication that was proposed while the project's terms asked for a second person."""
    newest = await console.store.row(PolicyVersion, NEWEST_POLICY, project)
    assert newest is not None
    text, proposal = first_policy(("main", "reporting")).replace("default: read", "default: deny"), console.new_id()
    made = (text, policy_digest(text), "agents read nothing", "api", newest.version, world.people[who], console.now_ms())
    await console.store.run(proposals.ADD, project, proposal, *made)
    return proposal
