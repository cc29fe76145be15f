import time

import pytest

from orchestrator.domain.deadline import Deadline
from orchestrator.domain.errors import ConfigError, DeadlineExceededError, DeviceError, FleetError
from orchestrator.domain.outcome import ExitCode


def test_a_config_error_points_at_its_place() -> None:
    error = ConfigError("fleet.yaml", "duplicate key, 'a'", line=3, column=5)
    assert str(error) == "fleet.yaml:3:5: duplicate key, 'a'"
    assert error.exit_code is ExitCode.USAGE
    assert str(ConfigError("fleet.yaml", "no such file")) == "fleet.yaml: no such file"


def test_a_device_error_names_phone_phase_layer_and_remedy() -> None:
    error = DeviceError("bench-01", "afc", "install", "the disk is full", remedy="Free some space")
    assert str(error) == "bench-01: install failed in afc: the disk is full. Free some space"
    assert isinstance(error, FleetError)


def test_a_missed_deadline_says_how_long_was_waited() -> None:
    error = DeadlineExceededError("bench-01", "lockdown", "facts", 20.0)
    assert "no answer within 20 s" in str(error)


def test_nested_deadlines_never_extend_the_outer_one() -> None:
    outer = Deadline.after(1.0)
    assert outer.within(100.0) is outer
    assert outer.within(0.1).at_s < outer.at_s


def test_a_passed_deadline_has_no_time_left() -> None:
    deadline = Deadline(time.monotonic() - 1.0, 1.0)
    assert deadline.passed
    assert deadline.remaining_s() == pytest.approx(0.0)
