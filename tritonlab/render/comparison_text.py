"""Two versions side by side as text: figures of each launch, and lines that differ."""

from collections.abc import Callable, Iterator

from grader.inspect.comparison import ComparedCase, Comparison, LaunchPair, LinePair
from grader.inspect.inspection import SourceLine
from grader.text import plural
from tritonlab.course.course import Module
from tritonlab.render import quantities as q
from tritonlab.render import unit_times
from tritonlab.render.inspect_text import live, movement, promise, setting
from tritonlab.render.report import show_finding
from tritonlab.render.screen import Part, Screen, padded


def _number(value: float) -> str:
    return f"{value:,.0f}"


def _bytes(value: float) -> str:
    return plural(round(value), "byte")


# By the names of ``LaunchPair.figures``: the label, and how a value reads.
_FIGURES: dict[str, tuple[str, Callable[[float], str]]] = {
    "programs": ("programs", _number),
    "warps": ("warps", _number),
    "registers": ("registers a thread", _number),
    "spill_bytes": ("spills a thread", _bytes),
    "shared": ("shared memory", _bytes),
    "resident_warps": ("warps on an SM", _number),
    "stages": ("stages", _number),
    "instructions": ("instructions", _number),
    "sectors": ("sectors", _number),
    "sectors_per_request": ("sectors per request", q.three),
    "dram_bytes": ("DRAM traffic", q.bytes_),
    "seconds": ("predicted time", q.seconds),
}


def show(screen: Screen, module: Module, comparison: Comparison) -> None:
    """Prints the figures of each case, and what differs in the lines of the largest one."""
    after, label = comparison.after, comparison.label
    screen.line((module.id, "strong"), "  ", (module.title, "dim"))
    screen.line(f"Your version beside {label}, compiled for an {after.target.title} "
                f"({after.target.name}); no GPU was used.")
    if after.values:
        screen.line(setting(after))
    for name, version in ((f"{label}: ", comparison.before), ("", after)):
        for one in version.cases:
            for finding in one.findings:
                screen.blank()
                show_finding(screen, f"Nothing to inspect: {name}", one.name, module, finding)
    cases = comparison.cases
    changed = [case for case in cases if not case.same]
    if cases and not changed:
        screen.blank()
        screen.line("Both versions compile to the same code.")
    for case in changed:
        screen.heading(case.name)
        if all(case.predictions):
            screen.line(f"{case.name}: " * screen.plain, _whole(case), lead=("  ",))
        for pair in case.launches:
            _launch(screen, case.name, pair)
    if changed:
        largest = max(changed, key=lambda case: case.bytes)
        screen.heading("Lines that differ", f"in: {largest.name}")
        for line in largest.lines:
            _line(screen, line)
        if not largest.lines:
            screen.line("No line moves other bytes or has other instructions that access memory.",
                        lead=("  ",))
        screen.blank()
        screen.line((f"Times are {promise(after.target)}.", "dim"))


def _whole(case: ComparedCase) -> str:
    """The predicted time of the call before and after, with the bounds."""
    both = [one for one in case.predictions if one]
    before, after = (f"{q.seconds(one.seconds)}, bound by {unit_times.first(one)}" for one in both)
    change = _change(both[0].seconds, both[-1].seconds)
    return f"predicted time of the call: {before}; now {after} ({change})"


def _launch(screen: Screen, case: str, pair: LaunchPair) -> None:
    if pair.after is None:
        time = pair.before.prediction if pair.before else None
        took = f"; it took {q.seconds(time.seconds)}" if time else ""
        screen.line(f"{case}, " * screen.plain, (pair.kernel, "strong"),
                    f": not launched any more{took}", lead=("  ",))
        return
    rows = [[label, *("none" if value is None else reads(value) for value in values),
             _change(*values)]
            for name, values in pair.figures.items() for label, reads in (_FIGURES[name],)]
    if screen.plain:
        for label, before, after, change in rows:
            now = "unchanged" if change == "same" else f"now {after}{f' ({change})' * bool(change)}"
            screen.line(f"{case}, {pair.kernel}: {label}: {before}, {now}")
        return
    table = padded([[pair.kernel, "before", "now", "change"], *rows], "<>>>", "  ")
    for number, cells in enumerate(table):
        style = "dim" if not number or rows[number - 1][3] == "same" else ""
        head: Part = (cells[0], "strong" if not number else "dim")
        screen.row("  ", head, *((cell, style) for cell in cells[1:]))


def _change(before: float | None, after: float | None) -> str:
    if before is None or after is None:
        return ""
    if before == after or (before and abs(after / before - 1) < 0.0005):
        return "same"
    return "new" if not before else f"x {after / before:.2f}" if after else "gone"


def _line(screen: Screen, pair: LinePair) -> None:
    old, new = pair.numbers
    name = f"line {old}, now {new}" if old and new and old != new else \
        f"line {new}" if old and new else f"line {old}, removed" if old else f"line {new}, new"
    screen.line((f"{name}: ", "dim"), pair.texts[1] or pair.texts[0], lead=("  ",))
    before, after = [*_notes(pair.before)], [*_notes(pair.after)]
    for word, number, notes, others in (
            ("before", old, before, after), ("now", new, after, before)):
        differing = [note for note in notes if note not in others] or notes
        if number is not None:
            screen.line("; ".join(differing) or "no access", lead=(screen.label(word, 4, 8),))


def _notes(line: SourceLine | None) -> Iterator[str]:
    if line:
        yield from map(movement, line.moved)
        if line.instructions:
            yield ", ".join(line.instructions)
        if line.live:
            yield live(line)
