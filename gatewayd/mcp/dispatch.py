"""The tools and their calls, shared by HTTP and stdio and by both protocol eras (decision 5, docs/mcp.md).

Owns the table of tools, the limit on calls in flight and the note of each new client. What the eras add around a result is in
`handshake.py` and `stateless.py`; what a tool does is in `tools/`.
"""

from collections.abc import Awaitable, Callable, Hashable, Mapping, Sequence
from itertools import product
from typing import Any, Final, Literal, final, get_args

import msgspec
import trio

from gatewayd import log
from gatewayd.audit.events import AGENT_NAME_CHARACTERS, AGENT_VERSION_CHARACTERS, Agent
from gatewayd.fairness.admission import Admission, AdmissionStatistics, CallLimits, CallRefusal
from gatewayd.mcp.known_clients import KnownClients
from gatewayd.mcp.messages import INTERNAL_ERROR, INVALID_PARAMS, CallParams, ClientInfo, Id, ProtocolError, is_object

RETRY_AFTER_S: Final = 1

METHODS: Final = ("initialize", "ping", "server/discover", "tools/call", "tools/list", "other")
RequestOutcome = Literal["answered", "tool_error", "refused", "error", "cancelled"]
"""How a request ended: with a result, with a result with isError (such as a denial), refused for load, with a JSON-RPC error, or
cancelled."""

SendProgress = Callable[[float, float | None, str | None], Awaitable[None]]


class ToolCall(msgspec.Struct, frozen=True):
    """One call of a tool. `arguments` is the raw JSON object. `progress` is set if the client asked for it. `caller` is the key
    for fair sharing; `address` is the client's, empty if it has none."""

    arguments: msgspec.Raw
    agent: Agent
    progress: SendProgress | None = None
    caller: Hashable = None
    address: str = ""
    place: "RunningPlace | None" = None


@final
class RunningPlace:
    """A call's slot, which it may give up while it waits for a person: a `PlaceOfCall`."""

    __slots__ = ("_admission", "_caller", "_is_taken")

    def __init__(self, admission: Admission, caller: Hashable) -> None:
        self._admission = admission
        self._caller = caller
        self._is_taken = True

    def give_up(self) -> None:
        """Frees the slot while the call is held; may be called again."""
        if self._is_taken:
            self._is_taken = False
            self._admission.leave(self._caller)

    async def take_back(self) -> None:
        """Waits for a slot again."""
        if not self._is_taken:
            await self._admission.come_back(self._caller)
            self._is_taken = True


class ToolResult(msgspec.Struct, frozen=True):
    """`text` is one JSON document, put into the answer as it is. `content` replaces it (any JSON blocks) where not None."""

    text: str
    is_error: bool = False
    content: list[Any] | None = None


class Tool(msgspec.Struct, frozen=True):
    """One tool as clients see it, and what its call does. `input_schema` is JSON Schema."""

    name: str
    title: str
    description: str
    input_schema: dict[str, Any]
    annotations: dict[str, Any]
    call: Callable[[ToolCall], Awaitable[ToolResult]]


class DispatchStatistics(msgspec.Struct, frozen=True):
    """Counts of one dispatch, all of the same moment."""

    calls: AdmissionStatistics
    failed: int  # calls that a bug ended with -32603, since start
    requests: Mapping[tuple[str, RequestOutcome], int]  # since start, by method and outcome; all of them are there from the start


@final
class Dispatch:
    """`tools` is called for each request, because a policy reload may change descriptions. It should return the same object while
    nothing has changed, because the encoded list is cached for that object."""

    def __init__(
        self,
        server_name: str,
        version: str,
        tools: Callable[[], Sequence[Tool]],
        instructions: str | None = None,
        *,
        limits: CallLimits | None = None,
        refusing: Callable[[], tuple[str, str] | None] = lambda: None,
        clients: KnownClients | None = None,
    ) -> None:
        self.server_info: Final = {"name": server_name, "version": version}
        self.server_meta: Final = msgspec.Raw(msgspec.json.encode({"io.modelcontextprotocol/serverInfo": self.server_info}))
        self.instructions: Final = instructions
        self._tools: Final = tools
        self._listed: Sequence[Tool] | None = None
        self._by_name: dict[str, Tool] = {}
        self._list_json = msgspec.Raw(b"[]")
        self._admission: Final = Admission(limits or CallLimits())
        self._refusing: Final = refusing
        self._clients: Final = clients or KnownClients()
        self._failed = 0
        self._requests: Final[dict[tuple[str, RequestOutcome], int]] = dict.fromkeys(
            product(METHODS, get_args(RequestOutcome)), 0
        )

    def count(self, method: str, outcome: RequestOutcome) -> None:
        """Counts a request by how it ended. Tool calls that reach `call` are counted there."""
        self._requests[method if method in METHODS else "other", outcome] += 1

    def tools_json(self) -> msgspec.Raw:
        """The array of `tools/list`, in the table's order."""
        self._refresh()
        return self._list_json

    def drain(self) -> None:
        """Refuses new calls with a tool error; calls in flight continue."""
        self._admission.drain()

    def statistics(self) -> DispatchStatistics:
        """The counts now."""
        return DispatchStatistics(self._admission.statistics(), self._failed, self._requests)

    async def call(
        self, id_: Id, params: CallParams, agent: Agent, caller: Hashable, progress: SendProgress | None, address: str = ""
    ) -> ToolResult | ProtocolError:
        """Runs one tool call under the limits. It waits in the queue of `caller`. Cancelled: the tool is cancelled and the slot
        is freed."""
        outcome: RequestOutcome = "error"
        try:
            self._refresh()
            tool = self._by_name.get(params.name)
            if tool is None:
                return ProtocolError(INVALID_PARAMS, f"unknown tool `{params.name[:128]}`", id_)
            if not is_object(params.arguments):
                return ProtocolError(INVALID_PARAMS, "`arguments` must be an object", id_)
            stopped = self._refusing()
            if stopped is not None:
                outcome = "refused"
                return _stopped(*stopped)
            refusal = await self._admission.enter(caller, len(memoryview(params.arguments)))
            if refusal is not None:
                outcome = "refused"
                return _refused(refusal)
            place = RunningPlace(self._admission, caller)
            try:
                result = await tool.call(ToolCall(params.arguments, agent, progress, caller, address, place))
            except Exception as bug:  # the one place that catches bugs of tools: they must not end other callers' connections
                self._failed += 1
                log.error(log.UNEXPECTED_FAILURE, tool=tool.name, error_class=type(bug).__name__, at=_where(bug))
                return ProtocolError(INTERNAL_ERROR, "internal error; the operator's log has it", id_)
            finally:
                place.give_up()
            outcome = "tool_error" if result.is_error else "answered"
            return result
        except trio.Cancelled:
            outcome = "cancelled"
            raise
        finally:
            self.count("tools/call", outcome)

    def note_client(self, agent: Agent, protocol_version: str) -> None:
        """Logs each new client once."""
        self._clients.note(agent, protocol_version)

    def _refresh(self) -> None:
        tools = self._tools()
        if tools is self._listed:
            return
        self._listed = tools
        self._by_name = {tool.name: tool for tool in tools}
        self._list_json = msgspec.Raw(msgspec.json.encode([_described(tool) for tool in tools]))


def agent_of(client: ClientInfo | msgspec.UnsetType, token_id: str | None) -> Agent:
    """The agent, cut to the limits of an audit row."""
    if isinstance(client, msgspec.UnsetType):
        return Agent(None, None, token_id)
    return Agent(client.name[:AGENT_NAME_CHARACTERS], client.version[:AGENT_VERSION_CHARACTERS], token_id)


def _described(tool: Tool) -> dict[str, Any]:
    return {
        "name": tool.name,
        "title": tool.title,
        "description": tool.description,
        "inputSchema": tool.input_schema,
        "annotations": tool.annotations,
    }


def _refused(refusal: CallRefusal) -> ToolResult:
    """A tool error rather than a JSON-RPC error, so that the agent reads it and no client considers the server broken."""
    reasons = {
        "too_many_calls": "too many calls are in flight; nothing ran; wait before you try again",
        "shutting_down": "the gateway is stopping; nothing ran; try again when it is back",
    }
    body = {"allowed": False, "error": refusal, "reason": reasons[refusal], "retryable": True, "retry_after_s": RETRY_AFTER_S}
    return ToolResult(msgspec.json.encode(body).decode(), is_error=True)


def _stopped(error: str, reason: str) -> ToolResult:
    """The tool error of a paused or halted gateway. Nothing was attempted, so there is no audit row."""
    body = {"allowed": False, "error": error, "reason": reason, "retryable": True}
    return ToolResult(msgspec.json.encode(body).decode(), is_error=True)


def _where(bug: BaseException) -> str:
    """File and line of the innermost frame; never the message, which may quote what the client sent."""
    trace = bug.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    return "" if trace is None else f"{trace.tb_frame.f_code.co_filename}:{trace.tb_lineno}"
