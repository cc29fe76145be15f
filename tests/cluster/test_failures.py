"""What may break between hosts, each with what must come of it; no journalled record is lost."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import pytest

from orchestrator.runlog.manifest import differing_files
from tests.chaos.killed_runs import WORKLOAD, ends_of
from tests.cluster.broken_network import proxied
from tests.cluster.members import (
    RUN_LIMIT_S,
    Cluster,
    agent_member,
    cluster,
    kill_process,
    needs_dask,
)
from tests.end_to_end.fleet_process import FinishedRun, finish, read_json, wait_for

if TYPE_CHECKING:
    import subprocess
    from pathlib import Path

pytestmark = [needs_dask, pytest.mark.timeout(600)]

SKEWED = "import time\nreal = time.time\ntime.time = lambda: real() + 3600.0\n"
CROWDED = """\
import pathlib, shutil
real = shutil.disk_usage
def usage(path):
    found = real(path)
    full = pathlib.Path({flag!r}).exists()
    return found._replace(free=1 << 20) if full else found
shutil.disk_usage = usage
"""


def held_to_the_end(run: FinishedRun, fleet: Cluster) -> None:
    """Assert that all phones passed, and that every record of every journal arrived once."""
    assert run.exit_code == 0, run.stdout + run.stderr
    ends = ends_of(run)  # holds that no (launch, seq) is missing or doubled, up to `bye`
    wanted = {phone["udid"] for farm in fleet.farms.values() for phone in farm["phones"]}
    assert ends.keys() == wanted
    assert {end.outcome for end in ends.values()} == {"PASS"}
    assert differing_files(run.path) == []
    for name in fleet.agents:
        for there in fleet.run_of(name).glob("devices/*/attempts/*/launches/*/journal.ndjson"):
            here = run.path / there.relative_to(fleet.run_of(name))
            assert here.read_bytes() == there.read_bytes()


def begun(fleet: Cluster) -> subprocess.Popen[str]:
    process = fleet.start(*WORKLOAD)
    for name in fleet.agents:
        fleet.wait_for_records(name, 20)
    return process


def ended(process: subprocess.Popen[str], fleet: Cluster) -> FinishedRun:
    return finish(process, fleet.output, limit_s=RUN_LIMIT_S)


def events(run: FinishedRun, kind: str) -> list[dict[str, Any]]:
    return [event["facts"] for event in run.events(kind)]


@pytest.mark.chaos
def test_a_killed_coordinator_is_resumed_and_the_hosts_went_on(tmp_path: Path) -> None:
    with cluster(tmp_path, hosts=2, phones=1) as fleet:
        process = begun(fleet)
        process.kill()
        process.communicate(timeout=10)
        wait_for(
            lambda: all((fleet.run_of(name) / "MANIFEST.sha256").exists() for name in fleet.agents),
            RUN_LIMIT_S,
            "the end of both hosts without a coordinator",
        )
        run = fleet.fleet("resume", "--output", str(fleet.output))
        held_to_the_end(run, fleet)


@pytest.mark.chaos
def test_a_rebooted_host_resumes_its_phones_and_no_other_notices(tmp_path: Path) -> None:
    with cluster(tmp_path, hosts=2, phones=1) as fleet:
        process = begun(fleet)
        child = fleet.child_of("mini-2")
        fleet.agents["mini-2"].kill()
        kill_process(child)
        events_file = fleet.output / "latest" / "events.ndjson"
        wait_for(lambda: b"agent_lost" in events_file.read_bytes(), RUN_LIMIT_S, "the loss")
        fleet.agents["mini-2"].start()
        run = ended(process, fleet)
        held_to_the_end(run, fleet)
        assert [fact["host"] for fact in events(run, "run_resumed")] == ["mini-2"]
        assert "mini-2" in {fact["agent"] for fact in events(run, "agent_back")}
        assert "mini-1" not in {fact["agent"] for fact in events(run, "agent_lost")}
        assert len(list(fleet.run_of("mini-2").glob("devices/*/attempts/*"))) == 1


@pytest.mark.chaos
def test_a_network_cut_for_seconds_costs_nothing(tmp_path: Path) -> None:
    cut_network(tmp_path, 6.0)


@pytest.mark.deep
def test_a_network_cut_for_minutes_costs_nothing(tmp_path: Path) -> None:
    cut_network(tmp_path, 120.0)


def cut_network(folder: Path, seconds: float) -> None:
    with cluster(folder, hosts=2, phones=1) as fleet:
        agent = fleet.agents["mini-2"]
        agent.end()
        port = int(agent.words[agent.words.index("--listen") + 1].rpartition(":")[2])
        scheduler_port = int(fleet.url.rpartition(":")[2])
        with proxied(scheduler_port) as to_scheduler, proxied(port) as to_agent:
            moved = agent_member(fleet, "mini-2", to_scheduler.url, ("--contact", to_agent.url))
            words = list(moved.words)
            words[words.index("--listen") + 1] = f"tcp://127.0.0.1:{port}"
            moved.words = tuple(words)
            fleet.agents["mini-2"] = moved
            moved.start()
            try:
                process = begun(fleet)
                for proxy in (to_scheduler, to_agent):
                    proxy.cut()
                time.sleep(seconds)
                for proxy in (to_scheduler, to_agent):
                    proxy.mend()
                run = ended(process, fleet)
            finally:
                moved.end()
            held_to_the_end(run, fleet)
            assert {fact["agent"] for fact in events(run, "agent_lost")} == {"mini-2"}
            assert events(run, "run_resumed") == []  # its orchestrator never stopped


@pytest.mark.deep
def test_an_agent_alone_killed_finds_its_orchestrator_again(tmp_path: Path) -> None:
    with cluster(tmp_path, hosts=2, phones=1) as fleet:
        process = begun(fleet)
        child = fleet.child_of("mini-2")
        fleet.agents["mini-2"].kill()
        time.sleep(1)
        fleet.agents["mini-2"].start()
        run = ended(process, fleet)
        held_to_the_end(run, fleet)
        assert events(run, "run_resumed") == []
        assert read_json(fleet.run_of("mini-2") / "run.json")["owner_pid"] == child


@pytest.mark.deep
def test_a_killed_scheduler_that_is_started_again_knows_all(tmp_path: Path) -> None:
    with cluster(tmp_path, hosts=2, phones=1) as fleet:
        process = begun(fleet)
        fleet.scheduler.kill()
        time.sleep(3)
        fleet.scheduler.start()
        run = ended(process, fleet)
        held_to_the_end(run, fleet)
        assert events(run, "run_resumed") == []


@pytest.mark.deep
def test_a_host_that_stays_away_leaves_a_run_that_is_resumed_later(tmp_path: Path) -> None:
    with cluster(tmp_path, hosts=2, phones=1) as fleet:
        process = fleet.start(*WORKLOAD, "--set", "cluster.return_limit_s=3")
        for name in fleet.agents:
            fleet.wait_for_records(name, 20)
        fleet.agents["mini-2"].kill()
        cut_short = ended(process, fleet)
        assert cut_short.exit_code == 4, cut_short.stdout + cut_short.stderr
        assert "fleet resume" in cut_short.stderr
        assert cut_short.summary["outcome"] == "ABORTED"
        fleet.agents["mini-2"].start()
        held_to_the_end(fleet.fleet("resume", "--output", str(fleet.output)), fleet)


@pytest.mark.deep
def test_an_hour_between_clocks_is_measured_and_corrected(tmp_path: Path) -> None:
    (tmp_path / "skewed").mkdir()
    (tmp_path / "skewed" / "sitecustomize.py").write_text(SKEWED)
    with cluster(tmp_path, hosts=2, phones=1) as fleet:
        agent = fleet.agents["mini-2"]
        agent.end()
        agent.environment["PYTHONPATH"] = str(tmp_path / "skewed")
        agent.start()
        run = fleet.fleet("soak", *WORKLOAD)
        held_to_the_end(run, fleet)
        parts = {part["host"]: part for part in read_json(run.path / "run.json")["parts"]}
        assert abs(parts["mini-1"]["clock_offset_s"]) < 5
        assert abs(parts["mini-2"]["clock_offset_s"] - 3600) < 5
        launched = {event["facts"]["host"]: event["at_s"] for event in run.events("launched")}
        assert abs(launched["mini-1"] - launched["mini-2"]) < 120


@pytest.mark.deep
def test_a_full_disk_holds_up_its_own_host_alone(tmp_path: Path) -> None:
    flag = tmp_path / "full"
    (tmp_path / "crowded").mkdir()
    (tmp_path / "crowded" / "sitecustomize.py").write_text(CROWDED.format(flag=str(flag)))
    with cluster(tmp_path, hosts=2, phones=1) as fleet:
        agent = fleet.agents["mini-2"]
        agent.end()
        agent.environment["PYTHONPATH"] = str(tmp_path / "crowded")
        agent.start()
        process = begun(fleet)
        flag.touch()
        kill_process(fleet.child_of("mini-2"))  # as a write that fails ends it
        wait_for(
            (fleet.run_of("mini-1") / "MANIFEST.sha256").exists,
            RUN_LIMIT_S,
            "the end of the host with room",
        )
        status = fleet.fleet("status")
        assert "disk full: 1 MiB are free, 256 are needed" in status.stdout
        flag.unlink()
        run = ended(process, fleet)
        held_to_the_end(run, fleet)
        assert "mini-2 waits: disk full" in run.stderr
        assert [fact["host"] for fact in events(run, "run_resumed")] == ["mini-2"]
