"""Many virtual phones behind one usbmuxd and one tunneld."""

from __future__ import annotations

import asyncio
import json
import shutil
import tempfile
from contextlib import asynccontextmanager, contextmanager
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

from orchestrator.virtual.connections import LOOPBACK, Listener, allow_many_sockets
from orchestrator.virtual.control import ControlServer
from orchestrator.virtual.events import EventLog
from orchestrator.virtual.faults.engine import FaultEngine
from orchestrator.virtual.identity import default_phones, identity_of, model_of
from orchestrator.virtual.mux import PairRecords, Usbmuxd
from orchestrator.virtual.phone import PhonePlan, VirtualPhone
from orchestrator.virtual.pki import Pki
from orchestrator.virtual.places import (
    CONTROL_NAME,
    SOCKETS_PREFIX,
    SOCKETS_ROOT,
    STATE_PREFIX,
    held,
    own_prefix,
    remove_leftovers,
)
from orchestrator.virtual.services.diagnostics import PowerRequest
from orchestrator.virtual.settings import (
    CHARGE_PERCENT_PER_MIN,
    DRAIN_PERCENT_PER_MIN,
    REPORT_DELAY_S,
)
from orchestrator.virtual.tunneld import Tunneld

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator, Mapping

    from orchestrator.virtual.faults.engine import ScriptedFault

REBOOT_S: Final = 2.0
DEFAULT_MEMORY_SCALE: Final = 32


@dataclass(frozen=True, slots=True)
class ServeOptions:
    """What farm to make."""

    phones: list[tuple[str, str]] = field(default_factory=default_phones)  # (model, iOS)
    port: int = 0  # of usbmuxd; 0 takes any free one
    tunneld_port: int = 0
    folder: Path | None = None  # state of the phones; None for one that is removed at the end
    memory_scale: int = DEFAULT_MEMORY_SCALE  # phone bytes per host byte
    seed: int = 0  # another seed gives other UDIDs
    entitled: bool = False  # whether apps hold increased-memory-limit
    report_delay_s: float = REPORT_DELAY_S  # from a death to its file
    faults: tuple[ScriptedFault, ...] = ()
    events: Path | None = None  # file that the event log is appended to
    limits_mib: Mapping[int, int] = field(
        default_factory=dict
    )  # by place from 0, not the catalog's


@dataclass(frozen=True, slots=True)
class PhoneDescription:
    """One phone of a farm."""

    udid: str
    name: str
    model: str
    product_type: str
    os: str


@dataclass(frozen=True, slots=True)
class FarmDescription:
    """Where a farm listens and who is in it."""

    usbmux: str  # "127.0.0.1:PORT", what USBMUXD_SOCKET_ADDRESS takes
    tunneld: str
    control: str  # path of the socket that takes faults
    phones: list[PhoneDescription]

    def as_json(self) -> str:
        """Return the description as one line of JSON."""
        return json.dumps(asdict(self))


class Farm:
    """Phones that are plugged in, unplugged and rebooted. Made by `running_farm`."""

    def __init__(
        self, options: ServeOptions, folder: Path, sockets: Path, events: EventLog
    ) -> None:
        pki = Pki(folder / "pki")
        self.events, self.seed = events, options.seed
        self.mux = Usbmuxd(pki, PairRecords(folder / "lockdown"))
        self.tunneld = Tunneld()
        self.phones = [
            VirtualPhone(plan, pki, events, self._on_power)
            for plan in _plans(options, folder, sockets)
        ]
        self.faults = FaultEngine(self)
        self._control_path = sockets / CONTROL_NAME
        self._control = ControlServer(self)
        self.reboot_s = REBOOT_S
        self._listener = Listener(self.mux.serve)
        self._power_cycles: set[asyncio.Task[None]] = set()
        self._ports = (0, 0)

    def describe(self) -> FarmDescription:
        """Return where the farm listens and who is in it."""
        usbmux, tunneld = self._ports
        return FarmDescription(
            usbmux=f"{LOOPBACK}:{usbmux}",
            tunneld=f"{LOOPBACK}:{tunneld}",
            control=str(self._control_path),
            phones=[_describe(phone) for phone in self.phones],
        )

    async def unplug(self, phone: VirtualPhone) -> None:
        """Pull the cable of a phone. Its apps go on, and its battery drains."""
        self.mux.detach(phone)
        await self.tunneld.remove(phone)
        phone.settings.battery.change(charging=False, percent_per_min=DRAIN_PERCENT_PER_MIN)
        phone.machine.tell_battery()
        phone.machine.note("unplugged")

    async def plug_in(self, phone: VirtualPhone) -> None:
        """Plug a phone in; one that is plugged in already stays so."""
        if self.mux.is_attached(phone):
            return
        phone.settings.battery.change(charging=True, percent_per_min=CHARGE_PERCENT_PER_MIN)
        phone.machine.tell_battery()
        await self.tunneld.add(phone)
        self.mux.attach(phone)
        phone.machine.note("plugged_in")

    async def reboot(self, phone: VirtualPhone, *, stays_locked: bool = False) -> None:
        """Switch a phone off and on; its apps die and it is away for `reboot_s`.

        Args:
            phone: Of this farm.
            stays_locked: Whether nobody unlocks it then, so that little of it can be reached.
        """
        await self.switch_off(phone)
        await asyncio.sleep(self.reboot_s)
        phone.settings.locked = phone.settings.before_first_unlock = stays_locked
        phone.machine.boot()
        await self.plug_in(phone)

    async def switch_off(self, phone: VirtualPhone) -> None:
        """Switch a phone off."""
        await self.unplug(phone)
        await phone.machine.power_off()
        phone.machine.note("switched_off")

    async def stop_usbmuxd(self) -> None:
        """End usbmuxd: every connection through it breaks, and none can be made."""
        await self._listener.close()
        for phone in self.phones:
            phone.drop_connections()

    async def start_usbmuxd(self) -> None:
        """Start usbmuxd again on its old port; phones have new device ids."""
        attached = [phone for phone in self.phones if self.mux.is_attached(phone)]
        for phone in attached:
            self.mux.detach(phone)
            self.mux.attach(phone)
        await self._listener.open(self._ports[0])

    async def move_tunnel(self, phone: VirtualPhone) -> None:
        """Give a phone's tunnels other addresses and ports; open ones break."""
        phone.move_tunnel()
        await self.tunneld.remove(phone)
        await self.tunneld.add(phone)

    def _on_power(self, phone: VirtualPhone, request: PowerRequest) -> None:
        away = self.reboot if request is PowerRequest.RESTART else self.switch_off
        task = asyncio.get_running_loop().create_task(away(phone))
        self._power_cycles.add(task)  # `close` waits for it
        task.add_done_callback(self._power_cycles.discard)

    async def open(self, options: ServeOptions) -> None:
        """Listen, and plug every phone in.

        Raises:
            OSError: If a port is taken.
        """
        allow_many_sockets()
        self._ports = (
            await self._listener.open(options.port),
            await self.tunneld.open(options.tunneld_port),
        )
        await self._control.open(self._control_path)
        for phone in self.phones:
            await self.plug_in(phone)
        self.faults.schedule(options.faults)

    async def close(self) -> None:
        """Switch every phone off and stop listening."""
        await self._control.close()
        await self.faults.close()
        for task in self._power_cycles:
            task.cancel()
        await asyncio.gather(*self._power_cycles, return_exceptions=True)
        await self.tunneld.close()
        await self._listener.close()
        for phone in self.phones:
            await phone.close()


@asynccontextmanager
async def running_farm(options: ServeOptions) -> AsyncIterator[Farm]:
    """Run a farm for the length of a `with` block; then every app and connection has ended.

    Raises:
        ValueError: If a model or a version of iOS is unknown.
        OSError: If a port is taken.
    """
    remove_leftovers()
    with tempfile.TemporaryDirectory(prefix=own_prefix(SOCKETS_PREFIX), dir=SOCKETS_ROOT) as name:
        sockets, (folder, is_ours) = Path(name), _state_folder(options)
        try:
            with held(sockets), held(folder), _event_log(options.events) as events:
                farm = Farm(options, folder, sockets, events)
                try:
                    await farm.open(options)
                    yield farm
                finally:
                    await farm.close()
        finally:
            if is_ours:
                shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def _event_log(path: Path | None) -> Iterator[EventLog]:
    if path is None:
        yield EventLog()
        return
    with path.open("a", encoding="utf-8") as file:
        yield EventLog(file)


def _state_folder(options: ServeOptions) -> tuple[Path, bool]:
    """Return the folder of the farm's state, and whether it was made for this run only."""
    if options.folder is None:
        return Path(tempfile.mkdtemp(prefix=own_prefix(STATE_PREFIX))), True
    options.folder.mkdir(parents=True, exist_ok=True)
    return options.folder, False


def _plans(options: ServeOptions, folder: Path, sockets: Path) -> list[PhonePlan]:
    plans = []
    for index, (name, version) in enumerate(options.phones):
        identity = identity_of(model_of(name), version, index, options.seed)
        limit_mib = options.limits_mib.get(index)
        if limit_mib is not None:
            limited = replace(identity.model, limit_mib=limit_mib, entitled_limit_mib=limit_mib)
            identity = replace(identity, model=limited)
        plan = PhonePlan(
            index=index,
            identity=identity,
            folder=folder / "phones" / identity.udid,
            port_folder=sockets / f"{index + 1:02d}",
            memory_scale=options.memory_scale,
            entitled=options.entitled,
            report_delay_s=options.report_delay_s,
        )
        plans.append(plan)
    return plans


def _describe(phone: VirtualPhone) -> PhoneDescription:
    identity = phone.identity
    return PhoneDescription(
        udid=identity.udid,
        name=identity.name,
        model=identity.model.model,
        product_type=identity.model.product_type,
        os=identity.os,
    )
