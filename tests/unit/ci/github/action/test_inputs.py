"""Inputs of the action, as the runner passes them."""

from __future__ import annotations

from pathlib import Path

import pytest

from agenteval.core.errors import ConfigError
from agenteval.github.inputs import read_inputs
from agenteval.run.options import INPUTS


@pytest.mark.parametrize("given", ["", "run", "gate", "publish"])
def test_the_mode(given: str) -> None:
    assert read_inputs({"INPUT_MODE": given}).mode == (given or "run")


def test_defaults_are_those_of_the_table_without_expressions() -> None:
    inputs = read_inputs({})
    assert (inputs.mode, inputs.baseline, inputs.baseline_artifact) == ("run", "auto", "agenteval")
    assert (inputs.comment, inputs.fork_results, inputs.out) == ("always", "label", Path("agenteval-report"))
    assert (inputs.runs, inputs.github_token, inputs.job[0]) == (1, "", None)


def test_there_is_a_limit_of_times() -> None:
    assert read_inputs({"INPUT_RUNS": "1000000"}).runs == 1_000_000
    with pytest.raises(ConfigError, match="runs: '1000001' is more than 1,000,000"):
        read_inputs({"INPUT_RUNS": "1000001"})


@pytest.mark.parametrize(
    ("name", "place"),
    [
        ("iterations", "write `iterations: N` in agenteval.yaml"),
        ("max-cost-usd", "write `llm: {max_cost_usd: USD}` in agenteval.yaml"),
        ("filter", "write --filter on the command line"),
    ],
)
def test_an_input_that_is_elsewhere_says_what_to_write(name: str, place: str) -> None:
    assert name not in INPUTS
    for variable in {f"INPUT_{name.upper()}", f"INPUT_{name.upper().replace('-', '_')}"}:
        with pytest.raises(ConfigError) as caught:
            read_inputs({variable: "1"})
        assert str(caught.value) == f"input {name}: there is no such input; {place}"
    # An expression can leave it empty.
    assert read_inputs({f"INPUT_{name.upper()}": ""}) == read_inputs({})


@pytest.mark.parametrize("text", ["null", "[", "[1]", "{}", "[" * 100_000])
def test_the_job_is_what_the_action_writes(text: str) -> None:
    with pytest.raises(ConfigError, match=r"^input job: the action sets it; leave it out$"):
        read_inputs({"INPUT_JOB": text})


def test_a_job_of_a_matrix_is_a_shard() -> None:
    job = '["7", {"part": "b"}, {"fail-fast": true, "job-index": 1, "job-total": 3, "max-parallel": 3}]'
    inputs = read_inputs({"INPUT_SHARD": "auto", "INPUT_JOB": job})
    assert (str(inputs.shard), inputs.job[:2]) == ("2/3", ("7", {"part": "b"}))
    # Other servers may not have the context.
    with pytest.raises(ConfigError, match="input shard: 'auto' finds no shard, as none of STRATEGY_JOB_INDEX, "):
        read_inputs({"INPUT_SHARD": "auto", "INPUT_JOB": '["", null, null]'})


def test_an_unknown_mode_names_the_others() -> None:
    with pytest.raises(ConfigError, match="'judge' is not allowed; allowed: run, gate, prove, publish"):
        read_inputs({"INPUT_MODE": "judge"})
