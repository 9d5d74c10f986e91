"""Builds of an assignment: what each holds, and that students' builds hold nothing secret."""

from __future__ import annotations

import io
import json
import re
import zipfile
from dataclasses import replace
from functools import cache

import pytest

from tests.classroom.pack import support
from tests.support.shipped import COURSE, MODULES, ROOT, ROOTS
from tritonlab.classroom.pack import build
from tritonlab.errors import BadCourse, TritonlabError
from tritonlab.grading import grade as grading
from tritonlab.workspace.submission import Submission


def members(content: bytes, prefix: str = "") -> dict[str, bytes]:
    """All files in a zip archive, those of archives in it too."""
    files: dict[str, bytes] = {}
    archive = zipfile.ZipFile(io.BytesIO(content))
    for name in archive.namelist():
        inner = archive.read(name)
        files[f"{prefix}{name}"] = inner
        if name.endswith((".whl", ".zip")):
            files |= members(inner, f"{prefix}{name}!")
    return files


def everything(pack: build.Pack) -> dict[str, bytes]:
    files = dict(pack.files)
    for name, content in pack.files.items():
        if name.endswith(".whl"):
            files |= members(content, f"{name}!")
    return files


@cache
def shown_text() -> str:
    """All that learners may see, without spaces: tracks, and the sources of tritonlab."""
    files = [path for folder in ("tracks", "grader", "tritonlab")
             for path in (ROOT / folder).rglob("*")
             if path.suffix in (".py", ".md", ".toml", ".jinja") and "suites" not in path.parts]
    return "\n".join(re.sub(r"\s", "", path.read_text()) for path in files)


def secret_lines(module_id: str) -> set[str]:
    """Lines of the solution and the answers that are nowhere else."""
    lines = {line.strip() for path in MODULES[module_id].solution.parent.rglob("*")
             if path.is_file() and path.suffix in (".py", ".md")
             for line in path.read_text().splitlines()}
    return {line for line in lines
            if len(line) > 25 and re.sub(r"\s", "", line) not in shown_text()}


def hidden_names(module_id: str) -> set[str]:
    cases = MODULES[module_id].load_suite().ordered()
    shown = {case.name.removeprefix(f"{case.function}: ") for case in cases if case.public}
    return {case.name.removeprefix(f"{case.function}: ")
            for case in cases if not case.public} - shown


@pytest.mark.course
def test_a_students_build_of_the_course_has_no_solution_and_no_hidden_case():
    pack = build.of_course(COURSE, ROOTS)
    files = everything(pack)

    everywhere = b"\0".join(files.values())

    assert not [name for name in files if "solutions/" in name or name.endswith("mutants.toml")]
    for module_id in MODULES:
        lines = secret_lines(module_id)
        assert lines
        assert not [line for line in lines if line.encode() in everywhere]
        place = f"!grader/suites/{'/'.join(MODULES[module_id].suite.parts[-3:-1])}/"
        suite = b"\0".join(content for name, content in files.items() if place in name)
        assert suite
        assert not [name for name in hidden_names(module_id) if f"'{name}'".encode() in suite]


def test_the_archive_for_gradescope_has_what_gradescope_runs(tmp_path):
    pack = support.packed(tmp_path / "class", "gradescope", torch_index="https://torch.example/cpu")

    (path,) = build.write(pack, tmp_path / "hw1.zip")
    archive = zipfile.ZipFile(path)
    programs = {one.filename for one in archive.infolist() if one.external_attr >> 16 & 0o111}

    assert programs == {"setup.sh", "run_autograder"}
    setup = archive.read("setup.sh").decode()
    assert "--index-url https://torch.example/cpu 'torch<2.14,>=2.8'" in setup
    assert archive.read("class/.tritonlab-class/secret") == \
        (tmp_path / "class" / ".tritonlab-class" / "secret").read_bytes()
    inner = members(path.read_bytes())
    modules = {name.split("/tracks/")[1] for name in inner if name.endswith("/module.toml")}
    assert modules == {"missing-elements/07-tile-copy/module.toml"}
    assert [name for name in inner if name.endswith("07-tile-copy/mutants.toml")]


def test_the_settings_in_a_pack_have_no_lateness_and_ask_for_no_tier(tmp_path):
    pack = support.packed(tmp_path, "gradescope")

    text = pack.files["class/class.toml"].decode()
    assert 'name = "CS 149, \\"autumn\\""' in text
    assert "points = 20" in text and "require_isolation = 0" in text
    assert "due" not in text and "late" not in text


def test_what_students_can_read_at_classroom_50_holds_no_solution_and_no_seed(tmp_path):
    files = everything(support.packed(tmp_path, "classroom50"))

    assert not [name for name in files if "secret" in name or "solutions/" in name
                or name.endswith("mutants.toml")]
    assert [name for name in files if name.endswith("07-tile-copy/suite.py")]
    own = b"\0".join(files.values())
    assert not [line for line in secret_lines("track1/tile-copy") if line.encode() in own]
    compile(files["autograder.py"], "autograder.py", "exec")


def test_both_workflows_of_github_actions(tmp_path):
    files = everything(support.packed(tmp_path, "github-actions", "hw2"))

    whole = files["class/.github/workflows/hw2.yml"].decode()
    public = files["student/.github/workflows/hw2.yml"].decode()
    assert "tritonlab class grade hw2 --shard ${{ matrix.shard }}/4 --json" in whole
    assert "tritonlab grade track1/softmax/kernel.py --module track1/softmax --no-record " \
        "--format github" in public
    assert not [name for name in files if name.startswith("student/") and "solutions/" in name]


def test_an_image_has_pinned_versions_and_a_user(tmp_path):
    files = support.packed(tmp_path, "docker").files

    pins = files["constraints.txt"].decode().splitlines()
    assert all(re.fullmatch(r"[a-z0-9-]+==[0-9][\w.]*", pin) for pin in pins)
    assert [pin for pin in pins if pin.startswith("torch==2.")]
    dockerfile = files["Dockerfile"].decode()
    assert re.search(r"^FROM python:3\.\d+\.\d+-slim", dockerfile, re.MULTILINE)
    assert re.search(r"^USER (?!root)", dockerfile, re.MULTILINE)


def test_equal_classes_give_equal_bytes(tmp_path):
    one, other = (support.packed(tmp_path / name, "student") for name in ("one", "other"))

    assert one.files == other.files


def test_a_file_is_never_overwritten(tmp_path):
    pack = support.packed(tmp_path / "class", "student")
    (tmp_path / "out").write_text("mine")

    with pytest.raises(TritonlabError, match="already exists, so nothing was written"):
        build.write(pack, tmp_path / "out")

    assert (tmp_path / "out").read_text() == "mine"


@pytest.mark.parametrize(("target", "text", "sentence"), [
    ("moodle", support.CLASS, "'moodle' is not a target of a pack. Add --for with one of"),
    ("", support.CLASS, "The target of the pack is missing."),
    ("student", support.CLASS.replace('["track1/tile-copy"]', "[]"),
     "Assignment hw1 has no modules. Name them in class.toml."),
    ("student", support.CLASS.replace("tile-copy", "tile-copi"),
     "No module is called 'track1/tile-copi'. Did you mean track1/tile-copy?"),
    ("docker", support.CLASS.replace('"tritonlab"', '"nowhere"'),
     "No installed course is called 'nowhere'.")])
def test_wrong_input_gets_one_sentence(tmp_path, target, text, sentence):
    with pytest.raises(TritonlabError) as error:
        support.packed(tmp_path, target, text=text)

    assert sentence in str(error.value)


@pytest.mark.parametrize(("path", "sentence"), [
    ("suites/missing-elements/03-softmax/suite.py", "track1/softmax has no hidden tests at "),
    ("tracks/missing-elements/03-softmax/kernel.py", "track1/softmax has no exercise at "),
    ("solutions/missing-elements/03-softmax/kernel.py", "track1/softmax has no solution at ")])
def test_a_module_without_a_file_is_named(tmp_path, course_root, path, sentence):
    text = support.CLASS.replace('"tritonlab"', f'"{course_root}"').replace("tile-copy", "softmax")
    (course_root / path).unlink()

    with pytest.raises(BadCourse) as error:
        support.packed(tmp_path / "class", "gradescope", text=text)

    assert sentence in str(error.value)


def test_a_module_without_a_public_case_is_not_graded(toy_course, sandbox):
    module = replace(toy_course.find("softmax"), public_only=True)
    submission = Submission(module, module.folder / "kernel.py", None)

    with pytest.raises(TritonlabError, match="track1/softmax has no public case, and this build"):
        grading.grade(submission, sandbox=sandbox)


def test_the_verb_says_where_the_pack_is(run, home):
    (home / "class.toml").write_text(support.CLASS)

    first = run("class", "pack", "hw1", "--for", "student", "--json")
    again = run("class", "pack", "hw1", "--for", "student")

    assert first.code == 0
    assert json.loads(first.out)["path"] == str(home / "packs" / "hw1-student")
    assert again.code == 2
    assert again.err == ("packs/hw1-student already exists, so nothing was written. Remove it, or "
                         "name another path with --out.\n")
