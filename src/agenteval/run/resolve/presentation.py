"""Resolves the presentation of reports; settings override the configuration."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterable, Mapping
from pathlib import Path

from agenteval.core.errors import ConfigError, Kind, Problem
from agenteval.core.files.boundary import boundary, outside_reading
from agenteval.core.files.reading import read_regular
from agenteval.core.paths import working_directory
from agenteval.report.presentation import Presentation, Site
from agenteval.run.config.model import Config
from agenteval.run.settings import Settings

# A text in quotes may be the name of a file to include.
_NAME = re.compile(r"""["']([^"'\n\\]{1,200})["']""")
_MOST_FILES = 50


def presentation(settings: Settings, config: Config, environment: Mapping[str, str]) -> Presentation:
    """Return the user's templates, the repository for links, and the reporters of other packages.

    Args:
        settings: the templates that the caller names.
        config: the other templates, and the reporters.
        environment: the runner's variables with the GitHub instance and repository.

    Raises:
        ConfigError: a template is not a file.
    """
    named = (
        settings.comment_template or config.comment_template,
        settings.summary_template or config.summary_template,
    )
    comment, summary = (path and shortened(path) for path in named)
    if problems := list(_missing({"comment": comment, "summary": summary})):
        raise ConfigError(problems)
    texts = template_texts([path for path in (comment, summary) if path]) if boundary().roots else None
    return Presentation(comment, summary, Site.of(environment), config.reports, texts)


def template_texts(templates: Iterable[Path]) -> Mapping[str, str]:
    """Return the content of templates and of the files that they name, because user code could change them later."""
    from agenteval.report.templating import LARGEST_TEMPLATE

    texts: dict[str, str] = {}
    waiting = [(path, path.parent) for path in templates]
    while waiting and len(texts) < _MOST_FILES:
        path, folder = waiting.pop()
        if str(path) in texts:
            continue
        with contextlib.suppress(OSError, ValueError):
            texts[str(path)] = read_regular(path, limit=LARGEST_TEMPLATE).decode("utf-8")
            waiting += [(folder / name, folder) for name in dict.fromkeys(_NAME.findall(texts[str(path)]))]
    return texts


def shortened(path: Path) -> Path:
    """Return the path relative to the working directory if it is inside, for messages."""
    here = working_directory()
    return path.relative_to(here) if path.is_relative_to(here) else path


def _missing(templates: Mapping[str, Path | None]) -> Iterable[Problem]:
    for name, path in templates.items():
        if path is None:
            continue
        named = f"it was named as the template of the {name}"
        if not path.is_file():
            yield Problem(f"no such file; {named}", file=str(path), kind=Kind.FILE)
        elif outside := outside_reading(path.resolve()):
            yield Problem(f"{outside}; {named}", file=str(path), kind=Kind.FILE)
