"""House arrest: the container of an installed app, over AFC."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from orchestrator.virtual.services.afc.server import AfcService

if TYPE_CHECKING:
    from orchestrator.virtual.services.apps.store import AppStore
    from orchestrator.virtual.settings import Settings
    from orchestrator.virtual.wire import Plist, Stream

_VISIBLE_BY_COMMAND: Final = {"VendContainer": None, "VendDocuments": "Documents"}


class HouseArrestService:
    """Vends a container, then speaks AFC on the same connection."""

    def __init__(self, apps: AppStore, product_type: str, settings: Settings) -> None:
        self._apps, self._product_type, self._settings = apps, product_type, settings

    async def serve(self, stream: Stream) -> None:
        """Answer the one request, then serve the container until the client leaves."""
        request = await stream.read_plist()
        command = request.get("Command")
        refusal = self._refusal(request)
        if refusal is not None:
            await stream.send_plist({"Error": refusal})
            return
        await stream.send_plist({"Status": "Complete"})
        record = self._apps.records()[request["Identifier"]]
        visible = _VISIBLE_BY_COMMAND[str(command)]
        container = AfcService(
            record.container, self._product_type, self._settings, visible=visible
        )
        await container.serve(stream)

    def _refusal(self, request: Plist) -> str | None:
        command = request.get("Command")
        if command not in _VISIBLE_BY_COMMAND:
            return "UnknownCommand"
        record = self._apps.records().get(str(request.get("Identifier")))
        if record is None:
            return "ApplicationLookupFailed"
        if command == "VendDocuments" and not record.info.get("UIFileSharingEnabled"):
            return "InstallationLookupFailed"
        return None
