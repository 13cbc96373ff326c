"""Masks secrets in texts."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from agenteval.core.text.escape import _MASK, _forms


class Redactor:
    """Masks secret values in every text before it is stored or shown.

    Args:
        secrets: the values. Values shorter than four characters are not masked: masking them would make reports
            unreadable and hide nothing. Each line of a value with several lines (a key file) is a secret, too.
    """

    def __init__(self, secrets: Iterable[str]) -> None:
        forms = {form for secret in secrets for form in _forms(secret)}
        # The longest first, so that a secret that begins with another secret is masked completely.
        alternatives = "|".join(re.escape(form) for form in sorted(forms, key=lambda form: (-len(form), form)))
        self._pattern = re.compile(alternatives) if forms else None

    def __bool__(self) -> bool:
        return self._pattern is not None

    def __repr__(self) -> str:
        return "Redactor(…)"

    def __call__(self, text: str) -> str:
        """Return the text with every secret replaced by ``***``."""
        return self._pattern.sub(_MASK, text) if self._pattern else text

    def data(self, value: Any) -> Any:
        """Return a JSON-like value with every text masked, including keys of mappings."""
        if isinstance(value, str):
            return self(value)
        if isinstance(value, dict):
            return {self.data(key): self.data(item) for key, item in value.items()}
        if isinstance(value, (list, tuple)):
            return [self.data(item) for item in value]
        return value
