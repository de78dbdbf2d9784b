"""A database for people: add one, its address, the connection test and what it found, remove it."""

from typing import Final

import msgspec

from gatewayd.control.databases.routes import (
    add_database,
    databases_of,
    remove_database,
    set_address,
    test_database,
)
from gatewayd.control.web.answer import Answer, Refusal, to
from gatewayd.control.web.call import Call
from gatewayd.control.web.page import page
from gatewayd.control.web.route import Route
from gatewayd.control.web.said import said

_NEW: Final = "databases/pages/new.html"
_ONE: Final = "databases/pages/database.html"


class DatabaseForm(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`url` empty: the gateways of the project hold the address."""

    name: str
    url: str = ""


class AddressForm(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    url: str = ""


async def _new(call: Call) -> Answer:
    return page(call, _NEW, form=DatabaseForm(""), problem=None)


async def _add(call: Call) -> Answer:
    form = call.sent(DatabaseForm)
    try:
        database_id = await add_database(call, form.name.strip(), form.url.strip() or None)
    except Refusal as refusal:
        kept = DatabaseForm(form.name)  # an address holds a password: it is not sent back
        return page(call, _NEW, refusal.status, form=kept, problem=refusal.text)
    return to(_path(call, database_id))


async def _one(call: Call) -> Answer:
    return await _page(call, call.args["database"].upper())


async def _page(call: Call, database_id: str, problem: str | None = None, status: int = 200) -> Answer:
    found = next((each for each in await databases_of(call) if each.id == database_id), None)
    if found is None:
        raise Refusal(404, "there is nothing here")
    worst = next((word for word in ("FAIL", "WARN", "OK") if any(each.outcome == word for each in found.findings)), None)
    return page(call, _ONE, status, database=found, worst=worst, problem=problem)


async def _set_address(call: Call) -> Answer:
    """A new address is tested at once: whoever typed it is still there."""
    database_id, url = call.args["database"].upper(), call.sent(AddressForm).url.strip() or None
    try:
        await set_address(call, database_id, url)
        if url is not None:
            await test_database(call, database_id)
    except Refusal as refusal:
        return await _page(call, database_id, refusal.text, refusal.status)
    return to(_path(call, database_id))


async def _test(call: Call) -> Answer:
    database_id = call.args["database"].upper()
    try:
        await test_database(call, database_id)
    except Refusal as refusal:
        return await _page(call, database_id, refusal.text, refusal.status)
    return to(_path(call, database_id))


async def _remove(call: Call) -> Answer:
    database_id = call.args["database"].upper()
    try:
        await remove_database(call, database_id)
    except Refusal as refusal:
        return await _page(call, database_id, refusal.text, refusal.status)
    return said(call, to(f"/projects/{call.project.project_id}"), "removed")


def _path(call: Call, database_id: str) -> str:
    return f"/projects/{call.project.project_id}/databases/{database_id}"


_PAGES: Final = "/projects/<project>/databases/<database>"
ROUTES: Final = (
    Route("GET", "/projects/<project>/add-database", _new, door="person", right="project.databases"),
    Route("POST", "/projects/<project>/add-database", _add, door="person", right="project.databases", body=DatabaseForm),
    Route("GET", _PAGES, _one, door="person", right="project.read"),
    Route("POST", f"{_PAGES}/address", _set_address, door="person", right="project.databases", body=AddressForm),
    Route("POST", f"{_PAGES}/test", _test, door="person", right="project.databases"),
    Route("POST", f"{_PAGES}/remove", _remove, door="person", right="project.databases"),
)
