"""com.apple.instruments.server.services.LocationSimulation: the phone remembers where it is."""

from __future__ import annotations

from typing import TYPE_CHECKING

from orchestrator.virtual.dtx.connection import CallError
from orchestrator.virtual.dtx.nska import NSError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from orchestrator.virtual.dtx.connection import Method
    from orchestrator.virtual.settings import Settings


class LocationSimulation:
    """One channel. The simulated place ends with the channel, as on a phone."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings

    @property
    def methods(self) -> Mapping[str, Method]:
        """Selectors and what they call."""
        return {
            "simulateLocationWithLatitude:longitude:": self._set,
            "stopLocationSimulation": self.closed,
        }

    def closed(self) -> None:
        """Forget the simulated place."""
        self._settings.location = None

    def _set(self, latitude: object, longitude: object) -> None:
        if not isinstance(latitude, int | float) or not isinstance(longitude, int | float):
            raise CallError(NSError.of("NSPOSIXErrorDomain", 22, "a place is two numbers"))
        self._settings.location = (float(latitude), float(longitude))
