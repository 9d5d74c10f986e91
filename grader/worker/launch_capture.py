"""Captures ``kernel[grid](...)`` as data: arguments bound, grid checked, nothing executed."""

import contextlib
import difflib
import operator
from collections.abc import Callable, Iterator, Mapping
from typing import Any
from unittest import mock

import numpy as np
import torch
import triton.language as tl
from triton.backends.nvidia.compiler import CUDAOptions
from triton.runtime.autotuner import Autotuner
from triton.runtime.jit import JITFunction, MockTensor
from triton.tools.tensor_descriptor import TensorDescriptor

from grader.finding import fault
from grader.recording.model import (
    MAX_LAUNCHES,
    MAX_TEXT,
    Argument,
    Descriptor,
    Launch,
    View,
    are_fields,
    dtype_name,
    outside_grid,
)
from grader.report import Finding
from grader.worker.module_loader import current_line, kernels_by_line
from grader.worker.recorder import Recorder

_OPTIONS = frozenset(CUDAOptions.__dataclass_fields__)
_MAX_DEPTH = 4  # of tuples as arguments


@contextlib.contextmanager
def capture_launches(recorder: Recorder, returned: Callable[..., Any]) -> Iterator[None]:
    """Sends launches to ``recorder`` and to no device; ``returned`` builds their results."""

    def run(self: Any, *args: Any, grid: Any, warmup: bool, **kwargs: Any) -> Any:
        if not warmup:
            _record(recorder, self, args, kwargs, grid)
        return returned(self, args, kwargs, warmup=warmup)

    def tuned(self: Any, *args: Any, **kwargs: Any) -> Any:
        return _tuned(recorder, self, args, kwargs)

    with mock.patch.object(JITFunction, "run", run), mock.patch.object(Autotuner, "run", tuned):
        yield


def _tuned(recorder: Recorder, tuner: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """``Autotuner.run`` as if the requested configuration had been measured as the fastest.

    Of all that may prepare a launch, only the ``pre_hook`` of the configuration itself belongs to
    such a run. The tuner's own hooks (``reset_to_zero``, ``restore_value``, ``pre_hook`` and
    ``post_hook``) go round the runs that measure; after these, ``reset_to_zero`` clears its tensors
    once more, so the very first result of several configurations comes from zeros, and every later
    one from what the tensors hold. (Triton 3.6 to 3.9 do so; where pruning leaves one of several,
    3.6 and 3.7 measure it, 3.8 and 3.9 do not.) What is recorded is the later run: a kernel that
    adds to its output is right in every call only if the function clears the output. Where trials
    are asked for, the first call is recorded: those runs with all hooks, once each, and then its
    own.
    """
    tuner.nargs = dict(zip(tuner.arg_names, args, strict=False))
    configs = tuner.prune_configs(kwargs) if len(tuner.configs) > 1 else tuner.configs
    tuner.best_config = config = recorder.choose(configs)
    if conflicts := sorted(kwargs.keys() & config.kwargs.keys()):
        raise ValueError(f"Conflicting meta-parameters: {', '.join(conflicts)}. "
                         f"Make sure that you don't re-define auto-tuned symbols.")
    chosen = config.all_kwargs()
    if recorder.trials and len(configs) > 1:
        for tried in configs[:recorder.trials]:
            _try(tuner, tried, args, kwargs)
        tuner.pre_hook({**tuner.nargs, **kwargs, **chosen}, reset_only=True)
    if config.pre_hook is not None:
        config.pre_hook({**tuner.nargs, **kwargs, **chosen})
    try:
        return tuner.fn.run(*args, **kwargs, **chosen)
    finally:
        tuner.nargs = None


def _try(tuner: Any, config: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    """One trial run of a configuration, on the tensors of the caller."""
    nargs = {**tuner.nargs, **kwargs, **config.all_kwargs()}
    if config.pre_hook is not None:
        config.pre_hook(nargs)
    tuner.pre_hook(nargs)
    tuner.fn.run(*args, **kwargs, **config.all_kwargs())
    tuner.post_hook(nargs, exception=None)


def _record(recorder: Recorder, kernel: Any, args: tuple[Any, ...], kwargs: dict[str, Any],
            grid: Any) -> None:
    """Records one launch.

    Raises:
        TypeError, KeyError, ValueError: what Triton raises for such a call.
        Stop: a finding ends the call.
    """
    name = str(kernel.__name__)
    if recorder.launches >= MAX_LAUNCHES:
        recorder.stop("T03", fault("too many launches", count=MAX_LAUNCHES + 1, most=MAX_LAUNCHES))
    key = _key(recorder, kernel)
    for hook in kernel.pre_run_hooks:
        hook(*args, **kwargs)
    values, options = _bind(recorder, kernel, name, args, kwargs)
    sizes = _grid(recorder, name, grid, values)
    recorder.check_untouched()
    recorder.launches += 1
    arguments = _arguments(recorder, kernel, values)
    recorder.note(Launch(key, sizes, arguments, options, current_line(recorder.path)))


def bound_arguments(recorder: Recorder, kernel: Any, args: tuple[Any, ...],
                    kwargs: dict[str, Any]) -> tuple[str, dict[str, Argument], dict[str, Any]]:
    """A launch without its grid: the kernel's key, every parameter, and the options apart.

    Raises:
        TypeError, KeyError, ValueError: what Triton raises for such a call.
    """
    values, options = _bind(recorder, kernel, str(kernel.__name__), args, kwargs)
    return _key(recorder, kernel), _arguments(recorder, kernel, values), options


def _arguments(recorder: Recorder, kernel: Any,
               values: Mapping[str, Any]) -> dict[str, Argument]:
    parameters = {parameter.name: parameter for parameter in kernel.params}
    return {key: _argument(recorder, str(kernel.__name__), parameters[key], value)
            for key, value in values.items()}


def _key(recorder: Recorder, kernel: Any) -> str:
    """The key by which the executor finds a kernel in the text of the file.

    The executor refuses a kernel that the file does not define.

    Raises:
        Stop: the file defines another kernel of this name.
    """
    name, code = str(kernel.__name__), getattr(kernel.fn, "__code__", None)
    kernels = kernels_by_line(recorder.path)
    if code is None:
        return name
    if code.co_filename == recorder.path and code.co_firstlineno in kernels:
        return kernels[code.co_firstlineno].key
    line = next((line for line, one in kernels.items() if one.key == name), None)
    if line is not None:
        own_line = code.co_firstlineno if code.co_filename == recorder.path else None
        recorder.stop("L05", fault("unlike text", kernel=name, line=line, own_line=own_line))
    return name


def _bind(recorder: Recorder, kernel: Any, name: str, args: tuple[Any, ...],
          kwargs: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Every parameter's value in order, and the launch options apart."""
    parameters = kernel.signature.parameters
    given = {key: value for key, value in kwargs.items() if key in parameters}
    options = {key: value for key, value in kwargs.items() if key not in parameters}
    for key in options:
        if key not in _OPTIONS:
            near = difflib.get_close_matches(key, [*parameters, *_OPTIONS], n=1)
            recorder.find("L05", fault("no parameter", kernel=name, name=key,
                                       nearest=near[0] if near else ""))
            raise KeyError(f"Keyword argument {key} was specified but unrecognised")
    try:
        bound = kernel.signature.bind(*args, **given)
    except TypeError as error:
        named = f" and {', '.join(given)} by name" if given else ""
        came = f"{len(args)} arguments by position{named}"
        raise TypeError(f"{name}: {error} (the launch passes {came}, the kernel has "
                        f"{len(parameters)} parameters)") from None
    bound.apply_defaults()
    return dict(bound.arguments), {key: _option(recorder, key, options[key]) for key in options}


def _option(recorder: Recorder, key: str, value: Any) -> int | bool | str | None:
    value = _plain(value)
    if key == "num_warps" and not (isinstance(value, int) and value > 0 and not value & value - 1):
        raise AssertionError("num_warps must be a power of 2")
    if value is not None and not isinstance(value, int | bool | str):
        recorder.stop("L05", fault("option type", name=key, type=type(value).__name__))
    return value


def _grid(recorder: Recorder, name: str, grid: Any, values: Mapping[str, Any]
          ) -> tuple[int, int, int]:
    if callable(grid):
        grid = grid(dict(values))
    if not isinstance(grid, tuple | list):
        kind = type(grid).__name__
        recorder.find("L01", fault("grid type", kernel=name, got=f"{grid!r:.40}", type=kind))
        raise TypeError(f"object of type '{kind}' has no len()")
    if not 1 <= len(grid) <= 3:
        recorder.find("L01", fault("grid length", kernel=name, count=len(grid)))
        raise IndexError("tuple index out of range")
    sizes = [_size(recorder, name, axis, size) for axis, size in enumerate(grid)]
    if wrong := outside_grid(name, sizes):
        recorder.find("L01", wrong)
        raise ValueError(Finding("L01", wrong).seen)
    x, y, z = [*sizes, 1, 1][:3]
    return x, y, z


def _size(recorder: Recorder, name: str, axis: int, value: Any) -> int:
    try:
        return operator.index(value)
    except TypeError:
        recorder.find("L01", fault("grid number", kernel=name, got=f"{value!r:.40}", axis=axis,
                                   type=type(value).__name__))
        raise


def _plain(value: Any) -> Any:
    """Without the wrappers that Triton and NumPy put around Python values."""
    value = value.value if isinstance(value, tl.constexpr) else value
    return value.item() if isinstance(value, np.generic) else value


def _argument(recorder: Recorder, kernel: str, parameter: Any, value: Any) -> Argument:
    """A kernel's argument as data.

    Raises:
        TypeError: Triton does not take the argument, or an item of a tuple.
    """
    annotation, type_name = parameter.annotation_type, type(value).__name__
    is_float = annotation[:2] in ("fp", "bf")
    inspected = not (parameter.is_constexpr or is_float or annotation == "u1")
    argument = _value(recorder, kernel, parameter.name, value, numpy=not inspected)
    if argument is None:
        raise TypeError(f"failed to specialize argument of type: {type_name}")
    if not parameter.is_constexpr:  # checked by the launcher
        if is_float and argument.kind not in ("float", "int", "bool"):
            raise TypeError(f"must be real number, not {type_name}")
        if annotation[:1] in ("i", "u") and argument.kind not in ("int", "bool"):
            raise TypeError(f"'{type_name}' object cannot be interpreted as an integer")
    return argument


def _value(recorder: Recorder, kernel: str, name: str, value: Any, *, numpy: bool,
           depth: int = 0) -> Argument | None:
    """A value as data; None for a value that Triton does not accept as an argument.

    ``numpy``: whether numbers of NumPy's types are accepted.
    """
    if numpy or isinstance(value, tl.constexpr):
        value = _plain(value)
    if isinstance(value, torch.Tensor):
        return Argument("tensor", _tensor(recorder, kernel, name, value))
    if isinstance(value, MockTensor):  # of a warmup, which is given no memory
        return Argument("tensor", recorder.view(value))
    if isinstance(value, TensorDescriptor):
        return Argument("descriptor", _descriptor(recorder, kernel, name, value))
    if isinstance(value, bool):
        return Argument("bool", value)
    if isinstance(value, int):
        if not -(2**63) <= value < 2**64:
            raise OverflowError(f"`{name}` = {value} does not fit 64 bits")
        return Argument("int", int(value))
    if isinstance(value, float):  # numpy.float64 is one, all other numbers of NumPy are none
        return Argument("float", float(value))
    if value is None:
        return Argument("none", None)
    if isinstance(value, str):
        if len(value) > MAX_TEXT:
            recorder.stop("X01", fault("text argument", name=name, kernel=kernel,
                                       count=len(value), most=MAX_TEXT))
        return Argument("str", str(value))
    if isinstance(value, tl.dtype):
        return Argument("dtype", str(value))
    if isinstance(value, JITFunction):
        return Argument("function", _key(recorder, value))
    if isinstance(value, tuple) and depth < _MAX_DEPTH:
        items = [_value(recorder, kernel, name, item, numpy=numpy, depth=depth + 1)
                 for item in value]
        fields = tuple(map(str, getattr(value, "_fields", ())))
        return None if None in items else Argument(
            "tuple", tuple(items), fields if are_fields(fields) else ())
    return None


def _tensor(recorder: Recorder, kernel: str, name: str, tensor: torch.Tensor) -> View:
    if tensor.device.type == "meta":
        raise ValueError(f"Pointer argument `{name}` cannot be accessed from Triton (its device is "
                         f"'meta')")
    if tensor.is_complex():
        recorder.stop("L05", fault("complex argument", name=name, kernel=kernel,
                                   dtype=dtype_name(tensor)))
    view = recorder.view(tensor)
    if view is None:
        kind = recorder.kind(tensor)
        recorder.stop("X01", fault("foreign argument", name=name, kernel=kernel,
                                   origin=kind.value if kind else ""))
    recorder.check_device(tensor)
    recorder.forget(tensor)
    return view


def _descriptor(recorder: Recorder, kernel: str, name: str, given: TensorDescriptor) -> Descriptor:
    """A host tensor descriptor as data; hooks of configurations may change its block later.

    Raises:
        AssertionError, TypeError, ValueError: Triton would refuse it.
    """
    view = _tensor(recorder, kernel, name, given.base)
    given.__post_init__()  # its own checks, with its own words
    shape, strides = _sizes(given.shape), _sizes(given.strides)
    block = _sizes(given.block_shape)
    if min(strides) < 0 or min(block) < 1:
        raise ValueError(f"`{name}` has strides {list(strides)} and a block of {list(block)}")
    bytes_left = given.base.untyped_storage().nbytes() - view.offset * given.base.element_size()
    reach = 1 + sum((size - 1) * step for size, step in zip(shape, strides, strict=True))
    if (past := reach * given.base.element_size() - bytes_left) > 0:
        recorder.stop("M01", fault("descriptor", name=name, kernel=kernel, shape=str(shape),
                                   strides=str(strides), n_bytes=str(past)))
    return Descriptor(view, shape, strides, block, str(given.padding),
                      bool(getattr(given, "round_f32_to_tf32", False)))


def _sizes(values: Any) -> tuple[int, ...]:
    return tuple(operator.index(value) for value in values)
