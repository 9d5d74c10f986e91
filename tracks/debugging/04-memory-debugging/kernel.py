"""Five reports, four kernels that fail in production, and tools for the next such night.

    gather_rows   out[m] = x[index[m]]            bincount    how often each value occurs
    shift_right   out[i] = x[i - k], else fill    copy_rows   x, with its rows side by side

Given:   the reports `reports/R1.txt` to `R5.txt`, made while kernels of other files ran; four
         kernels that pass the tests of those who wrote them; two tools that somebody began.
Asked:   say what each report means, in `REPORTS`; repair the kernels or their wrappers, one mistake
         each; finish the tools, so that they tell the truth.
Judged:  reports  six fields each, against the only right ones
         values   every element as it is, whatever type, size and layout
         memory   no access leaves its tensor, and no two programs change a number unawares
         errors   bad places, bad values and bad sizes are refused before anything is launched
         cost     one launch, and no byte more than the job needs
         tools    each byte of a red zone; sectors and widths of thirty access patterns

`python kernel.py` runs four public cases, `tritonlab grade track3/memory-debugging` runs all of them.
The README has the contracts and the words for `root_cause` and `remedy`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
import triton
import triton.language as tl

PATTERN = 0xA5  # the byte of a red zone that nobody has touched
ALIGNMENT = 16  # bytes: of the widest load or store of one thread
SECTOR = 32  # bytes that memory moves at a time


# ---------------------------------------------------------------------------------------------
# Reports


@dataclass(frozen=True)
class ReportAnswer:
    """What one report says; the README lists the words for the last two fields."""

    tensor: str
    access: str  # "load" or "store"
    program: int  # the first one that goes astray, of the whole grid
    bytes_past_end: int  # of that program; negative before the first byte, 0 inside
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


# Symptom: right for 64, 128 and 256 columns. With 100, numbers of other rows appear, and now and then
# the process ends. A place of -1 gave numbers that belong to another user.
@triton.jit
def gather_rows_kernel(
    x_ptr, index_ptr, out_ptr,        # [n_rows, n_cols], [n_wanted] and [n_wanted, n_cols]
    stride_xm, stride_xn, stride_im,  # elements from one row, column or index to the next
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
    """x[index] for a matrix x [R, C] and places index [M] in its rows: [M, C], contiguous.

    Raises:
        TypeError: the index is neither int32 nor int64.
        ValueError: another number of dimensions, or tensors on two devices.
        IndexError: an index is negative, or not below R; the first of them is named.
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


# Symptom: all but the first k numbers are right. The first k are never the fill, and differ from
# machine to machine; for k above a million the process ended.
@triton.jit
def shift_right_kernel(
    x_ptr, out_ptr,           # [n]
    stride_x,                 # elements from one number to the next
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
    """x moved to the right by k places, with fill in front: a contiguous vector as long as x.

    Raises:
        ValueError: x is no vector, or k is negative.
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


# Symptom: right in every unit test, which all have values that differ. In production the counts add
# up to less than there are values, by another amount each time. Once, a value of -1 changed a weight
# of the model.
@triton.jit
def bincount_kernel(
    values_ptr, counts_ptr,    # [n] and [num_bins]
    stride_v,                  # elements from one value to the next
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
    """How often each of 0 to num_bins - 1 occurs in a vector of integers: int32 [num_bins].

    Raises:
        TypeError: the values are neither int32 nor int64.
        ValueError: values is no vector, there is no bin, or a value has none; the first is named.
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


# Symptom: right for two years. Since the table of embeddings has grown, copying rows of a slice of it
# ends with "an illegal memory access was encountered".
@triton.jit
def copy_rows_kernel(
    x_ptr, out_ptr,            # [n_rows, n_cols]
    stride_xm, stride_xn,      # elements from one row or column to the next
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
    """A contiguous copy of a matrix, however far apart its rows lie.

    Raises:
        ValueError: x is no matrix.
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
    offset: int  # untouched bytes between the tensor and the nearest of them
    length: int  # bytes


# Symptom: `check` never told of anything yet, although somebody did write past the end. With some red
# zones, kernels on the tensor are slower than on any other.
class Guarded:
    """A tensor between two red zones, all in one allocation.

    What is written with the value of the pattern itself cannot be told from what nobody wrote.
    """

    def __init__(self, memory: torch.Tensor, start: int, tensor: torch.Tensor) -> None:
        """``memory``: all bytes, of which the ``tensor`` takes those from ``start`` on."""
        self.tensor = tensor
        self._after = memory[start + tensor.nbytes:]

    def check(self) -> list[Corruption]:
        """Every run of changed bytes, in the order of their addresses."""
        changed = self._after[:8] != PATTERN
        return [Corruption("after", 0, 8)] if bool(changed.all()) else []


def guarded_empty(shape: Sequence[int], dtype: torch.dtype, *, red_zone: int = 256,
                  device: str = "cpu") -> Guarded:
    """A tensor that nobody has written, with at least ``red_zone`` guarded bytes on either side.

    It starts at a multiple of 16 bytes. Its elements are NaN, or the pattern where NaN is none.

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
    """What one access of many lanes costs; each lane takes one element."""

    sectors: int  # of 32 bytes, that hold an element of some lane
    efficiency: float  # bytes of distinct elements over bytes of these sectors
    contiguous: bool  # every lane's element lies right behind that of the lane before
    vector_width: int  # elements that a thread can take at once, at most 16 bytes


# Symptom: every access that was ever looked at is said to be perfect.
def access_stats(offsets: Sequence[int], itemsize: int, base_alignment: int = 16) -> AccessStats:
    """Sectors and vector width of lanes that take the elements at ``offsets`` behind a base.

    Of the base's address it is known that ``base_alignment`` divides it. Sectors are counted as if
    it lay so many bytes behind the beginning of one, and with 16 right at the beginning.

    Raises:
        ValueError: there is no lane, or the alignment is no power of two from itemsize to 16.
    """
    return AccessStats(
        sectors=len(offsets) * itemsize // SECTOR,
        efficiency=1.0,
        contiguous=True,
        vector_width=ALIGNMENT // itemsize,
    )


# Symptom: 16, whatever it is asked about.
def alignment_of(x: torch.Tensor) -> int:
    """The greatest power of two, at most 16, that divides the address of x's first element."""
    address = x.contiguous().clone().data_ptr()
    return min(address & -address, ALIGNMENT) if address else ALIGNMENT


if __name__ == "__main__":
    import tritonlab

    tritonlab.run_public_cases(__file__)
