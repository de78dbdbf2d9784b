"""Addresses that people give: what may be asked, and that the connection goes to what was checked."""

import ipaddress
import socket
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import trio
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from gatewayd.control.outbound.addresses import may_reach
from gatewayd.control.outbound.ask import Outbound, Unreachable, url_problem
from tests.notify.receiver import Answer, Receiver, endless_body, receiving, silence, status

HERE = (ipaddress.ip_network("127.0.0.0/8"),)


class Names(trio.abc.HostnameResolver):
    """A resolver that answers as told, once each time in order; the last answer stays."""

    def __init__(self, *answers: tuple[str, ...]) -> None:
        self.answers = list(answers)
        self.asked = 0

    async def getaddrinfo(self, host: Any, port: Any, family: Any = 0, type: Any = 0, proto: Any = 0, flags: Any = 0) -> Any:
        self.asked += 1
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (address, int(port))) for address in answer]

    async def getnameinfo(self, sockaddr: Any, flags: int) -> Any:
        raise NotImplementedError


@pytest.mark.parametrize(
    "address",
    [
        "127.0.0.1", "0.0.0.0", "10.1.2.3", "172.16.0.1", "192.168.1.1", "169.254.169.254", "100.64.0.1", "192.0.2.1",
        "198.18.0.1", "224.0.0.1", "240.0.0.1", "255.255.255.255", "::", "::1", "fe80::1", "fe80::1%eth0", "fd00::1", "ff02::1",
        "fec0::1", "::ffff:127.0.0.1", "::ffff:169.254.169.254", "64:ff9b::7f00:1", "64:ff9b::a9fe:a9fe", "2002:7f00:1::",
        "2002:808:808::", "2001:0:4136:e378:8000:63bf:3fff:fdd2", "2001:db8::1", "64:ff9b:1::1", "::127.0.0.1", "100::1",
        "192.0.0.192", "192.88.99.1", "3fff::1", "168.63.129.16", "0x7f.1", "2130706433", "", "localhost",
    ],
)  # fmt: skip
def test_what_is_not_public_is_not_asked(address: str) -> None:
    assert not may_reach(address, ())


@pytest.mark.parametrize("address", ["8.8.8.8", "1.1.1.1", "2606:4700:4700::1111", "::ffff:8.8.8.8", "64:ff9b::808:808"])
def test_what_is_public_is_asked(address: str) -> None:
    assert may_reach(address, ())


def test_the_operator_names_further_networks() -> None:
    named = (ipaddress.ip_network("10.0.0.0/8"), ipaddress.ip_network("fd00::/8"))
    assert may_reach("10.1.2.3", named)
    assert may_reach("::ffff:10.1.2.3", named)
    assert may_reach("fd00::1", named)
    assert not may_reach("192.168.1.1", named)
    assert not may_reach("169.254.169.254", named)


@pytest.mark.parametrize(
    "url",
    [
        "ftp://example.com/", "https://", "https:///path", "example.com", "https://user:secret@example.com/",
        "https://example.com/#part", "https://example.com/\nx", "https://example.com:99999/", "https://[::1/", "file:///etc/passwd",
        "https://exämple.com/", "https://example.com/" + "x" * 2000, "javascript:alert(1)", "https://example.com/a b",
    ],
)  # fmt: skip
def test_what_is_no_address_is_told(url: str) -> None:
    wrong = url_problem(url)
    assert wrong is not None
    assert "secret" not in wrong


async def test_a_receiver_in_this_network_is_not_even_connected_to() -> None:
    async with receiving(status("200 OK")) as receiver:
        for host in ("127.0.0.1", "localhost", "0x7f.1", "[::ffff:127.0.0.1]"):
            with pytest.raises(Unreachable):
                await Outbound(()).ask("POST", receiver.url.replace("127.0.0.1", host), b"{}")
        assert receiver.connections == 0


async def test_http_is_for_named_networks() -> None:
    trio.socket.set_custom_hostname_resolver(Names(("8.8.8.8",)))
    try:
        with pytest.raises(Unreachable, match="https"):
            await Outbound(HERE).ask("POST", "http://hooks.test/", b"{}")
    finally:
        trio.socket.set_custom_hostname_resolver(None)


async def test_a_name_is_resolved_once_and_all_its_addresses_count() -> None:
    async with receiving(status("204 No Content")) as receiver:
        names = Names(("127.0.0.1",), ("169.254.169.254",))
        trio.socket.set_custom_hostname_resolver(names)
        try:
            url = receiver.url.replace("127.0.0.1", "hooks.test")
            assert (await Outbound(HERE).ask("POST", url, b"{}")).status == 204
            assert names.asked == 1, "a second look-up could answer otherwise"
            assert dict(receiver.requests[0][0].headers)[b"host"].startswith(b"hooks.test:")
            trio.socket.set_custom_hostname_resolver(Names(("127.0.0.1", "192.168.1.1")))
            with pytest.raises(Unreachable):
                await Outbound(HERE).ask("POST", url, b"{}")
        finally:
            trio.socket.set_custom_hostname_resolver(None)
        assert receiver.connections == 1


async def test_redirects_are_answers() -> None:
    async with receiving(status("200 OK")) as other:
        async with receiving(status("302 Found", f"Location: {other.url}\r\n")) as receiver:
            assert (await Outbound(HERE).ask("POST", receiver.url, b"{}")).status == 302
        assert other.connections == 0


@pytest.mark.parametrize(("answer", "most_bytes"), [(silence, 0), (endless_body, 4096)])
async def test_what_takes_too_long_or_is_too_long_ends(answer: Answer, most_bytes: int) -> None:
    async with receiving(answer) as receiver:
        with pytest.raises(Unreachable, match=r"within|longer") as refused:
            await Outbound(HERE, ask_s=0.3).ask("POST", receiver.url, b"{}", most_bytes=most_bytes)
        assert "canary" not in str(refused.value)


async def test_a_body_that_nobody_wants_is_not_read() -> None:
    async with receiving(endless_body) as receiver:
        assert (await Outbound(HERE).ask("POST", receiver.url, b"{}")).status == 200


@asynccontextmanager
async def over_tls(folder: Path, name: str) -> AsyncIterator[tuple[Receiver, int, ssl.SSLContext]]:
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, name)])
    now = datetime.now(UTC)
    made = (
        x509.CertificateBuilder().subject_name(subject).issuer_name(subject).public_key(key.public_key()).serial_number(1)
        .not_valid_before(now - timedelta(days=1)).not_valid_after(now + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(name)]), critical=False).sign(key, hashes.SHA256())
    )  # fmt: skip
    pem = folder / "tls.pem"
    secret = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )  # fmt: skip
    pem.write_bytes(secret + made.public_bytes(serialization.Encoding.PEM))
    serves, trusts = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH), ssl.create_default_context(cafile=str(pem))
    serves.load_cert_chain(pem)
    receiver = Receiver(status("204 No Content"))
    async with trio.open_nursery() as nursery:
        (listener,) = await trio.open_ssl_over_tcp_listeners(0, serves, host="127.0.0.1")
        port: int = listener.transport_listener.socket.getsockname()[1]  # type: ignore[attr-defined]  # it is a TCP listener

        async def talk(stream: Any) -> None:
            with suppress(trio.BrokenResourceError):  # the client did not like our certificate
                await receiver.talk(stream)

        nursery.start_soon(trio.serve_listeners, talk, [listener])
        yield receiver, port, trusts
        nursery.cancel_scope.cancel()


@pytest.mark.parametrize(("name", "is_right"), [("hooks.test", True), ("other.test", False)])
async def test_the_certificate_is_that_of_the_name(tmp_path: Path, name: str, is_right: bool) -> None:
    trio.socket.set_custom_hostname_resolver(Names(("127.0.0.1",)))
    try:
        async with over_tls(tmp_path, name) as (receiver, port, trusts):
            asking = Outbound(HERE, trusts)
            if is_right:
                assert (await asking.ask("POST", f"https://hooks.test:{port}/", b"{}")).status == 204
            else:
                with pytest.raises(Unreachable):
                    await asking.ask("POST", f"https://hooks.test:{port}/", b"{}")
            with pytest.raises(Unreachable):  # one that no authority knows
                await Outbound(HERE).ask("POST", f"https://{name}:{port}/", b"{}")
            assert len(receiver.requests) == is_right
    finally:
        trio.socket.set_custom_hostname_resolver(None)
