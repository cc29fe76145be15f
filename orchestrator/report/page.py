"""`report/index.html`: one self-contained page, no script, light and dark, printable."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final
from urllib.parse import quote

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape

from orchestrator.domain.counting import counted
from orchestrator.report.chart.figure import NARROW, WIDE, drawn
from orchestrator.report.coverage import coverage_of
from orchestrator.report.last_green import Change, changes
from orchestrator.report.summary_md import marks_of
from orchestrator.report.timeline import described
from orchestrator.report.wording import (
    brief,
    duration,
    mebibytes,
    name,
    quantity,
    shortened,
)
from orchestrator.verdict.catalog import CATALOG

if TYPE_CHECKING:
    from orchestrator.report.result import PhoneResult, RunResult
    from orchestrator.verdict.check import CheckInfo


def _link(file: str) -> str:
    """Return a file of the run as an address relative to the page, one folder down."""
    return "../" + quote(file, errors="replace")


def _breakable(text: str) -> Markup:
    """Return a text whose long names may break after an underscore, not inside a word."""
    return escape(shortened(text)).replace("_", Markup("_<wbr>"))


def _moment(unix_s: float) -> str:
    return datetime.fromtimestamp(unix_s, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")


def _info(check_id: str) -> CheckInfo | None:
    return CATALOG.get(check_id)


_PAGES: Final = Environment(
    loader=PackageLoader("orchestrator.report"),
    autoescape=True,  # every text of a phone is escaped unless somebody says otherwise
    undefined=StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
    keep_trailing_newline=True,
)
_PAGES.filters.update(
    breakable=_breakable,
    brief=brief,
    counted=counted,
    clean=shortened,
    duration=duration,
    info=_info,
    link=_link,
    mebibytes=mebibytes,
    moment=_moment,
    name=name,
    quantity=quantity,
)


def html_page(result: RunResult) -> str:
    """Return the run as an HTML page."""
    run = result.run
    span_s = None if run.ended_s is None else run.ended_s - run.started_s
    return _PAGES.get_template("index.html.j2").render(
        result=result,
        marks=marks_of(result),
        coverage=coverage_of(result),
        changes=_changes(result),
        charts=[_chart(place, phone) for place, phone in enumerate(result.phones, start=1)],
        length="never ended" if span_s is None else f"took {duration(span_s)}",
    )


def _changes(result: RunResult) -> dict[Change, list[str]]:
    """Return what changed since the last green run, with the phones that it changed on."""
    found: dict[Change, list[str]] = {}
    for phone in result.phones:
        if result.last_green is None or phone.stamps is None:
            continue
        verdict = phone.verdict
        for change in changes(result.last_green, verdict.udid, verdict.model, phone.stamps):
            found.setdefault(change, []).append(verdict.alias)
    return found


def _chart(place: int, phone: PhoneResult) -> dict[str, object] | None:
    """Return a phone's drawings and their text, None where there is nothing to draw."""
    timeline = phone.timeline
    if timeline is None:
        return None
    title = f"Timeline of {name(phone.verdict.alias)}"
    # The drawings are our own markup, and what a phone said in them is escaped there.
    svgs = {
        form.name: Markup(drawn(timeline, form, name=f"chart-{place}", title=title))  # noqa: S704
        for form in (WIDE, NARROW)
    }
    return {**svgs, "words": described(timeline), "span_s": timeline.span_s}
