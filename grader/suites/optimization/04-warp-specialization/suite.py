"""Hidden tests of warp specialization: order of tiles, a fused epilogue, warps with roles."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import torch

from grader.suite import (
    FLOATS,
    TENSOR_CORES,
    Amplitude,
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
from grader.suite.predictions import predictions

INF, NAN = math.inf, math.nan
SIDE = 256  # of the matrices whose traffic is counted: small enough to be interpreted in full
SMALLEST_TILE = 64  # rows and columns; smaller tiles load the operands too often
# Issued elements over the minimum: panels, the bias once per row of tiles, the result.
TRAFFIC = ((2 * SIDE**3 + SIDE**2) / SMALLEST_TILE + SIDE**2) / (3 * SIDE**2 + SIDE)
AT_ONCE = 132  # programs: one per SM of an H100
PANELS = 0.75  # limit, as a share of the panels of row-major order

# Tiles down, tiles across, rows of a group: square, flat, tall, one tile, a group as high as the
# field, a higher one, and one that leaves a lower group at the end.
FIELDS = tuple((down, across, group) for group in (1, 2, 3, 8, 10) for down, across in (
    (1, 1), (1, 9), (9, 1), (2, 2), (3, 5), (5, 3), (5, 9), (8, 4), (9, 9)))


# ---------------------------------------------------------------------------------------------
# References, error bounds and peers in torch


def linear(x: torch.Tensor, w: torch.Tensor, b: torch.Tensor, group_m: int = 8) -> torch.Tensor:
    return (x.double() @ w.double().mT + b.double()).relu()


def linear_amplitude(x: torch.Tensor, w: torch.Tensor, b: torch.Tensor,
                     group_m: int = 8) -> Amplitude:
    """Returns the amplitude of a product plus a bias; ReLU never increases an error."""
    products = x.double().abs() @ w.double().abs().mT
    bias = b.double().abs().nan_to_num(0.0, posinf=0.0).expand_as(products)  # relu(-inf) is 0
    return Amplitude(pointwise=bias, reduced=products,
                     length=max(1, x.shape[1]))


def linear_peer(x: torch.Tensor, w: torch.Tensor, b: torch.Tensor,
                group_m: int = 8) -> torch.Tensor:
    return (x.float() @ w.float().mT + b.float()).relu().to(x.dtype)


def linear_cost(x: torch.Tensor, w: torch.Tensor, b: torch.Tensor, group_m: int = 8) -> Cost:
    (m, k), n = x.shape, w.shape[0]
    return Cost(bytes=(m * k + k * n + n + m * n) * x.element_size(), flops=2 * m * n * k)


def product_cost(a: torch.Tensor, b_t: torch.Tensor, warp_specialize: bool = False) -> Cost:
    (m, k), n = a.shape, b_t.shape[0]
    return Cost(bytes=(m * k + k * n + m * n) * a.element_size(), flops=2 * m * n * k)


def layer(m: Any, k: Any, n: Any, dtype: str = "float32", **how: Any) -> tuple[Input, ...]:
    """Returns x (m, k), w (n, k) and b (n,) with independent values."""
    return rand(m, k, dtype=dtype, **how), rand(n, k, dtype=dtype, **how), rand(n, dtype=dtype)


def pair(m: Any, k: Any, n: Any, **how: Any) -> tuple[Input, Input]:
    """Returns a (m, k) and b_t (n, k) in float16 with independent values."""
    return rand(m, k, dtype="float16", **how), rand(n, k, dtype="float16", **how)


def bias_with(count: int, places: dict[int, float], dtype: str = "float32") -> Input:
    """Returns a bias with given values at ``places``."""
    return rows(row(count, places), dtype=dtype).then(lambda t: t[0])


def tiles(number: int) -> Any:
    """Returns a size of ``number`` of the learner's tiles, counted as at most 128 long."""
    return lambda block: number * min(block, 128)


# ---------------------------------------------------------------------------------------------
# Orders of tiles


def takes_every_tile(answer: Any, fields: Sequence[Sequence[int]]) -> None:
    for (down, across, group), order in zip(fields, answer, strict=True):
        missing = sorted(set(range(down * across)) - set(order))
        twice = sorted({one for one in order if order.count(one) > 1})
        where = f"in a field of {down} x {across} tiles with groups of {group}"
        places = [divmod(one, across) for one in (*missing[:1], *twice[:1])]
        assert not missing, (
            f"No program owns tile {places[0]} {where}"
            + (f", and two own tile {places[1]}." if twice else "."))


def is_row_major(answer: Any, fields: Sequence[Sequence[int]]) -> None:
    for (down, across, _), order in zip(fields, answer, strict=True):
        first = next((place for place, one in enumerate(order) if place != one), None)
        assert first is None, (
            f"With groups of one row, program {first} of {down} x {across} tiles owns tile "
            f"{divmod(order[first], across)}; in row-major order, tile {divmod(first, across)}.")


def shares_panels(answer: Any, rows_: int, cols: int, group: int) -> None:
    first = [divmod(one, cols) for one in answer[:AT_ONCE]]
    touched = len({tile[0] for tile in first}) + len({tile[1] for tile in first})
    plain = -(-AT_ONCE // cols) + cols
    assert touched <= PANELS * plain, (
        f"The first {AT_ONCE} programs of {rows_} x {cols} tiles load {touched} panels of the two "
        f"operands with groups of {group}; in row-major order they load {plain}, and the limit is "
        f"{PANELS:.0%} of that, {int(PANELS * plain)}.")


def specializes(wanted: bool, why: str) -> Any:
    def check(answer: Any, capability: Sequence[int]) -> None:
        asked = "use_warp_specialization(({}, {}))".format(*capability)
        assert isinstance(answer, bool), (
            f"{asked} returned {answer!r}, expected a bool.")
        assert answer is wanted, f"{asked} returned {answer}. {why}"

    return check


HAS = "On this GPU, Triton specializes warps on request."
LOSES = ("On this GPU the option specializes no warp. The loop loses its pipeline instead: "
         "compiled for an A100, a kernel with 48 asynchronous copies has none left.")


# ---------------------------------------------------------------------------------------------
# The functions

linear_relu = Function(
    entry="linear_relu",
    parameters=("x", "w", "b"),
    keyword_only=("group_m",),
    reference=linear,
    tolerance=Tolerance(linear_amplitude, TENSOR_CORES, products=(0, 1)),
    peer=linear_peer,
    reversed_peer=lambda x, w, b, group_m=8: linear_peer(x.flip(1), w.flip(1), b),
    cost=linear_cost,
    contiguous_result=True,
    bench=Bench("rows", (512, 1_024, 2_048, 4_096, 8_192),
                lambda n: layer(n, 1_024, 4_096, "float16"),
                at="float16, 1024 inputs and 4096 outputs",
                peer=lambda x, w, b: torch.nn.functional.linear(x, w, b).relu(),
                peer_name="relu(F.linear)"),
    cases=[
        correctness("64 x 32 into 96", *layer(64, 32, 96), public=True),
        correctness("65 x 70 into 33 in float16", *layer(65, 70, 33, "float16"), public=True),
        correctness("65 x 70 into 33", *layer(65, 70, 33)),
        *(correctness(f"{m} x {k} into {n}", *layer(m, k, n))  # short sums, with little rounding
          for m, k, n in ((17, 5, 200), (100, 2, 90), (33, 3, 140))),
        correctness("300 x 200 into 140 in bfloat16", *layer(300, 200, 140, "bfloat16")),
        correctness("300 x 200 into 140 in float16", *layer(300, 200, 140, "float16")),
        correctness("5 tiles down and 3 across, groups of 3",
                    *layer(tiles(5), 16, tiles(3), "float16"), 3),
        correctness("9 tiles down, groups of 8", *layer(tiles(9), 16, 40, "float16")),
        correctness("sums of 1000 numbers around a half in float16",
                    *layer(48, 1_000, 40, "float16", mean=0.5)),
        correctness("a bias that cancels most of the sum, in float16",
                    rand(48, 1_000, dtype="float16", mean=1.0, std=0.02),
                    rand(40, 1_000, dtype="float16", mean=1.0, std=0.02),
                    rand(40, dtype="float16", mean=-1_000.0, std=1.0)),
        correctness("a bias that cancels most of the sum, in bfloat16",
                    rand(48, 1_000, dtype="bfloat16", mean=1.0, std=0.05),
                    rand(40, 1_000, dtype="bfloat16", mean=1.0, std=0.05),
                    rand(40, dtype="bfloat16", mean=-1_000.0, std=4.0)),
        correctness("whole numbers in float16", integers(70, 64, dtype="float16"),
                    integers(50, 64, dtype="float16"), integers(50, dtype="float16")),
        correctness("values of very different magnitude", wide(40, 300), wide(40, 300), wide(40)),
        edge("one row, one input, one output", *layer(1, 1, 1)),
        edge("no row", *layer(0, 64, 32), launches=0),
        edge("no output", *layer(32, 64, 0, "float16"), launches=0),
        edge("K is 0: the bias alone", *layer(70, 0, 33, "float16")),
        edge("sums that are all negative", rand(33, 64, mean=2.0, std=0.1),
             rand(40, 64, mean=-2.0, std=0.1), rand(40)),
        edge("w is a transposed view", rand(40, 48, dtype="float16"),
             rand(48, 65, dtype="float16").mT, rand(65, dtype="float16"), public=True),
        edge("x is a transposed view", rand(48, 40, dtype="float16").mT,
             rand(65, 48, dtype="float16"), rand(65, dtype="float16")),
        edge("every other element of a wider bias", rand(40, 48, dtype="float16"),
             rand(33, 48, dtype="float16"), rand(66, dtype="float16")[::2]),
        edge("one bias for all outputs", rand(40, 48), rand(33, 48),
             rand(1).then(lambda t: t.expand(33))),
        edge("NaN in column 3 of the bias", rand(40, 48), rand(33, 48), bias_with(33, {3: NAN})),
        edge("NaN in column 3 of the bias, in float16", rand(40, 48, dtype="float16"),
             rand(33, 48, dtype="float16"), bias_with(33, {3: NAN}, "float16")),
        edge("infinities in the bias", rand(40, 48), rand(33, 48),
             bias_with(33, {3: INF, 7: -INF})),
        edge("NaN in row 2 of x", rows(*(row(48, {5: NAN} if i == 2 else None)
                                         for i in range(20))), rand(33, 48), rand(33)),
        edge("results beyond the largest float16", rand(40, 48, dtype="float16", std=110.0),
             rand(40, 48, dtype="float16", std=110.0), rand(40, dtype="float16")),
        edge("a bias of the largest float16", rand(40, 48, dtype="float16"),
             rand(33, 48, dtype="float16"),
             special(33, values=[65_504.0, -65_504.0], share=0.5, dtype="float16")),
        refuses("x is a list", [[1.0]], rand(3, 4), rand(3), raises=TypeError,
                mentions=("x", "list")),
        refuses("b is None", rand(2, 4), rand(3, 4), None, raises=TypeError,
                mentions=("b", "None")),
        refuses("float64 is not supported", *layer(8, 8, 8, "float64"), raises=TypeError,
                mentions=("x", "float64")),
        refuses("w in float16 beside x in float32", rand(8, 16), rand(4, 16, dtype="float16"),
                rand(4), raises=TypeError, mentions=("w", "float16", "float32")),
        refuses("b in bfloat16 beside x in float32", rand(8, 16), rand(4, 16),
                rand(4, dtype="bfloat16"), raises=TypeError,
                mentions=("b", "bfloat16", "float32")),
        refuses("x has three dimensions", rand(2, 8, 16), rand(4, 16), rand(4),
                raises=ValueError, mentions=("x", "2", "3")),
        refuses("b is a matrix", rand(8, 16), rand(4, 16), rand(4, 1), raises=ValueError,
                mentions=("b", "1", "2")),
        refuses("w is not transposed", rand(8, 16), rand(16, 4), rand(4), raises=ValueError,
                mentions=("w", "16", "4")),
        refuses("b has one element too few", rand(8, 16), rand(4, 16), rand(3),
                raises=ValueError, mentions=("b", "4", "3")),
        refuses("w on another device", rand(8, 16), rand(4, 16).on_meta(), rand(4),
                raises=ValueError, mentions=("w", "device")),
        refuses("groups of 0 rows", *layer(8, 16, 4), 0, raises=ValueError,
                mentions=("group_m", "0")),

        sizes(lambda m, k, n, dtype: layer(m, k, n, dtype),
              m=(1, 100), k=(1, 200), n=(1, 100), dtype=FLOATS),

        performance("256 x 256 into 256 in float16, counted", *layer(SIDE, SIDE, SIDE, "float16"),
                    traffic=TRAFFIC, launches=1, programs=(SIDE // SMALLEST_TILE) ** 2,
                    tensor_cores=True),
        performance("256 x 256 into 256, counted", *layer(SIDE, SIDE, SIDE),
                    traffic=TRAFFIC, launches=1, programs=(SIDE // SMALLEST_TILE) ** 2),
        performance("8192 x 1024 into 4096 in float16", *layer(8_192, 1_024, 4_096, "float16"),
                    launches=1, spills=0, pass_at=0.65, stretch=0.70),
    ],
)

def has_roles(code: CompiledCode) -> list[CheckResult]:
    """Checks that a program has more warps than its launch: the others have another role."""
    launched = [binary.options.get("num_warps") or 4 for binary in code.binaries]  # 4 by default
    rows = list(zip(code.binaries, launched, strict=True))
    binary, asked = next(((one, warps) for one, warps in rows if one.warps == warps), rows[-1])
    wrong = (f"A program of `{binary.kernel}` has {binary.warps} warps on the {code.gpu}, the "
             "num_warps of its launch: the compiler added no warps with another role."
             ) if binary.warps == asked else ""
    return [CheckResult("warps", f"{binary.warps}, num_warps={asked}", wrong)]


matmul_ws = Function(
    entry="matmul_ws",
    parameters=("a", "b_t"),
    keyword_only=("warp_specialize",),
    reference=lambda a, b_t, warp_specialize=False: a.double() @ b_t.double().mT,
    tolerance=Tolerance(lambda a, b_t, warp_specialize=False: Amplitude(
        reduced=a.double().abs() @ b_t.double().abs().mT, length=max(1, a.shape[1])),
        TENSOR_CORES, products=(0, 1)),
    peer=lambda a, b_t, warp_specialize=False: (a.float() @ b_t.float().mT).to(a.dtype),
    reversed_peer=lambda a, b_t, warp_specialize=False: (
        a.float().flip(1) @ b_t.float().flip(1).mT).to(a.dtype),
    cost=product_cost,
    contiguous_result=True,
    bench=Bench("rows and columns", (512, 1_024, 2_048, 4_096, 8_192), lambda n: pair(n, n, n),
                at="square matrices of float16, without the option",
                peer=lambda a, b_t: torch.matmul(a, b_t.mT), peer_name="torch.matmul"),
    cases=[
        *(correctness(f"{m} x {k} times {n} x {k}{', specialized' * flag}", *pair(m, k, n), flag,
                      public=flag and k == 264)
          for m, k, n in ((64, 64, 96), (37, 264, 136), (300, 128, 8)) for flag in (False, True)),
        correctness("sums of 1000 numbers around a half",
                    *pair(40, 1_000, 48, mean=0.5), True),
        correctness("11 rows of tiles", *pair(tiles(11), 16, 136)),
        edge("one row", *pair(1, 8, 8)),
        edge("one row, specialized", *pair(1, 8, 8), True),
        edge("no row", *pair(0, 64, 32), launches=0),
        edge("no column", *pair(32, 64, 0), True, launches=0),
        edge("K is 0: the result is zero", *pair(70, 0, 40)),
        edge("every other row of a, aligned to 16 bytes",
             rand(80, 48, dtype="float16")[::2], rand(40, 48, dtype="float16")),
        edge("columns 8 to 55 of a wider b_t", rand(33, 48, dtype="float16"),
             rand(40, 64, dtype="float16")[:, 8:56], True),
        edge("NaN and infinity in a", special(33, 48, values=[NAN, INF], share=0.002,
                                              dtype="float16"), rand(40, 48, dtype="float16")),
        edge("results beyond the largest float16", *pair(40, 48, 40, std=110.0)),
        refuses("a is a number", 3.0, rand(8, 8, dtype="float16"), raises=TypeError,
                mentions=("a", "float")),
        refuses("float32 is not supported", rand(8, 8), rand(8, 8), raises=TypeError,
                mentions=("a", "float32")),
        refuses("b_t in bfloat16", rand(8, 8, dtype="float16"), rand(8, 8, dtype="bfloat16"),
                raises=TypeError, mentions=("b_t", "bfloat16")),
        refuses("a has one dimension", rand(8, dtype="float16"), rand(8, 8, dtype="float16"),
                raises=ValueError, mentions=("a", "2", "1")),
        refuses("b_t is not transposed", rand(8, 16, dtype="float16"),
                rand(16, 24, dtype="float16"), raises=ValueError, mentions=("b_t", "16", "24")),
        refuses("rows of 12 elements: 24 bytes", *pair(32, 12, 16), raises=ValueError,
                mentions=("a", "16 bytes", "24")),
        refuses("a result with rows of 20 bytes", *pair(32, 16, 10), raises=ValueError,
                mentions=("b_t", "16 bytes", "10")),
        refuses("rows that start 40 bytes apart", rand(32, 20, dtype="float16")[:, :16],
                rand(16, 16, dtype="float16"), raises=ValueError, mentions=("a", "20")),
        refuses("a starts 2 bytes after a multiple of 16",
                rand(32 * 16 + 1, dtype="float16").then(lambda t: t[1:].view(32, 16)),
                rand(16, 16, dtype="float16"), raises=ValueError, mentions=("a", "16")),
        refuses("b_t is a transposed view", rand(32, 16, dtype="float16"),
                rand(16, 24, dtype="float16").mT, raises=ValueError, mentions=("b_t", "24")),
        refuses("b_t on another device", rand(8, 16, dtype="float16"),
                rand(8, 16, dtype="float16").on_meta(), raises=ValueError,
                mentions=("b_t", "device")),

        # Rows of descriptors start at multiples of 16 bytes: 8 elements of float16.
        sizes(lambda m, k_eighths, n_eighths, specialized: (
                  *pair(m, 8 * k_eighths, 8 * n_eighths), specialized),
              m=(1, 100), k_eighths=(1, 25), n_eighths=(1, 25), specialized=(False, True)),

        performance("256 x 256 times 256 x 256, for an H100", *pair(SIDE, SIDE, SIDE),
                    traffic=TRAFFIC, launches=1, programs=(SIDE // SMALLEST_TILE) ** 2,
                    tensor_cores=True, bulk=True, target="h100"),
        performance("256 x 256 times 256 x 256, specialized, for an H100",
                    *pair(SIDE, SIDE, SIDE), True, launches=1, tensor_cores=True, bulk=True,
                    check_code=has_roles, target="h100"),
        performance("256 x 256 times 256 x 256, for an A100", *pair(SIDE, SIDE, SIDE),
                    launches=1, tensor_cores=True, stages=2, target="a100"),
        performance("8192 x 4096 times 8192 x 4096", *pair(8_192, 4_096, 8_192),
                    launches=1, pass_at=0.55, stretch=0.68),
    ],
)

suite = Suite(
    functions=[linear_relu, matmul_ws],
    host={"walk_tiles": ("field",), "use_warp_specialization": ("capability",)},
    marker="DECIDE",
    cases=[
        call("walk_tiles: each tile has one program", "orders", FIELDS,
             check=takes_every_tile, eager=True, code="M03"),
        call("walk_tiles: groups of one row are row-major", "orders",
             tuple((down, across, 1) for down, across in ((1, 1), (3, 5), (5, 3), (9, 2))),
             check=is_row_major, eager=True),
        call("walk_tiles: programs share panels of 32 x 32 tiles", "order", 32, 32, 8,
             check=shares_panels, eager=True, code="T01"),
        call("walk_tiles: programs share panels of 20 x 40 tiles", "order", 20, 40, 8,
             check=shares_panels, eager=True, code="T01"),

        *(call(f"use_warp_specialization: capability {major}.{minor}", "gate", (major, minor),
               check=specializes(wanted, HAS if wanted else LOSES), code="T06")
          for major, minor, wanted in (
              (9, 0, True), (10, 0, True), (10, 3, True), (12, 0, True), (12, 1, True),
              (8, 9, False), (8, 6, False), (8, 0, False), (7, 5, False))),

        *predictions((
            ("panels_row_major", 37, "132 programs fill 4 rows of 32 tiles and start a fifth: 5 "
             "panels of the first operand, and all 32 of the second."),
            ("panels_group_8", 25, "132 programs fill 16 columns of 8 tiles and start the next: 8 "
             "panels of the first operand, and 17 of the second."),
            ("panels_group_4", 40, "A group of 4 rows has 128 tiles, in all 32 columns. The last "
             "4 programs start the next group, with 4 further rows: 8 and 32."),
            ("epilogue_bytes", 67_108_864, "16,777,216 elements of 2 bytes are stored by one "
             "kernel and loaded by the next."),
            ("warps", 12, "Two groups of 4 warps each multiply half of the tile, and one group of "
             "4 loads."),
            ("stages_a100", 0, "The compiler does not pipeline a loop that it is asked to "
             "specialize, so there are 0 stages; and on an A100 no warp gets a role either."),
        ), counts=("panels_row_major", "panels_group_8", "panels_group_4", "warps", "stages_a100")),
    ],
)


# ---------------------------------------------------------------------------------------------
# Properties


def same_bits(got: torch.Tensor, expected: torch.Tensor) -> bool:
    return got.dtype == expected.dtype and torch.equal(got, expected)


def difference(got: torch.Tensor, expected: torch.Tensor) -> str:
    """Describes how two tensors that `same_bits` rejects differ."""
    if got.shape != expected.shape:
        return f"shape {tuple(got.shape)} instead of {tuple(expected.shape)}"
    wrong = got != expected
    first = tuple(int(i) for i in wrong.nonzero()[0])
    return (f"{int(wrong.sum())} of {wrong.numel()} elements differ, the first at {list(first)}: "
            f"{got[first].item()!r} and {expected[first].item()!r}")


def test_the_order_of_tiles_changes_no_bit(submission):
    x, w, b = submission.draw(*layer(300, 40, 150, "float16"))

    low, high = submission.linear_relu(x, w, b, 3), submission.linear_relu(x, w, b, 8)

    assert same_bits(low, high), f"groups of 3 against groups of 8: {difference(low, high)}"


def test_no_result_is_negative(submission):
    x, w, b = submission.draw(*layer(70, 40, 50))

    result = submission.linear_relu(x, w, b)

    assert bool((result >= 0).all()), f"the smallest result is {result.min():.4g}"


def test_a_bias_of_minus_infinity_leaves_nothing(submission):
    x, w = submission.draw(rand(40, 48, dtype="float16"), rand(33, 48, dtype="float16"))

    result = submission.linear_relu(x, w, torch.full((33,), -INF, dtype=torch.float16))

    assert not result.any(), f"{int(result.count_nonzero())} results are not zero"


def test_warps_with_roles_change_no_bit(submission):
    a, b_t = submission.draw(*pair(70, 200, 136))

    plain, special_ = submission.matmul_ws(a, b_t, False), submission.matmul_ws(a, b_t, True)

    assert same_bits(special_, plain), (
        f"with the option against without it: {difference(special_, plain)}")


def test_the_product_with_the_identity_is_a(submission):
    (a,) = submission.draw(rand(70, 64, dtype="float16"))

    result = submission.matmul_ws(a, torch.eye(64, dtype=torch.float16))

    assert same_bits(result, a), f"times the identity: {difference(result, a)}"
