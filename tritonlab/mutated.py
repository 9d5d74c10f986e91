"""Mutated: the files of a mutant, and the part of a suite that it is tried with."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from grader.inputs import Input, Sparse
from grader.report import Kind
from tritonlab import reach
from tritonlab.written import KERNEL, Material

if TYPE_CHECKING:
    from grader.suite import Case, Function, Mutant, Suite


def draws(suite: Suite, name: str) -> bool:
    """Whether the case of this name has random inputs.

    The compile gate has none of its own, and a case at its real size has no values at all.
    """
    cases = [case for case in suite.all_cases if case.name == name
             and not (case.limits and case.limits.pass_at)]
    return any(law.name == name for law in suite.properties) or any(
        isinstance(spec, Input | Sparse) for case in cases for spec in case.inputs)


def concerned(material: Material, mutant: Mutant) -> Suite:
    """The suite without cases that run nothing of a mutant: they give what the solution's give.

    That is so of functions that reach nothing which it changes, and where all files that it changes
    are replaced. Cases stay that tell mistakes of its code apart, for the diagnosis. Cases that
    draw sizes go: which mutant they kill would change from run to run.
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
        idle = function.entry and not reach.changes(
            function.called, material.solution, changed_files, roots)
        return [case for case in function.cases if is_left(case) and not (
            idle and case.call is None and case.reading is None
            and f"{prefix}{case.name}" not in telling)]

    functions = [replace(function, cases=left(function, f"{function.entry}: "))
                 for function in suite.functions]
    return replace(suite, cases=left(suite, ""), functions=functions)


def is_of_values(suite: Suite, name: str) -> bool:
    """Whether the case of this name, or the law, has no limits on what a launch costs."""
    return all(case.limits is None for case in suite.all_cases if case.name == name)


def repeated(suite: Suite, name: str, times: int) -> tuple[Suite, list[str]]:
    """A case or a law so many times, each with inputs of its own, and what they are called.

    Before them comes the case that shows the learner's own block.
    """
    labels = [f", time {time}" for time in range(1, times + 1)]

    def kept(function: Function) -> list[Case]:
        prefix = f"{function.entry}: " if suite.functions and function is not suite else ""
        asked = [case for case in function.cases if f"{prefix}{case.name}" == name]
        first = [case for case in function.cases if case.kind is Kind.CORRECTNESS][:1]
        return [*(case for case in first if asked and case not in asked),
                *(replace(case, name=f"{case.name}{label}") for case in asked for label in labels)]

    laws = tuple(replace(law, name=f"{law.name}{label}")
                 for law in suite.properties if law.name == name for label in labels)
    functions = [replace(function, cases=kept(function)) for function in suite.functions]
    narrow = replace(suite, cases=kept(suite), functions=functions, properties=laws)
    return narrow, [f"{name}{label}" for label in labels]
