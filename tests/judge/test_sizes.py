"""Sizes that each grade draws anew: what they meet, how a failure is shrunk and repeated."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest

import grader
from grader import Verdict
from grader.judge.draws import Prepared
from grader.suite import EXACT, Cost, Suite, call, correctness, load, rand, sizes
from grader.suite.sizes import COUNT, Sizes, edges

SUITES = sorted((Path(grader.__file__).parent / "suites").glob("*/*/suite.py"))
RANGE = (1, 5_000)
WINDOW = (2_401, 2_500)  # 2 % of the range

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
    out = torch.empty_like(x)
    n = x.numel()
    double_kernel[(triton.cdiv(n, 1024),)](x, out, n, BLOCK=1024)
    return out
'''
IN_A_WINDOW = KERNEL.replace("x * 2", f"x * 2 + ((n >= {WINDOW[0]}) & (n <= {WINDOW[1]}))")
RAISES = KERNEL.replace("    n = x.numel()\n", "    n = x.numel()\n"
                        f"    assert n < {WINDOW[0]}, 'too wide'\n")
NEVER_ENDS = KERNEL.replace("    n = x.numel()\n", "    n = x.numel()\n"
                            f"    while n >= {WINDOW[0]}:\n        pass\n")
WRONG_ONCE = KERNEL.replace("    n = x.numel()\n", "    n = x.numel()\n    CALLS.append(n)\n"
                            "    if len(CALLS) == 3:\n        return out.fill_(0.0)\n"
                            ).replace("\n\n@triton.jit", "\nCALLS = []\n\n\n@triton.jit")
DRAWN = sizes(lambda rows, n, dtype: (rand(rows, n, dtype=dtype)[0],),
              rows=(1, 9), n=RANGE, dtype=("float32", "float16"))
SUITE = Suite("double", ("x",), lambda x: x.double() * 2, EXACT,
              lambda x: Cost(bytes=2 * x.nbytes), [DRAWN], name="toy/double")


@pytest.fixture
def graded(tmp_path, sandbox):
    def grade(text: str, suite: Suite = SUITE, **options) -> grader.Report:
        path = tmp_path / "kernel.py"
        path.write_text(text)
        return grader.grade(path, suite, sandbox=sandbox, **{"effort": "uncompiled", **options})

    return grade


@pytest.mark.parametrize("range_", [(1, 5_000), (1, 200), (10, 1_009)], ids=str)
def test_a_window_of_two_percent_is_met_by_nearly_half_of_all_grades(range_):
    low, high = range_
    drawn = Sizes(lambda n: (), {"n": range_}, {}, COUNT)
    grades = [{size["n"] for size in drawn.draw(Random(seed))} for seed in range(400)]
    width = (high - low + 1) // 50

    met = [sum(not sizes.isdisjoint(range(start, start + width)) for sizes in grades) / len(grades)
           for start in range(low, high - width + 2, width)]

    assert min(met) > 0.4  # 24 sizes are spread: 24 * 0.02 = 0.48
    assert all(low <= size <= high for sizes in grades for size in sizes)


def test_sizes_are_drawn_at_edges_and_odd_ones_and_are_the_same_for_a_seed():
    assert DRAWN.sizes is not None
    drawn = [size for seed in range(20) for size in DRAWN.sizes.draw(Random(seed))]
    of_a_tile = [size["n"] for size in drawn if min(size["n"] % 16, -size["n"] % 16) <= 1]

    assert 0.4 < len(of_a_tile) / len(drawn) < 0.8  # by chance 3 of 16
    assert {size["dtype"] for size in drawn} == {"float32", "float16"}
    assert {1, 2, 9} <= {size["rows"] for size in drawn}
    assert DRAWN.sizes.draw(Random(1)) == DRAWN.sizes.draw(Random(1)) != DRAWN.sizes.draw(Random(2))
    assert {1, 2, 3, 63, 64, 65, 99, 100} <= set(edges(1, 100)) <= set(range(1, 101))


def test_a_failure_shrinks_to_the_smallest_size_within_its_tries():
    drawn = Sizes(lambda m, n: (), {"m": (1, 4_000), "n": (3, 4_000)}, {"dtype": ("a", "b")}, 5)
    tried = []

    def fails(size):
        tried.append(size)
        return size["m"] >= 7 and 2_401 <= size["n"] <= 2_500

    smallest = drawn.shrunk({"m": 3_217, "n": 2_450, "dtype": "b"}, fails)

    assert smallest == {"m": 7, "n": 2_401, "dtype": "a"}
    assert len(tried) <= 28


@pytest.mark.course
def test_a_kernel_wrong_in_a_window_of_sizes_fails_a_quarter_of_all_grades(graded):
    seeds = [f"{seed:02x}" for seed in range(20)]

    right = [graded(KERNEL, seed=seed).verdict for seed in seeds]
    wrong = [graded(IN_A_WINDOW, seed=seed) for seed in seeds]

    assert right == [Verdict.PASSED] * 20
    assert sum(report.verdict is Verdict.FAILED for report in wrong) >= 5


def failing(graded, text: str) -> grader.Report:
    reports = (graded(text, seed=f"{seed:02x}") for seed in range(20))
    return next(report for report in reports if report.verdict is Verdict.FAILED)


def test_a_failure_is_shown_at_the_smallest_size_and_repeated_by_its_seed(graded):
    report = failing(graded, IN_A_WINDOW)
    shown = report.first_failure

    again = graded(IN_A_WINDOW, seed=report.seed, only=shown.name)

    assert shown.findings[0].code == "N01"
    assert shown.findings[0].seen.startswith(
        "At rows = 1, n = 2,401, dtype = float32 (smallest failing size; drawn: rows = ")
    assert shown.replay == f"--case 'sizes drawn anew' --seed {report.seed}"
    assert again.first_failure.findings[0].seen == shown.findings[0].seen
    assert again.first_failure.details.inputs == ("x: float32, 2,401, stride 1",)


@pytest.mark.parametrize(("text", "code", "size"), [
    (RAISES, "R01", "n = 2,401, "), (NEVER_ENDS, "R02", "n = "),
], ids=["raises", "does not end"])
def test_a_size_at_which_nothing_is_returned_is_named(graded, monkeypatch, text, code, size):
    monkeypatch.setattr("grader.processes.session.CALL_S", 0.5)

    finding = graded(text, seed="01").first_failure.findings[0]

    assert finding.code == code
    assert finding.seen.startswith("At rows = ") and size in finding.seen.partition(": ")[0]


def test_a_failure_that_does_not_come_again_is_still_a_failure(graded):
    report = graded(WRONG_ONCE, seed="01")

    assert report.verdict is Verdict.FAILED
    assert report.first_failure.findings[0].seen.startswith("At rows = ")


def test_drawn_sizes_come_last_and_are_not_compiled(graded):
    suite = Suite("double", ("x",), SUITE.reference, EXACT, SUITE.cost,
                  [DRAWN, correctness("a thousand", rand(1_000))])

    report = graded(KERNEL, suite, effort="whole")

    assert [result.name for result in report.results[:2]] == ["a thousand", DRAWN.name]
    assert report.results[2].facts == {"compiled": "1 launches"}


def test_after_another_failure_a_drawn_size_is_not_shrunk(graded):
    suite = Suite("double", ("x",), SUITE.reference, EXACT, SUITE.cost,
                  [DRAWN, correctness("a thousand", rand(1_000))])

    report = graded(KERNEL.replace("x * 2", "x * 3"), suite, seed="01")

    assert [result.verdict for result in report.results] == [Verdict.FAILED] * 2
    assert "smallest" not in report.results[1].findings[0].seen


def test_drawn_sizes_are_prepared_before_a_save(graded):
    prepared = Prepared(SUITE)
    ready = sum(1 for _ in prepared.steps())

    report = graded(KERNEL, prepared=prepared)

    assert 20 <= ready <= COUNT
    assert (report.verdict, len(prepared.sized_by)) == (Verdict.PASSED, ready)


def test_a_call_of_host_code_is_asked_at_drawn_sizes(graded):
    def whole_blocks(answer, n):
        assert answer == -(-n // 64), f"{answer} blocks for {n} elements"

    text = KERNEL + "\n\ndef blocks(n):\n    return n // 64 + 1\n"
    asked = call("", "blocks", check=whole_blocks).call
    suite = Suite(host={"blocks": ("n",)}, cases=[
        sizes(lambda n: (n,), n=(60, 70), call=asked)], name="toy/blocks")

    finding = graded(text, suite, seed="01").first_failure.findings[0]

    assert finding.seen.startswith("At n = 64")
    assert "2 blocks for 64 elements" in finding.seen


@pytest.mark.parametrize("path", SUITES, ids=lambda path: path.parent.name)
def test_every_suite_draws_sizes_on_which_no_mutant_depends(path):
    suite = load(path)
    drawn = [case for case in suite.all_cases if case.sizes]

    assert sum(case.sizes.count for case in drawn) >= 20
    assert {name for mutant in suite.mutants for name in (*mutant.wrong, *mutant.right)}.isdisjoint(
        case.name for case in drawn)
