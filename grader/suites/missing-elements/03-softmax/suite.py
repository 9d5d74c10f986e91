"""Hidden tests of softmax: widths, layouts, ranges, special values, errors, cost."""

from __future__ import annotations

import math

import torch

from grader.suite import (
    FLOATS,
    Bench,
    Cost,
    Input,
    Suite,
    Tolerance,
    correctness,
    edge,
    error_bounds,
    extremes,
    full,
    integers,
    launchable,
    performance,
    rand,
    refuses,
    row,
    row_with,
    rows,
    sizes,
    special,
    spike,
)

INF = math.inf
NAN = math.nan
FAR = 1 << 30  # elements; the offset of the third row is 2**31
WIDE = 3_000  # columns: nearly three blocks of 1,024
UNIT_ROUNDOFF = {"float32": 2.0**-24, "float16": 2.0**-11, "bfloat16": 2.0**-8}


def reference(x: torch.Tensor) -> torch.Tensor:
    """Softmax in float64; torch subtracts the maximum too, so nothing overflows here either."""
    return torch.softmax(x.double(), dim=1)


def peer(x: torch.Tensor) -> torch.Tensor:
    return torch.softmax(x, dim=1)


def reversed_peer(x: torch.Tensor) -> torch.Tensor:
    return torch.softmax(x.flip(1), dim=1).flip(1)


def infinities(columns: int, dtype: str) -> Input:
    """Every kind of row with NaN and infinities, between two rows without any."""
    last = columns - 1
    return rows(
        row(columns),
        row(columns, {columns // 2: NAN}),
        row(columns, {last: INF}),
        row_with(columns, -INF, 0, columns),
        row_with(columns, -INF, 1, columns // 2),
        row(columns, {0: NAN, last: -INF}),
        row(columns, {0: INF, last: -INF}),
        row(columns, {0: INF, last: INF}),
        row_with(columns, -INF, 1, columns),
        row(columns),
        dtype=dtype,
    )


suite = Suite(
    entry="softmax",
    parameters=("x",),
    blanks=19,
    reference=reference,
    contiguous_result=True,
    wrong_formulas={
        "what softmax(-x) gives": lambda x: torch.softmax(-x.double(), dim=1),
        "what softmax over the columns gives": lambda x: torch.softmax(x.double(), dim=0),
        "what powers of 2 instead of e give":
            lambda x: torch.softmax(math.log(2) * x.double(), dim=1),
    },
    tolerance=Tolerance(error_bounds.softmax),
    peer=peer,
    reversed_peer=reversed_peer,
    cost=lambda x: Cost(bytes=2 * x.nbytes, flops=5 * x.numel()),
    bench=Bench("columns", (256, 1_024, 2_048, 4_096, 8_192, 12_345, 16_384),
                lambda n: (rand(4_096, n),), at="4 096 rows of float32",
                peer_name="torch.softmax"),
    cases=[
        # Widths: powers of two, adjacent widths, and one row that fills an SM.
        correctness("32 x 128 floats", rand(32, 128), public=True),
        correctness("4 x 127 floats, one less than a power of two", rand(4, 127), public=True),
        correctness("4 x 128 floats", rand(4, 128), public=True),
        correctness("4 x 129 floats, one more than a power of two", rand(4, 129)),
        correctness("5 x 1 000 floats", rand(5, 1_000)),
        correctness("2 x 4 097 floats", rand(2, 4_097)),
        correctness("2 x 20 000 floats", rand(2, 20_000)),
        correctness("1 x 65 536 floats, the widest row", rand(1, 65_536)),
        correctness("32 x 128 in float16", rand(32, 128, dtype="float16")),
        correctness("32 x 128 in bfloat16", rand(32, 128, dtype="bfloat16")),
        correctness("4 x 127 in float16", rand(4, 127, dtype="float16")),
        correctness("4 x 127 in bfloat16", rand(4, 127, dtype="bfloat16")),
        correctness("4 x 128 in float16", rand(4, 128, dtype="float16")),
        correctness("4 x 128 in bfloat16", rand(4, 128, dtype="bfloat16")),
        correctness("4 x 129 in float16", rand(4, 129, dtype="float16")),
        correctness("4 x 129 in bfloat16", rand(4, 129, dtype="bfloat16")),
        correctness("5 x 1 000 in float16", rand(5, 1_000, dtype="float16")),
        correctness("5 x 1 000 in bfloat16", rand(5, 1_000, dtype="bfloat16")),
        correctness("2 x 4 097 in float16", rand(2, 4_097, dtype="float16")),
        correctness("2 x 4 097 in bfloat16", rand(2, 4_097, dtype="bfloat16")),
        correctness("2 x 12 345 in float16", rand(2, 12_345, dtype="float16")),
        correctness("1 x 65 536 in float16", rand(1, 65_536, dtype="float16")),
        correctness("1 x 65 536 in bfloat16", rand(1, 65_536, dtype="bfloat16")),
        correctness("64 x 1 024 in float16", rand(64, 1_024, dtype="float16")),
        correctness("64 x 1 024 in bfloat16", rand(64, 1_024, dtype="bfloat16")),

        # Ranges: where exp overflows, underflows or hardly varies unless the row is shifted.
        correctness("large negative numbers and a small positive one",
                    rows([-300.0, -200.0, -100.0, 5.0], [-1e4, -20.0, 0.0, 1.0])),
        correctness("2 x 3 numbers near -10 000", rand(2, 3, mean=-1e4)),
        correctness("10 000 and -10 000 mixed", special(6, 128, values=[1e4, -1e4], share=1.0)),
        correctness("numbers spread by 5 000", rand(4, 129, std=5e3)),
        correctness("all numbers near -400", rand(3, 129, mean=-400.0)),
        correctness("all numbers near -110", rand(4, 127, mean=-110.0)),
        correctness("all numbers near -50", rand(4, 127, mean=-50.0)),
        correctness("all numbers near 60", rand(4, 127, mean=60.0)),
        correctness("numbers spread by 30", rand(4, 1_000, std=30.0)),
        correctness("numbers that differ by a thousandth", rand(4, 1_000, std=1e-3)),
        correctness("40 rows of three numbers spread by 8", rand(40, 3, std=8.0)),
        correctness("numbers spread by 30 over 2 500 columns", rand(2, 2_500, std=30.0)),
        correctness("one number far above 3 000 others", spike(WIDE)),
        correctness("float16 spread by 30", rand(4, 1_000, std=30.0, dtype="float16")),
        correctness("bfloat16 spread by 30", rand(4, 1_000, std=30.0, dtype="bfloat16")),
        correctness("float16 near -400", rand(3, 129, mean=-400.0, dtype="float16")),
        correctness("bfloat16 near -110", rand(3, 129, mean=-110.0, dtype="bfloat16")),
        correctness("one float16 far above 3 000 others", spike(WIDE, "float16")),

        # The smallest shapes, and one, three and no rows.
        edge("no row", rand(0, 128), launches=0),
        edge("no column", rand(3, 0), launches=0),
        edge("neither row nor column", rand(0, 0, dtype="float16"), launches=0),
        edge("one element", rand(1, 1)),
        edge("three rows of one column", rand(3, 1)),
        edge("one row of two columns", rand(1, 2)),
        edge("three rows of two columns", rand(3, 2)),
        edge("three rows of one column in float16", rand(3, 1, dtype="float16")),
        edge("three rows of two columns in bfloat16", rand(3, 2, dtype="bfloat16")),
        edge("one row of 127 columns", rand(1, 127)),
        edge("three rows of 127 columns", rand(3, 127)),
        edge("one row of 128 columns", rand(1, 128)),
        edge("three rows of 128 columns", rand(3, 128)),
        edge("one row of 129 columns", rand(1, 129)),
        edge("three rows of 129 columns", rand(3, 129)),
        edge("one row of 1 000 columns", rand(1, 1_000)),
        edge("three rows of 1 000 columns", rand(3, 1_000)),
        edge("one row of 4 097 columns", rand(1, 4_097)),
        edge("three rows of 4 097 columns", rand(3, 4_097)),
        edge("one row of 65 535 columns", rand(1, 65_535)),
        launchable("70 000 rows of one column", rand(70_000, 1)),

        # Layouts: views that indexing, transposing and expanding return without a copy.
        edge("every other row, 100 of 200 columns", rand(10, 200)[::2, 50:150], public=True),
        edge("every other row of float16, 100 of 200 columns",
             rand(10, 200, dtype="float16")[::2, 50:150]),
        edge("columns 3 to 130 of 300", rand(5, 300)[:, 3:131]),
        edge("columns 3 to 130 of 300 in bfloat16", rand(5, 300, dtype="bfloat16")[:, 3:131]),
        edge("a transposed view", rand(100, 7).mT),
        edge("a transposed view of float16", rand(129, 5, dtype="float16").mT),
        edge("every third column", rand(5, 300)[:, ::3]),
        edge("all rows but the first", rand(6, 129)[1:]),
        edge("a matrix that starts at the second element of its memory",
             rand(5 * 129 + 1).then(lambda t: t[1:].view(5, 129))),
        edge("a float16 matrix that starts at the second element of its memory",
             rand(5 * 128 + 1, dtype="float16").then(lambda t: t[1:].view(5, 128))),
        edge("one row repeated five times", rand(1, 1_000).then(lambda t: t.expand(5, -1))),
        edge("one column repeated 100 times", rand(5, 1).then(lambda t: t.expand(-1, 100))),
        edge("overlapping rows, each one element further",
             rand(5 + 99).then(lambda t: t.unfold(0, 100, 1))),
        edge("rows 5 000 elements apart", rand(4, 5_000)[:, :127]),
        edge("rows 2**30 elements apart", rand(3, 127, dtype="float16").apart(FAR, 1)),

        # Special values: as torch.softmax treats them, without an effect on adjacent rows.
        edge("NaN and infinities", infinities(129, "float32")),
        edge("NaN and infinities in float16", infinities(128, "float16")),
        edge("NaN and infinities in bfloat16", infinities(129, "bfloat16")),
        edge("-inf in the first 1 500 of 3 000 columns",
             rows(row_with(WIDE, -INF, 0, 1_500), row_with(WIDE, -INF, 1_500, WIDE))),
        edge("NaN, +inf or -inf in the last of 3 000 columns",
             rows(*(row(WIDE, {WIDE - 1: value}) for value in (NAN, INF, -INF)))),
        edge("all numbers equal", full(3, 100, value=0.1)),
        edge("all numbers equal in float16", full(3, 127, value=-7.3, dtype="float16")),
        edge("all numbers equal to -10 000", full(2, 4_097, value=-1e4)),
        edge("one huge number beyond column 1 024",
             rows(row(WIDE, {2_500: 1e30}), row(WIDE, {2_500: -1e30}))),
        edge("both zeros and denormal numbers",
             special(3, 129, values=[0.0, -0.0, 2.0**-149, -(2.0**-149), 2.0**-126], share=1.0)),
        edge("numbers at the largest float32", special(4, 129, values=extremes("float32"))),
        edge("numbers at the largest float16",
             special(4, 129, values=extremes("float16"), dtype="float16")),
        edge("numbers at the largest bfloat16",
             special(4, 129, values=extremes("bfloat16"), dtype="bfloat16")),
        edge("nothing but the largest float32 and its negative",
             special(4, 128, values=extremes("float32")[:2], share=1.0)),

        sizes(lambda rows, columns, dtype: (rand(rows, columns, dtype=dtype),),
              rows=(1, 5), columns=(1, 5_000), dtype=FLOATS),

        # Unsupported arguments must raise before anything is launched.
        refuses("x is a list", [[1.0, 2.0]], raises=TypeError, mentions=("x", "list")),
        refuses("x is a number", 3.0, raises=TypeError, mentions=("x", "float")),
        refuses("x is None", None, raises=TypeError, mentions=("x", "None")),
        refuses("float64 is not supported", rand(4, 128, dtype="float64"),
                raises=TypeError, mentions=("x", "float64")),
        refuses("int32 is not supported", rand(4, 128, dtype="int32"),
                raises=TypeError, mentions=("x", "int32")),
        refuses("bool is not supported", integers(4, 128, low=0, high=1, dtype="bool"),
                raises=TypeError, mentions=("x", "bool")),
        refuses("complex64 is not supported", rand(4, 128, dtype="complex64"),
                raises=TypeError, mentions=("x", "complex64")),
        refuses("int64 is not supported, even without elements", rand(0, 4, dtype="int64"),
                raises=TypeError, mentions=("x", "int64")),
        refuses("a single number without dimensions", rand(),
                raises=ValueError, mentions=("x", "2", "0")),
        refuses("one dimension", rand(128), raises=ValueError, mentions=("x", "2", "1")),
        refuses("one dimension without elements", rand(0),
                raises=ValueError, mentions=("x", "2", "1")),
        refuses("three dimensions", rand(4, 5, 6), raises=ValueError, mentions=("x", "2", "3")),
        refuses("65 537 columns", rand(1, 65_537),
                raises=ValueError, mentions=("x", "65536", "65537")),
        refuses("70 000 columns of float16", rand(2, 70_000, dtype="float16"),
                raises=ValueError, mentions=("x", "65536", "70000")),

        performance("64 x 1 024 floats", rand(64, 1_024),
                    traffic=1.00, sectors=1.00, launches=1, programs=64, spills=0),
        performance("16 384 x 4 096 floats", rand(16_384, 4_096),
                    requests=2.5, spills=0, pass_at=0.75, stretch=0.88),
        performance("12 345 x 5 000 floats", rand(12_345, 5_000),
                    requests=2.5, spills=0, pass_at=0.65, stretch=0.88),
    ],
)


# ---------------------------------------------------------------------------------------------
# Properties of softmax


def same_bits(got: torch.Tensor, expected: torch.Tensor) -> bool:
    """Results hold no NaN and no -0.0 here, so that equal values are equal bits."""
    return got.dtype == expected.dtype and torch.equal(got, expected)


def difference(got: torch.Tensor, expected: torch.Tensor) -> str:
    """Describes how many elements differ, and the first of them; `same_bits` returned False."""
    if got.shape != expected.shape or got.dtype != expected.dtype:
        return (f"{tuple(got.shape)} in {got.dtype} instead of "
                f"{tuple(expected.shape)} in {expected.dtype}")
    wrong = got != expected
    first = tuple(int(i) for i in wrong.nonzero()[0])
    return (f"{int(wrong.sum())} of {wrong.numel()} elements differ, the first is {list(first)}: "
            f"{got[first].item()!r} and {expected[first].item()!r}")


def test_rows_sum_to_one(submission):
    for dtype in UNIT_ROUNDOFF:
        for columns in (127, 1_000, 4_097):
            (x,) = submission.draw(rand(3, columns, dtype=dtype, std=2.0))

            off = (submission(x).double().sum(dim=1) - 1).abs()

            # Rounding C quotients to the result's type moves their sum by at most u; float32
            # arithmetic and denormal float16 results add at most 2**-24 per column.
            most = UNIT_ROUNDOFF[dtype] + columns * 2.0**-24
            worst = int(off.argmax())
            assert off[worst] <= most, (
                f"row {worst} of {columns} columns in {dtype} has a sum that differs from 1 "
                f"by {off[worst]:.3g}; rounding explains at most {most:.3g}"
            )


def test_adding_a_whole_number_to_a_row_changes_no_bit(submission):
    for constant in (64.0, -2048.0):
        (x,) = submission.draw(integers(4, 1_000))  # x + constant is exact

        plain, moved = submission(x), submission(x + constant)

        assert same_bits(moved, plain), (
            f"softmax(x {constant:+.0f}) against softmax(x): {difference(moved, plain)}"
        )


def test_the_order_within_a_row_is_kept(submission):
    (x,) = submission.draw(integers(4, 1_000))  # adjacent results differ by a factor of e or 1

    result = submission(x)

    for number, (values, shares) in enumerate(zip(x, result, strict=True)):
        for value in range(-4, 4):
            lower, higher = shares[values == value], shares[values == value + 1]
            assert lower.max() < higher.min(), (
                f"row {number}: a column with {value} got {lower.max():.7g}, one with {value + 1} "
                f"got {higher.min():.7g}"
            )


def test_permuting_the_columns_permutes_the_result(submission):
    columns = 1_000
    x, keys = submission.draw(rand(4, columns), rand(columns))
    order = keys.argsort()

    plain, permuted = submission(x)[:, order].double(), submission(x[:, order]).double()

    # The bits may differ: the denominators are sums of the same numbers in another order. Each is
    # off by at most 2**-24 * 4 * sqrt(C) or so, relatively, and the quotient by a few roundings.
    most = 2 * (4 * math.sqrt(columns) + 4) * 2.0**-24
    off = ((permuted - plain).abs() / plain).nan_to_num(nan=INF)
    worst = [int(i) for i in (off == off.max()).nonzero()[0]]
    assert off.max() <= most, (
        f"element {worst} of the permuted result is {permuted[tuple(worst)]:.7g}; without the "
        f"permutation it is {plain[tuple(worst)]:.7g}. The relative difference is {off.max():.3g}; "
        f"rounding explains at most {most:.3g}"
    )


def test_two_calls_give_identical_bits(submission):
    (x,) = submission.draw(rand(4, 1_000))

    first, second = submission(x), submission(x)

    assert same_bits(first, second), f"first against second call: {difference(first, second)}"
