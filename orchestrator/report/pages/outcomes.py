"""What a phone's outcome means, and the results of a check that are neither pass nor fail."""

from __future__ import annotations

from typing import Final

from orchestrator.domain.outcome import Outcome, Result
from orchestrator.report.pages.page import Page

_OUTCOME: Final = "outcome"
_RESULT: Final = "result of a check"

OUTCOMES: Final = (
    Page(
        _OUTCOME,
        Outcome.PASS.value,
        "The phone's soak says that the contract held",
        "The soak completed, no check fails, and every check that the scenario requires was"
        " measured on at least the exercise that it demands.",
        (),
        ("look at what was skipped: nothing was said about that",),
    ),
    Page(
        _OUTCOME,
        Outcome.FAIL.value,
        "The product failed",
        "A check fails, or the app died of something that is its own.",
        ("a broken contract", "a death: memory, crash, hang"),
        ("`fleet explain` the cause and the failing checks", "it is not tried again by itself"),
    ),
    Page(
        _OUTCOME,
        Outcome.ERROR.value,
        "The lab failed, or there is too little evidence",
        "Phone, cable, signing or host ended the soak; or a required check was not measured, or"
        " the minimum exercise was not reached. It says nothing about the product.",
        ("a lost connection, a lock, heat", "a run too short for what its scenario requires"),
        ("read the phone's sentence", "`fleet retry RUN --only error`", "`fleet doctor`"),
    ),
    Page(
        _OUTCOME,
        Outcome.ABORTED.value,
        "The run was ended before it was over",
        "A signal, `fleet stop`, the end of a window (--until), or a run that never finished.",
        ("Ctrl-C", "CI cancelled the job"),
        ("`fleet resume RUN` where phones still run", "start it again"),
    ),
    Page(
        _RESULT,
        Result.SKIPPED.value,
        "The check does not apply here, and its reason says why",
        "For example speed on a virtual phone. It never makes a phone fail or ERROR.",
        (),
        ("read the reason",),
    ),
    Page(
        _RESULT,
        Result.UNMEASURED.value,
        "The check applies and there was nothing to measure, and its reason says why",
        "Its trigger never came, or facts are missing. It is never counted as a pass: if the"
        " scenario requires the check, the phone is ERROR.",
        ("the run was too short", "telemetry or evidence was lost"),
        ("run longer, or take the scenario that triggers it: `fleet explain SCENARIO`",),
    ),
)
