"""Check that the evidence is whole: every record there, unchanged, up to the end."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Final

from orchestrator.domain.outcome import Outcome
from orchestrator.runlog.telemetry import AnyRecord, Bye, Heartbeat, Hello, Lifecycle, Sample
from orchestrator.verdict.check import Check, CheckInfo, Limit, Setting
from orchestrator.verdict.tally import NS_PER_S

if TYPE_CHECKING:
    from orchestrator.runlog.documents import CheckDocument
    from orchestrator.runlog.telemetry import Record
    from orchestrator.verdict.check import Closing

_CHAIN_DIGITS: Final = 16
_LONGEST_UNCHAINED: Final = 64  # records
_MISSED_PERIODS: Final = 3


class TelemetryComplete(Check):
    """No gap, no edit, no silence, no early end."""

    info = CheckInfo(
        id="telemetry.complete",
        title="The telemetry is whole",
        meaning=(
            "Each launch's records begin with its hello, have no gap in `seq`, match the digests of"
            " their chain and the run's manifest, are the same in stream and journal, have no long"
            " silence, and reach to the app's end."
        ),
        causes=(
            "records are written after the act they announce and were lost in a kill",
            "the journal could not be pulled",
            "the file was changed after the run",
        ),
        what_to_do=(
            "see which file and `seq` the sentence names",
            "compare stream.ndjson and journal.ndjson of that launch",
            "`sha256sum -c MANIFEST.sha256` in the run directory shows files that were changed",
        ),
        limits=(
            Limit("silence_limit_s", 15.0, "s", "without any record, or without a heartbeat"),
            Limit("sample_gap_limit_s", 10.0, "s", "without a sample, or three periods"),
            Limit("end_silence_limit_s", 5.0, "s", "from the last record to the app's end"),
        ),
    )

    def __init__(self, setting: Setting) -> None:
        super().__init__(setting)
        self._records = 0
        self._launch: str | None = None
        self._seq = 0
        self._chain = hashlib.sha256()
        self._unchained = 0
        self._farewell = False
        self._last_t_ns = 0
        self._last_heartbeat_ns: int | None = None
        self._last_sample_ns: int | None = None
        self._suspended_s = 0.0
        evidence = setting.evidence
        known = {window.launch for window in evidence.launches} if evidence else set()
        self._known_launches = known - {None}
        period_s = setting.scenario.sample_period_ms / 1000
        three_periods_s = _MISSED_PERIODS * period_s
        self._silence_limit_s = self.limit("silence_limit_s")
        self._sample_limit_s = self.limit("sample_gap_limit_s", at_least=three_periods_s)
        self._end_limit_s = self.limit("end_silence_limit_s", at_least=three_periods_s)

    def observe_line(self, line: bytes, record: AnyRecord | None) -> None:
        """Take the next raw line."""
        if record is None:
            self.faults.note("a line is not a record", self._launch, self._seq)
        else:
            self._records += 1
            if record.launch != self._launch:
                self._begin_launch(record)
            self._judge_order(record)
            self._judge_silence(record)
        if not line.endswith(b"\n"):
            self.faults.note("the last line is torn", self._launch, self._seq)
        self._follow_chain(line, record)

    def _begin_launch(self, record: AnyRecord) -> None:
        if not isinstance(record, Hello):
            self.faults.add(record, "a launch does not begin with its hello")
        if self._known_launches and record.launch not in self._known_launches:
            self.faults.add(record, "a launch is in the telemetry that the host did not start")
        self._launch, self._seq, self._farewell = record.launch, 0, False
        self._chain, self._unchained = hashlib.sha256(), 0
        self._last_t_ns, self._suspended_s = record.t_ns, 0.0
        self._last_heartbeat_ns = self._last_sample_ns = record.t_ns

    def _judge_order(self, record: AnyRecord) -> None:
        if record.seq != self._seq + 1:
            self.faults.add(record, f"record {record.seq} follows record {self._seq}", record.seq)
        if isinstance(record, Hello) and self._seq:
            self.faults.add(record, "a launch has a second hello")
        if self._farewell:
            self.faults.add(record, "a launch goes on after its farewell")
        self._seq = record.seq
        self._farewell = isinstance(record, Bye)

    def _judge_silence(self, record: AnyRecord) -> None:
        """Times are phone time: a suspended app is silent by right, and says so afterwards."""
        self._judge_gap(record, self._last_t_ns, self._silence_limit_s, "records")
        if record.t_ns < self._last_t_ns - NS_PER_S:
            self.faults.add(record, "the phone's clock goes backwards")
        self._last_t_ns = record.t_ns
        match record:
            case Heartbeat():
                asleep_s = max(0.0, record.suspended_s - self._suspended_s)
                self._suspended_s = record.suspended_s
                limit_s = self._silence_limit_s + asleep_s
                self._judge_gap(record, self._last_heartbeat_ns, limit_s, "heartbeats")
                self._last_heartbeat_ns = record.t_ns
            case Sample():
                self._judge_gap(record, self._last_sample_ns, self._sample_limit_s, "samples")
                self._last_sample_ns = record.t_ns
            case Bye():
                self._judge_gap(
                    record, self._last_heartbeat_ns, self._silence_limit_s, "heartbeats"
                )
                self._judge_gap(record, self._last_sample_ns, self._sample_limit_s, "samples")
            case Lifecycle():
                self._last_heartbeat_ns = self._last_sample_ns = None
            case _:
                pass

    def _judge_gap(self, record: Record, since_ns: int | None, limit_s: float, what: str) -> None:
        if since_ns is None:
            return
        gap_s = (record.t_ns - since_ns) / NS_PER_S
        if gap_s > limit_s:
            self.faults.add(record, f"no {what} for {gap_s:.1f} s", round(gap_s, 3))

    def _follow_chain(self, line: bytes, record: AnyRecord | None) -> None:
        if record is not None and record.chain is not None:
            if record.chain != self._chain.hexdigest()[:_CHAIN_DIGITS]:
                self.faults.add(record, "the lines before it are not those the app wrote")
            self._chain, self._unchained = hashlib.sha256(), 0
            return
        self._chain.update(line)
        self._unchained += 1
        if self._unchained == _LONGEST_UNCHAINED:
            self.faults.note(f"{_LONGEST_UNCHAINED} lines without a chain", self._launch, self._seq)
        if isinstance(record, Bye):
            self.faults.add(record, "the farewell carries no chain")

    def finish(self, closing: Closing) -> CheckDocument:
        """Return the result; the value is the number of records, or of faults."""
        if not self._records and not self.faults.count:
            return self.unmeasured("there is no telemetry")
        self._judge_evidence()
        self._judge_end(closing)
        if self.faults.count:
            return self.failed(self.faults.count, "faults", 0)
        return self.passed(self._records, "records")

    def _judge_evidence(self) -> None:
        evidence = self.setting.evidence
        if evidence is not None and evidence.differing_records:
            text = f"{evidence.differing_records} records differ between stream and journal"
            self.faults.note(text)
        differing = self.setting.manifest_differences
        if differing:
            self.faults.note(f"{len(differing)} files differ from the manifest: {differing[0]}")

    def _judge_end(self, closing: Closing) -> None:
        """Telemetry may end without a farewell only where the app did."""
        if self._farewell or closing.diagnosis.outcome(closing.ending) in _EXCUSED:
            return
        ending, evidence = closing.ending, self.setting.evidence
        place = (self._launch, self._seq)
        if ending.alive_at_end:
            self.faults.note("the records stop while the app was alive", *place)
        last_s = closing.tally.last_record_at_s()
        if ending.exit is None or last_s is None or evidence is None:
            return
        silent_s = ending.exit.at_s - (last_s - (evidence.clock_offset_s or 0.0))
        if silent_s > self._end_limit_s:
            self.faults.note(f"the records stop {silent_s:.1f} s before the app's end", *place)


_EXCUSED: Final = frozenset({Outcome.ERROR, Outcome.ABORTED})  # the lab cut the records off
