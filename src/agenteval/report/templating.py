"""How our templates are written, and where they are kept compiled: beside them, as Python keeps its modules.

Compiling them takes longer than everything else that a small run does. Users' own templates are never kept.
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

from jinja2 import FileSystemBytecodeCache, StrictUndefined
from jinja2.bccache import Bucket

#: Options of every environment: a name that is none is a mistake, and what stands on a line of its own leaves none.
OPTIONS: Mapping[str, Any] = MappingProxyType(
    {
        "undefined": StrictUndefined,
        "trim_blocks": True,
        "lstrip_blocks": True,
        "keep_trailing_newline": True,
        "auto_reload": False,
    }
)


class CompiledTemplates(FileSystemBytecodeCache):
    """Compiled templates in ``__pycache__`` of their directory; where nothing can be written, nothing is kept.

    Jinja compiles a template again when its text has changed.

    Args:
        templates: the directory of our templates.
    """

    def __init__(self, templates: Path) -> None:
        self._folder = templates / "__pycache__"
        super().__init__(str(self._folder), f"%s.cpython-{sys.version_info.major}{sys.version_info.minor}.jinja")

    def load_bytecode(self, bucket: Bucket) -> None:
        """Take what is kept, if it can be read."""
        with contextlib.suppress(OSError, ValueError, EOFError):
            super().load_bytecode(bucket)

    def dump_bytecode(self, bucket: Bucket) -> None:
        """Keep what was compiled, unless Python keeps nothing either."""
        if not sys.dont_write_bytecode:
            with contextlib.suppress(OSError):
                self._folder.mkdir(exist_ok=True)
                super().dump_bytecode(bucket)
