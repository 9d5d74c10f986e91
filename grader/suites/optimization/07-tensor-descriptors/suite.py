"""Hidden tests of tensor descriptors: what can be described, a product, a scaling of channels."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import torch

from grader.suite import (
    EXACT,
    FLOATS,
    TENSOR_CORES,
    Amplitude,
    Bench,
    Case,
    CheckResult,
    Cost,
    Function,
    Input,
    Recording,
    Suite,
    Tolerance,
    call,
    correctness,
    edge,
    integers,
    performance,
    rand,
    refuses,
    sizes,
    special,
)
from grader.suite.predictions import predictions

INF, NAN = math.inf, math.nan
SIDE = 256  # of the matrices whose traffic is counted: small enough to be interpreted in full
SMALLEST_TILE = 32  # as in track1/matrix-mul
TRAFFIC = (2 * SIDE / SMALLEST_TILE + 1) / 3  # issued bytes of such tiles over the minimum


# ---------------------------------------------------------------------------------------------
# References, error bounds and peers in torch


def product(a: torch.Tensor, b_t: torch.Tensor, host: bool = True) -> torch.Tensor:
    return a.double() @ b_t.double().mT


def product_amplitude(a: torch.Tensor, b_t: torch.Tensor, host: bool = True) -> Amplitude:
    return Amplitude(reduced=a.double().abs() @ b_t.double().abs().mT, length=max(1, a.shape[1]))


def product_cost(a: torch.Tensor, b_t: torch.Tensor, host: bool = True) -> Cost:
    (m, k), n = a.shape, b_t.shape[0]
    return Cost(bytes=(m * k + k * n + m * n) * a.element_size(), flops=2 * m * n * k)


def pair(m: int, k: int, n: int, dtype: str = "float16",
         make: Callable[..., Input] = rand, **how: Any) -> tuple[Input, Input]:
    """Returns a (m, k) and b_t (n, k) with independent values."""
    return make(m, k, dtype=dtype, **how), make(n, k, dtype=dtype, **how)


def images(n: int, h: int, w: int, c: int, dtype: str = "float16") -> tuple[Input, Input]:
    """Returns x (n, h, w, c) and one factor per channel."""
    return rand(n, h, w, c, dtype=dtype), rand(c, dtype=dtype)


def both(name: str, *inputs: Any, kind: Callable[..., Case] = correctness,
         public: bool = False) -> list[Case]:
    """Returns a case with host descriptors and one with kernel descriptors."""
    return [kind(f"{name}, made {where}", *inputs, host, public=public and host)
            for where, host in (("on the host", True), ("in the kernel", False))]


def refused(name: str, *inputs: Any, raises: type[Exception] = ValueError,
            mentions: Sequence[str] = ()) -> list[Case]:
    """Returns a refusal with host descriptors and one with kernel descriptors."""
    return [refuses(f"{name}, {where}", *inputs, host, raises=raises, mentions=mentions)
            for where, host in (("on the host", True), ("in the kernel", False))]


# ---------------------------------------------------------------------------------------------
# What can be described


def of(view: str, dtype: str, shape: Sequence[int], block: Sequence[int], *words: str,
       strides: Sequence[int] | None = None, offset: int = 0) -> Case:
    """Returns a case of ``desc_problem``: it returns None, or a reason that contains ``words``.

    Refusing a view that a descriptor can describe is correct and slow: a performance case.
    """
    steps = strides if strides is not None else torch.empty(tuple(shape), device="meta").stride()

    def check(answer: Any, *_: Any) -> None:
        asked = f"The result of desc_problem for {view}, in blocks of {list(block)},"
        if not words:
            assert answer is None, (
                f"{asked} is {answer!r:.120}, and a descriptor can describe it: strides of "
                f"{tuple(steps)} elements of {getattr(torch, dtype).itemsize} bytes.")
            return
        assert answer is not None, f"{asked} is None, and no descriptor can describe it."
        assert isinstance(answer, str), (
            f"{asked} is a {type(answer).__name__}, expected a str or None.")
        missing = [word for word in words if word not in answer]
        assert not missing, (
            f"{asked} is {answer!r:.160}. It lacks {' and '.join(repr(one) for one in missing)}: "
            f"a reason has the wrong number and the required one.")

    return call(f"desc_problem: {view}", "reason", view, dtype, tuple(shape), tuple(steps), offset,
                tuple(block), check=check, code="Q01" if words else "T06")


DESCRIBED = [
    of("a matrix of float16", "float16", (100, 64), (64, 64)),
    of("a matrix of float32 with 52 columns", "float32", (100, 52), (32, 32)),
    of("8 columns of float16: 16 bytes", "float16", (5, 8), (8, 8)),
    of("16 columns of int8", "int8", (5, 16), (1, 16)),
    of("2 columns of float64", "float64", (5, 2), (4, 2)),
    of("a vector", "float32", (1_001,), (256,)),
    of("50 columns in rows 64 apart", "float32", (100, 50), (32, 32), strides=(64, 1)),
    of("a vector of 50 elements, 200 bytes", "float32", (50,), (64,)),
    of("every other row", "float16", (50, 24), (16, 16), strides=(48, 1)),
    of("columns 8 to 40 of 64", "float16", (10, 33), (16, 32), strides=(64, 1), offset=8),
    of("images, channels last", "float16", (2, 5, 7, 16), (1, 1, 8, 16)),
    of("five dimensions", "float32", (2, 3, 4, 5, 8), (1, 1, 1, 4, 8)),
    of("heads and rows permuted", "float16", (4, 10, 64), (1, 16, 64), strides=(64, 256, 1)),
    of("a block larger than the matrix", "float16", (3, 8), (128, 64)),
]

NOT_DESCRIBED = [
    of("100 x 50 floats", "float32", (100, 50), (32, 32), "200", "16"),
    of("12 columns of float16", "float16", (64, 12), (16, 16), "24", "16"),
    of("all but the first element of a vector", "float32", (1_000,), (256,), "4", "16", offset=1),
    of("float16 that starts at the fourth element", "float16", (10, 16), (16, 16), "8", "16",
       offset=4),
    of("a transposed view", "float16", (64, 32), (16, 16), "64", strides=(1, 64)),
    of("one row, and a stride of 50 floats", "float32", (1, 64), (1, 16), "200", "16",
       strides=(50, 1)),
    of("every other column", "float32", (8, 32), (8, 8), "2", strides=(64, 2)),
    of("a repeated row", "float16", (40, 64), (16, 16), "0", strides=(0, 1)),
    of("a repeated image", "float16", (3, 8, 64), (1, 8, 64), "0", strides=(0, 64, 1)),
    of("channels first", "float16", (2, 16, 5, 7), (1, 16, 1, 8), "16",
       strides=(560, 35, 7, 1)),
    of("no row", "float16", (0, 64), (16, 16), "0"),
    of("no column", "float16", (64, 0), (16, 16), "0", strides=(64, 1)),
    of("a scalar", "float32", (), (), "0"),
    of("six dimensions", "float32", (1, 1, 1, 1, 4, 8), (1, 1, 1, 1, 4, 8), "6", "5"),
    of("a block of one side for a matrix", "float16", (64, 64), (64,), "1", "2"),
    of("a block of 24 rows", "float16", (64, 64), (24, 64), "24"),
    of("a block without rows", "float16", (64, 64), (0, 64), "0"),
    of("a block with rows of 8 bytes", "float16", (64, 64), (16, 4), "8", "16"),
]


def has_scratch(answer: Any, *_: Any) -> None:
    assert answer is True, (
        "No allocator was set at the launch of the kernel that creates descriptors. On a GPU the "
        "launch raises: Kernel requires a runtime memory allocation, but no allocator was set.")


def from_host(call: Recording) -> list[CheckResult]:
    """Checks that a launch gets tensor descriptors."""
    given = descriptors(call)
    wrong = "" if given else (
        "No launch gets a tensor descriptor, although host=True asks for descriptors of the host.")
    line = next((launch.line for launch in call.launches), None)
    return [CheckResult("descriptors from the host", f"{len(given)}, expected some", wrong,
                        line=line)]


def from_kernel(call: Recording) -> list[CheckResult]:
    """Checks that no launch gets a tensor descriptor."""
    given = descriptors(call)
    kernel, name, line = next(iter(given), ("", "", None))
    wrong = (f"`{kernel}` gets `{name}` as a tensor descriptor of the host, although host=False "
             "asks for descriptors of the kernel.") if given else ""
    return [CheckResult("descriptors from the host", f"{len(given)}, expected none", wrong,
                        line=line)]


def descriptors(call: Recording) -> list[tuple[str, str, int | None]]:
    """Returns kernel, parameter and line of the launch of each host descriptor."""
    return [(launch.kernel, name, launch.line) for launch in call.launches
            for name, argument in launch.arguments.items() if argument.kind == "descriptor"]


# ---------------------------------------------------------------------------------------------
# The functions

matmul_desc = Function(
    entry="matmul_desc",
    parameters=("a", "b_t"),
    keyword_only=("host",),
    reference=product,
    tolerance=Tolerance(product_amplitude, TENSOR_CORES, products=(0, 1)),
    peer=lambda a, b_t, host=True: (a.float() @ b_t.float().mT).to(a.dtype),
    reversed_peer=lambda a, b_t, host=True: (
        a.float().flip(1) @ b_t.float().flip(1).mT).to(a.dtype),
    cost=product_cost,
    contiguous_result=True,
    bench=Bench("rows and columns", (512, 1_024, 2_048, 4_096, 8_192),
                lambda n: (*pair(n, n, n), True),
                at="square matrices of float16, descriptors made on the host",
                peer=lambda a, b_t, host: torch.matmul(a, b_t.mT), peer_name="torch.matmul"),
    cases=[
        *both("64 x 64 times 64 x 64", *pair(64, 64, 64), public=True),
        *both("100 x 64 times 40 x 64", *pair(100, 64, 40), public=True),
        *both("37 x 56 times 24 x 56", *pair(37, 56, 24), public=True),
        *both("300 x 200 times 136 x 200", *pair(300, 200, 136)),
        *(correctness(f"{m} x {k} times {n} x {k} floats", *pair(m, k, n, "float32"), True)
          for m, k, n in ((37, 52, 20), (37, 4, 20), (100, 4, 92), (17, 4, 200))),
        correctness("130 x 264 times 72 x 264 in bfloat16", *pair(130, 264, 72, "bfloat16"), False),
        *both("2100 x 16 times 136 x 16, many rows of tiles", *pair(2_100, 16, 136)),
        correctness("sums of 1000 numbers around a half", *pair(40, 1_000, 48, mean=0.5), True),
        correctness("whole numbers", *pair(70, 64, 56, make=integers), False),
        *both("one row, 8 columns", *pair(1, 8, 8), kind=edge),
        edge("every other row of a", rand(80, 48, dtype="float16")[::2],
             rand(40, 48, dtype="float16"), True, public=True),
        edge("columns 8 to 55 of a wider b_t", rand(33, 48, dtype="float16"),
             rand(40, 64, dtype="float16")[:, 8:56], False),
        edge("NaN and infinity in a", special(33, 48, values=[NAN, INF], share=0.002,
                                              dtype="float16"), rand(40, 48, dtype="float16"),
             True),
        edge("results beyond the largest float16", *pair(40, 48, 40, std=110.0), False),
        *refused("100 x 50 floats", *pair(100, 50, 64, "float32"), mentions=("a", "200", "16")),
        *refused("b_t starts at the second element", rand(32, 16, dtype="float16"),
                 rand(24 * 16 + 1, dtype="float16").then(lambda t: t[1:].view(24, 16)),
                 mentions=("b_t", "2", "16")),
        *refused("a is a transposed view", rand(32, 40, dtype="float16").mT,
                 rand(24, 32, dtype="float16"), mentions=("a", "40")),
        *refused("a result with rows of 20 bytes", *pair(32, 16, 10), mentions=("20", "16")),
        *refused("a repeated row of b_t", rand(32, 16, dtype="float16"),
                 rand(1, 16, dtype="float16").then(lambda t: t.expand(24, -1)),
                 mentions=("b_t", "0")),
        *refused("no row", *pair(0, 64, 32), mentions=("a", "0")),
        refuses("K is 0", *pair(8, 0, 32), True, raises=ValueError, mentions=("a", "0")),
        refuses("a is a list", [[1.0]], rand(8, 8, dtype="float16"), True, raises=TypeError,
                mentions=("a", "list")),
        refuses("int32 is not supported", *pair(8, 8, 8, "int32"), True, raises=TypeError,
                mentions=("a", "int32")),
        refuses("b_t in float32 beside a in float16", rand(8, 8, dtype="float16"), rand(8, 8),
                True, raises=TypeError, mentions=("b_t", "float16", "float32")),
        refuses("a has three dimensions", rand(2, 8, 8, dtype="float16"),
                rand(8, 8, dtype="float16"), True, raises=ValueError, mentions=("a", "2", "3")),
        refuses("b_t is not transposed", rand(8, 16, dtype="float16"),
                rand(16, 24, dtype="float16"), True, raises=ValueError,
                mentions=("b_t", "16", "24")),
        refuses("b_t on another device", rand(8, 16, dtype="float16"),
                rand(8, 16, dtype="float16").on_meta(), True, raises=ValueError,
                mentions=("b_t", "device")),

        # Rows of descriptors start at multiples of 16 bytes: 8 elements of 16 bits.
        sizes(lambda m, k_eighths, n_eighths, host, dtype: (
                  *pair(m, 8 * k_eighths, 8 * n_eighths, dtype), host),
              m=(1, 100), k_eighths=(1, 25), n_eighths=(1, 15), host=(True, False), dtype=FLOATS),

        *(performance(f"256 x 256 times 256 x 256, made {where}, for {title}",
                      *pair(SIDE, SIDE, SIDE), host, traffic=TRAFFIC, launches=1,
                      programs=(SIDE // SMALLEST_TILE) ** 2, tensor_cores=True, bulk=True,
                      check=from_host if host else from_kernel, target=target)
          for where, host, title, target in (
              ("on the host", True, "an H100", "h100"),
              ("on the host", True, "a B200", "b200"),
              ("in the kernel", False, "an H100", "h100"))),
        performance("8192 x 4096 times 8192 x 4096", *pair(8_192, 4_096, 8_192), True,
                    launches=1, pass_at=0.60, stretch=0.75),
    ],
)

nhwc_channel_scale = Function(
    entry="nhwc_channel_scale",
    parameters=("x", "scale"),
    reference=lambda x, scale: x.double() * scale.double(),
    tolerance=EXACT,
    peer=lambda x, scale: (x.float() * scale.float()).to(x.dtype),
    cost=lambda x, scale: Cost(bytes=2 * x.nbytes + scale.nbytes, flops=x.numel()),
    contiguous_result=True,
    bench=Bench("images", (4, 8, 16, 32, 64, 128), lambda n: images(n, 56, 56, 256),
                at="56 x 56 pixels of 256 channels in float16",
                peer=lambda x, scale: x * scale, peer_name="x * scale"),
    cases=[
        correctness("2 images of 5 x 7 with 16 channels", *images(2, 5, 7, 16)),
        correctness("3 images of 4 x 33 with 64 channels", *images(3, 4, 33, 64)),
        correctness("one image of 3 x 70 with 200 channels", *images(1, 3, 70, 200)),
        correctness("2 images of 5 x 7 with 12 channels of floats",
                    *images(2, 5, 7, 12, "float32")),
        correctness("2 images of 3 x 9 with 24 channels in bfloat16",
                    *images(2, 3, 9, 24, "bfloat16")),
        edge("one pixel with 8 channels", *images(1, 1, 1, 8)),
        edge("one pixel with 4 channels of floats", *images(1, 1, 1, 4, "float32")),
        edge("one row of 300 pixels", *images(1, 1, 300, 8)),
        edge("NaN, infinities and zeros", special(2, 3, 5, 16, values=[NAN, INF, -INF, 0.0, -0.0],
                                                  share=0.3, dtype="float16"),
             rand(16, dtype="float16")),
        edge("factors of zero and infinity", rand(2, 3, 5, 16, dtype="float16"),
             special(16, values=[0.0, INF, -0.0], share=0.5, dtype="float16")),
        refuses("12 channels of float16: 24 bytes", *images(2, 5, 7, 12), raises=ValueError,
                mentions=("x", "16")),
        refuses("images that start at the second element",
                rand(2 * 3 * 4 * 8 + 1, dtype="float16").then(lambda t: t[1:].view(2, 3, 4, 8)),
                rand(8, dtype="float16"), raises=ValueError, mentions=("x", "2", "16")),
        refuses("channels first in memory", rand(2, 16, 5, 7, dtype="float16").then(
            lambda t: t.permute(0, 2, 3, 1)), rand(16, dtype="float16"), raises=ValueError,
                mentions=("x", "35")),
        refuses("no image", *images(0, 5, 7, 16), raises=ValueError, mentions=("x", "0")),
        refuses("three dimensions", rand(5, 7, 16, dtype="float16"), rand(16, dtype="float16"),
                raises=ValueError, mentions=("x", "4", "3")),
        refuses("one factor too few", rand(2, 5, 7, 16, dtype="float16"),
                rand(15, dtype="float16"), raises=ValueError, mentions=("scale", "16", "15")),
        refuses("scale is a number", rand(2, 5, 7, 16, dtype="float16"), 2.0, raises=TypeError,
                mentions=("scale", "float")),
        refuses("float64 is not supported", *images(1, 2, 3, 8, "float64"), raises=TypeError,
                mentions=("x", "float64")),

        sizes(lambda n, height, width, channel_eighths, dtype: images(
                  n, height, width, 8 * channel_eighths, dtype),
              n=(1, 2), height=(1, 5), width=(1, 50), channel_eighths=(1, 25), dtype=FLOATS),

        performance("4 images of 14 x 64 with 128 channels, for an H100",
                    *images(4, 14, 64, 128), traffic=1.10, sectors=1.00, launches=1, bulk=True,
                    target="h100"),
        performance("128 images of 56 x 56 with 256 channels", *images(128, 56, 56, 256),
                    launches=1, spills=0, pass_at=0.75, stretch=0.85),
    ],
)

suite = Suite(
    functions=[matmul_desc, nhwc_channel_scale],
    host={"desc_problem": ("t", "block")},
    marker="DECIDE",
    cases=[
        *NOT_DESCRIBED,
        *DESCRIBED,
        call("matmul_desc: kernel descriptors have scratch memory", "provides_scratch",
             check=has_scratch, eager=True, code="L05"),
        *predictions((
            ("loads_of_a_thread", 8, "8,192 elements of 2 bytes are 16,384 bytes; each of 128 "
             "threads loads 128 bytes, 16 at a time."),
            ("columns", 56, "16 bytes are 8 elements of float16, and 56 is the next multiple of "
             "8."),
            ("sum_at_the_corner", 128, "4 rows and 32 columns of the block are inside the matrix. "
             "Elements outside are loaded as 0."),
            ("scratch_bytes", 24_576, "Each of 64 programs writes three descriptors of 128 "
             "bytes."),
            ("issued_bytes", 655_360, "The 2 x 2 programs load two panels of 128 x 256 elements "
             "each, and store 128 x 128: 327,680 elements in all."),
        ), counts=("loads_of_a_thread", "columns", "sum_at_the_corner")),
    ],
)


# ---------------------------------------------------------------------------------------------
# Properties


def same_bits(got: torch.Tensor, expected: torch.Tensor) -> bool:
    return got.dtype == expected.dtype and torch.equal(got, expected)


def difference(got: torch.Tensor, expected: torch.Tensor) -> str:
    """Describes how two tensors that `same_bits` rejects differ."""
    if got.shape != expected.shape:
        return f"shape {tuple(got.shape)} instead of {tuple(expected.shape)}"
    wrong = got != expected
    first = tuple(int(i) for i in wrong.nonzero()[0])
    return (f"{int(wrong.sum())} of {wrong.numel()} elements differ, the first at {list(first)}: "
            f"{got[first].item()!r} and {expected[first].item()!r}")


def test_descriptors_of_either_origin_give_the_same_bits(submission):
    a, b_t = submission.draw(*pair(70, 200, 136))

    made_outside, made_inside = (submission.matmul_desc(a, b_t, host) for host in (True, False))

    assert same_bits(made_outside, made_inside), (
        f"made on the host against made in the kernel: {difference(made_outside, made_inside)}")


def test_the_product_with_the_identity_is_a(submission):
    (a,) = submission.draw(rand(70, 64, dtype="float16"))

    result = submission.matmul_desc(a, torch.eye(64, dtype=torch.float16), True)

    assert same_bits(result, a), f"times the identity: {difference(result, a)}"


def test_factors_of_one_change_nothing(submission):
    (x,) = submission.draw(rand(2, 3, 9, 24, dtype="float16"))

    result = submission.nhwc_channel_scale(x, torch.ones(24, dtype=torch.float16))

    assert same_bits(result, x), f"times one: {difference(result, x)}"
