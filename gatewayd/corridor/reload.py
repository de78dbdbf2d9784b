"""Reload: puts a policy text in force as a whole, or not at all (decisions 4 and 7; traps 7 and 8).

The new state is built and checked, then audited, then swapped in one step without an await. One reload runs at a time. Used by
POST /admin/policy, by SIGHUP and by a linked gateway's bundles.
"""

import os
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from time import time_ns
from typing import Final, Literal

import trio

from gatewayd import log
from gatewayd.audit.events import DEFAULT_DATABASE, Agent, Event, PolicyReloaded, Query, QueryId
from gatewayd.audit.ids import new_ulid
from gatewayd.audit.service import AuditUnavailable
from gatewayd.config.settings import Settings, read_bytes
from gatewayd.corridor.databases import Databases, check_masks
from gatewayd.corridor.gateway import Database, Gateway
from gatewayd.policy.file.load import PolicyErrors, Problem, load_policies
from gatewayd.policy.file.model import Guardrails, Named, Policies, Policy
from gatewayd.policy.replacement import DatabaseChange, Replacement, diff, guardrails_json, replace, replace_whole

ReloadSource = Literal["admin_endpoint", "sighup", "bundle", "accept_version", "taint_cleared"]

_LINKED: Final = "policy comes from the control plane"
_NO_FILE: Final = "GATEWAY_POLICY_FILE is unset; expected a policy file"


class Reloader:
    """Changes the policies in force: `reload` for a text, `enforce` for a bundle. Nothing else changes them."""

    def __init__(self, settings: Settings, gateway: Gateway, databases: Databases) -> None:
        self._settings = settings
        self._gateway = gateway
        self._databases = databases
        self._policies = settings.policies
        self._one_at_a_time = trio.Lock()

    async def reload(self, text: bytes, source: ReloadSource) -> None:
        """Puts the policy of `text` in force.

        *Raises* PolicyErrors if the text is refused, or AuditUnavailable; nothing has changed then.

        *Cancellation*: possible only while another reload runs. After that it runs to its end.
        """
        if self._settings.link is not None:
            raise PolicyErrors([Problem("", 0, _LINKED)])
        await self._in_turn(lambda: self._reload(text, source), source)

    async def enforce(self, whole: Policies, bundle: int, swapped: Callable[[], None]) -> None:
        """Puts the policies of a bundle in force. `swapped` is called in the same step, before any call uses them. Raises and is
        cancelled as `reload`."""
        replacement = await trio.to_thread.run_sync(replace_whole, self._policies, whole)
        await self._in_turn(lambda: self._apply(replacement, "bundle", bundle, swapped), "bundle")

    async def _in_turn(self, change: Callable[[], Awaitable[Sequence[str]]], source: ReloadSource) -> None:
        async with self._one_at_a_time:
            with trio.CancelScope(shield=True):
                try:
                    changed = await change()
                except PolicyErrors as errors:
                    log.error(log.POLICY_RELOAD_FAILED, source=source, error=str(errors))
                    raise
                except AuditUnavailable as unavailable:
                    error = f"audit file cannot be written: {unavailable.reason}"
                    log.error(log.POLICY_RELOAD_FAILED, source=source, error=error)
                    raise
        log.info(log.POLICY_RELOADED, source=source, databases=list(changed))

    async def note(self, source: ReloadSource, bundle: int | None) -> None:
        """Records an operator's decision about a bundle or a taint, in one row for each database. No policy changes.

        Raises AuditUnavailable.
        """
        databases = self._gateway.databases
        same = [
            DatabaseChange(name, None, (), guardrails_json(database.enforced.policy.guardrails), diff(None, None))
            for name, database in databases.items()
        ] or [DatabaseChange(DEFAULT_DATABASE, None, (), guardrails_json(Guardrails()), diff(None, None))]
        await self._record(Replacement(self._policies, (), tuple(same)), source, bundle)

    async def reload_file(self) -> bool:
        """Reads the policy file again, for SIGHUP. Returns whether it is in force; if not, the log says why."""
        path = self._settings.policy_file
        if self._settings.link is not None:
            return True  # the policies of a linked gateway come from its bundle, which is in force
        try:
            if path is None:
                raise FileNotFoundError
            text = await trio.to_thread.run_sync(read_bytes, path)
        except (OSError, ValueError) as failure:
            why = failure.strerror if isinstance(failure, OSError) else "no path"
            error = _NO_FILE if path is None else f"GATEWAY_POLICY_FILE: cannot read the file ({why})"
            log.error(log.POLICY_RELOAD_FAILED, source="sighup", error=error)
            return False
        try:
            await self.reload(text, "sighup")
        except (PolicyErrors, AuditUnavailable):
            return False
        return True

    async def _reload(self, text: bytes, source: ReloadSource) -> Sequence[str]:
        replacement = await trio.to_thread.run_sync(self._replacement, text)  # 8 MiB of YAML take seconds
        return await self._apply(replacement, source, None)

    async def _apply(
        self, replacement: Replacement, source: ReloadSource, bundle: int | None, swapped: Callable[[], None] = lambda: None
    ) -> Sequence[str]:
        opened = await self._open(replacement.policies.databases or (), wait=bundle is None)
        try:
            await check_masks(self._enforced(replacement.policies, opened), wait=bundle is None)
            await self._record(replacement, source, bundle)
        except BaseException:
            self._close(opened)
            raise
        self._swap(replacement.policies, opened, bundle)
        swapped()
        return replacement.databases_changed

    def _enforced(self, policies: Policies, opened: Mapping[str, Database]) -> Iterator[tuple[Database, Policy]]:
        """Each database with its new policy."""
        serving = self._gateway.databases
        if policies.single is not None:
            yield serving[DEFAULT_DATABASE], policies.single
        for named in policies.databases or ():
            yield opened.get(named.name) or serving[named.name], named.policy

    def _replacement(self, text: bytes) -> Replacement:
        settings = self._settings
        body = load_policies(
            text,
            settings.variables,
            approval_gate=settings.approval_url is not None,
            mask_salt=settings.mask_salt is not None,
        )
        return replace(self._policies, body, single_name=DEFAULT_DATABASE)

    async def _open(self, databases: Sequence[Named], *, wait: bool) -> dict[str, Database]:
        """Opens the databases that are new or have another url, beside the ones in use. With `wait`, gives their catalogs a
        moment to be read; a linked gateway starts from its cache and does not wait."""
        before = {named.name: named.url for named in self._policies.databases or ()}
        opened: dict[str, Database] = {}
        try:
            for named in databases:
                if before.get(named.name) != named.url:
                    opened[named.name] = await self._databases.open(named.name, named.url, named.policy)
            if not wait:
                return opened
            async with (
                trio.open_nursery() as nursery
            ):  # some time for the catalogs: until one is read, `deny` refuses every statement
                for database in opened.values():
                    nursery.start_soon(database.refresher.unknown)
        except BaseException:
            self._close(opened)
            raise
        return opened

    def _close(self, opened: dict[str, Database]) -> None:
        for database in opened.values():
            self._databases.close(database)

    async def _record(self, replacement: Replacement, source: ReloadSource, bundle: int | None) -> None:
        """Writes one POLICY_RELOADED row per database, committed together. Without a deadline: rows that were handed over are
        written sooner or later, and would then report a swap that did not happen."""
        now_ms = time_ns() // 1_000_000
        query_id = QueryId(new_ulid(now_ms, os.urandom))
        events = [
            Event(
                Query(query_id, change.database, Agent(), None, self._gateway.tenant_id),
                now_ms,
                PolicyReloaded(
                    source=source,
                    table_access=change.table_access,
                    sections_changed=change.sections_changed,
                    databases_changed=replacement.databases_changed,
                    guardrails=change.guardrails,
                    diff=change.diff,
                    bundle=bundle,
                ),
            )
            for change in replacement.changes
        ]
        await self._gateway.audit.reloaded(events)

    def _swap(self, policies: Policies, opened: dict[str, Database], bundle: int | None) -> None:
        """Swaps everything without an await, so that no call sees a mixture."""
        before = self._gateway.databases
        if policies.databases is None:
            assert policies.single is not None
            before[DEFAULT_DATABASE].enforce(policies.single, bundle)
        else:
            after: dict[str, Database] = {}
            for named in policies.databases:
                database = opened.get(named.name)
                if database is None:
                    database = before[named.name]
                database.enforce(named.policy, bundle)
                after[named.name] = database
            self._gateway.databases = after
            for name, database in before.items():
                if after.get(name) is not database:
                    self._databases.close(database)
        self._policies = policies
