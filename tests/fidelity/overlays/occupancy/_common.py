"""What the right solutions here share, over the solution."""

from typing import NamedTuple

del WARP
del REGISTERS_AT_ONCE
del QUARTERS
del SHARED_AT_ONCE
del SYSTEM_SHARED
del MOST_REGISTERS
del MOST_WARPS
del SUPPORTED
del BLOCK_SIZE
del AXPY_WARPS
del AXPY_REGISTERS
del KNOWN
del NONE_FITS
del name_at_hand
del round_up
del axpy_kernel
del check_vectors

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
    """One block after the other, until something runs out."""
    check_kernel(regs_per_thread, smem_bytes, num_warps)
    blocks, limiter = 0, "unlaunchable"
    if regs_per_thread <= 255 and smem_bytes <= dev.smem_per_block:
        warp = (regs_per_thread * 32 + 255) // 256 * 256
        shared = (smem_bytes + 1024 + 127) // 128 * 128
        while True:
            warps = (blocks + 1) * num_warps
            if (warps + 3) // 4 * warp > dev.regs_per_sm // 4:
                limiter = "registers"
            elif (blocks + 1) * shared > dev.smem_per_sm:
                limiter = "shared"
            elif warps > dev.max_warps_per_sm:
                limiter = "warps"
            elif blocks + 1 > dev.max_blocks_per_sm:
                limiter = "blocks"
            else:
                blocks += 1
                continue
            break
    if blocks == 0:
        limiter = "unlaunchable"
    warps = blocks * num_warps
    return Occupancy(blocks, warps, warps / dev.max_warps_per_sm, limiter)


def persistent_grid(dev, occ, tiles):
    if tiles < 0:
        raise ValueError(f"tiles: {tiles}")
    most = dev.num_sms * occ.blocks_per_sm
    if tiles > 0 and most == 0:
        raise ValueError(f"occ: nothing fits for {tiles} tiles")
    return most if tiles > most else tiles


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
