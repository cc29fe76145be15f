"""The table of a run for a terminal of any size: pure, state to lines.

At 80 columns a phone has one row, and a second one for its last event where there is room; wider
terminals have columns for that. The worst phones come first, what does not fit is one line.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from orchestrator.live import words
from orchestrator.live.concern import memory_share
from orchestrator.live.lines import Line, Role, Span, fitted, within
from orchestrator.live.state import Level

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from orchestrator.live.state import PhoneLive, RunLive

MIN_WIDTH: Final = 40
WIDE: Final = 110  # columns from which the last event has a column
WIDER: Final = 150  # and model, evictions, course of the speed
FRAME_LINES: Final = 3  # two above the table, one under it
_ROLES: Final[dict[Level, Role]] = {
    Level.CALM: "plain",
    Level.NOTE: "note",
    Level.ALARM: "bad",
    Level.FAILED: "bad",
}
_MARKS: Final = {Level.CALM: " ", Level.NOTE: "!", Level.ALARM: "!", Level.FAILED: "x"}


@dataclass(frozen=True, slots=True)
class Terminal:
    """What a view is drawn on."""

    width: int
    height: int
    ascii_only: bool = False


@dataclass(frozen=True, slots=True)
class _Column:
    title: str
    cells: int
    text: Callable[[PhoneLive], str]
    right: bool = False
    role: Callable[[PhoneLive], Role] = lambda _: "plain"


def run_lines(run: RunLive, terminal: Terminal) -> list[Line]:
    """Return the view of a run; never more lines or cells than the terminal has."""
    # The last cell of a row stays free: what a terminal does after it differs.
    width, flat = max(terminal.width, MIN_WIDTH) - 1, terminal.ascii_only
    columns = _columns(run, width, terminal)
    room = max(1, terminal.height - FRAME_LINES - 2)  # title row, cursor
    doubled = width < WIDE
    rows: list[Line] = []
    shown = 0
    for phone in run.phones:
        block = [_row(phone, columns, flat)]
        # A calm phone's second row only where every phone has room for one.
        if doubled and (phone.level > Level.CALM or 2 * len(run.phones) <= room):
            block.append(_detail(phone, run.now_s, width, flat))
        if len(rows) + len(block) > room:
            break
        rows += block
        shown += 1
    lines = [
        _headline(run, width, flat),
        _progress(run, width, flat),
        _titles(columns, flat),
        *rows,
    ]
    if shown < len(run.phones):
        lines.append(within([Span(_rest(run.phones[shown:]), "faint")], width, ascii_only=flat))
    return lines[: max(1, terminal.height - 1)]


def _headline(run: RunLive, width: int, flat: bool) -> Line:
    since_s = (run.ended_s or run.now_s) - run.started_s
    role: Role = "bad" if run.state == "left" else "plain"
    state = "left by its process, `fleet resume`" if run.state == "left" else run.state
    if run.state == "running" and run.stopped_by:
        state, role = f"stopping ({run.stopped_by})", "note"
    spans = [
        Span("fleet ", "head"),
        Span(f"{run.run_id} ", "head"),
        Span(f" {run.outcome or state}", _outcome_role(run.outcome) if run.outcome else role),
        Span(f"  {words.duration(since_s)}"),
        Span(f"  {run.scenario} {words.origin(run)}", "faint"),
    ]
    return within(spans, width, ascii_only=flat)


def _progress(run: RunLive, width: int, flat: bool) -> Line:
    spans = [Span(words.phones_counted(run.phones))]
    if run.unread_bytes:
        spans.append(Span(f"  reading, {words.size(run.unread_bytes)} to go", "note"))
    elif (share := words.share_done(run)) is not None:
        spans.append(Span(f"  {words.bar(share, 12, ascii_only=flat)} {share:.0%}", "faint"))
    return within(spans, width, ascii_only=flat)


def _columns(run: RunLive, width: int, terminal: Terminal) -> list[_Column]:
    flat = terminal.ascii_only
    columns = [
        _Column("phase", 8, words.phase, role=_phase_role),
        _Column("ran/left", 9, words.ran_and_left, right=True),
        _Column("context", 9, words.context, right=True, role=_context_role),
        _Column("trim", 4, lambda phone: str(phone.trims), right=True),
        _Column("memory", 9, words.memory, right=True, role=_memory_role),
        _Column("tok/s", 7, lambda phone: words.speed(phone, ascii_only=flat), right=True),
        _Column("thermal", 8, lambda phone: phone.thermal or "-", role=_thermal_role),
        _Column("bat", 5, words.battery, right=True),
    ]
    if width >= WIDER:
        columns[4] = _Column("memory", 15, words.memory_long, right=True, role=_memory_role)
        columns.insert(4, _Column("evict", 5, lambda phone: str(phone.evictions), right=True))
        columns.insert(0, _Column("model", 22, lambda p: f"{p.model}, {p.os}", role=_faint))
        if not flat:
            columns.insert(
                8, _Column("speed", 16, lambda p: words.sparkline(p.speeds, 16), role=_faint)
            )
    while columns and sum(column.cells + 1 for column in columns) > width - 2 - 6:
        columns.pop()  # a terminal far too narrow: the first columns say most
    free = width - 2 - sum(column.cells + 1 for column in columns)
    longest = max((len(phone.alias) for phone in run.phones), default=5)
    alias_cells = max(6, min(free, longest, 24))
    if width >= WIDE:
        now_s = run.now_s
        rest = free - alias_cells - 1
        columns.append(_Column("last event", rest, lambda p: _last(p, now_s), role=_event_role))
    return [_Column("phone", alias_cells, lambda phone: phone.alias, role=_alias_role), *columns]


def _titles(columns: Sequence[_Column], flat: bool) -> Line:
    cells = (fitted(c.title, c.cells, right=c.right, ascii_only=flat) for c in columns)
    return (Span(f"  {' '.join(cells)}".rstrip(), "faint"),)


def _row(phone: PhoneLive, columns: Sequence[_Column], flat: bool) -> Line:
    spans = [Span(f"{_MARKS[phone.level]} ", _ROLES[phone.level])]
    for column in columns:
        text = fitted(column.text(phone), column.cells, right=column.right, ascii_only=flat)
        spans += [Span(text, column.role(phone)), Span(" ")]
    return tuple(spans[:-1])


def _detail(phone: PhoneLive, now_s: float, width: int, flat: bool) -> Line:
    reason, event = phone.concern or "", _event(phone, now_s)
    spans = [
        Span(f"    {reason}", _event_role(phone)),
        Span(f"; {event}" if reason and event else event, "faint"),
    ]
    return within(spans, width, ascii_only=flat)


def _last(phone: PhoneLive, now_s: float) -> str:
    return "; ".join(part for part in (phone.concern, _event(phone, now_s)) if part)


def _event(phone: PhoneLive, now_s: float) -> str:
    """Return what happened last, unless it is the concern itself."""
    if phone.last is None or phone.last.text == phone.concern:
        return ""
    return f"{phone.last.text}, {words.duration(now_s - phone.last.at_s)} ago"


def _rest(phones: Sequence[PhoneLive]) -> str:
    """Return the phones that do not fit, as one line."""
    facts = []
    speeds = [phone.tokens_per_s for phone in phones if phone.tokens_per_s is not None]
    if speeds:
        facts.append(f"slowest {min(speeds):.1f} tok/s")
    shares = [share for phone in phones if (share := memory_share(phone)) is not None]
    if shares:
        facts.append(f"memory at most {max(shares):.0%}")
    facts.append(words.phases_counted(phones))
    return f"  and {len(phones)} more: {', '.join(facts)}"


def _outcome_role(outcome: str | None) -> Role:
    return "good" if outcome == "PASS" else "note" if outcome == "ABORTED" else "bad"


def _phase_role(phone: PhoneLive) -> Role:
    return _outcome_role(phone.outcome) if phone.outcome else "plain"


def _context_role(phone: PhoneLive) -> Role:
    over = phone.context_tokens is not None and phone.budget_tokens is not None
    return "bad" if over and (phone.context_tokens or 0) > (phone.budget_tokens or 0) else "plain"


def _memory_role(phone: PhoneLive) -> Role:
    share = memory_share(phone)
    if share is None or share < 0.8:
        return "plain"
    return "bad" if share >= 0.9 else "note"


def _thermal_role(phone: PhoneLive) -> Role:
    if phone.thermal in {"serious", "critical"}:
        return "bad"
    return "note" if phone.thermal == "fair" else "plain"


def _alias_role(phone: PhoneLive) -> Role:
    return "head" if phone.level is Level.CALM else _ROLES[phone.level]


def _event_role(phone: PhoneLive) -> Role:
    return "faint" if phone.level is Level.CALM else _ROLES[phone.level]


def _faint(_: PhoneLive) -> Role:
    return "faint"
