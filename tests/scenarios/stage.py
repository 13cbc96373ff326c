"""Plays scenarios: the scripted agent and model, the directory, and the command line."""

from __future__ import annotations

import contextlib
import io
import json
import os
import re
import shlex
import subprocess
import tempfile
import time
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from tests.integration import model_server
from tests.scenarios.scenario import Scenario, Seen
from tests.support import (
    PATIENCE_S,
    Answer,
    Ended,
    HangUp,
    Service,
    environment,
    serving,
    trusting_one_authority,
    verdict_of,
)

from agenteval.cli import main as cli

_SCRIPTED = 'agents: {default: {http: "${AGENT_URL}", retries: 0}}\n'
_BESIDE = 'agents: {default: {http: "${AGENT_URL}", control: "${BASE_URL}", retries: 0}}\n'
_VARIABLES = {
    # Else each word of each command's help is looked for in a file of translations.
    "LANGUAGE": "C",
    "OPENAI_API_KEY": model_server.KEY,
    "GIT_AUTHOR_NAME": "A",
    "GIT_AUTHOR_EMAIL": "a@example.com",
    "GIT_COMMITTER_NAME": "A",
    "GIT_COMMITTER_EMAIL": "a@example.com",
    "GIT_AUTHOR_DATE": "2026-01-01T00:00:00Z",
    "GIT_COMMITTER_DATE": "2026-01-01T00:00:00Z",
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_CONFIG_SYSTEM": os.devnull,
}

_TOKEN = "ghs_0123456789abcdefghijklmnopqrstuvwxyz"
#: What a runner of GitHub sets for a step.
_RUNNER = {
    "GITHUB_ACTIONS": "true",
    "GITHUB_ACTOR": "someone",
    "GITHUB_API_URL": "http://127.0.0.1:9",
    "GITHUB_EVENT_PATH": "runner/event",
    "GITHUB_OUTPUT": "runner/output",
    "GITHUB_REF": "refs/heads/main",
    "GITHUB_REPOSITORY": "org/bot",
    "GITHUB_RUN_ID": "99",
    "GITHUB_SHA": "c" * 40,
    "GITHUB_STEP_SUMMARY": "runner/summary",
}


class _Script:
    """Replies by key; those of a list come one after the other, and the last one stays."""

    def __init__(self) -> None:
        self._replies: Any = {}
        self._given: dict[str, int] = {}

    def write(self, replies: Any) -> None:
        self._replies, self._given = replies, {}

    def next(self, key: str) -> Any:
        reply = self._replies[key]
        if not isinstance(reply, list):
            return reply
        at = self._given.get(key, 0)
        self._given[key] = at + 1
        return reply[min(at, len(reply) - 1)]

    def answer(self, asked: Any) -> Answer:
        """Answer a request to the agent by its case or its input, or the only argument of a tool."""
        request = asked if isinstance(asked, dict) else {"input": str(asked)}
        question = str(request.get("input", ""))
        if self._replies == "echo":
            return Answer({"response": question})
        name = str(request.get("case", "")).rpartition("::")[2]
        key = next((key for key in (name, question, "*") if key in self._replies), None)
        reply = f"no scripted reply for {name!r}" if key is None else self.next(key)
        if reply == "hang up":
            raise HangUp
        if isinstance(reply, dict) and "http" in reply:
            time.sleep(reply.get("after", 0))
            headers = {**reply.get("headers", {})}
            kind = headers.pop("Content-Type", "application/json")
            return Answer(reply.get("body", ""), status=reply["http"], content_type=kind, headers=headers)
        return Answer(reply if isinstance(reply, dict) else {"response": str(reply)})

    def judge(self, asked: model_server.RecordedQuestion) -> model_server.Answer:
        """Answer a model's prompt by the first key that stands in it, else by ``*``."""
        if asked.embedded is not None:
            return model_server.embeds(asked, model_server.words(asked.embedded))
        prompt = "\n".join(str(message["content"]) for message in asked.body["messages"])
        rest = "*" if "*" in self._replies else None
        key = next((key for key in self._replies if key != "*" and key in prompt), rest)
        reply = "no scripted reply" if key is None else self.next(key)
        if isinstance(reply, dict) and "http" in reply:
            return model_server.error(reply["http"], reply.get("body", "refused"))
        if isinstance(reply, dict) and "call" in reply:
            function = {"name": reply["call"], "arguments": json.dumps(reply["args"])}
            calls = [{"id": f"call-{len(self._given)}", "type": "function", "function": function}]
            return model_server.says(asked, None, "tool_calls", tool_calls=calls)
        return model_server.says(asked, reply if isinstance(reply, str) else json.dumps(reply))


class _Github:
    """GitHub's API: a reply for each method and path, with the parameters that it needs; the longest one counts."""

    def __init__(self) -> None:
        self._replies: dict[str, Answer] = {}

    def write(self, replies: Mapping[str, Any], folder: Path) -> None:
        """Take the replies of a step; zip files have the content that a folder has now."""
        self._replies = {asked: self._answer(reply, folder) for asked, reply in replies.items()}

    def answer(self, line: str) -> Answer:
        given = set(re.split("[?&]", line))
        fitting = [asked for asked in self._replies if set(re.split("[?&]", asked)) <= given]
        return self._replies[max(fitting, key=len)] if fitting else Answer({"message": "Not Found"}, status=404)

    def _answer(self, reply: Any, folder: Path) -> Answer:
        if isinstance(reply, dict) and "zip" in reply:
            content, reports = io.BytesIO(), folder / reply["zip"]
            with zipfile.ZipFile(content, "w") as archive:
                for file in reports.iterdir():
                    archive.write(file, file.name)
            return Answer(content.getvalue())
        if isinstance(reply, dict) and "http" in reply:
            return Answer(reply.get("body", {}), status=reply["http"], headers=reply.get("headers", {}))
        return Answer(json.dumps(reply))


@dataclass(frozen=True)
class Stage:
    """The scripted agent, model and GitHub, what they were asked, and the variables that name their addresses."""

    agent: _Script
    base: _Script
    judge: _Script
    github: _Github
    service: Service
    hub: Service
    model: model_server.ModelServer
    addresses: Mapping[str, str]

    def forget(self) -> None:
        """Forget what was asked."""
        for service in (self.service, self.hub):
            for asked in (service.requests, service.headers, service.lines):
                asked.clear()
        self.model.asked.clear()

    @property
    def asked(self) -> Mapping[str, Sequence[str]]:
        """What the agent and the model were asked: line, headers and body of each request."""
        service = zip(self.service.lines, self.service.headers, self.service.requests, strict=True)
        agent = [
            f"{line}\n{_lines(headers)}\n{json.dumps(body, ensure_ascii=False)}" for line, headers, body in service
        ]
        model = [json.dumps(asked.body, ensure_ascii=False) for asked in self.model.asked]
        sent = zip(self.hub.lines, self.hub.requests, strict=True)
        hub = [f"{line} {json.dumps(body, ensure_ascii=False)}" for line, body in sent]
        return {"agent": agent, "judge": model, "github": hub}


def _lines(headers: Mapping[str, str]) -> str:
    return "\n".join(f"{name}: {value}" for name, value in headers.items())


@contextlib.contextmanager
def opened_stage() -> Iterator[Stage]:
    """Start the scripted agent, model and GitHub for the length of the block."""
    agent, base, judge, github = _Script(), _Script(), _Script(), _Github()
    with (
        serving(agent.answer) as service,
        serving(base.answer) as other,
        serving(lambda _: github.answer(hub.lines[-1])) as hub,
        model_server.serving() as model,
        tempfile.TemporaryDirectory() as trusted,
    ):
        Path(trusted).chmod(0o755)
        model.respond = judge.judge
        api = f"{model.url}/v1"
        addresses = {"AGENT_URL": service.url, "MODEL_URL": api, "MODEL_HOST": model.url, "OPENAI_BASE_URL": api}
        addresses |= {"BASE_URL": other.url, "GITHUB_URL": hub.url.removesuffix("/chat")}
        addresses |= trusting_one_authority(Path(trusted))
        yield Stage(agent, base, judge, github, service, hub, model, addresses)


def play(scenario: Scenario, stage: Stage) -> Iterator[tuple[Mapping[str, Any], Seen]]:
    """Play the steps of a scenario in a new directory; yield each with what it left, before the next one."""
    with tempfile.TemporaryDirectory(prefix="scenario-", ignore_cleanup_errors=True) as name:
        # As root, agents run as another user.
        Path(name).chmod(0o755)
        folder = Path(name).resolve() / "project"
        folder.mkdir()
        for step in scenario.steps:
            _prepare(step, folder, stage)
            given = {key: _filled(str(value), stage.addresses) for key, value in step.get("env", {}).items()}
            # Replies of judges must not come from another scenario.
            cache = {"AGENTEVAL_CACHE": str(folder / ".cache")}
            hub = (
                {"GITHUB_API_URL": stage.addresses["GITHUB_URL"], "GITHUB_TOKEN": _TOKEN} if "github" in step else {}
            )
            runner = {**_runner(step, folder), **hub}
            variables = {**environment(), **_VARIABLES, **cache, **stage.addresses, **runner, **given}
            if before := step.get("before"):
                subprocess.run(["bash", "-euc", before], cwd=folder, env=variables, check=True, timeout=PATIENCE_S)
            words = [_filled(word, stage.addresses) for word in shlex.split(step.get("run", "run"))]
            stage.forget()
            ended = _in_this_process(*words, cwd=folder, env=variables)
            seen = Seen(ended, folder, folder / _report_directory(words), stage.asked)
            yield step, seen
            if (
                (again := _comparison_of(words))
                and (seen.reports / "results.json").exists()
                and ended.status in {0, 1, 3}
            ):
                _check_same_verdict(ended, _in_this_process(*again, cwd=folder, env=variables))


def _comparison_of(words: Sequence[str]) -> list[str]:
    """Return the command that compares the results of a run with the same baseline; empty for other commands."""
    given = dict(pairwise(words))
    if (
        words[:1] != ["run"]
        or given.get("--baseline", "auto") in {"auto", "5"}
        or {"--shard", "--runs", "--traces"} & set(words)
    ):
        return []
    options = [word for name in ("--config", "--fail-on") if name in given for word in (name, given[name])]
    return ["compare", _report_directory(words), given["--baseline"], *options]


def _check_same_verdict(ran: Ended, compared: Ended) -> None:
    """Check that a comparison of the files says what the run said."""
    told = [(ended.status, verdict_of(ended.out)) for ended in (ran, compared)]
    if told[0] != told[1]:
        raise AssertionError(f"the run says {told[0]}, and compare {told[1]}\n{compared.out}\n{compared.err}")


def _runner(step: Mapping[str, Any], folder: Path) -> dict[str, str]:
    """Write the files of a runner, and return its variables; neither without an event."""
    if not (event := step.get("event")):
        return {}
    ((name, payload),) = event.items()
    (folder / "runner").mkdir(exist_ok=True)
    for file, text in {"event": json.dumps(payload), "output": "", "summary": ""}.items():
        (folder / "runner" / file).write_text(text, encoding="utf-8")
    return {**_RUNNER, "GITHUB_EVENT_NAME": name, "GITHUB_WORKSPACE": str(folder)}


def _filled(text: str, addresses: Mapping[str, str]) -> str:
    """Return a text with addresses in place of ``${AGENT_URL}`` and its like."""
    return re.sub(r"\$\{(\w+)\}", lambda found: addresses.get(found[1], found[0]), text)


def _report_directory(words: Sequence[str]) -> str:
    is_part = words[:1] == ["run"] and {"--failed", "--failed-in", "--case", "--tag", "-k", "--filter"} & set(words)
    usual = "agenteval-again" if is_part and "--github" not in words else "agenteval-report"
    return next((name for option, name in pairwise(words) if option in {"--out", "-o"}), usual)


def _prepare(step: Mapping[str, Any], folder: Path, stage: Stage) -> None:
    """Write the files of a step, and what the agent and the model say in it."""
    for path, text in step.get("files", {}).items():
        if text is None:
            continue
        file = folder / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text if isinstance(text, str) else json.dumps(text), encoding="utf-8")
    for path, changes in step.get("replace", {}).items():
        text = (folder / path).read_text(encoding="utf-8")
        for old, new in changes.items():
            if old not in text:
                raise ValueError(f"{old!r} does not stand in {path}")
            text = text.replace(old, new)
        (folder / path).write_text(text, encoding="utf-8")
    for path in step.get("remove", ()):
        (folder / path).unlink()
    _write_scripts(step, folder, stage)


def _write_scripts(step: Mapping[str, Any], folder: Path, stage: Stage) -> None:
    """Write what the agents and the model say, and the definition of an agent that no file defines."""
    if step.get("agent") is not None:
        stage.agent.write(step["agent"])
        config = folder / "agenteval.yaml"
        written = config.read_text(encoding="utf-8") if config.exists() else ""
        if not re.search(r"^agents:", written, re.MULTILINE):
            config.write_text(f"{written}\n{_BESIDE if 'base' in step else _SCRIPTED}", encoding="utf-8")
    for key, script in (("base", stage.base), ("judge", stage.judge)):
        if key in step:
            script.write(step[key])
    if "github" in step:
        stage.github.write(json.loads(_filled(json.dumps(step["github"]), stage.addresses)), folder)


def _in_this_process(*words: str, cwd: Path, env: Mapping[str, str]) -> Ended:
    """Run the command line in this process: many times as fast as in a new one."""
    out, err = io.BytesIO(), io.BytesIO()
    streams = [io.TextIOWrapper(stream, encoding="utf-8", write_through=True) for stream in (out, err)]
    with pytest.MonkeyPatch.context() as patch:
        for name in os.environ.keys() - env.keys():
            patch.delenv(name)
        for name, value in env.items():
            patch.setenv(name, value)
        patch.chdir(cwd)
        with contextlib.redirect_stdout(streams[0]), contextlib.redirect_stderr(streams[1]):
            try:
                status = cli.main(list(words))
            except SystemExit as error:
                status = error.code if isinstance(error.code, int) else -1
    return Ended(status, out.getvalue().decode(), err.getvalue().decode())
