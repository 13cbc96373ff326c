"""The texts of recommendations, for each kind and tone: the finding and the step to take.

Placeholders stand for numbers and names that :mod:`agenteval.results.analysis.recommendations` fills in.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, NamedTuple

from agenteval.suite.evaluation import Tone

Kind = Literal[
    "criterion",
    "pass_rate",
    "dropped_total",
    "dropped_metric",
    "persona",
    "weak_metric",
    "cause",
    "trend",
    "absent",
    "slow",
]


class Advice(NamedTuple):
    """The texts of one recommendation: the finding and the step to take."""

    finding: str
    step: str


#: Titles name the subject and are the same in every tone.
TITLES: Mapping[Kind, str] = {
    "criterion": "Meet the condition on {label}",
    "pass_rate": "Raise the pass rate",
    "dropped_total": "Win back what was lost against the baseline",
    "dropped_metric": "Win back {name}",
    "persona": "Serve {name} better",
    "weak_metric": "Improve {name}",
    "cause": "Fix failures by {label}",
    "trend": "Stop the decline of scores",
    "absent": "Get the missing scores of {name}",
    "slow": "Look at unusually slow answers",
}

ADVICE: Mapping[Kind, Mapping[Tone, Advice]] = {
    "criterion": {
        "technical": Advice(
            "Criterion {name}: {value}, required {limit}.",
            "Reproduce with the cases that move {name} most, change one thing, and run the suite again.",
        ),
        "executive": Advice(
            "A success criterion is not met. {label}: {value}, agreed: {limit}.",
            "Decide whether this blocks the release: {label}.",
        ),
        "balanced": Advice(
            "{label}: {value}, required: {limit}.",
            "Start with the answers that count most against {label}, and run the suite again.",
        ),
    },
    "pass_rate": {
        "technical": Advice(
            "pass_rate {value} ({passed}/{judged}) < {limit}. Most frequent reason: {reason}.",
            "Fix the cause behind the most frequent reason first; it accounts for {count} scores.",
        ),
        "executive": Advice(
            "Only {value} of the answers are good enough; the target is {limit}. Most frequent reason: {reason}.",
            "Fix the most frequent complaint first: {reason}.",
        ),
        "balanced": Advice(
            "{value} of the answers pass ({passed} of {judged}); target: {limit}. Most frequent reason: {reason}.",
            "Work on the most frequent reason first: {reason}.",
        ),
    },
    "dropped_total": {
        "technical": Advice(
            "pass_rate {before} → {value} against the baseline.",
            "Bisect the changes of prompt, model and tools since the baseline on the cases that fail now.",
        ),
        "executive": Advice(
            "Quality went down: {before} of the answers were good enough, now it is {value}.",
            "Ask what changed since the last good state, and whether it is worth the loss.",
        ),
        "balanced": Advice(
            "The pass rate fell from {before} to {value} since the baseline.",
            "Go through the changes since the baseline, beginning with the cases that fail now.",
        ),
    },
    "dropped_metric": {
        "technical": Advice(
            "{name}: mean {before} → {value} (change {change}) against the baseline.",
            "Compare prompts, model and tools with the baseline's on the answers with the lowest {name}.",
        ),
        "executive": Advice(
            "{label} fell since the last good state: {before} then, {value} now.",
            "Have the change that cost {label} found and taken back or mended.",
        ),
        "balanced": Advice(
            "{name} fell from {before} to {value} since the baseline.",
            "Look at the answers with the lowest {name} and at what changed since the baseline.",
        ),
    },
    "persona": {
        "technical": Advice(
            "persona {name}: pass_rate {value} ({passed}/{judged}) < {limit}.",
            "Add cases for {name} and adjust the prompt for them; their most frequent reason: {reason}.",
        ),
        "executive": Advice(
            "Users like {name} are served worse than intended: {value} of the answers to them are good enough.",
            "Decide how much {name} matters, and plan the work for these users.",
        ),
        "balanced": Advice(
            "Of the answers to {name}, {value} pass; the aim is {limit}.",
            "Adapt prompts and examples to {name}; most frequent reason: {reason}.",
        ),
    },
    "weak_metric": {
        "technical": Advice(
            "{name}: mean {value} < threshold {limit}, reached by {passed} of {judged} scores.",
            "Inspect the answers with the lowest {name} in per_trace.jsonl.",
        ),
        "executive": Advice(
            "{label} is a weak point: {value} of 1; the target is {limit}.",
            "Put the next round of work into {label}.",
        ),
        "balanced": Advice(
            "{name} is too low: {value} on average; the target is {limit}.",
            "Read the answers with the lowest {name} and look for what they have in common.",
        ),
    },
    "cause": {
        "technical": Advice(
            "Category {name}: {count} of {judged} failed answers, for example {examples}.",
            "Debug {examples} and add a regression case for what is found.",
        ),
        "executive": Advice(
            "{label} plays a part in {count} of {judged} failures.",
            "Have the failures around {label} fixed as one piece of work.",
        ),
        "balanced": Advice(
            "{label} plays a part in {count} of {judged} failed answers, for example {examples}.",
            "Begin with {examples}.",
        ),
    },
    "trend": {
        "technical": Advice(
            "final_score falls by {change} per iteration over {count} iterations.",
            "Check for state that leaks between iterations, rate limits, and growing context.",
        ),
        "executive": Advice(
            "Answers get worse the longer the agent runs.",
            "Have it found out why quality does not last.",
        ),
        "balanced": Advice(
            "Scores fall by {change} from iteration to iteration.",
            "Check what differs between early and late iterations: memory, limits, data.",
        ),
    },
    "absent": {
        "technical": Advice(
            "{name}: {count} of {judged} scores absent; most frequent: {reason}.",
            "Raise limits.max_llm_calls or limits.sample_rate for {name}, or mend the judge.",
        ),
        "executive": Advice(
            "{label} was not measured on {count} of {judged} answers; the numbers say less than they could.",
            "Allow more judging of {label} where the result has to carry a decision.",
        ),
        "balanced": Advice(
            "{name} has no score for {count} of {judged} answers; most frequent reason: {reason}.",
            "Allow more judge calls for {name}, or look at why they fail.",
        ),
    },
    "slow": {
        "technical": Advice(
            "Time above {limit} (Q3 + 1.5 IQR): {count}, the longest {value}, for example {examples}.",
            "Profile {examples}: retries, tool timeouts, long outputs.",
        ),
        "executive": Advice(
            "Users would have waited unusually long for {count}, up to {value}.",
            "Have the slowest answers looked at before users meet them.",
        ),
        "balanced": Advice(
            "{count} took unusually long, up to {value}, for example {examples}.",
            "Find out why these were slow: {examples}.",
        ),
    },
}
