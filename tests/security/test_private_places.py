"""What a run keeps for itself is closed to other users, and its token is nowhere else."""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from orchestrator.device.keeper.place import KeeperRecord, claim, place_of, write_record
from orchestrator.soak.ledger import Ledger, Quarantine
from orchestrator.soak.run_state import RunState, RunStateFolder
from orchestrator.soak.session_state import SessionJournal, Stage
from tests.end_to_end.fleet_process import (
    WITHOUT_SWIFT,
    finish,
    read_json,
    served_phones,
    start_fleet,
    wait_for,
)

if TYPE_CHECKING:
    from collections.abc import Iterator


def open_to_others(folder: Path) -> list[Path]:
    """Return what below a folder another user can reach: no path component keeps him out."""
    if folder.stat().st_mode & 0o077 == 0:
        return []
    found = [folder]
    for path in folder.iterdir():
        found += open_to_others(path) if path.is_dir() else [path]
    return found


@pytest.fixture
def open_umask() -> Iterator[None]:
    before = os.umask(0)
    yield
    os.umask(before)


@pytest.mark.usefixtures("open_umask")
def test_state_is_private_whatever_the_umask(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FLEET_STATE_DIR", str(tmp_path / "state"))
    ipa = tmp_path / "app.ipa"
    ipa.write_bytes(b"app")
    run = RunStateFolder.of("run-1")
    run.begin(RunState("runs/run-1"), ipa)
    journal = SessionJournal(run.root / "phone.session.json")
    journal.state.token = "secret"
    journal.save(Stage.RUNNING)
    Ledger().put_in("udid", "alias", Quarantine("why", 0.0, 1.0, automatic=False))
    files = [path for path in (tmp_path / "state").rglob("*") if path.is_file()]
    assert len(files) >= 5
    assert {stat.S_IMODE(path.stat().st_mode) for path in files} == {0o600}
    assert open_to_others(tmp_path / "state") == []


@pytest.mark.usefixtures("open_umask")
def test_a_keepers_socket_and_record_are_private_whatever_the_umask(tmp_path: Path) -> None:
    place = place_of(tmp_path / "keepers", "udid", "default")
    os.close(claim(place))
    write_record(place, KeeperRecord(1, str(place.socket), "udid", "alias", "default"))
    assert open_to_others(tmp_path / "keepers") == []
    assert open_to_others(place.folder) == []


def test_the_control_socket_of_served_phones_is_private(tmp_path: Path) -> None:
    with served_phones(tmp_path, "--phones", "1") as farm:
        control = Path(farm["control"])
        assert stat.S_ISSOCK(control.stat().st_mode)
        assert open_to_others(control.parent) == []


@pytest.mark.deep
@pytest.mark.timeout(300)
def test_the_token_of_a_run_is_in_no_process_list_log_or_report(tmp_path: Path) -> None:
    with served_phones(tmp_path, "--phones", "1") as farm:
        output = tmp_path / "runs"
        process = start_fleet(
            tmp_path, "soak", "--duration", "60s", "--output", str(output),
            USBMUXD_SOCKET_ADDRESS=farm["usbmux"], PATH=WITHOUT_SWIFT,
        )  # fmt: skip
        wait_for(lambda: streamed(output) > 0, 90, "the first records")
        state = tmp_path / "home" / "state"
        assert open_to_others(state / "runs") == []
        (session,) = (state / "runs").glob("*/*.session.json")
        token = read_json(session)["token"].encode()
        assert len(token) == 32
        assert [line for line in command_lines() if token in line] == []
        process.terminate()
        run = finish(process, output, limit_s=60)
    assert token.decode() not in run.stdout + run.stderr
    assert holding(token, tmp_path) == []
    assert run.exit_code == 143


def streamed(output: Path) -> int:
    streams = output.glob("latest/devices/*/attempts/1/launches/1/stream.ndjson")
    return sum(stream.stat().st_size for stream in streams)


def command_lines() -> list[bytes]:
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            found.append(path.read_bytes())
        except OSError:
            continue
    return found


def holding(token: bytes, folder: Path) -> list[Path]:
    """Return every file that has a token: the report, the run, the logs, the phone, the state."""
    return [path for path in folder.rglob("*") if path.is_file() and token in path.read_bytes()]
