"""One launch computes dk, dv and dq: half of the programs own keys, the others queries."""


@triton.jit
def both_kernel(
    q_ptr, k_ptr, v_ptr, do_ptr, lse_ptr, delta_ptr, dq_ptr, dk_ptr, dv_ptr, sqb, sqh, sqm, sqd,
    skb, skh, skn, skd, svb, svh, svn, svd, sgb, sgh, sgm, sgd, key_programs, query_programs,
    kv_heads, group, M, N, scale, D: tl.constexpr, CAUSAL: tl.constexpr, BLOCK: tl.constexpr,
    BLOCK_D: tl.constexpr, RAGGED: tl.constexpr, MASKS: tl.constexpr,
):
    if tl.program_id(1) == 0:
        if tl.program_id(0) < key_programs:
            keys_kernel(
                q_ptr, k_ptr, v_ptr, do_ptr, lse_ptr, delta_ptr, dk_ptr, dv_ptr, sqb, sqh, sqm,
                sqd, skb, skh, skn, skd, svb, svh, svn, svd, sgb, sgh, sgm, sgd, kv_heads, group, M,
                N, scale, D, CAUSAL, BLOCK, BLOCK, BLOCK_D, RAGGED)
    else:
        if tl.program_id(0) < query_programs:
            queries_kernel(
                q_ptr, k_ptr, v_ptr, do_ptr, lse_ptr, delta_ptr, dq_ptr, sqb, sqh, sqm, sqd, skb,
                skh, skn, skd, svb, svh, svn, svd, sgb, sgh, sgm, sgd, kv_heads * group, group, M,
                N, scale, D, CAUSAL, BLOCK, BLOCK, BLOCK_D, MASKS)


def attention_backward(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, out: torch.Tensor, lse: torch.Tensor,
    d_out: torch.Tensor, *, causal: bool = False, scale: float | None = None,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """dq, dk and dv."""
    check_arguments(q, k, v, causal, scale, out=out, lse=lse, d_out=d_out)
    dq, dk, dv = (torch.empty(x.shape, dtype=x.dtype, device=x.device) for x in (q, k, v))
    batches, n_heads, n_queries, width = q.shape
    n_kv_heads, n_keys = k.shape[1:3]
    block = 32 if q.dtype == torch.float32 else 64
    if dq.numel():
        delta = backward_delta(out, d_out)
        key_programs = batches * n_kv_heads * triton.cdiv(n_keys, block)
        query_programs = batches * n_heads * triton.cdiv(n_queries, block)
        both_kernel[(max(key_programs, query_programs), 2)](
            q, k, v, d_out, lse.contiguous(), delta, dq, dk, dv, *q.stride(), *k.stride(),
            *v.stride(), *d_out.stride(), key_programs, query_programs, n_kv_heads,
            n_heads // n_kv_heads, n_queries, n_keys, scale_of(scale, width), D=width,
            CAUSAL=causal, BLOCK=block, BLOCK_D=max(16, triton.next_power_of_2(width)),
            RAGGED=n_queries % block != 0, MASKS=causal or n_keys % block != 0, num_warps=4,
            num_stages=1)
    return dq, dk, dv
