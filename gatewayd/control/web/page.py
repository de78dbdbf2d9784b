"""Pages: Jinja2 with escaping everywhere and no undefined names.

A page is `<folder>/pages/<name>.html`, extends `web/pages/base.html` and uses `web/pages/parts.html` (docs/console.md).
"""

import hashlib
from functools import cache, partial
from importlib.resources import files
from typing import Final

import jinja2

from gatewayd.control.web import navigation
from gatewayd.control.web.answer import Answer
from gatewayd.control.web.call import Call
from gatewayd.control.web.said import forget, what_was_said
from gatewayd.control.web.shown_text import plain, short, text
from gatewayd.control.web.times import distance_shown, time_shown

_STATIC: Final = files("gatewayd.control.web") / "static"
_TYPES: Final = {"css": "text/css; charset=utf-8", "js": "text/javascript; charset=utf-8", "svg": "image/svg+xml"}
STATIC: Final = {file.name: _TYPES[file.name.rpartition(".")[2]] for file in _STATIC.iterdir()}
CSP: Final = "default-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'; object-src 'none'"
HEADERS: Final = (
    ("Content-Security-Policy", CSP),
    ("Referrer-Policy", "same-origin"),  # no-referrer makes same-origin posts send `Origin: null`
    ("X-Content-Type-Options", "nosniff"),
    ("X-Frame-Options", "DENY"),
    ("Cross-Origin-Opener-Policy", "same-origin"),
    ("Cache-Control", "no-store"),
)


def page(call: Call | None, template: str, status: int = 200, **values: object) -> Answer:
    """`template` is `people/pages/sign_in.html`. Every page sees `call` (None on error pages), `home` (of the project),
    `at(ms)`, `ago(ms)`, the filters `text` and `plain` (shown_text.py), and `asset(name)`."""
    zone = call.person.zone if call is not None and call.is_signed_in else "UTC"
    now_ms = call.console.now_ms() if call is not None else 0
    said = what_was_said(call) if call is not None else None
    home = f"/projects/{call.project.project_id}" if call is not None and call.has_project else ""
    at, ago = partial(time_shown, zone=zone), partial(distance_shown, now_ms=now_ms, zone=zone)
    body = _environment().get_template(template).render(call=call, home=home, said=said, at=at, ago=ago, **values)
    headers = HEADERS if call is None or said is None else (*HEADERS, forget(call))
    return Answer(status, body.encode(), headers=headers)


def asset(name: str) -> str:
    """The address of a file of ours; it changes with the file, so it may be kept for ever."""
    return f"/static/{hashlib.sha256(asset_bytes(name)).hexdigest()[:12]}/{name}"


@cache
def asset_bytes(name: str) -> bytes:
    return (_STATIC / name).read_bytes()


@cache
def _environment() -> jinja2.Environment:
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("gatewayd.control", ""),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        auto_reload=False,
    )
    environment.globals |= {
        "asset": cache(asset),
        "sections_of_project": navigation.OF_PROJECT,
        "sections_of_organisation": navigation.OF_ORGANISATION,
    }
    environment.filters |= {"text": text, "short": short, "plain": plain, "count": "{:,}".format}
    return environment
