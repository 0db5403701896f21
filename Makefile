# Every target makes what it needs; nothing is expected but Python 3.11 or newer and pip.

# Tests start our programs some hundred times: compiled modules are kept, whatever the environment says of others.
unexport PYTHONDONTWRITEBYTECODE

PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready

COMPAT_VENV := .venv-compat
COMPAT_READY := $(COMPAT_VENV)/.ready

.PHONY: env compat-env web ready system emulators web-types check-web pictures tour test test-long test-gpu scale check check-types check-shape check-imports check-style format docs bench bench-long demo clean

env: $(READY)

$(READY): pyproject.toml
	@$(PYTHON) tests/setup/environment.py --venv $(VENV)
	@touch $(READY)

# Determined's own client, the instrument of tests/compat: never in the product's environment.
# Of its ten thousand modules few are imported, and those are compiled then.
compat-env: $(COMPAT_READY)

$(COMPAT_READY): tests/compat/requirements.txt
	@$(PYTHON) -m venv $(COMPAT_VENV)
	@echo "Installing Determined's client into $(COMPAT_VENV) (a minute the first time)" >&2
	@$(COMPAT_VENV)/bin/python -m pip install --quiet --no-compile --disable-pip-version-check -r tests/compat/requirements.txt
	@touch $(COMPAT_READY)

# The web page, into src/tenax/_webui; what was built of the same sources is kept. It needs no environment: node is the
# system's, or comes from PyPI. With changes as they are saved: tenax dev
web:
	@$(PYTHON) webui/build.py

# What the page has of our API as types, after a service of it names another route, or one that it names has changed.
web-types: env web
	$(BIN)/python -m tests.docs.web_types

# Types, lint and format of the page, and its unit tests.
check-web: web
	npm --prefix webui run check
	npm --prefix webui test

# Pictures of each route of the page, in both themes, 1440 and 390 pixels wide.
pictures: env web
	@mkdir -p pictures
	TENAX_PICTURES=$(CURDIR)/pictures $(BIN)/python -m pytest -q tests/web/test_every_route.py -k everyone

# The pictures of docs/tour.md.
tour: env web
	TENAX_TOUR=$(CURDIR)/docs/images $(BIN)/python -m pytest -q tests/web/test_tour.py

# How many tests run at once (tests/kits/workers.py divides them): half as many more than processors, since many wait, to 8.
WORKERS ?= $(shell $(PYTHON) -c 'import os; print(min(max(3 * (os.cpu_count() or 2) // 2, 3), 8))')

# What tests need, side by side: most of it is waiting for what is downloaded.
ready:
	@$(MAKE) --no-print-directory -j 5 env compat-env web system emulators

system:
	@$(PYTHON) tests/setup/system.py

# Servers of protocols that come from npm.
emulators:
	@$(PYTHON) tests/setup/emulators.py

test: ready
	$(BIN)/python -m pytest -m "not long and not gpu" -n $(WORKERS)

test-long: ready
	$(BIN)/python -m pytest -m long --timeout 7200 -n $(WORKERS)

# What needs an NVIDIA GPU, with a torch that can use it: `make test-gpu BIN=...` where that is in another environment.
test-gpu: env
	$(BIN)/python -m pytest -m gpu tests/gpu

# tests/scale at full size, of which the other runs have a hundredth at most; prints a line of JSON per figure.
scale: env
	TENAX_SCALE=1 $(BIN)/python -m pytest tests/scale -q -s --timeout 3600

# Two at a time, and all of them, whatever one finds.
check: env
	@$(MAKE) --no-print-directory --keep-going -j 2 check-types check-shape check-imports check-style

check-types:
	$(BIN)/mypy

check-shape:
	$(BIN)/python -m pytest -q tests/test_architecture.py

check-imports:
	$(BIN)/lint-imports

check-style:
	$(BIN)/ruff format --check src tests benchmarks examples
	$(BIN)/ruff check src tests benchmarks examples

format: env
	$(BIN)/ruff format src tests benchmarks examples
	$(BIN)/ruff check --fix src tests benchmarks examples

# What is made from the command line, from the tables of the state machines, and from the migrations; and the types of the
# asynchronous SDK.
docs: env
	$(BIN)/python -m tenax.cli.console.reference > docs/cli.md
	$(BIN)/python -m tests.docs.side_by_side > docs/det-and-tenax.md
	$(BIN)/python -m tests.docs.state_machines > docs/state-machines.md
	$(BIN)/python -m tests.docs.async_types
	$(BIN)/python -m tests.docs.schema > docs/schema.sql.new && mv docs/schema.sql.new docs/schema.sql

# The peers' packages stay out of the product's environment. On standard output there are the benchmarks' lines and
# nothing else. `make bench ONLY=asha_decisions` runs one; bench-long takes more rounds and larger cases.
BENCH_VENV := .venv-bench
BENCH_READY := $(BENCH_VENV)/.ready

$(BENCH_READY): benchmarks/requirements.txt
	@$(PYTHON) -m venv $(BENCH_VENV)
	@echo "Installing the peers of the benchmarks into $(BENCH_VENV) (minutes the first time)" >&2
	@$(BENCH_VENV)/bin/python -m pip install --quiet --disable-pip-version-check -r benchmarks/requirements.txt
	@touch $(BENCH_READY)

bench: env $(BENCH_READY)
	@$(BIN)/python -m benchmarks.run $(ONLY)

bench-long: env $(BENCH_READY)
	@TENAX_BENCH_LONG=1 $(BIN)/python -m benchmarks.run $(ONLY)

demo: env
	$(BIN)/tenax demo $(if $(KEEP),--keep)

clean:
	rm -rf $(VENV) .venv-bench .venv-compat .mypy_cache .ruff_cache .pytest_cache build dist src/tenax/_webui webui/node_modules webui/.node pictures
