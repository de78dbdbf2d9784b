"""Publications that wait for a second person, where a project's terms say `second_publisher` (docs/control-plane.md, A second
person).

A proposal is one text that never changes. Somebody else than the person that proposed it confirms it, who may publish here. It is
published only on top of the version that it was made against, and while the one who proposed it may still publish, too.
"""

from typing import Final, Literal

import msgspec

from gatewayd.control.console import Console
from gatewayd.control.moment import Moment
from gatewayd.control.people.may import who_may
from gatewayd.control.policies.issue import policy_digest
from gatewayd.control.policies.publish import NOTE_CHARACTERS, Publication, Published, publish_in, version_before
from gatewayd.control.projects.find import FIND as FIND_PROJECT
from gatewayd.control.projects.find import Project
from gatewayd.control.store.statement import Statement
from gatewayd.control.store.store import Transaction
from gatewayd.control.trail.record import Act
from gatewayd.control.web.answer import Refusal

_NOTHING: Final = "there is nothing here"
LISTED: Final = 50

ADD: Final = Statement(
    "INSERT INTO policy_proposals (project_id, proposal_id, yaml, sha256, note, source, based_on, person_id, made_ms)"
    " VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)"
)
ONE: Final = Statement(
    "SELECT proposal_id, yaml, sha256, note, source, based_on, person_id, made_ms, state, decided_by, decided_ms, decided_note"
    " FROM policy_proposals WHERE project_id = $1 AND proposal_id = $2"
)
OPEN: Final = Statement(
    "SELECT proposal_id, yaml, sha256, note, source, based_on, person_id, made_ms, state, decided_by, decided_ms, decided_note"
    " FROM policy_proposals WHERE project_id = $1 AND state = 'open' ORDER BY proposal_id LIMIT $2"
)
OPEN_OF: Final = Statement(
    "SELECT proposal_id, yaml, sha256, note, source, based_on, person_id, made_ms, state, decided_by, decided_ms, decided_note"
    " FROM policy_proposals WHERE project_id = $1 AND state = 'open' AND person_id = $2 ORDER BY proposal_id LIMIT $3"
)
DECIDE: Final = Statement(
    "UPDATE policy_proposals SET state = $3, decided_by = $4, decided_ms = $5, decided_note = $6"
    " WHERE project_id = $1 AND proposal_id = $2 AND state = 'open' AND sha256 = $7 AND ($3 <> 'published' OR person_id <> $4)"
)


class Proposal(msgspec.Struct, frozen=True):
    proposal_id: str
    yaml: str
    sha256: bytes
    note: str
    source: str
    based_on: int
    person_id: str
    made_ms: int
    state: Literal["open", "published", "refused", "withdrawn"]
    decided_by: str | None
    decided_ms: int | None
    decided_note: str | None

    @property
    def is_open(self) -> bool:
        return self.state == "open"


class Waiting(msgspec.Struct, frozen=True):
    """Nothing is published yet: `proposal` waits for a second person, who looks at it at `url`."""

    proposal: str
    url: str


async def propose_in(
    tx: Transaction, console: Console, org_id: str, project_id: str, publication: Publication, now: Moment
) -> Waiting:
    """Keep a checked text for a second person. The one who proposes has one open proposal: an earlier one with another text, note
    or base is withdrawn, so that nobody confirms what was replaced. Raises Refusal 409 where another version came first."""
    assert publication.person_id is not None, "somebody proposes"
    based_on = await version_before(tx, project_id, publication.based_on)
    digest, note = policy_digest(publication.text), publication.note[:NOTE_CHARACTERS]
    for mine in await tx.rows(Proposal, OPEN_OF, project_id, publication.person_id, LISTED):
        if (mine.sha256, mine.note, mine.based_on) == (digest, note, based_on):
            return _waiting(console, project_id, mine.proposal_id)
        await tx.run(DECIDE, project_id, mine.proposal_id, "withdrawn", mine.person_id, now.now_ms, None, mine.sha256)
    await tx.run(
        ADD, project_id, now.fresh_id, publication.text, digest, note, publication.source, based_on, publication.person_id,
        now.now_ms,
    )  # fmt: skip
    details = {"note": note, "sha256": digest.hex(), "source": publication.source}
    await now.record(tx, org_id, Act("policy.proposed", publication.person_id, project_id, now.fresh_id, details))
    return _waiting(console, project_id, now.fresh_id)


class Decision(msgspec.Struct, frozen=True):
    """What a person of a session says to a proposal. `sha256`: of the text that they were shown."""

    person_id: str
    confirms: bool
    note: str
    sha256: bytes


async def decide_in(
    tx: Transaction,
    console: Console,
    org_id: str,
    project_id: str,
    proposal: Proposal,
    decision: Decision,
    moments: tuple[Moment, Moment],
) -> Published | None:
    """Publish the proposal, or refuse it (its own person: withdraw it); None then. The text was checked again by the caller.

    One conditional UPDATE decides, so of two people at once one has decided. Raises Refusal: 403 for one's own, 409 for one that
    is over, was shown with another text, has a base that is not in force any more, or an author who may publish no more.
    """
    is_own = proposal.person_id == decision.person_id
    if decision.confirms and is_own:
        raise Refusal(403, "you proposed this yourself, or your API key did; somebody else confirms it")
    state = "published" if decision.confirms else "withdrawn" if is_own else "refused"
    first, second = moments
    note = decision.note.strip()[:NOTE_CHARACTERS] or None
    decided = (state, decision.person_id, first.now_ms, note, decision.sha256)
    if not await tx.run(DECIDE, project_id, proposal.proposal_id, *decided):
        raise Refusal(409, "this is over, or is another text than the one that you were shown; look at it again")
    details = {"note": note or "", "proposed_by": proposal.person_id, "sha256": proposal.sha256.hex()}
    act = f"policy.{'confirmed' if decision.confirms else state}"
    await first.record(tx, org_id, Act(act, decision.person_id, project_id, proposal.proposal_id, details))
    if not decision.confirms:
        return None
    project = await tx.row(Project, FIND_PROJECT, org_id, project_id)
    people = {proposal.person_id, decision.person_id}
    if project is None or set(await who_may(tx, project, "project.policy", people)) != people:
        raise Refusal(409, "who proposed this may not publish here any more; propose it yourself, and somebody else confirms it")
    publication = Publication(
        text=proposal.yaml, note=proposal.note, source=proposal.source, person_id=proposal.person_id,
        seconded_by=decision.person_id, based_on=proposal.based_on,
    )  # fmt: skip
    return await publish_in(tx, console, org_id, project_id, publication, second)


def _waiting(console: Console, project_id: str, proposal_id: str) -> Waiting:
    return Waiting(proposal_id, f"{console.settings.public_url}/projects/{project_id}/policy/proposals/{proposal_id}")
