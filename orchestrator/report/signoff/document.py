"""The one page that people sign, as HTML and as PDF, and the same facts for machines."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

from jinja2 import Environment, PackageLoader, StrictUndefined

import orchestrator
from orchestrator.domain.errors import UsageError
from orchestrator.domain.extras import how_to_install
from orchestrator.report.wording import clean, duration

if TYPE_CHECKING:
    from collections.abc import Sequence

    from orchestrator.config.model import ReleaseBlock
    from orchestrator.report.signoff.decision import Cell, Decision
    from orchestrator.report.signoff.evidence import RunEvidence

_PAGES: Final = Environment(
    loader=PackageLoader("orchestrator.report.signoff"),
    autoescape=True,  # names of phones and people are hostile until proven otherwise
    undefined=StrictUndefined,
    keep_trailing_newline=True,
    trim_blocks=True,
    lstrip_blocks=True,
)
_PAGES.filters.update(clean=clean, duration=duration)


@dataclass(frozen=True, slots=True)
class SealedRun:
    """One run as the page lists it."""

    run: RunEvidence
    file_count: int
    size_bytes: int


@dataclass(frozen=True, slots=True)
class SignoffFacts:
    """Everything on the page."""

    release: str
    at_s: float  # Unix seconds
    policy: ReleaseBlock
    policy_sha256: str
    decision: Decision
    runs: Sequence[SealedRun]
    key_id: str

    @property
    def result(self) -> str:
        """The answer in large letters."""
        return "PASS WITH WAIVERS" if self.waived else "PASS"

    @property
    def waived(self) -> bool:
        """Whether any cell stands on a waiver."""
        return any(cell.waived for cell in self.decision.cells)

    @property
    def at(self) -> str:
        """When, in UTC."""
        return datetime.fromtimestamp(self.at_s, UTC).strftime("%Y-%m-%d %H:%M UTC")


def html_document(facts: SignoffFacts) -> str:
    """Return the page, self-contained and without script."""
    page = _PAGES.get_template("signoff.html.j2")
    return page.render(facts=facts, version=orchestrator.__version__, mib=1024**2)


def machine_facts(facts: SignoffFacts) -> dict[str, object]:
    """Return the page's facts for machines."""
    return {
        "schema": 1,
        "release": facts.release,
        "result": "WARNED" if facts.waived else "PASSED",
        "at": facts.at,
        "policy_sha256": facts.policy_sha256,
        "cells": [_cell(cell) for cell in facts.decision.cells],
        "waivers": [waiver.model_dump(mode="json") for waiver in facts.policy.waivers],
        "runs": [
            {
                "run_id": sealed.run.run_id,
                "manifest_sha256": sealed.run.manifest_sha256,
                "app_sha256": sealed.run.app_sha256,
                "files": sealed.file_count,
                "size_bytes": sealed.size_bytes,
            }
            for sealed in facts.runs
        ],
    }


def _cell(cell: Cell) -> dict[str, object]:
    phone = cell.phone
    return {
        **cell.requirement.model_dump(mode="json"),
        "run_id": phone.run_id if phone else None,
        "phone": phone.alias if phone else None,
        "phone_os": phone.os if phone else None,
        "inference_s": phone.inference_s if phone else None,
        "passed": list(cell.passed),
        "waived": list(cell.waived),
    }


def pdf_document(html: str) -> bytes:
    """Return the page as PDF.

    Raises:
        UsageError: If weasyprint or the libraries it draws with are not installed.
    """
    try:
        from weasyprint import HTML, URLFetcher  # noqa: PLC0415 - an extra, wanted only here
    except (ImportError, OSError) as error:
        raise UsageError(
            f"a PDF needs the [pdf] extra: {error}",
            remedy=f"Install it: {how_to_install('pdf')}; and Pango from apt or brew",
        ) from error
    # The page refers to nothing outside itself; a fetcher without protocols keeps it so.
    fetcher = URLFetcher(allowed_protocols=())
    return bytes(HTML(string=html, url_fetcher=fetcher).write_pdf())
