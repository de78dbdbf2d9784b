"""Whether a gatewayd of this configuration runs already, and answers an agent."""

from collections.abc import AsyncIterator

import httpx

from gatewayd.cli.agent import NoToolAnswer, call_tool
from gatewayd.cli.doctor.canary import AGENT, SQL
from gatewayd.cli.doctor.finding import Check, fail, ok, warn
from gatewayd.cli.policyfile import DatabaseEntry


async def checks(url: str, entries: tuple[DatabaseEntry, ...]) -> AsyncIterator[Check]:
    """`url` is where this configuration serves MCP."""
    base = url.removesuffix("/mcp")
    try:
        async with httpx.AsyncClient(timeout=5, trust_env=False) as client:
            response = await client.get(f"{base}/health")
        alive = response.status_code == 200 and response.content.strip() == b'{"ok":true}'
    except httpx.ConnectError:
        yield warn("running", f"nothing listens at {base}", "start it with `gatewayd serve`, or `systemctl start gatewayd`")
        return
    except httpx.HTTPError as error:
        yield fail("running", f"{base} takes connections and does not answer ({type(error).__name__})", "look at its log")
        return
    if not alive:
        remedy = "stop what listens there, or choose another PORT"
        yield fail("running", f"{base} is no gatewayd (/health answers {response.status_code})", remedy)
        return
    yield ok("running", f"{base}/health answers")
    for entry in entries:
        arguments = {"sql": SQL, "intent": "a canary of gatewayd doctor"}
        if len(entries) > 1:
            arguments["database"] = entry.name
        try:
            answer = await call_tool(url, AGENT, "query", arguments)
        except NoToolAnswer as unanswered:
            yield fail("as an agent", str(unanswered), "look at GATEWAY_ALLOWED_HOSTS, and at its log")
            return
        if answer.is_error or '"canary":1' not in answer.text:
            remedy = "look at its log; was it started with this configuration?"
            yield Check("as an agent", "FAIL", f"{SQL}: {answer.text[:300]}", remedy, entry.name)
        else:
            yield Check("as an agent", "OK", f"{SQL} through {url}", "", entry.name)
