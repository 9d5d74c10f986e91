"""Hidden tests of pipelining: products and sums for every number of stages, code, the picker."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch

from grader.suite import (
    FLOATS,
    TENSOR_CORES,
    Bench,
    CheckResult,
    CompiledCode,
    Cost,
    Function,
    Input,
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
    row,
    rows,
    sizes,
    special,
)
from grader.suite.predictions import predictions

INF = math.inf
NAN = math.nan
FAR = 1 << 30  # elements; the offset of the third row is 2**31
SIDE = 256  # of the matrices whose traffic is counted
TILE = 128  # rows and columns of a tile of the product
# Issued bytes over the minimum: A and B once per column or row of tiles, C once.
TRAFFIC = (2 * SIDE / TILE + 1) / 3
PARTS = 1.01  # of the bytes of a long row, including the sums of its parts

# Bytes of the tiles of an iteration, bytes of shared memory, iterations, most stages. The limits
# are those of a program on an H100, an A100 and an RTX 4090, with tiles of common products.
LOOPS = (
    (65_536, 232_448, 128, 5), (16_384, 232_448, 128, 5), (65_536, 101_376, 10, 5),
    (49_152, 166_912, 2, 5), (232_448, 232_448, 128, 5), (116_224, 232_448, 128, 5),
    (116_225, 232_448, 128, 5), (58_112, 232_448, 4, 5), (1, 1, 1, 1), (1, 10, 100, 20),
    (50_688, 101_376, 2, 5),
    *((tile, limit, iterations, most)
      for limit in (232_448, 166_912, 101_376)
      for tile in (512, 16_384, 32_768, 49_152, 65_536)
      for iterations in (1, 2, 3, 10, 128)
      for most in (5, 1, 3, 8)),
)


def product(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    return (a.float() @ b.float()).to(a.dtype)


def pair(m: int, k: int, n: int, make: Callable[..., Input] = rand,
         **options: Any) -> tuple[Input, Input]:
    """Two matrices that can be multiplied, m x k and k x n, with independent values."""
    return make(m, k, **options), make(k, n, **options)


def half(m: int, k: int, n: int) -> tuple[Input, Input]:
    return pair(m, k, n, dtype="float16")


# ---------------------------------------------------------------------------------------------
# Results of pick_num_stages


def deepest(tile: int, limit: int, iterations: int, most: int) -> int:
    """Returns the expected number of stages, by trying all."""
    return max(stages for stages in range(1, most + 1)
               if stages * tile <= limit and stages <= iterations)


def each_pick(rule: Callable[[int, int, int, int, int], str]) -> Callable[..., None]:
    """Returns a check of all results; ``rule`` returns the fault of one result, or nothing."""
    def check(answer: Any, loops: tuple[tuple[int, int, int, int], ...]) -> None:
        for (tile, limit, iterations, most), stages in zip(loops, answer, strict=True):
            asked = (f"pick_num_stages({tile}, {limit}, {iterations}, max_stages={most}) "
                     f"returned {stages!r}")
            assert type(stages) is int, f"{asked}, expected an int."
            wrong = rule(tile, limit, iterations, most, stages)
            assert not wrong, f"{asked}: {wrong}."

    return check


def in_range(tile: int, limit: int, iterations: int, most: int, stages: int) -> str:
    if stages < 1:
        return "a loop has at least one stage"
    if stages > most:
        return f"max_stages is {most}"
    if stages > iterations:
        return (f"the loop has {iterations} iteration{'s' * (iterations > 1)} and no load for a "
                "further stage")
    return ""


def fits(tile: int, limit: int, iterations: int, most: int, stages: int) -> str:
    if stages * tile <= limit:
        return ""
    return (f"the tiles of {stages} iterations are {stages} x {tile:,} = {stages * tile:,} bytes, "
            f"and a program has {limit:,}")


def is_deep(tile: int, limit: int, iterations: int, most: int, stages: int) -> str:
    best = deepest(tile, limit, iterations, most)
    if stages >= best:
        return ""
    return (f"{best} stages fit as well, in {best * tile:,} of {limit:,} bytes, and the loop has "
            f"{iterations} iterations")


def is_five(answer: Any) -> None:
    assert answer == 5, (f"pick_num_stages(16, 1048576, 1000) returned {answer!r}, expected the "
                         "default of max_stages, 5.")


matmul_pipelined = Function(
    entry="matmul_pipelined",
    parameters=("a", "b"),
    keyword_only=("num_stages",),
    reference=lambda a, b, num_stages=3: a.double() @ b.double(),
    tolerance=Tolerance(lambda a, b, num_stages=3: error_bounds.matmul(a, b), TENSOR_CORES,
                        products=(0, 1)),
    peer=lambda a, b, num_stages=3: product(a, b),
    reversed_peer=lambda a, b, num_stages=3: product(a.flip(1), b.flip(0)),
    moves="deny",
    cost=lambda a, b, num_stages=3: Cost(
        bytes=(a.numel() + b.numel() + a.shape[0] * b.shape[1]) * a.element_size(),
        flops=2 * a.numel() * b.shape[1]),
    bench=Bench("rows and columns", (256, 512, 1_024, 2_048, 4_096, 8_192),
                lambda n: half(n, n, n), at="square matrices of float16",
                peer=torch.matmul, peer_name="torch.matmul"),
    cases=[
        # The most specialized call comes first per dtype and number of stages: only that one is
        # compiled completely.
        correctness("128 x 64 times 64 x 128 in float16", *half(128, 64, 128), public=True),
        correctness("65 x 33 times 33 x 63 in float16", *half(65, 33, 63), public=True),
        correctness("300 x 1000 times 1000 x 20 in float16", *half(300, 1_000, 20)),
        correctness("300 x 1000 times 1000 x 20 in bfloat16",
                    *pair(300, 1_000, 20, dtype="bfloat16")),
        correctness("144 x 256 times 256 x 160 floats", *pair(144, 256, 160)),
        correctness("65 x 33 times 33 x 63 floats", *pair(65, 33, 63)),
        correctness("17 x 5 times 5 x 200 floats", *pair(17, 5, 200)),
        correctness("100 x 2 times 2 x 90 floats", *pair(100, 2, 90)),
        correctness("33 x 3 times 3 x 140 floats", *pair(33, 3, 140)),
        *(correctness(f"96 x 208 times 208 x 160 in float16, {stages} stages",
                      *half(96, 208, 160), stages) for stages in range(1, 6)),
        correctness("sums of 1024 numbers around a half in float16",
                    *pair(64, 1_024, 48, dtype="float16", mean=0.5)),
        correctness("1280 x 16 times 16 x 300 in float16, many rows of tiles",
                    *half(1_280, 16, 300)),

        # Fewer iterations than stages, and none.
        edge("one iteration, five stages", *half(48, 16, 32), 5),
        edge("K is 0: the result is zero", *half(70, 0, 33)),
        edge("K is 0, five stages", *half(64, 0, 32), 5),
        edge("no row", *half(0, 64, 32), launches=0),
        edge("no column", *half(32, 64, 0), launches=0),
        edge("1 x 1 times 1 x 1", *half(1, 1, 1)),
        edge("a row times a column", *half(1, 500, 1)),
        edge("K is one more than an iteration", *half(30, 33, 40)),
        edge("K is one less than two iterations", *half(30, 63, 40)),

        # Layouts.
        edge("a is a transposed view", rand(64, 48, dtype="float16").mT,
             rand(64, 40, dtype="float16"), public=True),
        edge("b is a transposed view", rand(65, 33, dtype="float16"),
             rand(40, 33, dtype="float16").mT),
        edge("every third column of a, every other of b",
             rand(40, 150, dtype="float16")[:, ::3], rand(50, 80, dtype="float16")[:, ::2]),
        edge("one row of a repeated 70 times",
             rand(1, 48, dtype="float16").then(lambda t: t.expand(70, -1)),
             rand(48, 24, dtype="float16")),
        edge("rows of a 2**30 elements apart", rand(4, 70, dtype="float16").apart(FAR, 1),
             rand(70, 24, dtype="float16")),
        edge("rows of b 2**26 elements apart", rand(20, 70, dtype="float16"),
             rand(70, 24, dtype="float16").apart(FAR >> 4, 1)),

        # A special value affects its row of a or its column of b, and nothing else.
        edge("NaN in the last column of a", rows(*(row(33, {32: NAN} if i == 3 else None)
                                                   for i in range(20)), dtype="float16"),
             rand(33, 24, dtype="float16")),
        edge("infinity in a", rows(*(row(40, {3: INF} if i == 6 else None) for i in range(20)),
                                   dtype="float16"), rand(40, 33, dtype="float16")),

        refuses("a is a list", [[1.0, 2.0]], rand(2, 3), raises=TypeError, mentions=("a", "list")),
        refuses("float64 is not supported", *pair(8, 8, 8, dtype="float64"),
                raises=TypeError, mentions=("a", "float64")),
        refuses("float16 times float32", rand(8, 16, dtype="float16"), rand(16, 8),
                raises=TypeError, mentions=("b", "float16", "float32")),
        refuses("b has one dimension", rand(8, 16), rand(16),
                raises=ValueError, mentions=("b", "2", "1")),
        refuses("inner sizes differ by one", *half(31, 64, 7)[:1], rand(63, 32, dtype="float16"),
                raises=ValueError, mentions=("b", "64", "63", "32")),
        refuses("a and b on different devices", rand(8, 16), rand(16, 8).on_meta(),
                raises=ValueError, mentions=("b", "device")),
        refuses("no stage", *half(8, 16, 8), 0, raises=ValueError, mentions=("num_stages", "0")),
        refuses("six stages", *half(8, 16, 8), 6, raises=ValueError, mentions=("num_stages", "6")),
        refuses("1.5 stages", *half(8, 16, 8), 1.5,
                raises=TypeError, mentions=("num_stages", "float")),

        sizes(lambda m, k, n, stages, dtype: (*pair(m, k, n, dtype=dtype), stages),
              m=(1, 100), k=(1, 200), n=(1, 100), stages=(1, 5), dtype=FLOATS),

        performance("256 x 256 times 256 x 256 in float16, counted", *half(SIDE, SIDE, SIDE),
                    traffic=TRAFFIC, sectors=1.00, launches=1, programs=(SIDE // TILE) ** 2,
                    tensor_cores=True, vector=128, stages=(2, 3)),
        performance("256 x 256 times 256 x 256 in float16, 5 stages, counted",
                    *half(SIDE, SIDE, SIDE), 5,
                    traffic=TRAFFIC, tensor_cores=True, vector=128, stages=(4, 5)),
        performance("256 x 256 times 256 x 256 in float16, 2 stages, counted",
                    *half(SIDE, SIDE, SIDE), 2,
                    traffic=TRAFFIC, tensor_cores=True, vector=128, stages=(1, 2)),
        performance("4096 x 4096 times 4096 x 4096 in float16", *half(4_096, 4_096, 4_096),
                    tensor_cores=True, spills=64, pass_at=0.45, stretch=0.65),
    ],
)


def uneven(count: int, columns: int, dtype: str = "float32") -> Input:
    """Returns rows with clearly different sums for any seed."""
    return rand(count, columns, dtype=dtype, mean=0.5).then(
        lambda t: t * torch.arange(1.0, count + 1, dtype=t.dtype)[:, None])


def no_shuffles(code: CompiledCode) -> list[CheckResult]:
    """Checks that no loop contains a reduction."""
    shuffles = [(count, line, binary.kernel) for binary in code.heavy
                for line, count in binary.loop_shuffles]
    passed = sum(count for count, *_ in shuffles)
    _, line, kernel = max(shuffles, key=lambda one: one[0], default=(0, None, ""))
    wrong = (f"In every iteration of a loop of `{kernel}`, {passed} shuffle instructions pass "
             "values between threads, and none is necessary.") if passed else ""
    return [CheckResult("shuffles in loops", f"{passed}, limit 0", wrong, line=line)]


row_sum = Function(
    entry="row_sum",
    parameters=("x",),
    keyword_only=("num_stages",),
    reference=lambda x, num_stages=4: x.double().sum(1),
    tolerance=Tolerance(lambda x, num_stages=4: error_bounds.total(x)),
    result_dtype="float32",
    contiguous_result=True,
    peer=lambda x, num_stages=4: x.float().sum(1),
    reversed_peer=lambda x, num_stages=4: x.float().flip(1).sum(1),
    moves="deny",
    cost=lambda x, num_stages=4: Cost(bytes=x.numel() * x.element_size() + 4 * x.shape[0]),
    bench=Bench("columns", (4_096, 65_536, 1 << 20, 1 << 24), lambda n: (rand(8, n),),
                at="8 rows of float32", peer=lambda x: x.sum(1), peer_name="x.sum(1)"),
    cases=[
        correctness("5 x 4096 floats", rand(5, 4_096), public=True),
        correctness("3 x 1000 floats", rand(3, 1_000), public=True),
        correctness("5 x 4096 in float16", rand(5, 4_096, dtype="float16")),
        correctness("2 x 70001 floats", uneven(2, 70_001)),
        correctness("2 x 70001 in float16", uneven(2, 70_001, "float16")),
        correctness("9 x 20000 in float16 around a half",
                    rand(9, 20_000, dtype="float16", mean=0.5)),
        correctness("9 x 20000 in bfloat16 around a half",
                    rand(9, 20_000, dtype="bfloat16", mean=0.5)),
        correctness("3 x 200000 floats", uneven(3, 200_000)),
        *(correctness(f"3 x 10000 floats, {stages} stages", uneven(3, 10_000), stages)
          for stages in range(1, 6)),

        edge("one element", rand(1, 1)),
        edge("one column", rand(70, 1)),
        edge("no column: every sum is zero", rand(7, 0)),
        edge("no row", rand(0, 50), launches=0),
        edge("neither rows nor columns", rand(0, 0), launches=0),
        edge("one column less than an iteration", rand(3, 1_023)),
        edge("one column more than an iteration", rand(3, 1_025)),
        edge("600 rows of 40 columns", rand(600, 40)),
        edge("every other column", rand(4, 6_000)[:, ::2], public=True),
        edge("every other row", rand(8, 3_000, dtype="float16")[::2]),
        edge("a transposed view", rand(3_000, 4).mT),
        edge("one row repeated five times", rand(1, 3_000).then(lambda t: t.expand(5, -1))),
        edge("columns 1 to 3000 of 3001", rand(4, 3_001)[:, 1:]),
        edge("rows 2**30 elements apart", rand(4, 70, dtype="float16").apart(FAR, 1)),
        edge("columns 2**26 elements apart", rand(2, 70, dtype="float16").apart(1, FAR >> 4)),
        edge("NaN and infinities stay in their rows",
             rows(row(2_000), row(2_000, {7: NAN}), row(2_000, {1_999: INF}),
                  row(2_000, {0: INF, 1_500: -INF}))),
        edge("sums beyond the largest float16",
             rand(3, 4_096, dtype="float16", mean=3e4, std=5e3)),
        edge("a single large value", special(3, 5_000, values=[1e30], share=0.0001)),

        refuses("x is None", None, raises=TypeError, mentions=("x", "None")),
        refuses("int32 is not supported", rand(2, 3, dtype="int32"),
                raises=TypeError, mentions=("x", "int32")),
        refuses("three dimensions", rand(2, 3, 4), raises=ValueError, mentions=("x", "2", "3")),
        refuses("no stage", rand(2, 8), 0, raises=ValueError, mentions=("num_stages", "0")),
        refuses("six stages", rand(2, 8), 6, raises=ValueError, mentions=("num_stages", "6")),
        refuses("num_stages is a string", rand(2, 8), "4",
                raises=TypeError, mentions=("num_stages", "str")),

        sizes(lambda rows, columns, stages, dtype: (rand(rows, columns, dtype=dtype), stages),
              rows=(1, 5), columns=(1, 5_000), stages=(1, 5), dtype=FLOATS),

        performance("64 x 8192 floats, counted", rand(64, 8_192), traffic=1.00, sectors=1.00,
                    launches=1, vector=128, stages=(3, 4), check_code=no_shuffles),
        performance("64 x 8192 floats, 2 stages, counted", rand(64, 8_192), 2,
                    traffic=1.00, stages=(1, 2), check_code=no_shuffles),
        performance("64 x 8192 in float16, 5 stages, counted", rand(64, 8_192, dtype="float16"),
                    5, traffic=1.00, sectors=1.00, stages=(4, 5), check_code=no_shuffles),
        performance("4 x 98304 floats, counted", rand(4, 98_304), traffic=PARTS, launches=2,
                    stages=3, check_code=no_shuffles),
        performance("8 x 16777216 floats", rand(8, 1 << 24), spills=0, pass_at=0.75,
                    stretch=0.88),
    ],
)


suite = Suite(
    functions=(matmul_pipelined, row_sum),
    host={"pick_num_stages": ("tile_bytes", "smem_limit", "k_iters")},
    marker="DECIDE",
    cases=[
        call("at least one stage, at most k_iters and max_stages", "picks", LOOPS,
             check=each_pick(in_range), public=True),
        call("the tiles of all stages fit", "picks", LOOPS, check=each_pick(fits), code="T05"),
        call("as many stages as fit", "picks", LOOPS, check=each_pick(is_deep), code="T06"),
        call("five stages by default", "picks_by_default", check=is_five,
             code="T06"),
        *(call(f"{name} of {value}", "picks", (numbers,), raises=ValueError,
               mentions=(name, str(value)))
          for name, value, numbers in (
              ("tile_bytes", 0, (0, 100, 4, 5)), ("tile_bytes", -16, (-16, 100, 4, 5)),
              ("smem_limit", 0, (16, 0, 4, 5)), ("k_iters", 0, (16, 100, 0, 5)),
              ("k_iters", -1, (16, 100, -1, 5)), ("max_stages", 0, (16, 100, 4, 0)))),
        call("the tiles of one iteration do not fit", "picks", ((65_537, 65_536, 8, 5),),
             raises=ValueError, mentions=("tile_bytes", "65536", "65537")),

        *predictions((
            ("stage_bytes", 16_384, "A tile of A has 128 x 32 elements and a tile of B 32 x 128: "
             "8,192 elements of 2 bytes."),
            ("unused_ratio", 1.0, "The kernel has a parameter of that name and does not use it, so "
             "the compiler generates the same code for each value."),
            ("matmul_bytes", 81_920, "Each of 5 stages has a buffer for the tiles of an iteration, "
             "16,384 bytes. On an A100, where `tl.dot` reads its tiles from registers, the "
             "iteration that computes needs no buffer: 65,536 bytes."),
            ("row_sum_bytes", 12_288, "The iteration that computes has its values in registers, so "
             "4 stages are 3 buffers of 1,024 x 4 bytes."),
            ("reductions", 64, "65,536 columns are 64 iterations of 1,024, and each iteration "
             "reduces its block once."),
            ("most_stages", 4, "An iteration loads (128 + 256) x 64 elements of 2 bytes, 49,152 "
             "bytes; 4 of these are 196,608 bytes, and 5 are 245,760, more than 232,448."),
        ), counts=("reductions", "most_stages")),
    ],
)


# ---------------------------------------------------------------------------------------------
# Properties


def difference(got: torch.Tensor, expected: torch.Tensor) -> str:
    """Describes how two tensors differ; empty if they are equal."""
    wrong = got != expected
    if not bool(wrong.any()):
        return ""
    first = tuple(int(i) for i in wrong.nonzero()[0])
    return (f"{int(wrong.sum())} of {wrong.numel()} elements differ, the first at {list(first)}: "
            f"{got[first].item()!r} and {expected[first].item()!r}")


def test_stages_change_no_bit_of_a_product(submission):
    a, b = submission.draw(*half(64, 304, 48))

    one = submission.matmul_pipelined(a, b, 1)

    for stages in range(2, 6):
        wrong = difference(submission.matmul_pipelined(a, b, stages), one)
        assert not wrong, f"{stages} stages against 1: {wrong}"


def test_stages_change_no_bit_of_a_sum(submission):
    (x,) = submission.draw(rand(3, 40_000))

    one = submission.row_sum(x, 1)

    for stages in range(2, 6):
        wrong = difference(submission.row_sum(x, stages), one)
        assert not wrong, f"{stages} stages against 1: {wrong}"


def test_sums_of_whole_numbers_are_exact(submission):
    (x,) = submission.draw(integers(4, 50_000))

    wrong = difference(submission.row_sum(x), x.double().sum(1).float())

    assert not wrong, wrong


def test_products_of_whole_numbers_are_exact(submission):
    a, b = submission.draw(*pair(50, 64, 70, integers, dtype="float16"))  # sums stay below 1,025

    wrong = difference(submission.matmul_pipelined(a, b), product(a, b))

    assert not wrong, wrong
