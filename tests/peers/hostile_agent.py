"""An agent that does on request what no agent should be able to do, and answers with what it got."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from pathlib import Path

# Part of every secret of the test.
SECRET = "hushhush"
SOCKETS = ("/var/run/docker.sock", "/run/docker.sock", "/run/podman/podman.sock")
COMMANDS = "\n".join(
    [
        *("::add-mask::passed", "::set-output name=verdict::forged", "::save-state name=stage::forged"),
        *("::error title=forged::forged", "::warning::forged", "##[error]forged", "##[add-path]/forged"),
        *("  ::notice::forged", "\r::notice::forged", "::stop-commands::forged"),
    ]
)


def secrets() -> list[str]:
    """Names of variables that hold a secret."""
    return sorted(name for name, value in os.environ.items() if SECRET in value)


def processes() -> list[str]:
    """Files about other processes that hold a secret."""
    found = []
    for folder in Path("/proc").iterdir():
        for name in ("environ", "cmdline") if folder.name.isdigit() and int(folder.name) != os.getpid() else ():
            try:
                if SECRET in (folder / name).read_text(errors="replace"):
                    found.append(f"{folder.name}/{name}")
            except OSError:
                pass
        try:
            if folder.name.isdigit() and int(folder.name) in {1, os.getppid()}:
                (folder / "mem").open("rb").close()
                found.append(f"{folder.name}/mem")
        except OSError:
            pass
    return found


def sockets() -> list[str]:
    """Sockets by which the machine can be commanded."""
    found = []
    for path in SOCKETS:
        with socket.socket(socket.AF_UNIX) as client:
            try:
                client.connect(path)
                found.append(path)
            except OSError:
                pass
    return found


def commands() -> list[str]:
    """Says what the runner obeys, on both streams, and looks for the files that it reads."""
    sys.stderr.write(COMMANDS + "\n")
    found = [name for name in os.environ if name in {"GITHUB_OUTPUT", "GITHUB_ENV", "GITHUB_PATH", "GITHUB_STATE"}]
    for folder in (Path("/github/file_commands"), *(Path(name) for name in sys.argv[1:])):
        try:
            for file in folder.iterdir():
                file.write_text("verdict=forged\n")
                found.append(str(file))
        except OSError:
            pass
    return found


def children() -> list[str]:
    """Leaves programs behind: in the background, in other sessions, and without parents."""
    sleep = "sleep 4711"
    for script in (f"{sleep} &", f"setsid {sleep} &", f"(setsid sh -c '{sleep} & exec {sleep}' &) &"):
        subprocess.run(["/bin/sh", "-c", f"({script}) >/dev/null 2>&1"], check=True)
    return []


def flood() -> list[str]:
    """Writes a gigabyte."""
    block = b"x" * 2**20
    for _ in range(1024):
        sys.stdout.buffer.write(block)
    return []


def babble() -> list[str]:
    """Writes a gigabyte of errors."""
    block = (b"e" * 99 + b"\n") * 10486
    for _ in range(1024):
        sys.stderr.buffer.write(block)
    return []


def rights() -> list[str]:
    """What root can do."""
    found = [path for path in ("/etc", "/opt/agenteval", "/usr/local/bin", "/root") if os.access(path, os.W_OK)]
    try:
        os.setuid(0)
        found.append("setuid")
    except OSError:
        pass
    Path("made-by-the-agent").write_text("x")
    (Path.home() / "made-by-the-agent").write_text("x")
    return found


def key() -> str:
    """The secret that it may have."""
    return os.environ["ALLOWED_API_KEY"]


if __name__ == "__main__":
    wish = json.load(sys.stdin)["input"]
    print(json.dumps({"response": json.dumps(globals()[wish]())}))
