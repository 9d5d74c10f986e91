"""Right but different: a heuristic picks the width, and a flag drops masks that guard nothing."""

del SUPPORTED


@triton.heuristics(
    {
        "BLOCK_SIZE": lambda args: 256 if args["n_elements"] < 4096 else 1024,
        "EVEN": lambda args: args["n_elements"] % 1024 == 0,
    }
)
@triton.jit
def vector_add_kernel(
    x_ptr, y_ptr, out_ptr, n_elements, BLOCK_SIZE: tl.constexpr, EVEN: tl.constexpr
):
    offs = tl.program_id(0).to(tl.int64) * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
    if EVEN:
        tl.store(out_ptr + offs, tl.load(x_ptr + offs) + tl.load(y_ptr + offs))
    else:
        mask = offs < n_elements
        x = tl.load(x_ptr + offs, mask=mask)
        y = tl.load(y_ptr + offs, mask=mask)
        tl.store(out_ptr + offs, x + y, mask=mask)
