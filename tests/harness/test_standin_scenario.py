"""What newer scenarios and packages have the stand-in app do, and what it refuses to play."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

import pytest

from orchestrator.harness.models import PlannedGroup, WitnessShape
from orchestrator.harness.standin.text import TextView
from tests.harness.judge import of_kind
from tests.harness.standin_process import StandIn, slow

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

SHAPE = WitnessShape(64 * 1024**2, capacity=256)


def started(container: Path, shape: WitnessShape, **env: str) -> StandIn:
    return StandIn(container, env, shape)


def test_the_view_shows_whole_characters_alone(container: Path) -> None:
    app = started(container, dataclasses.replace(SHAPE, text="pieces"))
    records = app.soak(stop_after_tokens=200)
    app.kill()
    tokens = of_kind(records, "tokens")
    text = "".join(record["text"] for record in tokens)
    held_bytes = sum(record["held_bytes"] for record in of_kind(records, "turn_end"))
    assert records[0]["text"] == "pieces"
    assert "😀" in text
    assert "\N{REPLACEMENT CHARACTER}" not in text
    assert sum(record["text_bytes"] for record in tokens) == len(text.encode()) + held_bytes


def test_an_end_token_gives_no_text_and_half_a_character_is_held() -> None:
    view = TextView("pieces", end_id=0)
    assert [view.show(token).text for token in (26, 0)] == ["a", ""]
    assert view.held_bytes == 1


def test_a_load_takes_its_time_and_states_its_plan(container: Path) -> None:
    planned = PlannedGroup("feed_forward", "neural_engine", 48)
    app = started(container, dataclasses.replace(SHAPE, load_ms=80, compute_plan=(planned,)))
    load = of_kind(app.soak(stop_after_tokens=5), "load")[0]
    app.kill()
    assert load["ms"] >= 80
    assert load["plan"] == [dataclasses.asdict(planned)]


def test_hello_states_what_the_phone_says_of_itself(container: Path) -> None:
    app = started(container, SHAPE, FLEET_LC_UUID="7692c3ad", FLEET_BOOT_TIME_S="1700000000.5")
    hello = app.soak(stop_after_tokens=5)[0]
    app.kill()
    assert (hello["lc_uuid"], hello["boot_time_s"]) == ("7692c3ad", 1700000000.5)
    assert hello["sampling"]["mode"] == "greedy"


def test_a_warning_in_a_pause_is_answered_in_it(launch: Callable[..., StandIn]) -> None:
    app = launch()
    client = app.connect()
    client.hello()
    app.start(client, pause_ms=3000, stop_after_tokens=None, speed=slow())
    app.await_journal(b'"kind":"turn_end"')
    app.condition(n=1, event="memory_warning")
    app.await_journal(b'"kind":"evict"')
    assert b'"phase":"idle"' in app.journal.split(b'"kind":"evict"')[1].split(b"\n")[0]
    client.ask("stop")
    assert app.status() == 0


@pytest.mark.parametrize(
    "change",
    [
        {"audits": [{"at_token": 5}]},
        {"background": [{"at_token": 5, "for_ms": 10}]},
        {"reloads": [{"at_token": 5}]},
        {"engine_faults": [{"kind": "load", "at_token": 0}]},
        {"sampling": {"mode": "sampled", "temperature": 1.0, "seed": 1}},
        {"speed": {**slow(), "thermal_percent": {"critical": 50}}},
        {"warnings": [{"at_token": 5, "phase": "idle"}]},
    ],
)
def test_what_it_does_not_play_is_refused(
    launch: Callable[..., StandIn], change: dict[str, object]
) -> None:
    app = launch()
    client = app.connect()
    client.hello()
    assert app.start(client, **change)["error"] == "scenario"


def test_empty_lists_of_what_it_does_not_play_are_taken(launch: Callable[..., StandIn]) -> None:
    app = launch()
    client = app.connect()
    client.hello()
    empty: dict[str, object] = {"audits": [], "background": [], "sampling": {"mode": "greedy"}}
    assert app.start(client, **empty)["ok"]
