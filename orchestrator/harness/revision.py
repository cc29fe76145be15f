"""Which commit the app's sources are at, for the environment stamps of a run."""

from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING, Final

from orchestrator.harness.package import REPO_ROOT

if TYPE_CHECKING:
    from pathlib import Path

_LIMIT_S: Final = 10.0


def source_revision(root: Path = REPO_ROOT) -> str | None:
    """Return the commit, with `+` behind it where sources of the app differ from it.

    None where there is no git or no repository: an installed package has none.
    """
    commit = _git(root, "rev-parse", "HEAD")
    if not commit:
        return None
    changed = _git(root, "status", "--porcelain", "--", "ios_harness", "orchestrator/harness")
    return f"{commit}+" if changed else commit


def _git(root: Path, *arguments: str) -> str | None:
    command = ["git", "-C", str(root), *arguments]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=_LIMIT_S, check=True)
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.strip()
