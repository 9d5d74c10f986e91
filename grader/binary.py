"""Binary: what the compiler made of one launch for a target, in numbers and by source line."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

AccessKind = Literal["load", "store", "atomic", "async copy", "bulk copy"]
TensorCores = Literal["", "mma", "wgmma", "tcgen05"]


@dataclass(frozen=True)
class Access:
    """Instructions of one form at one line that reach global memory.

    ``bits``: how wide one thread accesses memory in one instruction, 8 to 128; 0 of a bulk copy,
    which moves a whole tile. ``count``: instructions in the code, however often they run.
    """

    line: int | None
    kind: AccessKind
    bits: int
    count: int


@dataclass(frozen=True)
class Occupancy:
    """How many programs one multiprocessor holds at the same time.

    ``limited_by``: registers, shared memory, warps or programs. ``warps`` counts all of them.
    """

    programs: int
    warps: int
    most_warps: int
    limited_by: str

    @property
    def share(self) -> float:
        return self.warps / self.most_warps


@dataclass(frozen=True)
class Binary:
    """One compiled kernel. Bytes are per thread for ``spill_bytes``, per program for ``shared``.

    ``stages`` is the depth of the pipeline that the compiler built, 0 where it built none.
    ``products``: instructions by which tl.dot is computed at each line, as (line, instruction,
    count), where the instruction is one such as ``wgmma``, ``mma`` or ``fma``. ``ptx_sha256`` is
    that of the PTX without paths and comments.
    """

    kernel: str
    target: str  # name of the target
    capability: int  # such as 90
    registers: int
    spill_bytes: int
    shared: int
    warps: int
    occupancy: Occupancy
    accesses: tuple[Access, ...] = ()
    dot: bool = False  # the kernel multiplies matrices
    tensor_cores: TensorCores = ""
    tf32: bool = False
    stages: int = 0
    barriers: int = 0
    products: tuple[tuple[int | None, str, int], ...] = ()
    conversions: int = 0  # of layouts, through shared memory
    ptx_sha256: str = ""
    options: dict[str, int | bool | str | None] = field(default_factory=dict)
