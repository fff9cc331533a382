"""Classes and terms of an e-graph, in an order that does not hang on what the e-graph served before, or on what else is in it.

The numbers that egglog gives classes, and the order of its rows, do hang on that. So classes are numbered anew: constants
by their values, then what was written in its order, then what these are made of, as it is met. The terms of a class are in
order of their operators, their attributes, and the numbers of their operands. Where operands have none yet, they are in the
order of their first terms: no two classes have the same one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import islice, pairwise
from operator import itemgetter
from typing import Any

from genrw.engine.ir.enode import ENode
from genrw.engine.ir.interner import Interner

Terms = dict[int, list[ENode]]
_Row = tuple[int, str, int, Sequence[Any], int | None]
"""A term as a plain tuple, of which there are many: how many operands it has, its operator and attributes, egglog's values for
the classes of its operands, and its number if it is one."""


@dataclass
class Read:
    """The number of each class by egglog's value for it, the terms of classes, and those that rules replaced."""

    numbers: dict[Any, int] = field(default_factory=dict)
    classes: Terms = field(default_factory=dict)
    replaced: Terms = field(default_factory=dict)


def read_terms(
    functions: Mapping[str, Any], to_int: Callable[[Any], int], to_text: Callable[[Any], str], interner: Interner
) -> Read:
    """The terms of an e-graph's tables, but for what earlier runs left there."""
    reader = _Reader(interner)
    texts: dict[Any, str] = {}
    kept, replaced = reader.kept, reader.replaced
    for name, function in functions.items():
        if name[0] != "N" or name == "Num":
            continue
        for row in function.rows:
            op, attributes, *operands = row.inputs
            text = texts.get(op)
            if text is None:
                text = texts[op] = to_text(op)
            number = to_int(attributes)
            if not row.subsumed:
                into = kept
            elif interner.place(number) >= 0:
                into = replaced
            else:
                continue
            into.setdefault(row.output, []).append((len(operands), text, number, operands, None))
    constants = sorted([(to_int(row.inputs[0]), row.output) for row in functions["Num"].rows], key=itemgetter(0))
    for value, number in constants:
        kept.setdefault(number, []).append((0, "", 0, (), value))
    written = sorted([(to_int(row.inputs[0]), row.output) for row in functions["node"].rows], key=itemgetter(0))
    return reader.read([number for _, number in (*constants, *written)])


class _Reader:
    """Numbers the classes of `kept` and `replaced` terms."""

    def __init__(self, interner: Interner) -> None:
        self.kept: dict[Any, list[_Row]] = {}
        self.replaced: dict[Any, list[_Row]] = {}
        self._interner = interner
        self._texts: dict[int, str] = {}
        self._found = Read()

    def read(self, first: Iterable[Any]) -> Read:
        """All terms, those of the `first` classes first."""
        numbers, values = self._found.numbers, list(dict.fromkeys(first))
        numbers.update(zip(values, range(len(values)), strict=True))
        self._read(values, 0)
        count = len(values)
        # None, as long as each class is a part of what was written.
        values += [value for value in dict.fromkeys((*self.kept, *self.replaced)) if value not in numbers]
        numbers.update(zip(values[count:], range(count, len(values)), strict=True))
        self._read(values, count)
        return self._found

    def _read(self, values: list[Any], begin: int) -> None:
        """Read the classes that have numbers from one on; those below them get the next ones."""
        found, kept, replaced = self._found, self.kept, self.replaced
        for number, value in enumerate(islice(values, begin, None), begin):
            terms = kept.get(value)
            if terms is not None:
                found.classes[number] = self._terms(terms, values)
            if replaced and value in replaced:
                found.replaced[number] = self._terms(replaced[value], values)

    def _terms(self, terms: list[_Row], values: list[Any]) -> list[ENode]:
        """The terms of a class in their order; operands that are new are added to the `values` that are still to be read."""
        numbers = self._found.numbers
        read = []
        for _, op, attributes, operands, constant in self._sorted(terms) if len(terms) > 1 else terms:
            below = []
            for operand in operands:
                number = numbers.get(operand)
                if number is None:
                    number = numbers[operand] = len(values)
                    values.append(operand)
                below.append(number)
            read.append(ENode(op, attributes, tuple(below), constant))
        return read

    def _sorted(self, terms: list[_Row]) -> list[_Row]:
        """The terms of a class in their order."""
        if len({term[1] for term in terms}) == len(terms):
            return sorted(terms)
        kinds = {term[2] for term in terms}
        if len(kinds) == len(terms):
            with suppress(TypeError):  # values of several kinds
                return self._by_attributes(terms)
        alike = terms
        if len(kinds) > 1:
            terms = sorted(terms, key=self._shown)
            alike = [a for pair in pairwise(terms) if self._shown(pair[0]) == self._shown(pair[1]) for a in pair]
        places = self._places(operand for term in alike for operand in term[3])
        return sorted(terms, key=lambda term: (*self._shown(term), [places.get(operand, -1) for operand in term[3]]))

    def _by_attributes(self, terms: Iterable[_Row]) -> list[_Row]:
        """Terms whose attributes differ, in their order; TypeError where the attributes have none."""
        found = [((*term[:2], self._interner.attributes(term[2])), term) for term in terms]
        found.sort(key=itemgetter(0))
        if any(one == other for (one, _), (other, _) in pairwise(found)):
            raise TypeError("1 and true are equal")
        return [term for _, term in found]

    def _shown(self, term: _Row) -> tuple[int, str, str, int]:
        """What tells terms apart that differ in more than their operands."""
        arity, op, attributes, _, number = term
        text = self._texts.get(attributes)
        if text is None:
            text = self._texts[attributes] = repr(self._interner.attributes(attributes))
        return arity, op, text, number or 0

    def _places(self, wanted: Iterable[Any]) -> dict[Any, int]:
        """The places of classes: those that have numbers first, then of the others what is made of such, by its first term."""
        numbers = self._found.numbers
        below = dict.fromkeys(wanted)
        places = {value: numbers[value] for value in below if value in numbers}
        open_ = [value for value in below if value not in numbers]
        if not open_:
            return places
        terms: dict[Any, list[_Row]] = {}
        for value in open_:
            terms[value] = [*self.kept.get(value, ()), *self.replaced.get(value, ())]
            for operand in [operand for term in terms[value] for operand in term[3] if operand not in below]:
                below[operand] = None
                if operand in numbers:
                    places[operand] = numbers[operand]
                else:
                    open_.append(operand)
        count = len(numbers)
        while terms:
            least = {value: key for value, made in terms.items() if (key := self._least(made, places)) is not None}
            if not least:
                break
            for value in sorted(least, key=least.__getitem__):
                places[value] = count
                count += 1
                del terms[value]
        return places

    def _least(self, terms: Iterable[_Row], places: Mapping[Any, int]) -> tuple[Any, ...] | None:
        """The first of terms whose operands all have places, as what it is sorted by; None if there is none."""
        return min(
            (
                ([places[operand] for operand in term[3]], *self._shown(term))
                for term in terms
                if all(operand in places for operand in term[3])
            ),
            default=None,
        )
