"""Check that a phone's memory is given back when the app leaves the foreground."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from orchestrator.runlog.telemetry import AnyRecord, Hello, Lifecycle, Prefill, State, Tokens
from orchestrator.verdict.check import Check, CheckInfo, Limit, Setting
from orchestrator.verdict.tally import NS_PER_S

if TYPE_CHECKING:
    from orchestrator.runlog.documents import CheckDocument
    from orchestrator.verdict.check import Closing

_AUDIT: Final = "audit"


class BackgroundReleases(Check):
    """Leaving the foreground releases the state, and nothing is predicted until the return."""

    info = CheckInfo(
        id="background.releases",
        title="The state goes when the app leaves the foreground",
        meaning=(
            "After the app went to the background a live state is released within the limit, and at"
            " most the prediction in flight and one more that was starting run until it is back:"
            " a large app in the background is the first that iOS kills."
        ),
        causes=(
            "nobody observes the change of the scene's phase",
            "the release waits for the end of the turn",
            "a second reference keeps the state alive",
        ),
        what_to_do=("release the state in `scenePhase` `.background`, not at the end of the turn",),
        limits=(
            Limit("release_limit_s", 1.0, "s", "from the event to the state's release"),
            Limit("max_predictions", 1.0, "predictions", "that may start after the event"),
        ),
    )

    def __init__(self, setting: Setting) -> None:
        super().__init__(setting)
        self._limit_s = self.limit("release_limit_s")
        self._most_starts = self.limit("max_predictions")
        self._live = False
        self._left: Lifecycle | None = None  # since when the app is away
        self._owing = False  # a live state was there and is not released yet
        self._starts = 0
        self._last_start_ns = -1
        self._slowest_s: float | None = None

    def observe(self, record: AnyRecord) -> None:
        """Take the next record."""
        self._judge_wait(record)
        match record:
            case Lifecycle(event="background"):
                self._left, self._owing, self._starts = record, self._live, 0
            case Lifecycle():
                self._left, self._owing = None, False
            case State() if record.purpose != _AUDIT:
                self._on_state(record)
            case Prefill() if record.purpose != _AUDIT:
                self._on_start(record, record.start_ns)
            case Tokens():
                for start_ns in record.start_ns:
                    self._on_start(record, start_ns)
            case Hello():
                self._live, self._left, self._owing, self._last_start_ns = False, None, False, -1
            case _:
                pass

    def _on_state(self, record: State) -> None:
        self._live = record.action == "made"
        if record.action == "released" and self._owing and self._left is not None:
            took_s = (record.t_ns - self._left.t_ns) / NS_PER_S
            self._slowest_s = max(took_s, self._slowest_s or 0.0)
            self._owing = False

    def _judge_wait(self, record: AnyRecord) -> None:
        if self._left is None or not self._owing:
            return
        waited_s = (record.t_ns - self._left.t_ns) / NS_PER_S
        released = isinstance(record, State) and record.action == "released"
        if waited_s > self._limit_s:
            verb = "released" if released else "still live"
            self.faults.add(self._left, f"{waited_s:.2f} s after it the state was {verb}", waited_s)
            self._owing = False

    def _on_start(self, record: Prefill | Tokens, start_ns: int) -> None:
        if start_ns <= self._last_start_ns:
            return  # the first sample of a turn repeats the times of the prompt's last chunk
        self._last_start_ns = start_ns
        if self._left is None or start_ns <= self._left.t_ns:
            return
        self._starts += 1
        if self._starts == self._most_starts + 1:
            self.faults.add(record, "predictions go on while the app is in the background")

    def finish(self, closing: Closing) -> CheckDocument:
        """Return the result; the value is the longest time to a release."""
        if self.faults.count:
            return self.failed(self.faults.value, "s", self._limit_s)
        if self._slowest_s is None:
            return self.unmeasured("the app never left the foreground with a live state")
        return self.passed(round(self._slowest_s, 4), "s", self._limit_s)
