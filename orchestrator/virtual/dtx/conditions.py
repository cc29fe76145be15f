"""com.apple.instruments.server.services.ConditionInducer: bad networks and heat on order.

One condition at a time, and it lives as long as the connection that asked for it.
Source: names of groups and profiles from py-ios-device's README.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from orchestrator.virtual.dtx.connection import CallError
from orchestrator.virtual.dtx.nska import NSError
from orchestrator.virtual.kernel import ThermalLevel

if TYPE_CHECKING:
    from collections.abc import Mapping

    from orchestrator.virtual.dtx.connection import Method
    from orchestrator.virtual.machine import Machine

_THERMAL: Final = "ThermalCondition"
_NETWORK: Final = "SlowNetworkCondition"
_LEVELS: Final = {
    "ThermalFair": ThermalLevel.FAIR,
    "ThermalSerious": ThermalLevel.SERIOUS,
    "ThermalCritical": ThermalLevel.CRITICAL,
}
_NETWORKS: Final = {
    "SlowNetwork100PctLoss": "100% loss",
    "SlowNetworkVeryBadNetwork": "Very bad network",
    "SlowNetworkEdgeBad": "EDGE, bad",
    "SlowNetworkEdgeAverage": "EDGE, average",
    "SlowNetworkEdgeGood": "EDGE, good",
    "SlowNetworkEdge": "EDGE, best",
    "SlowNetwork2GRural": "2G rural",
    "SlowNetwork2GUrban": "2G urban",
    "SlowNetwork3GAverage": "3G, average",
    "SlowNetwork3GGood": "3G, good",
    "SlowNetwork3G": "3G, best",
    "SlowNetworkLTE": "LTE",
    "SlowNetworkWiFi": "Wi-Fi",
    "SlowNetworkWiFiAC": "Wi-Fi 802.11ac",
    "SlowNetworkDSL": "DSL",
    "SlowNetworkHighLatencyDNS": "DNS with high latency",
}
_PROFILES: Final = {_THERMAL: {name: name[7:] for name in _LEVELS}, _NETWORK: _NETWORKS}


class ConditionInducer:
    """One channel."""

    def __init__(self, machine: Machine) -> None:
        self._machine = machine
        self._active: tuple[str, str] | None = None

    @property
    def methods(self) -> Mapping[str, Method]:
        """Selectors and what they call."""
        return {
            "availableConditionInducers": self._groups,
            "enableConditionWithIdentifier:profileIdentifier:": self._enable,
            "disableActiveCondition": self.closed,
        }

    def closed(self) -> None:
        """End the condition that this channel induced."""
        active, self._active = self._active, None
        if active is None:
            return
        if active[0] == _THERMAL:
            self._machine.induce_heat(None)
        self._machine.settings.network_profile = None

    def _enable(self, group: object, profile: object) -> None:
        known = _PROFILES.get(str(group), {})
        if str(profile) not in known:
            text = f"no condition {str(group)[:80]!r} with profile {str(profile)[:80]!r}"
            raise CallError(NSError.of("DTDeviceConditions", 1, text))
        self.closed()
        self._active = (str(group), str(profile))
        if group == _THERMAL:
            self._machine.induce_heat(_LEVELS[str(profile)])
        else:
            self._machine.settings.network_profile = str(profile)

    def _groups(self) -> list[dict[str, Any]]:
        return [
            {
                "identifier": group,
                "name": group.removesuffix("Condition"),
                "isActive": self._active is not None and self._active[0] == group,
                "isDestructive": False,
                "isInternal": False,
                "activeProfile": self._active[1] if self._active else "",
                "profiles": [
                    {"identifier": name, "name": text, "description": text}
                    for name, text in profiles.items()
                ],
                "profilesSorted": True,
            }
            for group, profiles in _PROFILES.items()
        ]
