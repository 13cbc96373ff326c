"""What the configuration and the command line say about a run; :mod:`~agenteval.run.config.file` reads the file."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from agenteval.core.llm.cache import ResponseCache, default_directory
from agenteval.core.llm.gateway import LlmSettings
from agenteval.run.config.model import CONFIG_FILE, Config


def find_config(explicit: Path | None, near: Iterable[Path]) -> Path | None:
    """The configuration file of a run.

    Args:
        explicit: the file that was asked for; it need not exist yet to be returned.
        near: directories to look in, best first; their parents are searched up to the repository.
    """
    if explicit is not None:
        return explicit
    for start in near:
        for directory in (start.resolve(), *start.resolve().parents):
            if (directory / CONFIG_FILE).is_file():
                return directory / CONFIG_FILE
            if (directory / ".git").exists():
                break
    return None


def read_config(path: Path | None) -> Config:
    """Read a configuration file; without one, the defaults.

    Raises:
        ConfigError: with every problem of the file.
    """
    if path is None:
        return Config(llm=LlmSettings(cache=ResponseCache(default_directory())))
    # Imported here: without such a file nobody pays for what may stand in it.
    from agenteval.run.config.file import read_config_file

    return read_config_file(path)
