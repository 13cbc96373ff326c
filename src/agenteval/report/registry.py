"""The reporters, which write the files of a report.

A reporter is a function ``report_files(Report, Results)`` that yields the files of one kind of report. Reporters of
other packages run in agenteval's process, so they run only if ``AGENTEVAL_PLUGINS`` names them.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping
from importlib import import_module

from agenteval.core import plugins
from agenteval.core.errors import ConfigError, Problem
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


def built_in() -> Iterator[Render]:
    """Yield the built-in reporters, which run for every report."""
    for module in REPORTERS.values():
        render: Render = import_module(module).report_files
        yield render


def find_reporter(name: str) -> Render:
    """Import a reporter of another package.

    Args:
        name: the name of its entry point, with a dot.

    Raises:
        ConfigError: the name is built in or unknown, or the reporter is not allowed or cannot be imported.
    """
    if name in REPORTERS:
        raise ConfigError(Problem(f"{name!r} is built in and always written; list reporters of other packages only"))
    names = [plugin.name for plugin in plugins.installed() if plugin.group == "agenteval.reporters"]
    if name not in names:
        close = difflib.get_close_matches(name, names, n=1)
        hint = f"; did you mean {close[0]!r}?" if close else f"; installed: {', '.join(names) or 'none'}"
        raise ConfigError(Problem(f"no installed package has a reporter {name!r}{hint}"))
    if not plugins.is_allowed(name):
        variable = plugins.ALLOWED_VARIABLE
        message = f"the reporter {name!r} runs in agenteval's process only where {variable} names it"
        raise ConfigError(Problem(f"{message}; set {variable}={name} if you trust its package"))
    render = plugins.find("agenteval.reporters", name)
    if not callable(render):
        raise ConfigError(
            Problem(f"the reporter {name!r} is not a function, or its name has no dot; fix its package")
        )
    found: Render = render
    return found
