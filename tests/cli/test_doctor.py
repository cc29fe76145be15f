"""`fleet doctor` as typed, on a host whose usbmuxd is dead."""

from __future__ import annotations

import json
import socket
from typing import TYPE_CHECKING

from typer.testing import CliRunner

from orchestrator.cli import doctor

if TYPE_CHECKING:
    from pathlib import Path


def test_a_dead_usbmuxd_is_told_with_its_remedy_once(tmp_path: Path) -> None:
    with socket.socket() as taken:  # bound and not listening: nobody answers there
        taken.bind(("127.0.0.1", 0))
        port = taken.getsockname()[1]
        file = tmp_path / "fleet.yaml"
        file.write_text(f'sources: [{{name: desk, usbmux: "127.0.0.1:{port}"}}]\n')
        words = ["--config", str(file), "--output", str(tmp_path), "--json"]
        done = CliRunner().invoke(doctor.app, words)
    (dead,) = (one for one in json.loads(done.stdout)["checks"] if one["name"] == "usbmuxd")
    assert dead["state"] == "failed"
    assert dead["facts"] == "desk: no usbmuxd answers at the source's address"
    assert dead["remedy"].startswith("Start usbmuxd")
