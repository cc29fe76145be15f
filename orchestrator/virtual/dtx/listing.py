"""com.apple.instruments.server.services.device.applictionListing (the typo is Apple's)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from orchestrator.virtual.kernel.image import bundle_on_phone
from orchestrator.virtual.services.apps.system_apps import PLUG_INS, SYSTEM_APPS

if TYPE_CHECKING:
    from collections.abc import Mapping

    from orchestrator.virtual.dtx.connection import Method
    from orchestrator.virtual.machine import Machine
    from orchestrator.virtual.services.apps.store import AppRecord
    from orchestrator.virtual.services.apps.system_apps import SystemApp


class ApplicationListing:
    """One channel."""

    def __init__(self, machine: Machine) -> None:
        self._machine = machine

    @property
    def methods(self) -> Mapping[str, Method]:
        """Selectors and what they call."""
        return {
            "installedApplicationsMatching:registerUpdateToken:": lambda _match, _token: self._all()
        }

    def closed(self) -> None:
        """Nothing to give back."""

    def _all(self) -> list[dict[str, Any]]:
        user = [self._user_row(record) for record in self._machine.apps.records().values()]
        system = [_system_row(app, "System") for app in SYSTEM_APPS.values()]
        return [*user, *system, *(_system_row(app, "PluginKit") for app in PLUG_INS)]

    def _user_row(self, record: AppRecord) -> dict[str, Any]:
        app = record.installed
        return {
            "BundlePath": bundle_on_phone(app, self._machine.identity.udid),
            "CFBundleIdentifier": record.bundle_id,
            "DisplayName": str(record.info.get("CFBundleDisplayName", app.name)),
            "ExecutableName": app.name,
            "Placeholder": 0,
            "Restricted": 0,
            "Type": "User",
            "Version": app.version,
        }


def _system_row(app: SystemApp, kind: str) -> dict[str, Any]:
    return {
        "BundlePath": app.folder,
        "CFBundleIdentifier": app.bundle_id,
        "DisplayName": app.name,
        "ExecutableName": app.executable,
        "Restricted": 1,
        "Type": kind,
        "Version": "1.0",
    }
