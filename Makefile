# The commands of this project. `make` alone lists them.
PYTHON ?= python3
ARGS ?=
export UV_PYTHON_DOWNLOADS := never
# Where Python must not write what it compiles, each of the many processes that tests start compiles the package anew.
export PYTHONDONTWRITEBYTECODE :=

BIN := .venv/bin
STAMP := .venv/.made-from-lock
COLLECTED := .venv/.collected
UV := $(or $(shell command -v uv 2>/dev/null),.uv/bin/uv)

CHUNKS := 12
EACH_CHUNK := $(addprefix chunk-,$(shell seq $(CHUNKS)))

.PHONY: help env demo test test-ci side-by-side test-all search $(EACH_CHUNK) classes unit check style types fmt bench chaos test-matrix screenshots tables site notebooks clean
.DEFAULT_GOAL := help

help: ## list these targets
	@grep -E '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## (.*)/\1|\2/' | awk -F'|' '{printf "  make %-11s %s\n", $$1, $$2}'

env: $(STAMP) ## create .venv from the lock file (instant when it is there)

demo: env ## two Kafka clusters, a driver killed with -9, a cluster lost, and the proof, on this machine
	@$(BIN)/mirrorlake demo

# File by file, those that ask Spark first (tests/support/dealing.py), then in the order of the folders: the long ones come before
# the unit tests, which fill what time is left.
SIDE_BY_SIDE := $(BIN)/pytest -n auto --dist loadfile --no-loadscope-reorder
test: env ## in a quarter of an hour: check, and every law, command and format once
	@$(MAKE) --no-print-directory -j 3 types side-by-side LEFT_OUT="not slow and not quiet and not wide"

test-ci: env ## what CI runs: that, and what is marked `wide`, which proves more of the same
	@$(MAKE) --no-print-directory -j 3 types side-by-side LEFT_OUT="not slow and not quiet"

# mypy without its cache takes a core for more than a minute, which it finds beside tests that wait half of their time.
side-by-side: style classes $(COLLECTED)
	$(SIDE_BY_SIDE) -m "$(LEFT_OUT)"

# In a new environment the tests are compiled by one process: else each of those that run side by side compiles all of them.
$(COLLECTED): $(STAMP)
	@$(BIN)/pytest --collect-only -q > $@ || { cat $@ >&2; rm $@; exit 1; }

# The slow ones in chunks, each of which goes on where it stopped (tests/support/chunks.py), and none of which ends the
# others. Six at a time: most of what they do is wait for clusters that are away, so that these keep two cores busy.
ifdef CHUNK
test-all: env
	$(BIN)/pytest -m slow --chunk $(CHUNK)
else
test-all: test-ci ## those and the slow ones, every lane, topology, security mode; CHUNK=3/12 goes on with a twelfth, an hour at most
	@$(MAKE) --no-print-directory -j 6 --keep-going --output-sync=target search $(EACH_CHUNK) || { echo \
		"go on with make search, or make test-all CHUNK=3/$(CHUNKS), where chunk-3 is one of those that failed" >&2; exit 1; }
	$(BIN)/pytest -m quiet
endif

# Laws are tried on more examples than `test` has time for.
SEARCHED := $(addprefix tests/integration/,test_native_producer_kafka.py test_read_ranges.py)
search: env
	@$(BIN)/pytest -m "hypothesis and not slow" --hypothesis-profile=search tests/unit $(SEARCHED)

$(EACH_CHUNK): chunk-%: env
	@$(BIN)/pytest -m slow --chunk $*/$(CHUNKS)

# Tests start many sessions: with Java's classes in an archive each takes half the time. Instant when it is there.
classes: env
	@$(BIN)/python -m mirrorlake.spark.class_archive

unit: env ## the tests that need neither Java nor Kafka
	$(BIN)/pytest tests/unit

check: style types ## ruff and mypy, nothing is changed

style: env
	$(BIN)/ruff check
	$(BIN)/ruff format --check

types: env
	$(BIN)/mypy

fmt: env ## format the code and fix what ruff can fix
	$(BIN)/ruff check --fix
	$(BIN)/ruff format

bench: env ## race against MirrorMaker 2, and what only developers measure; options in ARGS="..."
	@$(BIN)/python -m tests.bench $(ARGS)

chaos: env ## schedules without end or kills without mercy; ARGS="--schedules 20000 --seed 7", or "--kills 300"
	@$(BIN)/python -m tests.chaos $(ARGS)

test-matrix: env ## each Spark and each Python, an hour at a time, into docs/compatibility.md; ARGS="--spark 4.2 --python 3.11"
	@$(BIN)/python -m tests.matrix $(ARGS)

screenshots: env ## make docs/terminal.svg, notebook-*.svg and, in a headless Chromium, dashboard-*.png again
	$(BIN)/python docs/make_terminal.py
	MIRRORLAKE_SCREENSHOTS=docs $(BIN)/pytest tests/dashboard -k screenshots
	MIRRORLAKE_SCREENSHOTS=docs $(BIN)/pytest tests/unit/notebook/test_gallery.py

tables: env ## write docs/tables.md from the definitions of tables and views, their texts for DuckDB, and the tables of docs/capacity.md
	@$(BIN)/python docs/make_tables.py
	@$(BIN)/python docs/make_translated.py
	@$(BIN)/python docs/make_capacity.py

site: env ## the pages as a site with a search, in build/site
	@NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet && echo build/site/index.html

notebooks: env ## notebooks/ as notebooks of Jupyter, in build/notebooks; ARGS="lake=$$PWD/lake flow='east->west'"
	@$(BIN)/python -m mirrorlake.notebook.jupyter build/notebooks notebooks/*.py $(ARGS)

clean: ## remove the environment and everything that was made
	rm -rf .venv .uv .matrix build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis mirrorlake-demo bench-results spark-warehouse
	rm -f src/mirrorlake/native/*.so
	find src tests -name __pycache__ -type d -prune -exec rm -rf {} +

# Python is compiled at once: a command then starts in half the time, and Python may not be allowed to write later. The package
# is installed anew, which compiles its C (hatch_build.py), whatever uv still has of an earlier build.
$(STAMP): uv.lock pyproject.toml hatch_build.py src/mirrorlake/native/records.c
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 10))' 2>/dev/null || { echo \
		"mirrorlake needs Python 3.10 or newer, which $(PYTHON) is not: name one, as in make env PYTHON=python3.11" >&2; exit 1; }
	@test -x "$(UV)" || { $(PYTHON) -m venv .uv && .uv/bin/pip install --quiet --disable-pip-version-check uv; } || { echo \
		"make env could not install uv into .uv/: it needs Python's venv module (python3-venv on Debian) and PyPI" >&2; exit 1; }
	"$(UV)" sync --frozen --all-extras --compile-bytecode --reinstall-package mirrorlake --python "$$(command -v $(PYTHON))"
	@$(BIN)/python -m compileall -q src
	@touch $(STAMP)
