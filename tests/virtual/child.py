"""A farm in a child process, as a run starts it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

REPOSITORY = Path(__file__).parents[2]
END_LIMIT_S = 10


@contextmanager
def child_farm(
    *arguments: str, end_limit_s: float = END_LIMIT_S, temporary: Path | None = None
) -> Iterator[tuple[subprocess.Popen[str], dict[str, Any]]]:
    """Start a farm, read its ready line, and make sure that it has ended.

    Args:
        arguments: Its command line.
        end_limit_s: How long its end may take.
        temporary: A temporary folder of its own.
    """
    environment = os.environ | ({} if temporary is None else {"TMPDIR": str(temporary)})
    command = [sys.executable, "-m", "orchestrator.virtual", "--json", *arguments]
    with subprocess.Popen(
        command,
        cwd=REPOSITORY,
        env=environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        try:
            line = process.stdout.readline()
            yield process, json.loads(line) if line else {}
        finally:
            process.terminate()
            try:
                process.wait(end_limit_s)
            except subprocess.TimeoutExpired:
                process.kill()
                raise


def client_environment(farm: dict[str, Any]) -> dict[str, str]:
    """Return the environment in which tools find the phones of a farm."""
    return {**os.environ, "USBMUXD_SOCKET_ADDRESS": farm["usbmux"]}
