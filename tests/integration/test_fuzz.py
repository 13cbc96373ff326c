"""Everything that reads foreign bytes lets through only the errors that it documents; `make fuzz` looks further."""

from __future__ import annotations

import signal
from random import Random

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.fuzz.catalog import FOLDER, NAMES, corpus, target
from tests.fuzz.interrupt import raised_after
from tests.fuzz.mutations import mutated
from tests.support import PATIENCE_S

# Some of these are slow to refuse a template, a large file or a deep one; all together they take ten seconds.
_EXAMPLES = 30


@pytest.mark.parametrize("name", NAMES)
def test_every_input_that_was_kept(name: str) -> None:
    run = target(name)
    for path in corpus(name):
        run(path.read_bytes())


@pytest.mark.parametrize("name", NAMES)
def test_mutations(name: str) -> None:
    run = target(name)
    inputs = st.sampled_from([path.read_bytes() for path in corpus(name)])

    @settings(
        max_examples=_EXAMPLES,
        derandomize=True,
        database=None,
        deadline=None,
        suppress_health_check=list(HealthCheck),
    )
    @given(inputs, inputs, st.randoms(use_true_random=False))
    def check(data: bytes, other: bytes, random: Random) -> None:
        run(mutated(data, other, random))

    check()


@pytest.mark.parametrize("name", NAMES)
@settings(max_examples=20, derandomize=True, database=None, deadline=None)
@given(data=st.binary(max_size=200) | st.text(max_size=200).map(lambda text: text.encode("utf-8", "surrogatepass")))
def test_any_bytes(name: str, data: bytes) -> None:
    target(name)(data)


def test_targets_say_which_errors_are_documented() -> None:
    for name in NAMES:
        source = (FOLDER / "targets" / f"{name}.py").read_text(encoding="utf-8")
        assert "Error" in source or "No error" in source


@pytest.mark.parametrize("name", ["answer_checks", "judge_reply", "trace_judge", "comment", "command_reply"])
@pytest.mark.parametrize(
    "piece", [b"\n", b" ", b"[", b"1,111,", b"- 1. \n", b"```\n", b"<!-- agenteval:", b"reason: "]
)
def test_long_inputs_take_linear_time(name: str, piece: bytes) -> None:
    begin = {"answer_checks": b"```json\n", "comment": b"<!-- agenteval:comment id=x -->\n"}.get(name, b"")
    # The square of the length would be an hour of processor time.
    with raised_after(PATIENCE_S, TimeoutError, signal.ITIMER_VIRTUAL):
        target(name)(begin + piece * (400_000 // len(piece)) + b"}")
