"""How much host code may tell kernels, and that what it reads is of no use to it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from msgspec import structs

import grader
from grader import Verdict
from grader.processes.decoy_inputs import decoys, difference
from grader.recording.budget import denied_moves, over_budget, replaced_code
from grader.recording.model import Alloc, Argument, Descriptor, Fill, Launch, Move, Recording, View
from grader.suite import EXACT, Cost, Suite, correctness, rand

N = 1000


def view(offset: int = 0, size: int = N, storage: int = 1) -> View:
    return View(storage, "float32", (size,), (1,), offset)


def recording(*events: Any, size: int = N) -> Recording:
    return Recording((view(storage=0),), (Alloc(1, 4 * N), *events), (view(size=size),))


def launch(line: int | None = None, grid: int = 1, **arguments: Argument) -> Launch:
    return Launch("k", (grid, 1, 1), arguments, line=line)


def number(value: float) -> Argument:
    return Argument("float" if isinstance(value, float) else "int", value)


def items(*values: Any) -> Argument:
    return Argument("tuple", tuple(number(value) for value in values))


def matmul(step: int = 0) -> Launch:
    """As many arguments as a large launch has."""
    names = [f"stride_{i}" for i in range(24)]
    tensors = {f"p{i}": Argument("tensor", view(step)) for i in range(8)}
    return launch(**tensors, **{name: number(step + i) for i, name in enumerate(names)})


DESCRIPTOR = Descriptor(view(), (10, 100), (100, 1), (16, 64))
ADAM = {name: number(0.1 * i) for i, name in enumerate(
    ["lr", "beta1", "beta2", "eps", "decay", "c1", "c2", "scale", "norm"])}

HONEST = {
    "a launch": [launch(x=Argument("tensor", view()), n=number(N), eps=number(1e-5))],
    "a launch with 32 arguments, seven times": [matmul(step) for step in range(7)],
    "a step of Adam on twenty parameters of three elements": [
        launch(p=Argument("tensor", view(3 * i)), **ADAM) for i in range(20)],
    "sixty-four launches that pass one more stage each": [
        launch(x=Argument("tensor", view()), stage=number(i)) for i in range(64)],
    "descriptors": [launch(a=Argument("descriptor", DESCRIPTOR)) for _ in range(64)],
    "a copy for each of 64 batches": [Move(view(i, 1), view(i, 1, 0)) for i in range(64)],
    "NaN again and again": [launch(a=number(float("nan"))) for _ in range(64)],
    "words": [launch(kind=Argument("str", "relu"), t=Argument("dtype", "float16"))],
    "a tuple of sixteen pointers": [launch(a=Argument(
        "tuple", tuple(Argument("tensor", view(i)) for i in range(16))))],
}


@pytest.mark.parametrize("events", HONEST.values(), ids=HONEST)
@pytest.mark.parametrize("size", [1, N])
def test_what_honest_functions_ask_for_is_within_all_budgets(events: list[Any], size: int) -> None:
    assert over_budget(recording(*events, size=size)) == []


CARRIED = {
    "floats in a tuple": ([launch(7, v=items(*(i / 7 for i in range(N))))], 7, "1,000 different"),
    "floats, one a launch": (
        [launch(i, v=number(i / 7)) for i in range(80)], 78, "80 different floats"),
    "floats deep in tuples": (
        [launch(7, v=Argument("tuple", (items(*(i / 7 for i in range(N))),)))], 7, "floats"),
    "integers in a tuple": ([launch(7, v=items(*range(N)))], 7, "1,003 different integers"),
    "pieces of a tensor": ([launch(7, v=Argument("tuple", tuple(
        Argument("tensor", view(i)) for i in range(N))))], 7, "tensor views"),
    "truths": ([launch(7, v=Argument("tuple", (Argument("bool", True),) * N))], 7, "1,003"),
    "a text": ([launch(7, v=Argument("str", "7" * 4096))], 7, "strings"),
    "grids": ([launch(i, grid=i + 1) for i in range(120)], 106, "360 different"),
    "descriptors of different shapes": (
        [launch(i, v=Argument("descriptor", Descriptor(view(i), (i + 1, 8), (8, 1), (1, 8))))
         for i in range(64)], 45, "tensor views"),
    "single elements copied": (
        [Move(view(i, 1), view(N - 1 - i, 1, 0), i) for i in range(N)], 126, "1,000 tensor views"),
    "bits filled in": ([Fill(view(i, 1), i % 2, i) for i in range(N)], 126, "1,000 tensor views"),
}


@pytest.mark.parametrize(("events", "line", "words"), CARRIED.values(), ids=CARRIED)
def test_what_could_carry_a_result_is_over_a_budget(
    events: list[Any], line: int, words: str
) -> None:
    (finding,) = over_budget(recording(*events))

    assert (finding.code, finding.line) == ("X01", line)
    assert words in finding.seen
    assert "the limit is" in finding.seen


def test_a_suite_may_deny_copies_and_not_those_of_nothing() -> None:
    made = recording(Move(view(size=0), view(size=0, storage=0), 3), Move(view(), view(), 4))

    (finding,) = denied_moves(made)

    assert (finding.code, finding.line) == ("X01", 4)
    assert denied_moves(recording(launch())) == []


@pytest.mark.parametrize("option", ["ir_override", "ptx_options"])
def test_no_launch_hands_the_compiler_other_code(option: str) -> None:
    plain = launch()
    tuned = structs.replace(plain, options={"num_warps": 8, "maxnreg": 64})
    other = structs.replace(plain, options={option: "other.ptx"})

    (finding,) = replaced_code(recording(plain, other))

    assert (finding.code, option in finding.seen) == ("X01", True)
    assert replaced_code(recording(plain, tuned)) == []


# ---------------------------------------------------------------------------------------------
# Decoys


def test_decoys_have_other_values_and_all_else_the_same() -> None:
    base = torch.randn(40, dtype=torch.float16) + 100
    x, y = base[:20].view(4, 5).t(), base[10:30]
    lengths = torch.arange(50)

    one, two, other, meta, plain = decoys([x, y, lengths, torch.empty(3, device="meta"), 7])

    assert (one.shape, one.stride(), one.dtype) == (x.shape, x.stride(), x.dtype)
    assert one.untyped_storage()._cdata == two.untyped_storage()._cdata
    assert torch.equal(one.t().reshape(-1)[10:], two[:10])
    assert not torch.equal(one, x)
    assert bool((one > 40).all())
    assert not torch.equal(other, lengths)
    assert bool(((other >= 0) & (other < 50)).all())
    assert (meta.device.type, plain) == ("meta", 7)


def test_what_a_check_of_arguments_looks_for_stays_in_its_place() -> None:
    x = torch.randn(100_000)
    x[::7], x[1::7], x[2::7] = float("nan"), float("-inf"), 0.0

    (decoy,) = decoys([x])

    assert torch.equal(decoy.isnan(), x.isnan())
    assert torch.equal(decoy == -torch.inf, x == -torch.inf)
    assert torch.equal(decoy == 0, x == 0)
    assert decoy.nan_to_num(0, 0, 0).abs().max() <= x.nan_to_num(0, 0, 0).abs().max()


@pytest.mark.parametrize("x", [torch.empty(0), torch.zeros(3), torch.tensor(2.5), torch.ones(3) > 0,
                               torch.ones(2, dtype=torch.complex64)], ids=lambda x: str(x.dtype))
def test_small_and_strange_tensors_get_decoys_too(x: torch.Tensor) -> None:
    (decoy,) = decoys([x])

    assert (decoy.shape, decoy.dtype) == (x.shape, x.dtype)


DIFFERENCES = {
    "an argument": (launch(3, v=number(0.5)), launch(3, v=number(0.25)), "`v` of `k` is 0.5"),
    "an item of a tuple": (launch(3, v=items(1, 2)), launch(3, v=items(1, 3)), "is 2 and 3"),
    "a tensor": (launch(3, v=Argument("tensor", view())), launch(3, v=Argument("tensor", view(4))),
                 "one tensor"),
    "a kernel": (launch(3), Launch("other", (1, 1, 1), {}), "`other` for the other"),
    "a grid": (launch(3), launch(3, grid=2), "the grid of `k`"),
    "a copy": (Move(view(), view(), 3), Move(view(1), view(), 3), "a different part"),
    "a fill": (Fill(view(), 0.0, 3), Fill(view(), 1.0, 3), "filled with 0 and 1"),
    "its kind": (Fill(view(), 0.0, 3), launch(3), "filled for one and passed to a kernel"),
}


@pytest.mark.parametrize(("one", "other", "words"), DIFFERENCES.values(), ids=DIFFERENCES)
def test_where_two_recordings_differ_is_said(one: Any, other: Any, words: str) -> None:
    finding = difference(recording(one), recording(other))

    assert finding is not None
    assert (finding.code, finding.line) == ("X01", 3)
    assert words in finding.seen


def test_recordings_that_ask_for_the_same_do_not_differ() -> None:
    same = [recording(launch(v=number(float("nan")))) for _ in range(2)]

    assert difference(*same) is None
    more = difference(same[0], recording(launch(v=number(float("nan"))), launch(9)))
    assert more is not None
    assert (more.line, "2 allocations, copies and launches" in more.seen) == (9, True)


# ---------------------------------------------------------------------------------------------
# In a grade

KERNEL = '''
import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, out_ptr, n, factor, BLOCK: tl.constexpr):
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offs, mask=offs < n)
    tl.store(out_ptr + offs, x + factor, mask=offs < n)


def shift(x):
    SHIFT
    x = x.contiguous()
    out = torch.empty_like(x)
    kernel[(triton.cdiv(x.numel(), 64),)](x, out, x.numel(), factor, BLOCK=64)
    return out
'''


def graded(path: Path, sandbox: Any, host: str, **options: Any) -> Any:
    """The function has to add 1 to each element."""
    path.write_text(KERNEL.replace("SHIFT", host))
    suite = Suite("shift", ("x",), lambda x: x.double() + 1, EXACT,
                  lambda x: Cost(2 * x.nbytes),
                  [correctness("1000", rand(N)), correctness("columns", rand(50, 20).mT)],
                  **options)
    return grader.grade(path, suite, sandbox=sandbox)


PASS = {
    "checks of the whole": "if x.isnan().any() or float(x.max()) > 1e30: raise ValueError\n"
                           "    factor = 1",
    "a check of 60 elements": "assert all(float(v) < 1e30 for v in x.reshape(-1)[:60])\n"
                              "    factor = 1",
    "shapes and strides": "factor = x.numel() // x.numel() + 0 * x.stride(0)",
    "printing": "print(x)\n    factor = 1",
    "values that do not matter": "factor = 1 + 0 * int(x.reshape(-1)[0] > 0)",
}
FAIL = {
    "a scalar from the values": ("factor = 1 + 1e-3 * float(x.max())", "`factor` of `kernel` is"),
    "one after the other": ("factor = 1\n    for v in x.reshape(-1): factor += 0 * float(v)",
                                    "`__float__` reads tensor values on the host, 65 in"),
    "all at once": ("factor = 0 * sum(x.reshape(-1).tolist()) + 1", "`.tolist()` reads"),
    "as an array": ("factor = 0 * x.numpy().sum() + 1", "`.numpy()` reads"),
    "refusing the decoys": (  # raises in the first call and in no other
        "factor = 1\n    globals()['calls'] = globals().get('calls', 0) + 1\n"
        "    if calls == 1: raise ValueError('not these')",
        "For other values of the same shapes the function raised ValueError: not these"),
}


@pytest.mark.parametrize("host", PASS.values(), ids=PASS)
def test_host_code_that_plans_with_shapes_passes(host: str, sandbox: Any, tmp_path: Path) -> None:
    report = graded(tmp_path / "kernel.py", sandbox, host)

    assert report.verdict is Verdict.PASSED, report.first_failure


@pytest.mark.parametrize(("host", "words"), FAIL.values(), ids=FAIL)
def test_host_code_that_plans_with_values_fails(
    host: str, words: str, sandbox: Any, tmp_path: Path
) -> None:
    report = graded(tmp_path / "kernel.py", sandbox, host)

    finding = report.first_failure.findings[0]
    assert (finding.code, words in finding.seen) == ("X01", True), finding.seen
    assert finding.line is not None


def test_a_suite_may_deny_copies_by_the_host(sandbox: Any, tmp_path: Path) -> None:
    path = tmp_path / "kernel.py"

    report = graded(path, sandbox, "factor = 1", moves="deny")

    assert [r.verdict for r in report.results[:2]] == [Verdict.PASSED, Verdict.FAILED]
    finding = report.first_failure.findings[0]
    copies = 1 + path.read_text().splitlines().index("    x = x.contiguous()")
    assert (finding.code, finding.line) == ("X01", copies)
