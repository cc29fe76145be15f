"""The tools that people use, unchanged: libimobiledevice's and pymobiledevice3's command lines.

With FLEET_REQUIRE_PEERS=1 a missing tool is a failure, not a skip.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
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
PYMOBILEDEVICE3 = str(Path(sys.executable).with_name("pymobiledevice3"))
GREETING = "print('hello from the app', flush=True)\n"


class Peers:
    """Runs tools against a farm of one phone."""

    def __init__(self, farm: dict[str, Any]) -> None:
        self.udid: str = farm["phones"][0]["udid"]
        self._environment = client_environment(farm)

    def run(self, tool: str, *arguments: str) -> str:
        """Return what a tool prints; skip where it is not installed."""
        path = shutil.which(tool)
        if path is None:
            if os.environ.get("FLEET_REQUIRE_PEERS") == "1":
                pytest.fail(f"{tool} is not installed, and FLEET_REQUIRE_PEERS=1")
            pytest.skip(f"{tool} is not installed")
        ended = subprocess.run(
            [path, *arguments],
            env=self._environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=LIMIT_S,
            check=False,
        )
        assert ended.returncode == 0, ended.stdout + ended.stderr
        return ended.stdout


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
