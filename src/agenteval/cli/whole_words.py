"""A Markdown table for the terminal that cuts no word, as a name of a case is one."""

from __future__ import annotations

from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, RenderResult
from rich.markdown import TableElement
from rich.table import Table

# Longer words are continued on the next line.
_LONGEST = 40


class TableOfWholeWords(TableElement):
    """Rich's table, whose columns are as wide as their longest word."""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Yield the table."""
        for part in super().__rich_console__(console, options):
            if isinstance(part, Table):
                for column in part.columns:
                    words = " ".join(map(str, column.cells)).split()
                    column.overflow = "fold"
                    column.min_width = min(_LONGEST, max(map(cell_len, words), default=1))
            yield part
