"""Python that is, and Python that is not, part of the language."""

from __future__ import annotations

import math
from math import pi

import numpy as np
import torch
import triton
import triton.language as tl

from .construct import EVERY, Theme, equal
from .values import exact, floats, integers, launch, out

theme = Theme("Python in kernels")

_GATE = "Python understands it: the compile gate's job"


def _refused(kernel, device):
    launch(kernel, device, floats(16), out(16), N=16)


@triton.jit
def append_kernel(x_ptr, out_ptr, N: tl.constexpr):
    offs = tl.arange(0, N)
    parts = []
    parts.append(tl.load(x_ptr + offs))
    tl.store(out_ptr + offs, parts[0])


@theme("list.append", rejects=EVERY)
def _(device):
    _refused(append_kernel, device)


@triton.jit
def list_kernel(x_ptr, out_ptr, N: tl.constexpr):
    offs = tl.arange(0, N)
    x = tl.load(x_ptr + offs)
    parts = [x, x * 2]
    tl.store(out_ptr + offs, parts[0] + parts[1])


@theme("a list of blocks")
def _(device):
    x = integers(16, dtype=torch.float32)
    return equal(launch(list_kernel, device, x, out(16), N=16), 3 * x)


@triton.jit
def dict_kernel(x_ptr, out_ptr, N: tl.constexpr):
    offs = tl.arange(0, N)
    parts = {"x": tl.load(x_ptr + offs)}
    tl.store(out_ptr + offs, parts["x"])


@theme("a dict", rejects=EVERY)
def _(device):
    _refused(dict_kernel, device)


@triton.jit
def lambda_kernel(x_ptr, out_ptr, N: tl.constexpr):
    offs = tl.arange(0, N)
    double = lambda v: v * 2  # noqa: E731
    tl.store(out_ptr + offs, double(tl.load(x_ptr + offs)))


@theme("a lambda", rejects=EVERY)
def _(device):
    _refused(lambda_kernel, device)


@triton.jit
def nested_kernel(x_ptr, out_ptr, N: tl.constexpr):
    def double(v):
        return v * 2

    offs = tl.arange(0, N)
    tl.store(out_ptr + offs, double(tl.load(x_ptr + offs)))


@theme("a function defined in a kernel", rejects=EVERY)
def _(device):
    _refused(nested_kernel, device)


def plain_helper(v):
    return v * 2


@triton.jit
def plain_helper_kernel(x_ptr, out_ptr, N: tl.constexpr):
    offs = tl.arange(0, N)
    tl.store(out_ptr + offs, plain_helper(tl.load(x_ptr + offs)))


@theme("a helper without triton.jit", rejects=EVERY)
def _(device):
    _refused(plain_helper_kernel, device)


@triton.jit
def import_kernel(x_ptr, out_ptr, N: tl.constexpr):
    import math as mathematics
    offs = tl.arange(0, N)
    tl.store(out_ptr + offs, tl.load(x_ptr + offs) * mathematics.pi)


@theme("import in a kernel", rejects=EVERY)
def _(device):
    _refused(import_kernel, device)


@triton.jit
def math_kernel(x_ptr, out_ptr, N: tl.constexpr):
    offs = tl.arange(0, N)
    tl.store(out_ptr + offs, math.exp(tl.load(x_ptr + offs)))


@theme("math.exp of a block", rejects=EVERY)
def _(device):
    _refused(math_kernel, device)


@triton.jit
def math_scalar_kernel(x_ptr, out_ptr, N: tl.constexpr):
    tl.store(out_ptr, math.sqrt(tl.load(x_ptr)))


@theme("math.sqrt of a loaded scalar", rejects=EVERY)
def _(device):
    _refused(math_scalar_kernel, device)


@triton.jit
def math_constant_kernel(x_ptr, out_ptr, N: tl.constexpr):
    offs = tl.arange(0, N)
    scale: tl.constexpr = math.log2(N)
    tl.store(out_ptr + offs, tl.load(x_ptr + offs) * scale + math.pi)


@theme("math.pi, and math.log2 of a constant")
def _(device):
    x = integers(16, dtype=torch.float32)
    got = launch(math_constant_kernel, device, x, out(16), N=16)
    return equal(got, exact(x) * 4 + float(np.float32(math.pi)))


@triton.jit
def imported_constant_kernel(x_ptr, out_ptr, N: tl.constexpr):
    offs = tl.arange(0, N)
    tl.store(out_ptr + offs, tl.load(x_ptr + offs) * pi)


@theme("pi imported by its name, a plain global", rejects=EVERY)
def _(device):
    _refused(imported_constant_kernel, device)


@triton.jit
def numpy_kernel(x_ptr, out_ptr, N: tl.constexpr):
    offs = tl.arange(0, N)
    tl.store(out_ptr + offs, np.exp(tl.load(x_ptr + offs)))


@theme("numpy.exp of a block", rejects=EVERY)
def _(device):
    _refused(numpy_kernel, device)


@triton.jit
def torch_kernel(x_ptr, out_ptr, N: tl.constexpr):
    offs = tl.arange(0, N)
    tl.store(out_ptr + offs, torch.exp(tl.load(x_ptr + offs)))


@theme("torch.exp of a block", rejects=EVERY)
def _(device):
    _refused(torch_kernel, device)


@triton.jit
def abs_kernel(x_ptr, out_ptr, N: tl.constexpr):
    offs = tl.arange(0, N)
    tl.store(out_ptr + offs, abs(tl.load(x_ptr + offs)))


@theme("Python's abs", rejects=EVERY)
def _(device):
    _refused(abs_kernel, device)


@triton.jit
def sum_kernel(x_ptr, out_ptr, N: tl.constexpr):
    offs = tl.arange(0, N)
    x = tl.load(x_ptr + offs)
    tl.store(out_ptr + offs, sum((x, x)))


@theme("Python's sum", rejects=EVERY)
def _(device):
    _refused(sum_kernel, device)


@triton.jit
def round_kernel(x_ptr, out_ptr, N: tl.constexpr):
    tl.store(out_ptr, round(tl.load(x_ptr)))


@theme("Python's round", rejects=EVERY)
def _(device):
    _refused(round_kernel, device)


@triton.jit
def length_kernel(x_ptr, out_ptr, N: tl.constexpr):
    tl.store(out_ptr, len(tl.load(x_ptr + tl.arange(0, N))))


@theme("len of a block", rejects=EVERY)
def _(device):
    _refused(length_kernel, device)


@triton.jit
def int_kernel(x_ptr, out_ptr, N: tl.constexpr):
    tl.store(out_ptr, int(tl.load(x_ptr)))


@theme("int of a loaded scalar", rejects=EVERY)
def _(device):
    _refused(int_kernel, device)


@triton.jit
def builtins_kernel(out_ptr, x_ptr, N: tl.constexpr):
    size: tl.constexpr = int(N * 1.5)
    tl.store(out_ptr, size)
    tl.store(out_ptr + 1, float(N) / 2)
    tl.store(out_ptr + 2, max(N, 5) + min(3, N))
    tl.store(out_ptr + 3, len((1, 2, N)))


@theme("int, float, min, max, len of constants")
def _(device):
    got = launch(builtins_kernel, device, out(4), floats(1), N=7)
    return equal(got, [10, 3.5, 10, 3])


@triton.jit
def extremes_kernel(x_ptr, out_ptr, n):
    pid = tl.program_id(0)
    tl.store(out_ptr + pid, min(tl.load(x_ptr + pid), n) + max(pid, 2, n))


@theme("Python's min and max of scalars")
def _(device):
    x = integers(8)
    got = launch(extremes_kernel, device, x, out(8, dtype=torch.int32), n=4, grid=(8,))
    return equal(got, np.minimum(exact(x), 4) + np.maximum(np.arange(8), 4))


@triton.jit
def try_kernel(x_ptr, out_ptr, N: tl.constexpr):
    offs = tl.arange(0, N)
    try:
        x = tl.load(x_ptr + offs)
    finally:
        pass
    tl.store(out_ptr + offs, x)


@theme("try", rejects=EVERY)
def _(device):
    _refused(try_kernel, device)


@triton.jit
def delete_kernel(x_ptr, out_ptr, N: tl.constexpr):
    offs = tl.arange(0, N)
    x = tl.load(x_ptr + offs)
    y = x * 2
    del x
    tl.store(out_ptr + offs, y)


@theme("del", rejects=EVERY)
def _(device):
    _refused(delete_kernel, device)


@triton.jit
def raise_kernel(x_ptr, out_ptr, N: tl.constexpr):
    if tl.program_id(0) > 5:
        raise ValueError("too many programs")
    tl.store(out_ptr + tl.arange(0, N), 1.0)


@theme("raise in a branch that is not reached", rejects=EVERY, differs=_GATE)
def _(device):
    _refused(raise_kernel, device)


@triton.jit
def global_statement_kernel(x_ptr, out_ptr, N: tl.constexpr):
    global counter
    counter = 1
    tl.store(out_ptr + tl.arange(0, N), 1.0)


@theme("global", rejects=EVERY)
def _(device):
    _refused(global_statement_kernel, device)


@triton.jit
def attribute_kernel(x_ptr, out_ptr, N: tl.constexpr):
    x = tl.load(x_ptr + tl.arange(0, N))
    x.note = 5
    tl.store(out_ptr + tl.arange(0, N), x)


@theme("an attribute set on a block", rejects=EVERY, differs=_GATE)
def _(device):
    _refused(attribute_kernel, device)


@triton.jit
def undefined_kernel(x_ptr, out_ptr, N: tl.constexpr):
    tl.store(out_ptr + tl.arange(0, N), missing_name)  # noqa: F821


@theme("a name that is not defined", rejects=EVERY)
def _(device):
    _refused(undefined_kernel, device)


@triton.jit
def undefined_branch_kernel(x_ptr, out_ptr, N: tl.constexpr):
    if tl.program_id(0) > 5:
        tl.store(out_ptr, missing_name)  # noqa: F821
    tl.store(out_ptr + tl.arange(0, N), 1.0)


@theme("a name that is not defined, in a branch that is not reached", rejects=EVERY,
       differs="only what is reached is looked at: the compile gate's job")
def _(device):
    _refused(undefined_branch_kernel, device)


@triton.jit
def misspelt_kernel(x_ptr, out_ptr, N: tl.constexpr):
    tl.store(out_ptr + tl.arange(0, N), tl.lod(x_ptr + tl.arange(0, N)))


@theme("a function that tl has not", rejects=EVERY)
def _(device):
    _refused(misspelt_kernel, device)


@triton.jit
def wrong_keyword_kernel(x_ptr, out_ptr, N: tl.constexpr):
    tl.store(out_ptr + tl.arange(0, N), tl.load(x_ptr + tl.arange(0, N), masks=None))


@theme("a keyword that a function of tl has not", rejects=EVERY)
def _(device):
    _refused(wrong_keyword_kernel, device)


@triton.jit
def text_kernel(x_ptr, out_ptr, N: tl.constexpr):
    x = tl.load(x_ptr + tl.arange(0, N))
    tl.device_print(f"x is {x}")
    tl.store(out_ptr + tl.arange(0, N), x)


@theme("an f-string of a block", rejects=EVERY)
def _(device):
    _refused(text_kernel, device)


@triton.jit
def is_kernel(x_ptr, out_ptr, FLAG: tl.constexpr, N: tl.constexpr):
    offs = tl.arange(0, N)
    x = tl.load(x_ptr + offs)
    if FLAG is not None and isinstance(FLAG, int):
        x = x * FLAG
    if x_ptr is None:
        x = x * 0
    tl.store(out_ptr + offs, x)


@theme("is, is not, isinstance")
def _(device):
    x = integers(16, dtype=torch.float32)
    return [equal(launch(is_kernel, device, x, out(16), FLAG=flag, N=16), factor * x)
            for flag, factor in ((None, 1), (3, 3))]


@triton.jit
def in_kernel(x_ptr, out_ptr, N: tl.constexpr):
    if N in (8, 16):
        tl.store(out_ptr + tl.arange(0, N), 1.0)


@theme("the operator in", rejects=EVERY)
def _(device):
    _refused(in_kernel, device)


@triton.jit
def zip_kernel(x_ptr, out_ptr, N: tl.constexpr):
    for i, j in zip((0, 1), (1, 0)):  # noqa: B905
        tl.store(out_ptr + i, tl.load(x_ptr + j))


@theme("zip and enumerate", rejects=EVERY)
def _(device):
    _refused(zip_kernel, device)


@triton.jit
def endless_kernel(x_ptr, out_ptr, N: tl.constexpr):
    i = 0
    while True:
        i += 1
        if i > 3:
            break
    tl.store(out_ptr, i)


@theme("while True with break", rejects=EVERY)
def _(device):
    _refused(endless_kernel, device)


@triton.jit
def semicolon_kernel(x_ptr, out_ptr, N: tl.constexpr):
    offs = tl.arange(0, N); x = tl.load(x_ptr + offs)  # noqa: E702
    y = (x
         * 2)
    tl.store(
        out_ptr + offs,
        y,
    )


@theme("several statements on a line, one on several lines")
def _(device):
    x = floats(16)
    return equal(launch(semicolon_kernel, device, x, out(16), N=16), 2 * x)


@triton.jit
def match_kernel(x_ptr, out_ptr, N: tl.constexpr):
    offs = tl.arange(0, N)
    match N:
        case 16:
            tl.store(out_ptr + offs, 1.0)
        case _:
            tl.store(out_ptr + offs, 2.0)


@theme("match", rejects=EVERY)
def _(device):
    _refused(match_kernel, device)


@triton.jit
def set_kernel(x_ptr, out_ptr, N: tl.constexpr):
    sizes = {N, 2}
    tl.store(out_ptr + tl.arange(0, N), len(sizes))


@theme("a set", rejects=EVERY)
def _(device):
    _refused(set_kernel, device)


@triton.jit
def star_kernel(x_ptr, out_ptr, N: tl.constexpr):
    first, *rest = (1.0, 2.0, 3.0)
    tl.store(out_ptr, first + rest[0])


@theme("first, *rest = ...", rejects=EVERY)
def _(device):
    _refused(star_kernel, device)


@triton.jit
def generator_kernel(x_ptr, out_ptr, N: tl.constexpr):
    parts = tuple(i * 2 for i in (1, 2, 3))
    tl.store(out_ptr, parts[0])


@theme("tuple of a generator expression", rejects=EVERY)
def _(device):
    _refused(generator_kernel, device)


@triton.jit
def shared_kernel(x_ptr, out_ptr, N: tl.constexpr, K: tl.constexpr):
    n = tl.arange(0, N)
    k = tl.arange(0, K)
    x = tl.load(x_ptr + n[:, None] * K + k[None, :])
    y = tl.load(x_ptr + k[:, None] * N + n[None, :])
    tl.store(out_ptr + n[:, None] * N + n[None, :], tl.dot(x, y))


@theme("more shared memory than there is", rejects=EVERY,
       differs="shared memory is known after compiling: the compile gate's job")
def _(device):
    x = torch.zeros(128 * 512, dtype=torch.float16, device=device)
    shared_kernel[(1,)](x, torch.empty(128 * 128, device=device), N=128, K=512)


@triton.jit
def blank_kernel(x_ptr, out_ptr, N: tl.constexpr):
    offs = tl.arange(0, N)
    x = ...
    tl.store(out_ptr + offs, x)


@theme("a blank, ..., still to be filled in", rejects=EVERY, refusals=("L05", "P01"))
def _(device):
    _refused(blank_kernel, device)


