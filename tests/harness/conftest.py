from __future__ import annotations

import shutil
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.harness.standin_process import StandIn

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture
def container() -> Iterator[Path]:
    # A socket path holds 107 bytes; pytest's own folders can be longer.
    folder = Path(tempfile.mkdtemp(prefix="fleet-"))
    yield folder
    shutil.rmtree(folder)


@pytest.fixture
def launch(container: Path) -> Iterator[Callable[..., StandIn]]:
    """Launches the stand-in app in a child process; every one is ended with the test."""
    running: list[StandIn] = []

    def start(**env: str) -> StandIn:
        running.append(StandIn(container, env))
        return running[-1]

    yield start
    for app in running:
        app.kill()
