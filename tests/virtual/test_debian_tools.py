"""The tools that people use, unchanged: libimobiledevice's and pymobiledevice3's command lines.

With FLEET_REQUIRE_PEERS=1 a missing tool is a failure, not a skip.
"""

from __future__ import annotations

import json
import os
import select
import shutil
import socket
import subprocess
import sys
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from orchestrator.virtual.services.apps.package import inspect, unpack
from orchestrator.virtual.services.apps.store import AppStore
from tests.virtual.apps import BUNDLE_ID, pack
from tests.virtual.child import child_farm, client_environment

if TYPE_CHECKING:
    from collections.abc import Iterator

LIMIT_S = 60
LOOPBACK = "127.0.0.1"
PYMOBILEDEVICE3 = str(Path(sys.executable).with_name("pymobiledevice3"))
GREETING = "print('hello from the app', flush=True)\n"


class Peers:
    """Runs tools against a farm of one phone."""

    def __init__(self, farm: dict[str, Any]) -> None:
        self.udid: str = farm["phones"][0]["udid"]
        self._environment = client_environment(farm)

    def run(self, tool: str, *arguments: str) -> str:
        """Return what a tool prints."""
        ended = self._ended(tool, *arguments)
        assert ended.returncode == 0, ended.stdout + ended.stderr
        return ended.stdout

    def refusal(self, tool: str, *arguments: str) -> str:
        """Return what a tool says that fails."""
        ended = self._ended(tool, *arguments)
        assert ended.returncode != 0, ended.stdout
        return ended.stdout + ended.stderr

    def until(self, text: str, tool: str, *arguments: str) -> str:
        """Run a tool that never ends until it prints a text; return what it printed."""
        printed = ""
        with self.start(tool, *arguments) as process:
            assert process.stdout is not None
            try:
                while text not in printed:
                    line = process.stdout.readline()
                    assert line, printed
                    printed += line
            finally:
                process.kill()
        return printed

    def start(self, tool: str, *arguments: str) -> subprocess.Popen[str]:
        """Start a tool; its output is its caller's to read."""
        return subprocess.Popen(
            [found("stdbuf"), "-oL", found(tool), *arguments],
            env=self._environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def _ended(self, tool: str, *arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [found(tool), *arguments],
            env=self._environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=LIMIT_S,
            check=False,
        )


def found(tool: str) -> str:
    """Return the path of a tool; skip where it is not installed."""
    path = shutil.which(tool)
    if path is None:
        if os.environ.get("FLEET_REQUIRE_PEERS") == "1":
            pytest.fail(f"{tool} is not installed, and FLEET_REQUIRE_PEERS=1")
        pytest.skip(f"{tool} is not installed")
    return path


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The farm's folder, so that a test can put a report where the phone serves it."""
    return tmp_path_factory.mktemp("farm")


@pytest.fixture(scope="module")
def served(folder: Path) -> Iterator[dict[str, Any]]:
    with child_farm("--models", "iPhone 16", "--folder", str(folder)) as (_, farm):
        yield farm


@pytest.fixture
def peers(served: dict[str, Any], home: Path) -> Peers:
    return Peers(served)


def test_idevice_id_lists_the_phone(peers: Peers) -> None:
    assert peers.udid in peers.run("idevice_id", "-l")


def test_ideviceinfo_opens_a_session(peers: Peers) -> None:
    output = peers.run("ideviceinfo", "-u", peers.udid)
    assert "ProductType: iPhone17,3" in output
    assert "SerialNumber: " in output  # only a trusted host sees it


def test_ideviceinfo_reads_a_domain(peers: Peers) -> None:
    output = peers.run("ideviceinfo", "-u", peers.udid, "-q", "com.apple.mobile.battery")
    assert "BatteryCurrentCapacity: 87" in output


def test_idevicepair_validates_the_pairing(peers: Peers) -> None:
    assert "SUCCESS" in peers.run("idevicepair", "-u", peers.udid, "validate")


def test_idevicepair_pairs_a_new_host(peers: Peers) -> None:
    peers.run("idevicepair", "-u", peers.udid, "unpair")
    assert "SUCCESS" in peers.run("idevicepair", "-u", peers.udid, "pair")
    assert "SUCCESS" in peers.run("idevicepair", "-u", peers.udid, "validate")


def test_ideviceinstaller_installs_and_lists(peers: Peers, tmp_path: Path) -> None:
    package = pack(tmp_path / "soak.ipa", GREETING)
    peers.run("ideviceinstaller", "-u", peers.udid, "-i", str(package))
    assert BUNDLE_ID in peers.run("ideviceinstaller", "-u", peers.udid, "-l")


def test_idevicecrashreport_keeps_and_copies(peers: Peers, folder: Path, tmp_path: Path) -> None:
    report = folder / "phones" / peers.udid / "CrashReports" / "Soak-2026-01-01-000000.ips"
    report.write_text("{}\n{}")
    peers.run("idevicecrashreport", "-u", peers.udid, "-k", str(tmp_path))
    assert (tmp_path / report.name).read_text() == "{}\n{}"
    assert report.exists()
    report.unlink()


def test_ideviceinstaller_lists_system_apps_and_removes_what_it_installed(
    peers: Peers, tmp_path: Path
) -> None:
    listed = peers.run("ideviceinstaller", "-u", peers.udid, "-l", "-o", "list_system")
    assert "com.apple.mobilesafari" in listed
    peers.run("ideviceinstaller", "-u", peers.udid, "-i", str(pack(tmp_path / "soak.ipa")))
    peers.run("ideviceinstaller", "-u", peers.udid, "-U", BUNDLE_ID)
    assert BUNDLE_ID not in peers.run("ideviceinstaller", "-u", peers.udid, "-l")


def test_idevicedate_tells_the_time(peers: Peers) -> None:
    told = peers.run("idevicedate", "-u", peers.udid)
    assert str(datetime.now(UTC).year) in told


def test_idevicename_reads_and_sets_the_name(peers: Peers) -> None:
    before = peers.run("idevicename", "-u", peers.udid).strip()
    peers.run("idevicename", "-u", peers.udid, "rack 7")
    assert peers.run("idevicename", "-u", peers.udid).strip() == "rack 7"
    peers.run("idevicename", "-u", peers.udid, before)


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (("diagnostics", "GasGauge"), "CycleCount"),
        (("diagnostics", "All"), "DesignCapacity"),
        (("ioreg", "IOService"), "IOPlatformExpertDevice"),
        (("ioregentry", "AppleSmartBattery"), "NominalChargeCapacity"),
        (("mobilegestalt", "ProductType"), "MobileGestaltDeprecated"),
    ],
)
def test_idevicediagnostics_shows(peers: Peers, arguments: tuple[str, str], text: str) -> None:
    assert text in peers.run("idevicediagnostics", "-u", peers.udid, *arguments)


def test_idevicesyslog_follows_the_log(peers: Peers) -> None:
    assert "wifid" in peers.until("locationd", "idevicesyslog", "-u", peers.udid)


def test_idevicenotificationproxy_hears_what_is_posted(peers: Peers) -> None:
    name = "com.example.bell"
    with peers.start("idevicenotificationproxy", "-u", peers.udid, "observe", name) as observer:
        assert observer.stdout is not None
        try:
            assert name in observer.stdout.readline()  # it says so before it asks the phone
            heard, deadline_s = False, time.monotonic() + LIMIT_S
            while not heard and time.monotonic() < deadline_s:
                peers.run("idevicenotificationproxy", "-u", peers.udid, "post", name)
                heard = bool(select.select([observer.stdout], [], [], 0.5)[0])
            assert name in observer.stdout.readline()
        finally:
            observer.kill()


def test_ideviceimagemounter_finds_no_developer_image_on_ios_18(peers: Peers) -> None:
    assert "ImagePresent: false" in peers.run("ideviceimagemounter", "-u", peers.udid, "-l")


def test_ideviceprovision_finds_no_profile(peers: Peers) -> None:
    assert "0 provisioning profiles" in peers.run("ideviceprovision", "-u", peers.udid, "list")


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("idevicescreenshot", ("shot.png",)),
        ("idevicesetlocation", ("48.1", "11.6")),
        ("idevicebackup2", ("info", ".")),
        ("idevicebackup", ("backup", ".")),
        ("idevicedebug", ("run", "com.example.nope")),
    ],
)
def test_tools_for_services_that_are_not_there_say_so(
    peers: Peers, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, tool: str, arguments: tuple[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    said = peers.refusal(tool, "-u", peers.udid, *arguments).lower()
    assert "could not" in said or "only compatible with ios 3" in said


def test_idevicedebugserverproxy_finds_no_debugserver_without_a_developer_image(
    peers: Peers,
) -> None:
    with socket.create_server((LOOPBACK, 0)) as held:
        port = held.getsockname()[1]
    proxy = peers.start("idevicedebugserverproxy", "-d", "-u", peers.udid, str(port))
    assert proxy.stdout is not None
    with proxy:
        try:
            assert "Waiting" in proxy.stdout.readline()
            with socket.create_connection((LOOPBACK, port)):
                lines = iter(proxy.stdout.readline, "")
                assert any("Could not start debugserver" in line for line in lines)
        finally:
            proxy.kill()


def test_ideviceenterrecovery_is_refused_without_a_session(peers: Peers) -> None:
    """Debian's version asks without pairing, which a phone of these iOS versions does not take."""
    said = peers.run("ideviceenterrecovery", peers.udid)
    assert "Failed to enter recovery mode" in said
    assert peers.udid in peers.run("idevice_id", "-l")


def test_pymobiledevice3_lists_the_phone(peers: Peers) -> None:
    (device,) = json.loads(peers.run(PYMOBILEDEVICE3, "usbmux", "list"))
    assert device["Identifier"] == peers.udid
    assert device["ProductType"] == "iPhone17,3"


@pytest.fixture
def installed(served: dict[str, Any], folder: Path, tmp_path: Path) -> None:
    """The app, put where the phone keeps its apps; installing has tests of its own."""
    apps = AppStore(folder / "phones" / served["phones"][0]["udid"])
    with apps.staging() as staging:
        package = unpack(pack(tmp_path / "direct.ipa", GREETING), Path(staging))
        apps.adopt(inspect(package, "18.6"))


def test_pymobiledevice3_lists_apps_and_reports(
    peers: Peers, folder: Path, installed: None
) -> None:
    assert BUNDLE_ID in json.loads(peers.run(PYMOBILEDEVICE3, "apps", "list"))
    report = folder / "phones" / peers.udid / "CrashReports" / "Soak-2026-01-02-000000.ips"
    report.write_text("{}\n{}")
    assert report.name in peers.run(PYMOBILEDEVICE3, "crash", "ls")


def test_pymobiledevice3_launches_through_the_tunnel(peers: Peers, installed: None) -> None:
    launch = ("developer", "dvt", "launch", BUNDLE_ID)
    assert "launched" in peers.run(PYMOBILEDEVICE3, *launch).lower()


def test_idevicediagnostics_restarts_the_phone(peers: Peers) -> None:
    """The last one: the phone is away for a while."""
    peers.run("idevicediagnostics", "-u", peers.udid, "restart")
    deadline_s = time.monotonic() + LIMIT_S
    while peers.udid in peers.run("idevice_id", "-l"):
        assert time.monotonic() < deadline_s
    while peers.udid not in peers.run("idevice_id", "-l"):
        assert time.monotonic() < deadline_s
