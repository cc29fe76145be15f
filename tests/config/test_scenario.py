import pytest

from orchestrator.config.fields import from_environment, parse_duration
from orchestrator.config.model import FleetConfig, PolicyBlock, WorkloadBlock
from orchestrator.config.scenario import scenario_of, wire_scenario, with_budget_of
from orchestrator.config.scenario_catalog import SCENARIOS, SELFTEST, SMOKE
from orchestrator.domain.checks import CHECK_IDS
from orchestrator.domain.errors import UsageError


def test_overrides_change_the_workload_and_never_what_is_required() -> None:
    workload = WorkloadBlock(decode_tokens_per_s=900.0, ballast_from_token=10, ballast_to_token=20)
    scenario = scenario_of("smoke", workload, duration_s=5.0)
    assert (scenario.decode_tokens_per_s, scenario.duration_s) == (900.0, 5.0)
    assert (scenario.ballast[0].from_token, scenario.ballast[0].to_token) == (10, 20)
    assert scenario.required_checks == SMOKE.required_checks
    assert (scenario.min_trims, scenario.min_evictions) == (3, 1)


def test_an_unknown_scenario_names_the_ones_there_are() -> None:
    with pytest.raises(UsageError, match=r"unknown scenario 'smok'\. The scenarios are smoke"):
        scenario_of("smok", WorkloadBlock(), None)


@pytest.mark.parametrize(
    "workload",
    [
        WorkloadBlock(min_prompt_ids=600),
        WorkloadBlock(ballast_from_token=5000),
        WorkloadBlock(stop_after_tokens=3, relaunches=3),
    ],
)
def test_contradicting_ranges_are_refused(workload: WorkloadBlock) -> None:
    with pytest.raises(UsageError, match="workload"):
        scenario_of("smoke", workload, None)


def test_the_wire_form_has_the_protocols_keys() -> None:
    wire = wire_scenario(SMOKE, PolicyBlock(), seed=7)
    assert wire["seed"] == 7
    assert set(wire) == {
        "name", "seed", "duration_s", "speed", "policy", "prompts", "end_every",
        "sample_period_ms", "ballast", "warnings", "stop_after_tokens",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("text", "seconds"), [("60s", 60.0), ("30m", 1800.0), ("8h", 28800.0), ("1500ms", 1.5)]
)
def test_durations_carry_their_unit(text: str, seconds: float) -> None:
    assert parse_duration(text) == pytest.approx(seconds)


@pytest.mark.parametrize("text", ["60", "0s", "s", "-5s", "5d", "", "1e3s"])
def test_a_duration_without_a_known_unit_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="a duration"):
        parse_duration(text)


def test_texts_from_the_environment_are_none_where_a_name_is_not_set(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("FLEET_TEST_TEAM", "T1")
    monkeypatch.delenv("FLEET_TEST_NONE", raising=False)
    assert from_environment("${FLEET_TEST_TEAM}-x") == "T1-x"
    assert from_environment("${FLEET_TEST_NONE}") is None
    assert from_environment(None) is None


@pytest.mark.parametrize("text", ["99999999999999999999s", "٣s", "1.s"])
def test_absurd_durations_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match="a duration"):
        parse_duration(text)


def test_what_a_scenario_does_not_do_is_not_sent() -> None:
    rare = {"pause_ms", "audits", "background", "reloads"}
    assert not rare & set(wire_scenario(SMOKE, PolicyBlock(), seed=7))
    assert rare <= set(wire_scenario(SELFTEST, PolicyBlock(), seed=7))


def test_timed_warnings_name_their_phase() -> None:
    wire = wire_scenario(SELFTEST, PolicyBlock(), seed=7)
    assert wire["warnings"] == [
        {"at_token": 250},
        {"at_token": 450, "phase": "prefill"},
        {"at_token": 620, "phase": "idle"},
    ]


def test_the_self_test_requires_every_check() -> None:
    assert SELFTEST.required_checks == CHECK_IDS
    assert SELFTEST.virtual_speed
    assert not SMOKE.virtual_speed


def test_a_moved_ramp_leaves_those_that_come_back_later() -> None:
    workload = WorkloadBlock(ballast_from_token=10, ballast_to_token=20)
    scenario = scenario_of("pressure", workload, None)
    assert (scenario.ballast[0].from_token, scenario.ballast[0].to_token) == (10, 20)
    assert scenario.ballast[1:] == SCENARIOS["pressure"].ballast[1:]


def test_a_scenarios_budget_holds_where_the_policy_sets_none() -> None:
    edge = SCENARIOS["budget-edge"]
    lowered = with_budget_of(FleetConfig(), edge)
    assert lowered.policy.scenario_budget_tokens == 512
    own = FleetConfig(policy=PolicyBlock(scenario_budget_tokens=700))
    assert with_budget_of(own, edge) is own
    assert with_budget_of(FleetConfig(), SMOKE) == FleetConfig()


@pytest.mark.parametrize("name", SCENARIOS)
def test_the_first_cycle_lies_in_the_first_4000_tokens(name: str) -> None:
    scenario = SCENARIOS[name]
    ramps = [ramp.to_token + ramp.hold_tokens for ramp in scenario.ballast]
    visits = [visit.at_token for visit in scenario.background]
    for tokens in (ramps, visits, scenario.audit_at_tokens, scenario.reload_at_tokens):
        assert not tokens or min(tokens) < 4000
    early = [token for token in ramps if token < 4000]
    assert len(early) >= scenario.min_evictions
    assert scenario.purpose.endswith(".")


def test_the_stand_in_app_plays_what_it_knows() -> None:
    played = {name for name, scenario in SCENARIOS.items() if not scenario.needs_swift}
    assert played == {"smoke", "thermal", "budget-edge", "endurance"}


def test_relaunches_are_in_the_plan_alone_where_there_are_some() -> None:
    once = scenario_of("smoke", WorkloadBlock(), None)
    twice = scenario_of("smoke", WorkloadBlock(relaunches=2), None)
    assert "relaunches" not in wire_scenario(once, PolicyBlock(), seed=7)
    assert wire_scenario(twice, PolicyBlock(), seed=7)["relaunches"] == {"count": 2}
    assert scenario_of("compute-units", WorkloadBlock(relaunches=0), None).relaunches == 0
