"""Checks of a signed app that was given, against the phones that are attached: pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from orchestrator.harness.signed.preflight import app_refusals, phone_refusals
from orchestrator.soak.doctor.check import HOST, failed, ok

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from orchestrator.domain.phone import Phone
    from orchestrator.harness.signed.layout import SignedApp
    from orchestrator.harness.signed.preflight import Demands
    from orchestrator.soak.doctor.check import DoctorCheck

APP_CHECK = "app"


def app_checks(app: SignedApp, demands: Demands, phones: Sequence[Phone]) -> Iterator[DoctorCheck]:
    """Yield what speaks against the app, for all phones and for each, or that nothing does."""
    refusals = list(app_refusals(app, demands))
    for refusal in refusals:
        yield failed(HOST, APP_CHECK, refusal.facts, refusal.reason, refusal.remedy)
    if not refusals:
        until = f", its profile lasts until {app.profile.expires:%Y-%m-%d}" if app.profile else ""
        yield ok(HOST, APP_CHECK, f"{app.bundle_id} is fit for iPhones{until}")
    for phone in phones:
        for refusal in phone_refusals(app, phone):
            yield failed(phone.alias, APP_CHECK, refusal.facts, refusal.reason, refusal.remedy)
