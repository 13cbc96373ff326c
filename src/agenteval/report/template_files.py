"""Finds the directory of the built-in templates, and defines the error of user templates."""

from __future__ import annotations

from pathlib import Path

from agenteval.core.errors import AgentEvalError, InfrastructureError

_PACKAGE = Path(__file__).parents[1]
_ALWAYS_THERE = Path("markdown", "comment.md.j2")


class UserTemplateError(AgentEvalError):
    """A user's template cannot be used, so the built-in one replaces it.

    Args:
        place: the template, possibly with a line.
        problem: the problem and the fix.
    """

    def __init__(self, place: Path | str, problem: str) -> None:
        super().__init__(f"{place}: {problem}; the built-in template is used instead")


def template_directory() -> Path:
    """Return the directory of the templates: in the installed package, or beside ``src`` in a checkout.

    Raises:
        InfrastructureError: neither directory exists, so the installation is broken.
    """
    places = (_PACKAGE / "templates", _PACKAGE.parents[1] / "templates")
    for directory in places:
        if (directory / _ALWAYS_THERE).is_file():
            return directory
    tried = " or ".join(str(directory) for directory in places)
    raise InfrastructureError(f"report templates are missing: no {_ALWAYS_THERE} in {tried}; install agenteval again")
