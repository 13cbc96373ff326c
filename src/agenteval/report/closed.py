"""Whether Markdown ends everything that it begins, so that nothing of it reaches into what stands below."""

from __future__ import annotations

import re

_FENCE = re.compile(r" {0,3}(`{3,}(?=[^`]*$)|~{3,})")
_ELEMENT = re.compile(r"<(/?)(details|table|sub|summary|blockquote|div|pre)\b", re.IGNORECASE)


def unclosed(text: str) -> str:
    """What is left open, as people call it; empty if nothing is.

    Looks at code fences as CommonMark defines them, at HTML comments, and at the elements that may span paragraphs.
    """
    fence = ""
    outside: list[str] = []
    for line in text.split("\n"):
        found = _FENCE.match(line)
        if fence:
            if found and found[1].startswith(fence) and not line[found.end() :].strip():
                fence = ""
        elif found:
            fence = found[1]
        else:
            outside.append(line)
    if fence:
        return f"a code fence ({fence})"
    rest = "\n".join(outside)
    if rest.count("<!--") != rest.count("-->"):
        return "an HTML comment (<!--)"
    open_elements: list[str] = []
    for end, name in _ELEMENT.findall(rest):
        if not end:
            open_elements.append(name.lower())
        elif not open_elements or open_elements.pop() != name.lower():
            return f"an element, or one is closed too often or in another order (</{name}>)"
    return f"an element (<{open_elements[-1]}>)" if open_elements else ""
