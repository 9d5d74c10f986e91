"""Two inspections side by side: figures of matching launches, and lines that differ."""

import difflib
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from itertools import zip_longest
from typing import Any

from msgspec import structs

from grader.inspect.inspection import InspectedCase, Inspection, SourceLine
from grader.inspect.sweep import sectors_per_request
from grader.judge.launch_report import InspectedLaunch
from grader.recording.launch_stats import Prediction

SCHEMA = 1


@dataclass(frozen=True)
class LaunchPair:
    """One launch before and after; None where only the other version has it."""

    before: InspectedLaunch | None
    after: InspectedLaunch | None

    @property
    def kernel(self) -> str:
        names = dict.fromkeys(one.kernel for one in (self.before, self.after) if one)
        return ", now ".join(names)

    @property
    def figures(self) -> dict[str, tuple[float | None, float | None]]:
        """Before and after, by name."""
        before = _figures(self.before) if self.before else {}
        after = _figures(self.after) if self.after else {}
        return {name: (before.get(name), after.get(name)) for name in before | after}


@dataclass(frozen=True)
class LinePair:
    """A line of the source before and after: its number, its text and what it does."""

    numbers: tuple[int | None, int | None]
    texts: tuple[str, str]
    before: SourceLine | None
    after: SourceLine | None


@dataclass(frozen=True)
class ComparedCase:
    """One case that both versions were inspected in."""

    name: str
    launches: tuple[LaunchPair, ...]
    lines: tuple[LinePair, ...]  # those that differ
    bytes: int  # moved by the version after
    predictions: tuple[Prediction | None, Prediction | None]  # of all launches together

    @property
    def same(self) -> bool:
        """Whether both versions launch the same code in the same grids."""
        return all(pair.before and pair.after and pair.before.grid == pair.after.grid
                   and pair.before.binary.ptx_sha256 == pair.after.binary.ptx_sha256
                   for pair in self.launches)


@dataclass(frozen=True)
class Comparison:
    """An earlier version beside the present one; ``label`` names the earlier one."""

    label: str
    before: Inspection
    after: Inspection

    @property
    def cases(self) -> tuple[ComparedCase, ...]:
        """Cases in which both versions launch anything."""
        earlier = {case.name: case for case in self.before.cases if case.launches}
        return tuple(self._compared(earlier[case.name], case) for case in self.after.cases
                     if case.launches and case.name in earlier)

    def _compared(self, before: InspectedCase, after: InspectedCase) -> ComparedCase:
        return ComparedCase(after.name, _pairs(before.launches, after.launches),
                            tuple(self._lines(before, after)), after.bytes,
                            (before.prediction, after.prediction))

    def _lines(self, before: InspectedCase, after: InspectedCase) -> Iterator[LinePair]:
        """Lines that do something else, and lines that do something and were edited."""
        texts = self.before.text.split("\n"), self.after.text.split("\n")
        matcher = difflib.SequenceMatcher(None, *texts, autojunk=False)
        for _, a, a_end, b, b_end in matcher.get_opcodes():
            for one, other in zip_longest(range(a, a_end), range(b, b_end)):
                numbers = tuple(None if row is None else row + 1 for row in (one, other))
                old = before.lines.get(numbers[0] or 0)
                new = after.lines.get(numbers[1] or 0)
                text = ["" if row is None else lines[row].strip()
                        for row, lines in zip((one, other), texts, strict=True)]
                if old != new or ((old or new) and text[0] != text[1]):
                    yield LinePair((numbers[0], numbers[1]), (text[0], text[1]), old, new)

    @property
    def exit_code(self) -> int:
        return self.after.exit_code

    def to_dict(self) -> dict[str, Any]:
        """The comparison as plain data, ready for ``json.dumps``; the form is ``schema`` 1."""
        return {
            "schema": SCHEMA, "against": self.label, "suite": self.after.suite,
            "target": asdict(self.after.target), "versions": dict(self.after.versions),
            "exit_code": self.exit_code, "values": dict(self.after.values),
            "source_sha256": {"before": self.before.source_sha256,
                              "after": self.after.source_sha256},
            "findings": {name: [finding.to_dict() for finding in one.findings]
                         for name, one in (("before", self.before), ("after", self.after))},
            "cases": [{
                "name": case.name, "same": case.same,
                "seconds": {name: one and one.seconds for name, one in zip(
                    ("before", "after"), case.predictions, strict=True)},
                "launches": [{
                    "kernel": pair.kernel, "measured": False,
                    "figures": {name: {"before": before, "after": after}
                                for name, (before, after) in pair.figures.items()},
                } for pair in case.launches],
                "lines": [{"before": _line(pair.numbers[0], pair.texts[0], pair.before),
                           "after": _line(pair.numbers[1], pair.texts[1], pair.after)}
                          for pair in case.lines],
            } for case in self.cases],
        }


def _line(number: int | None, text: str, line: SourceLine | None) -> dict[str, Any] | None:
    if number is None:
        return None
    return {"line": number, "text": text,
            "instructions": list(line.instructions) if line else [],
            "moved": [structs.asdict(row) for row in line.moved] if line else []}


def _pairs(before: Sequence[InspectedLaunch],
           after: Sequence[InspectedLaunch]) -> tuple[LaunchPair, ...]:
    """Pairs launches of one name in their order, and the others in theirs."""
    left = list(before)
    pairs: list[LaunchPair] = []
    for one in after:
        match = next((other for other in left if other.kernel == one.kernel), None)
        if match:
            left.remove(match)
        pairs.append(LaunchPair(match, one))
    for number, pair in enumerate(pairs):
        if pair.before is None and left:
            pairs[number] = LaunchPair(left.pop(0), pair.after)
    return (*pairs, *(LaunchPair(one, None) for one in left))


def _figures(launch: InspectedLaunch) -> dict[str, float | None]:
    binary, survey, dram = launch.binary, launch.survey, launch.dram
    return {
        "programs": launch.programs, "warps": binary.warps, "registers": binary.registers,
        "spill_bytes": binary.spill_bytes, "shared": binary.shared,
        "resident_warps": binary.occupancy.warps, "stages": binary.stages,
        "instructions": len(launch.sass),
        "sectors": sum(row.sectors for row in survey.traffic) if survey else None,
        "sectors_per_request": sectors_per_request([launch]),
        "dram_bytes": (dram.low + dram.high) / 2 if dram else None,
        "seconds": launch.prediction.seconds if launch.prediction else None,
    }
