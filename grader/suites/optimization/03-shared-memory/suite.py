"""Hidden tests of on-chip memory: Gram matrices, statistics of columns, plans, predictions."""

from __future__ import annotations

import ast
import math
from collections.abc import Mapping, Sequence
from typing import Any

import torch

from grader.suite import (
    FLOAT32,
    FLOATS,
    KAPPA,
    TENSOR_CORES,
    Amplitude,
    Bench,
    Cost,
    Function,
    Input,
    Suite,
    Tolerance,
    call,
    correctness,
    edge,
    error_bounds,
    full,
    integers,
    performance,
    rand,
    reads,
    refuses,
    row,
    rows,
    sizes,
)
from grader.suite.predictions import predictions

INF, NAN = math.inf, math.nan
FAR = 1 << 30  # elements; the offset of the third row is 2**31
SIDE = 256  # of the Gram matrix whose traffic is counted
SMEM = 101_376  # bytes: the limit of a program on a consumer GPU, 99 KiB
USED = 1 / 0.95  # sectors over the minimum, for 95 % of their bytes used
COUNTS = ("fetches_16", "merges", "levels")  # predictions that must be exact


# ---------------------------------------------------------------------------------------------
# Gram matrices


def gram(x: torch.Tensor) -> torch.Tensor:
    return x.double() @ x.double().mT


def gram_peer(x: torch.Tensor) -> torch.Tensor:
    return (x.float() @ x.float().mT).to(x.dtype)


def gram_cost(x: torch.Tensor) -> Cost:
    """Returns the cost: x once, the result once, and the FLOP of a full product."""
    m, k = x.shape
    return Cost(bytes=(m * k + m * m) * x.element_size(), flops=2 * m * m * k)


# ---------------------------------------------------------------------------------------------
# Statistics


def column_stats(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    mean = x.double().mean(0)
    return mean, ((x.double() - mean) ** 2).mean(0)


def stats_amplitude(x: torch.Tensor) -> tuple[Amplitude, Amplitude]:
    """Returns the amplitudes of mean and variance.

    A mean is a sum; an error d of the mean changes each squared distance by 2 d times a deviation.
    A float32 mean of 10,000 is off by up to 0.0005 in any implementation, and merged statistics
    differ by as much from block to block, so a variance of 1 may be off by a thousandth after a
    single pass. A column of equal values may have a variance of the square of eight such roundings.
    """
    _, var = column_stats(x)
    size = x.double().abs().mean(0)
    moved = 2 * var.sqrt() * size + KAPPA * FLOAT32 * (8 * size) ** 2
    return (error_bounds.mean(x, 0),
            Amplitude(pointwise=4 * var + moved, reduced=var, length=max(1, x.shape[0])))


def stats_peer(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    return x.float().mean(0), x.float().var(0, correction=0)


def stats_cost(x: torch.Tensor) -> Cost:
    return Cost(bytes=x.numel() * x.element_size() + 8 * x.shape[1], flops=5 * x.numel())


def far_from_zero(rows_: int, columns: int) -> Input:
    """Returns columns with standard deviation 1 and different means of 10,000 and more."""
    return rand(rows_, columns, mean=1e4).then(lambda t: t + 50.0 * torch.arange(columns))


def blocks_apart(rows_: int, columns: int, block: int) -> Input:
    """Returns rows whose mean changes by 50 per block, which is most of the variance."""
    def shifted(t: torch.Tensor) -> torch.Tensor:
        return t + 50.0 * (torch.arange(rows_) // block)[:, None]

    return rand(rows_, columns).then(shifted)


# ---------------------------------------------------------------------------------------------
# Plans

SIDES_MN, SIDES_K, MOST_ELEMENTS = (16, 32, 64, 128, 256), (16, 32, 64, 128), 32_768

# (m, n, k, itemsize, smem_bytes, num_stages); 0 stages: the default
PROBLEMS = (
    (256, 256, 256, 2, 49_152, 0),
    (4_096, 4_096, 4_096, 2, 49_152, 3),
    (4_096, 4_096, 4_096, 2, 101_376, 3),
    (4_096, 4_096, 4_096, 2, 232_448, 3),
    (4_096, 4_096, 4_096, 4, 101_376, 3),
    (4_096, 4_096, 4_096, 4, 232_448, 2),
    (4_096, 4_096, 4_096, 2, 101_376, 1),
    (8_192, 128, 4_096, 2, 101_376, 3),
    (128, 8_192, 4_096, 2, 101_376, 3),
    (1_000, 300, 70, 2, 101_376, 4),
    (1, 1, 1, 4, 49_152, 2),
    (513, 257, 100_000, 1, 166_912, 5),
    (16, 16, 16, 2, 1_024, 1),
    (300, 1_000, 500, 8, 20_000, 2),
)
Plan = tuple[int, int, int, int, int]


def costs(problem: Sequence[int], sides: Sequence[int]) -> tuple[int, int]:
    """Returns the shared memory of a program and the traffic of all, in bytes."""
    m, n, k, itemsize, _, stages = problem
    block_m, block_n, block_k = sides
    elements = m * k * math.ceil(n / block_n) + k * n * math.ceil(m / block_m) + m * n
    return (stages or 3) * (block_m + block_n) * block_k * itemsize, elements * itemsize


def legal(problem: Sequence[int]) -> list[Plan]:
    """Returns all plans that fit, the best first."""
    found = []
    for sides in ((a, b, c) for a in SIDES_MN for b in SIDES_MN for c in SIDES_K):
        smem, traffic = costs(problem, sides)
        if sides[0] * sides[1] <= MOST_ELEMENTS and smem <= problem[4]:
            found.append((*sides, smem, traffic))
    return sorted(found, key=lambda plan: (plan[4], -plan[2], plan[0] * plan[1], -plan[1]))


def asked(problem: Sequence[int], plan: Any) -> str:
    *sizes, stages = problem
    stated = [*map(str, sizes), *([f"num_stages={stages}"] if stages else [])]
    return f"`plan_tiles({', '.join(stated)})` returned {_sides(plan)}"


def _sides(plan: Sequence[int]) -> str:
    return " x ".join(map(str, plan[:3]))


def plans_fit(answer: Any, problems: Sequence[Sequence[int]]) -> None:
    for problem, plan in zip(problems, answer, strict=True):
        *sides, smem, traffic = plan
        said = asked(problem, plan)
        for side, among, name in zip(sides, (SIDES_MN, SIDES_MN, SIDES_K), "mnk", strict=True):
            assert side in among, f"{said}: block_{name} is not in {among}."
        assert sides[0] * sides[1] <= MOST_ELEMENTS, (
            f"{said}: the tile has {sides[0] * sides[1]:,} elements, and the limit is "
            f"{MOST_ELEMENTS:,}.")
        needed, moved = costs(problem, sides)
        stages = problem[5] or 3
        assert needed <= problem[4], (
            f"{said}: {stages} x {needed // stages:,} bytes are {needed:,} bytes of shared memory, "
            f"and the limit is {problem[4]:,}.")
        assert smem == needed, (
            f"{said} with smem_bytes {smem:,}: {stages} stages of two tiles take {needed:,} bytes.")
        assert traffic == moved, (
            f"{said} with traffic_bytes {traffic:,}: its programs move {moved:,} bytes.")


def plans_are_least(answer: Any, problems: Sequence[Sequence[int]]) -> None:
    for problem, plan in zip(problems, answer, strict=True):
        best = legal(problem)[0]
        assert plan[4] <= best[4], (
            f"{asked(problem, plan)}, which moves {plan[4]:,} bytes; {best[4]:,} are possible.")


def ties_are_broken(answer: Any, problems: Sequence[Sequence[int]]) -> None:
    for problem, plan in zip(problems, answer, strict=True):
        best = legal(problem)[0]
        assert tuple(plan) == best, (
            f"{asked(problem, plan)} with {plan[4]:,} bytes; by the rule for ties it is "
            f"{_sides(best)} with {best[4]:,}: the larger block_k, then the smaller tile, then the "
            "larger block_n.")


def is_frozen(answer: Any) -> None:
    assert answer is False, "A field of a TilePlan could be assigned: the class is not frozen."


# ---------------------------------------------------------------------------------------------
# Texts and predictions


def reduces_by_itself(texts: Mapping[str, str]) -> None:
    """Checks that `tl.reduce`, by any name, is called with a function of the file."""
    tree = ast.parse(texts["kernel.py"])
    own = {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}
    given = {name.id for node in ast.walk(tree)
             if isinstance(node, ast.Call) and _last_name(node.func) == "reduce"
             for value in [*node.args, *(keyword.value for keyword in node.keywords)]
             for name in ast.walk(value) if isinstance(name, ast.Name)}
    assert own & given, (
        "No kernel passes a function of this file to `tl.reduce`, so the statistics of a block's "
        "rows are not merged by a tree reduction.")


def _last_name(node: ast.expr) -> str:
    return node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", "")


PREDICTIONS = (
    ("fetches_16", 32, "A row of x belongs to 16 tiles of the result as the left operand, and to "
     "16 more as the right one."),
    ("gram_16_bytes", 4_325_376, "65,536 elements are loaded 32 times, and 65,536 are stored once, "
     "2 bytes each."),
    ("gram_128_bytes", 655_360, "65,536 elements are loaded 4 times, and 65,536 are stored once, "
     "2 bytes each."),
    ("buffers", 98_304, "A block of 128 x 64 elements of 2 bytes has 16,384 bytes, and each of 3 "
     "stages has two blocks."),
    ("shared_elementwise", 0, "Each thread loads, adds and stores its own elements. Threads "
     "exchange nothing, so nothing goes through shared memory."),
    ("column_share", 0.125, "The elements of a column are a row apart, each in a different "
     "sector: 4 bytes of 32 are used."),
    ("merges", 31, "Each merge reduces the number of results by one, from 32 to 1."),
    ("levels", 5, "Each level halves the number of statistics: 32, 16, 8, 4, 2, 1."),
)


# ---------------------------------------------------------------------------------------------
# The suite

gram_function = Function(
    entry="gram",
    parameters=("x",),
    reference=gram,
    tolerance=Tolerance(lambda x: error_bounds.matmul(x, x.mT), TENSOR_CORES, products=(0,)),
    peer=gram_peer,
    reversed_peer=lambda x: gram_peer(x.flip(1)),
    cost=gram_cost,
    contiguous_result=True,
    bench=Bench("rows and columns", (512, 1_024, 2_048, 4_096, 8_192),
                lambda n: (rand(n, n, dtype="float16"),), at="square matrices of float16",
                peer=lambda x: x @ x.mT, peer_name="x @ x.T"),
    cases=[
        correctness("65 x 33 floats", rand(65, 33), public=True),
        correctness("130 x 257 in float16", rand(130, 257, dtype="float16"), public=True),
        correctness("64 x 32 in float16", rand(64, 32, dtype="float16")),
        correctness("1 x 7 floats", rand(1, 7)),
        correctness("64 x 32 in bfloat16", rand(64, 32, dtype="bfloat16")),
        correctness("128 x 100 floats", rand(128, 100)),
        correctness("100 x 2 floats", rand(100, 2)),
        correctness("90 x 3 floats", rand(90, 3)),
        correctness("110 x 5 floats", rand(110, 5)),
        correctness("300 x 20 in float16", rand(300, 20, dtype="float16")),
        correctness("400 x 40 in bfloat16", rand(400, 40, dtype="bfloat16")),
        correctness("sums of 1024 numbers around a half in float16",
                    rand(48, 1_024, dtype="float16", mean=0.5)),
        correctness("sums of 512 floats around a half", rand(48, 512, mean=0.5)),
        correctness("whole numbers in float16", integers(140, 64, dtype="float16")),

        edge("no row", rand(0, 8), launches=0),
        edge("K is 0: the result is zero", rand(70, 0, dtype="float16")),
        edge("one element", rand(1, 1, dtype="float16")),
        edge("one column", rand(144, 1, dtype="float16")),
        edge("a transposed view", rand(32, 72, dtype="float16").mT, public=True),
        edge("every other row of a wider matrix", rand(140, 200, dtype="float16")[::2, 30:90]),
        edge("every third column", rand(40, 150)[:, ::3]),
        edge("one row repeated 70 times",
             rand(1, 48, dtype="float16").then(lambda t: t.expand(70, -1))),
        edge("a matrix that starts at the second element of its memory",
             rand(40 * 32 + 1, dtype="float16").then(lambda t: t[1:].view(40, 32))),
        edge("rows 2**30 elements apart", rand(4, 40, dtype="float16").apart(FAR, 1)),
        edge("columns 2**30 elements apart", rand(40, 4, dtype="float16").apart(1, FAR)),
        edge("NaN in row 3", rows(*(row(40, {7: NAN} if i == 3 else None) for i in range(70)))),
        edge("infinity in the last row in float16",
             rows(*(row(40, {39: INF} if i == 69 else None) for i in range(70)),
                  dtype="float16")),

        refuses("x is a list", [[1.0, 2.0]], raises=TypeError, mentions=("x", "list")),
        refuses("float64 is not supported", rand(8, 8, dtype="float64"),
                raises=TypeError, mentions=("x", "float64")),
        refuses("one dimension", rand(16), raises=ValueError, mentions=("x", "2", "1")),
        refuses("three dimensions", rand(3, 8, 16), raises=ValueError, mentions=("x", "2", "3")),

        sizes(lambda m, k, dtype: (rand(m, k, dtype=dtype),), m=(1, 80), k=(1, 150), dtype=FLOATS),

        # 1.5 times the traffic of the planner's tiles, which load x four times.
        performance("256 x 256 in float16, counted", rand(SIDE, SIDE, dtype="float16"),
                    traffic=3.0, shared=SMEM, spills=0, tensor_cores=True),
        performance("4096 x 4096 in float16", rand(4_096, 4_096, dtype="float16"),
                    shared=SMEM, spills=0, tensor_cores=True, pass_at=0.45, stretch=0.65),
    ],
)

stats_function = Function(
    entry="column_stats",
    parameters=("x",),
    reference=column_stats,
    tolerance=Tolerance(stats_amplitude),
    peer=stats_peer,
    reversed_peer=lambda x: stats_peer(x.flip(0)),
    cost=stats_cost,
    result_names=("mean", "var"),
    result_dtype="float32",
    contiguous_result=True,
    bench=Bench("columns", (2_048, 8_192, 32_768), lambda n: (rand(4_096, n),),
                at="4096 rows of float32",
                peer=lambda x: torch.var_mean(x, 0, correction=0)[::-1],
                peer_name="torch.var_mean"),
    cases=[
        correctness("100 x 37 floats", rand(100, 37), public=True),
        correctness("1000 x 16 floats around 10000", far_from_zero(1_000, 16), public=True),
        correctness("1000 x 16 floats", rand(1_000, 16)),
        correctness("1 x 5 floats", rand(1, 5)),
        correctness("129 x 1 floats", rand(129, 1)),
        correctness("128 x 200 floats", rand(128, 200)),
        correctness("100 x 37 in float16", rand(100, 37, dtype="float16")),
        correctness("100 x 37 in bfloat16, around 50", rand(100, 37, dtype="bfloat16", mean=50.0)),
        correctness("500 x 300 floats around -3", rand(500, 300, mean=-3.0)),
        correctness("33 x 1000 in float16 around 1000",
                    rand(33, 1_000, dtype="float16", mean=1_000.0)),
        correctness("a mean that changes every 32 rows", blocks_apart(200, 24, 32)),
        correctness("a mean that changes from row to row", blocks_apart(70, 24, 1)),
        correctness("columns of equal values",
                    rand(1, 40, mean=3.0).then(lambda t: t.repeat(150, 1))),
        correctness("whole numbers", integers(128, 64)),

        edge("no column", rand(8, 0), launches=0),
        edge("one element", rand(1, 1)),
        edge("two rows", rand(2, 33, mean=5.0)),
        edge("three rows of many columns", rand(3, 5_000)),
        edge("columns of zeros", full(70, 3, value=0.0)),
        edge("a transposed view", rand(37, 100).mT, public=True),
        edge("every other row and column", rand(140, 66)[::2, ::2]),
        edge("columns 3 to 67 of 100", rand(40, 100)[:, 3:68]),
        edge("one row repeated 40 times", rand(1, 33).then(lambda t: t.expand(40, -1))),
        edge("a matrix that starts at the second element of its memory",
             rand(40 * 33 + 1).then(lambda t: t[1:].view(40, 33))),
        edge("rows 2**30 elements apart", rand(4, 40, dtype="float16").apart(FAR, 1)),
        edge("columns 2**30 elements apart", rand(40, 4, dtype="float16").apart(1, FAR)),
        edge("NaN in column 5",
             rows(*(row(40, {7: NAN} if i == 5 else None) for i in range(33))).mT),

        refuses("x is None", None, raises=TypeError, mentions=("x", "None")),
        refuses("int32 is not supported", rand(8, 8, dtype="int32"),
                raises=TypeError, mentions=("x", "int32")),
        refuses("one dimension", rand(16), raises=ValueError, mentions=("x", "2", "1")),
        refuses("no row", rand(0, 8), raises=ValueError, mentions=("x", "row")),
        refuses("neither row nor column", rand(0, 0), raises=ValueError, mentions=("x", "row")),

        sizes(lambda rows, columns, dtype: (rand(rows, columns, dtype=dtype, mean=3.0),),
              rows=(1, 200), columns=(1, 60), dtype=FLOATS),

        performance("512 x 256 floats, counted", rand(512, 256),
                    traffic=1.00, sectors=USED, spills=0),
        performance("300 x 96 in float16, counted", rand(300, 96, dtype="float16"),
                    traffic=1.00, sectors=USED, spills=0),
        performance("4096 x 65536 floats", rand(4_096, 65_536),
                    requests=2.5, spills=0, pass_at=0.70, stretch=0.85),
    ],
)

suite = Suite(
    marker="DECIDE",
    host={"plan_tiles": ("m", "n", "k", "itemsize", "smem_bytes")},
    functions=[gram_function, stats_function],
    cases=[
        call("plans fit, and their costs are right", "plans", PROBLEMS, check=plans_fit),
        call("no tile fits", "plans", ((64, 64, 64, 8, 4_096, 3),),
             raises=ValueError, mentions=("smem_bytes", "4096")),
        call("no shared memory", "plans", ((64, 64, 64, 2, 0, 1),),
             raises=ValueError, mentions=("smem_bytes", "0")),
        call("a TilePlan is frozen", "changed", check=is_frozen),
        call("plans have the least traffic", "plans", PROBLEMS, check=plans_are_least,
             code="T01"),
        call("ties of plans", "plans", PROBLEMS,
             check=ties_are_broken, code="T01"),
        reads("`tl.reduce` merges the rows", "column_stats", check=reduces_by_itself,
              code="T06"),
        *predictions(PREDICTIONS, COUNTS),
    ],
)


# ---------------------------------------------------------------------------------------------
# Properties


def same_bits(got: torch.Tensor, expected: torch.Tensor) -> bool:
    return got.dtype == expected.dtype and torch.equal(got, expected)


def furthest(got: torch.Tensor, expected: torch.Tensor, most: torch.Tensor) -> str:
    """Describes the element with the largest error; empty if all are within ``most``."""
    off = (got.double() - expected.double()).abs()
    share = (off / most).nan_to_num(nan=INF)
    if bool((share <= 1).all()):
        return ""
    worst = tuple(int(i) for i in (share == share.max()).nonzero()[0])
    return (f"element {list(worst)} is {got[worst].item():.9g} and {expected[worst].item():.9g}; "
            f"rounding explains a difference of {most[worst].item():.3g}")


def test_a_gram_matrix_is_its_own_mirror_image(submission):
    (x,) = submission.draw(rand(140, 60, dtype="float16"))

    result = submission.gram(x)

    size = x.double().abs() @ x.double().abs().mT
    summed = KAPPA * TENSOR_CORES * 4 * math.sqrt(60) * size
    most = 2 * (summed + 2.0**-11 * result.double().abs() + 2.0**-24)
    wrong = furthest(result, result.mT, most)
    assert not wrong, f"the matrix and its transpose: {wrong}"


def test_gram_matrices_of_whole_numbers_are_exact(submission):
    for dtype in ("float16", "float32"):
        (x,) = submission.draw(integers(70, 60, dtype=dtype))

        result, exact = submission.gram(x), (x.double() @ x.double().mT).to(x.dtype)

        assert same_bits(result, exact), (
            f"in {dtype}, {int((result != exact).sum())} of {exact.numel()} sums differ")


def test_no_variance_is_negative(submission):
    (x,) = submission.draw(rand(100, 70, mean=1e4, std=1e-3))

    _, var = submission.column_stats(x)

    assert bool((var >= 0).all()), f"the least variance is {var.min():.9g}"


def test_the_order_of_rows_changes_no_more_than_rounding(submission):
    (x,) = submission.draw(rand(150, 40, mean=2.0))

    results, turned = submission.column_stats(x), submission.column_stats(x.flip(0))

    for name, one, other, amplitude in zip(("mean", "var"), results, turned, stats_amplitude(x),
                                           strict=True):
        summed = 4 * math.sqrt(150) * amplitude.reduced
        wrong = furthest(one, other, 2 * KAPPA * FLOAT32 * (1e-30 + amplitude.pointwise + summed))
        assert not wrong, f"{name} of the rows in order and reversed: {wrong}"


def test_two_calls_give_the_same_bits(submission):
    (x,) = submission.draw(rand(140, 70))

    first, second = submission.gram(x), submission.gram(x)
    stats, again = submission.column_stats(x), submission.column_stats(x)

    assert same_bits(first, second), "two calls of gram differ"
    assert all(map(same_bits, stats, again)), "two calls of column_stats differ"
