# `make demo` and `make test` do all set-up and need only Python 3.11 or newer. `make help` prints each target with the first
# sentence of the comment above it.
.DEFAULT_GOAL := help
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# Tests start many processes, which would compile all modules again.
unexport PYTHONDONTWRITEBYTECODE
# Tests wait for other processes for a quarter of their time, those against independent programs for half of it.
WORKERS ?= $(shell $(PYTHON) -c 'import os; print((os.cpu_count() or 1) + 1)')
PEER_WORKERS ?= $(shell $(PYTHON) -c 'import os; print((os.cpu_count() or 1) * 2)')
# Python compiles the modules that are imported; pip would compile all.
PIP_INSTALL := -m pip install --disable-pip-version-check --quiet --no-compile
# Creates an environment with uv, which installs within seconds what takes pip a minute.
define environment
	@$(PYTHON) -m venv $(1)
	-@$(1)/bin/python $(PIP_INSTALL) --only-binary=:all: --require-hashes -r requirements/installer.lock
endef
# Installs with uv, else with pip: an index may be known only from pip's configuration.
install = $(1)/bin/uv pip install --quiet --python $(1)/bin/python $(2) || $(1)/bin/python $(PIP_INSTALL) $(2)

.PHONY: demo help test checks tests test-peers test-frameworks peers peers-holodeck bench bench-cold bench-gate bench-reliability schemas reference pictures actions prose docs changelog dist lock fuzz \
  mutation licences audit clean

# Evaluate the quickstart example and write its reports to agenteval-report/.
demo: $(VENV)/.runtime
	@echo "Evaluating examples/quickstart/agent.yaml:"
	$(BIN)/agenteval run examples/quickstart/agent.yaml --out agenteval-report
	@echo
	@echo "Reports are in agenteval-report/: open summary.md, comment.md, junit.xml or results.json."

# List the targets.
help:
	@awk '/^# / {if (!text) text = substr($$0, 3); next} /^[a-z-]+:/ {if (text) {sub(/:.*/, ""); sub(/\. .*/, ".", text); printf "%-18s %s\n", $$0, text}} {text = ""}' Makefile

# The quick unit tests, without those of the repository's files.
FAST_TESTS := tests/unit --ignore=tests/unit/repository -m "not slow and not long" --hypothesis-profile=fast

# Check lint, formatting, types, imports, prose and sizes, beside the unit tests, scenarios, integration and end-to-end tests. LONG=1 adds the long
# tests, which the scheduled workflow runs. FAST=1 runs only the quick unit tests, in less than a minute.
test: $(VENV)/.dev
	@$(MAKE) --no-print-directory --jobs 2 checks tests

# Check lint, formatting, types, imports, prose and sizes.
checks: $(VENV)/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(if $(FAST),,$(BIN)/python -m scripts.prose)
	$(if $(FAST),,$(BIN)/python -m scripts.budget)

tests: $(VENV)/.dev
	$(BIN)/python -m pytest -n $(WORKERS) --dist worksteal --durations=15 --durations-min=5 $(if $(FAST),$(FAST_TESTS),$(if $(LONG),--hypothesis-profile=long,-m "not long"))

# Run the tests against independent programs. Needs npm, and Debian's cmark-gfm and Chromium. With AGENTEVAL_IMAGE, tests the
# built image too.
test-peers: $(VENV)/.dev peers
	$(BIN)/python -m pytest -n $(PEER_WORKERS) --dist worksteal --durations=30 --durations-min=3 tests/peers

FRAMEWORKS := $(basename $(notdir $(wildcard requirements/frameworks/*.in)))
# Run AgentCI suites on agents of the really installed frameworks, each in an environment below .venv-frameworks.
test-frameworks: $(VENV)/.dev $(FRAMEWORKS:%=.venv-frameworks/%/.done)
	$(BIN)/python -m pytest -n $(WORKERS) --durations=10 tests/frameworks

.venv-frameworks/%/.done: requirements/frameworks/%.txt $(VENV)/.dev
	$(BIN)/uv venv --quiet --clear --python $(BIN)/python $(@D)
	$(BIN)/uv pip install --quiet --python $(@D) --require-hashes -r $<
	@touch $@

# Install the programs that test-peers runs against.
peers: tests/peers/node_modules/.done

# Install HoloDeck for tests/peers/test_holodeck.py: 1.7 GB, some minutes. Without it the test is skipped.
peers-holodeck: tests/peers/holodeck/.venv/.done

tests/peers/holodeck/.venv/.done: tests/peers/holodeck/requirements.txt
	python3 -m venv tests/peers/holodeck/.venv
	tests/peers/holodeck/.venv/bin/pip install --quiet -r tests/peers/holodeck/requirements.txt
	touch $@

tests/peers/node_modules/.done: tests/peers/package-lock.json
	npm ci --prefix tests/peers --no-audit --no-fund --loglevel error
	@touch $@

# Measure speed, memory and CPU time. ARGS: "--runs N", --full, --write.
bench: $(VENV)/.dev
	$(BIN)/python -m benchmarks.speed $(ARGS)
	$(BIN)/python -m benchmarks.traces
	$(BIN)/python -m benchmarks.shards
	$(BIN)/python -m benchmarks.compare
	$(BIN)/python -m benchmarks.judges

# Simulate error rates and power of the gate. ARGS="--quick" takes less than a minute.
bench-gate: $(VENV)/.dev
	$(BIN)/python -m benchmarks.gate $(ARGS)

# Measure the way from nothing to the first case, beside promptfoo and deepeval, and the sizes. Needs uv and npm.
bench-cold: $(VENV)/.dev
	$(BIN)/python -m benchmarks.cold $(ARGS)

# Kill a run at random moments, then run ten thousand cases against a faulty agent.
bench-reliability: $(VENV)/.dev
	$(BIN)/python -m benchmarks.reliability kills
	$(BIN)/python -m benchmarks.reliability load

# Write the published JSON Schemas from the models.
schemas: $(VENV)/.dev
	$(BIN)/python -m scripts.schemas

# Write the reference pages of action.yml, agenteval.yaml and the command line.
reference: $(VENV)/.dev
	$(BIN)/python -m scripts.reference

# Draw the pictures of the documentation from real runs, the tests' golden files and the gate's own arithmetic.
pictures: $(VENV)/.dev
	$(BIN)/python -m scripts.pictures

# Write the versions of requirements/actions.yml into all workflows, examples and documents.
actions: $(VENV)/bin/python
	$(BIN)/python -m scripts.actions

# Check documentation, messages and comments for unclear phrases. ARGS: paths; default: the checked parts.
prose: $(VENV)/.dev
	$(BIN)/python -m scripts.prose $(ARGS)

# Build the documentation site in site/. Every warning is an error.
docs: $(VENV)-docs/.done
	NO_MKDOCS_2_WARNING=1 $(VENV)-docs/bin/mkdocs build --strict --quiet

$(VENV)-docs/.done: requirements/docs.lock
	$(call environment,$(VENV)-docs)
	@$(call install,$(VENV)-docs,--require-hashes -r requirements/docs.lock)
	@touch $@

# Fuzz every parser, guided by coverage. ARGS="--seconds 60 --target NAME". Needs Linux and CPython 3.11 to 3.13.
fuzz: $(VENV)-fuzz/.done
	$(VENV)-fuzz/bin/python -m tests.fuzz.run $(ARGS)

$(VENV)-fuzz/.done: requirements/build.lock requirements/dev.lock requirements/fuzz.lock
	$(call environment,$(VENV)-fuzz)
	@$(call install,$(VENV)-fuzz,--require-hashes -r requirements/build.lock)
	@$(call install,$(VENV)-fuzz,--no-build-isolation --require-hashes -r requirements/dev.lock -r requirements/fuzz.lock)
	@$(call install,$(VENV)-fuzz,--no-build-isolation --no-deps --editable .)
	@touch $@

# Change the gate, the rollup and the escaping in small ways, and print what no test notices: a quarter of an hour. ARGS:
# gate, rollup, escape.
mutation: $(VENV)-mutation/.done
	$(VENV)-mutation/bin/python -m scripts.mutation $(ARGS)

$(VENV)-mutation/.done: requirements/build.lock requirements/dev.lock requirements/mutation.lock
	$(call environment,$(VENV)-mutation)
	@$(call install,$(VENV)-mutation,--require-hashes -r requirements/build.lock)
	@$(call install,$(VENV)-mutation,--no-build-isolation --no-deps --require-hashes -r requirements/dev.lock)
	@$(call install,$(VENV)-mutation,--no-build-isolation --no-deps --require-hashes -r requirements/mutation.lock)
	@$(call install,$(VENV)-mutation,--no-build-isolation --no-deps --editable .)
	@touch $@

# Compare the licences of runtime dependencies with requirements/licences.toml.
licences: $(VENV)/.runtime
	$(BIN)/python -m scripts.licences

# Ask osv.dev for known vulnerabilities of all locked dependencies. Without network, reports that and does not fail.
audit: $(VENV)/.runtime
	@if $(BIN)/python -m scripts.audit; then \
	  $(MAKE) --no-print-directory $(VENV)-audit/.done && $(BIN)/python -m scripts.audit $(VENV)-audit/bin/pip-audit; fi

$(VENV)-audit/.done: requirements/audit.lock
	$(call environment,$(VENV)-audit)
	@$(call install,$(VENV)-audit,--require-hashes -r requirements/audit.lock)
	@touch $@

# Move the entries of changes/ to CHANGELOG.md, under VERSION and today's date.
changelog:
	$(PYTHON) scripts/release_notes.py --collect "$(VERSION)"

# Build wheel and source distribution in dist/.
dist: $(VENV)/.build
	rm -rf dist
	$(BIN)/python -m hatchling build

UNUSED := $(shell grep -v "^\#" requirements/unused.txt)
SPEED_PEERS := $(basename $(wildcard benchmarks/speed/requirements/*.in))
# Write the hash-pinned lock files. Needs uv and npm.
lock:
	uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-header requirements/build.in -o requirements/build.lock
	uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-header requirements/installer.in -c requirements/dev.lock -o requirements/installer.lock
	uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-header requirements/docs.in -o requirements/docs.lock
	uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-header requirements/fuzz.in -o requirements/fuzz.lock
	uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-header requirements/audit.in -o requirements/audit.lock
	uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-header requirements/mutation.in -c requirements/dev.lock -o requirements/mutation.lock
	uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-header --extra dev --extra files --extra azure --extra local pyproject.toml -o requirements/dev.lock
	uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-header --extra files -c requirements/dev.lock $(addprefix --no-emit-package ,$(UNUSED)) pyproject.toml -o requirements/runtime.lock
	for peer in $(SPEED_PEERS); do uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-header $$peer.in -o $$peer.txt || exit; done
	for framework in $(FRAMEWORKS); do uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-header requirements/frameworks/$$framework.in -o requirements/frameworks/$$framework.txt || exit; done
	npm install --prefix benchmarks/speed/promptfoo --package-lock-only --loglevel error

$(VENV)/bin/python:
	$(PYTHON) -c 'import sys; sys.exit("agenteval needs Python 3.11 or newer, not " + sys.version.split()[0] + ": set PYTHON=") if sys.version_info < (3, 11) else None'
	@echo "Creating the environment $(VENV)"
	$(call environment,$(VENV))

$(VENV)/.build: $(VENV)/bin/python requirements/build.lock
	@echo "Installing build tools into $(VENV)"
	@$(call install,$(VENV),--require-hashes -r requirements/build.lock)
	@touch $@

$(VENV)/.runtime: $(VENV)/.build requirements/runtime.lock pyproject.toml
	@echo "Installing agenteval and its $$(grep -c == requirements/runtime.lock) locked packages into $(VENV), once"
	@$(call install,$(VENV),--no-build-isolation --require-hashes --no-deps -r requirements/runtime.lock)
	@$(call install,$(VENV),--no-build-isolation --no-deps --editable .)
	$(BIN)/python -m compileall -q src
	@touch $@

$(VENV)/.dev: $(VENV)/.runtime requirements/dev.lock
	@$(call install,$(VENV),--no-build-isolation --require-hashes -r requirements/dev.lock)
	@touch $@

# Remove virtual environments, reports and build results.
clean:
	rm -rf $(VENV) $(VENV)-docs $(VENV)-fuzz $(VENV)-audit $(VENV)-mutation tests/fuzz/found agenteval-report dist site
