"""Under which conditions a run runs: what must be the same for what it left to be finished later."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import math
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel

from agenteval.core.version import __version__
from agenteval.results.store import RESULTS_FILE

if TYPE_CHECKING:
    from agenteval.core.text.redact import Redactor
    from agenteval.run.plan import Plan, PlannedCase
    from agenteval.suite.model import AgentSpec, MetricConfig, Suite

_ENCODER = json.JSONEncoder(sort_keys=True, ensure_ascii=False)
_CALLABLE = re.compile(r"([A-Za-z_][\w.]*):[A-Za-z_][\w.]*")
# Where things stand, in their files or on this machine, makes them no others.
_PLACES = frozenset({"where", "line", "directory"})
# A program that an agent starts is looked into up to that size, in bytes.
_LARGEST_PROGRAM = 16 * 2**20


def conditions(plan: Plan) -> dict[str, str]:
    """Return what shapes the results of a run besides the answers; see ``RunKey``."""
    key = RunKey(plan)
    for item in plan.cases:
        key.add(item)
    return key.conditions()


class RunKey:
    """What shapes the results of a run besides the answers; cases are added one by one, and not kept.

    Of an agent these are its definition and the file that it names, a program, a Python module or a recording; not
    what that file imports. Limits of time, money and concurrency are not among them, as they decide when results
    come, not which.

    Args:
        plan: of the run.
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
        """Return the name of each condition with its value, or the hash of its value."""
        plan, resources = self._plan, self._plan.catalog.resources
        found = {"the version of agenteval": __version__}
        for path, key in self._suites.items():
            found[f"the selection of cases of {path}"] = key.selection
            found[f"the suite {path}"] = key.suite
            found[f"the number of iterations of {path}"] = _numbers(key.iterations)
            found[f"the agent of {path}"] = key.agent
        return found | {
            "the judge": _label(resources.judge),
            "the embedding model": _label(resources.embedder),
            "--seed": _number(resources.seed),
            "case_timeout": _number(plan.limits.case_s),
        }


def changes(before: Mapping[str, str], now: Mapping[str, str]) -> Iterator[str]:
    """What is not the same any more, in words."""
    for name in dict.fromkeys((*before, *now)):
        old, new = before.get(name, "none"), now.get(name, "none")
        if old != new:
            yield f"{name} is not the same" if _is_digest(old) or _is_digest(new) else f"{name} was {old}, now {new}"


class _SuiteKey:
    """What must be the same of one suite; cases are added one by one, and not kept."""

    def __init__(self, suite: Suite, redact: Redactor) -> None:
        self.iterations: set[int] = set()
        self._suite = suite
        self._redact = redact
        self._ids, self._asked = _Hash(redact), _Hash(redact)
        # Most cases share their metrics and their agent.
        self._metrics: dict[int, MetricConfig] = {}
        self._agents: dict[int, AgentSpec] = {}

    def add(self, item: PlannedCase) -> None:
        """Add a case of the suite."""
        case = item.case
        self._ids.add(case.id)
        self._asked.add([case.fingerprint, case.name, case.tags, case.strict])
        self._metrics.update((id(metric), metric) for metric in case.all_metrics)
        self._agents[id(item.agent)] = item.agent
        self.iterations.add(item.iterations)

    @property
    def selection(self) -> str:
        """The hash of the cases that run."""
        return self._ids.text

    @property
    def suite(self) -> str:
        """The hash of what the cases ask and what measures them."""
        suite = self._suite
        metrics = [_metric(metric) for metric in self._metrics.values()]
        measured = [metrics, [suite.aggregate, suite.evaluation, suite.retrieval_tools]]
        return _digest([self._asked.text, *measured], self._redact)

    @property
    def agent(self) -> str:
        """The hash of the agents that answer."""
        return _digest([[spec, _program(spec)] for spec in self._agents.values()], self._redact)


def _metric(metric: MetricConfig) -> list[Any]:
    code = [_module(metric.where.directory, value) for value in metric.options.values() if isinstance(value, str)]
    return [metric, code]


def _program(spec: AgentSpec) -> list[str]:
    """Hashes of the files that an agent's definition names."""
    if isinstance(spec.target, tuple):
        return [_file(Path(spec.directory, part)) for part in spec.target]
    if spec.kind == "replay":
        recording = Path(spec.target)
        return [_file(recording / RESULTS_FILE if recording.is_dir() else recording, math.inf)]
    return [_module(spec.directory, spec.target)]


def _module(directory: str, reference: str) -> str:
    """The hash of a Python module that ``module:callable`` names, if it lies in a directory."""
    match = _CALLABLE.fullmatch(reference)
    if match is None:
        return ""
    path = Path(directory, *match[1].split("."))
    return _file(path.with_name(f"{path.name}.py")) or _file(path / "__init__.py")


def _file(path: Path, largest: float = _LARGEST_PROGRAM) -> str:
    """Return the hash of a file; nothing if it cannot be read or is larger, in bytes."""
    try:
        if not path.is_file() or path.stat().st_size > largest:
            return ""
        with path.open("rb") as content:
            return hashlib.file_digest(content, "sha256").hexdigest()
    except (OSError, ValueError):
        # Not every argument can be a path.
        return ""


def _label(model: Any) -> str:
    return "none" if model is None else str(model.label)


def _number(value: float | None) -> str:
    return "none" if value is None else f"{value:g}" if isinstance(value, float) else str(value)


def _numbers(values: Iterable[int]) -> str:
    return ", ".join(map(str, sorted(set(values))))


def _digest(value: Any, redact: Redactor) -> str:
    """Return the hash of our data."""
    found = _Hash(redact)
    found.add(_plain(value))
    return found.text


class _Hash:
    """The hash of JSON values. Secrets are masked first: a new key makes no new agent, and no hash reveals one."""

    def __init__(self, redact: Redactor) -> None:
        self._redact = redact
        self._digest = hashlib.sha256()

    def add(self, value: Any) -> None:
        """Add a value."""
        text = self._redact(_ENCODER.encode(value))
        self._digest.update(f"{text}\n".encode("utf-8", "surrogatepass"))

    @property
    def text(self) -> str:
        """The hash so far, as it is written in the journal."""
        return f"#{self._digest.hexdigest()[:16]}"


def _is_digest(text: str) -> bool:
    return text.startswith("#")


def _plain(value: Any) -> Any:
    """What our data consist of, as JSON that is the same in every process."""
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
