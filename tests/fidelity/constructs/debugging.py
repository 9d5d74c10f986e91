"""Assertions, prints, hints to the compiler, assembly, questions about the machine."""

from __future__ import annotations

import numpy as np
import torch
import triton
import triton.language as tl

from .construct import EVERY, Theme, equal
from .values import exact, floats, integers, launch, out

theme = Theme("assertions and hints")

_ASSEMBLY = "assembly is not interpreted"


@triton.jit
def static_kernel(x_ptr, out_ptr, N: tl.constexpr):
    tl.static_assert(N % 8 == 0, "N must be a multiple of 8")
    tl.static_print("N is", N)
    offs = tl.arange(0, N)
    x = tl.load(x_ptr + offs)
    tl.static_assert(x.dtype.is_floating())
    tl.store(out_ptr + offs, x)


@theme("static_assert that holds, static_print")
def _(device):
    x = floats(16)
    return equal(launch(static_kernel, device, x, out(16), N=16), x)


@theme("static_assert that fails", rejects=EVERY)
def _(device):
    launch(static_kernel, device, floats(4), out(4), N=4)


@triton.jit
def runtime_static_kernel(out_ptr, n):
    tl.static_assert(n > 3)
    tl.store(out_ptr, n)


@theme("static_assert of a runtime value", rejects=EVERY)
def _(device):
    launch(runtime_static_kernel, device, out(dtype=torch.int32), n=5)


@triton.jit
def print_kernel(x_ptr, out_ptr, N: tl.constexpr):
    offs = tl.arange(0, N)
    x = tl.load(x_ptr + offs)
    tl.device_print("x", x)
    tl.device_print("hex", x.to(tl.int32, bitcast=True), hex=True)
    print("pid", tl.program_id(0))
    tl.store(out_ptr + offs, x)


@theme("device_print and print")
def _(device):
    x = floats(8)
    return equal(launch(print_kernel, device, x, out(8), N=8), x)


@triton.jit
def unnamed_print_kernel(x_ptr, out_ptr, N: tl.constexpr):
    x = tl.load(x_ptr + tl.arange(0, N))
    print(x)
    tl.store(out_ptr + tl.arange(0, N), x)


@theme("print of a value alone", rejects=EVERY)
def _(device):
    launch(unnamed_print_kernel, device, floats(8), out(8), N=8)


@triton.jit
def assert_kernel(x_ptr, out_ptr, limit, N: tl.constexpr):
    offs = tl.arange(0, N)
    x = tl.load(x_ptr + offs)
    tl.device_assert(x < limit, "x is below the limit")
    tl.device_assert(tl.program_id(0) == 0)
    tl.store(out_ptr + offs, x)


@theme("device_assert that holds")
def _(device):
    x = floats(16)
    return equal(launch(assert_kernel, device, x, out(16), limit=99.0, N=16), x)


@theme("device_assert that fails, not debugging")
def _(device):
    x = floats(16)
    return equal(launch(assert_kernel, device, x, out(16), limit=0.0, N=16), x)


@triton.jit(debug=True)
def debug_kernel(x_ptr, out_ptr, limit, N: tl.constexpr):
    offs = tl.arange(0, N)
    x = tl.load(x_ptr + offs)
    tl.device_assert(x < limit, "x is below the limit")
    tl.store(out_ptr + offs, x)


@theme("device_assert that fails in a kernel that debugs", fails="R01",
       not_on_gpu="a failed assertion leaves the GPU unusable")
def _(device):
    launch(debug_kernel, device, floats(16), out(16), limit=0.0, N=16)


@theme("device_assert that fails in a launch that debugs", fails="R01",
       not_on_gpu="a failed assertion leaves the GPU unusable")
def _(device):
    launch(assert_kernel, device, floats(16), out(16), limit=0.0, N=16, debug=True)


@theme("assert that fails in a launch that debugs", fails="R01",
       not_on_gpu="a failed assertion leaves the GPU unusable")
def _(device):
    launch(python_assert_kernel, device, floats(16), out(16), limit=-1.0, N=16, debug=True)


@theme("device_assert that holds in a kernel that debugs")
def _(device):
    x = floats(16)
    return equal(launch(debug_kernel, device, x, out(16), limit=99.0, N=16), x)


@triton.jit
def masked_assert_kernel(x_ptr, out_ptr, n, N: tl.constexpr):
    offs = tl.arange(0, N)
    x = tl.load(x_ptr + offs, mask=offs < n, other=1000.0)
    tl.device_assert(x < 100, "only for the elements that there are", mask=offs < n)
    tl.store(out_ptr + offs, x, mask=offs < n)


@theme("device_assert with a mask")
def _(device):
    x = floats(10)
    return equal(launch(masked_assert_kernel, device, x, out(10), n=10, N=16), x)


@triton.jit
def python_assert_kernel(x_ptr, out_ptr, limit, N: tl.constexpr):
    offs = tl.arange(0, N)
    x = tl.load(x_ptr + offs)
    assert limit > 0, "a limit is positive"
    assert x < limit
    tl.store(out_ptr + offs, x)


@theme("assert that holds")
def _(device):
    x = floats(16)
    return equal(launch(python_assert_kernel, device, x, out(16), limit=99.0, N=16), x)


@theme("assert that fails, not debugging")
def _(device):
    x = floats(16)
    return equal(launch(python_assert_kernel, device, x, out(16), limit=-1.0, N=16), x)


@triton.jit
def hints_kernel(x_ptr, out_ptr, n, stride, N: tl.constexpr):
    tl.assume(n > 0)
    tl.assume(stride % 16 == 0)
    stride = tl.multiple_of(stride, 16)
    offs = tl.arange(0, N)
    offs = tl.max_contiguous(tl.multiple_of(offs, N), N)
    row = tl.program_id(0) * stride
    x = tl.load(x_ptr + row + offs, mask=offs < n)
    tl.store(out_ptr + row + offs, x + tl.max_constancy(offs // 4, 4), mask=offs < n)


@theme("assume, multiple_of, max_contiguous, max_constancy")
def _(device):
    x = floats(4, 32)
    got = launch(hints_kernel, device, x, out(4, 32), grid=(4,), n=32, stride=32, N=32)
    return equal(got, x + torch.arange(32) // 4)


@triton.jit
def assumed_block_kernel(out_ptr, N: tl.constexpr):
    offs = tl.arange(0, N)
    tl.assume(offs < N)
    tl.store(out_ptr + offs, offs)


@theme("assume of a block", rejects=EVERY)
def _(device):
    launch(assumed_block_kernel, device, out(16, dtype=torch.int32), N=16)


@triton.jit
def two_axes_hint_kernel(x_ptr, out_ptr, N: tl.constexpr):
    at = tl.arange(0, N)[:, None] * N + tl.arange(0, N)[None, :]
    at = tl.max_contiguous(tl.multiple_of(at, (N, N)), (1, N))
    tl.store(out_ptr + at, tl.load(x_ptr + at))


@theme("hints for two axes")
def _(device):
    x = floats(8, 8)
    return equal(launch(two_axes_hint_kernel, device, x, out(8, 8), N=8), x)


@triton.jit
def wrapped_hint_kernel(x_ptr, out_ptr, m, BLOCK: tl.constexpr, CLAMP: tl.constexpr):
    """As in the tutorials: the last tile sticks out, and what is brought back is not stored."""
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = offs % m
    if CLAMP:
        inside = tl.where(offs < m, offs, 0)
    inside = tl.max_contiguous(tl.multiple_of(inside, BLOCK), BLOCK)
    tl.store(out_ptr + offs, tl.load(x_ptr + inside), mask=offs < m)


@theme("hints for a tile that is brought back into its tensor",
       not_on_gpu="the last tile may read past the end")
def _(device):
    x = floats(50)
    return [equal(launch(wrapped_hint_kernel, device, x, out(50), grid=(2,), m=50, BLOCK=32,
                         CLAMP=clamp), x) for clamp in (False, True)]


FALSE_HINTS = {
    "multiple_of of a block": "tl.multiple_of(at + 1, 16)",
    "multiple_of of a stride": "tl.multiple_of(stride, 16) + at",
    "multiple_of of a pointer": "tl.load(tl.multiple_of(x_ptr + stride + 1, 16)) + at",
    "multiple_of of two axes": "tl.sum(tl.multiple_of(at[:, None] * 17 + at[None, :], (1, 16)), 1)",
    "max_contiguous of every other element": "tl.max_contiguous(at * 2, 8)",
    "max_contiguous backwards": "tl.max_contiguous(15 - at, 16)",
    "max_contiguous of pairs": "tl.max_contiguous(at // 2, 4)",
    "max_contiguous of the wrong axis":
        "tl.sum(tl.max_contiguous(at[:, None] * 16 + at[None, :], (2, 1)), 1)",
    "max_constancy of a mask": "tl.max_constancy(at < 5, 16).to(tl.int32) + at",
}


def _false_hint(name, hint):
    from .calls import kernel_of

    @theme(f"a false {name}", fails="R01", not_on_gpu="what it does is left open")
    def _(device):
        kernel = kernel_of(name, f"""@triton.jit
def kernel(x_ptr, out_ptr, stride):
    at = tl.arange(0, 16)
    hinted = {hint}
    tl.store(out_ptr + at, tl.load(x_ptr + at) + hinted)
""")
        launch(kernel, device, integers(64), out(16, dtype=torch.int32), stride=24)


for _name, _hint in FALSE_HINTS.items():
    _false_hint(_name, _hint)


@triton.jit
def empty_hint_kernel(x_ptr, out_ptr, N: tl.constexpr):
    offs = tl.multiple_of(tl.arange(0, N), 0)
    tl.store(out_ptr + offs, tl.load(x_ptr + offs))


@theme("a hint that promises nothing", not_on_gpu="what it does is left open")
def _(device):
    x = integers(16)
    return equal(launch(empty_hint_kernel, device, x, out(16, dtype=torch.int32), N=16), x)


@triton.jit
def sometimes_wrong_hint_kernel(x_ptr, out_ptr, step, N: tl.constexpr):
    offs = tl.program_id(0) * step + tl.arange(0, N)
    offs = tl.multiple_of(offs, N)
    tl.store(out_ptr + offs, tl.load(x_ptr + offs))


@theme("a hint that holds in all programs")
def _(device):
    x = integers(64)
    got = launch(sometimes_wrong_hint_kernel, device, x, out(64, dtype=torch.int32), grid=(4,),
                 step=16, N=16)
    return equal(got, x)


@theme("a hint that is false in the second program", fails="R01",
       not_on_gpu="what it does is left open")
def _(device):
    launch(sometimes_wrong_hint_kernel, device, integers(64), out(64, dtype=torch.int32),
           grid=(2,), step=24, N=16)


@triton.jit
def wrong_hint_kernel(x_ptr, out_ptr, N: tl.constexpr):
    offs = tl.max_contiguous(tl.arange(0, N), (N, 1))
    tl.store(out_ptr + offs, tl.load(x_ptr + offs))


@theme("a hint for an axis that is not there", rejects=EVERY)
def _(device):
    launch(wrong_hint_kernel, device, floats(16), out(16), N=16)


@triton.jit
def assembly_kernel(x_ptr, y_ptr, out_ptr, N: tl.constexpr):
    offs = tl.arange(0, N)
    x = tl.load(x_ptr + offs)
    y = tl.load(y_ptr + offs)
    z = tl.inline_asm_elementwise("add.s32 $0, $1, $2;", "=r,r,r", [x, y], dtype=tl.int32,
                                  is_pure=True, pack=1)
    tl.store(out_ptr + offs, z)


@theme("inline_asm_elementwise", differs=_ASSEMBLY)
def _(device):
    x, y = integers(32), integers(32, seed=1)
    got = launch(assembly_kernel, device, x, y, out(32, dtype=torch.int32), N=32)
    return equal(got, x + y)


@triton.jit
def packed_assembly_kernel(x_ptr, out_ptr, N: tl.constexpr):
    offs = tl.arange(0, N)
    x = tl.load(x_ptr + offs)
    low, high = tl.inline_asm_elementwise(
        "{ min.s32 $0, $2, 0; max.s32 $1, $2, 0; }", "=r,=r,r", [x], dtype=(tl.int32, tl.int32),
        is_pure=True, pack=1)
    tl.store(out_ptr + offs, low)
    tl.store(out_ptr + N + offs, high)


@theme("inline_asm_elementwise with two results", differs=_ASSEMBLY)
def _(device):
    x = integers(32)
    got = launch(packed_assembly_kernel, device, x, out(2, 32, dtype=torch.int32), N=32)
    return equal(got, np.stack([np.minimum(exact(x), 0), np.maximum(exact(x), 0)]))


@triton.jit
def bad_assembly_kernel(out_ptr, N: tl.constexpr):
    offs = tl.arange(0, N)
    x = tl.inline_asm_elementwise("there.is.no $0, $1;", "=r,r", [offs], dtype=tl.int32,
                                  is_pure=True, pack=1)
    tl.store(out_ptr + offs, x)


@theme("assembly that does not assemble", rejects=EVERY, differs=_ASSEMBLY)
def _(device):
    launch(bad_assembly_kernel, device, out(32, dtype=torch.int32), N=32)


@triton.jit
def clock_kernel(out_ptr):
    start = tl.extra.cuda.globaltimer()
    tl.store(out_ptr, (tl.extra.cuda.globaltimer() >= start).to(tl.int64))
    tl.store(out_ptr + 1, (tl.extra.cuda.smid() >= 0).to(tl.int64))


@theme("globaltimer and smid", differs="the clock and the place of a program are a GPU's")
def _(device):
    return equal(launch(clock_kernel, device, out(2, dtype=torch.int64)), [1, 1])


@triton.jit
def warps_kernel(out_ptr):
    tl.store(out_ptr, tl.extra.cuda.num_warps())
    tl.store(out_ptr + 1, tl.extra.cuda.num_threads())


@theme("num_warps and num_threads")
def _(device):
    return [equal(launch(warps_kernel, device, out(2, dtype=torch.int32)), [4, 128]),
            equal(launch(warps_kernel, device, out(2, dtype=torch.int32), num_warps=8), [8, 256])]


@triton.jit
def target_kernel(out_ptr):
    if tl.target_info.is_cuda():
        tl.store(out_ptr, 1)
    else:
        tl.store(out_ptr, 0)
    if tl.target_info.cuda_capability_geq(8, 0):
        tl.store(out_ptr + 1, 1)
    else:
        tl.store(out_ptr + 1, 0)


@theme("target_info")
def _(device):
    return equal(launch(target_kernel, device, out(2, dtype=torch.int32)), [1, 1])


@triton.jit
def barrier_kernel(x_ptr, out_ptr, N: tl.constexpr):
    """Docstrings, comments and bare names do nothing."""
    offs = tl.arange(0, N)  # a comment
    x = tl.load(x_ptr + offs)
    tl.debug_barrier()
    x  # noqa: B018
    "a string"
    tl.store(out_ptr + offs, x)


@theme("debug_barrier, docstrings, bare expressions")
def _(device):
    x = floats(16)
    return equal(launch(barrier_kernel, device, x, out(16), N=16), x)


