"""Tells the refusals of tools under test from tools that are broken."""

from __future__ import annotations

import re
from collections.abc import Collection

from agenteval.core.text.breakdown import is_breakdown
from agenteval.core.text.refusal import is_refusal

# Python's ways to reject a request: not allowed, or not a valid input.
_REJECTING = frozenset({"PermissionError", "ValueError"})
# Subclasses of ValueError that a broken backend causes.
_NOT_REJECTING = frozenset({"UnicodeError", "JSONDecodeError"})
# Mistakes in the code, and failures of the machine or the network.
_BROKEN = frozenset(
    {
        "ArithmeticError",
        "AttributeError",
        "BufferError",
        "EOFError",
        "ImportError",
        "IndexError",
        "KeyError",
        "MemoryError",
        "NameError",
        "NotImplementedError",
        "RecursionError",
        "ReferenceError",
        "StopIteration",
        "SyntaxError",
        "SystemError",
        "TypeError",
        "UnicodeError",
    }
)
_CAUSES = frozenset({"ConnectionError", "ImportError", "TimeoutError", "URLError", "gaierror"})
_NAMED = re.compile(
    r"Refus|Block|Denied|Deny|Forbid|Permission|Unauthori[sz]ed|Allowed|Disallow|Unsafe|Secur|Polic|Violat|Guard|Reject"
    r"|Moderat|Filter|Valid|Injection|Saniti[sz]|Prohibit"
)


def is_refusal_exception(types: Collection[str], causes: Collection[str], text: str) -> bool:
    """Return whether an exception of a tool rejects the request; otherwise the tool is broken.

    It does if its type rejects (``PermissionError``, ``ValueError``, or a name such as ``QueryBlocked``) or its text
    does ("request denied"), and no missing module or connection caused it.

    Args:
        types: names of its class and base classes.
        causes: names of the classes, with base classes, of the exceptions that caused it.
        text: its text.
    """
    known = frozenset(types)
    is_system = "OSError" in known and "PermissionError" not in known
    if is_system or known & _BROKEN or not _CAUSES.isdisjoint(causes) or is_breakdown(" ".join((*types, text))):
        return False
    if known & _REJECTING and not known & _NOT_REJECTING:
        return True
    return any(map(_NAMED.search, types)) or (bool(text.strip()) and is_refusal(text))
