"""Codes of cache entries: which entries are believed, and that no cache is without them."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support import ROOT

from agenteval.core.confine import confined, user_environment
from agenteval.core.errors import ConfigError
from agenteval.core.llm.calls import Completion
from agenteval.core.llm.gateway import ResponseCache, key_of
from agenteval.core.llm.models import ModelSpec
from agenteval.core.secrets import redactor
from agenteval.core.shared_files import CACHE_KEY, Seal, seal

KEY = "0123456789abcdef-secret"
REPLY = Completion("10/10", 5, 3, logprobs=[{"token": "1\ud800", "logprob": -0.1}])


@given(parts=st.lists(st.text()), others=st.lists(st.text()))
def test_a_code_confirms_these_parts_only(parts: list[str], others: list[str]) -> None:
    code = Seal(KEY).code(*parts)

    assert Seal(KEY).confirms(code, *others) is (parts == others)
    assert not Seal(KEY[::-1]).confirms(code, *parts)


def test_the_variable_is_the_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(CACHE_KEY, raising=False)
    assert seal() == Seal()
    monkeypatch.setenv(CACHE_KEY, f" {KEY}\n")
    assert seal() == Seal(KEY)
    monkeypatch.setenv(CACHE_KEY, "short")
    with pytest.raises(ConfigError, match="AGENTEVAL_CACHE_KEY: the key has 5 characters; use 16 or more"):
        seal()


@pytest.mark.parametrize("pass_env", [(), ("*",), (CACHE_KEY,)])
def test_user_code_does_not_get_the_key(pass_env: tuple[str, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CI", "true")
    with confined(pass_env=pass_env):
        assert KEY not in user_environment(environment={CACHE_KEY: KEY, "INPUT_CACHE-KEY": KEY}).values()


# Entries of the cache of replies


def question(text: str = "How good?", model: str = "gpt-4.1") -> str:
    return key_of(ModelSpec("openai", model), [text])


def entry(directory: Path, key: str) -> Path:
    return directory / key[:2] / f"{key}.json"


def rewrite(change: Callable[[dict[str, Any]], object]) -> Callable[[Path], object]:
    def changed(file: Path) -> None:
        content = json.loads(file.read_text(encoding="utf-8"))
        change(content)
        file.write_text(json.dumps(content), encoding="utf-8")

    return changed


def stored_as_another(file: Path) -> None:
    for other in (question("Another question"), question(model="gpt-3.5-turbo")):
        target = entry(file.parents[1], other)
        target.parent.mkdir(exist_ok=True)
        target.write_bytes(file.read_bytes())
    ResponseCache(file.parents[1], Seal("the key of another repository")).put(question(), REPLY)


def replace_by(file: Path, make: Callable[..., None], *args: object) -> None:
    file.unlink()
    make(*args)


CHANGES: dict[str, Callable[[Path], object]] = {
    "no code": rewrite(lambda content: content.pop("mac")),
    "another reply": rewrite(lambda content: content.update(text="1/10")),
    "another number of tokens": rewrite(lambda content: content.update(input_tokens=6)),
    "other probabilities": rewrite(lambda content: content.update(logprobs=None)),
    "another field": rewrite(lambda content: content.update(more=1)),
    "a code that is none": rewrite(lambda content: content.update(mac=[1])),
    "truncated": lambda file: file.write_bytes(file.read_bytes()[:-9]),
    "stored as another": stored_as_another,
    "a list": lambda file: file.write_text("[]", encoding="utf-8"),
    "a device": lambda file: replace_by(file, file.symlink_to, "/dev/zero"),
    "a FIFO": lambda file: replace_by(file, os.mkfifo, file),
    "too large": lambda file: os.truncate(file, 2**40),
    "nested": lambda file: file.write_text("[" * 100_000, encoding="utf-8"),
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_a_changed_reply_is_not_believed(tmp_path: Path, change: Callable[[Path], object]) -> None:
    cache = ResponseCache(tmp_path, Seal(KEY))
    cache.put(question(), REPLY)
    found = cache.get(question())
    assert found is not None
    assert (found.text, found.cached) == (REPLY.text, True)

    change(entry(tmp_path, question()))

    asked = (question(), question("Another question"), question(model="gpt-3.5-turbo"))
    assert [cache.get(key) for key in asked] == [None] * 3


def test_without_a_key_every_reply_is_believed(tmp_path: Path) -> None:
    for writer in (Seal(), Seal(KEY)):
        ResponseCache(tmp_path, writer).put(question(), REPLY)
        assert ResponseCache(tmp_path, Seal()).get(question()) is not None


# What finds a cache that somebody adds later

# Where caches are, and what writes their files.
_CACHES = {
    "default_directory",
    "files_directory",
    "read_cache_file",
    "write_cache_file",
    "XDG_CACHE_HOME",
    "AGENTEVAL_CACHE",
}
# These only say where caches are, clear the variables that do, or allow their directories.
_PLACES = {"core/shared_files.py", "github/isolation.py", "github/workspace.py"}


def test_every_module_with_a_cache_uses_a_seal() -> None:
    source = ROOT / "src" / "agenteval"
    names = {
        file.relative_to(source).as_posix(): set(re.findall(r"\w+", file.read_text(encoding="utf-8")))
        for file in source.rglob("*.py")
    }
    caches = {file for file, found in names.items() if found & _CACHES or "cache" in Path(file).stem} - _PLACES
    assert {file for file in caches if not names[file] & {"Seal", "seal", "CACHE_KEY"}} == set()
    assert caches == {
        "github/inputs.py",
        "core/llm/gateway.py",
        "metrics/judge_quota.py",
        "run/conversation.py",
        "run/downloads.py",
        "run/config_file.py",
        "run/resolve/configurations.py",
    }


def test_a_seal_does_not_show_its_key(monkeypatch: pytest.MonkeyPatch) -> None:
    assert KEY not in f"{Seal(KEY)!r} {Seal(KEY)}"
    monkeypatch.setenv(CACHE_KEY, KEY)
    assert redactor()(f"it is {KEY}") == "it is ***"
