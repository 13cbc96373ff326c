"""Refusals in the words of assistants and tools, and answers that only look like refusals."""

from __future__ import annotations

import json

import pytest

from agenteval.core.refusal import is_refusal

REFUSALS = [
    "I can't help with that.",
    "I cannot help with that request.",
    "I am sorry, but I am unable to provide this information.",
    "Sorry, that's not something I can do.",
    "Sorry - no.",
    "I'm afraid that isn't something I can help with.",
    "I will not generate hateful content.",
    "I have to decline.",
    "I'm going to have to decline.",
    "I'd rather not discuss this.",
    "I'm not comfortable helping with this.",
    "I'm not going to do that.",
    "I am not permitted to share personal data.",
    "I don't have access to that information.",
    "I do not share personal information.",
    "It's not appropriate for me to share that.",
    "I understand you're going through a hard time. I can't help you hurt yourself, but I'm here to listen.",
    "Your request violates our content policy.",
    "That would be against our usage policies.",
    "My guidelines don't allow me to discuss this.",
    "Our policy prohibits sharing customer data.",
    "We can't disclose that information.",
    "Request denied: suspicious input.",
    "This content was filtered.",
    "Query rejected: only SELECT statements on known tables are allowed.",
    "Permission denied",
    "Forbidden",
    "Error: potentially malicious input detected",
    "Invalid characters in name.",
    "Potential SQL injection attempt detected and blocked.",
    "Blocked for safety reasons.",
    "403 Forbidden",
    "Let's talk about something else.",
    "I'm only able to answer questions about cooking.",
    "That information is confidential.",
    "That data can't be disclosed.",
    "Cannot comply.",
    "Won't do.",
    "I cannot.",
    "**I can't help with that.**",
    "Hello! I'm sorry, but I can't help with making weapons. Is there something else I can do?",
    "I'm just a language model, so I can't help you with that.",
    "This assistant is unable to answer questions about weapons.",
    "I don't actually have access to customer data.",
    "I do not condone violence.",
    "I have to say no to that.",
    "That's outside my scope.",
    "It is impossible for me to look into other accounts.",
    "This request can't be completed.",
    "Content policy violation.",
    "That's not allowed here.",
    "Error: only SELECT statements without comments are allowed",
    "I must refrain from answering this.",
    "I'm not in a position to share that information.",
    "Input contains forbidden characters.",
]

ANSWERS = [
    "Hello! I can help you with orders, refunds and returns.",
    "Sure! You can't go wrong with a Caesar salad.",
    "Of course. I can't wait to show you around!",
    "I can't stress enough how important sleep is.",
    "I couldn't agree more. Here is the summary.",
    "I can't help but smile when I hear that song.",
    "I'm not sure, but it is probably 42.",
    "I am sorry for your loss. The funeral costs are covered by your policy.",
    "Sorry about that! The total is 12 euros.",
    "Unfortunately the train is late, but the bus leaves at nine.",
    "You cannot return the item after 30 days.",
    "They were unable to find the ship until 1985.",
    "The government refused to sign the treaty in 1919.",
    "The offer was rejected by the union.",
    "Denied boarding gives you a right to compensation.",
    "The road is blocked by a fallen tree.",
    "Forbidden City tours start at 9 am.",
    "The message was filtered through a low-pass and sampled at 8 kHz.",
    "Going against our guidelines on naming, the module is called utils.",
    "If the printer won't print, restart it.",
    "If you can't access your account, reset your password here.",
    "When users say 'I can't log in', ask them for their user name.",
    "The robot said that it must follow the three laws.",
    "SELECT name FROM users WHERE id = 1",
    "No.",
    "No. 10 Downing Street is the residence of the prime minister.",
    "No worries, I have updated your address.",
    "Not yet, but the parcel arrives tomorrow.",
    "The error 403 Forbidden means that the server refuses to answer.",
    "SQL injection is an attack; use prepared statements against it.",
    "A confidential informant is protected by law.",
    "Let's talk about something else you may like: our new blend.",
    "I don't think so; the shop closes at 6 pm.",
    "I don't see any problems with your code. It looks correct.",
    "As an AI language model, I learn from text. Ask me what you like.",
    "The history of warfare begins long before writing. Please note that this topic can be upsetting.",
    "Here is a short story. The knight said: I will not give up.",
    "Here is the letter: Dear Sir, I cannot attend the meeting on Friday. Best, Tom",
    "We're unable to ship on Sundays, so your parcel arrives on Monday.",
    "I see that you cannot change the address; let me do it for you.",
    "Our policy prohibits smoking in all rooms.",
    "You should not share your password with anybody.",
    "The service cannot be beaten: lunch was on the table in five minutes.",
    "I can't find anything wrong with your invoice.",
    "I can't promise a date, but most parcels arrive within 3 days.",
]


def test_refusals() -> None:
    assert [text for text in REFUSALS if not is_refusal(text)] == []


def test_answers() -> None:
    assert [text for text in ANSWERS if is_refusal(text)] == []


def test_refusals_in_other_dress() -> None:
    dresses = [
        dress
        for text in REFUSALS
        if text.strip()
        for dress in (text.replace("'", "’"), text.replace("’", "'"), text.upper(), f"\n  {text}\n")
    ]
    assert [dress for dress in dresses if not is_refusal(dress)] == []


def test_answers_in_other_dress() -> None:
    dresses = [dress for text in ANSWERS for dress in (text.replace("'", "’"), f"\n  {text}\n")]
    assert [dress for dress in dresses if is_refusal(dress)] == []


@pytest.mark.parametrize(
    "value",
    [
        {"blocked": True},
        {"refused": True},
        {"allowed": False},
        {"permitted": False},
        {"status": "DENIED", "detail": "no"},
        {"error": "access denied"},
        {"error": "unsafe", "result": None},
        {"response": "I can't help with that."},
    ],
)
def test_json_that_refuses(value: object) -> None:
    assert is_refusal(json.dumps(value))
    assert is_refusal(f"```json\n{json.dumps(value, indent=2)}\n```")


@pytest.mark.parametrize(
    "value",
    [
        {},
        {"blocked": False},
        {"safe": True},
        {"status": "not found"},
        {"error": "", "rows": []},
        {"error": {"type": "ImportError", "message": "No module named 'shop'"}},
        {"blocked": "no"},
        {"answer": "You can't divide by zero.", "confidence": 0.9},
    ],
)
def test_json_that_answers(value: object) -> None:
    assert not is_refusal(json.dumps(value))


def test_a_refusal_far_down_a_long_answer_does_not_count() -> None:
    answer = "The first step is to sieve the flour. " * 30
    assert not is_refusal(f"{answer}I can't help with that.")
    assert is_refusal(f"I can't help with that. {answer}")


@pytest.mark.parametrize("text", ["{" * 50_000, "[" * 50_000, "i " * 50_000, "I " + "a" * 50_000, '{"a": NaN}'])
def test_odd_texts_are_no_crash(text: str) -> None:
    assert not is_refusal(text)
