"""Five reports, four kernels that fail in production, and two unfinished tools.

    gather_rows   out[m] = x[index[m]]            bincount    how often each value occurs
    shift_right   out[i] = x[i - k], else fill    copy_rows   a contiguous copy of x

Given:   the reports `reports/R1.txt` to `R5.txt`, made while kernels of other files ran; four
         kernels that pass the tests of their authors; two tools that somebody began.
Tasks:   record the meaning of each report in `REPORTS`; repair the kernels or their wrappers; finish
         the tools.
Graded:  reports  six fields each
         values   every element is exact, for any dtype, size and layout
         memory   every access is in bounds, and programs do not race
         errors   invalid indices, values and sizes are rejected before any launch
         cost     one launch, and only the compulsory bytes
         tools    each byte of a red zone; sectors and vector widths of thirty access patterns

`python kernel.py` runs four public cases, `tritonlab grade track3/memory-debugging` runs all of them.
The README has the contracts and the names for `root_cause` and `remedy`.
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
    "R1": ReportAnswer("", "", 0, 0, "", ""),
    "R2": ReportAnswer("", "", 0, 0, "", ""),
    "R3": ReportAnswer("", "", 0, 0, "", ""),
    "R4": ReportAnswer("", "", 0, 0, "", ""),
    "R5": ReportAnswer("", "", 0, 0, "", ""),
}


# ---------------------------------------------------------------------------------------------
# Repairs


# Symptom: right for 64, 128 and 256 columns. With 100, elements of other rows appear, and sometimes
# the process crashes. An index of -1 returned values that belong to another user.
@triton.jit
def gather_rows_kernel(
    x_ptr, index_ptr, out_ptr,        # [n_rows, n_cols], [n_wanted] and [n_wanted, n_cols]
    stride_xm, stride_xn, stride_im,  # elements between rows, columns and indices
    n_cols,
    BLOCK_SIZE: tl.constexpr,         # columns of one program
):
    """out[m, :] = x[index[m], :]. One program owns BLOCK_SIZE columns of one row of the result."""
    pid_m = tl.program_id(axis=0).to(tl.int64)
    cols = tl.program_id(axis=1) * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE).to(tl.int64)

    row = tl.load(index_ptr + pid_m * stride_im).to(tl.int64)
    x = tl.load(x_ptr + row * stride_xm + cols * stride_xn)

    tl.store(out_ptr + pid_m * n_cols + cols, x)


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


# Symptom: all but the first k elements are right. The first k are never the fill, and differ from
# machine to machine. For k above a million the process crashed.
@triton.jit
def shift_right_kernel(
    x_ptr, out_ptr,           # [n]
    stride_x,                 # elements from x[i] to x[i + 1]
    n, k, fill,
    BLOCK_SIZE: tl.constexpr,  # elements per program
):
    """out[i] = x[i - k], and fill where i < k."""
    offs = tl.program_id(axis=0).to(tl.int64) * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
    mask = offs < n
    source = offs - k

    x = tl.load(x_ptr + source * stride_x, mask=mask, other=fill)

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


# Symptom: right in every unit test, all of which have distinct values. In production, the counts add
# up to less than the number of values, by a different amount each time. Once, a value of -1 changed a
# weight of the model.
@triton.jit
def bincount_kernel(
    values_ptr, counts_ptr,    # [n] and [num_bins]
    stride_v,                  # elements between values
    n,
    BLOCK_SIZE: tl.constexpr,  # values per program
):
    """counts[v] += 1 for every value v. One program owns BLOCK_SIZE values."""
    offs = tl.program_id(axis=0).to(tl.int64) * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
    mask = offs < n

    value = tl.load(values_ptr + offs * stride_v, mask=mask)

    count = tl.load(counts_ptr + value, mask=mask)
    tl.store(counts_ptr + value, count + 1, mask=mask)


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

    n, block_size = values.numel(), 1024
    counts = torch.zeros(num_bins, dtype=torch.int32, device=values.device)
    if n == 0:
        return counts

    grid = (triton.cdiv(n, block_size),)
    bincount_kernel[grid](values, counts, *values.stride(), n, BLOCK_SIZE=block_size)
    return counts


# Symptom: right for two years. Since the embedding table has grown, copying rows of a slice of it
# fails with "an illegal memory access was encountered".
@triton.jit
def copy_rows_kernel(
    x_ptr, out_ptr,            # [n_rows, n_cols]
    stride_xm, stride_xn,      # elements between rows, and between columns
    n_cols,
    BLOCK_SIZE: tl.constexpr,  # columns of one program
):
    """out[m, :] = x[m, :]. One program owns BLOCK_SIZE columns of one row."""
    row = tl.program_id(axis=0)
    cols = tl.program_id(axis=1) * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
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


# ---------------------------------------------------------------------------------------------
# Red zones


@dataclass(frozen=True)
class Corruption:
    """Contiguous bytes of a red zone that changed."""

    side: str  # "before" or "after" the tensor
    offset: int  # bytes between the tensor and the nearest changed byte
    length: int  # bytes


# Symptom: `check` has never reported anything, although a kernel did write past the end. With some
# red zones, kernels are slower on this tensor than on any other.
class Guarded:
    """A tensor between two red zones, all in one allocation.

    A write of the pattern's own value cannot be detected.
    """

    def __init__(self, memory: torch.Tensor, start: int, tensor: torch.Tensor) -> None:
        """``memory`` is the whole allocation; the ``tensor`` begins at its byte ``start``."""
        self.tensor = tensor
        self._after = memory[start + tensor.nbytes:]

    def check(self) -> list[Corruption]:
        """Returns every run of changed bytes in the order of addresses."""
        changed = self._after[:8] != PATTERN
        return [Corruption("after", 0, 8)] if bool(changed.all()) else []


def guarded_empty(shape: Sequence[int], dtype: torch.dtype, *, red_zone: int = 256,
                  device: str = "cpu") -> Guarded:
    """Returns an undefined tensor with at least ``red_zone`` guarded bytes on either side.

    It starts at a multiple of 16 bytes. Its elements are NaN, or the pattern in dtypes without NaN.

    Raises:
        ValueError: red_zone is below 16.
    """
    nbytes = dtype.itemsize
    for size in shape:
        nbytes *= size
    memory = torch.full((nbytes + red_zone,), PATTERN, dtype=torch.uint8, device=device)
    tensor = memory[:nbytes].view(dtype).view(tuple(shape))
    return Guarded(memory, 0, tensor)


# ---------------------------------------------------------------------------------------------
# Access patterns


@dataclass(frozen=True)
class AccessStats:
    """The cost of one access in which each lane loads one element."""

    sectors: int  # sectors of 32 bytes with an element of some lane
    efficiency: float  # bytes of distinct elements over bytes of these sectors
    contiguous: bool  # each lane's element follows that of the previous lane
    vector_width: int  # elements that a thread can load at once, at most 16 bytes


# Symptom: it reports every access as perfect.
def access_stats(offsets: Sequence[int], itemsize: int, base_alignment: int = 16) -> AccessStats:
    """Returns sectors and vector width of lanes that load the elements ``offsets`` from a base.

    ``base_alignment`` divides the base's address. Sectors are counted as if the base were that many
    bytes after the start of a sector, and at the start for 16.

    Raises:
        ValueError: no offsets, or the alignment is not a power of two from itemsize to 16.
    """
    return AccessStats(
        sectors=len(offsets) * itemsize // SECTOR,
        efficiency=1.0,
        contiguous=True,
        vector_width=ALIGNMENT // itemsize,
    )


# Symptom: returns 16 for every tensor.
def alignment_of(x: torch.Tensor) -> int:
    """Returns the largest power of two, at most 16, that divides the address of x."""
    address = x.contiguous().clone().data_ptr()
    return min(address & -address, ALIGNMENT) if address else ALIGNMENT


if __name__ == "__main__":
    import tritonlab

    tritonlab.run_public_cases(__file__)
