"""Databases of a project over the API: add, set an address, test the connection, remove."""

from typing import Final

import msgspec
import trio

from gatewayd.audit.ids import is_ulid
from gatewayd.control.databases.address import address_problem
from gatewayd.control.databases.connection_check import Finding, checked_connection
from gatewayd.control.databases.database import (
    ADD,
    FIND,
    NAMED,
    OF_PROJECT,
    REMOVE,
    SET_ADDRESS,
    SET_CHECKED,
    Database,
    address_of,
    sealed_address,
    shown_host,
)
from gatewayd.control.keyring.sealing import NONCE_BYTES, Unsealable
from gatewayd.control.moment import moment
from gatewayd.control.organisation.caps import check_cap
from gatewayd.control.organisation.routes import PLAN
from gatewayd.control.policies.checked import CheckedPolicy, check_policy
from gatewayd.control.policies.issue import NEWEST_POLICY, PolicyVersion
from gatewayd.control.store.store import Transaction
from gatewayd.control.trail.record import Act
from gatewayd.control.web.answer import Answer, Refusal, json
from gatewayd.control.web.call import Call
from gatewayd.control.web.route import Route
from gatewayd.policy.file.name_forms import DATABASE

NOTHING_HERE: Final = "there is nothing here"


class DatabaseShown(msgspec.Struct, frozen=True):
    """`host` is None where gateways hold the address. `findings` are those of the last connection test."""

    id: str
    name: str
    host: str | None
    has_address: bool
    checked_ms: int | None
    findings: list[Finding]


class Databases(msgspec.Struct, frozen=True):
    databases: list[DatabaseShown]


class NewDatabase(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`url` None: the gateways of the project hold the address."""

    name: str
    url: str | None = None


class Address(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    url: str | None = None


def shown(database: Database) -> DatabaseShown:
    findings = msgspec.json.decode(database.check_result, type=list[Finding]) if database.check_result else []
    return DatabaseShown(
        database.database_id, database.name, database.host_shown, database.sealed_url is not None, database.checked_ms, findings
    )


async def databases_of(call: Call) -> list[DatabaseShown]:
    """What is known of the project's databases, by name."""
    found = await call.console.store.rows(Database, OF_PROJECT, call.project.project_id)
    return [shown(database) for database in found]


async def add_database(call: Call, name: str, url: str | None) -> str:
    """The new database's id. Raises Refusal with what is wrong."""
    console, project_id = call.console, call.project.project_id
    _check_name(name)
    await _check_url(call, url)
    now, nonce = moment(console), console.entropy(NONCE_BYTES)
    database_id = now.fresh_id

    async def work(tx: Transaction) -> str:
        caps = console.settings.plans.of(await tx.value(PLAN, call.org_id))
        check_cap("databases", len(await tx.rows(Database, OF_PROJECT, project_id)), caps.databases)
        if await tx.value(NAMED, project_id, name) is not None:
            raise Refusal(409, "a database of that name is there already")
        await tx.run(ADD, project_id, database_id, name, now.now_ms)
        if url is not None:
            sealed = sealed_address(console, project_id, database_id, url, nonce)
            await tx.run(SET_ADDRESS, project_id, database_id, sealed, shown_host(url))
        act = Act("database.added", call.person.person_id, project_id, database_id, {"name": name})
        await now.record(tx, call.org_id, act)
        return database_id

    return await console.store.transaction(work)


async def set_address(call: Call, database_id: str, url: str | None) -> None:
    """Seal a new address, or with None forget the old one. Raises Refusal."""
    console, project_id = call.console, call.project.project_id
    await _check_url(call, url)
    now, nonce = moment(console), console.entropy(NONCE_BYTES)

    async def work(tx: Transaction) -> None:
        database = await _found(tx, project_id, database_id)
        sealed = sealed_address(console, project_id, database_id, url, nonce) if url is not None else None
        await tx.run(SET_ADDRESS, project_id, database_id, sealed, shown_host(url) if url is not None else None)
        act = Act("database.address_changed", call.person.person_id, project_id, database_id, {"name": database.name})
        await now.record(tx, call.org_id, act)

    await console.store.transaction(work)


async def test_database(call: Call, database_id: str) -> list[Finding]:
    """Connect as an engine would, keep and give what was found. Raises Refusal 409 for a database without an address."""
    console, project_id = call.console, call.project.project_id
    database = await console.store.transaction(lambda tx: _found(tx, project_id, database_id))
    try:
        url = address_of(console, project_id, database)
    except Unsealable as problem:
        raise Refusal(503, f"the address cannot be opened: {problem}") from None
    if url is None:
        raise Refusal(409, "its address is held by the gateways; run `gatewayd doctor` there")
    folder = console.settings.runtime / console.new_id()
    findings = await checked_connection(url, engine=console.settings.engine_bin, folder=folder)
    kept = msgspec.json.encode(findings).decode()
    await console.store.run(SET_CHECKED, project_id, database_id, console.now_ms(), kept)
    return findings


async def remove_database(call: Call, database_id: str) -> None:
    """Raises Refusal 409 while the policy in force names it."""
    console, project_id = call.console, call.project.project_id
    now = moment(console)

    async def work(tx: Transaction) -> None:
        database = await _found(tx, project_id, database_id)
        policy = await tx.row(PolicyVersion, NEWEST_POLICY, project_id)
        checked = check_policy(policy.yaml) if policy is not None else None
        if isinstance(checked, CheckedPolicy) and database.name in checked.names:
            raise Refusal(409, f"the policy names {database.name}; publish one without it first")
        await tx.run(REMOVE, project_id, database_id)
        act = Act("database.removed", call.person.person_id, project_id, database_id, {"name": database.name})
        await now.record(tx, call.org_id, act)

    await console.store.transaction(work)


async def _list(call: Call) -> Answer:
    return json(Databases(await databases_of(call)))


async def _add(call: Call) -> Answer:
    sent = call.sent(NewDatabase)
    database_id = await add_database(call, sent.name, sent.url)
    return json(await _one(call, database_id), 201)


async def _set(call: Call) -> Answer:
    await set_address(call, call.args["database"], call.sent(Address).url)
    return json(await _one(call, call.args["database"]))


async def _test(call: Call) -> Answer:
    await test_database(call, call.args["database"])
    return json(await _one(call, call.args["database"]))


async def _remove(call: Call) -> Answer:
    await remove_database(call, call.args["database"])
    return json(Databases(await databases_of(call)))


async def _one(call: Call, database_id: str) -> DatabaseShown:
    project_id = call.project.project_id
    return shown(await call.console.store.transaction(lambda tx: _found(tx, project_id, database_id)))


async def _found(tx: Transaction, project_id: str, database_id: str) -> Database:
    database = await tx.row(Database, FIND, project_id, database_id) if is_ulid(database_id) else None
    if database is None:
        raise Refusal(404, NOTHING_HERE)
    return database


def _check_name(name: str) -> None:
    try:
        DATABASE.parse(name)
    except ValueError as problem:
        raise Refusal(400, f"name: {problem}") from None


async def _check_url(call: Call, url: str | None) -> None:
    if url is None:
        return
    wrong = await trio.to_thread.run_sync(address_problem, url, call.console.settings)
    if wrong is not None:
        raise Refusal(400, f"url: {wrong}")


_ONE: Final = "/api/v1/projects/<project>/databases/<database>"
ROUTES: Final = (
    Route(
        "GET",
        "/api/v1/projects/<project>/databases",
        _list,
        door="key",
        right="project.read",
        answer=Databases,
        summary="databases, with the findings of their last connection test",
    ),
    Route(
        "POST",
        "/api/v1/projects/<project>/databases",
        _add,
        door="key",
        right="project.databases",
        body=NewDatabase,
        answer=DatabaseShown,
        summary="add a database",
    ),
    Route("PUT", _ONE, _set, door="key", right="project.databases", body=Address, answer=DatabaseShown, summary="its address"),
    Route("POST", f"{_ONE}/test", _test, door="key", right="project.databases", answer=DatabaseShown, summary="test it"),
    Route("DELETE", _ONE, _remove, door="key", right="project.databases", answer=Databases, summary="remove a database"),
)
