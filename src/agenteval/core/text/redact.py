"""Masks secrets in texts."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from agenteval.core.text.escape import _MASK, _forms


class Redactor:
    """Masks secret values in every text before it is stored or shown.

    Args:
        secrets: the values. Those shorter than four characters are left alone: masking them would destroy reports
            and hide nothing. Of a value with several lines (a key file), each line is a secret too.
    """

    def __init__(self, secrets: Iterable[str]) -> None:
        forms = {form for secret in secrets for form in _forms(secret)}
        # The longest first: a secret that begins with another one must vanish as a whole.
        alternatives = "|".join(re.escape(form) for form in sorted(forms, key=lambda form: (-len(form), form)))
        self._pattern = re.compile(alternatives) if forms else None

    def __bool__(self) -> bool:
        return self._pattern is not None

    def __repr__(self) -> str:
        return "Redactor(…)"

    def __call__(self, text: str) -> str:
        """The text with every secret replaced by ``***``."""
        return self._pattern.sub(_MASK, text) if self._pattern else text

    def data(self, value: Any) -> Any:
        """A JSON-like value with every text in it masked, keys of mappings included."""
        if isinstance(value, str):
            return self(value)
        if isinstance(value, dict):
            return {self.data(key): self.data(item) for key, item in value.items()}
        if isinstance(value, (list, tuple)):
            return [self.data(item) for item in value]
        return value
