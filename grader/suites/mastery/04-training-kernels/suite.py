"""Hidden tests of training kernels: layer norm, its gradients, the module, a step of Adam, designs.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import torch
import torch.nn.functional as F  # noqa: N812 - torch's own spelling
from torch.optim.adamw import adamw

from grader.suite import (
    FLOAT32,
    FLOATS,
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
    full,
    integers,
    performance,
    rand,
    refuses,
    row,
    rows,
    sizes,
    special,
    spike,
    wide,
)
from grader.suite.designs import is_designed, product_of

EPS = 1e-5
NAN = math.nan
HALVES = ("float16", "bfloat16")
FAR = 1 << 30  # elements; the third row begins where 31 bits end
BIG = 2**31 + 7  # elements
WIDEST = 16_384  # columns
GROUPS = 64  # programs that may share a backward pass here
FLAT = 1 << 18  # parameters of the counted step


# ---------------------------------------------------------------------------------------------
# Layer norm and its gradients


def normalized(x: torch.Tensor, eps: float) -> tuple[torch.Tensor, torch.Tensor]:
    """What is scaled by the weight, and the reciprocal deviation, in float64."""
    x = x.double()
    centered = x - x.mean(-1, keepdim=True)
    rstd = torch.rsqrt((centered * centered).mean(-1, keepdim=True) + eps)
    return centered * rstd, rstd


def layer_norm_reference(x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor,
                         eps: float = EPS) -> torch.Tensor:
    return normalized(x, eps)[0] * weight.double() + bias.double()


def gradients(x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor, dy: torch.Tensor,
              eps: float = EPS) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """dx, dw and db in float64, as the formulas stand."""
    x_hat, rstd = normalized(x, eps)
    dy = dy.double()
    g = weight.double() * dy
    dx = rstd * (g - g.mean(-1, keepdim=True) - x_hat * (g * x_hat).mean(-1, keepdim=True))
    columns = x.shape[-1]
    return dx, (dy * x_hat).reshape(-1, columns).sum(0), dy.reshape(-1, columns).sum(0)


def gradient_amplitudes(x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor,
                        dy: torch.Tensor, eps: float = EPS) -> tuple[Amplitude, ...]:
    columns = x.shape[-1]
    dx, dw, db = error_bounds.layer_norm_backward(
        dy.reshape(-1, columns), x.reshape(-1, columns), weight, eps)
    shaped = Amplitude(torch.as_tensor(dx.pointwise).reshape(x.shape),
                       torch.as_tensor(dx.reduced).reshape(x.shape), dx.length)
    return shaped, dw, db


def in_float32(x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor, dy: torch.Tensor,
               eps: float = EPS) -> tuple[torch.Tensor, ...]:
    """By torch's own backward pass."""
    leaves = [tensor.float().detach().requires_grad_() for tensor in (x, weight, bias)]
    y = F.layer_norm(leaves[0], x.shape[-1:], leaves[1], leaves[2], eps)
    # A scalar loss: with dy as an argument, torch imports SymPy to compare shapes.
    gradients = torch.autograd.grad((y * dy.float().reshape(y.shape)).sum(), leaves)
    return tuple(one.to(like.dtype) for one, like in zip(gradients, (x, weight, bias), strict=True))


def reversed_in_float32(x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor,
                        dy: torch.Tensor, eps: float = EPS) -> tuple[torch.Tensor, ...]:
    """The same with rows and columns the other way round."""
    columns = x.shape[-1]
    dx, dw, db = in_float32(x.reshape(-1, columns).flip(0, 1), weight.flip(0), bias.flip(0),
                            dy.reshape(-1, columns).flip(0, 1), eps)
    return dx.flip(0, 1).reshape(x.shape), dw.flip(0), db.flip(0)


def rows_of(x: torch.Tensor) -> int:
    return x.numel() // x.shape[-1]


def forward_bytes(x: torch.Tensor, weight: torch.Tensor) -> int:
    """x and the result once, both vectors once, two float32 statistics a row."""
    return 2 * x.nbytes + 2 * weight.nbytes + 8 * rows_of(x)


def backward_bytes(x: torch.Tensor, weight: torch.Tensor, for_x: bool = True,
                   parameters: int = 2) -> int:
    """x and dy once, dx once if requested, statistics, the weight, its gradients."""
    return (2 + for_x) * x.nbytes + (for_x + parameters) * weight.nbytes + 8 * rows_of(x)


def table(*sizes: int, dtype: str = "float32", parameters: str = "", mean: float = 3.0,
          std: float = 2.0) -> tuple[Input, Input, Input]:
    """x around 3, so that a forgotten mean shows, a weight around 1 and a bias around 0."""
    return (rand(*sizes, dtype=dtype, mean=mean, std=std),
            *vectors(sizes[-1], parameters or dtype))


def vectors(columns: int, dtype: str = "float32") -> tuple[Input, Input]:
    return rand(columns, dtype=dtype, mean=1.0, std=0.5), rand(columns, dtype=dtype)


def of(x: Input, columns: int, dtype: str = "float32") -> tuple[Input, Input, Input]:
    """An x of one's own with the usual parameters."""
    return x, *vectors(columns, dtype)


def with_dy(*sizes: int, dtype: str = "float32", parameters: str = "", mean: float = 3.0,
            std: float = 2.0) -> tuple[Input, ...]:
    """The usual inputs with a gradient of the result around 0.3, so that no sum of it vanishes."""
    return (*table(*sizes, dtype=dtype, parameters=parameters, mean=mean, std=std),
            rand(*sizes, dtype=dtype, mean=0.3))


def layer_norm_bench(n: int) -> tuple[Input, Input, Input]:
    return table(4_096, n)


def backward_bench(n: int) -> tuple[Input, ...]:
    return with_dy(2_048, n)


layer_norm = Function(
    entry="layer_norm",
    parameters=("x", "weight", "bias", "eps"),
    reference=layer_norm_reference,
    tolerance=Tolerance(lambda x, w, b, eps=EPS: error_bounds.layer_norm(x, w, b, eps)),
    peer=lambda x, w, b, eps=EPS: F.layer_norm(
        x.float(), x.shape[-1:], w.float(), b.float(), eps).to(x.dtype),
    reversed_peer=lambda x, w, b, eps=EPS: F.layer_norm(
        x.float().flip(-1), x.shape[-1:], w.float().flip(0), b.float().flip(0), eps
    ).flip(-1).to(x.dtype),
    cost=lambda x, w, b, eps=EPS: Cost(bytes=forward_bytes(x, w), flops=8 * x.numel()),
    contiguous_result=True,
    bench=Bench("columns", (256, 1_024, 4_096, 16_384), layer_norm_bench,
                at="4 096 rows of float32", peer=lambda x, w, b: F.layer_norm(
                    x, x.shape[1:], w, b), peer_name="F.layer_norm"),
    cases=[
        correctness("33 x 768 floats", *table(33, 768), public=True),
        correctness("5 x 129 floats", *table(5, 129)),
        correctness("4 x 128 floats", *table(4, 128)),
        correctness("2 x 3 x 64 floats", *table(2, 3, 64)),
        correctness("one row, as a vector", *table(100)),
        correctness("1 x 16 384 floats, the widest row", *table(1, WIDEST)),
        *(correctness(f"5 x 129 in {dtype}", *table(5, 129, dtype=dtype)) for dtype in HALVES),
        correctness("float16 with parameters in float32",
                    *table(5, 129, dtype="float16", parameters="float32")),
        correctness("64 rows around 10 000", *table(64, 1_000, mean=1e4, std=1.0)),
        correctness("numbers spread by a thousandth", *table(4, 129, mean=0.0, std=1e-3)),
        correctness("rows of one value each", *of(equal_rows(4, 768), 768)),
        correctness("an eps of 1", *table(4, 129), 1.0),
        correctness("one number far above 1 000 others", *of(spike(1_000), 1_000)),
        edge("no row", *table(0, 128), launches=0),
        edge("no row in three dimensions", *table(2, 0, 3), launches=0),
        edge("one element", *table(1, 1)),
        edge("three rows of one column", *table(3, 1)),
        edge("three rows of two columns", *table(3, 2)),
        edge("every other row, 100 of 200 columns",
             *of(rand(10, 200, mean=3.0)[::2, 50:150], 100)),
        edge("a transposed view", *of(rand(100, 7, mean=3.0).mT, 100)),
        edge("a permuted view of three dimensions",
             *of(rand(3, 5, 20, mean=3.0).then(lambda t: t.permute(1, 0, 2)), 20)),
        edge("one row repeated", *of(rand(1, 100, mean=3.0).then(lambda t: t.expand(5, -1)), 100)),
        edge("parameters with gaps", rand(5, 100, mean=3.0), rand(100, 2, mean=1.0)[:, 0],
             rand(100, 3)[:, 1]),
        edge("rows 2**30 elements apart",
             *of(rand(3, 65, dtype="float16").apart(FAR, 1), 65, "float16")),
        edge("NaN in one row", *of(rows(row(129), row(129, {60: NAN}), row(129)), 129)),
        refuses("x is a list", [[1.0, 2.0]], *vectors(2), raises=TypeError,
                mentions=("x", "list")),
        refuses("float64 is not supported", *table(4, 8, dtype="float64"), raises=TypeError,
                mentions=("x", "float64")),
        refuses("int32 is not supported", rand(4, 8, dtype="int32"), *vectors(8),
                raises=TypeError, mentions=("x", "int32")),
        refuses("weight is None", rand(4, 8), None, rand(8), raises=TypeError,
                mentions=("weight", "None")),
        refuses("weight and bias of two dtypes", rand(4, 8), rand(8), rand(8, dtype="float16"),
                raises=TypeError, mentions=("bias", "float32", "float16")),
        refuses("a weight too short", rand(4, 8), rand(7), rand(8), raises=ValueError,
                mentions=("weight", "8", "7")),
        refuses("a bias as a matrix", rand(4, 8), rand(8), rand(1, 8), raises=ValueError,
                mentions=("bias", "8")),
        refuses("a bias on another device", rand(4, 8), rand(8), rand(8).on_meta(),
                raises=ValueError, mentions=("bias", "meta")),
        refuses("no dimension", rand(), *vectors(1), raises=ValueError, mentions=("x",)),
        refuses("no column", rand(3, 0), *vectors(0), raises=ValueError, mentions=("x", "0")),
        refuses("16 385 columns", rand(1, WIDEST + 1), *vectors(WIDEST + 1), raises=ValueError,
                mentions=("x", "16384", "16385")),
        refuses("an eps of 0", *table(4, 8), 0.0, raises=ValueError, mentions=("eps", "0")),

        sizes(lambda rows, columns, dtype: table(rows, columns, dtype=dtype),
              rows=(1, 5), columns=(1, 5_000), dtype=FLOATS, count=20),

        # Each program may load both vectors: 4 R C e + 8 R bytes.
        performance("64 x 512 floats", *table(64, 512), launches=1, sectors=1.0, spills=0,
                    traffic=(4 * 64 * 512 * 4 + 8 * 64) / (2 * 65 * 512 * 4 + 8 * 64)),
        performance("16 384 x 4 096 floats", *table(16_384, 4_096), spills=0, pass_at=0.75,
                    stretch=0.88),
    ],
)


def gradient_function(entry: str, wanted: Sequence[int], cases: Sequence[Case],
                      **how: Any) -> Function:
    """A function of calls.py that gives the gradients with these numbers: of x, weight and bias."""
    alone = len(wanted) == 1

    def chosen(function: Callable[..., tuple[Any, ...]]) -> Callable[..., Any]:
        def some(*inputs: Any) -> Any:
            found = function(*inputs)
            return found[wanted[0]] if alone else tuple(found[number] for number in wanted)

        return some

    def cost(x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor, dy: torch.Tensor,
             eps: float = EPS) -> Cost:
        """Of both passes: a gradient needs the result first."""
        return Cost(bytes=forward_bytes(x, weight) + backward_bytes(
            x, weight, 0 in wanted, len(set(wanted) - {0})), flops=21 * x.numel())

    def dtypes(x: torch.Tensor, weight: torch.Tensor, *_: Any) -> Any:
        def name(tensor: torch.Tensor) -> str:
            return str(tensor.dtype).removeprefix("torch.")

        return tuple(name(x if number == 0 else weight) for number in wanted)

    return Function(
        entry=entry, parameters=("x", "weight", "bias", "dy", "eps"),
        reference=chosen(gradients), tolerance=Tolerance(chosen(gradient_amplitudes)),
        peer=chosen(in_float32), reversed_peer=chosen(reversed_in_float32), cost=cost,
        result_names=tuple(("dx", "dw", "db")[number] for number in wanted),
        result_dtype=dtypes, cases=cases, **{"drives": "layer_norm", **how})


# What a backward pass may move, beside the least: the weight once for each of 64 programs, and
# their shares of dw and db, written and read. The forward pass may load both vectors for each row.
ROWS, COLUMNS = 512, 768
MATRIX = ROWS * COLUMNS * 4
FORWARD = 4 * MATRIX + 8 * ROWS
SHARES = 16 * GROUPS * COLUMNS
PARAMETER = COLUMNS * 4
SLACK = 1.01  # for a counter of programs, by which the last one may add all shares
LEAST_FORWARD = 2 * MATRIX + 2 * PARAMETER + 8 * ROWS

BOTH_PASSES = {
    "launches": 3, "spills": 0, "sectors": 1.05,
    "traffic": SLACK * (FORWARD + 3 * MATRIX + GROUPS * PARAMETER + 8 * ROWS + SHARES
                        + 2 * PARAMETER)
    / (LEAST_FORWARD + 3 * MATRIX + 3 * PARAMETER + 8 * ROWS),
}
TO_PARAMETERS = {
    "launches": 3, "spills": 0,
    "traffic": SLACK * (FORWARD + 2 * MATRIX + GROUPS * PARAMETER + 8 * ROWS + SHARES
                        + 2 * PARAMETER)
    / (LEAST_FORWARD + 2 * MATRIX + 2 * PARAMETER + 8 * ROWS),
}
# Two rows: the weight may be read once per row, and there are no partial sums.
TO_X = {"spills": 0, "traffic": (8 * 2 * 4_096 * 4 + 16 * 2) / ((5 * 2 + 3) * 4_096 * 4 + 16 * 2)}

backward = gradient_function(
    "backward", (0, 1, 2), bench=Bench(
        "columns", (256, 1_024, 4_096, 16_384), backward_bench,
        at="2 048 rows of float32, both passes", peer=lambda x, w, b, dy: gradients_of_torch(
            x, w, b, dy), peer_name="F.layer_norm and its backward"),
    cases=[
        correctness("33 x 768 floats", *with_dy(33, 768), public=True),
        correctness("1 x 1", *with_dy(1, 1)),
        correctness("5 x 129 floats", *with_dy(5, 129), public=True),
        correctness("5 x 128 floats", *with_dy(5, 128)),
        correctness("2 x 3 x 64 floats", *with_dy(2, 3, 64)),
        correctness("one row, as a vector", *with_dy(100)),
        correctness("300 x 40 floats", *with_dy(300, 40)),
        correctness("1 x 16 384 floats, the widest row", *with_dy(1, WIDEST)),
        *(correctness(f"70 x 129 in {dtype}", *with_dy(70, 129, dtype=dtype)) for dtype in HALVES),
        correctness("float16 with parameters in float32",
                    *with_dy(70, 129, dtype="float16", parameters="float32")),
        correctness("a mean of 0 and a deviation of 1", *with_dy(33, 768, mean=0.0, std=1.0)),
        correctness("a weight of 1", rand(33, 129, mean=3.0, std=2.0), full(129, value=1.0),
                    full(129, value=0.0), rand(33, 129, mean=0.3)),
        *(correctness(f"{count} x 16 floats around zero", *with_dy(count, 16, mean=0.0, std=1.0))
          for count in (200, 300)),
        correctness("64 rows around 300", *with_dy(64, 200, mean=300.0, std=1.0)),
        correctness("numbers spread by 30", *with_dy(33, 129, std=30.0)),
        correctness("numbers spread by a hundredth", *with_dy(33, 129, mean=0.0, std=1e-2)),
        correctness("an eps of 1", *with_dy(33, 129), 1.0),
        correctness("gradients of many sizes", *table(33, 129), wide(33, 129)),
        correctness("rows of one value each", *of(equal_rows(5, 64), 64),
                    rand(5, 64, mean=0.3)),
        edge("three rows of one column", *with_dy(3, 1)),
        edge("three rows of three columns", *with_dy(3, 3)),
        edge("dy is one number for all, as of a sum", *table(33, 129),
             rand(1, 1).then(lambda t: t.expand(33, 129)), public=True),
        edge("dy has gaps between its rows", *table(33, 100), rand(33, 200, mean=0.3)[:, 50:150]),
        edge("dy is one row for all", *table(33, 129),
             rand(1, 129).then(lambda t: t.expand(33, 129))),
        edge("dy is one column for all", *table(33, 129),
             rand(33, 1).then(lambda t: t.expand(33, 129))),
        edge("dy is a transposed view", *table(33, 129), rand(129, 33, mean=0.3).mT),
        edge("x is every other row, 100 of 200 columns",
             *of(rand(66, 200, mean=3.0)[::2, 50:150], 100), rand(33, 100, mean=0.3)),
        edge("x is a transposed view", *of(rand(100, 7, mean=3.0).mT, 100),
             rand(7, 100, mean=0.3)),
        edge("x and dy are permuted views of three dimensions",
             *of(rand(3, 5, 20, mean=3.0).then(lambda t: t.permute(1, 0, 2)), 20),
             # Its first two dimensions are no view of one: 1 is not 3 times 5.
             rand(20, 3, 5).then(lambda t: t.permute(2, 1, 0))),
        edge("x is one row repeated", *of(rand(1, 100, mean=3.0).then(
            lambda t: t.expand(70, -1)), 100), rand(70, 100, mean=0.3)),
        edge("parameters with gaps", rand(33, 100, mean=3.0), rand(100, 2, mean=1.0)[:, 0],
             rand(100, 3)[:, 1], rand(33, 100, mean=0.3)),
        edge("rows of x and dy 2**30 elements apart",
             *of(rand(3, 65, dtype="float16").apart(FAR, 1), 65, "float16"),
             rand(3, 65, dtype="float16").apart(FAR, 1)),
        edge("NaN in one row of x", *of(rows(*(row(129, {60: NAN} if n == 1 else None)
                                              for n in range(5))), 129), rand(5, 129)),
        edge("NaN in one place of dy", *table(5, 129), special(5, 129, values=[NAN], share=0.0)),

        sizes(lambda rows, columns, dtype: with_dy(rows, columns, dtype=dtype),
              rows=(1, 9), columns=(1, 500), dtype=FLOATS, count=20),

        performance("512 x 768 floats, both passes", *with_dy(ROWS, COLUMNS), **BOTH_PASSES),
        performance("16 384 x 4 096 in float16, both passes", *with_dy(
            16_384, 4_096, dtype="float16"), spills=0, pass_at=0.50, stretch=0.70),
    ])


def gradients_of_torch(x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor,
                       dy: torch.Tensor) -> tuple[torch.Tensor, ...]:
    """By the operations of PyTorch that its own backward pass is made of."""
    _, mean, rstd = torch.ops.aten.native_layer_norm(x, x.shape[1:], weight, bias, EPS)
    return torch.ops.aten.native_layer_norm_backward(
        dy, x, x.shape[1:], mean, rstd, weight, bias, [True, True, True])


def in_16_bits() -> list[Case]:
    """Cases in which a few roundings show in each of the gradients."""
    return [correctness(f"70 x 129 in {dtype}", *with_dy(70, 129, dtype=dtype))
            for dtype in HALVES]


backward_to_x = gradient_function("backward_to_x", (0,), cases=[
    correctness("300 x 40 floats", *with_dy(300, 40, mean=0.0, std=1.0)),
    correctness("70 x 129 in float16", *with_dy(70, 129, dtype="float16")),
    correctness("100 x 3 x 16 floats", *with_dy(100, 3, 16, mean=0.0, std=1.0)),
    edge("no row", *with_dy(0, 8)),
    edge("x is a transposed view", *of(rand(16, 300).mT, 16), rand(300, 16, mean=0.3)),
    performance("2 x 4 096 floats, both passes, no gradient of a parameter", *with_dy(2, 4_096),
                **TO_X),
])

backward_to_parameters = gradient_function("backward_to_parameters", (1, 2), cases=[
    correctness("33 x 768 floats", *with_dy(33, 768)),
    correctness("70 x 129 in float16", *with_dy(70, 129, dtype="float16")),
    correctness("2 x 3 x 65 floats", *with_dy(2, 3, 65)),
    edge("x is a transposed view", *of(rand(100, 7, mean=3.0).mT, 100), rand(7, 100, mean=0.3)),
    performance("512 x 768 floats, both passes, no gradient of x", *with_dy(ROWS, COLUMNS),
                **TO_PARAMETERS),
])

frozen_weight = gradient_function("backward_beside_a_frozen_weight", (0, 2), cases=in_16_bits())

frozen_bias = gradient_function("backward_beside_a_frozen_bias", (0, 1), cases=in_16_bits())

module_forward = Function(
    entry="module_forward", drives="TritonLayerNorm",
    parameters=("x", "weight", "bias", "eps"),
    reference=layer_norm.reference, tolerance=layer_norm.tolerance, peer=layer_norm.peer,
    reversed_peer=layer_norm.reversed_peer, cost=layer_norm.cost, cases=[
        correctness("33 x 768 floats", *table(33, 768)),
        correctness("5 x 129 in float16", *table(5, 129, dtype="float16")),
        correctness("an eps of 1", *table(4, 129), 1.0),
        correctness("2 x 3 x 64 floats", *table(2, 3, 64)),
        edge("a transposed view", *of(rand(100, 7, mean=3.0).mT, 100)),
    ])

new_module_forward = Function(
    entry="new_module_forward", drives="TritonLayerNorm", parameters=("x",),
    reference=lambda x: normalized(x, EPS)[0],
    tolerance=Tolerance(lambda x: error_bounds.layer_norm(x, torch.ones(x.shape[-1]),
                                                        torch.zeros(x.shape[-1]), EPS)),
    peer=lambda x: F.layer_norm(x.float(), x.shape[-1:]).to(x.dtype),
    reversed_peer=lambda x: F.layer_norm(x.float().flip(-1), x.shape[-1:]).flip(-1).to(x.dtype),
    cases=[
        correctness("300 x 40 floats", rand(300, 40)),
        correctness("300 x 40 in float16", rand(300, 40, dtype="float16", mean=3.0)),
        correctness("100 x 3 x 16 floats", rand(100, 3, 16)),
    ])

module_backward = gradient_function("module_backward", (0, 1, 2), drives="TritonLayerNorm", cases=[
    *in_16_bits(),
    correctness("an eps of 1 in float16", *with_dy(70, 129, dtype="float16"), 1.0),
])


# ---------------------------------------------------------------------------------------------
# Adam

# Betas that float32 holds: 1 - beta magnifies what rounding 0.999 to float32 leaves.
B1, B2 = 0.875, 1 - 2.0**-10
STATE = ("param", "exp_avg", "exp_avg_sq")


def adam(param: torch.Tensor, grad: torch.Tensor, exp_avg: torch.Tensor, exp_avg_sq: torch.Tensor,
         step: int, lr: float = 1e-3, beta1: float = 0.9, beta2: float = 0.999, eps: float = 1e-8,
         weight_decay: float = 0.0) -> tuple[torch.Tensor, ...]:
    """Param and both moments after the step, in float64."""
    p, g = param.double(), grad.double()
    m = beta1 * exp_avg.double() + (1 - beta1) * g
    v = beta2 * exp_avg_sq.double() + (1 - beta2) * g * g
    p = p * (1 - lr * weight_decay)
    return p - lr * (m / (1 - beta1**step)) / ((v / (1 - beta2**step)).sqrt() + eps), m, v


def adam_amplitudes(param: torch.Tensor, grad: torch.Tensor, exp_avg: torch.Tensor,
                    exp_avg_sq: torch.Tensor, step: int, lr: float = 1e-3, beta1: float = 0.9,
                    beta2: float = 0.999, eps: float = 1e-8,
                    weight_decay: float = 0.0) -> tuple[Amplitude, ...]:
    """As `amplitudes.adam` says, and what two things may do that are as right.

    A moment may be written as m + (1 - beta) (g - m), which rounds a difference; and where float32
    does not hold a beta, either it or 1 - beta is rounded.
    """
    p, m, v = error_bounds.adam(param, grad, exp_avg, exp_avg_sq, step=step, lr=lr,
                              betas=(beta1, beta2), eps=eps)
    off = [abs(beta - float(torch.tensor(beta))) / FLOAT32 for beta in (beta1, beta2)]
    g, m0, v0 = grad.double(), exp_avg.double(), exp_avg_sq.double()
    m_off = m0.abs() + off[0] * (m0.abs() + g.abs())
    v_off = v0.abs() + off[1] * (v0.abs() + g * g)
    root = (v.pointwise / 2 / (1 - beta2**step)).sqrt() + eps
    moved = lr * m.pointwise / (1 - beta1**step) / root
    relative = m_off / (m.pointwise + 1e-300) + v_off / (v.pointwise + 1e-300)
    for beta, one in zip((beta1, beta2), off, strict=True):
        if beta:
            relative = relative + step * beta ** (step - 1) * one / (1 - beta**step)
    return (Amplitude(p.pointwise + moved * relative), Amplitude(m.pointwise + m_off),
            Amplitude(v.pointwise + v_off))


def adam_peer(*inputs: Any) -> tuple[torch.Tensor, ...]:
    p, m, v = adam(*inputs)
    return p.to(inputs[0].dtype), m.float(), v.float()


def squares(generator: torch.Generator, shape: tuple[int, ...]) -> torch.Tensor:
    """Positive numbers, as the second moments of Adam are."""
    return 0.1 + torch.randn(shape, generator=generator) ** 2


def state(*sizes: Size, dtype: str = "float32", grad: Input | None = None) -> tuple[Input, ...]:
    """A parameter, a gradient and both moments as after some steps."""
    return (rand(*sizes, dtype=dtype), grad or rand(*sizes, dtype=dtype),
            rand(*sizes, std=0.3), Input(squares, sizes))


def fresh(*sizes: Size, dtype: str = "float32", grad: Input | None = None) -> tuple[Input, ...]:
    """The same before the first step: both moments are zero."""
    return (rand(*sizes, dtype=dtype), grad or rand(*sizes, dtype=dtype),
            full(*sizes, value=0.0), full(*sizes, value=0.0))


def of_many_sizes(*sizes: Size) -> Input:
    """Gradients whose sizes are spread over seven powers of ten, the smallest near 1e-6."""
    return wide(*sizes, decades=3.5).then(lambda t: t * 10**-2.5)


def step_bench(n: int) -> tuple[Any, ...]:
    return (*state(n), 7)


KNOWN = (7, 1e-2, B1, B2)  # a step, a rate and betas that float32 holds

adam_step = Function(
    entry="adam_step_",
    parameters=("param", "grad", "exp_avg", "exp_avg_sq"),
    keyword_only=("step", "lr", "beta1", "beta2", "eps", "weight_decay"),
    reference=adam, tolerance=Tolerance(adam_amplitudes), peer=adam_peer,
    cost=lambda param, grad, *_: Cost(
        bytes=3 * param.numel() * param.element_size() + 16 * param.numel(),
        flops=14 * param.numel()),
    in_place=STATE, result_names=STATE,
    bench=Bench("parameters", (1 << 18, 1 << 22, 1 << 25), step_bench, peer=adam_peer,
                peer_name="the same operations, one by one"),
    cases=[
        correctness("1 000 floats, the first step", *fresh(1_000), 1, 1e-2, B1, B2, public=True),
        correctness("1 000 floats, step 7", *state(1_000), *KNOWN),
        correctness("the first step, gradients of many sizes",
                    *fresh(1_000, grad=of_many_sizes(1_000)), 1, 1e-2, B1, B2),
        correctness("gradients near 1e-6, the first step",
                    *fresh(1_000, grad=rand(1_000, std=1e-6)), 1, 1e-2, B1, B2),
        correctness("the first step with the usual settings", *fresh(1_000), 1),
        correctness("step 3 with the usual settings", *state(1_000), 3),
        correctness("step 100 000", *state(1_000), 100_000, 1e-2, B1, B2),
        correctness("a rate of 0.5", *state(1_000), 7, 0.5, B1, B2),
        correctness("betas of 0", *state(1_000), 3, 1e-2, 0.0, 0.0),
        correctness("other betas", *state(1_000), 3, 1e-2, 0.5, 0.75),
        correctness("an eps of 0.5", *state(1_000), *KNOWN, 0.5),
        correctness("weight decay", *state(1_000), *KNOWN, 1e-8, 10.0),
        correctness("weight decay in the first step", *fresh(1_000), 1, 1e-2, B1, B2, 1e-8, 25.0),
        correctness("gradients of zero", *state(1_000, grad=full(1_000, value=0.0)), *KNOWN),
        correctness("gradients of zero in the first step",
                    *fresh(1_000, grad=full(1_000, value=0.0)), 1, 1e-2, B1, B2),
        # Of a round rate many results would lie in the middle of two 16-bit numbers.
        *(correctness(f"4 000 in {dtype}", *state(4_000, dtype=dtype), 7, 0.1237, B1, B2)
          for dtype in HALVES),
        correctness("4 000 in bfloat16, with decay", *state(4_000, dtype="bfloat16"), 7, 0.1237, B1,
                    B2, 1e-8, 1.3),
        correctness("a matrix of 33 x 65", *state(33, 65), *KNOWN),
        edge("no element", *state(0), *KNOWN, launches=0),
        edge("a single number", *state(), *KNOWN),
        *(edge(name, *state(length), *KNOWN) for name, length in (
            ("one element", lambda B: 1),
            ("one element less than a block", lambda B: B - 1),
            ("one whole block", lambda B: B),
            ("one element more than a block", lambda B: B + 1),
            ("one element less than two blocks", lambda B: 2 * B - 1),
            ("three blocks and seven elements", lambda B: 3 * B + 7),
            ("a prime number of elements", lambda B: 9_973))),
        edge("a gradient that is a transposed view",
             *state(33, 65, grad=rand(65, 33).mT), *KNOWN),
        edge("a gradient that is one number for all",
             *state(33, 65, grad=rand(1, 1).then(lambda t: t.expand(33, 65))), *KNOWN),
        edge("rows 3 to 9 of a larger parameter",
             *(one[3:10] for one in state(20, 65)), *KNOWN),
        edge("all but the first element of larger tensors",
             *(one[1:] for one in state(1_001)), *KNOWN),
        edge("NaN in the gradient", *state(500, grad=special(500, values=[NAN])), *KNOWN),
        # A beta2 of 0 makes nothing of the second moment, which would have to be positive.
        edge("more than 2**31 elements", *(Sparse(BIG),) * 4, 7, 1e-2, B1, 0.0),
        refuses("param is a list", [1.0], *state(1)[1:], 1, raises=TypeError,
                mentions=("param", "list")),
        refuses("a gradient that is None", rand(8), None, *state(8)[2:], 1, raises=TypeError,
                mentions=("grad", "None")),
        refuses("float64 is not supported", rand(8, dtype="float64"), rand(8, dtype="float64"),
                *state(8)[2:], 1, raises=TypeError, mentions=("param", "float64")),
        refuses("a gradient of another dtype", rand(8, dtype="float16"), rand(8),
                *state(8)[2:], 1, raises=TypeError, mentions=("grad", "float16", "float32")),
        refuses("a first moment in float16", rand(8, dtype="float16"), rand(8, dtype="float16"),
                rand(8, dtype="float16"), rand(8), 1, raises=TypeError,
                mentions=("exp_avg", "float32", "float16")),
        refuses("a second moment in float16", rand(8, dtype="float16"), rand(8, dtype="float16"),
                rand(8), rand(8, dtype="float16"), 1, raises=TypeError,
                mentions=("exp_avg_sq", "float32", "float16")),
        refuses("step 0", *state(8), 0, raises=ValueError, mentions=("step", "0")),
        refuses("a negative step", *state(8), -3, raises=ValueError, mentions=("step", "-3")),
        refuses("beta1 of 1", *state(8), 1, 1e-3, 1.0, raises=ValueError,
                mentions=("beta1", "1")),
        refuses("a negative beta2", *state(8), 1, 1e-3, 0.9, -0.1, raises=ValueError,
                mentions=("beta2", "-0.1")),
        refuses("a gradient too short", rand(8), rand(7), *state(8)[2:], 1, raises=ValueError,
                mentions=("grad", "8", "7")),
        refuses("a moment that could be broadcast", rand(4, 8), rand(4, 8), rand(8), rand(4, 8),
                1, raises=ValueError, mentions=("exp_avg", "4", "8")),
        refuses("a second moment on another device", rand(8), rand(8), rand(8),
                rand(8).on_meta(), 1, raises=ValueError, mentions=("exp_avg_sq", "meta")),
        refuses("a parameter with gaps", rand(16)[::2], *state(8)[1:], 1, raises=ValueError,
                mentions=("param", "contiguous")),
        refuses("a transposed parameter", rand(5, 4).mT, *state(4, 5)[1:], 1, raises=ValueError,
                mentions=("param", "contiguous")),
        refuses("a first moment with gaps", rand(8), rand(8), rand(16)[::2], rand(8), 1,
                raises=ValueError, mentions=("exp_avg", "contiguous")),
        refuses("a second moment with gaps", rand(8), rand(8), rand(8), rand(16)[::2], 1,
                raises=ValueError, mentions=("exp_avg_sq", "contiguous")),

        sizes(lambda n, dtype: (*state(n, dtype=dtype), *KNOWN), n=(1, 5_000), dtype=FLOATS,
              count=20),

        performance("262 144 floats", *state(FLAT), *KNOWN, traffic=1.00, sectors=1.00,
                    launches=1, spills=0),
        performance("262 144 in float16", *state(FLAT, dtype="float16"), *KNOWN, traffic=1.00,
                    sectors=1.00, launches=1, spills=0),
        performance("67 108 864 floats", *state(1 << 26), *KNOWN, spills=0, pass_at=0.75,
                    stretch=0.88),
    ],
)


# ---------------------------------------------------------------------------------------------
# What is kept, what a module is, and designs


def keeps_little(answer: Any) -> None:
    kept, least = answer["bytes"], answer["least"]
    assert kept <= least, (
        f"For 40 x 96 floats, the graph keeps {kept:,} bytes until backward, {kept / least:.1f} "
        f"times the {least:,} bytes of x, the weight and two float32 numbers per row. Its "
        f"allocations have {', '.join(f'{size:,}' for size in answer['pieces'])} bytes; x has "
        f"15,360 and the weight 384.")


def refuses_a_second_derivative(answer: Any) -> None:
    assert answer["differentiable"], (
        "A gradient that was computed with create_graph=True has requires_grad=False: a second "
        "derivative is silently missing.")
    assert answer["raised"], (
        "A gradient was differentiated a second time without an error. Its graph does not include "
        "the kernels inside backward, so the result is not the second derivative.")


def is_zero(answer: Any) -> None:
    assert answer["dx"] == [0, 8], f"For an x of 0 x 8, dx has the shape {answer['dx']}."
    for name in ("dw", "db"):
        assert answer[name] == [0.0] * 8, (
            f"For an x of 0 x 8, {name} is {answer[name]}; a sum over no rows is 0.")


def is_its_own(answer: Any) -> None:
    for name, off in answer.items():
        assert off <= 1e-3, (  # NaN is not
            f"{name} of a first result is off by up to {off:.4g} when two more results, one of "
            f"another shape, were computed before its backward pass.")


def is_a_layer_norm(answer: Any, dtypes: Sequence[str]) -> None:
    for made, dtype in zip(answer, dtypes, strict=True):
        where = f"TritonLayerNorm(7, 1e-3, dtype=torch.{dtype})"
        assert made["is_module"], f"{where} is not a torch.nn.Module."
        wanted = {"weight": [dtype, [7]], "bias": [dtype, [7]]}
        assert made["state"] == wanted, (
            f"The state_dict of {where} is {made['state']}; that of nn.LayerNorm is {wanted}.")
        assert made["parameters"] == ["bias", "weight"], (
            f"The parameters of {where} that an optimizer would find are {made['parameters']}.")
        values = made["values"]
        assert values == {"weight": [1.0] * 7, "bias": [0.0] * 7}, (
            f"A new {where} holds {values}; it should be the identity at first.")
        for way, said in (("load_state_dict", made["takes"]),
                          ("nn.LayerNorm.load_state_dict", made["gives"])):
            assert not said, f"{way} between {where} and nn.LayerNorm gave {said}"
        assert made["taken"] == {"weight": [2.0] * 7, "bias": [3.0] * 7}, (
            f"After load_state_dict with a weight of 2 and a bias of 3, {where} holds "
            f"{made['taken']}.")


def lies_on_meta(answer: Any) -> None:
    assert answer == ["meta", "meta"], (
        f"TritonLayerNorm(7, device='meta') has parameters on {answer}.")


MATRICES = ({"R": 64, "C": 1_000, "e": 4}, {"R": 4_096, "C": 128, "e": 2},
            {"R": 16_384, "C": 4_096, "e": 2})
SHARED = ({"R": 4_096, "C": 1_024, "e": 4, "G": 64}, {"R": 65_536, "C": 200, "e": 2, "G": 132},
          {"R": 16_384, "C": 4_096, "e": 2, "G": 264})
VECTORS = ({"n": 1_000, "e": 4}, {"n": 1_000_000, "e": 2}, {"n": 1 << 26, "e": 4})

WAITS = ("A GPU computes dozens of FLOP in the time that a byte takes from memory. What is the "
         "arithmetic intensity here?")

designs = [
    call("the design of layer_norm", "design", "layer_norm", MATRICES, check=is_designed(
        lambda s: s["R"] * s["C"],
        lambda s: 2 * s["R"] * s["C"] * s["e"] + 2 * s["C"] * s["e"] + 8 * s["R"],
        (product_of(6, "R", "C"), product_of(10, "R", "C")), "memory",
        {"bound": WAITS,
         "bytes": "x is read and the result written, both vectors are read, and two 4-byte numbers "
         "per row are saved for the gradients.",
         "flops": "Count for each element the sum, the difference, the square, its sum, the two "
         "products and the last sum."})),
    call("the design of layer_norm_backward", "design", "layer_norm_backward", SHARED,
         check=is_designed(
             lambda s: s["R"] * s["C"],
             lambda s: 3 * s["R"] * s["C"] * s["e"] + 3 * s["C"] * s["e"] + 8 * s["R"],
             (product_of(9, "R", "C"), product_of(17, "R", "C")), "memory",
             {"bound": WAITS,
              "bytes": "Two matrices are read and one is written; everything else is small.",
              "flops": "Normalize again, compute g, two sums for dx and dx itself; then "
              "two more sums for the parameters."})),
    call("the design of adam_step_", "design", "adam_step_", VECTORS, check=is_designed(
        lambda s: s["n"], lambda s: (3 * s["e"] + 16) * s["n"],
        (product_of(10, "n"), product_of(18, "n")), "memory",
        {"bound": WAITS,
         "bytes": "Four tensors are read and three of them written back; the moments have 4 bytes "
         "for every dtype of the parameter.",
         "flops": "Count products, sums, roots and quotients of both moments and of the "
         "parameter."})),
]

DTYPES = ("float32", "float16", "bfloat16")

suite = Suite(
    blanks=6,
    functions=[layer_norm, backward, backward_to_x, backward_to_parameters, frozen_weight,
               frozen_bias, module_forward, new_module_forward, module_backward, adam_step],
    cases=[
        *designs,
        call("the module stands in for nn.LayerNorm", "makes_modules", DTYPES,
             check=is_a_layer_norm, code="S01"),
        call("the parameters are on the requested device", "on_meta", check=lies_on_meta,
             code="S01"),
        call("no rows: the gradients of the parameters are zero", "without_rows",
             check=is_zero, code="N01", eager=True),
        call("the gradients of the first of three results", "first_of_three", check=is_its_own,
             code="N01", eager=True),
        call("a second derivative raises", "twice", check=refuses_a_second_derivative,
             code="E01", eager=True),
        call("tensors saved for the backward pass", "saved", check=keeps_little, code="T01",
             eager=True),
    ],
)


# ---------------------------------------------------------------------------------------------
# Properties


def test_the_gradient_of_x_is_orthogonal_to_shift_and_scale(submission):
    x, dy = submission.draw(rand(40, 200, mean=3.0, std=2.0), rand(40, 200, mean=0.3))
    one, zero = torch.ones(200), torch.zeros(200)

    dx = submission.backward(x, one, zero, dy)[0].double()

    x_hat = normalized(x, EPS)[0]
    for what, sums in (("dx", dx.sum(1)), ("dx * x_hat", (dx * x_hat).sum(1))):
        worst = int(sums.abs().argmax())
        assert sums.abs().max() <= 1e-3, (
            f"for a weight of 1, the sum of {what} over row {worst} is {sums[worst]:.4g} and must "
            f"be 0: shifting or scaling a row does not change the result")


def test_a_constant_dy_gives_no_gradient_of_x(submission):
    (x,) = submission.draw(rand(40, 200, mean=3.0, std=2.0))

    dx = submission.backward(x, torch.ones(200), torch.zeros(200), torch.ones(40, 200))[0]

    assert dx.abs().max() <= 1e-5, (
        f"for a weight of 1 and a dy of 1, dx is as large as {dx.abs().max():.4g}: the sum of a "
        f"normalized row is 0 for every x")


def test_rows_do_not_mix(submission):
    x, weight, bias, dy = submission.draw(*with_dy(70, 65))
    order = torch.arange(70).flip(0)

    plain = submission.backward(x, weight, bias, dy)[0]
    permuted = submission.backward(x[order], weight, bias, dy[order])[0]

    assert torch.equal(plain[order], permuted), (
        f"with the rows in another order, {int((plain[order] != permuted).sum())} elements of dx "
        f"differ")


def test_whole_numbers_give_an_exact_gradient_of_the_bias(submission):
    x, weight, bias = submission.draw(*table(300, 33))
    (dy,) = submission.draw(integers(300, 33))

    db = submission.backward(x, weight, bias, dy)[2]

    exact = dy.double().sum(0).float()
    assert torch.equal(db, exact), (
        f"column {int((db != exact).nonzero()[0])} of db is {db[db != exact][0]:.9g}, the sum of "
        f"its integers is {exact[db != exact][0]:.9g}")


def test_ten_steps_of_adam_are_those_of_torch(submission):
    for decay in (0.0, 0.25):
        param, *gradients = submission.draw(rand(300), *(of_many_sizes(300) for _ in range(10)))
        theirs, n_steps = param.double(), torch.tensor(0.0)
        moments = torch.zeros(2, 300, dtype=torch.float64)
        ours, m, v = param, torch.zeros(300), torch.zeros(300)

        for step, grad in enumerate(gradients, 1):
            ours, m, v = submission.adam_step_(
                ours, grad, m, v, step, 1e-2, B1, B2, 1e-8, decay)
            # the class torch.optim.AdamW would import torch's compiler, which takes a second
            adamw([theirs], [grad.double()], [moments[0]], [moments[1]], [], [n_steps],
                  foreach=False, amsgrad=False, beta1=B1, beta2=B2, lr=1e-2, weight_decay=decay,
                  eps=1e-8, maximize=False)

        off = (ours.double() - theirs).abs()
        worst = int(off.argmax())
        assert off.max() <= 10 * 2.0**-22 * (1 + param.abs().max()), (
            f"after 10 steps with a decay of {decay}, parameter {worst} is {ours[worst]:.9g}; "
            f"torch.optim.AdamW gives {theirs[worst]:.9g} in float64")


def test_the_first_step_has_the_size_of_the_rate(submission):
    param, grad = submission.draw(rand(1_000, std=0.01), rand(1_000))
    grad = grad.sign() * (grad.abs() + 1e-2)
    zero = torch.zeros(1_000)

    after = submission.adam_step_(param, grad, zero, zero.clone(), 1, 1e-3)[0]

    moved = (param.double() - after.double()) * grad.sign() / 1e-3
    worst = int((moved - 1).abs().argmax())
    assert (moved - 1).abs().max() <= 1e-3, (
        f"the first step moves parameter {worst} by {moved[worst]:.4g} times the rate, expected "
        f"1 for every gradient far above eps")
