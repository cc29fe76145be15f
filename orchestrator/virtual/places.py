"""Where a running farm keeps its sockets, for the farm and for those who look for it.

Short and the same everywhere: a socket path holds 103 bytes on macOS, whose own temporary folder
takes 60 of them. Only the user who serves can enter what is made there.
"""

from __future__ import annotations

from typing import Final

SOCKETS_ROOT: Final = "/tmp"  # noqa: S108
SOCKETS_PREFIX: Final = "vp-"
CONTROL_NAME: Final = "control.sock"
