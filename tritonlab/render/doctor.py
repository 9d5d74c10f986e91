"""The doctor: checks of this machine, attacks on the grader, and the steps of the tour."""

from collections.abc import Sequence

from tritonlab.course.course import Module
from tritonlab.doctor.doctor import Diagnosis
from tritonlab.doctor.environment_checks import Check
from tritonlab.doctor.tour import TourStep
from tritonlab.render.report import diagnosis
from tritonlab.render.screen import Screen


def show(screen: Screen, machine: Diagnosis) -> None:
    """Prints checks with remedies, the levels of evidence possible here, and attacks."""
    show_checks(screen, machine.checks)
    for level in machine.levels:
        able = not level.hindrance
        heading = "This machine decides" if able else "It cannot decide"
        screen.line(f"{level.means if able else level.hindrance}.",
                    lead=(f"{heading} ", (level.name, "strong"), ": "))
        if level.remedy:
            screen.line((level.remedy, "dim"), lead=(" " * 8,))
    count = len(machine.attacks)
    if count:
        screen.blank()
        screen.line(("Attacks on the grader", "strong"),
                    f": {count - len(machine.succeeded)} of {count} were stopped")
    width = max((len(result.name) for result in machine.attacks), default=0)
    for result in machine.attacks:
        text, style = ("SUCCEEDED", "fail") if result.succeeded else ("stopped", "pass")
        if screen.plain:
            screen.line(f"{text}: {result.name}: {result.how}")
        else:
            screen.line((result.how, "dim"),
                        lead=("  ", (f"{text:<9}", style), f" {result.name:<{width}}  "))
    screen.blank()


def show_checks(screen: Screen, checks: Sequence[Check]) -> None:
    """Prints checks with their remedies."""
    for check in checks:
        label = f"{check.name}: " if screen.plain else f"{check.name:<22} "
        screen.line(check.seen, lead=(*screen.verdict(str(check.state)), label))
        if check.remedy:
            screen.line((check.remedy, "dim"), lead=(" " * 8,))
    screen.blank()


def show_step(screen: Screen, number: int, step: TourStep, module: Module) -> None:
    """Prints one step of the tour with its finding."""
    screen.line((step.title, "strong"), lead=(f"{number}. ",))
    for text in filter(None, (step.why, step.said)):
        screen.line(text, lead=("   ",))
    if step.finding:
        for label, text in diagnosis(module, step.finding):
            screen.line((text, "dim"), lead=(screen.label(label, 3),))
    if not step.ok:
        screen.line(("Not as expected: ", "fail"), step.expected, lead=("   ",))
    screen.blank()
