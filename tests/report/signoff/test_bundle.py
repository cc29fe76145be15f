"""A bundle is checked byte by byte, offline, against a key that the reader trusts."""

from __future__ import annotations

import base64
import json
import shutil
from datetime import date
from typing import TYPE_CHECKING

import pytest

from orchestrator.domain.errors import ConfigError, RunDirectoryError, UsageError
from orchestrator.report.signoff.bundle import Order, write_bundle
from orchestrator.report.signoff.decision import decide
from orchestrator.report.signoff.evidence import read_all
from orchestrator.report.signoff.keys import (
    generate_key,
    public_path,
    read_public_key,
    read_signer,
)
from orchestrator.report.signoff.listing import manifest_bytes
from orchestrator.report.signoff.policy import Policy, read_policy
from orchestrator.report.signoff.statement import PREDICATE_TYPE, STATEMENT_TYPE
from orchestrator.report.signoff.verify import Verification, verify_bundle
from tests.report.signoff.releases import (
    release,
    requirement,
    waiver,
    without_notices,
    write_real_run,
)
from tests.verdict.telemetry_factory import App
from tests.verdict.telemetry_spec import Spec

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from orchestrator.config.model import ReleaseBlock

AT_S = 1_770_000_000.0


def make(
    target: Path, roots: Sequence[Path], key: Path, policy: ReleaseBlock, *, pdf: bool = False
) -> None:
    runs = read_all(roots)
    decision = decide(policy, runs, date(2026, 3, 1))
    assert decision.passes, decision.reasons
    order = Order("2.3.0", Policy(policy, b"require: []\n"), runs, decision, AT_S, pdf)
    write_bundle(target, order, read_signer(key))


@pytest.fixture(scope="module")
def key(tmp_path_factory: pytest.TempPathFactory) -> Path:
    private = tmp_path_factory.mktemp("keys") / "signoff.pem"
    generate_key(private)
    return private


@pytest.fixture(scope="module")
def pristine(tmp_path_factory: pytest.TempPathFactory, key: Path) -> Path:
    folder = tmp_path_factory.mktemp("bundles")
    written = write_real_run(folder / "run-1")
    make(folder / "signoff", [written.root], key, release())
    return folder / "signoff"


@pytest.fixture
def bundle(pristine: Path, tmp_path: Path) -> Path:
    return shutil.copytree(pristine, tmp_path / "signoff")


def verified(bundle: Path, key: Path) -> Verification:
    return verify_bundle(bundle, read_public_key(public_path(key)))


def payload(bundle: Path) -> dict[str, object]:
    envelope = json.loads((bundle / "statement.dsse.json").read_bytes())
    decoded = json.loads(base64.b64decode(envelope["payload"]))
    assert isinstance(decoded, dict)
    return decoded


def test_an_untouched_bundle_holds(bundle: Path, key: Path) -> None:
    assert verified(bundle, key) == Verification("PASSED", "harness 2.3.0", ())


def test_the_statement_is_in_totos_test_result(bundle: Path) -> None:
    statement = payload(bundle)
    assert statement["_type"] == STATEMENT_TYPE
    assert statement["predicateType"] == PREDICATE_TYPE
    predicate = statement["predicate"]
    assert isinstance(predicate, dict)
    assert predicate["result"] == "PASSED"
    assert predicate["configuration"][0]["name"] == "policy.yaml"
    assert "iPhone 15 Pro / iOS 18.x / 0.0001 h / trim.notice" in predicate["passedTests"]
    assert predicate["warnedTests"] == predicate["failedTests"] == []


def every_file(bundle: Path) -> list[Path]:
    return sorted(path for path in bundle.rglob("*") if path.is_file())


def test_any_changed_file_is_named(bundle: Path, key: Path) -> None:
    for path in every_file(bundle):
        name = path.relative_to(bundle).as_posix()
        whole = path.read_bytes()
        changed = bytearray(whole)
        changed[len(whole) // 2] ^= 1
        path.write_bytes(bytes(changed))
        problems = verified(bundle, key).problems
        assert any(problem.startswith(f"changed: {name}") for problem in problems), name
        path.write_bytes(whole)
    assert verified(bundle, key).holds


def test_any_truncated_missing_or_lengthened_file_is_named(bundle: Path, key: Path) -> None:
    for path in every_file(bundle):
        name = path.relative_to(bundle).as_posix()
        whole = path.read_bytes()
        for content in (whole[:-1], whole + b"\n", b""):
            path.write_bytes(content)
            assert any(name in problem for problem in verified(bundle, key).problems), name
        path.unlink()
        problems = verified(bundle, key).problems
        assert any(problem == f"missing: {name}" for problem in problems), name
        path.write_bytes(whole)


@pytest.mark.parametrize("name", ["extra.txt", "evidence/run-1/devices/note", ".hidden"])
def test_an_added_file_is_named(bundle: Path, key: Path, name: str) -> None:
    (bundle / name).write_text("")
    assert verified(bundle, key).problems == (f"added: {name}",)


def test_an_added_empty_folder_and_a_link_are_named(bundle: Path, key: Path) -> None:
    (bundle / "empty").mkdir()
    (bundle / "link").symlink_to(bundle / "evidence")
    assert verified(bundle, key).problems == ("added: empty", "added: link")


def test_a_file_that_became_a_link_to_its_own_content_is_named(
    bundle: Path, key: Path, tmp_path: Path
) -> None:
    moved = (bundle / "policy.yaml").rename(tmp_path / "policy.yaml")
    (bundle / "policy.yaml").symlink_to(moved)
    assert "changed: policy.yaml" in verified(bundle, key).problems


def test_a_swapped_report_is_named_though_the_manifest_was_rewritten(
    bundle: Path, key: Path
) -> None:
    page = bundle / "evidence" / "run-1" / "report" / "index.html"
    page.write_text("<p>all is well</p>")
    (bundle / "MANIFEST.sha256").write_bytes(manifest_bytes(bundle))
    assert verified(bundle, key).problems == ("changed: MANIFEST.sha256",)


def test_a_bundle_signed_by_another_key_is_refused(bundle: Path, tmp_path: Path) -> None:
    other = tmp_path / "other.pem"
    generate_key(other)
    found = verified(bundle, other)
    assert found.result is None
    assert found.problems == (
        "changed: statement.dsse.json is not signed by this key, or was changed",
    )


def test_a_rewritten_result_is_refused(bundle: Path, key: Path) -> None:
    path = bundle / "statement.dsse.json"
    envelope = json.loads(path.read_bytes())
    statement = payload(bundle)
    envelope["payload"] = base64.b64encode(json.dumps(statement).encode()).decode()
    path.write_text(json.dumps(envelope, indent=2, sort_keys=True) + "\n")
    assert not verified(bundle, key).holds


@pytest.mark.parametrize("content", ["", "{}", "[]", '{"payload": 1}', "null", "[" * 100_000])
def test_hostile_envelopes_are_refused(bundle: Path, key: Path, content: str) -> None:
    (bundle / "statement.dsse.json").write_text(content)
    assert verified(bundle, key).problems == (
        "changed: statement.dsse.json is truncated or no DSSE envelope",
    )


def test_a_folder_that_is_no_bundle_is_refused(tmp_path: Path, key: Path) -> None:
    assert verified(tmp_path / "nowhere", key).problems == ("missing: statement.dsse.json",)


def test_a_waived_release_is_warned_and_shows_the_waiver(tmp_path: Path, key: Path) -> None:
    rows = without_notices(App(Spec(stop_after=120)).run())
    written = write_real_run(tmp_path / "run-1", rows)
    policy = release(waiver(owner="<b>Ada"), waiver(check="evict.notice"))
    make(tmp_path / "signoff", [written.root], key, policy)
    assert verified(tmp_path / "signoff", key).result == "WARNED"
    page = (tmp_path / "signoff" / "signoff.html").read_text()
    for words in ("PASS WITH WAIVERS", "&lt;b&gt;Ada", "LLM-7", "2099-12-31", "trim.notice"):
        assert words in page
    assert "<b>Ada" not in page


def test_the_page_has_no_script_and_needs_nothing_from_outside(bundle: Path) -> None:
    page = (bundle / "signoff.html").read_text()
    assert "<script" not in page
    assert "http" not in page
    assert "Signed off by" in page


def test_several_runs_and_names_with_line_breaks_are_listed(tmp_path: Path, key: Path) -> None:
    first, second = write_real_run(tmp_path / "run-1"), write_real_run(tmp_path / "run-2")
    (first.root / "report" / "odd\nname \\").write_text("x")
    make(tmp_path / "signoff", [first.root, second.root], key, release())
    assert verified(tmp_path / "signoff", key).holds
    odd = next((tmp_path / "signoff").rglob("odd*"))
    odd.write_text("y")
    (problem,) = verified(tmp_path / "signoff", key).problems
    assert problem.endswith("odd\\nname \\\\")


def test_links_in_a_run_are_left_behind(tmp_path: Path, key: Path) -> None:
    written = write_real_run(tmp_path / "run-1")
    (written.root / "report" / "link").symlink_to("/etc/hostname")
    make(tmp_path / "signoff", [written.root], key, release())
    assert verified(tmp_path / "signoff", key).holds
    assert not list((tmp_path / "signoff").rglob("link"))


def test_evidence_that_changes_while_it_is_copied_is_refused(tmp_path: Path, key: Path) -> None:
    written = write_real_run(tmp_path / "run-1")
    runs = read_all([written.root])
    decision = decide(release(), runs, date(2026, 3, 1))
    written.device.telemetry.write_bytes(b"")
    order = Order("2.3.0", Policy(release(), b""), runs, decision, AT_S, with_pdf=False)
    with pytest.raises(RunDirectoryError, match="changed while it was copied"):
        write_bundle(tmp_path / "signoff", order, read_signer(key))
    assert [path.name for path in tmp_path.iterdir()] == ["run-1"]


def test_a_bundle_is_never_overwritten(bundle: Path, key: Path, tmp_path: Path) -> None:
    written = write_real_run(tmp_path / "run-1")
    with pytest.raises(UsageError, match="exists already"):
        make(bundle, [written.root], key, release())


def test_a_run_named_twice_is_refused(tmp_path: Path) -> None:
    written = write_real_run(tmp_path / "run-1")
    with pytest.raises(UsageError, match="named twice"):
        read_all([written.root, written.root])


# Keys and policies


def test_a_private_key_is_its_owners_alone_and_never_overwritten(key: Path) -> None:
    assert key.stat().st_mode & 0o077 == 0
    with pytest.raises(UsageError, match="never overwritten"):
        generate_key(key)


def test_a_file_that_is_no_key_is_refused(tmp_path: Path, key: Path) -> None:
    (tmp_path / "junk").write_text("junk")
    for path in (tmp_path / "junk", tmp_path / "none", public_path(key)):
        with pytest.raises(UsageError):
            read_signer(path)
    for path in (tmp_path / "junk", tmp_path / "none", key):
        with pytest.raises(UsageError):
            read_public_key(path)


def test_a_policy_is_a_file_of_its_own_or_a_block_of_the_configuration(tmp_path: Path) -> None:
    rule = "{model: iPhone 15 Pro, os: 18.x, min_hours: 8}"
    alone, whole = tmp_path / "policy.yaml", tmp_path / "fleet.yaml"
    alone.write_text(f"require: [{rule}]\n")
    whole.write_text(f"schema: 1\nrelease: {{require: [{rule}]}}\n")
    wanted = (requirement(min_hours=8),)
    assert read_policy(alone).release.require == read_policy(whole).release.require == wanted


def test_a_policy_that_requires_nothing_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "policy.yaml"
    for text in ("", "schema: 1\n", "waivers: []\n"):
        path.write_text(text)
        with pytest.raises(UsageError, match="requires nothing"):
            read_policy(path)


def test_a_broken_policy_names_line_and_column(tmp_path: Path) -> None:
    path = tmp_path / "policy.yaml"
    path.write_text("require:\n  - {model: iPhone 15 Pro, os: 18.x, min_hour: 8}\n")
    with pytest.raises(ConfigError, match=r"policy\.yaml:2:\d+: ") as caught:
        read_policy(path)
    assert "min_hour" in str(caught.value)
    with pytest.raises(ConfigError, match="cannot be read"):
        read_policy(tmp_path / "none.yaml")
