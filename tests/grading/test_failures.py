"""What a grade leaves for `trace`: the cases that failed."""

from tests.support import toy
from tritonlab.course import course
from tritonlab.grading import grade as grading
from tritonlab.progress import caches
from tritonlab.workspace import start, submission


def test_a_case_that_passes_leaves_the_other_failures(judge, home):
    the_course = course.load()
    module = the_course.find("track1/softmax")
    place = start.begin(the_course, module).place
    graded = submission.exercise(module, place, the_course)

    def failures(results, **options):
        judge(results)
        grading.grade(graded, **options)
        return list(caches.load_failures(place.mark, module.id).cases)

    first, second, third = failures(toy.FAILING)
    passing = toy.PASSING[1:2]
    assert passing[0].name == first

    assert failures(toy.PASSING[:1], only=toy.PASSING[0].name) == [first, second, third]
    assert failures(passing, only=first) == [second, third]
    assert failures(toy.FAILING[2:3], only=second) == [second]
    assert failures(toy.PASSING) == []
