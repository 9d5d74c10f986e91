"""The book: which submission counts, and what it is worth."""

import pytest

from tests.classroom import support
from tritonlab.classroom import book
from tritonlab.classroom.book import State
from tritonlab.classroom.grading import summary_of

ON_TIME, DAY_LATE, LONG_LATE = ("2026-10-10T12:00:00-04:00", "2026-10-13T12:00:00-04:00",
                                "2026-10-30T12:00:00-04:00")


@pytest.fixture
def a_class(tmp_path):
    """Writes a class with changed settings; returns how to hand in, grade and look at a score."""

    class A:
        def __init__(self, *changes: tuple[str, str]) -> None:
            text = support.CLASS
            for old, new in changes:
                assert old in text
                text = text.replace(old, new)
            self.settings, self.store = support.write(tmp_path, text)

        def hand_in(self, source, report=None, **more):
            blob = support.hand_in(self.store, "ada", source, **more)
            if report is not None:
                data = {"key": f"key of {blob}", "report": report, "cpu_s": 1}
                graded = summary_of("hw1", "track1/softmax", blob, data)
                self.store.append({"event": "graded", **_plain(graded)})

        @property
        def score(self):
            return book.read(self.settings, self.store.log()).score(
                "ada", self.settings.assignment("hw1"))

    return A


def _plain(graded):
    import msgspec

    return msgspec.to_builtins(graded)


def test_states_from_nothing_to_passed(a_class):
    one = a_class()
    states = [one.score.state]
    one.hand_in("a", at=ON_TIME)
    states.append(one.score.state)
    for source, report in (("b", support.report("INCONCLUSIVE")), ("c", support.FAILED),
                           ("d", support.PASSED)):
        one.hand_in(source, report, at=ON_TIME)
        states.append(one.score.state)

    assert states == [State.MISSING, State.WAITING, State.WAITING, State.OPEN, State.PASSED]


def test_points_follow_the_weights_of_the_kinds_that_the_suite_has(a_class):
    one = a_class()

    one.hand_in("a", support.FAILED, at=ON_TIME)  # correctness 50, edge 20, so 5 parts of 7

    assert one.score.points == pytest.approx(71.43)


@pytest.mark.parametrize(("at", "points", "days"), [
    (ON_TIME, 100, 0), (DAY_LATE, 90, 1), (LONG_LATE, 0, 18)])
def test_each_day_begun_costs_a_percentage(a_class, at, points, days):
    one = a_class()

    one.hand_in("a", support.PASSED, at=at)

    assert (one.score.points, one.score.days) == (points, days)


def test_without_late_rules_a_late_submission_is_marked_and_costs_nothing(a_class):
    one = a_class(("late = { percent_per_day = 10, days = 3 }\n", ""))

    one.hand_in("a", support.PASSED, at=DAY_LATE)

    assert (one.score.points, one.score.is_late) == (100, True)


def test_a_layout_without_times_may_still_say_late(a_class):
    one = a_class()

    one.hand_in("a", support.PASSED, late=True)

    assert (one.score.points, one.score.days) == (90, 1)


@pytest.mark.parametrize(("take", "points"), [
    ("best", 90), ("last", 0), ("last-before-due", 71.43)])
def test_the_submission_that_counts(a_class, take, points):
    one = a_class(("late =", f'take = "{take}"\nlate ='))

    one.hand_in("good but late", support.PASSED, at=DAY_LATE)
    one.hand_in("in time", support.FAILED, at=ON_TIME)
    one.hand_in("much too late", support.PASSED, at=LONG_LATE)

    assert one.score.points == pytest.approx(points)
    assert one.score.modules[0].attempts == 3


def test_decisions_of_the_instructor(a_class):
    one = a_class()
    one.hand_in("a", support.PASSED, at=DAY_LATE)
    ruling = {"student": "ada", "assignment": "hw1", "reason": "ill"}

    one.store.append({"event": "extended", "until": "2026-10-14T00:00:00-04:00", **ruling})
    extended = one.score
    one.store.append({"event": "excused", **ruling})
    excused = one.score
    one.store.append({"event": "overridden", "points": 42, **ruling})

    assert (extended.points, extended.days) == (100, 0)
    assert (excused.points, excused.state) == (None, State.EXCUSED)
    assert (one.score.points, one.score.excused, one.score.days) == (42, False, 0)


def test_an_excuse_replaces_an_override_and_can_be_undone(a_class):
    one = a_class()
    one.hand_in("a", support.PASSED, at=ON_TIME)
    ruling = {"student": "ada", "assignment": "hw1", "reason": "ill"}

    one.store.append({"event": "overridden", "points": 55, **ruling})
    one.store.append({"event": "excused", **ruling})
    excused = one.score
    one.store.append({"event": "undone", "decision": "excused", **ruling})

    assert (excused.points, excused.state) == (None, State.EXCUSED)
    assert (one.score.points, one.score.ruling) == (100, None)


def test_points_of_an_assignment_are_shared_by_its_modules(a_class):
    one = a_class(('["track1/softmax"]', '["track1/softmax", "track1/copy"]'))

    one.hand_in("a", support.PASSED, at=ON_TIME)

    assert (one.score.points, one.score.state) == (50, State.OPEN)


def test_two_equal_imports_count_once(a_class):
    one = a_class()

    one.hand_in("a", support.PASSED, at=ON_TIME)
    one.hand_in("a", at=ON_TIME)

    assert one.score.modules[0].attempts == 1
