"""A grade that nobody waits for ends at once; cases that go first change nothing but the order."""

from __future__ import annotations

import os
import signal
import threading
import time
from dataclasses import replace
from pathlib import Path

import pytest

import grader
from grader import Sandbox, Verdict
from grader.processes.session import CALL_S
from grader.sandbox import processes
from grader.suite import correctness, edge, performance, rand
from tests.judge.test_grade import RIGHT, SUITE
from tests.support.waiting import HANG_S, wait_until

WITHIN_S = CALL_S / 2  # whoever waited for the process would wait longer; 0.1 s are usual
HOST = RIGHT.replace("    out = ", "    while True: pass\n    out = ")
KERNEL = RIGHT.replace("    x = tl.load", """    turns = n + 0
    while turns > 0:
        turns += 1
    x = tl.load""")
IMPORT = RIGHT.replace("import torch\n", "import torch\nwhile True: pass\n")
COMPILER = RIGHT.replace("    tl.store", """    for i in tl.static_range(1500):
        x = tl.where(x > i, x + 1, x - 1)
        x = tl.where(x > i, x - 1, x + 1)
    tl.store""")


class Cancelling:
    """Grades in a thread of its own, and cancels when ``ripe`` says so of the last event."""

    def __init__(self, path: Path, suite, sandbox: Sandbox, **options) -> None:
        self.cancelled = threading.Event()
        self.events: list[object] = []
        self.raised: BaseException | None = None
        self.ended = 0.0
        self._thread = threading.Thread(target=self._grade, args=(path, suite, sandbox, options))
        self._thread.start()

    def _grade(self, path, suite, sandbox, options) -> None:
        try:
            grader.grade(path, suite, sandbox=sandbox, cancelled=self.cancelled,
                         on_event=self.events.append, **options)
        except BaseException as error:
            self.raised = error.with_traceback(None)  # its frames hold files open
        self.ended = time.monotonic()

    def cancel(self) -> float:
        """Seconds from the wish to the end."""
        asked = time.monotonic()
        self.cancelled.set()
        self._thread.join(HANG_S)
        return self.ended - asked


def family(sandbox: Sandbox) -> set[int]:
    """The processes of this sandbox, those that wait to be needed apart."""
    return set(processes.descendants(sandbox.pid)) - set(sandbox.spares)


def files() -> dict[str, str]:
    """What this process has open; the folder that is read for it is not there any more."""
    return {file.name: str(file.readlink()) for file in Path("/proc/self/fd").iterdir()
            if file.is_symlink()}


def wait_until_busy(sandbox: Sandbox) -> None:
    """Waits until the processes of the grade are in the middle of their work."""
    def used_s() -> float:
        return sum(processes.work(pid)[0] for pid in family(sandbox))

    before = used_s()
    wait_until(lambda: used_s() > before + 0.3)


def wait_until_gone(sandbox: Sandbox) -> None:
    """Waits for the end of all processes of the grade; the system takes a moment for it."""
    wait_until(lambda: not family(sandbox))


@pytest.mark.parametrize(("text", "waits_for"), [
    (HOST, "a thousand"), (KERNEL, "a thousand"), (IMPORT, "a thousand"),
    (COMPILER, "every launch compiles"),
], ids=["the function hangs", "the kernel hangs", "the import hangs", "the compiler is at work"])
def test_a_cancelled_grade_ends_at_once_and_leaves_nothing_behind(tmp_path, sandbox, text,
                                                                  waits_for):
    path = tmp_path / "kernel.py"
    path.write_text(RIGHT)
    small = replace(SUITE, cases=SUITE.cases[:1])
    assert grader.grade(path, small, sandbox=sandbox).verdict is Verdict.PASSED
    before = files()
    path.write_text(text)
    running = Cancelling(path, small, sandbox)
    wait_until(lambda: running.events and str(running.events[-1]).startswith(waits_for))
    wait_until_busy(sandbox)

    took = running.cancel()

    assert isinstance(running.raised, grader.Cancelled)
    assert took < WITHIN_S
    wait_until_gone(sandbox)
    assert files() == before
    assert not [*sandbox.folder.glob("child-*"), *sandbox.folder.glob("submission-*")]
    path.write_text(RIGHT)
    assert grader.grade(path, small, sandbox=sandbox).verdict is Verdict.PASSED


def test_a_grade_can_be_cancelled_before_the_sandbox_is_warm(tmp_path, monkeypatch):
    path, asked = tmp_path / "kernel.py", threading.Event()
    path.write_text(RIGHT)
    with Sandbox() as cold:
        request = cold.request
        monkeypatch.setattr(cold, "request", lambda *a, **k: (asked.set(), request(*a, **k))[1])
        os.kill(cold.pid, signal.SIGSTOP)  # it would take seconds, and now it takes for ever
        running = Cancelling(path, SUITE, cold)
        assert asked.wait(HANG_S)

        took = running.cancel()
        os.kill(cold.pid, signal.SIGCONT)

        assert isinstance(running.raised, grader.Cancelled)
        assert took < WITHIN_S
        assert grader.grade(path, replace(SUITE, cases=SUITE.cases[:1]),
                            sandbox=cold).verdict is Verdict.PASSED


def test_a_zygote_that_is_busy_holds_no_cancelled_grade_up(tmp_path, sandbox):
    path = tmp_path / "kernel.py"
    path.write_text(KERNEL)
    running = Cancelling(path, SUITE, sandbox)
    wait_until(lambda: "a thousand" in running.events)
    wait_until_busy(sandbox)
    os.kill(sandbox.pid, signal.SIGSTOP)
    try:
        took = running.cancel()
    finally:
        os.kill(sandbox.pid, signal.SIGCONT)

    assert isinstance(running.raised, grader.Cancelled)
    assert took < WITHIN_S
    wait_until_gone(sandbox)


def test_cancelling_one_grade_leaves_another_on_the_same_sandbox_alone(tmp_path, sandbox):
    hangs, right = tmp_path / "hangs.py", tmp_path / "right.py"
    hangs.write_text(HOST)
    right.write_text(RIGHT)
    running = Cancelling(hangs, SUITE, sandbox)
    wait_until(lambda: running.events)

    other = Cancelling(right, SUITE, sandbox)
    running.cancel()
    other._thread.join(HANG_S)

    assert isinstance(running.raised, grader.Cancelled)
    assert other.raised is None
    assert [e.verdict for e in other.events if isinstance(e, grader.CaseResult)].count(
        Verdict.PASSED) == 9


def test_a_grade_that_has_ended_is_not_cancelled(tmp_path, sandbox):
    path = tmp_path / "kernel.py"
    path.write_text(RIGHT)
    cancelled = threading.Event()

    report = grader.grade(path, SUITE, sandbox=sandbox, cancelled=cancelled)
    cancelled.set()

    assert report.exit_code == 0
    assert grader.grade(path, SUITE, sandbox=sandbox).exit_code == 0


def test_what_may_be_cancelled_is_judged_the_same_with_values_first(tmp_path, sandbox):
    path = tmp_path / "kernel.py"
    path.write_text(RIGHT)
    *values, counted, measured = SUITE.cases
    suite = replace(SUITE, cases=[*values, measured, performance(
        "512 elements", rand(512), spills=0), counted])
    usual, order = graded(path, sandbox, suite)

    report, judged = graded(path, sandbox, suite, seed=usual.seed, cancelled=threading.Event())

    assert comparable(report) == comparable(usual)
    waits = ["2**27 elements", "512 elements", report.results[-1].name]
    assert judged == [name for name in order if name not in waits] + waits
    assert judged != order


def test_values_first_keeps_two_executors_busy_beside_one_compiler(tmp_path, sandbox, uncached,
                                                                   monkeypatch):
    path, roles, forked = tmp_path / "kernel.py", [], []
    path.write_text(RIGHT)
    fork = Sandbox.fork
    monkeypatch.setattr(Sandbox, "fork", lambda box, role, *limits: (
        forked.append(role), fork(box, role, *limits))[1])
    monkeypatch.setattr("os.sched_getaffinity", lambda pid: {0, 1})

    grader.grade(path, SUITE, sandbox=sandbox, cancelled=threading.Event(),
                 on_event=lambda event: roles.append(list(forked)))

    values = 2 * (len(SUITE.cases) - 1)  # a name and a result of each case without compiled code
    executors = ["worker", "executor", "executor"]
    assert roles[1:3] == [executors] * 2  # the first result, and the name of the second case
    assert roles[3:values] == [[*executors, "compiler"]] * (values - 3)
    assert set(forked[3:]) == {"compiler"}


WRONG = RIGHT.replace("    tl.store", """    if BLOCK == 64:
        x = tl.where(n == 65, x + 1, x)
    tl.store""")


def graded(path: Path, sandbox: Sandbox, suite=SUITE, **options) -> tuple[grader.Report, list[str]]:
    """The report, and the names of the cases in the order in which they were judged."""
    events: list[object] = []
    report = grader.grade(path, suite, sandbox=sandbox, on_event=events.append, **options)
    return report, [e.name for e in events if isinstance(e, grader.CaseResult)]


def comparable(report: grader.Report) -> list[grader.CaseResult]:
    return [replace(result, seconds=0.0) for result in report.results]


def test_cases_that_go_first_are_judged_first_and_reported_in_their_places(tmp_path, sandbox):
    path = tmp_path / "kernel.py"
    path.write_text(RIGHT)
    usual, order = graded(path, sandbox)

    report, judged = graded(path, sandbox, seed=usual.seed,
                            first=["4096 elements", "no such case", "nothing"])

    assert judged[:3] == ["nothing", "4096 elements", "a thousand"]
    assert sorted(judged) == sorted(order)
    assert comparable(report) == comparable(usual)


def test_a_size_that_follows_the_block_is_the_same_for_a_case_that_goes_first(tmp_path, sandbox):
    path = tmp_path / "kernel.py"
    path.write_text(WRONG)  # wrong for one block and one element alone
    usual, _ = graded(path, sandbox)
    failed = usual.first_failure
    assert failed is not None

    report, judged = graded(path, sandbox, seed=usual.seed, first=[failed.name])

    assert judged[0] == failed.name == "one block and one element"
    assert comparable(report) == comparable(usual)


def test_the_first_failure_is_explained_as_well_when_a_later_one_was_judged_before(tmp_path,
                                                                                 sandbox):
    path = tmp_path / "kernel.py"
    path.write_text(RIGHT.replace("x * 2, mask", "x * 3, mask"))
    suite = replace(SUITE, cases=[correctness("a thousand", rand(1000)),
                                  edge("three hundred", rand(300)), edge("forty", rand(40))])
    usual, _ = graded(path, sandbox, suite)

    report, judged = graded(path, sandbox, suite, seed=usual.seed, first=["forty"])

    assert judged[0] == "forty"
    assert report.first_failure is not None and usual.first_failure is not None
    assert report.first_failure.findings == usual.first_failure.findings


def test_only_the_cases_that_go_first_are_judged_where_the_first_failure_is_enough(tmp_path,
                                                                                  sandbox):
    path = tmp_path / "kernel.py"
    path.write_text(WRONG)

    report, judged = graded(path, sandbox, effort="first", first=["one block and one element"])

    assert judged == ["one block and one element"]
    assert report.verdict is Verdict.FAILED
