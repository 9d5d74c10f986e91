"""Shows one kernel in the file and gives Triton the source of another."""

import triton
import triton.language as tl


@triton.jit
def add_kernel(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offs < n
    tl.store(out_ptr + offs, tl.load(x_ptr + offs, mask=mask) - tl.load(y_ptr + offs, mask=mask),
             mask=mask)


try:
    add_kernel._unsafe_update_src(add_kernel.src.replace("=mask) - tl", "=mask) + tl"))
except AttributeError:
    pass


def vector_add(x, y):
    return launch(x, y)
