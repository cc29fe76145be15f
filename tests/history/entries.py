"""Runs for tests of history: what the test says and plain everywhere else."""

from __future__ import annotations

from dataclasses import replace

from orchestrator.history.entry import CheckResult, PhoneEntry, RunEntry, Stamps

STAMPS = Stamps(
    model="iPhone 15 Pro",
    os_build="22G86",
    model_digest="abababababab",
    thermal_start="nominal",
    charging="yes",
    low_power="no",
    engine="coreml",
    entitled="no",
    scenario="release 0123456789ab",
    app="swift",
    virtual="no",
)


def phone(tokens_per_s: float = 200.0, **facts: object) -> PhoneEntry:
    stamps = {name: facts.pop(name) for name in list(facts) if hasattr(STAMPS, name)}
    plain = PhoneEntry(
        udid="00008130-0000000000000001",
        alias="desk-1",
        os="18.6",
        app_build="a1",
        stamps=replace(STAMPS, **stamps),  # type: ignore[arg-type]
        outcome="PASS",
        cause="completed",
        measures={"tokens_per_s": tokens_per_s},
        checks=(CheckResult("memory.peak", "pass", 1e9, "bytes"),),
    )
    return replace(plain, **facts)  # type: ignore[arg-type]


def run(number: int, *phones: PhoneEntry, **facts: object) -> RunEntry:
    plain = RunEntry(
        run_id=f"20260{number:03}T000000Z-abcdef",
        started_s=1_770_000_000.0 + number * 86_400.0,
        outcome="PASS",
        exit_code=0,
        folder=f"/runs/{number}",
        phones=phones or (phone(),),
    )
    return replace(plain, **facts)  # type: ignore[arg-type]


def runs_of(speeds: list[float], first: int = 0, **facts: object) -> list[RunEntry]:
    """Return one run per speed."""
    return [run(first + place, phone(speed, **facts)) for place, speed in enumerate(speeds)]
