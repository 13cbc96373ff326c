"""Judges of deepeval: G-Eval with criteria in plain language, and five metrics for retrieval."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Literal

from agenteval.core.llm.models import ModelSpec
from agenteval.core.records import dataclass
from agenteval.metrics.base import MetricError, NotApplicableError, Observation, Outcome
from agenteval.metrics.deepeval_model import JudgeModel
from agenteval.metrics.resources import Resources

# Evaluation parameter → field of the observation that may be missing.
_NEEDED = {"expected_output": "ground_truth", "context": "context", "retrieval_context": "retrieval_context"}
RagType = Literal[
    "faithfulness", "answer_relevancy", "contextual_relevancy", "contextual_precision", "contextual_recall"
]
_RAG_NEEDS: Mapping[str, frozenset[str]] = {
    "faithfulness": frozenset({"retrieval_context"}),
    "answer_relevancy": frozenset(),
    "contextual_relevancy": frozenset({"retrieval_context"}),
    "contextual_precision": frozenset({"ground_truth", "retrieval_context"}),
    "contextual_recall": frozenset({"ground_truth", "retrieval_context"}),
}
_RAG_CLASSES: Mapping[str, str] = {
    "faithfulness": "FaithfulnessMetric",
    "answer_relevancy": "AnswerRelevancyMetric",
    "contextual_relevancy": "ContextualRelevancyMetric",
    "contextual_precision": "ContextualPrecisionMetric",
    "contextual_recall": "ContextualRecallMetric",
}


@dataclass(frozen=True)
class GEval:
    """G-Eval (Liu et al. 2023): the judge follows evaluation steps and scores 0 to 10, reported as 0 to 1.

    Args:
        criteria: the criteria in plain language; the evaluation steps are generated from it if none are given.
        evaluation_params: the fields that the judge receives: ``input``, ``actual_output``, ``expected_output``,
            ``context``, ``retrieval_context``.
        strict_mode: allow only the scores 1 and 0.
    """

    name: str
    criteria: str
    model: ModelSpec
    resources: Resources
    evaluation_steps: tuple[str, ...] | None = None
    evaluation_params: tuple[str, ...] = ("actual_output",)
    strict_mode: bool = False

    def __post_init__(self) -> None:
        self.resources.gateway.check(self.model)

    @property
    def requires(self) -> frozenset[str]:
        """The fields that the evaluation parameters need."""
        return frozenset(_NEEDED[name] for name in self.evaluation_params if name in _NEEDED)

    async def measure(self, observation: Observation) -> Outcome:
        """Call the judge; an empty response scores 0 without a call."""
        if not observation.response.strip():
            return _empty(self.model)
        from deepeval.metrics import GEval as DeepevalGEval
        from deepeval.test_case import SingleTurnParams

        judge = JudgeModel(self.model, self.resources.gateway, observation.iteration, strict=self.strict_mode)
        metric = DeepevalGEval(
            name=self.name,
            criteria=self.criteria,
            evaluation_steps=list(self.evaluation_steps) if self.evaluation_steps else None,
            evaluation_params=[SingleTurnParams(name) for name in self.evaluation_params],
            model=judge,
            strict_mode=self.strict_mode,
        )
        return await _measured(metric, judge, observation)


@dataclass(frozen=True)
class Rag:
    """A judge's score of an answer and its retrieved passages.

    Args:
        metric_type: ``faithfulness``, ``answer_relevancy``, ``contextual_relevancy``,
            ``contextual_precision`` or ``contextual_recall``.
        include_reason: request an explanation, with one more call.
    """

    metric_type: RagType
    model: ModelSpec
    resources: Resources
    include_reason: bool = True

    def __post_init__(self) -> None:
        self.resources.gateway.check(self.model)

    @property
    def requires(self) -> frozenset[str]:
        """The fields that this metric type compares."""
        return _RAG_NEEDS[self.metric_type]

    async def measure(self, observation: Observation) -> Outcome:
        """Call the judge; an empty response scores 0 without a call."""
        if not observation.response.strip():
            return _empty(self.model)
        from deepeval import metrics

        judge = JudgeModel(self.model, self.resources.gateway, observation.iteration)
        # Set explicitly, because an environment variable could choose a mode that calls another service.
        kind = getattr(metrics, _RAG_CLASSES[self.metric_type])
        metric = kind(model=judge, include_reason=self.include_reason, eval_mode="llm")
        judge.verdicts_asked = lambda: _items(metric, self.metric_type, observation)
        outcome = await _measured(metric, judge, observation)
        if not _verdicts(metric):
            # deepeval scores 1 or 0, although nothing was judged.
            raise NotApplicableError("the judge found nothing in the answer to give a verdict on")
        return outcome


def _items(metric: Any, metric_type: RagType, observation: Observation) -> int:
    """Return the number of items that the judge must give a verdict on; 0 if the judge divides the text itself."""
    if metric_type == "contextual_precision":
        return len(observation.retrieval_context or ())
    found = {"faithfulness": "claims", "answer_relevancy": "statements"}.get(metric_type)
    return len(getattr(metric, found, None) or ()) if found else 0


def _empty(model: ModelSpec) -> Outcome:
    return Outcome(0.0, passed=False, reason="empty response", model=model.label, cost_usd=0.0)


async def _measured(metric: Any, judge: JudgeModel, observation: Observation) -> Outcome:
    """Run one deepeval metric; the object keeps state, so it is used only once."""
    try:
        async with judge.budget.measurement():
            try:
                await metric.a_measure(_test_case(observation), _show_indicator=False)
            finally:
                await judge.stop()
    except (ValueError, KeyError, TypeError) as error:
        # deepeval raises these for unusable replies.
        raise MetricError(f"the judge's reply cannot be used: {type(error).__name__}: {error}") from None
    spent = judge.spent
    details = {"llm_calls": spent.calls, "cached_calls": spent.cached}
    if spent.calls:
        details |= {"input_tokens": spent.input_tokens, "output_tokens": spent.output_tokens}
    return Outcome(
        score=float(metric.score),
        reason=metric.reason,
        details=details,
        model=judge.get_model_name(),
        cost_usd=spent.cost_usd,
    )


def _test_case(observation: Observation) -> Any:
    from deepeval.test_case import LLMTestCase

    return LLMTestCase(
        input=_text(observation.input),
        actual_output=_text(_as_data(observation.response)),
        expected_output=_text(observation.ground_truth),
        context=_texts(observation.context),
        retrieval_context=_texts(tuple(map(_as_data, observation.retrieval_context or ()))),
    )


# A line that begins like a part of deepeval's prompts.
_PART = re.compile(
    r"\W*(?:input|actual output|expected output|(?:retrieval )?context|evaluation (?:steps|criteria)|rubric|test case"
    r"|parameters|expected tools|tools called|statements?|claims|truths|verdicts|json)\W*:",
    re.IGNORECASE,
)


def _as_data(text: str) -> str:
    """Quote a text that would continue the prompt; other texts stay, so that prompts are HoloDeck's."""
    lines = text.splitlines()
    return "\n".join(f"> {line}" for line in lines) if any(map(_PART.match, lines)) else text


def _text(text: str | None) -> str | None:
    """Remove the marker that makes deepeval open an image; in an answer it is plain text."""
    return None if text is None else text.replace("[DEEPEVAL:", "[DEEPEVAL\u200b:")


def _texts(texts: tuple[str, ...] | None) -> list[str | None] | None:
    return [_text(text) for text in texts] if texts else None


def _verdicts(metric: Any) -> bool:
    groups = getattr(metric, "verdicts_list", None)
    if groups is not None:
        return any(group.verdicts for group in groups)
    return any(verdict is not None for verdict in getattr(metric, "verdicts", None) or [])
