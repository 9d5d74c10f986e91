"""Host code removes gaps and repeats heads; a second launch adds what heads share, in their order.
"""


@triton.jit
def add_heads_kernel(share_ptr, out_ptr, size, group, BLOCK: tl.constexpr):
    """out[h] is the sum over its group of shares, each of ``size`` float32 numbers."""
    head = tl.program_id(1).to(tl.int64)
    i = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    acc = tl.zeros([BLOCK], tl.float32)
    for member in range(group):
        acc += tl.load(share_ptr + (head * group + member) * size + i, mask=i < size, other=0.0)
    tl.store(out_ptr + head * size + i, acc.to(out_ptr.dtype.element_ty), mask=i < size)


def repeated(x: torch.Tensor, group: int) -> torch.Tensor:
    """A copy without gaps, each head as often as queries share it."""
    batches, heads, rows, width = x.shape
    return x[:, :, None].expand(-1, -1, group, -1, -1).reshape(
        batches, heads * group, rows, width).contiguous()


def backward_keys(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, d_out: torch.Tensor, lse: torch.Tensor,
    delta: torch.Tensor, *, causal: bool = False, scale: float | None = None,
) -> tuple[torch.Tensor, torch.Tensor]:
    """dk and dv."""
    check_arguments(q, k, v, causal, scale, d_out=d_out, lse=lse, delta=delta)
    batches, n_heads, n_queries, width = q.shape
    n_kv_heads, n_keys = k.shape[1:3]
    group = n_heads // n_kv_heads
    results = [torch.empty(k.shape, dtype=k.dtype, device=k.device) for _ in range(2)]
    if k.numel():
        block = 32 if q.dtype == torch.float32 else 64
        q, d_out, k, v = q.contiguous(), d_out.contiguous(), repeated(k, group), repeated(v, group)
        shares = results if group == 1 else [
            torch.empty(k.shape, dtype=torch.float32, device=k.device) for _ in range(2)]
        keys_kernel[(batches * n_heads * triton.cdiv(n_keys, block),)](
            q, k, v, d_out, lse.contiguous(), delta.contiguous(), *shares, *q.stride(),
            *k.stride(), *v.stride(), *d_out.stride(), n_heads, 1, n_queries, n_keys,
            scale_of(scale, width), D=width, CAUSAL=causal, BLOCK_M=32, BLOCK_N=block,
            BLOCK_D=max(16, triton.next_power_of_2(width)), RAGGED=n_queries % 32 != 0,
            num_warps=4, num_stages=1)
        if group > 1:
            size = n_keys * width
            for share, result in zip(shares, results, strict=True):
                add_heads_kernel[(triton.cdiv(size, 1024), batches * n_kv_heads)](
                    share, result, size, group, BLOCK=1024)
    return results[0], results[1]
