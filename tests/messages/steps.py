"""Steps: what is done before a command is typed, and what holds while it runs."""

from __future__ import annotations

import contextlib
import errno
import os
import shutil
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from typing import Any
from unittest import mock

from grader import selfcheck
from grader.gpu import detect
from grader.processes import session
from grader.sandbox import Isolation
from tests.messages.stage import Stage, Step
from tritonlab.course import course
from tritonlab.doctor import environment_checks
from tritonlab.progress import safe_files
from tritonlab.workspace import passed_sources

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
            stack.enter_context(mock.patch.object(safe_files, name, refuse))
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
          mock.patch.object(selfcheck, "run", lambda *_: Fine()),
          mock.patch.object(environment_checks, "ENOUGH_MEMORY", 0)):
        yield


class _Alone:
    """A pool of nobody but this process, which has the warm sandbox."""

    def __init__(self, size: int, workshop: Callable[..., Any], *arguments: Any) -> None:
        self._workshop = workshop(*arguments)

    def __enter__(self) -> _Alone:
        self._do = self._workshop.__enter__()
        return self

    def __exit__(self, *error: Any) -> None:
        self._workshop.__exit__(*error)

    def submit(self, task: Any) -> Future[Any]:
        future: Future[Any] = Future()
        future.set_result(self._do(task))
        return future


def alone() -> Any:
    """Modules are proved in this process."""
    return mock.patch("tritonlab.authoring.runner.WorkerPool", _Alone)


def course_without(name: str) -> Step:
    """A course that lacks a file."""
    def step(stage: Stage) -> None:
        copy = stage.home.parent / "course"
        shutil.copytree(stage.root, copy)
        os.environ["TRITONLAB_COURSE"] = str(copy)
        [path] = copy.glob(name)
        path.unlink()
    return step


def own_cache(stage: Stage) -> None:
    """Nothing was compiled or proved before."""
    os.environ["TRITONLAB_CACHE"] = str(stage.home.parent / "cache")


def proved(stage: Stage) -> None:
    """The module was proved before."""
    with alone():
        assert stage.type("tritonlab check doubling --runs 1").code == 0


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


def softmax_is_right(stage: Stage) -> None:
    """The second exercise, which was started, holds its solution."""
    found = course.load(course.roots_in(stage.root)).find("softmax")
    kernel = stage.home / "tritonlab-workspace" / found.id / "kernel.py"
    kernel.write_text(found.solution.read_text())


def forgotten(stage: Stage) -> None:
    """What passed was not kept, as by earlier versions."""
    shutil.rmtree(stage.mark / passed_sources.FOLDER)


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
    return mock.patch.object(detect, "names", lambda: ("NVIDIA H200",))


started = typed(START)
right = wrote(lambda solution: solution)
BUG = ZeroDivisionError("division by zero")

