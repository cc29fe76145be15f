from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import pytest

from orchestrator.evidence.parse import parse_report
from orchestrator.evidence.reports import CrashReport
from orchestrator.evidence.symbols import Symbolicator, UnusableSymbolsError
from tests.evidence.factory import crash
from tests.evidence.make_dsym import DSYM, DSYM_UUID

if TYPE_CHECKING:
    from pathlib import Path

    from orchestrator.evidence.frames import Backtrace

DECODE, RETURN_TO_MAIN = 0x10, 0x24  # in main, behind the first call


def backtrace(*frames: object, images: object = None, **body: object) -> Backtrace | None:
    ours = [{"name": "Soak", "uuid": str(DSYM_UUID).upper(), "arch": "arm64"}]
    threads = [{"frames": []}, {"triggered": True, "frames": list(frames)}]
    content = crash(threads=threads, usedImages=ours if images is None else images, **body)
    parsed = parse_report(content, "r")
    assert isinstance(parsed, CrashReport)
    return parsed.backtrace


def named(*frames: object) -> list[str]:
    found = backtrace(*frames)
    assert found is not None
    return Symbolicator.opened([DSYM]).named(found)


def test_calls_are_named_with_file_and_line() -> None:
    calls = [{"imageIndex": 0, "imageOffset": offset} for offset in (DECODE, RETURN_TO_MAIN)]
    assert named(*calls) == ["decode (/build/soak.c:5)", "main (/build/soak.c:9)"]


def test_a_caller_is_where_it_called_and_not_where_it_goes_on() -> None:
    call, first = {"imageIndex": 0, "imageOffset": 0x20}, {"imageIndex": 0, "imageOffset": DECODE}
    assert named(call)[0] == "main (/build/soak.c:9)"
    assert named(first, call)[1] == "main (/build/soak.c:8)"


def test_what_has_no_symbols_keeps_what_the_phone_said() -> None:
    frames = [
        {"imageIndex": 7, "imageOffset": 16},
        {"imageIndex": 0, "imageOffset": 1 << 40, "symbol": "start"},
        {"imageIndex": 0},
        "damaged",
    ]
    assert named(*frames) == [
        "an unknown image + 0x10",
        "start in Soak",
        "Soak + an unknown offset",
        "an unknown image + an unknown offset",
    ]


def test_the_faulting_thread_is_taken_by_its_number() -> None:
    assert backtrace({"imageIndex": 0, "imageOffset": 16}, faultingThread=0) is None
    found = backtrace({"imageIndex": 0, "imageOffset": 16}, faultingThread=1)
    assert found is not None
    assert (found.arch, found.frames[0].offset) == ("arm64", 16)


def test_images_of_a_wrong_type_keep_their_places() -> None:
    found = backtrace({"imageIndex": 1}, images=[5, {"name": "B"}])
    assert found is not None
    assert found.frames[0].image == "B"


def test_a_path_without_symbols_is_refused(tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes(b"no object")
    for path in (tmp_path / "x", tmp_path / "gone"):
        with pytest.raises(UnusableSymbolsError, match="cannot be read"):
            Symbolicator.opened([path])
    (tmp_path / "Empty.dSYM" / "Contents" / "Resources" / "DWARF").mkdir(parents=True)
    with pytest.raises(UnusableSymbolsError, match="holds no debug symbols"):
        Symbolicator.opened([tmp_path / "Empty.dSYM"])


def test_without_the_extra_the_error_names_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "symbolic", None)
    with pytest.raises(UnusableSymbolsError, match=r"\.\[symbols\]"):
        Symbolicator.opened([DSYM])
