"""``allow_env:`` and ``secrets:`` of ``agenteval.yaml``: the variables that texts may use, and that are secret."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, StringConstraints

from agenteval.core.base_commit import BaseCommit, base_commit
from agenteval.core.documents.allowed import AllowedVariables
from agenteval.core.documents.document import read_text
from agenteval.core.documents.validation import validate
from agenteval.core.documents.yaml.read import parse_yaml
from agenteval.core.errors import ConfigError
from agenteval.core.paths import display_path
from agenteval.core.secrets import name_secrets

_Name = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9_*?\[\]!-]+$")]
#: The type of the key ``allow_env``.
AllowEnv = Annotated[
    list[_Name],
    Field(
        description="secret-like environment variables, and those of the runner and of agenteval, that ${VARIABLE} "
        "may insert into any text; * matches any text; for a change that is not merged the base branch must list "
        "them too"
    ),
]


class _Keys(BaseModel):
    """The lists, in a file with other keys."""

    model_config = ConfigDict(extra="ignore")

    allow_env: AllowEnv = []
    secrets: Any = None


def read_allowed(path: Path | None) -> AllowedVariables:
    """Return the variables that files may use, from the configuration; its other keys are not checked.

    The names in ``secrets`` count as names of secrets from here on.

    Args:
        path: the configuration; ``None`` without one.

    Raises:
        ConfigError: the file is not YAML, or the list is invalid.
    """
    if path is None:
        return AllowedVariables()
    name = display_path(path)
    keys = _keys(read_text(path, name), name, path.parent)
    # A wrong list is reported where the whole configuration is read.
    listed = keys.secrets if isinstance(keys.secrets, list) else []
    name_secrets(pattern for pattern in listed if isinstance(pattern, str))
    commit = base_commit()
    return AllowedVariables(tuple(keys.allow_env), partial(_on_base, commit, path) if commit else None)


def _on_base(commit: BaseCommit, path: Path) -> tuple[str, ...]:
    return tuple(_keys(commit.read(path), f"{display_path(path)} on the base branch", path.parent).allow_env)


def _keys(text: str, name: str, directory: Path) -> _Keys:
    # Variables are not replaced: the list decides about them.
    document = parse_yaml(text, name, directory, environment={}, unset=[])
    if not isinstance(document.data, dict):
        return _Keys()
    entry, problems = validate(_Keys, document.data, document)
    if entry is None:
        raise ConfigError(problems)
    return entry
