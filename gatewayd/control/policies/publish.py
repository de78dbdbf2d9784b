"""Publishing: a checked text becomes the project's next policy version, and at once its next bundle."""

from typing import Final

import msgspec

from gatewayd.control.console import Console
from gatewayd.control.moment import Moment
from gatewayd.control.policies.checked import SALT_MISSING, CheckedPolicy, PolicyProblem, check_policy
from gatewayd.control.policies.issue import NEWEST_POLICY, PolicyVersion, issue_bundle, policy_digest
from gatewayd.control.store.statement import Statement
from gatewayd.control.store.store import Transaction
from gatewayd.control.trail.record import Act
from gatewayd.control.web.answer import Refusal

NOTE_CHARACTERS: Final = 2000

ADD: Final = Statement(
    "INSERT INTO policy_versions"
    " (project_id, version, yaml, sha256, note, source, person_id, seconded_by, flips, published_ms)"
    " VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)"
)
DATABASES: Final = Statement("SELECT name FROM databases WHERE project_id = $1 ORDER BY name LIMIT 1000")


class Publication(msgspec.Struct, frozen=True, kw_only=True):
    """A text that somebody wants in force. `based_on`: the version that they looked at, None where they did not say."""

    text: str
    note: str
    source: str  # console, api, adopted, restored, created
    person_id: str | None
    seconded_by: str | None = None
    flips: str | None = None
    based_on: int | None = None


class Published(msgspec.Struct, frozen=True):
    version: int
    bundle: int


class NotPublished(Exception):
    """The text is refused: `problems` says where and why."""

    def __init__(self, problems: tuple[PolicyProblem, ...]) -> None:
        super().__init__("; ".join(problem.message for problem in problems))
        self.problems: Final = problems


def publishable(console: Console, text: str) -> CheckedPolicy:
    """The policy of a text that may be published here. Raises NotPublished. Slow for a large text: see `publish`."""
    checked = check_policy(text)
    if not isinstance(checked, CheckedPolicy):
        raise NotPublished(checked)
    if checked.has_masks and console.secrets.mask_salt_master is None:
        raise NotPublished((PolicyProblem(0, "column_masks", SALT_MISSING),))
    return checked


async def publish_in(
    tx: Transaction, console: Console, org_id: str, project_id: str, publication: Publication, moment: Moment
) -> Published:
    """Publish in a transaction; the text has passed `publishable`. Raises Refusal 409 where another version came first."""
    version = await version_before(tx, project_id, publication.based_on) + 1
    await tx.run(
        ADD, project_id, version, publication.text, policy_digest(publication.text), publication.note[:NOTE_CHARACTERS],
        publication.source, publication.person_id, publication.seconded_by, publication.flips, moment.now_ms,
    )  # fmt: skip
    bundle = await issue_bundle(
        tx, console, org_id, project_id, f"policy {version}", now_ms=moment.now_ms, issuer=moment.fresh_id
    )
    assert bundle is not None, "a policy was just published"
    details = {"note": publication.note[:NOTE_CHARACTERS]}
    if publication.seconded_by is not None:
        details["seconded_by"] = publication.seconded_by
    act = Act("policy.published", publication.person_id, project_id, str(version), details)
    await moment.record(tx, org_id, act)
    return Published(version, bundle)


async def version_before(tx: Transaction, project_id: str, based_on: int | None) -> int:
    """The version in force, 0 before the first. Raises Refusal 409 where it is another than the one that was looked at."""
    newest = await tx.row(PolicyVersion, NEWEST_POLICY, project_id)
    before = newest.version if newest else 0
    if based_on is not None and based_on != before:
        raise Refusal(409, f"version {before} was published meanwhile; look at it, then publish again")
    return before


async def unknown_databases(tx: Transaction, project_id: str, checked: CheckedPolicy) -> tuple[str, ...]:
    """Databases that the policy names and the project does not have."""
    known = {row.name for row in await tx.rows(_Name, DATABASES, project_id)}
    return tuple(name for name in checked.names if name not in known)


class _Name(msgspec.Struct, frozen=True):
    name: str
