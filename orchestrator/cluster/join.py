"""Joins what several hosts did into one run. Pure: documents and events in, documents out.

Times below `devices/` stay as their host wrote them: each verdict compares times of one host. The
run's own events are put on one clock, and say which host they are from.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from msgspec import structs

from orchestrator.domain.errors import UsageError
from orchestrator.runlog.documents import RunPart

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from orchestrator.cluster.clock import ClockOffset
    from orchestrator.runlog.documents import PlanDocument, PlannedPhone, RunDocument
    from orchestrator.runlog.events import Event

HOST_FACT: Final = "host"
# What parts of one run have equal, and how a person calls it.
_SHARED: Final = {
    "seed": "seed",
    "scenario": "scenario",
    "requires": "demands",
    "thresholds": "limits",
    "headroom_percent": "headroom",
    "app": "app",
}


@dataclass(frozen=True, slots=True)
class Part:
    """One host's run."""

    host: str
    run: RunDocument
    plan: PlanDocument
    events: tuple[Event, ...] = ()
    clock: ClockOffset | None = None  # that host's minus this one's; None where nobody measured

    @property
    def offset_s(self) -> float:
        """What is taken off that host's times."""
        return self.clock.offset_s if self.clock else 0.0

    def document(self) -> RunPart:
        """Return what the joined run says of this part."""
        return RunPart(
            host=self.host,
            run_id=self.run.run_id,
            fleet_version=self.run.fleet_version,
            platform=self.run.host,
            started_s=self.run.started_s,
            ended_s=self.run.ended_s,
            clock_offset_s=self.offset_s,
            clock_uncertainty_s=self.clock.uncertainty_s if self.clock else None,
        )


def joined_plan(run_id: str, parts: Sequence[Part]) -> PlanDocument:
    """Return one plan over all phones.

    Raises:
        UsageError: If the parts are not of one kind, or a phone is in two of them.
    """
    first = parts[0]
    for part in parts[1:]:
        for name, words in _SHARED.items():
            if getattr(part.plan, name) != getattr(first.plan, name):
                raise UsageError(
                    f"{first.host} and {part.host} cannot be joined: they differ in {words}",
                    remedy="Soak all hosts with one configuration, seed and app",
                )
    phones = [
        structs.replace(phone, host=phone.host or part.host)
        for part in parts
        for phone in part.plan.phones
    ]
    _refuse_twice(phones)
    here = {phone.udid for phone in phones}
    return structs.replace(
        first.plan,
        run_id=run_id,
        phones=phones,
        # Each host of a matrix may expect every phone of the lab: some host had it.
        absent=list(
            {
                gone.udid: gone for p in parts for gone in p.plan.absent if gone.udid not in here
            }.values()
        ),
        skipped=[entry for part in parts for entry in part.plan.skipped],
    )


def _refuse_twice(phones: Iterable[PlannedPhone]) -> None:
    by_udid: dict[str, PlannedPhone] = {}
    by_directory: dict[str, PlannedPhone] = {}
    for phone in phones:
        other = by_udid.get(phone.udid) or by_directory.get(phone.directory)
        if other is not None:
            raise UsageError(
                f"{phone.alias} ({phone.udid}) is in two parts: {other.host} and {phone.host}",
                remedy="A phone that was soaked twice has two runs: see `fleet history`",
            )
        by_udid[phone.udid] = by_directory[phone.directory] = phone


def joined_run(run_id: str, parts: Sequence[Part], arguments: Sequence[str]) -> RunDocument:
    """Return the document of a run that was joined from hosts that share nothing."""
    first = parts[0].run
    ends = [part.run.ended_s for part in parts]
    known = [end for end in ends if end is not None]
    return structs.replace(
        first,
        run_id=run_id,
        started_s=min(part.run.started_s - part.offset_s for part in parts),
        # One that never ended leaves the whole without an end.
        ended_s=max(known) if len(known) == len(ends) else None,
        interrupted_by=interrupted_by(parts),
        virtual=any(part.run.virtual for part in parts),
        host=", ".join(dict.fromkeys(part.run.host for part in parts)),
        arguments=list(arguments),
        resumed_s=sorted(at_s for part in parts for at_s in part.run.resumed_s),
        parts=[part.document() for part in parts],
    )


def interrupted_by(parts: Sequence[Part]) -> str | None:
    """Return what cut a part short, None where nothing did."""
    return next((part.run.interrupted_by for part in parts if part.run.interrupted_by), None)


def joined_events(own: Iterable[Event], parts: Sequence[Part]) -> list[Event]:
    """Return all events on one clock, each host's with its name.

    Args:
        own: Of the joined run itself; those that a former join took from hosts are left out.
        parts: With their events.
    """
    events = [event for event in own if HOST_FACT not in event.facts]
    for part in parts:
        events += [
            structs.replace(
                event,
                at_s=event.at_s - part.offset_s,
                facts={**event.facts, HOST_FACT: part.host},
            )
            for event in part.events
        ]
    return sorted(events, key=lambda event: event.at_s)
