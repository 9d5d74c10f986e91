"""The reference solution beside the learner's files, and who may see it."""

import ast
import difflib
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from grader.submission import syntax
from grader.submission.dataflow import kernel_definitions
from tritonlab.course.course import Course, Module
from tritonlab.errors import BadCourse
from tritonlab.progress import certificate
from tritonlab.progress.journal import JournalReading
from tritonlab.workspace import workspace
from tritonlab.workspace.submission import Submission
from tritonlab.workspace.workspace import Workspace

CONTEXT = 3  # lines that are shown around a difference

Opcode = tuple[str, int, int, int, int]  # as of ``difflib.SequenceMatcher``
Lines = tuple[str, ...]


@dataclass(frozen=True)
class FileComparison:
    """One file of the exercise: the learner's version and the solution's."""

    name: str
    yours: tuple[str, ...]
    solution: tuple[str, ...]

    @property
    def same(self) -> bool:
        return self.yours == self.solution

    @property
    def unified(self) -> list[str]:
        """The unified diff from the learner's file to the solution's, without line ends."""
        return list(difflib.unified_diff(self.yours, self.solution, f"yours/{self.name}",
                                         f"solution/{self.name}", n=CONTEXT, lineterm=""))

    @property
    def hunks(self) -> list[list[Opcode]]:
        """The differences with their context: in kernels, then in other code, then docstrings."""
        (cut, _), (other, kernels) = _outline(self.yours), _outline(self.solution)
        if not (cut and other):
            cut = other = 0

        def elsewhere(hunk: Sequence[Opcode]) -> bool:
            return not any(tag != "equal" and b1 < last and b2 >= first
                           for tag, _, _, b1, b2 in hunk for first, last in kernels)

        code = _grouped(self.yours, self.solution, cut, other)
        return [*sorted(code, key=elsewhere),
                *_grouped(self.yours[:cut], self.solution[:other], 0, 0)]


def compare(module: Module, submission: Submission) -> list[FileComparison]:
    """Compares the learner's files with the solution's; a missing further file is empty.

    ``earned`` decides whether they may be shown; ``record`` has to be called before.

    Raises:
        BadCourse: the solution is missing.
        UnusableFile: a file of the learner cannot be read.
    """
    return [FileComparison(name, _yours(path), _solution(module, name))
            for name, path in submission.files.items()]


def earned(course: Course, reading: JournalReading, module: Module) -> bool:
    """Whether the solution may be shown: after a pass, or once it was shown before."""
    return certificate.build(course, reading).entry(module).done or _was_shown(reading, module)


def record(course: Course, place: Workspace, module: Module) -> str:
    """Records once that the solution is shown: a give-up unless the module is passed.

    Returns:
        Why the certificate is out of date, or an empty string.

    Raises:
        NotSaved: it cannot be written; then the solution should not be shown.
    """
    journal = place.journal(course)
    reading = journal.read()
    if _was_shown(reading, module):
        return ""
    done = certificate.build(course, reading).entry(module).done
    return journal.append("solution", module.id, gave_up=not done)


def _outline(lines: Lines) -> tuple[int, list[tuple[int, int]]]:
    """The end of the module docstring, and of each kernel the first line and the end, from 0."""
    tree = syntax.tree_of("\n".join(lines))
    end = tree.body[0].end_lineno or 0 if ast.get_docstring(tree) is not None else 0
    return end, [(kernel.first_line - 1, syntax.last_line(kernel.node))
                 for kernel in kernel_definitions(tree)]


def _grouped(yours: Lines, solution: Lines, first: int, other: int) -> list[list[Opcode]]:
    """The hunks between the lines from ``first`` and from ``other`` on."""
    matcher = difflib.SequenceMatcher(None, yours[first:], solution[other:], autojunk=False)
    return [[(tag, a1 + first, a2 + first, b1 + other, b2 + other)
             for tag, a1, a2, b1, b2 in group] for group in matcher.get_grouped_opcodes(CONTEXT)]


def _was_shown(reading: JournalReading, module: Module) -> bool:
    return any(r.event == "solution" and r.module == module.id for r in reading.records)


def _yours(path: Path) -> tuple[str, ...]:
    if not os.path.lexists(path):
        return ()
    workspace.check_file(path)
    return tuple(path.read_text(encoding="utf-8", errors="replace").splitlines())


def _solution(module: Module, name: str) -> tuple[str, ...]:
    path = module.solution.parent / name
    try:
        return tuple(path.read_text(encoding="utf-8").splitlines())
    except (OSError, UnicodeDecodeError) as error:
        raise BadCourse(f"The solution of {module.id} cannot be read: {path}.") from error
