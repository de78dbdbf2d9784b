"""The catalog and the policies that texts are judged by here, and what a call does with a text before the database sees it."""

from typing import Final

from gatewayd.catalog import Catalog, Column, Relation
from gatewayd.judge import LIGHT_CHARACTERS, is_light
from gatewayd.masking.plan import Rewritten, Withheld
from gatewayd.policy.decide.decision import decide
from gatewayd.policy.decide.outcomes import Allowed, Held
from gatewayd.policy.file.model import Policy
from gatewayd.postgres.execute import wrap
from gatewayd.postgres.execute.evidence import evidence
from gatewayd.postgres.execute.output_names import distinct, output_names
from gatewayd.shields.whole_plan import plan
from gatewayd.sql.facts.analyze import analyze
from gatewayd.sql.facts.statement import Statement
from tests.masking.masking_rig import policy_of

SALT: Final = b"salt of sixteen bytes"
POLICY_TEXT: Final = (
    "table_access: {default: read, tables: {notes: read_write, hidden: deny, vouched: read}}\n"
    "column_masks: {users: {ssn: full-redact, email: consistent-hash}, wide: {w1: full-redact, w7: partial}}\n"
    "guardrails: {block_unqualified_dml: false, block_dml: false, block_ddl: false}\n"
)
POLICY: Final = policy_of(POLICY_TEXT)
COLUMNS: Final = {
    "users": "id name ssn email city",
    "notes": "id body",
    "hidden": "id secret",
    "wide": " ".join(f"w{n}" for n in range(1_000)),
    "parent": "id name",
    "child": "id name",
}
VIEWS: Final = {
    "masked_view": "SELECT users.id, users.ssn FROM public.users",
    "vouched": "SELECT hidden.id FROM public.hidden",
}


def _catalog() -> Catalog:
    oids = {name: 20_000 + number for number, name in enumerate((*COLUMNS, *VIEWS))}
    relations = {}
    for name, columns in COLUMNS.items():
        relations["public", name] = Relation(
            oids[name],
            "public",
            name,
            "table",
            tuple(Column(each, "text") for each in columns.split()),
            children=(oids["child"],) if name == "parent" else (),
            parents=(oids["parent"],) if name == "child" else (),
        )
    for name, definition in VIEWS.items():
        base = "users" if "users" in definition else "hidden"
        columns = "id ssn" if base == "users" else "id"
        relations["public", name] = Relation(
            oids[name],
            "public",
            name,
            "view",
            tuple(Column(each, "text") for each in columns.split()),
            reads=(oids[base],),
            definition=definition,
        )
    return Catalog(1, "cost", 160_000, relations=relations)


CATALOG: Final = _catalog()


def is_on_loop(sql: str, policy: Policy = POLICY) -> bool:
    """Whether the loop itself judges it."""
    return len(sql) <= LIGHT_CHARACTERS and is_light(analyze(sql), policy, CATALOG)


def judged(sql: str, *, rewriting: bool, policy: Policy = POLICY) -> str:
    """What became of it, in a few words. Everything that a call does between the text and the pool."""
    statement = analyze(sql)
    decision = decide(statement, policy, CATALOG)
    if isinstance(decision, Held):
        decision = decision.allowed
    if not isinstance(decision, Allowed):
        return decision.policy_rule
    planned = plan(decision, policy, CATALOG, salt=SALT, rewriting=rewriting)
    if isinstance(planned, Withheld):
        return f"withheld: {planned.stage}"
    evidence(decision.statement, policy, CATALOG)
    try:
        _wrapped(planned.statement if isinstance(planned, Rewritten) else decision.statement, policy)
    except wrap.NotWrapped:
        return f"not wrapped {decision.statement.form}"
    return f"allowed {decision.statement.form}"


def _wrapped(statement: Statement, policy: Policy) -> None:
    names = output_names(statement, CATALOG)
    shown = wrap.Shown(distinct(names)) if names is not None else wrap.AS_THEY_ARE
    match statement.form:
        case "query":
            wrap.wrap_query(statement, policy.limits, shown)
        case "dml" if statement.kind == "SELECT" and statement.splice is not None:
            wrap.wrap_below_with(statement, policy.limits, shown)
        case "dml" if statement.returns_rows and statement.kind != "SELECT":
            wrap.wrap_returning(statement, policy.limits, shown)
