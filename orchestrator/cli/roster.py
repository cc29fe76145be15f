"""Who is in a cluster: agents, their phones, and what keeps a run from them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from orchestrator.cli.attached import listed
from orchestrator.cli.printing import note
from orchestrator.cluster.connection import refuse_other_version
from orchestrator.domain.errors import UsageError
from orchestrator.domain.iphone import why_unlisted

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from orchestrator.cli.attached import ListedPhone
    from orchestrator.cli.cluster_access import ClusterAccess
    from orchestrator.cluster.documents import AgentPhone, AgentReport
    from orchestrator.domain.phone import Phone


@dataclass(frozen=True, slots=True)
class Roster:
    """The phones of a cluster at one moment, each at one host."""

    phones: tuple[Phone, ...]  # by host, then as its agent lists them
    quarantined: dict[str, str]  # reason, by UDID
    held: dict[str, str]  # who has it, by UDID
    remarks: tuple[str, ...]


async def read_roster(access: ClusterAccess) -> Roster:
    """Ask all agents.

    Raises:
        MemberLostError: If the scheduler does not answer.
    """
    async with access.connected() as connection:
        return roster_of(await connection.reports())


def roster_of(reports: Sequence[AgentReport]) -> Roster:
    """Return the roster of what agents said; those of another version are left out, with a remark.

    A phone that two hosts list, by cable and by Wi-Fi perhaps, is the first host's.
    """
    remarks: list[str] = []
    found: dict[str, tuple[str, AgentPhone]] = {}
    for report in reports:
        try:
            refuse_other_version(report)
        except UsageError as error:
            remarks.append(str(error))
            continue
        remarks += [f"{report.name}: {remark}" for remark in report.remarks]
        for phone in report.phones:
            if phone.udid in found:
                first = found[phone.udid][0]
                remarks.append(f"{phone.alias} is at {first} and {report.name}: {first} has it")
            else:
                found[phone.udid] = (report.name, phone)
    entries = [phone for _, phone in found.values()]
    return Roster(
        phones=tuple(phone.phone(host) for host, phone in found.values()),
        quarantined={p.udid: p.quarantine for p in entries if p.quarantine is not None},
        held={p.udid: p.held_by for p in entries if p.held_by is not None},
        remarks=tuple(remarks),
    )


async def listed_in_cluster(access: ClusterAccess) -> tuple[list[ListedPhone], list[str]]:
    """Return the phones of a cluster as `fleet devices` shows them, and remarks."""
    roster = await read_roster(access)
    rows = [listed(phone, ", ".join(_notes(phone, roster))) for phone in roster.phones]
    return rows, list(roster.remarks)


def _notes(phone: Phone, roster: Roster) -> Iterator[str]:
    unlisted = why_unlisted(phone.product_type, phone.os)
    if unlisted is not None:
        yield unlisted
    if phone.virtual:
        yield "virtual"
    if phone.udid in roster.quarantined:
        yield f"in quarantine: {roster.quarantined[phone.udid]}"
    if phone.udid in roster.held:
        yield f"held by {roster.held[phone.udid]}"


def tell(remarks: Sequence[str]) -> None:
    """Print remarks on stderr."""
    for remark in remarks:
        note(f"note: {remark}")
