"""What a run tells of a failure that only shows in the result: its line, and idle programs."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from dataclasses import replace

from grader import syntax
from grader.diagnosis.pointing import NO_PROGRAM_LEFT
from grader.facts import LaunchFacts
from grader.recording import Recording, View
from grader.report import Finding

_WHICH = re.compile(r"of result (\d+) ")


def located(findings: Sequence[Finding], text: str, recording: Recording,
            facts: Sequence[LaunchFacts]) -> list[Finding]:
    """The findings with the one line that each can be about; where there are several, with none.

    Where elements were never stored, they also say whether programs were left that stored nothing.

    Args:
        findings: of one run.
        text: of the file with the kernels.
        recording: what was run.
        facts: of its launches, in order.
    """
    def line_of(finding: Finding) -> int | None:
        lines: set[int] = set()
        if finding.code == "M03":
            which = _WHICH.search(finding.seen)
            lines = _stores(recording, facts, int(which[1]) if which else 0)
            if facts and all(0 < fact.programs == fact.idle_programs for fact in facts):
                lines = set(_calls(text, "store"))
        elif finding.code == "M06":
            lines = _lines(facts, "load") & set(_without_other(text))
        return lines.pop() if len(lines) == 1 else None

    return [replace(finding, line=finding.line or line_of(finding),
                    seen=finding.seen + _programs(finding, facts)) for finding in findings]


def _programs(finding: Finding, facts: Sequence[LaunchFacts]) -> str:
    """Whether elements were left out by programs that had nothing else to do, or by too few."""
    programs = sum(launch.programs for launch in facts)
    idle = sum(launch.idle_programs for launch in facts)
    if finding.code != "M03" or len(facts) != 1 or not programs:
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
