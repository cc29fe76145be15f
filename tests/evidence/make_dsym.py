"""Makes the small dSYM of the symbol tests: `python -m tests.evidence.make_dsym` (needs clang).

Linking for iOS needs Apple's linker. The object file holds the same DWARF, its code at address 0;
it gets a UUID in the place of its build version, which has the same length.
"""

from __future__ import annotations

import struct
import subprocess
import tempfile
from pathlib import Path
from uuid import UUID

SYMBOLS = Path(__file__).parent / "fixtures" / "symbols"
DSYM = SYMBOLS / "Soak.dSYM"
DSYM_UUID = UUID("5ac00000-0000-4000-8000-00000000d57a")

LC_UUID, LC_BUILD_VERSION = 0x1B, 0x32
HEADER_BYTES = 32


def as_dsym(content: bytes) -> bytes:
    """Return a Mach-O object as a dSYM's file."""
    dsym = bytearray(content)
    (count,) = struct.unpack_from("<I", dsym, 16)
    offset = HEADER_BYTES
    for _ in range(count):
        command, size = struct.unpack_from("<II", dsym, offset)
        if command == LC_BUILD_VERSION and size == 24:
            struct.pack_into("<II16s", dsym, offset, LC_UUID, size, DSYM_UUID.bytes)
            return bytes(dsym)
        offset += size
    raise ValueError("the object has no build version of 24 bytes")


def main() -> None:
    target = DSYM / "Contents" / "Resources" / "DWARF" / "Soak"
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        made = Path(folder) / "soak.o"
        options = ["-target", "arm64-apple-ios18.0", "-g", "-O1", "-c"]
        subprocess.run(
            ["clang", *options, "-fdebug-compilation-dir=/build", "soak.c", "-o", str(made)],
            cwd=SYMBOLS,
            check=True,
        )
        target.write_bytes(as_dsym(made.read_bytes()))


if __name__ == "__main__":
    main()
