"""Texts that replace a report, for a run that is in progress, did not finish, or could not start."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from agenteval.core.errors import Problem
from agenteval.core.masking import mask
from agenteval.core.mistakes import counted, mistakes
from agenteval.core.text.escape import markdown_inline, markdown_lines

_MOST = 50
_LONGEST = 600


def render_problems(problems: Iterable[Problem], name: str = "") -> str:
    """Return Markdown for summary and comment: the mistakes in the order in which they were found.

    Args:
        problems: the problems of all places.
        name: name of the job, for the heading; as in the other texts.
    """
    found = mistakes(problems)
    lines = [f"{_heading(name)}: {counted(found)}, nothing was evaluated", ""]
    lines += [
        f"- {markdown_inline(mask(str(mistake)), _LONGEST)} ([help]({mistake.page}))" for mistake in found[:_MOST]
    ]
    if len(found) > _MOST:
        lines.append(f"- … and {len(found) - _MOST} more in the log")
    return "\n".join(lines) + "\n"


def render_running(commit: str, url: str) -> str:
    """Return Markdown for a run in progress."""
    return f"⏳ **The evaluation of `{_short(commit)}` is running** ([log]({url}))."


def running_note(commit: str, url: str) -> str:
    """Return the line above the previous result while a new run is in progress."""
    return f"{render_running(commit, url)} Below is the result of the previous run."


def render_unfinished(commit: str, url: str, name: str = "") -> str:
    """Return Markdown for a run that ended without a report."""
    return (
        f"{_heading(name)}: the evaluation of `{_short(commit)}` did not finish\n\n"
        f"The run ended before it could report: it was cancelled, out of time, or out of memory. "
        f"See the [log]({url}).\n"
    )


def render_nothing_left(commit: str, url: str, reason: str, name: str = "") -> str:
    """Return Markdown for a fork's run without usable results.

    Args:
        commit: the evaluated commit.
        url: address of the workflow run.
        reason: the reason, as Markdown.
        name: name of the job.
    """
    return (
        f"{_heading(name)}: the evaluation of `{_short(commit)}` left no results\n\n{reason}. See the [log]({url}).\n"
    )


def render_unpublished(problems: Sequence[str]) -> str:
    """Return Markdown for the job summary: why the comment or the check run could not be written."""
    lines = ["#### ⚠️ Not everything was published on GitHub", ""]
    lines += [f"- {markdown_lines(mask(problem), _LONGEST)}" for problem in problems[:_MOST]]
    return "\n".join(lines) + "\n"


def _heading(name: str) -> str:
    return f"### 💥 agenteval · {markdown_inline(name)}" if name else "### 💥 agenteval"


def _short(commit: str) -> str:
    return "".join(filter(str.isalnum, commit))[:12]
