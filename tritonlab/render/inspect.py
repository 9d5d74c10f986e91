"""What `tritonlab inspect` found, on a terminal: a table, the annotated source, advice, code."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from grader.compilation import Listing
from grader.inspection import InspectedCase, Inspection
from tritonlab.course import Module
from tritonlab.render import inspected as words
from tritonlab.render import quantities as q
from tritonlab.render.report import diagnosis
from tritonlab.render.screen import Part, Screen

_LABEL = 16  # columns of the table's labels
_GAP = 2  # columns between its others
_HEADS = ("bytes", "used", "moved", "instructions")


def show(screen: Screen, module: Module, inspection: Inspection, next_command: str, before: str,
         *, ptx: bool = False, sass: bool = False) -> None:
    """Print an inspection; the last line is the next command."""
    screen.line((module.id, "strong"), "  ", (module.title, "dim"))
    triton = inspection.versions.get("triton", "")
    screen.line(f"Compiled for an {inspection.target.title} ({inspection.target.name}) with "
                f"Triton {triton}; no GPU was used.")
    for case in inspection.cases:
        _findings(screen, module, case)
    _table(screen, inspection)
    largest = inspection.largest
    if largest is not None:
        _source(screen, inspection, largest)
        _advice(screen, inspection)
        _roofline(screen, inspection)
    for case, launch in words.different(inspection):
        if ptx:
            _listing(screen, inspection, f"PTX of {launch.kernel}", case.name, launch.ptx)
        if sass:
            _listing(screen, inspection, f"SASS of {launch.kernel}", case.name, launch.sass)
    screen.blank()
    screen.next(next_command, before)


def show_page(screen: Screen, module: Module, inspection: Inspection, path: str,
              next_command: str, before: str) -> None:
    """What is printed where a page was written: what hinders, the defects' names, where it is."""
    for case in inspection.cases:
        _findings(screen, module, case)
    for case, defect in inspection.seen:
        screen.line(words.named(inspection, case, defect), lead=("Found: ",))
    screen.line(f"The page is {path}")
    screen.next(next_command, before)


def _heading(screen: Screen, title: str, more: str = "") -> None:
    if not screen.plain:
        screen.blank()
        screen.line((title, "strong"), (f"  {more}" if more else "", "dim"))


def _findings(screen: Screen, module: Module, case: InspectedCase) -> None:
    """Why a case has no code to show."""
    for finding in case.findings:
        screen.blank()
        screen.line((case.name, "strong"), (f"  {finding.code}", "dim"),
                    lead=("Nothing to inspect: ",))
        for label, text in diagnosis(module, finding):
            said, *quoted = text.splitlines()
            screen.line(said, lead=(f"{label}: " if screen.plain else f"  {label:<8}",))
            screen.quote(quoted, indent=10)


# ---------------------------------------------------------------------------------------------
# The table


def _table(screen: Screen, inspection: Inspection) -> None:
    """A column for each launch, as many side by side as there is room for."""
    columns, left = words.columns(inspection)
    if not columns:
        return
    rows = words.facts(columns, inspection.target)
    names = [column.name for column in columns]
    widths = [max(map(len, (name, *(fact.values[number] for fact in rows))))
              for number, name in enumerate(names)]
    for first, last in _blocks(widths, screen.full_width - 2 - _LABEL):
        if not screen.plain:
            screen.blank()
            _columns(screen, "", names[first:last], widths[first:last], "strong")
            for fact in rows:
                _columns(screen, fact.label, fact.values[first:last], widths[first:last])
    for number, name in enumerate(names if screen.plain else ()):
        for fact in rows:
            screen.line(f"launch {number + 1}, {name}: {fact.label}: {fact.values[number]}")
    more = f" {left} more launches are in `--json`." if left else ""
    screen.line((f"Times are {words.promise(inspection.target)}.{more}", "dim"),
                lead=() if screen.plain else ("  ",))


def _blocks(widths: Sequence[int], room: int) -> Iterator[tuple[int, int]]:
    """How to spread columns over blocks that fit; a column too wide for any is one alone."""
    first = 0
    while first < len(widths):
        last, taken = first + 1, widths[first]
        while last < len(widths) and taken + _GAP + widths[last] <= room:
            taken += _GAP + widths[last]
            last += 1
        yield first, last
        first = last


def _columns(screen: Screen, label: str, values: Sequence[str], widths: Sequence[int],
             style: str = "") -> None:
    """One row; a column that is alone wraps where the terminal is too narrow for it."""
    cells = [value.ljust(width + _GAP) for value, width in zip(values, widths, strict=True)]
    head: Part = (label.ljust(_LABEL), "dim")
    if len(cells) == 1:
        screen.line((values[0], style), lead=("  ", head))
    else:
        screen.row("  ", head, ("".join(cells), style))


# ---------------------------------------------------------------------------------------------
# The source


def _source(screen: Screen, inspection: Inspection, case: InspectedCase) -> None:
    rows = list(words.pages(inspection, case))
    if screen.plain:
        screen.line(f"What lines move is told for: {case.name}")
        for row in rows:
            for note in _notes(row):
                screen.line(f"line {row.number}: {note}")
        return
    others = "" if len(inspection.cases) == 1 else "; `--case NAME` shows another"
    _heading(screen, "Your source", f"with what each line moves in: {case.name}{others}")
    digits = len(str(max((row.number for row in rows), default=0)))
    longest = max((len(row.text) for row in rows), default=0)
    cells = {row.number: _cells(row) for row in rows}
    widths = [max(len(head), *(len(cell[at]) for each in cells.values() for cell in each), 0)
              for at, head in enumerate(_HEADS)]
    beside = sum(widths) + _GAP * len(widths)
    room = screen.full_width - (4 + digits)
    if longest + beside <= room:
        _beside(screen, rows, cells, digits, longest, widths)
    else:
        _below(screen, rows, digits, room)


def _beside(screen: Screen, rows: Sequence[words.Row], cells: dict[int, list[tuple[str, ...]]],
            digits: int, code: int, widths: Sequence[int]) -> None:
    """Source and notes side by side, where the terminal is wide."""

    def aligned(values: Sequence[str]) -> str:
        *numbers, last = values
        return "".join(f"{' ' * _GAP}{value:>{width}}"
                       for value, width in zip(numbers, widths, strict=False)) + f"  {last}"

    screen.row((f"{' ' * (4 + digits + code)}{aligned(_HEADS)}", "dim"))
    for row in rows:
        if row.gap:
            screen.line((f"  {'⋮':>{digits}}", "dim"))
        first, *others = cells[row.number] or [("",) * len(_HEADS)]
        style = "skip" if row.defects else ""
        screen.row((f"  {row.number:>{digits}}  ", "dim"),
                           (row.text.ljust(code), style), aligned(first))
        for more in others:
            screen.row(" " * (4 + digits + code), aligned(more))
        for defect in row.defects:
            screen.line((f"^ {defect.name}", "skip"), lead=(" " * (4 + digits),))


def _below(screen: Screen, rows: Sequence[words.Row], digits: int, room: int) -> None:
    """Notes under the line that they belong to."""
    for row in rows:
        if row.gap:
            screen.line((f"  {'⋮':>{digits}}", "dim"))
        text = row.text if len(row.text) <= room else row.text[: room - 1] + "…"
        known = bool(row.known or row.defects)
        screen.row((f"  {row.number:>{digits}}  ", "dim"), (text, "" if known else "dim"))
        margin = " " * (4 + digits)
        for note in _notes(row):
            screen.line((note, "note"), lead=(margin, ("└ ", "note")))


def _notes(row: words.Row) -> Iterator[str]:
    """What is known of a line, in sentences of their own."""
    if row.known:
        for moved in row.known.moved:
            yield words.moved_words(moved)
        if row.known.instructions:
            yield ", ".join(row.known.instructions)
    for defect in row.defects:
        yield f"defect: {defect.name}"


def _cells(row: words.Row) -> list[tuple[str, ...]]:
    """The same as cells of ``_HEADS``, a row for each tensor."""
    if row.known is None:
        return []
    said = ", ".join(row.known.instructions)
    made = [(q.bytes_(moved.bytes), q.share(moved.efficiency), f"{q.three(moved.times)} x", said)
            for moved in row.known.moved]
    return [*made[:1], *((*cells[:3], "") for cells in made[1:])] or [("", "", "", said)]


# ---------------------------------------------------------------------------------------------
# Advice, roofline, listings


def _advice(screen: Screen, inspection: Inspection) -> None:
    _heading(screen, "Advice")
    margin = "" if screen.plain else "  "
    if inspection.clean:
        screen.line(words.ALL_CLEAR, lead=(margin,))
    for case, defect in inspection.seen:
        screen.line((words.named(inspection, case, defect), "skip"), lead=(margin,))
        for label, text in (("Seen", words.seen(defect)), ("Why", words.why(defect)),
                            ("Try", defect.advice)):
            if text:
                screen.line(text, lead=(f"{label}: " if screen.plain else f"    {label:<6}",))
    if any(defect.weight == "hint" for defect in inspection.defects):
        screen.line((words.HINTS, "dim"), lead=(margin,))


def _roofline(screen: Screen, inspection: Inspection) -> None:
    _heading(screen, "Roofline", words.promise(inspection.target))
    margin = "" if screen.plain else "  "
    for case in inspection.cases:
        points = case.points(inspection.target) if case.launches else []
        for point in points:
            name: list[Part] = [(point.label, "strong"), f", {case.name}: "]
            screen.line(*name, words.position(point, inspection.target), lead=(margin,))
        if case.launches and not points:
            said = words.no_position(case, inspection.target)
            screen.line((case.name, "strong"), f": {said}", lead=(margin,))


def _listing(screen: Screen, inspection: Inspection, title: str, case: str,
             listing: Listing) -> None:
    """Code in its order, under the lines of the source that it was made of."""
    _heading(screen, title, case)
    texts = inspection.text.split("\n")
    before: int | None = -1
    for line, code in listing:
        if screen.plain:
            screen.line(f"{title} {line or '-'}: {code.strip()}")
            continue
        if line != before and line is not None and line <= len(texts):
            screen.row((f"  {line:>4}  {texts[line - 1].strip()}"[: screen.width],
                                "note"))
        before = line
        screen.line(code.strip(), lead=(" " * 8,))
    if not listing:
        screen.line(f"{title}: none", lead=("" if screen.plain else "  ",))
