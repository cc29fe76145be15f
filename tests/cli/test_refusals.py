"""What a soak refuses before it touches a phone."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from orchestrator.cli import refusals
from orchestrator.cli.refusals import (
    refuse_living_sessions,
    refuse_unknown_defect,
    refuse_unusable_output,
)
from orchestrator.domain.errors import HeldError, UsageError
from orchestrator.soak.lock_keys import lock_key

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.mark.parametrize("text", [None, "never-trim", "trim-late:64"])
def test_a_known_defect_is_taken(text: str | None) -> None:
    refuse_unknown_defect(text)


@pytest.mark.parametrize("text", ["nosuch", "nosuch:3"])
def test_an_unknown_defect_is_refused_with_the_names_there_are(text: str) -> None:
    with pytest.raises(UsageError, match=r"unknown defect 'nosuch'.*never-trim"):
        refuse_unknown_defect(text)


def test_an_output_folder_is_made_where_it_can_be(tmp_path: Path) -> None:
    refuse_unusable_output(tmp_path / "a" / "b")
    refuse_unusable_output(tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_an_output_below_a_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    with pytest.raises(UsageError, match=r"--output .*: Not a directory"):
        refuse_unusable_output(tmp_path / "file" / "runs")


async def test_a_phone_with_a_living_session_is_held(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(refusals, "CLOSING_LIMIT_S", 0.01)
    monkeypatch.setattr(refusals, "is_held", lambda _place: True)
    with pytest.raises(HeldError, match=r"bench-01 is held .* `fleet resume`"):
        await refuse_living_sessions([("bench-01", "UDID", "127.0.0.1:1")])


async def test_a_session_that_is_on_its_way_out_is_waited_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    answers = iter([True, True, False, False])
    monkeypatch.setattr(refusals, "is_held", lambda _place: next(answers))
    await refuse_living_sessions([("bench-01", "UDID", "127.0.0.1:1")])


def test_two_spellings_of_one_address_are_one_phone() -> None:
    keys = {
        lock_key("UDID", "vp-01", address, virtual=True)
        for address in ("127.0.0.1:4000", "localhost:4000")
    }
    assert len(keys) == 1
