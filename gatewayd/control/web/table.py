"""The whole surface, put together: each folder has a ROUTES of its own; add it here. EXCHANGES pass by quart (surface.py)."""

from collections.abc import Mapping
from typing import Final

from gatewayd.control.account.routes import ROUTES as ACCOUNT
from gatewayd.control.api_keys.routes import ROUTES as API_KEYS
from gatewayd.control.approvals.bearer_routes import ROUTES as APPROVAL_BEARERS
from gatewayd.control.approvals.gate_service import PREFIX as GATE_PREFIX
from gatewayd.control.approvals.gate_service import gate_service
from gatewayd.control.approvals.grant_routes import ROUTES as SHAPE_GRANTS
from gatewayd.control.approvals.page_routes import ROUTES as APPROVAL_PAGES
from gatewayd.control.approvals.reviewer_routes import ROUTES as REVIEWERS
from gatewayd.control.approvals.routes import ROUTES as APPROVALS
from gatewayd.control.approvals.times import ROUTES as APPROVAL_TIMES
from gatewayd.control.audit.page_routes import ROUTES as AUDIT_PAGES
from gatewayd.control.audit.routes import ROUTES as AUDIT
from gatewayd.control.databases.forms import ROUTES as DATABASE_FORMS
from gatewayd.control.databases.routes import ROUTES as DATABASES
from gatewayd.control.gateways.link_service import PREFIX, link_service
from gatewayd.control.gateways.routes import ROUTES as GATEWAYS
from gatewayd.control.notifications.page_routes import ROUTES as NOTIFICATION_PAGES
from gatewayd.control.notifications.routes import ROUTES as NOTIFICATIONS
from gatewayd.control.organisation.routes import ROUTES as ORGANISATION
from gatewayd.control.organisation.settings import ROUTES as SETTINGS
from gatewayd.control.people.providers import ROUTES as PROVIDERS
from gatewayd.control.people.routes import ROUTES as PEOPLE
from gatewayd.control.policies.page_routes import ROUTES as POLICY_PAGES
from gatewayd.control.policies.proposal_routes import ROUTES as POLICY_PROPOSALS
from gatewayd.control.policies.routes import ROUTES as POLICIES
from gatewayd.control.projects.change import ROUTES as PROJECT_CHANGES
from gatewayd.control.projects.new import ROUTES as NEW_PROJECT
from gatewayd.control.projects.overview import ROUTES as OVERVIEW
from gatewayd.control.projects.routes import ROUTES as PROJECTS
from gatewayd.control.projects.settings import ROUTES as PROJECT_SETTINGS
from gatewayd.control.proxy.service import PREFIX as AGENTS_PREFIX
from gatewayd.control.proxy.service import mcp_proxy
from gatewayd.control.taint.routes import ROUTES as TAINT
from gatewayd.control.tokens.connect import ROUTES as CONNECT
from gatewayd.control.tokens.routes import ROUTES as TOKENS
from gatewayd.control.trail.page import ROUTES as TRAIL_PAGE
from gatewayd.control.trail.routes import ROUTES as TRAIL
from gatewayd.control.web.api import openapi_route
from gatewayd.control.web.live import PREFIX as LIVE
from gatewayd.control.web.live import live
from gatewayd.control.web.route import Route
from gatewayd.control.web.static import ROUTES as STATIC

_ROUTES: Final[tuple[Route, ...]] = (
    *STATIC,
    *PEOPLE,
    *ACCOUNT,
    *ORGANISATION,
    *SETTINGS,
    *PROVIDERS,
    *NOTIFICATIONS,
    *NOTIFICATION_PAGES,
    *TRAIL,
    *TRAIL_PAGE,
    *API_KEYS,
    *PROJECTS,
    *PROJECT_CHANGES,
    *NEW_PROJECT,
    *OVERVIEW,
    *PROJECT_SETTINGS,
    *DATABASES,
    *DATABASE_FORMS,
    *POLICIES,
    *CONNECT,
    *POLICY_PAGES,
    *POLICY_PROPOSALS,
    *TOKENS,
    *GATEWAYS,
    *APPROVALS,
    *APPROVAL_BEARERS,
    *APPROVAL_TIMES,
    *SHAPE_GRANTS,
    *REVIEWERS,
    *APPROVAL_PAGES,
    *AUDIT,
    *AUDIT_PAGES,
    *TAINT,
)

ROUTES: Final[tuple[Route, ...]] = (*_ROUTES, openapi_route(_ROUTES))

# path prefix -> `async def handler(console, exchange, incoming, stop)`, for what must not go through quart
EXCHANGES: Final[Mapping[str, object]] = {
    AGENTS_PREFIX: mcp_proxy,
    PREFIX: link_service,
    GATE_PREFIX: gate_service,
    LIVE: live,
}
