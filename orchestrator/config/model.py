"""The configuration as frozen values. Unknown keys are refused, units are in the names."""

from __future__ import annotations

from datetime import date
from typing import Annotated, Final, Literal

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    JsonValue,
    field_validator,
    model_validator,
)

from orchestrator.config.fields import (
    Alias,
    CheckId,
    Count,
    DecodeRate,
    MeasureName,
    MemoryClassName,
    ModelName,
    NotNegative,
    Number,
    Percent,
    Positive,
    PositiveCount,
    PrefillRate,
    Udid,
    VersionPattern,
    VersionText,
    WholePercent,
    is_reference,
)
from orchestrator.domain.launch_part import MOST_RELAUNCHES
from orchestrator.domain.memory_class import MemoryClass


class Block(BaseModel):
    """Base of every block: frozen, strict about types, closed."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)


def _is_host_and_port(value: str) -> bool:
    host, _, port = value.rpartition(":")
    return bool(host) and ":" not in host and port.isdecimal() and 0 < int(port) < 65536


class Source(Block):
    """Where phones are found.

    `usbmux` is `default` or `host:port`; `tunneld` is the `host:port` of a running tunneld, null
    for the usual one.
    """

    name: Alias
    usbmux: str = "default"
    tunneld: str | None = None

    @field_validator("usbmux")
    @classmethod
    def _usbmux(cls, value: str) -> str:
        if value != "default" and not _is_host_and_port(value):
            raise ValueError("a usbmux address is 'default' or an IPv4 'host:port'")
        return value

    @field_validator("tunneld")
    @classmethod
    def _tunneld(cls, value: str | None) -> str | None:
        if value is not None and not _is_host_and_port(value):
            raise ValueError("a tunneld address is an IPv4 'host:port'")
        return value


class VirtualPhoneSpec(Block):
    """One virtual phone."""

    model: ModelName
    os: VersionText = "18.5"
    limit_mib: PositiveCount | None = None  # of a process; null for the catalog's


class FaultSpec(Block):
    """A scripted fault of a virtual phone; docs/virtual-iphones.md lists the kinds.

    `at_s` counts from the moment the phones are ready, or from the first launch of an app on the
    phone; `settings` are the kind's own.
    """

    phone: Alias
    at_s: Positive
    kind: str
    for_s: Positive | None = None
    since: Literal["ready", "launch"] = "ready"
    settings: dict[str, JsonValue] = {}


class VirtualBlock(Block):
    """Virtual phones, used by `--virtual` and `fleet virtual serve`."""

    memory_scale: PositiveCount = 32
    phones: tuple[VirtualPhoneSpec, ...] = Field(
        default=(
            VirtualPhoneSpec(model="iPhone 14", os="18.5"),
            VirtualPhoneSpec(model="iPhone 15", os="18.5"),
            VirtualPhoneSpec(model="iPhone 15 Pro", os="18.6"),
            VirtualPhoneSpec(model="iPhone 16", os="18.6"),
        ),
        strict=False,
    )
    faults: tuple[FaultSpec, ...] = Field(default=(), strict=False)

    @field_validator("phones")
    @classmethod
    def _some_phones(cls, value: tuple[VirtualPhoneSpec, ...]) -> tuple[VirtualPhoneSpec, ...]:
        if not value:
            raise ValueError("at least one virtual phone is needed")
        return value


class ExpectedPhone(Block):
    """A phone that must be there; absent, it is an `ERROR` phone."""

    udid: Udid
    alias: Alias
    tags: tuple[str, ...] = Field(default=(), strict=False)


class AscKeyBlock(Block):
    """An App Store Connect key, in place of an account in Xcode; from the environment as a rule."""

    path: str = "${FLEET_ASC_KEY_PATH}"  # of AuthKey_XXX.p8
    key_id: str = "${FLEET_ASC_KEY_ID}"
    issuer_id: str = "${FLEET_ASC_ISSUER_ID}"


class HarnessBlock(Block):
    """The app."""

    project: str = "ios_harness/HarnessApp/HarnessApp.xcodeproj"
    scheme: str = "HarnessApp"
    bundle_id: str = Field(default="dev.example.harness", pattern=r"^[A-Za-z0-9.-]{3,155}$")
    team_id: str | None = None
    increased_memory_limit: bool = False
    asc_key: AscKeyBlock = AscKeyBlock()
    defect: str | None = Field(default=None, pattern=r"^[a-z0-9-]+(:[a-z0-9.-]+)?$")


_FeatureNames = Annotated[tuple[str, ...], Field(strict=False, max_length=64)]


class NamesBlock(Block):
    """Features of a package by role, where they are not named as those of the model kit are.

    A role may have several names, for outputs in pieces and for caches in chunks. `fleet model
    inspect` prints the block for a package, `fleet model lint --config` checks it.
    """

    input_ids: _FeatureNames = ()
    position_ids: _FeatureNames = ()
    current_position: _FeatureNames = ()
    causal_mask: _FeatureNames = ()
    logit_index: _FeatureNames = ()
    hidden_states: _FeatureNames = ()
    logits: _FeatureNames = ()
    key_cache: _FeatureNames = ()
    value_cache: _FeatureNames = ()
    kv_cache: _FeatureNames = ()

    def given(self) -> dict[str, tuple[str, ...]]:
        """Return the roles that have a name."""
        return {role: names for role, names in self if names}


class ModelBlock(Block):
    """The model that runs."""

    engine: Literal["witness", "reference"] = "witness"
    int4: str | None = None  # kit of `fleet model build` per quantization, for engine reference
    int8: str | None = None
    compute_units: Literal["all", "cpu_only", "cpu_and_gpu", "cpu_and_neural_engine"] = "all"
    capacity_tokens: PositiveCount = 4096
    cache_gib: Positive = 8.0  # what models on a phone may take; older ones go first
    names: NamesBlock = NamesBlock()


_DEFAULT_BUDGET_TOKENS: Final = {
    MemoryClass.GB6: 1024,
    MemoryClass.GB8: 2048,
    MemoryClass.GB12: 2048,
}


class PolicyBlock(Block):
    """What the app is told, and what the host expects of it."""

    budget_tokens: dict[MemoryClassName, PositiveCount] = Field(
        default=_DEFAULT_BUDGET_TOKENS,
        strict=False,
    )
    scenario_budget_tokens: PositiveCount | None = None
    pin: Literal["none", "bos"] = "bos"
    long_prompt: Literal["refuse", "truncate"] = "refuse"
    headroom_percent: WholePercent = 20

    @field_validator("budget_tokens")
    @classmethod
    def _every_class(cls, value: dict[MemoryClass, int]) -> dict[MemoryClass, int]:
        return {**_DEFAULT_BUDGET_TOKENS, **value}


class WorkloadBlock(Block):
    """Overrides of the scenario's workload; null keeps the scenario's own value."""

    decode_tokens_per_s: DecodeRate | None = None
    prefill_tokens_per_s: PrefillRate | None = None
    min_prompt_ids: PositiveCount | None = None
    max_prompt_ids: PositiveCount | None = None
    turn_limit_tokens: PositiveCount | None = None
    turns_per_conversation: PositiveCount | None = None
    ballast_from_token: PositiveCount | None = None
    ballast_to_token: PositiveCount | None = None
    warn_at_tokens: tuple[PositiveCount, ...] | None = Field(default=None, strict=False)
    sample_period_ms: PositiveCount | None = None
    stop_after_tokens: PositiveCount | None = None
    relaunches: Annotated[int, Field(ge=0, le=MOST_RELAUNCHES)] | None = None


class RetryBlock(Block):
    """How often a phone is tried again after a lab error; the product is never retried."""

    lab: Count = 1
    product: Literal[0] = 0


class QuarantineBlock(Block):
    """When a phone is taken out of the lab."""

    after_lab_errors: PositiveCount = 3
    for_hours: Positive = 12.0


class Notification(Block):
    """A webhook told of the end of a run; address and secret come from the environment."""

    webhook: str
    secret: str | None = None  # signs the body, see docs/notifications.md

    @field_validator("webhook")
    @classmethod
    def _address(cls, value: str) -> str:
        if not value.startswith(("https://", "http://", "${")):
            raise ValueError("an http(s) address or ${NAME} is expected")
        return value

    @field_validator("secret")
    @classmethod
    def _no_literal(cls, value: str | None) -> str | None:
        if value is not None and not is_reference(value):
            raise ValueError("a secret is written ${NAME} and comes from the environment")
        return value


class ReleaseRequirement(Block):
    """A cell that a release must have soaked: a model on an iOS, for so long, on real phones."""

    model: ModelName
    os: VersionPattern
    min_hours: Positive
    checks: tuple[CheckId, ...] = Field(default=(), strict=False)  # besides the scenario's own


class Waiver(Block):
    """A failing check that somebody answers for, until a day."""

    model: ModelName | None = None
    phone: Alias | None = None
    os: VersionPattern | None = None
    check: CheckId
    ticket: str = Field(min_length=1, max_length=200)
    owner: str = Field(min_length=1, max_length=200)
    until: str = Field(pattern=r"^\d{4}-\d{2}-\d{2}$")  # the last day it holds

    @field_validator("until")
    @classmethod
    def _day(cls, value: str) -> str:
        try:
            date.fromisoformat(value)
        except ValueError as error:
            raise ValueError("a day like 2026-03-31 is expected") from error
        return value

    @model_validator(mode="after")
    def _of_somebody(self) -> Waiver:
        if self.model is None and self.phone is None:
            raise ValueError("a waiver names a model or a phone")
        return self


class ReleaseBlock(Block):
    """What a sign-off demands."""

    require: tuple[ReleaseRequirement, ...] = Field(default=(), strict=False)
    waivers: tuple[Waiver, ...] = Field(default=(), strict=False)


class RegressionBlock(Block):
    """The gate that a run must pass against a baseline; without a baseline there is no gate."""

    baseline: Alias | None = None
    max_loss_percent: dict[MeasureName, Positive] = Field(default={}, strict=False)
    inconclusive: Literal["note", "fail"] = "note"  # too few runs, or nothing alike to compare


class EvidenceBlock(Block):
    """How long evidence is waited for."""

    report_wait_s: Positive = 120.0


class GateBlock(Block):
    """What a phone must show before a start."""

    min_battery_percent: Percent = 30.0
    max_start_thermal: Literal["nominal", "fair", "serious", "critical"] = "nominal"
    cool_down_limit_s: Positive = 900.0
    charge_limit_s: Positive = 1800.0  # while it charges
    unlock_limit_s: Positive = 60.0


class ScheduleBlock(Block):
    """How phones share the host."""

    parallel_transfers: PositiveCount = 4  # phones that install and get models at once
    stagger_s: NotNegative = 0.5  # from one phone's start of that to the next one's


class RecoveryBlock(Block):
    """The rungs of the ladder that a lab has to allow."""

    # Run without a shell when a phone stays away; `{udid}` and `{alias}` are filled in.
    hub_power_command: tuple[str, ...] = Field(default=(), strict=False, max_length=32)
    reboot: bool = False
    never_reboot: tuple[str, ...] = Field(default=(), strict=False)  # aliases or UDIDs


class ClusterBlock(Block):
    """Several hosts as one fleet, used by `--cluster`."""

    return_limit_s: Positive = 1800.0  # how long a run waits for a host that is away


class FleetConfig(Block):
    """The whole of `fleet.yaml`."""

    schema_: Literal[1] = Field(default=1, alias="schema")
    sources: tuple[Source, ...] = Field(
        default=(Source(name="usb", usbmux="default"),), strict=False
    )
    virtual: VirtualBlock = VirtualBlock()
    expect: tuple[ExpectedPhone, ...] = Field(default=(), strict=False)
    harness: HarnessBlock = HarnessBlock()
    model: ModelBlock = ModelBlock()
    policy: PolicyBlock = PolicyBlock()
    scenario: str = "smoke"
    workload: WorkloadBlock = WorkloadBlock()
    checks: dict[CheckId, dict[str, Number]] = Field(default={}, strict=False)
    evidence: EvidenceBlock = EvidenceBlock()
    gate: GateBlock = GateBlock()
    schedule: ScheduleBlock = ScheduleBlock()
    retry: RetryBlock = RetryBlock()
    recovery: RecoveryBlock = RecoveryBlock()
    quarantine: QuarantineBlock = QuarantineBlock()
    cluster: ClusterBlock = ClusterBlock()
    notify: tuple[Notification, ...] = Field(default=(), strict=False)
    release: ReleaseBlock = ReleaseBlock()
    regression: RegressionBlock = RegressionBlock()

    @field_validator("sources")
    @classmethod
    def _unique_sources(cls, value: tuple[Source, ...]) -> tuple[Source, ...]:
        if not value:
            raise ValueError("at least one source is needed")
        if len({source.name for source in value}) != len(value):
            raise ValueError("two sources have the same name")
        return value

    @field_validator("expect")
    @classmethod
    def _unique_phones(cls, value: tuple[ExpectedPhone, ...]) -> tuple[ExpectedPhone, ...]:
        for attribute in ("udid", "alias"):
            seen = [getattr(phone, attribute).casefold() for phone in value]
            if len(set(seen)) != len(seen):
                raise ValueError(f"two expected phones have the same {attribute}")
        return value
