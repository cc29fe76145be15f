"""Check of the app's own memory: the headroom below the limit is kept."""

from __future__ import annotations

from typing import TYPE_CHECKING

from orchestrator.domain.calibration import differs
from orchestrator.runlog.telemetry import AnyRecord, Evict, Hello, Sample, State, Tokens, Trim
from orchestrator.verdict.check import Check, CheckInfo, Setting

if TYPE_CHECKING:
    from orchestrator.runlog.documents import CheckDocument
    from orchestrator.runlog.telemetry import Record
    from orchestrator.verdict.check import Closing


class MemoryPeak(Check):
    """Footprint without ballast stays below the limit less the headroom."""

    info = CheckInfo(
        id="memory.peak",
        title="The app keeps its memory headroom",
        meaning=(
            "The footprint, ballast of the scenario taken off, never passes the phone's limit less"
            " the policy's headroom; the limit itself is what `fleet calibrate` measured, where it"
            " did."
        ),
        causes=(
            "the weights of a larger class's package",
            "two states at once while the context is remade",
            "the Neural Engine refused the model and its weights count as the app's own",
            "the memory entitlement did not arrive, or an update of iOS moved the limit",
        ),
        what_to_do=(
            "see in the report when the peak was: at a load, a trim, an eviction",
            "check `plan.placement`: weights outside the Neural Engine count as the app's",
            "`fleet model budget` says what a package should take",
        ),
    )

    def __init__(self, setting: Setting) -> None:
        super().__init__(setting)
        self._peak: int | None = None
        self._limit: float | None = None
        self._tokens = 0
        self._sampled_tokens = 0  # at the latest sample
        self._ballast = 0  # at the latest sample

    def observe(self, record: AnyRecord) -> None:
        """Take the next record."""
        match record:
            case Hello():
                self._limit = None
                if record.available > 0:
                    whole = record.footprint + record.available
                    self._limit = whole * self.setting.scenario.limit_ratio
                    self._compare_with_calibration(record, whole)
                self._tokens = self._sampled_tokens = self._ballast = 0
            case Tokens():
                self._tokens += len(record.ids)
            case Sample():
                self._sampled_tokens, self._ballast = self._tokens, record.ballast
                self._judge(record, record.footprint - record.ballast)
            case Trim() | Evict() | State():
                if not self._ballast_may_differ():
                    self._judge(record, record.footprint - self._ballast)
            case _:
                pass

    def _compare_with_calibration(self, record: Hello, whole: int) -> None:
        """A limit that moved since it was measured: an entitlement that did not arrive, or iOS."""
        expected = self.setting.phone.expected.limit_bytes
        if expected is not None and differs(whole, expected):
            mib = 1024**2
            self.faults.add(
                record,
                f"the phone's limit is {whole / mib:.0f} MiB, calibration measured"
                f" {expected / mib:.0f} MiB",
                whole,
            )

    def _ballast_may_differ(self) -> bool:
        """Between samples the ballast is known only where the scenario does not move it."""
        return any(
            ramp.may_change_between(self._sampled_tokens, self._tokens)
            for ramp in self.setting.scenario.ballast
        )

    def _judge(self, record: Record, footprint: int) -> None:
        if self._limit is None:
            return
        self._peak = max(footprint, self._peak or 0)
        if footprint > self._limit:
            self._blame(footprint, record)

    def _blame(self, footprint: int, record: Record | None) -> None:
        mib = 1024**2
        limit = self._limit or 0.0
        text = f"the app used {footprint / mib:.0f} MiB of an allowed {limit / mib:.0f} MiB"
        if record is None:
            self.faults.note(f"{text}, as the host saw", value=footprint)
        else:
            self.faults.add(record, text, footprint)

    def _judge_host_peak(self) -> None:
        """The host's reading includes ballast: it judges only soaks that have none."""
        evidence = self.setting.evidence
        if evidence is None or evidence.peak_observed_bytes is None or self._limit is None:
            return
        if self.setting.scenario.ballast or self._peak is None:
            return
        self._peak = max(self._peak, evidence.peak_observed_bytes)
        if evidence.peak_observed_bytes > self._limit:
            self._blame(evidence.peak_observed_bytes, None)

    def finish(self, closing: Closing) -> CheckDocument:
        """Return the result; the value is the peak in bytes."""
        self._judge_host_peak()
        limit = None if self._limit is None else int(self._limit)
        if self.faults.count:
            return self.failed(self._peak, "bytes", limit)
        if closing.tally.hello is not None and limit is None:
            return self.unmeasured("the phone did not say its memory limit")
        if self._peak is None:
            return self.unmeasured("no footprint was recorded")
        return self.passed(self._peak, "bytes", limit)
