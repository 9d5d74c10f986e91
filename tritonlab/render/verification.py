"""What became of a certificate's claims, a paragraph each."""

from __future__ import annotations

from tritonlab.render import quantities as q
from tritonlab.render.screen import Screen
from tritonlab.verification import Check, Standing, Verification

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


def show(screen: Screen, found: Verification, sources: str, next_command: str,
         before: str) -> None:
    """The certificate, each of its modules with what grading again has shown, and the sum."""
    claims = found.claims
    screen.line(("Certificate", "strong"), f" of {claims.name or 'nobody named'}, "
                f"{claims.updated or 'without a date'}, made by tritonlab {claims.version}")
    screen.line(f"SHA-256 {claims.fingerprint[:32]}; on a page, the number beside Certificate is "
                "the same.")
    screen.line(f"Sources: {sources}")
    screen.blank()
    for check in found.checks:
        _check(screen, check)
    for sentence in found.wrong:
        screen.line(sentence, lead=(("FALSE", "fail"), " "))
    screen.blank()
    screen.line(summary(found))
    screen.next(next_command, before)


def _check(screen: Screen, check: Check) -> None:
    text, style = _WORDS[check.standing]
    screen.line((check.claim.module, "strong"),
                f"  {check.standing}; claimed: {check.claim.evidence or 'no evidence'}"
                f"{', solution seen' if check.claim.solution_seen else ''}",
                lead=("" if screen.plain else "  ", (f"{text:<5}", style), " "))
    indent = (f"{check.claim.module}: ",) if screen.plain else (" " * 8,)
    screen.line((check.said.replace("`", ""), "dim"), lead=indent)


def summary(found: Verification) -> str:
    """How many claims hold, how many only in part, and how many do not."""
    if not found.checks:
        return "The certificate claims no module as passed."
    counted = {standing: sum(check.standing is standing for check in found.checks)
               for standing in Standing}
    claimed = q.plural(len(found.checks), "claimed module")
    said = [f"{counted[standing]} {words[counted[standing] > 1]}"
            for standing, words in _COUNTED.items() if counted[standing]]
    return f"{counted[Standing.HOLDS]} of {claimed} " \
           f"{'holds' if len(found.checks) == 1 else 'hold'}" \
           f"{'; ' + ', '.join(said) if said else ''}."
