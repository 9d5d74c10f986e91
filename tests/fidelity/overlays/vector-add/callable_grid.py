"""Right but different: the grid is a function of the meta-parameters; 256 wide, two warps."""

del SUPPORTED


def vector_add(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    check(x, y)
    out = torch.empty(x.shape, dtype=x.dtype, device=x.device)
    n = x.numel()
    if not n:
        return out

    def grid(meta: dict[str, int]) -> tuple[int]:
        return (triton.cdiv(n, meta["BLOCK_SIZE"]),)

    vector_add_kernel[grid](x.contiguous(), y.contiguous(), out, n, BLOCK_SIZE=256, num_warps=2)
    return out
