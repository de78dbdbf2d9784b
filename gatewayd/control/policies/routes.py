"""Policies over the API: check a text, publish it, read what was published. `gatewayd publish` uses these routes from CI."""

from functools import partial
from typing import Final

import msgspec
import trio

from gatewayd.control.moment import moment
from gatewayd.control.policies.checked import CheckedPolicy, PolicyProblem, check_policy
from gatewayd.control.policies.flips import Flips, find_flips
from gatewayd.control.policies.issue import NEWEST_POLICY, PolicyVersion
from gatewayd.control.policies.proposals import Waiting, propose_in
from gatewayd.control.policies.publish import (
    NOTE_CHARACTERS,
    NotPublished,
    Publication,
    Published,
    publish_in,
    publishable,
    unknown_databases,
)
from gatewayd.control.projects.find import FIND as FIND_PROJECT
from gatewayd.control.projects.find import Project
from gatewayd.control.projects.terms import terms_of
from gatewayd.control.store.statement import Statement
from gatewayd.control.store.store import Transaction
from gatewayd.control.web.answer import Answer, Refusal, json
from gatewayd.control.web.call import Call
from gatewayd.control.web.route import Route

_PAGE: Final = 50
_NEWEST: Final = 2**31 - 1

VERSIONS: Final = Statement(
    "SELECT version, yaml, sha256, note, source, person_id, seconded_by, published_ms FROM policy_versions"
    " WHERE project_id = $1 AND version < $2 ORDER BY version DESC LIMIT $3"
)
ONE: Final = Statement(
    "SELECT version, yaml, sha256, note, source, person_id, seconded_by, published_ms FROM policy_versions"
    " WHERE project_id = $1 AND version = $2"
)


class PolicyText(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`flips`: also say which recorded statements it would answer otherwise; that takes seconds."""

    policy: str
    flips: bool = False


class PublishPolicy(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`based_on`: the version that was looked at; another one in force then is an answer 409, and nothing is published."""

    policy: str
    note: str
    based_on: int | None = None


class Checked(msgspec.Struct, frozen=True):
    """`problems` is empty for a policy that can be published. `flips` is there where it was asked for and nothing is wrong."""

    problems: list[PolicyProblem]
    databases: list[str] = []
    requires_features: list[str] = []
    flips: Flips | None = None


class VersionShown(msgspec.Struct, frozen=True):
    version: int
    sha256: str
    note: str
    source: str
    person: str | None
    published_ms: int
    policy: str | None = None


class Versions(msgspec.Struct, frozen=True):
    """`next`: the version to ask for older ones with `before`, None at the first."""

    versions: list[VersionShown]
    next: int | None


def shown(version: PolicyVersion, *, with_text: bool = False) -> VersionShown:
    return VersionShown(
        version.version, version.sha256.hex(), version.note, version.source, version.person_id, version.published_ms,
        version.yaml if with_text else None,
    )  # fmt: skip


async def checked(call: Call, text: str) -> CheckedPolicy:
    """The policy of a text that may be published in this project. Raises NotPublished with every problem.

    Reading a large text takes a second of CPU, so it is done in a thread.
    """
    found = await trio.to_thread.run_sync(partial(publishable, call.console, text), abandon_on_cancel=True)
    project_id = call.project.project_id
    unknown = await call.console.store.transaction(lambda tx: unknown_databases(tx, project_id, found))
    if unknown:
        names = ", ".join(unknown)
        raise NotPublished(
            (PolicyProblem(0, "databases", f"found {names}, which the project does not have; add it there first"),)
        )
    return found


async def flips_of(call: Call, found: CheckedPolicy) -> Flips:
    """What a checked policy would answer otherwise than was recorded; who may see the audit sees constants."""
    newest = await call.console.store.row(PolicyVersion, NEWEST_POLICY, call.project.project_id)
    in_force = await trio.to_thread.run_sync(check_policy, newest.yaml) if newest is not None else None
    policies = in_force.policies if isinstance(in_force, CheckedPolicy) else None
    may_see = call.may("project.audit")
    return await find_flips(call.console, call.project.project_id, found.policies, policies, constants=may_see)


async def publish(call: Call, wanted: PublishPolicy, *, source: str) -> Published | Waiting:
    """Publish a text in the name of the person of this call, or propose it where the project wants a second person. Raises
    NotPublished, or Refusal for the note and for 409."""
    if not wanted.note.strip() or len(wanted.note) > NOTE_CHARACTERS:
        raise Refusal(400, f"note: expected 1 to {NOTE_CHARACTERS} characters that say why")
    await checked(call, wanted.policy)
    now = moment(call.console)
    publication = Publication(
        text=wanted.policy, note=wanted.note.strip(), source=source, person_id=call.person.person_id,
        based_on=wanted.based_on,
    )  # fmt: skip
    place = (call.console, call.org_id, call.project.project_id)

    async def work(tx: Transaction) -> Published | Waiting:
        project = await tx.row(Project, FIND_PROJECT, call.org_id, call.project.project_id)
        if project is None:
            raise Refusal(404, "there is nothing here")
        is_second_asked = terms_of(project.settings).second_publisher
        return await (propose_in if is_second_asked else publish_in)(tx, *place, publication, now)

    return await call.console.store.transaction(work)


async def versions_of(call: Call, before: int | None = None) -> Versions:
    """The newest first, a page at a time."""
    found = await call.console.store.rows(PolicyVersion, VERSIONS, call.project.project_id, before or _NEWEST, _PAGE + 1)
    more = len(found) > _PAGE
    return Versions([shown(each) for each in found[:_PAGE]], found[_PAGE - 1].version if more else None)


async def one_version(call: Call, version: str) -> PolicyVersion:
    """Raises Refusal 404."""
    number = int(version) if version.isascii() and version.isdecimal() and len(version) < 10 else 0
    found = await call.console.store.row(PolicyVersion, ONE, call.project.project_id, number)
    if found is None:
        raise Refusal(404, "there is nothing here")
    return found


async def _check(call: Call) -> Answer:
    sent = call.sent(PolicyText)
    try:
        found = await checked(call, sent.policy)
    except NotPublished as refused:
        return json(Checked(list(refused.problems)))
    flips = await flips_of(call, found) if sent.flips else None
    return json(Checked([], list(found.names), list(found.requires_features), flips))


async def _publish(call: Call) -> Answer:
    try:
        done = await publish(call, call.sent(PublishPolicy), source="api")
        return json(done, 202 if isinstance(done, Waiting) else 201)
    except NotPublished as refused:
        return json(Checked(list(refused.problems)), 422)


async def _versions(call: Call) -> Answer:
    before = call.incoming.query.get("before", "")
    return json(await versions_of(call, int(before) if before.isascii() and before.isdecimal() and len(before) < 10 else None))


async def _version(call: Call) -> Answer:
    return json(shown(await one_version(call, call.args["version"]), with_text=True))


_ALL: Final = "/api/v1/projects/<project>/policies"
ROUTES: Final = (
    Route(
        "POST",
        "/api/v1/projects/<project>/check-policy",
        _check,
        door="key",
        right="project.policy",
        body=PolicyText,
        answer=Checked,
        summary="what is wrong with a policy",
    ),
    Route(
        "POST",
        _ALL,
        _publish,
        door="key",
        right="project.policy",
        body=PublishPolicy,
        answer=Published,
        summary="publish a policy; 202 with `proposal` and `url` where a second person has to confirm it",
    ),
    Route("GET", _ALL, _versions, door="key", right="project.read", answer=Versions, summary="published policies, newest first"),
    Route("GET", f"{_ALL}/<version>", _version, door="key", right="project.read", answer=VersionShown, summary="one policy"),
)
