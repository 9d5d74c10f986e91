"""The submissions of a class as they are compared: sources, failures and journals."""

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from grader.report import Verdict
from tritonlab.classroom import classroom, importers, intake, journals
from tritonlab.classroom.book import Graded, Handed
from tritonlab.classroom.classroom import Classroom
from tritonlab.classroom.settings import SETTINGS, ClassAssignment
from tritonlab.classroom.similarity.compare import ClassSource
from tritonlab.course.course import EXERCISE, LESSON, Course, Module
from tritonlab.errors import TritonlabError, shown

MOST_BYTES = 200_000  # of one submission
_CODE = re.compile(r"^```python\n(.*?)^```", re.DOTALL | re.MULTILINE)


@dataclass(frozen=True)
class ModuleSubmissions:
    """The submissions of one module that are compared.

    Args:
        submissions: of the class: of each student the one that counts, or the last one.
        earlier: those of the folders that the class is compared with.
        given: the exercise, the solution, and code of the lesson and its hints.
        notes: sentences about submissions that are left out.
    """

    module: str
    submissions: tuple[ClassSource, ...]
    earlier: tuple[ClassSource, ...]
    given: tuple[str, ...]
    notes: tuple[str, ...]

    @property
    def sources(self) -> dict[str, str]:
        return {one.student: one.source for one in (*self.submissions, *self.earlier)}


def gather(the_class: Classroom, course: Course, assignment: ClassAssignment,
           against: Sequence[Path] = ()) -> list[ModuleSubmissions]:
    """Returns what is compared of each module of an assignment.

    Args:
        against: folders or archives of earlier submissions in a layout of ``importers``, or
            folders of other classes.

    Raises:
        TritonlabError: one of them cannot be read, or its layout is unclear.
    """
    chains = _chains(the_class, assignment)
    groups = {one.id: one.group for one in the_class.roster.students}
    scores = the_class.scores(assignment)
    result = []
    for name in assignment.modules:
        module = course.find(name)
        reader = _Reader(module)
        own = []
        for score in scores:
            student = score.student
            if (handed := the_class.book.counting(score, name)) is None:
                continue
            source = reader.stored(the_class, handed, student)
            if source:
                own.append(ClassSource(student, source, _failure(the_class.book.grade_of(handed)),
                                       chains.get(student, frozenset()), groups.get(student, "")))
        earlier = {label: source for path in against
                   for label, source in _earlier(reader, course, assignment, path)}
        result.append(ModuleSubmissions(
            name, tuple(own), tuple(ClassSource(*one) for one in earlier.items()),
            _given(module, reader), tuple(reader.notes())))
    return result


class _Reader:
    """Decodes the files of a module, and remembers which ones are left out."""

    def __init__(self, module: Module) -> None:
        self.module = module
        self.names = (EXERCISE, *(name for name in module.files if name.endswith(".py")))
        self._left_out: dict[str, list[str]] = defaultdict(list)

    def stored(self, the_class: Classroom, handed: Handed, student: str) -> str:
        """The text of a stored submission; empty if it is left out."""
        try:
            return self.text(the_class.store.files(handed.blob), student)
        except TritonlabError:
            return self.left_out(student, "the stored submission is missing or damaged")

    def text(self, files: Mapping[str, bytes], student: str) -> str:
        """The text of a submission, one file after the other; empty if it is left out."""
        own = {name: files[name] for name in self.names if name in files}
        if sum(map(len, own.values())) > MOST_BYTES:
            return self.left_out(student, f"the file is longer than {MOST_BYTES:,} bytes")
        text = self.joined({name: content.decode("utf-8", "replace")
                            for name, content in own.items()})
        return text if text.strip() else self.left_out(student, "the file is empty")

    def joined(self, files: Mapping[str, str]) -> str:
        if len(self.names) == 1:
            return files.get(EXERCISE, "")
        return "\n".join(f"# {name}\n{files[name]}" for name in self.names if name in files)

    def left_out(self, student: str, reason: str) -> str:
        self._left_out[reason].append(student)
        return ""

    def notes(self) -> Iterable[str]:
        for reason, students in self._left_out.items():
            yield f"Left out, because {reason}: {', '.join(students)}."


def _earlier(reader: _Reader, course: Course, assignment: ClassAssignment,
             path: Path) -> Iterable[tuple[str, str]]:
    """Yields labels and sources of earlier submissions of a module."""
    place = path.resolve().name
    if (path / SETTINGS).is_file():
        other = classroom.load(path)
        for its in other.settings.assignments.values():
            for student in other.book.students(its.name) if reader.module.id in its.modules else ():
                label = f"{place}/{student}"
                handed = other.book.counting(other.book.score(student, its), reader.module.id)
                if handed and (source := reader.stored(other, handed, label)):
                    yield label, source
        return
    read = 0
    for incoming in importers.read(path):
        label = f"{place}/{incoming.student_text}"
        try:
            if intake.module_of(course, assignment, incoming) is not reader.module:
                continue
            files = intake.files_of(reader.module, incoming)
        except TritonlabError as error:
            reader.left_out(label, error.message.rstrip("."))
            continue
        read += 1
        if source := reader.text(files, label):
            yield label, source
    if not read:
        raise TritonlabError(f"{shown(path)} has no submissions for {reader.module.id}.",
                             "Name a folder of submissions with `--against`.")


def _given(module: Module, reader: _Reader) -> tuple[str, ...]:
    """The exercise, the solution, and code of the lesson and the hints."""
    texts = []
    for folder in (module.folder, module.solution.parent):
        files = {name: folder / name for name in reader.names}
        texts.append(reader.joined({name: path.read_text(encoding="utf-8")
                                    for name, path in files.items() if path.is_file()}))
    lesson = module.lesson() if (module.folder / LESSON).is_file() else ""
    rungs = (rung for group in module.hints for rung in group.rungs)
    return (*texts, *(code for text in (lesson, *rungs) for code in _CODE.findall(text)))


def _failure(graded: Graded | None) -> str:
    """The first failure of a grade; empty without one, or where the file cannot be graded."""
    if graded is None or graded.verdict != Verdict.FAILED or graded.code[:1] in ("", "P"):
        return ""
    return " ".join((graded.code, *sorted(graded.failing)))


def _chains(the_class: Classroom, assignment: ClassAssignment) -> dict[str, frozenset[str]]:
    """Hashes of the records in the journals that were handed in, by student."""
    chains: dict[str, frozenset[str]] = {}
    for student, reading in journals.read(the_class.store, the_class.book, assignment.name):
        hashes = frozenset(record.sha256 for record in reading.records)
        chains[student] = chains.get(student, frozenset()) | hashes
    return chains
