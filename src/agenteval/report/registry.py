"""The reporters, which write the files of a report.

A reporter is a function ``report_files(Report, Results)`` that yields the files of one kind of report. Reporters of
other packages run in agenteval's process, so they run only if ``AGENTEVAL_PLUGINS`` names them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from importlib import import_module

from agenteval.core import plugins
from agenteval.core.errors import ConfigError, Kind, Problem
from agenteval.core.text.choices import choices
from agenteval.report.report import Render

#: The modules of the built-in reporters. They run in this order: later ones show the warnings of earlier ones.
#: A module is imported when a report is written, so that other commands start faster.
REPORTERS: Mapping[str, str] = {
    "evaluation": "agenteval.report.evaluation",
    "junit": "agenteval.report.junit",
    "markdown": "agenteval.report.markdown.render",
    "badge": "agenteval.report.badge",
    "html": "agenteval.report.html.render",
}
#: The files that they write to a report directory, besides those of analyses.
FILES = ("junit.xml", "summary.md", "comment.md", "badge.json", "trend.json", "report.html")
#: The folder of analyses.
ANALYSES = "evaluation"


def built_in() -> Iterator[Render]:
    """Yield the built-in reporters, which run for every report."""
    yield from map(built_in_reporter, REPORTERS)


def built_in_reporter(name: str) -> Render:
    """Import a built-in reporter."""
    render: Render = import_module(REPORTERS[name]).report_files
    return render


def find_reporter(name: str) -> Render:
    """Import a reporter of another package.

    Args:
        name: the name of its entry point, with a dot.

    Raises:
        ConfigError: the name is built in or unknown, or the reporter is not allowed or cannot be imported.
    """
    if name in REPORTERS:
        raise ConfigError(
            Problem(
                f"{name!r} is built in and always written; list reporters of other packages only", kind=Kind.PLUGIN
            )
        )
    names = [plugin.name for plugin in plugins.installed() if plugin.group == "agenteval.reporters"]
    if name not in names:
        message = f"no installed package has a reporter {name!r}{choices(name, names, 'installed')}"
        raise ConfigError(Problem(message, kind=Kind.UNKNOWN_NAME))
    if not plugins.is_allowed(name):
        variable = plugins.ALLOWED_VARIABLE
        message = f"the reporter {name!r} runs in agenteval's process only where {variable} names it"
        raise ConfigError(Problem(f"{message}; set {variable}={name} if you trust its package", kind=Kind.PLUGIN))
    render = plugins.find("agenteval.reporters", name)
    if not callable(render):
        raise ConfigError(
            Problem(
                f"the reporter {name!r} is not a function, or its name has no dot; fix its package", kind=Kind.PLUGIN
            )
        )
    found: Render = render
    return found
