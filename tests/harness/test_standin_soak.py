"""The stand-in app end to end: a child process on its unix socket, judged by own sums."""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
import time
from collections.abc import Callable
from itertools import groupby

import pytest

from tests.harness.judge import of_kind, wrong_tokens
from tests.harness.standin_process import (
    PHONE_LIMIT_BYTES,
    REPO_ROOT,
    Record,
    StandIn,
    one_long_turn,
    slow,
)

Launcher = Callable[..., StandIn]


def assert_chained(lines: list[bytes]) -> None:
    digest = hashlib.sha256()
    since = 0
    for line in lines:
        record = json.loads(line)
        since += 1
        if "chain" not in record:
            digest.update(line)
            continue
        assert record["chain"] == digest.hexdigest()[:16]
        digest, since = hashlib.sha256(), 0
        assert since <= 64
    assert "chain" in json.loads(lines[-1])


def test_a_soak_ends_with_bye_and_status_0_and_its_stream_is_its_journal(launch: Launcher) -> None:
    app = launch()
    assert app.first_line == b"fleet-harness listening\n"
    client = app.connect()
    assert client.hello()["started"] is False
    assert app.start(client)["ok"] is True
    lines = client.rest()
    assert app.status() == 0
    assert b"".join(lines) == app.journal
    records = [json.loads(line) for line in lines]
    assert [record["seq"] for record in records] == list(range(1, len(records) + 1))
    assert [record["kind"] for record in records[:4]] == ["hello", "breadcrumb", "load", "handler"]
    assert records[0]["stand_in"] is True
    assert (records[-1]["kind"], records[-1]["reason"]) == ("bye", "completed")
    assert records[-1]["tokens_total"] == 400
    assert_chained(lines)


def test_every_token_is_proven_by_the_context_the_records_claim(launch: Launcher) -> None:
    records = launch().soak(warnings=[{"at_token": 100}, {"at_token": 231}])
    assert len(of_kind(records, "trim")) >= 3
    assert wrong_tokens(records) == 0


def test_the_budget_is_never_passed(launch: Launcher) -> None:
    records = launch().soak()
    counts = [count for record in of_kind(records, "tokens") for count in record["n"]]
    assert max(counts) == records[0]["budget"] == 64


def test_a_trim_is_written_in_the_order_of_the_protocol(launch: Launcher) -> None:
    records = launch().soak()
    place = next(i for i, record in enumerate(records) if record["kind"] == "trim")
    trim = records[place]
    assert records[place - 1]["about"] == "trim"
    after = [r for r in records[place + 1 :] if r["kind"] not in ("sample", "heartbeat")]
    shape = [kind for kind, _ in groupby(record["kind"] for record in after)][:3]
    assert shape == ["state", "prefill", "notice"]
    assert [(r["action"], r["purpose"]) for r in after[:2]] == [
        ("released", "trim"),
        ("made", "trim"),
    ]
    notice = of_kind(after, "notice")[0]
    assert (notice["for_seq"], notice["shown"]) == (trim["seq"], True)
    refed = next(r for r in after if r["kind"] == "prefill" and r["purpose"] == "trim")
    assert len(refed["ids"]) == trim["kept"]
    assert refed["ids"][0] == records[0]["bos_id"]


def test_a_synthetic_warning_evicts_right_after_its_token(launch: Launcher) -> None:
    records = launch().soak(warnings=[{"at_token": 100}])
    (warning,) = of_kind(records, "memory_warning")
    (evict,) = of_kind(records, "evict")
    before = records[: warning["seq"] - 1]
    assert sum(len(record["ids"]) for record in of_kind(before, "tokens")) == 100
    assert warning["origin"] == "synthetic"
    assert (evict["warnings"], evict["reason"], evict["kept"]) == ([1], "memory_warning", 0)
    released = records[evict["seq"]]
    assert (released["action"], released["purpose"]) == ("released", "evict")
    assert released["footprint"] < evict["footprint"]
    notices = [r for r in of_kind(records, "notice") if r["for_seq"] == evict["seq"]]
    assert len(notices) == 1
    assert records[-1]["evictions"] == 1


def test_two_runs_with_one_seed_are_equal_but_for_time(launch: Launcher) -> None:
    def essence(records: list[Record]) -> list[object]:
        return [
            (record["kind"], record.get("used_ids"), record.get("ids"), record.get("before"))
            for record in of_kind(records, "turn_start", "prefill", "trim", "evict", "turn_end")
        ]

    warnings = [{"at_token": 57}]
    assert essence(launch().soak(warnings=warnings)) == essence(launch().soak(warnings=warnings))


def test_the_turn_ends_with_what_its_consumer_saw(launch: Launcher) -> None:
    records = launch().soak(end_every=20)
    seen: list[int] = []
    reasons = set()
    for record in records:
        if record["kind"] == "turn_start":
            seen = []
        if record["kind"] == "tokens":
            seen += record["ids"]
        if record["kind"] == "turn_end":
            raw = b"".join(token.to_bytes(4, "little") for token in seen)
            assert record["text_hash"] == hashlib.sha256(raw).hexdigest()[:16]
            assert record["generated"] == record["consumed"] == len(seen)
            reasons.add(record["reason"])
    assert {"end_token", "cancelled"} <= reasons


def test_ballast_grows_to_its_share_of_the_limit_and_goes_with_an_eviction(
    launch: Launcher,
) -> None:
    ballast = {
        "from_token": 100,
        "to_token": 200,
        "to_percent": 60,
        "release": "evict",
        "hold_tokens": 300,
    }
    records = launch().soak(ballast=[ballast], warnings=[{"at_token": 300}], sample_period_ms=10)
    samples = of_kind(records, "sample")
    held = [s for s in samples if 200 <= s["tokens_total"] < 300 and s["n"]]
    assert all(abs(s["footprint"] / PHONE_LIMIT_BYTES - 0.6) < 0.02 for s in held)
    assert max(s["ballast"] for s in samples) > 0
    assert samples[-1]["ballast"] == 0
    assert [b["about"] for b in of_kind(records, "breadcrumb")].count("ballast") == 1


def test_a_kernel_warning_on_stdin_evicts(launch: Launcher) -> None:
    app = launch()
    client = app.connect()
    client.hello()
    app.start(client, **one_long_turn())
    app.await_journal(b'"kind":"tokens"')
    app.condition(n=1, event="memory_warning")
    app.await_journal(b'"reason":"memory_warning","warnings":[1]')
    assert client.ask("stop")["ok"] is True
    records = [json.loads(line) for line in client.rest()]
    assert app.status() == 0
    assert records[-1]["reason"] == "stopped"
    assert of_kind(records, "turn_end")[-1]["reason"] == "cancelled"
    assert wrong_tokens([json.loads(line) for line in app.journal.splitlines()]) == 0


def test_in_the_background_nothing_is_predicted_until_the_app_is_back(launch: Launcher) -> None:
    app = launch()
    client = app.connect()
    client.hello()
    app.start(client, **one_long_turn())
    app.await_journal(b'"kind":"tokens"')
    app.condition(n=1, event="foreground", value=False)
    app.await_journal(b'"purpose":"background"')
    tokens = client.ask("status")["tokens_total"]
    time.sleep(0.1)
    assert client.ask("status")["tokens_total"] == tokens
    app.condition(n=2, event="foreground", value=True)
    app.await_journal(b'"event":"foreground"')
    app.await_journal(b'"action":"made","id":2,"purpose":"resume"')
    client.ask("stop")
    assert app.status() == 0
    records = [json.loads(line) for line in app.journal.splitlines()]
    assert [record["event"] for record in of_kind(records, "lifecycle")] == [
        "background",
        "foreground",
    ]
    assert of_kind(records, "evict")[0]["reason"] == "background"
    assert wrong_tokens(records) == 0


def test_conditions_stand_in_the_next_samples_and_unknown_ones_are_ignored(
    launch: Launcher,
) -> None:
    app = launch()
    app.condition(n=1, event="thermal", state="serious")
    app.condition(n=2, event="battery", level_percent=87, charging=True)
    app.condition(n=3, event="eclipse")
    app.condition(n=4, event="thermal", state=7)
    app.condition(n=5, event="low_power", value=True)
    client = app.connect()
    client.hello()
    app.start(client, sample_period_ms=20, speed=slow())
    app.await_journal(b'"low_power":true')
    client.ask("stop")
    sample = of_kind([json.loads(line) for line in app.journal.splitlines()], "sample")[-1]
    assert (sample["thermal"], sample["battery_percent"]) == ("serious", 87)
    assert (sample["charging"], sample["low_power"]) == (True, True)


def test_the_duration_ends_a_soak_without_a_token_limit(launch: Launcher) -> None:
    records = launch().soak(duration_s=0.3, stop_after_tokens=None, speed=slow())
    assert records[-1]["reason"] == "completed"
    assert 0.3 <= records[-1]["inference_s"] < 1.5


def test_a_soak_whose_prompts_never_fit_ends_with_a_fault(launch: Launcher) -> None:
    app = launch()
    records = app.soak(
        prompts={"min_ids": 80, "max_ids": 90, "turn_limit": 9, "turns_per_conversation": 4}
    )
    ends = of_kind(records, "turn_end")
    assert {end["reason"] for end in ends} == {"refused"}
    assert all(start["used_ids"] == [] for start in of_kind(records, "turn_start"))
    assert of_kind(records, "fault")[0]["code"] == "barren"
    assert (records[-1]["reason"], app.status()) == ("fault", 1)


def test_the_app_ends_with_status_18_when_its_phone_is_gone(launch: Launcher) -> None:
    app = launch()
    assert app.process.stdin is not None
    app.process.stdin.close()
    assert app.status() == 18


def test_the_app_ends_when_its_parent_is_gone_already(launch: Launcher) -> None:
    gone = subprocess.Popen([sys.executable, "-c", ""])
    gone.wait()
    app = launch(FLEET_PARENT_PID=str(gone.pid))
    assert app.status() == 18


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("FLEET_TOKEN", ""),
        ("FLEET_DEFECT", "no-such"),
        ("FLEET_DEFECT", "trim-late:1"),  # the Swift app's alone
        ("FLEET_MEMORY_SCALE", "big"),
        ("FLEET_BOOT_TIME_S", "nan"),
    ],
)
def test_an_unusable_environment_exits_with_one_line(
    launch: Launcher, name: str, value: str
) -> None:
    app = launch(**{name: value})
    assert app.status() == (64 if name == "FLEET_DEFECT" else 2)
    assert app.process.stderr is not None
    assert app.process.stderr.read().count(b"\n") == 1


def test_the_stand_in_imports_nothing_outside_the_standard_library_and_domain() -> None:
    program = (
        f"import sys; sys.path.insert(0, {str(REPO_ROOT)!r})\n"
        "import orchestrator.harness.standin.__main__\n"
        "ours = {n for n in sys.modules if n.startswith('orchestrator.')}\n"
        "print(all(n.startswith(('orchestrator.domain', 'orchestrator.harness')) for n in ours))\n"
    )
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", program], capture_output=True, text=True, check=False
    )
    assert (done.stdout, done.stderr) == ("True\n", "")
