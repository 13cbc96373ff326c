"""What an agent leaves behind is ended with it, wherever it went."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

import pytest
from tests.support import (
    DETACHED_WITHOUT_FIRST_THREAD,
    PATIENCE_S,
    agent_spec,
    answer,
    ends,
    is_alive,
    number_in,
    request,
    started,
)

from agenteval.suite.model import AgentSpec

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="only Linux hands orphans on")

# A process of a session of its own that does not mind being asked to end; its parent ends at once.
DETACHED = """
import os, signal, sys, time

def detach(name):
    if os.fork():
        os.wait()
        return
    os.setsid()
    if os.fork():
        os._exit(0)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    with open(name, "w") as file:
        file.write(f"{os.getpid()}\\n")
    null = os.open(os.devnull, os.O_RDWR)
    for number in range(3):
        os.dup2(null, number)
    time.sleep(1000)
"""
HANGING = DETACHED + "\ndetach('detached')\nprint('done', flush=True)\ntime.sleep(1000)\n"
DONE = DETACHED + "\ndetach('detached')\nwhile not os.path.exists('detached'): time.sleep(0.01)\nprint('done')\n"
CALLED = DETACHED + "\ndef reply(request):\n    detach('detached')\n    time.sleep(1000)\n"


def program(directory: Path, code: str) -> AgentSpec:
    (directory / "program.py").write_text(code, encoding="utf-8")
    return agent_spec("command", [sys.executable, "program.py"], directory)


def python(directory: Path, code: str) -> AgentSpec:
    (directory / "agent.py").write_text(code, encoding="utf-8")
    return agent_spec("python", "agent:reply", directory, options={"interpreter": sys.executable})


def given_up(spec: AgentSpec, file: Path) -> int:
    """Ask an agent, and give up as soon as it has written a process id; the id."""

    async def give_up() -> int:
        async with asyncio.timeout(PATIENCE_S), started(spec) as agent:
            asking = asyncio.create_task(agent.session().send(request()))
            pid = await asyncio.to_thread(number_in, file)
            asking.cancel()
            with pytest.raises(asyncio.CancelledError):
                await asking
        return pid

    return asyncio.run(give_up())


@pytest.mark.parametrize("make", [lambda path: program(path, HANGING), lambda path: python(path, CALLED)])
def test_what_detached_itself_from_a_hanging_agent_ends_with_it(tmp_path: Path, make: object) -> None:
    assert callable(make)
    pid = given_up(make(tmp_path), tmp_path / "detached")
    assert ends(pid)
    # Nobody waits for a dead child of ours.
    assert not Path(f"/proc/{pid}").exists()


def test_what_a_run_inside_of_an_agent_started_ends_with_the_agent(tmp_path: Path) -> None:
    """The inner run is killed before it has ended its agent, which then is an orphan of the outer run."""
    (tmp_path / "inner.py").write_text(DETACHED + "\ndetach('detached')\ntime.sleep(1000)\n", encoding="utf-8")
    code = """
import asyncio, sys
from agenteval.core.child import Child

async def run():
    child = await Child.start([sys.executable, "inner.py"], ".", {}, lambda _: None, lambda _: None)
    await child.wait()

asyncio.run(run())
"""
    pid = given_up(program(tmp_path, code), tmp_path / "detached")
    assert ends(pid)


def test_one_program_takes_no_other_one_along(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    first, second = program(tmp_path / "a", HANGING), program(tmp_path / "b", DONE)

    async def both() -> bool:
        async with asyncio.timeout(PATIENCE_S), started(first) as hanging, started(second) as other:
            asking = asyncio.create_task(hanging.session().send(request()))
            pid = await asyncio.to_thread(number_in, tmp_path / "a" / "detached")
            assert (await other.session().send(request())).response == "done"
            lives = is_alive(pid)
            asking.cancel()
            await asyncio.gather(asking, return_exceptions=True)
            return lives

    assert asyncio.run(both())


def test_a_detached_process_whose_first_thread_has_ended_ends_too(tmp_path: Path) -> None:
    code = "while not os.path.exists('pid'): time.sleep(0.01)\nprint('done')\n"

    assert answer(program(tmp_path, DETACHED_WITHOUT_FIRST_THREAD + code)).response == "done"

    assert ends(number_in(tmp_path / "pid"))
