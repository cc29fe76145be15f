"""What the kernel of a virtual phone refuses. All of it is caught by catching `KernelError`."""

from __future__ import annotations

from orchestrator.domain.errors import FleetError


class KernelError(FleetError):
    """The kernel of a virtual phone refused a request."""


class LaunchRefusedError(KernelError):
    """An app could not be started."""

    def __init__(self, bundle_id: str, facts: str, *, remedy: str = "") -> None:
        self.bundle_id, self.facts = bundle_id, facts
        super().__init__(f"{bundle_id} was not launched: {facts}", remedy=remedy)


class NoSuchProcessError(KernelError):
    """No running app has this pid."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        super().__init__(f"No such process: {pid}")


class BadSignalError(KernelError):
    """The host has no signal of this number."""

    def __init__(self, signal: int) -> None:
        self.signal = signal
        super().__init__(f"No such signal: {signal}")
