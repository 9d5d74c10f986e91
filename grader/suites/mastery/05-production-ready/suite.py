"""Hidden tests of a package: its kernel, refusals, failures, its own tests, and its documents."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from typing import Any

import torch
import torch.nn.functional as F  # noqa: N812 - torch's own spelling

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
    extremes,
    full,
    integers,
    launchable,
    performance,
    rand,
    reads,
    refuses,
    row,
    row_with,
    rows,
    sibling,
    sizes,
    special,
    wide,
)

texts = sibling(__file__, "texts")
trusted = sibling(__file__, "trusted")

INF, NAN = math.inf, math.nan
MOST_COLUMNS = 65_536
TESTS_S = 60.0  # that the learner's tests may take on one package
ENOUGH = 12  # of the mutants that have to be noticed, all critical ones among them
MARKERS = ("unit", "edge", "property", "regression", "gpu")
SIZES = (10_000, 100_000, 1_000_000, 10_000_000)  # elements that the benchmark covers


class InputValidationError(ValueError):
    """Stands for the class of that name in the learner's package."""


class InputTypeError(InputValidationError, TypeError):
    """The same."""


# ---------------------------------------------------------------------------------------------
# A: the operation


def reference(x: torch.Tensor, residual: torch.Tensor, weight: torch.Tensor,
              eps: float = 1e-6) -> tuple[torch.Tensor, torch.Tensor]:
    """y and s in float64; y is made of the s that is stored."""
    s = x.double() + residual.double()
    rounded = s.to(x.dtype).double()
    mean = rounded.square().mean(-1, keepdim=True)
    return rounded * torch.rsqrt(mean + eps) * weight.double(), s


def amplitude(x: torch.Tensor, residual: torch.Tensor, weight: torch.Tensor,
              eps: float = 1e-6) -> tuple[Amplitude, None]:
    """A row's squares are summed, and half of the sum's relative error arrives at y; s is exact."""
    y, _ = reference(x, residual, weight, eps)
    size = y.abs()
    return Amplitude(pointwise=4 * size, reduced=0.5 * size, length=max(1, x.shape[-1])), None


def cost(x: torch.Tensor, residual: torch.Tensor, weight: torch.Tensor,
         eps: float = 1e-6) -> Cost:
    return Cost(bytes=4 * x.nbytes + weight.nbytes, flops=6 * x.numel())


def peer(x: torch.Tensor, residual: torch.Tensor, weight: torch.Tensor,
         eps: float = 1e-6) -> tuple[torch.Tensor, torch.Tensor]:
    s = x + residual
    wide = s.float()
    rms = torch.rsqrt(wide.square().mean(-1, keepdim=True) + eps)
    return (wide * rms * weight.float()).to(x.dtype), s


def fused(x: torch.Tensor, residual: torch.Tensor, weight: torch.Tensor
          ) -> tuple[torch.Tensor, torch.Tensor]:
    """As few calls of torch as there can be: what a user would write."""
    s = x + residual
    return F.rms_norm(s, s.shape[-1:], weight, 1e-6), s


def reversed_peer(x: torch.Tensor, residual: torch.Tensor, weight: torch.Tensor,
                  eps: float = 1e-6) -> tuple[torch.Tensor, torch.Tensor]:
    y, s = peer(x.flip(-1), residual.flip(-1), weight.flip(-1), eps)
    return y.flip(-1), s.flip(-1)


def three(*shape: int, dtype: str = "float32", **values: Any) -> tuple[Input, Input, Input]:
    """x, residual and weight of one dtype."""
    return (rand(*shape, dtype=dtype, **values), rand(*shape, dtype=dtype, **values),
            rand(shape[-1], dtype=dtype, mean=1.0))


def infinities(columns: int, dtype: str) -> Input:
    """Rows with NaN and infinities, between rows without any."""
    last = columns - 1
    return rows(row(columns), row(columns, {columns // 2: NAN}), row(columns, {last: INF}),
                row_with(columns, -INF, 0, columns), row(columns, {0: INF, last: -INF}),
                row(columns, {0: NAN, last: INF}), row(columns), dtype=dtype)


WIDTHS = (1, 2, 127, 128, 129, 1_000, 4_097)


def _wide(rows_: str, columns: int) -> str:
    return f"{rows_} of one column" if columns == 1 else \
        f"{rows_} of {columns:,} columns".replace(",", " ")


values: list[Case] = [
    correctness("4 x 128 floats", *three(4, 128), public=True),
    correctness("3 x 127 floats, one less than a power of two", *three(3, 127), public=True),
    correctness("4 x 128 in float16", *three(4, 128, dtype="float16"), public=True),
    correctness("4 x 128 in bfloat16", *three(4, 128, dtype="bfloat16")),
    correctness("3 x 129 in float16", *three(3, 129, dtype="float16")),
    correctness("3 x 129 in bfloat16", *three(3, 129, dtype="bfloat16")),
    correctness("2 x 3 x 33 floats", *three(2, 3, 33)),
    correctness("2 x 1 x 3 x 16 in float16", *three(2, 1, 3, 16, dtype="float16")),
    correctness("one dimension, 100 floats", *three(100)),
    correctness("eps of 0.5", *three(4, 100), 0.5),
    correctness("eps of 10, far above the rows", *three(4, 100, std=0.1), 10.0),
    correctness("rows near 1e-4, where eps decides", *three(4, 100, std=1e-4)),
    correctness("rows near 1 000", *three(4, 1_000, mean=1e3)),
    correctness("rows of float16 near 300, whose squares do not fit float16",
                *three(4, 129, dtype="float16", mean=300.0)),
    correctness("small and large numbers side by side",
                wide(4, 129), wide(4, 129), rand(129, mean=1.0)),
    correctness("1 x 65 536 in float16, the widest row", *three(1, 65_536, dtype="float16")),
    *(edge(_wide("one row", columns), *three(1, columns))
      for columns in WIDTHS),
    *(edge(_wide("three rows", columns), *three(3, columns))
      for columns in WIDTHS),
    edge("no rows", *three(0, 128), launches=0),
    launchable("70 000 rows of one column", *three(70_000, 1)),
    edge("no rows in a batch of two, bfloat16", *three(2, 0, 8, dtype="bfloat16"), launches=0),

    # Layouts: what indexing, transposing and expanding hand over without copying.
    edge("every other row, 100 of 200 columns", rand(10, 200)[::2, 50:150],
         rand(10, 200)[::2, 50:150], rand(100), public=True),
    edge("only x is a slice", rand(6, 200)[:, 3:131], rand(6, 128), rand(128)),
    edge("only the residual is a slice", rand(6, 128), rand(12, 128)[::2], rand(128)),
    edge("x is transposed", rand(100, 7).mT, rand(7, 100), rand(100)),
    edge("the residual is transposed, float16", rand(7, 100, dtype="float16"),
         rand(100, 7, dtype="float16").mT, rand(100, dtype="float16")),
    edge("every third column", rand(5, 300)[:, ::3], rand(5, 300)[:, ::3], rand(100)),
    edge("one row repeated five times", rand(1, 64).then(lambda t: t.expand(5, -1)),
         rand(5, 64), rand(64)),
    edge("one column repeated 33 times", rand(5, 1).then(lambda t: t.expand(-1, 33)),
         rand(5, 33), rand(33)),
    edge("a batch whose dimensions changed places",
         rand(3, 4, 40).then(lambda t: t.transpose(0, 1)), rand(4, 3, 40), rand(40)),
    edge("a weight with gaps", rand(4, 50), rand(4, 50), rand(100)[::2]),
    edge("one weight repeated", rand(4, 50), rand(4, 50),
         rand(1).then(lambda t: t.expand(50))),
    edge("all begin at the second element of their memory",
         rand(5 * 129 + 1).then(lambda t: t[1:].view(5, 129)),
         rand(5 * 129 + 1).then(lambda t: t[1:].view(5, 129)), rand(130)[1:]),

    # Special values.
    edge("NaN and infinities", infinities(100, "float32"), rand(7, 100), rand(100)),
    edge("NaN and infinities in float16", infinities(128, "float16"),
         rand(7, 128, dtype="float16"), rand(128, dtype="float16")),
    edge("NaN and infinities in bfloat16", infinities(129, "bfloat16"),
         rand(7, 129, dtype="bfloat16"), rand(129, dtype="bfloat16")),
    edge("NaN in the residual only", rand(7, 100), infinities(100, "float32"), rand(100)),
    edge("rows of zeros", full(3, 100, value=0.0), full(3, 100, value=0.0), rand(100)),
    edge("x and residual cancel out to zero", full(3, 100, value=1.5), full(3, 100, value=-1.5),
         rand(100)),
    edge("all numbers equal", full(3, 127, value=0.1), full(3, 127, value=0.1), rand(127)),
    edge("one huge number", rows(row(1_000, {500: 1e15}), row(1_000)), rand(2, 1_000),
         rand(1_000)),
    edge("both zeros and denormal numbers",
         special(3, 129, values=[0.0, -0.0, 2.0**-149, 2.0**-126], share=1.0),
         full(3, 129, value=0.0), rand(129)),
    edge("numbers at the largest float16",
         special(4, 129, values=extremes("float16"), dtype="float16"),
         integers(4, 129, low=0, high=0, dtype="float16"), rand(129, dtype="float16")),
]


# ---------------------------------------------------------------------------------------------
# B: refusals and failures


X, W = rand(4, 8), rand(8)


def types(name: str, *inputs: Any, mentions: Sequence[str], public: bool = False) -> Case:
    return refuses(name, *inputs, raises=InputTypeError, mentions=mentions, public=public)


def shapes(name: str, *inputs: Any, mentions: Sequence[str]) -> Case:
    return refuses(name, *inputs, raises=InputValidationError, mentions=mentions)


refusals: list[Case] = [
    types("x is a list", [[1.0] * 8] * 4, X, W, mentions=["x", "list"]),
    types("the residual is None", X, None, W, mentions=["residual", "None"]),
    types("the weight is a number", X, X, 2.0, mentions=["weight", "float"]),
    types("float64", *three(4, 8, dtype="float64"), mentions=["x", "float64"]),
    types("int32", *three(4, 8, dtype="int32"), mentions=["x", "int32"]),
    types("a residual of another dtype", X, rand(4, 8, dtype="float16"), W,
          mentions=["residual", "float32", "float16"]),
    types("a weight of another dtype", *(rand(4, 8, dtype="bfloat16"),) * 2, W,
          mentions=["weight", "bfloat16", "float32"]),
    types("eps is a text", X, X, W, "1e-6", mentions=["eps", "str"]),
    types("eps is True", X, X, W, True, mentions=["eps", "bool"]),
    shapes("a number without dimensions", rand(), rand(), W, mentions=["x", "0"]),
    shapes("a residual with fewer columns", X, rand(4, 7), W,
           mentions=["residual", "(4, 8)", "(4, 7)"]),
    shapes("a residual that would have to be repeated", X, rand(1, 8), W,
           mentions=["residual", "(1, 8)"]),
    shapes("a residual without the batch", rand(2, 4, 8), X, W, mentions=["residual", "(4, 8)"]),
    shapes("a weight that is too short", X, X, rand(7), mentions=["weight", "(8,)", "(7,)"]),
    shapes("a weight of two dimensions", X, X, rand(1, 8), mentions=["weight", "(1, 8)"]),
    shapes("a weight for each row", X, X, rand(4), mentions=["weight", "(4,)"]),
    shapes("a residual on another device", X, X.on_meta(), W, mentions=["residual", "meta"]),
    shapes("a weight on another device", X, X, W.on_meta(), mentions=["weight", "meta"]),
    shapes("no columns", rand(4, 0), rand(4, 0), rand(0), mentions=["x", "0"]),
    shapes("65 537 columns", *three(1, 65_537), mentions=["x", "65536", "65537"]),
    shapes("eps of zero", X, X, W, 0.0, mentions=["eps", "0"]),
    shapes("a negative eps", X, X, W, -1e-6, mentions=["eps", "-1e-06"]),
    shapes("eps is NaN", X, X, W, NAN, mentions=["eps", "nan"]),
    shapes("eps is infinite", X, X, W, INF, mentions=["eps", "inf"]),
]


def an_error(answer: Mapping[str, Any], kind: str, *words: str, what: str) -> None:
    """Checks the class of the exception and the words of its message."""
    assert answer["types"], f"{what} raised nothing, expected {kind}"
    raised = answer["types"][0]
    assert "no launch is taken here" not in answer["message"], (
        f"{what} reached a launch, expected {kind} before it")
    assert kind in answer["types"], (
        f"{what} raised {raised} ({answer['message']:.200}), expected {kind}")
    missing = [word for word in words if word not in answer["message"]]
    assert not missing, (f"{what}: the message “{answer['message']:.200}” does not mention "
                         f"{' and '.join(missing)}")


def check_hierarchy(answer: Mapping[str, Any], *_: Any) -> None:
    an_error(answer, "InputTypeError", "weight", what="a weight that is None")
    for above in ("InputValidationError", "TritonKernelError", "ValueError", "TypeError"):
        assert above in answer["types"], (
            f"InputTypeError is not a {above}, so a handler for that does not catch it")
    assert answer["copied"], ("an InputTypeError does not survive pickling, and that is how "
                              "processes send exceptions to each other")


def check_problems(answer: Mapping[str, Any], *_: Any) -> None:
    what = "a residual of a wrong shape, a weight that is None and a negative eps"
    an_error(answer, "InputValidationError", what=what)
    assert "TypeError" not in answer["types"], (
        f"{what} raised {answer['types'][0]}: one of the three is not about a type, so "
        f"expected an InputValidationError that is not an InputTypeError")
    problems = answer["problems"]
    assert isinstance(problems, list), f"the exception for {what} has no list `problems`"
    wanted = ["residual", "weight", "eps"]
    named = [next((name for name in ("x", *wanted) if problem.startswith(name)), problem)
             for problem in problems]
    assert named == wanted, (
        f"for {what}, `problems` should be about residual, weight and eps, in this order; it "
        f"is {problems!r:.300}")


def check_field(answer: Mapping[str, Any], name: str, value: Any) -> None:
    kind = "InputTypeError" if isinstance(value, str | float) or (
        name == "check_outputs") or value is True else "InputValidationError"
    an_error(answer, kind, name, what=f"`Config({name}={value!r})`")


def check_no_config(answer: Mapping[str, Any], *_: Any) -> None:
    an_error(answer, "InputTypeError", "config", what="`config=4`")


def check_narrow(answer: Mapping[str, Any], *_: Any) -> None:
    an_error(answer, "InputValidationError", "x", "7", "8",
             what="a row of 8 columns with Config(max_columns=7)")


def check_fields(answer: Mapping[str, Any]) -> None:
    wanted = {"num_warps": None, "max_columns": MOST_COLUMNS, "check_outputs": False}
    got = {name: default for name, (default, _) in answer.items()}
    assert got == wanted, f"Config has the fields and defaults {got}, expected {wanted}"
    positional = [name for name, (_, kind) in answer.items() if kind != "keyword_only"]
    assert not positional, (
        f"`Config` takes {' and '.join(positional)} by position; a field that is added later would "
        f"then change the meaning of existing calls")


def check_frozen(answer: bool) -> None:
    assert answer is False, ("a field of a Config can be changed after its creation, which "
                             "affects other calls that use it")


MAPPED = {
    "compilation": "KernelCompilationError", "shared memory": "KernelResourceError",
    "memory": "KernelResourceError", "device": "KernelExecutionError",
    "driver": "KernelExecutionError", "text": "KernelExecutionError",
}


def check_failure(answer: Mapping[str, Any], kind: str, *_: Any) -> None:
    what = f"a launch that failed ({kind})"
    if kind not in MAPPED:
        assert answer["itself"], (
            f"{what} raised {(answer['types'] or ['nothing'])[0]}: an exception that is not a "
            f"failure of the compiler or the device passes through as it is")
        return
    an_error(answer, MAPPED[kind], what=what)
    assert answer["caused"], (f"{what}: the original exception is not the __cause__ of "
                              f"the {MAPPED[kind]}, so its message is lost")
    assert answer["launches"] == 1, f"{what} was tried {answer['launches']} times, expected once"
    assert answer["copied"], f"{what}: the {MAPPED[kind]} does not survive pickling"
    if kind == "shared memory":
        got = answer["required"], answer["limit"], answer["resource"]
        assert got == (300_000, 232_448, "shared memory"), (
            f"{what}: required, limit and resource are {got}; expected 300000, 232448 and "
            f"shared memory")


def check_finite(answer: Mapping[str, Any], *_: Any) -> None:
    assert answer["types"] == [], (
        f"`check_outputs=True` raised {answer['types'][0]} for results that are finite")


def check_not_finite(answer: Mapping[str, Any], *_: Any) -> None:
    an_error(answer, "KernelExecutionError", what="`check_outputs=True` with a NaN in y and s")


def check_unchecked(answer: Mapping[str, Any], *_: Any) -> None:
    assert answer["types"] == [], (
        f"without check_outputs, a NaN in x raised {answer['types'][0]}; it belongs in the "
        f"results, and a check would make each call wait for the device")


nan_row = rows(row(8), row(8, {3: NAN}))

robustness: list[Case] = [
    call("the classes of the contract and of Python", "refused", X, X, None,
         check=check_hierarchy, code="E02"),
    call("three problems are reported at once", "refused", X, rand(4, 7), None, -1.0,
         check=check_problems, code="E03"),
    *(call(f"Config({name}={value!r}) is refused", "configured", name, value, check=check_field,
           code="E01")
      for name, value in (("num_warps", 3), ("num_warps", 64), ("num_warps", "4"),
                          ("num_warps", True), ("max_columns", 0), ("max_columns", 65_537),
                          ("max_columns", 1.5), ("check_outputs", 1))),
    call("config is not a Config", "refused_with", "", 4, X, X, W, check=check_no_config,
         code="E02"),
    call("more columns than the config allows", "refused_with", "max_columns", 7, X, X, W,
         check=check_narrow, code="E01"),
    *(call(f"a launch that fails: {kind}", "failing", kind, X, X, W, check=check_failure,
           code="E02")
      for kind in (*MAPPED, "bug", "other", "interrupt", "exit")),
    call("check_outputs and finite results", "refused_with", "check_outputs", True, X, X, W,
         check=check_finite, eager=True),
    call("check_outputs and a NaN", "refused_with", "check_outputs", True, nan_row,
         rand(2, 8), W, check=check_not_finite, eager=True, code="E01"),
    call("no check_outputs and a NaN", "refused_with", "check_outputs", False, nan_row,
         rand(2, 8), W, check=check_unchecked, eager=True, code="E02"),
]


# ---------------------------------------------------------------------------------------------
# C: the learner's tests


def failures(result: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    return [test for test in result["tests"] if test["outcome"] in ("failed", "error")]


def said_by(test: Mapping[str, Any]) -> str:
    """Where a test failed and why. A test whose setup fails counts as neither."""
    begun = "" if test["outcome"] == "failed" else "it cannot be set up: "
    place = f"line {test['line']}, `{test['code']}`: " if test["line"] else ""
    return f"{begun}{place}{test['why']}"


def reached(answers: Mapping[str, Any], tree: str) -> Mapping[str, Any]:
    """The tests' result on one package."""
    answer = answers[tree]
    ended = answer.other or (answer.error and f"{answer.error.types[0]}: {answer.error.message}")
    assert not ended, f"your tests did not finish: {ended}"
    return answer.value


def check_own(result: Mapping[str, Any], *_: Any) -> None:
    assert not result["problems"], f"pytest cannot read your tests: {result['problems'][0]}"
    wrong = failures(result)
    assert not wrong, (f"{len(wrong)} of your {len(result['tests'])} tests "
                       f"{'does' if len(wrong) == 1 else 'do'} not pass on your own package; the "
                       f"first is `{wrong[0]['name']}`: {said_by(wrong[0])}")


def check_markers(result: Mapping[str, Any], *_: Any) -> None:
    assert not result["problems"], f"pytest cannot read your tests: {result['problems'][0]}"
    tests = result["tests"]
    for marker in MARKERS:
        marked = [test for test in tests if marker in test["markers"]]
        assert marked, f"none of your {len(tests)} tests has the marker `{marker}`"
        if marker == "gpu":
            running = [test for test in marked if test["outcome"] != "skipped"]
            assert not running, (f"`{running[0]['name']}` has the marker `gpu` and was not skipped "
                                 f"without a GPU")
        else:
            assert any(test["outcome"] != "skipped" for test in marked), (
                f"every test with the marker `{marker}` was skipped")
    bare = [test["name"] for test in tests if not {*MARKERS} & {*test["markers"]}]
    assert not bare, f"`{bare[0]}` has none of the five markers; each test needs one"


def check_right(answers: Mapping[str, Any], *_: Any) -> None:
    for tree in answers:
        result = reached(answers, tree)
        assert not result["problems"], (
            f"your tests cannot be read with a right package other than yours: "
            f"{result['problems'][0]}. They may use what `addrmsnorm` exports, nothing else")
        wrong = failures(result)
        if not wrong:
            continue
        first, more = wrong[0], len(wrong) - 1
        others = f", as {'does' if more == 1 else 'do'} {more} more" * bool(more)
        assert first["outcome"] == "failed", (
            f"your test `{first['name']}` could not start{others}; {said_by(first)}")
        raise AssertionError(
            f"your test `{first['name']}` rejects a right package other than yours ({tree})"
            f"{others}; {said_by(first)}. The contract allows its behavior, so a test may not "
            "reject it")


def notices(result: Mapping[str, Any]) -> bool:
    """Whether a test fails on a wrong package."""
    return any(test["outcome"] == "failed" for test in result["tests"])


def a_critical_one_lives(answers: Mapping[str, Any]) -> bool:
    """Whether the tests do not notice a critical mutant, although they can be read with it."""
    values = [answers[mutant.kind].value for mutant in WRONG
              if mutant.critical and mutant.kind in answers]
    return any(value and not value["problems"] and not notices(value) for value in values)


def check_wrong(answers: Mapping[str, Any], *_: Any) -> None:
    living = []
    tried = [mutant for mutant in WRONG if mutant.kind in answers]
    results = {mutant.kind: reached(answers, mutant.kind) for mutant in tried}
    problems = [result["problems"] for result in results.values()]
    assert not all(problems), (
        f"your tests cannot be read, so they notice nothing: {problems[0][0]}")
    for mutant in tried:
        if not notices(results[mutant.kind]):
            living.append(mutant)
    noticed = len(tried) - len(living)
    critical = [mutant for mutant in living if mutant.critical]
    if noticed >= ENOUGH and not critical:
        return
    shown = critical[0] if critical else living[0]
    others = ", ".join(f"*{mutant.kind}*" for mutant in living if mutant is not shown)
    kind = "critical mutant" if shown.critical else "mutant"
    raise AssertionError(
        f"your tests notice {noticed} of {len(tried)} mutants; {ENOUGH} and all critical ones are "
        f"required. The {kind} of the class *{shown.kind}* survives. {shown.question}"
        + (f" Other survivors: {others}" if others else ""))


WRONG = trusted.wrong()

of_tests: list[Case] = [
    call("your tests pass on your package", "tests", False, check=check_own, code="U02",
         seconds=TESTS_S),
    call("your tests are of all five kinds", "tests", False, check=check_markers,
         seconds=TESTS_S),
    call("your tests pass on other right packages", "tests", False, check=check_right,
         code="U02", trees=trusted.right(), seconds=TESTS_S),
    call("your tests notice wrong packages", "tests", True, check=check_wrong, code="U01",
         trees=[mutant.tree for mutant in WRONG], settled=a_critical_one_lives, seconds=TESTS_S),
]


# ---------------------------------------------------------------------------------------------
# D to H: documents, benchmark, workflow, version, checklist


def check_example(answer: Mapping[str, Any]) -> None:
    assert answer["tried"], "the docstring of `add_rms_norm` has no example that doctest finds"
    assert not answer["failed"], (
        f"of {answer['tried']} lines of the example, {answer['failed']} "
        f"{'does' if answer['failed'] == 1 else 'do'} not produce the output shown: "
        f"{' '.join(answer['said'].split())[-300:]}")


def check_benchmark(answer: str, *arguments: str) -> None:
    asked = dict(zip(arguments[::2], arguments[1::2], strict=True))
    try:
        data = json.loads(answer)
    except ValueError as error:
        raise AssertionError(f"`--json -` wrote no JSON to standard output: {error}") from None
    assert isinstance(data, dict), "the JSON of the benchmark is not an object"
    wanted = {"op": str, "version": str, "device": str, "measured": str, "versions": dict,
              "warmup": int, "repeats": int, "results": list}
    for name, kind in wanted.items():
        assert isinstance(data.get(name), kind), (
            f"`{name}` of the benchmark's JSON is {data.get(name)!r:.60}, expected "
            f"{'an' if kind is int else 'a'} {kind.__name__}")
    for name in ("python", "torch", "triton"):
        assert data["versions"].get(name), f"`versions` of the benchmark's JSON has no `{name}`"
    assert data["measured"] == "bytes", (
        f"without a GPU, `measured` is {data['measured']!r}; times are meaningless there, "
        f"so it must be 'bytes'")
    for name, least in (("warmup", 10), ("repeats", 100)):
        given = asked.get(f"--{name}")
        assert data[name] >= least, f"`{name}` is {data[name]}, expected at least {least}"
        assert given is None or data[name] == int(given), (
            f"--{name} {given} was passed, and the JSON has {data[name]}")
    found = [line.get("elements") for line in data["results"] if isinstance(line, dict)]
    for size in SIZES:
        near = [n for n in found if isinstance(n, int) and 0.9 * size <= n <= 1.1 * size]
        assert near, f"no result of about {size:,} elements; the results have {found}"
    for line in data["results"]:
        check_line(line)


def check_line(line: Any) -> None:
    """One result: the bytes that both ways move, and no times."""
    assert isinstance(line, dict), "a result of the benchmark is not an object"
    for name in ("elements", "rows", "columns", "bytes", "unfused_bytes"):
        assert type(line.get(name)) is int and line[name] > 0, (
            f"`{name}` of a result is {line.get(name)!r:.40}, expected a positive int")
    rows_, columns, elements = line["rows"], line["columns"], line["elements"]
    assert rows_ * columns == elements, (
        f"a result has {rows_} rows of {columns} columns and {elements} elements")
    itemsize = {"float32": 4, "float16": 2, "bfloat16": 2}.get(str(line.get("dtype")))
    assert itemsize, f"`dtype` of a result is {line.get('dtype')!r:.40}"
    for name, passes, what in (("bytes", 4, "x, residual, y and s once each"), (
            "unfused_bytes", 5, "three tensors for the addition and two for the norm")):
        least, most = passes * elements * itemsize, (passes * elements + elements) * itemsize
        assert least <= line[name] <= most, (
            f"`{name}` is {line[name]:,} for {elements:,} elements of {itemsize} bytes; {what} "
            f"are {least:,}, and the weight adds at most one read per row")
    for name in ("median_ms", "unfused_median_ms", "gb_per_s", "elements_per_s"):
        assert name in line and line[name] is None, (
            f"`{name}` of a result is {line.get(name, 'missing')!r:.40}; without a GPU it is null")
    ratio = line.get("ratio_to_unfused")
    assert isinstance(ratio, float) and abs(
        ratio - line["unfused_bytes"] / line["bytes"]) < 0.01, (
        f"`ratio_to_unfused` is {ratio!r:.40}; without a GPU it is unfused_bytes over bytes")


documents: list[Case] = [
    reads("docstrings of all public names", "docstrings",
          check=texts.docstrings),
    reads("type hints of all functions", "type_hints",
          check=texts.type_hints),
    call("the example of the docstring runs", "example", check=check_example, eager=True),
    reads("the README states contract, edge cases, limits, performance", "readme",
          check=texts.readme),
    call("the benchmark writes its schema", "benchmark", check=check_benchmark, eager=True,
         seconds=30.0),
    call("the benchmark can warm up and repeat more often", "benchmark", "--warmup", "25",
         "--repeats", "250", check=check_benchmark, eager=True, seconds=30.0),
    reads("the workflow runs the tests on every push", "workflow",
          check=texts.continuous_integration),
    call("the fields of Config have their defaults and are given by name", "config_fields",
         check=check_fields),
    call("a Config does not change", "config_changes", check=check_frozen),
    reads("the version has an entry in the changelog", "version",
          check=texts.version),
    reads("all ten boxes are ticked, with evidence", "checklist",
          check=texts.checklist),
]


suite = Suite(
    files=tuple(f"package/{name}" for name in (
        "addrmsnorm/__init__.py", "addrmsnorm/api.py", "addrmsnorm/errors.py",
        "addrmsnorm/kernel.py", "addrmsnorm/validation.py", "tests/test_add_rms_norm.py",
        "benchmarks/bench_add_rms_norm.py", "pyproject.toml", "README.md", "CHANGELOG.md",
        ".github/workflows/ci.yml")),
    kernel_file="package/addrmsnorm/kernel.py",
    blanks=7,
    functions=[Function(
        entry="add_rms_norm",
        parameters=("x", "residual", "weight", "eps"),
        reference=reference,
        result_names=("y", "s"),
        contiguous_result=True,
        tolerance=Tolerance(amplitude),
        cost=cost,
        peer=peer,
        reversed_peer=reversed_peer,
        bench=Bench("columns", (256, 1_024, 2_048, 4_096, 8_192, 16_384),
                    lambda n: three(4_096, n, dtype="float16"), at="4 096 rows of float16",
                    peer=fused, peer_name="F.rms_norm(x + residual)"),
        cases=[
            *values,
            *refusals,

            sizes(lambda rows, columns, dtype: three(rows, columns, dtype=dtype),
                  rows=(1, 5), columns=(1, 5_000), dtype=FLOATS),

            # Each program may read the weight: 5 R C e of the least 4 R C e + C e bytes.
            performance("64 x 1 024 floats", *three(64, 1_024),
                        traffic=320 / 257, sectors=1.00, launches=1, programs=64, spills=0),
            performance("16 384 x 4 096 floats", *three(16_384, 4_096),
                        spills=0, pass_at=0.75, stretch=0.88),
            performance("280 000 x 8 192 in float16, past 2**31 elements",
                        *three(280_000, 8_192, dtype="float16"), pass_at=0.50),
        ],
    )],
    cases=[*robustness, *documents, *of_tests],  # the last take longest
)


# ---------------------------------------------------------------------------------------------
# Properties


def test_two_calls_give_identical_bits(submission):
    drawn = submission.draw(*three(4, 1_000))

    first, second = submission.add_rms_norm(*drawn), submission.add_rms_norm(*drawn)

    for name, one, other in zip(("y", "s"), first, second, strict=True):
        assert torch.equal(one, other), (
            f"two calls with the same inputs gave {int((one != other).sum())} different elements "
            f"of {name}")


def test_doubling_the_weight_doubles_y_and_leaves_s(submission):
    x, residual, weight = submission.draw(*three(4, 1_000))

    (y, s), (double, same) = (
        submission.add_rms_norm(x, residual, weight),
        submission.add_rms_norm(x, residual, 2 * weight))

    assert torch.equal(double, 2 * y), (
        f"with twice the weight, {int((double != 2 * y).sum())} elements of y are not twice "
        f"as large")
    assert torch.equal(same, s), "with twice the weight, s differs"


def test_x_and_residual_can_change_places(submission):
    x, residual, weight = submission.draw(*three(4, 1_000))

    first = submission.add_rms_norm(x, residual, weight)
    second = submission.add_rms_norm(residual, x, weight)

    assert all(torch.equal(one, other) for one, other in zip(first, second, strict=True)), (
        "x + residual and residual + x are bitwise equal, and the results differ")
