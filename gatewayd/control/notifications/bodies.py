"""A notice as it is sent: Standard Webhooks' JSON, or a message for Slack. Pure.

Names come from people, agents and engines. In JSON they are strings. Slack reads markup in text: `<!channel>` calls
everybody, and a bare address becomes a link. So names keep letters, digits and a few signs there; the rest becomes dots.
"""

from datetime import UTC, datetime
from typing import Final, Literal

import msgspec

from gatewayd.control.notifications.kinds import WORDS
from gatewayd.control.notifications.outbox import Told

Shape = Literal["standard", "slack"]

_NAME_CHARACTERS: Final = 80
_KEPT: Final = frozenset(" -_")
_FACTS: Final = (("database", "database"), ("token", "token"), ("agent_claims", "the agent calls itself"), ("act", "what"))
"""The facts that a person is told in words, in this order; ids are behind the link."""


def body_of(told: Told, shape: Shape, public_url: str) -> bytes:
    return slack(told, public_url) if shape == "slack" else standard(told, public_url)


def standard(told: Told, public_url: str) -> bytes:
    """`{"type", "timestamp", "data"}`; `data` has the ids of organisation and project, the facts, and the link."""
    data = {"organisation": told.organisation, "project": told.project} | told.facts | {"link": public_url + told.path}
    moment = datetime.fromtimestamp(told.made_ms / 1000, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    return msgspec.json.encode({"type": told.type, "timestamp": moment, "data": data})


def slack(told: Told, public_url: str) -> bytes:
    """An incoming webhook's message: one line, and the link."""
    text = f"{sentence(told)}\n{public_url}{told.path}"
    return msgspec.json.encode({"text": _escaped(text), "mrkdwn": False, "link_names": False, "unfurl_links": False})


def sentence(told: Told) -> str:
    """In words, on one line: for chat and mail."""
    parts = [f"{words} {tame(told.facts[name])}" for name, words in _FACTS if told.facts.get(name)]
    return f"gatewayd: {WORDS[told.type]}{' (' + ', '.join(parts) + ')' if parts else ''}"


def tame(name: str) -> str:
    """A name that means nothing to what shows it: no markup, no address, no line."""
    return "".join(each if each.isalnum() or each in _KEPT else "·" for each in name[:_NAME_CHARACTERS])


def _escaped(text: str) -> str:
    """The three characters that Slack gives a meaning."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
