"""Hidden tests of the gradients of attention: values, masks, grouped heads, layouts, cost, designs.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch

from grader.suite import (
    FLOATS,
    TENSOR_CORES,
    Alloc,
    Amplitude,
    Bench,
    CheckResult,
    Cost,
    Function,
    Input,
    Recording,
    Size,
    Suite,
    Tolerance,
    call,
    correctness,
    edge,
    error_bounds,
    full,
    performance,
    rand,
    refuses,
    sizes,
    wide,
)
from grader.suite.designs import is_designed, product_of
from grader.suite.rounding import spread

HALF = "float16"
FAR = 1 << 30  # elements; the third row begins where 31 bits end
STEP = 3 * FAR >> 5  # a tile of 32 rows or more passes 31 bits, while one row is far from that
FAR_SCORE = 120.0  # exp of it passes float32, and its roundings leave no drift
LEAST_NORMAL = 2.0**-14  # of float16; below, its spacing is constant
SIDE, WIDTH, HEADS = 256, 64, 2  # of the heads whose traffic is counted
OWN = 32  # rows that a program owns, below which the other side is read too often
REST = HEADS * SIDE * WIDTH * 2  # bytes: of one gradient in float16, half of a head's scores
MOST = 128  # numbers of a head
SPILLS = 64  # bytes of heads of 128: the fastest of ten tiles on an H200 spills 24
MASKED_FLOPS = 1.5  # of tiles of 128 x 128 over half of all scores; all of them are 2


# ---------------------------------------------------------------------------------------------
# Exact results, what rounding may do to them, and right answers in float32


def spread_heads(x: torch.Tensor, q: torch.Tensor) -> torch.Tensor:
    """Keys or values for each head of q."""
    return x.repeat_interleave(q.shape[1] // x.shape[1], dim=1)


def gathered(x: torch.Tensor, k: torch.Tensor) -> torch.Tensor:
    """The sum over the heads of queries that share a head of keys."""
    return x.unflatten(1, (k.shape[1], -1)).sum(2)


def factor(scale: float | None, q: torch.Tensor) -> float:
    return 1 / math.sqrt(q.shape[-1]) if scale is None else scale


def scores_of(q: torch.Tensor, k: torch.Tensor, causal: bool, scale: float | None) -> torch.Tensor:
    return error_bounds.masked(q @ spread_heads(k, q).mT * factor(scale, q), causal)


def delta_of(out: torch.Tensor, d_out: torch.Tensor) -> torch.Tensor:
    return (out * d_out).sum(-1)


def weights(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, d_out: torch.Tensor,
            lse: torch.Tensor, delta: torch.Tensor, causal: bool = False,
            scale: float | None = None) -> tuple[torch.Tensor, torch.Tensor]:
    """p and ds, in the dtype of the arguments."""
    p = torch.exp(scores_of(q, k, causal, scale) - lse[..., None])
    return p, p * (d_out @ spread_heads(v, q).mT - delta[..., None])


def to_keys(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, d_out: torch.Tensor,
            lse: torch.Tensor, delta: torch.Tensor, causal: bool = False,
            scale: float | None = None) -> tuple[torch.Tensor, torch.Tensor]:
    p, ds = weights(q, k, v, d_out, lse, delta, causal, scale)
    return gathered(ds.mT @ q, k) * factor(scale, q), gathered(p.mT @ d_out, k)


def to_queries(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, d_out: torch.Tensor,
               lse: torch.Tensor, delta: torch.Tensor, causal: bool = False,
               scale: float | None = None) -> torch.Tensor:
    _, ds = weights(q, k, v, d_out, lse, delta, causal, scale)
    return ds @ spread_heads(k, q) * factor(scale, q)


def to_all(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, out: torch.Tensor,
           lse: torch.Tensor, d_out: torch.Tensor, *options: Any) -> tuple[torch.Tensor, ...]:
    arguments = q, k, v, d_out, lse, delta_of(out, d_out)
    return to_queries(*arguments, *options), *to_keys(*arguments, *options)


Formula = Callable[..., Any]


def exactly(formula: Formula) -> Formula:
    """In float64."""
    return lambda *inputs: formula(*(
        x.double() if isinstance(x, torch.Tensor) else x for x in inputs))


def in_float32(formula: Formula) -> Formula:
    """In float32, rounded to the dtype of the first argument."""
    def compute(*inputs: Any) -> Any:
        results = formula(*(x.float() if isinstance(x, torch.Tensor) else x for x in inputs))
        if isinstance(results, tuple):
            return tuple(one.to(inputs[0].dtype) for one in results)
        return results.to(inputs[0].dtype)

    return compute


def reversed_in_float32(formula: Formula) -> Formula:
    """With rows in the other order; where a mask orders them, with the numbers of each row."""
    def compute(*inputs: Any) -> Any:
        causal = any(option is True for option in inputs)
        tensors = [x.flip(-1 if causal else 2) if isinstance(x, torch.Tensor) and x.dim() == 4
                   else x.flip(2) if isinstance(x, torch.Tensor) and not causal else x
                   for x in inputs]
        results = in_float32(formula)(*tensors)
        if isinstance(results, tuple):
            return tuple(one.flip(-1 if causal else 2) for one in results)
        return results.flip(-1 if causal else 2)

    return compute


def amplitudes(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, d_out: torch.Tensor,
               lse: torch.Tensor, delta: torch.Tensor, causal: bool = False,
               scale: float | None = None, delta_off: torch.Tensor | float = 0.0,
               ) -> tuple[Amplitude, Amplitude, Amplitude]:
    """Those of dq, dk and dv.

    A weight is off by its score and its exponent, as in ``error_bounds.attention``; ds also by dp
    and delta. Both may be rounded to 16 bits before the products that sum them.
    """
    rounds = q.dtype != torch.float32
    subnormal = LEAST_NORMAL if q.dtype == torch.float16 else 0.0
    q, k, v, d_out, lse, delta = (x.double() for x in (q, k, v, d_out, lse, delta))
    p, ds = weights(q, k, v, d_out, lse, delta, causal, scale)
    wide_k, wide_v = spread_heads(k, q).abs(), spread_heads(v, q).abs()
    scores, width, size = scores_of(q, k, causal, scale), q.shape[-1], abs(factor(scale, q))
    exponent = torch.where(scores.isfinite(), scores, 0.0).abs() + lse.abs()[..., None]
    off = (q.abs() @ wide_k.mT) * size * (4 + spread(width)) + 4 * exponent
    off = torch.where(p > 0, off, 0.0)
    dp_size = d_out.abs() @ wide_v.mT
    ds_off = off * ds.abs() + p * (
        (4 + spread(width)) * dp_size + 4 * delta.abs()[..., None] + delta_off)

    def amplitude(factor_off: torch.Tensor, factor: torch.Tensor, other: torch.Tensor,
                  rows: Callable[[torch.Tensor], torch.Tensor], by: float, length: int,
                  ) -> Amplitude:
        rounded = torch.where(p > 0, factor.abs().clamp(min=subnormal), 0.0)
        return Amplitude(
            pointwise=by * rows(factor_off @ other.abs()), length=length,
            reduced=by * rows(factor.abs() @ other.abs()),
            middle=by * rows(rounded**2 @ other**2).sqrt() if rounds else 0.0)

    def alone(x: torch.Tensor) -> torch.Tensor:
        return x

    def shared(x: torch.Tensor) -> torch.Tensor:
        return gathered(x, k)

    queries = q.shape[2] * (q.shape[1] // k.shape[1])
    dq = amplitude(ds_off, ds, wide_k, alone, size, k.shape[2])
    p, ds, ds_off, off = p.mT, ds.mT, ds_off.mT, off.mT
    return (dq, amplitude(ds_off, ds, q, shared, size, queries),
            amplitude(p * off, p, d_out, shared, 1.0, queries))


def amplitudes_of_all(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, out: torch.Tensor,
                      lse: torch.Tensor, d_out: torch.Tensor, causal: bool = False,
                      scale: float | None = None) -> tuple[Amplitude, ...]:
    out, exact = out.double(), d_out.double()
    delta_off = spread(q.shape[-1]) * delta_of(out.abs(), exact.abs())[..., None]
    return amplitudes(q, k, v, d_out, lse, delta_of(out, exact), causal, scale, delta_off)


def row_bytes(q: torch.Tensor) -> int:
    """Of lse and delta, float32."""
    return 8 * q.numel() // q.shape[-1]


def cost(products: int, like_q: int, like_k: int) -> Callable[..., Cost]:
    """Of so many products of matrices, and of tensors that are read or written once."""
    def count(q: torch.Tensor, k: torch.Tensor, *rest: Any) -> Cost:
        operations = 2 * products * q.numel() * k.shape[2]
        causal = any(option is True for option in rest)
        return Cost(bytes=like_q * q.nbytes + like_k * k.nbytes + row_bytes(q),
                    flops=operations // 2 if causal else operations)

    return count


# ---------------------------------------------------------------------------------------------
# Inputs


@dataclass(frozen=True)
class Pass:
    """A forward pass: inputs of one case that belong together.

    All inputs of a case are drawn with one generator. Each of them draws q, k, v and d_out anew
    from the generator's first seed, so that out, lse and delta fit to them.
    """

    batches: int
    count: int
    queries: Size
    width: int
    dtype: str = "float32"
    keys: Size | None = None  # as many as queries; sizes by a block are the same for both
    shared: int | None = None  # heads of keys
    causal: bool = False
    scale: float | None = None
    mean: float = 0.0  # of q
    std: float = 1.0
    k_mean: float = 0.0
    v_mean: float = 0.3  # so that delta does not vanish
    d_mean: float = 0.1
    noise: float = 1.0  # the deviation of k
    # The mean of an out that is not the result of the forward pass. With a real one, rows of ds sum
    # to zero, and with equal keys or a single one nothing is left of dq.
    free: float | None = None
    # Whether numbers have 8 bits, so that scores are exact. The errors of large ones may all have
    # one sign, and nothing normalizes the weights afterwards.
    short: bool = False

    def tensors(self, generator: torch.Generator, queries: int) -> dict[str, torch.Tensor]:
        """All inputs by name, in float64, for so many queries."""
        own = torch.Generator(generator.device).manual_seed(generator.initial_seed())
        keys = queries if self.keys is None else self.keys
        few = self.shared or self.count

        def draw(heads: int, rows: Any, mean: float, std: float) -> torch.Tensor:
            values = torch.randn(self.batches, heads, rows, self.width, generator=own,
                                 dtype=torch.float64) * std + mean
            if self.short:
                values = values.to(torch.bfloat16)
            return values.to(getattr(torch, self.dtype)).double()

        q = draw(self.count, queries, self.mean, self.std)
        k, v = draw(few, keys, self.k_mean, self.noise), draw(few, keys, self.v_mean, 1.0)
        d_out = draw(self.count, queries, self.d_mean, 1.0)
        scores = scores_of(q, k, self.causal, self.scale)
        if self.free is None:
            out = (torch.softmax(scores, -1) @ spread_heads(v, q)).to(getattr(torch, self.dtype))
        else:
            out = draw(self.count, queries, self.free, 1.0)
        return {"q": q, "k": k, "v": v, "d_out": d_out, "out": out.double(),
                "lse": torch.logsumexp(scores, -1), "delta": delta_of(out.double(), d_out)}

    def input(self, name: str) -> Input:
        """One of the tensors."""
        heads = self.shared or self.count
        if name in ("k", "v"):
            keys = self.queries if self.keys is None else self.keys
            sizes: tuple[Size, ...] = (self.batches, heads, keys, self.width)
        else:
            sizes = (self.batches, self.count, self.queries, self.width)
        if name in ("lse", "delta"):
            sizes = sizes[:3]

        def make(generator: torch.Generator, shape: tuple[int, ...]) -> torch.Tensor:
            follows = self.keys is None or name not in ("k", "v")
            queries = shape[2] if follows else self.queries
            assert isinstance(queries, int)
            return self.tensors(generator, queries)[name]

        return Input(make, sizes, "float32" if name in ("lse", "delta") else self.dtype)

    @property
    def options(self) -> tuple[Any, ...]:
        """causal and scale as far as they differ from the default."""
        return (self.causal, self.scale) if self.scale is not None else (
            (True,) if self.causal else ())

    def all(self, **others: Any) -> tuple[Any, ...]:
        """What ``attention_backward`` gets; ``others`` in place of tensors of that name."""
        return (*(others.get(name, self.input(name)) for name in ALL), *self.options)

    def half(self, **others: Any) -> tuple[Any, ...]:
        """What ``backward_keys`` and ``backward_queries`` get."""
        return (*(others.get(name, self.input(name)) for name in PART), *self.options)


ALL = ("q", "k", "v", "out", "lse", "d_out")
PART = ("q", "k", "v", "d_out", "lse", "delta")


def near(score: float, width: int, length: int, dtype: str = "float32", **how: Any) -> Pass:
    """Two heads whose scores all lie near a number."""
    size = math.sqrt(abs(score)) / width**0.25
    return Pass(1, 2, length, width, dtype, mean=size, std=0.1, noise=0.1,
                k_mean=math.copysign(size, score), free=-1.0, short=True, **how)


def few(number: int) -> Pass:
    """Sums of few numbers of one sign, which hardly round: errors of a few roundings show."""
    return Pass(1, 80, number, 1, mean=1e-3, std=1e-4, k_mean=2.0, noise=0.1, v_mean=6.0,
                d_mean=6.0, free=-6.0)


def drawn_pass(queries: int, keys: int, width: int, shared: int, causal: bool, dtype: str) -> Pass:
    """Two heads. With few keys, all that is left of dq may be one rounding error times each key."""
    return Pass(1, 2, queries, width, dtype, keys=keys, shared=shared, causal=causal,
                free=-1.0 if keys <= 16 else None)


def tiles(number: int, more: int = 0) -> Callable[[int], int]:
    """A size of ``number`` of the learner's own tiles, counted as 128 at most, and ``more``."""
    return lambda block: max(1, number * min(block, 128) + more)


def turned(one: Pass, name: str) -> Input:
    """A tensor whose heads lie beside each other in each row: a view of (B, S, H, D)."""
    spec = one.input(name)
    _, heads, rows, width = spec.sizes
    assert isinstance(heads, int) and isinstance(rows, int) and isinstance(width, int)
    return spec.apart(rows * heads * width, width, heads * width, 1)


def far(one: Pass, name: str, step: int = FAR) -> dict[str, Input]:
    """The tensor of one head with its rows so far apart."""
    return {name: one.input(name).apart(0, 0, step, 1)}


SMALL = Pass(1, 2, 31, 32)
CAUSAL = Pass(1, 2, 33, 64, causal=True)
# A single row, more than one tile, a width of no power of two, and wide heads of several tiles.
SHAPES = (Pass(1, 1, 1, 16, free=-1.0), Pass(2, 3, 65, 48), Pass(1, 1, 130, 128),
          Pass(1, 2, 70, 64))
GROUPED = (Pass(2, 8, 40, 32, shared=2), Pass(1, 6, 50, 16, keys=90, shared=1),
           Pass(1, 4, 65, 64, HALF, shared=1, causal=True))
UNEQUAL = (Pass(1, 2, 7, 32, keys=100), Pass(1, 2, 100, 32, HALF, keys=7),
           Pass(1, 1, 1, 64, HALF, keys=300), Pass(1, 1, 300, 64, HALF, keys=1, free=-1.0))


def named(one: Pass) -> str:
    """The words for a case: sizes, heads and mask."""
    heads = f"{one.count} heads on {one.shared}" if one.shared else f"{one.count}"
    rows = f"{one.queries}" if one.keys is None else f"{one.queries} of {one.keys} keys"
    dtype = "" if one.dtype == "float32" else f" in {one.dtype}"
    return (f"{one.batches} x {heads} x {rows} x {one.width}{dtype}"
            + (", causal" if one.causal else ""))


def either(*passes: Pass, dtypes: Sequence[str] = ("float32",)) -> list[Pass]:
    """Each with all keys and causal, in each dtype; wide heads in float16, which compile faster."""
    return [replace(one, dtype=dtype, causal=causal)
            for one in passes for dtype in ((HALF,) if one.width == MOST else dtypes)
            for causal in (False, True)]


# ---------------------------------------------------------------------------------------------
# Designs

LONG = ({"B": 4, "Hq": 16, "Hk": 16, "Sq": 4_096, "Sk": 4_096, "D": 64, "e": 2},
        {"B": 1, "Hq": 32, "Hk": 8, "Sq": 4_096, "Sk": 8_192, "D": 128, "e": 2},
        {"B": 2, "Hq": 8, "Hk": 2, "Sq": 2_048, "Sk": 16_384, "D": 96, "e": 4})
RIDGE = ("With thousands of rows on the other side, how many operations are there for each byte "
         "that has to move? An H200 does some 200 of 16-bit numbers in the time of a byte.")


def of_rows(like_q: int, like_k: int, numbers: int) -> Callable[..., float]:
    """Bytes of matrices of queries and of keys, and of float32 numbers per query."""
    def count(shape: Any) -> float:
        queries = shape["B"] * shape["Hq"] * shape["Sq"]
        keys = shape["B"] * shape["Hk"] * shape["Sk"]
        return float((like_q * queries + like_k * keys) * shape["D"] * shape["e"]
                     + 4 * numbers * queries)

    return count


designs = [
    call("the design of backward_delta", "design", "backward_delta", LONG, check=is_designed(
        product_of(1, "B", "Hq", "Sq", "D"), of_rows(2, 0, 1),
        (product_of(2, "B", "Hq", "Sq", "D"), product_of(2, "B", "Hq", "Sq", "D")), "memory",
        {"bound": "A number that is loaded takes part in one multiply-add.",
         "bytes": "Two tensors are read, and one float32 number per query is written.",
         "flops": "A multiply-add counts 2."})),
    call("the design of backward_keys", "design", "backward_keys", LONG, check=is_designed(
        product_of(1, "B", "Hk", "Sk", "D"), of_rows(2, 4, 2),
        (product_of(8, "B", "Hq", "Sq", "Sk", "D"), product_of(8, "B", "Hq", "Sq", "Sk", "D")),
        "compute",
        {"bound": RIDGE,
         "bytes": "Of the tensors, which have as many rows as q, and which as k? lse and delta "
         "have one float32 number per query. Scores are in none.",
         "flops": "Scores and dp are products too, and each of dk and dv sums one."})),
    call("the design of backward_queries", "design", "backward_queries", LONG, check=is_designed(
        product_of(1, "B", "Hq", "Sq", "D"), of_rows(3, 2, 2),
        (product_of(6, "B", "Hq", "Sq", "Sk", "D"), product_of(6, "B", "Hq", "Sq", "Sk", "D")),
        "compute",
        {"bound": RIDGE,
         "bytes": "q, d_out and dq have as many rows as q, and k and v are read. lse and delta "
         "have one float32 number per query.",
         "flops": "Which products does a score, its dp and its share of dq take?"})),
]


def allocates(most: int) -> Callable[[Recording], list[CheckResult]]:
    """A check of the bytes that host code allocates beside the results."""
    def check(call: Recording) -> list[CheckResult]:
        results = {view.storage for view in call.results}
        nbytes = [event.nbytes for event in call.events
                  if isinstance(event, Alloc) and event.storage not in results]
        wrong = (f"The function allocates {sum(nbytes):,} bytes beside its results, the largest "
                 f"tensor has {max(nbytes):,}: {most:,} are allowed.") if sum(nbytes) > most else ""
        return [CheckResult(
            "scratch memory", f"{sum(nbytes):,} bytes, limit {most:,}", wrong, "T01")]

    return check


# ---------------------------------------------------------------------------------------------
# Functions


backward_delta = Function(
    entry="backward_delta",
    parameters=("out", "d_out"),
    reference=exactly(delta_of),
    tolerance=Tolerance(lambda out, d_out: Amplitude(
        reduced=delta_of(out.double().abs(), d_out.double().abs()), length=out.shape[-1])),
    result_dtype="float32",
    peer=lambda out, d_out: delta_of(out.float(), d_out.float()),
    reversed_peer=lambda out, d_out: delta_of(out.float().flip(-1), d_out.float().flip(-1)),
    cost=lambda out, d_out: Cost(bytes=2 * out.nbytes + 4 * out.numel() // out.shape[-1],
                                 flops=2 * out.numel()),
    contiguous_result=True,
    bench=Bench("queries", (512, 1_024, 2_048, 4_096),
                lambda n: (rand(4, 16, n, 64, dtype=HALF), rand(4, 16, n, 64, dtype=HALF)),
                at="float16, 4 x 16 heads of 64"),
    cases=[
        correctness("2 x 3 x 33 x 32", rand(2, 3, 33, 32), rand(2, 3, 33, 32), public=True),
        correctness("1 x 2 x 65 x 48 in float16", rand(1, 2, 65, 48, dtype=HALF),
                    rand(1, 2, 65, 48, dtype=HALF)),
        correctness("1 x 2 x 70 x 128 in bfloat16", rand(1, 2, 70, 128, dtype="bfloat16"),
                    rand(1, 2, 70, 128, dtype="bfloat16")),
        correctness("products of 300 in float16", rand(1, 1, 20, 64, dtype=HALF, mean=300.0),
                    rand(1, 1, 20, 64, dtype=HALF, mean=300.0)),
        edge("one number", rand(1, 1, 1, 1), rand(1, 1, 1, 1)),
        edge("d_out is one number for all, as of a sum", rand(2, 2, 20, 32),
             rand(1, 1, 1, 1).then(lambda t: t.expand(2, 2, 20, 32))),
        edge("views of (B, S, H, D)", rand(2, 35, 3, 32).then(lambda t: t.transpose(1, 2)),
             rand(2, 35, 3, 32).then(lambda t: t.transpose(1, 2))),
        edge("rows of out 2**30 elements apart", rand(1, 1, 3, 32, dtype=HALF).apart(0, 0, FAR, 1),
             rand(1, 1, 3, 32, dtype=HALF)),
        edge("rows of d_out 2**30 elements apart", rand(1, 1, 3, 32, dtype=HALF),
             rand(1, 1, 3, 32, dtype=HALF).apart(0, 0, FAR, 1)),
        edge("heads 2**30 elements apart", *(
            rand(1, 4, 5, 32, dtype=HALF).apart(0, FAR, 32, 1) for _ in range(2))),
        edge("no batch", rand(0, 2, 5, 32), rand(0, 2, 5, 32), launches=0),
        refuses("d_out in float16 beside out in float32", rand(1, 1, 3, 16),
                rand(1, 1, 3, 16, dtype=HALF), raises=TypeError,
                mentions=("d_out", "float16", "float32")),
        refuses("d_out of another length", rand(1, 1, 3, 16), rand(1, 1, 4, 16),
                raises=ValueError, mentions=("d_out", "3", "4")),
        sizes(lambda rows, width, dtype: (rand(1, 2, rows, width, dtype=dtype),
                                          rand(1, 2, rows, width, dtype=dtype)),
              rows=(1, 150), width=(1, 128), dtype=FLOATS, count=14),
        performance("1 x 2 x 256 x 64 in float16, counted",
                    *(rand(1, HEADS, SIDE, WIDTH, dtype=HALF) for _ in range(2)),
                    traffic=1.0, sectors=1.0, launches=1, spills=0),
        performance("4 x 16 x 4 096 x 64 in float16",
                    *(rand(4, 16, 4_096, 64, dtype=HALF) for _ in range(2)), spills=0,
                    pass_at=0.60, stretch=0.80),
    ],
)

COUNTED = Pass(1, HEADS, SIDE, WIDTH, HALF)
COUNTED_CAUSAL = Pass(1, HEADS, SIDE, WIDTH, HALF, causal=True)
MATRIX, NUMBERS = SIDE * WIDTH * 2, SIDE * 8  # bytes of a head: a matrix, both float32 numbers
SWEEPS = SIDE / OWN  # in causal attention half of them, and half a tile for the diagonal


def traffic(read: float, once: int, matrices: int) -> float:
    """The limit of bytes that programs of OWN rows issue, over the least.

    Args:
        read: how often the swept side is read: two matrices and, by keys, lse and delta.
        once: matrices of the side that programs own.
        matrices: of the least.
    """
    return ((2 * MATRIX + NUMBERS) * read + once * MATRIX + NUMBERS) / (
        matrices * MATRIX + NUMBERS)


def long(batches: int, count: int, length: int, width: int, causal: bool = False,
         ) -> tuple[Any, ...]:
    """Inputs of a real size, which are drawn one by one: lse is about that of normal scores."""
    matrices = [rand(batches, count, length, width, dtype=HALF) for _ in range(5)]
    lse = rand(batches, count, length, mean=math.log(length) + 0.5, std=0.1)
    return (*matrices[:4], lse, matrices[4], *((True,) if causal else ()))


def half_of_long(length: int) -> tuple[Any, ...]:
    """What one of both sweeps gets, with torch's scores small enough to be stored."""
    q, k, v, _, lse, d_out = long(1, 16, length, 64)
    return q, k, v, d_out, lse, rand(1, 16, length)


HALF_BENCH = Bench("queries and keys", (256, 512, 1_024, 2_048), half_of_long,
                   at="float16, 16 heads of 64")

OF_BOTH = [  # of both sweeps
    correctness(named(SMALL), *SMALL.half(), public=True),
    correctness(named(CAUSAL), *CAUSAL.half(), public=True),
    *(correctness(named(one), *one.half()) for one in (
        *either(*SHAPES, dtypes=("float32", HALF)), *GROUPED, *UNEQUAL,
        Pass(2, 2, 70, 32, "bfloat16"))),
    correctness("300 causal queries in float16", *Pass(
        1, 1, 300, 32, HALF, causal=True).half()),
    correctness("a scale of a half", *Pass(1, 2, 50, 32, scale=0.5).half()),
    *(correctness(f"sums of {number}", *few(number).half()) for number in (1, 2, 3)),
    correctness("every delta is 0", *SMALL.half(delta=full(1, 2, 31, value=0.0))),
    correctness("every lse is 0", *SMALL.half(lse=full(1, 2, 31, value=0.0))),
]

backward_keys = Function(
    entry="backward_keys",
    parameters=PART,
    keyword_only=("causal", "scale"),
    reference=exactly(to_keys),
    tolerance=Tolerance(lambda *inputs: amplitudes(*inputs)[1:], TENSOR_CORES,
                        products=(0, 1, 2, 3)),
    result_names=("dk", "dv"),
    peer=in_float32(to_keys),
    reversed_peer=reversed_in_float32(to_keys),
    cost=cost(4, 2, 4),
    contiguous_result=True,
    bench=HALF_BENCH,
    cases=[
        *OF_BOTH,
        correctness("40 keys of 600 queries, d_out around 3, in float16",
                    *Pass(1, 1, 600, 32, HALF, keys=40).half(
                        d_out=rand(1, 1, 600, 32, dtype=HALF, mean=3.0))),
        edge("queries 2**30 elements apart", *(one := Pass(1, 1, 3, 32, HALF, keys=5)).half(
            **far(one, "q"))),
        edge("130 queries 3 * 2**25 elements apart", *(one := Pass(
            1, 1, 130, 16, HALF, keys=5)).half(**far(one, "q", STEP))),
        edge("130 rows of d_out 3 * 2**25 elements apart", *(one := Pass(
            1, 1, 130, 16, HALF, keys=5)).half(**far(one, "d_out", STEP))),
        edge("no batch", *Pass(0, 2, 5, 32, HALF).half(), launches=0),
        performance("1 x 2 x 256 x 64 in float16, counted", *COUNTED.half(),
                    traffic=traffic(SWEEPS, 4, 6), flops=1.0, launches=1, sectors=1.0,
                    tensor_cores=True, spills=0),
        performance("1 x 2 x 256 x 64 in float16, causal, counted", *COUNTED_CAUSAL.half(),
                    traffic=traffic((SWEEPS + 4) / 2, 4, 6), flops=MASKED_FLOPS, launches=1,
                    sectors=1.0, tensor_cores=True, spills=0),
    ],
)

backward_queries = Function(
    entry="backward_queries",
    parameters=PART,
    keyword_only=("causal", "scale"),
    reference=exactly(to_queries),
    tolerance=Tolerance(lambda *inputs: amplitudes(*inputs)[0], TENSOR_CORES,
                        products=(0, 1, 2, 3)),
    peer=in_float32(to_queries),
    reversed_peer=reversed_in_float32(to_queries),
    cost=cost(3, 3, 2),
    contiguous_result=True,
    bench=HALF_BENCH,
    cases=[
        *OF_BOTH,
        edge("keys 2**30 elements apart", *(one := Pass(1, 1, 5, 32, HALF, keys=3)).half(
            **far(one, "k"))),
        edge("130 keys 3 * 2**25 elements apart", *(one := Pass(
            1, 1, 5, 16, HALF, keys=130)).half(**far(one, "k", STEP))),
        edge("130 values 3 * 2**25 elements apart", *(one := Pass(
            1, 1, 5, 16, HALF, keys=130)).half(**far(one, "v", STEP))),
        edge("no batch", *Pass(0, 2, 5, 32, HALF).half(), launches=0),
        performance("1 x 2 x 256 x 64 in float16, counted", *COUNTED.half(),
                    traffic=traffic(SWEEPS, 3, 5), flops=1.0, launches=1, sectors=1.0,
                    tensor_cores=True, spills=0),
        performance("1 x 2 x 256 x 64 in float16, causal, counted", *COUNTED_CAUSAL.half(),
                    traffic=traffic((SWEEPS + 4) / 2, 3, 5), flops=MASKED_FLOPS, launches=1,
                    sectors=1.0, tensor_cores=True, spills=0),
    ],
)


def flash_backward(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, out: torch.Tensor,
                   lse: torch.Tensor, d_out: torch.Tensor) -> Any:
    """The backward pass of FlashAttention-2, as torch builds it in for GPUs."""
    if not q.is_cuda:
        return in_float32(to_all)(q, k, v, out, lse, d_out)
    zero = torch.zeros((), dtype=torch.int64)
    return torch.ops.aten._scaled_dot_product_flash_attention_backward(
        d_out, q, k, v, out, lse, None, None, q.shape[2], k.shape[2], 0.0, False, zero, zero)


attention_backward = Function(
    entry="attention_backward",
    parameters=ALL,
    keyword_only=("causal", "scale"),
    reference=exactly(to_all),
    tolerance=Tolerance(amplitudes_of_all, TENSOR_CORES, products=(0, 1, 2, 5)),
    result_names=("dq", "dk", "dv"),
    peer=in_float32(to_all),
    reversed_peer=reversed_in_float32(to_all),
    cost=cost(5, 5, 4),
    contiguous_result=True,
    bench=Bench("queries and keys", (512, 1_024, 2_048, 4_096), lambda n: long(4, 16, n, 64),
                at="float16, 4 x 16 heads of 64", peer=flash_backward,
                peer_name="the backward pass of FlashAttention-2"),
    cases=[
        correctness(named(SMALL), *SMALL.all(), public=True),
        correctness(named(CAUSAL), *CAUSAL.all(), public=True),
        *(correctness(named(one), *one.all()) for one in (
            *either(*SHAPES), *GROUPED, *UNEQUAL, Pass(1, 2, 70, 64, HALF, causal=True),
            Pass(2, 2, 70, 32, "bfloat16"), Pass(1, 2, 70, 128, "bfloat16", causal=True))),
        correctness("heads of one number", *Pass(1, 2, 40, 1).all()),
        *(correctness(f"sums of {number}", *few(number).all()) for number in (1, 2, 3)),
        *(correctness(f"all scores near {score:g} in {dtype}{words}", *near(
            score, 32, 70, dtype, causal=causal).all())
          for score in (-FAR_SCORE, FAR_SCORE) for dtype in ("float32", HALF)
          for words, causal in (("", False), (", causal", True))),
        *(correctness(f"65 queries spread by 30 in {dtype}", *Pass(
            1, 2, 65, 64, dtype, std=30.0, short=True).all()) for dtype in ("float32", HALF)),
        correctness("a scale below zero", *Pass(1, 2, 70, 32, scale=-0.3, std=3.0).all()),
        correctness("a scale of zero", *Pass(1, 2, 70, 32, scale=0.0).all()),
        correctness("a scale of a half in float16, causal", *Pass(
            1, 2, 70, 32, HALF, scale=0.5, causal=True).all()),
        correctness("a whole number as scale", *Pass(1, 2, 20, 16, scale=1).all()),
        correctness("values of very different size", *(one := Pass(1, 2, 50, 32)).all(
            v=wide(1, 2, 50, 32), out=rand(1, 2, 50, 32), d_out=wide(1, 2, 50, 32))),

        edge("views of (B, S, H, D)", *(one := Pass(2, 3, 35, 32)).all(**{
            name: turned(one, name) for name in ("q", "k", "v", "out", "d_out")}), public=True),
        *(edge(f"{name} with its columns turned", *(one := Pass(1, 2, 40, 32)).all(**{
            name: one.input(name).apart(2 * 40 * 32, 40 * 32, 1, 40)}))
          for name in ("q", "k", "v", "out", "d_out")),
        edge("d_out is one number for all, as of a sum", *Pass(1, 2, 40, 32).all(
            d_out=rand(1, 1, 1, 1).then(lambda t: t.expand(1, 2, 40, 32)))),
        edge("lse with its heads and queries turned", *(one := Pass(1, 3, 40, 32)).all(
            lse=one.input("lse").apart(120, 1, 3))),
        *(edge(f"{words}, {mask}", *Pass(1, 1, size, 32, HALF, causal=causal).all())
          for words, size in (("one row less than a tile", tiles(1, -1)),
                              ("a whole tile", tiles(1)),
                              ("one row more than a tile", tiles(1, 1)))
          for mask, causal in (("all keys", False), ("causal", True))),
        *(edge(f"rows of {name} 2**30 elements apart, causal", *(one := Pass(
            1, 1, 4, 32, HALF, causal=True)).all(**far(one, name)))
          for name in ("q", "k", "v", "out", "d_out")),
        edge("heads 2**30 elements apart", *(one := Pass(1, 4, 5, 32, HALF)).all(**{
            name: one.input(name).apart(0, FAR, 32, 1)
            for name in ("q", "k", "v", "out", "d_out")})),
        edge("no batch", *Pass(0, 2, 5, 32, HALF).all(), launches=0),

        refuses("q is a list", *SMALL.all(q=[[1.0]]), raises=TypeError, mentions=("q", "list")),
        refuses("lse is None", *SMALL.all(lse=None), raises=TypeError, mentions=("lse", "None")),
        refuses("float64 is not supported", *Pass(1, 2, 3, 16, "float64").all(),
                raises=TypeError, mentions=("q", "float64")),
        refuses("d_out in float16 beside q in float32",
                *SMALL.all(d_out=rand(1, 2, 31, 32, dtype=HALF)), raises=TypeError,
                mentions=("d_out", "float16", "float32")),
        refuses("lse in float16", *SMALL.all(lse=rand(1, 2, 31, dtype=HALF)), raises=TypeError,
                mentions=("lse", "float32", "float16")),
        refuses("causal is 1", *SMALL.all(), 1, raises=TypeError, mentions=("causal", "int")),
        refuses("a scale as a text", *SMALL.all(), False, "0.5", raises=TypeError,
                mentions=("scale",)),
        refuses("q has three dimensions", *SMALL.all(q=rand(2, 31, 32)), raises=ValueError,
                mentions=("q", "3")),
        refuses("keys of another width", *SMALL.all(k=rand(1, 2, 31, 33), v=rand(1, 2, 31, 33)),
                raises=ValueError, mentions=("k", "32", "33")),
        refuses("one value less than keys", *SMALL.all(v=rand(1, 2, 30, 32)), raises=ValueError,
                mentions=("v", "31", "30")),
        refuses("out of another length", *SMALL.all(out=rand(1, 2, 30, 32)), raises=ValueError,
                mentions=("out", "31", "30")),
        refuses("lse with a last dimension of 1", *SMALL.all(lse=rand(1, 2, 31, 1)),
                raises=ValueError, mentions=("lse", "31")),
        refuses("2 heads of queries on 3 of keys", *SMALL.all(
            k=rand(1, 3, 31, 32), v=rand(1, 3, 31, 32)), raises=ValueError,
                mentions=("k", "2", "3")),
        refuses("no key", *SMALL.all(k=rand(1, 2, 0, 32), v=rand(1, 2, 0, 32)),
                raises=ValueError, mentions=("k", "0")),
        refuses("no query", *(one := Pass(1, 2, 0, 32)).all(k=rand(1, 2, 5, 32),
                                                            v=rand(1, 2, 5, 32)),
                raises=ValueError, mentions=("q", "0")),
        refuses("heads of 129 numbers", *Pass(1, 1, 3, 129).all(), raises=ValueError,
                mentions=("q", "128", "129")),
        refuses("causal with more keys than queries", *Pass(1, 1, 7, 16, keys=9).all(), True,
                raises=ValueError, mentions=("causal", "7", "9")),
        refuses("lse on another device", *SMALL.all(lse=rand(1, 2, 31).on_meta()),
                raises=ValueError, mentions=("lse", "meta")),

        sizes(lambda queries, keys, width, shared, causal, dtype: drawn_pass(
                  queries, queries if causal else keys, width, shared, causal, dtype).all(),
              queries=(1, 100), keys=(1, 100), width=(1, 64), shared=(1, 2), causal=(False, True),
              dtype=FLOATS, count=20),

        performance("1 x 2 x 256 x 64 in float16, counted", *COUNTED.all(), launches=3,
                    check=allocates(REST), flops=1.4, spills=0),
        performance("4 x 16 x 4 096 x 64 in float16", *long(4, 16, 4_096, 64), spills=0,
                    pass_at=0.20, stretch=0.35),
        performance("4 x 16 x 4 096 x 64 in float16, causal", *long(4, 16, 4_096, 64, True),
                    spills=0, pass_at=0.16, stretch=0.28),
        performance("4 x 16 x 4 096 x 128 in float16", *long(4, 16, 4_096, 128), spills=SPILLS,
                    pass_at=0.25, stretch=0.43),
    ],
)

suite = Suite(
    blanks=4,
    functions=[backward_delta, backward_keys, backward_queries, attention_backward],
    cases=designs,
)


# ---------------------------------------------------------------------------------------------
# Properties


def forward(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, causal: bool = False,
            ) -> tuple[torch.Tensor, torch.Tensor]:
    """out and lse, rounded from float64."""
    scores = scores_of(q.double(), k.double(), causal, None)
    out = torch.softmax(scores, -1) @ spread_heads(v.double(), q)
    return out.to(q.dtype), torch.logsumexp(scores, -1).float()


def drawn(submission: Any, length: int, width: int = 32) -> tuple[torch.Tensor, ...]:
    """q, k, v and d_out of two heads."""
    return tuple(submission.draw(*(rand(1, 2, length, width) for _ in range(4))))


def test_rows_of_ds_sum_to_zero(submission):
    q, k, v, d_out = drawn(submission, 70)
    k = k[:, :, :1].expand(-1, -1, 70, -1)
    out, lse = forward(q, k, v)

    dq = submission.attention_backward(q, k, v, out, lse, d_out)[0]

    worst = float(dq.abs().max())
    assert worst <= 2.0**-14, (
        f"with equal keys, dq is the sum of a row of ds times that key, and {worst:.3g} at most "
        "instead of 0: rows of ds do not sum to zero")


def test_columns_of_dv_sum_to_those_of_d_out(submission):
    for causal in (False, True):
        q, k, v, d_out = drawn(submission, 70)
        out, lse = forward(q, k, v, causal)

        dv = submission.attention_backward(q, k, v, out, lse, d_out, causal)[2]

        off = (dv.double().sum(2) - d_out.double().sum(2)).abs()
        assert float(off.max()) <= 2.0**-12, (
            f"the sum of dv over all keys differs from that of d_out by up to {off.max():.3g}, so "
            "rows of p do not sum to one")


def test_q_times_dq_is_k_times_dk(submission):
    for causal in (False, True):
        q, k, v, d_out = drawn(submission, 70)
        out, lse = forward(q, k, v, causal)

        dq, dk, _ = submission.attention_backward(q, k, v, out, lse, d_out, causal)

        by_q, by_k = (q.double() * dq).sum((2, 3)), (k.double() * dk).sum((2, 3))
        off = (by_q - by_k).abs() / (q * dq).double().abs().sum((2, 3))
        assert float(off.max()) <= 2.0**-14, (
            f"the sum of q * dq is {by_q.flatten()[0]:.6g} and that of k * dk "
            f"{by_k.flatten()[0]:.6g}: both are the sum of ds times the scores")


def test_twice_the_gradient_gives_twice_the_gradients(submission):
    q, k, v, d_out = drawn(submission, 40)
    out, lse = forward(q, k, v)

    once = submission.attention_backward(q, k, v, out, lse, d_out)
    twice = submission.attention_backward(q, k, v, out, lse, 2 * d_out)

    for name, one, two in zip(("dq", "dk", "dv"), once, twice, strict=True):
        assert torch.equal(2 * one, two), f"{name} is not twice as large for twice the d_out"


def test_earlier_queries_do_not_matter_where_causal(submission):
    q, k, v, d_out = drawn(submission, 100)
    out, lse = forward(q, k, v, True)
    first, (noise,) = 60, submission.draw(rand(1, 2, 60, 32))
    other = d_out.clone()
    other[:, :, :first] = noise

    one = submission.attention_backward(q, k, v, out, lse, d_out, True)[1:]
    two = submission.attention_backward(q, k, v, out, lse, other, True)[1:]

    for name, before, after in zip(("dk", "dv"), one, two, strict=True):
        changed = (before != after).any(-1).any(1)[0].nonzero().flatten()
        assert not bool((changed >= first).any()), (
            f"changing d_out of queries below {first} changed {name} of key "
            f"{int(changed.max())}, which none of them sees")


def test_shared_keys_get_the_sum_of_all_their_heads(submission):
    q, d_out = submission.draw(rand(1, 4, 40, 32), rand(1, 4, 40, 32))
    k, v = submission.draw(rand(1, 2, 50, 32), rand(1, 2, 50, 32))
    out, lse = forward(q, k, v)

    grouped = submission.attention_backward(q, k, v, out, lse, d_out)
    apart = submission.attention_backward(
        q, k.repeat_interleave(2, 1), v.repeat_interleave(2, 1), out, lse, d_out)

    for name, one, each in zip(("dk", "dv"), grouped[1:], apart[1:], strict=True):
        worst = float((one.double() - gathered(each.double(), k)).abs().max())
        assert worst <= 2.0**-14, (
            f"{name} of shared keys differs by {worst:.3g} from the sum over heads that have the "
            "same keys each")
