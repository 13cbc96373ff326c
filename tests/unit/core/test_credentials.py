"""Credentials inside of values: every password of every form is found, and ordinary texts have none."""

from __future__ import annotations

import base64
import json
import time
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agenteval.core.credentials import credentials_in, parts_of_secret
from agenteval.core.redact import Redactor
from agenteval.core.secrets import has_credential, secrets_in

PASSWORD = "hunter22!x"
TOKEN = "ghp_Ab12Cd34Ef56Gh78"
KEY = "-----BEGIN PRIVATE KEY-----\nMIIEvQIBADANBgkq\nhkiG9w0BAQEFAASC\n-----END PRIVATE KEY-----\n"
ACCOUNT = {
    "type": "service_account",
    "project_id": "shop-42",
    "private_key_id": "0f9e8d7c6b5a49382716",
    "private_key": KEY,
    "client_email": "robot@shop-42.iam.gserviceaccount.com",
    "auth_uri": "https://accounts.google.com/o/oauth2/auth",
}

# A value, and the credentials in it.
VALUES: list[tuple[str, set[str]]] = [
    (f"https://me:{PASSWORD}@shop.example/x", {PASSWORD}),
    (f"https://me:{PASSWORD}@shop.example https://you:{TOKEN}@shop.example", {PASSWORD, TOKEN}),
    (f"amqp://me:{PASSWORD}@one.example,amqp://you:{TOKEN}@two.example", {PASSWORD, TOKEN}),
    (f"mongodb://me:{PASSWORD}@one.example:27017,two.example:27017/db?replicaSet=x", {PASSWORD}),
    (f"kafka://me:{PASSWORD}@one.example:9092,you:{TOKEN}@two.example:9092", {PASSWORD, TOKEN}),
    (f"primary: postgres://me:{PASSWORD}@db/x; replica: postgres://you:{TOKEN}@db/y", {PASSWORD, TOKEN}),
    (f"https://{TOKEN}@github.com/me/shop.git", {TOKEN}),
    (f"git+https://{TOKEN}@github.com/me/shop.git@v1", {TOKEN}),
    (f"https://{TOKEN}:x-oauth-basic@github.com/me/shop.git", {TOKEN}),
    ("https://0123456789abcdef0123456789abcdef@o1.ingest.example/42", {"0123456789abcdef0123456789abcdef"}),
    ("postgres://me:p#a/s?s@w@rd42@db.example:5432/shop", {"p#a/s?s@w@rd42"}),
    ("postgres://me:secret/42#x@db.example/shop", {"secret/42#x"}),
    ("postgres://me:one,two,42@db.example/shop", {"one,two,42"}),
    (f"postgres://me:{quote('p@ss/w#rd', safe='')}@db.example/shop", {"p@ss/w#rd", "p%40ss%2Fw%23rd"}),
    ("redis://:correct-horse@cache.example:6379/0", {"correct-horse"}),
    ("postgres://me:482913@db.example/shop", {"482913"}),
    (f"me:{PASSWORD}@tcp(db.example:3306)/shop", {PASSWORD}),
    ("me:p@ss:w/rd#42@tcp(db.example:3306)/shop?parseTime=true", {"p@ss:w/rd#42"}),
    (f"me:{PASSWORD}@unix(/run/mysqld.sock)/shop", {PASSWORD}),
    (f"me:{PASSWORD}@proxy.example:8080", {PASSWORD}),
    (f"jdbc:postgresql://db.example/shop?user=me&password={PASSWORD}&ssl=true", {PASSWORD}),
    (f"jdbc:mysql://me:{PASSWORD}@db.example/shop", {PASSWORD}),
    ("jdbc:sqlserver://db.example:1433;user=sa;password=p#a@s/s&42;encrypt=true", {"p#a@s/s&42"}),
    (f"jdbc:oracle:thin:scott/{PASSWORD}@//db.example:1521/shop", {PASSWORD}),
    ("Server=db;Database=shop;User Id=sa;Password=p&a s,s42;Encrypt=yes", {"p&a s,s42"}),
    ('Server=db;User Id=sa;Pwd="se;cret""42";Encrypt=yes', {'se;cret"42'}),
    (
        "DefaultEndpointsProtocol=https;AccountName=shop;AccountKey=Zm9vYmFyYmF6cXV4==;EndpointSuffix=x",
        {"Zm9vYmFyYmF6cXV4=="},
    ),
    ("Endpoint=sb://shop.example/;SharedAccessKeyName=root;SharedAccessKey=Zm9vYmFyYmF6=", {"Zm9vYmFyYmF6="}),
    ("host=db password=hunt user=me", {"hunt"}),
    (r"host=db user=me password='it\'s a secret 42' sslmode=require", {"it's a secret 42"}),
    ("cache.example:6380,password=abc=def42,ssl=True", {"abc=def42"}),
    (f"https://shop.example/hook?sig={TOKEN}&v=1", {TOKEN}),
    (f"-Xmx1g -Djavax.net.ssl.trustStorePassword={PASSWORD} -Dx=y", {PASSWORD}),
    (f"--user me --password {PASSWORD} --verbose", {PASSWORD}),
    (f"//registry.example.org/:_authToken={TOKEN}", {TOKEN}),
    (f"[default]\naws_access_key_id = AKIA42\naws_secret_access_key = {TOKEN}\nregion = eu", {TOKEN}),
    (f"Authorization: Bearer {TOKEN}", {TOKEN}),
    (f"authorization: basic {base64.b64encode(b'me:hunter22!x').decode()}", {PASSWORD, "bWU6aHVudGVyMjIheA=="}),
    (f"Accept: text/html\nX-Api-Key: {TOKEN}\nHost: x", {TOKEN}),
    (f"Cookie: theme=dark; sid={TOKEN}", {TOKEN}),
    (f"user: me\npassword: '{PASSWORD}'", {PASSWORD}),
    (json.dumps(ACCOUNT), {KEY}),
    (base64.b64encode(json.dumps(ACCOUNT).encode()).decode(), {KEY}),
    (json.dumps({"a": [{"clientSecret": PASSWORD, "pin": 7}], "url": f"https://me:{TOKEN}@x"}), {PASSWORD, TOKEN}),
    (json.dumps({"auths": {"r.example": {"auth": "bWU6aHVudGVyMjIheA=="}}}), {PASSWORD, "bWU6aHVudGVyMjIheA=="}),
    (json.dumps({"inner": json.dumps({"password": PASSWORD})}), {PASSWORD}),
]

# Values that must stay as they are, and are passed to user code.
ORDINARY = """
author: Bob
Author: Jane Austen, 1813
Authority: the board of 2024
authentic: yes
Authors: 12345678
authored-by: somebody-else-entirely
key: C-sharp-minor
Key: take the second door on the left
Keywords: alpha2024beta
keyboard: QWERTY-layout-105
monkey: banana2024
token: of my appreciation
Token: required
Cookie: a small cake with chocolate
Cookies: see section 12345678
Secret: there is none
secret ingredient = love
password: required
Password: test
Passwords must have at least 12 characters.
The password is: forgotten
pass: 1/2
passage: chapter2024verse
compass=north-by-northwest
tokens=8192 max_tokens=4096 tokenizer=cl100k_base
Authorization: Basic knowledge required
Authorization: granted
signature: illegible
session: 2024-05-01
API key: see the wiki
https://shop.example/path@2x.png?size=3
https://registry.example.org/@scope/package
http://localhost:3000/@me
http://localhost:8080/users/jane@example.com
https://example.com:8443/a:b@c
git@github.com:me/shop.git
ssh://git@github.com/me/shop.git
ssh://deployment-user-2024@host.example
ftp://anonymous@mirror.example
actions/checkout@v4
docker://registry.example:5000/img@sha256:0123
mailto:jane@example.com:25
mail me: jane.doe@example.com
me@example.com,you@example.com
10:30@room-4
postgres://db.example/shop
Server=db;Database=shop;Integrated Security=true
host=db user=me dbname=shop
AUTH=none;MODE=fast
password=$DB_PASSWORD
--token ${TOKEN}
password={{ vault.password }}
password=<your password>
{"type": "message", "key": "value", "token_count": 12345678, "author": "Bob"}
{"password": "", "secret": null, "token": "test"}
["a", "b", "a long text of more than twenty characters"]
aGVsbG8gd29ybGQgaGVsbG8gd29ybGQ=
Ratio = 4 : 3 @ 60 Hz
C:\\Users\\me@work
rgb(1,2,3);sig=9;a=b
""".strip().splitlines()


@pytest.mark.parametrize(("value", "credentials"), VALUES, ids=lambda item: item if isinstance(item, str) else "")
def test_credentials_are_found(value: str, credentials: set[str]) -> None:
    assert credentials <= secrets_in("SHOP_OPTIONS", value)
    assert value in secrets_in("SHOP_OPTIONS", value)
    assert credentials <= parts_of_secret(value)
    redact = Redactor(secrets_in("SHOP_OPTIONS", value))
    assert [text for text in credentials if text in redact(f"it is {text}, she said")] == []


@pytest.mark.parametrize("value", ORDINARY)
def test_ordinary_texts_have_no_credentials(value: str) -> None:
    assert credentials_in(value) == set()
    assert not has_credential(value)


def test_texts_of_secret_objects_are_secret() -> None:
    found = secrets_in("GCP_SERVICE_ACCOUNT", json.dumps(ACCOUNT))
    assert {KEY, "0f9e8d7c6b5a49382716", json.dumps(ACCOUNT)} <= found
    assert found.isdisjoint({"service_account", "shop-42", ACCOUNT["auth_uri"]})
    redact = Redactor(found)
    for text in (KEY, json.dumps(KEY), KEY.replace("\n", "\\n"), KEY.replace("\n", ""), "hkiG9w0BAQEFAASC"):
        assert "hkiG9w0BAQEFAASC" not in redact(text)


def test_the_credential_in_a_header_is_secret() -> None:
    assert secrets_in("Authorization", "Bearer of-good-news") == {"Bearer of-good-news", "of-good-news"}
    assert {"Basic bWU6aHVudGVyMjIheA==", "bWU6aHVudGVyMjIheA==", PASSWORD} <= secrets_in(
        "Authorization", "Basic bWU6aHVudGVyMjIheA=="
    )


@given(
    st.text("abXY09!#/?@:;,&=%+ '\"", min_size=8, max_size=20).filter(lambda text: text == text.strip()),
    st.sampled_from(["postgres://me:{}@db.example/x", "mongodb+srv://:{}@db.example", "me:{}@tcp(db:3306)/x"]),
)
def test_a_quoted_password_of_an_address_is_found(password: str, address: str) -> None:
    value = address.format(quote(password, safe=""))
    assert password in credentials_in(value)


@given(
    st.text("abXY09!#/?@:&=%+ ,", min_size=8, max_size=20).filter(lambda text: text == text.strip()),
    st.sampled_from(
        ["Server=db;Password={};Encrypt=yes", "password={}", "User Id=sa;Pwd = {}", "host=x passwd='{}' a=b"]
    ),
)
def test_the_password_of_a_connection_string_is_found(password: str, value: str) -> None:
    if password[0] in "$<" or password.startswith(("%(", "{{")):
        return
    assert password in credentials_in(value.format(password))


@pytest.mark.parametrize(
    "piece",
    [
        *("a", "a.", "a=", "a ", "a:", "@", "x:@a", "://", "a://", "--a", "-a", "{", "[", '{"a":', "'", '"', "a=b;"),
        *("Cookie: a", "=a,", "_A", "token=", "token='", "token: a1b2c3d4\n", "a://b:c@", ",a@"),
    ],
)
# Reads long texts.
@pytest.mark.slow
def test_the_time_is_linear(piece: str) -> None:
    text = (piece * 100_000)[:100_000]
    begin = time.process_time()
    parts_of_secret(text)
    assert time.process_time() - begin < 5


def test_values_of_other_programs_do_no_harm() -> None:
    for value in (
        "",
        " ",
        "{",
        "[" * 50_000,
        "=",
        "password=",
        "://@",
        "https://[@",
        "Authorization:",
        "x" * 200_000,
    ):
        assert credentials_in(value) == set()
