"""Forms of prompts and answers: paths in JSON, templates of prompts, expected texts and schemas."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from string import Formatter
from typing import TYPE_CHECKING, Any, Literal

from agenteval.core.errors import Kind, Problem
from agenteval.core.records import dataclass, field
from agenteval.core.secrets import shortened
from agenteval.core.text import matches_everything

if TYPE_CHECKING:
    from agenteval.suite.model import Suite

# Paths of values in JSON: ``data.answer``, ``choices[0].message``, ``sources[*].text``, ``["odd key"].x``.
#
# The syntax is a part of JSONPath (RFC 9535): names of members, indices from both ends, and ``[*]`` for every item;
# the ``$`` at the beginning can be omitted. The libraries for JSONPath and JMESPath return nothing for a path without
# a value, and not the step at which it ends; the messages here name that step and the keys that exist there.


#: A name of a member, an index, or ``None`` for every item.
Step = str | int | None

_NAME = r"[^\W\d][\w-]*"
_STEP = re.compile(
    rf"""\.({_NAME}) | \[(-?\d{{1,9}})\] | \[(\*)\] | \["([^"]+)"\] | \['([^']+)'\]""",
    re.VERBOSE,
)
_PLAIN_NAME = re.compile(_NAME)
_LONGEST = 500
_MOST_KEYS = 20
_SHOWN = 300


class PathError(ValueError):
    """A path without a value; the message names the step, and the keys that exist there."""


@dataclass(frozen=True)
class JsonPath:
    """A path in JSON documents."""

    steps: tuple[Step, ...]

    @property
    def is_list(self) -> bool:
        """Whether the path finds a list of values: it contains ``[*]``."""
        return None in self.steps

    def find(self, document: Any, key: str = "response_path") -> Any:
        """Return the value at the path; with ``[*]`` a list of all values, without the items that lack one."""
        found = _find(document, self.steps, 0)
        if isinstance(found, _Missing):
            raise PathError(self._why(found, key))
        return found

    def get(self, document: Any, default: Any = None) -> Any:
        """Return the value at the path, or a default if the path has none."""
        found = _find(document, self.steps, 0)
        return default if isinstance(found, _Missing) else found

    def __str__(self) -> str:
        return _text(self.steps) or "$"

    def _why(self, missing: _Missing, key: str) -> str:
        step = self.steps[missing.at]
        before = _text(self.steps[: missing.at])
        if isinstance(step, str):
            what = f"{step!r}"
        else:
            what = "list" if step is None else f"item [{step}]"
            names = [name for name in self.steps[: missing.at] if isinstance(name, str)]
            what += f" in {(names[-1] if names else before)!r}" if before else ""
        where = f"{before!r}" if before else "the response"
        return f"the response has no {what} ({key} {str(self)!r}); {where} is {described(missing.value)}"


@dataclass(frozen=True)
class _Missing:
    """The value without the next step, and the number of that step."""

    value: Any
    at: int


def parse_path(text: str) -> JsonPath:
    """Return the path in a text."""
    rest = text[1:] if text.startswith("$") else text if text.startswith("[") else f".{text}"
    steps: list[Step] = []
    at = 0
    while at < len(rest) and len(text) <= _LONGEST:
        match = _STEP.match(rest, at)
        if match is None:
            break
        name, index, each, *quoted = match.groups()
        steps.append(None if each else int(index) if index else name or quoted[0] or quoted[1])
        at = match.end()
    if at < len(rest) or not text or len(text) > _LONGEST:
        raise ValueError(
            f"{shortened(text, _SHOWN)!r} is not a path like answer, result.items[0].price or steps[*].name"
        )
    return JsonPath(tuple(steps))


def described(value: Any) -> str:
    """Return what a JSON value is, with the keys of an object; for messages."""
    if isinstance(value, dict):
        if not value:
            return "an object without keys"
        return f"an object with the keys {keys_of(value)}"
    if isinstance(value, list):
        return "an empty list" if not value else f"a list of {len(value)} item{'s' if len(value) > 1 else ''}"
    if isinstance(value, bool):
        return "true" if value else "false"
    return {str: "a text", type(None): "null"}.get(type(value), "a number")


def keys_of(value: Mapping[Any, Any]) -> str:
    """Return the first keys of an object, for messages."""
    keys = ", ".join(map(str, islice(value, _MOST_KEYS)))
    more = f", … ({len(value)} keys)" if len(value) > _MOST_KEYS else ""
    return f"{shortened(keys, _SHOWN)}{more}"


def _find(value: Any, steps: tuple[Step, ...], at: int) -> Any:
    for number in range(at, len(steps)):
        step = steps[number]
        if step is None:
            return _find_in_items(value, steps, number)
        if isinstance(step, str):
            if not isinstance(value, dict) or step not in value:
                return _Missing(value, number)
        elif not isinstance(value, list) or not -len(value) <= step < len(value):
            return _Missing(value, number)
        value = value[step]
    return value


def _find_in_items(items: Any, steps: tuple[Step, ...], at: int) -> Any:
    if not isinstance(items, list):
        return _Missing(items, at)
    is_nested = None in steps[at + 1 :]
    found: list[Any] = []
    missing: _Missing | None = None
    for item in items:
        value = _find(item, steps, at + 1)
        if isinstance(value, _Missing):
            missing = missing or value
        elif is_nested:
            found.extend(value)
        else:
            found.append(value)
    return missing if missing is not None and not found else found


def _text(steps: Iterable[Step]) -> str:
    text = ""
    for step in steps:
        if step is None:
            text += "[*]"
        elif isinstance(step, int):
            text += f"[{step}]"
        elif _PLAIN_NAME.fullmatch(step):
            text += f".{step}"
        else:
            text += f"['{step}']" if '"' in step else f'["{step}"]'
    return text.removeprefix(".")


_SEGMENT = re.compile(r"([A-Za-z_][\w-]*)((?:\[\d+\])*)")


def check_response_path(path: str) -> str:
    """Return the path of a metric, whose grammar is HoloDeck's; those of agents have more steps.

    Raises:
        ValueError: the path does not follow the grammar ``name([index])*(.name([index])*)*``.
    """
    if not path or not all(_SEGMENT.fullmatch(segment) for segment in path.split(".")):
        raise ValueError(f"{path!r} is not a path like answer or result.items[0].price")
    return path


def text_at_path(response: str, path: str) -> str:
    """Return the leaf as text, as Python prints it (``null`` is ``None``, ``true`` is ``True``)."""
    try:
        value = json.loads(response)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"the response is not JSON, so response_path {path!r} cannot be read: {error}") from None
    leaf = parse_path(path).find(value)
    if isinstance(leaf, dict | list):
        raise ValueError(f"response_path {path!r} ends at {'an object' if isinstance(leaf, dict) else 'a list'}")
    return str(leaf)


#: Allowed names between braces, besides ``metadata.X`` for any field of the metadata.
PLACEHOLDERS = (
    "input",
    "output",
    "persona",
    "duration_ms",
    "metadata",
    "observations",
    "iteration",
    "trace_id",
    "history",
    "guidelines",
    "policy_context",
    "requirements",
    "supporting_data",
    "knowledge_base",
)
_METADATA = "metadata."
_FIELD = re.compile(r"[A-Za-z_]\w*(?:\.[\w-]+)*")
_BRACED = re.compile(rf"\{{({_FIELD.pattern})\}}")


def has_text(template: str | None) -> bool:
    """Return whether a template has content besides blank lines and comments (``#``)."""
    return any(line.strip() and not line.lstrip().startswith("#") for line in (template or "").splitlines())


def template_warnings(template: str) -> Sequence[str]:
    """Return warnings for names in braces that are not replaced."""
    unknown = dict.fromkeys(name for name in _names(template) if not _is_known(name))
    warnings = [
        f"{{{name}}} is not a placeholder and stays unchanged; known: {', '.join(PLACEHOLDERS)}, metadata.X"
        for name in unknown
    ]
    if _format_pieces(template) is None and ("{" in (rest := _BRACED.sub("", template)) or "}" in rest):
        warnings.append("braces without a placeholder stay unchanged")
    return warnings


def pieces(template: str) -> Iterator[tuple[str, str | None]]:
    """Return the parts of a template in order: texts with ``None``, and names of placeholders with an empty text.

    Other names in braces stay unchanged. If every brace follows the rules of ``str.format``, doubled braces become
    single ones, as in FluxLoop.
    """
    for literal, name in _read(template):
        yield literal, None
        if name is not None:
            known = _is_known(name)
            yield ("", name) if known else (f"{{{name}}}", None)


def _format_pieces(template: str) -> list[tuple[str, str | None]] | None:
    """Parse as ``str.format`` does; return ``None`` if it would reject a brace."""
    try:
        parsed = list(Formatter().parse(template))
    except ValueError:
        return None
    fits = all(name is None or (_FIELD.fullmatch(name) and not spec and not how) for _, name, spec, how in parsed)
    return [(literal, name) for literal, name, _, _ in parsed] if fits else None


def _braced_pieces(template: str) -> Iterator[tuple[str, str | None]]:
    parts = _BRACED.split(template)
    for index in range(0, len(parts) - 1, 2):
        yield parts[index], parts[index + 1]
    yield parts[-1], None


def _names(template: str) -> Iterator[str]:
    for _, name in _read(template):
        if name is not None:
            yield name


def _is_known(name: str) -> bool:
    return name in PLACEHOLDERS or name.startswith(_METADATA)


def _read(template: str) -> Iterable[tuple[str, str | None]]:
    formatted = _format_pieces(template)
    return _braced_pieces(template) if formatted is None else formatted


# Expected form of an answer: text to match, or JSON with a schema.
#
# Data only; ``agenteval.metrics`` checks answers against it.


Strategy = Literal["exact", "contains", "contains_any", "startswith", "endswith", "match", "similar"]
_PARTS = frozenset({"contains_any", "startswith", "endswith"})
TypeName = Literal["str", "int", "float", "bool", "dict", "list", "set", "any"]


@dataclass(frozen=True)
class TextMatch:
    """A strategy for matching a text.

    Attributes:
        strategy: ``contains`` requires all of the expected texts; ``contains_any``, ``startswith`` and ``endswith``
            require one of them; ``match`` searches for a regular expression; ``similar`` compares the meaning.
        case_sensitive: whether case and surrounding white space count.
        threshold: for ``similar``: the required cosine similarity, 0..1.
    """

    strategy: Strategy
    expected: tuple[str, ...]
    case_sensitive: bool = False
    threshold: float | None = None

    @property
    def matches_everything(self) -> bool:
        """Whether every text matches, so that nothing is checked."""
        if self.strategy == "match":
            return matches_everything(self.expected[0])
        is_empty = [not (text if self.case_sensitive else text.strip()) for text in self.expected]
        if self.strategy == "contains":
            return all(is_empty)
        return self.strategy in _PARTS and any(is_empty)


@dataclass(frozen=True)
class FieldType:
    """A type of JSON value; ``item`` is the type inside a list or a set, if given."""

    name: TypeName
    item: FieldType | None = None

    def __str__(self) -> str:
        return f"{self.name}[{self.item}]" if self.item else self.name


@dataclass(frozen=True)
class FieldSpec:
    """Requirements of a JSON value.

    Constraints on texts and numbers apply to the value, or to each entry of a list.

    Attributes:
        types: allowed types; empty allows all.
        fields: fields of an object; additional ones are allowed.
    """

    types: tuple[FieldType, ...] = ()
    required: bool = True
    text: TextMatch | None = None
    enum: tuple[Any, ...] | None = None
    min_length: int | None = None
    max_length: int | None = None
    min: float | None = None
    max: float | None = None
    min_items: int | None = None
    max_items: int | None = None
    fields: Mapping[str, FieldSpec] | None = field(default=None)
    items: FieldSpec | None = None


# Scripts without spaces between words: Thai, Lao, Myanmar, Khmer, kana and Han.
_UNSPACED = re.compile(
    "[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff\U00020000-\U0003ffff]"
)
_LATIN = re.compile("[A-Za-z0-9]")
_BY_SPACES = {"bleu": ("13a", "intl"), "f1_score": (None,), "meteor": (None,)}


def unreadable(metric: str, text: str, tokenizer: str | None = None) -> str:
    """Return why the tokenizer of a metric cannot read most of a text; empty if it can."""
    if text.isascii():
        return ""
    letters = sum(map(str.isalnum, text))
    instead = "a `bleu` of agenteval.yaml can have `tokenizer: zh`, `ja-mecab`, `flores200` or `char`"
    if metric == "rouge" and 2 * len(_LATIN.findall(text)) < letters:
        return f"the tokenizer of rouge reads only the letters a to z and digits; {instead}"
    if tokenizer in _BY_SPACES.get(metric, ()) and 2 * len(_UNSPACED.findall(text)) > letters:
        name = f"{metric} ({tokenizer})" if tokenizer else metric
        return f"the tokenizer of {name} divides words at spaces, and this script has none; {instead}"
    return ""


def unreadable_texts(suite: Suite) -> Iterator[str]:
    """Yield a warning for each metric whose tokenizer cannot read expected answers of a suite, at the first case."""
    said = set()
    others = ((case, turn) for case in suite.cases for turn in case.turns if not (turn.ground_truth or "").isascii())
    for case, turn in others:
        for metric in turn.metrics:
            tokenizer = metric.options.get("tokenizer", "13a") if metric.type == "bleu" else None
            why = unreadable(metric.type, turn.ground_truth or "", tokenizer)
            if why and metric.id not in said:
                said.add(metric.id)
                yield str(Problem(why, file=suite.path, line=case.line, path="ground_truth", kind=Kind.VALUE))
