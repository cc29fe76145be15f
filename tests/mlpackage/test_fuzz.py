"""The reader and everything that works on what it read, on packages with random damage."""

from __future__ import annotations

import random
import resource
import shutil
import time
from typing import TYPE_CHECKING

import pytest

from orchestrator.mlpackage.budget.demand import demand_of
from orchestrator.mlpackage.errors import FormatError, PackageError
from orchestrator.mlpackage.inspect import report
from orchestrator.mlpackage.lint.run import lint
from orchestrator.mlpackage.names import roles
from orchestrator.mlpackage.package import read_package
from orchestrator.mlpackage.protobuf import WireReader
from tests.mlpackage.encode import field, varint
from tests.mlpackage.small import Decoder, write_package

if TYPE_CHECKING:
    from pathlib import Path

PROGRAM = "Data/com.apple.CoreML/model.mlmodel"
WEIGHTS = "Data/com.apple.CoreML/weights/weight.bin"
FILES = (PROGRAM, PROGRAM, PROGRAM, WEIGHTS, "Manifest.json")
LIMIT_S = 5.0  # for one input: a slow machine included
GROWTH_LIMIT_KIB = 300 * 1024


def damaged(content: bytes, draw: random.Random) -> bytes:
    """Return the content with a few random faults."""
    damaged_content = bytearray(content)
    for _ in range(draw.choice((1, 1, 2, 8))):
        place = draw.randrange(len(damaged_content) or 1)
        end = min(len(damaged_content), place + draw.randint(1, 64))
        match draw.randrange(6):
            case 0:
                damaged_content[place : place + 1] = bytes([draw.randrange(256)])
            case 1:
                del damaged_content[place:end]
            case 2:
                damaged_content[place:place] = damaged_content[place:end]
            case 3:
                damaged_content[place : place + 1] = varint(
                    draw.getrandbits(draw.choice((8, 32, 63)))
                )
            case 4:
                damaged_content[place:end] = draw.randbytes(end - place)
            case _:
                del damaged_content[place + draw.randrange(512) :]
    return bytes(damaged_content)


def reshaped(message: bytes, draw: random.Random) -> bytes:
    """Return a message with one field somewhere below it changed, all lengths kept right."""
    try:
        fields = list(WireReader().fields(message))
    except FormatError:
        return draw.randbytes(draw.randrange(9))
    if not fields:
        return draw.choice((b"", message + field(draw.randrange(1, 40), draw.getrandbits(62))))
    place = draw.randrange(len(fields))
    number, value = fields[place]
    match draw.randrange(10):
        case 0:
            del fields[place]
        case 1:
            fields.insert(draw.randrange(len(fields)), (number, value))
        case 2:
            fields[place] = (draw.randrange(1, 40), value)
        case 3:
            fields[place] = (number, draw.choice((0, 1, draw.getrandbits(16), (1 << 64) - 1)))
        case _:
            inner = draw.getrandbits(20) if isinstance(value, int) else reshaped(bytes(value), draw)
            fields[place] = (number, inner)
    return b"".join(field(n, v if isinstance(v, int) else bytes(v)) for n, v in fields)


def use(package: Path) -> bool:
    """Return whether a package is read; then everything that works on it must."""
    refusal = ""
    try:
        read = read_package(package)
    except PackageError as error:
        refusal = str(error)
    if refusal:
        assert refusal.isprintable()
        return False
    report(read, None)
    lint([read])
    demand_of([read])
    roles([read.model])
    return True


def fuzz(tmp_path: Path, seed: int, count: int) -> None:
    draw = random.Random(seed)
    functions = {"decode": Decoder(), "prefill": Decoder(width=8, inner=("int8", "dense"))}
    sound = write_package(tmp_path / "sound.mlpackage", functions)
    originals = {name: (sound / name).read_bytes() for name in set(FILES)}
    package = tmp_path / "damaged.mlpackage"
    shutil.copytree(sound, package)
    before_kib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    read_count = 0
    for ordinal in range(count):
        name = draw.choice(FILES)
        change = reshaped if name == PROGRAM and draw.random() < 0.7 else damaged
        (package / name).write_bytes(change(originals[name], draw))
        start_s = time.monotonic()
        read_count += use(package)
        assert time.monotonic() - start_s < LIMIT_S, f"seed {seed}, input {ordinal}"
        (package / name).write_bytes(originals[name])
    grown_kib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before_kib
    assert grown_kib < GROWTH_LIMIT_KIB
    assert 0 < read_count < count, "damage that never or always shows tests nothing"


@pytest.mark.timeout(60)
def test_2_000_damaged_packages_are_read_or_refused_in_one_line(tmp_path: Path) -> None:
    fuzz(tmp_path, seed=1, count=2_000)


@pytest.mark.deep
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("seed", range(2, 12))
def test_10_000_more_for_each_seed(seed: int, tmp_path: Path) -> None:
    fuzz(tmp_path, seed, count=10_000)
