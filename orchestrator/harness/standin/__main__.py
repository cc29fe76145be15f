"""`python -m orchestrator.harness.standin`: launched by a virtual phone."""

from __future__ import annotations

import os
import sys
from typing import Final

from orchestrator.harness.standin.app import App
from orchestrator.harness.standin.defects import UnknownDefectError
from orchestrator.harness.standin.identity import APP, LaunchError, read_launch

UNUSABLE_STATUS: Final = 2
UNKNOWN_DEFECT_STATUS: Final = 64  # EX_USAGE: it must not look like a defect that was not caught


def main() -> int:
    """Run one launch and return its exit status."""
    try:
        return App(read_launch(os.environ)).run()
    except (LaunchError, UnknownDefectError, OSError) as error:
        sys.stderr.write(f"{APP}: {error}\n")
        unknown = isinstance(error, UnknownDefectError)
        return UNKNOWN_DEFECT_STATUS if unknown else UNUSABLE_STATUS


if __name__ == "__main__":
    sys.exit(main())
