"""Runs the command in a process where something is arranged to happen to it.

    python -c "from tests.fidelity.chaos.hooks import main; main()" HOOKS grade softmax

``HOOKS`` is a JSON object. ``limits`` gives constants, such as ``grader.processes.session.CALL_S``,
other values. ``signal`` is ``[stage, times]``: Ctrl-C when that stage is reached. ``clock`` is how
many seconds the time of day jumps when the first case begins. ``"temporary": false`` leaves no
folder for temporary files. ``"serve": true`` stays and runs one command per line of JSON on
standard input, all on one warm sandbox.
"""

from __future__ import annotations

import contextlib
import datetime
import errno
import functools
import importlib.abc
import importlib.machinery
import io
import json
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

Patch = Callable[[ModuleType], None]


class After(importlib.abc.MetaPathFinder):
    """Changes modules right after they were imported, so that nothing is imported too early."""

    def __init__(self) -> None:
        self._patches: dict[str, list[Patch]] = {}

    def add(self, name: str, patch: Patch) -> None:
        if name in sys.modules:
            patch(sys.modules[name])
        else:
            self._patches.setdefault(name, []).append(patch)

    def find_spec(self, name: str, path: Sequence[str] | None,
                  target: ModuleType | None = None) -> importlib.machinery.ModuleSpec | None:
        if name not in self._patches:
            return None
        spec = importlib.machinery.PathFinder.find_spec(name, path, target)
        assert spec is not None and spec.loader is not None
        execute = spec.loader.exec_module

        def exec_module(module: ModuleType) -> None:
            execute(module)
            for patch in self._patches.pop(name):
                patch(module)

        spec.loader.exec_module = exec_module  # type: ignore[method-assign]
        return spec


# ---------------------------------------------------------------------------------------------
# Limits


def shorten(after: After, limits: dict[str, float]) -> None:
    """Give constants other values; one that no longer exists is an error."""
    for place, value in limits.items():
        module, _, name = place.rpartition(".")
        after.add(module, functools.partial(_assign, name, value))


def _assign(name: str, value: float, module: ModuleType) -> None:
    if not hasattr(module, name):
        raise AttributeError(f"{module.__name__} has no {name} any more")
    setattr(module, name, value)


# ---------------------------------------------------------------------------------------------
# Ctrl-C at a stage


STAGES = ("importing the command", "loading torch", "starting the zygote", "importing the kernel",
          "calling the function", "running a kernel", "closing the sandbox", "writing the record",
          "writing the certificate", "showing the report")


class Interrupts:
    """Sends ourselves SIGINT the first ``times`` times that the stage ``at`` is reached."""

    def __init__(self, after: After) -> None:
        self.at, self.times = "", 0
        now, soon, asked = self._now, self._soon, self._asked
        for module, patch in (
            # a function of the module itself: it is loaded now
            ("tritonlab.course.course", now(0)),
            ("torch.functional", now(1)),
            ("grader.sandbox.client", _around("Sandbox", "__init__", soon(2, 0.05))),
            ("grader.sandbox.child_client", _around("Child", "begin", asked(3, "load"))),
            ("grader.sandbox.child_client", _around("Child", "begin", asked(4, "call"))),
            ("grader.sandbox.child_client", _around("Child", "begin", asked(5, "run"))),
            ("grader.sandbox.client", _around("Sandbox", "close", now(6))),
            ("tritonlab.progress.safe_files", _around("", "append", now(7))),
            ("tritonlab.progress.safe_files", _around("", "replace", now(8))),
            ("tritonlab.render.screen", _around("Screen", "line", now(9))),
        ):
            after.add(module, patch)

    def _strike(self, number: int) -> None:
        if self.times and STAGES[number] == self.at:
            self.times -= 1
            os.kill(os.getpid(), signal.SIGINT)

    def _now(self, number: int) -> Callable[..., None]:
        return lambda *_: self._strike(number)

    def _soon(self, number: int, pause: float) -> Callable[..., None]:
        def strike(*_: object) -> None:
            if self.times and STAGES[number] == self.at:
                threading.Timer(pause, self._strike, [number]).start()

        return strike

    def _asked(self, number: int, op: str) -> Callable[[dict[str, Any]], None]:
        strike = self._soon(number, 0.005)
        return lambda request: strike() if request["op"] == op else None


def _around(owner: str, name: str, first: Callable[..., object]) -> Patch:
    """Have ``first`` called, with the positional arguments, before each call of a function."""

    def patch(module: ModuleType) -> None:
        holder = getattr(module, owner) if owner else module
        original = getattr(holder, name)

        @functools.wraps(original)
        def changed(*args: Any, **kwargs: Any) -> Any:
            first(*(args[1:] if owner else args)[:1])
            return original(*args, **kwargs)

        setattr(holder, name, changed)

    return patch


# ---------------------------------------------------------------------------------------------
# A time of day that jumps


def jump(after: After, seconds: float) -> None:
    """Let the wall clock jump when the first case is run; the monotonic one goes on."""
    offset = [0.0]
    now, now_ns, today = time.time, time.time_ns, datetime.date.today
    time.time = lambda: now() + offset[0]
    time.time_ns = lambda: now_ns() + int(offset[0] * 1e9)

    class Date(datetime.date):
        @classmethod
        def today(cls) -> datetime.date:
            return today() + datetime.timedelta(seconds=offset[0])

    def struck(request: dict[str, Any]) -> None:
        offset[0] = seconds if request["op"] == "call" else offset[0]

    after.add("grader.sandbox.child_client", _around("Child", "begin", struck))
    after.add("tritonlab.progress.journal", lambda module: setattr(module, "date", Date))


# ---------------------------------------------------------------------------------------------
# A disk that fails


class FaultyOs:
    """Stands in for ``os`` in ``tritonlab.progress.safe_files``: the n-th write to the disk fails.

    ``once`` says whether later ones succeed again. A failing ``write`` has written half.
    """

    def __init__(self, number: int, code: int, once: bool) -> None:
        self.reached = 0
        self._number, self._code, self._once = number, code, once

    def __getattr__(self, name: str) -> Any:
        return getattr(os, name)

    def _count(self) -> bool:
        self.reached += 1
        return self.reached == self._number or (self.reached > self._number and not self._once)

    def _fail(self) -> None:
        raise OSError(self._code, os.strerror(self._code))

    def open(self, path: Any, flags: int, mode: int = 0o777, **more: Any) -> int:
        creates = flags & os.O_CREAT and not os.access(path, os.F_OK, **more)
        if (creates or flags & os.O_ACCMODE == os.O_WRONLY) and self._count():
            self._fail()
        return os.open(path, flags, mode, **more)

    def write(self, descriptor: int, data: bytes) -> int:
        if self._count():
            os.write(descriptor, data[: len(data) // 2])
            self._fail()
        return os.write(descriptor, data)

    def fdopen(self, descriptor: int, mode: str) -> Any:
        file = os.fdopen(descriptor, mode)
        if "w" in mode and self._count():
            file.write = self._never  # type: ignore[method-assign]
        return file

    def _never(self, data: bytes) -> int:
        self._fail()
        return 0

    def fsync(self, descriptor: int) -> None:
        if self._count():
            self._fail()
        os.fsync(descriptor)

    def rename(self, *args: Any, **more: Any) -> None:
        if self._count():
            self._fail()
        os.rename(*args, **more)  # noqa: PTH104 - this is what stands in for it

    def link(self, *args: Any, **more: Any) -> None:
        if self._count():
            self._fail()
        os.link(*args, **more)


# ---------------------------------------------------------------------------------------------


def serve(interrupts: Interrupts) -> None:
    """Run commands from standard input on one warm sandbox; an answer is one line of JSON."""
    import grader
    from grader import Sandbox
    from grader.suite import load
    from tritonlab.cli import app
    from tritonlab.progress import safe_files

    load(Path(os.environ["TRITONLAB_COURSE"]) / "suites" / "missing-elements" / "03-softmax"
         / "suite.py")
    import grader.judge.grade

    answers = os.fdopen(os.dup(1), "w")
    with Sandbox() as box:
        vars(grader)["Sandbox"] = lambda: contextlib.nullcontext(box)
        box.fork("worker").kill()  # warm from here on
        ready = {"ready": True, "baseline": memory("VmRSS"), "sandbox": str(box.folder)}
        print(json.dumps(ready), file=answers, flush=True)
        for line in sys.stdin:
            request = json.loads(line)
            disk = request.get("disk")
            safe_files.os = FaultyOs(*disk) if disk else os  # type: ignore[attr-defined]
            interrupts.at, interrupts.times = request.get("signal") or ("", 0)
            Path("/proc/self/clear_refs").write_text("5")  # the peak starts anew
            started = time.monotonic()
            out, err = io.StringIO(), io.StringIO()
            sys.argv = ["tritonlab", *request["words"]]
            with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
                try:
                    app.main()
                    code: Any = 0
                except SystemExit as ended:
                    code = ended.code or 0
            print(json.dumps({
                "code": code, "out": out.getvalue(), "err": err.getvalue(), "zygote": box.pid,
                "seconds": time.monotonic() - started, "peak": memory("VmHWM"),
                "sandbox": str(box.folder), "reached": getattr(safe_files.os, "reached", 0),
            }), file=answers, flush=True)


def memory(field: str) -> int:
    """Bytes of this process, from the kernel's table."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(field):
            return int(line.split()[1]) * 1024
    return 0


def main() -> None:
    hooks = json.loads(sys.argv[1])
    # Background jobs of a shell, and what they start, ignore Ctrl-C unless told otherwise.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    after = After()
    sys.meta_path.insert(0, after)
    shorten(after, hooks.get("limits", {}))
    if "clock" in hooks:
        jump(after, hooks["clock"])
    if not hooks.get("temporary", True):
        import tempfile

        tempfile._candidate_tempdir_list = lambda: ["/dev/null"]  # type: ignore[attr-defined]
    interrupts = Interrupts(after)
    interrupts.at, interrupts.times = hooks.get("signal", ("", 0))
    if hooks.get("serve"):
        serve(interrupts)
        return
    sys.argv = ["tritonlab", *sys.argv[2:]]
    from tritonlab.__main__ import main as command

    command()


NO_SPACE, FAILS = errno.ENOSPC, errno.EIO
