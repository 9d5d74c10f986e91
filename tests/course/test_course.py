"""The course is read off the disk, and its modules are found by any of their names."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import grader
from tests.support import toy
from tritonlab.course import course
from tritonlab.course.course import Roots
from tritonlab.errors import BadCourse, UnknownModule
from tritonlab.verify import certificate_reader


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


def test_warm_ups_stand_directly_before_their_module(course_root):
    for folder in ("04-sum", "05-norm"):
        toy.write_module(course_root, "missing-elements", folder, folder, core=False,
                         before="track1/softmax")
    toy.write_module(course_root, "missing-elements", "06-lost", "Lost", before="track1/nowhere")

    numbers = [module.number for module in load(course_root).modules]

    assert numbers == ["1.1", "1.4", "1.5", "1.3", "1.6"]


def test_a_hint_group_is_found_by_its_todo(toy_course):
    module = toy_course.find("softmax")

    assert module.hint_group(3).group == "B"
    assert module.hint_group(99) is None


def test_the_suite_hash_is_the_one_that_the_grader_reports(toy_course):
    module = toy_course.find("softmax")

    assert module.suite_sha256 == grader.load_suite(module.suite).sha256


def test_a_suite_keeps_its_identity_where_only_its_form_changed(toy_course):
    suite = toy_course.find("softmax").suite
    before = grader.load_suite(suite).sha256
    suite.write_text(suite.read_text() + "# another form\n")
    identity = suite.with_name("identity.toml")

    changed = grader.load_suite(suite).sha256
    identity.write_text(f'content = "{changed}"\ntests = "{before}"\n')
    kept = grader.load_suite(suite).sha256
    suite.write_text(suite.read_text() + "# and once more\n")
    ended = grader.load_suite(suite).sha256

    assert (changed == before, kept == before, ended in (before, changed)) == (False, True, False)


@pytest.mark.parametrize(("content", "complaint"), [
    ("title = 'x'", "'summary' is missing"),
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


def test_the_real_course_counts_19_core_modules_and_10_electives():
    real = course.load()

    assert [[m.core for m in track.modules].count(True) for track in real.tracks] == [5, 5, 4, 5]
    assert [[m.core for m in track.modules].count(False) for track in real.tracks] == [3, 4, 1, 2]
    assert [track.starter for track in real.tracks] == ["blanks", "slow", "broken", "specification"]


# ------------------------------------------------------------ several courses


def load(root: Path) -> course.Course:
    return course.load(course.roots_in(root))


@pytest.mark.parametrize(("folder", "settings", "identity"), [
    ("cs149", None, "cs149"), ("My Course (2026)", None, "my-course-2026"),
    ("tritonlab", 'id = "cs149"', "cs149"),
    ("tritonlab", None, "'tritonlab' belongs to the shipped"),
    ("mine", 'id = "tritonlab"', "'tritonlab' belongs to the shipped"),
    ("mine", 'id = "a b"', "'a b' cannot be"), ("mine", "title = 1", "None cannot be"),
])
def test_a_course_has_an_id(tmp_path, folder, settings, identity):
    root = toy.write_course(tmp_path / folder)
    (root / "course.toml").unlink()
    if settings:
        (root / "course.toml").write_text(settings)

    if " " in identity:
        with pytest.raises(BadCourse, match=identity):
            load(root)
    else:
        assert load(root).id == identity
    assert course.load(course.shipped_roots()).id == "tritonlab"


@pytest.fixture
def two_courses(run, judge, home, course_root, monkeypatch):
    """Softmax passed in the course toy, and a second course with the same modules in use."""
    judge(toy.PASSING)
    run("start", "softmax")
    assert run("grade").code == 0
    assert run("certificate", "--html", "page.html").code == 0
    other = toy.write_course(home.parent / "other")
    (other / "course.toml").write_text('id = "cs149"')
    monkeypatch.setenv("TRITONLAB_COURSE", str(other))
    return other


@pytest.mark.parametrize("words", [
    ["list"], ["status"], ["status", "--history"], ["next"], ["start", "copy"], ["grade"],
    ["grade", "softmax"], ["grade", "tritonlab-workspace/track1/softmax/kernel.py"], ["hint"],
    ["reset", "softmax", "--yes"], ["certificate"], ["report"], ["watch", "softmax", "--json"],
    ["solution", "softmax", "--give-up"], ["inspect", "softmax"], ["bench", "softmax"],
], ids=" ".join)
def test_a_workspace_belongs_to_one_course(run, two_courses, home, words):
    workspace = home / "tritonlab-workspace"
    before = sorted(path for path in workspace.rglob("*") if path.name != ".lock")

    refused = run(*words)

    assert (refused.code, refused.out) == (2, "")
    assert refused.err == (
        f"The workspace {workspace} belongs to the course toy, and the course in use is cs149. "
        "Install toy, or let TRITONLAB_COURSE name its folder, then repeat the command.\n")
    assert sorted(path for path in workspace.rglob("*") if path.name != ".lock") == before


def test_records_and_certificates_count_for_their_own_course(run, two_courses, home, monkeypatch):
    workspace = home / "tritonlab-workspace"
    monkeypatch.setenv("TRITONLAB_WORKSPACE", str(home / "second"))
    run("start", "copy")

    verified, merged = run("verify", "page.html"), run("merge", str(workspace))
    status = json.loads(run("status", "--json").out)

    assert (verified.code, merged.code) == (2, 2)
    assert "The certificate belongs to the course toy, and the course in use is cs149." \
        in verified.err
    assert "belongs to the course toy, and the course in use is cs149." in merged.err
    assert (status["course"], status["totals"]["core"]["passed"]) == ("cs149", 0)

    foreign = (workspace / ".tritonlab/journal.jsonl").read_bytes()
    (home / "second/.tritonlab/merged.jsonl").write_bytes(foreign)  # as an older merge left it
    assert json.loads(run("status", "--json").out)["totals"]["core"]["passed"] == 0
    assert json.loads(run("report", "--json").out)["days"] == []


def test_records_and_workspaces_of_earlier_versions_belong_to_the_shipped_course(
        run, two_courses, home, monkeypatch):
    mark = home / "tritonlab-workspace" / ".tritonlab"
    (mark / "course.json").unlink()
    refused = run("status")
    monkeypatch.delenv("TRITONLAB_COURSE")
    certificate = json.loads((mark / "certificate.json").read_text())
    del certificate["course"]
    (home / "old.json").write_text(json.dumps(certificate))

    assert "belongs to the course tritonlab, and the course in use is cs149. Unset " in refused.err
    assert run("status").code == 0
    assert certificate_reader.read(home / "old.json").course == "tritonlab"
