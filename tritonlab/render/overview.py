"""A learner's way in words: states, help, attempts by day, and benchmarks in one line each."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby

from grader.words import sentence
from tritonlab.benches import Kept
from tritonlab.certificate import Entry, State
from tritonlab.overview import Line, Overview
from tritonlab.render import quantities as q
from tritonlab.render.course import STATE_WORDS, hours
from tritonlab.render.screen import Screen, word

STATES = {State.PASSED: "passed", State.OUTDATED: "passed earlier tests", State.TRIED: "open",
          State.STARTED: "started", State.WAITING: "not begun"}
_DAYS = 14  # that the terminal shows


def show(screen: Screen, found: Overview, next_command: str) -> None:
    """The report in short; a page shows more."""
    made = found.certificate
    screen.pair((("Report", "strong"), f"  {made.name}" if made.name else ""),
                (made.updated or "no record yet", "dim"))
    screen.line(summary(found))
    screen.blank()
    for track, lines in found.tracks:
        screen.pair((f"Track {track.number}  ", (track.title, "strong")),
                    f"{made.tracks[track.id]}")
        for line in lines:
            _line(screen, line)
        screen.blank()
    _days(screen, found)
    for text in benched(found):
        screen.line(text)
    if found.benched:
        screen.blank()
    screen.next(next_command)


def _line(screen: Screen, line: Line) -> None:
    lead = ("" if screen.plain else "  ", word(STATE_WORDS[line.entry.state]), " ")
    if line.entry.state is State.WAITING:
        screen.line(line.module.id, (f"  {hours(line.module.minutes)} planned", "dim"), lead=lead)
        return
    screen.line((line.module.id, "strong"), f"  {details(line)}", lead=lead)


def _days(screen: Screen, found: Overview) -> None:
    by_day = [(day, list(group)) for day, group in groupby(found.days, lambda one: one.day)]
    for day, group in by_day[-_DAYS:]:
        tried = ", ".join(f"{one.module} {q.plural(one.grades, 'grade')}"
                          f"{' (passed)' if one.passes else ''}" for one in group)
        screen.line(tried, lead=(f"{day}  ",))
    if len(by_day) > _DAYS:
        screen.line((f"{len(by_day) - _DAYS} earlier days are on the page: "
                     "`tritonlab report --html FILE`.", "dim"))
    if by_day:
        screen.blank()


def summary(found: Overview) -> str:
    """Totals, evidence and what is left, in sentences."""
    made = found.certificate
    said = [f"{made.core.passed} of {made.core.total} core modules and {made.electives.passed} of "
            f"{made.electives.total} electives are passed."]
    if found.levels:
        said.append("Evidence: " + ", ".join(f"{number} {level}" for level, number
                                             in found.levels.items()) + ".")
    said.append(f"{q.plural(len(found.attempts), 'grade')} in all.")
    if found.minutes_left:
        said.append(f"Planned time of the core modules that are ready and not passed: "
                    f"{hours(found.minutes_left)}.")
    return " ".join(said)


def checks(entry: Entry) -> str:
    """Its best grade, in checks."""
    return f"{entry.cases_passed} of {entry.cases_total}" if entry.cases_total else ""


def details(line: Line) -> str:
    """What is known of a module, in one line."""
    entry = line.entry
    facts = [entry.evidence] if entry.done else []
    facts += [f"best {checks(entry)} checks"] * bool(entry.cases_total)
    facts += [q.plural(len(line.attempts), "grade")] * bool(line.attempts)
    facts += [q.plural(line.hints, "hint")] * bool(line.hints)
    facts += ["solution seen"] * entry.solution_seen
    facts.append(f"{hours(line.module.minutes)} planned")
    return ", ".join(filter(None, facts))


def benched(found: Overview) -> Iterator[str]:
    """Each benchmark that was kept: of what, when, and how it came out."""
    for one in found.benched:
        yield f"Benchmark of {one.module.id}, {one.kept.date}: {' '.join(said(one.kept))}"


def said(kept: Kept) -> Iterator[str]:
    """By which clock a benchmark was made, and how one's own kernels came out."""
    from tritonlab.render import benched as words

    yield sentence(words.promise(kept.found))
    for chart in kept.found.charts:
        if text := words.summary(chart):
            yield f"{chart.function}: {text}" if len(kept.found.charts) > 1 else text
