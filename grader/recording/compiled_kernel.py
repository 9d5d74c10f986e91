"""The compiled code of one launch for a target, in numbers and by source line."""

from dataclasses import dataclass, field
from typing import Annotated, Any, Literal, Self

from msgspec import Meta

from grader.recording.codec import JsonArray, JsonObject

AccessKind = Literal["load", "store", "atomic", "async copy", "bulk copy"]
TensorCores = Literal["", "mma", "wgmma", "tcgen05"]
Factor = Literal["fp64", "tf32", "fp16", "fp8", "fp4", "int8"]
Limit = Literal["registers", "shared memory", "warps", "programs", "tensor memory"]

MOST_ENTRIES = 512
"""The most accesses, products and factors of a Binary: those with the most instructions."""
LONGEST = 1000
"""Characters of a name, or of the value of an option."""
ALL_SUMS = 2**30
"""So many products and more are summed imprecisely where no sum ever leaves the tensor cores."""

_Entries = Meta(max_length=MOST_ENTRIES)
_Name = Annotated[str, Meta(min_length=1, max_length=LONGEST)]
_Line = Annotated[int, Meta(ge=1, le=10_000_000)] | None
_Instructions = Annotated[int, Meta(ge=0, le=10_000_000)]
_Bytes = Annotated[int, Meta(ge=0, le=2**20)]
_Product = Annotated[str, Meta(pattern=r"\A(mma|wgmma|tcgen05|fma)\Z")]
_Option = (Annotated[int, Meta(ge=-2**63, le=2**63 - 1)] | bool
           | Annotated[str, Meta(max_length=LONGEST)] | None)


class Access(JsonArray, frozen=True):
    """Instructions of one form at one line that access global memory.

    ``bits``: how wide one thread accesses memory in one instruction, 8 to 256; 0 of a bulk copy,
    which moves a whole tile to or from global memory. ``count``: instructions in the code, however
    often they run.
    """

    line: _Line
    kind: AccessKind
    bits: Annotated[int, Meta(ge=0, le=256)]
    count: _Instructions


class SharedAccess(JsonArray, frozen=True):
    """Instructions of one form at one line that load from or store to shared memory.

    ``bits``: of one thread. ``ways``: cycles for a request of a warp, over those without bank
    conflicts; 0 where the addresses are unknown. ``count``: instructions in the code.
    """

    line: _Line
    kind: Literal["load", "store"]
    bits: Annotated[int, Meta(ge=8, le=256)]
    ways: Annotated[float, Meta(ge=0, le=32)]
    count: _Instructions


_Shape = Annotated[tuple[Annotated[int, Meta(ge=1, le=2**20)], ...], Meta(max_length=8)]
_Bases = Annotated[tuple[Annotated[int, Meta(ge=0, le=2**24)], ...], Meta(max_length=24)]


class AccessLayout(JsonArray, frozen=True):
    """The elements that each thread of a program accesses in one operation.

    The element of a register of a lane of a warp has a number in its block (row-major): the
    exclusive or of an entry of ``registers``, ``lanes`` or ``warps`` for each bit that is set.
    ``bits``: of an element. ``vector``: elements of one instruction of a thread.
    """

    line: _Line
    kind: Literal["load", "store", "atomic"]
    shape: _Shape
    bits: Annotated[int, Meta(ge=8, le=64)]
    vector: Annotated[int, Meta(ge=1, le=32)]
    registers: _Bases
    lanes: _Bases
    warps: _Bases


class Occupancy(JsonArray, frozen=True):
    """The number of programs resident on one SM (streaming multiprocessor).

    ``limited_by``: the scarcest of them. ``warps`` counts those of all programs.
    """

    programs: Annotated[int, Meta(ge=0, le=64)]
    warps: Annotated[int, Meta(ge=0, le=128)]
    most_warps: Annotated[int, Meta(ge=1, le=128)]
    limited_by: Limit

    def __post_init__(self) -> None:
        if self.warps > self.most_warps:
            raise ValueError("more warps than an SM holds")

    @property
    def share(self) -> float:
        return self.warps / self.most_warps


@dataclass(frozen=True)
class Binary(JsonObject):
    """One compiled kernel. Bytes are per thread for ``spill_bytes``, per program for ``shared``.

    ``spill_bytes``: registers that did not fit and were put into local memory. ``warps``: of a
    program, those that warp specialization adds included. ``tf32``: tensor cores take float32
    for TF32, with nothing done against the loss. ``factors``: the formats of numbers that tensor
    cores multiply, fp16 standing for bfloat16 too and fp8 for both kinds of float8.
    ``imprecise_sums``: how many products of float8 tensor cores of Hopper, which keep fewer bits of
    a sum than float32 has, add up before the sum goes on in float32; 0 where they add up none, and
    ``ALL_SUMS`` where it never does. ``stages``: tiles that the deepest pipeline of the
    compiler holds at once, 0 where it built none; one less than num_stages where it needs a buffer
    less. ``barriers``: instructions at which warps of a program wait for each other.
    ``conversions``: changes of layout through shared memory. ``products``: instructions by which
    tl.dot is computed at each line, as (line, instruction, count), where the instruction is
    ``mma``, ``wgmma`` or ``tcgen05`` on tensor cores, else ``fma``. ``loop_shuffles``: instructions
    in loops by which threads of a warp pass each other values, as a reduction does, at each line,
    as (line, count). ``loop_loads``: loads from global memory in loops, asynchronous copies apart.
    ``layouts``: of accesses to global memory by pointers. ``shared_accesses``: by threads; not
    those of asynchronous copies, TMA, atomics and tensor cores. ``ptx_sha256``: of the PTX without
    paths, lines and comments. Lines are those of the kernel's own file, None where the compiler
    names none.
    """

    kernel: _Name
    target: _Name  # name of the target
    capability: Annotated[int, Meta(ge=10, le=999)]  # such as 90
    registers: Annotated[int, Meta(ge=0, le=256)]
    spill_bytes: _Bytes
    shared: _Bytes
    warps: Annotated[int, Meta(ge=1, le=64)]
    occupancy: Occupancy
    accesses: Annotated[tuple[Access, ...], _Entries] = ()
    dot: bool = False  # the kernel multiplies matrices
    tensor_cores: TensorCores = ""
    tf32: bool = False
    factors: Annotated[tuple[Factor, ...], _Entries] = ()
    imprecise_sums: Annotated[int, Meta(ge=0, le=ALL_SUMS)] = 0
    stages: Annotated[int, Meta(ge=0, le=1000)] = 0
    barriers: _Instructions = 0
    products: Annotated[tuple[tuple[_Line, _Product, _Instructions], ...], _Entries] = ()
    conversions: _Instructions = 0
    loop_shuffles: Annotated[tuple[tuple[_Line, _Instructions], ...], _Entries] = ()
    loop_loads: _Instructions = 0
    layouts: Annotated[tuple[AccessLayout, ...], _Entries] = ()
    shared_accesses: Annotated[tuple[SharedAccess, ...], _Entries] = ()
    ptx_sha256: Annotated[str, Meta(pattern=r"\A([0-9a-f]{64})?\Z")] = ""
    options: Annotated[dict[_Name, _Option], Meta(max_length=64)] = field(default_factory=dict)

    @classmethod
    def from_dict(cls, data: Any) -> Self:
        """Reads what an untrusted process sent.

        Raises:
            ValueError: it has another form, or a number or name that no binary has.
        """
        binary = super().from_dict(data)
        words = (binary.kernel, binary.target, *binary.options, *binary.options.values())
        if not all(word.isprintable() for word in words if isinstance(word, str)):
            raise ValueError("a name that cannot be printed")
        return binary
