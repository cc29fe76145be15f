"""Device tests of the client that need what virtual phones do not have, and what that is."""

from __future__ import annotations

from typing import Final

_INSTRUMENTS: Final = "tests.services.instruments"
_CORE_DEVICE: Final = "tests.remote.core_device"
_KDEBUG: Final = "coreprofilesessiontap (kdebug)"
_SYMBOLS: Final = "com.apple.dt.remoteFetchSymbols"

# Test, as JUnit names it: the service it needs.
NEEDS: Final = {
    f"{_INSTRUMENTS}.test_core_profile_session::test_stackshot": _KDEBUG,
    f"{_INSTRUMENTS}.test_fetch_symbols::test_fetch_symbols_list": _SYMBOLS,
    f"{_INSTRUMENTS}.test_fetch_symbols::test_fetch_symbols_download": _SYMBOLS,
    f"{_INSTRUMENTS}.test_graphics::test_fps": "graphics.opengl (frames of a screen)",
    f"{_INSTRUMENTS}.test_screenshot::test_screenshot": "screenshot (a screen)",
    f"{_INSTRUMENTS}.test_stackshot::test_resolve_device_stackshot": _KDEBUG,
    f"{_CORE_DEVICE}.test_file_service::test_file_operations_and_monitoring_on_device": (
        "com.apple.coredevice.fileservice.control"
    ),
    f"{_CORE_DEVICE}.test_icon_service::test_fetch_icon_from_device": (
        "com.apple.coredevice.iconservice"
    ),
}
