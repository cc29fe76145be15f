"""Every record of the stand-in app is one that the schema shared with the Swift app allows."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import jsonschema
import pytest

from orchestrator.harness.package import REPO_ROOT
from tests.harness.standin_process import StandIn, slow

if TYPE_CHECKING:
    from collections.abc import Callable

SCHEMA = REPO_ROOT / "ios_harness" / "protocol" / "telemetry.schema.json"
KINDS_OF_A_FULL_SOAK = {
    "hello",
    "load",
    "handler",
    "state",
    "turn_start",
    "prefill",
    "tokens",
    "trim",
    "evict",
    "memory_warning",
    "notice",
    "sample",
    "lifecycle",
    "breadcrumb",
    "turn_end",
    "bye",
}


@pytest.mark.skipif(not SCHEMA.exists(), reason="the schema comes with the Swift package")
def test_every_record_of_a_full_soak_is_valid(launch: Callable[..., StandIn]) -> None:
    app = launch()
    client = app.connect()
    client.hello()
    endless = {"stop_after_tokens": None, "duration_s": 3600.0, "speed": slow()}
    app.start(client, warnings=[{"at_token": 50}], **endless)
    app.await_journal(b'"kind":"evict"')
    app.await_journal(b'"purpose":"resume"')  # only a state that is alive goes in the background
    app.condition(n=1, event="battery", level_percent=50, charging=False)
    app.condition(n=2, event="foreground", value=False)
    app.await_journal(b'"purpose":"background"')
    app.condition(n=3, event="foreground", value=True)
    app.await_journal(b'"battery_percent":50')
    client.ask("stop")
    app.status()
    validator = jsonschema.Draft202012Validator(json.loads(SCHEMA.read_bytes()))
    records = [json.loads(line) for line in app.journal.splitlines()]
    assert {record["kind"] for record in records} >= KINDS_OF_A_FULL_SOAK
    for record in records:
        validator.validate(record)
