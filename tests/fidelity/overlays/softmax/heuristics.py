"""Right but different: heuristics pick the width, the warps, and whether a mask is needed."""

from .builtin_softmax import check

del SUPPORTED


@triton.heuristics(
    {
        "BLOCK_SIZE": lambda args: triton.next_power_of_2(args["n_cols"]),
        "EVEN": lambda args: args["n_cols"] == triton.next_power_of_2(args["n_cols"]),
        "num_warps": lambda args: 4 if args["n_cols"] < 4096 else 16,
    }
)
@triton.jit
def softmax_kernel(
    x_ptr, out_ptr, n_cols, stride_x, stride_out, BLOCK_SIZE: tl.constexpr, EVEN: tl.constexpr
):
    row = tl.program_id(0).to(tl.int64)
    cols = tl.arange(0, BLOCK_SIZE)
    if EVEN:
        x = tl.load(x_ptr + row * stride_x + cols)
    else:
        x = tl.load(x_ptr + row * stride_x + cols, mask=cols < n_cols, other=-float("inf"))
    x = x.to(tl.float32)
    numerator = tl.exp(x - tl.max(x, axis=0))
    y = numerator / tl.sum(numerator, axis=0)
    if EVEN:
        tl.store(out_ptr + row * stride_out + cols, y)
    else:
        tl.store(out_ptr + row * stride_out + cols, y, mask=cols < n_cols)


def softmax(x: torch.Tensor) -> torch.Tensor:
    check(x)
    if x.stride(1) != 1:
        x = x.contiguous()
    out = torch.empty(x.shape, dtype=x.dtype, device=x.device)
    if out.numel() == 0:
        return out
    softmax_kernel[(x.shape[0],)](x, out, x.shape[1], x.stride(0), out.stride(0))
    return out
