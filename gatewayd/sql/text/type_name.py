"""The type that a string constant names, read by PostgreSQL's own grammar as parseTypeString does it. Pure."""

from gatewayd.sql.text.parse import Node, NotParsed, parse

_LONGEST = 200
_PREFIX = "SELECT NULL::"


def type_names(text: str) -> list[Node] | None:
    """The parts of the type's name as the parser gives them; None for a text that is not plainly one type."""
    if len(text) > _LONGEST or not text.isascii():
        return None
    try:
        node = parse(_PREFIX + text).node
    except NotParsed:
        return None
    select = node.get("SelectStmt", {})
    targets = select.get("targetList", ())
    if not select.keys() <= {"targetList", "limitOption", "op"} or len(targets) != 1 or "name" in targets[0]["ResTarget"]:
        return None
    cast = targets[0]["ResTarget"]["val"].get("TypeCast")
    if cast is None or "A_Const" not in cast["arg"]:
        return None
    type_name = cast["typeName"]
    if type_name.get("setof") or type_name.get("pct_type"):
        return None
    names: list[Node] = type_name["names"]
    return names
