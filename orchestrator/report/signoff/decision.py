"""Whether a release may be signed off: every gap by its own reason. Pure.

A release passes only if every required cell has a phone that soaked it long enough with every
check, and no real phone in the evidence failed. A waiver excuses one check until a day; nothing
excuses evidence that is missing, virtual or altered.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date
from enum import StrEnum
from typing import TYPE_CHECKING

from orchestrator.domain.outcome import Outcome, Result
from orchestrator.report.signoff.policy import FLOOR

if TYPE_CHECKING:
    from collections.abc import Sequence

    from orchestrator.config.model import ReleaseBlock, ReleaseRequirement, Waiver
    from orchestrator.report.signoff.evidence import PhoneEvidence, RunEvidence

_S_PER_HOUR = 3600.0


class Gap(StrEnum):
    """Why a release is refused."""

    MISSING = "missing cell"
    VIRTUAL = "virtual evidence"
    STAND_IN = "stand-in app"
    UNLISTED = "phone outside the release"
    SHORT = "run too short"
    FAILED = "failed check"
    INCONCLUSIVE = "inconclusive run"
    UNPROVEN = "check without a pass"
    TAMPERED = "tampered evidence"
    UNSEALED = "unsealed evidence"
    SWAPPED = "swapped report"
    MIXED = "different apps"
    EXPIRED = "expired waiver"


@dataclass(frozen=True, slots=True)
class Reason:
    """One gap, said in full."""

    gap: Gap
    text: str


@dataclass(frozen=True, slots=True)
class Cell:
    """One required cell with the phone that fills it."""

    requirement: ReleaseRequirement
    phone: PhoneEvidence | None
    passed: tuple[str, ...] = ()  # check ids
    waived: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Decision:
    """The answer."""

    cells: tuple[Cell, ...]
    reasons: tuple[Reason, ...]  # empty: the release may be signed off
    used_waivers: tuple[Waiver, ...]

    @property
    def passes(self) -> bool:
        """Whether the release may be signed off."""
        return not self.reasons


def decide(release: ReleaseBlock, runs: Sequence[RunEvidence], today: date) -> Decision:
    """Hold a policy against the evidence of one or several runs."""
    valid = [waiver for waiver in release.waivers if date.fromisoformat(waiver.until) >= today]
    phones = [phone for run in runs for phone in run.phones]
    reasons = [*_of_waivers(release, today), *_of_runs(runs)]
    reasons += [reason for phone in phones for reason in _failures(phone, valid)]
    cells = []
    for requirement in release.require:
        cell, gaps = _fill(requirement, phones, valid)
        cells.append(cell)
        reasons += gaps
    used = [waiver for waiver in valid if any(_excuses(waiver, phone) for phone in phones)]
    return Decision(tuple(cells), tuple(dict.fromkeys(reasons)), tuple(used))


def _of_waivers(release: ReleaseBlock, today: date) -> list[Reason]:
    return [
        Reason(
            Gap.EXPIRED,
            f"the waiver of {waiver.check} on {waiver.phone or waiver.model} ({waiver.ticket}, "
            f"{waiver.owner}) held until {waiver.until}",
        )
        for waiver in release.waivers
        if date.fromisoformat(waiver.until) < today
    ]


def _of_runs(runs: Sequence[RunEvidence]) -> list[Reason]:
    reasons = []
    for run in runs:
        if not run.sealed:
            text = f"{run.run_id} never ended by itself, so nothing vouches for its files"
            reasons.append(Reason(Gap.UNSEALED, text))
        reasons += [Reason(Gap.TAMPERED, f"{name} in {run.run_id}") for name in run.tampered]
        if run.swapped is not None:
            reasons.append(Reason(Gap.SWAPPED, f"{run.run_id}: {run.swapped}"))
    apps = {run.app_sha256: run for run in runs}
    if len(apps) > 1:
        listed = ", ".join(f"{run.run_id} {digest[:12]}" for digest, run in apps.items())
        reasons.append(Reason(Gap.MIXED, f"the runs soaked different app packages: {listed}"))
    return reasons


def _failures(phone: PhoneEvidence, waivers: Sequence[Waiver]) -> list[Reason]:
    """Return what a failing phone holds against the release, whichever cells are required."""
    if phone.outcome != Outcome.FAIL or phone.virtual or phone.stand_in:
        return []
    failed = [check for check in phone.checks if check.result == Result.FAIL]
    if not failed:
        return [Reason(Gap.FAILED, f"{phone.who}: {phone.cause}: {phone.explanation}")]
    return [
        Reason(Gap.FAILED, f"{check.id} on {phone.who}: {check.reason or phone.explanation}")
        for check in failed
        if not _is_waived(check.id, phone, waivers)
    ]


def _fill(
    requirement: ReleaseRequirement, phones: Sequence[PhoneEvidence], waivers: Sequence[Waiver]
) -> tuple[Cell, list[Reason]]:
    """Return the cell with the longest soak that fills it, or empty with what each one lacks."""
    name = f"{requirement.model}, iOS {requirement.os}"
    offered = [phone for phone in phones if _matches(requirement, phone)]
    gaps: list[Reason] = []
    for phone in sorted(offered, key=lambda each: -each.inference_s):
        lacks = _lacks(requirement, phone, waivers)
        if not lacks:
            return _filled(requirement, phone, waivers), []
        gaps += lacks
    if not offered:
        gaps = [Reason(Gap.MISSING, f"{name}: no run has such a phone")]
    return Cell(requirement, None), gaps


def _filled(
    requirement: ReleaseRequirement, phone: PhoneEvidence, waivers: Sequence[Waiver]
) -> Cell:
    wanted = _wanted(requirement)
    failed = [check.id for check in phone.checks if check.result == Result.FAIL]
    waived = [
        check_id
        for check_id in dict.fromkeys([*wanted, *failed])
        if not _passes(check_id, phone) and _is_waived(check_id, phone, waivers)
    ]
    passed = [check_id for check_id in wanted if _passes(check_id, phone)]
    return Cell(requirement, phone, tuple(passed), tuple(waived))


def _lacks(
    requirement: ReleaseRequirement, phone: PhoneEvidence, waivers: Sequence[Waiver]
) -> list[Reason]:
    unfit = _unfit(phone)
    if unfit is not None:
        return [unfit]
    lacks = _failures(phone, waivers)
    need_s = requirement.min_hours * _S_PER_HOUR
    if phone.inference_s < need_s:
        have = phone.inference_s / _S_PER_HOUR
        text = f"{phone.who}: {have:.3g} h of inference, {requirement.min_hours:g} h are required"
        lacks.append(Reason(Gap.SHORT, text))
    for check_id in _wanted(requirement):
        check = phone.check(check_id)
        if _passes(check_id, phone) or _is_waived(check_id, phone, waivers):
            continue
        if check is None or check.result != Result.FAIL:
            said = f"{check.result}: {check.reason}" if check else "not measured by this run"
            lacks.append(Reason(Gap.UNPROVEN, f"{check_id} on {phone.who}: {said}"))
    return lacks


def _unfit(phone: PhoneEvidence) -> Reason | None:
    """Return why a phone is no evidence at all."""
    if phone.virtual:
        return Reason(Gap.VIRTUAL, f"{phone.who} is a virtual phone")
    if phone.stand_in:
        return Reason(Gap.STAND_IN, f"{phone.who} ran the stand-in app, not the Swift one")
    if phone.unlisted is not None:
        return Reason(Gap.UNLISTED, f"{phone.who}: {phone.unlisted}")
    if phone.outcome not in (Outcome.PASS, Outcome.FAIL):
        return Reason(Gap.INCONCLUSIVE, f"{phone.who}: {phone.outcome}, {phone.explanation}")
    return None


def _wanted(requirement: ReleaseRequirement) -> list[str]:
    return list(dict.fromkeys([*FLOOR, *requirement.checks]))


def _passes(check_id: str, phone: PhoneEvidence) -> bool:
    check = phone.check(check_id)
    return check is not None and check.result == Result.PASS


def _matches(requirement: ReleaseRequirement, phone: PhoneEvidence) -> bool:
    return phone.model == requirement.model and os_matches(requirement.os, phone.os)


def os_matches(pattern: str, os: str) -> bool:
    """Return whether an iOS is the wanted one; `18.x` is any 18, `18.5` is 18.5 and not 18.5.1."""
    if pattern.endswith(".x"):
        stem = pattern.removesuffix(".x")
        return os == stem or os.startswith(f"{stem}.")
    return os == pattern


def _is_waived(check_id: str, phone: PhoneEvidence, waivers: Sequence[Waiver]) -> bool:
    return any(waiver.check == check_id and _covers(waiver, phone) for waiver in waivers)


def _covers(waiver: Waiver, phone: PhoneEvidence) -> bool:
    return (
        waiver.model in (None, phone.model)
        and waiver.phone in (None, phone.alias)
        and (waiver.os is None or os_matches(waiver.os, phone.os))
    )


def _excuses(waiver: Waiver, phone: PhoneEvidence) -> bool:
    """Return whether a waiver is needed: it covers a phone whose check does not pass."""
    check = phone.check(waiver.check)
    return check is not None and check.result != Result.PASS and _covers(waiver, phone)
