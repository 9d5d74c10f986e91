"""Watch: what a save, a key and a loss make it do. Terminals are in ``test_terminal.py``."""

from __future__ import annotations

import contextlib
import errno
import io
import json
import os
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest import mock

import pytest

import grader
from grader.report import Report, Verdict
from tests.support import toy
from tests.support.waiting import HANG_S, wait_until
from tritonlab.course import course
from tritonlab.errors import CannotGrade
from tritonlab.grading import grade as grading
from tritonlab.progress import journal, safe_files
from tritonlab.progress.journal import JournalReading
from tritonlab.render.screen import Screen
from tritonlab.render.watch import Lines, Watched
from tritonlab.watch import file_events, grade_thread, key_actions
from tritonlab.watch.file_events import Content, Saves
from tritonlab.watch.terminal import Keyboard, TypedKeys
from tritonlab.watch.watcher import Watch
from tritonlab.workspace import watch_lock, workspace
from tritonlab.workspace.submission import Submission

RIGHT, WRONG, SLOW = "x = 1  # right\n", "x = 2  # wrong\n", "x = 3  # slow\n"


def save(path: Path, text: str) -> None:
    """Saves as editors do; no machine is slow enough for half a file to be seen."""
    aside = path.with_name(".kernel.py.swp")
    aside.write_text(text)
    aside.rename(path)


@pytest.fixture
def submission(home, toy_course) -> Submission:
    module = toy_course.find("softmax")
    place, _ = workspace.start(module, home / "tritonlab-workspace")
    return Submission(module, place.kernel(module), place)


# ---------------------------------------------------------------------------------------------
# Saves


@pytest.fixture
def saved(submission) -> Iterator[list[Content]]:
    """What the exercise was told to hold, from the beginning."""
    told: list[Content] = []
    with Saves(submission, told.append):
        wait_until(lambda: told)
        yield told


@pytest.fixture
def slow_saves(monkeypatch) -> None:
    """Half a save is taken for what it is, however busy the machine is."""
    monkeypatch.setattr(file_events, "TORN_S", HANG_S)
    monkeypatch.setattr(file_events, "RESTLESS_S", HANG_S)


def overwrite(path: Path) -> None:
    path.write_text(RIGHT)


def rename(path: Path) -> None:
    save(path, RIGHT)


def rename_after_moving_away(path: Path) -> None:
    path.rename(path.with_name("kernel.py~"))
    path.write_text(RIGHT)


def write_in_two_halves(path: Path) -> None:
    with path.open("w") as file:
        file.write(RIGHT[:5] + "(")
        file.flush()
        time.sleep(0.1)
        file.seek(0)
        file.write(RIGHT)


@pytest.mark.parametrize("way", [
    overwrite, rename, rename_after_moving_away, write_in_two_halves], ids=lambda f: f.__name__)
def test_a_save_is_told_once_however_an_editor_writes(slow_saves, saved, submission, way):
    way(submission.kernel)
    wait_until(lambda: len(saved) > 1)
    right = file_events.look(submission)
    save(submission.kernel, WRONG)  # what was told in between would come before it
    wait_until(lambda: saved[-1] == file_events.look(submission))

    assert [content.complaint for content in saved] == ["", "", ""]
    assert saved[1] == right


def test_a_save_that_changes_nothing_is_not_told(slow_saves, saved, submission, monkeypatch):
    look, looks = file_events.look, []
    monkeypatch.setattr(file_events, "look", lambda one: (looks.append(one), look(one))[1])
    submission.kernel.write_text(submission.kernel.read_text())
    os.utime(submission.kernel)

    wait_until(lambda: len(looks) > 1)
    save(submission.kernel, WRONG)
    wait_until(lambda: saved[-1] == look(submission))
    assert len(saved) == 2


def test_many_saves_in_a_row_end_with_the_last(slow_saves, saved, submission, monkeypatch):
    look, numbers = file_events.look, iter(range(40))

    def look_between_saves(one: Submission) -> Content:
        content = look(one)
        for number in numbers:
            save(one.kernel, f"x = {number}\n")
            break
        return content

    monkeypatch.setattr(file_events, "look", look_between_saves)
    save(submission.kernel, RIGHT)

    wait_until(lambda: len(saved) > 1)
    assert saved[1:] == [look(submission)]
    assert submission.kernel.read_text() == "x = 39\n"


def test_a_save_is_seen_without_events(submission, monkeypatch):
    def no_events(*args: object, **options: object) -> Iterator[set[object]]:
        raise OSError(errno.ENOSPC, "OS file watch limit reached")

    monkeypatch.setattr(file_events.watchfiles, "watch", no_events)
    told: list[Content] = []
    with Saves(submission, told.append):
        wait_until(lambda: told)
        save(submission.kernel, RIGHT)

        wait_until(lambda: len(told) > 1)


def test_polling_sees_a_save(submission):
    told: list[Content] = []
    with Saves(submission, told.append, poll=True):
        wait_until(lambda: told)
        save(submission.kernel, RIGHT)

        wait_until(lambda: len(told) > 1)


def test_further_files_of_an_exercise_are_watched(home, course_root):
    toy.write_module(course_root, "mastery", "05-package", "A package")
    folder = course_root / "tracks" / "mastery" / "05-package"
    (folder / "package").mkdir()
    (folder / "package" / "part.py").write_text("y = 1\n")
    listed = (folder / "module.toml").read_text()
    (folder / "module.toml").write_text(f'files = ["package/part.py"]\n{listed}')
    module = course.load(course.roots_in(course_root)).find("package")
    place, _ = workspace.start(module, home / "tritonlab-workspace")
    told: list[Content] = []

    with Saves(Submission(module, place.kernel(module), place), told.append):
        wait_until(lambda: told)
        (place.folder(module) / "package" / "part.py").write_text("y = 2\n")

        wait_until(lambda: len(told) > 1)


@pytest.mark.parametrize(("spoil", "says"), [
    (lambda path: path.unlink(), "There is no file at"),
    (lambda path: (path.unlink(), path.mkdir()), "is a folder"),
    (lambda path: (path.unlink(), os.mkfifo(path)), "is not a regular file"),
    (lambda path: path.write_bytes(b"#" * 1_100_000), "has 1,100,000 bytes"),
    (lambda path: shutil.rmtree(path.parent), "There is no file at"),
], ids=["deleted", "a folder", "a pipe", "too large", "its folder is deleted"])
def test_what_cannot_be_graded_is_told_and_so_is_its_return(saved, submission, spoil, says):
    first = saved[0]
    spoil(submission.kernel)

    wait_until(lambda: len(saved) > 1)
    assert says in saved[-1].complaint
    folder = submission.kernel.parent
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(exist_ok=True)
    submission.kernel.write_text(toy.EXERCISE)
    wait_until(lambda: saved[-1] == first)


# ---------------------------------------------------------------------------------------------
# The loop


class Box:
    """Stands in for the sandbox."""

    made = 0

    def __init__(self) -> None:
        Box.made += 1
        self.pid = Box.made
        self.closed = False

    def close(self) -> None:
        self.closed = True


class Told(Lines):
    """Keeps all that a session tells, what only a terminal shows included."""

    def __init__(self) -> None:
        self.events: list[dict[str, Any]] = []

    def _put(self, event: str, **fields: Any) -> None:
        self.events.append(json.loads(json.dumps({"event": event, **fields})))

    def asks(self, question: str) -> None:
        self._put("asks", text=question)

    def keys(self, keys: Any) -> None:
        self._put("keys", keys=[key.key for key in keys])

    def show(self, page: Any) -> None:
        self._put("page")

    def of(self, event: str) -> list[dict[str, Any]]:
        return [told for told in self.events if told["event"] == event]

    def texts(self) -> str:
        return "\n".join(told.get("text", "") for told in self.events)


class Fingers(Keyboard):
    """A keyboard of which keys are put into the inbox."""

    def __init__(self) -> None:
        super().__init__(wanted=False)
        self.there = True

    def hold(self) -> None: ...


class Session:
    """A watch that runs in a thread beside the test, and a judge that reads the file's comments."""

    def __init__(self, the_course: Any, submission: Submission) -> None:
        self.submission = submission
        self.view = Told()
        self.firsts: list[tuple[str, ...]] = []
        self.cancelled: list[str] = []
        self.hold = threading.Event()  # lets slow ones go on
        self.clock = time.monotonic
        self.watch = Watch(the_course, submission, self.view, actions=key_actions.ACTIONS,
                           keyboard=Fingers(), clock=lambda: self.clock())
        self.code: int | None = None
        self._thread = threading.Thread(target=self._run)

    def _run(self) -> None:
        self.code = self.watch.run()

    def __enter__(self) -> Session:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        if not self.view.of("ended"):
            self.press("q")
        self.hold.set()
        self._thread.join(HANG_S)
        assert not self._thread.is_alive()

    def grade(self, submission: Submission, *, first: tuple[str, ...], cancelled: threading.Event,
              on_event: Callable[[object], None], **_: object) -> Report:
        text = submission.kernel.read_text()
        self.firsts.append(first)
        results = toy.PASSING if "right" in text else toy.FAILING
        for result in results:
            on_event(result.name)
            on_event(result)
        if "slow" in text:
            while not self.hold.wait(0.005):
                if cancelled.is_set():
                    self.cancelled.append(text)
                    raise grader.Cancelled
        if "broken" in text:
            raise ValueError("ours")
        if "full" in text:
            raise CannotGrade("The grader cannot start: no space is left on the disk.", "Free it.")
        if "lost" in text and len(self.firsts) < 3:
            return toy.report((), submission.kernel, reason="its process is gone")
        suite = submission.module.suite_sha256
        return toy.report(results, submission.kernel, suite_sha256=suite)

    def save(self, text: str) -> None:
        save(self.submission.kernel, text)

    def save_slow(self) -> dict[str, Any]:
        """Save what fails and goes on, and wait until that failure is told: on a busy machine, the
        one of the grade before is told early too.
        """
        told = len(self.view.of("failing"))
        self.save(SLOW)
        return self.until("failing", told + 1)

    def press(self, keys: str) -> None:
        self.watch.inbox.put(TypedKeys(keys))

    def until(self, event: str, count: int = 1) -> dict[str, Any]:
        """Wait until so many events of a name were told; returns the last."""
        wait_until(lambda: len(self.view.of(event)) >= count)
        return self.view.of(event)[count - 1]

    def records(self, event: str = "graded") -> list[Any]:
        assert self.submission.workspace is not None
        place = self.submission.workspace
        found = journal.parse((place.mark / "journal.jsonl").read_bytes()).records \
            if (place.mark / "journal.jsonl").exists() else ()
        return [record for record in found if record.event == event]


@pytest.fixture
def session(toy_course, submission, monkeypatch) -> Iterator[Session]:
    Box.made = 0
    made = Session(toy_course, submission)
    monkeypatch.setattr(grading, "grade", made.grade)
    monkeypatch.setattr(grading, "start_sandbox", Box)
    monkeypatch.setattr(grade_thread, "first_failure", lambda submission, results: next(
        r for r in results if r.verdict is Verdict.FAILED))
    with made:
        yield made


def test_it_grades_at_once_and_at_every_save(session):
    session.until("graded")
    session.save(WRONG)
    wrong = session.until("graded", 2)
    session.save(RIGHT)
    right = session.until("graded", 3)

    assert (wrong["report"]["verdict"], right["report"]["verdict"]) == ("FAILED", "PASSED")
    assert "Edit tritonlab-workspace/track1/softmax/kernel.py and save" in wrong["next"]
    assert "Press n for the next module, track1/copy" in right["next"]
    assert [record["verdict"] for record in session.records()] == ["FAILED", "FAILED", "PASSED"]
    assert Box.made == 1


def test_cases_that_failed_last_come_first(session):
    session.until("graded")
    session.save(WRONG)
    session.until("graded", 2)
    session.save(RIGHT)
    session.until("graded", 3)
    session.save(WRONG)
    session.until("graded", 4)

    failed = tuple(r.name for r in toy.FAILING if r.verdict is Verdict.FAILED)
    assert session.firsts == [(), failed, failed, failed]


def test_a_newer_save_cancels_the_grade_and_only_the_newest_gets_a_verdict(session):
    session.until("graded")
    session.save_slow()
    session.save(RIGHT)
    last = session.until("graded", 2)

    assert session.cancelled == [SLOW]
    assert last["report"]["verdict"] == "PASSED"
    assert len(session.records()) == 2


def test_a_failure_is_told_before_the_other_cases_are_known(session):
    session.until("graded")
    early = session.save_slow()
    assert early["failure"]["name"] == "4 rows of 127 columns"
    assert len(session.view.of("graded")) == 1

    session.hold.set()
    assert session.until("graded", 2)["report"]["verdict"] == "FAILED"


def test_a_failure_waits_for_cases_that_are_judged_at_once(session):
    session.until("graded")
    before = session.view.of("failing")
    session.clock = lambda: 0.0  # it stands still
    session.save(WRONG)
    session.until("graded", 2)

    assert session.view.of("failing") == before


def test_a_lost_sandbox_is_replaced_and_the_grade_begun_anew(session):
    session.until("graded")
    session.save("# lost right\n")
    report = session.until("graded", 2)["report"]

    assert report["verdict"] == "PASSED"
    assert "helper process had ended; a new one was started" in session.view.texts()
    assert Box.made == 2


@pytest.mark.parametrize(("text", "says"), [
    ("# broken\n", "tritonlab itself failed (ValueError); your work is untouched"),
    ("# full\n", "no space is left on the disk"),
])
def test_a_grade_that_cannot_be_made_is_a_sentence_and_the_loop_goes_on(session, text, says):
    session.until("graded")
    session.save(text)
    session.until("notice")
    session.save(RIGHT)

    assert session.until("graded", 2)["report"]["verdict"] == "PASSED"
    assert says in session.view.texts()


@pytest.mark.parametrize(("number", "says"), [
    (errno.ENOSPC, "no space is left on the disk"), (errno.EROFS, "the file system is read-only")])
def test_a_record_that_cannot_be_written_is_said_and_the_loop_goes_on(
    session, monkeypatch, number, says
):
    session.until("graded")

    def refuse(*_: object) -> None:
        raise OSError(number, os.strerror(number))

    with monkeypatch.context() as patch:
        patch.setattr(safe_files, "append", refuse)
        session.save(WRONG)
        unsaved = session.until("graded", 2)
    session.save(RIGHT)
    saved = session.until("graded", 3)

    assert says in unsaved["not_saved"]
    assert saved["not_saved"] == ""
    assert [record["verdict"] for record in session.records()] == ["FAILED", "PASSED"]


def test_an_exercise_that_is_gone_is_said_and_graded_when_it_is_back(session):
    session.until("graded")
    session.submission.kernel.unlink()
    session.until("notice")
    session.save(RIGHT)

    assert session.until("graded", 2)["report"]["verdict"] == "PASSED"
    assert "There is no file at" in session.view.texts()
    assert "Or x puts a fresh one there." in session.view.texts()


def test_where_the_exercise_is_gone_a_fresh_one_is_put_there_without_asking(session):
    session.save(WRONG)
    session.until("graded")
    session.submission.kernel.unlink()
    session.until("notice")
    session.press("x")

    session.until("graded", 2)
    assert session.submission.kernel.read_text() == toy.EXERCISE
    assert session.view.of("asks") == []


def test_it_ends_with_the_exit_code_of_the_last_verdict(session):
    session.save(WRONG)
    session.until("graded")
    session.press("q")

    assert session.until("ended")["exit_code"] == 1


def test_quitting_cancels_what_runs_and_records_nothing_of_it(session):
    session.until("graded")
    session.save(SLOW)
    session.until("began", 2)
    wait_until(lambda: len(session.firsts) == 2)
    session.press("q")

    session.until("ended")
    wait_until(lambda: session.code is not None)
    assert session.cancelled == [SLOW]
    assert len(session.records()) == 1
    assert "was ended; nothing of it is recorded" in session.view.of("notice")[-1]["text"]


def test_a_grade_that_was_on_its_way_to_the_record_is_shown_and_not_denied(session, monkeypatch):
    session.until("graded")
    save, saving, go_on = grading.save, threading.Event(), threading.Event()

    def slowly(*args: Any) -> grading.SaveResult:
        saving.set()
        assert go_on.wait(HANG_S)
        return save(*args)

    monkeypatch.setattr(grading, "save", slowly)
    session.save(WRONG)
    assert saving.wait(HANG_S)
    session.press("q")
    go_on.set()

    assert session.until("ended")["exit_code"] == 1
    assert len(session.view.of("graded")) == len(session.records()) == 2
    assert "nothing of it is recorded" not in session.view.texts()


# ---------------------------------------------------------------------------------------------
# Two of them

HOLDS = """
import sys, time
from pathlib import Path
from tritonlab.course import course
from tritonlab.workspace import watch_lock
from tritonlab.workspace.submission import Submission
from tritonlab.workspace.workspace import Workspace
module, place = course.load().find(sys.argv[1]), Workspace(Path("tritonlab-workspace").absolute())
watch_lock.hold(Submission(module, place.kernel(module), place))
print("held", flush=True)
time.sleep(600)
"""


@contextlib.contextmanager
def held_elsewhere(module: str) -> Iterator[subprocess.Popen[str]]:
    """Another process watches a module; it is killed in the end."""
    with subprocess.Popen([sys.executable, "-c", HOLDS, module], stdout=subprocess.PIPE,
                          text=True) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == "held\n"
            yield process
        finally:
            process.kill()


def test_a_second_watch_of_an_exercise_says_who_is_at_it_and_ends(run, submission):
    with held_elsewhere("softmax") as other:
        answer = run("watch", "softmax", "--plain")

        assert (answer.code, answer.out) == (2, "")
        assert answer.err.startswith(f"Another watch, process {other.pid}, since ")
        assert "grades every save of tritonlab-workspace/track1/softmax/kernel.py" in answer.err
        assert f"end it there with q or here with `kill {other.pid}` first.\n" in answer.err
    with watch_lock.hold(submission):  # killed as it was, it is in nobody's way
        pass


def test_another_exercise_can_be_watched_beside_it_but_not_gone_to(session, toy_course):
    copy = toy_course.find("copy")
    session.save(RIGHT)
    session.until("graded")
    place = session.submission.workspace
    workspace.start(copy, place.root)
    with held_elsewhere("copy"):
        session.press("n")

        wait_until(lambda: "Another watch, process" in session.view.texts())
        assert session.records("started") == []
        assert session.watch.module.id == "track1/softmax"
        session.save(WRONG)
        session.until("graded", 2)
    session.press("ny")
    assert session.until("watching", 2)["module"] == "track1/copy"
    with watch_lock.hold(session.submission):  # what was left is free again
        pass


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EROFS])
def test_where_no_lock_can_be_had_it_goes_without(submission, monkeypatch, number):
    def refuse(*_: object, **__: object) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(Path, "mkdir", refuse)

    with watch_lock.hold(submission):
        assert not (submission.workspace.mark / watch_lock.FOLDER).exists()


# ---------------------------------------------------------------------------------------------
# Keys


def test_a_hint_is_shown_and_recorded(session):
    session.save(WRONG)
    session.until("graded")
    session.press("h")
    session.until("page")

    wait_until(lambda: session.records("hint"))
    assert session.records("hint")[0]["group"] == "B"  # the failure names TODO 2


def test_a_hint_is_about_the_failure_that_is_shown(session):
    session.until("graded")
    session.save_slow()  # and not on record yet
    session.press("h")
    session.until("page")

    wait_until(lambda: session.records("hint"))
    assert session.records("hint")[0]["group"] == "B"


def test_there_is_no_hint_where_nothing_failed(session):
    session.save(RIGHT)
    wait_until(lambda: any(told["report"]["verdict"] == "PASSED"
                           for told in session.view.of("graded")))
    session.press("h")

    assert "Nothing has failed" in session.until("notice")["text"]
    assert (session.view.of("page"), session.records("hint")) == ([], [])


class Terminal(io.StringIO):
    """Keeps what is written to a terminal."""

    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(("width", "line"), [
    (120, "  h hint · r read · s solution · t trace · x reset · n next · b bench · u undo "
          "· e edit · q quit · ? keys"),
    (80, "  h hint · r read · s solution · t trace · x reset · n next · q quit · ? keys"),
    (40, "  h hint · r read · q quit · ? keys"),
    (20, "  q quit · ? keys"),
])
def test_a_narrow_line_still_says_how_to_end_and_where_the_other_keys_are(width, line, monkeypatch):
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", str(width))
    shown = Terminal()

    Watched(lambda: Screen(shown)).resting(key_actions.ACTIONS)

    assert shown.getvalue().strip("\r").rpartition("\x1b[J")[2] == line


def test_of_two_cases_that_fail_alike_the_second_says_only_what_is_new(submission):
    shown = io.StringIO()
    view = Watched(lambda: Screen(shown, plain=True))
    early = toy.case("large", Verdict.FAILED, finding=toy.WRONG)
    first = toy.case("small", Verdict.FAILED, finding=replace(toy.WRONG, data="3 are wrong."))
    other = toy.case("small", Verdict.FAILED, finding=replace(toy.WRONG, code="M03"))

    said = []
    for one in (first, other):
        shown.truncate(0)
        report = toy.report((one, early), submission.kernel)
        view.graded(submission.module, report, JournalReading(()), early, "", "")
        said.append(shown.getvalue())

    assert "the first that fails so is another, small" in said[0]
    assert "3 are wrong." in said[0] and toy.WRONG.means not in said[0]
    assert "small (elements-not-stored)" in said[1] and toy.WRONG.means in said[1]


@pytest.mark.parametrize(("keys", "step", "said"), [
    (True, "`tritonlab hint --todo 2` shows a hint.",
     'Key h shows hint 1 of 3 on "Addressing".'),
    (True, "Fill in TODO 2 first; `tritonlab hint --todo 2` shows a hint.",
     'Fill in TODO 2 first; key h shows hint 1 of 3 on "Addressing".'),
    (False, "`tritonlab hint --todo 2` shows a hint.",
     '`tritonlab hint track1/softmax --todo 2` shows hint 1 of 3 on "Addressing".'),
    (True, "Fix it, then run `tritonlab grade` again.", "Fix it, then save."),
    (False, "Fix it, then run `tritonlab grade` again.", "Fix it, then save."),
])
def test_a_next_step_is_a_key_where_there_are_keys(submission, keys, step, said):
    shown = io.StringIO()
    view = Watched(lambda: Screen(shown, plain=True))
    finding = replace(toy.WRONG, next_step=step, todos=(2,) if "hint" in step else ())

    view.watching(submission, key_actions.ACTIONS if keys else ())
    view.failing(submission.module, toy.case("x", Verdict.FAILED, finding=finding),
                 JournalReading(()))

    assert f"Hint: {said}" in " ".join(shown.getvalue().split())


def test_a_verdict_after_another_is_of_a_save_and_the_first_of_what_is_there(submission):
    shown = io.StringIO()
    view = Watched(lambda: Screen(shown, plain=True))

    for number in range(2):
        view.watching(submission, ())
        view.began(5 * number + 1, "10:00:00")
        view.began(5 * number + 2, "10:00:01")

    assert [line for line in shown.getvalue().splitlines() if line.startswith("10:")] == [
        "10:00:00 As it is now", "10:00:01 Saved"] * 2


def test_a_reset_asks_first_and_can_be_undone(session):
    session.save(WRONG)
    session.until("graded")
    session.press("x")
    session.until("asks")
    session.press("n")
    session.until("notice")
    assert session.submission.kernel.read_text() == WRONG

    session.press("xy")
    session.until("graded", 2)
    assert session.submission.kernel.read_text() == toy.EXERCISE
    session.press("u")
    session.until("graded", 3)
    assert session.submission.kernel.read_text() == WRONG
    assert "Press u to bring your work back" in session.view.texts()
    assert "Your work is back in tritonlab-workspace/track1/softmax. What was there is kept in" \
        in session.view.texts()


def test_the_next_module_is_begun_after_a_pass_and_watched(session):
    session.save(RIGHT)
    session.until("graded")
    session.press("n")
    watching = session.until("watching", 2)
    session.until("graded", 2)

    assert watching["module"] == "track1/copy"
    assert session.view.of("asks") == []
    Path(watching["kernel"]).write_text(RIGHT)
    assert session.until("graded", 3)["module"] == "track1/copy"


def test_the_next_module_has_to_be_wanted_before_a_pass(session):
    session.save(WRONG)
    session.until("graded")
    session.press("n")
    session.until("asks")
    session.press("x")  # anything but y
    session.until("notice")
    assert len(session.view.of("watching")) == 1

    session.press("ny")
    assert session.until("watching", 2)["module"] == "track1/copy"


def test_it_never_goes_on_by_itself(session):
    session.save(RIGHT)
    session.until("graded")
    session.press("?")  # answered after all that came before
    session.until("keys")

    assert len(session.view.of("watching")) == 1


def test_the_solution_is_asked_for_before_a_pass_and_shown_by_its_verb(session, monkeypatch):
    ran: list[tuple[object, ...]] = []
    monkeypatch.setattr(Watch, "run_aside", lambda watch, command, *, reads: ran.append(
        (*command[3:], reads)) or 0)
    session.save(WRONG)
    session.until("graded")
    session.press("s")
    session.until("asks")
    session.press("y")
    session.save(RIGHT)
    session.until("graded", 2)
    session.press("sbr")

    wait_until(lambda: len(ran) == 4)
    assert ran == [
        ("solution", "track1/softmax", "--give-up", False), ("solution", "track1/softmax", False),
        ("bench", "track1/softmax", False), ("read", "track1/softmax", True)]


def test_there_is_nothing_to_bring_back_or_to_reset_at_first(session):
    session.until("graded")
    session.press("u")
    assert "There is no backup of track1/softmax" in session.until("notice")["text"]
    session.press("xy")

    wait_until(lambda: "This is the fresh exercise already" in session.view.texts())
    assert session.submission.kernel.read_text() == toy.EXERCISE


@pytest.mark.parametrize(("name", "code", "says"), [
    ("code", None, "was opened in code."), ("vim", 0, ""), ("vim", 1, "vim failed."),
    ("none", None, "No editor was found"),
])
def test_the_exercise_is_opened_in_an_editor(session, monkeypatch, tmp_path, name, code, says):
    ran: list[list[str]] = []
    program = tmp_path / "bin" / name
    program.parent.mkdir()
    if name != "none":
        program.write_text("#!/bin/sh\n")
        program.chmod(0o755)
    monkeypatch.setenv("PATH", str(program.parent))
    monkeypatch.setenv("EDITOR", name)
    monkeypatch.setattr(Watch, "run_aside", lambda watch, command, *, reads: (
        ran.append(command), code)[1])
    session.until("graded")
    session.press("e?")
    session.until("keys")

    assert says in session.view.texts()
    assert ran == ([[name, str(session.submission.kernel)]] if code is not None else [])


@pytest.mark.parametrize("code", [None, -9, 77])
def test_a_verb_that_does_not_end_well_is_to_be_repeated(session, monkeypatch, code):
    monkeypatch.setattr(Watch, "run_aside", lambda *_, reads: code)
    session.until("graded")
    session.press("r?")
    session.until("keys")

    assert "It failed. Repeat it in another terminal: tritonlab read track1/softmax" \
        in session.view.texts()


def test_all_keys_are_listed_and_others_are_answered(session):
    session.press("?")
    assert session.until("keys")["keys"] == list("hrstxnbueq?")
    session.press("w")

    notice = session.until("notice")["text"]
    assert "w is not a key of this list; press ? to see the keys." in notice


def test_a_key_that_fails_is_a_sentence_and_the_loop_goes_on(session, monkeypatch):
    def fails(*_: object) -> None:
        raise ZeroDivisionError

    session.until("graded")
    monkeypatch.setattr(key_actions.hints, "give", fails)
    session.press("h")
    assert "tritonlab itself failed (ZeroDivisionError)" in session.until("notice")["text"]
    session.save(RIGHT)

    assert session.until("graded", 2)["report"]["verdict"] == "PASSED"


def test_a_page_that_cannot_be_drawn_is_a_sentence(monkeypatch, toy_course):
    heard = []
    thread = grade_thread.GradeThread(toy_course, heard.append)
    monkeypatch.setattr(grade_thread.grading, "start_sandbox",
                        mock.Mock(side_effect=CannotGrade("The grader does not start.")))

    thread._do(grade_thread.GradeJob(0, mock.Mock(), draws=True, grades=False))

    assert heard == ["The page of the trace was not drawn: The grader does not start. "
                     "Run `tritonlab doctor` to find the cause."]
