"""Templates of the base commit: those of the change could show another verdict."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from agenteval.report.presentation import Presentation
from agenteval.results.integrity import Difference
from agenteval.run.config.model import Config
from agenteval.run.confirm.control import Paths
from agenteval.run.resolve.presentation import shortened, template_texts
from agenteval.run.settings import Settings


def presented_by_base(own: Presentation, settings: Settings, base: Config, paths: Paths) -> Presentation:
    """Return the templates of the base commit, with their content; the built-in one where it has none.

    Args:
        own: the templates of the change.
        settings: the caller's settings, which name templates before the configuration does.
        base: the configuration of the base commit.
        paths: where a file of the repository is in the base commit's files.
    """
    comment = _found(settings.comment_template, base.comment_template, paths)
    summary = _found(settings.summary_template, base.summary_template, paths)
    texts = template_texts([path for path in (comment, summary) if path is not None])
    return replace(
        own,
        comment_template=comment and _named(comment, paths),
        summary_template=summary and _named(summary, paths),
        template_texts={str(_named(Path(path), paths)): text for path, text in texts.items()},
    )


def _found(asked: Path | None, configured: Path | None, paths: Paths) -> Path | None:
    path = configured if asked is None else paths.there(asked)
    return path if path is not None and path.is_file() else None


def _named(path: Path, paths: Paths) -> Path:
    """Return the path that messages show for a file of the base commit: that of the file in the change."""
    return shortened(paths.here(path))


def template_differences(own: Presentation, base: Presentation) -> Iterator[Difference]:
    """Yield the templates of the change that are not used, because the base commit has others or none."""
    named = [path for path in (own.comment_template, own.summary_template) if path is not None]
    now, then = template_texts(named), base.template_texts or {}
    for path in sorted({*now, *then}):
        if now.get(path) != then.get(path):
            before, after = ("there" if path in texts else None for texts in (then, now))
            yield Difference(kind="setting", setting=f"template {path}", before=before, after=after, effect="base")
