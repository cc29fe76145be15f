"""The error tree. An error names phone, layer and facts, and tells the person what to do."""

from __future__ import annotations

import errno
from typing import Final

from orchestrator.domain.outcome import Cause, ExitCode

# Of this computer's own files, whichever they are: no phone and no cable is at fault.
_DISK_ERRORS: Final = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EFBIG})


class FleetError(Exception):
    """Root of everything `fleet` reports on purpose; `str()` is one plain sentence.

    Attributes:
        exit_code: What the process exits with if nothing handles the error.
        remedy: What the person should do, or an empty string.
    """

    exit_code: ExitCode = ExitCode.INCONCLUSIVE

    def __init__(self, message: str, *, remedy: str = "") -> None:
        self.remedy = remedy
        super().__init__(f"{message}. {remedy}" if remedy else message)


class UsageError(FleetError):
    """The command line or a name on it is wrong."""

    exit_code = ExitCode.USAGE


class ConfigError(FleetError):
    """A configuration file breaks a rule.

    The message is `file:line:column: rule, value`; line and column only where there is a position.
    """

    exit_code = ExitCode.USAGE

    def __init__(
        self, file: str, rule: str, *, line: int | None = None, column: int | None = None
    ) -> None:
        self.file, self.rule, self.line, self.column = file, rule, line, column
        where = file if line is None else f"{file}:{line}:{column or 1}"
        super().__init__(f"{where}: {rule}")


class NoPhoneError(FleetError):
    """No phone matched, or none is healthy."""

    exit_code = ExitCode.NO_PHONE


class BuildError(FleetError):
    """The harness app could not be built, signed or packed."""

    exit_code = ExitCode.BUILD


class HeldError(FleetError):
    """A phone is held by another run."""

    exit_code = ExitCode.HELD


class RunDirectoryError(FleetError):
    """A run directory is missing or cannot be read."""

    exit_code = ExitCode.USAGE


class DeviceError(FleetError):
    """A lab error on one phone.

    Attributes:
        alias: The phone, as the person knows it.
        layer: `usbmux`, `lockdown`, `afc`, `install`, `tunnel`, `dvt`, `app`, `host`.
        phase: What the session was doing: `install`, `launch`, `soak`, `collect`, ...
        cause: What the phone's verdict gets if this error ends the session.
    """

    def __init__(
        self,
        alias: str,
        layer: str,
        phase: str,
        facts: str,
        *,
        cause: Cause = Cause.DEVICE_LOST,
        remedy: str = "",
    ) -> None:
        self.alias, self.layer, self.phase, self.facts, self.cause = (
            alias,
            layer,
            phase,
            facts,
            cause,
        )
        super().__init__(f"{alias}: {phase} failed in {layer}: {facts}", remedy=remedy)


class DeadlineExceededError(DeviceError):
    """A call to a phone did not answer in time."""

    def __init__(
        self, alias: str, layer: str, phase: str, limit_s: float, *, remedy: str = ""
    ) -> None:
        self.limit_s = limit_s
        super().__init__(alias, layer, phase, f"no answer within {limit_s:g} s", remedy=remedy)


class HostFileError(FleetError):
    """This computer's files cannot be written or are not where they were."""


def is_disk_error(error: BaseException) -> bool:
    """Return whether a write failed because this computer's disk is full or closed to it."""
    return isinstance(error, OSError) and error.errno in _DISK_ERRORS


def told(error: BaseException, *, of_run: bool = True) -> FleetError | None:
    """Return what to tell a person about an error, None where it is a defect of this program.

    Sessions run side by side: their errors come in groups, of which the first is told. `of_run`:
    whether a run was carried out, with which `fleet resume` goes on.
    """
    if isinstance(error, FleetError):
        return error
    if isinstance(error, BaseExceptionGroup):
        found = (told(one, of_run=of_run) for one in error.exceptions)
        return next(filter(None, found), None)
    if not isinstance(error, OSError) or error.errno is None:
        return None
    if is_disk_error(error):
        return HostFileError(
            f"this computer cannot write{_named(error)}: {error.strerror}",
            remedy="Make room where output and runs go"
            + ("; `fleet resume` goes on with a run" if of_run else ""),
        )
    if error.filename is None:
        return None
    return HostFileError(
        f"this computer's file{_named(error)}: {error.strerror}",
        remedy="If the run's folder was moved or replaced, put it back"
        + (", then `fleet resume`" if of_run else ""),
    )


def _named(error: OSError) -> str:
    return "" if error.filename is None else f" {error.filename}"
