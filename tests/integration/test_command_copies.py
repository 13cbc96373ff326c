"""A command in the copy of a process does what it does in a new process."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from tests.command import can_copy, copying_program, run_copy
from tests.support import PATIENCE_S, Ended, agenteval, environment, eventually, run_to_end

PROGRAMS = {
    "arguments": "import sys; print(sys.argv, sys.path[0], __name__)",
    "environment": "import os; print(sorted(os.environ.items()), os.getcwd())",
    "streams": "import os, sys; print(sys.stdin.read(), os.isatty(1), os.isatty(2), os.listdir('/proc/self/fd'))",
    "bytes": "import os; os.write(1, b'\\xff\\r\\n'); os.write(2, b'\\xfe')",
    "status": "import sys; print('a', end=''); sys.exit(7)",
    "message": "import sys; sys.exit('no')",
    "signal": "import os, signal; os.kill(os.getpid(), signal.SIGKILL)",
    "end": "import atexit; atexit.register(print, 'last')",
    "process": "import os; print(os.getsid(0), os.getpgid(0), os.getuid(), os.umask(0))",
    "child": "import subprocess; print(subprocess.run(['sh', '-c', 'echo a; exit 3']))",
}


@pytest.mark.parametrize("code", PROGRAMS.values(), ids=PROGRAMS)
def test_it_ends_like_a_new_process(tmp_path: Path, code: str) -> None:
    program = tmp_path / "program.py"
    program.write_text(code, encoding="utf-8")
    variables = environment(GIVEN="a\udcff b", EMPTY="")
    arguments = ["--option", "", "ü\udcfe"]
    copied = run_copy(str(program), arguments, tmp_path, variables, PATIENCE_S)
    expected = run_to_end([sys.executable, str(program), *arguments], tmp_path, variables)
    assert Ended(*copied) == expected
    assert run_to_end([str(copying_program(program)), *arguments], tmp_path, variables) == expected


def is_used(directory: Path) -> bool:
    """Return whether a process works in a directory."""
    for process in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if (process / "cwd").readlink() == directory:
                return True
    return False


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_reaches_it(tmp_path: Path, number: signal.Signals) -> None:
    program = tmp_path / "program.py"
    # It waits for a blocked signal: a handler may run between two steps of Python, before the program waits.
    code = f"import signal; signal.pthread_sigmask(signal.SIG_BLOCK, [{number:d}]); print('runs', flush=True)"
    program.write_text(f"{code}; exit(signal.sigtimedwait([{number:d}], 60).si_signo + 3)", encoding="utf-8")
    with subprocess.Popen([copying_program(program)], env=environment(), stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"runs\n"
        process.send_signal(number)
    assert process.returncode == number + 3


def test_one_that_does_not_end_is_killed(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text("import time; time.sleep(600)", encoding="utf-8")
    with pytest.raises(TimeoutError):
        run_copy(str(program), [], tmp_path, environment(), patience_s=0.5)
    assert eventually(lambda: not is_used(tmp_path))


def test_one_that_is_left_is_killed(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text("import time; open('runs', 'w'); time.sleep(600)", encoding="utf-8")
    with subprocess.Popen([copying_program(program)], cwd=tmp_path, env=environment()) as process:
        assert eventually((tmp_path / "runs").exists)
        process.kill()
    assert eventually(lambda: not is_used(tmp_path))


def test_modules_are_found_in_the_path(tmp_path: Path) -> None:
    (tmp_path / "site").mkdir()
    (tmp_path / "site" / "added.py").write_text("name = 'a'", encoding="utf-8")
    variables = environment(PYTHONPATH=f"site{os.pathsep}{tmp_path}")
    assert can_copy(variables)
    program = tmp_path / "program.py"
    program.write_text("import added, sys; print(added.name, sys.path)", encoding="utf-8")
    copied = run_copy(str(program), [], tmp_path, variables, PATIENCE_S)
    assert Ended(*copied) == run_to_end([sys.executable, str(program)], tmp_path, variables)


def test_what_is_read_at_the_start_of_a_process_needs_a_new_one(tmp_path: Path) -> None:
    assert can_copy(environment())
    assert not can_copy(environment(PYTHONWARNINGS="always"))
    (tmp_path / "sitecustomize.py").write_text("import os; os._exit(9)", encoding="utf-8")
    assert agenteval("--version", cwd=tmp_path, env=environment(PYTHONPATH=str(tmp_path))).status == 9
    assert agenteval("--version", cwd=tmp_path, env=environment(TEXT=os.sep)).status == 0
