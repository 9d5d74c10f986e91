"""The self-test of the engine: small kernels with known answers, run before the first grade.

The seams say that Triton has the form that the engine was written for. These kernels say that it
means the same: each stands for a place where the engine replaces Triton's own behavior.
"""

# mypy: ignore-errors
# A jit function has no Python types: its parameters are pointers and blocks.
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import ml_dtypes
import numpy as np
import triton
import triton.language as tl
from triton.language.extra import libdevice

from grader.engine.interpreter.address_space import Storage
from grader.engine.interpreter.launch import Pointer, run
from grader.engine.interpreter.memory import Memory
from grader.engine.interpreter.patch_triton import UnknownTriton

_N = 16


@triton.jit
def _rounding_kernel(x_ptr, y_ptr, N: tl.constexpr):  # noqa: N803 - Triton's spelling of sizes
    offs = tl.arange(0, N)
    x = tl.load(x_ptr + offs)
    tl.store(y_ptr + offs, x.to(tl.bfloat16) * 3.0)


@triton.jit
def _python_kernel(x_ptr, y_ptr, n, N: tl.constexpr):  # noqa: N803
    offs = tl.arange(0, N)
    x = tl.load(x_ptr + offs)
    total = tl.zeros((N,), tl.float32)
    for i in range(0, n, 2):
        total += x * i
    chosen = (offs > 3 and offs < 9) or not offs < 12
    tl.store(y_ptr + offs, tl.where(chosen, total, (offs * 0 - 7) // 2))


@triton.jit
def _longest(a, b):
    return tl.where(a > b, a, b)


@triton.jit
def _parting_kernel(x_ptr, y_ptr, count_ptr, N: tl.constexpr):  # noqa: N803
    pid = tl.program_id(0)
    offs = tl.arange(0, N)
    x = tl.load(x_ptr + offs)
    if pid % 2 == 0:  # noqa: SIM108 - a branch that programs take differently is what is tested
        x = tl.associative_scan(x, 0, _longest)
    else:
        x = x * 0.0 + tl.reduce(x, 0, _longest)
    for _ in range(pid):
        x += 1.0
    tl.store(y_ptr + pid * N + offs, x)
    tl.atomic_add(count_ptr + offs * 0, 1)


@triton.jit
def _products_kernel(x_ptr, y_ptr, N: tl.constexpr):  # noqa: N803
    offs = tl.arange(0, N)
    tile = x_ptr + offs[:, None] * N + offs[None, :]
    x = tl.load(tile)
    full = tl.dot(x, x, input_precision="ieee")
    short = tl.dot(x, x, input_precision="tf32")
    both = tl.where(offs[:, None] < N // 2, full, short)
    tl.store(y_ptr + offs[:, None] * N + offs[None, :], libdevice.tanh(both))


@triton.jit
def _past_the_end_kernel(x_ptr, y_ptr, N: tl.constexpr):  # noqa: N803
    offs = tl.arange(0, N)
    tl.store(y_ptr + offs, tl.load(x_ptr + offs + 1))


_VALUES = (np.arange(_N) - 5.3).astype(np.float32)
_MATRIX = np.random.default_rng(3).normal(size=(_N, _N)).astype(np.float32)


@dataclass(frozen=True)
class _Proof:
    what: str
    kernel: Any  # its parameters: the input, the outputs, numbers, constants
    expected: Callable[[Any], list[Any]]  # the outputs for an input
    x: Any = field(default_factory=lambda: _VALUES)
    numbers: tuple[int, ...] = ()
    programs: int = 1
    findings: frozenset[str] = frozenset()


def _python(x: Any) -> list[Any]:
    offs = np.arange(_N)
    chosen = ((offs > 3) & (offs < 9)) | (offs >= 12)
    return [np.where(chosen, x * (0 + 2 + 4 + 6), -3).astype(np.float32)]


def _parting(x: Any) -> list[Any]:
    rows = [(np.maximum.accumulate(x) if p % 2 == 0 else np.full_like(x, x.max())) + p
            for p in range(4)]
    return [np.stack(rows), np.array([4 * _N], np.int32)]


def _products(x: Any) -> list[Any]:
    cut = (x.view(np.uint32) & np.uint32(0xFFFFE000)).view(np.float32)
    both = np.where(np.arange(_N)[:, None] < _N // 2, x @ x, cut @ cut)
    return [np.tanh(both.astype(np.float64)).astype(np.float32)]


_PROOFS = (
    _Proof("bfloat16 is rounded to nearest even", _rounding_kernel,
           lambda x: [(x.astype(ml_dtypes.bfloat16).astype(np.float32) * 3).astype(
               ml_dtypes.bfloat16)]),
    _Proof("loops, `and`, `or`, `not` and `//` mean what they mean to the compiler",
           _python_kernel, _python, numbers=(7,)),
    _Proof("programs that part run their own ways", _parting_kernel, _parting, programs=4),
    _Proof("products are computed in the precision that is asked for", _products_kernel, _products,
           x=_MATRIX),
    _Proof("a load outside a tensor is found", _past_the_end_kernel,
           lambda x: [np.append(x[1:], np.float32(np.nan))], findings=frozenset(("M01",))),
)


def check() -> None:
    """Runs every proof.

    Raises:
        UnknownTriton: one of them gave another answer; the message says which.
    """
    for proof in _PROOFS:
        if problem := _problem(proof):
            raise UnknownTriton(f"the self-test that {proof.what} failed ({problem})")


def _problem(proof: _Proof) -> str:
    memory = Memory()
    expected = proof.expected(proof.x)
    outputs = [np.zeros_like(value) for value in expected]
    arguments = iter([*map(_pointer, (proof.x, *outputs)), *proof.numbers])
    bound = {p.name: _N if p.is_constexpr else next(arguments) for p in proof.kernel.params}
    outcome = run(proof.kernel, (proof.programs, 1, 1), bound, memory)
    if outcome.failure is not None:
        return outcome.failure.seen
    codes = {finding.code for finding in memory.observed.findings()}
    if codes != proof.findings:
        return f"it found {sorted(codes)} instead of {sorted(proof.findings)}"
    if not all(np.allclose(value.astype(np.float64), right.astype(np.float64), rtol=3e-6,
                           equal_nan=True)
               for value, right in zip(outputs, expected, strict=True)):
        return "it computed other values"
    return ""


def _pointer(array: Any) -> Pointer:
    storage = Storage(array.reshape(-1).view(np.uint8), array.itemsize, True, protected=False)
    return Pointer(storage, array.dtype.name, 0, array.nbytes)
