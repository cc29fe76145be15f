"""Feeds a parser random and mutated inputs; counts crashes, hangs and growth.

A target makes an input from a seeded generator and eats it. To join, add it to `TARGETS` in
`tests.fuzz.targets`.
"""

from __future__ import annotations

import random
import resource
import signal
import time
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from types import FrameType

MOST_SHOWN = 5
WARM_UP_SHARE = 0.1  # caches fill first; growth is counted after it
MIB = 1024**2


@dataclass(frozen=True)
class Target:
    """One parser."""

    make: Callable[[random.Random], bytes]
    eat: Callable[[bytes], None]  # raises for a crash only
    limit_s: float = 2.0  # for one input; longer is a hang


@dataclass
class Findings:
    """What a run found."""

    inputs: int = 0
    crashes: int = 0
    hangs: int = 0
    growth_mib: float = 0.0
    slowest_s: float = 0.0
    shown: list[str] = field(default_factory=list)  # the first few, with their input

    @property
    def clean(self) -> bool:
        return self.crashes == 0 and self.hangs == 0


class HangError(BaseException):
    """An input took longer than its limit; no parser may swallow it."""


def fuzz(target: Target, n: int, seed: int) -> Findings:
    """Feed `n` inputs; equal seeds give equal inputs."""
    findings = Findings()
    before_mib = 0.0
    for number in range(n):
        content = target.make(random.Random(f"{seed}/{number}"))
        _feed(target, content, findings, f"seed {seed} input {number}")
        if number == int(n * WARM_UP_SHARE):
            before_mib = resident_mib()
    findings.growth_mib = max(0.0, resident_mib() - before_mib)
    return findings


def _feed(target: Target, content: bytes, findings: Findings, name: str) -> None:
    findings.inputs += 1
    began_s = time.perf_counter()
    try:
        _eat_in_time(target, content)
    except HangError:
        findings.hangs += 1
        _show(findings, f"hang: {name}", content)
    except Exception as error:  # noqa: BLE001 - that is what is looked for
        findings.crashes += 1
        _show(findings, f"crash: {name}: {type(error).__name__}: {error}", content)
    findings.slowest_s = max(findings.slowest_s, time.perf_counter() - began_s)


def _eat_in_time(target: Target, content: bytes) -> None:
    """Feed one input; one that took too long gets a second chance, for a busy machine stalls."""
    try:
        with _limited(target.limit_s):
            target.eat(content)
    except HangError:
        with _limited(target.limit_s):
            target.eat(content)


def _show(findings: Findings, what: str, content: bytes) -> None:
    if len(findings.shown) < MOST_SHOWN:
        findings.shown.append(f"{what}: {content[:200]!r}")


@contextmanager
def _limited(limit_s: float) -> Iterator[None]:
    def stop(_signal: int, _frame: FrameType | None) -> None:
        raise HangError

    before = signal.signal(signal.SIGALRM, stop)
    left = signal.setitimer(signal.ITIMER_REAL, limit_s)
    try:
        yield
    finally:
        # pytest-timeout may have set one.
        signal.setitimer(signal.ITIMER_REAL, *left)
        signal.signal(signal.SIGALRM, before)


def resident_mib() -> float:
    """Return resident memory now; where there is no /proc, its highest value so far."""
    statm = Path("/proc/self/statm")
    if statm.exists():
        pages = int(statm.read_text().split()[1])
        return pages * resource.getpagesize() / MIB
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / MIB  # macOS: bytes. Not run.


def resident_mib_of(pid: int) -> float:
    """Return the resident memory of another process. Needs /proc."""
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    return pages * resource.getpagesize() / MIB


def mutated(content: bytes, random_: random.Random) -> bytes:
    """Return a content cut, flipped, doubled or spliced, one to four times."""
    changed = bytearray(content)
    for _ in range(random_.randint(1, 4)):
        place = random_.randint(0, len(changed))
        match random_.randrange(6):
            case 0:
                del changed[place:]
            case 1 if changed:
                changed[min(place, len(changed) - 1)] = random_.randrange(256)
            case 2:
                changed[place:place] = random_.randbytes(random_.randint(1, 16))
            case 3:
                changed[place:place] = random_.choice(NASTY)
            case 4:
                del changed[place : place + random_.randint(1, 64)]
            case _:
                begin = random_.randint(0, len(changed))
                changed[place:place] = changed[begin : begin + random_.randint(1, 256)]
    return bytes(changed)


NASTY = (
    *(b"{", b"}", b"[", b"]", b'"', b"\\", b"\\u", b"\\ud800", b"\n{", b"\n", b"\0"),
    *(b"null", b"true", b"-1", b"1e999", b"NaN", b"9" * 400, b"\xff\xfe", b"\xef\xbb\xbf"),
    *(b"[" * 50, b"{" * 50, b'{"a":' * 50, b"\xed\xa0\x80", b"\xf0\x9f\x98"),
)
