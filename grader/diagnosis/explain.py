"""The results of a grade with their findings in words, and how to repeat each failure."""

from __future__ import annotations

import re
import shlex
from collections.abc import Collection, Sequence
from dataclasses import replace
from functools import partial

from grader.diagnosis import codes, definitions
from grader.diagnosis.solution_contrast import Cause
from grader.finding import Fault, value_of
from grader.report import CaseResult, Finding, Verdict
from grader.submission import dataflow, source, syntax
from grader.submission.todo_regions import IMPORTED, Places
from grader.suite import Case, Mutant, Property, Suite, case_selection

# Messages of Python and of the engine.
_UNDEFINED = re.compile(r"[`'](\w+)[`'] is not defined")


def explained(results: Sequence[CaseResult], suite: Suite, submitted: source.Source,
              names: Sequence[str] = (), seed: str = "",
              separated: Fault | None = None,
              witnesses: Sequence[CaseResult] = (),
              causes: Sequence[Cause] = (),
              refuted: Collection[str] = ()) -> tuple[CaseResult, ...]:
    """The results with their findings put in words, told apart by which cases failed together.

    Args:
        names: of all cases of the suite; with ``seed``, each failure gets its replay.
        separated: what tells failing from passing cases; the first failure says it.
        witnesses: further results that help to tell mistakes apart.
        causes: the statements that decide the first failure.
        refuted: the ids of known mistakes that fail alike with other values.
    """
    if not any(result.findings or result.verdict is Verdict.FAILED for result in results):
        return tuple(results)  # of a right kernel nothing has to be known
    deciding = [result for result in results if not result.advisory]
    judged = [*deciding, *witnesses]
    failed, passed = names_of(judged, Verdict.FAILED), names_of(judged, Verdict.PASSED)
    cases = {case.name: case for case in [*suite.all_cases, *suite.properties]}
    first = next((r for r in deciding if r.verdict is Verdict.FAILED), None)
    places = submitted.places(suite.exercise)
    texts = tuple((name, text) for name, text in submitted.texts.items() if name.endswith(".py"))

    def explain(result: CaseResult) -> CaseResult:
        if not result.findings and result.verdict is not Verdict.FAILED:
            return result
        case = cases.get(result.name)
        in_words = partial(
            codes.explain, mutants=mistakes_in(result.name, suite), todos=places.lines,
            failed=failed, passed=passed, marker=suite.marker,
            file=suite.kernel_file if suite.files else "", text=submitted.text,
            entry=(case.about if case else "") or suite.entry,
            roots=functions_of(case, suite) if case else frozenset(),
            answered=case is not None and case.call is not None, refuted=refuted,
            solutions=suite.solutions)
        findings = []
        for number, finding in enumerate(codes.in_order(result.findings)):
            own = causes if result is first and not number else ()
            worded = in_words(_of_imports(finding, places), causes=own)
            near = places.near.get(worded.line or 0)
            if near and not worded.todos and worded.file in ("", suite.kernel_file):
                worded = in_words(replace(finding, todos=(near,)), causes=own)
            if case:
                about = case.about or suite.entry
                where = worded.where or definitions.place(about, worded.code, suite.calls, texts)
                worded = replace(worded, where=where,
                                 function=case.about if places.lines else about)
            findings.append(worded)
        if result is first and separated and findings:
            findings[0] = findings[0].within("contrast", contrast=separated)
        again = result.verdict is Verdict.FAILED and seed and result.name in names
        return replace(result, findings=tuple(findings),
                       replay=replay_options(result.name, names, seed) if again else result.replay)

    return tuple(map(explain, results))


def _of_imports(finding: Finding, places: Places) -> Finding:
    """A name that an import should have made known belongs to the place of the imports."""
    message = _UNDEFINED.search(finding.text)
    name = message[1] if message else \
        value_of(finding.data, "name") if value_of(finding.data, "kind") == "undefined" else ""
    if name in IMPORTED and places.imports is not None:
        return replace(finding, todos=(places.imports,))
    return finding


def names_of(results: Sequence[CaseResult], verdict: Verdict) -> frozenset[str]:
    """The names of the cases with this verdict."""
    return frozenset(one.name for one in results if one.verdict is verdict)


def mistakes_in(name: str, suite: Suite) -> list[Mutant]:
    """The known mistakes that can make a case fail: those of the functions that it calls.

    Where a suite has several functions, a mistake belongs to those of the cases that it gets wrong.
    One that names no case may be anywhere, and so may a failure that does not belong to a case.
    """
    called = {case.name: {case.about} for case in suite.all_cases}
    called |= {law.name: {*law.functions} for law in suite.properties}
    if not suite.functions or not called.get(name):
        return list(suite.mutants)
    return [mutant for mutant in suite.mutants if not mutant.wrong or name in mutant.wrong or any(
        called[name] & called.get(other, set()) for other in mutant.wrong)]


def functions_of(case: Case, suite: Suite) -> frozenset[str]:
    """The learner's functions that a case calls; of host code, by way of the suite's ``calls.py``.
    """
    if isinstance(case, Property):
        return case.functions or frozenset({suite.entry} - {""})
    if case.call is None:
        return frozenset({case.function or suite.entry} - {""})
    called = dataflow.names_reached(suite.calls, frozenset({case.call.of}))
    public = {function.name for function in syntax.functions(syntax.tree_of(suite.solution))
              if not function.name.startswith("_")}
    return called.intersection(public.union(suite.signatures))


def telling_cases(failure: CaseResult, suite: Suite) -> set[str]:
    """The cases that tell apart the known mistakes that a failure may come from."""
    codes = {finding.code for finding in failure.findings}
    return {name for mutant in mistakes_in(failure.name, suite) if mutant.codes[0] in codes
            for name in (*mutant.wrong, *mutant.right)}


def explain_findings(findings: Sequence[Finding], suite: Suite,
                     submitted: source.Source) -> tuple[Finding, ...]:
    """The findings in words, where no other case tells mistakes apart."""
    places = submitted.places(suite.exercise) if findings else Places()
    return tuple(codes.explain(
        _of_imports(finding, places), suite.mutants, places.lines, marker=suite.marker,
        file=suite.kernel_file if suite.files else "", text=submitted.text, entry=suite.entry,
        solutions=suite.solutions)
        if finding.code in codes.MEANINGS else finding for finding in findings)


def result_of(case: Case, findings: Sequence[Finding],
            facts: dict[str, str] | None = None) -> CaseResult:
    """Failed by any finding, the one to show first first; ``facts`` are told either way."""
    return CaseResult(case.name, case.kind, Verdict.FAILED if findings else Verdict.PASSED,
                      codes.in_order(findings), facts or {})


def replay_options(name: str, names: Sequence[str], seed: str) -> str:
    """Returns the options that repeat one case with the same inputs."""
    return f"--case {shlex.quote(case_selection.shortest(name, names))} --seed {seed}"
