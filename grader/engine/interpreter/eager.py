"""Runs launches on the engine as they are made, for host code that needs each result at once."""

import bisect
import contextlib
import gc
import operator
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, cast
from unittest import mock

import numpy as np
import torch
import triton.language as tl
from torch.overrides import TorchFunctionMode
from triton.backends.nvidia.compiler import CUDAOptions
from triton.runtime.autotuner import Autotuner
from triton.runtime.jit import JITFunction
from triton.tools.tensor_descriptor import TensorDescriptor

from grader.engine.interpreter.address_space import Storage
from grader.engine.interpreter.launch import HostDescriptor, LaunchOutcome, Order, Pointer, run
from grader.engine.interpreter.memory import Memory
from grader.engine.interpreter.patch_triton import installed
from grader.engine.interpreter.poison import FRESH_BYTE
from grader.engine.interpreter.shadow_memory import HOST
from grader.engine.interpreter.tracer import Tracer, TracingMemory
from grader.recording.model import dtype_name, outside_grid
from grader.recording.trace import Group
from grader.report import Finding

_OPTIONS = frozenset(CUDAOptions.__dataclass_fields__)
_EMPTY = frozenset((torch.empty, torch.empty_like, torch.empty_strided, torch.empty_permuted,
                    torch.Tensor.new_empty, torch.Tensor.new_empty_strided))


class KernelFailed(RuntimeError):
    """A kernel could not go on; ``finding`` says why."""

    def __init__(self, finding: Finding) -> None:
        super().__init__(f"{finding.code}: {finding.seen}"
                         + (f" (line {finding.line})" if finding.line else ""))
        self.finding = finding


@dataclass(frozen=True)
class TracedCall:
    """A traced launch: its tensors by parameter, in the order of their numbers, and its groups."""

    kernel: str
    grid: tuple[int, int, int]
    tensors: dict[str, torch.Tensor]
    groups: list[Group]


@dataclass
class InterpretedLaunches:
    """The outcomes of the launches inside the block, and their findings."""

    memory: Memory
    launches: list[LaunchOutcome] = field(default_factory=list)
    traced: list[TracedCall] = field(default_factory=list)

    @property
    def findings(self) -> list[Finding]:
        """Code, what was seen and the line, one for each kind of event and place."""
        return self.memory.observed.findings()


@contextmanager
def interpreted(*, order: Order = "forward", poison: int = 0, duplicate_writes: bool = False,
                config: int = 0, chunk: int | None = None, capability: int | None = None,
                returned: Callable[..., Any] = lambda *_, **__: None,
                tracer: Tracer | None = None) -> Iterator[InterpretedLaunches]:
    """Inside the block ``kernel[grid](...)`` on CPU tensors runs at once, under watch.

    Memory from ``torch.empty`` and its like counts as unwritten; all else as written by the host.

    Args:
        order: in which programs of a launch run.
        poison: which of the two patterns fills unwritten memory and masked-off elements.
        duplicate_writes: whether two programs may store the same element.
        config: which of an autotuner's configurations is taken, counted round.
        chunk: how many programs run at once, at most; None leaves it to the engine.
        capability: of the GPU that a kernel finds where it asks for one, as for ``installed``.
        returned: makes what a launch returns, of kernel, args, kwargs and ``warmup``.
        tracer: traces the launches; the groups of each are in ``InterpretedLaunches.traced``.

    Raises:
        KernelFailed: from the launch of a kernel that could not go on.
    """
    tensors = _Tensors(poison)
    kind = Memory if tracer is None else TracingMemory
    memory = kind(poison, duplicate_writes=duplicate_writes, find=tensors.at_address)
    trace = InterpretedLaunches(memory)

    def launch(self: Any, *args: Any, grid: Any, warmup: bool, **kwargs: Any) -> Any:
        if not warmup:
            _launch(trace, tensors, self, args, kwargs, grid, order=order, chunk=chunk,
                    tracer=tracer)
        return returned(self, args, kwargs, warmup=warmup)

    run_backward = torch.autograd._engine_run_backward  # type: ignore[attr-defined]

    def backward(*args: Any, **kwargs: Any) -> Any:
        with _FreshMemory(tensors):  # torch takes the mode away for the call of backward
            return run_backward(*args, **kwargs)

    with (mock.patch.object(JITFunction, "run", launch),
          mock.patch.object(Autotuner, "run",
                            lambda self, *args, **kwargs: _tuned(self, config, args, kwargs)),
          mock.patch.object(torch.autograd, "_engine_run_backward", backward),
          _FreshMemory(tensors), installed(memory, capability)):
        yield trace


def _tuned(tuner: Any, config: int, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    tuner.nargs = dict(zip(tuner.arg_names, args, strict=False))
    kept = tuner.prune_configs(kwargs) if len(tuner.configs) > 1 else tuner.configs
    tuner.best_config = chosen = kept[config % len(kept)]
    options = chosen.all_kwargs()
    if chosen.pre_hook is not None:
        chosen.pre_hook({**tuner.nargs, **kwargs, **options})
    try:
        return tuner.fn.run(*args, **kwargs, **options)
    finally:
        tuner.nargs = None


def _launch(trace: InterpretedLaunches, tensors: "_Tensors", kernel: Any, args: tuple[Any, ...],
            kwargs: dict[str, Any], grid: Any, *, order: Order, chunk: int | None,
            tracer: Tracer | None) -> None:
    parameters = kernel.signature.parameters
    for key in kwargs:
        if key not in parameters and key not in _OPTIONS:
            raise KeyError(f"Keyword argument {key} was specified but unrecognised")
    for hook in kernel.pre_run_hooks:
        hook(*args, **kwargs)
    bound = kernel.signature.bind(*args, **{k: v for k, v in kwargs.items() if k in parameters})
    bound.apply_defaults()
    if grid is None:
        raise TypeError("a kernel is launched with a grid: kernel[grid](...)")
    sizes = grid(dict(bound.arguments)) if callable(grid) else grid
    sizes = tuple(operator.index(size) for size in sizes)
    if wrong := outside_grid(kernel.__name__, sizes):
        raise KernelFailed(Finding("L01", wrong))
    constant = {parameter.name for parameter in kernel.params if parameter.is_constexpr}
    values = {name: value if name in constant and not isinstance(value, tl.constexpr)
              else tensors.argument(value) for name, value in bound.arguments.items()}
    given = {name: value for name, value in bound.arguments.items()
             if isinstance(value, torch.Tensor)}
    with contextlib.nullcontext() if tracer is None else tracer.launch(
            cast(TracingMemory, trace.memory), {name: n for n, name in enumerate(given)}):
        outcome = run(kernel, (*sizes, 1, 1)[:3], values, trace.memory, order=order, chunk=chunk,
                      options={k: v for k, v in kwargs.items() if k not in parameters})
    trace.launches.append(outcome)
    if tracer is not None:
        trace.traced.append(TracedCall(kernel.__name__, (*sizes, 1, 1)[:3], given, tracer.groups))
    tensors.keep_versions()
    if outcome.failure is not None:
        raise KernelFailed(outcome.failure)


# -- tensors ------------------------------------------------------------------------------------


@dataclass
class _HostStorage:
    """A storage that kernels have seen. A newer ``version`` means that the host wrote to it."""

    storage: Storage
    tensor: torch.Tensor  # keeps the memory alive
    version: int


class _Tensors:
    """The engine's storages behind torch's."""

    def __init__(self, poison: int) -> None:
        self._poison = poison
        self._entries: dict[int, _HostStorage] = {}
        self._used: list[_HostStorage] = []  # by the launch that is prepared
        self._live: list[tuple[int, int, torch.Tensor]] = []  # start, bytes; by start
        self._looked = False  # in this launch

    def argument(self, value: Any) -> Any:
        if isinstance(value, torch.Tensor):
            return self.pointer(value)
        if isinstance(value, tl.constexpr):
            return value.value
        if isinstance(value, np.generic) and not isinstance(value, float):
            raise TypeError(f"failed to specialize argument of type: {type(value).__name__}")
        if isinstance(value, TensorDescriptor):
            reach = value.base.as_strided(value.shape, value.strides)
            return HostDescriptor(self.pointer(reach), value)
        if isinstance(value, tuple):
            items = map(self.argument, value)
            return type(value)(*items) if hasattr(value, "_fields") else tuple(items)
        return value

    def pointer(self, tensor: torch.Tensor) -> Pointer:
        entry = self._find(tensor, unwritten=False)
        self._used.append(entry)
        if tensor._version > entry.version:
            entry.storage.shadow.fill(HOST)
        size = tensor.element_size()
        extent = 0 if not tensor.numel() else 1 + sum(
            (int(n) - 1) * int(step)
            for n, step in zip(tensor.shape, tensor.stride(), strict=True))
        start = int(tensor.storage_offset()) * size
        return Pointer(entry.storage, dtype_name(tensor), start, extent * size)

    def at_address(self, address: int) -> tuple[Storage, int] | None:
        """The live tensor whose memory holds a real address, for tables of pointers."""
        for _ in range(2):  # the second time with the tensors that live now
            place = bisect.bisect_right(self._live, address, key=lambda live: live[0]) - 1
            if place >= 0:
                start, nbytes, item = self._live[place]
                if address < start + nbytes:
                    return self._find(item, unwritten=False).storage, item.element_size()
            if self._looked:  # once a launch is enough: it makes no tensors
                return None
            self._live = sorted(_live_tensors(), key=lambda live: live[0])
            self._looked = True
        return None

    def fresh(self, tensor: torch.Tensor) -> None:
        """Note memory that nobody has written, and fill it with what nobody would expect."""
        _bytes(tensor).fill(FRESH_BYTE[self._poison])
        self._entries.pop(tensor.untyped_storage()._cdata, None)
        self._find(tensor, unwritten=True)

    def keep_versions(self) -> None:
        """After a launch: what its tensors hold now was written by a kernel."""
        for entry in self._used:
            entry.version = entry.tensor._version
        self._used.clear()
        self._live, self._looked = [], False

    def _find(self, tensor: torch.Tensor, *, unwritten: bool) -> _HostStorage:
        key = tensor.untyped_storage()._cdata
        if key not in self._entries:
            storage = Storage(_bytes(tensor), tensor.element_size(), is_input=not unwritten,
                              protected=False, address=tensor.untyped_storage().data_ptr())
            self._entries[key] = _HostStorage(storage, tensor, tensor._version)
        entry = self._entries[key]
        entry.storage.use_elements_of(tensor.element_size())
        return entry


def _live_tensors() -> Iterator[tuple[int, int, torch.Tensor]]:
    for item in gc.get_objects():
        if issubclass(type(item), torch.Tensor) and (  # isinstance runs code of the item
                item.device.type == "cpu" and item.layout is torch.strided):
            memory = item.untyped_storage()
            yield memory.data_ptr(), memory.nbytes(), item


def _bytes(tensor: torch.Tensor) -> Any:
    whole = torch.empty(0, dtype=torch.uint8)
    whole.set_(tensor.untyped_storage())
    return whole.numpy()


class _FreshMemory(TorchFunctionMode):
    """Fills what ``torch.empty`` and its like return, unlike all else that makes tensors."""

    def __init__(self, tensors: _Tensors) -> None:
        super().__init__()
        self._tensors = tensors

    def __torch_function__(self, function: Any, types: Any, args: Any = (),
                           kwargs: Any = None) -> Any:
        result = function(*args, **(kwargs or {}))
        if function in _EMPTY and isinstance(result, torch.Tensor) and result.device.type == "cpu":
            with torch._C.DisableTorchFunction():
                self._tensors.fresh(result)
        return result
