"""The secrets of an invocation; a text is masked before it is cut, everywhere."""

from __future__ import annotations

import json
import re
import time
from pathlib import Path
from urllib.parse import unquote

import pytest

import agenteval
from agenteval.core.child import LastOutput
from agenteval.core.secrets import (
    add_listed_secrets,
    add_secrets,
    is_secret_name,
    mask,
    masking,
    redactor,
    secrets_in,
    shortened,
)

SOURCE = Path(agenteval.__file__).parent

# Texts of strangers are cut in these packages only by `core/secrets.py`.
PACKAGES = ("agents", "core", "metrics", "run", "github")

# Slices up to a limit that are cut from something else than a text that is shown.
OTHERS = {
    "agents/mcp.py": "a name of a tool, of letters",
    "github/check_run.py": "a masked result",
    "github/pygithub.py": "an existing comment",
    "core/secrets.py": "the place that masks first",
    "core/child.py": "masked there",
    "metrics/rules.py": "compared, not shown",
    "core/refusal.py": "searched, not shown",
    "metrics/schema.py": "a list",
    "github/comment_sections.py": "read back from a comment, which was masked",
    "github/baseline.py": "a commit",
    "github/action.py": "a commit",
    "core/mistakes.py": "masks the line first",
    "run/confirm/passes.py": "a commit",
    "github/publisher.py": "a masked result",
    "run/downloads.py": "a name of a file, of letters",
    "run/resume.py": "a line of the journal, which was masked",
    "run/setup.py": "masked before",
}

SECRET_NAMES = """
OPENAI_API_KEY GH_PAT PGPASSWORD PGPASS DB_PASS DB_PWD SENTRY_DSN SLACK_WEBHOOK_URL apikey openAiKey MY_JWT
AZURE_STORAGE_CONNECTION_STRING MY_CREDENTIALS COOKIE PRIVATE_PEM BASIC_AUTH X_SIGNATURE BEARER INPUT_GITHUB-TOKEN
INPUT_CACHE-KEY http.extraheader AWS_SESSION_TOKEN ADMIN_TOKEN OPENTOKEN MAX_TOKEN COMMONKEY DB_PASS2 GH_PAT2 DBPWD
SLACK_HOOK PASSWORD_SALT private_key x-api-key sig
"""

OTHER_NAMES = """
KEYBOARD CASSANDRA_KEYSPACE maxTokens MAX_TOKENS TOKEN_LIMIT XDG_SESSION_TYPE HOOKAH BASALT SKILL PATH HOME PWD OLDPWD
GIT_AUTHOR_NAME SESSION_MANAGER TOKENIZERS_PARALLELISM COMPASS_URL SSL_CERT_FILE GITHUB_ACTOR VIRTUAL_ENV AUTH_TYPE
GIT_CONFIG_KEY_0 signal design sig_handler
"""

# A slice up to a constant, and a line that is cut without masking.
CUT = re.compile(
    r"\[[^\[\]\n,\"]*:[^\[\]\n,\"]*\b(?!_?MOST|_NAMED|_SHORT|_DIGITS|_PIECE)[A-Z_]*[A-Z]{2}[A-Z_]*\b[^\[\]\n,\"]*\]"
    r"|(?<!\.)\bone_line\((?:[^()]|\([^()]*\))+,[^()]+\)"
)

PASSWORD, TOKEN = "hunter22!x", "Ab12Cd34Ef56Gh78Ij90"
KEY = "-----BEGIN PRIVATE KEY-----\nMIIEvQIBADANBgkq\nhkiG9w0BAQEFAASC\n-----END PRIVATE KEY-----\n"

# A variable without a secret's name, and the credentials in its value.
VALUES: list[tuple[str, set[str]]] = [
    (f"https://me:{PASSWORD}@shop.example https://you:{TOKEN}@shop.example", {PASSWORD, TOKEN}),
    (f"mongodb://me:{PASSWORD}@one.example:27017,two.example:27017/db?replicaSet=x", {PASSWORD}),
    (f"git+https://{TOKEN}@github.com/me/shop.git@v1", {TOKEN}),
    ("postgres://me:p%40ss%2Fw%23rd@db.example/shop", {"p@ss/w#rd", "p%40ss%2Fw%23rd"}),
    ("redis://:correct-horse@cache.example:6379/0", {"correct-horse"}),
    (f"Server=db;User Id=sa;Password={PASSWORD};Encrypt=yes", {PASSWORD}),
    ("AccountName=shop;AccountKey=Zm9vYmFyYmF6cXV4==;EndpointSuffix=x", {"Zm9vYmFyYmF6cXV4=="}),
    (f"https://shop.example/hook?access_token={TOKEN}&sig=ab%2Bcd%3D&v=1", {TOKEN, "ab%2Bcd%3D"}),
]
ORDINARY = """
http://localhost:8080/users/jane@example.com
git@github.com:me/shop.git
ssh://git@github.com/me/shop.git
tokens=8192 max_tokens=4096 tokenizer=cl100k_base
host=db user=me dbname=shop
password=test
https://shop.example/path@2x.png?size=3&signal=interrupt&design=compact
""".strip().splitlines()


def test_secrets_are_known_until_the_invocation_ends() -> None:
    with masking():
        add_secrets(["hunter22hunter"])
        assert mask("it is hunter22hunter") == "it is ***"
        assert shortened("x" * 5 + " hunter22hunter", 10) == "xxxxx ***"
    assert mask("it is hunter22hunter") == "it is hunter22hunter"


def test_variables_are_known(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SHOP_DSN", "abcdef123")
    monkeypatch.setenv("STORE", "https://me:p%40ss-word@shop.example/x")
    monkeypatch.setenv("CUSTOMER", "4711")
    assert mask("abcdef123 p@ss-word p%40ss-word 4711") == "*** *** *** 4711"
    with masking():
        add_listed_secrets(["CUST*"])
        assert mask("4711") == "***"


@pytest.mark.parametrize(("value", "credentials"), VALUES, ids=str)
def test_credentials_in_values_are_found(value: str, credentials: set[str]) -> None:
    assert secrets_in("SHOP_OPTIONS", value) == credentials | ({unquote(text) for text in credentials})


@pytest.mark.parametrize("value", ORDINARY)
def test_ordinary_values_have_none(value: str) -> None:
    assert secrets_in("SHOP_OPTIONS", value) == set()


def test_the_parts_of_secrets_are_secret() -> None:
    assert secrets_in("Authorization", f"Bearer {TOKEN}") == {f"Bearer {TOKEN}", TOKEN}
    account = {
        "type": "service_account",
        "project": "shop-42",
        "private_key": KEY,
        "uri": "https://accounts.example/x",
        "more": ["short", TOKEN],
    }
    found = secrets_in("GCP_CREDENTIALS", json.dumps(account))
    assert found == {json.dumps(account), KEY, TOKEN}
    for text in (KEY, json.dumps(KEY), KEY.replace("\n", "\\n"), "hkiG9w0BAQEFAASC"):
        assert "hkiG9w0BAQEFAASC" not in redactor(found)(text)


@pytest.mark.parametrize("piece", ["a=", "://", "x:@a", "token=", "a://b:c@", "_A", '{"a":', "bearer "])
# Reads long texts.
@pytest.mark.slow
def test_the_time_is_linear(piece: str) -> None:
    begin = time.process_time()
    secrets_in("MY_KEY", (piece * 50_000)[:50_000])
    assert time.process_time() - begin < 3


@pytest.mark.parametrize("size", [1001, 70_000])
def test_the_end_of_an_output_has_no_part_of_a_secret(size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MY_KEY", secret := "sk-abcdefgh0123456789")
    for padding in range(len(secret) + 2):
        last = LastOutput()
        data = (" " * 80_000 + secret + " " * (64 * 1024 - padding)).encode() + b"end"
        for at in range(0, len(data), size):
            last.add(data[at : at + size])
        text = last.text()
        assert not [at for at in range(len(secret) - 6) if secret[at : at + 6] in text]


@pytest.mark.parametrize("name", SECRET_NAMES.split())
def test_names_of_secrets(name: str) -> None:
    assert is_secret_name(name)


@pytest.mark.parametrize("name", OTHER_NAMES.split())
def test_names_of_no_secrets(name: str) -> None:
    assert not is_secret_name(name)


def test_values_that_reports_need_are_no_secrets(tmp_path: Path) -> None:
    for value in ("", "1", "true", "postgres", "12345", "yes", "Error", "passed"):
        assert not secrets_in("MY_KEY", value)
    for name in ("AUTH_TYPE", "KEY_REGION", "authMethod", "SECRET_NAME"):
        assert not secrets_in(name, "eu-central-1")
    for name in ("MY_KEY_FILE", "GOOGLE_APPLICATION_CREDENTIALS", "TOKEN_PATH"):
        assert not secrets_in(name, str(tmp_path))


def test_a_file_does_not_unmask_a_secret(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for secret in ("hunter22", "a", "sk-1"):
        (tmp_path / secret).touch()
    assert secrets_in("MY_KEY", "hunter22") == {"hunter22"}
    assert secrets_in("MY_KEY_FILE", "sk-1") == {"sk-1"}


def test_secrets_can_be_numbers() -> None:
    for name in ("DB_PASS", "PGPASSWORD", "CARD_PIN", "OTP", "dbPass2", "AUTH_TOKEN", "API_KEY"):
        assert secrets_in(name, "482913") == {"482913"}
        assert not secrets_in(name, "48291")
    assert not secrets_in("KEY_SIZE", "482913")


def test_no_text_is_cut_before_it_is_masked() -> None:
    found = {
        f"{name}: {cut}"
        for package in PACKAGES
        for path in (SOURCE / package).rglob("*.py")
        if (name := path.relative_to(SOURCE).as_posix()) not in OTHERS and name != "core/escape.py"
        for cut in CUT.findall(path.read_text(encoding="utf-8"))
    }
    assert found == set(), "use agenteval.core.secrets.shortened"
