"""Runs the composite action of native/ as GitHub's runner does: its commands, in the environment of a bare user."""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml
from tests.peers.action_step import values_in
from tests.support import PATIENCE_S, PYTHON, ROOT

ACTION: dict[str, Any] = yaml.safe_load((ROOT / "native" / "action.yml").read_text(encoding="utf-8"))
#: The user of a runner; programs of root's home directory would be of no use to another user.
RUNNER = 4321
#: Where the programs of the system are, and those of them that a machine has only if a test installs them.
_SYSTEM = (Path("/usr/local/bin"), Path("/usr/bin"), Path("/bin"))
_OPTIONAL = {"node", "uv", "uvx"}
_BASH = ("bash", "--noprofile", "--norc", "-e", "-o", "pipefail")
_EXPRESSION = re.compile(r"\$\{\{ (.*?) \}\}")
_PLAIN = re.compile(r"(?m)^([\w-]+)=(.*)$")


def build_wheel(folder: Path) -> Path:
    """Build the wheel of a release."""
    command = [sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", str(folder)]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    (wheel,) = folder.glob("*.whl")
    return wheel


@dataclass
class NativeRunner:
    """A runner's machine, whose checkout of the action is of a release.

    The lock files of its checkout are empty: the dependencies are those of this environment, so that nothing is
    downloaded.

    Attributes:
        home: where everything is.
        wheel: the wheel of the release.
        root: whether the steps run as root, as in a job with `container:`.
    """

    home: Path
    wheel: Path
    root: bool = False
    steps: dict[str, dict[str, str]] = field(default_factory=dict)
    groups: list[int] = field(default_factory=list)

    @property
    def workspace(self) -> Path:
        return self.home / "workspace"

    @property
    def temporary(self) -> Path:
        return self.home / "temp"

    @property
    def bin(self) -> Path:
        return self.home / "bin"

    def create(self, programs: Sequence[str]) -> None:
        """Make the machine, with these programs on its PATH beside the system's."""
        for folder in ("workspace", "temp", "bin", "home", "checkout/requirements", "files"):
            (self.home / folder).mkdir(parents=True)
        shutil.copytree(ROOT / "native", self.home / "checkout" / "native")
        for name in ("build.lock", "runtime.lock"):
            (self.home / "checkout" / "requirements" / name).touch()
        digest = hashlib.sha256(self.wheel.read_bytes()).hexdigest()
        version = self.wheel.name.split("-")[1]
        lock = f"agenteval-action=={version} --hash=sha256:{digest}\n"
        (self.home / "checkout" / "native" / "release.lock").write_text(lock, encoding="utf-8")
        (self.bin / "python3").symlink_to(PYTHON)
        for name in programs:
            found = shutil.which(name, path=f"{Path(sys.executable).parent}:{os.environ['PATH']}")
            assert found, f"{name} is not installed"
            (self.bin / name).symlink_to(found)
        for program in (program for folder in _SYSTEM for program in folder.iterdir()):
            link = self.bin / program.name
            if program.name not in _OPTIONAL and not link.is_symlink():
                link.symlink_to(program)

    def run(self, inputs: Mapping[str, str], variables: Mapping[str, str]) -> tuple[bool, str, dict[str, str]]:
        """Run the steps; return whether all succeeded, the log, and the outputs of the action."""
        self._give_away()
        self.steps = {}
        known = {"toJSON(matrix)": "null", "toJSON(strategy)": "null"}
        given = {name: self._filled(entry["default"], known) for name, entry in ACTION["inputs"].items()} | {**inputs}
        failed, log = False, ""
        for step in ACTION["runs"]["steps"]:
            values = {f"inputs.{name}": value for name, value in given.items()} | {"github.token": ""}
            if "uses" in step:
                # The cache is empty, and nothing is saved.
                continue
            if not self._is_due(step.get("if", ""), failed):
                continue
            done = self._step(step, values, variables)
            log += done.stdout
            failed = failed or done.returncode != 0
            outcome = {"outcome": "failure" if done.returncode else "success"}
            self.steps[step.get("id", step["name"])] = self._outputs() | outcome
            if step.get("id") == "install":
                self._add_dependencies()
        outputs = {name: self._filled(entry["value"], {}) for name, entry in ACTION["outputs"].items()}
        return not failed, log, outputs

    def earlier(self, script: str, variables: Mapping[str, str]) -> str:
        """Run an earlier step of the job, whose processes stay until :meth:`end`; return its output."""
        self._give_away()
        log = self.home / "files" / "earlier.log"
        with log.open("w") as output:
            process = subprocess.Popen(
                [*self._user(), *_BASH, "-c", script],
                cwd=self.workspace,
                env=self._environment(variables),
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
            self.groups.append(process.pid)
            status = process.wait(PATIENCE_S)
        text = log.read_text(encoding="utf-8")
        assert status == 0, text
        return text

    def end(self) -> None:
        """End the processes of earlier steps, as the end of a job does."""
        for group in self.groups:
            with suppress(ProcessLookupError):
                os.killpg(group, signal.SIGKILL)

    def _give_away(self) -> None:
        if not self.root and os.geteuid() == 0:
            for path in (self.home, *self.home.rglob("*")):
                os.chown(path, RUNNER, RUNNER, follow_symlinks=False)

    def _user(self) -> tuple[str, ...]:
        if self.root or os.geteuid() != 0:
            return ()
        return ("setpriv", f"--reuid={RUNNER}", f"--regid={RUNNER}", "--clear-groups")

    def _environment(self, variables: Mapping[str, str]) -> dict[str, str]:
        return {
            "PATH": str(self.bin),
            "HOME": str(self.home / "home"),
            "RUNNER_OS": "Linux",
            "RUNNER_TEMP": str(self.temporary),
            "GITHUB_ACTIONS": "true",
            "GITHUB_ACTION_PATH": str(self.home / "checkout" / "native"),
            "GITHUB_WORKSPACE": str(self.workspace),
            **variables,
        }

    def _is_due(self, condition: str, failed: bool) -> bool:
        if not condition:
            return not failed
        checks = [part.strip() for part in condition.removeprefix("always()").strip().removeprefix("&&").split("&&")]
        return all(self._holds(check) for check in checks)

    def _holds(self, check: str) -> bool:
        name, sign, value = check.split()
        return (self._value(name, {}) == value.strip("'")) is (sign == "==")

    def _value(self, name: str, values: Mapping[str, str]) -> str:
        _, _, rest = name.partition("steps.")
        step, _, key = rest.partition(".")
        return values.get(name, self.steps.get(step, {}).get(key.removeprefix("outputs."), ""))

    def _filled(self, text: str, values: Mapping[str, str]) -> str:
        def value(match: re.Match[str]) -> str:
            name, _, otherwise = match[1].partition(" || ")
            return self._value(name, values) or otherwise.strip("'")

        return _EXPRESSION.sub(value, text)

    def _step(
        self, step: Mapping[str, Any], values: Mapping[str, str], variables: Mapping[str, str]
    ) -> subprocess.CompletedProcess[str]:
        script = self.home / "files" / "script.sh"
        script.write_text(step["run"], encoding="utf-8")
        files = {}
        for name in ("GITHUB_OUTPUT", "GITHUB_ENV", "GITHUB_PATH", "GITHUB_STATE", "GITHUB_STEP_SUMMARY"):
            path = self.home / "files" / name
            path.write_text("", encoding="utf-8")
            files[name] = str(path)
            if not self.root and os.geteuid() == 0:
                os.chown(path, RUNNER, RUNNER)
        script.chmod(0o755)
        own = {name: self._filled(value, values) for name, value in step.get("env", {}).items()}
        offline = {"PIP_NO_INDEX": "1", "UV_OFFLINE": "1"}
        offline |= {f"{tool}_FIND_LINKS": str(self.wheel.parent) for tool in ("PIP", "UV")}
        return subprocess.run(
            [*self._user(), *_BASH, str(script)],
            cwd=self.workspace,
            env=self._environment({**offline, **files, **variables, **own}),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=4 * PATIENCE_S,
            check=False,
        )

    def _outputs(self) -> dict[str, str]:
        file = self.home / "files" / "GITHUB_OUTPUT"
        return dict(_PLAIN.findall(file.read_text(encoding="utf-8"))) | values_in(file)

    def _add_dependencies(self) -> None:
        (packages,) = (self.temporary / "agenteval" / "lib").glob("python3*/site-packages")
        ours = Path(yaml.__file__).parents[1]
        (packages / "dependencies.pth").write_text(f"{ours}\n", encoding="utf-8")
