"""What the causes of a phone's end mean. `verdict.cause` decides; this says it in words."""

from __future__ import annotations

from typing import Final

from orchestrator.domain.outcome import SYSTEM_PRESSURE_BLAME_RATIO, Cause, outcome_of
from orchestrator.report.pages.page import Page
from orchestrator.verdict.cause import NEAR_LIMIT_RATIO

_KIND: Final = "cause of death"


def _outcome(cause: Cause) -> str:
    if cause is Cause.JETSAM_SYSTEM_PRESSURE:
        return f"FAIL from {SYSTEM_PRESSURE_BLAME_RATIO:.0%} of the app's limit, else ERROR"
    return outcome_of(cause).value


def _page(
    cause: Cause, meaning: str, decided: str, causes: tuple[str, ...], todo: tuple[str, ...]
) -> Page:
    facts = (("Outcome", _outcome(cause)),)
    return Page(_KIND, cause.value, meaning, decided, causes, todo, facts)


_PRODUCT: Final = (
    _page(
        Cause.COMPLETED,
        "The soak ran to its end",
        "The app said goodbye with `completed` and nothing contradicts it: no report of its death,"
        " no crash signal, no lab error.",
        (),
        ("look at what was skipped before you trust it",),
    ),
    _page(
        Cause.ASSERTION_FAILED,
        "The soak ran to its end and a check failed",
        "The cause alone would be `completed`; at least one check is `fail`.",
        ("the contract is broken: budget, trim, eviction, state, stream",),
        ("`fleet explain CHECK` for each failing check",),
    ),
    _page(
        Cause.JETSAM_PER_PROCESS_LIMIT,
        "iOS killed the app for passing its own memory limit",
        "A jetsam report in the soak's time names this app with the reason `per-process-limit`, or"
        " a fatal resource report names memory and the process ended by SIGKILL.",
        (
            "the KV cache grows past the token budget",
            "a memory warning evicts nothing",
            "the 8-bit package runs on a 6 GB phone",
            "the weights are not on the Neural Engine and count as the app's own",
        ),
        (
            "compare the last footprint with the limit in the sentence",
            "look at `evict.on-warning`, `memory.peak` and `plan.placement` of this phone",
            "lower `policy.budget_tokens` or the width of the weights",
        ),
    ),
    _page(
        Cause.KILLED_UNCONFIRMED,
        "The app was killed near its memory limit and no report says why",
        f"The process ended by SIGKILL, its last footprint was at least {NEAR_LIMIT_RATIO:.0%} of"
        " the limit, and no report confirms it: iOS writes only so many of them.",
        ("as for jetsam_per_process_limit",),
        (
            "as for jetsam_per_process_limit",
            "raise `evidence.report_wait_s`: reports may come minutes later",
        ),
    ),
    _page(
        Cause.CRASH,
        "The app crashed",
        "A crash report in the soak's time names this app, or the process ended by a crash signal"
        " such as SIGABRT or SIGSEGV.",
        ("an uncaught error", "a trap in Swift code", "a buffer of the wrong shape"),
        (
            "`fleet crashlog parse` on the phone's `attempts/<n>/reports/` folder",
            "symbolicate it with the build's dSYM",
        ),
    ),
    _page(
        Cause.WATCHDOG,
        "The watchdog of iOS ended the app",
        "A report in the soak's time names this app and is a watchdog's (0x8badf00d), and the app"
        " was not being ended by the host.",
        ("the main thread waits for a model to load", "the main thread runs predictions"),
        ("load and predict outside the main thread", "see which deadline the report names"),
    ),
    _page(
        Cause.HANG,
        "The app lives and does nothing",
        "The process was alive in the foreground with no progress for longer than its limit, or"
        " was alive at the end and had stopped recording although its journal was pulled.",
        (
            "a deadlock of the decode loop and the warning's handler",
            "a prediction that never returns",
            "nobody reads the token stream",
        ),
        ("read the last breadcrumb", "`fleet explain hang.none`"),
    ),
    _page(
        Cause.THERMAL_KILL,
        "The app was ended because the phone was too hot",
        "A report says so, or the app was killed away from its memory limit while the thermal"
        " state was critical.",
        ("a case, the sun, charging and inference at once", "no pause between turns for hours"),
        ("cool the phone and soak it alone", "slow the app down in the state `serious`"),
    ),
    _page(
        Cause.UNEXPLAINED_EXIT,
        "The app ended and nothing says why",
        "The process was killed or exited with a code, away from its memory limit, in the"
        " foreground, cool, and no report was found. The sentence says where was looked.",
        ("reports are switched off or were not written yet", "somebody ended the app by hand"),
        (
            "raise `evidence.report_wait_s` and try again",
            "read console.log of the attempt",
        ),
    ),
    _page(
        Cause.EARLY_EXIT,
        "The app left by itself before its soak was over",
        "It said goodbye with another reason than `completed`, or exited with code 0 without a"
        " farewell.",
        ("a `fault` that the app gives up on", "`exit` is called", "its time is counted wrongly"),
        ("read the last `fault` record and the last breadcrumb in telemetry.ndjson",),
    ),
    _page(
        Cause.JETSAM_SYSTEM_PRESSURE,
        "iOS killed the app because the whole phone was short of memory",
        "A jetsam report names this app with another reason than its own limit. At"
        f" {SYSTEM_PRESSURE_BLAME_RATIO:.0%} of its limit or more it is the app's, below it the"
        " lab's.",
        ("other apps and services took the memory", "our own footprint is large but allowed"),
        ("restart the phone and close other apps", "soak again: `fleet retry RUN --only error`"),
    ),
)

_LAB: Final = (
    _page(
        Cause.FOREGROUND_LOST,
        "The app left the foreground and was suspended or killed there",
        "The last lifecycle record says background, and then the app was killed, fell silent or"
        " was found alive but suspended.",
        ("a call, an alert, somebody touched the phone", "auto-lock"),
        ("set auto-lock to never, use Guided Access or a supervised phone",),
    ),
    _page(
        Cause.DEVICE_LOST,
        "The connection to the phone went and did not come back",
        "The session met an error of usbmux, lockdown or a developer service and the phone did not"
        " return within its time.",
        ("a cable or a hub", "the battery was empty", "pairing was revoked"),
        ("`fleet doctor`", "change the cable before the phone", "`fleet retry RUN --only error`"),
    ),
    _page(
        Cause.DEVICE_REBOOTED,
        "The phone restarted during the soak",
        "The UUID or the time of its boot changed, or a panic report lies in the soak's time.",
        ("a kernel panic", "a system update", "an empty battery"),
        ("read the panic report", "switch automatic updates off"),
    ),
    _page(
        Cause.DEVICE_LOCKED,
        "The phone is locked and the app cannot be launched",
        "The launch was refused because of the lock, and nobody unlocked it within"
        " `gate.unlock_limit_s`.",
        ("a passcode is set and the phone went to sleep", "the phone restarted"),
        ("unlock it", "remove the passcode from a lab phone"),
    ),
    _page(
        Cause.NOT_READY,
        "The phone did not meet the conditions of a start",
        "The gate waited as long as `gate:` says: battery, thermal state, disk, developer mode,"
        " pairing.",
        ("too hot or too empty", "developer mode is off", "the disk is full"),
        ("`fleet doctor` names the condition and what to do",),
    ),
    _page(
        Cause.INSTALL_FAILED,
        "The app or the model could not be put on the phone",
        "The installation or a transfer failed, after the retries that the session has.",
        ("the profile does not name this phone", "no space", "the cable"),
        ("read the sentence: it holds the phone's own words", "`fleet doctor`"),
    ),
    _page(
        Cause.TELEMETRY_LOST,
        "The records stop and nobody saw how the app ended",
        "No farewell, no exit event, no report; or the app is alive and its journal could not be"
        " pulled.",
        ("the connection went while the app ran", "the phone's disk is full"),
        ("`fleet retry RUN --only error`", "look at events.ndjson around the last record"),
    ),
    _page(
        Cause.USER_ABORTED,
        "Somebody ended the run before it was over",
        "A signal, `fleet stop`, or a run that never finished; nothing is concluded.",
        ("Ctrl-C", "CI cancelled the job", "the run's process died"),
        ("`fleet resume RUN` goes on where phones still run", "start it again"),
    ),
)

CAUSES: Final[dict[Cause, Page]] = {Cause(page.name): page for page in (*_PRODUCT, *_LAB)}
