"""Result types of operations, from the operators' declarations."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

from genrw.engine.ir.dtypes import DTYPES, in_class, is_dtype, promote
from genrw.engine.ir.nodes import Attributes
from genrw.engine.ir.types import EFFECT, Type, beyond_limits, packed_strides
from genrw.engine.language.expr_walk import free_names
from genrw.engine.library.context import CONTEXT_NAMES
from genrw.engine.library.library import Library, Operator
from genrw.engine.library.monoids import bound, element_type, folds
from genrw.grammar.diagnostics import GenrwError, error
from genrw.grammar.rw_tree import OperandDecl


class TypeProblem(Exception):
    """An operation that its operator's declaration does not allow. `operand` or `attribute` says where."""

    def __init__(
        self,
        message: str,
        remedy: str | None = None,
        *,
        operand: int | None = None,
        attribute: str | None = None,
    ) -> None:
        super().__init__(message)
        self.message, self.remedy, self.operand, self.attribute = message, remedy, operand, attribute


class BeyondLimits(TypeProblem):
    """An operation whose result has more elements or axes than a tensor may have."""


class _Unanswered(Exception):
    """An expression of a declaration that has no value for the operation at hand."""

    def __init__(self, problem: GenrwError) -> None:
        super().__init__()
        self.diagnostic = problem.diagnostics[0]


def infer(
    library: Library,
    name: str,
    attributes: Attributes,
    operands: Sequence[Type],
    context: Mapping[str, Any],
    labels: Sequence[str] = (),
) -> Type:
    """The result type of `name[attributes](operands)`.

    `context` holds what expressions may name besides attributes and operands (`target`, `schedule`, …); `labels` are
    the operands' names for messages. Raises TypeProblem.
    """
    found = library.find(name)
    assert found is not None, name
    operator, member = found
    labels = labels or [f"operand {i + 1}" for i in range(len(operands))]
    check_arity(operator, name, len(operands))
    dtypes = _match_operands(operator, name, operands, labels)
    env = environment(operator, member, attributes, operands, dtypes, context)
    _check_monoid(library, operator, name, operands, labels, env)
    try:
        _check_requirements(operator, name, env, labels)
        if operator.result_sort is None:
            return _pointwise_result(operator, name, operands, labels, dtypes, env)
        return _declared_result(operator, env)
    except _Unanswered as problem:
        told = problem.diagnostic
        seen = (
            f"what `{name}` declares asks it at {told.span}" if operator.name in library.foreign and told.span else None
        )
        raise TypeProblem(told.message, "; ".join(filter(None, [told.remedy, seen])) or None) from problem


def environment(
    operator: Operator,
    member: str | None,
    attributes: Attributes,
    operands: Sequence[Any],
    dtypes: Mapping[str, str],
    context: Mapping[str, Any],
) -> dict[str, Any]:
    """What the expressions of a declaration may name."""
    env: dict[str, Any] = {**context, **dtypes, **dict(attributes)}
    if member is not None and operator.decl.family is not None:
        env[operator.decl.family] = member
    fixed = operator.fixed
    env.update((decl.name, type_) for decl, type_ in zip(fixed, operands, strict=False))
    if operator.variadic is not None:
        env[operator.variadic.name] = tuple(operands[len(fixed) :])
    return env


def check_arity(operator: Operator, name: str, count: int) -> None:
    """Raise TypeProblem if an operator does not take that many operands."""
    least = len(operator.fixed)
    if count == least or (count > least and operator.variadic is not None):
        return
    wanted = f"{least} or more" if operator.variadic is not None else str(least)
    plural = "" if wanted == "1" else "s"
    names = ", ".join(o.name + ("..." if o.variadic else "") for o in operator.decl.operands)
    raise TypeProblem(
        f"`{name}` takes {wanted} operand{plural}, not {count}",
        f"its operands are ({names})" if names else f"write {name}()",
    )


def _match_operands(operator: Operator, name: str, operands: Sequence[Type], labels: Sequence[str]) -> dict[str, str]:
    """Check sorts and dtypes of the operands; returns what the dtype variables stand for."""
    bounds = dict(operator.decl.where)
    bound_by: dict[str, str] = {}
    dtypes: dict[str, str] = {}
    for i, type_ in enumerate(operands):
        decl = operator.operand(i)
        _check_sort(decl, name, type_, labels[i], i)
        want = decl.dtype
        if want is None or not type_.dtype:
            continue
        if want in bounds or is_variable(want):
            known = dtypes.setdefault(want, type_.dtype)
            first = bound_by.setdefault(want, labels[i])
            if known != type_.dtype:
                raise TypeProblem(
                    f"`{name}` takes operands of one type, but {first} is {known} and {labels[i]} is {type_.dtype}",
                    _conversion(known, first, type_.dtype, labels[i]),
                    operand=i,
                )
        want = wanted_class(want, bounds)
        if not in_class(type_.dtype, want):
            raise TypeProblem(
                f"`{name}` takes {_a(want)} here, but {labels[i]} is {type_.dtype}",
                f"convert it to {_any_of(want)}",
                operand=i,
            )
    return dtypes


def _conversion(known: str, first: str, dtype: str, label: str) -> str:
    """How two operands come to be of one type: the narrower one is converted."""
    wide = promote(known, dtype) if is_dtype(known) and is_dtype(dtype) else known
    narrow = [f"convert[target_type={wide}]({name})" for name, its in ((first, known), (label, dtype)) if its != wide]
    return f"convert {'one' if len(narrow) == 1 else 'both'}: {' and '.join(narrow)}"


def _check_monoid(
    library: Library,
    operator: Operator,
    name: str,
    operands: Sequence[Type],
    labels: Sequence[str],
    env: Mapping[str, Any],
) -> None:
    """TypeProblem for elements that the operator's monoid does not fold: they are the first operand's, but where that is a part of
    an accumulator."""
    if operator.monoid_name is None or operator.role == "pointwise" or not operands or not operands[0].dtype:
        return
    monoid, dtype = library.monoids.get(env[operator.monoid_name]), operands[0].dtype
    if monoid is not None and not folds(monoid, dtype):
        raise TypeProblem(
            f"`{name}` folds with `{monoid.name}`, which takes {_a(bound(monoid))}, but {labels[0]} is {dtype}",
            f"convert it to {_any_of(bound(monoid))}",
            operand=0,
        )


def wanted_class(dtype: str, bounds: Mapping[str, str]) -> str:
    """The class, or the type, that an operand has to be of by its declared type and by what bounds variables."""
    return bounds.get(dtype, "any" if is_variable(dtype) else dtype)


def is_variable(dtype: str) -> bool:
    """Is an operand's element type a variable: one capital letter?"""
    return len(dtype) == 1 and dtype.isupper()


def _a(word: str) -> str:
    return f"{'an' if word[0] in 'aeiou' else 'a'} {word} value" if word != "any" else "any value"


def _any_of(wanted: str) -> str:
    *others, last = (dtype for dtype in DTYPES if in_class(dtype, wanted))
    return f"{', '.join(others)} or {last}" if others else last


_SURROUNDINGS = frozenset(CONTEXT_NAMES)
_SORTS = {
    None: ("tensor", "scalar", "array"),
    "value": ("scalar", "array"),
    "buffer": ("buffer",),
}


def _check_sort(decl: OperandDecl, name: str, type_: Type, label: str, position: int) -> None:
    allowed = _SORTS.get(decl.sort, (str(decl.sort),))
    if type_.sort not in allowed:
        raise TypeProblem(
            f"operand `{decl.name}` of `{name}` is a {decl.sort or 'value'}, but {label} is of sort {type_.sort}",
            f"give it what is of sort {' or '.join(allowed)}",
            operand=position,
        )


def _check_requirements(operator: Operator, name: str, env: Mapping[str, Any], labels: Sequence[str]) -> None:
    for requirement, decl in zip(operator.requirements, operator.decl.requires, strict=True):
        if any(asked not in env for asked in _SURROUNDINGS & requirement.asked):
            continue  # A part of a program, as an example has it, stands in no kernel's space.
        try:
            holds = requirement.holds(env)
        except GenrwError as problem:
            raise _Unanswered(problem) from problem
        if not holds:
            named = {o.name: label for o, label in zip(operator.fixed, labels, strict=False)}
            text = filled(requirement.message, env, named)
            seen = None if ": " in text else f"what `{name}` requires is declared at {decl.condition.span}"
            raise TypeProblem(text, seen, attribute=_culprit(operator, decl.condition))


def unmet_requirement(operator: Operator, known: Mapping[str, Any]) -> str | None:
    """What an operator requires and does not have, as far as it asks for nothing but what is known; None if there is nothing."""
    for requirement in operator.requirements:
        if requirement.asked <= known.keys():
            try:
                holds = requirement.holds(known)
            except GenrwError as problem:
                return problem.diagnostics[0].message
            if not holds:
                return filled(requirement.message, known)
    return None


def filled(message: str, env: Mapping[str, Any], labels: Mapping[str, str] = MappingProxyType({})) -> str:
    """A message with its `{x}` and `{x.rank}` holes filled; one of an unknown name or member stays as it is."""
    for hole in holes(message):
        base, _, member = hole.partition(".")
        try:
            value = env[base].member(member) if member else {**env, **labels}[base]
        except (KeyError, AttributeError):
            continue
        message = message.replace(f"{{{hole}}}", show(value))
    return message


def holes(message: str) -> list[str]:
    """What stands between braces in the message of a requirement."""
    return [part.partition("}")[0] for part in message.split("{")[1:]]


def show(value: Any) -> str:
    """A value as `.gen` writes it."""
    if isinstance(value, tuple):
        return "{" + ", ".join(show(v) for v in value) + "}"
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)


def _culprit(operator: Operator, condition: Any) -> str | None:
    """The attribute that a broken requirement names, if it names just one."""
    named = [a for a in operator.attributes if a in free_names(condition)]
    return named[0] if named else None


def _pointwise_result(
    operator: Operator,
    name: str,
    operands: Sequence[Type],
    labels: Sequence[str],
    dtypes: Mapping[str, str],
    env: Mapping[str, Any],
) -> Type:
    result = operator.result_dtype
    dtype = dtypes.get(result) or (result if is_dtype(result) else _result_dtype(operator, env.get(result, result)))
    if any(t.sort == "tensor" for t in operands):
        return Type("tensor", dtype, _within_limits(_broadcast(name, operands, labels)))
    sizes = {t.size for t in operands if t.sort == "array"}
    if len(sizes) > 1:
        raise TypeProblem(f"`{name}` takes arrays of one size, not {sorted(sizes)}", "give all of them the same")
    return Type("array", dtype, size=sizes.pop()) if sizes else Type("scalar", dtype)


def _within_limits(lens: tuple[int, ...]) -> tuple[int, ...]:
    """A result's lengths; BeyondLimits if they are more than a tensor may have."""
    excess = beyond_limits(lens)
    if excess is not None:
        raise BeyondLimits(*excess)
    return lens


def _broadcast(name: str, operands: Sequence[Type], labels: Sequence[str]) -> tuple[int, ...]:
    """Numpy-style broadcasting along axes of length 1; all operands have one rank, or rank 0."""
    lens: tuple[int, ...] = ()
    owner = ""
    for type_, label in zip(operands, labels, strict=True):
        if type_.sort != "tensor" or not type_.lens:
            continue
        if not lens:
            lens, owner = type_.lens, label
            continue
        short, long = sorted((lens, type_.lens), key=len)
        short = (1,) * (len(long) - len(short)) + short
        if any(a != b and 1 not in (a, b) for a, b in zip(short, long, strict=True)):
            raise TypeProblem(
                f"`{name}` cannot combine {owner} of shape {show(lens)} with {label} of shape {show(type_.lens)}",
                "lengths must be equal or 1 along each axis, counted from the last",
            )
        lens = tuple(b if a == 1 else a for a, b in zip(short, long, strict=True))
    return lens


# How many parts a declared result of each sort has, from and to.
RESULT_PARTS = {"effect": (0, 0), "index": (0, 1), "like": (1, 1), "tensor": (2, 3), "buffer": (2, 2)}
RESULT_PARTS |= dict.fromkeys(("scalar", "array", "value"), (1, 2))


def _declared_result(operator: Operator, env: Mapping[str, Any]) -> Type:
    sort = operator.result_sort
    least, most = RESULT_PARTS.get(str(sort), (0, -1))
    if not least <= len(operator.result_args) <= most:
        raise _bad_result(operator, f"`{sort}` of {len(operator.result_args)} parts", "a result type")
    try:
        args = [evaluate(env) for evaluate in operator.result_args]
    except GenrwError as problem:
        raise _Unanswered(problem) from problem
    if sort == "effect":
        return EFFECT
    if sort == "index":
        return Type("index", "int64", size=_length(operator, args[0]) if args else 0)
    if sort == "like":
        return args[0] if isinstance(args[0], Type) else EFFECT
    dtype = _result_dtype(operator, args[0])
    if sort in ("scalar", "array", "value"):
        size = _length(operator, args[1]) if len(args) > 1 else 0
        return Type("array" if size else "scalar", dtype, size=size)
    strides = _integers(operator, args[2]) if len(args) > 2 and args[2] else None
    lens = _within_limits(_lengths(operator, args[1]))
    if strides is not None and len(strides) != len(lens):
        raise TypeProblem(f"`{operator.name}` has a result of {len(lens)} lengths and {len(strides)} strides")
    # Strides that are those of a packed tensor are not written: a type has one form.
    return Type(str(sort), dtype, lens, None if strides == packed_strides(lens) else strides)


def _integers(operator: Operator, values: Any) -> tuple[int, ...]:
    if not isinstance(values, list | tuple) or not all(isinstance(n, int) for n in values):
        raise _bad_result(operator, _shown(values), "a list of integers")
    return tuple(map(int, values))


def _lengths(operator: Operator, values: Any) -> tuple[int, ...]:
    return tuple(_length(operator, n) for n in _integers(operator, values))


def _length(operator: Operator, value: Any) -> int:
    if not isinstance(value, int):
        raise _bad_result(operator, _shown(value), "a length")
    if value < 0:
        raise _negative(operator, value)
    return int(value)


def _negative(operator: Operator, length: int) -> Exception:
    """What is wrong where a length is negative: with the program's operation, unless the declaration alone says it."""
    named = free_names(operator.decl.result)
    attribute = next((name for name in operator.attributes if name in named), None)
    if attribute is None and named.isdisjoint(o.name for o in operator.decl.operands):
        return _bad_result(operator, _shown(length), "a length")
    message = f"the result of `{operator.name}` has a length of {length} here"
    return TypeProblem(message, "give it attributes and operands that make one of 0 or more", attribute=attribute)


def _result_dtype(operator: Operator, value: Any) -> str:
    if not isinstance(value, str) or not is_dtype(element_type(value)):
        raise _bad_result(operator, _shown(value), "an element type")
    return value


def _shown(value: Any) -> str:
    return "a whole operand" if isinstance(value, Type) else f"`{value}`"


def _bad_result(operator: Operator, found: str, wanted: str) -> GenrwError:
    """What is wrong with a declaration, not with the program that uses it."""
    message = f"the result of `{operator.name}` is declared with {found} in place of {wanted}"
    return error(message, operator.decl.result.span)
