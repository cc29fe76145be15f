# Every target does all the set-up it needs: `make soak` and `make test` work from a clean clone.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
SETUP := $(VENV)/.installed

.PHONY: soak test docs lint unit swift-test full-length deep fuzz conformance bench pictures clean

soak: $(SETUP)
	$(BIN)/fleet soak --devices all --virtual

# What a change must keep green: linters, types, layers, Swift tests, Python tests. Under 8 minutes.
test: lint swift-test unit

# The pages of docs/reference that are made from the code.
docs: $(SETUP)
	$(BIN)/python -m tests.docs.generated

lint: $(SETUP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

unit: $(SETUP)
	$(BIN)/pytest -q -n 2 --dist loadfile -m "not full_length and not deep and not chaos and not device"

# Where there is no Swift toolchain the Swift part cannot be tested; that is said, not hidden.
swift-test:
	@if command -v swift >/dev/null; then \
	  cd ios_harness && swift format lint --strict --recursive Sources Tests HarnessApp Package.swift \
	  && swift build -Xswiftc -warnings-as-errors --build-tests && swift test --skip-build; \
	else echo "swift-test: skipped, no swift on PATH" >&2; fi

full-length: $(SETUP)
	$(BIN)/pytest -q -m full_length

# Kills and faults in the middle of runs, CELLS of each kind: make chaos SEED=1 CELLS=3
SEED ?= 1
CELLS ?= 3
chaos: $(SETUP)
	SEED=$(SEED) CELLS=$(CELLS) $(BIN)/pytest -q -rP -n 2 --dist loadfile -m chaos tests/chaos tests/cluster tests/security

# One parser or all: make fuzz TARGET=ips N=200000 SEED=1
TARGET ?= all
N ?= 5000
fuzz: $(SETUP)
	$(BIN)/python -m tests.fuzz --target $(TARGET) --n $(N) --seed $(SEED)

deep: $(SETUP)
	$(BIN)/pytest -q -m "deep or chaos or full_length"
	@if command -v swift >/dev/null; then \
	  cd ios_harness && FLEET_DEEP=1 swift test --filter RandomTurnTests; \
	else echo "deep: no swift on PATH, 100,000 random conversations not run" >&2; fi

$(SETUP): pyproject.toml
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Python 3.11 or later is needed")'
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[dev]'
	touch $@

# An independent client's own device tests against one virtual phone; about 4 minutes, needs PyPI.
conformance: $(SETUP)
	$(BIN)/python -m tests.conformance

# What everything costs, beside peers in the same run; writes docs/performance.md, keeps raw samples.
bench: $(SETUP)
	$(BIN)/python -m tests.benchmarks

# The pictures of the README, from a run of `fleet soak --virtual`; needs Chromium.
pictures: $(SETUP)
	$(BIN)/python -m tests.live.pictures

clean:
	rm -rf $(VENV) ios_harness/.build .mypy_cache .ruff_cache .pytest_cache .import_linter_cache
