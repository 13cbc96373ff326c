"""Which jobs of a workflow write a section of the comment, as the workflow's file says.

GitHub lists the jobs of a run by their names only, and a skipped job has no steps there. The file may be that of a
pull request: it only decides which of GitHub's names the table of jobs shows.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from agenteval.core.documents.yaml.read import read_yaml
from agenteval.core.errors import AgentEvalError

_FOLDER = Path(".github", "workflows")
_ACTION = "agenteval"
_EXPRESSION = re.compile(r"\$\{\{.*?\}\}", re.DOTALL)
# GitHub adds the values of a matrix to a name.
_VALUES = r"(?: \(.*\))?"
_LONGEST_NAME = 200


def evaluating_jobs(workspace: Path, workflow: str | None) -> Callable[[str], bool]:
    """Return a test of names of jobs: whether a step of the job evaluates an agent and comments on it.

    Args:
        workspace: the directory of the checkout.
        workflow: name of the workflow's file; no job is known without it.
    """
    try:
        data = read_yaml(workspace / _FOLDER / workflow, unset=[]).data if workflow else None
    except (AgentEvalError, RecursionError):
        data = None
    jobs = data.get("jobs") if isinstance(data, dict) else None
    patterns = list(_patterns(jobs)) if isinstance(jobs, dict) else []
    return lambda name: any(pattern.fullmatch(name) for pattern in patterns)


def _patterns(jobs: dict[Any, Any]) -> Iterator[re.Pattern[str]]:
    for key, job in jobs.items():
        steps = job.get("steps") if isinstance(job, dict) else None
        if isinstance(steps, list) and any(map(_comments, steps)):
            named = job.get("name")
            pattern = _pattern(named if isinstance(named, str) else str(key))
            if pattern is not None:
                yield pattern


def _comments(step: Any) -> bool:
    """Return whether a step is the action, with a comment that is neither turned off nor left to another job."""
    uses = step.get("uses") if isinstance(step, dict) else None
    if not isinstance(uses, str) or _ACTION not in uses.partition("@")[0]:
        return False
    given = step.get("with")
    inputs = given if isinstance(given, dict) else {}
    return not inputs.get("shard") and inputs.get("comment") != "never"


def _pattern(name: str) -> re.Pattern[str] | None:
    """Return what the names of a job look like; ``None`` if they can be anything."""
    first, *more = _EXPRESSION.split(name)
    last = more[-1] if more else ""
    if len(name) > _LONGEST_NAME or not re.search(r"\w", first + last):
        return None
    between = ".*" if more else ""
    return re.compile(f"{re.escape(first)}{between}{re.escape(last)}{_VALUES}")
