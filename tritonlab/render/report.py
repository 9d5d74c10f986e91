"""The report of a grade: the verdict, the first failure or the figures of a pass, the cases."""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace

from grader.diagnosis.messages import NOT_WRITTEN
from grader.report import CaseResult, Details, Finding, Kind, Report, Verdict
from tritonlab.course.course import Module
from tritonlab.errors import brief
from tritonlab.formats.annotations import weak_isolation
from tritonlab.grading import hints
from tritonlab.grading.gpu_upgrade import Upgrade
from tritonlab.progress.certificate import FAST
from tritonlab.progress.journal import JournalReading
from tritonlab.render import quantities as q
from tritonlab.render.screen import Screen, cropped, padded, word

GROUPS = {Kind.CORRECTNESS: "Correctness", Kind.EDGE: "Edge cases", Kind.PROPERTY: "Properties",
          Kind.CALL: "Calls", Kind.PERFORMANCE: "Performance"}
_FOLD_ABOVE = 8  # checks of a group that are still shown one a line
_HEAD_LINES, _TAIL_LINES = 4, 2  # of what the learner's code printed
_KERNEL_LINES = 12  # of what a kernel printed
_WIDE = 10  # columns of the labels of a pass
_FIGURES = ("traffic", "memory traffic", "spills")  # of a performance case, the first to show first
Command = tuple[str, str]  # and what it shows
BENCH_SHOWS = "your kernel beside PyTorch and the solution"
SOLUTION_SHOWS = "the solution beside yours"


def show(screen: Screen, module: Module, report: Report, note: str, replay: str,
         reading: JournalReading, *, verbose: bool = False, more: Sequence[Command] = (),
         picture: str = "") -> None:
    """Prints a report.

    Args:
        note: where the details of a failure of the grader are.
        replay: the command that repeats the first failure alone, unless it comes next anyway.
        reading: of the journal, which knows what hints were shown.
        verbose: list all cases, with their figures beside the limits.
        more: commands that a pass makes worth typing.
        picture: the command that draws the first failure, where a picture helps.
    """
    show_outcome(screen, module, report, reading, note=note, more=more)
    if picture:
        screen.command(picture, lead=screen.label("Picture"))
    if replay:
        screen.command(replay, lead=screen.label("Repeat"))
    for result in report.results:
        if result.details:
            _case_details(screen, result.details)
    if verbose:
        for kind, title in GROUPS.items():
            _group(screen, title, [r for r in report.results if r.kind is kind])
        screen.blank()


def show_outcome(screen: Screen, module: Module, report: Report, reading: JournalReading,
                 as_typed: Callable[[str], str] = str, *, note: str = "",
                 earlier: CaseResult | None = None, more: Sequence[Command] = ()) -> None:
    """Prints the verdict, then the first failure, or the evidence and the figures of a pass.

    Args:
        as_typed: rewrites a next step, for instance for keys.
        note: where the details of a failure of the grader are.
        earlier: the failure that was printed before; only the new parts follow.
        more: commands that a pass makes worth typing.
    """
    show_header(screen, module, report)
    if report.reason:
        screen.line(f"The grader could not go on: {brief(report.reason)}")
    if report.verdict is Verdict.ERROR:
        screen.line(f"This is about the grader, not about your kernel. {note}".rstrip())
    if failure := report.first_failure:
        _show_first(screen, module, failure, reading, as_typed, earlier)
        _others(screen, report, failure)
    else:
        _left_open(screen, report)
    show_printed(screen, report)
    show_output(screen, report.output)
    if report.verdict is Verdict.PASSED:
        _gained(screen, module, report, reading, more)


def show_header(screen: Screen, module: Module, report: Report) -> None:
    """Prints verdict, module, counts of a pass and time in one line, and why nothing is recorded.

    Of a failure no counts are printed: they differ from grade to grade with the drawn inputs.
    """
    style = {Verdict.PASSED: "pass", Verdict.FAILED: "fail", Verdict.ERROR: "fail"}
    checks = "public checks" if report.public_only else "checks"
    skipped, noisy = report.count(Verdict.SKIPPED), report.count(Verdict.INCONCLUSIVE)
    first = report.first_failure
    ungraded = first is not None and first.findings[:1] and len(report.deciding) == 1 and \
        first.findings[0].code.startswith("P")
    passed = report.count(Verdict.PASSED)
    if ungraded:
        counts = "nothing was run, in"
    elif first is not None:  # inputs are drawn anew, so other checks fail in the next grade
        counts = f"{'public checks only, ' * report.public_only}graded in"
    else:
        counts = q.listed(f"{passed} of {len(report.deciding)} {checks} passed",
                          skipped and f"{skipped} skipped",
                          noisy and f"{noisy} too noisy to tell") + ", in"
    screen.line((str(report.verdict), style.get(report.verdict, "skip")), "  ",
                (module.id, "strong"), f"  {counts} {report.seconds:.1f} s.")
    if report.partial:
        why = ": a single case is not evidence" if report.only else \
            ": with a given seed the inputs are known beforehand" if report.repeated else \
            ": only public cases were judged, as this build for students has no others" \
            if module.public_only else ""
        screen.line((f"Nothing is recorded{why}.", "dim"))
    if report.shown_again:
        screen.line((f"No code has changed since the grade of {report.shown_again}: this is its "
                     "report.", "dim"))
        screen.line(("`tritonlab grade --again` draws new inputs.", "dim"))
    if report.gpu_passed:
        screen.line((f"The GPU was left out: it passed these kernels on {report.gpu_passed}.",
                     "dim"))
    if weak := weak_isolation(report.isolation):
        screen.line((weak, "skip"))


def _show_first(screen: Screen, module: Module, failure: CaseResult, reading: JournalReading,
                as_typed: Callable[[str], str], earlier: CaseResult | None) -> None:
    """Prints the first failure, or only its new parts if it was shown before."""
    if earlier is None or not (earlier.findings and failure.findings) \
            or earlier.findings[0].code != failure.findings[0].code:
        show_failure(screen, module, failure, reading, as_typed)
        return
    before = [*diagnosis(module, earlier.findings[0], reading)]
    new = [part for part in diagnosis(module, failure.findings[0], reading) if part not in before]
    if new:
        lead = "more can be said" if earlier.name == failure.name else \
            f"the first that fails so is another, {failure.name}"
        screen.line((f"With all cases known, {lead}:", "dim"))
        show_parts(screen, new, as_typed)


def _others(screen: Screen, report: Report, failure: CaseResult) -> None:
    """Prints in one line which other checks failed, if a name fits."""
    names = [r.name for r in _begun([r for r in report.deciding if r.fails and r is not failure])]
    if not names:
        return
    head = "More checks failed"
    room = screen.width - len(screen.label("Others")) - len(head)
    texts = (f"{': ' if first == len(names) else ', such as '}{'; '.join(names[:first])}"
             for first in range(len(names), 0, -1))
    if text := next((text for text in texts if len(text) < room), ""):
        screen.line((f"{head}{text}.", "dim"), lead=(screen.label("Others"),))


def _left_open(screen: Screen, report: Report) -> None:
    """Prints what was not decided, without cases that only a GPU can decide, and notes."""
    left = [result for result in report.results if result.verdict is not Verdict.PASSED
            and not (report.verdict is Verdict.PASSED and result.predicted)]
    if len(left) > _FOLD_ABOVE and not screen.plain:
        _fold(screen, left)
        return
    for result in left:
        show_check(screen, result, "  ")
    if report.noisy:
        screen.line("The same command times again.")


def _gained(screen: Screen, module: Module, report: Report, reading: JournalReading,
            more: Sequence[Command]) -> None:
    """Prints the evidence of a pass, the figures that matter, and what was learned."""
    rows = [("Evidence", report.evidence and f"{report.evidence} ({report.engine})"),
            ("Cost", _cost(report)), ("Speed", _speed(report))]
    if not report.partial and len(reading.passes(module.id)) <= 1:
        rows.append(("Learned", "; ".join(module.objectives)))
    for label, text in rows:
        if text:
            screen.line(text, lead=(screen.label(label, width=_WIDE),))
    for number, (command, shows) in enumerate(more):
        label = "" if number and not screen.plain else "More"
        screen.line((command, "command"), f": {shows}", lead=(screen.label(label, width=_WIDE),))


def _cost(report: Report) -> str:
    """The two figures of a performance case that matter most, beside their limits."""
    cases = [r for r in report.deciding if r.kind is Kind.PERFORMANCE and not r.clocked]
    for result in cases:
        names = [name for name in (*_FIGURES, *result.facts) if name in result.facts]
        if names:
            figures = "; ".join(f"{name} {result.facts[name]}"
                                for name in dict.fromkeys(names[:2]))
            return f"{result.name}: {figures}"
    return ""


def _speed(report: Report) -> str:
    """The measured or predicted speed that is nearest to its limit, and the stretch goal."""
    figures = [(one["share"] / one["pass_at"], number, result) for number, result in
               enumerate(report.deciding) if (one := result.measured or result.predicted)
               and one.get("share") and one.get("pass_at")]
    if not figures:
        return ""
    *_, result = min(figures)
    if result.measured:
        goal = result.facts.get("stretch goal")
        return f"{result.name}: {result.facts.get('measured', '')}" + \
            (f"; stretch goal {goal}" if goal else "")
    one = result.predicted or {}
    words = f"{result.name}: predicted {q.share(one['share'])} of {one['of']} speed on the " \
            f"{one['target']}, {q.share(one['pass_at'])} is required"
    if one["stretch"]:
        reached = "" if one["share"] >= one["stretch"] else "not "
        words += f"; stretch goal {q.share(one['stretch'])}, {reached}reached by the prediction"
    return words


def _group(screen: Screen, title: str, results: Sequence[CaseResult]) -> None:
    """Prints the checks of a group; many that ended alike share a paragraph."""
    if not results:
        return
    passed = sum(result.verdict is Verdict.PASSED for result in results)
    shown = _begun(results)
    screen.blank()
    if not screen.plain:
        screen.pair(((title, "strong"),), (f"{passed} of {len(results)} passed", "dim"))
        short = [r for r in shown if not (r.facts or r.advisory)]
        if len(short) > _FOLD_ABOVE:
            _fold(screen, short)
            shown = [result for result in shown if result not in short]
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
    name = result.name + (" (does not affect the verdict)" if result.advisory else "")
    screen.line(name, lead=(lead, word("NOTE" if note else result.verdict), " "))
    screen.facts(f"{lead}{result.name}",
                 *(f"{label} {value}" for label, value in result.facts.items()),
                 "" if passed else brief(result.reason),
                 result.findings[0].seen if note and result.findings else "")


def show_failure(screen: Screen, module: Module, failure: CaseResult,
                 reading: JournalReading | None, as_typed: Callable[[str], str] = str) -> None:
    """Prints a failure; ``as_typed`` rewrites the hint, for instance for keys."""
    if failure.findings:
        show_finding(screen, "", failure.name, module, failure.findings[0], reading, as_typed)
    else:
        screen.line(f"{failure.name}: {failure.reason or 'failed'}")


def show_finding(screen: Screen, lead: str, name: str, module: Module, finding: Finding,
                 reading: JournalReading | None = None,
                 as_typed: Callable[[str], str] = str) -> None:
    """Prints what a finding is about, the name of its code and its parts."""
    screen.line(lead, (name, "strong"), (f"  ({finding.name})", "dim"))
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
    shows = f"`{offer.typed}` shows {offer}" if offer else \
        f"`tritonlab hint {module.id}` shows a hint"
    if offer and not finding.todos:
        return f"{finding.next_step} {shows}.".strip()
    if finding.next_step:
        example = f" `tritonlab explain {finding.name}` shows an example." * (not finding.todos)
        return re.sub(r"`tritonlab hint --todo \d+` shows a hint",
                      lambda old: shows if offer else old[0], finding.next_step) + example
    return f"{shows}." if offer or module.hints else ""


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
        line = cropped(line, screen.width - 4)
        if screen.plain:
            screen.line(line, lead=("printed: ",))
        else:
            screen.row("  ", (line, "dim"))


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
