"""Records and evidence to a calibration, and its findings: pure."""

from __future__ import annotations

from dataclasses import replace

import msgspec
import pytest

from orchestrator.domain.calibration import (
    Calibration,
    CalibrationKey,
    Deaths,
    StateCost,
    differs,
    findings,
)
from orchestrator.domain.iphone import MIB
from orchestrator.runlog.documents import AppExit, DeviceDocument, EvidenceDocument
from orchestrator.runlog.telemetry import (
    AnyRecord,
    Handler,
    Load,
    MemoryWarning,
    Sample,
    State,
)
from orchestrator.soak.calibrating.reading import (
    DeathRun,
    LaunchFacts,
    calibration_of,
    read_launch,
)
from tests.harness.golden_launch import GOLDEN
from tests.verdict.host_side import planned_phone
from tests.verdict.telemetry_spec import Spec

KEY = CalibrationKey("iPhone17,3", "22G86", entitled=False, virtual=True)
HOLDS = Calibration(
    key=KEY,
    udid="u",
    alias="vp-01",
    model="iPhone 16",
    os="18.6",
    measured_s=1.0,
    stand_in=False,
    limit_bytes=3376 * MIB,
    physical_memory_bytes=8_021_032_960,
    sysmon_memory_bytes=8_021_032_960,
    handlers=("uikit",),
    warnings=("kernel/uikit",),
    warnings_noticed=2,
    deaths=Deaths(2, ("signal 9",), 2, (3.0, 3.1)),
    own_kill="exit code 0",
    cold_load_ms=900.0,
    warm_load_ms=90.0,
)


def warning(seq: int, origin: str, footprint: int) -> AnyRecord:
    return MemoryWarning(
        launch="l",
        seq=seq,
        t_ns=seq,
        n=1,
        origin=origin,
        channel="uikit",
        footprint=footprint,
        host_bytes=0,
    )


def sample(seq: int, neural: int | None) -> AnyRecord:
    return Sample(
        launch="l",
        seq=seq,
        t_ns=seq,
        footprint=150,
        peak=150,
        available=1,
        compressed=0,
        kv=0,
        ballast=0,
        weights=0,
        host_bytes=0,
        n=0,
        surfaces=0,
        thermal="nominal",
        low_power=False,
        foreground=True,
        tokens_total=0,
        neural_ledger=neural,
    )


def state(seq: int, action: str, footprint: int) -> AnyRecord:
    return State(
        launch="l",
        seq=seq,
        t_ns=seq,
        action=action,
        id=1,
        purpose="context",
        bytes=64,
        footprint=footprint,
        host_bytes=0,
    )


def load(seq: int, ms: float, *, cold: bool) -> AnyRecord:
    return Load(
        launch="l",
        seq=seq,
        t_ns=seq,
        digest="d",
        bits_per_weight=4.0,
        compute_units="none",
        plan=[],
        cold=cold,
        ms=ms,
        phase="loaded",
        weights_bytes=1,
        footprint=100,
        host_bytes=0,
    )


def told(*records: AnyRecord) -> LaunchFacts:
    facts = LaunchFacts()
    for each in records:
        facts.observe(each)
    return facts


def test_the_first_state_costs_what_the_records_around_it_show() -> None:
    facts = told(
        load(1, 5.0, cold=True),
        sample(2, 1000),
        state(3, "made", 170),
        sample(4, 1040),
        state(5, "made", 900),
        sample(6, 5000),
    )
    assert facts.state == StateCost(64, 20, 40)


def test_a_phone_without_visible_ledgers_has_no_neural_cost() -> None:
    facts = told(load(1, 5.0, cold=True), state(2, "made", 130), sample(3, None))
    assert facts.state == StateCost(64, 30, None)


def test_each_channel_is_told_once_and_only_the_kernels_first_warning_counts() -> None:
    registered = Handler(launch="l", seq=1, t_ns=1, channel="uikit", registered=True)
    refused = Handler(launch="l", seq=2, t_ns=2, channel="dispatch", registered=False)
    warnings = (warning(3, "synthetic", 5), warning(4, "kernel", 70), warning(5, "kernel", 90))
    facts = told(registered, registered, refused, *warnings)
    assert facts.handlers == ["uikit"]
    assert facts.warnings == ["synthetic/uikit", "kernel/uikit"]
    assert facts.warned_at_bytes == 70


def death(
    number: int, *records: AnyRecord, delays: tuple[float, ...] = (), signal: int = 9
) -> DeathRun:
    launch = read_launch(GOLDEN.read_bytes().splitlines())
    launch.loads.clear()
    for each in records:
        launch.observe(each)
    gone = AppExit(pid=7, at_s=1.0, signal=signal)
    return DeathRun(
        run_id=f"run-{number}",
        phone=planned_phone(Spec()),
        device=DeviceDocument(
            udid="u",
            alias="a",
            name="n",
            model="m",
            product_type="p",
            os="18.6",
            build="22G86",
            virtual=True,
            source="s",
            physical_memory_bytes=77,
        ),
        evidence=EvidenceDocument(
            attempt=1, launches=[], exits=[gone], reports=[], peak_observed_bytes=10 * number
        ),
        launch=launch,
        report_delays_s=delays,
    )


def test_a_phones_runs_make_one_calibration() -> None:
    cold, warm = load(900, 800.0, cold=True), load(901, 80.0, cold=False)
    found = calibration_of([death(1, cold, delays=(3.04,)), death(2, warm)], "signal 15", 5.0)
    assert found is not None
    assert found.runs == ("run-1", "run-2")
    assert (found.cold_load_ms, found.warm_load_ms) == (800.0, 80.0)
    assert found.deaths == Deaths(2, ("signal 9",), 1, (3.0,))
    assert found.deaths.quota_per_day == 1
    assert (found.own_kill, found.sysmon_memory_bytes, found.host_peak_bytes) == (
        "signal 15",
        77,
        20,
    )


def test_a_phone_whose_app_never_said_hello_has_no_calibration() -> None:
    silent = replace(death(1), launch=LaunchFacts())
    assert calibration_of([silent], None, 5.0) is None


def test_an_app_that_was_ended_by_us_or_by_itself_was_not_killed() -> None:
    ended = replace(
        death(1),
        evidence=EvidenceDocument(
            attempt=1, launches=[], exits=[AppExit(pid=7, at_s=1.0, exit_code=0)], reports=[]
        ),
    )
    ours = death(2)
    ours = replace(ours, evidence=msgspec.structs.replace(ours.evidence, killed_by_host=True))
    found = calibration_of([ended, ours], None, 5.0)
    assert found is not None
    assert found.deaths.count == 0


def test_a_phone_that_is_as_documented_has_no_finding() -> None:
    assert findings(HOLDS) == []


@pytest.mark.parametrize(
    ("changed", "sentence"),
    [
        ({"limit_bytes": 3000 * MIB}, "is 3000 MiB, documented are 3376 MiB"),
        ({"limit_bytes": None}, "the memory limit was not measured"),
        ({"physical_memory_bytes": 6_000_000_000}, "physicalMemory is 6,000,000,000 bytes"),
        ({"sysmon_memory_bytes": 1}, "sysmontap 1"),
        ({"warnings": ()}, "the kernel gave no memory warning"),
        ({"warnings": ("kernel/dispatch",)}, "no warning arrived on the channel 'uikit'"),
        ({"warnings_noticed": 0}, "told of no memory warning"),
        ({"warm_load_ms": None}, "no load was warm"),
        ({"own_kill": "signal 9"}, "look the same to the host: signal 9"),
        ({"deaths": Deaths()}, "did not kill the app past its limit"),
        ({"deaths": Deaths(2, ("signal 9",), 1, (3.0,))}, "1 of 2 kills left a JetsamEvent"),
        ({"key": replace(KEY, entitled=True)}, "documented are 6144 MiB"),
        ({"key": replace(KEY, product_type="iPhone99,1")}, "not in the catalog"),
    ],
)
def test_what_is_not_as_documented_is_a_finding(changed: dict[str, object], sentence: str) -> None:
    told = findings(replace(HOLDS, **changed))  # type: ignore[arg-type]
    assert any(sentence in each for each in told), told


def test_limits_are_equal_within_the_grain_of_their_pages() -> None:
    assert not differs(3376 * MIB + MIB, 3376 * MIB)
    assert differs(2867 * MIB, 3000 * MIB)
