"""Which channels a phone offers: those of DTServiceHub, and those of testmanagerd."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from orchestrator.virtual.dtx.conditions import ConditionInducer
from orchestrator.virtual.dtx.connection import DtxServer
from orchestrator.virtual.dtx.device_info import DeviceInfo
from orchestrator.virtual.dtx.gauges import Gauge
from orchestrator.virtual.dtx.inspection import DyldMetrics, RemoteLeaks, VmTracking
from orchestrator.virtual.dtx.listing import ApplicationListing
from orchestrator.virtual.dtx.location import LocationSimulation
from orchestrator.virtual.dtx.notifications import Notifications
from orchestrator.virtual.dtx.process_control import ProcessControl
from orchestrator.virtual.dtx.sysmontap import Sysmontap

if TYPE_CHECKING:
    from collections.abc import Mapping

    from orchestrator.virtual.dtx.connection import Method
    from orchestrator.virtual.machine import Machine

_INSTRUMENTS: Final = "com.apple.instruments.server.services"
_GAUGES: Final = "com.apple.xcode.debug-gauge-data-providers"
_TEST_MANAGER: Final = "dtxproxy:XCTestManager_IDEInterface:XCTestManager_DaemonConnectionInterface"


def instruments(machine: Machine) -> DtxServer:
    """Return the server behind dtservicehub, or behind DVTSecureSocketProxy before iOS 17."""
    return DtxServer(
        {
            f"{_GAUGES}.Energy": lambda _: Gauge.energy(),
            f"{_GAUGES}.NetworkStatistics": lambda _: Gauge.network(),
            f"{_INSTRUMENTS}.ConditionInducer": lambda _: ConditionInducer(machine),
            f"{_INSTRUMENTS}.LocationSimulation": lambda _: LocationSimulation(machine.settings),
            f"{_INSTRUMENTS}.device.applictionListing": lambda _: ApplicationListing(machine),
            f"{_INSTRUMENTS}.deviceinfo": lambda _: DeviceInfo(machine),
            f"{_INSTRUMENTS}.dyld.metrics": DyldMetrics,
            f"{_INSTRUMENTS}.mobilenotifications": lambda channel: Notifications(machine, channel),
            f"{_INSTRUMENTS}.processcontrol": lambda channel: ProcessControl(machine, channel),
            f"{_INSTRUMENTS}.remoteleaks": lambda _: RemoteLeaks(),
            f"{_INSTRUMENTS}.sysmontap": lambda channel: Sysmontap(machine, channel),
            f"{_INSTRUMENTS}.vmtracking": lambda _: VmTracking(),
        }
    )


def manager_of_tests() -> DtxServer:
    """Return testmanagerd, as far as its channel opens: it runs no tests."""
    return DtxServer({_TEST_MANAGER: lambda _: _TestManager()})


class _TestManager:
    @property
    def methods(self) -> Mapping[str, Method]:
        return {}

    def closed(self) -> None:
        """Nothing to give back."""
