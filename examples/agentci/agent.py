"""A bakery's assistant that needs no model: it recognises the question and looks up prices."""

from __future__ import annotations

import re
from typing import Any

from bakery import PRICES, price

_NUMBERS = {"a": 1, "an": 1, "one": 1, "two": 2, "three": 3, "six": 6, "ten": 10, "a dozen": 12, "twelve": 12}


def reply(request: dict[str, Any]) -> dict[str, Any]:
    """Answer one turn of the agent protocol."""
    question = request["input"].lower()
    if re.search(r"\b(ignore|instructions|password|forget)\b", question):
        return {"response": "I can't help with that. I sell bread."}
    if "open" in question:
        return {"response": "We open at 6 am, on Sundays at 8 am."}
    product = next((name for name in PRICES if name in question), None)
    if product is None:
        return {"response": "Welcome to the bakery! Ask me about opening hours, rye bread, rolls or plum cake."}
    found = re.search(rf"(\d+|{'|'.join(sorted(_NUMBERS, key=len, reverse=True))}) {product}", question)
    amount = 1 if found is None else int(_NUMBERS.get(found[1], 0) or found[1])
    arguments = {"product": product, "amount": amount}
    result = price(**arguments)
    return {
        "response": f"{amount} x {product}: {result['total']:.2f} EUR",
        "tool_calls": [{"name": "price-list", "args": arguments, "result": result}],
        "usage": {"input_tokens": len(question.split()), "output_tokens": 8},
    }
