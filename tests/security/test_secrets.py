"""Secrets of `fleet.yaml` come from the environment and stay there."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from orchestrator.config.fields import from_environment
from orchestrator.config.load import load_config
from orchestrator.config.resolved import resolved_yaml, without_secrets
from orchestrator.domain.errors import ConfigError

if TYPE_CHECKING:
    from pathlib import Path

NOTIFY = 'notify: [{webhook: "${TEST_HOOK}", secret: "${TEST_HOOK_SECRET}"}]\n'


def test_a_secret_written_down_is_refused_and_not_repeated(tmp_path: Path) -> None:
    file = tmp_path / "fleet.yaml"
    file.write_text("notify: [{webhook: 'https://a.example', secret: hunter2}]\n")
    with pytest.raises(ConfigError, match=r"1:\d+: notify.0.secret: a secret is written") as caught:
        load_config(file)
    assert "hunter2" not in str(caught.value)


def test_half_a_reference_is_no_reference(tmp_path: Path) -> None:
    file = tmp_path / "fleet.yaml"
    file.write_text('notify: [{webhook: "https://a.example", secret: "${A}hunter2"}]\n')
    with pytest.raises(ConfigError, match="comes from the environment") as caught:
        load_config(file)
    assert "hunter2" not in str(caught.value)


def test_a_run_keeps_the_names_of_secrets_and_not_their_values(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TEST_HOOK", "https://hook.example/s3cret")
    monkeypatch.setenv("TEST_HOOK_SECRET", "s3cret")
    file = tmp_path / "fleet.yaml"
    file.write_text(NOTIFY)
    config = load_config(file)
    resolved = resolved_yaml(config)
    assert "s3cret" not in resolved + repr(config)
    assert "${TEST_HOOK_SECRET}" in resolved
    (told,) = config.notify
    assert told.secret is not None
    assert from_environment(told.secret) == "s3cret"


@pytest.mark.parametrize(
    "address",
    [
        "https://hooks.example:8443/services/s3cret",
        "https://hooks.example:8443?key=s3cret",
        "https://hooks.example:8443#s3cret",
        "https://anna:s3cret@hooks.example:8443/",
        "https://hooks.example:8443/${NAME}/s3cret",
        "https://[::1/s3cret",
        "${TEST_HOOK}/s3cret",
    ],
)
def test_a_run_keeps_no_more_of_a_written_webhook_than_its_host(
    tmp_path: Path, address: str
) -> None:
    file = tmp_path / "fleet.yaml"
    file.write_text(f"notify: [{{webhook: '{address}'}}]\n")
    file.write_text(resolved_yaml(load_config(file)))
    assert "s3cret" not in file.read_text()
    (told,) = load_config(file).notify
    # A run that is resumed tells nobody until the rest of the address is in the environment.
    assert from_environment(told.webhook) is None
    if "hooks.example" in address:
        assert told.webhook.startswith("https://hooks.example:8443/")


@pytest.mark.parametrize(
    "address",
    ["https://hooks.example", "http://hooks.example/", "${HOOK}", "https://a.example/${HOOK}"],
)
def test_a_webhook_without_a_written_rest_is_kept_as_it_is(address: str) -> None:
    assert without_secrets(address) == address


def test_an_unset_name_gives_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TEST_HOOK_SECRET", raising=False)
    assert from_environment("${TEST_HOOK_SECRET}") is None
