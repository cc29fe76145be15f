"""`report/index.html`: one self-contained page, no script, light and dark, printable."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final
from urllib.parse import quote

from jinja2 import Environment, PackageLoader, StrictUndefined

from orchestrator.report.summary_md import marks_of
from orchestrator.report.timeline import HEIGHT, WIDTH
from orchestrator.report.wording import clean, duration, quantity

if TYPE_CHECKING:
    from orchestrator.report.result import RunResult


def _link(file: str) -> str:
    """Return a file of the run as an address relative to the page, one folder down."""
    return "../" + quote(file, errors="replace")


_PAGES: Final = Environment(
    loader=PackageLoader("orchestrator.report"),
    autoescape=True,  # every text of a phone is escaped unless somebody says otherwise
    undefined=StrictUndefined,
    keep_trailing_newline=True,
)
_PAGES.filters.update(clean=clean, duration=duration, quantity=quantity, link=_link)


def html_page(result: RunResult) -> str:
    """Return the run as an HTML page."""
    run = result.run
    span_s = None if run.ended_s is None else run.ended_s - run.started_s
    return _PAGES.get_template("index.html.j2").render(
        result=result,
        marks=marks_of(result),
        started=datetime.fromtimestamp(run.started_s, UTC).strftime("%Y-%m-%d %H:%M:%S UTC"),
        length="never ended" if span_s is None else f"took {duration(span_s)}",
        width=WIDTH,
        height=HEIGHT,
    )
