"""How a trace takes over what others noted."""

from __future__ import annotations

from genrw.engine.egraph.guard_evaluation import RuleUse
from genrw.engine.lowering.trace import Trace


def noted(rule: str, *modules: str) -> Trace:
    return Trace(uses={rule: RuleUse(taken=1)}, fired={rule: set(modules)}, seconds={rule: 1.0})


def test_a_trace_that_parts_share_counts_once() -> None:
    shared, own = noted("cuts", "a", "b", "left"), noted("cuts", "a")
    trace = Trace()
    trace.take_over_all([(shared, "a", "first"), (own, "a", "second"), (shared, "b", "third"), (shared, "a", "fourth")])
    assert trace.fired == {"cuts": {"first", "second", "third", "fourth"}}
    assert trace.uses["cuts"].taken == 2
    assert trace.seconds == {"cuts": 2.0}
