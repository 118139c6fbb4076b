# Every target makes what it needs: `make demo` and `make test` work in a fresh clone.
#   make demo       four models with their answers, and pictures in demo/
#   make test       lint, format, types, layers, tests (what .ci/run calls)
#   make test-all   the same with the slow tests
#   make test-lowest  the tests with the oldest versions that pyproject.toml allows
#   make test-browser  the explorer in a real browser; tells what to install where something is missing
#   make docs       the site in docs/_build/html: guide, gallery, reference; make docs-serve shows it
#   make docs-check every page of the site in a real browser: width, contrast, size of texts (some ten minutes)
#   make bench      ratios against other libraries, as Markdown
#   make measure    every figure of the pages of benchmarks, measured anew (hours, on a machine where nothing else runs)
#   make fuzz       ten minutes of broken files for every parser, and of random models against the truth
# PYTHON=python3.12 make demo   chooses the interpreter; VENV=/elsewhere the folder of the environment.

SHELL := /bin/bash
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check --quiet
FUZZ_SECONDS ?= 600

.PHONY: help demo test test-all quick-tests all-tests test-lowest test-browser docs docs-serve docs-check bench measure lint style types fuzz format warmup clean
.DEFAULT_GOAL := help

help:
	@sed -n 's/^#   //p' Makefile

# ---------------------------------------------------------------------------------------------- environment
# One stamp a set of extras; a change of pyproject.toml makes it anew. The package is installed in place.

$(BIN)/python:
	@$(PYTHON) -c 'import sys; ok = sys.version_info >= (3, 11); ok or sys.exit("gramgraph needs Python 3.11 or newer, but $(PYTHON) is %d.%d. Choose another one: PYTHON=python3.12 make demo" % sys.version_info[:2])'
	@echo "creating $(VENV)"
	@$(PYTHON) -m venv $(VENV)

$(VENV)/.stamp-demo: pyproject.toml | $(BIN)/python
	@echo "installing gramgraph[plot,cli] in $(VENV)"
	@$(PIP) install --editable '.[plot,cli]'
	@touch $@

$(VENV)/.stamp-dev: pyproject.toml | $(BIN)/python
	@echo "installing gramgraph[dev] in $(VENV)"
	@$(PIP) install --editable '.[dev]'
	@touch $@

$(VENV)/.stamp-docs: pyproject.toml | $(BIN)/python
	@echo "installing gramgraph[docs,dev] in $(VENV)"
	@$(PIP) install --editable '.[docs,dev]'
	@touch $@

$(VENV)/.stamp-bench: pyproject.toml | $(BIN)/python
	@echo "installing gramgraph[bench] in $(VENV)"
	@$(PIP) install --editable '.[bench]'
	@touch $@

# -------------------------------------------------------------------------------------------------- targets

demo: $(VENV)/.stamp-demo
	@$(BIN)/gramgraph demo all --out demo

lint: style types

style: $(VENV)/.stamp-dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports

types: $(VENV)/.stamp-dev
	$(BIN)/mypy

# Two workers, one thread each: the tests are many and small. A worker gets whole files, as the tests of a file need the
# same compiled loops: with an empty cache they would otherwise be compiled by both.
# Bytecode is kept, also where the shell says otherwise: many tests start Python anew, and would read all sources again.
PYTEST = env -u PYTHONDONTWRITEBYTECODE OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 $(BIN)/python -m pytest -q -n 2 --dist loadfile

# mypy needs one core for a minute: it runs beside the tests.
test: style
	@$(MAKE) --no-print-directory --jobs 2 types quick-tests

test-all: style
	@$(MAKE) --no-print-directory --jobs 2 types all-tests

quick-tests: $(VENV)/.stamp-dev
	$(PYTEST) -m "not slow"

all-tests: $(VENV)/.stamp-dev
	HYPOTHESIS_PROFILE=whole $(PYTEST)

# Of every package the lowest version that pyproject.toml declares, in an environment and a compile cache of its own.
# It needs the lowest Python as well: PYTHON=python3.11 make test-lowest
LOWEST ?= .venv-lowest

$(LOWEST)/.stamp: pyproject.toml .ci/lowest.py
	@$(PYTHON) -c 'import sys; ok = sys.version_info[:2] == (3, 11); ok or sys.exit("the lowest versions are tested with Python 3.11, but $(PYTHON) is %d.%d: PYTHON=python3.11 make test-lowest" % sys.version_info[:2])'
	@echo "creating $(LOWEST)"
	@$(PYTHON) -m venv --clear $(LOWEST)
	@$(LOWEST)/bin/python .ci/lowest.py > $(LOWEST)/lowest.txt
	@$(LOWEST)/bin/python -m pip --disable-pip-version-check --quiet install --constraint $(LOWEST)/lowest.txt --editable '.[dev]'
	@touch $@

test-lowest: $(LOWEST)/.stamp
	env OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 NUMBA_CACHE_DIR=$(abspath $(LOWEST))/compiled $(LOWEST)/bin/python -m pytest -q -n 2 --dist loadfile -m "not slow"

# It installs nothing: it says what is missing.
test-browser: $(VENV)/.stamp-dev
	@$(BIN)/python tests/explorer/needs.py
	env OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 $(BIN)/python -m pytest -q tests/explorer tests/docs/test_in_browser.py

# Warnings are errors. The gallery runs on two workers, and a script that did not change is not run again.
docs: $(VENV)/.stamp-docs
	$(BIN)/python -m sphinx -W --keep-going -q -b html docs docs/_build/html
	$(BIN)/python docs/sitetools/check_site.py docs/_build/html

docs-serve: docs
	$(BIN)/python -m http.server --bind 127.0.0.1 --directory docs/_build/html 8000

# It needs what test-browser needs, and says what is missing.
docs-check: docs
	$(BIN)/python docs/sitetools/in_browser.py docs/_build/html

bench: $(VENV)/.stamp-bench
	$(BIN)/python -m benchmarks

measure: $(VENV)/.stamp-bench
	GRAMGRAPH_TIER=compiled $(BIN)/python -m benchmarks --page --json --out docs/measured; $(BIN)/python -m benchmarks page

fuzz: $(VENV)/.stamp-dev
	$(BIN)/python fuzz/fuzz_parsers.py --seconds $(FUZZ_SECONDS)
	$(BIN)/python -m fuzz.models --seconds $(FUZZ_SECONDS) --seed $$RANDOM

format: $(VENV)/.stamp-dev
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

warmup: $(VENV)/.stamp-demo
	$(BIN)/gramgraph warmup

clean:
	rm -rf $(VENV) $(LOWEST) demo build dist docs/_build docs/auto_gallery docs/reference .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache
	find src tests benchmarks examples fuzz -name __pycache__ -type d -prune -exec rm -rf {} + 2>/dev/null || true
