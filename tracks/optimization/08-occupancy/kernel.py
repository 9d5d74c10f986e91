"""Occupancy: correct plans that never use more than one program per SM.

    occupancy(registers, shared memory, warps, device)  blocks per SM, and the limiting resource
    persistent_grid(device, occupancy, tiles)           programs of a grid of one wave
    axpy(x, y, alpha)[i] = alpha * x[i] + y[i]

Shapes:  x and y are contiguous vectors of float16, bfloat16 or float32; the result is a new one.
Given:   the limits of five GPUs; planners that never claim too much, and never more than one block
         per SM; a kernel with a program per 256 elements. The argument checks and the table are
         complete.
Yours:   first `PREDICT`: numbers that you work out before you run anything. Then the places marked
         `DECIDE`, each with a question. Rewrite these parts as you like.
           occupancy  DECIDE 1 to 3    persistent_grid  DECIDE 4    axpy  DECIDE 5 and 6
Graded:  plans   the exact number of blocks and the limiting resource, for 46 kernels on five GPUs
         values  products and sums in float32, rounded once, as in the given code
         cost    3 * n * itemsize bytes in one launch of at most one wave of programs
         numbers in `PREDICT` within 15 %, counts exactly; a wrong number is explained and fails
                 nothing

`python kernel.py` runs four public cases, `tritonlab grade track2/occupancy` runs all of them.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
import triton
import triton.language as tl

WARP = 32  # threads
REGISTERS_AT_ONCE = 256  # allocation unit of a warp
QUARTERS = 4  # of an SM, each with a quarter of its registers and warps
SHARED_AT_ONCE = 128  # bytes; allocation unit of a block
SYSTEM_SHARED = 1024  # bytes reserved by the system per block, from capability 8.0 on
MOST_REGISTERS = 255  # per thread: instructions encode a register in 8 bits
MOST_WARPS = 32  # per block: 1,024 threads

SUPPORTED = (torch.float16, torch.bfloat16, torch.float32)
BLOCK_SIZE = 256  # elements per tile
AXPY_WARPS = 4

# Replace each None by a number before you measure. The GPU is an H100; its limits are below.
PREDICT = {
    # How many threads does a program of 4 warps with BLOCK_SIZE = 1024 have?
    "threads": None,
    # How many warps with 33 registers per thread fit in the registers of an SM?
    "warps_33": None,
    # How many blocks with 98,304 bytes of shared memory fit on an SM, and with 116,000?
    "blocks_98304": None,
    "blocks_116000": None,
    # A product with tiles of 128 x 128 x 32 uses 167 registers per thread, 49,152 bytes and 4
    # warps. What is its occupancy, the share of the warps of an SM (0 to 1)?
    "share_167": None,
    # And how many programs does its persistent grid have for 10,000 tiles?
    "persistent": None,
}


@dataclass(frozen=True)
class DeviceLimits:
    """Limits of a GPU: registers are 32 bits wide, shared memory is in bytes."""

    name: str
    num_sms: int
    regs_per_sm: int
    smem_per_sm: int
    smem_per_block: int
    max_warps_per_sm: int
    max_blocks_per_sm: int


@dataclass(frozen=True)
class Occupancy:
    """Blocks and warps that an SM holds; ``fraction`` is their share of its maximum of warps.

    ``limiter`` is the limiting resource: registers, shared, warps or blocks, or unlaunchable.
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
    """Returns the limits of a GPU by name; by default those of this GPU, or of an H100.

    Raises:
        ValueError: the table has no GPU of that name.
    """
    if name is None:
        name = name_at_hand() if torch.cuda.is_available() else "h100"
    if name not in KNOWN:
        raise ValueError(f"name: expected one of {', '.join(KNOWN)}, got {name!r}")
    return KNOWN[name]


def name_at_hand() -> str:
    """Returns the name of this GPU in ``KNOWN``, or ``h100`` if it is not in the table."""
    found = torch.cuda.get_device_properties().name.lower().replace(" ", "")
    return next((name for name in KNOWN if name in found), "h100")


def occupancy(regs_per_thread: int, smem_bytes: int, num_warps: int,
              dev: DeviceLimits) -> Occupancy:
    """Returns how many blocks of a kernel one SM holds at the same time.

    Args:
        regs_per_thread: registers per thread, at least 1; more than 255 cannot be launched.
        smem_bytes: shared memory per block, at least 0.
        num_warps: warps per block, a power of two from 1 to 32.

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

    # DECIDE 1: how many warps fit in the registers if each gets a multiple of REGISTERS_AT_ONCE
    #           within one of the QUARTERS? How many blocks is that?
    # DECIDE 2: how many blocks fit in the shared memory, with the bytes reserved for each?
    # DECIDE 3: which two further limits are there, and which of the four decides? What if two are
    #           equal?
    a_warp = round_up(regs_per_thread * WARP, REGISTERS_AT_ONCE)
    if dev.regs_per_sm // a_warp < num_warps:  # not even one block
        return NONE_FITS
    return Occupancy(1, num_warps, num_warps / dev.max_warps_per_sm, "blocks")


def persistent_grid(dev: DeviceLimits, occ: Occupancy, tiles: int) -> int:
    """Returns the programs of a persistent grid: as many as fit at once, each with a tile.

    Raises:
        ValueError: ``tiles`` is negative, or there are tiles and no program fits.
    """
    if tiles < 0:
        raise ValueError(f"tiles: expected at least 0, got {tiles}")
    if tiles and occ.blocks_per_sm == 0:
        raise ValueError(f"occ: no program fits on an SM, and there are {tiles} tiles")
    # DECIDE 4: one program per SM is a safe choice. How many fit at once?
    return min(tiles, dev.num_sms)


def round_up(value: int, step: int) -> int:
    """Returns the smallest multiple of ``step`` that is at least ``value``."""
    return -(-value // step) * step


@triton.jit
def axpy_kernel(
    x_ptr, y_ptr, out_ptr,     # [n], all contiguous
    alpha,
    n,
    BLOCK_SIZE: tl.constexpr,  # elements per tile
):
    """out[i] = alpha * x[i] + y[i]. One program owns one tile."""
    # DECIDE 5: with fewer programs than tiles, each program owns several. Which ones, so that
    #           programs that run at the same time access adjacent tiles?
    tile = tl.program_id(axis=0).to(tl.int64)  # n may pass 2**31
    offs = tile * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
    mask = offs < n

    x = tl.load(x_ptr + offs, mask=mask).to(tl.float32)
    y = tl.load(y_ptr + offs, mask=mask).to(tl.float32)

    tl.store(out_ptr + offs, (alpha * x + y).to(out_ptr.dtype.element_ty), mask=mask)


def axpy(x: torch.Tensor, y: torch.Tensor, alpha: float) -> torch.Tensor:
    """Returns alpha * x + y for two contiguous vectors, as a new one.

    Raises:
        TypeError: x or y is not a tensor of a supported dtype, or the dtypes differ.
        ValueError: x or y is not a contiguous vector, or the lengths differ.
    """
    check_vectors(x, y)
    out = torch.empty_like(x)
    if x.numel() == 0:
        return out
    # DECIDE 6: for 2**27 elements this grid has half a million programs. How many run at once, and
    #           how large must a tile be for a thread to move 16 bytes?
    grid = (triton.cdiv(x.numel(), BLOCK_SIZE),)
    axpy_kernel[grid](x, y, out, alpha, x.numel(), BLOCK_SIZE=BLOCK_SIZE, num_warps=AXPY_WARPS)
    return out


def check_vectors(x: torch.Tensor, y: torch.Tensor) -> None:
    """Refuses arguments outside the contract, before anything is allocated or launched.

    Raises:
        TypeError: x or y is not a tensor of a supported dtype, or the dtypes differ.
        ValueError: x or y is not a contiguous vector, or the lengths differ.
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
