"""Rules that do what another rule does already, and rules that do nothing."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from genrw.engine.language.expr import substitute
from genrw.engine.library.library import Library
from genrw.engine.library.rewriting import copied_from, value_loops
from genrw.engine.library.sides import Direction, conditions
from genrw.engine.library.variants import nodes
from genrw.engine.lint.finding import Finding, finding
from genrw.engine.lint.matching import PatternMatch, PatternMatcher
from genrw.grammar.expr_tree import Const, Expr, Name
from genrw.grammar.rw_tree import AttributePattern, NumberPattern, OpPattern, Pattern, RuleDecl, VarPattern

_PAIRS = 20_000
"""How many pairs of rules are compared: a second or two of work."""


def overlapping(library: Library, directions: Sequence[Direction]) -> Iterator[Finding]:
    """Rules of which another one makes the same of the same, wherever they apply."""
    rules = _by_rule(directions)
    order = {name: i for i, name in enumerate(rules)}
    roots = _by_root(directions)
    pairs = 0
    for name, special in rules.items():
        for general in _candidates(roots, special):
            pairs += 1
            if pairs > _PAIRS:
                yield _too_many(special[0].rule)
                return
            if not _covers(library, rules[general], special):
                continue
            both = _covers(library, special, rules[general])
            if both and order[general] > order[name]:
                continue
            yield _overlap(special[0].rule, rules[general][0].rule, both)
            break


def idle(directions: Sequence[Direction]) -> Iterator[Finding]:
    """Rules whose two sides are the same."""
    for direction in directions:
        same = _normal(direction, direction.right, {}) == _normal(direction, direction.left, {})
        if same and direction.left is direction.rule.left:
            message = "the rule makes of a term what it is already"
            yield finding("loop", direction.rule.name, message, direction.right.span, "remove the rule")


def _by_rule(directions: Sequence[Direction]) -> dict[str, list[Direction]]:
    rules: dict[str, list[Direction]] = {}
    for direction in directions:
        rules.setdefault(direction.rule.name, []).append(direction)
    return rules


def _by_root(directions: Sequence[Direction]) -> dict[tuple[str, str], dict[str, None]]:
    """The rules that can match an operator at a stage, in their order."""
    roots: dict[tuple[str, str], dict[str, None]] = {}
    for direction in directions:
        for key in ((stage, name) for stage in direction.stages for name in direction.needs[0]):
            roots.setdefault(key, {})[direction.rule.name] = None
    return roots


def _candidates(roots: Mapping[tuple[str, str], Mapping[str, None]], special: Sequence[Direction]) -> Iterator[str]:
    """Other rules that match where a rule does: those of any one of its operators and stages."""
    first = special[0]
    if first.stages and first.needs[0]:
        key = (min(first.stages), min(first.needs[0]))
        yield from (name for name in roots[key] if name != first.rule.name)


def _too_many(rule: RuleDecl) -> Finding:
    message = "there are too many rules of few operators to compare all pairs: this one and later ones were not"
    return finding("limit", rule.name, message, rule.name_span, "check the folders one by one")


def _overlap(special: RuleDecl, general: RuleDecl, both: bool) -> Finding:
    kind, what = ("duplicate", "the same as") if both else ("subsumed", "no more than")
    message = f"`{special.name}` does {what} `{general.name}`, at {general.name_span}"
    return finding(kind, special.name, message, special.name_span, "remove one of them, or set them apart by a guard")


# ---- one rule against another


def _covers(library: Library, general: Sequence[Direction], special: Sequence[Direction]) -> bool:
    return all(any(_subsumes(library, g, s) for g in general) for s in special)


def _subsumes(library: Library, general: Direction, special: Direction) -> bool:
    """Does one direction of a rule all that another one does?"""
    mine, theirs = general.rule, special.rule
    if not special.stages <= general.stages or (theirs.replaces and not mine.replaces):
        return False
    if mine.contract != "exact" and (mine.contract, mine.bound) != (theirs.contract, theirs.bound):
        return False
    return any(
        _same_result(library, general, special, match) for match in PatternMatcher(library, general, special).matches()
    )


def _same_result(library: Library, general: Direction, special: Direction, match: PatternMatch) -> bool:
    """Where the left sides match so, does the general rule apply, and make the same?"""
    names = dict(match.names)
    if not _bound(general, special, names):
        return False
    allowed = set(conditions(special.rule.guard))
    if not all(substitute(c, names) in allowed for c in conditions(general.rule.guard)):
        return False
    made = _put_in(_normal(general, general.right, names), match, special)
    return _settled(library, made) == _settled(library, _normal(special, special.right, {}))


def _bound(general: Direction, special: Direction, names: dict[str, Expr]) -> bool:
    """Find for what the general rule computes and runs over the same in the special one; False where that fails."""
    loops, others = (value_loops(d.rule, d.left, d.right) for d in (general, special))
    if len(loops) != len(others):
        return False
    for mine, theirs in ((loops, others), (general.rule.with_, special.rule.with_)):
        for binding in mine:
            value = substitute(binding.value, names)
            names[binding.name] = next(
                (Name(b.name) for b in theirs if b.value == value), Name(f"{binding.name} of it")
            )
    return True


# ---- right sides in a form that can be compared


def _normal(direction: Direction, pattern: Pattern, names: Mapping[str, Expr]) -> Pattern:
    """A side with its attributes in order, each with its value, and other names for what expressions name."""
    if isinstance(pattern, NumberPattern):
        return NumberPattern(substitute(pattern.value, names))
    if isinstance(pattern, VarPattern):
        return pattern
    attributes = [(a.name, substitute(a.value or Name(a.name), names)) for a in pattern.attributes]
    if pattern.open_attributes:
        attributes.append(("..", Const(copied_from(list(nodes(direction.left)), pattern) or 0)))
    return replace(
        pattern,
        attributes=tuple(AttributePattern(name, value) for name, value in sorted(attributes, key=lambda a: a[0])),
        operands=tuple(_normal(direction, operand, names) for operand in pattern.operands),
        binds=None,
    )


def _put_in(pattern: Pattern, match: PatternMatch, special: Direction) -> Pattern:
    """A normal side of the general rule with what its variables stand for."""
    if isinstance(pattern, VarPattern):
        return _meant(pattern, match, special)
    if not isinstance(pattern, OpPattern):
        return pattern
    operators = match.operators
    return replace(
        pattern,
        op=operators.get(pattern.op, pattern.op),
        family=operators.get(pattern.family, pattern.family) if pattern.family is not None else None,
        operands=tuple(_put_in(operand, match, special) for operand in pattern.operands),
    )


def _settled(library: Library, pattern: Pattern) -> Pattern:
    """A normal side without `..` where there is nothing to copy, operands that may be exchanged in one order."""
    if not isinstance(pattern, OpPattern):
        return pattern
    found = library.find(pattern.op) if pattern.family is None else None
    operands = [_settled(library, operand) for operand in pattern.operands]
    if found is not None and found[0].decl.commutative:
        operands.sort(key=repr)
    copies = found is None or bool(found[0].attributes)
    kept = tuple(a for a in pattern.attributes if copies or a.name != "..")
    return replace(
        pattern, attributes=kept, open_attributes=pattern.open_attributes and copies, operands=tuple(operands)
    )


def _meant(variable: VarPattern, match: PatternMatch, special: Direction) -> Pattern:
    """What a variable of the general rule stands for, as the special rule would write it."""
    if variable.name in match.rests:
        alone = match.rests[variable.name]
        first = alone[0] if len(alone) == 1 else None
        return replace(first, rest=variable.rest) if isinstance(first, VarPattern) and first.rest else variable
    found = match.operands.get(variable.name, variable)
    if isinstance(found, OpPattern) and found.binds is not None:
        return VarPattern(found.binds)
    return _normal(special, found, {})
