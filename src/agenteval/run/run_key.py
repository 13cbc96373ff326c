"""Fingerprint of a run's inputs; a run can be resumed only if it is unchanged."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel

from agenteval.core.files import LARGEST_RECORDING, below, open_regular
from agenteval.core.version import __version__
from agenteval.results.store import RESULTS_FILE
from agenteval.suite.agent_definitions import MODEL_AGENT, HolodeckProject, model_agent_of
from agenteval.suite.agents import REPLAY
from agenteval.suite.cases import is_folder

if TYPE_CHECKING:
    from agenteval.core.redact import Redactor
    from agenteval.run.plan import Plan, PlannedCase
    from agenteval.suite.model import AgentSpec, MetricConfig, Suite
    from agenteval.suite.model_tools import Tool


# ``-m NAME``, ``-mNAME``, ``-Im NAME``
_RUN_MODULE = re.compile(r"-[A-Za-z]*?m(.*)")
_IN_FILE = re.compile(r"(.+\.py):[^\W\d][\w.]*")
_IN_MODULE = re.compile(r"([^\W\d][\w.]*):[^\W\d][\w.]*")


def files_of_agent(spec: AgentSpec) -> Iterator[Path]:
    """Yield the files that an agent's definition may name, which need not exist."""
    if isinstance(spec.target, tuple):
        yield from _command(spec.directory, spec.target)
    elif spec.kind == REPLAY:
        yield from files_of_recording(Path(spec.target))
    elif spec.kind == MODEL_AGENT:
        for tool in model_agent_of(spec).tools:
            yield from _tool(spec.directory, tool)
    elif isinstance(described := spec.options.get("agent"), HolodeckProject):
        yield from _project(described)
    else:
        yield from _code(spec.directory, spec.target)


def files_of_metric(metric: MetricConfig) -> Iterator[Path]:
    """Yield the files of code that a metric's options may name, which need not exist."""
    for value in metric.options.values():
        if isinstance(value, str):
            yield from _code(metric.where.directory, value)


def _project(project: HolodeckProject) -> Iterator[Path]:
    tools = project.agent.get("tools") or []
    keys = ("file", "source", "env_file")
    named = [project.agent.get("instructions"), *tools]
    for entry in named:
        for key in keys:
            if isinstance(entry, dict) and isinstance(entry.get(key), str):
                path = Path(project.directory, entry[key])
                files = sorted(Path(folder, name) for folder, _, names in below(path) for name in names)
                yield from files if path.is_dir() else [path]


def _command(directory: str, command: Sequence[str]) -> Iterator[Path]:
    for part, following in pairwise((*command, "")):
        path = Path(directory, part)
        # Python runs the second one if the first one is a directory.
        yield from (path, path / "__main__.py")
        if option := _RUN_MODULE.fullmatch(part):
            yield from _module(directory, option[1] or following)


def _tool(directory: str, tool: Tool) -> Iterator[Path]:
    # Imported here: few agents have tools.
    from agenteval.suite.model_tools import FunctionTool, McpServer

    if isinstance(tool, FunctionTool):
        yield Path(tool.file)
    elif isinstance(tool, McpServer):
        yield from _command(directory, tool.command)


def files_of_recording(path: Path) -> Iterator[Path]:
    """Yield the files that a recording may consist of: a file, or of a folder those of which the first is read."""
    if not is_folder(path):
        yield path
        return
    from agenteval.results.importers.detect import FILES_IN_FOLDER

    yield from (path / name for name in (RESULTS_FILE, *FILES_IN_FOLDER))


def _code(directory: str, reference: str) -> Iterator[Path]:
    if in_file := _IN_FILE.fullmatch(reference):
        yield Path(directory, in_file[1])
    elif in_module := _IN_MODULE.fullmatch(reference):
        yield from _module(directory, in_module[1])


def _module(directory: str, name: str) -> Iterator[Path]:
    path = Path(*name.split("."))
    if not path.name:
        return
    files = (path.with_name(f"{path.name}.py"), path / "__init__.py", path / "__main__.py")
    yield from (Path(directory, folder, file) for folder in ("", "src") for file in files)


_ENCODER = json.JSONEncoder(sort_keys=True, ensure_ascii=False)
# Positions of definitions in files, and directories, do not change a run.
_PLACES = frozenset({"where", "line", "directory"})
_AT_ONCE = 100
# A program that an agent starts is hashed up to this size, in bytes.
_LARGEST_PROGRAM = 16 * 2**20


def conditions(plan: Plan) -> dict[str, str]:
    """Return the inputs of a run that shape its results; see ``RunKey``."""
    key = RunKey(plan)
    for item in plan.cases:
        key.add(item)
    return key.conditions()


class RunKey:
    """The inputs of a run that shape its results. Cases are added one by one, and are not kept in memory.

    These are the selected cases with their files, the metrics, the agents, the models that judge, the number of
    iterations, the seed, the time limit of a case, and the version of agenteval. Metrics and agents count with their
    definitions and with the files that these name: programs, Python files and modules, and recordings.

    These are not among them: what such a file imports, installed packages, the environment, and downloads, because
    they are unknown before they are used; limits of the whole run and of concurrency, because they decide when
    results come, not which.
    """

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self._suites: dict[str, _SuiteKey] = {}

    def add(self, item: PlannedCase) -> None:
        """Add a case of the plan."""
        path = item.suite.path
        if path not in self._suites:
            self._suites[path] = _SuiteKey(item.suite, self._plan.redact)
        self._suites[path].add(item)

    def conditions(self) -> dict[str, str]:
        """Return the inputs by name: each value, or the hash of it."""
        plan = self._plan
        if plan.conditions is not None:
            return {"the version of agenteval": __version__, **plan.conditions}
        found = {"the version of agenteval": __version__}
        for path, key in self._suites.items():
            found[f"the selection of cases of {path}"] = key.selection
            found[f"the suite {path}"] = key.suite
            found[f"the number of iterations of {path}"] = ", ".join(map(str, sorted(set(key.iterations))))
            found[f"the agent of {path}"] = key.agent
            suite = plan.suites[path]
            judge, embedder = suite.catalog.resources.judge, suite.catalog.resources.embedder
            found[f"the judge of {path}"] = _label(judge)
            found[f"the configuration of the judge of {path}"] = _digest(judge, plan.redact)
            found[f"the embedding model of {path}"] = _label(embedder)
            found[f"the configuration of the embedding model of {path}"] = _digest(embedder, plan.redact)
            found[f"case_timeout of {path}"] = _number(suite.case_s)
        return found | {"--seed": _number(plan.seed), "--baseline": plan.redact(plan.baseline) or "none"}


def changes(before: Mapping[str, str], now: Mapping[str, str]) -> Iterator[str]:
    """Yield a phrase for each input that has changed."""
    for name in dict.fromkeys((*before, *now)):
        old, new = before.get(name, "none"), now.get(name, "none")
        if old != new:
            yield f"{name} has changed" if _is_digest(old) or _is_digest(new) else f"{name} was {old}, now {new}"


class _SuiteKey:
    def __init__(self, suite: Suite, redact: Redactor) -> None:
        self.iterations: set[int] = set()
        self._suite = suite
        self._redact = redact
        self._ids, self._asked = _Hash(redact), _Hash(redact)
        # Most cases share their metrics and their agent, so each object is hashed once.
        self._metrics: dict[int, MetricConfig] = {}
        self._agents: dict[int, AgentSpec] = {}

    def add(self, item: PlannedCase) -> None:
        case = item.case
        self._ids.add(case.id)
        # The question of a trace is in its file, whose hash belongs to the agent.
        if item.recorded is None:
            refusals = [turn.exception_is_answer for turn in case.turns]
            self._asked.add([case.fingerprint, case.name, case.tags, case.strict, refusals])
        for metric in case.all_metrics:
            self._metrics[id(metric)] = metric
        self._agents[id(item.agent)] = item.agent
        self.iterations.add(item.iterations)

    @property
    def selection(self) -> str:
        return self._ids.text

    @property
    def suite(self) -> str:
        suite = self._suite
        metrics = [_metric(metric) for metric in self._metrics.values()]
        measured = [metrics, [suite.aggregate, suite.evaluation, suite.retrieval_tools]]
        return _digest([self._asked.text, *measured], self._redact)

    @property
    def agent(self) -> str:
        return _digest([[spec, _program(spec)] for spec in self._agents.values()], self._redact)


def _metric(metric: MetricConfig) -> list[Any]:
    return [metric, [_file(path) for path in files_of_metric(metric)]]


def _program(spec: AgentSpec) -> list[str]:
    largest = LARGEST_RECORDING if spec.kind == REPLAY else _LARGEST_PROGRAM
    return [_file(path, largest) for path in files_of_agent(spec)]


def _file(path: Path, largest: int = _LARGEST_PROGRAM) -> str:
    try:
        with open_regular(path, limit=largest) as content:
            return hashlib.file_digest(content, "sha256").hexdigest()
    except (OSError, ValueError):
        # An argument may be invalid as a path.
        return ""


def _label(model: Any) -> str:
    return "none" if model is None else str(model.label)


def _number(value: float | None) -> str:
    return "none" if value is None else f"{value:g}" if isinstance(value, float) else str(value)


def _digest(value: Any, redact: Redactor) -> str:
    found = _Hash(redact)
    found.add(_plain(value))
    return found.text


class _Hash:
    def __init__(self, redact: Redactor) -> None:
        self._redact = redact
        self._digest = hashlib.sha256()
        self._lines: list[str] = []

    def add(self, value: Any) -> None:
        self._lines.append(_ENCODER.encode(value))
        if len(self._lines) == _AT_ONCE:
            self._flush()

    def _flush(self) -> None:
        # One search for secrets is faster than many.
        text = self._redact("\n".join(self._lines))
        self._digest.update(f"{text}\n".encode("utf-8", "surrogatepass"))
        self._lines.clear()

    @property
    def text(self) -> str:
        self._flush()
        return f"#{self._digest.hexdigest()[:16]}"


def _is_digest(text: str) -> bool:
    return text.startswith("#")


def _plain(value: Any) -> Any:
    """Return a value as JSON that is identical in every process."""
    if isinstance(value, str | int | float | bool | None):
        return value
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        named = ((item.name, getattr(value, item.name)) for item in dataclasses.fields(value))
        return [type(value).__name__, {name: _plain(item) for name, item in named if name not in _PLACES}]
    if isinstance(value, BaseModel):
        return _plain(value.model_dump())
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, set | frozenset):
        return sorted((_plain(item) for item in value), key=str)
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return str(value)
