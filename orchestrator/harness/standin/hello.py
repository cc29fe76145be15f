"""The first records of a launch: who runs what, with which inputs."""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING

from orchestrator.harness.standin.identity import APP, APP_VERSION
from orchestrator.harness.standin.memory import PAGE_BYTES

if TYPE_CHECKING:
    from orchestrator.harness.standin.identity import Launch
    from orchestrator.harness.standin.memory import Reading
    from orchestrator.harness.standin.start import SoakPlan


def hello_fields(launch: Launch, plan: SoakPlan, reading: Reading) -> dict[str, object]:
    """Return the fields of `hello`."""
    return {**_app(launch), **_phone(launch, reading), **_model(plan), **_run(plan)}


def _app(launch: Launch) -> dict[str, object]:
    return {
        "app": APP,
        "app_version": APP_VERSION,
        "stand_in": True,
        "build": "stand-in",
        "pid": os.getpid(),
        "lc_uuid": launch.executable_uuid,
    }


def _phone(launch: Launch, reading: Reading) -> dict[str, object]:
    return {
        "device": launch.product_type,
        "os": launch.os,
        "os_build": launch.os_build,
        "boot_time_s": launch.boot_time_s,
        "wall_time_s": time.time(),
        "page_size": PAGE_BYTES,
        "physical_memory_bytes": launch.physical_memory_bytes,
        "footprint": reading.footprint,
        "host_bytes": reading.host_bytes,
        "available": reading.available,
        "entitled": False,
        "memory_scale": launch.memory_scale,
    }


def _model(plan: SoakPlan) -> dict[str, object]:
    inputs, model = plan.budget_inputs, plan.model
    return {
        "engine": "witness",
        "budget": plan.budget,
        "budget_inputs": {
            "class": inputs.memory_class,
            "policy_tokens": inputs.policy_tokens,
            "model_capacity": inputs.model_capacity,
            "scenario_tokens": inputs.scenario_tokens,
            "kv_ceiling_tokens": inputs.kv_ceiling_tokens,
        },
        "quantization": model.quantization,
        "pin_ids": plan.pin_ids,
        "end_ids": [model.end_id],
        "bos_id": model.bos_id,
        "vocab": model.vocab,
        "first_id": model.first_id,
        "chunk": model.chunk,
        "chunk_widths": [model.chunk],
        "text": model.text,
        "sampling": dict.fromkeys(("temperature", "top_k", "top_p", "seed")) | {"mode": "greedy"},
    }


def _run(plan: SoakPlan) -> dict[str, object]:
    policy = plan.scenario.policy
    return {
        "policies": {
            "pin": policy.pin,
            "long_prompt": policy.long_prompt,
            "headroom_percent": policy.headroom_percent,
        },
        "end_every": plan.scenario.end_every,
        "nonce": f"{plan.nonce:016x}",
        "run_id": plan.run_id,
        "scenario": plan.scenario.name,
        "seed": plan.scenario.seed,
    }
