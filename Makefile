# Everything is installed into .venv on first use; only Python >= 3.11 (with venv), make and git are needed.

PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
DEMO_ARGS ?=
KAFKA_ARGS ?=
BENCH_ARGS ?=
BENCHMARKS ?= lasvm mnist gap_family ramp planning crossval search ssvm active forget gpu pieces

.DEFAULT_GOAL := help
.PHONY: help demo kafka test lint bounds-test portability-test docs bench wheel-test clean

help: ## show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-16s %s\n", $$1, $$2}' $(firstword $(MAKEFILE_LIST))

demo: $(VENV)/.plot ## learn two real streams through the daemon, with a table and pictures at the end
	$(BIN)/streamsvm demo $(DEMO_ARGS)

kafka: ## an Apache Kafka broker at 127.0.0.1:9092 until Ctrl-C (KAFKA_ARGS="--dir DIR"; else ~/.cache/streamsvm)
	@$(PYTHON) tests/kafka/broker.py $(KAFKA_ARGS)

test: lint ## every check: lint, types, tests, documentation examples, the built wheel
	$(BIN)/pytest

lint: $(VENV)/.dev ## style and types only
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

PORTABLE := tests/test_blocks.py tests/test_kernels.py tests/test_expansion.py tests/test_smo.py tests/test_lasvm.py \
  tests/test_finish.py tests/test_forget.py tests/test_bounded.py tests/test_leave_out.py

portability-test: $(VENV)/.dev ## the solvers' tests as older and newer processors compute: no test may hang on rounding
	NUMBA_CPU_NAME=generic OPENBLAS_CORETYPE=Prescott NUMBA_CACHE_DIR=$(CURDIR)/.numba-cache/generic \
	  $(BIN)/pytest -q $(PORTABLE)
	NUMBA_CPU_NAME=haswell OPENBLAS_CORETYPE=Haswell NUMBA_CACHE_DIR=$(CURDIR)/.numba-cache/haswell \
	  $(BIN)/pytest -q $(PORTABLE)

docs: $(VENV)/.docs ## the documentation as a site in site/; a warning is an error
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict
	@echo site/index.html is the home page

bench: $(VENV)/.bench ## short versions of the benchmarks, on data of OpenML (or BENCH_ARGS="--data DIR")
	set -e; for name in $(BENCHMARKS); do \
	  echo "== benchmarks/$$name.py --quick $(BENCH_ARGS)"; \
	  $(BIN)/python benchmarks/$$name.py --quick $(BENCH_ARGS); done

bounds-test: $(VENV)/.dev ## everything that models can do, with bounds checks in compiled code (minutes: it is compiled anew)
	NUMBA_BOUNDSCHECK=1 NUMBA_CACHE_DIR=.numba-cache $(BIN)/pytest tests/test_bounds.py

wheel-test: $(VENV)/.dev ## build the wheel and try it in a clean environment
	$(BIN)/pytest tests/test_wheel.py

clean: ## remove the environment, caches and build output
	rm -rf $(VENV) build dist site *.egg-info .mypy_cache .pytest_cache .ruff_cache .hypothesis .numba-cache
	find streamsvm connectors tests benchmarks -name __pycache__ -type d -prune -exec rm -rf {} +

# The stamps say which extras the environment has. It is an editable install: edits count at once, without a new stamp.
$(VENV)/.plot $(VENV)/.dev $(VENV)/.docs $(VENV)/.bench: $(VENV)/.%: pyproject.toml | $(VENV)/.python
	$(BIN)/python -m pip install --quiet --editable '.[$*]'
	@touch $@

$(VENV)/.python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	  echo 'streamsvm needs Python 3.11 or newer; "$(PYTHON)" is' "$$($(PYTHON) --version 2>&1 || true)."; \
	  echo 'Name another one: make PYTHON=/path/to/python3.12 ...'; exit 1; }
	$(PYTHON) -m venv $(VENV)
	@touch $@
