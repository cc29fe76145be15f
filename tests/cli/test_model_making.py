"""`fleet model build`, `verify`, `compress` and `tokens` as a person runs them."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.mlpackage.making import flip_weight_bit, require_models

LIMIT_S = 100
VECTORS = Path(__file__).parents[1] / "vectors" / "witness_vectors.json"


@pytest.fixture(autouse=True, scope="module")
def models() -> None:
    require_models()


def fleet(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "orchestrator.cli.main", "model", *map(str, arguments)],
        capture_output=True,
        text=True,
        timeout=LIMIT_S,
        check=False,
    )


def test_a_built_kit_verifies_and_a_damaged_one_exits_1(tmp_path: Path) -> None:
    built = fleet("build", "--preset", "tiny", "--weights", "int8", "--out", tmp_path)
    assert (built.returncode, built.stderr) == (0, "")
    assert "built in " in built.stdout
    verified = fleet("verify", tmp_path)
    assert (verified.returncode, verified.stdout.splitlines()[-1]) == (0, "verified")
    flip_weight_bit(tmp_path / "decode.mlpackage", "lm_head_weight")
    damaged = fleet("verify", tmp_path / "decode.mlpackage", "--json")
    assert damaged.returncode == 1
    assert "lm_head_weight" in json.loads(damaged.stdout)["findings"][0]


def test_a_witness_is_built_and_proves_the_shared_contexts(tmp_path: Path) -> None:
    built = fleet("build", "--preset", "witness", "--out", tmp_path, "--json")
    assert json.loads(built.stdout)["name"] == "witness"
    verified = fleet("verify", tmp_path, "--vectors", VECTORS)
    assert verified.returncode == 0
    assert "24 of 24 proven" in verified.stdout


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (("build", "--preset", "huge", "--out", "kit"), "no preset 'huge'"),
        (("build", "--preset", "witness", "--weights", "int8", "--out", "kit"), "a witness has"),
        (("verify", "nowhere.mlpackage"), "no such package"),
        (("compress", "a", "--weights", "int8", "--keep", "x", "--out", "b"), "is not fp16"),
        (("tokens", "nowhere.json", "--out", "t"), "no tokenizer"),
        (("tokens", "nowhere.json"), "give --out"),
    ],
)
def test_a_wrong_call_exits_2_with_its_reason(
    tmp_path: Path, arguments: tuple[str, ...], reason: str
) -> None:
    ended = subprocess.run(
        [sys.executable, "-m", "orchestrator.cli.main", "model", *arguments],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=LIMIT_S,
        check=False,
    )
    assert ended.returncode == 2
    assert reason in " ".join(ended.stderr.split())
    assert "Traceback" not in ended.stderr
