"""Right but different: tensor descriptors where the layout allows them."""
from triton.tools.tensor_descriptor import TensorDescriptor

del WrongShape

@triton.jit
def described_kernel(x_desc, out_desc, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr):
    batch = tl.program_id(0)
    row = tl.program_id(1) * BLOCK_M
    col = tl.program_id(2) * BLOCK_N
    tile = x_desc.load([batch, row, col]).reshape(BLOCK_M, BLOCK_N)
    out_desc.store([batch, col, row], tile.T.reshape(1, BLOCK_N, BLOCK_M))


@triton.jit
def strided_kernel(x_ptr, out_ptr, xb, xm, xn, M, N, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr):
    batch = tl.program_id(0).to(tl.int64)
    rows = (tl.program_id(1) * BLOCK_M + tl.arange(0, BLOCK_M).to(tl.int64))[:, None]
    cols = (tl.program_id(2) * BLOCK_N + tl.arange(0, BLOCK_N).to(tl.int64))[None, :]
    mask = (rows < M) & (cols < N)
    tile = tl.load(x_ptr + batch * xb + rows * xm + cols * xn, mask=mask)
    tl.store(out_ptr + (batch * N + cols) * M + rows, tile, mask=mask)


def can_be_described(*tensors: torch.Tensor) -> bool:
    """Rows without gaps; bases and strides that are multiples of 16 bytes."""
    return all(
        t.stride(-1) == 1 and t.data_ptr() % 16 == 0
        and all(0 < step * t.element_size() < 1 << 40 and step * t.element_size() % 16 == 0
                for step in t.stride()[:-1])
        for t in tensors)


def batched_transpose(x: torch.Tensor) -> torch.Tensor:
    check(x)
    n_batch, m, n = x.shape
    out = torch.empty((n_batch, n, m), dtype=x.dtype, device=x.device)
    if 0 in x.shape:
        return out
    rows, cols = choose_tile(m, n, x.element_size())
    grid = (n_batch, triton.cdiv(m, rows), triton.cdiv(n, cols))
    if can_be_described(x, out) and min(rows, cols) * x.element_size() >= 16:
        described_kernel[grid](
            TensorDescriptor.from_tensor(x, [1, rows, cols]),
            TensorDescriptor.from_tensor(out, [1, cols, rows]), BLOCK_M=rows, BLOCK_N=cols)
    else:
        strided_kernel[grid](x, out, *x.stride(), m, n, BLOCK_M=rows, BLOCK_N=cols)
    return out
