"""How tightly operators between operands bind, and flat chains of both put in order: of expressions, and of terms."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Generic, TypeVar

from lark import Token

# A comparison takes its whole chain; `**` alone goes right to left.
CONDITIONAL, NOT, COMPARE, SIGN, POWER, ATOM = 0, 3, 4, 11, 12, 13
BINARY = {"or": 1, "and": 2, "|": 5, "^": 6, "&": 7, "<<": 8, ">>": 8, "+": 9, "-": 9}
BINARY |= {"*": 10, "/": 10, "//": 10, "%": 10, "**": POWER}
SIGNS = frozenset({*BINARY, "==", "!=", "<", "<=", ">", ">=", "in", "not in"})
"""All that may stand between two operands."""
PREFIX = {"not": NOT, "-": SIGN, "~": SIGN}

_T = TypeVar("_T")


def tightness_of(sign: str) -> int:
    """How tightly a sign between two operands binds."""
    return BINARY.get(sign, COMPARE)


class Chain(Generic[_T]):
    """Orders a flat chain of operands and operators, with stacks instead of recursion: chains can be long.

    `applied` makes one operand of the tokens of an operator and of its operands: one of a prefix, one more than tokens else.
    """

    def __init__(self, applied: Callable[[list[Token], list[_T]], _T]) -> None:
        self._applied = applied
        self._operands: list[_T] = []
        # Operators not yet applied: how tightly each binds, how many operands it takes, its tokens.
        self._operators: list[tuple[int, int, list[Token]]] = []

    def read(self, items: Iterable[_T | Token]) -> _T:
        """The whole chain as one operand."""
        after_operand = False
        for item in items:
            if not isinstance(item, Token):
                self._operands.append(item)
                after_operand = True
            elif after_operand:
                self._infix(item)
                after_operand = False
            else:
                self._operators.append((PREFIX[item], 1, [item]))
        while self._operators:
            self._apply()
        return self._operands[0]

    def _infix(self, token: Token) -> None:
        tightness = tightness_of(token)
        while self._operators and self._operators[-1][0] > tightness:
            self._apply()
        if self._operators and self._operators[-1][0] == tightness:
            if tightness == COMPARE:
                self._operators[-1][2].append(token)
                return
            if tightness != POWER:
                self._apply()
        self._operators.append((tightness, 2, [token]))

    def _apply(self) -> None:
        _, arity, tokens = self._operators.pop()
        first = len(self._operands) - len(tokens) - arity + 1
        operands = self._operands[first:]
        self._operands[first:] = [self._applied(tokens, operands)]


def sign_text(token: Token) -> str:
    """How a sign is written, whatever space stands inside of it."""
    return " ".join(token.split())
