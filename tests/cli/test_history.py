"""`fleet history` answers a name that nothing has with what to type."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from orchestrator.cli.history import history
from orchestrator.domain.errors import UsageError
from orchestrator.history.store import DATABASE_NAME, History
from tests.history.entries import run

if TYPE_CHECKING:
    from pathlib import Path


def test_a_subject_that_nothing_has_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    history("bench-99", tmp_path, 40)
    assert capsys.readouterr().out == "nothing is recorded\n"
    entry = run(1)
    History(tmp_path / DATABASE_NAME).record(entry)
    with pytest.raises(UsageError, match="bench-99 is no phone, model or check"):
        history("bench-99", tmp_path, 40)
    history(entry.phones[0].alias, tmp_path, 40)
    assert entry.phones[0].alias in capsys.readouterr().out
