"""com.apple.mobile.notification_proxy: Darwin notifications, posted and observed by hosts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from orchestrator.virtual.wire import Stream

APP_INSTALLED: Final = "com.apple.mobile.application_installed"
APP_UNINSTALLED: Final = "com.apple.mobile.application_uninstalled"
NAME_CHANGED: Final = "com.apple.mobile.lockdown.device_name_changed"

_MOST_OBSERVED: Final = 1000


class NotificationHub:
    """Gives each notification to every host that observes its name."""

    def __init__(self) -> None:
        self._observers: dict[Stream, set[str]] = {}

    def post(self, name: str) -> None:
        """Deliver a notification."""
        for stream, names in self._observers.items():
            if name in names:
                stream.queue_plist({"Command": "RelayNotification", "Name": name})

    async def serve(self, stream: Stream) -> None:
        """Take observations and posts of one host until it leaves."""
        self._observers[stream] = set()
        try:
            while True:
                request = await stream.read_plist()
                command, name = request.get("Command"), str(request.get("Name"))
                if command == "Shutdown":
                    await stream.send_plist({"Command": "ProxyDeath"})
                    return
                if command == "PostNotification":
                    self.post(name)
                elif command == "ObserveNotification":
                    self._observe(stream, name)
        finally:
            self._observers.pop(stream, None)

    def _observe(self, stream: Stream, name: str) -> None:
        names = self._observers[stream]
        if len(names) < _MOST_OBSERVED:
            names.add(name)
