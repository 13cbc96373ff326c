"""A small agent without a model. Replace it with yours.

`reply` answers one request. As a program this file reads one JSON request on standard input and writes the JSON reply
on standard output. With FORGETFUL it answers without its knowledge, which shows a regression.
"""

from __future__ import annotations

import json
import sys
from typing import Any

FORGETFUL = False

ANSWERS = {
    "open": "We are open from 9 am to 6 pm.",
    "deliver": "We deliver within two working days.",
    "send it back": "You can send everything back within 30 days.",
    "pay": "You can pay by card or by invoice.",
    "repair": "We repair everything that we sell.",
    "gift": "We wrap gifts free of charge.",
}


def reply(request: dict[str, Any]) -> dict[str, Any]:
    """Answer the question in `input`; every other key of the request may be ignored."""
    question = request["input"].lower()
    answers = {} if FORGETFUL else ANSWERS
    known = (answer for word, answer in answers.items() if word in question)
    return {"response": next(known, "I do not know. Please call the shop.")}


if __name__ == "__main__":
    json.dump(reply(json.load(sys.stdin)), sys.stdout)
