"""Hidden tests of Triton inside torch.compile: an operator, its graphs, schedules and modes."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
import torch.nn.functional as F  # noqa: N812 - torch's own spelling

from grader.suite import (
    FLOAT32,
    FLOATS,
    TENSOR_CORES,
    Amplitude,
    Bench,
    Cost,
    Function,
    Input,
    Suite,
    Tolerance,
    call,
    correctness,
    edge,
    equal_rows,
    full,
    performance,
    rand,
    refuses,
    row,
    rows,
    sizes,
    wide,
)

EPS = 1e-6
FAR = 1 << 30  # elements; the third row begins where 31 bits end
SIDE = 256  # of the matrices whose traffic is counted
SMALLEST_TILE = 32  # rows and columns of a tile of the result, below which operands are read often
# Issued elements of such tiles over the least: x twice and w once for each tile, and the rest.
TRAFFIC = ((3 * SIDE**3 + SIDE**2) / SMALLEST_TILE + SIDE**3 / SMALLEST_TILE**2 + SIDE**2) / (
    3 * SIDE**2 + 2 * SIDE)
OPERATOR = "tritonlab::rmsnorm_gelu_linear"
BLOCKS = 6
LENGTHS = (128, 192, 256, 320, 384, 512, 640, 768, 1_024, 1_280, 1_600, 2_048)
NEAR = 5e-4  # share of the largest number; six blocks of float32 are off by less than 1e-5
SHAPES = ({"M": 4_096, "N": 4_096, "K": 4_096, "e": 2},
          {"M": 8_192, "N": 1_024, "K": 2_048, "e": 2},
          {"M": 2_000, "N": 3_000, "K": 1_024, "e": 4})
GIVEN = {"norm_w", "w", "b"}
WHOLE, REGIONAL = "compile_whole", "compile_regionally"


# ---------------------------------------------------------------------------------------------
# The operator: exact results, and what rounding may do to them


def scaled(x: torch.Tensor, norm_w: torch.Tensor, eps: float) -> torch.Tensor:
    x = x.double()
    return x * torch.rsqrt(x.square().mean(1, keepdim=True) + eps) * norm_w.double()


def exact(x: torch.Tensor, norm_w: torch.Tensor, w: torch.Tensor, b: torch.Tensor,
          eps: float) -> torch.Tensor:
    return F.gelu(scaled(x, norm_w, eps)) @ w.double().mT + b.double()


def amplitude(x: torch.Tensor, norm_w: torch.Tensor, w: torch.Tensor, b: torch.Tensor,
              eps: float) -> Amplitude:
    """An error of z is one of gelu(z) by its slope, and arrives at each result through |w|.

    Half of the relative error of a row's mean square is one of its z. 1 + erf(z) has the error of a
    number of size 1, which z multiplies, however small the result is. All but the sums of products
    is arithmetic of float32, on a GPU too.
    """
    z, size = scaled(x, norm_w, eps), w.double().abs().mT
    inner = torch.exp(-z * z / 2) / math.sqrt(2 * math.pi)
    slope = (0.5 * (1 + torch.erf(z / math.sqrt(2))) + z * inner).abs()
    activated = F.gelu(z).abs() @ size
    return Amplitude(
        pointwise=FLOAT32 / TENSOR_CORES * (
            (2 * z.abs() + 4 * (z * slope).abs()) @ size + b.double().abs()),
        reduced=0.5 * (z * slope).abs() @ size + activated,
        length=max(1, x.shape[1]), middle=activated)


def in_float32(x: torch.Tensor, norm_w: torch.Tensor, w: torch.Tensor, b: torch.Tensor,
               eps: float) -> torch.Tensor:
    h = F.gelu(F.rms_norm(x.float(), x.shape[1:], norm_w.float(), eps)).to(x.dtype)
    return (h.float() @ w.float().mT + b.float()).to(x.dtype)


def reversed_in_float32(x: torch.Tensor, norm_w: torch.Tensor, w: torch.Tensor, b: torch.Tensor,
                        eps: float) -> torch.Tensor:
    return in_float32(x.flip(1), norm_w.flip(0), w.flip(1), b, eps)


def cost(x: torch.Tensor, norm_w: torch.Tensor, w: torch.Tensor, b: torch.Tensor,
         eps: float) -> Cost:
    (m, k), n = x.shape, w.shape[0]
    return Cost(bytes=(m * k + n * k + k + n + m * n) * x.element_size(), flops=2 * m * n * k)


def layer(m: Any, k: Any, n: Any, dtype: str = "float32", x: Input | None = None,
          w: Input | None = None) -> tuple[Any, ...]:
    """x (m, k), norm_w (k,), w (n, k), b (n,) and eps."""
    return (x or rand(m, k, dtype=dtype), rand(k, dtype=dtype, mean=1.0, std=0.3),
            w or rand(n, k, dtype=dtype), rand(n, dtype=dtype), EPS)


# ---------------------------------------------------------------------------------------------
# The registered operator


def is_registered(answer: Any, *asked: Any) -> None:
    assert answer["registered"], (
        f"torch has no operator {OPERATOR} after the file was imported. The compiler traces a "
        f"registered operator, and not the kernel of a plain function.")
    assert answer["entry"], (
        f"rmsnorm_gelu_linear(...) computed its result and {OPERATOR} was not called, so calls of "
        f"the "
        f"function are invisible to the compiler.")


def leaves_its_arguments(answer: Any, *asked: Any) -> None:
    if answer["registered"]:
        changed = " and ".join(answer["changed"])
        assert not changed, (
            f"{changed} changed during the call. The schema declares no mutation, so the compiler "
            f"may reorder it with other reads of {changed}.")


def describes_its_result(answer: Any, *asked: Any) -> None:
    is_registered(answer)
    fake, real = answer["fake"], answer["real"]
    assert isinstance(fake, list), (
        f"Called on fake tensors, as the compiler does, the operator raised {fake} Fake tensors "
        f"have no data: no kernel can run, and no value can be read.")
    for what, said, is_so in zip(("shape", "dtype", "strides"), fake, real, strict=True):
        assert said == is_so, (
            f"opcheck: fake {_of(said)}, real {_of(is_so)} ({what}). The compiler plans memory for "
            f"the fake, and the kernel writes the real one.")
    writes = " and ".join(answer["writes"])
    assert not writes, (
        f"The schema says that the operator mutates {writes}, and it mutates no argument. The "
        f"compiler cannot move reads of {writes} across the operator.")
    for test, result in answer["opcheck"].items():
        assert result == "SUCCESS", f"opcheck: {test}: {result[:300]}"


def _of(form: Any) -> str:
    return f"({', '.join(map(str, form))})" if isinstance(form, list) else str(form)


def is_one_graph(answer: Any, length: int) -> None:
    assert set(answer["parameters"]) >= GIVEN, (
        f"Block has parameters called {', '.join(answer['parameters']) or 'nothing'}; the contract "
        f"requires norm_w, w and b.")
    if "raised" in answer:
        raise AssertionError(f"torch._dynamo.explain(block) raised {answer['raised']}")
    breaks = "; ".join(dict.fromkeys(answer["breaks"]))
    assert answer["graphs"] == 1 and not breaks, (
        f"{_graphs(answer['graphs'])} and a break at {breaks or 'an unnamed line'}. "
        f"The code after a break is another graph, with Python in between.")


def is_the_block(answer: Any, length: int) -> None:
    if set(answer["parameters"]) >= GIVEN:
        assert answer["form"] == answer["wanted"], (
            f"A block returned {answer['form']} for an input {answer['wanted']} (shape, dtype, "
            f"strides)")
        assert answer["off"] <= NEAR, (
            f"The result of a block is {answer['off']:.1e} of its largest element away from "
            f"h + linear(gelu(rmsnorm(h))) with h = x + attention(x).")
        assert answer["off_by_eps"] <= NEAR, (
            f"The result of Block(width, eps=0.5) is {answer['off_by_eps']:.1e} of its largest "
            f"element away from the formula with this eps; with the default eps it is right.")


def gives_the_same(how: str) -> Callable[..., None]:
    def check(answer: Any, blocks: int, lengths: Sequence[int]) -> None:
        has_run(answer, how)
        assert answer["off"] <= NEAR, (
            f"The result of {how} is {answer['off']:.1e} of the largest element away from that of "
            f"the uncompiled blocks. Every block has its own weights.")

    return check


def has_run(answer: Any, how: str) -> None:
    error = answer["error"]
    assert "backend='inductor'" not in error, (
        f"Inductor got a graph, instead of the counting backend that was passed to {how}. "
        f"Inductor generates code, which cannot be done here.")
    assert not error, f"The callable returned by {how} raised {error}{_tied(error)}"


def _tied(error: str) -> str:
    return (" A length that is marked as dynamic is a constant of the graph, or must equal one "
            "that is not marked." if error.startswith("ConstraintViolation") else "")


def is_whole(answer: Any, blocks: int, lengths: Sequence[int]) -> None:
    has_run(answer, WHOLE)
    graphs, runs = _made(answer, WHOLE), sum(answer["runs"])
    alone = f"{blocks} blocks were compiled, each by itself; " * (
        len(graphs) == 1 and runs == blocks)
    assert len(graphs) == 1 and answer["runs"][:1] == [1], (
        f"{_graphs(len(graphs))} of {_sizes(graphs)} operations ran {runs} times for one call: "
        f"{alone}the whole model is one graph, run once.")
    fused = graphs[0].count(OPERATOR)
    assert fused == blocks, (
        f"The graph of {len(graphs[0])} operations calls {OPERATOR} {fused} times; the model has "
        f"{blocks} blocks.")


def is_regional(answer: Any, blocks: int, lengths: Sequence[int]) -> None:
    has_run(answer, REGIONAL)
    graphs = _made(answer, REGIONAL)
    assert len(graphs) == 1, (
        f"{_graphs(len(graphs))} of {_sizes(graphs)} operations for {blocks} equal blocks; "
        f"expected "
        f"one that all of them use. A graph is reused if code and guards are the same, and weights "
        f"are arguments.")
    [names] = graphs
    assert names.count(OPERATOR) <= 1, (
        f"One graph of {len(names)} operations calls {OPERATOR} {names.count(OPERATOR)} times; a "
        f"region is the hot path of one block.")
    assert OPERATOR in names, (
        f"The compiled region contains {', '.join(names) or 'nothing'} and not {OPERATOR}, which "
        f"is "
        f"the hot path.")
    attention = [name for name in names if "attention" in name]
    assert not attention, (
        f"One graph of {len(names)} operations with {attention[0]}: the whole block was compiled. "
        f"Attention is a library kernel; the region is the part after it.")
    assert answer["runs"][:1] == [blocks], (
        f"The region ran {sum(answer['runs'])} times in a call of {blocks} blocks.")


def serves_all_lengths(how: str) -> Callable[..., None]:
    def check(answer: Any, blocks: int, lengths: Sequence[int]) -> None:
        if not answer["graphs"]:
            has_run(answer, how)
        graphs, served = len(_made(answer, how)), sum(1 for runs in answer["runs"] if runs)
        eager, error = len(answer["runs"]) - served, answer["error"]
        left = f", then eager for the other {eager}" if eager else ""
        stopped = f", then {error.rstrip('.')}" if error else ""
        # Errors other than the recompile limit have their own cause.
        why = _tied(error) if error and "RecompileLimit" not in error else (
            " Each length that is a constant of the graph needs a graph of its own, and the "
            "compiler stops at 8.")
        assert graphs <= 2 and not eager and not stopped, (
            f"{_graphs(graphs)} for {served} of {len(lengths)} lengths{left}{stopped}.{why}")

    return check


def _made(answer: Any, how: str) -> list[list[str]]:
    graphs: list[list[str]] = answer["graphs"]
    assert graphs, (
        f"The backend that was passed to {how} never got a graph: it compiled nothing.")
    return graphs


def _graphs(count: int) -> str:
    return f"{count} graph{'s' * (count != 1)}"


def _sizes(graphs: Sequence[Sequence[str]]) -> str:
    sizes = [str(len(names)) for names in graphs]
    return ", ".join(sizes[:8]) + " …" * (len(sizes) > 8)


def are_inductor(answer: Any) -> None:
    for how, default in zip(("compile_whole", "compile_regionally"), answer, strict=True):
        assert default == "'inductor'", (
            f"`backend` of {how} defaults to {default}; the contract requires 'inductor'.")


# ---------------------------------------------------------------------------------------------
# Schedules, caches, modes


def has_fields(answer: Any) -> None:
    asked = ("first_ms", "steady_ms", "compiles")
    assert all(name in answer for name in asked), (
        f"run_schedule returned {answer['type']}; expected a ScheduleReport with "
        f"{', '.join(asked)}.")


def calls_each_length(answer: Any, lengths: Sequence[int], warmup: int, iterations: int) -> None:
    wanted = [length for length in lengths for _ in range(1 + warmup + iterations)]
    assert answer["calls"] == wanted, (
        f"fn was called {len(answer['calls'])} times, with {_some(answer['calls'])}; expected "
        f"1 + {warmup} + {iterations} calls for each length in turn: {_some(wanted)}.")


def calls_each_length_by_default(answer: Any, lengths: Sequence[int]) -> None:
    calls_each_length(answer, lengths, 0, 4)


def _some(items: Sequence[Any]) -> str:
    return ", ".join(map(str, items[:12])) + " …" * (len(items) > 12)


def tells_first_from_steady(answer: Any, lengths: Sequence[int], warmup: int,
                            iterations: int) -> None:
    has_fields(answer)
    for name, right, means in (
            ("first_ms", 3_100.0, "the first call took 3,100 ms, and no later one that long"),
            ("steady_ms", 2.1, "the first took 3,100 ms, one of the others 80 ms, and the rest "
                               "2.1 ms, which is the median")):
        times = answer[name]
        assert isinstance(times, tuple | list) and len(times) == len(lengths), (
            f"{name} is {times!r:.100}; expected one number for each of {len(lengths)} lengths.")
        for length, time in zip(lengths, times, strict=True):
            assert isinstance(time, int | float) and math.isclose(time, right, rel_tol=1e-3), (
                f"{name} is {_number(time)} for length {length}, with a clock that only fn "
                f"advances: "
                f"{means}. Times are in milliseconds{_seconds(time, right)}.")


def _seconds(time: Any, right: float) -> str:
    of = isinstance(time, int | float) and math.isclose(time * 1e3, right, rel_tol=1e-3)
    return ", and this is the time in seconds" if of else ""


def _number(time: Any) -> str:
    return f"{time:.6g}" if isinstance(time, int | float) else f"{time!r:.40}"


def counts_compilations(answer: Any, dynamic: bool | None, lengths: Sequence[int]) -> None:
    has_fields(answer)
    assert answer["compiles"] == answer["graphs"], (
        f"compiles is {answer['compiles']!r:.40}, and the backend got {_graphs(answer['graphs'])} "
        f"for {len(lengths)} lengths. Earlier compilations do not count.")
    said, made = answer["again"]
    assert made == 0, (
        f"A second schedule with the same {len(lengths)} lengths made {_graphs(made)}, although "
        f"the first had compiled all of them: the schedule discarded compiled graphs.")
    assert said == 0, (
        f"compiles is {said!r:.40} for a second schedule with the same {len(lengths)} lengths, "
        f"and the backend got no further graph.")


def sets_the_variables(answer: Any, folder: str) -> None:
    found = answer["set"]
    assert _leads(found.get("TORCHINDUCTOR_CACHE_DIR", ""), folder), (
        f"{_variables(found)}. Inductor reads none that points to {folder}: the folder stays "
        f"empty, "
        f"and the next process compiles again.")
    assert _leads(found.get("TRITON_CACHE_DIR", ""), folder), (
        f"{_variables(found)}. Triton caches kernels that are launched without Inductor "
        f"itself, outside {folder}.")
    told = answer["answer"]
    assert told == found, (
        f"{_variables(found)}. The answer "
        f"{f'has {len(told)} variables' if isinstance(told, dict) else f'is {told!r:.100}'}; "
        f"expected "
        f"exactly these {len(found)} with their values.")


def _leads(value: str, folder: str) -> bool:
    return value == folder or value.startswith(f"{folder}/")


def _variables(found: Mapping[str, str]) -> str:
    """The variables that changed; both caches were in /elsewhere before."""
    names = ", ".join(f"{name} is {value}" for name, value in found.items())
    return f"Both caches were elsewhere before. Changed: {names or 'nothing'}"


def workload(launches: int, kernel_us: float, library_share: float, shapes: int,
             calls: int) -> dict[str, Any]:
    return {"launches": launches, "kernel_us": kernel_us, "library_share": library_share,
            "shapes": shapes, "calls": calls}


# A workload, the valid modes, and the evidence against the others.
JOBS = (
    ("many small operations of one shape", workload(900, 3.0, 0.10, 1, 20_000),
     {"reduce-overhead"}, "900 launches take 9 ms on the host and 2.7 ms on the GPU, 180 s in "
                          "total"),
    ("one large product", workload(1, 5_000.0, 0.99, 1, 100_000),
     {"eager"}, "500 s remain, of which all but 1 %, 5 s, are in a library kernel; "
                "compiling takes 20 s"),
    ("small operations, and a new length with nearly every call",
     workload(600, 4.0, 0.10, 700, 50_000), {"default", "eager"},
     "there are 700 shapes, and each would be recorded or tuned"),
    ("production at one shape", workload(300, 60.0, 0.50, 1, 50_000_000),
     {"max-autotune"}, "900,000 s remain, half of them in kernels that a compiler can change, "
                       "and the GPU is always busy"),
    ("three calls in a notebook", workload(400, 20.0, 0.30, 1, 3),
     {"eager"}, "3 calls take 24 ms in total; compiling takes seconds"),
    ("reading the weights of a large model", workload(500, 150.0, 0.97, 1, 1_000_000),
     {"eager", "default"}, "97 % of the time is reading weights, which no mode speeds up, and "
                           "kernels of 150 us hide their launches"),
    ("long element-wise kernels of one shape", workload(12, 400.0, 0.05, 1, 50_000),
     {"default"}, "240 s remain in kernels of 400 us: the host is never the bottleneck, and "
                  "minutes of tuning do not pay"),
    ("small operations in six buckets", workload(800, 3.0, 0.10, 6, 100_000),
     {"reduce-overhead"}, "800 launches take 8 ms on the host and 2.4 ms on the GPU; recording "
                          "6 shapes costs little compared with 100,000 calls"),
    ("a training run of 2 000 steps", workload(2_000, 30.0, 0.45, 1, 2_000),
     {"default"}, "120 s remain; a step takes 60 ms on the GPU and 20 ms on the host"),
    ("a test suite", workload(60, 5.0, 0.20, 50, 50),
     {"eager"}, "50 calls take 30 ms in total; compiling takes seconds"),
)
MODES = ("eager", "default", "reduce-overhead", "max-autotune")


def is_a_mode(answer: Any, workloads: Sequence[Any]) -> None:
    for (name, *_), mode in zip(JOBS, answer, strict=True):
        assert mode in MODES, f"For {name}, the mode is {mode!r:.60}, which is not one of the four."


def fits(number: int) -> Callable[..., None]:
    name, job, right, evidence = JOBS[number]
    fields = ", ".join(f"{field}={value!r}" for field, value in job.items())

    def check(answer: Any, workloads: Sequence[Any]) -> None:
        assert answer[number] in right, (
            f"For {name} ({fields}), {answer[number]!r:.60} was chosen. "
            f"{evidence[0].upper()}{evidence[1:]}.")

    return check


# ---------------------------------------------------------------------------------------------
# The design


def is_designed(answer: Any, function: str, shapes: Sequence[Mapping[str, int]]) -> None:
    where = f"DESIGN[{function!r}]"
    for what in ("flops", "bytes", "grid", "tile"):
        assert isinstance(answer[what], list), f"{where}[{what!r}] {answer[what]}."
    assert answer["bound"] == "compute", (
        f"{where}['bound'] is {answer['bound']!r}. Compute the arithmetic intensity: the ridge "
        f"point "
        f"of a GPU is dozens of FLOP/B, and hundreds with tensor cores.")
    for number, shape in enumerate(shapes):
        m, n, k, e = (shape[name] for name in "MNKe")
        sizes = f"For M = {m:,}, N = {n:,}, K = {k:,}, e = {e}"
        flops, nbytes, programs, tile = (
            answer[what][number] for what in ("flops", "bytes", "grid", "tile"))
        assert 1.8 * m * n * k <= flops <= 2.2 * m * n * k + 50 * m * k, (
            f"{sizes}, {where}['flops'] is {flops:,.0f}. Each element of the result is a sum of K "
            f"products, two FLOP each; norm and GELU are computed for M K elements.")
        least = (m * k + n * k + k + n + m * n) * e
        assert 0.9 * least <= nbytes <= 1.1 * least, (
            f"{sizes}, {where}['bytes'] is {nbytes:,.0f}. Four tensors are read at least once and "
            f"one is written once; intermediates never leave the program."
            + " This is their number of elements." * math.isclose(nbytes * e, least))
        assert programs == int(programs), (
            f"{sizes}, {where}['grid'] is {programs:,g}. The number of programs is an integer: a "
            f"partial tile has one, too.")
        assert programs * tile >= 0.999 * m * n and (programs - 1) * tile <= 2.2 * m * n, (
            f"{sizes}, {where} has {programs:,.0f} programs with tiles of {tile:,.0f}: "
            f"{programs * tile:,.0f} elements, and the result has {m * n:,}.")


FEW, ALL = (128,), LENGTHS
ASKED = tuple(one for _, one, *_ in JOBS)

operator = Function(
    entry="rmsnorm_gelu_linear",
    parameters=("x", "norm_w", "w", "b", "eps"),
    reference=exact,
    tolerance=Tolerance(amplitude, TENSOR_CORES),
    peer=in_float32,
    reversed_peer=reversed_in_float32,
    cost=cost,
    contiguous_result=True,
    bench=Bench("rows", (512, 1_024, 2_048, 4_096, 8_192),
                lambda n: layer(n, 1_024, 1_024, "float16"),
                at="float16, 1 024 inputs and 1 024 outputs",
                peer=lambda x, norm_w, w, b, eps: F.linear(
                    F.gelu(F.rms_norm(x, x.shape[1:], norm_w, eps)), w, b),
                peer_name="F.linear(F.gelu(F.rms_norm))"),
    cases=[
        correctness("64 x 32 into 48", *layer(64, 32, 48), public=True),
        correctness("33 x 70 into 65 in float16", *layer(33, 70, 65, "float16"), public=True),
        correctness("33 x 70 into 65", *layer(33, 70, 65), public=True),
        correctness("20 x 300 into 40", *layer(20, 300, 40)),
        correctness("20 x 768 into 40 in float16", *layer(20, 768, 40, "float16")),
        correctness("20 x 768 into 40 in bfloat16", *layer(20, 768, 40, "bfloat16")),
        correctness("rows of many sizes", *layer(20, 130, 40, x=wide(20, 130, decades=2.0))),
        correctness("rows far from zero", *layer(20, 130, 40, x=rand(20, 130, mean=100.0))),
        correctness("numbers of hundreds in float16", *layer(
            20, 300, 40, "float16", x=rand(20, 300, std=300.0, dtype="float16"))),
        correctness("activations far from zero", rand(20, 70, mean=8.0), rand(70, mean=30.0),
                    rand(40, 70), rand(40), EPS),
        correctness("rows of zeros: the bias alone", *layer(
            20, 70, 40, x=full(20, 70, value=0.0))),
        correctness("rows of equal numbers", *layer(6, 130, 40, x=equal_rows(6, 130))),
        *(correctness(f"20 x {k} into 40, sums that hardly round", *layer(
            20, k, 40, x=rand(20, k, mean=8.0), w=rand(40, k, mean=8.0))) for k in (2, 3, 5)),
        correctness("a large eps", *layer(20, 130, 40)[:4], 0.5),
        correctness("no eps", *layer(20, 130, 40)[:4], 0.0),
        edge("one row, one column, one result", *layer(1, 1, 1), public=True),
        edge("one column", *layer(40, 1, 20)),
        edge("one row", *layer(1, 130, 40)),
        edge("129 x 129 into 129", *layer(129, 129, 129)),
        edge("a row of zeros", *layer(3, 70, 20, x=rows([0.0] * 70, row(70), row(70)))),
        edge("NaN and an infinity in a row each",
             *layer(3, 70, 20, x=rows(row(70, {3: math.nan}), row(70), row(70, {69: math.nan})))),
        edge("x is a transposed view", *layer(33, 70, 40, x=rand(70, 33).mT)),
        edge("w is a transposed view", *layer(33, 70, 40, w=rand(70, 40).mT)),
        edge("every other row of x", *layer(20, 70, 40, x=rand(40, 70)[::2])),
        edge("columns 3 to 72 of 100 of w", *layer(20, 70, 40, w=rand(40, 100)[:, 3:73])),
        edge("every other element of norm_w, every third of b", rand(20, 70),
             rand(140, mean=1.0)[::2], rand(40, 70), rand(120)[::3], EPS),
        edge("rows of x 2**30 elements apart", *layer(3, 65, 20, x=rand(3, 65).apart(FAR, 1))),
        edge("rows of w 2**30 elements apart", *layer(20, 65, 3, w=rand(3, 65).apart(FAR, 1))),
        edge("no column: the bias alone", *layer(20, 0, 40)),
        edge("no row", *layer(0, 70, 40), launches=0),
        edge("no result for a row", *layer(20, 70, 0), launches=0),
        refuses("float64 is not supported", *layer(4, 8, 4, "float64"), raises=TypeError,
                mentions=("x", "float64")),
        refuses("w of another dtype", rand(4, 8), rand(8), rand(4, 8, dtype="float16"), rand(4),
                EPS, raises=TypeError, mentions=("w", "float32", "float16")),
        refuses("three dimensions", rand(3, 3, 8), rand(8), rand(4, 8), rand(4), EPS,
                raises=ValueError, mentions=("x", "3")),
        refuses("w is a vector", rand(4, 1), rand(1), rand(1), rand(1), EPS, raises=ValueError,
                mentions=("w", "1")),
        refuses("norm_w is too short", rand(4, 8), rand(7), rand(4, 8), rand(4), EPS,
                raises=ValueError, mentions=("norm_w", "7", "8")),
        refuses("w is as F.linear wants it transposed", rand(4, 8), rand(8), rand(8, 4), rand(4),
                EPS, raises=ValueError, mentions=("w", "8", "4")),
        refuses("b is too long", rand(4, 8), rand(8), rand(4, 8), rand(5), EPS, raises=ValueError,
                mentions=("b", "5", "4")),
        refuses("a negative eps", *layer(4, 8, 4)[:4], -1e-6, raises=ValueError,
                mentions=("eps", "-1e-06")),

        sizes(lambda m, k, n, dtype: layer(m, k, n, dtype),
              m=(1, 60), k=(1, 200), n=(1, 60), dtype=FLOATS),

        performance("256 x 256 into 256 in float16, counted", *layer(SIDE, SIDE, SIDE, "float16"),
                    traffic=TRAFFIC, launches=1, tensor_cores=True, spills=0),
        performance("256 x 256 into 256, counted", *layer(SIDE, SIDE, SIDE),
                    traffic=TRAFFIC, launches=1, spills=0),
    ],
)

suite = Suite(
    functions=[operator],
    host={WHOLE: ("model", "backend"), REGIONAL: ("model", "backend"),
          "run_schedule": ("fn", "lengths"), "keep_compiled_in": ("folder",),
          "choose_mode": ("workload",)},
    compiles_graphs=True,
    blanks=8,
    cases=[
        call("the operator is registered, and the function calls it", "operator", 8, 24, 32,
             "float32", check=is_registered, eager=True),
        call("its arguments are not modified", "operator", 8, 24, 32, "float32",
             check=leaves_its_arguments, code="M07", eager=True, watched=False),
        call("its fake result has the right shape, dtype and strides", "operator", 8, 24, 32,
             "float32", check=describes_its_result, eager=True, watched=False),
        call("its fake result is right in float16, too", "operator", 5, 16, 33, "float16",
             check=describes_its_result, eager=True, watched=False),
        call("a block is one graph, without a break", "Block", 24, check=is_one_graph, eager=True),
        call("the result of a block", "Block", 24, check=is_the_block, eager=True),
        call("the whole model in one graph", WHOLE, BLOCKS, FEW, check=is_whole,
             eager=True, seconds=20.0),
        call("the whole model equals the uncompiled one", WHOLE, BLOCKS, FEW,
             check=gives_the_same(WHOLE), eager=True, seconds=20.0),
        call("one graph for the hot path of six blocks", REGIONAL, BLOCKS, FEW,
             check=is_regional, eager=True, seconds=20.0),
        call("regions equal the uncompiled model", REGIONAL, BLOCKS, FEW,
             check=gives_the_same(REGIONAL), eager=True, seconds=20.0),
        call("Inductor is the default backend", "default_backends",
             check=are_inductor),
        call("a schedule calls each length in turn", "run_schedule", (128, 256, 512), 0, 4,
             check=calls_each_length),
        call("a schedule with calls to warm up", "run_schedule", (64, 128), 3, 5,
             check=calls_each_length),
        call("four timed calls by default", "schedule_by_default", (64, 128),
             check=calls_each_length_by_default),
        call("first calls apart from steady ones", "run_schedule", (128, 256, 512), 0, 5,
             check=tells_first_from_steady),
        call("first calls apart from steady ones, warmed up", "run_schedule", (64, 128), 3, 5,
             check=tells_first_from_steady),
        call("graphs of a schedule", "compilations", False, (16, 24, 40, 56),
             check=counts_compilations),
        call("graphs of a schedule with dynamic lengths", "compilations", None, (16, 24, 40, 56),
             check=counts_compilations),
        call("no timed call", "refused", 0, 0, raises=ValueError, mentions=("iterations", "0")),
        call("a negative warmup", "refused", -1, 4, raises=ValueError,
             mentions=("warmup", "-1")),
        call("compiled code is cached in a folder", "keep_compiled_in", "/data/compiled",
             check=sets_the_variables),
        call("a mode for each of ten workloads", "choose_mode", ASKED, check=is_a_mode),
        *(call(f"a mode for {name}", "choose_mode", ASKED, check=fits(number))
          for number, (name, *_) in enumerate(JOBS)),
        call("the design", "design", "rmsnorm_gelu_linear", SHAPES, check=is_designed),
        call("twelve lengths for the whole model", WHOLE, 1, ALL,
             check=serves_all_lengths(WHOLE), eager=True, seconds=20.0),
        call("twelve lengths by regions", REGIONAL, 1, ALL,
             check=serves_all_lengths(REGIONAL), eager=True, seconds=20.0),
    ],
)
