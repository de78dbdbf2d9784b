"""The policy's pages: text and tables beside each other, a statement tried, what would flip, publishing, history.

The page holds the text that is being written; nothing of it is kept before it is published. Each button sends all of it, and gets
the page with its answer: so it works without script, which only presses the buttons by itself.
"""

from functools import partial
from typing import Annotated, Any, Final, Literal

import msgspec
import trio
from msgspec import Meta

from gatewayd.catalog import Catalog
from gatewayd.control.policies.checked import POLICY_BYTES, CheckedPolicy, PolicyProblem, first_policy
from gatewayd.control.policies.deciding_line import PolicyLine, deciding_line
from gatewayd.control.policies.edit import NotEdited
from gatewayd.control.policies.flips import Flips
from gatewayd.control.policies.held_catalogs import catalog_heads
from gatewayd.control.policies.issue import NEWEST_POLICY, PolicyVersion
from gatewayd.control.policies.proposals import LISTED, OPEN, Proposal, Waiting
from gatewayd.control.policies.publish import NOTE_CHARACTERS, NotPublished
from gatewayd.control.policies.routes import PublishPolicy, checked, flips_of, one_version, publish, versions_of
from gatewayd.control.policies.table_view import CLASSES, SIMPLE_MASKS, Choice, MaskRow, view_of, with_choices
from gatewayd.control.policies.text_diff import diff
from gatewayd.control.projects.terms import terms_of
from gatewayd.control.web.answer import Answer, Refusal, to
from gatewayd.control.web.call import Call
from gatewayd.control.web.page import page
from gatewayd.control.web.route import Route
from gatewayd.control.web.said import said
from gatewayd.judge import ANY_SALT, judge
from gatewayd.policy.tools.expect import CaseVerdict, verdict_of

_PAGES: Final = "/projects/<project>/policy"
_EDIT: Final = "policies/pages/policy.html"
_VERSIONS: Final = "policies/pages/versions.html"
_VERSION: Final = "policies/pages/version.html"
_TRIED: Final = 100_000


class PolicyForm(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`do` names the button. `choices` are what the tables say, each a Choice in JSON."""

    yaml: Annotated[str, Meta(max_length=POLICY_BYTES)]
    do: Literal["check", "tables", "try", "flips", "publish"]
    choices: list[str] = []
    find: str = ""
    database: str = ""
    sql: Annotated[str, Meta(max_length=_TRIED)] = ""
    note: Annotated[str, Meta(max_length=NOTE_CHARACTERS)] = ""
    based_on: str = ""


class Tried(msgspec.Struct, frozen=True):
    verdict: CaseVerdict
    line: PolicyLine | None
    has_catalog: bool


async def _start(call: Call) -> Answer:
    """The policy in force; or the text of an older one, to go back to."""
    newest = await _newest(call)
    wanted = call.incoming.query.get("version")
    text = (await one_version(call, wanted)).yaml if wanted else newest.yaml
    form = PolicyForm(text, "check", based_on=str(newest.version), find=call.incoming.query.get("find", "")[:200])
    return await _shown(call, form, newest)


async def _edit(call: Call) -> Answer:
    form, newest = call.sent(PolicyForm), await _newest(call)
    match form.do:
        case "tables":
            try:
                choices = msgspec.convert([msgspec.json.decode(each) for each in form.choices], list[Choice])
                text = await trio.to_thread.run_sync(partial(with_choices, form.yaml, choices))
            except NotEdited as not_edited:
                return await _shown(call, form, newest, failed=str(not_edited))
            except (msgspec.MsgspecError, UnicodeError, RecursionError):
                raise Refusal(400, "choices: expected what the page's own fields send") from None
            return await _shown(call, msgspec.structs.replace(form, yaml=text), newest)
        case "publish":
            return await _publish(call, form, newest)
    return await _shown(call, form, newest)


async def _publish(call: Call, form: PolicyForm, newest: PolicyVersion) -> Answer:
    based_on = int(form.based_on) if form.based_on.isascii() and form.based_on.isdigit() and len(form.based_on) < 10 else 0
    if form.yaml == newest.yaml:
        return await _shown(call, form, newest, failed="This is the policy in force already.")
    try:
        done = await publish(call, PublishPolicy(form.yaml, form.note, based_on), source="console")
    except NotPublished:
        return await _shown(call, form, newest, failed="It has problems, and was not published.")
    except Refusal as refusal:
        if refusal.status not in (400, 409):
            raise
        return await _shown(call, form, newest, failed=f"Not published: {refusal.text}.", status=refusal.status)
    if isinstance(done, Waiting):
        return said(call, to(f"/projects/{call.project.project_id}/policy/proposals/{done.proposal}"), "proposed")
    return said(call, to(f"/projects/{call.project.project_id}/policy/versions/{done.version}"), "published")


async def _shown(call: Call, form: PolicyForm, newest: PolicyVersion, *, failed: str = "", status: int = 200) -> Answer:
    problems: tuple[PolicyProblem, ...] = ()
    found: CheckedPolicy | None = None
    try:
        found = await checked(call, form.yaml)
    except NotPublished as refused:
        problems = refused.problems
    catalogs = await _catalogs(call, found)
    view = await trio.to_thread.run_sync(view_of, found.policies, catalogs, form.find) if found is not None else []
    tried: Tried | None = None
    flips: Flips | None = None
    if found is not None and form.do == "try" and form.sql.strip():
        tried = await _tried(form, found, catalogs)
    if found is not None and form.do == "flips":
        flips = await flips_of(call, found)
    lines = form.yaml.splitlines()
    return page(
        call, _EDIT, status, form=form, newest=newest, problems=problems[:100], lines=lines, view=view, tried=tried, flips=flips,
        failed=failed, names=found.names if found is not None else (), classes=list(CLASSES),
        diff=await trio.to_thread.run_sync(diff, newest.yaml, form.yaml), choice=_choice, masks_offered=_masks_offered,
        proposals=await call.console.store.rows(Proposal, OPEN, call.project.project_id, LISTED),
        second_publisher=terms_of(call.project.settings).second_publisher,
    )  # fmt: skip


def _choice(what: str, database: str, name: str, column: str, value: Any) -> str:
    """The value of an option."""
    return msgspec.json.encode([what, database, name, column, value]).decode()


def _masks_offered(database: str, table: str, mask: MaskRow) -> list[tuple[str, str, bool]]:
    """The options of a column: value, word, whether it is the present one."""
    simple = [msgspec.json.encode(each).decode() for each in SIMPLE_MASKS]
    found = []
    for each in dict.fromkeys([mask.mask, mask.suggested, *simple]):
        if each:
            value = msgspec.json.decode(each)
            word = value if isinstance(value, str) else ", ".join(str(part) for part in value.values())
            suggested = " (suggested)" if each == mask.suggested else ""
            found.append((_choice("mask", database, table, mask.column, value), word + suggested, each == mask.mask))
    return found


async def _tried(form: PolicyForm, found: CheckedPolicy, catalogs: dict[str, Catalog]) -> Tried | None:
    name = form.database or found.names[0]
    policy = next((each.policy for each in found.policies.databases or () if each.name == name), None)
    if policy is None:
        return None
    catalog = catalogs.get(name)
    ask = partial(judge, form.sql, policy, catalog, salt=ANY_SALT)
    verdict = verdict_of((await trio.to_thread.run_sync(ask)).decision_to_run)
    return Tried(verdict, deciding_line(form.yaml, name, verdict), catalog is not None)


async def _catalogs(call: Call, found: CheckedPolicy | None) -> dict[str, Catalog]:
    held: dict[str, Catalog] = {}
    heads = await catalog_heads(call.console.store, call.project.project_id)
    for name in found.names if found is not None else ():
        head = heads.get(name)
        catalog = await call.console.catalogs.find(call.console.store, call.project.project_id, head) if head else None
        if catalog is not None:
            held[name] = catalog
    return held


async def _newest(call: Call) -> PolicyVersion:
    found = await call.console.store.row(PolicyVersion, NEWEST_POLICY, call.project.project_id)
    return found or PolicyVersion(0, first_policy(()), b"", "", "created", None, None, 0)


async def _versions(call: Call) -> Answer:
    before = call.incoming.query.get("before", "")
    number = int(before) if before.isascii() and before.isdigit() and len(before) < 10 else None
    found = await versions_of(call, number)
    following = f"{call.incoming.path}?before={found.next}" if found.next is not None else None
    return page(call, _VERSIONS, found=found.versions, next=following, newest=(await _newest(call)).version)


async def _version(call: Call) -> Answer:
    version = await one_version(call, call.args["version"])
    wanted = call.incoming.query.get("with") or str(version.version - 1)
    other = await one_version(call, wanted) if wanted != "0" else None
    changes = await trio.to_thread.run_sync(diff, other.yaml, version.yaml) if other is not None else []
    return page(
        call, _VERSION, version=version, lines=version.yaml.splitlines(), diff=changes, other=other.version if other else None,
        newest=(await _newest(call)).version,
    )  # fmt: skip


ROUTES: Final = (
    Route("GET", _PAGES, _start, door="person", right="project.read"),
    Route("POST", _PAGES, _edit, door="person", right="project.policy", body=PolicyForm),
    Route("GET", f"{_PAGES}/versions", _versions, door="person", right="project.read"),
    Route("GET", f"{_PAGES}/versions/<version>", _version, door="person", right="project.read"),
)
