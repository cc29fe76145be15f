"""How much a benchmark measures."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Scale:
    """Sizes of all parts; `QUICK` shows that they run and measures nothing of worth."""

    rounds: int = 5
    listed_phones: tuple[int, ...] = (1, 10, 50)
    processes: tuple[int, ...] = (50, 150, 450)  # in a jetsam report
    pulled_reports: tuple[int, ...] = (20, 200)
    pushed_mib: tuple[int, ...] = (8, 64, 256)
    hours: tuple[float, ...] = (2.0, 6.0, 12.0)
    soaked_phones: tuple[int, ...] = (1, 10)
    soak_s: float = 40.0
    farm_phones: int = 100
    keepers: int = 10


QUICK = Scale(
    rounds=1,
    listed_phones=(1, 2),
    processes=(5, 10),
    pulled_reports=(3,),
    pushed_mib=(1, 2),
    hours=(0.005, 0.01),
    soaked_phones=(1,),
    soak_s=7.0,
    farm_phones=2,
    keepers=1,
)
