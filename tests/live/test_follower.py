"""Following a directory that grows: the same view in one look or in many, whatever is torn."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
import pytest

from orchestrator.domain.errors import RunDirectoryError
from orchestrator.live.follower import RunFollower
from orchestrator.live.state import Level
from orchestrator.runlog.events import Event
from orchestrator.runlog.files import write_document
from orchestrator.runlog.layout import RunPaths
from tests.live.phones import summary
from tests.report.runs import LINES, ROWS, UDID, write_run
from tests.verdict.telemetry_spec import BOOT_S

if TYPE_CHECKING:
    from pathlib import Path

    from orchestrator.live.state import PhoneLive
    from tests.report.runs import WrittenRun

NOW_S = BOOT_S + 45


@pytest.fixture
def run(tmp_path: Path) -> WrittenRun:
    """A run that goes on; its stream and its events are empty yet."""
    written = write_run(tmp_path / "run")
    written.rewrite_run(ended_s=None)
    written.attempt.stream(1).write_bytes(b"")
    written.paths.events.write_bytes(b"")
    return written


def tell(run: WrittenRun, kind: str, attempt: int = 1, **facts: str | float | bool | None) -> None:
    event = Event(at_s=BOOT_S, kind=kind, udid=UDID, attempt=attempt, facts=facts)
    append(run.paths.events, msgspec.json.encode(event) + b"\n")


def append(path: Path, content: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("ab") as file:
        file.write(content)


def write(run: WrittenRun, content: bytes, attempt: int = 1) -> None:
    append(run.device.attempt(attempt).stream(1), content)


def seen(follower: RunFollower) -> PhoneLive:
    (phone,) = follower.look(NOW_S).phones
    return phone


def counted(kind: str) -> int:
    return sum(row["kind"] == kind for row in ROWS)


def test_what_is_written_shows(run: WrittenRun) -> None:
    follower = RunFollower(run.paths)
    assert seen(follower).phase == "waiting"
    tell(run, "phase", name="soak")
    tell(run, "launched")
    write(run, b"".join(LINES[:-1]))
    phone = seen(follower)
    hello = next(row for row in ROWS if row["kind"] == "hello")
    assert (phone.phase, phone.trims, phone.evictions) == (
        "soak",
        counted("trim"),
        counted("evict"),
    )
    assert phone.budget_tokens == hello["budget"]
    footprint, available = hello["footprint"], hello["available"]
    assert isinstance(footprint, int)
    assert isinstance(available, int)
    assert phone.limit_bytes == footprint + available
    assert phone.trims > 0
    assert phone.tokens_per_s is not None
    assert phone.left_s is not None


def test_many_looks_see_what_one_look_sees(run: WrittenRun) -> None:
    tell(run, "phase", name="soak")
    tell(run, "launched")
    follower = RunFollower(run.paths)
    whole = b"".join(LINES)
    for begin in range(0, len(whole), 977):  # lines are torn between two looks
        write(run, whole[begin : begin + 977])
        seen(follower)
    late = seen(RunFollower(run.paths))
    assert msgspec.structs.replace(seen(follower), silent_s=late.silent_s) == late


def test_damaged_lines_are_left_out(run: WrittenRun) -> None:
    tell(run, "phase", name="soak")
    damage = [b"\xff\xfe\n", b"{}\n", b"[" * 5000 + b"\n", b'{"kind":"sample"}\n']
    write(run, b"".join(LINES[:5]) + b"".join(damage) + b"".join(LINES[5:]))
    append(run.paths.events, b'{"kind":1}\n"\xff"\n')
    assert seen(RunFollower(run.paths)).trims == counted("trim")


def test_a_line_without_end_is_passed_over(run: WrittenRun) -> None:
    follower = RunFollower(run.paths)
    write(run, b"x" * (1 << 20))
    seen(follower)
    write(run, b"\n" + b"".join(LINES))
    assert seen(follower).trims == counted("trim")


def test_another_attempt_begins_anew(run: WrittenRun) -> None:
    follower = RunFollower(run.paths)
    tell(run, "phase", name="soak")
    write(run, b"".join(LINES))
    assert seen(follower).trims > 0
    tell(run, "session_ended", cause="device_lost")
    assert seen(follower).level is Level.FAILED
    tell(run, "retry", attempt=2, reason="lab error")
    tell(run, "phase", attempt=2, name="soak")
    write(run, LINES[0], attempt=2)
    phone = seen(follower)
    assert (phone.attempt, phone.trims, phone.cause) == (2, 0, None)
    assert phone.concern == "attempt 2"


def test_an_app_that_died_is_an_alarm_until_the_report_says_why(run: WrittenRun) -> None:
    tell(run, "phase", name="soak")
    write(run, b"".join(LINES[:-1]))  # without `bye`
    tell(run, "app_exited", signal=9)
    phone = seen(RunFollower(run.paths))
    assert (phone.level, phone.concern) == (Level.ALARM, "app exited, signal 9")


def test_progress_is_of_its_phase(run: WrittenRun) -> None:
    follower = RunFollower(run.paths)
    tell(run, "phase", name="install")
    tell(run, "progress", what="install", percent=40.0)
    assert seen(follower).progress_percent == 40.0
    tell(run, "phase", name="developer")
    assert seen(follower).progress_percent is None


def test_the_outcome_comes_with_the_report(tmp_path: Path) -> None:
    run = write_run(tmp_path / "run")
    follower = RunFollower(run.paths)
    assert follower.look(NOW_S).outcome is None
    write_document(run.paths.summary_json, summary("FAIL", "hang"))
    shown = follower.look(NOW_S)
    assert (shown.state, shown.outcome) == ("ended", "FAIL")
    assert (shown.phones[0].phase, shown.phones[0].concern) == ("ended", "FAIL hang")


def test_a_long_run_is_read_in_steps(run: WrittenRun, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = b"".join(LINES)
    monkeypatch.setattr("orchestrator.live.follower.LOOK_BYTES", 1 << 20)
    write(run, whole * (1 + (3 << 20) // len(whole)))
    follower = RunFollower(run.paths)
    unread = [follower.look(NOW_S).unread_bytes for _ in range(5)]
    assert unread[0] > unread[1] > 0
    assert unread[-1] == 0


def test_a_run_whose_process_died_is_left(run: WrittenRun) -> None:
    assert RunFollower(run.paths, lambda _: False).look(NOW_S).state == "left"


def test_what_is_no_run_is_refused(tmp_path: Path) -> None:
    with pytest.raises(RunDirectoryError):
        RunFollower(RunPaths(tmp_path)).look(NOW_S)


def test_a_second_launch_goes_on_where_the_first_ended(run: WrittenRun) -> None:
    follower = RunFollower(run.paths)
    tell(run, "phase", name="soak")
    tell(run, "launched", launch=1)
    write(run, b"".join(LINES))
    first = seen(follower)
    tell(run, "app_exited", exit_code=0)
    tell(run, "launched", launch=2)
    append(run.device.attempt(1).stream(2), b"".join(LINES[:-1]))
    seen(follower)
    second = seen(follower)
    assert first.tokens_total is not None
    assert first.elapsed_s is not None
    assert (second.tokens_total or 0) > first.tokens_total
    assert (second.elapsed_s or 0.0) > first.elapsed_s
    assert second.trims == 2 * first.trims
    assert second.died is None
    assert second.silent_s is not None
