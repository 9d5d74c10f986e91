"""Reports for authors: checks and mutants of modules, files of a new module."""

from collections.abc import Sequence
from pathlib import Path

from grader.text import plural
from tritonlab.authoring.module_files import MUTANTS_NEEDED, VARIANTS_NEEDED
from tritonlab.authoring.runner import CourseProof, Proof
from tritonlab.authoring.scaffold import STEPS, Plan
from tritonlab.errors import shown
from tritonlab.render.screen import Part, Screen, word


def show_check(screen: Screen, proved: CourseProof, note: str) -> None:
    """Prints all checks and mutants; ``note``: where a failure of the check itself is described."""
    for proof in proved.proofs:
        _module(screen, proof)
        screen.blank()
    for stray in proved.strays:
        screen.line(stray, lead=(word("FAILED"), " "))
    if proved.broken:
        screen.line(f"The check itself failed. {note}", lead=(word("ERROR"), " "))
    _summary(screen, proved)


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
    if proof.lacks:
        screen.line(f"{plural(len(proof.mutants), 'mutant')} and "
                    f"{plural(proof.variants, 'right variant')}; a module needs "
                    f"{MUTANTS_NEEDED} and {VARIANTS_NEEDED}: docs/authoring.md.",
                    lead=(lead, word("NOTE"), " "))
    if proof.mutants and not screen.plain:
        ids = max(2, *(len(mutant.id) for mutant in proof.mutants))
        screen.line((f"        {'id':<{ids}}  code  runs  time   mutant, and the case that killed "
                     "it", "dim"))
    for mutant in proof.mutants:
        code = ", ".join(mutant.codes[:1])
        if screen.plain:
            once = "" if mutant.drawn else ", which has no random inputs"
            screen.line(f"mutant {mutant.id} ({mutant.title}): {code} by '{mutant.case}'{once}, "
                        f"{mutant.kills} of {mutant.runs} runs, {mutant.seconds:.1f} s",
                        lead=(lead, _word(mutant.passed), " "))
            below = f"{lead}mutant {mutant.id}: "
        else:
            facts = (f" {mutant.id:<{ids}}  {code:<4}  {mutant.kills}/{mutant.runs:<3} "
                     f"{mutant.seconds:4.1f} s  ")
            screen.line(mutant.title, lead=(lead, _word(mutant.passed), facts))
            below = " " * (len(lead) + len(_word(mutant.passed)[0]) + len(facts))
            if mutant.case:
                once = "" if mutant.drawn else " (no random inputs: once is enough)"
                screen.line((mutant.case + once, "dim"), lead=(below,))
        for fault in mutant.faults:
            screen.line((fault, "fail"), lead=(below,))


def _summary(screen: Screen, proved: CourseProof) -> None:
    mutants = [mutant for proof in proved.proofs for mutant in proof.mutants]
    killed = sum(mutant.passed for mutant in mutants)
    kills, runs = sum(m.kills for m in mutants), sum(m.runs for m in mutants)
    whole = sum(proof.passed for proof in proved.proofs)
    verdict: Part = ("PASSED", "pass") if proved.passed else ("FAILED", "fail")
    screen.line(verdict, f"  {whole} of {plural(len(proved.proofs), 'module')} proved; {killed} "
                         f"of {len(mutants)} mutants killed, in {kills} of {runs} runs; "
                         f"{proved.seconds:.1f} s.")
    checks, cached = proved.cached["checks"], proved.cached["mutants"]
    if checks or cached:
        others = f" and {plural(checks, 'other check')}" if checks else ""
        screen.line(f"{cached} of {plural(len(mutants), 'mutant')}{others} were proved before; "
                    "--no-cache proves them anew.")


def _word(passed: bool) -> tuple[str, str]:
    return word("PASSED" if passed else "FAILED")


def show_new(screen: Screen, plan: Plan, files: Sequence[Path]) -> None:
    """Prints the files of a new module and what to do with them."""
    screen.line((plan.id, "strong"), "  ", (plan.title, "dim"))
    screen.blank()
    screen.line("These files were made; they work as they are, for a kernel that doubles numbers:")
    for path in files:
        screen.line(shown(path), lead=("  ",))
    screen.blank()
    for number, step in enumerate(STEPS, 1):
        screen.line(step, lead=(f"{number}. ",))
    screen.blank()


def show_new_course(screen: Screen, folder: Path, files: Sequence[Path]) -> None:
    """Prints the files of a new course."""
    screen.line((shown(folder), "strong"), "  has a course with one track and one module:")
    for path in files:
        screen.line(shown(path), lead=("  ",))
    screen.blank()
    screen.line("The module works as it is, for a kernel that doubles numbers. "
                "`tritonlab check` lists the places that wait for an author.")
