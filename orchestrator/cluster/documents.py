"""What members of a cluster send each other: small values, plain JSON, no secret in any of them."""

from __future__ import annotations

import msgspec

from orchestrator.domain.phone import Phone
from orchestrator.runlog.documents import PlanDocument


class AgentPhone(msgspec.Struct, frozen=True, kw_only=True):
    """One phone, as the agent that holds it says."""

    udid: str
    alias: str
    name: str
    product_type: str
    os: str
    build: str
    source: str
    virtual: bool
    tags: list[str] = []
    quarantine: str | None = None  # the reason, while it holds
    held_by: str | None = None  # which run has it now

    def phone(self, host: str) -> Phone:
        """Return it as selection knows phones."""
        return Phone(
            udid=self.udid,
            alias=self.alias,
            name=self.name,
            product_type=self.product_type,
            os=self.os,
            build=self.build,
            source=self.source,
            virtual=self.virtual,
            tags=tuple(self.tags),
            host=host,
        )


class AgentReport(msgspec.Struct, frozen=True, kw_only=True):
    """What an agent says of itself."""

    name: str
    version: str  # of fleet
    platform: str
    phones: list[AgentPhone]
    remarks: list[str] = []  # sources and phones that do not answer
    free_bytes: int | None = None  # where its runs lie


class Slice(msgspec.Struct, frozen=True, kw_only=True):
    """One host's part of a run: the plan of its phones and how it is carried out."""

    run_id: str
    host: str
    plan: PlanDocument  # phones of this host alone
    config_yaml: str  # resolved, without addresses to notify
    duration_s: float
    until_s: float | None = None  # when the window closes, by the host's clock

    @property
    def app_sha256(self) -> str:
        """What app it installs."""
        return self.plan.app.package_sha256


class SliceState(msgspec.Struct, frozen=True, kw_only=True):
    """How a slice is on its host."""

    state: str  # STATES
    reason: str = ""
    exit_code: int | None = None  # of a refusal


UNKNOWN = "unknown"  # this host never saw it
RUNNING = "running"
WAITING = "waiting"  # its process died, and something keeps it from being resumed: disk full
REFUSED = "refused"  # it could not begin
ENDED = "ended"
FINAL = frozenset({REFUSED, ENDED})


class FileState(msgspec.Struct, frozen=True, array_like=True):
    """One file of a run directory at one moment."""

    name: str  # relative, with slashes
    size: int
    mtime_ns: int
