"""Resolves how reports are made: settings overrule the configuration."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

from agenteval.core.errors import ConfigError, Problem
from agenteval.report.presentation import Presentation, Site
from agenteval.run.config.model import Config
from agenteval.run.settings import Settings


def presentation(settings: Settings, config: Config, environment: Mapping[str, str]) -> Presentation:
    """Return the user's templates, the repository that links lead to, and the reporters of other packages.

    Args:
        settings: may name templates.
        config: names the others, and the reporters.
        environment: the runner's variables name the GitHub instance and repository.

    Raises:
        ConfigError: a template is not a file.
    """
    comment = _shortened(settings.comment_template or config.comment_template)
    summary = _shortened(settings.summary_template or config.summary_template)
    if problems := list(_missing({"comment": comment, "summary": summary})):
        raise ConfigError(problems)
    return Presentation(comment, summary, Site.of(environment), config.reports)


def _shortened(path: Path | None) -> Path | None:
    """Return the path relative to the working directory if it is in there, as messages show it."""
    here = Path.cwd()
    return path.relative_to(here) if path is not None and path.is_relative_to(here) else path


def _missing(templates: Mapping[str, Path | None]) -> Iterable[Problem]:
    for name, path in templates.items():
        if path is not None and not path.is_file():
            yield Problem(f"no such file; it was named as the template of the {name}", file=str(path))
