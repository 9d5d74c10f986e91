"""Hidden tests of basic debugging: nine repaired kernels, their diagnoses, two tools."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F  # noqa: N812 - torch's own spelling

from grader.suite import (
    EXACT,
    FLOATS,
    TENSOR_CORES,
    Amplitude,
    Bench,
    Case,
    Cost,
    Function,
    Input,
    Suite,
    Tolerance,
    call,
    correctness,
    edge,
    error_bounds,
    extremes,
    full,
    performance,
    rand,
    row,
    row_with,
    rows,
    sizes,
    special,
    spike,
)

INF = math.inf
NAN = math.nan
PRIME = 9_973
LENGTHS = (1 << 18, 1 << 22, 1 << 26)  # elements that are timed
SIDES = (1_024, 4_096, 8_192)
NONFINITE = [NAN, INF, -INF, 0.0, 2.0**-149]  # not -0.0: relu may give either zero for it
NONFINITE_16 = [NAN, INF, -INF, 0.0, 2.0**-24]  # float16 has its least number there

# ---------------------------------------------------------------------------------------------
# Element by element


def vectors(*more: object, count: int = 1) -> list[Case]:
    """Lengths around the learner's own block, a prime, three dtypes, special values."""

    def case(kind: Callable[..., Case], name: str, make: Callable[[], Input]) -> Case:
        return kind(name, *(make() for _ in range(count)), *more)

    lengths: list[tuple[str, Callable[[int], int]]] = [
        ("one number less than a block", lambda block: block - 1),
        ("one block", lambda block: block),
        ("one number more than a block", lambda block: block + 1),
        ("one number less than two blocks", lambda block: 2 * block - 1),
        ("three blocks and 7 numbers", lambda block: 3 * block + 7),
    ]
    return [
        case(correctness, "9 973 floats, a prime", lambda: rand(PRIME)),
        case(correctness, "777 float16", lambda: rand(777, dtype="float16")),
        case(correctness, "777 bfloat16", lambda: rand(777, dtype="bfloat16")),
        case(correctness, "numbers around 10 000", lambda: rand(1_000, mean=1e4)),
        case(edge, "no number", lambda: rand(0)),
        case(edge, "one number", lambda: rand(1)),
        *(case(edge, name, lambda length=length: rand(length)) for name, length in lengths),
        case(edge, "NaN, infinities, 0, a denormal number",
             lambda: special(1_000, values=NONFINITE)),
        case(edge, "NaN, infinities, 0, a denormal number in float16",
             lambda: special(1_000, values=NONFINITE_16, dtype="float16")),
    ]


scale = Function(
    "scale", ("x", "s"),
    reference=lambda x, s: x.double() * s,
    tolerance=EXACT,
    peer=lambda x, s: x * s,
    bench=Bench("elements", LENGTHS, lambda n: (rand(n), 2.5), peer_name="x * s"),
    cost=lambda x, s: Cost(bytes=2 * x.nbytes, flops=x.numel()),
    cases=[
        correctness("1 000 floats", rand(1_000), 2.5, public=True),
        correctness("1 000 floats by 0", rand(1_000), 0.0),
        *vectors(-0.75),

        sizes(lambda n, dtype: (rand(n, dtype=dtype), 2.5),
              n=(1, 5_000), dtype=FLOATS, count=20),

        performance("20 000 floats", rand(20_000), 2.5, traffic=1.0, launches=1),
    ],
)

clip_add = Function(
    "clip_add", ("x", "y", "lo", "hi"),
    reference=lambda x, y, lo, hi: (x.double() + y.double()).clamp(lo, hi),
    tolerance=EXACT,
    peer=lambda x, y, lo, hi: (x + y).clamp(lo, hi),
    bench=Bench("elements", LENGTHS, lambda n: (rand(n), rand(n), -0.5, 1.25),
                peer_name="(x + y).clamp(lo, hi)"),
    cost=lambda x, y, lo, hi: Cost(bytes=3 * x.nbytes, flops=3 * x.numel()),
    cases=[
        correctness("1 000 floats", rand(1_000), rand(1_000), -0.5, 1.25, public=True),
        *vectors(-0.5, 1.25, count=2),
        correctness("sums that are never clipped", rand(500), rand(500), -100.0, 100.0),
        correctness("sums that are always clipped", rand(500, mean=50.0), rand(500), -1.0, 2.0),

        sizes(lambda n, dtype: (rand(n, dtype=dtype), rand(n, dtype=dtype), -0.5, 1.25),
              n=(1, 5_000), dtype=FLOATS, count=20),

        # Little more than a whole number of blocks: a padded copy is a fifth longer.
        performance("1 025 floats", rand(1_025), rand(1_025), -0.5, 1.25,
                    traffic=1.0, launches=1),
    ],
)

relu = Function(
    "relu", ("x",),
    reference=lambda x: torch.relu(x.double()),
    tolerance=EXACT,
    peer=torch.relu,
    bench=Bench("elements", LENGTHS, lambda n: (rand(n),), peer_name="torch.relu"),
    cost=lambda x: Cost(bytes=2 * x.nbytes, flops=x.numel()),
    cases=[
        correctness("1 000 floats", rand(1_000)),
        *vectors(),
        correctness("nothing but negative numbers", rand(1_000, mean=-30.0)),

        sizes(lambda n, dtype: (rand(n, dtype=dtype),),
              n=(1, 5_000), dtype=FLOATS, count=20),

        performance("20 000 floats", rand(20_000), traffic=1.0, launches=1),
    ],
)


# ---------------------------------------------------------------------------------------------
# Rows and columns

SIZES = [(1, 1), (1, 129), (3, 128), (127, 33), (5, 1_000)]


def matrices(dtypes: Sequence[str] = ("float16", "bfloat16")) -> list[Case]:
    """Sizes below, at and above powers of two, tall and wide, in three dtypes."""
    return [
        *(correctness(f"{m} x {n} floats", rand(m, n)) for m, n in SIZES),
        *(correctness(f"33 x 127 in {dtype}", rand(33, 127, dtype=dtype)) for dtype in dtypes),
        correctness("64 x 64 floats", rand(64, 64)),
    ]


col_sum = Function(
    "col_sum", ("x",),
    reference=lambda x: x.double().sum(0),
    tolerance=Tolerance(lambda x: error_bounds.total(x, dim=0)),
    peer=lambda x: x.sum(0),
    reversed_peer=lambda x: x.flip(0).sum(0),
    bench=Bench("rows and columns", SIDES, lambda n: (rand(n, n),), peer_name="x.sum(0)"),
    cost=lambda x: Cost(bytes=x.nbytes + x.shape[1] * x.element_size(), flops=x.numel()),
    cases=[
        correctness("50 x 70 floats", rand(50, 70), public=True),
        *matrices(),
        correctness("300 x 40 floats around 10 000", rand(300, 40, mean=1e4, std=1e3)),
        correctness("3 000 x 20 float16 around 8: float16 loses count",
                    rand(3_000, 20, mean=8.0, dtype="float16")),
        edge("no row: the sums are 0", rand(0, 40)),
        edge("one row", rand(1, 70)),
        edge("one column", rand(70, 1)),
        edge("NaN and infinities stay in their columns",
             rows(*(row(40, {n: value}) for n, value in enumerate((NAN, INF, -INF))), row(40))),

        sizes(lambda rows, columns, dtype: (rand(rows, columns, dtype=dtype),),
              rows=(1, 100), columns=(1, 200), dtype=FLOATS, count=20),

        performance("512 x 96 floats", rand(512, 96), traffic=1.0, launches=1),
    ],
)

row_max = Function(
    "row_max", ("x",),
    reference=lambda x: x.double().amax(1),
    tolerance=EXACT,
    peer=lambda x: x.amax(1),
    reversed_peer=lambda x: x.flip(1).amax(1),
    bench=Bench("rows and columns", SIDES, lambda n: (rand(n, n),), peer_name="x.amax(1)"),
    cost=lambda x: Cost(bytes=x.nbytes + x.shape[0] * x.element_size(), flops=x.numel()),
    cases=[
        correctness("20 x 50 floats, all below 0", rand(20, 50, mean=-100.0)),
        *matrices(),
        correctness("rows near -3e38", rand(5, 50).then(lambda t: t * 1e35 - 3e38)),
        correctness("one number far above all others", spike(3_000)),
        correctness("20 x 50 in float16, all below 0", rand(20, 50, mean=-100.0, dtype="float16")),
        edge("no row", rand(0, 50)),
        edge("one column, below 0", rand(6, 1, mean=-10.0)),
        edge("-inf beside other numbers, and nothing but -inf",
             rows(row_with(50, -INF, 1, 50), row_with(50, -INF, 0, 50), row(50, {7: INF}))),
        edge("the largest number and its negative",
             special(4, 129, values=extremes("float32")[:2], share=1.0)),
        edge("all equal to -7.25", full(3, 100, value=-7.25), public=True),

        sizes(lambda rows, columns, dtype: (rand(rows, columns, dtype=dtype),),
              rows=(1, 100), columns=(1, 200), dtype=FLOATS, count=20),

        performance("64 x 1 000 floats", rand(64, 1_000), traffic=1.0, launches=1),
    ],
)

first_elem = Function(
    "first_elem", ("x",),
    reference=lambda x: x[:, 0].double(),
    tolerance=EXACT,
    peer=lambda x: x[:, 0].clone(),
    bench=Bench("rows", (1 << 14, 1 << 17, 1 << 20), lambda n: (rand(n, 64),),
                at="64 columns of float32", peer_name="x[:, 0].clone()"),
    cost=lambda x: Cost(bytes=2 * x.shape[0] * x.element_size()),
    cases=[
        correctness("20 x 50 floats", rand(20, 50)),
        *matrices(),
        edge("no row", rand(0, 50)),
        edge("one column", rand(100, 1)),
        edge("NaN and infinities in front, and behind",
             rows(row(50, {0: NAN}), row(50, {0: INF}), row(50, {1: NAN, 49: INF}), row(50))),

        sizes(lambda rows, columns, dtype: (rand(rows, columns, dtype=dtype),),
              rows=(1, 100), columns=(1, 200), dtype=FLOATS, count=20),

        performance("500 x 64 floats", rand(500, 64), traffic=1.0, launches=1),
    ],
)


# ---------------------------------------------------------------------------------------------
# Tiles and windows


def outer(m: int, n: int, dtype: str = "float32") -> tuple[Input, Input]:
    return rand(m, dtype=dtype), rand(n, dtype=dtype)


masked_outer = Function(
    "masked_outer", ("x", "y"),
    reference=lambda x, y: x.double()[:, None] * y.double()[None, :],
    tolerance=EXACT,
    peer=torch.outer,
    bench=Bench("elements of both vectors", SIDES, lambda n: outer(n, n),
                peer_name="torch.outer"),
    cost=lambda x, y: Cost(bytes=x.nbytes + y.nbytes + x.numel() * y.nbytes,
                           flops=x.numel() * y.numel()),
    cases=[
        correctness("33 x 60 floats", *outer(33, 60)),
        correctness("1 x 1 floats", *outer(1, 1)),
        correctness("127 x 33 floats", *outer(127, 33)),
        correctness("5 x 1 000 floats", *outer(5, 1_000)),
        correctness("64 x 64 floats", *outer(64, 64)),
        correctness("60 x 64 floats", *outer(60, 64)),
        correctness("64 x 60 floats", *outer(64, 60)),
        correctness("33 x 60 in float16", *outer(33, 60, "float16")),
        correctness("33 x 60 in bfloat16", *outer(33, 60, "bfloat16")),
        edge("x is empty", *outer(0, 60)),
        edge("y is empty", *outer(60, 0)),
        edge("NaN, infinities and 0", special(40, values=NONFINITE), rand(30)),

        sizes(outer, m=(1, 100), n=(1, 200), dtype=FLOATS, count=20),

        performance("one tile of 33 x 60 floats", *outer(33, 60), traffic=1.0, launches=1),
    ],
)


def windows(x: torch.Tensor, k: int, stride: int, pad: int) -> torch.Tensor:
    return F.pad(x, (pad, pad)).unfold(0, k, stride)


def pooled(n: int, k: int, stride: int, pad: int, kind: Callable[..., Case] = correctness,
           **how: object) -> Case:
    name = f"{n:,} floats, k {k}, stride {stride}, pad {pad}".replace(",0", " 0")
    return kind(name, rand(n), k, stride, pad, **how)


avg_pool1d = Function(
    "avg_pool1d", ("x", "k", "stride", "pad"),
    reference=lambda x, k, stride, pad: windows(x.double(), k, stride, pad).mean(-1),
    tolerance=Tolerance(lambda x, k, stride, pad: error_bounds.mean(windows(x, k, stride, pad))),
    peer=lambda x, k, stride, pad: windows(x, k, stride, pad).mean(-1),
    reversed_peer=lambda x, k, stride, pad: windows(x, k, stride, pad).flip(-1).mean(-1),
    bench=Bench("elements", LENGTHS, lambda n: (rand(n), 4, 4, 0), at="float32, windows of 4",
                peer=lambda x, k, stride, pad: F.avg_pool1d(x[None], k, stride, pad)[0],
                peer_name="F.avg_pool1d"),
    cost=lambda x, k, stride, pad: Cost(
        bytes=(x.numel() + (x.numel() + 2 * pad - k) // stride + 1) * x.element_size(),
        flops=k * ((x.numel() + 2 * pad - k) // stride + 1)),
    cases=[
        pooled(100, 3, 2, 1),
        pooled(100, 3, 1, 1),
        pooled(100, 2, 2, 0),
        pooled(101, 5, 3, 4),
        pooled(500, 9, 4, 0),
        pooled(60, 2, 5, 1),
        correctness("200 float16, k 3, stride 2, pad 1", rand(200, dtype="float16"), 3, 2, 1),
        correctness("200 bfloat16, k 3, stride 2, pad 1", rand(200, dtype="bfloat16"), 3, 2, 1),
        correctness("200 float16 around 3 000, whose sums float16 cannot hold",
                    rand(200, mean=3_000.0, std=500.0, dtype="float16"), 50, 7, 0),
        pooled(1, 1, 1, 0, edge),
        pooled(7, 7, 1, 3, edge),
        pooled(1, 3, 1, 1, edge),
        pooled(3, 3, 2, 2, edge),
        edge("exactly one window", rand(9), 9, 4, 0),
        edge("NaN and infinities stay in their windows",
             special(100, values=[NAN, INF, -INF], share=0.03), 3, 2, 1),

        sizes(lambda n, k, stride, dtype: (rand(n, dtype=dtype), k, stride, k // 2),
              n=(9, 2_000), k=(1, 9), stride=(1, 5), dtype=FLOATS, count=20),

        performance("4 096 floats, k 4, stride 4", rand(4_096), 4, 4, 0, traffic=1.0, launches=1),
    ],
)


def product(p: torch.Tensor, v: torch.Tensor) -> Amplitude:
    return error_bounds.matmul(p, v)


def operands(m: int, k: int, n: int, dtype: str = "float16") -> tuple[Input, Input]:
    return rand(m, k), rand(k, n, dtype=dtype)


weighted_sum = Function(
    "weighted_sum", ("p", "v"),
    reference=lambda p, v: p.double() @ v.double(),
    # Three TF32 products per product are accurate enough; a single one gets its own message.
    tolerance=Tolerance(product, arithmetic=TENSOR_CORES, products=(0, 1)),
    peer=lambda p, v: p @ v.float(),
    reversed_peer=lambda p, v: p.flip(1) @ v.flip(0).float(),
    bench=Bench("rows and columns", (512, 1_024, 2_048), lambda n: operands(n, n, n),
                at="float32 times float16",
                peer_name="p @ v.float()"),
    cost=lambda p, v: Cost(bytes=p.nbytes + v.nbytes + 4 * p.shape[0] * v.shape[1],
                           flops=2 * p.numel() * v.shape[1]),
    cases=[
        # Weights this small are outside the range in which float16 and TF32 round alike.
        correctness("32 x 300 weights near 1e-5", rand(32, 300, mean=1e-5, std=3e-6),
                    rand(300, 32, dtype="float16")),
        correctness("16 x 70 times 70 x 40", *operands(16, 70, 40)),
        correctness("16 x 70 times 70 x 40 in bfloat16", *operands(16, 70, 40, "bfloat16")),
        correctness("33 x 65 times 65 x 31", *operands(33, 65, 31)),
        correctness("64 x 64 times 64 x 64", *operands(64, 64, 64)),
        correctness("values around 1 000", rand(20, 128), rand(128, 20, mean=1e3, dtype="float16")),
        edge("one weight", *operands(1, 1, 1)),
        edge("one weight in each row", *operands(20, 1, 30)),
        edge("one weight in each row, for bfloat16", *operands(9, 1, 40, "bfloat16")),
        edge("two weights in each row", *operands(17, 2, 5)),
        edge("one row", *operands(1, 100, 40)),
        edge("one column", *operands(40, 100, 1)),
        edge("a value of 65 504 and one of infinity",
             rand(8, 40), special(40, 8, values=[65_504.0, INF], share=0.01, dtype="float16")),

        sizes(operands, m=(1, 60), k=(1, 200), n=(1, 60), dtype=("float16", "bfloat16"), count=20),

        performance("32 x 512 times 512 x 32", *operands(32, 512, 32), traffic=1.0, launches=1),
    ],
)


# ---------------------------------------------------------------------------------------------
# Diagnoses

ORIGINAL = Path(__file__).with_name("original.txt").read_text(encoding="utf-8").split("\n")
PHASES = ("compile", "launch", "memory", "value", "boundary", "dtype")
CAUSES = (
    "element-of-a-block", "grid-too-small", "grid-not-a-tuple", "loop-changes-shape",
    "low-precision-sum", "missing-mask", "no-such-function", "offset-overflow",
    "operands-of-two-types", "operator-precedence", "race-between-programs", "size-not-constexpr",
    "truncating-division", "wrong-neutral-element", "wrong-stride",
)


def seen_as(name: str, phase: str, cause: str, *faulty: str, evidence: str) -> Case:
    """One entry of DIAGNOSES; ``faulty`` are parts of the lines that may be named as faulty.

    ``evidence`` contradicts another phase without naming the right one.
    """
    lines = [line for line in ORIGINAL if any(part in line for part in faulty)]

    def check(answer: object, *_: object) -> None:
        assert answer is not None, f"DIAGNOSES has no entry for `{name}`"
        fields = [getattr(answer, field, None) for field in ("phase", "cause", "line_contains")]
        assert getattr(answer, "type", "") == "Diagnosis" and all(
            isinstance(field, str) for field in fields), (
            f"the entry for `{name}` is {answer!r:.80}; expected a Diagnosis with three strings")
        got_phase, got_cause, part = fields
        assert any(fields), f"the entry for `{name}` is empty"
        assert got_phase in PHASES, (
            f"`{name}`: {got_phase!r} is not one of the six phases: {', '.join(PHASES)}")
        assert got_phase == phase, f"`{name}`: the phase is {got_phase!r}, but {evidence}"
        assert got_cause in CAUSES, (
            f"`{name}`: {got_cause!r} is not one of the causes in the README")
        assert got_cause == cause, (
            f"`{name}`: {got_cause!r} does not explain the whole symptom; the phase is right")
        holding = [line for line in ORIGINAL if part.strip() and part in line]
        assert holding, (
            f"`{name}`: no line of the file as it was handed out contains {part!r:.60}")
        assert len(holding) <= 2, (
            f"`{name}`: {len(holding)} lines of the file as it was handed out contain "
            f"{part!r:.60}; at most two may")
        assert any(part in line for line in lines), (
            f"`{name}`: {part!r:.60} is in the file as it was handed out, but not in a line that "
            "has to change")

    return call(f"the diagnosis of {name}", "diagnosis", name, check=check)


diagnoses = [
    seen_as("scale", "compile", "size-not-constexpr", "n, s, BLOCK,",
            evidence="Triton refuses it before it runs"),
    seen_as("clip_add", "boundary", "grid-too-small", "n // block",
            evidence="every access is in bounds and every value that was stored is right; of 1,000 "
                     "results, 232 were never written"),
    seen_as("relu", "compile", "no-such-function", "tl.relu(x)",
            evidence="Triton refuses it before it runs, for every dtype"),
    seen_as("col_sum", "compile", "loop-changes-shape", "acc = tl.zeros((BLOCK,)",
            "acc += x.to(tl.float32)",
            evidence="the interpreter returns the right sums and the compiler refuses it, for "
                     "every dtype"),
    seen_as("row_max", "value", "wrong-neutral-element", "cols, mask=cols < N, other=0.0)",
            evidence="it compiles, every access is in bounds and every result is written, for all "
                     "dtypes alike"),
    seen_as("first_elem", "compile", "element-of-a-block", "v[0]",
            evidence="Triton refuses it before it runs, for every dtype"),
    seen_as("masked_outer", "memory", "operator-precedence", "& cols[None, :] < N",
            evidence="for 33 x 60, one program stores 1,988 elements past the end of the result"),
    seen_as("avg_pool1d", "value", "truncating-division", "(padded - k) // stride",
            evidence="it compiles, every access is in bounds and every result is written, for all "
                     "dtypes alike"),
    seen_as("weighted_sum", "dtype", "operands-of-two-types", "tl.dot(p, v,",
            "tl.load(v_ptr",
            evidence="with p and v of one dtype it compiles and is right"),
]


# ---------------------------------------------------------------------------------------------
# compare

Index = tuple[int, ...]


def pair(*sizes: int, plant: dict[Index, tuple[float, float]] | None = None,
         dtype: str = "float32", noise: float = 0.0) -> Input:
    """Two equal tensors in one, with (actual, expected) planted at some indices.

    ``noise`` is the size of a relative difference everywhere.
    """

    def make(generator: torch.Generator, _: tuple[int, ...]) -> torch.Tensor:
        expected = torch.randn(sizes, generator=generator, dtype=torch.float64)
        expected = (expected * 100).round() if dtype.startswith("int") else expected + 3.0
        expected = expected.to(getattr(torch, dtype)).double()
        actual = expected * (1 + noise * torch.randn(sizes, generator=generator).double())
        for index, (got, wanted) in (plant or {}).items():
            actual[index], expected[index] = got, wanted
        return torch.stack([actual, expected])

    return Input(make, (), dtype)


def truth(actual: torch.Tensor, expected: torch.Tensor, rtol: float, atol: float) -> dict:
    """The fields of a Comparison, computed element by element in Python."""
    flat = list(zip(actual.double().flatten().tolist(), expected.double().flatten().tolist(),
                    strict=True))
    bad, farness, absolute, relative, nans, infinities = [], [], [0.0], [0.0], 0, 0
    for number, (got, wanted) in enumerate(flat):
        if math.isnan(got) or math.isnan(wanted):
            off = 0.0 if math.isnan(got) and math.isnan(wanted) else INF
            nans += off > 0
        elif math.isinf(got) or math.isinf(wanted):
            off = 0.0 if got == wanted else INF
            infinities += off > 0
        else:
            off = abs(got - wanted)
            absolute.append(off)
            if wanted:
                relative.append(off / abs(wanted))
        if off == INF or off > atol + rtol * abs(wanted if math.isfinite(wanted) else 0.0):
            bad.append(number)
            farness.append(off)

    def index(number: int) -> Index:
        return tuple(int(i) for i in np.unravel_index(number, tuple(expected.shape)))

    return {
        "ok": not bad, "n_bad": len(bad), "n_total": len(flat),
        "first_bad": index(bad[0]) if bad else None,
        "worst": index(bad[farness.index(max(farness))]) if bad else None,
        "max_abs": max(absolute), "max_rel": max(relative),
        "nan_mismatch": nans, "inf_mismatch": infinities,
    }


NUMBER = re.compile(r"[-+]?(?:\d[\d_]*\.?\d*(?:[eE][-+]?\d+)?|\.\d+|nan|inf(?:inity)?)",
                    re.IGNORECASE)


def told(message: str, value: float) -> bool:
    """Whether a message holds a number as good as equal to ``value``."""
    if isinstance(value, bool) and re.search(rf"\b{value}\b", message):
        return True
    numbers = [float(found) for found in NUMBER.findall(message)]
    if math.isnan(value):
        return any(map(math.isnan, numbers))
    return any(math.isclose(number, value, rel_tol=1e-3, abs_tol=1e-9) for number in numbers)


def compared(name: str, made: Input, rtol: float = 0.0, atol: float = 0.0,
             dtype: str = "") -> Case:
    """`compare` on a planted pair: every field has to be what Python's own arithmetic says."""

    def check(answer: object, both: torch.Tensor, *_: object) -> None:
        actual, expected = both
        actual = actual.to(getattr(torch, dtype)) if dtype else actual
        right = truth(actual, expected, rtol, atol)
        assert not isinstance(answer, dict) or "raised" not in answer, (
            f"`compare` raised {answer['raised']:.120}{clue(actual, expected, right)}")
        assert getattr(answer, "type", "") == "Comparison", (
            f"`compare` returned {answer!r:.80}, expected a Comparison")
        given = {field: getattr(answer, field, None) for field in (*right, "message")}
        for field, value in right.items():
            got = given[field]
            if isinstance(value, float):
                same = isinstance(got, int | float) and math.isclose(got, value, rel_tol=1e-5,
                                                                     abs_tol=1e-300)
            else:
                same = type(got) is type(value) and got == value
            assert same, f"`{field}` is {got!r}, expected {value!r}{clue(actual, expected, right)}"
        message = given["message"]
        assert isinstance(message, str), f"`message` is {message!r:.60}, expected a string"
        if not right["ok"]:
            at = right["first_bad"]
            asked = {"the number of bad elements": told(message, right["n_bad"]),
                     "the actual value": told(message, actual[at].item()),
                     "the expected value": told(message, expected[at].item()),
                     "the index": re.search(r"\D+".join(map(str, at)), message) is not None}
            missing = [what for what, there in asked.items() if not there]
            assert not missing, (
                f"the message lacks {' and '.join(missing)} of the first bad element, {list(at)}: "
                f"{message!r:.120}")

    return call(name, "compare", made, rtol, atol, dtype, check=check)


def clue(actual: torch.Tensor, expected: torch.Tensor, right: dict) -> str:
    """The values planted at the first bad index; otherwise the first index where both are NaN."""
    at = right["first_bad"]
    if at is not None:
        return f"; at {list(at)}, got {actual[at].item():.9g}, expected {expected[at].item():.9g}"
    both = (actual.isnan() & expected.isnan()).nonzero() if actual.is_floating_point() else []
    return f"; both tensors are NaN at {both[0].tolist()}" if len(both) else ""


def unchanged(answer: object, *_: object) -> None:
    assert answer is True, "`compare` modified one of its arguments"


comparisons = [
    compared("compare: nothing differs", pair(7, 9)),
    compared("compare: one element of 7 x 9", pair(7, 9, plant={(4, 2): (5.0, 2.0)})),
    compared("compare: NaN in both", pair(7, 9, plant={(2, 3): (NAN, NAN)})),
    compared("compare: NaN where a number is expected", pair(7, 9, plant={(2, 3): (NAN, 1.5)})),
    compared("compare: a number where NaN is expected", pair(7, 9, plant={(6, 8): (1.5, NAN)})),
    compared("compare: NaN in both, and one element besides",
             pair(7, 9, plant={(0, 0): (NAN, NAN), (3, 3): (2.0, 4.0)}), 1e-3, 1e-3),
    compared("compare: infinities that agree",
             pair(50, plant={(3,): (INF, INF), (4,): (-INF, -INF)}), 1e-5, 1e-5),
    compared("compare: inf against -inf", pair(50, plant={(30,): (INF, -INF)}), 1e-5, 1e-5),
    compared("compare: inf against the largest float",
             pair(50, plant={(30,): (INF, 3.4028234663852886e38)}), 1.0, 1.0),
    compared("compare: a number where inf is expected",
             pair(50, plant={(9,): (7.0, INF)}), 1e-5, 1e-5),
    compared("compare: NaN where inf is expected", pair(50, plant={(9,): (NAN, INF)}), 0.5, 0.5),
    compared("compare: one element is one unit in the last place off",
             pair(40, 40, plant={(39, 39): (1.0000001192092896, 1.0)})),
    compared("compare: that is within the tolerance",
             pair(40, 40, plant={(39, 39): (1.0000001192092896, 1.0)}), 1e-6),
    compared("compare: expected is 0, which has no relative difference",
             pair(20, plant={(5,): (1e-3, 0.0), (6,): (0.0, 0.0), (7,): (2.2, 2.0)}), 1e-6, 1e-2),
    compared("compare: 0 and -0 are equal", pair(20, plant={(5,): (0.0, -0.0)})),
    compared("compare: the first is not the worst",
             pair(4, 5, 6, plant={(1, 2, 3): (1.0, 1.5), (3, 0, 1): (9.0, 1.0)}), 1e-3),
    compared("compare: the first bad index is in row-major order",
             pair(5, 5, plant={(3, 0): (4.0, 1.0), (1, 4): (2.0, 1.0)})),
    compared("compare: two are equally bad", pair(6, 6, plant={(4, 4): (NAN, 1.0),
                                                              (2, 5): (INF, 1.0)})),
    compared("compare: NaN and infinity are farther than any number",
             pair(5, plant={(1,): (3.0, 0.0), (3,): (NAN, 0.0)})),
    compared("compare: NaN is expected, and a number is far off",
             pair(5, plant={(0,): (3e30, -3e30), (3,): (0.0, NAN)})),
    compared("compare: infinity and NaN are equally far",
             pair(6, 6, plant={(0, 1): (8.0, 1.0), (2, 5): (NAN, 1.0), (4, 4): (1.0, -INF)})),
    compared("compare: several of each kind",
             pair(30, plant={(2,): (NAN, 1.0), (3,): (INF, NAN), (5,): (NAN, NAN),
                             (7,): (NAN, -INF), (8,): (INF, 1.0), (9,): (2.0, -INF),
                             (11,): (INF, INF), (12,): (-INF, INF), (20,): (1.0, 4.0)}), 0.0, 0.1),
    compared("compare: infinities and a relative tolerance of 0",
             pair(9, plant={(2,): (INF, INF), (4,): (1.0, INF), (6,): (-INF, INF)}), 0.0, 1.0),
    compared("compare: the tolerance is scaled by what was expected",
             pair(9, plant={(2,): (1.0, 2.0), (4,): (2.0, 1.0)}), 0.625),
    compared("compare: both tolerances are added",
             pair(9, plant={(2,): (3.0, 2.0), (4,): (5.0, 2.0)}), 0.25, 0.75),
    compared("compare: exactly at the limit",
             pair(9, plant={(2,): (1.5, 1.0), (4,): (0.25, 0.0), (6,): (1.625, 1.0)}), 0.25, 0.25),
    compared("compare: negative numbers",
             pair(9, plant={(2,): (-2.25, -2.0), (4,): (-1.5, -4.0), (6,): (-6.0, -2.0)}), 0.25),
    compared("compare: 0 where a small number is expected",
             pair(9, plant={(4,): (0.0, 1e-3), (6,): (0.0, -0.0)}), 1e-6, 1e-2),
    compared("compare: a good element is farther off than the worst",
             pair(9, plant={(2,): (1005.0, 1000.0), (4,): (2.0, 1.0), (7,): (1.0, 2.5)}), 0.01),
    compared("compare: the worst is the largest difference, whatever was expected",
             pair(9, plant={(2,): (2.0, 1.0), (4,): (110.0, 100.0), (7,): (9.0, 1.0)}), 0.08),
    compared("compare: two numbers are equally far off",
             pair(9, plant={(2,): (2.0, 1.0), (5,): (1.0, 4.0), (7,): (5.0, 2.0)})),
    compared("compare: columns that are contiguous",
             pair(5, 7, plant={(4, 1): (2.0, 1.0), (1, 6): (4.0, 2.0)}).mT),
    compared("compare: small differences everywhere", pair(30, 30, noise=1e-3), 1e-3, 1e-4),
    compared("compare: no element", pair(0, 4)),
    compared("compare: no dimension", pair()),
    compared("compare: no dimension, and it differs", pair(plant={(): (3.0, 2.0)})),
    compared("compare: float16 against float32", pair(30, 4, noise=1e-3), 1e-3, 0.0, "float16"),
    compared("compare: bfloat16", pair(9, 4, dtype="bfloat16", plant={(8, 3): (2.0, 3.0)})),
    compared("compare: float64, nearer than float32 can tell",
             pair(9, 4, dtype="float64", plant={(8, 3): (1 + 2.0**-40, 1.0)})),
    compared("compare: float16 against float64, nearer than float32 can tell",
             pair(9, 4, dtype="float64", plant={(8, 3): (1.0, 1 + 2.0**-40)}), 1e-3,
             dtype="float16"),
    compared("compare: the difference of two float16 is larger than any",
             pair(9, dtype="float16", plant={(2,): (6e4, -6e4)}), 1.0),
    compared("compare: the difference of two float32 is larger than any",
             pair(9, plant={(2,): (3e38, -3e38)}), 1.0),
    compared("compare: integers", pair(9, 4, dtype="int32", plant={(8, 3): (2, 3)})),
    compared("compare: integers whose difference does not fit their type",
             pair(9, dtype="int8", plant={(2,): (100, -100), (4,): (-128, 0)})),
    compared("compare: integers without a sign",
             pair(9, plant={(n,): (n + 1.0, n + 2.0) for n in range(9)}, dtype="uint8")),
    compared("compare: truth values", pair(9, plant={(4,): (0.0, 1.0)}, dtype="bool")),
    compared("compare: truth values against float32",
             pair(9, plant={(n,): (1.0, 1.0 + n % 2) for n in range(9)}), 0.0, 0.0, "bool"),
    compared("compare: nothing is finite", pair(3, plant={(n,): (NAN, NAN) for n in range(3)})),
    call("compare: other shapes", "compare_shapes", rand(3, 4), rand(4, 3),
         raises=ValueError, mentions=("3", "4")),
    call("compare: shapes that torch would broadcast", "compare_shapes", rand(3, 4), rand(4),
         raises=ValueError),
    call("compare: another number of dimensions", "compare_shapes", rand(), rand(1),
         raises=ValueError),
    call("compare: inputs stay as they are", "compare_inputs",
         pair(5, 5, plant={(2, 2): (NAN, 1.0)}), check=unchanged),
    call("compare: float64 inputs stay as they are", "compare_inputs",
         pair(5, 5, dtype="float64", plant={(2, 2): (NAN, NAN), (3, 3): (INF, 1.0)}),
         check=unchanged),
]


# ---------------------------------------------------------------------------------------------
# trace_program

TRACE_BLOCK = 8  # as the exercise has it
PRINTED = re.compile(r"^\((\d+), \d+, \d+\)", re.MULTILINE)  # how a program's print begins


def traced(name: str, made: Input, program: int) -> Case:
    """The output has the values of this program's block and of no other."""

    def check(answer: object, x: torch.Tensor, *_: object) -> None:
        assert isinstance(answer, str), (
            f"`trace_program` returned {answer!r:.60}, expected a string")
        blocks = x.double().split(TRACE_BLOCK) if x.numel() else []
        others = [number for number in range(len(blocks))
                  if number != program and any(told(answer, value)
                                               for value in blocks[number].tolist())]
        asked = f"program {program} was requested"
        assert not others, (
            f"values of program {', '.join(map(str, others))} were printed; {asked}")
        besides = sorted({int(number) for number in PRINTED.findall(answer)} - {program})
        assert not besides, (
            f"program{'s' * (len(besides) > 1)} {', '.join(map(str, besides))} printed too; {asked}"
            + ", which does not exist" * (program >= len(blocks)))
        if program >= len(blocks):
            line, *more = answer.strip().splitlines() or [""]
            rest = f" and {len(more)} more line{'s' * (len(more) > 1)}" if more else ""
            assert not line, f"{asked}, which does not exist, and {line!r}{rest} was printed"
            return
        missing = [value for value in blocks[program].tolist() if not told(answer, value)]
        assert not missing, (
            f"{len(missing)} of the {len(blocks[program])} values of its block were not printed; "
            f"{asked}, and the output is {answer!r:.80}")
        assert not re.search("true|false", answer, re.IGNORECASE), (
            f"a condition was printed too; {asked}")

    return call(name, "trace_program", made, program, check=check, eager=True)


def distinct(count: int) -> Input:
    """Distinct numbers, 101.5, 102.5 and so on, in random order."""

    def make(generator: torch.Generator, _: tuple[int, ...]) -> torch.Tensor:
        return torch.randperm(count, generator=generator, dtype=torch.int64).double() + 101.5

    return Input(make, (), "float32")


traces = [
    traced("trace_program: the last of four programs", distinct(32), 3),
    traced("trace_program: the first of four programs", distinct(32), 0),
    traced("trace_program: a block that is not full", distinct(30), 3),
    traced("trace_program: the only program", distinct(5), 0),
    traced("trace_program: one in the middle of many", distinct(100), 6),
    traced("trace_program: no such program", distinct(20), 3),
]


suite = Suite(
    functions=[scale, clip_add, relu, col_sum, row_max, first_elem, masked_outer, avg_pool1d,
               weighted_sum],
    host={"trace_program": ("x", "program")},
    cases=[*comparisons, *traces, *diagnoses],
)
