"""Prompts and replies of judges: quotation, templates, schemas and scores."""

from __future__ import annotations

import ast
import json
import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from agenteval.core.records import dataclass
from agenteval.core.secrets import beginning, shortened
from agenteval.core.text import text_of
from agenteval.metrics.base import MetricError, shown
from agenteval.metrics.text import found
from agenteval.results.record import Record, value_at
from agenteval.suite.forms import pieces

# A line that begins like a part of a prompt that is not ours: deepeval's and Azure's have no marks around texts.
_PART = re.compile(
    r"[\W_]*(?:(?:(?:actual|expected|ai) )?outputs?|inputs?|(?:(?:retrieval|additional) )?contexts?|test case"
    r"|parameters|evaluation (?:steps|criteria)|rubric|expected tools|tools called|text|statements?|claims|truths"
    r"|verdicts?|(?:example )?json|query|response|conversation_history|question|(?:correct|predicted) answer|stars"
    r"|scores?|reasons?|system|user|assistant|function)\b(?: \(.*\))?[\W_]*:"
    r"|\s*#+\s*(?:data|tasks?|inputs?|outputs?|instructions?|definitions?|ratings?|examples?)\b",
    re.IGNORECASE,
)
# What makes deepeval and Azure's SDK open a file: in a text that is judged, it is plain text.
_FILE = re.compile(r"\[DEEPEVAL(?=:)|!(?=\[)")


def quoted(text: str) -> str:
    """Return a text that cannot continue a prompt without marks; most texts, and so most prompts, stay as they are.

    A lone surrogate, which cannot be sent, becomes a question mark.
    """
    plain = _FILE.sub("\\g<0>\u200b", text.encode("utf-8", "replace").decode())
    lines = plain.splitlines()
    return "\n".join(f"> {line}" for line in lines) if any(map(_PART.match, lines)) else plain


# Fills the prompt templates of judges with the fields of a trace, as FluxLoop does.
#
# The text of the prompt is a part of the key of a judgement. If it has only placeholders that FluxLoop replaces, it
# is FluxLoop's text, so judgements that FluxLoop cached are found.


# FluxLoop inserts the values of these fields as Python shows them, an empty value as an empty text.
_SHOWN_FIELDS = frozenset({"input", "output", "persona", "trace_id"})
# FluxLoop looks for these fields in the metadata too.
_IN_METADATA = frozenset({"guidelines", "policy_context", "requirements", "supporting_data", "knowledge_base"})

Quote = Callable[[str, str], str]


def render(template: str, record: Record, quote: Quote = lambda _name, text: text) -> str:
    """Return the template with its placeholders replaced by fields of a trace; missing fields are empty."""
    return "".join(piece if name is None else quote(name, _text(record, name)) for piece, name in pieces(template))


def _text(record: Record, name: str) -> str:
    if name == "observations":
        return text_of(_without_originals(value_at(record, name) or value_at(record, "timeline")))
    value = value_at(record, name)
    if name in _SHOWN_FIELDS:
        return str(value or "")
    if name == "iteration":
        return str(value)
    if name in _IN_METADATA and not value and isinstance(metadata := value_at(record, "metadata"), Mapping):
        value = metadata.get(name)
    return text_of(value)


def _without_originals(observations: Any) -> Any:
    if not isinstance(observations, list):
        return observations
    return [
        {key: value for key, value in item.items() if key != "raw"} if isinstance(item, Mapping) else item
        for item in observations
    ]


def first_problem(schema: Mapping[str, Any], value: Any) -> str | None:
    """Return where and why a value does not follow a schema; ``None`` if it does."""
    import jsonschema
    from referencing import Registry
    from referencing.exceptions import Unresolvable

    # An empty registry: the default one reads files and sends requests for references.
    validator = _validator_class()(schema, registry=Registry())
    try:
        error = jsonschema.exceptions.best_match(validator.iter_errors(value))
    except Unresolvable as missing:
        raise MetricError(f"output_schema: $ref {missing.ref!r} is not in the schema") from None
    return None if error is None else f"{error.json_path}: {error.message}"


@cache
def _validator_class() -> Any:
    import jsonschema

    extend: Any = jsonschema.validators.extend
    return extend(jsonschema.Draft202012Validator, {"pattern": _pattern})


def _pattern(validator: Any, pattern: str, value: Any, _schema: Any) -> Iterator[Any]:
    import jsonschema

    if validator.is_type(value, "string") and not found(pattern, value):
        yield jsonschema.ValidationError(f"{value!r} does not match {pattern!r}")


Reply = TypeVar("Reply", bound=BaseModel)

HIGHEST_SCORE = 10

_SHOWN_CHARACTERS = 200

# A text or a brace in JSON. A text without an end takes the rest, so that an object that is cut has no end either.
_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*+(?:"|\Z)|[{}]', re.DOTALL)
_TRAILING_COMMA = re.compile(r",\s*([\]}])")
# A backslash, with what may follow it in JSON and Python.
_ESCAPE = re.compile(r'\\(["\\/bfnrt\']|u[0-9a-fA-F]{4})?')
_THOUGHT, _THOUGHT_END = "<think>", "</think>"


def read_reply(text: str, schema: type[Reply]) -> Reply:
    """Return a reply as an instance of its schema."""
    return fitted(json_object(text), schema)


def fitted(value: dict[str, Any], schema: type[Reply]) -> Reply:
    """Return the JSON of a reply as an instance of its schema."""
    if isinstance(value.get("score"), bool):
        raise MetricError(f"the judge's score is {value['score']}, not a number")
    try:
        return schema.model_validate(value)
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(str(step) for step in first["loc"])
        raise MetricError(f"the judge's reply does not fit {schema.__name__}: {place}: {first['msg']}") from None


def json_object(text: str) -> dict[str, Any]:
    """Return the last whole JSON object in a reply, after the model's thoughts; other text is ignored.

    Trailing commas, line ends and single backslashes in texts, and a Python dictionary, are read as well.

    Raises:
        MetricError: the reply contains no object, or an object with two values of one key.
    """
    objects = (_object(span) for span in reversed(list(_spans(answer_of(text)))))
    found = next((value for value in objects if value is not None), None)
    if found is None:
        raise MetricError(f"the judge's reply is not JSON: {shortened(text, _SHOWN_CHARACTERS)!r}")
    return found


def answer_of(text: str) -> str:
    """Return a reply without the thoughts before it, which can contain drafts."""
    _, end, answer = text.rpartition(_THOUGHT_END)
    return answer if end or not text.lstrip().startswith(_THOUGHT) else ""


def _spans(text: str) -> Iterator[str]:
    """Yield the parts of a text that are in outermost braces; an object that is cut ends the search."""
    end = 0
    while (start := text.find("{", end)) >= 0:
        depth = 0
        for token in _TOKEN.finditer(text, start):
            depth += {"{": 1, "}": -1}.get(token[0], 0)
            if not depth:
                end = token.end()
                yield text[start:end]
                break
        else:
            return


def _object(span: str) -> dict[str, Any] | None:
    escaped = _ESCAPE.sub(lambda escape: {None: r"\\", "'": "'"}.get(escape[1], escape[0]), span)
    # Without trailing commas last, because a text may contain one as well.
    for candidate in (span, escaped, _TRAILING_COMMA.sub(r"\1", escaped)):
        try:
            value: dict[str, Any] = json.loads(candidate, strict=False, object_pairs_hook=_with_one_value)
        except (ValueError, RecursionError):
            continue
        return value
    try:
        tree = ast.parse(_ESCAPE.sub(lambda escape: escape[0] if escape[1] else r"\\", span), mode="eval").body
        keys = [list(map(ast.dump, node.keys)) for node in ast.walk(tree) if isinstance(node, ast.Dict)]  # type: ignore[arg-type]
        # Through JSON, in which keys are texts.
        found = json.loads(json.dumps(ast.literal_eval(tree)))
    except (ValueError, TypeError, SyntaxError, AttributeError, RecursionError, MemoryError):
        return None
    return found if isinstance(found, dict) and all(len(set(names)) == len(names) for names in keys) else None


def _with_one_value(pairs: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    """Return an object of JSON; with two scores, it is unknown which one the judge means."""
    made = dict(pairs)
    if len(made) < len(pairs):
        for key, value in pairs:
            if made[key] != value:
                raise MetricError(f"the judge's reply has two values of {shortened(key, _SHOWN_CHARACTERS)!r}")
    return made


def check_scale(score: float, *, strict: bool) -> None:
    """Reject a score outside the judge's scale: 0 to 10, or 0 and 1 if strict."""
    if strict and score not in {0, 1}:
        raise MetricError(f"the judge's score is {score:g}, but only 0 and 1 are allowed")
    on_scale(score, 0, HIGHEST_SCORE)


def may_be_score(token: str) -> bool:
    """Return whether a token may be a score; tokens that are not numbers pass."""
    # As a float: Python refuses to parse integers with thousands of digits.
    return not token.isdecimal() or float(token) <= HIGHEST_SCORE


_ROUNDING = 1e-9
_LONGEST_REASON = 500
_REASONS = ("reason", "reasoning", "explanation", "rationale", "justification", "feedback", "comment", "commentary")
# A separate number: not part of a word (GPT-4), a longer number or a version (1.2.3).
_NUMBER = re.compile(
    r"(?<![\w.])(?<!\w-)"
    r"(?P<sign>[-−+]?)"
    r"(?P<value>\d{1,3}(?:,\d{3})+(?:\.\d+)?|\d+(?:\.\d+)?|\.\d+)"
    r"(?!\.\d|\w|-[A-Za-z])"
)
_AFTER_PERCENT = re.compile(r"\s*(?:%|percent\b)")
_AFTER_HIGHEST = re.compile(r"\s*(?:/|out\s+of)\s*(?P<highest>\d+(?:\.\d+)?)", re.IGNORECASE)
# "1-10", "1 to 10", "between 1 and 10", "out of 10", "/10": the scale, not a score.
_SCALE = re.compile(
    r"(?:(?<![\w.])[01](?:\.0+)?\s*(?:-|–|—|\.\.\.?|…|\bto\b|\bthrough\b)|\bbetween\s+[01](?:\.0+)?\s+and\b|/|\bout\s+of\b)"
    r"\s*(?P<high>\d+(?:\.\d+)?)(?![\w%]|\.\d)",
    re.IGNORECASE,
)
_LIST_MARK = re.compile(r"^[^\S\n]*(?P<number>\d+)[.)]\s+", re.MULTILINE)
_REASON = re.compile(r"\breason(?:ing)?\b[^\w\n]*?[:\-–—][^\w\n\"'(\[]*(?P<reason>\S.*)", re.IGNORECASE | re.DOTALL)


@dataclass(frozen=True)
class Judgement:
    """A score on the judge's scale, and its reason."""

    raw: float
    reason: str


Parser = Callable[[str, float], Judgement]


def first_number_1_10(text: str, max_score: float) -> Judgement:
    """Return the first number, which must be 0 to 10 and at most ``max_score``.

    Mentions of the scale (``1-10``, ``out of 10``), numbers of a list, and numbers inside words are not scores.
    A score on another scale (``4/5``, ``80%``) is rejected.
    """
    return _first(text, min(HIGHEST_SCORE, max_score), {HIGHEST_SCORE, max_score})


def first_float(text: str, max_score: float) -> Judgement:
    """Return the first number from 0 to ``max_score``, decimals allowed; otherwise like ``first_number_1_10``."""
    return _first(text, max_score, {max_score})


def json_score(text: str, max_score: float) -> Judgement:
    """Return ``score`` of the JSON object in the reply, from 0 to ``max_score``."""
    reply = json_object(text)
    score = number_in(reply.get("score"))
    if score is None:
        raise MetricError(f"the judge gave no number as score: {shown(text)}")
    return Judgement(on_scale(score, 0, max_score), _short(reason_in(reply) or text))


PARSERS: Mapping[str, Parser] = {
    "first_number_1_10": first_number_1_10,
    "json_score": json_score,
    "first_float": first_float,
}


def _first(text: str, highest: float, scales: set[float]) -> Judgement:
    text = answer_of(text)
    readable = _without_scales(_without_list_marks(text), scales)
    number = next(_numbers(readable, scales), None)
    if number is None:
        raise MetricError(f"the judge's reply has no score: {shown(text)}")
    return Judgement(on_scale(number, 0, highest), _reason(text))


def _numbers(text: str, scales: set[float]) -> Iterator[float]:
    for match in _NUMBER.finditer(text):
        value = float(match["value"].replace(",", ""))
        if _AFTER_PERCENT.match(text, match.end()):
            raise MetricError(f"the judge's score is a percentage: {shown(text.strip())}")
        of = _AFTER_HIGHEST.match(text, match.end())
        if of and float(of["highest"]) not in scales:
            raise MetricError(f"the judge's score is on another scale: {shown(text[match.start() : of.end()])}")
        yield -value if match["sign"] in {"-", "−"} else value


def _without_scales(text: str, scales: set[float]) -> str:
    return _SCALE.sub(lambda match: " " if float(match["high"]) in scales else match.group(), text)


def _without_list_marks(text: str) -> str:
    """Remove the numbers of a list that starts at 1; a single ``8.`` may be the score."""
    marks = [float(match["number"]) for match in _LIST_MARK.finditer(text)]
    return _LIST_MARK.sub("", text) if marks[:2] == [1, 2] else text


def number_in(value: Any) -> float | None:
    """Return a number of a reply, which may be written as a text; ``None`` for other values."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    try:
        return float(value)
    except ValueError:
        return None
    except OverflowError:
        # A whole number, which is outside of every scale.
        return math.inf


def reason_in(reply: Mapping[str, Any]) -> str:
    """Return the reason in a reply; empty without one."""
    return next((reply[name] for name in _REASONS if isinstance(reply.get(name), str)), "")


def on_scale(score: float, lowest: float, highest: float) -> float:
    """Return a score, without an error of rounding at the ends of its scale."""
    if not lowest - _ROUNDING <= score <= highest + _ROUNDING:
        raise MetricError(f"the judge's score is {score:g}, outside its scale of {lowest:g} to {highest:g}")
    return min(max(score, lowest), highest)


def _reason(text: str) -> str:
    found = _REASON.search(text)
    return _short(found["reason"] if found else text)


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _LONGEST_REASON else f"{beginning(line, _LONGEST_REASON - 1)}…"
