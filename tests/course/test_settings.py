"""Courses of one's own: course.toml, what it extends, and installed courses found by their id."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.support import toy
from tritonlab.authoring import module_files
from tritonlab.course import course
from tritonlab.course.override import Override
from tritonlab.errors import BadCourse, TritonlabError


def made(root: Path, settings: str) -> Path:
    root.mkdir(parents=True, exist_ok=True)
    (root / "course.toml").write_text(settings)
    return root


def load(root: Path) -> course.Course:
    return course.load(course.roots_in(root))


@pytest.mark.parametrize(("settings", "message"), [
    ('id = "cs149"\nmodulse = []',
     "line 2: 'modulse' is not a setting. Did you mean 'modules'? The settings are id, version"),
    ('id = "cs149"\nversion = 2', "line 2: 'version' is not a text."),
    ('id = "cs149"\nmodules = "all"', "line 2: 'modules' is not a list of ids."),
    ('id = "cs149"\nrequires = "torch"', "line 2: 'torch' does not name versions of tritonlab."),
    ('id = "cs149"\nrequires = "a b"', "line 2: 'a b' does not name versions of tritonlab."),
    ('id = "cs149"\nextends = "tritonlab"\n[override."track1/softmax"]\npass = 0.6',
     "line 4: 'pass' cannot be overridden. Did you mean 'pass_at'?"),
    ('id = "cs149"\nextends = "tritonlab"\n[override."track1/softmax"]\npass_at = 60',
     "line 4: pass_at = 60 is not a share between 0 and 1. Write pass_at = 0.6 for 60 %."),
    ('id = "cs149"\nextends = "tritonlab"\nmodules = [\n    "track1/sofmax",\n]',
     "line 4: No module is called 'track1/sofmax'. Did you mean track1/softmax?"),
    ('id = "cs149"\nextends = "tritonlab"\n[override."track9/x"]\npass_at = 0.6',
     "line 3: No module is called 'track9/x'."),
])
def test_a_wrong_setting_is_told_with_its_line_and_its_cure(tmp_path, settings, message):
    root = made(tmp_path / "cs149", settings)

    with pytest.raises(BadCourse) as error:
        load(root)

    assert f"{root / 'course.toml'}, {message}" in str(error.value)


def test_a_course_says_which_tritonlab_it_requires(tmp_path):
    root = made(tmp_path / "cs149", 'id = "cs149"\nextends = "tritonlab"\n'
                                    'requires = "tritonlab>=99"')

    with pytest.raises(TritonlabError, match="The course cs149 requires tritonlab>=99, and ") as no:
        load(root)
    made(root, 'id = "cs149"\nextends = "tritonlab"\nrequires = "tritonlab>=0.1"')

    assert (no.value.exit_code, no.value.next_step) == (2, "Type pip install 'tritonlab>=99'.")
    assert load(root).id == "cs149"


def test_a_course_chooses_and_orders_modules_of_the_one_that_it_extends(tmp_path):
    root = made(tmp_path / "cs149", 'id = "cs149"\nversion = "2026.1"\ntitle = "Parallel"\n'
                'extends = "tritonlab"\nmodules = ["track2/tiling", "track1/softmax", '
                '"track1/tile-copy"]')

    chosen = load(root)

    assert (chosen.id, chosen.version, chosen.title) == ("cs149", "2026.1", "Parallel")
    assert [module.qualified for module in chosen.modules] == [
        "cs149:track2/tiling", "cs149:track1/softmax", "cs149:track1/tile-copy"]
    assert [[m.slug for m in track.modules] for track in chosen.tracks] == [
        ["softmax", "tile-copy"], ["tiling"]]
    assert all(not m.before and {*m.prerequisites} <= {x.id for x in chosen.modules}
               for m in chosen.modules)


def test_own_tracks_and_modules_stand_beside_those_of_the_base(tmp_path):
    root = made(tmp_path / "cs149", 'id = "cs149"\nextends = "tritonlab"')
    track = root / "tracks" / "projects"
    track.mkdir(parents=True)
    (track / "track.toml").write_text('number = 5\ntitle = "Projects"\nblurb = "Ours."\n'
                                      'starter = "blanks"\n')
    toy.write_module(root, "projects", "01-scan", "Scan")

    extended = load(root)

    assert len([*extended.modules]) == len([*course.load(course.shipped_roots()).modules]) + 1
    assert [*extended.modules][-1].id == "track5/scan"
    assert {module.course for module in extended.modules} == {"cs149"}


def test_an_override_is_seen_by_every_reader_of_the_suite(tmp_path):
    root = made(tmp_path / "cs149", 'id = "cs149"\nextends = "tritonlab"\n'
                                    '[override."track1/softmax"]\npass_at = 0.6')
    module = load(root).find("softmax")
    shipped = course.load(course.shipped_roots()).find("softmax")

    suites = [module.load_suite(), module.load_suite(whole=True),
              module_files.read(module, "blanks").suite]

    def shares(suite):
        return {case.limits.pass_at for case in suite.all_cases
                if case.limits and case.limits.pass_at is not None}

    assert module.override == Override(0.6)
    assert [shares(suite) for suite in suites] == [{0.6}] * 3
    assert {suite.sha256 for suite in suites} == {module.suite_sha256}
    assert module.suite_sha256 != shipped.suite_sha256 == shipped.load_suite().sha256
    assert 0.6 not in shares(shipped.load_suite())


@pytest.fixture
def installed(tmp_path, monkeypatch):
    """A course as `pip install cs149-course` leaves it."""
    site = tmp_path / "site"
    root = toy.write_course(site / "cs149_course")
    made(root, 'id = "cs149"\nversion = "2026.1"\ntitle = "Parallel"')
    info = site / "cs149_course-2026.1.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: cs149-course\nVersion: 2026.1\n")
    (info / "entry_points.txt").write_text("[tritonlab.courses]\ncs149 = cs149_course\n")
    monkeypatch.syspath_prepend(site)
    return root


def test_an_installed_course_is_found_by_its_id(run, installed, monkeypatch):
    monkeypatch.setenv("TRITONLAB_COURSE", "cs149")
    started = run("start", "softmax")
    monkeypatch.delenv("TRITONLAB_COURSE")
    inside = run("status", "--json")
    mark = Path("tritonlab-workspace/.tritonlab")
    record = json.loads((mark / "journal.jsonl").read_text().splitlines()[0])
    certificate = json.loads((mark / "certificate.json").read_text())

    assert (started.code, inside.code) == (0, 0)
    assert json.loads(inside.out)["course"] == "cs149"
    assert json.loads((mark / "course.json").read_text()) == {
        "schema": 1, "course": "cs149", "version": "2026.1"}
    assert (record["course"], record["course_version"]) == ("cs149", "2026.1")
    assert (certificate["course"], certificate["course_version"]) == ("cs149", "2026.1")


def test_a_workspace_of_a_course_that_is_gone_says_so(run, installed, monkeypatch):
    monkeypatch.setenv("TRITONLAB_COURSE", "cs149")
    run("start", "softmax")
    (installed.parent / "cs149_course-2026.1.dist-info" / "entry_points.txt").unlink()
    monkeypatch.delenv("TRITONLAB_COURSE")

    refused = run("status")
    monkeypatch.setenv("TRITONLAB_COURSE", "cs148")
    unknown = run("list")

    assert refused.code == 2
    assert "belongs to the course cs149, which is not installed. Install cs149, or let " in \
        refused.err
    assert "No installed course is called 'cs148'." in unknown.err


def test_a_name_may_say_its_course(run, home):
    own, other = run("start", "toy:track1/softmax"), run("start", "cs149:track1/softmax")

    assert own.code == 0
    assert (other.code, other.out) == (2, "")
    assert "'cs149:track1/softmax' belongs to the course cs149, and the course in use is toy." in \
        other.err


def test_an_override_of_what_no_case_asks_for_is_told(tmp_path):
    root = made(tmp_path / "cs149", 'id = "cs149"\nextends = "tritonlab"\n'
                                    '[override."track3/dynamic-shapes"]\npass_at = 0.6')

    with pytest.raises(BadCourse, match="overrides track3/dynamic-shapes, and no case has a pass_"):
        load(root).find("dynamic-shapes").load_suite()


def test_a_lesson_names_the_share_that_the_course_requires(run, tmp_path, home, monkeypatch):
    root = made(tmp_path / "cs149", 'id = "cs149"\nextends = "tritonlab"\n'
                                    '[override."track1/softmax"]\npass_at = 0.6')
    monkeypatch.setenv("TRITONLAB_COURSE", str(root))

    lesson = run("read", "softmax", "--plain").out
    run("start", "softmax")

    note = "## How it is graded\n\n**In this course, performance cases require 60% of the speed"
    assert note in lesson
    assert note in Path("tritonlab-workspace/track1/softmax/README.md").read_text()


@pytest.mark.course
def test_check_proves_own_and_overridden_modules_only(run, tmp_path, home):
    root = made(tmp_path / "cs149", 'id = "cs149"\nextends = "tritonlab"\n'
                                    'modules = ["track1/tile-copy", "track1/softmax"]\n')

    result = run("check", "--course", str(root))
    made(root, f'{(root / "course.toml").read_text()}[override."track1/softmax"]\npass_at = 0.7')
    overridden = run("check", "--course", str(root), "--runs", "1", "--json")

    assert result.code == 2
    assert "There is no module to check." in result.err
    assert [one["module"] for one in json.loads(overridden.out)["modules"]] == ["track1/softmax"]
