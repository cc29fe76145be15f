"""Both contract commands reproduce every vector, and never read what a file expects."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from orchestrator.harness.build import build_host
from tests.end_to_end.fleet_process import FLEET, HAS_SWIFT

VECTORS = Path(__file__).parents[1] / "vectors"
COMMANDS = [
    "fleet",
    pytest.param(
        "harness-host", marks=pytest.mark.skipif(not HAS_SWIFT, reason="no swift on PATH")
    ),
]
pytestmark = pytest.mark.timeout(400)


def program(name: str) -> list[str]:
    if name == "fleet":
        return [str(FLEET), "contract"]
    binary = build_host(sys.stderr)
    assert binary is not None
    return [str(binary), "contract"]


def answer(name: str, *arguments: str) -> Any:  # noqa: ANN401 - JSON
    done = subprocess.run(
        [*program(name), *arguments], capture_output=True, text=True, check=True, timeout=60
    )
    return json.loads(done.stdout)


@pytest.mark.parametrize("name", COMMANDS)
def test_every_trace_is_reproduced(name: str, tmp_path: Path) -> None:
    vectors = json.loads((VECTORS / "contract_vectors.json").read_bytes())
    expected = [vector.pop("expect") for vector in vectors]
    asked = tmp_path / "asked.json"
    asked.write_text(json.dumps(vectors))
    assert answer(name, str(asked)) == expected


@pytest.mark.parametrize("name", COMMANDS)
def test_every_witness_token_is_reproduced(name: str, tmp_path: Path) -> None:
    vectors = json.loads((VECTORS / "witness_vectors.json").read_bytes())
    expected = [vector.pop("token") for vector in vectors]
    asked = tmp_path / "asked.json"
    asked.write_text(json.dumps(vectors))
    assert answer(name, "--witness", str(asked)) == expected
    assert answer(name, str(asked), "--witness") == expected


@pytest.mark.parametrize("name", COMMANDS)
@pytest.mark.parametrize("content", [b"", b"{", b'{"a": 1}', b"[1]", b'[{"budget": "x"}]'])
def test_a_bad_file_is_exit_2_and_one_line(name: str, content: bytes, tmp_path: Path) -> None:
    file = tmp_path / "bad.json"
    file.write_bytes(content)
    done = subprocess.run(
        [*program(name), str(file)], capture_output=True, text=True, check=False, timeout=60
    )
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr.count("\n") == 1
