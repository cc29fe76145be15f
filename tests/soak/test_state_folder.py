from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from orchestrator.domain.errors import UsageError
from orchestrator.soak.run_state import RunState, RunStateFolder
from orchestrator.soak.state_folder import private_folder, state_folder

if TYPE_CHECKING:
    from pathlib import Path


def test_the_folder_can_be_given(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("FLEET_STATE_DIR", str(tmp_path))
    assert state_folder() == tmp_path
    monkeypatch.delenv("FLEET_STATE_DIR")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    assert state_folder() == tmp_path / "fleet"


def test_every_folder_that_is_made_is_private(tmp_path: Path) -> None:
    made = private_folder(tmp_path / "state" / "runs" / "r")
    assert [part.stat().st_mode & 0o777 for part in (made, made.parent)] == [0o700, 0o700]


def test_a_folder_that_others_can_enter_is_refused(tmp_path: Path) -> None:
    (tmp_path / "open").mkdir(mode=0o755)
    with pytest.raises(UsageError, match="open to other users"):
        private_folder(tmp_path / "open")


def test_a_link_in_its_place_is_refused(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir(mode=0o700)
    (tmp_path / "link").symlink_to(tmp_path / "real")
    with pytest.raises(UsageError, match="not a folder of this user"):
        private_folder(tmp_path / "link")


def test_a_run_keeps_its_app_until_it_is_over(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("FLEET_STATE_DIR", str(tmp_path / "state"))
    (tmp_path / "a.ipa").write_bytes(b"app")
    folder = RunStateFolder.of("20260101T000000Z-abc/../x")
    assert folder.root.parent == tmp_path / "state" / "runs"
    assert folder.read() is None
    folder.begin(RunState("/runs/r", "127.0.0.1:1"), tmp_path / "a.ipa")
    assert folder.app.read_bytes() == b"app"
    assert folder.read() == RunState("/runs/r", "127.0.0.1:1")
    folder.remove()
    assert not folder.root.exists()
