"""Worked example: ReLU and its gradient as an autograd node, with its saved bytes counted."""

from __future__ import annotations

import os

import torch

HAS_GPU = torch.cuda.is_available()
if not HAS_GPU:
    os.environ["TRITON_INTERPRET"] = "1"  # set before Triton is imported

import triton  # noqa: E402 - the line above decides how it will run kernels
import triton.language as tl  # noqa: E402
from torch.autograd.function import once_differentiable  # noqa: E402

DEVICE = "cuda" if HAS_GPU else "cpu"
BLOCK = 1024


@triton.jit
def relu_kernel(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    """y[i] = max(x[i], 0). One program owns BLOCK elements."""
    offs = tl.program_id(axis=0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    mask = offs < n
    x = tl.load(x_ptr + offs, mask=mask)
    tl.store(y_ptr + offs, tl.where(x > 0, x, 0.0), mask=mask)


@triton.jit
def relu_backward_kernel(dy_ptr, y_ptr, dx_ptr, n, BLOCK: tl.constexpr):
    """dx[i] = dy[i] where y[i] > 0, else 0. One program owns BLOCK elements."""
    offs = tl.program_id(axis=0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    mask = offs < n
    dy = tl.load(dy_ptr + offs, mask=mask)
    y = tl.load(y_ptr + offs, mask=mask)
    tl.store(dx_ptr + offs, tl.where(y > 0, dy, 0.0), mask=mask)


class Relu(torch.autograd.Function):
    """ReLU of a contiguous tensor, as one node of the autograd graph."""

    @staticmethod
    def forward(ctx, x: torch.Tensor) -> torch.Tensor:
        # The backward pass needs to know where x is above 0, and y shows that as well as x. The
        # next layer saves its input y anyway, and a tensor saved twice is stored once.
        y = torch.empty_like(x)
        relu_kernel[(triton.cdiv(x.numel(), BLOCK),)](x, y, x.numel(), BLOCK=BLOCK)
        ctx.save_for_backward(y)
        return y

    @staticmethod
    @once_differentiable  # autograd cannot trace a kernel, so a second derivative raises
    def backward(ctx, dy: torch.Tensor) -> torch.Tensor | None:
        if not ctx.needs_input_grad[0]:
            return None
        (y,) = ctx.saved_tensors
        dy = dy.contiguous()  # of a sum, it is one expanded number
        dx = torch.empty_like(y)
        relu_backward_kernel[(triton.cdiv(y.numel(), BLOCK),)](
            dy, y, dx, y.numel(), BLOCK=BLOCK)
        return dx


def show_gradient() -> None:
    """Print the gradient of a few numbers, beside that of torch."""
    values = torch.tensor([-2.0, -0.5, 0.0, 0.5, 2.0], device=DEVICE)
    weights = torch.tensor([1.0, 2.0, 3.0, 4.0, 5.0], device=DEVICE)
    print("1. The gradient of sum(weight * relu(x)):")
    print("   x                  " + "".join(f"{value:7.1f}" for value in values.tolist()))
    for name, function in (("by our kernels", Relu.apply), ("by torch.relu", torch.relu)):
        x = values.clone().requires_grad_()
        (weights * function(x)).sum().backward()
        print(f"   {name:<19}" + "".join(f"{value:7.1f}" for value in x.grad.tolist()))


def show_slope() -> None:
    """Print a gradient beside the slope of the function itself, which needs no derivation."""
    torch.manual_seed(1)
    x = torch.randn(1000, device=DEVICE, requires_grad=True)
    direction = torch.randn(1000, device=DEVICE)
    (dx,) = torch.autograd.grad((Relu.apply(x) ** 2).sum(), x)
    step = 1e-5
    ahead, behind = ((torch.relu(x.detach().double() + sign * step * direction.double()) ** 2).sum()
                     for sign in (1, -1))
    print("\n2. The slope of sum(relu(x)^2) along a random direction, two ways:")
    print(f"   gradient times direction, float32          {float((dx * direction).sum()):12.5f}")
    print(f"   (f(x + h d) - f(x - h d)) / 2 h, float64   "
          f"{float((ahead - behind) / (2 * step)):12.5f}")


def show_incoming() -> None:
    """Print how the gradient of a result lies in memory, for three ways to use the result."""
    seen: list[tuple[int, ...]] = []
    x = torch.randn(4, 6, device=DEVICE, requires_grad=True)
    uses = {"y.sum()": lambda y: y.sum(), "(y * y).sum()": lambda y: (y * y).sum(),
            "y.T.contiguous().exp().sum()": lambda y: y.T.contiguous().exp().sum()}
    print("\n3. Strides of dy for a result of 4 x 6, whose own strides are (6, 1):")
    for name, use in uses.items():
        y = torch.relu(x)
        y.register_hook(lambda dy: seen.append(dy.stride()))
        use(y).backward()
        print(f"   {name:<30} {seen[-1]}")


def show_kept(n: int) -> None:
    """Print what three layers keep until the backward pass."""
    kept: dict[int, int] = {}

    def pack(tensor: torch.Tensor) -> torch.Tensor:
        kept[tensor.untyped_storage().data_ptr()] = tensor.untyped_storage().nbytes()
        return tensor

    print(f"\n4. Bytes kept for the backward pass of {n:,} floats, {4 * n:,} bytes:")
    for name, function in (("our ReLU", Relu.apply), ("torch.relu", torch.relu),
                           ("x * sigmoid(x), two operations", lambda x: x * torch.sigmoid(x))):
        x = torch.randn(n, device=DEVICE, requires_grad=True)
        kept.clear()
        with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
            y = function(x)
        print(f"   {name:<32} {sum(kept.values()):10,d}")
        del y


def show_second() -> None:
    """Print what becomes of a second derivative."""
    x = torch.randn(8, device=DEVICE, requires_grad=True)
    dy = torch.ones(8, device=DEVICE, requires_grad=True)
    (dx,) = torch.autograd.grad(Relu.apply(x), x, dy, create_graph=True)
    print("\n5. A gradient of the gradient:")
    try:
        dx.sum().backward()
    except RuntimeError as error:
        print(f"   RuntimeError: {error}")


def measure(sizes: list[int]) -> None:
    """Print time and bandwidth of both passes on this GPU, beside PyTorch."""
    print(f"   {torch.cuda.get_device_name()}, 20 bytes an element: x, y, dy, y again, dx")
    print("   elements            our kernels                 torch.relu")
    for n in sizes:
        x, dy = torch.randn(n, device=DEVICE, requires_grad=True), torch.randn(n, device=DEVICE)
        cells = []
        for function in (Relu.apply, torch.relu):
            ms = triton.testing.do_bench(
                lambda f=function, x=x, dy=dy: torch.autograd.grad(f(x), x, dy),
                return_mode="median")
            cells.append(f"{ms:7.3f} ms {20 * n / 1e6 / ms:5.0f} GB/s")
        print(f"   {n:12,d}  {'   '.join(cells)}")


def main() -> None:
    where = "on the GPU" if HAS_GPU else "interpreted on the CPU, since no GPU was found"
    print(f"Triton {triton.__version__}: the kernels run {where}.\n")
    show_gradient()
    show_slope()
    show_incoming()
    show_kept(100_000)
    show_second()

    print("\n6. How long do both passes take?")
    if HAS_GPU:
        measure([1 << 16, 1 << 20, 1 << 24, 1 << 27])
    else:
        n = 1 << 27
        print("   No time is measured here: the interpreter runs programs one after the other")
        print(f"   with NumPy. {n:,} elements of float32 move {20 * n:,} bytes in both passes;")
        print(f"   a GPU that moves 3,000 GB/s needs at least {20 * n / 3e9:.2f} ms.")


if __name__ == "__main__":
    main()
