"""Verification: grades the claims of a certificate again."""

import contextlib
import enum
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from grader.report import EXIT_FAILED, EXIT_GRADER_BROKE, EXIT_PASSED, Kind, Report, Verdict
from grader.text import sentence
from tritonlab.course.course import EXERCISE, Course, Module, other_course
from tritonlab.errors import TritonlabError, UnusableFile, brief, shown
from tritonlab.grading import grade as grading
from tritonlab.grading.grade import OnEvent
from tritonlab.progress.certificate import EVIDENCE, FAST
from tritonlab.progress.journal import MARK
from tritonlab.verify.certificate_reader import Claim, Claims
from tritonlab.version import __version__
from tritonlab.workspace import passed_sources, workspace
from tritonlab.workspace.submission import Submission

SCHEMA = 1


class Standing(enum.StrEnum):
    """The outcome of one claim."""

    HOLDS = "holds"
    IN_PART = "holds in part"  # it passes; this machine cannot show the rest of its evidence
    TESTS_CHANGED = "tests changed"  # it passes today's tests, which differ from the claim's
    DIFFERS = "differs"  # the only file is not the one that passed
    FAILS = "fails"
    CONTRADICTED = "contradicted"  # the claim is impossible
    MISSING = "missing source"
    UNKNOWN = "unknown module"
    UNDECIDED = "undecided"  # this machine could not decide
    BROKEN = "not graded"  # the grader broke


STANDS = frozenset((Standing.HOLDS, Standing.IN_PART, Standing.TESTS_CHANGED))


@dataclass(frozen=True)
class ClaimCheck:
    """One claim and its outcome, with sentences about it."""

    claim: Claim
    standing: Standing
    text: str
    report: Report | None = None
    source: Path | None = None  # the graded file

    @property
    def exit_code(self) -> int:
        if self.standing is Standing.BROKEN:
            return EXIT_GRADER_BROKE
        return EXIT_PASSED if self.standing in STANDS else EXIT_FAILED

    def to_dict(self) -> dict[str, Any]:
        report = self.report
        return {
            "module": self.claim.module, "standing": str(self.standing), "said": self.text,
            "claimed": self.claim.evidence, "shown": report.evidence if report else "",
            "verdict": str(report.verdict) if report else "",
            "same_source": report and report.source_sha256 == self.claim.source_sha256,
            "same_tests": report and report.suite_sha256 == self.claim.suite_sha256,
            "seed": report.seed if report else "", "gpu": report.gpu if report else ""}


@dataclass(frozen=True)
class Verification:
    """All checks, and sentences about faults of the certificate as a whole."""

    claims: Claims
    checks: tuple[ClaimCheck, ...]
    wrong: tuple[str, ...] = ()

    @property
    def exit_code(self) -> int:
        """0 if all claims stand, 1 if one does not, 3 if the grader broke."""
        return max((*(check.exit_code for check in self.checks),
                    EXIT_FAILED if self.wrong else EXIT_PASSED))

    def to_dict(self) -> dict[str, Any]:
        claims = self.claims
        return {
            "schema": SCHEMA, "exit_code": self.exit_code, "holds": self.exit_code == EXIT_PASSED,
            "certificate": {"sha256": claims.fingerprint, "name": claims.name or "",
                            "updated": claims.updated or "", "tritonlab": claims.tritonlab,
                            "records": claims.journal.records, "head": claims.journal.head},
            "wrong": list(self.wrong), "modules": [check.to_dict() for check in self.checks],
        }


def sources(file: Path, claims: Claims) -> Path:
    """Returns the default folder of the sources: the workspace beside or around the file."""
    beside = file.absolute().parent
    if beside.name == MARK:
        return beside.parent
    if any((beside / claim.module).is_dir() for claim in claims.passed):
        return beside
    near = (beside / workspace.DEFAULT, beside, *beside.parents)
    return next((folder for folder in near if (folder / MARK).is_dir()), beside)


def verify(course: Course, claims: Claims, root: Path, *, gpu: bool = True,
           on_event: OnEvent | None = None) -> Verification:
    """Grades the source of each claimed module on new inputs; records nothing.

    Args:
        course: whose hidden tests decide.
        claims: from ``tritonlab.verify.certificate_reader.read``.
        root: below which the sources lie, in ``<track>/<slug>/``.
        gpu: use this machine's GPU, if it has one.
        on_event: called with the name of each step, and results.

    Raises:
        CannotGrade: the grader does not start.
        OtherCourse: the certificate is of another course.
        TritonlabError: nothing is claimed.
    """
    if claims.course != course.id:
        raise other_course("The certificate", claims.course, course.id)
    checks = []
    with contextlib.ExitStack() as resources:
        box = None
        for number, claim in enumerate(claims.passed, 1):
            target = _source(course, claim, root)
            if isinstance(target, ClaimCheck):
                checks.append(target)
                continue
            source, instead = target
            box = box or resources.enter_context(grading.start_sandbox())
            which = f"{claim.module}, {number} of {len(claims.passed)}"
            tell = on_event and partial(_tell, on_event, which)
            try:
                report = grading.grade(source, gpu=gpu, everything=True, on_event=tell,
                                       sandbox=box)
            except UnusableFile as error:
                checks.append(ClaimCheck(claim, Standing.MISSING, str(error)))
            except TritonlabError as error:
                checks.append(ClaimCheck(claim, Standing.BROKEN, str(error)))
            else:
                standing, sentences = _judged(source.module, claim, report)
                checks.append(ClaimCheck(claim, standing, f"{instead}{sentences}", report,
                                         source.kernel))
    wrong = tuple(_wrong(course, claims))
    if not checks and not wrong:
        raise TritonlabError("The certificate claims no module as passed, so there is nothing to "
                             "verify.", "`tritonlab status` shows the state of each module.")
    return Verification(claims, tuple(checks), wrong)


def onward(verification: Verification, file: str, root: str) -> tuple[str, str]:
    """Returns the next command after a verification, and the words before it."""
    again = f"tritonlab verify {shlex.quote(file)}"
    for check in verification.checks:
        if check.source is not None and check.standing not in STANDS:
            path = shlex.quote(shown(check.source))
            passes = check.report is not None and check.report.verdict is Verdict.PASSED
            owned = (Path(root) / MARK).is_dir()
            return (f"tritonlab grade {path} --module {check.claim.module}",
                    "To claim the file that is there now, type: "
                    if check.standing is Standing.DIFFERS and passes and owned else
                    "See in full what it shows: ")
        if check.standing is Standing.MISSING:
            return f"{again} --sources FOLDER", f"If the sources are not in {root}, type: "
    if any(check.standing is Standing.IN_PART for check in verification.checks):
        return again, "On a machine that can show the rest, type: "
    if any(check.standing is Standing.TESTS_CHANGED for check in verification.checks):
        return "tritonlab grade", "For a certificate by today's tests, its owner types: "
    return ("tritonlab doctor" if verification.exit_code else "tritonlab list"), "Next: "


def _tell(on_event: OnEvent, which: str, event: Any) -> None:
    on_event(f"{which}: {event}" if isinstance(event, str) else event)


def _source(course: Course, claim: Claim, root: Path) -> tuple[Submission, str] | ClaimCheck:
    """Returns the source of a claim, or a check that says why there is none.

    If the file in its place has another digest than the claim, the stored copy is used, with a
    sentence that says why.
    """
    module = course.get(claim.module)
    if module is None:
        return ClaimCheck(claim, Standing.UNKNOWN, "This course has no such module; install the "
                          "version of tritonlab that the certificate was made with.")
    folders = (module.id, f"{module.track}/{module.slug}", f"{module.track}/{module.folder.name}")
    kernels = [root / folder / EXERCISE for folder in folders]
    kernel = next((path for path in kernels if path.exists()), kernels[0])
    why = _unusable(kernel, root)
    if why or passed_sources.digest(kernel, module.files) != claim.source_sha256:
        passed = passed_sources.find(root / MARK, module, claim.source_sha256 or "")
        if passed is not None and not _unusable(passed, root):
            changed = why or f"{shown(kernel)} has changed since."
            return (Submission(module, passed, None),
                    f"{changed} Graded was the file that passed, which is kept. ")
    if why:
        return ClaimCheck(claim, Standing.MISSING, why)
    return Submission(module, kernel, None), ""


def _unusable(kernel: Path, root: Path) -> str:
    """Returns why a file cannot be a source, or an empty string."""
    try:
        inside = kernel.resolve().is_relative_to(root.resolve())
        workspace.check_file(kernel)
    except (OSError, RuntimeError, TritonlabError) as error:
        return error.message if isinstance(error, TritonlabError) else \
            f"{shown(kernel)} cannot be read."
    return "" if inside else f"{shown(kernel)} is a link that points outside the folder of sources."


def _judged(module: Module, claim: Claim, report: Report) -> tuple[Standing, str]:
    """Returns the outcome of a claim by the report of its grade."""
    if report.verdict is Verdict.ERROR:
        reason = report.reason or next((r.reason for r in report.results if r.reason), "")
        return Standing.BROKEN, f"The grader itself failed: {brief(reason)}"
    outcome = _outcome(report)
    if report.source_sha256 != claim.source_sha256:
        return Standing.DIFFERS, (
            "The source is another file than the one that passed, and that one is not kept here: "
            "it passed on another machine, or before tritonlab kept what passes. Graded all the "
            f"same, {outcome}")
    changed = report.suite_sha256 != claim.suite_sha256
    if report.verdict is not Verdict.PASSED:
        other = "The hidden tests have changed since. With today's, " if changed else \
            "On new inputs, "
        standing = Standing.FAILS if report.verdict is Verdict.FAILED else Standing.UNDECIDED
        return standing, other + outcome
    if contradiction := _impossible(module, claim, report, changed):
        return Standing.CONTRADICTED, contradiction
    if changed:
        return Standing.TESTS_CHANGED, ("The hidden tests have changed since. With today's, "
                                        f"{outcome}")
    if EVIDENCE.index(report.evidence) >= EVIDENCE.index(claim.evidence):
        return Standing.HOLDS, sentence(outcome)
    return Standing.IN_PART, f"{sentence(outcome)} {_not_here(claim, report)}"


def _outcome(report: Report) -> str:
    failure = report.first_failure
    if failure is not None:
        reason = failure.findings[0].seen if failure.findings else failure.reason
        return f"it fails '{failure.name}': {brief(reason)}"
    if report.verdict is not Verdict.PASSED:
        return "nothing could be decided on this machine."
    return f"it passes, with the evidence `{report.evidence}`."


def _impossible(module: Module, claim: Claim, report: Report, changed: bool) -> str:
    """Returns why a claim is impossible although its source passes."""
    if claim.core is not module.core:
        return f"It is {'a core module' if module.core else 'an elective'}, which the " \
               "certificate denies."
    if grading.is_solution(module, report.source_sha256) and not claim.solution_seen:
        return "The source is the reference solution, which the certificate does not say."
    if changed or claim.evidence == "correct":
        return ""
    if not claim.evidence:
        return "It is claimed to be passed without any evidence."
    if not any(result.kind is Kind.PERFORMANCE for result in report.deciding):
        return f"Nothing in it asks for speed, so `{claim.evidence}` cannot have been shown."
    if claim.evidence == FAST and not any(result.clocked for result in report.deciding):
        return f"Nothing in it is timed, so `{FAST}` cannot have been shown."
    return ""


def _not_here(claim: Claim, report: Report) -> str:
    """Returns why this machine does not show all of the claimed evidence."""
    if claim.evidence != FAST:
        return f"`{claim.evidence}` cannot be shown here: a check of it was skipped."
    if report.noisy:
        return f"`{FAST}` could not be decided: times on {report.gpu or 'the GPU'} were too noisy."
    if report.unusable_gpu:
        return f"`{FAST}` needs a GPU that can be used: {brief(report.unusable_gpu)}"
    return f"`{FAST}` could not be shown on this {report.gpu}." if report.gpu else \
        f"`{FAST}` needs a GPU, and none was used."


def _wrong(course: Course, claims: Claims) -> Iterator[str]:
    """Yields the faults of the certificate as a whole."""
    for name in claims.miscounted:
        yield f"Its total for {name} is not what its modules add up to."
    real = {track.id: sum(m.core for m in track.modules) for track in course.tracks}
    real |= {"core": sum(real.values()), "electives": sum(not m.core for m in course.modules)}
    for name, count in claims.counts.items():
        if claims.tritonlab == __version__ and name in real and count.total != real[name]:
            yield f"It counts {count.total} modules for {name}; there are {real[name]}."
