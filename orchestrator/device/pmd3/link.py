"""`PhoneLink` over pymobiledevice3."""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Final

import anyio
from anyio.abc import SocketStream
from pymobiledevice3.exceptions import (
    AfcFileNotFoundError,
    ConnectionFailedError,
    ConnectionFailedToUsbmuxdError,
)
from pymobiledevice3.services.diagnostics import DiagnosticsService
from pymobiledevice3.services.house_arrest import HouseArrestService

from orchestrator.device.link import PortRefusedError, RemotePathMissingError
from orchestrator.device.pmd3 import afc, install, mounting, reports
from orchestrator.device.pmd3.calls import translated
from orchestrator.device.pmd3.facts import read_facts
from orchestrator.device.pmd3.plain import library_address
from orchestrator.device.pmd3.usbmux import attached_device, lockdown_session
from orchestrator.device.report_paths import local_paths

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Sequence
    from pathlib import Path

    from anyio.abc import ByteStream
    from pymobiledevice3.lockdown import UsbmuxLockdownClient
    from pymobiledevice3.services.afc import AfcService

    from orchestrator.device.facts import PhoneFacts, PulledReport, RemoteFile
    from orchestrator.device.keeper.broker import KeeperBroker
    from orchestrator.device.keeper.client import KeeperClient
    from orchestrator.domain.deadline import Deadline
    from orchestrator.domain.phone import Phone

MAX_PULLED_BYTES: Final = 4 * 1024**3  # of one file from the app's container


class Pmd3Link:
    """One phone on one usbmux source.

    Args:
        phone: As discovery found it.
        address: Of the source, `default` or host:port.
        broker: Opens the phone's developer session.
    """

    def __init__(self, phone: Phone, address: str, broker: KeeperBroker) -> None:
        self._phone = phone
        self._address = address
        self._broker = broker
        self._allowance = reports.Allowance()

    @property
    def phone(self) -> Phone:
        """The phone this link reaches."""
        return self._phone

    async def facts(self, *, deadline: Deadline) -> PhoneFacts:
        """Return what the phone says about itself."""
        async with self._lockdown("lockdown", "health", deadline) as client:
            return await read_facts(client)

    async def mount_image(self, *, deadline: Deadline) -> None:
        """Mount the developer disk image."""
        async with self._lockdown("lockdown", "mount", deadline) as client:
            await mounting.mount_image(client, self._phone.alias)

    async def install(
        self,
        ipa: Path,
        bundle_id: str,
        *,
        deadline: Deadline,
        uninstall_first: bool = False,
        on_progress: Callable[[str, float], None] | None = None,
    ) -> None:
        """Install a package and see that the phone then has the app."""
        report = on_progress or (lambda _stage, _percent: None)
        alias = self._phone.alias
        async with self._lockdown("install", "install", deadline) as client:
            if uninstall_first:
                await install.uninstall(client, alias, bundle_id)
            await install.upload(client, ipa, report)
            await install.install(client, alias, bundle_id, report)

    async def push(
        self,
        bundle_id: str,
        source: bytes | Path,
        remote_path: str,
        *,
        deadline: Deadline,
        on_bytes: Callable[[int], None] | None = None,
        from_byte: int = 0,
    ) -> None:
        """Write a file or a folder into the app's container, or the rest of a file."""
        path = afc.container_path(remote_path)
        async with self._container(bundle_id, "push", deadline) as files:
            if from_byte:
                await afc.extend(files, source, path, from_byte, on_bytes)
            else:
                await afc.store(files, source, path, on_bytes)

    async def digest(self, bundle_id: str, remote_path: str, *, deadline: Deadline) -> str:
        """Read a file of the container back and return its SHA-256."""
        async with self._container(bundle_id, "digest", deadline) as files:
            with self._missing("digest", remote_path):
                return await afc.digest(files, afc.container_path(remote_path))

    async def list(
        self, bundle_id: str, remote_dir: str, *, deadline: Deadline
    ) -> Sequence[RemoteFile]:
        """Return the entries of a folder in the app's container."""
        async with self._container(bundle_id, "list", deadline) as files:
            with self._missing("list", remote_dir):
                found = await afc.entries(files, afc.container_path(remote_dir))
        return found

    async def tree(
        self, bundle_id: str, remote_dir: str, *, deadline: Deadline
    ) -> Sequence[RemoteFile]:
        """Return all files below a folder in the app's container."""
        async with self._container(bundle_id, "list", deadline) as files:
            with self._missing("list", remote_dir):
                return await afc.walk(files, afc.container_path(remote_dir))

    async def pull(
        self, bundle_id: str, remote_path: str, local: Path, *, deadline: Deadline
    ) -> None:
        """Copy a file to `local`, or a folder's files below `local`."""
        async with self._container(bundle_id, "pull", deadline) as files:
            with self._missing("pull", remote_path):
                await _pulled(files, afc.container_path(remote_path), local)

    async def remove(self, bundle_id: str, remote_path: str, *, deadline: Deadline) -> None:
        """Delete a file or a whole folder of the container; a missing one is no error."""
        path = afc.container_path(remote_path)
        async with self._container(bundle_id, "remove", deadline) as files:
            if await files.exists(path):
                await files.rm(path)

    async def restart(self, *, deadline: Deadline) -> None:
        """Ask the phone to restart; it goes down when the service is closed."""
        async with (
            self._lockdown("lockdown", "restart", deadline) as client,
            DiagnosticsService(client) as diagnostics,
        ):
            await diagnostics.action("Restart")

    async def connect(self, port: int, *, deadline: Deadline) -> ByteStream:
        """Connect to the app's port on the phone's loopback."""
        with translated(self._phone.alias, "app", "connect", deadline):
            device = await attached_device(self._phone.udid, self._address)
            try:
                address = library_address(self._address)
                sock = await device.connect(port, usbmux_address=address)
            except ConnectionFailedToUsbmuxdError:
                raise
            except ConnectionFailedError as error:
                raise PortRefusedError(self._phone.alias, port) from error
            stream = await SocketStream.from_socket(sock)
            _read_on_demand(stream)
            return stream

    async def flush_reports(self, *, deadline: Deadline) -> None:
        """Make the phone move pending crash reports to where they can be pulled."""
        async with self._lockdown("afc", "collect", deadline) as client:
            await reports.flush(client)

    async def list_reports(self, *, deadline: Deadline) -> set[str]:
        """Return the `PulledReport.key` of every report on the phone, copying none."""
        async with self._lockdown("afc", "collect", deadline) as client:
            return await reports.listing(client)

    async def pull_reports(
        self, into: Path, *, known: set[str], deadline: Deadline
    ) -> Sequence[PulledReport]:
        """Copy the phone's crash reports that are not known yet."""
        async with self._lockdown("afc", "collect", deadline) as client:
            return await reports.pull(client, into, known, self._allowance)

    async def developer(self, *, deadline: Deadline) -> KeeperClient:
        """Open the phone's one developer session, in a keeper process of its own."""
        return await self._broker.open(self._phone, self._address, deadline=deadline)

    async def adopt(self, *, deadline: Deadline) -> KeeperClient | None:
        """Attach to the session that an earlier orchestrator left; None if there is none."""
        return await self._broker.adopt(self._phone, self._address, deadline=deadline)

    @asynccontextmanager
    async def _lockdown(
        self, layer: str, phase: str, deadline: Deadline
    ) -> AsyncIterator[UsbmuxLockdownClient]:
        with translated(self._phone.alias, layer, phase, deadline):
            async with lockdown_session(self._phone.udid, self._address) as client:
                yield client

    @asynccontextmanager
    async def _container(
        self, bundle_id: str, phase: str, deadline: Deadline
    ) -> AsyncIterator[AfcService]:
        async with self._lockdown("afc", phase, deadline) as client:
            # Not `HouseArrestService.create`: cancelled, it leaves its connection open.
            service = HouseArrestService(client)
            async with afc.closing(service) as files:
                await service.send_command(bundle_id)
                yield files

    def _missing(self, phase: str, path: str) -> _Missing:
        return _Missing(self._phone.alias, phase, path)


class _Missing:
    """Turns a missing path into its own error."""

    def __init__(self, alias: str, phase: str, path: str) -> None:
        self._error = RemotePathMissingError(alias, phase, path)

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if isinstance(error, AfcFileNotFoundError):
            raise self._error from error


async def _pulled(files: AfcService, remote: str, local: Path) -> None:
    item = await afc.entry(files, remote)
    if item is not None and not item.is_folder:
        await afc.fetch(files, remote, local, limit_bytes=MAX_PULLED_BYTES)
        return
    found = await afc.walk(files, remote)
    below = {one.path: one.path.removeprefix(remote) for one in found}
    places = local_paths(list(below.values()))
    await anyio.Path(local).mkdir(parents=True, exist_ok=True)
    for path, relative in below.items():
        await afc.fetch(files, path, local / places[relative], limit_bytes=MAX_PULLED_BYTES)


def _read_on_demand(stream: SocketStream) -> None:
    """Keep a stream from reading ahead of its reader.

    Streams that anyio makes from a socket read on until they wait for data for the first time, so
    an app that sends faster than it is read would fill the memory. anyio's own `connect_tcp` pauses
    its transport in the same way; there is no public name for it.
    """
    transport = stream._transport  # type: ignore[attr-defined]
    transport.pause_reading()
