"""Hidden tests of memory debugging: read reports, repaired kernels, red zones, access patterns."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

import torch

from grader.suite import (
    EXACT,
    FLOATS,
    Bench,
    Case,
    Cost,
    Function,
    Input,
    Suite,
    call,
    correctness,
    edge,
    extremes,
    full,
    integers,
    launchable,
    performance,
    rand,
    refuses,
    sizes,
    special,
)

INF = math.inf
NAN = math.nan
PRIME = 9_973
FAR = 1 << 30  # elements between rows: three of them are more than 32 bits hold
NONFINITE = [NAN, INF, -INF, -0.0, 2.0**-149]
LENGTHS = (1 << 20, 1 << 23, 1 << 26)


def planted(count: int, limit: int, places: Mapping[int, int], dtype: str = "int64") -> Input:
    """Integers from 0 to limit - 1, and others at some places."""

    def make(generator: torch.Generator, _: tuple[int, ...]) -> torch.Tensor:
        made = torch.randint(0, max(limit, 1), (count,), generator=generator)
        for place, value in places.items():
            made[place] = value
        return made

    return Input(make, (), dtype)


# ---------------------------------------------------------------------------------------------
# Rows


def places(count: int, rows: int, dtype: str = "int64") -> Input:
    """Row numbers, in any order and with repetitions."""
    return integers(count, low=0, high=rows - 1, dtype=dtype)


gather_rows = Function(
    "gather_rows", ("x", "index"),
    reference=lambda x, index: x.double()[index.long()],
    tolerance=EXACT,
    peer=lambda x, index: x[index.long()],
    contiguous_result=True,
    moves="deny",
    bench=Bench("rows that are gathered", (1 << 12, 1 << 15, 1 << 18),
                lambda n: (rand(50_000, 256), places(n, 50_000)),
                at="256 columns of float32", peer_name="x[index]"),
    cost=lambda x, index: Cost(
        bytes=2 * index.numel() * x.shape[1] * x.element_size() + index.nbytes),
    cases=[
        correctness("40 of 30 rows of 100 floats", rand(30, 100), places(40, 30), public=True),
        correctness("40 of 30 rows of 128 floats", rand(30, 128), places(40, 30)),
        correctness("int32 places", rand(30, 129), places(40, 30, "int32")),
        correctness("float16", rand(30, 100, dtype="float16"), places(40, 30)),
        correctness("bfloat16", rand(30, 100, dtype="bfloat16"), places(40, 30)),
        correctness("300 of 7 rows", rand(7, 50), places(300, 7)),
        correctness("more columns than a block has", rand(5, 4_097), places(6, 5)),
        correctness("float16, more columns than a block has", rand(5, 4_097, dtype="float16"),
                    places(6, 5)),
        correctness("bfloat16, more columns than a block has", rand(5, 4_097, dtype="bfloat16"),
                    places(6, 5)),
        edge("one row, taken 9 times", rand(1, 33), full(9, value=0, dtype="int64")),
        edge("the last row only", rand(20, 33), full(3, value=19, dtype="int64")),
        edge("one column", rand(20, 1), places(30, 20)),
        edge("one column more than a block", rand(3, lambda block: block + 1), places(5, 3)),
        edge("one column less than a block", rand(3, lambda block: block - 1), places(5, 3)),
        edge("no place", rand(20, 33), planted(0, 20, {})),
        edge("no place, and no row either", rand(0, 33), planted(0, 20, {})),
        edge("no column", rand(20, 0), places(7, 20)),
        edge("x is transposed", rand(70, 20).mT, places(30, 20)),
        edge("every other row of x", rand(40, 33)[::2], places(30, 20)),
        edge("columns 10 to 60 of x", rand(20, 100)[:, 10:60], places(30, 20)),
        edge("every third column of x", rand(20, 100)[:, ::3], places(30, 20)),
        edge("x begins one element late", rand(21 * 33)[1:].then(
            lambda t: t[:660].view(20, 33)), places(30, 20)),
        edge("all rows of x are one", rand(33).then(lambda t: t.expand(20, 33)), places(30, 20)),
        edge("every other place", rand(20, 33), places(60, 20)[::2]),
        edge("one place, expanded to 12", rand(20, 33),
             places(1, 20).then(lambda t: t.expand(12))),
        edge("NaN, infinities, -0.0, a denormal number", special(20, 100, values=NONFINITE),
             places(30, 20)),
        edge("the largest numbers there are", special(20, 100, values=extremes("float32")),
             places(30, 20)),
        refuses("a place below 0", rand(20, 33), planted(12, 20, {5: -1}),
                raises=IndexError, mentions=("5",)),
        refuses("a place of a million", rand(20, 33), planted(12, 20, {7: 1_000_000}),
                raises=IndexError, mentions=("7",)),
        refuses("a place right behind the last row", rand(20, 33), planted(12, 20, {11: 20}),
                raises=IndexError, mentions=("11",)),
        refuses("three bad places, of which the first is reported", rand(20, 33),
                planted(40, 20, {13: 25, 30: -4, 31: 90}), raises=IndexError, mentions=("13",)),
        refuses("an int32 place below 0", rand(20, 33), planted(12, 20, {8: -20}, "int32"),
                raises=IndexError, mentions=("8",)),
        refuses("a place, and no row", rand(0, 33), planted(4, 20, {}), raises=IndexError,
                mentions=("0",)),
        refuses("a bad place, and no column", rand(20, 0), planted(12, 20, {9: 20}),
                raises=IndexError, mentions=("9",)),
        refuses("places that are floats", rand(20, 33), rand(8), raises=TypeError,
                mentions=("index", "float32")),
        refuses("x has three dimensions", rand(4, 5, 6), places(3, 4), raises=ValueError,
                mentions=("x", "2", "3")),
        refuses("a matrix of places", rand(20, 33), integers(2, 2, low=0, dtype="int64"),
                raises=ValueError, mentions=("index", "1", "2")),
        refuses("places on another device", rand(20, 33), places(8, 20).on_meta(),
                raises=ValueError, mentions=("index", "meta")),

        sizes(lambda rows, columns, taken, dtype: (
                  rand(rows, columns, dtype=dtype), places(taken, rows)),
              rows=(1, 20), columns=(1, 500), taken=(1, 40), dtype=FLOATS, count=20),

        performance("1 024 of 500 rows of 32 floats", rand(500, 32), places(1_024, 500),
                    traffic=1.0, launches=1),
    ],
)

copy_rows = Function(
    "copy_rows", ("x",),
    reference=lambda x: x.double(),
    tolerance=EXACT,
    peer=lambda x: x.clone(memory_format=torch.contiguous_format),
    contiguous_result=True,
    moves="deny",
    bench=Bench("rows and columns", (1_024, 4_096, 8_192), lambda n: (rand(n, n),),
                peer_name="x.clone()"),
    cost=lambda x: Cost(bytes=2 * x.numel() * x.element_size()),
    cases=[
        correctness("50 x 70 floats", rand(50, 70)),
        correctness("50 x 128 floats", rand(50, 128)),
        correctness("127 x 33 in float16", rand(127, 33, dtype="float16")),
        correctness("127 x 33 in bfloat16", rand(127, 33, dtype="bfloat16")),
        correctness("3 x 9 973 floats", rand(3, PRIME)),
        correctness("3 x 9 973 in float16", rand(3, PRIME, dtype="float16")),
        correctness("3 x 9 973 in bfloat16", rand(3, PRIME, dtype="bfloat16")),
        correctness("300 x 8 in float16", rand(300, 8, dtype="float16")),
        correctness("300 x 8 in bfloat16", rand(300, 8, dtype="bfloat16")),
        edge("1 x 1", rand(1, 1), public=True),
        edge("one column", rand(70, 1)),
        edge("one row", rand(1, 70)),
        edge("no row", rand(0, 70)),
        launchable("70 000 rows of one column", rand(70_000, 1)),
        edge("no column", rand(70, 0)),
        edge("one column more than a block", rand(3, lambda block: block + 1)),
        edge("one column less than a block", rand(3, lambda block: block - 1)),
        edge("transposed", rand(70, 50).mT),
        edge("every other row", rand(64, 48)[::2]),
        edge("columns 10 to 60", rand(20, 100)[:, 10:60]),
        edge("every third column", rand(20, 100)[:, ::3]),
        edge("it begins one element late", rand(21 * 32)[1:].then(lambda t: t[:640].view(20, 32))),
        edge("all rows are one", rand(70).then(lambda t: t.expand(50, 70))),
        edge("NaN, infinities, -0.0, a denormal number", special(20, 100, values=NONFINITE)),
        edge("the largest numbers there are",
             special(20, 100, values=extremes("float16"), dtype="float16")),
        edge("rows 2**30 elements apart", rand(4, 70, dtype="float16").apart(FAR, 1)),
        edge("columns 2**30 elements apart", rand(70, 4, dtype="int8").apart(1, FAR)),
        refuses("a vector", rand(70), raises=ValueError, mentions=("x", "2", "1")),
        refuses("three dimensions", rand(4, 5, 6), raises=ValueError, mentions=("x", "2", "3")),

        sizes(lambda rows, columns, dtype: (rand(rows, columns, dtype=dtype),),
              rows=(1, 9), columns=(1, 5_000), dtype=FLOATS, count=20),

        performance("256 x 1 024 floats", rand(256, 1_024), traffic=1.0, launches=1, vector=128),
        performance("16 384 x 8 192 floats", rand(16_384, 8_192), pass_at=0.80, stretch=0.90),
    ],
)


# ---------------------------------------------------------------------------------------------
# Vectors


def shifted(x: torch.Tensor, k: int, fill: float) -> torch.Tensor:
    k = min(k, x.numel())
    return torch.cat([torch.full((k,), fill, dtype=torch.float64), x.double()[:x.numel() - k]])


shift_right = Function(
    "shift_right", ("x", "k", "fill"),
    reference=shifted,
    tolerance=EXACT,
    peer=lambda x, k, fill: shifted(x, k, fill).to(x.dtype),
    contiguous_result=True,
    moves="deny",
    bench=Bench("elements", LENGTHS, lambda n: (rand(n), 3, 0.5), peer_name="torch.cat",
                peer=lambda x, k, fill: torch.cat([x.new_full((k,), fill), x[:-k]])),
    cost=lambda x, k, fill: Cost(bytes=2 * x.numel() * x.element_size()),
    cases=[
        correctness("1 000 floats by 3", rand(1_000), 3, -7.25, public=True),
        correctness("9 973 floats by 1 000", rand(PRIME), 1_000, 0.5),
        correctness("1 024 floats by 1", rand(1_024), 1, 0.0),
        correctness("777 float16 by 10", rand(777, dtype="float16"), 10, 2.5),
        correctness("777 bfloat16 by 10", rand(777, dtype="bfloat16"), 10, 2.5),
        correctness("9 973 float16 by 5 000", rand(PRIME, dtype="float16"), 5_000, -1.5),
        correctness("9 973 bfloat16 by 5 000", rand(PRIME, dtype="bfloat16"), 5_000, -1.5),
        correctness("3 000 float16 by 1", rand(3_000, dtype="float16"), 1, 9.0),
        correctness("3 000 bfloat16 by 1", rand(3_000, dtype="bfloat16"), 1, 9.0),
        correctness("500 floats by 0", rand(500), 0, 9.0),
        edge("no number", rand(0), 3, 1.0),
        edge("one number by 0", rand(1), 0, 1.0),
        edge("one number by 1", rand(1), 1, 1.0),
        edge("by one less than there are", rand(1_000), 999, 4.0),
        edge("by as many as there are", rand(1_000), 1_000, 4.0),
        edge("by more than there are", rand(1_000), 1_001, 4.0),
        edge("by 2**40", rand(1_000), 1 << 40, 4.0),
        edge("one number less than a block", rand(lambda block: block - 1), 5, 4.0),
        edge("one block", rand(lambda block: block), 5, 4.0),
        edge("one number more than a block", rand(lambda block: block + 1), 5, 4.0),
        edge("one number less than two blocks", rand(lambda block: 2 * block - 1), 5, 4.0),
        edge("three blocks and 7 numbers", rand(lambda block: 3 * block + 7), 5, 4.0),
        edge("filled with NaN", rand(500), 20, NAN),
        edge("filled with -infinity", rand(500), 20, -INF),
        edge("filled with a number that is an int", rand(500), 20, 1),
        edge("every other number", rand(2_000)[::2], 7, 3.0),
        edge("it begins one element late", rand(1_001)[1:], 7, 3.0),
        edge("one number, expanded to 300", rand(1).then(lambda t: t.expand(300)), 7, 3.0),
        edge("a column of a matrix", rand(300, 9)[:, 4], 7, 3.0),
        edge("NaN, infinities, -0.0, a denormal number", special(1_000, values=NONFINITE), 7, 0.0),
        edge("all equal", full(1_000, value=3.5), 7, 0.0),
        refuses("by -1", rand(1_000), -1, 0.0, raises=ValueError, mentions=("k", "1")),
        refuses("a matrix", rand(10, 10), 1, 0.0, raises=ValueError, mentions=("x", "1", "2")),

        sizes(lambda n, by, dtype: (rand(n, dtype=dtype), by, -7.25),
              n=(1, 5_000), by=(0, 1_000), dtype=FLOATS, count=20),

        performance("20 000 floats by 5", rand(20_000), 5, 1.0, traffic=1.0, launches=1),
    ],
)


def counted(values: torch.Tensor, num_bins: int) -> torch.Tensor:
    return torch.bincount(values.long(), minlength=num_bins)


def bins(count: int, most: int, dtype: str = "int64") -> Input:
    return integers(count, low=0, high=most - 1, dtype=dtype)


bincount = Function(
    "bincount", ("values", "num_bins"),
    reference=counted,
    tolerance=EXACT,
    result_dtype="int32",
    zeroed=True,
    duplicate_writes=True,  # bins are shared; what matters is who read a count before
    peer=lambda values, num_bins: counted(values, num_bins).int(),
    contiguous_result=True,
    bench=Bench("values", (1 << 19, 1 << 22, 1 << 25), lambda n: (bins(n, 1_000), 1_000),
                at="int64, 1 000 bins", peer_name="torch.bincount",
                peer=lambda values, num_bins: torch.bincount(values, minlength=num_bins)),
    cost=lambda values, num_bins: Cost(bytes=values.numel() * (values.element_size() + 8)),
    cases=[
        correctness("5 000 values, 10 bins", bins(5_000, 10), 10, public=True),
        correctness("5 000 int32 values, 10 bins", bins(5_000, 10, "int32"), 10),
        correctness("300 values, 10 bins", bins(300, 10), 10),
        correctness("100 000 values, 1 000 bins", bins(100_000, 1_000), 1_000),
        correctness("9 973 int32 values, 3 bins", bins(PRIME, 3, "int32"), 3),
        correctness("more bins than values", bins(50, 5_000), 5_000),
        correctness("most bins stay empty", bins(1_000, 4), 300),
        correctness("all values equal", full(100_000, value=7, dtype="int64"), 10),
        edge("one bin", full(3_000, value=0, dtype="int32"), 1),
        edge("no value", planted(0, 5, {}), 5),
        edge("one value, in the last bin", full(1, value=4, dtype="int64"), 5),
        edge("the first and the last bin", planted(2_000, 1, dict.fromkeys(range(0, 2_000, 3), 16)),
             17),
        edge("every value once", Input(
            lambda generator, _: torch.randperm(3_000, generator=generator), (), "int64"), 3_000),
        edge("every other value", bins(2_000, 9)[::2], 9),
        edge("a column of a matrix", integers(500, 7, low=0, high=8, dtype="int32")[:, 3], 9),
        edge("it begins one element late", bins(1_001, 9, "int32")[1:], 9),
        edge("one value, expanded to 700", full(1, value=3, dtype="int64").then(
            lambda t: t.expand(700)), 9),
        refuses("a value of -1", planted(1_000, 10, {400: -1}), 10, raises=ValueError,
                mentions=("-1",)),
        refuses("a value right behind the last bin", planted(1_000, 10, {999: 10}), 10,
                raises=ValueError, mentions=("10",)),
        refuses("three values without a bin, of which the first is reported",
                planted(1_000, 10, {17: 555, 300: -4, 301: 777}, "int32"), 10, raises=ValueError,
                mentions=("555",)),
        refuses("a value above 2**31", planted(1_000, 10, {600: (1 << 32) + 3}), 10,
                raises=ValueError, mentions=(str((1 << 32) + 3),)),
        refuses("values that are floats", rand(10), 10, raises=TypeError,
                mentions=("values", "float32")),
        refuses("a matrix of values", integers(3, 3, low=0, dtype="int64"), 10, raises=ValueError,
                mentions=("values", "1", "2")),
        refuses("no bin", bins(5, 1), 0, raises=ValueError, mentions=("num_bins", "0")),

        sizes(lambda n, num_bins, dtype: (bins(n, num_bins, dtype), num_bins),
              n=(1, 5_000), num_bins=(1, 500), dtype=("int64", "int32"), count=20),

        performance("20 480 int32 values, 100 bins", bins(20_480, 100, "int32"), 100,
                    traffic=1.0, launches=1),
    ],
)


# ---------------------------------------------------------------------------------------------
# Reports

CAUSES = ("missing-mask", "off-by-one", "int32-overflow", "race", "misaligned-view",
          "negative-offset", "bad-index")
REMEDIES = ("mask-the-access", "tighten-the-mask", "widen-before-multiplying",
            "widen-after-multiplying", "use-an-atomic", "add-a-barrier", "align-the-view",
            "pad-the-allocation", "check-on-the-host", "clamp-the-index")
FIELDS = {"tensor": str, "access": str, "program": int, "bytes_past_end": int, "root_cause": str,
          "remedy": str}

# Remedies that are wrong for every report.
NO_REMEDY = {
    "pad-the-allocation": "more bytes after a tensor hide such an access, and the next tensor "
                          "may have none",
    "clamp-the-index": "a clamped index silently gives a wrong value",
    "add-a-barrier": "a barrier synchronizes the threads of one program, and not different "
                     "programs",
    "widen-after-multiplying": "the product has already overflowed in 32 bits when it is "
                               "widened",
}


def read(name: str, right: Mapping[str, Any], *, tensor: str, access: str, program: Any,
         causes: Mapping[str, str], off: Any, remedy: str) -> Case:
    """One entry of REPORTS. The other arguments quote what in the report contradicts a wrong one.

    ``program`` and ``off`` may be functions of the wrong number.
    """

    def check(answer: object, *_: object) -> None:
        assert answer is not None, f"REPORTS has no entry for {name}"
        assert getattr(answer, "type", "") == "ReportAnswer" and all(
            hasattr(answer, field) for field in FIELDS), (
            f"the entry for {name} is {answer!r:.80}, expected a ReportAnswer")
        given = {field: getattr(answer, field) for field in FIELDS}
        for field, kind in FIELDS.items():
            assert type(given[field]) is kind, (
                f"{name}: `{field}` is {given[field]!r:.60}, "
                f"expected {'an int' if kind is int else 'a string'}")
        assert any(given.values()), f"the entry for {name} is empty"
        wrong = {field: given[field] for field in FIELDS if given[field] != right[field]}

        def told(field: str, why: Any) -> None:
            if field in wrong:
                said = why(wrong[field]) if callable(why) else why
                raise AssertionError(f"{name}: `{field}` is {wrong[field]!r:.60}, but {said}")

        told("tensor", tensor)
        assert given["access"] in ("load", "store"), (
            f"{name}: `access` is {given['access']!r:.40}; it is \"load\" or \"store\"")
        told("access", access)
        assert given["root_cause"] in CAUSES, (
            f"{name}: {given['root_cause']!r:.60} is not one of the causes in the README")
        told("root_cause", lambda cause: causes[cause])
        told("program", program)
        told("bytes_past_end", off)
        assert given["remedy"] in REMEDIES, (
            f"{name}: {given['remedy']!r:.60} is not one of the remedies in the README")
        told("remedy", lambda chosen: NO_REMEDY.get(chosen, remedy))

    return call(f"report {name}", "report", name, check=check)


def answer(tensor: str, access: str, program: int, off: int, cause: str, remedy: str
           ) -> dict[str, Any]:
    return dict(zip(FIELDS, (tensor, access, program, off, cause, remedy), strict=True))


def distance(right: int, size: int, of_first: int, of_last: int) -> Any:
    """What a wrong number of bytes is instead, where that shows."""

    def why(given: int) -> str:
        if given * size == right:
            return f"that is a number of elements, of {size} bytes each"
        if given == of_first:
            return "that is the first element; the program has more elements out of bounds"
        if given == of_last:
            return ("that leads to the first byte of the last access, and the last byte that it "
                    "touches is expected")
        if given == -right:
            return "bytes past the last one count as positive, bytes before the first as negative"
        return ("the addresses in the report give another number: from the last byte that the "
                "tensor owns to the last byte that the program touches")

    return why


# R3: where a program's row begins, in elements, and its value in 32 bits.
STRIDE, CAUGHT, ROWS, REACHED = 1_300_000, 1_661, 1_664, 1_652
WRAPPED = (REACHED * STRIDE - 2**32) * 4


def early_row(program: int) -> str:
    if program == CAUGHT:
        return ("that is the program that the report caught; programs run in any order, and rows "
                "before this one are out of bounds, too")
    if not 0 <= program < ROWS:
        return f"the launch has {ROWS:,} programs, from 0 on"
    start = program * STRIDE
    if start < 2**31:
        return f"its row begins at element {start:,}, which still fits 32 bits"
    return f"its row begins at element {start:,}, and the row before it overflows, too"


def far_below(given: int) -> str:
    if given == (CAUGHT * STRIDE - 2**32) * 4:
        return "that is the distance of the program in the report, not of the first one"
    if given * 4 == WRAPPED:
        return "that is a number of elements, of 4 bytes each"
    if given == -WRAPPED:
        return "bytes before the first one count as negative"
    return ("the row of the first such program is elsewhere: take the element at which it begins, "
            "wrap it to 32 bits, and multiply by 4 bytes per element")


reports = [
    read("R1", answer("bias", "load", 2, 336, "missing-mask", "mask-the-access"),
         tensor="the nearest allocation begins at 0x7f3a40000600, and the launch table names its "
                "tensor",
         access="the report says what kind of access each error was",
         program=lambda _: "each error names its block, and Triton's programs are CUDA's blocks",
         causes={
             "off-by-one": "84 elements are past the end; a bound that is one too high admits "
                           "one",
             "int32-overflow": "the tensor has 300 elements, and no offset in it comes near 2**31",
             "race": "a single program is enough for this access; no other one takes part",
             "misaligned-view": "every address is a multiple of 4, and a misaligned one would "
                                "still lie in the tensor",
             "negative-offset": "the addresses lie after the last byte, not before the first",
             "bad-index": "the launch has no index tensor, and the addresses are contiguous, as "
                          "those of a block are",
         },
         off=distance(336, 4, 4, 333),
         remedy="84 of the 128 elements of the last block are past the end and not masked; this "
                "does not mask them"),
    read("R2", answer("out", "store", 7, 2, "off-by-one", "tighten-the-mask"),
         tensor="the finding names the tensor whose end was passed",
         access="the finding says what the program did",
         program=lambda _: "the finding names the program",
         causes={
             "missing-mask": "the last block has 24 elements past the end, and 23 of them were "
                             "masked",
             "int32-overflow": "the tensor has 1,000 elements, and no offset in it comes near "
                               "2**31",
             "race": "a single program is enough for this store; no other one takes part",
             "misaligned-view": "the element's address is a multiple of its 2 bytes, and a "
                                "misaligned one would still lie in the tensor",
             "negative-offset": "index 1000 lies after the last element, not before the first",
             "bad-index": "the launch has no index tensor, and the index is the first one past "
                          "the end",
         },
         off=distance(2, 2, 4, 0),
         remedy="the mask exists and admits one element of 24 too many; this does not change "
                "that"),
    read("R3", answer("x", "load", REACHED, WRAPPED, "int32-overflow", "widen-before-multiplying"),
         tensor="the nearest allocation begins at 0x7f3a40000000, and the launch table names its "
                "tensor",
         access="the report says what kind of access the error was",
         program=early_row,
         causes={
             "missing-mask": "the address lies 8.5 GB below the tensor: no mask bug jumps that far",
             "off-by-one": "the address lies 8.5 GB below the tensor, and one element is 4 bytes",
             "race": "a single program is enough for this access; no other one takes part",
             "misaligned-view": "the address is a multiple of 4, and a misaligned one would lie "
                                "near the tensor",
             "negative-offset": "rows and columns count up from 0 here; a subtraction would have "
                                "to be of 2**31 elements",
             "bad-index": "the launch has no index tensor",
         },
         off=far_below,
         remedy="the offset of the row would still be computed in 32 bits"),
    read("R4", answer("totals", "store", 1, 0, "race", "use-an-atomic"),
         tensor="the findings name the tensor that two programs access",
         access="programs that only load the same element do not race",
         program=lambda given: ("that program is the later one of the two" if given == 4 else
                                "the findings name the two programs, and this is neither"),
         causes=dict.fromkeys(
             ("missing-mask", "off-by-one", "int32-overflow", "negative-offset", "bad-index"),
             "no access left its tensor, and that is what this cause leads to") | {
             "misaligned-view": "alignment does not affect two programs that access one "
                                "element"},
         off=lambda _: "no access left its tensor",
         remedy="both programs could still load the old value before either stores"),
    read("R5", answer("x", "load", 0, 0, "misaligned-view", "align-the-view"),
         tensor="the profiles differ in one kind of instruction, and the table says which tensor "
                "that belongs to",
         access="the profiles differ in one kind of instruction",
         program=lambda _: "all programs run the same instructions, so the first of the grid is "
                           "the first",
         causes=dict.fromkeys(
             ("missing-mask", "off-by-one", "int32-overflow", "negative-offset", "bad-index"),
             "the report has no out-of-bounds access") | {
             "race": "the report has no two programs that access one element"},
         off=lambda _: "no access left its tensor",
         remedy="the same kernel loads 16 bytes at a time in the benchmark; the address of the "
                "first element is the only difference, and this does not change it"),
]


# ---------------------------------------------------------------------------------------------
# Red zones

Run = list[Any]  # side, offset, length


def in_words(runs: object) -> str:
    if not isinstance(runs, list):
        return f"{runs!r:.80}"
    if not runs:
        return "nothing"
    shown = [f"{one[2]} byte{'s' * (one[2] != 1)} {one[0]} the tensor at offset {one[1]}"
             if isinstance(one, list) and len(one) == 3 else f"{one!r:.60}" for one in runs[:3]]
    more = f" and {len(runs) - 3} more" if len(runs) > 3 else ""
    return ", ".join(shown) + more


def inside_of_allocation(told: Mapping[str, Any], zone: int) -> None:
    outside = told.get("outside")
    assert outside is None, (
        f"byte {outside[1]} {'before the tensor' if outside[0] == 'before' else 'past the end'} "
        f"lies outside the allocation; expected red zones of {zone} bytes on either side, in "
        "one allocation with the tensor")


def corrupted(name: str, changes: Sequence[tuple[str, int, int]], expected: Sequence[Run], *,
              shape: Sequence[int] = (10,), dtype: str = "float32", red_zone: int | None = None,
              values: Sequence[int] = (0,), hint: str = "") -> Case:
    """Writes bytes next to a guarded tensor; ``check`` must report exactly these."""

    def check(told: Any, *_: object) -> None:
        inside_of_allocation(told, red_zone or 256)
        got = told["first"]
        assert isinstance(got, list), (
            f"`check` returned {got!r:.60}, expected a list of Corruption")
        said = f"{hint or 'written: ' + in_words([list(one) for one in changes])}; `check` "
        assert got == list(expected), (
            f"{said}reported {in_words(got)}, expected {in_words(list(expected))}")
        assert told["again"] == got, (
            f"{said}reported {in_words(got)}, and on a second call {in_words(told['again'])}")

    return call(f"red zones: {name}", "corrupted", list(shape), dtype, red_zone,
                [list(one) for one in changes], list(values), check=check)


def made(name: str, shape: Sequence[int], dtype: str = "float32",
         red_zone: int | None = None) -> Case:
    """The tensor before anything is written."""

    def check(told: Any, *_: object) -> None:
        zone = red_zone or 256
        for what, right in (("shape", list(shape)), ("dtype", dtype), ("device", "cpu")):
            assert told[what] == right, f"the tensor's {what} is {told[what]}, expected {right}"
        assert told["contiguous"], "the tensor is not contiguous"
        assert told["address"] == 0, (
            f"the tensor's address is {told['address']} bytes above a multiple of 16, with a red "
            f"zone of {zone} bytes")
        for side in ("before", "after"):
            assert told[side] >= zone, (
                f"the allocation has {told[side]} bytes {side} the tensor, expected red zones of "
                f"{zone} on either side")
            assert told[f"pattern {side}"], (
                f"the {zone} bytes {side} the tensor do not all hold 0xA5")
        assert not told["held"], (
            f"nothing was written into the tensor of {dtype}, and {told['held']}; expected NaN in "
            "each element, or bytes of 0xA5 if the dtype has no NaN")
        assert told["check"] == [], (
            f"nothing was written, and `check` reported {in_words(told['check'])}")

    return call(f"guarded_empty: {name}", "guarded_empty", list(shape), dtype, red_zone,
                check=check)


def refused_zone(red_zone: int) -> Case:
    return call(f"guarded_empty: a red zone of {red_zone}", "guarded_empty", [4], "float32",
                red_zone, raises=ValueError, mentions=("red_zone", str(abs(red_zone))))


def all_bytes(red_zone: int) -> Case:
    def check(told: Any, *_: object) -> None:
        inside_of_allocation(told, red_zone)
        if told["missed"]:
            side, offset, got = told["first"][0]
            raise AssertionError(
                f"of {2 * red_zone} single bytes, {told['missed']} were not reported as such; "
                f"the first: 1 byte {side} the tensor at offset {offset} gave {in_words(got)}")

    return call(f"red zones: each byte of {red_zone} on either side", "each_byte", red_zone,
                check=check)


def untouched(told: Any, *_: object) -> None:
    assert told["kept"], "the tensor does not contain the values that were written into it"
    assert told["first"] == [], (
        f"only the tensor's own elements were written, and `check` reported "
        f"{in_words(told['first'])}")


def told_apart(told: Any, *_: object) -> None:
    inside_of_allocation(told, 256)
    assert told["first"] == [["after", 2, 3]], (
        f"3 bytes were written after the first of two tensors, at offset 2; its `check` reported "
        f"{in_words(told['first'])}")
    assert told["other"] == [], (
        f"nothing was written next to the second of two tensors; its `check` reported "
        f"{in_words(told['other'])}")


guards = [
    made("10 floats", [10]),
    made("a matrix of float16", [3, 5], "float16"),
    made("float64", [7], "float64"),
    made("bfloat16", [9], "bfloat16"),
    made("complex64", [5], "complex64"),
    made("int64", [7], "int64"),
    made("7 bytes", [7], "uint8"),
    made("no dimension", []),
    made("no element", [3, 0]),
    made("three dimensions of int32", [2, 3, 5], "int32"),
    made("the least red zone", [10], "float32", 16),
    made("a red zone of 20", [10], "float32", 20),
    made("a red zone of 333", [11], "int8", 333),
    made("a red zone of 4 096", [100], "float16", 4_096),
    refused_zone(15),
    refused_zone(0),
    refused_zone(-64),
    corrupted("nothing is written", [], []),
    corrupted("1 byte right before", [("before", 0, 1)], [["before", 0, 1]]),
    corrupted("1 byte right after", [("after", 0, 1)], [["after", 0, 1]]),
    corrupted("1 byte far after", [("after", 200, 1)], [["after", 200, 1]]),
    corrupted("1 byte far before", [("before", 200, 1)], [["before", 200, 1]]),
    corrupted("the last byte after", [("after", 255, 1)], [["after", 255, 1]]),
    corrupted("the last byte before", [("before", 255, 1)], [["before", 255, 1]]),
    corrupted("24 elements past the end", [("after", 0, 96)], [["after", 0, 96]]),
    corrupted("one element before the start", [("before", 0, 4)], [["before", 0, 4]]),
    corrupted("a stray element before the start", [("before", 36, 4)], [["before", 36, 4]]),
    corrupted("inside only", [("after", -40, 40)], [],
              hint="written: all 40 bytes of the tensor and no others"),
    corrupted("from the inside across the end", [("after", -8, 12)], [["after", 0, 4]],
              hint="written: the last 8 bytes of the tensor and 4 after them"),
    corrupted("three places", [("before", 30, 5), ("after", 0, 2), ("after", 77, 1)],
              [["before", 30, 5], ["after", 0, 2], ["after", 77, 1]]),
    corrupted("two places before", [("before", 3, 2), ("before", 100, 7)],
              [["before", 100, 7], ["before", 3, 2]]),
    corrupted("two runs with one byte between", [("after", 10, 3), ("after", 14, 3)],
              [["after", 10, 3], ["after", 14, 3]]),
    corrupted("two writes side by side", [("after", 10, 3), ("after", 13, 3)],
              [["after", 10, 6]], hint="written: bytes 10 to 12 and 13 to 15 after the tensor"),
    corrupted("all of both zones", [("before", 0, 256), ("after", 0, 256)],
              [["before", 0, 256], ["after", 0, 256]], values=(1, 0xFF)),
    corrupted("the value of the pattern", [("before", 0, 8), ("after", 0, 8)], [], values=(0xA5,),
              hint="written: the pattern itself, which cannot be detected"),
    corrupted("one bit", [("after", 31, 1)], [["after", 31, 1]], values=(0xA4,)),
    corrupted("beside 7 bytes", [("after", 0, 1), ("before", 0, 1)],
              [["before", 0, 1], ["after", 0, 1]], shape=[7], dtype="uint8", red_zone=20),
    corrupted("beside no element", [("after", 5, 2)], [["after", 5, 2]], shape=[0]),
    corrupted("beside float64 with a zone of 20", [("before", 19, 1), ("after", 19, 1)],
              [["before", 19, 1], ["after", 19, 1]], shape=[3], dtype="float64", red_zone=20),
    all_bytes(37),
    all_bytes(256),
    call("red zones: every element is written", "filled", [5, 7], "float16", check=untouched),
    call("red zones: every element of int32 is written", "filled", [11], "int32", check=untouched),
    call("red zones: two tensors", "two_at_once", check=told_apart),
]


# ---------------------------------------------------------------------------------------------
# Access patterns


def truth(offsets: Sequence[int], itemsize: int, base: int) -> dict[str, Any]:
    """The four numbers, byte by byte."""
    touched = {base % 16 + offset * itemsize + byte for offset in offsets
               for byte in range(itemsize)}
    sectors = len({place // 32 for place in touched})

    def together(width: int) -> bool:
        groups = [offsets[first:first + width] for first in range(0, len(offsets), width)]
        return base % (width * itemsize) == 0 and all(
            len(group) == width and group[0] * itemsize % (width * itemsize) == 0
            and all(b - a == 1 for a, b in pairwise(group))
            for group in groups)

    return {
        "sectors": sectors,
        "efficiency": len(touched) / (32 * sectors),
        "contiguous": all(b - a == 1 for a, b in pairwise(offsets)),
        "vector_width": max(width for width in (1, 2, 4, 8, 16)
                            if width == 1 or (width * itemsize <= 16 and together(width))),
    }


def pattern(name: str, offsets: Sequence[int], itemsize: int = 4, base: int | None = None) -> Case:
    right = truth(offsets, itemsize, base or 16)
    shown = f"offsets {', '.join(map(str, offsets[:6]))}{', ...' * (len(offsets) > 6)}"
    where = f"{shown} of {itemsize} bytes, base aligned to {base or 16}"

    def check(answer: Any, *_: object) -> None:
        assert getattr(answer, "type", "") == "AccessStats", (
            f"`access_stats` returned {answer!r:.80}, expected an AccessStats")
        for field, wanted in right.items():
            got = getattr(answer, field, None)
            kind: Any = (int, float) if field == "efficiency" else type(wanted)
            same = isinstance(got, kind) and (
                type(got) is bool) == (type(wanted) is bool) and math.isclose(got, wanted,
                                                                              rel_tol=1e-9)
            assert same, f"{where}: `{field}` is {got!r:.40}, expected {wanted!r}"

    return call(f"access_stats: {name}", "access_stats", list(offsets), itemsize,
                *(() if base is None else (base,)), check=check)


SHUFFLED = [(17 * lane + 5) % 32 for lane in range(32)]
SCATTERED = [(lane * 7_919 + 13) % 100_003 for lane in range(32)]

patterns = [
    pattern("32 contiguous elements", range(32)),
    pattern("32 contiguous elements, each 2 bytes", range(32), 2),
    pattern("32 contiguous elements, each 1 byte", range(32), 1),
    pattern("32 contiguous elements, each 8 bytes", range(32), 8),
    pattern("contiguous from 4 on", range(4, 36)),
    pattern("contiguous from 1 on", range(1, 33)),
    pattern("contiguous from 2 on", range(2, 34)),
    pattern("30 contiguous elements", range(30)),
    pattern("every other element", range(0, 64, 2)),
    pattern("every 25th element", range(0, 800, 25)),
    pattern("every 32nd element", range(0, 1_024, 32)),
    pattern("backwards", range(31, -1, -1)),
    pattern("contiguous in another order", SHUFFLED),
    pattern("scattered", SCATTERED),
    pattern("all lanes at one element", [9] * 32),
    pattern("two lanes at each element", [lane // 2 for lane in range(32)]),
    pattern("groups of four, then a gap", [100 * (lane // 4) + lane % 4 for lane in range(32)]),
    pattern("pairs with gaps", [10 * (lane // 2) + lane % 2 for lane in range(32)]),
    pattern("groups of four elements of 2 bytes",
            [12 * (lane // 4) + lane % 4 for lane in range(32)], 2),
    pattern("one lane", [5]),
    pattern("before the base", range(-8, 24)),
    pattern("the base at a multiple of 4", range(32), 4, 4),
    pattern("the base at a multiple of 8", range(32), 4, 8),
    pattern("the base at a multiple of 16", range(32), 4, 16),
    pattern("the base at a multiple of 2, each 2 bytes", range(64), 2, 2),
    pattern("the base at a multiple of 8, each 2 bytes", range(64), 2, 8),
    pattern("the base at a multiple of 4, from 3 on", range(3, 35), 4, 4),
    pattern("the base at a multiple of 8, each 8 bytes", range(16), 8, 8),
    call("access_stats: no lanes", "access_stats", [], 4, raises=ValueError, mentions=("offsets",)),
    call("access_stats: an alignment of 3", "access_stats", [0, 1], 1, 3, raises=ValueError,
         mentions=("base_alignment", "3")),
    call("access_stats: an alignment of 32", "access_stats", [0, 1], 4, 32, raises=ValueError,
         mentions=("base_alignment", "32")),
    call("access_stats: an alignment below the element's size", "access_stats", [0, 1], 8, 4,
         raises=ValueError, mentions=("base_alignment", "4")),
]


def aligned(name: str, dtype: str, offsets: Sequence[int], right: Sequence[int]) -> Case:
    def check(answer: Any, *_: object) -> None:
        assert answer == list(right), (
            f"views of {dtype} that begin {', '.join(map(str, offsets))} elements after an "
            f"address divisible by 16 gave {answer!r:.60}, expected {list(right)}")

    return call(f"alignment_of: {name}", "alignment_of", dtype, list(offsets), check=check)


alignments = [
    aligned("four views of float32", "float32", [0, 1, 2, 3], [16, 4, 8, 4]),
    aligned("nine views of float16", "float16", list(range(9)), [16, 2, 4, 2, 8, 2, 4, 2, 16]),
    aligned("views of bytes", "uint8", [1, 12, 24, 32], [1, 4, 8, 16]),
    aligned("views of int64", "int64", [0, 1, 2, 3], [16, 8, 16, 8]),
]


suite = Suite(
    functions=[gather_rows, shift_right, bincount, copy_rows],
    host={"access_stats": ("offsets", "itemsize", "base_alignment"), "alignment_of": ("x",)},
    cases=[*reports, *guards, *patterns, *alignments],
    files=tuple(f"reports/R{number}.txt" for number in range(1, 6)),
)
