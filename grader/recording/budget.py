"""Budgets for what a recording carries from host code to kernels beside tensors."""

from collections.abc import Iterator
from math import prod
from typing import Any

from grader.finding import fault
from grader.recording.model import Argument, Fill, Launch, Move, Recording
from grader.report import Finding

# One for so many elements of the results, and so many more, whatever the size of the results. A
# float32 a number, the first share is 6 % of a result. Honest launches of the course pass at most
# 9 floats (a step of Adam) and 40 other arguments.
ELEMENTS_PER_NUMBER = 16
FREE_FLOATS = 16
FREE_WORDS = 256  # integers, words, tensors, sizes of grids and of descriptors
FREE_MOVES = 64  # copies and fills by host code
_CHARACTERS = 8  # of a string that count as one word
_OF_THE_COMPILER = {"ir_override", "ptx_options"}  # launch options that no module needs

Place = tuple[Any, ...]


def over_budget(recording: Recording) -> list[Finding]:
    """Returns X01 if a recording could carry its result in arguments, copies or fills.

    An argument counts when it differs from what the same parameter of the same kernel got in the
    launch before: a learning rate that goes to 20 launches is one number.
    """
    elements = sum(prod(view.shape) for view in recording.results)
    share = elements // ELEMENTS_PER_NUMBER
    counts = {"float": 0, "word": 0, "move": 0}
    most = {"float": FREE_FLOATS + share, "word": FREE_WORDS + share, "move": FREE_MOVES + share}
    last: dict[Place, Any] = {}
    crossed: dict[str, int | None] = {}  # what is over its budget, and the line where it was passed
    for event in recording.events:
        if isinstance(event, Launch):
            for kind, place, value, words in _carried(event):
                if last.get(place) != (value,):
                    last[place] = (value,)
                    counts[kind] += words
        elif isinstance(event, Fill | Move):
            counts["move"] += 1
        else:
            continue
        for kind, count in counts.items():
            if count > most[kind]:
                crossed.setdefault(kind, event.line)
    return [
        Finding("X01", fault(f"many {kind}s", count=counts[kind], most=most[kind],
                             elements=elements), line=line)
        for kind, line in crossed.items()
    ]


def _carried(launch: Launch) -> Iterator[tuple[str, Place, Any, int]]:
    """Yields kind, place, value and size in words of what a launch passes to its kernel."""
    yield "word", (launch.kernel, "grid"), launch.grid, 3
    for name, argument in launch.arguments.items():
        yield from _of(argument, (launch.kernel, name))


def _of(argument: Argument, place: Place) -> Iterator[tuple[str, Place, Any, int]]:
    match argument.kind:
        case "tuple":
            for number, item in enumerate(argument.value):
                yield from _of(item, (*place, number))
        case "float":
            yield "float", place, argument.value.hex(), 1  # NaN equals itself this way
        case "descriptor":
            yield "word", place, argument.value, 1 + 3 * len(argument.value.shape)
        case "str":
            yield "word", place, argument.value, 1 + len(argument.value) // _CHARACTERS
        case _:
            yield "word", place, argument.value, 1


def replaced_code(recording: Recording) -> list[Finding]:
    """Returns X01 for a launch whose options replace code or set compiler flags."""
    for launch in recording.launches:
        for option in _OF_THE_COMPILER & launch.options.keys():
            return [Finding("X01", fault("option", kernel=launch.kernel, name=option), launch.line)]
    return []


def denied_moves(recording: Recording) -> list[Finding]:
    """Returns X01 for the first copy by host code, where moving elements is the task."""
    for event in recording.events:
        if isinstance(event, Move) and prod(event.target.shape) > 0:
            return [Finding("X01", fault("host copy", shape=event.target.shape), event.line)]
    return []
