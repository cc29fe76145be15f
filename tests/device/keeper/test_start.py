from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from orchestrator.device.keeper import start
from orchestrator.device.keeper.start import KeeperOptions, KeeperStarter, arguments
from orchestrator.domain.deadline import Deadline
from orchestrator.domain.errors import DeviceError
from orchestrator.domain.outcome import Cause

if TYPE_CHECKING:
    from pathlib import Path


def options(root: Path) -> KeeperOptions:
    return KeeperOptions("A", "bench-01", "127.0.0.1:27015", str(root), die_with_parent=True)


async def test_a_host_that_cannot_run_says_why(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(start, "HOST_MODULE", "orchestrator.no_such_module")
    async with KeeperStarter(forking=True) as starter:
        with pytest.raises(DeviceError, match="No module named") as caught:
            await starter.start(options(tmp_path), deadline=Deadline.after(60))
    assert caught.value.layer == "host"
    assert caught.value.cause is Cause.NOT_READY


async def test_a_keeper_that_cannot_run_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(start, "KEEPER_MODULE", "orchestrator.no_such_module")
    async with KeeperStarter(forking=False) as starter:
        with pytest.raises(DeviceError, match="first line cannot be read"):
            await starter.start(options(tmp_path), deadline=Deadline.after(60))


async def test_a_start_that_takes_too_long_costs_the_deadline(tmp_path: Path) -> None:
    async with KeeperStarter(forking=True) as starter:
        with pytest.raises(DeviceError, match="did not start within 0 s"):
            await starter.start(options(tmp_path), deadline=Deadline.after(0))


def test_the_command_line_says_all_options(tmp_path: Path) -> None:
    words = arguments(options(tmp_path))
    assert words[words.index("--udid") + 1] == "A"
    assert words[words.index("--address") + 1] == "127.0.0.1:27015"
    assert "--die-with-parent" in words
    assert "--tunneld" not in words
