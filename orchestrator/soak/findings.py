"""What a session found besides telemetry, and the documents made of it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from orchestrator.domain.iphone import by_product_type
from orchestrator.domain.memory_class import memory_class_of
from orchestrator.domain.outcome import Cause
from orchestrator.runlog.documents import DeviceDocument, EvidenceDocument
from orchestrator.soak.streaming import StreamResult
from orchestrator.soak.watch import Ending

if TYPE_CHECKING:
    from orchestrator.device.facts import ClockReading, PhoneFacts
    from orchestrator.domain.errors import DeviceError
    from orchestrator.runlog.documents import LaunchWindow, PlannedPhone, PulledReportFile
    from orchestrator.runlog.merge import MergeCounts

_CAUSE_OF_ENDING: Final = {
    Ending.LOST: Cause.DEVICE_LOST,
    Ending.UNREACHABLE: Cause.TELEMETRY_LOST,
    Ending.REFUSED: Cause.NOT_READY,
    Ending.STALLED: Cause.HANG,
    Ending.OVERRUN: Cause.HANG,
}


@dataclass(slots=True)
class SessionFindings:
    """Filled as a session goes; None where something was not learnt."""

    facts: PhoneFacts | None = None
    clock_at_end: ClockReading | None = None
    physical_memory_bytes: int | None = None
    boot_session: str | None = None  # of the phone, at the launch
    rebooted: bool | None = None
    error: DeviceError | None = None
    stream: StreamResult = field(default_factory=StreamResult)
    windows: list[LaunchWindow] = field(default_factory=list)
    alive_at_end: bool | None = None
    journal_pulled: bool = False
    reports: list[PulledReportFile] = field(default_factory=list)
    ignored_reports: int = 0
    lost_at_s: float | None = None  # wall clock, where the phone went away

    @property
    def died(self) -> bool:
        """Whether the app's process ended by something else than its own clean exit or us."""
        if self.stream.killed_by_host:
            return False
        said_goodbye = self.stream.ending is Ending.COMPLETED
        vanished = self.alive_at_end is False and not said_goodbye  # its exit event was missed
        return vanished or any(end.exit_code != 0 for end in self.stream.exits)

    def cause_hint(self) -> Cause | None:
        """Return the cause that the session itself knows, None where telemetry must tell."""
        if self.error is not None:
            return self.error.cause
        ending = self.stream.ending
        return _CAUSE_OF_ENDING.get(ending) if ending is not None else None

    def device_document(self, phone: PlannedPhone) -> DeviceDocument:
        """Return `device.json`: the class by sysmontap's memory, else by ProductType."""
        facts = self.facts
        memory = self.physical_memory_bytes
        model = by_product_type(facts.product_type if facts else phone.product_type)
        catalog_class = model.memory_class if model else None
        memory_class = memory_class_of(memory) if memory is not None else catalog_class
        return DeviceDocument(
            udid=phone.udid,
            alias=phone.alias,
            name=facts.name if facts else phone.name,
            model=phone.model,
            product_type=facts.product_type if facts else phone.product_type,
            os=facts.os if facts else phone.os,
            build=facts.build if facts else phone.build,
            virtual=phone.virtual,
            source=phone.source,
            physical_memory_bytes=memory,
            memory_class=memory_class.value if memory_class else None,
            clock_offset_s=self._clock_offset_s,
            battery_percent=facts.battery_percent if facts else None,
            free_disk_bytes=facts.free_disk_bytes if facts else None,
        )

    def evidence_document(self, attempt: int, counts: MergeCounts) -> EvidenceDocument:
        """Return `evidence.json`."""
        hint = self.cause_hint()
        error = str(self.error) if self.error else self.stream.error
        return EvidenceDocument(
            attempt=attempt,
            launches=self.windows,
            exits=self.stream.exits,
            reports=self.reports,
            alive_at_end=self.alive_at_end,
            stopped_by_host=self.stream.stopped_by_host,
            killed_by_host=self.stream.killed_by_host,
            rebooted=self.rebooted,
            clock_offset_s=self._clock_offset_s,
            clock_offset_end_s=self.clock_at_end.offset_s if self.clock_at_end else None,
            ignored_reports=self.ignored_reports,
            journal_pulled=self.journal_pulled,
            stream_records=counts.stream_records,
            journal_records=counts.journal_records,
            differing_records=counts.differing_records,
            peak_observed_bytes=self.stream.peak_observed_bytes,
            warnings_noticed=self.stream.warnings_noticed,
            cause_hint=hint.value if hint else None,
            error=error,
        )

    @property
    def clock_offsets_s(self) -> tuple[float, float]:
        """The phone's clock minus ours at the session's start and end; 0 where it did not say."""
        start_s = self._clock_offset_s or 0.0
        return start_s, self.clock_at_end.offset_s if self.clock_at_end else start_s

    @property
    def _clock_offset_s(self) -> float | None:
        return self.facts.clock.offset_s if self.facts and self.facts.clock else None
