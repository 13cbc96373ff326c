"""Finds the files that the definitions of agents and metrics name: programs, Python files and modules, recordings."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

from agenteval.core.files.reading import below
from agenteval.results.store import RESULTS_FILE
from agenteval.suite.agent_kinds import REPLAY
from agenteval.suite.files import is_folder
from agenteval.suite.holodeck_project import HolodeckProject
from agenteval.suite.model_agent import KIND as MODEL_AGENT
from agenteval.suite.model_agent import model_agent_of

if TYPE_CHECKING:
    from agenteval.suite.model import AgentSpec, MetricConfig
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
    """Yield the files that HoloDeck reads for an agent: its prompt, its tools and its documents."""
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
    """Yield the files that are arguments of a command, and those of the modules that Python runs by it."""
    for part, following in pairwise((*command, "")):
        path = Path(directory, part)
        # Python runs the second one if the first one is a directory.
        yield from (path, path / "__main__.py")
        if option := _RUN_MODULE.fullmatch(part):
            yield from _module(directory, option[1] or following)


def _tool(directory: str, tool: Tool) -> Iterator[Path]:
    """Yield the files that a tool of a model agent runs."""
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
    """Yield the Python files that ``path.py:name`` or ``module:name`` may name in a directory."""
    if in_file := _IN_FILE.fullmatch(reference):
        yield Path(directory, in_file[1])
    elif in_module := _IN_MODULE.fullmatch(reference):
        yield from _module(directory, in_module[1])


def _module(directory: str, name: str) -> Iterator[Path]:
    """Yield the files that a Python module may consist of, in a directory and its ``src``."""
    path = Path(*name.split("."))
    if not path.name:
        return
    files = (path.with_name(f"{path.name}.py"), path / "__init__.py", path / "__main__.py")
    yield from (Path(directory, folder, file) for folder in ("", "src") for file in files)
