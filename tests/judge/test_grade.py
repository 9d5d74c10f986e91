"""A grade from end to end: what goes wrong in every way, and what is kept from the worker."""

from __future__ import annotations

import itertools
import json
from dataclasses import replace
from types import SimpleNamespace

import pytest
import torch

import grader
from grader import Verdict
from grader.judge import case, context, draws, oversized, schedule, values
from grader.judge.oversized import limits
from grader.processes import pool, replies, session
from grader.processes.pool import Processes
from grader.processes.time_limit import OutOfTime, TimeLimit
from grader.report import Skip
from grader.submission import source
from grader.suite import (
    EXACT,
    Cost,
    Mutant,
    Suite,
    correctness,
    edge,
    launchable,
    performance,
    rand,
    refuses,
)
from tests.support.tiers import by_default

KERNEL = '''\
import torch
import triton
import triton.language as tl


@triton.jit
def double_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offs < n
    x = tl.load(x_ptr + offs, mask=mask)
    tl.store(out_ptr + offs, x * 2, mask=mask)


def double(x):
    if x.dim() != 1:
        raise ValueError(f"x: expected 1 dimension, got {x.dim()}")
    out = torch.empty_like(x)
    if x.numel():
        double_kernel[(triton.cdiv(x.numel(), 64),)](x, out, x.numel(), BLOCK=64)
    return out
'''

SUITE = Suite(
    entry="double",
    parameters=("x",),
    reference=lambda x: x.double() * 2,
    tolerance=EXACT,
    cost=lambda x: Cost(bytes=2 * x.nbytes),
    cases=[
        correctness("a thousand", rand(1000), public=True),
        correctness("a thousand in float16", rand(1000, dtype="float16")),
        edge("one element", rand(1), public=True),
        edge("nothing", rand(0), launches=0),
        edge("every other element", rand(300)[::2]),
        edge("one block and one element", rand(lambda B: B + 1)),
        refuses("a matrix", rand(2, 3), raises=ValueError, mentions=["x", "1 dimension"]),
        performance("4096 elements", rand(4096), traffic=1.0, launches=1,
                    programs=lambda B: 4096 // B),
        performance("2**27 elements", rand(1 << 27), pass_at=0.8, stretch=0.9),
    ],
    name="toy/double",
)


@pytest.fixture
def graded(tmp_path, sandbox):
    def grade(text: str, suite: Suite = SUITE, **options) -> grader.Report:
        path = tmp_path / "kernel.py"
        path.write_text(text)
        return grader.grade(path, suite, sandbox=sandbox, **options)

    return grade


def tuned(text: str, second: str) -> str:
    """The same kernel under an autotuner with two configurations."""
    return text.replace("@triton.jit", f"""@triton.autotune(
    configs=[triton.Config({{"BLOCK": 64, "FACTOR": 2}}), triton.Config({second})], key=["n"])
@triton.jit""").replace("BLOCK: tl.constexpr", "BLOCK: tl.constexpr, FACTOR: tl.constexpr").replace(
        "x * 2", "x * FACTOR").replace(
        "(triton.cdiv(x.numel(), 64),)", 'lambda meta: (triton.cdiv(x.numel(), meta["BLOCK"]),)'
        ).replace(", BLOCK=64)", ")")


def first(report: grader.Report) -> grader.Finding:
    failure = report.first_failure
    assert failure is not None, [(r.name, r.verdict, r.reason) for r in report.results]
    return failure.findings[0]


def contiguous_only(text: str) -> str:
    return text.replace("    out = torch.empty_like(x)\n", "    x = x.contiguous()\n"
                        "    out = torch.empty_like(x)\n")


RIGHT = contiguous_only(KERNEL)
PRINTING = RIGHT.replace("    tl.store(", """    if tl.program_id(0) < 2:
        tl.device_print("x", x)
        tl.device_print("pid", tl.program_id(0), hex=True)
        tl.static_print("x is", x)
    tl.store(""")


@pytest.mark.parametrize(("text", "options", "case"), [
    (PRINTING.replace("x * 2", "x * 3"), {}, "a thousand"),
    (PRINTING, {"public_only": True}, "a thousand"),
    (PRINTING, {"only": "one element"}, "one element"),
    (PRINTING, {"effort": "uncompiled"}, ""),
], ids=["wrong", "public cases", "one case", "right"])
def test_what_a_kernel_prints_is_reported_of_one_case(graded, text, options, case):
    report = graded(text, **options)

    assert report.printed_in == case
    first = " ".join(report.printed)
    assert bool(first) is bool(case)
    assert not case or first.startswith("(0, 0, 0)  x: [")
    assert "(0, 0, 0)  pid: 0x00000000" in report.printed or not case
    assert first.count("x is fp32[") == bool(case)
    assert "..." in first or case != "a thousand"


def test_a_right_kernel_passes_with_its_numbers_beside_their_limits(graded):
    report = graded(RIGHT)

    assert (report.verdict, report.exit_code, report.evidence) == (Verdict.PASSED, 0, "efficient")
    facts = next(r.facts for r in report.results if r.facts)
    assert facts == {"traffic": "1.00x of the minimum, limit 1.00x", "launches": "1, limit 1",
                     "programs": "64, limit 64"}
    measured, gate = report.results[-2:]
    assert (measured.verdict, "GPU" in measured.reason) == (Verdict.SKIPPED, True)
    assert (gate.verdict, gate.facts) == (Verdict.PASSED, {"compiled": "6 launches"})
    json.dumps(report.to_dict())


def test_it_is_told_that_the_compiler_is_waited_for(tmp_path, sandbox):
    path, told = tmp_path / "kernel.py", []
    path.write_text(RIGHT)
    case = performance("4096 elements", rand(4096), spills=0)

    grader.grade(path, replace(SUITE, cases=[case]), sandbox=sandbox, on_event=told.append)

    assert told[:2] == [case.name, f"{case.name}: waiting for the compiler"]


def test_torch_uses_one_thread_while_a_grade_runs(tmp_path, sandbox):
    path, threads, before = tmp_path / "kernel.py", [], torch.get_num_threads()
    path.write_text(RIGHT)

    grader.grade(path, SUITE, sandbox=sandbox,
                 on_event=lambda _: threads.append(torch.get_num_threads()))

    assert set(threads) == {1}
    assert torch.get_num_threads() == before


def test_other_layouts_are_tried_only_while_one_may_tell_the_cause(graded, monkeypatch):
    strided = replace(SUITE, cases=[
        edge(f"every other of {n}", rand(2 * n)[::2]) for n in range(40, 48)])
    asked = []
    monkeypatch.setattr(values, "is_right", (
        lambda original: lambda *inputs: asked.append(1) or original(*inputs)
    )(values.is_right))

    layout = graded(KERNEL, strided, effort="values")
    tried, asked[:] = len(asked), []
    all_wrong = graded(RIGHT.replace("x * 2", "x * 3"), strided, effort="values")

    assert {f.code for f in layout.findings()} == {"M08"}
    assert {f.code for f in all_wrong.findings()} == {"N01"}
    assert (tried, len(asked)) == (8, values.IN_VAIN)


def test_which_line_belongs_to_which_place_is_not_asked_for_every_right_case(graded, monkeypatch):
    asked = []
    monkeypatch.setattr(source.Source, "places", lambda *_: asked.append(1))

    report = graded(RIGHT)

    assert (report.verdict, asked) == (Verdict.PASSED, [])


def test_the_same_seed_draws_the_same_inputs_and_no_seed_draws_new_ones(graded):
    broken = RIGHT.replace("x * 2", "x * 3")

    one, two = (graded(broken, seed="00ff", effort="first") for _ in range(2))
    other = graded(broken, effort="first")

    assert first(one).seen == first(two).seen != first(other).seen
    assert one.seed == "00ff"
    assert len(other.seed) == 32


@pytest.mark.parametrize(("change", "code", "says"), [
    (("x * 2", "x * 3"), "N01", "1000 of 1000 elements are wrong"),
    (("mask=mask)\n\n", ")\n\n"), "M02", "`out_ptr`"),
    (("x_ptr + offs, mask=mask", "x_ptr + offs"), "M01", "`x_ptr`"),
    (("triton.cdiv(x.numel(), 64)", "x.numel() // 64"), "M03", "40 of 1000"),
    (("tl.program_id(0)", "0"), "M04", "both stored"),
    (("(triton.cdiv(x.numel(), 64),)", "16"), "L01", "tuple"),
    (("BLOCK=64", "BLOCK=63"), "L05", "power of 2"),
    (("x * 2", "x * undefined"), "L05", "undefined"),
    (("x * 2", "x @ 2"), "L05", ""),
    (("BLOCK=64)", "BLOK=64)"), "L05", "Did you mean `BLOCK`"),
    (("torch.empty_like(x)", "torch.empty_like(x, dtype=torch.float64)"), "S01", "float64"),
    (("return out", "return out.numpy()"), "X01", "numpy"),
    (("return out", "return x * 2"), "X01", "mul"),
    (("return out", "return x"), "S01", "input"),
    (("return out", "return None"), "S01", "NoneType"),
    (("return out", "return out, out"), "S01", "tuple"),
    (("return out", "x.mul_(1)\n    return out"), "M07", "x"),
    (("](x, out, x", "](out, x, x"), "M07", "Input `x` was modified: line 20 passes it as"),
    (("x.numel(), BLOCK=64", "BLOCK=64"), "R01", "2 arguments by position and BLOCK by name, the"),
    (("torch.empty_like(x)", "torch.empty(x.shape)"), "S01", "`torch.empty` has no device"),
    (("return out", "raise RuntimeError('no')"), "R01", "RuntimeError: no"),
    (("return out", "return undefined"), "R01", "NameError"),
    (("double_kernel[(", "for _ in range(65):\n            double_kernel[("), "T03", "65"),
    (("import torch\n", "import torch\nraise ValueError('at import')\n"), "P02", "at import"),
    (("import torch\n", "import torch\nimport not_installed\n"), "P02", "not_installed"),
    (("def double(x)", "def double(y)"), "P04", "double(x)"),
    (("@triton.jit\n", ""), "P03", "double_kernel"),
    (("raise ValueError(", "return torch.empty_like(x) #"), "E01", "ValueError"),
    (("raise ValueError(", "raise TypeError("), "E02", "TypeError"),
    (("expected 1 dimension", "expected something else"), "E03", "1 dimension"),
    (("expected 1 dimension", "{x.argmax()}: expected 1 dimension"), "X01", "argmax"),
    (("return out", "raise NotImplementedError"), "R01", "raised NotImplementedError."),
], ids=lambda value: value if isinstance(value, str) and len(value) == 3 else "")
def test_what_goes_wrong_gets_its_code(graded, change, code, says):
    assert change[0] in RIGHT

    report = graded(RIGHT.replace(*change), effort="first")

    assert (first(report).code, report.exit_code) == (code, 1), first(report)
    assert says in first(report).seen
    assert "Traceback" not in first(report).seen


STORE = "    tl.store(out_ptr + offs, x * 2, mask="
SUMMED = RIGHT.replace("x * 2", "x + tl.sum(x, 0)")


@pytest.mark.parametrize(("text", "code", "line"), [
    (RIGHT.replace(f"{STORE}mask)", f"{STORE}offs < n - 1)"), "M03", 11),
    (RIGHT.replace(f"{STORE}mask)", f"{STORE}offs < n // 2)\n{STORE}offs < 3)"), "M03", None),
    (SUMMED, "M06", 10),
    (SUMMED.replace("offs, mask=mask", "offs, mask=mask, other=0.0"), "N01", None),
], ids=["one store", "two stores", "a load without other", "a load with one"])
def test_what_shows_in_the_result_alone_gets_the_one_line_that_it_is_about(graded, text, code,
                                                                           line):
    finding = first(graded(text, effort="first"))

    assert (finding.code, finding.line) == (code, line), finding


def test_reading_twice_is_too_much_traffic(graded):
    again = "    x = tl.load(x_ptr + offs, mask=mask)\n"
    twice = RIGHT.replace("    tl.store(", again + "    tl.store(")

    report = graded(twice, effort="first")

    assert first(report).code == "T01"
    assert next(r.facts for r in report.results if r.facts)["traffic"].startswith("1.50x")


def test_programs_without_work_are_named(graded):
    report = graded(RIGHT.replace("triton.cdiv(x.numel(), 64)", "triton.cdiv(x.numel(), 64) + 3"),
                    effort="first")

    assert (first(report).code, first(report).seen) == ("L03", "3 of 67 programs stored nothing.")


def test_a_grid_of_one_program_per_element_is_told_without_running_it_whole(graded):
    suite = replace(SUITE, cases=[
        correctness("many", rand(60_000)),
        performance("many", rand(60_000), programs=lambda B: -(-60_000 // B))])

    report = graded(RIGHT.replace("triton.cdiv(x.numel(), 64)", "x.numel()"), suite=suite,
                    effort="values")

    assert first(report).code == "L03"
    assert "a grid of 60000" in first(report).seen
    assert report.seconds < 20  # running it whole, three times, takes minutes


def test_a_case_without_its_suite_tells_idle_programs_as_it_does_in_it(graded):
    """A contract is no less for fewer cases: one that killed a mutant is repeated alone."""
    many = correctness("many", rand(2_000))
    limited = performance("counted", rand(60_000), programs=lambda B: -(-60_000 // B))
    suite, unlimited = (replace(SUITE, cases=cases, counts_programs=False)
                        for cases in ([many, limited], [many]))
    idle = RIGHT.replace("triton.cdiv(x.numel(), 64)", "x.numel()")

    alone, free = (graded(idle, suite=one, effort="values")
                   for one in (replace(suite, cases=[many]), unlimited))

    assert (first(alone).code, "a grid of 2000" in first(alone).seen) == ("L03", True)
    assert free.verdict is Verdict.PASSED


def test_an_early_grade_leaves_out_what_cannot_change_the_first_failure(graded):
    wrong = RIGHT.replace("x * 2", "x * 3")

    early, whole = (graded(wrong, effort=effort, seed="1") for effort in ("early", "whole"))

    assert first(early).to_dict() == first(whole).to_dict()
    left_out = {r.name for r in early.results if r.skipped is Skip.FAILED}
    assert left_out == {r.name for r in whole.results
                        if r.clocked or r.name.startswith("every launch")}
    assert [r.verdict for r in early.results if r.name not in left_out] == [
        r.verdict for r in whole.results if r.name not in left_out]


@pytest.mark.parametrize(("old", "new", "ends"), [
    ("return out", "return out[:-1]", True), ("x * 2", "x * 3", False)])
def test_an_early_grade_ends_at_a_result_of_another_shape(old, new, ends, graded):
    report = graded(RIGHT.replace(old, new), effort="early")

    run = [result.name for result in report.results if result.skipped is not Skip.FAILED]
    assert first(report).code == ("S01" if ends else "N01")
    assert (run == ["a thousand"]) == ends
    assert len(report.results) >= len(SUITE.cases)


def test_a_right_file_in_an_early_grade_is_graded_whole(graded):
    report = graded(RIGHT, effort="early")

    assert report.verdict is Verdict.PASSED
    assert [r.name for r in report.results if r.skipped] == [
        r.name for r in report.results if r.clocked]  # which only a clock decides


def test_a_grade_that_has_taken_its_time_is_inconclusive(graded, monkeypatch):
    monkeypatch.setattr(context, "GRADE_S", 0.0)

    early, whole = graded(RIGHT, effort="early"), graded(RIGHT)

    assert {r.skipped for r in early.results} == {Skip.TIME}
    assert (early.verdict, early.exit_code, early.evidence) == (Verdict.INCONCLUSIVE, 1, "")
    assert "had reached its limit of 0 s" in early.results[0].reason
    assert whole.verdict is Verdict.PASSED


@pytest.mark.course
def test_a_run_that_the_end_of_the_grade_cuts_short_is_not_called_endless(graded, monkeypatch):
    monkeypatch.setattr(context, "GRADE_S", 5.0)
    slow = RIGHT.replace("    out =", "    import time\n    time.sleep(8)\n    out =")
    assert slow != RIGHT

    report = graded(slow, effort="early")

    assert {r.skipped for r in report.results} == {Skip.TIME}
    assert report.verdict is Verdict.INCONCLUSIVE


def test_a_case_that_ran_out_of_time_never_counts_as_a_pass(graded, monkeypatch):
    calls = itertools.count()

    def late(limit: TimeLimit, seconds: float) -> float:
        if seconds == session.CALL_S and next(calls) >= 3:
            raise OutOfTime  # after a wait for a CPU, which gives the limit some seconds more
        return seconds

    monkeypatch.setattr(TimeLimit, "bound", late)

    report = graded(RIGHT, effort="early")

    assert report.results[0].verdict is Verdict.PASSED
    assert report.verdict is Verdict.INCONCLUSIVE
    assert all("reached its limit" in r.reason for r in report.results if r.skipped is Skip.TIME)
    assert Skip.ENDED not in {r.skipped for r in report.results}


def test_launches_that_are_compiled_too_late_leave_a_right_file_undecided(graded, monkeypatch):
    def late(limit: TimeLimit, seconds: float) -> float:
        if seconds == session.COMPILE_S:
            raise OutOfTime
        return seconds

    monkeypatch.setattr(TimeLimit, "bound", late)
    monkeypatch.setenv("TRITONLAB_CACHE", "off")

    report = graded(RIGHT, effort="early")

    assert [r.name for r in report.results if r.skipped is Skip.TIME] == [
        r.name for r in report.results if r.clocked or r.name.startswith("every launch")]
    assert report.verdict is Verdict.INCONCLUSIVE


def test_a_failure_stands_where_the_search_for_its_cause_ran_out_of_time(graded, monkeypatch):
    def out_of_time(*_: object) -> None:
        raise OutOfTime

    monkeypatch.setattr(case, "diagnose", out_of_time)

    assert first(graded(RIGHT.replace("x * 2", "x * 3"), effort="early")).code == "N01"


@pytest.mark.parametrize("effort", ["values", "diagnosis"])
def test_what_tells_mistakes_apart_does_not_hang_on_how_busy_a_machine_is(
        graded, monkeypatch, effort):
    telling = Mutant("t", "thrice", (), ("N01",), "three times",
                     wrong=("one block and one element",))
    monkeypatch.setattr(context, "GRADE_S", 0.0)

    report = graded(RIGHT.replace("x * 2", "x * 3"), replace(SUITE, mutants=(telling,)),
                    effort=effort)

    assert first(report).means == "three times"
    assert not [result for result in report.results if result.skipped is Skip.TIME]


def test_more_programs_than_can_be_run_are_refused(graded):
    suite = replace(SUITE, cases=[correctness("many", rand(270_000))])

    report = graded(RIGHT.replace("64", "1"), suite=suite)

    assert (first(report).code, "270000 programs" in first(report).seen) == ("T03", True)


@pytest.mark.parametrize(("grid", "axis", "says"), [
    ("(n,)", 0, ""), ("(1, n)", 1, "70,000 programs along axis 1; CUDA allows 0 to 65,535"),
    ("(1, 1, n)", 2, "70,000 programs along axis 2; CUDA allows 0 to 65,535"),
    ("(n - 69_999 - 2,)", 0, "-1 programs along axis 0")])
def test_a_grid_beyond_the_limits_of_cuda_is_refused_at_a_size_that_is_not_run(
        graded, grid, axis, says):
    text = KERNEL.replace("program_id(0)", f"program_id({axis})").replace(
        "(triton.cdiv(x.numel(), 64),)", f"{grid}").replace(
        "        double_kernel", "        n = triton.cdiv(x.numel(), 64)\n        double_kernel")
    many = replace(SUITE, cases=[launchable("70 000 blocks", rand(70_000 * 64))])

    found = list(graded(text, many, effort="uncompiled").findings())

    assert [finding.code for finding in found] == ["L01"] * bool(says)
    assert says in "".join(finding.seen for finding in found)


def test_cuda_habits_get_a_hint(graded):
    report = graded(RIGHT.replace("torch.empty_like(x)", "torch.empty_like(x, device='cuda')"),
                    effort="first")

    assert (first(report).code, "This grade runs with CPU tensors" in first(report).seen) == (
        "R01", True)


@pytest.mark.parametrize("size", ["(n / 1,)", "n / 1", "n // 1"])
def test_a_quotient_for_a_size_gets_a_hint(size, graded):
    text = RIGHT.replace("    out = torch.empty_like(x)",
                         f"    n = x.numel()\n    out = torch.empty({size})")

    report = graded(text, effort="first")

    hints = [finding for finding in report.findings() if "that `//` gives" in finding.seen]
    assert [finding.code for finding in hints] == ["R01"] * ("//" not in size)


def test_an_error_of_the_learner_s_own_about_a_float_gets_no_hint(graded):
    text = RIGHT.replace("    out = torch.empty_like(x)",
                         "    raise TypeError('x: expected a torch.Tensor, got float')")

    report = graded(text, effort="first")

    assert "`//`" not in first(report).seen


def test_a_layout_taken_for_granted_is_told_from_wrong_values(graded):
    assert first(graded(KERNEL, effort="first")).code == "M08"


def test_undefined_lanes_are_told_from_wrong_values(graded):
    summed = RIGHT.replace("x * 2", "x * 2 + 0 * tl.sum(x, 0)")

    report = graded(summed, effort="first")
    defined = graded(summed.replace("mask=mask)\n    tl", "mask=mask, other=0.0)\n    tl"),
                     effort="uncompiled")

    assert first(report).code == "M06"
    assert defined.verdict is Verdict.PASSED


@pytest.mark.parametrize(("change", "code", "says"), by_default(5, [
    (("    out = torch.empty_like(x)", "    while True: pass\n    out = x"), "R02",
     "did not finish"),
    (("    offs =", "    while n > 0:\n        n = n + 0\n    offs ="), "R02", "did not finish"),
    (("    out = torch.empty_like(x)", "    import ctypes; ctypes.string_at(0)\n    out = x"),
     "R03", "SIGSEGV"),
    (("    out = torch.empty_like(x)", "    import os; os._exit(0)\n    out = x"), "R03",
     "status 0"),
    (("import torch\n", "import torch, os\nos._exit(0)\n"), "R03", "status 0"),
    (("import torch\n", "import torch\nwhile True: pass\n"), "R02", "did not finish"),
    (("torch.empty_like(x)", "torch.empty(100 << 30, dtype=torch.uint8)"), "R04", "memory"),
    (("    out = torch.empty_like(x)", "    hog = [bytearray(1 << 28) for _ in range(400)]\n"
      "    out = x"), "R04", "emory"),
]), ids=["host loop", "kernel loop", "segfault", "exit", "exit at import", "loop at import",
        "100 GB", "list of buffers"])
def test_what_does_not_end_normally_ends_the_grade_with_one_sentence(
        graded, monkeypatch, change, code, says):
    patience = 2.0 if code == "R02" else 20.0
    for room, limit in ((pool, "LOAD_S"), (session, "CALL_S"), (session, "RUN_S")):
        monkeypatch.setattr(room, limit, patience)
    monkeypatch.setattr(oversized, "limits", lambda suite: replace(  # touching 4 GiB takes seconds
        limits(suite), resident=1 << 29))
    assert change[0] in RIGHT

    report = graded(RIGHT.replace(*change), effort="first")
    next_one = graded(RIGHT, effort="uncompiled")

    assert (first(report).code, report.verdict) == (code, Verdict.FAILED), first(report)
    assert says in first(report).seen
    assert next_one.verdict is Verdict.PASSED  # the sandbox is as good as before


@pytest.mark.course
def test_a_run_that_holds_much_memory_when_its_time_is_up_is_out_of_memory(graded, monkeypatch):
    monkeypatch.setattr(session, "CALL_S", 2.0)
    monkeypatch.setattr(pool, "HOG", 64 << 20)
    change = "    out = torch.empty_like(x)", "    HOG\n    while True: pass\n    out = x"

    hog, slow = (first(graded(RIGHT.replace(*change).replace("HOG", line), effort="first"))
                 for line in ("hog = b'x' * (1 << 28)", "hog = None"))

    assert (hog.code, slow.code) == ("R04", "R02")
    assert "The function used 0.3 GB of memory after 2 s" in hog.seen and "2.1 GB" in hog.seen


@pytest.mark.parametrize(("change", "code", "says"), [
    (("    out = ", "    import threading; threading.Thread(target=print).start()\n    out = "),
     "R01", "Host code must not start threads or processes"),
    (("import torch\n", "import helper\nimport torch\n"), "P02",
     "Only the files of the exercise are graded: if `helper` is your own file"),
    (("import torch\n", "import torch\nHOG = bytearray(1 << 36)\n"), "R04",
     "may use 2.1 GB of memory"),
], ids=["a thread", "a file beside it", "memory at import"])
def test_what_a_grade_withholds_is_named_as_the_cause(graded, change, code, says):
    found = first(graded(RIGHT.replace(*change), effort="first"))

    assert (found.code, says in found.seen) == (code, True), found


LOST = [
    ("a host loop", "while True: pass", "R02", "host"),
    ("a kernel loop", "", "R02", "kernel"),
    ("a segfault", "import ctypes; ctypes.string_at(0)", "R03", "host"),
    ("an abort", "import os; os.abort()", "R03", "host"),
    ("a farewell", "import os; os._exit(0)", "R03", ""),
    ("a hog", "hog = [x.new_empty(1 << 28) for _ in [0] * 99]", "R04", "host"),
]


@pytest.mark.parametrize(("host", "code", "where"), [case[1:] for case in LOST],
                         ids=[case[0] for case in LOST])
def test_a_hang_or_a_crash_costs_one_case_and_names_the_line(graded, monkeypatch, host, code,
                                                             where):
    monkeypatch.setattr(session, "CALL_S", 2.0)
    monkeypatch.setattr(session, "RUN_S", 2.0)
    if host:
        text = RIGHT.replace("    out = ", f"""    if x.dtype == torch.float16:
        {host}
    out = """)
    else:
        text = RIGHT.replace("    x = tl.load", """    if x_ptr.dtype.element_ty == tl.float16:
        while n > 0:
            n = n + 0
    x = tl.load""")

    report = graded(text)

    lost = next(r for r in report.results if r.name == "a thousand in float16")
    assert lost.findings[0].code == code
    assert [r.name for r in report.results if r.verdict is Verdict.FAILED] == [lost.name]
    assert report.count(Verdict.PASSED) == 8  # with the compile gate
    line = {"host": "        ", "kernel": "        while n > 0:", "": None}[where]
    if line is not None:
        assert lost.findings[0].line is not None
        assert text.splitlines()[lost.findings[0].line - 1].startswith(line)


def test_a_submission_that_hangs_in_every_case_is_given_up(graded, monkeypatch):
    monkeypatch.setattr(session, "CALL_S", 3.0)
    monkeypatch.setattr(schedule, "LOST_S", 4.5)
    monkeypatch.setattr(pool, "time", SimpleNamespace(monotonic=itertools.count(step=2.0).__next__))

    report = graded(RIGHT.replace("    out =", "    while True: pass\n    out ="))

    lost = [r for r in report.results if r.verdict is Verdict.FAILED]
    assert len(lost) == 3  # of 2 s each, by the clock of the test
    assert [r.findings[0].seen for r in lost[:2]] == [
        "The function did not finish within 3 s.", "The function did not finish within 1 s."]
    assert "which took" in report.results[-2].reason


@pytest.mark.parametrize(("change", "determined"), [
    (("", ""), False),  # a masked load without `other` in a block that is not full
    (("mask=mask)\n    tl", "mask=mask, other=0)\n    tl"), True),
    (("tl.store(out_ptr + offs, x * 2, mask=mask)",
      "tl.atomic_xchg(out_ptr + offs, x * 2, mask=mask)"), False),
], ids=["garbage", "no garbage", "atomics"])
def test_one_run_is_enough_where_nothing_can_differ_in_another(tmp_path, sandbox, change,
                                                                determined):
    path = tmp_path / "kernel.py"
    path.write_text(RIGHT.replace(*change))
    x = torch.randn(1000)

    with session.Session(grader.submission.source.read(path), "double", sandbox) as made:
        recording = made.record([x]).recording
        run = made.replay(recording, [x])
        other = made.replay(recording, [x], order="reverse", poison=1)
        both = made.begin_replay(recording, [x], other=True)()

    assert (run.determined, other.determined) == (determined, determined)
    assert replies.same_bits(run.results[0], other.results[0])
    assert len(both.other) == (not determined and not both.findings)
    assert all(map(replies.same_bits, both.other, other.results))


def test_a_million_printed_lines_are_shortened_and_change_nothing(graded):
    flood = "    print('line\\n' * 1_000_000)\n"

    report = graded(RIGHT.replace("    out = torch", flood + "    out = torch"),
                    effort="uncompiled")

    assert report.verdict is Verdict.PASSED
    assert 0 < len(report.output) < 70_000


def test_python_file_edited_during_a_grade_changes_nothing(tmp_path, sandbox):
    path = tmp_path / "kernel.py"
    path.write_text(RIGHT)

    report = grader.grade(path, SUITE, sandbox=sandbox, on_event=lambda _: path.write_text("x ="))

    assert report.verdict is Verdict.PASSED


def test_an_error_of_ours_is_an_error_and_no_failure(graded):
    broken = replace(SUITE, reference=lambda x: 1 / 0)

    report = graded(RIGHT, suite=broken, effort="uncompiled")

    assert (report.verdict, report.exit_code) == (Verdict.ERROR, 3)


@pytest.mark.parametrize(("loading", "reply"), [
    ("reading the kernels", {"status": "broken", "traceback": "ValueError"}),
    ("reading the kernels", {"status": "malformed", "why": "an unknown target"}),
    ("reading the kernels to compile", {"status": "broken", "traceback": "ValueError"}),
])
@pytest.mark.parametrize("effort", ["whole", "first"])
def test_a_process_that_fails_to_load_the_file_is_an_error_and_no_failure(
        graded, uncached, monkeypatch, loading, reply, effort):
    begin = Processes._begin

    def failing(self, child, request, fds, seconds, what, **more):
        if what != loading:
            return begin(self, child, request, fds, seconds, what, **more)
        child.begin = lambda *_: lambda: reply
        try:
            return begin(self, child, request, fds, seconds, what, **more)
        finally:
            del child.begin

    monkeypatch.setattr(Processes, "_begin", failing)

    report = graded(RIGHT, effort=effort)

    assert (report.verdict, report.exit_code) == (Verdict.ERROR, 3)
    assert not list(report.findings())


def test_public_cases_alone_give_no_evidence(graded):
    report = graded(RIGHT, public_only=True)

    assert [result.name for result in report.results] == [
        "a thousand", "one element", "every launch compiles for the NVIDIA H100 SXM"]
    assert (report.verdict, report.evidence) == (Verdict.PASSED, "")


def test_a_result_copied_from_torch_is_no_result(graded):
    sums = "    y = x.clone()\n    try:\n        y = y + y\n    except BaseException: pass\n"
    launders = RIGHT.replace("    out = torch", sums + "    out = torch")
    launders = launders.replace("(x, out,", "(y, out,")

    assert first(graded(launders, effort="first")).code == "X01"


# ---------------------------------------------------------------------------------------------
# Secrets: each test has a submission that looks for the secret, and shows that it would find it.

FEW = replace(SUITE, cases=SUITE.cases[:3])  # in each call, the whole memory is searched


def scanning(check: str) -> str:
    """The right kernel, printing what ``check`` says at its first call."""
    return RIGHT.replace("    out = torch", f"    {check}\n    out = torch")


SEARCH = '''\
def memory_holds(halves):
    needle = bytes(b ^ 0x55 for b in halves)
    with open("/proc/self/maps") as maps, open("/proc/self/mem", "rb", buffering=0) as memory:
        for line in maps:
            start, end = (int(part, 16) for part in line.split()[0].split("-"))
            if not line.split()[1].startswith("r") or "[v" in line:
                continue
            for position in range(start, end, 1 << 24):
                try:
                    memory.seek(position)
                    data = memory.read(min(1 << 24, end - position) + len(needle) - 1)
                except (OSError, OverflowError):
                    continue
                at = data.find(needle)
                while at >= 0:
                    # the needle itself, just computed here, is no find
                    if position + at < id(needle) or position + at > id(needle) + 128:
                        return True
                    at = data.find(needle, at + 1)
    return False

'''


def hidden(secret: bytes) -> str:
    """The secret in a form that does not itself put it into the worker's memory."""
    return repr(bytes(byte ^ 0x55 for byte in secret))


def found(graded, check: str, suite: Suite = FEW, **options) -> str:
    report = graded(SEARCH + scanning(check), suite, effort="uncompiled", **options)
    assert report.verdict is Verdict.PASSED, first(report)
    return report.output


def test_the_search_finds_what_the_worker_does_hold(graded):
    planted = "kept = bytes([116, 114, 105, 116]) + b'-planted'; print('found:', "

    output = found(graded, planted + f"memory_holds({hidden(b'trit-planted')}))")

    assert "found: True" in output


def test_the_worker_never_holds_the_seed(graded):
    seed = "5eed5eed00c0ffee5eed5eed00c0ffee"

    output = found(graded, f"print('found:', memory_holds({hidden(seed.encode())}))", seed=seed)

    assert "found: False" in output
    assert "found: True" not in output


def test_the_worker_never_holds_an_expected_value(graded, monkeypatch):
    expected: list[bytes] = []

    def reference(x: torch.Tensor) -> torch.Tensor:
        # 24 bytes in the middle of the float64 reference of the first case
        result = x.double() * 2
        if x.dtype == torch.float32 and x.numel() == 1000 and not expected:
            expected.append(result[500:503].numpy().tobytes())
        return result

    suite = replace(FEW, reference=reference)
    graded(RIGHT, suite=suite, seed="aa", effort="uncompiled")
    output = found(graded, f"print('found:', memory_holds({hidden(expected[0])}))", suite,
                   seed="aa")

    assert "found: False" in output
    assert "found: True" not in output


def test_the_worker_has_no_channel_for_a_verdict(graded):
    check = ("import os, sys; print('sockets:', sum('socket' in os.readlink('/proc/self/fd/' + f) "
             "for f in os.listdir('/proc/self/fd') if os.path.exists('/proc/self/fd/' + f) or True "
             "if os.path.islink('/proc/self/fd/' + f))); "
             "print('judging:', sorted(m for m in sys.modules if m in ('grader.judge.grade', "
             "'grader.judge.compare', 'grader.diagnosis', 'grader.judge.perf_limits') "
             "or 'suites' in m)); "
             "print('environment:', sorted(os.environ)); print('arguments:', sys.argv)")

    output = found(graded, check)

    assert "sockets: 1" in output  # the one on which requests come and recordings go
    assert "judging: []" in output
    assert "TRITONLAB" not in output.upper().split("ENVIRONMENT:")[1].split("\n")[0]


def test_nothing_is_drawn_before_the_file_was_imported(graded, monkeypatch):
    drawn = []
    ready = session.Session.ready
    monkeypatch.setattr(session.Session, "ready", lambda self: (ready(self), drawn.append("ready")))
    monkeypatch.setattr(draws.secrets, "token_hex", lambda n: (drawn.append("seed"), "ab" * n)[1])

    report = graded(RIGHT, effort="uncompiled")
    failed = graded(RIGHT.replace("import torch\n", "import torch\nraise ValueError\n"))

    assert drawn[:2] == ["ready", "seed"]
    assert drawn.count("seed") == 1  # the file that cannot be imported got none
    assert (report.seed, failed.seed) == ("ab" * 16, "")


@pytest.mark.parametrize("reply", [
    {"status": "PASSED", "verdict": "PASSED", "exit_code": 0},
    {"status": "returned", "recording": {"verdict": "PASSED"}},
    {"status": "returned", "recording": {"inputs": [], "events": [],
                                         "results": [[0, "float32", [1000], [1], 0]]}},
], ids=["a verdict", "a verdict as recording", "a result from nowhere"])
def test_a_forged_reply_is_never_a_pass(graded, reply):
    forged = RIGHT.replace("    out = torch.empty_like(x)", f'''\
    import os, socket, struct
    text = {json.dumps(reply)!r}.encode()
    for name in os.listdir("/proc/self/fd"):
        try:
            if "socket" in os.readlink("/proc/self/fd/" + name):
                channel = socket.socket(fileno=int(name))
                for header in (b"", struct.pack("<I", len(text)), struct.pack(">I", len(text)),
                               struct.pack("<Q", len(text)), struct.pack(">Q", len(text))):
                    channel.send(header + text)
                channel.detach()
        except OSError:
            pass
    out = torch.empty_like(x)''')

    assert graded(forged, effort="first").verdict is Verdict.FAILED


def test_all_configurations_of_an_autotuner_are_right(graded):
    report = graded(tuned(RIGHT, '{"BLOCK": 128, "FACTOR": 2}'))

    assert report.exit_code == 0


@pytest.mark.parametrize(("others", "code", "number"), [
    ('{"BLOCK": 128, "FACTOR": 3}', "N01", "2 of 2"),
    ('{"BLOCK": 100, "FACTOR": 2}', "L05", "2 of 2"),
    ('{"BLOCK": 32, "FACTOR": 2}), triton.Config({"BLOCK": 128, "FACTOR": 3}', "N01", "3 of 3"),
], ids=["other values", "does not compile", "the third"])
def test_a_configuration_that_a_gpu_may_find_the_fastest_has_to_be_right_too(
        graded, others, code, number):
    finding = first(graded(tuned(RIGHT, others), effort="first"))

    assert finding.code == code
    assert finding.seen.startswith(f"With configuration {number}: ")
