"""Hidden tests of vector addition: values, layouts, special values, errors, cost."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch

from grader.suite import (
    EXACT,
    FLOATS,
    Bench,
    Cost,
    Input,
    Sparse,
    Suite,
    correctness,
    edge,
    full,
    integers,
    performance,
    rand,
    refuses,
    sizes,
    special,
    wide,
)

FLOAT32_MAX = torch.finfo(torch.float32).max
DENORMAL = 2.0**-149  # the smallest float32 above zero
N = 262_144  # floats: 256 tiles of 1 024, small enough to be interpreted in full


def reference(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    """The exact sum: float64 for floats, the dtype's own wrapping arithmetic for integers."""
    return x.double() + y.double() if x.is_floating_point() else x + y


def pair(make: Callable[..., Input], *sizes: Any, **options: Any) -> tuple[Input, Input]:
    """Two inputs of the same description; their values are drawn independently."""
    return make(*sizes, **options), make(*sizes, **options)


def limits_of(dtype: str) -> list[float]:
    """Values whose sums stay just below, reach or pass the largest finite one."""
    largest = torch.finfo(getattr(torch, dtype)).max
    return [largest, -largest, largest / 2, -largest / 2, largest * 2**-12, 1.0]


SPECIAL = [
    math.nan, math.inf, -math.inf, 0.0, -0.0,
    DENORMAL, -DENORMAL, 2.0**-127, 2.0**-126, -(2.0**-126),
]

suite = Suite(
    entry="vector_add",
    parameters=("x", "y"),
    reference=reference,
    tolerance=EXACT,  # one addition, one rounding
    peer=lambda x, y: x + y,
    cost=lambda x, y: Cost(bytes=3 * x.nbytes, flops=x.numel()),
    blanks=15,
    contiguous_result=True,
    bench=Bench("elements", (*(1 << power for power in range(16, 27, 2)), (1 << 26) + 13),
                lambda n: (rand(n), rand(n)), peer_name="x + y"),
    cases=[
        correctness("10 000 floats", *pair(rand, 10_000), public=True),
        correctness("98 305 floats, one more than 96 tiles of 1 024",
                    *pair(rand, 98_305), public=True),
        correctness("a matrix of 37 x 53", *pair(rand, 37, 53), public=True),
        correctness("three dimensions, 2 x 3 x 5", *pair(rand, 2, 3, 5)),
        correctness("a single number without dimensions", *pair(rand)),
        correctness("float16", *pair(rand, 10_000, dtype="float16")),
        correctness("bfloat16", *pair(rand, 10_000, dtype="bfloat16")),
        correctness("int32", *pair(rand, 10_000, dtype="int32")),
        correctness("int64", *pair(rand, 10_000, dtype="int64")),
        correctness("a float16 matrix of 37 x 53", *pair(rand, 37, 53, dtype="float16")),
        correctness("int32 over its whole range, sums wrap around",
                    *pair(integers, 4_099, low=-(2**31), high=2**31 - 1, dtype="int32")),
        correctness("int64 beyond what a double can hold",
                    *pair(integers, 4_099, low=-(2**62), high=2**62 - 1, dtype="int64")),
        correctness("values over six decades", *pair(wide, 9_973)),
        correctness("float16 over four decades", *pair(wide, 9_973, dtype="float16", decades=2.0)),
        correctness("integers stored as floats", *pair(integers, 9_973)),

        # Sizes around the tile that the submission itself uses.
        edge("no element at all", *pair(rand, 0), launches=0),
        edge("no element, in a shape of 3 x 0 x 2", *pair(rand, 3, 0, 2), launches=0),
        edge("one element", *pair(rand, 1)),
        edge("one element less than a tile", *pair(rand, lambda B: B - 1)),
        edge("exactly one tile", *pair(rand, lambda B: B)),
        edge("one element more than a tile", *pair(rand, lambda B: B + 1)),
        edge("one element less than two tiles", *pair(rand, lambda B: 2 * B - 1)),
        edge("three tiles and seven elements", *pair(rand, lambda B: 3 * B + 7)),
        edge("a prime number of elements, 9 973", *pair(rand, 9_973)),

        # Layouts: views that indexing and transposing return without a copy.
        edge("a transposed view beside a plain matrix", rand(53, 37).mT, rand(37, 53), public=True),
        edge("two transposed views", rand(53, 37).mT, rand(53, 37).mT),
        edge("a plain matrix beside a transposed view", rand(37, 53), rand(53, 37).mT),
        edge("every other row", rand(64, 48)[::2], rand(32, 48)),
        edge("a block of columns of a wider matrix", rand(40, 96)[:, 8:45], rand(40, 37)),
        edge("every third element", rand(3_001)[::3], rand(1_001)),
        edge("every other element of both", rand(2_001)[::2], rand(2_001)[::2]),
        edge("gaps between the rows of y alone, in three dimensions",
             rand(3, 4, 5), rand(3, 8, 5)[:, ::2]),
        edge("views that start at the second element", rand(4_098)[1:], rand(4_098)[1:]),
        edge("float16 views that start at the second element",
             rand(4_098, dtype="float16")[1:], rand(4_098, dtype="float16")[1:]),
        edge("a row that is expanded to a matrix",
             rand(1, 53).then(lambda t: t.expand(37, 53)), rand(37, 53)),
        edge("a column that is expanded to a matrix",
             rand(37, 53), rand(37, 1).then(lambda t: t.expand(37, 53))),
        edge("int64 in a transposed view",
             rand(29, 31, dtype="int64").mT, rand(31, 29, dtype="int64")),

        # Special values.
        edge("NaN, infinities, both zeros and denormal numbers",
             *pair(special, 4_099, values=SPECIAL, share=0.5)),
        edge("special values in float16",
             *pair(special, 4_099, values=[*SPECIAL[:5], 2.0**-24, -(2.0**-24), 2.0**-14],
                   share=0.5, dtype="float16")),
        edge("special values in bfloat16",
             *pair(special, 4_099, values=[*SPECIAL[:5], 2.0**-133, -(2.0**-133), 2.0**-126],
                   share=0.5, dtype="bfloat16")),
        edge("both zeros in every combination", *pair(special, 512, values=[0.0, -0.0], share=1.0)),
        edge("sums at the largest float32 and past it",
             *pair(special, 2_048, values=limits_of("float32"), share=1.0)),
        edge("sums at the largest float16 and past it",
             *pair(special, 2_048, values=limits_of("float16"), share=1.0, dtype="float16")),
        edge("all elements equal", full(5_000, value=0.1), full(5_000, value=0.7)),
        edge("one huge element among ordinary ones",
             special(5_000, values=[1e30], share=0.0), rand(5_000)),

        # Unsupported arguments must raise before anything is launched.
        refuses("x is a list", [1.0, 2.0], rand(2), raises=TypeError, mentions=("x", "list")),
        refuses("y is a number", rand(2), 3.0, raises=TypeError, mentions=("y", "float")),
        refuses("y is None", rand(2), None, raises=TypeError, mentions=("y",)),
        refuses("float64 is not supported", *pair(rand, 64, dtype="float64"),
                raises=TypeError, mentions=("float64",)),
        refuses("bool is not supported", *pair(integers, 64, low=0, high=1, dtype="bool"),
                raises=TypeError, mentions=("bool",)),
        refuses("complex64 is not supported", *pair(rand, 64, dtype="complex64"),
                raises=TypeError, mentions=("complex64",)),
        refuses("int8 is not supported", *pair(integers, 64, dtype="int8"),
                raises=TypeError, mentions=("int8",)),
        refuses("float64 is not supported, even without elements", *pair(rand, 0, dtype="float64"),
                raises=TypeError, mentions=("float64",)),
        refuses("float32 and float16 do not mix", rand(64), rand(64, dtype="float16"),
                raises=TypeError, mentions=("y", "float32", "float16")),
        refuses("int32 and int64 do not mix", rand(64, dtype="int32"), rand(64, dtype="int64"),
                raises=TypeError, mentions=("y", "int32", "int64")),
        refuses("different lengths", rand(100), rand(101),
                raises=ValueError, mentions=("y", "100", "101")),
        refuses("the same number of elements in another shape", rand(6, 4), rand(24),
                raises=ValueError, mentions=("y", "6", "24")),
        refuses("a matrix and its transpose", rand(37, 53), rand(53, 37),
                raises=ValueError, mentions=("y", "37", "53")),
        refuses("a row beside a matrix is not broadcast", rand(8, 16), rand(16),
                raises=ValueError, mentions=("y", "8", "16")),
        refuses("a column beside a matrix is not broadcast", rand(8, 1), rand(8, 16),
                raises=ValueError, mentions=("y", "8", "16")),
        refuses("a single number beside a vector is not broadcast", rand(10), rand(),
                raises=ValueError, mentions=("y", "10")),
        refuses("different shapes without elements", rand(0, 3), rand(0, 5),
                raises=ValueError, mentions=("y", "3", "5")),
        refuses("tensors on two devices", rand(64), rand(64).on_meta(),
                raises=ValueError, mentions=("y", "meta")),

        edge("more than 2**31 elements", Sparse(2**31 + 7), Sparse(2**31 + 7), advisory=True),

        sizes(lambda n, dtype: pair(rand, n, dtype=dtype),
              n=(1, 5_000), dtype=(*FLOATS, "int32", "int64")),

        performance("262 144 floats", *pair(rand, N),
                    traffic=1.00, sectors=1.00, launches=1, programs=lambda B: -(-N // B),
                    vector=128, spills=0),
        performance("134 217 728 floats", *pair(rand, 2**27), pass_at=0.80, stretch=0.90),
        performance("134 217 741 floats", *pair(rand, 2**27 + 13), pass_at=0.80, stretch=0.90),
    ],
)


# ---------------------------------------------------------------------------------------------
# Properties of addition


def same_bits(got: torch.Tensor, expected: torch.Tensor) -> bool:
    return got.dtype == expected.dtype and bool((bits(got) == bits(expected)).all())


def bits(tensor: torch.Tensor) -> torch.Tensor:
    """The elements as integers, so that -0.0 differs from 0.0 and NaN equals itself."""
    words = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}
    return tensor.contiguous().view(words[tensor.element_size()])


def difference(got: torch.Tensor, expected: torch.Tensor) -> str:
    """Describes how many elements differ, and the first of them; `same_bits` returned False."""
    if got.shape != expected.shape or got.dtype != expected.dtype:
        return (f"{tuple(got.shape)} in {got.dtype} instead of "
                f"{tuple(expected.shape)} in {expected.dtype}")
    wrong = (bits(got) != bits(expected)).flatten()
    first = int(wrong.nonzero()[0])
    return (f"{int(wrong.sum())} of {wrong.numel()} elements differ, the first is number {first}: "
            f"{got.flatten()[first].item()!r} and {expected.flatten()[first].item()!r}")


def test_the_order_of_the_operands_does_not_matter(submission):
    x, y = submission.draw(rand(9_973), rand(9_973))

    forth, back = submission(x, y), submission(y, x)

    assert same_bits(forth, back), f"x + y against y + x: {difference(forth, back)}"


def test_adding_zero_changes_nothing(submission):
    x, zero = submission.draw(rand(9_973), full(9_973, value=0.0))

    result = submission(x, zero)

    assert same_bits(result, x), f"x + 0 against x: {difference(result, x)}"


def test_a_number_and_its_negative_cancel(submission):
    x, zero = submission.draw(wide(9_973), full(9_973, value=0.0))

    result = submission(x, -x)

    assert same_bits(result, zero), f"x + (-x) against 0: {difference(result, zero)}"


def test_whole_numbers_may_be_added_in_any_grouping(submission):
    for dtype in ("float32", "int32"):
        a, b, c = submission.draw(*(integers(4_099, dtype=dtype) for _ in range(3)))

        left = submission(submission(a, b), c)
        right = submission(a, submission(b, c))

        assert same_bits(left, right), f"(a + b) + c against a + (b + c): {difference(left, right)}"


def test_two_calls_give_identical_bits(submission):
    x, y = submission.draw(rand(9_973), rand(9_973))

    first, second = submission(x, y), submission(x, y)

    assert same_bits(first, second), f"first against second call: {difference(first, second)}"


def test_both_arguments_may_be_the_same_tensor(submission):
    x, y = submission.draw(rand(4_099), rand(4_099))

    for tensor in (x, y):
        result, expected = submission(tensor, tensor), tensor * 2  # exact: a doubling
        assert same_bits(result, expected), f"x + x against 2 * x: {difference(result, expected)}"


def test_the_arguments_may_overlap_in_memory(submission):
    x, y = submission.draw(integers(4_100), integers(4_100))

    for tensor in (x, y):
        result, expected = submission(tensor[:-1], tensor[1:]), tensor[:-1] + tensor[1:]
        assert same_bits(result, expected), (
            f"x[:-1] + x[1:] of one tensor: {difference(result, expected)}"
        )
