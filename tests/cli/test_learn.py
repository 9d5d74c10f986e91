"""The learner's loop: next, read, reset, solution, the history of attempts, and merging."""

from __future__ import annotations

import errno
import json
import os
import pty
import re
import shutil
import signal
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from types import SimpleNamespace

import pytest

from tests.support import toy
from tritonlab.course import course
from tritonlab.errors import NotSaved, NoWorkspace
from tritonlab.grading import hints, solution_diff
from tritonlab.progress.journal import JournalReading
from tritonlab.render import lesson as lesson_view
from tritonlab.render import pages
from tritonlab.render.screen import Screen
from tritonlab.workspace import reset, start, workspace
from tritonlab.workspace.submission import exercise
from tritonlab.workspace.workspace import Workspace

WORKSPACE = Path("tritonlab-workspace")
FOLDER = WORKSPACE / "track1/softmax"
KERNEL = FOLDER / "kernel.py"
JOURNAL = WORKSPACE / ".tritonlab/journal.jsonl"
BACKUPS = WORKSPACE / ".tritonlab/backups/track1/softmax"


def records() -> list[dict]:
    return [json.loads(line) for line in JOURNAL.read_text().splitlines()]


def last_line(text: str) -> str:
    return text.rstrip("\n").splitlines()[-1]


def typed_at_a_terminal(command: list[str], answer: str) -> tuple[int, str]:
    """Run a command on a terminal and answer its first question; the exit code and what it says."""
    pid, terminal = pty.fork()
    if pid == 0:
        signal.signal(signal.SIGINT, signal.SIG_DFL)  # a shell's background jobs ignore it
        os.execv(command[0], command)
    said = b""
    while b"[y/N]" not in said:
        said += os.read(terminal, 4096)
    os.write(terminal, answer.encode())
    while True:
        try:
            more = os.read(terminal, 4096)
        except OSError as error:  # the other side is closed
            assert error.errno == errno.EIO
            break
        if not more:
            break
        said += more
    _, status = os.waitpid(pid, 0)
    os.close(terminal)
    return os.waitstatus_to_exitcode(status), said.decode()


# ------------------------------------------------------------ next


def test_next_starts_the_first_module_and_then_the_one_after_the_current(run):
    first, second = run("next"), run("next")

    assert (first.code, second.code) == (0, 0)
    assert "The exercise is in tritonlab-workspace/track1/copy" in first.out
    assert "The exercise is in tritonlab-workspace/track1/softmax" in second.out
    assert [r["module"] for r in records()] == ["track1/copy", "track1/softmax"]
    assert last_line(second.out) == "Edit kernel.py, then type: tritonlab grade"


def test_next_says_what_start_says(run, home):
    by_next = json.loads(run("next", "--json").out)
    shutil.rmtree(WORKSPACE)
    by_start = json.loads(run("start", "copy", "--json").out)

    assert by_next == by_start


def test_next_goes_on_and_then_back_to_what_was_left_behind(run, judge, course_root):
    toy.write_module(course_root, "missing-elements", "04-norm", "Norms")
    judge(toy.PASSING)
    run("start", "softmax")
    run("grade")

    on, back, round_again = run("next"), run("next"), run("next")

    assert [r["module"] for r in records()][2:] == ["track1/norm", "track1/copy", "track1/norm"]
    assert on.out.startswith("track1/norm ")
    assert " ".join(back.out.split()).startswith(
        "No core module behind track1/norm is left to do; track1/copy comes before it and is not "
        "passed yet.")
    assert round_again.out.startswith("track1/norm ")


def test_next_after_the_last_leads_on(run, judge):
    judge(toy.PASSING)
    for module in ("copy", "softmax"):
        run("start", module)
        run("grade")

    shown = run("next")
    data = json.loads(run("next", "--json").out)

    assert "You have passed every module that is ready." in shown.out
    assert last_line(shown.out) == "Next: tritonlab certificate"
    assert (data["module"], data["next"]) == (None, "tritonlab certificate")


def test_next_where_only_the_current_one_is_left_says_so(run, judge):
    judge(toy.PASSING)
    run("start", "copy")
    run("grade")
    run("start", "softmax")

    shown = run("next")

    assert "Only the current module is left to do." in shown.out
    assert last_line(shown.out) == "Next: tritonlab grade track1/softmax"


# ------------------------------------------------------------ read

ALL_LESSONS = sorted((Path(__file__).parents[2] / "tracks").glob("*/*/README.md"))


def test_read_shows_the_lesson_of_the_current_module(run):
    run("start", "softmax")

    shown = run("read")

    assert shown.code == 0
    assert "Stable softmax" in shown.out
    assert last_line(shown.out) == "Next: tritonlab grade track1/softmax"


def test_a_lesson_can_be_read_before_its_module_is_started(run):
    shown = run("read", "softmax")

    assert last_line(shown.out) == "Next: tritonlab start track1/softmax"
    assert not WORKSPACE.exists()


WORDED = ("## The idea\n\n```text\n a | b\n```\n\n"
          "<!-- In words: the block `a` stands\nbefore b. -->\n\n"
          "## Pitfalls\n\n- One.\n\n[The page](../../grading.md) helps.\n")


def test_words_for_a_diagram_are_its_alternative_text(run, course_root):
    (course_root / "tracks/missing-elements/03-softmax/README.md").write_text(WORDED)

    page, shown = pages.lesson("1.3", "Softmax", WORDED), run("read", "softmax", "--no-pager")

    assert 'role="img" aria-label="the block a stands before b."><code> a | b</code>' in page
    assert '<details><summary><h2 id="pitfalls">Pitfalls' in page
    assert "In words" not in page + shown.out and "stands" not in shown.out
    assert " a | b" in shown.out
    assert "tritonlab read grading" in page and "tritonlab read grading" in shown.out


def test_the_page_of_a_lesson_has_its_picture() -> None:
    softmax = course.load().find("track1/softmax")

    page = pages.lesson(softmax.id, softmax.title, softmax.lesson(), softmax.picture())

    assert page.count("<figure") == page.count("<figcaption>logsumexp_kernel. Program 1 of 3") == 1
    assert page.index('id="worked-example"') < page.index("<figure") < page.index('id="your-task"')


@pytest.mark.parametrize(("name", "title"), [
    ("grading", "How kernels are graded"),
    ("blackwell", "Tensor memory, warp specialization and Gluon")])
def test_a_page_of_all_lessons_is_read_like_a_lesson(run, name, title):
    shown, data = run("read", name, "--plain"), json.loads(run("read", name, "--json").out)

    assert shown.out.startswith(f"# {title}\n")
    assert (shown.code, last_line(shown.out)) == (0, "Next: tritonlab grade")
    assert (data["module"], data["title"]) == (name, title)


def test_the_answers_come_after_a_pass(run, judge):
    judge(toy.PASSING)
    run("start", "softmax")
    before = run("read", "softmax", "--answers")
    run("grade", "softmax")

    after = run("read", "softmax", "--answers")

    assert (before.code, before.out) == (2, "")
    assert "once track1/softmax is passed" in before.err
    assert (after.code, "Because a row" in after.out) == (0, True)


def test_the_answers_come_after_the_solution_was_shown_too(run):
    run("start", "softmax")
    run("solution", "--give-up")

    assert "Because a row" in run("read", "softmax", "--answers").out


def test_plain_prints_the_markdown_as_it_is(run, course_root):
    text = "# A\n\n```text\n a  |\n```\n\n| b | c |\n|---|---|\n| `d` | **e** |\n"
    (course_root / "tracks/missing-elements/03-softmax/README.md").write_text(text)

    plain = run("read", "softmax", "--plain")
    data = json.loads(run("read", "softmax", "--json").out)

    assert plain.out == text + "\nNext: tritonlab start track1/softmax\n"
    assert data["markdown"] == text


@pytest.mark.parametrize("width", [30, 80, 200])
@pytest.mark.parametrize("path", ALL_LESSONS, ids=lambda path: path.parent.name)
def test_code_and_diagrams_are_never_wrapped_or_cut(path, width):
    text = path.read_text()
    blocks = re.findall(r"^```\w+\n(.*?)^```", text, re.DOTALL | re.MULTILINE)

    shown = lesson_view.rendered(Screen(width=width), text).splitlines()

    assert blocks
    for block in blocks:
        for line in filter(str.strip, block.splitlines()):
            assert "  " + line.rstrip() in shown


@pytest.mark.parametrize("path", ALL_LESSONS, ids=lambda path: path.parent.name)
def test_prose_fits_the_terminal(path):
    prose = re.sub(r"^```.*?^```", "", path.read_text(), flags=re.DOTALL | re.MULTILINE)

    shown = lesson_view.rendered(Screen(width=60), prose).splitlines()

    assert max(map(len, shown)) <= 60


class Tags(HTMLParser):
    """Collects what a page names, and sees that its elements are closed."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.named: list[str] = []
        self.said = ""

    def handle_starttag(self, tag, attrs):
        if tag not in ("meta", "br", "hr", "img", "link"):
            self.open.append(tag)
        self.named += [value for name, value in attrs if name in ("src", "href")]

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.said += data


@pytest.mark.parametrize("path", ALL_LESSONS, ids=lambda path: path.parent.name)
def test_a_lesson_as_a_page_is_whole_and_names_nothing_elsewhere(path):
    module = course.load().module_of(path)
    text = path.read_text()
    page = Tags()

    page.feed(pages.lesson(module.id, module.title, text))

    assert page.open == []
    assert not [name for name in page.named if not name.startswith("#")]
    for block in re.findall(r"^```\w+\n(.*?)^```", text, re.DOTALL | re.MULTILINE):
        assert block.rstrip("\n") in page.said


def test_markup_in_a_lesson_is_shown_and_not_followed(toy_course):
    page = pages.lesson("1.3", "Softmax", "a <script>b</script> ![c](http://d/e.png)")

    assert "&lt;script&gt;" in page
    assert page.count("<script") == 1  # which copies code, and holds no word of the lesson
    assert "<script>b" not in page


def test_read_writes_a_page_and_spares_what_is_none(run):
    Path("notes.py").write_text("notes")

    written = run("read", "softmax", "--html", "lesson.html")
    spared = run("read", "softmax", "--html", "notes.py")

    assert (written.code, "is in lesson.html" in written.out) == (0, True)
    assert "Stable softmax" in Path("lesson.html").read_text()
    assert (spared.code, Path("notes.py").read_text()) == (2, "notes")


def test_the_pager_gets_the_lesson_and_ctrl_c_is_its_own(home, tmp_path):
    pager = tmp_path / "pager"
    pager.write_text("#!/bin/sh\nkill -INT $PPID\necho paged\nexec cat\n")
    pager.chmod(0o755)
    code = ("import os, sys; from tritonlab.render import lesson\n"
            f"os.environ['PAGER'] = {str(pager)!r}\n"
            "print(lesson.in_pager('a lesson'))\n")

    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)

    assert ran.stdout == "paged\na lessonTrue\n", ran.stderr


@pytest.mark.parametrize("pager", ["no-such-pager", "'", ""])
def test_without_a_pager_the_lesson_is_printed(pager, monkeypatch):
    monkeypatch.setenv("PAGER", pager)
    monkeypatch.setenv("TERM", "xterm")

    assert lesson_view.in_pager("a lesson") is False


def test_a_lesson_that_is_missing_is_the_course_s_fault(run, course_root):
    (course_root / "tracks/missing-elements/03-softmax/README.md").unlink()

    shown = run("read", "softmax")

    assert shown.code == 3
    assert "The lesson of track1/softmax cannot be read" in shown.err
    assert "Install tritonlab again." in shown.err


# ------------------------------------------------------------ reset


@pytest.fixture
def place(home, toy_course) -> Workspace:
    start.begin(toy_course, toy_course.find("softmax"))
    return Workspace(home / WORKSPACE)


@pytest.fixture
def several(course_root):
    """The toy course, whose second module has a package of two files beside ``kernel.py``."""
    for kind in ("tracks", "solutions"):
        folder = course_root / kind / "missing-elements/03-softmax"
        for name in ("package/one.py", "package/inner/two.py"):
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_text(f"# {kind}: {name}\n")
    toml = course_root / "tracks/missing-elements/03-softmax/module.toml"
    toml.write_text('files = ["package/one.py", "package/inner/two.py"]\n' + toml.read_text())
    return course.load(course.roots_in(course_root))


def tree(folder: Path) -> dict[str, str]:
    return {str(path.relative_to(folder)): path.read_text()
            for path in sorted(folder.rglob("*")) if path.is_file()}


def test_reset_keeps_the_work_and_puts_a_fresh_exercise_in_its_place(run):
    run("start", "softmax")
    KERNEL.write_text("my work")

    shown = run("reset", "--yes")

    [backup] = BACKUPS.iterdir()
    assert shown.code == 0
    assert (KERNEL.read_text(), (backup / "kernel.py").read_text()) == (toy.EXERCISE, "my work")
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d{6}", backup.name)
    assert "A fresh exercise is in its place." in shown.out
    assert "To go back, type: tritonlab reset track1/softmax --undo" in shown.out
    assert records()[-1] | {"event": "reset", "module": "track1/softmax", "undone": False} == \
        records()[-1]


def test_undo_brings_the_work_back_and_can_be_undone(run):
    run("start", "softmax")
    KERNEL.write_text("my work")
    run("reset", "--yes")
    KERNEL.write_text("a second attempt")
    seen = []

    for _ in range(4):
        assert run("reset", "--undo").code == 0
        seen.append(KERNEL.read_text())

    assert seen == ["my work", "a second attempt"] * 2
    assert len(list(BACKUPS.iterdir())) == 5  # none is ever removed
    assert records()[-1]["undone"] is True


def test_an_exercise_that_nobody_has_touched_is_left_alone(run):
    run("start", "softmax")

    shown = run("reset", "--yes")

    assert shown.code == 0
    assert "This exercise is unmodified, so nothing was changed." in shown.out
    assert not list(BACKUPS.iterdir())
    assert [r["event"] for r in records()] == ["started"]


def test_without_a_terminal_reset_names_the_option_that_says_yes(run):
    run("start", "softmax")
    KERNEL.write_text("my work")

    shown = run("reset")

    assert (shown.code, shown.out, KERNEL.read_text()) == (2, "", "my work")
    assert "there is no terminal to ask on. `tritonlab reset track1/softmax --yes`" in shown.err


@pytest.mark.parametrize(("answer", "kept", "says"), [
    ("y\n", False, "A fresh exercise is in its place."),
    ("\n", True, "Nothing was changed."),
    ("what\n", True, "Nothing was changed."),
    ("\x04", True, "Nothing was changed."),
    ("\x03", True, "Stopped. Nothing was recorded."),
], ids=["yes", "enter", "something else", "end of input", "Ctrl-C"])
def test_on_a_terminal_reset_asks(run, answer, kept, says):
    run("start", "softmax")
    KERNEL.write_text("my work")

    code, said = typed_at_a_terminal([sys.executable, "-m", "tritonlab", "reset"], answer)

    assert code == (130 if answer == "\x03" else 0)
    assert says in said
    assert (KERNEL.read_text() == "my work") is kept


def test_reset_takes_all_files_of_an_exercise_and_what_lies_beside_them(several, home):
    module = several.find("softmax")
    place = start.begin(several, module).place
    fresh = tree(place.folder(module))
    (place.folder(module) / "package/one.py").write_text("mine")
    (place.folder(module) / "package/notes.txt").write_text("notes")
    (place.folder(module) / "beside.txt").write_text("not of the exercise")
    work = tree(place.folder(module))

    made = reset.reset(several, place, module)
    after = tree(place.folder(module))
    reset.undo(several, place, module)

    assert made.names == ("kernel.py", "package")
    assert after == fresh | {"beside.txt": "not of the exercise"}
    assert tree(place.folder(module)) == work


def test_what_python_makes_is_no_work(several, home):
    module = several.find("softmax")
    place = start.begin(several, module).place
    (place.folder(module) / "package/__pycache__").mkdir()
    (place.folder(module) / "package/__pycache__/one.pyc").write_bytes(b"\0")

    assert not reset.reset(several, place, module).changed


class PowerCut(BaseException):
    """Nothing after it runs, the way back included."""


@pytest.mark.parametrize("fatal", range(4))
@pytest.mark.parametrize("error", [OSError(errno.EIO, "broken"), PowerCut()], ids=["error", "end"])
def test_whichever_rename_fails_no_work_is_lost(several, home, monkeypatch, error, fatal):
    module = several.find("softmax")
    place = start.begin(several, module).place
    folder = place.folder(module)
    (folder / "kernel.py").write_text("my kernel")
    (folder / "package/one.py").write_text("my package")
    work = tree(folder)
    real, calls = Path.rename, []

    def rename(path: Path, target: Path) -> Path:
        calls.append(path)
        if len(calls) == fatal + 1 or (isinstance(error, PowerCut) and len(calls) > fatal):
            raise error
        return real(path, target)

    monkeypatch.setattr(Path, "rename", rename)

    with pytest.raises((NotSaved, PowerCut)):
        reset.reset(several, place, module)

    if isinstance(error, OSError):
        assert tree(folder) == work
    kept = [*tree(folder).values(), *tree(place.mark / "backups").values()]
    assert {"my kernel", "my package"} <= set(kept)


KILLED_RESETS = """
import os, random, signal, sys, time
from pathlib import Path
from tritonlab.course import course
from tritonlab.workspace import reset, start

chance, lost, cut, number = random.Random(8), 0, 0, 0
the_course = course.load()
module = the_course.find("softmax")
place = start.begin(the_course, module).place
folder = place.folder(module)
reset.reset(the_course, place, module)  # all is imported and cached
while number < 50 or cut < 6:  # however busy the machine is, so many are hit
    number += 1
    (folder / "package").mkdir(exist_ok=True)
    work = {"kernel.py": f"kernel {number}", "package/one.py": f"package {number}"}
    for name, text in work.items():
        (folder / name).write_text(text)
    pid = os.fork()
    if pid == 0:
        (reset.undo if number % 3 == 2 else reset.reset)(the_course, place, module)
        os._exit(0)
    time.sleep(chance.uniform(0, 0.008))
    os.kill(pid, signal.SIGKILL)
    cut += os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) != 0
    for name, text in work.items():
        kept = [folder / name, *(backup / name for backup in reset.backups(place, module))]
        lost += not any(path.is_file() and path.read_text() == text for path in kept)
print(lost)
"""


def test_kills_at_any_moment_lose_no_work(several, home):
    ran = subprocess.run([sys.executable, "-c", KILLED_RESETS], capture_output=True, text=True)

    assert ran.stdout == "0\n", ran.stdout + ran.stderr


def test_a_link_is_moved_and_its_target_untouched(place, toy_course, tmp_path):
    module = toy_course.find("softmax")
    target = tmp_path / "repository.py"
    target.write_text("kept elsewhere")
    place.kernel(module).unlink()
    place.kernel(module).symlink_to(target)

    reset.reset(toy_course, place, module)
    fresh = place.kernel(module).is_symlink(), place.kernel(module).read_text()
    reset.undo(toy_course, place, module)

    assert fresh == (False, toy.EXERCISE)
    assert place.kernel(module).readlink() == target
    assert target.read_text() == "kept elsewhere"


def test_a_backup_is_newer_than_the_others_whatever_the_clock_says(place, toy_course):
    module = toy_course.find("softmax")
    future = place.mark / "backups" / module.id / "2999-01-01T000000-9"
    future.mkdir(parents=True)
    (future / "kernel.py").write_text("from the future")
    place.kernel(module).write_text("my work")

    made = reset.reset(toy_course, place, module)

    assert made.folder.name == "2999-01-01T000000-10"
    assert reset.backups(place, module)[0] == made.folder


def test_what_cannot_be_reset_or_brought_back_says_what_to_type(place, toy_course):
    module = toy_course.find("softmax")

    with pytest.raises(NoWorkspace, match=r"no backup of track1/softmax to bring back"):
        reset.undo(toy_course, place, module)
    place.kernel(module).unlink()
    with pytest.raises(NoWorkspace, match=r"`tritonlab start track1/softmax` creates a fresh one"):
        reset.reset(toy_course, place, module)


def test_a_reset_that_is_not_on_record_is_done_all_the_same(run):
    run("start", "softmax")
    KERNEL.write_text("my work")
    JOURNAL.unlink()
    JOURNAL.mkdir()

    shown = run("reset", "softmax", "--yes")
    data = run("reset", "softmax", "--undo", "--json")

    assert (shown.code, data.code) == (3, 3)
    assert "A fresh exercise is in its place." in shown.out
    assert "The record of the reset was not saved" in shown.err
    assert json.loads(data.out)["recorded"] is False
    assert KERNEL.read_text() == "my work"


def test_a_full_disk_changes_nothing(small_disk, toy_course, monkeypatch):
    with small_disk("200k") as disk:
        module = toy_course.find("softmax")
        monkeypatch.setenv("TRITONLAB_WORKSPACE", str(disk / "ws"))
        place = start.begin(toy_course, module).place
        place.kernel(module).write_text("my work")
        filler = disk / "filler"
        with pytest.raises(OSError, match="No space"), filler.open("wb") as file:
            while True:
                file.write(b"x" * 4096)
                file.flush()

        with pytest.raises(NotSaved, match="no space is left on the disk"):
            reset.reset(toy_course, place, module)

        assert place.kernel(module).read_text() == "my work"


# ------------------------------------------------------------ solution


def test_before_a_pass_the_solution_is_shown_to_who_gives_up(run):
    run("start", "softmax")

    refused = run("solution")
    shown = run("solution", "--give-up")
    again = run("solution")

    assert (refused.code, refused.out) == (2, "")
    assert "`tritonlab solution track1/softmax --give-up` shows it" in refused.err
    assert (shown.code, again.code) == (0, 0)
    assert "+# right" in shown.out
    assert "-...  # TODO 1: what is left?" in shown.out
    assert "tritonlab grade" in last_line(shown.out)
    assert [r["gave_up"] for r in records() if r["event"] == "solution"] == [True]


def test_on_a_terminal_who_says_no_sees_nothing(run):
    run("start", "softmax")

    code, said = typed_at_a_terminal([sys.executable, "-m", "tritonlab", "solution"], "n\n")

    assert code == 0
    assert "# right" not in said
    assert "`tritonlab hint track1/softmax` helps another way." in said
    assert [r["event"] for r in records()] == ["started"]


def test_after_a_pass_it_is_shown_without_asking_and_leads_on(run, judge):
    judge(toy.PASSING)
    run("start", "softmax")
    KERNEL.write_text("# mine\n")
    run("grade")

    shown = run("solution")

    assert shown.code == 0
    assert last_line(shown.out) == "Next: tritonlab start track1/copy"
    assert [r["gave_up"] for r in records() if r["event"] == "solution"] == [False]


def test_a_pass_after_giving_up_says_that_the_solution_was_seen(run, judge):
    judge(toy.PASSING)
    run("start", "softmax")
    KERNEL.write_text("# mine, after a look\n")
    run("solution", "--give-up")
    run("grade")

    entry = json.loads(run("certificate", "--json").out)["modules"][1]

    assert (entry["state"], entry["solution_seen"]) == ("passed", True)


def test_a_pass_before_the_look_stays_clean_and_so_does_the_same_source(run, judge):
    judge(toy.PASSING)
    run("start", "softmax")
    KERNEL.write_text("# mine\n")
    run("grade")
    run("solution")
    judge(toy.FAST, **toy.ON_GPU)
    run("grade")
    same = json.loads(run("certificate", "--json").out)["modules"][1]
    KERNEL.write_text("# changed\n")
    run("grade")

    assert (same["evidence"], same["solution_seen"]) == ("fast", False)
    assert records()[-1]["solution_seen"] is True


def test_a_give_up_that_cannot_be_recorded_shows_nothing(run):
    run("start", "softmax")
    JOURNAL.chmod(0o400)
    shutil.copy(JOURNAL, "kept")
    JOURNAL.unlink()
    JOURNAL.symlink_to(Path("kept").absolute())

    shown = run("solution", "softmax", "--give-up")

    assert (shown.code, shown.out) == (3, "")


def test_a_wide_terminal_shows_both_beside_each_other(run, monkeypatch):
    run("start", "softmax")
    run("solution", "--give-up")
    monkeypatch.setenv("COLUMNS", "160")

    beside, plain = run("solution").out, run("solution", "--plain").out

    assert re.search(r"^yours/kernel.py +solution/kernel.py$", beside, re.MULTILINE)
    assert re.search(r"^ +\|  # right$", beside, re.MULTILINE)
    assert re.search(r"^\.\.\.  # TODO 1: what is left\? +<$", beside, re.MULTILINE)
    assert max(map(len, beside.splitlines())) <= 160
    assert "--- yours/kernel.py\n+++ solution/kernel.py\n@@ " in plain


def test_files_that_agree_are_named_and_missing_ones_are_empty(several, home):
    module = several.find("softmax")
    place = start.begin(several, module).place
    shutil.copy(module.solution, place.kernel(module))
    (place.folder(module) / "package/one.py").unlink()

    files = solution_diff.compare(module, exercise(module, place, several))

    assert [(file.name, file.same) for file in files] == [
        ("kernel.py", True), ("package/one.py", False), ("package/inner/two.py", False)]
    assert files[1].unified[-1] == "+# solutions: package/one.py"


def test_the_solution_shows_kernels_before_host_code_and_the_docstring():
    files = [f'"""{doc}"""\n\nimport torch\n\nSIZE = {size}\n\n\n\n\n\n\n\n@triton.jit\n'
             f"def kernel(x_ptr):\n    x = {x}\n"
             for doc, size, x in (("Task", 1, 2), ("Why", 3, 4))]
    file = solution_diff.FileComparison("kernel.py", *(tuple(one.splitlines()) for one in files))

    shown = [[file.solution[b1] for tag, _, _, b1, _ in hunk if tag != "equal"]
             for hunk in file.hunks]

    assert shown == [["    x = 4"], ["SIZE = 3"], ['"""Why"""']]
    assert file.unified[3] == '-"""Task"""'  # as JSON it stays a diff that can be applied


def test_solution_as_json(run):
    run("start", "softmax")

    data = json.loads(run("solution", "--give-up", "--json").out)

    assert (data["module"], data["gave_up"]) == ("track1/softmax", True)
    assert data["files"][0]["diff"].startswith("--- yours/kernel.py\n+++ solution/kernel.py\n")


# ------------------------------------------------------------ history


def test_every_attempt_is_in_the_history(run, judge):
    run("start", "softmax")
    run("hint")
    judge(toy.FAILING)
    run("grade")
    judge(toy.FAST, **toy.ON_GPU)
    run("grade")

    shown = run("status", "--history")
    data = json.loads(run("status", "softmax", "--json").out)

    assert re.search(r"FAIL +2 of 5 checks +wrong-values +1 hint +interpreter", shown.out)
    assert re.search(r"PASS +fast +\d of \d checks +1 hint +NVIDIA H200", shown.out)
    assert [a["verdict"] for a in data["attempts"]] == ["FAILED", "PASSED"]
    assert data["attempts"][0] | {
        "module": "track1/softmax", "evidence": "", "cases_passed": 2, "cases_total": 5,
        "code": "N01", "hints_used": 1, "engine": "interpreter", "device": "", "today": True,
        "here": True, "solution_seen": False} == data["attempts"][0]


def test_the_history_has_columns_and_the_time_of_day_where_it_is_known(run, judge, monkeypatch):
    run("start", "softmax")
    judge(toy.FAILING)
    with monkeypatch.context() as patch:  # as tritonlab wrote records before it kept the time
        patch.setattr("tritonlab.progress.journal.time",
                      SimpleNamespace(strftime=lambda form: None))
        run("grade")
    run("hint")
    judge((toy.case("one"),) * 112)
    run("grade")
    judge(toy.BLANKS)
    run("grade")

    old, *new = [line for line in run("status", "--history").out.splitlines() if "checks" in line]

    assert re.match(r"  \d{4}-\d\d-\d\d        FAIL ", old)
    assert all(re.match(r"  \d{4}-\d\d-\d\d \d\d:\d\d  (PASS|FAIL) ", line) for line in new)
    for word in ("interpreter", "hint"):
        assert len({line.index(word) for line in (old, *new)}) == 1
    assert old.index("wrong-values") == new[-1].index("blanks-left")


def test_the_history_of_one_module_leaves_others_out(run, judge):
    judge(toy.FAILING)
    for module in ("copy", "softmax"):
        run("start", module)
        run("grade")

    shown = run("status", "copy", "--plain")

    assert len(shown.out.splitlines()) == 2
    assert shown.out.startswith("track1/copy ")
    assert last_line(shown.out) == "Next: tritonlab grade track1/copy"


def test_a_history_without_attempts_says_so(run):
    shown = run("status", "softmax")

    assert shown.out == "Nothing has been graded yet.\nNext: tritonlab start track1/softmax\n"


# ------------------------------------------------------------ merging


@pytest.fixture
def elsewhere(run, judge, home):
    """A second workspace, in which softmax is passed."""
    judge(toy.PASSING)
    run("start", "softmax")
    run("grade")
    WORKSPACE.rename("other")
    run("start", "copy")
    return Path("other")


@pytest.mark.parametrize("path", ["", ".tritonlab", ".tritonlab/journal.jsonl"])
def test_merge_takes_a_workspace_its_folder_or_its_journal(run, elsewhere, path):
    shown = run("merge", str(elsewhere / path))

    assert shown.code == 0
    assert shown.out.startswith("2 records came in from other")
    assert "Core modules passed: 0/2 before, 1/2 now." in shown.out
    assert "Passed there and not here before: track1/softmax." in shown.out
    assert last_line(shown.out) == "Next: tritonlab status"
    assert "Current module: track1/copy" in run("status").out


def test_merging_again_changes_nothing_and_says_so(run, elsewhere):
    run("merge", "other")
    before = tree(WORKSPACE)

    shown = run("merge", "other")
    data = json.loads(run("merge", "other", "--json").out)

    assert "All 2 records in other were here already; nothing was changed." in shown.out
    assert (data["added"], data["there"], data["newly_passed"]) == (0, 2, [])
    assert tree(WORKSPACE) == before


def test_merging_leaves_the_other_side_alone(run, elsewhere):
    before = tree(elsewhere)

    run("merge", "other")

    assert tree(elsewhere) == before


@pytest.mark.parametrize(("path", "says"), [
    ("nowhere", "No journal can be read at 'nowhere': no such file or directory."),
    (".", "No journal lies in '.'."),
    ("notes.txt", "'notes.txt' holds no record of tritonlab."),
    ("/dev/null", "No journal can be read at '/dev/null'"),
])
def test_what_is_no_journal_is_refused(run, path, says):
    run("start", "copy")
    Path("notes.txt").write_text("notes\n")
    before = tree(WORKSPACE)

    shown = run("merge", path)

    assert (shown.code, shown.out) == (2, "")
    assert says in shown.err
    assert "Name the other workspace" in shown.err
    assert tree(WORKSPACE) == before


# ------------------------------------------------------------ without the command line


def test_each_step_of_the_loop_is_a_function(toy_course, home):
    """What a loop on a warm process calls for its keys."""
    begun = start.begin(toy_course, toy_course.find("copy"))
    module, place = begun.module, begun.place
    given = hints.give(toy_course, place, module)
    hints.record(toy_course, place, given)
    [file] = solution_diff.compare(module, exercise(module, place, toy_course))
    reading = place.journal(toy_course).read()
    earned = solution_diff.earned(toy_course, reading, module)
    solution_diff.record(toy_course, place, module)

    assert (given.rung, given.text) == (1, "What is missing?")
    assert hints.give(toy_course, place, module).rung == 2
    assert module.lesson() == "# Copying\n"
    assert not file.same
    assert not earned
    assert solution_diff.earned(toy_course, place.journal(toy_course).read(), module)
    assert start.after(toy_course, reading, module)[0].id == "track1/softmax"
    assert start.after(toy_course, JournalReading(()), None)[0].id == "track1/copy"
    assert workspace.find() == place
