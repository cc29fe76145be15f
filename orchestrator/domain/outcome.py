"""Outcomes, causes and check results: the closed vocabulary of a verdict.

FAIL is the product, ERROR is the lab. The names are relied on from outside.
"""

from __future__ import annotations

from enum import IntEnum, StrEnum
from typing import Final


class Outcome(StrEnum):
    """What a phone's soak says."""

    PASS = "PASS"  # noqa: S105 - a verdict, not a secret
    FAIL = "FAIL"
    ERROR = "ERROR"
    ABORTED = "ABORTED"


class Result(StrEnum):
    """What one check says. A check without data is `unmeasured`, never `pass`."""

    PASS = "pass"  # noqa: S105 - a verdict, not a secret
    FAIL = "fail"
    SKIPPED = "skipped"
    UNMEASURED = "unmeasured"


class Cause(StrEnum):
    """Why a phone's soak ended."""

    COMPLETED = "completed"
    ASSERTION_FAILED = "assertion_failed"
    JETSAM_PER_PROCESS_LIMIT = "jetsam_per_process_limit"
    KILLED_UNCONFIRMED = "killed_unconfirmed"
    CRASH = "crash"
    WATCHDOG = "watchdog"
    HANG = "hang"
    THERMAL_KILL = "thermal_kill"
    UNEXPLAINED_EXIT = "unexplained_exit"
    EARLY_EXIT = "early_exit"
    JETSAM_SYSTEM_PRESSURE = "jetsam_system_pressure"
    FOREGROUND_LOST = "foreground_lost"
    DEVICE_LOST = "device_lost"
    DEVICE_REBOOTED = "device_rebooted"
    DEVICE_LOCKED = "device_locked"
    NOT_READY = "not_ready"
    INSTALL_FAILED = "install_failed"
    TELEMETRY_LOST = "telemetry_lost"
    USER_ABORTED = "user_aborted"


_PRODUCT_CAUSES: Final = frozenset(
    {
        Cause.ASSERTION_FAILED,
        Cause.JETSAM_PER_PROCESS_LIMIT,
        Cause.KILLED_UNCONFIRMED,
        Cause.CRASH,
        Cause.WATCHDOG,
        Cause.HANG,
        Cause.THERMAL_KILL,
        Cause.UNEXPLAINED_EXIT,
        Cause.EARLY_EXIT,
    }
)

SYSTEM_PRESSURE_BLAME_RATIO: Final = 0.8  # of the limit: above it the app is to blame


def outcome_of(cause: Cause, *, footprint_over_limit: float | None = None) -> Outcome:
    """Return the outcome that a cause gives.

    Args:
        cause: Why the soak ended.
        footprint_over_limit: Last footprint divided by the limit; decides system pressure only.
    """
    if cause is Cause.COMPLETED:
        return Outcome.PASS
    if cause is Cause.USER_ABORTED:
        return Outcome.ABORTED
    if cause is Cause.JETSAM_SYSTEM_PRESSURE:
        ours = (
            footprint_over_limit is not None and footprint_over_limit >= SYSTEM_PRESSURE_BLAME_RATIO
        )
        return Outcome.FAIL if ours else Outcome.ERROR
    return Outcome.FAIL if cause in _PRODUCT_CAUSES else Outcome.ERROR


class ExitCode(IntEnum):
    """Exit codes of `fleet`."""

    OK = 0
    PRODUCT_FAILED = 1
    USAGE = 2
    NO_PHONE = 3
    INCONCLUSIVE = 4
    BUILD = 5
    HELD = 6
    SIGINT = 130
    SIGTERM = 143


def exit_code_of(outcomes: list[Outcome]) -> ExitCode:
    """Return the exit code of a run that started: product failure, else inconclusive, else 0."""
    if Outcome.FAIL in outcomes:
        return ExitCode.PRODUCT_FAILED
    if not outcomes or any(outcome is not Outcome.PASS for outcome in outcomes):
        return ExitCode.INCONCLUSIVE
    return ExitCode.OK


def outcome_of_run(outcomes: list[Outcome]) -> Outcome:
    """Return the worst outcome of a run: FAIL, ABORTED, ERROR, PASS in this order."""
    for outcome in (Outcome.FAIL, Outcome.ABORTED, Outcome.ERROR):
        if outcome in outcomes:
            return outcome
    return Outcome.PASS if outcomes else Outcome.ERROR
