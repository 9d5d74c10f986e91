"""Asks Triton's own compiler, on a machine without a GPU, whether it takes a construct."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import tempfile
import time
import warnings
from collections.abc import Iterator, Mapping
from types import SimpleNamespace
from typing import Any
from unittest import mock

import torch
import triton
import triton.language as tl
from triton.runtime.driver import driver

from grader.engine.compiler.compile import parse
from grader.engine.compiler.stub_driver import Driver
from grader.engine.compiler.targets import find

from .construct import Construct, listed

_LIMIT_SECONDS = 120


class _Event:
    def __init__(self, enable_timing: bool = False) -> None:
        self._at = 0.0

    def record(self, *_: object) -> None:
        self._at = time.perf_counter()

    def elapsed_time(self, end: _Event) -> float:
        return max(1e3 * (end._at - self._at), 1e-3)

    def synchronize(self) -> None:
        """Nothing runs."""


class _Driver(Driver):
    """A GPU that takes every order and does nothing."""

    def __init__(self) -> None:
        super().__init__(find())
        self.utils.load_binary = lambda *_: (0, 0, 32, 0, 1024)
        self.utils.unload_module = lambda *_: None

    def get_device_interface(self) -> Any:
        return SimpleNamespace(synchronize=lambda *_: None, Event=_Event,
                               current_device=lambda: 0, current_stream=lambda *_: None)

    def get_benchmarker(self) -> Any:
        def bench(kernel_call: Any, *, quantiles: Any = (), **_: Any) -> list[float]:
            kernel_call()
            return [1.0] * len(quantiles)

        return bench

    def get_empty_cache_for_benchmark(self) -> torch.Tensor:
        return torch.empty(256, dtype=torch.int8)

    def clear_cache(self, cache: torch.Tensor) -> None:
        """There is none."""

    def launcher_cls(self, *_: Any) -> Any:
        return lambda *arguments, **options: None


def compiles(construct: Construct) -> tuple[bool, str]:
    """Whether every kernel of the construct compiles, and if not, what was said.

    A child process asks: some code makes the compiler abort, which is a refusal as well.

    Raises:
        TimeoutError: there was no answer.
    """
    reading, writing = os.pipe()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of threads, which a child has not
        child = os.fork()
    if child == 0:
        os.close(reading)
        _in_child(construct, writing)
    os.close(writing)
    with os.fdopen(reading) as pipe:
        said = pipe.read()
    _, status = os.waitpid(child, 0)
    if os.WIFSIGNALED(status):
        number = os.WTERMSIG(status)
        if number == signal.SIGALRM:
            raise TimeoutError(f"{construct.name}: no answer within {_LIMIT_SECONDS} s")
        return False, f"the compiler ended with {signal.Signals(number).name}"
    return said == "", said


def turns(kernel: Any, pointer: Any, values: Mapping[str, int],
          constants: Mapping[str, int]) -> int:
    """How often the only loop of a kernel runs, by the IR that the compiler's front end makes.

    ``kernel`` has one pointer parameter, then those of ``values`` and ``constants``; an unrolled
    loop stores once a turn, and once more after it.
    """
    text = str(parse(kernel, {"out_ptr": pointer, **values, **constants}, {}, find()))
    loop = re.search(r"scf\.for %\w+ = (%\w+) to (%\w+) step (%\w+)", text)
    if loop is None:
        return text.count("tt.store") - 1
    parameters = re.findall(r"(%\w+): i32", text.split("attributes")[0])
    known = dict(zip(parameters, values.values(), strict=True))
    for name, operation, operand in re.findall(
            r"(%\w+) = arith\.(constant|bitcast) (\S+)(?: :|$)", text):
        known[name] = int(operand) if operation == "constant" else known[operand]
    start, end, step = (known[name] for name in loop.groups())
    return len(range(start, end, step))


def _in_child(construct: Construct, writing: int) -> None:
    signal.alarm(_LIMIT_SECONDS)
    torch.set_num_threads(1)  # a child waits for ever for the threads of its parent
    silence = os.open(os.devnull, os.O_WRONLY)
    os.dup2(silence, 1)
    os.dup2(silence, 2)
    warnings.simplefilter("ignore")
    said = ""
    try:
        driver.set_active(_Driver())
        listed(construct.body("cpu"))
    except BaseException as error:
        said = _said(error)
    os.write(writing, said.encode()[:60000])
    os._exit(0)


def _said(error: BaseException) -> str:
    while error.__cause__ is not None:
        error = error.__cause__
    text = re.sub(r"\x1b\[[0-9;]*m", "", str(error))
    lines = [line for line in text.splitlines() if line.strip()]
    return f"{type(error).__name__}: {' | '.join(lines)[:600]}"


@triton.jit
def _first_kernel(x_ptr):
    tl.store(x_ptr, tl.sum(tl.load(x_ptr + tl.arange(0, 16)), axis=0))


@contextlib.contextmanager
def warm_compiler() -> Iterator[None]:
    """Nothing compiled before is taken for an answer; children inherit a compiler that is awake."""
    with (tempfile.TemporaryDirectory(prefix="constructs-") as folder,
          mock.patch.dict(os.environ, {"TRITON_CACHE_DIR": folder,
                                       "TRITON_DEFAULT_FP_FUSION": "1"})):
        before = driver._active
        driver.set_active(_Driver())
        try:
            _first_kernel[(1,)](torch.zeros(16))
        finally:
            driver._active = before
        yield
