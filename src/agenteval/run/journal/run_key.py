"""Under which conditions a run runs: what must be the same for what it left to be finished later."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel

from agenteval.core.version import __version__
from agenteval.results.store import RESULTS_FILE

if TYPE_CHECKING:
    from agenteval.core.text.redact import Redactor
    from agenteval.run.plan import Plan, PlannedCase
    from agenteval.suite.model import AgentSpec, Case, MetricConfig, Suite

_ENCODER = json.JSONEncoder(sort_keys=True, ensure_ascii=False)
_CALLABLE = re.compile(r"([A-Za-z_][\w.]*):[A-Za-z_][\w.]*")
# Where things stand, in their files or on this machine, makes them no others.
_PLACES = frozenset({"where", "line", "directory"})
# A program that an agent starts is looked into up to that size, in bytes.
_LARGEST_PROGRAM = 16 * 2**20


def conditions(plan: Plan) -> dict[str, str]:
    """What shapes the results of a run besides the answers: name → value, or its hash.

    Of an agent these are its definition and the file that it names, a program or a Python module; not what that file
    imports. Limits of time, money and concurrency are not among them, as they decide when results come, not which.

    Args:
        plan: of the run.
    """
    resources = plan.catalog.resources
    found = {"the version of agenteval": __version__}
    for suite, cases in _by_suite(plan.cases):
        found[f"the selection of cases of {suite.path}"] = _hash((item.case.id for item in cases), plan.redact)
        asked = _hash((_asked(item.case) for item in cases), plan.redact)
        found[f"the suite {suite.path}"] = _digest([asked, *_measured(suite, cases)], plan.redact)
        found[f"the number of iterations of {suite.path}"] = _numbers(item.iterations for item in cases)
        found[f"the agent of {suite.path}"] = _digest(_agents(cases), plan.redact)
    found |= {
        "the judge": _label(resources.judge),
        "the embedding model": _label(resources.embedder),
        "--seed": _number(resources.seed),
        "case_timeout": _number(plan.limits.case_s),
    }
    return found


def changes(before: Mapping[str, str], now: Mapping[str, str]) -> Iterator[str]:
    """What is not the same any more, in words."""
    for name in dict.fromkeys((*before, *now)):
        old, new = before.get(name, "none"), now.get(name, "none")
        if old != new:
            yield f"{name} is not the same" if _is_digest(old) or _is_digest(new) else f"{name} was {old}, now {new}"


def _by_suite(cases: Iterable[PlannedCase]) -> list[tuple[Suite, list[PlannedCase]]]:
    found: dict[str, tuple[Suite, list[PlannedCase]]] = {}
    for item in cases:
        found.setdefault(item.suite.path, (item.suite, []))[1].append(item)
    return list(found.values())


def _asked(case: Case) -> list[Any]:
    return [case.fingerprint, case.name, case.tags, case.strict]


def _measured(suite: Suite, cases: Sequence[PlannedCase]) -> list[Any]:
    """What measures the cases that run."""
    # Most cases share their metrics.
    metrics = {id(metric): metric for item in cases for metric in item.case.all_metrics}
    return [
        [_metric(metric) for metric in metrics.values()],
        [suite.aggregate, suite.evaluation, suite.retrieval_tools],
    ]


def _metric(metric: MetricConfig) -> list[Any]:
    code = [_module(metric.where.directory, value) for value in metric.options.values() if isinstance(value, str)]
    return [metric, code]


def _agents(cases: Iterable[PlannedCase]) -> list[Any]:
    specs = {id(item.agent): item.agent for item in cases}
    return [[spec, _program(spec)] for spec in specs.values()]


def _program(spec: AgentSpec) -> list[str]:
    """Hashes of the files that an agent's definition names."""
    if isinstance(spec.target, tuple):
        return [_file(Path(spec.directory, part)) for part in spec.target]
    if spec.kind == "replay":
        recording = Path(spec.target)
        return [_file(recording / RESULTS_FILE if recording.is_dir() else recording)]
    return [_module(spec.directory, spec.target)]


def _module(directory: str, reference: str) -> str:
    """The hash of a Python module that ``module:callable`` names, if it lies in a directory."""
    match = _CALLABLE.fullmatch(reference)
    if match is None:
        return ""
    path = Path(directory, *match[1].split("."))
    return _file(path.with_name(f"{path.name}.py")) or _file(path / "__init__.py")


def _file(path: Path) -> str:
    try:
        if not path.is_file() or path.stat().st_size > _LARGEST_PROGRAM:
            return ""
        return hashlib.sha256(path.read_bytes()).hexdigest()
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
    """The hash of our data."""
    return _hash([_plain(value)], redact)


def _hash(values: Iterable[Any], redact: Redactor) -> str:
    """The hash of JSON. Secrets take no part: another key makes no other agent, and nobody shall guess one by it."""
    digest = hashlib.sha256()
    for value in values:
        text = redact(_ENCODER.encode(value))
        digest.update(f"{text}\n".encode("utf-8", "surrogatepass"))
    return f"#{digest.hexdigest()[:16]}"


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
