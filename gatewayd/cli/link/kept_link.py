"""What the commands of this group read from the state folder."""

import os
import sys
import time
from collections.abc import Mapping

import click
import msgspec

from gatewayd.config.exit_codes import CONFIGURATION
from gatewayd.config.settings import state_dir
from gatewayd.link.formats import checks
from gatewayd.link.formats import trust as trusts
from gatewayd.link.formats.bundle import Bundle, Seen
from gatewayd.link.formats.documents import DocumentRefused
from gatewayd.link.formats.trust import Trust
from gatewayd.link.kept import Enrolled, Kept, KeptUnreadable


class KeptLink(msgspec.Struct, frozen=True):
    """`bundle` is the newest one that is kept and passes all its checks, `problem` why there is none."""

    enrolled: Enrolled
    trust: Trust
    seen: Seen
    bundle: Bundle | None
    problem: str | None
    fresh_s: int | None  # seconds since the control plane last confirmed it


class NotLinked(Exception):
    """There is no link in the state folder."""


class LinkUnreadable(Exception):
    """The state folder cannot be trusted; the text says why."""


def kept_link(folder: str) -> KeptLink:
    """Raises NotLinked or LinkUnreadable."""
    kept = Kept(folder)
    try:
        enrolled, trust, seen = kept.enrolled(), kept.trust(), kept.ratchet()
        if enrolled is None:
            raise NotLinked
        if trust is None or seen is None:
            raise KeptUnreadable("trust.json is missing" if trust is None else "ratchet.json is missing")
        known = trusts.again(trust.envelope.encode(), trust.root)
    except (KeptUnreadable, DocumentRefused, UnicodeEncodeError) as wrong:
        raise LinkUnreadable(str(wrong)) from None
    bundle, problem = None, "none has come yet"
    cached = kept.bundle()
    if cached is not None:
        try:
            bundle = checks.enforceable(checks.authentic(cached.envelope.encode(), known, seen, cached.accepted_ms))
        except DocumentRefused as refused:
            problem = str(refused)
    fresh = kept.freshness()
    fresh_s = None if fresh is None else max(0, round(time.time() - fresh.fresh_ms / 1000))
    return KeptLink(enrolled, known, seen, bundle, None if bundle is not None else problem, fresh_s)


def read_link(environ: Mapping[str, str]) -> tuple[Kept, KeptLink]:
    """Ends the command where this gateway is not linked, or its state folder cannot be trusted."""
    folder = state_dir(environ)
    try:
        return Kept(folder), kept_link(folder)
    except NotLinked:
        click.echo("not linked; `gatewayd link --control URL` links it", err=True)
    except LinkUnreadable as wrong:
        click.echo(f"the state folder cannot be trusted: {wrong}", err=True)
    sys.exit(CONFIGURATION)


def here() -> Mapping[str, str]:
    """The environment in which the command reads its settings."""
    return os.environ
