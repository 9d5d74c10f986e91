"""How many programs an SM holds: right already, and planned as if it held a single one.

    occupancy(registers, shared memory, warps, device)  blocks that fit at once, and what runs out
    persistent_grid(device, occupancy, tiles)           programs of a grid of one wave
    axpy(x, y, alpha)[i] = alpha * x[i] + y[i]

Shapes:  x and y are contiguous vectors of float16, bfloat16 or float32; the result is a new one.
Given:   the limits of five GPUs; planners that never promise too much, and never more than one
         block for each SM; a kernel with a program for every 256 elements. The checks
         of arguments are fine, and so is the table.
Yours:   first `PREDICT`: numbers that you work out before you run anything. Then the places marked
         `DECIDE`, each with a question. Write these parts anew as you like.
           occupancy  DECIDE 1 to 3    persistent_grid  DECIDE 4    axpy  DECIDE 5
Judged:  plans   the blocks that fit, no more and no fewer, and what runs out first, for 46 kernels
                 on five GPUs
         values  products and sums in float32, rounded once; this holds from the start
         cost    3 * n * itemsize bytes in one launch of at most one wave of programs
         numbers in `PREDICT` within 15 %, counts exactly; a wrong one is explained and fails
                 nothing

`python kernel.py` runs four public cases, `tritonlab grade track2/occupancy` runs all of them.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
import triton
import triton.language as tl

WARP = 32  # threads
REGISTERS_AT_ONCE = 256  # a warp gets a multiple of these
QUARTERS = 4  # of an SM, each with a fourth of its registers and warps
SHARED_AT_ONCE = 128  # bytes; a block gets a multiple of these
SYSTEM_SHARED = 1024  # bytes that the system takes for each block, from capability 8.0 on
MOST_REGISTERS = 255  # of a thread: an instruction has no room for a larger number
MOST_WARPS = 32  # of a block: 1,024 threads

SUPPORTED = (torch.float16, torch.bfloat16, torch.float32)
BLOCK_SIZE = 256  # elements of a tile
AXPY_WARPS = 4

# Write a number in place of each None, before you measure. The GPU is an H100; its limits stand
# below.
PREDICT = {
    # How many threads has a program of 4 warps, with BLOCK_SIZE = 1024?
    "threads": None,
    # How many warps with 33 registers a thread have room in the registers of an SM?
    "warps_33": None,
    # How many blocks with 98,304 bytes of shared memory fit an SM, and with 116,000?
    "blocks_98304": None,
    "blocks_116000": None,
    # A product in tiles of 128 x 128 x 32 takes 167 registers a thread, 49,152 bytes and 4 warps.
    # What share of its warps does an SM hold, from 0 to 1?
    "share_167": None,
    # And how many programs has a persistent grid of it, for 10,000 tiles?
    "persistent": None,
}


@dataclass(frozen=True)
class DeviceLimits:
    """What a GPU has: registers are numbers of 32 bits, shared memory is in bytes."""

    name: str
    num_sms: int
    regs_per_sm: int
    smem_per_sm: int
    smem_per_block: int
    max_warps_per_sm: int
    max_blocks_per_sm: int


@dataclass(frozen=True)
class Occupancy:
    """How many blocks and warps an SM holds, ``fraction`` of the warps that it could.

    ``limiter`` is what runs out first: registers, shared, warps or blocks, or unlaunchable.
    """

    blocks_per_sm: int
    warps_per_sm: int
    fraction: float
    limiter: str


KNOWN = {limits.name: limits for limits in (
    DeviceLimits("a100", 108, 65_536, 167_936, 166_912, 64, 32),
    DeviceLimits("rtx4090", 128, 65_536, 102_400, 101_376, 48, 24),
    DeviceLimits("h100", 132, 65_536, 233_472, 232_448, 64, 32),
    DeviceLimits("h200", 132, 65_536, 233_472, 232_448, 64, 32),
    DeviceLimits("b200", 148, 65_536, 233_472, 232_448, 64, 32),
)}
NONE_FITS = Occupancy(0, 0, 0.0, "unlaunchable")


def device_limits(name: str | None = None) -> DeviceLimits:
    """The limits of a GPU by its name; without one, of the GPU at hand, or else of an H100.

    Raises:
        ValueError: no GPU of that name is known.
    """
    if name is None:
        name = name_at_hand() if torch.cuda.is_available() else "h100"
    if name not in KNOWN:
        raise ValueError(f"name: expected one of {', '.join(KNOWN)}, got {name!r}")
    return KNOWN[name]


def name_at_hand() -> str:
    """The name in ``KNOWN`` of the GPU at hand, ``h100`` for one that is not there."""
    found = torch.cuda.get_device_properties().name.lower().replace(" ", "")
    return next((name for name in KNOWN if name in found), "h100")


def occupancy(regs_per_thread: int, smem_bytes: int, num_warps: int,
              dev: DeviceLimits) -> Occupancy:
    """How many blocks of a kernel one SM holds at the same time.

    Args:
        regs_per_thread: registers of a thread, at least 1; more than 255 cannot be launched.
        smem_bytes: shared memory of a block, at least 0.
        num_warps: of a block, a power of two from 1 to 32.

    Raises:
        ValueError: an argument is out of range.
    """
    if regs_per_thread < 1:
        raise ValueError(f"regs_per_thread: expected at least 1, got {regs_per_thread}")
    if smem_bytes < 0:
        raise ValueError(f"smem_bytes: expected at least 0, got {smem_bytes}")
    if not 1 <= num_warps <= MOST_WARPS or num_warps & (num_warps - 1):
        raise ValueError(f"num_warps: expected a power of two from 1 to {MOST_WARPS}, got "
                         f"{num_warps}")
    if regs_per_thread > MOST_REGISTERS or smem_bytes > dev.smem_per_block:
        return NONE_FITS

    # DECIDE 1: how many warps have room in the registers, if each gets a multiple of
    #           REGISTERS_AT_ONCE and lies in one of QUARTERS? And how many blocks is that?
    # DECIDE 2: how many blocks have room in the shared memory, if the system takes some for each?
    # DECIDE 3: what else runs out, and which of the four decides? What if two are equal?
    a_warp = round_up(regs_per_thread * WARP, REGISTERS_AT_ONCE)
    if dev.regs_per_sm // a_warp < num_warps:  # not even one
        return NONE_FITS
    return Occupancy(1, num_warps, num_warps / dev.max_warps_per_sm, "blocks")


def persistent_grid(dev: DeviceLimits, occ: Occupancy, tiles: int) -> int:
    """The programs of a persistent grid: as many as fit at once, and none without a tile.

    Raises:
        ValueError: ``tiles`` is negative, or there are tiles and no program fits.
    """
    if tiles < 0:
        raise ValueError(f"tiles: expected at least 0, got {tiles}")
    if tiles and occ.blocks_per_sm == 0:
        raise ValueError(f"occ: no program fits a multiprocessor, and there are {tiles} tiles")
    # DECIDE 4: one program for each SM is on the safe side. How many fit at once?
    return min(tiles, dev.num_sms)


def round_up(value: int, step: int) -> int:
    """The smallest multiple of ``step`` that is not below ``value``."""
    return -(-value // step) * step


@triton.jit
def axpy_kernel(
    x_ptr, y_ptr, out_ptr,     # [n] without gaps, all three
    alpha,
    n,
    BLOCK_SIZE: tl.constexpr,  # elements of a tile
):
    """out[i] = alpha * x[i] + y[i]. One program owns one tile."""
    # DECIDE 5: with fewer programs than tiles, each owns several. Which, so that programs that run
    #           together read adjacent tiles?
    tile = tl.program_id(axis=0).to(tl.int64)  # n may pass 2**31
    offs = tile * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
    mask = offs < n

    x = tl.load(x_ptr + offs, mask=mask).to(tl.float32)
    y = tl.load(y_ptr + offs, mask=mask).to(tl.float32)

    tl.store(out_ptr + offs, (alpha * x + y).to(out_ptr.dtype.element_ty), mask=mask)


def axpy(x: torch.Tensor, y: torch.Tensor, alpha: float) -> torch.Tensor:
    """alpha * x + y for two contiguous vectors, as a new one.

    Raises:
        TypeError: x or y is no tensor of a supported dtype, or the dtypes differ.
        ValueError: x or y is no contiguous vector, or the lengths differ.
    """
    check_vectors(x, y)
    out = torch.empty_like(x)
    if x.numel() == 0:
        return out
    # DECIDE 5: for 2**27 elements these are half a million programs. How many run at once, what do
    #           the others wait for, and how large should a tile be so that a thread moves 16 bytes?
    grid = (triton.cdiv(x.numel(), BLOCK_SIZE),)
    axpy_kernel[grid](x, y, out, alpha, x.numel(), BLOCK_SIZE=BLOCK_SIZE, num_warps=AXPY_WARPS)
    return out


def check_vectors(x: torch.Tensor, y: torch.Tensor) -> None:
    """Refuse what the contract does not cover, before anything is allocated or launched.

    Raises:
        TypeError: x or y is no tensor of a supported dtype, or the dtypes differ.
        ValueError: x or y is no contiguous vector, or the lengths differ.
    """
    for name, tensor in (("x", x), ("y", y)):
        if not isinstance(tensor, torch.Tensor):
            raise TypeError(f"{name}: expected a torch.Tensor, got {type(tensor).__name__}")
        if tensor.dtype not in SUPPORTED:
            names = ", ".join(str(dtype) for dtype in SUPPORTED)
            raise TypeError(f"{name}: expected one of {names}, got {tensor.dtype}")
        if tensor.dim() != 1 or not tensor.is_contiguous():
            raise ValueError(f"{name}: expected a contiguous vector, got shape "
                             f"{tuple(tensor.shape)} with strides {tensor.stride()}")
    if y.dtype != x.dtype:
        raise TypeError(f"y: expected {x.dtype} like x, got {y.dtype}")
    if y.shape != x.shape:
        raise ValueError(f"y: expected {x.numel()} elements like x, got {y.numel()}")


if __name__ == "__main__":
    import tritonlab

    tritonlab.run_public_cases(__file__)
