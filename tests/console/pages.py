"""Every page of the console, a line each: `tests/console/test_every_page.py` holds them all, `make pictures` draws them.

`path` may name places of the world (`{shop}`); `parts` are what must be there by role and accessible name, as `role:name`.
"""

from typing import Final

import msgspec


class PageCase(msgspec.Struct, frozen=True):
    """`who` None: nobody is signed in. `picture` False: it looks like another one."""

    name: str
    path: str
    heading: str
    parts: tuple[str, ...] = ()
    who: str | None = "ada"
    status: int = 200
    picture: bool = True


PAGES: Final = (
    PageCase("sign-in", "/sign-in", "Sign in", ("textbox:Mail address", "textbox:Password", "button:Sign in"), who=None),
    PageCase("welcome", "/welcome/{invitation}", "You are invited", ("textbox:Your name", "button:Join"), who=None),
    PageCase("again", "/again?next=/keys", "Sign in again", ("textbox:Password of ada@example.com", "button:Go on")),
    PageCase("projects", "/", "Projects", ("table:Projects", "link:New project")),
    PageCase("projects-none", "/", "Projects", ("heading:No project that you may see",), who="mary", picture=False),
    PageCase("new-project", "/new-project", "New project", ("textbox:Name", "button:Make the project")),
    PageCase("overview", "/projects/{shop}", "Shop", ("table:Databases", "link:Add a database")),
    PageCase("overview-new", "/projects/{empty}", "Warehouse", ("heading:From here to the first query", "link:Connect an agent")),
    PageCase("overview-auditor", "/projects/{shop}", "Shop", ("table:Databases",), who="carl", picture=False),
    PageCase("add-database", "/projects/{shop}/add-database", "Add a database", ("textbox:Name", "button:Add the database")),
    PageCase("database", "/projects/{shop}/databases/{database}", "main", ("table:What the test found",)),
    PageCase(
        "connect",
        "/projects/{shop}/connect",
        "Connect",
        ("table:Tokens", "button:Make the token", "region:Configuration for Claude Code"),
    ),
    PageCase("connect-none", "/projects/{empty}/connect", "Connect", ("heading:No token yet",), picture=False),
    PageCase("gateways", "/projects/{shop}/gateways", "Gateways", ("table:Gateways", "button:Make the command")),
    PageCase("gateways-none", "/projects/{empty}/gateways", "Gateways", ("heading:No gateway yet",), picture=False),
    PageCase("gateway", "/projects/{shop}/gateways/{gateway}", "Frankfurt", ("table:States over time",)),
    PageCase("gateway-halted", "/projects/{shop}/gateways/{halted}", "Dublin, standby", ("heading:Over time",), picture=False),
    PageCase("approval-gate", "/projects/{shop}/approval-gate", "Approval gate", ("button:Make the bearer",), picture=False),
    PageCase("taint", "/projects/{shop}/taint", "Tainted grants", ("table:Tainted grants",)),
    PageCase("taint-none", "/projects/{empty}/taint", "Tainted grants", ("heading:None",), picture=False),
    PageCase("project-settings", "/projects/{shop}/settings", "Project settings", ("button:Save", "table:Roles in this project")),
    PageCase("people", "/people", "People", ("table:People", "table:Open invitations", "button:Make an invitation")),
    PageCase("people-auditor", "/people", "People", ("table:People",), who="carl", picture=False),
    PageCase("keys", "/keys", "API keys", ("table:API keys", "button:Make the key")),
    PageCase("trail", "/trail", "What people did", ("table:What people did",)),
    PageCase("notifications", "/notifications", "Notifications", ("table:Webhooks", "button:Add the webhook")),
    PageCase(
        "webhook", "/notifications/webhooks/{webhook}", "Webhook", ("table:Deliveries", "button:Send a test", "button:Save"),
    ),
    PageCase("sign-in-providers", "/sign-in-providers", "Sign-in", ("table:Providers", "button:Add the provider")),
    PageCase("settings", "/settings", "Settings", ("heading:Stop everything", "button:Save")),
    PageCase("account", "/account", "Account", ("table:Sessions", "textbox:Time zone", "button:Set the password")),
    PageCase("audit", "/projects/{shop}/audit", "Audit", ("button:Filter", "link:Statistics", "link:CSV", "heading:Newest")),
    PageCase("audit-found", "/projects/{shop}/audit?agent=cursor&decision=DENY", "Audit", ("heading:Found",), picture=False),
    PageCase("audit-live", "/projects/{shop}/audit?live=1", "Audit", ("link:Stop following",), picture=False),
    PageCase("audit-statistics", "/projects/{shop}/audit/statistics?kind=table&days=7", "Statistics", ("link:Tables",)),
    PageCase("query", "/projects/{shop}/audit/queries/{query}", "Refused statement", ("link:Check its proof", "heading:Proof")),
    PageCase("query-hostile", "/projects/{shop}/audit/queries/{hostile_query}", "Statement", picture=False),
    PageCase("query-long", "/projects/{shop}/audit/queries/{long_query}", "Refused statement", picture=False),
    PageCase("verify", "/projects/{shop}/audit/queries/{query}/verify", "Check a proof"),
    PageCase("verify-anybody", "/verify", "Check a proof", who=None, picture=False),
    PageCase("nothing-here", "/projects/{shop}x", "Nothing here", ("link:To the projects",), status=404),
    PageCase("not-allowed", "/settings", "Not allowed", ("link:To the projects",), who="carl", status=403, picture=False),
    PageCase("approvals", "/projects/{shop}/approvals", "Approvals", ("link:Waiting", "link:Decided"), who="grace"),
    PageCase("approvals-decided", "/projects/{shop}/approvals/over", "Approvals", ("link:Decided",), who="grace"),
    PageCase("approvals-none", "/projects/{empty}/approvals", "Approvals", ("heading:Nothing waits",), picture=False),
    PageCase(
        "approval", "/projects/{shop}/approvals/{waiting}", "Write that asks",
        ("button:Approve once", "button:Deny", "textbox:Why not optional", "region:SQL"), who="grace",
    ),
    PageCase("approval-decided", "/projects/{shop}/approvals/{approved}", "Write that asks", ("heading:Decided",), picture=False),
    PageCase(
        "approval-together", "/projects/{shop}/approvals/{together}", "Write that asks", ("button:Approve once", "button:Deny")
    ),
    PageCase("approval-given", "/projects/{shop}/approvals/{together}", "Write that asks", ("button:Approve again",), who="grace",
             picture=False),
    PageCase("reviewers", "/projects/{shop}/reviewers", "Reviewers", ("table:Rules", "button:Add the rule", "heading:Finance")),
    PageCase("reviewers-none", "/projects/{empty}/reviewers", "Reviewers", ("button:Make the group",), picture=False),
    PageCase("reviewers-read", "/projects/{shop}/reviewers", "Reviewers", ("table:Rules",), who="carl", picture=False),
    PageCase(
        "grants", "/projects/{shop}/shape-grants", "Grants for shapes",
        ("table:Grants", "button:Revoke the grant of Grace Hopper"),
    ),
    PageCase("grants-none", "/projects/{empty}/shape-grants", "Grants for shapes", ("heading:No grant yet",), picture=False),
    PageCase("approval-hostile", "/projects/{shop}/approvals/{hostile_write}", "Write that asks", picture=False),
    PageCase("approval-long", "/projects/{shop}/approvals/{long_write}", "Write that asks", picture=False),
    PageCase(
        "policy", "/projects/{shop}/policy", "Policy",
        ("textbox:Policy as YAML", "heading:As tables", "button:Show what would change", "button:What becomes of it?"),
    ),
    PageCase("policy-read", "/projects/{shop}/policy", "Policy", ("heading:As tables",), who="carl", picture=False),
    PageCase(
        "proposal", "/projects/{shop}/policy/proposals/{proposal}", "Publication that waits",
        ("button:Confirm and publish", "button:Refuse", "button:Show what would change"),
    ),
    PageCase("proposal-flips", "/projects/{shop}/policy/proposals/{proposal}?flips=1", "Publication that waits", picture=False),
    PageCase("policy-history", "/projects/{shop}/policy/versions", "History of the policy"),
    PageCase("policy-version", "/projects/{shop}/policy/versions/1", "Version 1", ("heading:Text",), picture=False),
)  # fmt: skip
