"""SASS: the machine code of a kernel as instructions with lines of the source."""

import functools
import re
import struct
import subprocess
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path, PurePath
from typing import Any

import triton
from triton.compiler.compiler import make_backend

from grader.engine.compiler.ptx import (
    attributed_to_callers,
    own_file,
    repaired,
    with_numbered_calls,
)

_SECONDS = 60.0  # nvdisasm needs 0.3
_STEP = re.compile(r"\s*/\*([0-9a-f]{4,})\*/\s+(.*?)\s*;")
_SCHEDULE = re.compile(r"\s+(?:&|\?)\w.*$")  # what some versions print behind an instruction
_LABEL = re.compile(r"(\.L_\w+):")
_PLACE = re.compile(r'File "([^"]+)", line (\d+)')
_TARGET = re.compile(r"`\((\.L_\w+)\)")
_PREDICATE = re.compile(r"@(!?U?P(?:T|\d+))\s+")
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

    @property
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
    exact_lines: bool = True  # otherwise lines of loads may be up to four too large, or missing


def code_of(compiled: Any) -> Code:
    """Disassembles what ``build`` returned, with right line numbers on every version of Triton.

    Raises:
        CannotDisassemble: nvdisasm does not read it.
    """
    cubin, ptx = compiled.asm["cubin"], compiled.asm["ptx"]
    name, own = compiled.metadata.name, own_file(ptx)
    corrected, calls = with_numbered_calls(attributed_to_callers(repaired(ptx)))
    if corrected == ptx:
        return Code(disassembled(cubin, name, own))
    reassembled = _assembled(corrected, compiled.metadata)
    if reassembled is None or machine_code(reassembled) != machine_code(cubin):
        return Code(disassembled(cubin, name, own), exact_lines=False)
    return Code(tuple(
        replace(step, line=calls[step.line][0], calls=calls[step.line][:0:-1])
        if step.line in calls else step for step in disassembled(reassembled, name, own)))


class CannotDisassemble(RuntimeError):
    """nvdisasm failed; the message is its own."""


@functools.lru_cache(maxsize=64)
def disassembled(cubin: bytes, kernel: str, file: str = "") -> tuple[SassInstruction, ...]:
    """The instructions of ``kernel`` in the order of their addresses; takes about 0.3 s.

    Args:
        kernel: the name of its symbol in the ELF file ``cubin``.
        file: name of the kernel's file, to which lines refer. If empty, that of the outermost call.

    Raises:
        CannotDisassemble: nvdisasm does not read it, or it holds no such kernel.
    """
    instructions = tuple(_parsed(_listed(cubin, "-gi"), kernel, file))
    if not instructions:
        raise CannotDisassemble(f"there is no code of `{kernel}`")
    return instructions


@functools.lru_cache(maxsize=64)
def live_registers(cubin: bytes, kernel: str) -> dict[int, int]:
    """The general registers that are live at each address of ``kernel``.

    Raises:
        CannotDisassemble: nvdisasm does not read it.
    """
    live: dict[int, int] = {}
    inside = False
    for row in _listed(cubin, "-lrm", "count").splitlines():
        if _SECTION in row:
            inside = _section(row) == kernel
        elif inside and (step := _STEP.match(row)) and (count := _LIVE.search(row)):
            live[int(step[1], 16)] = int(count[1])
    return live


def _listed(cubin: bytes, *options: str) -> str:
    """What nvdisasm prints of the code."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "kernel.cubin"
        path.write_bytes(cubin)
        try:
            return subprocess.run(
                [triton.knobs.nvidia.nvdisasm.path, "-c", *options, str(path)],
                capture_output=True, text=True, timeout=_SECONDS, check=True).stdout
        except (subprocess.SubprocessError, OSError) as error:
            message = getattr(error, "stderr", None) or str(error)
            raise CannotDisassemble(str(message)[:500]) from error


def _section(row: str) -> str:
    """The kernel whose code begins at this row."""
    return row.split(_SECTION, 1)[1].split('"')[0].split(",")[0]


def _parsed(listing: str, kernel: str, file: str) -> Iterator[SassInstruction]:
    """Parses the listing; branches name labels, which may stand behind them."""
    labels: dict[str, int] = {}
    steps: list[tuple[int, str, tuple[int, ...]]] = []
    waiting: list[str] = []  # labels of the next address
    frames: list[str] = []  # of the next instruction, the innermost first
    lines: tuple[int, ...] = ()
    inside = False
    for row in listing.splitlines():
        if _SECTION in row:
            inside = _section(row) == kernel
        elif not inside:
            continue
        elif "//##" in row:
            frames.append(row)
        elif label := _LABEL.match(row):
            waiting.append(label[1])
        elif step := _STEP.match(row):
            address = int(step[1], 16)
            if frames:
                lines, frames = _own_lines(frames, file), []
            labels |= dict.fromkeys(waiting, address)
            waiting.clear()
            steps.append((address, step[2], lines))
    for address, text, lines in steps:
        predicate = ""
        if guard := _PREDICATE.match(text):
            predicate, text = guard[1], text[guard.end():]
        opcode, _, rest = _SCHEDULE.sub("", text).partition(" ")
        goes_to = _TARGET.search(rest)
        yield SassInstruction(
            address, opcode, tuple(part.strip() for part in rest.split(",") if part.strip()),
            predicate, lines[0] if lines else None, labels.get(goes_to[1]) if goes_to else None,
            lines[:0:-1])


def _own_lines(frames: list[str], file: str) -> tuple[int, ...]:
    """Lines of the kernel's file in an instruction's call stack, the innermost first.

    Each frame has the form ``File "a", line 1 inlined at "b", line 2``, the second place being that
    of the next frame; the kernel itself is the outermost.
    """
    places = [place for place in map(_PLACE.search, frames) if place]
    if not places:
        return ()
    own = file or PurePath(places[-1][1]).name
    return tuple(int(place[2]) for place in places if PurePath(place[1]).name == own)


def _assembled(ptx: str, metadata: Any) -> bytes | None:
    """Assembles PTX by the last stage of Triton's compiler; None where its interface differs."""
    try:
        from triton.backends.compiler import Language

        backend = make_backend(metadata.target)
        settings = dict(metadata._asdict())
        stages: dict[str, Any] = {}
        backend.add_stages(stages, backend.parse_options(settings), Language.TRITON)
        return bytes(stages["cubin"](ptx, settings))
    except Exception:  # another interface: ``exact_lines`` becomes false
        return None


def machine_code(cubin: bytes) -> dict[str, bytes]:
    """The sections of an ELF file that contain instructions, by name."""
    at, = struct.unpack_from("<Q", cubin, 0x28)  # e_shoff
    size, count, names = struct.unpack_from("<HHH", cubin, 0x3A)
    heads = [struct.unpack_from("<IIQQQQ", cubin, at + number * size) for number in range(count)]
    strings = heads[names][4]
    sections = {}
    for name, _, _, _, offset, length in heads:
        title = cubin[strings + name:cubin.index(b"\0", strings + name)].decode()
        if title.startswith(".text."):
            sections[title] = cubin[offset:offset + length]
    return sections
