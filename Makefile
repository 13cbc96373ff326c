# `make demo` and `make test` do all set-up themselves and need nothing but Python 3.11 or newer.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP_INSTALL := $(BIN)/python -m pip install --disable-pip-version-check --quiet --no-build-isolation

.PHONY: demo test test-peers peers bench bench-gate bench-reliability schemas reference docs dist lock fuzz licences audit clean

demo: $(VENV)/.runtime
	$(BIN)/agenteval run examples/quickstart/agent.yaml --out agenteval-report
	@echo
	@echo "Reports are in agenteval-report/: open summary.md, comment.md, junit.xml or results.json."

# Lint, formatting, strict types, import contracts, then the unit, integration and end-to-end tests.
test: $(VENV)/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python -m pytest -n auto

# Against independent programs: needs npm, and Debian's cmark-gfm and Chromium; with AGENTEVAL_IMAGE also the built image.
test-peers: $(VENV)/.dev peers
	$(BIN)/python -m pytest -n auto tests/peers

# Installs the programs that those tests run against.
peers: tests/peers/node_modules/.done

tests/peers/node_modules/.done: tests/peers/package-lock.json
	npm ci --prefix tests/peers --no-audit --no-fund --loglevel error
	@touch $@

# Speed beside other programs (ARGS="--runs N", --full, --write), memory for recorded traces, CPU time of comparisons.
bench: $(VENV)/.dev
	$(BIN)/python -m benchmarks.speed $(ARGS)
	$(BIN)/python -m benchmarks.traces
	$(BIN)/python -m benchmarks.compare

# Error rates and power of the gate, by simulation; ARGS="--quick" takes less than a minute.
bench-gate: $(VENV)/.dev
	$(BIN)/python -m benchmarks.gate $(ARGS)

# Fifty kills at random moments, then ten thousand cases against an agent that errs, hangs and says too much.
bench-reliability: $(VENV)/.dev
	$(BIN)/python -m benchmarks.reliability kills
	$(BIN)/python -m benchmarks.reliability load

# Writes the published JSON Schemas anew, from the models.
schemas: $(VENV)/.dev
	$(BIN)/python -m scripts.schemas

# Writes what the documentation says of action.yml, agenteval.yaml and the command line anew.
reference: $(VENV)/.dev
	$(BIN)/python -m scripts.reference

# Builds the documentation site into site/; every warning is an error.
docs: $(VENV)-docs/.done
	NO_MKDOCS_2_WARNING=1 $(VENV)-docs/bin/mkdocs build --strict --quiet

$(VENV)-docs/.done: requirements/docs.lock
	$(PYTHON) -m venv $(VENV)-docs
	$(VENV)-docs/bin/python -m pip install --disable-pip-version-check --quiet --require-hashes -r requirements/docs.lock
	@touch $@

# Coverage-guided fuzzing of every parser; ARGS="--seconds 60 --target NAME". Linux, CPython 3.11 to 3.13.
fuzz: $(VENV)-fuzz/.done
	$(VENV)-fuzz/bin/python -m tests.fuzz.run $(ARGS)

$(VENV)-fuzz/.done: requirements/build.lock requirements/dev.lock requirements/fuzz.lock
	$(PYTHON) -m venv $(VENV)-fuzz
	$(VENV)-fuzz/bin/python -m pip install --disable-pip-version-check --quiet --require-hashes -r requirements/build.lock
	$(VENV)-fuzz/bin/python -m pip install --disable-pip-version-check --quiet --no-build-isolation --require-hashes -r requirements/dev.lock -r requirements/fuzz.lock
	$(VENV)-fuzz/bin/python -m pip install --disable-pip-version-check --quiet --no-build-isolation --no-deps --editable .
	@touch $@

# The licences of what the image and `make demo` install, against requirements/licences.toml.
licences: $(VENV)/.runtime
	$(BIN)/python -m scripts.licences

# Known vulnerabilities of everything that is locked, as osv.dev knows them; says so where that is out of reach.
audit: $(VENV)/.runtime
	@if $(BIN)/python -m scripts.audit; then \
	  $(MAKE) --no-print-directory $(VENV)-audit/.done && $(BIN)/python -m scripts.audit $(VENV)-audit/bin/pip-audit; fi

$(VENV)-audit/.done: requirements/audit.lock
	$(PYTHON) -m venv $(VENV)-audit
	$(VENV)-audit/bin/python -m pip install --disable-pip-version-check --quiet --require-hashes -r requirements/audit.lock
	@touch $@

# Builds wheel and source distribution into dist/.
dist: $(VENV)/.build
	rm -rf dist
	$(BIN)/python -m hatchling build

# Writes the hash-pinned lock files anew; needs uv and npm.
SPEED_PEERS := $(basename $(wildcard benchmarks/speed/requirements/*.in))
lock:
	uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-header requirements/build.in -o requirements/build.lock
	uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-header requirements/docs.in -o requirements/docs.lock
	uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-header requirements/fuzz.in -o requirements/fuzz.lock
	uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-header requirements/audit.in -o requirements/audit.lock
	uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-header --extra dev --extra files --extra azure --extra local -c requirements/constraints.in pyproject.toml -o requirements/dev.lock
	uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-header --extra files -c requirements/dev.lock -c requirements/constraints.in pyproject.toml -o requirements/runtime.lock
	for peer in $(SPEED_PEERS); do uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-header $$peer.in -o $$peer.txt || exit; done
	npm install --prefix benchmarks/speed/promptfoo --package-lock-only --loglevel error

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
	rm -rf $(VENV) $(VENV)-docs $(VENV)-fuzz $(VENV)-audit tests/fuzz/found agenteval-report dist site
