"""Hidden tests of matrix multiplication: sizes, layouts, precision, special values, cost."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch

from grader.suite import (
    FLOATS,
    TENSOR_CORES,
    Bench,
    Cost,
    Input,
    Suite,
    Tolerance,
    correctness,
    edge,
    error_bounds,
    full,
    integers,
    performance,
    rand,
    refuses,
    row,
    rows,
    sizes,
    special,
    wide,
)
from grader.suite.inputs import Row

INF = math.inf
NAN = math.nan
FAR = 1 << 30  # elements; the offset of the third row is 2**31
SMALLEST_TILE = 32  # rows and columns of a tile of the result; smaller ones cause too much traffic
SIDE = 256  # of the matrices whose traffic is counted: small enough to be interpreted in full
# Issued bytes of square tiles of that size over the minimum: A once per column of tiles, B once
# per row of tiles, C once.
TRAFFIC = (2 * SIDE / SMALLEST_TILE + 1) / 3


def reference(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """The product in float64; an empty sum is zero here too."""
    return a.double() @ b.double()


def peer(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    return (a.float() @ b.float()).to(a.dtype)


def reversed_peer(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    return (a.float().flip(1) @ b.float().flip(0)).to(a.dtype)


def cost(a: torch.Tensor, b: torch.Tensor) -> Cost:
    (m, k), n = a.shape, b.shape[1]
    return Cost(bytes=(m * k + k * n + m * n) * a.element_size(), flops=2 * m * n * k)


def pair(m: Any, k: Any, n: Any, make: Callable[..., Input] = rand,
         **options: Any) -> tuple[Input, Input]:
    """Two matrices that can be multiplied, m x k and k x n, with independent values."""
    return make(m, k, **options), make(k, n, **options)


def tile(more: int) -> Callable[[int], int]:
    """A size near the submission's tile, up to a tile of 128."""
    return lambda block: min(block, 128) + more


def only(columns: int, place: int) -> Row:
    """Zeros, and one number that is drawn."""
    def draw(generator: torch.Generator) -> torch.Tensor:
        values = torch.zeros(columns, dtype=torch.float64)
        values[place] = 1 + torch.rand((), generator=generator, dtype=torch.float64)
        return values

    return draw


def one_row(rows_: int, columns: int, number: int, places: dict[int, float],
            dtype: str = "float32") -> Input:
    """Normal values, and in one row some others."""
    return rows(*(row(columns, places if i == number else None) for i in range(rows_)),
                dtype=dtype)


def column_of(drawn: Input) -> Input:
    """The same numbers with rows as columns, contiguous."""
    return drawn.then(lambda t: t.mT.contiguous())


suite = Suite(
    entry="matmul",
    parameters=("a", "b"),
    blanks=31,
    reference=reference,
    contiguous_result=True,
    tolerance=Tolerance(error_bounds.matmul, TENSOR_CORES, products=(0, 1)),
    peer=peer,
    reversed_peer=reversed_peer,
    moves="deny",  # the kernel has to use the strides
    cost=cost,
    bench=Bench("rows and columns", (256, 512, 1_024, 2_048, 4_096, 5_000, 8_192),
                lambda n: pair(n, n, n, dtype="float16"), at="square matrices of float16",
                peer=torch.matmul, peer_name="torch.matmul"),
    cases=[
        # Sizes: multiples of a tile, and none of the three a multiple.
        correctness("128 x 64 times 64 x 128 in float16", *pair(128, 64, 128, dtype="float16"),
                    public=True),
        correctness("300 x 1 000 times 1 000 x 20 in float16",
                    *pair(300, 1_000, 20, dtype="float16"), public=True),
        correctness("128 x 64 times 64 x 128 floats", *pair(128, 64, 128)),
        correctness("65 x 33 times 33 x 63 floats", *pair(65, 33, 63), public=True),
        correctness("128 x 64 times 64 x 128 in bfloat16", *pair(128, 64, 128, dtype="bfloat16")),
        correctness("65 x 33 times 33 x 63 in float16", *pair(65, 33, 63, dtype="float16")),
        correctness("65 x 33 times 33 x 63 in bfloat16", *pair(65, 33, 63, dtype="bfloat16")),
        correctness("256 x 256 times 256 x 256 in float16", *pair(256, 256, 256, dtype="float16")),
        correctness("17 x 5 times 5 x 200 floats", *pair(17, 5, 200)),
        correctness("100 x 2 times 2 x 90 floats", *pair(100, 2, 90)),
        correctness("33 x 3 times 3 x 140 floats", *pair(33, 3, 140)),
        correctness("17 x 200 times 200 x 5 in float16", *pair(17, 200, 5, dtype="float16")),
        correctness("128 x 257 times 257 x 96 floats", *pair(128, 257, 96)),
        correctness("128 x 257 times 257 x 96 in bfloat16",
                    *pair(128, 257, 96, dtype="bfloat16")),
        correctness("300 x 300 times 300 x 20 floats", *pair(300, 300, 20)),
        correctness("1 280 x 16 times 16 x 300 in float16, many rows of tiles",
                    *pair(1_280, 16, 300, dtype="float16")),
        correctness("1 280 x 16 times 16 x 300 floats, many rows of tiles", *pair(1_280, 16, 300)),

        # Sums: where few bits in the accumulator show, and which part of K was taken.
        correctness("sums of 1 024 numbers around a half in float16",
                    *pair(64, 1_024, 48, dtype="float16", mean=0.5)),
        correctness("sums of 1 024 numbers around a half in bfloat16",
                    *pair(64, 1_024, 48, dtype="bfloat16", mean=0.5)),
        correctness("sums of 512 floats around a half", *pair(64, 512, 48, mean=0.5)),
        correctness("sums of 2 000 numbers in float16", *pair(16, 2_000, 24, dtype="float16")),
        correctness("numbers of very different size", *pair(40, 300, 40, wide)),
        correctness("numbers of very different size in bfloat16",
                    *pair(40, 300, 40, wide, dtype="bfloat16")),
        correctness("integers in float16", *pair(70, 64, 50, integers, dtype="float16")),
        correctness("of 300 columns of a, only the first is not zero",
                    rows(*[only(300, 0)] * 20), rand(300, 30)),
        correctness("of 300 columns of a, only the last is not zero",
                    rows(*[only(300, 299)] * 20), rand(300, 30)),
        correctness("of 300 rows of b, only number 150 is not zero",
                    rand(20, 300),
                    column_of(rows(*[only(300, 150)] * 30))),

        # The smallest sizes, the sizes around one tile, and none at all. Sizes of 1 and strides
        # make forms of their own, each of which has to be compiled: in float16, which is fast.
        edge("no row", *pair(0, 64, 32), launches=0),
        edge("no column", *pair(32, 64, 0, dtype="float16"), launches=0),
        edge("neither rows nor columns", *pair(0, 64, 0), launches=0),
        edge("nothing at all", *pair(0, 0, 0), launches=0),
        edge("nothing to sum: the result is zero", *pair(70, 0, 33, dtype="float16")),
        edge("nothing to sum, more than one tile", *pair(130, 0, 200, dtype="float16")),
        edge("one number times one number", *pair(1, 1, 1, dtype="float16")),
        edge("a row times a column", *pair(1, 500, 1, dtype="float16", mean=0.5)),
        edge("a column times a row", *pair(144, 1, 160, dtype="float16")),
        edge("one row, one tile wide", *pair(1, 48, tile(0), dtype="float16")),
        edge("one column", *pair(48, 32, 1, dtype="float16")),
        edge("a tile less one row", *pair(tile(-1), 20, 24)),
        edge("a tile of rows", *pair(tile(0), 20, 24, dtype="float16")),
        edge("a tile and one row", *pair(tile(1), 20, 24)),
        edge("a tile less one column", *pair(24, 20, tile(-1), dtype="float16")),
        edge("a tile of columns", *pair(24, 20, tile(0))),
        edge("a tile and one column", *pair(24, 20, tile(1), dtype="float16")),
        edge("a tile less one to sum", *pair(24, tile(-1), 20)),
        edge("a tile to sum", *pair(24, tile(0), 20, dtype="bfloat16")),
        edge("a tile and one to sum", *pair(24, tile(1), 20, dtype="float16")),
        edge("a tile less one in all three", *pair(tile(-1), tile(-1), tile(-1))),
        edge("a tile in all three", *pair(tile(0), tile(0), tile(0), dtype="float16")),
        edge("a tile and one in all three", *pair(tile(1), tile(1), tile(1), dtype="float16")),
        edge("a tall matrix: 3 000 rows, 3 columns", *pair(3_000, 5, 3, dtype="float16")),
        edge("a wide matrix: 3 rows, 3 000 columns", *pair(3, 5, 3_000, dtype="float16")),

        # Layouts: the strides that transposing, slicing and expanding leave behind.
        edge("a is a transposed view", rand(32, 64, dtype="float16").mT,
             rand(32, 48, dtype="float16"), public=True),
        edge("b is a transposed view", rand(65, 33, dtype="float16"),
             rand(40, 33, dtype="float16").mT),
        edge("both are transposed views", rand(48, 144, dtype="float16").mT,
             rand(160, 48, dtype="float16").mT),
        edge("both are transposed views of odd sizes", rand(50, 71, dtype="float16").mT,
             rand(33, 50, dtype="float16").mT),
        edge("columns 10 to 73 of a wider a", rand(40, 200)[:, 10:74], rand(64, 24)),
        edge("columns 10 to 49 of a wider b", rand(40, 64, dtype="float16"),
             rand(64, 200, dtype="float16")[:, 10:50]),
        edge("every other row of a", rand(80, 48, dtype="float16")[::2],
             rand(48, 24, dtype="float16")),
        edge("every other row of b", rand(40, 32), rand(64, 24)[::2]),
        edge("every third column of a, every other of b",
             rand(40, 150, dtype="float16")[:, ::3], rand(50, 80, dtype="float16")[:, ::2]),
        edge("matrices that start at the second element of their memory",
             rand(40 * 32 + 1, dtype="float16").then(lambda t: t[1:].view(40, 32)),
             rand(32 * 24 + 1, dtype="float16").then(lambda t: t[1:].view(32, 24))),
        edge("one row of a repeated 70 times", rand(1, 48).then(lambda t: t.expand(70, -1)),
             rand(48, 24)),
        edge("one column of b repeated 70 times", rand(24, 48, dtype="float16"),
             rand(48, 1, dtype="float16").then(lambda t: t.expand(-1, 70))),
        edge("overlapping rows, each one element further",
             rand(40 + 99, dtype="float16").then(lambda t: t.unfold(0, 100, 1)),
             rand(100, 24, dtype="float16")),
        edge("rows of a and columns of b 2**30 elements apart",
             rand(3, 70, dtype="float16").apart(FAR, 1),
             rand(70, 4, dtype="float16").apart(1, FAR)),
        edge("columns of a and rows of b 2**30 elements apart",
             rand(3, 4, dtype="float16").apart(1, FAR), rand(4, 4, dtype="float16").apart(FAR, 1)),
        # A step along K passes 2**31, whether it is 16, 32 or 64 columns long.
        edge("columns of a and rows of b 5 * 2**25 elements apart",
             rand(3, 70, dtype="float16").apart(1, 5 << 25),
             rand(70, 4, dtype="float16").apart(5 << 25, 1)),

        # Special values: they reach the row of a or the column of b that holds them.
        edge("NaN in row 3 of a", one_row(20, 40, 3, {7: NAN}), rand(40, 33)),
        edge("NaN in row 3 of a in float16", one_row(20, 40, 3, {39: NAN}, "float16"),
             rand(40, 33, dtype="float16")),
        edge("NaN in column 5 of b in bfloat16", rand(20, 40, dtype="bfloat16"),
             column_of(one_row(33, 40, 5, {0: NAN}, "bfloat16"))),
        edge("infinity in a and in b", one_row(20, 40, 6, {3: INF}),
             column_of(one_row(33, 40, 9, {20: -INF}))),
        edge("infinity in the last column of a in float16",
             one_row(70, 33, 69, {32: INF}, "float16"), rand(33, 20, dtype="float16")),
        edge("both infinities in one row", one_row(20, 40, 6, {3: INF, 30: -INF}), rand(40, 33)),
        edge("infinity times zero", one_row(20, 40, 6, {3: INF}),
             column_of(rows(only(40, 3), only(40, 4), row(40)))),
        edge("products beyond the largest float16", *pair(40, 48, 40, dtype="float16", std=110.0)),
        edge("sums beyond the largest float32", *pair(20, 40, 24, mean=5e18, std=5e16)),
        edge("single large numbers",
             special(40, 70, values=[3e4, -3e4], share=0.01),
             special(70, 24, values=[-2e4], share=0.01)),
        edge("all numbers equal", full(40, 100, value=0.1), full(100, 24, value=-0.7)),
        edge("all numbers equal, and a square result", full(40, 100, value=0.1, dtype="float16"),
             full(100, 40, value=2.706, dtype="float16")),
        edge("both zeros and small numbers",
             special(40, 33, values=[0.0, -0.0, 2.0**-60, -(2.0**-50)], share=1.0),
             rand(33, 24)),
        edge("float16 numbers below the normal range",
             special(40, 33, values=[2.0**-24, -(2.0**-16), 2.0**-14], share=1.0, dtype="float16"),
             rand(33, 24, dtype="float16", std=1_000.0)),

        # Unsupported arguments must raise before anything is launched.
        refuses("a is a list", [[1.0, 2.0]], rand(2, 3), raises=TypeError, mentions=("a", "list")),
        refuses("b is a number", rand(2, 3), 3.0, raises=TypeError, mentions=("b", "float")),
        refuses("b is None", rand(2, 3), None, raises=TypeError, mentions=("b", "None")),
        refuses("float64 is not supported", *pair(8, 8, 8, dtype="float64"),
                raises=TypeError, mentions=("a", "float64")),
        refuses("int32 is not supported", *pair(8, 8, 8, dtype="int32"),
                raises=TypeError, mentions=("a", "int32")),
        refuses("bool is not supported",
                *pair(8, 8, 8, integers, low=0, high=1, dtype="bool"),
                raises=TypeError, mentions=("a", "bool")),
        refuses("complex64 is not supported", *pair(8, 8, 8, dtype="complex64"),
                raises=TypeError, mentions=("a", "complex64")),
        refuses("int64 is not supported, even without elements", *pair(0, 4, 0, dtype="int64"),
                raises=TypeError, mentions=("a", "int64")),
        refuses("float16 times float32", rand(8, 16, dtype="float16"), rand(16, 8),
                raises=TypeError, mentions=("b", "float16", "float32")),
        refuses("float32 times bfloat16", rand(8, 16), rand(16, 8, dtype="bfloat16"),
                raises=TypeError, mentions=("b", "float32", "bfloat16")),
        refuses("only b is float64", rand(8, 16), rand(16, 8, dtype="float64"),
                raises=TypeError, mentions=("b", "float64")),
        refuses("a has one dimension", rand(16), rand(16, 8),
                raises=ValueError, mentions=("a", "2", "1")),
        refuses("b has one dimension", rand(8, 16), rand(16),
                raises=ValueError, mentions=("b", "2", "1")),
        refuses("a has three dimensions", rand(3, 8, 16), rand(16, 8),
                raises=ValueError, mentions=("a", "2", "3")),
        refuses("both have three dimensions", rand(3, 8, 16), rand(3, 16, 8),
                raises=ValueError, mentions=("a", "2", "3")),
        refuses("b is a single number without dimensions", rand(8, 16), rand(),
                raises=ValueError, mentions=("b", "2", "0")),
        refuses("inner sizes differ by one", rand(128, 64), rand(63, 32),
                raises=ValueError, mentions=("b", "128", "64", "63", "32")),
        refuses("b should have been transposed", rand(31, 64), rand(29, 64),
                raises=ValueError, mentions=("b", "31", "64", "29")),
        refuses("an inner size of one is not broadcast", rand(31, 1), rand(29, 17),
                raises=ValueError, mentions=("b", "31", "1", "29", "17")),
        refuses("inner sizes differ where the result is empty", rand(0, 64), rand(63, 32),
                raises=ValueError, mentions=("b", "64", "63", "32")),
        refuses("a and b on different devices", rand(8, 16), rand(16, 8).on_meta(),
                raises=ValueError, mentions=("b", "device")),

        sizes(lambda m, k, n, dtype: pair(m, k, n, dtype=dtype),
              m=(1, 100), k=(1, 200), n=(1, 100), dtype=FLOATS),

        performance("256 x 256 times 256 x 256 in float16, counted",
                    *pair(SIDE, SIDE, SIDE, dtype="float16"),
                    traffic=TRAFFIC, sectors=1.00, launches=1,
                    programs=(SIDE // SMALLEST_TILE) ** 2, tensor_cores=True),
        performance("256 x 256 times 256 x 256 floats, counted", *pair(SIDE, SIDE, SIDE),
                    traffic=TRAFFIC, sectors=1.00, launches=1,
                    programs=(SIDE // SMALLEST_TILE) ** 2),
        performance("4 096 x 4 096 times 4 096 x 4 096 in float16",
                    *pair(4_096, 4_096, 4_096, dtype="float16"),
                    tensor_cores=True, spills=0, pass_at=0.50, stretch=0.75),
    ],
)


# ---------------------------------------------------------------------------------------------
# Properties of the matrix product


def same_bits(got: torch.Tensor, expected: torch.Tensor) -> bool:
    """Whether two results are equal; both zeros are one number here."""
    return got.dtype == expected.dtype and torch.equal(got, expected)


def difference(got: torch.Tensor, expected: torch.Tensor) -> str:
    """Describes how many elements differ, and the first of them; `same_bits` returned False."""
    if got.shape != expected.shape or got.dtype != expected.dtype:
        return (f"{tuple(got.shape)} in {got.dtype} instead of "
                f"{tuple(expected.shape)} in {expected.dtype}")
    wrong = got != expected  # NaN differs from itself too
    first = tuple(int(i) for i in wrong.nonzero()[0])
    return (f"{int(wrong.sum())} of {wrong.numel()} elements differ, the first is {list(first)}: "
            f"{got[first].item()!r} and {expected[first].item()!r}")


def test_the_identity_changes_nothing(submission):
    for dtype, within in (("float16", 0.0), ("bfloat16", 0.0), ("float32", 2.0**-21)):
        (x,) = submission.draw(rand(70, 50, dtype=dtype))
        one = torch.eye(50, dtype=x.dtype)

        off = (submission(x, one) - x).abs().nan_to_num(nan=INF)

        # Of float32, three parts in TF32 keep 21 bits at least; the others hold a factor exactly.
        worst = tuple(int(i) for i in (off == off.max()).nonzero()[0])
        assert bool((off <= within * x.abs()).all()), (
            f"times the identity, element {list(worst)} in {dtype} is off by {off.max():.3g}"
        )


def test_doubling_a_doubles_the_product(submission):
    for dtype in ("float32", "bfloat16"):  # float16 has numbers that lose bits when halved
        a, b = submission.draw(*pair(60, 130, 40, dtype=dtype))

        doubled, plain = submission(2 * a, b), submission(a, b)

        assert same_bits(doubled, 2 * plain), (
            f"(2 a) b against 2 (a b) in {dtype}: {difference(doubled, 2 * plain)}"
        )


def test_products_of_whole_numbers_are_exact(submission):
    for dtype in ("float16", "float32"):
        a, b = submission.draw(*pair(50, 64, 70, integers, dtype=dtype))  # sums stay below 1,025

        result, exact = submission(a, b), (a.double() @ b.double()).to(a.dtype)

        assert same_bits(result, exact), f"in {dtype}: {difference(result, exact)}"


def test_the_transposed_product_is_the_product_of_the_transposed(submission):
    a, b = submission.draw(*pair(70, 200, 45, dtype="float16"))

    plain, swapped = submission(a, b), submission(b.mT, a.mT)

    # Both are sums of the same products, in whatever order, each off by the roundings of a sum and
    # by the one to float16.
    a, b, plain, swapped = (one.double() for one in (a, b, plain, swapped))
    summed = 4 * TENSOR_CORES * 4 * math.sqrt(200) * (a.abs() @ b.abs())
    most = 2 * (summed + 2.0**-11 * plain.abs() + 2.0**-24)
    off = (swapped.mT - plain).abs()
    share = (off / most).nan_to_num(nan=INF)
    worst = tuple(int(i) for i in (share == share.max()).nonzero()[0])
    assert share.max() <= 1, (
        f"element {list(worst)} of the product and of the transposed product differ by "
        f"{off[worst]:.3g}; rounding explains at most {most[worst]:.3g}"
    )


def test_a_matrix_can_be_multiplied_with_itself(submission):
    (x,) = submission.draw(rand(70, 70))

    shared, apart = submission(x, x), submission(x, x.clone())

    assert same_bits(shared, apart), (
        f"one tensor for both against two tensors of equal values: {difference(shared, apart)}"
    )


def test_two_calls_give_identical_bits(submission):
    a, b = submission.draw(*pair(70, 300, 45, dtype="float16"))

    first, second = submission(a, b), submission(a, b)

    assert same_bits(first, second), f"first against second call: {difference(first, second)}"
