"""Checks that a person sees, exactly once, that the context was cut (R10)."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, ClassVar, Final

from orchestrator.runlog.telemetry import AnyRecord, Evict, Hello, Notice, Trim
from orchestrator.verdict.check import Check, CheckInfo, Setting

if TYPE_CHECKING:
    from orchestrator.runlog.documents import CheckDocument
    from orchestrator.verdict.check import Closing

_MOST_WAITING: Final = 64  # cuts without a notice; more are failures at once
_REMEMBERED: Final = 256


class _NoticeCheck(Check):
    """One visible notice per cut; the subclass says which cuts."""

    cuts: ClassVar[type[Trim | Evict]]
    noun: ClassVar[str]
    takes_strays: ClassVar[bool]  # whether it blames notices that are for no cut at all

    def __init__(self, setting: Setting) -> None:
        super().__init__(setting)
        self._shown = 0
        self._waiting: dict[int, Trim | Evict] = {}
        self._answered: deque[int] = deque(maxlen=_REMEMBERED)
        self._others: deque[int] = deque(maxlen=_REMEMBERED)

    def observe(self, record: AnyRecord) -> None:
        """Take the next record."""
        match record:
            case Hello():
                self._waiting.clear()
                self._answered.clear()
                self._others.clear()
            case Trim() | Evict():
                self._on_cut(record)
            case Notice():
                self._on_notice(record)
            case _:
                pass

    def _on_cut(self, record: Trim | Evict) -> None:
        if not isinstance(record, self.cuts):
            self._others.append(record.seq)
            return
        self._waiting[record.seq] = record
        if len(self._waiting) > _MOST_WAITING:
            oldest = next(iter(self._waiting))
            self._blame(self._waiting.pop(oldest))

    def _blame(self, cut: Trim | Evict) -> None:
        self.faults.add(cut, f"the {self.noun} of record {cut.seq} was shown by no notice")

    def _on_notice(self, record: Notice) -> None:
        if record.for_seq in self._waiting:
            del self._waiting[record.for_seq]
            self._answered.append(record.for_seq)
            self._shown += 1
            if not record.shown or not record.text.strip():
                self.faults.add(record, f"the notice of a {self.noun} was not visible")
        elif record.for_seq in self._answered:
            self.faults.add(record, f"a {self.noun} was shown by a second notice")
        elif self.takes_strays and record.for_seq not in self._others:
            self.faults.add(record, f"a notice is for record {record.for_seq}, which cut nothing")

    def finish(self, closing: Closing) -> CheckDocument:
        """Return the result; the value is the number of notices.

        A cut of a launch that died before its farewell may have had no time to be shown.
        """
        waiting = list(self._waiting.values())
        for cut in waiting if closing.tally.bye else waiting[:-1]:
            self._blame(cut)
        if self.faults.count:
            return self.failed(self.faults.count, "notices missing or wrong", 0)
        if not self._shown:
            return self.unmeasured(f"no {self.noun} happened that could be shown")
        return self.passed(self._shown, "notices")


class TrimNotice(_NoticeCheck):
    """One visible notice per trim."""

    info = CheckInfo(
        id="trim.notice",
        title="Every trim is shown to the person once",
        meaning="Each trim has exactly one visible notice that names its record.",
        causes=("the notice is bound to another event", "the view was not updated"),
        what_to_do=("send the notice where the trim is recorded, with its `seq`",),
    )
    cuts = Trim
    noun = "trim"
    takes_strays = True


class EvictNotice(_NoticeCheck):
    """One visible notice per eviction."""

    info = CheckInfo(
        id="evict.notice",
        title="Every eviction is shown to the person once",
        meaning="Each eviction has exactly one visible notice that names its record.",
        causes=("only trims are announced", "the warning path bypasses the view"),
        what_to_do=("send the notice on the warning's path too, with the `seq` of the eviction",),
    )
    cuts = Evict
    noun = "eviction"
    takes_strays = False
