"""What can be done to a phone: the protocols that sessions use and tests replace.

Every call takes a `Deadline` and raises `DeviceError` (or `DeadlineExceededError`), never the
library's own exceptions. Calls on one link may run at the same time.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from orchestrator.domain.errors import DeviceError
from orchestrator.domain.outcome import Cause

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Mapping, Sequence
    from pathlib import Path

    from anyio.abc import ByteStream

    from orchestrator.device.events import SessionEvent
    from orchestrator.device.facts import PhoneFacts, PulledReport, RemoteFile
    from orchestrator.domain.deadline import Deadline
    from orchestrator.domain.phone import Phone


class PortRefusedError(DeviceError):
    """Nothing listens on the app's port, yet or any more."""

    def __init__(self, alias: str, port: int) -> None:
        self.port = port
        super().__init__(
            alias,
            "app",
            "connect",
            f"nothing listens on port {port}",
            cause=Cause.TELEMETRY_LOST,
            remedy="The app is not running, or has not opened its control server yet",
        )


class RemotePathMissingError(DeviceError):
    """The phone has no such file or folder."""

    def __init__(self, alias: str, phase: str, path: str) -> None:
        self.path = path
        super().__init__(alias, "afc", phase, f"no such path: {path!r}")


class PhoneLink(Protocol):
    """One attached phone, over usbmux and lockdown; developer services through the keeper."""

    @property
    def phone(self) -> Phone:
        """The phone this link reaches."""
        ...

    async def facts(self, *, deadline: Deadline) -> PhoneFacts:
        """Return what the phone says about itself."""
        ...

    async def mount_image(self, *, deadline: Deadline) -> None:
        """Mount the developer disk image, which a phone loses at every boot.

        Raises:
            DeviceError: With a cause of its own for the host's network, Apple's signature, an image
                that does not know the phone, a locked phone, and Developer Mode.
        """
        ...

    async def install(
        self,
        ipa: Path,
        bundle_id: str,
        *,
        deadline: Deadline,
        uninstall_first: bool = False,
        on_progress: Callable[[str, float], None] | None = None,
    ) -> None:
        """Install a package and see that the phone then has the app.

        Args:
            ipa: The package.
            bundle_id: The app it holds.
            deadline: For all of it, the upload included.
            uninstall_first: Also deletes the app's container.
            on_progress: Called with the stage as the phone names it and percent, 0 to 100.
        """
        ...

    async def push(
        self,
        bundle_id: str,
        source: bytes | Path,
        remote_path: str,
        *,
        deadline: Deadline,
        on_bytes: Callable[[int], None] | None = None,
        from_byte: int = 0,
    ) -> None:
        """Write a file into the app's container, or a folder with everything below it.

        Args:
            bundle_id: The app.
            source: The content, or the local file or folder to read it from.
            remote_path: Below the container, `Documents/models/x`; missing folders are made.
            deadline: For all of it.
            on_bytes: Called with the size of every piece of a local file that was sent.
            from_byte: How much of a file the phone has; the rest is appended to it.
        """
        ...

    async def digest(self, bundle_id: str, remote_path: str, *, deadline: Deadline) -> str:
        """Read a file of the container back and return its SHA-256, 64 hex digits.

        AFC cannot digest a file on the phone, so the content crosses the cable again.

        Raises:
            RemotePathMissingError: If there is no such file.
        """
        ...

    async def list(
        self, bundle_id: str, remote_dir: str, *, deadline: Deadline
    ) -> Sequence[RemoteFile]:
        """Return the entries of a folder in the app's container.

        Raises:
            RemotePathMissingError: If there is no such folder.
        """
        ...

    async def tree(
        self, bundle_id: str, remote_dir: str, *, deadline: Deadline
    ) -> Sequence[RemoteFile]:
        """Return all files below a folder in the app's container, in one connection.

        Raises:
            RemotePathMissingError: If there is no such folder.
        """
        ...

    async def pull(
        self, bundle_id: str, remote_path: str, local: Path, *, deadline: Deadline
    ) -> None:
        """Copy a file to `local`, or a folder's files below `local`, in chunks.

        Raises:
            RemotePathMissingError: If there is no such path.
        """
        ...

    async def remove(self, bundle_id: str, remote_path: str, *, deadline: Deadline) -> None:
        """Delete a file or a whole folder of the container; a missing one is no error."""
        ...

    async def restart(self, *, deadline: Deadline) -> None:
        """Ask the phone to restart; it goes down shortly after."""
        ...

    async def connect(self, port: int, *, deadline: Deadline) -> ByteStream:
        """Connect to the app's port on the phone's loopback.

        Raises:
            PortRefusedError: While nothing listens there.
        """
        ...

    async def flush_reports(self, *, deadline: Deadline) -> None:
        """Make the phone move pending crash reports to where they can be pulled."""
        ...

    async def list_reports(self, *, deadline: Deadline) -> set[str]:
        """Return the `PulledReport.key` of every report on the phone, copying none."""
        ...

    async def pull_reports(
        self, into: Path, *, known: set[str], deadline: Deadline
    ) -> Sequence[PulledReport]:
        """Copy the phone's crash reports, subfolders included; the device's paths are kept.

        Args:
            into: Nothing is ever written outside it.
            known: `PulledReport.key` of what was pulled before; such files are skipped.
            deadline: For all of it.
        """
        ...

    async def developer(self, *, deadline: Deadline) -> DeveloperSession:
        """Open the phone's one developer session, in a keeper process of its own."""
        ...

    async def adopt(self, *, deadline: Deadline) -> DeveloperSession | None:
        """Attach to the session that an earlier orchestrator left; None if there is none.

        Raises:
            DeviceError: If it is about to end, or another client has it.
        """
        ...


class DeveloperSession(Protocol):
    """Launch, watch and kill.

    The first failure sticks: a lost session answers every call with its first error.

    Attributes:
        by_tunneld: Whether a tunneld leads to the services, else a tunnel of the keeper's own.
        app_pid: Of an app that ran already when the session was adopted.
    """

    by_tunneld: bool
    app_pid: int | None

    async def launch(
        self,
        bundle_id: str,
        environment: Mapping[str, str],
        arguments: Sequence[str] = (),
        *,
        deadline: Deadline,
    ) -> int:
        """Start the app, in place of one that already runs, and return its pid."""
        ...

    async def kill(self, pid: int, *, deadline: Deadline) -> None:
        """Send SIGKILL; a pid that is gone already is no error."""
        ...

    async def is_running(self, pid: int, *, deadline: Deadline) -> bool:
        """Ask the phone whether the pid is alive."""
        ...

    async def physical_memory_bytes(self, *, deadline: Deadline) -> int:
        """Return sysmontap's `physMemSize`, in bytes."""
        ...

    async def boot_session(self, *, deadline: Deadline) -> str | None:
        """Return the UUID of the phone's boot, another after each; None where it does not say."""
        ...

    async def observe(self, pid: int, interval_ms: int, *, deadline: Deadline) -> None:
        """Start footprint events for one pid, in place of those for another."""
        ...

    def events(self) -> AsyncIterator[SessionEvent]:
        """Iterate the session's events; ends after `SessionLost`."""
        ...

    async def detach(self) -> None:
        """Leave app and keeper running, for `fleet resume` to adopt within the lease."""
        ...

    async def aclose(self) -> None:
        """Kill the app if it still runs, and end the session and its keeper. Never raises."""
        ...
