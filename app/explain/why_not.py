"""`genrw rules why-not`: why a rule does nothing in a program."""

from __future__ import annotations

from dataclasses import replace

from genrw.engine.explain.why_not_search import why_not
from genrw.engine.fusion.compute_locations import is_of_places
from genrw.engine.library.library import Library
from genrw.engine.lowering.pipeline import Pipeline
from genrw.grammar.diagnostics import error
from genrw.grammar.rw_tree import RuleDecl
from genrw.program import Program
from genrw.terminal import write


def tell(name: str, program: Program) -> int:
    """Print, for each module at each of the rule's stages, what keeps the rule from applying, or that it applies."""
    library = program.library
    rule = _rule(name, library)
    if is_of_places(rule, library):
        raise error(
            f"`{name}` is asked about single operations, of which a program is cut into kernels",
            rule.name_span,
            "`genrw explain FILE` tells why it was cut",
        )
    for stage in (s for s in program.stages if s in rule.stages):
        _tell_at(stage, rule, program)
    return 0


def _rule(name: str, library: Library) -> RuleDecl:
    found = next((rule for rule in library.rules if rule.name == name), None)
    if found is None:
        raise error(f"there is no rule `{name}`", remedy="`genrw rules list` shows all")
    return found


def _tell_at(stage: str, rule: RuleDecl, program: Program) -> None:
    before = program.stages.index(stage)
    done = [program.stages.index(unit.stage) for unit in program.units if unit.stage]
    if done and max(done) >= before:
        write(f"{stage}: the program is past this stage")
        return
    if before:
        program = program.lower(program.stages[before - 1])
    pipeline = Pipeline(program.library, watched=True)
    for module in program.modules:
        module = replace(pipeline.spaced(module, stage), target=program.options.target)
        found = why_not(program.library, rule, pipeline.batch([module], stage, program.options).graph, module)
        where = f"{stage}, module `{module.name}`"
        if found is None:
            write(f"{where}: `{rule.name}` ({rule.name_span.location}) applies; `genrw explain` tells what it made")
        else:
            write(f"{where}: `{rule.name}` does not apply\n{found.render()}")
