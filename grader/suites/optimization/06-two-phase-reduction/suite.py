"""Hidden tests of reductions across programs: sums, their bits, locked buffers, groups."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import torch

from grader.suite import (
    FLOATS,
    Amplitude,
    Bench,
    Case,
    Cost,
    Function,
    Suite,
    Tolerance,
    call,
    correctness,
    edge,
    error_bounds,
    integers,
    performance,
    rand,
    refuses,
    rows,
    sizes,
    special,
)
from grader.suite.predictions import predictions

FAR = 1 << 30  # elements; the offset of the third row is 2**31
N = 1 << 18  # elements of the sums that are counted
LEAST_SHARE = 1024  # elements per program of a sum, at least
USED = 1 / 0.95  # sectors over the minimum, for 95 % of their bytes used
COUNTS = ("lane_atomics", "program_atomics", "groups")  # predictions that must be exact
INF, NAN = math.inf, math.nan


# ---------------------------------------------------------------------------------------------
# Sums


def total_amplitude(x: torch.Tensor) -> Amplitude:
    return error_bounds.total(x.reshape(-1))


def total_cost(x: torch.Tensor) -> Cost:
    return Cost(bytes=x.numel() * x.element_size() + 4, flops=x.numel())


def sum_cases() -> list[Case]:
    """Returns the cases of both sums."""
    return [
        correctness("1000003 floats around a half", rand(1_000_003, mean=0.5), public=True),
        correctness("1023 floats", rand(1_023, mean=0.5), public=True),
        correctness("2048 and 1 in float16", rows([2_048.0, 1.0], dtype="float16")),
        correctness("10000 in float16 around a half", rand(10_000, dtype="float16", mean=0.5)),
        correctness("9973 in bfloat16", rand(9_973, dtype="bfloat16", mean=0.5)),
        correctness("whole numbers", integers(5_000)),
        correctness("20000 floats around 3", rand(20_000, mean=3.0)),
        correctness("large values of both signs among small ones",
                    special(3_000, values=[1e8, -1e8, 1e8], share=0.01, std=1e-3)),
        correctness("2 x 3 x 50 floats", rand(2, 3, 50, mean=0.5)),
        *(correctness(f"{count} positive floats", rand(count, mean=8.0)) for count in (2, 3, 5)),
        *(correctness(f"{count} positive numbers in {dtype}", rand(count, dtype=dtype, mean=8.0))
          for dtype in ("float16", "bfloat16") for count in (2, 3, 4)),

        edge("no element", rand(0), launches=0),
        edge("a matrix without rows", rand(0, 5), launches=0),
        edge("one element", rand(1)),
        edge("one less than a block", rand(lambda B: B - 1, mean=0.5)),
        edge("one block", rand(lambda B: B, mean=0.5)),
        edge("one more than a block", rand(lambda B: B + 1, mean=0.5)),
        edge("one less than two blocks", rand(lambda B: 2 * B - 1, mean=0.5)),
        edge("seven more than three blocks", rand(lambda B: 3 * B + 7, mean=0.5)),
        edge("every other element", rand(4_000, mean=0.5)[::2], public=True),
        edge("a transposed view", rand(40, 70, mean=0.5).mT),
        edge("a repeated row", rand(1, 50, mean=0.5).then(lambda t: t.expand(30, -1))),
        edge("a slice from the second element", rand(3_001, mean=0.5)[1:]),
        edge("one NaN", special(3_000, values=[NAN], share=0.0)),
        edge("one infinity", special(3_000, values=[INF], share=0.0)),

        refuses("x is a list", [1.0, 2.0], raises=TypeError, mentions=("x", "list")),
        refuses("float64 is not supported", rand(8, dtype="float64"),
                raises=TypeError, mentions=("x", "float64")),
        refuses("an empty int32 tensor is not supported", rand(0, dtype="int32"),
                raises=TypeError, mentions=("x", "int32")),

        sizes(lambda n, dtype: (rand(n, dtype=dtype, mean=0.5),), n=(1, 10_000), dtype=FLOATS,
              count=20),
    ]


# 8 bytes per program, with a limit of programs: less than 1 % more.
MOST = {"traffic": 1.01, "programs": N // LEAST_SHARE + 1, "spills": 0}

sum_atomic = Function(
    entry="sum_atomic",
    parameters=("x",),
    reference=lambda x: x.double().sum(),
    tolerance=Tolerance(total_amplitude),
    peer=lambda x: x.float().sum(),
    reversed_peer=lambda x: x.float().reshape(-1).flip(0).sum(),
    cost=total_cost,
    result_dtype="float32",
    reproducible=False,
    bench=Bench("elements", (1 << 20, 1 << 24, 1 << 27), lambda n: (rand(n),), peer=torch.sum,
                peer_name="torch.sum"),
    cases=[
        *sum_cases(),
        performance("2**18 floats, counted", rand(N, mean=0.5), launches=1, **MOST),
    ],
)

sum_two_phase = Function(
    entry="sum_two_phase",
    parameters=("x",),
    reference=lambda x: x.double().sum(),
    tolerance=Tolerance(total_amplitude),
    peer=lambda x: x.float().sum(),
    reversed_peer=lambda x: x.float().reshape(-1).flip(0).sum(),
    cost=total_cost,
    result_dtype="float32",
    bench=Bench("elements", (1 << 20, 1 << 24, 1 << 27), lambda n: (rand(n),), peer=torch.sum,
                peer_name="torch.sum"),
    cases=[
        *sum_cases(),
        performance("2**18 floats, counted", rand(N, mean=0.5), launches=2, **MOST),
        performance("2**28 floats", rand(1 << 28), spills=0, pass_at=0.75, stretch=0.88),
    ],
)


# ---------------------------------------------------------------------------------------------
# Columns


def column_cost(x: torch.Tensor, groups: int = 8) -> Cost:
    return Cost(bytes=x.numel() * x.element_size() + 4 * x.shape[1], flops=x.numel())


column_sum_locked = Function(
    entry="column_sum_locked",
    parameters=("x",),
    keyword_only=("groups",),
    reference=lambda x, groups=8: x.double().sum(0),
    tolerance=Tolerance(lambda x, groups=8: error_bounds.total(x, 0)),
    peer=lambda x, groups=8: x.float().sum(0),
    reversed_peer=lambda x, groups=8: x.float().flip(0).sum(0),
    cost=column_cost,
    result_dtype="float32",
    contiguous_result=True,
    reproducible=False,
    bench=Bench("rows", (2_048, 8_192, 32_768), lambda n: (rand(n, 4_096),),
                at="4096 columns of float32", peer=lambda x: x.sum(0), peer_name="x.sum(0)"),
    cases=[
        correctness("37 x 130 floats, 8 groups", rand(37, 130), public=True),
        correctness("1000 x 16 floats, 3 groups", rand(1_000, 16), 3, public=True),
        correctness("520 x 16 floats, 1 group", rand(520, 16), 1),
        correctness("600 x 20 floats, 2 groups", rand(600, 20), 2),
        correctness("300 x 150 floats, 8 groups", rand(300, 150)),
        correctness("300 x 40 in float16, 4 groups", rand(300, 40, dtype="float16", mean=0.5), 4),
        correctness("100 x 40 in bfloat16", rand(100, 40, dtype="bfloat16")),
        correctness("whole numbers", integers(300, 33), 4),
        correctness("5 x 40 floats, 300 groups", rand(5, 40), 300),
        correctness("2 x 90 floats", rand(2, 90)),
        correctness("3 x 70 in float16", rand(3, 70, dtype="float16")),
        correctness("2 x 100 in bfloat16", rand(2, 100, dtype="bfloat16")),
        correctness("3 x 64 in bfloat16", rand(3, 64, dtype="bfloat16")),

        edge("one element, 1 group", rand(1, 1), 1),
        edge("one row", rand(1, 257)),
        edge("one column", rand(300, 1), 2),
        edge("no row: the sums are zero", rand(0, 5)),
        edge("no column", rand(5, 0), launches=0),
        edge("a transposed view", rand(33, 100).mT, 4),
        edge("every other row and column", rand(200, 70)[::2, ::2], 4),
        edge("one row repeated 100 times",
             rand(1, 33).then(lambda t: t.expand(100, -1)), 4),
        edge("rows 2**30 elements apart", rand(4, 40, dtype="float16").apart(FAR, 1)),
        edge("70 rows 2**30 elements apart", rand(70, 40, dtype="float16").apart(FAR, 1)),
        edge("columns 2**30 elements apart", rand(40, 4, dtype="float16").apart(1, FAR)),
        edge("NaN in one column", special(100, 3, values=[NAN], share=0.0)),

        refuses("x is None", None, raises=TypeError, mentions=("x", "None")),
        refuses("float64 is not supported", rand(8, 8, dtype="float64"),
                raises=TypeError, mentions=("x", "float64")),
        refuses("one dimension", rand(16), raises=ValueError, mentions=("x", "2", "1")),
        refuses("three dimensions", rand(2, 3, 4), raises=ValueError, mentions=("x", "2", "3")),
        refuses("0 groups", rand(8, 8), 0, raises=ValueError, mentions=("groups", "0")),
        refuses("a negative number of groups", rand(8, 8), -3,
                raises=ValueError, mentions=("groups", "-3")),

        sizes(lambda rows, columns, groups, dtype: (rand(rows, columns, dtype=dtype), groups),
              rows=(1, 40), columns=(1, 100), groups=(1, 9), dtype=FLOATS, count=20),

        performance("1024 x 128 floats, counted", rand(1_024, 128),
                    traffic=1.25, sectors=USED, launches=2, spills=0),
        performance("65536 x 4096 floats", rand(65_536, 4_096),
                    spills=0, pass_at=0.50, stretch=0.70),
    ],
)


# ---------------------------------------------------------------------------------------------
# Groups and predictions

MIB = 1 << 20
# (n, l2_bytes, num_programs): an A100, an H100, an RTX 4090, a small card, and edges between them
PROBLEMS = tuple((n, l2, programs)
                 for n in (1, 16, 1_000, 4_096, 65_536, 1 << 20, 10_000_000, 1 << 27)
                 for l2, programs in ((40 * MIB, 108), (50 * MIB, 132), (72 * MIB, 4_096),
                                      (512 << 10, 1), (4 * MIB, 255), (4 * MIB, 256),
                                      (2 * MIB - 1, 300), (64 * MIB, 3)))


def most_groups(n: int, l2_bytes: int, programs: int) -> int:
    """Returns the expected number of groups, by trying all powers of two."""
    fitting = [1 << power for power in range(9)
               if 1 << power <= programs and 2 * (4 * n << power) <= l2_bytes]
    return max(fitting, default=1)


def asked(problem: Sequence[int], answer: Any) -> str:
    return f"`choose_groups({', '.join(map(str, problem))})` returned {answer!r}"


def groups_fit(answer: Any, problems: Sequence[Sequence[int]]) -> None:
    for (n, l2_bytes, programs), groups in zip(problems, answer, strict=True):
        said = asked((n, l2_bytes, programs), groups)
        assert type(groups) is int and groups >= 1 and not groups & (groups - 1), (
            f"{said}, expected a power of two.")
        most = min(programs, 256)
        assert groups <= most, f"{said}; with {programs} programs, the limit is {most}."
        assert groups == 1 or 2 * groups * n * 4 <= l2_bytes, (
            f"{said}: {groups} buffers of {4 * n:,} bytes take {groups * n * 4:,}, and half of the "
            f"L2 cache is {l2_bytes // 2:,}.")


def groups_are_most(answer: Any, problems: Sequence[Sequence[int]]) -> None:
    for problem, groups in zip(problems, answer, strict=True):
        best = most_groups(*problem)
        assert groups >= best, (
            f"{asked(problem, groups)}: {best} fit as well, and a program would wait for fewer "
            f"others.")


PREDICTIONS = (
    ("lane_atomics", 1_000_000, "Each element is added by an atomic addition."),
    ("program_atomics", 245, "1,000,000 elements are 244 blocks of 4,096 and a part of another."),
    ("two_phase_extra", 2_048, "Each of 256 partial sums is stored once and loaded once, 4 bytes "
     "each time."),
    ("row_ratio", 1.5, "Per four rows of x, a row of a buffer, as long and in float32, is loaded "
     "and stored."),
    ("groups", 128, "128 is the largest power of two up to 132, and 128 buffers of 16 KiB are 2 "
     "MiB, less than 25."),
)

suite = Suite(
    marker="DECIDE",
    host={"choose_groups": ("n", "l2_bytes", "num_programs")},
    functions=[sum_atomic, sum_two_phase, column_sum_locked],
    cases=[
        call("groups fit the cache and the programs", "groups", PROBLEMS, check=groups_fit),
        call("as many groups as fit", "groups", PROBLEMS, check=groups_are_most, code="T07"),
        *predictions(PREDICTIONS, COUNTS),
    ],
)


# ---------------------------------------------------------------------------------------------
# Properties


def test_whole_numbers_give_exact_sums(submission):
    (x,) = submission.draw(integers(600, 7))

    sums = [submission.sum_atomic(x), submission.sum_two_phase(x),
            submission.column_sum_locked(x, 4).sum()]

    exact = x.double().sum().float()
    assert all(torch.equal(one, exact) for one in sums), (
        f"the three ways give {[one.item() for one in sums]}, and the sum is {exact.item()}")


def test_two_phases_give_the_same_bits_again(submission):
    (x,) = submission.draw(rand(100_000))

    first, second = submission.sum_two_phase(x), submission.sum_two_phase(x)

    assert torch.equal(first, second), f"{first.item()!r} and {second.item()!r}"


def test_the_sum_of_twice_the_numbers_is_twice_the_sum(submission):
    (x,) = submission.draw(rand(20_000))

    plain, doubled = submission.sum_two_phase(x), submission.sum_two_phase(2 * x)

    assert torch.equal(doubled, 2 * plain), (
        f"{doubled.item()!r} and twice {plain.item()!r}: doubling rounds nothing")


def test_columns_do_not_mix(submission):
    (x,) = submission.draw(integers(200, 50))
    x[:, 7] = 0.0

    sums = submission.column_sum_locked(x, 2)

    assert sums[7] == 0.0, f"the sum of a column of zeros is {sums[7].item()!r}"
