"""The plan of a run: pure, made before any phone is touched, and written first."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from orchestrator.config.scenario import wire_scenario
from orchestrator.device.discovery import normal_udid
from orchestrator.device.selection import Skipped
from orchestrator.domain.errors import UsageError
from orchestrator.domain.iphone import by_product_type
from orchestrator.domain.memory_class import MemoryClass
from orchestrator.runlog.documents import (
    AbsentPhone,
    Expectation,
    PlanDocument,
    PlannedApp,
    PlannedPhone,
    Requirement,
    SkippedPhone,
)
from orchestrator.runlog.layout import device_directory_name

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

    from orchestrator.config.model import FleetConfig, PolicyBlock
    from orchestrator.config.workload import Scenario
    from orchestrator.domain.phone import Phone
    from orchestrator.harness.models import ModelPackage
    from orchestrator.soak.ledger import Quarantine

_NONCE_DIGITS: Final = 16


@dataclass(frozen=True, slots=True)
class Absence:
    """A phone that belongs to the run and cannot take part."""

    udid: str
    alias: str
    reason: str


@dataclass(frozen=True, slots=True)
class Participants:
    """Who takes part, who is left out, who is missing."""

    phones: tuple[Phone, ...]
    skipped: tuple[Skipped, ...]
    absent: tuple[Absence, ...]


def part_quarantined(
    phones: Sequence[Phone], quarantined: Mapping[str, Quarantine], expected: Collection[str]
) -> Participants:
    """Part phones in quarantine from those that may take part.

    Args:
        phones: Those that were selected.
        quarantined: What holds now, by UDID.
        expected: UDIDs that the configuration counts on: such a phone is missing, not skipped.
    """
    wanted = {normal_udid(udid) for udid in expected}
    skipped: list[Skipped] = []
    absent: list[Absence] = []
    for phone in phones:
        quarantine = quarantined.get(phone.udid)
        if quarantine is None:
            continue
        reason = f"in quarantine: {quarantine.reason}"
        if phone.udid in wanted:
            absent.append(Absence(phone.udid, phone.alias, reason))
        else:
            skipped.append(Skipped(phone, reason))
    taking_part = tuple(phone for phone in phones if phone.udid not in quarantined)
    return Participants(taking_part, tuple(skipped), tuple(absent))


def quantization_of(memory_class: MemoryClass) -> str:
    """Return the contract's quantization: 8-bit from the 8 GB class up, else 4-bit."""
    return "int4" if memory_class is MemoryClass.GB6 else "int8"


def expectation_of(
    phone: Phone,
    config: FleetConfig,
    packages: Mapping[str, ModelPackage],
    limit_bytes: int | None = None,
) -> Expectation:
    """Return what the host expects of a phone, from the catalog and the policy alone.

    Args:
        phone: The phone.
        config: Holds the policy.
        packages: By quantization.
        limit_bytes: The memory limit that a calibration measured; None where there is none.
    """
    model = by_product_type(phone.product_type)
    memory_class = model.memory_class if model else MemoryClass.GB6
    package = packages.get(quantization_of(memory_class))
    if package is None:
        name = quantization_of(memory_class)
        raise UsageError(
            f"{phone.alias} needs an {name} model, and model.{name} names none",
            remedy=f"Set model.{name} to a kit of `fleet model build --weights {name}`",
        )
    policy = config.policy
    limits = [policy.budget_tokens[memory_class], package.capacity]
    if policy.scenario_budget_tokens is not None:
        limits.append(policy.scenario_budget_tokens)
    return Expectation(
        memory_class=memory_class.value,
        budget_tokens=min(limits),
        quantization=package.quantization,
        digest=package.digest,
        bits_per_weight=float(package.bits_per_weight),
        capacity_tokens=package.capacity,
        pin_tokens=1 if policy.pin == "bos" and package.has_bos else 0,
        load_ms=package.load_ms,
        limit_bytes=limit_bytes,
    )


def lowered_budgets(policy: PolicyBlock, expected: Iterable[Expectation]) -> list[str]:
    """Return a sentence per memory class whose token budget the model's capacity lowers."""
    said: dict[str, None] = {}
    for one in expected:
        wanted = policy.budget_tokens[MemoryClass(one.memory_class)]
        if policy.scenario_budget_tokens is not None:
            wanted = min(wanted, policy.scenario_budget_tokens)
        if wanted > one.capacity_tokens:
            said[
                f"note: the token budget of {one.memory_class} phones, {wanted:,}, is above the "
                f"model's capacity: it is lowered to {one.budget_tokens:,}"
            ] = None
    return list(said)


def _provable(required: Sequence[str], packages: Mapping[str, ModelPackage]) -> list[str]:
    """Return the checks that a run can require: the tokens of a witness alone prove their rows."""
    proves = all(package.kind == "witness" for package in packages.values())
    return [check for check in required if proves or check != "context.proven"]


def nonce_of(seed: int, udid: str) -> str:
    """Return a phone's nonce, 16 hex digits: another on each phone, equal for equal seeds."""
    return hashlib.sha256(f"{seed}:{udid}".encode()).hexdigest()[:_NONCE_DIGITS]


def make_plan(
    run_id: str,
    seed: int,
    config: FleetConfig,
    scenario: Scenario,
    participants: Participants,
    app: PlannedApp,
    packages: Mapping[str, ModelPackage],
    limits_bytes: Mapping[str, int] | None = None,
) -> PlanDocument:
    """Return the plan of a run; `limits_bytes` holds calibrated memory limits by UDID."""
    limits_bytes = limits_bytes or {}
    return PlanDocument(
        run_id=run_id,
        seed=seed,
        scenario=wire_scenario(scenario, config.policy, seed),
        requires=Requirement(
            checks=_provable(scenario.required_checks, packages),
            min_trims=scenario.min_trims,
            min_evictions=scenario.min_evictions,
            virtual_speed=scenario.virtual_speed,
        ),
        thresholds={name: dict(limits) for name, limits in config.checks.items()},
        headroom_percent=config.policy.headroom_percent,
        app=app,
        phones=[
            _planned(
                phone, seed, expectation_of(phone, config, packages, limits_bytes.get(phone.udid))
            )
            for phone in participants.phones
        ],
        absent=[_absent(absence) for absence in participants.absent],
        skipped=_skipped(participants.skipped),
    )


def _planned(phone: Phone, seed: int, expected: Expectation) -> PlannedPhone:
    return PlannedPhone(
        udid=phone.udid,
        alias=phone.alias,
        name=phone.name,
        model=phone.model,
        product_type=phone.product_type,
        os=phone.os,
        build=phone.build,
        source=phone.source,
        virtual=phone.virtual,
        tags=list(phone.tags),
        host=phone.host or None,
        directory=device_directory_name(phone.alias, phone.udid),
        nonce=nonce_of(seed, phone.udid),
        expected=expected,
    )


def _absent(absence: Absence) -> AbsentPhone:
    return AbsentPhone(
        udid=absence.udid,
        alias=absence.alias,
        directory=device_directory_name(absence.alias, absence.udid),
        reason=absence.reason,
    )


def _skipped(skipped: Sequence[Skipped]) -> list[SkippedPhone]:
    return [
        SkippedPhone(
            udid=entry.phone.udid,
            alias=entry.phone.alias,
            model=entry.phone.model,
            os=entry.phone.os,
            reason=entry.reason,
        )
        for entry in skipped
    ]
