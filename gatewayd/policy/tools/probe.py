"""Dry-run: what would be decided, without running it (decision 7). Request, verdicts and answer.

Deciding is not here: it may wait for the catalog. A probe is a table and an action; its representative statement is decided like
any other. It names its rows, so that the guardrail on a missing WHERE never speaks.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final, Literal

import msgspec

from gatewayd.policy.decide.outcomes import Allowed, Decision, Denied, Held
from gatewayd.policy.file.model import TableKey
from gatewayd.policy.file.name_forms import MASKED_TABLE
from gatewayd.sql.facts.statement import Statement, Unparsed

PROBES: Final = 250
TABLES: Final = 50
STATEMENTS: Final = {
    "select": "SELECT FROM {}",
    "insert": "INSERT INTO {} DEFAULT VALUES",
    "update": "UPDATE {} SET probe = NULL WHERE false",
    "delete": "DELETE FROM {} WHERE false",
}


class Probe(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`table` is `name` (of schema public) or `schema.name`, as in the policy file."""

    table: str
    action: Literal["select", "insert", "update", "delete"]


class DryRun(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The request. Exactly one of `probes` and `sql` is set."""

    database: str
    probes: tuple[Probe, ...] | msgspec.UnsetType = msgspec.UNSET
    sql: str | msgspec.UnsetType = msgspec.UNSET
    tainted: bool = False
    """As for an agent that has read a source of foreign text (docs/policy.md, Containment)."""


class ProbeVerdict(msgspec.Struct, frozen=True):
    """What would be decided about one probe or statement."""

    decision: Literal["allow", "deny"]
    reason: str
    matched_rule: str
    tables: tuple[str, ...]
    action: str  # of a probe its action, of a statement its kind in lower case, "unknown" where it does not parse
    probe: Probe | msgspec.UnsetType = msgspec.UNSET
    sql: str | msgspec.UnsetType = msgspec.UNSET


class DryRunAnswer(msgspec.Struct, frozen=True):
    """The body of the answer."""

    verdicts: tuple[ProbeVerdict, ...]
    truncated: bool
    total_tables: int
    policy_hash: str


class DryRunRefused(Exception):
    """The request is not one. `str()` names the field, what was found and what is expected."""


def read_dry_run(body: bytes, databases: Mapping[str, object]) -> DryRun:
    """The request of a JSON body, checked whole. `databases` are the configured ones by name. Raises DryRunRefused."""
    try:
        request = msgspec.json.decode(body, type=DryRun)
    except msgspec.ValidationError as error:
        raise DryRunRefused(_first_line(error)) from None
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise DryRunRefused(f"body: found malformed JSON ({_first_line(error)}); expected an object") from None
    if request.database not in databases:
        raise DryRunRefused("database: no database of that name is configured")
    if (request.probes is msgspec.UNSET) == (request.sql is msgspec.UNSET):
        found = "neither" if request.sql is msgspec.UNSET else "both"
        raise DryRunRefused(f"probes, sql: found {found}; expected exactly one of the two")
    if not isinstance(request.probes, msgspec.UnsetType):
        if len(request.probes) > PROBES:
            raise DryRunRefused(f"probes: found {len(request.probes)}; expected at most {PROBES}")
        for number, probe in enumerate(request.probes):
            try:
                MASKED_TABLE.parse(probe.table)
            except ValueError as error:
                raise DryRunRefused(f"probes[{number}].table: {error}") from None
    return request


def texts(request: DryRun) -> tuple[str, ...]:
    """What there is to decide for a checked request: its statement, or one for each probe of the first 50 distinct tables."""
    if isinstance(request.sql, str):
        return (request.sql,)
    return tuple(_text(probe) for probe in _evaluated(request.probes or ()))


def answer(request: DryRun, decided: Sequence[tuple[Statement | Unparsed, Decision]], policy_hash: str) -> DryRunAnswer:
    """The verdicts on a checked request; `decided` are the facts of its `texts` and the decisions on them, in their order."""
    if isinstance(request.sql, str):
        [(facts, decision)] = decided
        verdict = msgspec.structs.replace(_verdict(facts, decision), sql=request.sql)
        return DryRunAnswer((verdict,), truncated=False, total_tables=len(verdict.tables), policy_hash=policy_hash)
    probes = request.probes or ()
    verdicts = tuple(
        msgspec.structs.replace(_verdict(facts, decision), probe=probe, action=probe.action)
        for probe, (facts, decision) in zip(_evaluated(probes), decided, strict=True)
    )
    total = len(set(map(_table, probes)))
    return DryRunAnswer(verdicts, total > TABLES, total, policy_hash)


def _evaluated(probes: tuple[Probe, ...]) -> tuple[Probe, ...]:
    tables: dict[TableKey, None] = dict.fromkeys(map(_table, probes))
    evaluated = set(list(tables)[:TABLES])
    return tuple(probe for probe in probes if _table(probe) in evaluated)


def _text(probe: Probe) -> str:
    target = ".".join('"' + part.replace('"', '""') + '"' for part in _table(probe))
    return STATEMENTS[probe.action].format(target)


def _verdict(facts: Statement | Unparsed, decision: Decision) -> ProbeVerdict:
    action = facts.kind.lower() if isinstance(facts, Statement) else "unknown"
    match decision:
        case Denied():
            return ProbeVerdict("deny", decision.reason, decision.matched_rule or decision.policy_rule, decision.tables, action)
        case Allowed():
            return ProbeVerdict("allow", f"permitted by {decision.matched_rule}", decision.matched_rule, decision.tables, action)
        case Held():
            rule = decision.allowed.matched_rule
            waits = f"permitted by {rule}, but each call waits for a human's approval (approvals.{decision.write_class})"
            return ProbeVerdict("allow", waits, rule, decision.allowed.tables, action)


def _table(probe: Probe) -> TableKey:
    key: Any = MASKED_TABLE.parse(probe.table)  # a form's value has its own type; this form gives TableKey
    schema, name = key
    return str(schema), str(name)


def _first_line(error: Exception) -> str:
    text = str(error).splitlines()[0] if str(error) else "no JSON"
    return text[:300].lower()[:1] + text[1:300]
