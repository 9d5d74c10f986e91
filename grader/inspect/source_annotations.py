"""Traffic and instructions of each line of a kernel's source."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from grader.recording.compiled_kernel import Binary
from grader.recording.launch_stats import Traffic

_OPCODES = {"load": "LDG", "store": "STG", "atomic": "ATOM", "async copy": "cp.async"}


@dataclass(frozen=True)
class LineTraffic:
    """Traffic of one line to one tensor, in all launches of its kernel together.

    Sectors have 32 bytes; their meaning is that of ``grader.recording.launch_stats.Traffic``.
    """

    kind: str
    tensor: str
    bytes: int
    sectors: int
    ideal_sectors: int
    unique_sectors: int

    @property
    def efficiency(self) -> float:
        """The share of the moved sectors that would do, 1 at best."""
        return min(1.0, self.ideal_sectors / self.sectors) if self.sectors else 1.0

    @property
    def times(self) -> float:
        """Moves of each sector, on average."""
        return self.sectors / self.unique_sectors if self.unique_sectors else 1.0


@dataclass(frozen=True)
class SourceLine:
    """One annotated line. ``instructions`` such as ``4 x LDG.128``.

    The number is that of instructions in the code of one thread, however often they run.
    """

    moved: tuple[LineTraffic, ...] = ()
    instructions: tuple[str, ...] = ()

    @property
    def bytes(self) -> int:
        return sum(moved.bytes for moved in self.moved)


def annotate(binaries: Iterable[Binary], traffic: Iterable[Traffic]) -> Mapping[int, SourceLine]:
    """Join compiled code and counted traffic by line, the lines in order.

    Args:
        binaries: of launches of the kernels that are looked at.
        traffic: of the same launches.
    """
    moved: dict[int, dict[tuple[str, str], LineTraffic]] = {}
    for row in traffic:
        if row.line is None:
            continue
        at = moved.setdefault(row.line, {})
        before = at.get((row.kind, row.tensor), LineTraffic(row.kind, row.tensor, 0, 0, 0, 0))
        at[row.kind, row.tensor] = LineTraffic(
            row.kind, row.tensor, before.bytes + row.bytes, before.sectors + row.sectors,
            before.ideal_sectors + row.ideal_sectors, before.unique_sectors + row.unique_sectors)
    instructions: dict[int, dict[str, None]] = {}  # each once, in order
    for binary in binaries:
        for line, instruction in _instructions(binary):
            instructions.setdefault(line, {})[instruction] = None
    return {line: SourceLine(tuple(moved.get(line, {}).values()), tuple(instructions.get(line, ())))
            for line in sorted({*moved, *instructions})}


def _instructions(binary: Binary) -> Iterable[tuple[int, str]]:
    for access in binary.accesses:
        if access.line is not None:
            name = f"{_OPCODES[access.kind]}.{access.bits}" if access.kind in _OPCODES else "TMA"
            yield access.line, f"{access.count} x {name}"
    for line, name, count in binary.products:
        if line is not None:
            yield line, f"{count} x {name}"
