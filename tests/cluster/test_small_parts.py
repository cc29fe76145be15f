"""Addresses, clocks, bundles, files: what members of a cluster rest on."""

from __future__ import annotations

import datetime
import importlib.util
import stat
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest
from cryptography import x509

from orchestrator.cluster.address import parse_address
from orchestrator.cluster.apps import AppStore
from orchestrator.cluster.bundle import read_bundle
from orchestrator.cluster.certificates import make_bundles
from orchestrator.cluster.clock import ClockOffset, Exchange, clock_offset
from orchestrator.cluster.extra import require_cluster
from orchestrator.cluster.run_files import CHUNK_BYTES, inside, listing, read_chunk
from orchestrator.domain.errors import RunDirectoryError, UsageError

if TYPE_CHECKING:
    from pathlib import Path

HELLO_SHA256 = "2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824"


@pytest.mark.parametrize(
    ("text", "read"),
    [
        ("tls://mini-1.local", "tls://mini-1.local:8786"),
        ("tls://10.0.0.4:99/", "tls://10.0.0.4:99"),
        ("tcp://127.0.0.1:1", "tcp://127.0.0.1:1"),
        ("tcp://[::1]:1", "tcp://[::1]:1"),
    ],
)
def test_addresses_are_read(text: str, read: str) -> None:
    assert str(parse_address(text, option="--cluster")) == read


@pytest.mark.parametrize("text", ["tcp://10.0.0.4:1", "tcp://0.0.0.0:1", "tcp://mini-1.local:1"])
def test_without_tls_only_loopback_is_allowed(text: str) -> None:
    with pytest.raises(UsageError, match="without TLS only loopback"):
        parse_address(text, option="--cluster")


@pytest.mark.parametrize("text", ["mini-1", "http://x:1", "tls://", "tls://x:99999", "tls://a b"])
def test_what_is_no_address_is_refused_by_option(text: str) -> None:
    with pytest.raises(UsageError, match="--listen"):
        parse_address(text, option="--listen")


def test_the_quickest_exchange_gives_the_clock_offset() -> None:
    slow = Exchange(asked_s=0.0, told_s=3609.0, answered_s=10.0)
    quick = Exchange(asked_s=20.0, told_s=3620.1, answered_s=20.2)
    found = clock_offset([slow, quick])
    assert found.offset_s == pytest.approx(3600.0)
    assert found.uncertainty_s == pytest.approx(0.1)
    assert clock_offset([Exchange(5.0, 5.0, 5.0)]) == ClockOffset(0.0, 0.0)


def test_bundles_are_private_and_vouched_for(tmp_path: Path) -> None:
    made = make_bundles(tmp_path / "ca", "tls://mini-1:8786", ["mini-1"], days=30)
    assert set(made) == {"scheduler", "client", "agent-mini-1"}
    authority = x509.load_pem_x509_certificate((tmp_path / "ca" / "ca.pem").read_bytes())
    for member, folder in made.items():
        bundle = read_bundle(folder)
        assert bundle.config.scheduler == "tls://mini-1:8786"
        assert bundle.config.member == member.removeprefix("agent-")
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700
        assert stat.S_IMODE(bundle.key.stat().st_mode) == 0o600
        certificate = x509.load_pem_x509_certificate(bundle.certificate.read_bytes())
        certificate.verify_directly_issued_by(authority)
        lasts = certificate.not_valid_after_utc - datetime.datetime.now(datetime.UTC)
        assert datetime.timedelta(days=29) < lasts < datetime.timedelta(days=31)
    assert stat.S_IMODE((tmp_path / "ca" / "ca-key.pem").stat().st_mode) == 0o600


def test_a_host_that_joins_later_gets_a_bundle_of_the_same_authority(tmp_path: Path) -> None:
    make_bundles(tmp_path / "ca", "tls://mini-1:8786", ["mini-1"], days=30)
    before = (tmp_path / "ca" / "agent-mini-1" / "cert.pem").read_bytes()
    made = make_bundles(tmp_path / "ca", "tls://mini-1:8786", ["mini-1", "mini-2"], days=30)
    assert set(made) == {"agent-mini-2"}
    assert (tmp_path / "ca" / "agent-mini-1" / "cert.pem").read_bytes() == before
    authority = x509.load_pem_x509_certificate((tmp_path / "ca" / "ca.pem").read_bytes())
    certificate = x509.load_pem_x509_certificate((made["agent-mini-2"] / "cert.pem").read_bytes())
    certificate.verify_directly_issued_by(authority)


def test_a_bundle_whose_key_others_can_read_is_refused(tmp_path: Path) -> None:
    made = make_bundles(tmp_path / "ca", "tls://mini-1:8786", [], days=1)
    (made["client"] / "key.pem").chmod(0o644)
    with pytest.raises(UsageError, match="chmod 600"):
        read_bundle(made["client"])


def test_a_folder_that_is_no_bundle_is_refused_with_what_is_missing(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"no ca\.pem"):
        read_bundle(tmp_path)


@pytest.mark.parametrize("name", ["../x", "/etc/passwd", "a/../../x", "", "a\0b", "out/x"])
def test_no_name_leads_out_of_a_run_directory(name: str, tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "out").symlink_to(tmp_path)
    with pytest.raises(RunDirectoryError):
        inside(tmp_path / "run", name)


def test_a_run_directory_is_listed_and_read_in_chunks(tmp_path: Path) -> None:
    (tmp_path / "devices" / "a").mkdir(parents=True)
    content = bytes(range(256)) * (CHUNK_BYTES // 256) + b"end"
    (tmp_path / "devices" / "a" / "telemetry.ndjson").write_bytes(content)
    (tmp_path / "summary.json").write_text("derived: stays at home")
    (tmp_path / "MANIFEST.sha256").write_text("")
    names = {state.name: state.size for state in listing(tmp_path)}
    assert names == {"devices/a/telemetry.ndjson": len(content), "MANIFEST.sha256": 0}
    parts = [read_chunk(tmp_path, "devices/a/telemetry.ndjson", at) for at in (0, CHUNK_BYTES)]
    assert b"".join(parts) == content
    assert read_chunk(tmp_path, "devices/a/telemetry.ndjson", len(content)) == b""


def test_an_app_is_taken_in_parts_and_only_whole(tmp_path: Path) -> None:
    store = AppStore(tmp_path)
    assert store.fleet_app_chunk(HELLO_SHA256, 0, b"hel", last=False) == 3
    assert store.fleet_app_size(HELLO_SHA256) == 3
    assert store.fleet_app_chunk(HELLO_SHA256, 3, b"lo", last=True) == -1
    assert store.fleet_app_size(HELLO_SHA256) == -1
    assert (tmp_path / f"{HELLO_SHA256}.ipa").read_bytes() == b"hello"


def test_an_app_that_arrives_damaged_begins_anew(tmp_path: Path) -> None:
    store = AppStore(tmp_path)
    with pytest.raises(RunDirectoryError, match="damaged"):
        store.fleet_app_chunk(HELLO_SHA256, 0, b"hullo", last=True)
    assert store.fleet_app_size(HELLO_SHA256) == 0


def test_what_an_agent_starts_is_a_command_that_people_do_not_see() -> None:
    command = [sys.executable, "-m", "orchestrator.cli.main"]
    called = subprocess.run(
        [*command, "slice", "--help"], capture_output=True, text=True, timeout=60, check=True
    )
    assert "one host's part of a run" in called.stdout
    listed = subprocess.run(
        [*command, "--help"], capture_output=True, text=True, timeout=60, check=True
    )
    assert "slice" not in listed.stdout


def test_without_the_extra_the_command_names_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda _: None)
    with pytest.raises(UsageError, match=r"extra `cluster`.*pip install -e '\.\[cluster\]'"):
        require_cluster()


def test_a_single_host_imports_no_dask() -> None:
    code = (
        "import sys, orchestrator.cli.soak, orchestrator.cli.compose, orchestrator.cli.resume\n"
        "import orchestrator.cli.status, orchestrator.cli.stop, orchestrator.cli.merging\n"
        "print(sorted({'dask', 'distributed', 'tornado'} & set(sys.modules)))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True
    )
    assert done.stdout.strip() == "[]"
