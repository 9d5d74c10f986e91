"""Hidden tests of precise errors: arguments, failed launches, fallbacks, and the product itself."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from typing import Any

import torch

from grader.suite import (
    FLOATS,
    TENSOR_CORES,
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
    error_bounds,
    integers,
    performance,
    rand,
    row,
    rows,
    sizes,
)

INF, NAN = math.inf, math.nan
Told = Mapping[str, Any]  # a driver's answer: classes, message, fields; launches, warnings, result


class InputValidationError(ValueError):
    """Stands for the class of that name in the learner's file."""


class InputTypeError(InputValidationError, TypeError):
    """The same."""


# ---------------------------------------------------------------------------------------------
# The product, which is given and must stay right


def product(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    return a.double() @ b.double()


def pair(m: int, k: int, n: int, **options: Any) -> tuple[Input, Input]:
    """Two matrices that can be multiplied, m x k and k x n."""
    return rand(m, k, **options), rand(k, n, **options)


matmul_robust = Function(
    "matmul_robust", ("a", "b"),
    reference=product,
    tolerance=Tolerance(error_bounds.matmul, TENSOR_CORES, products=(0, 1)),
    contiguous_result=True,
    moves="deny",  # strides are supported, so there is nothing to copy
    peer=lambda a, b: (a.float() @ b.float()).to(a.dtype),
    reversed_peer=lambda a, b: (a.float().flip(1) @ b.float().flip(0)).to(a.dtype),
    cost=lambda a, b: Cost(
        bytes=(a.numel() + b.numel() + a.shape[0] * b.shape[1]) * a.element_size(),
        flops=2 * a.numel() * b.shape[1]),
    bench=Bench("rows and columns", (256, 1_024, 4_096),
                lambda n: pair(n, n, n, dtype="float16"), at="square matrices of float16",
                peer=torch.matmul, peer_name="torch.matmul"),
    cases=[
        correctness("65 x 33 times 33 x 63 floats", *pair(65, 33, 63), public=True),
        correctness("128 x 64 times 64 x 128 in float16", *pair(128, 64, 128, dtype="float16"),
                    public=True),
        correctness("65 x 33 times 33 x 63 in bfloat16", *pair(65, 33, 63, dtype="bfloat16"),
                    public=True),
        correctness("300 x 16 times 16 x 40 floats", *pair(300, 16, 40)),
        correctness("40 x 16 times 16 x 300 floats", *pair(40, 16, 300)),
        correctness("sums of 1024 numbers around 0.5 in float16",
                    *pair(40, 1_024, 48, dtype="float16", mean=0.5)),
        correctness("integers in float16", integers(70, 64, dtype="float16"),
                    integers(64, 50, dtype="float16")),
        correctness("70 x 6 times 6 x 40 floats around 4", *pair(70, 6, 40, mean=4.0)),
        edge("no rows", *pair(0, 64, 32), launches=0),
        edge("no columns", *pair(32, 64, 0), launches=0),
        edge("K is 0: the result is zero", *pair(70, 0, 33)),
        edge("1 x 1 times 1 x 1", *pair(1, 1, 1), public=True),
        edge("one row, in float16", *pair(1, 100, 40, dtype="float16")),
        edge("one column, in float16", *pair(40, 100, 1, dtype="float16")),
        edge("b is transposed", rand(40, 7, mean=4.0), rand(50, 7, mean=4.0).mT),
        edge("every other row of a, columns 30 to 99 of b", rand(80, 40)[::2],
             rand(40, 130)[:, 30:100]),
        edge("an expanded row", rand(1, 5, mean=4.0).then(lambda t: t.expand(70, -1)),
             rand(5, 33, mean=-4.0)),
        edge("NaN and infinity stay in their rows",
             rows(row(40, {7: NAN}), row(40, {3: INF}), row(40)), rand(40, 33)),

        sizes(lambda m, k, n, dtype: pair(m, k, n, dtype=dtype),
              m=(1, 100), k=(1, 200), n=(1, 100), dtype=FLOATS),

        performance("256 x 256 times 256 x 256 in float16, counted",
                    *pair(256, 256, 256, dtype="float16"),
                    traffic=(2 * 256 / 32 + 1) / 3, launches=1, tensor_cores=True),
    ],
)


# ---------------------------------------------------------------------------------------------
# Arguments


A, B = rand(2, 3), rand(3, 5)


def accepted(name: str, a: Any, b: Any, *more: Any, device: str = "cpu") -> Case:
    """Arguments within the contract: a problem with their sizes, dtype and device."""

    def check(made: Told, a: torch.Tensor, b: torch.Tensor, *_: Any) -> None:
        wanted = {"type": "MatmulProblem", "M": a.shape[0], "N": b.shape[1], "K": a.shape[1],
                  "dtype": str(a.dtype), "device": device}
        wrong = {field: made.get(field) for field, value in wanted.items()
                 if made.get(field) != value}
        field = next(iter(wrong), "")
        assert not wrong, (f"{name}: `{field}` of what validate_matmul returned is "
                           f"{wrong[field]}, expected {wanted[field]}")

    return call(f"accepted: {name}", "validate_matmul", a, b, *more, check=check)


def types(name: str, *inputs: Any, mentions: Sequence[str]) -> Case:
    return call(f"refused: {name}", "validate_matmul", *inputs, raises=InputTypeError,
                mentions=mentions)


def values(name: str, *inputs: Any, mentions: Sequence[str]) -> Case:
    return call(f"refused: {name}", "validate_matmul", *inputs, raises=InputValidationError,
                mentions=mentions)


acceptances: list[Case] = [
    accepted("two tensors on the CPU", A, B),
    accepted("float16 with a result", rand(4, 8, dtype="float16"), rand(8, 4, dtype="float16"),
             rand(4, 4, dtype="float16")),
    accepted("bfloat16", *pair(4, 8, 2, dtype="bfloat16")),
    accepted("a transposed view and every other row", rand(8, 4).mT, rand(16, 6)[::2]),
    accepted("a result that is a transposed view", A, B, rand(5, 2).mT),
    accepted("an expanded row", rand(1, 8).then(lambda t: t.expand(4, -1)), rand(8, 3)),
    accepted("no rows", rand(0, 8), rand(8, 3), rand(0, 3)),
    accepted("K is 0", rand(4, 0), rand(0, 3)),
    accepted("1 x 1 times 1 x 1", rand(1, 1), rand(1, 1)),
    accepted("meta tensors", A.on_meta(), B.on_meta(),
             device="meta"),
    accepted("meta tensors with a meta result", A.on_meta(), B.on_meta(),
             rand(2, 5).on_meta(), device="meta"),  # all of them begin at address 0
    accepted("float64, if allowed", *pair(4, 8, 3, dtype="float64"), None, ["float64"]),
]

refusals: list[Case] = [
    types("a is a list", [[1.0, 2.0]], B, mentions=("a: expected", "list")),
    types("b is None", A, None, mentions=("b: expected", "None")),
    types("b is a number", A, 2.0, mentions=("b: expected", "float")),
    types("a is a NumPy array", "some numpy", B, mentions=("a: expected", "ndarray")),
    types("a is an object", "some object", B, mentions=("a: expected", "object")),
    types("b is a generator", A, "some generator", mentions=("b: expected", "generator")),
    types("b is the class torch.Tensor", A, "some tensor type", mentions=("b: expected", "got")),
    types("the result is a list", A, B, [[1.0]], mentions=("out: expected", "list")),
    types("the result is False", A, B, False, mentions=("out: expected", "bool")),
    types("float64", *pair(2, 3, 5, dtype="float64"), mentions=("a: expected", "float64")),
    types("int32", *pair(2, 3, 5, dtype="int32"), mentions=("a: expected", "int32")),
    types("complex64", *pair(2, 3, 5, dtype="complex64"), mentions=("a: expected", "complex64")),
    types("float16 times float32", rand(2, 3, dtype="float16"), B,
          mentions=("b: expected", "float16", "float32")),
    types("float32 times int64", A, rand(3, 5, dtype="int64"),
          mentions=("b: expected", "int64")),
    types("a result of another dtype", A, B, rand(2, 5, dtype="bfloat16"),
          mentions=("out: expected", "bfloat16", "float32")),
    types("float16, where only float32 is allowed", *pair(2, 3, 5, dtype="float16"), None,
          ["float32"], mentions=("a: expected", "float16", "float32")),
    values("a has one dimension", rand(3), B, mentions=("a: expected", "1")),
    values("b has one dimension", A, rand(3), mentions=("b: expected", "1")),
    values("a has three dimensions", rand(7, 2, 3), B, mentions=("a: expected", "3")),
    values("b has no dimensions", A, rand(), mentions=("b: expected", "0")),
    values("inner sizes differ by one", rand(128, 64), rand(63, 32),
           mentions=("b: expected", "64", "63")),
    values("b should have been transposed", rand(31, 64), rand(29, 64),
           mentions=("b: expected", "64", "29")),
    values("an inner size of one is not broadcast", rand(31, 1), rand(29, 17),
           mentions=("b: expected", "1", "29")),
    values("inner sizes differ and the result is empty", rand(0, 64), rand(63, 32),
           mentions=("b: expected", "64", "63")),
    values("a has no columns and b has three rows", rand(4, 0), rand(3, 5),
           mentions=("b: expected", "0", "3")),
    values("a result with rows and columns swapped", A, B, rand(5, 2),
           mentions=("out: expected", "(2, 5)", "(5, 2)")),
    values("a result of another width", A, B, rand(2, 6), mentions=("out: expected", "(2, 6)")),
    values("a result of one dimension", A, B, rand(10), mentions=("out: expected", "10")),
    values("b on another device", A, B.on_meta(), mentions=("b: expected", "cpu", "meta")),
    values("a on another device than b", A.on_meta(), B, mentions=("b: expected", "meta", "cpu")),
    values("a result on another device", A, B, rand(2, 5).on_meta(),
           mentions=("out: expected", "cpu", "meta")),
]

PROBLEM = re.compile(r"(\w+): expected .+, got .+", re.DOTALL)
ADDRESS = re.compile(r"\b0x[0-9a-fA-F]{5,}")


def what_came(answer: Told) -> str:
    return f"{answer['types'][0]} ({answer['message']:.200})" if answer["types"] else "nothing"


def several(name: str, kind: str, names: Sequence[str], *inputs: Any,
            words: Sequence[str] = ()) -> list[Case]:
    """More than one problem: all of them in one exception, in the order of the arguments."""

    def check_kind(answer: Told, *_: Any) -> None:
        assert kind in answer["types"], f"{name} raised {what_came(answer)}, expected {kind}"
        assert kind == "InputTypeError" or "TypeError" not in answer["types"], (
            f"{name} raised an InputTypeError, and not every problem is about a type")

    def check(answer: Told, *_: Any) -> None:
        assert answer["types"], f"{name} raised nothing"
        problems = answer["problems"]
        assert problems, f"the {answer['types'][0]} for {name} has no list `problems`"
        for problem in problems:
            assert PROBLEM.fullmatch(problem), (
                f"{name}: {problem!r:.120} does not have the form `name: expected ..., got ...`")
        found = [problem.partition(":")[0] for problem in problems]
        missing = [one for one in names if one not in found]
        assert not missing, (
            f"{name}: `problems` has {len(problems)} string{'s' * (len(problems) > 1)}, and none "
            f"is about {' or '.join(f'`{one}`' for one in missing)}; a caller who fixes one "
            f"argument then meets the next problem")
        run = [one for place, one in enumerate(found) if place == 0 or found[place - 1] != one]
        assert run == list(names), (
            f"{name}: `problems` is about {', '.join(run)}, expected {', '.join(names)}, in the "
            f"order of the arguments")
        text = " ".join(problems)
        lacking = [word for word in words if word not in text]
        assert not lacking, (f"{name}: no string of `problems` mentions {' or '.join(lacking)}: "
                             f"{text!r:.200}")
        untold = [problem for problem in problems if problem not in answer["message"]]
        assert not untold, (f"{name}: the message {answer['message']!r:.120} does not contain "
                            f"{untold[0]!r:.120} of `problems`")

    return [call(f"the class for {name}", "refusal", *inputs, check=check_kind, code="E02"),
            call(f"problems: {name}", "refusal", *inputs, check=check, code="E03",
                 public=name == "three wrong types")]


def check_address(answer: Told, *_: Any) -> None:
    assert answer["types"], "two arguments that are not tensors raised nothing"
    found = ADDRESS.search(answer["message"])
    assert not found, (
        f"the message contains {found[0] if found else ''}, an address that differs from run to "
        f"run: {answer['message']!r:.160}. Equal errors cannot be grouped in a log")


problems: list[Case] = [
    *several("three wrong types", "InputTypeError", ("a", "b", "out"), [1.0], None, 3.0,
            words=("list", "None", "float")),
    *several("sizes, a dtype and a result at once", "InputValidationError", ("b", "out"),
            rand(2, 3), rand(4, 5, dtype="float16"), rand(2, 6), words=("float16", "(2, 6)")),
    *several("integers of three dimensions, None, and a list", "InputValidationError",
            ("a", "b", "out"), rand(7, 2, 3, dtype="int32"), None, [],
            words=("int32", "3", "None", "list")),
    *several("a wrong dtype beside a wrong shape", "InputValidationError", ("b", "out"),
            A, rand(3, 5, dtype="float16"), rand(5, 2), words=("float16", "(5, 2)")),
    *several("dtypes of b and of the result", "InputTypeError", ("b", "out"),
            A, rand(3, 5, dtype="float16"), rand(2, 5, dtype="float64")),
    *several("a vector, another device, and a result of the wrong dtype", "InputValidationError",
            ("a", "b", "out"), rand(3), B.on_meta(), rand(2, 5, dtype="float16"),
            words=("meta", "float16")),
    *several("a result of the wrong shape, dtype and device", "InputValidationError", ("out",),
            A, B, rand(3, 5, dtype="float16").on_meta(), words=("(3, 5)", "float16", "meta")),
    *several("one problem only", "InputValidationError", ("b",), rand(2, 3), rand(4, 5)),
    call("problems: no address of an object", "refusal", "some object", "some function",
         check=check_address, code="E03"),
]


def overlap(where: str, shared: int) -> Case:
    """A result in the memory of an input, by its place there."""

    def check(answer: Told, *_: Any) -> None:
        assert answer["types"], (
            f"out is {where} and shares {shared} bytes with an input; nothing was raised, and the "
            f"product depends on the order of the programs")

    return call(f"out is {where}", "in_one_buffer", where, check=check, code="N01")


def overlap_told(where: str) -> Case:
    """The same, and how it is reported."""

    def check(answer: Told, *_: Any) -> None:
        assert "InputValidationError" in answer["types"] and "TypeError" not in answer["types"], (
            f"out is {where}, which raised {what_came(answer)}, expected InputValidationError")
        assert any(problem.startswith("out: ") for problem in answer["problems"] or ()), (
            f"out is {where}; `problems` is {answer['problems']!r:.160}, and no string begins "
            f"with `out: `")

    return call(f"out is {where}: how it is reported", "in_one_buffer", where, check=check,
                code="E02")


def beside(where: str) -> Case:
    """A result in the same buffer as an input that shares none of its bytes."""

    def check(answer: Told, *_: Any) -> None:
        assert not answer["types"], (
            f"out lies in the same buffer as an input, {where}, and shares no byte with it; that "
            f"raised {what_came(answer)}")

    return call(f"out in the same buffer, {where}", "in_one_buffer", where, check=check,
                code="R01")


memory: list[Case] = [
    overlap("the same tensor", 64),
    overlap("the last 16 elements of a", 64),
    overlap("the last element of b", 4),
    overlap("a transposed view", 64),
    overlap("a view of the same bytes", 64),
    overlap("storage made anew", 64),
    overlap("in the last row of an a with gaps", 32),
    overlap_told("the same tensor"),
    overlap_told("the last element of b"),
    beside("right behind a"),
    beside("right before b"),
    beside("between a and b"),
    beside("behind a row that a repeats"),
    beside("no elements"),
]

WHICH = {
    "sizes": "matmul_robust of (2, 3) and (4, 5)",
    "dtypes": "matmul_robust of float32 and float16",
    "type": "validate_matmul of a tensor and None",
    "out": "validate_matmul with a result of the wrong shape",
    "pick_block": "pick_block(-1)",
}


def without_assertions(which: str) -> Case:
    """A wrong call where Python leaves assertions out."""

    def check(answer: Sequence[Told], *_: Any) -> None:
        plain, optimized = answer
        what = WHICH[which]
        assert optimized["types"] or not plain["types"], (
            f"{what} raised {plain['types'][0]}, and under `python -O`, which removes assertions, "
            f"it raised nothing" + ("; the kernel was launched" * bool(optimized["launches"])))
        assert plain["types"], f"{what} raised nothing, with and without assertions"
        assert not plain["launches"] + optimized["launches"], (
            f"{what} raised {plain['types'][0]} after a launch; it must be rejected before")

    return call(f"under python -O: {which}", "optimized", which, check=check, code="E01",
                public=which == "sizes")


# ---------------------------------------------------------------------------------------------
# Errors, and launches that fail


PARENTS = {
    "TritonKernelError": ("Exception",),
    "InputValidationError": ("TritonKernelError", "ValueError"),
    "InputTypeError": ("InputValidationError", "TypeError"),
    "KernelCompilationError": ("TritonKernelError",),
    "KernelResourceError": ("TritonKernelError",),
    "KernelExecutionError": ("TritonKernelError",),
}


def check_class(answer: Told, name: str) -> None:
    parents = answer["parents"]
    assert parents is not None, f"the file defines no class `{name}`"
    missing = [parent for parent in PARENTS[name] if parent not in parents]
    assert not missing, f"{name} is not a {missing[0]}, so a handler for that does not catch it"
    others = [name for name in ("ValueError", "TypeError", "RuntimeError") if name in parents]
    allowed = {"InputValidationError": ["ValueError"], "InputTypeError": ["ValueError",
                                                                          "TypeError"]}
    assert others == allowed.get(name, []), (
        f"{name} is a {' and a '.join(others)} too; a handler for these catches more than the "
        f"contract says")


def check_copied(answer: Told, name: str) -> None:
    assert answer["parents"] is not None, f"the file defines no class `{name}`"
    assert answer["came"] == name, (
        f"a call that must raise {name} raised {answer['came'].replace('NoneType', 'nothing')}")
    assert answer["copied"], (f"{name} does not survive pickling with all its fields, and "
                              f"that is how processes send exceptions to each other")


MAPPED = {
    "compilation": ("KernelCompilationError", "triton.CompilationError"),
    "static_assert": ("KernelCompilationError", "a static assertion that is false"),
    "shared memory": ("KernelResourceError", "triton.OutOfResources"),
    "threads": ("KernelResourceError", "triton.OutOfResources of threads"),
    "memory": ("KernelResourceError", "torch.OutOfMemoryError"),
    "device": ("KernelExecutionError", "torch.AcceleratorError"),
    "cuda": ("KernelExecutionError", "torch.cuda.CudaError"),
    "text": ("KernelExecutionError", "a RuntimeError that begins with CUDA error"),
    "driver": ("KernelExecutionError", "a RuntimeError that begins with Triton Error [CUDA]"),
}
PASSING = {
    "bug": "a TypeError", "value": "a ValueError", "attribute": "an AttributeError",
    "assertion": "an AssertionError", "host memory": "a MemoryError",
    "other": "a RuntimeError of torch", "mentioned": "a RuntimeError with CUDA error in the middle",
    "text elsewhere": "a ValueError that begins with CUDA error",
    "interrupt": "KeyboardInterrupt", "exit": "SystemExit",
    "own validation": "an InputValidationError", "own resource": "a KernelResourceError",
}


def check_handled(answer: Told, kind: str) -> None:
    """Whether the handlers themselves can be evaluated."""
    raised = answer["types"][:1]
    assert raised not in (["AttributeError"], ["NameError"], ["ImportError"]), (
        f"while {MAPPED[kind][1]} was handled, {raised[0]} came: {answer['message']:.160}")


def check_mapped(answer: Told, kind: str, *_: Any) -> None:
    wanted, what = MAPPED[kind]
    assert answer["types"], f"a launch that raised {what} returned as if it had worked"
    assert answer["types"][0] == wanted, (
        f"{what} arrived as {what_came(answer)}, expected {wanted}")


def check_cause(answer: Told, kind: str, *_: Any) -> None:
    check_mapped(answer, kind)
    wanted, what = MAPPED[kind]
    assert answer["caused"], (
        f"`__cause__` of the {wanted} is not what the launch raised ({what}): the message "
        f"of the compiler or the device is missing from the log")


def check_words(answer: Told, kind: str) -> None:
    check_mapped(answer, kind)
    assert "rotate" in answer["message"], (
        f"the message {answer['message']!r:.160} does not name the operation, which was `rotate`")
    assert not ADDRESS.search(answer["message"]), (
        f"the message {answer['message']!r:.160} contains an address")


def check_numbers(answer: Told, kind: str) -> None:
    check_mapped(answer, kind)
    got = tuple(answer[name] for name in ("required", "limit", "resource"))
    wanted = {"shared memory": (300_000, 232_448, "shared memory"),
              "threads": (2_048, 1_024, "threads")}.get(kind)
    if wanted is not None:
        assert got == wanted, (
            f"required, limit and resource are {got}; Triton's error said {wanted}")
        return
    assert got[:2] == (0, 0) and isinstance(got[2], str) and "memory" in got[2], (
        f"required, limit and resource are {got}; torch's error has no numbers, so 0, 0 "
        f"and a kind of memory are expected")


def check_passes(answer: Told, kind: str, *_: Any) -> None:
    assert answer["types"], f"{PASSING[kind]} from a launch was swallowed"
    assert answer["itself"], (
        f"{PASSING[kind]} arrived as {what_came(answer)}; an exception that is not a failure of "
        f"the compiler or the device passes through as it is")


def check_returned(answer: Told, waits: bool) -> None:
    assert not answer["types"], f"a launch that works ended with {what_came(answer)}"
    assert answer["answer"] == ["the value", 7], (
        f"the launch returned ['the value', 7], and safe_launch {answer['answer']!r:.60}; the "
        f"result of the launch belongs to the caller")
    wanted = ["launch", "synchronize"] if waits else ["launch"]
    assert answer["calls"] == wanted, (
        f"{' and then '.join(answer['calls']) or 'nothing'} was called, expected "
        f"{' and then '.join(wanted)}: " + (
            "with `synchronize`, the failures of this launch are raised here" if waits
            else "waiting after every launch keeps the host from preparing the next one"))


def check_late(answer: Told, kind: str, late: bool) -> None:
    """What `synchronize` raises; whether and how often it is called is judged elsewhere."""
    if "failed" in answer["calls"]:
        check_mapped(answer, kind)


launches: list[Case] = [
    *(call(f"safe_launch: {MAPPED[kind][1]} reaches a working handler", "safe_launch", kind,
           check=check_handled, code="E02") for kind in ("cuda", "text")),
    *(call(f"safe_launch: {what} becomes a {wanted}", "safe_launch", kind, check=check_mapped,
           code="E02", public=kind == "shared memory")
      for kind, (wanted, what) in MAPPED.items()),
    *(call(f"safe_launch: {what} passes through", "safe_launch", kind, check=check_passes,
           code="E02") for kind, what in PASSING.items()),
    *(call(f"safe_launch: {what} is the cause", "safe_launch", kind, check=check_cause, code="E03")
      for kind, (_, what) in MAPPED.items()),
    *(call(f"safe_launch: the message for {MAPPED[kind][1]}", "safe_launch", kind,
           check=check_words, code="E03") for kind in ("compilation", "memory", "driver")),
    *(call(f"safe_launch: the numbers of {MAPPED[kind][1]}", "safe_launch", kind,
           check=check_numbers, code="E03") for kind in ("shared memory", "threads", "memory")),
    call("safe_launch: a launch that works", "returned", False, check=check_returned),
    call("safe_launch: synchronize where it is given", "returned", True, check=check_returned),
    *(call(f"safe_launch: synchronize finds {MAPPED[kind][1]}", "safe_launch", kind, True,
           check=check_late, code="E02") for kind in ("device", "text")),
    *(call(f"errors: the parents of {name}", "errors", name, check=check_class, code="E02")
      for name in PARENTS),
    *(call(f"errors: {name} survives pickling", "errors", name, check=check_copied, code="E02")
      for name in list(PARENTS)[1:]),
]


# ---------------------------------------------------------------------------------------------
# matmul_robust


CONFIGS = ((128, 64, 32, 8, 3), (64, 32, 32, 4, 2), (32, 32, 16, 4, 1))
ONCE = "shared memory"
EVERY = {(ONCE,): "every launch", (ONCE, ""): "the first launch",
         (ONCE, ONCE, ""): "the first two launches"}
ORDINALS = ("first", "second", "third")


def story(faults: Sequence[str], policy: str) -> str:
    """What the launches of a call did, for the beginning of a sentence."""
    ends = ["works" if not kind else f"ends in {(MAPPED.get(kind) or ['', PASSING[kind]])[1]}"
            for kind in faults]
    told_ = ", ".join(f"the {place} launch {end}"
                      for place, end in zip(ORDINALS, ends, strict=False)) if len(ends) > 1 else (
        f"every launch {ends[0]}")
    return f"with policy {policy!r}, where {told_}"


def check_values(answer: Told, a: torch.Tensor, b: torch.Tensor, what: str) -> None:
    """Whether a result is the product; what else a call may end with is judged elsewhere."""
    result = answer["result"]
    if result is None:
        return
    assert result["values"] is not None, (
        f"{what}, a {result['type'].replace('NoneType', 'None')} came back, expected a tensor")
    exact = product(a, b)
    assert result["shape"] == list(exact.shape), (
        f"{what}, the result has shape {result['shape']}, expected {list(exact.shape)}")
    got = torch.tensor(result["values"], dtype=torch.float64).view(exact.shape)
    assert got.any() or not exact.any(), f"{what}, the result is all 0"
    near = 0.02 if result["dtype"] != "float32" else 1e-4
    wrong = ~((got - exact).abs() <= near * (1 + exact.abs()))
    left = int((got == 12_345.0).sum())
    assert not left, (f"{what}, {left} of {got.numel()} elements are what a launch had written "
                      f"before it failed")
    assert not wrong.any(), f"{what}, {int(wrong.sum())} of {got.numel()} elements are wrong"


def robust(name: str, faults: Sequence[str], policy: str, *, code: str, check: Any,
           configs: Sequence[tuple[int, ...]] = CONFIGS, m: int = 5,
           dtype: str = "float32", public: bool = False) -> Case:
    """A call with launches that fail; ``check`` gets what came, the inputs and a description."""

    def checked(answer: Told, _faults: Any, _policy: Any, a: torch.Tensor, b: torch.Tensor,
                *_: Any) -> None:
        check(answer, a, b, story(faults, policy))

    return call(f"matmul_robust: {name}", "recovery", list(faults), policy, rand(m, 7, dtype=dtype),
                rand(7, 4, dtype=dtype), [list(config) for config in configs],
                check=checked, code=code, public=public)


def nothing_else(answer: Told, a: torch.Tensor, b: torch.Tensor, what: str) -> None:
    """The product or an exception."""
    check_values(answer, a, b, what)


def tiles(configs: Sequence[Sequence[int]]) -> str:
    return ", ".join(" x ".join(map(str, config[:3])) for config in configs)


def tries(count: int, configs: Sequence[tuple[int, ...]] = CONFIGS) -> Any:
    """Which configurations are launched, each once, the largest first."""

    def check(answer: Told, a: torch.Tensor, b: torch.Tensor, what: str) -> None:
        wanted = [list(config) for config in configs[:count]]
        got = answer["tried"]
        blocks = tiles(got) or "none"
        assert len({*map(tuple, got)}) == len(got), (
            f"{what}, {len(got)} launches were made with blocks of {blocks}: the same "
            f"configuration again asks for the same resources")
        assert got == wanted, (
            f"{what}, launches were made with blocks of {blocks}, expected "
            f"{tiles(wanted) or 'none'}")

    return check


def raises(wanted: str, count: int = 0) -> Any:
    """The class of the error that ends the call, with its cause, and no warning or count."""

    def check(answer: Told, a: torch.Tensor, b: torch.Tensor, what: str) -> None:
        assert answer["types"], f"{what}, a result came back, expected {wanted}"
        assert answer["types"][0] == wanted, f"{what}, {what_came(answer)} came, expected {wanted}"
        assert not answer["counted"] and not runtime_warnings(answer), (
            f"{what}, an exception was raised, and a fallback was reported too")
        assert not count or len(answer["tried"]) == count, (
            f"{what}, {len(answer['tried'])} launches were made, expected {count}: smaller tiles "
            f"do not fix a failure of this kind")

    return check


def keeps_cause(answer: Told, a: torch.Tensor, b: torch.Tensor, what: str) -> None:
    """Whether the last error remembers what its launch had raised, after others had failed."""
    assert answer["types"], f"{what}, a result came back, expected an error"
    assert answer["caused"], (
        f"{what}, {what_came(answer)} came: `__cause__` of the {answer['types'][0]} is not what "
        f"the last launch had raised")


def passes(kind: str) -> Any:
    def check(answer: Told, a: torch.Tensor, b: torch.Tensor, what: str) -> None:
        check_passes(answer, kind)
        assert len(answer["tried"]) == 1, (
            f"{what}, {len(answer['tried'])} launches were made after {PASSING[kind]}")

    return check


def runtime_warnings(answer: Told) -> list[str]:
    return [message for kinds, message, _ in answer["warnings"] if "RuntimeWarning" in kinds]


def other_warnings(answer: Told) -> str:
    """The classes of warnings that are none of these, for the end of a sentence."""
    others = {kinds[0] for kinds, _, _ in answer["warnings"] if "RuntimeWarning" not in kinds}
    return f" (a {' and a '.join(sorted(others))} was raised instead)" if others else ""


def is_told(answer: Told, a: torch.Tensor, b: torch.Tensor, what: str) -> None:
    """Whether a result that torch made is told at all, by a warning and by the counter."""
    if answer["types"]:
        return  # no result, which others judge
    warned, counted = bool(runtime_warnings(answer)), bool(answer["counted"])
    assert warned and counted, (
        f"{what}, a result was returned {'with' if warned else 'without'} a RuntimeWarning"
        f"{'' if warned else other_warnings(answer)}, and `matmul_robust.fallbacks` "
        f"{'grew' if counted else 'did not change'}: a fallback must be visible "
        f"in {'the counter' if warned else 'the warnings' if counted else 'both'}")


def check_told_once(answer: Told, what: str, *words: str) -> None:
    """One warning that names operation and reason, and one more in the counter."""
    assert not answer["types"], f"{what}, {what_came(answer)} came, expected the product"
    told, counted = runtime_warnings(answer), answer["counted"]
    assert counted is not None, (
        "`matmul_robust.fallbacks` is not an int; it counts from 0 when the file has been "
        "imported")
    assert len(told) == 1, (
        f"{what}, {len(told)} RuntimeWarnings were raised, expected one per call"
        f"{'' if told else other_warnings(answer)}")
    assert counted == 1, f"{what}, `matmul_robust.fallbacks` grew by {counted}, expected 1"
    missing = [word for word in ("matmul", *words) if word not in told[0]]
    assert not missing, f"{what}, the warning {told[0]!r:.160} does not name {missing[0]!r}"


def tells(*words: str) -> Any:
    def check(answer: Told, a: torch.Tensor, b: torch.Tensor, what: str) -> None:
        check_told_once(answer, what, *words)
        check_values(answer, a, b, what)

    return check


def quiet(answer: Told, a: torch.Tensor, b: torch.Tensor, what: str) -> None:
    assert not answer["types"], f"{what}, {what_came(answer)} came, expected the product"
    told = runtime_warnings(answer)
    assert not told and not answer["counted"], (
        f"{what}, the kernel computed the result, and {len(told)} RuntimeWarnings and "
        f"{answer['counted']} fallbacks were reported")


def check_twice(answer: Sequence[Told], a: torch.Tensor, b: torch.Tensor) -> None:
    for call_, falls in zip(answer, (True, False, True), strict=True):
        if falls:
            check_told_once(call_, "in three calls, of which the first and the last fall back")
        else:
            quiet(call_, a, b, "in three calls, of which the second does not fall back")


def check_first(answer: Any) -> None:
    assert type(answer) is int and answer == 0, (
        f"`matmul_robust.fallbacks` is {answer!r:.40} when the file has just been imported, "
        f"expected 0: it is read before the first fallback, too")


def check_default(wanted: str) -> Any:
    def check(answer: Told, kind: str, policy: str, a: torch.Tensor, b: torch.Tensor) -> None:
        what = f"without `launch`, with policy {policy!r}, where every launch fails ({kind})"
        if wanted:
            assert answer["types"], f"{what}, a result came back, expected {wanted}"
            assert answer["types"][0] == wanted, (
                f"{what}, {what_came(answer)} came, expected {wanted}")
        else:
            check_told_once(answer, what)
        check_values(answer, a, b, what)
        most = answer["configs"] if wanted in ("", "KernelResourceError") else 1
        assert len(answer["tried"]) == most, (
            f"{what}, {len(answer['tried'])} launches were made, expected {most}")

    return check


FIVE = ((128, 128, 64, 8, 4), *CONFIGS, (16, 16, 16, 1, 1))
BATCH = rand(2, 3, 4)

recovery: list[Case] = [
    *(robust(f"{EVERY[faults]} of too little shared memory, policy {policy}, never zeros",
             faults, policy, code="N01", check=nothing_else)
      for faults in ((ONCE,), (ONCE, ""), (ONCE, ONCE, ""))
      for policy in ("raise", "fallback")),
    robust("every launch fails in float16, never zeros", (ONCE,), "fallback", code="N01",
           check=nothing_else, dtype="float16"),
    robust("the device fails, never zeros", ("device",), "fallback", code="N01",
           check=nothing_else),
    robust("compilation fails, never zeros", ("compilation",), "raise", code="N01",
           check=nothing_else),

    robust("a fallback is reported", (ONCE,), "fallback", code="E01", check=is_told, public=True),
    robust("a fallback for too little memory is reported", ("memory",), "fallback", code="E01",
           check=is_told),
    *(call(f"matmul_robust refuses {name}, policy {policy}", "refused", policy, a, b,
           raises=kind, mentions=(word,))
      for name, a, b, kind, word in (
          ("a batch of matrices", BATCH, rand(4, 5), InputValidationError, "a: expected"),
          ("other inner sizes", rand(2, 3), rand(4, 5), InputValidationError, "b: expected"),
          ("a list", [[1.0]], rand(4, 5), InputTypeError, "a: expected"),
          ("float64", *pair(2, 3, 5, dtype="float64"), InputTypeError, "a: expected"))
      for policy in ("raise", "fallback")),
    call("matmul_robust refuses another policy", "refused", "ignore", A, B,
         raises=InputValidationError, mentions=("policy: expected", "ignore")),
    call("matmul_robust refuses no configurations", "refused", "fallback", A, B, [],
         raises=InputValidationError, mentions=("configs: expected",)),

    robust("every launch fails, policy raise", (ONCE,), "raise", code="E02",
           check=raises("KernelResourceError")),
    *(robust(f"{MAPPED[kind][1]} under policy {policy}", (kind,), policy, code="E02",
             check=raises(MAPPED[kind][0], 1))
      for kind in ("compilation", "device", "text") for policy in ("raise", "fallback")),
    robust("the second launch does not compile", (ONCE, "compilation"), "fallback", code="E02",
           check=raises("KernelCompilationError", 2)),
    robust("every launch fails, and the last failure is the cause", (ONCE,), "raise", code="E03",
           check=keeps_cause),
    robust("the second launch does not compile, which is the cause", (ONCE, "compilation"),
           "fallback", code="E03", check=keeps_cause),
    *(robust(f"{PASSING[kind]} passes through", (kind,), "fallback", code="E02",
             check=passes(kind))
      for kind in ("bug", "other", "assertion", "interrupt", "exit")),
    *(call(f"matmul_robust without `launch`: {kind}, policy {policy}", "by_default", kind, policy,
           rand(5, 7), rand(7, 4), check=check_default(wanted), code="E02" if wanted else "Q01")
      for kind, policy, wanted in (
          (ONCE, "raise", "KernelResourceError"), (ONCE, "fallback", ""),
          ("device", "fallback", "KernelExecutionError"),
          ("compilation", "raise", "KernelCompilationError"))),

    robust("no launch fails, without a warning", ("",), "raise", code="Q01", check=quiet),
    robust("the second configuration works, without a warning", (ONCE, ""), "raise",
           code="Q01", check=quiet),
    robust("the third configuration works, without a warning", (ONCE, ONCE, ""), "fallback",
           code="Q01", check=quiet),
    robust("a fallback is reported once, with its reason", (ONCE,), "fallback", code="Q01",
           check=tells(ONCE)),
    robust("a fallback for too little memory is reported once", ("memory",), "fallback", code="Q01",
           check=tells("memory")),
    robust("a fallback with one configuration is reported once", (ONCE,), "fallback", code="Q01",
           check=tells(), configs=CONFIGS[:1]),
    call("matmul_robust: the counter starts at 0", "at_first", check=check_first),
    call("matmul_robust: two calls of three fall back", "twice", rand(5, 7), rand(7, 4),
         check=check_twice),
    robust("tries until one works: the first", ("",), "raise", code="Q01", check=tries(1)),
    robust("tries until one works: the second", (ONCE, ""), "raise", code="Q01", check=tries(2)),
    robust("tries until one works: the third", ("memory", ONCE, ""), "fallback", code="Q01",
           check=tries(3)),
    *(robust(f"tries each configuration once, policy {policy}", (ONCE,), policy, code="Q01",
             check=tries(3)) for policy in ("raise", "fallback")),
    robust("tries one of one", (ONCE,), "fallback", code="Q01", configs=CONFIGS[1:2],
           check=tries(1, CONFIGS[1:2])),
    robust("tries five of five", ("threads",), "fallback", code="Q01", configs=FIVE,
           check=tries(5, FIVE)),
    robust("no row, no launch", ("",), "raise", code="Q01", check=tries(0), m=0),
]


# ---------------------------------------------------------------------------------------------
# checked_outputs and pick_block

PLACES = {  # where a call stands -> whether a result that is not finite has to raise there
    "before_any": ("before any block", False),
    "after": ("after a block", False),
    "after_both": ("after two blocks", False),
    "after_an_exception": ("after a block that an exception left", False),
    # From here on, a wrong file may carry state from one place to the next.
    "inside": ("inside a block", True),
    "after_inner": ("in the outer block, after the inner one", True),
    "after_an_exception_inside": ("in the outer block, after an exception left the inner", True),
    "inner": ("inside two blocks", True),
    "after_what_it_raised": ("after a block that its own exception left", False),
    "once_more": ("in the third block in a row", True),
    "of_the_fallback": ("for the result of a fallback, inside a block", True),
}


def told_not_finite(place: str, value: float = NAN, dtype: str = "float32") -> Case:
    where, has_to = PLACES[place]
    what = f"a result with {value} in {dtype}, {where},"

    def check(answer: Told, *_: Any) -> None:
        if not has_to:
            assert not answer["types"], (
                f"{what} raised {what_came(answer)}; outside of blocks, results are not checked")
            return
        assert answer["types"], f"{what} raised nothing, expected KernelExecutionError"
        assert answer["types"][0] == "KernelExecutionError", (
            f"{what} raised {what_came(answer)}, expected KernelExecutionError")

    return call(f"checked_outputs: {value} in {dtype} {where}", "checked_outputs", place, value,
                dtype, check=check)


def check_finite(answer: Told, *_: Any) -> None:
    assert not answer["types"], (
        f"a finite result inside a block raised {what_came(answer)}")


def check_lets_through(answer: Told, *_: Any) -> None:
    assert answer["types"][:1] == ["LookupError"], (
        f"a LookupError inside a block arrived as {what_came(answer)}")


def check_block(answer: Any, n: int) -> None:
    wanted = 64 if n < 1_000 else 256 if n < 100_000 else 1_024
    assert type(answer) is int and answer == wanted, (
        f"pick_block({n}) is {answer!r:.40}, expected {wanted}")


debugging: list[Case] = [
    *(told_not_finite(place) for place in PLACES),
    told_not_finite("inside", INF),
    told_not_finite("inside", -INF, "bfloat16"),
    told_not_finite("inside", NAN, "float16"),
    call("checked_outputs: the largest float32 inside a block", "checked_outputs", "inside",
         3.4028234663852886e38, check=check_finite),
    call("checked_outputs: another exception inside a block", "checked_outputs",
         "passes_exceptions", check=check_lets_through),
]

blocks: list[Case] = [
    *(call(f"pick_block({n})", "pick_block", n, check=check_block)
      for n in (0, 1, 999, 1_000, 1_001, 99_999, 100_000, 100_001, 1 << 40)),
    call("pick_block(-1)", "pick_block", -1, raises=InputValidationError,
         mentions=("n: expected", "-1")),
    *(call(f"pick_block({value!r})", "pick_block", value, raises=InputTypeError,
           mentions=("n: expected", type(value).__name__.replace("NoneType", "None")))
      for value in (1_000.0, "1000", True, None)),
]


suite = Suite(
    functions=[matmul_robust],
    host={"validate_matmul": ("a", "b", "out"), "pick_block": ("n",)},
    cases=[
        *(without_assertions(which) for which in WHICH),
        *acceptances, *refusals, *problems, *memory, *launches, *recovery, *debugging, *blocks,
    ],
)
