"""Property lists of apps: hostile bytes, and one error for all that `plistlib` raises on them."""

from __future__ import annotations

import plistlib
import struct
from xml.parsers.expat import ExpatError


class PlistError(ValueError):
    """The bytes are no property list."""


def read_plist(data: bytes) -> object:
    """Return what a property list holds, XML or binary.

    Raises:
        PlistError: If it cannot be read, whatever is wrong: fuzzing found an unknown encoding.
    """
    try:
        found: object = plistlib.loads(data)
    except (
        plistlib.InvalidFileException,
        ExpatError,
        ValueError,
        LookupError,
        TypeError,
        AttributeError,
        OverflowError,
        RecursionError,
        struct.error,
    ) as error:
        raise PlistError(f"no property list: {error}") from error
    return found
