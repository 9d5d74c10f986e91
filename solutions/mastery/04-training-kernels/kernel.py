"""Layer norm with its gradients, as a function and as a module, and an in-place Adam step.

    y = x_hat * w + b        x_hat = (x - mean) * rstd        rstd = 1 / sqrt(var + eps)

    dx = rstd * (g - mean(g) - x_hat * mean(g * x_hat))       g = w * dy
    dw = sum over rows of dy * x_hat                          db = sum over rows of dy

    m = b1 * m + (1 - b1) * g        p = (1 - lr * wd) * p
    v = b2 * v + (1 - b2) * g * g    p = p - lr * (m / (1 - b1^t)) / (sqrt(v / (1 - b2^t)) + eps)

Backward needs x, w and two numbers per row; recomputing x_hat moves no bytes. Few programs own many
rows each: they accumulate a partial dw and db in registers and store it once, and a second launch
sums the partial results in a fixed order. Results are bitwise reproducible without atomics.

Cost: forward reads x and writes y; backward reads x and dy and writes dx, 3 * R * C * itemsize
bytes plus the partial sums (rows of more than 8,192 elements read x and dy twice); Adam reads four
tensors and writes three, 28 bytes per float32 parameter. All three are memory-bound.

Inputs: x (..., C) in float32, float16 or bfloat16 with 1 <= C <= 16,384, any strides; w and b (C,)
in one of these dtypes. A parameter of Adam and its gradient have one of them, its moments are
float32. Arithmetic and all sums are float32.

Source: Ba, Kiros, Hinton, arXiv:1607.06450; Kingma, Ba, arXiv:1412.6980; decoupled weight decay:
Loshchilov, Hutter, arXiv:1711.05101.
"""

from __future__ import annotations

import math
from typing import Any

import torch
import triton
import triton.language as tl
from torch.autograd.function import once_differentiable

MAX_COLUMNS = 16_384  # a program holds a whole row
MAX_TOGETHER = 8_192  # columns; up to here, registers suffice for five numbers per column. For
# wider rows it is faster to read dy and x twice, for dx and for the partial sums
SM_COUNT = 132  # SMs of an H100 or H200, used without a GPU
ROWS_OF_A_SHARE = 8  # at least: writing and reading a partial sum costs as much as one or two rows
BLOCK = 512  # elements per program of Adam: two per tensor and thread with 8 warps
SUPPORTED = (torch.float32, torch.float16, torch.bfloat16)

DESIGN = {
    "layer_norm": {
        "flops": "8 * R * C", "bytes": "2 * R * C * e + 2 * C * e + 8 * R", "bound": "memory",
        "grid": "R", "tile": "next_power_of_2(C)",
    },
    "layer_norm_backward": {
        "flops": "13 * R * C", "bytes": "3 * R * C * e + 3 * C * e + 8 * R", "bound": "memory",
        "grid": "G", "tile": "cdiv(R, G) * next_power_of_2(C)",
    },
    "adam_step_": {
        "flops": "14 * n", "bytes": "3 * n * e + 16 * n", "bound": "memory",
        "grid": "cdiv(n, BLOCK)", "tile": "BLOCK",
    },
}


# ---------------------------------------------------------------------------------------------
# Layer norm, forward


@triton.jit
def forward_kernel(
    x_ptr, y_ptr,              # [n_rows, n_cols], contiguous within a row
    weight_ptr, bias_ptr,      # [n_cols]
    mean_ptr, rstd_ptr,        # [n_rows], float32
    stride_x, stride_y,        # elements between rows
    n_cols, eps,
    BLOCK_SIZE: tl.constexpr,  # power of two >= n_cols
    ALIGN: tl.constexpr = 1,   # power of two that divides n_cols and the strides
):
    """y[m] = (x[m] - mean[m]) * rstd[m] * weight + bias. One program owns row m."""
    row = tl.program_id(axis=0).to(tl.int64)  # row * stride passes 2**31
    cols = tl.arange(0, BLOCK_SIZE)
    # Without these hints, only multiples of 16 columns are loaded 16 bytes at a time.
    mask = tl.max_constancy(cols < n_cols, ALIGN)
    x_start, y_start = tl.multiple_of(row * stride_x, ALIGN), tl.multiple_of(row * stride_y, ALIGN)

    x = tl.load(x_ptr + x_start + cols, mask=mask, other=0.0).to(tl.float32)
    weight = tl.load(weight_ptr + cols, mask=mask).to(tl.float32)
    bias = tl.load(bias_ptr + cols, mask=mask).to(tl.float32)

    mean = tl.sum(x, axis=0) / n_cols
    centered = tl.where(mask, x - mean, 0.0)  # padding would contribute mean**2
    rstd = 1.0 / tl.sqrt(tl.sum(centered * centered, axis=0) / n_cols + eps)
    y = centered * rstd * weight + bias

    tl.store(y_ptr + y_start + cols, y.to(y_ptr.dtype.element_ty), mask=mask)
    tl.store(mean_ptr + row, mean)
    tl.store(rstd_ptr + row, rstd)


# ---------------------------------------------------------------------------------------------
# Layer norm, backward


@triton.jit
def backward_kernel(
    dy_ptr, x_ptr, dx_ptr,     # [n_rows, n_cols], contiguous within a row
    weight_ptr,                # [n_cols]
    mean_ptr, rstd_ptr,        # [n_rows], float32
    dw_share_ptr, db_share_ptr,  # [num_programs, n_cols], float32
    stride_dy, stride_x, stride_dx,  # elements between rows
    n_rows, n_cols,
    BLOCK_SIZE: tl.constexpr,  # power of two >= n_cols
    FOR_X: tl.constexpr, FOR_PARAMETERS: tl.constexpr,  # the requested gradients
    STAGES: tl.constexpr,      # rows in flight, including this one
    ALIGN: tl.constexpr = 1,   # power of two that divides n_cols and the strides
):
    """dx and partial dw and db. One program owns every num_programs-th row.

    Moves 3 * n_rows * n_cols * itemsize bytes for dx, or 2 without it; for each program the weight
    once, and its two shares.
    """
    pid = tl.program_id(axis=0)
    cols = tl.arange(0, BLOCK_SIZE)
    mask = tl.max_constancy(cols < n_cols, ALIGN)
    weight = tl.full([BLOCK_SIZE], 0.0, tl.float32)
    if FOR_X:
        weight = tl.load(weight_ptr + cols, mask=mask, other=0.0).to(tl.float32)
    dw = tl.full([BLOCK_SIZE], 0.0, tl.float32)
    db = tl.full([BLOCK_SIZE], 0.0, tl.float32)

    for m in tl.range(pid, n_rows, tl.num_programs(axis=0), num_stages=STAGES):
        row = m.to(tl.int64)  # row * stride passes 2**31
        dy_row = dy_ptr + tl.multiple_of(row * stride_dy, ALIGN)
        x_row = x_ptr + tl.multiple_of(row * stride_x, ALIGN)
        dy = tl.load(dy_row + cols, mask=mask, other=0.0).to(tl.float32)
        x = tl.load(x_row + cols, mask=mask, other=0.0).to(tl.float32)
        rstd = tl.load(rstd_ptr + row)
        x_hat = (x - tl.load(mean_ptr + row)) * rstd  # nonzero in padding, where dy is 0

        if FOR_X:
            g = weight * dy
            mean_g = tl.sum(g, axis=0) / n_cols
            mean_gx = tl.sum(g * x_hat, axis=0) / n_cols
            dx = rstd * (g - mean_g - x_hat * mean_gx)
            dx_row = dx_ptr + tl.multiple_of(row * stride_dx, ALIGN)
            tl.store(dx_row + cols, dx.to(dx_ptr.dtype.element_ty), mask=mask)
        if FOR_PARAMETERS:
            dw += dy * x_hat
            db += dy

    if FOR_PARAMETERS:
        share = pid.to(tl.int64) * n_cols + cols
        tl.store(dw_share_ptr + share, dw, mask=mask)
        tl.store(db_share_ptr + share, db, mask=mask)


@triton.jit
def add_shares_kernel(
    dw_share_ptr, db_share_ptr,  # [n_shares, n_cols], float32
    dw_ptr, db_ptr,              # [n_cols]
    n_shares, n_cols,
    BLOCK_ROWS: tl.constexpr, BLOCK_COLS: tl.constexpr,
):
    """dw and db are the sums of the partial results. One program owns BLOCK_COLS columns.

    The order of the additions is that of the shares, so the bits are the same every time.
    """
    cols = tl.program_id(axis=0) * BLOCK_COLS + tl.arange(0, BLOCK_COLS)
    dw = tl.full([BLOCK_ROWS, BLOCK_COLS], 0.0, tl.float32)
    db = tl.full([BLOCK_ROWS, BLOCK_COLS], 0.0, tl.float32)
    for start in range(0, n_shares, BLOCK_ROWS):
        shares = start + tl.arange(0, BLOCK_ROWS)
        mask = (shares < n_shares)[:, None] & (cols < n_cols)[None, :]
        offs = shares[:, None].to(tl.int64) * n_cols + cols[None, :]
        dw += tl.load(dw_share_ptr + offs, mask=mask, other=0.0)
        db += tl.load(db_share_ptr + offs, mask=mask, other=0.0)
    mask = cols < n_cols
    tl.store(dw_ptr + cols, tl.sum(dw, axis=0).to(dw_ptr.dtype.element_ty), mask=mask)
    tl.store(db_ptr + cols, tl.sum(db, axis=0).to(db_ptr.dtype.element_ty), mask=mask)


# ---------------------------------------------------------------------------------------------
# For PyTorch


class LayerNormFunction(torch.autograd.Function):
    """Layer norm as one node of the autograd graph; ``layer_norm`` checks the arguments."""

    @staticmethod
    def forward(
        ctx: Any, x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor, eps: float
    ) -> torch.Tensor:
        """Returns y, new and contiguous, with the shape and dtype of x."""
        rows, weight, bias = as_rows(x), weight.contiguous(), bias.contiguous()
        n_rows, n_cols = rows.shape
        y = torch.empty(x.shape, dtype=x.dtype, device=x.device)
        mean, rstd = torch.empty((2, n_rows), dtype=torch.float32, device=x.device)
        if n_rows:
            block_size = triton.next_power_of_2(n_cols)
            num_warps = 4 if block_size <= 2048 else 8 if block_size <= 8192 else 16
            forward_kernel[(n_rows,)](
                rows, y, weight, bias, mean, rstd, rows.stride(0), n_cols, n_cols, eps,
                BLOCK_SIZE=block_size, ALIGN=math.gcd(16, n_cols, rows.stride(0)),
                num_warps=num_warps,
            )
        ctx.save_for_backward(rows, weight, mean, rstd)
        ctx.shape = x.shape
        return y

    @staticmethod
    @once_differentiable
    def backward(
        ctx: Any, dy: torch.Tensor
    ) -> tuple[torch.Tensor | None, torch.Tensor | None, torch.Tensor | None, None]:
        """Returns the requested gradients, and None for the others and for eps."""
        x, weight, mean, rstd = ctx.saved_tensors
        for_x, for_weight, for_bias, _ = ctx.needs_input_grad
        for_parameters = for_weight or for_bias
        n_rows, n_cols = x.shape
        dy = as_rows(dy)

        # Gradients that are not requested take no memory; nothing is stored through their pointers.
        dx = torch.empty((n_rows, n_cols), dtype=x.dtype, device=x.device) if for_x else dy
        dw = db = shares = mean[None, None]
        block_size = triton.next_power_of_2(n_cols)
        programs = min(resident(x, block_size), n_rows)
        if for_parameters:
            programs = min(programs, triton.cdiv(n_rows, ROWS_OF_A_SHARE))
            shares = torch.empty((2, programs, n_cols), dtype=torch.float32, device=x.device)
            dw, db = torch.empty((2, n_cols), dtype=weight.dtype, device=x.device)
        launches = [(for_x, for_parameters)]
        if for_x and for_parameters and block_size > MAX_TOGETHER:
            launches = [(True, False), (False, True)]
        num_warps = 4 if block_size <= 1024 else 8 if block_size <= 4096 else 16
        # Rows in flight: the next ones are loaded meanwhile. Three rows hide more latency than two,
        # as long as the shared memory of an SM has room for the rows of all its programs; a single
        # row of more than MAX_TOGETHER columns fills it. On an H200, three instead of two are 1.25
        # times as fast for 4,096 columns of float16, and 1.4 times for 5,000 of float32.
        stages = 3 if x.element_size() == 2 or block_size == MAX_TOGETHER else 2
        align = math.gcd(16, n_cols, dy.stride(0), x.stride(0))
        for now_x, now_parameters in launches if n_rows else []:
            backward_kernel[(programs,)](
                dy, x, dx, weight, mean, rstd, shares[0], shares[-1],
                dy.stride(0), x.stride(0), dx.stride(0), n_rows, n_cols,
                BLOCK_SIZE=block_size, FOR_X=now_x, FOR_PARAMETERS=now_parameters,
                STAGES=stages if block_size <= MAX_TOGETHER else 1, ALIGN=align,
                num_warps=num_warps,
            )
        if for_parameters:
            block_cols = 32  # small, so that many programs take part
            add_shares_kernel[(triton.cdiv(n_cols, block_cols),)](
                shares[0], shares[1], dw, db, programs, n_cols,
                BLOCK_ROWS=32, BLOCK_COLS=block_cols,
            )
        return (dx.view(ctx.shape) if for_x else None, dw if for_weight else None,
                db if for_bias else None, None)


def layer_norm(
    x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor, eps: float = 1e-5
) -> torch.Tensor:
    """Normalizes x (..., C) over its last dimension, then scales and shifts it. Differentiable.

    Args:
        x: float32, float16 or bfloat16, with 1 <= C <= 16,384; any strides.
        weight: (C,), of one of these dtypes; ``bias`` is of the same.
        eps: added to the variance, above 0.

    Returns:
        A new contiguous tensor of the shape, dtype and device of x.

    Raises:
        TypeError: an argument has the wrong type, or dtypes are unsupported or differ.
        ValueError: a shape, a device or eps is invalid.
    """
    check_layer_norm(x, weight, bias, eps)
    return LayerNormFunction.apply(x, weight, bias, float(eps))


class TritonLayerNorm(torch.nn.Module):
    """``torch.nn.LayerNorm`` over one dimension, with the same parameter names."""

    def __init__(
        self, normalized_shape: int, eps: float = 1e-5, *,
        device: torch.device | str | None = None, dtype: torch.dtype | None = None,
    ) -> None:
        """Creates a weight of ones and a bias of zeros for the last dimension.

        Raises:
            TypeError: ``normalized_shape`` is not an int.
            ValueError: ``normalized_shape`` is below 1 or above 16,384.
        """
        super().__init__()
        if isinstance(normalized_shape, bool) or not isinstance(normalized_shape, int):
            name = type(normalized_shape).__name__
            raise TypeError(f"normalized_shape: expected an int, got {name}")
        if not 1 <= normalized_shape <= MAX_COLUMNS:
            raise ValueError(
                f"normalized_shape: expected 1 to {MAX_COLUMNS}, got {normalized_shape}")
        self.normalized_shape = (normalized_shape,)
        self.eps = eps
        self.weight = torch.nn.Parameter(torch.ones(normalized_shape, device=device, dtype=dtype))
        self.bias = torch.nn.Parameter(torch.zeros(normalized_shape, device=device, dtype=dtype))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Returns ``layer_norm`` of x (..., C) with the parameters of this module."""
        return layer_norm(x, self.weight, self.bias, self.eps)

    def extra_repr(self) -> str:
        return f"{self.normalized_shape}, eps={self.eps}"


# ---------------------------------------------------------------------------------------------
# Adam


@triton.jit
def adam_kernel(
    param_ptr, grad_ptr,          # [n], of one dtype
    exp_avg_ptr, exp_avg_sq_ptr,  # [n], float32
    n,
    keep, step_size,              # 1 - lr * weight_decay, lr / (1 - beta1^step)
    beta1, rest1, beta2, rest2,   # rest = 1 - beta, computed in double precision
    root, eps,                    # sqrt(1 - beta2^step)
    BLOCK: tl.constexpr,
):
    """One Adam step for BLOCK elements. Moves 28 bytes per float32 parameter."""
    offs = tl.program_id(axis=0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    mask = offs < n
    param = tl.load(param_ptr + offs, mask=mask).to(tl.float32)
    grad = tl.load(grad_ptr + offs, mask=mask).to(tl.float32)
    exp_avg = tl.load(exp_avg_ptr + offs, mask=mask)
    exp_avg_sq = tl.load(exp_avg_sq_ptr + offs, mask=mask)

    exp_avg = beta1 * exp_avg + rest1 * grad
    exp_avg_sq = beta2 * exp_avg_sq + rest2 * grad * grad
    param = keep * param - step_size * exp_avg / (tl.sqrt(exp_avg_sq) / root + eps)

    tl.store(exp_avg_ptr + offs, exp_avg, mask=mask)
    tl.store(exp_avg_sq_ptr + offs, exp_avg_sq, mask=mask)
    tl.store(param_ptr + offs, param.to(param_ptr.dtype.element_ty), mask=mask)


def adam_step_(
    param: torch.Tensor, grad: torch.Tensor, exp_avg: torch.Tensor, exp_avg_sq: torch.Tensor, *,
    step: int, lr: float = 1e-3, beta1: float = 0.9, beta2: float = 0.999, eps: float = 1e-8,
    weight_decay: float = 0.0,
) -> None:
    """Adam step with decoupled weight decay; updates ``param`` and both moments in place.

    Args:
        param: float32, float16 or bfloat16, any shape, contiguous.
        grad: of the same shape and dtype, any strides.
        exp_avg: the first moment, float32, of the same shape, contiguous; so is ``exp_avg_sq``.
        step: number of this step, counted from 1.
        eps: added to the square root of the second moment.
        weight_decay: before the step, param is multiplied by 1 - lr * weight_decay.

    Raises:
        TypeError: an argument is not a tensor, or has an invalid dtype.
        ValueError: step < 1, a beta outside [0, 1), or an invalid shape, device or layout.
    """
    check_adam(param, grad, exp_avg, exp_avg_sq, step, beta1, beta2)
    n = param.numel()
    if n:
        # In double precision: 1 - beta**step cancels for small steps.
        adam_kernel[(triton.cdiv(n, BLOCK),)](
            param, grad.contiguous(), exp_avg, exp_avg_sq, n,
            1 - lr * weight_decay, lr / (1 - beta1**step),
            beta1, 1 - beta1, beta2, 1 - beta2,
            (1 - beta2**step) ** 0.5, eps,
            BLOCK=BLOCK, num_warps=8,
        )


# ---------------------------------------------------------------------------------------------
# Layouts, sizes and checks


def as_rows(x: torch.Tensor) -> torch.Tensor:
    """Returns x (..., C) as a matrix with contiguous rows, copied only if necessary."""
    x = x.reshape(-1, x.shape[-1])
    return x if x.stride(1) == 1 or x.shape[1] == 1 else x.contiguous()


def resident(x: torch.Tensor, block_size: int) -> int:
    """Returns how many backward programs of this width fit on the GPU at once.

    For each number of a row, the threads of a program need about eight registers, and an
    SM has 65,536.
    """
    each = max(1, min(16, 8192 // block_size))
    if x.is_cuda:
        return each * torch.cuda.get_device_properties(x.device).multi_processor_count
    return each * SM_COUNT


def check_layer_norm(
    x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor, eps: float
) -> None:
    """Refuse what ``layer_norm`` does not cover; raises what it says."""
    for name, tensor in (("x", x), ("weight", weight), ("bias", bias)):
        check_tensor(name, tensor)
    if x.dim() == 0 or not 1 <= x.shape[-1] <= MAX_COLUMNS:
        raise ValueError(
            f"x: expected 1 to {MAX_COLUMNS} columns, got shape {tuple(x.shape)}")
    if bias.dtype != weight.dtype:
        raise TypeError(f"bias: expected {weight.dtype}, the dtype of weight, got {bias.dtype}")
    for name, tensor in (("weight", weight), ("bias", bias)):
        if tensor.shape != x.shape[-1:]:
            raise ValueError(f"{name}: expected shape {tuple(x.shape[-1:])}, one for each column, "
                             f"got {tuple(tensor.shape)}")
        if tensor.device != x.device:
            raise ValueError(f"{name}: expected device {x.device}, got {tensor.device}")
    if isinstance(eps, bool) or not isinstance(eps, int | float):
        raise TypeError(f"eps: expected a number, got {type(eps).__name__}")
    if not eps > 0:
        raise ValueError(f"eps: expected a number above 0, got {eps}")


def check_adam(
    param: torch.Tensor, grad: torch.Tensor, exp_avg: torch.Tensor, exp_avg_sq: torch.Tensor,
    step: int, beta1: float, beta2: float,
) -> None:
    """Refuse what ``adam_step_`` does not cover; raises what it says."""
    check_tensor("param", param)
    check_tensor("grad", grad, (param.dtype,))
    for name, moment in (("exp_avg", exp_avg), ("exp_avg_sq", exp_avg_sq)):
        check_tensor(name, moment, (torch.float32,))
    for name, tensor in (("grad", grad), ("exp_avg", exp_avg), ("exp_avg_sq", exp_avg_sq)):
        if tensor.shape != param.shape:
            raise ValueError(f"{name}: expected shape {tuple(param.shape)}, "
                             f"got {tuple(tensor.shape)}")
        if tensor.device != param.device:
            raise ValueError(f"{name}: expected device {param.device}, got {tensor.device}")
    for name, tensor in (("param", param), ("exp_avg", exp_avg), ("exp_avg_sq", exp_avg_sq)):
        if not tensor.is_contiguous():  # a copy would be updated instead
            raise ValueError(f"{name}: expected a contiguous tensor, got strides "
                             f"{tensor.stride()} for shape {tuple(tensor.shape)}")
    if isinstance(step, bool) or not isinstance(step, int):
        raise TypeError(f"step: expected an int, got {type(step).__name__}")
    if step < 1:
        raise ValueError(f"step: expected at least 1, got {step}")
    for name, beta in (("beta1", beta1), ("beta2", beta2)):
        if not 0 <= beta < 1:
            raise ValueError(f"{name}: expected a number in [0, 1), got {beta}")


def check_tensor(
    name: str, x: object, supported: tuple[torch.dtype, ...] = SUPPORTED
) -> None:
    """Rejects anything but a tensor of a supported dtype.

    Raises:
        TypeError: that is so.
    """
    if not isinstance(x, torch.Tensor):
        raise TypeError(f"{name}: expected a torch.Tensor, got {type(x).__name__}")
    if x.dtype not in supported:
        names = ", ".join(map(str, supported))
        raise TypeError(f"{name}: expected {names}, got {x.dtype}")


if __name__ == "__main__":
    import tritonlab

    tritonlab.run_public_cases(__file__)
