"""Memory that the app holds on purpose, so that the phone comes under pressure."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Protocol

from orchestrator.harness.standin.memory import MemoryGauge, Region, touched_region

if TYPE_CHECKING:
    from collections.abc import Callable

    from orchestrator.harness.standin.scenario import BallastSpan

LEAK_STEPS: Final = 200  # steps of a leak from nothing to the limit


class Growth(Protocol):
    """Memory that grows with the tokens."""

    @property
    def host_bytes(self) -> int:
        """Host bytes held."""

    def after_token(self, ordinal: int) -> bool:
        """Act after a token and return whether the memory grew."""


class Ballast:
    """The ballast of one span of tokens: grows in equal steps, stays, is released once."""

    def __init__(
        self, span: BallastSpan, gauge: MemoryGauge, announce: Callable[[str, str], None]
    ) -> None:
        """Hold nothing yet.

        Args:
            span: When and how far to grow.
            gauge: Limit, scale and footprint.
            announce: Writes a breadcrumb before the first step.
        """
        self._span, self._gauge, self._announce = span, gauge, announce
        self._region: Region | None = None
        self._whole_bytes = 0  # host bytes once it is grown
        self._over = False

    @property
    def host_bytes(self) -> int:
        """Host bytes held."""
        return self._region.touched_bytes if self._region else 0

    def after_token(self, ordinal: int) -> bool:
        """Act after a token and return whether the ballast grew."""
        span = self._span
        if self._over or ordinal < span.from_token:
            return False
        if ordinal >= span.to_token + span.hold_tokens and ordinal > span.to_token:
            self.release()
            return False
        if self._region is None and not self._begin():
            return False
        return self._grow(ordinal)

    def _begin(self) -> bool:
        """Map the whole, read limit and footprint once; return False where there is no limit."""
        limit_bytes = self._gauge.limit_bytes
        if limit_bytes is None:
            self._over = True
            return False
        wanted_bytes = limit_bytes * self._span.to_percent // 100
        missing_bytes = max(0, wanted_bytes - self._gauge.read().footprint)
        self._announce(
            "ballast", f"to {self._span.to_percent} % of the limit by token {self._span.to_token}"
        )
        self._whole_bytes = missing_bytes // self._gauge.scale
        self._region = Region(self._whole_bytes)
        return True

    def _grow(self, ordinal: int) -> bool:
        span = self._span
        if self._region is None or ordinal > span.to_token:
            return False
        steps = span.to_token - span.from_token + 1
        held_bytes = self._region.touched_bytes
        self._region.touch(self._whole_bytes * (ordinal - span.from_token + 1) // steps)
        return self._region.touched_bytes > held_bytes

    def release(self) -> None:
        """Free all of it, if it has begun; it does not grow again."""
        if self._region is None:
            return
        self._region.release()
        self._region = None
        self._over = True


class Leak:
    """The defect `jetsam`: memory that is never given back, until the kernel ends the app."""

    def __init__(self, from_token: int, gauge: MemoryGauge) -> None:
        self._from_token, self._gauge = from_token, gauge
        self._regions: list[Region] = []

    @property
    def host_bytes(self) -> int:
        """Host bytes held."""
        return sum(region.touched_bytes for region in self._regions)

    def after_token(self, ordinal: int) -> bool:
        """Leak one step and return whether it did."""
        if ordinal < self._from_token or self._gauge.limit_bytes is None:
            return False
        step_bytes = self._gauge.limit_bytes // LEAK_STEPS // self._gauge.scale
        self._regions.append(touched_region(step_bytes))
        return True
