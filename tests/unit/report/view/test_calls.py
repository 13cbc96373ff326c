from __future__ import annotations

from agenteval.report.stories import calls_of_both, written_call
from agenteval.results.case import ToolCall


def test_a_call_in_one_line() -> None:
    table = {
        "find_order(order: 4711)": ToolCall(name="find_order", args={"order": 4711}),
        "search(query: how long?, top_k: 3)": ToolCall(name="search", args={"query": "how\nlong?", "top_k": 3}),
        'mail(to: ["a", "b"])': ToolCall(name="mail", args={"to": ["a", "b"]}),
        "raw(text)": ToolCall(name="raw", args="text"),
        "ping() failed: no route": ToolCall(name="ping", error="no route"),
    }
    assert {written_call(call): call for call in table.values()} == table


def test_which_side_made_a_call() -> None:
    find, cancel, mail = (ToolCall(name=name) for name in ("find", "cancel", "mail"))
    assert list(calls_of_both([find, cancel], [find, mail])) == [
        ("find()", "both"),
        ("cancel()", "before"),
        ("mail()", "now"),
    ]
    assert list(calls_of_both([], [mail])) == [("mail()", "now")]
    assert list(calls_of_both([find], [])) == [("find()", "before")]
