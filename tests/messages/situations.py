"""Situations, by verb: one line each."""

from __future__ import annotations

import contextlib
import errno
import os
import shutil
from collections.abc import Callable, Iterator
from typing import Any
from unittest import mock

from grader import hardware, session, trial
from grader.sandbox import Isolation, SandboxBroken
from tests.messages.stage import Situation, Stage, Step
from tritonlab import checkup, durable

HOST = "    block_size = 1024\n"  # a line of the learner's function; see scaffold
START = "tritonlab start track1/doubling"


def typed(command: str) -> Step:
    """Something was typed before."""
    return lambda stage: stage.type(command)


def wrote(text: str | Callable[[str], str], name: str = "kernel.py") -> Step:
    """The exercise, or a file beside it, holds a text, or what is made of the solution."""
    def step(stage: Stage) -> None:
        stage.kernel.with_name(name).write_text(
            text if isinstance(text, str) else text(stage.solution))
    return step


def did(action: Callable[[Stage], Any]) -> Step:
    """Anything else."""
    return action


def changed(find: str, put: str) -> Step:
    """The exercise is the solution with a change."""
    def text(solution: str) -> str:
        assert find in solution, find
        return solution.replace(find, put)
    return wrote(text)


def impatient() -> Any:
    """A function that does not end is given up after three seconds."""
    return mock.patch.object(session, "CALL_S", 3.0)


def failing(code: int) -> Callable[[], Any]:
    """Nothing can be written: a full disk, a read-only file system, missing rights."""
    def refuse(*_: Any, **__: Any) -> None:
        raise OSError(code, os.strerror(code))

    def held() -> contextlib.ExitStack:
        stack = contextlib.ExitStack()
        for name in ("append", "replace", "create"):
            stack.enter_context(mock.patch.object(durable, name, refuse))
        return stack
    return held


def raising(target: str, error: BaseException) -> Callable[[], Any]:
    """A function raises."""
    def refuse(*_: Any, **__: Any) -> None:
        raise error
    return lambda: mock.patch(target, refuse)


def no_grader(error: BaseException) -> Callable[[], Any]:
    """The sandbox does not start."""
    def refuse(*_: Any, **__: Any) -> None:
        raise error
    return lambda: mock.patch.dict("grader.__dict__", {"Sandbox": refuse})


class _Healthy:
    """A sandbox as a good machine has it, which runs nothing."""

    isolation = Isolation(7, True)

    def __enter__(self) -> _Healthy:
        return self

    def __exit__(self, *_: object) -> None: ...


class _Bare(_Healthy):
    isolation = Isolation(0, False, True, (("landlock", "Take Linux 5.13 or newer."),))


@contextlib.contextmanager
def machine(box: type[_Healthy] = _Healthy) -> Iterator[None]:
    """A machine of which doctor finds the same everywhere."""
    class Fine:
        interpreter = compiler = ""

    with (mock.patch.dict("grader.__dict__", {"Sandbox": box}),
          mock.patch.object(trial, "run", lambda *_: Fine()),
          mock.patch.object(checkup, "ENOUGH_MEMORY", 0)):
        yield


class _Alone:
    """A crew of nobody but this process, which has the warm sandbox."""

    def __init__(self, size: int, workshop: Callable[..., Any], *arguments: Any,
                 room: int = 1) -> None:
        self._workshop = workshop(*arguments)
        self._done: list[Any] = []

    def __enter__(self) -> _Alone:
        self._do = self._workshop.__enter__()
        return self

    def __exit__(self, *error: Any) -> None:
        self._workshop.__exit__(*error)

    @property
    def busy(self) -> bool:
        return bool(self._done)

    @property
    def free(self) -> bool:
        return not self._done

    def give(self, task: Any) -> None:
        self._done.append(self._do(task))

    def results(self) -> list[Any]:
        done, self._done = self._done, []
        return done


def alone() -> Any:
    """Modules are proved in this process."""
    return mock.patch("tritonlab.proving.Crew", _Alone)


def course_without(name: str) -> Step:
    """A course that lacks a file."""
    def step(stage: Stage) -> None:
        copy = stage.home.parent / "course"
        shutil.copytree(stage.root, copy)
        os.environ["TRITONLAB_COURSE"] = str(copy)
        [path] = copy.glob(name)
        path.unlink()
    return step


def damaged(stage: Stage) -> None:
    """A line of the journal is rubbish."""
    with (stage.mark / "journal.jsonl").open("a") as file:
        file.write("rubbish\n")


def fifo(stage: Stage) -> None:
    stage.kernel.unlink()
    os.mkfifo(stage.kernel)


def folder_as_journal(stage: Stage) -> None:
    journal = stage.mark / "journal.jsonl"
    journal.unlink(missing_ok=True)
    journal.mkdir()


def passed(stage: Stage) -> None:
    """The module is passed."""
    stage.type(START)
    stage.kernel.write_text(stage.solution)
    assert stage.type("tritonlab grade").code == 0


def elsewhere(stage: Stage) -> None:
    """The workspace is one of another machine: it lies beside that of this one."""
    (stage.home / "tritonlab-workspace").rename(stage.home / "other")


def unreadable() -> Any:
    """Opening a file is not permitted; root would be let in all the same."""
    real = os.open

    def refuse(path: Any, *more: Any, **others: Any) -> int:
        if str(path).endswith("kernel.py"):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
        return real(path, *more, **others)
    return mock.patch.object(os, "open", refuse)


def with_gpu() -> Any:
    return mock.patch.object(hardware, "names", lambda: ("NVIDIA H200",))


S = Situation
started = typed(START)
right = wrote(lambda solution: solution)
BUG = ZeroDivisionError("division by zero")

SITUATIONS: dict[str, list[Situation]] = {
    "tritonlab": [
        S("no verb", "tritonlab", ends=False),
        S("an unknown verb", "tritonlab grad"),
        S("an unknown option", "tritonlab list --colour"),
        S("an option without its value", "tritonlab grade --case"),
        S("a number that is none", "tritonlab hint --todo three"),
        S("a missing argument", "tritonlab start"),
        S("the version", "tritonlab --version", ends=False),
    ],
    "list": [
        S("a first look", "tritonlab list"),
        S("one module passed", "tritonlab list", (passed,)),
        S("a damaged journal", "tritonlab list", (started, damaged)),
        S("a journal that cannot be read", "tritonlab list", (started, folder_as_journal)),
        S("a course with a broken file", "tritonlab list",
          (did(lambda s: os.environ.update(TRITONLAB_COURSE="/nowhere")),)),
        S("the current folder is gone", "tritonlab list", (did(lambda s: s.home.rmdir()),)),
    ],
    "start": [
        S("the first module", START),
        S("again", START, (started,)),
        S("prerequisites are missing", "tritonlab start track1/softmax"),
        S("an unknown id", "tritonlab start dubling"),
        S("a full disk", START, (), (failing(errno.ENOSPC),)),
        S("a read-only disk", START, (), (failing(errno.EROFS),)),
        S("a folder that may not be written", START, (), (failing(errno.EACCES),)),
        S("a file lies where the workspace would be", START,
          (did(lambda s: (s.home / "tritonlab-workspace").write_text("")),)),
        S("a course without the exercise", START,
          (course_without("tracks/*/01-doubling/kernel.py"),)),
        S("no editor", f"{START} --edit"),
    ],
    "next": [
        S("nothing is begun", "tritonlab next"),
        S("one is passed", "tritonlab next", (passed,)),
        S("only the current one is left", "tritonlab next", (passed, typed("tritonlab next"))),
    ],
    "read": [
        S("a lesson", "tritonlab read track1/doubling"),
        S("the current lesson as a page", "tritonlab read --html lesson.html", (started,)),
        S("no workspace", "tritonlab read"),
        S("an unknown id", "tritonlab read dubling"),
        S("a page in no folder", "tritonlab read doubling --html nowhere/lesson.html"),
        S("a course without the lesson", "tritonlab read doubling",
          (course_without("tracks/*/01-doubling/README.md"),)),
    ],
    "grade": [
        S("no workspace", "tritonlab grade"),
        S("no workspace, with an id", "tritonlab grade doubling"),
        S("nothing was started", "tritonlab grade",
          (started, did(lambda s: (s.mark / "journal.jsonl").unlink()))),
        S("an unknown id", "tritonlab grade dubling"),
        S("no such file", "tritonlab grade nothing.py"),
        S("a file of no module", "tritonlab grade mine.py",
          (did(lambda s: (s.home / "mine.py").write_text("")),)),
        S("a folder", "tritonlab grade .", (started,)),
        S("the exercise is gone", "tritonlab grade", (started, did(lambda s: s.kernel.unlink()))),
        S("a pipe", "tritonlab grade", (started, fifo)),
        S("a file that may not be read", "tritonlab grade", (started,), (unreadable,)),
        S("too large a file", "tritonlab grade", (started, wrote("#" * 1_000_001))),
        S("blanks left", "tritonlab grade", (started,)),
        S("a syntax error", "tritonlab grade", (started, wrote("def doubling(x:\n    return x\n"))),
        S("not a text", "tritonlab grade",
          (started, did(lambda s: s.kernel.write_bytes(b"\xff\xfe\x00")))),
        S("an empty file", "tritonlab grade", (started, wrote(""))),
        S("a right kernel", "tritonlab grade", (started, right)),
        S("a wrong kernel", "tritonlab grade", (started, changed("2 * x, mask", "3 * x, mask"))),
        S("a wrong kernel after two hints", "tritonlab grade",
          (started, changed("2 * x, mask", "3 * x, mask"), typed("tritonlab hint --todo 3"),
           typed("tritonlab hint --todo 3"))),
        S("an access out of bounds", "tritonlab grade",
          (started, changed("tl.load(x_ptr + offs, mask=mask)", "tl.load(x_ptr + offs)"))),
        S("an exception", "tritonlab grade",
          (started, changed(HOST, f"    raise RuntimeError('no idea')\n{HOST}"))),
        S("an exception while it is imported", "tritonlab grade",
          (started, changed("import torch\n", "import torch\nimport nothing_of_this_name\n"))),
        S("it hangs", "tritonlab grade", (started, changed(
            HOST, f"    while x.shape == (3, 5, 7):\n        pass\n{HOST}")), (impatient,)),
        S("it crashes", "tritonlab grade", (started, changed(
            HOST, f"    import ctypes\n    ctypes.string_at(0)\n{HOST}"))),
        S("it ends the process", "tritonlab grade", (started, changed(
            HOST, f"    import os\n    os._exit(0)\n{HOST}"))),
        S("it floods the terminal", "tritonlab grade", (started, changed(
            HOST, f"    print('flood ' * 9999)\n{HOST}"))),
        S("only the slow part is wrong", "tritonlab grade", (started, changed(
            "    doubling_kernel[grid]", "    doubling_kernel[grid](x, out, n_elements, BLOCK_SIZE="
            "block_size)\n    doubling_kernel[grid]"))),
        S("one case alone, right", "tritonlab grade --case 37", (started, right)),
        S("one case alone, wrong", "tritonlab grade --case 37", (started, changed(
            "2 * x, mask", "3 * x, mask"))),
        S("an unknown case", "tritonlab grade --case colour", (started, right)),
        S("several cases", "tritonlab grade --case matrix", (started, right)),
        S("no case of its own", "tritonlab grade --case 'every launch compiles'", (started, right)),
        S("a seed", "tritonlab grade --seed 00ff", (started, right)),
        S("a seed that is none", "tritonlab grade --seed xyz", (started, right)),
        S("a target", "tritonlab grade --target a100", (started, right)),
        S("an unknown target", "tritonlab grade --target a1000", (started, right)),
        S("a file elsewhere, with its module", "tritonlab grade mine.py --module doubling",
          (did(lambda s: (s.home / "mine.py").write_text(s.solution)),)),
        S("a full disk", "tritonlab grade", (started, right), (failing(errno.ENOSPC),)),
        S("a read-only disk", "tritonlab grade", (started, right), (failing(errno.EROFS),)),
        S("a damaged journal", "tritonlab grade", (started, right, damaged)),
        S("a journal that cannot be read", "tritonlab grade doubling",
          (started, right, folder_as_journal)),
        S("a course without hidden tests", "tritonlab grade",
          (started, right, course_without("suites/*/01-doubling/suite.py"))),
        S("the grader does not start", "tritonlab grade", (started, right),
          (no_grader(SandboxBroken("The grader's helper process ended with status 1.")),)),
        S("no temporary folder", "tritonlab grade", (started, right),
          (no_grader(OSError(errno.ENOSPC, "No space left on device")),)),
        S("a mistake of ours", "tritonlab grade", (started, right),
          (raising("tritonlab.grading.grade", BUG),)),
        S("Ctrl-C", "tritonlab grade", (started, right),
          (raising("tritonlab.grading.grade", KeyboardInterrupt()),), ends=False),
        S("pending, without a GPU", "tritonlab grade --pending", (started,)),
        S("pending, with another option", "tritonlab grade --pending --target a100", (started,)),
        S("pending, with nothing to be done", "tritonlab grade --pending", (started,),
          (with_gpu, lambda: mock.patch("tritonlab.pending.require_gpu", lambda: None))),
    ],
    "hint": [
        S("before a grade", "tritonlab hint", (started,)),
        S("the second", "tritonlab hint", (started, typed("tritonlab hint"))),
        S("the last", "tritonlab hint --todo 4",
          (started, *[typed("tritonlab hint --todo 4")] * 2)),
        S("all were shown", "tritonlab hint --todo 4",
          (started, *[typed("tritonlab hint --todo 4")] * 3)),
        S("after a failure", "tritonlab hint", (started, changed("2 * x, mask", "3 * x, mask"),
                                                typed("tritonlab grade"))),
        S("no such TODO", "tritonlab hint --todo 9", (started,)),
        S("no such function", "tritonlab hint --function relu", (started,)),
        S("no workspace", "tritonlab hint"),
        S("an unknown id", "tritonlab hint dubling", (started,)),
        S("a full disk", "tritonlab hint", (started,), (failing(errno.ENOSPC),)),
    ],
    "reset": [
        S("nobody can be asked", "tritonlab reset", (started,)),
        S("your work, kept in a backup", "tritonlab reset --yes", (started, right)),
        S("nothing was changed", "tritonlab reset --yes", (started,)),
        S("undone", "tritonlab reset --undo", (started, right, typed("tritonlab reset --yes"))),
        S("nothing to undo", "tritonlab reset --undo", (started,)),
        S("no workspace", "tritonlab reset --yes"),
        S("an unknown id", "tritonlab reset dubling --yes", (started,)),
    ],
    "solution": [
        S("before a pass", "tritonlab solution", (started,)),
        S("given up", "tritonlab solution --give-up", (started,)),
        S("after a pass", "tritonlab solution", (passed,)),
        S("no workspace", "tritonlab solution"),
        S("an unknown id", "tritonlab solution dubling", (started,)),
        S("the exercise is gone", "tritonlab solution --give-up",
          (started, did(lambda s: s.kernel.unlink()))),
        S("a course without it", "tritonlab solution --give-up",
          (started, course_without("solutions/*/01-doubling/kernel.py"))),
    ],
    "inspect": [
        S("a right kernel", "tritonlab inspect", (started, right), figures=False),
        S("blanks left", "tritonlab inspect", (started,)),
        S("a syntax error", "tritonlab inspect", (started, wrote("def doubling(x:\n"))),
        S("it hangs", "tritonlab inspect", (started, changed(
            HOST, f"    while True: pass\n{HOST}")), (impatient,)),
        S("it does not compile", "tritonlab inspect", (started, changed(
            "tl.arange(0, BLOCK_SIZE)", "tl.arange(0, BLOCK_SIZE - 1)"))),
        S("a page", "tritonlab inspect --html page.html", (started, right)),
        S("a page in no folder", "tritonlab inspect --html nowhere/page.html", (started, right)),
        S("a page over something else", "tritonlab inspect --html mine.txt",
          (started, right, did(lambda s: (s.home / "mine.txt").write_text("")))),
        S("an unknown target", "tritonlab inspect --target a1000", (started, right)),
        S("an unknown case", "tritonlab inspect --case colour", (started, right)),
        S("no workspace", "tritonlab inspect"),
        S("an unknown id", "tritonlab inspect dubling"),
    ],
    "bench": [
        S("a right kernel", "tritonlab bench --no-gpu", (started, right), figures=False),
        S("a picture", "tritonlab bench --no-gpu --png mine.png", (started, right), figures=False),
        S("blanks left", "tritonlab bench", (started,), figures=False),
        S("a wrong kernel", "tritonlab bench", (started, changed("2 * x, mask", "3 * x, mask")),
          figures=False),
        S("no such function", "tritonlab bench --function relu", (started, right)),
        S("an unknown target", "tritonlab bench --target a1000", (started, right)),
        S("a picture with the wrong ending", "tritonlab bench --png mine.txt",
          (started, right, did(lambda s: (s.home / "mine.txt").write_text("")))),
        S("a page in no folder", "tritonlab bench --html nowhere/page.html", (started, right)),
        S("no workspace", "tritonlab bench"),
    ],
    "status": [
        S("no workspace", "tritonlab status"),
        S("one module open", "tritonlab status", (started,)),
        S("one module passed", "tritonlab status", (passed,)),
        S("a damaged journal", "tritonlab status", (started, damaged)),
        S("every attempt", "tritonlab status --history", (passed,)),
        S("no attempt", "tritonlab status --history"),
        S("attempts at a module", "tritonlab status doubling", (passed,)),
        S("an unknown id", "tritonlab status dubling"),
    ],
    "merge": [
        S("another workspace", "tritonlab merge other", (passed, elsewhere, started)),
        S("the same again", "tritonlab merge other",
          (passed, elsewhere, started, typed("tritonlab merge other"))),
        S("a damaged one", "tritonlab merge other", (started, damaged, elsewhere, started)),
        S("nothing there", "tritonlab merge other", (started,)),
        S("no journal there", "tritonlab merge .", (started,)),
        S("no workspace here", "tritonlab merge other"),
        S("a full disk", "tritonlab merge other", (passed, elsewhere, started),
          (failing(errno.ENOSPC),)),
    ],
    "watch": [  # what it says while it runs is in test_terminal.py
        S("no workspace", "tritonlab watch"),
        S("an unknown id", "tritonlab watch dubling"),
        S("an unknown target", "tritonlab watch --target a1000", (started,)),
    ],
    "verify": [
        S("it holds", "tritonlab verify tritonlab-workspace", (passed,)),
        S("another source", "tritonlab verify tritonlab-workspace",
          (passed, did(lambda s: s.kernel.write_text(s.solution + "# later\n")))),
        S("the source is missing", "tritonlab verify tritonlab-workspace",
          (passed, did(lambda s: s.kernel.unlink()))),
        S("nothing is claimed", "tritonlab verify tritonlab-workspace",
          (started, typed("tritonlab certificate"))),
        S("no such file", "tritonlab verify nothing.html"),
        S("no certificate", "tritonlab verify mine.json",
          (did(lambda s: (s.home / "mine.json").write_text("{}")),)),
        S("a certificate cut short", "tritonlab verify mine.json",
          (did(lambda s: (s.home / "mine.json").write_text('{"schema": 1, ')),)),
        S("no sources there", "tritonlab verify tritonlab-workspace --sources nowhere", (passed,)),
    ],
    "report": [
        S("one module passed", "tritonlab report", (passed,)),
        S("nothing passed", "tritonlab report", (started,)),
        S("a page", "tritonlab report --html report.html", (passed,)),
        S("a page in no folder", "tritonlab report --html nowhere/report.html", (started,)),
        S("no workspace", "tritonlab report"),
        S("a damaged journal", "tritonlab report", (started, damaged)),
    ],
    "certificate": [
        S("no workspace", "tritonlab certificate"),
        S("nothing passed", "tritonlab certificate", (started,)),
        S("one module passed, with a name", "tritonlab certificate --name Ada", (passed,)),
        S("a damaged journal", "tritonlab certificate", (started, damaged)),
        S("a page", "tritonlab certificate --html mine.html", (passed,)),
        S("a page in no folder", "tritonlab certificate --html nowhere/mine.html", (passed,)),
        S("a page over something else", "tritonlab certificate --html mine.txt",
          (started, did(lambda s: (s.home / "mine.txt").write_text("")))),
        S("a full disk", "tritonlab certificate", (started,), (failing(errno.ENOSPC),)),
        S("a full disk, with a name", "tritonlab certificate --name Ada", (started,),
          (failing(errno.ENOSPC),)),
        S("records are missing", "tritonlab certificate",
          (passed, did(lambda s: (s.mark / "journal.jsonl").write_text("")))),
    ],
    "tour": [
        S("the whole", "tritonlab tour"),
        S("the grader does not start", "tritonlab tour", (),
          (no_grader(SandboxBroken("The grader's helper process ended with status 1.")),)),
    ],
    "doctor": [
        S("all is well", "tritonlab doctor", (), (machine,)),
        S("the sandbox is weak", "tritonlab doctor", (started, damaged), (lambda: machine(_Bare),)),
        S("the grader does not start", "tritonlab doctor", (),
          (machine, no_grader(SandboxBroken("The grader's helper process ended with status 1.")))),
    ],
    "check": [
        S("an unknown id", "tritonlab check dubling"),
        S("no course there", "tritonlab check --course nowhere"),
        S("all is proved", "tritonlab check doubling --runs 1", (), (alone,)),
        S("a module without its exercise", "tritonlab check doubling --runs 1",
          (course_without("tracks/*/01-doubling/kernel.py"),), (alone,)),
    ],
    "new": [
        S("a module", "tritonlab new track2/my-idea --course course",
          (did(lambda s: shutil.copytree(s.root, s.home / "course")),)),
        S("it is there already", "tritonlab new track1/doubling"),
        S("no such track", "tritonlab new track9/my-idea"),
        S("no name for a module", "tritonlab new track1/My_Idea"),
        S("no name for a function", "tritonlab new track1/my-idea --entry 9"),
        S("no course there", "tritonlab new track1/my-idea --course nowhere"),
    ],
}
