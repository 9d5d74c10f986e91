"""Worked example: e4m3 numbers, scales for blocks of a vector, and sums that stop growing."""

from __future__ import annotations

import math
import os

import torch

HAS_GPU = torch.cuda.is_available() and torch.cuda.get_device_capability() >= (8, 9)
if not HAS_GPU:
    os.environ["TRITON_INTERPRET"] = "1"  # has to be set before Triton is imported

import triton  # noqa: E402 - the line above decides how it will run kernels
import triton.language as tl  # noqa: E402

DEVICE = "cuda" if HAS_GPU else "cpu"
E4M3 = torch.float8_e4m3fn


@triton.jit
def there_and_back_kernel(
    x_ptr, out_ptr, scale_ptr,  # [n], [n], and one per block
    n,
    LARGEST: tl.constexpr,
    BLOCK: tl.constexpr,
):
    """out = x rounded to e4m3 with a scale per block. One program owns one block."""
    block = tl.program_id(axis=0)
    offs = block * BLOCK + tl.arange(0, BLOCK)
    mask = offs < n

    x = tl.load(x_ptr + offs, mask=mask, other=0.0)

    scale = tl.max(tl.abs(x), axis=0) / LARGEST
    scale = tl.where(scale > 0.0, scale, 1.0)
    q = (x / scale).to(tl.float8e4nv)  # rounds to 4 significant bits

    tl.store(out_ptr + offs, q.to(tl.float32) * scale, mask=mask)
    tl.store(scale_ptr + block, scale)


def there_and_back(x: torch.Tensor, block: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Returns a float32 vector rounded to e4m3 with a scale per block, and the scales."""
    out = torch.empty_like(x)
    blocks = triton.cdiv(x.numel(), block)
    scales = torch.empty(blocks, device=x.device)
    there_and_back_kernel[(blocks,)](x, out, scales, x.numel(), LARGEST=448.0, BLOCK=block)
    return out, scales


def neighbors(value: float) -> tuple[float, float]:
    """Returns the nearest e4m3 number, and the next one."""
    bits = torch.tensor([value]).to(E4M3).view(torch.uint8)
    here, there = (torch.tensor([int(bits) + step], dtype=torch.uint8).view(E4M3).float().item()
                   for step in (0, 1))
    return here, there


def cut(value: float, bits: int) -> float:
    """Returns a number truncated to ``bits`` significant bits."""
    if value == 0.0:
        return 0.0
    unit = 2.0 ** (math.floor(math.log2(abs(value))) - bits + 1)
    return math.trunc(value / unit) * unit


def running_sum(terms: torch.Tensor, bits: int, every: int) -> float:
    """Returns a sum with ``bits`` bits that is promoted after every ``every`` terms."""
    total, part = 0.0, 0.0
    for number, term in enumerate(terms.tolist(), 1):
        part = cut(part + term, bits)
        if number % every == 0:
            total, part = total + part, 0.0
    return total + part


def main() -> None:
    where = "on the GPU" if HAS_GPU else "interpreted on the CPU"
    print(f"Triton {triton.__version__}: the kernels run {where}.\n")

    print("1. e4m3 numbers, and the next larger one:")
    for value in (2.0**-9, 0.25, 1.0, 17.0, 400.0):
        here, there = neighbors(value)
        print(f"   {value:<12g} becomes {here:<12g} the next is {there:g}")
    ends = torch.tensor([448.0, 460.0, 1e9, float("nan")]).to(E4M3).float().tolist()
    print(f"   448, 460, 1e9 and NaN become {', '.join(f'{end:g}' for end in ends)}.")

    print("\n2. 256 normal numbers, one of them 1,000. The others after rounding:")
    torch.manual_seed(1)
    x = torch.randn(256, device=DEVICE)
    x[40] = 1_000.0
    others = torch.arange(256, device=DEVICE) != 40
    for block in (256, 64, 32):
        out, scales = there_and_back(x, block)
        lost = (out - x)[others].norm() / x[others].norm()
        zeros = int((out[others] == 0).sum())
        print(f"   blocks of {block:3}: {len(scales)} scales, {lost:5.1%} lost, {zeros} became 0")
    print("   A large value costs precision of the values that share its scale.")

    print("\n3. 32,768 ones, added with 14 bits, and promoted after so many terms:")
    ones = torch.ones(32_768)
    for every in (32_768, 4_096, 128):
        print(f"   after {every:6,}: {running_sum(ones, 14, every):8,.0f}")
    print("   Between 2**14 and 2**15, numbers of 14 bits are 2 apart: adding 1 is truncated.")

    print("\n4. 4,096 numbers around a half. The sum is off by:")
    terms = 0.5 + 0.5 * torch.randn(4_096, dtype=torch.float64)
    exact = float(terms.sum())
    print(f"   {'bits':>6} {'after 4,096':>12} {'after 128':>12}")
    for bits in (11, 14, 24):
        off = [abs(running_sum(terms, bits, every) - exact) / exact for every in (4_096, 128)]
        print(f"   {bits:6} {off[0]:12.1e} {off[1]:12.1e}")


if __name__ == "__main__":
    main()
