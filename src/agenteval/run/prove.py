"""Proves or clears what may be worse in a finished run: in one job, or in shards that a merge decides on."""

from __future__ import annotations

import sys
from collections import defaultdict, deque
from collections.abc import Callable, Collection, Iterable, Sequence
from pathlib import Path

from agenteval.core.errors import ConfigError, Kind, Problem
from agenteval.core.records import replace
from agenteval.core.runtime import signals_taken
from agenteval.gate.comparer import Comparer, Decision, answered
from agenteval.gate.comparison import replace_decision
from agenteval.gate.decide import cases_to_prove, prove
from agenteval.gate.proof import Ask, CannotRunError, GateSuspicion
from agenteval.gate.values import ComparePolicy, Pass
from agenteval.report.report import print_result
from agenteval.report.terminal_lines import NextCommands, TerminalDetail, next_commands
from agenteval.results.comparison import Comparison
from agenteval.results.history import why_partial
from agenteval.results.merge import Merged, RunToMerge
from agenteval.results.model import Results, RunShard, RunUsage, ShardPass, ShardProof
from agenteval.results.rollup import check_consistent, summarise
from agenteval.results.store import RESULTS_FILE, read_results
from agenteval.run.compare import ComparedRun, with_usage
from agenteval.run.config import Settings
from agenteval.run.confirm.passes import Passes
from agenteval.run.context import RunContext, baseline_of
from agenteval.run.outcome import RunOutcome, decide, report_directory, reported
from agenteval.run.plan import RunExecution, Shard, divide, durations_of
from agenteval.run.resolve.spec import NOTHING_COVERED, RunSpec
from agenteval.run.resolve_run import resolve
from agenteval.run.resolve_saved import check_origin, resolve_merge
from agenteval.run.setup import users_code
from agenteval.suite.agent_definitions import MODEL_AGENT


def prove_file(path: Path, out: Path | None, settings: Settings, context: RunContext | None = None) -> RunOutcome:
    """Prove or clear what may be worse in a results file, and write its verdict and reports.

    The suites and the agent are those of the working directory; the base commit is that of the file's baseline. A
    shard makes the passes of its cases, and decides nothing.

    Args:
        out: the directory of the reports; ``None`` replaces the results.
    """
    context = context or RunContext()
    results = read_results(path)
    check_consistent(results, path)
    check_origin(RunToMerge(str(path), results), context)
    comparison = _comparison(results, str(path))
    directory = out or (path if path.is_dir() else path.parent)
    suites = tuple(Path(suite.path) for suite in results.suites)
    base = _base_run(results, comparison)
    covered = results.run.coverage or NOTHING_COVERED
    limited = replace(settings, max_llm_calls=covered.max_llm_calls, max_cost_usd=covered.max_cost_usd)
    whole = replace(limited, suites=suites, out=directory, baseline=base, shard=None)
    # An earlier attempt says nothing about these results.
    with resolve(whole, replace(context, attempts=None)) as spec:
        here = spec.provenance.commit if spec.provenance is not None else None
        if context.provenance is None and here != results.run.commit:
            ours, theirs = (commit[:12] if commit else "no commit" for commit in (here, results.run.commit))
            message = f"these results are of {theirs}, and the working directory has {ours}; check out {theirs}"
            raise ConfigError(Problem(message, file=str(path), kind=Kind.RESULTS))
        execution = replace(RunExecution.of(results), duration_s=0.0, asked=_asked(results, spec))
        comparer, asked = _suspected(results, comparison, spec.compare)
        shard = settings.shard
        if shard is not None:
            parts = divide(cases_to_prove(comparer.sides.evidence, asked), shard.count, durations_of(results))
            shard = replace(shard, sizes=tuple(map(len, parts)))
        with (
            report_directory(directory),
            users_code(spec.setup, spec.redact),
            signals_taken() as signals,
            Passes(spec, execution, spec.control.base, shard=shard) as passes,
        ):
            if shard is not None:
                done = _part(results, comparer, asked, passes, shard)
            else:
                asking = prove(comparer.sides.evidence, asked, spec.compare.rules)
                decision = Decision(answered(asking, lambda ask: passes.again(ask, comparer.sides)))
                found = _with(results, comparer, asked, replace(decision, commit=passes.commit))
                done = with_usage(found, passes.usage, passes.seconds)
            outcome = _decided(done, spec, passes.warnings, passes.signal)
        outcome = reported(outcome.ended_by(signals.held), spec, path=directory / RESULTS_FILE)
    # In a workflow the page is in an artifact.
    commands = next_commands(directory) if context.provenance is None else NextCommands()
    print_result(outcome.report, sys.stdout, TerminalDetail(settings.verbosity, commands))
    return outcome


def merged_proof(
    merged: Merged, parts: Sequence[RunToMerge], settings: Settings, context: RunContext
) -> tuple[RunOutcome, RunSpec]:
    """Decide with the passes that the shards of a proof have made, as one job would."""
    comparison = _comparison(merged.results, parts[0].file)
    baseline = baseline_of(_base_run(merged.results, comparison))
    spec, results = resolve_merge(merged, settings, context, baseline)
    shards = sorted((part.shard for part in parts), key=lambda shard: shard.index)
    proofs = [shard.proof for shard in shards if shard.proof is not None]
    mine = divide(shards[0].cases, len(shards), durations_of(results))
    comparer, asked = _suspected(results, comparison, spec.compare)
    out = answered(prove(comparer.sides.evidence, asked, spec.compare.rules), _made(proofs, mine))
    out.calls = sum(proof.calls for proof in proofs)
    commit = next((proof.commit for proof in proofs if proof.commit), None)
    found = _with(results, comparer, asked, Decision(out, commit=commit))
    for proof in proofs:
        found = with_usage(found, proof.usage, 0.0)
    return _decided(found, spec, dict.fromkeys(text for proof in proofs for text in proof.warnings)), spec


def _comparison(results: Results, file: str) -> Comparison:
    if results.comparison is not None and results.run.shard is None:
        return results.comparison
    why = "it was compared with no baseline" if results.run.shard is None else why_partial(results.run)
    raise ConfigError(Problem(f"there is nothing to prove: {why}", file=file, kind=Kind.RESULTS))


def _base_run(results: Results, comparison: Comparison) -> Results:
    # The results have only the name of the baseline.
    of_base = {"commit": comparison.baseline.commit, "ref": comparison.baseline.ref, "uncommitted": False}
    return results.model_copy(update={"run": results.run.model_copy(update=of_base), "comparison": None})


def _asked(results: Results, spec: RunSpec) -> RunUsage:
    # The usage has what agents report, which the budget of models does not limit.
    models = {item.case.id for item in spec.cases if item.agent.kind == MODEL_AGENT}
    agents = summarise(case for _, case in results.cases() if case.id not in models).usage
    usage = results.summary.usage
    return usage.model_copy(update={"cost_usd": max(0.0, usage.cost_usd - agents.cost_usd)})


def _suspected(
    results: Results, comparison: Comparison, policy: ComparePolicy
) -> tuple[Comparer, list[GateSuspicion]]:
    alone = results.model_copy(update={"comparison": None})
    # Its only earlier run is itself, which tells the metrics and what was asked.
    run = results.run.model_copy(update={"ref": comparison.baseline.ref})
    known = {case.id for _, case in results.cases()}
    comparer = Comparer(alone, alone.model_copy(update={"run": run}), known, policy)
    is_open = comparison.state in {"suspicious", "unproven"}
    return comparer, [GateSuspicion(item.metric, item.case, item.p) for item in comparison.suspicions if is_open]


def _with(results: Results, comparer: Comparer, asked: Sequence[GateSuspicion], decision: Decision) -> Results:
    if results.comparison is None or not asked:
        return results
    return results.model_copy(update={"comparison": replace_decision(comparer, results.comparison, decision)})


def _decided(results: Results, spec: RunSpec, warnings: Iterable[str], signal: int | None = None) -> RunOutcome:
    notes = results.comparison.notes if results.comparison is not None else ()
    compared = ComparedRun(results, warnings=(*warnings, *notes), signal=signal)
    return decide(compared, spec, replace(RunExecution.of(results), duration_s=0.0), ())


def _part(
    results: Results, comparer: Comparer, asked: Sequence[GateSuspicion], passes: Passes, shard: Shard
) -> Results:
    every = cases_to_prove(comparer.sides.evidence, asked)
    mine = shard.cases(every, durations_of(results))
    made: list[ShardPass] = []
    calls, ended = 0, CannotRunError("")

    def again(ask: Ask) -> Pass:
        nonlocal calls, ended
        cases = tuple(case for case in ask.cases if case in mine)
        try:
            seen = passes.again(replace(ask, cases=cases), comparer.sides) if cases else {}
        except CannotRunError as error:
            ended = error
            raise
        calls += len(cases)
        values = {name: dict(column) for name, column in seen.items()}
        made.append(ShardPass(side=ask.side, stage=ask.stage, for_means=ask.for_means, values=values))
        return seen

    answered(prove(comparer.sides.evidence, asked, comparer.policy.rules, in_shard=True), again)
    proof = ShardProof(
        commit=passes.commit,
        passes=made,
        calls=calls,
        usage=passes.usage,
        why=ended.why,
        mended_by=ended.mended_by,
        warnings=passes.warnings,
    )
    part = RunShard(index=shard.index, count=shard.count, cases=every, proof=proof)
    complete = results.run.complete and passes.signal is None
    return results.model_copy(update={"run": results.run.model_copy(update={"shard": part, "complete": complete})})


def _made(proofs: Sequence[ShardProof], mine: Sequence[Collection[str]]) -> Callable[[Ask], Pass]:
    left: list[dict[tuple[str, str, bool], deque[ShardPass]]] = []
    for proof in proofs:
        left.append(defaultdict(deque))
        for item in proof.passes:
            left[-1][item.side, item.stage, item.for_means].append(item)

    def again(ask: Ask) -> Pass:
        seen: dict[str, dict[str, float | None]] = {}
        for proof, queues, cases in zip(proofs, left, mine, strict=True):
            wanted = [case for case in ask.cases if case in cases]
            queue = queues[ask.side, ask.stage, ask.for_means]
            if wanted and not queue:
                raise CannotRunError(proof.why or "a shard made too few passes", proof.mended_by)
            for name, column in (queue.popleft().values if wanted else {}).items():
                seen.setdefault(name, {}).update({case: column[case] for case in wanted if case in column})
        return seen

    return again
