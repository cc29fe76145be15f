"""Hosts that the phone trusts, kept on disk so that a reboot forgets none."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from orchestrator.virtual.pki import ESCROW_BAG, is_certificate
from orchestrator.virtual.settings import TrustAnswer
from orchestrator.virtual.wire import encode_plist, parse_plist

if TYPE_CHECKING:
    import ssl
    from pathlib import Path

    from orchestrator.virtual.pki import Pki
    from orchestrator.virtual.settings import Settings
    from orchestrator.virtual.wire import Plist


class Pairings:
    """HostID to the certificates of that host."""

    def __init__(self, path: Path, pki: Pki, settings: Settings) -> None:
        self._path, self._pki, self._settings = path, pki, settings
        self._hosts: dict[str, list[str]] = {}
        if path.exists():
            self._hosts = parse_plist(path.read_bytes())
        else:
            self._remember(pki.keys.host_id, [pki.keys.root_certificate])

    def knows(self, host_id: object) -> bool:
        """Whether this host was paired and not unpaired since."""
        return isinstance(host_id, str) and host_id in self._hosts

    def pair(self, record: object) -> Plist:
        """Answer a Pair request: an escrow bag, or lockdown's error name."""
        if self._settings.trust is not TrustAnswer.TRUST:
            return {"Error": str(self._settings.trust)}
        host_id, certificates = _host_of(record)
        if host_id is None or not certificates or not all(map(is_certificate, certificates)):
            return {"Error": "InvalidPairRecord"}
        self._remember(host_id, certificates)
        return {"EscrowBag": ESCROW_BAG}

    def unpair(self, record: object) -> Plist:
        """Answer an Unpair request."""
        host_id, _ = _host_of(record)
        if host_id is None or host_id not in self._hosts:
            return {"Error": "InvalidHostID"}
        del self._hosts[host_id]
        self._save()
        return {"Result": "Success"}

    def hosts(self) -> dict[str, list[str]]:
        """Return a copy of what is remembered, for `restore`."""
        return dict(self._hosts)

    def restore(self, hosts: dict[str, list[str]]) -> None:
        """Remember hosts again, beside those that paired since."""
        self._hosts = {**hosts, **self._hosts}
        self._save()

    def forget_all(self) -> None:
        """Forget every host, as Reset Location & Privacy does."""
        self._hosts.clear()
        self._save()

    def session_context(self, host_id: str) -> ssl.SSLContext:
        """Return the TLS context of one host's lockdown session."""
        return self._pki.server_context(self._hosts[host_id])

    def service_context(self) -> ssl.SSLContext:
        """Return the TLS context of services: any paired host may come in."""
        return self._pki.server_context(
            certificate for host in self._hosts.values() for certificate in host
        )

    def _remember(self, host_id: str, certificates: list[str]) -> None:
        self._hosts[host_id] = certificates
        self._save()

    def _save(self) -> None:
        self._path.write_bytes(encode_plist(self._hosts))


def _host_of(record: object) -> tuple[str | None, list[str]]:
    """Return the HostID of a pair record and its client certificates.

    pymobiledevice3 presents the host certificate, libimobiledevice the root certificate.
    """
    fields: dict[str, Any] = record if isinstance(record, dict) else {}
    host_id = fields.get("HostID")
    certificates = [
        value.decode("ascii", "replace")
        for name in ("HostCertificate", "RootCertificate")
        if isinstance(value := fields.get(name), bytes)
    ]
    return (host_id if isinstance(host_id, str) else None), certificates
