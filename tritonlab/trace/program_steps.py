"""One program's steps in the terminal: each line with its accesses and the variables it changed."""

from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from grader import text
from grader.recording.trace import TracedAccess, TracedStep, TracedTensor, Value
from grader.text import plural
from grader.trace import TracedCase
from tritonlab.errors import shown as shown_path
from tritonlab.render.screen import Screen

MAX_STEPS = 200  # that are printed; the page has all of them
_EDGE = 3  # values at each end of a block that are printed
_DONE = {"load": "loads", "store": "stores", "atomic": "changes"}
_FLOAT_DIGITS = 5


def show(screen: Screen, traced: TracedCase, program: int, launch: int) -> None:
    """Prints the steps of a program of a launch; it must be among the traced ones."""
    the_launch = traced.trace.launches[launch]
    group = next(group for group in the_launch.groups if program in group.programs)
    row = group.programs.index(program)
    place = text.program(program, the_launch.grid)
    count = plural(int(np.prod(the_launch.grid)), "program")
    screen.line((the_launch.kernel, "strong"), f', {place} of {count}, case "{traced.case}"')
    for mark in traced.marks:
        screen.line((mark.text, "fail"), lead=(screen.label("Seen"),))
    lines = traced.text.split("\n")
    digits = len(str(len(lines)))
    for step in group.steps[:MAX_STEPS]:
        turn = f"  (iteration {step.turn + 1})" if step.turn else ""
        indent = "  " * step.depth
        number = f"{step.line:>{digits}}"
        first, *further = lines[step.line - 1:max(step.line, step.end)]
        screen.row((f"{number}  ", "dim"), indent + first.strip(), (turn, "dim"))
        for line in further:
            screen.row(" " * (digits + 2) + indent
                       + line.removeprefix(first[:len(first) - len(first.lstrip())]))
        for words in _details(traced, step, row):
            screen.line(words, lead=(" " * (digits + 4) + indent,))
    if len(group.steps) > MAX_STEPS:
        screen.line(f"{plural(len(group.steps) - MAX_STEPS, 'further step')} left out; the page "
                    "shows all.")
    if group.failed:
        screen.line("The program stopped here.")


def show_page(screen: Screen, traced: TracedCase, file: Path) -> None:
    """Prints which case the page draws, and where it is."""
    show_summary(screen, traced)
    screen.command(shown_path(file), screen.label("Page"))


def show_summary(screen: Screen, traced: TracedCase) -> None:
    """Prints which case was traced, and its first finding."""
    count = sum(len(group.programs) for one in traced.trace.launches for group in one.groups)
    screen.line(f"Traced {plural(count, 'program')} of case \"{traced.case}\", "
                f"which {str(traced.report.verdict).lower()}.")
    for mark in traced.marks[:1]:
        screen.line(mark.text, lead=(screen.label("Seen"),))


def _details(traced: TracedCase, step: TracedStep, row: int) -> Iterator[str]:
    for access in step.accesses:
        yield _access(traced, access, row)
    for name, value in step.values.items():
        yield f"{name} = {shown(traced, value, row)}"


def shown(traced: TracedCase, value: Value, row: int) -> str:
    """A variable's value of one program, shortened as NumPy does."""
    tensor = traced.names[value.tensor] if value.tensor is not None and value.tensor >= 0 else ""
    if value.array is None:
        return f"{value.text} of {tensor}" if tensor and value.text else tensor or value.text
    numbers = _of_program(traced, value.array, row, value.shape)
    kind = f"  {value.dtype}{list(value.shape) or ''}"
    if value.tensor is not None:
        of = traced.trace.tensors[value.tensor] if value.tensor >= 0 else None
        first, last = (element(tensor, of, int(n)) for n in (numbers.flat[0], numbers.flat[-1]))
        return (f"-> {first}" if numbers.size == 1 else f"-> {first} … {last}") + kind
    return _short(numbers) + kind


def _access(traced: TracedCase, access: TracedAccess, row: int) -> str:
    shape = tuple(traced.trace.arrays[access.offset].shape[1:])
    if access.mask is not None:
        shape = np.broadcast_shapes(shape, traced.trace.arrays[access.mask].shape[1:])
    offsets = _of_program(traced, access.offset, row, shape).reshape(-1)
    mask = np.ones(len(offsets), bool) if access.mask is None else \
        _of_program(traced, access.mask, row, shape).reshape(-1) != 0
    tensor = traced.trace.tensors[access.tensor] if access.tensor >= 0 else None
    name = traced.names[access.tensor] if tensor else "memory of no tensor"
    active = offsets[mask]
    inside = (active >= 0) & (active < (tensor.elements if tensor else 0))
    parts = []
    if inside.any():
        good = active[inside]
        first, last = (element(name, tensor, int(n)) for n in (good[0], good[-1]))
        places = first if len(good) == 1 else f"{first} … {last}"
        parts.append(f"{places}, {plural(len(good), 'element')}")
    else:
        parts.append(f"no element of {name}")
    if off := int((~mask).sum()):
        filled = "" if access.kind != "load" else \
            " and filled with `other`" if access.filled else " and undefined"
        parts.append(f"{off:,} masked off{filled}")
    if outside := int((~inside).sum()):
        at = int(active[~inside][0])
        parts.append(f"{outside:,} OUT OF BOUNDS, the first at offset {at:,}")
    if access.undefined is not None:
        count = int(np.count_nonzero(_of_program(traced, access.undefined, row, shape)))
        if count:
            parts.append(f"{count:,} UNDEFINED")
    return f"{_DONE[access.kind]} {'; '.join(parts)}"


def element(name: str, tensor: TracedTensor | None, offset: int) -> str:
    """The element of a tensor at an offset, such as ``x[3, 128]``; ``x + 516`` outside of it."""
    index = tensor.index(offset) if tensor else None
    if index is None:
        return f"{name} {'+' if offset >= 0 else '-'} {abs(offset):,}"
    return f"{name}[{', '.join(map(str, index))}]"


def _of_program(traced: TracedCase, array: int, row: int, shape: Sequence[int]) -> np.ndarray:
    numbers = traced.trace.numbers(array)
    one = numbers[row if len(numbers) > 1 else 0]
    if one.ndim != len(shape):
        one = one.reshape(*(1,) * len(shape)) if one.size == 1 else one
    return np.broadcast_to(one, tuple(shape))


def _short(numbers: np.ndarray) -> str:
    if numbers.ndim == 0:
        number = numbers.item()
        return f"{number:.{_FLOAT_DIGITS}g}" if isinstance(number, float) else str(number)
    threshold = 2 * _EDGE
    return " ".join(np.array2string(
        numbers, threshold=threshold, edgeitems=_EDGE if numbers.ndim == 1 else 2,
        precision=_FLOAT_DIGITS - 1, max_line_width=10_000, separator=" ").split())
