"""The answers to five reports, four repaired kernels, and two tools that detect such bugs early.

    gather_rows   out[m] = x[index[m]]            bincount    how often each value occurs
    shift_right   out[i] = x[i - k], else fill    copy_rows   a contiguous copy of x

Every access that can leave its tensor needs a mask, every index from outside a check on the host,
every counter that programs share an atomic, and every product of a row and its stride 64 bits.

Cost, in bytes: gather_rows 2 * M * C * e and the index once per program of a row; shift_right
2 * n * e at most; bincount n * e and n atomics; copy_rows 2 * R * C * e. One launch each.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
import triton
import triton.language as tl

PATTERN = 0xA5  # every byte of an intact red zone
ALIGNMENT = 16  # bytes, the widest load or store of a thread
SECTOR = 32  # bytes, the unit of memory traffic


# ---------------------------------------------------------------------------------------------
# Reports


@dataclass(frozen=True)
class ReportAnswer:
    """The meaning of a report. The README lists the names for the last two fields."""

    tensor: str
    access: str  # "load" or "store"
    program: int  # the first in the grid with such an access
    bytes_past_end: int  # of that program; negative before the first byte, 0 if inside
    root_cause: str
    remedy: str


REPORTS: dict[str, ReportAnswer] = {
    "R1": ReportAnswer("bias", "load", 2, 336, "missing-mask", "mask-the-access"),
    "R2": ReportAnswer("out", "store", 7, 2, "off-by-one", "tighten-the-mask"),
    # 1,652 is the first row with row * 1,300,000 >= 2**31; in 32 bits it wraps to 2**32 less
    "R3": ReportAnswer("x", "load", 1_652, (1_652 * 1_300_000 - 2**32) * 4,
                       "int32-overflow", "widen-before-multiplying"),
    "R4": ReportAnswer("totals", "store", 1, 0, "race", "use-an-atomic"),
    "R5": ReportAnswer("x", "load", 0, 0, "misaligned-view", "align-the-view"),
}


# ---------------------------------------------------------------------------------------------
# Repairs


@triton.jit
def gather_rows_kernel(
    x_ptr, index_ptr, out_ptr,        # [n_rows, n_cols], [n_wanted] and [n_wanted, n_cols]
    stride_xm, stride_xn, stride_im,  # elements between rows, columns and indices
    n_cols,
    BLOCK_SIZE: tl.constexpr,         # columns of one program
):
    """out[m, :] = x[index[m], :]. One program owns BLOCK_SIZE columns of one row of the result.

    Trusts the index, which the host has checked.
    """
    pid_m = tl.program_id(axis=0).to(tl.int64)
    cols = tl.program_id(axis=1) * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE).to(tl.int64)
    mask = cols < n_cols  # for load and store: past its end, a row is followed by the next one

    row = tl.load(index_ptr + pid_m * stride_im).to(tl.int64)  # row * stride may pass 2**31
    x = tl.load(x_ptr + row * stride_xm + cols * stride_xn, mask=mask)

    tl.store(out_ptr + pid_m * n_cols + cols, x, mask=mask)


def gather_rows(x: torch.Tensor, index: torch.Tensor) -> torch.Tensor:
    """Returns x[index] for x [R, C] and row numbers index [M]: [M, C], contiguous.

    Raises:
        TypeError: the index is neither int32 nor int64.
        ValueError: wrong number of dimensions, or tensors on two devices.
        IndexError: an index is negative or not below R; the message names the first position.
    """
    _check_dimensions("x", x, 2)
    _check_dimensions("index", index, 1)
    _check_integers("index", index)
    if index.device != x.device:
        raise ValueError(f"index: expected device {x.device}, got {index.device}")
    if (bad := _first_outside(index, x.shape[0])) is not None:
        raise IndexError(f"index[{bad}]: expected 0 to {x.shape[0] - 1}, got {int(index[bad])}")

    (n_wanted,), n_cols = index.shape, x.shape[1]
    out = x.new_empty(n_wanted, n_cols)
    if out.numel() == 0:
        return out

    block_size = min(1024, triton.next_power_of_2(n_cols))
    grid = (n_wanted, triton.cdiv(n_cols, block_size))
    gather_rows_kernel[grid](
        x, index, out, *x.stride(), *index.stride(), n_cols, BLOCK_SIZE=block_size
    )
    return out


@triton.jit
def shift_right_kernel(
    x_ptr, out_ptr,           # [n]
    stride_x,                 # elements from x[i] to x[i + 1]
    n, k, fill,
    BLOCK_SIZE: tl.constexpr,  # elements per program
):
    """out[i] = x[i - k], and fill where i < k. Moves (2 * n - k) * itemsize bytes."""
    offs = tl.program_id(axis=0).to(tl.int64) * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
    mask = offs < n
    source = offs - k

    # Elements before the start of x are masked, and `other` gives their result.
    x = tl.load(x_ptr + source * stride_x, mask=mask & (source >= 0), other=fill)

    tl.store(out_ptr + offs, x, mask=mask)


def shift_right(x: torch.Tensor, k: int, fill: float) -> torch.Tensor:
    """Returns x shifted right by k elements, with fill in front: contiguous, as long as x.

    Raises:
        ValueError: x is not a vector, or k is negative.
    """
    _check_dimensions("x", x, 1)
    if k < 0:
        raise ValueError(f"k: expected at least 0, got {k}")

    n, block_size = x.numel(), 1024
    out = x.new_empty(n)
    if n == 0:
        return out

    grid = (triton.cdiv(n, block_size),)
    shift_right_kernel[grid](
        x, out, *x.stride(), n, min(k, n), float(fill), BLOCK_SIZE=block_size
    )
    return out


@triton.jit
def bincount_kernel(
    values_ptr, counts_ptr,    # [n] and [num_bins]
    stride_v,                  # elements between values
    n,
    BLOCK_SIZE: tl.constexpr,  # values per program
):
    """counts[v] += 1 for every value v. Reads n values and makes n atomic additions."""
    offs = tl.program_id(axis=0).to(tl.int64) * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
    mask = offs < n

    value = tl.load(values_ptr + offs * stride_v, mask=mask)

    # All programs share the bins. Additions commute, so relaxed ordering suffices.
    tl.atomic_add(counts_ptr + value, 1, mask=mask, sem="relaxed")


def bincount(values: torch.Tensor, num_bins: int) -> torch.Tensor:
    """Returns how often each of 0 to num_bins - 1 occurs in values: int32 [num_bins].

    Raises:
        TypeError: the values are neither int32 nor int64.
        ValueError: values is not a vector, num_bins is below 1, or a value has no bin; the message
            names the first such value.
    """
    _check_dimensions("values", values, 1)
    _check_integers("values", values)
    if num_bins < 1:
        raise ValueError(f"num_bins: expected at least 1, got {num_bins}")
    if (bad := _first_outside(values, num_bins)) is not None:
        raise ValueError(f"values[{bad}]: expected 0 to {num_bins - 1}, got {int(values[bad])}")

    n, block_size = values.numel(), 1024
    counts = torch.zeros(num_bins, dtype=torch.int32, device=values.device)
    if n == 0:
        return counts

    grid = (triton.cdiv(n, block_size),)
    bincount_kernel[grid](values, counts, *values.stride(), n, BLOCK_SIZE=block_size)
    return counts


@triton.jit
def copy_rows_kernel(
    x_ptr, out_ptr,            # [n_rows, n_cols]
    stride_xm, stride_xn,      # elements between rows, and between columns
    n_cols,
    BLOCK_SIZE: tl.constexpr,  # columns of one program
):
    """out[m, :] = x[m, :]. One program owns BLOCK_SIZE columns of one row."""
    row = tl.program_id(axis=0).to(tl.int64)  # before any product: row * stride may pass 2**31
    cols = tl.program_id(axis=1) * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE).to(tl.int64)
    mask = cols < n_cols

    x = tl.load(x_ptr + row * stride_xm + cols * stride_xn, mask=mask)

    tl.store(out_ptr + row * n_cols + cols, x, mask=mask)


def copy_rows(x: torch.Tensor) -> torch.Tensor:
    """Returns a contiguous copy of a matrix with any strides.

    Raises:
        ValueError: x is not a matrix.
    """
    _check_dimensions("x", x, 2)

    n_rows, n_cols = x.shape
    out = x.new_empty(n_rows, n_cols)
    if out.numel() == 0:
        return out

    block_size = min(4096, triton.next_power_of_2(n_cols))
    grid = (n_rows, triton.cdiv(n_cols, block_size))
    copy_rows_kernel[grid](x, out, *x.stride(), n_cols, BLOCK_SIZE=block_size)
    return out


def _check_dimensions(name: str, tensor: torch.Tensor, count: int) -> None:
    if tensor.dim() != count:
        raise ValueError(f"{name}: expected {count} dimension{'s' * (count > 1)}, got "
                         f"{tensor.dim()}")


def _check_integers(name: str, tensor: torch.Tensor) -> None:
    if tensor.dtype not in (torch.int32, torch.int64):
        raise TypeError(f"{name}: expected int32 or int64, got {tensor.dtype}")


def _first_outside(integers: torch.Tensor, limit: int) -> int | None:
    """Returns the position of the first integer outside 0 to limit - 1, if any.

    The minimum and the maximum decide whether the position is needed.
    """
    if integers.numel() == 0 or (integers.amin() >= 0 and integers.amax() < limit):
        return None
    return int(((integers < 0) | (integers >= limit)).nonzero()[0])


# ---------------------------------------------------------------------------------------------
# Red zones


@dataclass(frozen=True)
class Corruption:
    """Contiguous bytes of a red zone that changed."""

    side: str  # "before" or "after" the tensor
    offset: int  # bytes between the tensor and the nearest changed byte
    length: int  # bytes


class Guarded:
    """A tensor between two red zones, all in one allocation.

    A write of the pattern's own value cannot be detected.
    """

    def __init__(self, memory: torch.Tensor, start: int, tensor: torch.Tensor) -> None:
        """``memory`` is the whole allocation; the ``tensor`` begins at its byte ``start``."""
        self.tensor = tensor
        self._before = memory[:start]
        self._after = memory[start + tensor.nbytes:]

    def check(self) -> list[Corruption]:
        """Returns every run of changed bytes in the order of addresses."""
        reach = self._before.numel()
        before = [Corruption("before", reach - stop, stop - start)
                  for start, stop in _changed(self._before)]
        return before + [Corruption("after", start, stop - start)
                         for start, stop in _changed(self._after)]


def _changed(zone: torch.Tensor) -> list[tuple[int, int]]:
    """Returns start and end of each run of bytes that differ from the pattern."""
    runs: list[tuple[int, int]] = []
    for place in (zone != PATTERN).nonzero().flatten().tolist():
        if runs and runs[-1][1] == place:
            runs[-1] = (runs[-1][0], place + 1)
        else:
            runs.append((place, place + 1))
    return runs


def guarded_empty(shape: Sequence[int], dtype: torch.dtype, *, red_zone: int = 256,
                  device: str = "cpu") -> Guarded:
    """Returns an undefined tensor with at least ``red_zone`` guarded bytes on either side.

    It starts at a multiple of 16 bytes. Its elements are NaN, or the pattern in dtypes without NaN.

    Raises:
        ValueError: red_zone is below 16.
    """
    if red_zone < ALIGNMENT:
        raise ValueError(f"red_zone: expected at least {ALIGNMENT} bytes, got {red_zone}")

    nbytes = dtype.itemsize
    for size in shape:
        nbytes *= size
    memory = torch.full((nbytes + 2 * red_zone + ALIGNMENT - 1,), PATTERN, dtype=torch.uint8,
                        device=device)
    start = red_zone + -(memory.data_ptr() + red_zone) % ALIGNMENT
    tensor = memory[start:start + nbytes].view(dtype).view(tuple(shape))
    if dtype.is_floating_point or dtype.is_complex:
        tensor.fill_(float("nan"))
    return Guarded(memory, start, tensor)


# ---------------------------------------------------------------------------------------------
# Access patterns


@dataclass(frozen=True)
class AccessStats:
    """The cost of one access in which each lane loads one element."""

    sectors: int  # sectors of 32 bytes with an element of some lane
    efficiency: float  # bytes of distinct elements over bytes of these sectors
    contiguous: bool  # each lane's element follows that of the previous lane
    vector_width: int  # elements that a thread can load at once, at most 16 bytes


def access_stats(offsets: Sequence[int], itemsize: int, base_alignment: int = 16) -> AccessStats:
    """Returns sectors and vector width of lanes that load the elements ``offsets`` from a base.

    ``base_alignment`` divides the base's address. Sectors are counted as if the base were that many
    bytes after the start of a sector, and at the start for 16.

    Raises:
        ValueError: no offsets, or the alignment is not a power of two from itemsize to 16.
    """
    if not offsets:
        raise ValueError("offsets: expected at least one lane, got none")
    if base_alignment not in (1, 2, 4, 8, 16) or base_alignment < itemsize:
        raise ValueError(f"base_alignment: expected a power of two from itemsize ({itemsize}) to "
                         f"{ALIGNMENT}, got {base_alignment}")

    start, elements = base_alignment % ALIGNMENT, set(offsets)
    # The alignment is a multiple of the item size, so no element crosses a sector boundary.
    sectors = {(start + offset * itemsize) // SECTOR for offset in elements}
    width = base_alignment // itemsize
    while width > 1 and not _fits(offsets, width):
        width //= 2
    return AccessStats(
        sectors=len(sectors),
        efficiency=len(elements) * itemsize / (len(sectors) * SECTOR),
        contiguous=_is_run(offsets),
        vector_width=width,
    )


def _fits(offsets: Sequence[int], width: int) -> bool:
    """Whether each group of ``width`` lanes is contiguous and starts at a multiple of it."""
    if len(offsets) % width:
        return False
    groups = [offsets[first:first + width] for first in range(0, len(offsets), width)]
    return all(group[0] % width == 0 and _is_run(group) for group in groups)


def _is_run(offsets: Sequence[int]) -> bool:
    return all(offset == offsets[0] + lane for lane, offset in enumerate(offsets))


def alignment_of(x: torch.Tensor) -> int:
    """Returns the largest power of two, at most 16, that divides the address of x."""
    address = x.data_ptr()  # of the view itself: a copy has another address
    return min(address & -address, ALIGNMENT) if address else ALIGNMENT


if __name__ == "__main__":
    import tritonlab

    tritonlab.run_public_cases(__file__)
