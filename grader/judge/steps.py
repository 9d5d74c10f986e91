"""Grades an exercise whose blanks are partly filled in, step by step.

Blanks that are left get the code of the reference solution, and the completed file is judged by the
whole suite. So a failure belongs to a step that is filled in. Such a report never passes, points at
no line of the solution and quotes none.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Sequence
from dataclasses import replace

import msgspec

from grader.diagnosis import codes, messages
from grader.diagnosis.explain import result_of
from grader.finding import Fault, MemoryAccess, fault
from grader.report import CaseResult, Finding, Kind, Report, Step, Verdict
from grader.submission.completion import (
    Blank,
    Completed,
    NotCompletable,
    blanks_of,
    complete,
)
from grader.submission.source import Source
from grader.suite import Case, Suite
from grader.worker.suite_drivers import UNWRITTEN

_QUOTED = 12  # characters of the solution's code, without spaces, that count as a quotation

Judge = Callable[..., Report]  # of a source and a suite; ``only`` and ``seed`` ask for one case


def grade(empty: Report, submitted: Source, suite: Suite, steps: Sequence[Step],
          judge: Judge) -> Report | None:
    """Grades what is filled in of an exercise; None where the file cannot be completed.

    Args:
        empty: the report of a submission that was not run.
        submitted: with blanks that are left.
        suite: with its exercise and its solution.
        steps: the groups of the exercise's blanks, in their order.
        judge: grades a source with a suite.
    """
    try:
        blanks = blanks_of(suite.exercise, suite.solution)
        completed = complete(submitted.text, suite.exercise, suite.solution)
        source = _source(submitted, completed)
    except NotCompletable:
        return None
    by_number = all(blank.number is not None for blank in blanks)
    untouched = len(completed.left) == len(blanks) and (
        by_number or submitted.text.strip() == suite.exercise.strip())
    if untouched:
        return _unfinished(empty, [replace(step, state="open") for step in steps], suite, completed)
    if by_number:
        return _by_number(submitted, source, suite, steps, completed, blanks, judge)
    return _by_function(source, suite, steps, completed, judge)


def _source(submitted: Source, completed: Completed) -> Source:
    try:
        submitted.data.decode("utf-8")
    except UnicodeDecodeError:
        raise NotCompletable("only UTF-8 is completed") from None
    return submitted.with_text(completed.text)


# -- steps of TODO numbers -------------------------------------------------------------------------


def _by_number(submitted: Source, source: Source, suite: Suite, steps: Sequence[Step],
               completed: Completed, blanks: Sequence[Blank], judge: Judge) -> Report:
    left = {blank.number for blank in completed.left}
    of_all, of_left = ([sum(blank.number in step.todos for blank in some) for step in steps]
                       for some in (blanks, completed.left))
    states = ["right" if not two else "begun" if two < one else "open"
              for one, two in zip(of_all, of_left, strict=True)]
    groups = [replace(step, state=state) for step, state in zip(steps, states, strict=True)]
    filled = [step for step in groups if step.state != "open"]
    own = {number for step in filled for number in step.todos} - left
    suite = replace(suite, mutants=tuple(mutant for mutant in suite.mutants
                                         if not mutant.todos or own.intersection(mutant.todos)))
    report = judge(source, suite)
    failure = report.first_failure
    broken = tuple(one for one in report.results if one.verdict is Verdict.ERROR)
    if failure is None:
        undecided = bool(report.out_of_time or report.reason or broken)
        if undecided:
            groups = [step if step.state == "open" else replace(step, state="unchecked")
                      for step in groups]
            late = tuple(one for one in report.deciding if one.skipped)
            return replace(report, results=broken or late, steps=tuple(groups), on_gpu=())
        return _unfinished(replace(report, results=()), groups, suite, completed)
    guilty = _guilty(failure, submitted, suite, filled, report.seed, judge)
    groups = [step if step.state == "open" else
              replace(step, state="wrong" if guilty and step.group == guilty.group else "unchecked")
              for step in groups]
    todos = own if guilty is None else own.intersection(guilty.todos)
    findings = tuple(_without_solution(finding, completed, todos, guilty, suite)
                     for finding in failure.findings[:1])
    details = failure.details and replace(failure.details, launches=())
    return replace(report, results=(replace(failure, findings=findings, details=details), *broken),
                   steps=tuple(groups))


def _guilty(failure: CaseResult, submitted: Source, suite: Suite, filled: Sequence[Step],
            seed: str, judge: Judge) -> Step | None:
    """A step that fails the same case while all others are the solution's, if one does.

    Steps whose places the diagnosis names are tried first, then the others in their order.
    """
    if len(filled) == 1:
        return filled[0]
    suspected = {todo for finding in failure.findings[:1] for todo in finding.todos}
    filled = sorted(filled, key=lambda step: suspected.isdisjoint(step.todos))
    names = [case.name for case in suite.ordered()]
    compiled = (one.value("case") for finding in failure.findings
                for one in finding.circumstances if one.kind == "compiled")
    name = failure.name if failure.name in names else next(compiled, None)
    for step in filled if name in names else ():
        try:
            alone = complete(submitted.text, suite.exercise, suite.solution, step.todos)
            report = judge(_source(submitted, alone), suite, only=name, seed=seed)
        except NotCompletable:
            continue
        if report.first_failure:
            return step
    return None


def _without_solution(finding: Finding, completed: Completed, todos: Collection[int],
                      guilty: Step | None, suite: Suite) -> Finding:
    """A finding that points at the learner's lines and places only, and quotes no others."""
    data, line = finding.data, finding.line
    line = None if line in completed.lines else line
    if isinstance(data, MemoryAccess):
        data = msgspec.structs.replace(
            data, passed_line=0 if data.passed_line in completed.lines else data.passed_line,
            earlier_line=None if data.earlier_line in completed.lines else data.earlier_line)
    elif isinstance(data, Fault) and line is None and data.value("quoted"):
        data = data.with_figures(quoted="")
    if data != finding.data and isinstance(data, MemoryAccess) and not data.passed_line:
        data = msgspec.structs.replace(data, argument="")
    shown = replace(finding, data=data, line=line)
    if _quotes(" ".join((shown.seen, shown.means)), completed):
        shown = replace(shown, data=fault("beside the solution"), circumstances=(),
                       means=codes.MEANINGS[finding.code])
    numbers = tuple(number for number in finding.todos if number in todos)
    if guilty is not None and not numbers:
        numbers = tuple(sorted(todos))
    shown = shown.within("step", group=guilty.group, title=guilty.title) if guilty else \
        shown.within("steps together")
    return replace(shown, todos=numbers,
                   where=messages.where(line, "", suite.marker, numbers, also=finding.also),
                   next_step=messages.next_step(finding.code, data, numbers))


def _quotes(words: str, completed: Completed) -> bool:
    """Whether a text contains code of the solution."""
    bare = re.sub(r"\s|['\"]", "", words)
    parts = {re.sub(r"\s|['\"]", "", part) for code in completed.lines.values()
             for statement in code.split("; ") for part in (statement, statement.partition("=")[2])}
    return any(len(part) >= _QUOTED and part in bare for part in parts)


# -- steps of functions ----------------------------------------------------------------------------


def _by_function(source: Source, suite: Suite, steps: Sequence[Step], completed: Completed,
                 judge: Judge) -> Report:
    """A blank is the body of a function here: those that are left raise NotImplementedError."""
    report = judge(source, suite)
    waiting = [one for one in report.results if _is_unwritten(one)]
    names = {one.name: case.about for case in suite.all_cases for one in report.results
             if one.name == case.name}
    groups = []
    for step in steps:
        own = [one for one in report.deciding if names.get(one.name) in step.functions]
        failed = any(one.fails and one not in waiting for one in own)
        some_left = any(one in waiting for one in own)
        state = "wrong" if failed else "right" if not some_left else "begun" if any(
            one.verdict is Verdict.PASSED for one in own) else "open"
        groups.append(replace(step, state=state))
    report = replace(report, results=tuple(one for one in report.results if one not in waiting))
    if report.first_failure or report.reason or any(
            one.verdict is Verdict.ERROR for one in report.results):
        return replace(report, steps=tuple(groups))
    return _unfinished(report, groups, suite, completed)


def _is_unwritten(result: CaseResult) -> bool:
    return bool(result.findings) and (result.findings[0].means == messages.NOT_WRITTEN
                                      or UNWRITTEN in result.findings[0].seen)


# -- nothing is wrong ------------------------------------------------------------------------------


def _unfinished(report: Report, groups: Sequence[Step], suite: Suite,
                completed: Completed) -> Report:
    """The report with the steps that are right and the one that comes next."""
    following = next((step for step in groups if step.state in ("open", "begun")), groups[-1])
    todos = tuple(sorted({blank.number for blank in completed.left
                          if blank.number in following.todos and blank.number is not None}))
    count = len({blank.number for blank in completed.left} - {None}) + sum(
        blank.number is None for blank in completed.left)
    finding = Finding("P01", fault(
        "steps", count=count, total=suite.blanks, steps=len(groups),
        right=tuple(step.group for step in groups if step.state == "right"),
        begun=following.state == "begun", group=following.group, title=following.title,
        todos=todos, functions=following.functions),
        line=_first_line(completed, following), todos=todos,
        function=next(iter(following.functions), ""))
    finding = replace(
        finding.within("sentence"), means=codes.MEANINGS["P01"],
        where=messages.where(finding.line, "", suite.marker, todos),
        next_step=messages.next_step("P01", finding.data, todos))
    failure = result_of(Case("the blanks", Kind.CORRECTNESS), [finding])
    return replace(report, results=(failure, *report.results), steps=tuple(groups))


def _first_line(completed: Completed, step: Step) -> int | None:
    """The line of the step's first blank that is left."""
    lines = zip(completed.left, completed.lines, strict=False)  # in one order
    return min((line for blank, line in lines if blank.number in step.todos
                or blank.function.partition(".")[0] in step.functions), default=None)
