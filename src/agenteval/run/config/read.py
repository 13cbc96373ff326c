"""Finds and reads configurations; :mod:`~agenteval.run.config.file` parses the file."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from agenteval.core.authentic import seal
from agenteval.core.llm.cache import ResponseCache, default_directory
from agenteval.core.llm.gateway import LlmSettings
from agenteval.run.config.model import CONFIG_FILE, Config


def directories_above(directory: Path) -> Sequence[Path]:
    """Return a directory and its parents up to the root of its repository; links are followed first."""
    start = directory.resolve()
    found = []
    for folder in (start, *start.parents):
        found.append(folder)
        if (folder / ".git").exists():
            break
    return found


def nearest_config(directories: Sequence[Path]) -> Path | None:
    """Return the configuration in the first of the directories that has one."""
    return next((folder / CONFIG_FILE for folder in directories if (folder / CONFIG_FILE).is_file()), None)


def read_config(path: Path | None) -> Config:
    """Return the configuration in a file; without a file, the defaults.

    Raises:
        ConfigError: the file is not valid; the error contains every problem.
    """
    if path is None:
        return Config(llm=LlmSettings(cache=ResponseCache(default_directory(), seal())))
    # Imported here: a run without a configuration file does not need the parser.
    from agenteval.run.config.file import read_config_file

    return read_config_file(path)
