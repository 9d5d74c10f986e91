"""The rows of `tests.benchmarks.kernels`: shapes, least cost, what is right, who takes part."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import torch
import torch.nn.functional as F  # noqa: N812 - as PyTorch's own pages call it

from tests.benchmarks import peers
from tests.benchmarks.modules import solution

FULL, QUICK, TINY = 1, 64, 4096  # what sizes are divided by: measured, tried on a GPU, interpreted

Function = Callable[..., Any]
Inputs = tuple[torch.Tensor, ...]


@dataclass(frozen=True)
class Row:
    """One job, and all who do it.

    ``make`` draws the inputs for a scale on a device. ``who`` is asked in the process that runs
    them, and names the solution ``solution``, other settings of it ``solution, ...``, the file that
    learners start from ``starter``, and peers as they are called.
    ``goal`` is the least ratio to the best of the peers, or to the one called ``rival``.
    ``errors``, where it is given, says how far off each result is, by names of its own.
    """

    name: str
    make: Callable[[int, str], Inputs]
    expected: Function  # in float64, from the rounded inputs
    who: Callable[[], Mapping[str, Function]]
    least_bytes: Callable[..., int] | None = None
    flops: Callable[..., int] | None = None
    goal: float | None = None
    rival: str = ""
    tolerance: float = 1e-5  # of |expected| and of its mean
    others: Mapping[str, Function] = field(default_factory=dict)  # expected, of another function
    values: Function = lambda result: result  # what of a result is compared with the expected
    errors: Function | None = None  # of inputs, values and what is expected: errors, as numbers


def few(n: int, scale: int, least: int = 1) -> int:
    return max(least, n // scale)


def side(n: int, scale: int) -> int:
    """Of a square: its area shrinks like everything else."""
    return {FULL: n, QUICK: 512, TINY: 256}[scale]


def short(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.").replace("float", "fp").replace("bfp", "bf")


def wide(x: torch.Tensor) -> torch.Tensor:
    return x.to(torch.complex128 if x.is_complex() else torch.float64)


ROUNDING = {torch.float32: 2e-5, torch.float16: 4e-3, torch.bfloat16: 3e-2}


def normal(*shape: int, dtype: torch.dtype = torch.float32, device: str) -> torch.Tensor:
    return torch.randn(shape, device=device, dtype=dtype)


def touched(*tensors: torch.Tensor) -> int:
    return sum(tensor.nbytes for tensor in tensors)


# ---------------------------------------------------------------------------------------------
# Element by element


def elements(name: str, n: int, own: Callable[[], Function], eager: Function, *,
             dtype: torch.dtype = torch.float32, operands: int = 1, goal: float | None = 1.0,
             tolerance: float | None = None, columns: int = 0, positive: bool = False,
             more: Callable[[], Mapping[str, Function]] = dict,
             others: Mapping[str, Function] | None = None) -> Row:
    """A function of ``operands`` tensors of n elements, in rows of ``columns`` if that is set."""
    def make(scale: int, device: str) -> Inputs:
        count = few(n, scale, columns or 1)
        shape = (count // columns, columns) if columns else (count,)
        made = [normal(*shape, dtype=dtype, device=device) for _ in range(operands)]
        return tuple(x.abs().clamp(0.01, 0.99) for x in made) if positive else tuple(made)

    sizes = f"{n // columns}x{columns}" if columns else f"2^{n.bit_length() - 1}"
    return Row(
        f"{name} {short(dtype)} {sizes}", make, lambda *xs: eager(*(wide(x) for x in xs)),
        lambda: {"solution": own(), **peers.function(eager), **more()},
        least_bytes=lambda *xs: touched(*xs) + xs[0].nbytes, goal=goal,
        tolerance=tolerance or ROUNDING.get(dtype, 1e-5), others=others or {})


def _polynomial(x: torch.Tensor) -> torch.Tensor:
    total = torch.full_like(x, COEFFICIENTS[-1])
    for coefficient in COEFFICIENTS[-2::-1]:
        total = total * x + coefficient
    return total


COEFFICIENTS = (0.5, -1.25, 0.75, 0.3, -0.2, 0.11, 0.05, -0.02, 0.01)


def element_rows() -> list[Row]:
    def custom() -> Any:
        return solution("custom-kernels")

    def libdevice() -> Any:
        return solution("libdevice-math")

    return [
        elements("vector add", 1 << 28, lambda: solution("vector-add").vector_add, torch.add,
                 operands=2),
        *(elements("x * sigmoid(gate)", 1 << 27, lambda: custom().glu,
                   lambda x, gate: x * torch.sigmoid(gate), dtype=dtype, operands=2, columns=8192,
                   more=peers.liger_swiglu,
                   others={"liger swiglu": lambda a, b: F.silu(a.double()) * b.double()})
          for dtype in (torch.bfloat16, torch.float32)),
        elements("swish", 1 << 27, lambda: custom().swish, F.silu, goal=1.0),
        elements("swish", 1 << 27, lambda: custom().swish, F.silu, dtype=torch.bfloat16),
        elements("polynomial of degree 8", 1 << 27,
                 lambda: lambda x: custom().poly_act(x, COEFFICIENTS), _polynomial,
                 tolerance=1e-4),
        elements("complex product", 1 << 26, lambda: custom().complex_mul, torch.mul,
                 dtype=torch.complex64, operands=2, tolerance=1e-4),
        elements("GELU by tanh", 1 << 28, lambda: libdevice().gelu_tanh,
                 lambda x: F.gelu(x, approximate="tanh"), tolerance=1e-4),
        elements("asin", 1 << 27, lambda: libdevice().asin, torch.asin, positive=True),
        elements("power 3", 1 << 27, lambda: lambda x: libdevice().powi(x, 3.0),
                 lambda x: torch.pow(x, 3.0), goal=None, tolerance=1e-4),
        elements("scale", 1 << 27, lambda: lambda x: solution("basic-debugging").scale(x, 2.5),
                 lambda x: 2.5 * x, goal=None),
    ]


# ---------------------------------------------------------------------------------------------
# Rows of a matrix


def softmax_row(rows: int, columns: int, dtype: torch.dtype) -> Row:
    return Row(
        f"softmax {short(dtype)} {rows}x{columns}",
        lambda scale, device: (normal(few(rows, scale, 3), columns, dtype=dtype, device=device),),
        lambda x: torch.softmax(x.double(), dim=1),
        lambda: {"solution": solution("softmax").softmax, **peers.softmax()},
        least_bytes=lambda x: 2 * x.nbytes, goal=1.0, tolerance=ROUNDING[dtype])


def layer_norm_row(rows: int, columns: int, dtype: torch.dtype) -> Row:
    def make(scale: int, device: str) -> Inputs:
        return (normal(few(rows, scale, 3), columns, dtype=dtype, device=device),
                normal(columns, dtype=dtype, device=device),
                normal(columns, dtype=dtype, device=device))

    return Row(
        f"layer norm {short(dtype)} {rows}x{columns}", make,
        lambda x, w, b: F.layer_norm(x.double(), (columns,), w.double(), b.double(), 1e-5),
        lambda: {"solution": solution("layer-norm").layer_norm, **peers.layer_norm()},
        least_bytes=lambda x, w, b: 2 * x.nbytes + touched(w, b), goal=1.0,
        tolerance=ROUNDING[dtype])


def rms_norm_row(rows: int, columns: int, dtype: torch.dtype) -> Row:
    def make(scale: int, device: str) -> Inputs:
        return (*(normal(few(rows, scale, 3), columns, dtype=dtype, device=device)
                  for _ in range(2)), normal(columns, dtype=dtype, device=device))

    def expected(x: torch.Tensor, residual: torch.Tensor, weight: torch.Tensor
                 ) -> tuple[torch.Tensor, torch.Tensor]:
        s = (x + residual).double()
        return F.rms_norm(s, (columns,), weight.double(), 1e-6), s

    def own() -> Function:
        module = solution("production-ready")
        config = module.Config()
        return lambda x, r, w: module.add_rms_norm(x, r, w, config=config)

    return Row(
        f"add and RMS norm {short(dtype)} {rows}x{columns}", make, expected,
        lambda: {"solution": own(), **peers.add_rms_norm()},
        least_bytes=lambda x, r, w: 4 * x.nbytes + w.nbytes, goal=1.0, tolerance=ROUNDING[dtype])


def norm_row() -> Row:
    return Row(
        "L2 norm of rows fp32 16384x4096",
        lambda scale, device: (normal(few(16384, scale, 3), 4096, device=device),),
        lambda x: torch.linalg.vector_norm(x.double(), dim=1),
        lambda: {"solution": solution("custom-kernels").l2_norm,
                 **peers.function(lambda x: torch.linalg.vector_norm(x, dim=1))},
        least_bytes=lambda x: x.nbytes + 4 * len(x))


def column_sum_row() -> Row:
    return Row(
        "sum of columns fp32 8192",
        lambda scale, device: (normal(side(8192, scale), side(8192, scale), device=device),),
        lambda x: x.double().sum(0),
        lambda: {"solution": solution("basic-debugging").col_sum,
                 **peers.function(lambda x: x.sum(0))},
        least_bytes=lambda x: x.nbytes, tolerance=1e-4)


# ---------------------------------------------------------------------------------------------
# Tiles


def transpose_row() -> Row:
    def own(x: torch.Tensor) -> torch.Tensor:
        return solution("tiling").batched_transpose(x[None])[0]

    return Row(
        "transpose fp32 8192",
        lambda scale, device: (normal(side(8192, scale), side(8192, scale), device=device),),
        lambda x: x.double().T,
        lambda: {"solution": own, **peers.function(lambda x: x.T.contiguous())},
        least_bytes=lambda x: 2 * x.nbytes, goal=1.0)


def matmul_row(n: int, dtype: torch.dtype, goal: float | None) -> Row:
    return Row(
        f"matmul {short(dtype)} {n}",
        lambda scale, device: tuple(
            normal(side(n, scale), side(n, scale), dtype=dtype, device=device) for _ in range(2)),
        lambda a, b: a.double() @ b.double(),
        lambda: {"solution": solution("matrix-mul").matmul, **peers.matmul(dtype)},
        flops=lambda a, b: 2 * a.shape[0] * a.shape[1] * b.shape[1], goal=goal, rival="torch",
        tolerance=max(ROUNDING[dtype], 1e-4))


def conv2d_row(n: int, c: int, size: int, oc: int, k: int, stride: int, dtype: torch.dtype) -> Row:
    padding = k // 2

    def make(scale: int, device: str) -> Inputs:
        return (normal(few(n, scale), c, size, size, dtype=dtype, device=device),
                normal(oc, c, k, k, dtype=dtype, device=device),
                normal(oc, dtype=dtype, device=device))

    def flops(x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor) -> int:
        places = (x.shape[2] + 2 * padding - k) // stride + 1
        return 2 * len(x) * places * places * weight.numel()

    def who() -> Mapping[str, Function]:
        module = solution("conv2d")
        own = {"solution": lambda x, w, b: module.conv2d(x, w, b, stride, padding)}
        if further:
            own = {"solution": peers.in_channels_last(
                lambda x, w, b: module.conv2d_channels_last(x, w, b, stride, padding)),
                "solution, as taught": own["solution"]}
        return {**own, **peers.conv2d(stride, padding, dtype)}

    further = dtype != torch.float32  # which conv2d_channels_last leaves to conv2d
    return Row(
        f"conv2d {short(dtype)} N{n} C{c} H{size} O{oc} k{k}s{stride}", make,
        lambda x, w, b: F.conv2d(x.double(), w.double(), b.double(), stride, padding), who,
        flops=flops, goal=0.6 if further else None,
        tolerance=1e-2)  # cuDNN rounds float32 to TF32


def all_rows() -> list[Row]:
    """The most important first: a run that is cut short has measured those."""
    both = (torch.float32, torch.bfloat16)
    elementwise = element_rows()
    return [
        *elementwise[:2],
        *(softmax_row(rows, columns, dtype) for rows, columns in (
            (32768, 1024), (16384, 4096), (4096, 32768), (8192, 12345)) for dtype in both),
        *(layer_norm_row(rows, columns, dtype)
          for rows, columns in ((16384, 4096), (4096, 16384)) for dtype in both),
        transpose_row(),
        matmul_row(8192, torch.float16, 0.90),
        matmul_row(4096, torch.float16, None),
        *(conv2d_row(*shape, dtype) for shape in (
            (32, 64, 56, 64, 3, 1), (16, 64, 56, 64, 3, 1), (16, 256, 14, 256, 3, 1),
            (16, 3, 224, 64, 7, 2), (16, 64, 56, 256, 1, 1))
          for dtype in (torch.float16, torch.float32)),
        matmul_row(4096, torch.float32, None),
        *(rms_norm_row(16384, 4096, dtype) for dtype in both),
        *elementwise[2:],
        norm_row(),
        column_sum_row(),
    ]
