"""Follows the app of one session, over as many developer sessions as that takes."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import anyio

from orchestrator.domain.deadline import Deadline
from orchestrator.domain.errors import DeviceError
from orchestrator.harness.control import AppClient
from orchestrator.runlog.documents import LaunchWindow
from orchestrator.runlog.files import LineWriter
from orchestrator.runlog.merge import newest_seq
from orchestrator.soak.session_state import Stage
from orchestrator.soak.streaming import CONNECT_LIMIT_S, REPLY_LIMIT_S, AppStream, StartCommand
from orchestrator.soak.watch import Ending, hang_limit_s

if TYPE_CHECKING:
    from orchestrator.device.link import DeveloperSession, PhoneLink
    from orchestrator.runlog.layout import AttemptPaths
    from orchestrator.soak.findings import SessionFindings
    from orchestrator.soak.run_directory import Remark
    from orchestrator.soak.session import SessionOrder
    from orchestrator.soak.session_state import SessionJournal

APP_PORT: Final = 28450
OBSERVE_MS: Final = 500
CALL_LIMIT_S: Final = 20.0
_OVERRUN_FACTOR: Final = 4.0
_OVERRUN_GRACE_S: Final = 120.0


@dataclass(frozen=True, slots=True)
class AppFollower:
    """Streams one launch to disk and notes how it ended."""

    order: SessionOrder
    link: PhoneLink
    paths: AttemptPaths
    journal: SessionJournal
    findings: SessionFindings
    stop: anyio.Event
    remark: Remark

    async def follow(self, session: DeveloperSession, pid: int) -> None:
        """Follow until the app is over, or its phone out of reach.

        Begins after the last record that is on disk, so it may be called again.
        """
        state = self.journal.state
        self.findings.stream = state.stream
        with (
            LineWriter(self.paths.stream(1)) as stream,
            LineWriter(self.paths.console) as console,
        ):
            result = await AppStream(
                link=self.link,
                session=session,
                pid=pid,
                port=APP_PORT,
                token=state.token,
                start=self._start_command(),
                stream=stream,
                console=console,
                stop=self.stop,
                run_limit_s=run_limit_s(self.order.duration_s),
                hang_limit_s=hang_limit_s(self.order.plan.thresholds),
                result=state.stream,
                last_seq=newest_seq(stream.path),
                remember=self.journal.save,
            ).follow()
        for end in result.exits:
            self.remark("app_exited", pid=end.pid, exit_code=end.exit_code, signal=end.signal)
        if not result.exits and result.ending is not Ending.LOST:
            alive = await session.is_running(pid, deadline=Deadline.after(CALL_LIMIT_S))
            self.findings.alive_at_end = alive
            self.remark("app_alive", pid=pid, alive=alive)
        self.note_window(pid, result.exits[0].at_s if result.exits else time.time())
        self._keep_findings()

    def note_window(self, pid: int, ended_s: float) -> None:
        """Note when the launch lived, in place of what was noted before a gap."""
        state = self.journal.state
        window = LaunchWindow(
            number=1,
            pid=pid,
            launch=state.stream.launch,
            started_s=state.started_s,
            ended_s=ended_s,
        )
        self.findings.windows = [window]

    async def is_ours(self) -> bool:
        """Ask what listens on the app's port whether it is the launch that we know.

        A pid proves nothing after a reboot; the launch and its token do.
        """
        state = self.journal.state
        try:
            deadline = Deadline.after(CONNECT_LIMIT_S)
            connection = await self.link.connect(APP_PORT, deadline=deadline)
            client = AppClient(connection, alias=self.link.phone.alias)
            try:
                hello = await client.hello(state.token, Deadline.after(REPLY_LIMIT_S))
            finally:
                with anyio.CancelScope(shield=True):
                    await client.aclose()
        except DeviceError:
            return False
        return hello.launch == state.stream.launch

    def _keep_findings(self) -> None:
        """Remember the end of the app before the session, which knows it, is closed."""
        state = self.journal.state
        state.windows, state.alive_at_end = self.findings.windows, self.findings.alive_at_end
        self.journal.save(Stage.COLLECTING)

    def _start_command(self) -> StartCommand:
        return StartCommand(
            run_id=self.order.plan.run_id,
            nonce=self.order.phone.nonce,
            scenario=self.order.plan.scenario,
            packages=[package.listed() for package in self.order.packages],
        )


def run_limit_s(duration_s: float) -> float:
    """Return the seconds after which an app has overrun its inference time."""
    return duration_s * _OVERRUN_FACTOR + _OVERRUN_GRACE_S
