"""Worked example: the log-sum-exp of long rows in one pass, step by step, timed on a GPU."""

from __future__ import annotations

import math
import os

import torch

HAS_GPU = torch.cuda.is_available()
if not HAS_GPU:
    os.environ["TRITON_INTERPRET"] = "1"  # set before Triton is imported

import triton  # noqa: E402 - reads TRITON_INTERPRET
import triton.language as tl  # noqa: E402

DEVICE = "cuda" if HAS_GPU else "cpu"


@triton.jit
def logsumexp_kernel(
    x_ptr, out_ptr, trace_ptr,  # [n_rows, n_cols], [n_rows], [n_rows, steps, 2] or None
    n_cols,
    BLOCK: tl.constexpr,        # columns of a step, a power of two
):
    """out[m] = log(sum(exp(x[m]))). One program owns row m and reads it once, BLOCK at a time."""
    row = tl.program_id(axis=0).to(tl.int64)  # row * n_cols may pass 2**31
    cols = tl.arange(0, BLOCK)

    # The state: the running maximum m_i and the sum l_i of exp(x - m_i).
    m_i = -float("inf")
    l_i = 0.0
    for step in range(tl.cdiv(n_cols, BLOCK)):
        offs = step * BLOCK + cols
        x = tl.load(x_ptr + row * n_cols + offs, mask=offs < n_cols, other=-float("inf"))

        # l_i is relative to the old maximum. exp(x - m_new) = exp(x - m_i) * exp(m_i - m_new), so
        # one factor, alpha, rescales all of its terms.
        m_new = tl.maximum(m_i, tl.max(x, axis=0))
        alpha = tl.exp(m_i - m_new)
        l_i = alpha * l_i + tl.sum(tl.exp(x - m_new), axis=0)
        m_i = m_new

        if trace_ptr is not None:  # shows the state after each step
            at = trace_ptr + (row * tl.cdiv(n_cols, BLOCK) + step) * 2
            tl.store(at, m_i)
            tl.store(at + 1, l_i)

    tl.store(out_ptr + row, m_i + tl.log(l_i))


def logsumexp(x: torch.Tensor, block: int = 1024, trace: torch.Tensor | None = None):
    """Returns the log-sum-exp of each row of a contiguous float32 matrix."""
    out = torch.empty(x.shape[0], device=x.device)
    logsumexp_kernel[(x.shape[0],)](x, out, trace, x.shape[1], BLOCK=block)
    return out


def show_states() -> None:
    """Prints m_i and l_i after each step, for a row whose numbers grow."""
    x = torch.tensor([[1.0, 3.0, 2.0, 0.0, 5.0, 1.0, 100.0, 99.0, 100.0]], device=DEVICE)
    block = 2
    trace = torch.empty(1, triton.cdiv(x.shape[1], block), 2, device=DEVICE)
    out = logsumexp(x, block, trace)
    print("1. A row of 9 numbers, 2 at a time. The state after each step:")
    print("   numbers            m_i         l_i    m_i + log(l_i)")
    for step, (m_i, l_i) in enumerate(trace[0].tolist()):
        part = ", ".join(f"{value:g}" for value in x[0, step * block:(step + 1) * block].tolist())
        print(f"   {part:<12} {m_i:9g} {l_i:11.6f} {m_i + math.log(l_i):14.6f}")
    print(f"   torch.logsumexp gives {float(torch.logsumexp(x.double(), 1)):.6f}, "
          f"the kernel {float(out):.6f}.")
    print("   When m_i grew from 5 to 100, alpha = exp(5 - 100) reduced the old sum to almost 0.")


def show_dangers() -> None:
    """Prints the results of two shorter formulas beside this one, for three magnitudes."""
    torch.manual_seed(3)
    print("\n2. Three rows of 1,000 numbers, by two shorter formulas and by this one, in float32:")
    print("   numbers near         exact     log(sum(exp))     max(x, 0) first    one pass")
    for center in (0.0, 200.0, -500.0):
        x = torch.randn(1, 1000, device=DEVICE) + center
        exact = float(torch.logsumexp(x.double(), 1))
        plain = float(torch.log(torch.exp(x).sum(1)))
        top = torch.clamp(x.amax(1), min=0.0)  # a maximum that started at 0
        from_zero = float(top + torch.log(torch.exp(x - top[:, None]).sum(1)))
        print(f"   {center:12g} {exact:13.4f} {plain:17.4f} {from_zero:19.4f} "
              f"{float(logsumexp(x, 128)):11.4f}")


def show_parts() -> None:
    """Prints the merged result of two parts of a row."""
    torch.manual_seed(4)
    x = torch.randn(1, 3000, device=DEVICE)
    first, second = logsumexp(x[:, :1100].contiguous()), logsumexp(x[:, 1100:].contiguous())
    joined = float(torch.logaddexp(first, second))
    print("\n3. Two parts of a row, merged by logaddexp of their results:")
    print(f"   1,100 numbers {float(first):.5f}, the other 1,900 {float(second):.5f}, merged "
          f"{joined:.5f}; all 3,000 at once {float(logsumexp(x)):.5f}")


def measure(shapes: list[tuple[int, int]]) -> None:
    """Prints time and bandwidth on this GPU for several shapes, beside PyTorch."""
    print(f"   {torch.cuda.get_device_name()}, each number read once")
    print("   rows x columns              one pass           torch.logsumexp")
    for rows, cols in shapes:
        x = torch.randn(rows, cols, device=DEVICE)
        cells = []
        for function in (lambda x: logsumexp(x, 4096), lambda x: torch.logsumexp(x, 1)):
            ms = triton.testing.do_bench(lambda f=function, x=x: f(x), return_mode="median")
            cells.append(f"{ms:7.3f} ms {x.nbytes / 1e6 / ms:5.0f} GB/s")
        print(f"   {rows:6,d} x {cols:<10,d}  {'   '.join(cells)}")


def main() -> None:
    where = "on the GPU" if HAS_GPU else "interpreted on the CPU, since no GPU was found"
    print(f"Triton {triton.__version__}: the kernel runs {where}.\n")
    show_states()
    show_dangers()
    show_parts()

    print("\n4. How long does it take?")
    if HAS_GPU:
        measure([(8192, 1024), (8192, 8192), (1024, 1 << 17)])
    else:
        rows, cols = 8192, 1 << 15
        once = 4 * rows * cols
        print("   Nothing is timed without a GPU: the interpreter runs one program after the other")
        print(f"   with NumPy. {rows:,} rows of {cols:,} floats are {once:,} bytes. Read once, at")
        print(f"   3,000 GB/s, they take {once / 3e9:.2f} ms; maximum and sum in two passes,")
        print(f"   {2 * once / 3e9:.2f} ms.")


if __name__ == "__main__":
    main()
