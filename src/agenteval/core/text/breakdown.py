"""Recognises technical failures by the words of an error message, to tell them from refusals."""

from __future__ import annotations

import re

_WORDS = (
    # Python, Node and the JVM: code that is missing or wrong.
    r"\bno\ module\ named\b",
    r"\bcannot\ (?:find\ (?:module|package)|import\ name)\b",
    r"\b(?:Import|ModuleNotFound|Name|Attribute|Syntax|NotImplemented|Recursion|Memory|Reference|Type|Key)Error\b",
    r"\bMODULE_NOT_FOUND\b",
    r"\bException\ in\ thread\b",
    r"\bcommand\ not\ found\b",
    r"\bno\ such\ file\ or\ directory\b",
    r"\bsegmentation\ fault\b",
    r"\bout\ of\ memory\b",
    # Networks: nobody answered.
    r"\bconnection\ (?:was\ |has\ been\ )?(?:refused|reset|aborted|closed|timed\ out|error|failed)\b",
    r"\b(?:connect(?:ion)?|request|operation|read|gateway)\ time(?:d\ |-)?out\b",
    r"\b(?:failed|unable|could\ not|cannot|can't)\ to\ (?:re)?connect\b | \b(?:could\ not|cannot|can't)\ connect\b",
    r"\bname\ or\ service\ not\ known\b | \bname\ resolution\b | \bgetaddrinfo\b",
    r"\bno\ route\ to\ host\b | \bnetwork\ is\ unreachable\b | \bmax\ retries\ exceeded\b | \burlopen\ error\b",
    r"\bE(?:CONNREFUSED|CONNRESET|TIMEDOUT|NOTFOUND|HOSTUNREACH|NETUNREACH|AI_AGAIN|PIPE)\b",
    r"\b\w*(?:Connect(?:ion)?|Timeout|URL|SSL|Network|Transport)(?:Error|Exception)\b",
    r"\b(?:service|server|model|database)\ (?:is\ )?(?:temporarily\ )?unavailable\b",
    r"\binternal\ server\ error\b | \bbad\ gateway\b",
    # Credentials and quotas of the tool itself.
    r"\b(?:invalid|incorrect|missing|expired|no)\ (?:api[ _-]?key|credentials|access\ token)\b",
    r"\brate\ limit\b | \bquota\ exceeded\b | \btoo\ many\ requests\b",
)
_BREAKDOWN = re.compile("|".join(f"(?:{pattern})" for pattern in _WORDS), re.IGNORECASE | re.VERBOSE)
# Characters at the end of a message: the text of an exception is below its stack.
_END = 2000


def is_breakdown(text: str) -> bool:
    """Return whether a message reports a technical failure, such as missing code or a refused connection."""
    return _BREAKDOWN.search(text[-_END:]) is not None
