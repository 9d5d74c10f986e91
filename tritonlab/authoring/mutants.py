"""Mutants: the part of a suite that each is graded with."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from grader.report import Kind
from grader.submission import reachability
from grader.suite.inputs import Input, Sparse
from tritonlab.authoring.module_files import KERNEL, Material

if TYPE_CHECKING:
    from grader.suite import Case, Function, Mutant, Suite


def draws(suite: Suite, name: str) -> bool:
    """Whether the case of this name has random inputs.

    The compile gate has none of its own, and a case at its real size has no values at all.
    """
    cases = [case for case in suite.all_cases if case.name == name
             and not (case.limits and case.limits.pass_at)]
    return any(prop.name == name for prop in suite.properties) or any(
        isinstance(spec, Input | Sparse) for case in cases for spec in case.inputs)


def concerned(material: Material, mutant: Mutant) -> Suite:
    """Returns the suite without cases that cannot run the changed code of a mutant.

    Such are functions that reach no change, and cases that replace all changed files. Cases that
    tell mistakes of its code apart stay, for the diagnosis. Cases that draw sizes go, as they would
    kill different mutants from run to run.
    """
    suite = material.suite
    changed = [patch.file for patch in mutant.patches]
    changed_files = mutant.apply_to(material.solution)
    roots = {KERNEL, suite.kernel_file}
    telling = {name for other in suite.mutants if other.codes[:1] == mutant.codes[:1]
               for name in (*other.wrong, *other.right)}

    def is_left(case: Case) -> bool:
        if case.sizes:
            return False
        trees = case.call.trees if case.call else ()
        return not trees or not all(name.startswith(tree.instead_of) or name in tree.files
                                    for tree in trees for name in changed)

    def left(function: Function, prefix: str) -> list[Case]:
        idle = function.entry and not reachability.changes(
            function.called, material.solution, changed_files, roots)
        return [case for case in function.cases if is_left(case) and not (
            idle and case.call is None and case.reading is None
            and f"{prefix}{case.name}" not in telling)]

    functions = [replace(function, cases=left(function, f"{function.entry}: "))
                 for function in suite.functions]
    return replace(suite, cases=left(suite, ""), functions=functions)


def is_of_values(suite: Suite, name: str) -> bool:
    """Whether the case or property of this name has no limits on cost."""
    return all(case.limits is None for case in suite.all_cases if case.name == name)


def repeated(suite: Suite, name: str, times: int) -> tuple[Suite, list[str]]:
    """Returns a suite with copies of one case or property, and their names.

    The first case of correctness precedes them, as it shows the learner's own block.
    """
    labels = [f", time {time}" for time in range(1, times + 1)]

    def copies(function: Function) -> list[Case]:
        prefix = f"{function.entry}: " if suite.functions and function is not suite else ""
        cases = [case for case in function.cases if f"{prefix}{case.name}" == name]
        first = [case for case in function.cases if case.kind is Kind.CORRECTNESS][:1]
        return [*(case for case in first if cases and case not in cases),
                *(replace(case, name=f"{case.name}{label}") for case in cases for label in labels)]

    properties = tuple(replace(prop, name=f"{prop.name}{label}")
                       for prop in suite.properties if prop.name == name for label in labels)
    functions = [replace(function, cases=copies(function)) for function in suite.functions]
    narrow = replace(suite, cases=copies(suite), functions=functions, properties=properties)
    return narrow, [f"{name}{label}" for label in labels]
