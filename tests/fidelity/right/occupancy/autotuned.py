"""Right but different: an autotuner picks tiles and warps, and the grid follows."""

from __future__ import annotations

from dataclasses import dataclass

import torch
import triton
import triton.language as tl

PREDICT = {
    "threads": 128, "warps_33": 48, "blocks_98304": 2, "blocks_116000": 1, "share_167": 3 / 16,
    "persistent": 396,
}
ROWS = {
    "a100": (108, 65_536, 167_936, 166_912, 64, 32),
    "rtx4090": (128, 65_536, 102_400, 101_376, 48, 24),
    "h100": (132, 65_536, 233_472, 232_448, 64, 32),
    "h200": (132, 65_536, 233_472, 232_448, 64, 32),
    "b200": (148, 65_536, 233_472, 232_448, 64, 32),
}


@dataclass(frozen=True)
class DeviceLimits:
    name: str
    num_sms: int
    regs_per_sm: int
    smem_per_sm: int
    smem_per_block: int
    max_warps_per_sm: int
    max_blocks_per_sm: int


@dataclass(frozen=True)
class Occupancy:
    blocks_per_sm: int
    warps_per_sm: int
    fraction: float
    limiter: str


def device_limits(name: str | None = None) -> DeviceLimits:
    name = name or "h100"
    if name not in ROWS:
        raise ValueError(f"name: {name} is not known")
    return DeviceLimits(name, *ROWS[name])


def check_kernel(regs_per_thread, smem_bytes, num_warps):
    if regs_per_thread <= 0:
        raise ValueError(f"regs_per_thread: {regs_per_thread}")
    if smem_bytes < 0:
        raise ValueError(f"smem_bytes: {smem_bytes}")
    if num_warps not in (1, 2, 4, 8, 16, 32):
        raise ValueError(f"num_warps: {num_warps}")


def occupancy(regs_per_thread, smem_bytes, num_warps, dev):
    check_kernel(regs_per_thread, smem_bytes, num_warps)
    per_warp = -(-regs_per_thread * 32 // 256) * 256
    per_block = -(-(smem_bytes + 1024) // 128) * 128
    quotients = [
        (4 * (dev.regs_per_sm // 4 // per_warp) // num_warps, "registers"),
        (dev.smem_per_sm // per_block, "shared"),
        (dev.max_warps_per_sm // num_warps, "warps"),
        (dev.max_blocks_per_sm, "blocks"),
    ]
    blocks, limiter = sorted(quotients, key=lambda one: one[0])[0]
    if not blocks or regs_per_thread >= 256 or smem_bytes > dev.smem_per_block:
        return Occupancy(0, 0, 0.0, "unlaunchable")
    return Occupancy(blocks, num_warps * blocks, num_warps * blocks / dev.max_warps_per_sm, limiter)


def persistent_grid(dev, occ, tiles):
    if tiles < 0:
        raise ValueError(f"tiles: {tiles}")
    most = dev.num_sms * occ.blocks_per_sm
    if tiles > 0 and most == 0:
        raise ValueError(f"occ: nothing fits for {tiles} tiles")
    return most if tiles > most else tiles


@triton.autotune([triton.Config({"BLOCK": 1024}, num_warps=4),
                  triton.Config({"BLOCK": 2048}, num_warps=8)], key=["n"])
@triton.jit
def tuned_kernel(x_ptr, y_ptr, out_ptr, alpha, n, BLOCK: tl.constexpr):
    for tile in tl.range(tl.program_id(0), tl.cdiv(n, BLOCK), tl.num_programs(0), num_stages=2):
        i = tile.to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + i, i < n, 0.0).to(tl.float32)
        y = tl.load(y_ptr + i, i < n, 0.0).to(tl.float32)
        tl.store(out_ptr + i, (alpha * x + y).to(out_ptr.dtype.element_ty), i < n)


def axpy(x: torch.Tensor, y: torch.Tensor, alpha: float) -> torch.Tensor:
    check(x, y)
    out = torch.empty_like(x)
    dev = device_limits()

    def grid(meta):
        occ = occupancy(48, 0, meta["BLOCK"] // 256, dev)
        return (persistent_grid(dev, occ, triton.cdiv(len(x), meta["BLOCK"])),)

    if out.numel():
        tuned_kernel[grid](x, y, out, alpha, len(x))
    return out


def check(x, y):
    for name, value in (("x", x), ("y", y)):
        if not torch.is_tensor(value):
            raise TypeError(f"{name} is a {type(value)}")
        if value.dtype not in (torch.float16, torch.bfloat16, torch.float32):
            raise TypeError(f"{name} has {value.dtype}")
        if value.dim() != 1 or (value.numel() > 1 and value.stride(0) != 1):
            raise ValueError(f"{name} has shape {tuple(value.shape)}, strides {value.stride()}")
    if x.dtype != y.dtype:
        raise TypeError(f"y has {y.dtype} and x {x.dtype}")
    if len(x) != len(y):
        raise ValueError(f"y has {len(y)} elements and x {len(x)}")


if __name__ == "__main__":
    import tritonlab

    tritonlab.run_public_cases(__file__)
