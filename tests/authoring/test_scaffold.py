"""`tritonlab new`: all files in their places, nothing overwritten, and what is bad input told."""

from __future__ import annotations

import ast
import errno
import json
import tomllib
from pathlib import Path

import pytest

import grader
from tests.support import authored
from tritonlab.authoring import checks, scaffold
from tritonlab.course import course
from tritonlab.errors import TritonlabError
from tritonlab.progress import safe_files

pytestmark = pytest.mark.course

FILES = ("tracks/{}/module.toml", "tracks/{}/README.md", "tracks/{}/lesson.py",
         "tracks/{}/kernel.py", "solutions/{}/kernel.py", "solutions/{}/answers.md",
         "suites/{}/suite.py", "suites/{}/mutants.toml")


@pytest.fixture
def mine(home):
    return authored.empty_course(home / "mine")


def files_in(root: Path) -> set[str]:
    return {str(path.relative_to(root)) for path in root.rglob("*") if path.is_file()}


def test_all_files_are_made_in_their_places_and_no_other_is_touched(run, mine):
    before = {name: (mine / name).read_bytes() for name in files_in(mine)}

    shown = run("new", "track2/shared-rows", "--course", str(mine), "--title", "Rows, shared",
                "--minutes", "90", "--elective", "--entry", "sum_rows")

    made = files_in(mine) - set(before)
    assert shown.code == 0
    assert made == {name.format("optimization/01-shared-rows") for name in FILES}
    assert all((mine / name).read_bytes() == content for name, content in before.items())
    (module,) = course.load(course.roots_in(mine)).modules
    assert (module.id, module.title, module.minutes, module.core, module.number) == (
        "track2/shared-rows", "Rows, shared", 90, False, "2.1")
    assert "def sum_rows(x: torch.Tensor)" in module.solution.read_text()


def test_nothing_is_made_in_an_installed_package(run, home, monkeypatch):
    package = authored.empty_course(home / "site-packages" / "tritonlab")
    monkeypatch.delenv("TRITONLAB_COURSE")
    monkeypatch.setattr(course, "__file__", str(package / "course" / "course.py"))
    monkeypatch.setattr(grader, "__file__", str(package / "grader.py"))
    before = files_in(home)

    refused = run("new", "track2/shared-rows")

    assert (refused.code, files_in(home)) == (2, before)
    assert f"is part of the installed package {package}" in refused.err
    assert "--course DIR" in refused.err


def test_it_says_what_to_do_next(run, mine):
    shown = run("new", "1/my-rows", "--course", "mine")
    data = json.loads(run("new", "mastery/my-rows", "--course", "mine", "--json").out)

    assert "mine/tracks/missing-elements/01-my-rows/README.md" in shown.out
    assert "1. Write the solution" in shown.out
    assert shown.out.splitlines()[-1] == "Next: tritonlab check track1/my-rows --course mine"
    assert (data["module"], data["next"]) == (
        "track4/my-rows", "tritonlab check track4/my-rows --course mine")
    assert len(data["files"]) == len(FILES)


@pytest.mark.parametrize("track", authored.STARTERS)
def test_what_is_made_is_code_and_data_in_our_style(mine, track):
    roots = course.roots_in(mine)
    paths = scaffold.write(scaffold.plan(course.load(roots), roots, f"{track}/my-rows",
                                         title="A title that is not short, nor very long"))

    for path in paths:
        text = path.read_text()
        assert text.endswith("\n")
        assert not text.endswith("\n\n")
        assert all(len(line) <= 100 and line == line.rstrip() for line in text.splitlines())
        if path.suffix == ".py":
            assert ast.get_docstring(ast.parse(text))
        elif path.suffix == ".toml":
            tomllib.loads(text)


def test_a_skeleton_passes_all_but_what_is_left_to_write(run, mine):
    for track in authored.STARTERS:
        run("new", f"{track}/my-rows", "--course", str(mine))

    shown = run("check", "--plain", "--runs", "1", "--course", str(mine))

    fails = [line.partition(": ")[2] for line in shown.out.splitlines() if "FAIL " in line]
    assert fails == ["FAIL nothing left to write"] * 4
    assert shown.code == 1
    assert "nothing left to write: tracks/…/README.md, line 9: the story in five lines, with a " \
           "real kernel by its name." in shown.out
    assert "12 of 12 mutants killed" in shown.out


def test_numbers_go_on_after_the_last_one(mine):
    roots = course.roots_in(mine)
    (mine / "solutions" / "missing-elements" / "07-left-over").mkdir(parents=True)

    def number(slug: str) -> str:
        return scaffold.plan(course.load(roots), roots, f"track1/{slug}").number

    assert number("rows") == "1.8"
    authored.make(mine, "track1/rows")
    assert number("columns") == "1.9"
    (mine / "tracks" / "missing-elements" / "99-last").mkdir()
    with pytest.raises(TritonlabError, match="track1 has no number left after 99"):
        number("columns")


def test_a_module_of_an_extended_track_is_listed_after_those_of_the_base(run, home):
    root = home / "cs149"
    (root / "tracks").mkdir(parents=True)
    (root / "course.toml").write_text('id = "cs149"\nextends = "tritonlab"\n')
    base = course.load(course.shipped_roots()).tracks[0]

    shown = run("new", "track1/my-idea", "--course", str(root))
    replaced = run("new", "track1/softmax", "--course", str(root))

    track = course.load(course.roots_in(root)).tracks[0]
    assert (shown.code, replaced.code) == (0, 0)
    assert [m.id for m in track.modules] == [*(m.id for m in base.modules), "track1/my-idea"]
    assert track.modules[-1].number == f"1.{max(int(m.number[2:]) for m in base.modules) + 1}"
    assert [m.number for m in track.modules[:-1]] == [m.number for m in base.modules]
    assert (track.title, track.blurb, track.starter) == (base.title, base.blurb, base.starter)
    assert next(m for m in track.modules if m.slug == "softmax").folder.is_relative_to(root)


@pytest.mark.parametrize(("words", "said"), [
    (["track9/rows"], "There is no track called 'track9'. Name one of track1, track2, track3"),
    (["rows"], "'rows' does not have the form TRACK/SLUG. Type track1/my-idea, say."),
    (["track1/"], "'track1/' does not have the form TRACK/SLUG."),
    (["track1/my_rows"], "'my_rows' cannot be the name of a module. Use small letters, digits"),
    (["track1/../../rows"], "'../../rows' cannot be the name of a module"),
    (["track1/" + "r" * 41], "40 characters at most"),
    (["track1/2d-rows"], "'2d_rows' cannot be the name of a function. Name one with --entry."),
    (["track1/class"], "'class' cannot be the name of a function"),
    (["track1/rows", "--entry", "a b"], "'a b' cannot be the name of a function"),
    (["track1/rows", "--title", 'a "b"'], "cannot be a title"),
    (["track1/rows", "--minutes", "0"], ""),
    (["track1/rows", "--course", "nowhere"], "There is no course in nowhere"),
])
def test_bad_input_gets_a_sentence_and_makes_nothing(run, mine, words, said):
    before = files_in(mine)

    shown = run("new", *(["--course", str(mine)] if "--course" not in words else []), *words)

    assert (shown.code, shown.out) == (2, "")
    assert said in shown.err
    assert files_in(mine) == before


def test_a_track_of_an_unknown_kind_is_told(run, mine):
    track = mine / "tracks" / "mastery" / "track.toml"
    track.write_text(track.read_text().replace("specification", "thin air"))

    shown = run("new", "track4/rows", "--course", str(mine))

    assert shown.code == 2
    assert "track4 has an unknown kind of starter, 'thin air'." in shown.err


def test_a_module_that_is_there_is_left_alone(run, mine):
    made = authored.make(mine, "track1/rows")
    made.file("tracks/kernel.py").write_text("my work")
    before = files_in(mine)

    shown = run("new", "track1/rows", "--course", str(mine))

    assert shown.code == 2
    assert "track1/rows already exists, as missing-elements/01-rows." in shown.err
    assert "`tritonlab check track1/rows`" in shown.err
    assert files_in(mine) == before
    assert made.file("tracks/kernel.py").read_text() == "my work"


def test_files_that_appear_meanwhile_are_not_overwritten(mine):
    roots = course.roots_in(mine)
    plan = scaffold.plan(course.load(roots), roots, "track1/rows")
    (mine / "suites" / "missing-elements" / "01-rows").mkdir(parents=True)
    theirs = mine / "suites" / "missing-elements" / "01-rows" / "suite.py"
    theirs.write_text("theirs")
    before = files_in(mine)

    with pytest.raises(TritonlabError, match="track1/rows was not created: a file already exists"):
        scaffold.write(plan)

    assert files_in(mine) == before
    assert theirs.read_text() == "theirs"


def test_where_a_file_stands_in_the_way_nothing_is_left(run, mine):
    (mine / "solutions").write_text("not a folder")
    before = files_in(mine)

    shown = run("new", "track1/rows", "--course", str(mine))

    assert shown.code == 2
    assert "track1/rows was not created:" in shown.err
    assert "Choose a writable folder with --course" in shown.err
    assert files_in(mine) == before
    assert not (mine / "tracks" / "missing-elements" / "01-rows").exists()


def test_a_folder_that_cannot_be_written_is_told_and_nothing_is_left(run, mine, monkeypatch):
    create, before = safe_files.create, files_in(mine)

    def read_only(path: Path, content: bytes) -> bool:
        if path.name == "suite.py":
            raise OSError(errno.EROFS, "read-only", str(path))
        return create(path, content)

    monkeypatch.setattr(safe_files, "create", read_only)

    shown = run("new", "track1/rows", "--course", str(mine))

    assert shown.code == 2
    assert "track1/rows was not created: the file system is read-only" in shown.err
    assert files_in(mine) == before
    assert not (mine / "solutions").exists()


def test_a_full_disk_is_told_and_nothing_is_left(run, small_disk):
    with small_disk("36k") as folder:
        authored.empty_course(folder / "mine")
        before = files_in(folder)

        shown = run("new", "track1/rows", "--course", str(folder / "mine"))

        assert shown.code == 2
        assert "no space is left on the disk" in shown.err
        assert files_in(folder) == before


def test_the_prompts_are_those_that_check_looks_for(mine):
    roots = course.roots_in(mine)
    for track in authored.STARTERS:
        for path in scaffold.write(scaffold.plan(course.load(roots), roots, f"{track}/my-rows")):
            assert checks.PROMPT in path.read_text(), path
