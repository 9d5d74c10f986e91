"""The layouts of submissions: recognized by shape, and read with nothing lost or guessed."""

from __future__ import annotations

import re
import subprocess
import tarfile
import zipfile
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path

import pytest

from tests.support import class_layouts
from tritonlab.classroom import importers
from tritonlab.classroom.importers import Incoming
from tritonlab.errors import TritonlabError

A, B = b"# a\n", b"# b\n"


def lay(root: Path, files: Mapping[str, bytes]) -> Path:
    """Writes files below a folder, and returns it."""
    for name, data in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_bytes(data)
    return root


def zipped(path: Path, files: Mapping[str, bytes]) -> Path:
    with zipfile.ZipFile(path, "w") as content:
        for name, data in files.items():
            content.writestr(name, data)
    return path


def tarred(path: Path, files: Mapping[str, bytes], folder: Path) -> Path:
    lay(folder, files)
    with tarfile.open(path, "w:gz") as content:
        content.add(folder, folder.name)
    return path


def read(path: Path, layout: str = "auto", student_from: str = "") -> list[Incoming]:
    pattern = re.compile(student_from) if student_from else None
    return list(importers.read(path, layout, pattern))


def shown(incoming: list[Incoming]) -> dict[str, Mapping[str, bytes]]:
    return {one.student_text: one.files for one in incoming}


SHAPES: dict[str, tuple[str, dict[str, bytes], dict[str, bytes]]] = {
    "folder": ("folder", {"alice/kernel.py": A, "bob/kernel.py": B}, {"alice": A, "bob": B}),
    "folder of one": ("folder", {"alice/kernel.py": A}, {"alice": A}),
    "folder, nested": ("folder", {"alice/hw1/src/kernel.py": A, "bob/kernel.py": B},
                       {"alice": A, "bob": B}),
    "folder, other names": ("folder", {"alice/softmax.py": A, "bob/Kernel (2).py": B},
                            {"alice": A, "bob": B}),
    "flat": ("flat", {"alice_kernel.py": A, "bob-kernel.py": B}, {"alice": A, "bob": B}),
    "flat, numbered": ("flat", {"a_b_kernel-1.py": A, "bob.kernel (2).py": B},
                       {"a_b": A, "bob": B}),
    "flat, names alone": ("flat", {"alice.py": A, "van_berg.py": B}, {"alice": A, "van_berg": B}),
    "flat, modules": ("flat", {"alice_softmax.py": A, "b_b_softmax.py": B},
                      {"alice": A, "b_b": B}),
    "canvas": ("canvas", {"smithalice_340_77_kernel.py": A, "obrienbob_LATE_341_78_my_k-2.py": B},
               {"smithalice": A, "obrienbob": B}),
    "canvas, anonymous": ("canvas", {"anon_xY3zz_77_kernel.py": A,
                                     "LATE_anon_aB1cc_78_kernel.py": B},
                          {"anonymous xY3zz": A, "anonymous aB1cc": B}),
    "moodle": ("moodle", {"Alice Smith_771_assignsubmission_file_/kernel.py": A,
                          "Bob O'Brien_772_assignsubmission_file/deep/kernel.py": B},
               {"Alice Smith": A, "Bob O'Brien": B}),
    "moodle, no folders": ("moodle", {"Alice Smith_771_assignsubmission_file_kernel.py": A,
                                      "Bob_772_assignsubmission_file_my kernel.py": B},
                           {"Alice Smith": A, "Bob": B}),
    "moodle, blind": ("moodle", {"Participant_771_assignsubmission_file_/kernel.py": A},
                      {"Participant": A}),
}


@pytest.mark.parametrize("wrapped", [False, True], ids=["bare", "wrapped"])
@pytest.mark.parametrize(("layout", "files", "expected"), SHAPES.values(), ids=SHAPES)
def test_a_folder_is_recognized_by_its_shape(tmp_path, layout, files, expected, wrapped):
    lay(tmp_path / "handed_in" / "hw1" if wrapped else tmp_path / "handed_in", files)

    incoming = read(tmp_path / "handed_in")

    assert importers.recognize(tmp_path / "handed_in") == layout
    assert shown(incoming) == {name: {"kernel.py": data} for name, data in expected.items()}
    assert [one.problems for one in incoming] == [()] * len(expected)


@pytest.mark.parametrize(("layout", "files", "expected"), SHAPES.values(), ids=SHAPES)
def test_archives_are_read_as_folders_are(tmp_path, layout, files, expected):
    content = {name: {"kernel.py": data} for name, data in expected.items()}

    bare = read(zipped(tmp_path / "bare.zip", files))
    wrapped = read(tarred(tmp_path / "wrapped.tar.gz", files, tmp_path / "hw1"))

    assert shown(bare) == shown(wrapped) == content


@pytest.mark.parametrize("layout", class_layouts.LAYOUTS)
def test_a_class_is_imported_from_a_platform(tmp_path, layout):
    roster = class_layouts.roster(40)
    sources: dict[str, class_layouts.Content] = {
        one.id: f"# {one.id}\n".encode() for one in roster}
    sources["s0003"] = {"kernel.py": A, "ops.py": B}
    path = class_layouts.LAYOUTS[layout](tmp_path, roster, sources)

    incoming = read(path)

    assert importers.recognize(path) == layout
    matched = {match.student.id: one.files for one in incoming
               if (match := roster.match(one.student_text, one.ids)).student}
    assert matched == {name: data if isinstance(data, Mapping) else {"kernel.py": data}
                       for name, data in sources.items()}
    assert not any(one.problems for one in incoming)
    assert len({(one.student_text, one.attempt) for one in incoming}) == 40


def test_canvas_marks_what_is_late_and_names_the_user(tmp_path):
    lay(tmp_path, {"a_LATE_5_70_kernel.py": A, "b_6_71_kernel.py": B})

    incoming = read(tmp_path)

    assert [(one.student_text, one.late, one.ids, one.attempt, one.name) for one in incoming] == [
        ("a", True, ("canvas:5",), "70", "a_LATE_5_70_kernel.py"),
        ("b", False, ("canvas:6",), "71", "b_6_71_kernel.py")]


def test_files_that_a_user_handed_in_together_are_one_submission(tmp_path):
    lay(tmp_path, {"a_5_70_kernel.py": A, "a_5_71_ops.py": B})

    assert read(tmp_path) == [Incoming(
        "a", {"kernel.py": A, "ops.py": B}, late=False, name="a_5/kernel.py", attempt="71",
        ids=("canvas:5",))]


def test_of_two_versions_the_newest_counts_and_both_are_reported(tmp_path):
    lay(tmp_path, {"a_5_70_kernel.py": A, "a_5_71_kernel-1.py": B})
    lay(tmp_path / "more", {"a_5_70_kernel-1.py": A, "a_5_71_kernel-2.py": B})

    (first,), (second,) = read(tmp_path, "canvas"), read(tmp_path / "more")

    assert first.files == {"kernel.py": A}  # the name that was asked for
    assert second.files == {"kernel.py": B}
    assert second.problems == ("There are 2 versions of kernel.py; kernel-2.py counts.",)


def test_text_typed_into_a_platform_is_reported(tmp_path):
    lay(tmp_path / "canvas", {"a_5_70_kernel.py": A, "b_6_text.html": b"<p>done"})
    lay(tmp_path / "moodle", {"A_1_assignsubmission_onlinetext_/onlinetext.html": b"<p>done"})

    canvas, moodle = read(tmp_path / "canvas"), read(tmp_path / "moodle")

    assert [bool(one.files) for one in (*canvas, *moodle)] == [True, False, False]
    assert "typed into Canvas" in canvas[1].problems[0]
    assert moodle[0].problems[0] == "The student typed text and handed in no file."


def test_a_file_that_canvas_did_not_name_is_not_lost(tmp_path):
    lay(tmp_path, {"a_5_70_kernel.py": A, "b_6_71_kernel.py": B, "late one.py": A})

    incoming = {one.student_text: one for one in read(tmp_path)}

    assert incoming["late one.py"].problems == ("The file is not named as Canvas names files.",)


def test_moodle_names_the_participant(tmp_path):
    lay(tmp_path, {"Al Kim_771_assignsubmission_file_/kernel.py": A})

    assert read(tmp_path) == [Incoming(
        "Al Kim", {"kernel.py": A}, name="Al Kim_771/kernel.py", attempt="771",
        ids=("moodle:771",))]


METADATA = """---
submission_1:
  :submitters:
  - :name: Alice Smith
    :sid: '1001'
    :email: &1 a@uni.edu
  - :name: 'Bob O''Brien'
    :sid: 1002
    :email: *1
  :created_at: 2026-04-26 17:34:00.861687000 -07:00
  :results:
    tests:
    - name: Check
      output: 'Don''t worry about
        :submitters: of others

'
  :history:
  - :created_at: 2026-04-25 11:00:00 Z
...
submission_2:
  :submitters:
  - :sid: '1003'
    :name: "Zo\\u00eb \\"Z\\""
  :created_at: yesterday
submission_3:
  :submitters: []
submission_4:
  :submitters:
  - :name: >
      folded
  :created_at: 2026-04-26 00:00:00 Z
"""


def test_gradescope_gives_a_group_submission_to_each_of_its_members(tmp_path):
    lay(tmp_path / "assignment_9_export", {
        "submission_metadata.yml": METADATA.encode(), "submission_1/kernel.py": A,
        "submission_2/kernel.py": B, "submission_3/kernel.py": A, "submission_5/kernel.py": A})

    incoming = {one.student_text: one for one in read(tmp_path)}

    at = datetime(2026, 4, 26, 17, 34, tzinfo=timezone(timedelta(hours=-7)))
    assert incoming["Alice Smith"] == Incoming(
        "Alice Smith", {"kernel.py": A}, at=at, name="submission_1/kernel.py", attempt="1",
        ids=("email:a@uni.edu", "sis_id:1001"))
    assert incoming["Bob O'Brien"].ids == ("email:a@uni.edu", "sis_id:1002")
    assert (incoming['Zoë "Z"'].at, incoming['Zoë "Z"'].files) == (None, {"kernel.py": B})
    unnamed = "submission_metadata.yml does not name its student."
    assert incoming["submission_3"].problems == incoming["submission_5"].problems == (unnamed,)
    assert incoming["submission_4"].problems[0].startswith(
        "submission_metadata.yml has a value that is not understood: '>'")


def test_the_metadata_of_a_large_course_are_read_once_a_line(tmp_path):
    noise = "    output: |-\n" + "      :name: another student\n" * 200
    lay(tmp_path, {"submission_1/kernel.py": A, "submission_metadata.yml": "".join(
        f"submission_{number}:\n  :submitters:\n  - :name: S{number}\n  :results:\n{noise}"
        for number in range(300)).encode()})

    incoming = read(tmp_path)

    assert [one.student_text for one in incoming] == [f"S{number}" for number in range(300)]
    assert [bool(one.files) for one in incoming].count(True) == 1


def test_classroom50_takes_the_time_of_the_push_from_the_runner(tmp_path):
    roster = class_layouts.roster(2)
    root = class_layouts.classroom50(tmp_path, roster, {"s0000": A, "s0001": B})
    forged = root / "cs149-hw1-gh-s0001x" / "result.json"
    forged.write_text(forged.read_text().replace("commit/", "commit/another-"))

    first, second = read(root)

    assert (first.student_text, first.ids) == (
        "gh-s0000x", ("github:gh-s0000x", "repository:cs149-hw1-gh-s0000x"))
    assert first.at == class_layouts.BEGIN
    assert second.at == class_layouts.BEGIN + timedelta(minutes=1, seconds=-30)  # its commit's


def test_a_result_that_the_student_committed_gives_no_time(tmp_path):
    at = datetime(2026, 10, 1, tzinfo=UTC)
    clone = tmp_path / "cs149-hw1-mallory"
    commit = class_layouts.git_clone(
        clone, {".classroom50.yaml": b"classroom: cs149\nassignment: hw1\n", "kernel.py": A,
                "result.json": b"{}"}, at)
    (clone / "result.json").write_text(
        f'{{"schema": "classroom50/result/v1", "commit": "{commit}", '
        '"datetime": "2020-01-01T00:00:00Z"}')  # as the runner would write it

    assert [one.at for one in read(tmp_path)] == [at]


def test_a_result_that_is_not_json_gives_no_time(tmp_path):
    at = datetime(2026, 10, 1, tzinfo=UTC)
    clone = tmp_path / "cs149-hw1-alice"
    class_layouts.git_clone(clone, {".classroom50.yaml": b"", "kernel.py": A}, at)
    (clone / "result.json").write_bytes(b'{"schema": "\xbf"}')

    assert [one.at for one in read(tmp_path)] == [at]


def test_names_with_hyphens_are_told_apart_by_what_most_repositories_state(tmp_path):
    for user, stated in (("doe", "hw-1"), ("j-doe", "hw-1-j"), ("roe", "hw-1"), ("k-x", "hw-1")):
        class_layouts.git_clone(tmp_path / f"cs-149-hw-1-{user}", {
            "kernel.py": A,
            ".classroom50.yaml": f"classroom: cs-149\nassignment: {stated}\n".encode()},
            class_layouts.BEGIN)

    assert {one.student_text for one in read(tmp_path)} == {"doe", "j-doe", "roe", "k-x"}


def test_repositories_without_the_file_are_recognized_by_their_names(tmp_path):
    for user in ("alice", "bob-dev"):
        class_layouts.git_clone(tmp_path / f"cs149-hw1-{user}", {"kernel.py": A},
                                class_layouts.BEGIN)

    assert importers.recognize(tmp_path) == "classroom50"
    assert {one.student_text for one in read(tmp_path)} == {"alice", "bob-dev"}


def test_a_commit_is_read_and_not_the_files_beside_it(tmp_path):
    clone = tmp_path / "alice"
    commit = class_layouts.git_clone(clone, {"kernel.py": A, "ops/add.py": B},
                                     class_layouts.BEGIN)
    lay(clone, {"kernel.py": b"changed since", "new.py": B})
    class_layouts.git_clone(tmp_path / "bob", {"kernel.py": B}, class_layouts.BEGIN)

    alice, bob = read(tmp_path)

    assert importers.recognize(tmp_path) == "git"
    assert alice == Incoming("alice", {"kernel.py": A, "ops/add.py": B}, at=class_layouts.BEGIN,
                             name="alice/kernel.py", attempt=commit[:12])
    assert bob.files == {"kernel.py": B}


def test_a_repository_of_one_student_can_be_named_itself(tmp_path):
    class_layouts.git_clone(tmp_path / "alice", {"kernel.py": A}, class_layouts.BEGIN)

    assert [one.student_text for one in read(tmp_path / "alice")] == ["alice"]


def test_a_given_reference_is_read_and_a_missing_one_is_reported(tmp_path):
    for name in ("alice", "bob"):
        class_layouts.git_clone(tmp_path / name, {"kernel.py": A}, class_layouts.BEGIN)
    head = (tmp_path / "alice/.git/refs/heads/main").read_text()
    (tmp_path / "alice/.git/refs/tags/final").write_text(head)

    alice, bob = read(tmp_path, "git:final")

    assert alice.files == {"kernel.py": A}
    assert (bob.files, bob.problems) == ({}, ("The repository has no commit 'final'.",))


def test_a_folder_without_git_among_repositories_has_no_time(tmp_path):
    for name in ("alice", "carol"):
        class_layouts.git_clone(tmp_path / name, {"kernel.py": A}, class_layouts.BEGIN)
    lay(tmp_path, {"bob/kernel.py": B})

    incoming = {one.student_text: one for one in read(tmp_path)}

    assert importers.recognize(tmp_path) == "git"
    assert (incoming["bob"].files, incoming["bob"].at) == ({"kernel.py": B}, None)
    assert incoming["bob"].problems == (
        "It is not a git repository: the time of submission is unknown.",)


def test_one_student_s_git_folder_does_not_change_the_layout(tmp_path):
    class_layouts.git_clone(tmp_path / "alice", {"kernel.py": A}, class_layouts.BEGIN)
    lay(tmp_path, {"bob/kernel.py": B, "carol/kernel.py": A})
    class_layouts.git_clone(tmp_path / "carol/inner", {"x.py": A}, class_layouts.BEGIN)

    assert importers.recognize(tmp_path) == "folder"
    assert {one.student_text for one in read(tmp_path)} == {"alice", "bob", "carol"}


def test_where_the_git_folder_is_damaged_the_files_are_taken(tmp_path):
    class_layouts.git_clone(tmp_path / "alice", {"kernel.py": A}, class_layouts.BEGIN)
    for path in (tmp_path / "alice/.git/objects").glob("??/*"):
        path.write_bytes(b"damaged")

    alice, = read(tmp_path)

    assert (alice.files, alice.at) == ({"kernel.py": A}, None)
    assert alice.problems[0].endswith("and their time is unknown.")


def test_workspaces_give_all_modules_and_the_journal(tmp_path):
    for student, root in (("alice", "alice"), ("bob", "bob/tritonlab-workspace")):
        lay(tmp_path / root, {
            ".tritonlab/journal.jsonl": b"{}\n", ".tritonlab/course.json": b"{}",
            ".tritonlab/backups/track1/softmax/old/kernel.py": B,
            "track1/softmax/kernel.py": student.encode(), "track1/softmax/README.md": A,
            "track2/tiling/kernel.py": B, "track2/tiling/devices.py": A})

    incoming = read(tmp_path)

    assert importers.recognize(tmp_path) == "workspaces"
    assert [(one.student_text, one.module, one.files) for one in incoming] == [
        (student, module, files) for student in ("alice", "bob")
        for module, files in (("track1/softmax", {"kernel.py": student.encode()}),
                              ("track2/tiling", {"kernel.py": B, "devices.py": A}))]
    assert {one.journal for one in incoming} == {b"{}\n"}


def test_several_exercises_of_a_student_are_named_by_their_folders(tmp_path):
    lay(tmp_path, {"alice/softmax/kernel.py": A, "alice/tiling/kernel.py": B,
                   "bob/softmax.py": A, "bob/matrix_mul.py": B})

    incoming = [(one.student_text, one.module, one.files["kernel.py"]) for one in read(tmp_path)]

    assert incoming == [("alice", "softmax", A), ("alice", "tiling", B),
                        ("bob", "matrix-mul", B), ("bob", "softmax", A)]


def test_archives_of_students_are_unpacked(tmp_path):
    inner = zipped(tmp_path / "inner.zip", {"hw1/kernel.py": A, "hw1/ops/add.py": B}).read_bytes()
    lay(tmp_path / "canvas", {"a_5_70_work.zip": inner, "b_6_71_kernel.py": B})
    lay(tmp_path / "flat", {"alice.zip": inner, "bob.zip": inner})

    canvas, flat = read(tmp_path / "canvas"), read(tmp_path / "flat")

    assert canvas[0].files == {"kernel.py": A, "ops/add.py": B}
    assert [one.student_text for one in flat] == ["alice", "bob"]
    assert flat[0].files == canvas[0].files


def test_a_table_names_files_or_holds_the_source(tmp_path):
    lay(tmp_path, {"in/alice.py": A, "answers.csv":
                   b"Student;File;Source;At;Late\nalice;in/alice.py;;2026-10-12T10:00:00Z;yes\n"
                   b'bob;;"import triton\r\nx = 1";soon;\ncarol;in/none.py;;;\ndan;../x.py;;;\n'
                   b"eve;;;;\n"})

    alice, bob, carol, dan, eve = read(tmp_path / "answers.csv")

    assert alice == Incoming("alice", {"kernel.py": A}, late=True, name="answers.csv line 2/alice"
                             ".py", at=datetime(2026, 10, 12, 10, tzinfo=UTC))
    assert bob.files == {"kernel.py": b"import triton\nx = 1\n"}
    assert bob.problems == ("'soon' is not a time such as 2026-10-12T23:59:00.",)
    assert [one.files for one in (carol, dan, eve)] == [{}, {}, {}]
    assert "cannot be read" in carol.problems[0]
    assert "leads out of" in dan.problems[0]
    assert eve.problems == ("The row names no file and has no source.",)


def test_a_table_without_its_columns_is_an_error(tmp_path):
    lay(tmp_path, {"answers.csv": b"name,code\nalice,x\n"})

    with pytest.raises(TritonlabError, match="lacks the column student"):
        read(tmp_path / "answers.csv")


@pytest.mark.parametrize(("files", "expected"), [
    ({"a_kernel.py": A, "bob/kernel.py": B}, "is not recognized"),
    ({"notes.txt": A}, "is not recognized"), ({}, "is not recognized"),
    ({"one/a_kernel.py": A}, "fit the layouts `folder` and `flat`"),
    ({"a_5_70_kernel.py": A, "A_1_assignsubmission_file_/kernel.py": B},
     "fit the layouts `canvas` and `moodle`")])
def test_an_unknown_or_ambiguous_shape_is_an_error_that_names_the_option(
        tmp_path, files, expected):
    lay(tmp_path / "in", files).mkdir(exist_ok=True)

    with pytest.raises(TritonlabError, match=expected) as error:
        read(tmp_path / "in")

    assert "`--from`" in error.value.next_step


def test_an_unknown_layout_is_an_error(tmp_path):
    with pytest.raises(TritonlabError, match="No layout is called 'blackboard'"):
        read(tmp_path, "blackboard")


def test_a_pattern_names_the_students_of_any_layout(tmp_path):
    lay(tmp_path / "canvas", {"a_5_70_kernel.py": A, "b_6_71_kernel.py": B})
    lay(tmp_path / "other", {"hw1-alice-v1.py": A, "hw1 bob.py": B, "sub/hw1-carol-v2.py": B})

    canvas = read(tmp_path / "canvas", student_from=r"_(\d+)_")
    other = read(tmp_path / "other", student_from=r"hw1-(?P<student>\w+)-(v\d)")

    assert [(one.student_text, one.ids) for one in canvas] == [("5", ()), ("6", ())]
    assert {one.student_text: (one.files, one.problems) for one in other} == {
        "alice": ({"kernel.py": A}, ()), "carol": ({"kernel.py": B}, ()),
        "hw1 bob.py": ({}, ("Its path does not match `--student-from`.",))}


def test_the_folder_of_one_student_can_be_named_itself(tmp_path):
    lay(tmp_path / "alice", {"kernel.py": A, "ops/add.py": B})

    assert read(tmp_path / "alice") == [Incoming(
        "alice", {"kernel.py": A, "ops/add.py": B}, name="kernel.py")]


def test_attempts_of_one_student_stay_apart(tmp_path):
    lay(tmp_path, {"submission_1/kernel.py": A, "submission_2/kernel.py": B,
                   "submission_metadata.yml": b"submission_1:\n  :submitters:\n  - :sid: '7'\n"
                                              b"submission_2:\n  :submitters:\n  - :sid: '7'\n"})

    incoming = read(tmp_path)

    assert [(one.student_text, one.attempt) for one in incoming] == [("7", "1"), ("7", "2")]


def test_real_git_is_read(tmp_path):
    """Packs with deltas, packed references and an annotated tag, as clones have them."""
    clone = tmp_path / "alice"
    clone.mkdir()

    def git(*words: str) -> str:
        environment = {"PATH": "/usr/bin:/bin", "HOME": str(tmp_path), "GIT_CONFIG_NOSYSTEM": "1",
                       "GIT_AUTHOR_DATE": "2026-10-12T12:00:00+0200",
                       "GIT_COMMITTER_DATE": "2026-10-12T12:00:00+0200"}
        return subprocess.run(
            ["git", "-c", "user.name=a", "-c", "user.email=a@b", "-c", "core.fsync=none", *words],
            cwd=clone, check=True, capture_output=True, text=True, env=environment).stdout.strip()

    git("init", "-q", "-b", "trunk")
    lines = [f"x{number} = {number}\n" for number in range(3_000)]
    for version in range(4):
        lines[version * 700] = f"changed = {version}\n"
        lay(clone, {"kernel.py": "".join(lines).encode(), "ops/add.py": A})
        git("add", ".")
        git("commit", "-q", "-m", f"version {version}")
        if version == 1:
            git("tag", "-a", "submitted", "-m", "done")
            submitted = (clone / "kernel.py").read_bytes()
    git("gc", "-q", "--aggressive")
    git("pack-refs", "--all")

    head, = read(tmp_path)
    tagged, = read(tmp_path, "git:submitted")

    assert not [*(clone / ".git/objects").glob("[0-9a-f]?/*")]  # all is packed
    assert head.files == {"kernel.py": "".join(lines).encode(), "ops/add.py": A}
    assert tagged.files == {"kernel.py": submitted, "ops/add.py": A}
    assert head.attempt == git("rev-parse", "HEAD")[:12]
    assert head.at == datetime(2026, 10, 12, 12, tzinfo=timezone(timedelta(hours=2)))
    assert head.problems == tagged.problems == ()


def test_git_accepts_the_repositories_of_the_generator(tmp_path):
    class_layouts.git_clone(tmp_path / "a", {"kernel.py": A, "b/c.py": B}, class_layouts.BEGIN)

    result = subprocess.run(["git", "-C", str(tmp_path / "a"), "fsck", "--full", "--strict"],
                            capture_output=True, text=True)

    assert (result.returncode, result.stderr) == (0, "")
