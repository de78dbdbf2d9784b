"""The policies that generated statements are decided under. All but `OPEN` hide the same, so one pair of databases serves."""

from typing import Final

import yaml

from gatewayd.policy.file.load import load_policies
from gatewayd.policy.file.model import Policy

_HIDDEN: Final = {"secrets": "deny", "hr.*": "deny", "events_2023": "deny", "animals_rare": "deny"}
_READ: Final = (
    "users",
    "orders",
    "events",
    "animals",
    "plants",
    "logs",
    "active_users",
    "order_sums",
    "events_2024",
    "app.*",
    "pg_catalog.*",
)
_WRITTEN: Final = ("notes", "stock", "logs", "plants", "app.note_view", "orders", "made")
_LIMITS: Final = {"statement_timeout_ms": 500, "lock_timeout_ms": 500, "max_rows": 200}


def _policy(**sections: object) -> Policy:
    single = load_policies(yaml.safe_dump({"limits": _LIMITS, **sections}), {}).single
    assert single is not None
    return single


HIDING: Final = _policy(
    table_access={"default": "read", "tables": _HIDDEN},
    functions={"allow": ["public.slug", "public.plus_one", "public.user_count", "public.shout"]},
)
LISTED: Final = _policy(
    table_access={"default": "deny", "tables": {**dict.fromkeys(_READ, "read"), "notes": "read_write", **_HIDDEN}},
    functions={"allow": ["tools.twice"]},
    guardrails={"block_unqualified_dml": False, "block_ddl": True, "block_dml": False},
)
WRITING: Final = _policy(
    table_access={"default": "read", "tables": {**dict.fromkeys(_WRITTEN, "read_write"), **_HIDDEN}},
    functions={"allow": ["public.slug", "public.plus_one"]},
    guardrails={"block_unqualified_dml": False, "block_ddl": False, "block_dml": False},
)
OPEN: Final = _policy(
    table_access={"default": "read"}, guardrails={"block_unqualified_dml": False, "block_ddl": False, "block_dml": False}
)

HIDING_SOMETHING: Final[dict[str, Policy]] = {"hiding": HIDING, "listed": LISTED, "writing": WRITING}
ALL: Final[dict[str, Policy]] = {**HIDING_SOMETHING, "open": OPEN}
