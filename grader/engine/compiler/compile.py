"""Compiles one launch through the path that the JIT itself takes, short of the launch."""

import os
import re
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from typing import Any, Literal
from unittest import mock

import torch
from triton._C.libtriton import ir
from triton.backends.nvidia import compiler
from triton.compiler import ASTSource
from triton.runtime.errors import OutOfResources
from triton.runtime.jit import JITCallable

from grader.engine.compiler.compile_errors import finding, heard
from grader.engine.compiler.ptx import located
from grader.engine.compiler.stub_driver import pretending
from grader.engine.compiler.targets import WARP, Target
from grader.engine.compiler.ttgir import is_special, most_shared
from grader.report import Refusal

_MOST_THREADS = 1024  # of one program
_VARYING = re.compile(  # lines, names, layouts, sizes, numbers
    r"\bloc\(.*|%[\w#:-]+|, #\w+(\.\w+<\{[^}]*\}>)?|(?<=[<x])\d+(?=x)|\b\d+\b|, isAsync = true"
    r"|,|\[[^]]*\]")
_TYPE = re.compile(r"(?:\b|(?<=x))(?:[if]\d+|bf16|f8\w+|index)\b")  # also of a tensor<4xf16>
_ANY_GPU = frozenset(("i1", "i8", "i16", "i32", "i64", "f32", "index"))  # each has its arithmetic
_NO_OPERATION = re.compile(  # control flow, layouts and their memory, which the compiler chooses
    r"[#}{^]|module|scf\.|cf\.|ttg\.|ttng\.\w*(barrier|fence|wait)|.*\barith\.constant|tt\.(func"
    r"|return|make_range|splat|broadcast|expand_dims|trans|reshape|addptr|get_program_id)\b")
AMPERE = 80  # compute capability
_FLOAT = r"(tensor<x+)?f(16|32)>?"
_OF_AMPERE = re.compile(  # what each GPU since Ampere has; bf16 is f16 here
    r"tt\.(load|store) : (tensor<x+)?!tt\.ptr<(i8|i16|i32|i64|f16|f32)>>?"
    rf"|arith\.(extf|truncf) : {_FLOAT} to {_FLOAT}"
    rf"|arith\.(addf|subf|mulf|negf|maxnumf|minnumf|cmpf \w+|select) : (tensor<x+i1> )?{_FLOAT}"
    r'|"tt\.reduce"\(\) <{axis = : i32}> \({|tt\.reduce\.return : (f16|f32|i32)'
    r"|math\.(absf|exp|exp2|log|log2|sqrt|rsqrt|erf|floor|ceil) : (tensor<x+)?f32>?"
    rf"|tt\.dot( inputPrecision = tf32(x3)?)? : {_FLOAT} \* {_FLOAT} -> tensor<xxf32>"
    r"|ttng\.warp_group_dot {(isAsync = true|inputPrecision = : i32)} : (tensor|!ttg\.memdesc)<xx"
    r"f(16|32)[^>]*> \* !ttg\.memdesc<xxf(16|32)[^>]*> -> tensor<xxf32>"
    r'|tt\.elementwise_inline_asm "cvt\.rna\.tf32\.f32 \$ \$;" .*')
_ONE_HALF = re.compile(r"asm|extern|atomic")  # exists for one of bf16 and f16 alone
_TUNED = ("num_warps", "num_stages")  # options that no instruction depends on
_MOST_CTAS = 16  # of one cluster; more than 8 are not portable, and Triton asks for them


class DoesNotCompile(Refusal):
    """No GPU of the target's kind could run the kernel; ``finding`` has the compiler's message."""


def address(dtype: str, offset: int) -> torch.Tensor:
    """A stand-in for a tensor that starts ``offset`` elements into an allocation.

    The compiler uses only dtype and alignment of a pointer; CUDA aligns allocations to 512 bytes.
    """
    return torch.empty(offset + 1, dtype=getattr(torch, dtype), device="meta")[offset:]


class _FarEnough(Exception):
    """The compiler has done what was asked for; the arguments describe the IR at that point."""


def build(kernel: Any, arguments: Mapping[str, Any], options: Mapping[str, Any],
          target: Target, operations: set[str] | None = None, *, only_new: bool = False) -> Any:
    """Compiles a ``JITFunction`` as a launch with these arguments would.

    Args:
        arguments: a value for each parameter; ``address`` for tensors, host descriptors on them.
        options: of the launch, such as num_warps.
        operations: types, attributes and assembly of all operations of earlier variants; those of
            this one are added.
        only_new: do what ``lower`` does if the assembler takes each operation: those in
            ``operations`` and, unless there are none, the usual ones of every GPU since Ampere.

    Returns:
        Triton's CompiledKernel, with ``asm`` and ``metadata``; the same object for every launch of
        the same specialization. None if it was only lowered.

    Raises:
        DoesNotCompile: no GPU of this kind could run it.
        OSError: Triton's files or tools cannot be read, run or written.
    """
    accepted = set[str]() if operations is None else operations
    with _compiling(kernel, target), _located(), \
            _lowering(options, target, accepted, "new" if only_new else "all") as own:
        try:
            metadata = (compiled := _run(kernel, arguments, options)).metadata
        except _FarEnough as lowered:
            _check_lowered(lowered, target)
            return None
        _fits(metadata.shared, metadata.num_warps, metadata.num_ctas, target)
    accepted |= own
    return compiled


def lower(kernel: Any, arguments: Mapping[str, Any], options: Mapping[str, Any],
          target: Target, operations: Collection[str] = ()) -> None:
    """Runs all passes that choose layouts and memory, and checks resources.

    It takes a fifth of the time of ``build``: operations are not turned into LLVM's. If all
    operations are in ``operations`` or usual, as for ``build``, and the memory of any layouts
    fits, it ends before layouts are chosen.

    Raises:
        DoesNotCompile: a pass refuses the kernel, or the target has too few resources.
        OSError: as ``build`` raises it.
    """
    with _compiling(kernel, target), _lowering(options, target, operations, "none"):
        try:
            _run(kernel, arguments, options)
        except _FarEnough as lowered:
            _check_lowered(lowered, target)


@contextmanager
def _lowering(options: Mapping[str, Any], target: Target, accepted: Collection[str],
              built: Literal["all", "new", "none"]) -> Iterator[set[str]]:
    """Has Triton end before it makes LLVM's code, unless the kernel is to be built.

    _FarEnough is raised after memory was allocated, with the module and the least shared memory
    that an option asks for; without them before layouts are chosen, if all operations are
    ``accepted`` and need little memory.

    Args:
        options: of the launch.
        built: all kernels, those with operations that are not ``accepted``, or none.

    Yields:
        The operations of the kernel, from TTIR and, unless ``built`` is none, TTGIR.
    """
    backend, passes = compiler.CUDABackend, compiler.nvidia.passes.ttnvgpuir
    make_ttgir, make_llir = backend.make_ttgir, backend.make_llir
    own = {f"{name}={value!r}" for name, value in options.items() if name not in _TUNED}

    def is_new() -> bool:
        return any(not _has(target, accepted, one) for one in own)

    def until_layouts(module: Any, metadata: Any, options: Any, capability: int) -> Any:
        text = str(module)
        own.update(_operations(text, target))
        if built != "all" and not is_new() and _needs_little(text, options, target):
            raise _FarEnough
        return make_ttgir(module, metadata, options, capability)

    def until_llvm(self: Any, module: Any, metadata: Any, options: Any, capability: int) -> Any:
        if built != "none":
            own.update(_operations(str(module), target))
            if built == "all" or is_new():
                return make_llir(self, module, metadata, options, capability)

        def allocated(manager: Any, *_: object) -> None:
            manager.run(module, "make_llir")
            raise _FarEnough(module, getattr(options, "min_shared_mem", None) or 0)

        # fences and barriers come next: in a kernel with many buffers they take most of the time
        with mock.patch.object(passes, "add_proxy_fence_insertion", allocated):
            return make_llir(self, module, metadata, options, capability)

    with mock.patch.object(backend, "make_ttgir", staticmethod(until_layouts)), \
            mock.patch.object(backend, "make_llir", until_llvm):
        yield own


def _needs_little(ttir: str, options: Any, target: Target) -> bool:
    """Whether a target has the resources for a kernel, whatever layouts are chosen.

    Special kernels can be refused for other reasons.
    """
    most = max(most_shared(ttir, options.num_stages), getattr(options, "min_shared_mem", None) or 0)
    return options.num_ctas == 1 and not is_special(ttir) and \
        options.num_warps * WARP <= _MOST_THREADS and most <= target.shared_per_program


@contextmanager
def _located() -> Iterator[None]:
    """Has the assembler get the lines that ``sass`` reads.

    Triton's cache on disk keeps such code apart from that of other processes.
    """
    backend = compiler.CUDABackend
    make_cubin, digest = backend.make_cubin, backend.hash

    def assembled(self: Any, ptx: str, *rest: Any) -> Any:
        return make_cubin(self, located(ptx)[0], *rest)

    with mock.patch.object(backend, "make_cubin", assembled), \
            mock.patch.object(backend, "hash", lambda self: f"{digest(self)}-located"):
        yield


def parse(kernel: Any, arguments: Mapping[str, Any], options: Mapping[str, Any],
          target: Target) -> Any:
    """Runs the front end alone, in a tenth of the time of ``build``.

    Returns:
        the module of Triton's IR that it makes; None if the variant was compiled before.

    Raises:
        DoesNotCompile: the front end refuses the kernel.
        OSError: as ``build`` raises it.
    """
    make_ir = ASTSource.make_ir

    def front_end(source: Any, *context: Any) -> Any:
        raise _FarEnough(make_ir(source, *context))

    context = _context(os.getpid())
    with _compiling(kernel, target), mock.patch.object(ir, "context", lambda: context), \
            mock.patch.object(ASTSource, "make_ir", front_end):
        try:
            _run(kernel, arguments, options)
        except _FarEnough as parsed:
            return parsed.args[0]
    return None


@cache
def _context(process: int) -> Any:
    """An MLIR context for all that a process parses; one for each would take a fourth of the time.

    ``process`` is the current one, as threads of a context do not survive a fork.
    """
    return ir.context()


def parse_half(kernel: Any, arguments: Mapping[str, Any], options: Mapping[str, Any],
               target: Target, operations: set[str]) -> None:
    """Parses a variant where one with f16 instead of bf16, or the reverse, was compiled.

    If it has an operation that may exist for one of these alone, it does what ``build`` does with
    ``only_new``.
    """
    if _ONE_HALF.search(str(parse(kernel, arguments, options, target))):
        build(kernel, arguments, options, target, operations, only_new=True)


def _operations(module: str, target: Target) -> Iterator[str]:
    """The operations of a module in Triton's GPU dialects, with their types and attributes.

    Since Ampere, each with bf16 is that with f16.
    """
    for line in module.splitlines():
        text = " ".join(_VARYING.sub("", line).split()).removeprefix("= ")
        if not text or _NO_OPERATION.match(text):
            continue
        if target.capability >= AMPERE and not _ONE_HALF.search(text):
            text = text.replace("bf16", "f16")
        if not text.startswith("arith.") or set(_TYPE.findall(text)) - _ANY_GPU:
            yield text


def _has(target: Target, accepted: Collection[str], operation: str) -> bool:
    """Whether the assembler takes an operation of a kernel of which it took others."""
    return operation in accepted or bool(
        accepted and target.capability >= AMPERE and _OF_AMPERE.fullmatch(operation))


def _check_lowered(lowered: _FarEnough, target: Target) -> None:
    if not lowered.args:
        return
    module, least_shared = lowered.args
    attribute = module.get_int_attr
    _fits(max(attribute("ttg.shared") or 0, least_shared),
          attribute("ttg.total-num-warps") or attribute("ttg.num-warps") or 1,
          attribute("ttg.num-ctas") or 1, target)


_tree = cache(JITCallable.parse)  # of a kernel or function; generating code does not change it


def _run(kernel: Any, arguments: Mapping[str, Any], options: Mapping[str, Any]) -> Any:
    with mock.patch.object(JITCallable, "parse", _tree):
        return kernel.run(grid=(1, 1, 1), warmup=True, **arguments, **complete(options))


def complete(options: Mapping[str, Any]) -> dict[str, Any]:
    """The options of a launch, with one of whose default Triton 3.9 warns."""
    return {"enable_fp_fusion": True, **options}


@contextmanager
def _compiling(kernel: Any, target: Target) -> Iterator[None]:
    """Has Triton compile for the target, and explains its refusals."""
    printed: list[str] = []
    try:
        with pretending(target), heard() as printed:
            yield
    except (_FarEnough, OSError):
        raise
    except Exception as error:
        raise DoesNotCompile(finding(error, "".join(printed), kernel, target)) from error


def variant(kernel: Any, arguments: Mapping[str, Any], options: Mapping[str, Any],
            target: Target) -> dict[str, Any]:
    """The specialization of a launch: the key of Triton's own cache, in words.

    Raises:
        DoesNotCompile: a kernel takes no argument of such a type.
    """
    try:
        with pretending(target):
            *_, bind = kernel.device_caches[target.capability]
            _, specialized, _ = bind(**arguments, **options)
    except Exception as error:
        raise DoesNotCompile(finding(error, "", kernel, target)) from error
    return {
        "kernel": kernel.fn.__name__,
        "parts": [(parameter.name, _in_words(*one))
                  for parameter, one in zip(kernel.params, specialized, strict=True)],
        "options": ", ".join(f"{name}={value!r}" for name, value in sorted(options.items())),
        "in_vain": [parameter.name for parameter in kernel.params
                    if parameter.is_constexpr and parameter.do_not_specialize],
    }


def _in_words(kind: Any, attribute: Any) -> str:
    """The specialization of one argument by Triton's binder: its type and its attribute."""
    if kind == "constexpr":
        return repr(attribute)
    if not isinstance(kind, str) or not isinstance(attribute, str | int | None):
        return f"{kind!r} {attribute!r}"
    if isinstance(attribute, int):
        return f"{kind} equal to {attribute}"
    if "D" not in (attribute or ""):
        return kind
    return f"{kind}, {'an address ' * kind.startswith('*')}divisible by 16"


def _fits(shared: int, num_warps: int, num_ctas: int, target: Target) -> None:
    """Checks resources as the driver does before it loads code.

    Raises:
        OutOfResources: the target has too few.
    """
    for needed, limit, resource in ((shared, target.shared_per_program, "shared memory"),
                                    (num_warps * WARP, _MOST_THREADS, "threads"),
                                    (num_ctas, _MOST_CTAS, "thread blocks")):
        if needed > limit:
            raise OutOfResources(needed, limit, resource)
