"""Keys and certificates of a farm: one set for all of its phones.

Making RSA keys is the slow part of starting, so the set is kept in the farm's folder. A phone
lets a host in as iOS does: only with a certificate from a pair record that the phone accepted.
"""

from __future__ import annotations

import datetime as dt
import json
import ssl
import uuid
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Final

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
)
from cryptography.x509.oid import NameOID

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from orchestrator.virtual.wire import Plist

KEY_BITS: Final = 2048
VALID_DAYS: Final = 3650
ESCROW_BAG: Final = bytes(32)

_KEYS_FILE: Final = "keys.json"


@dataclass(frozen=True, slots=True)
class KeySet:
    """PEM texts of the three identities, and the ids of the host that is paired from the start."""

    root_key: str
    root_certificate: str
    host_key: str
    host_certificate: str
    device_key: str
    device_certificate: str
    device_public_key: str  # PKCS#1, what lockdown gives as DevicePublicKey
    host_id: str
    system_buid: str


class Pki:
    """The farm's keys on disk and the TLS contexts made from them."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        self._folder = folder
        self.keys = _load_or_make(folder)
        self._contexts: dict[frozenset[str], ssl.SSLContext] = {}

    def server_context(self, trusted: Iterable[str]) -> ssl.SSLContext:
        """Return a TLS server context that asks for one of the trusted client certificates.

        Args:
            trusted: PEM certificates. They are trusted themselves, because a client's host
                certificates may have empty names, which no chain can be built through.
        """
        wanted = frozenset(trusted)
        if wanted not in self._contexts:
            self._contexts[wanted] = self._make_context(wanted)
        return self._contexts[wanted]

    def _make_context(self, trusted: frozenset[str]) -> ssl.SSLContext:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(self._folder / "device.crt", self._folder / "device.key")
        for certificate in trusted:
            context.load_verify_locations(cadata=certificate)
        context.verify_mode = ssl.CERT_REQUIRED
        context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
        return context

    def pair_record(self, wifi_address: str) -> Plist:
        """Return the pair record of the host that is paired with every phone from the start."""
        keys = self.keys
        return {
            "DeviceCertificate": keys.device_certificate.encode(),
            "HostCertificate": keys.host_certificate.encode(),
            "HostPrivateKey": keys.host_key.encode(),
            "RootCertificate": keys.root_certificate.encode(),
            "RootPrivateKey": keys.root_key.encode(),
            "HostID": keys.host_id,
            "SystemBUID": keys.system_buid,
            "WiFiMACAddress": wifi_address,
            "EscrowBag": ESCROW_BAG,
        }


def is_certificate(pem: str) -> bool:
    """Whether TLS can trust a text; one that it cannot would close the phone to every host."""
    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_verify_locations(cadata=pem)
    except (ssl.SSLError, TypeError, ValueError):
        return False
    return True


def _load_or_make(folder: Path) -> KeySet:
    path = folder / _KEYS_FILE
    if path.exists():
        return KeySet(**json.loads(path.read_text()))
    keys = _make_keys()
    _write_private(folder / "device.key", keys.device_key)
    _write_private(folder / "device.crt", keys.device_certificate)
    _write_private(path, json.dumps(asdict(keys)))  # last: its presence says the set is whole
    return keys


def _write_private(path: Path, text: str) -> None:
    path.touch(mode=0o600)
    path.write_text(text)


def _make_keys() -> KeySet:
    root, host, device = (
        rsa.generate_private_key(public_exponent=65537, key_size=KEY_BITS) for _ in range(3)
    )
    public = device.public_key().public_bytes(Encoding.PEM, PublicFormat.PKCS1)
    return KeySet(
        root_key=_private_pem(root),
        root_certificate=_certificate(root, root, "virtual root", is_ca=True),
        host_key=_private_pem(host),
        host_certificate=_certificate(host, root, "virtual host"),
        device_key=_private_pem(device),
        device_certificate=_certificate(device, root, "virtual iPhone"),
        device_public_key=public.decode(),
        host_id=str(uuid.uuid4()).upper(),
        system_buid=str(uuid.uuid4()).upper(),
    )


def _private_pem(key: rsa.RSAPrivateKey) -> str:
    return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode()


def _certificate(
    subject_key: rsa.RSAPrivateKey,
    signing_key: rsa.RSAPrivateKey,
    subject: str,
    *,
    is_ca: bool = False,
) -> str:
    now = dt.datetime.now(dt.UTC)
    builder = (
        x509.CertificateBuilder()
        .subject_name(_name(subject))
        .issuer_name(_name("virtual root"))
        .public_key(subject_key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - dt.timedelta(days=1))
        .not_valid_after(now + dt.timedelta(days=VALID_DAYS))
        .add_extension(x509.BasicConstraints(ca=is_ca, path_length=None), critical=True)
    )
    return builder.sign(signing_key, hashes.SHA256()).public_bytes(Encoding.PEM).decode()


def _name(common_name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common_name)])
