"""The GPU that host code finds where it asks for one: the target of the grade. It runs nothing."""

import math
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from types import SimpleNamespace
from typing import Any, NoReturn
from unittest import mock

import torch
import triton.testing
from triton.runtime.autotuner import Autotuner
from triton.runtime.driver import driver
from triton.runtime.jit import JITFunction

from grader.engine.compiler.stub_driver import Driver
from grader.engine.compiler.targets import WARP, Target

NO_LAUNCH = "no launch is taken here"  # in the message of one outside of a call that is recorded


class _Told(Driver):
    """Answers like the driver of a machine with one GPU, for code that chooses by what it has."""

    def __init__(self, target: Target) -> None:
        super().__init__(target)
        self.get_current_device = lambda: 0

    def __getattr__(self, name: str) -> NoReturn:
        raise AttributeError(f"the driver of a grade has no `{name}`: it tells of the GPU that "
                             f"kernels are compiled for, and no GPU is there")


class _OneDevice(torch.cuda.device):
    """``with torch.cuda.device(x.device)`` where that is the CPU: nothing changes inside."""

    __init__ = __enter__ = __exit__ = lambda *_, **__: None  # type: ignore[assignment]


def capability() -> int | None:
    """Of the GPU that host code was told of, such as 90; None before that."""
    active = driver._active
    return active.capability if isinstance(active, _Told) else None


def tell_of(target: Target) -> None:
    """Have host code of this process find ``target`` from now on, whatever this machine has.

    Triton's driver answers for it, and so do ``torch.cuda.get_device_capability``,
    ``get_device_properties`` and ``get_device_name``. It is device 0 and the only one; making it
    the current one, or waiting for it, does nothing. ``torch.cuda.is_available`` stays false:
    tensors are on the CPU. A launch that is neither recorded nor interpreted raises a
    RuntimeError, and functions that measure times return NaN.
    """
    driver.set_active(_Told(target))
    JITFunction.run = _not_run
    Autotuner.run = lambda tuner, *args, **kwargs: _not_run(tuner.base_fn, warmup=False)
    major, minor = divmod(target.capability, 10)
    properties = SimpleNamespace(
        name=target.title, major=major, minor=minor, warp_size=WARP,
        multi_processor_count=target.multiprocessors, L2_cache_size=target.l2,
        regs_per_multiprocessor=target.registers,
        max_threads_per_multi_processor=target.warps * WARP,
        shared_memory_per_multiprocessor=target.shared,
        shared_memory_per_block_optin=target.shared_per_program)
    answers = {"get_device_properties": properties, "get_device_capability": (major, minor),
               "get_device_name": target.title, "current_device": 0, "set_device": None,
               "synchronize": None}
    for name, answer in answers.items():
        setattr(torch.cuda, name, lambda device=None, answer=answer: answer)
    torch.cuda.device = _OneDevice  # type: ignore[misc]
    triton.testing.do_bench = triton.testing.do_bench_cudagraph = _not_measured
    triton.testing.Mark.run = _not_drawn


@contextmanager
def run_at_import(returned: Callable[..., Any]) -> Iterator[None]:
    """Inside, launches run on the interpreter, which is put in its place for the first of them.

    ``returned`` makes what a launch returns.
    """
    def start() -> None:
        from grader.engine.interpreter.eager import interpreted

        engine.enter_context(interpreted(capability=capability(), returned=returned))

    def run(kernel: Any, *args: Any, warmup: bool, **kwargs: Any) -> Any:
        if not warmup:
            start()
            return JITFunction.run(kernel, *args, warmup=warmup, **kwargs)
        kwargs.pop("grid")
        return returned(kernel, args, kwargs, warmup=warmup)

    def tuned(tuner: Any, *args: Any, **kwargs: Any) -> Any:
        start()
        return Autotuner.run(tuner, *args, **kwargs)

    with mock.patch.object(JITFunction, "run", run), mock.patch.object(Autotuner, "run", tuned), \
            ExitStack() as engine:
        yield


def _not_measured(fn: Any, *args: Any, quantiles: Any = None, **kwargs: Any) -> Any:
    """``triton.testing.do_bench`` where no GPU is: NaN for each time."""
    count = len(quantiles) if quantiles else 1
    return [math.nan] * count if count > 1 else math.nan


def _not_drawn(mark: Any, *args: Any, **kwargs: Any) -> None:
    """``run`` of a ``triton.testing.perf_report``."""
    print(f"`{mark.fn.__name__}` is not run here: a grade has no clock of a GPU. "
          "`tritonlab bench` measures on one.")


def _not_run(kernel: Any, *args: Any, warmup: bool, **kwargs: Any) -> None:
    if not warmup:
        raise RuntimeError(f"`{kernel.__name__}` is launched, and {NO_LAUNCH}: kernels run for "
                           f"calls of what is graded, and not while a file is imported")
