"""Hidden tests of dynamic shapes: keys, buckets, a mean and a softmax of any size, a log."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import torch

from grader.suite import (
    FLOATS,
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
    equal_rows,
    error_bounds,
    full,
    integers,
    launchable,
    performance,
    rand,
    row,
    row_with,
    rows,
    sibling,
    sizes,
    special,
    spike,
)

calls = sibling(__file__, "calls")

INF = math.inf
NAN = math.nan


# ---------------------------------------------------------------------------------------------
# masked_mean


def counted(x: torch.Tensor, lengths: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """x in float64 with zeros behind each length, and the number of steps that count."""
    n = lengths.long().clamp(max=x.shape[1])
    inside = torch.arange(x.shape[1])[None, :] < n[:, None]
    return torch.where(inside[:, :, None], x.double(), 0.0), n.clamp(min=1)[:, None]


def mean_reference(x: torch.Tensor, lengths: torch.Tensor) -> torch.Tensor:
    kept, n = counted(x, lengths)
    return kept.sum(1) / n


def mean_amplitude(x: torch.Tensor, lengths: torch.Tensor) -> Amplitude:
    """A sum of as many terms as count, and a division; infinities are compared by their places."""
    kept, n = counted(x, lengths)
    size = kept.abs().nan_to_num(nan=0.0, posinf=0.0).sum(1) / n
    return Amplitude(pointwise=size, reduced=size, length=max([1, *n.flatten().tolist()]))


def mean_peer(x: torch.Tensor, lengths: torch.Tensor) -> torch.Tensor:
    inside = torch.arange(x.shape[1], device=x.device)[None, :] < lengths[:, None]
    total = torch.where(inside[:, :, None], x, 0).float().sum(1)
    return (total / lengths.clamp(1, max(1, x.shape[1]))[:, None]).to(x.dtype)


def mean_reversed(x: torch.Tensor, lengths: torch.Tensor) -> torch.Tensor:
    kept, n = counted(x, lengths)
    return (kept.float().flip(1).sum(1) / n).to(x.dtype)


def mean_cost(x: torch.Tensor, lengths: torch.Tensor) -> Cost:
    steps = int(lengths.clamp(max=x.shape[1]).sum())
    columns = x.shape[2] * x.element_size()
    return Cost(bytes=(steps + x.shape[0]) * columns + lengths.nbytes, flops=steps * x.shape[2])


def lengths(*values: int, dtype: str = "int64") -> Input:
    """These very lengths."""

    def make(_: torch.Generator, __: tuple[int, ...]) -> torch.Tensor:
        return torch.tensor(values, dtype=torch.int64)

    return Input(make, (), dtype)


def sequences(b: int, t: int, d: int, dtype: str = "float32", **values: Any
              ) -> tuple[Input, Input]:
    """A batch, with lengths from 1 to T."""
    return rand(b, t, d, dtype=dtype, **values), integers(b, low=1, high=t, dtype="int64")


def behind(b: int, t: int, d: int, length: int, value: float) -> Input:
    """A batch in which all that lies behind a length is ``value``."""

    def put(x: torch.Tensor) -> torch.Tensor:
        x[:, length:] = value
        return x

    return rand(b, t, d).then(put)


masked_mean = Function(
    "masked_mean", ("x", "lengths"),
    reference=mean_reference,
    tolerance=Tolerance(mean_amplitude),
    peer=mean_peer,
    reversed_peer=mean_reversed,
    bench=Bench("steps", (128, 512, 2_048, 8_192), lambda n: (rand(64, n, 128),
                                                              lengths(*[n] * 64)),
                at="64 samples of 128 columns", peer_name="where, sum, division"),
    cost=mean_cost,
    cases=[
        correctness("3 x 10 x 8, lengths 3, 10 and 7", rand(3, 10, 8), lengths(3, 10, 7),
                    public=True),
        correctness("2 x 130 x 40", *sequences(2, 130, 40), public=True),
        correctness("5 x 33 x 64 in float16", *sequences(5, 33, 64, "float16")),
        correctness("5 x 33 x 64 in bfloat16", *sequences(5, 33, 64, "bfloat16")),
        correctness("4 x 64 x 40, all of the same length", rand(4, 64, 40), lengths(*[64] * 4)),
        correctness("3 x 100 x 300, more columns than a block", *sequences(3, 100, 300)),
        correctness("7 x 257 x 8 around 1 000", *sequences(7, 257, 8, mean=1e3)),
        correctness("2 x 3 000 x 64 around 8 in float16: float16 loses count",
                    rand(2, 3_000, 64, mean=8.0, dtype="float16"), lengths(2_999, 1_500)),
        correctness("lengths in int32", rand(3, 50, 40), lengths(50, 1, 20, dtype="int32")),
        edge("a length of 0 among others", rand(4, 20, 8), lengths(0, 20, 0, 5), public=True),
        edge("nothing but lengths of 0", rand(3, 20, 8), lengths(0, 0, 0)),
        edge("no step at all", rand(3, 0, 8), lengths(0, 0, 0)),
        edge("one step", rand(3, 1, 8), lengths(1, 1, 1)),
        edge("lengths of 1 and 2", rand(5, 50, 8), lengths(1, 2, 1, 2, 1)),
        edge("one column", *sequences(3, 70, 1)),
        edge("one sample", *sequences(1, 100, 40)),
        edge("no sample", rand(0, 10, 8), lengths()),
        edge("no column", rand(3, 10, 0), lengths(1, 2, 3)),
        edge("a length above the number of steps", rand(3, 40, 8), lengths(41, 40, 1_000)),
        edge("NaN behind the length", behind(3, 40, 8, 17, NAN), lengths(17, 16, 1)),
        edge("infinities behind the length", behind(3, 40, 8, 17, INF), lengths(17, 16, 2)),
        edge("NaN and infinities within",
             special(4, 30, 8, values=[NAN, INF, -INF], share=0.01), lengths(30, 20, 10, 30)),
        edge("samples and steps changed places",
             rand(40, 3, 8).then(lambda x: x.transpose(0, 1)), lengths(40, 7, 1)),
        edge("a slice of longer sequences", rand(3, 80, 8)[:, 5:45], lengths(40, 7, 39)),
        edge("every other column", rand(3, 40, 16)[:, :, ::2], lengths(40, 7, 39)),
        edge("lengths with gaps", rand(3, 40, 8), lengths(40, 0, 7, 0, 13, 0)[::2]),

        sizes(lambda samples, steps, columns, dtype: sequences(samples, steps, columns, dtype),
              samples=(1, 5), steps=(1, 100), columns=(1, 100), dtype=FLOATS),

        performance("8 x 200 x 64, half of the steps count", rand(8, 200, 64),
                    lengths(100, 20, 180, 64, 136, 200, 1, 99), traffic=1.0, launches=1),
    ],
)


def test_16_lengths_compile_at_most_4_variants(submission):
    # 1, multiples of 16 and neither; of powers of two and of multiples of 1 024, five and more.
    fixed = [1, 2, 3, 16, 17, 64, 130, 1_025, 2_049, 3_072, 4_096, 4_097]
    drawn, = submission.draw(integers(50, low=1, high=4_097, dtype="int64"))
    steps = list(dict.fromkeys([*fixed, *drawn.tolist()]))[:16]
    batches = [submission.draw(rand(2, t, 8), lengths(t, 1)) for t in steps]

    submission.masked_mean.variants(batches, most=4, of="16 values of T between 1 and 4 097")


# ---------------------------------------------------------------------------------------------
# softmax_any

NARROW, WIDE = 1_024, 65_536


def climbing(count: int, columns: int, dtype: str = "float32") -> Input:
    """Rows that grow from block to block, so that each block has a new maximum."""

    def climb(x: torch.Tensor) -> torch.Tensor:
        return (x.double() + torch.linspace(-40, 40, columns).double()).to(x.dtype)

    return rand(count, columns, dtype=dtype).then(climb)


def beginning(columns: int, stop: int) -> Input:
    """Rows that begin, or end, with -inf; one holds nothing else."""
    return rows(row_with(columns, -INF, 0, stop), row_with(columns, -INF, columns - stop, columns),
                row_with(columns, -INF, 0, columns), row(columns))


def strange(columns: int) -> Input:
    return rows(row(columns, {columns // 2: NAN}), row(columns, {columns - 1: INF}),
                row(columns, {0: NAN, columns - 1: INF}), row(columns))


def wide_name(r: int, c: int) -> str:
    return f"{r} x {c:,}".replace(",", " ")


def sized(kind: Callable[..., Case], r: int, c: int, more: str = "", **how: Any) -> Case:
    return kind(f"{wide_name(r, c)}{more}", rand(r, c), **how)


softmax_any = Function(
    "softmax_any", ("x",),
    reference=lambda x: torch.softmax(x.double(), dim=1),
    contiguous_result=True,
    tolerance=Tolerance(error_bounds.softmax),
    peer=lambda x: torch.softmax(x, dim=1),
    reversed_peer=lambda x: torch.softmax(x.flip(1), dim=1).flip(1),
    bench=Bench("columns", (100, 1_000, 10_000, 65_536, 200_000), lambda n: (rand(512, n),),
                at="512 rows of float32", peer_name="torch.softmax"),
    cost=lambda x: Cost(bytes=2 * x.nbytes, flops=5 * x.numel()),
    cases=[
        sized(correctness, 6, 128, public=True),
        sized(correctness, 5, 130, public=True),
        sized(correctness, 5, 384, ", three times 128"),
        sized(correctness, 3, 1_000),
        sized(correctness, 70, 100),
        sized(correctness, 5, NARROW),
        sized(correctness, 3, NARROW + 1),
        sized(correctness, 3, 1_152, ", nine times 128"),
        sized(correctness, 3, 5_000),
        sized(correctness, 2, WIDE),
        sized(correctness, 2, WIDE + 1),
        sized(correctness, 2, 81_920, ", a multiple of most blocks"),
        sized(correctness, 2, 200_000),
        sized(correctness, 1, 1_100_000, ", more than a block can hold"),
        correctness("7 x 200 in float16", rand(7, 200, dtype="float16")),
        correctness("7 x 200 in bfloat16", rand(7, 200, dtype="bfloat16")),
        correctness("2 x 3 001 in float16", rand(2, 3_001, dtype="float16")),
        correctness("2 x 3 001 in bfloat16", rand(2, 3_001, dtype="bfloat16")),
        correctness("2 x 70 001 in float16", rand(2, 70_001, dtype="float16")),
        correctness("2 x 70 001 in bfloat16", rand(2, 70_001, dtype="bfloat16")),
        correctness("5 x 200 around 200", rand(5, 200, mean=200.0)),
        correctness("5 x 200 around -200", rand(5, 200, mean=-200.0)),
        correctness("2 x 3 001 around -200", rand(2, 3_001, mean=-200.0)),
        correctness("2 x 70 001 around 200", rand(2, 70_001, mean=200.0)),
        correctness("2 x 70 001 around -200", rand(2, 70_001, mean=-200.0)),
        correctness("2 x 70 001, growing to the end", climbing(2, 70_001)),
        correctness("one value above all others, 200 columns", spike(200)),
        correctness("one value above all others, 70 001 columns", spike(70_001)),
        edge("9 x 1, one column", rand(9, 1), public=True),
        edge("one row of 100", rand(1, 100)),
        edge("no row", rand(0, 100), launches=0),
        launchable("70 000 rows of one column", rand(70_000, 1)),
        edge("no column", rand(4, 0), launches=0),
        edge("equal numbers, 130 columns", full(5, 130, value=-7.25)),
        edge("rows of equal numbers, 10 columns", equal_rows(9, 10)),
        edge("rows of equal numbers, 100 columns", equal_rows(5, 100)),
        edge("rows of equal numbers, 70 001 columns", equal_rows(2, 70_001)),
        edge("-inf in front, behind and everywhere, 200 columns", beginning(200, 150)),
        edge("-inf in front, behind and everywhere, 3 001 columns", beginning(3_001, 2_100)),
        edge("-inf in front, behind and everywhere, 70 001 columns", beginning(70_001, 66_000)),
        edge("NaN and infinities, 200 columns", strange(200)),
        edge("NaN and infinities, 3 001 columns", strange(3_001)),
        edge("NaN and infinities, 70 001 columns", strange(70_001)),
        edge("every other row, 100 of 200 columns", rand(12, 200)[::2, 50:150]),
        edge("every other row, 66 000 of 67 000 columns", rand(4, 67_000)[::2, 500:66_500]),
        edge("a transposed matrix", rand(100, 9).mT),

        sizes(lambda rows, columns, dtype: (rand(rows, columns, dtype=dtype),),
              rows=(1, 5), columns=(1, 5_000), dtype=FLOATS),

        performance("512 x 1 000: rows share programs", rand(512, 1_000), traffic=1.0, sectors=1.0,
                    launches=1, programs=128),
        performance("512 x 10: rows share programs", rand(512, 10), traffic=1.0, launches=1,
                    programs=128),
        performance("4 x 5 000: read once", rand(4, 5_000), traffic=1.0, sectors=1.0, launches=1),
        performance("2 x 65 536: read once", rand(2, WIDE), traffic=1.0, sectors=1.0, launches=1),
        performance("2 x 200 000: read twice", rand(2, 200_000), traffic=1.5, sectors=1.0,
                    launches=1),
    ],
)

LONG = (65_537, 70_000, 131_073, 262_145, 600_001, 1_048_577)  # five powers of two, and 16


def test_rows_beyond_65_536_columns_share_4_variants(submission):
    matrices = [submission.draw(rand(1, columns)) for columns in LONG]

    submission.softmax_any.variants(
        matrices, most=4, of=f"{len(LONG)} widths between 65 537 and 1 048 577")


# ---------------------------------------------------------------------------------------------
# specialization_keys

Launch = dict[str, Any]


def launch(kernel: str = "scale_kernel", constexprs: Mapping[str, Any] | None = None,
           fixed: Sequence[str] = (), num_warps: int = 4, **arguments: Any) -> Launch:
    return {"kernel": kernel, "arguments": arguments,
            "constexprs": {"BLOCK": 256} if constexprs is None else dict(constexprs),
            "do_not_specialize": list(fixed), "num_warps": num_warps}


def pointer(address: int = 4_096, dtype: str = "float32") -> dict[str, Any]:
    return {"dtype": dtype, "address": address}


def key(one: Launch) -> tuple[Any, ...]:
    """All that Triton finds compiled code by, on one GPU."""
    return (one["kernel"], one["num_warps"], *one["constexprs"].items(),
            *((name, *known(value, name in one["do_not_specialize"]))
              for name, value in one["arguments"].items()))


def known(value: Any, fixed: bool) -> tuple[Any, ...]:
    """Type and specialisation of one argument, as Triton's binder gives them."""
    match value:
        case None:
            return ("constexpr", None)
        case bool():
            return ("u1", None)
        case float():
            return ("fp32", None)
        case {"dtype": dtype, "address": address}:
            return (f"*{dtype}", not fixed and address % 16 == 0)
        case 1 if not fixed:
            return ("constexpr", 1)
    kind = "i32" if -2**31 <= value < 2**31 else "i64" if value < 2**63 else "u64"
    return (kind, not fixed and value % 16 == 0)


def number_of_keys(launches: Sequence[Launch]) -> int:
    return len(set(map(key, launches)))


def check_number(answer: object, right: int, count: int, why: str) -> None:
    assert type(answer) is int, (
        f"`specialization_keys` returned {answer!r:.60}, expected the number of variants")
    assert answer == right, (
        f"`specialization_keys` returned {answer} for {count} launches, for which Triton compiles "
        f"{right} variant{'s' * (right != 1)}{why and f': {why}'}")


def keyed(name: str, why: str, *launches: Launch, public: bool = False) -> Case:
    """Launches that are given; ``why`` says what there is to see in them."""

    def check(answer: object, *_: object) -> None:
        check_number(answer, number_of_keys(launches), len(launches), why)

    return call(f"specialization_keys: {name}", "specialization_keys", list(launches),
                check=check, public=public)


def keyed_at_random(number: int) -> Case:
    def check(answer: object, table: torch.Tensor) -> None:
        launches = calls.decoded(table)
        check_number(answer, number_of_keys(launches), len(launches),
                     "kernels, types, sizes, addresses, constexprs, options and "
                     "do_not_specialize vary all at once")

    return call(f"specialization_keys: 300 launches of three kernels, {number}", "keys_of_table",
                integers(300, 8, low=0, high=5_040, dtype="int64"), check=check)


def check_kept(answer: object, *_: object) -> None:
    assert answer is True, "`specialization_keys` modified one of the records"


X = pointer()
key_cases = [
    keyed("n is 1, 2 and 16", "Triton specializes on 1, on multiples of 16, and on no other value",
          *(launch(x_ptr=X, n=n) for n in (1, 2, 16)), public=True),
    keyed("no launch", "nothing is launched"),
    keyed("one launch three times", "all three are alike", *[launch(x_ptr=X, n=100)] * 3),
    keyed("n is 2, 3, 5, 7 and 4 097", "n differs, and Triton specializes on none of its values",
          *(launch(x_ptr=X, n=n) for n in (2, 3, 5, 7, 4_097))),
    keyed("n is 16, 32, 48 and 4 096", "n differs, and all values are multiples of 16",
          *(launch(x_ptr=X, n=n) for n in (16, 32, 48, 4_096))),
    keyed("n is 0, 16 and -16", "0 and negative values can be multiples of 16, too",
          *(launch(x_ptr=X, n=n) for n in (0, 16, -16))),
    keyed("n is 8, 24 and 32", "one of the three is a multiple of 16",
          *(launch(x_ptr=X, n=n) for n in (8, 24, 32))),
    keyed("n and m are 1, 16 or 17, in all ways", "each of the two has three classes of values",
          *(launch(x_ptr=X, n=n, m=m) for n, m in itertools.product((1, 16, 17), repeat=2))),
    keyed("n around 2**31", "an integer that does not fit int32 has another type",
          *(launch(x_ptr=X, n=n) for n in (2**31 - 1, 2**31, 2**31 + 1, -2**31, -2**31 - 1))),
    keyed("n around 2**63", "from 2**63 on, an integer is unsigned",
          *(launch(x_ptr=X, n=n) for n in (2**63 - 1, 2**63 + 1))),
    keyed("a scale of 0.5, 1.0 and 16.0", "Triton does not specialize on the values of floats",
          *(launch(x_ptr=X, n=100, scale=s) for s in (0.5, 1.0, 16.0))),
    keyed("a flag of True and of False", "the flag is passed at run time without specialization, "
          "although True == 1 in Python",
          *(launch(x_ptr=X, n=100, flag=flag) for flag in (True, False))),
    keyed("n is True and n is 1", "a bool has its own type, although True == 1 in "
          "Python",
          *(launch(x_ptr=X, n=n) for n in (True, 1))),
    keyed("a tensor or None", "without a tensor there is no pointer",
          *(launch(x_ptr=X, bias_ptr=bias) for bias in (X, None))),
    keyed("two dtypes", "a pointer to float16 is not a pointer to float32",
          *(launch(x_ptr=pointer(dtype=dtype), n=100) for dtype in ("float32", "float16"))),
    keyed("addresses that are multiples of 16", "the addresses differ and are all multiples of 16",
          *(launch(x_ptr=pointer(address), n=100) for address in (4_096, 4_112, 8_192))),
    keyed("addresses 4 096, 4 100 and 4 104", "one of the addresses is a multiple of 16",
          *(launch(x_ptr=pointer(address), n=100) for address in (4_096, 4_100, 4_104))),
    keyed("BLOCK is 64, 128 and 256", "BLOCK is a constexpr",
          *(launch(x_ptr=X, n=100, constexprs={"BLOCK": block}) for block in (64, 128, 256))),
    keyed("BLOCK and N are swapped", "the two launches have other values of the same constexprs",
          *(launch(x_ptr=X, constexprs=pair) for pair in ({"BLOCK": 64, "N": 128},
                                                          {"BLOCK": 128, "N": 64}))),
    keyed("n and m are swapped", "one of n and m is a multiple of 16, not the same in both",
          launch(x_ptr=X, n=16, m=17), launch(x_ptr=X, n=17, m=16)),
    keyed("two kernels", "each kernel has its own code",
          launch("scale_kernel", x_ptr=X, n=100), launch("shift_kernel", x_ptr=X, n=100)),
    keyed("4 and 8 warps", "the number of warps differs",
          *(launch(x_ptr=X, n=100, num_warps=warps) for warps in (4, 8))),
    keyed("do_not_specialize names n: 1, 16 and 17", "do_not_specialize names n",
          *(launch(x_ptr=X, n=n, fixed=["n"]) for n in (1, 16, 17))),
    keyed("do_not_specialize names n: 17 and 2**31", "an argument without specialization "
          "still has a type", *(launch(x_ptr=X, n=n, fixed=["n"]) for n in (17, 2**31))),
    keyed("do_not_specialize names x_ptr", "do_not_specialize names x_ptr, and its dtypes differ",
          *(launch(x_ptr=pointer(*one), n=100, fixed=["x_ptr"])
            for one in ((4_096,), (4_100,), (4_096, "float16"), (4_098, "float16")))),
    keyed("do_not_specialize names m, and n is 1 and 17", "do_not_specialize names m, not n",
          *(launch(x_ptr=X, n=n, m=n, fixed=["m"]) for n in (1, 17))),
    keyed("64 lengths as constexpr", "T is a constexpr",
          *(launch(x_ptr=X, constexprs={"T": 1 + 65 * n}) for n in range(64))),
    keyed("64 lengths at run time", "T is an argument",
          *(launch(x_ptr=X, T=1 + 65 * n) for n in range(64))),
    *map(keyed_at_random, (1, 2, 3)),
    call("specialization_keys: records are not modified", "keys_left_alone",
         [launch(x_ptr=X, n=n) for n in (1, 2)], check=check_kept),
]


# ---------------------------------------------------------------------------------------------
# Buckets

BUCKETS = [64, 128, 256, 512, 1_024]


def elements(count: int) -> str:
    return "1 element lies" if count == 1 else f"{count} elements lie"


def check_room(answer: object, lengths_: Sequence[int], *_: object) -> None:
    """Checks only for buckets that are too small; the next case checks the rest."""
    for n, bucket in zip(lengths_, answer if isinstance(answer, list) else [], strict=False):
        if type(bucket) is int:
            assert bucket >= n, (f"length {n} was put into a bucket of {bucket}: "
                                 f"{elements(n - bucket)} past its end")


def check_buckets(answer: Any, lengths_: Sequence[int], buckets: Sequence[int]) -> None:
    for n, bucket in zip(lengths_, answer, strict=True):
        assert type(bucket) is int, (
            f"the bucket of {n} is {bucket!r:.60}, expected one of the sizes {buckets}")
        assert bucket in buckets, f"{n} was put into {bucket}, which is not one of {buckets}"
        assert bucket >= n, f"{n} was put into {bucket}: {elements(n - bucket)} past its end"
        right = min(size for size in buckets if size >= n)
        assert bucket == right, (f"{n} was put into {bucket} of the buckets {buckets}, although "
                                 f"{right} holds it: {elements(bucket - right)} unused")


def check_list(answer: Any, n: int, buckets: Sequence[int]) -> None:
    bucket, kept = answer
    assert kept is True, "`bucket_length` modified the list of buckets"
    check_buckets([bucket], [n], buckets)


def bucketed(name: str, lengths_: Sequence[int], buckets: Sequence[int]) -> Case:
    return call(f"bucket_length: {name}", "bucket_length", list(lengths_), list(buckets),
                check=check_buckets)


def no_bucket(name: str, n: int, buckets: Sequence[int], *mentions: str) -> Case:
    return call(f"bucket_length: {name}", "bucket_length", n, list(buckets), raises=ValueError,
                mentions=mentions)


bucket_cases = [
    call("bucket_length: what is put into a bucket fits", "bucket_length",
         [65, 130, 255, 513, 1_000], BUCKETS, check=check_room, code="M01"),
    bucketed("between the sizes", [1, 63, 65, 130, 255, 513, 1_000], BUCKETS),
    bucketed("at the sizes and beside them", [63, 64, 65, 127, 128, 129, 1_023, 1_024], BUCKETS),
    bucketed("length 0 takes the smallest", [0], BUCKETS),
    bucketed("one bucket", [0, 1, 99, 100], [100]),
    bucketed("every length up to 40 in uneven buckets", range(41), [1, 2, 3, 7, 20, 33, 40]),
    call("bucket_length: a list of buckets", "buckets_in_a_list", 130, BUCKETS, check=check_list),
    no_bucket("a length above the largest", 1_025, BUCKETS, "1025", "1024"),
    no_bucket("no buckets", 5, []),
    no_bucket("buckets that descend", 5, [512, 256, 128]),
    no_bucket("one pair in the wrong order, behind the right bucket", 5, [64, 256, 128, 512]),
    no_bucket("one bucket twice", 5, [64, 128, 128, 256]),
    no_bucket("a negative length", -1, BUCKETS),
]


def check_padded(answer: Mapping[str, Any], x: torch.Tensor, buckets: Sequence[int],
                 fill: float) -> None:
    assert not answer["form"], (
        f"`pad_to_bucket` returned {answer['form']}; expected a tuple of a tensor and a length")
    n = x.shape[-1]
    size = min(bucket for bucket in buckets if bucket >= n)
    assert answer["same"], "`pad_to_bucket` modified x"
    assert answer["shape"] == [*x.shape[:-1], size], (
        f"`x` of shape {tuple(x.shape)} was padded to {tuple(answer['shape'])}, and the bucket of "
        f"{n} is {size}")
    dtype = str(x.dtype).removeprefix("torch.")
    assert answer["dtype"] == dtype, f"the padded tensor is {answer['dtype']}, x is {dtype}"
    assert type(answer["n"]) is int and answer["n"] == n, (
        f"the length that was returned is {answer['n']!r:.60}, x had {n}")
    padded = torch.tensor(answer["values"], dtype=torch.float64).reshape(answer["shape"])
    assert torch.equal(padded[..., :n], x.double()), "the first elements are not those of `x`"
    strange_ = padded[..., n:][padded[..., n:] != fill]
    assert not strange_.numel(), (
        f"{strange_.numel()} elements after the end of x are not {fill}, one is {strange_[0]:g}")


def filled(name: str, x: Input, buckets: Sequence[int], fill: float) -> Case:
    return call(f"pad_to_bucket: {name}", "pad_to_bucket", x, list(buckets), fill,
                check=check_padded)


pad_cases = [
    filled("3 x 130 with -inf", rand(3, 130), BUCKETS, -INF),
    filled("3 x 130 with 0", rand(3, 130), BUCKETS, 0.0),
    filled("3 x 128, which is a bucket", rand(3, 128), BUCKETS, -INF),
    filled("one dimension", rand(70), BUCKETS, 2.5),
    filled("three dimensions: the last is padded", rand(2, 3, 65), BUCKETS, -1.0),
    filled("tokens are integers", rand(2, 100, dtype="int64"), BUCKETS, -1.0),
    filled("float16", rand(2, 100, dtype="float16"), BUCKETS, -INF),
    filled("nothing to pad but padding", rand(3, 0), BUCKETS, 7.0),
    filled("no row", rand(0, 100), BUCKETS, 0.0),
    filled("a slice of a longer tensor", rand(4, 300)[::2, 10:140], BUCKETS, 0.0),
    filled("transposed", rand(100, 3).mT, BUCKETS, -INF),
    filled("uneven buckets", rand(2, 21), [1, 2, 3, 7, 20, 33, 40], -INF),
    call("pad_to_bucket: longer than the largest bucket", "pad_to_bucket", rand(2, 1_025),
         BUCKETS, 0.0, raises=ValueError, mentions=("1025", "1024")),
    call("pad_to_bucket: buckets that descend", "pad_to_bucket", rand(2, 10), [128, 64], 0.0,
         raises=ValueError),
    call("pad_to_bucket: no dimension", "pad_to_bucket", rand(), BUCKETS, 0.0, raises=ValueError),
]


# ---------------------------------------------------------------------------------------------
# The log


def read_log(text: str) -> list[Launch]:
    """Parses the launches in `storm.log`."""
    found = []
    for line in text.splitlines():
        _, told, constexprs, options = (part.split() for part in line.split("|"))
        pairs = [word.partition("=")[::2] for word in told[1:]]
        arguments = {name: value_of(value) for name, value in pairs}
        constants = {name: int(value) for name, value in (w.split("=") for w in constexprs)}
        found.append(launch(told[0], constants, num_warps=int(options[0].partition("=")[2]),
                            **arguments))
    return found


def value_of(text: str) -> Any:
    dtype, at, address = text.partition("@")
    return pointer(int(address, 16), dtype) if at else int(text)


def at_run_time(one: Launch, name: str, *, fixed: bool) -> Launch:
    """The launch, with a constexpr passed as an argument."""
    constants = dict(one["constexprs"])
    arguments = {**one["arguments"], name: constants.pop(name)}
    return {**one, "arguments": arguments, "constexprs": constants,
            "do_not_specialize": [name] if fixed else []}


LOG = read_log(Path(__file__).with_name("storm.log").read_text(encoding="utf-8"))
CULPRIT = "T"
BEFORE = number_of_keys(LOG)
AFTER = number_of_keys([at_run_time(one, CULPRIT, fixed=True) for one in LOG])
SPECIALIZED = number_of_keys([at_run_time(one, CULPRIT, fixed=False) for one in LOG])
KERNEL = LOG[0]["kernel"]


def things_known(name: str) -> int:
    """Counts the classes of values of a parameter in the log."""
    return len({key(launch(constexprs={name: one["constexprs"][name]})
                    if name in one["constexprs"]
                    else launch(**{name: one["arguments"][name]})) for one in LOG})


def fields_of(answer: object) -> Any:
    assert getattr(answer, "type", "") == "StormAnswer", (
        f"STORM is {answer!r:.80}, expected a StormAnswer")
    return answer


def check_culprit(answer: object) -> None:
    culprit = fields_of(answer).culprit
    assert isinstance(culprit, str), f"the culprit is {culprit!r:.60}, expected a string"
    assert culprit, "the culprit is empty"
    names = [*LOG[0]["arguments"], *LOG[0]["constexprs"]]
    assert culprit in names, (
        f"the culprit is {culprit!r:.60}; the arguments in the log are {', '.join(names)}")
    things = things_known(culprit)
    classes = "one class of values" if things == 1 else f"only {things} classes of values"
    assert culprit == CULPRIT, (
        f"the culprit is {culprit!r}, but {culprit} has {classes} in the whole log, which does "
        f"not explain a compilation for most requests")


def check_before(answer: object) -> None:
    before = fields_of(answer).variants_before
    assert type(before) is int, f"variants_before is {before!r:.60}, expected an int"
    assert before, "variants_before is 0, and the log contains launches"
    values = len({one["constexprs"][CULPRIT] for one in LOG})
    assert before != len(LOG), (
        f"variants_before is {before}, the number of lines; some of them found code that "
        f"had already been compiled")
    assert before != values, (
        f"variants_before is {before}, the number of distinct lengths; some lengths "
        f"were compiled more than once, for other reasons")
    assert before == BEFORE, (
        f"variants_before is {before}; each line of the log states whether code was "
        f"compiled, which gives another number")


def check_after(answer: object) -> None:
    after = fields_of(answer).variants_after
    assert type(after) is int, f"variants_after is {after!r:.60}, expected an int"
    assert after, "variants_after is 0, but even a kernel without any constexpr is compiled once"
    assert after != BEFORE, (f"variants_after is {after}, as many as before; passing the argument "
                             f"at run time would have made no difference")
    assert after != SPECIALIZED, (
        f"variants_after is {after}, which is right if the argument is passed at run time and "
        f"specialized: 1 and multiples of 16 are then still distinguished")
    assert after != 1, (
        "variants_after is 1, but the requests differ in more than their length: in types, in "
        "addresses, in the width of the model")
    assert after == AFTER, (
        f"variants_after is {after}; without this argument, the other differences in the log "
        f"make {'more' if after < AFTER else 'fewer'} variants")


storm_cases = [
    call("STORM: the culprit", "storm", check=check_culprit),
    call("STORM: variants before", "storm", check=check_before),
    call("STORM: variants after", "storm", check=check_after),
]


suite = Suite(
    functions=[masked_mean, softmax_any],
    host={"specialization_keys": ("launches",), "bucket_length": ("n", "buckets"),
          "pad_to_bucket": ("x", "buckets", "fill")},
    cases=[*key_cases, *bucket_cases, *pad_cases, *storm_cases],
    files=("storm.log",),
)
