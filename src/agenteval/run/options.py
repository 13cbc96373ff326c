"""Every option of a run, as data: the command line, the action and the documentation read this table.

Imports little, because ``agenteval --help`` needs it.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from agenteval.gate.verdict import FailOn
    from agenteval.run.plan import Shard


def _times(text: str) -> int:
    digits = text.lstrip("0") if text.isascii() and text.isdigit() else ""
    if not digits:
        raise ValueError(f"{text!r} is not a whole number above 0")
    # The limit is that of `agenteval.suite.model`, which few commands need.
    if len(digits) > len("1000000") or int(digits) > 1_000_000:
        raise ValueError(f"{text!r} is more than 1,000,000")
    return int(digits)


def _count(text: str) -> int:
    if not (text.isascii() and text.isdigit()):
        raise ValueError(f"{text!r} is not a whole number")
    return int(text)


def _amount(text: str) -> float:
    try:
        number = float(text)
    except ValueError:
        number = -1.0
    if not 0 <= number < float("inf"):
        raise ValueError(f"{text!r} is not an amount in US dollars")
    return number


def _seconds(text: str) -> float:
    from agenteval.core.validation import seconds

    try:
        number = float(seconds(text))
    except OverflowError:
        number = 0.0
    if not 0 < number < float("inf"):
        raise ValueError(f"{text!r} is not a number of seconds above 0")
    return number


def _fail_on(text: str) -> frozenset[FailOn]:
    from agenteval.gate.verdict import parse_fail_on

    return parse_fail_on(text)


#: The engines that `--shard auto` knows: the variables of a job's index and of the number of jobs, the first index,
#: and the step. The last two are numbers, or the variables that have them.
ENGINES: Mapping[str, tuple[str, str, str, str]] = {
    "GitHub": ("STRATEGY_JOB_INDEX", "STRATEGY_JOB_TOTAL", "0", "1"),
    "GitLab": ("CI_NODE_INDEX", "CI_NODE_TOTAL", "1", "1"),
    "Kubernetes": ("JOB_COMPLETION_INDEX", "JOB_COMPLETIONS", "0", "1"),
    "AWS Batch": ("AWS_BATCH_JOB_ARRAY_INDEX", "AWS_BATCH_JOB_ARRAY_SIZE", "0", "1"),
    "Slurm": ("SLURM_ARRAY_TASK_ID", "SLURM_ARRAY_TASK_COUNT", "SLURM_ARRAY_TASK_MIN", "SLURM_ARRAY_TASK_STEP"),
    "Buildkite": ("BUILDKITE_PARALLEL_JOB", "BUILDKITE_PARALLEL_JOB_COUNT", "0", "1"),
    "CircleCI": ("CIRCLE_NODE_INDEX", "CIRCLE_NODE_TOTAL", "0", "1"),
}
_BY_HAND = "write I/N, as in 2/5"


def read_shard(text: str, environment: Mapping[str, str] = os.environ) -> Shard:
    """Return the shard that ``I/N`` names, or for ``auto`` the one that the engine's variables name."""
    from agenteval.run.plan import Shard

    if text != "auto":
        return Shard.parse(text)
    found = {engine: _named_shard(engine, environment) for engine in ENGINES if environment.get(ENGINES[engine][0])}
    if not found and any(environment.get(names[1]) == "1" for names in ENGINES.values()):
        # A job of GitLab that is not parallel has no index.
        return Shard(1, 1)
    if not found:
        names = ", ".join(names[0] for names in ENGINES.values())
        raise ValueError(f"'auto' finds no shard, as none of {names} is set; {_BY_HAND}")
    if len(set(found.values())) > 1:
        named = " and ".join(f"{shard} from {ENGINES[engine][0]} ({engine})" for engine, shard in found.items())
        raise ValueError(f"'auto' finds {named}; {_BY_HAND}")
    return Shard.parse(next(iter(found.values())))


def _named_shard(engine: str, environment: Mapping[str, str]) -> str:
    index, total, *_ = ENGINES[engine]
    texts = [environment.get(name, name) for name in ENGINES[engine]]
    if total not in environment:
        raise ValueError(f"'auto' finds {index}, but not {total}; set it to the number of shards, or {_BY_HAND}")
    if all(text.isascii() and text.isdigit() and len(text) < len("1000000000") for text in texts):
        place, number, first, step = map(int, texts)
        steps, rest = divmod(place - first, step or 1)
        if rest == 0 and 0 <= steps < number:
            return f"{steps + 1}/{number}"
    known = f"{index} is {texts[0]!r}, {total} is {texts[1]!r}"
    counted = f"indexes start at {texts[2]!r} in steps of {texts[3]!r}"
    raise ValueError(f"'auto' finds no shard, as {known}, and {counted}; {_BY_HAND}")


def _job(text: str) -> tuple[Any, ...]:
    import json

    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, list) or len(found) != len(("id", "matrix", "strategy")):
        raise ValueError("the action sets it; leave it out")
    return tuple(found)


def _paths(text: str) -> tuple[Path, ...]:
    import shlex

    try:
        return tuple(map(Path, shlex.split(text)))
    except ValueError as error:
        raise ValueError(f"a quote is not closed: {error}") from None


class Option(NamedTuple):
    """One option; an empty text means that there is no such form.

    Attributes:
        name: the attribute of ``Settings`` and of ``Inputs``.
        help: what it does, for the command line and for action.yml.
        flags: the names on the command line; empty for arguments, and for what only the action has.
        input: the input of the action.
        key: the key of agenteval.yaml that says the same.
        read: returns the value of a text; raises ``ValueError``.
        action: what argparse does with it.
        group: options of the command line that belong together.
        default: the value on the command line.
        action_default: the text that action.yml has.
        in_action: further sentences of action.yml.
        is_for_experts: whether only ``agenteval run --help-all`` shows it.
    """

    name: str
    help: str
    flags: tuple[str, ...] = ()
    input: str = ""
    key: str = ""
    read: Callable[[str], Any] = str
    metavar: str | None = None
    choices: tuple[str, ...] = ()
    action: str = ""
    group: str = ""
    default: Any = None
    action_default: str = ""
    in_action: str = ""
    is_for_experts: bool = False


# fmt: off
#: All options, in the order of the help.
OPTIONS: tuple[Option, ...] = (
    Option("suites", "suite files, directories, or patterns like agents/*; default: suites at the usual paths",
           input="suite", read=_paths, metavar="SUITE", in_action="Separated by white space or line ends; quote a "
           "path with spaces. In modes gate and prove: results files, or directories that contain them "
           "(agenteval-shards)."),
    Option("config",
           "configuration of all suites; default: for each suite the nearest agenteval.yaml at or above it",
           ("--config",), "config", read=Path, metavar="FILE"),
    Option("agent", "name in agenteval.yaml, replay:FILE, python:MODULE:NAME, or a URL", ("--agent",),
           metavar="AGENT"),
    Option("mode", "run: evaluates the suites and decides the gate. gate: decides by results that exist: shards of "
           "a run, runs of earlier steps, or results of another tool. prove: runs what may be worse in such results "
           "side by side with the base commit. publish: posts the results of another workflow run, in a workflow_run "
           "event", input="mode", choices=("run", "gate", "prove", "publish"), action_default="run"),
    Option("working_directory",
           "directory that contains the suites and that the agent starts in; default: the workspace",
           input="working-directory"),
    Option("setup", "Bash commands, one per line, that install the dependencies of agent and graders. They run "
           "before the evaluation, in the working directory, in a new Python virtual environment", input="setup"),
    Option("github_token", "token for reading the baseline and writing the comment and the check run. The job needs "
           'the permissions "actions: read", "pull-requests: write" and, with check-name, "checks: write". Suites '
           "and agents never see it", input="github-token", action_default="${{ github.token }}"),
    Option("baseline",
           "earlier run to compare with: results.json; on GitHub also auto (searched), or the id of a workflow run",
           ("--baseline",), "baseline", metavar="PATH", action_default="auto", in_action="auto: the results of the "
           "base branch from the artifacts of this workflow's runs, of the commit that the change is merged into, "
           "or the nearest one before it. none: no comparison."),
    Option("control", "deployment of the base commit's agent; default: `control:` of the agent", ("--control",),
           metavar="AGENT", is_for_experts=True),
    Option("history", "results.json files of earlier runs, at any depth, for the trend", ("--history",), read=Path,
           metavar="DIR", is_for_experts=True),
    Option("filter", "run only cases whose name or id contains this text", ("-k", "--filter"), metavar="TEXT"),
    Option("tags", "run only cases with this tag; repeatable", ("--tag",), metavar="TAG", action="append"),
    Option("cases", "run only the case with this name or id; repeatable", ("--case",), metavar="CASE",
           action="append"),
    Option("traces", "score recorded traces (a JSON Lines file, or a folder) without calling an agent",
           ("--traces",), read=Path, metavar="PATH", is_for_experts=True),
    Option("keep_going", "with --traces: leave out lines that are not traces", ("--keep-going",),
           action="store_true", is_for_experts=True),
    Option("failed", "run only the cases that did not pass in agenteval-report", ("--failed",),
           action="store_true", group="failed"),
    Option("failed_in", "run only the cases that did not pass in another run: results.json, or a directory with it",
           ("--failed-in",), read=Path, metavar="PATH", group="failed", is_for_experts=True),
    Option("out", "directory for the reports; default: agenteval-report, or agenteval-again for chosen cases",
           ("--out",), "report-dir", read=Path, metavar="DIR", action_default="agenteval-report",
           in_action="It is relative to the working directory."),
    Option("iterations", "number of times each case runs; default: that of the suite, else 1", ("--iterations",),
           key="iterations", read=_times, metavar="N"),
    Option("runs",
           "number of runs, each with the one before it as its baseline; together they are a baseline; default: 1",
           ("--runs",), "runs", read=_times, metavar="N", default=1, action_default="1",
           in_action="Only for commits of a branch: pull requests and merge groups have one run."),
    Option("concurrency", "cases that run at the same time; default: 8", ("--concurrency",), key="concurrency",
           read=_times, metavar="N", is_for_experts=True),
    Option("shard", "run only shard I of N, or auto: the one of this parallel job; `agenteval merge`, or mode gate, "
           "joins the shards and decides the gate", ("--shard",), "shard", read=read_shard, metavar="I/N",
           is_for_experts=True),
    Option("prove", "prove an improvement of a change too, side by side with the base commit, as on the base branch",
           ("--prove",), action="store_true", is_for_experts=True),
    Option("fail_on",
           "results that fail the gate: failures, regressions, unproven, errors (the default), suspicious; or none",
           ("--fail-on",), "fail-on", key="gate.fail_on", read=_fail_on, metavar="LIST",
           in_action="Separated by commas."),
    Option("max_llm_calls", "limit of requests to models in a run, including retries", ("--max-llm-calls",),
           key="llm.max_calls", read=_count, metavar="N", is_for_experts=True),
    Option("max_cost_usd", "limit of the cost of models in a run, in US dollars", ("--max-cost-usd",),
           key="llm.max_cost_usd", read=_amount, metavar="USD"),
    Option("time_limit_s", "time limit for the whole run in seconds; cases not finished by then are errors",
           ("--time-limit",), key="time_limit", read=_seconds, metavar="SECONDS", is_for_experts=True),
    Option("seed", "random seed; recorded in results.json", ("--seed",), read=_count, metavar="N",
           is_for_experts=True),
    Option("resume", "finish an interrupted run from the journal in --out", ("--resume",), action="store_true"),
    Option("use_cache", "neither read nor write the cache of model replies", ("--no-cache",), action="store_false",
           is_for_experts=True),
    Option("quiet", "show only the result, no progress", ("--quiet",), action="store_true"),
    Option("json", "print findings.json on standard output instead of the result", ("--json",), action="store_true"),
    Option("verbosity", "show every case with the result of each metric, and the means",
           ("-v", "--verbose"), action="count", default=0),
    Option("dry_run", "check everything, and show what the run would cost; call nothing", ("--dry-run",),
           action="store_true"),
    Option("github", "do what the action does, with the token GITHUB_TOKEN", ("--github",), action="store_true",
           group="github"),
    Option("baseline_artifact", "artifact with the reports, in the runs of the base branch; default: agenteval",
           ("--baseline-artifact",), "baseline-artifact", metavar="NAME", group="github", action_default="agenteval",
           in_action="In mode publish: in the run to publish.", is_for_experts=True),
    Option("cache_key", "secret of 16 or more characters, the same in every run that shares a cache. Replies and "
           "files that an earlier run cached are only used if that run had the same key; without one, none are. "
           "Suites and agents never see it", input="cache-key"),
    Option("cache_dir", "directory for the replies of judges and for downloaded files, relative to the workspace. "
           "actions/cache keeps it for the next runs, which need the same cache-key; default: nothing is kept",
           input="cache-dir"),
    Option("comment", "when to create a comment on the pull request; default: never", ("--comment",),
           "comment",
           choices=("always", "changes", "failures", "never"), group="github", action_default="always",
           in_action="always; changes: if a case broke or was repaired, or the gate failed; failures: if the gate "
           "failed; never. An existing comment is always updated, except with never.", is_for_experts=True),
    Option("comment_id", "distinguishes several comments on one pull request; default: all jobs share one",
           ("--comment-id",), "comment-id", metavar="ID", group="github", is_for_experts=True),
    Option("check_name", "name of a check run to create; default: no check run", ("--check-name",), "check-name",
           metavar="NAME", group="github", in_action="Without one, the job shows at most ten annotations.",
           is_for_experts=True),
    Option("fork_results", "in mode publish: who accepts the results of a fork's job, which the fork can forge. "
           'label: a person with write access, by the label "agenteval: accept results". accepted: the reviewers of '
           "the environment of this job. The check run is action_required before", input="fork-results",
           choices=("label", "accepted"), action_default="label"),
    Option("job", "internal: the id of the job, which older servers do not have, its values of a matrix, and its "
           "place there", input="job", read=_job, action_default='["${{ job.check_run_id }}", ${{ toJSON(matrix) }}, '
           "${{ toJSON(strategy) }}]"),
)
# fmt: on

#: The options by name.
BY_NAME: Mapping[str, Option] = {option.name: option for option in OPTIONS}

#: The options that are inputs of the action, by the name of the input.
INPUTS: Mapping[str, Option] = {option.input: option for option in OPTIONS if option.input}


def help_of(key: str) -> str:
    """Return what a key of agenteval.yaml does."""
    return next(option.help for option in OPTIONS if option.key == key)


_TEMPLATE = "write `templates: {{{}: FILE}}` in agenteval.yaml"
_ANNOTATED = "leave it out: failed and broken cases are always annotated"
#: What to write instead of an option, an input or a key that is gone, where no other one has its name.
GONE: Mapping[str, str] = {
    "base_agent": "write --control",
    "max_time": "write --time-limit",
    "comment_template": _TEMPLATE.format("comment"),
    "summary_template": _TEMPLATE.format("summary"),
    "annotations": _ANNOTATED,
    "no_annotations": _ANNOTATED,
    "allow_env": "write `pass_env: [NAME]`, which names what suites and agents get",
    "baseline_branch": "leave it out: without results of the base branch, those of the default branch are used, and "
    "`baseline` can name a workflow run",
}


def other_place(name: str) -> str:
    """Return where an option is written that is no such input or key; empty if no option has the name."""
    plain = name.removeprefix("--").replace("-", "_")
    for option in OPTIONS:
        section, _, key = option.key.rpartition(".")
        if plain not in {option.name, key, option.input.replace("-", "_")}:
            continue
        if key:
            text = f"{key}: {option.metavar}"
            return f"write `{f'{section}: {{{text}}}' if section else text}` in agenteval.yaml"
        if option.flags:
            return f"write {option.flags[-1]} on the command line"
        return f"it is an input of the action: {option.input}"
    return GONE.get(plain, "")
