"""Cables that come and go: nothing of the host grows with them.

50 cycles in `make chaos`, 1,000 in `make deep`.
"""

from __future__ import annotations

import gc
import os
import resource
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import anyio
import pytest

from orchestrator.device.discovery import Attachment, UsbmuxSource
from orchestrator.device.keeper.broker import KeeperBroker
from orchestrator.device.keeper.start import KeeperStarter
from orchestrator.device.pmd3.browser import UsbmuxBrowser
from orchestrator.device.pmd3.link import Pmd3Link
from orchestrator.domain.deadline import Deadline
from orchestrator.domain.errors import DeviceError
from orchestrator.domain.phone import Phone
from orchestrator.virtual.client import ask
from tests.end_to_end.fleet_process import served_phones

if TYPE_CHECKING:
    from collections.abc import Iterator

WARM_UP = 10  # cycles until caches and pools are filled
MOST_GROWTH_BYTES = 8 * 1024**2
LIMIT_S = 10.0


@dataclass(frozen=True, slots=True)
class Holdings:
    """What this process holds of the system."""

    descriptors: int
    threads: int
    peak_bytes: int

    @classmethod
    def now(cls) -> Holdings:
        gc.collect()
        peak_kib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return cls(len(os.listdir("/proc/self/fd")), threading.active_count(), peak_kib * 1024)


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture
def farm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[str, Any]]:
    with served_phones(tmp_path, "--phones", "1") as description:
        # Where the library keeps its own folder, and pair records.
        monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "home" / "data"))
        monkeypatch.setenv("USBMUXD_SOCKET_ADDRESS", description["usbmux"])
        yield description


@pytest.mark.chaos
@pytest.mark.timeout(300)
async def test_fifty_unplugged_cables_leave_nothing_behind(farm: dict[str, Any]) -> None:
    await unplug_and_return(farm, 50)


@pytest.mark.deep
@pytest.mark.timeout(3600)
async def test_a_thousand_unplugged_cables_leave_nothing_behind(farm: dict[str, Any]) -> None:
    await unplug_and_return(farm, 1000)


async def unplug_and_return(farm: dict[str, Any], cycles: int) -> None:
    link = await link_to_the_phone(farm)
    for _ in range(WARM_UP):
        await cycle(link, farm)
    before = Holdings.now()
    for _ in range(cycles):
        await cycle(link, farm)
    after = Holdings.now()
    print(f"{cycles} cycles: {before} -> {after}")
    assert after.descriptors <= before.descriptors
    assert after.threads <= before.threads
    assert after.peak_bytes - before.peak_bytes < MOST_GROWTH_BYTES


async def link_to_the_phone(farm: dict[str, Any]) -> Pmd3Link:
    source = UsbmuxSource("usb", farm["usbmux"])
    (entry,) = await UsbmuxBrowser().attachments(source, deadline=Deadline.after(LIMIT_S))
    return Pmd3Link(await identified(entry), farm["usbmux"], KeeperBroker(KeeperStarter()))


async def identified(entry: Attachment) -> Phone:
    who = await UsbmuxBrowser().identity(entry, deadline=Deadline.after(LIMIT_S))
    return Phone(
        udid=entry.udid,
        alias="vp-01",
        name=who.name,
        product_type=who.product_type,
        os=who.os,
        build=who.build,
        source="usb",
        virtual=True,
    )


async def cycle(link: Pmd3Link, farm: dict[str, Any]) -> None:
    """Talk to the phone, lose it while talking, fail, and get it back."""
    await link.facts(deadline=Deadline.after(LIMIT_S))
    await anyio.to_thread.run_sync(tell, farm, "fault")
    with pytest.raises(DeviceError):
        await link.facts(deadline=Deadline.after(LIMIT_S))
    with pytest.raises(DeviceError):
        await link.connect(28450, deadline=Deadline.after(LIMIT_S))
    await anyio.to_thread.run_sync(tell, farm, "mend")
    with pytest.raises(DeviceError):  # no app runs
        await link.connect(28450, deadline=Deadline.after(LIMIT_S))


def tell(farm: dict[str, Any], do: str) -> None:
    rest: dict[str, Any] = {"settings": {}, "for_s": None} if do == "fault" else {}
    ask(Path(farm["control"]), do=do, phone="vp-01", kind="unplug", **rest)
