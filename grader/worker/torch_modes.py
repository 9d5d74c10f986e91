"""Torch modes that record the allowed operations of host code and report the others."""

import contextlib
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any
from unittest import mock

import torch
from torch.autograd.function import BackwardCFunction
from torch.overrides import TorchFunctionMode, resolve_name
from torch.utils._python_dispatch import TorchDispatchMode, _disable_current_modes

from grader.finding import fault
from grader.worker import aten_policy
from grader.worker.recorder import Recorder, StorageKind

# Reads that no operation of ATen shows; `item`, `__float__` and the like lead to such.
_READ_BACK = frozenset({"numpy", "tolist", "__array__", "__dlpack__"})
_MOVE = frozenset({"to", "type_as", "cuda"})
_SHOW = frozenset({"__repr__", "__str__", "__format__"})
_ON_THE_CPU = torch._C.DispatchKeySet(torch._C.DispatchKey.CPU)


@cache
def _name(function: Callable[..., Any]) -> str:
    """Torch's name of a function; cached, as the look-up takes longer than most calls.

    ``torch.mm`` equals ``torch.spmm``, and ``resolve_name`` keeps the last of equal functions.
    """
    own = str(getattr(function, "__name__", ""))
    if getattr(torch, own, None) == function:
        return f"torch.{own}"
    return resolve_name(function) or ""


class FunctionCallMode(TorchFunctionMode):
    """Tracks the torch function that is called, and reads that no ATen operation shows."""

    def __init__(self, recorder: Recorder) -> None:
        super().__init__()
        self._recorder = recorder

    def __torch_function__(self, func: Callable[..., Any], types: Any, args: Any = (),
                           kwargs: Any = None) -> Any:
        recorder = self._recorder
        outer, device = recorder.called, recorder.device
        if not outer:
            recorder.called, recorder.device = _name(func), (kwargs or {}).get("device")
        try:
            name = getattr(func, "__name__", "")
            if name in _SHOW and args and isinstance(args[0], torch.Tensor):
                return _show(recorder, func, args, kwargs or {})
            if name in _READ_BACK and args and isinstance(args[0], torch.Tensor):
                recorder.read(args[0], _method_name(name))
            result = func(*args, **(kwargs or {}))
            if name in _MOVE and any(isinstance(value, torch.device | torch.Tensor | str)
                                     for value in (*args[1:], *(kwargs or {}).values())):
                recorder.moved_to_a_device(result)
            return result
        finally:
            recorder.called, recorder.device = outer, device


class OperationMode(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Handles every ATen operation by its class in ``aten_policy``."""

    def __init__(self, recorder: Recorder) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._recorder = recorder

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        """False: hiding the mode from torch's compiler would load all of it, which takes 1.5 s."""
        return False

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        recorder = self._recorder
        if aten_policy.is_of_the_file(func):
            return self._inside(func, args, kwargs)
        operation = aten_policy.python_name(func, recorder.called)
        kind = aten_policy.classify(func, args)
        if kind == "deny":  # under `torch.inference_mode` operations come in one piece
            with self:
                parts = func.decompose(*args, **kwargs)
            if parts is not NotImplemented:
                return parts
        for target in aten_policy.tensors_written(func, args, kwargs):
            if name := recorder.input_name(target):
                recorder.stop("M07", fault("host changes", code=operation, name=name))
        return _TREATMENTS[kind](recorder, func, args, kwargs, operation)

    def _inside(self, func: Any, args: Any, kwargs: Any) -> Any:
        """Runs the Python behind an operator of the file, as host code under both modes."""
        recorder = self._recorder
        outer, recorder.called = recorder.called, ""
        try:
            with FunctionCallMode(recorder), self:
                return func.redispatch(_ON_THE_CPU, *args, **kwargs)
        finally:
            recorder.called = outer


@contextlib.contextmanager
def watched_backward(recorder: Recorder) -> Iterator[None]:
    """Applies ``FunctionCallMode`` to backward passes of the learner's own functions too.

    They run within a call of torch, in which torch switches such modes off.
    """
    run: Callable[..., Any] = BackwardCFunction.apply

    def apply(node: Any, *args: Any) -> Any:
        outer = recorder.called, recorder.device
        recorder.called, recorder.device = "", None
        try:
            with FunctionCallMode(recorder):
                return run(node, *args)
        finally:
            recorder.called, recorder.device = outer

    with mock.patch.object(BackwardCFunction, "apply", apply):
        yield


def _show(recorder: Recorder, func: Any, args: Any, kwargs: Any) -> str:
    """The text of a tensor, as for `print`; the operations behind it are not recorded."""
    tensor = args[0]
    if recorder.readable(tensor):
        with _disable_current_modes():
            return str(func(*args, **kwargs))
    return (f"tensor(shape={tuple(tensor.shape)}, dtype={tensor.dtype}; "
            f"its values exist only where the kernels run)")


def _method_name(name: str) -> str:
    return name if name.startswith("__") else f".{name}()"


def _allocate(recorder: Recorder, op: Any, args: Any, kwargs: Any, operation: str) -> Any:
    result = op(*args, **kwargs)
    recorder.allocated(result, operation, aten_policy.tensors(args))
    return result


def _create(recorder: Recorder, op: Any, args: Any, kwargs: Any, operation: str) -> Any:
    """Records a new tensor with one value, which is written in the executor only."""
    shape = op(*args, **{**kwargs, "device": "meta", "pin_memory": False})
    device = kwargs.get("device") or next((t.device for t in aten_policy.tensors(args)), None)
    if device is not None and torch.device(device).type != "cpu":
        return op(*args, **kwargs)
    result = torch.empty_strided(shape.shape, shape.stride(), dtype=shape.dtype)
    recorder.allocated(result, operation, aten_policy.tensors(args))
    name = aten_policy.base(op)
    if "full" in name:
        value = kwargs["fill_value"] if "fill_value" in kwargs else args[1 + (name == "new_full")]
    else:
        value = int("ones" in name)
    recorder.filled(result, value, operation)
    return result


def _fill(recorder: Recorder, op: Any, args: Any, kwargs: Any, operation: str) -> Any:
    target = args[0]
    value = 0 if aten_policy.base(op) == "zero_" else args[1] if len(args) > 1 else kwargs["value"]
    if isinstance(value, torch.Tensor) and recorder.kind(value) is not StorageKind.LITERAL:
        recorder.moved(target, value, operation)
    else:
        recorder.filled(target, value, operation)
    return target


def _call(recorder: Recorder, op: Any, args: Any, kwargs: Any, operation: str) -> Any:
    return op(*args, **kwargs)


def _copy(recorder: Recorder, op: Any, args: Any, kwargs: Any, operation: str) -> Any:
    source = args[0]
    result = op(*args, **kwargs)
    if recorder.kind(source) in (StorageKind.PROBE, StorageKind.LITERAL):
        recorder.add(result, StorageKind.PROBE)
    else:
        readable = recorder.kind(source) in (StorageKind.INPUT, StorageKind.COPIED)
        recorder.allocated(result, operation, [source],
                           StorageKind.COPIED if readable else StorageKind.MADE)
        recorder.moved(result, source, operation)
    return result


def _copy_into(recorder: Recorder, op: Any, args: Any, kwargs: Any, operation: str) -> Any:
    target, source = args[0], args[1]
    if recorder.kind(source) is StorageKind.LITERAL:
        recorder.filled(target, source, operation)
    else:
        recorder.moved(target, source, operation)
        recorder.forget(target)
    return target


def _lift(recorder: Recorder, op: Any, args: Any, kwargs: Any, operation: str) -> Any:
    """Refuses a tensor of Python or NumPy values, except one number as in ``y[:] = 0``."""
    source = args[0]
    if source.dim() or source.device.type != "cpu":
        shown = operation if recorder.called.startswith("torch.") else "torch.from_numpy"
        recorder.stop("X01", fault("host values", code=shown))
    result = op(*args, **kwargs)
    recorder.add(result, StorageKind.LITERAL)
    return result


def _validate(recorder: Recorder, op: Any, args: Any, kwargs: Any, operation: str) -> Any:
    if not all(recorder.readable(tensor) for tensor in aten_policy.tensors(args)):
        recorder.stop("X01", fault("host check", code=operation))
    result = op(*args, **kwargs)
    for tensor in aten_policy.tensors(result):
        recorder.add(tensor, StorageKind.PROBE)
    return result


def _read(recorder: Recorder, op: Any, args: Any, kwargs: Any, operation: str) -> Any:
    name = recorder.called.rpartition(".")[2]
    recorder.read(args[0], _method_name(name or "item"))
    return op(*args, **kwargs)


def _deny(recorder: Recorder, op: Any, args: Any, kwargs: Any, operation: str) -> Any:
    recorder.stop("X01", fault("host work", code=operation))


_TREATMENTS: dict[str, Callable[[Recorder, Any, Any, Any, str], Any]] = {
    "allocate": _allocate, "create": _create, "fill": _fill, "view": _call, "copy": _copy,
    "copy_into": _copy_into, "lift": _lift, "meta": _call, "validate": _validate, "read": _read,
    "deny": _deny,
}
