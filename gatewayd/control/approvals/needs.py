"""What a request needs to be approved, for people and scripts: whom it asks, who has approved, and whether it can be approved."""

import msgspec

from gatewayd.control.approvals.reviewer_rows import Stand, stand_of
from gatewayd.control.approvals.shown import ShownRequest
from gatewayd.control.console import Console
from gatewayd.control.projects.find import Project
from gatewayd.control.projects.terms import terms_of


class ShownDemand(msgspec.Struct, frozen=True):
    """So many of a group. `approved` and `asked` are names. `can_be_met` false: too few are left, and nobody can approve it."""

    group: str
    needed: int
    approved: list[str]
    asked: list[str]
    is_met: bool
    can_be_met: bool


class ShownVote(msgspec.Struct, frozen=True):
    """An approval while others are asked. `counts` false: this person may not approve it any more."""

    person_id: str
    person: str
    note: str | None
    rows_at_most: int | None
    voted_ms: int
    counts: bool


class Needs(msgspec.Struct, frozen=True):
    """Without demands, anybody who may approve in the project approves it alone."""

    demands: list[ShownDemand]
    votes: list[ShownVote]

    @property
    def can_be_met(self) -> bool:
        return all(each.can_be_met for each in self.demands)

    @property
    def people(self) -> int:
        """How many approvals it takes at most."""
        return sum(each.needed for each in self.demands) or 1


async def stand(console: Console, project: Project, request: ShownRequest) -> Stand:
    """How far a request is now."""
    asked = (terms_of(project.settings), request.id, request.ask, request.requester_id)
    return await console.store.transaction(lambda tx: stand_of(tx, project, *asked))


def needs_of(found: Stand) -> Needs:
    names = found.names
    return Needs(
        [
            ShownDemand(
                each.group, each.needed, [names[one] for one in each.approved], [names[one] for one in each.asked], each.is_met,
                each.can_be_met,
            )
            for each in found.asked.demands
        ],
        [
            ShownVote(
                each.person_id, each.person_name, each.note, each.rows_at_most, each.voted_ms, each.person_id in found.asked.may
            )
            for each in found.votes
        ],
    )  # fmt: skip
