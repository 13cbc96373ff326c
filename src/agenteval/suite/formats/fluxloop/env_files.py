"""The ``.env`` files of a FluxLoop project: variables of its agent, and API keys of its judges.

They never replace a variable of the environment, and the process of agenteval does not get them.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path

from agenteval.core.documents.document import read_text
from agenteval.core.documents.dotenv import parse_dotenv
from agenteval.core.errors import ConfigError
from agenteval.core.masking import add_secrets
from agenteval.core.paths import repository_of
from agenteval.core.secrets import is_own_name, is_reserved_name, is_runner_name, secrets_in
from agenteval.suite.files import is_file

_NAME = ".env"


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


def read_env_files(root: Path) -> EnvFiles:
    """Read the files of the folder above a project and of the project, which precedes, as in FluxLoop."""
    found: dict[str, str] = {}
    warnings = []
    for folder in (*(() if repository_of(root) == root else (root.parent,)), root):
        path = folder / _NAME
        if not is_file(path):
            continue
        name = os.path.relpath(path, root)
        try:
            read = parse_dotenv(read_text(path, name))
        except ConfigError as error:
            warnings += [f"{problem}; it is not used" for problem in error.problems]
            continue
        refused = sorted(name for name in read if is_own_name(name) or is_runner_name(name) or is_reserved_name(name))
        if refused:
            message = "a file cannot set variables of agenteval and of the runner"
            warnings.append(f"{name}: {', '.join(refused)}: {message}")
        found |= {name: value for name, value in read.items() if name not in refused and name not in os.environ}
    secrets = frozenset(secret for name, value in found.items() for secret in secrets_in(name, value))
    add_secrets(secrets)
    return EnvFiles(found, secrets, tuple(warnings))
