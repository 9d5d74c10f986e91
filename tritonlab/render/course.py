"""The course as lists: all modules, and how far the learner has come."""

from __future__ import annotations

from typing import Any

from tritonlab.certificate import EVIDENCE, FAST, Certificate, Entry, State
from tritonlab.course import Course, Module, Track
from tritonlab.render.screen import Screen, word

STATE_WORDS = {State.PASSED: "PASS", State.TRIED: "OPEN", State.STARTED: "OPEN",
               State.OUTDATED: "PASS", State.WAITING: "WAIT"}
LEGEND = "PASS: passed. OPEN: begun, not passed yet. WAIT: not begun yet."
EARLIER = "passed under earlier tests"


def hours(minutes: int) -> str:
    """Planned time, such as ``2 h`` or ``1.5 h``; minutes below an hour."""
    return f"{minutes} min" if minutes < 60 else f"{minutes / 60:.3g} h"


def show_list(screen: Screen, course: Course, certificate: Certificate, next_command: str) -> None:
    """Every track with its modules."""
    for track in course.tracks:
        _track(screen, track, certificate)
    screen.line((LEGEND, "dim"))
    _totals(screen, certificate)
    screen.next(next_command)


def _track(screen: Screen, track: Track, certificate: Certificate) -> None:
    total = certificate.tracks[track.id]
    screen.pair((f"Track {track.number}  ", (track.title, "strong")), f"{total} passed")
    if not screen.plain:
        screen.line((track.blurb, "dim"), lead=("  ",))
    width = max((len(module.id) for module in track.modules), default=0)
    for module in track.modules:
        entry = certificate.entry(module)
        state = word(STATE_WORDS[entry.state])
        elective = "" if module.core else " (elective)"
        evidence = {State.PASSED: entry.evidence, State.OUTDATED: EARLIER}.get(entry.state, "")
        if screen.plain:
            screen.line(state, f" {module.id}: {module.title}{elective}, {hours(module.minutes)}"
                               f"{f', {evidence}' if evidence else ''}")
        else:
            more = f"  {evidence}" if evidence else ""
            screen.pair((module.title, (f"{elective}{more}", "dim")),
                        (hours(module.minutes), "dim"), indent=2,
                        lead=(state, f" {module.id:<{width}}  "))
    if not track.modules:
        screen.line(("No module of this track is here yet.", "dim"),
                    lead=() if screen.plain else ("  ",))
    screen.blank()


def show_status(screen: Screen, course: Course, certificate: Certificate, current: Module | None,
                workspace: str | None, next_command: str) -> None:
    """Progress: totals, what is open, what is left."""
    for track in course.tracks:
        screen.pair((f"Track {track.number}  {track.title}",),
                    f"{certificate.tracks[track.id]} passed")
    _totals(screen, certificate)
    screen.blank()
    by_id = {entry.module: entry for entry in certificate.entries}
    opened = [module for module in course.modules if by_id[module.id].is_open]
    for module in opened:
        entry = by_id[module.id]
        screen.line(module.id, f"  {_progress(entry)}",
                    lead=("" if screen.plain else "  ", word(STATE_WORDS[entry.state]), " "))
    earlier = [e for e in certificate.entries if e.state is State.OUTDATED]
    for entry in earlier:
        screen.line(entry.module, f"  {EARLIER}, which counts. {_regraded(entry)}",
                    lead=("" if screen.plain else "  ", word(STATE_WORDS[entry.state]), " "))
        screen.command(f"tritonlab grade {entry.module}",
                       lead="Grade it again: " if screen.plain else " " * 8 + "Grade it again: ")
    if opened or earlier:
        screen.blank()
    if current:
        screen.line("Current module: ", (current.id, "strong"),
                    f" (planned {hours(current.minutes)})")
    left = sum(m.minutes for m in course.modules
               if m.core and not by_id[m.id].done)
    if left:
        screen.line(f"Planned time of the core modules that are ready: {hours(left)}.")
    if evidence := _evidence(certificate):
        screen.line(evidence)
    screen.line(f"Workspace: {workspace or 'none yet'}")
    screen.next(next_command)


def _evidence(certificate: Certificate) -> str:
    """What the passed modules rest on, and how to have more shown."""
    levels = [entry.evidence for entry in certificate.entries if entry.done]
    counted = [f"{levels.count(level)} {level}" for level in reversed(EVIDENCE)
               if level and level in levels]
    if not counted:
        return ""
    more = "" if set(levels) == {FAST} else \
        " On a machine with a GPU, `tritonlab grade --pending` shows what is fast."
    return f"Evidence: {', '.join(counted)}.{more}"


def _progress(entry: Entry) -> str:
    grades = "1 grade" if entry.grades == 1 else f"{entry.grades} grades"
    if entry.state is State.STARTED:
        return "started, not graded yet"
    return f"best {entry.cases_passed} of {entry.cases_total} checks, {grades}"


def _regraded(entry: Entry) -> str:
    """What is known of a pass under earlier tests."""
    return "They have changed since." if entry.regraded is None else \
        "Under today's it is not passed yet."


def _totals(screen: Screen, certificate: Certificate) -> None:
    screen.pair((("Core modules", "strong"),), f"{certificate.core} passed")
    screen.pair((("Electives", "strong"), ("  apart, never needed", "dim")),
                f"{certificate.electives} passed")


def list_to_dict(course: Course, certificate: Certificate) -> dict[str, Any]:
    """What ``tritonlab list --json`` prints."""
    entries = {entry.module: entry for entry in certificate.entries}
    return {
        "schema": 1,
        "tracks": [
            {
                "id": track.id, "folder": track.folder, "title": track.title,
                "blurb": track.blurb, "starter": track.starter,
                "passed": certificate.tracks[track.id].passed,
                "total": certificate.tracks[track.id].total,
                "modules": [
                    {
                        "id": module.id, "number": module.number, "title": module.title,
                        "summary": module.summary, "core": module.core,
                        "minutes": module.minutes, "state": entries[module.id].state,
                        "evidence": entries[module.id].evidence,
                        "prerequisites": list(module.prerequisites),
                    }
                    for module in track.modules
                ],
            }
            for track in course.tracks
        ],
        "totals": certificate.to_dict()["totals"],
    }
