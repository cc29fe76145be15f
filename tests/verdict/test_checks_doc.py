"""`docs/checks.md` says what the catalog says. Run this module to write the file again."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from orchestrator.domain.defects import DEFECTS
from orchestrator.verdict.catalog import CATALOG, unknown_limit

if TYPE_CHECKING:
    from orchestrator.verdict.check import CheckInfo

DOC = Path(__file__).parents[2] / "docs" / "checks.md"
MARK = "<!-- from the catalog -->\n"  # what is above it is written by hand


def rendered() -> str:
    """Return the part of the document that the catalog gives."""
    return "\n".join(_section(info) for info in CATALOG.values())


def _section(info: CheckInfo) -> str:
    lines = [f"## `{info.id}`", "", f"**{info.title}.** {info.meaning}", ""]
    lines.append(f"Usual causes: {'; '.join(info.causes)}.")
    defects = ", ".join(f"`{defect.name}`" for defect in DEFECTS if defect.check == info.id)
    lines += ["", f"Defects that it must catch: {defects}.", ""]
    if info.limits:
        lines += ["| limit | default | unit | what it is |", "|---|---|---|---|"]
        lines += [
            f"| `{limit.name}` | {limit.default:g} | {limit.unit} | {limit.meaning} |"
            for limit in info.limits
        ]
        lines.append("")
    return "\n".join(lines)


def test_the_document_says_what_the_catalog_says() -> None:
    assert DOC.read_text().partition(MARK)[2] == rendered()


def test_limits_have_names_of_their_own_within_a_check() -> None:
    for info in CATALOG.values():
        names = [limit.name for limit in info.limits]
        assert len(set(names)) == len(names)


def test_a_limit_that_no_check_has_is_named_with_those_it_has() -> None:
    assert unknown_limit({"memory.drift": {"max_mib_per_hour": 4.0}}) is None
    mistake = unknown_limit({"memory.drift": {"max_mb": 4.0}})
    assert mistake is not None
    assert "'max_mb'" in mistake
    assert "max_mib_per_hour" in mistake
    assert "none" in (unknown_limit({"trim.notice": {"x": 1.0}}) or "")


if __name__ == "__main__":
    above, mark, _ = DOC.read_text().partition(MARK)
    DOC.write_text(above + mark + rendered())
