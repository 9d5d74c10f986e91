"""The course of a command: TRITONLAB_COURSE, else that of the workspace, else the shipped one."""

import os

from tritonlab.course import course
from tritonlab.course.course import SHIPPED, Course
from tritonlab.errors import BadCourse, OtherCourse, TritonlabError
from tritonlab.workspace import workspace


def load() -> Course:
    """Loads the course in use.

    Raises:
        OtherCourse: the workspace belongs to a course that is not installed.
        BadCourse: a file of the course is missing or malformed.
    """
    own = None
    if not os.environ.get("TRITONLAB_COURSE"):
        try:
            place = workspace.find()
            own = place.course if place else None
        except TritonlabError:  # which the command itself reports, if it needs the workspace
            own = None
    if own in (None, SHIPPED):
        return course.load()
    assert place is not None and own is not None
    try:
        roots = course.roots_of_id(own)
    except BadCourse as error:
        raise OtherCourse(f"The workspace {place.root} belongs to the course {own}, which is not "
                          "installed.", f"Install {own}, or let TRITONLAB_COURSE name its folder."
                          ) from error
    return course.load(roots)
