"""One virtual iPhone: state on disk, daemons, and the tables of its ports."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from orchestrator.virtual import appservice
from orchestrator.virtual.connections import Connections
from orchestrator.virtual.dtx.connection import DtxServer
from orchestrator.virtual.dtx.device_info import DeviceInfo
from orchestrator.virtual.dtx.process_control import ProcessControl
from orchestrator.virtual.dtx.sysmontap import Sysmontap
from orchestrator.virtual.identity import offers_tunnel, serves_developer_on_lockdown
from orchestrator.virtual.lockdown.daemon import LOCKDOWN_PORT, Lockdownd
from orchestrator.virtual.lockdown.pairing import Pairings
from orchestrator.virtual.lockdown.values import DeviceValues
from orchestrator.virtual.machine import Machine, MachineFacts
from orchestrator.virtual.rsd import RemoteService, ServiceDirectory, checked_in
from orchestrator.virtual.services.afc.server import AfcService
from orchestrator.virtual.services.apps.proxy import InstallationProxy
from orchestrator.virtual.services.apps.store import AppStore
from orchestrator.virtual.services.crash_reports import serve_crash_mover
from orchestrator.virtual.services.developer import Amfi, ImageMounter
from orchestrator.virtual.services.diagnostics import DiagnosticsRelay
from orchestrator.virtual.services.house_arrest import HouseArrestService
from orchestrator.virtual.services.liveness import serve_heartbeat, serve_notification_proxy
from orchestrator.virtual.services.logs.stream import OsTraceRelay, SyslogRelay
from orchestrator.virtual.settings import Settings
from orchestrator.virtual.tunnel.proxy import CoreDeviceProxy
from orchestrator.virtual.wire import READER_LIMIT_BYTES, Endpoint, SocketStream, splice

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from orchestrator.virtual.identity import Identity
    from orchestrator.virtual.pki import Pki
    from orchestrator.virtual.services.diagnostics import PowerRequest
    from orchestrator.virtual.wire import Service, Stream

COREDEVICE_PROXY: Final = "com.apple.internal.devicecompute.CoreDeviceProxy"
DVT_ON_LOCKDOWN: Final = "com.apple.instruments.remoteserver.DVTSecureSocketProxy"
LOCKDOWN_ON_TUNNEL: Final = "com.apple.mobile.lockdown.remote.trusted"

_INSTRUMENTS: Final = "com.apple.instruments.server.services"
_FIRST_SERVICE_PORT: Final = 49_200
_FIRST_TUNNEL_PORT: Final = 58_800
# As on a phone: retired reports and sysdiagnoses have folders of their own.
_CRASH_FOLDERS: Final = ("DiagnosticLogs", "Retired")


@dataclass(frozen=True, slots=True)
class PhonePlan:
    """What makes one phone of a farm different from the next."""

    index: int  # place in the farm, from 0
    identity: Identity
    folder: Path  # its state; survives the farm
    port_folder: Path  # short path, for the sockets of its apps
    memory_scale: int
    entitled: bool


class VirtualPhone:
    """A phone as usbmuxd and tunneld see it."""

    def __init__(
        self, plan: PhonePlan, pki: Pki, on_power: Callable[[VirtualPhone, PowerRequest], None]
    ) -> None:
        self.identity = plan.identity
        self.settings = Settings(name=plan.identity.name)
        self._media = plan.folder / "Media"
        self._crashes = plan.folder / "CrashReports"
        _make_folders(self._media, self._crashes, plan.port_folder)
        facts = MachineFacts(
            plan.identity, plan.memory_scale, plan.entitled, plan.port_folder, self._crashes
        )
        self.machine = Machine(facts, self.settings, AppStore(plan.folder))
        self.pairings = Pairings(plan.folder / "pairings.plist", pki, self.settings)
        values = DeviceValues(plan.identity, self.settings, pki.keys, plan.memory_scale)
        self._lockdownd = Lockdownd(values, self.pairings, self)
        self._connections = Connections()
        self._services = self._classic_services(lambda request: on_power(self, request))
        self.remote_services = self._remote_services()
        self._tunnel_ports = _TunnelPorts(self)
        if offers_tunnel(plan.identity.os):
            proxy = CoreDeviceProxy(plan.index, self._tunnel_ports.rsd_port, self._tunnel_ports)
            self._services[COREDEVICE_PROXY] = proxy.serve
        self._ports: dict[int, Endpoint] = {
            LOCKDOWN_PORT: Endpoint("lockdownd", self._lockdownd.serve)
        }
        self._port_of_service: dict[str, int] = {}

    @property
    def udid(self) -> str:
        """The phone's UDID."""
        return self.identity.udid

    @property
    def wifi_address(self) -> str:
        """The phone's Wi-Fi address."""
        return self.identity.wifi_address

    def start_service(self, name: str) -> tuple[int, bool] | None:
        """Return (port, whether it speaks TLS) of a lockdown service, or None if there is none."""
        service = self._services.get(name)
        if service is None:
            return None
        if name not in self._port_of_service:
            port = _FIRST_SERVICE_PORT + len(self._port_of_service)
            self._port_of_service[name] = port
            self._ports[port] = Endpoint(name, service, tls=True)
        return self._port_of_service[name], True

    def endpoint(self, port: int) -> Endpoint | None:
        """Return what listens on a port of the phone: a daemon, or an app's socket."""
        if port in self._ports:
            return self._ports[port]
        path = self.machine.kernel.app_socket(port)
        return None if path is None else Endpoint(f"app:{port}", _bridge_to(path))

    async def serve(self, endpoint: Endpoint, stream: Stream) -> None:
        """Serve one connection until it ends."""

        async def serve(stream: Stream) -> None:
            if endpoint.tls:
                await stream.start_tls(self.pairings.service_context())
            if endpoint.name in self.settings.muted:
                await stream.until_closed()
            else:
                await endpoint.serve(stream)

        await self._connections.run(serve, stream)

    def drop_connections(self) -> None:
        """End every connection at once, as unplugging does."""
        self._connections.drop()

    async def close(self) -> None:
        """Switch the phone off: every connection and every app ends."""
        await self._connections.close()
        await self.machine.power_off()

    def _classic_services(self, on_power: Callable[[PowerRequest], None]) -> dict[str, Service]:
        """Return the services that lockdown starts."""
        settings, machine, product = self.settings, self.machine, self.identity.model.product_type
        diagnostics = DiagnosticsRelay(self.identity, settings, on_power)
        proxy = InstallationProxy(machine.apps, self._media, self.identity, machine)
        services: dict[str, Service] = {
            "com.apple.afc": AfcService(self._media, product, settings).serve,
            "com.apple.amfi.lockdown": Amfi(settings).serve,
            "com.apple.crashreportcopymobile": AfcService(self._crashes, product, settings).serve,
            "com.apple.crashreportmover": serve_crash_mover,
            "com.apple.mobile.diagnostics_relay": diagnostics.serve,
            "com.apple.mobile.heartbeat": serve_heartbeat,
            "com.apple.mobile.house_arrest": HouseArrestService(
                machine.apps, product, settings
            ).serve,
            "com.apple.mobile.installation_proxy": proxy.serve,
            "com.apple.mobile.mobile_image_mounter": ImageMounter(settings).serve,
            "com.apple.mobile.notification_proxy": serve_notification_proxy,
            "com.apple.os_trace_relay": OsTraceRelay(machine).serve,
            "com.apple.syslog_relay": SyslogRelay(machine).serve,
        }
        if serves_developer_on_lockdown(self.identity.os):
            services[DVT_ON_LOCKDOWN] = self._developer_services().serve
        return services

    def _developer_services(self) -> DtxServer:
        machine = self.machine
        return DtxServer(
            {
                f"{_INSTRUMENTS}.deviceinfo": lambda _channel: DeviceInfo(machine),
                f"{_INSTRUMENTS}.processcontrol": lambda channel: ProcessControl(machine, channel),
                f"{_INSTRUMENTS}.sysmontap": lambda channel: Sysmontap(machine, channel),
            }
        )

    def _remote_services(self) -> dict[str, RemoteService]:
        """Return the services of the tunnel; none on a phone that has no tunnel."""
        if serves_developer_on_lockdown(self.identity.os):
            return {}
        plain = {"ServiceVersion": 1}
        lockdown = Endpoint("lockdownd", checked_in(self._lockdownd.serve_trusted))
        hub = Endpoint("dtservicehub", self._developer_services().serve)
        apps = Endpoint("appservice", appservice.AppService(self.machine).serve)
        shims = {
            f"{name}.shim.remote": RemoteService(Endpoint(name, checked_in(service)), plain)
            for name, service in self._services.items()
        }
        return {
            **shims,
            LOCKDOWN_ON_TUNNEL: RemoteService(lockdown, plain),
            "com.apple.instruments.dtservicehub": RemoteService(
                hub, {"Features": ["com.apple.dt.profile"], "version": 1}
            ),
            "com.apple.coredevice.appservice": RemoteService(apps, appservice.PROPERTIES),
        }


class _TunnelPorts:
    """Ports that exist inside the tunnel only; there a host is trusted already."""

    def __init__(self, phone: VirtualPhone) -> None:
        self._phone = phone
        self.rsd_port = _FIRST_TUNNEL_PORT
        services = phone.remote_services
        ports = {name: self.rsd_port + place for place, name in enumerate(services, start=1)}
        directory = ServiceDirectory(phone.identity, services, ports)
        self._endpoints = {ports[name]: service.endpoint for name, service in services.items()}
        self._endpoints[self.rsd_port] = Endpoint("rsd", directory.serve)

    def endpoint(self, port: int) -> Endpoint | None:
        """Return what listens on a port, the phone's other ports included."""
        return self._endpoints.get(port) or self._phone.endpoint(port)

    async def serve(self, endpoint: Endpoint, stream: Stream) -> None:
        """Serve one connection until it ends."""
        await self._phone.serve(endpoint, stream)


def _make_folders(media: Path, crashes: Path, port_folder: Path) -> None:
    (media / "PublicStaging").mkdir(parents=True, exist_ok=True)
    for name in _CRASH_FOLDERS:
        (crashes / name).mkdir(parents=True, exist_ok=True)
    port_folder.mkdir(parents=True, exist_ok=True)


def _bridge_to(path: Path) -> Service:
    """Return a service that carries bytes to and from an app's socket."""

    async def serve(stream: Stream) -> None:
        reader, writer = await asyncio.open_unix_connection(path, limit=READER_LIMIT_BYTES)
        await splice(stream, SocketStream(reader, writer))

    return serve
