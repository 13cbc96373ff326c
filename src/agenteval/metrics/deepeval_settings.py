"""Imports deepeval with fixed settings; import this module before any module of deepeval."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from pydantic import ValidationError

from agenteval.core.errors import ConfigError, Kind, Problem

#: Assigned whatever the environment says: no telemetry, update check or tracing, and neither .env files nor a keyfile
#: of the working directory, which could set environment variables.
SETTINGS = {
    "DEEPEVAL_TELEMETRY_OPT_OUT": "1",
    "DEEPEVAL_TELEMETRY_ENABLED": "0",
    "DEEPEVAL_DISABLE_DOTENV": "1",
    "DEEPEVAL_DISABLE_LEGACY_KEYFILE": "1",
    "DEEPEVAL_UPDATE_WARNING_OPT_IN": "0",
    "CONFIDENT_TRACING_ENABLED": "NO",
    "CONFIDENT_TRACE_FLUSH": "0",
}

# deepeval imports these 3,000 modules where they are installed, for judges that it asks itself. agenteval asks them.
_OPTIONAL = "anthropic"


class _Hidden:
    """A finder of modules that denies the optional package of deepeval to one thread."""

    def __init__(self) -> None:
        self._thread = threading.get_ident()

    def find_spec(self, name: str, _path: object = None, _target: object = None) -> None:
        if name == _OPTIONAL and threading.get_ident() == self._thread:
            raise ModuleNotFoundError(f"{name} is not imported with deepeval", name=name)


@contextmanager
def without_optional() -> Iterator[None]:
    """Make the optional package of deepeval look as if it were not installed, unless it is imported already."""
    hidden = _Hidden()
    # A new list each time: other threads may be searching in the old one.
    sys.meta_path = [hidden, *sys.meta_path]
    try:
        yield
    finally:
        sys.meta_path = [finder for finder in sys.meta_path if finder is not hidden]


def _rejected(error: ValidationError) -> ConfigError:
    names = ", ".join(sorted({str(item["loc"][0]) for item in error.errors(include_input=False) if item["loc"]}))
    return ConfigError(
        Problem(
            f"deepeval, which asks the judge, does not accept the value of the environment variable {names}; "
            "set no such variable for agenteval, or correct its value",
            kind=Kind.VARIABLE,
        )
    )


os.environ.update(SETTINGS)
try:
    with without_optional():
        import deepeval as deepeval  # noqa: PLC0414 - for its checks
except ValidationError as error:
    # It reads about 200 variables, LOG_LEVEL and TEMPERATURE among them.
    raise _rejected(error) from None
