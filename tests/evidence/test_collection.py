"""Files, folders, copies, and sizes that no phone's memory would bear."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from orchestrator.evidence.collection import Copies, collected, files_below
from orchestrator.evidence.parse import read_reports
from orchestrator.evidence.reports import CrashReport, JetsamReport, Unparsed
from orchestrator.evidence.scan import LONGEST_VALUE
from tests.evidence.factory import FIXTURES, crash, jetsam, process, report

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

MIB = 1 << 20


def test_copies_of_one_incident_are_yielded_once() -> None:
    copies = Copies()
    found = list(collected([FIXTURES / "J09_same_incident"], copies))
    assert [type(one) for one in found] == [JetsamReport]
    assert copies.count == len(list((FIXTURES / "J09_same_incident").iterdir())) - 1


def test_a_readable_copy_is_preferred_wherever_it_lies(tmp_path: Path) -> None:
    whole = jetsam(process())
    (tmp_path / "a.ips").write_bytes(whole[:-40])
    (tmp_path / "b.ips.synced").write_bytes(whole)
    (tmp_path / "c").write_bytes(whole[:-50])
    copies = Copies()
    (found,) = collected([tmp_path], copies)
    assert copies.count == 2
    assert (type(found), found.header.file) == (JetsamReport, str(tmp_path / "b.ips.synced"))


def test_of_unreadable_copies_one_is_kept(tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / name).write_bytes(jetsam(process())[:-40])
    (found,) = collected([tmp_path])
    assert isinstance(found, Unparsed)


def test_an_incident_is_the_same_in_any_case_and_a_nil_one_is_none(tmp_path: Path) -> None:
    nil = "00000000-0000-0000-0000-000000000000"
    for number, incident in enumerate(["ab-1", "AB-1", nil, nil, ""]):
        (tmp_path / str(number)).write_bytes(report("210", {"string": "x"}, incident_id=incident))
    assert len(list(collected([tmp_path]))) == 4


def test_folders_are_walked_and_links_out_of_them_are_not(tmp_path: Path) -> None:
    inside, outside = tmp_path / "in", tmp_path / "out"
    (inside / "Retired").mkdir(parents=True)
    outside.mkdir()
    for path in (inside / "b.ips", inside / "Retired" / "a.txt", outside / "x.ips"):
        path.write_bytes(crash())
    (inside / "link").symlink_to(outside)
    (inside / "loop").symlink_to(inside)
    os.mkfifo(inside / "pipe")
    names = [path.relative_to(inside).as_posix() for path in files_below([inside])]
    assert names == ["b.ips", "Retired/a.txt"]


def test_a_file_that_vanishes_is_unreadable_not_an_error(tmp_path: Path) -> None:
    (found,) = read_reports(tmp_path / "gone.ips", "gone.ips")
    assert isinstance(found, Unparsed)
    assert found.reason == "unreadable: No such file or directory"


CHILD = """
import sys
from pathlib import Path
from orchestrator.evidence.collection import Copies, collected

def highest_mib():
    try:
        status = Path("/proc/self/status").read_text()
        return int(status.partition("VmHWM:")[2].split()[0]) / 1024
    except OSError:
        import resource
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20

before = highest_mib()
count = sum(1 for _ in collected([Path(sys.argv[1])]))
print(count, highest_mib() - before)
"""


def read_in_a_child(path: Path) -> tuple[int, float]:
    """Return how many reports were read and by how many MiB the process grew at most."""
    done = subprocess.run(
        [sys.executable, "-c", CHILD, str(path)], check=True, capture_output=True, text=True
    )
    count, grown_mib = done.stdout.split()
    return int(count), float(grown_mib)


def write(path: Path, chunks: Iterable[bytes]) -> Path:
    with path.open("wb") as file:
        file.writelines(chunks)
    return path


HEAD = b'{"bug_type":"298","timestamp":"2026-01-10 12:00:00.00 +0000"}\n'
ALIVE = b'{"name":"x","pid":7,"states":[],"pad":"' + b"y" * 400 + b'"},\n'
VICTIM = b'{"name":"SoakHarness","pid":1,"rpages":9,"reason":"highwater"}'


def long_jetsam(mib: int) -> list[bytes]:
    return [HEAD, b'{"processes":[', *([ALIVE] * (mib * MIB // len(ALIVE))), VICTIM, b"]}"]


def test_a_jetsam_report_of_50_mb_is_read_in_a_stream(tmp_path: Path) -> None:
    path = write(tmp_path / "big.ips", long_jetsam(50))
    count, grown_mib = read_in_a_child(path)
    assert (count, path.stat().st_size > 50_000_000) == (1, True)
    assert grown_mib < 16


def test_the_victim_at_the_end_of_a_long_list_is_found(tmp_path: Path) -> None:
    (found,) = read_reports(write(tmp_path / "r", long_jetsam(2)), "r")
    assert isinstance(found, JetsamReport)
    assert [one.name for one in found.victims] == ["SoakHarness"]


@pytest.mark.parametrize(
    "filler",
    [b"x" * MIB, b'\\"' * (MIB // 2), b"\n" * MIB, "ü".encode() * (MIB // 2)],
    ids=["letters", "escapes", "lines", "wide"],
)
def test_a_text_of_50_mb_is_not_kept(tmp_path: Path, filler: bytes) -> None:
    chunks = [HEAD.replace(b"298", b"309"), b'{"pid":7,"x":"', *([filler] * 50), b'","pid":8}']
    path = write(tmp_path / "big.ips", chunks)
    (found,) = read_reports(path, "r")
    assert isinstance(found, CrashReport)
    assert found.pid == 8
    assert read_in_a_child(path)[1] < 6 * LONGEST_VALUE / MIB


@pytest.mark.parametrize("unit", [b"[", b"{", b'{"a":', b'"', b"\\", b"{}\n", b'{"bug_type":1}\n'])
def test_what_never_ends_is_read_in_bounded_memory(tmp_path: Path, unit: bytes) -> None:
    path = write(tmp_path / "r", [HEAD, *([unit * (MIB // len(unit))] * 2)])
    count, grown_mib = read_in_a_child(path)
    assert count >= 1
    assert grown_mib < 24


def test_ten_thousand_files_are_listed_in_a_stream(tmp_path: Path) -> None:
    for number in range(10_000):
        content = report("210", {"panicString": "x" * 900}, incident_id=f"I-{number // 2}")
        (tmp_path / f"{number:05}.ips").write_bytes(content)
    count, grown_mib = read_in_a_child(tmp_path)
    assert count == 5000
    assert grown_mib < 12
