"""A certificate as text, for terminals and pages; and its claims after grading again."""

from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from grader.text import plural
from tritonlab.errors import shown
from tritonlab.progress.certificate import EVIDENCE, Certificate, CertificateEntry, ModuleState
from tritonlab.render import quantities as q
from tritonlab.render.progress import EARLIER, STATE_WORDS, show_totals
from tritonlab.render.screen import Screen
from tritonlab.verify.verify import Standing, Verification

HASH = 12  # digits of a SHA-256 that are shown
MEANINGS = {
    "correct": "results and memory safety were verified",
    "efficient": "and that traffic and compiled code are within limits; no speed was measured",
    "fast": "and that a GPU computes the same values at the required measured speed",
}
_WORDS = {  # the word and its style; what one claim does or is, and what several do
    Standing.HOLDS: ("HOLDS", "pass", "", ""),
    Standing.IN_PART: ("PART", "skip", "holds in part", "hold in part"),
    Standing.TESTS_CHANGED: ("TESTS", "skip", "passes changed tests", "pass changed tests"),
    Standing.DIFFERS: ("OTHER", "fail", "differs", "differ"),
    Standing.FAILS: ("FAILS", "fail", "fails", "fail"),
    Standing.CONTRADICTED: ("FALSE", "fail", "is contradicted", "are contradicted"),
    Standing.MISSING: ("NONE", "fail", "has no source", "have no source"),
    Standing.UNKNOWN: ("NONE", "fail", "is of no known module", "are of no known module"),
    Standing.UNDECIDED: ("OPEN", "skip", "is undecided", "are undecided"),
    Standing.BROKEN: ("ERROR", "fail", "was not graded", "were not graded")}


def passed(certificate: Certificate) -> list[CertificateEntry]:
    """Modules that passed under today's tests or earlier ones."""
    return [entry for entry in certificate.entries if entry.done]


def left(certificate: Certificate) -> str:
    """A sentence with the core modules that are not passed yet."""
    missing = [entry.module for entry in certificate.entries if entry.core and not entry.done]
    return f"Not passed yet, of the core modules that are ready: {', '.join(missing)}." \
        if missing else ""


def levels(certificate: Certificate) -> list[tuple[str, str]]:
    """The levels of evidence that occur and those below them, with their meanings."""
    reached = {entry.evidence for entry in passed(certificate)} & set(EVIDENCE[1:])
    highest = max(map(EVIDENCE.index, reached), default=0)
    return [(level, MEANINGS[level]) for level in EVIDENCE[1:highest + 1]]


def settings(certificate: Certificate) -> dict[str, str]:
    """Versions that modules were graded with, and the letter by which rows refer to them."""
    texts = dict.fromkeys(map(setting, passed(certificate)))
    return {text: _letter(number) for number, text in enumerate(texts)}


def setting(entry: CertificateEntry) -> str:
    """The versions that a module was graded with."""
    return q.listed(f"grader {entry.grader_version or 'unknown'}", _versions(entry))


def _versions(entry: CertificateEntry) -> str:
    return ", ".join(f"{name} {version}" for name, version in sorted(entry.versions.items()))


def _letter(number: int) -> str:
    """a to z, then aa, ab and so on."""
    return ("" if number < 26 else _letter(number // 26 - 1)) + chr(ord("a") + number % 26)


def checks(entry: CertificateEntry) -> str:
    """Counts of checks: passed, skipped, too noisy."""
    if not entry.cases_total:
        return "not counted"
    noisy = entry.cases_total - entry.cases_passed - entry.cases_skipped
    missing = " and ".join(f"{number} {why}" for number, why in (
        (entry.cases_skipped, "skipped"), (noisy, "too noisy")) if number > 0)
    return f"{entry.cases_passed} of {plural(entry.cases_total, 'check')}" \
           f"{f'; {missing}, not shown' if missing else ''}"


def hardware(entry: CertificateEntry) -> str:
    """The GPU of a grade, or the target it was compiled for."""
    if entry.device:
        return f"ran on {entry.device}"
    return f"compiled for {entry.target}, run on a CPU" if entry.target else \
        "run on a CPU"


def machines(certificate: Certificate) -> Iterator[str]:
    """Measured rates of each GPU."""
    yield from dict.fromkeys(f"{entry.device} {rates}" for entry in passed(certificate)
                             if entry.device and (rates := ceilings(entry.ceilings)))


def notes(entry: CertificateEntry) -> str:
    """Hints, solution and earlier tests, as far as they apply."""
    return q.listed(entry.hints_used and plural(entry.hints_used, "hint"),
                    entry.solution_seen and "solution seen",
                    entry.state is ModuleState.OUTDATED and "by earlier tests")


def print_size(certificate: Certificate) -> str:
    """The CSS class of the type size that fits one printed sheet."""
    lines = len(passed(certificate)) + len(settings(certificate)) / 2
    return "small" if lines > 14 else "middle" if lines > 7 else "large"


def ceilings(rates: Mapping[str, Any]) -> str:
    """Measured rates of a GPU, such as ``copies 4,282 GB/s and multiplies 790 TFLOP/s``."""
    copy, matmul = rates.get("copy_gb_s"), rates.get("matmul_tflops")
    if not isinstance(copy, float | int) or not isinstance(matmul, float | int):
        return ""
    when = str(rates.get("measured_at", ""))[:10]
    return (f"copies {copy:,.0f} GB/s and multiplies {matmul:,.0f} TFLOP/s"
            f"{f', measured on {when}' if when else ''}")


# On a terminal


def show(screen: Screen, certificate: Certificate, page: Path | None) -> None:
    """Prints totals by track, then each module that was started; of a page, only totals."""
    name = f"Name: {certificate.name or 'none given (`--name` sets one)'}"
    if page:
        screen.line(f"The page is {shown(page.absolute())}; print it from a browser, on one sheet.")
        electives = f"Electives: {certificate.electives}. " if certificate.electives.total else ""
        screen.line(f"Core modules: {certificate.core}. {electives}{name}.")
        return
    screen.pair((("Certificate", "strong"),), (certificate.updated or "no record yet", "dim"))
    screen.line(name)
    screen.blank()
    show_totals(screen, certificate)
    screen.blank()
    for entry in certificate.entries:
        if entry.state is not ModuleState.WAITING:
            _entry(screen, entry)


def _entry(screen: Screen, entry: CertificateEntry) -> None:
    facts = q.listed(
        EARLIER if entry.state is ModuleState.OUTDATED else "",
        entry.cases_total and f"{entry.cases_passed} of {entry.cases_total} checks passed",
        entry.cases_skipped and f"{entry.cases_skipped} skipped",
        entry.evidence and f"evidence: {entry.evidence}",
        entry.hints_used and plural(entry.hints_used, "hint"),
        entry.solution_seen and "solution seen")
    screen.line((entry.module, "strong"), f"  {facts or entry.state}",
                lead=screen.verdict(STATE_WORDS[entry.state]))
    if entry.source_sha256 is not None:
        rates = ceilings(entry.ceilings)
        screen.facts(
            entry.module,
            f"graded {entry.date} by grader {entry.grader_version} ({entry.engine}; "
            f"{_versions(entry)})",
            f"source {entry.source_sha256[:HASH]}, tests {(entry.suite_sha256 or '')[:HASH]}, "
            f"seed {entry.seed}, isolation {entry.isolation}",
            entry.device and f"ran on {entry.device}{f', which {rates}' if rates else ''}")
    screen.blank()


def show_verification(screen: Screen, verification: Verification, sources: Path) -> None:
    """Prints the certificate, the standing of each claim, and the sum."""
    claims = verification.claims
    screen.line(("Certificate", "strong"), f" of {claims.name or 'nobody named'}, "
                f"{claims.updated or 'without a date'}, made by tritonlab {claims.tritonlab}")
    screen.line(f"SHA-256 {claims.fingerprint[:32]}; on a page, the number beside Certificate is "
                "the same.")
    screen.line(f"Sources: {shown(sources.absolute())}")
    screen.blank()
    for check in verification.checks:
        text, style, *_ = _WORDS[check.standing]
        screen.line((check.claim.module, "strong"),
                    f"  {check.standing}; claimed: {check.claim.evidence or 'no evidence'}"
                    f"{', solution seen' if check.claim.solution_seen else ''}",
                    lead=("  ", (f"{text:<5}", style), " "))
        screen.facts(check.claim.module, check.text.replace("`", ""))
    for sentence in verification.wrong:
        screen.line(sentence, lead=(("FALSE", "fail"), " "))
    screen.blank()
    screen.line(claims_summary(verification))


def claims_summary(verification: Verification) -> str:
    """Counts claims by standing, as a sentence."""
    if not verification.checks:
        return "The certificate claims no module as passed."
    counted = Counter(check.standing for check in verification.checks)
    claimed = plural(len(verification.checks), "claimed module")
    holds = "holds" if len(verification.checks) == 1 else "hold"
    others = [f"{counted[standing]} {several if counted[standing] > 1 else one}"
              for standing, (*_, one, several) in _WORDS.items() if one and counted[standing]]
    return "; ".join(filter(None, (f"{counted[Standing.HOLDS]} of {claimed} {holds}",
                                   ", ".join(others)))) + "."
