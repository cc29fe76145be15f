"""The catalog of scenarios and the stand-in app agree on what that app plays."""

from __future__ import annotations

import json

import pytest

from orchestrator.config.model import PolicyBlock
from orchestrator.config.scenario import wire_scenario
from orchestrator.config.scenario_catalog import SCENARIOS
from orchestrator.harness.standin.fields import FieldError, Fields
from orchestrator.harness.standin.scenario import read_scenario


@pytest.mark.parametrize("name", SCENARIOS)
def test_the_app_takes_exactly_the_scenarios_that_do_not_need_swift(name: str) -> None:
    wire = json.loads(json.dumps(wire_scenario(SCENARIOS[name], PolicyBlock(), seed=1)))
    fields = Fields(wire, "scenario")
    if not SCENARIOS[name].needs_swift:
        assert read_scenario(fields).seed == 1
        return
    with pytest.raises(FieldError, match=r"not played|must be decode"):
        read_scenario(fields)
