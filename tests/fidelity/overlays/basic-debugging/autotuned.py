"""Autotuned blocks, sums reduced step by step, maximum that keeps NaN, compare in NumPy."""

del _first
del _largest

import numpy as np

DIAGNOSES: dict[str, Diagnosis] = {
    "scale": Diagnosis("compile", "size-not-constexpr", "# elements, factor"),
    "col_sum": Diagnosis("compile", "loop-changes-shape", "acc += x.to(tl.float32)"),
    "clip_add": Diagnosis("boundary", "grid-too-small", "clip_add_kernel[(n"),
    "relu": Diagnosis("compile", "no-such-function", "y = tl.relu(x)"),
    "masked_outer": Diagnosis("memory", "operator-precedence", "M) & cols[None, :]"),
    "row_max": Diagnosis("value", "wrong-neutral-element", "cols < N, other=0.0)"),
    "avg_pool1d": Diagnosis("value", "truncating-division", "    first = (padded"),
    "weighted_sum": Diagnosis("dtype", "operands-of-two-types", "tl.load(v_ptr"),
    "first_elem": Diagnosis("compile", "element-of-a-block", "tl.store(out_ptr + row, v[0])"),
}


CONFIGS = [triton.Config({"BLOCK": 128}, num_warps=2), triton.Config({"BLOCK": 512})]


@triton.autotune(configs=CONFIGS, key=["n"])
@triton.jit
def scale_kernel(x_ptr, out_ptr, n, s, BLOCK: tl.constexpr):
    offs = tl.program_id(axis=0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offs, mask=offs < n)
    tl.store(out_ptr + offs, x * s, mask=offs < n)


def scale(x: torch.Tensor, s: float) -> torch.Tensor:
    out = torch.empty_like(x)
    scale_kernel[lambda meta: (triton.cdiv(x.numel(), meta["BLOCK"]),)](x, out, x.numel(), s)
    return out


@triton.jit
def relu_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offs = tl.program_id(axis=0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offs, mask=offs < n, other=0)
    y = tl.maximum(x, 0.0, propagate_nan=tl.PropagateNan.ALL)
    tl.store(out_ptr + offs, y, mask=offs < n)


@triton.jit
def col_sum_kernel(x_ptr, out_ptr, M, N, BLOCK: tl.constexpr):
    cols = tl.program_id(axis=0) * BLOCK + tl.arange(0, BLOCK)
    acc = tl.zeros((BLOCK,), dtype=tl.float32)
    for start in range(0, M, BLOCK):
        rows = start + tl.arange(0, BLOCK)
        mask = (rows[:, None] < M) & (cols[None, :] < N)
        x = tl.load(x_ptr + rows[:, None] * N + cols[None, :], mask=mask, other=0.0)
        acc += tl.sum(x.to(tl.float32), axis=0)
    tl.store(out_ptr + cols, acc.to(out_ptr.dtype.element_ty), mask=cols < N)


def compare(
    actual: torch.Tensor, expected: torch.Tensor, *, rtol: float, atol: float
) -> Comparison:
    """The same in NumPy."""
    if tuple(actual.shape) != tuple(expected.shape):
        raise ValueError(f"shapes {tuple(actual.shape)} and {tuple(expected.shape)} differ")
    a = np.asarray(actual.detach().cpu().double().numpy())
    e = np.asarray(expected.detach().cpu().double().numpy())
    with np.errstate(all="ignore"):
        far = np.abs(a - e)
        finite = np.isfinite(a) & np.isfinite(e)
        one_nan = np.isnan(a) ^ np.isnan(e)
        no_nan = ~np.isnan(a) & ~np.isnan(e)
        one_inf = no_nan & (np.isinf(a) | np.isinf(e)) & (a != e)
        bad = one_nan | one_inf | (finite & (far > atol + rtol * np.abs(e)))
        relative = np.abs(a - e) / np.abs(e)
    indices = np.argwhere(bad)
    first = worst = None
    if len(indices):
        first = tuple(indices[0].tolist())
        sizes = [far[tuple(i)] if finite[tuple(i)] else np.inf for i in indices]
        worst = tuple(indices[int(np.argmax(sizes))].tolist())
    counted = finite & (e != 0)
    text = "equal" if first is None else (
        f"{len(indices)} of {bad.size} are off, first at {first}: "
        f"{float(a[first])!r} instead of {float(e[first])!r}")
    return Comparison(
        first is None, len(indices), int(bad.size), first, worst,
        float(far[finite].max(initial=0.0)), float(relative[counted].max(initial=0.0)),
        int(one_nan.sum()), int(one_inf.sum()), text)
