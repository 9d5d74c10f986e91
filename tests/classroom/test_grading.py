"""Grading a class: what is graded, once, and what a failure or a kill costs."""

import subprocess
from concurrent.futures.process import BrokenProcessPool
from dataclasses import replace

import pytest

from grader.sandbox import SandboxBroken
from tests.classroom import support
from tests.classroom.support import FAILED, PASSED, TIMED_OUT, Obedient
from tritonlab.classroom import book, grading
from tritonlab.classroom.book import State
from tritonlab.classroom.grade_worker import TIME_LIMIT
from tritonlab.course.override import Override
from tritonlab.errors import CannotGrade, NotSaved, TritonlabError


@pytest.fixture
def hall(tmp_path, course_root):
    """A class of the toy course: ``hall.grade(answers)`` grades what is due."""
    course_root.rename(tmp_path / "class-course")
    text = support.CLASS.replace('course = "course"', 'course = "../class-course"')

    class Hall:
        settings, store = support.write(tmp_path / "class", text)
        course, roots = grading.course_of(settings, tmp_path / "class")
        executor = Obedient({})

        def book(self):
            return book.read(self.settings, self.store.log())

        def plan(self, **options):
            return grading.plan(self.settings, self.course, self.store, self.book(),
                                [self.settings.assignment("hw1")], **options)

        def grade(self, answers, lower=False, **options):
            self.executor = Obedient(answers)
            return grading.run(self.settings, self.store, self.book(), self.roots,
                               self.plan(**options), executor=self.executor, lower=lower)

        def change_suite(self):
            suite = tmp_path / "class-course/suites/missing-elements/03-softmax/suite.py"
            suite.write_text(suite.read_text() + "\n# changed\n")

        def points(self, student="ada"):
            return self.book().score(student, self.settings.assignment("hw1")).points

    return Hall()


def test_identical_sources_are_graded_once_and_count_for_all(hall):
    for student in ("ada", "bob"):
        support.hand_in(hall.store, student, "same")

    hall.grade({"same": PASSED})

    assert hall.executor.graded == ["same"]
    assert (hall.points("ada"), hall.points("bob")) == (100, 100)


def test_a_second_run_grades_nothing(hall):
    support.hand_in(hall.store, "ada", "a")
    hall.grade({"a": FAILED})

    summary = hall.grade({})

    assert (summary.graded, hall.executor.graded) == ([], [])


def test_only_what_was_in_flight_is_graded_again_after_a_kill(hall):
    for source in "abcd":
        support.hand_in(hall.store, source, source)

    class Killed(BaseException):
        pass

    with pytest.raises(Killed):
        hall.grade({"a": PASSED, "b": PASSED, "c": Killed(), "d": Killed()})
    hall.grade({"c": PASSED, "d": PASSED})

    assert sorted(hall.executor.graded) == ["c", "d"]
    assert [hall.points(student) for student in "abcd"] == [100] * 4


def test_a_result_without_an_event_is_noted_and_not_graded_again(hall):
    support.hand_in(hall.store, "ada", "a")
    hall.grade({"a": PASSED})
    path = hall.store.folder / "events.jsonl"
    path.write_bytes(path.read_bytes().splitlines()[0] + b"\n")  # the import only

    hall.grade({})

    assert (hall.executor.graded, hall.points()) == ([], 100)


def test_a_damaged_result_is_graded_again(hall):
    support.hand_in(hall.store, "ada", "a")
    hall.grade({"a": PASSED})
    [path] = hall.store.folder.glob("results/*")
    path.write_bytes(b"damaged")

    plan = hall.plan()
    hall.grade({"a": PASSED})

    assert plan.damaged == 1
    assert hall.executor.graded == ["a"]
    assert hall.store.result(path.name.removesuffix(".json.gz")) is not None


def test_a_changed_suite_makes_grades_stale_until_asked(hall):
    support.hand_in(hall.store, "ada", "a")
    hall.grade({"a": FAILED})
    hall.change_suite()

    waiting = hall.plan()
    summary = hall.grade({"a": PASSED}, stale=True)

    assert (len(waiting.tasks), waiting.stale) == (0, 1)
    assert (summary.gained, hall.points()) == (1, 100)
    assert hall.plan(stale=True).tasks == []


def test_published_points_are_not_lowered_unless_asked(hall):
    support.hand_in(hall.store, "ada", "a")
    hall.grade({"a": PASSED})
    hall.store.append({"event": "exported", "assignment": "hw1", "to": "csv", "scores": {}})
    hall.change_suite()

    kept = hall.grade({"a": FAILED}, stale=True)
    points = hall.points()
    lowered = hall.grade({"a": FAILED}, again=True, lower=True)

    assert (kept.kept, points) == (1, 100)
    assert (lowered.lost, hall.points()) == (1, pytest.approx(71.43))


def test_what_the_machine_may_have_caused_is_graded_once_more_alone(hall):
    support.hand_in(hall.store, "ada", "a")
    support.hand_in(hall.store, "bob", "b")

    summary = hall.grade({"a": [TIMED_OUT, PASSED], "b": PASSED})

    assert hall.executor.graded == ["a", "b", "a"]
    assert (hall.points(), len(summary.graded)) == (100, 2)


def test_a_worker_that_dies_costs_one_submission_which_is_tried_again(hall):
    support.hand_in(hall.store, "ada", "a")
    support.hand_in(hall.store, "bob", "b")

    summary = hall.grade({"a": [BrokenProcessPool()] * 3, "b": [BrokenProcessPool(), PASSED]})

    [(task, why)] = summary.failed
    assert (task.students, why) == (
        ("ada",), "A process of the grader ended unexpectedly 3 times.")
    assert hall.points("bob") == 100


@pytest.mark.parametrize("error", [BrokenProcessPool(), SandboxBroken("killed")])
def test_a_worker_that_dies_while_isolation_is_checked_is_tried_again(hall, error):
    support.hand_in(hall.store, "ada", "a")
    hall.executor = Obedient({"a": PASSED})
    hall.executor.checks = [error, error]

    grading.run(hall.settings, hall.store, hall.book(), hall.roots, hall.plan(),
                executor=hall.executor)
    hall.executor.checks = [error] * 3
    support.hand_in(hall.store, "bob", "b")
    with pytest.raises(CannotGrade, match="ended unexpectedly 3 times"):
        grading.run(hall.settings, hall.store, hall.book(), hall.roots, hall.plan(),
                    executor=hall.executor)

    assert hall.executor.graded == ["a"]


@pytest.mark.parametrize("error", [SandboxBroken("killed"), CannotGrade("It does not start.")])
def test_a_sandbox_that_dies_costs_no_grade(hall, error):
    support.hand_in(hall.store, "ada", "a")
    support.hand_in(hall.store, "bob", "b")

    summary = hall.grade({"a": [error, PASSED], "b": PASSED})

    assert (summary.failed, hall.points("ada"), hall.points("bob")) == ([], 100, 100)


def test_a_submission_that_another_process_grades_is_left_to_it(hall):
    blob = support.hand_in(hall.store, "ada", "a")
    [task] = hall.plan().tasks

    with hall.store.claimed(task.key):
        summary = hall.grade({})

    assert (blob, hall.executor.graded, len(summary.elsewhere)) == (task.blob, [], 1)


def test_a_result_that_another_process_wrote_meanwhile_is_taken(hall):
    support.hand_in(hall.store, "ada", "a")
    work = hall.plan()
    hall.grade({"a": PASSED})

    second = Obedient({})
    grading.run(hall.settings, hall.store, hall.book(), hall.roots, work, executor=second)

    assert second.graded == []


def test_a_machine_below_the_required_isolation_grades_nothing(hall):
    support.hand_in(hall.store, "ada", "a")
    hall.settings = replace(hall.settings, require_isolation=2)
    weak = Obedient({"a": PASSED}, tier=1)

    with pytest.raises(CannotGrade, match="requires isolation of tier 2"):
        grading.run(hall.settings, hall.store, hall.book(), hall.roots, hall.plan(), executor=weak)

    assert weak.graded == []


def test_shards_share_all_tasks(hall):
    for n in range(40):
        support.hand_in(hall.store, f"s{n}", f"source {n}")
    tasks = hall.plan().tasks

    shards = [grading.in_shard(tasks, index, 3) for index in (1, 2, 3)]

    assert sorted(task.key for shard in shards for task in shard) == sorted(t.key for t in tasks)
    assert all(shards)


def test_a_course_that_is_neither_a_folder_nor_installed_is_named(hall, tmp_path):
    settings = replace(hall.settings, course="no-such-course")

    with pytest.raises(TritonlabError, match="no-such-course"):
        grading.course_of(settings, tmp_path)


def test_an_assignment_without_modules_is_named(hall, tmp_path):
    empty = replace(hall.settings.assignment("hw1"), modules=())
    settings = replace(hall.settings, assignments={"hw1": empty})

    with pytest.raises(TritonlabError, match=r"^Assignment hw1 has no modules"):
        grading.course_of(settings, tmp_path / "class")


def test_students_and_modules_outside_the_assignment_are_left_out(hall):
    support.hand_in(hall.store, "ada", "a")
    support.hand_in(hall.store, "bob", "b")
    support.hand_in(hall.store, "ada", "c", module="track1/copy")

    [task] = hall.plan(students=frozenset(("ada",))).tasks

    assert (task.module, task.students) == ("track1/softmax", ("ada",))


def test_a_draft_gives_no_points_and_is_made_once(hall):
    support.hand_in(hall.store, "ada", "a")

    hall.grade({"a": PASSED}, effort="values")
    drafted = hall.book().score("ada", hall.settings.assignment("hw1"))
    again = hall.plan(effort="values")

    assert (drafted.state, drafted.points, drafted.modules[0].draft.verdict) == (
        State.WAITING, 0, "PASSED")
    assert (again.tasks, again.noted, again.done) == ([], [], 1)


def test_a_draft_is_no_grade_and_a_grade_needs_no_draft(hall):
    support.hand_in(hall.store, "ada", "a")
    hall.grade({"a": FAILED}, effort="values")

    whole = hall.grade({"a": PASSED})
    draft = hall.plan(effort="values")
    score = hall.book().score("ada", hall.settings.assignment("hw1"))

    assert (hall.executor.graded, whole.gained, whole.lost) == (["a"], 0, 0)
    assert (score.state, score.points, score.modules[0].draft) == (State.PASSED, 100, None)
    assert (draft.tasks, draft.done) == ([], 1)


def test_a_draft_after_a_grade_lowers_nothing(hall):
    support.hand_in(hall.store, "ada", "a")
    hall.grade({"a": PASSED})
    hall.change_suite()
    hall.grade({"a": FAILED}, effort="values", again=True)

    assert hall.points() == 100


@pytest.mark.parametrize("change", [{"limit_memory_mb": 500}, {"limit_cpu_s": 7}])
def test_another_limit_makes_grades_stale(hall, change):
    support.hand_in(hall.store, "ada", "a")
    hall.grade({"a": FAILED})

    hall.settings = replace(hall.settings, **change)

    assert hall.plan().stale == 1


def test_a_grade_that_used_up_its_cpu_time_is_not_tried_again(hall):
    support.hand_in(hall.store, "ada", "a")
    support.hand_in(hall.store, "bob", "b")
    over = {**support.report("INCONCLUSIVE", ("correctness", "INCONCLUSIVE"))}
    over["results"][0]["name"] = TIME_LIMIT

    hall.grade({"a": over, "b": PASSED})

    assert hall.executor.graded == ["a", "b"]
    assert hall.book().score("ada", hall.settings.assignment("hw1")).state is State.UNDECIDED


def test_a_plan_with_nothing_to_do_loads_no_suite(hall, monkeypatch):
    support.hand_in(hall.store, "ada", "a")
    hall.grade({"a": PASSED})
    monkeypatch.setattr(grading, "suite_for", None)

    assert hall.plan().done == 1


def test_an_override_that_does_not_fit_is_named_before_anything_is_graded(hall):
    support.hand_in(hall.store, "ada", "a")
    hw1 = replace(hall.settings.assignment("hw1"),
                  override={"track1/softmax": Override(ignore=("no such case",))})
    hall.settings = replace(hall.settings, assignments={"hw1": hw1})

    with pytest.raises(TritonlabError, match=r"override of track1/softmax in class\.toml"):
        hall.plan()


def test_a_full_disk_costs_only_what_was_not_written(small_disk, course_root):
    with small_disk("300k") as disk:
        settings, store = support.write(disk, support.CLASS.replace('"course"', f'"{course_root}"'))
        course, roots = grading.course_of(settings, disk)
        for source in "abcd":
            support.hand_in(store, source, source)
        ballast = disk / "ballast"

        def fill(job):
            if job.files["kernel.py"] == b"c":
                with pytest.raises(OSError, match="No space"):
                    ballast.write_bytes(bytes(1_000_000))

        def grade(executor):
            the_book = book.read(settings, store.log())
            work = grading.plan(settings, course, store, the_book, [settings.assignment("hw1")])
            return grading.run(settings, store, the_book, roots, work, executor=executor)

        first = Obedient(dict.fromkeys("abcd", PASSED), size=1)
        first.before = fill
        with pytest.raises(NotSaved, match="no space is left on the disk"):
            grade(first)
        ballast.unlink()
        second = Obedient(dict.fromkeys("abcd", PASSED))
        grade(second)

        log = store.log()
        the_book = book.read(settings, log)
        assert log.problems == ()
        assert first.graded[-1] == "c"
        assert second.graded == ["c", "d"]
        assert [the_book.score(one, settings.assignment("hw1")).points for one in "abcd"] == \
            [100] * 4


def test_a_class_that_cannot_be_written_is_named_and_nothing_is_graded(small_disk, course_root):
    with small_disk("300k") as disk:
        settings, store = support.write(disk, support.CLASS.replace('"course"', f'"{course_root}"'))
        course, roots = grading.course_of(settings, disk)
        support.hand_in(store, "ada", "a")
        the_book = book.read(settings, store.log())
        work = grading.plan(settings, course, store, the_book, [settings.assignment("hw1")])
        executor = Obedient({"a": PASSED})
        subprocess.run(["mount", "-o", "remount,ro", disk], check=True)

        with pytest.raises(TritonlabError, match="cannot be written: read-only"):
            grading.run(settings, store, the_book, roots, work, executor=executor)

        assert executor.graded == []
        assert book.read(settings, store.log()).handed["hw1"]
