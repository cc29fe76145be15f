"""The app's telemetry records as typed values, decoded from NDJSON lines.

Field meanings, units and order rules are in `docs/protocol.md`; sizes are phone bytes, times
nanoseconds since the launch. Decoding is strict about types and lenient about unknown fields, so
that a newer app's records still read.
"""

from __future__ import annotations

from typing import Final

import msgspec


class Record(msgspec.Struct, frozen=True, tag_field="kind", kw_only=True, gc=False):
    """Keys of every record."""

    launch: str
    seq: int
    t_ns: int
    chain: str | None = None


class BudgetInputs(msgspec.Struct, frozen=True, kw_only=True):
    """What the app chose its budget from."""

    memory_class: str | None = msgspec.field(name="class")
    policy_tokens: int
    model_capacity: int
    scenario_tokens: int | None = None
    kv_ceiling_tokens: int | None = None


class Policies(msgspec.Struct, frozen=True, kw_only=True):
    """Policies the app says it follows."""

    pin: str
    long_prompt: str
    headroom_percent: float


class Sampling(msgspec.Struct, frozen=True, kw_only=True):
    """How the app picks a token from logits; the numbers are None for greedy."""

    mode: str  # `greedy` or `sampled`
    temperature: float | None = None
    top_k: int | None = None
    top_p: float | None = None
    seed: int | None = None


class Hello(Record, frozen=True, kw_only=True, tag="hello"):
    """First record of a launch."""

    app: str
    app_version: str
    stand_in: bool
    build: str
    pid: int
    device: str
    os: str
    os_build: str
    wall_time_s: float
    page_size: int
    physical_memory_bytes: int
    footprint: int
    host_bytes: int
    available: int
    entitled: bool
    memory_scale: int
    engine: str
    budget: int
    budget_inputs: BudgetInputs
    quantization: str
    policies: Policies
    pin_ids: list[int]
    end_ids: list[int]
    vocab: int
    first_id: int
    end_every: int
    chunk: int
    chunk_widths: list[int]
    nonce: str
    run_id: str
    scenario: str
    seed: int
    bos_id: int | None = None
    lc_uuid: str | None = None
    boot_time_s: float | None = None
    sampling: Sampling | None = None
    text: str | None = None  # which text an id has: `decimal`, `pieces` or `table`


class Load(Record, frozen=True, kw_only=True, tag="load"):
    """The model package is loaded."""

    digest: str
    bits_per_weight: float
    compute_units: str
    plan: list[dict[str, object]]
    cold: bool
    ms: float
    phase: str
    weights_bytes: int
    footprint: int
    host_bytes: int
    reason: str = "launch"  # or `reload`


class Handler(Record, frozen=True, kw_only=True, tag="handler"):
    """The memory-warning handler is registered."""

    channel: str
    registered: bool


class State(Record, frozen=True, kw_only=True, tag="state"):
    """A state set was made or released; footprint is read after the act."""

    action: str
    id: int
    purpose: str
    bytes: int
    footprint: int
    host_bytes: int


class TurnStart(Record, frozen=True, kw_only=True, tag="turn_start"):
    """A turn begins; `used_ids` is the X of rules R2 to R4, empty when refused."""

    conversation: int
    turn: int
    prompt_ids: list[int]
    used_ids: list[int]
    carried: int
    sampling: str
    limit: int | None = None


class Prefill(Record, frozen=True, kw_only=True, tag="prefill"):
    """One chunk was fed; `start` is the number of rows before it."""

    conversation: int
    turn: int
    purpose: str
    start: int
    ids: list[int]
    pad: int
    state: int
    start_ns: int
    end_ns: int


class Tokens(Record, frozen=True, kw_only=True, tag="tokens"):
    """Up to 8 samples; all lists have one entry per sample."""

    conversation: int
    turn: int
    ids: list[int]
    n: list[int]
    state: int
    start_ns: list[int]
    end_ns: list[int]
    text_bytes: int
    text: str | None = None  # what the view showed: whole characters only


class Trim(Record, frozen=True, kw_only=True, tag="trim"):
    """The context is about to be trimmed."""

    conversation: int
    turn: int
    before: int
    kept: int
    pinned: int
    k: int
    reason: str
    phase: str
    state: int
    footprint: int
    host_bytes: int


class Evict(Record, frozen=True, kw_only=True, tag="evict"):
    """The context is about to be evicted; `warnings` lists the `n` of the warnings it answers."""

    conversation: int
    turn: int
    before: int
    kept: int
    pinned: int
    k: int
    reason: str
    warnings: list[int]
    phase: str
    state: int
    footprint: int
    host_bytes: int


class MemoryWarning(Record, frozen=True, kw_only=True, tag="memory_warning"):
    """A memory warning arrived in the app."""

    n: int
    origin: str
    channel: str
    footprint: int
    host_bytes: int


class Notice(Record, frozen=True, kw_only=True, tag="notice"):
    """The person saw (or did not see) that the context was cut."""

    for_seq: int
    shown: bool
    text: str


class Parity(Record, frozen=True, kw_only=True, tag="parity"):
    """A parity audit compared logits with a freshly fed state."""

    conversation: int | None = None
    turn: int | None = None
    n: int | None = None  # rows compared
    state: int | None = None  # the audit's
    max_abs: float
    top1_equal: bool
    top3_contained: bool
    top5_overlap: float


class Sample(Record, frozen=True, kw_only=True, tag="sample"):
    """Periodic readings."""

    footprint: int
    peak: int
    available: int
    compressed: int
    kv: int
    ballast: int
    weights: int
    host_bytes: int
    n: int
    surfaces: int
    thermal: str
    low_power: bool
    foreground: bool
    tokens_total: int
    neural_ledger: int | None = None
    battery_percent: float | None = None
    charging: bool | None = None


class Lifecycle(Record, frozen=True, kw_only=True, tag="lifecycle"):
    """The app changed between foreground and background."""

    event: str
    phase: str
    origin: str = "phone"  # or `scenario`


class Breadcrumb(Record, frozen=True, kw_only=True, tag="breadcrumb"):
    """What is about to happen."""

    about: str
    detail: str


class Fault(Record, frozen=True, kw_only=True, tag="fault"):
    """Something failed inside the app."""

    code: str
    message: str
    phase: str


class Heartbeat(Record, frozen=True, kw_only=True, tag="heartbeat"):
    """The app is alive."""

    wall_time_s: float
    suspended_s: float


class TurnEnd(Record, frozen=True, kw_only=True, tag="turn_end"):
    """A turn ended for one reason; `consumed` and `text_hash` are the stream's consumer's."""

    conversation: int
    turn: int
    reason: str
    generated: int
    consumed: int
    text_hash: str
    held_bytes: int = 0  # of a character that never became whole


class Bye(Record, frozen=True, kw_only=True, tag="bye"):
    """The soak is over; totals of the launch."""

    reason: str
    tokens_total: int
    turns: int
    trims: int
    evictions: int
    warnings: int
    inference_s: float


AnyRecord = (
    Hello
    | Load
    | Handler
    | State
    | TurnStart
    | Prefill
    | Tokens
    | Trim
    | Evict
    | MemoryWarning
    | Notice
    | Parity
    | Sample
    | Lifecycle
    | Breadcrumb
    | Fault
    | Heartbeat
    | TurnEnd
    | Bye
)

_DECODER: Final = msgspec.json.Decoder(AnyRecord)


class MalformedRecordError(ValueError):
    """A telemetry line is not a record: not JSON, an unknown kind, or a wrong type."""


def decode_record(line: bytes) -> AnyRecord:
    """Return the record of one NDJSON line.

    Raises:
        MalformedRecordError: With the reason; the line itself is not quoted, it is hostile.
    """
    try:
        return _DECODER.decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise MalformedRecordError(str(error)) from error
