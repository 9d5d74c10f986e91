"""The expected grades of an exercise, a solution and a mutant."""

import ast
from collections.abc import Iterator, Sequence
from dataclasses import replace

from grader.report import CaseResult, Kind, Report, Skip, Verdict
from grader.submission import syntax
from grader.suite import Mutant
from grader.text import ranges
from tritonlab.authoring import module_files
from tritonlab.authoring.module_files import Material

MOST_NAMED = 3  # exceptions that broke the grader


def exercise_as_promised(material: Material, report: Report) -> Iterator[str]:
    """Checks that an untouched exercise fails in the way of its track."""
    if material.starter not in module_files.STARTERS:
        yield module_files.no_starter(material.starter)
    yield from _broken(report)
    failed = [r for r in report.deciding if r.verdict is Verdict.FAILED]
    if not failed:
        yield "the exercise fails no case: there is nothing to do"
        return
    for result in failed:
        if not result.findings:
            yield f"'{result.name}' fails without a finding: {_line(result.reason)}"
    if not failed[0].findings:
        return
    first = failed[0].findings[0]
    if first.code == "P02":
        yield f"the exercise cannot be imported: {_line(first.seen)}"
    elif material.starter == "slow":
        yield from _is_only_slow(failed)
    elif material.starter == "broken" and first.code == "P01":
        yield f"the exercise has blanks, and its track gives broken code: {first.seen}"
    elif material.starter in ("blanks", "specification") and first.code != "P01":
        yield f"the first finding is not P01 (blanks left) but {first.code}: {_line(first.seen)}"
    elif material.starter == "blanks":
        todos = tuple(range(1, material.suite.blanks + 1))
        if first.todos != todos:
            yield (f"the grader finds TODO {ranges(first.todos) or 'none'} in the exercise, not "
                   f"1 to {material.suite.blanks}: {first.seen}")
    elif material.starter == "specification":
        yield from _is_only_signatures(material)


def _is_only_slow(failed: Sequence[CaseResult]) -> Iterator[str]:
    for result in failed:
        codes = [finding.code for finding in result.findings]
        if result.kind is not Kind.PERFORMANCE:
            yield (f"the exercise has to be right and slow, and '{result.name}' fails with "
                   f"{', '.join(codes)}")
        elif not codes[0].startswith("T"):
            yield f"'{result.name}' fails with {codes[0]}, which is not about speed"


def _is_only_signatures(material: Material) -> Iterator[str]:
    defined = {node.name: node
               for node in syntax.parse(module_files.python_of(material.exercise)).body
               if isinstance(node, ast.FunctionDef)}
    for name in material.functions:
        body = defined[name].body if name in defined else []
        docstring = ast.get_docstring(defined[name]) is not None if body else False
        if [ast.unparse(statement) for statement in body[docstring:]] != ["..."]:
            yield f"the body of `{name}` in the exercise is more than `...`"


def variant_passes(report: Report) -> Iterator[str]:
    """Checks that no case of a right solution fails; its speed is not judged."""
    yield from _broken(report)
    for result in report.deciding:
        if result.verdict is Verdict.FAILED:
            findings = "; ".join(f"{f.code} {_line(f.seen)}" for f in result.findings)
            yield f"'{result.name}' fails: {findings or _line(result.reason)}"


def solution_passes(report: Report) -> Iterator[str]:
    """Checks that all cases pass, advisory ones too; what needs a GPU may be skipped."""
    yield from _broken(report)
    for result in report.results:
        if result.verdict is Verdict.FAILED:
            findings = "; ".join(f"{f.code} {_line(f.seen)}" for f in result.findings)
            yield f"'{result.name}' fails: {findings or _line(result.reason)}"
        elif result.verdict is Verdict.INCONCLUSIVE or (
                result.verdict is Verdict.SKIPPED and result.skipped is not Skip.GPU):
            yield f"'{result.name}' was not decided: {_line(result.reason)}"
    if not report.results:
        yield "no case was run"
    elif report.verdict is Verdict.PASSED and report.evidence != "efficient":
        yield (f"the evidence is '{report.evidence}', not 'efficient': no performance case was "
               "counted, or nothing was compiled")


def survives(mutant: Mutant, report: Report, *, whole: bool = True,
             case: str = "") -> Iterator[str]:
    """Yields why a grade did not kill a mutant as its author expects.

    Args:
        whole: all cases were run, so that all codes have to be there. The diagnosis has to be the
            mutant's own.
        case: look at this one alone, and only at its first code.
    """
    if case:
        whole, report = False, replace(
            report, results=tuple(one for one in report.results if one.name == case))
    first = report.first_failure
    yield from _broken(report)
    if not mutant.codes:
        yield "it names no code"
    elif first is None or not first.findings:
        yield f"it lives: {report.verdict}"
    elif first.findings[0].code != mutant.codes[0]:
        finding = first.findings[0]
        yield (f"'{first.name}' gives {finding.code} instead of {mutant.codes[0]}: "
               f"{_line(finding.seen)}")
    elif whole:
        finding = first.findings[0]
        there = {other.code for other in report.findings()}
        if missing := [code for code in mutant.codes if code not in there]:
            yield f"{', '.join(missing)} was not found"
        if finding.means != mutant.meaning:
            yield f"the diagnosis names another mistake: {_line(finding.means)}"
        elif set(finding.todos) != set(mutant.todos):
            yield (f"the diagnosis points at {ranges(finding.todos) or 'no place'}, not at "
                   f"{ranges(mutant.todos) or 'none'}")


def _broken(report: Report) -> Iterator[str]:
    """Yields failures of the grader or of the suite itself."""
    if report.reason:
        yield f"the grader could not continue: {_line(report.reason)}"
    broke: dict[str, list[str]] = {}  # names of cases by the end of a traceback
    for result in report.results:
        if result.verdict is Verdict.ERROR:
            exception = result.reason.strip().rpartition("\n")[2]
            broke.setdefault(exception, []).append(result.name)
    for exception, names in [*broke.items()][:MOST_NAMED]:
        more = f" and {len(names) - 1} more" if len(names) > 1 else ""
        yield f"'{names[0]}'{more} broke the grader or the suite: {_line(exception)}"
    if rest := sum(map(len, [*broke.values()][MOST_NAMED:])):
        yield f"{rest} further cases broke it too"


def _line(text: str) -> str:
    text = " ".join(text.split())
    return text if len(text) <= 200 else text[:199] + "…"
