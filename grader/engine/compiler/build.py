"""Compiles one launch through the path that the JIT itself takes, short of the launch."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import Any, NoReturn
from unittest import mock

import torch
from triton.backends.nvidia.compiler import CUDABackend
from triton.compiler.errors import CompilationError
from triton.runtime.errors import OutOfResources, PTXASError
from triton.runtime.jit import JITFunction

from grader.engine.compiler.driver import pretending
from grader.engine.compiler.targets import Target
from grader.report import Finding
from grader.words import sentence

_MOST_THREADS = 1024  # of one program
_WARP = 32
_LONGEST = 1200  # characters of what the compiler says


class DoesNotCompile(Exception):
    """``finding`` has the compiler's own words, and the line of the learner's file."""

    def __init__(self, finding: Finding) -> None:
        super().__init__(finding.seen)
        self.finding = finding


def address(dtype: str, offset: int) -> torch.Tensor:
    """Stands for a tensor whose first element lies ``offset`` elements into an allocation.

    Only dtype and alignment of a pointer reach the compiler; allocations of CUDA are aligned to 512
    bytes.
    """
    return torch.empty(offset + 1, dtype=getattr(torch, dtype), device="meta")[offset:]


class _FarEnough(Exception):
    """The front end took the kernel."""


def takes(kernel: Any, arguments: Mapping[str, Any], options: Mapping[str, Any],
          target: Target) -> None:
    """Have the front end alone read a launch: a tenth of the time of ``build``.

    Args: as of ``build``.

    Raises:
        DoesNotCompile: it refuses the kernel.
    """
    with mock.patch.object(CUDABackend, "make_ttgir", staticmethod(_stop)), suppress(_FarEnough):
        build(kernel, arguments, options, target)


def _stop(*_: Any, **__: Any) -> NoReturn:
    raise _FarEnough


def build(kernel: Any, arguments: Mapping[str, Any], options: Mapping[str, Any],
          target: Target) -> Any:
    """Compile a ``JITFunction`` as a launch with these arguments would.

    Args:
        arguments: a value for each parameter; ``address`` for tensors, host descriptors on them.
        options: of the launch, such as num_warps.
        target: the GPU that it is compiled for.

    Returns:
        Triton's CompiledKernel, with ``asm`` and ``metadata``; the same one for a launch that asks
        for the same code.

    Raises:
        DoesNotCompile: no GPU of this kind could run it.
    """
    chosen = {"enable_fp_fusion": True, **options}  # said aloud, or Triton 3.9 warns of its default
    try:
        with pretending(target):
            made = kernel.run(grid=(1, 1, 1), warmup=True, **arguments, **chosen)
            _fits(made.metadata, target)
            return made
    except _FarEnough:
        raise
    except Exception as error:
        raise DoesNotCompile(_finding(error, kernel, target)) from error


def _fits(metadata: Any, target: Target) -> None:
    """What the driver checks before it loads code, in its own words."""
    if metadata.shared > target.shared_per_program:
        raise OutOfResources(metadata.shared, target.shared_per_program, "shared memory")
    threads = metadata.num_warps * _WARP
    if threads > _MOST_THREADS:
        raise OutOfResources(threads, _MOST_THREADS, "threads")


def _finding(error: Exception, kernel: Any, target: Target) -> Finding:
    if isinstance(error, OutOfResources):
        name = kernel.fn.__name__
        seen = sentence(f"`{name}` does not fit the {target.title}: {error}")
        return Finding("T05", seen, line=kernel.starting_line_number)
    if isinstance(error, CompilationError):
        return _refused(error, kernel, target)
    said = " ".join(str(error).split("Repro command")[0].split()) or "no reason is given"
    what = "the assembler refuses what Triton made of it" if isinstance(error, PTXASError) \
        else type(error).__name__
    return Finding("L05", sentence(f"`{kernel.fn.__name__}` does not compile for the "
                                   f"{target.title}: {what}: {said[:_LONGEST]}"),
                   line=kernel.starting_line_number)


def _refused(error: CompilationError, kernel: Any, target: Target) -> Finding:
    """The innermost error: where a helper is at fault, it names the helper's line."""
    while isinstance(error.__cause__, CompilationError):
        error = error.__cause__
    said = " ".join((error.error_message or str(error.__cause__ or error)).split())[:_LONGEST]
    seen = sentence(f"Triton does not compile `{kernel.fn.__name__}` for the {target.title}: "
                    f"{said}")
    at = getattr(error.node, "lineno", None)
    if not isinstance(at, int) or not error.src:
        return Finding("L05", seen)
    quoted = error.src.split("\n")[at - 1]
    caret = " " * (error.node.col_offset - len(quoted) + len(quoted.lstrip())) + "^"
    line = _first_line(kernel, error.src) + at - 1
    return Finding("L05", f"{seen}\n{quoted.strip()}\n{caret}", line=line)


def _first_line(kernel: Any, source: str | None) -> int:
    """Where the text of the kernel, or of the helper that it is, begins with its ``def``."""
    for function in (kernel, *kernel.fn.__globals__.values()):
        if isinstance(function, JITFunction) and function.src == source:
            decorators = len(function.raw_src) - len(function.src.splitlines())
            return int(function.starting_line_number) + decorators
    return int(kernel.starting_line_number)
