"""What one policy hides of one catalog snapshot, by object number, for conditions that the server evaluates. Pure."""

from collections.abc import Iterable
from typing import Final, TypeVar

from gatewayd.catalog import FIRST_USER_OID, Catalog, Relation
from gatewayd.masking.rules.mask_rules import MaskRules
from gatewayd.masking.rules.masked_views import covering
from gatewayd.policy.decide.decision import rules_of
from gatewayd.policy.file.model import Policy

V = TypeVar("V")
_LONG_ENOUGH: Final = 9
"""Of so many members on PostgreSQL looks a list up by hash."""


class Hidden:
    """Worked out once per policy and snapshot. A relation is hidden where reading it, with the children that are read with it, is
    denied; its indexes and sequences with it. One that is newer than the snapshot counts as hidden until the catalog is read."""

    def __init__(self, policy: Policy, catalog: Catalog) -> None:
        relations = rules_of(policy, catalog).relations
        own = [each for each in catalog.relations.values() if each.oid >= FIRST_USER_OID]
        hidden = {each.oid for each in own if each.kind != "index" and relations.hides(each)} if policy.hides_something else set()
        masks = MaskRules(policy, catalog) if policy.column_masks else None
        masked = {each.oid: names for each in own if (names := _masked(masks, each))} if masks is not None else {}
        indexes = [each for each in own if each.kind == "index"]
        hidden_indexes = {each.oid for each in indexes if each.belongs_to is None or each.belongs_to in hidden}
        self.hidden_indexes = tuple(sorted(hidden_indexes))
        self.masked_tables = tuple(sorted(masked))
        # What their size and their counters say follows the lengths of masked values.
        of_masked = {each.oid for each in indexes if each.belongs_to in masked}
        self.unmeasured = tuple(sorted({*masked, *of_masked, *(oid for each in own if each.oid in masked for oid in each.toast)}))
        self.masked_columns = tuple(sorted(f"{oid}.{name}" for oid, names in masked.items() for name in names))
        away = hidden | hidden_indexes | {oid for each in own if each.oid in hidden for oid in each.toast}
        seen = {each.oid for each in own} - away
        # Of what is shown: else it would tell whether something hidden was made later.
        self.newest = max((oid for each in own if each.oid in seen for oid in (each.oid, *each.toast)), default=0)
        # The shorter list: both say the same of all that the snapshot knows, and neither shows what it does not know.
        self.lists_seen = len(seen) < len(away)
        self.listed = tuple(sorted(seen if self.lists_seen else away))


def hidden_of(policy: Policy, catalog: Catalog) -> Hidden:
    """What the policy hides in this catalog, computed once for each pair."""
    return catalog.worked_out(Hidden, policy)


def _masked(rules: MaskRules, relation: Relation) -> Iterable[str]:
    """The masked columns; all of them where a view uses some in ways that no mask over its columns can cover."""
    if relation.kind in ("index", "sequence", "composite type"):
        return ()
    masks = covering(rules, relation)
    return [column.name for column in relation.columns] if masks is None else masks


def oids(numbers: Iterable[int]) -> str:
    """The oids as an SQL constant of type oid[]."""
    return f"'{{{','.join(map(str, _hashed(list(numbers))))}}}'::pg_catalog.oid[]"


def texts(values: Iterable[str]) -> str:
    """As an array of text."""
    members = ", ".join("'" + each.replace("'", "''") + "'" for each in _hashed(list(values)))
    return f"ARRAY[{members}]::pg_catalog.text[]"


def _hashed(values: list[V]) -> list[V]:
    """Long enough to be looked up by hash."""
    return [*values, *[values[-1]] * (_LONG_ENOUGH - len(values))] if values else values
