"""Users' code without the rights of root: what it cannot see, keep or take along.

The tests need these rights, to give them up.
"""

from __future__ import annotations

import os
import socket
import stat
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support import agent_spec, answer, eventually, is_alive, number_in

from agenteval.ci.github.action.isolation import can_open, hidden_files, owner_of, restore_ownership
from agenteval.ci.github.action.outputs import RunnerFiles
from agenteval.core.errors import AgentError
from agenteval.core.process.confinement import Owner, confined, launch
from agenteval.core.process.process_groups import free_mark, kill_marked, processes
from agenteval.core.process.run_confined import run_confined
from agenteval.suite.model import AgentSpec

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="needs the rights of root")

SOMEBODY = Owner(4321, 4322)


@pytest.fixture
def place() -> Iterator[Path]:
    """A directory that everybody can reach, unlike those of pytest."""
    with tempfile.TemporaryDirectory(prefix="agenteval-test-") as folder:
        path = Path(folder).resolve()
        path.chmod(0o711)
        yield path


@pytest.fixture
def workspace(place: Path) -> Path:
    """A directory of somebody."""
    folder = place / "workspace"
    folder.mkdir()
    os.chown(folder, SOMEBODY.uid, SOMEBODY.gid)
    return folder


@pytest.fixture
def confined_there(workspace: Path) -> Iterator[Path]:
    with confined(owner=SOMEBODY):
        yield workspace


def shell(directory: Path, script: str) -> AgentSpec:
    return agent_spec("command", ["/bin/sh", "-c", script], directory)


def test_it_has_an_owners_rights_and_no_other_group(confined_there: Path) -> None:
    said = answer(shell(confined_there, "id -u; id -g; id -G; grep -E '^(Cap|NoNew)' /proc/self/status")).response
    uid, gid, groups, *rights = said.splitlines()

    assert (uid, gid) == ("4321", "4322")
    [mark] = [int(group) for group in groups.split() if group != "4322"]
    assert mark >= 61184
    assert rights.pop() == "NoNewPrivs:\t1"
    assert {right.split()[1] for right in rights} == {"0" * 16}


def test_its_files_belong_to_the_owner(confined_there: Path) -> None:
    answer(shell(confined_there, "touch made; echo done"))

    made = (confined_there / "made").stat()
    assert (made.st_uid, made.st_gid) == (4321, 4322)


def test_it_cannot_read_the_variables_of_this_process(confined_there: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    script = f"cat /proc/{os.getpid()}/environ /proc/1/environ 2>&1 | grep -c 'Permission denied'"

    assert answer(shell(confined_there, script)).response == "2"


def test_what_leaves_group_and_session_ends_all_the_same(confined_there: Path) -> None:
    (confined_there / "detached").write_text("echo $$ >pid\nexec env -i sleep 600\n", encoding="utf-8")
    start = "setsid sh -c 'setsid sh detached &' & while [ ! -s pid ]; do sleep 0.02; done"

    answer(shell(confined_there, f"{start}; echo done"))

    pid = number_in(confined_there / "pid")
    assert eventually(lambda: not is_alive(pid))


def test_what_breeds_without_end_ends(confined_there: Path) -> None:
    # Each generation starts the next one and ends; a look at the list of processes never sees the same twice.
    breed = "import os, time\nwhile True:\n    if os.fork(): os._exit(0)\n    os.setsid(); time.sleep(0.002)"
    started = launch(("/usr/bin/python3", "-c", breed), dict(os.environ))
    mark = started.mark or 0
    child = subprocess.Popen(started.argv, cwd=confined_there)
    child.wait()
    assert any(mark in process.groups for process in processes())

    kill_marked(mark, child.pid)

    assert not any(mark in process.groups and not process.is_dead for process in processes())
    free_mark(mark)


def test_memory_has_a_limit(confined_there: Path) -> None:
    hungry = agent_spec("command", ["/usr/bin/python3", "-c", "print(len(bytearray(300 * 10**6)))"], confined_there)

    with confined(memory_mb=1000):
        assert answer(hungry).response == "300000000"
    with confined(memory_mb=100), pytest.raises(AgentError, match="MemoryError"):
        answer(hungry)


def test_processor_time_has_a_limit(confined_there: Path) -> None:
    with confined(cpu_s=1), pytest.raises(AgentError, match="SIGXCPU"):
        answer(shell(confined_there, "while :; do :; done"))


def test_git_runs_without_rights_too(confined_there: Path) -> None:
    done = run_confined(("/usr/bin/id", "-u"), confined_there, 30)

    assert done.stdout.strip() == "4321"


def test_the_owner_is_that_of_the_workspace(workspace: Path, place: Path) -> None:
    assert owner_of(str(workspace)) == SOMEBODY
    assert owner_of(str(place / "nothing")) is None
    assert owner_of("") is None

    os.chown(workspace, 4321, 0)
    assert owner_of(str(workspace)) == Owner(4321, 4321)


@pytest.mark.parametrize(("group", "instead"), [(999, 4322), (4322, 4321), (4321, 65534)])
def test_the_group_of_the_container_engine_is_avoided(
    workspace: Path, place: Path, monkeypatch: pytest.MonkeyPatch, group: int, instead: int
) -> None:
    path = place / "docker.sock"
    path.touch()
    os.chown(path, 0, group)
    monkeypatch.setattr("agenteval.ci.github.action.isolation._SOCKETS", (path,))
    os.chown(workspace, 4321, 4321 if group == 4321 else 4322)

    assert owner_of(str(workspace)) == Owner(4321, instead)


@pytest.mark.parametrize(
    ("uid", "gid", "mode", "possible"),
    [
        (0, 0, 0o660, False),
        (0, 0, 0o666, True),
        (0, 4322, 0o660, True),
        (0, 4322, 0o640, False),
        (4321, 0, 0o600, True),
        # Rights of the owner come first, even if others have more.
        (4321, 0, 0o066, False),
    ],
)
def test_who_can_open_a_socket(workspace: Path, uid: int, gid: int, mode: int, possible: bool) -> None:
    path = workspace / "docker.sock"
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(path))
        listener.listen()
        os.chown(path, uid, gid)
        path.chmod(mode)
        code = f"import socket; socket.socket(socket.AF_UNIX).connect({str(path)!r}); print('opened')"
        spec = agent_spec("command", ["/usr/bin/python3", "-c", code], workspace)

        assert can_open(SOMEBODY, path) is possible
        with confined(owner=SOMEBODY):
            if possible:
                assert answer(spec).response == "opened"
            else:
                with pytest.raises(AgentError, match="Permission denied"):
                    answer(spec)
    assert not can_open(SOMEBODY, workspace / "nothing")


def test_the_runners_files_are_not_found_and_come_back(workspace: Path, place: Path) -> None:
    files = place / "commands"
    files.mkdir()
    output = files / "output_0f4c"
    output.write_text("", encoding="utf-8")
    event = place / "event" / "event.json"
    event.parent.mkdir()
    event.write_text("{}", encoding="utf-8")
    for path in (files, output, event.parent, event):
        os.chown(path, SOMEBODY.uid, SOMEBODY.gid)
    environment = {"GITHUB_OUTPUT": str(output), "GITHUB_EVENT_PATH": str(event), "GITHUB_WORKSPACE": str(workspace)}

    def look() -> str:
        script = f"ls {files} 2>&1; echo forged 2>&1 >{event}; touch {event}.new 2>&1; cat {event}"
        with confined(owner=SOMEBODY):
            return answer(shell(workspace, script)).response

    with hidden_files(environment, SOMEBODY):
        hidden = look()
        # The runner, should this process be killed.
        assert files.stat().st_mode & stat.S_IXOTH
    after = look()

    assert "output_0f4c" not in hidden
    assert hidden.count("denied") >= 2
    assert hidden.endswith("{}")
    assert after.startswith("output_0f4c")
    assert "forged" in after
    assert files.stat().st_uid == SOMEBODY.uid


def test_the_end_of_the_step_gives_back_what_a_killed_run_took(workspace: Path, place: Path) -> None:
    files = place / "commands"
    files.mkdir()
    output = files / "output"
    output.touch()
    environment = {"GITHUB_OUTPUT": str(output), "GITHUB_WORKSPACE": str(workspace)}
    broken = hidden_files(environment, SOMEBODY)
    broken.__enter__()
    assert files.stat().st_uid == 0

    restore_ownership(environment)

    assert files.stat().st_uid == SOMEBODY.uid
    assert files.stat().st_mode & 0o777 == 0o755


def test_reports_are_handed_over_and_nothing_behind_a_link(workspace: Path, place: Path) -> None:
    files = RunnerFiles({"GITHUB_WORKSPACE": str(workspace)})
    report, elsewhere, link = workspace / "report", place / "elsewhere", workspace / "link"
    for folder in (report, elsewhere):
        (folder / "deeper").mkdir(parents=True)
        (folder / "deeper" / "file").touch()
    link.symlink_to(elsewhere)
    (report / "link").symlink_to(elsewhere)

    files.give_to_user(report)
    files.give_to_user(link)

    assert {path.lstat().st_uid for path in (report, *report.rglob("*"))} == {SOMEBODY.uid}
    assert {path.stat().st_uid for path in (elsewhere, *elsewhere.rglob("*"))} == {0}


def test_a_home_that_is_not_theirs_is_replaced(workspace: Path, place: Path) -> None:
    # In a process of its own: what hides this process would stay.
    code = f"""
import os, pathlib
from agenteval.ci.github.action.isolation import isolated
from agenteval.ci.github.action.outputs import RunnerFiles
from agenteval.core.process.run_confined import run_confined
with isolated({{"GITHUB_WORKSPACE": {str(workspace)!r}, "HOME": {str(place)!r}, "USER": "somebody"}}):
    script = 'echo "$USER"; cd; touch made; stat -c %u made; pwd'
    print(run_confined(("/bin/sh", "-euc", script), pathlib.Path({str(workspace)!r}), 30).stdout)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    user, uid, home = done.stdout.split()

    assert (user, uid) == ("somebody", "4321"), done.stderr
    assert home != str(place)
    assert not Path(home).exists()


def test_no_secret_is_left_where_the_kernel_shows_it() -> None:
    code = """
import os, pathlib, subprocess
from agenteval.ci.github.action.isolation import isolated
with isolated({}):
    shown = pathlib.Path("/proc/self/environ").read_bytes()
    assert b"hush" not in shown, shown
    assert b"MY_SETTING=seen" in shown
    assert os.environ["INPUT_GITHUB-TOKEN"] == os.environ["SOME_API_KEY"] == "hush"
    assert b"hush" not in subprocess.check_output(["/usr/bin/env"])
"""
    given = os.environ | {"INPUT_GITHUB-TOKEN": "hush", "SOME_API_KEY": "hush", "MY_SETTING": "seen"}

    subprocess.run([sys.executable, "-c", code], env=given, check=True)


def test_in_a_workspace_of_root_nothing_but_rights_is_lost(place: Path) -> None:
    code = f"""
import os, pathlib
from agenteval.ci.github.action.isolation import isolated
from agenteval.ci.github.action.outputs import RunnerFiles
from agenteval.core.process.run_confined import run_confined
with isolated({{"GITHUB_WORKSPACE": {str(place)!r}}}):
    script = f'id -u; cat /proc/{{os.getpid()}}/environ >/dev/null || echo hidden'
    print(run_confined(("/bin/sh", "-c", script), pathlib.Path({str(place)!r}), 30).stdout)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)

    assert done.stdout.split() == ["0", "hidden"], done.stderr
