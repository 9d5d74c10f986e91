"""The formats of `tritonlab grade`, and what they take from the environment."""

import dataclasses
import enum
import os
import re
import urllib.parse
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from grader.report import CaseResult, Kind, Report, Verdict, versions
from tritonlab.course.course import Module
from tritonlab.errors import CannotGrade, TritonlabError, UnusableFile, shown
from tritonlab.formats.annotations import undecided
from tritonlab.formats.gradescope import Visibility
from tritonlab.grading.points import points
from tritonlab.version import __version__
from tritonlab.workspace.output_files import OutputKind

if TYPE_CHECKING:
    from tritonlab.formats.classroom50 import GradedCommit

REFUSED = "the file"
_TAG = re.compile(r"submit/(\d{4}-\d\d-\d\dT\d\d-\d\d-\d\dZ)")


class OutputFormat(enum.StrEnum):
    """A format of one grade; the first two are for people and for any program."""

    TEXT = "text"
    JSON = "json"
    LINES = "lines"
    GITHUB = "github"
    SARIF = "sarif"
    JUNIT = "junit"
    GRADESCOPE = "gradescope"
    CLASSROOM50 = "classroom50"

    @property
    def gives_points(self) -> bool:
        """Whether its reader takes points from the file, and the exit code for the grader's own."""
        return self in (self.GRADESCOPE, self.CLASSROOM50)

    @property
    def kind(self) -> OutputKind:
        """The kind of its files."""
        endings = {self.LINES: (".txt",), self.GITHUB: (".txt",), self.JUNIT: (".xml",),
                   self.SARIF: (".sarif", ".json")}.get(self, (".json",))
        return OutputKind(f"{self} report", "--out", endings)


@dataclasses.dataclass(frozen=True)
class OutputOptions:
    """A format and its options; ``public`` are the cases that students may run."""

    format: OutputFormat
    out: Path | None = None
    points: int = 100
    visibility: Visibility = Visibility.VISIBLE
    commit: "GradedCommit | None" = None

    def render(self, data: Mapping[str, Any], module: Module, kernel: Path,
               public: frozenset[str] = frozenset()) -> str:
        """Returns the text of a report's plain data in a format other than text and JSON."""
        from tritonlab.formats import classroom50, github, gradescope, junit, lines, sarif

        file = shown(kernel)
        match self.format:
            case OutputFormat.LINES:
                return lines.render(data, file)
            case OutputFormat.GITHUB:
                return github.render(data, file)
            case OutputFormat.SARIF:
                return sarif.render(data, module.id, file)
            case OutputFormat.JUNIT:
                return junit.render(data, module.id, datetime.now(UTC))
        result = points(data, out_of=self.points)
        if self.commit:
            return classroom50.render(data, module.id, result, self.commit,
                                      graded_at=datetime.now(UTC))
        return gradescope.render(data, module.id, result, public=public | {REFUSED},
                                 visibility=self.visibility)


def graded_commit(environment: Mapping[str, str] = os.environ) -> "GradedCommit":
    """Returns the submission that the runner of Classroom 50 names in the environment.

    Raises:
        TritonlabError: variables are missing.
    """
    from tritonlab.formats.classroom50 import GradedCommit

    names = ("CLASSROOM", "ASSIGNMENT", "USERNAME", "SUBMISSION_TAG")
    repository = environment.get("GITHUB_REPOSITORY", "")
    address = f"{environment.get('GITHUB_SERVER_URL', 'https://github.com')}/{repository}"
    tag = environment.get("SUBMISSION_TAG", "")
    commit = environment.get("COMMIT_URL") or (
        f"{address}/commit/{environment.get('GITHUB_SHA', '')}" if repository else "")
    missing = [name for name in names if not environment.get(name)] + ["COMMIT_URL"] * (not commit)
    if missing:
        raise TritonlabError(
            f"--format classroom50 needs the environment of a Classroom 50 runner: "
            f"{', '.join(missing)} not set.",
            "Set them, or use --format json.")
    release = f"{address}/releases/tag/{urllib.parse.quote(tag, safe='')}"
    submitted = _TAG.match(tag)
    at = datetime.strptime(submitted[1], "%Y-%m-%dT%H-%M-%SZ").replace(tzinfo=UTC) \
        if submitted else datetime.now(UTC)
    return GradedCommit(
        environment["CLASSROOM"], environment["ASSIGNMENT"], environment["USERNAME"], tag, at,
        commit,
        release=environment.get("RELEASE_URL") or release,
        review=environment.get("REVIEW_URL", ""),
        kind=environment.get("ASSIGNMENT_TYPE") or "individual")


def check_decided(data: Mapping[str, Any]) -> None:
    """Raises CannotGrade if a grade decides nothing, so that no points are written."""
    if reason := undecided(data):
        raise CannotGrade(f"No points are given, because the grade decided nothing: {reason}.")


def refusal(module: Module, error: UnusableFile) -> Report:
    """Returns the report of a file that cannot be graded; it fails, for the student has to act."""
    failure = CaseResult(REFUSED, Kind.CORRECTNESS, Verdict.FAILED, reason=error.message)
    return Report(suite=module.id, source_sha256="", suite_sha256=module.suite_sha256,
                  grader_version=__version__, versions=versions(), engine="", isolation="",
                  seed="", results=(failure,))
