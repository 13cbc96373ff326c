"""The ``.env`` files of a HoloDeck project: variables that the environment does not have.

They are for ``${VAR}`` in the files of the project and for the processes of its agent and its graders. The process
of agenteval does not get them, so that a change cannot configure it, and they never replace a variable of the
environment.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from agenteval.core.documents.document import read_text
from agenteval.core.documents.dotenv import parse_dotenv
from agenteval.core.errors import ConfigError
from agenteval.core.masking import add_secrets
from agenteval.core.paths import working_directory_beside
from agenteval.core.secrets import is_own_name, is_reserved_name, is_runner_name, secrets_in
from agenteval.suite.files import is_file
from agenteval.suite.formats.holodeck.home import holodeck_home

NAME = ".env"


@dataclass(frozen=True)
class EnvFiles:
    """The variables of the files of a project.

    Attributes:
        variables: without those of the environment, the runner and agenteval.
        secrets: values that are masked.
        warnings: files that cannot be read, and names that no file can set.
    """

    variables: dict[str, str] = field(default_factory=dict, repr=False)
    secrets: frozenset[str] = field(default=frozenset(), repr=False)
    warnings: tuple[str, ...] = ()


def read_env_files(directory: Path, shown_in: str) -> EnvFiles:
    """Read the files of the working directory, of a project and of the user, in this order; the first value counts.

    Args:
        directory: the directory of ``agent.yaml``.
        shown_in: that directory in messages.
    """
    found: dict[str, str] = {}
    warnings: list[str] = []
    for path, name in _files(directory.resolve(), Path(shown_in)):
        try:
            variables = parse_dotenv(read_text(path, name))
        except ConfigError as error:
            warnings += [f"{problem}; it is not used" for problem in error.problems]
            continue
        refused = sorted(filter(_is_refused, variables))
        if refused:
            warnings.append(
                f"{name}: {', '.join(refused)}: a file cannot set variables of agenteval and of the runner"
            )
        found = {**{key: value for key, value in variables.items() if key not in refused}, **found}
    found = {name: value for name, value in found.items() if name not in os.environ}
    secrets = frozenset(secret for name, value in found.items() for secret in secrets_in(name, value))
    add_secrets(secrets)
    return EnvFiles(found, secrets, tuple(warnings))


def _files(directory: Path, shown_in: Path) -> Iterator[tuple[Path, str]]:
    """Yield the existing files and their names in messages."""
    home = holodeck_home()
    # Not the working directory itself: for the base commit's files, it belongs to the change.
    here = working_directory_beside(directory, str(shown_in / NAME))
    places = {
        **({} if here is None else {here.resolve(): Path()}),
        directory: shown_in,
        **({} if home is None else {home: Path("~/.holodeck")}),
    }
    for folder, shown in places.items():
        if is_file(folder / NAME):
            yield folder / NAME, str(shown / NAME)


def _is_refused(name: str) -> bool:
    return is_own_name(name) or is_runner_name(name) or is_reserved_name(name)
