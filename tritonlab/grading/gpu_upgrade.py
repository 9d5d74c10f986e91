"""Grades modules again on a GPU that were passed without one."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from grader.report import EXIT_FAILED, EXIT_GRADER_BROKE, EXIT_PASSED, Report, Verdict
from tritonlab.course.course import Course, Module
from tritonlab.errors import TritonlabError
from tritonlab.grading import grade as grading
from tritonlab.grading.grade import OnEvent, SaveResult
from tritonlab.progress import certificate
from tritonlab.progress.certificate import FAST
from tritonlab.workspace.submission import exercise
from tritonlab.workspace.workspace import Workspace

SCHEMA = 1
NO_GPU = "There is no GPU here that kernels can be timed on"


@dataclass(frozen=True)
class Upgrade:
    """One module graded again, with its evidence before."""

    module: Module
    before: str
    report: Report | None
    result: SaveResult | None
    problem: str = ""  # if there is no report
    changed: bool = False  # another file than the one that passed

    @property
    def evidence(self) -> str:
        return self.report.evidence if self.report else ""

    @property
    def exit_code(self) -> int:
        """0 if it is fast, 1 if not, 3 if the grader broke."""
        if self.result and self.result.error:
            return EXIT_GRADER_BROKE
        if self.report and self.report.verdict is Verdict.ERROR:
            return EXIT_GRADER_BROKE
        return EXIT_PASSED if self.evidence == FAST else EXIT_FAILED

    def to_dict(self) -> dict[str, Any]:
        report = self.report
        return {
            "module": self.module.id, "before": self.before, "evidence": self.evidence,
            "verdict": str(report.verdict) if report else "",
            "saved": bool(self.result and self.result.saved),
            "changed": self.changed, "problem": self.problem,
            "gpu": report.gpu if report else "",
            "cases": [{"name": r.name, "verdict": str(r.verdict), "measured": r.measured,
                       "reason": r.reason} for r in report.results if r.clocked]
            if report else [],
        }


def exit_code(upgrades: list[Upgrade]) -> int:
    """Returns the worst exit code."""
    return max((upgrade.exit_code for upgrade in upgrades), default=EXIT_PASSED)


def require_gpu() -> None:
    """Raises TritonlabError, with the reason, if this machine has no usable GPU."""
    from grader.gpu import detect

    if not detect.present():
        why = "its driver is missing" if detect.without_driver() else \
            "it is hidden by CUDA_VISIBLE_DEVICES" if detect.names() else ""
        raise TritonlabError(
            f"{NO_GPU}{f': {why}' if why else ''}.",
            "Type `tritonlab grade --pending` on a machine with one, in this workspace; "
            "`tritonlab doctor` shows what a machine can decide.")


def grade(course: Course, place: Workspace, on_event: OnEvent | None = None) -> Iterator[Upgrade]:
    """Grades on the GPU, and records, the passed modules that are timed and not yet ``fast``.

    Raises:
        TritonlabError: the first grade could not use the GPU.
    """
    current = certificate.build(course, place.journal(course).read())
    pending = [module for module in certificate.below_fast(course, current) if _is_timed(module)]
    if not pending:
        return
    with grading.start_sandbox() as box:
        for number, module in enumerate(pending):
            entry = current.entry(module)
            try:
                submission = exercise(module, place, course)
                report = grading.grade(submission, gpu=True, everything=True, on_event=on_event,
                                       sandbox=box)
            except TritonlabError as error:
                yield Upgrade(module, entry.evidence, None, None, str(error))
                continue
            if number == 0 and report.unusable_gpu:
                raise TritonlabError(f"{NO_GPU}: {report.unusable_gpu}",
                                     "`tritonlab doctor` shows details.")
            result = grading.save(course, submission, report)
            changed = report.source_sha256 != entry.source_sha256
            yield Upgrade(module, entry.evidence, report, result, changed=changed)


def _is_timed(module: Module) -> bool:
    """Whether a case of the module has to be timed."""
    from grader.judge.oversized import is_measured

    try:
        suite = module.load_suite()
    except (OSError, ValueError):
        return False
    return any(is_measured(case) and not case.advisory for case in suite.all_cases)
