"""The PDF, where the [pdf] extra and Pango are installed; .ci/run insists on them."""

from __future__ import annotations

import builtins
import os
from typing import TYPE_CHECKING

import pytest

from orchestrator.domain.errors import UsageError
from orchestrator.report.signoff.document import pdf_document
from orchestrator.report.signoff.keys import generate_key
from tests.report.signoff.releases import release, write_real_run
from tests.report.signoff.test_bundle import make, verified

if TYPE_CHECKING:
    from pathlib import Path


def drawn(html: str) -> bytes:
    try:
        return pdf_document(html)
    except UsageError:
        if os.environ.get("FLEET_REQUIRE_PEERS"):
            raise
        pytest.skip("the [pdf] extra is not installed")


def page_count(html: str) -> int:
    from weasyprint import HTML

    return len(HTML(string=html).render().pages)


def test_the_page_fits_on_one_sheet_and_belongs_to_the_bundle(tmp_path: Path) -> None:
    drawn("<p>probe")
    key = tmp_path / "key.pem"
    generate_key(key)
    written = write_real_run(tmp_path / "run-1")
    make(tmp_path / "signoff", [written.root], key, release(), pdf=True)
    pdf = (tmp_path / "signoff" / "signoff.pdf").read_bytes()
    assert pdf.startswith(b"%PDF-")
    assert page_count((tmp_path / "signoff" / "signoff.html").read_text()) == 1
    assert verified(tmp_path / "signoff", key).holds
    (tmp_path / "signoff" / "signoff.pdf").write_bytes(pdf + b"\n")
    assert verified(tmp_path / "signoff", key).problems == ("changed: signoff.pdf",)


def test_a_page_that_refers_outside_itself_fetches_nothing() -> None:
    drawn("<p>probe")
    assert drawn('<img src="http://127.0.0.1:9/x.png"><p>x').startswith(b"%PDF-")


def test_without_the_extra_the_error_names_it(monkeypatch: pytest.MonkeyPatch) -> None:
    real = builtins.__import__

    def without(name: str, *rest: object) -> object:
        if name == "weasyprint":
            raise ImportError("No module named 'weasyprint'")
        return real(name, *rest)  # type: ignore[arg-type]

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(UsageError, match=r"\.\[pdf\]"):
        pdf_document("<p>x")
