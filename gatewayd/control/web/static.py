"""Files of ours: one stylesheet, one script. Their address holds a hash, so browsers may keep them."""

from typing import Final

from gatewayd.control.web.answer import Answer, Refusal, to
from gatewayd.control.web.call import Call
from gatewayd.control.web.page import STATIC, asset, asset_bytes
from gatewayd.control.web.route import Route


async def static(call: Call) -> Answer:
    name = call.args["name"]
    if name not in STATIC:
        raise Refusal(404, "there is nothing here")
    if call.incoming.path != asset(name):
        return to(asset(name))
    headers = (("Cache-Control", "public, max-age=31536000, immutable"), ("X-Content-Type-Options", "nosniff"))
    return Answer(200, asset_bytes(name), STATIC[name], headers)


ROUTES: Final = (Route("GET", "/static/<digest>/<name>", static, door="open"),)
