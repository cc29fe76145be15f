"""The real link against virtual phones in a child process."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import anyio
import pytest

from orchestrator.device.discovery import Discovery, Expected, UsbmuxSource, discover
from orchestrator.device.facts import report_key
from orchestrator.device.keeper.broker import KeeperBroker
from orchestrator.device.link import PortRefusedError, RemotePathMissingError
from orchestrator.device.pmd3.browser import UsbmuxBrowser
from orchestrator.device.pmd3.install import InstallRefusedError
from orchestrator.device.pmd3.link import Pmd3Link
from orchestrator.domain.deadline import Deadline
from orchestrator.domain.errors import DeadlineExceededError, DeviceError
from orchestrator.domain.outcome import Cause
from tests.device.farm import BUNDLE_ID, FarmProcess, make_ipa
from tests.device.mute_mux import MUTE_UDID, mute_usbmuxd
from tests.device.phones import phone

if TYPE_CHECKING:
    from orchestrator.device.keeper.start import KeeperStarter

LIMIT_S = 20.0


def soon() -> Deadline:
    return Deadline.after(LIMIT_S)


async def test_virtual_phones_are_found_and_known_as_virtual(
    found: Discovery, farm: FarmProcess
) -> None:
    assert {one.udid for one in found.phones} == set(farm.udids)
    assert all(one.virtual and one.model.startswith("iPhone") for one in found.phones)
    assert not found.unreachable
    assert not found.dead_sources


async def test_a_mute_phone_does_not_block_the_others(source: UsbmuxSource) -> None:
    async with mute_usbmuxd() as address:
        sources = [UsbmuxSource("mute", address), source]
        found = await discover(sources, UsbmuxBrowser(), deadline=Deadline.after(1.0))
    assert len(found.phones) == 3
    assert [(one.udid, one.source) for one in found.unreachable] == [(MUTE_UDID, "mute")]
    assert "no answer within" in found.unreachable[0].reason


async def test_a_source_without_a_usbmuxd_is_dead_and_the_other_is_read(
    source: UsbmuxSource,
) -> None:
    dead = UsbmuxSource("dead", "127.0.0.1:1")
    expected = [Expected("00008130-0000000000000001", "bench-09")]
    found = await discover([dead, source], UsbmuxBrowser(), deadline=soon(), expected=expected)
    assert [one.source for one in found.dead_sources] == ["dead"]
    assert "no usbmuxd answers" in found.dead_sources[0].reason
    assert len(found.phones) == 3
    assert [one.alias for one in found.absent] == ["bench-09"]


async def test_the_phone_says_what_it_is(link: Pmd3Link) -> None:
    facts = await link.facts(deadline=soon())
    assert facts.name == link.phone.name
    assert facts.product_type == link.phone.product_type
    assert facts.developer_mode is True
    assert facts.ddi_mounted is True
    assert facts.locked is False
    assert facts.free_disk_bytes is not None
    assert facts.temperature_c is not None
    assert 20 < facts.temperature_c < 35
    assert facts.free_disk_bytes > 0
    assert facts.battery_percent in range(101)
    assert facts.virtual is not None
    assert facts.virtual.memory_scale == 32


async def test_the_phones_clock_is_read_with_its_uncertainty(link: Pmd3Link) -> None:
    clock = (await link.facts(deadline=soon())).clock
    assert clock is not None
    assert 0 <= clock.uncertainty_s < 1
    assert abs(clock.offset_s) <= clock.uncertainty_s + 0.001


async def test_an_app_is_installed_with_its_stages(link: Pmd3Link, tmp_path: Path) -> None:
    stages: list[tuple[str, float]] = []
    ipa = make_ipa(tmp_path / "tiny.ipa")
    await link.install(
        ipa,
        BUNDLE_ID,
        deadline=soon(),
        uninstall_first=True,
        on_progress=lambda stage, percent: stages.append((stage, percent)),
    )
    assert stages[0] == ("Uploading", 100.0)
    assert stages[-1] == ("Complete", 100.0)


async def test_a_package_that_is_none_is_refused_with_the_phones_code(
    link: Pmd3Link, tmp_path: Path
) -> None:
    junk = tmp_path / "junk.ipa"
    junk.write_bytes(b"nonsense")
    with pytest.raises(InstallRefusedError) as caught:
        await link.install(junk, BUNDLE_ID, deadline=soon())
    assert caught.value.code.startswith("Package")
    assert caught.value.cause is Cause.INSTALL_FAILED


async def test_a_package_with_another_app_is_refused(link: Pmd3Link, tmp_path: Path) -> None:
    other = make_ipa(tmp_path / "other.ipa", "dev.example.other")
    with pytest.raises(InstallRefusedError, match="does not hold dev"):
        await link.install(other, "dev.example.wanted", deadline=soon())


async def test_files_go_to_the_container_and_come_back(
    link: Pmd3Link, installed: str, tmp_path: Path
) -> None:
    large = bytes(range(256)) * 10_000  # over two chunks
    await link.push(installed, large, "Documents/models/a/model.bin", deadline=soon())
    entries = await link.list(installed, "Documents/models/a", deadline=soon())
    assert [(one.path, one.size_bytes, one.is_folder) for one in entries] == [
        ("/Documents/models/a/model.bin", len(large), False)
    ]
    local = tmp_path / "back" / "model.bin"
    await link.pull(installed, "Documents/models/a/model.bin", local, deadline=soon())
    assert local.read_bytes() == large
    assert [path.name for path in local.parent.iterdir()] == ["model.bin"]


async def test_a_folder_goes_to_the_container_and_comes_back(
    link: Pmd3Link, installed: str, tmp_path: Path
) -> None:
    package = tmp_path / "m.mlpackage"
    (package / "Data" / "weights").mkdir(parents=True)
    (package / "Manifest.json").write_text("{}")
    (package / "Data" / "weights" / "w.bin").write_bytes(b"w" * 100)
    await link.push(installed, package, "Documents/m", deadline=soon())
    await link.pull(installed, "Documents/m", tmp_path / "back", deadline=soon())
    back = {p.relative_to(tmp_path / "back").as_posix() for p in (tmp_path / "back").rglob("*.*")}
    assert back == {"Manifest.json", "Data/weights/w.bin"}


async def test_a_removed_folder_is_gone_and_removing_it_again_is_no_error(
    link: Pmd3Link, installed: str
) -> None:
    await link.push(installed, b"x", "Documents/old/deep/x", deadline=soon())
    await link.remove(installed, "Documents/old", deadline=soon())
    await link.remove(installed, "Documents/old", deadline=soon())
    with pytest.raises(RemotePathMissingError, match="Documents/old"):
        await link.list(installed, "Documents/old", deadline=soon())


async def test_a_remote_path_cannot_leave_the_container(link: Pmd3Link, installed: str) -> None:
    await link.push(installed, b"x", "../../../Documents/inside", deadline=soon())
    entries = await link.list(installed, "Documents", deadline=soon())
    assert "/Documents/inside" in [one.path for one in entries]


async def test_an_app_that_is_not_there_has_no_container(link: Pmd3Link) -> None:
    with pytest.raises(DeviceError, match="the app is not installed") as caught:
        await link.list("dev.example.nobody", "Documents", deadline=soon())
    assert caught.value.cause is Cause.INSTALL_FAILED


async def test_a_port_nobody_listens_on_is_refused_with_its_own_error(link: Pmd3Link) -> None:
    with pytest.raises(PortRefusedError, match="nothing listens on port 28450"):
        await link.connect(28450, deadline=soon())


async def test_reports_are_pulled_once(link: Pmd3Link, installed: str, tmp_path: Path) -> None:
    session = await link.developer(deadline=soon())
    pid = await session.launch(installed, {"TINY_SIGNAL": "11"}, deadline=soon())
    with anyio.fail_after(LIMIT_S):
        async for event in session.events():
            if getattr(event, "signal", None) == 11:
                break
    await session.aclose()
    listed = await link.list_reports(deadline=soon())
    with anyio.fail_after(LIMIT_S):
        while not listed:  # a phone writes its report seconds after the death
            await anyio.sleep(0.1)
            await link.flush_reports(deadline=soon())
            listed = await link.list_reports(deadline=soon())
    into = tmp_path / "reports"
    pulled = await link.pull_reports(into, known=set(), deadline=soon())
    ours = [one for one in pulled if f'"pid":{pid}' in _compact(Path(one.local_path))]
    assert len(ours) == 1
    assert listed == {one.key for one in pulled}
    assert all(Path(one.local_path).is_relative_to(into) for one in pulled)
    assert ours[0].key == report_key(ours[0].device_path, ours[0].size_bytes)
    again = await link.pull_reports(into, known={one.key for one in pulled}, deadline=soon())
    assert again == []


def _compact(path: Path) -> str:
    return path.read_text().replace(" ", "")


async def test_a_mute_service_costs_the_deadline_and_names_the_phase(
    link: Pmd3Link, farm: FarmProcess, installed: str
) -> None:
    farm.order("mute", link.phone.udid, "com.apple.mobile.house_arrest")
    try:
        with pytest.raises(DeadlineExceededError, match=r"list failed in afc: .*within 0\.3 s"):
            await link.list(installed, "Documents", deadline=Deadline.after(0.3))
    finally:
        farm.order("unmute", link.phone.udid, "com.apple.mobile.house_arrest")
    assert await link.list(installed, "Documents", deadline=soon())


async def test_a_phone_that_is_not_attached_is_lost(
    source: UsbmuxSource, starter: KeeperStarter
) -> None:
    gone = Pmd3Link(phone("gone", virtual=True), source.address, KeeperBroker(starter))
    with pytest.raises(DeviceError, match="gone: health failed in usbmux: the phone is not") as got:
        await gone.facts(deadline=soon())
    assert got.value.cause is Cause.DEVICE_LOST
