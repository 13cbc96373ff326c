"""Which variables are inserted, at which keys."""

from __future__ import annotations

from pathlib import Path

import pytest

from agenteval.core.confine import confined
from agenteval.core.document import KeyPatterns, TextPlace, refusal
from agenteval.core.errors import AgentEvalError, Problem
from agenteval.core.secrets import COMMAND_FILES
from agenteval.core.toml import read_toml
from agenteval.core.yaml import read_yaml

TEXT = TextPlace(("input",))
CREDENTIAL = TextPlace(("model", "api_key"), takes_credentials=True)
RESERVED = [
    *COMMAND_FILES,
    "ACTIONS_RUNTIME_TOKEN",
    "INPUT_TOKEN",
    "STATE_x",
    "github_env",
    "actions_id_token_request_url",
]


@pytest.fixture
def in_ci(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {"CI": "true", "A_KEY": "s3cr3t-value", "LANG": "nuts"}.items():
        monkeypatch.setenv(name, value)


@pytest.mark.parametrize(
    ("name", "text", "credential", "listed"),
    [
        ("HOME", True, True, True),
        ("https_proxy", True, True, True),
        ("SHOP", False, True, True),
        ("OPENAI_API_KEY", False, True, True),
        ("GITHUB_TOKEN", False, False, False),
        ("GITHUB_SHA", False, True, True),
        ("AGENTEVAL_CACHE", False, True, True),
        ("AGENTEVAL_CACHE_KEY", False, False, False),
        *((name, False, False, False) for name in RESERVED),
    ],
)
def test_what_is_inserted(
    name: str, text: bool, credential: bool, listed: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(name, "value")
    assert (refusal(name, TEXT) == "") is (name not in RESERVED and name != "AGENTEVAL_CACHE_KEY")
    monkeypatch.setenv("CI", "true")
    assert (refusal(name, TEXT) == "") is text
    assert (refusal(name, CREDENTIAL) == "") is credential
    for patterns in ((name,), ("*",)):
        with confined(pass_env=patterns):
            assert (refusal(name, TEXT) == "") is listed
    assert refusal("SHOP_OF_A_FILE", TEXT, is_added=True) == ""


def test_a_credential_in_a_value_is_masked_under_any_name(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text("input: ${SHOP}\n", encoding="utf-8")
    document = read_yaml(tmp_path / "a.yaml", environment={"SHOP": "postgres://me:hunter22@h/db"})
    assert document.secrets == {"hunter22"}
    assert not read_yaml(tmp_path / "a.yaml", environment={"SHOP": "http://h/db"}).secrets


@pytest.mark.parametrize(
    ("path", "match"),
    [
        (("tools", 0, "env", "KEY"), True),
        (("tools", 0, "env", "a.b"), True),
        (("tools", 0, "env"), False),
        (("tools", 0, "env", "KEY", "deeper"), False),
        (("tools", "env", "KEY"), False),
        (("unused", "x", 1, "y"), True),
        (("unused",), False),
        ((), False),
    ],
)
def test_patterns_of_keys(path: tuple[str | int, ...], match: bool) -> None:
    assert KeyPatterns.of(["tools.*.env.*", "unused.**"]).below(path).match is match


YAML = [
    # An anchor or a merge carries a value from a key for credentials to another one.
    "model: {api_key: &k '${A_KEY}'}\ninput: *k\n",
    "input: &k '${A_KEY}'\nmodel: {api_key: *k}\n",
    "model: &m {api_key: '${A_KEY}'}\ninput: *m\n",
    "model: &m {api_key: '${A_KEY}'}\ninput: {<<: *m}\n",
    "model: &m {api_key: '${A_KEY}'}\ninput: {<<: [*m, {x: 1}]}\n",
    "<<: {input: '${A_KEY}'}\n",
    "input: !!omap [a: '${A_KEY}']\n",
    "input: !!set {? '${A_KEY}': }\n? ['${A_KEY}']\n: 1\n",
    # Other shapes at a key for credentials.
    "model: {api_key: ['${A_KEY}']}\n",
    "model: {api_key: {x: '${A_KEY}'}}\n",
    "model.api_key: '${A_KEY}'\n",
    "model: [{api_key: '${A_KEY}'}]\n",
    "model: {model: {api_key: '${A_KEY}'}}\n",
    "input: '${A_KEY:-harmless}'\n",
    "input: |\n  ${A_KEY}\n",
    "input: {a: {b: [c, '${A_KEY}']}}\n",
    "'${A_KEY}'\n",
    "input: '$\ue000A_KEY\ue001'\n",
]


@pytest.mark.parametrize("text", YAML)
@pytest.mark.parametrize("value", ["s3cr3t-value", None])
def test_nothing_but_the_key_itself_takes_a_secret(tmp_path: Path, text: str, value: str | None, in_ci: None) -> None:
    (tmp_path / "a.yaml").write_text(text, encoding="utf-8")
    problems: list[Problem] = []
    try:
        found = read_yaml(tmp_path / "a.yaml", unset=problems, credentials=["model.api_key"])
        shown = repr(found.data)
    except AgentEvalError as error:
        shown = str(error)
    assert "s3cr3t-value" not in shown
    # Keys are never replaced, so they are no problem either.
    assert problems or "? [" in text
    assert all("pass_env" in problem.message for problem in problems)


def test_a_key_for_credentials_takes_it(tmp_path: Path) -> None:
    text = "base: &b {env: {A: 'Bearer ${A_KEY}', PORT: '${PORT}', PASSWORD: '${WORD}'}}\ntools: [{<<: *b}]\n"
    (tmp_path / "a.yaml").write_text(text, encoding="utf-8")
    environment = {"A_KEY": "s3cr3t", "PORT": "8080", "WORD": "swordfish"}
    credentials = ["tools.*.env.*", "base.**"]
    found = read_yaml(tmp_path / "a.yaml", environment=environment, credentials=credentials)
    assert found.data["tools"] == [{"env": {"A": "Bearer s3cr3t", "PORT": "8080", "PASSWORD": "swordfish"}}]
    assert found.secrets == {"s3cr3t", "swordfish"}


def test_toml_has_the_same_rules(tmp_path: Path, in_ci: None) -> None:
    text = 'input = "${A_KEY}"\n[model]\napi_key = "${A_KEY}"\n[[list]]\nx = ["${GITHUB_ENV}", "${LANG}"]\n'
    (tmp_path / "a.toml").write_text(text, encoding="utf-8")
    problems: list[Problem] = []
    found = read_toml(tmp_path / "a.toml", unset=problems, credentials=["model.api_key"])
    assert found.data["model"] == {"api_key": "s3cr3t-value"}
    assert found.secrets == {"s3cr3t-value"}
    assert found.data["input"] == "${A_KEY}"
    assert found.data["list"] == [{"x": ["${GITHUB_ENV}", "nuts"]}]
    assert [(problem.line, problem.path) for problem in problems] == [(1, "input"), (5, "list[0].x[0]")]
    with confined(pass_env=("A_*", "GITHUB_*")):
        problems.clear()
        read_toml(tmp_path / "a.toml", unset=problems)
    assert [problem.path for problem in problems] == ["list[0].x[0]"]
