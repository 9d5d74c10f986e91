"""IPython extension, ``%load_ext tritonlab``: exercises are cells, graded in the notebook."""

import argparse
import contextlib
import hashlib
import shlex
import time
from collections.abc import Callable, Mapping
from typing import Any, NoReturn

from markupsafe import escape

from grader.report import CaseResult
from tritonlab import errors
from tritonlab.course.course import Course, Module
from tritonlab.errors import Interrupted, TritonlabError
from tritonlab.grading import grade as grading
from tritonlab.grading import hints, kernels
from tritonlab.progress import certificate
from tritonlab.render import exercise, report
from tritonlab.render.notebook import NotebookScreen
from tritonlab.trace import program_steps
from tritonlab.trace.page import page
from tritonlab.workspace import course_choice, reset, start, submission, workspace
from tritonlab.workspace.workspace import Workspace

_UPDATE_S = 0.5  # between two lines of progress

Display = Callable[..., Any]  # IPython.display.display


class Magics:
    """The magics of one notebook.

    ``%%kernel MODULE`` writes the cell as the exercise of the workspace and grades it; ``%kernel
    MODULE`` puts the exercise into the next cell. ``%hint [MODULE]`` shows the next hint, ``%trace
    [MODULE]`` the page of a trace.
    """

    def __init__(self, shell: Any, display: Display) -> None:
        self._shell = shell
        self._display = display
        self._written: dict[str, str] = {}  # SHA-256 by module: other work gets a backup

    def kernel(self, line: str, cell: str | None = None) -> None:
        """The magics ``%%kernel`` and ``%kernel``."""
        with self._errors_as_sentences():
            arguments = _parsed("kernel", line, "module")
            the_course = course_choice.load()
            if arguments.module is None:
                raise TritonlabError("Name the module of the cell.",
                                     f"Such as `%%kernel {the_course.example}`.")
            module = the_course.find(arguments.module)
            if module.packages:
                raise TritonlabError(
                    f"{module.id} has several files to edit, and a cell is one.",
                    f"`!tritonlab start {module.id}` creates them, and "
                    f"`!tritonlab grade {module.id}` grades them.")
            if cell is None:
                self._load(the_course, module)
            else:
                self._grade(the_course, module, cell)

    def hint(self, line: str) -> None:
        """The magic ``%hint``."""
        with self._errors_as_sentences():
            arguments = _parsed("hint", line, "module", "--todo", "--function")
            the_course = course_choice.load()
            place = workspace.require(the_course.example)
            module = the_course.find(arguments.module) if arguments.module else \
                submission.current(the_course, place)
            given = hints.give(the_course, place, module, arguments.todo, arguments.function)
            more = given.command.startswith("tritonlab hint")
            screen = NotebookScreen()
            exercise.show_hint(screen, given,
                               f"`{given.command}` shows the next one." if more else "")
            self._show(screen.outputs)
            self._say(hints.record(the_course, place, given))

    def trace(self, line: str) -> None:
        """The magic ``%trace``: the page of ``tritonlab trace`` below the cell."""
        with self._errors_as_sentences():
            arguments = _parsed("trace", line, "module", "--case", "--seed", "--program",
                                "--launch")
            program = kernels.place_in_grid(arguments.program) or ()
            the_course = course_choice.load()
            place = workspace.require(the_course.example)
            module = the_course.find(arguments.module) if arguments.module else \
                submission.current(the_course, place)
            progress = _Progress(self._shell, self._display)
            traced = kernels.trace(submission.exercise(module, place, the_course),
                                   case=arguments.case, seed=arguments.seed, program=program,
                                   launch=(arguments.launch or 1) - 1, on_event=progress)
            screen = NotebookScreen()
            program_steps.show_summary(screen, traced)
            outputs = screen.outputs
            outputs["text/html"] += (
                f'<iframe srcdoc="{escape(page(traced.to_dict(), module.title))}" '
                f'title="{escape(traced.case)}" sandbox="allow-scripts" '
                'style="width: 100%; height: 56em; border: 0"></iframe>')
            progress.show(outputs)

    def _load(self, the_course: Course, module: Module) -> None:
        """Puts the exercise, as it is in the workspace, into the next cell."""
        place = _begun(the_course, module, self._say)
        kernel = place.kernel(module)
        workspace.check_file(kernel, module)
        text = kernel.read_text(encoding="utf-8").removeprefix(_first_line(module))
        self._shell.set_next_input(f"%%kernel {module.id}\n{text.rstrip()}")

    def _grade(self, the_course: Course, module: Module, cell: str) -> None:
        with grading.start_sandbox() as sandbox:  # warms up beside the rest
            place = _begun(the_course, module, self._say)
            self._write(place, module, _first_line(module) + cell.rstrip() + "\n")
            graded = submission.exercise(module, place, the_course)
            progress = _Progress(self._shell, self._display)
            the_report = grading.grade(graded, gpu=True, on_event=progress, sandbox=sandbox)
        result = grading.save(the_course, graded, the_report)
        screen = NotebookScreen()
        report.show_outcome(screen, module, the_report, result.reading)
        if the_report.has_picture:
            screen.command(f"%trace {module.id}", screen.label("Picture"))
        if the_report.exit_code == 0:
            following = certificate.next_module(the_course, result.reading, module)
            screen.command(f"%kernel {following.id}" if following else "!tritonlab certificate",
                           screen.label("Next", width=10))
        progress.show(screen.outputs)
        self._say(result.complaint)

    def _write(self, place: Workspace, module: Module, text: str) -> None:
        """Writes the exercise's file; work that no cell wrote is kept in a backup."""
        kernel = place.kernel(module)
        before = kernel.read_bytes() if kernel.is_file() else b""
        mine = {_sha256(text.encode()), self._written.get(module.id, "")}
        if _sha256(before) not in mine | {_sha256(workspace.fresh(module)[kernel.name])}:
            backup = reset.exchange(place, module, text)
            self._say(f"The {kernel.name} that was there is now in {errors.shown(backup)}.")
        else:
            workspace.write(kernel, text)
        self._written[module.id] = _sha256(text.encode())

    def _say(self, sentence: str) -> None:
        if sentence:
            screen = NotebookScreen()
            screen.line(sentence)
            self._show(screen.outputs)

    def _show(self, outputs: Mapping[str, str]) -> None:
        self._display(outputs, raw=True)

    @contextlib.contextmanager
    def _errors_as_sentences(self) -> Any:
        try:
            yield
        except TritonlabError as error:
            self._say(str(error))
        except KeyboardInterrupt:
            self._say(str(Interrupted()))
        except Exception as error:  # internal: the traceback goes to a file
            place = None
            with contextlib.suppress(TritonlabError):
                place = workspace.find()
            self._say(str(errors.unexpected(error, place.mark if place else None)))


class _Progress:
    """A line below the cell, which the report replaces."""

    def __init__(self, shell: Any, display: Display) -> None:
        self._display = display
        self._handle: Any = None
        self._live = hasattr(shell, "kernel")  # a terminal would print each update
        self._done = 0
        self._last = -_UPDATE_S

    def __call__(self, event: CaseResult | str) -> None:
        if not isinstance(event, str):
            self._done += 1
        elif self._live and time.monotonic() - self._last > _UPDATE_S:
            self._last = time.monotonic()
            screen = NotebookScreen()
            screen.line((f"{self._done} done, {event} …", "dim"))
            self.show(screen.outputs)

    def show(self, outputs: Mapping[str, str]) -> None:
        """Shows outputs in the place of the last ones."""
        if self._handle is None:
            self._handle = self._display(outputs, raw=True, display_id=True)
        else:
            self._handle.update(outputs, raw=True)


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise TritonlabError(f"`%{self.prog}`: {message}.",
                             f"Usage: `%{self.format_usage().removeprefix('usage: ').strip()}`.")


def _parsed(magic: str, line: str, *names: str) -> argparse.Namespace:
    """The arguments of a magic; raises TritonlabError for others."""
    parser = _Parser(prog=magic, add_help=False)
    for name in names:
        kind = {"type": int} if name in ("--todo", "--launch") else {}
        parser.add_argument(name, **(kind if name.startswith("-") else {"nargs": "?"}))
    try:
        words = shlex.split(line)
    except ValueError as error:
        raise TritonlabError(f"`%{magic}`: {str(error).lower()}.") from error
    return parser.parse_args(words)


def _begun(the_course: Course, module: Module, say: Callable[[str], None]) -> Workspace:
    """The workspace with the module started; created below the current folder if there is none."""
    place = workspace.find()
    if place is not None and place.kernel(module).exists():
        place.check_course(the_course.id)
        return place
    begun = start.begin(the_course, module)
    if place is None:
        say(f"Your work is kept in {errors.shown(begun.place.root)}.")
    say(begun.warning)
    return begun.place


def _first_line(module: Module) -> str:
    """The magic as a comment, so that lines of the file have the numbers of those of the cell."""
    return f"# %%kernel {module.id}\n"


def _sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def load(shell: Any) -> None:
    """Registers the magics."""
    from IPython.display import display

    magics = Magics(shell, display)
    shell.register_magic_function(magics.kernel, "line_cell", "kernel")
    shell.register_magic_function(magics.hint, "line", "hint")
    shell.register_magic_function(magics.trace, "line", "trace")
