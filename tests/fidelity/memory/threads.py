"""Programs that load what their own threads stored: at once, and after all of them have waited."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
import triton
import triton.language as tl

from .cases import Kind, Right, Wrong, numbers


def ints(size: int) -> torch.Tensor:
    return torch.zeros(size, dtype=torch.int32)


# ---------------------------------------------------------------------------------------------
# Loaded again at once. The last store before the load bears the comment `# <- stored`.


@triton.jit
def same_lanes_kernel(x_ptr, s_ptr, y_ptr, n_cols, BLOCK_SIZE: tl.constexpr):
    cols = tl.arange(0, BLOCK_SIZE)
    mask = cols < n_cols
    at = tl.program_id(0) * n_cols + cols
    tl.store(s_ptr + at, 2 * tl.load(x_ptr + at, mask=mask), mask=mask)  # <- stored
    s = tl.load(s_ptr + at, mask=mask, other=0.0)  # <- M09
    tl.store(y_ptr + at, s / tl.sum(s), mask=mask)


@triton.jit
def reversed_kernel(x_ptr, s_ptr, y_ptr, BLOCK_SIZE: tl.constexpr):
    start, offs = tl.program_id(0) * BLOCK_SIZE, tl.arange(0, BLOCK_SIZE)
    tl.store(s_ptr + start + offs, tl.load(x_ptr + start + offs))  # <- stored
    back = tl.load(s_ptr + start + BLOCK_SIZE - 1 - offs)  # <- M09
    tl.store(y_ptr + start + offs, back)


@triton.jit
def transposed_tile_kernel(x_ptr, s_ptr, y_ptr, N: tl.constexpr):
    m, n = tl.arange(0, N)[:, None], tl.arange(0, N)[None, :]
    tile = tl.program_id(0) * N * N
    tl.store(s_ptr + tile + m * N + n, tl.load(x_ptr + tile + m * N + n))  # <- stored
    turned = tl.load(s_ptr + tile + n * N + m)  # <- M09
    tl.store(y_ptr + tile + m * N + n, turned)


@triton.jit
def scalar_to_all_kernel(x_ptr, s_ptr, y_ptr, BLOCK_SIZE: tl.constexpr):
    pid, offs = tl.program_id(0), tl.arange(0, BLOCK_SIZE)
    x = tl.load(x_ptr + pid * BLOCK_SIZE + offs)
    tl.store(s_ptr + pid, tl.sum(x))  # <- stored
    total = tl.load(s_ptr + pid)  # <- M09
    tl.store(y_ptr + pid * BLOCK_SIZE + offs, x / total)


@triton.jit
def scalar_in_block_kernel(x_ptr, s_ptr, y_ptr, BLOCK_SIZE: tl.constexpr):
    start, offs = tl.program_id(0) * BLOCK_SIZE, tl.arange(0, BLOCK_SIZE)
    tl.store(s_ptr + start + offs, tl.load(x_ptr + start + offs))
    tl.debug_barrier()
    tl.store(s_ptr + start + 3, 1.0)  # <- stored
    tl.store(y_ptr + start + offs, tl.load(s_ptr + start + offs))  # <- M09


@triton.jit
def first_of_block_kernel(x_ptr, s_ptr, y_ptr, BLOCK_SIZE: tl.constexpr):
    start, offs = tl.program_id(0) * BLOCK_SIZE, tl.arange(0, BLOCK_SIZE)
    tl.store(s_ptr + start + offs, tl.load(x_ptr + start + offs))  # <- stored
    tl.store(y_ptr + tl.program_id(0), tl.load(s_ptr + start + 2))  # <- M09


@triton.jit
def running_total_kernel(x_ptr, total_ptr, TURNS: tl.constexpr, BLOCK_SIZE: tl.constexpr):
    start, offs = tl.program_id(0) * BLOCK_SIZE, tl.arange(0, BLOCK_SIZE)
    for turn in range(TURNS):
        total = tl.load(total_ptr + start + offs)  # <- M09
        x = tl.load(x_ptr + turn * BLOCK_SIZE + offs)
        tl.store(total_ptr + start + offs, total + x)  # <- stored


@triton.jit
def by_descriptor_kernel(x_ptr, s_ptr, y_ptr, N: tl.constexpr, BLOCK_SIZE: tl.constexpr):
    start, offs = tl.program_id(0) * BLOCK_SIZE, tl.arange(0, BLOCK_SIZE)
    rows = tl.make_tensor_descriptor(s_ptr, [N], [1], [BLOCK_SIZE])
    rows.store([start], tl.load(x_ptr + start + offs))  # <- stored
    tl.store(y_ptr + start + offs, rows.load([start]))  # <- M09


@triton.jit
def zeroed_bins_kernel(x_ptr, bins_ptr, BINS: tl.constexpr, BLOCK_SIZE: tl.constexpr):
    pid = tl.program_id(0)
    tl.store(bins_ptr + pid * BINS + tl.arange(0, BINS), 0)  # <- stored
    x = tl.load(x_ptr + pid * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE))
    tl.atomic_add(bins_ptr + pid * BINS + x, 1)  # <- M09


@triton.jit
def bins_at_once_kernel(x_ptr, bins_ptr, out_ptr, BINS: tl.constexpr, BLOCK_SIZE: tl.constexpr):
    pid, bins = tl.program_id(0), tl.arange(0, BINS)
    x = tl.load(x_ptr + pid * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE))
    tl.atomic_add(bins_ptr + pid * BINS + x, 1)  # <- changed
    counts = tl.load(bins_ptr + pid * BINS + bins)  # <- M09
    tl.store(out_ptr + pid * BINS + bins, counts)


@triton.jit
def stored_again_kernel(x_ptr, s_ptr, y_ptr, BLOCK_SIZE: tl.constexpr):
    at = tl.program_id(0) * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
    x = tl.load(x_ptr + at)
    tl.store(s_ptr + at, x)
    tl.debug_barrier()
    tl.store(s_ptr + at, 2 * x, mask=x % 8 >= 5)  # <- stored
    tl.store(y_ptr + at, tl.load(s_ptr + at))  # <- M09


@triton.jit
def barrier_for_even_kernel(x_ptr, s_ptr, y_ptr, BLOCK_SIZE: tl.constexpr):
    pid = tl.program_id(0)
    at = pid * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
    tl.store(s_ptr + at, tl.load(x_ptr + at))  # <- stored
    if pid % 2 == 0:
        tl.debug_barrier()
    tl.store(y_ptr + at, tl.load(s_ptr + at))  # <- M09


@triton.jit
def some_turns_kernel(turns_ptr, s_ptr):
    pid = tl.program_id(0)
    turn = 0
    while turn < tl.load(turns_ptr + pid):
        before = tl.load(s_ptr + pid)  # <- M09
        tl.store(s_ptr + pid, before + 1)  # <- stored
        turn += 1


@triton.jit
def two_names_kernel(x_ptr, s_ptr, same_ptr, y_ptr, BLOCK_SIZE: tl.constexpr):
    at = tl.program_id(0) * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
    tl.store(s_ptr + at, tl.load(x_ptr + at))  # <- stored
    tl.store(y_ptr + at, tl.load(same_ptr + at))  # <- M09


@triton.jit
def words_of_halves_kernel(half_ptr, out_ptr, BLOCK_SIZE: tl.constexpr):
    start, offs = tl.program_id(0) * BLOCK_SIZE, tl.arange(0, BLOCK_SIZE)
    tl.store(half_ptr + 2 * (start + offs), 1.0)  # <- stored
    both = (half_ptr + 2 * start).to(tl.pointer_type(tl.int32)) + offs
    tl.store(out_ptr + start + offs, tl.load(both))  # <- M09


@triton.jit
def bytes_of_words_kernel(x_ptr, s_ptr, y_ptr, BLOCK_SIZE: tl.constexpr):
    start, offs = tl.program_id(0) * BLOCK_SIZE, tl.arange(0, BLOCK_SIZE)
    tl.store(s_ptr + start + offs, tl.load(x_ptr + start + offs), mask=offs >= 4)  # <- stored
    first = (s_ptr + start + 4).to(tl.pointer_type(tl.int8))
    tl.store(y_ptr + start + offs, tl.load(first + offs).to(tl.float32))  # <- M09


@triton.jit
def keep(target, value):
    tl.store(target, value)  # <- stored


@triton.jit
def by_a_helper_kernel(x_ptr, s_ptr, y_ptr, BLOCK_SIZE: tl.constexpr):
    at = tl.program_id(0) * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
    keep(s_ptr + at, tl.load(x_ptr + at))
    tl.store(y_ptr + at, tl.load(s_ptr + at))  # <- M09


@triton.jit
def after_the_next_kernel(x_ptr, s_ptr, y_ptr, flags_ptr, BLOCK_SIZE: tl.constexpr):
    pid = tl.program_id(0)
    at = pid * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
    tl.store(s_ptr + at, tl.load(x_ptr + at))  # <- stored
    if pid + 1 < tl.num_programs(0):
        while tl.load(flags_ptr + pid + 1, volatile=True) == 0:  # orders programs, not threads
            pass
    tl.store(y_ptr + at, tl.load(s_ptr + at))  # <- M09
    tl.atomic_xchg(flags_ptr + pid, 1)


def _three_rows(num_warps: int = 4) -> tuple[torch.Tensor, torch.Tensor]:
    x, y = numbers(3, 129, dtype=torch.float64), torch.empty(3, 129, dtype=torch.float64)
    same_lanes_kernel[(3,)](x, torch.empty_like(x), y, 129, BLOCK_SIZE=256, num_warps=num_warps)
    return y, x / x.sum(1, keepdim=True)


def _blocks(kernel: Any, expected: Callable[[torch.Tensor], torch.Tensor] = torch.clone,
            **options: Any) -> Callable[[], tuple[torch.Tensor, torch.Tensor]]:
    """Four programs with blocks of 8; tensors are x, what is stored and loaded, and the result."""
    def run() -> tuple[torch.Tensor, torch.Tensor]:
        x, out = numbers(32), torch.zeros(32)
        kernel[(4,)](x, torch.empty(32), out, BLOCK_SIZE=8, **options)
        return out, expected(numbers(32))

    return run


def _tiles() -> None:
    transposed_tile_kernel[(2,)](numbers(32), torch.empty(32), torch.empty(32), N=4)


def _running_totals() -> None:
    running_total_kernel[(4,)](numbers(24), torch.zeros(32), TURNS=3, BLOCK_SIZE=8)


def _zeroed_bins() -> None:
    zeroed_bins_kernel[(4,)](numbers(32, dtype=torch.int32) % 3 + 1, ints(16), BINS=4,
                             BLOCK_SIZE=8)


def _bins_at_once() -> None:
    bins_at_once_kernel[(4,)](numbers(32, dtype=torch.int32) % 3 + 1, ints(16), ints(16), BINS=4,
                              BLOCK_SIZE=8)


def _some_turns() -> None:
    some_turns_kernel[(4,)](torch.tensor([0, 1, 3, 2]), ints(4))


def _two_names() -> None:
    s = torch.empty(32)
    two_names_kernel[(4,)](numbers(32), s, s, torch.empty(32), BLOCK_SIZE=8)


def _after_the_next() -> None:
    after_the_next_kernel[(4,)](numbers(32), torch.empty(32), torch.empty(32), ints(4),
                                BLOCK_SIZE=8)


def _words_of_halves() -> None:
    words_of_halves_kernel[(2,)](torch.zeros(32, dtype=torch.float16), ints(16), BLOCK_SIZE=8)


AT_ONCE = {
    "by the same lanes": Wrong(same_lanes_kernel, _three_rows, "M09", "program 0", "s_ptr", 0),
    "in reverse": Wrong(reversed_kernel, _blocks(reversed_kernel),
                        "M09", "program 0", "s_ptr", 7),
    "as a transposed tile": Wrong(transposed_tile_kernel, _tiles, "M09", "program 0", "s_ptr", 0),
    "a scalar, for all threads": Wrong(scalar_to_all_kernel, _blocks(scalar_to_all_kernel),
                                       "M09", "program 0", "s_ptr", 0),
    "a scalar in a block": Wrong(scalar_in_block_kernel, _blocks(scalar_in_block_kernel),
                                 "M09", "program 0", "s_ptr", 3),
    "a scalar of a block": Wrong(first_of_block_kernel, _blocks(first_of_block_kernel),
                                 "M09", "program 0", "s_ptr", 2),
    "in the next turn": Wrong(running_total_kernel, _running_totals,
                              "M09", "program 0", "total_ptr", 0),
    "by a descriptor": Wrong(by_descriptor_kernel, _blocks(by_descriptor_kernel, N=32),
                             "M09", "program 0", "s_ptr", 0),
    "by an atomic": Wrong(zeroed_bins_kernel, _zeroed_bins, "M09", "program 0", "bins_ptr", 1),
    "what an atomic changed": Wrong(bins_at_once_kernel, _bins_at_once,
                                    "M09", "program 0", "bins_ptr", 1),
    "what was stored after the barrier": Wrong(
        stored_again_kernel, _blocks(stored_again_kernel), "M09", "program 0", "s_ptr", 5),
    "where a branch has the barrier": Wrong(
        barrier_for_even_kernel, _blocks(barrier_for_even_kernel),
        "M09", "program 1", "s_ptr", 8),
    "in as many turns as each likes": Wrong(some_turns_kernel, _some_turns,
                                            "M09", "program 2", "s_ptr", 2),
    "after waiting for another program": Wrong(after_the_next_kernel, _after_the_next,
                                               "M09", "program 0", "s_ptr", 0),
    "under another name": Wrong(two_names_kernel, _two_names, "M09", "program 0", "same_ptr", 0),
    "as words of halves": Wrong(words_of_halves_kernel, _words_of_halves,
                                "M09", "program 0", "half_ptr", 0),
    "as bytes of words": Wrong(bytes_of_words_kernel, _blocks(bytes_of_words_kernel),
                               "M09", "program 0", "s_ptr", 4),
    "stored by a helper": Wrong(by_a_helper_kernel, _blocks(by_a_helper_kernel),
                                "M09", "program 0", "s_ptr", 0),
}


# ---------------------------------------------------------------------------------------------
# Nothing that a thread could miss


@triton.jit
def after_kernel(x_ptr, s_ptr, y_ptr, BLOCK_SIZE: tl.constexpr, WHAT: tl.constexpr):
    """Loads in reverse what it stored, after something that lets all threads wait."""
    start, offs = tl.program_id(0) * BLOCK_SIZE, tl.arange(0, BLOCK_SIZE)
    x = tl.load(x_ptr + start + offs)
    index = x.to(tl.int32)
    tl.store(s_ptr + start + offs, x)
    if WHAT == "barrier":
        tl.debug_barrier()
    elif WHAT == "sum":
        tl.store(y_ptr + start, tl.sum(x))
    elif WHAT == "argmax":
        tl.store(y_ptr + start, tl.argmax(x, axis=0))
    elif WHAT == "scan":
        tl.store(y_ptr + start + offs, tl.cumsum(x))
    elif WHAT == "sort":
        tl.store(y_ptr + start + offs, tl.sort(x))
    elif WHAT == "histogram":
        tl.store(y_ptr + start + offs, tl.histogram(index, BLOCK_SIZE))
    elif WHAT == "gather":
        tl.store(y_ptr + start + offs, tl.gather(x, offs ^ 1, axis=0))
    elif WHAT == "transposition":
        square = tl.trans(tl.reshape(x, (2, BLOCK_SIZE // 2)))
        tl.store(y_ptr + start + offs, tl.reshape(square, (BLOCK_SIZE,)))
    elif WHAT == "interleaving":
        both = start + tl.arange(0, 2 * BLOCK_SIZE)
        tl.store(y_ptr + both, tl.interleave(x, x), mask=both < start + BLOCK_SIZE)
    tl.store(y_ptr + start + offs, tl.load(s_ptr + start + BLOCK_SIZE - 1 - offs))


@triton.jit
def after_atomic_kernel(x_ptr, s_ptr, y_ptr, count_ptr, BLOCK_SIZE: tl.constexpr,
                        WHAT: tl.constexpr):
    start, offs = tl.program_id(0) * BLOCK_SIZE, tl.arange(0, BLOCK_SIZE)
    tl.store(s_ptr + start + offs, tl.load(x_ptr + start + offs))
    if WHAT == "add":
        tl.atomic_add(count_ptr, 1)
    elif WHAT == "exchange":
        tl.atomic_xchg(count_ptr, 1)
    else:
        tl.atomic_cas(count_ptr, 0, 1)
    tl.store(y_ptr + start + offs, tl.load(s_ptr + start + BLOCK_SIZE - 1 - offs))


@triton.jit
def after_product_kernel(x_ptr, s_ptr, y_ptr, N: tl.constexpr):
    at = tl.arange(0, N)[:, None] * N + tl.arange(0, N)[None, :]
    x = tl.load(x_ptr + at)
    tl.store(s_ptr + at, x)
    square = tl.dot(x, x, input_precision="ieee")
    tl.store(y_ptr + at, square + tl.load(s_ptr + at))


@triton.jit
def in_place_kernel(x_ptr, s_ptr, y_ptr, BLOCK_SIZE: tl.constexpr):
    """Loaded, then stored: the other order, in which kernels work in place."""
    at = tl.program_id(0) * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
    x = tl.load(x_ptr + at)
    tl.store(y_ptr + at, x + tl.load(y_ptr + at))
    tl.store(x_ptr + at, 0.0)


@triton.jit
def parts_later_kernel(x_ptr, s_ptr, y_ptr, BLOCK_SIZE: tl.constexpr):
    """What the programs stored before they part is undone, and nobody stored it when they load."""
    pid = tl.program_id(0)
    at = pid * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
    x = tl.load(x_ptr + at)
    tl.store(x_ptr + at, x + 1)
    if pid % 2 == 1:
        x += 1
    tl.store(y_ptr + at, x)


@triton.jit
def tile_by_tile_kernel(x_ptr, n_cols, BLOCK_SIZE: tl.constexpr):
    """In place, a tile after the other: what is loaded was not stored yet."""
    row = x_ptr + tl.program_id(0) * n_cols
    for start in range(0, n_cols, BLOCK_SIZE):
        cols = start + tl.arange(0, BLOCK_SIZE)
        x = tl.load(row + cols, mask=cols < n_cols)
        tl.store(row + cols, 2 * x, mask=cols < n_cols)


@triton.jit
def two_passes_kernel(x_ptr, s_ptr, n_cols, BLOCK_SIZE: tl.constexpr):
    """Stores a row, waits once, and then works on it in place."""
    row = tl.program_id(0) * n_cols
    for start in range(0, n_cols, BLOCK_SIZE):
        cols = start + tl.arange(0, BLOCK_SIZE)
        x = tl.load(x_ptr + row + cols, mask=cols < n_cols)
        tl.store(s_ptr + row + cols, x, mask=cols < n_cols)
    tl.debug_barrier()
    for start in range(0, n_cols, BLOCK_SIZE):
        cols = start + tl.arange(0, BLOCK_SIZE)
        s = tl.load(s_ptr + row + cols, mask=cols < n_cols)
        tl.store(s_ptr + row + cols, s + 1, mask=cols < n_cols)


@triton.jit
def barrier_each_turn_kernel(x_ptr, s_ptr, y_ptr, BLOCK_SIZE: tl.constexpr):
    start, offs = tl.program_id(0) * BLOCK_SIZE, tl.arange(0, BLOCK_SIZE)
    tl.store(s_ptr + start + offs, tl.load(x_ptr + start + offs))
    for _ in range(3):
        tl.debug_barrier()
        back = tl.load(s_ptr + start + BLOCK_SIZE - 1 - offs)
        tl.debug_barrier()
        tl.store(s_ptr + start + offs, back)
        tl.store(y_ptr + start + offs, back)


@triton.jit
def other_half_kernel(x_ptr, s_ptr, y_ptr, BLOCK_SIZE: tl.constexpr):
    """One half of the lanes is stored, the other one loaded."""
    start, offs = tl.program_id(0) * BLOCK_SIZE, tl.arange(0, BLOCK_SIZE)
    x = tl.load(x_ptr + start + offs)
    tl.store(y_ptr + start + offs, x, mask=offs < BLOCK_SIZE // 2)
    y = tl.load(y_ptr + start + offs, mask=offs >= BLOCK_SIZE // 2, other=1.0)
    tl.store(y_ptr + start + offs, x + y, mask=offs >= BLOCK_SIZE // 2)


@triton.jit
def counted_twice_kernel(x_ptr, bins_ptr, BINS: tl.constexpr, BLOCK_SIZE: tl.constexpr):
    """Atomics on the same elements see each other, whichever thread they are of."""
    pid = tl.program_id(0)
    x = tl.load(x_ptr + pid * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE))
    for _ in range(2):
        tl.atomic_add(bins_ptr + pid * BINS + x, 1)


@triton.jit
def own_flag_kernel(flags_ptr, y_ptr):
    """Waits until it sees its own flag, which any of its threads does at some time."""
    pid = tl.program_id(0)
    tl.store(flags_ptr + pid, 1)
    while tl.load(flags_ptr + pid, volatile=True) == 0:
        pass
    tl.store(y_ptr + pid, pid)


def _after(what: str) -> Right:
    return Right(_blocks(after_kernel, _turned, WHAT=what))


def _turned(x: torch.Tensor) -> torch.Tensor:
    return x.reshape(4, 8).flip(1).reshape(-1)


def _after_atomic(what: str) -> Right:
    def run() -> tuple[torch.Tensor, torch.Tensor]:
        out = torch.empty(32)
        after_atomic_kernel[(4,)](numbers(32), torch.empty(32), out, ints(1), BLOCK_SIZE=8,
                                  WHAT=what)
        return out, _turned(numbers(32))

    return Right(run)


def _after_product() -> tuple[torch.Tensor, torch.Tensor]:
    x, out = numbers(16, 16) % 5, torch.empty(16, 16)
    after_product_kernel[(1,)](x, torch.empty(16, 16), out, N=16)
    return out, x @ x + x


def _odd_ones_raised(x: torch.Tensor) -> torch.Tensor:
    return x + torch.arange(4).repeat_interleave(8) % 2


def _tile_by_tile() -> tuple[torch.Tensor, torch.Tensor]:
    x = numbers(3, 30)
    tile_by_tile_kernel[(3,)](x, 30, BLOCK_SIZE=8)
    return x, 2 * numbers(3, 30)


def _two_passes() -> tuple[torch.Tensor, torch.Tensor]:
    s = torch.empty(3, 30)
    two_passes_kernel[(3,)](numbers(3, 30), s, 30, BLOCK_SIZE=8)
    return s, numbers(3, 30) + 1


def _two_launches() -> tuple[torch.Tensor, torch.Tensor]:
    s, out = torch.empty(32), torch.zeros(32)
    for source, target in ((numbers(32), s), (s, out)):
        in_place_kernel[(4,)](source, torch.empty(32), target.zero_(), BLOCK_SIZE=8)
    return out, numbers(32)


def _counted_twice() -> tuple[torch.Tensor, torch.Tensor]:
    bins = ints(16)
    counted_twice_kernel[(4,)](numbers(32, dtype=torch.int32) % 4, bins, BINS=4, BLOCK_SIZE=8)
    return bins, torch.full((16,), 4, dtype=torch.int32)


def _own_flags() -> tuple[torch.Tensor, torch.Tensor]:
    out = ints(4)
    own_flag_kernel[(4,)](ints(4), out)
    return out, torch.arange(4, dtype=torch.int32)


EXCHANGES = ("barrier", "sum", "argmax", "scan", "sort", "histogram", "gather", "transposition",
             "interleaving")
ATOMICS = ("add", "exchange", "comparison")
SEEN = {
    **{f"after a {what}": _after(what) for what in EXCHANGES},
    **{f"after a scalar atomic: {what}": _after_atomic(what) for what in ATOMICS},
    "after a product": Right(_after_product),
    "by a program of one warp": Right(lambda: _three_rows(num_warps=1)),
    "loaded, then stored": Right(_blocks(in_place_kernel)),
    "in place, by programs that run again": Right(_blocks(parts_later_kernel, _odd_ones_raised)),
    "in place, tile by tile": Right(_tile_by_tile),
    "in place after one barrier": Right(_two_passes),
    "in an earlier launch": Right(_two_launches),
    "in an earlier turn, with a barrier in each": Right(
        _blocks(barrier_each_turn_kernel, _turned)),
    "other elements": Right(_blocks(other_half_kernel)),
    "atomics on what atomics changed": Right(_counted_twice),
    "a volatile load that waits": Right(_own_flags),
}

# Of these no element is loaded after the launch stored it: the check must not even look.
FREE = ("loaded, then stored", "in place, tile by tile", "in an earlier launch", "other elements",
        "by a program of one warp", "after a barrier")

THREADS = Kind(AT_ONCE, SEEN)
