"""What gates development: mobile_image_mounter and amfi."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Final

from orchestrator.virtual.identity import serves_developer_on_lockdown
from orchestrator.virtual.wire import ProtocolError

if TYPE_CHECKING:
    from collections.abc import Callable

    from orchestrator.virtual.identity import Identity
    from orchestrator.virtual.settings import Settings
    from orchestrator.virtual.wire import Plist, Stream

_SIGNATURE: Final = b"virtual developer disk image"
_AMFI_ACTIONS: Final = frozenset({0, 1, 2})  # reveal, arm, accept
_MAX_IMAGE_BYTES: Final = 256 << 20
_COMPLETE: Final = {"Status": "Complete"}
_NO_MODE: Final = "Developer mode is not enabled."


class ImageMounter:
    """com.apple.mobile.mobile_image_mounter.

    The image is mounted from the start. Any image is taken for the right one: signatures of
    Apple's cannot be checked here, and nothing of the image is used.
    """

    def __init__(self, identity: Identity, settings: Settings) -> None:
        self._identity, self._settings = identity, settings
        old = serves_developer_on_lockdown(identity.os)
        self._type = "Developer" if old else "Personalized"
        self._path = "/Developer" if old else "/System/Developer"
        self._answers: dict[str, Callable[[Plist], Plist]] = {
            "CopyDevices": lambda _: {**_COMPLETE, "EntryList": self._entries()},
            "Hangup": lambda _: {"Goodbye": True},
            "LookupImage": self._lookup,
            "MountImage": self._mount,
            "QueryDeveloperModeStatus": lambda _: {"DeveloperModeStatus": settings.developer_mode},
            "QueryNonce": lambda _: {"PersonalizationNonce": self._nonce()},
            "QueryPersonalizationIdentifiers": lambda _: {
                "PersonalizationIdentifiers": self._identifiers()
            },
            "QueryPersonalizationManifest": lambda _: {"Error": "MissingManifest"},
            "UnmountImage": self._unmount,
        }

    async def serve(self, stream: Stream) -> None:
        """Answer requests until the client leaves."""
        while True:
            request = await stream.read_plist()
            command = str(request.get("Command"))
            if command == "ReceiveBytes":
                await self._receive(stream, request)
                continue
            answer = self._answers.get(command)
            await stream.send_plist(answer(request) if answer else {"Error": "UnknownCommand"})

    def _entries(self) -> list[Plist]:
        if not self._settings.image_mounted:
            return []
        entry = {
            "DiskImageType": self._type,
            "ImageSignature": _SIGNATURE,
            "IsMounted": True,
            "MountPath": self._path,
        }
        personalized = {"PersonalizedImageType": "DeveloperDiskImage"}
        return [entry | (personalized if self._type == "Personalized" else {})]

    def _lookup(self, request: Plist) -> Plist:
        present = self._settings.image_mounted and request.get("ImageType") == self._type
        found: Plist = {"ImagePresent": True, "ImageSignature": [_SIGNATURE]}
        return {**_COMPLETE, **(found if present else {"ImagePresent": False})}

    async def _receive(self, stream: Stream, request: Plist) -> None:
        """Take an image and throw it away."""
        size = request.get("ImageSize")
        if not isinstance(size, int) or not 0 < size <= _MAX_IMAGE_BYTES:
            raise ProtocolError(f"an image of {size!r} bytes")
        await stream.send_plist({"Status": "ReceiveBytesAck"})
        while size > 0:
            size -= len(await stream.reader.readexactly(min(size, 1 << 16)))
        await stream.send_plist(dict(_COMPLETE))

    def _mount(self, request: Plist) -> Plist:
        if not self._settings.developer_mode:
            return {"Error": "DeviceLocked", "DetailedError": _NO_MODE}
        if self._settings.image_mounted:
            text = f"{self._path} is already mounted."
            return {"Error": "ImageMountFailed", "DetailedError": text}
        if request.get("ImageType") != self._type:
            return {"Error": "InvalidImageType", "DetailedError": "no image of that type"}
        self._settings.image_mounted = True
        return dict(_COMPLETE)

    def _unmount(self, request: Plist) -> Plist:
        if not self._settings.image_mounted or request.get("MountPath") != self._path:
            text = f"There is no matching entry for {str(request.get('MountPath'))[:200]}"
            return {"Error": "UnmountFailed", "DetailedError": text}
        self._settings.image_mounted = False
        return dict(_COMPLETE)

    def _nonce(self) -> bytes:
        return hashlib.sha384(self._identity.udid.encode()).digest()

    def _identifiers(self) -> Plist:
        return {
            "BoardId": 12,
            "ChipID": self._identity.chip_id,
            "SecurityDomain": 1,
            "UniqueChipID": self._identity.ecid,
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
