"""Reruns of the first failing case with statements of the solution, which name its causes."""

from __future__ import annotations

import math
import re
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import partial

from grader.diagnosis.codes import known_mistake, preceding
from grader.diagnosis.explain import functions_of, mistakes_in, names_of
from grader.diagnosis.solution_contrast import (
    MOST_S,
    Cause,
    causes,
    kinds_of,
    repair,
    text_causes,
    with_mistake,
)
from grader.finding import Data, WrongValues, value_of
from grader.judge.case import verdict
from grader.judge.context import Context, RecordedCall
from grader.processes.replies import Stopped
from grader.processes.time_limit import OutOfTime
from grader.recording.model import Recording, views_of
from grader.report import CaseResult, Finding, Skip, Verdict
from grader.submission import dataflow, syntax
from grader.submission.statement_diff import edits
from grader.suite import Case, Property, Suite

_MOST_OWN = 2  # lines of a result, of which the first is named without a repair
_MOST_OF_ONE = 16  # repairs of a statement that is known to be wrong
_VAGUE = ("", "operation", "placement", "values")  # kinds of mistakes
_OF_SIZES = frozenset(("number", "missing term", "missing factor"))  # kinds, of a wrong shape
_MOST_OTHERS = 2  # further cases of each kind
_MOST_TRIED = 4  # known mistakes
_ALIKE = 0.05  # of all elements, by which kernels with one mistake may differ
_SIMILAR = 1.5  # times as much
RUN_S = 5.0  # of one rerun; most take a tenth of a second
_WITH_REPAIRS = ("whole", "early", "diagnosis")
# Findings of values, accesses, shapes, grids and plain values.
_REPAIRED = ("M", "N", "S", "L03", "Q")
# Patterns of wrong values in their right places: nothing is wrong with an address.
_IN_PLACE = ("factor", "offset", "factor by row", "offset by row", "formula")
_OF_SHAPES = re.compile("incompatible|reduction dimensions|boolean scalar")  # Triton's own words
# A file that cannot be read, runs that take as long as they are allowed to, and tests that pass
# only after they have run on all wrong packages.
_NOT_RUN_AGAIN = ("P", "R02", "R03", "R04", "U01")


def causes_of(results: Sequence[CaseResult], ctx: Context) -> list[Cause]:
    """The statements that decide the first failure of a grade; none where it is not known."""
    first = next((result for result in results if result.fails), None)
    if first is None or not first.findings or not ctx.suite.solution or ctx.submitted.tree is None:
        return []
    if first.findings[0].code.startswith(_NOT_RUN_AGAIN):
        return []

    def case_of(result: CaseResult) -> Case | None:
        return next((one for one in ctx.suite.ordered() if one.name == result.name), None)

    case = case_of(first)
    if case is None:
        return []

    recorded: defaultdict[str, dict[int, RecordedCall]] = defaultdict(dict)

    def passes(text: str, case: Case = case, file: str = "") -> bool:
        # Kernels do not run in the worker, so another kernel changes no recording.
        kept = None if file else recorded[dataflow.host_code(text)]
        with ctx.with_text(text, RUN_S, kept, file) as other:
            result = verdict(case, other)
        return result.verdict is Verdict.PASSED or (
            result.verdict is Verdict.SKIPPED and result.skipped is Skip.GPU)

    exercise = ctx.suite.exercise
    text, numbers = ctx.submitted.text, ctx.submitted.places(exercise).lines
    roots = functions_of(case, ctx.suite)
    deciding = [replace(one, file=ctx.suite.kernel_file) for one in causes(
        text, ctx.suite.solution, exercise, roots, passes, numbers)]
    if not deciding and first.seconds < RUN_S / 2:
        deciding = _in_files(case, ctx, roots, passes)
    finding = first.findings[0]
    if not _is_repaired(finding, text, roots) or ctx.effort not in _WITH_REPAIRS:
        return deciding
    others = [one for result in _others(first, results) if (one := case_of(result)) is not None
              and one.function == case.function]
    if deciding:
        if len(deciding) == 1 and deciding[0].kind in _VAGUE and not deciding[0].missing:
            # The solution computes it in another way, so what differs is not the mistake.
            for own in repair(text, [[deciding[0].line]], lambda text: all(
                    passes(text, one) for one in (case, *others)), likely=("comparison",),
                    most=_MOST_OF_ONE):
                deciding = [replace(deciding[0], kind=own.kind, part=own.part, unused=own.unused)]
        return deciding
    with ctx.with_text(text, RUN_S) as other:
        recording = _recording(case, other)
    away = dataflow.lines_elsewhere(text, roots) | _idle_kernels(text, recording)
    suspects = [[line for line in lines if line not in away]
                for lines in _suspects(finding, text, recording, ctx.part(case).entry)]
    of_result = [line for line in _lines_of_result(finding, text, recording, ctx.part(case))
           if line not in away]
    repaired = repair(text, [of_result, *suspects] if of_result else suspects, lambda text: all(
        passes(text, one) for one in (case, *others)), numbers, finding.code == "L05",
                      _likely_kinds(first, results, ctx.suite)) or [
            Cause(line, "one result", todo=numbers.get(line)) for line in of_result[:1]
            if len(of_result) <= _MOST_OWN]
    return [replace(one, file=ctx.suite.kernel_file) for one in repaired]


def refuted_mistakes(results: Sequence[CaseResult], causes: Sequence[Cause],
                     ctx: Context) -> frozenset[str]:
    """The ids of known mistakes that fail in the same cases, but in another way.

    Cases and signs match by chance where a kernel differs from the solution. Where no statement was
    proved to be the cause, the mistake that would explain the failure is run on the same inputs.
    """
    failures = [result for result in results if result.fails and result.findings]
    if causes or not failures or ctx.effort not in _WITH_REPAIRS:
        return frozenset()
    first, suite = failures[0], ctx.suite
    finding, cases = first.findings[0], {case.name: case for case in suite.ordered()}
    if first.name not in cases or not isinstance(finding.data, WrongValues):
        return frozenset()
    failed, passed = names_of(results, Verdict.FAILED), names_of(results, Verdict.PASSED)
    left = preceding(finding, mistakes_in(first.name, suite))
    refuted = set[str]()
    while mistake := known_mistake(finding, [mutant for mutant in left if mutant.id not in refuted],
                                   failed, passed):
        if len(refuted) < _MOST_TRIED:
            # Another case may need more steps, or more programs, than the first.
            mine = next((one for one in failures if one.name in mistake.wrong), first)
            text = with_mistake(mistake, suite.solution, suite.kernel_file)
            if text == suite.solution:
                break
            with ctx.with_text(text, RUN_S) as other:
                theirs = verdict(cases[mine.name], other).findings
            if theirs and _are_alike(mine.findings[0].data, theirs[0].data):
                break
        refuted.add(mistake.id)
    return frozenset(refuted)


def _are_alike(mine: Data, theirs: Data) -> bool:
    """Whether two kernels got alike values wrong, in whatever blocks they compute them.

    Values without a pattern are not compared: what a sum lacks or has twice depends on the blocks.
    """
    if not isinstance(mine, WrongValues) or not isinstance(theirs, WrongValues) or (
            mine.kind, mine.number, mine.pattern) != (theirs.kind, theirs.number, theirs.pattern):
        return False
    if mine.pattern == "precision":
        return True  # which elements exceed the tolerance depends on the order of operations
    one, other = (it.got / it.expected if it.expected else 0.0 for it in (mine, theirs))
    return mine.index == theirs.index and \
        abs(mine.count - theirs.count) <= _ALIKE * mine.total and (
            not mine.pattern or one == other
            or 1 / _SIMILAR < one / (other or math.inf) < _SIMILAR)


def _in_files(case: Case, ctx: Context, roots: frozenset[str],
              passes: Callable[..., bool]) -> list[Cause]:
    """What decides a failure and is in another file than the kernels, or no statement."""
    started, texts, kernels = time.monotonic(), ctx.submitted.texts, ctx.suite.kernel_file
    for file, solution in ctx.suite.solutions.items():
        if not ctx.suite.files or time.monotonic() - started > MOST_S:
            break
        mine, passes_with = texts.get(file, ""), partial(passes, file=file)
        deciding = list[Cause]()
        if not case.reading and file.endswith(".py"):
            alike = not edits(syntax.tree_of(mine), syntax.tree_of(solution))
            if alike and case.call:  # its docstrings or imports differ, if anything does
                deciding = text_causes(mine, solution, passes_with)
            elif file != kernels:
                deciding = causes(mine, solution, "", roots, passes_with)
        elif case.reading:
            deciding = text_causes(mine, solution, passes_with)
        if deciding:
            return [replace(one, file=file) for one in deciding]
    return []


def _likely_kinds(first: CaseResult, results: Sequence[CaseResult],
                  suite: Suite) -> frozenset[str]:
    """The kinds of the known mistake that fails as this result does, if there is one."""
    mistake = known_mistake(first.findings[0], mistakes_in(first.name, suite),
                            names_of(results, Verdict.FAILED), names_of(results, Verdict.PASSED))
    kinds = kinds_of(mistake, suite.solution, suite.kernel_file) if mistake else frozenset()
    kinds = kinds - {"", "name"} or kinds - {""}  # any statement has names
    return kinds | _OF_SIZES if first.findings[0].code.startswith("S") else kinds


def _others(first: CaseResult, results: Sequence[CaseResult]) -> list[CaseResult]:
    """Results of further cases that a repaired file has to pass.

    They fail alike, or pass: what a repair of the mistake leaves as it is.
    """
    others = [result for result in results if result is not first and not result.advisory
              and result.seconds < RUN_S / 10]
    failed = [result for result in others if result.fails and result.findings
              and result.findings[0].code == first.findings[0].code]
    passed = [result for result in others if result.verdict is Verdict.PASSED]
    return [*failed[-_MOST_OTHERS:], *passed[-_MOST_OTHERS:]]


def _is_repaired(finding: Finding, text: str, roots: frozenset[str]) -> bool:
    """Whether single changes of the file with the kernels are tried after a failure."""
    if finding.code.startswith("Q") and roots.isdisjoint(
            one.name for one in syntax.functions(syntax.tree_of(text))):
        return False
    if finding.code == "L05":
        return bool(_OF_SHAPES.search(finding.text))
    return finding.code.startswith(_REPAIRED)


def _recording(case: Case, ctx: Context) -> Recording | None:
    """What the host code of a case that calls one function does; None where it is not known."""
    if isinstance(case, Property) or case.call or case.sizes or case.reading or case.raises:
        return None
    try:
        return ctx.record(case).outcome.recording
    except (Stopped, OutOfTime):
        return None


def _idle_kernels(text: str, recording: Recording | None) -> set[int]:
    """The lines of kernels that a call launches neither itself nor by a kernel."""
    if recording is None or not recording.launches:
        return set()
    launched = frozenset(launch.kernel for launch in recording.launches)
    idle = dataflow.lines_elsewhere(text, launched)
    return {*idle}.intersection(dataflow.lines_of_kernels(text))


def _suspects(finding: Finding, text: str, recording: Recording | None,
              entry: str) -> list[Iterable[int]]:
    """Groups of lines that can be wrong, the most suspicious first."""
    code, line = finding.code, finding.line
    launches = [*dataflow.lines_of_launches(text), *dataflow.lines_of_grid(text, None, "")]
    if recording is not None:
        launches += [launch.line for launch in recording.launches if launch.line]
    rest = range(1, text.count("\n") + 2)
    kernels = dataflow.lines_of_kernels(text)
    host = [number for number in rest if number not in kernels]
    if code == "M07" or code.startswith("L03") or value_of(finding.data, "kind") == "unwritten":
        return [launches, host, rest]
    if code == "M08":
        return [[*dataflow.lines_of_addresses(text), *launches], rest]
    if code == "L05" and line:
        return [[line, *dataflow.lines_of_operands(text, line)]]
    if code.startswith("M") and line:
        loops = dataflow.lines_of_loops(text, line)
        near, far = (dataflow.lines_behind(text, line, far=far) for far in (False, True))
        if code in ("M03", "M04"):
            return [[line, *near, *far, *loops], launches, rest]
        callers = dataflow.lines_of_callers(text, line)
        theirs = dataflow.lines_of_callers(text, line, far=True)
        return [[line, *near, *callers], [*launches, *far, *loops, *theirs], rest]
    if code.startswith(("S", "Q")):
        results = dataflow.lines_of_results(text, entry)
        sizes = [one for line in results for one in dataflow.lines_of_operands(text, line)]
        return [[*results, *sizes, *dataflow.lines_of_helpers(text, sizes)], [*launches, *host],
                rest]
    if value_of(finding.data, "pattern") in _IN_PLACE:
        return [dataflow.lines_of_values(text), kernels, launches, rest]
    return [kernels, launches, rest]


def _lines_of_result(finding: Finding, text: str, recording: Recording | None,
                     suite: Suite) -> dataflow.Lines:
    """The lines that only the first wrong one of several results depends on."""
    data, names = finding.data, suite.result_names
    if recording is None or len(recording.results) < 2 or not isinstance(data, WrongValues):
        return ()
    number = names.index(data.result) if data.result in names else data.number
    if not number or number >= len(recording.results):
        return ()
    pointers = [{name for launch in recording.launches
                 for name, argument in launch.arguments.items()
                 if any(view.storage == result.storage for view in views_of(argument))}
                for result in recording.results]
    return dataflow.lines_of_result(text, pointers[number], set().union(*pointers[:number]))
