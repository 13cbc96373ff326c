"""The listener of an agent: receives requests and replies as they pass, for `agenteval probe`."""

from __future__ import annotations

from collections.abc import Callable

#: Receives a title, such as ``request``, and a function that makes the text.
Listener = Callable[[str, Callable[[], str]], None]


def ignore(_title: str, _text: Callable[[], str]) -> None:
    """Do nothing."""
