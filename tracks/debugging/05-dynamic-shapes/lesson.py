"""Worked example: the code that the compiler makes from more facts, and the cost of each."""

from __future__ import annotations

import os
import re
import time
from typing import Any

os.environ.pop("TRITON_INTERPRET", None)  # this lesson needs compiled code
os.environ["TRITON_ALWAYS_COMPILE"] = "1"  # ignores the cache of earlier runs
os.environ["TRITON_DEFAULT_FP_FUSION"] = "1"

import triton
import triton.language as tl
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource

H100 = GPUTarget("cuda", 90, 32)  # not needed: nothing is launched
BLOCK = 1024
BY_16 = [["tt.divisibility", 16]]  # Triton's attribute for multiples of 16
LENGTHS = [1, 16, 48, 50, 51, 130, 4_096, 4_097]


@triton.jit
def pick_kernel(
    x_ptr, out_ptr,       # [n * step] and [n]
    n, step,
    BLOCK: tl.constexpr,  # elements per program
):
    """out[i] = x[i * step]. One program owns BLOCK elements of out."""
    offs = tl.program_id(axis=0) * BLOCK + tl.arange(0, BLOCK)
    mask = offs < n

    x = tl.load(x_ptr + offs * step, mask=mask)

    tl.store(out_ptr + offs, x, mask=mask)


def compiled(constants: dict[str, int], by_16: tuple[str, ...]) -> tuple[str, float]:
    """PTX for an H100 and the milliseconds that it took.

    Args:
        constants: arguments whose values are a part of the code.
        by_16: arguments that are known to be multiples of 16; addresses count in bytes.
    """
    signature = {"x_ptr": "*fp32", "out_ptr": "*fp32", "n": "i32", "step": "i32"}
    constants = {**constants, "BLOCK": BLOCK}
    signature |= dict.fromkeys(constants, "constexpr")
    place = {name: (number,) for number, name in enumerate(pick_kernel.arg_names)}
    source = ASTSource(
        pick_kernel, {name: signature[name] for name in place},
        {place[name]: value for name, value in constants.items()},
        {place[name]: BY_16 for name in by_16})
    started = time.perf_counter()
    made: Any = triton.compile(source, target=H100)
    return made.asm["ptx"], (time.perf_counter() - started) * 1e3


def accesses(ptx: str) -> str:
    """Returns the loads and stores of a thread, such as `2 ld.v4`."""
    found: dict[str, int] = {}
    for kind, wide in re.findall(r"\b(ld|st)\.global(?:\.L1::\w+)?(\.v\d)?\.b32", ptx):
        found[kind + wide] = found.get(kind + wide, 0) + 1
    return ", ".join(f"{count} {name}" for name, count in found.items())


def look_at_code() -> None:
    """Prints one line per fact that may be known at compile time."""
    pointers = ("x_ptr", "out_ptr")
    rows: list[tuple[str, dict[str, int], tuple[str, ...]]] = [
        ("nothing", {}, ()),
        ("addresses are multiples of 16", {}, pointers),
        ("and n is, too", {}, (*pointers, "n")),
        ("and step is 1", {"step": 1}, (*pointers, "n")),
        ("step is 1, n can be anything", {"step": 1}, pointers),
        ("step is 1 and n is 4 097", {"step": 1, "n": 4_097}, pointers),
    ]
    print("known while compiling             accesses of a thread       compiled in")
    for name, constants, by_16 in rows:
        ptx, ms = compiled(constants, by_16)
        print(f"{name:<32}  {accesses(ptx):<24}  {ms:8.0f} ms")


def look_at_lengths() -> None:
    """Prints what Triton specializes on for a run-time integer."""
    print("\nn        as a constexpr    at run time        named in do_not_specialize")
    for n in LENGTHS:
        known = "1" if n == 1 else "multiple of 16" if n % 16 == 0 else "any integer"
        print(f"{n:<7}  {n:<16}  {known:<17}  any integer")
    print(f"\n{len(LENGTHS)} lengths are {len(LENGTHS)} variants of the first kind, 3 of the "
          "second, 1 of the third.")


def main() -> None:
    compiled({}, ())  # the first one also loads the compiler
    look_at_code()
    look_at_lengths()


if __name__ == "__main__":
    main()
