from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.virtual.services.afc.confinement import Confinement


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path / "root"
    (root / "inside").mkdir(parents=True)
    (tmp_path / "secret").write_text("secret")
    return root


@pytest.mark.parametrize(
    "name",
    [b"/../secret", b"../../secret", b"inside/../../secret", b"//..//secret", b"/./../secret"],
)
def test_climbing_above_the_root_stays_in_it(root: Path, name: bytes) -> None:
    assert Confinement.of(root).entry(name) == root / "secret"
    assert Confinement.of(root).followed(name) == root / "secret"


def test_a_link_out_of_the_root_is_not_followed(root: Path) -> None:
    (root / "link").symlink_to(root.parent / "secret")
    with pytest.raises(PermissionError):
        Confinement.of(root).followed(b"/link")


def test_a_link_out_of_the_root_can_be_looked_at_and_removed(root: Path) -> None:
    (root / "link").symlink_to(root.parent / "secret")
    assert Confinement.of(root).entry(b"/link") == root / "link"


def test_a_folder_link_out_of_the_root_is_no_way_through(root: Path) -> None:
    (root / "link").symlink_to(root.parent)
    confinement = Confinement.of(root)
    for lookup in (confinement.entry, confinement.followed):
        with pytest.raises(PermissionError):
            lookup(b"/link/secret")


def test_a_sibling_that_begins_with_the_roots_name_is_outside(root: Path) -> None:
    sibling = root.parent / "root2"
    sibling.mkdir()
    (root / "link").symlink_to(sibling)
    with pytest.raises(PermissionError):
        Confinement.of(root).followed(b"link")


def test_new_links_may_only_lead_inside(root: Path) -> None:
    confinement = Confinement.of(root)
    assert confinement.check_link(root / "inside" / "link", b"../other") == "../other"
    for target in (b"/etc/passwd", b"../../secret", b"../../root2"):
        with pytest.raises(PermissionError):
            confinement.check_link(root / "inside" / "link", target)


def test_only_the_visible_entry_can_be_used(root: Path) -> None:
    confinement = Confinement.of(root, "inside")
    assert confinement.followed(b"/inside/x") == root / "inside" / "x"
    with pytest.raises(PermissionError):
        confinement.followed(b"/other")
    with pytest.raises(PermissionError):
        confinement.followed(b"/inside/../other")


@given(st.lists(st.sampled_from([b"..", b".", b"", b"inside", b"a\xff", b"x"]), max_size=8))
def test_no_path_of_any_shape_leaves_the_root(parts: list[bytes]) -> None:
    root = Path("/nowhere/root")
    path = Confinement(root).entry(b"/".join(parts))
    assert os.path.commonpath([path, root]) == str(root)
