"""Profiles, programs and apps are read without Apple's tools; what is broken is an error."""

from __future__ import annotations

import plistlib
from datetime import timedelta
from typing import TYPE_CHECKING

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import pkcs7
from hypothesis import given, settings
from hypothesis import strategies as st

from orchestrator.domain.errors import BuildError, UsageError
from orchestrator.harness.package import pack_app
from orchestrator.harness.signed.der import DerError, signed_content
from orchestrator.harness.signed.layout import read_app
from orchestrator.harness.signed.macho import MachError, is_mach, read_executable
from orchestrator.harness.signed.preflight import MEMORY_LIMIT
from orchestrator.harness.signed.profile import read_profile
from tests.harness.signed.making import (
    BUNDLE,
    ENTITLEMENTS,
    NOW,
    TEAM,
    UDID,
    AppParts,
    cms,
    cms_in_pieces,
    profile,
    profile_values,
    program,
    universal,
)

if TYPE_CHECKING:
    from pathlib import Path


def really_signed(content: bytes) -> bytes:
    """What an independent implementation makes: certificate and signer included."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "Apple Development: lab")])
    built = x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
    built = built.not_valid_before(NOW).not_valid_after(NOW + timedelta(days=365))
    certificate = built.sign(key, hashes.SHA256())
    builder = pkcs7.PKCS7SignatureBuilder().set_data(content)
    builder = builder.add_signer(certificate, key, hashes.SHA256())
    return builder.sign(serialization.Encoding.DER, [pkcs7.PKCS7Options.Binary])


@pytest.mark.parametrize("wrap", [cms, cms_in_pieces, really_signed])
def test_the_content_of_a_signed_message_is_taken_out(wrap: object) -> None:
    assert callable(wrap)
    content = plistlib.dumps(profile_values())
    assert signed_content(wrap(content)) == content


def test_a_profile_says_team_phones_dates_and_entitlements() -> None:
    found = read_profile(profile())
    assert found.teams == (TEAM,)
    assert found.udids == frozenset({UDID})
    assert found.expires == NOW + timedelta(days=300)
    assert found.entitlements[MEMORY_LIMIT] is True
    assert not found.is_personal


def test_a_profile_for_every_phone_lists_none() -> None:
    everywhere = profile(ProvisionedDevices=None, ProvisionsAllDevices=True)
    assert read_profile(everywhere).udids is None


def test_a_profile_of_the_app_store_lists_no_phone_at_all() -> None:
    assert read_profile(profile(ProvisionedDevices=None)).udids == frozenset()


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"", "elements are missing"),
        (cms(b"no plist"), "plist cannot be read"),
        (cms(b"<?xml version='1.0' encoding='U-F-8'?><plist/>"), "unknown encoding"),
        (cms(plistlib.dumps([1])), "no dictionary"),
        (profile(ExpirationDate=None), "no ExpirationDate"),
        (profile()[:-300], "cut short"),
        (b"\x30\x03\x02\x01\x01", "missing"),
    ],
)
def test_a_broken_profile_says_what_is_wrong(data: bytes, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        read_profile(data)


@settings(max_examples=50, deadline=None)
@given(st.binary(max_size=200))
def test_no_bytes_break_the_reader_of_signed_messages(data: bytes) -> None:
    with pytest.raises(DerError):
        signed_content(data)


@pytest.mark.parametrize("data", [program(), universal(program())])
def test_a_program_says_platform_team_and_entitlements(data: bytes) -> None:
    found = read_executable(data)
    assert is_mach(data)
    assert (found.platform, found.team) == (2, TEAM)
    assert (found.is_signed, found.is_encrypted) == (True, False)
    assert found.entitlements == ENTITLEMENTS


def test_a_program_without_a_signature_says_so() -> None:
    found = read_executable(program(signed=False))
    assert (found.is_signed, found.team, found.entitlements) == (False, None, None)


def test_a_signature_without_a_team_has_none() -> None:
    assert read_executable(program(team=None)).team is None


@settings(max_examples=50, deadline=None)
@given(st.integers(min_value=4, max_value=len(program()) - 1))
def test_a_program_cut_anywhere_is_an_error_or_is_read(size: int) -> None:
    try:
        read_executable(program()[:size])
    except MachError:
        return


@settings(max_examples=50, deadline=None)
@given(st.integers(min_value=0, max_value=len(program()) - 1), st.integers(0, 255))
def test_a_program_with_a_wrong_byte_is_an_error_or_is_read(at: int, value: int) -> None:
    data = bytearray(program())
    data[at] = value
    try:
        read_executable(bytes(data))
    except MachError:
        return


def test_an_app_is_read_from_an_ipa_and_from_its_folder(tmp_path: Path) -> None:
    folder = AppParts().folder(tmp_path / "HarnessApp.app")
    packed = pack_app(folder, tmp_path / "again" / "app.ipa")
    for path in (AppParts().ipa(tmp_path / "app.ipa"), folder, packed):
        app = read_app(path)
        assert (app.bundle_id, app.name) == (BUNDLE, "HarnessApp")
        assert app.executable is not None
        assert app.profile is not None


def test_a_packed_folder_keeps_modes_and_links(tmp_path: Path) -> None:
    import zipfile

    folder = AppParts().folder(tmp_path / "HarnessApp.app")
    (folder / "link").symlink_to("HarnessApp")
    with zipfile.ZipFile(pack_app(folder, tmp_path / "app.ipa")) as archive:
        modes = {entry.filename: entry.external_attr >> 16 for entry in archive.infolist()}
    assert modes["Payload/HarnessApp.app/HarnessApp"] == 0o100755
    assert modes["Payload/HarnessApp.app/Info.plist"] == 0o100644
    assert modes["Payload/HarnessApp.app/link"] == 0o120777


def test_a_profile_that_cannot_be_read_is_kept_as_a_problem(tmp_path: Path) -> None:
    app = read_app(AppParts(profile=b"garbage").ipa(tmp_path / "app.ipa"))
    assert app.profile is None
    assert app.profile_problem


@pytest.mark.parametrize(
    ("parts", "words"),
    [
        (AppParts(program=None), "executable is missing"),
        (AppParts(info={"CFBundleIdentifier": BUNDLE}), "names no executable"),
        (AppParts(info={"CFBundleExecutable": "../../etc/passwd"}), "names no executable"),
        (AppParts(program=program()[:40]), "cannot be read"),
    ],
)
def test_what_is_no_app_is_exit_5(parts: AppParts, words: str, tmp_path: Path) -> None:
    with pytest.raises(BuildError, match=words):
        read_app(parts.ipa(tmp_path / "app.ipa"))


def test_what_is_not_there_is_exit_2_and_what_is_no_archive_exit_5(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="No such file"):
        read_app(tmp_path / "nothing.ipa")
    (tmp_path / "text.ipa").write_text("text")
    with pytest.raises(BuildError, match=r"is no \.ipa"):
        read_app(tmp_path / "text.ipa")
