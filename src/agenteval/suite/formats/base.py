"""What a suite format is, and what the formats share: sources of files, schemas, folders of AgentCI."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Mapping
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agenteval.core.records import dataclass, field
from agenteval.suite.agents import AgentEntry

if TYPE_CHECKING:
    from agenteval.core.document import Document, KeyPath
    from agenteval.core.errors import Problem
    from agenteval.suite.agent_definitions import HolodeckProject
    from agenteval.suite.model import Suite


@dataclass(frozen=True)
class Source:
    """A suite file.

    Attributes:
        name: its name in messages and results: relative to the repository, with forward slashes.
    """

    path: Path
    name: str

    def text(self) -> str:
        """Read the file."""
        from agenteval.core.document import read_text

        return read_text(self.path, self.name)

    def yaml(self, credentials: Iterable[str] = ()) -> Document:
        """Parse the file as YAML: ``data``, with ``${VARIABLE}`` replaced, and the line of every key.

        Args:
            credentials: patterns of the keys where secret-like variables are replaced, like ``model.api_key`` or
                ``tools.*.env.*``; elsewhere ``pass_env`` of ``agenteval.yaml`` must list variables in a CI run.
        """
        from agenteval.core.yaml import read_yaml

        return read_yaml(self.path, shown_as=self.name, credentials=credentials)

    def toml(self, credentials: Iterable[str] = ()) -> Document:
        """Parse the file as TOML, as ``yaml`` does."""
        from agenteval.core.toml import read_toml

        return read_toml(self.path, shown_as=self.name, credentials=credentials)

    def problem(self, message: str, line: int | None = None, key: str = "") -> Problem:
        """Describe a problem of the file, to be raised in a ``ConfigError``."""
        from agenteval.core.errors import Kind, Problem

        return Problem(message, file=self.name, line=line, path=key, kind=Kind.VALUE)


def has_key(path: Path, keys: Iterable[str], *, unreadable: bool = False) -> bool:
    """Return whether a file has one of some keys at its top, without parsing: its loader reports what is invalid.

    Args:
        unreadable: the answer for a file that cannot be read.
    """
    from agenteval.core.files import LARGEST_TEXT, read_regular

    try:
        text = read_regular(path, limit=LARGEST_TEXT).decode("utf-8-sig", "replace")
    except OSError:
        return unreadable
    begins = r"[{,\s]" if text.lstrip().startswith("{") else r"^\[*"
    return bool(re.search(rf"""{begins}["']?(?:{"|".join(keys)})["']?\s*[:=.\]]""", text, re.MULTILINE))


class Findings:
    """What a loader finds in a document: problems, of which each fails the suite, and warnings."""

    document: Document
    problems: list[Problem]
    warnings: list[str]

    def _problem(self, at: KeyPath, message: str) -> None:
        self.problems.append(self.document.problem(at, message))

    def _warn(self, at: KeyPath, message: str) -> None:
        self.warnings.append(str(self.document.problem(at, message)))


def lazy(reference: str) -> Callable[..., Any]:
    """Return a function ``module:name`` of this package, whose module is imported at the first call."""

    def call(*args: Any) -> Any:
        module, _, name = reference.partition(":")
        return getattr(import_module(f"{__package__}.{module}"), name)(*args)

    return call


def load_by(reference: str) -> Callable[[Source], Any]:
    """Return a loader of sources from a function ``module:name`` of a path and its name in messages."""
    return lambda source: lazy(reference)(source.path, source.name)


@dataclass(frozen=True)
class EnvFiles:
    """The variables of the ``.env`` files of a project.

    Attributes:
        variables: without those of the environment, the runner and agenteval.
    """

    variables: dict[str, str] = field(default_factory=dict, repr=False)
    secrets: frozenset[str] = field(default=frozenset(), repr=False)
    warnings: tuple[str, ...] = ()

    @classmethod
    def read(cls, files: Iterable[tuple[Path, str]], *, first_counts: bool) -> EnvFiles:
        """Read files, each with its name in warnings; of several values of a variable, the first or last counts."""
        from agenteval.core.document import parse_dotenv, read_text
        from agenteval.core.errors import ConfigError
        from agenteval.core.secrets import add_secrets, is_own_name, is_reserved_name, is_runner_name, secrets_in

        found: dict[str, str] = {}
        warnings = []
        for path, name in files:
            try:
                read = parse_dotenv(read_text(path, name))
            except ConfigError as error:
                warnings += [f"{problem}; it is not used" for problem in error.problems]
                continue
            refused = sorted(key for key in read if is_own_name(key) or is_runner_name(key) or is_reserved_name(key))
            if refused:
                message = "a file cannot set variables of agenteval and of the runner"
                warnings.append(f"{name}: {', '.join(refused)}: {message}")
            read = {key: value for key, value in read.items() if key not in refused and key not in os.environ}
            found = {**read, **found} if first_counts else {**found, **read}
        secrets = frozenset(secret for name, value in found.items() for secret in secrets_in(name, value))
        add_secrets(secrets)
        return cls(found, secrets, tuple(warnings))


@dataclass(frozen=True)
class Format:
    """A suite format.

    Attributes:
        name: its name in commands and results.
        title: a short description of its files.
        patterns: conventional places of its files: globs relative to a project's directory.
        keys: at least one of them is at the top of its files; empty if nothing is known about their keys.
        matches: returns whether a file has this format; it must not raise.
        load: converts a file to a suite; raises ``ConfigError`` with every problem of the file.
        schema: makes the JSON Schema of its files, for ``agenteval schema``.
        starter: a directory with the files that ``agenteval init`` writes.
        places: returns the patterns if the environment can change them.
        project: reads the agent of a file, for HoloDeck to run; of HoloDeck's format only.
    """

    name: str
    title: str
    patterns: tuple[str, ...]
    matches: Callable[[Source], bool]
    load: Callable[[Source], Suite]
    schema: Callable[[], dict[str, Any]] | None = None
    starter: Path | None = None
    project: Callable[[Source], HolodeckProject] | None = None
    keys: tuple[str, ...] = ()
    places: Callable[[], tuple[str, ...]] | None = None

    @property
    def why_foreign(self) -> str:
        """What is said about a file without any of the keys."""
        return f"not {self.title}, for it has none of the keys {', '.join(self.keys)}"

    @property
    def searched(self) -> tuple[str, ...]:
        """Where its files are searched for."""
        return self.patterns if self.places is None else self.places()


# Changes to the JSON Schemas of suite files that several formats share.
#
# The loaders read their files in pieces, so that one error hides no other, and accept some values in several
# spellings. The schemas are for editors: each format combines its pieces and adds the spellings. They omit errors
# that only a loader can detect (repeated names, invalid patterns).


# The allowed values of the key ``agent`` of a suite.
AgentKey = AgentEntry | list[str] | str
AGENT_DESCRIPTION = "agenteval: how the agent under test is reached"

_VARIABLE = {"type": "string", "pattern": r"\$\{"}
_NUMBERS = frozenset({"number", "integer", "boolean"})

Node = dict[str, Any]


def with_variables(schema: Node) -> Node:
    """Return the schema with ``${VARIABLE}`` allowed in place of every number, choice and boolean."""
    if schema.get("type") in _NUMBERS or "enum" in schema:
        return or_else(schema, _VARIABLE)
    return _below(schema, with_variables)


def each_property(schema: Node, change: Callable[[str, Node], Node]) -> Node:
    """Return the schema with each property of each object replaced by a function's result."""
    changed = _below(schema, lambda part: each_property(part, change))
    if "properties" in changed:
        changed["properties"] = {key: change(key, value) for key, value in changed["properties"].items()}
    return changed


def _below(schema: Node, change: Callable[[Node], Node]) -> Node:
    """Return a copy of a schema, with its direct subschemas replaced by a function's results."""
    copy = dict(schema)
    for key in ("properties", "$defs"):
        if key in copy:
            copy[key] = {name: change(part) for name, part in copy[key].items()}
    for key in ("items", "additionalProperties"):
        if isinstance(copy.get(key), dict):
            copy[key] = change(copy[key])
    for key in ("anyOf", "oneOf", "allOf"):
        if key in copy:
            copy[key] = [change(part) for part in copy[key]]
    return copy


def or_scalar(value: Node) -> Node:
    """Allow a number or boolean besides a schema: a text that YAML parsed as one."""
    return or_else(value, {"type": ["number", "boolean"]})


def or_else(value: Node, other: Mapping[str, Any]) -> Node:
    """Allow the values of either schema; annotations of the first apply to both."""
    outside: tuple[str, ...] = ("description", "default", "title")
    said = {key: value[key] for key in outside if key in value}
    inner = {key: item for key, item in value.items() if key not in said}
    members = inner["anyOf"] if set(inner) == {"anyOf"} else [inner]
    return {**said, "anyOf": [*members, dict(other)]}


#: Names another folder than ``.agentci``, as for AgentCI's own client.
BASE_PATH = "AGENTCI_CLIENT_BASE_PATH"
_DEFAULT = ".agentci"
_EVALS = "evals"


def folder() -> str:
    """Return AgentCI's folder, relative to the repository unless it is absolute."""
    return os.path.normpath(os.environ.get(BASE_PATH) or _DEFAULT)


def patterns() -> tuple[str, ...]:
    """Return where suites are searched for."""
    return (f"{folder()}/{_EVALS}/*.toml",)


def frameworks(root: Path) -> Path:
    """Return the folder of the descriptions of frameworks."""
    return root / folder() / "frameworks"


def base_directory(path: Path) -> Path:
    """Return the folder for imports: the one that contains AgentCI's folder, else the suite's folder."""
    directory = path.resolve().parent
    for name in (folder(), _DEFAULT):
        parts = (*Path(name).parts, _EVALS)
        if directory.parts[-len(parts) :] == parts and not Path(name).is_absolute():
            return directory.parents[len(parts) - 1]
    return directory
