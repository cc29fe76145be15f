"""The Dask task of one slice. It carries a few kilobytes of plan out and a few bytes back."""

from __future__ import annotations

from typing import TYPE_CHECKING

import anyio
import msgspec
from distributed import get_worker

from orchestrator.cluster.agent import LOOK_S, PLUGIN
from orchestrator.cluster.documents import FINAL, Slice

if TYPE_CHECKING:
    from orchestrator.cluster.agent import FleetPlugin


async def attend(order: str) -> str:
    """Have the agent carry out a slice, and return how it ended.

    Cancelling it, or losing its worker, ends nothing: the agent goes on. Sent again, it finds the
    slice as it is.

    Args:
        order: A `Slice` as JSON.

    Returns:
        A `SliceState` as JSON, a final one.
    """
    plugin: FleetPlugin = get_worker().plugins[PLUGIN]
    slice_ = msgspec.json.decode(order, type=Slice)
    plugin.supervisor.accept(slice_)
    while (state := plugin.supervisor.state(slice_.run_id)).state not in FINAL:  # noqa: ASYNC110
        await anyio.sleep(LOOK_S)
    return msgspec.json.encode(state).decode()
