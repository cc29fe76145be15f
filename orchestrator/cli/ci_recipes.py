"""Files for CI systems, held in tests to the systems' published schemas; not run on them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Sequence

_EXIT_CODES: Final = """\
# Exit codes: 0 held, 1 product failure, 2 usage, 3 no phone, 4 inconclusive (the lab), 5 build or
# signing, 6 phone held. Every one but 0 fails the job: a broken cable is no green night.
"""

_GITHUB: Final = """\
# Made by `fleet ci-template github`; goes to .github/workflows/soak.yml. docs/mac-mini.md
@EXIT_CODES@
name: soak
on:
  schedule:
    - cron: "30 21 * * *"  # UTC
  workflow_dispatch:
    inputs:
      duration:
        description: Inference time per phone
        type: string
        default: @DURATION@
permissions:
  contents: read
jobs:
  soak:
    name: soak ${{ matrix.phone }}
    runs-on: [self-hosted, macOS, iphones]  # one runner works off the phones one after another
    timeout-minutes: 720
    concurrency:
      group: soak-${{ matrix.phone }}  # a phone has one run at a time
    strategy:
      fail-fast: false  # one phone's failure says nothing of the others
      matrix:
        phone: @PHONES@
    env:
      PHONE: ${{ matrix.phone }}
      DURATION: ${{ inputs.duration || '@DURATION@' }}
      FLEET_TEAM_ID: ${{ secrets.FLEET_TEAM_ID }}
      FLEET_ASC_KEY_PATH: ${{ vars.FLEET_ASC_KEY_PATH }}  # a file of the Mac, mode 600
      FLEET_ASC_KEY_ID: ${{ secrets.FLEET_ASC_KEY_ID }}
      FLEET_ASC_ISSUER_ID: ${{ secrets.FLEET_ASC_ISSUER_ID }}
    steps:
      - uses: actions/checkout@v4
        with:
          clean: false  # builds, runs/ and its history stay
      - name: Install
        run: |
          make .venv/.installed
          rm -f runs/latest  # so that no earlier run is shown for this one
      - name: Build and sign
        run: .venv/bin/fleet build
      - name: Soak
        run: .venv/bin/fleet soak --devices "$PHONE" --duration "$DURATION" --wait
      - name: Summary and annotations
        if: always()
        run: test ! -e runs/latest || .venv/bin/fleet report runs/latest --github
      - name: Keep the run
        if: always()
        uses: actions/upload-artifact@v4
        with:
          name: soak-${{ matrix.phone }}
          path: runs/latest/
          if-no-files-found: warn
"""

_GITLAB: Final = """\
# Made by `fleet ci-template gitlab`; goes to .gitlab-ci.yml. docs/mac-mini.md
# FLEET_TEAM_ID, FLEET_ASC_KEY_PATH, FLEET_ASC_KEY_ID and FLEET_ASC_ISSUER_ID are CI/CD variables.
@EXIT_CODES@
soak:
  tags: [macos, iphones]
  timeout: 12h
  rules:
    - if: $CI_PIPELINE_SOURCE == "schedule"
    - if: $CI_PIPELINE_SOURCE == "web"
  variables:
    GIT_CLEAN_FLAGS: none  # builds, runs/ and its history stay
    DURATION: @DURATION@
  parallel:
    matrix:
      - PHONE: @PHONES@
  resource_group: soak-$PHONE  # a phone has one run at a time
  script:
    - make .venv/.installed
    - rm -f runs/latest  # so that no earlier run is shown for this one
    - .venv/bin/fleet build
    - .venv/bin/fleet soak --devices "$PHONE" --duration "$DURATION" --wait
  artifacts:
    when: always
    paths: [runs/latest/]
    expose_as: soak
    expire_in: 30 days
    reports:
      junit: runs/latest/junit.xml
"""

_BUILDKITE: Final = """\
# Made by `fleet ci-template buildkite`; goes to .buildkite/pipeline.yml. docs/mac-mini.md
# FLEET_TEAM_ID, FLEET_ASC_KEY_PATH, FLEET_ASC_KEY_ID and FLEET_ASC_ISSUER_ID come from the agent's
# environment hook.
@EXIT_CODES@
steps:
  - label: "soak {{matrix}}"
    key: soak
    agents:
      queue: iphones
    timeout_in_minutes: 720
    matrix: @PHONES@
    concurrency: 1
    concurrency_group: soak
    command: |
      make .venv/.installed
      rm -f runs/latest
      .venv/bin/fleet build || exit $$?
      code=0
      .venv/bin/fleet soak --devices "{{matrix}}" --duration @DURATION@ --wait || code=$$?
      style=error
      if [ "$$code" -eq 0 ]; then style=success; fi
      if [ -e runs/latest ]; then
        buildkite-agent annotate --context "soak-{{matrix}}" --style "$$style" \\
          < runs/latest/summary.md
      fi
      exit "$$code"
    artifact_paths:
      - runs/latest/**/*
"""

RECIPES: Final = {"github": _GITHUB, "gitlab": _GITLAB, "buildkite": _BUILDKITE}


def recipe(system: str, phones: Sequence[str], duration: str) -> str:
    """Return the file of a CI system.

    Args:
        system: A key of `RECIPES`.
        phones: Aliases, a job each; none gives one job for all phones.
        duration: As `fleet soak --duration` takes it.
    """
    listed = ", ".join(f'"{phone}"' for phone in phones or ("all",))
    text = RECIPES[system].replace("@EXIT_CODES@\n", _EXIT_CODES)
    return text.replace("@PHONES@", f"[{listed}]").replace("@DURATION@", duration)
