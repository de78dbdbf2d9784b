"""The statement with all that it may reach beyond its policy shielded: fences around views that have none of their own, and the
catalog shown in part. Pure.

The same splice as masks use: places found among the scanner's tokens, the new text parsed again, and its tree proved to be the
old one with exactly the expected queries in it.
"""

from gatewayd.catalog import Catalog
from gatewayd.masking.rewrite.source_rewrite import NotRewritten, Source, TooLarge, Wrapped, rewrite
from gatewayd.masking.rules.mentions import mentions_among, nodes
from gatewayd.policy.decide.decision import rules_of
from gatewayd.policy.file.model import Policy
from gatewayd.shields.catalog_source import source
from gatewayd.shields.conditions import Conditions
from gatewayd.shields.hidden import hidden_of
from gatewayd.shields.vouched_views import fence
from gatewayd.sql.builtins import filtered_functions
from gatewayd.sql.facts.statement import Statement
from gatewayd.sql.text.parse import Node, NotParsed, parse

Edits = tuple[tuple[int, int, int], ...]


def shielded(statement: Statement, policy: Policy, catalog: Catalog) -> tuple[Statement, Edits]:
    """What runs instead, and where it differs, as `rewrite()` tells it. Raises NotRewritten."""
    relations = rules_of(policy, catalog).relations
    views = {}
    forms = {}
    for use in statement.relations:
        schema, name = relations.locate(use)
        form = relations.form(use, statement)
        relation = catalog.relation(schema, name) if use.reads else None
        if form is not None and use.reads:
            if relation is None:
                raise NotRewritten(f"the catalog does not tell the columns of {schema}.{name}")
            forms[use.position] = relation, form
        elif relation is not None and not relation.is_barrier and relations.vouches(relation):
            views[use.position] = relation
    hides = policy.hides_something
    calls = any(filtered_functions.applies(each.name, hides=hides) for each in statement.functions)
    if not (views or forms or calls):
        return statement, ()
    try:
        tree = parse(statement.sql, whole=True)
    except NotParsed:
        raise TooLarge from None
    found = list(nodes(tree.node))
    named = mentions_among(found)
    conditions = Conditions(hidden_of(policy, catalog)) if forms or calls else None
    sources: dict[int, Source] = {position: fence(view, named) for position, view in views.items()}
    arguments: list[Wrapped] = []
    if conditions is not None:
        sources |= {position: source(relation, form, conditions, named) for position, (relation, form) in forms.items()}
        arguments = [_wrapped(body, conditions) for kind, body in found if kind == "FuncCall" and _is_filtered(body, hides=hides)]
    return rewrite(statement, tree, found, sources, arguments)


def _name(body: Node) -> str:
    name: str = body["funcname"][-1]["String"].get("sval", "")
    return name


def _is_filtered(body: Node, *, hides: bool) -> bool:
    schemas = [part["String"].get("sval", "") for part in body["funcname"][:-1]]
    return schemas in ([], ["pg_catalog"]) and filtered_functions.applies(_name(body), hides=hides)


def _wrapped(body: Node, conditions: Conditions) -> Wrapped:
    """The argument, NULL where it names something hidden. A subquery, so that what the agent wrote is evaluated once."""
    argument = filtered_functions.FUNCTIONS[_name(body)]
    opening, closing = ("CAST(", f" AS pg_catalog.{argument.type})") if argument.type else ("", "")
    condition = conditions.sql(argument.condition) if argument.condition else "false"
    return Wrapped(body, argument.place, f"(SELECT m.o FROM (SELECT {opening}", f"{closing} AS o) AS m WHERE {condition})")
