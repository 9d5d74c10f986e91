"""A certificate in words: what each module rests on, what of it was not shown, on what it ran."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from tritonlab.certificate import EVIDENCE, Certificate, Entry, State
from tritonlab.render import quantities as q
from tritonlab.render.certificate import ceilings

HASH = 12  # digits of a SHA-256 that are shown
MEANINGS = {
    "correct": "results and memory safety were shown",
    "efficient": "and that traffic and compiled code are within limits; no speed was measured",
    "fast": "and that a GPU computes the same, as fast as is asked for, by its clock",
}
_UNKNOWN = "unknown"


@dataclass(frozen=True)
class Setting:
    """The versions that a grade was made with, and the letter by which rows name them."""

    letter: str
    text: str


@dataclass(frozen=True)
class Row:
    """One passed module, in words."""

    module: str
    title: str
    evidence: str
    checks: str
    date: str
    hardware: str
    letter: str  # of the setting; empty where all rows share one
    notes: str
    source: str
    tests: str


def rows(certificate: Certificate, *, core: bool) -> list[Row]:
    """The passed modules that count, or the electives."""
    letters = {one.text: one.letter for one in settings(certificate)}
    alone = len(letters) == 1
    return [Row(
        entry.module, entry.title, entry.evidence or _UNKNOWN, checks(entry), entry.date or "",
        hardware(entry), "" if alone else letters[_setting(entry)], notes(entry),
        (entry.source_sha256 or "")[:HASH], (entry.suite_sha256 or "")[:HASH],
    ) for entry in passed(certificate) if entry.core is core]


def passed(certificate: Certificate) -> list[Entry]:
    """Those that count: passed under today's tests, or under earlier ones."""
    return [entry for entry in certificate.entries if entry.done]


def left(certificate: Certificate) -> str:
    """Which core modules that are ready are not passed; electives are never owed."""
    open_ = [entry.module for entry in certificate.entries
             if entry.core and not entry.done]
    return f"Not passed yet, of the core modules that are ready: {', '.join(open_)}." \
        if open_ else ""


def levels(certificate: Certificate) -> list[tuple[str, str]]:
    """The levels that occur, with all below them, on whose meaning they build."""
    found = {entry.evidence for entry in passed(certificate)} & set(EVIDENCE[1:])
    highest = max((EVIDENCE.index(level) for level in found), default=0)
    return [(level, MEANINGS[level]) for level in EVIDENCE[1:highest + 1]]


def settings(certificate: Certificate) -> list[Setting]:
    """What the passed modules were graded with, each once, in the order of the course."""
    texts = dict.fromkeys(map(_setting, passed(certificate)))
    return [Setting(_letter(number), text) for number, text in enumerate(texts)]


def _setting(entry: Entry) -> str:
    versions = [f"{name} {version}" for name, version in sorted(entry.versions.items())]
    return ", ".join([f"grader {entry.grader_version or _UNKNOWN}", *versions])


def _letter(number: int) -> str:
    """a to z, then aa, ab and so on."""
    return ("" if number < 26 else _letter(number // 26 - 1)) + chr(ord("a") + number % 26)


def checks(entry: Entry) -> str:
    """How many of the checks that decide were passed, and what became of the others."""
    if not entry.cases_total:
        return "not counted"
    said = f"{entry.cases_passed} of {q.plural(entry.cases_total, 'check')}"
    noisy = entry.cases_total - entry.cases_passed - entry.cases_skipped
    not_shown = [f"{entry.cases_skipped} skipped"] * bool(entry.cases_skipped)
    not_shown += [f"{noisy} too noisy"] * (noisy > 0)
    return f"{said}; {' and '.join(not_shown)}, not shown" if not_shown else said


def hardware(entry: Entry) -> str:
    """What it ran on, or what it was compiled for."""
    if entry.device:
        return f"ran on {entry.device}"
    return f"compiled for {entry.target}, run on a processor" if entry.target else \
        "run on a processor"


def machines(certificate: Certificate) -> Iterator[str]:
    """How fast the GPUs were found to be, each once."""
    told = dict.fromkeys((entry.device, ceilings(entry.ceilings)) for entry in passed(certificate)
                         if entry.device)
    for device, rates in told:
        if rates:
            yield f"{device} {rates}"


def notes(entry: Entry) -> str:
    """What help was used, and whether the tests have changed since."""
    used = [q.plural(entry.hints_used, "hint")] if entry.hints_used else []
    return ", ".join([*used, *["solution seen"] * entry.solution_seen,
                      *["by earlier tests"] * (entry.state is State.OUTDATED)])


def print_size(certificate: Certificate) -> str:
    """How large the print is, so that all of it stands on one sheet: a class of the page."""
    lines = len(passed(certificate)) + len(settings(certificate)) / 2
    return "small" if lines > 14 else "middle" if lines > 7 else "large"

