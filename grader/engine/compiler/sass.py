"""SASS: the machine code of a kernel as instructions with lines of the source."""

from __future__ import annotations

import bisect
import functools
import re
import subprocess
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

import triton

from grader.engine.compiler.cubin import Cubin, lines_of
from grader.engine.compiler.ptx import architecture, located, own_file

_SECONDS = 60.0  # nvdisasm needs 0.3
_AT_ONCE = 2  # processes of nvdisasm
_STEP = re.compile(r"\s*/\*([0-9a-f]{4,})\*/\s+(.*?)\s*;")
_SCHEDULE = re.compile(r"\s+(?:&|\?)\w.*$")  # what some versions print behind an instruction
_PREDICATE = re.compile(r"@(!?U?P(?:T|\d+))\s+")
_WITH_ADDRESS = ("BRA", "BSSY", "CALL", "LEPC", "RET", "WARPSYNC.COLLECTIVE")  # as last operand
_ADDRESS = re.compile(r"\b0x[0-9a-f]+$")
_SECTION = ".section\t.text."
_LIVE = re.compile(r"// \|\s*(\d+)")  # general registers stand in the first column


@dataclass(frozen=True)
class SassInstruction:
    """One machine instruction."""

    address: int  # bytes from the beginning of the kernel
    opcode: str  # with all suffixes, such as LDG.E.128
    operands: tuple[str, ...]
    predicate: str  # such as P0 or !P1; empty where it always runs
    line: int | None  # of the kernel's file: a library function counts for the line that calls it
    target: int | None = None  # the address of a direct branch
    calls: tuple[int, ...] = ()  # lines of the file through which it is called, outermost first

    @functools.cached_property
    def name(self) -> str:
        """The opcode without suffixes."""
        return self.opcode.split(".", 1)[0]

    @property
    def never(self) -> bool:
        """Whether no thread executes it: a filler."""
        return self.predicate in ("!PT", "!UPT") or self.name == "NOP"

    def __str__(self) -> str:
        guard = f"@{self.predicate} " if self.predicate else ""
        return f"{guard}{self.opcode} {', '.join(self.operands)}".rstrip()


@dataclass(frozen=True)
class Code:
    """The machine code of one kernel."""

    instructions: tuple[SassInstruction, ...] = field(repr=False)


def code_of(compiled: Any) -> Code:
    """Disassembles what ``build`` returned.

    Raises:
        CannotDisassemble: nvdisasm does not read it.
    """
    return begin_codes([compiled])[0]()


def begin_codes(every: Sequence[Any]) -> list[Callable[[], Code]]:
    """Begins what ``code_of`` does for several kernels of one GPU; each waits for its own.

    Most of the time of nvdisasm is its start, so one process lists the code of all, as one.
    """
    if not every:
        return []
    cubins = [_cubin(one.asm["cubin"], one.metadata.name) for one in every]
    listing = _listing(b"".join(cubin.code for cubin in cubins),
                       "-b", architecture(every[0].asm["ptx"]))
    begun: list[Callable[[], Code]] = []
    first = 0
    for cubin, one in zip(cubins, every, strict=True):
        begun.append(functools.cache(functools.partial(
            _code, listing, first, cubin, one.asm["ptx"])))
        first += len(cubin.code)
    return begun


class CannotDisassemble(RuntimeError):
    """nvdisasm failed; the message is its own."""


def _cubin(data: bytes, kernel: str) -> Cubin:
    try:
        return Cubin(data, kernel)
    except ValueError as error:
        raise CannotDisassemble(str(error)) from error


def _code(listing: _Listing, first: int, cubin: Cubin, ptx: str) -> Code:
    """The code of one kernel, which begins at the address ``first`` of a listing."""
    _, calls = located(ptx)  # those that are numbered as lines
    lines = lines_of(cubin.rows, own_file(ptx))
    begin, end = (bisect.bisect_left(listing.steps, (address,))
                  for address in (first, first + len(cubin.code)))
    own: tuple[int, ...] = ()
    steps = []
    for address, text in listing.steps[begin:end]:
        own = lines.get(address - first, own)
        steps.append(_instruction(address, text, first, calls.get(own[0], own) if own else (),
                                  cubin.functions))
    return Code(tuple(steps))


def _instruction(address: int, text: str, first: int, lines: tuple[int, ...],
                 functions: Mapping[int, str]) -> SassInstruction:
    """Reads a row of a listing; ``lines`` are those of its call stack, the innermost first."""
    predicate, target = "", None
    if guard := _PREDICATE.match(text):
        predicate, text = guard[1], text[guard.end():]
    opcode, _, rest = _SCHEDULE.sub("", text).partition(" ")
    operands = [part.strip() for part in rest.split(",") if part.strip()]
    if operands and opcode.startswith(_WITH_ADDRESS) and (named := _ADDRESS.search(operands[-1])):
        target = int(named[0], 16) - first
        operands[-1] = operands[-1][:named.start()] + functions.get(target, hex(target))
        if target in functions or opcode.startswith("RET"):
            target = None
    return SassInstruction(address - first, opcode, tuple(operands), predicate,
                           lines[0] if lines else None, target, lines[:0:-1])


@functools.lru_cache(maxsize=64)
def live_registers(cubin: bytes, kernel: str) -> dict[int, int]:
    """The general registers that are live at each address of ``kernel``.

    Raises:
        CannotDisassemble: nvdisasm does not read it.
    """
    live: dict[int, int] = {}
    inside = False
    for row in _listing(cubin, "-c", "-lrm", "count").text().splitlines():
        if _SECTION in row:
            inside = row.split(_SECTION, 1)[1].split(",")[0].strip('"') == kernel
        elif inside and (step := _STEP.match(row)) and (count := _LIVE.search(row)):
            live[int(step[1], 16)] = int(count[1])
    return live


class _Listing:
    """A process of nvdisasm; ``text`` waits for its output."""

    _running: ClassVar[list[_Listing]] = []

    def __init__(self, code: bytes, *options: str) -> None:
        while len(self._running) >= _AT_ONCE:
            self._running[0]._end()
        self._text = self._error = ""
        self._folder = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
        self._output = Path(self._folder.name) / "listing"
        path = self._output.with_name("code")
        try:
            path.write_bytes(code)
            with self._output.open("wb") as output:
                self._process = subprocess.Popen(
                    [triton.knobs.nvidia.nvdisasm.path, *options, str(path)],
                    stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.PIPE)
        except OSError as error:
            self._error = str(error)
            self._folder.cleanup()
        else:
            self._running.append(self)

    @functools.cached_property
    def steps(self) -> list[tuple[int, str]]:
        """Address and text of each instruction."""
        return [(int(step[1], 16), step[2]) for step in _STEP.finditer(self.text())]

    def text(self) -> str:
        if self in self._running:
            self._end()
        if self._error:
            raise CannotDisassemble(self._error[:500])
        return self._text

    def _end(self) -> None:
        self._running.remove(self)
        try:
            _, errors = self._process.communicate(timeout=_SECONDS)
            self._text = self._output.read_text(encoding="utf-8", errors="replace")
            if status := self._process.returncode:
                self._error = errors.decode(errors="replace") or f"nvdisasm exits with {status}"
        except (subprocess.SubprocessError, OSError) as error:
            self._process.kill()
            self._process.communicate()
            self._error = str(error)
        self._folder.cleanup()


_listing = functools.lru_cache(maxsize=64)(_Listing)
