from __future__ import annotations

import mmap
import random
import time

import pytest

from tests.fuzz.__main__ import main
from tests.fuzz.driver import Target, fuzz, mutated
from tests.fuzz.ips import TARGET

GROWTH_LIMIT_MIB = 5.0


def test_five_thousand_damaged_reports_raise_nothing_and_leave_nothing() -> None:
    found = fuzz(TARGET, 5000, seed=1)
    assert (found.inputs, found.crashes, found.hangs) == (5000, 0, 0), found.shown
    assert found.growth_mib <= GROWTH_LIMIT_MIB


@pytest.mark.deep
@pytest.mark.timeout(1800)
def test_two_hundred_thousand_damaged_reports_raise_nothing_and_leave_nothing() -> None:
    found = fuzz(TARGET, 200_000, seed=2)
    assert (found.crashes, found.hangs) == (0, 0), found.shown
    assert found.growth_mib <= GROWTH_LIMIT_MIB


def refuse(_content: bytes) -> None:
    raise ValueError("no")


def test_a_crash_is_counted_and_shown_with_its_input() -> None:
    found = fuzz(Target(lambda _: b"abc", refuse), 7, seed=1)
    assert (found.crashes, found.clean) == (7, False)
    assert "ValueError" in found.shown[0]
    assert "b'abc'" in found.shown[0]


def test_a_hang_is_cut_short_and_counted() -> None:
    found = fuzz(Target(lambda _: b"", lambda _: time.sleep(60), limit_s=0.01), 2, seed=1)
    assert (found.hangs, found.crashes) == (2, 0)


def test_growth_is_seen() -> None:
    kept: list[mmap.mmap] = []  # pages of their own: an allocator may hand out old ones again

    def keep(_: bytes) -> None:
        kept.append(mmap.mmap(-1, 4 << 20))
        kept[-1].write(bytes(4 << 20))

    found = fuzz(Target(lambda r: r.randbytes(8), keep), 12, seed=1)
    for region in kept:
        region.close()
    assert found.growth_mib > 5


def test_equal_seeds_give_equal_inputs() -> None:
    def inputs(seed: int) -> list[bytes]:
        seen: list[bytes] = []
        fuzz(Target(TARGET.make, seen.append), 20, seed)
        return seen

    assert inputs(1) == inputs(1)
    assert inputs(1) != inputs(2)
    assert mutated(b"", random.Random(3)) == mutated(b"", random.Random(3))


def test_the_command_prints_what_it_did(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--target", "ips", "--n", "10", "--seed", "4"]) == 0
    printed = capsys.readouterr().out
    for fact in ("target ips", "inputs 10", "seed 4", "crashes 0", "hangs 0", "growth "):
        assert fact in printed
