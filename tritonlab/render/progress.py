"""Progress as text: the course, status, every grade, the report, and a merge of two records."""

from collections.abc import Iterator, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any

from grader.finding import NAMES
from grader.text import plural, sentence
from tritonlab.course.course import Course, Module
from tritonlab.errors import shown
from tritonlab.progress.caches import StoredBenchmark
from tritonlab.progress.certificate import (
    FAST,
    Certificate,
    CertificateEntry,
    ModuleState,
    Total,
)
from tritonlab.progress.merge import Merge
from tritonlab.progress.progress_report import ModuleProgress, Overview, RecordedGrade
from tritonlab.render import quantities as q
from tritonlab.render.screen import Screen, padded, word
from tritonlab.workspace.workspace import Workspace

STATE_WORDS = {ModuleState.PASSED: "PASS", ModuleState.TRIED: "OPEN", ModuleState.STARTED: "OPEN",
               ModuleState.OUTDATED: "PASS", ModuleState.WAITING: "WAIT"}
LEGEND = "PASS: passed. OPEN: begun, not passed yet. WAIT: not begun yet."
EARLIER = "passed under earlier tests"
STATES = {ModuleState.PASSED: "passed", ModuleState.OUTDATED: "passed earlier tests",
          ModuleState.TRIED: "open", ModuleState.STARTED: "started",
          ModuleState.WAITING: "not begun"}
_DAYS = 14  # that the terminal shows of a report


def hours(minutes: int) -> str:
    """Planned time, such as ``2 h`` or ``1.5 h``; minutes below an hour."""
    return f"{minutes} min" if minutes < 60 else f"{minutes / 60:.3g} h"


def show_list(screen: Screen, course: Course, certificate: Certificate) -> None:
    """Prints all tracks with their modules."""
    for track in course.tracks:
        total = certificate.tracks[track.id]
        screen.pair((f"Track {track.number}  ", (track.title, "strong")), f"{total} passed")
        if not screen.plain:
            screen.line((track.blurb, "dim"), lead=("  ",))
        width = max((len(module.id) for module in track.modules), default=0)
        for module in track.modules:
            entry = certificate.entry(module)
            state = word(STATE_WORDS[entry.state])
            elective = "" if module.core else " (elective)"
            evidence = EARLIER if entry.state is ModuleState.OUTDATED else \
                entry.evidence if entry.done else ""
            if screen.plain:
                facts = q.listed(f"{module.title}{elective}", hours(module.minutes), evidence)
                screen.line(state, f" {module.id}: {facts}")
            else:
                more = f"  {evidence}" if evidence else ""
                screen.pair((module.title, (f"{elective}{more}", "dim")),
                            (hours(module.minutes), "dim"), indent=2,
                            lead=(state, f" {module.id:<{width}}  "))
        if not track.modules:
            screen.line(("This track has no modules yet.", "dim"), lead=("  ",))
        screen.blank()
    screen.line((LEGEND, "dim"))
    show_totals(screen, certificate, " passed", tracks=False)


def show_status(screen: Screen, course: Course, certificate: Certificate, current: Module | None,
                workspace: Workspace | None) -> None:
    """Prints totals, open modules and the planned time left."""
    show_totals(screen, certificate, " passed")
    screen.blank()
    opened = [entry for entry in certificate.entries if entry.is_open]
    for entry in opened:
        best = "started, not graded yet" if entry.state is ModuleState.STARTED else \
            f"best {checks(entry)} checks, {plural(entry.grades, 'grade')}"
        screen.line(entry.module, f"  {best}", lead=screen.verdict(STATE_WORDS[entry.state]))
    earlier = [e for e in certificate.entries if e.state is ModuleState.OUTDATED]
    for entry in earlier:
        today = "They have changed since." if entry.regraded is None else \
            "Under today's it is not passed yet."
        screen.line(entry.module, f"  {EARLIER}, which counts. {today}",
                    lead=screen.verdict(STATE_WORDS[entry.state]))
        screen.command(f"tritonlab grade {entry.module}",
                       lead="Grade it again: " if screen.plain else " " * 8 + "Grade it again: ")
    if opened or earlier:
        screen.blank()
    if current:
        screen.line("Current module: ", (current.id, "strong"),
                    f" (planned {hours(current.minutes)})")
    left = sum(m.minutes for m in course.modules if m.core and not certificate.entry(m).done)
    if left:
        screen.line(f"Planned time of the core modules that are ready: {hours(left)}.")
    if evidence := levels(certificate):
        slow = any(entry.done and entry.evidence != FAST for entry in certificate.entries)
        more = " On a machine with a GPU, `tritonlab grade --pending` shows what is fast."
        screen.line(evidence + more * slow)
    screen.line(f"Workspace: {shown(workspace.root) if workspace else 'none yet'}")


def levels(certificate: Certificate) -> str:
    """A sentence that counts passed modules by evidence; empty without any."""
    counted = ", ".join(f"{number} {level}" for level, number in certificate.levels.items())
    return f"Evidence: {counted}." if counted else ""


def show_totals(screen: Screen, certificate: Certificate, after: str = "", *,
                tracks: bool = True) -> None:
    """Prints how many modules are passed, of each track and of all; nothing of no module."""
    for track, total in certificate.tracks.items() if tracks else ():
        if total.total:
            screen.pair((f"Track {track.removeprefix('track')}  {certificate.titles[track]}",),
                        f"{total}{after}")
    screen.pair((("Core modules", "strong"),),
                (f"{certificate.core}{after}", "" if after else "strong"))
    if certificate.electives.total:
        screen.pair((("Electives", "strong"), ("  apart, never needed", "dim")),
                    f"{certificate.electives}{after}")


def list_to_dict(course: Course, certificate: Certificate) -> dict[str, Any]:
    """The data of ``tritonlab list --json``."""
    def fields(value: Any, *names: str) -> dict[str, Any]:
        return {name: getattr(value, name) for name in names}

    tracks = [{
        **fields(track, "id", "folder", "title", "blurb", "starter"),
        **fields(certificate.tracks[track.id], "passed", "total"),
        "modules": [{
            **fields(module, "id", "number", "title", "summary", "core", "minutes"),
            **fields(certificate.entry(module), "state", "evidence"),
            "prerequisites": module.prerequisites} for module in track.modules],
    } for track in course.tracks]
    return {"schema": 1, "tracks": tracks, "totals": certificate.to_dict()["totals"]}


# History, report and merge


def show_history(screen: Screen, course: Course, attempts: Sequence[RecordedGrade]) -> None:
    """Prints all grades in the order of the course."""
    if not attempts:
        screen.line("Nothing has been graded yet.")
    order = [module.id for module in course.modules]
    attempts = sorted(attempts, key=lambda attempt: order.index(attempt.module))
    cells = [[f"{attempt.date} {attempt.time}".strip(), attempt.evidence,
              f"{attempt.cases_passed} of {attempt.cases_total} checks",
              NAMES.get(attempt.code, attempt.code),
              plural(attempt.hints_used, "hint")] for attempt in attempts]
    table = cells if screen.plain else padded(cells, "<<<<<")
    for module, group in groupby(zip(attempts, table, strict=True), key=lambda row: row[0].module):
        if not screen.plain:
            screen.line((module, "strong"))
        for attempt, (when, *others) in group:
            rest = q.listed(
                attempt.device or attempt.engine.partition(",")[0],
                attempt.solution_seen and "solution seen",
                not attempt.today and "earlier tests", not attempt.here and "another machine")
            if screen.plain:
                screen.line(f"{module} {when} ", word(attempt.verdict),
                            f" {q.listed(*others, rest)}")
            else:
                screen.line((rest, "dim"), lead=(
                    f"  {when}  ", word(attempt.verdict),
                    "".join(f" {text} " for text in others if text), " "))
        screen.blank()


def show_report(screen: Screen, overview: Overview, page: Path | None) -> None:
    """Prints the report in short; of one on a page, only the summary."""
    if page:
        screen.line(f"The page is {shown(page.absolute())}")
        screen.line(report_summary(overview))
        return
    certificate = overview.certificate
    screen.pair((("Report", "strong"), f"  {certificate.name}" if certificate.name else ""),
                (certificate.updated or "no record yet", "dim"))
    screen.line(report_summary(overview))
    screen.blank()
    for track, lines in overview.tracks:
        screen.pair((f"Track {track.number}  ", (track.title, "strong")),
                    f"{certificate.tracks[track.id]}")
        for line in lines:
            waiting = line.entry.state is ModuleState.WAITING
            screen.line((line.module.id, "" if waiting else "strong"),
                        (f"  {details(line)}", "dim" if waiting else ""),
                        lead=screen.verdict(STATE_WORDS[line.entry.state]))
        screen.blank()
    _days(screen, overview)
    for one in overview.benched:
        screen.line(f"Benchmark of {one.module.id}, {one.stored.date}: "
                    f"{' '.join(outcome(one.stored))}")
    if overview.benched:
        screen.blank()


def _days(screen: Screen, overview: Overview) -> None:
    by_day = [(day, list(group)) for day, group in groupby(overview.days, lambda one: one.day)]
    for day, group in by_day[-_DAYS:]:
        screen.line(", ".join(f"{one.module} {plural(one.grades, 'grade')}"
                              f"{' (passed)' if one.passes else ''}" for one in group),
                    lead=(f"{day}  ",))
    if len(by_day) > _DAYS:
        screen.line((f"{len(by_day) - _DAYS} earlier days are on the page: "
                     "`tritonlab report --html FILE`.", "dim"))
    if by_day:
        screen.blank()


def report_summary(overview: Overview) -> str:
    """Totals, evidence and the planned time left, in sentences."""
    core, electives = overview.certificate.core, overview.certificate.electives
    return q.listed(
        f"{core.passed} of {core.total} core modules"
        f"{of_electives(electives)} are passed.",
        levels(overview.certificate),
        f"{plural(len(overview.attempts), 'grade')} in all.",
        overview.minutes_left and "Planned time of the core modules that are ready and not passed: "
                                  f"{hours(overview.minutes_left)}.", by=" ")


def of_electives(total: Total) -> str:
    """The end of a sentence about core modules; empty if there are no electives."""
    return f" and {total.passed} of {total.total} electives" if total.total else ""


def checks(entry: CertificateEntry) -> str:
    """The passed and all checks of the best grade."""
    return f"{entry.cases_passed} of {entry.cases_total}" if entry.cases_total else ""


def details(line: ModuleProgress) -> str:
    """Evidence, checks, grades, hints and planned time of a module."""
    entry = line.entry
    return q.listed(
        entry.done and entry.evidence,
        entry.cases_total and f"best {checks(entry)} checks",
        plural(len(line.attempts), "grade") if line.attempts else "",
        line.hints and plural(line.hints, "hint"),
        entry.solution_seen and "solution seen",
        f"{hours(line.module.minutes)} planned")


def outcome(stored: StoredBenchmark) -> Iterator[str]:
    """Whether a benchmark was measured, and how one's own kernels compare."""
    from tritonlab.render import bench_text as words

    yield sentence(words.promise(stored.benchmark))
    for chart in stored.benchmark.charts:
        if text := words.summary(chart):
            yield f"{chart.function}: {text}" if len(stored.benchmark.charts) > 1 else text


def show_merge(screen: Screen, merge: Merge) -> None:
    """Prints the number of merged records and what they changed."""
    def were(number: int) -> str:
        return "was" if number == 1 else "were"

    def records(number: int) -> str:
        return "1 record" if number == 1 else f"{number} records"

    added = merge.added
    where, others = shown(merge.source), merge.there - added
    if not added:
        every = "The only record" if merge.there == 1 else f"All {records(merge.there)}"
        screen.line(f"{every} in {where} {were(merge.there)} here already; nothing was changed.")
    else:
        screen.line(f"{records(added)} came in from {where}"
                    f"{f'; {others} {were(others)} here already' if others else ''}.")
        screen.line(f"Core modules passed: {merge.before.core} before, {merge.after.core} now."
                    if merge.before.core != merge.after.core
                    else f"Core modules passed: {merge.after.core}, as before.")
        if merge.gained:
            screen.line(f"Passed there and not here before: {', '.join(merge.gained)}.")
        screen.line("Exercises were not copied: only the record was merged.")
