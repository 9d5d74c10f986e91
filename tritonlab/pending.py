"""What was passed without a GPU: graded again where one can show that it is fast."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import grader
from grader.report import EXIT_FAILED, EXIT_GRADER_BROKE, EXIT_PASSED, EXIT_USAGE, Report, Verdict
from tritonlab import certificate, grading
from tritonlab.certificate import FAST
from tritonlab.course import Course, Module
from tritonlab.errors import TritonlabError
from tritonlab.grading import OnEvent, Result
from tritonlab.workspace import Workspace

SCHEMA = 1
NO_GPU = "There is no GPU here that kernels can be timed on"


class NoGpu(TritonlabError):
    """Nothing can be timed on this machine."""

    exit_code = EXIT_USAGE


@dataclass(frozen=True)
class Upgrade:
    """One module graded again: what it had shown before, and what it shows now."""

    module: Module
    before: str
    report: Report | None
    result: Result | None
    problem: str = ""  # why there is no report
    changed: bool = False  # the file is not the one that had passed

    @property
    def exit_code(self) -> int:
        """0 where it is shown to be fast, 1 where it is not, 3 where the grader broke."""
        if self.report is None or (self.result and self.result.error):
            return EXIT_GRADER_BROKE if self.result and self.result.error else EXIT_FAILED
        if self.report.verdict is Verdict.ERROR:
            return EXIT_GRADER_BROKE
        return EXIT_PASSED if self.report.evidence == FAST else EXIT_FAILED

    def to_dict(self) -> dict[str, Any]:
        report = self.report
        return {
            "module": self.module.id, "before": self.before,
            "evidence": report.evidence if report else "",
            "verdict": str(report.verdict) if report else "",
            "saved": bool(self.result and self.result.saved),
            "changed": self.changed, "problem": self.problem,
            "gpu": report.gpu if report else "",
            "cases": [{"name": r.name, "verdict": str(r.verdict), "measured": r.measured,
                       "reason": r.reason} for r in report.results if r.clocked]
            if report else [],
        }


def exit_code(upgrades: list[Upgrade]) -> int:
    """The worst of them."""
    return max((upgrade.exit_code for upgrade in upgrades), default=EXIT_PASSED)


def modules(course: Course, place: Workspace) -> list[Module]:
    """Those that were passed, not yet shown to be fast, and have something to be timed."""
    made = certificate.build(course, place.journal(course).read())
    return [module for module in certificate.below_fast(course, made) if _is_timed(module)]


def require_gpu() -> None:
    """See that there is a GPU to be used.

    Raises:
        NoGpu: there is none; the message says what is in the way.
    """
    from grader import hardware

    if not hardware.present():
        why = "its driver is missing" if hardware.without_driver() else \
            "it is hidden by CUDA_VISIBLE_DEVICES" if hardware.names() else ""
        raise NoGpu(f"{NO_GPU}{f': {why}' if why else ''}.",
                    "Type `tritonlab grade --pending` on a machine with one, in this workspace; "
                    "`tritonlab doctor` says what a machine can decide.")


def grade(course: Course, place: Workspace, which: list[Module],
          on_event: OnEvent | None = None) -> Iterator[Upgrade]:
    """Grade them one after the other, all cases on the GPU too, and record each.

    Raises:
        NoGpu: the first of them shows that the GPU cannot be used.
    """
    made = certificate.build(course, place.journal(course).read())
    with grading.started() as box:
        for number, module in enumerate(which):
            entry = made.entry(module)
            try:
                submission = grading.exercise(module, place, course)
                report = grading.grade(submission, gpu=True, on_event=on_event, sandbox=box)
            except TritonlabError as error:
                yield Upgrade(module, entry.evidence, None, None, str(error))
                continue
            if number == 0 and report.unusable_gpu:
                raise NoGpu(f"{NO_GPU}: {report.unusable_gpu}", "`tritonlab doctor` says more.")
            result = grading.save(course, submission, report)
            changed = report.source_sha256 != entry.source_sha256
            yield Upgrade(module, entry.evidence, report, result, changed=changed)


def _is_timed(module: Module) -> bool:
    """Whether a case of the module asks for speed that only a clock can show."""
    from grader.large import is_measured

    try:
        suite = grader.load_suite(module.suite)
    except (OSError, ValueError):
        return False
    return any(is_measured(case) and not case.advisory for case in suite.all_cases)
