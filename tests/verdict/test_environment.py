"""What a soak ran in is told by the first words of its first launch."""

from __future__ import annotations

from orchestrator.runlog.telemetry import decode_record
from orchestrator.verdict.environment import Environment
from tests.verdict.host_side import encode
from tests.verdict.telemetry_factory import App


def test_the_first_launch_speaks_for_the_soak_and_the_last_sample_for_its_end() -> None:
    environment = Environment()
    records = [decode_record(line) for line in encode(App().run())]
    for record in records:
        environment.observe(record)
    assert environment.hello == records[0]
    assert environment.load is not None
    samples = [record for record in records if type(record).__name__ == "Sample"]
    assert (environment.first_sample, environment.last_sample) == (samples[0], samples[-1])
    for record in records:
        environment.observe(record)
    assert environment.first_sample == samples[0]


def test_silence_tells_nothing() -> None:
    assert Environment() == Environment(None, None, None, None)
