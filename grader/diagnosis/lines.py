"""Which line a failure points at that only shows in the result: its store, or a load of nothing."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from dataclasses import replace

from grader.facts import LaunchFacts
from grader.recording import Recording, View
from grader.report import Finding

_WHICH = re.compile(r"of result (\d+) ")


def located(findings: Sequence[Finding], text: str, recording: Recording,
            facts: Sequence[LaunchFacts]) -> list[Finding]:
    """The findings with the one line that each can be about; where there are several, with none.

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
        elif finding.code == "M06":
            lines = _lines(facts, "load") & set(_without_other(text))
        return lines.pop() if len(lines) == 1 else None

    return [finding if finding.line else replace(finding, line=line_of(finding))
            for finding in findings]


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
    for node in ast.walk(ast.parse(text)):
        if not isinstance(node, ast.Call) or getattr(node.func, "attr", "") != "load":
            continue
        named = {keyword.arg for keyword in node.keywords}
        if (len(node.args) == 2 or "mask" in named) and "other" not in named:
            yield from range(node.lineno, (node.end_lineno or node.lineno) + 1)
