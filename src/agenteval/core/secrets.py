"""The secrets of an invocation: recognised in environment variables, and masked in texts."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from fnmatch import fnmatchcase
from functools import lru_cache
from pathlib import Path

from agenteval.core.credentials import credentials_in, in_words, is_long_number, is_maskable, parts_of_secret
from agenteval.core.escape import one_line
from agenteval.core.redact import Redactor
from agenteval.core.shared_files import key_in_force

# Anywhere in a name: APIKEY, OPENAI_KEYS, authToken.
_SECRET_NAME = re.compile(
    r"KEY|TOKEN|SECRET|PASSWORD|PASSWD|PASSPHRASE|PASSCODE|CREDENTIAL|WEBHOOK|SERVICE_?ACCOUNT"
    r"|JWT|COOKIE|SESSION|PRIVATE|AUTH|SIGNATURE|BEARER|EXTRAHEADER|MNEMONIC|HMAC"
)

# A word of a name: DB_PASS, DBPWD, GH_PAT2, SENTRY_DSN.
_SECRET_WORD = re.compile(
    r"(?:(?!COMPASS|BYPASS|SURPASS|TRESPASS)[A-Z]*PASS|[A-Z]*PWD|PATS?|PW|DSN|SAS|CREDS?|PEM|PFX|PKCS|P12|OTP|PIN"
    r"|HOOKS?|SK|PSK|SALT|RSA|DSA|ECDSA|ED25519)\d*"
)

# Words of addresses that usually contain a password; they are apart from each other or not.
_SECRET_ADDRESS = re.compile(
    r"(?:CONNECTION|CONN)_?(?:STRING|STR)|(?:DATABASE|DB|POSTGRES|POSTGRESQL|MYSQL|MONGO|MONGODB|REDIS|AMQP|RABBITMQ)_?UR[IL]"
)

# Words of names that contain one of the above and name no secret. One token is a secret, several can be a number.
_HARMLESS_PART = re.compile(
    r"(?<![A-Z0-9])(?:KEY(?:BOARD|CLOAK|MAP|WORD|NOTE|FRAME|STROKE|S?PACE)|(?:MON|DON|TUR|HOC|JOC|WHIS)KEY"
    r"|AUTHOR(?!I[SZ])|AUTHENTICITY|TOKENIZER"
    r"|(?:(?:MAX|MIN|NUM|N|CONTEXT|COMPLETION|PROMPT|OUTPUT|INPUT)_?TOKENS|TOKENS?_?(?:LIMIT|COUNT|BUDGET))(?![A-Z]))"
)

# Variables of desktops, shells and git whose values are no secrets.
_HARMLESS = re.compile(
    r"PWD|OLDPWD|XDG_SESSION_(?:ID|TYPE|CLASS|DESKTOP|PATH)|DESKTOP_SESSION|GDMSESSION|SESSION_MANAGER|SESSIONNAME"
    r"|DBUS_SESSION_BUS_(?:ADDRESS|PID|WINDOWID)|KDE_SESSION_(?:UID|VERSION)|KDE_FULL_SESSION"
    r"|GNOME_DESKTOP_SESSION_ID|GNOME_SHELL_SESSION_MODE|GNOME_KEYRING_(?:CONTROL|PID)"
    r"|TERM_SESSION_ID|SHELL_SESSIONS?_(?:DIR|FILE|HISTORY|HISTFILE|TIMESTAMP_FILE|DID_\w+|DISABLE)"
    r"|ITERM_SESSION_ID|SECURITYSESSIONID|SSH_AUTH_SOCK|SSH_AGENT_PID|GPG_AGENT_INFO|XAUTHORITY|GIT_CONFIG_KEY_\d+"
    r"|WT_SESSION|BYOBU_SESSION"
)

# User code needs the proxy to reach anything; a password in its address is masked all the same.
_PROXY = re.compile(r"\w+_PROXY")

# Names of settings of a credential: AUTH_TYPE, KEY_REGION, SESSION_TTL.
_SETTING = re.compile(r"(?:.*_)?(?:TYPE|ENABLED|REGION|METHOD|NAME|SIZE|LENGTH|BITS|COUNT|LIMIT|TIMEOUT|TTL|VERSION)")

# Names of variables with a path: SSL_KEY_FILE, GOOGLE_APPLICATION_CREDENTIALS.
_FILE_NAME = re.compile(r"(?:.*_)?(?:PATH|FILE|DIR|DIRECTORY|SOCK|SOCKET|CREDENTIALS)")

# A listed secret may be a shorter number than one that is recognised by its name.
_LISTED_NUMBER = re.compile(r"\d{4,}")

# Names and patterns of `secrets:` of the configuration, during an invocation.
_NAMED: ContextVar[set[str] | None] = ContextVar("named secrets", default=None)


@contextmanager
def naming_secrets() -> Iterator[None]:
    """Let :func:`name_secrets` extend the list of secret names within the block."""
    token = _NAMED.set(set())
    try:
        yield
    finally:
        _NAMED.reset(token)


def name_secrets(patterns: Iterable[str]) -> None:
    """Take environment variables with these names, or that match these patterns, for secrets."""
    named = _NAMED.get()
    if named is not None:
        named.update(patterns)


def named_secrets() -> frozenset[str]:
    """Return the names and patterns that :func:`name_secrets` added."""
    return frozenset(_NAMED.get() or ())


def is_secret_name(variable: str) -> bool:
    """Return whether the name of an environment variable looks like a secret's, or the configuration lists it."""
    if _is_listed(variable):
        return True
    name = in_words(variable)
    if _HARMLESS.fullmatch(name):
        return False
    name = _HARMLESS_PART.sub("_", name)
    if _SECRET_NAME.search(name) or _SECRET_ADDRESS.search(name):
        return True
    return any(_SECRET_WORD.fullmatch(word) for word in name.split("_"))


def is_secret(variable: str, value: str) -> bool:
    """Return whether an environment variable is withheld from user code that does not ask for it."""
    if is_secret_name(variable):
        return True
    return _PROXY.fullmatch(variable.upper()) is None and has_credential(value)


def has_credential(value: str) -> bool:
    """Return whether a value contains a credential, whatever the name of its variable."""
    return bool(credentials_in(value))


def secrets_in(variable: str, value: str) -> set[str]:
    """Return the secrets in an environment variable, a header or a key.

    Small numbers, paths of files and common words are not secrets, because masking them would make reports
    unreadable.
    """
    text, name = value.strip(), in_words(variable)
    if _is_listed(variable):
        is_whole = is_maskable(text) or _LISTED_NUMBER.fullmatch(text) is not None
    elif not is_secret_name(variable) or _SETTING.fullmatch(name) or (_FILE_NAME.fullmatch(name) and _is_file(text)):
        return {part for part in credentials_in(value) if is_maskable(part) or is_long_number(part)}
    else:
        is_whole = is_maskable(text) or is_long_number(text)
    return parts_of_secret(value) | ({value} if is_whole else set())


def environment_secrets(environment: Mapping[str, str]) -> set[str]:
    """Return the secrets in environment variables."""
    return {secret for name, value in environment.items() for secret in secrets_in(name, value)}


def _is_listed(variable: str) -> bool:
    return any(fnmatchcase(variable, pattern) for pattern in _NAMED.get() or ())


def _is_file(text: str) -> bool:
    """Return whether a text is an absolute path that exists. User code writes to the working directory."""
    try:
        path = Path(text)
        return path.is_absolute() and path.exists()
    except (OSError, ValueError):
        # The text is too long for a path or has characters that no path has.
        return False


_RUNNER = ("GITHUB_", "RUNNER_", "ACTIONS_", "INPUT_", "STATE_")
_OWN = ("AGENTEVAL_",)
# Inputs and state of actions, and services of the runner.
_RESERVED = ("ACTIONS_", "INPUT_", "STATE_")
#: The variables with the files that a step writes commands for the runner to.
COMMAND_FILES = ("GITHUB_OUTPUT", "GITHUB_ENV", "GITHUB_PATH", "GITHUB_STATE", "GITHUB_STEP_SUMMARY")


def is_runner_name(variable: str) -> bool:
    """Return whether a CI runner sets a variable. Names are compared in upper case, as Windows does."""
    return variable.upper().startswith(_RUNNER)


def is_own_name(variable: str) -> bool:
    """Return whether a variable configures agenteval."""
    return variable.upper().startswith(_OWN)


def is_reserved_name(variable: str) -> bool:
    """Return whether no file may use a variable: the runner's command files, inputs, state and services, our keys."""
    ours = is_own_name(variable) and is_secret_name(variable)
    return ours or variable.upper() in COMMAND_FILES or variable.upper().startswith(_RESERVED)


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
        with naming_secrets():
            yield
    finally:
        _KNOWN.reset(token)


def add_secrets(secrets: Iterable[str]) -> None:
    """Mask these values as well until the invocation ends."""
    known = _KNOWN.get()
    if known is not None:
        known.update(secrets)


def redactor(secrets: Iterable[str] = ()) -> Redactor:
    """Return a redactor for the given secrets, the known ones, and those in environment variables."""
    ambient = _ambient(frozenset(os.environ.items()), named_secrets())
    own = key_in_force()
    return _redactor(ambient.union(secrets, _KNOWN.get() or (), (own,) if own else ()))


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
    return Redactor(secrets.union(*map(parts_of_secret, secrets)))


# Finding the secrets takes time, and the environment hardly ever changes.
@lru_cache(maxsize=8)
def _ambient(variables: frozenset[tuple[str, str]], _named: frozenset[str]) -> frozenset[str]:
    return frozenset(environment_secrets(dict(variables)))
