"""Reads a ``Binary`` from Triton's ``CompiledKernel``."""

import re
import subprocess
import tempfile
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

from triton import knobs

from grader.engine.compiler import bank_conflicts, layouts, ptx, ttgir
from grader.engine.compiler.ptx import PtxInstruction
from grader.engine.compiler.targets import WARP, Target, occupancy
from grader.recording.compiled_kernel import (
    LONGEST,
    MOST_ENTRIES,
    Access,
    AccessKind,
    AccessLayout,
    Binary,
    Factor,
    SharedAccess,
    TensorCores,
)

_TIMEOUT = 20.0  # seconds, for a tool that takes two milliseconds
_USAGE = re.compile(r"^ *Function (\S+):\s+REG:(\d+) STACK:(\d+)", re.MULTILINE)
_TYPE = re.compile(r"[a-z]+(\d+)(x2)?")
_FACTORS: dict[str, Factor] = {  # by how PTX calls the types that an instruction multiplies
    "f64": "fp64", "tf32": "tf32", "f16": "fp16", "bf16": "fp16", "e4m3": "fp8", "e5m2": "fp8",
    "f8f6f4": "fp8", "mxf8f6f4": "fp8", "mxf4": "fp4", "mxf4nvf4": "fp4", "e2m1": "fp4",
    "s8": "int8", "u8": "int8", "i8": "int8"}
_TENSOR_CORES: dict[TensorCores, tuple[str, ...]] = {  # how opcodes begin, the newest first
    "tcgen05": ("tcgen05.mma.",), "wgmma": ("wgmma.mma_async.",), "mma": ("mma.", "wmma.mma.")}
_KINDS: dict[str, AccessKind] = {"ld": "load", "ldu": "load", "st": "store", "atom": "atomic",
                                 "red": "atomic"}


class Unreadable(Exception):
    """Output of the compiler or its tools has another format than in the supported versions."""


def binary_of(compiled: Any, target: Target, kernel_name: str,
              options: Mapping[str, Any]) -> Binary:
    """Resources, accesses and products of a compiled kernel, as ``build`` returns it.

    ``spill_bytes`` are the bytes of a thread's stack beyond the variables that the PTX declares
    there (such as those of device_print): registers that did not fit, in the kernel or across the
    call of a function that is not inlined. Options that are not plain values are left out.

    Raises:
        Unreadable: output of the compiler or its tools has an unknown format.
    """
    code, middle, early = (compiled.asm[stage] for stage in ("ptx", "ttgir", "ttir"))
    metadata = compiled.metadata
    steps = list(ptx.instructions(code))
    registers, stack = _resources(compiled.asm["cubin"], metadata.name)
    accesses = Counter((one.line, *form) for one in steps if (form := _access(one)))
    products = _products(steps, ttgir.products_without_tensor_cores(middle))
    names = {name for _, name, _ in products}
    return Binary(
        kernel=kernel_name, target=target.name, capability=target.capability,
        registers=registers, spill_bytes=max(0, stack - ptx.declared_stack(code)),
        shared=metadata.shared, warps=metadata.num_warps,  # specialized ones too
        occupancy=occupancy(registers, metadata.shared, metadata.num_warps, target,
                            tensor_memory=getattr(metadata, "tmem_size", None) or 0),
        accesses=tuple(Access(*row) for row in _most_used(accesses)),
        dot=ttgir.multiplies(early),
        tensor_cores=next((cores for cores in _TENSOR_CORES if cores in names), ""),
        tf32=ttgir.rounds_to_tf32(early) and any(
            "tf32" in one.opcode for one in steps if _tensor_product(one)),
        factors=tuple(sorted({factor for one in steps if (factor := _factor(one))})),
        imprecise_sums=ttgir.imprecise_sums(middle),
        stages=ttgir.stages(middle), barriers=sum(map(_waits_for_all, steps)),
        products=products, conversions=_conversions(steps, middle),
        loop_shuffles=_most_used(Counter((one.line,) for one in steps
                                         if one.in_loop and one.opcode.startswith("shfl."))),
        loop_loads=sum(one.in_loop and (_access(one) or ("",))[0] == "load" for one in steps),
        layouts=tuple(_layouts(middle, ptx.own_file(code), accesses, metadata.num_warps)),
        shared_accesses=tuple(SharedAccess(*row)
                              for row in _most_used(bank_conflicts.requests(code))),
        ptx_sha256=ptx.sha256(code),
        options={name: value for name, value in options.items() if _is_plain(value)})


def _is_plain(value: Any) -> bool:
    if isinstance(value, str):
        return len(value) <= LONGEST and value.isprintable()
    return value is None or isinstance(value, int)


def _resources(cubin: bytes, name: str) -> tuple[int, int]:
    """Registers and bytes of stack of a thread, as cuobjdump reports them."""
    with tempfile.NamedTemporaryFile(suffix=".cubin") as file:
        file.write(cubin)
        file.flush()
        try:
            output = subprocess.run(
                [knobs.nvidia.cuobjdump.path, "-res-usage", file.name],
                text=True, capture_output=True, timeout=_TIMEOUT, check=True).stdout
        except (OSError, subprocess.SubprocessError) as error:
            raise Unreadable(f"cuobjdump does not run: {error}") from error
    for function, registers, stack in _USAGE.findall(output):
        if function == name:
            return int(registers), int(stack)
    raise Unreadable(f"cuobjdump does not tell the registers of {name}: {output.strip()[:200]}")


def _most_used(counts: Counter[Any]) -> tuple[Any, ...]:
    """The most frequent keys, tuples that begin with a line, in order; each with its count."""
    return tuple(sorted(((*key, count) for key, count in counts.most_common(MOST_ENTRIES)),
                        key=lambda row: (row[0] or 0, *row[1:])))


def _access(one: PtxInstruction) -> tuple[AccessKind, int] | None:
    """The kind of an access to global memory and its bits per thread; else None."""
    parts = one.opcode.split(".")
    if "global" not in parts:
        return None
    if one.opcode.startswith(("cp.async.bulk.", "cp.reduce.async.bulk.")):
        return None if "prefetch" in parts else ("bulk copy", 0)
    if one.opcode.startswith("cp.async."):
        return "async copy", int(one.operands.split(",")[2], base=0) * 8
    if parts[0] not in _KINDS:
        return None
    lanes = next((int(part[1:]) for part in parts if part in ("v2", "v4", "v8")), 1)
    kind = _TYPE.fullmatch(parts[-1])
    bits = int(kind[1]) * (2 if kind[2] else 1) if kind else 0
    return _KINDS[parts[0]], lanes * bits


def _layouts(middle: str, file: str, accesses: Iterable[tuple[int | None, AccessKind, int]],
             warps: int) -> list[AccessLayout]:
    """Layouts of accesses by pointers, each once; those that are not read are left out."""
    aliases = layouts.aliases_of(middle)
    widths: dict[tuple[int | None, str], int] = {}
    for line, kind, bits in accesses:
        widths[line, kind] = max(bits, widths.get((line, kind), 0))
    distinct: dict[AccessLayout, None] = {}
    for one in ttgir.pointer_accesses(middle, file):
        size = re.search(r"\d+", one.element)
        bits = max(8, int(size[0])) if size else 0
        width = widths.get((one.line, "async copy" if one.copies else one.kind), 0)
        if not 8 <= bits <= 64 or width < bits:
            continue
        try:
            spread = layouts.bases(one.layout, one.shape, aliases) if one.shape else \
                layouts.Bases((), (0,) * (WARP.bit_length() - 1), (0,) * (warps.bit_length() - 1))
        except layouts.UnknownLayout:
            continue
        vector = min(width // bits, 1 << len(spread.registers))
        distinct[AccessLayout(one.line, one.kind, one.shape, bits, vector, *spread)] = None
    return list(distinct)[:MOST_ENTRIES]


def _tensor_product(one: PtxInstruction) -> TensorCores:
    """The tensor cores that an instruction multiplies on."""
    return next((cores for cores, opcodes in _TENSOR_CORES.items()
                 if one.opcode.startswith(opcodes)), "")


def _factor(one: PtxInstruction) -> Factor | None:
    """The type of the factors of a tensor-core instruction; None for every other one.

    The types in an opcode include those of the result and the sum: in mma.sync the first and the
    last, in wgmma the first. Newer opcodes name a kind.
    """
    cores = _tensor_product(one)
    kinds = [part for part in re.split(r"[.:]+", one.opcode) if part in _FACTORS or part == "f32"]
    if not cores or not kinds:
        return None
    named = kinds if cores == "tcgen05" or "kind" in one.opcode else kinds[1:]
    return next((_FACTORS[kind] for kind in named if kind in _FACTORS), None)


def _products(steps: Iterable[PtxInstruction],
              plain: Iterable[ptx.Place | None]) -> tuple[tuple[int | None, str, int], ...]:
    """The instructions of tl.dot by line: on tensor cores, or else multiply-adds."""
    places = set(plain)
    names = ((one.line, _tensor_product(one) or (
        "fma" if one.place in places and one.opcode.startswith("fma.") else "")) for one in steps)
    return _most_used(Counter(key for key in names if key[1]))


def _waits_for_all(one: PtxInstruction) -> bool:
    """Whether an instruction is a barrier of warps of a program."""
    parts = one.opcode.split(".")
    return parts[0] in ("bar", "barrier") and "warp" not in parts and "arrive" not in parts


def _conversions(steps: Iterable[PtxInstruction], middle: str) -> int:
    """The number of layout conversions that use shared memory; others shuffle, or are free."""
    stored = {one.place for one in steps if one.opcode.startswith(("st.shared", "stmatrix."))}
    return sum(place in stored for place in ttgir.conversions(middle))
