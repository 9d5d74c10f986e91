"""Hidden tests of custom kernels: five functions, their special values, cost and designs."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import torch
import torch.nn.functional as F  # noqa: N812 - torch's own spelling

from grader.suite import (
    FLOAT32,
    FLOATS,
    KAPPA,
    Amplitude,
    Bench,
    Case,
    Cost,
    Function,
    Input,
    Size,
    Sparse,
    Suite,
    Tolerance,
    call,
    correctness,
    edge,
    extremes,
    full,
    launchable,
    performance,
    rand,
    refuses,
    row,
    rows,
    sizes,
    special,
    wide,
)
from grader.suite.designs import is_designed
from grader.suite.designs import product_of as of

INF, NAN = math.inf, math.nan
HALVES = ("float16", "bfloat16")
N = 1 << 18  # elements of the cost cases
MANY = 1 << 27  # elements at real size
FAR = 1 << 30  # elements; the third row begins where 31 bits end
BIG = 2**31 + 7  # elements
SIZES = tuple(1 << power for power in range(18, 27, 2))  # elements that are timed
UNIT_ROUNDOFF = {"float32": 2.0**-24, "float16": 2.0**-11, "bfloat16": 2.0**-8}

CUBIC = (0.5, -1.25, 2.0, 0.75)
DEGREE_8 = (1.0, -0.5, 0.25, 3.0, -2.0, 0.125, 0.1, -0.3, 0.7)


# ---------------------------------------------------------------------------------------------
# Exact results, what rounding may do to them, and right answers in float32


def polynomial(x: torch.Tensor, coeffs: Sequence[float]) -> torch.Tensor:
    result = torch.full_like(x, coeffs[-1])
    for coefficient in reversed(coeffs[:-1]):
        result = result * x + coefficient
    return result


def polynomial_amplitude(x: torch.Tensor, coeffs: Sequence[float]) -> Amplitude:
    """Two roundings a step, and one of each coefficient (Higham, section 5.1)."""
    size = polynomial(x.double().abs(), [abs(coefficient) for coefficient in coeffs])
    return Amplitude(max(1.0, (2 * len(coeffs) - 1) / 4) * size.nan_to_num(0.0, 0.0, 0.0))


def gated(x: torch.Tensor, exponent: torch.Tensor) -> torch.Tensor:
    return x * torch.sigmoid(exponent)


def gated_amplitude(x: torch.Tensor, exponent: torch.Tensor) -> Amplitude:
    """An error of the exponent t is a relative error of 1 + exp(-t), as far as exp counts in it.

    A sigmoid below the normal numbers of float32 may vanish, before it meets a large x.
    """
    sigmoid, share = torch.sigmoid(exponent), torch.sigmoid(-exponent)
    size = (x * sigmoid).abs()
    lost = torch.where(sigmoid < 2.0**-125, size / (KAPPA * FLOAT32), 0.0)
    return Amplitude((size * (1 + share * (1 + exponent.abs())) + lost).nan_to_num(0.0, 0.0, 0.0))


def swish(x: torch.Tensor, beta: float = 1.0) -> torch.Tensor:
    return gated(x.double(), beta * x.double())


def swish_amplitude(x: torch.Tensor, beta: float = 1.0) -> Amplitude:
    return gated_amplitude(x.double(), beta * x.double())


def reals(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Real and imaginary parts in float64."""
    parts = torch.view_as_real(x.resolve_conj()).double()
    return parts[..., 0], parts[..., 1]


def product(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """By the elementary formula: an infinite part may give NaN, unlike in C99."""
    (ar, ai), (br, bi) = reals(a), reals(b)
    return torch.view_as_complex(torch.stack((ar * br - ai * bi, ar * bi + ai * br), -1))


def product_amplitude(a: torch.Tensor, b: torch.Tensor) -> Amplitude:
    (ar, ai), (br, bi) = ((part.abs() for part in reals(x)) for x in (a, b))
    size = torch.stack((ar * br + ai * bi, ar * bi + ai * br), -1)
    return Amplitude(size.nan_to_num(0.0, 0.0, 0.0))


def norm(x: torch.Tensor) -> torch.Tensor:
    return torch.linalg.vector_norm(x.double(), dim=1)


def norm_amplitude(x: torch.Tensor) -> Amplitude:
    """Half of the sum's relative error arrives at its root; scaling adds a few roundings."""
    size = norm(x).nan_to_num(0.0, 0.0, 0.0)
    return Amplitude(pointwise=2 * size, reduced=size, length=max(1, x.shape[1]))


def norm_in_float32(x: torch.Tensor) -> torch.Tensor:
    """Scaled by the largest, as float32 has to be."""
    x = x.float()
    largest = x.abs().amax(1, keepdim=True) if x.shape[1] else x.new_zeros(x.shape[0], 1)
    scale = torch.where((largest > 0) & largest.isfinite(), largest, 1.0)
    return torch.linalg.vector_norm(x / scale, dim=1) * scale[:, 0]


# ---------------------------------------------------------------------------------------------
# Inputs and cases that several functions have


def pairs(*sizes: Size, **how: Any) -> Input:
    """Complex numbers."""
    return rand(*sizes, 2, **how).then(torch.view_as_complex)


def odd_pairs(count: int, *values: float) -> Input:
    """Complex numbers of which many parts are among ``values``."""
    return special(count, 2, values=values, share=0.5).then(torch.view_as_complex)


def lengths(more: Callable[[Callable[[int], int]], Sequence[Any]],
            names: Sequence[str] = ()) -> list[Case]:
    """Edge cases around the learner's own block; ``more`` makes the inputs of a length."""
    return [edge(name, *more(length)) for name, length in (
        ("one element", lambda B: 1),
        ("one element less than a block", lambda B: B - 1),
        ("one whole block", lambda B: B),
        ("one element more than a block", lambda B: B + 1),
        ("one element less than two blocks", lambda B: 2 * B - 1),
        ("three blocks and seven elements", lambda B: 3 * B + 7),
        ("a prime number of elements", lambda B: 9_973),
    )]


def layouts(more: Callable[[Input], Sequence[Any]]) -> list[Case]:
    """Edge cases with views; ``more`` makes the other inputs for one of this layout."""
    return [edge(name, *more(view)) for name, view in (
        ("a transposed view", rand(33, 20).mT),
        ("every other row", rand(20, 65)[::2]),
        ("columns 3 to 67 of 100", rand(9, 100)[:, 3:68]),
        ("all but the first element", rand(1_001)[1:]),
        ("one row repeated", rand(1, 65).then(lambda t: t.expand(7, -1))),
        ("rows 2**30 elements apart", rand(3, 65).apart(FAR, 1)),
        ("three dimensions", rand(3, 5, 7)),
        ("a single number", rand()),
    )]


def no_tensors(name: str, *others: Any) -> list[Case]:
    """Rejections of a first argument that is not a tensor or has an unsupported dtype."""
    return [
        refuses(f"{name} is a list", [1.0, 2.0], *others, raises=TypeError,
                mentions=(name, "list")),
        *(refuses(f"{dtype} is not supported", rand(8, dtype=dtype), *others, raises=TypeError,
                  mentions=(name, dtype)) for dtype in ("float64", "int32")),
    ]


poly_act = Function(
    entry="poly_act",
    parameters=("x", "coeffs"),
    reference=lambda x, coeffs: polynomial(x.double(), coeffs),
    tolerance=Tolerance(polynomial_amplitude),
    peer=lambda x, coeffs: polynomial(x.float(), coeffs).to(x.dtype),
    cost=lambda x, coeffs: Cost(bytes=2 * x.nbytes, flops=2 * (len(coeffs) - 1) * x.numel()),
    contiguous_result=True,
    bench=Bench("elements", SIZES, lambda n: (rand(n), DEGREE_8), at="float32, degree 8",
                peer=polynomial),
    cases=[
        correctness("1 000 floats, degree 3", rand(1_000), CUBIC, public=True),
        correctness("1 000 floats, degree 8", rand(1_000), DEGREE_8),
        correctness("one coefficient", rand(1_000), (2.5,)),
        correctness("two coefficients", rand(1_000), (-1.0, 0.5)),
        correctness("coefficients of zero", rand(1_000), (0.0, 0.0, 1.0, 0.0, -2.0)),
        correctness("alternating coefficients", rand(1_000), (1.0, -1.0, 1.0, -1.0, 1.0, -1.0)),
        correctness("the same coefficients from both ends", rand(1_000), (0.5, -1.25, 0.5)),
        correctness("coefficients in a list", rand(1_000), [0.5, -1.25, 2.0, 0.75]),
        correctness("whole numbers as coefficients", rand(1_000), (1, -2, 3)),
        correctness("large and small numbers", wide(1_000, decades=2.0), CUBIC),
        *(correctness(f"degree 3 in {dtype}", rand(1_000, dtype=dtype), CUBIC)
          for dtype in HALVES),
        *(correctness(f"degree 8 in {dtype}", rand(1_000, dtype=dtype), DEGREE_8)
          for dtype in HALVES),
        edge("no element", rand(0), CUBIC, launches=0),
        edge("no element in three dimensions", rand(2, 0, 3), CUBIC, launches=0),
        *lengths(lambda length: (rand(length), CUBIC)),
        *layouts(lambda x: (x, CUBIC)),
        edge("more than 2**31 elements", Sparse(BIG), CUBIC),
        edge("NaN and zeros", special(1_000, values=[NAN, 0.0, -0.0]), CUBIC),
        edge("infinities, degree 1", special(1_000, values=[INF, -INF]), (1.0, 2.0)),
        edge("numbers at the largest float32, degree 1",
             special(1_000, values=extremes("float32")), (1.0, 0.25)),
        edge("denormal numbers", special(1_000, values=[2.0**-149, -(2.0**-140)], share=1.0),
             (0.0, 1.0)),
        *no_tensors("x", CUBIC),
        refuses("no coefficient", rand(8), (), raises=ValueError, mentions=("coeffs",)),
        refuses("ten coefficients", rand(8), (1.0,) * 10, raises=ValueError,
                mentions=("coeffs", "9", "10")),
        refuses("ten coefficients and no element", rand(0), (1.0,) * 10, raises=ValueError,
                mentions=("coeffs",)),
        refuses("a coefficient that is a text", rand(8), (1.0, "2"), raises=TypeError,
                mentions=("coeffs", "str")),
        refuses("coeffs is a number", rand(8), 2.0, raises=TypeError,
                mentions=("coeffs", "float")),

        sizes(lambda n, dtype: (rand(n, dtype=dtype), CUBIC), n=(1, 5_000), dtype=FLOATS, count=20),

        performance("262 144 floats, degree 8", rand(N), DEGREE_8, traffic=1.00, sectors=1.00,
                    launches=1, spills=0),
        performance("134 217 728 floats, degree 8", rand(MANY), DEGREE_8, spills=0,
                    pass_at=0.80, stretch=0.90),
    ],
)

swish_function = Function(
    entry="swish",
    parameters=("x", "beta"),
    reference=swish,
    tolerance=Tolerance(swish_amplitude),
    peer=lambda x, beta=1.0: gated(x.float(), beta * x.float()).to(x.dtype),
    cost=lambda x, beta=1.0: Cost(bytes=2 * x.nbytes, flops=5 * x.numel()),
    contiguous_result=True,
    bench=Bench("elements", SIZES, lambda n: (rand(n),), peer=F.silu, peer_name="F.silu"),
    cases=[
        correctness("1 000 floats", rand(1_000)),
        correctness("beta of 1.702", rand(1_000), 1.702),
        correctness("beta of zero", rand(1_000), 0.0),
        correctness("a negative beta", rand(1_000), -0.5),
        correctness("a large beta", rand(1_000), 30.0),
        correctness("beta as a whole number", rand(1_000), 2),
        correctness("numbers spread by 30", rand(1_000, std=30.0), 1.0),
        *(correctness(f"beta of 1.702 in {dtype}", rand(4_000, dtype=dtype, std=2.0), 1.702)
          for dtype in HALVES),
        edge("no element", rand(0), launches=0),
        *lengths(lambda length: (rand(length),)),
        *layouts(lambda x: (x, 1.5)),
        edge("more than 2**31 elements", Sparse(BIG)),
        edge("200 and -200", special(1_000, values=[200.0, -200.0])),
        edge("200 and -200 in float16", special(1_000, values=[200.0, -200.0], dtype="float16")),
        edge("NaN, infinities and zeros", special(1_000, values=[NAN, INF, -INF, 0.0, -0.0])),
        edge("infinities and a negative beta", special(1_000, values=[INF, -INF]), -2.0),
        edge("numbers at the largest float32", special(1_000, values=extremes("float32"))),
        edge("numbers at the largest bfloat16",
             special(1_000, values=extremes("bfloat16"), dtype="bfloat16"), 1.702),
        *no_tensors("x"),
        refuses("beta is a text", rand(8), "1", raises=TypeError, mentions=("beta", "str")),
        refuses("beta is a tensor", rand(8), rand(1), raises=TypeError,
                mentions=("beta", "Tensor")),

        sizes(lambda n, dtype: (rand(n, dtype=dtype), 1.5), n=(1, 5_000), dtype=FLOATS, count=20),

        performance("262 144 floats", rand(N), 1.5, traffic=1.00, sectors=1.00, launches=1,
                    spills=0),
        performance("134 217 728 floats", rand(MANY), 1.5, spills=0, pass_at=0.80, stretch=0.90),
    ],
)

glu = Function(
    entry="glu",
    parameters=("x", "gate"),
    reference=lambda x, gate: gated(x.double(), gate.double()),
    tolerance=Tolerance(lambda x, gate: gated_amplitude(x.double(), gate.double())),
    peer=lambda x, gate: gated(x.float(), gate.float()).to(x.dtype),
    cost=lambda x, gate: Cost(bytes=3 * x.nbytes, flops=4 * x.numel()),
    contiguous_result=True,
    bench=Bench("elements", SIZES, lambda n: (rand(n), rand(n)), peer=gated,
                peer_name="x * torch.sigmoid(gate)"),
    cases=[
        correctness("1 000 floats", rand(1_000), rand(1_000), public=True),
        correctness("gates spread by 40", rand(1_000), rand(1_000, std=40.0)),
        # exp(-60) on a GPU is off by 50 roundings, all one way; of few numbers no slope is taken.
        correctness("gates far below zero", rand(60), rand(60, mean=-60.0)),
        *(correctness(f"4 000 in {dtype}", rand(4_000, dtype=dtype),
                      rand(4_000, dtype=dtype, std=3.0)) for dtype in HALVES),
        edge("no element", rand(0), rand(0), launches=0),
        *lengths(lambda length: (rand(length), rand(length))),
        edge("gates of 200 and -200", rand(1_000), special(1_000, values=[200.0, -200.0])),
        edge("gates of 200 and -200 in float16", rand(1_000, dtype="float16"),
             special(1_000, values=[200.0, -200.0], dtype="float16")),
        edge("gates that are NaN or infinite", rand(1_000),
             special(1_000, values=[NAN, INF, -INF, 0.0])),
        edge("NaN and infinities behind open gates", special(1_000, values=[NAN, INF, -INF]),
             rand(1_000)),
        edge("both at the largest float32", special(1_000, values=extremes("float32")),
             special(1_000, values=extremes("float32"))),
        edge("a transposed view and a whole matrix", rand(33, 20).mT, rand(20, 33)),
        edge("a whole matrix and a transposed view", rand(20, 33), rand(33, 20).mT),
        edge("halves of one tensor", rand(9, 130)[:, :65], rand(9, 130)[:, 65:]),
        edge("one gate for all", rand(7, 65), rand(1, 1).then(lambda t: t.expand(7, 65))),
        edge("three dimensions", rand(3, 5, 7), rand(3, 5, 7)),
        edge("a single number", rand(), rand()),
        edge("rows 2**30 elements apart", rand(3, 65), rand(3, 65).apart(FAR, 1)),
        edge("more than 2**31 elements", Sparse(BIG), Sparse(BIG)),
        *no_tensors("x", rand(8)),
        refuses("gate is None", rand(8), None, raises=TypeError, mentions=("gate", "None")),
        refuses("float32 and float16 do not mix", rand(8), rand(8, dtype="float16"),
                raises=TypeError, mentions=("gate", "float32", "float16")),
        refuses("different lengths", rand(8), rand(9), raises=ValueError,
                mentions=("gate", "8", "9")),
        refuses("a row beside a matrix is not broadcast", rand(4, 8), rand(8), raises=ValueError,
                mentions=("gate", "4", "8")),
        refuses("tensors on two devices", rand(8), rand(8).on_meta(), raises=ValueError,
                mentions=("gate", "meta")),

        sizes(lambda n, dtype: (rand(n, dtype=dtype), rand(n, dtype=dtype)),
              n=(1, 5_000), dtype=FLOATS, count=20),

        performance("262 144 floats", rand(N), rand(N), traffic=1.00, sectors=1.00, launches=1,
                    spills=0),
        performance("134 217 728 floats", rand(MANY), rand(MANY), spills=0,
                    pass_at=0.80, stretch=0.90),
    ],
)

complex_mul = Function(
    entry="complex_mul",
    parameters=("a", "b"),
    reference=product,
    tolerance=Tolerance(product_amplitude),
    peer=lambda a, b: product(a, b).to(torch.complex64),
    cost=lambda a, b: Cost(bytes=24 * a.numel(), flops=6 * a.numel()),
    contiguous_result=True,
    bench=Bench("numbers", SIZES[:-1], lambda n: (pairs(n), pairs(n)), at="complex64",
                peer=torch.mul, peer_name="a * b"),
    cases=[
        correctness("1 000 numbers", pairs(1_000), pairs(1_000), public=True),
        correctness("i times i", full(40, 2, value=0.0).then(_imaginary := lambda t: (
            torch.view_as_complex(torch.stack((t[:, 0], t[:, 1] + 1), -1)))),
            full(40, 2, value=0.0).then(_imaginary)),
        correctness("real numbers", pairs(1_000).then(lambda t: torch.complex(t.real, 0 * t.imag)),
                    pairs(1_000)),
        correctness("numbers of many sizes", wide(1_000, 2).then(torch.view_as_complex),
                    pairs(1_000)),
        correctness("30 x 40 numbers", pairs(30, 40), pairs(30, 40)),
        edge("no number", pairs(0), pairs(0), launches=0),
        *lengths(lambda length: (pairs(length), pairs(length))),
        edge("a conjugated view", pairs(100).then(torch.conj), pairs(100)),
        edge("two conjugated views", pairs(100).then(torch.conj), pairs(100).then(torch.conj)),
        edge("a conjugate transpose", pairs(20, 33).then(torch.adjoint), pairs(33, 20)),
        edge("a transposed view", pairs(20, 33).mT, pairs(33, 20)),
        edge("every other number", pairs(200)[::2], pairs(100)),
        edge("all but the first number", pairs(101)[1:], pairs(100)),
        edge("one number repeated", pairs(1).then(lambda t: t.expand(100)), pairs(100)),
        edge("numbers whose parts lie apart", rand(2, 100).then(
            lambda t: torch.view_as_complex(t.mT.contiguous())), pairs(100)),
        edge("rows 2**29 numbers apart", pairs(3, 65).apart(FAR // 2, 1), pairs(3, 65)),
        edge("three dimensions", pairs(3, 5, 7), pairs(3, 5, 7)),
        edge("a single number", pairs(), pairs()),
        edge("infinite parts", odd_pairs(500, INF, -INF), pairs(500)),
        edge("infinite parts, zeros and NaN", odd_pairs(500, INF, -INF, 0.0, NAN),
             odd_pairs(500, INF, 0.0, -0.0)),
        refuses("a is a list", [1.0, 2.0], pairs(1), raises=TypeError, mentions=("a", "list")),
        refuses("b is a number", pairs(8), 2.0, raises=TypeError, mentions=("b", "float")),
        refuses("real numbers are not supported", rand(8), rand(8), raises=TypeError,
                mentions=("a", "complex64", "float32")),
        refuses("a complex and a real tensor", pairs(8), rand(8), raises=TypeError,
                mentions=("b", "complex64", "float32")),
        refuses("complex128 is not supported", rand(8, dtype="complex128"),
                rand(8, dtype="complex128"), raises=TypeError, mentions=("a", "complex128")),
        refuses("different lengths", pairs(8), pairs(9), raises=ValueError,
                mentions=("b", "8", "9")),
        refuses("a row beside a matrix is not broadcast", pairs(4, 8), pairs(8),
                raises=ValueError, mentions=("b", "4", "8")),

        sizes(lambda n: (pairs(n), pairs(n)), n=(1, 5_000), count=20),

        performance("131 072 numbers", pairs(N // 2), pairs(N // 2), traffic=1.00, sectors=1 / 0.95,
                    launches=1, spills=0),
        performance("67 108 864 numbers", pairs(MANY // 2), pairs(MANY // 2), spills=0,
                    pass_at=0.80, stretch=0.90),
    ],
)

l2_norm = Function(
    entry="l2_norm",
    parameters=("x",),
    reference=norm,
    tolerance=Tolerance(norm_amplitude),
    peer=norm_in_float32,
    reversed_peer=lambda x: norm_in_float32(x.flip(1)),
    cost=lambda x: Cost(bytes=x.nbytes + 4 * x.shape[0], flops=5 * x.numel()),
    result_dtype="float32",
    contiguous_result=True,
    bench=Bench("columns", (256, 1_024, 4_096, 16_384), lambda n: (rand(4_096, n),),
                at="4 096 rows of float32", peer=lambda x: torch.linalg.vector_norm(x, dim=1),
                peer_name="torch.linalg.vector_norm"),
    cases=[
        correctness("32 x 128 floats", rand(32, 128), public=True),
        correctness("4 x 127 floats", rand(4, 127)),
        correctness("3 x 129 floats", rand(3, 129)),
        correctness("5 x 1 000 floats", rand(5, 1_000)),
        correctness("2 x 4 097 floats", rand(2, 4_097)),
        correctness("1 x 65 536 floats", rand(1, 65_536)),
        *(correctness(f"5 x 1 000 in {dtype}", rand(5, 1_000, dtype=dtype)) for dtype in HALVES),
        correctness("numbers of about 1e30", rand(4, 129, std=1e30)),
        correctness("numbers of about 1e-30", rand(4, 129, std=1e-30)),
        correctness("numbers of about 1e30 in bfloat16", rand(4, 1_000, std=1e30,
                                                              dtype="bfloat16")),
        correctness("numbers of about 1e-30 in bfloat16", rand(4, 1_000, std=1e-30,
                                                               dtype="bfloat16")),
        correctness("numbers of many sizes", wide(4, 1_000, decades=8.0)),
        correctness("one large number among small ones",
                    rows(row(1_000, {500: 1e30}), row(1_000, {999: -1e25}), row(1_000))),
        edge("numbers of 1e30 and 1e-30, row by row",
             rows([3e30, -4e30, 0.0], [3e-30, 0.0, -4e-30], [3.0, 4.0, 0.0]), public=True),
        edge("no row", rand(0, 128), launches=0),
        edge("no column", rand(3, 0)),
        edge("one element", rand(1, 1, mean=-5.0)),
        edge("three rows of one column", rand(3, 1, mean=-5.0)),
        edge("three rows of two columns", rand(3, 2)),
        edge("three rows of 4 097 columns", rand(3, 4_097)),
        launchable("70 000 rows of one column", rand(70_000, 1)),
        edge("rows of zeros", rows([0.0] * 129, row(129), [-0.0] * 129)),
        edge("denormal numbers", special(3, 129, values=[2.0**-149, -(2.0**-140)], share=1.0)),
        edge("numbers at the largest float32", special(3, 4, values=extremes("float32")[2:],
                                                       share=0.5)),
        edge("numbers at the largest float16",
             special(3, 129, values=extremes("float16"), dtype="float16")),
        edge("NaN and infinities", rows(
            row(129), row(129, {64: NAN}), row(129, {128: INF}), row(129, {0: -INF}),
            row(129, {3: INF, 90: -INF}), row(129, {3: NAN, 90: INF}), row(129))),
        edge("infinities in float16", rows(row(129), row(129, {7: -INF}), dtype="float16")),
        edge("a transposed view", rand(100, 7).mT),
        edge("every other row, 100 of 200 columns", rand(10, 200)[::2, 50:150]),
        edge("every third column", rand(5, 300)[:, ::3]),
        edge("one row repeated five times", rand(1, 1_000).then(lambda t: t.expand(5, -1))),
        edge("one column repeated 100 times", rand(5, 1).then(lambda t: t.expand(-1, 100))),
        edge("a float16 matrix that starts at the second element of its memory",
             rand(5 * 128 + 1, dtype="float16").then(lambda t: t[1:].view(5, 128))),
        edge("rows 2**30 elements apart", rand(3, 129).apart(FAR, 1)),
        edge("rows of float16 2**30 elements apart", rand(3, 128, dtype="float16").apart(FAR, 1)),
        *no_tensors("x"),
        refuses("one dimension", rand(128), raises=ValueError, mentions=("x", "2", "1")),
        refuses("three dimensions", rand(4, 5, 6), raises=ValueError, mentions=("x", "2", "3")),
        refuses("65 537 columns", rand(1, 65_537), raises=ValueError,
                mentions=("x", "65536", "65537")),

        sizes(lambda rows, columns, dtype: (rand(rows, columns, dtype=dtype),),
              rows=(1, 5), columns=(1, 5_000), dtype=FLOATS, count=20),

        performance("64 x 1 024 floats", rand(64, 1_024), traffic=1.00, sectors=1.00, launches=1,
                    programs=64, spills=0),
        performance("16 384 x 4 096 floats", rand(16_384, 4_096), spills=0,
                    pass_at=0.75, stretch=0.88),
    ],
)


# ---------------------------------------------------------------------------------------------
# Designs

FLAT = ({"n": 1_000, "e": 4}, {"n": 1_000_000, "e": 2}, {"n": 1 << 26, "e": 4})
POLYNOMIALS = tuple({**shape, "k": k} for shape, k in zip(FLAT, (2, 5, 9), strict=True))
COMPLEX = tuple({"n": shape["n"]} for shape in FLAT)
MATRICES = ({"R": 64, "C": 1_000, "e": 4}, {"R": 4_096, "C": 128, "e": 2},
            {"R": 3, "C": 65_536, "e": 4})


WAITS = ("A GPU computes dozens of FLOP in the time that a byte takes from memory. What is the "
         "arithmetic intensity here?")

designs = [
    call("the design of poly_act", "design", "poly_act", POLYNOMIALS, check=is_designed(
        of(1, "n"), of(2, "n", "e"), (lambda s: 2 * s["n"] * (s["k"] - 1),) * 2,
        "memory",
        {"bound": WAITS, "bytes": "Each element is read once and written once; the coefficients "
         "are arguments.", "flops": "Each coefficient but one costs a product and a sum."})),
    call("the design of swish", "design", "swish", FLAT, check=is_designed(
        of(1, "n"), of(2, "n", "e"), (of(4, "n"), of(6, "n")),
        "memory",
        {"bound": WAITS, "bytes": "Each element is read once and written once.",
         "flops": "Count products, quotients, sums and exponentials, one each."})),
    call("the design of glu", "design", "glu", FLAT, check=is_designed(
        of(1, "n"), of(3, "n", "e"), (of(3, "n"), of(5, "n")),
        "memory",
        {"bound": WAITS, "bytes": "Two tensors are read and one is written.",
         "flops": "Count products, quotients, sums and exponentials, one each."})),
    call("the design of complex_mul", "design", "complex_mul", COMPLEX, check=is_designed(
        of(1, "n"), of(24, "n"), (of(6, "n"),) * 2,
        "memory",
        {"bound": WAITS, "bytes": "A complex number has two parts of 4 bytes; two numbers are read "
         "and one is written.", "flops": "Four products, a difference and a sum."})),
    call("the design of l2_norm", "design", "l2_norm", MATRICES, check=is_designed(
        of(1, "R", "C"), lambda s: s["R"] * s["C"] * s["e"] + 4 * s["R"],
        (of(2, "R", "C"), of(6, "R", "C")),
        "memory",
        {"bound": WAITS, "bytes": "Each element is read once; each row writes one float32.",
         "flops": "Count for each element: its magnitude, the maximum, the division, the square, "
         "the sum."})),
]


suite = Suite(
    blanks=5,
    functions=[poly_act, swish_function, glu, complex_mul, l2_norm],
    cases=designs,
)


# ---------------------------------------------------------------------------------------------
# Properties


def furthest(got: torch.Tensor, expected: torch.Tensor, most: torch.Tensor | float) -> str:
    """Names the element with the largest error; empty if all are within ``most``."""
    got, expected = got.double(), expected.double()
    over = (got - expected).abs() / (torch.as_tensor(most, dtype=torch.float64) + 1e-300)
    over[(got == expected) | (got.isnan() & expected.isnan())] = 0.0  # also where neither is finite
    if bool((over <= 1).all()):
        return ""
    worst = int(over.nan_to_num(nan=INF).argmax())
    return f"element {worst} is {got[worst]:.9g}, expected {expected[worst]:.9g}"


def test_a_polynomial_of_0_and_1_is_the_identity(submission):
    (x,) = submission.draw(rand(1_000))

    result = submission.poly_act(x, (0.0, 1.0))

    assert torch.equal(result, x), furthest(result, x, 0.0)


def test_the_constant_coefficient_is_the_value_at_zero(submission):
    (x,) = submission.draw(rand(100))

    result = submission.poly_act(x * 0, CUBIC)

    assert torch.equal(result, torch.full_like(x, CUBIC[0])), (
        f"p(0) is {float(result[0]):.6g} for the coefficients {CUBIC}")


def test_an_open_gate_lets_everything_through(submission):
    (x,) = submission.draw(rand(1_000))

    result = submission.glu(x, torch.full_like(x, 200.0))

    assert torch.equal(result, x), f"with a gate of 200, {furthest(result, x, 0.0)}"


def test_swish_of_x_and_of_minus_x_differ_by_x(submission):
    (x,) = submission.draw(rand(1_000, std=3.0))

    apart = submission.swish(x).double() - submission.swish(-x).double()

    assert not (wrong := furthest(apart, x, x.double().abs() * 2.0**-20)), wrong


def test_the_size_of_a_product_is_the_product_of_the_sizes(submission):
    a, b = submission.draw(pairs(1_000), pairs(1_000))

    size = submission.complex_mul(a, b).abs()

    expected = a.to(torch.complex128).abs() * b.to(torch.complex128).abs()
    assert not (wrong := furthest(size, expected, expected * 2.0**-20)), wrong


def test_a_norm_grows_with_its_row(submission):
    for factor in (-4.0, 3e25, 1e-28):
        (x,) = submission.draw(rand(5, 129))

        grown, plain = submission.l2_norm(x * factor), submission.l2_norm(x)

        expected = abs(factor) * plain.double()
        assert not (wrong := furthest(grown, expected, expected * 2.0**-20)), (
            f"for the norms of {factor:g} x, {wrong}")
