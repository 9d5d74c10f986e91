"""The course is read off the disk, and its modules are found by any of their names."""

from __future__ import annotations

import pytest
import toy

import grader
from tritonlab import course
from tritonlab.course import Roots
from tritonlab.errors import BadCourse, UnknownModule


@pytest.mark.parametrize("name", [
    "track1/softmax", "missing-elements/softmax", "1.3", "softmax", "SOFTMAX", "track1/softmax/",
    "missing-elements/03-softmax", " track1/03-softmax",
])
def test_a_module_is_found_by_any_of_its_names(toy_course, name):
    assert toy_course.find(name).id == "track1/softmax"


@pytest.mark.parametrize(("name", "message"), [
    ("sofmax", "No module is called 'sofmax'. Did you mean track1/softmax? "
               "`tritonlab list` shows all."),
    ("track2/softmax", "No module is called 'track2/softmax'. Did you mean track1/softmax? "
                       "`tritonlab list` shows all."),
    ("track1/cpoy", "No module is called 'track1/cpoy'. Did you mean track1/copy? "
                    "`tritonlab list` shows all."),
    ("zzzzzz", "No module is called 'zzzzzz'. `tritonlab list` shows all."),
    ("", "No module is called ''. `tritonlab list` shows all."),
])
def test_an_unknown_name_suggests_the_nearest(toy_course, name, message):
    with pytest.raises(UnknownModule) as error:
        toy_course.find(name)

    assert str(error.value) == message


def test_a_slug_that_two_tracks_share_is_not_guessed(course_root):
    toy.write_module(course_root, "mastery", "01-softmax", "Another softmax")
    both = course.load(Roots(course_root / "tracks", course_root / "solutions",
                             course_root / "suites"))

    with pytest.raises(UnknownModule, match="track1/softmax or track4/softmax"):
        both.find("softmax")

    assert both.find("4.1").id == "track4/softmax"


def test_modules_come_in_the_order_of_their_folders(toy_course):
    assert [module.number for module in toy_course.modules] == ["1.1", "1.3"]
    assert [track.id for track in toy_course.tracks] == ["track1", "track2", "track3", "track4"]


def test_a_hint_group_is_found_by_its_todo(toy_course):
    module = toy_course.find("softmax")

    assert module.hint_group(3).group == "B"
    assert module.hint_group(99) is None


def test_the_suite_hash_is_the_one_that_the_grader_reports(toy_course):
    module = toy_course.find("softmax")

    assert module.suite_sha256 == grader.load_suite(module.suite).sha256


@pytest.mark.parametrize(("content", "complaint"), [
    ("title = 'x'", "it has no 'summary'"),
    ("title = ", "Invalid value"),
    ("\xff", "codec can't decode"),
], ids=["incomplete", "not TOML", "not UTF-8"])
def test_a_malformed_module_is_named(course_root, content, complaint):
    file = course_root / "tracks/missing-elements/03-softmax/module.toml"
    file.write_bytes(content.encode("latin-1"))

    with pytest.raises(BadCourse, match=complaint) as error:
        course.load(Roots(course_root / "tracks", course_root, course_root))

    assert str(file) in error.value.message
    assert error.value.exit_code == 3


def test_a_missing_course_is_said(tmp_path):
    with pytest.raises(BadCourse, match="There are no tracks in"):
        course.load(Roots(tmp_path, tmp_path, tmp_path))


def test_the_real_course_counts_19_core_modules_and_7_electives():
    real = course.load()

    assert [track.core_modules for track in real.tracks] == [5, 5, 4, 5]
    assert [track.electives for track in real.tracks] == [1, 4, 1, 1]
    assert [track.starter for track in real.tracks] == ["blanks", "slow", "broken", "specification"]
