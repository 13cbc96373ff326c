"""Settings of all tests."""

import gc
import os
import sys
import venv
from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis.internal.conjecture import providers as hypothesis_providers

# Until all tests are imported.
gc.disable()

# Tests replace an agent within a second. If its size stays the same too, Python takes the bytecode of the old one.
os.environ["PYTHONDONTWRITEBYTECODE"] = "1"

# Tests say themselves when they are in a CI run.
for name in ("CI", "GITHUB_ACTIONS"):
    os.environ.pop(name, None)


# No test may depend on the load of the machine, or on chance: `make test` tries the same examples every time.
# Hypothesis would also try numbers and texts of the modules that are imported so far; those depend on earlier tests.
hypothesis_providers._get_local_constants = lambda: hypothesis_providers._local_constants
settings.register_profile(
    "agenteval", deadline=None, max_examples=50, derandomize=True, suppress_health_check=[HealthCheck.too_slow]
)
# `make test LONG=1` tries many more.
settings.register_profile("long", settings.get_profile("agenteval"), max_examples=400)
# `pytest --hypothesis-profile=explore` tries new examples.
settings.register_profile("explore", settings.get_profile("agenteval"), max_examples=400, derandomize=False)
# `make test FAST=1` tries the first of these examples.
settings.register_profile("fast", settings.get_profile("agenteval"), max_examples=10)
# `make mutation` wants to know only whether an example fails.
settings.register_profile("mutation", settings.get_profile("agenteval"), phases=(Phase.explicit, Phase.generate))
settings.load_profile("agenteval")


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add an option to see each row of a parametrised unit test as a test."""
    parser.addoption("--each-row", action="store_true", help="run each row of parametrised unit tests as a test")


def pytest_configure(config: pytest.Config) -> None:
    """Let the agents of tests run in a Python without packages, whatever the machine has installed.

    It starts faster too: packages may run code at each start, and ``python3`` of pyenv is a shell script.
    """
    if hasattr(config, "workerinput"):
        return
    python = Path(config.cache.mkdir("python"))
    if not (python / "bin" / "python3").exists():
        venv.create(python, symlinks=True)
    os.environ["PATH"] = f"{python / 'bin'}{os.pathsep}{os.environ['PATH']}"


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_setupnodes() -> None:
    """Let the workers share one command server, and write bytecode, or each of them compiles all in every run."""
    # Imported here: it keeps the variables that processes read at their start, and one of them is set above.
    from tests.command import share_server

    share_server()
    if not sys.dont_write_bytecode:
        del os.environ["PYTHONDONTWRITEBYTECODE"]


@pytest.hookimpl(trylast=True)
def pytest_collection_finish() -> None:
    """Nothing that was imported is garbage: to look for some again and again takes a tenth of the time."""
    gc.freeze()
    gc.enable()
