"""Specialization of a launch: the properties of its arguments that compiled code depends on."""

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

import torch

from grader.recording.model import Argument, Descriptor, Launch, View

ALIGNED = 16  # bytes of an address, or a factor of an integer, that the compiler makes use of
NUM_WARPS = 4  # of a program, where a launch names none
SIZE = 8  # a constant from which on it is a size, not a choice among a few


@dataclass(frozen=True)
class Form:
    """Specialization of launches: the properties that Triton compiles for.

    Attributes:
        sizes: the warps of a program and constants.
        ones: which integers are 1, and so constants for the front end.
        multiples: which addresses and integers are multiples of 16, which only later passes use.
    """

    sizes: tuple[int, ...]
    ones: tuple[bool, ...]
    multiples: tuple[bool, ...]


def specialization(launch: Launch, constants: Collection[str], sizes: Collection[str] = (),
                   plain: Collection[str] = ()) -> tuple[tuple[Any, ...], Form]:
    """Returns the kind of a launch (types, options, constants that are not sizes) and its form.

    Launches of equal kind and form share their code, as Triton specializes on types, on integers
    that are 1 or multiples of 16, on aligned addresses, and on constants.

    Args:
        constants: names of the kernel's ``tl.constexpr`` parameters.
        sizes: those of them that are sizes, however small.
        plain: names of ``do_not_specialize``.
    """
    warps = launch.options.get("num_warps", NUM_WARPS)
    kind: list[Any] = [launch.kernel, *sorted((name, value) for name, value in
                                              launch.options.items() if name != "num_warps")]
    numbers = [warps] if type(warps) is int else []
    kind += [] if numbers else [repr(warps)]
    ones: list[bool] = []
    multiples: list[bool] = []
    for name, argument in launch.arguments.items():
        kind.append(name)
        if name in plain and name not in constants:
            _describe(argument, kind, [], [])
        elif name not in constants:
            _describe(argument, kind, ones, multiples)
        elif is_size(argument) or (name in sizes and argument.kind == "int"):
            kind.append("size")
            numbers.append(argument.value)
        else:
            kind.append((argument.kind, repr(argument)))
    return tuple(kind), Form(tuple(numbers), tuple(ones), tuple(multiples))


def is_size(constant: Argument) -> bool:
    return type(constant.value) is int and constant.value >= SIZE


def _describe(argument: Argument, kind: list[Any], ones: list[bool],
              multiples: list[bool]) -> None:
    """Adds the type of an argument, and the properties of its value."""
    value = argument.value
    match value:
        case View():
            kind.append(value.dtype)
            nbytes = getattr(torch, value.dtype).itemsize
            multiples.append(value.offset * nbytes % ALIGNED == 0)
        case Descriptor():
            kind.append((value.base.dtype, *value.block_shape, value.padding,
                         value.round_f32_to_tf32))
        case tuple():
            kind.append(("tuple", len(value), *argument.fields))
            for item in value:
                _describe(item, kind, ones, multiples)
        case int() if argument.kind == "int":
            kind.append("i32" if -2**31 <= value < 2**31 else "i64" if value < 2**63 else "u64")
            ones.append(value == 1)
            multiples.append(value % ALIGNED == 0)
        case float():
            kind.append("float")
        case _:
            kind.append((argument.kind, repr(value)))
