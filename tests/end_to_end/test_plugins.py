"""Extensions of other distributions: the command beside a small installed package with entry points."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.end_to_end.conftest import Command
from tests.mistakes import shown
from tests.support import Ended, agenteval, case, environment, results_in, statuses, write_suite

FORMAT = """
from agenteval.core.errors import ConfigError
from agenteval.suite.formats.base import Format, Source
from agenteval.suite.model import Case, MetricConfig, Suite, Turn

def load(source):
    lines = [line.split("=") for line in source.text().splitlines()]
    wrong = [number for number, line in enumerate(lines, 1) if len(line) != 2]
    problems = [source.problem("needs `question=answer`", number) for number in wrong]
    if problems:
        raise ConfigError(problems)
    metric = MetricConfig("equality", "equality", "standard")
    cases = [Case(f"{source.name}::{q}", q, (Turn(q, ground_truth=a, metrics=(metric,)),)) for q, a in lines]
    return Suite(path=source.name, name="lines", format="acme.lines", cases=tuple(cases))

FORMAT = Format("acme.lines", "Acme's lines", ("*.lines",), lambda source: source.path.suffix == ".lines", load,
                schema=lambda: {"type": "string"})
GREEDY = Format("acme.greedy", "all", (), lambda source: True, lambda source: 1 / 0)
MISNAMED = Format("agentci", "all", (), lambda source: True, load)
"""

AGENT = """
import os
from dataclasses import dataclass

@dataclass
class Options:
    prefix: str = ""

@dataclass
class Reply:
    response: str
    metadata: dict

class Agent:
    Options = Options

    def __init__(self, options, context):
        self.prefix, self.config, self.sessions = options.prefix, context.config, 0

    async def start(self):
        if self.config.get("broken"):
            raise OSError("no licence")

    def session(self):
        self.sessions += 1
        return Session(self)

    async def close(self):
        with open("closed.txt", "w") as file:
            file.write(str(self.sessions))

class Session:
    def __init__(self, agent):
        self.agent, self.turns = agent, 0

    async def send(self, request):
        self.turns += 1
        return Reply(self.agent.prefix + request.input + " " + str(self.turns), {"pid": os.getpid()})

    async def end(self):
        with open("ended.txt", "a") as file:
            file.write(".")
"""


REPORTER = """\
import json
from agenteval.report.parts import ReportFile

def render(report):
    cases = [[case.name, case.status] for suite in report.results.suites for case in report.cases_of(suite)]
    content = json.dumps({"passed": report.passed, "cases": cases})
    yield ReportFile("ctrf.json", content, ("a note of ctrf",))

def folder(report):
    yield ReportFile("../escaped.json", "{}")

def taken(report):
    yield ReportFile("REPORT.html", "mine")

def raising(report):
    raise KeyError("no such key")

def text(report):
    yield "ctrf.json"

def leave(report):
    raise SystemExit(0)

constant = 7
"""
REPORTERS = ("render", "folder", "taken", "raising", "text", "leave", "constant")

METRIC = "class Brief:\n    def measure(self, answer):\n        return 0.75\n"


@pytest.fixture
def site(tmp_path: Path) -> Path:
    folder = tmp_path / "site"
    folder.mkdir()
    (folder / "acme_format.py").write_text(FORMAT, encoding="utf-8")
    (folder / "acme_agent.py").write_text(AGENT, encoding="utf-8")
    (folder / "acme_metric.py").write_text(METRIC, encoding="utf-8")
    (folder / "acme_reporters.py").write_text(REPORTER, encoding="utf-8")
    (folder / "acme_broken.py").write_text("import not_there_at_all", encoding="utf-8")
    install(
        folder,
        "acme",
        {
            "agenteval.formats": {
                "acme.lines": "acme_format:FORMAT",
                "acme.greedy": "acme_format:GREEDY",
                "acme.misnamed": "acme_format:MISNAMED",
                "acme.broken": "acme_broken:FORMAT",
                "holodeck": "acme_format:FORMAT",
            },
            "agenteval.agents": {"acme.parrot": "acme_agent:Agent", "acme.broken": "acme_broken:Agent"},
            "agenteval.reporters": {
                "acme.missing": "acme_reporters:none",
                **{f"acme.{name}": f"acme_reporters:{name}" for name in REPORTERS},
            },
            "agenteval.metrics": {"acme.brief": "acme_metric:Brief"},
        },
    )
    return folder


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    folder.mkdir()
    return folder


def install(site: Path, name: str, groups: Mapping[str, Mapping[str, str]]) -> None:
    """Lay a distribution out as pip does."""
    info = site / f"{name}-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n", encoding="utf-8")
    lines = [
        line
        for group, entries in groups.items()
        for line in (f"[{group}]", *(f"{key} = {value}" for key, value in entries.items()))
    ]
    (info / "entry_points.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")


Run = Callable[..., Ended]


@pytest.fixture
def run(project: Path, site: Path, command: Command, monkeypatch: pytest.MonkeyPatch) -> Iterator[Run]:
    """Runs the command in this process, which the package is installed for."""
    monkeypatch.syspath_prepend(site)
    # For workers.
    monkeypatch.setenv("PYTHONPATH", str(site))
    monkeypatch.chdir(project)

    def run(*arguments: str, plugins: str = "") -> Ended:
        monkeypatch.setenv("AGENTEVAL_PLUGINS", plugins)
        return command(*arguments)

    yield run
    for name in [name for name in sys.modules if name.startswith("acme_")]:
        del sys.modules[name]


def run_installed(project: Path, site: Path, *arguments: str, plugins: str = "") -> Ended:
    """Run the installed command, in a process of its own."""
    return agenteval(
        *arguments, cwd=project, env=environment(PYTHONPATH=str(site), AGENTEVAL_PLUGINS=plugins, GITHUB_ACTIONS="")
    )


def write_config(project: Path, **agent: Any) -> None:
    definition = {"interpreter": sys.executable, **agent}
    (project / "agenteval.yaml").write_text(yaml.safe_dump({"agents": {"default": definition}}), encoding="utf-8")


class TestFormats:
    @pytest.fixture(autouse=True)
    def suite(self, project: Path) -> None:
        (project / "sums.lines").write_text("1+1=2\n2+2=4\n", encoding="utf-8")
        (project / "agent.py").write_text("def reply(request):\n    return str(eval(request['input']))\n")
        write_config(project, python="agent:reply")

    def test_one_that_is_named_is_used(self, project: Path, site: Path) -> None:
        ended = run_installed(project, site, "run", plugins="acme.lines")
        assert ended.status == 0, ended.text
        results = results_in(project)
        assert statuses(results) == {"1+1": "passed", "2+2": "passed"}
        assert [suite.format for suite in results.suites] == ["acme.lines"]

    def test_one_that_is_not_named_never_runs(self, run: Run) -> None:
        ended = run("validate", "sums.lines")
        assert ended.status == 2
        (mistake,) = shown(ended.err)
        assert mistake.says("sums.lines: not a suite file of a known format (holodeck, agentci, fluxloop)"), ended.err

    def test_its_problems_have_their_places(self, project: Path, run: Run) -> None:
        (project / "sums.lines").write_text("1+1=2\nwhat\nwhy\n", encoding="utf-8")
        ended = run("validate", plugins="acme.lines")
        assert ended.status == 2
        (mistake,) = shown(ended.err)
        assert mistake.says("sums.lines:2: needs `question=answer`"), ended.err
        # The other place is that of the third line.
        assert mistake.more == 1
        (project / "sums.lines").write_text("1+1=2\n2+2=4\nwhy\n", encoding="utf-8")
        (mistake,) = shown(run("validate", plugins="acme.lines").err)
        assert mistake.says("sums.lines:3: needs `question=answer`")

    @pytest.mark.parametrize(
        ("plugins", "problem"),
        [
            ("acme.broken", "acme.broken: cannot be imported from acme 1.0: ModuleNotFoundError: No module named"),
            ("acme.greedy", "sums.lines: format 'acme.greedy' of acme 1.0 cannot load the file: ZeroDivisionError"),
            ("acme.misnamed", "acme.misnamed: acme 1.0 registers a format named 'agentci'; it must be"),
            ("acme.lime", "AGENTEVAL_PLUGINS: no installed distribution registers 'acme.lime'; known: acme.broken"),
            ("holodeck", "AGENTEVAL_PLUGINS: no installed distribution registers 'holodeck'"),
        ],
    )
    def test_mistakes(self, run: Run, plugins: str, problem: str) -> None:
        ended = run("validate", "sums.lines", plugins=plugins)
        assert ended.status == 2
        (mistake,) = shown(ended.err)
        assert mistake.says(problem), ended.err
        assert "Traceback" not in ended.err

    def test_of_two_distributions_none_is_chosen(self, site: Path, run: Run) -> None:
        install(site, "bolt", {"agenteval.formats": {"acme.lines": "acme_format:FORMAT"}})
        ended = run("validate", plugins="acme.lines")
        assert ended.status == 2
        assert "acme.lines: several distributions register it (" in ended.err
        assert "acme 1.0" in ended.err
        assert "bolt 1.0" in ended.err

    def test_a_name_without_a_dot_replaces_no_built_in_format(self, project: Path, run: Run) -> None:
        write_suite(project, [case("a", "1+1", "2")])
        ended = run("run", "agent.yaml")
        assert ended.status == 0, ended.text
        assert [suite.format for suite in results_in(project).suites] == ["holodeck"]


class TestAgents:
    @pytest.fixture(autouse=True)
    def suite(self, project: Path) -> None:
        turns = [{"input": "x", "ground_truth": "> x 1"}, {"input": "y", "ground_truth": "> y 2"}]
        write_suite(project, [case("a", "hello", "> hello 1"), {"name": "two", "turns": turns}])

    def test_it_runs_in_a_worker(self, project: Path, site: Path) -> None:
        write_config(project, kind="acme.parrot", options={"prefix": "> "})
        ended = run_installed(project, site, "run")
        assert ended.status == 0, ended.text
        assert statuses(results_in(project)) == {"a": "passed", "two": "passed"}
        assert (project / "closed.txt").read_text() == "2"
        assert (project / "ended.txt").read_text() == ".."

    @pytest.mark.parametrize(
        ("agent", "problem"),
        [
            ({"kind": "acme.parot"}, "no distribution registers the kind 'acme.parot' for "),
            ({"kind": "acme.parot"}, "registered: acme.broken, acme.parrot"),
            ({"kind": "acme.parrot", "config": {"broken": True}}, "of acme 1.0 cannot start: OSError: no licence"),
            ({"kind": "acme.parrot", "options": {"prefx": ""}}, "of acme 1.0 cannot start: TypeError"),
            ({"kind": "parrot"}, "agents.default.kind: 'parrot' is no registered kind: their names contain a dot"),
            ({"python": "a:b", "options": {}}, "`options` is for agents of type plugin, not python"),
        ],
    )
    def test_mistakes(self, project: Path, run: Run, agent: Mapping[str, Any], problem: str) -> None:
        write_config(project, **agent)
        ended = run("run")
        assert ended.status == 2, ended.text
        (mistake,) = shown(ended.err)
        assert mistake.place.startswith("agenteval.yaml:")
        assert mistake.says(problem), ended.err
        assert "Traceback" not in ended.err

    def test_a_kind_that_cannot_be_imported_is_a_defect_of_the_setup(self, project: Path, run: Run) -> None:
        write_config(project, kind="acme.broken")
        ended = run("run")
        assert ended.status == 3, ended.text
        assert "kind 'acme.broken' cannot be imported from acme 1.0: ModuleNotFoundError" in ended.err
        assert "Traceback" not in ended.err


def test_a_metric_runs_in_the_worker(project: Path, run: Run) -> None:
    write_suite(project, [case("a")])
    keys = {
        "agents": {"default": {"command": ["cat"], "reply": "text"}},
        "metrics": [{"type": "acme.brief", "threshold": 0.5}],
    }
    (project / "agenteval.yaml").write_text(yaml.safe_dump(keys), encoding="utf-8")
    run("run", "--fail-on", "none")
    results = results_in(project)
    ((_, found),) = results.cases()
    assert [(score.score, score.passed) for score in found.scores if score.id == "acme.brief"] == [(0.75, True)]
    assert [(plugin.name, plugin.version) for plugin in results.tool.plugins] == [("acme", "1.0")]


class TestReporters:
    @pytest.fixture(autouse=True)
    def suite(self, project: Path) -> None:
        write_suite(project, [case("hello"), case("bye", ground_truth="other")], agent={"replay": "replies.jsonl"})
        (project / "replies.jsonl").write_text(
            '{"case": "hello", "response": "hello"}\n{"case": "bye", "response": "hello"}\n', encoding="utf-8"
        )

    def reported(self, project: Path, run: Run, reports: str, allowed: str) -> Ended:
        (project / "agenteval.yaml").write_text(f"iterations: 1\nreports: {reports}\n", encoding="utf-8")
        return run("run", "--out", "out", plugins=allowed)

    @pytest.mark.parametrize(
        ("reports", "allowed", "message"),
        [
            (
                "[acme.render]",
                "",
                "agenteval.yaml:2: reports[0]: the reporter 'acme.render' runs in agenteval's process only where "
                "AGENTEVAL_PLUGINS names it; set AGENTEVAL_PLUGINS=acme.render if you trust its package",
            ),
            (
                "[acme.rendr]",
                "acme.render",
                "no installed package has a reporter 'acme.rendr'; did you mean 'acme.render'?",
            ),
            ("[junit]", "", "'junit' is built in and always written; list reporters of other packages only"),
            (
                "[acme.missing]",
                "acme.missing",
                "acme.missing: cannot be imported from acme 1.0: AttributeError",
            ),
            ("[acme.constant]", "acme.constant", "the reporter 'acme.constant' is not a function"),
        ],
    )
    def test_mistakes(self, project: Path, run: Run, reports: str, allowed: str, message: str) -> None:
        done = self.reported(project, run, reports, allowed)
        assert done.status == 2
        (mistake,) = shown(done.err)
        assert mistake.says(message), done.err
        assert mistake.place == "agenteval.yaml:2"
        assert "^ reports[]\n" in mistake.text
        assert not (project / "out" / "results.json").exists()

    def test_one_writes_its_file(self, project: Path, run: Run) -> None:
        done = self.reported(project, run, "[acme.render]", "acme.render")
        assert done.status == 1, done.err
        content = json.loads((project / "out" / "ctrf.json").read_text(encoding="utf-8"))
        assert content == {"passed": False, "cases": [["hello", "passed"], ["bye", "failed"]]}
        assert "warning: acme.render: a note of ctrf" in done.out

    def test_those_that_fail_lose_no_other_report(self, project: Path, run: Run) -> None:
        names = [f"acme.{name}" for name in ("folder", "taken", "raising", "text", "leave", "render")]
        done = self.reported(project, run, f"[{', '.join(names)}]", ",".join(names))
        assert done.status == 3
        for line in (
            "reports: acme.folder: '../escaped.json' is not a plain file name; use letters",
            "reports: acme.taken: 'REPORT.html' already exists; choose another name",
            "reports: acme.raising: KeyError: 'no such key'",
            "reports: acme.text: it yields str instead of ReportFile",
            "reports: acme.leave: SystemExit: 0",
        ):
            assert any(mistake.says(line) for mistake in shown(done.err)), done.err
        assert "Traceback" not in done.err
        written = {path.name for path in (project / "out").iterdir()}
        assert {
            "results.json",
            "junit.xml",
            "comment.md",
            "summary.md",
            "badge.json",
            "trend.json",
            "ctrf.json",
        } <= written
        assert (project / "out" / "report.html").read_text(encoding="utf-8").startswith("<!DOCTYPE html>")
        assert not (project / "escaped.json").exists()


class TestPluginsCommand:
    def test_table(self, run: Run) -> None:
        ended = run("plugins", plugins="acme.lines")
        assert (ended.status, ended.err) == (0, "")
        head, *lines = ended.out.splitlines()
        refused = "no: not in AGENTEVAL_PLUGINS"
        assert head.split() == ["NAME", "GROUP", "DISTRIBUTION", "VERSION", "MAY", "RUN"]
        assert all(line.split()[2:4] == ["acme", "1.0"] for line in lines)
        assert {tuple(line.split()[1::-1]): line.split(maxsplit=4)[4] for line in lines} == {
            ("agenteval.metrics", "acme.brief"): "yes",
            **{
                ("agenteval.reporters", f"acme.{name}"): "no: not in AGENTEVAL_PLUGINS"
                for name in (*REPORTERS, "missing")
            },
            ("agenteval.agents", "acme.broken"): "yes",
            ("agenteval.agents", "acme.parrot"): "yes",
            ("agenteval.formats", "acme.broken"): refused,
            ("agenteval.formats", "acme.greedy"): refused,
            ("agenteval.formats", "acme.lines"): "yes",
            ("agenteval.formats", "acme.misnamed"): refused,
            ("agenteval.formats", "holodeck"): "no: the name needs a dot",
        }
