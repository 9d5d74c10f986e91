"""Kernels that hang, crash, bomb, hog and flood, each with the findings that are right for it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from tests.fidelity.chaos.bench import CALL, LOAD, RUN
from tests.fidelity.chaos.module import HEALTHY, spoiled

HANG = """
import time
while True:
    try:
        time.sleep(600)
    except BaseException:
        pass
"""
# 64 processes, and no more: the bomb has to be seen, not to end the machine that it is tried on.
BOMB = """
import os, time
for _ in range(6):
    os.fork()
time.sleep(600)
"""
HOG = """
import mmap
held = []
while True:
    held.append(mmap.mmap(-1, 1 << 30))
"""
GREEDY = """
held = []
while True:
    held.append(b'x' * (64 << 20))
"""
FLOOD = """
import os
for _ in range(1024):
    os.write(1, b'all work and no play' * 13107)
"""
DEEP = """
import sys
sys.setrecursionlimit(10**9)
def deeper(n):
    return [deeper(n + 1)]
deeper(0)
"""
SPIN = """
turns = n
while (turns > 0) & (n == 127):
    turns = turns % 7 + 1
"""
AT_EXIT = """
import atexit, time
@atexit.register
def late():
    while True:
        time.sleep(600)
"""
KILLER = """
import os
os.kill(os.getppid(), 9)
os.kill(os.getpid(), 9)
"""
LIMITS = {"at import": LOAD, "in the call": CALL, "in the kernel": RUN}


@dataclass(frozen=True)
class Hostile:
    """A kernel that misbehaves. ``codes``: what a failed grade may say; empty where it passes.

    ``limit`` is the name of the deadline that it may run into, once: what is in the call or in the
    kernel strikes in a single case, so that the others can be judged.
    """

    source: str
    codes: frozenset[str] = frozenset()
    limit: str = ""


def _hostile(place: str, code: str, codes: str = "", hangs: bool = False) -> Hostile:
    if place == "in the call":
        code = "if n == 127:\n    " + code.strip().replace("\n", "\n    ")
    limit = LIMITS[place] if hangs else ""
    return Hostile(spoiled(place, code), frozenset(codes.split()), limit)


HOSTILE: Mapping[str, Hostile] = {
    "a hang at import": _hostile("at import", HANG, "R02", hangs=True),
    "a hang in the call": _hostile("in the call", HANG, "R02", hangs=True),
    "a hang in a kernel": _hostile("in the kernel", SPIN, "R02", hangs=True),
    "a hang at exit": _hostile("at import", AT_EXIT),
    "a segmentation fault at import": _hostile(
        "at import", "import ctypes\nctypes.string_at(0)", "R03 P02"),
    "a segmentation fault in the call": _hostile(
        "in the call", "import ctypes\nctypes.string_at(0)", "R03 R01 X01"),
    "recursion without a limit": _hostile("in the call", DEEP, "R01 R02 R03 R04", hangs=True),
    "a hog of memory at import": _hostile("at import", GREEDY, "R04 R03 R02 P02", hangs=True),
    "a hog of memory in the call": _hostile("in the call", HOG, "R04 R03 R01", hangs=True),
    "a bomb of forks": _hostile("at import", BOMB, "R02 R03 R04 P02", hangs=True),
    "256 MiB of output": _hostile("at import", FLOOD, hangs=True),
    "an end with status 0": _hostile("in the call", "import os\nos._exit(0)", "R03"),
    "SIGKILL to its parent and itself": _hostile("in the call", KILLER, "R03 R01 X01"),
}
assert all(kernel.source != HEALTHY for kernel in HOSTILE.values())
