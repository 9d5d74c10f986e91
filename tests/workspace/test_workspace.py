"""The workspace is found where it should be, and nothing in it is ever overwritten."""

from __future__ import annotations

import os

import pytest

from grader.submission import source
from tritonlab.errors import NotSaved, NoWorkspace, UnusableFile
from tritonlab.workspace import workspace
from tritonlab.workspace.workspace import Workspace


def test_the_workspace_is_the_nearest_folder_upwards_with_the_mark(home, monkeypatch):
    (home / "mine" / ".tritonlab").mkdir(parents=True)
    deep = home / "mine" / "track1" / "softmax"
    deep.mkdir(parents=True)
    monkeypatch.chdir(deep)

    assert workspace.locate() == home / "mine"


def test_without_a_mark_it_is_a_folder_in_the_current_one(home):
    assert workspace.locate() == home / "tritonlab-workspace"
    assert workspace.find() is None
    with pytest.raises(NoWorkspace, match=r"`tritonlab start 1\.1` creates one"):
        workspace.require("1.1")


def test_the_environment_decides(home, monkeypatch):
    (home / ".tritonlab").mkdir()
    monkeypatch.setenv("TRITONLAB_WORKSPACE", "elsewhere")

    assert workspace.locate() == home / "elsewhere"


def test_start_copies_the_exercise_the_lesson_and_the_readme(home, toy_course):
    module = toy_course.find("softmax")

    place, started = workspace.start(module, workspace.locate())

    assert place.kernel(module) == home / "tritonlab-workspace/track1/softmax/kernel.py"
    assert sorted(p.name for p in started.kernel.parent.iterdir()) == [
        "README.md", "kernel.py", "lesson.py"]
    assert started.kernel.read_text() == (module.folder / "kernel.py").read_text()


def test_start_never_overwrites_work(home, toy_course):
    module = toy_course.find("softmax")
    place, started = workspace.start(module, workspace.locate())
    started.kernel.write_text("my work")
    (place.folder(module) / "lesson.py").unlink()

    _, again = workspace.start(module, workspace.locate())

    assert started.kernel.read_text() == "my work"
    assert again.kept == ("kernel.py", "README.md")
    assert again.copied == ("lesson.py",)


def test_start_leaves_a_dangling_link_alone(home, toy_course):
    module = toy_course.find("softmax")
    folder = home / "tritonlab-workspace/track1/softmax"
    folder.mkdir(parents=True)
    (folder / "kernel.py").symlink_to(home / "target.py")

    with pytest.raises(UnusableFile, match="is a symbolic link to a missing file"):
        workspace.start(module, workspace.locate())

    assert (folder / "kernel.py").is_symlink()
    assert not (home / "target.py").exists()


def test_start_where_a_file_lies_in_the_way_says_so(home, toy_course):
    (home / "tritonlab-workspace").write_text("a file")

    with pytest.raises(NotSaved, match="The exercise was not saved"):
        workspace.start(toy_course.find("softmax"), workspace.locate())


def test_a_file_below_the_workspace_belongs_to_its_module(home, toy_course):
    place = Workspace(home)

    assert place.module_of(home / "track1/softmax/other.py", toy_course).id == "track1/softmax"
    assert place.module_of(home / "track1/softmax", toy_course) is None
    assert place.module_of(home / "notes.py", toy_course) is None
    assert place.module_of(home.parent / "kernel.py", toy_course) is None


def make(path, kind):
    match kind:
        case "folder":
            path.mkdir()
        case "pipe":
            os.mkfifo(path)
        case "link to itself":
            path.symlink_to(path)
        case "device":
            path.symlink_to("/dev/zero")
        case "large":
            path.write_bytes(b"#" * 1_000_001)


@pytest.mark.parametrize(("kind", "complaint"), [
    ("missing", "There is no file at kernel.py"),
    ("folder", "kernel.py is a folder"),
    ("pipe", "kernel.py is not a regular file"),
    ("device", "kernel.py is not a regular file"),
    ("link to itself", "kernel.py is a symbolic link that points back to itself"),
    ("large", r"kernel.py has 1,000,001 bytes; an exercise may have 1,000,000\."),
])
def test_what_cannot_be_an_exercise_is_refused(home, kind, complaint):
    path = home / "kernel.py"
    make(path, kind)

    with pytest.raises(UnusableFile, match=complaint) as error:
        workspace.check_file(path)

    assert error.value.next_step
    assert error.value.exit_code == 2


def test_the_command_and_the_grader_have_one_limit_for_a_file(tmp_path):
    path = tmp_path / "kernel.py"
    path.write_bytes(b"#" * source.MAX_BYTES)

    workspace.check_file(path)
    source.read(path)

    path.write_bytes(b"#" * (source.MAX_BYTES + 1))
    with pytest.raises(UnusableFile):
        workspace.check_file(path)
    with pytest.raises(source.UnreadableSubmission, match="a kernel file may have 1,000,000"):
        source.read(path)
