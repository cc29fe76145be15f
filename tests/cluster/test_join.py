"""The pure join of what hosts did."""

from __future__ import annotations

import pytest
from msgspec import structs

from orchestrator.cluster.clock import ClockOffset
from orchestrator.cluster.join import Part, interrupted_by, joined_events, joined_plan, joined_run
from orchestrator.domain.errors import UsageError
from orchestrator.runlog.documents import (
    AbsentPhone,
    Expectation,
    PlanDocument,
    PlannedApp,
    PlannedPhone,
    Requirement,
    RunDocument,
)
from orchestrator.runlog.events import Event


def planned(udid: str, alias: str = "vp-01", **changes: object) -> PlannedPhone:
    phone = PlannedPhone(
        udid=udid,
        alias=alias,
        name=alias,
        model="iPhone 16",
        product_type="iPhone17,3",
        os="18.6",
        build="22G86",
        source="usb",
        virtual=True,
        directory=f"{alias}-{udid[-8:]}",
        nonce="0" * 16,
        expected=Expectation(
            memory_class="8gb",
            budget_tokens=2048,
            quantization="int8",
            digest="0" * 64,
            bits_per_weight=8.0,
            capacity_tokens=4096,
            pin_tokens=1,
        ),
    )
    return structs.replace(phone, **changes)


def part(host: str, *phones: PlannedPhone, **changes: object) -> Part:
    run = RunDocument(
        run_id=f"run-of-{host}",
        started_s=100.0,
        virtual=False,
        fleet_version="0.1.0",
        host="Linux 6 x86_64",
        arguments=["soak"],
        owner_pid=1,
        ended_s=200.0,
    )
    plan = PlanDocument(
        run_id=run.run_id,
        seed=1,
        scenario={"name": "smoke"},
        requires=Requirement(checks=["soak.completed"]),
        thresholds={},
        headroom_percent=20.0,
        app=PlannedApp(kind="swift", bundle_id="b", name="n", package_sha256="0" * 64),
        phones=list(phones),
    )
    return structs_or_part(Part(host, run, plan), changes)


def structs_or_part(made: Part, changes: dict[str, object]) -> Part:
    run = structs.replace(made.run, **changes) if changes else made.run
    return Part(made.host, run, made.plan)


ONE, TWO = part("mini-1", planned("A" * 25)), part("mini-2", planned("B" * 25))


def test_each_phone_gets_the_host_that_had_it() -> None:
    plan = joined_plan("joined", [ONE, TWO])
    assert [(phone.udid[0], phone.host) for phone in plan.phones] == [
        ("A", "mini-1"),
        ("B", "mini-2"),
    ]
    assert plan.run_id == "joined"


def test_two_hosts_may_have_the_same_alias() -> None:
    plan = joined_plan("joined", [ONE, TWO])
    assert [phone.alias for phone in plan.phones] == ["vp-01", "vp-01"]
    assert len({phone.directory for phone in plan.phones}) == 2


def test_a_phone_in_two_parts_is_refused_with_both_hosts() -> None:
    with pytest.raises(UsageError, match="is in two parts: mini-1 and mini-2"):
        joined_plan("joined", [ONE, part("mini-2", planned("A" * 25))])


def test_parts_with_another_seed_are_refused_with_both_hosts() -> None:
    other = Part("mini-2", TWO.run, structs.replace(TWO.plan, seed=2))
    with pytest.raises(UsageError, match="mini-1 and mini-2 cannot be joined: they differ in seed"):
        joined_plan("joined", [ONE, other])


def test_a_phone_that_one_host_misses_and_another_has_is_not_absent() -> None:
    gone = [
        AbsentPhone(udid=udid * 25, alias=udid, directory=udid, reason="not attached")
        for udid in "BC"
    ]
    expecting = Part("mini-1", ONE.run, structs.replace(ONE.plan, absent=gone))
    assert [phone.udid[0] for phone in joined_plan("joined", [expecting, TWO]).absent] == ["C"]


def test_a_part_that_never_ended_leaves_the_whole_without_an_end() -> None:
    parts = [ONE, part("mini-2", planned("B" * 25), ended_s=None)]
    assert joined_run("joined", parts, []).ended_s is None
    assert joined_run("joined", [ONE, TWO], []).ended_s == 200.0


def test_what_cut_one_part_short_cut_the_run_short() -> None:
    parts = [ONE, part("mini-2", planned("B" * 25), interrupted_by="SIGTERM")]
    assert interrupted_by(parts) == joined_run("joined", parts, []).interrupted_by == "SIGTERM"


def test_events_are_put_on_one_clock_and_say_their_host() -> None:
    ahead = Part(
        "mini-2",
        TWO.run,
        TWO.plan,
        (Event(at_s=3705.0, kind="launched", facts={"pid": 7}),),
        ClockOffset(3600.0, 0.01),
    )
    behind = Part("mini-1", ONE.run, ONE.plan, (Event(at_s=110.0, kind="launched"),))
    events = joined_events([Event(at_s=101.0, kind="run_started")], [behind, ahead])
    assert [(event.at_s, event.facts.get("host")) for event in events] == [
        (101.0, None),
        (105.0, "mini-2"),
        (110.0, "mini-1"),
    ]
    assert events[1].facts["pid"] == 7


def test_joining_again_does_not_double_the_events() -> None:
    with_events = Part("mini-1", ONE.run, ONE.plan, (Event(at_s=110.0, kind="launched"),))
    once = joined_events([Event(at_s=101.0, kind="run_started")], [with_events])
    assert joined_events(once, [with_events]) == once
