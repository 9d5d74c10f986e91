"""The processes of one submission, started on demand: worker, executors, compilers, GPU."""

from __future__ import annotations

import itertools
import os
import tempfile
import time
from collections.abc import Callable, Hashable, Mapping, Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from grader.finding import fault
from grader.gpu import client
from grader.processes.replies import MEMORY_LIMIT, Compiled, Stopped, question_of, refusal_of
from grader.processes.time_limit import OutOfTime, TimeLimit
from grader.recording.model import Recording, to_json
from grader.report import Finding
from grader.sandbox import Child, ResourceLimits, Sandbox, errors, tempdirs
from grader.sandbox.limits import Role
from grader.submission.source import KERNEL, Source

T = TypeVar("T")
Later = Callable[[], T]  # waits for what was begun

LOAD_S = 20.0  # to import the learner's file
HOG = 512 << 20  # bytes; a run that holds more at the end of its time is short of memory, not slow
MAX_COMPILED = 32  # kernels of whose code host code may read figures, in one call
REGISTER = 4  # bytes
MOST_COMPILERS = 4  # hardly any module has more kernels and dtypes to divide among them
LESS_PATIENCE = 3.0  # once a run has hung, all later ones get this fraction of their time


class _Process:
    """One process of a session, forked and loaded on demand, again if it was lost."""

    def __init__(self, fork: Callable[[], Child], load: Callable[[Child], Later[None]]) -> None:
        self._fork, self._load = fork, load
        self._child: Child | None = None
        self._loaded: Later[None] | None = None
        self._failure: Exception | None = None  # of loading: the next process would fail as well
        self._printed = ""

    def begin(self) -> Child:
        """Starts it, unless it runs; ``ready`` waits until it is loaded."""
        if self._child is not None and not self._child.alive:
            self.stop()
        if self._child is None:
            self._child = self._fork()
            self._loaded = self._load(self._child)
        return self._child

    def ready(self) -> Child:
        """Returns the process once it is loaded.

        Raises:
            Stopped: it did not survive, or refuses the file.
            RuntimeError: the grader's own code failed while it loaded the file.
        """
        if self._failure is not None:
            raise self._failure.with_traceback(None)
        child = self.begin()
        if self._loaded is not None:
            loaded, self._loaded = self._loaded, None
            try:
                loaded()
            except (errors.NotStarted, errors.SandboxBroken):
                raise  # another process can load the file
            except Exception as error:
                self._failure = error
                raise
        return child

    def output(self) -> str:
        """Output of this process and of those before it."""
        return self._printed + (self._child.output() if self._child else "")

    def stop(self) -> None:
        if self._child is not None:
            self._child.kill(wait=False)
            self._printed = self.output()
        self._child = self._loaded = None


class Processes:
    """The worker, executors, compilers and GPU process of one submission.

    They are started when first needed, and again after one of them was lost. What is begun goes on
    while the judge does something else. The file is copied before anything runs, so that saving it
    during a grade mixes no two versions. Requests raise ``Stopped``, at once or where their reply
    is waited for, if the process did not survive or refuses the file.
    """

    def __init__(self, submitted: Source, sandbox: Sandbox, limits: ResourceLimits | None = None, *,
                 target: str, compiled: Callable[[Recording], Compiled],
                 values_first: bool = False, time_limit: TimeLimit | None = None) -> None:
        """Nothing is started yet.

        Args:
            time_limit: of all requests together, after which they raise ``OutOfTime``.
            compiled: has a launch compiled whose figures host code reads.
            target: the name of the GPU that host code and kernels find where they ask for one.
            values_first: where there are processors for it, a second executor takes turns with the
                first.
        """
        self._sandbox = sandbox
        self._compiled = compiled
        self._submitted = submitted
        self._target = target
        self._folder: Path | None = None
        limits = limits or ResourceLimits()
        self.worker = _Process(lambda: sandbox.fork("worker", limits), self._load_worker)
        cpus = len(os.sched_getaffinity(0))
        self._executors = [_Process(lambda: sandbox.fork("executor", limits),
                                    partial(self._load_kernels, "reading the kernels"))
                           for _ in range(2 if cpus > 1 and values_first else 1)]
        self._turns = itertools.cycle(self._executors)
        self.abreast = len(self._executors)  # runs that can go on at once
        self._compilers = [_Process(lambda: sandbox.fork("compiler"),
                                    partial(self._load_kernels, "reading the kernels to compile"))
                           for _ in range(min(MOST_COMPILERS, cpus))]
        self._compiled_by: dict[Hashable, int] = {}  # places of compilers
        self._costs = [0] * len(self._compilers)  # of the requests to each
        self.gpu = _Process(partial(client.start, sandbox),
                             partial(self._load_kernels, "reading the kernels for the GPU",
                                     devices=client.visible()))
        self.reads_figures = False  # whether host code did
        self.lost_s = 0.0  # seconds spent on runs that did not end normally
        self._hung = False
        self._time_limit = time_limit or TimeLimit()

    def close(self) -> None:
        """Kills all processes, and removes the copy of the file."""
        with ExitStack() as closing:  # all of them, even where one is interrupted
            if self._folder is not None:
                closing.callback(tempdirs.remove, self._folder)
            for process in (self.worker, *self._executors, *self._compilers, self.gpu):
                closing.callback(process.stop)

    def ready(self) -> None:
        """Imports the learner's file in the worker; the executors start meanwhile."""
        self.worker.begin()
        for executor in self._executors:
            executor.begin()
        self.worker.ready()

    def ask(self, role: Role, request: dict[str, Any], fds: Sequence[int], seconds: float,
            task: str, *, at_once: bool = False, alike: Hashable = None,
            cost: int = 0) -> Later[dict[str, Any]]:
        """Sends a request to a role and returns a function that waits for the reply.

        Args:
            task: for messages, such as "importing the file".
            alike: what is alike goes to the same compiler, which compiles nothing twice.
            cost: of a request to a compiler, beside others; what is new goes where least is done.
            at_once: do not wait until it has read the file; then a new process may just begin.
        """
        match role:
            case "executor":
                process = next(self._turns)
            case "compiler":
                number = self.compiler_of(alike)
                self._costs[number] += cost
                process = self._compilers[number]
            case _:
                process = self.worker if role == "worker" else self.gpu
        at_once = at_once or role == "compiler"  # the judge has other work meanwhile
        child = process.begin() if at_once else process.ready()
        reply = self._begin(child, request, fds, seconds, task, forgeable=role == "worker")

        def replied() -> dict[str, Any]:
            if at_once:
                process.ready()
            answer = reply()
            return self._with_figures(child, answer, seconds, task) if role == "worker" else answer

        return replied

    def compiler_of(self, alike: Hashable) -> int:
        """The place of the compiler that gets what is alike."""
        return self._compiled_by.setdefault(alike, _least(self._costs))

    def divide(self, costs: Mapping[Hashable, int]) -> None:
        """Divides requests among the compilers before they are made.

        Args:
            costs: of all requests that are alike, by the key that they will have.
        """
        expected = [*self._costs]
        for alike, cost in sorted(costs.items(), key=lambda item: (
                item[0] not in self._compiled_by, -item[1])):
            expected[self._compiled_by.setdefault(alike, _least(expected))] += cost

    def _with_figures(self, worker: Child, reply: dict[str, Any], seconds: float,
                      task: str) -> dict[str, Any]:
        """The worker's reply, once it has all figures of compiled kernels that host code reads.

        A figure depends on types, sizes and options alone. It is public: no value is in it.
        """
        for _ in range(MAX_COMPILED):
            if reply.get("status") != "figures":
                return reply
            self.reads_figures = True
            question = question_of(reply)
            compiled = self._compiled(question)
            if compiled.findings:
                raise Stopped(compiled.findings[0])
            if not worker.alive:
                raise errors.NotStarted
            binary = compiled.binaries[0]
            figures = {"n_regs": binary.registers, "n_spills": binary.spill_bytes // REGISTER,
                       "shared": binary.shared, "num_warps": binary.warps}
            request = {"op": "again", "number": reply.get("number"),
                       "question": to_json(question), "figures": figures}
            reply = self._begin(worker, request, [], seconds, task, forgeable=True)()
        raise Stopped(Finding("L05", fault("too many figures", task=task, most=MAX_COMPILED)))

    def _copy(self) -> Path:
        """The copy of the submission in the folder of the running sandbox."""
        if self._folder is None or not self._folder.is_relative_to(self._sandbox.folder):
            self._folder = Path(tempfile.mkdtemp(prefix="submission-", dir=self._sandbox.folder))
            (self._folder / KERNEL).write_bytes(self._submitted.data)
            for name, data in self._submitted.files.items():
                _write(self._folder, name, data)
        return self._folder

    def _load_worker(self, worker: Child) -> Later[None]:
        """Has the worker import the learner's file."""
        folder = self._copy()
        request = {"op": "load", "path": str(folder / KERNEL), "target": self._target}
        if self._submitted.files:
            request |= {"folder": str(folder),
                        "kernels": str(folder / self._submitted.kernel_file)}
        task = "importing the file"
        reply = self._begin(worker, request, [], LOAD_S, task, final=True)

        def loaded() -> None:
            try:
                refusal = refusal_of(self._with_figures(worker, reply(), LOAD_S, task))
            except Stopped as stop:
                raise Stopped(stop.finding, final=True) from None
            if refusal is not None:
                raise Stopped(refusal, final=True)

        return loaded

    def _load_kernels(self, task: str, child: Child, **more: Any) -> Later[None]:
        """Has an executor, compiler or GPU process extract the kernels."""
        request = {"op": "load", "path": str(self._copy() / self._submitted.kernel_file),
                   "target": self._target, **more}
        reply = self._begin(child, request, [], LOAD_S, task, final=True)

        def loaded() -> None:
            match reply():
                case {"status": "ready"}:
                    pass
                case {"status": "refused", "findings": [first, *_]}:
                    raise Stopped(Finding.from_json(first), final=True)
                case {"status": "raised", "types": ["MemoryError", *_]}:
                    raise Stopped(Finding("R04", fault("too much memory", task=task)), final=True)
                case answer:
                    raise RuntimeError(f"{task} failed: {answer.get('why', answer)}")

        return loaded

    def _begin(self, child: Child, request: dict[str, Any], fds: Sequence[int], seconds: float,
               task: str, *, final: bool = False, forgeable: bool = False) -> Later[dict[str, Any]]:
        """Begins a request. What happens to a child that runs learners' code is a finding.

        ``final``: no other run can fare better. ``forgeable``: the learner's code ran in it before,
        so a reply that blames the grader may be its own.
        """
        seconds = seconds / LESS_PATIENCE if self._hung else seconds
        bounded_s = self._time_limit.bound(seconds)
        # Importing a file takes a hundredth of its time, which is enough on a busy machine too.
        later = child.begin(request, fds, bounded_s, 0.0) if final else \
            child.begin(request, fds, bounded_s)

        def replied() -> dict[str, Any]:
            waited, starved_s = time.monotonic(), child.starved_s
            try:
                reply = later()
            except errors.ChildTimedOut as error:
                if bounded_s < seconds:
                    raise OutOfTime from None
                self._hung = True
                finding = Finding("R02", fault("no end", task=task, seconds=seconds), error.line)
                if error.held > HOG:
                    finding = Finding("R04", fault(
                        "memory held", task=task, n_bytes=error.held, seconds=seconds,
                        limit=MEMORY_LIMIT), error.line)
            except errors.ChildOutOfMemory as error:
                finding = Finding("R04", fault("memory taken", task=task, n_bytes=error.resident,
                                               most=error.limit), error.line)
            except errors.ChildDied as error:
                how = f"was {error}" if str(error).startswith("killed") else str(error)
                finding = Finding("R03", fault("ended", task=task, text=how), error.line)
            except errors.MalformedReply as error:
                finding = Finding("R03", fault("no reply", task=task, text=str(error)))
            else:
                if reply.get("status") == "broken" and not forgeable:
                    raise RuntimeError(f"the grader's own code failed:\n{reply.get('traceback')}")
                return reply
            finally:
                self._time_limit.starved(child.starved_s - starved_s)
            self.lost_s += time.monotonic() - waited
            raise Stopped(finding, final=final)

        return replied


def _write(folder: Path, name: str, data: bytes) -> None:
    """Writes a further file of the submission, readable for every user."""
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    path.chmod(0o644)
    for above in list(Path(name).parents)[:-1]:  # the last is the folder itself
        (folder / above).chmod(0o755)


def _least(costs: Sequence[int]) -> int:
    return costs.index(min(costs))
