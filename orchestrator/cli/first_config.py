"""The `fleet.yaml` of a new lab, from the phones that are attached: pure."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from orchestrator.config.fields import check_alias

if TYPE_CHECKING:
    from collections.abc import Sequence

    from orchestrator.cli.attached import ListedPhone

_HEAD: Final = """\
# yaml-language-server: $schema=fleet.schema.json
# Editors check this file once `fleet schema --output fleet.schema.json` wrote that beside it.
# The lab. Units are in the keys; unknown keys are refused with file, line and column.
# Made by `fleet init`; what is commented out shows the default.
schema: 1

# Where phones are found. `default` is usbmuxd, or USBMUXD_SOCKET_ADDRESS where it is set.
sources:
  - {name: usb, usbmux: default}  # tunneld: 127.0.0.1:49151 where one runs

# Phones that must be there: one that is missing is an ERROR phone, and the night is not green.
# Tags choose phones: `fleet soak --devices "tag = release"`.
"""
_TAIL: Final = """\

# The app. A Mac builds and signs it for iPhones: `fleet build`. Secrets stay in the environment.
harness:
  bundle_id: dev.example.harness        # one that your team can register
  team_id: ${FLEET_TEAM_ID}
  increased_memory_limit: false         # true needs a paid team
  asc_key:                              # unset: an account that is logged in to Xcode
    path: ${FLEET_ASC_KEY_PATH}
    key_id: ${FLEET_ASC_KEY_ID}
    issuer_id: ${FLEET_ASC_ISSUER_ID}

# What the phones are held to.
policy:
  budget_tokens: {6gb: 1024, 8gb: 2048, 12gb: 2048}
  pin: bos
  long_prompt: refuse
  headroom_percent: 20

scenario: smoke
# workload: {decode_tokens_per_s: 200}  # overrides of the scenario
# gate: {min_battery_percent: 30, max_start_thermal: nominal}
# evidence: {report_wait_s: 120}
# notify: [{webhook: "${FLEET_WEBHOOK}"}]
# regression: {baseline: main}          # docs/history.md
"""
_UDID: Final = re.compile(r"[0-9A-Fa-f-]{25,40}")


def first_config(phones: Sequence[ListedPhone]) -> str:
    """Return the text of a configuration that expects these phones.

    What a phone says is hostile: a UDID or alias that the configuration would refuse is left out,
    and nothing but its plain letters and digits reaches a comment.
    """
    lines = [line for number, phone in enumerate(phones, 1) if (line := _line(phone, number))]
    expect = "\n".join(["expect:", *lines]) if lines else "expect: []"
    return f"{_HEAD}{expect}\n{_TAIL}"


def _line(phone: ListedPhone, number: int) -> str | None:
    if _UDID.fullmatch(phone.udid) is None:
        return None
    try:
        alias = check_alias(phone.alias)
    except ValueError:
        alias = f"bench-{number:02}"
    remark = _plain(f"{phone.model}, iOS {phone.os}") + (", virtual" if phone.virtual else "")
    unlisted = f", {_plain(phone.note)}" if phone.note not in {"", "virtual"} else ""
    return f'  - {{udid: "{phone.udid}", alias: "{alias}", tags: []}}  # {remark}{unlisted}'


def _plain(text: str) -> str:
    return re.sub(r"[^A-Za-z0-9 .,;-]", "", text)[:80]
