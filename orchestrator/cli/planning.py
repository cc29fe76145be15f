"""Gathers what `fleet plan` shows: everything that a soak decides before it touches a phone."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from orchestrator.cli.compose import choose, find
from orchestrator.cli.printing import note
from orchestrator.cli.refusals import refuse_unknown_defect
from orchestrator.cli.running import packages_of
from orchestrator.config.load import load_config
from orchestrator.config.scenario import scenario_of, with_budget_of
from orchestrator.device.discovery import Discovery, UsbmuxSource
from orchestrator.domain.errors import UsageError
from orchestrator.domain.launch_part import launch_part
from orchestrator.domain.phone import Phone
from orchestrator.harness.models import BOS_ID, END_ID, FIRST_ID, WitnessShape
from orchestrator.soak.forecast import Vocabulary, forecast
from orchestrator.soak.plan import expectation_of, lowered_budgets, nonce_of
from orchestrator.soak.session import longest_s
from orchestrator.verdict.catalog import unknown_limit
from orchestrator.virtual.identity import identity_of, model_of

if TYPE_CHECKING:
    from orchestrator.cli.compose import SoakOptions
    from orchestrator.config.model import FleetConfig
    from orchestrator.config.workload import Scenario
    from orchestrator.runlog.documents import Expectation
    from orchestrator.soak.forecast import Forecast
    from orchestrator.soak.plan import Participants

_FARM_SEED = 0  # of the phones that --virtual starts


@dataclass(frozen=True, slots=True)
class PlannedSoak:
    """What would happen."""

    scenario: Scenario
    participants: Participants
    expected: dict[str, Expectation]  # by UDID
    forecasts: dict[str, Forecast]  # by UDID; empty for an engine whose tokens nobody knows
    longest_s: float


async def planned(options: SoakOptions) -> PlannedSoak:
    """Return what a soak with these options would do; touches no phone, writes nothing.

    Raises:
        FleetError: As the soak itself would.
    """
    config = load_config(options.config, options.settings)
    mistake = unknown_limit(config.checks)
    if mistake is not None:
        raise UsageError(mistake, remedy="`fleet explain CHECK` lists its limits")
    refuse_unknown_defect(config.harness.defect)
    scenario = scenario_of(options.scenario or config.scenario, config.workload, options.duration_s)
    config = with_budget_of(config, scenario)
    if options.virtual:
        found = Discovery(_virtual_phones(config), (), (), ())
    else:
        found = await find(config, [UsbmuxSource(s.name, s.usbmux) for s in config.sources])
    participants = choose(options, config, found)
    packages = {package.quantization: package for package in packages_of(config)}
    expected = {
        phone.udid: expectation_of(phone, config, packages) for phone in participants.phones
    }
    for sentence in lowered_budgets(config.policy, expected.values()):
        note(sentence)
    return PlannedSoak(
        scenario,
        participants,
        expected,
        {
            udid: _forecast(scenario, options.seed, udid, one)
            for udid, one in expected.items()
            if config.model.engine == "witness"
        },
        longest_s(scenario.duration_s),
    )


def _forecast(scenario: Scenario, seed: int, udid: str, expected: Expectation) -> Forecast:
    words = Vocabulary(FIRST_ID, WitnessShape(0).vocab, END_ID, BOS_ID)
    nonce = nonce_of(seed, udid)
    part = launch_part(scenario.duration_s, scenario.stop_after_tokens, scenario.relaunches, 1)
    first = replace(
        scenario, duration_s=part.duration_s, stop_after_tokens=part.stop_after_tokens
    )  # every launch begins anew with the same prompts
    return forecast(first, seed, nonce, expected.budget_tokens, expected.pin_tokens, words)


def _virtual_phones(config: FleetConfig) -> tuple[Phone, ...]:
    """Return the phones that --virtual would start."""
    identities = [
        identity_of(model_of(spec.model), spec.os, index, _FARM_SEED)
        for index, spec in enumerate(config.virtual.phones)
    ]
    return tuple(
        Phone(
            udid=one.udid,
            alias=one.name,
            name=one.name,
            product_type=one.model.product_type,
            os=one.os,
            build=one.build,
            source="virtual",
            virtual=True,
        )
        for one in identities
    )
