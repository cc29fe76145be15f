"""com.apple.misagent: provisioning profiles, kept as bytes and never read."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable

    from orchestrator.virtual.wire import Plist, Stream

_SUCCESS: Final = 0
_NO_SUCH_PROFILE: Final = 0xE8008014 - (1 << 32)  # MobileDevice's codes are negative numbers
_NOT_A_PROFILE: Final = 0xE8008003 - (1 << 32)
_MOST_PROFILES: Final = 100


class ProvisioningAgent:
    """The service of one phone; profiles last as long as the farm."""

    def __init__(self) -> None:
        self._profiles: dict[str, bytes] = {}
        self._answers: dict[str, Callable[[Plist], Plist]] = {
            "Copy": self._copy,
            "CopyAll": self._copy,
            "Install": self._install,
            "Remove": self._remove,
        }

    async def serve(self, stream: Stream) -> None:
        """Answer requests until the client leaves."""
        while True:
            request = await stream.read_plist()
            answer = self._answers.get(str(request.get("MessageType")), _refuse)
            await stream.send_plist({"MessageType": "Response", **answer(request)})

    def _copy(self, _request: Plist) -> Plist:
        return {"Status": _SUCCESS, "Payload": list(self._profiles.values())}

    def _install(self, request: Plist) -> Plist:
        profile = request.get("Profile")
        if not isinstance(profile, bytes) or len(self._profiles) >= _MOST_PROFILES:
            return _refuse(request)
        # Its UUID stands inside a signed message; one made from its bytes does as well.
        self._profiles[hashlib.sha256(profile).hexdigest()[:32]] = profile
        return {"Status": _SUCCESS}

    def _remove(self, request: Plist) -> Plist:
        wanted = str(request.get("ProfileID")).replace("-", "").lower()
        removed = self._profiles.pop(wanted, None)
        return {"Status": _NO_SUCH_PROFILE if removed is None else _SUCCESS}


def _refuse(_request: Plist) -> Plist:
    return {"Status": _NOT_A_PROFILE}
