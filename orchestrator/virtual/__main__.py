"""`python -m orchestrator.virtual`: a farm as a child process of a run."""

from __future__ import annotations

import argparse
import asyncio
import json
import signal
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from orchestrator.virtual.farm import DEFAULT_MEMORY_SCALE
from orchestrator.virtual.faults.base import FaultError
from orchestrator.virtual.faults.engine import scripted
from orchestrator.virtual.identity import default_phones, phones_of
from orchestrator.virtual.parent import watch_parent, watch_stdin
from orchestrator.virtual.serve import ServeOptions, serve
from orchestrator.virtual.settings import REPORT_DELAY_S

if TYPE_CHECKING:
    from orchestrator.virtual.farm import FarmDescription
    from orchestrator.virtual.faults.engine import ScriptedFault

EXIT_USAGE = 2


def main(arguments: list[str] | None = None) -> int:
    """Serve until SIGTERM, SIGINT, or the end of the parent; return the exit code."""
    parsed = _parser().parse_args(arguments)
    try:
        asyncio.run(_serve(parsed))
    except (ValueError, OSError, FaultError) as error:
        sys.stderr.write(f"{error}\n")
        return EXIT_USAGE
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m orchestrator.virtual", description=__doc__)
    parser.add_argument("--json", action="store_true", help="print the ready line as JSON")
    parser.add_argument("--parent", type=int, metavar="PID", help="end when this parent dies")
    parser.add_argument("--watch-stdin", action="store_true", help="end when stdin ends")
    parser.add_argument("--phones", type=int, metavar="N", help="how many phones")
    parser.add_argument("--models", metavar="NAMES", help='such as "iPhone 14,iPhone 16"')
    parser.add_argument(
        "--phone", action="append", metavar="MODEL=IOS", help="one phone; repeat for more"
    )
    parser.add_argument("--port", type=int, default=0, help="of usbmuxd; 0: any")
    parser.add_argument("--tunneld-port", type=int, default=0, help="of tunneld; 0: any")
    parser.add_argument("--folder", type=Path, help="state of the phones; default: temporary")
    parser.add_argument("--memory-scale", type=int, default=DEFAULT_MEMORY_SCALE)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--report-delay", type=float, default=REPORT_DELAY_S, metavar="S")
    parser.add_argument("--faults", metavar="JSON", help="a list of scripted faults")
    parser.add_argument("--events", type=Path, metavar="FILE", help="append the event log here")
    parser.add_argument(
        "--limit", action="append", metavar="PLACE=MIB", help="of a process; places from 1"
    )
    parser.add_argument("--entitled", action="store_true", help="apps hold increased-memory-limit")
    return parser


def _options(parsed: argparse.Namespace) -> ServeOptions:
    return ServeOptions(
        phones=_phones(parsed),
        port=parsed.port,
        tunneld_port=parsed.tunneld_port,
        folder=parsed.folder,
        memory_scale=parsed.memory_scale,
        seed=parsed.seed,
        entitled=parsed.entitled,
        report_delay_s=parsed.report_delay,
        faults=_faults(parsed.faults),
        events=parsed.events,
        limits_mib=_limits(parsed.limit or []),
    )


def _faults(text: str | None) -> tuple[ScriptedFault, ...]:
    """Return a script from JSON.

    Raises:
        ValueError: If it is no list of faults.
    """
    document = json.loads(text or "[]")
    if not isinstance(document, list) or not all(isinstance(each, dict) for each in document):
        raise ValueError("--faults takes a JSON list of objects")
    return tuple(scripted(each) for each in document)


def _limits(pairs: list[str]) -> dict[int, int]:
    """Return limits in MiB by place from 0.

    Raises:
        ValueError: If a pair is no two numbers.
    """
    split = [text.partition("=") for text in pairs]
    return {int(place) - 1: int(mib) for place, _, mib in split}


def _phones(parsed: argparse.Namespace) -> list[tuple[str, str]]:
    if parsed.phone:
        pairs = [text.rpartition("=") for text in parsed.phone]
        return [(model, ios) for model, _, ios in pairs]
    names = [name.strip() for name in (parsed.models or "").split(",") if name.strip()]
    return phones_of(names, parsed.phones) if names else default_phones(parsed.phones)


async def _serve(parsed: argparse.Namespace) -> None:
    options = _options(parsed)
    stop, loop = asyncio.Event(), asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)

    def stop_from_thread() -> None:
        loop.call_soon_threadsafe(stop.set)

    if parsed.parent is not None:
        watch_parent(parsed.parent, stop_from_thread)
    if parsed.watch_stdin:
        watch_stdin(stop_from_thread)
    await serve(options, _announce_json if parsed.json else _announce_text, stop)


def _announce_json(description: FarmDescription) -> None:
    sys.stdout.write(f"{description.as_json()}\n")
    sys.stdout.flush()


def _announce_text(description: FarmDescription) -> None:
    sys.stdout.write(f"USBMUXD_SOCKET_ADDRESS={description.usbmux}\n")
    sys.stdout.write(f"tunneld {description.tunneld}\n")
    sys.stdout.write(f"control {description.control}\n")
    for phone in description.phones:
        sys.stdout.write(f"{phone.udid} {phone.name} {phone.model} iOS {phone.os}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
