# Everything is installed into .venv on first use; only Python >= 3.11 (with venv), make and git are needed.

PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
DEMO_ARGS ?=
KAFKA_ARGS ?=
BENCH_ARGS ?=
WHEEL_ARGS ?=
# Some tests wait more than they compute, hence more workers than cores.
WORKERS ?= $(shell echo $$(( $$(nproc 2>/dev/null || echo 2) + 2 )))
PARALLEL := --numprocesses $(WORKERS) --dist worksteal
BENCHMARKS ?= alarms lasvm ordinary order merge mnist selection multiclass gap_family ramp traces planning planned_steps crossval search folds tuning ssvm active active_public texts border_figures forget rare imbalanced defaults tracks drift predict gpu pieces records mixture late growth limits export guarantee raw_storm finding erase challengers catching_up

# The tests start some hundred processes: each would compile the modules of the product again, for 0.7 s.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help demo kafka test check lint bounds-test portability-test tools docs bench bench-tables wheel wheel-test clean

help: ## show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-16s %s\n", $$1, $$2}' $(firstword $(MAKEFILE_LIST))

demo: $(VENV)/.plot ## learn three streams and label digits through the daemon, with a table, pictures and reports at the end
	$(BIN)/streamsvm demo $(DEMO_ARGS)

kafka: ## an Apache Kafka broker at 127.0.0.1:9092 until Ctrl-C (KAFKA_ARGS="--dir DIR"; else ~/.cache/streamsvm)
	@$(PYTHON) tests/kafka/broker.py $(KAFKA_ARGS)

test: $(VENV)/.dev ready ## every check: lint, types, tests, documentation examples, the built wheel
	$(BIN)/pytest $(PARALLEL) --durations 25

check: $(VENV)/.dev ready ## two minutes: lint, types, and the tests without broker, browser, wheel or long streams
	$(BIN)/pytest $(PARALLEL) -m "not long" --ignore tests/kafka --ignore tests/browser --ignore tests/test_wheel.py

lint: $(VENV)/.dev ## style and types only
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

# One process fills the compile cache, so that the workers of pytest do not all compile the same. Another one checks types.
.PHONY: ready warm
ready: $(VENV)/.dev
	@$(MAKE) --no-print-directory --jobs 2 --output-sync=target lint warm

warm: $(VENV)/.dev
	$(BIN)/streamsvm warmup

# The solvers' tests, where older and newer processors and libraries might make a test hang on rounding, and
# with the oldest libraries that pyproject.toml allows.
PORTABLE := tests/core/test_blocks.py tests/core/test_kernels.py tests/core/test_expansion.py tests/core/scaling/test_scaling.py tests/batch/test_smo.py \
  tests/online/test_lasvm.py tests/online/test_finish.py tests/online/removal/test_forget.py tests/online/removal/test_bounded.py \
  tests/online/removal/test_leave_one_out.py

# The checks of river and scikit-learn are collected, and scikit-learn's run for one algorithm.
CHECKED := tests/sklearn_api/test_sklearn_api.py tests/estimators/test_river_checks.py tests/estimators/multiclass/test_both_wrappers.py

portability-test: $(VENV)/.dev $(VENV)-lowest/.python ## the solvers' tests on other processors and on the oldest libraries
	NUMBA_CPU_NAME=generic OPENBLAS_CORETYPE=Prescott $(VENV)-lowest/bin/pytest -q $(PORTABLE)
	NUMBA_CPU_NAME=generic OPENBLAS_CORETYPE=Prescott $(VENV)-lowest/bin/pytest -q $(CHECKED) -k "all_the_checks or lasvm-check"
	STREAMSVM_CPU=x86-64-v3 OPENBLAS_CORETYPE=Haswell $(BIN)/pytest -q $(PORTABLE) tests/estimators/test_levels.py

tools: $(VENV)/.python ## Helm and promtool for tests/test_deploy.py, built with Go (minutes)
	GOBIN=$(abspath $(BIN)) go install helm.sh/helm/v4/cmd/helm@v4.3.1
	GOBIN=$(abspath $(BIN)) go install -tags remove_all_sd,enable_dns_sd github.com/prometheus/prometheus/cmd/promtool@v0.316.0

docs: $(VENV)/.docs ## the documentation as a site in site/; a warning is an error
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict
	@echo site/index.html is the home page

bench: $(VENV)/.bench ## short versions of the benchmarks, on data of OpenML (or BENCH_ARGS="--data DIR")
	@set -e; began=$$(date +%s); for name in $(BENCHMARKS); do \
	  echo "== benchmarks/$$name.py --quick $(BENCH_ARGS)"; start=$$(date +%s); \
	  $(BIN)/python benchmarks/$$name.py --quick $(BENCH_ARGS); now=$$(date +%s); \
	  echo "== $$name: $$((now - start)) s, all so far: $$((now - began)) s"; done

bench-tables: $(VENV)/.bench ## run the benchmarks whose output the pages show, and put it there (hours; BENCH_ARGS as for bench)
	$(BIN)/python benchmarks/pages.py $(BENCH_ARGS)

bounds-test: $(VENV)/.dev ## everything that models can do, with bounds checks in compiled code (minutes: it is compiled anew)
	NUMBA_BOUNDSCHECK=1 $(BIN)/pytest tests/estimators/test_bounds.py

wheel: $(VENV)/.dev ## a wheel in dist/ with compiled code for this Python and platform (minutes; WHEEL_ARGS="--levels native")
	$(BIN)/python deploy/wheel.py $(WHEEL_ARGS)

wheel-test: $(VENV)/.dev ## build the wheel and try it in a clean environment
	$(BIN)/pytest tests/test_wheel.py

clean: ## remove the environment, caches and build output
	rm -rf $(VENV) $(VENV)-lowest build dist site *.egg-info .mypy_cache .pytest_cache .ruff_cache .hypothesis
	find streamsvm connectors tests benchmarks -name __pycache__ -type d -prune -exec rm -rf {} +

# At a terminal, pip's output becomes one line with a bar, which grows with each package.
BAR := awk '/^FAILED/ { failed = 1 } /^(Collecting|Downloading|Installing)/ { n++; bar = ""; \
  for (i = 0; i < n / 2 && i < 60; i++) bar = bar "="; printf "\r\033[K%s> %s", bar, $$2; fflush() } END { print ""; exit failed }'

# The stamps say which extras the environment has. It is an editable install: edits count at once, without a new stamp.
$(VENV)/.plot $(VENV)/.dev $(VENV)/.docs $(VENV)/.bench: $(VENV)/.%: pyproject.toml | $(VENV)/.python
	@echo 'Installing streamsvm and its dependencies [$*] into $(VENV): a minute or two.'
	@if [ -t 1 ]; then { $(BIN)/python -m pip install --progress-bar off --editable '.[$*]' || echo FAILED; } | $(BAR); \
	  else $(BIN)/python -m pip install --quiet --editable '.[$*]'; fi
	@touch $@

$(VENV)-lowest/.python: pyproject.toml constraints/lowest.txt
	$(PYTHON) -m venv $(VENV)-lowest
	PIP_CONSTRAINT= $(VENV)-lowest/bin/pip install --quiet --constraint constraints/lowest.txt --editable '.[sklearn]' pytest hypothesis 'pandas<3' polars pyarrow
	@touch $@

$(VENV)/.python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	  echo 'streamsvm needs Python 3.11 or newer; "$(PYTHON)" is' "$$($(PYTHON) --version 2>&1 || true)."; \
	  echo 'Name another one: make PYTHON=/path/to/python3.12 ...'; exit 1; }
	$(PYTHON) -m venv $(VENV)
	@touch $@
