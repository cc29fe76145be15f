"""How a person gets what is optional: `fleet` is installed from its clone, not from an index."""

from __future__ import annotations


def how_to_install(extra: str) -> str:
    """Return the command that installs an extra of `pyproject.toml`, as typed in the clone."""
    return f".venv/bin/pip install -e '.[{extra}]' in the clone of fleet"
