"""What grading on a GPU made of modules that were passed without one, a paragraph each."""

from __future__ import annotations

from collections.abc import Sequence

from grader.report import Verdict
from tritonlab.certificate import FAST
from tritonlab.errors import brief
from tritonlab.pending import Upgrade
from tritonlab.render.screen import Screen, word


def show(screen: Screen, upgrades: Sequence[Upgrade], next_command: str) -> None:
    """Every module with its times, and how many are shown to be fast now."""
    for upgrade in upgrades:
        _show(screen, upgrade)
    if not upgrades:
        screen.line("Every module that you passed and that asks for speed is shown to be fast.")
    else:
        fast = sum(_evidence(upgrade) == FAST for upgrade in upgrades)
        screen.line(f"{fast} of {len(upgrades)} shown to be fast.")
    screen.next(next_command)


def _show(screen: Screen, upgrade: Upgrade) -> None:
    report = upgrade.report
    verdict = Verdict.ERROR if report is None else \
        report.noisy[0].verdict if report.noisy else report.verdict
    now = _evidence(upgrade) or "nothing new"
    screen.line((upgrade.module.id, "strong"), f"  {upgrade.before} before, now {now}",
                lead=("" if screen.plain else "  ", word(verdict), " "))
    indent = (f"{upgrade.module.id}: ",) if screen.plain else (" " * 8,)
    facts = [upgrade.problem] if upgrade.problem else []
    if upgrade.changed:
        facts.append("the file has changed since it passed")
    if upgrade.result and upgrade.result.complaint:
        facts.append(upgrade.result.complaint)
    for result in report.results if report else ():
        if result.clocked and not result.advisory:
            told = result.facts.get("measured") or brief(result.reason)
            facts.append(f"{result.name}: {told}")
    failure = report.first_failure if report else None
    if failure and not failure.clocked:
        facts.append(f"{failure.name}: {failure.findings[0].seen if failure.findings else ''}")
    for fact in facts:
        screen.line((fact, "dim"), lead=indent)


def _evidence(upgrade: Upgrade) -> str:
    return upgrade.report.evidence if upgrade.report else ""
