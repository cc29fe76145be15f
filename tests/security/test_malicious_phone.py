"""A phone that means harm writes nothing outside its folder and fills neither memory nor disk."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import anyio
import pytest

from orchestrator.device.discovery import UsbmuxSource, discover
from orchestrator.device.keeper.broker import KeeperBroker
from orchestrator.device.keeper.start import KeeperStarter
from orchestrator.device.pmd3 import afc, bounds, reports
from orchestrator.device.pmd3.browser import UsbmuxBrowser
from orchestrator.device.pmd3.link import Pmd3Link
from orchestrator.domain.deadline import Deadline
from orchestrator.domain.errors import DeviceError
from orchestrator.harness.control import AppClient
from orchestrator.runlog.layout import AttemptPaths, RunPaths, device_directory_name
from orchestrator.soak.attempts import write_telemetry
from orchestrator.virtual.client import ask
from tests.end_to_end.fleet_process import served_phones

if TYPE_CHECKING:
    from collections.abc import Iterator

    from orchestrator.domain.phone import Phone

MIB = 1024**2
ESCAPES = (
    *("../../../../../../tmp/escaped.ips", "..", "/etc/escaped.ips", "..\\escaped.ips"),
    *("\x1b[2J\x07.ips", "C:\\escaped.ips", "con.ips", "e" * 300 + ".ips", "\u202e.ips"),
    "-rf.ips",
)


class Malice(Protocol):
    def __call__(self, kind: str, **settings: object) -> None:
        """Begin a fault of malice on the phone."""


@pytest.fixture(scope="module")
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(scope="module")
def farm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Any]]:
    folder = tmp_path_factory.mktemp("farm")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_DATA_HOME", str(folder / "home" / "data"))
        patch.setenv("HOME", str(folder / "home"))
        with served_phones(folder, "--phones", "1") as farm:
            yield farm


@pytest.fixture
def malice(farm: dict[str, Any]) -> Iterator[Malice]:
    control = Path(farm["control"])

    def begin(kind: str, **settings: object) -> None:
        ask(control, do="fault", phone="vp-01", kind=kind, settings=settings, for_s=None)

    yield begin
    ask(control, do="mend", phone="all", kind=None)


async def found(farm: dict[str, Any]) -> Phone:
    source = UsbmuxSource("usb", farm["usbmux"])
    (phone,) = (await discover([source], UsbmuxBrowser(), deadline=soon())).phones
    return phone


async def link_to(farm: dict[str, Any]) -> Pmd3Link:
    return Pmd3Link(await found(farm), farm["usbmux"], KeeperBroker(KeeperStarter()))


def soon() -> Deadline:
    return Deadline.after(60)


def peak_bytes() -> int:
    status = Path("/proc/self/status").read_text()
    return int(status.partition("VmHWM:")[2].split()[0]) * 1024


def forget_peak() -> int:
    Path("/proc/self/clear_refs").write_text("5")
    return peak_bytes()


def files_below(folder: Path) -> set[Path]:
    return {path for path in folder.rglob("*") if not path.is_dir()}


@pytest.mark.parametrize("name", ["../../../escaped", "\x1b[2J\x00\n::error::", "e" * 100_000, ""])
async def test_a_name_makes_one_folder_of_harmless_letters(
    farm: dict[str, Any], malice: Malice, name: str
) -> None:
    malice("hostile_name", name=name)
    phone = await found(farm)
    directory = device_directory_name(phone.alias, phone.udid)
    assert Path(directory).name == directory
    assert set(directory) <= set(
        "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ-_."
    )
    assert len(directory) < 60
    assert not directory.startswith((".", "-"))
    assert len(phone.name) <= 256
    assert phone.name.isprintable()


async def test_no_name_of_a_report_leads_out_of_its_folder(
    farm: dict[str, Any], malice: Malice, tmp_path: Path
) -> None:
    malice("hostile_files", names=ESCAPES, claims_bytes=7, sends_bytes=7)
    into = tmp_path / "a" / "b" / "reports"
    link = await link_to(farm)
    pulled = await link.pull_reports(into, known=set(), deadline=soon())
    honest = [name for name in ESCAPES if name != ".." and "/" not in name]
    assert len(pulled) >= len(honest)
    assert files_below(tmp_path) == {Path(report.local_path) for report in pulled}
    assert all(path.is_relative_to(into) for path in files_below(tmp_path))
    assert not any(set(path.name) & set("\x1b\x07\u202e\\:") for path in files_below(tmp_path))


async def test_a_report_of_500_mb_is_left_where_it_is(
    farm: dict[str, Any], malice: Malice, tmp_path: Path
) -> None:
    malice("hostile_files", names=("Huge.ips",), claims_bytes=500 * MIB, sends_bytes=500 * MIB)
    link = await link_to(farm)
    assert await link.pull_reports(tmp_path, known=set(), deadline=soon()) == []
    assert files_below(tmp_path) == set()


async def test_a_report_that_never_ends_is_cut(
    farm: dict[str, Any], malice: Malice, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reports, "MAX_REPORT_BYTES", 3 * MIB)
    malice("hostile_files", names=("Endless.ips",), claims_bytes=10, sends_bytes=1 << 50)
    before = forget_peak()
    link = await link_to(farm)
    pulled = await link.pull_reports(tmp_path, known=set(), deadline=soon())
    assert pulled
    assert {path.stat().st_size for path in files_below(tmp_path)} == {3 * MIB}
    assert peak_bytes() - before < 24 * MIB


async def test_reports_without_end_stop_at_an_allowance(
    farm: dict[str, Any], malice: Malice, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    allowance = reports.Allowance(reports=1000, total_bytes=2500)
    monkeypatch.setattr(reports, "Allowance", lambda: allowance)
    names = tuple(f"Many-{number}.ips" for number in range(50))
    malice("hostile_files", names=names, claims_bytes=1000, sends_bytes=1000)
    link = await link_to(farm)
    with pytest.raises(DeviceError, match="more than"):
        await link.pull_reports(tmp_path, known=set(), deadline=soon())
    assert sum(path.stat().st_size for path in files_below(tmp_path)) <= 3000


async def test_a_tree_without_end_is_an_error(
    farm: dict[str, Any], malice: Malice, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(afc, "MAX_ENTRIES", 700)
    malice("hostile_files", endless=True)
    with pytest.raises(DeviceError, match="more than 700 entries"):
        await (await link_to(farm)).list_reports(deadline=soon())


async def test_a_reply_of_any_length_is_not_taken_into_memory(
    farm: dict[str, Any], malice: Malice
) -> None:
    malice("hostile_files", reply_bytes=bounds.MOST_BYTES + MIB)
    link = await link_to(farm)
    before = forget_peak()
    with pytest.raises(DeviceError, match="does not fit the protocol"):
        await link.list_reports(deadline=soon())
    assert peak_bytes() - before < 16 * MIB


@pytest.mark.parametrize("sends", ["noise", "one_line", "records"])
async def test_what_an_app_sends_is_bounded(
    farm: dict[str, Any], malice: Malice, sends: str
) -> None:
    malice("hostile_app", sends=sends)
    link = await link_to(farm)
    before = forget_peak()
    client = AppClient(await link.connect(28450, deadline=soon()), alias="vp-01")
    try:
        with pytest.raises(DeviceError):
            await client.hello("t" * 32, Deadline.after(2.0))
    finally:
        with anyio.CancelScope(shield=True):
            await client.aclose()
    assert peak_bytes() - before < 96 * MIB


def test_a_journal_of_garbage_becomes_no_telemetry(tmp_path: Path) -> None:
    attempt: AttemptPaths = RunPaths(tmp_path).device("vp-01-x").attempt(1)
    journal = attempt.journal(1)
    journal.parent.mkdir(parents=True)
    invented = [b'{"launch":"x","seq":%d,"kind":"%s"}' % (n, b"y" * 999) for n in (5, -1, 4)]
    journal.write_bytes(b"\xff\x00\n" * 1000 + b"a" * 3 * MIB + b"\n" + b"\n".join(invented))
    counts = write_telemetry(attempt, tmp_path / "telemetry.ndjson")
    (line,) = (tmp_path / "telemetry.ndjson").read_bytes().splitlines()
    assert json.loads(line)["seq"] == 5
    assert counts.unreadable_lines > 1000
