"""The control plane over TLS: only a certificate that GATEWAY_CONTROL_CA vouches for, and only under its own name."""

import ipaddress
import ssl
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from tests.cli.gatewayd_process import run
from tests.link.stand_in import Listener, StandIn

NOW = datetime.now(UTC)


class Authority:
    """A private authority, its certificate in `ca.pem`, and one server certificate for 127.0.0.1."""

    def __init__(self, folder: Path, *, ends: timedelta = timedelta(days=1), address: str = "127.0.0.1") -> None:
        folder.mkdir()
        self.ca = folder / "ca.pem"
        key, own = ec.generate_private_key(ec.SECP256R1()), ec.generate_private_key(ec.SECP256R1())
        name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "tests of the link")])
        root = self._certificate(name, name, key.public_key(), timedelta(days=2))
        root = root.add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        usage = x509.KeyUsage(False, False, False, False, False, True, True, False, False)
        self.ca.write_bytes(
            root.add_extension(usage, critical=True).sign(key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM)
        )
        names = x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address(address))])
        server = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "the control plane")])
        certificate = self._certificate(server, name, own.public_key(), ends).add_extension(names, critical=False)
        self.context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        pem = folder / "server.pem"
        private = own.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
        pem.write_bytes(private + certificate.sign(key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM))
        self.context.load_cert_chain(pem)

    @staticmethod
    def _certificate(
        subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePublicKey, ends: timedelta
    ) -> x509.CertificateBuilder:
        builder = x509.CertificateBuilder().subject_name(subject).issuer_name(issuer).public_key(key)
        builder = builder.serial_number(x509.random_serial_number()).not_valid_before(NOW - timedelta(days=3))
        return builder.not_valid_after(NOW + ends)


@pytest.mark.parametrize("why", ["no authority", "another authority", "expired", "another name", "none"])
def test_a_certificate_that_nobody_vouches_for_is_no_control_plane(why: str, tmp_path: Path) -> None:
    ends = timedelta(days=-1 if why == "expired" else 1)
    server = Authority(tmp_path / "server", ends=ends, address="127.0.0.2" if why == "another name" else "127.0.0.1")
    other = Authority(tmp_path / "other")
    control = StandIn()
    own = {"GATEWAY_STATE_DIR": str(tmp_path / "state"), "DB_PATH": str(tmp_path / "audit.db")}
    if why != "no authority":
        own["GATEWAY_CONTROL_CA"] = str(other.ca if why == "another authority" else server.ca)
    with Listener(control, 0, server.context) as listener:
        done = run(["link", "--control", listener.url], {**own, "GATEWAY_ENROL_TOKEN": control.token()})
        assert listener.url.startswith("https://")
    if why == "none":
        assert done.returncode == 0, done.stderr
    else:
        assert done.returncode == 69
        assert "its certificate does not verify" in done.stderr
        assert not listener.requests
        assert not (tmp_path / "state" / "link.json").exists()
