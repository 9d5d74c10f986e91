"""Hidden tests of the copy by tiles: values, layouts, special values, refusals, cost."""

from __future__ import annotations

import math

import torch

from grader.suite import (
    EXACT,
    FLOATS,
    Bench,
    Cost,
    Suite,
    correctness,
    edge,
    integers,
    performance,
    rand,
    refuses,
    sizes,
    special,
)

FAR = 1 << 30  # elements; the third row begins where 31 bits end
SMALLEST_TILE = 1_024  # elements; with fewer, too many programs are started


def reference(x: torch.Tensor) -> torch.Tensor:
    return x.double() if x.is_floating_point() else x


SPECIAL = [math.nan, math.inf, -math.inf, 0.0, -0.0, 2.0**-149, -(2.0**-126)]

suite = Suite(
    entry="tile_copy",
    parameters=("x",),
    blanks=8,
    reference=reference,
    tolerance=EXACT,  # nothing is computed
    peer=lambda x: x.contiguous(),
    contiguous_result=True,
    moves="deny",  # moving elements is the task
    cost=lambda x: Cost(bytes=2 * x.numel() * x.element_size()),
    bench=Bench("rows and columns", (256, 512, 1_024, 2_048, 4_096, 5_000, 8_192),
                lambda n: (rand(n, n).mT,), at="transposed square matrices of float32",
                peer_name="x.contiguous()"),
    cases=[
        correctness("100 x 150 floats", rand(100, 150), public=True),
        correctness("32 x 64 floats, one tile", rand(32, 64), public=True),
        correctness("97 x 33 in float16", rand(97, 33, dtype="float16"), public=True),
        correctness("33 x 97 in bfloat16", rand(33, 97, dtype="bfloat16")),
        correctness("100 x 150 in int32", rand(100, 150, dtype="int32")),
        correctness("40 x 70 in int64 beyond what a double can hold",
                    integers(40, 70, low=-(2**62), high=2**62 - 1, dtype="int64")),
        correctness("96 x 256 floats, whole tiles", rand(96, 256)),

        edge("no rows", rand(0, 64), launches=0),
        edge("no columns", rand(32, 0), launches=0),
        edge("one element", rand(1, 1)),
        edge("one row of 1000", rand(1, 1_000)),
        edge("one column of 1000", rand(1_000, 1)),
        edge("one row and one column less than a tile", rand(31, 63)),
        edge("one row more than a tile", rand(33, 64)),
        edge("one column more than a tile", rand(32, 65)),
        edge("a tall matrix, 3000 x 3", rand(3_000, 3)),
        edge("a wide matrix, 3 x 3000", rand(3, 3_000)),

        # Layouts: the strides that transposing, slicing and expanding leave behind.
        edge("a transposed view", rand(70, 50).mT, public=True),
        edge("a transposed square view", rand(70, 70).mT),
        edge("every other row", rand(100, 48)[::2]),
        edge("every third column", rand(50, 150)[:, ::3]),
        edge("every other row of a transposed view", rand(70, 100).mT[::2]),
        edge("columns 10 to 79 of a wider matrix", rand(40, 200)[:, 10:80]),
        edge("a matrix that starts at the second element of its memory",
             rand(40 * 70 + 1).then(lambda t: t[1:].view(40, 70))),
        edge("one row repeated 70 times", rand(1, 48).then(lambda t: t.expand(70, -1))),
        edge("one column repeated 70 times", rand(48, 1).then(lambda t: t.expand(-1, 70))),
        edge("rows 2**30 elements apart", rand(3, 70, dtype="float16").apart(FAR, 1)),
        edge("columns 2**30 elements apart", rand(70, 3, dtype="float16").apart(1, FAR)),

        edge("NaN, infinities, both zeros and denormal numbers",
             special(60, 90, values=SPECIAL, share=0.5)),

        refuses("x is a list", [[1.0, 2.0]], raises=TypeError, mentions=("x", "list")),
        refuses("x is None", None, raises=TypeError, mentions=("x", "None")),
        refuses("float64 is not supported", rand(8, 8, dtype="float64"),
                raises=TypeError, mentions=("x", "float64")),
        refuses("bool is not supported", integers(8, 8, low=0, high=1, dtype="bool"),
                raises=TypeError, mentions=("x", "bool")),
        refuses("x has one dimension", rand(8), raises=ValueError, mentions=("x", "2", "1")),
        refuses("x has three dimensions", rand(2, 3, 4),
                raises=ValueError, mentions=("x", "2", "3")),

        sizes(lambda m, n, dtype: (rand(m, n, dtype=dtype),),
              m=(1, 150), n=(1, 300), dtype=FLOATS),

        performance("256 x 512 floats", rand(256, 512), traffic=1.00, sectors=1.00, launches=1,
                    programs=256 * 512 // SMALLEST_TILE, spills=0),
        performance("a transposed view of 256 x 512 floats", rand(512, 256).mT,
                    traffic=1.00, sectors=1.00, launches=1,
                    programs=256 * 512 // SMALLEST_TILE),
        performance("16384 x 8192 floats", rand(16_384, 8_192), requests=2.5, spills=0,
                    pass_at=0.70, stretch=0.85),
        performance("12345 x 8200 floats", rand(12_345, 8_200), spills=0,
                    pass_at=0.65, stretch=0.85),
    ],
)


def test_a_copy_of_the_transposed_view_is_the_transposed_copy(submission):
    (x,) = submission.draw(rand(65, 130))

    assert torch.equal(submission(x.mT), submission(x).mT), (
        "the copy of x.T differs from the copy of x, transposed"
    )


def test_two_calls_give_identical_bits(submission):
    (x,) = submission.draw(rand(65, 130))

    assert torch.equal(submission(x), submission(x)), "two calls differ"
