"""Hidden tests of fused operations: four kernels, their activations, cost, designs, gains."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import torch
import torch.nn.functional as F  # noqa: N812 - torch's own spelling

from grader.suite import (
    FLOATS,
    TENSOR_CORES,
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
    equal_rows,
    error_bounds,
    extremes,
    full,
    integers,
    performance,
    rand,
    refuses,
    row,
    row_with,
    rows,
    sizes,
    special,
    spike,
    wide,
)
from grader.suite.designs import Count, is_designed, product_of

INF, NAN = math.inf, math.nan
HALVES = ("float16", "bfloat16")
EPS = 1e-5
SIDE = 256  # of the matrices whose traffic is counted: small enough to be interpreted in full
SMALLEST_TILE = 64  # rows and columns of a tile of a product, below which operands are read often
ROWS_A_LOAD = 4  # rows that share a load of a vector bias, at least
FAR = 1 << 30  # elements; the third row begins where 31 bits end
BIG = 2**31 + 7  # elements
MANY = 10_000_000  # elements at real size


# ---------------------------------------------------------------------------------------------
# Exact results, what rounding may do to them, and right answers in float32

ACTS: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "none": lambda z: z, "relu": torch.relu, "silu": F.silu,
    # By the formula: `F.gelu` of infinity in float32 is NaN on a CPU.
    "gelu": lambda z: z * (0.5 + 0.5 * torch.erf(z * math.sqrt(0.5))),
}
WRONG_GELUS: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "what GELU by tanh gives": lambda z: F.gelu(z, approximate="tanh"),
    "what x * sigmoid(1.702 * x) gives instead of GELU": lambda z: z * (1.702 * z).sigmoid(),
}
STEEPEST = 1.13  # slope of GELU; that of the others is smaller


def finite(size: torch.Tensor) -> torch.Tensor:
    return size.nan_to_num(0.0, 0.0, 0.0)


def add_relu_mul(x: torch.Tensor, bias: torch.Tensor, scale: float) -> torch.Tensor:
    return torch.relu(x.double() + bias.double()) * float(torch.tensor(scale, dtype=torch.float32))


def add_relu_mul_amplitude(x: torch.Tensor, bias: torch.Tensor, scale: float) -> Amplitude:
    return Amplitude(finite((x.double().abs() + bias.double().abs()) * abs(scale)))


def add_relu_mul_cost(x: torch.Tensor, bias: torch.Tensor, scale: float) -> Cost:
    return Cost(bytes=2 * x.nbytes + bias.nbytes, flops=3 * x.numel())


def linear(x: torch.Tensor, w: torch.Tensor, b: torch.Tensor | None,
           act: str = "none") -> torch.Tensor:
    return ACTS[act](F.linear(x.double(), w.double(), None if b is None else b.double()))


def with_gelu(gelu: Callable[[torch.Tensor], torch.Tensor], x: torch.Tensor, w: torch.Tensor,
              b: torch.Tensor | None, act: str = "none") -> torch.Tensor:
    z = linear(x, w, b)
    return gelu(z) if act == "gelu" else ACTS[act](z)


def with_a_bias_for_each_row(x: torch.Tensor, w: torch.Tensor, b: torch.Tensor,
                             act: str = "none") -> torch.Tensor:
    rows = torch.arange(x.shape[0]) % w.shape[0]
    return ACTS[act](linear(x, w, None) + b.double()[rows, None])


def linear_amplitude(x: torch.Tensor, w: torch.Tensor, b: torch.Tensor | None,
                     act: str = "none") -> Amplitude:
    """That of a product and a sum of two; an activation passes errors on, and adds a few."""
    products = x.double().abs() @ w.double().abs().mT
    bias = torch.zeros_like(products) if b is None else b.double().abs().expand_as(products)
    steep, own = _of_act(act, linear(x, w, b))
    return Amplitude(pointwise=finite(steep * bias + own), reduced=finite(steep * products),
                     length=max(1, x.shape[1]))


def _of_act(act: str, z: torch.Tensor) -> tuple[float, torch.Tensor]:
    """How much larger an activation makes errors, and the size of those that it makes itself."""
    curved = act in ("gelu", "silu")
    return (STEEPEST, 2 * z.abs()) if curved else (1.0, torch.zeros_like(z))


def linear_peer(x: torch.Tensor, w: torch.Tensor, b: torch.Tensor | None,
                act: str = "none") -> torch.Tensor:
    z = x.float() @ w.float().mT
    return ACTS[act](z if b is None else z + b.float()).to(x.dtype)


def linear_cost(x: torch.Tensor, w: torch.Tensor, b: torch.Tensor | None,
                act: str = "none") -> Cost:
    (m, k), n = x.shape, w.shape[0]
    biases = 0 if b is None else n
    return Cost(bytes=(m * k + k * n + biases + m * n) * x.element_size(), flops=2 * m * n * k)


def layer_norm(x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor,
               eps: float = EPS) -> torch.Tensor:
    """By the formula, in the dtype of x."""
    return with_sum_over(x.shape[1], x, weight, bias, eps)


def with_sum_over(count: int, x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor,
                  eps: float = EPS) -> torch.Tensor:
    """The same with a variance that is the sum of squares over ``count``."""
    centered = x - x.mean(1, keepdim=True)
    rstd = torch.rsqrt((centered * centered).sum(1, keepdim=True) / count + eps)
    return centered * rstd * weight + bias


def norm_gelu(x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor, eps: float = EPS, *,
              gelu: Callable[[torch.Tensor], torch.Tensor] = ACTS["gelu"],
              count: int | None = None) -> torch.Tensor:
    return gelu(with_sum_over(count or x.shape[1], x.double(), weight.double(), bias.double(),
                              eps))


def norm_gelu_amplitude(x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor,
                        eps: float = EPS) -> Amplitude:
    of_y = error_bounds.layer_norm(x, weight, bias, eps)
    steep, own = _of_act("gelu", layer_norm(x.double(), weight.double(), bias.double(), eps))
    return Amplitude(pointwise=finite(steep * of_y.pointwise + own),
                     reduced=finite(steep * of_y.reduced), length=of_y.length)


def norm_gelu_peer(x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor,
                   eps: float = EPS) -> torch.Tensor:
    y = F.layer_norm(x.float(), x.shape[1:], weight.float(), bias.float(), eps)
    return ACTS["gelu"](y).to(x.dtype)


def norm_gelu_cost(x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor,
                   eps: float = EPS) -> Cost:
    return Cost(bytes=2 * x.nbytes + weight.nbytes + bias.nbytes, flops=14 * x.numel())


def norm_linear(x: torch.Tensor, ln_w: torch.Tensor, ln_b: torch.Tensor, w: torch.Tensor,
                b: torch.Tensor | None, eps: float = EPS) -> torch.Tensor:
    h = layer_norm(x.double(), ln_w.double(), ln_b.double(), eps)
    return F.linear(h, w.double(), None if b is None else b.double())


def norm_linear_amplitude(x: torch.Tensor, ln_w: torch.Tensor, ln_b: torch.Tensor,
                          w: torch.Tensor, b: torch.Tensor | None,
                          eps: float = EPS) -> Amplitude:
    """The errors of a normalized row, summed with its products; that row may have been rounded.

    An error of the mean is the same for a whole row: what is added up of it are the scaled weights,
    with their signs. The algebraic form sums products of x itself, which are as large as x is; its
    roundings have all signs, and an eighth of the worst case is far more than they come to.
    """
    weights = w.double().abs().mT
    x, scale, shift = x.double(), ln_w.double(), ln_b.double().abs()
    centered = x - x.mean(1, keepdim=True)
    rstd = torch.rsqrt((centered * centered).mean(1, keepdim=True) + eps)
    scaled = (centered * rstd * scale).abs()
    h = finite(scaled + shift)
    of_mean = rstd * x.abs().mean(1, keepdim=True) * (w.double() @ scale).abs()
    of_sums = (2 * h + finite(x * rstd * scale).abs() / 8) @ weights
    bias = 0.0 if b is None else b.double().abs()
    return Amplitude(
        pointwise=finite(finite(4 * scaled + shift) @ weights + bias),
        reduced=finite(of_mean) + finite(of_sums),
        length=x.shape[1],
        middle=finite(h**2 @ weights**2).sqrt(),
    )


def norm_linear_peer(x: torch.Tensor, ln_w: torch.Tensor, ln_b: torch.Tensor, w: torch.Tensor,
                     b: torch.Tensor | None, eps: float = EPS) -> torch.Tensor:
    h = F.layer_norm(x.float(), x.shape[1:], ln_w.float(), ln_b.float(), eps).to(x.dtype)
    return F.linear(h.float(), w.float(), None if b is None else b.float()).to(x.dtype)


def norm_linear_cost(x: torch.Tensor, ln_w: torch.Tensor, ln_b: torch.Tensor, w: torch.Tensor,
                     b: torch.Tensor | None, eps: float = EPS) -> Cost:
    of_product = linear_cost(x, w, b)
    return Cost(bytes=of_product.bytes + ln_w.nbytes + ln_b.nbytes, flops=of_product.flops)


# ---------------------------------------------------------------------------------------------
# Inputs and cases that several functions have


def layer(m: Size, k: Size, n: Size, dtype: str = "float32", **how: Any) -> tuple[Input, ...]:
    """x (m, k), w (n, k) and b (n,), with independent values."""
    return rand(m, k, dtype=dtype, **how), rand(n, k, dtype=dtype, **how), rand(n, dtype=dtype)


def parameters(columns: int, dtype: str = "float32") -> tuple[Input, Input]:
    """A weight around 1 and a bias around 0."""
    return rand(columns, dtype=dtype, mean=1.0, std=0.5), rand(columns, dtype=dtype)


def table(count: int, columns: int, dtype: str = "float32", mean: float = 3.0,
          std: float = 2.0) -> tuple[Input, Input, Input]:
    """A matrix around 3 and its parameters: around 0, a lost mean or padding would hardly show."""
    return (rand(count, columns, dtype=dtype, mean=mean, std=std), *parameters(columns, dtype))


def of(x: Input, columns: int, dtype: str = "float32") -> tuple[Input, Input, Input]:
    """A matrix of one's own with the usual parameters."""
    return (x, *parameters(columns, dtype))


def normed(m: int, k: int, n: int, dtype: str = "float32", mean: float = 3.0,
           std: float = 2.0) -> tuple[Input, ...]:
    """A table (m, k), and a layer with n outputs behind it."""
    return (*table(m, k, dtype, mean, std), rand(n, k, dtype=dtype), rand(n, dtype=dtype))


def behind(x: Input, k: int, n: int, dtype: str = "float32") -> tuple[Input, ...]:
    """A matrix of one's own, and a layer with n outputs behind its norm."""
    return (*of(x, k, dtype), rand(n, k, dtype=dtype), rand(n, dtype=dtype))


def vector_with(count: int, places: dict[int, float], dtype: str = "float32") -> Input:
    """A vector with a number at each of ``places``."""
    return rows(row(count, places), dtype=dtype).then(lambda t: t[0])


def widening(count: int, columns: int) -> Input:
    """Pairs around 3, ever farther apart: every block has the mean of its row and not its spread.

    Where means are alike, how they are merged does not matter.
    """
    def pairs(t: torch.Tensor) -> torch.Tensor:
        apart = torch.arange(1, columns // 2 + 1, dtype=t.dtype) / 64  # exact, and so are the sums
        return torch.stack((3 + t[:, :1] * apart, 3 - t[:, :1] * apart), dim=2).flatten(1)

    return integers(count, 2).then(lambda t: pairs(t.abs() + 1))


def odd_rows(columns: int, dtype: str = "float32") -> Input:
    """Every kind of row that NaN and infinities make, between two rows without any."""
    last = columns - 1
    return rows(
        row(columns), row(columns, {columns // 2: NAN}), row(columns, {last: INF}),
        row(columns, {0: -INF}), row(columns, {0: INF, last: -INF}),
        row_with(columns, INF, 0, columns), row(columns), dtype=dtype)


def lengths() -> list[Case]:
    """Edge cases around the learner's own block, with a bias like x."""
    return [edge(name, rand(length), rand(length), 0.5) for name, length in (
        ("one element", lambda B: 1),
        ("one element less than a block", lambda B: B - 1),
        ("one whole block", lambda B: B),
        ("one element more than a block", lambda B: B + 1),
        ("one element less than two blocks", lambda B: 2 * B - 1),
        ("three blocks and seven elements", lambda B: 3 * B + 7),
        ("a prime number of elements", lambda B: 9_973),
    )]


add_relu_mul_function = Function(
    entry="fused_add_relu_mul",
    parameters=("x", "bias", "scale"),
    reference=add_relu_mul,
    wrong_formulas={
        "what no ReLU gives": lambda x, bias, scale: (x.double() + bias.double()) * scale,
        "what ReLU gives before the bias is added":
            lambda x, bias, scale: (torch.relu(x.double()) + bias.double()) * scale,
        "what ReLU gives after the product":
            lambda x, bias, scale: torch.relu((x.double() + bias.double()) * scale),
    },
    tolerance=Tolerance(add_relu_mul_amplitude),
    peer=lambda x, bias, scale: (torch.relu(x.float() + bias.float()) * scale).to(x.dtype),
    cost=add_relu_mul_cost,
    contiguous_result=True,
    bench=Bench("elements", tuple(1 << power for power in range(18, 27, 2)),
                lambda n: (rand(n), rand(n), 0.5), at="float32, a bias like x",
                peer=lambda x, bias, scale: torch.relu(x + bias) * scale,
                peer_name="relu(x + bias) * scale"),
    cases=[
        correctness("1 000 floats", rand(1_000), rand(1_000), 0.5, public=True),
        correctness("98 305 floats", rand(98_305), rand(98_305), 0.5),
        correctness("a bias for 65 columns", rand(30, 65), rand(65), 0.5, public=True),
        correctness("a bias for 1 000 columns", rand(7, 1_000), rand(1_000), 1.5),
        correctness("a bias for 3 columns", rand(400, 3), rand(3), 1.5),
        correctness("a bias for one column", rand(2_000, 1), rand(1), 1.5),
        correctness("a bias for 128 columns", rand(65, 128), rand(128), 1.5),
        correctness("a negative scale", rand(30, 65), rand(65), -2.0),
        correctness("a scale of zero", rand(30, 65), rand(30, 65), 0.0),
        correctness("a scale that is a whole number", rand(1_000), rand(1_000), 3),
        correctness("numbers of very different size", wide(30, 65), wide(65), 0.1),
        correctness("as many rows as columns", rand(65, 65), rand(65), 0.5),
        *(correctness(f"4 000 in {dtype}", rand(4_000, dtype=dtype), rand(4_000, dtype=dtype),
                      0.3) for dtype in HALVES),
        *(correctness(f"a bias for 65 columns in {dtype}", rand(60, 65, dtype=dtype),
                      rand(65, dtype=dtype), 0.3) for dtype in HALVES),
        correctness("sums beyond float16 that the scale brings back",
                    special(1_000, values=[50_000.0, -50_000.0], dtype="float16"),
                    full(1_000, value=50_000.0, dtype="float16"), 0.25),
        edge("no element", rand(0), rand(0), 0.5, launches=0),
        edge("no row", rand(0, 65), rand(65), 0.5, launches=0),
        edge("no column", rand(5, 0), rand(0), 0.5, launches=0),
        *lengths(),
        edge("a single number", rand(), rand(), 0.5),
        edge("three dimensions and a vector", rand(3, 5, 70), rand(70), 0.5),
        edge("three dimensions and a bias like x", rand(3, 5, 7), rand(3, 5, 7), 0.5),
        edge("a transposed view and a vector", rand(33, 20).mT, rand(33), 0.5),
        edge("a transposed bias", rand(20, 33), rand(33, 20).mT, 0.5),
        edge("every other row", rand(20, 65)[::2], rand(65), 0.5, public=True),
        edge("columns 3 to 67 of 100", rand(9, 100)[:, 3:68], rand(9, 100)[:, 3:68], 0.5),
        edge("every other element of a wider bias", rand(9, 65), rand(130)[::2], 0.5),
        edge("all but the first element", rand(1_001)[1:], rand(1_001)[1:], 0.5),
        edge("one row repeated", rand(1, 65).then(lambda t: t.expand(7, -1)), rand(7, 65), 0.5),
        edge("one bias for all columns", rand(7, 65), rand(1).then(lambda t: t.expand(65)), 0.5),
        edge("rows 2**30 elements apart", rand(3, 65).apart(FAR, 1), rand(65), 0.5),
        edge("more than 2**31 elements", Sparse(BIG), Sparse(BIG), 0.5),
        edge("NaN in x", special(1_000, values=[NAN]), rand(1_000), 0.5),
        edge("NaN in x in float16", special(1_000, values=[NAN], dtype="float16"),
             rand(1_000, dtype="float16"), 0.5),
        edge("NaN in the bias", rand(7, 65), vector_with(65, {3: NAN}), 0.5),
        edge("infinities and zeros", special(1_000, values=[INF, -INF, 0.0, -0.0]),
             special(1_000, values=[INF, 0.0, -0.0]), -0.5),
        edge("infinities and a scale of zero", special(1_000, values=[INF, -INF]), rand(1_000),
             0.0),
        edge("numbers at the largest float32", special(1_000, values=extremes("float32")),
             rand(1_000), 0.5),
        edge("denormal numbers", special(1_000, values=[2.0**-149, 2.0**-140], share=1.0),
             full(1_000, value=0.0), 4.0),
        edge("nothing above zero", rand(7, 65, mean=-20.0), rand(65), 0.5),
        refuses("x is a list", [1.0], rand(1), 0.5, raises=TypeError, mentions=("x", "list")),
        refuses("the bias is None", rand(8), None, 0.5, raises=TypeError,
                mentions=("bias", "None")),
        refuses("scale is a text", rand(8), rand(8), "0.5", raises=TypeError,
                mentions=("scale", "str")),
        refuses("scale is a tensor", rand(8), rand(8), rand(1), raises=TypeError,
                mentions=("scale", "Tensor")),
        refuses("float64 is not supported", rand(8, dtype="float64"), rand(8, dtype="float64"),
                0.5, raises=TypeError, mentions=("x", "float64")),
        refuses("a bias in float16 beside x in float32", rand(8), rand(8, dtype="float16"), 0.5,
                raises=TypeError, mentions=("bias", "float16", "float32")),
        refuses("a bias that is too short", rand(4, 8), rand(7), 0.5, raises=ValueError,
                mentions=("bias", "8", "7")),
        refuses("a bias for each row", rand(4, 8), rand(4), 0.5, raises=ValueError,
                mentions=("bias", "8", "4")),
        refuses("a bias of one number", rand(4, 8), rand(1), 0.5, raises=ValueError,
                mentions=("bias", "8", "1")),
        refuses("a bias of one row", rand(4, 8), rand(1, 8), 0.5, raises=ValueError,
                mentions=("bias", "4", "1")),
        refuses("a bias that is too short, and no row", rand(0, 8), rand(7), 0.5,
                raises=ValueError, mentions=("bias", "8", "7")),
        refuses("the bias on another device", rand(8), rand(8).on_meta(), 0.5,
                raises=ValueError, mentions=("bias", "device")),

        sizes(lambda rows, columns, dtype: (
                  rand(rows, columns, dtype=dtype), rand(columns, dtype=dtype), 0.5),
              rows=(1, 5), columns=(1, 2_000), dtype=FLOATS, count=20),

        performance("262 144 floats and a bias like x", rand(1 << 18), rand(1 << 18), 0.5,
                    traffic=1.00, sectors=1.00, launches=1, spills=0),
        performance("512 x 512 floats and a vector", rand(512, 512), rand(512), 0.5,
                    traffic=(2 + 1 / ROWS_A_LOAD) * 512 / (2 * 512 + 1), sectors=1.00, launches=1,
                    spills=0),
        performance("10 000 000 floats", rand(MANY), rand(MANY), 0.5, spills=0, pass_at=0.74,
                    stretch=0.80),
    ],
)

# Issued elements of tiles of SMALLEST_TILE: panels, the bias once per row of tiles, the result.
TILES = SIDE // SMALLEST_TILE
LAYER_ISSUED = (2 * TILES + 1) * SIDE**2 + TILES * SIDE
LAYER_LEAST = 3 * SIDE**2 + SIDE

linear_function = Function(
    entry="linear_bias_act",
    parameters=("x", "w", "b", "act"),
    reference=linear,
    wrong_formulas={
        **{name: partial(with_gelu, gelu) for name, gelu in WRONG_GELUS.items()},
        "what a bias for each row gives": with_a_bias_for_each_row,
        "what the activation gives before the bias is added":
            lambda x, w, b, act="none": linear(x, w, None, act) + b.double(),
        "what no bias gives": lambda x, w, b, act="none": linear(x, w, None, act),
        "what no activation gives": lambda x, w, b, act="none": linear(x, w, b),
    },
    tolerance=Tolerance(linear_amplitude, TENSOR_CORES, products=(0, 1)),
    peer=linear_peer,
    reversed_peer=lambda x, w, b, act="none": linear_peer(x.flip(1), w.flip(1), b, act),
    cost=linear_cost,
    contiguous_result=True,
    bench=Bench("rows", (512, 1_024, 2_048, 4_096, 8_192),
                lambda n: (*layer(n, 1_024, 4_096, "float16"), "gelu"),
                at="float16, 1 024 inputs, 4 096 outputs, GELU",
                peer=lambda x, w, b, act: F.gelu(F.linear(x, w, b)),
                peer_name="gelu(F.linear)"),
    cases=[
        # Whole tiles first: what is compiled for them need not be compiled for the others.
        correctness("64 x 32 into 48, relu", *layer(64, 32, 48), "relu", public=True),
        *(correctness(f"64 x 32 into 48, {act}", *layer(64, 32, 48), act)
          for act in ("gelu", "silu", "none")),
        correctness("64 x 32 into 48, no bias, silu", *layer(64, 32, 48)[:2], None, "silu"),
        *(correctness(f"64 x 32 into 48, {act}, in {dtype}", *layer(64, 32, 48, dtype), act)
          for act, dtype in (("relu", "float16"), ("gelu", "float16"), ("gelu", "bfloat16"))),
        correctness("65 x 70 into 33, gelu", *layer(65, 70, 33), "gelu"),
        correctness("65 x 70 into 33, gelu, in float16", *layer(65, 70, 33, "float16"), "gelu"),
        correctness("65 x 70 into 33, silu", *layer(65, 70, 33), "silu"),
        correctness("65 x 70 into 33", *layer(65, 70, 33)),
        correctness("65 x 70 into 33, relu, in float16", *layer(65, 70, 33, "float16"), "relu"),
        correctness("65 x 70 into 33, no bias, silu", *layer(65, 70, 33)[:2], None, "silu"),
        *(correctness(f"65 x {k} into 33, small beside its bias", rand(65, k),
                      rand(33, k, std=0.01), rand(33, mean=30.0)) for k in (5, 70)),
        correctness("70 x 1 into 40, gelu", *layer(70, 1, 40), "gelu"),
        correctness("70 x 2 into 40, relu, in float16", *layer(70, 2, 40, "float16"), "relu"),
        correctness("40 x 5 into 40, as many rows as outputs", *layer(40, 5, 40), "relu"),
        correctness("40 x 40 into 40, relu", *layer(40, 40, 40), "relu"),
        correctness("530 x 72 into 520, silu, in float16", *layer(530, 72, 520, "float16"), "silu"),
        correctness("300 x 200 into 140, relu, in float16", *layer(300, 200, 140, "float16"),
                    "relu"),
        correctness("300 x 200 into 140, gelu, in bfloat16", *layer(300, 200, 140, "bfloat16"),
                    "gelu"),
        correctness("sums of 1 000 numbers around a half in float16",
                    *layer(50, 1_000, 40, "float16", mean=0.5), "relu"),
        correctness("sums of 1 000 numbers in float16, gelu",
                    rand(50, 1_000, dtype="float16"), rand(40, 1_000, dtype="float16", std=0.05),
                    rand(40, dtype="float16"), "gelu"),
        correctness("a bias that takes most of the sum away, in float16",
                    rand(50, 1_000, dtype="float16", mean=1.0, std=0.02),
                    rand(40, 1_000, dtype="float16", mean=1.0, std=0.02),
                    rand(40, dtype="float16", mean=-1_000.0, std=1.0), "relu"),
        correctness("weights of one value each", rand(64, 32), full(48, 32, value=0.5), rand(48),
                    "relu"),
        correctness("sums between -4 and 4, gelu", rand(60, 17, std=0.4), rand(50, 17), rand(50),
                    "gelu"),
        correctness("whole numbers in bfloat16", integers(70, 63, dtype="bfloat16"),
                    integers(50, 63, dtype="bfloat16"), integers(50, dtype="bfloat16"), "gelu"),
        correctness("numbers of very different size", wide(40, 300), wide(40, 300), wide(40)),
        edge("one row, one input, one output", *layer(1, 1, 1), "silu"),
        edge("no row", *layer(0, 64, 32), "relu", launches=0),
        edge("no output", *layer(32, 64, 0, "float16"), launches=0),
        edge("no input: the bias alone", *layer(70, 0, 33), "gelu"),
        edge("no input and no bias: zeros", *layer(70, 0, 33)[:2], None, "silu"),
        edge("rows that are negative throughout", rand(33, 63, mean=2.0, std=0.1),
             rand(40, 63, mean=-2.0, std=0.1), rand(40), "relu"),
        edge("sums of about 200 and -200, silu", rand(33, 63, mean=3.0, std=0.1),
             rand(40, 1).then(lambda t: t.expand(-1, 63)), rand(40), "silu"),
        edge("a transposed w", rand(41, 47), rand(47, 65).mT, rand(65), "relu", public=True),
        edge("a transposed x", rand(47, 41).mT, rand(65, 47), rand(65), "relu"),
        edge("every other row of x, columns 3 to 49 of w", rand(82, 47)[::2],
             rand(33, 60)[:, 3:50], rand(33)),
        edge("every other element of a wider bias", rand(41, 47), rand(33, 47), rand(66)[::2],
             "relu"),
        edge("one bias for all outputs", rand(41, 47), rand(33, 47),
             rand(1).then(lambda t: t.expand(33)), "relu"),
        edge("memory that starts at the second element",
             rand(40 * 47 + 1, dtype="float16").then(lambda t: t[1:].view(40, 47)),
             rand(40, 47, dtype="float16"), rand(41, dtype="float16")[1:], "relu"),
        edge("rows of x 2**30 elements apart", rand(3, 33).apart(FAR, 1), rand(20, 33), rand(20)),
        edge("rows of w 2**30 elements apart", rand(20, 33), rand(3, 33).apart(FAR, 1), rand(3)),
        edge("columns of x 2**30 elements apart", rand(20, 40)[:, :3].apart(1, FAR),
             rand(20, 3), rand(20)),
        *(edge(f"NaN in column 3 of the bias, {act}", rand(41, 47), rand(33, 47),
               vector_with(33, {3: NAN}), act) for act in ("relu", "gelu", "silu")),
        edge("NaN in row 2 of x, relu", rows(*(row(47, {5: NAN} if i == 2 else None)
                                                 for i in range(20))), rand(33, 47), rand(33),
             "relu"),
        *(edge(f"infinities in the bias, {act}", rand(41, 47), rand(33, 47),
               vector_with(33, {3: INF, 7: -INF}), act) for act in ACTS),
        edge("results beyond the largest float16", rand(41, 47, dtype="float16", std=110.0),
             rand(33, 47, dtype="float16", std=110.0), rand(33, dtype="float16"), "relu"),
        refuses("x is a list", [[1.0]], rand(3, 4), rand(3), raises=TypeError,
                mentions=("x", "list")),
        refuses("w is None", rand(2, 4), None, rand(3), raises=TypeError, mentions=("w", "None")),
        refuses("b is a number", rand(2, 4), rand(3, 4), 1.0, raises=TypeError,
                mentions=("b", "float")),
        refuses("float64 is not supported", *layer(8, 8, 8, "float64"), raises=TypeError,
                mentions=("x", "float64")),
        refuses("w in float16 beside x in float32", rand(8, 16), rand(4, 16, dtype="float16"),
                rand(4), raises=TypeError, mentions=("w", "float16", "float32")),
        refuses("b in bfloat16 beside x in float32", rand(8, 16), rand(4, 16),
                rand(4, dtype="bfloat16"), raises=TypeError,
                mentions=("b", "bfloat16", "float32")),
        refuses("act is None", *layer(8, 8, 8), None, raises=TypeError, mentions=("act", "None")),
        refuses("act is unknown", *layer(8, 8, 8), "tanh", raises=ValueError,
                mentions=("act", "tanh", "relu", "gelu", "silu", "none")),
        refuses("act is in capitals", *layer(8, 8, 8), "ReLU", raises=ValueError,
                mentions=("act", "ReLU")),
        refuses("act is unknown, and there is no row", *layer(0, 8, 8), "tanh",
                raises=ValueError, mentions=("act", "tanh")),
        # A message may tell dimensions or the whole shape: these shapes have the numbers of both.
        refuses("x has three dimensions", rand(2, 3, 16), rand(4, 16), rand(4),
                raises=ValueError, mentions=("x", "2", "3")),
        refuses("b is a matrix", rand(8, 16), rand(2, 16), rand(2, 1), raises=ValueError,
                mentions=("b", "1", "2")),
        refuses("w is not (N, K)", rand(8, 16), rand(16, 4), rand(4), raises=ValueError,
                mentions=("w", "16", "4")),
        refuses("b has one element too few", rand(8, 16), rand(4, 16), rand(3),
                raises=ValueError, mentions=("b", "4", "3")),
        refuses("w on another device", rand(8, 16), rand(4, 16).on_meta(), rand(4),
                raises=ValueError, mentions=("w", "device")),

        sizes(lambda m, k, n, act, dtype: (*layer(m, k, n, dtype), act),
              m=(1, 100), k=(1, 200), n=(1, 100), act=("relu", "gelu", "silu"), dtype=FLOATS,
              count=20),

        performance("256 x 256 into 256 in float16, relu, counted",
                    *layer(SIDE, SIDE, SIDE, "float16"), "relu",
                    traffic=LAYER_ISSUED / LAYER_LEAST, launches=1, programs=TILES**2,
                    tensor_cores=True),
        performance("256 x 256 into 256, gelu, counted", *layer(SIDE, SIDE, SIDE), "gelu",
                    traffic=LAYER_ISSUED / LAYER_LEAST, launches=1, programs=TILES**2),
        performance("8 192 x 1 024 into 4 096 in float16, relu",
                    *layer(8_192, 1_024, 4_096, "float16"), "relu", launches=1, spills=0,
                    pass_at=0.65, stretch=0.70),
    ],
)

norm_gelu_function = Function(
    entry="layer_norm_gelu",
    parameters=("x", "weight", "bias", "eps"),
    reference=norm_gelu,
    wrong_formulas={
        **{name: partial(norm_gelu, gelu=gelu) for name, gelu in WRONG_GELUS.items()},
        "what a variance over C - 1 gives":
            lambda x, *others: norm_gelu(x, *others, count=x.shape[1] - 1),
        "what the sum of squares gives, not divided by C":
            lambda *inputs: norm_gelu(*inputs, count=1),
        "what no GELU gives": lambda *inputs: norm_gelu(*inputs, gelu=ACTS["none"]),
    },
    tolerance=Tolerance(norm_gelu_amplitude),
    peer=norm_gelu_peer,
    reversed_peer=lambda x, weight, bias, eps=EPS: norm_gelu_peer(
        x.flip(1), weight.flip(0), bias.flip(0), eps).flip(1),
    cost=norm_gelu_cost,
    contiguous_result=True,
    bench=Bench("columns", (256, 1_024, 2_048, 4_096, 8_192, 16_384),
                lambda n: table(4_096, n), at="4 096 rows of float32",
                peer=lambda x, weight, bias: F.gelu(F.layer_norm(x, x.shape[1:], weight, bias)),
                peer_name="gelu(F.layer_norm)"),
    cases=[
        correctness("16 x 128 floats", *table(16, 128), public=True),
        correctness("4 x 127 floats", *table(4, 127)),
        correctness("4 x 129 floats", *table(4, 129)),
        correctness("3 x 768 floats", *table(3, 768)),
        correctness("5 x 1 000 floats", *table(5, 1_000)),
        correctness("2 x 4 097 floats", *table(2, 4_097)),
        *(correctness(f"{r} x {c} in {dtype}", *table(r, c, dtype))
          for r, c in ((4, 127), (3, 768)) for dtype in HALVES),
        correctness("a weight of 1 and a bias of 0", rand(5, 129, mean=3.0, std=2.0),
                    full(129, value=1.0), full(129, value=0.0)),
        correctness("a weight of 0", rand(5, 129), full(129, value=0.0), rand(129)),
        correctness("a bias far below zero", rand(5, 129), rand(129), rand(129, mean=-4.0)),
        correctness("parameters spread by 30", rand(5, 129), rand(129, std=30.0),
                    rand(129, std=30.0)),
        # Around 10 000, the rounding of a mean moves whole rows: the errors lean now and then.
        correctness("192 rows around 3 000", *table(192, 1_000, mean=3e3, std=1.0)),
        correctness("numbers spread by a thousandth around 1",
                    *table(4, 1_000, mean=1.0, std=1e-3)),
        correctness("float16 around 60", *table(4, 1_000, "float16", mean=60.0, std=1.0)),
        correctness("40 rows of 3 columns", *table(40, 3)),
        correctness("an eps of 1", *table(4, 129), 1.0),
        correctness("an eps of 1e-12", *table(4, 129), 1e-12),
        correctness("rows of one value each", *of(equal_rows(4, 768), 768)),
        correctness("one number far above 1 000 others", *of(spike(1_000), 1_000)),
        edge("no row", *table(0, 128), launches=0),
        edge("one element", *table(1, 1)),
        edge("three rows of two columns", *table(3, 2)),
        edge("three rows of 129 columns", *table(3, 129), public=True),
        edge("every other row, 100 of 200 columns",
             *of(rand(10, 200, mean=3.0)[::2, 50:150], 100)),
        edge("a transposed view", *of(rand(100, 7, mean=3.0).mT, 100)),
        edge("every third column in bfloat16",
             *of(rand(5, 300, dtype="bfloat16", mean=3.0)[:, ::3], 100, "bfloat16")),
        edge("one row repeated five times",
             *of(rand(1, 1_000, mean=3.0).then(lambda t: t.expand(5, -1)), 1_000)),
        edge("parameters that are columns of one matrix", rand(5, 100, mean=3.0),
             rand(100, 2, mean=1.0, std=0.5)[:, 0], rand(100, 3)[:, 1]),
        edge("rows 2**30 elements apart", *of(rand(3, 129).apart(FAR, 1), 129)),
        edge("rows of float16 2**30 elements apart",
             *of(rand(3, 128, dtype="float16").apart(FAR, 1), 128, "float16")),
        edge("NaN and infinities", *of(odd_rows(129), 129)),
        edge("NaN and infinities in float16", *of(odd_rows(128, "float16"), 128, "float16")),
        edge("NaN and infinities in the parameters", rand(3, 129, mean=3.0),
             special(129, values=[NAN, INF, -INF], mean=1.0), rand(129)),
        edge("all numbers equal", *of(full(3, 100, value=0.1), 100)),
        edge("numbers at the largest float16",
             *of(special(4, 129, values=extremes("float16"), dtype="float16"), 129, "float16")),
        refuses("x is a list", [[1.0, 2.0]], *parameters(2), raises=TypeError,
                mentions=("x", "list")),
        refuses("weight is None", rand(4, 8), None, rand(8), raises=TypeError,
                mentions=("weight", "None")),
        refuses("float64 is not supported", *table(4, 8, "float64"), raises=TypeError,
                mentions=("x", "float64")),
        refuses("a bias in float16 beside x in float32", rand(4, 8), rand(8),
                rand(8, dtype="float16"), raises=TypeError,
                mentions=("bias", "float16", "float32")),
        refuses("eps is a text", *table(4, 8), "1e-5", raises=TypeError, mentions=("eps", "str")),
        refuses("eps is zero", *table(4, 8), 0.0, raises=ValueError, mentions=("eps", "0")),
        refuses("three dimensions", rand(2, 3, 8), *parameters(8), raises=ValueError,
                mentions=("x", "2", "3")),
        refuses("no column", *table(3, 0), raises=ValueError, mentions=("x", "0")),
        refuses("65 537 columns", *table(1, 65_537), raises=ValueError,
                mentions=("x", "65536", "65537")),
        refuses("a weight that is too short", rand(4, 768), rand(767), rand(768),
                raises=ValueError, mentions=("weight", "768", "767")),
        refuses("a bias of one row", rand(4, 2), rand(2), rand(1, 2), raises=ValueError,
                mentions=("bias", "1", "2")),
        refuses("a bias on another device", rand(4, 8), rand(8), rand(8).on_meta(),
                raises=ValueError, mentions=("bias", "device")),

        sizes(lambda rows, columns, dtype: table(rows, columns, dtype),
              rows=(1, 5), columns=(1, 5_000), dtype=FLOATS, count=20),

        performance("64 x 512 floats, counted", *table(64, 512),
                    traffic=4 * 64 * 512 / (2 * 64 * 512 + 2 * 512), sectors=1.00, launches=1,
                    programs=64, spills=0),
        performance("16 384 x 4 096 floats", *table(16_384, 4_096), spills=0, pass_at=0.75,
                    stretch=0.88),
    ],
)

# Issued elements of tiles of SMALLEST_TILE, each of which makes its own statistics: rows twice,
# both parameters twice at most, the weights once, the bias, the result.
NORMED_ISSUED = (3 * TILES + 1) * SIDE**2 + (4 * SIDE + SMALLEST_TILE) * TILES**2
NORMED_LEAST = 3 * SIDE**2 + 3 * SIDE

norm_linear_function = Function(
    entry="layer_norm_linear",
    parameters=("x", "ln_w", "ln_b", "w", "b", "eps"),
    reference=norm_linear,
    tolerance=Tolerance(norm_linear_amplitude, on_gpu=TENSOR_CORES),
    peer=norm_linear_peer,
    reversed_peer=lambda x, ln_w, ln_b, w, b, eps=EPS: norm_linear_peer(
        x.flip(1), ln_w.flip(0), ln_b.flip(0), w.flip(1), b, eps),
    cost=norm_linear_cost,
    contiguous_result=True,
    bench=Bench("rows", (512, 1_024, 2_048, 4_096, 8_192),
                lambda n: (*table(n, 1_024, "float16"),
                           rand(4_096, 1_024, dtype="float16", std=1 / 32),  # results around 1
                           rand(4_096, dtype="float16")),
                at="float16, 1 024 inputs and 4 096 outputs",
                peer=lambda x, ln_w, ln_b, w, b: F.linear(
                    F.layer_norm(x, x.shape[1:], ln_w, ln_b), w, b),
                peer_name="F.linear(F.layer_norm)"),
    cases=[
        correctness("32 x 64 into 48", *normed(32, 64, 48), public=True),
        *(correctness(f"32 x 64 into 48 in {dtype}", *normed(32, 64, 48, dtype))
          for dtype in HALVES),
        correctness("33 x 768 into 65", *normed(33, 768, 65)),
        correctness("33 x 768 into 65 in float16", *normed(33, 768, 65, "float16")),
        correctness("33 x 768 into 65 in bfloat16", *normed(33, 768, 65, "bfloat16")),
        correctness("33 x 16 into 65, one block of K", *normed(33, 16, 65)),
        correctness("33 x 32 into 65", *normed(33, 32, 65)),
        *(correctness(f"33 x {k} into 65, small beside its bias", *table(33, k),
                      rand(65, k, std=0.01), rand(65, mean=30.0)) for k in (5, 30, 200)),
        correctness("130 x 100 into 300 in float16", *normed(130, 100, 300, "float16")),
        correctness("40 x 127 into 40", *normed(40, 127, 40)),
        correctness("40 x 129 into 40", *normed(40, 129, 40)),
        correctness("3 x 8 192 into 5, the longest rows", *normed(3, 8_192, 5)),
        correctness("32 x 64 into 48, no bias", *normed(32, 64, 48)[:4], None),
        correctness("70 x 3 into 9", *normed(70, 3, 9)),
        correctness("70 x 2 into 9 in float16", *normed(70, 2, 9, "float16")),
        correctness("rows around 10 000", *normed(33, 768, 65, mean=1e4, std=1.0)),
        correctness("rows around 60 in float16", *normed(33, 768, 65, "float16", 60.0, 1.0)),
        correctness("numbers spread by a thousandth around 1",
                    *normed(33, 300, 20, mean=1.0, std=1e-3)),
        correctness("rows of one value each", *behind(equal_rows(33, 768), 768, 65)),
        correctness("one number far above 700 others", *behind(spike(700), 700, 65)),
        correctness("a shift along the row", *behind(rand(9, 300).then(
            lambda t: t + torch.arange(300, dtype=t.dtype) / 10), 300, 20)),
        correctness("a spread that grows along the row", *behind(widening(9, 768), 768, 20)),
        correctness("an eps of 1", *normed(33, 100, 20), 1.0),
        edge("one row, one input, one output", *normed(1, 1, 1)),
        edge("no row", *normed(0, 64, 32), launches=0),
        edge("no output", *normed(32, 64, 0, "float16"), launches=0),
        edge("a transposed x", *behind(rand(300, 20, mean=3.0).mT, 300, 33)),
        edge("a transposed w", *table(20, 64), rand(64, 33).mT, rand(33), public=True),
        edge("every other row of x, every other element of the vectors",
             rand(40, 64, mean=3.0)[::2], rand(128)[::2], rand(128)[::2], rand(33, 64),
             rand(66)[::2]),
        edge("one row repeated", *behind(
            rand(1, 100, mean=3.0).then(lambda t: t.expand(5, -1)), 100, 33)),
        edge("memory that starts at the second element", *behind(
            rand(20 * 64 + 1, dtype="float16").then(lambda t: t[1:].view(20, 64)), 64, 33,
            "float16")),
        edge("rows of x 2**30 elements apart", *behind(rand(3, 33).apart(FAR, 1), 33, 20)),
        edge("rows of w 2**30 elements apart", *table(20, 33), rand(3, 33).apart(FAR, 1),
             rand(3)),
        edge("NaN and infinities fill their rows", *behind(odd_rows(129), 129, 33)),
        edge("NaN in a row of w", *table(20, 64),
             rows(*(row(64, {5: NAN} if i == 2 else None) for i in range(20))), rand(20)),
        edge("infinities in the bias", *table(20, 64), rand(33, 64),
             vector_with(33, {3: INF, 7: -INF})),
        refuses("x is a list", [[1.0]], *parameters(1), rand(3, 1), rand(3), raises=TypeError,
                mentions=("x", "list")),
        refuses("ln_w is None", rand(4, 8), None, rand(8), rand(3, 8), rand(3), raises=TypeError,
                mentions=("ln_w", "None")),
        refuses("w is None", *table(4, 8), None, rand(3), raises=TypeError,
                mentions=("w", "None")),
        refuses("float64 is not supported", *normed(4, 8, 3, "float64"), raises=TypeError,
                mentions=("x", "float64")),
        refuses("w in float16 beside x in float32", *table(4, 8), rand(3, 8, dtype="float16"),
                rand(3), raises=TypeError, mentions=("w", "float16", "float32")),
        refuses("eps is a text", *normed(4, 8, 3), "1e-5", raises=TypeError,
                mentions=("eps", "str")),
        refuses("eps below zero", *normed(4, 8, 3), -1e-5, raises=ValueError, mentions=("eps",)),
        refuses("x has three dimensions", rand(2, 3, 8), *parameters(8), rand(4, 8), rand(4),
                raises=ValueError, mentions=("x", "2", "3")),
        refuses("no input", *normed(4, 0, 3), raises=ValueError, mentions=("x", "0")),
        refuses("8 193 inputs", *normed(2, 8_193, 3), raises=ValueError,
                mentions=("x", "8192", "8193")),
        refuses("ln_b is too short", rand(4, 8), rand(8), rand(7), rand(3, 8), rand(3),
                raises=ValueError, mentions=("ln_b", "8", "7")),
        refuses("w is not (N, K)", *table(4, 8), rand(8, 3), rand(3), raises=ValueError,
                mentions=("w", "8", "3")),
        refuses("b is too long", *table(4, 8), rand(3, 8), rand(4), raises=ValueError,
                mentions=("b", "3", "4")),
        refuses("w on another device", *table(4, 8), rand(3, 8).on_meta(), rand(3),
                raises=ValueError, mentions=("w", "device")),

        sizes(lambda m, k, n, dtype: normed(m, k, n, dtype),
              m=(1, 60), k=(1, 200), n=(1, 60), dtype=FLOATS, count=20),

        performance("256 x 256 into 256 in float16, counted",
                    *normed(SIDE, SIDE, SIDE, "float16"), traffic=NORMED_ISSUED / NORMED_LEAST,
                    launches=1, programs=TILES**2, tensor_cores=True),
        performance("8 192 x 1 024 into 4 096 in float16",
                    *normed(8_192, 1_024, 4_096, "float16"), launches=1, spills=0,
                    pass_at=0.25, stretch=0.30),
    ],
)


# ---------------------------------------------------------------------------------------------
# Designs

MATRICES = ({"R": 64, "C": 1_000, "e": 4}, {"R": 4_096, "C": 128, "e": 2},
            {"R": 30, "C": 60_000, "e": 4})
LAYERS = ({"M": 4_096, "N": 4_096, "K": 1_024, "e": 2},
          {"M": 8_192, "N": 1_024, "K": 4_096, "e": 2},
          {"M": 2_048, "N": 8_192, "K": 512, "e": 2})


def layer_bytes(vectors: int) -> Count:
    """Both operands, so many vectors of K, one of N, and the result."""
    return lambda s: (s["M"] * s["K"] + s["N"] * s["K"] + vectors * s["K"] + s["N"]
                      + s["M"] * s["N"]) * s["e"]


WAITS = ("A GPU computes dozens of FLOP in the time that a byte takes from memory. What is the "
         "arithmetic intensity here?")
COMPUTES = ("Compute the arithmetic intensity: every element of an operand is used once per "
            "output, so it is hundreds of FLOP/B. The ridge point of an H200 is about 200 FLOP/B "
            "with tensor cores.")
MATMUL_FLOPS = "Each element of the result is a sum of K products: two FLOP for each of them."

designs = [
    call("the design of fused_add_relu_mul", "design", "fused_add_relu_mul", MATRICES,
         check=is_designed(
             product_of(1, "R", "C"),
             lambda s: (2 * s["R"] * s["C"] + s["C"]) * s["e"], (product_of(3, "R", "C"),) * 2,
             "memory",
             {"bound": WAITS, "bytes": "Each element of x is read once, each result is written "
              "once, and the bias is a vector of C.", "flops": "A sum, a comparison, a product."})),
    call("the design of linear_bias_act", "design", "linear_bias_act", LAYERS,
         check=is_designed(
             product_of(1, "M", "N"), layer_bytes(0), (product_of(2, "M", "N", "K"),) * 2,
             "compute",
             {"bound": COMPUTES, "bytes": "Both operands and the bias are read at least once and "
              "the result is written once. The caches serve repeated reads of tiles.",
              "flops": MATMUL_FLOPS})),
    call("the design of layer_norm_gelu", "design", "layer_norm_gelu", MATRICES,
         check=is_designed(
             product_of(1, "R", "C"),
             lambda s: (2 * s["R"] * s["C"] + 2 * s["C"]) * s["e"],
             (product_of(8, "R", "C"), product_of(40, "R", "C")), "memory",
             {"bound": WAITS, "bytes": "Each element is read once and written once, and there are "
              "two vectors of C.", "flops": "Count for each element: two sums, the deviation from "
              "the mean and its square, two products and a sum, and then GELU; erf counts as one "
              "or as the twenty or so that it takes."})),
    call("the design of layer_norm_linear", "design", "layer_norm_linear", LAYERS,
         check=is_designed(
             product_of(1, "M", "N"), layer_bytes(2),
             (product_of(2, "M", "N", "K"),
              lambda s: 2 * s["M"] * s["N"] * s["K"] + 10 * s["M"] * s["K"] * s["N"] / 64),
             "compute",
             {"bound": COMPUTES, "bytes": "x, w and three vectors are read at least once and the "
              "result is written once; the caches serve repeated reads of tiles.",
              "flops": MATMUL_FLOPS + " The normalization adds a few per element of x."})),
]


# ---------------------------------------------------------------------------------------------
# Gains

Question = tuple[int, int, int, int, int, float, float]

BOUND_BY_BYTES: tuple[Question, ...] = (
    (7, 3, 3, 1, 1 << 30, 4_000.0, 0.0), (6, 2, 3, 1, 1 << 30, 4_000.0, 0.0),
    (4, 2, 2, 1, 1 << 28, 1_000.0, 0.0), (5, 5, 2, 1, 1 << 28, 1_000.0, 0.0),
)
BOUND_BY_LAUNCHES: tuple[Question, ...] = (
    (7, 3, 3, 1, 0, 4_000.0, 4.0), (6, 2, 5, 2, 0, 900.0, 6.5), (4, 2, 1, 1, 0, 900.0, 6.5),
)
BETWEEN: tuple[Question, ...] = (
    (7, 3, 3, 1, 40_000_000, 4_000.0, 4.0), (7, 3, 3, 1, 4_000_000, 4_000.0, 4.0),
    (6, 2, 3, 1, 400_000, 1_500.0, 6.0), (4, 2, 2, 1, 268_435_456, 4_282.0, 3.7),
    (3, 5, 2, 1, 1_000_000, 2_000.0, 5.0),
)


def time_us(passes: float, launches: float, n_bytes: float, gbps: float, each: float) -> float:
    return passes * n_bytes / (gbps * 1e3) + launches * each


def gain_of(question: Question) -> float:
    before, after, launched, launches, *rest = question
    return time_us(before, launched, *rest) / time_us(after, launches, *rest)


Slip = Callable[[Question], float]


def _changed(change: Callable[..., Sequence[float]]) -> Slip:
    """The gain for a changed question."""
    return lambda question: gain_of(tuple(change(*question)))


# Mistakes with a characteristic value, and their messages.
SLIPS: tuple[tuple[Slip, str], ...] = (
    (lambda q: 1 / gain_of(q), "That is the time after over the time before: a faster fused form "
     "would have a gain below 1."),
    (_changed(lambda a, b, c, d, n, g, u: (a, b, c, d, n, g, 0.0)),
     "That is the gain of the bytes alone; here launches take time, too."),
    (_changed(lambda a, b, c, d, n, g, u: (a, b, c, d, 0, g, u)),
     "That is the gain of the launches alone; here bytes take time, too."),
    (_changed(lambda a, b, c, d, n, g, u: (a, b, c, d, n, g, u * 1e3)),
     "That is the gain with as many milliseconds per launch."),
    (_changed(lambda a, b, c, d, n, g, u: (a, b, c, d, n, g, u / 1e3)),
     "That is the gain with as many nanoseconds per launch."),
    (_changed(lambda a, b, c, d, n, g, u: (a, b, c, d, n, g, u * 1e6)),
     "That is the gain with as many seconds per launch, or with bytes that take no time."),
    (_changed(lambda a, b, c, d, n, g, u: (a, b, c, d, n, g * 1.073741824, u)),
     "That is the gain with 2^30 bytes per gigabyte; a bandwidth uses 1e9."),
    (_changed(lambda a, b, c, d, n, g, u: (a, b, 1, 1, n, g, u)),
     "That is the gain with one launch before and one after."),
    (_changed(lambda a, b, c, d, n, g, u: (a, b - 1, c, d, n, g, u)),
     "That is the gain with one pass less after fusion: the result is written, too."),
    (_changed(lambda a, b, c, d, n, g, u: (a - 1, b - 1, c, d, n, g, u)),
     "That is the gain with one pass less before and after: the result is written, too."),
    (lambda q: (q[0] / q[1]) * (q[2] / q[3]), "That is the ratio of passes times that of launches: "
     "each of the two holds only if the other takes no time."),
    (lambda q: max(q[0] / q[1], q[2] / q[3]), "That is the larger of the two ratios: the smaller "
     "part takes time, too."),
    (lambda q: gain_of(q) - 1, "That is the saved time over the time after: a form that is as "
     "fast as before would have a gain of 0."),
)


def is_the_gain(answer: Any, questions: Sequence[Question]) -> None:
    for question, got in zip(questions, answer, strict=True):
        before, after, launched, launches, n_bytes, gbps, each = question
        asked = (f"For {before} passes before and {after} after, {launched} launches before and "
                 f"{launches} after, {n_bytes:,} bytes per pass, {gbps:,g} GB/s and {each:g} us "
                 f"per launch, fusion_gain")
        assert isinstance(got, float), (
            f"{asked} returned {got!r:.60}, which is {_kind(got)} and not a float.")
        exact = gain_of(question)
        if math.isclose(got, exact, rel_tol=1e-6):
            continue
        reason = next((why for slip, why in SLIPS if _is(slip, question, got)), "")
        if not reason:
            low, high = sorted((before / after, launched / launches))
            reason = (f"The bytes alone bound it by {before / after:.4g} and the launches alone by "
                      f"{launched / launches:.4g}, and "
                      + ("the gain is between the two." if not low <= got <= high
                         else "each counts with the time that it takes."))
        raise AssertionError(f"{asked} returned {got:.6g}. {reason}")


def _kind(value: Any) -> str:
    return "an int" if isinstance(value, int) and not isinstance(value, bool) else "something else"


def _is(slip: Slip, question: Question, got: float) -> bool:
    try:
        return math.isclose(slip(question), got, rel_tol=1e-6)
    except ZeroDivisionError:
        return False


def refused(name: str, *question: Any, raises: type[Exception],
            mentions: Sequence[str]) -> Case:
    return call(f"fusion_gain: {name}", "fusion_gain", *question, raises=raises, mentions=mentions)


gains = [
    call("fusion_gain: where only bytes take time", "gains", BOUND_BY_BYTES, check=is_the_gain),
    call("fusion_gain: where only launches take time", "gains", BOUND_BY_LAUNCHES,
         check=is_the_gain),
    call("fusion_gain: where both take time", "gains", BETWEEN, check=is_the_gain),
    refused("no pass after", 7, 0, 3, 1, 1_000, 4_000.0, 4.0, raises=ValueError,
            mentions=("passes_after", "0")),
    refused("no launch before", 7, 3, 0, 1, 1_000, 4_000.0, 4.0, raises=ValueError,
            mentions=("launches_before", "0")),
    refused("half a pass", 7.5, 3, 3, 1, 1_000, 4_000.0, 4.0, raises=TypeError,
            mentions=("passes_before", "float")),
    refused("bytes below zero", 7, 3, 3, 1, -1, 4_000.0, 4.0, raises=ValueError,
            mentions=("n_bytes", "-1")),
    refused("a rate of zero", 7, 3, 3, 1, 1_000, 0.0, 4.0, raises=ValueError,
            mentions=("copy_gbps", "0")),
    refused("a launch that takes less than no time", 7, 3, 3, 1, 1_000, 4_000.0, -4.0,
            raises=ValueError, mentions=("launch_us", "-4")),
    refused("a rate that is a text", 7, 3, 3, 1, 1_000, "4000", 4.0, raises=TypeError,
            mentions=("copy_gbps", "str")),
    refused("nothing takes any time", 7, 3, 3, 1, 0, 4_000.0, 0.0, raises=ValueError,
            mentions=("n_bytes", "launch_us")),
]


suite = Suite(
    blanks=5,
    functions=[add_relu_mul_function, linear_function, norm_gelu_function, norm_linear_function],
    host={"fusion_gain": ("passes_before", "passes_after", "launches_before", "launches_after",
                          "n_bytes", "copy_gbps", "launch_us")},
    cases=[*designs, *gains],
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
    place = list(map(int, torch.unravel_index(torch.tensor(worst), got.shape)))
    return f"{place} is {got.flatten()[worst]:.9g}, expected {expected.flatten()[worst]:.9g}"


def test_a_bias_for_columns_is_the_same_as_one_like_x(submission):
    x, bias = submission.draw(rand(70, 130), rand(130))

    vector = submission.fused_add_relu_mul(x, bias, 0.75)
    whole = submission.fused_add_relu_mul(x, bias.expand(70, 130), 0.75)

    assert torch.equal(vector, whole), furthest(vector, whole, 0.0)


def test_no_result_of_relu_is_negative(submission):
    x, w, b = submission.draw(*layer(70, 40, 50))

    result = submission.linear_bias_act(x, w, b, "relu")

    assert bool((result >= 0).all()), f"the smallest result is {result.min():.4g}"


def test_no_bias_is_a_bias_of_zeros(submission):
    x, w = submission.draw(*layer(70, 40, 50)[:2])

    without = submission.linear_bias_act(x, w, None, "silu")
    zeros = submission.linear_bias_act(x, w, torch.zeros(50), "silu")

    assert torch.equal(without, zeros), furthest(without, zeros, 0.0)


def test_gelu_of_x_and_of_minus_x_differ_by_x(submission):
    x, w, b = submission.draw(*layer(70, 40, 50)[:2], full(50, value=0.0))

    apart = (submission.linear_bias_act(x, w, b, "gelu").double()
             - submission.linear_bias_act(-x, w, b, "gelu").double())
    z = submission.linear_bias_act(x, w, b).double()

    assert not (wrong := furthest(apart, z, z.abs() * 2.0**-19)), wrong


def test_a_row_alone_is_what_it_is_among_others(submission):
    x, weight, bias = submission.draw(*table(7, 129))

    together = submission.layer_norm_gelu(x, weight, bias)
    alone = submission.layer_norm_gelu(x[3:4], weight, bias)

    assert torch.equal(alone[0], together[3]), f"in row 3, {furthest(alone[0], together[3], 0.0)}"


def test_the_identity_behind_a_norm_gives_the_norm(submission):
    x, weight, bias = submission.draw(*table(33, 100))

    result = submission.layer_norm_linear(x, weight, bias, torch.eye(100), None)

    exact = layer_norm(x.double(), weight.double(), bias.double())
    assert not (wrong := furthest(result, exact, (exact.abs() + 3.0) * 2.0**-17)), wrong


def test_rows_that_are_moved_and_stretched_give_the_same(submission):
    x, weight, bias, w, b = submission.draw(integers(20, 200), *parameters(200), rand(33, 200),
                                            rand(33))

    once = submission.layer_norm_linear(x, weight, bias, w, b, 1e-12)
    moved = submission.layer_norm_linear(4 * x + 64, weight, bias, w, b, 1e-12)

    size = norm_linear_amplitude(4 * x + 64, weight, bias, w, b, 1e-12)
    most = 2.0**-22 * (size.pointwise + 30 * size.reduced)
    assert not (wrong := furthest(moved, once, most)), wrong
