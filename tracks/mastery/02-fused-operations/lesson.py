"""Worked example: scale, clamp and cast to float16 in one kernel, counted first, then by the clock.
"""

from __future__ import annotations

import os

import torch

HAS_GPU = torch.cuda.is_available()
if not HAS_GPU:
    os.environ["TRITON_INTERPRET"] = "1"  # set before Triton is imported

import triton  # noqa: E402 - the line above decides how it will run kernels
import triton.language as tl  # noqa: E402

DEVICE = "cuda" if HAS_GPU else "cpu"
BLOCK = 1024
COPY_GBPS, LAUNCH_US = 4_282.0, 3.7  # H200: bandwidth of a copy, time of an empty launch

# Bytes that each step reads and writes per element. Unfused, each step loads what the previous one
# stored.
STEPS = {"scale": (4, 4), "clamp": (4, 4), "cast": (4, 2)}
FUSED = (4, 2)


@triton.jit
def scale_clamp_cast_kernel(x_ptr, out_ptr, n, scale, low, high, BLOCK: tl.constexpr):
    """out[i] = float16(clamp(x[i] * scale, low, high)). One program owns BLOCK elements."""
    # One axis of programs; 64-bit offsets, since they may pass 2**31.
    offs = tl.program_id(axis=0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    mask = offs < n

    # The only load.
    x = tl.load(x_ptr + offs, mask=mask)

    # Three steps in registers. The order matters: values above 65,504 must be clamped before the
    # cast, which would make them infinite. NaN stays NaN, as in `torch.clamp`.
    scaled = x * scale
    cut = tl.clamp(scaled, low, high, propagate_nan=tl.PropagateNan.ALL)

    # The only store: after the cast, it moves 2 bytes per element instead of 4.
    tl.store(out_ptr + offs, cut.to(tl.float16), mask=mask)


def scale_clamp_cast(x: torch.Tensor, scale: float, low: float, high: float) -> torch.Tensor:
    """Returns x * scale clamped to [low, high] in float16, for a contiguous float32 x."""
    out = torch.empty(x.shape, dtype=torch.float16, device=x.device)
    if out.numel():
        grid = (triton.cdiv(out.numel(), BLOCK),)
        scale_clamp_cast_kernel[grid](x, out, out.numel(), scale, low, high, BLOCK=BLOCK)
    return out


def in_three_steps(x: torch.Tensor, scale: float, low: float, high: float) -> torch.Tensor:
    """The same in PyTorch: three launches."""
    return (x * scale).clamp(low, high).half()


def count_bytes() -> tuple[int, int]:
    """Print what moves before and after, and give both in bytes an element."""
    print("1. Bytes an element:")
    print("   step         read   written")
    for name, (read, written) in STEPS.items():
        print(f"   {name:<10} {read:6d} {written:9d}")
    before = sum(map(sum, STEPS.values()))
    after = sum(FUSED)
    print(f"   together   {before:6d}")
    print(f"   fused      {FUSED[0]:6d} {FUSED[1]:9d}, together {after}")
    print(f"   By bytes, fusing gains {before} / {after} = {before / after:.2f} times at most; by")
    print(f"   launches, {len(STEPS)} / 1 = {len(STEPS):.2f} times at most.")
    return before, after


def show_values() -> None:
    """Print a few results, beside those of the three steps."""
    x = torch.tensor([-3.0, 0.1, 2.5, 1e6, float("inf"), float("nan")], device=DEVICE)
    print("\n2. Scale 10, between -20 and 60,000:")
    print("   x           fused     in three steps")
    for row in zip(x.tolist(), scale_clamp_cast(x, 10.0, -20.0, 60_000.0).tolist(),
                   in_three_steps(x, 10.0, -20.0, 60_000.0).tolist(), strict=True):
        print("   {:<10g} {:>7g} {:>18g}".format(*row))


def gain(n: int, before: int, after: int) -> float:
    """Time before over time after, of n elements on an H200, by bytes and launches."""
    def microseconds(per_element: int, launches: int) -> float:
        return n * per_element / (COPY_GBPS * 1e3) + launches * LAUNCH_US

    return microseconds(before, len(STEPS)) / microseconds(after, 1)


def show_gain(before: int, after: int) -> None:
    """Print the gain for several sizes."""
    print(f"\n3. Time before over time after, {COPY_GBPS:,.0f} GB/s and {LAUNCH_US} us a launch:")
    print("   elements        gain")
    for n in (1_000, 100_000, 1_000_000, 10_000_000, 1 << 28):
        print(f"   {n:>11,d} {gain(n, before, after):8.2f}")


def measure(sizes: list[int]) -> None:
    """Print times on this GPU for several sizes."""
    print(f"   {torch.cuda.get_device_name()}")
    print("   elements        three steps        fused     gain")
    for n in sizes:
        x = torch.randn(n, device=DEVICE)
        apart, fused = (
            triton.testing.do_bench(lambda f=f, x=x: f(x, 10.0, -20.0, 60_000.0),
                                    return_mode="median")
            for f in (in_three_steps, scale_clamp_cast))
        print(f"   {n:>11,d} {apart:12.4f} ms {fused:9.4f} ms {apart / fused:8.2f}")


def main() -> None:
    where = "on the GPU" if HAS_GPU else "interpreted on the CPU, since no GPU was found"
    print(f"Triton {triton.__version__}: the kernels run {where}.\n")
    before, after = count_bytes()
    show_values()
    show_gain(before, after)

    print("\n4. How long does it take?")
    if HAS_GPU:
        measure([1_000, 1_000_000, 10_000_000, 1 << 26])
    else:
        print("   No time is measured here: the interpreter runs programs one after the other")
        print("   with NumPy. The table above is what counting says.")


if __name__ == "__main__":
    main()
