"""if, and, or, not, ternaries, early returns, on scalars and on blocks."""

from __future__ import annotations

import numpy as np
import torch
import triton
import triton.language as tl

from .construct import EVERY, UNTIL_3_8, Theme, equal, near
from .values import exact, floats, integers, launch, out

theme = Theme("branches")


@triton.jit
def if_kernel(x_ptr, out_ptr, n, N: tl.constexpr):
    pid = tl.program_id(0)
    offs = tl.arange(0, N)
    x = tl.load(x_ptr + offs)
    if pid == 0:
        y = x + 1
    elif pid < n:
        y = x * pid
    else:
        y = -x
    tl.store(out_ptr + pid * N + offs, y)


@theme("if, elif, else on the program id")
def _(device):
    x = integers(16)
    a = exact(x)
    got = launch(if_kernel, device, x, out(5, 16, dtype=torch.int32), grid=(5,), n=3, N=16)
    return equal(got, np.stack([a + 1, a, 2 * a, -a, -a]))


@triton.jit
def if_data_kernel(x_ptr, out_ptr):
    pid = tl.program_id(0)
    x = tl.load(x_ptr + pid)
    y = x
    if x > 0:
        y = x * 2
        if x > 50:
            y += 1000
    if y % 2 == 0:
        y += 1
    tl.store(out_ptr + pid, y)


@theme("if on loaded data, nested, each program its own way")
def _(device):
    x = integers(37)
    a = exact(x)
    y = np.where(a > 0, 2 * a + np.where(a > 50, 1000, 0), a)
    got = launch(if_data_kernel, device, x, out(37, dtype=torch.int32), grid=(37,))
    return equal(got, y + (y % 2 == 0))


@triton.jit
def if_store_kernel(x_ptr, out_ptr):
    pid = tl.program_id(0)
    if pid % 3 != 1:
        tl.store(out_ptr + pid, tl.load(x_ptr + pid))


@theme("loads and stores inside if")
def _(device):
    x = integers(10)
    got = launch(if_store_kernel, device, x, out(10, dtype=torch.int32, fill=0), grid=(10,))
    return equal(got, np.where(np.arange(10) % 3 != 1, exact(x), 0))


@triton.jit
def if_number_kernel(out_ptr, n, scale):
    pid = tl.program_id(0)
    y = 0
    if n:
        y += 1
    if scale:
        y += 10
    if pid:
        y += 100
    if pid - 1:
        y += 1000
    tl.store(out_ptr + pid, y)


@theme("if on a number: true when it is not zero")
def _(device):
    got = launch(if_number_kernel, device, out(2, dtype=torch.int32), grid=(2,), n=7, scale=0.5)
    return equal(got, [1011, 111])


@triton.jit
def ternary_kernel(x_ptr, out_ptr, n, FLAG: tl.constexpr):
    pid = tl.program_id(0)
    x = tl.load(x_ptr + pid)
    y = x if pid < n else -x
    z = 1 if FLAG else 2
    w = y * z if x > 0 else (y + 5 if x < -50 else y)
    tl.store(out_ptr + pid, w)


@theme("ternaries on scalars and on constants")
def _(device):
    x = integers(20)
    a = exact(x)
    y = np.where(np.arange(20) < 7, a, -a)
    checks = []
    for flag in (True, False):
        got = launch(ternary_kernel, device, x, out(20, dtype=torch.int32), grid=(20,), n=7,
                     FLAG=flag)
        checks.append(equal(got, np.where(a > 0, y * (1 if flag else 2),
                                          np.where(a < -50, y + 5, y))))
    return checks


@triton.jit
def constant_if_kernel(x_ptr, y_ptr, out_ptr, MODE: tl.constexpr, N: tl.constexpr):
    offs = tl.arange(0, N)
    x = tl.load(x_ptr + offs)
    if y_ptr is not None:
        x += tl.load(y_ptr + offs)
    if MODE == "double":
        x = x * 2
    elif MODE == "nothing_that_exists":
        x = x.there_is_no_such_method()
    tl.store(out_ptr + offs, x)


@theme("if on constants: the other branch is not compiled")
def _(device):
    x, y = floats(16), floats(16, seed=1)
    doubled = launch(constant_if_kernel, device, x, None, out(16), MODE="double", N=16)
    added = launch(constant_if_kernel, device, x, y, out(16), MODE="", N=16)
    return [equal(doubled, 2 * x), equal(added, x + y)]


@triton.jit
def return_kernel(x_ptr, out_ptr, n):
    pid = tl.program_id(0)
    if pid >= n:
        return
    x = tl.load(x_ptr + pid)
    if x < 0:
        tl.store(out_ptr + pid, -1)
        return
    tl.store(out_ptr + pid, x)


@theme("early return, each program its own")
def _(device):
    x = integers(10)
    got = launch(return_kernel, device, x, out(16, dtype=torch.int32, fill=7), grid=(16,), n=10)
    return equal(got, np.r_[np.where(exact(x) < 0, -1, exact(x)), [7] * 6])


@triton.jit
def late_return_kernel(out_ptr, N: tl.constexpr):
    tl.store(out_ptr, 1)
    return
    tl.store(out_ptr, 2)


@theme("nothing after return is run")
def _(device):
    return equal(launch(late_return_kernel, device, out(dtype=torch.int32), N=1), 1)


@triton.jit
def logic_kernel(x_ptr, out_ptr, n, m):
    pid = tl.program_id(0)
    x = tl.load(x_ptr + pid)
    y = 0
    if x > 0 and pid < n:
        y += 1
    if x > 50 or pid == m:
        y += 10
    if not x > 0:
        y += 100
    if (x > -50 and x < 50) or not (pid < n):
        y += 1000
    tl.store(out_ptr + pid, y)


@theme("and, or, not of scalar conditions")
def _(device):
    x = integers(40)
    a, pid = exact(x), np.arange(40)
    got = launch(logic_kernel, device, x, out(40, dtype=torch.int32), grid=(40,), n=20, m=3)
    return equal(got, ((a > 0) & (pid < 20)) * 1 + ((a > 50) | (pid == 3)) * 10
                 + (a <= 0) * 100 + (((a > -50) & (a < 50)) | (pid >= 20)) * 1000)


@triton.jit
def block_logic_kernel(x_ptr, out_ptr, N: tl.constexpr):
    offs = tl.arange(0, N)
    x = tl.load(x_ptr + offs)
    tl.store(out_ptr + offs, (x > 0) and (x < 50))
    tl.store(out_ptr + N + offs, x > 50 or x < -50)
    tl.store(out_ptr + 2 * N + offs, not (x > 0))
    tl.store(out_ptr + 3 * N + offs, (x > 0) and (offs > 3) and (offs < 30))


@theme("and, or, not of blocks: element by element")
def _(device):
    x = integers(32)
    a, n = exact(x), np.arange(32)
    got = launch(block_logic_kernel, device, x, out(4, 32, dtype=torch.bool), N=32)
    return equal(got, np.stack([(a > 0) & (a < 50), (a > 50) | (a < -50), a <= 0,
                                (a > 0) & (n > 3) & (n < 30)]))


@triton.jit
def mask_and_kernel(x_ptr, out_ptr, n, N: tl.constexpr):
    offs = tl.arange(0, N)
    tl.store(out_ptr + offs, tl.load(x_ptr + offs, mask=offs >= 2 and offs < n, other=-1),
             mask=offs < n or offs == N - 1)


@theme("a mask made with and, or")
def _(device):
    x = integers(32)
    n = np.arange(32)
    got = launch(mask_and_kernel, device, x, out(32, dtype=torch.int32, fill=5), n=20, N=32)
    loaded = np.where((n >= 2) & (n < 20), exact(x), -1)
    return equal(got, np.where((n < 20) | (n == 31), loaded, 5))


@triton.jit
def short_circuit_kernel(x_ptr, out_ptr, FLAG: tl.constexpr, N: tl.constexpr):
    offs = tl.arange(0, N)
    y = 0
    if FLAG and x_ptr is not None:
        y = 1
    if FLAG is None or FLAG == 3:
        y += 2
    if not FLAG:
        y += 4
    tl.store(out_ptr + offs, y)


@theme("and, or, not of constants")
def _(device):
    checks = []
    for flag, pointer, expected in ((True, floats(4), 1), (False, None, 4), (3, floats(4), 3),
                                    (None, None, 6)):
        got = launch(short_circuit_kernel, device, pointer, out(4, dtype=torch.int32), FLAG=flag,
                     N=4)
        checks.append(equal(got, [expected] * 4))
    return checks


@triton.jit
def chained_kernel(x_ptr, out_ptr, low, high, N: tl.constexpr):
    offs = tl.arange(0, N)
    x = tl.load(x_ptr + offs)
    tl.store(out_ptr + offs, low <= x < high)


@theme("chained comparison of a block", rejects=UNTIL_3_8)
def _(device):
    x = integers(32)
    got = launch(chained_kernel, device, x, out(32, dtype=torch.bool), low=-30, high=40, N=32)
    return equal(got, (exact(x) >= -30) & (exact(x) < 40))


@triton.jit
def block_if_kernel(x_ptr, out_ptr, N: tl.constexpr):
    offs = tl.arange(0, N)
    x = tl.load(x_ptr + offs)
    if x > 0:
        x = x * 2
    tl.store(out_ptr + offs, x)


@theme("if on a block", rejects=EVERY)
def _(device):
    launch(block_if_kernel, device, floats(16), out(16), N=16)


@triton.jit
def block_ternary_kernel(x_ptr, out_ptr, N: tl.constexpr):
    offs = tl.arange(0, N)
    x = tl.load(x_ptr + offs)
    tl.store(out_ptr + offs, x if x > 0 else -x)


@theme("a ternary on a block", rejects=EVERY)
def _(device):
    launch(block_ternary_kernel, device, floats(16), out(16), N=16)


@triton.jit
def one_branch_kernel(out_ptr, n):
    if n > 3:
        y = 5
    tl.store(out_ptr, y)


@theme("a variable defined in one branch only", rejects=EVERY)
def _(device):
    launch(one_branch_kernel, device, out(dtype=torch.int32), n=7)


@triton.jit
def branch_types_kernel(out_ptr, n):
    if n > 3:  # noqa: SIM108
        y = 5
    else:
        y = 2.5
    tl.store(out_ptr, y)


@theme("two branches that give a variable two types", rejects=EVERY)
def _(device):
    launch(branch_types_kernel, device, out(), n=7)


@triton.jit
def branch_retype_kernel(out_ptr, n):
    y = 1
    if n > 3:
        y = 2.5
    tl.store(out_ptr, y)


@theme("a branch that changes a variable's type", rejects=EVERY)
def _(device):
    launch(branch_retype_kernel, device, out(), n=7)


@triton.jit
def ternary_types_kernel(out_ptr, n):
    tl.store(out_ptr, 1 if n > 3 else 2.5)


@theme("a ternary of two types", rejects=EVERY)
def _(device):
    launch(ternary_types_kernel, device, out(), n=7)


@triton.jit
def constant_types_kernel(out_ptr, FLAG: tl.constexpr):
    y = 1 if FLAG else 2.5
    tl.store(out_ptr, y)


@theme("a ternary of two types on a constant")
def _(device):
    return [equal(launch(constant_types_kernel, device, out(), FLAG=flag), value)
            for flag, value in ((True, 1.0), (False, 2.5))]


@triton.jit
def carried_block_kernel(x_ptr, y_ptr, out_ptr, N: tl.constexpr):
    pid = tl.program_id(0)
    offs = tl.arange(0, N)
    acc = tl.zeros((N,), tl.float32)
    scale = 1.0
    if pid % 2 == 0:
        acc += tl.load(x_ptr + offs)
        scale = 3.0
    else:
        acc -= tl.load(y_ptr + offs)
    tl.store(out_ptr + pid * N + offs, acc * scale)


@theme("blocks changed in both branches")
def _(device):
    x, y = (integers(16, dtype=torch.float32, seed=s) for s in (0, 1))
    got = launch(carried_block_kernel, device, x, y, out(4, 16), grid=(4,), N=16)
    return equal(got, np.stack([3 * exact(x), -exact(y)] * 2))


@triton.jit
def pass_kernel(out_ptr, n):
    if n > 3:
        pass
    else:
        tl.store(out_ptr, 1)
    tl.store(out_ptr + 1, 2)


@theme("pass")
def _(device):
    got = launch(pass_kernel, device, out(2, dtype=torch.int32, fill=0), n=7)
    return equal(got, [0, 2])


@triton.jit
def one_element_if_kernel(x_ptr, out_ptr):
    x = tl.load(x_ptr + tl.arange(0, 1))
    y = 0
    if x > 1:
        y = 1
    tl.store(out_ptr, y)


@theme("if on a block of one element")
def _(device):
    return equal(launch(one_element_if_kernel, device, floats(1, low=2), out(dtype=torch.int32)), 1)


@triton.jit
def not_taken_kernel(out_ptr, n):
    y = 1
    if n > 30:
        y = 2.5
    tl.store(out_ptr, y)


@theme("a branch that is not taken and would change a type", rejects=EVERY)
def _(device):
    launch(not_taken_kernel, device, out(), n=7)


@triton.jit
def branch_shape_kernel(out_ptr, n, N: tl.constexpr):
    offs = tl.arange(0, N)
    y = 1
    if n > 3:
        y = offs
    tl.store(out_ptr + offs, y)


@theme("a branch that makes a scalar a block", rejects=EVERY)
def _(device):
    launch(branch_shape_kernel, device, out(16, dtype=torch.int32), n=7, N=16)


@triton.jit
def defined_after_return_kernel(out_ptr, n):
    if n < 3:
        return
    else:  # noqa: RET505
        y = 5
    tl.store(out_ptr, y)


@theme("a variable defined beside an early return only", rejects=EVERY)
def _(device):
    launch(defined_after_return_kernel, device, out(dtype=torch.int32), n=7)


@triton.jit
def own_names_kernel(x_ptr, out_ptr, n, bias_ptr, FLAG: tl.constexpr, N: tl.constexpr):
    offs = tl.arange(0, N)
    pid = tl.program_id(0)
    x = tl.load(x_ptr + offs)
    if FLAG:
        scale = 2
        x = x * 1.0
    else:
        scale = 2.5
    extra = None
    if bias_ptr is not None:
        extra = tl.load(bias_ptr + offs)
    if pid >= n:
        early = 0
        tl.store(out_ptr + pid * N + offs, early)
        return
    if pid == 0:
        y, size = x * scale, tl.sum(x * 0) + 3.0
        own = 1
        x += own
    elif pid == 1:
        own = 2.0
        y = x + own * scale
        size = 4.0
    else:
        y = x * 0.0
        size = 5.0
    own = size + 1
    if pid > 0 and extra is not None:
        y += extra
    tl.store(out_ptr + pid * N + offs, y + own + (1.0 if pid > 0 else 2.0))


@theme("names of branches' own, and names that every branch defines")
def _(device):
    x, bias = floats(16), floats(16, seed=1)
    got = []
    for given, flag, scale in ((None, True, 2.0), (bias, False, 2.5)):
        a, b = x, 0 * x if given is None else given
        rows = [a * scale + 4.0 + 2.0, a + 2 * scale + b + 5.0 + 1.0, 0 * a + b + 6.0 + 1.0, 0 * a]
        got.append(near(launch(own_names_kernel, device, x, out(4, 16), 3, given, grid=(4,),
                               FLAG=flag, N=16), torch.stack(rows), absolute=1e-5))
    return got
