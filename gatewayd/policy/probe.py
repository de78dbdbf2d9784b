"""Dry-run: what would be decided, without a database (spec: POST /admin/dry-run, contract 7). Request, verdicts and answer.

A probe is a table and an action; its representative statement is decided like any other. It names its rows, so that the guardrail
on a missing WHERE never speaks.
"""

from collections.abc import Mapping
from typing import Any, Final, Literal

import msgspec

from gatewayd.catalog import Catalog
from gatewayd.policy.decide import decide
from gatewayd.policy.decision import Allowed, Denied, Held
from gatewayd.policy.model import Policy, TableKey
from gatewayd.policy.names import MASKED_TABLE
from gatewayd.sql.analyze import analyze
from gatewayd.sql.statement import Statement

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


class Verdict(msgspec.Struct, frozen=True):
    decision: Literal["allow", "deny"]
    reason: str
    matched_rule: str
    tables: tuple[str, ...]
    action: str  # of a probe its action, of a statement its kind in lower case, "unknown" where it does not parse
    probe: Probe | msgspec.UnsetType = msgspec.UNSET
    sql: str | msgspec.UnsetType = msgspec.UNSET


class DryRunAnswer(msgspec.Struct, frozen=True):
    verdicts: tuple[Verdict, ...]
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


def answer(request: DryRun, policy: Policy, catalog: Catalog, policy_hash: str) -> DryRunAnswer:
    """The verdicts on a checked request under the policy and the last catalog of its database."""
    if isinstance(request.sql, str):
        return sql_verdict(request.sql, policy, catalog, policy_hash)
    return probe_verdicts(request.probes or (), policy, catalog, policy_hash)


def probe_verdicts(probes: tuple[Probe, ...], policy: Policy, catalog: Catalog, policy_hash: str) -> DryRunAnswer:
    """One verdict per probe, in their order; of more than 50 distinct tables only the probes of the first 50 are decided."""
    tables: dict[TableKey, None] = dict.fromkeys(_table(probe) for probe in probes)
    evaluated = set(list(tables)[:TABLES])
    verdicts = tuple(_probed(probe, policy, catalog) for probe in probes if _table(probe) in evaluated)
    return DryRunAnswer(verdicts, len(tables) > TABLES, len(tables), policy_hash)


def sql_verdict(sql: str, policy: Policy, catalog: Catalog, policy_hash: str) -> DryRunAnswer:
    """The one verdict on a literal statement; what does not parse is a denial by parse_error."""
    verdict = msgspec.structs.replace(_decided(sql, policy, catalog), sql=sql)
    return DryRunAnswer((verdict,), truncated=False, total_tables=len(verdict.tables), policy_hash=policy_hash)


def _probed(probe: Probe, policy: Policy, catalog: Catalog) -> Verdict:
    target = ".".join('"' + part.replace('"', '""') + '"' for part in _table(probe))
    verdict = _decided(STATEMENTS[probe.action].format(target), policy, catalog)
    return msgspec.structs.replace(verdict, probe=probe, action=probe.action)


def _decided(sql: str, policy: Policy, catalog: Catalog) -> Verdict:
    statement = analyze(sql)
    action = statement.kind.lower() if isinstance(statement, Statement) else "unknown"
    decision = decide(statement, policy, catalog)
    match decision:
        case Denied():
            return Verdict("deny", decision.reason, decision.matched_rule, decision.tables, action)
        case Allowed():
            return Verdict("allow", f"permitted by {decision.matched_rule}", decision.matched_rule, decision.tables, action)
        case Held():
            rule = decision.allowed.matched_rule
            waits = f"permitted by {rule}, but each call waits for a human's approval (approvals.{decision.write_class})"
            return Verdict("allow", waits, rule, decision.allowed.tables, action)


def _table(probe: Probe) -> TableKey:
    key: Any = MASKED_TABLE.parse(probe.table)  # a form's value has its own type; this form gives TableKey
    schema, name = key
    return str(schema), str(name)


def _first_line(error: Exception) -> str:
    text = str(error).splitlines()[0] if str(error) else "no JSON"
    return text[:300].lower()[:1] + text[1:300]
