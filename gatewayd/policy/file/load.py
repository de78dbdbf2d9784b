"""Policy text to Policies, or every problem with its path and line (decision 2).

`yaml.py` reads strictly, `shape.py` knows keys and ranges, `sections.py` applies them. Here: the rules between keys, the two
shapes of the file, addresses, features that are not built, what approvals and masks need from the environment.
"""

from collections.abc import Callable, Mapping
from typing import Any, Final

import msgspec

from gatewayd.policy.file import dsn, yaml
from gatewayd.policy.file.features import FEATURES
from gatewayd.policy.file.model import (
    Approvals,
    Contain,
    Functions,
    Guardrails,
    Limits,
    Mask,
    Named,
    Policies,
    Policy,
    TableAccess,
    Taint,
)
from gatewayd.policy.file.problem import Path, PolicyErrors, Problem, quoted
from gatewayd.policy.file.sections import Reader
from gatewayd.policy.file.shape import LINKED, SECTIONS, SEVERAL, SINGLE

__all__ = ["PolicyErrors", "Problem", "load_policies"]

WRITE_CLASSES: Final = ("writes", "row_changes", "whole_table_writes", "schema_changes")
"""The keys of `approvals` that hold something. The others say how."""
_ONLY_SINGLE: Final = frozenset(SINGLE.fields) - frozenset(SEVERAL.fields)


def load_policies(
    text: str | bytes,
    variables: dsn.Lookup,
    *,
    approval_gate: bool = False,
    mask_salt: bool = False,
    features: Mapping[str, str | None] = FEATURES,
    addresses: Callable[[str, int], str] | None = None,
) -> Policies:
    """The whole policy file as one value; an empty text is the same as no file.

    `variables` are for ${NAME} in `url` and asked for those names only. `approval_gate` and `mask_salt` say whether this process
    has them; `features` gives the reason for each feature that is not built. Raises PolicyErrors with everything that is wrong.

    `addresses`, for the policy of a bundle, which has no `url`, gives the address of a database by its name and the number of
    databases, or raises ValueError.
    """
    root, problems = yaml.parse(text)
    if root is None:
        if addresses is not None and not problems:
            problems.append(Problem("", 0, "found an empty policy; expected the shape with databases"))
        if problems:
            raise PolicyErrors(problems)
        return Policies(single=Policy())
    multiple = isinstance(root, yaml.YamlMapping) and "databases" in root.entries
    if addresses is not None and not multiple:
        raise PolicyErrors([*problems, Problem("", 0, "found no databases; expected the shape with databases")])
    loader = _Loader(variables, features, approval_gate=approval_gate, mask_salt=mask_salt, addresses=addresses)
    policies = loader.several(root) if multiple else loader.single(root)
    if problems or loader.problems:
        raise PolicyErrors([*problems, *loader.problems], multiple=multiple)
    return policies


class _Loader(Reader):
    def __init__(
        self,
        variables: dsn.Lookup,
        features: Mapping[str, str | None],
        *,
        approval_gate: bool,
        mask_salt: bool,
        addresses: Callable[[str, int], str] | None,
    ) -> None:
        super().__init__()
        self._variables = variables
        self._features = features
        self._approval_gate = approval_gate
        self._mask_salt = mask_salt
        self._addresses = addresses
        self._count = 0
        self._several = SEVERAL if addresses is None else LINKED

    def single(self, root: yaml.YamlNode) -> Policies:
        values: Any = self.value(root, SINGLE, ())
        if not isinstance(root, yaml.YamlMapping):
            return Policies(single=Policy())
        self._required_features(root)
        self._enforceable(root, ())
        self._carved_out(root, ())
        limits = values.get("limits", {})
        return Policies(
            single=_policy(values, limits),
            sections=frozenset(root.entries),
            public_urls=tuple(values.get("public_urls", ())),
            limits=limits,
        )

    def several(self, root: yaml.YamlNode) -> Policies:
        assert isinstance(root, yaml.YamlMapping)
        entries = dict(root.entries)
        for key in _ONLY_SINGLE & entries.keys():  # found here they would hold for no database
            line = entries.pop(key).line
            self.report((key,), line, f"found {key} beside databases; expected it inside each entry of databases")
        values: Any = self.value(yaml.YamlMapping(entries, root.line), self._several, ())
        self._required_features(root)
        limits = values.get("limits", {})
        node = root.entries["databases"].value
        names: dict[str, int] = {}
        self._count = len(node.items) if isinstance(node, yaml.YamlSequence) else 0
        databases = [
            self._database(item, ("databases", index), limits, names)
            for index, item in enumerate(node.items if isinstance(node, yaml.YamlSequence) else ())
            if isinstance(item, yaml.YamlMapping)
        ]
        return Policies(
            databases=tuple(databases),
            sections=frozenset(root.entries),
            public_urls=tuple(values.get("public_urls", ())),
            limits=limits,
        )

    def _database(self, node: yaml.YamlMapping, path: Path, shared: Mapping[str, int], names: dict[str, int]) -> Named:
        quiet = Reader()  # its problems are reported by the reading of the whole file
        values: Any = quiet.value(node, self._several.fields["databases"].item, path)  # type: ignore[union-attr]  # an Each
        name = values.get("name", "")
        if name in names:
            line = node.entries["name"].line
            self.report(
                (*path, "name"), line, f"found {quoted(name)} again; expected a name of its own (first on line {names[name]})"
            )
        elif name:
            names[name] = node.entries["name"].line
        self._enforceable(node, path)
        self._carved_out(node, path)
        own = values.get("limits", {})
        return Named(
            name=name,
            url=self._url(values.get("url"), node, path) if self._addresses is None else self._address(name, node, path),
            policy=_policy(values, {**shared, **own}),
            sections=frozenset(node.entries) & frozenset(SECTIONS),
            limits=own,
        )

    def _url(self, text: str | None, node: yaml.YamlMapping, path: Path) -> str:
        if text is None:
            return ""
        line = node.entries["url"].line
        try:
            url = dsn.replace_variables(text, self._variables)
        except ValueError as error:
            self.report((*path, "url"), line, str(error))
            return ""
        problem = dsn.check(url)
        if problem:
            self.report((*path, "url"), line, problem)
        return url

    def _address(self, name: str, node: yaml.YamlMapping, path: Path) -> str:
        """The address of a bundle's database, which only this machine knows."""
        assert self._addresses is not None
        if not name:
            return ""
        try:
            url = self._addresses(name, self._count)
        except ValueError as error:
            self.report((*path, "name"), node.line, str(error))
            return ""
        problem = dsn.check(url)
        if problem:
            self.report((*path, "name"), node.line, f"its address: {problem}")
        return url

    def _required_features(self, root: yaml.YamlMapping) -> None:
        """What is no name at all is reported by the shape; here, what this version knows and cannot do."""
        entry = root.entries.get("requires_features")
        for index, item in enumerate(entry.value.items if entry and isinstance(entry.value, yaml.YamlSequence) else ()):
            name = item.value if isinstance(item, yaml.YamlScalar) else None
            if isinstance(name, str) and self._features.get(name) is not None:
                message = f"found {name}, which this version does not enforce ({self._features[name]}); expected a built feature"
                self.report(("requires_features", index), item.line, message)

    def _enforceable(self, node: yaml.YamlMapping, path: Path) -> None:
        """A section that asks for something (masks, approvals that are on) needs it built, and its part of the environment."""
        asking = {
            "column_masks": lambda value: isinstance(value, yaml.YamlMapping) and bool(value.entries),
            "mask_source_rewrite": lambda value: isinstance(value, yaml.YamlScalar) and value.value is True,
            "approvals": lambda value: (
                isinstance(value, yaml.YamlMapping)
                and any(_is_true(entry.value) for key, entry in value.entries.items() if key in WRITE_CLASSES)
            ),
        }
        needs = {
            "column_masks": None if self._mask_salt else "masks without GATEWAY_MASK_SALT; expected the salt to be set",
            "approvals": None
            if self._approval_gate
            else "approvals that are on without a gate; expected GATEWAY_APPROVAL_URL and GATEWAY_APPROVAL_TOKEN to be set",
        }
        self._holdable(node, path)
        for key, entry in node.entries.items():
            asks = asking.get(key)
            if asks is not None and not asks(entry.value):
                continue
            reason = self._features.get(key)
            if reason is not None:
                message = f"found a section this version does not enforce ({reason}); expected it left out"
                self.report((*path, key), entry.line, message)
            if needs.get(key):
                self.report((*path, key), entry.line, f"found {needs[key]}")

    def _holdable(self, node: yaml.YamlMapping, path: Path) -> None:
        """Writes of a tainted grant can only be held where there is somebody to ask."""
        held = _inner(_inner(_inner(node, "taint"), "contain"), "writes")
        if isinstance(held, yaml.YamlScalar) and held.value == "hold" and not self._approval_gate:
            found = "found hold without a gate; expected GATEWAY_APPROVAL_URL and GATEWAY_APPROVAL_TOKEN to be set, or deny"
            self.report((*path, "taint", "contain", "writes"), held.line, found)

    def _carved_out(self, node: yaml.YamlMapping, path: Path) -> None:
        """information_schema is always readable: a key that says otherwise would promise what no decision keeps."""
        section = node.entries.get("table_access")
        tables = section.value.entries.get("tables") if section and isinstance(section.value, yaml.YamlMapping) else None
        for key, entry in tables.value.entries.items() if tables and isinstance(tables.value, yaml.YamlMapping) else ():
            level = entry.value.value if isinstance(entry.value, yaml.YamlScalar) else None
            if key.startswith("information_schema.") and level in ("deny", "read_write"):
                message = f"found {level}; expected the key left out (information_schema is always readable, and never more)"
                self.report((*path, "table_access", "tables", key), entry.line, message)


def _is_true(node: yaml.YamlNode) -> bool:
    return isinstance(node, yaml.YamlScalar) and node.value is True


def _inner(node: yaml.YamlNode | None, key: str) -> yaml.YamlNode | None:
    entry = node.entries.get(key) if isinstance(node, yaml.YamlMapping) else None
    return entry.value if entry is not None else None


def _taint(values: Mapping[str, Any]) -> Taint:
    return Taint(frozenset(values.get("sources", ())), Contain(**values.get("contain", {})))


def _policy(values: Mapping[str, Any], limits: Mapping[str, int]) -> Policy:
    """The Policy of sections that the shape has passed; a value that has a problem is left out, and the file refused anyway."""
    return Policy(
        table_access=TableAccess(**values.get("table_access", {})),
        functions=Functions(allow=frozenset(values.get("functions", {}).get("allow", ()))),
        guardrails=Guardrails(**values.get("guardrails", {})),
        limits=Limits(**limits),
        approvals=Approvals(**values.get("approvals", {})),
        column_masks={
            table: {column: msgspec.convert(rule, Mask) for column, rule in columns.items()}
            for table, columns in values.get("column_masks", {}).items()
        },
        mask_source_rewrite=values.get("mask_source_rewrite"),
        taint=_taint(values["taint"]) if "taint" in values else None,
    )
