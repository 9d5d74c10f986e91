"""The claims of a certificate after grading again."""

from __future__ import annotations

from tritonlab.render import quantities as q
from tritonlab.render.screen import Screen
from tritonlab.verify.verify import ClaimCheck, Standing, Verification

_WORDS = {
    Standing.HOLDS: ("HOLDS", "pass"), Standing.IN_PART: ("PART", "skip"),
    Standing.TESTS_CHANGED: ("TESTS", "skip"), Standing.DIFFERS: ("OTHER", "fail"),
    Standing.FAILS: ("FAILS", "fail"), Standing.CONTRADICTED: ("FALSE", "fail"),
    Standing.MISSING: ("NONE", "fail"), Standing.UNKNOWN: ("NONE", "fail"),
    Standing.UNDECIDED: ("OPEN", "skip"), Standing.BROKEN: ("ERROR", "fail")}
_COUNTED = {  # what one claim does or is, and what several do
    Standing.IN_PART: ("holds in part", "hold in part"),
    Standing.TESTS_CHANGED: ("passes changed tests", "pass changed tests"),
    Standing.DIFFERS: ("differs", "differ"), Standing.FAILS: ("fails", "fail"),
    Standing.CONTRADICTED: ("is contradicted", "are contradicted"),
    Standing.MISSING: ("has no source", "have no source"),
    Standing.UNKNOWN: ("is of no known module", "are of no known module"),
    Standing.UNDECIDED: ("is undecided", "are undecided"),
    Standing.BROKEN: ("was not graded", "were not graded")}


def show(screen: Screen, verification: Verification, sources: str, next_command: str,
         before: str) -> None:
    """Prints the certificate, the standing of each claim, and the sum."""
    claims = verification.claims
    screen.line(("Certificate", "strong"), f" of {claims.name or 'nobody named'}, "
                f"{claims.updated or 'without a date'}, made by tritonlab {claims.tritonlab}")
    screen.line(f"SHA-256 {claims.fingerprint[:32]}; on a page, the number beside Certificate is "
                "the same.")
    screen.line(f"Sources: {sources}")
    screen.blank()
    for check in verification.checks:
        _check(screen, check)
    for sentence in verification.wrong:
        screen.line(sentence, lead=(("FALSE", "fail"), " "))
    screen.blank()
    screen.line(summary(verification))
    screen.next(next_command, before)


def _check(screen: Screen, check: ClaimCheck) -> None:
    text, style = _WORDS[check.standing]
    screen.line((check.claim.module, "strong"),
                f"  {check.standing}; claimed: {check.claim.evidence or 'no evidence'}"
                f"{', solution seen' if check.claim.solution_seen else ''}",
                lead=("  ", (f"{text:<5}", style), " "))
    screen.line((check.text.replace("`", ""), "dim"), lead=(screen.below(check.claim.module),))


def summary(verification: Verification) -> str:
    """Counts claims by standing, as a sentence."""
    if not verification.checks:
        return "The certificate claims no module as passed."
    counted = {standing: sum(check.standing is standing for check in verification.checks)
               for standing in Standing}
    claimed = q.plural(len(verification.checks), "claimed module")
    others = [f"{counted[standing]} {words[counted[standing] > 1]}"
            for standing, words in _COUNTED.items() if counted[standing]]
    return f"{counted[Standing.HOLDS]} of {claimed} " \
           f"{'holds' if len(verification.checks) == 1 else 'hold'}" \
           f"{'; ' + ', '.join(others) if others else ''}."
