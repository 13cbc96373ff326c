"""The variables of an invocation: which of them user code gets, which are secret, and how their values are masked."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from fnmatch import fnmatchcase
from functools import lru_cache
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from agenteval.core.escape import one_line
from agenteval.core.redact import Redactor

# Which variables user code gets, and which files may insert.

# In a CI run, user code gets these without being named: where programs, libraries, homes and certificates are, the
# locale, and the way through proxies.
_PASSED = re.compile(
    r"PATH|HOME|USER|LOGNAME|SHELL|PWD|TERM|COLUMNS|LINES|NO_COLOR|FORCE_COLOR|TZ|LANG|LANGUAGE|LC_\w+|CI"
    r"|TMPDIR|TEMP|TMP|XDG_(?:CACHE|CONFIG|DATA|STATE)_HOME|(?:HTTPS?|FTP|ALL|NO)_PROXY"
    r"|SSL_CERT_(?:FILE|DIR)|(?:REQUESTS|CURL)_CA_BUNDLE|NODE_EXTRA_CA_CERTS"
    r"|VIRTUAL_ENV|LD_LIBRARY_PATH|PYTHON(?:PATH|HOME|USERBASE|UNBUFFERED|DONTWRITEBYTECODE|IOENCODING|UTF8)"
    r"|(?:UV|PIP)_CACHE_DIR|UV_(?:PROJECT_ENVIRONMENT|PYTHON|PYTHON_INSTALL_DIR)|NODE_PATH|JAVA_HOME"
    r"|SYSTEMROOT|WINDIR|COMSPEC|PATHEXT|USERPROFILE|(?:LOCAL)?APPDATA|PROGRAM(?:DATA|FILES)"
)

_RUNNER = ("GITHUB_", "RUNNER_", "ACTIONS_", "INPUT_", "STATE_")
_OWN = "AGENTEVAL_"
# Inputs and state of actions, and services of the runner.
_RESERVED = ("ACTIONS_", "INPUT_", "STATE_")
# The workflow's token acts as the workflow.
_TOKENS = frozenset({"GITHUB_TOKEN", "GH_TOKEN"})
#: The variables with the files that a step writes commands for the runner to.
COMMAND_FILES = ("GITHUB_OUTPUT", "GITHUB_ENV", "GITHUB_PATH", "GITHUB_STATE", "GITHUB_STEP_SUMMARY")


def is_in_ci() -> bool:
    """Return whether this is a run of a CI system, not of a person."""
    return any(os.environ.get(name, "").lower() not in {"", "0", "false"} for name in ("CI", "GITHUB_ACTIONS"))


def is_passed(variable: str, pass_env: Iterable[str] = ()) -> bool:
    """Return whether user code gets an environment variable: on a person's machine, it gets them all.

    Args:
        pass_env: names and patterns of the configuration; the runner's variables and tokens are never passed.
    """
    if not is_in_ci():
        return True
    name = variable.upper()
    return not is_reserved_name(name) and (_PASSED.fullmatch(name) is not None or _matches(variable, pass_env))


def is_runner_name(variable: str) -> bool:
    """Return whether a CI runner sets a variable. Names are compared in upper case, as Windows does."""
    return variable.upper().startswith(_RUNNER)


def is_own_name(variable: str) -> bool:
    """Return whether a variable configures agenteval."""
    return variable.upper().startswith(_OWN)


def is_reserved_name(variable: str) -> bool:
    """Return whether no file may use a variable: the runner's command files, inputs, state and services, our keys.

    In a CI run, that holds for the workflow's token too.
    """
    name = variable.upper()
    ours = is_own_name(variable) and is_secret_name(variable)
    return ours or name in COMMAND_FILES or name.startswith(_RESERVED) or (name in _TOKENS and is_in_ci())


def _matches(variable: str, patterns: Iterable[str]) -> bool:
    return any(fnmatchcase(variable, pattern) for pattern in patterns)


# Which values are secret.

# Words of a name: OPENAI_API_KEY, openAiKey, APIKEYS, DB_PASS2, GH_PAT. Several tokens can be a number of tokens.
_SECRET_NAME = re.compile(
    r"(?:.*_)?(?:TOKEN|(?!COMPASS|BYPASS)[A-Z0-9]*(?:KEYS?|TOKEN|SECRETS?|PASSWORDS?|PASSWD|PASSPHRASE|PASSCODE|PASS"
    r"|PWD|CREDENTIALS?|COOKIES?|JWT|WEBHOOK)|PATS?|DSN|CREDS|AUTH|AUTHORIZATION|BEARER|SIGNATURE|PEM|PIN|OTP|SAS|PSK"
    r"|HOOKS?|SALT|EXTRAHEADER|CONN(?:ECTION)?_?STR(?:ING)?)\d*(?:_.*)?|SIG"
)
# Names of settings of a credential: AUTH_TYPE, KEY_REGION; and the names of settings of git.
_SETTING = re.compile(
    r"(?:OLD)?PWD|GIT_CONFIG_KEY_\d+"
    r"|(?:.*_)?(?:TYPE|ENABLED|REGION|METHOD|NAME|SIZE|LENGTH|BITS|COUNT|LIMIT|TIMEOUT|TTL|VERSION)"
)

# Values that reports would contain anyway.
_COMMON = re.compile(
    r"true|false|none|null|enabled?|disabled?|default|undefined|unset|yes|off|on|auto|required"
    r"|admin|administrator|anonymous|client|guest|public|root|server|user|username|main|case|error|score|passed"
    r"|basic|bearer|changeme|dummy|example|password|secret|token|localhost|debug|demo|development|prod|production"
    r"|staging|test|testing|console|master|mysql|postgres|postgresql|ubuntu|wayland",
    re.IGNORECASE,
)
_NUMBER = re.compile(r"[-+]?[\d.,_]{0,7}")
_LONG_NUMBER = re.compile(r"\d{6,}")
# A listed secret may be a shorter number than one that is recognised by its name.
_LISTED_NUMBER = re.compile(r"\d{4,}")
_SHORTEST = 3
# No variable with a credential is longer.
_LONGEST_VALUE = 100_000

# `://user:password@`, `://token@`, `Password=…;`, `?sig=…&`. Lengths are limited, so that the search stays linear.
_ADDRESS = re.compile(
    r"://(?:[^\s/:@]{0,200}:(?P<password>(?!\d{1,5}/)[^\s@]{1,1024})|(?P<token>[^\s/:@]{20,1024}))@"
)
_PAIR = re.compile(r"(?P<key>[A-Za-z_][\w.-]{0,60})[ \t]{0,9}=[ \t]{0,9}[\"']?(?P<value>[^\s;&,\"']{6,1024})")
_AUTH_SCHEME = re.compile(r"(?:basic|bearer|digest|negotiate|token|api[-_]?key)[ \t]+(\S+)", re.IGNORECASE)
# A text in a secret JSON object with so many characters is no common word.
_LONG_TEXT = 20


def in_words(name: str) -> str:
    """Return a name in upper case, its words apart: openAiKey, http.extraheader and x-api-key have two or three."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])|[^A-Za-z0-9]+", "_", name).strip("_").upper()


def is_secret_name(variable: str) -> bool:
    """Return whether the name of a variable, a header or a key looks like that of a secret."""
    name = in_words(variable)
    return _SECRET_NAME.fullmatch(name) is not None and _SETTING.fullmatch(name) is None


def is_maskable(value: str) -> bool:
    """Return whether a value is long and rare enough to be masked: no common word, no small number."""
    text = value.strip()
    if _LONG_NUMBER.fullmatch(text):
        return True
    return len(text) >= _SHORTEST and _COMMON.fullmatch(text) is None and _NUMBER.fullmatch(text) is None


def secrets_in(variable: str, value: str) -> set[str]:
    """Return the secrets in a variable, a header or a key: all of a secret's value, and credentials in others."""
    if is_secret_name(variable) and not _is_file(value.strip()):
        return set(filter(is_maskable, {value, *_parts_of_secret(value)}))
    return set(filter(is_maskable, _credentials_in(value)))


def _parts_of_secret(value: str) -> Iterator[str]:
    """Yield the parts of a secret that are secret as well: what follows ``Bearer``, and texts of a JSON object."""
    if len(value) > _LONGEST_VALUE:
        return
    text = value.strip()
    yield from _credentials_in(text)
    scheme = _AUTH_SCHEME.fullmatch(text)
    if scheme is not None:
        yield scheme[1]
    for key, leaf in _leaves(text):
        if is_secret_name(key) or (len(leaf) >= _LONG_TEXT and "://" not in leaf):
            yield leaf


def _credentials_in(value: str) -> Iterator[str]:
    """Yield the passwords and tokens in addresses, and the values of secret names."""
    if len(value) > _LONGEST_VALUE:
        return
    for address in _ADDRESS.finditer(value):
        password = address["password"] or address["token"]
        yield from (password, unquote(password))
    for pair in _PAIR.finditer(value):
        if is_secret_name(pair["key"]):
            yield from (pair["value"], unquote(pair["value"]))


def _leaves(text: str) -> Iterator[tuple[str, str]]:
    try:
        rest: list[tuple[str, Any]] = [("", json.loads(text))] if text.startswith("{") else []
    except (ValueError, RecursionError):
        return
    while rest:
        key, item = rest.pop()
        if isinstance(item, dict):
            rest += item.items()
        elif isinstance(item, list):
            rest += [(key, each) for each in item]
        elif isinstance(item, str):
            yield key, item


def _is_file(text: str) -> bool:
    """Return whether a text is an absolute path that exists, as in SSH_AUTH_SOCK and SSL_KEY_FILE."""
    try:
        path = Path(text)
        return path.is_absolute() and path.exists()
    except (OSError, ValueError):
        # The text is too long for a path or has characters that no path has.
        return False


# The secrets of an invocation, and the one way to shorten a text that can contain them.
#
# A text is masked before it is cut, because half a secret is not recognised. Errors are built, and shortened, deep
# inside of agents and metrics, so the secrets are known everywhere during an invocation.


_KNOWN: ContextVar[set[str] | None] = ContextVar("secrets", default=None)


@contextmanager
def masking() -> Iterator[None]:
    """Collect the secrets that become known within the block; an inner block adds to the outer one."""
    if _KNOWN.get() is not None:
        yield
        return
    token = _KNOWN.set(set())
    try:
        yield
    finally:
        _KNOWN.reset(token)


def add_secrets(secrets: Iterable[str]) -> None:
    """Mask these values as well until the invocation ends."""
    known = _KNOWN.get()
    if known is not None:
        known.update(secrets)


def add_listed_secrets(patterns: Iterable[str]) -> None:
    """Mask the values of the environment variables with these names, or that match these patterns, as well."""
    listed = list(patterns)
    values = [value for name, value in os.environ.items() if listed and _matches(name, listed)]
    add_secrets(value for value in values if is_maskable(value) or _LISTED_NUMBER.fullmatch(value.strip()))


def redactor(secrets: Iterable[str] = ()) -> Redactor:
    """Return a redactor for the given secrets, the known ones, and those in environment variables."""
    return _redactor(_ambient(frozenset(os.environ.items())).union(secrets, _KNOWN.get() or ()))


def mask(text: str) -> str:
    """Return the text with the known secrets masked."""
    return redactor()(text)


def shortened(text: str, limit: int) -> str:
    """Return a text as one line without secrets and control sequences, cut to a length in characters."""
    return one_line(mask(text), limit)


def beginning(text: str, limit: int) -> str:
    """Return the beginning of a text of several lines without secrets, cut to a length in characters."""
    return mask(text)[:limit]


@lru_cache(maxsize=8)
def _redactor(secrets: frozenset[str]) -> Redactor:
    return Redactor(secrets.union(*(filter(is_maskable, _parts_of_secret(secret)) for secret in secrets)))


# Finding the secrets takes time, and the environment hardly ever changes.
@lru_cache(maxsize=8)
def _ambient(variables: frozenset[tuple[str, str]]) -> frozenset[str]:
    return frozenset(secret for name, value in variables for secret in secrets_in(name, value))
