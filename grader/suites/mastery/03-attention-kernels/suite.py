"""Hidden tests of attention: values, masks, grouped heads, layouts, cost and the design."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
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
    Input,
    Recording,
    Size,
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
    wide,
)
from grader.suite.rounding import spread

NAN = math.nan
HALF = "float16"
FAR = 1 << 30  # elements; the third row begins where 31 bits end
STEP = 3 * FAR >> 5  # a tile of 32 keys or more passes 31 bits, while one key is far from that
FAR_SCORE = 500.0
FARTHER_SCORE = 15_000.0
SIDE, WIDTH, HEADS = 256, 64, 2  # of the heads whose traffic is counted
QUERIES = 32  # of a tile, below which keys are read too often
REST = HEADS * SIDE * WIDTH * 2  # bytes: of one result in float16, half of a head's scores
LSE = 1 / (2 * WIDTH)  # of the least in float16: a logarithm for each query may always be written
MASKED_FLOPS = 1.5  # of tiles of 128 x 128 over half of all scores; all of them are 2


# ---------------------------------------------------------------------------------------------
# Exact results, what rounding may do to them, and right answers in float32


def scores_of(q: torch.Tensor, k: torch.Tensor, causal: bool, scale: float | None) -> torch.Tensor:
    scale = 1 / math.sqrt(q.shape[-1]) if scale is None else scale
    return error_bounds.masked(q @ spread_heads(k, q).mT * scale, causal)


def spread_heads(x: torch.Tensor, q: torch.Tensor) -> torch.Tensor:
    """Keys or values for each head of q."""
    return x.repeat_interleave(q.shape[1] // x.shape[1], dim=1)


def attend(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, causal: bool = False,
           scale: float | None = None, return_lse: bool = False) -> Any:
    """In the dtype of the arguments."""
    scores = scores_of(q, k, causal, scale)
    out = torch.softmax(scores, -1) @ spread_heads(v, q)
    return (out, torch.logsumexp(scores, -1)) if return_lse else out


def exactly(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, *options: Any) -> Any:
    return attend(q.double(), k.double(), v.double(), *options)


def in_float32(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, *options: Any) -> Any:
    result = attend(q.float(), k.float(), v.float(), *options)
    if isinstance(result, tuple):
        return result[0].to(q.dtype), result[1]
    return result.to(q.dtype)


def reversed_in_float32(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, *options: Any) -> Any:
    """With the keys in the other order; where later ones are masked, of q's numbers instead."""
    if options and options[0]:
        return in_float32(q.flip(-1), k.flip(-1), v, *options)
    return in_float32(q, k.flip(2), v.flip(2), *options)


def amplitude(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, causal: bool = False,
              scale: float | None = None, return_lse: bool = False) -> Any:
    """That of attention; of the logarithm, the mean error of a score and a few roundings.

    Of those, none is as coarse as tensor cores may be: what the rule multiplies by is 16 of them.
    """
    wide_k, wide_v = spread_heads(k, q), spread_heads(v, q)
    out = error_bounds.attention(q, wide_k, wide_v, scale=scale, causal=causal,
                               rounds_p=q.dtype != torch.float32)
    if not return_lse:
        return out
    q, k, width = q.double(), wide_k.double(), q.shape[-1]
    scores = scores_of(q, k, causal, scale)
    size = torch.where(scores.isfinite(), scores, 0.0).abs()
    factor = abs(1 / math.sqrt(width) if scale is None else scale)
    off = (q.abs() @ k.abs().mT) * factor * (0.5 + spread(width) / 4) + size / 4
    total = torch.logsumexp(scores, -1)
    return out, Amplitude(
        pointwise=0.5 + (total.abs() + size.amax(-1)) / 2
        + (torch.softmax(scores, -1) * off).sum(-1),
        reduced=torch.ones_like(total), length=k.shape[2])


def cost(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, causal: bool = False,
         scale: float | None = None, return_lse: bool = False) -> Cost:
    operations = 4 * q.numel() * k.shape[2]
    return Cost(bytes=(2 * q.numel() + 2 * k.numel()) * q.element_size(),
                flops=operations // 2 if causal else operations)


# ---------------------------------------------------------------------------------------------
# Inputs


def heads(batches: int, count: int, queries: Size, width: int, dtype: str = "float32", *,
          keys: Size | None = None, shared: int | None = None,
          **how: Any) -> tuple[Input, Input, Input]:
    """q, k and v with independent values; ``shared`` heads of keys serve ``count`` of queries."""
    few, keys = shared or count, queries if keys is None else keys
    return (rand(batches, count, queries, width, dtype=dtype, **how),
            rand(batches, few, keys, width, dtype=dtype),
            rand(batches, few, keys, width, dtype=dtype))


def near(score: float, width: int, queries: int, keys: int, dtype: str = "float32",
         value: float | None = None) -> tuple[Input, Input, Input]:
    """Two heads whose scores all lie near a number; ``value``: what all values are."""
    size = math.sqrt(abs(score)) / width**0.25
    return (rand(1, 2, queries, width, dtype=dtype, mean=size, std=0.1),
            rand(1, 2, keys, width, dtype=dtype, mean=math.copysign(size, score), std=0.1),
            rand(1, 2, keys, width, dtype=dtype) if value is None else
            rand(1, 2, keys, width, dtype=dtype, mean=value, std=0.0))


def zero_and_five(keys: int) -> tuple[Input, Input, Input]:
    """A head whose scores are nearly 0 and one whose scores are about 5, by single products.

    Sums of few numbers of one sign hardly round: what is a little wrong shows.
    """
    size = torch.tensor([1e-4, 1.0]).view(2, 1, 1)
    return (rand(1, 2, 40, 1, mean=2.0, std=0.1).then(lambda t: t * size.to(t.device)),
            rand(1, 2, keys, 1, mean=2.5, std=0.1), rand(1, 2, keys, 1, mean=3.0, std=0.1))


def with_key(at: int, value: float) -> Callable[[torch.Tensor], torch.Tensor]:
    """A row of keys or values with one number in all of its places."""
    def put(x: torch.Tensor) -> torch.Tensor:
        x = x.clone()
        x[:, :, at] = value
        return x

    return put


def tiles(number: int, more: int = 0) -> Callable[[int], int]:
    """So many of the learner's own tiles, as far as these are no longer than 128, and some more."""
    return lambda block: max(1, number * min(block, 128) + more)


def fused(part: int) -> Input:
    """q, k or v as a view of one tensor (B, S, 3, H, D), as a single linear layer makes it."""
    return rand(2, 37, 3, 2, 32, dtype=HALF).then(lambda t: t[:, :, part].transpose(1, 2))


# Less than a tile, a single query, more than one tile, a width of no power of two, and a wide one.
SHAPES = ((1, 2, 31, 32), (1, 1, 1, 16), (1, 2, 33, 64), (2, 3, 65, 48), (1, 1, 128, 128))
MASKS = {"all keys": (), "causal": (True,)}
PUBLIC = ((31, "all keys"), (1, "all keys"), (33, "causal"))


def named(shape: Sequence[int]) -> str:
    return " x ".join(map(str, shape))


# ---------------------------------------------------------------------------------------------
# Designs

LONG = ({"B": 4, "Hq": 16, "Hk": 16, "Sq": 4_096, "Sk": 4_096, "D": 64, "e": 2},
        {"B": 1, "Hq": 32, "Hk": 8, "Sq": 8_192, "Sk": 8_192, "D": 128, "e": 2},
        {"B": 2, "Hq": 8, "Hk": 2, "Sq": 2_048, "Sk": 2_048, "D": 96, "e": 4})
UNEQUAL = (LONG[0], {**LONG[1], "Sq": 4_096}, {**LONG[2], "Sk": 16_384})


def is_designed(operations: int, flops: str) -> Callable[..., None]:
    """A check of all entries of one function, within 10 %; ``operations`` for each q * k * v."""
    def check(answer: Any, function: str, shapes: Sequence[Mapping[str, int]]) -> None:
        for what in ("flops", "bytes", "grid", "tile"):
            entry = f"DESIGN[{function!r}][{what!r}]"
            assert isinstance(answer[what], list), f"{entry} {answer[what]}."
        assert answer["bound"] == "compute", (
            f"DESIGN[{function!r}]['bound'] is {answer['bound']!r}. With thousands of keys, how "
            "many operations are there for each byte that has to move? An H200 does some 200 of "
            "16-bit numbers in the time of a byte.")
        for number, shape in enumerate(shapes):
            where = ", ".join(f"{name} = {size:,}" for name, size in shape.items())
            got = {what: answer[what][number] for what in ("flops", "bytes", "grid", "tile")}
            rows = shape["B"] * shape["Hq"] * shape["Sq"]
            right = operations * rows * shape["Sk"] * shape["D"]
            assert 0.9 * right <= got["flops"] <= 1.1 * right, (
                f"For {where}, DESIGN[{function!r}]['flops'] is {got['flops']:,.0f}. {flops}")
            right = 2 * shape["e"] * shape["D"] * (rows + shape["B"] * shape["Hk"] * shape["Sk"])
            assert 0.9 * right <= got["bytes"] <= 1.1 * right, (
                f"For {where}, DESIGN[{function!r}]['bytes'] is {got['bytes']:,.0f}. Four tensors "
                "move once each: which have as many rows as q, and which as k? Scores are in none.")
            elements, covered = rows * shape["D"], got["grid"] * got["tile"]
            assert 0.9 * elements <= covered <= 2.2 * elements, (
                f"For {where}, DESIGN[{function!r}] has {got['grid']:,.0f} programs with tiles of "
                f"{got['tile']:,.0f}: {covered:,.0f} elements of a result that has {elements:,}. "
                "Every head of every batch has tiles of its own, and a tile is as wide as a row "
                "of q; its numbers of keys are in neither.")

    return check


designs = [
    call("the design of attention", "design", "attention", UNEQUAL, check=is_designed(
        4, "Two products of matrices, q by k and weights by v: each multiplies and adds once for "
           "every query, key and number of a row.")),
    call("the design of causal attention", "design", "causal attention", LONG, check=is_designed(
        2, "Query m sees keys 0 to m: of all pairs, which share is that?")),
]


def allocates(most: int) -> Callable[[Recording], list[CheckResult]]:
    """A check of the bytes that host code allocates beside the results."""
    def check(call: Recording) -> list[CheckResult]:
        results = {view.storage for view in call.results}
        sizes = [event.nbytes for event in call.events
                 if isinstance(event, Alloc) and event.storage not in results]
        wrong = (f"The function allocates {sum(sizes):,} bytes beside its results, the largest "
                 f"tensor has {max(sizes):,}: {most:,} are allowed.") if sum(sizes) > most else ""
        return [CheckResult(
            "scratch memory", f"{sum(sizes):,} bytes, limit {most:,}", wrong, "T01")]

    return check


suite = Suite(
    entry="attention",
    parameters=("q", "k", "v"),
    keyword_only=("causal", "scale", "return_lse"),
    reference=exactly,
    tolerance=Tolerance(amplitude, TENSOR_CORES, products=(0, 1, 2)),
    peer=in_float32,
    reversed_peer=reversed_in_float32,
    cost=cost,
    result_names=("out", "lse"),
    result_dtype=(None, "float32"),
    contiguous_result=True,
    bench=Bench("queries and keys", (512, 1_024, 2_048, 4_096, 8_192),
                lambda n: heads(4, 16, n, 64, HALF), at="float16, 4 x 16 heads of 64",
                peer=torch.nn.functional.scaled_dot_product_attention,
                peer_name="scaled_dot_product_attention"),
    blanks=1,
    cases=[
        *(correctness(f"{named(shape)}, {mask}", *heads(*shape), *options,
                      public=(shape[2], mask) in PUBLIC)
          for shape in SHAPES for mask, options in MASKS.items()),
        *(correctness(f"{named(shape)} in float16, {mask}", *heads(*shape, HALF), *options)
          for shape in SHAPES for mask, options in MASKS.items()),
        *(correctness(f"2 x 2 x 70 x 32 in bfloat16, {mask}", *heads(2, 2, 70, 32, "bfloat16"),
                      *options) for mask, options in MASKS.items()),
        correctness("7 queries of 100 keys", *heads(1, 2, 7, 32, keys=100)),
        correctness("100 queries of 7 keys in float16", *heads(1, 2, 100, 32, HALF, keys=7)),
        correctness("one query of 300 keys in float16", *heads(2, 3, 1, 64, HALF, keys=300)),
        correctness("8 heads of queries on 2 of keys", *heads(2, 8, 40, 32, shared=2)),
        correctness("8 heads of queries on 2 of keys in float16, causal",
                    *heads(1, 8, 65, 32, HALF, shared=2), True),
        correctness("6 heads of queries on 1 of keys, 50 x 90",
                    *heads(1, 6, 50, 16, keys=90, shared=1)),
        correctness("heads of one number", *heads(1, 2, 40, 1)),
        *(correctness(f"scores of 0 and of 5, {few} keys{words}", *zero_and_five(few), False, 1.0,
                      lse)
          for words, lse in (("", False), (" and the logarithm", True)) for few in (1, 2, 3)),
        *(correctness(f"all scores near {score:g} in {dtype}, {mask}",
                      *near(score, 32, 70, 70, dtype), *options)
          for score in (-FAR_SCORE, FAR_SCORE) for dtype in ("float32", HALF)
          for mask, options in MASKS.items()),
        # Roundings decide which key outweighs the others, so all values are equal.
        correctness("all scores near -15000 in float32",
                    *near(-FARTHER_SCORE, 32, 70, 70, value=4.0)),
        *(correctness(f"65 queries spread by 30 in {dtype}, {mask}",
                      *heads(1, 2, 65, 64, dtype, std=30.0), *options)
          for dtype in ("float32", HALF) for mask, options in MASKS.items()),
        correctness("a scale of a half", *heads(1, 2, 50, 32), False, 0.5),
        correctness("a scale of a half in float16, causal", *heads(1, 2, 70, 32, HALF), True, 0.5),
        correctness("a scale below zero", *heads(1, 2, 70, 32, std=30.0), False, -0.3),
        correctness("a scale of zero, causal", *heads(1, 2, 70, 32), True, 0.0),
        correctness("a whole number as scale", *heads(1, 2, 20, 16), False, 1),
        correctness("40 queries of 600 keys, values around 3, in float16",
                    *heads(1, 1, 40, 32, HALF, keys=600)[:2],
                    rand(1, 1, 600, 32, dtype=HALF, mean=3.0)),
        correctness("values of very different size", *heads(1, 2, 100, 32)[:2],
                    wide(1, 2, 100, 32)),
        *(correctness(f"key {key} of 100 outweighs all others", rand(1, 2, 40, 32, mean=1.0),
                      rand(1, 2, 100, 32).then(with_key(key, 5.0)), rand(1, 2, 100, 32))
          for key in (0, 50, 99)),
        correctness("the logarithm as well", *heads(1, 2, 70, 32), False, None, True),
        correctness("the logarithm as well, in float16, causal", *heads(2, 2, 65, 48, HALF), True,
                    None, True),
        correctness("the logarithm of scores near -500", *near(-FAR_SCORE, 32, 40, 70), False,
                    None, True),
        correctness("the logarithm for 8 heads on 2, scale 0.5",
                    *heads(1, 8, 33, 32, keys=50, shared=2), False, 0.5, True),
        correctness("2 heads of 520 queries in float16, causal", *heads(1, 2, 520, 64, HALF), True),
        correctness("a head of 520 queries of 600 keys in float16",
                    *heads(1, 1, 520, 64, HALF, keys=600)),
        correctness("2 heads of 520 queries on 1 of keys in float16, a scale below zero",
                    *heads(1, 2, 520, 16, HALF, keys=20, shared=1), False, -0.5),

        edge("batch, sequence, head: transposed views", *(
            rand(2, 35, 3, 32).then(lambda t: t.transpose(1, 2)) for _ in range(3)), public=True),
        edge("three views of one tensor in float16, causal", fused(0), fused(1), fused(2), True),
        edge("keys with their columns turned", rand(1, 2, 33, 32, dtype=HALF),
             rand(1, 2, 32, 40, dtype=HALF).mT, rand(1, 2, 40, 32, dtype=HALF)),
        edge("values with their columns turned", rand(1, 2, 33, 32), rand(1, 2, 40, 32),
             rand(1, 2, 32, 40).mT),
        edge("every other number of each query", rand(1, 2, 33, 64)[..., ::2],
             rand(1, 2, 40, 32), rand(1, 2, 40, 32)),
        edge("one head of queries for all", rand(2, 1, 20, 32).then(
            lambda t: t.expand(-1, 3, -1, -1)), rand(2, 3, 40, 32), rand(2, 3, 40, 32)),
        edge("one query for all places", rand(1, 2, 1, 32).then(lambda t: t.expand(-1, -1, 50, -1)),
             rand(1, 2, 40, 32), rand(1, 2, 40, 32)),
        *(edge(f"{words}, {mask}", *heads(1, 1, size, 32, HALF), *options)
          for words, size in (("one query less than a tile", tiles(1, -1)),
                              ("a whole tile", tiles(1)),
                              ("one query more than a tile", tiles(1, 1)),
                              ("two tiles and a query", tiles(2, 1)))
          for mask, options in MASKS.items()),
        edge("queries 2**30 elements apart", rand(1, 1, 3, 32, dtype=HALF).apart(0, 0, FAR, 1),
             rand(1, 1, 5, 32, dtype=HALF), rand(1, 1, 5, 32, dtype=HALF)),
        edge("keys 2**30 elements apart", rand(1, 1, 5, 32, dtype=HALF),
             rand(1, 1, 4, 32, dtype=HALF).apart(0, 0, FAR, 1), rand(1, 1, 4, 32, dtype=HALF)),
        edge("values 2**30 elements apart, causal", rand(1, 1, 4, 32, dtype=HALF),
             rand(1, 1, 4, 32, dtype=HALF), rand(1, 1, 4, 32, dtype=HALF).apart(0, 0, FAR, 1),
             True),
        edge("130 keys 3 * 2**25 elements apart", rand(1, 1, 5, 16, dtype=HALF),
             rand(1, 1, 130, 16, dtype=HALF).apart(0, 0, STEP, 1),
             rand(1, 1, 130, 16, dtype=HALF)),
        edge("130 values 3 * 2**25 elements apart", *heads(1, 1, 5, 16, HALF, keys=130)[:2],
             rand(1, 1, 130, 16, dtype=HALF).apart(0, 0, STEP, 1)),
        edge("heads 2**30 elements apart", *(
            rand(1, 4, 5, 32, dtype=HALF).apart(0, FAR, 32, 1) for _ in range(3))),
        edge("a value of NaN in each place of row 60", *heads(1, 1, 33, 32)[:1],
             rand(1, 1, 70, 32), rand(1, 1, 70, 32).then(with_key(60, NAN))),
        edge("NaN in query 5", rand(1, 1, 20, 32).then(with_key(5, NAN)), rand(1, 1, 40, 32),
             rand(1, 1, 40, 32)),
        edge("no query", *heads(1, 2, 0, 32, keys=10), launches=0),
        edge("no query, and its logarithm", *heads(1, 2, 0, 32, keys=10), False, None, True,
             launches=0),
        edge("no batch", *heads(0, 2, 5, 32, HALF), launches=0),

        refuses("q is a list", [[1.0]], *heads(1, 1, 3, 16)[1:], raises=TypeError,
                mentions=("q", "list")),
        refuses("v is None", *heads(1, 1, 3, 16)[:2], None, raises=TypeError,
                mentions=("v", "None")),
        refuses("float64 is not supported", *heads(1, 1, 3, 16, "float64"), raises=TypeError,
                mentions=("q", "float64")),
        refuses("k in float16 beside q in float32", rand(1, 1, 3, 16),
                rand(1, 1, 3, 16, dtype=HALF), rand(1, 1, 3, 16), raises=TypeError,
                mentions=("k", "float16", "float32")),
        refuses("v in bfloat16 beside q in float16", *heads(1, 1, 3, 16, HALF)[:2],
                rand(1, 1, 3, 16, dtype="bfloat16"), raises=TypeError,
                mentions=("v", "bfloat16", "float16")),
        refuses("causal is None", *heads(1, 1, 3, 16), None, raises=TypeError,
                mentions=("causal", "None")),
        refuses("a scale as a text", *heads(1, 1, 3, 16), False, "0.5", raises=TypeError,
                mentions=("scale",)),
        refuses("q has three dimensions", rand(2, 3, 16), *heads(1, 2, 3, 16)[1:],
                raises=ValueError, mentions=("q", "3")),
        refuses("another batch of keys", rand(2, 2, 3, 16), *heads(3, 2, 3, 16)[1:],
                raises=ValueError, mentions=("k", "2", "3")),
        refuses("keys of another width", rand(1, 2, 3, 16), *heads(1, 2, 3, 17)[1:],
                raises=ValueError, mentions=("k", "16", "17")),
        refuses("6 heads of queries on 4 of keys", *heads(1, 6, 3, 16, shared=4),
                raises=ValueError, mentions=("k", "6", "4")),
        refuses("no head of keys", rand(1, 2, 3, 16), rand(1, 0, 3, 16), rand(1, 0, 3, 16),
                raises=ValueError, mentions=("k", "0")),
        refuses("no key", *heads(1, 2, 3, 16, keys=0), raises=ValueError, mentions=("k",)),
        refuses("one value less than keys", *heads(1, 2, 8, 16)[:2], rand(1, 2, 7, 16),
                raises=ValueError, mentions=("v", "8", "7")),
        refuses("heads of 129 numbers", *heads(1, 1, 3, 129), raises=ValueError,
                mentions=("q", "128", "129")),
        refuses("heads of no number", *heads(1, 1, 3, 0), raises=ValueError, mentions=("q", "0")),
        refuses("causal with more keys than queries", *heads(1, 1, 7, 16, keys=9), True,
                raises=ValueError, mentions=("causal", "7", "9")),
        refuses("k on another device", rand(1, 1, 3, 16), rand(1, 1, 3, 16).on_meta(),
                rand(1, 1, 3, 16), raises=ValueError, mentions=("k", "meta")),

        *designs,

        sizes(lambda queries, keys, width, shared, causal, dtype: (
                  *heads(1, 2, queries, width, dtype, shared=shared,
                         keys=queries if causal else keys), causal),
              queries=(1, 100), keys=(1, 100), width=(1, 64), shared=(1, 2), causal=(False, True),
              dtype=FLOATS),

        performance("1 x 2 x 256 x 64 in float16, counted", *heads(1, HEADS, SIDE, WIDTH, HALF),
                    traffic=(2 + 2 * SIDE / QUERIES) / 4 + LSE, flops=1.0, check=allocates(REST),
                    sectors=1.0, launches=1, tensor_cores=True, spills=0),
        performance("1 x 2 x 256 x 64 in float16, causal, counted",
                    *heads(1, HEADS, SIDE, WIDTH, HALF), True,
                    traffic=(2 + SIDE / QUERIES + 2) / 4 + LSE, flops=MASKED_FLOPS,
                    check=allocates(REST), sectors=1.0, launches=1, tensor_cores=True, spills=0),
        performance("1 x 2 x 256 x 64, counted", *heads(1, HEADS, SIDE, WIDTH),
                    traffic=(2 + 2 * SIDE / QUERIES) / 4 + LSE, launches=1,
                    check=allocates(2 * REST)),
        performance("4 x 16 x 4 096 x 64 in float16", *heads(4, 16, 4_096, 64, HALF), spills=0,
                    pass_at=0.30, stretch=0.45),
        performance("4 x 16 x 4 096 x 64 in float16, causal", *heads(4, 16, 4_096, 64, HALF), True,
                    spills=0, pass_at=0.26, stretch=0.40),
        performance("4 x 16 x 4 096 x 128 in float16", *heads(4, 16, 4_096, 128, HALF), spills=0,
                    pass_at=0.36, stretch=0.55),
    ],
)


# ---------------------------------------------------------------------------------------------
# Properties


def test_a_result_lies_between_the_least_and_the_largest_value(submission):
    for causal in (False, True):
        q, k, v = submission.draw(*heads(1, 2, 70, 32))

        out = submission(q, k, v, causal)

        low, high = v.amin(2, keepdim=True), v.amax(2, keepdim=True)
        slack = 2.0**-18 * v.abs().amax()
        out_of = (out < low - slack) | (out > high + slack)
        assert not bool(out_of.any()), (
            f"{int(out_of.sum())} of {out.numel()} results are outside the range of values of "
            "their column, so they are not a weighted mean with weights that sum to 1")


def sums_of_weights(submission: Any) -> torch.Tensor:
    """The results for values of 1, minus one, in float64."""
    q, k, _ = submission.draw(*heads(1, 2, 40, 32, keys=300))
    return submission(q, k, torch.ones_like(k)).double() - 1


def test_weights_sum_to_one_at_most(submission):
    over = float(sums_of_weights(submission).max())

    assert over <= 2.0**-18, f"values of 1 give results that are up to {over:.3g} too large"


def test_weights_sum_to_one_at_least(submission):
    under = -float(sums_of_weights(submission).min())

    assert under <= 2.0**-18, (
        f"values of 1 give results that are up to {under:.3g} too small")


def test_the_order_of_the_keys_does_not_matter(submission):
    q, k, v = submission.draw(*heads(1, 2, 40, 32, keys=100))
    order = torch.randperm(100, generator=torch.Generator().manual_seed(7))

    out, other = submission(q, k, v), submission(q, k[:, :, order], v[:, :, order])

    worst = float((out.double() - other.double()).abs().max())
    assert worst <= 2.0**-18 * float(v.abs().max()), (
        f"keys and values in another order change results by up to {worst:.3g}")


def test_later_keys_do_not_matter_where_causal(submission):
    q, k, v = submission.draw(*heads(1, 2, 100, 32))
    later, (noise,) = 40, submission.draw(rand(1, 2, 60, 32))
    other_k, other_v = k.clone(), v.clone()
    other_k[:, :, later:], other_v[:, :, later:] = noise, -noise

    out, other = submission(q, k, v, True), submission(q, other_k, other_v, True)

    changed = (out != other).any(-1).any(1)[0].nonzero().flatten()
    assert not bool((changed < later).any()), (
        f"changing keys from {later} on changed the result of query {int(changed[0])}")


def test_equal_keys_give_the_mean_of_the_values(submission):
    q, k, v = submission.draw(*heads(1, 2, 20, 32, keys=70))

    out = submission(q, k[:, :, :1].expand(-1, -1, 70, -1), v)

    worst = float((out.double() - v.double().mean(2, keepdim=True)).abs().max())
    assert worst <= 2.0**-18 * float(v.abs().max()), (
        f"with 70 equal keys, a result is {worst:.3g} off the mean of all values")


def test_two_halves_of_the_keys_make_the_whole(submission):
    q, k, v = submission.draw(*heads(1, 2, 30, 32, keys=100))

    whole, lse = submission(q, k, v, False, None, True)
    halves = [submission(q, k[:, :, part], v[:, :, part], False, None, True)
              for part in (slice(0, 41), slice(41, 100))]

    weights = [torch.exp(one.double() - lse.double()) for _, one in halves]
    joined = sum(w[..., None] * out.double()
                 for w, (out, _) in zip(weights, halves, strict=True))
    worst = float((joined - whole.double()).abs().max())
    assert worst <= 2.0**-16 * float(v.abs().max()), (
        "two halves of the keys, weighted by exp(lse of the half - lse), differ from the whole by "
        f"{worst:.3g}")
