import pytest

from orchestrator.domain.outcome import (
    Cause,
    ExitCode,
    Outcome,
    exit_code_of,
    outcome_of,
    outcome_of_run,
)

LAB = {
    Cause.FOREGROUND_LOST,
    Cause.DEVICE_LOST,
    Cause.DEVICE_REBOOTED,
    Cause.DEVICE_LOCKED,
    Cause.NOT_READY,
    Cause.INSTALL_FAILED,
    Cause.TELEMETRY_LOST,
}


@pytest.mark.parametrize("cause", list(Cause))
def test_every_cause_has_one_outcome(cause: Cause) -> None:
    special = {
        Cause.COMPLETED: Outcome.PASS,
        Cause.USER_ABORTED: Outcome.ABORTED,
        Cause.JETSAM_SYSTEM_PRESSURE: Outcome.ERROR,
    }
    expected = special.get(cause, Outcome.ERROR if cause in LAB else Outcome.FAIL)
    assert outcome_of(cause) is expected


@pytest.mark.parametrize(("ratio", "expected"), [(0.79, Outcome.ERROR), (0.8, Outcome.FAIL)])
def test_system_pressure_blames_the_app_from_80_percent_of_its_limit(
    ratio: float, expected: Outcome
) -> None:
    assert outcome_of(Cause.JETSAM_SYSTEM_PRESSURE, footprint_over_limit=ratio) is expected


@pytest.mark.parametrize(
    ("outcomes", "code", "whole"),
    [
        ([Outcome.PASS, Outcome.PASS], ExitCode.OK, Outcome.PASS),
        ([Outcome.PASS, Outcome.ERROR], ExitCode.INCONCLUSIVE, Outcome.ERROR),
        ([Outcome.ABORTED, Outcome.PASS], ExitCode.INCONCLUSIVE, Outcome.ABORTED),
        ([Outcome.ERROR, Outcome.FAIL], ExitCode.PRODUCT_FAILED, Outcome.FAIL),
        ([], ExitCode.INCONCLUSIVE, Outcome.ERROR),
    ],
)
def test_a_product_failure_wins_and_anything_unproven_is_inconclusive(
    outcomes: list[Outcome], code: ExitCode, whole: Outcome
) -> None:
    assert exit_code_of(outcomes) is code
    assert outcome_of_run(outcomes) is whole
