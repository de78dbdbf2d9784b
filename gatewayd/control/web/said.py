"""What a page says once after a redirect: `said(call, to(path), "saved")`. The browser carries a key, never a text.

A cookie and not a field of the address: a link that somebody made up could otherwise say that something was done.
"""

from typing import Final

from gatewayd.control.web.answer import Answer
from gatewayd.control.web.call import Call, Incoming

SAID: Final = {
    "saved": "Saved.",
    "removed": "Removed.",
    "revoked": "Revoked. Gateways refuse it from their next poll on.",
    "key-revoked": "Revoked. The key opens nothing any more.",
    "password-set": "The new password holds. Your other sessions have ended.",
    "ended": "Ended.",
    "paused": "Paused. Gateways refuse every call from their next poll on.",
    "resumed": "Resumed. Gateways answer again from their next poll on.",
    "all-paused": "Every project is paused. Gateways refuse every call from their next poll on.",
    "all-resumed": "Every project answers again, from its gateways' next poll on.",
    "tested": "Queued. What it answers is in the list below within seconds.",
    "seen": "Noted that you have seen it.",
    "cleared": "Cleared.",
    "published": "Published. Gateways enforce it from their next poll on.",
    "proposed": "It waits for a second person, who looks at it here and publishes it. Nothing has changed yet.",
    "proposal-refused": "Refused. Nothing was published.",
    "decided": "Decided. The gateway that waits hears of it at once.",
    "approved in part": "Your approval is kept. Others are still asked, and the write waits for them.",
    "granted": "Approved, and granted for this shape. It is in the list of grants, where it can be revoked.",
    "grant-revoked": "Revoked. From now on each write of this shape asks a person again.",
    "decided elsewhere": "Your decision came too late: somebody else had decided, or the time was over. It stands as shown here.",
}
"""Key to sentence. To say something new: a line here."""


def said(call: Call, answer: Answer, key: str) -> Answer:
    """The answer, after which the next page says SAID[key]."""
    assert key in SAID
    return answer.with_header("Set-Cookie", _cookie(call, key, "60"))


def what_was_said(call: Call) -> str | None:
    name = _name(call)
    found = [value for key, _, value in _pairs(call.incoming) if key == name]
    return SAID.get(found[0]) if len(found) == 1 else None


def forget(call: Call) -> tuple[str, str]:
    """The header that takes the key away again."""
    return ("Set-Cookie", _cookie(call, "", "0"))


def _pairs(incoming: Incoming) -> list[tuple[str, str, str]]:
    return [part.strip().partition("=") for part in incoming.headers.get("cookie", "").split(";")]


def _name(call: Call) -> str:
    return call.console.settings.cookie("gatewayd-said")


def _cookie(call: Call, value: str, seconds: str) -> str:
    secure = "; Secure" if call.console.settings.is_https else ""
    return f"{_name(call)}={value}; Path=/; HttpOnly; SameSite=Strict; Max-Age={seconds}{secure}"
