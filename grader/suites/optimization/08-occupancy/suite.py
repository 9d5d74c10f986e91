"""Hidden tests of occupancy: limits, blocks per SM, persistent grids, a kernel."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch

from grader.suite import (
    FLOATS,
    Bench,
    Cost,
    Suite,
    Tolerance,
    call,
    correctness,
    edge,
    error_bounds,
    performance,
    rand,
    refuses,
    sizes,
    special,
)
from grader.suite.predictions import predictions

# SMs; registers and shared memory per SM; shared memory per block; warps and blocks per SM.
DEVICES = {
    "a100": (108, 65_536, 167_936, 166_912, 64, 32),
    "rtx4090": (128, 65_536, 102_400, 101_376, 48, 24),
    "h100": (132, 65_536, 233_472, 232_448, 64, 32),
    "h200": (132, 65_536, 233_472, 232_448, 64, 32),
    "b200": (148, 65_536, 233_472, 232_448, 64, 32),
}
WAVE = 148 * 32  # programs: the maximum of one wave on any GPU of the table
NAMES = ("blocks_per_sm", "warps_per_sm", "fraction", "limiter")

# Registers per thread, shared bytes per block, warps per block, device. The first are products
# compiled for an H100, with tiles from 64 x 64 x 32 to 256 x 256 x 64.
KERNELS = (
    (33, 0, 4, "h100"), (33, 0, 2, "h100"), (33, 0, 1, "h100"),
    (59, 24_576, 4, "h100"), (167, 49_152, 4, "h100"), (107, 98_304, 8, "h100"),
    (175, 147_456, 8, "h100"), (255, 196_608, 8, "h100"), (32, 98_304, 4, "h100"),
    (32, 116_000, 4, "h100"), (32, 115_712, 4, "h100"), (32, 115_713, 4, "h100"),
    (32, 232_448, 4, "h100"), (32, 232_449, 4, "h100"), (32, 233_472, 4, "h100"),
    (32, 166_912, 4, "a100"), (32, 82_944, 4, "a100"), (32, 82_945, 4, "a100"),
    (32, 166_913, 4, "a100"), (32, 54_900, 8, "a100"), (32, 101_376, 4, "rtx4090"),
    (32, 50_176, 4, "rtx4090"), (32, 50_177, 4, "rtx4090"), (32, 100_353, 4, "rtx4090"),
    (1, 0, 1, "h100"), (8, 0, 2, "h100"), (24, 0, 32, "h100"), (32, 0, 32, "h100"),
    (33, 0, 32, "h100"), (40, 0, 16, "rtx4090"), (40, 0, 32, "rtx4090"), (64, 0, 32, "a100"),
    (65, 0, 32, "a100"), (128, 0, 16, "b200"), (129, 0, 16, "b200"), (255, 0, 8, "b200"),
    (255, 0, 32, "b200"), (256, 0, 4, "h100"), (300, 0, 4, "h100"), (32, 0, 4, "b200"),
    (56, 6_144, 4, "h200"), (40, 1_024, 1, "rtx4090"), (96, 20_000, 2, "a100"),
    (168, 70_000, 4, "h200"), (72, 17_408, 4, "a100"), (48, 9_000, 2, "b200"),
)

LAUNCHES = tuple((name, blocks, tiles) for name in DEVICES for blocks in (1, 2, 3, 16)
                 for tiles in (0, 1, 100, 131, 132, 396, 397, 2_112, 100_000))


# ---------------------------------------------------------------------------------------------
# Results of the planners


def fits(blocks: int, registers: int, shared: int, warps: int, name: str) -> str:
    """Returns the resource that ``blocks`` blocks exceed on an SM; empty if all fit.

    Warps are placed one by one, each in the quarter of the SM with the most registers left.
    """
    _, all_registers, all_shared, of_block, most_warps, most_blocks = DEVICES[name]
    if registers > 255 or shared > of_block:
        return "unlaunchable"
    quarters = [all_registers // 4] * 4
    a_warp = 256 * math.ceil(32 * registers / 256)
    for _ in range(blocks * warps):
        quarters.sort()
        quarters[-1] -= a_warp
        if quarters[-1] < 0:
            return "registers"
    if blocks * 128 * math.ceil((shared + 1024) / 128) > all_shared:
        return "shared"
    if blocks * warps > most_warps:
        return "warps"
    return "blocks" if blocks > most_blocks else ""


def right(registers: int, shared: int, warps: int, name: str) -> tuple[int, int, float, str]:
    """Returns the expected result, by adding blocks to an SM until a resource runs out."""
    blocks = 0
    while not (lacking := fits(blocks + 1, registers, shared, warps, name)):
        blocks += 1
    if not blocks:
        return 0, 0, 0.0, "unlaunchable"
    return blocks, blocks * warps, blocks * warps / DEVICES[name][4], lacking


def each(rule: Callable[[tuple[Any, ...], list[Any]], str]) -> Callable[..., None]:
    """Returns a check of all results of `occupancy`; ``rule`` returns the fault of one."""
    def check(answer: Any, kernels: tuple[tuple[Any, ...], ...]) -> None:
        for kernel, one in zip(kernels, answer, strict=True):
            registers, shared, warps, name = kernel
            asked = (f"A kernel of {registers} registers per thread, {shared:,} bytes of shared "
                     f"memory and {warps} warp{'s' * (warps > 1)} on {name}")
            wrong = rule(kernel, one)
            assert not wrong, f"{asked}: {wrong}."

    return check


def holds_together(kernel: tuple[Any, ...], one: list[Any]) -> str:
    blocks, warps, fraction, limiter = one
    if type(blocks) is not int or type(warps) is not int or not isinstance(fraction, float):
        return f"the result is {one}, expected two int, a float and a str"
    if warps != blocks * kernel[2]:
        return f"{blocks} blocks are not {warps} warps"
    if not math.isclose(fraction, warps / DEVICES[kernel[3]][4], rel_tol=1e-9):
        return f"{warps} warps are not {fraction:.4g} of {DEVICES[kernel[3]][4]}"
    if limiter not in ("registers", "shared", "warps", "blocks", "unlaunchable"):
        return f"the limiter is {limiter!r}, which is not one of the five"
    if (blocks == 0) != (limiter == "unlaunchable"):
        return f"{blocks} blocks fit, and the limiter is {limiter!r}"
    return ""


def claims_no_more(kernel: tuple[Any, ...], one: list[Any]) -> str:
    blocks, *_ = right(*kernel)
    if one[0] <= blocks:
        return ""
    registers, shared, warps, name = kernel
    lacking = fits(one[0], *kernel)
    a_warp = 256 * math.ceil(32 * registers / 256)
    why = {
        "unlaunchable": f"the limits are 255 registers per thread and {DEVICES[name][3]:,} bytes "
                        f"per block, so every launch fails",
        "registers": f"a warp gets {a_warp:,} registers, and each quarter of an SM of {name} has "
                     f"{DEVICES[name][1] // 4:,}",
        "shared": f"a block takes {128 * math.ceil((shared + 1024) / 128):,} bytes with those "
                  f"reserved by the system, and an SM of {name} has {DEVICES[name][2]:,}",
        "warps": f"{one[0] * warps} warps are more than {DEVICES[name][4]}",
        "blocks": f"an SM of {name} holds at most {DEVICES[name][5]} blocks",
    }[lacking]
    return f"{one[0]} blocks are claimed and {blocks} fit; {why}"


def claims_all(kernel: tuple[Any, ...], one: list[Any]) -> str:
    blocks, *_ = right(*kernel)
    return "" if one[0] >= blocks else (
        f"{one[0]} block{'s are' if one[0] != 1 else ' is'} claimed, and {blocks} fit")


def names_the_scarcest(kernel: tuple[Any, ...], one: list[Any]) -> str:
    *_, limiter = right(*kernel)
    return "" if one[3] == limiter else f"the limiter is {one[3]!r}, and {limiter!r} runs out first"


def each_grid(rule: Callable[[int, int, int, int], str]) -> Callable[..., None]:
    def check(answer: Any, launches: tuple[tuple[str, int, int], ...]) -> None:
        for (name, blocks, tiles), programs in zip(launches, answer, strict=True):
            asked = (f"The grid for {tiles:,} tiles on {name}, which has {DEVICES[name][0]} SMs "
                     f"with {blocks} block{'s' * (blocks > 1)} each, is {programs!r}")
            assert type(programs) is int, f"{asked}, expected an int."
            wrong = rule(DEVICES[name][0], blocks, tiles, programs)
            assert not wrong, f"{asked}: {wrong}."

    return check


def is_one_wave(sms: int, blocks: int, tiles: int, programs: int) -> str:
    if programs > tiles:
        return "some programs have no tile"
    if programs > sms * blocks:
        return f"{sms * blocks:,} fit at once"
    return "the tiles have no program" if tiles and programs < 1 else ""


def fills_the_wave(sms: int, blocks: int, tiles: int, programs: int) -> str:
    most = min(tiles, sms * blocks)
    return "" if programs >= most else f"{most:,} fit at once and have a tile"


def limits_are_right(answer: Any, names: tuple[str, ...]) -> None:
    for name, one in zip(names, answer, strict=True):
        assert list(one) == [name, *DEVICES[name]], (
            f"device_limits({name!r}) is {one}, expected {[name, *DEVICES[name]]}.")


def is_known(answer: Any) -> None:
    assert answer[0] in DEVICES and list(answer[1:]) == list(DEVICES[answer[0]]), (
        f"device_limits() is {answer}, which is not a row of the table.")


def are_frozen(answer: Any) -> None:
    assert answer == [], f"A field of {' and of '.join(answer)} could be assigned."


def sum_of(x: torch.Tensor, y: torch.Tensor, alpha: float) -> torch.Tensor:
    return (alpha * x.float() + y.float()).to(x.dtype)


suite = Suite(
    entry="axpy",
    parameters=("x", "y", "alpha"),
    host={"device_limits": ("name",),
          "occupancy": ("regs_per_thread", "smem_bytes", "num_warps", "dev"),
          "persistent_grid": ("dev", "occ", "tiles")},
    marker="DECIDE",
    reference=lambda x, y, alpha: alpha * x.double() + y.double(),
    tolerance=Tolerance(lambda x, y, alpha: error_bounds.elementwise(alpha * x, y)),
    peer=sum_of,
    cost=lambda x, y, alpha: Cost(bytes=3 * x.numel() * x.element_size()),
    contiguous_result=True,
    bench=Bench("elements", (1 << 16, 1 << 20, 1 << 24, 1 << 26),
                lambda n: (rand(n), rand(n), 2.5),
                peer=lambda x, y, alpha: torch.add(y, x, alpha=alpha),
                peer_name="torch.add(y, x, alpha=alpha)"),
    cases=[
        correctness("1000 floats", rand(1_000), rand(1_000), 2.5, public=True),
        correctness("10000 floats", rand(10_000), rand(10_000), -0.75, public=True),
        correctness("4097 numbers in float16", rand(4_097, dtype="float16"),
                    rand(4_097, dtype="float16"), 1.5, public=True),
        correctness("5000 numbers in bfloat16", rand(5_000, dtype="bfloat16"),
                    rand(5_000, dtype="bfloat16"), 3.0),
        correctness("2200000 floats, more tiles than one wave", rand(2_200_000), rand(2_200_000),
                    2.0),
        correctness("3000 floats, an alpha that float32 rounds", rand(3_000), rand(3_000), 0.1),

        call("the limits of five GPUs", "limits", tuple(DEVICES), check=limits_are_right),
        call("this GPU, or an H100", "limits_at_hand", check=is_known),
        call("an unknown GPU", "limits", ("voodoo2",), raises=ValueError,
             mentions=("name", "voodoo2")),
        call("consistent fields", "occupancies", KERNELS, check=each(holds_together)),
        call("no more blocks than fit", "occupancies", KERNELS, check=each(claims_no_more)),
        call("as many blocks as fit", "occupancies", KERNELS, check=each(claims_all), code="T06"),
        call("the limiting resource", "occupancies", KERNELS, check=each(names_the_scarcest),
             code="T06"),
        call("at most one wave, each program with a tile", "grids", LAUNCHES,
             check=each_grid(is_one_wave)),
        call("a whole wave of programs", "grids", LAUNCHES, check=each_grid(fills_the_wave),
             code="T06"),
        call("results are frozen", "frozen", check=are_frozen),
        *(call(f"{name} of {value}", "occupancies", ((*kernel, "h100"),), raises=ValueError,
               mentions=(name, str(value)))
          for name, value, kernel in (
              ("regs_per_thread", 0, (0, 0, 4)), ("regs_per_thread", -8, (-8, 0, 4)),
              ("smem_bytes", -1, (32, -1, 4)), ("num_warps", 0, (32, 0, 0)),
              ("num_warps", 3, (32, 0, 3)), ("num_warps", 64, (32, 0, 64)),
              ("num_warps", -4, (32, 0, -4)))),
        call("num_warps of 3, with too many registers", "occupancies",
             ((256, 0, 3, "h100"),), raises=ValueError, mentions=("num_warps", "3")),
        call("a negative number of tiles", "grids", (("h100", 2, -1),), raises=ValueError,
             mentions=("tiles", "-1")),
        call("tiles without a block that fits", "grids", (("h100", 0, 5),), raises=ValueError,
             mentions=("occ", "5")),

        *predictions((
            ("threads", 128, "4 warps are 4 x 32 threads for any BLOCK_SIZE."),
            ("warps_33", 48, "33 x 32 = 1,056 registers are rounded up to 1,280, a multiple of "
             "256. 65,536 hold 51 of these, and four equal quarters hold 48."),
            ("blocks_98304", 2, "With the 1,024 reserved bytes, a block takes 99,328 bytes; "
             "233,472 hold 2 of these."),
            ("blocks_116000", 1, "116,000 + 1,024 bytes are rounded up to 117,120; 233,472 hold 1 "
             "of these."),
            ("share_167", 0.1875, "167 x 32 = 5,344 registers are rounded up to 5,376; 65,536 hold "
             "12 warps, and an SM holds up to 64."),
            ("persistent", 396, "12 warps are 3 blocks of 4 on each of 132 SMs."),
        ), counts=("threads", "warps_33", "blocks_98304", "blocks_116000", "persistent")),

        edge("one element", rand(1), rand(1), 2.0, public=True),
        edge("no element", rand(0), rand(0), 2.0, launches=0),
        edge("one more than a tile", rand(lambda B: B + 1), rand(lambda B: B + 1), 2.0),
        edge("one tile", rand(lambda B: B), rand(lambda B: B), 2.0),
        edge("alpha of 0, and infinities in y", rand(2_000),
             special(2_000, values=[math.inf, -math.inf]), 0.0),
        edge("NaN in x", special(2_000, values=[math.nan]), rand(2_000), 2.0),
        edge("vectors from the second element of their memory", rand(3_001)[1:],
             rand(3_001)[1:], 2.0),
        refuses("x is a list", [1.0], rand(1), 2.0, raises=TypeError, mentions=("x", "list")),
        refuses("int32 is not supported", rand(4, dtype="int32"), rand(4, dtype="int32"), 2.0,
                raises=TypeError, mentions=("x", "int32")),
        refuses("two dtypes", rand(4), rand(4, dtype="float16"), 2.0, raises=TypeError,
                mentions=("y", "float32", "float16")),
        refuses("a matrix", rand(4, 4), rand(4, 4), 2.0, raises=ValueError, mentions=("x", "4")),
        refuses("every other element", rand(8)[::2], rand(4), 2.0, raises=ValueError,
                mentions=("x", "2")),
        refuses("different lengths", rand(4), rand(5), 2.0, raises=ValueError,
                mentions=("y", "4", "5")),

        sizes(lambda n, dtype: (rand(n, dtype=dtype), rand(n, dtype=dtype), -0.75),
              n=(1, 5_000), dtype=FLOATS),

        performance("65536 floats, counted", rand(65_536), rand(65_536), 2.5,
                    traffic=1.00, sectors=1.00, launches=1, vector=128, spills=0),
        performance("134217728 floats, in one wave", rand(1 << 27), rand(1 << 27), 2.5,
                    launches=1, programs=WAVE, vector=128, spills=0, pass_at=0.80, stretch=0.90),
    ],
)


def test_a_part_of_the_vectors_gives_a_part_of_the_result(submission):
    """Tests that a slice of the vectors gives the same slice of the result."""
    x, y = submission.draw(rand(5_000), rand(5_000))

    whole, part = submission(x, y, 2.0), submission(x[:1_500], y[:1_500], 2.0)

    assert torch.equal(whole[:1_500], part), "the first 1,500 elements differ from those alone"
