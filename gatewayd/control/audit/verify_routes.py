"""The page that checks a proof in the browser: for anybody, empty; for one query, with its proof filled in."""

from typing import Final

from gatewayd.control.audit.proof_text import proof_of
from gatewayd.control.web.answer import Answer, Refusal
from gatewayd.control.web.call import Call
from gatewayd.control.web.page import page
from gatewayd.control.web.route import Route

_PAGE: Final = "audit/pages/verify.html"


async def _anybody(call: Call) -> Answer:
    return page(call, _PAGE, query="", proof="", trusted="")
