"""Hidden tests of layer norm: widths, ranges, layouts, special values, statistics, cost."""

from __future__ import annotations

import math

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
    Input,
    Suite,
    Tolerance,
    correctness,
    edge,
    equal_rows,
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
from grader.suite.rounding import spread

EPS = 1e-5
INF = math.inf
NAN = math.nan
FAR = 1 << 30  # elements; the offset of the third row is 2**31
WIDE = 3_000  # columns: nearly three blocks of 1,024

# Bytes of the solution at 64 x 512 floats: x once, both vectors once per row, the result once, and
# two float32 statistics per row. The minimum counts the vectors once.
ISSUED = 4 * 64 * 512 * 4 + 8 * 64
LEAST = 2 * 64 * 512 * 4 + 2 * 512 * 4 + 8 * 64


def reference(x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor, eps: float = EPS,
              return_stats: bool = False) -> torch.Tensor | tuple[torch.Tensor, ...]:
    """Layer norm in float64, by the formula."""
    return with_sum_over(x.shape[1], x, weight, bias, eps, return_stats)


def with_sum_over(count: int, x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor,
                  eps: float = EPS,
                  return_stats: bool = False) -> torch.Tensor | tuple[torch.Tensor, ...]:
    """The same with a variance that is the sum of squares over ``count``."""
    x = x.double()
    mean = x.mean(1, keepdim=True)
    centered = x - mean
    rstd = torch.rsqrt((centered * centered).sum(1, keepdim=True) / count + eps)
    y = centered * rstd * weight.double() + bias.double()
    return (y, mean[:, 0], rstd[:, 0]) if return_stats else y


def with_variances(x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor, eps: float = EPS,
                   return_stats: bool = False) -> tuple[torch.Tensor, ...] | torch.Tensor:
    """Layer norm with the variance instead of the reciprocal standard deviation."""
    right = reference(x, weight, bias, eps, return_stats)
    return (*right[:2], x.double().var(1, unbiased=False)) if return_stats else right


def with_a_weight_for_each_row(x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor,
                               eps: float = EPS, return_stats: bool = False) -> torch.Tensor:
    ones, zeros = torch.ones_like(weight), torch.zeros_like(bias)
    rows = weight.double()[:x.shape[0], None]
    return reference(x, ones, zeros, eps) * rows + bias.double()


def rms_norm(x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor, eps: float = EPS,
             return_stats: bool = False) -> torch.Tensor:
    x = x.double()
    return x * torch.rsqrt((x * x).mean(1, keepdim=True) + eps) * weight.double() + bias.double()


WRONG_FORMULAS = {
    "what a variance over n_cols - 1 gives":
        lambda x, *others: with_sum_over(x.shape[1] - 1, x, *others),
    "what the sum of squares gives, not divided by n_cols":
        lambda *inputs: with_sum_over(1, *inputs),
    "the variance of its row": with_variances,
    "what a weight for each row gives": with_a_weight_for_each_row,
    "what RMS norm gives, in which no mean is subtracted": rms_norm,
    "what layer norm gives without its weight":
        lambda x, weight, *others: reference(x, torch.ones_like(weight), *others),
    "what layer norm gives without its bias":
        lambda x, weight, bias, *others: reference(x, weight, torch.zeros_like(bias), *others),
}


def peer(x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor, eps: float = EPS,
         return_stats: bool = False) -> torch.Tensor | tuple[torch.Tensor, ...]:
    y = F.layer_norm(x, x.shape[1:], weight, bias, eps)
    if not return_stats:
        return y
    var, mean = torch.var_mean(x.float(), dim=1, unbiased=False)
    return y, mean, torch.rsqrt(var + eps)


def reversed_peer(x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor, eps: float = EPS,
                  return_stats: bool = False) -> torch.Tensor | tuple[torch.Tensor, ...]:
    found = peer(x.flip(1), weight.flip(0), bias.flip(0), eps, return_stats)
    if isinstance(found, tuple):
        return found[0].flip(1), *found[1:]
    return found.flip(1)


def amplitude(x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor, eps: float = EPS,
              return_stats: bool = False) -> Amplitude | tuple[Amplitude, ...]:
    of_y = error_bounds.layer_norm(x, weight, bias, eps)
    return (of_y, error_bounds.mean(x, 1), of_rstd(x, eps)) if return_stats else of_y


def of_rstd(x: torch.Tensor, eps: float) -> Amplitude:
    """Half of the variance's relative error, which is that of a sum of squares, arrives here.

    The squares are taken around a mean that is itself off by d, which adds d**2 to the variance:
    nothing for rows around zero, all there is for narrow rows far away from it.
    """
    x = x.double()
    columns = x.shape[1]
    centered = x - x.mean(1, keepdim=True)
    rstd = torch.rsqrt((centered * centered).mean(1) + eps)
    mean_off = spread(columns) * x.abs().mean(1) * rstd  # in units of u, and of the deviation
    return Amplitude(
        pointwise=rstd * (4 + 0.5 * KAPPA * FLOAT32 * mean_off**2),
        reduced=0.5 * rstd,
        length=columns,
    )


def cost(x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor, eps: float = EPS,
         return_stats: bool = False) -> Cost:
    """x, the result and both vectors once, and two float32 statistics per row."""
    return Cost(bytes=2 * x.nbytes + weight.nbytes + bias.nbytes + 8 * x.shape[0],
                flops=8 * x.numel())


# ---------------------------------------------------------------------------------------------
# Inputs


def table(count: int, columns: int, dtype: str = "float32", mean: float = 3.0,
          std: float = 2.0) -> tuple[Input, Input, Input]:
    """A matrix, a weight around 1 and a bias around 0.

    Rows lie around 3: around 0 a kernel that forgets the mean, or that lets padding into the
    variance, would be nearly right.
    """
    return (rand(count, columns, dtype=dtype, mean=mean, std=std), *parameters(columns, dtype))


def parameters(columns: int, dtype: str = "float32") -> tuple[Input, Input]:
    return rand(columns, dtype=dtype, mean=1.0, std=0.5), rand(columns, dtype=dtype)


def of(x: Input, columns: int, dtype: str = "float32") -> tuple[Input, Input, Input]:
    """A given matrix with the usual parameters."""
    return (x, *parameters(columns, dtype))


def statistics(name: str, *inputs: object, eps: float = EPS, public: bool = False) -> Case:
    return correctness(name, *inputs, eps, True, public=public)


def infinities(columns: int, dtype: str) -> Input:
    """Every kind of row with NaN and infinities, between two rows without any."""
    last = columns - 1
    return rows(
        row(columns),
        row(columns, {columns // 2: NAN}),
        row(columns, {last: INF}),
        row(columns, {0: -INF}),
        row(columns, {0: INF, last: -INF}),
        row_with(columns, INF, 0, columns),
        row_with(columns, -INF, 1, columns),
        row(columns),
        dtype=dtype,
    )


suite = Suite(
    entry="layer_norm",
    parameters=("x", "weight", "bias", "eps"),
    keyword_only=("return_stats",),
    blanks=24,
    reference=reference,
    wrong_formulas=WRONG_FORMULAS,
    tolerance=Tolerance(amplitude),
    contiguous_result=True,
    result_names=("out", "mean", "rstd"),
    result_dtype=(None, "float32", "float32"),
    peer=peer,
    reversed_peer=reversed_peer,
    cost=cost,
    bench=Bench("columns", (256, 1_024, 2_048, 4_096, 8_192, 12_345, 16_384),
                lambda n: table(4_096, n), at="4 096 rows of float32",
                peer_name="F.layer_norm"),
    cases=[
        # Widths: powers of two, adjacent widths, and one row that fills an SM.
        correctness("16 x 256 floats", *table(16, 256), public=True),
        correctness("4 x 127 floats, one less than a power of two", *table(4, 127), public=True),
        correctness("4 x 128 floats", *table(4, 128)),
        correctness("4 x 129 floats, one more than a power of two", *table(4, 129)),
        correctness("3 x 768 floats", *table(3, 768)),
        correctness("5 x 1 000 floats", *table(5, 1_000)),
        correctness("2 x 4 097 floats", *table(2, 4_097)),
        correctness("64 x 512 floats", *table(64, 512)),
        correctness("2 x 20 000 floats", *table(2, 20_000)),
        correctness("1 x 65 536 floats, the widest row", *table(1, 65_536)),
        correctness("16 x 256 in float16", *table(16, 256, "float16")),
        correctness("16 x 256 in bfloat16", *table(16, 256, "bfloat16")),
        correctness("4 x 127 in float16", *table(4, 127, "float16")),
        correctness("4 x 127 in bfloat16", *table(4, 127, "bfloat16")),
        correctness("3 x 768 in float16", *table(3, 768, "float16")),
        correctness("3 x 768 in bfloat16", *table(3, 768, "bfloat16")),
        correctness("2 x 4 097 in float16", *table(2, 4_097, "float16")),
        correctness("2 x 4 097 in bfloat16", *table(2, 4_097, "bfloat16")),

        # The parameters, one at a time.
        correctness("a weight of 1 and a bias of 0", rand(5, 129, mean=3.0, std=2.0),
                    full(129, value=1.0), full(129, value=0.0)),
        correctness("one weight for all columns", rand(5, 129, mean=3.0, std=2.0),
                    full(129, value=2.5), rand(129)),
        correctness("a bias of 0", rand(5, 129, mean=3.0, std=2.0),
                    rand(129, mean=1.0, std=0.5), full(129, value=0.0)),
        correctness("a weight of 0", rand(5, 129), full(129, value=0.0), rand(129)),
        correctness("parameters spread by 100", rand(5, 129), rand(129, std=100.0),
                    rand(129, std=100.0)),

        # Ranges: where the mean dwarfs the deviation, where eps counts, where only eps is left.
        correctness("rows of zeros", *of(full(3, 129, value=0.0), 129)),
        correctness("64 rows around 10 000", *table(64, 1_000, mean=1e4, std=1.0)),
        correctness("rows around -300", *table(4, 1_000, mean=-300.0, std=1.0)),
        correctness("numbers spread by a thousandth around 1",
                    *table(4, 1_000, mean=1.0, std=1e-3)),
        correctness("numbers spread by a thousandth around 0",
                    *table(4, 129, mean=0.0, std=1e-3)),
        correctness("numbers spread by 30", *table(4, 1_000, mean=0.0, std=30.0)),
        correctness("2 rows of 3 columns", *table(2, 3)),
        correctness("40 rows of 3 columns", *table(40, 3)),
        correctness("an eps of 1", *table(4, 129), 1.0),
        correctness("an eps of 2", *table(4, 129), 2.0),
        correctness("an integer eps", *table(4, 129), 1),
        correctness("an eps of 1e-12", *table(4, 129), 1e-12),
        correctness("rows of one value each", *of(equal_rows(4, 768), 768)),
        correctness("one number far above 3 000 others", *of(spike(WIDE), WIDE)),
        correctness("float16 spread by a thousandth",
                    *table(4, 129, "float16", mean=0.0, std=1e-3)),
        correctness("float16 around 60", *table(4, 1_000, "float16", mean=60.0, std=1.0)),
        correctness("bfloat16 around -110", *table(4, 1_000, "bfloat16", mean=-110.0, std=4.0)),

        # Statistics; in narrow rows they show what wide ones hide.
        statistics("statistics of 5 x 129 floats", *table(5, 129), public=True),
        statistics("statistics of 16 x 256 floats around zero",
                   *table(16, 256, mean=0.0, std=1.0)),
        statistics("statistics of 300 x 40 floats", *table(300, 40)),
        statistics("statistics of 200 x 5 floats", *table(200, 5)),
        statistics("statistics of 128 x 16 floats around zero",
                   *table(128, 16, mean=0.0, std=1.0)),
        statistics("statistics of 5 x 129 in float16", *table(5, 129, "float16")),
        statistics("statistics of 5 x 129 in bfloat16", *table(5, 129, "bfloat16")),
        statistics("statistics with an eps of 0.5", *table(5, 129, std=0.5), eps=0.5),

        # The smallest shapes, and one, three and no rows.
        edge("no row", *table(0, 128), launches=0),
        edge("no row, with statistics", *table(0, 128, "float16"), EPS, True, launches=0),
        edge("one element", *table(1, 1)),
        edge("three rows of one column", *table(3, 1)),
        edge("three rows of two columns, with statistics", *table(3, 2), EPS, True),
        edge("one row of two columns", *table(1, 2)),
        edge("three rows of two columns in bfloat16", *table(3, 2, "bfloat16")),
        edge("one row of 127 columns", *table(1, 127)),
        edge("three rows of 129 columns", *table(3, 129)),
        edge("one row of 1 000 columns", *table(1, 1_000)),
        edge("three rows of 4 097 columns", *table(3, 4_097)),
        edge("one row of 65 535 columns", *table(1, 65_535)),
        launchable("70 000 rows of one column", *table(70_000, 1)),

        # Layouts: views that indexing, transposing and expanding return without a copy.
        edge("every other row, 100 of 200 columns",
             *of(rand(10, 200, mean=3.0)[::2, 50:150], 100), public=True),
        edge("every other row, with statistics",
             *of(rand(10, 200, mean=3.0)[::2, 50:150], 100), EPS, True),
        edge("every other row of float16, 100 of 200 columns",
             *of(rand(10, 200, dtype="float16", mean=3.0)[::2, 50:150], 100, "float16")),
        edge("columns 3 to 130 of 300 in bfloat16",
             *of(rand(5, 300, dtype="bfloat16", mean=3.0)[:, 3:131], 128, "bfloat16")),
        edge("a transposed view", *of(rand(100, 7, mean=3.0).mT, 100)),
        edge("every third column", *of(rand(5, 300, mean=3.0)[:, ::3], 100)),
        edge("all rows but the first", *of(rand(6, 129, mean=3.0)[1:], 129)),
        edge("a matrix that starts at the second element of its memory",
             *of(rand(5 * 129 + 1).then(lambda t: t[1:].view(5, 129)), 129)),
        edge("one row repeated five times",
             *of(rand(1, 1_000, mean=3.0).then(lambda t: t.expand(5, -1)), 1_000)),
        edge("one column repeated 100 times",
             *of(rand(5, 1).then(lambda t: t.expand(-1, 100)), 100)),
        edge("overlapping rows, each one element further",
             *of(rand(5 + 99, mean=3.0).then(lambda t: t.unfold(0, 100, 1)), 100)),
        edge("rows 2**30 elements apart",
             *of(rand(3, 127, dtype="float16", mean=3.0).apart(FAR, 1), 127, "float16")),
        edge("every other number of a longer weight", rand(5, 100, mean=3.0),
             rand(200, mean=1.0, std=0.5)[::2], rand(100)),
        edge("every other number of a longer bias", rand(5, 100, mean=3.0),
             rand(100, mean=1.0, std=0.5), rand(200)[::2]),
        edge("parameters that are columns of one matrix", rand(5, 100, mean=3.0),
             rand(100, 2, mean=1.0, std=0.5)[:, 0], rand(100, 3)[:, 1]),
        edge("parameters that are one number repeated", rand(5, 100, mean=3.0),
             rand(1).then(lambda t: t.expand(100)), rand(1).then(lambda t: t.expand(100))),
        edge("parameters that start at the second element of their memory",
             rand(5, 128, mean=3.0), rand(129, mean=1.0, std=0.5)[1:], rand(129)[1:]),

        # Special values: NaN and infinities fill their own row, and no other.
        edge("NaN and infinities", *of(infinities(129, "float32"), 129)),
        edge("NaN and infinities in float16", *of(infinities(128, "float16"), 128, "float16")),
        edge("NaN and infinities in bfloat16", *of(infinities(129, "bfloat16"), 129, "bfloat16")),
        edge("NaN or an infinity in the last of 3 000 columns",
             *of(rows(*(row(WIDE, {WIDE - 1: value}) for value in (NAN, INF, -INF))), WIDE)),
        edge("NaN and infinities in the parameters", rand(3, 129, mean=3.0),
             special(129, values=[NAN, INF, -INF], mean=1.0), rand(129)),
        edge("all numbers equal", *of(full(3, 100, value=0.1), 100)),
        edge("rows of 100 integers that sum to 0",
             *of(integers(4, 50, low=-9, high=9).then(lambda t: torch.cat([t, -t], 1)), 100)),
        edge("all numbers equal in float16", *of(full(3, 127, value=-7.3, dtype="float16"), 127,
                                                 "float16")),
        edge("all numbers equal to -10 000", *of(full(2, 4_097, value=-1e4), 4_097)),
        edge("one huge number beyond column 1 024",
             *of(rows(row(WIDE, {2_500: 1e15}), row(WIDE, {2_500: -1e15})), WIDE)),
        edge("both zeros and denormal numbers",
             *of(special(3, 129, values=[0.0, -0.0, 2.0**-149, -(2.0**-149), 2.0**-126],
                         share=1.0), 129)),
        edge("numbers at the largest float16",
             *of(special(4, 129, values=extremes("float16"), dtype="float16"), 129, "float16")),
        edge("numbers up to 1e16", *of(special(4, 129, values=[1e16, -1e16, 1e12]), 129)),

        # Unsupported arguments must raise before anything is launched.
        refuses("x is a list", [[1.0, 2.0]], *parameters(2),
                raises=TypeError, mentions=("x", "list")),
        refuses("weight is None", rand(4, 128), None, rand(128),
                raises=TypeError, mentions=("weight", "None")),
        refuses("bias is a number", rand(4, 128), rand(128), 0.0,
                raises=TypeError, mentions=("bias", "float")),
        refuses("float64 is not supported", *table(4, 128, "float64"),
                raises=TypeError, mentions=("x", "float64")),
        refuses("int32 is not supported", rand(4, 128, dtype="int32"),
                rand(128, dtype="int32"), rand(128, dtype="int32"),
                raises=TypeError, mentions=("x", "int32")),
        refuses("bool is not supported", integers(4, 128, low=0, high=1, dtype="bool"),
                *parameters(128), raises=TypeError, mentions=("x", "bool")),
        refuses("a weight in another dtype", rand(4, 128, dtype="float16"), rand(128),
                rand(128, dtype="float16"),
                raises=TypeError, mentions=("weight", "float16", "float32")),
        refuses("a bias in another dtype", rand(4, 128), rand(128), rand(128, dtype="bfloat16"),
                raises=TypeError, mentions=("bias", "float32", "bfloat16")),
        refuses("eps is a string", *table(4, 128), "1e-5",
                raises=TypeError, mentions=("eps", "str")),
        refuses("eps is None", *table(4, 128), None,
                raises=TypeError, mentions=("eps", "None")),
        refuses("one dimension", rand(128), *parameters(128),
                raises=ValueError, mentions=("x", "2", "1")),
        refuses("three dimensions", rand(2, 3, 128), *parameters(128),
                raises=ValueError, mentions=("x", "2", "3")),
        refuses("no column", *table(3, 0), raises=ValueError, mentions=("x", "65536", "0")),
        refuses("neither row nor column", *table(0, 0),
                raises=ValueError, mentions=("x", "65536", "0")),
        refuses("65 537 columns", *table(1, 65_537),
                raises=ValueError, mentions=("x", "65536", "65537")),
        refuses("a weight that is too short", rand(4, 768), rand(767), rand(768),
                raises=ValueError, mentions=("weight", "768", "767")),
        refuses("a weight of one number", rand(4, 768), rand(1), rand(768),
                raises=ValueError, mentions=("weight", "768", "1")),
        refuses("a bias that is too long", rand(4, 768), rand(768), rand(1_000),
                raises=ValueError, mentions=("bias", "768", "1000")),
        refuses("a weight for each element", rand(4, 128), rand(4, 128), rand(128),
                raises=ValueError, mentions=("weight", "128", "4")),
        refuses("a bias of two dimensions", rand(4, 128), rand(128), rand(1, 128),
                raises=ValueError, mentions=("bias", "128")),
        refuses("a weight that is too short, and no row", rand(0, 8), rand(7), rand(8),
                raises=ValueError, mentions=("weight", "8", "7")),
        refuses("a weight on another device", rand(4, 128), rand(128).on_meta(), rand(128),
                raises=ValueError, mentions=("weight", "cpu", "meta")),
        refuses("a bias on another device", rand(4, 128), rand(128), rand(128).on_meta(),
                raises=ValueError, mentions=("bias", "cpu", "meta")),
        refuses("an eps of 0", *table(4, 128), 0.0, raises=ValueError, mentions=("eps", "0")),
        refuses("an eps below 0", *table(4, 128), -1e-5,
                raises=ValueError, mentions=("eps", "-1e-05")),
        refuses("an eps of NaN", *table(4, 128), NAN, raises=ValueError, mentions=("eps", "nan")),

        sizes(lambda rows, columns, dtype, stats: (*table(rows, columns, dtype), EPS, stats),
              rows=(1, 5), columns=(1, 5_000), dtype=FLOATS, stats=(False, True)),

        performance("64 x 512 floats, counted", *table(64, 512),
                    traffic=ISSUED / LEAST, sectors=1.00, launches=1, programs=64, spills=0),
        performance("16 384 x 4 096 in float16", *table(16_384, 4_096, "float16"),
                    requests=2.5, spills=0, pass_at=0.75, stretch=0.88),
        performance("12 345 x 5 000 floats", *table(12_345, 5_000), spills=0,
                    pass_at=0.45, stretch=0.80),
    ],
)


# ---------------------------------------------------------------------------------------------
# Properties of layer norm


def plain(submission, x, eps=EPS):
    """The normalized rows themselves: a weight of 1 and a bias of 0."""
    columns = x.shape[1]
    return submission(x, torch.ones(columns, dtype=x.dtype), torch.zeros(columns, dtype=x.dtype),
                      eps)


def error_by_norm(got: torch.Tensor, exact: torch.Tensor) -> float:
    """Relative error of a result in the Euclidean norm."""
    return float((got.double() - exact).norm() / exact.norm())


def test_normalized_rows_have_mean_zero_and_almost_unit_variance(submission):
    for columns in (127, 1_000):
        (x,) = submission.draw(rand(4, columns, mean=3.0, std=0.01))

        got = plain(submission, x).double()

        exact = x.double().var(1, unbiased=False)
        means, off = got.mean(1).abs(), (got.var(1, unbiased=False) - exact / (exact + EPS)).abs()
        # The mean is lost by 4 sqrt(C) roundings of 3 at most, as a share of the deviation 0.01.
        most = 4 * spread(columns) * FLOAT32 * 3.0 / 0.01
        worst = int(means.argmax())
        assert means[worst] <= most, (
            f"row {worst} of {columns} columns has the mean {means[worst]:.3g} after normalizing; "
            f"rounding explains at most {most:.3g}"
        )
        worst = int(off.argmax())
        assert off[worst] <= most, (
            f"row {worst} of {columns} columns has a variance that differs from var / (var + eps) "
            f"by {off[worst]:.3g} after normalizing; rounding explains at most {most:.3g}"
        )


def test_adding_a_number_to_a_row_changes_next_to_nothing(submission):
    for constant in (64.0, -2048.0):
        x, weight, bias = submission.draw(integers(4, 1_000), *parameters(1_000))

        moved = submission(x + constant, weight, bias)  # x + constant is exact

        exact = reference(x, weight, bias)
        off = error_by_norm(moved, exact)
        most = 2e-7 * (8 + abs(constant))
        assert off <= most, (
            f"layer_norm(x {constant:+.0f}) differs from layer_norm(x) by a relative error of "
            f"{off:.3g}; rounding explains at most {most:.3g}"
        )


def test_multiplying_a_row_by_4_changes_nothing_where_eps_is_tiny(submission):
    (x,) = submission.draw(rand(4, 1_000, mean=3.0, std=2.0))

    once, four = plain(submission, x, 1e-12), plain(submission, 4 * x, 1e-12)

    off = error_by_norm(four, once.double())
    assert off <= 1e-6, (
        f"with an eps of 1e-12, layer_norm(4 x) differs from layer_norm(x) by a relative error of "
        f"{off:.3g}; multiplying by a power of two does not round"
    )


def test_a_row_alone_is_what_it_is_among_others(submission):
    x, weight, bias = submission.draw(*table(7, 129))

    together = submission(x, weight, bias)
    alone = submission(x[3:4], weight, bias)

    wrong = int((alone[0] != together[3]).sum())
    assert torch.equal(alone[0], together[3]), (
        f"row 3 of 7 differs in {wrong} of 129 columns from the same row alone"
    )


def test_the_result_is_the_same_with_and_without_statistics(submission):
    x, weight, bias = submission.draw(*table(5, 129))

    y = submission(x, weight, bias)
    same, _, _ = submission(x, weight, bias, EPS, True)

    assert torch.equal(y, same), (
        f"{int((y != same).sum())} of {y.numel()} elements change when return_stats is set"
    )


def test_rows_far_from_zero_keep_three_digits(submission):
    x, weight, bias = submission.draw(*table(8, 1_000, mean=1e4, std=1.0))

    off = error_by_norm(submission(x, weight, bias), reference(x, weight, bias))

    assert off <= 2e-3, (
        f"rows around 10,000 with a standard deviation of 1 have a relative error of {off:.3g}; "
        "float32 arithmetic on differences stays below 0.002"
    )


def test_narrow_rows_keep_three_digits(submission):
    x, weight, bias = submission.draw(*table(8, 1_000, mean=1.0, std=1e-3))

    off = error_by_norm(submission(x, weight, bias), reference(x, weight, bias))

    assert off <= 1e-3, (
        f"rows around 1 with a standard deviation of 0.001 have a relative error of {off:.3g}; eps "
        "is ten times their variance"
    )


def test_two_calls_give_identical_bits(submission):
    x, weight, bias = submission.draw(*table(4, 1_000))

    first, second = submission(x, weight, bias), submission(x, weight, bias)

    assert torch.equal(first, second), (
        f"{int((first != second).sum())} of {first.numel()} elements differ between two calls"
    )
