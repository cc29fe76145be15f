"""What many virtual phones in one process cost.

The farm is a child process, measured from outside through /proc (Linux); the client is
pymobiledevice3 in this one.
"""

from __future__ import annotations

import asyncio
import os
import tempfile
import time
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from pymobiledevice3 import usbmux
from pymobiledevice3.lockdown import create_using_usbmux
from pymobiledevice3.services.afc import AfcService

from tests.benchmarks.processes import cpu_s
from tests.fuzz.driver import resident_mib_of
from tests.virtual.apps import BUNDLE_ID, pack
from tests.virtual.child import child_farm

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator, Sequence

# The most that each figure may be.
AIMS: Final = {
    "start": 2.0,  # s
    "memory per idle phone": 4.0,  # MiB
    "memory per phone after that": 4.0,
    "processor per idle phone": 0.3,  # % of a core
}
IDLE_S = 20.0
END_LIMIT_S = 60.0  # it removes thousands of folders
AT_ONCE = 10  # conversations of the client at one time


@dataclass(frozen=True)
class Figure:
    """One measurement."""

    name: str
    value: float
    unit: str

    def line(self) -> str:
        return f"{self.name:<34} {self.value:8.2f} {self.unit}"


@contextmanager
def timed(figures: list[Figure], name: str) -> Iterator[None]:
    began_s = time.perf_counter()
    yield
    figures.append(Figure(name, time.perf_counter() - began_s, "s"))


async def on_all(udids: Sequence[str], act: Callable[[str], Awaitable[None]]) -> None:
    """Do something with every phone, a few at a time."""
    gate = asyncio.Semaphore(AT_ONCE)

    async def one(udid: str) -> None:
        async with gate:
            await act(udid)

    async with asyncio.TaskGroup() as group:
        for udid in udids:
            group.create_task(one(udid))


async def session(udid: str) -> None:
    async with await create_using_usbmux(serial=udid, autopair=False) as lockdown:
        assert (await lockdown.get_value(key="UniqueDeviceID")) == udid


def installer(package: bytes) -> Callable[[str], Awaitable[None]]:
    """Return what pushes and installs a package on a phone, as the client does."""

    async def install(udid: str) -> None:
        async with await create_using_usbmux(serial=udid, autopair=False) as lockdown:
            async with AfcService(lockdown) as afc:
                await afc.set_file_contents("/PublicStaging/x.ipa", package)
            service = await lockdown.start_lockdown_service("com.apple.mobile.installation_proxy")
            await service.send_plist({"Command": "Install", "PackagePath": "PublicStaging/x.ipa"})
            reply: dict[str, Any] = {"PercentComplete": 0}
            while "PercentComplete" in reply:
                reply = await service.recv_plist()
            assert reply == {"Status": "Complete"}, reply
            await service.close()

    return install


async def drive(figures: list[Figure], udids: Sequence[str], package: bytes) -> None:
    with timed(figures, "list all phones"):
        assert len(await usbmux.list_devices()) == len(udids)
    with timed(figures, "lockdown session with each"):
        await on_all(udids, session)
    with timed(figures, f"install {BUNDLE_ID} on each"):
        await on_all(udids, installer(package))


def measure(count: int) -> list[Figure]:
    """Return the figures of a farm of so many phones."""
    figures: list[Figure] = []
    with tempfile.TemporaryDirectory(prefix="benchmark-") as name:
        home = Path(name)
        os.environ["HOME"] = os.environ["XDG_DATA_HOME"] = str(home)
        began_s = time.perf_counter()
        with child_farm("--phones", str(count), end_limit_s=END_LIMIT_S) as (process, farm):
            figures.append(Figure("start", time.perf_counter() - began_s, "s"))
            os.environ["USBMUXD_SOCKET_ADDRESS"] = farm["usbmux"]
            figures += idle(process.pid, count)
            package = pack(home / "soak.ipa").read_bytes()
            udids = [phone["udid"] for phone in farm["phones"]]
            asyncio.run(drive(figures, udids, package))
            after = resident_mib_of(process.pid) / count
            figures.append(Figure("memory per phone after that", after, "MiB"))
            began_s = time.perf_counter()
        figures.append(Figure("end", time.perf_counter() - began_s, "s"))
    return figures


def idle(pid: int, count: int) -> list[Figure]:
    """Measure a farm that nobody talks to."""
    memory = Figure("memory per idle phone", resident_mib_of(pid) / count, "MiB")
    before_s = cpu_s(pid)
    time.sleep(IDLE_S)
    share = 100 * (cpu_s(pid) - before_s) / IDLE_S / count
    return [memory, Figure("processor per idle phone", share, "% of a core")]
