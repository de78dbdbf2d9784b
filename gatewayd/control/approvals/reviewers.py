"""Which people a held write needs: rules by database and table, each of which asks for so many of a group. Pure.

Every rule that matches counts; where none does, anybody decides who may approve in the project. What is asked is found anew at
each decision, from the rules, groups and rights of that moment: a request keeps nothing of it but who has approved.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

import msgspec

from gatewayd.approvals.messages import GateAsk
from gatewayd.policy.decide.decision import TABLES

ALL: Final = 0
"""As `needed`: every member of the group."""


class ReviewerRule(msgspec.Struct, frozen=True):
    """`databases` and `tables` are patterns in which `*` stands for any characters; `needed` people of the group, or ALL."""

    rule_id: str
    databases: str
    tables: str
    group_id: str
    needed: int


class ReviewerGroup(msgspec.Struct, frozen=True):
    group_id: str
    name: str
    members: frozenset[str]


class Reviewers(msgspec.Struct, frozen=True):
    """Of one project, as they are now. `groups` by id."""

    groups: Mapping[str, ReviewerGroup]
    rules: Sequence[ReviewerRule]


class Vote(msgspec.Struct, frozen=True):
    """Somebody's approval, as it is kept while others are still asked."""

    person_id: str
    vote_id: str
    person_name: str
    note: str | None
    rows_at_most: int | None
    voted_ms: int


class Demand(msgspec.Struct, frozen=True):
    """One group of which people are needed. `approved` and `asked` are ids: who has approved, and whose word can still come."""

    group: str
    needed: int
    approved: tuple[str, ...]
    asked: tuple[str, ...]

    @property
    def is_met(self) -> bool:
        return len(self.approved) >= self.needed

    @property
    def can_be_met(self) -> bool:
        return len(self.approved) + len(self.asked) >= self.needed


class Asked(msgspec.Struct, frozen=True):
    """What a request needs to be approved now. Without demands: anybody who may approve it."""

    demands: tuple[Demand, ...]
    may: frozenset[str]
    """Whose word counts here."""

    def is_approved(self, by: Iterable[str]) -> bool:
        """Whether the demands are met; without any, whether somebody of those may approve."""
        return all(each.is_met for each in self.demands) and any(person in self.may for person in by)


def asked_of(ask: GateAsk, reviewers: Reviewers, may: Iterable[str], voted: Iterable[str]) -> Asked:
    """`may`: who may approve this request at all, without the one whose token asks where that person may not. Others count for
    nothing, whatever group they are in and whatever they said before."""
    eligible, said = frozenset(may), frozenset(voted)
    needed: dict[str, int] = {}
    for rule in reviewers.rules:
        if matches(rule, ask):
            people = reviewers.groups[rule.group_id].members & eligible
            wanted = len(people) if rule.needed == ALL else rule.needed
            # A group of which nobody may approve is not a group that has approved.
            needed[rule.group_id] = max(needed.get(rule.group_id, 1), wanted)
    demands = []
    for group_id, number in needed.items():
        group = reviewers.groups[group_id]
        people = group.members & eligible
        demands.append(Demand(group.name, number, tuple(sorted(people & said)), tuple(sorted(people - said))))
    within = frozenset[str]().union(*(each.approved + each.asked for each in demands)) if demands else eligible
    return Asked(tuple(demands), within)


def matches(rule: ReviewerRule, ask: GateAsk) -> bool:
    """Whether the rule is about this write. One whose tables are not known for sure is a matter of every rule of its database: a
    change of the schema (an index has a name of its own), a statement without tables, one with more of them than are told, a
    name without its schema."""
    if not fits(rule.databases, ask.database):
        return False
    tables = ask.tables_touched
    if ask.write_class == "schema_changes" or not tables or len(tables) >= TABLES or any("." not in each for each in tables):
        return True
    return any(fits(rule.tables, each) for each in tables)


def fits(pattern: str, name: str) -> bool:
    """Whether the whole name is as the pattern says. Takes a time that grows with the name, not with the number of stars."""
    first, *rest = pattern.split("*")
    if not rest:
        return name == pattern
    if not name.startswith(first):
        return False
    at, last = len(first), rest.pop()
    for part in rest:
        found = name.find(part, at)
        if found < 0:
            return False
        at = found + len(part)
    return len(name) - at >= len(last) and name.endswith(last)
