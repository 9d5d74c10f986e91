"""Tuners and hooks, PyTorch around kernels, and what Triton tells the host."""

from __future__ import annotations

import torch
import triton
import triton.language as tl
import triton.testing

from .construct import Theme, equal, near
from .launching import add_kernel
from .values import exact, floats, integers, launch, out

theme = Theme("tuning and the host")

_NO_DRIVER = "the engine alone has no GPU to measure; in a grade the target is told of"
_NOTHING_COMPILED = "an interpreted kernel is not compiled: the compile gate's job"


@triton.autotune(configs=[triton.Config({"BLOCK": 16}), triton.Config({"BLOCK": 64}, num_warps=2),
                          triton.Config({"BLOCK": 32}, num_stages=2)], key=["n"])
@triton.jit
def tuned_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + offs, tl.load(x_ptr + offs, mask=offs < n) * 2, mask=offs < n)


def _grid(meta):
    return (triton.cdiv(meta["n"], meta["BLOCK"]),)


@theme("autotune with several configurations", configurations=3)
def _(device):
    x = floats(100)
    return equal(launch(tuned_kernel, device, x, out(100), 100, grid=_grid), 2 * x)


@triton.autotune(configs=[triton.Config({"BLOCK": 32})], key=[])
@triton.jit
def tuned_once_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + offs, tl.load(x_ptr + offs, mask=offs < n) * 2, mask=offs < n)


@theme("autotune with one configuration")
def _(device):
    x = floats(100)
    return equal(launch(tuned_once_kernel, device, x, out(100), 100, grid=_grid), 2 * x)


@triton.autotune(configs=[triton.Config({"BLOCK": size}) for size in (16, 32, 64)], key=["n"],
                 reset_to_zero=["out_ptr"])
@triton.jit
def reset_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offs, mask=offs < n, other=0)
    tl.atomic_add(out_ptr, tl.sum(x, axis=0))


@theme("autotune with reset_to_zero", configurations=3)
def _(device):
    x = integers(100)
    got = launch(reset_kernel, device, x, out(1, dtype=torch.int32, fill=0), 100, grid=_grid)
    return equal(got, [exact(x).sum()])


@triton.autotune(configs=[triton.Config({"BLOCK": size}) for size in (16, 32)], key=["n"],
                 restore_value=["x_ptr"])
@triton.jit
def restore_kernel(x_ptr, n, BLOCK: tl.constexpr):
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(x_ptr + offs, tl.load(x_ptr + offs, mask=offs < n) + 1, mask=offs < n)


@theme("autotune with restore_value of what is changed in place", configurations=2)
def _(device):
    x = integers(100)
    result = x.to(device, copy=True)
    restore_kernel[_grid](result, 100)
    return equal(result, x + 1)


def _small_only(configs, named_args, **_):
    return [config for config in configs if config.kwargs["BLOCK"] <= named_args["n"] // 4]


@triton.autotune(configs=[triton.Config({"BLOCK": size}) for size in (16, 32, 1024)], key=["n"],
                 prune_configs_by={"early_config_prune": _small_only})
@triton.jit
def pruned_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    tl.static_assert(BLOCK < 1024)
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + offs, tl.load(x_ptr + offs, mask=offs < n) * 3, mask=offs < n)


@theme("autotune that prunes configurations", configurations=2)
def _(device):
    x = integers(200)
    got = launch(pruned_kernel, device, x, out(200, dtype=torch.int32), 200, grid=_grid)
    return equal(got, 3 * x)


def _clear(arguments):
    arguments["out_ptr"].fill_(0)


@triton.autotune(configs=[triton.Config({"BLOCK": size}, pre_hook=_clear) for size in (16, 32)],
                 key=["n"])
@triton.jit
def hooked_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offs, mask=offs < n, other=0)
    tl.atomic_add(out_ptr, tl.sum(x, axis=0))


@theme("autotune with a pre_hook of each configuration", configurations=2)
def _(device):
    x = integers(100)
    got = launch(hooked_kernel, device, x, out(1, dtype=torch.int32, fill=99), 100, grid=_grid)
    return equal(got, [exact(x).sum()])


@triton.heuristics({"BLOCK": lambda args: triton.next_power_of_2(args["n"]),
                    "EVEN": lambda args: args["n"] % 2 == 0})
@triton.jit
def heuristic_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr, EVEN: tl.constexpr):
    offs = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offs, mask=offs < n)
    tl.store(out_ptr + offs, x if EVEN else -x, mask=offs < n)


@theme("heuristics")
def _(device):
    even, odd = integers(10), integers(9)
    return [equal(launch(heuristic_kernel, device, even, out(10, dtype=torch.int32), 10), even),
            equal(launch(heuristic_kernel, device, odd, out(9, dtype=torch.int32), 9), -odd)]


@triton.autotune(configs=[triton.Config({"BLOCK": 16}), triton.Config({"BLOCK": 32})], key=["n"])
@triton.heuristics({"DOUBLE": lambda args: args["BLOCK"] * 2})
@triton.jit
def both_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr, DOUBLE: tl.constexpr):
    tl.static_assert(DOUBLE == 2 * BLOCK)
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + offs, tl.load(x_ptr + offs, mask=offs < n) + 1, mask=offs < n)


@theme("autotune over heuristics", configurations=2)
def _(device):
    x = integers(100)
    got = launch(both_kernel, device, x, out(100, dtype=torch.int32), 100, grid=_grid)
    return equal(got, x + 1)


@triton.jit
def watched_kernel(x_ptr, out_ptr):
    tl.store(out_ptr, tl.load(x_ptr) + 1)


@theme("a hook before every run")
def _(device):
    seen = []
    watched_kernel.add_pre_run_hook(lambda *args, **kwargs: seen.append(len(args)))
    try:
        got = launch(watched_kernel, device, integers(1), out(1, dtype=torch.int32))
    finally:
        watched_kernel.pre_run_hooks.clear()
    return [equal(got, integers(1) + 1), equal(len(seen), 1)]


class _Double(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, y):
        result = torch.empty_like(x)
        ctx.save_for_backward(x, y)
        product_kernel[(4,)](x, y, result, x.numel(), BLOCK=32)
        return result

    @staticmethod
    def backward(ctx, gradient):
        x, y = ctx.saved_tensors
        left, right = torch.empty_like(x), torch.empty_like(y)
        product_kernel[(4,)](gradient, y, left, x.numel(), BLOCK=32)
        product_kernel[(4,)](gradient, x, right, x.numel(), BLOCK=32)
        return left, right


@triton.jit
def product_kernel(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offs < n
    product = tl.load(x_ptr + offs, mask=mask) * tl.load(y_ptr + offs, mask=mask)
    tl.store(out_ptr + offs, product, mask=mask)


@theme("an autograd Function, forward and backward")
def _(device):
    x = floats(100).to(device).requires_grad_()
    y = floats(100, seed=1).to(device).requires_grad_()
    result = _Double.apply(x, y)
    (result * 3).contiguous().sum().backward()
    a, b = exact(x.detach().cpu()), exact(y.detach().cpu())
    return [equal(result, a * b), near(x.grad, 3 * b, ulps=1), near(y.grad, 3 * a, ulps=1)]


@torch.library.triton_op("constructs::doubled", mutates_args={})
def _doubled(x: torch.Tensor) -> torch.Tensor:
    result = torch.empty_like(x)
    torch.library.wrap_triton(product_kernel)[(4,)](x, x, result, x.numel(), BLOCK=32)
    return result


@theme("torch.library.triton_op and wrap_triton")
def _(device):
    x = floats(100)
    return equal(_doubled(x.to(device)), exact(x) ** 2)


@theme("results used by torch between launches")
def _(device):
    x = floats(100).to(device)
    first, second = torch.empty_like(x), torch.empty_like(x)
    product_kernel[(4,)](x, x, first, 100, BLOCK=32)
    shifted = first - 1.0
    product_kernel[(4,)](shifted, x, second, 100, BLOCK=32)
    squares = (x * x).cpu()
    return equal(second, exact(squares - 1.0) * exact(x.cpu()))


@theme("cdiv, next_power_of_2 and Config on the host", not_compiled="no kernel is launched")
def _(device):
    config = triton.Config({"BLOCK": 64}, num_warps=8)
    return [equal([triton.cdiv(10, 4), triton.cdiv(8, 4), triton.next_power_of_2(33)], [3, 2, 64]),
            equal([config.kwargs["BLOCK"], config.num_warps], [64, 8])]


@theme("triton.testing.assert_close", not_compiled="no kernel is launched")
def _(device):
    triton.testing.assert_close(floats(8), floats(8))
    try:
        triton.testing.assert_close(floats(8), floats(8, seed=1))
    except AssertionError:
        return equal(1, 1)
    return equal(0, 1)


@theme("fn, arg_names, signature of a kernel", not_compiled="no kernel is launched")
def _(device):
    names = ["x_ptr", "y_ptr", "out_ptr", "n", "BLOCK"]
    constants = [p.name for p in add_kernel.params if p.is_constexpr]
    return [equal(int(add_kernel.arg_names == names), 1), equal(int(constants == ["BLOCK"]), 1),
            equal(int(add_kernel.fn.__name__ == "add_kernel"), 1)]


@theme("the compiled kernel that a launch gives back", differs=_NOTHING_COMPILED)
def _(device):
    x = floats(16).to(device)
    compiled = add_kernel[(1,)](x, x, torch.empty_like(x), 16, BLOCK=16)
    return [equal(int("ttir" in compiled.asm), 1), equal(compiled.metadata.num_warps, 4)]


@theme("kernel.warmup gives back a compiled kernel", differs=_NOTHING_COMPILED)
def _(device):
    compiled = add_kernel.warmup(torch.float32, torch.float32, torch.float32, 16, BLOCK=16,
                                 grid=(1,))
    return equal(int("ttir" in compiled.asm), 1)


@theme("triton.testing.do_bench", differs=_NO_DRIVER)
def _(device):
    x, result = floats(16).to(device), torch.empty(16, device=device)
    time = triton.testing.do_bench(lambda: add_kernel[(1,)](x, x, result, 16, BLOCK=16),
                                   warmup=1, rep=2)
    return [equal(result, (2 * x).cpu()), equal(int(time > 0), 1)]


@theme("the active driver's target, device and properties", not_compiled="no kernel is launched",
       differs=_NO_DRIVER)
def _(device):
    active = triton.runtime.driver.active
    properties = active.utils.get_device_properties(active.get_current_device())
    return [equal(int(active.get_current_target().backend == "cuda"), 1),
            equal(int(properties["multiprocessor_count"] > 0), 1),
            equal(int(isinstance(active.get_active_torch_device(), torch.device)), 1)]
