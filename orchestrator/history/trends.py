"""What `fleet history` shows: one row per phone and number, over the latest runs. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from orchestrator.domain.checks import CHECK_IDS
from orchestrator.domain.measures import MEASURES
from orchestrator.domain.outcome import Outcome, Result

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from orchestrator.history.entry import PhoneEntry, RunEntry

_LETTERS: Final = {
    Outcome.PASS.value: "P",
    Outcome.FAIL.value: "F",
    Outcome.ERROR.value: "E",
    Outcome.ABORTED.value: "A",
    Result.PASS.value: "p",
    Result.FAIL.value: "F",
    Result.SKIPPED.value: "-",
    Result.UNMEASURED.value: "?",
}
_ABSENT: Final = " "


@dataclass(frozen=True, slots=True)
class Trend:
    """One row: a phone's results and one of its numbers, oldest first, one place per run."""

    alias: str
    model: str
    name: str  # of a measure or a check
    unit: str
    results: str  # P pass, F fail, E lab error, A aborted; of a check p, F, - skipped, ? unmeasured
    values: tuple[float | None, ...]


def trends(runs: Sequence[RunEntry], subject: str | None = None) -> list[Trend]:
    """Return the rows of a phone, a model or a check; None gives each phone's first measure.

    Args:
        runs: Oldest first.
        subject: An alias, the end of a UDID, a model name, a host, or a check id; case is ignored.
    """
    wanted = subject.casefold() if subject is not None else None
    phones: dict[str, PhoneEntry] = {}
    for run in runs:
        phones |= {phone.udid: phone for phone in run.phones}
    if wanted in CHECK_IDS:
        return [row for p in phones.values() if (row := _check_row(runs, p, wanted)) is not None]
    shown = [phone for phone in phones.values() if wanted is None or _is_about(phone, wanted)]
    return [
        _row(runs, phone, measure.name, measure.unit)
        for phone in shown
        for measure in (MEASURES[:1] if wanted is None else MEASURES)
    ]


def _is_about(phone: PhoneEntry, wanted: str) -> bool:
    by_udid = len(wanted) >= 8 and phone.udid.casefold().endswith(wanted)
    names = {phone.alias, phone.stamps.model, phone.host} - {""}
    return by_udid or wanted in {name.casefold() for name in names}


def _along(runs: Sequence[RunEntry], udid: str, of: Callable[[PhoneEntry], object]) -> list[object]:
    """Return one value per run, None for a run without the phone."""
    found = [next((p for p in run.phones if p.udid == udid), None) for run in runs]
    return [None if phone is None else of(phone) for phone in found]


def _row(runs: Sequence[RunEntry], phone: PhoneEntry, name: str, unit: str) -> Trend:
    outcomes = _along(runs, phone.udid, lambda entry: entry.outcome)
    values = _along(runs, phone.udid, lambda entry: entry.measures.get(name))
    return Trend(phone.alias, phone.stamps.model, name, unit, _letters(outcomes), _numbers(values))


def _check_row(runs: Sequence[RunEntry], phone: PhoneEntry, check_id: str) -> Trend | None:
    latest = phone.check(check_id)
    if latest is None:
        return None
    checks = _along(runs, phone.udid, lambda entry: entry.check(check_id))
    results = [getattr(check, "result", None) for check in checks]
    values = [getattr(check, "value", None) for check in checks]
    return Trend(
        phone.alias,
        phone.stamps.model,
        check_id,
        latest.unit or "",
        _letters(results),
        _numbers(values),
    )


def _letters(results: Sequence[object]) -> str:
    return "".join(_LETTERS.get(str(result), _ABSENT) for result in results)


def _numbers(values: Sequence[object]) -> tuple[float | None, ...]:
    return tuple(value if isinstance(value, float) else None for value in values)
