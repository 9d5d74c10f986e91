"""The claims of a certificate after grading again."""

from __future__ import annotations

from collections import Counter

from tritonlab.render import quantities as q
from tritonlab.render.screen import Screen
from tritonlab.verify.verify import Standing, Verification

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


def show(screen: Screen, verification: Verification, sources: str, next_command: str,
         before: str) -> None:
    """Prints the certificate, the standing of each claim, and the sum."""
    claims = verification.claims
    screen.line(("Certificate", "strong"), f" of {claims.name or 'nobody named'}, "
                f"{claims.updated or 'without a date'}, made by tritonlab {claims.version}")
    screen.line(f"SHA-256 {claims.fingerprint[:32]}; on a page, the number beside Certificate is "
                "the same.")
    screen.line(f"Sources: {sources}")
    screen.blank()
    for check in verification.checks:
        text, style, *_ = _WORDS[check.standing]
        screen.line((check.claim.module, "strong"),
                    f"  {check.standing}; claimed: {check.claim.evidence or 'no evidence'}"
                    f"{', solution seen' if check.claim.solution_seen else ''}",
                    lead=("  ", (f"{text:<5}", style), " "))
        screen.line((check.text.replace("`", ""), "dim"), lead=(screen.below(check.claim.module),))
    for sentence in verification.wrong:
        screen.line(sentence, lead=(("FALSE", "fail"), " "))
    screen.blank()
    screen.line(summary(verification))
    screen.next(next_command, before)


def summary(verification: Verification) -> str:
    """Counts claims by standing, as a sentence."""
    if not verification.checks:
        return "The certificate claims no module as passed."
    counted = Counter(check.standing for check in verification.checks)
    claimed = q.plural(len(verification.checks), "claimed module")
    holds = "holds" if len(verification.checks) == 1 else "hold"
    others = [f"{counted[standing]} {several if counted[standing] > 1 else one}"
              for standing, (*_, one, several) in _WORDS.items() if one and counted[standing]]
    return "; ".join(filter(None, (f"{counted[Standing.HOLDS]} of {claimed} {holds}",
                                   ", ".join(others)))) + "."
