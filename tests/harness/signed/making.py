"""Makes what Xcode would leave: signed programs, profiles, apps. No key signs any of it."""

from __future__ import annotations

import plistlib
import struct
import zipfile
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from orchestrator.harness.signed.preflight import MEMORY_LIMIT

if TYPE_CHECKING:
    from pathlib import Path

NOW = datetime(2026, 3, 1, tzinfo=UTC)
TEAM = "ABCDE12345"
BUNDLE = "dev.example.harness"
UDID = "00008140-000A1B2C3D4E5F60"


def der(tag: int, *parts: bytes) -> bytes:
    content = b"".join(parts)
    size = len(content)
    if size < 0x80:
        return bytes([tag, size]) + content
    digits = size.to_bytes((size.bit_length() + 7) // 8, "big")
    return bytes([tag, 0x80 | len(digits)]) + digits + content


def indefinite(tag: int, *parts: bytes) -> bytes:
    return bytes([tag, 0x80]) + b"".join(parts) + b"\0\0"


_SIGNED = bytes.fromhex("06092a864886f70d010702")
_DATA = bytes.fromhex("06092a864886f70d010701")


def cms(content: bytes) -> bytes:
    """A SignedData around a content, without certificates and signers."""
    inside = der(0x30, _DATA, der(0xA0, der(0x04, content)))
    body = der(0x30, der(0x02, b"\1"), der(0x31), inside, der(0x31))
    return der(0x30, _SIGNED, der(0xA0, body))


def cms_in_pieces(content: bytes) -> bytes:
    """The same in indefinite lengths, the content cut in two."""
    pieces = [der(0x04, content[:100]), der(0x04, content[100:])]
    inside = indefinite(0x30, _DATA, indefinite(0xA0, indefinite(0x24, *pieces)))
    body = indefinite(0x30, der(0x02, b"\1"), der(0x31), inside, der(0x31))
    return indefinite(0x30, _SIGNED, indefinite(0xA0, body))


def profile_values(**changes: Any) -> dict[str, Any]:  # noqa: ANN401 - plist values
    values: dict[str, Any] = {
        "Name": "iOS Team Provisioning Profile: dev.example.harness",
        "UUID": "0F0E0D0C-1111-2222-3333-444455556666",
        "TeamIdentifier": [TEAM],
        "CreationDate": naive(NOW - timedelta(days=65)),
        "ExpirationDate": naive(NOW + timedelta(days=300)),
        "ProvisionedDevices": [UDID],
        "Entitlements": {
            "application-identifier": f"{TEAM}.{BUNDLE}",
            "com.apple.developer.team-identifier": TEAM,
            "get-task-allow": True,
            MEMORY_LIMIT: True,
        },
    }
    return {name: value for name, value in (values | changes).items() if value is not None}


def profile(**changes: Any) -> bytes:  # noqa: ANN401 - plist values
    return cms(plistlib.dumps(profile_values(**changes)))


def naive(moment: datetime) -> datetime:
    """Plists hold UTC without saying so."""
    return moment.replace(tzinfo=None)


ENTITLEMENTS = {
    "application-identifier": f"{TEAM}.{BUNDLE}",
    "com.apple.developer.team-identifier": TEAM,
    "get-task-allow": True,
}


def blob(magic: int, content: bytes) -> bytes:
    return struct.pack(">II", magic, 8 + len(content)) + content


def directory(team: str | None) -> bytes:
    """A CodeDirectory of version 0x20400 as far as its team; offsets count from its magic."""
    head = bytearray(44)
    struct.pack_into(">I", head, 0, 0x20400)
    struct.pack_into(">I", head, 12, 52)  # identOffset
    struct.pack_into(">I", head, 40, 60 if team else 0)  # teamOffset
    text = b"harness\0" + (f"{team}\0".encode() if team else b"")
    return blob(0xFADE0C02, bytes(head) + text)


def superblob(blobs: dict[int, bytes]) -> bytes:
    at = 12 + 8 * len(blobs)
    index, body = b"", b""
    for slot, content in blobs.items():
        index += struct.pack(">II", slot, at + len(body))
        body += content
    return struct.pack(">III", 0xFADE0CC0, at + len(body), len(blobs)) + index + body


def program(
    *,
    platform: int = 2,
    entitlements: dict[str, Any] | None = None,
    team: str | None = TEAM,
    signed: bool = True,
    ad_hoc: bool = False,
    encrypted: bool = False,
) -> bytes:
    """A 64-bit Mach-O program: header, load commands, signature."""
    values = ENTITLEMENTS if entitlements is None else entitlements
    blobs = {0: directory(team), 5: blob(0xFADE7171, plistlib.dumps(values))}
    blobs[0x10000] = blob(0xFADE0B01, b"" if ad_hoc else b"\x30\x00")
    signature = superblob(blobs)
    commands = struct.pack("<6I", 0x32, 24, platform, 18 << 16, 18 << 16, 0)
    commands += struct.pack("<6I", 0x2C, 24, 0, 0, 1 if encrypted else 0, 0)
    size = len(commands) + (16 if signed else 0)
    if signed:
        commands += struct.pack("<4I", 0x1D, 16, 32 + size, len(signature))
    count = 3 if signed else 2
    header = struct.pack("<8I", 0xFEEDFACF, 0x0100000C, 0, 2, count, size, 0, 0)
    return header + commands + (signature if signed else b"")


def universal(thin: bytes) -> bytes:
    """A universal file that holds another processor's part first."""
    other = b"\0" * 64
    at = 8 + 2 * 20
    table = struct.pack(">5I", 0x01000007, 3, at, len(other), 0)
    table += struct.pack(">5I", 0x0100000C, 0, at + len(other), len(thin), 0)
    return struct.pack(">II", 0xCAFEBABE, 2) + table + other + thin


INFO: dict[str, Any] = {
    "CFBundleIdentifier": BUNDLE,
    "CFBundleExecutable": "HarnessApp",
    "CFBundleSupportedPlatforms": ["iPhoneOS"],
    "MinimumOSVersion": "18.0",
    "UIDeviceFamily": [1],
}


@dataclass
class AppParts:
    """An app before it is written."""

    info: dict[str, Any] = field(default_factory=lambda: dict(INFO))
    program: bytes | None = field(default_factory=program)
    profile: bytes | None = field(default_factory=profile)

    def files(self) -> dict[str, bytes]:
        found = {"Info.plist": plistlib.dumps(self.info)}
        if self.program is not None:
            found["HarnessApp"] = self.program
        if self.profile is not None:
            found["embedded.mobileprovision"] = self.profile
        return found

    def ipa(self, path: Path) -> Path:
        with zipfile.ZipFile(path, "w") as archive:
            for name, content in self.files().items():
                archive.writestr(f"Payload/HarnessApp.app/{name}", content)
        return path

    def folder(self, path: Path) -> Path:
        path.mkdir(parents=True)
        for name, content in self.files().items():
            (path / name).write_bytes(content)
        (path / "HarnessApp").chmod(0o755)
        return path
