"""What solutions add for odd, narrow and long shapes, which their suites do not grade."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F  # noqa: N812 - as PyTorch's own pages call it

from grader.engine.interpreter.eager import interpreted
from tests.benchmarks.modules import solution

pytestmark = pytest.mark.course


@pytest.mark.parametrize("n", [1, 1_024, 2_048, 3_333])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_vectors_of_any_length(n: int, dtype: torch.dtype) -> None:
    x, y = (torch.randn(n, dtype=dtype) for _ in range(2))

    with interpreted():
        total = solution("vector-add").vector_add_any_length(x, y)

    assert torch.equal(total, x + y)


@pytest.mark.parametrize("shape", [(37, 100), (9, 257), (5, 1), (3, 1_000), (3, 1_024), (2, 5_000),
                                   (0, 7)])
def test_softmax_of_any_width(shape: tuple[int, int]) -> None:
    wider = torch.randn(shape[0], shape[1] + 4)
    for x in (torch.randn(shape), wider[:, :shape[1]], torch.randn(shape[::-1]).mT):
        with interpreted():
            result = solution("softmax").softmax_any_width(x)

        assert result.is_contiguous()
        torch.testing.assert_close(result.double(), torch.softmax(x.double(), 1))


@pytest.mark.parametrize("shape", [(37, 100), (9, 257), (5, 1), (3, 1_000), (3, 768), (2, 5_000),
                                   (2, 2_048)])
def test_layer_norm_of_any_width(shape: tuple[int, int]) -> None:
    x, w, b = torch.randn(shape) + 3, torch.randn(shape[1]), torch.randn(shape[1])

    with interpreted():
        result = solution("layer-norm").layer_norm_any_width(x, w, b)

    exact = F.layer_norm(x.double(), shape[1:], w.double(), b.double())
    torch.testing.assert_close(result.double(), exact, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("sizes", [(513, 1_000, 520), (600, 512, 513), (512, 512, 512),
                                   (5, 1_000, 8)], ids=["described", "copied", "even", "small"])
def test_products_of_any_size(sizes: tuple[int, int, int]) -> None:
    m, n, k = sizes
    a, b = torch.randn(m, k, dtype=torch.float16), torch.randn(k, n, dtype=torch.float16)

    with interpreted():
        c = solution("matrix-mul").matmul_any_size(a, b)

    assert c.is_contiguous()
    torch.testing.assert_close(c.double(), a.double() @ b.double(), rtol=2e-3, atol=2e-2)


@pytest.mark.parametrize("channels", [3, 40])
@pytest.mark.parametrize(("stride", "padding"), [(1, 1), ((2, 3), (0, 2))])
def test_convolution_in_channels_last(channels: int, stride: int | tuple[int, int],
                                      padding: int | tuple[int, int]) -> None:
    x = torch.randn(3, channels, 7, 9, dtype=torch.float16)
    w = torch.randn(70, channels, 3, 2, dtype=torch.float16)
    for bias, memory in ((torch.randn(140, dtype=torch.float16)[::2], torch.contiguous_format),
                         (None, torch.channels_last)):
        with interpreted():
            out = solution("conv2d").conv2d_channels_last(
                x.contiguous(memory_format=memory), w.contiguous(memory_format=memory), bias,
                stride, padding)

        exact = F.conv2d(x.double(), w.double(), None if bias is None else bias.double(), stride,
                         padding)
        assert out.is_contiguous(memory_format=torch.channels_last)
        torch.testing.assert_close(out.double(), exact, rtol=2e-3, atol=2e-2)


def test_a_convolution_in_channels_last_of_float32_or_no_image_is_the_one_that_is_taught() -> None:
    module = solution("conv2d")
    x, w = torch.randn(2, 4, 7, 9), torch.randn(5, 4, 3, 2)

    with interpreted():
        out = module.conv2d_channels_last(x, w, padding=1)
        none = module.conv2d_channels_last(x[:0].half(), w.half())

    assert out.is_contiguous(memory_format=torch.channels_last)
    torch.testing.assert_close(out, F.conv2d(x, w, padding=1), rtol=1e-5, atol=1e-5)
    assert none.shape == (0, 5, 5, 8)
    with pytest.raises(ValueError, match="weight: expected a window that fits"):
        module.conv2d_channels_last(x[:, :, :2].half(), w.half())


@pytest.mark.parametrize("act", ["relu", "silu"])
def test_a_persistent_layer(act: str) -> None:
    x, w = (torch.randn(rows, 520, dtype=torch.float16) for rows in (600, 528))
    b = torch.randn(528, dtype=torch.float16)

    with interpreted():
        y = solution("fused-operations").linear_bias_act_persistent(x, w / 23, b, act)

    exact = getattr(F, act)(F.linear(x.double(), (w / 23).double(), b.double()))
    torch.testing.assert_close(y.double(), exact, rtol=2e-3, atol=5e-3)


def test_a_persistent_layer_with_relu() -> None:
    x, w = (torch.randn(rows, 520, dtype=torch.float16) for rows in (600, 528))
    b = torch.randn(1056, dtype=torch.float16)[::2]

    with interpreted():
        y = solution("warp-specialization").linear_relu_persistent(x, w / 23, b)

    exact = torch.relu(F.linear(x.double(), (w / 23).double(), b.double()))
    torch.testing.assert_close(y.double(), exact, rtol=2e-3, atol=5e-3)


def test_a_persistent_product_in_rows_of_no_16_bytes() -> None:
    a = torch.randn(513, 515, dtype=torch.float16)
    b = torch.randn(515, 517, dtype=torch.float16)

    with interpreted():
        c = solution("advanced-optimizations").matmul_persistent(a, b)

    assert c.is_contiguous()
    torch.testing.assert_close(c.double(), a.double() @ b.double(), rtol=2e-3, atol=2e-2)


@pytest.mark.parametrize("columns", [100, 5_000])
def test_scales_of_rows_in_one_launch(columns: int) -> None:
    x = torch.randn(3, columns, dtype=torch.float16)
    x[1] = 0

    with interpreted():
        q, scale = solution("fp8-matmul").quantize_fp8(x, per_row=True)

    expected = x.abs().amax(1, keepdim=True).float() / 448
    expected[1] = 1
    torch.testing.assert_close(scale, expected)
    torch.testing.assert_close(q.float() * scale, x.float(), rtol=2**-4, atol=1e-2)


@pytest.mark.parametrize("per_row", [False, True])
@pytest.mark.parametrize("dtype", [torch.float16, torch.float32])
def test_a_persistent_product_of_float8(per_row: bool, dtype: torch.dtype) -> None:
    module = solution("fp8-matmul")
    a, b_t = torch.randn(600, 272), torch.randn(520, 272)

    with interpreted():
        (a_q, scale_a), (b_q_t, scale_b) = (
            module.quantize_fp8(x, per_row=per_row) for x in (a, b_t))
        c = module.matmul_fp8(a_q, b_q_t, scale_a, scale_b, dtype)

    exact = (a_q.double() * scale_a) @ (b_q_t.double() * scale_b).T
    torch.testing.assert_close(c.double(), exact, rtol=2e-3, atol=2e-2)


@pytest.mark.parametrize("n", [1, 100, 512, 1_537])
def test_a_vector_and_a_bias_of_any_length(n: int) -> None:
    x, bias = torch.randn(n), torch.randn(n)

    with interpreted():
        y = solution("fused-operations").fused_add_relu_mul(x, bias, 0.5)

    torch.testing.assert_close(y, torch.relu(x + bias) * 0.5)
