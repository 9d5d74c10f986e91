"""Kernels built on matrix products: matmul in full precision and in TF32, conv2d, attention."""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F  # noqa: N812 - torch's own spelling
from torch import Tensor

from grader.suite import TENSOR_CORES, Tolerance, error_bounds, rand, special
from grader.suite.rounding import tf32

from .kernel import Cases, Kernel, Run, brain, half

BLOCK_K = 32


# ---------------------------------------------------------------------------------------------
# Matrix product


def factors(dtype: str) -> Cases:
    for m, k, n in ((32, 64, 48), (17, 200, 5), (9, 1_024, 16), (5, 1, 7), (1, 33, 1)):
        for name, options in (("around zero", {}), ("around a half", {"mean": 0.5}),
                              ("around 60", {"mean": 60.0}), ("spread by 30", {"std": 30.0}),
                              ("spread by a thousandth", {"std": 1e-3})):
            yield (f"{m} x {k} x {n}, values {name}",
                   (rand(m, k, dtype=dtype, **options), rand(k, n, dtype=dtype, **options)))
        yield (f"{m} x {k} x {n}, single large values",
               (special(m, k, values=[300.0], share=0.01, dtype=dtype),
                special(k, n, values=[-250.0], share=0.01, dtype=dtype)))


def blocks(a: Tensor, b: Tensor) -> list[Tensor]:
    """The products of single K blocks."""
    return [x @ y for x, y in zip(a.split(BLOCK_K, -1), b.split(BLOCK_K, -2), strict=True)]


def accumulated(parts: list[Tensor], keep: Run = lambda x: x) -> Tensor:
    total = torch.zeros_like(parts[0])
    for part in parts:
        total = keep(total + part)
    return total


def split_k(a: Tensor, b: Tensor) -> Tensor:
    parts = blocks(a, b)
    return accumulated([accumulated(parts[start::4]) for start in range(min(4, len(parts)))])


def one_by_one(a: Tensor, b: Tensor) -> Tensor:
    """One term of the sum after another, as a kernel without tensor cores does."""
    return accumulated([a[:, k:k + 1] * b[k:k + 1] for k in range(a.shape[-1])])


def finely(a: Tensor, b: Tensor, keep: Run) -> Tensor:
    """An accumulator that is rounded after every 16 products."""
    pairs = zip(a.split(16, -1), b.split(16, -2), strict=True)
    return accumulated([x @ y for x, y in pairs], keep)


def multiplies(run: Run, load: Run = lambda x: x) -> Run:
    return lambda a, b: run(load(a.float()), load(b.float())).to(a.dtype)


def in_three_parts(a: Tensor, b: Tensor) -> Tensor:
    """tf32x3: float32 as sums of two TF32 numbers, the larger one rounded to the nearest."""
    high_a, high_b = tf32(a, "rna"), tf32(b, "rna")
    return tf32(a - high_a) @ high_b + high_a @ tf32(b - high_b) + high_a @ high_b


ORDERS = {
    "one block after another": lambda a, b: accumulated(blocks(a, b)),
    "backwards": lambda a, b: accumulated(blocks(a, b)[::-1]),
    "K split in four": split_k,
    "one term after another": one_by_one,
}
MISTAKES = {
    "accumulator in float16": lambda a, b: finely(a, b, half),
    "accumulator in bfloat16": lambda a, b: finely(a, b, brain),
    "one K element missing": lambda a, b: a[:, :-1] @ b[:-1],
    "last K block missing": lambda a, b: accumulated([x * 0 for x in blocks(a, b)[-1:]]
                                                     + blocks(a, b)[:-1]),
    "one K block twice": lambda a, b: accumulated([*blocks(a, b), blocks(a, b)[0]]),
    "accumulator not kept": lambda a, b: blocks(a, b)[-1],
}


def product(a: Tensor, b: Tensor) -> Tensor:
    return a.double() @ b.double()


MATMUL = Kernel(
    "matmul", product, Tolerance(error_bounds.matmul, TENSOR_CORES, products=(0, 1)), factors,
    right={name: multiplies(run) for name, run in ORDERS.items()} | {
        "three TF32 parts": multiplies(in_three_parts),
    },
    wrong={name: multiplies(run) for name, run in MISTAKES.items()} | {
        "in TF32": multiplies(ORDERS["one block after another"], tf32),
        "inputs rounded to bfloat16": multiplies(ORDERS["one block after another"], brain),
    },
    blind={"in TF32": ("float16", "bfloat16"), "inputs rounded to bfloat16": ("bfloat16",)},
)

MATMUL_TF32 = Kernel(
    "matmul in TF32", product, Tolerance(error_bounds.matmul, products=(0, 1), tf32=True), factors,
    right={f"{name}, {mode}": multiplies(run, lambda x, mode=mode: tf32(x, mode))
           for name, run in ORDERS.items() for mode in ("rz", "rna", "rne")},
    wrong={name: multiplies(run, tf32) for name, run in MISTAKES.items()} | {
        "inputs rounded to bfloat16": multiplies(ORDERS["one block after another"], brain),
    },
    dtypes=("float32",),
)


# ---------------------------------------------------------------------------------------------
# Convolution, as the product of windows and filters

GEOMETRY = {"stride": 2, "padding": 1, "dilation": 1}


def images(dtype: str) -> Cases:
    shapes = ((2, 4, 7, 9, 5, 3, 2), (1, 3, 8, 8, 2, 3, 3), (1, 16, 10, 6, 8, 3, 3),
              (1, 1, 3, 3, 1, 1, 1))
    for n, c, h, w, out, kh, kw in shapes:
        for name, options in (("around zero", {}), ("around a half", {"mean": 0.5}),
                              ("spread by 30", {"std": 30.0})):
            yield (f"{n} x {c} x {h} x {w}, values {name}",
                   (rand(n, c, h, w, dtype=dtype, **options),
                    rand(out, c, kh, kw, dtype=dtype), rand(out, dtype=dtype)))


def convolution(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    return F.conv2d(x.double(), weight.double(), bias.double(), **GEOMETRY)


def convolves(run: Run, weights: Run = lambda w: w, *, pad: str = "constant",
              biased: bool = True) -> Run:
    def whole(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
        kernel = weight.float()
        size = kernel.shape[2:]
        bordered = F.pad(x.float(), (1, 1, 1, 1), mode=pad)
        windows = F.unfold(bordered, size, stride=GEOMETRY["stride"])
        result = torch.stack([run(weights(kernel).flatten(1), image) for image in windows])
        height = (x.shape[2] + 2 - size[0]) // 2 + 1
        result = result.view(len(x), len(kernel), height, -1)
        return (result + biased * bias.float()[:, None, None]).to(x.dtype)

    return whole


CONV2D = Kernel(
    "conv2d", convolution,
    Tolerance(lambda x, w, b: error_bounds.conv2d(x, w, b, **GEOMETRY), TENSOR_CORES,
              products=(0, 1)),
    images,
    right={name: convolves(run) for name, run in ORDERS.items()},
    wrong={name: convolves(run) for name, run in MISTAKES.items()} | {
        "filter flipped": convolves(torch.matmul, lambda w: w.flip(2, 3)),
        "border repeated": convolves(torch.matmul, pad="replicate"),
        "no bias": convolves(torch.matmul, biased=False),
        "height and width exchanged": convolves(
            torch.matmul, lambda w: w.mT if w.shape[2] == w.shape[3] else w),
    },
)


# ---------------------------------------------------------------------------------------------
# Attention

CAUSAL = {"plain": False, "causal": True}


def heads(dtype: str) -> Cases:
    for length, width in ((1, 16), (33, 16), (65, 48), (128, 32)):
        shape = (2, length, width)
        plain = rand(*shape, dtype=dtype)
        yield f"{length} keys", (plain, plain, plain)
        yield f"{length} keys, queries spread by 30", (
            rand(*shape, dtype=dtype, std=30.0), plain, plain)
        yield f"{length} keys, values around 3", (plain, plain, rand(*shape, dtype=dtype, mean=3.0))
        yield f"{length} keys, scores near -500", (
            rand(*shape, dtype=dtype, mean=22.4 / width**0.25, std=0.1),
            rand(*shape, dtype=dtype, mean=-22.4 / width**0.25, std=0.1), plain)


def exact_attention(causal: bool) -> Run:
    def run(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        q, k, v = q.double(), k.double(), v.double()
        scores = error_bounds.masked(q @ k.mT / math.sqrt(q.shape[-1]), causal)
        return torch.softmax(scores, -1) @ v

    return run


def flash(causal: bool, *, scale: Run = lambda d: 1 / math.sqrt(d), block: int = 32,
          rescale_sum: bool = True, rescale_result: bool = True, start: float = -math.inf,
          off_by_one: int = 0, padded: bool = False, rounds_p: bool = False,
          keep: Run = lambda x: x) -> Run:
    """Online softmax over blocks of keys; every option but ``block`` and ``rounds_p`` a mistake."""
    def run(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        dtype, length = q.dtype, k.shape[-2]
        q, k, v = q.float(), k.float(), v.float()
        if padded:
            extra = (0, 0, 0, -length % block)
            k, v = F.pad(k, extra), F.pad(v, extra)
        places = torch.arange(k.shape[-2])
        most = torch.full((*q.shape[:-1], 1), start)
        total, result = torch.zeros_like(most), torch.zeros_like(q)
        for first in range(0, k.shape[-2], block):
            part = slice(first, first + block)
            scores = q @ k[:, part].mT * scale(q.shape[-1])
            if causal:
                later = places[part] > torch.arange(q.shape[-2])[:, None] + off_by_one
                scores = scores.masked_fill(later, -math.inf)
            now = torch.maximum(most, scores.amax(-1, keepdim=True))
            safe = torch.where(now == -math.inf, 0.0, now)
            p, old = torch.exp(scores - safe), torch.exp(most - safe)
            total = keep(total * (old if rescale_sum else 1) + p.sum(-1, keepdim=True))
            weights = p.to(dtype).float() if rounds_p else p
            result = keep(result * (old if rescale_result else 1) + weights @ v[:, part])
            most = now
        return (result / total).to(dtype)

    return run


def at_once(causal: bool) -> Run:
    def run(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        scores = error_bounds.masked(q.float() @ k.float().mT / math.sqrt(q.shape[-1]), causal)
        return (torch.softmax(scores, -1) @ v.float()).to(q.dtype)

    return run


def attention(name: str, causal: bool) -> Kernel:
    wrong = {
        "no scale": flash(causal, scale=lambda d: 1.0),
        "scale twice": flash(causal, scale=lambda d: 1.0 / d),
        "result not rescaled": flash(causal, rescale_result=False),
        "sum not rescaled": flash(causal, rescale_sum=False),
        "maximum starts at 0": flash(causal, start=0.0),
        "accumulator in bfloat16": flash(causal, keep=brain),
    }
    wrong |= {"one key too many": flash(True, off_by_one=1),
              "one key too few": flash(True, off_by_one=-1)} if causal else {
              "padding keys take part": flash(False, padded=True)}
    return Kernel(
        f"attention, {name}", exact_attention(causal),
        Tolerance(lambda q, k, v: error_bounds.attention(q, k, v, causal=causal, rounds_p=True),
                  TENSOR_CORES),
        heads,
        right={
            "at once": at_once(causal),
            "32 keys at a time": flash(causal),
            "16 keys at a time, weights rounded": flash(causal, block=16, rounds_p=True),
            "torch": lambda q, k, v: F.scaled_dot_product_attention(q, k, v, is_causal=causal),
        },
        wrong=wrong,
        blind={"accumulator in bfloat16": ("bfloat16",)},
    )


KERNELS = (MATMUL, MATMUL_TF32, CONV2D, *(attention(*item) for item in CAUSAL.items()))
