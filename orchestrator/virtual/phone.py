"""One virtual iPhone: state on disk, daemons, and the tables of its ports."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from orchestrator.virtual.connections import Connections
from orchestrator.virtual.coredevice.appservice import app_service
from orchestrator.virtual.coredevice.deviceinfo import device_info
from orchestrator.virtual.dtx.catalog import instruments, manager_of_tests
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
from orchestrator.virtual.services.diagnostics import DiagnosticsRelay, PowerRequest
from orchestrator.virtual.services.house_arrest import HouseArrestService
from orchestrator.virtual.services.liveness import serve_assertions, serve_heartbeat
from orchestrator.virtual.services.logs.stream import OsTraceRelay, SyslogRelay
from orchestrator.virtual.services.notifications import NotificationHub
from orchestrator.virtual.services.profiles import ProvisioningAgent
from orchestrator.virtual.settings import Settings
from orchestrator.virtual.tampering import tampered
from orchestrator.virtual.tunnel.proxy import CoreDeviceProxy
from orchestrator.virtual.wire import READER_LIMIT_BYTES, Endpoint, SocketStream, splice

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from orchestrator.virtual.events import EventLog
    from orchestrator.virtual.identity import Identity
    from orchestrator.virtual.pki import Pki
    from orchestrator.virtual.wire import Service, Stream

COREDEVICE_PROXY: Final = "com.apple.internal.devicecompute.CoreDeviceProxy"
DVT_ON_LOCKDOWN: Final = "com.apple.instruments.remoteserver.DVTSecureSocketProxy"
LOCKDOWN_ON_TUNNEL: Final = "com.apple.mobile.lockdown.remote.trusted"
LOCKDOWN_NAME: Final = "lockdownd"

_APP_PORT: Final = "app"  # name of the endpoints of apps
_TEST_MANAGER: Final = "com.apple.testmanagerd.lockdown.secure"
_DEVELOPER_ON_LOCKDOWN: Final = frozenset({DVT_ON_LOCKDOWN, _TEST_MANAGER})
# What a phone serves that was not unlocked since its boot.
_BEFORE_FIRST_UNLOCK: Final = frozenset(
    {"com.apple.mobile.diagnostics_relay", "com.apple.mobile.heartbeat"}
)
_FIRST_SERVICE_PORT: Final = 49_200
_FIRST_TUNNEL_PORT: Final = 58_800
# As on a phone: retired reports and sysdiagnoses have folders of their own.
_CRASH_FOLDERS: Final = ("DiagnosticLogs", "Retired")
_MEDIA_FOLDERS: Final = (
    *("AirFair", "Books", "DCIM", "Downloads", "MediaAnalysis", "PhotoData", "Photos"),
    *("Podcasts", "PublicStaging", "Purchases", "Recordings", "Safari", "iTunes_Control"),
)


@dataclass(frozen=True, slots=True)
class PhonePlan:
    """What makes one phone of a farm different from the next."""

    index: int  # place in the farm, from 0
    identity: Identity
    folder: Path  # its state; survives the farm
    port_folder: Path  # short path, for the sockets of its apps
    memory_scale: int
    entitled: bool
    report_delay_s: float


class VirtualPhone:
    """A phone as usbmuxd and tunneld see it."""

    def __init__(
        self,
        plan: PhonePlan,
        pki: Pki,
        events: EventLog,
        on_power: Callable[[VirtualPhone, PowerRequest], None],
    ) -> None:
        self.identity = plan.identity
        self.settings = Settings(name=plan.identity.name)
        self.settings.reports.delay_s = plan.report_delay_s
        self._media = plan.folder / "Media"
        self._crashes = plan.folder / "CrashReports"
        _make_folders(self._media, self._crashes, plan.port_folder)
        facts = MachineFacts(
            plan.identity, plan.memory_scale, plan.entitled, plan.port_folder, self._crashes
        )
        self.machine = Machine(facts, self.settings, AppStore(plan.folder), events)
        self.pairings = Pairings(plan.folder / "pairings.plist", pki, self.settings)
        values = DeviceValues(plan.identity, self.settings, pki.keys, plan.memory_scale)
        self._lockdownd = Lockdownd(
            values, self.pairings, self, lambda: on_power(self, PowerRequest.SHUTDOWN)
        )
        self._connections = Connections()
        self.notifications = NotificationHub()
        self._services = self._classic_services(lambda request: on_power(self, request))
        self.remote_services = self._remote_services()
        self._tunnel_ports = _TunnelPorts(self)
        self.tunnel = CoreDeviceProxy(plan.index, self._tunnel_ports.rsd_port, self._tunnel_ports)
        if offers_tunnel(plan.identity.os):
            self._services[COREDEVICE_PROXY] = self.tunnel.serve
        self._ports: dict[int, Endpoint] = {
            LOCKDOWN_PORT: Endpoint(LOCKDOWN_NAME, self._lockdownd.serve)
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

    def start_service(self, name: str) -> tuple[int, bool] | str:
        """Return (port, whether it speaks TLS) of a lockdown service, or lockdown's refusal."""
        service = self._services.get(name)
        closed = name in _DEVELOPER_ON_LOCKDOWN and not self.settings.offers_development
        if service is None or closed:
            return "InvalidService"
        if self.settings.before_first_unlock and name not in _BEFORE_FIRST_UNLOCK:
            return "PasswordProtected"
        if name not in self._port_of_service:
            port = _FIRST_SERVICE_PORT + len(self._port_of_service)
            self._port_of_service[name] = port
            self._ports[port] = Endpoint(name, service, tls=True)
        return self._port_of_service[name], True

    def endpoint(self, port: int) -> Endpoint | None:
        """Return what listens on a port of the phone: a daemon, or an app's socket."""
        if port in self._ports:
            return self._ports[port]
        if self.settings.impostor is not None:
            return Endpoint(_APP_PORT, self.settings.impostor)
        path = self.machine.kernel.app_socket(port) if self.settings.apps_listen else None
        return None if path is None else Endpoint(_APP_PORT, _bridge_to(path))

    async def serve(self, endpoint: Endpoint, stream: Stream) -> None:
        """Serve one connection until it ends."""

        async def serve(stream: Stream) -> None:
            if endpoint.tls:
                await stream.start_tls(self.pairings.service_context())
            tampering = self.settings.tampering.get(endpoint.name)
            if endpoint.name in self.settings.muted:
                await stream.until_closed()
            elif tampering is None:
                await endpoint.serve(stream)
            else:
                async with tampered(stream, tampering) as damaged:
                    await endpoint.serve(damaged)

        await self._connections.run(serve, stream, endpoint.name)

    def offered_services(self) -> dict[str, RemoteService]:
        """Return the services of the tunnel that are there now."""
        development = self.settings.offers_development
        services = self.remote_services.items()
        return {name: each for name, each in services if development or not each.is_developer}

    def service_names(self) -> list[str]:
        """Return the names that faults of one service take."""
        remote = (service.endpoint.name for service in self.remote_services.values())
        return sorted({LOCKDOWN_NAME, *self._services, *remote})

    def drop_app_connections(self) -> None:
        """End connections to the ports of apps."""
        self._connections.drop(_APP_PORT)

    def move_tunnel(self) -> None:
        """Give the tunnel another address; open ones break."""
        self.tunnel.move()
        self._connections.drop(COREDEVICE_PROXY)

    def drop_connections(self) -> None:
        """End every connection at once, as unplugging does."""
        self._connections.drop()

    async def close(self) -> None:
        """Switch the phone off: every connection and every app ends."""
        await self._connections.close()
        await self.machine.power_off()

    async def _serve_media(self, stream: Stream) -> None:
        """Serve the Media partition, whose folders are made when somebody looks."""
        for name in _MEDIA_FOLDERS:
            (self._media / name).mkdir(parents=True, exist_ok=True)
        product = self.identity.model.product_type
        await AfcService(self._media, product, self.settings).serve(stream)

    def _classic_services(self, on_power: Callable[[PowerRequest], None]) -> dict[str, Service]:
        """Return the services that lockdown starts."""
        settings, machine, product = self.settings, self.machine, self.identity.model.product_type
        diagnostics = DiagnosticsRelay(self.identity, settings, on_power)
        proxy = InstallationProxy(
            machine.apps, self._media, self.identity, settings, machine, self.notifications.post
        )
        services: dict[str, Service] = {
            "com.apple.afc": self._serve_media,
            "com.apple.amfi.lockdown": Amfi(settings).serve,
            "com.apple.crashreportcopymobile": AfcService(self._crashes, product, settings).serve,
            "com.apple.crashreportmover": serve_crash_mover,
            "com.apple.mobile.assertion_agent": serve_assertions,
            "com.apple.mobile.diagnostics_relay": diagnostics.serve,
            "com.apple.mobile.heartbeat": serve_heartbeat,
            "com.apple.mobile.house_arrest": HouseArrestService(
                machine.apps, product, settings
            ).serve,
            "com.apple.mobile.installation_proxy": proxy.serve,
            "com.apple.mobile.mobile_image_mounter": ImageMounter(self.identity, settings).serve,
            "com.apple.mobile.notification_proxy": self.notifications.serve,
            "com.apple.misagent": ProvisioningAgent().serve,
            "com.apple.os_trace_relay": OsTraceRelay(machine).serve,
            "com.apple.syslog_relay": SyslogRelay(machine).serve,
        }
        if serves_developer_on_lockdown(self.identity.os):
            services[DVT_ON_LOCKDOWN] = instruments(machine).serve
            services[_TEST_MANAGER] = manager_of_tests().serve
        return services

    def _remote_services(self) -> dict[str, RemoteService]:
        """Return the services of the tunnel; none on a phone that has no tunnel."""
        if serves_developer_on_lockdown(self.identity.os):
            return {}
        plain = {"ServiceVersion": 1}
        lockdown = Endpoint(LOCKDOWN_NAME, checked_in(self._lockdownd.serve_trusted))
        shims = {
            f"{name}.shim.remote": RemoteService(Endpoint(name, checked_in(service)), plain)
            for name, service in self._services.items()
        }
        return {**shims, LOCKDOWN_ON_TUNNEL: RemoteService(lockdown, plain), **self._development()}

    def _development(self) -> dict[str, RemoteService]:
        """Return the services that the developer image brings to the tunnel."""
        features = {"Features": ["com.apple.dt.profile"], "version": 1}
        servers: dict[str, tuple[Service, dict[str, Any]]] = {
            "com.apple.instruments.dtservicehub": (instruments(self.machine).serve, features),
            "com.apple.dt.testmanagerd.remote": (manager_of_tests().serve, {"version": 1}),
        }
        for name, service in (
            ("com.apple.coredevice.appservice", app_service(self.machine)),
            ("com.apple.coredevice.deviceinfo", device_info(self.machine)),
        ):
            servers[name] = (service.serve, service.properties)
        return {
            name: RemoteService(Endpoint(name, serve), properties, is_developer=True)
            for name, (serve, properties) in servers.items()
        }


class _TunnelPorts:
    """Ports that exist inside the tunnel only; there a host is trusted already."""

    def __init__(self, phone: VirtualPhone) -> None:
        self._phone = phone
        self.rsd_port = _FIRST_TUNNEL_PORT
        services = phone.remote_services
        ports = {name: self.rsd_port + place for place, name in enumerate(services, start=1)}

        async def port_of(name: str) -> int:
            return ports[name]

        directory = ServiceDirectory(
            phone.identity, phone.offered_services, port_of, lambda: phone.machine.boot_time_s
        )
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
