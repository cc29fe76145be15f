"""JetsamEvent bodies (bug type 298) to victims."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from orchestrator.evidence.fields import count, mapping, text, texts
from orchestrator.evidence.reports import JetsamReport, JetsamVictim, ReportHeader, Unparsed

if TYPE_CHECKING:
    from orchestrator.evidence.fields import Json
    from orchestrator.evidence.processes import ProcessList

ASSUMED_PAGE_BYTES: Final = 16384  # of every iPhone since the 6s; older ones had 4096
_LARGEST_PAGE_BYTES: Final = 1 << 20
_LAST: Final = 1 << 63  # sorts victims without a delta behind those with one


def parse_jetsam(
    header: ReportHeader, body: Json, processes: ProcessList
) -> JetsamReport | Unparsed:
    """Return a jetsam report.

    The victims are the entries with a `reason`; `largestProcess` is a snapshot of the whole
    system and names the victim only by chance.
    """
    if body.get("processes") is not True:  # what the scanner leaves for a list
        return Unparsed(header, "no process list")
    stated = count(mapping(body, "memoryStatus"), "pageSize")
    usable = stated is not None and 0 < stated <= _LARGEST_PAGE_BYTES
    page_bytes = stated if usable and stated is not None else ASSUMED_PAGE_BYTES
    victims = [_victim(entry, page_bytes) for entry in processes.victims]
    victims.sort(key=lambda victim: _LAST if victim.kill_delta is None else victim.kill_delta)
    return JetsamReport(
        header=header,
        victims=tuple(victims),
        victim_count=processes.victim_count,
        page_size_bytes=page_bytes,
        page_size_assumed=not usable,
        largest_process=text(body, "largestProcess"),
        damaged_entries=processes.damaged_entries,
    )


def _victim(entry: Json, page_bytes: int) -> JetsamVictim:
    pages = count(entry, "rpages")
    return JetsamVictim(
        name=text(entry, "name"),
        pid=count(entry, "pid"),
        uuid=text(entry, "uuid"),
        reason=text(entry, "reason") or "unreadable",
        resident_pages=pages,
        footprint_bytes=None if pages is None else pages * page_bytes,
        states=tuple(texts(entry, "states")) if isinstance(entry.get("states"), list) else None,
        kill_delta=count(entry, "killDelta"),
    )
