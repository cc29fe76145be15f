from __future__ import annotations

import pytest

from orchestrator.device.events import AppExited, AppOutput, SessionEvent, WarningNoticed
from orchestrator.device.pmd3.developer import footprint_of, memory_size_of, warning_of
from orchestrator.device.pmd3.process_control import ProcessWatch


def test_a_process_row_gives_the_footprint_of_its_pid() -> None:
    row = {"Processes": {7: [7, 1024], 8: [8, 4096]}}
    assert footprint_of(row, 8) == 4096


@pytest.mark.parametrize(
    "row",
    [
        {"Processes": {8: [8, 1]}},
        {"Processes": {7: [7]}},
        {"Processes": {7: [7, None]}},
        {"Processes": {7: [7, -1]}},
        {"Processes": {7: "x"}},
        {"Processes": None},
        {"System": [1]},
        None,
        "k",
    ],
)
def test_a_row_without_the_footprint_gives_none(row: object) -> None:
    assert footprint_of(row, 7) is None


@pytest.mark.parametrize(
    ("row", "size_bytes"),
    [
        ({"System": [8_021_032_960]}, 8_021_032_960),
        ({"System": [0]}, None),
        ({"System": []}, None),
        ({"System": ["8"]}, None),
        ({"Processes": {}}, None),
        (b"", None),
    ],
)
def test_a_system_row_gives_the_memory_size(row: object, size_bytes: int | None) -> None:
    assert memory_size_of(row) == size_bytes


@pytest.mark.parametrize(
    ("payload", "notice"),
    [
        (("memoryLevelNotification:", [{"pid": 7, "code": 2.0}]), WarningNoticed(7)),
        (("memoryLevelNotification:", [{"code": 2.0}]), WarningNoticed(None)),
        (("memoryLevelNotification:", [{"pid": "7"}]), WarningNoticed(None)),
        (("memoryLevelNotification:", []), WarningNoticed(None)),
        (("applicationStateNotification:", [{"pid": 7}]), None),
        (("memoryLevelNotification:",), None),
        ({"pid": 7}, None),
        (None, None),
    ],
)
def test_a_notification_of_memory_is_a_warning(
    payload: object, notice: WarningNoticed | None
) -> None:
    assert warning_of(payload) == notice


def watched() -> tuple[ProcessWatch, list[SessionEvent]]:
    events: list[SessionEvent] = []
    return ProcessWatch(events.append, lambda _reason: None), events


def test_output_without_a_newline_comes_before_the_exit() -> None:
    watch, events = watched()
    watch.output("one\ntw", 7)
    watch.output("o", 7)
    watch.exited(7, 0, None)
    assert events == [AppOutput(7, "one"), AppOutput(7, "two"), AppExited(7, 0, None)]


@pytest.mark.parametrize(
    ("code", "signal", "event"),
    [
        (None, 9, AppExited(7, None, 9)),
        (0, 0, AppExited(7, 0, None)),
        (3, None, AppExited(7, 3, None)),
        (0, 11, AppExited(7, None, 11)),
        ("x", b"y", AppExited(7, None, None)),
    ],
)
def test_a_signal_wins_over_the_exit_code(code: object, signal: object, event: AppExited) -> None:
    watch, events = watched()
    watch.exited(7, code, signal)
    assert events == [event]


def test_output_of_two_processes_is_kept_apart() -> None:
    watch, events = watched()
    watch.output("a", 7)
    watch.output("b\n", 8)
    watch.output("c\n", 7)
    assert events == [AppOutput(8, "b"), AppOutput(7, "ac")]


def test_what_is_no_output_is_ignored() -> None:
    watch, events = watched()
    watch.output(None, 7)
    watch.output("x\n", "7")
    watch.exited("7", 0, None)
    assert events == []
