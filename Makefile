# `make demo` and `make test` do all set-up themselves and need nothing but Python 3.11 or newer.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP_INSTALL := $(BIN)/python -m pip install --disable-pip-version-check --quiet --no-build-isolation

.PHONY: demo test test-peers peers bench bench-gate schemas lock clean

demo: $(VENV)/.runtime
	$(BIN)/agenteval run examples/quickstart/agent.yaml --out agenteval-report
	@echo
	@echo "Reports are in agenteval-report/: open summary.md, comment.md, junit.xml or results.json."

# Lint, formatting, strict types, then the unit, integration and end-to-end tests.
test: $(VENV)/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/python -m pytest -n auto

# Against independent programs: needs npm, and Debian's cmark-gfm and Chromium; with AGENTEVAL_IMAGE also the built image.
test-peers: $(VENV)/.dev peers
	$(BIN)/python -m pytest -n auto tests/peers

# Installs the programs that those tests run against.
peers: tests/peers/node_modules/.done

tests/peers/node_modules/.done: tests/peers/package-lock.json
	npm ci --prefix tests/peers --no-audit --no-fund --loglevel error
	@touch $@

# Memory for recorded traces, CPU time of comparisons.
bench: $(VENV)/.dev
	$(BIN)/python -m benchmarks.traces
	$(BIN)/python -m benchmarks.compare

# Error rates and power of the gate, by simulation; ARGS="--quick" takes less than a minute.
bench-gate: $(VENV)/.dev
	$(BIN)/python -m benchmarks.gate $(ARGS)

# Regenerates the published JSON Schemas from the models.
schemas: $(VENV)/.dev
	$(BIN)/agenteval schema results > schemas/results.schema.json
	$(BIN)/agenteval schema config > schemas/agenteval.schema.json

# Writes the hash-pinned lock files anew; needs uv.
lock:
	uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-header requirements/build.in -o requirements/build.lock
	uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-header --extra dev --extra files --extra azure --extra local -c requirements/constraints.in pyproject.toml -o requirements/dev.lock
	uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-header --extra files -c requirements/dev.lock -c requirements/constraints.in pyproject.toml -o requirements/runtime.lock

$(VENV)/bin/python:
	$(PYTHON) -c 'import sys; sys.exit("agenteval needs Python 3.11 or newer, not " + sys.version.split()[0] + ": set PYTHON=") if sys.version_info < (3, 11) else None'
	$(PYTHON) -m venv $(VENV)

$(VENV)/.build: $(VENV)/bin/python requirements/build.lock
	$(PIP_INSTALL) --require-hashes -r requirements/build.lock
	@touch $@

$(VENV)/.runtime: $(VENV)/.build requirements/runtime.lock pyproject.toml
	$(PIP_INSTALL) --require-hashes -r requirements/runtime.lock
	$(PIP_INSTALL) --no-deps --editable .
	@touch $@

$(VENV)/.dev: $(VENV)/.runtime requirements/dev.lock
	$(PIP_INSTALL) --require-hashes -r requirements/dev.lock
	@touch $@

clean:
	rm -rf $(VENV) agenteval-report
