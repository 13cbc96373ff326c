"""Checks documentation, messages and comments for unclear phrases; usage: prose.py [PATH…].

Prints ``file:line: 'phrase': better words`` for each match. The exit status is 1 if there is any.
"""

from __future__ import annotations

import functools
import re
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]
SUFFIXES = frozenset({".css", ".html", ".j2", ".js", ".md", ".py", ".sh", ".yaml", ".yml"})
#: Files and directories that are checked without arguments.
PARTS = (
    ".github",
    "CHANGELOG.md",
    "CONTRIBUTING.md",
    "Dockerfile",
    "Makefile",
    "README.md",
    "SECURITY.md",
    "action.yml",
    "benchmarks",
    "changes",
    "docs",
    "examples/agentci",
    "examples/fluxloop",
    "examples/quickstart/README.md",
    "examples/quickstart/agent.py",
    "examples/workflows",
    "mkdocs.yml",
    "native",
    "requirements/README.md",
    "requirements/actions.yml",
    "scripts/actions.py",
    "scripts/audit.py",
    "scripts/licences.py",
    "scripts/mkdocs_links.py",
    "scripts/pin_image.py",
    "scripts/reference.py",
    "scripts/release_notes.py",
    "scripts/schemas.py",
    "src",
    "templates",
    "tests/unit/agents",
    "tests/unit/ci",
    "tests/unit/cli",
    "tests/unit/gate",
    "tests/unit/core",
    "tests/unit/metrics",
    "tests/unit/report",
    "tests/unit/results",
    "tests/unit/run",
    "tests/unit/suite",
)

# Regular expressions of phrases, and better words. A space matches any white space, also a line break in a comment.
_PHRASES = {
    # Words that are not the field's.
    r"wish(?:es|ed)?": "option, setting or default",
    r"(?:may|might|would) be chance": "not significant",
    r"(?:by|than|from|is|be|to) chance": "noise, or (not) significant",
    r"got (?:worse|better)": "broke (a case), fell (a mean), improved",
    r"look(?:s|ed)? worse": "looked lower, may be worse, or is proven to be worse",
    r"long looks?": "look back",
    r"possible regressions?|suspected regressions?|maybe chance": "may be worse",
    r"(?:run|baseline|earlier|base) pools?": "baseline",
    r"(?:fell|falls?|fall) of an? mean": "drop",
    r"gate (?:is closed|closes)": "the gate fails",
    r"closed by": "fails if",
    r"further attempts?": "retry, retries",
    r"failures? that may pass": "transient failure",
    r"passing failures?": "transient failure",
    r"(?:asked|run|runs|ran) (?:once more|anew)": "retried, re-run or again",
    r"anew": "again",
    r"run again what": "re-run",
    r"given up": "stopped, ended or not retried",
    r"gives up": "stops or ends",
    r"under way": "running, in progress",
    r"one's own": "user-defined",
    r"of (?:your|its|their|ours?|mine) own": "user, separate or private",
    r"of ours\b": "of agenteval, built-in",
    r"(?:foreign) (?:text|bytes|code|reply|replies)": "untrusted, or of another form",
    r"hands? (?:on|over|in)": "pass",
    # Riddles and nouns of state.
    r"what came of": "the result of",
    r"came of it": "the result",
    r"whatever (?:became|comes|came|happens)": "even if, or always",
    r"what (?:became|becomes) of": "the result of",
    r"nobody (?:wants|knows|knew|asked|looks|reads)": "name the actor, or delete",
    r"whoever": "name the actor",
    r"what is (?:no|none)\b": "negate the verb: is not …",
    r"(?:that|which|it|what) (?:is|are) (?-i:none)(?=\s*[.;,:)])": "negate the verb: is not …",
    r"(?:is|are) (?-i:none)(?=\s*[.;,:)])": "negate the verb: is not …",
    r"(?<!there\s)(?:is|are) no "
    r"(?:success|chance|text|number|name|word|list|mapping|object|directory|file|trace|JSON|case)\b": (
        "negate the verb: is not a …"
    ),
    r"comes? to (?:its|their|an) end": "end, finish",
    r"came to (?:its|their|an) end": "ended, finished",
    r"brings? .{0,40}to its end": "finish",
    r"said no": "failed, is below its threshold",
    r"says? so": "show, list or report",
    r"says? (?:of|about) (?:itself|themselves)": "state what it contains",
    r"what (?:there is|is there) (?:nothing )?to say": "name the content",
    r"nothing to say": "empty",
    r"it is said": "name the actor",
    r"stands? in for": "replaces",
    r"lies? (?:at|in|beside|below) (?:the|it)": "is in",
    r"goes on": "continues, or is resumed",
    r"knows? (?:nothing|its|their|of)\b": "state what it contains or does",
    r"has to do without": "does not have",
    r"do without": "work without",
    r"talked? round": "manipulated",
    r"at fault": "failed",
    r"what is left\b(?! out)": "the rest",
    r"where there is (?:none|no)\b": "without",
    r"there is nobody": "name the actor",
    r"pays? for (?:it|what)": "needs, uses",
    r"stands? (?:behind|beside|further (?:up|down))": "is before, after or next to",
    r"stands (?:for|on|in|at) (?:all|any|every|one|the|a)": "means, is in, is at",
    r"the place of the (?:run|merge)": "environment",
    r"what (?:the|a) (?:caller|suite|user) (?:asks?|wants?|says?)": "settings, values or request of …",
    r"one a line": "one per line",
    r"what is wrong(?: with| in)?": "the problems of",
    r"closed against": "read-only",
    r"what has ended of": "the state of",
    r"must know of": "needs",
    r"of what (?:is|was) (?:there|left)": "name the content",
}


@dataclass(frozen=True)
class Finding:
    """An unclear phrase at a line of a file."""

    file: Path
    line: int
    phrase: str
    better: str

    def __str__(self) -> str:
        return f"{self.file}:{self.line}: '{self.phrase}': {self.better}"


def findings(file: Path, text: str) -> list[Finding]:
    """Return the unclear phrases of a text, in order."""
    # Most texts have none, and one pattern finds that sooner than all patterns.
    if not _pattern("|".join(_PHRASES)).search(text):
        return []
    matches = (
        (match.start(), match[0], better)
        for phrase, better in _PHRASES.items()
        for match in _pattern(phrase).finditer(text)
    )
    return [
        Finding(file, text.count("\n", 0, start) + 1, " ".join(phrase.split()), better)
        for start, phrase, better in sorted(matches)
    ]


def files(paths: Sequence[Path]) -> Iterator[Path]:
    """Yield the text files at some paths; directories are searched, except for hidden ones."""
    for path in paths:
        if path.is_dir():
            found = (file for file in sorted(path.rglob("*")) if file.is_file() and file.suffix in SUFFIXES)
            yield from (file for file in found if not any(part[0] == "." for part in file.relative_to(path).parts))
        else:
            yield path


@functools.cache
def _pattern(phrase: str) -> re.Pattern[str]:
    return re.compile(rf"\b(?:{phrase.replace(' ', _GAP)})(?!\w)", re.IGNORECASE)


# White space between two words, which may continue in the next line of a comment.
_GAP = r"\s(?:\s*#)?\s*"


def main(arguments: Sequence[str]) -> int:
    """Check some paths, by default the checked parts of the repository; the exit status is 1 with findings."""
    paths = [Path(argument) for argument in arguments] or [ROOT / part for part in PARTS]
    missing = [str(path) for path in paths if not path.exists()]
    if missing:
        print(f"prose.py: {', '.join(missing)}: no such file or directory", file=sys.stderr)
        return 2
    found = [finding for file in files(paths) for finding in findings(file, file.read_text("utf-8"))]
    for finding in found:
        print(finding)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
