"""Users' code without the rights of root: what it cannot see, keep or take along.

The tests need these rights, to give them up.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import socket
import stat
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest
from tests.support import (
    PATIENCE_S,
    agent_spec,
    answer,
    ends,
    eventually,
    number_in,
    open_folder,
    request,
    started,
)

from agenteval.agents.mcp import check_server
from agenteval.core.confine import confined, end_user_code, launch, run_confined
from agenteval.core.errors import AgentError, ConfigError, InfrastructureError, UserCodeError
from agenteval.core.files import Owner, bounded
from agenteval.core.process_groups import _living_users
from agenteval.core.secrets import COMMAND_FILES
from agenteval.core.writing import give_to_owner
from agenteval.github.isolation import can_open, files_with_tokens, hidden_files, restore_files
from agenteval.github.workspace import check_that_user_code_ended, give_back, owner_of, workspace_of_user
from agenteval.metrics.resources import GraderPool
from agenteval.run.attachments import read_file
from agenteval.run.conversation import Attachments
from agenteval.suite.model import AgentSpec, FileRef, Place
from agenteval.suite.model_tools import McpServer

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="needs the rights of root")

SOMEBODY = Owner(4321, 4322)


@pytest.fixture
def place() -> Iterator[Path]:
    """A directory that everybody can reach, unlike those of pytest."""
    with open_folder() as path:
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
    assert groups == "4322"
    assert rights.pop() == "NoNewPrivs:\t1"
    assert {right.split()[1] for right in rights} == {"0" * 16}


def test_it_cannot_read_the_variables_of_this_process(confined_there: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    script = f"cat /proc/{os.getpid()}/environ /proc/1/environ 2>&1 | grep -c 'Permission denied'"

    assert answer(shell(confined_there, script)).response == "2"


HELLO = "def reply(request):\n    return 'hello'\n"


PYTHON = {"interpreter": "/usr/bin/python3"}


@pytest.mark.parametrize("closed", [".", "workspace"])
def test_a_directory_that_its_user_cannot_enter_is_named(confined_there: Path, closed: str) -> None:
    (confined_there / "agent.py").write_text(HELLO, encoding="utf-8")
    specs = [shell(confined_there, "echo hello"), agent_spec("python", "agent:reply", confined_there, options=PYTHON)]
    folder = confined_there.parent / closed
    os.chown(folder, 0, 0)
    folder.chmod(0o700)
    for spec in specs:
        with pytest.raises(UserCodeError, match=f"user 4321 cannot enter {confined_there}; give the user the right"):
            answer(spec)


def test_a_program_that_its_user_cannot_execute_is_named(place: Path, confined_there: Path) -> None:
    private = place / "private"
    private.mkdir(mode=0o700)
    program = str(shutil.copy2("/usr/bin/python3", private / "python3"))
    specs = [
        agent_spec("command", [program], confined_there),
        agent_spec("python", "agent:reply", confined_there, options={"interpreter": program}),
    ]
    said = f"user 4321 cannot execute {program}; give the user the right"
    for spec in specs:
        with pytest.raises(UserCodeError, match=said):
            answer(spec)
    with pytest.raises(UserCodeError, match=said):
        check_server(McpServer("notes", "stdio", command=(program,)), str(confined_there))


def test_a_directory_that_its_user_cannot_read_is_named(confined_there: Path) -> None:
    (confined_there / "agent.py").write_text(HELLO, encoding="utf-8")
    os.chown(confined_there, 0, 0)
    confined_there.chmod(0o711)

    with pytest.raises(UserCodeError, match=f"user 4321 cannot read {confined_there}; give the user the right"):
        answer(agent_spec("python", "agent:reply", confined_there, options=PYTHON))
    # A program needs no names of files.
    assert answer(shell(confined_there, "echo hello")).response == "hello"


FORGER = """
import glob, os, time
def reply(request):
    found = 0
    while not found:
        for line in glob.glob("/proc/[0-9]*/cmdline"):
            process = os.path.dirname(line)
            try:
                is_worker = b"worker.py" in open(line, "rb").read() and os.getpid() != int(os.path.basename(process))
            except OSError:
                continue
            if not is_worker:
                continue
            found += 1
            for file in glob.glob(process + "/fd/*") + [process + "/mem", process + "/environ"]:
                try:
                    os.close(os.open(file, os.O_WRONLY if "/fd/" in file else os.O_RDONLY))
                except OSError:
                    continue
                return "open: " + file
    return "closed"
"""


def test_an_agent_cannot_write_the_reply_of_a_grader(confined_there: Path) -> None:
    (confined_there / "agent.py").write_text(FORGER, encoding="utf-8")
    (confined_there / "grader.py").write_text("def grade(context):\n    return 0.0\n", encoding="utf-8")
    where = Place(str(confined_there), "suite")

    async def run() -> str:
        graders = GraderPool({str(confined_there): "/usr/bin/python3"})
        graders.expect(where, "grader:grade")
        await graders.start()
        spec = agent_spec("python", "agent:reply", confined_there, options={"interpreter": "/usr/bin/python3"})
        try:
            async with asyncio.timeout(PATIENCE_S), started(spec) as agent:
                return (await agent.session().send(request())).response
        finally:
            await graders.close()

    assert asyncio.run(run()) == "closed"


STOPPER = """
import glob, os, signal
def reply(request):
    for file in glob.glob("/proc/[0-9]*/cmdline"):
        pid = int(file.split("/")[2])
        try:
            if pid != os.getpid() and b"worker.py" in open(file, "rb").read():
                os.kill(pid, signal.SIGSTOP)
        except OSError:
            pass
    return "stopped"
"""


def test_a_stopped_grader_gives_no_score_and_ends(confined_there: Path) -> None:
    (confined_there / "agent.py").write_text(STOPPER, encoding="utf-8")
    (confined_there / "grader.py").write_text("def grade(context):\n    return 1.0\n", encoding="utf-8")
    where = Place(str(confined_there), "suite")
    call = ("agenteval.grader:check", ["grader:grade"])

    async def run() -> None:
        graders = GraderPool({str(confined_there): "/usr/bin/python3"})
        graders.expect(where, "grader:grade")
        await graders.start()
        spec = agent_spec("python", "agent:reply", confined_there, options={"interpreter": "/usr/bin/python3"})
        async with asyncio.timeout(PATIENCE_S):
            async with started(spec) as agent:
                await agent.session().send(request())
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(graders.call(where, *call), 0.5)
            # Another one takes its place.
            assert await graders.call(where, *call)
            await graders.close()

    asyncio.run(run())
    assert not any(is_worker_of(path, confined_there) for path in Path("/proc").iterdir())


def is_worker_of(process: Path, directory: Path) -> bool:
    try:
        return str(directory).encode() in (process / "cmdline").read_bytes()
    except OSError:
        return False


def test_a_grader_that_hangs_at_its_import_is_given_up(confined_there: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (confined_there / "grader.py").write_text("import time\ntime.sleep(600)\n", encoding="utf-8")
    monkeypatch.setattr("agenteval.metrics.resources.IMPORT_LIMIT_S", 0.5)

    async def run() -> None:
        graders = GraderPool({str(confined_there): "/usr/bin/python3"})
        graders.expect(Place(str(confined_there), "suite"), "grader:grade")
        async with asyncio.timeout(PATIENCE_S):
            try:
                await graders.start()
            finally:
                await graders.close()

    with pytest.raises(UserCodeError, match=r"'grader:grade' cannot be used: importing it took longer than 0\.5 s"):
        asyncio.run(run())


def test_what_leaves_group_and_session_ends_all_the_same(confined_there: Path) -> None:
    (confined_there / "detached").write_text("echo $$ >pid\nexec sleep 600\n", encoding="utf-8")
    start = "setsid sh -c 'setsid sh detached &' & while [ ! -s pid ]; do sleep 0.02; done"

    answer(shell(confined_there, f"{start}; echo done"))

    pid = number_in(confined_there / "pid")
    assert ends(pid)


@pytest.fixture
def alone(confined_there: Path) -> Iterator[int]:
    """A user whom no other test has, in the image."""
    uid = 100_000 + os.getpid()
    os.chown(confined_there, uid, uid)
    with confined(owner=Owner(uid, uid)):
        yield uid
    end_user_code(uid)


@pytest.mark.parametrize("name", ["\\nUid:\\t1\\n", "\\nState:\\tZ (a", "\\xff\\xfe:"])
def test_a_name_that_looks_like_the_kernels_words_hides_no_process(
    confined_there: Path, alone: int, name: str
) -> None:
    rename = (
        f"import ctypes, time\nctypes.CDLL(None).prctl(15, b'{name}', 0, 0, 0)\nprint(flush=True)\ntime.sleep(600)"
    )
    started = launch(("/usr/bin/python3", "-c", rename), dict(os.environ), confined_there)
    with subprocess.Popen(started.argv, cwd=confined_there, stdout=subprocess.PIPE) as child:
        assert child.stdout is not None
        child.stdout.readline()
        assert end_user_code(alone)
        assert child.wait() == -signal.SIGKILL


# Each generation starts the next one and ends; a look at the list of processes never sees the same twice.
BREED = "import os, time\nwhile True:\n    if os.fork(): os._exit(0)\n    os.setsid(); time.sleep(0.002)"
# It erases its variables, leaves group and session, and is nobody's child.
HIDDEN = "import os\nif os.fork(): os._exit(0)\nos.setsid()\nos.execve('/bin/sleep', ['sleep', '600'], {})"


@pytest.mark.parametrize("code", [BREED, HIDDEN])
def test_at_the_end_of_a_run_nothing_of_the_user_is_left(confined_there: Path, alone: int, code: str) -> None:
    started = launch(("/usr/bin/python3", "-c", code), dict(os.environ), confined_there)
    # Its first process ends only when it has started the next one.
    subprocess.run(started.argv, cwd=confined_there, check=True)

    assert end_user_code(alone)

    assert alone not in _living_users()


def test_memory_has_a_limit(confined_there: Path) -> None:
    hungry = agent_spec("command", ["/usr/bin/python3", "-c", "print(len(bytearray(300 * 10**6)))"], confined_there)

    with confined(memory_mb=1000):
        assert answer(hungry).response == "300000000"
    with confined(memory_mb=100), pytest.raises(AgentError, match="MemoryError"):
        answer(hungry)


def test_processor_time_has_a_limit(confined_there: Path) -> None:
    with confined(cpu_s=1), pytest.raises(AgentError, match="SIGXCPU"):
        answer(shell(confined_there, "while :; do :; done"))


def test_the_owner_is_that_of_the_workspace(workspace: Path, place: Path) -> None:
    assert owner_of(str(workspace)) == SOMEBODY
    assert owner_of(str(place / "nothing")) is None
    assert owner_of("") is None

    os.chown(workspace, 4321, 0)
    assert owner_of(str(workspace)) == Owner(4321, 4321)


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


def test_a_guessed_path_of_a_command_file_is_of_no_use(workspace: Path, place: Path) -> None:
    files = place / "commands"
    files.mkdir()
    own = {name: files / f"{name.lower()}_0f4c" for name in COMMAND_FILES}
    kept = (*own.values(), files / "set_env_of_another_step")
    outside = place / "outside"
    for path in (*kept, outside):
        path.write_text("kept\n", encoding="utf-8")
    link = files / "link"
    link.symlink_to(outside)
    for path in (files, *kept):
        os.chown(path, SOMEBODY.uid, SOMEBODY.gid)
    environment = {**{name: str(path) for name, path in own.items()}, "GITHUB_WORKSPACE": str(workspace)}
    lines = [
        line
        for path in kept
        for line in (
            f"echo forged >>{path}",
            f"cat {path}",
            f"rm -f {path}",
            f"mv {path} {path}.old",
            f"chmod 666 {path}",
            f"ln -s {workspace} {path}",
            f"echo forged >{workspace}/new; mv -f {workspace}/new {path}",
        )
    ]
    lines += [f"ls {files}", f"mv {files} x"]
    script = "; ".join(f"({line}) 2>/dev/null && echo done: '{line}'" for line in lines)

    with hidden_files(environment, SOMEBODY), confined(owner=SOMEBODY):
        said = answer(shell(workspace, f"{script}; echo end")).response

    assert said == "end"
    for path in kept:
        assert path.read_text(encoding="utf-8") == "kept\n"
        assert (path.stat().st_uid, stat.S_IMODE(path.stat().st_mode)) == (SOMEBODY.uid, 0o644)
    assert outside.stat().st_uid == 0


HEADER = '[http "https://github.com/"]\n\textraheader = AUTHORIZATION: basic eDp5\n'


@pytest.mark.parametrize("place_of_config", [".git/config", ".git/modules/a/modules/b/config", "a/b/.git/config"])
@pytest.mark.parametrize("text", [HEADER, '[remote "origin"]\n\turl = https://x:ghp_0@github.com/o/r\n'])
def test_a_token_of_a_checkout_is_found(workspace: Path, place_of_config: str, text: str) -> None:
    config = workspace / place_of_config
    config.parent.mkdir(parents=True)
    config.write_text('[core]\n\tbare = false\n[remote "origin"]\n\turl = git@github.com:o/r\n', encoding="utf-8")
    assert files_with_tokens(workspace) == []
    config.write_text(text, encoding="utf-8")
    assert files_with_tokens(workspace) == [config]
    config.rename(workspace / "elsewhere")
    config.symlink_to(workspace / "elsewhere")
    assert files_with_tokens(workspace) == []
    config.unlink()
    os.mkfifo(config)
    assert files_with_tokens(workspace) == []


CREDENTIALS = "git-credentials-0d3f5c1e-8a41-4f0e-9d57-0a7f4c0be9b1.config"


@pytest.fixture
def temporary(workspace: Path, place: Path) -> Path:
    """RUNNER_TEMP, as the runner mounts it, with the credentials of a checkout."""
    folder = place / "temp"
    commands = folder / "_runner_file_commands"
    commands.mkdir(parents=True)
    (commands / "output_0f4c").touch()
    (folder / CREDENTIALS).write_text(HEADER, encoding="utf-8")
    (folder / "0d3f5c1e-8a41-4f0e-9d57-0a7f4c0be9b2.sh").write_text("echo ghp_0", encoding="utf-8")
    (folder / "fixtures.json").write_text("{}", encoding="utf-8")
    for path in (folder, *folder.rglob("*")):
        os.chown(path, SOMEBODY.uid, SOMEBODY.gid)
    subprocess.run(["git", "init", "--quiet", workspace], check=True)
    include = f"includeIf.gitdir:{workspace}/.git.path"
    subprocess.run(["git", "config", "--file", workspace / ".git/config", include, folder / CREDENTIALS], check=True)
    for path in (workspace / ".git", *(workspace / ".git").rglob("*")):
        os.chown(path, SOMEBODY.uid, SOMEBODY.gid)
    return folder


def variables_of(workspace: Path, temporary: Path) -> dict[str, str]:
    return {
        "GITHUB_WORKSPACE": str(workspace),
        "GITHUB_OUTPUT": str(temporary / "_runner_file_commands" / "output_0f4c"),
        "RUNNER_TEMP": str(temporary),
    }


def states(folder: Path) -> dict[str, tuple[int, int, bytes]]:
    """User, permissions and content of all files."""
    return {
        path.relative_to(folder).as_posix(): (
            path.lstat().st_uid,
            path.lstat().st_mode,
            path.read_bytes() if path.is_file() else b"",
        )
        for path in (folder, *folder.rglob("*"))
    }


ATTACK_ON_TEMP = """
cd {temp}
for move in 'mv _runner_file_commands x' 'rm -r _runner_file_commands' 'ls _runner_file_commands' \
    'cat _runner_file_commands/output_0f4c' 'cat {credentials}' 'cat *.sh' 'ls agenteval-hidden-*' \
    'mv agenteval-hidden-* x' 'chmod 777 .' 'mv {temp} {temp}.old'; do
    sh -c "$move" >/dev/null 2>&1 && echo "done: $move"
done
(cd {workspace} && git status --porcelain --untracked-files=no)
mkdir -p {credentials}/planted && touch made && rm made && cat fixtures.json && echo end
"""


def test_nothing_of_the_runner_in_its_temporary_directory_is_within_reach(workspace: Path, temporary: Path) -> None:
    before = states(temporary)
    script = ATTACK_ON_TEMP.format(temp=temporary, credentials=CREDENTIALS, workspace=workspace)
    config = ["git", "config", "--get-regexp", "extraheader"]
    home = {"HOME": str(workspace)}
    with confined(owner=SOMEBODY, variables=home):
        assert "AUTHORIZATION" in run_confined(config, workspace, 30).stdout
    with hidden_files(variables_of(workspace, temporary), SOMEBODY), confined(owner=SOMEBODY, variables=home):
        assert run_confined(config, workspace, 30).stdout == ""
        assert files_with_tokens(workspace) == []
        # It can still use the directory, and git.
        assert answer(shell(workspace, script)).response == "{}end"

    assert states(temporary) == before


def test_the_end_of_the_step_restores_the_temporary_directory(workspace: Path, temporary: Path) -> None:
    before = states(temporary)
    broken = hidden_files(variables_of(workspace, temporary), SOMEBODY)
    broken.__enter__()
    assert states(temporary) != before
    # Somebody's imitation of a hidden directory is not followed.
    imitation = temporary / "agenteval-hidden-imitation"
    imitation.mkdir()
    (imitation / "fixtures.json").write_text("forged", encoding="utf-8")
    os.chown(imitation, SOMEBODY.uid, SOMEBODY.gid)

    restore_files(variables_of(workspace, temporary))

    shutil.rmtree(imitation)
    assert states(temporary) == before


def test_reports_are_handed_over_and_nothing_behind_a_link(workspace: Path, place: Path) -> None:
    report, elsewhere, link = workspace / "report", place / "elsewhere", workspace / "link"
    for folder in (report, elsewhere):
        (folder / "deeper").mkdir(parents=True)
        (folder / "deeper" / "file").touch()
    link.symlink_to(elsewhere)
    (report / "link").symlink_to(elsewhere)

    with bounded([workspace], Owner(SOMEBODY.uid, SOMEBODY.gid)):
        give_to_owner(report)
        give_to_owner(link)

    assert {path.lstat().st_uid for path in (report, *report.rglob("*"))} == {SOMEBODY.uid}
    assert {path.stat().st_uid for path in (elsewhere, *elsewhere.rglob("*"))} == {0}


def test_a_home_that_is_not_theirs_is_replaced(workspace: Path, place: Path) -> None:
    # In a process of its own: what hides this process would stay.
    code = f"""
import os, pathlib
from agenteval.github.isolation import isolated
from agenteval.github.runner import RunnerFiles
from agenteval.core.confine import run_confined
from agenteval.core.process_groups import _living_users
from agenteval.core.secrets import COMMAND_FILES
with isolated({{"GITHUB_WORKSPACE": {str(workspace)!r}, "HOME": {str(place)!r}, "USER": "somebody"}}):
    script = 'echo "$USER"; cd; touch made; stat -c %u made; pwd'
    print(run_confined(("/bin/sh", "-euc", script), pathlib.Path({str(workspace)!r}), 30).stdout)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    user, uid, home = done.stdout.split()

    assert (user, uid) == ("somebody", "4321"), done.stderr
    assert home != str(place)
    assert not Path(home).exists()


def test_what_this_process_reads_at_home_is_out_of_reach(workspace: Path, place: Path) -> None:
    code = f"""
import os, pathlib
from agenteval.github.isolation import isolated
from agenteval.core.llm.gateway import default_directory, files_directory
from agenteval.core.confine import run_confined
given = dict(os.environ)
with isolated({{**given, "GITHUB_WORKSPACE": {str(workspace)!r}}}):
    places = [pathlib.Path.home(), default_directory(), files_directory()]
    tries = [f"(ls {{path}} || mkdir -p {{path}}/made) >&2 || echo no" for path in places]
    script = "; ".join(['echo "$XDG_CACHE_HOME"', *tries])
    print(run_confined(("/bin/sh", "-uc", script), pathlib.Path({str(workspace)!r}), 30).stdout)
    print(pathlib.Path.home().stat().st_uid, oct(pathlib.Path.home().stat().st_mode))
assert os.environ == given and not places[0].exists()
"""
    home = place / "home"
    home.mkdir()
    os.chown(home, SOMEBODY.uid, SOMEBODY.gid)
    given = os.environ | {"HOME": str(home), "XDG_CACHE_HOME": str(home / "cache"), "TMPDIR": str(home)}
    given.pop("AGENTEVAL_CACHE", None)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, env=given)

    assert done.stdout.split() == [str(home / "cache"), "no", "no", "no", "0", "0o40700"], done.stderr


def test_downloads_are_read_and_not_changed(confined_there: Path, place: Path) -> None:
    class Files(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.end_headers()
            self.wfile.write(b"From nine to six")

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base class's name
            """Tests are quiet."""

    async def attached(url: str) -> str:
        async with Attachments(place / "kept") as attachments:
            path = (await attachments.get([FileRef(name="hours", kind="text", url=url)]))[0][0]
            spec = shell(
                confined_there, f'cat {path}; echo; (echo forged >{path} || mv "$(dirname {path})" . || true) 2>&1'
            )
            return (await asyncio.to_thread(answer, spec)).response

    web = HTTPServer(("127.0.0.1", 0), Files)
    with ThreadPoolExecutor(1) as threads:
        threads.submit(web.handle_request)
        text, *errors = asyncio.run(attached(f"http://127.0.0.1:{web.server_port}/hours.txt")).splitlines()
    web.server_close()

    assert text == "From nine to six"
    assert len(errors) == 2
    assert all("Permission denied" in error for error in errors)


def test_roots_workspace_is_lent_to_nobody_else_and_comes_back(place: Path) -> None:
    workspace, store = place / "workspace", place / "store"
    (workspace / "deep").mkdir(parents=True)
    store.write_text("shared", encoding="utf-8")
    (workspace / "deep" / "linked").hardlink_to(store)
    (workspace / "deep" / "file").write_text("", encoding="utf-8")
    (workspace / "link").symlink_to(store)
    (workspace / "theirs").touch()
    os.chown(workspace / "theirs", SOMEBODY.uid, SOMEBODY.gid)
    before = states(workspace)
    environment = {"GITHUB_WORKSPACE": str(workspace)}

    with workspace_of_user(environment):
        owner = owner_of(str(workspace))
        assert owner is not None
        assert owner.uid not in {0, SOMEBODY.uid}
        uids = {path.name: path.lstat().st_uid for path in (workspace, *workspace.rglob("*"))}
        # A file of root with another name elsewhere is not given away.
        assert uids == dict.fromkeys(("workspace", "deep", "file", "link"), owner.uid) | {
            "linked": 0,
            "theirs": SOMEBODY.uid,
        }
        with confined(owner=owner):
            answer(shell(workspace, "touch made; ln made made-too; chmod u+s made; echo done"))
    assert {name: (workspace / name).stat().st_uid for name in ("made", "made-too")} == {"made": 0, "made-too": 0}
    assert not (workspace / "made").stat().st_mode & stat.S_ISUID
    for name in ("made", "made-too"):
        (workspace / name).unlink()
    assert states(workspace) == before

    killed = workspace_of_user(environment)
    killed.__enter__()
    give_back(environment)
    assert states(workspace) == before


def test_a_workspace_that_stays_roots_is_refused(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise PermissionError(1, "Operation not permitted")

    # As a network file system does.
    monkeypatch.setattr("os.fchown", refuse)

    with pytest.raises(InfrastructureError, match="belongs to root, and its owner cannot be changed"):
        workspace_of_user({"GITHUB_WORKSPACE": str(place)}).__enter__()


@pytest.mark.parametrize("named", ["", "/", "/there/is/nothing", "/etc/passwd"])
def test_without_a_workspace_nothing_runs(named: str) -> None:
    with pytest.raises(ConfigError, match=f"GITHUB_WORKSPACE is '{named}', not the directory of a checkout"):
        workspace_of_user({"GITHUB_ACTIONS": "true", "GITHUB_WORKSPACE": named}).__enter__()


def test_results_wait_for_programs_that_do_not_end(
    confined_there: Path, alone: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    started = launch(("/bin/sleep", "600"), dict(os.environ), confined_there)
    with subprocess.Popen(started.argv, cwd=confined_there) as child:
        assert eventually(lambda: alone in _living_users())
        # Outside of the container, others may run as the user.
        check_that_user_code_ended(alone)
        assert child.poll() is None
        monkeypatch.setattr("agenteval.github.workspace.is_in_image", lambda _: True)
        monkeypatch.setattr("agenteval.run.base_commit.CONTROL_USERS", ())
        # No time to see that it has ended, as if the kernel did not end it.
        monkeypatch.setattr("agenteval.core.process_groups._LIMIT_S", -1.0)
        monkeypatch.setattr("agenteval.core.process_groups._KILL", ("/bin/true",))
        with pytest.raises(InfrastructureError, match="cannot be ended; the results are not written"):
            check_that_user_code_ended(alone)
        monkeypatch.setattr("agenteval.core.process_groups._KILL", ("/bin/sh", "-c", "kill -KILL -1"))
        monkeypatch.setattr("agenteval.core.process_groups._LIMIT_S", PATIENCE_S)
        check_that_user_code_ended(alone)
        assert child.wait() == -signal.SIGKILL


def test_programs_that_read_images_run_as_user_code(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("tesseract", "exiftool"):
        (place / name).write_text(f"#!/bin/sh\necho {name} $(/usr/bin/id -u) ${{GITHUB_TOKEN:-none}}; /bin/cat\n")
        (place / name).chmod(0o755)
    image = place / "image.png"
    image.write_bytes(b"the image")
    image.chmod(0o600)
    monkeypatch.setenv("PATH", str(place))
    monkeypatch.setenv("GITHUB_TOKEN", "ghs_0123456789")
    monkeypatch.setenv("CI", "true")
    with confined(owner=SOMEBODY):
        text = read_file(FileRef(name="image", kind="image", path=str(image)), image)
    assert text == f"tesseract {SOMEBODY.uid} none\nthe image"


def test_deeply_nested_folders_do_not_stop_the_handing_over(workspace: Path) -> None:
    report = workspace / "report"
    report.mkdir()
    inner = os.open(report, os.O_RDONLY)
    for _ in range(1500):
        os.mkdir("d", dir_fd=inner)
        outer, inner = inner, os.open("d", os.O_RDONLY, dir_fd=inner)
        os.close(outer)
    os.close(inner)
    (report / "z").touch()
    with bounded([workspace], Owner(SOMEBODY.uid, SOMEBODY.gid)):
        give_to_owner(report)
    assert [(report / name).stat().st_uid for name in ("", "d", "d/d", "z")] == [SOMEBODY.uid] * 4
    subprocess.run(["rm", "-rf", report], check=True)
