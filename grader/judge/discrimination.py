"""Self-test of a suite: its cases must fail wrong answers and pass right ones."""

from __future__ import annotations

import functools
import math
import secrets
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import torch

from grader.diagnosis.difference import as_tuple, in_reals
from grader.judge import compare
from grader.judge.oversized import is_measured
from grader.recording.model import dtype_name
from grader.suite import Amplitude, Case, Cost, Input, Suite, mistakes
from grader.suite.inputs import DEFAULT_BLOCK
from grader.suite.rounding import UNDERFLOW, UNIT_ROUNDOFF

DRAWS = 2  # of inputs, before a wrong answer counts as missed: a sum may be zero by chance
FACTOR = 64  # units of roundoff by which an answer is scaled, and within which two are alike
ENOUGH = 3  # cases of a dtype in which each wrong answer has to fail, where there are so many.
# A scaled answer in float32 does so where sums are short and results many: 32 terms, 64 results.
INPUT = "the first input"
SCALED = "the answer scaled by 1 + 64 u"

Outcome = Literal["caught", "missed", "alike", "forgiven", "passed", "failed"]


@dataclass(frozen=True)
class JudgedAnswer:
    """One answer to one case.

    ``outcome`` of a wrong answer: ``caught``; ``missed``; ``alike``, where no more than 64 units of
    roundoff tell it from the right one, so that nothing can be asked; or ``forgiven``, for a scaled
    answer within what the roundings of a long sum may do. Of a right one: ``passed`` or ``failed``.
    ``seen`` is the finding of the comparison.
    """

    case: str
    dtype: str
    answer: str
    outcome: Outcome
    seen: str = ""


@dataclass(frozen=True)
class SelfTest:
    """All trials of a suite; without ``faults`` it distinguishes right from wrong.

    Refusals, empty results and inputs that fit no memory here are not tried.
    """

    trials: tuple[JudgedAnswer, ...]
    faults: tuple[str, ...]


def examine(suite: Suite, seed: int | None = None) -> SelfTest:
    """Gives wrong and right answers to every case of a suite that compares values.

    Wrong ones (zeros, ones, the mean, an input, the reversed answer, the answer scaled by
    1 + 64 u) must fail wherever they differ from the right answer, and in several cases of each
    dtype. Right ones (the exact answer rounded, torch in the same dtype, torch with the reduction
    reversed) must pass everywhere. Where the exact answer is NaN or infinite, or overflows, wrong
    answers hold the right value: it is the other elements that have to give them away. Of several
    results one at a time is made wrong.

    Args:
        suite: from ``grader.suite.spec.load``.
        seed: of the inputs; without it they are drawn from the operating system's randomness.
    """
    seed = secrets.randbits(62) if seed is None else seed
    parts = [_examine(part, seed) for part in suite.parts if part.entry]
    return SelfTest(tuple(trial for trials, _ in parts for trial in trials),
                    tuple(fault for _, faults in parts for fault in faults))


def answers(suite: Suite) -> Iterator[str]:
    """Calls reference, tolerance, cost and peer of each function for its first case.

    Yields:
        A sentence for the first mistake of each function.
    """
    generator = torch.Generator().manual_seed(secrets.randbits(62))
    for part in suite.parts:
        for case in part.cases:
            try:
                _check_sizes(case)
            except mistakes.SuiteMistake as mistake:
                yield str(mistake)
        drawn = (_drawn(case, generator) for case in part.cases if case.sizes is None)
        inputs = next((one for one in drawn if one is not None), None) if part.entry else None
        if inputs is not None:
            try:
                _check_answers(part, inputs)
            except mistakes.SuiteMistake as mistake:
                yield str(mistake)


def _check_sizes(case: Case) -> None:
    """Raises SuiteMistake if the function of a case with drawn sizes does not return its inputs."""
    if case.sizes is None:
        return
    size = {name: low for name, (low, _) in case.sizes.ranges.items()}
    size |= {name: values[0] for name, values in case.sizes.choices.items()}
    place = mistakes.place_of(case.sizes.make)
    try:
        inputs = mistakes.call("function of sizes", functools.partial(case.sizes.make, **size))
    except mistakes.SuiteMistake as mistake:
        raise mistake.at(place) from mistake
    if not isinstance(inputs, list | tuple):
        raise mistakes.SuiteMistake(
            f"the function of sizes returns a value of type {type(inputs).__name__}.",
            "Return a tuple of inputs: (rand(n),) with a comma.", place)


def _check_answers(suite: Suite, inputs: Sequence[Any]) -> None:
    """Raises SuiteMistake if a function of the suite gives what no result can be compared with."""
    place = mistakes.place_of(suite.reference)

    def mistake(cause: str, cure: str, function: Callable[..., Any]) -> mistakes.SuiteMistake:
        return mistakes.SuiteMistake(cause, cure, mistakes.place_of(function) or place)

    exact = as_tuple(mistakes.call("reference", suite.reference, *inputs))
    rounded = suite.tolerance.amplitude
    for one in exact:
        if not isinstance(one, torch.Tensor):
            raise mistake(f"the reference returns a value of type {type(one).__name__}.",
                          "Return a tensor, or a tuple of tensors.", suite.reference)
        if rounded is not None and one.dtype in (torch.float32, torch.float16, torch.bfloat16):
            raise mistake(f"the reference is computed in {dtype_name(one.dtype)}.",
                          "Compute it in float64: x.double() first.", suite.reference)
    if suite.result_names and len(suite.result_names) < len(exact):
        raise mistake(f"the reference returns {len(exact)} results, and result_names has "
                      f"{len(suite.result_names)}.", "Name each result.", suite.reference)
    if rounded is not None:
        bounds = as_tuple(mistakes.call("tolerance", rounded, *inputs))
        if len(bounds) != len(exact) or not all(
                one is None or isinstance(one, Amplitude) for one in bounds):
            raise mistake("the tolerance returns no Amplitude for each result.",
                          "Return Amplitude(…), or a tuple with one for each result.", rounded)
    if suite.peer is not None:
        shapes = [[tuple(one.shape) for one in map(in_reals, results)] for results in (
            exact, as_tuple(mistakes.call("peer", suite.peer, *inputs)))]
        if shapes[0] != shapes[1]:
            reference, peer = (", ".join(map(str, shape)) for shape in shapes)
            raise mistake(f"the reference has the shape {reference}, and the peer {peer}.",
                          "Correct the one that is wrong.", suite.reference)
    if any(case.limits and (case.limits.traffic or case.limits.pass_at) for case in suite.cases):
        cost = mistakes.call("cost", suite.cost, *inputs)
        if not isinstance(cost, Cost) or not cost.bytes > 0:
            raise mistake(f"the cost of a case is {cost!r}.",
                          "Return Cost(bytes=…) with the bytes to read and write, above 0.",
                          suite.cost)


def _examine(suite: Suite, seed: int) -> tuple[list[JudgedAnswer], list[str]]:
    """The trials and faults of the cases of one function."""
    trials: list[JudgedAnswer] = []
    faults: list[str] = []
    reduces = False
    for number, case in enumerate(suite.cases):
        generator = torch.Generator().manual_seed((seed + number * 0x9E3779B97F4A7C15) % 2**63)
        judged: list[JudgedAnswer] = []
        try:
            for _ in range(DRAWS):
                inputs = _drawn(case, generator)
                right = [] if inputs is None else _results(
                    mistakes.call("reference", suite.reference, *inputs))
                if inputs is None or not any(part.numel() for part in right):
                    break
                judged = list(_judged(suite, case, inputs, right))
                if {trial.outcome for trial in judged} & {"missed", "failed"} != {"missed"}:
                    break
        except ValueError as error:
            faults.append(f"{case.name}: {error}")
            continue
        if inputs is None or not judged:
            continue
        trials += judged
        reduces |= _longest(suite, inputs) > 1
        faults += [f"{case.name}: {trial.answer} passes, although {trial.seen}"
                   if trial.outcome == "missed" else f"{case.name}: {trial.answer} fails: "
                   f"{trial.seen}" for trial in judged if trial.outcome in ("missed", "failed")]
    return trials, [*_lacking(suite, trials, reduces), *faults]


def _lacking(suite: Suite, trials: Sequence[JudgedAnswer], reduces: bool) -> Iterator[str]:
    """Yields missing declarations, and wrong answers that too few cases detect.

    Where moving is the task, and the first input is right in every case, it is the very job of the
    kernel to give that: only its layout changes.
    """
    if not trials:
        yield "no case compares values"
    if suite.peer is None:
        yield "the suite has no `peer`: torch in the same dtype, for comparison"
    if suite.reversed_peer is None and reduces:
        yield "the suite has a reduction but no `reversed_peer`"
    tried = Counter((trial.dtype, trial.answer) for trial in trials
                    if trial.outcome not in ("passed", "failed"))
    caught = Counter((trial.dtype, trial.answer) for trial in trials if trial.outcome == "caught")
    copies = suite.moves == "deny" and all(
        trial.outcome == "alike" for trial in trials if trial.answer == INPUT)
    for (dtype, answer), cases in tried.items():
        needed = min(ENOUGH, cases)
        if caught[dtype, answer] < needed and not (copies and answer == INPUT):
            yield (f"{answer} fails in {caught[dtype, answer]} of {cases} cases in {dtype}; it has "
                   f"to fail in {needed} at least")


def _drawn(case: Case, generator: torch.Generator) -> list[Any] | None:
    """The inputs of a case that decides by its values, and whose inputs fit into memory."""
    if case.raises or case.call or case.advisory or is_measured(case) or not any(
            isinstance(spec, Input) for spec in case.inputs):
        return None
    return [spec.draw(generator, DEFAULT_BLOCK) if isinstance(spec, Input) else spec
            for spec in case.inputs]


# ---------------------------------------------------------------------------------------------
# Wrong answers, from the right one, its dtype and the inputs; None where there is none


def _mean(right: torch.Tensor, dtype: torch.dtype, inputs: Sequence[Any]) -> torch.Tensor | None:
    if right.numel() < 2 or dtype == torch.bool:
        return None  # the mean of one number is that number
    finite = right.double()
    finite = finite[finite.isfinite()]
    value = float(finite.mean()) if finite.numel() else 0.0
    whole = not dtype.is_floating_point
    return torch.full(right.shape, round(value) if whole else value, dtype=torch.float64).to(dtype)


def _an_input(right: torch.Tensor, dtype: torch.dtype,
              inputs: Sequence[Any]) -> torch.Tensor | None:
    tensors = [in_reals(value) for value in inputs if isinstance(value, torch.Tensor)]
    tensors = [value for value in tensors if value.numel() == right.numel()]
    first = next((t for t in tensors if t.shape == right.shape), None)
    if first is None:  # of another shape only where it is wrong: the sum of one row is that row
        tensors = [tensor.reshape(right.shape) for tensor in tensors]
        first = next((t for t in tensors if not torch.equal(t.double(), right.double())), None)
    return None if first is None else first.to(dtype)


def _reversed(right: torch.Tensor, dtype: torch.dtype,
              inputs: Sequence[Any]) -> torch.Tensor | None:
    return right.flatten().flip(0).reshape(right.shape).to(dtype) if right.numel() > 1 else None


def _scaled(right: torch.Tensor, dtype: torch.dtype, inputs: Sequence[Any]) -> torch.Tensor | None:
    if not dtype.is_floating_point:
        return None
    return (right.double() * (1 + FACTOR * UNIT_ROUNDOFF[dtype_name(dtype)])).to(dtype)


WRONG: dict[str, Callable[[torch.Tensor, torch.dtype, Sequence[Any]], torch.Tensor | None]] = {
    "zeros": lambda right, dtype, inputs: torch.zeros(right.shape, dtype=dtype),
    "ones": lambda right, dtype, inputs: torch.ones(right.shape, dtype=dtype),
    "the mean of the answer": _mean,
    INPUT: _an_input,
    "the reversed answer": _reversed,
    SCALED: _scaled,
}


# ---------------------------------------------------------------------------------------------
# Their trials


def _judged(suite: Suite, case: Case, inputs: Sequence[Any],
            right: Sequence[torch.Tensor]) -> Iterator[JudgedAnswer]:
    """Judges wrong answers to a case, and then right ones.

    Raises:
        ValueError: a right one has another dtype than the suite asks for.
    """
    dtypes = _dtypes(suite, inputs, right)
    rounded = [part.to(dtype) for part, dtype in zip(right, dtypes, strict=True)]

    def difference(results: Sequence[torch.Tensor]) -> str:
        differences = compare.judge(results, inputs, suite.reference, suite.tolerance)
        return str(differences[0]) if differences else ""

    for place, (exact, dtype) in enumerate(zip(right, dtypes, strict=True)):
        for name, falsify in WRONG.items():
            answer = falsify(exact, dtype, inputs) if exact.numel() else None
            if answer is None:
                continue
            if dtype.is_floating_point:
                keep = rounded[place].double().isfinite()
                answer = torch.where(keep, answer.double(), rounded[place].double()).to(dtype)
            label = f"{name} as result {place + 1}" if len(right) > 1 else name
            outcome, evidence = _outcome(name, answer, rounded[place])
            if words := difference([*rounded[:place], answer, *rounded[place + 1:]]):
                outcome, evidence = "caught", words
            yield JudgedAnswer(case.name, dtype_name(dtype), label, outcome, evidence)
    answers = {"the exact answer, rounded": rounded}
    if suite.peer is not None:
        answers["torch in the same dtype"] = _results(mistakes.call("peer", suite.peer, *inputs))
    if suite.reversed_peer is not None:
        answers["torch with the reduction reversed"] = _results(
            mistakes.call("reversed_peer", suite.reversed_peer, *inputs))
    for name, results in answers.items():
        given = [result.dtype for result in results]
        if given != dtypes:
            raise ValueError(f"{name} is {given}, the suite asks for {dtypes}")
        words = difference(results)
        yield JudgedAnswer(case.name, dtype_name(dtypes[0]), name,
                           "failed" if words else "passed", words)


def _outcome(name: str, answer: torch.Tensor, rounded: torch.Tensor) -> tuple[Outcome, str]:
    """Of a wrong answer that passed."""
    if not rounded.dtype.is_floating_point:
        differ = int((answer != rounded).sum())
        return ("missed", f"{differ} elements differ") if differ else ("alike", "")
    dtype = dtype_name(rounded.dtype)
    exact = rounded.double()
    keep = exact.isfinite()
    off = torch.where(keep, answer.double() - exact, 0.0).abs()
    allowed = FACTOR * UNIT_ROUNDOFF[dtype] * torch.where(keep, exact.abs(), 0.0)
    if name == SCALED:
        return ("forgiven" if bool((off > UNDERFLOW[dtype]).any()) else "alike"), ""
    if bool((off <= allowed + UNDERFLOW[dtype]).all()):
        return "alike", ""
    worst = float((off / (exact.abs() + UNDERFLOW[dtype])).max())
    return "missed", f"it is off by up to {worst:.3g} of the right value"


def _dtypes(suite: Suite, inputs: Sequence[Any],
            right: Sequence[torch.Tensor]) -> list[torch.dtype]:
    """Dtypes of the results: the suite's, or the first input's; of several, torch's."""
    if len(right) > 1 and suite.peer is not None:
        return [result.dtype for result in _results(suite.peer(*inputs))]
    first = next(dtype_name(v) for v in inputs if isinstance(v, torch.Tensor))
    return [in_reals(torch.empty(0, dtype=getattr(torch, name))).dtype
            for name in suite.result_dtypes(first, len(right), inputs)]


def _results(returned: Any) -> list[torch.Tensor]:
    """All that a function returned; complex numbers as pairs of real ones."""
    return [in_reals(result) for result in as_tuple(returned)]


def _longest(suite: Suite, inputs: Sequence[Any]) -> float:
    if suite.tolerance.amplitude is None:
        return 1.0
    amplitudes = as_tuple(suite.tolerance.amplitude(*inputs))
    return max((part.length for part in amplitudes if part is not None), default=-math.inf)
