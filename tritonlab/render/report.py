"""The report of a grade: checks in groups, the first failure in full, the next command."""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace

from grader.diagnosis.messages import NOT_WRITTEN
from grader.report import CaseResult, Details, Finding, Kind, Report, Skip, Verdict
from tritonlab.course.course import Module
from tritonlab.errors import brief
from tritonlab.grading import hints
from tritonlab.grading.gpu_upgrade import Upgrade
from tritonlab.progress.certificate import FAST
from tritonlab.progress.journal import JournalReading
from tritonlab.render import quantities as q
from tritonlab.render.screen import Part, Screen, cropped, padded, word

GROUPS = {Kind.CORRECTNESS: "Correctness", Kind.EDGE: "Edge cases", Kind.PROPERTY: "Properties",
          Kind.CALL: "Calls", Kind.PERFORMANCE: "Performance"}
_FOLD_ABOVE = 8  # checks of a group that are still shown one a line
_HEAD_LINES, _TAIL_LINES = 4, 2  # of what the learner's code printed
_KERNEL_LINES = 12  # of what a kernel printed


def show(screen: Screen, module: Module, report: Report, note: str, replay: str,
         reading: JournalReading, *, verbose: bool = False) -> None:
    """Prints a report.

    Args:
        note: where the details of a failure of the grader are.
        replay: the command that repeats the first failure alone, unless it comes next anyway.
        reading: of the journal, which knows what hints were shown.
        verbose: name every check, instead of counting those without facts if many passed.
    """
    screen.line((module.id, "strong"), "  ", (module.title, "dim"))
    counted = report.verdict is Verdict.PASSED and not verbose and len(report.results) > _FOLD_ABOVE
    for kind, title in GROUPS.items():
        _group(screen, title, [r for r in report.results if r.kind is kind], counted)
    if counted:
        screen.blank()
        screen.line(("With --verbose, every check is named.", "dim"))
    if report.reason:
        screen.blank()
        show_reason(screen, report)
    if failure := report.first_failure:
        show_failure(screen, module, failure, reading)
        if replay:
            screen.command(replay, lead=screen.label("Repeat"))
        if others := report.count(Verdict.FAILED) - 1:
            screen.blank()
            which = "check failed; it stands" if others == 1 else "checks failed; they stand"
            screen.line((f"{others} further {which} above.", "dim"))
    for result in report.results:
        if result.details:
            _case_details(screen, result.details)
    show_printed(screen, report)
    show_output(screen, report.output)
    screen.blank()
    show_summary(screen, report)
    if report.verdict is Verdict.ERROR:
        screen.line(f"This is about the grader, not about your kernel. {note}")


def _group(screen: Screen, title: str, results: Sequence[CaseResult], briefly: bool) -> None:
    """Prints checks, many that ended alike as one paragraph; ``briefly``: counts passed ones."""
    if not results:
        return
    passed = sum(result.verdict is Verdict.PASSED for result in results)
    count = f"{passed} of {len(results)} passed"
    shown = [r for r in _begun(results)
             if not briefly or r.verdict is not Verdict.PASSED or r.facts or r.advisory]
    screen.blank()
    if not screen.plain:
        screen.pair(((title, "strong"),), (count, "dim"))
        short = [r for r in shown if not (r.facts or r.advisory)]
        if len(short) > _FOLD_ABOVE:
            _fold(screen, short)
            shown = [result for result in shown if result not in short]
    elif briefly:
        screen.line(f"{title}: {count}")
    for result in shown:
        show_check(screen, result, f"{title}: " if screen.plain else "  ")


def _begun(results: Sequence[CaseResult]) -> list[CaseResult]:
    """Merges the checks of each function that is not written yet."""
    waiting = [result.findings[0].function if result.findings
               and result.findings[0].means == NOT_WRITTEN else "" for result in results]
    merged: dict[str, CaseResult] = {}
    for result, function in zip(results, waiting, strict=True):
        count = waiting.count(function) if function else 1
        name = f"{function}: not written yet ({count} checks)" if count > 1 else result.name
        merged.setdefault(name, replace(result, name=name))
    return list(merged.values())


def _fold(screen: Screen, results: Sequence[CaseResult]) -> None:
    """Prints a paragraph of names for each verdict and reason."""
    for verdict in Verdict:
        alike = [result for result in results if result.verdict is verdict]
        for reason in dict.fromkeys(result.reason for result in alike):
            names = " · ".join(result.name for result in alike if result.reason == reason)
            style = "dim" if verdict is Verdict.PASSED else ""
            screen.line((names, style), lead=("  ", word(verdict), " "))
            if reason and verdict is not Verdict.PASSED:
                screen.line((brief(reason), "dim"), lead=(" " * 8,))


def show_check(screen: Screen, result: CaseResult, lead: str) -> None:
    """Prints one check with its facts; an advisory check that fails is a note."""
    passed = result.verdict is Verdict.PASSED
    note = result.advisory and not passed
    name = result.name + (" (never decides)" if result.advisory else "")
    screen.line(name, lead=(lead, word("NOTE" if note else result.verdict), " "))
    screen.facts(f"{lead}{result.name}",
                 *(f"{label} {value}" for label, value in result.facts.items()),
                 "" if passed else brief(result.reason),
                 result.findings[0].seen if note and result.findings else "")


def show_failure(screen: Screen, module: Module, failure: CaseResult,
                 reading: JournalReading | None, as_typed: Callable[[str], str] = str) -> None:
    """Prints a failure; ``as_typed`` rewrites the hint, for instance for keys."""
    screen.blank()
    if failure.findings:
        show_finding(screen, "What failed first: ", failure.name, module, failure.findings[0],
                     reading, as_typed)
    else:
        screen.line(f"{failure.name}: {failure.reason or 'failed'}")


def show_finding(screen: Screen, lead: str, name: str, module: Module, finding: Finding,
                 reading: JournalReading | None = None,
                 as_typed: Callable[[str], str] = str) -> None:
    """Prints what a finding is about, its code and its parts."""
    screen.line((name, "strong"), (f"  {finding.code}", "dim"), lead=(lead,))
    show_parts(screen, diagnosis(module, finding, reading), as_typed)


def show_parts(screen: Screen, parts: Iterable[tuple[str, str]],
               as_typed: Callable[[str], str] = str) -> None:
    """Prints the parts of a finding behind their labels; quoted code is not wrapped."""
    for label, text in parts:
        sentence, *code = (as_typed(text) if label == "Hint" else text).splitlines()
        screen.line(sentence, lead=(screen.label(label),))
        screen.quote(code, indent=10)


def _case_details(screen: Screen, details: Details) -> None:
    """Prints inputs, launches and wrong elements of a case that was graded alone."""
    for title, one, lines in (("Inputs", "input", details.inputs),
                              ("Launches", "launch", details.launches)):
        if lines:
            screen.heading(title)
        for line in lines:
            name, _, value = line.partition(": ")
            if screen.plain:
                screen.line(f"{one} {line}")
            elif one == "launch":  # its arguments are many
                screen.line(name, lead=("  ",))
                screen.line(value, lead=("    ",))
            else:
                screen.line(value, lead=(f"  {name}: ",))
    if not details.elements:
        return
    screen.heading("The first wrong elements")
    if screen.plain:
        for at, got, expected in details.elements:
            screen.line(f"{at}: got {got}, expected {expected}")
    else:
        for at, *numbers in padded([("element", "got", "expected"), *details.elements], ">>>"):
            screen.line("   ".join(numbers), lead=(f"  {at}   ",))


def diagnosis(module: Module, finding: Finding,
              reading: JournalReading | None = None) -> Iterator[tuple[str, str]]:
    """Yields (label, text) for observation, meaning, place and next step."""
    yield "Seen", finding.seen
    if finding.means:
        yield "Likely", finding.means
    if finding.where:
        yield "Where", finding.where
    elif finding.line:
        yield "Where", f"Line {finding.line}"
    if step := next_step(module, finding, reading):
        yield "Hint", step


def next_step(module: Module, finding: Finding, reading: JournalReading | None = None) -> str:
    """The finding's next step, with the command of the next hint and the rung it leads to."""
    offer = hints.offer(module, finding, reading or JournalReading(()))
    named = f"`{offer.typed}` ({offer})" if offer else f"`tritonlab hint {module.id}`"
    asks = f"{named}{'' if offer and offer.repeated else ' asks a question that helps'}."
    if offer and not finding.todos:
        return f"{finding.next_step} {asks}".strip()
    if finding.next_step:
        return re.sub(r"`tritonlab hint --todo \d+`", lambda old: named if offer else old[0],
                      finding.next_step)
    return asks if offer or module.hints else ""


def show_reason(screen: Screen, report: Report) -> None:
    """Prints why the grader could not go on."""
    screen.line(f"The grader could not go on: {brief(report.reason)}", lead=(word("ERROR"), " "))


def show_printed(screen: Screen, report: Report) -> None:
    """Prints the first lines of ``tl.device_print``."""
    lines = list(report.printed)
    if len(lines) > _KERNEL_LINES:
        lines[_KERNEL_LINES:] = ["… more lines follow; an `if` around it lets one program print"]
    _show_lines(screen, f"Printed by your kernel, {report.printed_in}", lines)


def show_output(screen: Screen, output: str) -> None:
    """Prints head and tail of the output of the learner's code."""
    lines = [line for line in output.splitlines() if line.strip()]
    hidden = len(lines) - _HEAD_LINES - _TAIL_LINES
    if hidden > 1:
        lines[_HEAD_LINES:-_TAIL_LINES] = [f"… {hidden} lines left out …"]
    _show_lines(screen, "Printed by your code", lines)


def _show_lines(screen: Screen, title: str, lines: Sequence[str]) -> None:
    if lines:
        screen.blank()
        screen.line((title, "strong"))
    for line in lines:
        screen.line((cropped(line, screen.width - 4), "dim"),
                    lead=("printed: " if screen.plain else "  ",))


def show_summary(screen: Screen, report: Report) -> None:
    """Prints verdict, checks, time and evidence in one line."""
    style = {Verdict.PASSED: "pass", Verdict.FAILED: "fail", Verdict.ERROR: "fail"}
    verdict: Part = (str(report.verdict), style.get(report.verdict, "skip"))
    checks = "public checks" if report.public_only else "checks"
    skipped, noisy = report.count(Verdict.SKIPPED), report.count(Verdict.INCONCLUSIVE)
    why = ": a single case is not evidence" if report.only else \
        ": with a given seed the inputs are known beforehand" if report.repeated else ""
    screen.line(verdict, q.listed(
        f"  {report.count(Verdict.PASSED)} of {len(report.deciding)} {checks} passed in "
        f"{report.seconds:.1f} s.",
        report.evidence and f"Evidence: {report.evidence} ({report.engine}).",
        skipped and f"{skipped} skipped.{_all_of(report)}",
        noisy and f"{noisy} too noisy to tell; the same command times again.",
        report.partial and f"Nothing is recorded{why}.", by=" "))


def _all_of(report: Report) -> str:
    """The way to run what was left out, where there is one."""
    spared = {result.skipped for result in report.deciding} & {Skip.FAILED, Skip.TIME}
    return " `tritonlab grade --all` runs the rest." if spared and not report.public_only else ""


def show_upgrades(screen: Screen, upgrades: Sequence[Upgrade]) -> None:
    """Prints modules that passed without a GPU, graded on one now."""
    for upgrade in upgrades:
        report = upgrade.report
        verdict = Verdict.ERROR if report is None else \
            report.noisy[0].verdict if report.noisy else report.verdict
        screen.line((upgrade.module.id, "strong"),
                    f"  {upgrade.before} before, now {upgrade.evidence or 'nothing new'}",
                    lead=screen.verdict(verdict))
        failure = report.first_failure if report else None
        clocked = [r for r in report.results if r.clocked and not r.advisory] if report else []
        screen.facts(
            upgrade.module.id, upgrade.problem,
            "the file has changed since it passed" if upgrade.changed else "",
            upgrade.result.complaint if upgrade.result else "",
            *(f"{result.name}: {result.facts.get('measured') or brief(result.reason)}"
              for result in clocked),
            f"{failure.name}: {failure.findings[0].seen if failure.findings else ''}"
            if failure and not failure.clocked else "")
    fast = sum(upgrade.evidence == FAST for upgrade in upgrades)
    screen.line(f"{fast} of {len(upgrades)} shown to be fast." if upgrades else
                "Every module that you passed and that asks for speed is shown to be fast.")
