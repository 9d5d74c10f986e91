"""Importing: who handed in what, and why something was not taken."""

from dataclasses import replace
from pathlib import Path

import pytest

from tests.classroom import support
from tritonlab.classroom import book, classroom, intake
from tritonlab.errors import TritonlabError


@pytest.fixture
def a_class(tmp_path, course_root):
    text = support.CLASS.replace('course = "course"', f'course = "{course_root}"')
    support.write(tmp_path / "class", text)
    (tmp_path / "class" / "roster.csv").write_text(
        "student,name\nada,Ada Lovelace\nbob,Bob Byte\n")
    return classroom.load(tmp_path / "class")


def hand_in(root: Path, **sources: str) -> Path:
    for student, source in sources.items():
        (root / student).mkdir(parents=True, exist_ok=True)
        (root / student / "kernel.py").write_text(source)
    return root


def take(a_class, *paths, **options):
    return intake.take(a_class, a_class.settings.assignment("hw1"), paths, **options)


def handed(a_class):
    return book.read(a_class.settings, a_class.store.log()).handed.get("hw1", [])


def test_submissions_are_stored_and_logged_once(a_class, tmp_path):
    folder = hand_in(tmp_path / "in", ada="a = 1\n", bob="a = 2\n")

    first = take(a_class, folder)
    second = take(classroom.load(a_class.root), folder)

    assert [one.student for one in first.imported] == ["ada", "bob"]
    assert (second.imported, second.unchanged) == ([], 2)
    assert [a_class.store.files(one.blob) for one in handed(a_class)] == [
        {"kernel.py": b"a = 1\n"}, {"kernel.py": b"a = 2\n"}]


def test_a_name_that_is_not_in_the_roster_is_listed_and_not_guessed(a_class, tmp_path):
    folder = hand_in(tmp_path / "in", ada="a", bobb="b")

    result = take(a_class, folder)

    [unmatched] = result.unmatched
    assert (unmatched.student, unmatched.reason) == ("bobb", "the nearest: bob (Bob Byte)")
    assert [one.student for one in handed(a_class)] == ["ada"]


def test_strict_imports_nothing_if_a_name_is_unknown(a_class, tmp_path):
    folder = hand_in(tmp_path / "in", ada="a", zed="b")

    with pytest.raises(TritonlabError, match="nothing was imported; the first is 'zed'"):
        take(a_class, folder, strict=True)

    assert handed(a_class) == []


def test_a_dry_run_writes_nothing(a_class, tmp_path):
    folder = hand_in(tmp_path / "in", ada="a")

    result = take(a_class, folder, dry_run=True)

    assert len(result.imported) == 1
    assert list(a_class.store.folder.glob("blobs/*/*")) == []
    assert handed(a_class) == []


def test_a_submission_of_an_unclear_module_is_refused(a_class, tmp_path):
    folder = hand_in(tmp_path / "in", ada="a")
    its = a_class.settings.assignment("hw1")
    two = replace(its, modules=("track1/copy", "track1/softmax"))

    result = intake.take(a_class, two, [folder])

    [refused] = result.refused
    assert refused.reason.startswith("its module is unclear: the assignment has 2")


def test_a_pattern_that_is_no_regular_expression_is_refused(a_class, tmp_path):
    with pytest.raises(TritonlabError, match="--student-from is not a regular expression"):
        take(a_class, tmp_path, student_from="(")


def test_nothing_of_a_student_enters_the_record_of_the_instructor(a_class, tmp_path, monkeypatch):
    workspace = tmp_path / "own" / ".tritonlab"
    workspace.mkdir(parents=True)
    monkeypatch.chdir(workspace.parent)

    take(a_class, hand_in(tmp_path / "in", ada="a"))

    assert list(workspace.iterdir()) == []
