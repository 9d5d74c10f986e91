"""`tritonlab course`: a new course, and builds for students."""

from __future__ import annotations

import json

import pytest

from tests.support import authored
from tritonlab.course import course


def test_a_new_course_has_a_track_and_a_module_that_work(run, home):
    result = run("course", "new", "CS 149", "--title", "Parallel computing", "--plain")

    assert result.code == 0
    assert "Next: tritonlab check --course 'CS 149'" in result.out
    made = course.load(course.roots_in(home / "CS 149"))
    assert (made.id, made.title, made.version) == ("cs-149", "Parallel computing", "1")
    assert [module.id for module in made.modules] == ["track1/first-module"]


@pytest.mark.course
def test_check_names_what_is_left_to_write_and_accepts_the_rest(run, home):
    files = json.loads(run("course", "new", "own", "--json").out)["files"]

    before = run("check", "--course", "own", "--runs", "1", "--plain")
    authored.answer([home / file for file in files])
    after = run("check", "--course", "own", "--runs", "1", "--plain")

    assert before.code == 1
    assert "README.md, line" in before.out
    assert after.code == 0, after.out + after.err


@pytest.mark.parametrize(("arguments", "sentence"), [
    (("new", "full"), "full is not empty, so nothing was created."),
    (("new", "tritonlab"), "'tritonlab' cannot be the id of a course."),
    (("new", "one", "--id", "CS 149"), "'CS 149' cannot be the id of a course."),
    (("new", "one", "--title", 'the "one"'), "cannot be a title."),
    (("pack", "full"), "A course is built for students only. Add --student."),
    (("pack", "cs148", "--student"), "No installed course is called 'cs148'."),
    (("pack", "./none", "--student"), "There are no tracks in ")])
def test_wrong_input_gets_one_sentence(run, home, arguments, sentence):
    (home / "full").mkdir()
    (home / "full" / "mine.txt").write_text("mine")

    result = run("course", *arguments)

    assert sentence in result.err
    assert result.code in (2, 3)
    assert sorted(path.name for path in home.iterdir()) == ["full"]


def test_a_course_of_ones_own_is_built_for_students(run, home):
    run("course", "new", "own")

    result = run("course", "pack", "own", "--student", "--out", "built", "--json")

    assert result.code == 0, result.err
    files = json.loads(result.out)["files"]
    assert files == ["built/README.md", "built/dist/tritonlab-0.1.0+own.public-py3-none-any.whl"]
