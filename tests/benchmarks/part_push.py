"""6. Installing an app and pushing a model. Size: MiB.

The floor is what the library's AFC writes to the same phone in the same chunks, nothing checked.
"""

from __future__ import annotations

import asyncio
import hashlib
import tempfile
import time
import zipfile
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final

from pymobiledevice3.lockdown import create_using_usbmux
from pymobiledevice3.services.afc import AfcService

from orchestrator.device.discovery import UsbmuxSource, discover
from orchestrator.device.keeper.broker import KeeperBroker
from orchestrator.device.keeper.start import KeeperStarter
from orchestrator.device.pmd3.browser import UsbmuxBrowser
from orchestrator.device.pmd3.link import Pmd3Link
from orchestrator.device.pushing import Payload, push_once
from orchestrator.domain.deadline import Deadline
from tests.benchmarks.processes import farm_of
from tests.benchmarks.samples import OURS, Row, Sample, best, of
from tests.device.farm import BUNDLE_ID, make_ipa

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tests.benchmarks.scale import Scale

NAME: Final = "push"
FLOOR: Final = "raw AFC"
SHARE: Final = 0.8  # of raw AFC's bytes per second
GROWTH: Final = (("push", "cpu_s", "CPU seconds by MiB"),)
_MIB: Final = 1024**2
_LIMIT_S: Final = 300.0


def measure(scale: Scale) -> list[Sample]:
    """Push files of each size to one phone, ours and the floor in turn."""
    with farm_of(1) as (_, farm, (udid,)), tempfile.TemporaryDirectory() as name:
        return asyncio.run(_all(scale, farm["usbmux"], udid, Path(name)))


async def _all(scale: Scale, address: str, udid: str, folder: Path) -> list[Sample]:
    samples: list[Sample] = []
    source = [UsbmuxSource("farm", address)]
    found = await discover(source, UsbmuxBrowser(), deadline=Deadline.after(_LIMIT_S))
    async with KeeperStarter() as starter:
        link = Pmd3Link(found.phones[0], address, KeeperBroker(starter, root=folder / "k"))
        ipa = make_ipa(folder / "tiny.ipa")
        await link.install(ipa, BUNDLE_ID, deadline=Deadline.after(_LIMIT_S))
        for mib in scale.pushed_mib:
            file = _file(folder / "model.bin", mib)
            with zipfile.ZipFile(ipa, "a", zipfile.ZIP_STORED) as package:
                package.write(file, f"Payload/Tiny.app/model-{mib}.bin")
            for number in range(max(1, scale.rounds // 2)):
                samples += await _round(link, udid, file, mib, number)
            with _timed() as taken:
                await link.install(ipa, BUNDLE_ID, deadline=Deadline.after(_LIMIT_S))
            size = ipa.stat().st_size
            samples.append(Sample(NAME, "install", OURS, mib, {**taken, "bytes": size}))
    return samples


def _file(path: Path, mib: int) -> Path:
    block = bytes(range(256)) * (_MIB // 256)
    path.write_bytes(block * mib)
    return path


async def _round(link: Pmd3Link, udid: str, file: Path, mib: int, number: int) -> list[Sample]:
    # Another folder each time: what is there already is not sent again.
    digest = hashlib.sha256(f"{mib} {number}".encode()).hexdigest()
    payload = Payload(f"Documents/models/{digest}", digest, {"model.bin": file})
    with _timed() as first:
        pushed = await push_once(link, BUNDLE_ID, payload, deadline=Deadline.after(_LIMIT_S))
    with _timed() as second:
        again = await push_once(link, BUNDLE_ID, payload, deadline=Deadline.after(_LIMIT_S))
    client = await create_using_usbmux(serial=udid, autopair=False)
    with _timed() as raw:
        async with AfcService(client) as files:
            handle = await files.fopen("/raw.bin", "w")
            with file.open("rb") as opened:
                while chunk := opened.read(_MIB):
                    await files.fwrite(handle, chunk)
            await files.fclose(handle)
    await client.close()
    return [
        Sample(NAME, "push", OURS, mib, {**first, "bytes": pushed.sent_bytes}),
        Sample(NAME, "again", OURS, mib, {**second, "bytes": again.sent_bytes}),
        Sample(NAME, "push", FLOOR, mib, {**raw, "bytes": mib * _MIB}),
    ]


@contextmanager
def _timed() -> Iterator[dict[str, float]]:
    taken: dict[str, float] = {}
    began_s, began_cpu_s = time.perf_counter(), time.process_time()
    yield taken
    taken["wall_s"] = time.perf_counter() - began_s
    taken["cpu_s"] = time.process_time() - began_cpu_s


def rows(samples: Sequence[Sample]) -> list[Row]:
    """Return the lines of the table, for the largest file."""
    mib = max((one.size for one in samples), default=0)
    ours, floor = of(samples, "push", size=mib), of(samples, "push", FLOOR, mib)
    here, there = best(ours, "wall_s"), best(floor, "wall_s")
    again = of(samples, "again")
    if here is None or there is None or not again:
        return []
    cpu = f"CPU {best(ours, 'cpu_s') or 0:.2f} s"
    cell = f"`{FLOOR}` {mib / there:.0f} MiB/s (CPU {best(floor, 'cpu_s') or 0:.2f} s)"
    goal = f">= {SHARE:g} x"
    ratio = there / here
    sent = max(one.values["bytes"] for one in again)
    lines = [
        Row(
            f"push {mib:g} MiB",
            f"{mib / here:.0f} MiB/s ({cpu})",
            cell,
            f"{ratio:.2f} x",
            goal,
            ratio >= SHARE,
        ),
        Row("push the same again", f"{sent:g} bytes", goal="0 bytes", met=sent == 0),
    ]
    for one in of(samples, "install", size=mib):
        speed = one.values["bytes"] / _MIB / one.values["wall_s"]
        cell = f"{speed:.0f} MiB/s, unpacked by the phone"
        lines.append(Row(f"install {one.values['bytes'] / _MIB:.0f} MiB", cell))
    return lines
