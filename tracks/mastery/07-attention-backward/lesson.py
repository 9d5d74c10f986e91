"""Worked example: the gradient of a long softmax from its log-sum-exp, a block at a time."""

from __future__ import annotations

import os

import torch

HAS_GPU = torch.cuda.is_available()
if not HAS_GPU:
    os.environ["TRITON_INTERPRET"] = "1"  # set before Triton is imported

import triton  # noqa: E402 - reads TRITON_INTERPRET
import triton.language as tl  # noqa: E402

DEVICE = "cuda" if HAS_GPU else "cpu"


@triton.jit
def softmax_backward_kernel(
    x_ptr, dy_ptr, lse_ptr,  # [n_rows, n_cols] twice, [n_rows]
    delta_ptr, dx_ptr,       # [n_rows], [n_rows, n_cols]
    n_cols,
    BLOCK: tl.constexpr,     # columns per program, a power of two
):
    """dx = y * (dy - delta) with y = exp(x - lse). One program owns BLOCK columns of a row.

    No program sees the whole row: lse and delta hold what it needs of the rest.
    """
    row = tl.program_id(axis=0).to(tl.int64)  # row * n_cols may pass 2**31
    cols = tl.program_id(axis=1) * BLOCK + tl.arange(0, BLOCK)
    mask = cols < n_cols
    x = tl.load(x_ptr + row * n_cols + cols, mask=mask, other=-float("inf"))
    dy = tl.load(dy_ptr + row * n_cols + cols, mask=mask, other=0.0)

    y = tl.exp(x - tl.load(lse_ptr + row))  # no maximum, no sum: both are in lse
    dx = y * (dy - tl.load(delta_ptr + row))

    tl.store(dx_ptr + row * n_cols + cols, dx, mask=mask)


def softmax_backward(x: torch.Tensor, dy: torch.Tensor, block: int = 1024) -> torch.Tensor:
    """Returns the gradient of softmax(x) for the gradient dy of its result.

    PyTorch computes what a forward pass saves: lse, and delta from the result.
    """
    lse = torch.logsumexp(x, 1)
    delta = (torch.softmax(x, 1) * dy).sum(1)
    dx = torch.empty_like(x)
    n_rows, n_cols = x.shape
    softmax_backward_kernel[(n_rows, triton.cdiv(n_cols, block))](
        x, dy, lse, delta, dx, n_cols, BLOCK=block)
    return dx


def show_numbers() -> None:
    """Prints every number of one row of three scores."""
    x = torch.tensor([[1.0, 3.0, 2.0]], device=DEVICE)
    dy = torch.tensor([[1.0, 0.0, 2.0]], device=DEVICE)
    lse, y = torch.logsumexp(x, 1, keepdim=True), torch.softmax(x, 1)
    delta = (y * dy).sum(1, keepdim=True)
    dx = softmax_backward(x, dy, 2)
    print(f"1. Three scores: lse = {float(lse):.4f}, delta = sum(y * dy) = {float(delta):.4f}")
    print("        x        y       dy   dy - delta       dx")
    for values in zip(*(t[0].tolist() for t in (x, y, dy, dy - delta, dx)), strict=True):
        print("   {:6g} {:8.4f} {:8g} {:12.4f} {:8.4f}".format(*values))
    print(f"   The gradients sum to {float(dx.sum()):.1e}: a shift of all scores changes nothing.")


def show_far_scores() -> None:
    """Prints gradients of far scores by lse and by two formulas without it."""
    torch.manual_seed(3)
    print("\n2. 1,000 scores in blocks of 128. Largest error of dx, by three ways to get y:")
    print("   scores near       exp(x - lse)   exp(x) / sum   exp(x - max of the block)")
    for center in (0.0, 200.0, -500.0):
        x = torch.randn(1, 1000, device=DEVICE) + center
        dy = torch.randn(1, 1000, device=DEVICE)
        leaf = x.double().requires_grad_()
        [exact] = torch.autograd.grad(torch.softmax(leaf, 1), leaf, dy.double())
        plain = torch.exp(x) / torch.exp(x).sum(1, keepdim=True)
        blocks = torch.cat([torch.softmax(part, 1) for part in x.split(128, 1)], 1)
        errors = [float((softmax_backward(x, dy, 128) - exact).abs().max())]
        for y in (plain, blocks):
            dx = y * (dy - (y * dy).sum(1, keepdim=True))
            errors.append(float((dx - exact).abs().max()))
        print("   {:11g} {:18.1e} {:14.1e} {:27.1e}".format(center, *errors))


def show_delta() -> None:
    """Prints delta in the two forms that attention can use."""
    torch.manual_seed(4)
    scores, v = torch.randn(1, 500, device=DEVICE), torch.randn(500, 8, device=DEVICE)
    do = torch.randn(1, 8, device=DEVICE)
    p = torch.softmax(scores, 1)
    print("\n3. One query, 500 keys, heads of 8. delta has two forms:")
    print(f"   sum of p * dp over 500 keys   {float((p * (do @ v.T)).sum()):.6f}")
    print(f"   out . do over 8 numbers       {float(((p @ v) * do).sum()):.6f}")


def measure(rows: int, cols: int) -> None:
    """Prints time and bandwidth on this GPU, beside PyTorch."""
    x, dy = (torch.randn(rows, cols, device=DEVICE) for _ in range(2))
    y, dx = torch.softmax(x, 1), torch.empty_like(x)
    lse, delta = torch.logsumexp(x, 1), (y * dy).sum(1)
    grid = rows, triton.cdiv(cols, 4096)
    print(f"   {torch.cuda.get_device_name()}, {rows:,} rows of {cols:,} floats")
    for name, function in (
        ("lse and delta given", lambda: softmax_backward_kernel[grid](
            x, dy, lse, delta, dx, cols, BLOCK=4096)),
        ("torch, y stored", lambda: torch._softmax_backward_data(dy, y, 1, torch.float32)),
    ):
        ms = triton.testing.do_bench(function, return_mode="median")
        print(f"   {name:<22} {ms:7.3f} ms {3 * x.nbytes / 1e6 / ms:6.0f} GB/s")


def main() -> None:
    where = "on the GPU" if HAS_GPU else "interpreted on the CPU, since no GPU was found"
    print(f"Triton {triton.__version__}: the kernel runs {where}.\n")
    show_numbers()
    show_far_scores()
    show_delta()

    print("\n4. How long does it take?")
    if HAS_GPU:
        measure(4096, 1 << 15)
    else:
        rows, cols = 64 * 4096, 4096
        stored, kept = 4 * rows * cols, 8 * rows
        print("   Nothing is timed without a GPU: the interpreter runs one program after the other")
        print("   with NumPy. For 64 heads of 4,096 queries and keys, y in float32 would be")
        print(f"   {stored:,} bytes, lse and delta are {kept:,}: one part in {stored // kept:,}.")


if __name__ == "__main__":
    main()
