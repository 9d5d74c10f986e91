"""What a child may use, and the place where it gives up the rest."""

from __future__ import annotations

import resource
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

Role = Literal["worker", "executor"]

KIB, MIB, GIB = 1 << 10, 1 << 20, 1 << 30
MAX_DESCRIPTORS = 256


@dataclass(frozen=True)
class Limits:
    """All in bytes.

    ``address_space`` and ``resident`` come on top of what the process has when it is forked; the
    latter is for the process and its descendants together. ``output`` is what is kept of what it
    prints, and ``files`` bounds each file that it writes, memory files included.
    """

    address_space: int = 2 * GIB
    resident: int = 4 * GIB
    output: int = 64 * KIB
    files: int = 64 * MIB

    def to_json(self) -> dict[str, int]:
        return asdict(self)

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Limits:
        return cls(**{name: int(data[name]) for name in cls.__dataclass_fields__})


def confine(role: Role, limits: Limits) -> None:
    """Take away, in the child and for good, all that its role does not need.

    Today these are resource limits. File access, system calls and the user id belong here too, in
    this order; a change of user id clears the parent-death signal, which must then be set again.
    """
    _limit(resource.RLIMIT_CORE, 0)
    _limit(resource.RLIMIT_NOFILE, MAX_DESCRIPTORS)
    _limit(resource.RLIMIT_FSIZE, limits.files)
    _limit(resource.RLIMIT_AS, _mapped() + limits.address_space)


def _limit(which: int, most: int) -> None:
    _, hard = resource.getrlimit(which)
    if hard != resource.RLIM_INFINITY:
        most = min(most, hard)
    resource.setrlimit(which, (most, most))


def _mapped() -> int:
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0])
    return pages * resource.getpagesize()
