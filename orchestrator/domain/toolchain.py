"""How to get Swift, for those whose virtual phones run the stand-in app without it."""

from __future__ import annotations

from typing import Final

SWIFT_PAGE: Final = "docs/how-to/get-swift.md"
_BY_PLATFORM: Final = {
    "darwin": "`xcode-select --install`, or Xcode 16",
    "linux": "swift.org/install/linux for Debian and Ubuntu",
}


def how_to_get_swift(platform: str) -> str:
    """Return what to do, for a value of `sys.platform`."""
    return f"{_BY_PLATFORM.get(platform, 'swift.org/install')}; {SWIFT_PAGE} has the steps"
