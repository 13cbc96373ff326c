"""The `calculator` tool: arithmetic on numbers, and nothing else."""

import ast
import math
import operator
from collections.abc import Callable

MAX_LENGTH = 200
MAX_BASE = 1_000_000
MAX_EXPONENT = 16

Number = int | float


class CalculatorError(ValueError):
    """The expression is not arithmetic, or its result is not a finite number."""


def calculate(expression: str) -> Number:
    """Return the value of an expression made of numbers, parentheses and `+ - * / **`."""
    if len(expression) > MAX_LENGTH:
        raise CalculatorError(f"the expression is longer than {MAX_LENGTH} characters")
    try:
        result = _value(ast.parse(expression, mode="eval").body)
    except (SyntaxError, ZeroDivisionError, OverflowError) as error:
        raise CalculatorError(f"cannot calculate {expression!r}: {error}") from error
    if not math.isfinite(result):
        raise CalculatorError(f"the result of {expression!r} is not finite")
    return result


def _power(base: Number, exponent: Number) -> Number:
    """Raise to a small whole power; `9**9**9` would otherwise keep the process busy for hours."""
    if not isinstance(exponent, int) or abs(exponent) > MAX_EXPONENT or abs(base) > MAX_BASE:
        raise CalculatorError(f"powers are limited to {MAX_BASE} ** {MAX_EXPONENT}")
    result: Number = base**exponent
    return result


_BINARY: dict[type[ast.operator], Callable[[Number, Number], Number]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.Pow: _power,
}


def _value(node: ast.expr) -> Number:
    match node:
        case ast.Constant(value=int() | float() as number) if not isinstance(number, bool):
            return number
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return -_value(operand)
        case ast.BinOp(left=left, op=op, right=right) if type(op) in _BINARY:
            return _BINARY[type(op)](_value(left), _value(right))
        case _:
            raise CalculatorError(f"not arithmetic: {ast.unparse(node)}")
