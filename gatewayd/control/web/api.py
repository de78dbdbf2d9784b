"""OpenAPI of /api/v1, made from the route table and its structs: what is documented is what decodes."""

import re
from collections.abc import Iterable
from typing import Any, Final

import msgspec

from gatewayd import __version__
from gatewayd.control.web.answer import Answer, json
from gatewayd.control.web.call import Call
from gatewayd.control.web.route import Route

PREFIX: Final = "/api/v1"
REF: Final = "#/components/schemas/{name}"


class Problem(msgspec.Struct, frozen=True):
    """Every answer of 400 and above. `error` says what was found and what is expected."""

    error: str


def openapi(routes: Iterable[Route]) -> dict[str, Any]:
    """The document, for the routes below /api/v1."""
    ours = [route for route in routes if route.path.startswith(PREFIX)]
    shapes = [shape for route in ours for shape in (route.body, route.answer) if shape is not None and shape is not bytes]
    schemas, components = msgspec.json.schema_components([*shapes, Problem], ref_template=REF)
    named = dict(zip([*shapes, Problem], schemas, strict=True))
    paths: dict[str, dict[str, Any]] = {}
    for route in ours:
        path = re.sub(r"<([a-z_]+)>", r"{\1}", route.path)
        paths.setdefault(path, {})[route.method.lower()] = _operation(route, named)
    return {
        "openapi": "3.1.0",
        "info": {"title": "gatewayd control plane", "version": __version__},
        "security": [{"key": []}],
        "paths": paths,
        "components": {"schemas": components, "securitySchemes": {"key": {"type": "http", "scheme": "bearer"}}},
    }


def openapi_route(routes: Iterable[Route]) -> Route:
    document = openapi(routes)

    async def handler(_call: Call) -> Answer:
        return json(document)

    return Route("GET", f"{PREFIX}/openapi.json", handler, door="open")


def _operation(route: Route, named: dict[type, Any]) -> dict[str, Any]:
    found: dict[str, Any] = {"summary": route.summary, "responses": {"default": _content("what is wrong", named[Problem])}}
    parameters = re.findall(r"<([a-z_]+)>", route.path)
    if parameters:
        found["parameters"] = [
            {"name": name, "in": "path", "required": True, "schema": {"type": "string"}} for name in parameters
        ]
    if route.right is not None:
        found["description"] = f"needs the scope `{route.right}`"
    if route.body is not None:
        schema = {"type": "string"} if route.body is bytes else named[route.body]
        found["requestBody"] = {"required": True, "content": {"application/json": {"schema": schema}}}
    if route.answer is not None:
        found["responses"]["200"] = _content(route.summary, named[route.answer])
    return found


def _content(description: str, schema: Any) -> dict[str, Any]:
    return {"description": description, "content": {"application/json": {"schema": schema}}}
