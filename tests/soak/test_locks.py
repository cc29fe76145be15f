import os
import subprocess
import sys
from pathlib import Path

import pytest

from orchestrator.domain.errors import HeldError
from orchestrator.domain.outcome import ExitCode
from orchestrator.soak.locks import lock_folder, phones_held

A = ("127.0.0.1:1", "UDID-A", "bench-01")
B = ("127.0.0.1:1", "UDID-B", "bench-02")


def test_a_second_run_is_told_who_holds_the_phone(tmp_path: Path) -> None:
    with (
        phones_held([A, B], "run-1", folder=tmp_path),
        pytest.raises(HeldError) as caught,
        phones_held([B], "run-2", folder=tmp_path),
    ):
        pass
    assert str(caught.value) == (
        f"bench-02 is held by run run-1, process {os.getpid()}. "
        "Wait for that run to end, or stop it"
    )
    assert caught.value.exit_code is ExitCode.HELD


def test_the_same_udid_behind_another_usbmuxd_is_another_phone(tmp_path: Path) -> None:
    other = ("127.0.0.1:2", "UDID-A", "bench-01")
    with phones_held([A], "1", folder=tmp_path), phones_held([other], "2", folder=tmp_path):
        pass


def test_a_run_that_cannot_have_all_holds_none(tmp_path: Path) -> None:
    with phones_held([B], "run-1", folder=tmp_path):
        with pytest.raises(HeldError), phones_held([A, B], "run-2", folder=tmp_path):
            pass
        with phones_held([A], "run-3", folder=tmp_path):
            pass


def test_a_killed_owner_frees_its_phones(tmp_path: Path) -> None:
    code = (
        "import sys, time; from pathlib import Path;"
        "from orchestrator.soak.locks import phones_held\n"
        f"with phones_held([{A!r}], 'dead', folder=Path({str(tmp_path)!r})):\n"
        "    print('held', flush=True); time.sleep(60)"
    )
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE) as owner:
        assert owner.stdout is not None
        assert owner.stdout.readline() == b"held\n"
        with pytest.raises(HeldError), phones_held([A], "2", folder=tmp_path):
            pass
        owner.kill()
    with phones_held([A], "2", folder=tmp_path):
        pass


def test_the_folder_can_be_given(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("FLEET_STATE_DIR", str(tmp_path))
    assert lock_folder() == tmp_path / "locks"
    monkeypatch.delenv("FLEET_STATE_DIR")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    assert lock_folder() == tmp_path / "fleet" / "locks"
