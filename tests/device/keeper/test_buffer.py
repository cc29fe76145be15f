from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from orchestrator.device.events import (
    AppExited,
    AppOutput,
    EventsDropped,
    FootprintObserved,
    SessionEvent,
    SessionLost,
)
from orchestrator.device.keeper.buffer import EventBuffer


def footprints(count: int) -> list[FootprintObserved]:
    return [FootprintObserved(7, n) for n in range(count)]


def test_events_come_out_in_order() -> None:
    buffer = EventBuffer()
    events: list[SessionEvent] = [AppOutput(7, "a"), FootprintObserved(7, 1), AppExited(7, 0, None)]
    for event in events:
        buffer.add(event)
    assert buffer.take() == events
    assert buffer.take() == []


def test_a_full_buffer_loses_the_oldest_footprints_and_says_how_many() -> None:
    buffer = EventBuffer(max_footprints=2)
    for event in footprints(5):
        buffer.add(event)
    assert buffer.take() == [EventsDropped(3, 0), *footprints(5)[3:]]


def test_exits_and_the_loss_are_never_dropped() -> None:
    buffer = EventBuffer(max_footprints=1, max_output_lines=1)
    kept: list[SessionEvent] = [AppExited(pid, None, 9) for pid in range(100)]
    kept.append(SessionLost("cable"))
    for event in kept:
        buffer.add(event)
        buffer.add(FootprintObserved(7, 1))
        buffer.add(AppOutput(7, "x"))
    assert [one for one in buffer.take() if isinstance(one, AppExited | SessionLost)] == kept


def test_output_does_not_push_out_footprints() -> None:
    buffer = EventBuffer(max_footprints=2, max_output_lines=2)
    for event in footprints(2):
        buffer.add(event)
    for number in range(9):
        buffer.add(AppOutput(7, str(number)))
    assert buffer.take() == [
        EventsDropped(0, 7),
        *footprints(2),
        AppOutput(7, "7"),
        AppOutput(7, "8"),
    ]


def test_what_could_not_be_delivered_goes_back_in_front() -> None:
    buffer = EventBuffer()
    buffer.add(AppOutput(7, "first"))
    taken = buffer.take()
    buffer.add(AppOutput(7, "second"))
    buffer.restore(taken)
    assert buffer.take() == [AppOutput(7, "first"), AppOutput(7, "second")]


def test_counted_drops_survive_a_failed_delivery() -> None:
    buffer = EventBuffer(max_footprints=1)
    for event in footprints(3):
        buffer.add(event)
    buffer.restore(buffer.take())
    assert buffer.take() == [EventsDropped(2, 0), FootprintObserved(7, 2)]


@given(st.lists(st.sampled_from("fox"), max_size=60), st.integers(1, 5))
def test_nothing_is_lost_without_being_counted(kinds: list[str], limit: int) -> None:
    buffer = EventBuffer(limit, limit)
    makers: dict[str, SessionEvent] = {
        "f": FootprintObserved(7, 1),
        "o": AppOutput(7, "x"),
        "x": AppExited(7, 0, None),
    }
    for kind in kinds:
        buffer.add(makers[kind])
    out = buffer.take()
    dropped = out.pop(0) if out and isinstance(out[0], EventsDropped) else EventsDropped(0, 0)
    assert isinstance(dropped, EventsDropped)
    assert sum(isinstance(one, AppExited) for one in out) == kinds.count("x")
    footprint_count = sum(isinstance(one, FootprintObserved) for one in out)
    assert footprint_count + dropped.footprints == kinds.count("f")
    assert sum(isinstance(one, AppOutput) for one in out) + dropped.output_lines == kinds.count("o")
    assert footprint_count <= limit
