"""The developer session inside a keeper: process control, device info and sysmontap over DTX."""

from __future__ import annotations

import re
from contextlib import AsyncExitStack, aclosing, suppress
from typing import TYPE_CHECKING, Any, Final

import anyio
from pymobiledevice3.dtx import DTXNsError
from pymobiledevice3.services.dvt.instruments.device_info import DeviceInfo
from pymobiledevice3.services.dvt.instruments.dvt_provider import DvtProvider
from pymobiledevice3.services.dvt.instruments.notifications import Notifications
from pymobiledevice3.services.dvt.instruments.sysmontap import Sysmontap

from orchestrator.device.events import FootprintObserved, SessionLost, WarningNoticed
from orchestrator.device.pmd3.calls import translated
from orchestrator.device.pmd3.errors import device_error
from orchestrator.device.pmd3.process_control import ProcessWatch, WatchedProcessControl
from orchestrator.device.pmd3.tunnel import connect_rsd
from orchestrator.domain.errors import DeviceError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Mapping, Sequence

    from anyio.abc import TaskGroup, TaskStatus

    from orchestrator.device.events import SessionEvent
    from orchestrator.domain.deadline import Deadline

MOST_NOTICES: Final = 1000  # of one session; a soak has some ten
MEMORY_INTERVAL_MS: Final = 100  # one system row is all that is wanted
_UUID: Final = re.compile(r"[0-9A-Fa-f]{8}(?:-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}")
_NO_SUCH_PROCESS: Final = ("NSPOSIXErrorDomain", 3)


class DtxSession:
    """One phone's developer services. Open it once; after a loss it stays lost.

    Args:
        alias: The phone, for errors.
        udid: The phone, for usbmux.
        tunneld: host:port of a tunneld to use if it answers and has the phone.
        emit: Takes events; must not block.
        tasks: Parent of the sampling task.
    """

    def __init__(
        self,
        alias: str,
        udid: str,
        tunneld: str | None,
        *,
        emit: Callable[[SessionEvent], None],
        tasks: TaskGroup,
    ) -> None:
        self._alias = alias
        self._udid = udid
        self._tunneld = tunneld
        self._emit = emit
        self._tasks = tasks
        self._stack = AsyncExitStack()
        self._services: _Services | None = None
        self._sampling: anyio.CancelScope | None = None
        self._noticing: anyio.CancelScope | None = None
        self._over = False  # lost or closed: no further event
        self._boot_session: str | None = None

    async def open(self, *, deadline: Deadline) -> bool:
        """Open tunnel and developer services; return whether a tunneld leads to them."""
        with translated(self._alias, "tunnel", "open", deadline):
            rsd, by_tunneld = await connect_rsd(self._stack, self._udid, self._tunneld)
        self._boot_session = boot_session_of(rsd.peer_info)
        with translated(self._alias, "dvt", "open", deadline):
            provider = await self._stack.enter_async_context(DvtProvider(rsd))
            control = await self._stack.enter_async_context(WatchedProcessControl(provider))
            info = await self._stack.enter_async_context(DeviceInfo(provider))
        control.service.watch = ProcessWatch(self._emit, self._lost)
        self._noticing = await self._tasks.start(self._notice, provider)
        self._services = _Services(provider, control, info)
        return by_tunneld

    async def launch(
        self,
        bundle_id: str,
        environment: Mapping[str, str],
        arguments: Sequence[str],
        *,
        deadline: Deadline,
    ) -> int:
        """Start the app, in place of one that already runs, and return its pid."""
        with translated(self._alias, "dvt", "launch", deadline):
            control = self._opened.control
            pid = await control.launch(
                bundle_id, list(arguments), kill_existing=True, environment=dict(environment)
            )
            with suppress(DTXNsError):  # it may have died already; its exit is on the way
                await control.service.startObservingPid_(pid)
            return int(pid)

    async def kill(self, pid: int, *, deadline: Deadline) -> None:
        """Send SIGKILL; a pid that is gone already is no error."""
        with translated(self._alias, "dvt", "kill", deadline):
            try:
                await self._opened.control.kill(pid)
            except DTXNsError as error:
                if (error.error.domain, error.error.code) != _NO_SUCH_PROCESS:
                    raise

    async def is_running(self, pid: int, *, deadline: Deadline) -> bool:
        """Ask whether the pid is alive."""
        with translated(self._alias, "dvt", "is-running", deadline):
            return bool(await self._opened.info.is_running_pid(pid))

    async def physical_memory_bytes(self, *, deadline: Deadline) -> int:
        """Return `physMemSize` from the first system row of sysmontap."""
        with translated(self._alias, "dvt", "memory", deadline):
            async with self._tap(MEMORY_INTERVAL_MS) as tap, aclosing(aiter(tap)) as rows:
                return await _first_memory_size(rows)

    def boot_session(self) -> str | None:
        """Return the UUID of the phone's boot, as its service directory said."""
        return self._boot_session

    async def observe(self, pid: int, interval_ms: int, *, deadline: Deadline) -> None:
        """Start footprint and exit events for one pid, in place of those for another."""
        if self._sampling is not None:
            self._sampling.cancel()
        with translated(self._alias, "dvt", "observe", deadline):
            with suppress(DTXNsError):  # an app that another session launched, gone by now
                await self._opened.control.service.startObservingPid_(pid)
            self._sampling = await self._tasks.start(self._sample, pid, interval_ms)

    async def aclose(self, *, deadline: Deadline) -> None:
        """Close tunnel and services; never raises."""
        self._over = True
        for scope in (self._sampling, self._noticing):
            if scope is not None:
                scope.cancel()
        with suppress(DeviceError), translated(self._alias, "tunnel", "close", deadline):
            await self._stack.aclose()

    @property
    def _opened(self) -> _Services:
        if self._services is None:
            raise DeviceError(self._alias, "dvt", "session", "the session is not open")
        return self._services

    def _tap(self, interval_ms: int) -> Sysmontap:
        return Sysmontap(
            self._opened.provider, ["pid", "physFootprint"], ["physMemSize"], interval_ms
        )

    async def _sample(
        self, pid: int, interval_ms: int, *, task_status: TaskStatus[anyio.CancelScope]
    ) -> None:
        with anyio.CancelScope() as scope:
            try:
                async with self._tap(interval_ms) as tap, aclosing(aiter(tap)) as rows:
                    task_status.started(scope)
                    async for row in rows:
                        self._report(row, pid)
            except Exception as error:  # noqa: BLE001 - becomes the session's loss, typed
                self._lost(device_error(error, self._alias, "dvt", "observe").facts)

    async def _notice(
        self, provider: DvtProvider, *, task_status: TaskStatus[anyio.CancelScope]
    ) -> None:
        """Tell of memory warnings, `MOST_NOTICES` at most: a phone that says more is broken.

        A witness that a session can do without: whatever ends it, the session goes on.
        """
        with anyio.CancelScope() as scope:
            task_status.started(scope)
            with suppress(Exception):
                notifications = Notifications(provider)
                await notifications.connect()
                await notifications.service.set_memory_notifications_enabled_(True)
                told = 0
                while True:  # to the end: the library's queue has no bound of its own
                    notice = warning_of(await notifications.service.events.get())
                    if notice is not None and told < MOST_NOTICES and not self._over:
                        told += 1
                        self._emit(notice)

    def _report(self, row: object, pid: int) -> None:
        footprint_bytes = footprint_of(row, pid)
        if footprint_bytes is not None and not self._over:
            self._emit(FootprintObserved(pid, footprint_bytes))

    def _lost(self, reason: str) -> None:
        if not self._over:
            self._over = True
            self._emit(SessionLost(reason))


class _Services:
    """What an open session has."""

    def __init__(
        self, provider: DvtProvider, control: WatchedProcessControl, info: DeviceInfo
    ) -> None:
        self.provider = provider
        self.control = control
        self.info = info


def boot_session_of(handshake: object) -> str | None:
    """Return `BootSessionUUID` of a directory's handshake, None if it is not in it; hostile."""
    properties = handshake.get("Properties") if isinstance(handshake, dict) else None
    text = properties.get("BootSessionUUID") if isinstance(properties, dict) else None
    return text.lower() if isinstance(text, str) and _UUID.fullmatch(text) else None


def warning_of(payload: object) -> WarningNoticed | None:
    """Return the warning that a notification tells of, None for another; the payload is hostile.

    Args:
        payload: `("memoryLevelNotification:", [{"pid": 7, "code": 2.0, ...}])`, as the library
            queues what the phone calls. Of the keys only `pid` is read; a real phone's are unknown.
    """
    match payload:
        case ("memoryLevelNotification:", [{"pid": int(pid)}, *_]):
            return WarningNoticed(pid)
        case ("memoryLevelNotification:", list()):
            return WarningNoticed(None)
        case _:
            return None


def footprint_of(row: object, pid: int) -> int | None:
    """Return `physFootprint` of a pid from one sysmontap row, None if it is not in it.

    Args:
        row: `{"Processes": {pid: [pid, physFootprint]}}` or another kind of row; hostile.
        pid: The process.
    """
    processes = row.get("Processes") if isinstance(row, dict) else None
    values = processes.get(pid) if isinstance(processes, dict) else None
    if not isinstance(values, list) or len(values) != 2:
        return None
    footprint_bytes = values[1]
    valid = isinstance(footprint_bytes, int) and footprint_bytes >= 0
    return footprint_bytes if valid else None


def memory_size_of(row: object) -> int | None:
    """Return `physMemSize` from one sysmontap row, None if it is not in it."""
    values = row.get("System") if isinstance(row, dict) else None
    if not isinstance(values, list) or not values:
        return None
    return values[0] if isinstance(values[0], int) and values[0] > 0 else None


async def _first_memory_size(rows: AsyncIterator[Any]) -> int:
    async for row in rows:
        size_bytes = memory_size_of(row)
        if size_bytes is not None:
            return size_bytes
    raise EOFError("sysmontap ended")
