"""Tells a webhook that a run ended. It is tried a few times and never fails the run.

The body is signed where a secret is configured: `X-Fleet-Signature-256: sha256=<hex>` is the
HMAC-SHA256 of the body's bytes, as GitHub signs its own. Redirects are not followed: a signed body
goes where it was addressed.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import time
import urllib.error
import urllib.request
from dataclasses import dataclass
from http.client import HTTPException
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

from orchestrator.domain.outcome import Result

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from email.message import Message
    from typing import IO

    from orchestrator.runlog.documents import SummaryDocument, SummaryPhone

DELAYS_S: Final = (1.0, 4.0)  # before the second and the third attempt
ATTEMPT_LIMIT_S: Final = 5.0
_RETRIED: Final = frozenset({408, 425, 429, 500, 502, 503, 504})


@dataclass(frozen=True, slots=True)
class Webhook:
    """Where to, and with which secret; neither is printed."""

    url: str
    secret: str | None = None

    @property
    def host(self) -> str:
        """The part of the address that may be shown: paths of webhooks are secrets."""
        try:
            return urlsplit(self.url).hostname or "webhook"
        except ValueError:
            return "webhook"


@dataclass(frozen=True, slots=True)
class Delivery:
    """How it went."""

    host: str
    attempts: int
    problem: str | None  # None: delivered


def run_ended_body(summary: SummaryDocument) -> bytes:
    """Return the JSON body: the outcome, and per phone what failed. UDIDs stay in the lab."""
    body = {
        "schema": 1,
        "event": "run_ended",
        "run_id": summary.run_id,
        "outcome": summary.outcome,
        "exit_code": summary.exit_code,
        "virtual": summary.virtual,
        "phones": [_phone(phone) for phone in summary.phones],
    }
    return json.dumps(body).encode()


def _phone(phone: SummaryPhone) -> dict[str, object]:
    return {
        "alias": phone.alias,
        "model": phone.model,
        "os": phone.os,
        "outcome": phone.outcome,
        "cause": phone.cause,
        "failed_checks": [check.id for check in phone.checks if check.result == Result.FAIL],
    }


def deliver(
    webhook: Webhook,
    body: bytes,
    delivery_id: str,
    *,
    sleep: Callable[[float], None] = time.sleep,
    delays_s: Sequence[float] = DELAYS_S,
) -> Delivery:
    """Post a body, again after a pause where that can help.

    Args:
        webhook: Where to.
        body: JSON.
        delivery_id: Equal on every attempt, so that the receiver can drop doubles.
        sleep: Waits between attempts.
        delays_s: Pauses before the second and later attempts.
    """
    if _scheme(webhook.url) not in ("http", "https"):
        return Delivery(webhook.host, 0, "the address is neither http nor https")
    request = _request(webhook, body, delivery_id)
    problem = ""
    for attempt, delay_s in enumerate((0.0, *delays_s), start=1):
        if delay_s:
            sleep(delay_s)
        failure = _attempt(request)
        if failure is None:
            return Delivery(webhook.host, attempt, None)
        problem = failure.text
        if not failure.passing:
            return Delivery(webhook.host, attempt, problem)
    return Delivery(webhook.host, 1 + len(delays_s), problem)


def _scheme(url: str) -> str:
    """Return the scheme of an address, empty where it is none."""
    try:
        return urlsplit(url).scheme
    except ValueError:
        return ""


def signature(secret: str, body: bytes) -> str:
    """Return the value of the signature header."""
    return f"sha256={hmac.new(secret.encode(), body, hashlib.sha256).hexdigest()}"


def _request(webhook: Webhook, body: bytes, delivery_id: str) -> urllib.request.Request:
    headers = {
        "Content-Type": "application/json",
        "User-Agent": "fleet",
        "X-Fleet-Event": "run_ended",
        "X-Fleet-Delivery": delivery_id,
    }
    if webhook.secret is not None:
        headers["X-Fleet-Signature-256"] = signature(webhook.secret, body)
    return urllib.request.Request(webhook.url, data=body, headers=headers, method="POST")  # noqa: S310 - scheme checked by deliver


@dataclass(frozen=True, slots=True)
class _Failure:
    text: str
    passing: bool  # another attempt may help


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    def redirect_request(
        self,
        req: urllib.request.Request,
        fp: IO[bytes],
        code: int,
        msg: str,
        headers: Message,
        newurl: str,
    ) -> None:
        """Follow nothing: the redirect then is an HTTPError like any other answer."""


_OPENER: Final = urllib.request.build_opener(_NoRedirect())


def _attempt(request: urllib.request.Request) -> _Failure | None:
    try:
        with _OPENER.open(request, timeout=ATTEMPT_LIMIT_S):
            return None
    except urllib.error.HTTPError as error:
        with error:
            return _Failure(f"answered {error.code}", error.code in _RETRIED)
    except (urllib.error.URLError, HTTPException, OSError) as error:
        reason = getattr(error, "reason", error)
        return _Failure(f"cannot be reached: {reason}", passing=True)
    except ValueError as error:
        return _Failure(f"the address cannot be used: {error}", passing=False)
