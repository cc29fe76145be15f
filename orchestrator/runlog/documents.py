"""Whole-file documents of the run directory (`run.json`, `plan.json`, `device.json`, ...).

They are written by the soak and read by the report; the names of files and the keys of
`summary.json` are relied on from outside. Sizes are phone bytes, wall times Unix seconds.
"""

from __future__ import annotations

from typing import Annotated

import msgspec

SCHEMA_VERSION = 1

# Up to the end of the year 9999, the last that Python and people can write as a date.
UnixSeconds = Annotated[float, msgspec.Meta(ge=0.0, le=253_402_300_799.0)]
# One folder as `device_directory_name` names it: a plan that somebody sends leads nowhere else.
FolderName = Annotated[str, msgspec.Meta(pattern=r"^[A-Za-z0-9_-][A-Za-z0-9._-]{0,199}\Z")]


class Document(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=False):
    """Base of all documents."""

    schema: int = SCHEMA_VERSION


class RunPart(msgspec.Struct, frozen=True, kw_only=True):
    """What one host did of a run that several hosts share."""

    host: str  # its name in the cluster, or as `fleet merge` was told
    run_id: str
    fleet_version: str
    platform: str  # operating system and machine
    started_s: UnixSeconds  # by that host's clock, as all times below `devices/`
    ended_s: UnixSeconds | None
    clock_offset_s: float = 0.0  # that host's clock minus the coordinator's
    clock_uncertainty_s: float | None = None  # None where nobody measured it


class RunDocument(Document, frozen=True, kw_only=True):
    """`run.json`: written first, replaced at the end. `ended_s` is None while it runs."""

    run_id: str
    started_s: UnixSeconds
    virtual: bool  # the run started its own virtual phones
    fleet_version: str
    host: str  # operating system and machine, for the report
    arguments: list[str]
    owner_pid: int
    ended_s: UnixSeconds | None = None
    interrupted_by: str | None = None  # "SIGINT", "SIGTERM", "stop" (`fleet stop`), "until"
    resumed_s: list[UnixSeconds] = []  # when another process went on with it
    cluster: str | None = None  # address of the scheduler, where hosts of a cluster ran it
    parts: list[RunPart] = []  # the runs of the hosts that this one was joined from


class Requirement(msgspec.Struct, frozen=True, kw_only=True):
    """What a scenario demands before a phone may pass."""

    checks: list[str]
    min_trims: int = 0
    min_evictions: int = 0  # caused by a real (kernel) warning
    min_inference_s: float = 0.0
    virtual_speed: bool = False  # speed is judged on virtual phones too: the self-test's engines


class Expectation(msgspec.Struct, frozen=True, kw_only=True):
    """What the host expects of one phone, from its class and the policy."""

    memory_class: str
    budget_tokens: int
    quantization: str
    digest: str  # of the package that fits, 64 hex digits
    bits_per_weight: float
    capacity_tokens: int
    pin_tokens: int
    load_ms: float | None = None  # that an engine of set load time was given
    limit_bytes: int | None = None  # that `fleet calibrate` measured for this phone's key


class PlannedPhone(msgspec.Struct, frozen=True, kw_only=True):
    """One phone of the plan."""

    udid: str
    alias: str
    name: str
    model: str
    product_type: str
    os: str
    build: str
    source: str
    virtual: bool
    directory: FolderName  # below `devices/`
    nonce: str  # 16 hex digits
    expected: Expectation
    tags: list[str] = []
    host: str | None = None  # of the cluster that holds it; None on a single host


class AbsentPhone(msgspec.Struct, frozen=True, kw_only=True):
    """A phone that `expect:` lists and nobody found."""

    udid: str
    alias: str
    directory: FolderName
    reason: str


class SkippedPhone(msgspec.Struct, frozen=True, kw_only=True):
    """A phone that is attached but not soaked."""

    udid: str
    alias: str
    model: str
    os: str
    reason: str


class PlannedApp(msgspec.Struct, frozen=True, kw_only=True):
    """The app that is installed."""

    kind: str  # "swift", "stand-in", or "supplied" (`--ipa`)
    bundle_id: str
    name: str  # CFBundleExecutable, as reports print it
    package_sha256: str
    commit: str | None = None  # of the sources it was built from; "+" behind it: changed since


class PlanDocument(Document, frozen=True, kw_only=True):
    """`plan.json`: written before any phone is touched."""

    run_id: str
    seed: int
    scenario: dict[str, object]  # what `start` sends, docs/protocol.md 2.2; of all launches
    requires: Requirement
    thresholds: dict[str, dict[str, float]]  # check id to its limits
    headroom_percent: float
    app: PlannedApp
    phones: list[PlannedPhone]
    absent: list[AbsentPhone] = []
    skipped: list[SkippedPhone] = []


class DeviceDocument(Document, frozen=True, kw_only=True):
    """`device.json`: what lockdown and sysmontap said, None where it was not learnt."""

    udid: str
    alias: str
    name: str
    model: str
    product_type: str
    os: str
    build: str
    virtual: bool
    source: str
    physical_memory_bytes: int | None = None  # sysmontap physMemSize
    memory_class: str | None = None  # by physical_memory_bytes, else by ProductType
    clock_offset_s: float | None = None  # phone minus host
    battery_percent: float | None = None
    free_disk_bytes: int | None = None


class HealthDocument(Document, frozen=True, kw_only=True):
    """`health.json`: readings of the gate before an attempt, None where the phone did not say."""

    read_at_s: UnixSeconds  # host wall clock
    battery_percent: int | None
    charging: bool | None
    free_disk_bytes: int | None
    developer_mode: bool | None
    ddi_mounted: bool | None
    locked: bool | None
    clock_offset_s: float | None  # phone minus host
    clock_uncertainty_s: float | None
    temperature_c: float | None = None  # of the battery
    refusal: str | None = None  # why the phone may not start
    remedy: str | None = None


class AppExit(msgspec.Struct, frozen=True, kw_only=True):
    """An exit event of the developer services."""

    pid: int
    at_s: UnixSeconds  # host wall clock
    exit_code: int | None = None
    signal: int | None = None


class LaunchWindow(msgspec.Struct, frozen=True, kw_only=True):
    """One launch of the app: which process, and when it lived by the host's clock."""

    number: int  # from 1
    pid: int
    launch: str | None  # the app's uuid, None if it never answered
    started_s: UnixSeconds
    ended_s: UnixSeconds | None


class PulledReportFile(msgspec.Struct, frozen=True, kw_only=True):
    """A diagnostic report that was collected."""

    device_path: str
    file: str  # below `attempts/<n>/reports/`
    size_bytes: int


class EvidenceDocument(Document, frozen=True, kw_only=True):
    """`evidence.json`: what the host saw of one attempt, besides telemetry."""

    attempt: int
    launches: list[LaunchWindow]
    exits: list[AppExit]
    reports: list[PulledReportFile]
    alive_at_end: bool | None = None  # seen alive by pid when the soak was over; None if not asked
    stopped_by_host: bool = False  # asked to end before its time
    killed_by_host: bool = False  # a signal of ours ended it: it hung, overran or did not answer
    rebooted: bool | None = None  # since the launch, by the UUID of its boot; None if not learnt
    clock_offset_s: float | None = None  # phone minus host, when the session began
    clock_offset_end_s: float | None = None  # and when it ended
    ignored_reports: int = 0  # of the reports: a watch's or a simulator's, about no iPhone
    journal_pulled: bool = False
    stream_records: int = 0
    journal_records: int = 0
    differing_records: int = 0  # same launch and seq, other bytes
    peak_observed_bytes: int | None = None  # host-side, sysmontap
    warnings_noticed: int = 0  # memory warnings that the developer services told of
    cause_hint: str | None = None  # a Cause of the lab, where an error ended the session
    error: str | None = None  # the sentence of that error


class CheckDocument(msgspec.Struct, frozen=True, kw_only=True):
    """One check in `verdict.json` and `summary.json`."""

    id: str
    result: str
    value: float | int | str | None = None
    unit: str | None = None
    limit: float | int | str | None = None
    reason: str | None = None
    launch: str | None = None
    seq: int | None = None


class VerdictDocument(Document, frozen=True, kw_only=True):
    """`verdict.json` of one phone."""

    udid: str
    alias: str
    model: str
    product_type: str
    os: str
    virtual: bool
    stand_in: bool
    host: str | None = None
    outcome: str
    cause: str
    explanation: str  # one sentence for people
    checks: list[CheckDocument]
    tokens_total: int = 0
    trims: int = 0
    evictions: int = 0
    inference_s: float = 0.0
    last_footprint_bytes: int | None = None
    limit_bytes: int | None = None
    last_token_index: int | None = None
    last_breadcrumb: str | None = None
    first_warning_at_n: int | None = None  # rows of the state at the soak's first memory warning


class SummaryPhone(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One phone of `summary.json`; `host` is there for phones of several hosts only."""

    udid: str
    alias: str
    model: str
    product_type: str
    os: str
    outcome: str
    cause: str
    checks: list[CheckDocument]
    host: str | None = None


class SummaryDocument(Document, frozen=True, kw_only=True):
    """`summary.json`, also printed by `fleet soak --json`."""

    run_id: str
    outcome: str
    exit_code: int
    virtual: bool
    phones: list[SummaryPhone]
