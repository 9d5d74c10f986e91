"""An inspection as text, for terminals and pages: tables, annotated source, advice, listings."""

import ast
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from grader.diagnosis.codes import MEANINGS
from grader.diagnosis.perf_lints import Defect
from grader.engine.compiler.targets import Target
from grader.inspect.inspection import InspectedCase, Inspection, Point, SourceLine, ways
from grader.judge.launch_report import InspectedLaunch
from grader.processes.replies import Listing
from grader.recording.compiled_kernel import Binary
from grader.recording.launch_stats import Traffic
from grader.submission import syntax
from grader.text import plural, sentence
from tritonlab.course.course import Module
from tritonlab.errors import shown
from tritonlab.render import quantities as q
from tritonlab.render import unit_times
from tritonlab.render.report import show_finding
from tritonlab.render.screen import Part, Screen, cropped, padded

_LABEL = 16  # columns of the table's labels
_GAP = 2  # columns between its others
_HEADS = ("bytes", "used", "moved", "instructions")
_MOST_COLUMNS = 8  # of the table; of more launches than that, the rest is left to the JSON
_DONE = {"load": "loaded", "store": "stored", "atomic": "added"}


@dataclass(frozen=True)
class FactRow:
    """One row of the table: a label, an explanation for the page, a value for each launch."""

    label: str
    about: str
    values: Sequence[str]


@dataclass(frozen=True)
class SourceRow:
    """One line of the source; ``gap``: lines before it are left out."""

    number: int
    text: str
    annotation: SourceLine | None = None
    defects: tuple[Defect, ...] = ()
    gap: bool = False


def promise(target: Target) -> str:
    """For which GPU times are predicted, and from what."""
    return f"predicted for an {target.title} from compiled code, not measured"


def facts(inspection: Inspection) -> tuple[list[str], list[FactRow], int]:
    """The table of launches: heads of columns, rows, and the number of launches left out.

    Equal launches of a case share a column.
    """
    columns = [(case, launch, case.launches.count(launch))
               for case in inspection.cases for number, launch in enumerate(case.launches)
               if launch not in case.launches[:number]]
    target, left = inspection.target, sum(times for *_, times in columns[_MOST_COLUMNS:])
    columns = columns[:_MOST_COLUMNS]
    names = [f"{launch.kernel}, {times} times" if times > 1 else launch.kernel
             for _, launch, times in columns]
    each = [launch for _, launch, _ in columns]
    binaries = [launch.binary for launch in each]
    return names, [
        FactRow("case", "arguments of the function", [case.name for case, *_ in columns]),
        FactRow("launched at", "line of the launch",
                [f"line {launch.line}" if launch.line else "unknown" for launch in each]),
        FactRow("grid", "programs along each axis, and in total", [*map(_grid, each)]),
        FactRow("waves", "waves: how often the grid fills the GPU",
                [f"{q.three(launch.waves(target))} of "
                 f"{plural(launch.at_once(target), 'program')}" for launch in each]),
        FactRow("warps", "of 32 threads, per program", [f"{b.warps}" for b in binaries]),
        FactRow("registers", "of 32 bits, per thread; at most 255",
                [f"{b.registers} a thread" for b in binaries]),
        FactRow("instructions", "of the machine code, however often they run",
                [f"{len(one.sass):,}" if one.sass else "unknown" for one in each]),
        FactRow("spills", "values that did not fit in registers",
                [f"{plural(b.spill_bytes, 'byte')} a thread" if b.spill_bytes else "none"
                 for b in binaries]),
        FactRow("shared memory", "for a program", [plural(b.shared, "byte") for b in binaries]),
        FactRow("bank conflicts", "of threads in shared memory; 2-way takes twice as long",
                [*map(_conflicts, binaries)]),
        FactRow("occupancy", "resident warps per SM (streaming multiprocessor), and their limit",
                [f"{o.warps} of {o.most_warps} warps{f', by {o.limited_by}' * bool(o.limited_by)}"
                 for o in (b.occupancy for b in binaries)]),
        FactRow("loads", "bits per load of a thread; 128 is the widest",
                [_bits(b, "load") or "none" for b in binaries]),
        FactRow("stores", "the same for stores", [_bits(b, "store") or "none" for b in binaries]),
        FactRow("copies ahead", "asynchronous copies from global to shared memory",
                [*map(_copies, binaries)]),
        FactRow("tensor cores", "units that run tl.dot", [*map(_units, binaries)]),
        FactRow("TF32", "whether tl.dot rounds float32 to 10 bits of mantissa",
                ["yes" if b.tf32 else "no" if b.dot else "no tl.dot" for b in binaries]),
        FactRow("stages", "iterations of a loop in flight",
                [f"{b.stages}" if b.stages else "not pipelined" for b in binaries]),
        FactRow("DRAM, read", "traffic that misses L2",
                [q.interval(one.survey.loaded) if one.survey else "unknown" for one in each]),
        FactRow("DRAM, written", "the same for stores",
                [q.interval(one.survey.stored) if one.survey else "unknown" for one in each]),
        FactRow("predicted time", promise(target),
                [q.seconds(one.prediction.seconds) if one.prediction else "none" for one in each]),
        FactRow("bound by", "the limiting resource, and the next one", [*map(_bound, each)]),
    ], left


def _grid(launch: InspectedLaunch) -> str:
    sizes = list(launch.grid)
    while len(sizes) > 1 and sizes[-1] == 1:
        sizes.pop()
    programs = plural(launch.programs, "program")
    return " x ".join(f"{size:,}" for size in sizes) + f", {programs}" if sizes[1:] else programs


def _conflicts(binary: Binary) -> str:
    """Such as ``8-way, line 12``: the line with the most, if any address is known."""
    conflicts = [one for one in binary.shared_accesses if one.ways > 1]
    if conflicts:
        worst = max(conflicts, key=lambda one: one.ways)
        return f"{ways(worst)}{f', line {worst.line}' if worst.line else ''}"
    unknown = any(not one.ways for one in binary.shared_accesses)
    return "unknown" if unknown else "none"


def _bits(binary: Binary, kind: str) -> str:
    """Access widths of one kind, such as ``128 and 32 bits``; empty if there are none."""
    bits = sorted({access.bits for access in binary.accesses if access.kind == kind}, reverse=True)
    return " and ".join(map(str, bits)) + " bits" if bits else ""


def _copies(binary: Binary) -> str:
    bits = _bits(binary, "async copy")
    return q.listed(bits and f"cp.async, {bits}",
                    _bits(binary, "bulk copy") and "TMA", by="; ") or "none"


def _units(binary: Binary) -> str:
    if not binary.dot:
        return "no tl.dot"
    if not binary.tensor_cores:
        return "none, tl.dot runs on FMA"
    return f"{binary.tensor_cores}, which multiply {' and '.join(binary.factors)}"


def _bound(launch: InspectedLaunch) -> str:
    return unit_times.bound(launch.prediction) if launch.prediction else "unknown"


# The source


def source_rows(inspection: Inspection, case: InspectedCase) -> Iterator[SourceRow]:
    """Functions that access memory, and the statements that launch them."""
    texts = inspection.text.split("\n")
    lines = {*range(1, len(texts) + 1)} & {*case.lines, *(defect.line for defect in case.defects)}
    last = 0
    for number in sorted(lines | _context(inspection.text, case, lines)):
        yield SourceRow(number, texts[number - 1].expandtabs(4), case.lines.get(number),
                        tuple(defect for defect in case.defects if defect.line == number),
                        gap=bool(last) and number > last + 1)
        last = number


def _context(text: str, case: InspectedCase, lines: set[int]) -> set[int]:
    """Lines of the case's kernels, of functions around ``lines`` and of its launches."""
    kernels = {launch.kernel for launch in case.launches}
    launched = {launch.line for launch in case.launches}
    context: set[int] = set()
    for node in ast.walk(syntax.parse(text)):
        if isinstance(node, ast.FunctionDef | ast.Expr | ast.Assign | ast.Return):
            span = {*range(node.lineno, (node.end_lineno or node.lineno) + 1)}
            if not isinstance(node, ast.FunctionDef):
                context |= span if span & launched else set()
            elif node.name in kernels or span & lines:
                first = min([node.lineno, *(d.lineno for d in node.decorator_list)])
                context |= span | {*range(first, node.lineno)}
    return context


def movement(moved: Traffic) -> str:
    """Such as ``x_ptr: 33.6 MB loaded, sectors 100 % used, moved once``."""
    times = "once" if moved.redundancy < 1.005 else f"{q.three(moved.redundancy)} times"
    return (f"{moved.tensor}: {q.bytes_(moved.bytes)} {_DONE.get(moved.kind, moved.kind)}, "
            f"sectors {q.share(moved.coalescing)} used, moved {times}{requests(moved)}")


def live(line: SourceLine) -> str:
    """That most registers are live at this line."""
    return f"most live registers: {line.live}"


def requests(moved: Traffic) -> str:
    """Such as ``, 16 sectors per request``; empty where the layout of threads is unknown."""
    if moved.sectors_per_request is None:
        return ""
    hits = f", L1 hits of neighboring requests {q.share(moved.l1_hits)}" \
        if moved.l1_hits > _SOME_HITS and moved.kind == "load" else ""
    return f", {q.three(moved.sectors_per_request)} sectors per request{hits}"


def setting(inspection: Inspection) -> str:
    """The values that were set, and whether results are right with them."""
    values = ", ".join(f"{name}={value!r}" for name, value in inspection.values.items())
    text = f"With {values}; your file, which is shown below, is unchanged."
    if inspection.wrong is None:
        return text
    reason = "".join(f": {finding.seen}" for finding in inspection.wrong.findings[:1]) or "."
    return f"{text} With these values, the case {inspection.wrong.name} fails{reason}"


# Advice, and the roofline


def defect_name(inspection: Inspection, case: InspectedCase, defect: Defect) -> str:
    """The name of a defect or hint with its line, and its case unless that is the largest."""
    kind = "hint: " if defect.weight == "hint" else ""
    line = f", line {defect.line}" if defect.line else ""
    where = f", in the case {case.name}" if case is not inspection.largest else ""
    return f"{kind}{defect.name}{line}{where}"


def summary(inspection: Inspection) -> str:
    """Counts defects and hints."""
    counts = [(sum(defect.weight == kind for defect in inspection.defects), kind)
              for kind in ("defect", "hint")]
    return " and ".join(plural(count, kind) for count, kind in counts if count)


_SOME_HITS = 0.01  # of the sectors that are requested
HINTS = "A hint names a possible improvement; it may not cost time as things are."


def all_clear(inspection: Inspection) -> str:
    """That no defect was found, for an inspection with nothing more than hints."""
    first = "No known defect was found, only what the hints below name." if inspection.seen \
        else "No known defect was found."
    return (f"{first} Compiled code and counted bytes cannot prove that a kernel is fast: that "
            "needs a GPU.")


def position(point: Point, target: Target) -> str:
    """Describes the position of a point below the roofline."""
    ridge = point.peak / target.dram
    side = "below" if point.bound_by_memory(target) else "above"
    roof = "the DRAM rate" if point.bound_by_memory(target) else f"the peak of {point.units}"
    return (f"{q.three(point.intensity)} FLOP/B, {side} the ridge point of {q.three(ridge)} "
            f"(datasheet peak of {point.units} over DRAM rate). Predicted to reach "
            f"{q.share(point.share(target))} of {roof}: "
            f"{q.rate(point.bytes / point.seconds, 'B/s')}, {q.rate(point.rate, 'FLOP/s')}.")


def no_position(case: InspectedCase, target: Target) -> str:
    """Explains why a case is not on the roofline, with its share of the DRAM rate."""
    if any(launch.survey is None or launch.prediction is None for launch in case.launches):
        return " ".join((*case.unknown, "So it has no place on the roofline."))
    moved = sum(launch.dram.low + launch.dram.high for launch in case.launches if launch.dram) / 2
    return ("No operations are counted, so memory alone decides. Predicted to reach "
            f"{q.share(moved / case.seconds / target.dram)} of the DRAM rate: "
            f"{q.rate(moved / case.seconds, 'B/s')}.")


def distinct_launches(inspection: Inspection) -> list[tuple[InspectedCase, InspectedLaunch]]:
    """Launches with distinct code, each with the first case that has it."""
    unique: dict[object, tuple[InspectedCase, InspectedLaunch]] = {}
    for case in inspection.cases:
        for launch in case.launches:
            unique.setdefault(launch.binary.ptx_sha256 or id(launch), (case, launch))
    return list(unique.values())


# On a terminal


def show(screen: Screen, module: Module, inspection: Inspection, page: Path | None, *,
         ptx: bool = False, sass: bool = False) -> None:
    """Prints an inspection; of one on a page, only findings and names of defects."""
    if page:
        _findings(screen, module, inspection)
        for case, defect in inspection.seen:
            screen.line(defect_name(inspection, case, defect), lead=("Found: ",))
        screen.line(f"The page is {shown(page.absolute())}")
        return
    screen.line((module.id, "strong"), "  ", (module.title, "dim"))
    triton = inspection.versions.get("triton", "")
    screen.line(f"Compiled for an {inspection.target.title} ({inspection.target.name}) with "
                f"Triton {triton}; no GPU was used.")
    if inspection.values:
        screen.line(setting(inspection))
    _findings(screen, module, inspection)
    _table(screen, inspection)
    largest = inspection.largest
    if largest is not None:
        if largest.prediction is not None:
            launches = len(largest.launches)
            together = f", {launches} launches together" if launches > 1 else ""
            screen.heading("Time by unit", f"in: {largest.name}{together}{_others(inspection)}")
            unit_times.show(screen, largest.name, largest.prediction)
        _source(screen, inspection, largest)
        _advice(screen, inspection)
        _roofline(screen, inspection)
    for case, launch in distinct_launches(inspection):
        if ptx:
            _listing(screen, inspection, f"PTX of {launch.kernel}", case.name, launch.ptx)
        if sass:
            _listing(screen, inspection, f"SASS of {launch.kernel}", case.name, launch.sass)
    screen.blank()


def _findings(screen: Screen, module: Module, inspection: Inspection) -> None:
    """Prints the findings that keep cases from being inspected."""
    for case in inspection.cases:
        for finding in case.findings:
            screen.blank()
            show_finding(screen, "Nothing to inspect: ", case.name, module, finding)


def _table(screen: Screen, inspection: Inspection) -> None:
    """Prints a column for each launch, as many side by side as fit."""
    names, rows, left = facts(inspection)
    if not names:
        return
    if screen.plain:
        for number, name in enumerate(names):
            for row in rows:
                screen.line(f"launch {number + 1}, {name}: {row.label}: {row.values[number]}")
    else:
        table = padded([names, *(row.values for row in rows)], "<" * len(names), " " * _GAP)
        for first, last in _blocks([len(cell) for cell in table[0]], screen.full_width):
            screen.blank()
            for fact, cells in zip([None, *rows], table, strict=True):
                head: Part = ((fact.label if fact else "").ljust(_LABEL), "dim")
                text: Part = ("".join(cells[first:last]).rstrip(), "" if fact else "strong")
                if last - first == 1:  # wraps in a narrow terminal
                    screen.line(text, lead=("  ", head))
                else:
                    screen.row("  ", head, text)
    more = f" {left} more launches are in `--json`." if left else ""
    screen.line((f"Times are {promise(inspection.target)}.{more}", "dim"), lead=("  ",))


def _blocks(widths: Sequence[int], room: int) -> Iterator[tuple[int, int]]:
    """Splits columns into blocks that fit beside the labels; one at least is in each."""
    first = 0
    for last in range(1, len(widths) + 1):
        if last == len(widths) or 2 + _LABEL + sum(widths[first:last + 1]) - _GAP > room:
            yield first, last
            first = last


def _others(inspection: Inspection) -> str:
    return "" if len(inspection.cases) == 1 else "; `--case NAME` shows another"


def _source(screen: Screen, inspection: Inspection, case: InspectedCase) -> None:
    rows = list(source_rows(inspection, case))
    if screen.plain:
        screen.line(f"Traffic by line, in the case: {case.name}")
        for row in rows:
            for note in _notes(row):
                screen.line(f"line {row.number}: {note}")
        return
    screen.heading("Your source",
                   f"with what each line moves in: {case.name}{_others(inspection)}")
    digits = len(str(max((row.number for row in rows), default=0)))
    longest = max((len(row.text) for row in rows), default=0)
    cells = [[*_HEADS], *(cell for row in rows for cell in _cells(row))]
    notes = iter(["  " + "  ".join(note) for note in padded(cells, ">>><")])
    head, margin = next(notes), " " * (4 + digits)
    beside = len(margin) + longest + len(head) <= screen.full_width
    room = longest if beside else screen.full_width - len(margin)
    if beside:
        screen.row((f"{margin}{'':{longest}}{head}", "dim"))
    for row in rows:
        if row.gap:
            screen.line((f"  {'⋮':>{digits}}", "dim"))
        number: Part = (f"  {row.number:>{digits}}  ", "dim")
        if beside:
            first, *further = [next(notes) for _ in _cells(row)] or [""]
            screen.row(number, (row.text.ljust(longest), "skip" if row.defects else ""), first)
            for note in further:
                screen.row(f"{margin}{'':{longest}}{note}")
            for defect in row.defects:
                screen.line((f"^ {defect.name}", "skip"), lead=(margin,))
        else:
            noted = row.annotation or row.defects
            screen.row(number, (cropped(row.text, room), "" if noted else "dim"))
            for note in _notes(row):
                screen.line((note, "note"), lead=(margin, ("└ ", "note")))


def _notes(row: SourceRow) -> Iterator[str]:
    """The annotation of a line as sentences."""
    if row.annotation:
        for moved in row.annotation.moved:
            yield movement(moved)
        if row.annotation.instructions:
            yield ", ".join(row.annotation.instructions)
        if row.annotation.live:
            yield live(row.annotation)
    for defect in row.defects:
        yield f"defect: {defect.name}"


def _cells(row: SourceRow) -> list[tuple[str, ...]]:
    """The same as cells of ``_HEADS``, a row for each tensor."""
    if row.annotation is None:
        return []
    most = live(row.annotation) if row.annotation.live else ""
    instructions = q.listed(*row.annotation.instructions, most)
    return [(q.bytes_(moved.bytes), q.share(moved.coalescing), f"{q.three(moved.redundancy)} x",
             "" if number else instructions)
            for number, moved in enumerate(row.annotation.moved)] or [("", "", "", instructions)]


def _advice(screen: Screen, inspection: Inspection) -> None:
    screen.heading("Advice")
    if inspection.clean:
        screen.line(all_clear(inspection), lead=("  ",))
    for case, defect in inspection.seen:
        screen.line((defect_name(inspection, case, defect), "skip"), lead=("  ",))
        for label, text in (("Seen", sentence(defect.seen)), ("Why", MEANINGS.get(defect.code)),
                            ("Try", defect.advice)):
            if text:
                screen.line(text, lead=(screen.label(label, 4, 6),))
    if any(defect.weight == "hint" for defect in inspection.defects):
        screen.line((HINTS, "dim"), lead=("  ",))


def _roofline(screen: Screen, inspection: Inspection) -> None:
    screen.heading("Roofline", promise(inspection.target))
    for case in inspection.cases:
        points = case.points(inspection.target) if case.launches else []
        for point in points:
            screen.line((point.label, "strong"), f", {case.name}: ",
                        position(point, inspection.target), lead=("  ",))
        if case.launches and not points:
            screen.line((case.name, "strong"), f": {no_position(case, inspection.target)}",
                        lead=("  ",))


def _listing(screen: Screen, inspection: Inspection, title: str, case: str,
             listing: Listing) -> None:
    """Prints code in order, below the source lines that it was compiled from."""
    screen.heading(title, case)
    texts = inspection.text.split("\n")
    before: int | None = -1
    for line, code in listing:
        if screen.plain:
            screen.line(f"{title} {line or '-'}: {code.strip()}")
            continue
        if line != before and line is not None and line <= len(texts):
            screen.row((f"  {line:>4}  {texts[line - 1].strip()}"[: screen.width], "note"))
        before = line
        screen.line(code.strip(), lead=(" " * 8,))
    if not listing:
        screen.line(f"{title}: none", lead=("  ",))
