"""Virtual phones of one run: a child process that dies with the run."""

from __future__ import annotations

import os
import sys
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

import anyio
import msgspec
from anyio.streams.buffered import BufferedByteReceiveStream

from orchestrator.domain.errors import FleetError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping, Sequence
    from pathlib import Path

    from anyio.abc import Process

START_LIMIT_S: Final = 20.0
END_LIMIT_S: Final = 5.0
# Ending 100 phones took 3.4 to 8.8 s on an idle host with two cores; a busy one takes longer.
END_LIMIT_PER_PHONE_S: Final = 0.25
_MAX_LINE_BYTES: Final = 1 << 20


class Farm(msgspec.Struct, frozen=True):
    """Where the virtual phones answer."""

    usbmux: str  # host:port
    tunneld: str


@dataclass(frozen=True, slots=True)
class FarmSpec:
    """Which virtual phones a run wants."""

    phones: Sequence[tuple[str, str]]  # model, iOS
    memory_scale: int
    log: Path
    faults: Sequence[Mapping[str, object]] = ()  # the script, as orchestrator.virtual reads it
    events: Path | None = None  # file for the phones' event log
    limits_mib: Mapping[int, int] = field(default_factory=dict)  # by place from 1
    entitled: bool = False  # apps hold increased-memory-limit


class FarmError(FleetError):
    """The virtual phones did not start."""


@asynccontextmanager
async def virtual_phones(spec: FarmSpec) -> AsyncIterator[Farm]:
    """Run virtual phones until the block ends.

    Raises:
        FarmError: If they do not answer within 20 s.
    """
    command = [sys.executable, "-m", "orchestrator.virtual", "--json", "--watch-stdin"]
    command += ["--parent", str(os.getpid()), "--memory-scale", str(spec.memory_scale)]
    for model, version in spec.phones:
        command += ["--phone", f"{model}={version}"]
    for place, mib in spec.limits_mib.items():
        command += ["--limit", f"{place}={mib}"]
    if spec.entitled:
        command.append("--entitled")
    if spec.faults:
        command += ["--faults", msgspec.json.encode(spec.faults).decode()]
    if spec.events is not None:
        command += ["--events", str(spec.events)]
    spec.log.parent.mkdir(parents=True, exist_ok=True)
    with spec.log.open("ab") as log:
        process = await anyio.open_process(command, stderr=log, start_new_session=True)
    try:
        yield await _ready(process, spec.log)
    finally:
        with anyio.CancelScope(shield=True):
            await _end(process, END_LIMIT_S + END_LIMIT_PER_PHONE_S * len(spec.phones))


async def _ready(process: Process, log: Path) -> Farm:
    if process.stdout is None:
        raise FarmError("the virtual phones have no output")
    try:
        with anyio.fail_after(START_LIMIT_S):
            line = await BufferedByteReceiveStream(process.stdout).receive_until(
                b"\n", _MAX_LINE_BYTES
            )
        return msgspec.json.decode(line, type=Farm)
    except (TimeoutError, anyio.IncompleteRead, anyio.EndOfStream, msgspec.DecodeError) as error:
        raise FarmError(
            f"the virtual phones did not start: {_last_line(log) or 'no answer'}"
        ) from error


def _last_line(log: Path) -> str:
    lines = log.read_text(encoding="utf-8", errors="replace").splitlines()
    return lines[-1] if lines else ""


async def _end(process: Process, limit_s: float) -> None:
    if process.returncode is None:
        process.terminate()
        with anyio.move_on_after(limit_s):
            await process.wait()
    if process.returncode is None:
        process.kill()
        await process.wait()
    await process.aclose()
