"""Which variables are inserted, at which keys."""

from __future__ import annotations

from pathlib import Path

import pytest

from agenteval.core.document import AllowedVariables, KeyPatterns, TextPlace, allowing
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


@pytest.mark.parametrize(
    ("name", "text", "credential", "listed"),
    [
        ("SHOP", True, True, True),
        ("HOME", True, True, True),
        ("OPENAI_API_KEY", False, True, True),
        ("GITHUB_TOKEN", False, True, True),
        ("github_token", False, True, True),
        ("GITHUB_SHA", False, True, True),
        ("RUNNER_TEMP", False, True, True),
        ("AGENTEVAL_CACHE", False, False, True),
        *((name, False, False, False) for name in RESERVED),
    ],
)
def test_what_is_inserted(name: str, text: bool, credential: bool, listed: bool) -> None:
    assert (AllowedVariables().refusal(name, TEXT) is None) is text
    assert (AllowedVariables().refusal(name, CREDENTIAL) is None) is credential
    for patterns in ((name,), ("*",)):
        assert (AllowedVariables(patterns).refusal(name, TEXT) is None) is listed


@pytest.mark.parametrize("value", ["postgres://me:hunter22@h/db", "AUTHORIZATION: basic eDpnaHBfYWJj"])
def test_a_credential_in_a_value_is_a_secret_under_any_name(tmp_path: Path, value: str) -> None:
    assert AllowedVariables().refusal("SHOP", TEXT, value) is not None
    assert AllowedVariables().refusal("SHOP", CREDENTIAL, value) is None
    assert AllowedVariables(("SHOP",)).refusal("SHOP", TEXT, value) is None
    (tmp_path / "a.yaml").write_text("input: ${SHOP}\n", encoding="utf-8")
    problems: list[Problem] = []
    document = read_yaml(tmp_path / "a.yaml", environment={"SHOP": value}, unset=problems)
    assert value not in repr(document.data)
    assert "contains a credential" in problems[0].message
    assert not read_yaml(tmp_path / "a.yaml", environment={"SHOP": "http://h/db"}, unset=[]).secrets


class TestBase:
    def test_both_lists_count(self) -> None:
        def allowed(*base: str) -> AllowedVariables:
            return AllowedVariables(("A_KEY", "B_*"), lambda: base)

        assert allowed("A_KEY").refusal("A_KEY", TEXT) is None
        assert allowed("B_KEY").refusal("B_KEY", TEXT) is None
        assert "merge that change" in (allowed("B_KEY").refusal("A_KEY", TEXT) or "")
        assert "list it in allow_env" in (allowed("*").refusal("C_KEY", TEXT) or "")

    def test_it_is_read_only_if_a_text_needs_it(self) -> None:
        def base() -> tuple[str, ...]:
            raise AgentEvalError("GitHub is away")

        allowed = AllowedVariables(("A_KEY",), base)
        assert allowed.refusal("SHOP", TEXT) is None
        assert allowed.refusal("A_KEY", CREDENTIAL) is None
        assert "GitHub is away" not in (allowed.refusal("B_KEY", TEXT) or "")
        assert "cannot be read: GitHub is away" in (allowed.refusal("A_KEY", TEXT) or "")


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
def test_nothing_but_the_key_itself_takes_a_secret(tmp_path: Path, text: str, value: str | None) -> None:
    (tmp_path / "a.yaml").write_text(text, encoding="utf-8")
    problems: list[Problem] = []
    environment = {} if value is None else {"A_KEY": value}
    try:
        found = read_yaml(tmp_path / "a.yaml", environment=environment, unset=problems, credentials=["model.api_key"])
        shown = repr(found.data)
    except AgentEvalError as error:
        shown = str(error)
    assert "s3cr3t-value" not in shown
    # Keys are never replaced, so they are no problem either.
    assert problems or "? [" in text
    assert all("allow_env" in problem.message for problem in problems)


def test_a_key_for_credentials_takes_it(tmp_path: Path) -> None:
    text = "base: &b {env: {A: 'Bearer ${A_KEY}', PORT: '${PORT}', PASSWORD: '${WORD}'}}\ntools: [{<<: *b}]\n"
    (tmp_path / "a.yaml").write_text(text, encoding="utf-8")
    environment = {"A_KEY": "s3cr3t", "PORT": "8080", "WORD": "swordfish"}
    credentials = ["tools.*.env.*", "base.**"]
    found = read_yaml(tmp_path / "a.yaml", environment=environment, credentials=credentials)
    assert found.data["tools"] == [{"env": {"A": "Bearer s3cr3t", "PORT": "8080", "PASSWORD": "swordfish"}}]
    assert found.secrets == {"s3cr3t", "swordfish"}


def test_toml_has_the_same_rules(tmp_path: Path) -> None:
    text = 'input = "${A_KEY}"\n[model]\napi_key = "${A_KEY}"\n[[list]]\nx = ["${GITHUB_ENV}", "${SHOP}"]\n'
    (tmp_path / "a.toml").write_text(text, encoding="utf-8")
    problems: list[Problem] = []
    environment = {"A_KEY": "s3cr3t", "GITHUB_ENV": "/x", "SHOP": "nuts"}
    found = read_toml(tmp_path / "a.toml", environment=environment, unset=problems, credentials=["model.api_key"])
    assert found.data["model"] == {"api_key": "s3cr3t"}
    assert found.data["input"] == "${A_KEY}"
    assert found.data["list"] == [{"x": ["${GITHUB_ENV}", "nuts"]}]
    assert [(problem.line, problem.path) for problem in problems] == [(1, "input"), (5, "list[0].x[0]")]
    with allowing(AllowedVariables(("A_*", "GITHUB_*"))):
        problems.clear()
        read_toml(tmp_path / "a.toml", environment=environment, unset=problems)
    assert [problem.path for problem in problems] == ["list[0].x[0]"]
