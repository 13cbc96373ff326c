"""What several outlets of one run tell, read from each of them: nothing may differ.

Comment, job summary, page, terminal, JUnit XML and badge are those that the command wrote. The check run with its
annotations, and the row of the table of several jobs, are made from the results, as a workflow makes them.
"""

from __future__ import annotations

import html
import json
import re
from collections import Counter, defaultdict
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree

from agenteval.github.publisher import PublishOptions, content_of
from agenteval.report.facts import facts, notes_of
from agenteval.report.overview import LEVELS, annotate
from agenteval.results.store import read_results

if TYPE_CHECKING:
    from tests.scenarios.scenario import Seen

_BADGES = {"passed": "passed", "FAILED": "failed", "UNPROVEN": "unproven", "ERROR": "error"}
_TRIES = r"(?:\d[\d,]*/\d[\d,]*(?: to \d[\d,]*/\d[\d,]*)?)"
# A row of the table of causes, and the first line of a cause on a terminal.
_ROW = re.compile(rf"^\| (?:❌|🔌|🎲) \| (.+?) \| (?:({_TRIES}) → )?({_TRIES}(?: each)?) \| ", re.MULTILINE)
_LINE = re.compile(rf"^[✗!?] (.+?)(?:\n?  )(?:(\S.*?) ({_TRIES}) → )?here ({_TRIES}(?: each)?)$", re.MULTILINE)
# The kinds that a terminal tells with a title, and the words of the table of numbers.
_TITLES = re.compile(r"^(broke|failed|could not be run|may be worse): ([\d,]+) cases?\b", re.MULTILINE)

#: What sentences say about the cases that count, as "1 of 9 cases could not be run".
_COUNTED = re.compile(r"([\d,]+ of [\d,]+) cases? (pass|could not be run|failed)\b")

Told = dict[str, dict[str, set[Any]]]


def disagreements(seen: Seen) -> Iterator[str]:
    """Yield what two outlets of a step tell differently."""
    names = ("results.json", "junit.xml", "comment.md", "summary.md", "report.html", "badge.json", "findings.json")
    config = seen.folder / "agenteval.yaml"
    own_templates = config.exists() and "templates:" in config.read_text(encoding="utf-8")
    if own_templates or not all((seen.reports / name).exists() for name in names):
        return
    if (seen.reports / "results.json").stat().st_mtime_ns > (seen.reports / "report.html").stat().st_mtime_ns:
        # The scenario has replaced the results: the reports are of others.
        return
    told: Told = defaultdict(lambda: defaultdict(set))
    for outlet, fact, value in _facts(seen):
        told[fact][outlet].add(value)
    for fact, outlets in told.items():
        if fact.startswith("tries of") and any(len(values) > 1 for values in outlets.values()):
            # Several suites have a case of this name.
            continue
        first, *others = outlets.items()
        yield from (
            f"{fact}: {first[0]} tells {_shown(first[1])}, {outlet} tells {_shown(values)}"
            for outlet, values in others
            if values != first[1]
        )


def _shown(values: set[Any]) -> str:
    return ", ".join(sorted(map(str, values)))


def _facts(seen: Seen) -> Iterator[tuple[str, str, Any]]:
    """Yield outlet, fact and value."""
    yield from _of_results(seen)
    yield from _of_markdown("comment", _plain(seen.text("comment")))
    yield from _of_markdown("summary", _plain(seen.text("summary")))
    yield from _of_page(seen.text("page"))
    yield from _of_junit(seen.text("junit"))
    if f"{seen.reports.name}/report.html" in seen.ended.out:
        yield from _of_terminal(seen.ended.out)
        text = _plain(seen.text("comment")).partition("\n")[0].partition(": ")[2].rstrip("…")
        repeats = (seen.results.get("memory") or {}).get("repeats")
        is_told = text in seen.ended.out or repeats or seen.results["gate"]["verdict"] == "passed"
        yield "terminal", "heading of the comment", bool(is_told)
        yield "results", "heading of the comment", True
    yield from _of_github(seen)
    badge = json.loads((seen.reports / "badge.json").read_text(encoding="utf-8"))
    yield from _of_findings(json.loads((seen.reports / "findings.json").read_text(encoding="utf-8")))
    found = re.match(r"(\d[\d,]*) of (\d[\d,]*) passed(?!, \d+ unchecked)", badge["message"])
    if found:
        yield "badge", "passed of cases", (found[1], found[2])
    if badge["color"] not in {"lightgrey", "red"}:
        yield "badge", "verdict", "passed"


def _of_results(seen: Seen) -> Iterator[tuple[str, str, Any]]:
    results = seen.results
    summary, comparison = results["summary"], results.get("comparison") or {}
    yield "results", "verdict", results["gate"]["verdict"]
    for name, key in (("cases", "cases"), ("failed", "failed"), ("errors", "errors"), ("skipped", "skipped")):
        yield "results", name, summary[key]
    for name, metric in summary["metrics"].items():
        yield "results", f"mean of {name}", _number(metric["mean"])
        yield "results", f"scores of {name}", metric["n"]
    if comparison:
        ref = (comparison["baseline"].get("ref") or "baseline").removeprefix("refs/heads/")
        yield "results", "base", ref


def _number(value: float | None) -> str:
    return "–" if value is None else f"{value:.2f}"


def _of_markdown(outlet: str, text: str) -> Iterator[tuple[str, str, Any]]:
    first = text.partition("\n")[0]
    yield outlet, "heading", first.removeprefix("### ")
    yield from _of_summary(text) if outlet == "summary" else _of_comment(text)
    yield from _tries(outlet, [(names, before, now) for names, before, now in _ROW.findall(text)])
    # The table of the gate's evidence.
    for name, p in re.findall(r"^\| ([^|]+) \| \w+ \| [^|]+ \| ([^|]+ %, limit [^|]+) \|", text, re.MULTILINE):
        yield outlet, f"p of {name}", p
    for counted, kind in _COUNTED.findall(text):
        yield outlet, f"cases in sentences that {kind}", counted
    for name in re.findall(r"(?:Passed|Score|Amount) on (.+?) → here", text):
        yield outlet, "base", name


def _of_summary(text: str) -> Iterator[tuple[str, str, Any]]:
    head, _, values = re.findall(r"^\|.*$", text, re.MULTILINE)[:3]
    numbers = dict(zip(_cells(head), _cells(values), strict=True))
    yield "summary", "verdict", numbers["Verdict"]
    yield "summary", "cases", int(numbers["Cases"].split(" ×")[0].replace(",", ""))
    yield "summary", "passed", numbers["Pass"]
    for title in ("Broke", "Failed", "Could not be run", "May be worse"):
        yield "summary", f"cases that {title.lower()}", numbers.get(title, "0")
    scored = re.compile(r"^\| ([^|]+) \| (\d\.\d\d) \| ([\d,]+) \| [^|]+ \|$", re.MULTILINE)
    for name, mean, amount in scored.findall(text):
        yield "summary", f"mean of {name}", mean
        yield "summary", f"scores of {name}", int(amount.replace(",", ""))
    compared = re.compile(
        r"^\| [✅❌⚪] \| ([^|]+) \| ([^|]+) \|(?: [^|]* \|)? [^|]+ \| ([\d,]+) \| [^|]+ \|$", re.MULTILINE
    )
    for name, means, amount in compared.findall(text):
        yield "summary", f"means of {name}", means
        yield "summary", f"scores of {name}", int(amount.replace(",", ""))


def _of_comment(text: str) -> Iterator[tuple[str, str, Any]]:
    if found := re.search(r"([\d,]+) cases?\b", text.splitlines()[-1]):
        yield "comment", "cases", int(found[1].replace(",", ""))
    if "\n| | … and" not in text:
        yield "comment", "causes", len(re.findall(r"^\| (?:❌|🔌) \|", text, re.MULTILINE))


def _of_page(text: str) -> Iterator[tuple[str, str, Any]]:
    (index,) = re.findall(r'<script type="application/json" id="index">(.*?)</script>', text, re.DOTALL)
    data = json.loads(index)
    head = re.search(r'<h1><span class="verdict \w+">(\w+)</span> (.*?)</h1>', text, re.DOTALL)
    assert head is not None
    yield "page", "verdict", head[1]
    yield "page", "title", _plain(head[2])
    if found := re.search(r"<dt>Passed</dt><dd>([\d,]+) of ([\d,]+) ", text):
        yield "page", "passed", found[1]
    rows = [
        dict(zip(data["row"], row, strict=True))
        for chunk in re.findall(r'<script type="application/json" class="rows">(.*?)</script>', text, re.DOTALL)
        for row in json.loads(chunk)
    ]
    kinds = [None if row["kind"] is None else data["kinds"][row["kind"]][1] for row in rows]
    for words in ("broke", "failed", "could not be run", "may be worse"):
        yield "page", f"cases that {words}", f"{kinds.count(words):,}"
    yield "page", "cases", sum(data["statuses"][row["status"]] != "removed" for row in rows)
    tries: dict[str, set[tuple[str, str]]] = defaultdict(set)
    for row, kind in zip(rows, kinds, strict=True):
        if kind in {"broke", "failed", "could not be run", "may be worse"}:
            was = f"{row['was'][0]:,}/{row['was'][1]:,}" if row["was"] else ""
            tries[row["name"]].add((was, f"{row['passes']:,}/{row['iterations']:,}"))
    for name, found_tries in tries.items():
        if len(found_tries) == 1:
            yield "page", f"tries of {_name(name)}", found_tries.pop()
    yield from _metrics_of_page(text)
    for name, p in re.findall(
        r"What the numbers of ([^<]+) mean</summary>(?:(?!</details>).)*?<dt>p ([^<]+)</dt>", text, re.DOTALL
    ):
        yield "page", f"p of {html.unescape(name)}", html.unescape(p)
    if "→ here</th>" in text:
        yield "page", "base", data["base"]


def _metrics_of_page(text: str) -> Iterator[tuple[str, str, Any]]:
    row = re.compile(r'<th scope="row">([^<]+)</th><td data-label="[^"]+ → here">([^<]+)</td>')
    for name, means in row.findall(text):
        yield "page", f"means of {html.unescape(name)}", means


def _of_junit(text: str) -> Iterator[tuple[str, str, Any]]:
    suites = list(ElementTree.fromstring(text))
    for name, attribute in {"cases": "tests", "failed": "failures", "errors": "errors", "skipped": "skipped"}.items():
        yield "junit", name, sum(int(suite.get(attribute, 0)) for suite in suites)
    for found in suites[0].iter("property") if suites else ():
        name, value = found.attrib["name"], found.attrib["value"]
        if name == "verdict":
            verdict, _, title = value.partition(": ")
            yield from (("junit", "verdict", verdict), ("junit", "title", title))
        if (told := re.match(r"mean (\S+) of ([\d,]+) score", value)) and name.startswith("metric."):
            yield "junit", f"mean of {name.removeprefix('metric.')}", told[1]
            yield "junit", f"scores of {name.removeprefix('metric.')}", int(told[2].replace(",", ""))
            if both := re.search(r"(\S+) → here (\S+)$", value):
                yield "junit", f"means of {name.removeprefix('metric.')}", f"{both[1]} → {both[2]}"


def _of_terminal(text: str) -> Iterator[tuple[str, str, Any]]:
    for line in text.splitlines():
        word, _, rest = line.partition("  ")
        if word in _BADGES:
            yield "terminal", "verdict", _BADGES[word]
            if found := re.search(r"([\d,]+) of ([\d,]+) (?:cases? )?pass(?:ed)?\b", rest):
                yield "terminal", "passed of cases", (found[1], found[2])
                yield "terminal", "passed", found[1]
    for counted, kind in _COUNTED.findall(text):
        yield "terminal", f"cases in sentences that {kind}", counted
    table = re.search(r"^ *mean +scores +pass .*\n((?:.+\n)*)", text, re.MULTILINE)
    row = re.compile(r"^ *(\S+) +([\d,]+) +(?:–|[<>]?\d+ %)((?: +\S+){3})? +(\S+)$", re.MULTILINE)
    for mean, amount, both, name in row.findall(table[1] if table else ""):
        yield "terminal", f"mean of {name}", mean
        yield "terminal", f"scores of {name}", int(amount.replace(",", ""))
        if both:
            yield "terminal", f"means of {name}", " → ".join(both.split()[:2])
    titles = dict(_TITLES.findall(text))
    for words in ("broke", "failed", "could not be run", "may be worse"):
        yield "terminal", f"cases that {words}", titles.get(words, "0")
    lines = _LINE.findall(text)
    yield from _tries("terminal", [(names, before, now) for names, _, before, now in lines])
    yield from (("terminal", "base", base) for _, base, _, _ in lines if base)
    reasons = re.findall(r"^(?:warning: |why    |sure\?  )(.+)$", text, re.MULTILINE)
    yield "terminal", "reasons told twice", len(reasons) - len(set(reasons))
    yield "results", "reasons told twice", 0


def _of_github(seen: Seen) -> Iterator[tuple[str, str, Any]]:
    results = read_results(seen.reports)
    assert results.gate is not None
    report = facts(results, results.gate, notes_of(results))
    content = content_of(report, PublishOptions())
    yield "check run", "verdict", content.verdict
    yield "check run", "title", content.title
    yield "comment", "title", _plain(seen.text("comment")).partition("\n")[0].removeprefix("### ").partition(" ")[2]
    yield "row of jobs", "passed of cases", tuple(content.row.split(" | ")[2].split(" of "))
    yield "check run", "heading", _plain(content.markdown).partition("\n")[0].removeprefix("### ")
    found = annotate(report)
    if len(found) == sum(bool(cause.cases) and cause.kind in LEVELS for cause in report.causes):
        yield "annotations", "causes", sum(item.level == "failure" for item in found)


def _of_findings(document: dict[str, Any]) -> Iterator[tuple[str, str, Any]]:
    yield "findings", "verdict", document["verdict"]
    kinds = Counter(item["state"] for item in document["findings"])
    if not document["more"]:
        for title, kind in (("broke", "broke"), ("failed", "failed"), ("could not be run", "error")):
            yield "findings", f"cases that {title}", f"{kinds[kind]:,}"
    for item in document["findings"]:
        before, _, now = item["change"].rpartition(" → ")
        if re.fullmatch(_TRIES, now):
            yield "findings", f"tries of {_name(item['case'])}", (before, now)


def _tries(outlet: str, lines: list[tuple[str, str, str]]) -> Iterator[tuple[str, str, Any]]:
    for names, before, now in lines:
        # A range tells of no single case.
        if " to " not in before + now:
            yield outlet, f"tries of {_first(names)}", (before, now.removesuffix(" each"))


def _plain(text: str) -> str:
    return html.unescape(re.sub(r"<[^>]*>|&#8203;", "", text)).replace("\u200b", "")


def _cells(line: str) -> list[str]:
    return [cell.strip() for cell in line.strip().strip("|").split("|")]


def _first(names: str) -> str:
    """Return the first of some names, which outlets list in the same order."""
    return _name(re.split(r", | and [\d,]+ more$", names)[0])


def _name(name: str) -> str:
    return " ".join(name.split())
