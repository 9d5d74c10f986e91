"""Returns memory to the system while a process waits for work."""

import contextlib
import ctypes
import gc
import re
from collections.abc import Iterator
from pathlib import Path

_DROP = 4  # MADV_DONTNEED
_MAPPING = re.compile(r"([0-9a-f]+)-([0-9a-f]+) r-[x-]p \S+ \S+ [1-9]\d* ")  # of a file


def give_back() -> None:
    """Frees unused memory, and drops pages of code and constants that are mapped from files.

    Those stay in the page cache and come back with a fault per 64 KiB. torch and LLVM have 200 MB
    of them.
    """
    gc.collect()
    libc = ctypes.CDLL(None)
    if hasattr(libc, "malloc_trim"):  # in glibc
        libc.malloc_trim(0)
    with contextlib.suppress(OSError):
        for start, end in _unchanged():
            libc.madvise(ctypes.c_void_p(start), ctypes.c_size_t(end - start), _DROP)


def _unchanged() -> Iterator[tuple[int, int]]:
    """Mappings of files without changed pages; relocated ones would be lost."""
    mapping: tuple[int, int] | None = None
    for line in Path("/proc/self/smaps").read_text(encoding="utf-8", errors="replace").splitlines():
        if match := _MAPPING.match(line):
            mapping = int(match[1], 16), int(match[2], 16)
        elif line.startswith("Anonymous:"):
            if mapping and line.split()[1] == "0":
                yield mapping
            mapping = None
