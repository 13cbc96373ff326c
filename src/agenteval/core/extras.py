"""The optional extras of this distribution: what they are for, and whether they are installed."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.util import find_spec

DISTRIBUTION = "agenteval-action"
# Extra → modules that it brings and that are used.
_MODULES: Mapping[str, tuple[str, ...]] = {
    "files": ("markitdown", "mammoth", "openpyxl", "pandas", "pdfplumber", "pptx", "pypdfium2"),
    "azure": ("azure.ai.evaluation",),
    "local": ("model2vec",),
}


def missing_extra(extra: str) -> str | None:
    """How to install an extra, if it is not there; nothing of it is imported to find out."""
    if all(map(_is_installed, _MODULES[extra])):
        return None
    return f"pip install '{DISTRIBUTION}[{extra}]'"


def _is_installed(module: str) -> bool:
    try:
        return find_spec(module) is not None
    except ModuleNotFoundError:
        # A package that should hold it is not there either.
        return False
