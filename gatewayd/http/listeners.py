"""The listening sockets: an address and port, a Unix socket, or sockets from the service manager (sd_listen_fds(3)).

A socket from the service manager stays open across a restart: clients queue in it meanwhile, and its port can be below 1024
without a privilege. A Unix socket has the mode 0660: only gatewayd's account and its group may connect.
"""

import errno
import os
import socket
import stat
from collections.abc import MutableMapping
from contextlib import suppress
from typing import Final

import trio

from gatewayd.config.environment import UNIX_HOST

BACKLOG: Final = 1024
_FIRST_PASSED_ON: Final = 3
_SOCKET_MODE: Final = 0o660


def passed_on(environ: MutableMapping[str, str], pid: int) -> list[trio.SocketListener]:
    """The listening sockets that the service manager passed to this process; usually none.

    The variables are removed from `environ`, so that no child process uses them. Raises OSError for a descriptor that is not a
    listening stream socket.
    """
    told, names = environ.pop("LISTEN_PID", ""), environ.pop("LISTEN_FDS", "")
    environ.pop("LISTEN_FDNAMES", None)
    if told != str(pid) or not names.isascii() or not names.isdigit():
        return []
    found: list[trio.SocketListener] = []
    for fd in range(_FIRST_PASSED_ON, _FIRST_PASSED_ON + int(names[:4])):
        sock = socket.socket(fileno=fd)
        os.set_inheritable(fd, False)
        if sock.type != socket.SOCK_STREAM or not sock.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN):
            raise OSError(0, f"descriptor {fd} of LISTEN_FDS is no listening stream socket")
        found.append(trio.SocketListener(trio.socket.from_stdlib_socket(sock)))
    return found


def port_of(listener: trio.SocketListener) -> int:
    """The port of the listener; 0 for a Unix socket."""
    name = listener.socket.getsockname()
    return name[1] if isinstance(name, tuple) else 0


async def close(listener: trio.SocketListener, *, own: bool) -> None:
    """Closes the listener, and removes the file of a Unix socket that this process made (`own`)."""
    name = listener.socket.getsockname()
    if own and isinstance(name, str) and name:
        with suppress(OSError):
            os.unlink(name)
    await listener.aclose()


def why_not(failure: OSError, host: str, port: int, *, host_setting: str, port_setting: str) -> str:
    """What an operator is told after `open_listeners` failed: the setting to change, what was found, what to do."""
    if host.startswith(UNIX_HOST):
        return f"{host_setting}: cannot listen on {host} ({failure.strerror}); expected a path that may be bound"
    if isinstance(failure, socket.gaierror) or failure.errno == errno.EADDRNOTAVAIL:
        return f"{host_setting}: {host} is no address of this machine ({failure.strerror}); expected one of its own"
    if failure.errno == errno.EADDRINUSE:
        return f"{port_setting}: port {port} of {host} is taken by another program; stop that program, or choose another port"
    if failure.errno == errno.EACCES:
        return f"{port_setting}: this account may not listen on port {port} ({failure.strerror}); choose one from 1024 to 65535"
    return f"{port_setting}: cannot listen on port {port} of {host} ({failure.strerror})"


async def open_listeners(host: str, port: int) -> list[trio.SocketListener]:
    """Listens on every address of `host` on one port; `::` includes IPv4. For port 0 the kernel chooses one.

    A host `unix:/path` is a Unix socket, which has no port. Raises OSError.
    """
    if host.startswith(UNIX_HOST):
        return [await _listen_unix(host.removeprefix(UNIX_HOST))]
    if host == "::":
        sock = trio.socket.socket(socket.AF_INET6, socket.SOCK_STREAM)
        try:
            sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
            return [await _listen(sock, (host, port))]
        except BaseException:
            sock.close()
            raise
    listeners: list[trio.SocketListener] = []
    flags = socket.AI_PASSIVE
    try:
        for family, kind, proto, _, address in await trio.socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=flags):
            sock = trio.socket.socket(family, kind, proto)
            if family == socket.AF_INET6:
                sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
            if listeners and not port:
                address = (address[0], listeners[0].socket.getsockname()[1], *address[2:])
            listeners.append(await _listen(sock, address))
    except BaseException:
        for listener in listeners:
            listener.socket.close()
        raise
    return listeners


async def _listen(sock: trio.socket.SocketType, address: tuple[str | bytes | int, ...]) -> trio.SocketListener:
    try:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        await sock.bind(address)
        sock.listen(BACKLOG)
    except BaseException:
        sock.close()
        raise
    return trio.SocketListener(sock)


async def _listen_unix(path: str) -> trio.SocketListener:
    await _remove_left_over(path)
    sock = trio.socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        await sock.bind(path)
        os.chmod(path, _SOCKET_MODE)  # before it listens: nobody can have connected
        sock.listen(BACKLOG)
    except BaseException:
        sock.close()
        raise
    return trio.SocketListener(sock)


async def _remove_left_over(path: str) -> None:
    """Removes the socket of a process that was killed: nothing answers on it. If one answers it is in use, and `bind` fails."""
    try:
        if not stat.S_ISSOCK(os.lstat(path).st_mode):
            return
    except OSError:
        return
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        probe.setblocking(False)
        try:
            probe.connect(path)
        except ConnectionRefusedError:
            os.unlink(path)
        except OSError:
            return
