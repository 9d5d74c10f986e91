"""Reports for authors: checks and mutants of modules, files of a new module."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from tritonlab.authoring.runner import CourseProof, MutantResult, Proof
from tritonlab.authoring.scaffold import Plan
from tritonlab.errors import shown
from tritonlab.render.screen import Part, Screen, word


def show_check(screen: Screen, proved: CourseProof, next_command: str, note: str = "") -> None:
    """Prints all checks and mutants of every module.

    Args:
        note: where the details of a failure of the check itself are.
    """
    for proof in proved.proofs:
        _module(screen, proof)
        screen.blank()
    for stray in proved.strays:
        screen.line(stray, lead=(word("FAILED"), " "))
    if proved.broken:
        screen.line(f"The check itself failed. {note}", lead=(word("ERROR"), " "))
    _summary(screen, proved)
    screen.next(next_command)


def _module(screen: Screen, proof: Proof) -> None:
    lead = f"{proof.module}: " if screen.plain else "  "
    if not screen.plain:
        screen.pair(((proof.module, "strong"), "  ", (proof.title, "dim")),
                    (f"{proof.seconds:.1f} s of work", "dim"))
    for outcome in proof.outcomes:
        name = outcome.name if outcome.seconds < 1 else f"{outcome.name} ({outcome.seconds:.1f} s)"
        screen.line(name, lead=(lead, _word(outcome.passed), " "))
        for fault in outcome.faults:
            screen.line(fault, lead=(f"{lead}{outcome.name}: " if screen.plain else " " * 8,))
    if proof.mutants:
        _matrix(screen, proof.mutants, lead)


def _matrix(screen: Screen, mutants: Sequence[MutantResult], lead: str) -> None:
    """Prints for each mutant the case, the code and the number of runs that killed it."""
    if screen.plain:
        for mutant in mutants:
            once = "" if mutant.drawn else ", which has no random inputs"
            screen.line(f"mutant {mutant.id} ({mutant.title}): {', '.join(mutant.codes[:1])} by "
                        f"'{mutant.case}'{once}, {mutant.kills} of {mutant.runs} runs, "
                        f"{mutant.seconds:.1f} s", lead=(lead, _word(mutant.passed), " "))
            for fault in mutant.faults:
                screen.line(fault, lead=(f"{lead}mutant {mutant.id}: ",))
        return
    ids = max(2, *(len(mutant.id) for mutant in mutants))
    screen.line((f"        {'id':<{ids}}  code  runs  time   mutant, and the case that killed it",
                 "dim"))
    for mutant in mutants:
        head: tuple[Part, ...] = (
            lead, _word(mutant.passed),
            f" {mutant.id:<{ids}}  {', '.join(mutant.codes[:1]):<4}  "
            f"{mutant.kills}/{mutant.runs:<3} {mutant.seconds:4.1f} s  ")
        screen.line(mutant.title, lead=head)
        indent = (" " * sum(len(part if isinstance(part, str) else part[0]) for part in head),)
        if mutant.case:
            once = "" if mutant.drawn else " (no random inputs: once is enough)"
            screen.line((mutant.case + once, "dim"), lead=indent)
        for fault in mutant.faults:
            screen.line((fault, "fail"), lead=indent)


def _summary(screen: Screen, proved: CourseProof) -> None:
    mutants = [mutant for proof in proved.proofs for mutant in proof.mutants]
    killed = sum(mutant.passed for mutant in mutants)
    kills, runs = sum(m.kills for m in mutants), sum(m.runs for m in mutants)
    whole = sum(proof.passed for proof in proved.proofs)
    verdict: Part = ("PASSED", "pass") if proved.passed else ("FAILED", "fail")
    count = len(proved.proofs)
    screen.line(verdict, f"  {whole} of {count} module{'s' if count != 1 else ''} proved; {killed} "
                         f"of {len(mutants)} mutants killed, in {kills} of {runs} runs; "
                         f"{proved.seconds:.1f} s.")


def _word(passed: bool) -> Part:
    return word("PASSED" if passed else "FAILED")


def show_new(screen: Screen, plan: Plan, files: Sequence[Path], next_command: str) -> None:
    """Prints the files of a new module and the next steps."""
    screen.line((plan.id, "strong"), "  ", (plan.title, "dim"))
    screen.blank()
    screen.line("These files were made; they work as they are, for a kernel that doubles numbers:")
    for path in files:
        screen.line(shown(path), lead=("  ",))
    screen.blank()
    for number, step in enumerate(plan.steps, 1):
        screen.line(step, lead=(f"{number}. ",))
    screen.blank()
    screen.next(next_command)
