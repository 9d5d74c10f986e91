"""The ``CompiledKernel`` that a launch or ``kernel.warmup`` returns to host code."""

import json
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, NoReturn

import torch
from triton.runtime.jit import JITFunction, MockTensor

from grader.engine.compiler.targets import WARP
from grader.finding import Fault
from grader.recording.model import Launch, Recording, View, dtype_name, to_json
from grader.report import Finding
from grader.worker.launch_capture import bound_arguments
from grader.worker.recorder import Recorder

Returned = Callable[..., Any]  # of a launch: kernel, args, kwargs, and whether it is a warmup
Question = dict[str, Any]  # a recording of one launch, as JSON

_ONE = View(0, "uint8", (1,), (1,), 0)
_ALIGNMENTS = 16  # elements; the compiler knows addresses modulo 16 bytes
_OPTIONS: Mapping[str, Any] = MappingProxyType({"num_stages": 3, "num_ctas": 1})  # Triton's own


class FigureMissing(BaseException):
    """Ends a call that reads a figure of the compiler; the judge sends it and repeats the call."""


class Figures:
    """Figures of compiled launches, which the judge gets from the compiler's process.

    ``question`` is the first launch since ``begin`` whose figures are missing.
    """

    def __init__(self) -> None:
        self._known: dict[str, Mapping[str, int]] = {}
        self.question: Question | None = None

    def begin(self) -> None:
        self.question = None

    def learn(self, question: Question, figures: Mapping[str, int]) -> None:
        self._known[json.dumps(question, sort_keys=True)] = figures

    def of(self, launch: Launch) -> Mapping[str, int]:
        """``n_regs`` and ``n_spills`` of a thread, ``shared`` bytes and ``num_warps``.

        Raises:
            FigureMissing: the judge has not sent them yet.
        """
        question = to_json(Recording((_ONE,), (launch,), ()))
        figures = self._known.get(json.dumps(question, sort_keys=True))
        if figures is None:
            self.question = self.question or question
            raise FigureMissing(launch.kernel)
        return figures

    def returned(self, path: str) -> Returned:
        """The factory of what launches of kernels in the file ``path`` return."""
        def compiled(kernel: Any, args: tuple[Any, ...], kwargs: dict[str, Any], *,
                     warmup: bool) -> CompiledKernel:
            return CompiledKernel(self, path, kernel, args, kwargs, loaded=not warmup)

        return compiled


class _Metadata:
    """``metadata`` of a compiled kernel."""

    def __init__(self, compiled: Any) -> None:
        self._compiled = compiled
        self.name = compiled.name
        self.warp_size = WARP

    def __getattr__(self, name: str) -> Any:
        if name in ("shared", "num_warps"):
            return self._compiled._figure(name)
        if name not in _OPTIONS:
            raise AttributeError(f"the metadata of a grade's compiled kernels has no `{name}`: it "
                                 f"has name, shared, num_warps, {', '.join(_OPTIONS)}")
        return {**_OPTIONS, **self._compiled._kwargs}[name]


class CompiledKernel:
    """Triton's ``CompiledKernel``, as far as host code of a grade can use one.

    Its launch is described only when a figure of it is read.
    """

    def __init__(self, figures: Figures, path: str, kernel: Any, args: tuple[Any, ...],
                 kwargs: dict[str, Any], *, loaded: bool) -> None:
        """``loaded``: it was launched, so its figures can be read without ``_init_handles``."""
        self._figures, self._path, self._loaded = figures, path, loaded
        self._kernel, self._args, self._kwargs = kernel, args, kwargs
        self._launch: Launch | None = None
        self.name = str(kernel.__name__)

    @property
    def metadata(self) -> _Metadata:  # made when read: a cycle would keep the arguments
        return _Metadata(self)

    def _init_handles(self) -> None:
        self._loaded = True

    def _figure(self, name: str) -> int:
        if self._launch is None:
            key, arguments, options = bound_arguments(
                _ArgumentRecorder(self._path, ()), self._kernel, self._args, self._kwargs)
            self._launch = Launch(key, (1, 1, 1), arguments, options)
        return self._figures.of(self._launch)[name]

    def __getitem__(self, grid: Any) -> Callable[..., None]:
        """Launches this code, with the constexpr parameters and options it was compiled with."""
        self._init_handles()
        kernel = self._kernel

        def launch(*args: Any, stream: Any = None) -> None:
            names = [parameter.name for parameter in kernel.params]
            if len(args) != len(names):
                raise TypeError(f"{self.name}: a compiled kernel takes all of its {len(names)} "
                                f"arguments by position, constexprs too; it got {len(args)}")
            given = {key: value for key, value in self._kwargs.items() if key in names}
            options = {key: value for key, value in self._kwargs.items() if key not in names}
            bound = kernel.signature.bind(*self._args, **given)
            bound.apply_defaults()
            values = {parameter.name: bound.arguments[parameter.name]
                      if parameter.is_constexpr else value
                      for parameter, value in zip(kernel.params, args, strict=True)}
            JITFunction.run(kernel, grid=(grid[0], grid[1], grid[2]), warmup=False, **values,
                            **options)

        return launch

    def __getattr__(self, name: str) -> int:
        if name not in ("n_regs", "n_spills", "n_max_threads"):
            raise AttributeError(f"the compiled kernels of a grade have no `{name}`: they have "
                                 "metadata, n_regs, n_spills, n_max_threads "
                                 "and `kernel[grid](...)`")
        if not self._loaded:
            raise AttributeError(f"'CompiledKernel' object has no attribute '{name}' before "
                                 f"`_init_handles()` or a launch")
        return self._figure("num_warps") * WARP if name == "n_max_threads" else self._figure(name)


class _ArgumentRecorder(Recorder):
    """A recorder that describes the arguments of a launch and records no event."""

    def view(self, tensor: torch.Tensor | MockTensor) -> View:
        offset = tensor.storage_offset() if isinstance(tensor, torch.Tensor) else 0
        return View(0, dtype_name(tensor), (1,), (1,), int(offset) % _ALIGNMENTS)

    def stop(self, code: str, data: Fault) -> NoReturn:
        raise ValueError(Finding(code, data).seen)
