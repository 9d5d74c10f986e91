"""Grades one submission as the assignment of a pack, for another system's autograder."""

import json
import re
import shutil
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from tritonlab.classroom import classroom, grading, intake
from tritonlab.classroom.export import reports
from tritonlab.classroom.export.student_points import StudentPoints, points_of_all
from tritonlab.classroom.roster import Roster
from tritonlab.classroom.settings import SETTINGS, ClassAssignment
from tritonlab.classroom.store import FOLDER, SECRET, Store
from tritonlab.errors import CannotGrade, TritonlabError, reason_of, shown
from tritonlab.formats.classroom50 import GradedCommit

STUDENT = "student"
_FULL_TIER = 2
_MOST_METADATA_BYTES = 10_000_000  # Gradescope's file has all earlier results


@dataclass(frozen=True)
class SingleGrade:
    """The points of one submission, and why files of it were not graded."""

    assignment: ClassAssignment
    points: StudentPoints
    refused: tuple[str, ...]
    store: Store
    settings: Any


def grade(pack: Path, submission: Path, to: str, *, metadata: Path | None = None,
          commit: GradedCommit | None = None) -> str:
    """Grades the files in a folder; returns results.json or result.json.

    Args:
        pack: the folder with the class.toml of a pack.
        to: gradescope or classroom50.
        metadata: Gradescope's submission_metadata.json, which has the time of submission.
        commit: the submission as Classroom 50 names it.

    Raises:
        CannotGrade: nothing was decided, so that no file is to be written.
        TritonlabError: a folder is missing, or the metadata cannot be read.
    """
    if not submission.is_dir():
        raise TritonlabError(f"There is no folder of a submission at {shown(submission)}.",
                             "Name the folder with the student's files.")
    at = commit.submitted_at if commit else _submitted_at(metadata)
    with tempfile.TemporaryDirectory(prefix="tritonlab-pack-") as folder:
        one = _graded(Path(folder), pack, submission, at)
        if to == "gradescope":
            return _gradescope(one)
        assert commit is not None
        return _classroom50(one, commit)


def _graded(root: Path, pack: Path, submission: Path, at: datetime) -> SingleGrade:
    """Makes a class of one student in ``root``, and grades it."""
    shutil.copyfile(pack / SETTINGS, root / SETTINGS)
    secret = pack / FOLDER / SECRET
    if secret.is_file():
        (root / FOLDER).mkdir()
        shutil.copyfile(secret, root / FOLDER / SECRET)
    Store(root).create()
    (root / classroom.ROSTER).write_text(f"student\n{STUDENT}\n", encoding="utf-8")
    handed_in = root / "in"
    shutil.copytree(submission, handed_in / STUDENT, symlinks=True,
                    ignore=shutil.ignore_patterns(".git"))
    the_class = classroom.load(root)
    assignment = the_class.assignments(())[0]
    taken = intake.take(the_class, assignment, [handed_in], layout="folder", at=at)
    the_class = classroom.load(root)
    course, roots = grading.course_of(the_class.settings, root)
    work = grading.plan(the_class.settings, course, the_class.store, the_class.book, [assignment])
    summary = grading.run(the_class.settings, the_class.store, the_class.book, roots, work, jobs=1)
    points = points_of_all(classroom.load(root).book, Roster.read(root / classroom.ROSTER),
                           assignment, datetime.now(UTC))[0]
    undecided = [why for _, why in summary.failed]
    undecided += [module.graded.reason or module.state for module in points.score.modules
                  if module.graded and module.state == "not decided"]
    if undecided:
        raise CannotGrade(f"No points are given, because the grade decided nothing: "
                          f"{undecided[0]}")
    refused = tuple(f"{one.name}: {one.reason}." for one in taken.refused)
    return SingleGrade(assignment, points, refused, the_class.store, the_class.settings)


def _gradescope(one: SingleGrade) -> str:
    """Returns results.json; below tier 2 its extra data has the tier of isolation."""
    text = reports.to_gradescope(one.points, one.assignment, one.store.result)
    assert text is not None  # nobody is excused
    data: dict[str, Any] = json.loads(text)
    if one.refused:
        data["output"] = "\n".join((data["output"], *one.refused))
    tiers = [int(match[1]) for part in data["extra_data"].values()
             if (match := re.match(r"tier (\d)", str(part.get("isolation", ""))))]
    if tiers and min(tiers) < _FULL_TIER:
        data["extra_data"]["isolation_tier"] = min(tiers)
    return json.dumps(data, indent=2) + "\n"


def _classroom50(one: SingleGrade, commit: GradedCommit) -> str:
    now = datetime.now(UTC)
    text = reports.to_classroom50(one.points, one.settings, one.assignment, one.store.result, now)
    data: dict[str, Any] = json.loads(text) if text else _nothing(one)
    own: Mapping[str, Any] = {
        "schema": "classroom50/result/v1", "classroom": commit.classroom,
        "assignment": commit.assignment, "assignment_type": commit.kind, "owner": commit.owner,
        "submission": commit.submission, "commit": commit.commit, "release": commit.release,
        "review": commit.review or commit.commit,
        "datetime": f"{commit.submitted_at.astimezone(UTC):%Y-%m-%dT%H:%M:%SZ}",
        "graded_at": f"{now:%Y-%m-%dT%H:%M:%SZ}"}
    return json.dumps({**data, **own}, indent=2) + "\n"


def _nothing(one: SingleGrade) -> dict[str, Any]:
    """Returns the scores of a submission without a file to grade."""
    most = round(one.assignment.points)
    message = " ".join(one.refused) or "Nothing was handed in."
    return {"score": 0, "max-score": most, "tests": [
        {"test-name": "a submission is handed in", "passed": False, "score": 0, "max-score": most,
         "message": message}]}


def _submitted_at(metadata: Path | None) -> datetime:
    if metadata is None:
        return datetime.now(UTC)
    try:
        with metadata.open("rb") as file:
            data = json.loads(file.read(_MOST_METADATA_BYTES))
        at = datetime.fromisoformat(data["created_at"])
    except OSError as error:
        raise TritonlabError(f"{shown(metadata)} cannot be read: {reason_of(error)}.",
                             "Name Gradescope's submission_metadata.json.") from error
    except (ValueError, TypeError, KeyError) as error:
        raise TritonlabError(f"{shown(metadata)} has no time of submission.",
                             "Name Gradescope's submission_metadata.json.") from error
    return at if at.tzinfo else at.replace(tzinfo=UTC)
