"""The words of `sql/builtins/filtered_relations.py` as SQL: `$shown(m.oid)` and its kin, for what one policy hides. Pure.

Everything is qualified but operators: those of pg_catalog on oid and text are found first, whatever the database defines.
"""

from collections.abc import Callable, Mapping, Sequence

from gatewayd.catalog import FIRST_USER_OID
from gatewayd.shields.hidden import Hidden, oids, texts
from gatewayd.sql.builtins.objects import SETTINGS

_CHECKS = "SELECT FROM pg_catalog.pg_constraint AS k WHERE k.oid = {oid} AND k.contype IN ('c', 'x')"
_COMPUTING = (
    "SELECT FROM pg_catalog.pg_index AS k WHERE k.indexrelid = {oid} AND (k.indexprs IS NOT NULL OR k.indpred IS NOT NULL)"
)
_MASKS_COUNT = {"pg_constraint": _CHECKS, "pg_class": _COMPUTING}
"""Of which objects of a catalog a masked column matters: a plain key or index holds no constant."""
_WHOLE_ROWS = {
    "pg_class": "SELECT FROM pg_catalog.pg_index AS w WHERE w.indexrelid = {oid} AND "
    "pg_catalog.concat(w.indexprs, w.indpred) ~ ':varattno 0 '",
    "pg_constraint": "SELECT FROM pg_catalog.pg_constraint AS w WHERE w.oid = {oid} AND 0 = ANY (w.conkey)",
    "pg_rewrite": "SELECT FROM pg_catalog.pg_rewrite AS w WHERE w.oid = {oid} AND "
    "(w.ev_action::pg_catalog.text ~ ':varattno 0 ' OR w.ev_qual::pg_catalog.text ~ ':varattno 0 ')",
}
"""pg_depend forgets a reference to a whole row where a column of the same table is named too."""
_OWNERS: Mapping[str, Sequence[str]] = {
    "pg_class": ("oid",),
    "pg_constraint": ("conrelid",),
    "pg_trigger": ("tgrelid", "tgconstrrelid"),
    "pg_policy": ("polrelid",),
    "pg_rewrite": ("ev_class",),
    "pg_statistic_ext": ("stxrelid",),
    "pg_attrdef": ("adrelid",),
}
"""Catalogs whose objects are parts of relations, with the columns that say of which."""

_OTHERS = (
    "pg_am", "pg_cast", "pg_collation", "pg_conversion", "pg_default_acl", "pg_event_trigger", "pg_extension",
    "pg_foreign_data_wrapper", "pg_foreign_server", "pg_language", "pg_namespace", "pg_opclass", "pg_operator", "pg_opfamily",
    "pg_proc", "pg_publication", "pg_roles", "pg_transform", "pg_ts_config", "pg_ts_dict", "pg_ts_parser", "pg_ts_template",
    "pg_type",
)  # fmt: skip
"""Catalogs of objects that belong to no relation."""


class Conditions:
    """The SQL conditions that hide rows of the catalog, for one set of hidden things."""

    def __init__(self, hidden: Hidden) -> None:
        self._hidden = hidden
        self._words: Mapping[str, Callable[..., str]] = {
            "shown": self._shown,
            "measured": self._measured,
            "unmasked": self._unmasked,
            "masked": self._masked,
            "no_hidden_index": self._no_hidden_index,
            "apart": self._apart,
            "parts_apart": self._parts_apart,
            "object": self._object,
            "any_object": self._any_object,
            "oid": self._oid,
            "constraint": self._constraint,
            "constraint_apart": self._constraint_apart,
            "visible_setting": self._visible_setting,
        }

    def sql(self, condition: str) -> str:
        """`condition` with every `$word(…)` written out, the inner ones first."""
        start = condition.find("$")
        if start < 0:
            return condition
        opening = condition.index("(", start)
        depth, arguments, begin, at = 0, [], opening + 1, opening
        while True:
            character = condition[at]
            depth += (character == "(") - (character == ")")
            if depth == 0 or (depth == 1 and character == ","):
                arguments.append(self.sql(condition[begin:at].strip()))
                begin = at + 1
            if depth == 0:
                break
            at += 1
        return condition[:start] + self._words[condition[start + 1 : opening]](*arguments) + self.sql(condition[at + 1 :])

    def _shown(self, oid: str) -> str:
        hidden = self._hidden
        if hidden.lists_seen:
            return f"({oid} < '{FIRST_USER_OID}'::pg_catalog.oid OR {oid} = ANY ({oids(hidden.listed)}))"
        among = f" AND {oid} <> ALL ({oids(hidden.listed)})" if hidden.listed else ""
        return f"({oid} <= '{hidden.newest}'::pg_catalog.oid{among})"

    def _measured(self, oid: str) -> str:
        unmeasured = self._hidden.unmeasured
        apart = f" AND {oid} <> ALL ({oids(unmeasured)})" if unmeasured else ""
        if self._hidden.lists_seen:
            return f"({oid} = ANY ({oids(self._hidden.listed)}){apart})"
        return f"({oid} >= '{FIRST_USER_OID}'::pg_catalog.oid AND {self._shown(oid)}{apart})"

    def _unmasked(self, oid: str) -> str:
        masked = self._hidden.masked_tables
        return f"({oid} <> ALL ({oids(masked)}))" if masked else "true"

    def _masked(self, oid: str, name: str) -> str:
        masked = self._hidden.masked_columns
        if not masked:
            return "false"
        return f"(({oid})::pg_catalog.text || '.' || {name}::pg_catalog.text) = ANY ({texts(masked)})"

    def _no_hidden_index(self, oid: str) -> str:
        hidden = self._hidden.hidden_indexes
        return f"({oid} <> ALL ({oids(hidden)}))" if hidden else "true"

    def _bad(self, catalog: str, oid: str) -> str:
        """That the dependency `d` of an object leads to something hidden."""
        masked = self._hidden.masked_tables
        found = f"NOT {self._shown('d.refobjid')}"
        if masked:
            column = (
                "SELECT FROM pg_catalog.pg_attribute AS a WHERE a.attrelid = d.refobjid AND a.attnum = d.refobjsubid "
                f"AND {self._masked('a.attrelid', 'a.attname')}"
            )
            whole = f" OR EXISTS ({_WHOLE_ROWS[catalog].format(oid=oid)})" if catalog in _WHOLE_ROWS else ""
            counts = f" AND EXISTS ({_MASKS_COUNT[catalog].format(oid=oid)})" if catalog in _MASKS_COUNT else ""
            found += f" OR d.refobjid = ANY ({oids(masked)}) AND (EXISTS ({column}){whole}){counts}"
        return found

    def _apart(self, catalog: str, oid: str) -> str:
        catalog = catalog.strip("'")
        return (
            f"NOT EXISTS (SELECT FROM pg_catalog.pg_depend AS d WHERE d.classid = 'pg_catalog.{catalog}'::pg_catalog.regclass "
            f"AND d.objid = {oid} AND d.refclassid = 'pg_catalog.pg_class'::pg_catalog.regclass AND ({self._bad(catalog, oid)}))"
        )

    def _parts_apart(self, catalog: str, column: str, oid: str) -> str:
        return (
            f"NOT EXISTS (SELECT FROM pg_catalog.{catalog.strip(chr(39))} AS x WHERE x.{column} = {oid} "
            f"AND NOT {self._apart(catalog, 'x.oid')})"
        )

    def _owned(self, catalog: str) -> str:
        return " AND ".join(self._shown(f"x.{column}") for column in _OWNERS[catalog])

    def _object(self, class_: str, oid: str) -> str:
        cases = "".join(
            f" WHEN 'pg_catalog.{catalog}'::pg_catalog.regclass THEN "
            + (
                self._shown(oid)
                if catalog == "pg_class"
                else f"EXISTS (SELECT FROM pg_catalog.{catalog} AS x WHERE x.oid = {oid} AND {self._owned(catalog)})"
            )
            for catalog in _OWNERS
        )
        return f"(CASE {class_}{cases} ELSE true END)"

    def _any_object(self, oid: str) -> str:
        """The same, where nobody says of which catalog the object is. One that is nowhere is like one that is hidden: else the
        difference would tell which numbers hidden ones have."""
        parts = " AND ".join(
            f"NOT EXISTS (SELECT FROM pg_catalog.{catalog} AS x WHERE x.oid = {oid} AND NOT ({self._owned(catalog)}))"
            for catalog in _OWNERS
        )
        others = " OR ".join(f"EXISTS (SELECT FROM pg_catalog.{catalog} AS x WHERE x.oid = {oid})" for catalog in _OTHERS)
        parts_shown = " OR ".join(
            f"EXISTS (SELECT FROM pg_catalog.{catalog} AS x WHERE x.oid = {oid} AND {self._owned(catalog)})"
            for catalog in _OWNERS
        )
        return f"({parts} AND ({oid} < '{FIRST_USER_OID}'::pg_catalog.oid OR {others} OR {parts_shown}))"

    def _oid(self, schema: str, name: str) -> str:
        return (
            "(SELECT c.oid FROM pg_catalog.pg_class AS c JOIN pg_catalog.pg_namespace AS n ON n.oid = c.relnamespace "
            f"WHERE n.nspname = {schema}::pg_catalog.name AND c.relname = {name}::pg_catalog.name)"
        )

    def _named_constraint(self, schema: str, name: str, bad: str) -> str:
        return (
            "NOT EXISTS (SELECT FROM pg_catalog.pg_constraint AS y JOIN pg_catalog.pg_namespace AS n ON n.oid = y.connamespace "
            f"WHERE n.nspname = {schema}::pg_catalog.name AND y.conname = {name}::pg_catalog.name AND {bad})"
        )

    def _constraint(self, schema: str, name: str) -> str:
        return self._named_constraint(schema, name, f"NOT {self._shown('y.conrelid')}")

    def _constraint_apart(self, schema: str, name: str) -> str:
        return self._named_constraint(schema, name, f"NOT {self._apart('pg_constraint', 'y.oid')}")

    def _visible_setting(self, name: str) -> str:
        return f"(pg_catalog.lower({name}) = ANY ({texts(sorted(SETTINGS.split()))}))"
