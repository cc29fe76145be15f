import os
import subprocess
import sys
from pathlib import Path

import pytest

from orchestrator.soak.work_folder import work_folder


def test_the_folder_is_private_and_gone_afterwards(tmp_path: Path) -> None:
    with work_folder(tmp_path) as folder:
        assert folder.stat().st_mode & 0o077 == 0
        (folder / "x").write_text("x")
    assert list(tmp_path.iterdir()) == []


def test_it_is_gone_after_a_failure_too(tmp_path: Path) -> None:
    with pytest.raises(KeyError), work_folder(tmp_path):
        raise KeyError
    assert list(tmp_path.iterdir()) == []


def test_what_a_killed_run_left_is_swept_and_a_living_one_kept(tmp_path: Path) -> None:
    gone = subprocess.run([sys.executable, "-c", "import os; print(os.getpid())"],
                          capture_output=True, text=True, check=True)  # fmt: skip
    dead = tmp_path / f"fleet-work-{int(gone.stdout)}-abc"
    living = tmp_path / f"fleet-work-{os.getpid()}-abc"
    other = tmp_path / "fleet-work-of-somebody"
    for folder in (dead, living, other):
        folder.mkdir()
    link = tmp_path / f"fleet-work-{int(gone.stdout)}-link"
    link.symlink_to(other)
    with work_folder(tmp_path):
        assert not dead.exists()
        assert living.exists()
        assert link.is_symlink()
        assert other.exists()


def test_a_folder_that_somebody_else_just_removed_is_no_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    listed = [tmp_path / "fleet-work-1-gone"]
    monkeypatch.setattr(Path, "iterdir", lambda _: iter(listed))
    with work_folder(tmp_path) as folder:
        assert folder.is_dir()
