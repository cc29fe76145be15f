"""One check of the doctor: values, and what they mean for a start."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Final

import msgspec

from orchestrator.domain.outcome import ExitCode

if TYPE_CHECKING:
    from collections.abc import Sequence

HOST: Final = "host"


class State(StrEnum):
    """What a check found."""

    OK = "ok"
    WARNING = "warning"  # a soak could start; somebody should know
    FAILED = "failed"  # no soak could start, on this phone or at all
    UNKNOWN = "unknown"  # cannot be read from here


class DoctorCheck(msgspec.Struct, frozen=True, omit_defaults=True):
    """One check; the names of checks and reasons are relied on from outside."""

    subject: str  # `host`, or a phone's alias
    name: str
    state: State
    facts: str
    reason: str | None = None  # typed, where the state is not ok
    remedy: str | None = None


def ok(subject: str, name: str, facts: str) -> DoctorCheck:
    """Return a check that found nothing wrong."""
    return DoctorCheck(subject, name, State.OK, facts)


def warning(subject: str, name: str, facts: str, reason: str, remedy: str = "") -> DoctorCheck:
    """Return a check that a person should see."""
    return DoctorCheck(subject, name, State.WARNING, facts, reason, remedy or None)


def failed(subject: str, name: str, facts: str, reason: str, remedy: str) -> DoctorCheck:
    """Return a check that forbids a start."""
    return DoctorCheck(subject, name, State.FAILED, facts, reason, remedy)


def unknown(subject: str, name: str, facts: str, remedy: str) -> DoctorCheck:
    """Return a check of something that only a person can see."""
    return DoctorCheck(subject, name, State.UNKNOWN, facts, "not_readable", remedy)


class Diagnosis(msgspec.Struct, frozen=True):
    """All checks."""

    can_start: bool
    checks: list[DoctorCheck]


_BUILD_CHECKS: Final = frozenset({"toolchain", "signing", "profiles", "keychain", "app"})


def diagnosis_of(checks: Sequence[DoctorCheck], *, phones_wanted: bool) -> Diagnosis:
    """Return whether a soak of all phones could start: pure."""
    has_phone = any(check.subject != HOST for check in checks) or not phones_wanted
    broken = any(check.state is State.FAILED for check in checks)
    return Diagnosis(has_phone and not broken, list(checks))


def exit_code_of(diagnosis: Diagnosis) -> ExitCode:
    """Return what `fleet soak` would exit with for the same reason."""
    if diagnosis.can_start:
        return ExitCode.OK
    broken = [check for check in diagnosis.checks if check.state is State.FAILED]
    if any(check.reason == "held" for check in broken):
        return ExitCode.HELD
    if any(check.subject == HOST and check.name in _BUILD_CHECKS for check in broken):
        return ExitCode.BUILD
    if any(check.subject == HOST and check.name != "usbmuxd" for check in broken):
        return ExitCode.INCONCLUSIVE
    return ExitCode.NO_PHONE
