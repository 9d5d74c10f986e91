"""Layer norm with its gradients, as a function and as a module, and a step of Adam in place.

    y = x_hat * w + b        x_hat = (x - mean) * rstd        rstd = 1 / sqrt(var + eps)

    dx = rstd * (g - mean(g) - x_hat * mean(g * x_hat))       g = w * dy
    dw = sum over rows of dy * x_hat                          db = sum over rows of dy

    m = b1 * m + (1 - b1) * g        p = (1 - lr * wd) * p
    v = b2 * v + (1 - b2) * g * g    p = p - lr * (m / (1 - b1^t)) / (sqrt(v / (1 - b2^t)) + eps)

Backward needs x, w and two numbers a row; x_hat is computed again, which costs no byte. Few
programs own many rows each: they keep their share of dw and db in registers and store it once, and
a second launch adds the shares, always in the same order. So results have the same bits every time,
and no atomic operation is needed.

Cost: forward reads x and writes y; backward reads x and dy and writes dx, 3 * R * C * itemsize
bytes, and the shares besides (rows of more than 8,192 numbers read x and dy twice); Adam reads four
tensors and writes three, 28 bytes a float32 parameter. All three wait for memory.

Inputs: x of float32, float16 or bfloat16, (..., C) with 1 <= C <= 16,384, any strides; w and b (C,)
of one of these dtypes. A parameter of Adam has one of them, its gradient the same, its moments are
float32. Arithmetic is float32 everywhere, and so are all sums.

Source: Ba, Kiros, Hinton, arXiv:1607.06450; Kingma, Ba, arXiv:1412.6980; the decay apart from the
gradient: Loshchilov, Hutter, arXiv:1711.05101.
"""

from __future__ import annotations

from typing import Any

import torch
import triton
import triton.language as tl
from torch.autograd.function import once_differentiable

MAX_COLUMNS = 16_384  # of a row, which a program holds as a whole
MAX_TOGETHER = 8_192  # up to which a backward program has registers for all it makes: five numbers
# for each column. Beyond, reading dy and x twice, for dx and for the shares, takes less time
MULTIPROCESSORS = 132  # taken where no GPU can be asked: those of an H100 or H200
ROWS_OF_A_SHARE = 8  # at least; a share is written and read, which takes as long as a row or two
BLOCK = 512  # elements of a program of Adam: with 8 warps, two of each tensor for a thread
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
    x_ptr, y_ptr,              # [n_rows, n_cols], each row without gaps
    weight_ptr, bias_ptr,      # [n_cols]
    mean_ptr, rstd_ptr,        # [n_rows], float32
    stride_x, stride_y,        # elements from one row to the next
    n_cols, eps,
    BLOCK_SIZE: tl.constexpr,  # a power of two >= n_cols
):
    """y[m] = (x[m] - mean[m]) * rstd[m] * weight + bias. One program owns row m."""
    row = tl.program_id(axis=0).to(tl.int64)  # row * stride passes 2**31
    cols = tl.arange(0, BLOCK_SIZE)
    mask = cols < n_cols

    x = tl.load(x_ptr + row * stride_x + cols, mask=mask, other=0.0).to(tl.float32)
    weight = tl.load(weight_ptr + cols, mask=mask).to(tl.float32)
    bias = tl.load(bias_ptr + cols, mask=mask).to(tl.float32)

    mean = tl.sum(x, axis=0) / n_cols
    centred = tl.where(mask, x - mean, 0.0)  # padding would be -mean, and its square would count
    rstd = 1.0 / tl.sqrt(tl.sum(centred * centred, axis=0) / n_cols + eps)
    y = centred * rstd * weight + bias

    tl.store(y_ptr + row * stride_y + cols, y.to(y_ptr.dtype.element_ty), mask=mask)
    tl.store(mean_ptr + row, mean)
    tl.store(rstd_ptr + row, rstd)


# ---------------------------------------------------------------------------------------------
# Layer norm, backward


@triton.jit
def backward_kernel(
    dy_ptr, x_ptr, dx_ptr,     # [n_rows, n_cols], each row without gaps
    weight_ptr,                # [n_cols]
    mean_ptr, rstd_ptr,        # [n_rows], float32
    dw_share_ptr, db_share_ptr,  # [num_programs, n_cols], float32
    stride_dy, stride_x, stride_dx,  # elements from one row to the next
    n_rows, n_cols,
    BLOCK_SIZE: tl.constexpr,  # a power of two >= n_cols
    FOR_X: tl.constexpr, FOR_PARAMETERS: tl.constexpr,  # which gradients are asked for
    STAGES: tl.constexpr,      # rows on their way from memory, this one included
):
    """dx, and this program's share of dw and db. One program owns every num_programs-th row.

    Moves 3 * n_rows * n_cols * itemsize bytes for dx, or 2 without it; for each program the weight
    once, and its two shares.
    """
    pid = tl.program_id(axis=0)
    cols = tl.arange(0, BLOCK_SIZE)
    mask = cols < n_cols
    weight = tl.full([BLOCK_SIZE], 0.0, tl.float32)
    if FOR_X:
        weight = tl.load(weight_ptr + cols, mask=mask, other=0.0).to(tl.float32)
    dw = tl.full([BLOCK_SIZE], 0.0, tl.float32)
    db = tl.full([BLOCK_SIZE], 0.0, tl.float32)

    for m in tl.range(pid, n_rows, tl.num_programs(axis=0), num_stages=STAGES):
        row = m.to(tl.int64)  # row * stride passes 2**31
        dy = tl.load(dy_ptr + row * stride_dy + cols, mask=mask, other=0.0).to(tl.float32)
        x = tl.load(x_ptr + row * stride_x + cols, mask=mask, other=0.0).to(tl.float32)
        rstd = tl.load(rstd_ptr + row)
        x_hat = (x - tl.load(mean_ptr + row)) * rstd  # in padding not 0, but dy is

        if FOR_X:
            g = weight * dy
            mean_g = tl.sum(g, axis=0) / n_cols
            mean_gx = tl.sum(g * x_hat, axis=0) / n_cols
            dx = rstd * (g - mean_g - x_hat * mean_gx)
            tl.store(dx_ptr + row * stride_dx + cols, dx.to(dx_ptr.dtype.element_ty), mask=mask)
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
    """dw and db are the sums of all shares. One program owns BLOCK_COLS columns of both.

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
    """Layer norm of (..., C) as one node of the graph; ``layer_norm`` checks the arguments."""

    @staticmethod
    def forward(
        ctx: Any, x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor, eps: float
    ) -> torch.Tensor:
        """y, new and contiguous, of the shape and dtype of x."""
        rows, weight, bias = as_rows(x), weight.contiguous(), bias.contiguous()
        n_rows, n_cols = rows.shape
        y = torch.empty(x.shape, dtype=x.dtype, device=x.device)
        mean, rstd = torch.empty((2, n_rows), dtype=torch.float32, device=x.device)
        if n_rows:
            block_size = triton.next_power_of_2(n_cols)
            num_warps = 4 if block_size <= 2048 else 8 if block_size <= 8192 else 16
            forward_kernel[(n_rows,)](
                rows, y, weight, bias, mean, rstd, rows.stride(0), n_cols, n_cols, eps,
                BLOCK_SIZE=block_size, num_warps=num_warps,
            )
        ctx.save_for_backward(rows, weight, mean, rstd)
        ctx.shape = x.shape
        return y

    @staticmethod
    @once_differentiable
    def backward(
        ctx: Any, dy: torch.Tensor
    ) -> tuple[torch.Tensor | None, torch.Tensor | None, torch.Tensor | None, None]:
        """The gradients that are asked for, None for the others and for eps."""
        x, weight, mean, rstd = ctx.saved_tensors
        for_x, for_weight, for_bias, _ = ctx.needs_input_grad
        for_parameters = for_weight or for_bias
        n_rows, n_cols = x.shape
        dy = as_rows(dy)

        # What is not asked for takes no memory: its pointer is one that nothing is stored to.
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
        for now_x, now_parameters in launches if n_rows else []:
            backward_kernel[(programs,)](
                dy, x, dx, weight, mean, rstd, shares[0], shares[-1],
                dy.stride(0), x.stride(0), dx.stride(0), n_rows, n_cols,
                BLOCK_SIZE=block_size, FOR_X=now_x, FOR_PARAMETERS=now_parameters,
                STAGES=2 if block_size <= MAX_TOGETHER else 1,  # one row fills shared memory
                num_warps=num_warps,
            )
        if for_parameters:
            block_cols = 32  # few, so that many programs share the reading
            add_shares_kernel[(triton.cdiv(n_cols, block_cols),)](
                shares[0], shares[1], dw, db, programs, n_cols,
                BLOCK_ROWS=32, BLOCK_COLS=block_cols,
            )
        return (dx.view(ctx.shape) if for_x else None, dw if for_weight else None,
                db if for_bias else None, None)


def layer_norm(
    x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor, eps: float = 1e-5
) -> torch.Tensor:
    """Normalize x (..., C) over its last dimension, then scale and shift by column. Differentiable.

    Args:
        x: float32, float16 or bfloat16, with 1 <= C <= 16,384; any strides.
        weight: (C,), of one of these dtypes; ``bias`` is of the same.
        eps: added to the variance, above 0.

    Returns:
        A new contiguous tensor of the shape, dtype and device of x.

    Raises:
        TypeError: an argument has a wrong type, or a dtype that is not supported or not alike.
        ValueError: a shape, a device, or eps is not as said.
    """
    check_layer_norm(x, weight, bias, eps)
    return LayerNormFunction.apply(x, weight, bias, float(eps))


class TritonLayerNorm(torch.nn.Module):
    """``torch.nn.LayerNorm`` over one dimension: the same parameters by the same names."""

    def __init__(
        self, normalized_shape: int, eps: float = 1e-5, *,
        device: torch.device | str | None = None, dtype: torch.dtype | None = None,
    ) -> None:
        """A weight of ones and a bias of zeros, for the last dimension of what is normalized.

        Raises:
            TypeError: ``normalized_shape`` is no int.
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
        """``layer_norm`` of x (..., C) with the parameters of this module."""
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
    beta1, rest1, beta2, rest2,   # rest = 1 - beta: in float32 it would lose what 0.999 rounds away
    root, eps,                    # sqrt(1 - beta2^step)
    BLOCK: tl.constexpr,
):
    """One step of Adam on BLOCK elements. Moves 28 bytes for each float32 parameter."""
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
    """One step of Adam with decoupled weight decay: changes ``param`` and both moments in place.

    Args:
        param: float32, float16 or bfloat16, any shape, contiguous.
        grad: of the same shape and dtype, any strides.
        exp_avg: the first moment, float32, of the same shape, contiguous; so is ``exp_avg_sq``.
        step: how many steps there are with this one, from 1.
        eps: added to the root of the second moment.
        weight_decay: before the step, param is multiplied by 1 - lr * weight_decay.

    Raises:
        TypeError: an argument is no tensor, or a dtype is not as said.
        ValueError: step < 1, a beta outside [0, 1), or a shape, a device or a layout not as said.
    """
    check_adam(param, grad, exp_avg, exp_avg_sq, step, beta1, beta2)
    n = param.numel()
    if n:
        # In Python's double precision: near 1, float32 has no digits to spare.
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
    """x (..., C) as a matrix whose rows have no gaps, copied only where it has to be."""
    x = x.reshape(-1, x.shape[-1])
    return x if x.stride(1) == 1 or x.shape[1] == 1 else x.contiguous()


def resident(x: torch.Tensor, block_size: int) -> int:
    """How many backward programs of this width a GPU has room for at the same time.

    For each number of a row, the threads of a program need about eight registers, and an
    SM has 65,536.
    """
    each = max(1, min(16, 8192 // block_size))
    if x.is_cuda:
        return each * torch.cuda.get_device_properties(x.device).multi_processor_count
    return each * MULTIPROCESSORS


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
        if not tensor.is_contiguous():  # a copy would be changed in its place
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
    """Refuse what is no tensor, or not of a supported dtype.

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
