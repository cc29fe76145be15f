"""Follows the app of one session, over as many developer sessions as that takes."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import anyio

from orchestrator.domain.deadline import Deadline
from orchestrator.domain.errors import DeviceError
from orchestrator.domain.launch_part import relaunches_of, scenario_for
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
            LineWriter(self.paths.stream(state.launch)) as stream,
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
                run_limit_s=run_limit_s(self.order.duration_s / (self._relaunches + 1)),
                hang_limit_s=hang_limit_s(self.order.plan.thresholds),
                result=state.stream,
                last_seq=newest_seq(stream.path),
                remember=self.journal.save,
            ).follow()
        ends = [end for end in result.exits if end.pid == pid]
        for end in ends:
            self.remark("app_exited", pid=end.pid, exit_code=end.exit_code, signal=end.signal)
        if not ends and result.ending is not Ending.LOST:
            alive = await session.is_running(pid, deadline=Deadline.after(CALL_LIMIT_S))
            self.findings.alive_at_end = alive
            self.remark("app_alive", pid=pid, alive=alive)
        self.note_window(pid, ends[0].at_s if ends else time.time())
        self._keep_findings()

    def note_window(self, pid: int, ended_s: float) -> None:
        """Note when the launch lived, in place of what was noted before a gap."""
        state = self.journal.state
        window = LaunchWindow(
            number=state.launch,
            pid=pid,
            launch=state.stream.launch,
            started_s=state.started_s,
            ended_s=ended_s,
        )
        earlier = [known for known in self.findings.windows if known.number < window.number]
        self.findings.windows = [*earlier, window]

    @property
    def is_relaunch_due(self) -> bool:
        """Whether the launch did its part, left cleanly, and another one is to follow it."""
        result, launch = self.journal.state.stream, self.journal.state.launch
        killed = result.killed_by_host or any(end.signal for end in result.exits)
        did_its_part = result.ending is Ending.COMPLETED and not killed
        return did_its_part and launch <= self._relaunches and not self.stop.is_set()

    @property
    def _relaunches(self) -> int:
        return relaunches_of(self.order.plan.scenario)

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
        if self.is_relaunch_due:
            self.findings.alive_at_end = state.alive_at_end = None
            self.journal.next_launch()
        else:
            self.journal.save(Stage.COLLECTING)

    def _start_command(self) -> StartCommand:
        return StartCommand(
            run_id=self.order.plan.run_id,
            nonce=self.order.phone.nonce,
            scenario=scenario_for(self.order.plan.scenario, self.journal.state.launch),
            packages=[package.listed() for package in self.order.packages],
        )


def run_limit_s(duration_s: float) -> float:
    """Return the seconds after which an app has overrun its inference time."""
    return duration_s * _OVERRUN_FACTOR + _OVERRUN_GRACE_S
