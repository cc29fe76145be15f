from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.config.load import config_errors, load_config, validate
from orchestrator.config.position import parse_yaml
from orchestrator.config.resolved import resolved_yaml
from orchestrator.domain.errors import ConfigError
from orchestrator.domain.memory_class import MemoryClass

ROOT = Path(__file__).parents[2]


def refused(text: str, *settings: str, folder: Path) -> str:
    file = folder / "fleet.yaml"
    file.write_text(text)
    with pytest.raises(ConfigError) as caught:
        load_config(file, settings)
    return str(caught.value).replace(str(folder), "")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("scenarioo: x\n", "/fleet.yaml:1:1: unknown key, 'scenarioo', did you mean 'scenario'?"),
        ("schema: 1\nschema: 1\n", "/fleet.yaml:2:1: duplicate key, 'schema'"),
        (
            "gate:\n  min_battery_percent: 30m\n",
            "/fleet.yaml:2:3: gate.min_battery_percent: a number is expected, '30m'",
        ),
        (
            "gate:\n  min_battery: 3\n",
            "/fleet.yaml:2:3: unknown key, 'min_battery', did you mean 'min_battery_percent'?",
        ),
        (
            "sources: [\n",
            "/fleet.yaml:2:1: broken YAML: expected the node content, but found '<stream end>'",
        ),
        (
            "[]\n",
            "/fleet.yaml:1:1: the document: keys with values are expected, []",
        ),
        ("schema: 2\n", "/fleet.yaml:1:1: schema: 1 is expected, 2"),
        (
            "checks:\n  memory.drif: {a: 1}\n",
            (
                "/fleet.yaml:2:3: checks.memory.drif: no check has "
                "this id, did you mean 'memory.drift'?, 'memory.drif'"
            ),
        ),
        (
            "harness:\n  increased_memory_limit: 1\n",
            "/fleet.yaml:2:3: harness.increased_memory_limit: true or false is expected, 1",
        ),
        ("sources: []\n", "/fleet.yaml:1:1: sources: at least one source is needed, []"),
        (
            "sources:\n  - {name: a, usbmux: 'UNIX:/x'}\n",
            (
                "/fleet.yaml:2:15: sources.0.usbmux: a "
                "usbmux address is 'default' or an IPv4 'host:port', 'UNIX:/x'"
            ),
        ),
        (
            "expect:\n  - {udid: abc, alias: a}\n",
            (
                "/fleet.yaml:2:6: expect.0.udid: a UDID like "
                "00008140-000A1B2C3D4E5F60 is expected, 'abc'"
            ),
        ),
        (
            "evidence: {report_wait_s: -1}\n",
            "/fleet.yaml:1:12: evidence.report_wait_s: more than 0 is expected, -1",
        ),
        (
            "evidence: {report_wait_s: .inf}\n",
            "/fleet.yaml:1:12: evidence.report_wait_s: a finite number is expected, inf",
        ),
        (
            "a: &x 1\nb: !!python/object:os.system {}\n",
            (
                "/fleet.yaml:1:1: unknown key, 'a'; the "
                "keys are schema, sources, virtual, expect, harness, model, policy, scenario, "
                "workload, checks, evidence, gate, schedule, retry, recovery, quarantine, cluster, "
                "notify, release, regression; 1 more, `fleet config check` lists all"
            ),
        ),
        (
            "notify: [{webhook: 'https://a', secret: hunter2}]\n",
            (
                "/fleet.yaml:1:33: notify.0.secret: a secret is written ${NAME} and comes from the "
                "environment, not shown"
            ),
        ),
        (
            "regression: {max_loss_percent: {tokens: 5}}\n",
            (
                "/fleet.yaml:1:33: regression.max_loss_percent.tokens: a measure is expected, one "
                "of tokens_per_s, footprint_peak_bytes, load_ms, 'tokens'"
            ),
        ),
        (
            "release: {require: [{model: iPhone 15, os: '18.', min_hours: 1}]}\n",
            (
                "/fleet.yaml:1:40: release.require.0.os: an iOS version like 18.5, or 18.x for any "
                "of it, is expected, '18.'"
            ),
        ),
        (
            (
                "release:\n  waivers:\n"
                "    - {phone: a, check: hang.none, ticket: T, owner: o, until: 2026-02-30}\n"
            ),
            (
                "/fleet.yaml:3:57: release.waivers.0.until: a day like 2026-03-31 is expected, "
                "'2026-02-30'"
            ),
        ),
    ],
)
def test_a_refusal_names_file_line_column_rule_and_value(
    text: str, message: str, tmp_path: Path
) -> None:
    assert refused(text, folder=tmp_path) == message


def test_a_value_that_is_not_plain_yaml_is_refused(tmp_path: Path) -> None:
    message = refused("scenario: !!python/object:os.system x\n", folder=tmp_path)
    assert message.startswith("/fleet.yaml:1:11: YAML tag is not used here")


def test_a_missing_file_and_a_binary_file_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"absent\.yaml: cannot be read: No such file"):
        load_config(tmp_path / "absent.yaml")
    (tmp_path / "binary.yaml").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(ConfigError, match="is not UTF-8 text"):
        load_config(tmp_path / "binary.yaml")


def test_the_committed_file_holds_the_defaults() -> None:
    committed = load_config(ROOT / "fleet.yaml")
    assert committed.model_dump(exclude={"harness"}) == load_config(None).model_dump(
        exclude={"harness"}
    )


def test_a_version_that_looks_like_a_number_keeps_its_text() -> None:
    document = parse_yaml("virtual: {phones: [{model: iphone 16, os: 18.10}]}", "f")
    phone = validate(document).virtual.phones[0]
    assert (phone.model, phone.os) == ("iPhone 16", "18.10")


def test_settings_override_the_file_and_are_refused_by_their_own_name(tmp_path: Path) -> None:
    file = tmp_path / "fleet.yaml"
    file.write_text("workload: {decode_tokens_per_s: 5}\n")
    config = load_config(
        file,
        [
            "workload.decode_tokens_per_s=900",
            "harness.defect=never-trim:7",
            "checks.memory.drift.max_mib_per_hour=3",
            "policy.budget_tokens.6gb=512",
        ],
    )
    assert config.workload.decode_tokens_per_s == 900.0
    assert config.harness.defect == "never-trim:7"
    assert config.checks == {"memory.drift": {"max_mib_per_hour": 3.0}}
    assert config.policy.budget_tokens[MemoryClass.GB6] == 512
    assert config.policy.budget_tokens[MemoryClass.GB8] == 2048


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ("harness.defekt=x", "--set harness.defekt: unknown key, 'defekt', did you mean 'defect'?"),
        ("harness.defect", "--set: key=value is expected, 'harness.defect'"),
        ("scenario.x=1", "--set: scenario has no keys, 'scenario.x=1'"),
        (
            "gate.min_battery_percent=full",
            "--set gate.min_battery_percent: a number is expected, 'full'",
        ),
        (
            "workload.decode_tokens_per_s=99999999999999999999",
            "--set workload.decode_tokens_per_s: 100,000 or less is expected, ",
        ),
        (
            "workload.prefill_tokens_per_s=100000000",
            "--set workload.prefill_tokens_per_s: 10,000,000 or less is expected, ",
        ),
        ("virtual.phones=[]", "--set virtual.phones: at least one virtual phone is needed, []"),
        (
            "virtual.phones=[{model: iPhone 3}]",
            "--set virtual.phones: virtual.phones.0.model: a model is expected",
        ),
    ],
)
def test_a_bad_setting_is_refused(setting: str, message: str, tmp_path: Path) -> None:
    assert refused("scenario: smoke\n", setting, folder=tmp_path).startswith(message)


@pytest.mark.parametrize(
    "text",
    [
        "schema: x",
        "sources: 1",
        "virtual: {memory_scale: 1.5}",
        "virtual: {phones: 5}",
        "harness: {bundle_id: a}",
        "harness: {team_id: 1}",
        "model: {engine: x}",
        "gate: 1",
        "policy: {headroom_percent: 120}",
        "policy: {headroom_percent: -1}",
        "checks: 1",
        "retry: {product: 1}",
        "evidence: {report_wait_s: 0}",
        "release: {waivers: [{check: hang.none}]}",
        "release: {waivers: [{phone: a, check: hang.none, ticket: '', owner: o, until: x}]}",
        "policy: {budget_tokens: {6gb: no}}",
        "virtual: {faults: [{phone: a, at_s: 1, kind: x, settings: 1}]}",
    ],
)
def test_no_words_of_the_library_are_shown(text: str, tmp_path: Path) -> None:
    message = refused(text + "\n", folder=tmp_path)
    assert not any(word in message.lower() for word in ("input", "instance of", "valid ", "string"))


def test_all_mistakes_of_a_file_are_found_by_position(tmp_path: Path) -> None:
    file = tmp_path / "fleet.yaml"
    file.write_text("scenarioo: x\ngate:\n  min_battery_percent: 30m\n  max_start_thermal: hot\n")
    assert [error.line for error in config_errors(file)] == [1, 3, 4]
    file.write_text("sources: [\n")
    assert len(config_errors(file)) == 1
    assert config_errors(ROOT / "fleet.yaml") == []


def test_the_resolved_file_reads_back_and_holds_no_secret(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("FLEET_TEAM_ID", "SECRET1234")
    config = load_config(ROOT / "fleet.yaml")
    text = resolved_yaml(config)
    assert "SECRET1234" not in text
    assert validate(parse_yaml(text, "again")).model_dump() == config.model_dump()


@given(st.text(max_size=80))
def test_no_text_makes_the_reader_fail_otherwise(text: str) -> None:
    message = ""
    try:
        validate(parse_yaml(text, "f"))
    except ConfigError as error:
        message = str(error)
    assert "\n" not in message
