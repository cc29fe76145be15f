from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from orchestrator.domain.errors import HeldError
from orchestrator.domain.outcome import ExitCode
from orchestrator.soak import locks
from orchestrator.soak.locks import Claim, LockKey, holders, lock_folder, phones_held

if TYPE_CHECKING:
    from pathlib import Path

A = LockKey("127.0.0.1:1 UDID-A", "bench-01")
B = LockKey("127.0.0.1:1 UDID-B", "bench-02")
FIRST = Claim("run-1", 60.0)
SECOND = Claim("run-2", 60.0)


def test_a_second_run_is_told_who_holds_the_phone(tmp_path: Path) -> None:
    with (
        phones_held([A, B], FIRST, folder=tmp_path),
        pytest.raises(HeldError) as caught,
        phones_held([B], SECOND, folder=tmp_path),
    ):
        pass
    assert str(caught.value).startswith("bench-02 is held by run run-1 of ")
    assert f"process {os.getpid()}. " in str(caught.value)
    assert caught.value.exit_code is ExitCode.HELD


def test_the_same_udid_behind_another_usbmuxd_is_another_phone(tmp_path: Path) -> None:
    other = LockKey("127.0.0.1:2 UDID-A", "bench-01")
    with phones_held([A], FIRST, folder=tmp_path), phones_held([other], SECOND, folder=tmp_path):
        pass


def test_a_run_that_cannot_have_all_holds_none(tmp_path: Path) -> None:
    with phones_held([B], FIRST, folder=tmp_path):
        with pytest.raises(HeldError), phones_held([A, B], SECOND, folder=tmp_path):
            pass
        with phones_held([A], SECOND, folder=tmp_path):
            pass


def test_holders_are_listed_with_owner_and_end_while_they_hold(tmp_path: Path) -> None:
    with phones_held([A, B], FIRST, folder=tmp_path):
        found = holders(tmp_path)
    assert sorted(owner.alias for owner in found) == ["bench-01", "bench-02"]
    assert {(owner.run_id, owner.pid) for owner in found} == {("run-1", os.getpid())}
    assert all(owner.expires_s == pytest.approx(owner.since_s + 60) for owner in found)
    assert holders(tmp_path) == []


def test_words_that_cannot_be_read_still_hold(tmp_path: Path) -> None:
    with phones_held([A], FIRST, folder=tmp_path):
        next(tmp_path.glob("*.lock")).write_bytes(b"\xff{")
        assert [owner.run_id for owner in holders(tmp_path)] == ["unknown"]
        with (
            pytest.raises(HeldError, match="held by another run"),
            phones_held([A], SECOND, folder=tmp_path),
        ):
            pass


def test_a_killed_owner_frees_its_phones(tmp_path: Path) -> None:
    code = (
        "import sys, time; from pathlib import Path;"
        "from orchestrator.soak.locks import *\n"
        f"with phones_held([{A!r}], {FIRST!r}, folder=Path({str(tmp_path)!r})):\n"
        "    print('held', flush=True); time.sleep(60)"
    )
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE) as owner:
        assert owner.stdout is not None
        assert owner.stdout.readline() == b"held\n"
        with pytest.raises(HeldError), phones_held([A], SECOND, folder=tmp_path):
            pass
        owner.kill()
    with phones_held([A], SECOND, folder=tmp_path):
        pass


def test_another_user_can_lock_the_same_file(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    shared = tmp_path / "shared"
    monkeypatch.setattr(locks, "SHARED_FOLDER", shared)
    before = os.umask(0o077)
    try:
        with phones_held([A], FIRST, folder=shared):
            assert shared.stat().st_mode & 0o7777 == 0o1777
            assert next(shared.glob("*.lock")).stat().st_mode & 0o777 == 0o666
    finally:
        os.umask(before)


def test_a_link_in_place_of_a_lock_is_refused(tmp_path: Path) -> None:
    with phones_held([A], FIRST, folder=tmp_path):
        pass
    lock = next(tmp_path.glob("*.lock"))
    lock.unlink()
    lock.symlink_to(tmp_path / "elsewhere")
    with (
        pytest.raises(HeldError, match="cannot be opened"),
        phones_held([A], FIRST, folder=tmp_path),
    ):
        pass
    assert not (tmp_path / "elsewhere").exists()


def test_the_folder_is_shared_by_all_users_unless_one_is_given(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("FLEET_STATE_DIR", str(tmp_path))
    assert lock_folder() == tmp_path / "locks"
    monkeypatch.delenv("FLEET_STATE_DIR")
    assert lock_folder() == locks.SHARED_FOLDER
