"""Hidden tests of tiling: shapes, dtypes, layouts, sectors, tile shapes, sweeps, predictions."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch

from grader.suite import (
    EXACT,
    FLOATS,
    Bench,
    CheckResult,
    Cost,
    Recording,
    Suite,
    call,
    correctness,
    edge,
    extremes,
    performance,
    rand,
    refuses,
    sizes,
    special,
)
from grader.suite.predictions import predictions

SECTOR = 32  # bytes
MAX_ELEMENTS = 4096  # of a tile
USED = 1 / 0.95  # sectors over the fewest, where 95 % of each has to be used
USED_UNALIGNED = 1 / 0.70
FAR = 1 << 30  # elements; the third matrix begins where 31 bits end
COUNTS = ("programs", "sweep_calls")  # predictions that no measuring blurs
ODDITIES = [math.nan, math.inf, -math.inf, 0.0, -0.0]

# m, n, itemsize: square, flat, tall, smaller than a sector, and around powers of two.
SIDES = tuple((m, n, itemsize) for itemsize in (4, 1, 2, 8) for m, n in (
    (256, 256), (1, 1), (1, 257), (257, 1), (2, 3), (3, 100_000), (100_000, 3), (7, 9), (8, 8),
    (16, 33), (31, 32), (33, 65), (64, 96), (127, 129), (1_000, 500), (4_096, 16), (8_192, 8_192),
))


def reference(x: torch.Tensor) -> torch.Tensor:
    return (x.double() if x.dtype.is_floating_point else x).mT


def peer(x: torch.Tensor) -> torch.Tensor:
    return x.mT.contiguous()


# ---------------------------------------------------------------------------------------------
# Tiles that choose_tile may return


def each_tile(rule: Callable[[int, int, int, int, int], str]) -> Callable[..., None]:
    """Returns a check of all tiles; ``rule`` returns the fault of one tile, or nothing."""
    def check(answer: Any, sides: tuple[tuple[int, int, int], ...]) -> None:
        for (m, n, itemsize), tile in zip(sides, answer, strict=True):
            asked = f"The tile of choose_tile({m}, {n}, {itemsize}) is {tile!r}"
            assert isinstance(tile, tuple) and [type(side) for side in tile] == [int, int], (
                f"{asked}, expected a tuple of two int")
            wrong = rule(m, n, itemsize, *tile)
            assert not wrong, f"{asked}: {wrong}"

    return check


def fits(m: int, n: int, itemsize: int, rows: int, cols: int) -> str:
    for side, length, what in ((rows, m, "rows"), (cols, n, "columns")):
        if side < 1 or side & (side - 1):
            return f"{side} {what} are not a power of two"
        if side >= 2 * length:
            counted = f"1 {what[:-1]}" if length == 1 else f"{length:,} {what}"
            return f"a matrix with {counted} does not need a tile with {side:,}"
    return ""


def is_small(m: int, n: int, itemsize: int, rows: int, cols: int) -> str:
    if rows * cols <= MAX_ELEMENTS:
        return ""
    return (f"it has {rows * cols:,} elements, which take {rows * cols * itemsize:,} bytes of "
            f"shared memory and {rows * cols // 128} values in each of 128 threads; the limit is "
            f"{MAX_ELEMENTS:,} elements")


def fills_sectors(m: int, n: int, itemsize: int, rows: int, cols: int) -> str:
    for side, length, what in ((cols, n, "row"), (rows, m, "column")):
        if side < min(SECTOR // itemsize, length):
            return (f"a {what} of the tile has {side * itemsize} bytes, less than a sector of "
                    f"{SECTOR}; a {what} of the matrix has {length * itemsize}")
    return ""


def no_axis_over_13(call: Recording) -> list[CheckResult]:
    """Checks for 13 matrices of 96 x 96 that each grid axis counts one dimension.

    Tiles that use their sectors have at least 8 rows and 8 columns, 12 of each here, and at most
    4,096 elements: an axis that counts tiles of two kinds has more than 13.
    """
    launch = max(call.launches, key=lambda launch: max(launch.grid), default=None)
    if launch is None:
        return [CheckResult("programs along an axis", "0, limit 13")]
    most = max(launch.grid)
    wrong = (f"The grid of `{launch.kernel}` is {launch.grid}: axis {launch.grid.index(most)} has "
             f"{most} programs, and no dimension of this batch needs more than 13. The axis counts "
             "more than one dimension.") if most > 13 else ""
    return [CheckResult("programs along an axis", f"{most}, limit 13", wrong, "T03", launch.line)]


# ---------------------------------------------------------------------------------------------
# Results of a sweep


def finds(best: int, table: dict[int, tuple[float, float]] | None = None) -> Callable[..., None]:
    """Returns a check of the best candidate and, if given, of each median and spread."""
    def check(answer: Any, *inputs: Any) -> None:
        result = answer["result"]
        assert result.type == "SweepResult", f"The sweep returned a {result.type}."
        medians = {row[0]: row[1] for row in result.table}
        repeats = inputs[3]

        def counted(candidate: int) -> str:
            """Names the calls that count; the first call never does."""
            calls = answer["called"].count(candidate)
            if calls == repeats:
                return "without the first call, its times"
            return f"it was called {calls} times; of {repeats} calls, those after the first"

        if table is not None:
            assert [row[0] for row in result.table] == sorted(table), (
                f"The table has rows for {[row[0] for row in result.table]}, expected "
                f"{sorted(table)}.")
            for candidate, typical, spread in result.table:
                right, wide = table[candidate]
                assert math.isclose(typical, right, rel_tol=1e-6), (
                    f"The table has {typical:.4g} ms for candidate {candidate}; "
                    f"{counted(candidate)} have the median {right:.4g} ms.")
                assert math.isclose(spread, wide, rel_tol=1e-6, abs_tol=1e-9), (
                    f"The table has the spread {spread:.4g} for candidate {candidate}; "
                    f"{counted(candidate)} have a (max - min) / median of {wide:.4g}.")
        assert result.best == best, (
            f"The sweep picked {result.best}, expected {best}. Its table has "
            + ", ".join(f"{ms:.3g} ms for {one}" for one, ms in medians.items()) + ".")

    return check


def calls_in_turn(answer: Any, times: Any, script: Any, candidates: Any, repeats: int) -> None:
    called, candidates = answer["called"], sorted(set(candidates))
    assert len(called) == repeats * len(candidates), (
        f"The sweep called its timer {len(called)} times for {len(candidates)} candidates; "
        f"{repeats} calls each are {repeats * len(candidates)}.")
    rounds = [called[at:at + len(candidates)] for at in range(0, len(called), len(candidates))]
    for number, one in enumerate(rounds):
        assert sorted(one) == candidates, (
            f"Round {number + 1} of the calls is {one}; a round has each candidate once.")


def are_five(answer: Any) -> None:
    assert answer == 5, (
        f"With no number of repeats given, a candidate is called {answer} times, expected 5.")


def is_frozen(answer: Any) -> None:
    assert answer is False, "A field of a SweepResult could be assigned: the class is not frozen."


EVEN = ((64, 0.9), (128, 0.7), (256, 0.5), (512, 0.6))  # candidate, ms

suite = Suite(
    entry="batched_transpose",
    parameters=("x",),
    host={"choose_tile": ("m", "n", "itemsize"),
          "sweep_block_sizes": ("time_ms", "candidates")},
    marker="DECIDE",
    reference=reference,
    tolerance=EXACT,
    peer=peer,
    cost=lambda x: Cost(bytes=2 * x.numel() * x.element_size()),
    contiguous_result=True,
    bench=Bench("rows and columns", (256, 512, 1_024, 2_048, 4_096, 5_000, 8_192),
                lambda n: (rand(1, n, n),), at="one matrix of float32",
                peer_name="x.mT.contiguous()"),
    moves="deny",
    cases=[
        # Shapes: sides that are equal or not, and sides that no tile divides.
        correctness("33 x 65 floats", rand(1, 33, 65), public=True),
        correctness("2 matrices of 64 x 96 floats", rand(2, 64, 96), public=True),
        correctness("3 matrices of 7 x 130 floats", rand(3, 7, 130), public=True),
        correctness("256 x 256 floats", rand(1, 256, 256)),
        correctness("5 matrices of 100 x 30 floats", rand(5, 100, 30)),
        correctness("2 matrices of 127 x 129 floats", rand(2, 127, 129)),
        # Every allowed tile has 4 columns (4 rows) and 8 to 1024 rows (columns) here: tiles that
        # are placed by their other side end before 2049.
        correctness("2049 x 3 floats", rand(1, 2_049, 3)),
        correctness("3 x 2049 floats", rand(1, 3, 2_049)),
        correctness("300 x 17 floats", rand(1, 300, 17)),
        correctness("17 x 300 floats", rand(1, 17, 300)),
        *(correctness(f"2 matrices of 64 x 96 in {dtype}", rand(2, 64, 96, dtype=dtype))
          for dtype in ("int8", "float16", "int32", "int64")),
        *(correctness(f"3 matrices of 33 x 65 in {dtype}", rand(3, 33, 65, dtype=dtype))
          for dtype in ("int8", "uint8", "int16", "float16", "bfloat16", "int32", "int64",
                        "float64")),

        # Tiles. A tile that breaks a memory rule gets the code of that rule.
        call("tiles are powers of two, less than twice the matrix", "tiles", SIDES,
             check=each_tile(fits)),
        call("a tile has at most 4096 elements", "tiles", SIDES, check=each_tile(is_small),
             code="T05"),
        call("both sides of a tile fill sectors", "tiles", SIDES, check=each_tile(fills_sectors),
             code="T02"),

        # Sweeps, on a clock that follows a script.
        call("a sweep over four candidates", "sweep", EVEN, (), (64, 128, 256, 512), 5,
             check=finds(256, {one: (ms, 0.0) for one, ms in EVEN})),
        call("one candidate", "sweep", ((64, 0.25),), (), (64,), 5,
             check=finds(64, {64: (0.25, 0.0)})),
        call("a first call that takes much longer", "sweep", ((64, 0.9), (1024, 0.5)),
             (("first", 64, 2.0), ("first", 1024, 18.0)), (64, 1024), 2,
             check=finds(1024, {64: (0.9, 0.0), 1024: (0.5, 0.0)})),
        call("a first call that takes longer, five repeats", "sweep", ((64, 0.9), (1024, 0.5)),
             (("first", 64, 2.0), ("first", 1024, 18.0)), (64, 1024), 5,
             check=finds(1024, {64: (0.9, 0.0), 1024: (0.5, 0.0)})),
        call("one lucky call", "sweep", ((64, 0.92), (256, 0.55)), (("every", 5, 2, 64, 0.41),),
             (64, 256), 5, check=finds(256, {64: (0.92, 0.51 / 0.92), 256: (0.55, 0.0)})),
        call("one unlucky call", "sweep", ((64, 0.92), (256, 0.55)), (("every", 5, 3, 256, 9.0),),
             (64, 256), 5, check=finds(256, {64: (0.92, 0.0), 256: (0.55, 8.45 / 0.55)})),
        call("calls that alternate", "sweep", ((32, 1.0), (64, 1.0)),
             (("turn", 32, 1.0, 1.5), ("turn", 64, 1.1, 1.3)), (32, 64), 5,
             check=finds(64, {32: (1.25, 0.4), 64: (1.2, 0.2 / 1.2)})),
        call("noise of one part in fifty", "sweep", EVEN,
             tuple(("turn", one, ms, ms * 1.02, ms * 0.98, ms) for one, ms in EVEN),
             (64, 128, 256, 512), 5, check=finds(256, {one: (ms, 0.04) for one, ms in EVEN})),
        call("three candidates within 2 % of the best", "sweep",
             ((64, 0.510), (128, 0.500), (256, 0.495), (512, 0.493)), (), (64, 128, 256, 512), 5,
             check=finds(128)),
        call("two equal candidates, the larger one first", "sweep", ((64, 0.5), (512, 0.5)), (),
             (512, 64), 5, check=finds(64, {64: (0.5, 0.0), 512: (0.5, 0.0)})),
        call("a candidate 3 % from the best", "sweep", ((64, 0.515), (128, 0.5)), (), (64, 128), 5,
             check=finds(128)),
        call("a clock that slows down from call to call", "sweep",
             ((64, 0.54), (128, 0.60), (256, 0.50), (512, 0.56)), (("drift", 0.01),),
             (64, 128, 256, 512), 5, check=finds(256)),
        call("candidates in another order", "sweep", EVEN,
             tuple(("turn", one, ms, ms * 1.02, ms * 0.98, ms) for one, ms in EVEN),
             (512, 64, 256, 128), 5, check=finds(256, {one: (ms, 0.04) for one, ms in EVEN})),
        call("each candidate is called five times, in turn", "sweep", EVEN, (),
             (64, 128, 256, 512), 5, check=calls_in_turn, code="T03"),
        call("each candidate is called three times, in turn", "sweep", EVEN, (),
             (64, 128, 256, 512), 3, check=calls_in_turn, code="T03"),
        call("a duplicate candidate is timed once", "sweep", EVEN, (), (64, 64, 128), 5,
             check=calls_in_turn, code="T03"),
        call("five repeats by default", "default_repeats", check=are_five,
             code="T03"),
        call("a result cannot be changed", "changed", check=is_frozen),
        call("no candidate", "sweep", (), (), (), 5, raises=ValueError, mentions=("candidates",)),
        call("a candidate that is not a power of two", "sweep", ((64, 1.0), (96, 1.0)), (),
             (64, 96), 5, raises=ValueError, mentions=("96",)),
        call("a candidate of zero", "sweep", ((0, 1.0),), (), (0,), 5,
             raises=ValueError, mentions=("candidates", "0")),
        call("a negative candidate", "sweep", ((-64, 1.0),), (), (-64,), 5,
             raises=ValueError, mentions=("-64",)),
        call("a single repeat", "sweep", ((64, 1.0),), (), (64,), 1,
             raises=ValueError, mentions=("repeats", "1")),

        # Predictions: shown, never deciding.
        *predictions((
            ("column_share", 0.125, "Each element of a column is in a different sector: 4 bytes of "
             "32 are used."),
            ("column_share_int64", 0.25, "Each element of a column is in a different sector: 8 "
             "bytes of 32 are used."),
            ("least_bytes", 524_288, "65,536 elements of 4 bytes are read and written once."),
            ("sector_bytes", 2_359_296, "Each of the 65,536 loaded elements requests a sector of "
             "32 bytes of its own, 2,097,152 bytes, and the stores fill their sectors: 65,536 "
             "times 4 bytes."),
            ("programs", 768, "1,000 rows are 16 tiles of 64, 500 columns are 16 tiles of 32, "
             "and there are 3 matrices."),
            ("sweep_calls", 30, "Each of the 6 candidates is called 5 times; the first of the 5 "
             "is not counted in the median."),
        ), COUNTS),

        # The smallest shapes, empty ones, and more matrices than axes 1 and 2 have programs.
        edge("four matrices of one element", rand(4, 1, 1)),
        edge("one row", rand(1, 1, 257)),
        edge("one column", rand(1, 257, 1)),
        edge("one row in int8", rand(3, 1, 257, dtype="int8")),
        edge("one element in int64", rand(1, 1, 1, dtype="int64")),
        edge("no matrix", rand(0, 8, 8), launches=0),
        edge("matrices without rows", rand(3, 0, 8), launches=0),
        edge("matrices without columns", rand(3, 8, 0, dtype="int8"), launches=0),
        edge("70000 matrices of 2 x 3", rand(70_000, 2, 3)),

        # Layouts: views from indexing, transposing and expanding, without a copy.
        edge("every other column of 64 x 192", rand(2, 64, 192)[:, :, ::2], public=True),
        edge("every other row", rand(2, 128, 96)[:, ::2]),
        edge("every other matrix", rand(5, 33, 65)[::2]),
        edge("columns 3 to 67 of 100", rand(2, 33, 100)[:, :, 3:68]),
        edge("transposed views", rand(2, 96, 64).mT),
        edge("transposed views in int8", rand(2, 65, 33, dtype="int8").mT),
        edge("a batch dimension with stride 1",
             rand(64, 96, 3).then(lambda t: t.permute(2, 0, 1))),
        edge("one matrix repeated three times",
             rand(1, 33, 65).then(lambda t: t.expand(3, -1, -1))),
        edge("one row repeated 40 times", rand(2, 1, 65).then(lambda t: t.expand(-1, 40, -1))),
        edge("one column repeated 40 times", rand(2, 33, 1).then(lambda t: t.expand(-1, -1, 40))),
        edge("matrices that start at the second element of their memory",
             rand(2 * 33 * 65 + 1).then(lambda t: t[1:].view(2, 33, 65))),
        edge("float16 that starts at the second element of its memory",
             rand(2 * 64 * 96 + 1, dtype="float16").then(lambda t: t[1:].view(2, 64, 96))),
        edge("matrices 2**30 elements apart", rand(3, 4, 70, dtype="int8").apart(FAR, 70, 1)),
        edge("matrices of float16 2**30 elements apart",
             rand(3, 33, 70, dtype="float16").apart(FAR, 70, 1)),
        edge("rows 2**30 elements apart", rand(2, 4, 40, dtype="int8").apart(40, FAR, 1)),
        edge("columns 2**30 elements apart", rand(2, 40, 4, dtype="int8").apart(40, 1, FAR)),

        # Every bit is preserved.
        edge("NaN, infinities and both zeros", special(2, 33, 65, values=ODDITIES)),
        edge("NaN, infinities and both zeros in float16",
             special(2, 33, 65, values=ODDITIES, dtype="float16")),
        edge("NaN, infinities and both zeros in bfloat16",
             special(2, 33, 65, values=ODDITIES, dtype="bfloat16")),
        edge("values near the largest float32", special(1, 33, 65, values=extremes("float32"))),
        edge("denormal numbers",
             special(1, 33, 65, values=[2.0**-149, -(2.0**-149), 2.0**-127], share=1.0)),

        # Arguments outside the contract are refused before anything is launched.
        refuses("x is a list", [[[1.0, 2.0]]], raises=TypeError, mentions=("x", "list")),
        refuses("x is None", None, raises=TypeError, mentions=("x", "None")),
        refuses("complex64 is not supported", rand(2, 3, 4, dtype="complex64"),
                raises=TypeError, mentions=("x", "complex64")),
        refuses("complex128 is not supported", rand(2, 3, 4, dtype="complex128"),
                raises=TypeError, mentions=("x", "complex128")),
        refuses("two dimensions", rand(64, 96), raises=ValueError, mentions=("x", "3", "2")),
        refuses("four dimensions", rand(2, 3, 4, 5), raises=ValueError, mentions=("x", "3", "4")),
        refuses("one dimension without elements", rand(0),
                raises=ValueError, mentions=("x", "3", "1")),

        sizes(lambda matrices, m, n, dtype: (rand(matrices, m, n, dtype=dtype),),
              matrices=(1, 3), m=(1, 150), n=(1, 150), dtype=(*FLOATS, "int8", "int64")),

        performance("256 x 256 floats, counted", rand(1, 256, 256),
                    traffic=1.00, sectors=USED, launches=1, programs=256, spills=0),
        performance("33 x 65 floats, counted", rand(1, 33, 65),
                    traffic=1.00, sectors=USED_UNALIGNED, launches=1, programs=15, spills=0),
        performance("3 matrices of 256 x 128 floats, counted", rand(3, 256, 128),
                    traffic=1.00, sectors=USED, launches=1, programs=384, spills=0),
        performance("13 matrices of 96 x 96 floats, counted", rand(13, 96, 96),
                    traffic=1.00, sectors=USED, launches=1, programs=468, spills=0,
                    check=no_axis_over_13),
        performance("2049 x 3 floats, counted", rand(1, 2_049, 3), launches=1, programs=129),
        performance("3 x 2049 floats, counted", rand(1, 3, 2_049), launches=1, programs=129),
        performance("256 x 256 in int8, counted", rand(1, 256, 256, dtype="int8"),
                    traffic=1.00, sectors=USED, launches=1, programs=256, spills=0),
        performance("256 x 256 in float16, counted", rand(1, 256, 256, dtype="float16"),
                    traffic=1.00, sectors=USED, launches=1, programs=256, spills=0),
        performance("256 x 256 in int64, counted", rand(1, 256, 256, dtype="int64"),
                    traffic=1.00, sectors=USED, launches=1, programs=256, spills=0),
        performance("8192 x 8192 floats", rand(1, 8_192, 8_192),
                    requests=2.5, spills=0, pass_at=0.70, stretch=0.85),
        performance("8200 x 8200 floats", rand(1, 8_200, 8_200), spills=0,
                    pass_at=0.65, stretch=0.85),
    ],
)


# ---------------------------------------------------------------------------------------------
# Properties of the transpose


def same_bits(got: torch.Tensor, expected: torch.Tensor) -> bool:
    return got.dtype == expected.dtype and torch.equal(got, expected)


def difference(got: torch.Tensor, expected: torch.Tensor) -> str:
    """Describes how two tensors that `same_bits` rejects differ."""
    if got.shape != expected.shape or got.dtype != expected.dtype:
        return (f"{tuple(got.shape)} in {got.dtype} instead of "
                f"{tuple(expected.shape)} in {expected.dtype}")
    wrong = got != expected
    first = tuple(int(i) for i in wrong.nonzero()[0])
    return (f"{int(wrong.sum())} of {wrong.numel()} elements differ, the first at {list(first)}: "
            f"{got[first].item()!r} and {expected[first].item()!r}")


def test_transposing_twice_is_the_identity(submission):
    for dtype in ("float32", "int8"):
        (x,) = submission.draw(rand(2, 33, 65, dtype=dtype))

        twice = submission(submission(x))

        assert same_bits(twice, x), f"transposed twice against x: {difference(twice, x)}"


def test_each_matrix_is_transposed_on_its_own(submission):
    (x,) = submission.draw(rand(3, 64, 96))

    whole = submission(x)

    for number in range(3):
        alone = submission(x[number:number + 1])[0]
        assert same_bits(whole[number], alone), (
            f"matrix {number} of a batch against the same matrix alone: "
            f"{difference(whole[number], alone)}")


def test_a_transposed_view_gives_its_memory_back(submission):
    (x,) = submission.draw(rand(2, 33, 65))

    result = submission(x.mT)

    assert same_bits(result, x), f"the transposed view of x against x: {difference(result, x)}"


def test_two_calls_give_the_same_bits(submission):
    (x,) = submission.draw(rand(2, 64, 96))

    first, second = submission(x), submission(x)

    assert same_bits(first, second), f"two calls: {difference(first, second)}"
