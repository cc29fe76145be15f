"""From the plan of a run to the order of each host, and back to what one host needs. Pure."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import structs

from orchestrator.cluster.documents import Slice
from orchestrator.config.load import load_config
from orchestrator.config.model import RegressionBlock, ReleaseBlock
from orchestrator.config.resolved import resolved_yaml

if TYPE_CHECKING:
    from orchestrator.config.model import FleetConfig
    from orchestrator.runlog.documents import PlanDocument


def orders_of(
    plan: PlanDocument, config: FleetConfig, duration_s: float, until_s: float | None
) -> dict[str, Slice]:
    """Return each host's part of a run, by host.

    Addresses to notify stay with the coordinator: they may hold a secret, and hosts have no use
    for them.

    Args:
        plan: Of the whole run; every phone has its host.
        config: Of the coordinator.
        duration_s: Inference time per phone.
        until_s: When the window closes, by the coordinator's clock.
    """
    # What no host needs is not sent. `expect` neither: names stand in the plan.
    lean = config.model_copy(
        update={
            "notify": (),
            "expect": (),
            "release": ReleaseBlock(),
            "regression": RegressionBlock(),
        }
    )
    config_yaml = resolved_yaml(lean)
    hosts = sorted({phone.host or "" for phone in plan.phones})
    return {
        host: Slice(
            run_id=plan.run_id,
            host=host,
            plan=structs.replace(
                plan,
                phones=[phone for phone in plan.phones if (phone.host or "") == host],
                absent=[],
                skipped=[],
            ),
            config_yaml=config_yaml,
            duration_s=duration_s,
            until_s=until_s,
        )
        for host in hosts
    }


def localised(order: Slice, *, config: FleetConfig) -> Slice:
    """Return an order with the usbmuxds, and the recovery ladder, of the host that carries it out.

    Args:
        order: From the coordinator.
        config: Of the host.

    Raises:
        ConfigError: If the coordinator's configuration is none here: another version.
    """
    with tempfile.NamedTemporaryFile("w", suffix=".yaml", encoding="utf-8") as file:
        file.write(order.config_yaml)
        file.flush()
        sent = load_config(Path(file.name))
    # Hub commands and reboots are what the host's own owner allows, on that host.
    here = sent.model_copy(update={"sources": config.sources, "recovery": config.recovery})
    return structs.replace(order, config_yaml=resolved_yaml(here))
