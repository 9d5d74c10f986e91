"""Hidden tests of the product in one step: sizes, layouts, padding, precision, refusals, cost."""

from __future__ import annotations

import math
from typing import Any

import torch

from grader.suite import (
    TENSOR_CORES,
    Bench,
    Cost,
    Input,
    Suite,
    Tolerance,
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
)

BLOCK_M, BLOCK_N = 64, 128  # of the tile that the exercise gives
SIDE = 256  # of the result whose traffic is counted
# Issued bytes of such tiles over the least: A once per column of tiles, B once per row, C once.
TRAFFIC = (64 * SIDE * (SIDE // BLOCK_N + SIDE // BLOCK_M) + SIDE**2) / (2 * 64 * SIDE + SIDE**2)


def pair(m: int, k: int, n: int, dtype: str = "float16", **options: Any) -> tuple[Input, Input]:
    """Two matrices that can be multiplied, m x k and k x n, with independent values."""
    return rand(m, k, dtype=dtype, **options), rand(k, n, dtype=dtype, **options)


def cost(a: torch.Tensor, b: torch.Tensor) -> Cost:
    (m, k), n = a.shape, b.shape[1]
    return Cost(bytes=(m * k + k * n + m * n) * a.element_size(), flops=2 * m * n * k)


suite = Suite(
    entry="one_step_matmul",
    parameters=("a", "b"),
    blanks=8,
    reference=lambda a, b: a.double() @ b.double(),
    tolerance=Tolerance(error_bounds.matmul, TENSOR_CORES, products=(0, 1)),
    peer=lambda a, b: (a.float() @ b.float()).to(a.dtype),
    reversed_peer=lambda a, b: (a.float().flip(1) @ b.float().flip(0)).to(a.dtype),
    contiguous_result=True,
    moves="deny",  # strides are part of the task
    cost=cost,
    bench=Bench("rows and columns", (256, 512, 1_024, 2_048, 4_096, 8_192),
                lambda n: pair(n, 64, n), at="n x 64 times 64 x n in float16",
                peer=torch.matmul, peer_name="torch.matmul"),
    cases=[
        correctness("64 x 64 times 64 x 128, one tile", *pair(64, 64, 128), public=True),
        correctness("100 x 50 times 50 x 150", *pair(100, 50, 150), public=True),
        correctness("100 x 50 times 50 x 150 in bfloat16", *pair(100, 50, 150, "bfloat16"),
                    public=True),
        correctness("192 x 64 times 64 x 256, whole tiles", *pair(192, 64, 256)),
        correctness("192 x 40 times 40 x 256, whole tiles but for K", *pair(192, 40, 256)),
        correctness("70 x 16 times 16 x 70", *pair(70, 16, 70)),
        correctness("64 x 64 times 64 x 64, numbers around a half", *pair(64, 64, 64, mean=0.5)),
        correctness("whole numbers", integers(64, 64, dtype="float16"),
                    integers(64, 128, dtype="float16")),

        edge("no rows", *pair(0, 16, 32), launches=0),
        edge("no columns", *pair(32, 16, 0), launches=0),
        edge("K = 0: the result is zero", *pair(70, 0, 150)),
        edge("K = 1", *pair(70, 1, 150), public=True),
        edge("K = 63", *pair(70, 63, 150)),
        edge("one number times one number", *pair(1, 1, 1)),
        edge("one row and one column less than a tile", *pair(63, 33, 127)),
        edge("one row more than a tile", *pair(65, 64, 128)),
        edge("one column more than a tile", *pair(64, 64, 129)),
        edge("a tall result, 2000 x 3", *pair(2_000, 20, 3)),
        edge("a wide result, 3 x 2000", *pair(3, 20, 2_000)),

        edge("a is a transposed view", rand(50, 70, dtype="float16").mT,
             rand(50, 90, dtype="float16")),
        edge("b is a transposed view", rand(70, 50, dtype="float16"),
             rand(90, 50, dtype="float16").mT),
        edge("columns 10 to 59 of a wider a", rand(70, 200, dtype="float16")[:, 10:60],
             rand(50, 90, dtype="float16")),
        edge("every other column of b", rand(70, 50, dtype="float16"),
             rand(50, 180, dtype="float16")[:, ::2]),
        edge("one row of a repeated 70 times",
             rand(1, 50, dtype="float16").then(lambda t: t.expand(70, -1)),
             rand(50, 90, dtype="float16")),

        edge("NaN and infinity in two rows of a",
             rows(*(row(40, {3: {5: math.nan, 9: math.inf}.get(m, 1.0)}) for m in range(20)),
                  dtype="float16"), rand(40, 70, dtype="float16")),
        edge("products beyond the largest float16", *pair(40, 60, 40, std=110.0)),

        refuses("a is a list", [[1.0]], rand(1, 3, dtype="float16"), raises=TypeError,
                mentions=("a", "list")),
        refuses("float32 is not supported", *pair(8, 8, 8, "float32"), raises=TypeError,
                mentions=("a", "float32")),
        refuses("float16 times bfloat16", rand(8, 16, dtype="float16"),
                rand(16, 8, dtype="bfloat16"), raises=TypeError,
                mentions=("b", "float16", "bfloat16")),
        refuses("b has one dimension", rand(8, 16, dtype="float16"), rand(16, dtype="float16"),
                raises=ValueError, mentions=("b", "2", "1")),
        refuses("inner sizes differ", *(rand(31, 60, dtype="float16"),
                                        rand(61, 17, dtype="float16")),
                raises=ValueError, mentions=("b", "31", "60", "61", "17")),
        refuses("K = 65", *pair(8, 65, 8), raises=ValueError, mentions=("a", "64", "65")),

        sizes(lambda m, k, n, dtype: pair(m, k, n, dtype),
              m=(1, 150), k=(1, 64), n=(1, 300), dtype=("float16", "bfloat16")),

        performance("64 x 64 times 64 x 128, counted", *pair(64, 64, 128), traffic=1.00,
                    sectors=1.00, launches=1, programs=1, tensor_cores=True),
        performance("256 x 64 times 64 x 256, counted", *pair(SIDE, 64, SIDE), traffic=TRAFFIC,
                    sectors=1.00, launches=1, programs=8, spills=0, tensor_cores=True),
        performance("8192 x 64 times 64 x 8192", *pair(8_192, 64, 8_192), spills=0,
                    tensor_cores=True, pass_at=0.50, stretch=0.70),
    ],
)


def test_the_identity_changes_nothing(submission):
    for dtype in ("float16", "bfloat16"):
        (x,) = submission.draw(rand(70, 50, dtype=dtype))

        product = submission(x, torch.eye(50, dtype=x.dtype))

        assert torch.equal(product, x), f"times the identity, a matrix in {dtype} changes"


def test_two_calls_give_identical_bits(submission):
    a, b = submission.draw(*pair(70, 50, 150))

    assert torch.equal(submission(a, b), submission(a, b)), "two calls differ"
