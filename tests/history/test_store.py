from __future__ import annotations

import sqlite3
from contextlib import closing
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from orchestrator.domain.calibration import Calibration, CalibrationKey, Deaths, StateCost
from orchestrator.domain.errors import UsageError
from orchestrator.history.rebuild import rebuild
from orchestrator.history.resolution import resolve
from orchestrator.history.store import History, HistoryError
from orchestrator.report.remake import remake
from tests.history.entries import phone, run, runs_of
from tests.report.runs import write_run

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def history(tmp_path: Path) -> History:
    return History(tmp_path / "history.sqlite3", lock_wait_s=0.01)


def test_a_run_comes_back_as_it_was_recorded(history: History) -> None:
    entry = run(1, phone(123.4), phone(alias="desk-2", udid="u2", outcome="FAIL"))
    history.record(entry)
    assert history.runs() == [entry]


def test_recording_twice_replaces(history: History) -> None:
    history.record(run(1))
    history.record(run(1, phone(99.0), outcome="FAIL"))
    (kept,) = history.runs()
    assert kept.outcome == "FAIL"
    assert kept.phones[0].measures == {"tokens_per_s": 99.0}


def test_runs_come_oldest_first_and_the_latest_can_be_asked_for(history: History) -> None:
    for entry in reversed(runs_of([1.0, 2.0, 3.0])):
        history.record(entry)
    assert [entry.phones[0].measures["tokens_per_s"] for entry in history.runs()] == [1, 2, 3]
    assert len(history.runs(newest=2)) == 2
    assert history.runs(newest=2)[-1].phones[0].measures["tokens_per_s"] == 3


def test_a_baseline_is_a_named_set_of_recorded_runs(history: History) -> None:
    first, second = runs_of([1.0, 2.0])
    history.record(first)
    history.record(second)
    history.set_baseline("main", [first.run_id, second.run_id])
    history.set_baseline("main", [second.run_id])
    assert history.baselines() == {"main": [second.run_id]}
    assert resolve(history, "main") == [second]


def test_a_baseline_of_an_unknown_run_is_refused(history: History) -> None:
    with pytest.raises(HistoryError, match="nowhere is not in the history"):
        history.set_baseline("main", ["nowhere"])
    assert history.baselines() == {}


def test_a_run_is_found_by_the_start_of_its_id(history: History) -> None:
    for entry in runs_of([1.0, 2.0]):
        history.record(entry)
    assert len(resolve(history, "20260000")) == 1
    with pytest.raises(UsageError, match="start of 2 run ids"):
        resolve(history, "2026")
    with pytest.raises(UsageError, match="no baseline, run directory or recorded run"):
        resolve(history, "2027")


def test_a_run_directory_is_recorded_on_the_way(history: History, tmp_path: Path) -> None:
    written = write_run(tmp_path / "runs" / "one")
    remake(written.root)
    (entry,) = resolve(history, str(written.root))
    assert history.runs() == [entry]


@pytest.mark.parametrize("content", [b"not a database at all" * 300, b"SQLite format 3\x00junk"])
def test_a_damaged_file_is_an_error_that_names_the_way_out(
    history: History, content: bytes
) -> None:
    history.path.write_bytes(content)
    with pytest.raises(HistoryError, match=r"--rebuild"):
        history.record(run(1))
    assert history.path.read_bytes() == content


def test_a_damaged_row_is_an_error(history: History) -> None:
    history.record(run(1))
    with closing(sqlite3.connect(history.path)) as connection, connection:
        connection.execute("UPDATE phone SET entry = '{}'")
    with pytest.raises(HistoryError, match=r"--rebuild"):
        history.runs()


def test_a_locked_file_is_an_error_after_a_short_wait(history: History) -> None:
    history.record(run(1))
    with closing(sqlite3.connect(history.path, isolation_level=None)) as other:
        other.execute("BEGIN EXCLUSIVE")
        with pytest.raises(HistoryError, match="try again"):
            history.record(run(2))
    history.record(run(2))
    assert len(history.runs()) == 2


def test_a_file_of_a_newer_version_is_left_alone(history: History) -> None:
    with closing(sqlite3.connect(history.path)) as connection:
        connection.execute("PRAGMA user_version = 99")
    with pytest.raises(HistoryError, match="newer fleet"):
        history.runs()


def test_a_folder_that_cannot_be_written_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(HistoryError):
        History(tmp_path / "file" / "history.sqlite3").runs()


def test_a_rebuild_makes_the_same_history_from_the_run_directories(tmp_path: Path) -> None:
    runs = tmp_path / "runs"
    written = write_run(runs / "one")
    remake(written.root)
    write_run(runs / "never-judged")
    (runs / "latest").symlink_to("one")
    history = History(runs / "history.sqlite3")
    (entry,) = resolve(history, str(written.root))
    history.set_baseline("main", [entry.run_id])
    done = rebuild(history.path, runs)
    assert done.recorded == (entry.run_id,)
    assert len(done.left_out) == 1
    assert not done.baselines_lost
    assert history.runs() == [entry]
    assert history.baselines() == {"main": [entry.run_id]}


def test_a_rebuild_keeps_the_damaged_file_and_says_that_baselines_are_lost(tmp_path: Path) -> None:
    runs = tmp_path / "runs"
    remake(write_run(runs / "one").root)
    database = runs / "history.sqlite3"
    database.write_bytes(b"x" * 5000)
    done = rebuild(database, runs)
    assert done.baselines_lost
    assert done.old_file is not None
    assert done.old_file.read_bytes() == b"x" * 5000
    assert len(History(database).runs()) == 1


def calibration(limit_bytes: int, **key: object) -> Calibration:
    plain = CalibrationKey("iPhone16,1", "22G86", entitled=False, virtual=False)
    return Calibration(
        key=replace(plain, **key),  # type: ignore[arg-type]
        udid="u",
        alias="desk-1",
        model="iPhone 15 Pro",
        os="18.6",
        measured_s=1.0,
        stand_in=False,
        limit_bytes=limit_bytes,
        deaths=Deaths(2, ("signal 9",), 1, (3.5,)),
        state=StateCost(64, 32),
    )


def test_a_calibration_holds_for_its_type_build_and_entitlement(history: History) -> None:
    first, again = calibration(1), calibration(2)
    entitled, virtual = calibration(3, entitled=True), calibration(4, virtual=True)
    other_build = calibration(5, os_build="23A341")
    for each in (first, entitled, virtual, other_build, again):
        history.calibrate(each)
    expected = (again, entitled, virtual, other_build)
    assert history.calibrations() == {each.key: each for each in expected}


def test_a_database_of_the_first_schema_takes_calibrations(history: History) -> None:
    history.record(run(1))
    with closing(sqlite3.connect(history.path)) as connection, connection:
        connection.execute("DROP TABLE calibration")
        connection.execute("PRAGMA user_version = 1")
    history.calibrate(calibration(1))
    assert [entry.run_id for entry in history.runs()] == [run(1).run_id]
    assert len(history.calibrations()) == 1


def test_a_rebuild_keeps_calibrations(history: History) -> None:
    history.calibrate(calibration(1))
    rebuild(history.path, history.path.parent)
    assert [each.limit_bytes for each in history.calibrations().values()] == [1]
