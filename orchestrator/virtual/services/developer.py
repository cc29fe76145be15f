"""What gates development: mobile_image_mounter and amfi."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from orchestrator.virtual.settings import Settings
    from orchestrator.virtual.wire import Plist, Stream

_SIGNATURE: Final = b"virtual developer disk image"
_AMFI_ACTIONS: Final = frozenset({0, 1, 2})  # reveal, arm, accept


class ImageMounter:
    """com.apple.mobile.mobile_image_mounter. Images can be looked up, not uploaded."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings

    async def serve(self, stream: Stream) -> None:
        """Answer requests until the client leaves."""
        while True:
            request = await stream.read_plist()
            await stream.send_plist(self._answer(str(request.get("Command"))))

    def _answer(self, command: str) -> Plist:
        mounted = self._settings.image_mounted
        if command == "LookupImage":
            return {"Status": "Complete", "ImageSignature": [_SIGNATURE] if mounted else []}
        if command == "CopyDevices":
            return {"Status": "Complete", "EntryList": [_ENTRY] if mounted else []}
        if command == "QueryDeveloperModeStatus":
            return {"DeveloperModeStatus": self._settings.developer_mode}
        if command == "Hangup":
            return {"Goodbye": True}
        return {"Error": "UnknownCommand"}


_ENTRY: Final = {
    "DiskImageType": "Personalized",
    "ImageSignature": _SIGNATURE,
    "IsMounted": True,
    "MountPath": "/System/Developer",
    "PersonalizedImageType": "DeveloperDiskImage",
}


class Amfi:
    """com.apple.amfi.lockdown: shows and switches on developer mode."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings

    async def serve(self, stream: Stream) -> None:
        """Answer one request."""
        action = (await stream.read_plist()).get("action")
        if action not in _AMFI_ACTIONS:
            await stream.send_plist({"Error": "unknown action"})
            return
        if action != 0:
            self._settings.developer_mode = True
        await stream.send_plist({"success": True})
