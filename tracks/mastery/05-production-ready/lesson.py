"""Worked example: `clamp`, four tests, three mutants, and which test detects which."""

from __future__ import annotations

import math
import os
from collections.abc import Callable

import torch

HAS_GPU = torch.cuda.is_available()
if not HAS_GPU:
    os.environ["TRITON_INTERPRET"] = "1"  # set before Triton is imported

import triton  # noqa: E402 - the line above decides how it will run kernels
import triton.language as tl  # noqa: E402

DEVICE = "cuda" if HAS_GPU else "cpu"
BLOCK_SIZE = 1024
NAN, INF = math.nan, math.inf

# The kernel contains three bugs next to the right code, to show all versions at once. A mutant of
# your own package is just one changed line.
RIGHT, CUT, NUMBERS_ONLY, MAGNITUDE = range(4)
MUTANTS = {"cut": CUT, "NaN": NUMBERS_ONLY, "sign": MAGNITUDE}


@triton.jit
def clamp_kernel(
    x_ptr, y_ptr,              # [n]
    n,
    low, high,
    BLOCK_SIZE: tl.constexpr,  # elements per program
    BUG: tl.constexpr,
):
    """Limits every element to a range.

    Computes:
        y[i] = low where x[i] < low, high where x[i] > high, and x[i] elsewhere, NaN included

    Args:
        x_ptr: n numbers.
        y_ptr: where the results go.
        n: how many.
        low: the least result.
        high: the greatest result.
        BLOCK_SIZE: elements of a program.
        BUG: which mistake is made; 0 is none.

    Notes:
        Moves 2 * n * itemsize bytes.
    """
    offs = tl.program_id(axis=0) * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
    # Mutant "cut": no program owns the last 7 elements. Multiples of 8 lose nothing.
    mask = offs < (n // 8 * 8 if BUG == 1 else n)
    x = tl.load(x_ptr + offs, mask=mask)

    if BUG == 2:
        # Mutant "NaN": for a number and a NaN, these two return the number.
        y = tl.minimum(tl.maximum(x, low), high)
    elif BUG == 3:
        # Mutant "sign": the lower bound is used as a bound of the magnitude.
        y = tl.where(tl.abs(x) < low, low, tl.where(x > high, high, x))
    else:
        # Both comparisons are false for NaN, so it stays.
        y = tl.where(x < low, low, tl.where(x > high, high, x))
    tl.store(y_ptr + offs, y, mask=mask)


def clamp(x: torch.Tensor, low: float, high: float, *, bug: int = RIGHT) -> torch.Tensor:
    """Limit every element of x to [low, high]; NaN stays NaN.

    Args:
        x: a contiguous float32 tensor of any shape.
        low: the least result.
        high: the greatest result, not below low.
        bug: which mistake of the lesson is made.

    Returns:
        A new tensor of x's shape.

    Raises:
        TypeError: x is not a float32 tensor.
        ValueError: x is not contiguous, or the range is empty or NaN.

    Example:
        >>> clamp(torch.tensor([-2.0, 0.5, 7.0]), -1.0, 1.0).tolist()
        [-1.0, 0.5, 1.0]
    """
    if not isinstance(x, torch.Tensor) or x.dtype != torch.float32:
        got = x.dtype if isinstance(x, torch.Tensor) else type(x).__name__
        raise TypeError(f"x: expected a float32 tensor, got {got}")
    if not x.is_contiguous():
        raise ValueError(f"x: expected a contiguous tensor, got strides {x.stride()}")
    if not low <= high:  # includes NaN
        raise ValueError(f"low: expected at most high = {high}, got {low}")
    y = torch.zeros_like(x)  # `empty_like` is enough for the right kernel; here all runs look alike
    if x.numel():
        clamp_kernel[(triton.cdiv(x.numel(), BLOCK_SIZE),)](
            x, y, x.numel(), low, high, BLOCK_SIZE=BLOCK_SIZE, BUG=bug)
    return y


# ---------------------------------------------------------------------------------------------
# The tests. Each takes the function, so that it can be run on the right one and on the mutants.

Clamp = Callable[..., torch.Tensor]


def numbers(*values: float) -> torch.Tensor:
    return torch.tensor(values, device=DEVICE)


def normal(n: int) -> torch.Tensor:
    """Returns the same numbers in every run: flaky tests are soon ignored."""
    return torch.randn(n, generator=torch.Generator().manual_seed(n)).to(DEVICE)


def test_first_try(clamp: Clamp) -> None:
    """A typical first test: a round size, ordinary numbers, a wide tolerance."""
    x = normal(BLOCK_SIZE).abs()
    torch.testing.assert_close(clamp(x, 0.5, 1.5), x.clamp(0.5, 1.5), rtol=1e-2, atol=1e-2)


def test_unit_values_by_hand(clamp: Clamp) -> None:
    """Every branch of the definition, on both sides of zero, with the results written out."""
    got = clamp(numbers(-9, -1, -0.5, 0, 0.5, 1, 9, 2), -1.0, 1.0)
    assert got.tolist() == [-1, -1, -0.5, 0, 0.5, 1, 1, 1]


def test_edge_sizes_around_a_block(clamp: Clamp) -> None:
    """One element, one less and one more than a block, and a prime."""
    for n in (1, BLOCK_SIZE - 1, BLOCK_SIZE + 1, 4_099):
        x = normal(n) + 3  # no element near 0, which undefined memory may contain
        got = clamp(x, 2.5, 3.5)
        assert got.min() >= 2.5 and got.max() <= 3.5, f"{n} elements"


def test_edge_special_values(clamp: Clamp) -> None:
    """NaN stays, and infinities behave like numbers."""
    got = clamp(numbers(NAN, INF, -INF, NAN, 0, 0, 0, 0), -1.0, 1.0)
    assert got.isnan().tolist() == [True, False, False, True, False, False, False, False]
    assert got[1:3].tolist() == [1, -1]


def test_property_twice_is_once(clamp: Clamp) -> None:
    """A property that holds for any input, exactly: elements in the range do not change."""
    once = clamp(normal(2_000), -0.5, 0.5)
    assert torch.equal(clamp(once, -0.5, 0.5), once)


TESTS: list[Callable[[Clamp], None]] = [
    test_unit_values_by_hand, test_edge_sizes_around_a_block, test_edge_special_values,
    test_property_twice_is_once]


def passes(test: Callable[[Clamp], None], bug: int) -> bool:
    """Whether a test passes on one version."""
    try:
        test(lambda *arguments: clamp(*arguments, bug=bug))
    except AssertionError:
        return False
    return True


def show(tests: list[Callable[[Clamp], None]]) -> set[str]:
    """Print which test notices which mutant; the mutants that live."""
    print("   test                            right    " + "    ".join(f"{m:>4}" for m in MUTANTS))
    living = set(MUTANTS)
    for test in tests:
        noticed = {name for name, bug in MUTANTS.items() if not passes(test, bug)}
        living -= noticed
        cells = "    ".join(f"{'FAIL' if name in noticed else 'pass':>4}" for name in MUTANTS)
        right = "pass" if passes(test, RIGHT) else "FAIL"
        print(f"   {test.__name__.removeprefix('test_'):<30} {right:>6}    {cells}")
    print(f"   mutants that live: {', '.join(sorted(living)) or 'none'}\n")
    return living


def show_refusals() -> None:
    """Print what the caller reads for arguments that the contract excludes."""
    x = normal(6)
    for arguments in ((x.double(), 0, 1), (x.view(2, 3).T, 0, 1), (x, 1.0, 0.0), (x, NAN, 1.0)):
        try:
            clamp(*arguments)
            print("   accepted")
        except (TypeError, ValueError) as error:
            print(f"   {type(error).__name__}: {error}")


def show_cost() -> None:
    """Print what the benchmark of such a package says: times on a GPU, bytes without one."""
    for n in (10_000, 1_000_000, 100_000_000):
        moved = 2 * n * 4
        if not HAS_GPU:
            print(f"   {n:11,d} elements  {moved:13,d} bytes  no time: there is no GPU")
            continue
        x = normal(n)
        ms = triton.testing.do_bench(lambda x=x: clamp(x, -1.0, 1.0), return_mode="median")
        theirs = triton.testing.do_bench(lambda x=x: x.clamp(-1.0, 1.0), return_mode="median")
        rate = moved / ms / 1e6
        print(f"   {n:11,d} elements  {moved:13,d} bytes  {ms:7.4f} ms  {rate:5.0f} GB/s   "
              f"torch.clamp {theirs:7.4f} ms")


def main() -> None:
    where = "on the GPU" if HAS_GPU else "interpreted on the CPU, since no GPU was found"
    print(f"Triton {triton.__version__}: the kernel runs {where}.\n")
    print("1. A test that passes. Does it test anything?")
    show([test_first_try])
    print("2. Four tests with a reason each:")
    show(TESTS)
    print("3. What is refused, and in which words:")
    show_refusals()
    print("\n4. What it costs:")
    show_cost()


if __name__ == "__main__":
    main()
