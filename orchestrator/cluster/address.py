"""Addresses of a cluster: `tls://` everywhere, `tcp://` on loopback alone. Pure."""

from __future__ import annotations

import ipaddress
import re
from dataclasses import dataclass
from typing import Final

from orchestrator.domain.errors import UsageError

SCHEDULER_PORT: Final = 8786
AGENT_PORT: Final = 8790
_ADDRESS: Final = re.compile(
    r"(?P<protocol>[a-z]+)://(?P<host>\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9._-]+)(?::(?P<port>\d{1,5}))?"
)


@dataclass(frozen=True, slots=True)
class Address:
    """Where a member of a cluster listens."""

    protocol: str  # tls, or tcp on loopback
    host: str  # without brackets
    port: int

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{self.protocol}://{host}:{self.port}"

    @property
    def is_secure(self) -> bool:
        """Whether both ends must show a certificate."""
        return self.protocol == "tls"


def parse_address(text: str, *, option: str, port: int = SCHEDULER_PORT) -> Address:
    """Return an address.

    Args:
        text: `tls://host[:port]`, or `tcp://` with a loopback host.
        option: Named in errors.
        port: Where the text has none.

    Raises:
        UsageError: If it is none, or would speak without TLS to other machines.
    """
    match = _ADDRESS.fullmatch(text.strip().removesuffix("/"))
    if match is None or match["protocol"] not in ("tls", "tcp"):
        raise UsageError(f"{option} {text!r} is no address", remedy="Give tls://host:port")
    host = match["host"].strip("[]")
    number = int(match["port"] or port)
    if number > 65535:
        raise UsageError(f"{option} {text!r}: there is no port {number}")
    if match["protocol"] == "tcp" and not is_loopback(host):
        raise UsageError(
            f"{option} {text!r}: without TLS only loopback is allowed",
            remedy="Give tls://, with certificates of `fleet cluster init`",
        )
    return Address(match["protocol"], host, number)


def is_loopback(host: str) -> bool:
    """Return whether only this machine reaches a host."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
