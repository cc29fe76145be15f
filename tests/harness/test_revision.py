from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING

import pytest

from orchestrator.harness.revision import source_revision

if TYPE_CHECKING:
    from pathlib import Path


def git(root: Path, *arguments: str) -> str:
    identity = ("-c", "user.name=t", "-c", "user.email=t@example.org")
    command = ["git", "-C", str(root), *identity, *arguments]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    git(tmp_path, "init", "-q")
    (tmp_path / "ios_harness").mkdir()
    (tmp_path / "ios_harness" / "App.swift").write_text("1")
    git(tmp_path, "add", ".")
    git(tmp_path, "commit", "-qm", "x")
    return tmp_path


def test_the_commit_is_told(repository: Path) -> None:
    assert source_revision(repository) == git(repository, "rev-parse", "HEAD")


def test_changed_sources_of_the_app_show(repository: Path) -> None:
    (repository / "ios_harness" / "App.swift").write_text("2")
    revision = source_revision(repository)
    assert revision is not None
    assert revision.endswith("+")


def test_other_changes_do_not(repository: Path) -> None:
    (repository / "notes.md").write_text("x")
    assert source_revision(repository) == git(repository, "rev-parse", "HEAD")


def test_without_a_repository_there_is_no_commit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))
    assert source_revision(tmp_path) is None
    monkeypatch.setenv("PATH", "")
    assert source_revision(tmp_path) is None
