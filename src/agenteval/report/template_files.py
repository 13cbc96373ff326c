"""The files that reports are made from: the directory of the built-in templates, and what is wrong with a user's."""

from __future__ import annotations

from pathlib import Path

from agenteval.core.errors import AgentEvalError, InfrastructureError

_PACKAGE = Path(__file__).parents[1]
_ALWAYS_THERE = Path("markdown", "comment.md.j2")


class UserTemplateError(AgentEvalError):
    """A user's template cannot be used, so the built-in one is.

    Args:
        place: the template, perhaps with a line.
        problem: what is wrong with it, and what to do.
    """

    def __init__(self, place: Path | str, problem: str) -> None:
        super().__init__(f"{place}: {problem}; the built-in template is used instead")


def template_directory() -> Path:
    """Return the directory of the templates: in the installed package, or beside ``src`` in a checkout.

    Raises:
        InfrastructureError: the installation is broken; neither place exists.
    """
    places = (_PACKAGE / "templates", _PACKAGE.parents[1] / "templates")
    for directory in places:
        if (directory / _ALWAYS_THERE).is_file():
            return directory
    tried = " or ".join(str(directory) for directory in places)
    raise InfrastructureError(f"report templates are missing: no {_ALWAYS_THERE} in {tried}; install agenteval again")
