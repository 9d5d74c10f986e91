"""The self-test of suites: ours pass it, and weak ones fail it for each way of being weak."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import torch

from grader.judge import discrimination
from grader.judge.discrimination import ENOUGH, SCALED, WRONG, SelfTest, examine
from grader.suite import (
    EXACT,
    Amplitude,
    Cost,
    Sparse,
    Suite,
    Tolerance,
    correctness,
    edge,
    error_bounds,
    full,
    integers,
    load,
    performance,
    rand,
    refuses,
    rows,
)

pytestmark = pytest.mark.course

SUITES = sorted((Path(__file__).parents[2] / "grader" / "suites").rglob("suite.py"))
DTYPES = ("float32", "float16", "bfloat16")


def normalise(x: torch.Tensor) -> torch.Tensor:
    return x / x.abs().sum(1, keepdim=True)


def toy(*cases, tolerance=None, **changes) -> Suite:
    """Each row divided by the sum of its absolute values."""
    def amplitude(x: torch.Tensor) -> Amplitude:
        exact = normalise(x.double()).abs()
        return Amplitude(2 * exact, exact, x.shape[1])

    suite = Suite(
        entry="normalise", parameters=("x",), reference=lambda x: normalise(x.double()),
        tolerance=tolerance or Tolerance(amplitude), cost=lambda x: Cost(2 * x.nbytes), cases=cases,
        peer=lambda x: normalise(x.float()).to(x.dtype),
        reversed_peer=lambda x: normalise(x.flip(1).float()).flip(1).to(x.dtype),
    )
    return replace(suite, **changes)


GOOD = [correctness(f"{width} columns in {dtype}", rand(8, width, dtype=dtype))
        for dtype in DTYPES for width in (3, 5, 9, 1000)]


def possible(suite: Suite) -> set[str]:
    """The wrong answers to expect: the first input is one if a result has the shape of an input.

    Sums are of another shape than what is summed, except in cases where the two are equal, and the
    result of a copy is the first input.
    """
    generator = torch.Generator().manual_seed(1)
    for part in suite.parts:
        for case in part.cases if part.entry else ():
            inputs = discrimination._drawn(case, generator)
            tensors = [value for value in inputs or () if isinstance(value, torch.Tensor)]
            shapes = {value.shape for value in tensors}
            if tensors and any(right.numel() and right.shape in shapes
                               and not (right.shape == tensors[0].shape
                                        and torch.equal(right.nan_to_num(),
                                                        tensors[0].to(right.dtype).nan_to_num()))
                               for right in discrimination._results(part.reference(*inputs))):
                return set(WRONG)
    return set(WRONG) - {"the first input"}


def count(examined: SelfTest, outcome: str) -> int:
    return sum(trial.outcome == outcome for trial in examined.trials)


@pytest.mark.parametrize("path", SUITES, ids=lambda path: path.parent.name)
def test_every_suite_of_the_course_tells_wrong_from_right(path):
    suite = load(path)

    examined = examine(suite, 1)  # ever the same inputs; `tritonlab check` draws fresh ones

    assert examined.faults == ()
    assert count(examined, "missed") == count(examined, "failed") == 0
    caught = [trial.answer.partition(" as result ")[0] for trial in examined.trials
              if trial.outcome == "caught"]
    assert set(caught) >= possible(suite)
    # All others are like the right answer, or within what the roundings of a long sum may do.
    wrong = len(examined.trials) - count(examined, "passed")
    assert len(caught) > 60
    assert len(caught) >= 0.7 * wrong
    # The right answers: the exact one rounded, and torch's.
    assert count(examined, "passed") >= 2 * len({trial.case for trial in examined.trials})


def test_a_good_suite_passes_whatever_the_seed():
    for seed in range(20):
        examined = examine(toy(*GOOD), seed)

        assert examined.faults == ()
        assert count(examined, "passed") == 3 * len(GOOD)


def test_the_same_seed_gives_the_same_trials_and_no_seed_another_one():
    suite = toy(*GOOD)

    assert examine(suite, 7) == examine(suite, 7)
    assert examine(suite) != examine(suite)


def faults_of(suite: Suite) -> str:
    return "\n".join(examine(suite, 3).faults)


def test_inputs_of_zeros_hide_every_wrong_answer():
    zeros = [correctness(f"{n} zeros", full(8, n, value=0.0), full(8, n, value=0.0))
             for n in (5, 7, 9)]
    suite = Suite(entry="add", parameters=("x", "y"), cost=lambda x, y: Cost(3 * x.nbytes),
                  reference=lambda x, y: x.double() + y.double(), tolerance=EXACT, cases=zeros,
                  peer=lambda x, y: x + y)

    faults = faults_of(suite)

    for answer in set(WRONG) - {"ones"}:
        assert f"{answer} fails in 0 of 3 cases in float32" in faults


def test_constant_inputs_hide_the_mean_and_the_reversed_answer():
    constant = [correctness(f"{n} threes", full(8, n, value=3.0)) for n in (5, 7, 9)]

    faults = faults_of(toy(*constant))

    assert "the mean of the answer fails in 0 of 3 cases" in faults
    assert "the reversed answer fails in 0 of 3 cases" in faults
    assert "zeros" not in faults
    assert "ones fails" not in faults


@pytest.mark.parametrize("answer", WRONG)
def test_a_tolerance_that_forgives_everything_is_found_by_each_answer(answer):
    def loose(x: torch.Tensor) -> Amplitude:
        return Amplitude(torch.full(x.shape, 1e9))

    faults = faults_of(toy(*GOOD, tolerance=Tolerance(loose)))

    assert f"float16: {answer} passes" in faults or f"{answer} fails in 0 of 4 cases" in faults


def test_an_absolute_tolerance_of_a_hundredth_is_found_where_answers_are_small():
    def absolute(x: torch.Tensor) -> Amplitude:
        return Amplitude(torch.full(x.shape, 1e-2 * 2**22))

    faults = faults_of(toy(*GOOD, tolerance=Tolerance(absolute)))

    assert "1000 columns in float16: zeros passes, although it is off by up to 1" in faults
    assert "1000 columns in float16: the reversed answer passes" in faults
    assert f"{SCALED} fails in" in faults


def test_outputs_that_equal_an_input_are_found():
    ones = [correctness(f"{n} columns", rand(n, 1), rand(n, 1)) for n in (5, 7, 9)]
    suite = Suite(entry="first", parameters=("x", "y"), cost=lambda x, y: Cost(3 * x.nbytes),
                  reference=lambda x, y: x.double(), tolerance=EXACT, cases=ones,
                  peer=lambda x, y: x.clone())

    assert faults_of(suite) == ("the first input fails in 0 of 3 cases in float32; it has to fail "
                                f"in {ENOUGH} at least")


def test_a_copy_may_equal_its_input_where_moving_is_the_task_and_only_in_all_cases():
    copies = [correctness(f"{n} columns", rand(n, 7)) for n in (5, 7, 9)]
    suite = Suite(entry="copied", parameters=("x",), cost=lambda x: Cost(2 * x.nbytes),
                  reference=lambda x: x.double(), tolerance=EXACT, cases=copies,
                  peer=lambda x: x.clone(), moves="deny")
    shifts = replace(suite, cases=[correctness("0 places", rand(5), 0),
                                   correctness("1 place", rand(5), 1)], parameters=("x", "k"),
                     reference=lambda x, k: x.double().roll(k), peer=lambda x, k: x.roll(k))

    assert not faults_of(suite)
    assert "the first input" in faults_of(shifts)


def test_the_sum_of_a_single_row_may_equal_that_row():
    suite = Suite(entry="sums", parameters=("x",), cost=lambda x: Cost(x.nbytes),
                  reference=lambda x: x.double().sum(0), peer=lambda x: x.sum(0),
                  reversed_peer=lambda x: x.flip(0).sum(0),
                  tolerance=Tolerance(lambda x: error_bounds.total(x, dim=0)),
                  cases=[correctness("4 rows", rand(4, 9)), edge("one row", rand(1, 9)),
                         edge("one number", rand(1, 1))])

    tested = examine(suite, seed=1)

    assert tested.faults == ()
    assert not [t for t in tested.trials if t.answer == "the first input"]


@pytest.mark.parametrize("by_chance", [True, False])
def test_a_sum_that_is_nearly_zero_by_chance_is_drawn_again(by_chance):
    draws = []

    def balanced(x: torch.Tensor) -> torch.Tensor:
        draws.append(x)
        return x - x.mean() if not by_chance or len(draws) == 1 else x

    suite = Suite(entry="sums", parameters=("x",), cost=lambda x: Cost(x.nbytes),
                  reference=lambda x: x.double().sum(1), peer=lambda x: x.sum(1),
                  reversed_peer=lambda x: x.flip(1).sum(1), tolerance=Tolerance(error_bounds.total),
                  cases=[correctness("3 rows", rand(3, 1000)),
                         edge("one row", rand(1, 1000).then(balanced))])

    faults = examine(suite, seed=1).faults

    assert any("one row: zeros passes" in fault for fault in faults) != by_chance


def test_one_weak_dtype_among_good_ones_is_named():
    weak = [correctness(f"{n} equal halves", full(8, n, value=0.5, dtype="float16"))
            for n in (5, 7, 9)]
    cases = [case for case in GOOD if "float16" not in case.name or "bfloat16" in case.name]

    faults = faults_of(toy(*cases, *weak))

    assert "the reversed answer fails in 0 of 3 cases in float16" in faults
    assert "float32" not in faults


def test_a_reference_that_torch_does_not_reach_is_found():
    suite = toy(*GOOD, reference=lambda x: normalise(x.double()) * (1 + 2**-8))

    faults = faults_of(suite)

    assert "torch in the same dtype fails" in faults
    assert "torch with the reduction reversed fails" in faults


def test_a_tolerance_too_narrow_for_another_order_of_summation_is_found():
    def narrow(x: torch.Tensor) -> Amplitude:
        return Amplitude(0.0, 0.0, x.shape[1])

    suite = toy(*GOOD, tolerance=Tolerance(narrow))

    assert "torch with the reduction reversed fails" in "\n".join(
        fault for seed in range(5) for fault in examine(suite, seed).faults)


def test_an_amplitude_that_is_no_bound_is_a_fault_of_the_suite():
    def broken(x: torch.Tensor) -> Amplitude:
        return Amplitude(torch.full(x.shape, float("nan")))

    faults = faults_of(toy(*GOOD, tolerance=Tolerance(broken)))

    assert "3 columns in float32: the amplitude is negative, NaN or infinite" in faults


def test_suites_without_cases_or_peers_are_faulty():
    assert "no case compares values" in faults_of(toy())
    assert "has no `peer`" in faults_of(toy(*GOOD, peer=None))
    assert "but no `reversed_peer`" in faults_of(toy(*GOOD, reversed_peer=None))
    assert "the suite asks for [torch.float32]" in faults_of(toy(*GOOD, peer=lambda x: x.double()))


def test_refusals_empty_results_and_what_fits_no_memory_are_not_tried():
    more = [
        edge("no row", rand(0, 3)),
        edge("advice only", rand(4, 3), advisory=True),
        edge("too large", Sparse(2**31)),
        refuses("a list", [1.0], raises=TypeError),
        performance("on a GPU", rand(2**15, 2**15), pass_at=0.5),
    ]

    examined = examine(toy(*GOOD, *more), 1)

    assert {trial.case for trial in examined.trials} == {case.name for case in GOOD}
    assert examined.faults == ()


def test_nan_and_infinities_do_not_give_a_wrong_answer_away():
    holes = [correctness(f"nothing finite {n}", rows([float("nan"), 1.0, 2.0])) for n in range(4)]

    faults = faults_of(toy(*holes))

    assert "zeros fails in 0 of 4 cases" in faults


def test_whole_numbers_are_compared_and_scaling_does_not_apply_to_them():
    cases = [correctness(f"{n} integers", integers(n, dtype="int32"), integers(n, dtype="int32"))
             for n in (50, 70, 90)]
    suite = Suite(entry="add", parameters=("x", "y"), cost=lambda x, y: Cost(3 * x.nbytes),
                  reference=lambda x, y: x + y, tolerance=EXACT, cases=cases,
                  peer=lambda x, y: x + y)

    examined = examine(suite, 1)

    assert examined.faults == ()
    assert SCALED not in {trial.answer for trial in examined.trials}


def layer_norm_backward(dy, x, w):
    """dx, dw and db by torch's own differentiation, in the precision of its inputs."""
    x, w = x.detach().requires_grad_(), w.detach().requires_grad_()
    b = torch.zeros_like(w, requires_grad=True)
    torch.nn.functional.layer_norm(x, x.shape[1:], w, b, 1e-5).backward(dy)
    return x.grad, w.grad, b.grad


def backward_suite(amplitude) -> Suite:
    # Few terms and many results: only there does a factor of 1 + 64 u pass what rounding may do.
    cases = [correctness(f"{rows} x {n}", rand(rows, n), rand(rows, n, mean=1.0), rand(n, mean=1.0))
             for rows, n in ((40, 3), (50, 3), (60, 4), (3, 70), (4, 80), (5, 90))]
    return Suite(
        entry="layer_norm_backward", parameters=("dy", "x", "weight"), cases=cases,
        reference=lambda dy, x, w: layer_norm_backward(dy.double(), x.double(), w.double()),
        tolerance=Tolerance(amplitude), cost=lambda dy, x, w: Cost(3 * x.nbytes),
        peer=layer_norm_backward,
        reversed_peer=lambda dy, x, w: [
            g.flip(-1) for g in layer_norm_backward(dy.flip(1), x.flip(1), w.flip(0))],
    )


def test_each_of_several_results_is_made_wrong_alone():
    examined = examine(backward_suite(error_bounds.layer_norm_backward), 1)

    answers = {trial.answer for trial in examined.trials if trial.outcome == "caught"}
    assert examined.faults == ()
    assert {f"zeros as result {n}" for n in (1, 2, 3)} <= answers


def test_a_loose_last_result_is_found_beside_strict_ones():
    def loose(dy, x, w):
        dx, dw, db = error_bounds.layer_norm_backward(dy, x, w)
        return dx, dw, replace(db, pointwise=1e9)

    faults = faults_of(backward_suite(loose))

    assert "zeros as result 3 " in faults
    assert "as result 1 fails in 0" not in faults
