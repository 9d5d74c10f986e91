"""Hidden tests of float8: quantizing, products with scales, and formats beside each other."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import torch

from grader.recording.model import dtype_name
from grader.suite import (
    ALL_SUMS,
    FLOATS,
    TENSOR_CORES,
    Amplitude,
    Bench,
    Case,
    CheckResult,
    CompiledCode,
    Cost,
    Function,
    Input,
    Suite,
    Tolerance,
    call,
    correctness,
    edge,
    full,
    integers,
    performance,
    rand,
    refuses,
    row,
    rows,
    sizes,
    special,
    wide,
)
from grader.suite.predictions import predictions

NAN = math.nan
LARGEST = 448.0  # of float8 e4m3
FLOAT8 = "float8_e4m3fn"
FLOAT = torch.float32
SIDE = 256  # of the matrices whose traffic is counted: small enough to be interpreted in full
SMALLEST_TILE = 32  # as in track1/matrix-mul
TRAFFIC = (2 * SIDE / SMALLEST_TILE + 2) / 4 + 0.1  # issued bytes of such tiles and of scales
MOST_SUMS = 512
"""Products that Hopper's tensor cores may sum before promotion; shared memory limits a step to
fewer."""
COARSE = 2.0**-15
"""Unit roundoff of Hopper's float8 sums, for results of a GPU. Tensor cores align the products of a
step to the largest and keep 13 bits after its leading one, so even a sum of two terms is off by up
to 2**-13 per term: four units of this roundoff."""


# ---------------------------------------------------------------------------------------------
# Quantizing: reference, error bounds and peer in torch


def scale_of(x: torch.Tensor, per_row: bool) -> torch.Tensor:
    """Returns max |x| / 448 per row or of all, 1 if that is zero; NaN is ignored."""
    if x.numel() == 0:
        return x.new_ones((len(x), 1) if per_row else ())
    sizes = torch.where(x.isnan(), 0.0, x.abs())
    amax = sizes.amax(1, keepdim=True) if per_row else sizes.amax()
    return torch.where(amax > 0, amax / LARGEST, 1.0)


def quantized(x: torch.Tensor, per_row: bool = False) -> tuple[torch.Tensor, torch.Tensor]:
    scale = scale_of(x.double(), per_row)
    return x.double() / scale, scale


def quantized_amplitude(x: torch.Tensor, per_row: bool = False) -> tuple[Amplitude, Amplitude]:
    q, scale = quantized(x, per_row)
    return Amplitude(pointwise=2 * q.abs().nan_to_num()), Amplitude(pointwise=scale)


def quantized_by_torch(x: torch.Tensor,
                       per_row: bool = False) -> tuple[torch.Tensor, torch.Tensor]:
    scale = scale_of(x.float(), per_row)
    return (x.float() / scale).to(torch.float8_e4m3fn), scale


def up_to_seven(*sizes: int, dtype: str) -> Input:
    """Returns normal values below 7, and a 7 in each row, so that all scales are 2**-6.

    16-bit values divided by another scale are often halfway between two float8 numbers, and which
    of the two is the result depends on the rounding of the scale.
    """
    def make(generator: torch.Generator, shape: tuple[int, ...]) -> torch.Tensor:
        values = torch.randn(shape, generator=generator, dtype=torch.float64).clamp(-6.5, 6.5)
        values[:, shape[1] // 2] = 7.0
        return values

    return Input(make, sizes, dtype)


def each_way(name: str, make: Callable[[], Input], *, kind: Callable[..., Case] = correctness,
             public: bool = False) -> list[Case]:
    """Returns a case with one scale for all, and one with a scale per row."""
    return [kind(f"{name}, {how}", make(), per_row, public=public)
            for how, per_row in (("one scale", False), ("a scale per row", True))]


quantize_fp8 = Function(
    entry="quantize_fp8",
    parameters=("x",),
    keyword_only=("per_row",),
    reference=quantized,
    result_names=("q", "scale"),
    result_dtype=(FLOAT8, "float32"),
    tolerance=Tolerance(quantized_amplitude),
    peer=quantized_by_torch,
    cost=lambda x, per_row=False: Cost(bytes=x.nbytes + x.numel() + 4 * (
        len(x) if per_row else 1)),
    contiguous_result=True,
    bench=Bench("rows and columns", (1_024, 2_048, 4_096, 8_192),
                lambda n: (rand(n, n, dtype="float16"), False),
                at="square matrices of float16, one scale for all",
                peer=quantized_by_torch, peer_name="abs, amax, divide and convert"),
    cases=[
        *each_way("64 x 64", lambda: rand(64, 64), public=True),
        *each_way("33 x 96 in float16", lambda: up_to_seven(33, 96, dtype="float16")),
        *each_way("5 x 1000 in bfloat16", lambda: up_to_seven(5, 1_000, dtype="bfloat16")),
        *each_way("3 x 9973 around 3", lambda: rand(3, 9_973, mean=3.0, std=2.0)),
        *each_way("values of very different magnitude", lambda: wide(40, 300)),
        *each_way("values around 1e-6", lambda: rand(20, 40, std=2.5e-7)),
        *each_way("values up to 60000 in float16",
                  lambda: special(20, 40, values=[6e4, -6e4], share=0.05, dtype="float16")),
        *each_way("values a thousand times as large",
                  lambda: special(20, 40, values=[-1_000.0], share=0.001)),
        *each_way("a row of zeros", lambda: rows(row(70), [0.0] * 70, row(70), row(70)),
                  kind=edge, public=True),
        *each_way("zeros", lambda: full(7, 40, value=0.0), kind=edge),
        *each_way("one element", lambda: rand(1, 1), kind=edge),
        *each_way("one row", lambda: rand(1, 129), kind=edge),
        *each_way("one column", lambda: rand(129, 1), kind=edge),
        *each_way("NaN in some places", lambda: special(20, 40, values=[NAN], share=0.02),
                  kind=edge),
        *each_way("a row of NaN", lambda: rows(row(40), [NAN] * 40, row(40)), kind=edge),
        *each_way("a transposed view", lambda: rand(48, 65).mT, kind=edge),
        *each_way("every other row and column", lambda: rand(40, 130)[::2, ::2], kind=edge),
        edge("no row", rand(0, 8), False, launches=0),
        edge("no column, a scale per row", rand(5, 0), True, launches=0),
        refuses("x is a list", [[1.0]], False, raises=TypeError, mentions=("x", "list")),
        refuses("float64 is not supported", rand(4, 8, dtype="float64"), False, raises=TypeError,
                mentions=("x", "float64")),
        refuses("x is float8 already", rand(4, 8, dtype=FLOAT8), True, raises=TypeError,
                mentions=("x", FLOAT8)),
        refuses("x has three dimensions", rand(2, 4, 8), False, raises=ValueError,
                mentions=("x", "2", "3")),

        sizes(lambda rows, columns, per_row, dtype: (
                  up_to_seven(rows, columns, dtype=dtype), per_row),
              rows=(1, 5), columns=(1, 1_000), per_row=(False, True), dtype=FLOATS),

        *(performance(f"128 x 4096 in float16, {how}",
                      up_to_seven(128, 4_096, dtype="float16"), per_row,
                      traffic=1.75, sectors=1.0, launches=2)
          for how, per_row in (("one scale", False), ("a scale per row", True))),
        performance("8192 x 8192 in float16, one scale",
                    up_to_seven(8_192, 8_192, dtype="float16"), False, spills=0, pass_at=0.40,
                    stretch=0.50),
    ],
)


# ---------------------------------------------------------------------------------------------
# The product


def product(a_q: torch.Tensor, b_q_t: torch.Tensor, scale_a: torch.Tensor, scale_b: torch.Tensor,
            out_dtype: torch.dtype = torch.float16) -> torch.Tensor:
    return (a_q.double() * scale_a.double()) @ (b_q_t.double() * scale_b.double()).mT


def product_amplitude(a_q: torch.Tensor, b_q_t: torch.Tensor, scale_a: torch.Tensor,
                      scale_b: torch.Tensor, out_dtype: torch.dtype = torch.float16) -> Amplitude:
    reduced = product(a_q.double().abs(), b_q_t.double().abs(), scale_a.abs(), scale_b.abs())
    return Amplitude(reduced=reduced, length=max(1, a_q.shape[1]))


def product_cost(a_q: torch.Tensor, b_q_t: torch.Tensor, scale_a: torch.Tensor,
                 scale_b: torch.Tensor, out_dtype: torch.dtype = torch.float16) -> Cost:
    (m, k), n = a_q.shape, b_q_t.shape[0]
    return Cost(bytes=m * k + n * k + m * n * out_dtype.itemsize + scale_a.nbytes + scale_b.nbytes,
                flops=2 * m * n * k)


def by_torch(turned: bool) -> Callable[..., torch.Tensor]:
    """Returns a product in float32, exact for float8 factors; ``turned`` reverses K."""
    def run(a_q: torch.Tensor, b_q_t: torch.Tensor, scale_a: torch.Tensor, scale_b: torch.Tensor,
            out_dtype: torch.dtype = torch.float16) -> torch.Tensor:
        a, b_t = (x.float().flip(1) if turned else x.float() for x in (a_q, b_q_t))
        return ((a @ b_t.mT) * scale_a * scale_b.reshape(1, -1)).to(out_dtype)
    return run


def on_a_gpu(a_q: torch.Tensor, b_q_t: torch.Tensor, scale_a: torch.Tensor, scale_b: torch.Tensor
             ) -> torch.Tensor:
    return torch._scaled_mm(a_q, b_q_t.mT, scale_a, scale_b, out_dtype=torch.float16)


def one_scale(value: float = 0.01) -> Input:
    return full(value=value)


def scales(n: int, size: float = 0.01) -> Input:
    """Returns one scale per row, from 0.5 to 1.5 times ``size``."""
    return Input(lambda generator, shape: size * (0.5 + torch.rand(
        shape, generator=generator, dtype=torch.float64)), (n, 1))


def factors(m: int, k: int, n: int, make: Callable[..., Input] = rand,
            **how: Any) -> tuple[Input, Input]:
    """Returns a_q (m, k) and b_q_t (n, k), well within the range of float8."""
    known = {"std": 20.0} if make is rand else {}
    return tuple(make(side, k, dtype=FLOAT8, **(known | how)) for side in (m, n))


def with_one_scale(m: int, k: int, n: int, **how: Any) -> tuple[Input, ...]:
    return (*factors(m, k, n, **how), one_scale(0.25), one_scale(0.125))


def with_scales(m: int, k: int, n: int, **how: Any) -> tuple[Input, ...]:
    return (*factors(m, k, n, **how), scales(m, 0.011), scales(n, 0.023))


def refused(name: str, *inputs: Any, raises: type[Exception] = ValueError,
            mentions: Sequence[str] = ()) -> Case:
    return refuses(name, *inputs, raises=raises, mentions=mentions)


def multiplies_fp8(code: CompiledCode) -> list[CheckResult]:
    """Checks the formats that tensor cores multiply."""
    dots = [binary for binary in code.binaries if binary.dot]
    used = sorted({name for binary in dots for name in binary.factors})
    other = next((binary for binary in dots if binary.factors != ("fp8",)), None)
    wrong, line = "", None
    if other is not None:
        multiplies = (f"Tensor cores multiply {' and '.join(other.factors)} by "
                      f"{other.tensor_cores} in `{other.kernel}`" if other.factors else
                      f"`{other.kernel}` multiplies without tensor cores")
        wrong = f"{multiplies}; the {code.gpu} has tensor cores for fp8."
        line = line_of_product(other)
    elif not dots:
        wrong = "No kernel multiplies matrices with tl.dot."
    return [CheckResult("factors", f"{' and '.join(used) or 'none on tensor cores'}, expected fp8",
                        wrong, line=line), *sums(dots, code.gpu)]


def sums(dots: Sequence[Any], gpu: str) -> list[CheckResult]:
    """Checks how many products tensor cores sum before a sum is promoted to float32."""
    worst = max(dots, key=lambda binary: binary.imprecise_sums, default=None)
    if worst is None:
        return []
    count = "all" if worst.imprecise_sums >= ALL_SUMS else f"{worst.imprecise_sums:,}"
    wrong = (f"In `{worst.kernel}`, tensor cores of the {gpu} sum {count} products before a sum is "
             f"promoted to float32, and the limit is {MOST_SUMS}: they keep fewer bits of a sum of "
             "float8 products.") if worst.imprecise_sums > MOST_SUMS else ""
    return [CheckResult("imprecise sums", f"{count}, limit {MOST_SUMS}", wrong, "N04",
                        line_of_product(worst))]


def line_of_product(binary: Any) -> int | None:
    return binary.products[0][0] if binary.products else None


matmul_fp8 = Function(
    entry="matmul_fp8",
    parameters=("a_q", "b_q_t", "scale_a", "scale_b", "out_dtype"),
    reference=product,
    result_dtype=lambda *inputs: dtype_name(inputs[4]) if inputs[4:] else "float16",
    tolerance=Tolerance(product_amplitude, TENSOR_CORES, products=(0, 1), on_gpu=COARSE),
    peer=by_torch(turned=False),
    reversed_peer=by_torch(turned=True),
    cost=product_cost,
    contiguous_result=True,
    bench=Bench("rows and columns", (512, 1_024, 2_048, 4_096, 8_192),
                lambda n: with_one_scale(n, n, n), at="square matrices of float8, one scale each",
                peer=on_a_gpu, peer_name="torch._scaled_mm"),
    cases=[
        correctness("64 x 64 times 64 x 64", *with_one_scale(64, 64, 64), public=True),
        correctness("65 x 96 times 33 x 96, a scale per row", *with_scales(65, 96, 33),
                    public=True),
        correctness("40 x 32 times 24 x 32, a short step", *with_scales(40, 32, 24),
                    public=True),
        correctness("37 x 40 times 50 x 40", *with_one_scale(37, 40, 50)),
        correctness("a scale per row of a, one for b", *factors(70, 64, 40),
                    scales(70), one_scale()),
        correctness("one scale for a, one per row of b", *factors(40, 64, 70),
                    one_scale(), scales(70)),
        correctness("300 x 200 times 140 x 200", *with_scales(300, 200, 140)),
        correctness("530 x 144 times 520 x 144", *with_scales(530, 144, 520)),
        correctness("2100 x 32 times 140 x 32, many rows of tiles", *with_scales(2_100, 32, 140)),
        correctness("37 x 40 times 50 x 40 in float32", *with_scales(37, 40, 50), FLOAT),
        *(correctness(f"{m} x {k} times {n} x {k} in float32", *with_scales(m, k, n), FLOAT)
          for m, k, n in ((37, 4, 150), (100, 2, 92), (130, 3, 140))),  # little rounding
        *(correctness(f"{m} x {k} times {n} x {k} in bfloat16",
                      *with_scales(m, k, n), torch.bfloat16)
          for m, k, n in ((37, 40, 50), (100, 16, 92), (130, 8, 140))),
        correctness("sums of 4096 numbers around a half", *factors(40, 4_096, 48, mean=0.5,
                                                                    std=1.0),
                    one_scale(0.25), one_scale(0.5), FLOAT),
        correctness("sums of 2000 numbers", *with_one_scale(33, 2_000, 40), FLOAT),
        correctness("whole numbers", *factors(70, 64, 50, make=integers), one_scale(1.0),
                    one_scale(1.0)),
        correctness("scales whose product is subnormal in float32",
                    *factors(40, 256, 33, std=200.0), one_scale(1.408e-30), one_scale(1e-13),
                    FLOAT),
        edge("one row, one column, one number", *with_one_scale(1, 1, 1)),
        edge("one row and one column of scales", *with_scales(1, 40, 1)),
        edge("a tall matrix: 1000 rows, 3 columns", *with_scales(1_000, 48, 3)),
        edge("no row", *with_one_scale(0, 64, 32), launches=0),
        edge("no column", *with_scales(32, 64, 0), launches=0),
        edge("K is 0: the result is zero", *with_one_scale(20, 0, 33)),
        edge("columns 8 to 55 of wider matrices", rand(33, 64, dtype=FLOAT8, std=100.0)[:, 8:56],
             rand(40, 80, dtype=FLOAT8, std=100.0)[:, 8:56], one_scale(), one_scale(),
             public=True),
        edge("every other row", rand(66, 48, dtype=FLOAT8, std=100.0)[::2],
             rand(80, 48, dtype=FLOAT8, std=100.0)[::2], scales(33), scales(40)),
        edge("every other scale", *factors(33, 48, 40), scales(66)[::2], scales(80)[::2]),
        edge("NaN in some places", special(33, 48, values=[NAN], share=0.002, dtype=FLOAT8),
             rand(40, 48, dtype=FLOAT8), one_scale(), one_scale()),
        edge("NaN among the scales", *factors(33, 48, 40), scales(33),
             special(40, 1, values=[NAN], share=0.05)),
        edge("results beyond the largest float16", *with_one_scale(40, 48, 40, std=200.0)[:2],
             one_scale(0.5), one_scale(0.5)),
        refused("a_q is a list", [[1.0]], rand(3, 4, dtype=FLOAT8), one_scale(), one_scale(),
                raises=TypeError, mentions=("a_q", "list")),
        refused("a_q in float16", rand(8, 32, dtype="float16"), rand(8, 32, dtype=FLOAT8),
                one_scale(), one_scale(), raises=TypeError, mentions=("a_q", "float16")),
        refused("b_q_t is the other float8", rand(8, 32, dtype=FLOAT8),
                rand(8, 32, dtype="float8_e5m2"), one_scale(), one_scale(), raises=TypeError,
                mentions=("b_q_t", "float8_e5m2")),
        refused("scale_a is a number", *factors(8, 32, 8), 0.5, one_scale(), raises=TypeError,
                mentions=("scale_a", "float")),
        refused("scale_b in float16", *factors(8, 32, 8), one_scale(),
                full(value=0.5, dtype="float16"), raises=TypeError,
                mentions=("scale_b", "float16")),
        refused("a result of float8", *with_one_scale(8, 32, 8), torch.float8_e4m3fn,
                raises=TypeError, mentions=("out_dtype", FLOAT8)),
        refused("a_q has one dimension", rand(32, dtype=FLOAT8), rand(8, 32, dtype=FLOAT8),
                one_scale(), one_scale(), mentions=("a_q", "2", "1")),
        refused("b_q_t has other columns", rand(8, 32, dtype=FLOAT8), rand(32, 24, dtype=FLOAT8),
                one_scale(), one_scale(), mentions=("b_q_t", "32", "24")),
        refused("b_q_t is a transposed view",
                rand(8, 32, dtype=FLOAT8), rand(32, 24, dtype=FLOAT8).mT, one_scale(),
                one_scale(), mentions=("b_q_t", "24")),
        refused("every other column of a_q", rand(8, 64, dtype=FLOAT8)[:, ::2],
                rand(24, 32, dtype=FLOAT8), one_scale(), one_scale(), mentions=("a_q", "2")),
        refused("a scale per column of a_q", *factors(8, 32, 24),
                Input(lambda generator, shape: torch.rand(shape, generator=generator), (1, 32)),
                one_scale(), mentions=("scale_a", "8", "32")),
        refused("scales of a_q for b_q_t", *factors(8, 32, 24), scales(8), scales(8),
                mentions=("scale_b", "24", "8")),
        refused("b_q_t on another device", rand(8, 32, dtype=FLOAT8),
                rand(8, 32, dtype=FLOAT8).on_meta(), one_scale(), one_scale(),
                mentions=("b_q_t", "device")),

        sizes(lambda m, k, n, per_row: (with_scales if per_row else with_one_scale)(m, k, n),
              m=(1, 100), k=(1, 200), n=(1, 100), per_row=(False, True)),

        *(performance(f"256 x 256 times 256 x 256, for an {title}",
                      *with_scales(SIDE, SIDE, SIDE), traffic=TRAFFIC, launches=1,
                      programs=(SIDE // SMALLEST_TILE) ** 2, tensor_cores=True, spills=64,
                      check_code=multiplies_fp8, target=target)
          for title, target in (("H100", "h100"), ("RTX 4090", "rtx4090"))),
        performance("8192 x 8192 times 8192 x 8192", *with_one_scale(8_192, 8_192, 8_192),
                    launches=1, pass_at=0.55, stretch=0.90),
    ],
)


# ---------------------------------------------------------------------------------------------
# Formats compared

FORMATS = ("fp32", "tf32", "fp16", "bf16", "fp8")
SIZES = (40, 24, 64)
TIMES = (8.0, 4.0, 2.0, 1.0, 0.5)
ERRORS = {  # smallest and largest relative error of products of normal values
    "fp32": (0.0, 1e-6), "tf32": (0.0, 2e-3), "fp16": (5e-5, 2e-3), "bf16": (5e-4, 1e-2),
    "fp8": (1e-2, 6e-2)}


def names_formats(wanted: Sequence[str]) -> Callable[..., None]:
    def check(answer: Any, *_: Any) -> None:
        names = tuple(row[0] for row in answer["rows"])
        assert names == tuple(wanted), (
            f"The rows are {', '.join(map(str, names)) or 'none'}, expected "
            f"{', '.join(wanted)} in this order.")
    return check


def tells_times(answer: Any, sizes: Sequence[int], times: Sequence[float], *_: Any) -> None:
    operations = 2 * math.prod(sizes)
    for row_, ms in zip(answer["rows"], times, strict=True):
        name, reported, tflops, _ = row_
        assert reported == ms, f"The time of {name} is {reported!r} ms; the clock returned {ms} ms."
        rate = operations / ms / 1e9
        assert isinstance(tflops, float) and math.isclose(tflops, rate, rel_tol=1e-6), (
            f"The rate of {name} is {tflops!r} TFLOP/s: {operations:,} FLOP in {ms} ms are "
            f"{rate:.6g} TFLOP/s.")


def tells_errors(answer: Any, *_: Any) -> None:
    for name, _, _, error in answer["rows"]:
        least, most = ERRORS[name]
        assert isinstance(error, float) and least <= error <= most, (
            f"The relative error of {name} is {error!r:.9}; for normal values it is between "
            f"{least:g} and {most:g}, relative to the product of the unrounded matrices.")


def times_products_alone(answer: Any, *_: Any) -> None:
    for (name, *_), (_, conversions, quantized_) in zip(answer["rows"], answer["timed"],
                                                        strict=False):
        assert not quantized_, (
            f"While {name} was timed, matrices were quantized {quantized_} times, which is not "
            "part of a product; operands of the other formats are converted before.")
        assert not conversions, (
            f"While {name} was timed, {conversions} tensors were converted to another dtype, which "
            "is not part of a product.")


def allows_tf32_where_it_is_meant(answer: Any, *_: Any) -> None:
    for (name, *_), (allowed, *_) in zip(answer["rows"], answer["timed"], strict=False):
        assert allowed == (name == "tf32") or name not in ("fp32", "tf32"), (
            f"torch was {'allowed' if allowed else 'not allowed'} to use TF32 while {name} was "
            f"timed.")
    assert answer["restored"], "torch's setting for TF32 was not restored."


def is_computed(answer: Any, *_: Any) -> None:
    assert answer == [32.0] * 16, f"The sum of 32 products of 1 is {answer[0]!r}."


HOPPER = (9, 0)

suite = Suite(
    functions=[quantize_fp8, matmul_fp8],
    host={"format_report": ("m", "n", "k"), "capability": (), "the_gpu": (),
          "time_ms": ("work", "repeats")},
    marker="DECIDE",
    capability=(8, 9),
    cases=[
        *(call(f"matmul_fp8: a GPU of capability {'.'.join(map(str, capability))} is refused",
               "product_on", capability, raises=RuntimeError,
               mentions=("8.9", ".".join(map(str, capability))), eager=True)
          for capability in ((8, 6), (8, 0), (7, 5))),
        *(call(f"matmul_fp8: a GPU of capability {'.'.join(map(str, capability))} multiplies",
               "product_on", capability, check=is_computed, eager=True)
          for capability in ((8, 9), HOPPER, (10, 0), (12, 0))),
        call("format_report: no GPU", "report_here", SIZES,
             raises=RuntimeError, mentions=("GPU",)),
        call("format_report: no row", "report", (0, 24, 64), TIMES, HOPPER, raises=ValueError,
             mentions=("m", "0"), eager=True),
        call("format_report: K is 0", "report", (40, 24, 0), TIMES, HOPPER,
             raises=ValueError, mentions=("k", "0"), eager=True),
        call("format_report: five formats", "report", SIZES, TIMES, HOPPER,
             check=names_formats(FORMATS), eager=True),
        call("format_report: four formats without float8 tensor cores", "report", SIZES, TIMES,
             (8, 6), check=names_formats(FORMATS[:-1]), eager=True),
        call("format_report: times and rates", "report", SIZES, TIMES,
             HOPPER, check=tells_times, eager=True),
        call("format_report: errors", "report", SIZES, TIMES, HOPPER,
             check=tells_errors, eager=True),
        call("format_report: TF32 only for tf32", "report", SIZES, TIMES, HOPPER,
             check=allows_tf32_where_it_is_meant, eager=True),
        call("format_report: only products are timed", "report", SIZES, TIMES, HOPPER,
             check=times_products_alone, eager=True, code="T03"),
        *predictions((
            ("scale", 2.0, "The largest number of e4m3 is 448, and 896 / 448 is 2."),
            ("step_near_400", 32, "With 3 bits of mantissa there are 8 numbers from 256 to 512: "
             "256 / 8 is 32."),
            ("operand_bytes", 134_217_728, "Two matrices of 8,192 x 8,192 elements of one byte."),
            ("multiplications_by_scales", 2, "Once by scale_a and once by scale_b, after the "
             "loop: a scale does not depend on k."),
            ("where_a_sum_stops", 16_384, "Between 2**14 and 2**15, adjacent numbers of 14 bits "
             "are 2 apart: adding 1 changes half of that, and is truncated."),
            ("accumulators", 128, "A tile of 128 x 256 has 32,768 accumulators, distributed over "
             "256 threads; a second set of 128 would exceed 255 registers."),
        ), counts=("scale", "step_near_400", "multiplications_by_scales", "where_a_sum_stops",
                   "accumulators")),
    ],
)


# ---------------------------------------------------------------------------------------------
# Properties


def off(q: torch.Tensor, scale: torch.Tensor, x: torch.Tensor) -> float:
    """Returns the norm of the quantization error over the norm of x."""
    return float((q.double() * scale.double() - x.double()).norm() / x.double().norm())


def test_a_scale_for_each_row_loses_less_where_one_row_is_large(submission):
    (x,) = submission.draw(rand(40, 96))
    x[7] *= 100_000.0  # so that float8 cannot resolve the others with one scale
    others = torch.arange(40) != 7

    (q, scale), (by_row, row_scales) = (
        submission.quantize_fp8(x, per_row) for per_row in (False, True))

    lost = off(q[others], scale, x[others])
    kept = off(by_row[others], row_scales[others], x[others])
    assert kept < 0.05, f"with a scale per row, the other rows have a relative error of {kept:.3g}"
    assert kept < lost / 2, (
        f"the relative error of the other rows is {kept:.3g} with a scale per row, and {lost:.3g} "
        "with one for all")


def test_powers_of_two_scale_without_a_loss(submission):
    (x,) = submission.draw(rand(20, 64))

    (q, scale), (large, large_scale) = (
        submission.quantize_fp8(factor * x, True) for factor in (1.0, 1024.0))

    assert torch.equal(q.float(), large.float()), "q of 1,024 times the matrix differs"
    assert torch.equal(1024 * scale, large_scale), "the scales are not 1,024 times as large"


def test_a_product_of_quantized_matrices_is_near_that_of_the_matrices(submission):
    a, b_t = submission.draw(rand(70, 200), rand(50, 200))
    exact = a.double() @ b_t.double().mT

    a_q, scale_a = submission.quantize_fp8(a, True)
    b_q_t, scale_b = submission.quantize_fp8(b_t, True)
    result = submission.matmul_fp8(a_q, b_q_t, scale_a, scale_b, FLOAT)

    lost = float((result.double() - exact).norm() / exact.norm())
    assert lost <= 6e-2, f"the relative error of the product is {lost:.3g}"


def test_the_product_with_the_identity_is_a(submission):
    (a_q,) = submission.draw(rand(70, 64, dtype=FLOAT8, std=100.0))
    one = torch.ones(())

    result = submission.matmul_fp8(a_q, torch.eye(64).to(torch.float8_e4m3fn), one, one, FLOAT)

    assert torch.equal(result, a_q.float()), "the product of a_q with the identity differs from a_q"
