"""Many virtual phones behind one usbmuxd and one tunneld."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import tempfile
from contextlib import asynccontextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final

from orchestrator.virtual.connections import LOOPBACK, Listener, allow_many_sockets
from orchestrator.virtual.identity import default_phones, identity_of, model_of
from orchestrator.virtual.mux import PairRecords, Usbmuxd
from orchestrator.virtual.phone import PhonePlan, VirtualPhone
from orchestrator.virtual.pki import Pki
from orchestrator.virtual.services.diagnostics import PowerRequest
from orchestrator.virtual.tunneld import Tunneld

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

REBOOT_S: Final = 2.0
DEFAULT_MEMORY_SCALE: Final = 32

# Short and the same everywhere: a socket path holds 103 bytes on macOS, whose own temporary
# folder takes 60 of them. Only this user can enter what is made there.
_SOCKETS_ROOT: Final = "/tmp"  # noqa: S108


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
    phones: list[PhoneDescription]

    def as_json(self) -> str:
        """Return the description as one line of JSON."""
        return json.dumps(asdict(self))


class Farm:
    """Phones that are plugged in, unplugged and rebooted. Made by `running_farm`."""

    def __init__(self, options: ServeOptions, folder: Path, sockets: Path) -> None:
        pki = Pki(folder / "pki")
        self.mux = Usbmuxd(pki, PairRecords(folder / "lockdown"))
        self.tunneld = Tunneld()
        self.phones = [
            VirtualPhone(plan, pki, self._on_power) for plan in _plans(options, folder, sockets)
        ]
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
            phones=[_describe(phone) for phone in self.phones],
        )

    async def unplug(self, phone: VirtualPhone) -> None:
        """Pull the cable of a phone. Its apps go on."""
        self.mux.detach(phone)
        await self.tunneld.remove(phone)

    async def plug_in(self, phone: VirtualPhone) -> None:
        """Plug a phone in."""
        await self.tunneld.add(phone)
        self.mux.attach(phone)

    async def reboot(self, phone: VirtualPhone) -> None:
        """Switch a phone off and on; its apps die and it is away for `reboot_s`."""
        await self.switch_off(phone)
        await asyncio.sleep(self.reboot_s)
        phone.machine.boot()
        await self.plug_in(phone)

    async def switch_off(self, phone: VirtualPhone) -> None:
        """Switch a phone off."""
        await self.unplug(phone)
        await phone.machine.power_off()

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
        for phone in self.phones:
            await self.plug_in(phone)

    async def close(self) -> None:
        """Switch every phone off and stop listening."""
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
    with tempfile.TemporaryDirectory(prefix=f"vp-{os.getpid()}-", dir=_SOCKETS_ROOT) as sockets:
        folder, is_ours = _state_folder(options)
        try:
            farm = Farm(options, folder, Path(sockets))
            try:
                await farm.open(options)
                yield farm
            finally:
                await farm.close()
        finally:
            if is_ours:
                shutil.rmtree(folder, ignore_errors=True)


def _state_folder(options: ServeOptions) -> tuple[Path, bool]:
    """Return the folder of the farm's state, and whether it was made for this run only."""
    if options.folder is None:
        return Path(tempfile.mkdtemp(prefix="virtual-phones-")), True
    options.folder.mkdir(parents=True, exist_ok=True)
    return options.folder, False


def _plans(options: ServeOptions, folder: Path, sockets: Path) -> list[PhonePlan]:
    plans = []
    for index, (name, version) in enumerate(options.phones):
        identity = identity_of(model_of(name), version, index, options.seed)
        plan = PhonePlan(
            index=index,
            identity=identity,
            folder=folder / "phones" / identity.udid,
            port_folder=sockets / f"{index + 1:02d}",
            memory_scale=options.memory_scale,
            entitled=options.entitled,
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
