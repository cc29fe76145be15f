"""Finds an app again: after the death of an orchestrator, of a keeper, or a pulled cable.

The rungs of the ladder: the stream's connection is made anew by `streaming`; a keeper and its
tunnel are made anew here; the app is launched anew by `attempts`, as another attempt.
"""

from __future__ import annotations

import time
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import anyio

from orchestrator.domain.deadline import Deadline
from orchestrator.domain.errors import DeviceError
from orchestrator.runlog.merge import ends_with_bye
from orchestrator.soak.collect import pull_journal
from orchestrator.soak.following import CALL_LIMIT_S, OBSERVE_MS
from orchestrator.soak.session_state import Stage
from orchestrator.soak.watch import Ending

if TYPE_CHECKING:
    from orchestrator.device.link import DeveloperSession
    from orchestrator.soak.following import AppFollower

DEVELOPER_LIMIT_S: Final = 60.0
KEEPER_END_LIMIT_S: Final = 20.0  # of a keeper whose orchestrator died before the launch
MOST_RETURNS: Final = 20  # of one session: a cable this loose is no lab
RETRY_S: Final = 0.5


@dataclass(frozen=True, slots=True)
class Rejoiner:
    """Goes on with an app that somebody else launched, or that was out of reach."""

    follower: AppFollower

    async def rejoin(self) -> bool:
        """Follow the app that was left running; False where none was, nor had been.

        Raises:
            DeviceError: If it ended while nobody watched.
        """
        follower, state = self.follower, self.follower.journal.state
        session = await follower.link.adopt(deadline=Deadline.after(DEVELOPER_LIMIT_S))
        if session is None:
            return await self._find_without_keeper()
        pid = state.pid or session.app_pid
        try:
            if pid is None:
                return False  # the launch never came to be
            follower.remark("adopted", pid=pid)
            await self._observe_and_follow(session, pid)
        finally:
            await _close(session)
        return True

    async def vacate(self) -> None:
        """Wait for the end of a keeper that has no app of ours, and of its session."""
        deadline = Deadline.after(KEEPER_END_LIMIT_S)
        while not deadline.passed:
            try:
                session = await self.follower.link.adopt(deadline=deadline)
            except DeviceError:  # it is ending by itself
                await anyio.sleep(RETRY_S)
                continue
            if session is None:
                return
            await session.aclose()

    async def follow_through_gaps(self, pid: int) -> None:
        """Go on as long as a lost phone returns within the grace with the same app."""
        follower = self.follower
        for _ in range(MOST_RETURNS):
            lost = follower.findings.stream.ending is Ending.LOST
            if not lost or follower.stop.is_set():
                return
            began_s = follower.findings.lost_at_s = time.time()
            follower.remark("gap_began", reason=follower.findings.stream.error)
            session = await self._returned()
            if session is None:
                return
            try:
                follower.remark("gap_ended", seconds=round(time.time() - began_s, 3))
                self._forget_loss()
                await self._observe_and_follow(session, pid)
            finally:
                await _close(session)

    async def _returned(self) -> DeveloperSession | None:
        """Return a new session to the phone once our app answers, None if it does not in time."""
        deadline = Deadline.after(self.follower.order.return_grace_s)
        while not deadline.passed and not self.follower.stop.is_set():
            if await self.follower.is_ours():
                with suppress(DeviceError):
                    return await self.follower.link.developer(
                        deadline=Deadline.after(DEVELOPER_LIMIT_S)
                    )
            with anyio.move_on_after(RETRY_S):
                await self.follower.stop.wait()
        return None

    def _forget_loss(self) -> None:
        self.follower.findings.lost_at_s = None
        journal = self.follower.journal
        journal.state.stream.ending = journal.state.stream.error = None
        journal.save(Stage.RUNNING)

    async def _find_without_keeper(self) -> bool:
        """Look for an app whose keeper is gone: it may live on, and its journal in any case."""
        follower = self.follower
        pid = follower.journal.state.pid
        follower.remark("keeper_gone", pid=pid)
        if pid is None:
            return False
        if await follower.is_ours():
            session = await follower.link.developer(deadline=Deadline.after(DEVELOPER_LIMIT_S))
            try:
                await self._observe_and_follow(session, pid)
            finally:
                await _close(session)
            return True
        follower.note_window(pid, time.time())
        if await self._said_goodbye():
            return True
        raise DeviceError(
            follower.link.phone.alias,
            "host",
            "resume",
            f"process {pid} ended while nobody watched: its keeper is gone",
            remedy="Resume within the keeper's lease of 30 minutes",
        )

    async def _observe_and_follow(self, session: DeveloperSession, pid: int) -> None:
        with suppress(DeviceError):  # of a process that is gone there is nothing to observe
            await session.observe(pid, OBSERVE_MS, deadline=Deadline.after(CALL_LIMIT_S))
        await self.follower.follow(session, pid)

    async def _said_goodbye(self) -> bool:
        """Ask the journal whether the app ended as it should."""
        follower = self.follower
        stream = follower.findings.stream
        target = follower.paths.journal(follower.journal.state.launch)
        bundle_id = follower.order.plan.app.bundle_id
        if stream.launch is None or await pull_journal(
            follower.link, bundle_id, stream.launch, target
        ):
            return False
        if not ends_with_bye(target):
            return False
        stream.ending = Ending.COMPLETED
        if follower.is_relaunch_due:
            follower.journal.next_launch()
        return True


async def _close(session: DeveloperSession) -> None:
    with anyio.CancelScope(shield=True):
        await session.aclose()
