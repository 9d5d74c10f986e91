"""An inspection in words: the facts of every launch, notes beside lines, advice, the roofline."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from grader import syntax
from grader.annotation import Line, Moved
from grader.binary import Binary
from grader.defects import Defect
from grader.diagnosis.codes import MEANINGS
from grader.engine.compiler.targets import Target
from grader.examination import InspectedLaunch
from grader.inspection import InspectedCase, Inspection
from grader.roofline import Point
from grader.words import sentence
from tritonlab.render import quantities as q

BOUNDS = {
    "dram": "DRAM", "l2": "the L2 cache", "compute": "arithmetic", "latency": "latency",
    "launch": "the launch itself", "programs": "the number of programs", "atomics": "atomics",
}
_MOST_COLUMNS = 8  # of the table; of more launches than that, the rest is left to the JSON
_DONE = {"load": "loaded", "store": "stored", "atomic": "added"}


@dataclass(frozen=True)
class Column:
    """A launch in the table; ``times``: how many like it the case has."""

    case: InspectedCase
    launch: InspectedLaunch
    times: int = 1

    @property
    def name(self) -> str:
        return f"{self.launch.kernel}, {self.times} times" if self.times > 1 else self.launch.kernel


@dataclass(frozen=True)
class Fact:
    """One row of the table: a label, a value for each launch, and what it says (for the page)."""

    label: str
    values: tuple[str, ...]
    about: str


@dataclass(frozen=True)
class Row:
    """One line of the source as it is shown; ``gap`` stands for lines left out before it."""

    number: int
    text: str
    known: Line | None = None
    defects: tuple[Defect, ...] = ()
    gap: bool = False

    @property
    def indent(self) -> int:
        return len(self.text) - len(self.text.lstrip())


def promise(target: Target) -> str:
    """What a predicted time is, said wherever one is shown."""
    return f"predicted for an {target.title} from compiled code, not measured"


def columns(inspection: Inspection) -> tuple[list[Column], int]:
    """What the table shows, launches of a case that are alike together; and how many it leaves out.
    """
    made: list[Column] = []
    for case in inspection.cases:
        for launch in case.launches:
            same = next((n for n, column in enumerate(made)
                         if column.case is case and column.launch == launch), None)
            if same is None:
                made.append(Column(case, launch))
            else:
                made[same] = replace(made[same], times=made[same].times + 1)
    return made[:_MOST_COLUMNS], sum(column.times for column in made[_MOST_COLUMNS:])


def facts(shown: Sequence[Column], target: Target) -> list[Fact]:
    """The rows of the table."""
    def row(label: str, about: str, *values: str) -> Fact:
        return Fact(label, values, about)

    each = [column.launch for column in shown]
    binaries = [launch.binary for launch in each]
    return [
        row("case", "what the function was called with", *(column.case.name for column in shown)),
        row("launched at", "where your code launches it",
            *(f"line {launch.line}" if launch.line else "unknown" for launch in each)),
        row("grid", "programs along each axis, and all of them", *map(_grid, each)),
        row("waves", "how often the whole GPU is filled",
            *(f"{q.three(launch.waves(target))} of {q.plural(launch.at_once(target), 'program')}"
              for launch in each)),
        row("warps", "of 32 threads, in a program", *(f"{binary.warps}" for binary in binaries)),
        row("registers", "of 32 bits, for a thread; 255 at most",
            *(f"{binary.registers} a thread" for binary in binaries)),
        row("spills", "what did not fit in registers and went to memory",
            *(f"{q.plural(b.spill_bytes, 'byte')} a thread" if b.spill_bytes else "none"
              for b in binaries)),
        row("shared memory", "for a program",
            *(q.plural(binary.shared, "byte") for binary in binaries)),
        row("occupancy", "warps that a multiprocessor holds, and what allows no more",
            *map(_occupancy, binaries)),
        row("loads", "how much a thread loads at once; 128 bits are wide",
            *(_width(binary, "load") for binary in binaries)),
        row("stores", "the same for stores", *(_width(binary, "store") for binary in binaries)),
        row("copies ahead", "from global to shared memory, while the program goes on",
            *map(_copies, binaries)),
        row("tensor cores", "the units that tl.dot runs on", *map(_units, binaries)),
        row("TF32", "whether tl.dot rounds float32 to 10 bits of mantissa",
            *("yes" if b.tf32 else "no" if b.dot else "no tl.dot" for b in binaries)),
        row("stages", "how many turns of a loop are in flight",
            *(f"{b.stages}" if b.stages else "not pipelined" for b in binaries)),
        row("DRAM, read", "what L2 does not already hold",
            *(q.interval(launch.survey.loaded) if launch.survey else "unknown" for launch in each)),
        row("DRAM, written", "the same for stores",
            *(q.interval(launch.survey.stored) if launch.survey else "unknown" for launch in each)),
        row("predicted time", f"{promise(target)}", *map(_time, each)),
        row("bound by", "what takes that long, and what comes next", *map(_bound, each)),
    ]


def _grid(launch: InspectedLaunch) -> str:
    sizes = list(launch.grid)
    while len(sizes) > 1 and sizes[-1] == 1:
        sizes.pop()
    programs = q.plural(launch.programs, "program")
    return " x ".join(f"{size:,}" for size in sizes) + f", {programs}" if sizes[1:] else programs


def _occupancy(binary: Binary) -> str:
    occupancy = binary.occupancy
    limit = f", by {occupancy.limited_by}" if occupancy.limited_by else ""
    return f"{occupancy.warps} of {occupancy.most_warps} warps{limit}"


def _width(binary: Binary, kind: str) -> str:
    """How wide the accesses of one kind are; TMA and cp.async load too, and have their own row."""
    bits = sorted({access.bits for access in binary.accesses if access.kind == kind}, reverse=True)
    return " and ".join(map(str, bits)) + " bits" if bits else "none"


def _copies(binary: Binary) -> str:
    bits = sorted({a.bits for a in binary.accesses if a.kind == "async copy"}, reverse=True)
    said = [f"cp.async, {' and '.join(map(str, bits))} bits"] if bits else []
    if any(access.kind == "bulk copy" for access in binary.accesses):
        said.append("TMA")
    return "; ".join(said) or "none"


def _units(binary: Binary) -> str:
    if not binary.dot:
        return "no tl.dot"
    if not binary.tensor_cores:
        return "none, tl.dot runs on FMA"
    return f"{binary.tensor_cores}, which multiply {' and '.join(binary.factors)}"


def _time(launch: InspectedLaunch) -> str:
    return q.seconds(launch.prediction.seconds) if launch.prediction else "none"


def _bound(launch: InspectedLaunch) -> str:
    if launch.prediction is None:
        return "unknown"
    bound, then = (BOUNDS.get(name, name)
                   for name in (launch.prediction.bound, launch.prediction.runner_up))
    return f"{bound}, then {then}" if then else bound


# ---------------------------------------------------------------------------------------------
# The source


def pages(inspection: Inspection, case: InspectedCase) -> Iterator[Row]:
    """The functions that reach memory, whole, and the statements that launch them."""
    texts = inspection.text.split("\n")
    defects: dict[int, list[Defect]] = {}
    for defect in case.defects:
        if defect.line is not None:
            defects.setdefault(defect.line, []).append(defect)
    lines = {line for line in {*case.lines, *defects} if 1 <= line <= len(texts)}
    launched = {launch.line for launch in case.launches if launch.line}
    last = 0
    for number in _wanted(inspection.text, lines, launched,
                          {launch.kernel for launch in case.launches}):
        yield Row(number, texts[number - 1].expandtabs(4), case.lines.get(number),
                  tuple(defects.get(number, ())), gap=bool(last) and number > last + 1)
        last = number


def _wanted(text: str, lines: set[int], launched: set[int], kernels: set[str]) -> list[int]:
    tree = syntax.parse(text)
    wanted: set[int] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef) and (node.name in kernels or any(
                node.lineno <= line <= (node.end_lineno or 0) for line in lines)):
            first = min([node.lineno, *(d.lineno for d in node.decorator_list)])
            wanted |= set(range(first, (node.end_lineno or node.lineno) + 1))
        if isinstance(node, ast.Expr | ast.Assign | ast.Return) and any(
                node.lineno <= line <= (node.end_lineno or 0) for line in launched):
            wanted |= set(range(node.lineno, (node.end_lineno or node.lineno) + 1))
    return sorted(wanted | lines)


def moved_words(moved: Moved) -> str:
    """Such as ``x_ptr: 33.6 MB loaded, sectors 100 % used, moved once``."""
    times = "once" if moved.times < 1.005 else f"{q.three(moved.times)} times"
    return (f"{moved.tensor}: {q.bytes_(moved.bytes)} {_DONE.get(moved.kind, moved.kind)}, "
            f"sectors {q.share(moved.efficiency)} used, moved {times}")


# ---------------------------------------------------------------------------------------------
# Advice, and the roofline


def why(defect: Defect) -> str:
    """Why a defect matters, where the code of a finding says it."""
    return MEANINGS.get(defect.code, "")


def named(inspection: Inspection, case: InspectedCase, defect: Defect) -> str:
    """The name of a defect with its line, and its case unless that is the largest.

    A hint says that it is one.
    """
    kind = "hint: " if defect.weight == "hint" else ""
    line = f", line {defect.line}" if defect.line else ""
    where = f", in the case {case.name}" if case is not inspection.largest else ""
    return f"{kind}{defect.name}{line}{where}"


def summary(inspection: Inspection) -> str:
    """How many defects and hints there are."""
    counts = [(sum(defect.weight == kind for defect in inspection.defects), kind)
              for kind in ("defect", "hint")]
    return " and ".join(q.plural(count, kind) for count, kind in counts if count)


ALL_CLEAR = ("No known defect was found. That a kernel is fast, compiled code and counted bytes "
             "cannot show: that takes a GPU.")
HINTS = "A hint says what could be better; as things are, it may cost nothing."


def seen(defect: Defect) -> str:
    """What was seen, as a sentence; a name of code at its beginning stays as it is."""
    first = defect.seen.split(" ")[0]
    return sentence(defect.seen) if first.isalnum() else first + sentence(defect.seen)[len(first):]


def position(point: Point, target: Target) -> str:
    """Where a point lies below the roof, in a sentence."""
    ridge = point.peak / target.dram
    side = "below" if point.bound_by_memory(target) else "above"
    roof = "the DRAM rate" if point.bound_by_memory(target) else f"the peak of {point.units}"
    return (f"{q.three(point.intensity)} operations a byte, {side} the {q.three(ridge)} at which "
            f"DRAM and {point.units} take equally long. Predicted to reach "
            f"{q.share(point.share(target))} of {roof}: "
            f"{q.rate(point.bytes / point.seconds, 'B/s')}, {q.rate(point.rate, 'FLOP/s')}.")


def no_position(case: InspectedCase, target: Target) -> str:
    """Why a case has no place on the roofline, and how near to the DRAM rate it comes."""
    if any(launch.survey is None or launch.prediction is None for launch in case.launches):
        return " ".join((*case.unknown, "So it has no place on the roofline."))
    moved = sum(launch.dram.low + launch.dram.high for launch in case.launches if launch.dram) / 2
    return ("No operations are counted, so memory alone decides. Predicted to reach "
            f"{q.share(moved / case.seconds / target.dram)} of the DRAM rate: "
            f"{q.rate(moved / case.seconds, 'B/s')}.")


def different(inspection: Inspection) -> list[tuple[InspectedCase, InspectedLaunch]]:
    """Launches with code of their own, each with the first case that has it."""
    launches = [(case, launch) for case in inspection.cases for launch in case.launches]
    unique = {launch.binary.ptx_sha256 or str(number): (case, launch)
              for number, (case, launch) in reversed(list(enumerate(launches)))}
    return list(reversed(unique.values()))
