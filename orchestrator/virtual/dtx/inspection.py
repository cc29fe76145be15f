"""Instruments that look into a process. A virtual phone answers as one that may not.

An app's memory is memory of the host, which says nothing of a phone's, so there is no honest
snapshot to give. Source of the refusals: pymobiledevice3's tests against phones.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from orchestrator.virtual.dtx.connection import CallError
from orchestrator.virtual.dtx.nska import NSError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from orchestrator.virtual.dtx.connection import Channel, Method


class VmTracking:
    """com.apple.instruments.server.services.vmtracking."""

    @property
    def methods(self) -> Mapping[str, Method]:
        """Selectors and what they call."""
        return {
            "setTargetPid:referenceDate:": lambda _pid, _date: None,
            "requestVMSnapshot": lambda: None,  # what a phone sends for a process it may not read
        }

    def closed(self) -> None:
        """Nothing to give back."""


class RemoteLeaks:
    """com.apple.instruments.server.services.remoteleaks."""

    @property
    def methods(self) -> Mapping[str, Method]:
        """Selectors and what they call."""
        return {"requestGraph:options:": self._refuse}

    def closed(self) -> None:
        """Nothing to give back."""

    def _refuse(self, pid: int, _options: object) -> None:
        raise CallError(NSError.of("DVTInstruments", 1, _no_task_port(pid)))


class DyldMetrics:
    """com.apple.instruments.server.services.dyld.metrics: takes and sends plain objects."""

    def __init__(self, channel: Channel) -> None:
        self._channel = channel

    @property
    def methods(self) -> Mapping[str, Method]:
        """None: messages of named values come in, see `received`."""
        return {}

    def closed(self) -> None:
        """Nothing to give back."""

    def received(self, values: dict[Any, Any]) -> None:
        """Answer a request for metrics."""
        if values.get("command") == "captureMetrics":
            refusal = {"error": _no_task_port(values.get("pid"))}
            self._channel.send_data(json.dumps(refusal).encode())


def _no_task_port(pid: object) -> str:
    return f"Failed to get the task port of pid {pid}"
