"""Reading packages: what is there, and one line for what is wrong."""

from __future__ import annotations

import json
import os
import struct
from typing import TYPE_CHECKING

import pytest

from orchestrator.mlpackage.errors import FormatError, PackageError
from orchestrator.mlpackage.immediate import literal
from orchestrator.mlpackage.package import find_packages, read_package, require_state
from tests.mlpackage.encode import field, message, packed
from tests.mlpackage.small import Decoder, write_package

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

PROGRAM = "Data/com.apple.CoreML/model.mlmodel"
WEIGHTS = "Data/com.apple.CoreML/weights/weight.bin"


@pytest.fixture
def package(tmp_path: Path) -> Path:
    return write_package(tmp_path / "small.mlpackage")


def test_functions_operations_and_features_come_back(package: Path) -> None:
    model = read_package(package).model
    main = model.functions["main"]
    assert [feature.name for feature in main.inputs] == ["input_ids", "position_ids", "causal_mask"]
    assert [state.type.shape for state in main.states] == [(1, 2, 64, 32)] * 2
    assert [parameter.is_state for parameter in main.parameters] == [False] * 3 + [True] * 2
    assert main.block.operations[-1].inputs["weight"] == ("lm_head",)
    assert main.block.outputs == ("logits",)


def test_constants_in_the_program_come_back(package: Path) -> None:
    operations = read_package(package).model.functions["main"].block.operations
    edges = [op for op in operations if op.outputs and op.outputs[0].name == "edge0_0"]
    assert literal(edges[0].attributes["val"]) == (0,)


def test_the_bytes_of_a_constant_are_read_from_its_record(package: Path) -> None:
    content = bytearray((package / WEIGHTS).read_bytes())
    content[128 : 128 + 4] = b"\x01\x02\x03\x04"
    (package / WEIGHTS).write_bytes(content)
    read = read_package(package)
    blob = read.model.functions["main"].block.operations[0].attributes["val"].blob
    assert blob is not None
    assert read.read(blob)[:4] == b"\x01\x02\x03\x04"


def test_two_functions_share_their_tensors(tmp_path: Path) -> None:
    functions = {"decode": Decoder(), "prefill": Decoder(width=8)}
    read = read_package(write_package(tmp_path / "two.mlpackage", functions))
    assert read.model.default_function == "decode"
    single = read_package(write_package(tmp_path / "one.mlpackage", {"decode": Decoder()}))
    assert len(next(iter(read.weights.values())).records) == len(
        next(iter(single.weights.values())).records
    )


def edit_manifest(package: Path, path: object) -> None:
    manifest = json.loads((package / "Manifest.json").read_text())
    manifest["itemInfoEntries"]["A1"]["path"] = path
    (package / "Manifest.json").write_text(json.dumps(manifest))


def truncate(file: Path, size_bytes: int) -> None:
    os.truncate(file, size_bytes)


def overwrite(file: Path, offset: int, content: bytes) -> None:
    with file.open("r+b") as stream:
        stream.seek(offset)
        stream.write(content)


BROKEN: dict[str, tuple[Callable[[Path], object], str, str]] = {
    "no manifest": (lambda p: (p / "Manifest.json").unlink(), "", "no Manifest.json"),
    "a manifest that is no JSON": (
        lambda p: (p / "Manifest.json").write_text("{"),
        "Manifest.json",
        "names no root model",
    ),
    "a manifest of nested lists": (
        lambda p: (p / "Manifest.json").write_text("[" * 100_000),
        "Manifest.json",
        "names no root model",
    ),
    "a huge manifest": (
        lambda p: (p / "Manifest.json").write_bytes(b" " * (1024**2 + 1)),
        "Manifest.json",
        "larger than",
    ),
    "a root outside the package": (
        lambda p: edit_manifest(p, "../../../etc/passwd"),
        "Manifest.json",
        "outside the package",
    ),
    "an absolute root": (
        lambda p: edit_manifest(p, "/etc/passwd"),
        "Manifest.json",
        "outside the package",
    ),
    "a root that is no text": (lambda p: edit_manifest(p, 7), "Manifest.json", "without a name"),
    "no program": (lambda p: (p / PROGRAM).unlink(), "model.mlmodel", "missing"),
    "an empty program": (lambda p: truncate(p / PROGRAM, 0), "model.mlmodel", "no ML program"),
    "a cut program": (lambda p: truncate(p / PROGRAM, 2000), "model.mlmodel", "bytes left"),
    "no weight file": (lambda p: (p / WEIGHTS).unlink(), "weight.bin", "missing"),
    "an empty weight file": (lambda p: truncate(p / WEIGHTS, 0), "weight.bin", "too short"),
    "cut weights": (lambda p: truncate(p / WEIGHTS, 9000), "weight.bin", "the file has 9000"),
    "weights cut in a record": (
        lambda p: truncate(p / WEIGHTS, 64 + 16),
        "weight.bin",
        "claims",
    ),
    "a record that is none": (
        lambda p: overwrite(p / WEIGHTS, 64, b"\0\0\0\0"),
        "weight.bin",
        "no record of tensor 1",
    ),
    "data outside the file": (
        lambda p: overwrite(p / WEIGHTS, 64 + 16, struct.pack("<Q", 1 << 62)),
        "weight.bin",
        "the file has",
    ),
    "another type of data": (
        lambda p: overwrite(p / WEIGHTS, 64 + 4, struct.pack("<I", 2)),
        "weight.bin",
        "fp16 in the program, fp32 in the weight file",
    ),
    "millions of records": (
        lambda p: overwrite(p / WEIGHTS, 0, struct.pack("<I", 2**31)),
        "weight.bin",
        "claims 2147483648 tensors",
    ),
    "an unknown weight format": (
        lambda p: overwrite(p / WEIGHTS, 4, struct.pack("<I", 3)),
        "weight.bin",
        "version 3",
    ),
}


@pytest.mark.parametrize("fault", BROKEN)
def test_a_broken_package_is_one_line_with_file_and_reason(fault: str, package: Path) -> None:
    break_it, file, reason = BROKEN[fault]
    break_it(package)
    with pytest.raises(PackageError) as caught:
        read_package(package)
    assert caught.value.file.endswith(file)
    assert reason in str(caught.value)
    assert "\n" not in str(caught.value)
    assert caught.value.exit_code == 2


def test_a_tensor_of_another_size_is_refused(package: Path) -> None:
    size_bytes = struct.unpack_from("<Q", (package / WEIGHTS).read_bytes(), 64 + 8)[0]
    overwrite(package / WEIGHTS, 64 + 8, struct.pack("<Q", size_bytes - 2))
    with pytest.raises(PackageError, match="bytes in the program"):
        read_package(package)


def test_a_link_that_leaves_the_package_is_refused(package: Path, tmp_path: Path) -> None:
    outside = tmp_path / "outside.bin"
    (package / WEIGHTS).rename(outside)
    (package / WEIGHTS).symlink_to(outside)
    with pytest.raises(PackageError, match="leaves the package"):
        read_package(package)


def test_a_folder_without_packages_is_refused(tmp_path: Path) -> None:
    with pytest.raises(PackageError, match="not a package"):
        find_packages(tmp_path)


def test_a_compiled_model_is_refused(tmp_path: Path) -> None:
    (tmp_path / "m.mlmodelc").mkdir()
    with pytest.raises(PackageError, match="compiled"):
        find_packages(tmp_path / "m.mlmodelc")


def test_packages_of_a_folder_come_in_order(tmp_path: Path) -> None:
    for name in ("b", "a"):
        write_package(tmp_path / f"{name}.mlpackage")
    assert [path.name for path in find_packages(tmp_path)] == ["a.mlpackage", "b.mlpackage"]


@pytest.mark.parametrize(
    ("kind", "reason"),
    [(500, "neural network"), (303, "neural network"), (202, "pipeline"), (401, "kind 401")],
)
def test_another_kind_of_model_is_named(kind: int, reason: str, package: Path) -> None:
    (package / PROGRAM).write_bytes(message((1, 4), (2, b""), (kind, b"")))
    with pytest.raises(PackageError, match=f"{reason}.*not an ML program"):
        read_package(package)


def test_a_single_file_says_what_it_holds(tmp_path: Path) -> None:
    file = tmp_path / "old.mlmodel"
    file.write_bytes(message((1, 4), (500, b"")))
    with pytest.raises(PackageError, match=r"not an \.mlpackage folder.*a neural network"):
        read_package(file)


def test_a_stateless_model_is_refused(tmp_path: Path) -> None:
    path = write_package(tmp_path / "s.mlpackage", {"main": Decoder(states=())})
    with pytest.raises(PackageError, match=r"model\.mlmodel: a stateless model"):
        require_state([read_package(path)])


def nested_blocks(depth: int) -> bytes:
    block = b""
    for _ in range(depth):
        block = message((3, message((1, "cond"), (4, block))))
    return block


def nested_types(depth: int) -> bytes:
    kind = b""
    for _ in range(depth):
        kind = message((5, message((1, kind))))
    return message((1, message((1, "x"), (2, kind))))


def program_of(function: bytes) -> bytes:
    return message((1, 9), (2, b""), (502, message((2, message((1, "main"), (2, function))))))


def body(block: bytes) -> bytes:
    return program_of(message((2, "CoreML8"), (3, message((1, "CoreML8"), (2, block)))))


def described_by(array: bytes) -> bytes:
    feature = message((1, "x"), (3, message((5, array))))
    block = message((1, "CoreML8"), (2, b""))
    function = message((2, message((1, "main"), (2, message((3, block))))))
    return message((1, 9), (2, message((1, feature))), (502, function))


BOMBS = {
    "blocks in blocks": (body(nested_blocks(2000)), "nested deeper"),
    "types in types": (program_of(nested_types(2000)), "nested deeper"),
    "a length beyond the file": (b"\x12\xff\xff\xff\xff\x7f", "bytes left"),
    "a number without an end": (b"\x08" + b"\xff" * 40, "more than 64 bits"),
    "millions of empty operations": (body(b"\x1a\x00" * 4_000_000), "more operations"),
    "millions of empty fields": (b"\x7a\x00" * 8_000_000, "more fields"),
    "millions of axes": (described_by(message((1, packed((1,) * 1_000_000)))), "axes"),
    "a group": (b"\x0b\x0c", "wire type 3"),
    "no function": (message((1, 9), (502, b"")), "no function"),
    "a function without a block": (program_of(message((2, "CoreML8"))), "no block"),
    "a name that is no text": (body(message((2, b"\xff\xfe"))), "not UTF-8"),
    "a number for a message": (message((1, 9), (502, 7)), "a number where a message"),
}


@pytest.mark.timeout(10)
@pytest.mark.parametrize("bomb", BOMBS)
def test_a_bomb_is_refused_in_bounded_time(bomb: str, package: Path) -> None:
    content, reason = BOMBS[bomb]
    (package / PROGRAM).write_bytes(content)
    with pytest.raises(PackageError, match=reason) as caught:
        read_package(package)
    assert caught.value.file.endswith("model.mlmodel")


def test_a_program_larger_than_any_is_not_read(package: Path) -> None:
    truncate(package / PROGRAM, 64 * 1024**2 + 1)
    with pytest.raises(PackageError, match="larger than"):
        read_package(package)


def test_a_constant_in_a_weight_file_is_no_literal(package: Path) -> None:
    embed = read_package(package).model.functions["main"].block.operations[0]
    with pytest.raises(FormatError, match="weight"):
        literal(embed.attributes["val"])


def test_unknown_fields_are_skipped(package: Path) -> None:
    content = (package / PROGRAM).read_bytes()
    (package / PROGRAM).write_bytes(field(15, 1) + content)
    assert read_package(package).model.spec_version == 9
