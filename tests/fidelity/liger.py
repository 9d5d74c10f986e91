"""Ops of Liger-Kernel with what torch says they compute, and the GPU that their host code wants."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any
from unittest import mock

import torch
import torch.nn.functional as F  # noqa: N812 - torch's own spelling
from liger_kernel import ops
from torch import Tensor

# Largest error over the largest magnitude of the reference, which is torch in float64.
FP32 = 4e-6
BF16 = 2e-2
TF32 = 6e-3  # `tl.dot` of float32, for which a GPU keeps 10 bits of the mantissa


# ---------------------------------------------------------------------------------------------
# The library's host code asks for a GPU

MULTIPROCESSORS = 5  # no divisor of the numbers of rows below


class _Device(str):
    """``tensor.device`` as the library sees it: a GPU by its type, the CPU for torch."""

    type = "cuda"


def _device(tensor: Tensor) -> Any:
    asking = sys._getframe(1).f_globals.get("__name__", "")
    if asking.startswith("liger_kernel."):
        return _Device("cpu")
    return torch._C.TensorBase.device.__get__(tensor)


@contextmanager
def supposed_gpu() -> Iterator[None]:
    """A GPU of compute capability 7.5, on which the library uses no operation that a CPU lacks.

    Many backward kernels run one program per multiprocessor, and one alone without a GPU.
    """
    properties = SimpleNamespace(multi_processor_count=MULTIPROCESSORS)
    with (mock.patch.object(torch.Tensor, "device", property(_device)),
          mock.patch.object(torch.cuda, "get_device_properties", lambda device=None: properties),
          mock.patch.object(torch.cuda, "get_device_capability", lambda device=None: (7, 5)),
          mock.patch("liger_kernel.ops.dyt.infer_device", lambda: "cuda")):
        yield


# ---------------------------------------------------------------------------------------------
# One op

Draw = Callable[..., Tensor]


@dataclass(frozen=True)
class Op:
    """``ours`` and ``reference`` take the inputs, then what is fixed, and return tensors.

    Gradients are compared for each input, with random weights for each result. ``programs`` is
    what the widest launch must have at least.
    """

    ours: Callable[..., Any]
    reference: Callable[..., Any]
    inputs: tuple[Tensor, ...]
    fixed: tuple[Tensor, ...] = ()
    tolerance: float = FP32
    programs: int = 3


OPS: dict[str, Callable[[Draw], Op]] = {}


def op(name: str) -> Callable[[Callable[[Draw], Op]], Callable[[Draw], Op]]:
    def enter(build: Callable[[Draw], Op]) -> Callable[[Draw], Op]:
        OPS[name] = build
        return build

    return enter


def drawing(dtype: torch.dtype) -> Draw:
    generator = torch.Generator().manual_seed(3)

    def draw(*shape: int) -> Tensor:
        return torch.randn(*shape, generator=generator).to(dtype)

    return draw


def integers(below: int, *shape: int) -> Tensor:
    return torch.randint(below, shape, generator=torch.Generator().manual_seed(4))


def with_gradients(work: Callable[..., Any], inputs: Sequence[Tensor],
                   fixed: Sequence[Tensor]) -> list[Tensor]:
    """The results, then the gradient of each input."""
    leaves = [tensor.clone().requires_grad_() for tensor in inputs]
    results = work(*leaves, *(tensor.clone() for tensor in fixed))
    results = results if isinstance(results, tuple) else (results,)
    generator = torch.Generator().manual_seed(5)
    weights = [0.25 + torch.rand(result.shape, generator=generator) for result in results]
    copies = [result.detach().clone() for result in results]
    torch.autograd.backward(
        results, [w.to(result.dtype) for w, result in zip(weights, results, strict=True)])
    return [*copies, *(leaf.grad for leaf in leaves)]


def errors(found: Sequence[Tensor], wanted: Sequence[Tensor], tolerance: float) -> list[str]:
    wrong = []
    for i, (ours, reference) in enumerate(zip(found, wanted, strict=True)):
        if ours.shape != reference.shape:
            wrong.append(f"tensor {i}: shape {tuple(ours.shape)}, not {tuple(reference.shape)}")
            continue
        error = ((ours.double() - reference).abs().max() / reference.abs().max()).item()
        if not error <= tolerance:  # not a number is an error too
            wrong.append(f"tensor {i}: error {error:.1e} of the largest magnitude")
    return wrong


# ---------------------------------------------------------------------------------------------
# Losses


@op("cross entropy")
def _(draw: Draw) -> Op:
    target = integers(61, 13)
    target[4] = -100
    return Op(lambda x, t: ops.LigerCrossEntropyFunction.apply(x, t, None)[0],
              F.cross_entropy, (draw(13, 61),), (target,), programs=13)


@op("cross entropy, all options")
def _(draw: Draw) -> Op:
    """Class weights, smoothing, capped logits and a loss on the size of the normaliser."""
    target, cap = integers(61, 13), 3.0
    target[[0, 7]] = -100

    def reference(x: Tensor, weight: Tensor, target: Tensor) -> Tensor:
        capped, seen = cap * torch.tanh(x / cap), target != -100
        loss = F.cross_entropy(capped, target, weight, label_smoothing=0.1)
        return loss + 1e-2 * torch.logsumexp(capped[seen], -1).square().mean()

    return Op(lambda x, weight, target: ops.LigerCrossEntropyFunction.apply(
                  x, target, weight, -100, 1e-2, 0.1, "mean", cap)[0],
              reference, (draw(13, 61),), (draw(61).abs(), target), programs=13)


@op("cross entropy of each row")
def _(draw: Draw) -> Op:
    return Op(lambda x, t: ops.LigerCrossEntropyFunction.apply(
                  x, t, None, -100, 0.0, 0.0, "none")[0],
              lambda x, t: F.cross_entropy(x, t, reduction="none"),
              (draw(13, 61),), (integers(61, 13),), programs=13)


@op("fused linear cross entropy")
def _(draw: Draw) -> Op:
    """The rows are done in chunks; the gradients are made in the forward pass."""
    target = integers(61, 13)
    target[4] = -100
    return Op(lambda x, w, b, t: ops.LigerFusedLinearCrossEntropyFunction.apply(x, w, t, b)[0],
              lambda x, w, b, t: F.cross_entropy(x @ w.mT + b, t),
              (draw(13, 24), draw(61, 24), draw(61)), (target,))


@op("fused linear cross entropy of each row")
def _(draw: Draw) -> Op:
    return Op(lambda x, w, t: ops.LigerFusedLinearCrossEntropyFunction.apply(
                  x, w, t, None, None, -100, 0.0, 0.0, "none")[0],
              lambda x, w, t: F.cross_entropy(x @ w.mT, t, reduction="none"),
              (draw(13, 24), draw(61, 24)), (integers(61, 13),))


@op("vocabulary parallel cross entropy")
def _(draw: Draw) -> Op:
    return Op(lambda x, t: ops.LigerVocabParallelCEFunction.apply(
                  x, t, None, -100, 0.1, "pytorch", "global"),
              lambda x, t: F.cross_entropy(
                  x.mT, t, reduction="none", label_smoothing=0.1),
              (draw(4, 3, 61),), (integers(61, 4, 3),), programs=12)


@op("KL divergence")
def _(draw: Draw) -> Op:
    return Op(lambda x, y: ops.LigerKLDivLossFunction.apply(x, y, "batchmean"),
              lambda x, y: F.kl_div(x, y, reduction="batchmean"),
              (log_softmax(draw(9, 45)),), (softmax(draw(9, 45)),), programs=9)


@op("KL divergence of each element, target in logarithms")
def _(draw: Draw) -> Op:
    return Op(lambda x, y: ops.LigerKLDivLossFunction.apply(x, y, "none", True),
              lambda x, y: F.kl_div(x, y, reduction="none", log_target=True),
              (log_softmax(draw(9, 45)),), (log_softmax(draw(9, 45)),), programs=9)


@op("fused linear KL divergence")
def _(draw: Draw) -> Op:
    return Op(lambda x, w, y: ops.LigerFusedLinearKLDivFunction.apply(x, w, y, None, "batchmean"),
              lambda x, w, y: F.kl_div(F.log_softmax(x @ w.mT, -1), y, reduction="batchmean"),
              (draw(13, 6), draw(121, 6)), (softmax(draw(13, 121)),))


def _jsd(x: Tensor, y: Tensor, beta: float) -> Tensor:
    """Of each row. ``x`` and ``y`` are logarithms; ``beta`` is the weight of ``y``."""
    p, q = y.exp(), x.exp()
    middle = (beta * p + (1 - beta) * q).log()
    return (beta * p * (y - middle) + (1 - beta) * q * (x - middle)).sum(-1)


@op("Jensen-Shannon divergence")
def _(draw: Draw) -> Op:
    return Op(lambda x, y: ops.LigerJSDFunction.apply(x, y),
              lambda x, y: _jsd(x, y, 0.5).mean(),
              (log_softmax(draw(9, 45)),), (log_softmax(draw(9, 45)),), programs=9)


@op("Jensen-Shannon divergence with labels")
def _(draw: Draw) -> Op:
    labels = integers(45, 9)
    labels[[2, 8]] = -100
    return Op(lambda x, y, labels: ops.LigerJSDFunction.apply(x, y, labels, 0.1),
              lambda x, y, labels: _jsd(x, y, 0.1)[labels != -100].mean(),
              (log_softmax(draw(9, 45)),), (log_softmax(draw(9, 45)), labels), programs=9)


@op("fused linear Jensen-Shannon divergence")
def _(draw: Draw) -> Op:
    def reference(x: Tensor, w: Tensor, other_x: Tensor, other_w: Tensor) -> Tensor:
        return _jsd(F.log_softmax(x @ w.mT / 1.5, -1),
                    F.log_softmax(other_x @ other_w.mT / 1.5, -1), 0.5).mean()

    return Op(lambda x, w, other_x, other_w: ops.LigerFusedLinearJSDFunction.apply(
                  x, w, other_x, other_w, None, 0.5, -100, 1.5),
              reference, (draw(13, 24), draw(45, 24)), (draw(13, 24), draw(45, 24)))


@op("total variation distance")
def _(draw: Draw) -> Op:
    labels = integers(45, 9)
    labels[3] = -100
    return Op(lambda x, y, labels: ops.LigerTVDLossFunction.apply(x, y, labels, "batchmean"),
              lambda x, y, labels: 0.5 * (x - y)[labels != -100].abs().sum(-1).mean(),
              (softmax(draw(9, 45)),), (softmax(draw(9, 45)), labels), programs=9)


@op("fused cross entropy and total variation distance")
def _(draw: Draw) -> Op:
    target = integers(45, 9)
    target[5] = -100
    return Op(ops.LigerFusedCETVDFunction.apply,
              lambda x, y, t: (F.cross_entropy(x, t, reduction="none"),
                               0.5 * (x.softmax(-1) - y.softmax(-1)).abs().sum(-1) * (t != -100)),
              (draw(9, 45),), (draw(9, 45), target), programs=9)


@op("GRPO loss")
def _(draw: Draw) -> Op:
    """Policy gradient with clipped ratios and a penalty; the last position has no token."""
    batch, length, words, low, high, beta = 3, 5, 37, 0.2, 0.3, 0.04
    tokens, mask = integers(words, batch, length), integers(4, batch, length) > 0

    def reference(logits: Tensor, old: Tensor, other: Tensor, advantage: Tensor, tokens: Tensor,
                  mask: Tensor) -> Tensor:
        log_p = (logits[:, :-1] / 0.9).log_softmax(-1).gather(-1, tokens[..., None])[..., 0]
        ratio = (log_p - old).exp()
        gain = torch.minimum(ratio * advantage[:, None],
                             ratio.clamp(1 - low, 1 + high) * advantage[:, None])
        penalty = (other - log_p).exp() - (other - log_p) - 1
        return (((beta * penalty - gain) * mask).sum(-1) / mask.sum(-1)).mean()

    return Op(lambda logits, old, other, advantage, tokens, mask: ops.GrpoLossFunction.apply(
                  logits, old, other, tokens, advantage, mask.int(), 0.9, beta, low, high,
                  False)[0],
              reference, (draw(batch, length + 1, words),),
              (draw(batch, length) / 4 - 4, draw(batch, length) / 4 - 4, draw(batch), tokens, mask),
              programs=15)


# ---------------------------------------------------------------------------------------------
# Norms


def _rms(x: Tensor, eps: float = 1e-6) -> Tensor:
    return x * torch.rsqrt(x.square().mean(-1, keepdim=True) + eps)


@op("RMS norm")
def _(draw: Draw) -> Op:
    return Op(lambda x, w: ops.LigerRMSNormFunction.apply(x, w, 1e-6),
              lambda x, w: _rms(x) * w, (draw(2, 6, 133), draw(133)), programs=12)


@op("RMS norm with an offset, in new memory")
def _(draw: Draw) -> Op:
    return Op(lambda x, w: ops.LigerRMSNormFunction.apply(x, w, 1e-6, 1.0, "gemma", False),
              lambda x, w: _rms(x) * (1 + w), (draw(12, 133), draw(133)), programs=12)


@op("RMS norm without weights")
def _(draw: Draw) -> Op:
    return Op(lambda x: ops.LigerRMSNormFunction.apply(x, None, 1e-6, 0.0, "none"),
              _rms, (draw(12, 133),), programs=12)


@op("fused add and RMS norm")
def _(draw: Draw) -> Op:
    return Op(lambda x, r, w: ops.LigerFusedAddRMSNormFunction.apply(x, r, w, 1e-6),
              lambda x, r, w: (_rms(x + r) * w, x + r),
              (draw(12, 133), draw(12, 133), draw(133)), programs=12)


@op("modulated RMS norm")
def _(draw: Draw) -> Op:
    """One row of scales for six rows: their gradients are added up by atomics."""
    return Op(lambda x, w, scale, shift: ops.LigerModulatedRMSNormFunction.apply(
                  x, w, scale, shift, 1e-6),
              lambda x, w, scale, shift: (1 + scale[:, None]) * _rms(x) * w + shift[:, None],
              (draw(2, 6, 133), draw(133), draw(2, 133), draw(2, 133)), programs=12)


@op("layer norm")
def _(draw: Draw) -> Op:
    return Op(lambda x, w, b: ops.LigerLayerNormFunction.apply(x, w, b, 1e-5),
              lambda x, w, b: F.layer_norm(x, (133,), w, b), (draw(12, 133), draw(133), draw(133)),
              programs=12)


@op("group norm")
def _(draw: Draw) -> Op:
    """The gradients of weights and biases are added up by atomics."""
    return Op(lambda x, w, b: ops.LigerGroupNormFunction.apply(x, w, b, 6, 3, 1e-5),
              lambda x, w, b: F.group_norm(x, 3, w, b), (draw(4, 6, 5, 7), draw(6), draw(6)),
              programs=12)


@op("poly norm")
def _(draw: Draw) -> Op:
    return Op(ops.LigerPolyNormFunction.apply,
              lambda x, w, b: w[0] * _rms(x**3) + w[1] * _rms(x**2) + w[2] * _rms(x) + b,
              (draw(12, 133), draw(3), draw(1)[0]), programs=12)


@op("dynamic tanh")
def _(draw: Draw) -> Op:
    """Autotuned; two column blocks with the smallest configuration."""
    return Op(ops.LigerDyTFunction.apply,
              lambda x, alpha, gamma, beta: torch.tanh(alpha * x) * gamma + beta,
              (draw(7, 1100), draw(1), draw(1100), draw(1100)), programs=7)


# ---------------------------------------------------------------------------------------------
# Element by element


@op("SwiGLU")
def _(draw: Draw) -> Op:
    return Op(lambda a, b: ops.LigerSiLUMulFunction.apply(a, b, 0.7),
              lambda a, b: F.silu(0.7 * a) * b, (draw(2, 4, 97), draw(2, 4, 97)), programs=8)


@op("SwiGLU of one tensor")
def _(draw: Draw) -> Op:
    return Op(ops.LigerFusedGateUpSiLUMulFunction.apply,
              lambda x: F.silu(x[:, :97]) * x[:, 97:], (draw(8, 194),), programs=8)


@op("GeGLU")
def _(draw: Draw) -> Op:
    return Op(ops.LigerGELUMulFunction.apply,
              lambda a, b: F.gelu(a, approximate="tanh") * b, (draw(8, 97), draw(8, 97)),
              programs=8)


@op("squared ReLU")
def _(draw: Draw) -> Op:
    return Op(ops.LigerReLUSquaredFunction.apply, lambda x: F.relu(x).square(), (draw(8, 97),),
              programs=8)


@op("embedding")
def _(draw: Draw) -> Op:
    """Most words occur many times, so that their gradients are added up by atomics."""
    return Op(lambda table, words: ops.LigerEmbeddingFunction.apply(table, words),
              lambda table, words: F.embedding(words, table),
              (draw(11, 40),), (integers(11, 2, 75),))


# ---------------------------------------------------------------------------------------------
# Rotary embeddings


def _rotated(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    first, second = x.chunk(2, -1)
    return x * cos + torch.cat((-second, first), -1) * sin


def _angles(*shape: int) -> Tensor:
    angles = torch.rand(*shape, generator=torch.Generator().manual_seed(6)) * 6
    return torch.cat((angles, angles), -1)


@op("RoPE")
def _(draw: Draw) -> Op:
    """Three heads of queries and two of keys, of a size that is no power of two."""
    angles = _angles(1, 5, 12)
    return Op(ops.LigerRopeFunction.apply,
              lambda q, k, cos, sin: (_rotated(q, cos, sin), _rotated(k, cos, sin)),
              (draw(2, 3, 5, 24), draw(2, 2, 5, 24)), (angles.cos(), angles.sin()), programs=10)


@op("RoPE of a part of each head")
def _(draw: Draw) -> Op:
    angles = _angles(2, 5, 8)

    def rotated(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
        return torch.cat((_rotated(x[..., :16], cos[:, None], sin[:, None]), x[..., 16:]), -1)

    return Op(ops.LigerRopeFunction.apply,
              lambda q, k, cos, sin: (rotated(q, cos, sin), rotated(k, cos, sin)),
              (draw(2, 3, 5, 24), draw(2, 2, 5, 24)), (angles.cos(), angles.sin()), programs=10)


@op("RoPE of pairs")
def _(draw: Draw) -> Op:
    angles = _angles(5, 12)[:, :12]
    turns = torch.stack((angles.cos(), angles.sin()), -1)

    def turned(x: Tensor, turns: Tensor) -> Tensor:
        pairs = torch.view_as_complex(x.unflatten(-1, (12, 2)))
        return torch.view_as_real(pairs * torch.view_as_complex(turns)[:, None]).flatten(-2)

    return Op(ops.LigerLlama4RopeFunction.apply,
              lambda q, k, turns: (turned(q, turns), turned(k, turns)),
              (draw(2, 5, 3, 24), draw(2, 5, 2, 24)), (turns,), programs=30)


@op("RoPE of three coordinates")
def _(draw: Draw) -> Op:
    angles, sections = _angles(3, 2, 5, 12), (4, 3, 5)

    def chosen(x: Tensor) -> Tensor:
        parts = x.split((*sections, *sections), -1)
        return torch.cat([part[i % 3] for i, part in enumerate(parts)], -1)[:, None]

    def reference(q: Tensor, k: Tensor, cos: Tensor, sin: Tensor) -> tuple[Tensor, Tensor]:
        cos, sin = chosen(cos), chosen(sin)
        return _rotated(q, cos, sin), _rotated(k, cos, sin)

    return Op(lambda q, k, cos, sin: ops.LigerQwen2VLMRopeFunction.apply(q, k, cos, sin, sections),
              reference, (draw(2, 3, 5, 24), draw(2, 2, 5, 24)), (angles.cos(), angles.sin()),
              programs=10)


# ---------------------------------------------------------------------------------------------
# Attention, softmax, experts


def softmax(x: Tensor) -> Tensor:
    return x.float().softmax(-1).to(x.dtype)


def log_softmax(x: Tensor) -> Tensor:
    return x.float().log_softmax(-1).to(x.dtype)


def _sparsemax(x: Tensor) -> Tensor:
    """The nearest point of the simplex."""
    falling = x.sort(-1, descending=True).values
    ranks = torch.arange(1, x.shape[-1] + 1)
    support = 1 + ranks * falling > falling.cumsum(-1)
    threshold = ((falling * support).sum(-1, keepdim=True) - 1) / support.sum(-1, keepdim=True)
    return F.relu(x - threshold)


@op("softmax")
def _(draw: Draw) -> Op:
    return Op(ops.LigerSoftmaxFunction.apply, lambda x: x.softmax(-1), (draw(2, 5, 77),),
              programs=10)


@op("sparsemax")
def _(draw: Draw) -> Op:
    return Op(lambda x: ops.LigerSparsemaxFunction.apply(x, 1),
              lambda x: _sparsemax(x.mT).mT, (draw(2, 77, 5),), programs=10)


def _multi_token_attention(activation: Callable[[Tensor], Tensor]) -> Callable[..., Tensor]:
    def reference(scores: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
        seen = torch.ones(scores.shape[-2:], dtype=torch.bool).tril()
        weights = activation(scores.masked_fill(~seen, -1e9))
        return F.conv2d(weights, weight, bias, padding=1) * seen

    return reference


@op("multi-token attention")
def _(draw: Draw) -> Op:
    return Op(lambda scores, w, b: ops.LigerMultiTokenAttentionFunction.apply(scores, w, b, 1, 1),
              _multi_token_attention(lambda x: x.softmax(-1)),
              (draw(2, 3, 11, 11), draw(3, 3, 3, 3), draw(3)), programs=66)


@op("multi-token attention with sparsemax")
def _(draw: Draw) -> Op:
    return Op(lambda scores, w, b: ops.LigerMultiTokenAttentionFunction.apply(
                  scores, w, b, 1, 1, 1, 1, True),
              _multi_token_attention(_sparsemax),
              (draw(2, 3, 11, 11), draw(3, 3, 3, 3), draw(3)), programs=66)


@op("neighborhood attention")
def _(draw: Draw) -> Op:
    """Only every second position within four attends; tiles of 64 do not divide 70."""
    def reference(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        distance = (torch.arange(70)[:, None] - torch.arange(70)).abs()
        near = (distance <= 4) & (distance % 2 == 0)
        scores = (q @ k.mT / math.sqrt(q.shape[-1])).masked_fill(~near, -math.inf)
        return scores.softmax(-1) @ v

    shape = (1, 2, 70, 24)
    return Op(lambda q, k, v: ops.LigerFusedNeighborhoodAttentionFunction.apply(q, k, v, 5, 2),
              reference, (draw(*shape), draw(*shape), draw(*shape)), tolerance=TF32, programs=8)


@op("attention over depth")
def _(draw: Draw) -> Op:
    def reference(values: Tensor, query: Tensor, weight: Tensor) -> Tensor:
        scores = (_rms(values) * weight * query).sum(-1, keepdim=True)
        return (scores.softmax(0) * values).sum(0)

    return Op(lambda values, query, weight: ops.LigerAttnResFunction.apply(
                  values, query, weight, 1e-6),
              reference, (draw(5, 2, 4, 57), draw(57), draw(57)), programs=8)


@op("mixture of experts")
def _(draw: Draw) -> Op:
    """Sort, histogram and prefix sums find each expert's tokens; one expert has none."""
    tokens, experts, width, inner = 90, 4, 40, 24
    chosen = torch.stack([torch.randperm(experts - 1, generator=torch.Generator().manual_seed(i))
                          for i in range(tokens)])[:, :2].int()

    def reference(x: Tensor, up: Tensor, down: Tensor, shares: Tensor, chosen: Tensor) -> Tensor:
        gate, value = torch.einsum("th,tknh->tkn", x, up[chosen]).chunk(2, -1)
        made = torch.einsum("tki,tkhi->tkh", F.silu(gate) * value, down[chosen])
        return (shares[..., None] * made).sum(1)

    return Op(lambda x, up, down, shares, chosen: ops.LigerFusedMoEFunction.apply(
                  x, up, down, chosen, shares),
              reference,
              (draw(tokens, width), draw(experts, 2 * inner, width) / 6,
               draw(experts, width, inner) / 5, softmax(draw(tokens, 2))),
              (chosen,), tolerance=TF32, programs=tokens)


@op("hyper-connections")
def _(draw: Draw) -> Op:
    """Coefficients by 20 rounds of Sinkhorn's iteration, kept for the backward pass."""
    streams, width, eps = 4, 30, 1e-6

    def reference(x: Tensor, phi: Tensor, bias: Tensor, *alphas: Tensor) -> tuple[Tensor, ...]:
        flat = x.flatten(-2)
        mix = flat @ phi * torch.rsqrt(flat.square().mean(-1, keepdim=True) + eps)
        parts = mix.split((streams, streams, streams**2), -1)
        before, after, between = (
            part * alpha + shift for part, alpha, shift in zip(
                parts, alphas, bias.split((streams, streams, streams**2)), strict=True))
        matrix = between.unflatten(-1, (streams, streams)).softmax(-1) + eps
        matrix = matrix / (matrix.sum(-2, keepdim=True) + eps)
        for _ in range(19):
            matrix = matrix / (matrix.sum(-1, keepdim=True) + eps)
            matrix = matrix / (matrix.sum(-2, keepdim=True) + eps)
        return before.sigmoid() + eps, 2 * after.sigmoid(), matrix

    return Op(lambda x, phi, bias, *alphas: ops.LigerMHCCoeffsFunction.apply(
                  x, phi, bias, *alphas, True, 20, eps, eps, eps, 2.0),
              reference,
              (draw(35, streams, width), draw(streams * width, streams**2 + 2 * streams) / 9,
               draw(streams**2 + 2 * streams), draw(1)[0], draw(1)[0], draw(1)[0]),
              tolerance=TF32, programs=35)


@op("hyper-connections, in and out")
def _(draw: Draw) -> Op:
    def ours(x: Tensor, made: Tensor, before: Tensor, after: Tensor, between: Tensor) -> Any:
        return (ops.LigerMHCPreFunction.apply(x, before),
                ops.LigerMHCPostResFunction.apply(x, made, after, between))

    def reference(x: Tensor, made: Tensor, before: Tensor, after: Tensor, between: Tensor) -> Any:
        return ((before[..., None] * x).sum(-2),
                after[..., None] * made[..., None, :] + between @ x)

    return Op(ours, reference, (draw(35, 4, 70), draw(35, 70), draw(35, 4), draw(35, 4),
                                draw(35, 4, 4)), programs=4)
