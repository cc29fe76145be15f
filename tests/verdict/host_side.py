"""The host's side of a test: plan, phone, evidence, and the verdict on an app's records."""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING

from orchestrator.config.scenario_catalog import SMOKE
from orchestrator.runlog.documents import (
    AppExit,
    DeviceDocument,
    EvidenceDocument,
    Expectation,
    LaunchWindow,
    PlanDocument,
    PlannedApp,
    PlannedPhone,
    Requirement,
)
from orchestrator.verdict.judge import Judgement, PhoneCase, judge
from tests.verdict.telemetry_spec import BOOT_S, DIGEST, LAUNCH, NONCE, PID, Row, Spec

if TYPE_CHECKING:
    from collections.abc import Iterable

    from orchestrator.runlog.documents import CheckDocument
    from tests.verdict.telemetry_factory import App

# Limits for runs of some hundred tokens and a context of some dozens.
SHORT_RUN = {
    "memory.drift": {"warm_up_tokens": 16.0},
    "memory.static-kv": {"min_rows": 16.0},
    "perf.throughput": {"warm_up_tokens": 16.0},
    "perf.decay": {"warm_up_tokens": 16.0},
    "perf.flat-decode": {"warm_up_tokens": 16.0},
}


def encode(records: Iterable[Row], *, chain_every: int = 32) -> list[bytes]:
    """Return the lines of records in their present order, with fresh `seq` and chain.

    A notice keeps naming the cut it named before.
    """
    rows = list(records)
    new_seq = {row["seq"]: number for number, row in reversed(list(enumerate(rows, 1)))}
    digest, lines = hashlib.sha256(), []
    for number, row in enumerate(rows, 1):
        fresh = {**row, "seq": number}
        if "for_seq" in row:
            fresh["for_seq"] = new_seq.get(row["for_seq"], 10_000_000)
        chained = number % chain_every == 0 or row["kind"] == "bye"
        if chained:
            fresh["chain"] = digest.hexdigest()[:16]
        line = json.dumps(fresh, separators=(",", ":")).encode() + b"\n"
        lines.append(line)
        digest = hashlib.sha256() if chained else digest
        if not chained:
            digest.update(line)
    return lines


def wire_scenario(spec: Spec) -> dict[str, object]:
    return {
        "name": "test",
        "seed": spec.seed,
        "duration_s": 45.0,
        "speed": {"decode_tokens_per_s": 200.0, "prefill_tokens_per_s": 8000.0},
        "policy": {
            "budget_tokens": {"6gb": 32, "8gb": spec.budget, "12gb": spec.budget},
            "pin": "bos" if spec.pin else "none",
            "long_prompt": spec.long_prompt,
            "headroom_percent": 20,
        },
        "prompts": {
            "min_ids": spec.min_ids,
            "max_ids": spec.max_ids,
            "turn_limit": spec.turn_limit,
            "turns_per_conversation": spec.turns_per_conversation,
        },
        "end_every": spec.end_every,
        "sample_period_ms": 100,
        "ballast": [],
        "warnings": [],
        "stop_after_tokens": spec.stop_after,
    }


def planned_phone(spec: Spec) -> PlannedPhone:
    return PlannedPhone(
        udid="00008130-000A1B2C3D4E001C",
        alias="desk-15pro",
        name="Desk",
        model="iPhone 15 Pro",
        product_type="iPhone16,1",
        os="18.4",
        build="22E240",
        source="local",
        virtual=True,
        directory="desk-15pro-3D4E001C",
        nonce=NONCE,
        expected=Expectation(
            memory_class="8gb",
            budget_tokens=spec.budget,
            quantization="int8",
            digest=DIGEST,
            bits_per_weight=8.0,
            capacity_tokens=4096,
            pin_tokens=spec.pin,
            load_ms=10.0,
        ),
    )


def plan_of(spec: Spec, **fields: object) -> PlanDocument:
    given: dict[str, object] = {
        "run_id": "run",
        "seed": spec.seed,
        "scenario": wire_scenario(spec),
        "requires": Requirement(
            checks=list(SMOKE.required_checks), min_trims=1, min_evictions=1, virtual_speed=True
        ),
        "thresholds": SHORT_RUN,
        "headroom_percent": 20.0,
        "app": PlannedApp(
            kind="stand-in", bundle_id="dev.fleet.harness", name="harness", package_sha256="cd" * 32
        ),
        "phones": [planned_phone(spec)],
    }
    return PlanDocument(**{**given, **fields})  # type: ignore[arg-type]


def device_of(**fields: object) -> DeviceDocument:
    given: dict[str, object] = {
        "udid": "00008130-000A1B2C3D4E001C",
        "alias": "desk-15pro",
        "name": "Desk",
        "model": "iPhone 15 Pro",
        "product_type": "iPhone16,1",
        "os": "18.4",
        "build": "22E240",
        "virtual": True,
        "source": "local",
        "physical_memory_bytes": 8_021_032_960,
        "memory_class": "8gb",
    }
    return DeviceDocument(**{**given, **fields})  # type: ignore[arg-type]


def evidence_of(**fields: object) -> EvidenceDocument:
    given: dict[str, object] = {
        "attempt": 1,
        "launches": [
            LaunchWindow(number=1, pid=PID, launch=LAUNCH, started_s=BOOT_S, ended_s=BOOT_S + 60)
        ],
        "exits": [AppExit(pid=PID, at_s=BOOT_S + 5, exit_code=0)],
        "reports": [],
        "alive_at_end": None,
        "journal_pulled": True,
    }
    return EvidenceDocument(**{**given, **fields})  # type: ignore[arg-type]


def case_of(spec: Spec | None = None, **fields: object) -> PhoneCase:
    """Return the case of a healthy run; `fields` replace its parts."""
    spec = spec or Spec()
    plan = fields.pop("plan", None) or plan_of(spec)
    given: dict[str, object] = {
        "plan": plan,
        "phone": planned_phone(spec),
        "device": device_of(),
        "evidence": evidence_of(),
    }
    return PhoneCase(**{**given, **fields})  # type: ignore[arg-type]


def judged(app: App, **fields: object) -> Judgement:
    """Run an app and judge what it wrote."""
    return judge(case_of(app.spec, **fields), encode(app.run()))


def check_of(judgement: Judgement, check_id: str) -> CheckDocument:
    """Return one check of a verdict."""
    return next(check for check in judgement.verdict.checks if check.id == check_id)


def failures(judgement: Judgement) -> set[str]:
    """Return the ids of the failed checks."""
    return {check.id for check in judgement.verdict.checks if check.result == "fail"}
