"""What the demo's control plane has from its first start: an organisation, a project with the shop, and an agent's token.

The token belongs to an account of its own that nobody can sign in to: so the owner approves another one's writes, not their own.
"""

import os
from importlib.resources import files
from pathlib import Path
from typing import Final

from gatewayd.control.console import Console
from gatewayd.control.databases.database import SET_ADDRESS, sealed_address, shown_host
from gatewayd.control.keyring.sealing import NONCE_BYTES
from gatewayd.control.moment import Moment, moment
from gatewayd.control.people.links import DROP_FIRST_OWNER, new_link, store_link
from gatewayd.control.people.person import ADD as ADD_PERSON
from gatewayd.control.people.person import JOIN_ORGANISATION
from gatewayd.control.people.welcome import ADD_ORGANISATION
from gatewayd.control.policies.issue import issue_bundle
from gatewayd.control.policies.publish import Publication, publish_in, publishable
from gatewayd.control.projects.create import before_creation, create_project
from gatewayd.control.store.directory import ProjectPlace
from gatewayd.control.store.statement import Statement
from gatewayd.control.store.store import Transaction
from gatewayd.control.tokens.text import RANDOM_BYTES, SHOWN, token_text
from gatewayd.control.tokens.token import Token, add_token, find_token
from gatewayd.control.trail.record import Act, new_organisation_trail
from gatewayd.demo.shop import DATABASE

_EMAIL: Final = "sample-agent@localhost"
_OWNER: Final = Statement("SELECT person_id FROM memberships WHERE org_id = $1 AND role = 'owner' LIMIT 1")
_ORGANISATION: Final = Statement("SELECT org_id FROM organisations ORDER BY org_id LIMIT 1")
_SAMPLE: Final = Statement("SELECT person_id FROM people WHERE email_key = $1")
_PROJECT: Final = Statement("SELECT project_id FROM projects WHERE org_id = $1 ORDER BY project_id LIMIT 1")


class Sample:
    """`prepare` comes first. `token` is what the agent uses, `owner_link` the path of the first sign-in, None when it is over."""

    def __init__(self, token_path: Path, database_url: str) -> None:
        self.token = ""
        self.owner_link: str | None = None
        self._token_path = token_path
        self._database_url = database_url

    async def prepare(self, console: Console) -> None:
        """Makes what is missing: all of it at the first start, a token where the last one was revoked."""
        org_id = await console.store.value(_ORGANISATION)
        if org_id is None:
            org_id = await self._found(console)
        await self._sign_in(console, str(org_id))
        await self._ensure_token(console, str(org_id))

    async def _found(self, console: Console) -> str:
        org_id, person_id = console.new_id(), console.new_id()
        made, published, trail = before_creation(console, (DATABASE,)), moment(console), new_organisation_trail(console)
        now_ms, (database_id,) = published.now_ms, made.database_ids
        nonce = console.entropy(NONCE_BYTES)
        text = (files("gatewayd.demo") / "project-policy.yaml").read_text(encoding="utf-8")
        publishable(console, text)

        async def work(tx: Transaction) -> None:
            await tx.run(ADD_ORGANISATION, org_id, "Sample shop", now_ms)
            await trail.begin(tx, org_id)
            await tx.run(ADD_PERSON, person_id, _EMAIL, _EMAIL, "Sample agent", None, now_ms)
            await tx.run(JOIN_ORGANISATION, person_id, org_id, "member", now_ms)
            project_id = await create_project(tx, console, org_id, person_id, "Shop", (DATABASE,), made)
            sealed = sealed_address(console, project_id, database_id, self._database_url, nonce)
            await tx.run(SET_ADDRESS, project_id, database_id, sealed, shown_host(self._database_url))
            publication = Publication(text=text, note="the demo's policy", source="created", person_id=person_id)
            await publish_in(tx, console, org_id, project_id, publication, published)

        await console.store.transaction(work)
        return org_id

    async def _sign_in(self, console: Console, org_id: str) -> None:
        new = new_link(console, "first_owner", org_id=org_id, role="owner")

        async def work(tx: Transaction) -> bool:
            if await tx.value(_OWNER, org_id) is not None:
                return False
            await tx.run(DROP_FIRST_OWNER)
            await store_link(tx, new)
            return True

        self.owner_link = new.address("") if await console.store.transaction(work) else None

    async def _ensure_token(self, console: Console, org_id: str) -> None:
        """The one of the last time, so that clients find the demo again."""
        kept = self._token_path.read_text(encoding="ascii").strip() if self._token_path.exists() else ""
        now = moment(console)
        if await console.store.transaction(lambda tx: find_token(tx, console, kept, now.now_ms)) is not None:
            self.token = kept
            return
        text = token_text("test", console.entropy(RANDOM_BYTES))
        await console.store.transaction(lambda tx: _add(tx, console, org_id, text, now))
        self._keep(text)
        self.token = text

    def _keep(self, text: str) -> None:
        unfinished = self._token_path.with_suffix(".unfinished")
        with open(os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w", encoding="ascii") as file:
            file.write(text)
        unfinished.replace(self._token_path)


async def _add(tx: Transaction, console: Console, org_id: str, text: str, now: Moment) -> None:
    project_id, person_id = str(await tx.value(_PROJECT, org_id)), str(await tx.value(_SAMPLE, _EMAIL))
    token = Token(
        now.fresh_id, "test", "sample agent", person_id, b"", text[:SHOWN], now.now_ms, None, None, None, None, None
    )  # fmt: skip
    await add_token(tx, console, ProjectPlace(org_id, project_id, token.token_id), text, token)
    await issue_bundle(tx, console, org_id, project_id, "token made", now_ms=now.now_ms, issuer=console.replica)
    await now.record(tx, org_id, Act("token.made", person_id, project_id, token.token_id, {"name": token.name}))
