"""What the right solutions here share, over the solution."""

del is_described
del has_tma


def set_blocks(named_args: dict[str, Any]) -> None:
    """There are no descriptors here."""


def matmul_persistent(
    a: torch.Tensor, b: torch.Tensor, *, num_sms: int | None = None
) -> torch.Tensor:
    check_matrices(a, b)
    check_count("num_sms", num_sms)
    M, K = a.shape
    N = b.shape[1]
    if M == 0 or N == 0 or K == 0:
        return torch.zeros((M, N), dtype=a.dtype, device=a.device)

    c = torch.empty((M, N), dtype=a.dtype, device=a.device)
    programs = sm_count(a) if num_sms is None else num_sms

    def grid(meta: dict[str, Any]) -> tuple[int]:
        tiles = triton.cdiv(M, meta["BLOCK_M"]) * triton.cdiv(N, meta["BLOCK_N"])
        return (min(programs, tiles),)

    matmul_kernel[grid](
        a, b, c, M, N, K,
        a.stride(0), a.stride(1), b.stride(0), b.stride(1), c.stride(0), c.stride(1),
    )
    return c
