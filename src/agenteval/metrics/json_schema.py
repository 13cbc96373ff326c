"""Checks the reply of a judge against a JSON Schema of a suite, without files, requests or endless patterns."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any

from agenteval.metrics.base import MetricError
from agenteval.metrics.text.patterns import found


def first_problem(schema: Mapping[str, Any], value: Any) -> str | None:
    """Return where and why a value does not follow a schema; ``None`` if it does.

    Args:
        schema: a JSON Schema, version 2020-12.
        value: a JSON value.

    Raises:
        MetricError: a pattern takes too long, or a reference is not in the schema.
    """
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
