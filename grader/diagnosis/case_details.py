"""Describes one case: inputs, launches, first wrong elements and their pattern."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import msgspec
import torch

from grader.diagnosis import messages
from grader.diagnosis.difference import Difference, as_tuple, in_reals
from grader.diagnosis.wrong_value_patterns import likeness, of_inputs, stand_ins
from grader.diagnosis.wrong_value_regions import place, tiling_of
from grader.finding import Fault, MemoryAccess, fault
from grader.recording.arena import SparseTensor
from grader.recording.model import Argument, Launch, Recording, View, dtype_name
from grader.report import Details, Finding
from grader.suite import Suite

FIRST = 8  # wrong elements that are listed
LAUNCHES = 4  # launches that are listed
LONGEST = 60  # characters of a plain value


def pattern(difference: Difference, suite: Suite, inputs: Sequence[Any],
            recording: Recording | None) -> tuple[Fault | None, Fault | None]:
    """Returns region and pattern of the wrong elements; None if no pattern fits."""
    if difference.kind == "drift":
        return None, None
    wrong, result, reference = difference.tensors
    others = _other_results(suite, inputs, difference.position or 0)
    if difference.of_parts:
        return _of_parts(wrong, result, reference, list(others))
    return place(wrong, tiling_of(recording)), likeness(
        wrong, result, reference, others, of_inputs(suite.named_inputs, inputs))


def _of_parts(wrong: torch.Tensor, result: torch.Tensor, reference: torch.Tensor,
              others: Sequence[tuple[str, torch.Tensor]]) -> tuple[Fault | None, Fault | None]:
    """The same of complex numbers, whose parts lie along the last dimension.

    No launch explains a place: whether its blocks count numbers or parts is not known.
    """
    like = [likeness(wrong[..., part], result[..., part], reference[..., part],
                     [(name, values[..., part]) for name, values in others]) for part in (0, 1)]
    for part in (0, 1):
        if not bool(wrong[..., 1 - part].any()):
            region = place(wrong[..., part]) or fault("everywhere")
            return region.with_figures(part=part), like[part]
    return (place(wrong[..., 0]) if torch.equal(wrong[..., 0], wrong[..., 1]) else None,
            like[0] if like[0] == like[1] else None)


def _other_results(suite: Suite, inputs: Sequence[Any],
                   position: int) -> Iterator[tuple[str, torch.Tensor]]:
    """Results of the suite's wrong formulas, and of its reference for inputs in other places."""
    calls = [(name, formula, inputs) for name, formula in suite.wrong_formulas.items()]
    calls += [(name, suite.reference, values) for name, values in stand_ins(
        suite.entry, suite.named_inputs[:len(inputs)], inputs)]
    for name, function, values in calls:
        with contextlib.suppress(Exception):  # a reference need not take what no case hands over
            yield name, in_reals(as_tuple(function(*values))[position])


def by_argument(finding: Finding, recording: Recording, names: Sequence[str],
                todos: Mapping[int, int]) -> Finding:
    """M07 with the name that the function has for the tensor, and the launch that passes it.

    Args:
        names: of the recording's inputs, in order.
        todos: line -> number of the TODO or DECIDE that it belongs to.
    """
    access = finding.data
    if not isinstance(access, MemoryAccess) or access.kind != "modified":
        return finding
    inputs = {view.storage: name for view, name in zip(recording.inputs, names, strict=False)}
    passed = {(inputs.get(argument.value.storage), launch.line)
              for launch in recording.launches for name, argument in launch.arguments.items()
              if name == access.tensor and argument.kind == "tensor"}
    if len(passed) != 1:
        return finding  # several launches, of which any may be meant
    (name, line), = passed
    if name is None or line is None:
        return finding
    # An output that is handed an input is the launch's mistake; an input's own name, the store's.
    own = finding.line or 0
    lines = (own, line) if access.tensor.startswith(name) else (line, own)
    numbers = (todos[at] for at in lines if at in todos)
    data = msgspec.structs.replace(access, argument=name, passed_line=line)
    return replace(finding, data=data, todos=tuple(dict.fromkeys(numbers)))


class Notes:
    """Gathers the details of one case while it is judged."""

    def __init__(self, parameters: Sequence[str]) -> None:
        self._parameters = tuple(parameters)
        self.details = Details()
        self.output = ""  # what the learner's code printed in its own call

    def drew(self, inputs: Sequence[Any]) -> None:
        """The inputs of a case; a property may draw more than once."""
        fits = len(inputs) <= len(self._parameters)
        names = self._parameters if fits else [f"input {n + 1}" for n in range(len(inputs))]
        drawn = (f"{name}: {_value(value)}" for name, value in zip(names, inputs, strict=False))
        self.details = replace(self.details, inputs=(*self.details.inputs, *drawn))

    def recorded(self, recording: Recording) -> None:
        launches = recording.launches
        more = [messages.words("more launches", count=len(launches) - LAUNCHES)] \
            if len(launches) > LAUNCHES else []
        self.details = replace(
            self.details, launches=(*map(_launch, launches[:LAUNCHES]), *more))

    def differed(self, difference: Difference) -> None:
        wrong, result, reference = difference.tensors
        places = [tuple(map(int, index)) for index in wrong.nonzero()[:FIRST]]
        self.details = replace(self.details, elements=tuple(
            (messages.element(at, True) if difference.of_parts else f"[{', '.join(map(str, at))}]",
             _number(result[at]), _number(reference[at]))
            for at in places))


def _value(value: Any) -> str:
    if isinstance(value, torch.Tensor):
        offset = int(value.storage_offset())
        return messages.tensor(dtype_name(value), value.shape, value.stride(), offset)
    if isinstance(value, SparseTensor):
        return messages.words("sparse tensor" if value.windows else "tensor without values",
                     tensor=_value(value.like))
    text = repr(value)
    return text if len(text) <= LONGEST else text[: LONGEST - 1] + "…"


def _launch(launch: Launch) -> str:
    sizes = list(launch.grid)
    while len(sizes) > 1 and sizes[-1] == 1:
        sizes.pop()
    arguments = [f"{name} = {_argument(value)}" for name, value in launch.arguments.items()]
    options = [f"{name} = {value}" for name, value in launch.options.items() if value is not None]
    return messages.words("launch", kernel=launch.kernel, grid=tuple(sizes), line=launch.line,
                 arguments=(*arguments, *options))


def _argument(argument: Argument) -> str:
    value = argument.value
    match argument.kind:
        case "tensor":
            return _view(value)
        case "descriptor":
            return messages.words("block of a descriptor", tensor=_view(value.base),
                         block=value.block_shape)
        case "tuple":
            return f"({', '.join(map(_argument, value))})"
        case "none":
            return "None"
    return str(value)


def _view(view: View) -> str:
    return messages.tensor(view.dtype, view.shape, view.stride, view.offset)


def _number(value: torch.Tensor) -> str:
    number = value.item()
    return f"{number:.7g}" if isinstance(number, float) else str(number)
