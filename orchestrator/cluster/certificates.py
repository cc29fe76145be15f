"""Makes a cluster's certificate authority and a bundle for each member.

Elliptic curve P-256, one authority per cluster. The authority's key stays in the folder that `init`
was given; no member needs it. Names in certificates are for people: what counts is the signature.
"""

from __future__ import annotations

import datetime
import os
from typing import TYPE_CHECKING, Final

import msgspec
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from orchestrator.cluster.bundle import CA, CERTIFICATE, CONFIG, KEY, ClusterConfig
from orchestrator.domain.errors import UsageError
from orchestrator.soak.state_folder import private_folder

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

AUTHORITY_KEY: Final = "ca-key.pem"
_CLOCK_SLACK: Final = datetime.timedelta(hours=1)  # hosts' clocks may differ


def make_bundles(folder: Path, scheduler: str, agents: Sequence[str], days: int) -> dict[str, Path]:
    """Make an authority and the bundles of scheduler, client and agents below a new folder.

    With an authority already there, only bundles that are missing are made: a host that joins.

    Args:
        folder: Private to the user; gets `ca.pem`, `ca-key.pem` and a folder per member.
        scheduler: The address that members are told.
        agents: Names of the hosts that hold phones.
        days: How long certificates last.

    Returns:
        The bundles that were made, by member.

    Raises:
        UsageError: If the folder is open to others, or cannot be written.
    """
    private_folder(folder)
    try:
        authority = _authority(folder, days)
        members = ["scheduler", "client", *(f"agent-{name}" for name in agents)]
        made = {}
        for member in members:
            if (folder / member / KEY).exists():
                continue
            config = ClusterConfig(scheduler, member.removeprefix("agent-"))
            _make_bundle(folder / member, member, authority, config, days)
            made[member] = folder / member
    except OSError as error:
        raise UsageError(f"{folder} cannot be written: {error.strerror or error}") from error
    return made


class _Authority(msgspec.Struct, frozen=True):
    certificate: x509.Certificate
    key: ec.EllipticCurvePrivateKey


def _authority(folder: Path, days: int) -> _Authority:
    if (folder / AUTHORITY_KEY).exists():
        key = serialization.load_pem_private_key((folder / AUTHORITY_KEY).read_bytes(), None)
        if not isinstance(key, ec.EllipticCurvePrivateKey):
            raise UsageError(f"{folder / AUTHORITY_KEY} is not a key of `fleet cluster init`")
        return _Authority(x509.load_pem_x509_certificate((folder / CA).read_bytes()), key)
    key = ec.generate_private_key(ec.SECP256R1())
    name = _name("fleet cluster authority")
    certificate = (
        _builder(name, name, key.public_key(), days)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(_key_usage(authority=True), critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .sign(key, hashes.SHA256())
    )
    _write(folder / AUTHORITY_KEY, _pem(key), 0o600)
    _write(folder / CA, certificate.public_bytes(serialization.Encoding.PEM), 0o644)
    return _Authority(certificate, key)


def _make_bundle(
    folder: Path, member: str, authority: _Authority, config: ClusterConfig, days: int
) -> None:
    private_folder(folder)
    key = ec.generate_private_key(ec.SECP256R1())
    usages = [ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH]
    public_key = authority.key.public_key()
    certificate = (
        _builder(_name(member), authority.certificate.subject, key.public_key(), days)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(_key_usage(authority=False), critical=True)
        .add_extension(x509.ExtendedKeyUsage(usages), critical=False)  # peers are both
        .add_extension(
            x509.AuthorityKeyIdentifier.from_issuer_public_key(public_key), critical=False
        )
        .sign(authority.key, hashes.SHA256())
    )
    pem = serialization.Encoding.PEM
    _write(folder / CA, authority.certificate.public_bytes(pem), 0o644)
    _write(folder / CERTIFICATE, certificate.public_bytes(pem), 0o644)
    _write(folder / CONFIG, msgspec.json.format(msgspec.json.encode(config)) + b"\n", 0o644)
    _write(folder / KEY, _pem(key), 0o600)  # last: with it the bundle is whole


def _builder(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePublicKey, days: int
) -> x509.CertificateBuilder:
    now = datetime.datetime.now(datetime.UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - _CLOCK_SLACK)
        .not_valid_after(now + datetime.timedelta(days=days))
    )


def _name(text: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, text)])


def _key_usage(*, authority: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=not authority,
        key_cert_sign=authority,
        crl_sign=authority,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )


def _pem(key: ec.EllipticCurvePrivateKey) -> bytes:
    return key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )


def _write(path: Path, content: bytes, mode: int) -> None:
    """Write a new file that has its mode from its first byte on."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW
    with os.fdopen(os.open(path, flags, mode), "wb") as file:
        os.fchmod(file.fileno(), mode)
        file.write(content)
