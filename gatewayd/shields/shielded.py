"""The statement with all that it may reach beyond its policy shielded: fences around views that have none of their own. Pure.

The same splice as masks use: places found among the scanner's tokens, the new text parsed again, and its tree proved to be the
old one with exactly the expected queries in it.
"""

from gatewayd.catalog import Catalog
from gatewayd.masking.rewrite.source_rewrite import Source, TooLarge, rewrite
from gatewayd.masking.rules.mentions import mentions_among, nodes
from gatewayd.policy.decide.decision import rules_of
from gatewayd.policy.file.model import Policy
from gatewayd.shields.vouched_views import fence
from gatewayd.sql.facts.statement import Statement
from gatewayd.sql.text.parse import NotParsed, parse

Edits = tuple[tuple[int, int, int], ...]


def shielded(statement: Statement, policy: Policy, catalog: Catalog) -> tuple[Statement, Edits]:
    """What runs instead, and where it differs, as `rewrite()` tells it. Raises NotRewritten."""
    relations = rules_of(policy, catalog).relations
    views = {}
    for use in statement.relations:
        view = catalog.relation(*relations.locate(use)) if use.reads else None
        if view is not None and not view.is_barrier and relations.vouches(view):
            views[use.position] = view
    if not views:
        return statement, ()
    try:
        tree = parse(statement.sql, whole=True)
    except NotParsed:
        raise TooLarge from None
    found = list(nodes(tree.node))
    named = mentions_among(found)
    sources: dict[int, Source] = {position: fence(view, named) for position, view in views.items()}
    return rewrite(statement, tree, found, sources)
