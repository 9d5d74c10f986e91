"""Mutants: the part of a suite that each is graded with, and its grades."""

import contextlib
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import grader
from grader.report import Kind, Verdict
from grader.sandbox import Sandbox
from grader.submission import reachability
from grader.suite import Case, Function, Mutant, Suite
from grader.suite.inputs import Input, Sparse
from tritonlab.authoring import expectations
from tritonlab.authoring.module_files import KERNEL, Material, write


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


def kill(material: Material, mutant_id: str, box: Sandbox) -> tuple[str, list[str]]:
    """Grades a mutant; returns the case that killed it and the faults.

    After the killing case, only cases that tell known mistakes apart are run, as no other affects
    the diagnosis. If that has faults, all cases are run, as they may yield further codes.
    """
    with _mutated(material, mutant_id) as (mutant, kernel):
        suite = concerned(material, mutant)
        report = grader.grade(kernel, suite, sandbox=box, effort="diagnosis")
        if any(expectations.survives(mutant, report)):
            report = grader.grade(kernel, suite, sandbox=box, effort="values")
    killer = report.first_failure.name if report.first_failure else ""
    return killer, list(expectations.survives(mutant, report))


def kill_again(material: Material, mutant_id: str, killer: str, runs: int,
               box: Sandbox) -> list[list[str]]:
    """Repeats the case that killed a mutant, each time with fresh inputs.

    If it passes with these, all cases are run, as another one may fail. A case with limits, or one
    that a grade skips, is repeated in grades of its own, as checks of compiled code end with the
    first failure.

    Returns:
        For each run, why the mutant was not killed.
    """
    limits = [case.limits for case in material.suite.all_cases if case.name == killer]
    most = 1 if any(one is not None for one in limits) else runs
    faults_by_run: list[list[str]] = []
    with _mutated(material, mutant_id) as (mutant, kernel):
        while left := runs - len(faults_by_run):
            suite, names = repeated(material.suite, killer, min(most, left))
            report = grader.grade(kernel, suite, sandbox=box, effort="values")
            verdicts = {result.name: result.verdict for result in report.results}
            judged = [name for name in names if verdicts.get(name) is not Verdict.SKIPPED] or names
            for name in judged:
                faults = list(expectations.survives(mutant, report, case=name))
                if verdicts.get(name) is Verdict.PASSED:
                    whole = grader.grade(kernel, concerned(material, mutant), sandbox=box,
                                         effort="first")
                    faults = list(expectations.survives(mutant, whole, whole=False))
                faults_by_run.append(faults)
    return faults_by_run


@contextlib.contextmanager
def _mutated(material: Material, mutant_id: str) -> Iterator[tuple[Mutant, Path]]:
    """Yields a mutant and its kernel.py in a temporary folder; ValueError if it does not apply."""
    mutant = next(m for m in material.suite.mutants if m.id == mutant_id)
    with tempfile.TemporaryDirectory() as folder:
        write(mutant.apply_to(material.solution), Path(folder))
        yield mutant, Path(folder) / KERNEL
