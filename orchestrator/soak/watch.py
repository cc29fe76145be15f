"""When a soak on one phone goes on, is asked to stop, or is over: pure, without clock or I/O.

The session tells what happened and does what is answered.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

STALL_LIMIT_S: Final = 30.0  # heartbeats come every 5 s
HANG_LIMIT_S: Final = 60.0  # without a prediction, while heartbeats come
RECONNECT_LIMIT_S: Final = 30.0
STOP_LIMIT_S: Final = 5.0  # from the request to `bye`
DRAIN_LIMIT_S: Final = 2.0  # from the end of the app to the end of its stream


class Action(Enum):
    """What the session does next."""

    CONTINUE = "continue"
    ASK_STOP = "ask_stop"
    KILL = "kill"
    COLLECT = "collect"


class Ending(Enum):
    """Why streaming is over."""

    COMPLETED = "completed"  # `bye`
    EXITED = "exited"  # the app is gone without `bye`
    STALLED = "stalled"  # no record for STALL_LIMIT_S while connected, or no prediction for longer
    OVERRUN = "overrun"  # the app went on long past its time
    UNREACHABLE = "unreachable"  # no connection for RECONNECT_LIMIT_S
    REFUSED = "refused"  # the app would not do what it was told
    LOST = "lost"  # the developer session broke


_PROGRESS: Final = frozenset({"load", "prefill", "tokens", "lifecycle"})


@dataclass(slots=True)
class StreamWatch:
    """State of one launch's stream. All times are seconds of one monotonic clock."""

    started_s: float
    run_limit_s: float  # from the start to OVERRUN
    hang_limit_s: float = HANG_LIMIT_S
    ending: Ending | None = None
    stop_requested: bool = False
    _last_record_s: float = field(init=False)
    _disconnected_s: float | None = field(init=False)
    _stop_s: float | None = None
    _drain_s: float | None = None  # since when only leftovers are awaited
    _exited: bool = False
    _progress_s: float | None = None  # of the latest prediction, None where none is to be expected

    def __post_init__(self) -> None:
        self._last_record_s = self.started_s
        self._disconnected_s = self.started_s  # nothing is connected yet

    def on_record(self, kind: str, now_s: float, event: str | None = None) -> Action:
        """Tell that a record arrived; `event` is a lifecycle's.

        From the load on predictions are to be expected, but not in the background.
        """
        self._last_record_s = now_s
        if kind in _PROGRESS:
            self._progress_s = None if event == "background" else now_s
        if kind == "bye":
            self.ending = Ending.COMPLETED
            self._drain_s = now_s
        return Action.CONTINUE

    def on_connected(self, now_s: float) -> Action:
        """Tell that the stream is connected."""
        self._disconnected_s = None
        self._last_record_s = now_s
        if self._progress_s is not None:
            self._progress_s = now_s  # what happened meanwhile is still on its way
        return Action.CONTINUE

    def on_disconnected(self, now_s: float) -> Action:
        """Tell that the stream ended, or could not be connected."""
        if self._disconnected_s is None:
            self._disconnected_s = now_s
        return Action.COLLECT if self._exited else Action.CONTINUE

    def on_exit(self, now_s: float) -> Action:
        """Tell that the app's process is gone; what it sent before may still be on its way."""
        self._exited = True
        if self.ending is None:
            self.ending = Ending.EXITED
        if self._disconnected_s is not None:
            return Action.COLLECT
        self._drain_s = now_s
        return Action.CONTINUE

    def on_refused(self, now_s: float) -> Action:
        """Tell that the app refused a command: asking again would change nothing."""
        if self.ending is None:
            self.ending = Ending.REFUSED
        return self._kill(now_s)

    def on_session_lost(self) -> Action:
        """Tell that the developer session broke; exits can no longer be seen."""
        if self.ending is None:
            self.ending = Ending.LOST
        return Action.COLLECT

    def on_stop_request(self, now_s: float) -> Action:
        """Tell that the person or the campaign wants the end."""
        if self.stop_requested:
            return Action.CONTINUE
        self.stop_requested = True
        self._stop_s = now_s
        return Action.ASK_STOP

    def on_tick(self, now_s: float) -> Action:
        """Tell the time, at least once a second."""
        if self._drain_s is not None and now_s - self._drain_s > DRAIN_LIMIT_S:
            return Action.COLLECT
        if self._stop_s is not None and now_s - self._stop_s > STOP_LIMIT_S:
            return self._kill(now_s)
        if self.ending is None:
            self.ending = self._limit_passed(now_s)
            if self.ending is not None:
                return self._kill(now_s)
        return Action.CONTINUE

    def _kill(self, now_s: float) -> Action:
        # Killed once; what is left in the stream gets the time of any other end.
        self._stop_s = None
        self._drain_s = now_s
        return Action.KILL

    def _limit_passed(self, now_s: float) -> Ending | None:
        if self._disconnected_s is not None:
            gone_s = now_s - self._disconnected_s
            return Ending.UNREACHABLE if gone_s > RECONNECT_LIMIT_S else None
        if now_s - self._last_record_s > STALL_LIMIT_S or self._hangs(now_s):
            return Ending.STALLED
        return Ending.OVERRUN if now_s - self.started_s > self.run_limit_s else None

    def _hangs(self, now_s: float) -> bool:
        return self._progress_s is not None and now_s - self._progress_s > self.hang_limit_s


def hang_limit_s(thresholds: Mapping[str, Mapping[str, float]]) -> float:
    """Return when the host gives up on an app that lives and does not predict.

    Twice what hang.none allows, so that the app's own records show the standstill first.
    """
    no_token_limit_s = thresholds.get("hang.none", {}).get("no_token_limit_s")
    return HANG_LIMIT_S if no_token_limit_s is None else 2.0 * no_token_limit_s
