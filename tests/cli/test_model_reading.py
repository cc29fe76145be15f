"""`fleet model inspect`, `lint` and `budget` as typed."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import msgspec
import pytest
from msgspec import structs

from orchestrator.cli.budget_lines import table
from orchestrator.cli.main import main
from orchestrator.cli.measured_limits import measured_limits
from orchestrator.domain.calibration import Calibration, CalibrationKey
from orchestrator.history.store import DATABASE_NAME, History
from orchestrator.mlpackage.budget.ceiling import ceilings
from orchestrator.mlpackage.budget.demand import Demand
from orchestrator.mlpackage.budget.phones import MeasuredLimit, offers
from orchestrator.report.remake import remake
from orchestrator.runlog.documents import VerdictDocument
from orchestrator.runlog.files import write_document
from tests.mlpackage.small import LENGTH, Decoder, Input, State, write_package
from tests.report.runs import WrittenRun, write_run

if TYPE_CHECKING:
    from pathlib import Path

GOOD = Decoder(inner=("int8", "int8"))
HUGGING_FACE = replace(
    GOOD,
    states=(State("keyCache", (2, 1, 2, LENGTH, 32)), State("valueCache", (2, 1, 2, LENGTH, 32))),
    written=False,
    tokens=Input("inputIds", "int32", (1, 1)),
    mask=Input("causalMask", "fp16", (1, 1, 1, LENGTH)),
)
WORKED_NUMBERS = ("--layers", 32, "--kv-heads", 32, "--head-dim", 128, "--length", 2048)


class Model:
    """Runs `fleet model` in this process."""

    def __init__(self, patch: pytest.MonkeyPatch, captured: pytest.CaptureFixture[str]) -> None:
        self._patch, self._captured = patch, captured
        self.out = self.err = ""

    def __call__(self, *words: object) -> int:
        self._patch.setattr("sys.argv", ["fleet", "model", *map(str, words)])
        code: object = 0
        try:
            main()
        except SystemExit as exit_:
            code = exit_.code or 0
        self.out, self.err = self._captured.readouterr()
        assert isinstance(code, int), code
        return int(code)

    def json(self) -> Any:  # noqa: ANN401 - a document as it was printed
        return json.loads(self.out)


@pytest.fixture
def model(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> Model:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
    return Model(monkeypatch, capsys)


@pytest.fixture
def package(tmp_path: Path) -> Path:
    return write_package(tmp_path / "good.mlpackage", {"main": GOOD})


def test_inspect_says_states_bytes_constants_and_precisions(model: Model, package: Path) -> None:
    assert model("inspect", package) == 0
    for line in (
        "  specification 9, needs iOS 18",
        "    state k_cache fp16 [1, 2, 64, 32], 8,192 bytes, 1 reads, 1 writes",
        "    KV cache: 16,384 bytes, 256 per token",
        (
            "    decoder: layers 1, kv heads 2, head dim 32, query heads 4, hidden 32, "
            "vocabulary 96, maximum length 64"
        ),
        (
            "    precision: first layer dense fp16, inner 2 x blockwise_shift_scale 8 bit, "
            "last layer dense fp16"
        ),
        "    key_cache: [k_cache]",
    ):
        assert line in model.out.splitlines()


def test_inspect_prints_one_json_document(model: Model, package: Path) -> None:
    assert model("inspect", "--json", package) == 0
    found = model.json()["packages"][0]
    assert found["functions"][0]["architecture"]["kv_bytes"] == 16_384
    assert len(found["digest"]) == 64


def test_inspect_names_the_digest_that_pushing_uses(model: Model, package: Path) -> None:
    from orchestrator.mlpackage.digest import folder_digest

    for _ in range(2):  # computed, then remembered
        model("inspect", "--json", package)
        assert model.json()["packages"][0]["digest"] == folder_digest(package)


def test_inspect_takes_a_folder_of_chunks(model: Model, tmp_path: Path) -> None:
    head = replace(GOOD, states=(), embedding=None, inner=())
    write_package(tmp_path / "m" / "chunk1.mlpackage", {"main": replace(GOOD, output=None)})
    write_package(tmp_path / "m" / "chunk2.mlpackage", {"main": head})
    assert model("inspect", tmp_path / "m") == 0
    assert model.out.count("package ") == 2
    assert "last layer not in this package" in model.out
    assert "first layer not in this package" in model.out


def test_inspect_reads_a_package_with_the_names_of_hugging_face(
    model: Model, tmp_path: Path
) -> None:
    assert model("inspect", write_package(tmp_path / "hf.mlpackage", {"main": HUGGING_FACE})) == 0
    assert "layers 2, kv heads 2, head dim 32" in model.out
    assert "    causal_mask: [causalMask]" in model.out.splitlines()


@pytest.mark.parametrize("command", ["inspect", "lint", "budget"])
def test_what_is_no_package_is_one_line_and_exit_2(
    command: str, model: Model, tmp_path: Path
) -> None:
    assert model(command, tmp_path / "missing.mlpackage") == 2
    assert model.out == ""
    assert model.err == f"{tmp_path}/missing.mlpackage: no such package\n"


@pytest.mark.parametrize("command", ["inspect", "budget"])
def test_a_stateless_model_is_one_line_and_exit_2(
    command: str, model: Model, tmp_path: Path
) -> None:
    path = write_package(tmp_path / "s.mlpackage", {"main": replace(GOOD, states=())})
    assert model(command, path) == 2
    assert "model.mlmodel: a stateless model" in model.err
    assert model.err.count("\n") == 1


def test_inspect_loads_the_standard_library_and_typer_alone(package: Path) -> None:
    code = (
        "import sys\n"
        f"sys.argv = ['fleet', 'model', 'inspect', {str(package)!r}]\n"
        "before = set(sys.modules)\n"
        "from orchestrator.cli.main import main\n"
        "try:\n    main()\nexcept SystemExit:\n    pass\n"
        "print('MODULES', *set(sys.modules) - before)"
    )
    done = subprocess.run(
        [sys.executable, "-I", "-c", code], capture_output=True, text=True, check=True, timeout=30
    )
    loaded = {name.partition(".")[0] for name in done.stdout.rpartition("MODULES")[2].split()}
    assert {"numpy", "coremltools", "google", "pydantic", "msgspec"} & loaded == set()
    foreign = loaded - set(sys.stdlib_module_names) - {"orchestrator", "__mp_main__"}
    assert foreign <= {"typer", "shellingham", "annotated_doc", "typing_extensions"}


def test_lint_of_a_package_in_order_exits_0(model: Model, package: Path) -> None:
    assert model("lint", package) == 0
    assert model.out == "nothing found\n"


def test_lint_exits_1_on_an_error_and_names_the_page(model: Model, package: Path) -> None:
    assert model("lint", "--bits", 4, package) == 1
    assert "error weights.bits" in model.out
    assert "docs/lint/weights.bits.md" in model.out


def test_lint_exits_0_on_a_warning(model: Model, tmp_path: Path) -> None:
    decoder = replace(GOOD, fused_attention=True)
    assert model("lint", write_package(tmp_path / "w.mlpackage", {"main": decoder})) == 0
    assert "warning attention.fused" in model.out


def test_lint_prints_json(model: Model, package: Path) -> None:
    assert model("lint", "--json", "--bits", 4, package) == 1
    assert [finding["rule"] for finding in model.json()["findings"]] == ["weights.bits"]


def test_lint_is_silent_on_a_state_that_the_host_writes(model: Model, tmp_path: Path) -> None:
    path = write_package(tmp_path / "h.mlpackage", {"main": HUGGING_FACE})
    assert model("lint", path) == 1
    assert model("lint", "--host-state", path) == 0


def test_lint_holds_a_package_against_the_names_of_the_configuration(
    model: Model, package: Path, tmp_path: Path
) -> None:
    config = tmp_path / "fleet.yaml"
    config.write_text("schema: 1\nmodel:\n  names:\n    causal_mask: [causalMask]\n")
    assert model("lint", "--config", config, package) == 1
    assert "'causalMask', which is named for causal_mask" in model.out
    config.write_text("schema: 1\nmodel:\n  names:\n    causal_mask: [causal_mask]\n")
    assert model("lint", "--config", config, package) == 0


def test_the_names_that_inspect_prints_are_the_block_that_lint_takes(
    model: Model, tmp_path: Path
) -> None:
    path = write_package(tmp_path / "hf.mlpackage", {"main": HUGGING_FACE})
    model("inspect", path)
    block = model.out.partition("names for fleet.yaml, below model:\n")[2]
    config = tmp_path / "fleet.yaml"
    config.write_text(f"schema: 1\nmodel:\n{block}")
    assert model("lint", "--host-state", "--config", config, path) == 0


def test_budget_prints_the_worked_example(model: Model) -> None:
    assert model("budget", *WORKED_NUMBERS, "--weights-gb", 1.7) == 0
    assert model.out.startswith(
        "KV cache: 2 x 32 layers x 32 kv heads x 128 head dim x 2048 tokens x 2 bytes = "
        "1,073,741,824 bytes\n"
    )


def test_budget_is_a_block_of_plain_lines_per_phone_where_no_terminal_reads(
    model: Model, package: Path
) -> None:
    assert model("budget", package, "--devices", "iPhone 14, iPhone 16") == 0
    _, first, second = [block.splitlines() for block in model.out.split("\n\n")]
    assert (first[0], second[0]) == ("model: iPhone 14", "model: iPhone 16")
    assert {"limit: 3,006,267,392 bytes", "limit is: documented"} <= set(first)
    assert {"KV at 1024: 262,144 bytes", "KV at 2048: 524,288 bytes"} <= set(first)
    assert "recommended weights: 8 bits" in second
    assert max(map(len, first + second)) <= 100


def test_budget_asks_for_numbers_where_the_graph_shows_no_context(
    model: Model, tmp_path: Path
) -> None:
    decoder = replace(GOOD, written=False, mask=Input("causal_mask", "fp16", (1, 1, 1, 7)))
    assert model("budget", write_package(tmp_path / "x.mlpackage", {"main": decoder})) == 2
    assert "does not show which axis of its states is the context" in model.err


def test_budget_prints_json(model: Model) -> None:
    assert model("budget", *WORKED_NUMBERS, "--entitled", "--devices", "iPhone 14", "--json") == 0
    assert model.json()["phones"][0]["offer"]["limit_bytes"] == 4096 * 1024**2


@pytest.mark.parametrize(
    "words",
    [
        ("--layers", 32),
        ("--weights-gb", 1),
        (*WORKED_NUMBERS, "--headroom", "95%"),
        (*WORKED_NUMBERS, "--headroom", "much"),
        (*WORKED_NUMBERS, "--devices", "iPhone 4"),
        (*WORKED_NUMBERS[:-1], 0),
    ],
)
def test_budget_refuses_what_it_cannot_use(words: tuple[object, ...], model: Model) -> None:
    assert model("budget", *words) == 2
    assert model.out == ""


@pytest.mark.parametrize("width", [1, 80, 400])
def test_a_table_shows_every_number_whole_at_any_width(width: int) -> None:
    demand = Demand(1_700_000_000, 524_288, 2048, 0, 32, 32, 128)
    phones = offers([], {}, entitled=False)
    text = "\n".join(table(ceilings(demand, phones, 20), demand, width))
    assert text.count("3,006,267,392 bytes") == 6
    assert text.count("3,539,992,576 bytes") == 7


def real_phone(run: WrittenRun, limit_bytes: int | None = 3_100_000_000) -> None:
    remake(run.root)
    verdict = msgspec.json.decode(run.device.verdict.read_bytes(), type=VerdictDocument)
    changed = structs.replace(verdict, virtual=False, limit_bytes=limit_bytes)
    write_document(run.device.verdict, changed)


def test_a_limit_is_taken_from_the_newest_run_of_a_real_phone(model: Model, tmp_path: Path) -> None:
    real_phone(write_run(tmp_path / "runs" / "20260101-a"), 3_000_000_000)
    real_phone(write_run(tmp_path / "runs" / "20260102-b"))
    (tmp_path / "runs" / "latest").symlink_to("20260102-b")
    found = measured_limits(tmp_path / "runs")
    assert found == {("iPhone 15 Pro", False): MeasuredLimit(3_100_000_000, "20260102-b")}
    assert model("budget", *WORKED_NUMBERS, "--devices", "iPhone 15 Pro") == 0
    assert "limit: 3,100,000,000 bytes\nlimit is: measured in 20260102-b" in model.out


def test_a_calibration_is_believed_before_a_run(model: Model, tmp_path: Path) -> None:
    real_phone(write_run(tmp_path / "runs" / "20260102-b"))
    key = CalibrationKey("iPhone16,1", "22G86", entitled=False, virtual=False)
    measured = Calibration(
        key=key,
        udid="u",
        alias="a",
        model="iPhone 15 Pro",
        os="18.6",
        measured_s=1.0,
        stand_in=False,
        runs=("20260103-c",),
        limit_bytes=3_200_000_000,
    )
    history = History(tmp_path / "runs" / DATABASE_NAME)
    history.calibrate(measured)
    history.calibrate(replace(measured, key=replace(key, virtual=True), limit_bytes=1))
    assert model("budget", *WORKED_NUMBERS, "--devices", "iPhone 15 Pro") == 0
    assert "limit is: measured in calibration 20260103-c" in model.out
    assert "limit: 3,200,000,000 bytes" in model.out


def test_virtual_phones_and_broken_runs_measure_nothing(tmp_path: Path) -> None:
    remake(write_run(tmp_path / "virtual").root)
    real_phone(write_run(tmp_path / "unmeasured"), None)
    torn = write_run(tmp_path / "torn")
    real_phone(torn)
    torn.device.telemetry.write_bytes(b'{"launch"')
    unjudged = write_run(tmp_path / "unjudged")
    real_phone(unjudged)
    unjudged.device.verdict.unlink()
    assert measured_limits(tmp_path) == {}
    assert measured_limits(tmp_path / "missing") == {}
