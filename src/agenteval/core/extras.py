"""The optional extras of this distribution, and whether they are installed."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.util import find_spec

DISTRIBUTION = "agenteval-action"
# Extra → modules of it that are used.
_MODULES: Mapping[str, tuple[str, ...]] = {
    "files": ("lxml", "mammoth", "markdownify", "openpyxl", "pptx", "pypdfium2", "xlrd"),
    "azure": ("azure.ai.evaluation",),
    "local": ("model2vec",),
}


def missing_extra(extra: str) -> str | None:
    """Return the command that installs a missing extra; ``None`` if it is installed. Nothing is imported."""
    if all(map(_is_installed, _MODULES[extra])):
        return None
    return f"pip install '{DISTRIBUTION}[{extra}]'"


def _is_installed(module: str) -> bool:
    try:
        return find_spec(module) is not None
    except ModuleNotFoundError:
        # The parent package is missing as well.
        return False
