"""Exercises of the course whose blanks are filled in step by step."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator

from grader.submission.completion import NotCompletable, blanks_of, complete
from grader.suite import Mutant
from tritonlab.course import course
from tritonlab.course.course import HintGroup, Module

MODULES = [module for module in course.load(course.shipped_roots()).modules if not module.files
           and re.search(r"^ +(\w+ = )?\.\.\.", (module.folder / "kernel.py").read_text(), re.M)]
BLANKS = [module for module in MODULES if any(group.todos for group in module.hints)]


def texts(module: Module) -> tuple[str, str]:
    """The exercise and the solution."""
    return (module.folder / "kernel.py").read_text(), module.solution.read_text()


def filled(module: Module, groups: Collection[str], solution: str = "") -> str:
    """The exercise with the blanks of these groups filled in; from ``solution``, if it is given."""
    exercise, right = texts(module)
    numbers = {n for group in module.hints if group.group in groups for n in group.todos}
    completed = complete(exercise, exercise, solution or right)
    lines, old = completed.text.split("\n"), exercise.split("\n")
    for blank, line in zip(completed.left, completed.lines, strict=True):
        if blank.number not in numbers:
            lines[line - 1] = old[line - 1]
    return "\n".join(lines)


def group_of(module: Module, mutant: Mutant) -> HintGroup | None:
    """The one group whose blanks a mistake changes, and the only ones that it changes."""
    exercise, solution = texts(module)
    right = blanks_of(exercise, solution)
    wrong = blanks_of(exercise, mutant.apply(solution))
    changed = {a.number for a, b in zip(right, wrong, strict=True)
               if a.code != b.code
               and a.code.count("import ") == b.code.count("import ")}  # none became an assignment
    groups = [group for group in module.hints if changed.intersection(group.todos)]
    return groups[0] if len(groups) == 1 else None


def mistakes(module: Module, mutants: Collection[Mutant]) -> Iterator[tuple[Mutant, HintGroup]]:
    """The mistakes that lie in the blanks of one group."""
    for mutant in mutants:
        try:
            group = group_of(module, mutant)
        except NotCompletable:
            continue
        if group:
            yield mutant, group
