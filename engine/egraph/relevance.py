"""Which rules can ever match in a program: those whose left sides hold only operators that are there or can appear.

An e-graph costs time for every rule declared, matched or not, so a stage declares the relevant ones only.
"""

from __future__ import annotations

from collections.abc import Sequence

from genrw.engine.library.library import Library
from genrw.engine.library.variants import nodes, pattern_operators
from genrw.grammar.rw_tree import Pattern, RuleDecl


def relevant_rules(
    library: Library, rules: tuple[RuleDecl, ...], present: frozenset[str]
) -> tuple[tuple[RuleDecl, ...], frozenset[str]]:
    """The rules that can match given the operators present, in their order, and all operators that can appear."""
    reachable = set(present)
    waiting = [(rule, needs, makes) for rule in rules for needs, makes in library.of_rule(rule, _directions)]
    found: set[str] = set()
    progress = True
    while progress:
        progress = False
        still = []
        for rule, needs, makes in waiting:
            if all(options & reachable for options in needs):
                found.add(rule.name)
                progress = progress or not makes <= reachable
                reachable |= makes
            else:
                still.append((rule, needs, makes))
        waiting = still
    return tuple(r for r in rules if r.name in found), frozenset(reachable)


def awaited_definitions(library: Library) -> frozenset[str]:
    """The definitions that wait for other rules of their stage: those of operators that a rule's left side has beside others.

    Such a rule may match only after others have rewritten what stands beside the operator.
    """
    beside: dict[str, set[str]] = {}
    for rule in library.rules:
        (options, _), *_others = library.of_rule(rule, _directions)
        for operator in frozenset().union(*options) if rule.defines is None and len(options) > 1 else ():
            beside.setdefault(operator, set()).update(rule.stages)
    definitions = (rule for rule in library.rules if rule.defines is not None and rule.replaces)
    return frozenset(d.name for d in definitions if not beside.get(d.defines or "", set()).isdisjoint(d.stages))


def _directions(rule: RuleDecl, library: Library) -> Sequence[tuple[Sequence[frozenset[str]], frozenset[str]]]:
    """For each direction, the operators that each node of the left side may be, and those that the right side makes."""
    left, right = _operators(rule.left, rule, library), _operators(rule.right, rule, library)
    forwards = left, frozenset().union(*right)
    return [forwards, (right, frozenset().union(*left))] if rule.both_ways else [forwards]


def built_operators(rule: RuleDecl, key: str, library: Library) -> frozenset[str]:
    """The operators that a direction of a rule (its name, or name/reverse) can build."""
    side = rule.left if "/" in key else rule.right
    return frozenset().union(*_operators(side, rule, library))


def _operators(pattern: Pattern, rule: RuleDecl, library: Library) -> list[frozenset[str]]:
    return [pattern_operators(node, rule, library) for node in nodes(pattern)]
