"""One engine as a process: spawned with its socket and its lifeline, asked until it is ready, ended in order.

The socket goes in as LISTEN_FDS (sd_listen_fds(3)). A shell sets LISTEN_PID, because only the new process knows its own id, and
`exec` keeps it. The lifeline is a pipe whose other end this process holds: when it ends, however it ends, so does the engine.
"""

import os
import signal
from typing import Final, final

import trio

from gatewayd.control.engines.home import EngineFolder
from gatewayd.control.engines.launch import Launch
from gatewayd.control.engines.upstream import Upstream, UpstreamLost

START_S: Final = 30.0
CATALOG_S: Final = 5.0
"""How long a first call waits for databases that do not answer. After that the engine says so itself."""
STOP_S: Final = 10.0
_ASK_S: Final = 0.01
# stdin is the socket, stdout the lifeline: a shell of POSIX can name descriptors of one digit alone.
_EXEC: Final = 'LISTEN_PID=$$ exec "$@" 3<&0 0<&1 1>/dev/null'


class StartFailed(Exception):
    """The engine did not become ready. The text names no address and no secret."""


@final
class EngineProcess:
    """A running engine. `upstream` is how it is called."""

    def __init__(self, process: trio.Process, lifeline: int, upstream: Upstream, folder: EngineFolder) -> None:
        self.upstream: Final = upstream
        self.pid: Final = process.pid
        self._process: Final = process
        self._lifeline: Final = lifeline
        self._folder: Final = folder

    async def wait(self) -> int:
        """The exit code, once it has ended; minus the signal that ended it."""
        return await self._process.wait()

    async def ready(self) -> None:
        """Returns when calls can be served, or when only the engine itself can say why not. Raises StartFailed."""
        until_catalog = None
        with trio.move_on_after(START_S):
            while True:
                if self._process.poll() is not None:
                    raise StartFailed(f"the engine ended with exit code {self._process.returncode}; the log says why")
                try:
                    state = await self.upstream.readiness()
                except UpstreamLost:
                    state = ""
                if state in ("ready", "paused", "halted"):
                    return
                if state.startswith(("catalog ", "database ")):
                    until_catalog = until_catalog or trio.current_time() + CATALOG_S
                    if trio.current_time() > until_catalog:
                        return
                await trio.sleep(_ASK_S)
        raise StartFailed(f"the engine was not ready within {START_S:g} s; the log says why")

    async def end(self, grace_s: float) -> None:
        """SIGTERM, and SIGKILL when it has not ended in `grace_s`. Cancellation does not hurry it."""
        with trio.CancelScope(shield=True):
            self.upstream.close()
            self._process.send_signal(signal.SIGTERM)
            with trio.move_on_after(grace_s):
                await self._process.wait()
            if self._process.returncode is None:
                self._process.kill()
                await self._process.wait()
            os.close(self._lifeline)
            self._folder.forget_secrets()


async def spawn(launch: Launch, folder: EngineFolder, proxy_secret: str) -> EngineProcess:
    """Raises OSError, HomeProblem. The engine is not ready yet. When it has ended its secrets are removed."""
    theirs, ours = os.pipe()
    try:
        with folder.listen() as listener:
            process = await trio.lowlevel.open_process(
                ["/bin/sh", "-c", _EXEC, "sh", *launch.program],
                stdin=listener.fileno(),
                stdout=theirs,
                stderr=None,  # its log lines stand among ours
                env=dict(launch.environment),
                cwd=folder.state,
                start_new_session=True,  # Ctrl-C in a terminal is for the control plane, which ends engines in order
            )
    except BaseException:
        os.close(ours)
        folder.forget_secrets()
        raise
    finally:
        os.close(theirs)
    return EngineProcess(process, ours, Upstream(folder.socket_path, proxy_secret), folder)
