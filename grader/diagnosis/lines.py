"""Details of a finding from its run: the line, idle programs, missing launches."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from dataclasses import replace

from grader import syntax
from grader.diagnosis.pointing import (
    NO_ARGUMENT,
    NO_LAUNCH,
    NO_PROGRAM_LEFT,
    NO_STORE,
    ONE_ROW_MORE,
)
from grader.facts import LaunchFacts
from grader.recording import Recording, View, views_of
from grader.report import Finding

_WHICH = re.compile(r"elements of (?:result (\d+)|`(\w+)`) ")
_PAST = re.compile(r"stored (\d+) elements? past the end of `(\w+)` \(first index (\d+) of (\d+)\)"
                   r"(?!; \d+ more)")


def located(findings: Sequence[Finding], text: str, recording: Recording,
            facts: Sequence[LaunchFacts], names: Sequence[str] = ()) -> list[Finding]:
    """The findings with the one line that each can be about; where there are several, with none.

    Where elements were never stored, they also say whether a launch could store them and whether
    programs were left that stored nothing; where elements past the end were, whether they are a
    row.

    Args:
        findings: of one run.
        text: of the file with the kernels.
        recording: what was run.
        facts: of its launches, in order.
        names: of the results, where the suite names them.
    """
    def line_of(finding: Finding) -> int | None:
        lines: set[int] = set()
        if finding.code == "M03":
            lines = _stores(recording, facts, _number(finding, names))
            if facts and all(0 < fact.programs == fact.idle_programs for fact in facts):
                lines = set(_calls(text, "store"))
        elif finding.code == "M06":
            lines = _lines(facts, "load") & set(_without_other(text))
        return lines.pop() if len(lines) == 1 else None

    def more(finding: Finding) -> str:
        if finding.code == "M02":
            return _row(finding, recording)
        if finding.code != "M03":
            return ""
        return _no_store(recording, facts, _number(finding, names)) or _programs(finding, facts)

    return [replace(finding, line=finding.line or line_of(finding),
                    seen=finding.seen + more(finding)) for finding in findings]


def _number(finding: Finding, names: Sequence[str]) -> int:
    """Which of the results the finding names."""
    which = _WHICH.search(finding.seen)
    if which is None:
        return 0
    return int(which[1]) - 1 if which[1] else (*names, which[2]).index(which[2])


def _no_store(recording: Recording, facts: Sequence[LaunchFacts], number: int) -> str:
    """Says why nothing was stored to a result: no launch, no argument or no store; or nothing."""
    if not recording.launches:
        return NO_LAUNCH
    reached = {view.storage for launch in recording.launches
               for argument in launch.arguments.values() for view in views_of(argument)}
    if recording.results[number].storage not in reached:
        return NO_ARGUMENT
    stored = any(fact.idle_programs < fact.programs for fact in facts)
    return NO_STORE if stored and not _stores(recording, facts, number) else ""


def _row(finding: Finding, recording: Recording) -> str:
    """Whether what was stored past the end of a matrix is exactly one further row."""
    past = _PAST.search(finding.seen)
    if past is None:
        return ""
    count, name, first, size = int(past[1]), past[2], int(past[3]), int(past[4])
    shapes = {view.shape for launch in recording.launches if name in launch.arguments
              for view in views_of(launch.arguments[name])}
    rows = {shape[-1] for shape in shapes if len(shape) > 1}
    return ONE_ROW_MORE if 0 < first == size and count > 1 and rows == {count} else ""


def _programs(finding: Finding, facts: Sequence[LaunchFacts]) -> str:
    """Whether elements were left out by programs that had nothing else to do, or by too few."""
    programs = sum(launch.programs for launch in facts)
    idle = sum(launch.idle_programs for launch in facts)
    if len(facts) != 1 or not programs:
        return ""
    if idle:
        return f"; {idle} of {programs} programs stored nothing"
    if not finding.seen.endswith(" missing too"):
        return ""
    who = "the only program" if programs == 1 else f"each of the {programs} programs"
    return f"; {who}{NO_PROGRAM_LEFT}"


def _stores(recording: Recording, facts: Sequence[LaunchFacts], number: int) -> set[int]:
    """The lines that store into a result."""
    launches = recording.launches
    if number >= len(recording.results) or len(launches) != len(facts):
        return set()
    storage = recording.results[number].storage
    return {line for launch, fact in zip(launches, facts, strict=True)
            for line in _lines([fact], "store", frozenset(
                name for name, argument in launch.arguments.items()
                if isinstance(argument.value, View) and argument.value.storage == storage))}


def _lines(facts: Sequence[LaunchFacts], kind: str,
           tensors: frozenset[str] | None = None) -> set[int]:
    return {row.line for fact in facts for row in fact.traffic
            if row.kind == kind and row.line and (tensors is None or row.tensor in tensors)}


def _without_other(text: str) -> Iterator[int]:
    """The lines of loads that have a mask and do not say what the masked lanes get."""
    for node in _calls(text, "load").values():
        named = {keyword.arg for keyword in node.keywords}
        if (len(node.args) == 2 or "mask" in named) and "other" not in named:
            yield from range(node.lineno, (node.end_lineno or node.lineno) + 1)


def _calls(text: str, name: str) -> dict[int, ast.Call]:
    """The calls of a method or function of this name, by their lines."""
    return {node.lineno: node for node in ast.walk(syntax.parse(text))
            if isinstance(node, ast.Call) and getattr(node.func, "attr", "") == name}
