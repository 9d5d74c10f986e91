"""A sweep as text: for each case, a row with the figures of each combination of values."""

from collections.abc import Mapping, Sequence

from grader.inspect.sweep import Sweep, SweepRow, SweptCase
from grader.report import Finding
from grader.text import plural
from tritonlab.course.course import Module
from tritonlab.render import quantities as q
from tritonlab.render.inspect_text import promise
from tritonlab.render.report import show_finding
from tritonlab.render.screen import Screen, padded

_HEADS = ("regs", "spills", "shared", "sectors", "instr.", "time", "bound", "verdict")
_BOUNDS = {"dram": "DRAM", "l2": "L2", "compute": "arithmetic", "tensor": "tensor",
           "fma": "FMA", "alu": "integer", "fp64": "FP64", "xu": "MUFU", "lsu": "LSU"}
_READING = (
    "regs: registers of a thread. spills: bytes per thread. shared: bytes of a program. sectors: "
    "of each request of a warp. instr.: in the machine code. verdict: expected, not measured.")
_CLOSE = "Predicted times that differ by less than a quarter do not show which version is faster."


def show(screen: Screen, module: Module, sweep: Sweep) -> None:
    """Prints a table for each case whose code depends on the values."""
    screen.line((module.id, "strong"), "  ", (module.title, "dim"))
    screen.line(f"Compiled for an {sweep.target.title} ({sweep.target.name}) with other values of "
                f"{q.listed(*sweep.names, by=' and ')}; your file is unchanged.")
    for finding in sweep.findings:
        screen.blank()
        show_finding(screen, "Nothing to inspect: ", "your file", module, finding)
    depending = [case for case in sweep.cases if case.depends or len(case.rows) == 1]
    for case in depending:
        screen.heading(case.name, promise(sweep.target))
        if screen.plain:
            _facts(screen, case)
        else:
            _table(screen, sweep.names, case)
        if case.wrong_anyway:
            screen.line((f"{case.name}: " * screen.plain + f"With all values: "
                         f"{reason(case.rows[0])}", "skip"), lead=("  ",))
        if case.best and len(case.rows) > 1:
            first, *others = case.best
            more = f"; {plural(len(others), 'other')} within 5 % of it" if others else ""
            screen.line("Shortest predicted time: ", (values_of(first.values), "strong"),
                        f", {q.seconds(first.seconds or 0.0)}{more}.", lead=("  ",))
    for case in sweep.cases:
        if case not in depending:
            screen.line(f"{case.name}: its launches do not depend on these values.")
    screen.blank()
    if depending:
        screen.line((_READING, "dim"))
        screen.line((_CLOSE, "dim"))


def values_of(values: Mapping[str, object]) -> str:
    """Such as ``BLOCK_N=128, num_warps=8``."""
    return ", ".join(f"{name}={value!r}" for name, value in values.items())


def reason(row: SweepRow) -> str:
    """Why a combination cannot be used, in short."""
    if row.finding is None:
        return ""
    if row.wrong:
        return f"{row.finding.name} in the case {row.wrong}: {_first(row.finding)}"
    return f"{row.finding.name}: {_first(row.finding)}"


def _first(finding: Finding) -> str:
    return finding.seen.partition("\n")[0]


def _cells(row: SweepRow) -> list[str]:
    if not row.launches:
        return [""] * len(_HEADS)
    sectors = row.sectors_per_request
    return [f"{row.registers}", f"{row.spill_bytes} B" if row.spill_bytes else "none",
            q.bytes_(row.shared), q.three(sectors) if sectors is not None else "unknown",
            f"{row.instructions:,}",
            q.seconds(row.seconds) if row.seconds is not None else "unknown",
            _BOUNDS.get(row.bound, row.bound), row.outlook or ""]


def _table(screen: Screen, names: Sequence[str], case: SweptCase) -> None:
    """The verdict stands below its row where the terminal is too narrow; so do reasons."""
    cells = [[*names, *_HEADS],
             *([*(f"{row.values[name]!r}" for name in names), *_cells(row)] for row in case.rows)]
    table = padded(cells, ">" * (len(names) + len(_HEADS) - 2) + "<<", "  ")
    wide = 2 + sum(map(len, table[0])) - 2 <= screen.full_width
    if 2 + sum(map(len, table[0][:-1])) - 2 > screen.full_width:
        _facts(screen, case)
        return
    last = len(table[0]) if wide else -1
    screen.row("  ", *((cell, "dim") for cell in table[0][:last]))
    for row, line in zip(case.rows, table[1:], strict=True):
        style = "strong" if row in case.best else "skip" if row.finding else ""
        if row.launches:
            screen.row("  ", *((cell, style) for cell in line[:last]))
        else:
            screen.row("  ", *((cell, style) for cell in line[:len(names)]))
        if row.launches and not wide:
            screen.line(row.outlook or "", lead=("      ", ("└ ", "note")))
        if row.finding and not case.wrong_anyway:
            screen.line((reason(row), "skip"), lead=("      ", ("└ ", "note")))


def _facts(screen: Screen, case: SweptCase) -> None:
    for row in case.rows:
        facts = ", ".join(f"{head.rstrip('.')} {cell}" for head, cell in zip(
            _HEADS, _cells(row), strict=True) if cell)
        screen.line(f"{case.name}, " * screen.plain + f"{values_of(row.values)}: "
                    + "; ".join(filter(None, (facts, "" if case.wrong_anyway else reason(row)))))
