"""Hidden tests of conv2d: geometries, tiles, layouts, special values, errors, properties, cost."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
import torch.nn.functional as F  # noqa: N812 - torch's own spelling

from grader.suite import (
    FLOATS,
    TENSOR_CORES,
    Amplitude,
    Bench,
    Case,
    Cost,
    Input,
    Kind,
    Limits,
    Suite,
    Tolerance,
    correctness,
    edge,
    error_bounds,
    extremes,
    full,
    integers,
    performance,
    rand,
    refuses,
    sizes,
    special,
)

NAN = math.nan
INF = math.inf
Pair = int | Sequence[int]

# The geometry of most cases: height, width, windows and steps all differ between the two axes.
UNEVEN = ((3, 2), (2, 1), (2, 3))  # stride, padding, dilation


def reference(x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None = None,
              stride: Pair = 1, padding: Pair = 0, dilation: Pair = 1) -> torch.Tensor:
    return F.conv2d(x.double(), weight.double(), None if bias is None else bias.double(),
                    stride, padding, dilation)


def amplitude(x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None = None,
              stride: Pair = 1, padding: Pair = 0, dilation: Pair = 1) -> Amplitude:
    return error_bounds.conv2d(x, weight, bias, stride=stride, padding=padding, dilation=dilation)


def cost(x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None = None,
         stride: Pair = 1, padding: Pair = 0, dilation: Pair = 1) -> Cost:
    """Every element of the image, the weight and the result once."""
    def size(axis: int) -> int:
        step, pad, dil = (one if isinstance(one, int) else one[axis]
                          for one in (stride, padding, dilation))
        return (x.shape[2 + axis] + 2 * pad - dil * (weight.shape[2 + axis] - 1) - 1) // step + 1

    n_out = len(x) * len(weight) * size(0) * size(1)
    return Cost(bytes=(x.numel() + weight.numel() + n_out) * x.itemsize,
                flops=2 * n_out * weight[0].numel())


def peer(x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None = None,
         stride: Pair = 1, padding: Pair = 0, dilation: Pair = 1) -> torch.Tensor:
    """Sums in float32, as the module asks for; torch's own 16-bit sums differ from CPU to CPU."""
    added = None if bias is None else bias.float()
    return F.conv2d(x.float(), weight.float(), added, stride, padding, dilation).to(x.dtype)


def reversed_peer(x: torch.Tensor, weight: torch.Tensor, *more: object) -> torch.Tensor:
    return peer(x.flip(1), weight.flip(1), *more)


def layer(dtype: str = "float32") -> tuple[Input, Input, Input]:
    """Two images of 16 channels and 32 filters of 3 x 3: the shape whose cost is counted."""
    return (rand(2, 16, 16, 16, dtype=dtype), rand(32, 16, 3, 3, dtype=dtype),
            rand(32, dtype=dtype))


def small(dtype: str = "float32") -> tuple[Input, Input, Input]:
    """Two images of 4 channels, 7 x 9, and 5 filters of 3 x 2: no two sizes agree."""
    return (rand(2, 4, 7, 9, dtype=dtype), rand(5, 4, 3, 2, dtype=dtype), rand(5, dtype=dtype))


IMAGE, FILTERS = rand(1, 3, 8, 8), rand(2, 3, 3, 3)
LAST = torch.channels_last

# Tiles of at least 16 x 16 results load 2 * M * OC * K / 16 elements and store M * OC of them.
M, OC, K = 2 * 16 * 16, 32, 16 * 3 * 3
BUDGET = (2 * M * OC * K / 16 + M * OC) / (M * 16 + OC * K + M * OC)

suite = Suite(
    entry="conv2d",
    parameters=("x", "weight", "bias", "stride", "padding", "dilation"),
    blanks=35,
    reference=reference,
    tolerance=Tolerance(amplitude, TENSOR_CORES, products=(0, 1)),
    contiguous_result=True,
    peer=peer,
    reversed_peer=reversed_peer,
    cost=cost,
    bench=Bench("channels, as many out as in", (16, 32, 64, 128, 256),
                lambda n: (rand(16, n, 56, 56, dtype="float16"),
                           rand(n, n, 3, 3, dtype="float16"), rand(n, dtype="float16"), 1, 1),
                at="16 images of 56 x 56 in float16, windows of 3 x 3",
                peer=F.conv2d, peer_name="F.conv2d"),
    cases=[
        # Geometry: windows, stride, padding and dilation, one at a time and together.
        correctness("2 images of 4 x 7 x 9, windows of 3 x 2", *small(), public=True),
        correctness("2 images of 4 x 7 x 9, windows of 3 x 2, padding 1", *small(), 1, 1,
                    public=True),
        correctness("2 images of 4 x 7 x 9, windows of 3 x 2, stride 2, padding 1", *small(), 2, 1,
                    public=True),
        correctness("one pixel, one channel, one tap", rand(1, 1, 1, 1), rand(1, 1, 1, 1), rand(1)),
        correctness("one pixel with a border, windows of 3 x 3", rand(1, 1, 1, 1),
                    rand(1, 1, 3, 3), rand(1), 1, 1),
        correctness("one channel, windows of 3 x 2", rand(2, 1, 7, 9), rand(5, 1, 3, 2), rand(5)),
        correctness("3 x 8 x 8, windows of 3 x 3, padding 1, no bias", rand(1, 3, 8, 8),
                    rand(2, 3, 3, 3), None, 1, 1),
        correctness("windows of one tap, 33 channels", rand(2, 33, 5, 7), rand(6, 33, 1, 1),
                    rand(6)),
        correctness("stride 3", *small(), 3),
        correctness("stride 2 down, 3 across", *small(), (2, 3)),
        correctness("stride 4, wider than the window", *small(), 4),
        correctness("padding 2", *small(), 1, 2),
        correctness("padding of 2 rows and no column", *small(), 1, (2, 0)),
        correctness("padding of 1 row and 3 columns", *small(), 1, (1, 3)),
        correctness("padding wider than the window", *small(), 1, 3),
        correctness("dilation 2", *small(), 1, 0, 2),
        correctness("dilation 2 with padding 2", *small(), 1, 2, 2),
        correctness("dilation 2 down, 1 across", *small(), 1, 0, (2, 1)),
        correctness("dilation 1 down, 5 across", *small(), 1, 0, (1, 5)),
        correctness("all steps differ", rand(2, 3, 12, 11), rand(5, 3, 2, 3), rand(5), *UNEVEN),
        correctness("2 images of 3 x 17 x 13, windows of 5 x 3, stride 3, padding 2, dilation 2",
                    rand(2, 3, 17, 13), rand(7, 3, 5, 3), rand(7), 3, 2, 2),
        correctness("7 x 7, square images", rand(2, 4, 7, 7), rand(5, 4, 3, 2), rand(5), 1, 1),
        correctness("5 x 41, wider than high", rand(2, 4, 5, 41), rand(5, 4, 3, 2), rand(5), 1, 1),
        correctness("41 x 5, higher than wide", rand(2, 4, 41, 5), rand(5, 4, 3, 2), rand(5), 1,
                    1),
        correctness("windows of 1 x 7", rand(2, 3, 4, 13), rand(5, 3, 1, 7), rand(5), 1, (0, 3)),
        correctness("windows of 7 x 1", rand(2, 3, 13, 5), rand(5, 3, 7, 1), rand(5), 1, (3, 0)),
        correctness("a window as large as the image", rand(3, 2, 6, 5), rand(5, 2, 6, 5), rand(5)),
        correctness("all weights equal", rand(2, 4, 7, 9), full(5, 4, 3, 2, value=0.5), rand(5), 1,
                    1),
        correctness("a bias far larger than the products", rand(2, 4, 7, 9), rand(5, 4, 3, 2),
                    rand(5, std=1e3), 1, 1),

        # Tiles: pixels, channels and taps below, at and above a block, and several of them.
        correctness("2 images of 16 x 16 x 16 to 32 channels, padding 1", *layer(), 1, 1),
        correctness("64 x 28 x 28 to 64 channels", rand(1, 64, 28, 28), rand(64, 64, 3, 3),
                    rand(64)),
        correctness("one pixel less than a block", rand(lambda block: block - 1, 3, 3, 2),
                    rand(2, 3, 3, 2), rand(2)),
        correctness("one pixel more than a block", rand(lambda block: block + 1, 3, 3, 2),
                    rand(2, 3, 3, 2), rand(2)),
        correctness("31 taps", rand(2, 31, 3, 5), rand(3, 31, 1, 1), rand(3)),
        correctness("33 taps", rand(2, 11, 3, 5), rand(3, 11, 1, 3), rand(3)),
        correctness("130 channels in, 3 out", rand(2, 130, 3, 5), rand(3, 130, 1, 1), rand(3)),
        correctness("3 channels in, 130 out", rand(2, 3, 5, 7), rand(130, 3, 3, 2), rand(130)),
        correctness("3 channels in, 63 out", rand(2, 3, 5, 7), rand(63, 3, 3, 2), rand(63)),
        correctness("3 channels in, 65 out", rand(2, 3, 5, 7), rand(65, 3, 3, 2), rand(65)),
        correctness("39 images of 2 x 3", rand(39, 3, 2, 3), rand(5, 3, 3, 2), rand(5), 1, 1),

        # 16 bits in, 32 bits between, 16 bits out.
        correctness("2 images of 4 x 7 x 9 in float16, padding 1", *small("float16"), 1, 1),
        correctness("2 images of 4 x 7 x 9 in bfloat16, padding 1", *small("bfloat16"), 1, 1),
        correctness("all steps differ, in float16", rand(2, 3, 12, 11, dtype="float16"),
                    rand(5, 3, 2, 3, dtype="float16"), rand(5, dtype="float16"), *UNEVEN),
        correctness("2 images of 16 x 16 x 16 to 32 channels in float16", *layer("float16"), 1, 1),

        # Ranges: where sums in 16 bits stagnate or overflow, and TF32 shows.
        correctness("513 taps around one half", rand(2, 57, 5, 5, mean=0.5),
                    rand(9, 57, 3, 3, mean=0.5), rand(9)),
        correctness("513 taps around one half in float16",
                    rand(2, 57, 5, 5, mean=0.5, dtype="float16"),
                    rand(9, 57, 3, 3, mean=0.5, dtype="float16"), rand(9, dtype="float16"), 1,
                    1),
        correctness("513 taps around one half in bfloat16",
                    rand(2, 57, 5, 5, mean=0.5, dtype="bfloat16"),
                    rand(9, 57, 3, 3, mean=0.5, dtype="bfloat16"), rand(9, dtype="bfloat16"), 1,
                    1),
        correctness("pixels spread by 1 000", rand(2, 4, 7, 9, std=1e3), rand(5, 4, 3, 2), rand(5),
                    1, 1),
        correctness("pixels around 300", rand(2, 4, 7, 9, mean=300.0), rand(5, 4, 3, 2), rand(5),
                    1, 1),

        # The smallest shapes, and none at all.
        edge("no image", rand(0, 3, 8, 8), rand(2, 3, 3, 3), rand(2), launches=0),
        edge("no image, in float16", rand(0, 4, 7, 9, dtype="float16"),
             rand(5, 4, 3, 2, dtype="float16"), None, 2, 1, launches=0),
        edge("windows entirely inside the padding", rand(2, 3, 2, 2), rand(5, 3, 2, 2), rand(5),
             2, 4),
        edge("a column of windows", rand(2, 3, 9, 3), rand(5, 3, 3, 3), rand(5)),
        edge("a row of windows", rand(2, 3, 3, 9), rand(5, 3, 3, 3), rand(5)),

        # Layouts: views that torch returns without a copy.
        edge("an image in channels_last", rand(2, 4, 7, 9).then(lambda t: t.to(memory_format=LAST)),
             rand(5, 4, 3, 2), rand(5), 1, 1, public=True),
        edge("a weight in channels_last", rand(2, 4, 7, 9),
             rand(5, 4, 3, 2).then(lambda t: t.to(memory_format=LAST)), rand(5), 1, 1),
        edge("image and weight in channels_last, float16",
             rand(2, 4, 7, 9, dtype="float16").then(lambda t: t.to(memory_format=LAST)),
             rand(5, 4, 3, 2, dtype="float16").then(lambda t: t.to(memory_format=LAST)),
             rand(5, dtype="float16"), 1, 1),
        edge("a transposed image", rand(2, 4, 9, 7).mT, rand(5, 4, 3, 2), rand(5), 1, 1),
        edge("a transposed weight", rand(2, 4, 7, 9), rand(4, 5, 3, 2).then(
            lambda t: t.transpose(0, 1)), rand(5), 1, 1),
        edge("weights with height and width swapped", rand(2, 4, 7, 9),
             rand(5, 4, 2, 3).mT, rand(5), 1, 1),
        edge("every other channel, row and column of larger images",
             rand(3, 8, 15, 20)[1:, ::2, 1::2, 2::2], rand(5, 4, 3, 2), rand(5), 1, 1),
        edge("every other filter and tap of a larger weight", rand(2, 4, 7, 9),
             rand(10, 4, 6, 5)[::2, :, ::2, 1::2], rand(5), 1, 1),
        edge("every other number of a longer bias", rand(2, 4, 7, 9), rand(5, 4, 3, 2),
             rand(10)[::2], 1, 1),
        edge("one image repeated three times",
             rand(1, 4, 7, 9).then(lambda t: t.expand(3, -1, -1, -1)), rand(5, 4, 3, 2), rand(5)),
        edge("one channel repeated four times",
             rand(2, 1, 7, 9).then(lambda t: t.expand(-1, 4, -1, -1)), rand(5, 4, 3, 2), rand(5)),
        edge("one filter and one bias for all channels", rand(2, 4, 7, 9),
             rand(1, 4, 3, 2).then(lambda t: t.expand(5, -1, -1, -1)),
             rand(1).then(lambda t: t.expand(5))),
        edge("float16 images that start at the second element of their memory",
             rand(2 * 4 * 7 * 9 + 1, dtype="float16").then(lambda t: t[1:].view(2, 4, 7, 9)),
             rand(5, 4, 3, 2, dtype="float16"), rand(5, dtype="float16"), 1, 1),

        # Special values: they reach the windows that cover them, and no other.
        edge("NaN and infinities in one pixel each",
             special(2, 4, 12, 11, values=[NAN, INF, -INF], share=0.01), rand(5, 4, 3, 2), rand(5),
             2),
        edge("NaN and infinities in one pixel each, padding 1",
             special(2, 4, 12, 11, values=[NAN, INF, -INF], share=0.01), rand(5, 4, 3, 2), rand(5),
             1, 1),
        edge("NaN and infinities in one pixel each, in float16",
             special(2, 4, 12, 11, values=[NAN, INF, -INF], share=0.01, dtype="float16"),
             rand(5, 4, 3, 2, dtype="float16"), rand(5, dtype="float16"), 1, 1),
        edge("NaN and infinities in the weight of some filters", rand(2, 4, 7, 9),
             special(9, 4, 3, 2, values=[NAN, INF, -INF], share=0.01), rand(9)),
        edge("NaN and infinities in the bias", rand(2, 4, 7, 9), rand(5, 4, 3, 2),
             special(5, values=[NAN, INF, -INF]), 1, 1),
        edge("sums beyond the largest float16", rand(2, 4, 7, 9, std=3e4, dtype="float16"),
             rand(5, 4, 3, 2, dtype="float16"), rand(5, dtype="float16"), 1, 1),
        edge("pixels at the largest float16",
             special(2, 4, 7, 9, values=extremes("float16"), dtype="float16"),
             rand(5, 4, 3, 2, std=0.1, dtype="float16"), rand(5, dtype="float16"), 1, 1),
        edge("all pixels equal", full(2, 4, 7, 9, value=0.1), rand(5, 4, 3, 2), rand(5), 1, 1),
        edge("both zeros and denormal numbers",
             special(2, 4, 7, 9, values=[0.0, -0.0, 2.0**-149, 2.0**-126], share=0.5),
             rand(5, 4, 3, 2), rand(5), 1, 1),

        # Unsupported arguments must raise before anything is launched.
        refuses("x is a list", [[1.0, 2.0]], FILTERS, raises=TypeError, mentions=("x", "list")),
        refuses("weight is None", IMAGE, None, raises=TypeError, mentions=("weight", "None")),
        refuses("bias is a number", IMAGE, FILTERS, 1.0, raises=TypeError,
                mentions=("bias", "float")),
        refuses("float64 is not supported", rand(1, 3, 8, 8, dtype="float64"),
                rand(2, 3, 3, 3, dtype="float64"), raises=TypeError, mentions=("x", "float64")),
        refuses("int32 is not supported", rand(1, 3, 8, 8, dtype="int32"),
                rand(2, 3, 3, 3, dtype="int32"), raises=TypeError, mentions=("x", "int32")),
        refuses("image in float32, weight in float16", IMAGE, rand(2, 3, 3, 3, dtype="float16"),
                raises=TypeError, mentions=("weight", "float32", "float16")),
        refuses("image in float16, bias in float32", rand(1, 3, 8, 8, dtype="float16"),
                rand(2, 3, 3, 3, dtype="float16"), rand(2), raises=TypeError,
                mentions=("bias", "float32", "float16")),
        refuses("image and weight on two devices", IMAGE, FILTERS.on_meta(), raises=ValueError,
                mentions=("weight", "cpu", "meta")),
        refuses("image and bias on two devices", IMAGE, FILTERS, rand(2).on_meta(),
                raises=ValueError, mentions=("bias", "cpu", "meta")),
        refuses("an image without a batch", rand(3, 8, 8), FILTERS, raises=ValueError,
                mentions=("x", "4", "3")),
        refuses("a weight of two dimensions", IMAGE, rand(2, 3), raises=ValueError,
                mentions=("weight", "4", "2")),
        refuses("3 channels, and filters for 5", IMAGE, rand(2, 5, 3, 3), raises=ValueError,
                mentions=("weight", "3", "5")),
        refuses("no image, and filters for 5 channels instead of 3", rand(0, 3, 8, 8),
                rand(2, 5, 3, 3), raises=ValueError, mentions=("weight", "3", "5")),
        refuses("2 filters, and a bias of 7", IMAGE, FILTERS, rand(7), raises=ValueError,
                mentions=("bias", "2", "7")),
        refuses("2 filters, and a bias of one number", IMAGE, FILTERS, rand(1), raises=ValueError,
                mentions=("bias", "2", "1")),
        refuses("a bias of two dimensions", IMAGE, FILTERS, rand(2, 1), raises=ValueError,
                mentions=("bias", "2")),
        refuses("stride 0", IMAGE, FILTERS, None, 0, raises=ValueError, mentions=("stride", "0")),
        refuses("stride 1 down, -2 across", IMAGE, FILTERS, None, (1, -2), raises=ValueError,
                mentions=("stride", "-2")),
        refuses("dilation 0", IMAGE, FILTERS, None, 1, 0, 0, raises=ValueError,
                mentions=("dilation", "0")),
        refuses("padding -1", IMAGE, FILTERS, None, 1, -1, raises=ValueError,
                mentions=("padding", "-1")),
        refuses("three strides", IMAGE, FILTERS, None, (1, 2, 3), raises=ValueError,
                mentions=("stride", "3")),
        refuses("stride 1.5", IMAGE, FILTERS, None, 1.5, raises=TypeError,
                mentions=("stride", "1.5")),
        refuses("padding is a string", IMAGE, FILTERS, None, 1, "same", raises=TypeError,
                mentions=("padding", "same")),
        refuses("windows higher than the image", rand(1, 3, 4, 20), rand(2, 3, 7, 3),
                raises=ValueError, mentions=("weight", "-2", "18")),
        refuses("windows wider than the padded image, by their dilation", rand(1, 3, 20, 4),
                rand(2, 3, 3, 3), None, 1, 1, 4, raises=ValueError,
                mentions=("weight", "14", "-2")),

        sizes(lambda channels, filters, height, width, window, stride, padding, dtype: (
                  rand(2, channels, height + window - 1, width + window - 1, dtype=dtype),
                  rand(filters, channels, window, window, dtype=dtype), rand(filters, dtype=dtype),
                  stride, padding),
              channels=(1, 20), filters=(1, 50), height=(1, 9), width=(1, 50), window=(1, 3),
              stride=(1, 2), padding=(0, 1), dtype=FLOATS),

        performance("2 images of 16 x 16 x 16 to 32 channels", *layer(), 1, 1,
                    traffic=BUDGET),
        performance("2 images of 16 x 16 x 16 to 32 channels, float16", *layer("float16"), 1, 1,
                    traffic=BUDGET, tensor_cores=True),
        performance("32 images of 64 x 56 x 56 to 64 channels, float16",
                    rand(32, 64, 56, 56, dtype="float16"), rand(64, 64, 3, 3, dtype="float16"),
                    rand(64, dtype="float16"), 1, 1, tensor_cores=True,
                    pass_at=0.03, stretch=0.06),  # of matmul: 20 % and 40 % of F.conv2d on an H200
        # A measured case is not run whole, and its tensors take no memory: 7.9 GB would be much.
        Case("three images, 1.3 billion elements apart", Kind.PERFORMANCE, (
            rand(3, 1, 1 << 15, 40_000, dtype="float16")[:, :, :8, :8],
            rand(2, 1, 3, 3, dtype="float16")), limits=Limits(pass_at=1e-9), advisory=True),
    ],
)


# ---------------------------------------------------------------------------------------------
# Properties of convolution, on integers: every sum is exact, in any order


def agree(got: torch.Tensor, expected: torch.Tensor, what: str) -> None:
    """Raises AssertionError with the first difference, if there is one."""
    assert got.shape == expected.shape, (
        f"{what}: the result has shape {tuple(got.shape)} instead of {tuple(expected.shape)}")
    wrong = got != expected
    if bool(wrong.any()):
        first = tuple(int(i) for i in wrong.nonzero()[0])
        raise AssertionError(
            f"{what}: {int(wrong.sum())} of {wrong.numel()} elements differ, the first is "
            f"{list(first)} with {got[first].item():.7g} instead of {expected[first].item():.7g}")


def test_windows_of_one_pixel_are_a_matrix_product(submission):
    x, weight = submission.draw(integers(2, 20, 5, 6), integers(7, 20, 1, 1))

    result = submission(x, weight)

    product = (weight.flatten(1) @ x.flatten(2)).view(2, 7, 5, 6)
    agree(result, product, "windows of 1 x 1 against the product of weight and pixels")


def test_a_single_tap_of_one_shifts_the_image(submission):
    for row in range(3):
        for column in range(2):
            (x,) = submission.draw(integers(1, 1, 6, 7, low=-500, high=500))
            weight = torch.zeros(1, 1, 3, 2)
            weight[0, 0, row, column] = 1.0

            result = submission(x, weight)

            moved = x[:, :, row:row + 4, column:column + 6]
            agree(result, moved, f"a weight that is 1 at tap ({row}, {column}) and 0 elsewhere")


def test_the_result_is_linear_in_the_image(submission):
    x, y, weight = submission.draw(integers(2, 3, 6, 7), integers(2, 3, 6, 7),
                                   integers(4, 3, 3, 2))

    both, first, second = (submission(t, weight, None, 2, 1) for t in (3 * x + y, x, y))

    agree(both, 3 * first + second, "3 x + y against 3 times x plus y")


def test_an_image_alone_equals_itself_in_a_batch(submission):
    x, weight, bias = submission.draw(integers(5, 3, 6, 7), integers(4, 3, 3, 2), integers(4))

    together = submission(x, weight, bias, 1, 1)

    for number in range(5):
        alone = submission(x[number:number + 1], weight, bias, 1, 1)
        agree(alone, together[number:number + 1], f"image {number} alone against in its batch")


def test_padding_equals_a_border_of_zeros(submission):
    x, weight, bias = submission.draw(integers(2, 3, 6, 7), integers(4, 3, 3, 2), integers(4))

    padded = submission(x, weight, bias, 1, (2, 3), (2, 1))
    bordered = submission(F.pad(x, (3, 3, 2, 2)), weight, bias, 1, 0, (2, 1))

    agree(padded, bordered, "padding (2, 3) against an image with that border of zeros")


def test_two_calls_give_identical_bits(submission):
    x, weight, bias = submission.draw(*layer())

    first, second = submission(x, weight, bias), submission(x, weight, bias)

    agree(second, first, "second against first call")
