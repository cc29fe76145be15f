from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.device.events import AppExited, AppOutput, SessionLost
from orchestrator.device.keeper.messages import (
    Attached,
    Close,
    Failed,
    FromKeeper,
    Kill,
    Launch,
    Request,
    Result,
    decode_from_keeper,
    decode_request,
    encode,
)
from orchestrator.domain.errors import DeadlineExceededError, DeviceError
from orchestrator.domain.outcome import Cause


@pytest.mark.parametrize(
    "request_",
    [Launch(1, 2.5, "dev.app", {"FLEET_TOKEN": "x\ny"}, ["--a"]), Kill(2, 1.0, 7), Close(3, 1.0)],
)
def test_requests_survive_the_wire_as_one_line(request_: Request) -> None:
    line = encode(request_)
    assert line.count(b"\n") == 1
    assert decode_request(line) == request_


@pytest.mark.parametrize(
    "message",
    [Attached(7, None), Result(1, 4), AppOutput(7, "é\n"), AppExited(7, None, 9), SessionLost("x")],
)
def test_replies_and_events_survive_the_wire_as_one_line(message: FromKeeper) -> None:
    line = encode(message)
    assert line.count(b"\n") == 1
    assert decode_from_keeper(line) == message


def test_an_error_is_the_same_on_both_sides() -> None:
    seen = DeviceError("a", "dvt", "launch", "locked", cause=Cause.DEVICE_LOCKED, remedy="Unlock")
    answer = decode_from_keeper(encode(Failed.of(1, seen)))
    assert isinstance(answer, Failed)
    again = answer.error("a")
    assert (str(again), again.cause, type(again)) == (str(seen), seen.cause, DeviceError)


def test_a_passed_deadline_stays_one_on_the_other_side() -> None:
    answer = Failed.of(1, DeadlineExceededError("a", "dvt", "launch", 30.0, remedy="Wait"))
    again = answer.error("a")
    assert isinstance(again, DeadlineExceededError)
    assert again.limit_s == 30.0


@given(st.binary(max_size=80))
def test_any_other_line_is_refused(line: bytes) -> None:
    with pytest.raises(msgspec.DecodeError):
        decode_request(line)
