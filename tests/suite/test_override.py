"""Changes of a suite that a class asks for."""

import pytest

from grader.report import Kind
from grader.suite.override import overridden
from tritonlab.course import course
from tritonlab.grading.grade import suite_of


@pytest.fixture(scope="module")
def suite():
    return suite_of(course.load(course.shipped_roots()).find("track1/softmax"))


def test_an_empty_override_changes_nothing(suite):
    assert overridden(suite) is suite


def test_pass_at_replaces_the_share_of_performance_cases(suite):
    changed = overridden(suite, pass_at=0.25)

    asked = {case.limits.pass_at for case in changed.all_cases
             if case.kind is Kind.PERFORMANCE and case.limits and case.limits.pass_at is not None}
    assert asked == {0.25}
    assert changed.sha256 != suite.sha256


def test_an_ignored_case_or_property_is_gone(suite):
    names = [case.name for case in suite.ordered()]
    ignored = (names[0], suite.properties[0].name)

    changed = overridden(suite, ignore=ignored)

    assert [case.name for case in changed.ordered()] == [n for n in names if n not in ignored]


@pytest.mark.parametrize(("ignore", "reason"), [
    (lambda names: ("no such",), "no case is called 'no such'"),
    (lambda names: (f"{names[0]}s",), "the nearest is '"),
    (lambda names: tuple(names), "every case is ignored")])
def test_what_cannot_be_applied_is_refused(suite, ignore, reason):
    with pytest.raises(ValueError, match=reason):
        overridden(suite, ignore=ignore([case.name for case in suite.ordered()]))
