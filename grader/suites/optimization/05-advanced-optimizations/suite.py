"""Hidden tests of advanced optimizations: search spaces, persistent kernels, trials in place."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from typing import Any

import torch

from grader.suite import (
    EXACT,
    FLOATS,
    TENSOR_CORES,
    Bench,
    Cost,
    Function,
    Input,
    Suite,
    Tolerance,
    call,
    correctness,
    edge,
    error_bounds,
    integers,
    launchable,
    performance,
    rand,
    refuses,
    row,
    row_with,
    rows,
    sizes,
)
from grader.suite.predictions import predictions

INF, NAN = math.inf, math.nan
FAR = 1 << 30  # elements; the offset of the third row is 2**31
MANY = 10_000  # programs: more than there are tiles or rows in any case
H100_SMEM = 232_448  # bytes of shared memory per program
LIMITS = (H100_SMEM, 166_912, 101_376)  # those of an H100, an A100 and an RTX 4090
MAX_ACCUMULATORS = 128
LEAST_CONFIGS, MOST_CONFIGS = 12, 48
TILES = tuple(itertools.product((64, 128), (64, 256), (32, 64)))  # required in a search space
SMALLEST_TILE = 32  # rows and columns; smaller tiles load the operands too often
SIDE = 256  # of the matrices whose traffic is counted
TRAFFIC = (2 * SIDE / SMALLEST_TILE + 1) / 3  # of square tiles of that size, over the minimum


# ---------------------------------------------------------------------------------------------
# The matrix product


def pair(m: int, k: int, n: int, make: Callable[..., Input] = rand, dtype: str = "float16",
         **options: Any) -> tuple[Input, Input]:
    """Returns matrices m x k and k x n with independent values."""
    return make(m, k, dtype=dtype, **options), make(k, n, dtype=dtype, **options)


def product_cost(a: torch.Tensor, b: torch.Tensor, num_sms: int | None = None) -> Cost:
    (m, k), n = a.shape, b.shape[1]
    return Cost(bytes=(m * k + k * n + m * n) * a.element_size(), flops=2 * m * n * k)


matmul = Function(
    entry="matmul_persistent",
    parameters=("a", "b"),
    keyword_only=("num_sms",),
    reference=lambda a, b, num_sms=None: a.double() @ b.double(),
    tolerance=Tolerance(lambda a, b, num_sms=None: error_bounds.matmul(a, b), TENSOR_CORES,
                        products=(0, 1)),
    peer=lambda a, b, num_sms=None: (a.float() @ b.float()).to(a.dtype),
    reversed_peer=lambda a, b, num_sms=None: (a.float().flip(1) @ b.float().flip(0)).to(a.dtype),
    moves="deny",
    contiguous_result=True,
    cost=product_cost,
    bench=Bench("rows and columns", (512, 1_024, 2_048, 4_096, 8_192), lambda n: pair(n, n, n),
                at="square matrices of float16", peer=torch.matmul, peer_name="torch.matmul"),
    cases=[
        # The most specialized call of each tile comes first: only that one is compiled completely.
        correctness("64 x 64 times 64 x 64 in float16, 1 program", *pair(64, 64, 64), 1,
                    public=True),
        correctness("208 x 32 times 32 x 64 in float16, 3 programs", *pair(208, 32, 64), 3,
                    public=True),
        correctness("304 x 32 times 32 x 64 in bfloat16, 2 programs",
                    *pair(304, 32, 64, dtype="bfloat16"), 2, public=True),
        correctness("304 x 64 times 64 x 512 in float16, 2 programs", *pair(304, 64, 512), 2),
        correctness("60 x 33 times 33 x 63 in float16, 1 program", *pair(60, 33, 63), 1),
        correctness("17 x 200 times 200 x 5 in float16", *pair(17, 200, 5)),
        correctness("200 x 30 times 30 x 61 in float16, 10000 programs", *pair(200, 30, 61), MANY),
        correctness("600 x 16 times 16 x 600 in float16, 5 programs", *pair(600, 16, 600), 5),
        correctness("600 x 17 times 17 x 201 in float16, 3 programs", *pair(600, 17, 201), 3),
        correctness("1600 x 16 times 16 x 400 in float16, 3 programs", *pair(1_600, 16, 400), 3),
        *(correctness(f"sums of 1024 numbers around a half in {dtype}, 1 program",
                      *pair(48, 1_024, 48, dtype=dtype, mean=0.5), 1)
          for dtype in ("float16", "bfloat16")),
        correctness("whole numbers in float16, 2 programs", *pair(150, 32, 50, integers), 2),

        edge("no row", *pair(0, 64, 32), launches=0),
        edge("no column", *pair(32, 64, 0), 3, launches=0),
        edge("K is 0: the result is zero", *pair(70, 0, 33), 3),
        edge("1 x 1 times 1 x 1, 132 programs", *pair(1, 1, 1), 132),
        edge("a row times a column", *pair(1, 300, 1, mean=0.5), 3),
        edge("a column times a row, 2 programs", *pair(144, 1, 160), 2),
        edge("both are transposed views, 3 programs", rand(48, 144, dtype="float16").mT,
             rand(60, 48, dtype="float16").mT, 3, public=True),
        edge("columns 10 to 73 of a wider a, every other row of b",
             rand(140, 200, dtype="float16")[:, 10:74], rand(128, 24, dtype="float16")[::2], 1),
        edge("rows of a 2**30 elements apart", rand(3, 64, dtype="float16").apart(FAR, 1),
             rand(64, 24, dtype="float16"), 1),
        edge("NaN and infinity in rows 3 and 100 of a",
             rows(*(row(40, {3: {7: NAN}, 100: {0: INF}}.get(i)) for i in range(130)),
                  dtype="float16"), rand(40, 33, dtype="float16"), 1),

        refuses("a is a list", [[1.0, 2.0]], rand(2, 3, dtype="float16"), raises=TypeError,
                mentions=("a", "list")),
        refuses("float32 is not supported", *pair(8, 8, 8, dtype="float32"), raises=TypeError,
                mentions=("a", "float32")),
        refuses("float16 times bfloat16", rand(8, 16, dtype="float16"),
                rand(16, 8, dtype="bfloat16"), raises=TypeError,
                mentions=("b", "float16", "bfloat16")),
        refuses("b has three dimensions", rand(8, 16, dtype="float16"),
                rand(2, 16, 8, dtype="float16"), raises=ValueError, mentions=("b", "2", "3")),
        refuses("inner sizes differ by one", rand(128, 64, dtype="float16"),
                rand(63, 32, dtype="float16"), raises=ValueError, mentions=("b", "64", "63")),
        refuses("a and b on different devices", rand(8, 16, dtype="float16"),
                rand(16, 8, dtype="float16").on_meta(), raises=ValueError,
                mentions=("b", "device")),
        refuses("0 programs", *pair(8, 16, 8), 0, raises=ValueError, mentions=("num_sms", "0")),
        refuses("num_sms is a float", *pair(8, 16, 8), 2.5, raises=TypeError,
                mentions=("num_sms", "float")),

        sizes(lambda m, k, n, programs, dtype: (*pair(m, k, n, dtype=dtype), programs),
              m=(1, 100), k=(1, 200), n=(1, 100), programs=(1, 5), dtype=("float16", "bfloat16"),
              count=20),

        performance("256 x 256 times 256 x 256, 3 programs, counted", *pair(SIDE, SIDE, SIDE), 3,
                    traffic=TRAFFIC, sectors=1.00, launches=1, programs=3, tensor_cores=True,
                    stages=2, spills=0),
        performance("4096 x 4096 times 4096 x 4096 in float16", *pair(4_096, 4_096, 4_096),
                    tensor_cores=True, spills=0, pass_at=0.65, stretch=0.80),
    ],
)


# ---------------------------------------------------------------------------------------------
# Softmax


softmax = Function(
    entry="persistent_softmax",
    parameters=("x",),
    keyword_only=("num_programs",),
    reference=lambda x, num_programs=None: torch.softmax(x.double(), dim=1),
    tolerance=Tolerance(lambda x, num_programs=None: error_bounds.softmax(x)),
    peer=lambda x, num_programs=None: torch.softmax(x, dim=1),
    reversed_peer=lambda x, num_programs=None: torch.softmax(x.flip(1), dim=1).flip(1),
    contiguous_result=True,
    cost=lambda x, num_programs=None: Cost(bytes=2 * x.nbytes, flops=5 * x.numel()),
    bench=Bench("columns", (1_024, 2_048, 4_096, 8_192, 16_384), lambda n: (rand(4_096, n),),
                at="4096 rows of float32", peer_name="torch.softmax"),
    cases=[
        correctness("5 x 127 floats, 2 programs", rand(5, 127), 2),
        correctness("9 x 129 floats, 1 program", rand(9, 129), 1),
        correctness("3 x 128 floats, 10000 programs", rand(3, 128), MANY),
        correctness("300 x 33 floats", rand(300, 33)),
        correctness("40 x 3 floats with standard deviation 8, 7 programs", rand(40, 3, std=8.0), 7),
        correctness("2 x 4097 floats, 1 program", rand(2, 4_097), 1),
        correctness("1 x 65536 floats, the widest row", rand(1, 65_536)),
        *(correctness(f"7 x 1000 in {dtype}, 3 programs", rand(7, 1_000, dtype=dtype), 3)
          for dtype in ("float32", "float16", "bfloat16")),
        correctness("values near -400, 2 programs", rand(5, 129, mean=-400.0), 2),
        correctness("standard deviation 30, 2 programs", rand(5, 129, std=30.0), 2),

        edge("no row", rand(0, 128), 4, launches=0),
        launchable("70000 rows of one column", rand(70_000, 1), 4),
        edge("no column", rand(3, 0), 4, launches=0),
        edge("one element", rand(1, 1), 4),
        edge("every other row, 100 of 200 columns, 2 programs", rand(10, 200)[::2, 50:150], 2),
        edge("a transposed view, 2 programs", rand(100, 7).mT, 2),
        edge("rows 2**30 elements apart, 1 program", rand(4, 65).apart(FAR, 1), 1),
        edge("NaN and infinities, 1 program",
             rows(row(129), row(129, {60: NAN}), row(129, {128: INF}), row_with(129, -INF, 0, 129),
                  row_with(129, -INF, 1, 60), row(129)), 1),

        refuses("x is None", None, raises=TypeError, mentions=("x", "None")),
        refuses("float64 is not supported", rand(4, 128, dtype="float64"), raises=TypeError,
                mentions=("x", "float64")),
        refuses("one dimension", rand(128), raises=ValueError, mentions=("x", "2", "1")),
        refuses("65537 columns", rand(1, 65_537), raises=ValueError,
                mentions=("x", "65536", "65537")),
        refuses("a negative number of programs", rand(4, 128), -1, raises=ValueError,
                mentions=("num_programs", "-1")),
        refuses("num_programs is a string", rand(4, 128), "4", raises=TypeError,
                mentions=("num_programs", "str")),

        sizes(lambda rows, columns, programs, dtype: (rand(rows, columns, dtype=dtype), programs),
              rows=(1, 5), columns=(1, 5_000), programs=(1, 5), dtype=FLOATS, count=20),

        performance("64 x 1024 floats, 8 programs, counted", rand(64, 1_024), 8,
                    traffic=1.00, sectors=1.00, launches=1, programs=8, spills=0),
        performance("16384 x 4096 floats", rand(16_384, 4_096), spills=0, pass_at=0.75,
                    stretch=0.88),
        performance("12345 x 5000 floats", rand(12_345, 5_000), spills=0, pass_at=0.65,
                    stretch=0.85),
    ],
)


# ---------------------------------------------------------------------------------------------
# Scaling in place


scaling = Function(
    entry="scale_rows_",
    parameters=("x", "s"),
    reference=lambda x, s: x.double() * s.double()[:, None],
    tolerance=EXACT,
    peer=lambda x, s: x * s[:, None],
    cost=lambda x, s: Cost(bytes=2 * x.numel() * x.element_size() + s.numel() * s.element_size(),
                           flops=x.numel()),
    in_place=("x",),
    returns_self=True,
    bench=Bench("columns", (1_024, 2_048, 4_096, 8_192, 16_384),
                lambda n: (rand(4_096, n), rand(4_096)), at="4096 rows of float32",
                peer_name="x * s[:, None]"),
    cases=[
        correctness("5 x 300 floats", rand(5, 300), rand(5, mean=2.0, std=0.1)),
        correctness("3 x 1100 in float16", rand(3, 1_100, dtype="float16"),
                    rand(3, dtype="float16")),
        correctness("4 x 65 in bfloat16", rand(4, 65, dtype="bfloat16"), rand(4, dtype="bfloat16")),
        correctness("2 x 4097 floats", rand(2, 4_097), rand(2)),
        correctness("every other column", rand(3, 140)[:, ::2], rand(3)),
        correctness("every other row, by every other factor", rand(6, 65)[::2], rand(6)[::2]),

        edge("a transposed view", rand(70, 4).mT, rand(4)),
        edge("columns 10 to 73 of a wider matrix", rand(5, 100)[:, 10:74], rand(5)),
        edge("rows 2**30 elements apart", rand(3, 65, dtype="float16").apart(FAR, 1),
             rand(3, dtype="float16")),
        edge("one element", rand(1, 1), rand(1)),
        edge("no row", rand(0, 8), rand(0), launches=0),
        edge("no column", rand(3, 0), rand(3), launches=0),
        edge("factors of zero, NaN and infinity", rand(5, 70),
             rows([0.0, NAN, INF, -INF, -0.0]).then(lambda t: t.view(5))),

        refuses("x is a list", [1.0], rand(1), raises=TypeError, mentions=("x", "list")),
        refuses("float64 is not supported", rand(3, 4, dtype="float64"), rand(3, dtype="float64"),
                raises=TypeError, mentions=("x", "float64")),
        refuses("factors of another dtype", rand(3, 4), rand(3, dtype="float16"),
                raises=TypeError, mentions=("s", "float16", "float32")),
        refuses("one factor per column", rand(3, 4), rand(4), raises=ValueError,
                mentions=("s", "3", "4")),
        refuses("factors in a matrix", rand(3, 4), rand(3, 1), raises=ValueError,
                mentions=("s", "1", "2")),
        refuses("factors on another device", rand(3, 4), rand(3).on_meta(), raises=ValueError,
                mentions=("s", "device")),

        sizes(lambda rows, columns, dtype: (
                  rand(rows, columns, dtype=dtype), rand(rows, dtype=dtype)),
              rows=(1, 5), columns=(1, 5_000), dtype=FLOATS, count=20),

        performance("64 x 1024 floats, counted", rand(64, 1_024), rand(64), traffic=1.05,
                    sectors=1.00, launches=1, spills=0),
    ],
)


# ---------------------------------------------------------------------------------------------
# Configurations

Made = tuple[int, int, int, int, int]  # BLOCK_M, BLOCK_N, BLOCK_K, stages, warps
Problem = tuple[int, int, int]

# Input of prune_configs: tiles of all sizes, some with too many stages or too few warps.
SPACE: tuple[Made, ...] = (
    (64, 64, 32, 4, 4), (64, 64, 64, 3, 4), (64, 256, 32, 4, 4), (64, 256, 64, 3, 4),
    (128, 64, 32, 4, 4), (128, 64, 64, 5, 4), (128, 128, 64, 3, 4), (128, 128, 64, 6, 8),
    (128, 256, 32, 4, 8), (128, 256, 64, 3, 8), (128, 256, 64, 6, 8), (256, 256, 32, 2, 8),
    (256, 256, 32, 2, 16), (128, 256, 64, 2, 4), (32, 32, 128, 2, 4), (128, 256, 128, 2, 8),
)
PROBLEMS: tuple[Problem, ...] = (
    (4_096, 4_096, 4_096), (4_096, 4_096, 33), (100, 4_096, 4_096), (4_096, 65, 512),
    (60, 60, 60), (16, 4_096, 4_096),
)


def stage_bytes(made: Made) -> int:
    block_m, block_n, block_k, stages, _ = made
    return stages * (block_m + block_n) * block_k * 2


def accumulators(made: Made) -> int:
    return made[0] * made[1] // (32 * made[4])


def too_long(made: Made, problem: Problem) -> str:
    """Returns the side of the tile that exceeds the next power of two of the matrix, if any."""
    for name, side, size in zip("MNK", made[:3], problem, strict=True):
        if side > 1 << (size - 1).bit_length():
            return f"BLOCK_{name} = {side} for {name} = {size}"
    return ""


def is_worth_it(made: Made, problem: Problem, limit: int) -> bool:
    return (not too_long(made, problem) and stage_bytes(made) <= limit
            and accumulators(made) <= MAX_ACCUMULATORS)


def label(made: Made) -> str:
    block_m, block_n, block_k, stages, warps = made
    return f"{block_m} x {block_n} x {block_k} with {stages} stages and {warps} warps"


def each_pruning(rule: Callable[[list[int], list[Made], Problem, int], str]
                 ) -> Callable[..., None]:
    """Returns a check of all results; ``rule`` returns the fault of one result, or nothing."""
    def check(answer: Any, space: Sequence[Made], problems: Sequence[Problem],
              limits: Sequence[int | None]) -> None:
        asked = itertools.product(limits, problems)
        for (limit, problem), kept in zip(asked, answer, strict=True):
            limit = H100_SMEM if limit is None else limit
            good = [number for number, made in enumerate(space)
                    if is_worth_it(made, problem, limit)]
            good = good or [min(range(len(space)), key=lambda n: stage_bytes(space[n]))]
            if kept == good:
                continue
            wrong = rule(kept, good, problem, limit)
            assert not wrong, (
                f"For M, N, K = {', '.join(map(str, problem))} and a limit of {limit:,} bytes, "
                f"prune_configs {wrong}")

    return check


def leaves_none(kept: list[int], good: list[int], problem: Problem, limit: int) -> str:
    return "" if kept else "left no configuration, so nothing can be launched"


def drops_good(kept: list[int], good: list[int], problem: Problem, limit: int) -> str:
    if -1 in kept:
        return "returned a configuration that is not in its input"
    if missing := [number for number in good if number not in kept]:
        return (f"dropped {label(SPACE[missing[0]])}: {stage_bytes(SPACE[missing[0]]):,} bytes of "
                f"stages and {accumulators(SPACE[missing[0]])} accumulators per thread, which no "
                f"rule excludes" if len(good) > 1 else
                f"kept {len(kept)} configurations, none of them {label(SPACE[missing[0]])}. The "
                f"rules drop all, and this one needs the least shared memory")
    if sorted(kept) != kept and set(kept) == set(good):
        return "returned the configurations in another order than its input"
    return ""


def keeps_large_stages(kept: list[int], good: list[int], problem: Problem, limit: int) -> str:
    for number in kept:
        if number not in good and stage_bytes(SPACE[number]) > limit:
            return (f"kept {label(SPACE[number])}, which needs {stage_bytes(SPACE[number]):,} "
                    f"bytes of shared memory")
    return ""


def keeps_many_accumulators(kept: list[int], good: list[int], problem: Problem,
                            limit: int) -> str:
    for number in kept:
        if number not in good and accumulators(SPACE[number]) > MAX_ACCUMULATORS:
            return (f"kept {label(SPACE[number])}, of which a thread holds "
                    f"{accumulators(SPACE[number])} accumulators; the limit is {MAX_ACCUMULATORS}")
    return ""


def keeps_long_sides(kept: list[int], good: list[int], problem: Problem, limit: int) -> str:
    for number in kept:
        if number not in good and (side := too_long(SPACE[number], problem)):
            return f"kept a tile with {side}: most of its elements are masked"
    return ""


def is_a_search_space(answer: Any) -> None:
    known = {(one["tile"], one["stages"], one["warps"], str(one["kwargs"])) for one in answer}
    assert len(known) >= LEAST_CONFIGS, (
        f"The search space has {len(known)} different configuration{'s' * (len(known) != 1)}; "
        f"at least {LEAST_CONFIGS} are required.")
    assert len(answer) <= MOST_CONFIGS, (
        f"The search space has {len(answer)} configurations; each is compiled and timed for "
        f"every new problem, and at most {MOST_CONFIGS} are allowed.")
    tiles = {one["tile"] for one in answer}
    if missing := [tile for tile in TILES if tile not in tiles]:
        raise AssertionError("The search space has no tile with BLOCK_M, BLOCK_N, BLOCK_K = "
                             f"{', '.join(map(str, missing[0]))}.")


def has_launch_options(answer: Any) -> None:
    for one in answer:
        for name, value in one["kwargs"].items():
            assert name.upper() not in ("NUM_STAGES", "NUM_WARPS"), (
                f"A configuration passes {name} = {value} to the kernel as a parameter, and the "
                f"launch option num_{name[4:].lower()} stays {one[name[4:].lower()]}: all such "
                "variants are compiled alike.")
    for option in ("stages", "warps"):
        found = sorted({one[option] for one in answer})
        assert len(found) > 1, (
            f"Every configuration of make_configs has num_{option} = {found[0]}.")


# ---------------------------------------------------------------------------------------------
# Launches


def is_tuned(answer: Any, problems: Sequence[Sequence[Any]]) -> None:
    (launch,) = answer
    assert launch.get("configs", 0) >= LEAST_CONFIGS, (
        f"The kernel of matmul_persistent is launched with {launch.get('configs', 0)} "
        f"configurations to choose from, expected at least {LEAST_CONFIGS}.")


def is_pruned(answer: Any, problems: Sequence[Sequence[Any]]) -> None:
    for launch, (m, n, k, _) in zip(answer, problems, strict=True):
        for tile in launch.get("tiles", ()):
            wrong = too_long((*tile, 1, 1), (m, n, k))
            assert not wrong or len(launch["tiles"]) == 1, (
                f"For a product of {m} x {k} times {k} x {n} the autotuner would try "
                f"{len(launch['tiles'])} configurations, one of them with {wrong}: it does not "
                f"call prune_configs.")


def has_its_own_entry(answer: Any, problems: Sequence[Sequence[Any]]) -> None:
    """Checks that no two problems share a tuned entry; launches that are not tuned pass."""
    known: dict[Any, Sequence[Any]] = {}
    for launch, problem in zip(answer, problems, strict=True):
        if "key" not in launch:
            continue
        other = known.setdefault(launch["key"], problem)
        same = [name for name, one, two in zip("MNK", problem, other, strict=False) if one != two]
        assert other is problem or not same, (
            "The same tuned entry is used for " + " and ".join(
                f"M, N, K = {', '.join(map(str, one[:3]))}" for one in (other, problem))
            + f": {' and '.join(same)} is not in the key.")


def has_as_many_programs(answer: Any, problems: Sequence[Sequence[Any]]) -> None:
    for launch, (m, n, k, num_sms) in zip(answer, problems, strict=True):
        assert launch["programs"] == num_sms, (
            f"A product of {m} x {k} times {k} x {n} with num_sms = {num_sms} started "
            f"{launch['programs']} programs, expected {num_sms}: it has more tiles than that.")


def has_as_many_row_programs(answer: Any, problems: Sequence[Sequence[int]]) -> None:
    for programs, (n_rows, n_cols, asked) in zip(answer, problems, strict=True):
        assert programs == min(n_rows, asked), (
            f"A softmax of {n_rows} x {n_cols} with num_programs = {asked} started {programs} "
            f"programs, expected {min(n_rows, asked)}.")


# How scaling in place is tuned


def scales_by_choice(answer: Any) -> None:
    count = answer["configs"]
    assert count >= 4, (
        f"The kernel of scale_rows_ is launched with {count} configurations to choose from, "
        f"expected at least 4.")


# ---------------------------------------------------------------------------------------------
# Predictions



COUNTS = ("visits", "waves", "accumulators", "power")  # predictions that must be exact
PREDICTIONS = (
    ("visits", 8, "Program 5 takes tiles 5, 137, 269 and so on, every 132nd; the last one below "
     "1,000 is 929."),
    ("waves", 4, "The result has 32 x 16 tiles; 512 tiles on 132 SMs are 3 full waves and a "
     "partial one."),
    ("last_wave", 116 / 132, "Three waves take 396 of 512 tiles, so 116 are left for 132 SMs."),
    ("stage_bytes", 147_456, "A stage holds 128 x 64 elements of A and 64 x 256 of B with 2 bytes "
     "each, and there are three stages."),
    ("accumulators", 128, "32,768 accumulators are distributed over 8 warps of 32 threads."),
    ("power", 5, "Each of the four trials multiplies the result of the previous one, and the call "
     "itself multiplies once more."),
)


suite = Suite(
    functions=(matmul, softmax, scaling),
    host={"make_configs": (), "prune_configs": ("configs", "named_args")},
    marker="DECIDE",
    cases=[
        call("the scaling kernel is tuned", "tuned_scaling", check=scales_by_choice, code="T06"),

        # The search space, and its pruning.
        call("a search space of 12 to 48 configurations", "configurations",
             check=is_a_search_space, code="T06"),
        call("stages and warps are options of the launch", "configurations",
             check=has_launch_options, code="T06"),
        call("one configuration is always left", "pruned", SPACE, PROBLEMS, LIMITS,
             check=each_pruning(leaves_none), code="L05"),
        call("no configuration is dropped without a reason", "pruned", SPACE, PROBLEMS, LIMITS,
             check=each_pruning(drops_good)),
        call("stages fit shared memory", "pruned", SPACE, PROBLEMS, LIMITS,
             check=each_pruning(keeps_large_stages), code="T05"),
        call("stages fit the shared memory of an H100 unless a limit is given", "pruned", SPACE,
             PROBLEMS, (None,), check=each_pruning(keeps_large_stages), code="T05"),
        call("accumulators fit the registers", "pruned", SPACE, PROBLEMS, LIMITS,
             check=each_pruning(keeps_many_accumulators), code="T04"),
        call("no tile is twice as long as the matrices", "pruned", SPACE, PROBLEMS, LIMITS,
             check=each_pruning(keeps_long_sides), code="T03"),

        # Launches.
        call("the product is tuned over the search space", "products", ((128, 128, 128, 3),),
             check=is_tuned, code="T06"),
        call("the product prunes its search space", "products",
             ((64, 64, 64, 3), (256, 64, 32, 3)), check=is_pruned, code="T06"),
        call("each M, N and K is tuned separately", "products",
             ((256, 256, 256, 3), (512, 256, 256, 3), (256, 512, 256, 3), (256, 256, 64, 3),
              (256, 256, 2_048, 3)), check=has_its_own_entry),
        call("num_sms programs start", "products",
             ((1_024, 1_024, 64, 1), (1_024, 1_024, 64, 3), (1_024, 1_024, 64, 16)),
             check=has_as_many_programs, code="T03"),
        call("num_programs programs start", "softmax_programs",
             ((64, 128, 1), (64, 128, 7), (64, 128, 64), (64, 128, 1_000)),
             check=has_as_many_row_programs, code="T03"),

        # Predictions: shown, never deciding.
        *predictions(PREDICTIONS, COUNTS),
    ],
)


# ---------------------------------------------------------------------------------------------
# Properties


def difference(got: torch.Tensor, expected: torch.Tensor) -> str:
    """Describes how two tensors differ."""
    wrong = got != expected
    first = tuple(int(i) for i in wrong.nonzero()[0])
    return (f"{int(wrong.sum())} of {wrong.numel()} elements differ, the first at {list(first)}: "
            f"{got[first].item()!r} and {expected[first].item()!r}")


def test_the_product_does_not_depend_on_how_many_programs_there_are(submission):
    a, b = submission.draw(*pair(200, 96, 60))

    alone = submission.matmul_persistent(a, b, 1)

    for num_sms in (3, 132):
        shared = submission.matmul_persistent(a, b, num_sms)
        assert torch.equal(shared, alone), (
            f"{num_sms} programs against 1: {difference(shared, alone)}")


def test_softmax_does_not_depend_on_how_many_programs_there_are(submission):
    (x,) = submission.draw(rand(9, 130))

    alone = submission.persistent_softmax(x, 1)

    for num_programs in (4, 132):
        shared = submission.persistent_softmax(x, num_programs)
        assert torch.equal(shared, alone), (
            f"{num_programs} programs against 1: {difference(shared, alone)}")


def test_rows_of_a_softmax_sum_to_one(submission):
    (x,) = submission.draw(rand(7, 1_000, std=2.0))

    off = (submission.persistent_softmax(x, 3).double().sum(dim=1) - 1).abs()

    most = 1_001 * 2.0**-24  # rounding each of 1,000 shares, and their sum
    assert off.max() <= most, (
        f"the sum of row {int(off.argmax())} differs from 1 by {off.max():.3g}; rounding explains "
        f"{most:.3g}")


def test_doubling_a_doubles_the_product(submission):
    a, b = submission.draw(*pair(130, 30, 40, dtype="bfloat16"))

    doubled = submission.matmul_persistent(2 * a, b, 2)
    plain = submission.matmul_persistent(a, b, 2)

    assert torch.equal(doubled, 2 * plain), (
        f"(2 a) b against 2 (a b): {difference(doubled, 2 * plain)}")
