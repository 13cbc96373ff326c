"""Rejection of YAML before it is parsed: excessive nesting is detected in any notation."""

from __future__ import annotations

import pytest
import yaml
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from agenteval.core import yaml as yaml_shape
from agenteval.core.errors import ConfigError

FRAGMENTS = [
    *("- ", "? ", ": ", "a: ", "a", "[", "]", "{", "}", ",", "'", "|"),
    *("\n", "\n ", "\n  ", " ", "\u2028", "&x ", "*x", "!!map "),
]
TEXTS = st.lists(st.sampled_from(FRAGMENTS), max_size=24).map("".join)


def depth_of(text: str) -> int:
    deepest = depth = 0
    for event in yaml.parse(text, Loader=yaml.SafeLoader):
        if isinstance(event, yaml.CollectionStartEvent):
            depth += 1
            deepest = max(deepest, depth)
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1
    return deepest


# Reads deep documents.
@pytest.mark.slow
@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(text=TEXTS, limit=st.integers(1, 12))
@example(text="[a: [a: [a: b]]]", limit=5)
@example(text="a:\u2028 a:\u2028  a:\u2028   a: b", limit=3)
@example(text="- - - - - a", limit=4)
@example(text="a:\n- a:\n  - a:\n    - b", limit=5)
def test_nothing_deeper_than_the_limit_gets_through(text: str, limit: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(yaml_shape, "_MAX_DEPTH", limit)
    try:
        depth = depth_of(text)
    except yaml.YAMLError:
        return
    try:
        yaml_shape.check_shape("agent.yaml", text, yaml.SafeLoader)
    except ConfigError:
        assert depth > limit or "&x" in text
    else:
        assert depth <= limit
