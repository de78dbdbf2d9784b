"""`gatewayd doctor`: everything a gatewayd depends on, in the order in which it needs it (decision 14)."""

import os
import sys
from collections import Counter
from collections.abc import Callable
from typing import TYPE_CHECKING

import click
import msgspec

from gatewayd import log
from gatewayd.cli import options
from gatewayd.cli.output import Output, remark
from gatewayd.config.exit_codes import FAILURE

if TYPE_CHECKING:
    from gatewayd.cli.doctor.finding import Check


@click.command()
@options.as_json
def command(as_json: bool) -> None:
    """Look at everything a gatewayd depends on, and say what to do.

    Configuration, policy, audit file, listener, each database from its name to a canary query through the whole corridor, and
    the gatewayd that runs, if one does. Nothing is changed: the canary is audited in a scratch file, and by the running gatewayd
    like any call. Exits with 1 when something FAILs.
    """
    import trio

    from gatewayd.cli.doctor.finding import show

    log.set_level("error")  # log lines of the daemon's parts would confuse the reader of this report
    output = Output(as_json=as_json)
    counted: Counter[str] = Counter()

    def report(check: "Check") -> None:
        counted[check.outcome] += 1
        show(output, check)

    trio.run(_look, report)
    remark(f"{counted['OK']} OK, {counted['WARN']} WARN, {counted['FAIL']} FAIL")
    if counted["FAIL"]:
        sys.exit(FAILURE)


async def _look(report: "Callable[[Check], None]") -> None:
    from gatewayd.cli.doctor import approvals, configuration, database, link, service
    from gatewayd.cli.doctor.finding import fail
    from gatewayd.cli.progress import waiting
    from gatewayd.cli.query import own_url
    from gatewayd.config.settings import SettingsErrors, load_settings

    try:
        settings = load_settings(os.environ)
    except SettingsErrors as errors:
        for problem in errors.problems:
            report(fail("configuration", problem, "correct it; docs/operations.md has every variable"))
        return
    for check in configuration.checks(settings):
        report(check)
    if settings.link is not None:
        async for check in link.checks(settings, settings.link):
            report(check)
        return  # the databases, and what is served, are in the bundle: GET /readyz says how they are
    entries = configuration.configured(settings)
    async for check in approvals.checks(settings, entries):
        report(check)
    for entry in entries:
        async with waiting(f"looking at database {entry.name}"):
            found = [check async for check in database.checks(entry, rewriting=settings.mask_source_rewrite)]
        for check in found:
            report(msgspec.structs.replace(check, database=entry.name))
    if settings.transport == "http":
        async for check in service.checks(own_url(os.environ), entries):
            report(check)
