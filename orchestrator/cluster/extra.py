"""The `[cluster]` extra: there or not, said before anything of it is imported."""

from __future__ import annotations

import importlib.util

from orchestrator.domain.errors import UsageError
from orchestrator.domain.extras import how_to_install


def require_cluster() -> None:
    """Refuse where the extra is not installed.

    Raises:
        UsageError: Naming the extra.
    """
    if importlib.util.find_spec("distributed") is None:
        raise UsageError(
            "a cluster needs the extra `cluster`, which is not installed",
            remedy=f"Install it: {how_to_install('cluster')}",
        )
