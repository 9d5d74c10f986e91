"""SASS: the machine code of a kernel as instructions with lines of the source."""

import functools
import re
import struct
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import redirect_stdout, suppress
from dataclasses import dataclass, field, replace
from io import StringIO
from pathlib import Path, PurePath
from typing import Any, ClassVar

import triton
from triton.compiler.compiler import make_backend

from grader.engine.compiler.ptx import located, merged, own_file

_SECONDS = 60.0  # nvdisasm needs 0.2
_AT_ONCE = 2  # processes of nvdisasm
_START_S = 0.3  # CPU time of nvdisasm before it reads anything
_LINES = ("-gi", "-ndf")  # with inlined calls, without an analysis that adds nothing here
_STEP = re.compile(r"\s*/\*([0-9a-f]{4,})\*/\s+(.*?)\s*;")
_SCHEDULE = re.compile(r"\s+(?:&|\?)\w.*$")  # what some versions print behind an instruction
_LABEL = re.compile(r"(\.L_\w+):")
_PLACE = re.compile(r'File "([^"]+)", line (\d+)')
_TARGET = re.compile(r"`\((\.L_\w+)\)")
_PREDICATE = re.compile(r"@(!?U?P(?:T|\d+))\s+")
_TEXT = ".text."
_SECTION = f".section\t{_TEXT}"
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
    """Begins what ``code_of`` does for several kernels; what is returned waits for each.

    Most of the time of nvdisasm is its start, so one process lists all that are assembled again
    in less.
    """
    texts = [located(one.asm["ptx"]) for one in every]
    together = [number for number, one in enumerate(every)
                if one.metadata.assembly_s < _START_S]
    image = b""
    again_s = sum(every[number].metadata.assembly_s for number in together)
    if again_s < _START_S * (len(together) - 1):
        with suppress(LookupError, ValueError):  # then each is listed alone
            image = _assembled(merged([texts[number][0] for number in together]),
                               every[0].metadata) or b""
    code = machine_code(image) if image else {}
    begun: dict[int, Callable[[], Code]] = {}
    for place, number in enumerate(together if code else ()):
        one, name = every[number], f"{every[number].metadata.name}__{place}"
        alone = machine_code(one.asm["cubin"])[f"{_TEXT}{one.metadata.name}"]
        if code.get(f"{_TEXT}{name}") == alone:
            begun[number] = _listed(image, name, own_file(one.asm["ptx"]), texts[number][1])
    return [begun.get(number) or _listed(one.asm["cubin"], one.metadata.name,
                                         own_file(one.asm["ptx"]), texts[number][1])
            for number, one in enumerate(every)]


def _listed(cubin: bytes, name: str, own: str,
            calls: Mapping[int, tuple[int, ...]]) -> Callable[[], Code]:
    """Begins to disassemble a kernel; ``calls`` are those that are numbered as lines."""
    _listing(cubin, *_LINES)

    def placed(step: SassInstruction) -> SassInstruction:
        lines = calls.get(step.line or 0)
        return replace(step, line=lines[0], calls=lines[:0:-1]) if lines else step

    return lambda: Code(tuple(map(placed, disassembled(cubin, name, own))))


class CannotDisassemble(RuntimeError):
    """nvdisasm failed; the message is its own."""


@functools.lru_cache(maxsize=64)
def disassembled(cubin: bytes, kernel: str, file: str = "") -> tuple[SassInstruction, ...]:
    """The instructions of ``kernel`` in the order of their addresses; takes about 0.2 s.

    Args:
        kernel: the name of its symbol in the ELF file ``cubin``.
        file: name of the kernel's file, to which lines refer. If empty, that of the outermost call.

    Raises:
        CannotDisassemble: nvdisasm does not read it, or it holds no such kernel.
    """
    instructions = tuple(_parsed(_listing(cubin, *_LINES).text(), kernel, file))
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
    for row in _listing(cubin, "-lrm", "count").text().splitlines():
        if _SECTION in row:
            inside = _section(row) == kernel
        elif inside and (step := _STEP.match(row)) and (count := _LIVE.search(row)):
            live[int(step[1], 16)] = int(count[1])
    return live


class _Listing:
    """A process of nvdisasm; ``text`` waits for its output."""

    _running: ClassVar["list[_Listing]"] = []

    def __init__(self, cubin: bytes, *options: str) -> None:
        while len(self._running) >= _AT_ONCE:
            self._running[0]._end()
        self._text = self._error = ""
        self._folder = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
        self._output = Path(self._folder.name) / "listing"
        path = self._output.with_name("kernel.cubin")
        try:
            path.write_bytes(cubin)
            with self._output.open("wb") as output:
                self._process = subprocess.Popen(
                    [triton.knobs.nvidia.nvdisasm.path, "-c", *options, str(path)],
                    stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.PIPE)
        except OSError as error:
            self._error = str(error)
            self._folder.cleanup()
        else:
            self._running.append(self)

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


def _section(row: str) -> str:
    """The kernel whose code begins at this row."""
    return row.split(_SECTION, 1)[1].split('"')[0].split(",")[0]


def _parsed(listing: str, kernel: str, file: str) -> Iterator[SassInstruction]:
    """Parses the listing; branches name labels, which may stand behind them."""
    labels: dict[str, int] = {}
    steps: list[tuple[int, str, tuple[int, ...]]] = []
    waiting: list[str] = []  # labels of the next address
    frames: list[str] = []  # of the next instruction, the innermost first
    last: list[str] = []  # of the instruction before the kernel
    lines: tuple[int, ...] = ()
    inside = False
    for row in listing.splitlines():
        if _SECTION in row:
            inside = _section(row) == kernel
        elif "//##" in row:
            frames.append(row)
        elif not inside:  # its last location is also that of the next kernel, unless that has one
            last, frames = frames or last, []
        elif label := _LABEL.match(row):
            waiting.append(label[1])
        elif step := _STEP.match(row):
            address = int(step[1], 16)
            if frames or last:
                lines, frames, last = _own_lines(frames or last, file), [], []
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
        with redirect_stdout(StringIO()):  # it prints all of what it refuses
            return bytes(stages["cubin"](ptx, settings))
    except Exception:  # another interface: each kernel is listed alone
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
        if title.startswith(_TEXT):
            sections[title] = cubin[offset:offset + length]
    return sections
