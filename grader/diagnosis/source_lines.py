"""Details of a finding from its run: the line, idle programs, missing launches."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import msgspec

from grader.finding import MemoryAccess, Unstored
from grader.recording.launch_stats import LaunchFacts
from grader.recording.model import Recording, views_of
from grader.report import Finding
from grader.submission import dataflow, syntax


def located(findings: Sequence[Finding], text: str, recording: Recording,
            facts: Sequence[LaunchFacts]) -> list[Finding]:
    """The findings with the one line that each can be about; where there are several, with none.

    Where elements were never stored, they also say whether a launch could store them and whether
    programs were left that stored nothing; where elements past the end were, whether they are a
    row.

    Args:
        findings: of one run.
        text: of the file with the kernels.
        recording: what was run.
        facts: of its launches, in order.
    """
    def locate(finding: Finding) -> Finding:
        data, lines = finding.data, set[int]()
        match data:
            case MemoryAccess(action="stored", kind="past", others=0):
                data = msgspec.structs.replace(data, row=_is_row(data, recording))
            case Unstored():
                idle = facts and all(0 < fact.programs == fact.idle_programs for fact in facts)
                lines = set(dataflow.accesses(text, "store")) if idle else \
                    _stores(recording, facts, data.number or 0)
                data = _explained(data, recording, facts)
        if finding.code == "M06":
            lines = _lines(facts, "load") & set(_without_other(text))
        return replace(finding, data=data,
                       line=finding.line or (lines.pop() if len(lines) == 1 else None))

    return list(map(locate, findings))


def _explained(missing: Unstored, recording: Recording, facts: Sequence[LaunchFacts]) -> Unstored:
    """Adds why elements were not stored, as far as launches and programs show it."""
    if reason := _no_store(recording, facts, missing.number or 0):
        return msgspec.structs.replace(missing, reason=reason)
    programs = sum(launch.programs for launch in facts)
    idle = sum(launch.idle_programs for launch in facts)
    if len(facts) != 1 or not programs or not (idle or missing.behind):
        return missing
    return msgspec.structs.replace(missing, reason="idle programs" if idle else "none left",
                                   idle=idle, programs=programs)


def _no_store(recording: Recording, facts: Sequence[LaunchFacts], number: int) -> str:
    """Returns the reason why nothing was stored to a result, or an empty string."""
    if not recording.launches:
        return "no launch"
    reached = {view.storage for launch in recording.launches
               for argument in launch.arguments.values() for view in views_of(argument)}
    if recording.results[number].storage not in reached:
        return "no argument"
    stored = any(fact.idle_programs < fact.programs for fact in facts)
    return "no store" if stored and not _stores(recording, facts, number) else ""


def _is_row(access: MemoryAccess, recording: Recording) -> bool:
    """Whether what was stored past the end of a matrix is exactly one further row."""
    shapes = {view.shape for launch in recording.launches if access.tensor in launch.arguments
              for view in views_of(launch.arguments[access.tensor])}
    rows = {shape[-1] for shape in shapes if len(shape) > 1}
    return 0 < access.index == access.n_elements and access.count > 1 and rows == {access.count}


def _stores(recording: Recording, facts: Sequence[LaunchFacts], number: int) -> set[int]:
    """The lines that store into a result."""
    launches = recording.launches
    if number >= len(recording.results) or len(launches) != len(facts):
        return set()
    storage = recording.results[number].storage
    return {line for launch, fact in zip(launches, facts, strict=True)
            for line in _lines([fact], "store", frozenset(
                name for name, argument in launch.arguments.items()
                if any(view.storage == storage for view in views_of(argument))))}


def _lines(facts: Sequence[LaunchFacts], kind: str,
           tensors: frozenset[str] | None = None) -> set[int]:
    return {row.line for fact in facts for row in fact.traffic
            if row.kind == kind and row.line and (tensors is None or row.tensor in tensors)}


def _without_other(text: str) -> Iterator[int]:
    """The lines of loads that have a mask but no `other`."""
    for node in dataflow.accesses(text, "load").values():
        named = {keyword.arg for keyword in node.keywords}
        if (len(node.args) == 2 or "mask" in named) and "other" not in named:
            yield from syntax.lines_of(node)
