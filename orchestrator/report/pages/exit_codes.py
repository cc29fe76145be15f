"""What the exit codes of `fleet` mean."""

from __future__ import annotations

from typing import Final

from orchestrator.domain.outcome import ExitCode
from orchestrator.report.pages.page import Page

_KIND: Final = "exit code"


def _page(
    code: ExitCode, meaning: str, decided: str, causes: tuple[str, ...], todo: tuple[str, ...]
) -> Page:
    return Page(_KIND, str(int(code)), meaning, decided, causes, todo)


EXIT_CODES: Final[dict[ExitCode, Page]] = {
    ExitCode.OK: _page(
        ExitCode.OK,
        "Everything that was asked held",
        "Every phone of the run is PASS. Commands that do not soak exit 0 when they did what they"
        " were asked.",
        (),
        ("read the report all the same: it says what was skipped",),
    ),
    ExitCode.PRODUCT_FAILED: _page(
        ExitCode.PRODUCT_FAILED,
        "The product failed on at least one phone",
        "At least one phone is FAIL, whatever the others are. `fleet compare` exits 1 on a"
        " regression, `fleet signoff` on missing evidence, `fleet model lint` on an error.",
        ("a check failed", "the app died of something that is its own"),
        (
            "read the line of the phone: it names the cause and the failing checks",
            "`fleet explain CAUSE`, `fleet explain CHECK`",
            "open the report, which shows the record that decided each check",
        ),
    ),
    ExitCode.USAGE: _page(
        ExitCode.USAGE,
        "The command line or the configuration is wrong",
        "Decided before any phone is touched; the message names the option, or the file with line"
        " and column.",
        ("a misspelt key or option", "a run directory that does not exist"),
        ("correct what the message names", "`fleet config check` looks at fleet.yaml alone"),
    ),
    ExitCode.NO_PHONE: _page(
        ExitCode.NO_PHONE,
        "No phone matched, or none is healthy",
        "Decided before a run starts. Virtual phones are used only with --virtual, so that a dead"
        " hub is never a green night.",
        (
            "no iPhone is attached, unlocked and paired",
            "--devices names phones that are not there",
            "every phone is in quarantine or outside iPhone 14 to 16",
        ),
        ("`fleet devices` lists what is attached", "`fleet doctor` says what is missing"),
    ),
    ExitCode.INCONCLUSIVE: _page(
        ExitCode.INCONCLUSIVE,
        "The run started and says nothing final about the product",
        "No phone is FAIL, and at least one is ERROR or ABORTED: the lab failed it, or a check"
        " that the scenario requires is unmeasured. Also the code of an internal error.",
        (
            "a cable, a lock, heat or a reboot",
            "a run too short to exercise what its scenario requires",
            "an expected phone was absent",
        ),
        (
            "read the line of the phone",
            "`fleet retry RUN --only error` soaks those phones again",
        ),
    ),
    ExitCode.BUILD: _page(
        ExitCode.BUILD,
        "The app could not be built, signed or packed",
        "Decided after phones were selected and before anything is installed.",
        ("no Xcode for a real phone", "no team or signing key", "an error of the compiler"),
        ("read the message's last lines", "`fleet doctor` says which tool is missing"),
    ),
    ExitCode.HELD: _page(
        ExitCode.HELD,
        "Another run holds a phone",
        "One session at a time works on a phone: a lock per phone is taken before the start.",
        ("a run of another shell or of CI is still going",),
        ("`fleet who` says who holds it", "--wait waits for it", "`fleet unlock PHONE`"),
    ),
    ExitCode.SIGINT: _page(
        ExitCode.SIGINT,
        "Ended by Ctrl-C",
        "128 + SIGINT. A run first collects what there is and writes its report; its phones are"
        " ABORTED.",
        (),
        ("`fleet report runs/latest` makes the reports again",),
    ),
    ExitCode.SIGTERM: _page(
        ExitCode.SIGTERM,
        "Ended by SIGTERM",
        "128 + SIGTERM. A run first collects what there is and writes its report; its phones are"
        " ABORTED.",
        ("CI cancelled the job or its time was over",),
        ("give the job more time than the duration and the wait for reports",),
    ),
}
