"""Worked example: validating and launching a copy of rows, with exceptions of its own."""

from __future__ import annotations

import os
import time
from collections.abc import Callable

import torch

HAS_GPU = torch.cuda.is_available()
if not HAS_GPU:
    os.environ["TRITON_INTERPRET"] = "1"  # set before Triton is imported

import triton  # noqa: E402 - after TRITON_INTERPRET is set
import triton.language as tl  # noqa: E402

DEVICE = "cuda" if HAS_GPU else "cpu"


class CopyError(Exception):
    """Base class of this file's exceptions."""


class WrongRows(CopyError, ValueError):
    """Invalid arguments; also a ValueError, for handlers that do not know this file."""

    def __init__(self, reasons: list[str]) -> None:
        super().__init__("; ".join(reasons))
        self.reasons = reasons


class TooWide(CopyError):
    """A row needs a larger block than the device allows."""


@triton.jit
def copy_rows_kernel(
    x_ptr, y_ptr,              # [n_rows, n_cols]
    stride_xm, stride_ym,      # elements between rows
    n_cols,
    BLOCK_SIZE: tl.constexpr,  # power of two >= n_cols
):
    """y[m, :] = x[m, :]. One program per row. Moves 2 * n_rows * n_cols * itemsize bytes."""
    row = tl.program_id(axis=0).to(tl.int64)  # row * stride passes 2**31
    offs = tl.arange(0, BLOCK_SIZE)
    mask = offs < n_cols

    x = tl.load(x_ptr + row * stride_xm + offs, mask=mask)

    tl.store(y_ptr + row * stride_ym + offs, x, mask=mask)


def check_rows(x: object, y: object) -> None:
    """Reports all problems of a copy from x to y in one exception.

    Raises:
        WrongRows: with one sentence for each reason.
    """
    reasons = []
    for name, value in (("x", x), ("y", y)):
        if not isinstance(value, torch.Tensor):
            reasons.append(f"{name} should be a tensor and is {type(value).__name__}")
        elif value.dim() != 2 or value.stride(1) != 1:
            reasons.append(f"{name} should have rows without gaps; its shape is "
                           f"{tuple(value.shape)}, its strides are {value.stride()}")
    if isinstance(x, torch.Tensor) and isinstance(y, torch.Tensor):  # checks that need both
        if x.shape != y.shape:
            reasons.append(f"x and y differ in shape, {tuple(x.shape)} and {tuple(y.shape)}")
        if x.dtype != y.dtype:
            reasons.append(f"x and y differ in dtype, {x.dtype} and {y.dtype}")
    if reasons:
        raise WrongRows(reasons)


def copy_rows(x: torch.Tensor, y: torch.Tensor, widest: int = 65_536) -> None:
    """Copies x to y, row by row.

    Raises:
        WrongRows: x and y do not fit each other; nothing was launched.
        TooWide: a row has more elements than ``widest``, which stands for the device's limit here.
    """
    check_rows(x, y)
    n_rows, n_cols = x.shape
    block = triton.next_power_of_2(n_cols)
    try:
        if block > widest:  # simulates a device that is too small
            raise triton.OutOfResources(block, widest, "elements")
        copy_rows_kernel[(n_rows,)](x, y, x.stride(0), y.stride(0), n_cols, BLOCK_SIZE=block)
    except triton.OutOfResources as error:  # the only failure that a caller can act on
        raise TooWide(f"copy_rows: {error.required} {error.name} per row, "
                      f"{error.limit} available") from error


def copied_on_the_host(x: torch.Tensor, y: torch.Tensor, widest: int) -> str:
    """Copies rows with the kernel, otherwise with torch, and returns which."""
    try:
        copy_rows(x, y, widest)
        return "the kernel"
    except TooWide as error:
        y.copy_(x)
        return f"torch, since {error}"


def raised(call: Callable[[], object]) -> BaseException | None:
    try:
        call()
    except Exception as error:
        return error
    return None


def show(title: str, call: Callable[[], object]) -> None:
    error = raised(call)
    print(f"   {title}")
    print(f"      {type(error).__name__}: {error}" if error else "      nothing is raised")
    if error is not None and error.__cause__ is not None:
        print(f"      its cause: {type(error.__cause__).__name__}: {error.__cause__}")


def main() -> None:
    x = torch.randn(6, 100, device=DEVICE)
    y = torch.empty_like(x)

    print("1. A valid call copies:")
    copy_rows(x, y)
    print(f"   {x.shape[0]} rows of {x.shape[1]} floats are equal: {torch.equal(x, y)}")

    print("\n2. An invalid call reports all problems at once, before anything is launched:")
    show("three things are wrong with y",
         lambda: copy_rows(x, torch.empty(100, 5, device=DEVICE, dtype=torch.float16).mT))
    show("one thing is wrong with x", lambda: copy_rows(x.tolist(), y))

    print("\n3. A failure of the device gets a name and keeps its cause:")
    show("a row of 100 elements, on a device that takes 64", lambda: copy_rows(x, y, widest=64))

    print("\n4. A bug is not a failure of the device and keeps its own name:")
    show("`widest` is text", lambda: copy_rows(x, y, widest="64"))

    print("\n5. A fallback reports itself:")
    for widest in (65_536, 64):
        y.zero_()
        print(f"   widest {widest:>6}: {copied_on_the_host(x, y, widest)}; "
              f"equal: {torch.equal(x, y)}")

    print("\n6. The cost of checking, on the host, per call:")
    repeats = 2_000
    print(f"   {'what':<28} {'microseconds':>12}")
    for name, call in (("check_rows(x, y)", lambda: check_rows(x, y)),
                       ("x.isfinite().all().item()", lambda: x.isfinite().all().item())):
        start = time.perf_counter()
        for _ in range(repeats):
            call()
        print(f"   {name:<28} {(time.perf_counter() - start) / repeats * 1e6:>12.1f}")


if __name__ == "__main__":
    main()
