"""How many programs an SM holds, and a grid of as many as the whole GPU holds.

    blocks_per_sm = min(by registers, by shared memory, by warps, by blocks)
    axpy(x, y, alpha)[i] = alpha * x[i] + y[i]

A streaming multiprocessor (SM) runs programs, called blocks in the hardware's words, as long as it
has room for them. It can run out of four things; the first decides. A persistent grid has as many
programs as fit at the same time, and each walks through its share of the tiles.

Cost of axpy: x and y are read once, the result is written once: 3 * n * itemsize bytes, and as many
programs as one wave holds.

Source: the rules are those of NVIDIA's occupancy calculator (CUDA C++ Programming Guide, appendix
on compute capabilities); the limits are from data sheets and drivers.
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
BLOCK_SIZE = 1024  # elements of a tile
AXPY_WARPS = 4
AXPY_REGISTERS = 32  # of a thread, as `tritonlab inspect` tells; up to 32 make no difference

PREDICT = {
    "threads": 4 * 32,
    "warps_33": 48,  # 33 * 32 = 1,056 become 1,280; 65,536 // 1,280 = 51, a multiple of 4 is 48
    "blocks_98304": 2,
    "blocks_116000": 1,
    "share_167": 12 / 64,
    "persistent": 132 * 3,
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

    a_warp = round_up(regs_per_thread * WARP, REGISTERS_AT_ONCE)
    warps_by_registers = dev.regs_per_sm // a_warp // QUARTERS * QUARTERS
    a_block = round_up(smem_bytes + SYSTEM_SHARED, SHARED_AT_ONCE)
    room = {
        "registers": warps_by_registers // num_warps,
        "shared": dev.smem_per_sm // a_block,
        "warps": dev.max_warps_per_sm // num_warps,
        "blocks": dev.max_blocks_per_sm,
    }
    limiter = min(room, key=lambda what: room[what])  # of equal ones, the first
    blocks = room[limiter]
    if blocks == 0:
        return NONE_FITS
    warps = blocks * num_warps
    return Occupancy(blocks, warps, warps / dev.max_warps_per_sm, limiter)


def persistent_grid(dev: DeviceLimits, occ: Occupancy, tiles: int) -> int:
    """The programs of a persistent grid: as many as fit at once, and none without a tile.

    Raises:
        ValueError: ``tiles`` is negative, or there are tiles and no program fits.
    """
    if tiles < 0:
        raise ValueError(f"tiles: expected at least 0, got {tiles}")
    if tiles and occ.blocks_per_sm == 0:
        raise ValueError(f"occ: no program fits a multiprocessor, and there are {tiles} tiles")
    return min(tiles, dev.num_sms * occ.blocks_per_sm)


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
    """out[i] = alpha * x[i] + y[i]. Program p owns tiles p, p + P, p + 2 P, … of P programs."""
    tiles = tl.cdiv(n, BLOCK_SIZE)
    for tile in range(tl.program_id(axis=0), tiles, tl.num_programs(axis=0)):
        offs = tile.to(tl.int64) * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)  # n may pass 2**31
        mask = offs < n

        x = tl.load(x_ptr + offs, mask=mask).to(tl.float32)
        y = tl.load(y_ptr + offs, mask=mask).to(tl.float32)

        tl.store(out_ptr + offs, (alpha * x + y).to(out_ptr.dtype.element_ty), mask=mask)


def axpy(x: torch.Tensor, y: torch.Tensor, alpha: float) -> torch.Tensor:
    """alpha * x + y for two contiguous vectors, as a new one, by a persistent grid.

    Raises:
        TypeError: x or y is no tensor of a supported dtype, or the dtypes differ.
        ValueError: x or y is no contiguous vector, or the lengths differ.
    """
    check_vectors(x, y)
    out = torch.empty_like(x)
    if x.numel() == 0:
        return out
    dev = device_limits()
    occ = occupancy(AXPY_REGISTERS, 0, AXPY_WARPS, dev)
    grid = (persistent_grid(dev, occ, triton.cdiv(x.numel(), BLOCK_SIZE)),)
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
