import pytest

from orchestrator.soak.watch import (
    DRAIN_LIMIT_S,
    RECONNECT_LIMIT_S,
    STALL_LIMIT_S,
    STOP_LIMIT_S,
    Action,
    Ending,
    StreamWatch,
    hang_limit_s,
)


@pytest.fixture
def watch() -> StreamWatch:
    started = StreamWatch(0.0, run_limit_s=1000.0)
    started.on_connected(1.0)
    return started


def test_a_quiet_run_goes_on(watch: StreamWatch) -> None:
    for second in range(2, 200):
        assert watch.on_record("sample", float(second)) is Action.CONTINUE
        assert watch.on_tick(second + 0.5) is Action.CONTINUE
    assert watch.ending is None


def test_bye_then_exit_then_the_end_of_the_stream_is_complete(watch: StreamWatch) -> None:
    watch.on_record("bye", 10.0)
    assert watch.on_disconnected(10.1) is Action.CONTINUE
    assert watch.on_exit(10.2) is Action.COLLECT
    assert watch.ending is Ending.COMPLETED


def test_bye_without_an_exit_is_collected_after_the_drain_limit(watch: StreamWatch) -> None:
    watch.on_record("bye", 10.0)
    assert watch.on_tick(10.0 + DRAIN_LIMIT_S) is Action.CONTINUE
    assert watch.on_tick(10.1 + DRAIN_LIMIT_S) is Action.COLLECT


def test_an_exit_without_bye_waits_for_what_is_still_on_its_way(watch: StreamWatch) -> None:
    assert watch.on_exit(10.0) is Action.CONTINUE
    assert watch.on_record("tokens", 10.1) is Action.CONTINUE
    assert watch.on_disconnected(10.2) is Action.COLLECT
    assert watch.ending is Ending.EXITED


def test_a_broken_connection_alone_is_no_end_until_the_limit(watch: StreamWatch) -> None:
    assert watch.on_disconnected(10.0) is Action.CONTINUE
    assert watch.on_tick(10.0 + RECONNECT_LIMIT_S) is Action.CONTINUE
    assert watch.on_connected(11.0 + RECONNECT_LIMIT_S) is Action.CONTINUE
    assert watch.on_tick(12.0 + RECONNECT_LIMIT_S) is Action.CONTINUE
    assert watch.ending is None


def test_failed_reconnects_do_not_move_the_limit(watch: StreamWatch) -> None:
    watch.on_disconnected(10.0)
    watch.on_disconnected(20.0)
    assert watch.on_tick(10.1 + RECONNECT_LIMIT_S) is Action.KILL
    assert watch.ending is Ending.UNREACHABLE


def test_an_app_that_never_answers_is_unreachable() -> None:
    watch = StreamWatch(0.0, run_limit_s=1000.0)
    assert watch.on_tick(RECONNECT_LIMIT_S + 0.1) is Action.KILL
    assert watch.ending is Ending.UNREACHABLE


def test_silence_on_a_live_connection_is_a_stall(watch: StreamWatch) -> None:
    watch.on_record("sample", 5.0)
    assert watch.on_tick(5.0 + STALL_LIMIT_S) is Action.CONTINUE
    assert watch.on_tick(5.1 + STALL_LIMIT_S) is Action.KILL
    assert watch.ending is Ending.STALLED
    assert watch.on_tick(5.2 + STALL_LIMIT_S) is Action.CONTINUE
    assert watch.on_exit(5.3 + STALL_LIMIT_S) is Action.CONTINUE
    assert watch.on_disconnected(5.4 + STALL_LIMIT_S) is Action.COLLECT
    assert watch.ending is Ending.STALLED


def test_a_run_that_never_ends_is_an_overrun(watch: StreamWatch) -> None:
    watch.on_record("sample", 999.0)
    assert watch.on_tick(1000.1) is Action.KILL
    assert watch.ending is Ending.OVERRUN


def test_a_stop_is_asked_once_and_enforced(watch: StreamWatch) -> None:
    assert watch.on_stop_request(10.0) is Action.ASK_STOP
    assert watch.on_stop_request(10.1) is Action.CONTINUE
    assert watch.on_tick(10.0 + STOP_LIMIT_S) is Action.CONTINUE
    assert watch.on_tick(10.1 + STOP_LIMIT_S) is Action.KILL
    assert watch.on_tick(10.2 + STOP_LIMIT_S) is Action.CONTINUE
    assert watch.on_tick(10.3 + STOP_LIMIT_S + DRAIN_LIMIT_S) is Action.COLLECT
    assert watch.stop_requested


def test_a_lost_session_ends_at_once(watch: StreamWatch) -> None:
    assert watch.on_session_lost() is Action.COLLECT
    assert watch.ending is Ending.LOST


def test_a_refusing_app_is_killed_at_once(watch: StreamWatch) -> None:
    assert watch.on_refused(10.0) is Action.KILL
    assert watch.ending is Ending.REFUSED
    assert watch.on_tick(10.1 + DRAIN_LIMIT_S) is Action.COLLECT


def test_an_app_that_beats_and_does_not_predict_hangs() -> None:
    watch = StreamWatch(0.0, 600.0, hang_limit_s=6.0)
    watch.on_connected(0.0)
    watch.on_record("load", 1.0)
    watch.on_record("tokens", 2.0)
    for now_s in range(3, 9):
        watch.on_record("heartbeat", float(now_s))
        assert watch.on_tick(float(now_s)) is Action.CONTINUE
    assert watch.on_tick(8.5) is Action.KILL
    assert watch.ending is Ending.STALLED


def test_before_the_load_and_in_the_background_no_prediction_is_awaited() -> None:
    watch = StreamWatch(0.0, 600.0, hang_limit_s=6.0)
    watch.on_connected(0.0)
    watch.on_record("heartbeat", 20.0)
    assert watch.on_tick(20.0) is Action.CONTINUE
    watch.on_record("load", 21.0)
    watch.on_record("lifecycle", 22.0, "background")
    watch.on_record("heartbeat", 40.0)
    assert watch.on_tick(40.0) is Action.CONTINUE
    watch.on_record("lifecycle", 41.0, "foreground")
    watch.on_record("heartbeat", 48.0)
    assert watch.on_tick(48.0) is Action.KILL


def test_the_host_waits_twice_as_long_for_a_prediction_as_the_check() -> None:
    assert hang_limit_s({}) == 60.0
    assert hang_limit_s({"hang.none": {"no_token_limit_s": 3.0}}) == 6.0
