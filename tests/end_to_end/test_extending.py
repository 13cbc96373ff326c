"""Every example of docs/extending.md runs as it stands."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.end_to_end.documentation import Block, blocks
from tests.support import case, copied_program, echo_agent, write_suite

EXAMPLES = [block for block in blocks("python") if block.page.name == "extending.md"]
# The tests of an example run as pytest would run them.
RUN_TESTS = """
for name, function in list(globals().items()):
    if name.startswith("test_"):
        function()
"""


@pytest.mark.parametrize("block", EXAMPLES, ids=str)
def test_it_runs(block: Block, tmp_path: Path) -> None:
    write_suite(tmp_path, [case("greeting")], agent=echo_agent(tmp_path))

    done = copied_program(block.text + RUN_TESTS, cwd=tmp_path)

    assert (done.status, done.err) == (0, ""), done.err
    assert bool(done.out) == ("print(" in block.text)


def test_there_are_examples() -> None:
    assert len(EXAMPLES) > 5
