"""Installs the peers from hash-locked files, each in a separate environment under ``.peers/``."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

_HERE = Path(__file__).parent
_PEERS = _HERE / ".peers"
_REQUIREMENTS = _HERE / "requirements"
_NODE_FILES = (".npmrc", "package.json", "package-lock.json")
_INSTALL_LIMIT_S = 1_800
_NODE = (22, 22)

PYTHON_PEERS = ("bare", "pydantic-evals", "deepeval", "inspect-ai")
PEERS = (*PYTHON_PEERS, "promptfoo")


@dataclass(frozen=True, slots=True)
class Environment:
    """The environment of a peer: how to start it, and its version; or why it is missing."""

    command: tuple[str, ...] = ()
    version: str = ""
    missing: str = ""


def install(peer: str) -> Environment:
    """Create the environment of a peer if it is missing or its lock has changed.

    Errors are not raised: a peer that cannot be installed is left out with the reason.
    """
    try:
        return _install_node(peer) if peer == "promptfoo" else _install_python(peer)
    except subprocess.CalledProcessError as error:
        return Environment(missing=f"not installed: {_last_line(error.output or '') or error}")
    except (OSError, subprocess.TimeoutExpired) as error:
        return Environment(missing=f"not installed: {error}")


def _install_python(peer: str) -> Environment:
    folder, lock = _PEERS / peer, _REQUIREMENTS / f"{peer}.txt"
    python = folder / "bin" / "python"
    if not _is_current(folder, [lock]):
        shutil.rmtree(folder, ignore_errors=True)
        _call([sys.executable, "-m", "venv", str(folder)])
        pip = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        _call([*pip, "--require-hashes", "-r", str(lock)])
        _mark(folder, [lock])
    # The bare loop needs only the libraries that it calls.
    names = ("sacrebleu", "rouge-score") if peer == "bare" else (peer,)
    code = "import sys, importlib.metadata as m; print(', '.join(f'{n} {m.version(n)}' for n in sys.argv[1:]))"
    return Environment((str(python),), _call([str(python), "-c", code, *names]).strip())


def _install_node(peer: str) -> Environment:
    folder, files = _PEERS / peer, [_HERE / peer / name for name in _NODE_FILES]
    if not _is_current(folder, files):
        npm = shutil.which("npm")
        if npm is None:
            return Environment(missing="not installed: npm is missing")
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        for file in files:
            shutil.copy(file, folder)
        _call([npm, "ci", "--no-audit", "--no-fund", "--loglevel", "error"], folder)
        _mark(folder, files)
    node = _node(folder / "node_modules")
    if node is None:
        return Environment(missing=f"not installed: it needs Node {_NODE[0]}.{_NODE[1]}; set AGENTEVAL_NODE")
    package = folder / "node_modules" / peer
    about = json.loads((package / "package.json").read_text(encoding="utf-8"))
    version = f"{peer} {about['version']} (Node {_node_version(node)})"
    return Environment((node, str(package / about["bin"][peer])), version)


def _node(modules: Path) -> str | None:
    """Return the path of Node: the one in AGENTEVAL_NODE, the one installed with the peer, or the system's."""
    installed = [str(file) for file in sorted(modules.glob("node-linux-*/bin/node"))]
    for node in (os.environ.get("AGENTEVAL_NODE"), *installed, shutil.which("node")):
        if node and tuple(int(part) for part in _node_version(node).split(".")[:2]) >= _NODE:
            return node
    return None


def _node_version(node: str) -> str:
    return _call([node, "--version"]).strip().removeprefix("v")


def _call(command: list[str], folder: Path | None = None) -> str:
    done = subprocess.run(
        command,
        cwd=folder,
        check=True,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=_INSTALL_LIMIT_S,
    )
    return done.stdout


def _is_current(folder: Path, locks: list[Path]) -> bool:
    mark = folder / ".done"
    return mark.exists() and mark.read_text(encoding="utf-8") == _digest(locks)


def _mark(folder: Path, locks: list[Path]) -> None:
    (folder / ".done").write_text(_digest(locks), encoding="utf-8")


def _digest(files: list[Path]) -> str:
    return hashlib.sha256(b"\0".join(file.read_bytes() for file in files)).hexdigest()


def _last_line(text: str) -> str:
    lines = [line.strip() for line in text.splitlines() if "error" in line.lower()] or text.split("\n")
    return lines[-1][:200]
