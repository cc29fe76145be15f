"""Who may join, and what listens: processes of one cluster with keys of both sides."""

from __future__ import annotations

import re
import sys
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.cluster.members import Member, free_port, needs_dask
from tests.end_to_end.fleet_process import FinishedRun, environment, run_fleet

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = [needs_dask, pytest.mark.chaos, pytest.mark.timeout(400)]

OTHER_VERSION = """\
import sys, orchestrator
orchestrator.__version__ = "0.0.9"
from orchestrator.cli.main import main
sys.argv = ["fleet", *sys.argv[1:]]
main()
"""


class Secured:
    """A scheduler that demands certificates, and an agent without phones."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.port = folder, free_port()
        self.url = f"tls://127.0.0.1:{self.port}"
        made = self.init("certificates")
        assert made.exit_code == 0, made.stderr
        self.init("foreign")
        self.scheduler = Member(
            folder / "scheduler",
            (
                *("cluster", "scheduler", "--listen", self.url),
                *("--certificates", str(folder / "certificates" / "scheduler")),
            ),
            {},
            "scheduler at tls",
        )
        self.agent = Member(
            folder / "mini-1",
            (
                *("agent", "--listen", f"tls://127.0.0.1:{free_port()}"),
                *("--certificates", str(folder / "certificates" / "agent-mini-1")),
            ),
            {"USBMUXD_SOCKET_ADDRESS": f"127.0.0.1:{free_port()}"},
            "agent mini-1 at tls",
        )

    def init(self, name: str) -> FinishedRun:
        words = ("cluster", "init", str(self.folder / name), "--scheduler", self.url)
        return run_fleet(self.folder, *words, "--agents", "mini-1")

    def devices(self, certificates: str, url: str = "") -> FinishedRun:
        bundle = str(self.folder / certificates / "client")
        return run_fleet(
            self.folder, "devices", "--cluster", url or self.url, "--certificates", bundle
        )


@pytest.fixture(scope="module")
def secured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Secured]:
    members = Secured(tmp_path_factory.mktemp("secured"))
    with ExitStack() as stack:
        for member in (members.scheduler, members.agent):
            stack.callback(member.end)
            member.start()
        yield members


def test_a_client_with_a_certificate_is_answered(secured: Secured) -> None:
    done = secured.devices("certificates")
    assert done.exit_code == 3, done.stderr  # the agent answered, and holds no phone
    assert "mini-1: source usb" in done.stderr


def test_a_certificate_of_another_authority_is_refused(secured: Secured) -> None:
    done = secured.devices("foreign")
    assert done.exit_code == 4
    assert re.search(r"the scheduler at tls://127\.0\.0\.1:\d+ does not answer", done.stderr)
    assert len(done.stderr.strip().splitlines()) == 1


def test_without_tls_nobody_is_answered(secured: Secured) -> None:
    done = secured.devices("certificates", f"tcp://127.0.0.1:{secured.port}")
    assert done.exit_code == 4
    assert "does not answer" in done.stderr


def test_without_a_bundle_the_command_says_where_it_looked(secured: Secured) -> None:
    done = run_fleet(secured.folder, "devices", "--cluster", secured.url)
    assert done.exit_code == 2
    assert "is no certificate bundle" in done.stderr
    assert "fleet cluster init" in done.stderr


def test_each_member_listens_on_its_one_port(secured: Secured) -> None:
    for member in (secured.scheduler, secured.agent):
        assert member.process is not None
        wanted = int(member.words[member.words.index("--listen") + 1].rpartition(":")[2])
        assert listening(member.process.pid) == {wanted}


def test_an_agent_of_another_version_is_refused_with_both(secured: Secured) -> None:
    import subprocess

    done = subprocess.run(
        [sys.executable, "-c", OTHER_VERSION, *secured.agent.words],
        env=environment(secured.folder),
        capture_output=True,
        text=True,
        timeout=90,
        check=False,
    )
    assert done.returncode == 2
    assert "agent mini-1 has fleet 0.0.9, the scheduler has fleet 0.1.0" in done.stderr


def listening(pid: int) -> set[int]:
    """TCP ports that a process listens on, by /proc."""
    inodes = set()
    for descriptor in Path(f"/proc/{pid}/fd").iterdir():
        match = re.fullmatch(r"socket:\[(\d+)\]", str(descriptor.readlink()))
        if match:
            inodes.add(match[1])
    ports = set()
    for table in ("tcp", "tcp6"):
        for line in Path(f"/proc/{pid}/net/{table}").read_text().splitlines()[1:]:
            fields = line.split()
            if fields[3] == "0A" and fields[9] in inodes:
                ports.add(int(fields[1].rpartition(":")[2], 16))
    return ports
