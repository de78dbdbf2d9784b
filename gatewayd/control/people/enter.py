"""Beginning a session: the new cookie, the row, and the answer that carries it."""

from typing import final

from gatewayd.control.people import sessions
from gatewayd.control.settings import ControlSettings
from gatewayd.control.store.store import Transaction
from gatewayd.control.web.answer import Answer
from gatewayd.control.web.call import Call


@final
class Entered:
    """Made before the transaction, so that it can run again. The session that the browser had before ends."""

    def __init__(self, call: Call, person_id: str, method: str) -> None:
        console = call.console
        self._cookie = sessions.new_cookie(console.entropy(32))
        self._session_id = console.new_id()
        self._person_id = person_id
        self._method = method
        self._now_ms = console.now_ms()
        self._visitor = call.incoming.visitor
        self._settings = console.settings
        self._before = call.session.session_hash if call.is_signed_in else None

    async def begin(self, tx: Transaction, org_id: str | None) -> None:
        if self._before is not None:
            await tx.run(sessions.END, self._before)
        await sessions.begin(
            tx, self._cookie, self._session_id, self._person_id, org_id, self._now_ms, self._method, self._visitor
        )

    def with_cookie(self, answer: Answer) -> Answer:
        return answer.with_header("Set-Cookie", set_cookie(self._cookie, self._settings))


def enter(call: Call, person_id: str, method: str) -> Entered:
    return Entered(call, person_id, method)


def set_cookie(value: str, settings: ControlSettings) -> str:
    """For the life of the browser: the store knows when it ends. An empty value removes it."""
    words = [f"{settings.cookie(sessions.COOKIE)}={value}", "Path=/", "HttpOnly", "SameSite=Lax"]
    if settings.is_https:
        words.append("Secure")
    if not value:
        words.append("Max-Age=0")
    return "; ".join(words)
