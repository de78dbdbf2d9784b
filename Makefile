# gatewayd from a clean checkout: needs Python 3.11 or newer, make and a package index; uv is used when it is there.
PYTHON ?= python3
# Twice the cores of a small machine: most tests wait for processes that they started.
JOBS ?= 4
# `make lock UPGRADE=--upgrade` moves every pin to its newest version; without it only what changed moves.
UPGRADE ?=
MINUTES ?= 60
VENV := .venv
BIN := $(VENV)/bin

.DEFAULT_GOAL := help
.PHONY: help venv demo test lint types tests program-tests page-tests corpus bench soak dist man pictures coverage lock clean

help:  ## this list
	@sed -n 's/^\([a-z]*\):.*## */  make \1\t/p' $(MAKEFILE_LIST) | expand -t 18

# Installs exactly what a lock names, and nothing whose hash differs, then the checkout itself.
define install
	@if command -v uv >/dev/null 2>&1; then \
		uv pip install --quiet --python $(BIN)/python --require-hashes --requirement $(1) && \
		uv pip install --quiet --python $(BIN)/python --no-deps --no-build-isolation --editable .; \
	else \
		$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes --requirement $(1) && \
		$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable .; \
	fi
endef

$(BIN)/python:
	@if command -v uv >/dev/null 2>&1; then \
		uv venv --quiet --python '>=3.11' $(VENV); \
	elif $(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))'; then \
		$(PYTHON) -m venv $(VENV); \
	else \
		echo "gatewayd needs Python 3.11 or newer; name one with: make PYTHON=/path/to/python3" >&2; exit 1; \
	fi

$(VENV)/.run: requirements.lock pyproject.toml | $(BIN)/python
	$(call install,requirements.lock)
	@touch $@

$(VENV)/.dev: requirements-dev.lock pyproject.toml | $(BIN)/python
	$(call install,requirements-dev.lock)
	@touch $@ $(VENV)/.run

venv: $(VENV)/.dev  ## the development environment in .venv

demo: $(VENV)/.run  ## a sample shop, the console and an agent's address; Ctrl-C ends it
	@$(BIN)/gatewayd demo

# What follows lint runs at the same time: tests wait a good part of their time, and mypy and Chromium take what is free then.
test: lint  ## everything that must hold before a commit: lint, types, all tests (below 10 minutes)
	@$(MAKE) --no-print-directory --jobs 3 types program-tests page-tests

lint: $(VENV)/.dev  ## ruff: rules and format
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .

types: $(VENV)/.dev  ## mypy, strict
	@$(BIN)/mypy

tests: $(VENV)/.dev  ## the tests alone
	@$(MAKE) --no-print-directory --jobs 2 program-tests page-tests

program-tests: $(VENV)/.dev
	@$(BIN)/pytest --numprocesses $(JOBS) --dist worksteal

# Said when it is over, so that two runs do not write into one another's lines.
page-tests: $(VENV)/.dev
	@mkdir -p build
	@$(BIN)/pytest --numprocesses 0 tests/console >build/page-tests.log 2>&1; code=$$?; \
		echo; echo "The console's pages:"; cat build/page-tests.log; exit $$code

corpus: $(VENV)/.dev  ## statements that must be refused and statements that must pass
	@$(BIN)/pytest tests/corpus

bench: $(VENV)/.dev  ## the same work on gatewayd and, where npm is, on its peers
	@$(BIN)/python -m tests.bench.run
	@$(BIN)/python -m tests.bench.bench_audit
	@$(BIN)/python -m tests.bench.bench_store
	@$(BIN)/python -m tests.bench.bench_link

soak: $(VENV)/.dev  ## the long runs: faults, canaries, fresh examples, then generated statements for MINUTES (60)
	@$(BIN)/pytest -m soak --timeout 0 --hypothesis-profile soak tests
	@$(BIN)/pytest --hypothesis-profile soak tests/sql tests/mcp tests/properties tests/masking tests/link tests/keys
	@$(BIN)/python -m tests.link.mutations
	@$(BIN)/python -m tests.link.random_run --minutes $(MINUTES)
	@$(BIN)/python -m tests.control.random_run --minutes $(MINUTES)
	@$(BIN)/python -m tests.control.random_run --minutes $(MINUTES) --system
	@$(BIN)/python -m tests.oracle.run
	@$(BIN)/python -m tests.cost.run --minutes $(MINUTES)
	@$(BIN)/python -m tests.approvals.random_run --minutes $(MINUTES)
	@$(BIN)/python -m tests.properties.run --minutes $(MINUTES)

dist: $(VENV)/.dev  ## wheel, source archive and desktop bundle, in dist/
	@rm -rf dist && mkdir dist
	@$(BIN)/python -c 'from setuptools import build_meta as b; b.build_sdist("dist"); b.build_wheel("dist")' >/dev/null
	@$(BIN)/python -m zipfile --create dist/gatewayd.mcpb conf/install/mcpb/manifest.json conf/install/mcpb/server.py \
		conf/install/mcpb/pyproject.toml
	@ls dist

man: $(VENV)/.run  ## manual pages, in build/man/
	@$(BIN)/gatewayd manual build/man

pictures: $(VENV)/.dev  ## docs/architecture.md's pictures, drawn from the code; with a Chromium, docs/pictures/ of the console
	@$(BIN)/python -m tests.pictures
	@$(BIN)/python -m tests.console.pictures

# coverage is not among the locked dependencies: it is installed beside them, for this target alone.
COVERAGE = COVERAGE_FILE=build/coverage/data PYTHONPATH=build/coverage/lib $(BIN)/python -m coverage
COVERED := gatewayd/sql,gatewayd/policy,gatewayd/masking,gatewayd/keys

coverage: $(VENV)/.dev build/coverage/lib  ## branches of sql, policy, masking and keys that the tests take
	@$(COVERAGE) run --branch --source $(COVERED) -m pytest --numprocesses 0 tests/sql tests/policy tests/masking tests/keys \
		tests/corpus tests/corridor tests/shields tests/oracle tests/containment/test_containment_rules.py \
		tests/link/test_link_catalogs.py tests/cli/test_cli_policy.py
	@$(COVERAGE) report --show-missing --skip-covered

build/coverage/lib:
	@$(PYTHON) -m venv build/coverage/venv
	@build/coverage/venv/bin/python -m pip install --quiet --disable-pip-version-check --target build/coverage/lib coverage

UV := $(shell command -v uv || echo build/uv/bin/uv)
COMPILE = $(UV) pip compile --no-config --quiet --universal --fork-strategy fewest --python-version 3.11 --generate-hashes \
	--no-header --no-emit-index-url

lock: $(if $(filter build/%,$(UV)),$(UV))  ## resolve the dependencies anew into the locks
	@$(COMPILE) $(UPGRADE) --extra demo --extra control --output-file requirements.lock pyproject.toml requirements-build.in
	@$(COMPILE) $(UPGRADE) --extra dev --constraint requirements.lock --output-file requirements-dev.lock \
		pyproject.toml requirements-build.in

build/uv/bin/uv:
	@$(PYTHON) -m venv build/uv
	@build/uv/bin/python -m pip install --quiet --disable-pip-version-check uv

clean:  ## remove what make and the tools made here
	@rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis build dist *.egg-info
	@find . -name __pycache__ -type d -prune -exec rm -rf {} +
