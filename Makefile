# trainfabric. `make` prints this help; `make demo` needs nothing but Python 3.11+, Node 20+ and make.

SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help
MAKEFLAGS += --no-print-directory

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
ENVIRONMENT ?= environments/demo.yaml
PYTEST := $(BIN)/pytest -q

export JSII_SILENCE_WARNING_END_OF_LIFE_NODE_VERSION := 20
export JSII_SILENCE_WARNING_DEPRECATED_NODE_VERSION := 20
export CDK_DISABLE_CLI_TELEMETRY := true
export PATH := $(CURDIR)/$(BIN):$(CURDIR)/node_modules/.bin:$(PATH)

.PHONY: help setup demo test lint types check check-deep synth validate snapshots generate bench build clean

help: ## print this help
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-11s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

setup: $(VENV)/.installed node_modules/.installed ## install everything into .venv and node_modules

$(VENV)/.installed: requirements.txt pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "make: python must be 3.11 or newer, got " + sys.version.split()[0] + "; set PYTHON=python3.11")'
	$(PYTHON) -m venv $(VENV)
	@echo "installing the pinned Python packages (minutes the first time)"
	$(BIN)/pip install --quiet --disable-pip-version-check "$$(grep '^torch==' requirements.txt)"
	$(BIN)/pip install --quiet --disable-pip-version-check -r requirements.txt
	$(BIN)/pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable .
	@touch $@

node_modules/.installed: package.json package-lock.json
	@command -v npm >/dev/null || { echo "make: npm must be on the PATH, got none; install Node 22 or 24" >&2; exit 2; }
	npm ci --silent
	@touch $@

demo: setup ## deploy the demo environment on the embedded AWS and train in it
	@$(BIN)/python -m sandbox.demo

test: test-tools setup test-infrastructure test-oracle test-slurm test-training test-end-to-end test-faults ## run all tests

.PHONY: oracle-setup test-tools test-infrastructure test-oracle test-slurm test-training test-node test-trainer test-end-to-end test-faults
test-tools: # the programs of the system that tests ask for their opinion, missed at once and not after ten minutes
	@.ci/tools

test-infrastructure: setup
	$(PYTEST) -n 2 tests/plan tests/cli tests/architecture tests/cdk tests/stacks tests/snapshots tests/release tests/nag tests/examples tests/bug_reports

ORACLE := build/venvs/pcluster

oracle-setup: $(ORACLE)/.installed # AWS ParallelCluster in a virtual environment of its own, to compare with

$(ORACLE)/.installed: tests/oracle/requirements.txt
	$(PYTHON) -m venv --clear $(ORACLE)
	$(ORACLE)/bin/pip install --quiet --disable-pip-version-check --no-deps -r tests/oracle/requirements.txt
	@touch $@

test-oracle: setup oracle-setup # our interfaces and rules against ParallelCluster's own
	$(PYTEST) tests/oracle

test-slurm: setup # what we write for Slurm, read by a real one (Debian: slurmctld, slurm-client)
	$(PYTEST) tests/slurm

test-training: setup # one after the other: tests of heartbeats mind a machine that is busy with something else
	@$(MAKE) test-node
	@$(MAKE) test-trainer

test-node:
	$(PYTEST) tests/node

test-trainer:
	$(PYTEST) tests/training

test-end-to-end: setup
	$(PYTEST) tests/sandbox tests/e2e

test-faults: setup # one deployed environment whose nodes, ranks and services are killed, stopped and taken away
	$(PYTEST) tests/faults

.PHONY: test-oldest-cdk test-newest-cdk
test-oldest-cdk: build/cdk/oldest/.installed # the lower end of the range gives the same templates; its assertions read no warnings
	PYTHONPATH=build/cdk/oldest $(PYTEST) -n 2 tests/snapshots tests/stacks --ignore tests/stacks/test_network_stack.py --ignore tests/stacks/test_cluster_updates.py

build/cdk/oldest/.installed: .ci/oldest-cdk.txt $(VENV)/.installed
	rm -rf build/cdk/oldest
	$(BIN)/pip install --quiet --disable-pip-version-check --no-deps --target build/cdk/oldest -r $<
	@touch $@

test-newest-cdk: setup # whatever has been released since the pinned set
	rm -rf build/cdk/newest
	$(BIN)/pip install --quiet --disable-pip-version-check --no-deps --target build/cdk/newest 'aws-cdk-lib<3'
	PYTHONPATH=build/cdk/newest $(PYTEST) -n 2 tests/stacks tests/snapshots

lint: setup ## style, import contracts, shell scripts
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports
	$(BIN)/shellcheck .ci/run .ci/check .ci/tools .ci/validate training/trainfabric_node/boot/*.sh sandbox/node/programs/shell/* examples/*/code/*.sh

types: setup ## mypy, strict
	$(BIN)/mypy

check: ## exactly what CI runs, with the seconds of each part
	@.ci/check

check-deep: check test-newest-cdk bench ## what takes longer: make check, and the benchmarks with all their repetitions

bench: setup ## measure; results in build/bench
	$(BIN)/python -m benchmarks.synth
	$(BIN)/python -m benchmarks.recovery --kills 30

synth: setup ## synthesise ENVIRONMENT (default environments/demo.yaml) into cdk.out
	cdk synth --quiet --no-notices -c environment=$(ENVIRONMENT)

validate: setup ## synthesise with CDK's own CloudFormation validation on (slow, so once in CI)
	.ci/validate

snapshots: setup ## accept the templates as they are now
	$(PYTEST) tests/snapshots --snapshot-update

generate: setup oracle-setup ## write everything that is generated from the code: schema, references, snapshots, the README's picture
	$(BIN)/python -m trainfabric_plan.environment.schema environments/environment.schema.json
	$(BIN)/python -m trainfabric_plan.environment.reference docs/environment-file.md
	$(BIN)/python -m trainfabric_plan.job_reference docs/jobs.md
	$(BIN)/python -m trainfabric_cdk.reference docs/constructs.md
	$(BIN)/python -m trainfabric_plan.lint.reference docs/lint-rules.md
	$(BIN)/python -m trainfabric_plan.catalog.reference docs/instance-types.md
	$(BIN)/trainfabric plan draw environments/demo.yaml -o docs/pictures/environment.svg
	$(BIN)/python -m benchmarks.lustre_sizes docs/pictures/lustre_sizes.svg
	$(PYTEST) tests/snapshots --snapshot-update
	$(BIN)/python -m tests.bug_reports.page docs/bug-reports.md
	$(BIN)/python -m tests.oracle.page docs/parallelcluster-rules.md

build: setup ## the wheel, into dist/
	$(BIN)/pip wheel --quiet --no-deps --no-build-isolation --wheel-dir dist .

clean: ## remove what building and the demo leave
	rm -rf build dist cdk.out
