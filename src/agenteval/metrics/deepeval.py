"""Judges of deepeval: G-Eval with criteria in plain language, and five metrics for retrieval."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Literal, get_args

from agenteval.metrics.deepeval_settings import SETTINGS as _SETTINGS  # noqa: F401 - assigns them

# isort: split
from deepeval.metrics.g_eval.schema import ReasonScore, Steps
from deepeval.metrics.utils.qag import normalize_qag_verdict
from deepeval.models import DeepEvalBaseLLM
from openai.types.chat import ChatCompletion
from pydantic import BaseModel

from agenteval.core.llm.budget import Budget
from agenteval.core.llm.calls import Call, CallTotals, Completion
from agenteval.core.llm.gateway import Gateway
from agenteval.core.llm.models import ModelSpec
from agenteval.core.records import dataclass
from agenteval.metrics.base import MetricError, NotApplicableError, Observation, Outcome
from agenteval.metrics.judge_replies import Reply, check_scale, fitted, json_object, may_be_score, quoted
from agenteval.metrics.resources import Resources

if TYPE_CHECKING:
    from agenteval.core.llm.gateway import Accept

_TOP_LOGPROBS = 5
_UNREADABLE = "no"


class JudgeModel(DeepEvalBaseLLM):  # type: ignore[no-untyped-call] # deepeval's own hook has no types
    """One model for one measurement; ``spent`` is the cost.

    Args:
        sample: number of the repeat, part of the cache key.
        strict: the score must be 0 or 1.
    """

    def __init__(self, spec: ModelSpec, gateway: Gateway, sample: int, *, strict: bool = False) -> None:
        self._spec = spec
        self._gateway = gateway
        self._sample = sample
        self._strict = strict
        self._asking: set[asyncio.Task[Any] | None] = set()
        self.spent = CallTotals()
        # The minimum number of verdicts in a list; metrics that ask for one on each of several items set it.
        self.verdicts_asked: Callable[[], int] = lambda: 0
        super().__init__(spec.name)

    @property
    def budget(self) -> Budget:
        """The budget of this judge's calls."""
        return self._gateway.budget

    def load_model(self) -> JudgeModel:
        """Load nothing: the gateway has the clients."""
        return self

    def get_model_name(self) -> str:
        """Return the name for deepeval's messages."""
        return self._spec.label

    def generate(self, *_: Any, **__: Any) -> Any:
        """Raise ``MetricError``: deepeval calls the model asynchronously only."""
        raise MetricError("judges are asked asynchronously")

    async def a_generate(self, prompt: str, schema: type[BaseModel] | None = None) -> Any:
        """Return the reply as an instance of the schema, or as text without a schema."""
        json_schema = schema.model_json_schema() if schema is not None else None
        name = schema.__name__ if schema is not None else "reply"
        call = Call(self._spec, prompt, schema=json_schema, schema_name=name, sample=self._sample)
        if schema is None:
            return (await self._ask(call, lambda _: None)).text
        completion = await self._ask(call, lambda answer: self._read(answer.text, schema))
        return self._read(completion.text, schema)

    async def a_generate_with_schema(self, *args: Any, schema: Any = None, **_: Any) -> Any:
        """Do the same as ``a_generate``; deepeval's implementation would call twice after a TypeError."""
        return await self.a_generate(args[0], schema)

    async def a_generate_raw_response(self, prompt: str, top_logprobs: int = _TOP_LOGPROBS) -> tuple[Any, float]:
        """Return the reply with its token probabilities, with which G-Eval weights the score.

        Raises:
            AttributeError: the model has no token probabilities; deepeval then uses the plain score.
        """
        if not supports_logprobs(self._spec):
            raise AttributeError("no log probabilities")
        call = Call(self._spec, prompt, top_logprobs=min(top_logprobs, _TOP_LOGPROBS), sample=self._sample)
        completion = await self._ask(call, lambda answer: self._read(answer.text, ReasonScore))
        judged = self._read(completion.text, ReasonScore)
        return _chat_completion(self._spec.name, judged, completion.logprobs), 0.0

    async def _ask(self, call: Call, accept: Accept) -> Completion:
        task = asyncio.current_task()
        self._asking.add(task)
        try:
            completion = await self._gateway.complete(call, accept)
        finally:
            self._asking.discard(task)
        self.spent.add(completion)
        return completion

    async def stop(self) -> None:
        """Cancel pending calls: if one of several calls fails, deepeval does not stop the others."""
        left = [task for task in self._asking if task is not None]
        for task in left:
            task.cancel()
        await asyncio.gather(*left, return_exceptions=True)

    def _read(self, text: str, schema: type[Reply]) -> Reply:
        reply = fitted(_with_verdicts(json_object(text), schema), schema)
        verdicts = getattr(reply, "verdicts", None)
        if verdicts == []:
            raise MetricError("the judge gave no verdict, so there is no score")
        if verdicts is not None and len(verdicts) < (asked := self.verdicts_asked()):
            raise MetricError(f"the judge gave {len(verdicts)} of {asked} verdicts, so there is no score")
        if isinstance(reply, Steps) and not reply.steps:
            raise MetricError("the judge wrote no evaluation steps, so there is no score")
        if isinstance(reply, ReasonScore):
            check_scale(reply.score, strict=self._strict)
        return reply


def _with_verdicts(value: dict[str, Any], schema: type[BaseModel]) -> dict[str, Any]:
    """Return a reply with its verdicts as deepeval reads them, "Yes" as "yes".

    An unreadable verdict is "no"; deepeval leaves it out, which would raise the score. If none is readable, the list
    is empty.
    """
    listed = value.get("verdicts")
    field = schema.model_fields.get("verdicts")
    if field is None or not isinstance(listed, list) or not all(isinstance(item, dict) for item in listed):
        return value
    (item_schema,) = get_args(field.annotation)
    allowed = get_args(item_schema.model_fields["verdict"].annotation)
    read = [{**item, "verdict": normalize_qag_verdict(item.get("verdict"), allowed)} for item in listed]
    if all(item["verdict"] is None for item in read):
        return {**value, "verdicts": []}
    return {**value, "verdicts": [item if item["verdict"] else {**item, "verdict": _UNREADABLE} for item in read]}


def supports_logprobs(spec: ModelSpec) -> bool:
    """Return whether a model has token probabilities, according to deepeval's list of OpenAI models."""
    from deepeval.models.llms.constants import OPENAI_MODELS_DATA

    if spec.provider not in {"openai", "azure_openai"}:
        return False
    data = OPENAI_MODELS_DATA.get(spec.name)
    data = data() if callable(data) else data
    return bool(data is not None and data.supports_log_probs)


def _chat_completion(model: str, judged: ReasonScore, logprobs: list[Any] | None) -> ChatCompletion:
    """Rebuild the reply of OpenAI's client for deepeval, because the reply may come from the cache.

    The score is written like the model's tokens, so that deepeval finds its probabilities.
    """
    score = int(judged.score) if judged.score.is_integer() else judged.score
    tokens = None if logprobs is None else [_on_scale(token) for token in logprobs]
    choice = {
        "index": 0,
        "finish_reason": "stop",
        "message": {"role": "assistant", "content": json.dumps({"reason": judged.reason, "score": score})},
        "logprobs": None if tokens is None else {"content": tokens, "refusal": None},
    }
    return ChatCompletion.model_validate(
        {"id": "", "created": 0, "object": "chat.completion", "model": model, "choices": [choice]}
    )


def _on_scale(token: dict[str, Any]) -> dict[str, Any]:
    """Return a token without alternatives that are not scores; deepeval would weight "100" as ten times 10."""
    listed = token.get("top_logprobs") or []
    return {**token, "top_logprobs": [item for item in listed if may_be_score(str(item.get("token", "")))]}


# Evaluation parameter → field of the observation that may be missing.
_NEEDED = {"expected_output": "ground_truth", "context": "context", "retrieval_context": "retrieval_context"}
RagType = Literal[
    "faithfulness", "answer_relevancy", "contextual_relevancy", "contextual_precision", "contextual_recall"
]
# Type → deepeval's class, and the fields that it compares.
_RAG: Mapping[str, tuple[str, frozenset[str]]] = {
    "faithfulness": ("FaithfulnessMetric", frozenset({"retrieval_context"})),
    "answer_relevancy": ("AnswerRelevancyMetric", frozenset()),
    "contextual_relevancy": ("ContextualRelevancyMetric", frozenset({"retrieval_context"})),
    "contextual_precision": ("ContextualPrecisionMetric", frozenset({"ground_truth", "retrieval_context"})),
    "contextual_recall": ("ContextualRecallMetric", frozenset({"ground_truth", "retrieval_context"})),
}


@dataclass(frozen=True)
class GEval:
    """G-Eval (Liu et al. 2023): the judge follows evaluation steps and scores 0 to 10, reported as 0 to 1.

    Args:
        criteria: the criteria in plain language; the evaluation steps are generated from it if none are given.
        evaluation_params: the fields that the judge receives: ``input``, ``actual_output``, ``expected_output``,
            ``context``, ``retrieval_context``.
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
        return _RAG[self.metric_type][1]

    async def measure(self, observation: Observation) -> Outcome:
        """Call the judge; an empty response scores 0 without a call."""
        if not observation.response.strip():
            return _empty(self.model)
        from deepeval import metrics

        judge = JudgeModel(self.model, self.resources.gateway, observation.iteration)
        # Set explicitly, because an environment variable could choose a mode that calls another service.
        kind = getattr(metrics, _RAG[self.metric_type][0])
        metric = kind(model=judge, include_reason=self.include_reason, eval_mode="llm")
        judge.verdicts_asked = lambda: _items(metric, self.metric_type, observation)
        outcome = await _measured(metric, judge, observation)
        if not _verdicts(metric):
            # deepeval scores 1 or 0, although nothing was judged.
            raise NotApplicableError("the judge found nothing in the answer to give a verdict on")
        return outcome


def _items(metric: Any, metric_type: RagType, observation: Observation) -> int:
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
        input=quoted(observation.input),
        actual_output=quoted(observation.response),
        expected_output=None if observation.ground_truth is None else quoted(observation.ground_truth),
        context=list(map(quoted, observation.context or ())) or None,
        retrieval_context=list(map(quoted, observation.retrieval_context or ())) or None,
    )


def _verdicts(metric: Any) -> bool:
    groups = getattr(metric, "verdicts_list", None)
    if groups is not None:
        return any(group.verdicts for group in groups)
    return any(verdict is not None for verdict in getattr(metric, "verdicts", None) or [])
