"""Groups of reviewers, their rules, and the approvals of requests that wait for more, in the store."""

from typing import Final

import msgspec

from gatewayd.approvals.messages import GateAsk
from gatewayd.control.approvals.reviewers import Asked, ReviewerGroup, ReviewerRule, Reviewers, Vote, asked_of
from gatewayd.control.people.may import who_may
from gatewayd.control.projects.find import Project
from gatewayd.control.projects.terms import ProjectTerms
from gatewayd.control.store.statement import Statement
from gatewayd.control.store.store import Transaction

GROUPS_MOST: Final = 50
MEMBERS_MOST: Final = 50
RULES_MOST: Final = 100

GROUPS: Final = Statement("SELECT group_id, name FROM reviewer_groups WHERE project_id = $1 ORDER BY name_key LIMIT $2")
MEMBERS: Final = Statement(
    "SELECT group_id, person_id FROM reviewer_group_members WHERE project_id = $1 ORDER BY group_id, person_id LIMIT $2"
)
RULES: Final = Statement(
    "SELECT rule_id, databases, tables, group_id, needed FROM reviewer_rules WHERE project_id = $1 ORDER BY rule_id LIMIT $2"
)
ADD_GROUP: Final = Statement("INSERT INTO reviewer_groups (project_id, group_id, name, name_key) VALUES ($1, $2, $3, $4)")
DROP_GROUP: Final = Statement("DELETE FROM reviewer_groups WHERE project_id = $1 AND group_id = $2")
ADD_MEMBER: Final = Statement(
    "INSERT INTO reviewer_group_members (project_id, group_id, person_id) VALUES ($1, $2, $3)"
    " ON CONFLICT (project_id, group_id, person_id) DO NOTHING"
)
DROP_MEMBER: Final = Statement("DELETE FROM reviewer_group_members WHERE project_id = $1 AND group_id = $2 AND person_id = $3")
DROP_MEMBERS: Final = Statement("DELETE FROM reviewer_group_members WHERE project_id = $1 AND group_id = $2")
DROP_PERSON: Final = Statement("DELETE FROM reviewer_group_members WHERE project_id = $1 AND person_id = $2")
ADD_RULE: Final = Statement(
    "INSERT INTO reviewer_rules (project_id, rule_id, databases, tables, group_id, needed) VALUES ($1, $2, $3, $4, $5, $6)"
)
DROP_RULE: Final = Statement("DELETE FROM reviewer_rules WHERE project_id = $1 AND rule_id = $2")
VOTES: Final = Statement(
    "SELECT person_id, vote_id, person_name, note, rows_at_most, voted_ms FROM approval_votes"
    " WHERE project_id = $1 AND approval_id = $2 ORDER BY voted_ms, person_id"
)
# Only while it is open, and never from the one who may not: what DECIDE has in its WHERE, for one approval of several.
VOTE: Final = Statement(
    "INSERT INTO approval_votes (project_id, approval_id, person_id, person_name, note, rows_at_most, voted_ms, vote_id)"
    " SELECT $1, approval_id, $3, $4, $5, $6, $7, $9 FROM approvals WHERE project_id = $1 AND approval_id = $2"
    " AND state = 'pending' AND expires_ms > $7 AND ($8 OR requester IS NULL OR requester <> $3)"
    " ON CONFLICT (project_id, approval_id, person_id) DO UPDATE SET person_name = excluded.person_name, note = excluded.note,"
    " rows_at_most = excluded.rows_at_most, voted_ms = excluded.voted_ms, vote_id = excluded.vote_id"
)


class _Group(msgspec.Struct, frozen=True):
    group_id: str
    name: str


class _Member(msgspec.Struct, frozen=True):
    group_id: str
    person_id: str


async def reviewers_of(tx: Transaction, project_id: str) -> Reviewers:
    groups = await tx.rows(_Group, GROUPS, project_id, GROUPS_MOST)
    members = await tx.rows(_Member, MEMBERS, project_id, GROUPS_MOST * MEMBERS_MOST)
    within = {
        each.group_id: ReviewerGroup(
            each.group_id, each.name, frozenset(one.person_id for one in members if one.group_id == each.group_id)
        )
        for each in groups
    }
    return Reviewers(within, await tx.rows(ReviewerRule, RULES, project_id, RULES_MOST))


class Stand(msgspec.Struct, frozen=True):
    """How far a request is: what it needs now, who has approved, and the names of all whose word could count."""

    asked: Asked
    votes: tuple[Vote, ...]
    names: dict[str, str]

    @property
    def counting(self) -> tuple[Vote, ...]:
        """The approvals that count now: not those of who has left, may approve no more, or is in no group that is asked."""
        return tuple(each for each in self.votes if each.person_id in self.asked.may)

    @property
    def is_approved(self) -> bool:
        return self.asked.is_approved(each.person_id for each in self.counting)


async def stand_of(
    tx: Transaction, project: Project, terms: ProjectTerms, approval_id: str, ask: GateAsk, requester: str | None
) -> Stand:
    """As of this transaction. `requester`: the person whose token asks, who does not count where the terms say so."""
    votes = await tx.rows(Vote, VOTES, project.project_id, approval_id)
    names, asked = await _asked(tx, project, terms, ask, requester, [each.person_id for each in votes])
    return Stand(asked, tuple(votes), names)


async def alone_approves(
    tx: Transaction, project: Project, terms: ProjectTerms, ask: GateAsk, requester: str | None, person_id: str
) -> bool:
    """Whether this person's word would be enough for this write now."""
    _, asked = await _asked(tx, project, terms, ask, requester, [person_id])
    return asked.is_approved([person_id])


async def _asked(
    tx: Transaction, project: Project, terms: ProjectTerms, ask: GateAsk, requester: str | None, voted: list[str]
) -> tuple[dict[str, str], Asked]:
    reviewers = await reviewers_of(tx, project.project_id)
    members = frozenset[str]().union(*(group.members for group in reviewers.groups.values()))
    names = await who_may(tx, project, "project.approve", members | set(voted))
    may = names.keys() - ({requester} if requester is not None and not terms.self_approval else set())
    return names, asked_of(ask, reviewers, may, voted)
