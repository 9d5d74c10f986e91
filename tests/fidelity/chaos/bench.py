"""Runs the command under torment and looks at what is left: verdict, record, processes, files."""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Self

from grader.sandbox import processes, tempdirs
from grader.sandbox.zygote import SPARES
from tests.fidelity.chaos import module
from tritonlab.progress.certificate import SCHEMA
from tritonlab.progress.journal import JournalReading, parse

ROOT = Path(__file__).parents[3]
BUSY = 3.0  # times as long: what hangs takes far longer, on a busy machine too
SLACK_S = 2.0  # beyond the limit that a kernel runs into
SETTLE_S = 30.0  # for what was left behind to go, on a busy machine too
MEMORY = 200 << 20  # bytes of the judge beyond what importing torch and the suite takes
LOAD, CALL, RUN, COMPILE, ANSWER = (
    "grader.processes.pool.LOAD_S", "grader.processes.session.CALL_S",
    "grader.processes.session.RUN_S", "grader.processes.session.COMPILE_S",
    "grader.sandbox.client.ANSWER_S")
QUICK = {LOAD: 1.5, CALL: 1.5, RUN: 1.5, COMPILE: 8.0, ANSWER: 8.0}
SHIPPED = {LOAD: 20.0, CALL: 10.0, RUN: 10.0, COMPILE: 25.0, ANSWER: 30.0}  # as in the grader

Environment = Mapping[str, str | None]  # None takes a variable away


@dataclass(frozen=True)
class Ended:
    """How a command ended. ``peak`` is the judge's memory in bytes, 0 where nobody looked."""

    code: int
    out: str
    err: str
    seconds: float
    peak: int = 0
    writes: int = 0  # that the record made, where they were counted
    replaced: bool = False  # the warm sandbox needed a new zygote

    @cached_property
    def report(self) -> dict[str, Any]:
        """What ``--json`` printed; empty where it printed nothing."""
        with contextlib.suppress(json.JSONDecodeError):
            found: dict[str, Any] = json.loads(self.out)
            return found
        return {}

    @property
    def codes(self) -> set[str]:
        """Codes of all findings."""
        results = self.report.get("results", ())
        return {finding["code"] for result in results for finding in result["findings"]}

    @property
    def saved(self) -> bool:
        return bool(self.report.get("saved"))

    def described(self) -> str:
        verdict = self.report.get("verdict", "no report")
        reasons = [self.report.get("reason"), *(
            result.get("reason") for result in self.report.get("results", ()))]
        said = self.err.strip()[-300:] or next(filter(None, reasons), "")
        return f"exit {self.code}, {verdict} {sorted(self.codes)}, {said!r}"


class Bench:
    """A workspace with one exercise, and a place for temporary files that has to end up empty.

    ``quick`` shortens the deadlines of the grader; the full form runs the ones that it ships with.
    """

    def __init__(self, folder: Path, quick: bool = True, seed: int = 1) -> None:
        self.folder, self.quick, self.seed = folder, quick, seed
        self.limits = QUICK if quick else SHIPPED
        self.temporary, self.workspace = folder / "tmp", folder / "w"
        self.temporary.mkdir()
        module.write(folder / "course")
        self.kernel = self.workspace / module.PLACE
        self.acknowledged = 0  # grades that the command said were saved
        self.seen: set[str] = set()  # hashes of all records that were ever there
        self._warm: Warm | None = None
        started = self.run("start", module.NAME)
        assert started.code == 0, started.err

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._warm is not None:
            self._warm.close()

    @property
    def mark(self) -> Path:
        return self.workspace / ".tritonlab"

    @property
    def warm(self) -> Warm:
        """A process that grades on one warm sandbox; it is started when first needed."""
        if self._warm is None:
            self._warm = Warm(self)
        return self._warm

    @cached_property
    def whole_s(self) -> float:
        """How long a grade takes from a cold start."""
        return self.grade().seconds

    def environment(self, changes: Environment | None = None) -> dict[str, str]:
        wanted: dict[str, str | None] = {
            **os.environ, "TMPDIR": str(self.temporary), "TRITONLAB_WORKSPACE": str(self.workspace),
            "TRITONLAB_COURSE": str(self.folder / "course"), "PYTHONPATH": str(ROOT),
            "COLUMNS": "100", **(changes or {}),
        }
        return {name: value for name, value in wanted.items() if value is not None}

    def start(self, *words: str, hooks: Mapping[str, Any] | None = None,
              environment: Environment | None = None, shell: str = "",
              **options: Any) -> subprocess.Popen[bytes]:
        """Start the command. ``shell`` is put before it, such as ``umask 077;``."""
        code = "from tests.fidelity.chaos.hooks import main; main()"
        hooked = {"limits": self.limits, **(hooks or {})}
        command = [sys.executable, "-c", code, json.dumps(hooked), *words]
        if shell:
            command = ["sh", "-c", f"{shell} exec \"$@\"", "sh", *command]
        return subprocess.Popen(command, env=self.environment(environment), **{
            "stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE,
            "start_new_session": True, **options})

    def run(self, *words: str, limit_s: float = 120.0, **how: Any) -> Ended:
        """Run the command to its end, watching how much memory its process takes."""
        started = time.monotonic()
        with self._kept("out") as out, self._kept("err") as err:
            process = self.start(*words, **{"stdout": out, "stderr": err, **how})
            peak = watch(process, limit_s)
            return Ended(process.returncode, text(out), text(err), time.monotonic() - started, peak)

    def grade(self, source: str = module.HEALTHY, **how: Any) -> Ended:
        self.kernel.write_text(source)
        return self.note(self.run("grade", "--again", module.NAME, "--json", **how))

    def note(self, ended: Ended) -> Ended:
        self.acknowledged += ended.saved
        return ended

    @contextlib.contextmanager
    def _kept(self, name: str) -> Iterator[Any]:
        with (self.folder / name).open("w+b") as file:
            yield file

    # ---------------------------------------------------------------------------------------------

    def reading(self) -> JournalReading:
        return parse((self.mark / "journal.jsonl").read_bytes())

    def recorded(self) -> int:
        return sum(record.event == "graded" for record in self.reading().records)

    def store(self) -> list[str]:
        """What is wrong with the record."""
        problems = list(self.reading().problems)
        try:
            certificate = json.loads((self.mark / "certificate.json").read_bytes())
            if certificate["schema"] != SCHEMA:
                problems.append("the certificate is another one")
        except (OSError, ValueError, KeyError) as error:
            problems.append(f"the certificate does not load: {error}")
        there = {record.sha256 for record in self.reading().records}
        if lost := self.seen - there:
            problems.append(f"{len(lost)} earlier records are gone")
        self.seen |= there
        if self.recorded() < self.acknowledged:
            problems.append(f"{self.acknowledged} acknowledged, {self.recorded()} recorded")
        return problems

    def clear(self) -> None:
        """Remove what an entry left behind, so that the next one starts clean."""
        own = self._warm.sandbox if self._warm else None
        for path in self.temporary.iterdir():
            if path != own:
                tempdirs.remove(path)
        for path in self.mark.glob(".*.tmp"):  # of a command that was killed while it wrote
            path.unlink()

    def leftovers(self) -> list[str]:
        """Temporary files that are still there; those of the warm sandbox are its own."""
        own = self._warm.sandbox if self._warm else None
        deadline = time.monotonic() + SETTLE_S
        while True:
            found = [path.name for path in self.temporary.iterdir() if path != own]
            if self._warm and own and own.exists():
                found += [f"{own.name}/{path.name}" for path in own.iterdir()
                          if path.name not in self._warm.own]
            if not found or time.monotonic() > deadline:
                return [f"{name} is left" for name in found]
            time.sleep(0.02)

    def expected(self, ended: Ended, codes: Collection[int], findings: Collection[str] = (),
                 limit_s: float = 0.0, cold: bool = True) -> list[str]:
        """What is wrong with the way a grade ended.

        Args:
            codes: exit codes that are right.
            findings: codes of which a failed grade must have one.
            limit_s: the deadline that the kernel ran into.
            cold: whether the command had to start a zygote.
        """
        problems = []
        if ended.code not in codes:
            problems.append(f"it ended with {ended.described()}, expected one of {sorted(codes)}")
        elif ended.code == 1 and findings and not ended.codes & set(findings):
            problems.append(f"{ended.described()}: expected one of {sorted(findings)}")
        if "Traceback" in ended.err:
            problems.append(f"a traceback: {ended.err[-500:]}")
        said = ended.err.strip() or ended.report.get("reason") or ended.report.get("results")
        if ended.code > 1 and not said:
            problems.append(f"exit {ended.code} without a sentence")
        problems += self._late(ended.seconds, limit_s + SLACK_S, cold or ended.replaced)
        beyond = ended.peak - self.warm_baseline
        if beyond > MEMORY:
            problems.append(f"the judge took {beyond >> 20} MiB more than its imports")
        return problems

    def _late(self, seconds: float, allowed: float, cold: bool) -> list[str]:
        """Whether it took longer than allowed, on top of what the right kernel takes."""
        if seconds <= allowed + (self.whole_s if cold else 0.0):
            return []
        again = self.grade() if cold else self.warm.grade()  # the machine may be busier by now
        allowed = BUSY * (allowed + again.seconds)
        return [f"{seconds:.1f} s, allowed {allowed:.1f} s"] if seconds > allowed else []

    @cached_property
    def warm_baseline(self) -> int:
        """Bytes that a judge holds once torch, the grader and the suite are imported."""
        code = ("import sys, grader.judge.grade, grader.suite.spec; from pathlib import Path\n"
                "grader.suite.spec.load(Path(sys.argv[1]))\n"
                "from tests.fidelity.chaos.hooks import memory; print(memory('VmRSS'))")
        suite = self.folder / "course" / "suites" / "missing-elements" / "03-softmax" / "suite.py"
        shown = subprocess.run([sys.executable, "-c", code, str(suite)], check=True,
                               capture_output=True, env=self.environment())
        return int(shown.stdout)


class Warm:
    """The command in a process that stays, on one warm sandbox."""

    def __init__(self, bench: Bench) -> None:
        self._bench = bench
        self.process = bench.start(hooks={"serve": True}, stdin=subprocess.PIPE,
                                   stderr=subprocess.DEVNULL)
        ready = self._answer()
        self.baseline, self.sandbox = int(ready["baseline"]), Path(ready["sandbox"])
        self.own = {path.name for path in self.sandbox.iterdir()}  # made while warming up
        self.zygote = processes.children(self.process.pid)[0]

    def grade(self, source: str | bytes = module.HEALTHY,
              **how: Any) -> Ended:
        """Grade a kernel, as ``run`` runs commands."""
        self._bench.kernel.write_bytes(source if isinstance(source, bytes) else source.encode())
        return self._bench.note(self.run("grade", "--again", module.NAME, "--json", **how))

    def run(self, *words: str, disk: tuple[int, int, bool] | None = None,
            signal: tuple[str, int] | None = None,
            during: Callable[[], None] | None = None) -> Ended:
        """Run a command.

        Args:
            disk: the number of the write to fail, the error's number, and whether it fails once.
            signal: the stage at which Ctrl-C comes, and how often.
            during: is called while the command runs.
        """
        assert self.process.stdin is not None
        request = json.dumps({"words": words, "disk": disk, "signal": signal})
        self.process.stdin.write(request.encode() + b"\n")
        self.process.stdin.flush()
        if during is not None:
            during()
        answer = self._answer()
        replaced = self.zygote != answer["zygote"]
        self.zygote, self.sandbox = answer["zygote"], Path(answer["sandbox"])
        return Ended(answer["code"], answer["out"], answer["err"], answer["seconds"],
                     answer["peak"], answer["reached"], replaced)

    def left(self) -> list[str]:
        """Children of the zygote that are still there, beside those that it keeps ready."""
        deadline = time.monotonic() + SETTLE_S
        while found := at_work(processes.children(self.zygote)):
            if time.monotonic() > deadline:
                return [f"process {pid} is left ({name_of(pid)})" for pid in found]
            time.sleep(0.02)
        return []

    def close(self) -> None:
        assert self.process.stdin is not None and self.process.stdout is not None
        self.process.stdin.close()
        self.process.wait(30)
        self.process.stdout.close()

    def _answer(self) -> dict[str, Any]:
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        if not line:
            raise RuntimeError(f"the warm judge ended with status {self.process.wait()}")
        answer: dict[str, Any] = json.loads(line)
        return answer


# ---------------------------------------------------------------------------------------------


def watch(process: subprocess.Popen[bytes], limit_s: float) -> int:
    """Wait for a process and return the most memory that it held; one that stays is killed."""
    peak, deadline = 0, time.monotonic() + limit_s
    while process.poll() is None:
        with contextlib.suppress(OSError, IndexError, ValueError):
            table = Path(f"/proc/{process.pid}/status").read_text()
            peak = max(peak, int(table.partition("VmHWM:")[2].split()[0]) * 1024)
        if time.monotonic() > deadline:
            process.kill()
        time.sleep(0.005)
    return peak


def at_work(children: list[int]) -> list[int]:
    """Without the spares: so many are kept at most, and none has left the folder of its birth."""
    waiting = [pid for pid in children if folder_of(pid) == "/"]
    return [pid for pid in children if pid not in waiting] + waiting[SPARES:]


def folder_of(pid: int) -> str:
    try:
        return str(Path(f"/proc/{pid}/cwd").readlink())
    except OSError:
        return ""


@contextlib.contextmanager
def orphans() -> Iterator[list[str]]:
    """Become the parent of whatever is left behind; the list tells what did not end by itself."""
    before = set(processes.children(os.getpid()))
    problems: list[str] = []
    processes.adopt_orphans()
    try:
        yield problems
        deadline = time.monotonic() + SETTLE_S
        while left := _reaped(set(processes.children(os.getpid())) - before):
            if time.monotonic() > deadline:
                problems += [f"process {pid} is left ({name_of(pid)})" for pid in left]
                break
            time.sleep(0.02)
    finally:
        for pid in set(processes.children(os.getpid())) - before:
            processes.stop_tree(pid)
        time.sleep(0.02 if problems else 0)
        _reaped(set(processes.children(os.getpid())) - before)
        ctypes.CDLL(None).prctl(36, 0, 0, 0, 0)  # PR_SET_CHILD_SUBREAPER off again


def _reaped(pids: set[int]) -> set[int]:
    """Those of ``pids`` that are still running."""
    running = set()
    for pid in pids:
        with contextlib.suppress(ChildProcessError):
            if os.waitpid(pid, os.WNOHANG) == (0, 0):
                running.add(pid)
    return running


def name_of(pid: int) -> str:
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode()[-80:].strip()
    return "gone"


def text(file: Any) -> str:
    file.seek(0)
    return str(file.read().decode("utf-8", "replace"))


def zygote_of(judge: int) -> int | None:
    """The zygote that a judge has started, once it has its own program."""
    for pid in processes.children(judge):
        if "grader.sandbox.zygote" in name_of(pid):
            return pid
    return None


def end(process: subprocess.Popen[bytes], number: int = signal.SIGKILL) -> None:
    with contextlib.suppress(ProcessLookupError):
        process.send_signal(number)
