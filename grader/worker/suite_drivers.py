"""Drivers that every suite has: they read what a learner wrote down before measuring."""

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

UNWRITTEN = "is not written yet"  # the answer for an entry that is left empty
COUNTS = ("flops", "bytes", "grid", "tile")


def prediction(module: Any, name: str) -> Any:
    """The number of PREDICT; what is none as text, and None where there is nothing."""
    value = module.PREDICT.get(name)
    return value if value is None or isinstance(value, int | float) else repr(value)


def design(module: Any, function: str, shapes: Sequence[Mapping[str, int]]) -> dict[str, Any]:
    """Evaluates the entries of DESIGN for each shape, and the bound of the function.

    An entry that cannot be computed is answered with a sentence.
    """
    entries = module.DESIGN.get(function, {})
    constants = {name: value for name, value in vars(module).items()
                 if name.isupper() and isinstance(value, int)}
    return {"bound": entries.get("bound"),
            **{entry: _values(entries.get(entry), constants, shapes) for entry in COUNTS}}


def _values(text: Any, constants: Mapping[str, int], shapes: Sequence[Mapping[str, int]]) -> Any:
    if text is None or (isinstance(text, str) and not text.strip()):
        return UNWRITTEN
    if not isinstance(text, str):
        return f"is {text!r:.40}, which is not a string"
    functions = {"ceil": math.ceil, "floor": math.floor, "min": min, "max": max, "log2": math.log2,
             "cdiv": lambda a, b: -(-a // b),
             "next_power_of_2": lambda n: 1 << max(0, math.ceil(n) - 1).bit_length()}
    try:
        return [float(eval(text, {"__builtins__": {}}, {**functions, **constants, **shape}))
                for shape in shapes]
    except NameError as error:
        sizes = ", ".join(shapes[0]) if shapes else "no sizes"
        return f"cannot be computed: {error}; what is known are {sizes}, constants in capitals " \
               f"and a few functions"
    except Exception as error:
        return f"cannot be computed: {type(error).__name__}: {error}"


OF_EVERY_SUITE: Mapping[str, Callable[..., Any]] = {"prediction": prediction, "design": design}
