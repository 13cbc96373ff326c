"""Foreign text on its way into every kind of report. No error, and no markup is left in it."""

from __future__ import annotations

from agenteval.core import escape
from agenteval.report.user_template import unclosed


def target(data: bytes) -> None:
    text = data.decode("utf-8", "surrogatepass" if _has_half(data) else "replace")
    for make in (escape.one_line, escape.markdown_inline, escape.markdown_lines, escape.markdown_block):
        make(text, 500)
        assert "<!--" not in make(text) or make in {escape.one_line, escape.markdown_block}
    for plain in (escape.visible, escape.address, escape.json_in_html, escape.terminal):
        plain(text)
    assert not set(escape.html(text)) & set("<>\"'")
    escape.xml(text).encode()
    assert not set(escape.workflow_data(text)) & set("\r\n")
    assert not set(escape.workflow_property(text)) & set("\r\n:,")
    unclosed(text)


def _has_half(data: bytes) -> bool:
    try:
        data.decode("utf-8", "surrogatepass")
    except UnicodeDecodeError:
        return False
    return True
