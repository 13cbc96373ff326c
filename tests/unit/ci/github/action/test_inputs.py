"""Inputs of the action, as the runner passes them."""

from __future__ import annotations

import pytest

from agenteval.core.errors import ConfigError
from agenteval.github.inputs import read_inputs


@pytest.mark.parametrize(
    ("given", "mode"), [("", "run"), ("run", "run"), ("gate", "gate"), ("merge", "gate"), ("publish", "publish")]
)
def test_the_mode_and_its_former_name(given: str, mode: str) -> None:
    assert read_inputs({"INPUT_MODE": given}).mode == mode


def test_an_unknown_mode_names_the_others() -> None:
    with pytest.raises(ConfigError, match="'judge' is not allowed; allowed: run, gate, publish"):
        read_inputs({"INPUT_MODE": "judge"})


@pytest.mark.parametrize("name", ["iterations", "runs", "concurrency"])
def test_there_is_a_limit_of_times(name: str) -> None:
    assert read_inputs({f"INPUT_{name.upper()}": "1000000"}) is not None
    with pytest.raises(ConfigError, match=f"{name}: 1,000,001 is more than 1,000,000"):
        read_inputs({f"INPUT_{name.upper()}": "1000001"})
