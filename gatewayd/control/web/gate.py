"""The gate: every request passes here before its handler, in this order: host, origin of writes, door, organisation, project,
right, fresh sign-in.

What one may not know of answers 404, exactly as if it were not there; what one may see and not do answers 403.
"""

from collections.abc import Mapping
from typing import Final
from urllib.parse import quote, urlsplit

import msgspec

from gatewayd.audit.ids import is_ulid
from gatewayd.config.environment import is_loopback
from gatewayd.control.api_keys.api_key import find_key
from gatewayd.control.console import Console
from gatewayd.control.people.person import BY_ID, MEMBERSHIPS, Membership, Person
from gatewayd.control.people.rights import Right, in_organisation, in_project
from gatewayd.control.people.sessions import COOKIE, Session, find
from gatewayd.control.projects.find import FIND, ROLE, Project, ProjectRoleRow
from gatewayd.control.web.answer import Redirect, Refusal, own_path
from gatewayd.control.web.call import Call, Incoming
from gatewayd.control.web.route import Route

NOTHING_HERE: Final = "there is nothing here"


class Standing(msgspec.Struct, frozen=True):
    """A person who asks, with what they belong to."""

    person: Person
    session: Session | None
    membership: Membership | None
    memberships: tuple[Membership, ...]
    scopes: frozenset[Right] | None = None  # of an API key; None: no narrower than the person
    key_project: str | None = None
    key_id: str | None = None

    def narrowed(self, rights: frozenset[Right]) -> frozenset[Right]:
        return rights if self.scopes is None else rights & self.scopes


async def let_in(console: Console, route: Route, incoming: Incoming, args: Mapping[str, str]) -> Call:
    """Raises Refusal or Redirect."""
    check_host(console, incoming)
    if route.door != "key" and route.method != "GET":
        check_origin(console, incoming)
    if route.door == "open":
        standing = await signed_in(console, incoming)
        if standing is None:
            return Call(console, incoming, args)
        return _call(console, incoming, args, standing, None, _organisation_rights(standing))
    standing = await (signed_in if route.door == "person" else with_key)(console, incoming)
    if standing is None:
        if route.door == "key":
            raise Refusal(401, "expected Authorization: Bearer <API key>", headers=(("WWW-Authenticate", "Bearer"),))
        raise Redirect(_with_next("/sign-in", incoming.target if route.method == "GET" else "/"))
    project, rights = await _rights(console, standing, args)
    if route.right is not None and route.right not in rights:
        if project is None and args.get("project") is not None:
            raise Refusal(404, NOTHING_HERE)
        raise Refusal(403, "your role does not allow this")
    call = _call(console, incoming, args, standing, project, rights)
    if route.again and not call.session.is_fresh(console.now_ms()):
        raise Redirect(_with_next("/again", incoming.target if route.method == "GET" else _form_page(console, incoming)))
    return call


async def signed_in(console: Console, incoming: Incoming) -> Standing | None:
    """Whose session the cookie is. Also for what passes by the routes: live streams ask it with the head of their request."""
    cookie = _cookie(incoming.headers.get("cookie", ""), console.settings.cookie(COOKIE))
    if cookie is None:
        return None
    session = await find(console.store, cookie, console.now_ms())
    if session is None:
        return None
    return await _standing(console, session.person_id, session, session.org_id)


async def with_key(console: Console, incoming: Incoming) -> Standing | None:
    """Whose API key the bearer is; the key may no more than its person may now, and no more than its scopes."""
    scheme, _, given = incoming.headers.get("authorization", "").partition(" ")
    if scheme.lower() != "bearer":
        return None
    key = await find_key(console, given.strip())
    if key is None:
        return None
    standing = await _standing(console, key.person_id, None, key.org_id)
    if standing is None or standing.membership is None:
        return None
    return msgspec.structs.replace(standing, scopes=key.rights, key_project=key.project_id, key_id=key.key_id)


def check_host(console: Console, incoming: Incoming) -> None:
    """Only the public name is served: another one is a page that rebinds its DNS name, or a proxy that is set up wrongly."""
    settings = console.settings
    host = incoming.headers.get("host", "").lower()
    if host == settings.public_host:
        return
    if incoming.method == "GET" and is_loopback(settings.host) and is_loopback(urlsplit(f"//{host}").hostname or ""):
        raise Redirect(settings.public_url + own_path(incoming.target))
    raise Refusal(421, f"this is not {settings.public_url}")


def check_origin(console: Console, incoming: Incoming) -> None:
    """A write comes from a page of ours: the browser says so. One that says nothing changes nothing."""
    site = incoming.headers.get("sec-fetch-site")
    origin = incoming.headers.get("origin")
    if site is None and origin is None:
        raise Refusal(403, "the request does not say where it comes from (neither Sec-Fetch-Site nor Origin)")
    if (site is not None and site != "same-origin") or (origin is not None and origin != console.settings.public_url):
        raise Refusal(403, "the request comes from another site")


async def project_of(console: Console, standing: Standing, project_id: str) -> tuple[Project, frozenset[Right]] | None:
    """The project, if the person may know of it, and their rights in it."""
    if standing.membership is None or not is_ulid(project_id):
        return None
    if standing.key_project is not None and standing.key_project != project_id.upper():
        return None
    project = await console.store.row(Project, FIND, standing.membership.org_id, project_id)
    if project is None:
        return None
    own = await console.store.row(ProjectRoleRow, ROLE, project.project_id, standing.person.person_id)
    rights = standing.narrowed(in_project(standing.membership.role, own.role if own else None))
    return (project, rights) if rights else None


async def _rights(console: Console, standing: Standing, args: Mapping[str, str]) -> tuple[Project | None, frozenset[Right]]:
    named = args.get("project")
    if named is None:
        return None, _organisation_rights(standing)
    found = await project_of(console, standing, named)
    if found is None:
        raise Refusal(404, NOTHING_HERE)
    return found[0], found[1] | _organisation_rights(standing)


def _organisation_rights(standing: Standing) -> frozenset[Right]:
    """A key for one project has none outside of it but to know where it is."""
    if standing.membership is None:
        return frozenset()
    rights = standing.narrowed(in_organisation(standing.membership.role))
    return rights & {"org.read"} if standing.key_project is not None else rights


async def _standing(console: Console, person_id: str, session: Session | None, org_id: str | None) -> Standing | None:
    person = await console.store.row(Person, BY_ID, person_id)
    if person is None or person.disabled_ms is not None:
        return None
    memberships = tuple(await console.store.rows(Membership, MEMBERSHIPS, person_id))
    membership = next((each for each in memberships if each.org_id == org_id), None)
    if membership is None and session is not None and memberships:
        membership = memberships[0]  # removed from the one that was looked at, or none was chosen yet
    return Standing(person, session, membership, memberships)


def _call(
    console: Console,
    incoming: Incoming,
    args: Mapping[str, str],
    standing: Standing,
    project: Project | None,
    rights: frozenset[Right],
) -> Call:
    return Call(
        console,
        incoming,
        args,
        person=standing.person,
        session=standing.session,
        membership=standing.membership,
        memberships=standing.memberships,
        project=project,
        rights=rights,
        key_id=standing.key_id,
        key_project=standing.key_project,
    )


def _cookie(header: str, name: str) -> str | None:
    """The cookie's value; two of one name are none: one of them is somebody else's."""
    found = [value for key, _, value in (part.strip().partition("=") for part in header.split(";")) if key == name]
    return found[0] if len(found) == 1 and found[0] else None


def _with_next(path: str, target: str) -> str:
    return path if target == "/" else f"{path}?next={quote(own_path(target), safe='/')}"


def _form_page(console: Console, incoming: Incoming) -> str:
    """The page whose form was sent, as the browser's Referer says."""
    referer = urlsplit(incoming.headers.get("referer", ""))
    if f"{referer.scheme}://{referer.netloc}" != console.settings.public_url:
        return "/"
    return own_path(referer.path + (f"?{referer.query}" if referer.query else ""))
