"""Launches: grids, options, arguments by position and by name, many programs and none."""

from __future__ import annotations

import numpy as np
import torch
import triton
import triton.language as tl
import triton.testing

from .construct import EVERY, Theme, equal
from .values import floats, launch, out

theme = Theme("launching")


@triton.jit
def place_kernel(out_ptr, nx, ny):
    x = tl.program_id(0)
    y = tl.program_id(axis=1)
    z = tl.program_id(2)
    at = (z * ny + y) * nx + x
    sizes = tl.num_programs(0) + 10 * tl.num_programs(1) + 100 * tl.num_programs(2)
    tl.store(out_ptr + 2 * at, x + 10 * y + 100 * z)
    tl.store(out_ptr + 2 * at + 1, sizes)


def _places(device, grid):
    nx, ny, nz = (*grid, 1, 1)[:3]
    result = torch.empty(nz, ny, nx, 2, dtype=torch.int32, device=device)
    place_kernel[grid](result, nx, ny)
    z, y, x = np.ogrid[:nz, :ny, :nx]
    ids = x + 10 * y + 100 * z
    return equal(result, np.stack([ids, 0 * ids + nx + 10 * ny + 100 * nz], axis=-1))


@theme("a 1-D grid")
def _(device):
    return _places(device, (7,))


@theme("a 2-D grid")
def _(device):
    return _places(device, (3, 5))


@theme("a 3-D grid")
def _(device):
    return _places(device, (2, 3, 4))


@theme("the grid as a list")
def _(device):
    return _places(device, [4, 2])


@triton.jit
def add_kernel(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offs < n
    total = tl.load(x_ptr + offs, mask=mask) + tl.load(y_ptr + offs, mask=mask)
    tl.store(out_ptr + offs, total, mask=mask)


def _add(device, grid, **options):
    x, y = floats(100), floats(100, seed=1)
    got = launch(add_kernel, device, x, y, out(100), 100, grid=grid, BLOCK=32, **options)
    return equal(got, x + y)


@theme("the grid as an int", rejects=EVERY)
def _(device):
    _add(device, 4)


@theme("the grid as a function of the constants")
def _(device):
    return _add(device, lambda meta: (triton.cdiv(meta["n"], meta["BLOCK"]),))


@theme("launch options: num_warps, num_stages, maxnreg")
def _(device):
    return [_add(device, (4,), num_warps=8, num_stages=2), _add(device, (4,), maxnreg=64)]


@theme("launch option num_ctas")
def _(device):
    return _add(device, (4,), num_ctas=1)


@theme("a keyword that is no parameter and no option", rejects=EVERY)
def _(device):
    _add(device, (4,), BLOCK_SIZE=32)


@theme("a missing argument", rejects=EVERY)
def _(device):
    launch(add_kernel, device, floats(16), floats(16), out(16), BLOCK=16)


@theme("an argument given twice", rejects=EVERY)
def _(device):
    launch(add_kernel, device, floats(16), floats(16), out(16), 16, n=16, BLOCK=16)


@theme("too many arguments", rejects=EVERY)
def _(device):
    launch(add_kernel, device, floats(16), floats(16), out(16), 16, 16, 17)


@theme("a kernel called without a grid", rejects=EVERY)
def _(device):
    x = floats(16).to(device)
    add_kernel(x, x, x, 16, BLOCK=16)


@theme("a grid of four axes: the fourth is not looked at")
def _(device):
    return _add(device, (4, 1, 1, 3))


@theme("a list for a tensor", rejects=EVERY)
def _(device):
    launch(add_kernel, device, [1.0, 2.0], floats(16), out(16), 16, BLOCK=16)


@theme("an empty grid runs nothing")
def _(device):
    result = torch.full((16,), 3.0, device=device)
    x = floats(16).to(device)
    add_kernel[(0,)](x, x, result, 16, BLOCK=16)
    return equal(result, np.full(16, 3.0))


@theme("all arguments by name, in any order")
def _(device):
    x, y = floats(16).to(device), floats(16, seed=1).to(device)
    result = torch.empty(16, device=device)
    add_kernel[(1,)](BLOCK=16, n=16, out_ptr=result, y_ptr=y, x_ptr=x)
    return equal(result, (x + y).cpu())


@theme("launches follow one another; a launcher is kept and used again")
def _(device):
    x, y = floats(16).to(device), floats(16, seed=1).to(device)
    first, second = torch.empty(16, device=device), torch.empty(16, device=device)
    launcher = add_kernel[(1,)]
    launcher(x, y, first, 16, BLOCK=16)
    launcher(first, y, second, 16, BLOCK=16)
    first.zero_()
    launcher(first, second, first, 16, BLOCK=16)
    return [equal(second, (x + y + y).cpu()), equal(first, second.cpu())]


@theme("kernel.run")
def _(device):
    x, result = floats(16).to(device), torch.empty(16, device=device)
    add_kernel.run(x, x, result, 16, BLOCK=16, grid=(1,), warmup=False)
    return equal(result, (2 * x).cpu())


@triton.jit
def persistent_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    for tile in range(tl.program_id(0), tl.cdiv(n, BLOCK), tl.num_programs(0)):
        offs = tile * BLOCK + tl.arange(0, BLOCK)
        tl.store(out_ptr + offs, tl.load(x_ptr + offs, mask=offs < n) * 2, mask=offs < n)


@theme("a persistent kernel: fewer programs than tiles")
def _(device):
    x = floats(500)
    got = launch(persistent_kernel, device, x, out(500), grid=(6,), n=500, BLOCK=16)
    return equal(got, 2 * x)


@theme("more programs than work")
def _(device):
    x = floats(20)
    got = launch(persistent_kernel, device, x, out(20), grid=(50,), n=20, BLOCK=16)
    return equal(got, 2 * x)


@triton.jit
def many_kernel(out_ptr):
    pid = tl.program_id(0)
    tl.store(out_ptr + pid, pid * 2)


@theme("thousands of programs")
def _(device):
    got = launch(many_kernel, device, out(5000, dtype=torch.int32), grid=(5000,))
    return equal(got, 2 * np.arange(5000))


@triton.jit
def cluster_kernel(out_ptr):
    tl.store(out_ptr + tl.program_id(3), 1)


@theme("program_id along a fourth axis", rejects=EVERY)
def _(device):
    launch(cluster_kernel, device, out(1))
