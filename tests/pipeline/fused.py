"""What the tests of fusion ask of a plan."""

from __future__ import annotations

from support import WAVE64, load

from genrw.engine.fusion.report import PlanReport, plan_report


def plan_of(text: str, target: str = WAVE64) -> PlanReport:
    """The plan by which a program of one module is cut into kernels."""
    program = load(text, target).lower("fuse")
    ((name, plan),) = program.trace.plans.items()
    return plan_report(name, plan, program.units[0])


def kernels_of(text: str, target: str = WAVE64) -> list[str]:
    """What the kernels of a program store, in launch order, where they store nothing but results."""
    plan = plan_of(text, target)
    assert {stored.why for stored in plan.stored} == {"it is a result"}
    return [" ".join(kernel.outputs) for kernel in plan.kernels]


def stored_because(plan: PlanReport, value: str) -> str:
    """Why a plan stores a value."""
    (why,) = [stored.why for stored in plan.stored if stored.value == value]
    return why
