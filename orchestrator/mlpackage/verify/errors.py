"""Why a package cannot be verified; that it is wrong is a finding, not an error."""

from __future__ import annotations

from orchestrator.domain.errors import FleetError
from orchestrator.domain.outcome import ExitCode


class VerifyError(FleetError):
    """The package cannot be executed or says nothing of what it should be."""

    exit_code = ExitCode.USAGE


class WrongGraphError(VerifyError):
    """The program of the package does not fit what it says of itself, or fails when it runs."""

    exit_code = ExitCode.PRODUCT_FAILED
