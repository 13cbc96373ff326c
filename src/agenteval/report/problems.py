"""The report of a run that could not take place."""

from __future__ import annotations

from collections.abc import Sequence

from agenteval.errors import Problem
from agenteval.report.escape import markdown_inline

_MOST = 50
_LONGEST = 600


def render_problems(problems: Sequence[Problem]) -> str:
    """Markdown for summary and comment: what is wrong, where, in the order in which it was found."""
    noun = "problem" if len(problems) == 1 else "problems"
    lines = [f"### 💥 agenteval: {len(problems)} {noun}, nothing was evaluated", ""]
    lines += [f"- {markdown_inline(str(problem), _LONGEST)}" for problem in problems[:_MOST]]
    if len(problems) > _MOST:
        lines.append(f"- … and {len(problems) - _MOST} more in the log")
    return "\n".join(lines) + "\n"
