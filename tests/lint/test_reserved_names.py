"""Names that stand for something already are refused wherever one is introduced."""

from __future__ import annotations

import pytest
from test_lint import told

RULE = "stage early\n\nrule mine\n  {}\n"

TAKEN = {
    "operand": RULE.format("minus(root(half)) when half.rank > 0\n  => half"),
    "of the context": RULE.format("minus(root(space)) when space.rank > 0\n  => space"),
    "root of the left side": RULE.format("half@minus(root(x)) when half.rank > 0\n  => x"),
    "attribute": RULE.format("shape[dims=target](x) when len(target) > 3\n  => minus(x)"),
    "computed": RULE.format("shape[dims](x) when len(dims) > half\n  => minus(x)\n  with half = target.lanes // 2"),
    "alternative": RULE.format("shape[dims](x) when len(dims) > bool\n  => minus(x)\n  for bool in [3, 4]"),
    "variable of a list": RULE.format("shape[dims](x)\n  => shape[dims=[float + 0 for float in dims]](minus(x))"),
    "right side read backwards": RULE.format("minus(root(x))\n  <=> root(minus(x))\n  with double = x.rank"),
    "number": 'stage lanes\n\nop far(i: index) -> index()\n  at lanes\n  emit "{{i}}"\n\nrule mine\n  far({int32}) when int32 > 3\n  => lane()\n',
    "operator variable": RULE.format("root(root[..](x))\n  => root[..](x)\n  for root in all"),
    "with after operand": RULE.format("minus(root(x)) when x > 1\n  => root(root(minus(x)))\n  with x = target.lanes"),
    "with after with": RULE.format("shape[dims](x) when a > 3\n  => minus(x)\n  with a = len(dims), a = 3"),
    "for after with": RULE.format("shape[dims](x) when a > len(dims)\n  => minus(x)\n  with a = 4\n  for a in [1, 2]"),
    "operand and attribute": RULE.format("shape[dims](dims) when dims.rank > 1\n  => minus(dims)"),
    "attribute of an operator": "op far[half: int](x: T) -> T where T: real\n  role pointwise\n  means x * half\n",
    "operand of an operator": "op far(schedule: T) -> T where T: real\n  role pointwise\n  means -schedule\n",
    "type variable": "op far[T: int](x: T) -> T where T: real\n  role pointwise\n  means x * T\n",
    "parameter": "let far(half) = half + 1\n",
    "variable in a helper": "let far(xs) = [int8 for int8 in xs]\n",
    "function": "let erf(x) = x + 1\n",
    "field": "monoid far\n  carry n: T, m: T\n  element n = x, m = x\n  identity n = 0, m = 0\n  combine n = a.n + b.n, m = a.m\n  finish n\n",
    "constant as a field": "monoid far\n  carry nan: T\n  element nan = x\n  identity nan = 0\n  combine nan = a.nan\n  finish nan\n",
    "class as role": "class pointwise = {root}\n",
    "class as operator": "class root = {minus}\n",
    "entry of a target": "target far\n  lanes 32\n  half 16\n",
    "name of a target": 'target far\n  lanes 32\n  name "near"\n',
    "input of an import": "dialect far\nimport Far(half)\n  => minus(half)\n",
    "attribute of an import": "dialect far\nimport Far[opset: int = 1](x) when opset > 3\n  => minus(x)\n",
}


@pytest.mark.parametrize("about", TAKEN)
def test_taken_names_are_refused(about: str) -> None:
    found = told(TAKEN[about])
    wanted = ("nothing else may be called so", "stands for something else", "is an operand and an attribute")
    wanted += ("is a function of the language",)
    assert any(words in found for words in wanted), found
    assert "never used" not in found, "what is hidden is the fault, not that it seems unused"


def test_a_monoid_is_not_called_like_the_placeholder_of_families() -> None:
    family = "op fold_{op: monoid}(x: T tensor) -> tensor(T, x.lens) where T: any\n  role fold(x)\n  at early\n\n"
    found = told(family + "monoid op\n  identity 0\n  combine a + b\n")
    assert "`op` is any monoid in a family's name" in found


@pytest.mark.parametrize("name", ["a", "n", "type", "T", "half"])
def test_a_taken_field_is_told_once(name: str) -> None:
    found = told(
        f"monoid far\n  carry {name}: T, m: T\n  element {name} = x, m = x\n  identity {name} = 0, m = 0\n"
        f"  combine {name} = a.m + b.m, m = a.m + b.m\n  finish m\n"
    )
    assert found.count(f"`{name}`") == found.count("error:") == 1, found


FREE = {
    "a helper's parameters see nothing else": RULE.format("minus(root(x)) when far(x.rank, x.rank)\n  => x")
    + "\nlet far(target, space) = target > space\n",
    "a place in a mapped template": RULE.format("join(xs...)\n  => join(shape[dims=[position]](xs)...)")
    + "\nop join(xs: T tensor...) -> tensor(T, [1]) where T: any\n  role index_map(xs)\n  at early, late\n",
}


@pytest.mark.parametrize("about", FREE)
def test_names_that_are_free(about: str) -> None:
    found = told(FREE[about])
    assert "may be called" not in found
    assert "unknown name" not in found


def test_a_place_is_known_in_mapped_templates_only() -> None:
    found = told(RULE.format("shape[dims](x) when position > len(dims)\n  => minus(x)"))
    assert "unknown name `position`" in found
