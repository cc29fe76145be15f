"""`config.resolved.yaml`: what a run really used, defaults included.

Values from the environment stay as `${NAME}`, so that no secret reaches a run directory. The rest
of a webhook's address, which often is one, becomes such a name too.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

import yaml

if TYPE_CHECKING:
    from orchestrator.config.model import FleetConfig

# A run that is resumed reads its address from here: without this name it tells nobody, and says so.
REST: Final = "${FLEET_WEBHOOK_REST}"
_NAMES_ALONE: Final = re.compile(r"(?:/|\$\{[A-Za-z_][A-Za-z0-9_]*\})*")


def resolved_yaml(config: FleetConfig) -> str:
    """Return the configuration as YAML that `load_config` reads back."""
    values = config.model_dump(mode="json", by_alias=True)
    for notification in values["notify"]:
        notification["webhook"] = without_secrets(notification["webhook"])
    return yaml.safe_dump(values, sort_keys=False, allow_unicode=True)


def without_secrets(address: str) -> str:
    """Return scheme and host of an address; what is written after or before them is left out.

    Names of the environment stay: they are no secrets.
    """
    try:
        parts = urlsplit(address)
    except ValueError:  # a host in brackets that is none
        return f"https://{REST}"
    user, _, host = parts.netloc.rpartition("@")
    if not parts.scheme or not host:
        return address if _NAMES_ALONE.fullmatch(address) else f"https://{REST}"
    rest = address.split("//", 1)[1][len(parts.netloc) :]
    if not user and _NAMES_ALONE.fullmatch(rest):
        return address
    return f"{parts.scheme}://{host}/{REST}"
