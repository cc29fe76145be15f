"""What a signed Mach-O executable says: platform, entitlements, team, encryption.

Sources: `mach-o/loader.h`, `mach-o/fat.h` and `kern/cs_blobs.h` of XNU (H). Everything in the
signature is big-endian, load commands of iPhones are little-endian. Seals are not verified.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from orchestrator.harness.signed.plist import PlistError, read_plist

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

IOS: Final = 2  # PLATFORM_IOS; 7 is the simulator, 1 macOS
_MACH_64, _FAT, _FAT_64 = 0xFEEDFACF, 0xCAFEBABE, 0xCAFEBABF
_ARM64: Final = 0x0100000C
_LC_CODE_SIGNATURE, _LC_ENCRYPTION_INFO_64, _LC_BUILD_VERSION = 0x1D, 0x2C, 0x32
_SUPER_BLOB, _ENTITLEMENTS = 0xFADE0CC0, 0xFADE7171
_SLOT_DIRECTORY, _SLOT_ENTITLEMENTS, _SLOT_CMS = 0, 5, 0x10000
_BLOB_HEADER: Final = 8
_TEAM_SINCE: Final = 0x20200
_MOST_COMMANDS: Final = 4096


class MachError(ValueError):
    """The bytes are no 64-bit Mach-O program, or are cut short."""


@dataclass(frozen=True, slots=True)
class Executable:
    """What was read."""

    platform: int | None  # of LC_BUILD_VERSION
    is_signed: bool  # with a certificate; an ad-hoc signature has none
    is_encrypted: bool  # by the App Store: its phones' accounts alone can run it
    team: str | None
    entitlements: Mapping[str, Any] | None  # None: no blob


def is_mach(data: bytes) -> bool:
    """Return whether the bytes begin as a Mach-O program does."""
    return data[:4] in {
        _MACH_64.to_bytes(4, "little"),
        _FAT.to_bytes(4, "big"),
        _FAT_64.to_bytes(4, "big"),
    }


def read_executable(data: bytes) -> Executable:
    """Return what an executable says.

    Raises:
        MachError: If it cannot be read.
    """
    try:
        return _read(_slice(data))
    except (struct.error, IndexError, UnicodeDecodeError) as error:
        raise MachError(f"cut short: {error}") from error


def _slice(data: bytes) -> bytes:
    """Return the arm64 part of a universal file, else the file."""
    magic, count = struct.unpack_from(">II", data)
    if magic not in {_FAT, _FAT_64}:
        return data
    entry = ">IIQQII" if magic == _FAT_64 else ">IIIII"
    for number in range(min(count, _MOST_COMMANDS)):
        cpu, _, offset, size, *_ = struct.unpack_from(
            entry, data, 8 + number * struct.calcsize(entry)
        )
        if cpu == _ARM64:
            return data[offset : offset + size]
    raise MachError("no part for arm64")


def _read(data: bytes) -> Executable:
    (magic,) = struct.unpack_from("<I", data)
    if magic != _MACH_64:
        raise MachError("not a 64-bit Mach-O program")
    platform, signature, encrypted = None, b"", False
    for command, at in _commands(data):
        if command == _LC_BUILD_VERSION:
            (platform,) = struct.unpack_from("<I", data, at + 8)
        elif command == _LC_ENCRYPTION_INFO_64:
            encrypted = struct.unpack_from("<I", data, at + 16)[0] != 0
        elif command == _LC_CODE_SIGNATURE:
            offset, size = struct.unpack_from("<II", data, at + 8)
            signature = data[offset : offset + size]
    blobs = _blobs(signature) if signature else {}
    return Executable(
        platform=platform,
        is_signed=len(blobs.get(_SLOT_CMS, b"")) > _BLOB_HEADER,
        is_encrypted=encrypted,
        team=_team(blobs.get(_SLOT_DIRECTORY, b"")),
        entitlements=_entitlements(blobs.get(_SLOT_ENTITLEMENTS)),
    )


def _commands(data: bytes) -> Iterator[tuple[int, int]]:
    (count,) = struct.unpack_from("<I", data, 16)
    at = 32
    for _ in range(min(count, _MOST_COMMANDS)):
        command, size = struct.unpack_from("<II", data, at)
        if size < 8:
            raise MachError("a load command without size")
        yield command, at
        at += size


def _blobs(signature: bytes) -> dict[int, bytes]:
    magic, _, count = struct.unpack_from(">III", signature)
    if magic != _SUPER_BLOB:
        raise MachError("a signature that is no superblob")
    found = {}
    for number in range(min(count, _MOST_COMMANDS)):
        slot, offset = struct.unpack_from(">II", signature, 12 + 8 * number)
        (length,) = struct.unpack_from(">I", signature, offset + 4)
        found[slot] = signature[offset : offset + length]
    return found


def _team(directory: bytes) -> str | None:
    if len(directory) < 52:
        return None
    (version,) = struct.unpack_from(">I", directory, 8)
    (offset,) = struct.unpack_from(">I", directory, 48)
    if version < _TEAM_SINCE or offset == 0:
        return None
    return (
        directory[offset : directory.index(b"\0", offset)].decode()
        if b"\0" in directory[offset:]
        else None
    )


def _entitlements(blob: bytes | None) -> Mapping[str, Any] | None:
    if blob is None:
        return None
    (magic,) = struct.unpack_from(">I", blob)
    if magic != _ENTITLEMENTS:
        raise MachError("entitlements that are none")
    try:
        values = read_plist(blob[_BLOB_HEADER:])
    except PlistError as error:
        raise MachError(f"entitlements that cannot be read: {error}") from error
    return values if isinstance(values, dict) else None
