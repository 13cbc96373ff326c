"""Answers about a whole run that several reports ask for, worked out once."""

from __future__ import annotations

import functools
import weakref
from collections.abc import Callable
from typing import TypeVar

from agenteval.results.model import Results

T = TypeVar("T")


def once(function: Callable[[Results], T]) -> Callable[[Results], T]:
    """A function of a run that looks at every case, and keeps its answer for the run that it was asked about last.

    Results never change, and what differs in anything is another object. The run itself is not kept.

    Args:
        function: what it returns is given to several callers, so it has to be immutable.
    """
    run: weakref.ref[Results] | None = None
    answer: T

    @functools.wraps(function)
    def remembered(results: Results) -> T:
        nonlocal run, answer
        if run is None or run() is not results:
            answer = function(results)
            run = weakref.ref(results)
        return answer

    return remembered
