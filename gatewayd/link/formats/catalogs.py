"""A database's catalog as it is sent for simulation, and read back there (docs/link-protocol.md, Catalogs). Pure.

Names, types and what depends on what; of views their query with `?` for each constant. A definition that cannot be redacted is
left out and counted: a simulation denies statements through such a view.
"""

from typing import Any

import msgspec

from gatewayd.catalog import Catalog, Function, Operator, Relation, Type
from gatewayd.link.formats.documents import DocumentRefused
from gatewayd.link.formats.verdicts import CatalogBody
from gatewayd.sql.text.redact import redacted


class SentCatalog(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The catalog as it is sent."""

    revision: int
    database: str
    server_version: int
    encoding: str
    relations: tuple[Relation, ...]
    functions: tuple[Function, ...]
    operators: tuple[Operator, ...]
    types: tuple[tuple[str, str, Type], ...]


def catalog_body(database: str, catalog: Catalog, *, definitions: bool) -> CatalogBody:
    """With `definitions` the queries of views go too, redacted."""
    relations: list[Relation] = []
    withheld = 0
    for relation in catalog.relations.values():
        text: str | None = ""
        if definitions and relation.definition:
            text = redacted(relation.definition)
            withheld += text is None
        relations.append(relation if not relation.definition else msgspec.structs.replace(relation, definition=text or ""))
    types = tuple((schema, name, type_) for (schema, name), type_ in catalog.types.items())
    sent = SentCatalog(
        catalog.revision,
        catalog.database,
        catalog.server_version,
        catalog.encoding,
        tuple(relations),
        tuple(catalog.functions.values()),
        catalog.operators,
        types,
    )
    return CatalogBody(database, catalog.revision, withheld, msgspec.to_builtins(sent))


def catalog_of(body: CatalogBody) -> Catalog:
    """The catalog for a simulation: decisions by it are the gateway's own, but for views whose definition is missing.

    Raises DocumentRefused.
    """
    try:
        sent = msgspec.convert(body.catalog, SentCatalog)
    except msgspec.ValidationError:
        raise DocumentRefused("envelope", "it has not the shape of a catalog") from None
    fields: dict[str, Any] = {
        "revision": sent.revision,
        "database": sent.database,
        "server_version": sent.server_version,
        "encoding": sent.encoding,
        "relations": {(relation.schema, relation.name): relation for relation in sent.relations},
        "functions": {function.oid: function for function in sent.functions},
        "operators": sent.operators,
        "types": {(schema, name): type_ for schema, name, type_ in sent.types},
    }
    return Catalog(**fields)
