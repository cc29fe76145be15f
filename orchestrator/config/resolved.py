"""`config.resolved.yaml`: what a run really used, defaults included.

Values from the environment stay as `${NAME}`, so that no secret reaches a run directory.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import yaml

if TYPE_CHECKING:
    from orchestrator.config.model import FleetConfig


def resolved_yaml(config: FleetConfig) -> str:
    """Return the configuration as YAML that `load_config` reads back."""
    values = config.model_dump(mode="json", by_alias=True)
    return yaml.safe_dump(values, sort_keys=False, allow_unicode=True)
