"""The compiled kernel that a launch and ``kernel.warmup`` return, with figures of the compiler."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, NoReturn

import torch
from triton.runtime.jit import JITFunction, MockTensor

from grader.engine.compiler.targets import WARP
from grader.recording import Launch, Recording, View, dtype_name, to_json
from grader.worker.launches import bound_arguments

Returned = Callable[..., Any]  # of a launch: kernel, args, kwargs, and whether it is a warmup
Question = dict[str, Any]  # a recording of one launch, as JSON

_ONE = View(0, "uint8", (1,), (1,), 0)
_ALIGNMENTS = 16  # elements; the compiler knows addresses modulo 16 bytes
_OPTIONS: Mapping[str, Any] = MappingProxyType({"num_stages": 3, "num_ctas": 1})  # Triton's own


class Unanswered(BaseException):
    """Ends a call that reads a figure of the compiler: it is repeated when the judge has it."""


class Figures:
    """The compiler's reports about launches; it runs in another process, which the judge asks.

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
        """``n_regs``, ``n_spills``, ``shared`` and ``num_warps``.

        Raises:
            Unanswered: the judge has not sent them yet.
        """
        question = to_json(Recording((_ONE,), (launch,), ()))
        figures = self._known.get(json.dumps(question, sort_keys=True))
        if figures is None:
            self.question = self.question or question
            raise Unanswered(launch.kernel)
        return figures

    def returned(self, path: str) -> Returned:
        """Makes the results of launches of kernels in the file ``path``."""
        def compiled(kernel: Any, args: tuple[Any, ...], kwargs: dict[str, Any], *,
                     warmup: bool) -> CompiledKernel:
            return CompiledKernel(_Asked(self, path, kernel, args, kwargs), loaded=not warmup)

        return compiled


class _Asked:
    """One launch, which is described once a figure is read."""

    def __init__(self, figures: Figures, path: str, kernel: Any, args: tuple[Any, ...],
                 kwargs: dict[str, Any]) -> None:
        self.kernel = kernel
        self.given = args, kwargs
        self.options = {key: value for key, value in kwargs.items()
                        if key not in kernel.signature.parameters}
        self._figures, self._path = figures, path
        self._launch: Launch | None = None

    @property
    def figures(self) -> Mapping[str, int]:
        if self._launch is None:
            key, arguments, options = bound_arguments(_Described(self._path), self.kernel,
                                                      *self.given)
            self._launch = Launch(key, (1, 1, 1), arguments, options)
        return self._figures.of(self._launch)


class CompiledKernel:
    """Triton's ``CompiledKernel``, as far as host code of a grade can use one."""

    def __init__(self, asked: _Asked, *, loaded: bool) -> None:
        """``loaded``: it was launched, so its figures can be read without ``_init_handles``."""
        self._asked, self._loaded = asked, loaded
        self.name = str(asked.kernel.__name__)
        self.metadata = _Metadata(asked)

    def _init_handles(self) -> None:
        self._loaded = True

    @property
    def n_regs(self) -> int:
        return self._figure("n_regs")

    @property
    def n_spills(self) -> int:
        return self._figure("n_spills")

    @property
    def n_max_threads(self) -> int:
        return self._figure("num_warps") * WARP

    def _figure(self, name: str) -> int:
        if not self._loaded:
            raise AttributeError  # Python goes on to `__getattr__`
        return self._asked.figures[name]

    def __getitem__(self, grid: Any) -> Callable[..., None]:
        """Launches this very code: constexpr parameters and options are those it was made with."""
        self._init_handles()
        asked = self._asked

        def launch(*args: Any, stream: Any = None) -> None:
            names = [parameter.name for parameter in asked.kernel.params]
            if len(args) != len(names):
                raise TypeError(f"{self.name}: a compiled kernel takes all of its {len(names)} "
                                f"arguments by position, constexprs too; it got {len(args)}")
            positional, named = asked.given
            made_with = asked.kernel.signature.bind(
                *positional, **{key: value for key, value in named.items() if key in names})
            made_with.apply_defaults()
            values = {parameter.name: made_with.arguments[parameter.name]
                      if parameter.is_constexpr else value
                      for parameter, value in zip(asked.kernel.params, args, strict=True)}
            JITFunction.run(asked.kernel, grid=(grid[0], grid[1], grid[2]), warmup=False,
                            **values, **asked.options)

        return launch

    def __getattr__(self, name: str) -> NoReturn:
        if name in ("n_regs", "n_spills", "n_max_threads"):
            raise AttributeError(f"'CompiledKernel' object has no attribute '{name}' before "
                                 f"`_init_handles()` or a launch")
        raise AttributeError(f"the compiled kernels of a grade have no `{name}`: they have "
                             "metadata, n_regs, n_spills, n_max_threads and `kernel[grid](...)`")


class _Metadata:
    """``metadata`` of a compiled kernel."""

    def __init__(self, asked: _Asked) -> None:
        self._asked = asked
        self.name = str(asked.kernel.__name__)
        self.warp_size = WARP

    @property
    def shared(self) -> int:
        return self._asked.figures["shared"]

    @property
    def num_warps(self) -> int:
        return self._asked.figures["num_warps"]

    def __getattr__(self, name: str) -> Any:
        if name not in _OPTIONS:
            raise AttributeError(f"the metadata of a grade's compiled kernels has no `{name}`: it "
                                 f"has name, shared, num_warps, {', '.join(_OPTIONS)}")
        return {**_OPTIONS, **self._asked.options, **self._asked.given[1]}[name]


class _Described:
    """Stands for a recorder where arguments are described and nothing is launched."""

    def __init__(self, path: str) -> None:
        self.path = path

    def view(self, tensor: torch.Tensor | MockTensor) -> View:
        offset = tensor.storage_offset() if isinstance(tensor, torch.Tensor) else 0
        return View(0, dtype_name(tensor), (1,), (1,), int(offset) % _ALIGNMENTS)

    def find(self, code: str, seen: str, line: int | None = None) -> None:
        """An exception with the same words follows."""

    def stop(self, code: str, seen: str) -> NoReturn:
        raise ValueError(seen)

    def check_device(self, tensor: torch.Tensor) -> None:
        """Its address is not used."""

    def forget(self, tensor: torch.Tensor) -> None:
        """Nothing is written."""
