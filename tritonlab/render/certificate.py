"""The certificate as a readable page."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tritonlab.certificate import Certificate, Entry, State
from tritonlab.render.course import EARLIER, STATE_WORDS
from tritonlab.render.screen import Screen, word


def show(screen: Screen, certificate: Certificate, next_command: str) -> None:
    """Totals per track, then what is known about each module that was begun."""
    screen.pair((("Certificate", "strong"),), (certificate.updated or "no record yet", "dim"))
    screen.line(f"Name: {certificate.name or 'none given (`--name` sets one)'}")
    screen.blank()
    for track, total in certificate.tracks.items():
        screen.pair((f"Track {track.removeprefix('track')}  {certificate.titles[track]}",),
                    f"{total}")
    screen.pair((("Core modules", "strong"),), (f"{certificate.core}", "strong"))
    screen.pair((("Electives", "strong"), ("  apart, never needed", "dim")),
                f"{certificate.electives}")
    screen.blank()
    for entry in certificate.entries:
        if entry.state is not State.WAITING:
            _entry(screen, entry)
    screen.next(next_command)


def show_page(screen: Screen, certificate: Certificate, path: str, next_command: str) -> None:
    """Where the page is, and what stands on it in short."""
    screen.line(f"The page is {path}; print it from a browser, on one sheet.")
    screen.line(f"Core modules: {certificate.core}. Electives: {certificate.electives}. "
                f"Name: {certificate.name or 'none given (`--name` sets one)'}.")
    screen.next(next_command, "Grade again what it says: ")


def _entry(screen: Screen, entry: Entry) -> None:
    lead = ("" if screen.plain else "  ", word(STATE_WORDS[entry.state]), " ")
    facts = [EARLIER] if entry.state is State.OUTDATED else []
    if entry.cases_total:
        facts.append(f"{entry.cases_passed} of {entry.cases_total} checks passed")
    if entry.cases_skipped:
        facts.append(f"{entry.cases_skipped} skipped")
    if entry.evidence:
        facts.append(f"evidence: {entry.evidence}")
    if entry.hints_used:
        facts.append("1 hint" if entry.hints_used == 1 else f"{entry.hints_used} hints")
    if entry.solution_seen:
        facts.append("solution seen")
    screen.line((entry.module, "strong"), f"  {', '.join(facts) or entry.state}", lead=lead)
    if entry.source_sha256 is None:
        screen.blank()
        return
    versions = ", ".join(f"{name} {version}" for name, version in sorted(entry.versions.items()))
    indent = (f"{entry.module}: ",) if screen.plain else (" " * 8,)
    for fact in (
        f"graded {entry.date} by grader {entry.grader_version} ({entry.engine}; {versions})",
        f"source {entry.source_sha256[:12]}, tests {(entry.suite_sha256 or '')[:12]}, "
        f"seed {entry.seed}, isolation {entry.isolation}",
    ):
        screen.line((fact, "dim"), lead=indent)
    if entry.device:
        rates = ceilings(entry.ceilings)
        screen.line((f"ran on {entry.device}{f', which {rates}' if rates else ''}", "dim"),
                    lead=indent)
    screen.blank()


def ceilings(told: Mapping[str, Any]) -> str:
    """How fast a GPU was found to be, such as ``copies 4,282 GB/s and multiplies 790 TFLOP/s``."""
    copy, matmul = told.get("copy_gb_s"), told.get("matmul_tflops")
    if not isinstance(copy, float | int) or not isinstance(matmul, float | int):
        return ""
    when = str(told.get("measured_at", ""))[:10]
    return (f"copies {copy:,.0f} GB/s and multiplies {matmul:,.0f} TFLOP/s"
            f"{f', measured on {when}' if when else ''}")
