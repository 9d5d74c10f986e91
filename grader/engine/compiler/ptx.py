"""Reads PTX text: instructions with their lines, listings, declared stack; repairs locations."""

import hashlib
import re
from collections.abc import Iterator
from math import ceil
from pathlib import PurePath
from typing import NamedTuple

Place = tuple[str, int, int]
"""The innermost source of an instruction: name of the file without its folder, line, column."""

_READ = ("ld", "ldu", "st", "atom", "red", "cp", "mma", "wmma", "wgmma", "tcgen05", "fma", "bar",
         "barrier", "stmatrix", "shfl")
_LABEL = re.compile(r"^(\$\w+):", re.MULTILINE)
_BRANCH = re.compile(r"\bbra(?:\.uni)?[ \t]+(\$\w+);")
_TOKEN = re.compile(  # locations, and statements at the start of a line or after another one
    r"^[ \t]*\.loc[ \t]+(?P<file>\d+)[ \t]+(?P<line>\d+)[ \t]+(?P<column>\d+)(?P<more>.*)"
    r"|(?:^|[;{}])[ \t]*(?:@!?[%\w]+[ \t]+)?"
    rf"(?P<opcode>(?:{'|'.join(_READ)})\.[\w.:]+)(?P<operands>[^;\n]*)",
    re.MULTILINE)
_STATEMENT = re.compile(
    r"^[ \t]*\.loc[ \t]+(?P<file>\d+)[ \t]+(?P<line>\d+)[ \t]+(?P<column>\d+)(?P<more>.*)"
    r"|(?:^|(?<=[;{}]))[ \t]*(?:@(?P<predicate>!?%\w+)[ \t]+)?"
    r"(?P<opcode>[a-z]\w*(?:[.:]+\w+)*)[ \t]+(?P<operands>[^;\n]*);", re.MULTILINE)
_REMARK = re.compile(r"//(?! \S+:\d+:\d+).*")  # a comment that names no place in a source
_FILE = re.compile(r'^[ \t]*\.file[ \t]+(\d+)[ \t]+"([^"]*)"(?:[ \t]+"([^"]*)")?', re.MULTILINE)
_ENTRY = re.compile(r"^\.visible[ \t]+\.entry[ \t]", re.MULTILINE)
_LOCATION = re.compile(r"^[ \t]*\.loc[ \t]+(\d+)[ \t]+(\d+)[ \t]+(\d+)(.*)$", re.MULTILINE)
_INLINED = re.compile(r"inlined_at[ \t]+(\d+)[ \t]+(\d+)[ \t]+(\d+)")
_CALLER = re.compile(r"@\[[ \t]*([^@\[\]]+?):(\d+):(\d+)")
_DEPOT = re.compile(r"\.local[ \t]+[^;\n]*?__local_depot\d+\[(\d+)\]")
_STACK_UNIT = 8  # bytes; the assembler rounds a thread's stack up to a multiple
_COMMENT = re.compile(r"//.*")
_NUMBERED = 1 << 20  # beyond the lines of any file
_ASSEMBLY = re.compile(r"// begin inline asm\n.*?// end inline asm", re.DOTALL)
_NOT_CODE = re.compile(
    r"^[ \t]*(?:\.(?:file|loc)\b.*|\$L__(?:tmp|func_begin|func_end|info_string)\d+:)",
    re.MULTILINE)
_DEBUGGING = re.compile(r"\.section[ \t]+\.debug_\w+\s*\{[^}]*\}")
_TARGET = re.compile(r"^\.target[ \t]+sm_(\w+)", re.MULTILINE)


class PtxInstruction(NamedTuple):
    """One instruction; ``line`` is in the kernel's file, None without a source there."""

    opcode: str  # with its modifiers, without its predicate
    operands: str
    line: int | None
    place: Place | None
    in_loop: bool


class PtxStatement(NamedTuple):
    """One instruction of any kind; ``line`` as of ``PtxInstruction``."""

    predicate: str  # such as %p1 or !%p1; empty without one
    opcode: str
    operands: str
    line: int | None


def located(ptx: str) -> tuple[str, dict[int, tuple[int, ...]]]:
    """Gives each instruction the line that ``sass`` reads; its code stays as it is.

    Returns:
        The text for the assembler, and the calls of ``with_numbered_calls``.
    """
    return with_numbered_calls(attributed_to_callers(repaired(ptx)))


def repaired(ptx: str) -> str:
    """Gives every instruction of a block of inline assembly the location of its first.

    Triton 3.8 and 3.9 write a masked load as several lines of assembly, and LLVM takes each of
    them for one line of the source: the load itself is reported some lines below where it is.
    Assembling the result gives the same instructions.
    """
    def with_one_location(block: re.Match[str]) -> str:
        first = _LOCATION.search(block[0])
        return _LOCATION.sub(lambda _: first[0], block[0]) if first else block[0]

    return _ASSEMBLY.sub(with_one_location, ptx)


def own_file(ptx: str) -> str:
    """The name of the kernel's file: that of the first location; empty without one."""
    first = _LOCATION.search(ptx)
    paths = {number: name or folder for number, folder, name in _FILE.findall(ptx)}
    return PurePath(paths.get(first[1], "")).name if first else ""


def architecture(ptx: str) -> str:
    """What the text is written for, in the form SM90a; empty if it does not say so."""
    target = _TARGET.search(ptx)
    return f"SM{target[1]}" if target else ""


def attributed_to_callers(ptx: str) -> str:
    """Moves locations in library helpers to the line of the kernel's file that calls them.

    Triton 3.6 and 3.7 name the caller of a helper only in a comment, which the assembler drops:
    ``.loc 2 293 36 // standard.py:293:36 @[ kernel.py:26:35 ]``. Later versions pass it to the
    assembler, and their PTX is returned as it is.
    """
    first, name = _LOCATION.search(ptx), own_file(ptx)
    if first is None:
        return ptx

    def moved(location: re.Match[str]) -> str:
        callers = _CALLER.findall(location[4]) if location[1] != first[1] else []
        own = [(line, column) for file, line, column in callers if file == name]
        if not own:
            return location[0]
        outer = "".join(f" @[ {name}:{line}:{column} ]" for line, column in own[1:])
        return f"\t.loc\t{first[1]} {own[0][0]} {own[0][1]}" + (f" //{outer}" if outer else "")

    return _LOCATION.sub(moved, ptx)


def with_numbered_calls(ptx: str) -> tuple[str, dict[int, tuple[int, ...]]]:
    """Numbers locations whose callers in the kernel's file are named only in a comment.

    Returns:
        The text, whose other locations are as before; and for each number that stands in it as a
        line, the line itself and those of its callers, the innermost first.
    """
    first, name = _LOCATION.search(ptx), own_file(ptx)
    numbers: dict[tuple[int, ...], int] = {}

    def numbered(location: re.Match[str]) -> str:
        if first is None or location[1] != first[1]:
            return location[0]
        callers = [int(line) for file, line, _ in _CALLER.findall(location[4]) if file == name]
        if not callers:
            return location[0]
        number = numbers.setdefault((int(location[2]), *callers), _NUMBERED + len(numbers))
        return f"\t.loc\t{location[1]} {number} 1"

    text = _LOCATION.sub(numbered, ptx)
    return text, {number: lines for lines, number in numbers.items()}


def instructions(ptx: str) -> Iterator[PtxInstruction]:
    """The instructions that access memory or other threads, multiply or wait, in order.

    ``line`` is the innermost one in the kernel's own file: that of a helper in the same file, but
    the calling line of a helper in another file, such as tl.sum.
    """
    text = _REMARK.sub("", repaired(ptx))
    sources = _Sources(text)
    loops = _loops(text)
    line: int | None = None
    place: Place | None = None
    for token in _TOKEN.finditer(text):
        if token["opcode"]:
            in_loop = any(token.start() in loop for loop in loops)
            yield PtxInstruction(token["opcode"], token["operands"], line, place, in_loop)
        elif token["file"]:
            line, place = sources.locate(token)


def statements(ptx: str) -> Iterator[PtxStatement]:
    """All instructions with operands, in order."""
    text = _REMARK.sub("", repaired(ptx))
    sources = _Sources(text)
    line: int | None = None
    for token in _STATEMENT.finditer(text):
        if token["opcode"]:
            yield PtxStatement(token["predicate"] or "", token["opcode"], token["operands"], line)
        else:
            line, _ = sources.locate(token)


def _loops(text: str) -> list[range]:
    """The loops as ranges of characters: from a label to the last branch back to it."""
    labels = {label[1]: label.start() for label in _LABEL.finditer(text)}
    ends = {branch[1]: branch.start() for branch in _BRANCH.finditer(text)
            if labels.get(branch[1], len(text)) < branch.start()}
    return [range(labels[label], end) for label, end in ends.items()]


def lines(ptx: str) -> list[tuple[int | None, str]]:
    """The listing without debugging data, each row with the line of the kernel's file."""
    listing: list[tuple[int | None, str]] = []
    for line, row in _located(_DEBUGGING.sub("", repaired(ptx))):
        if row.strip() and not row.lstrip().startswith("//") and not _NOT_CODE.match(row):
            code = row.startswith(("\t", " ")) and not row.lstrip().startswith(".")
            listing.append((line if code else None, row.expandtabs(4).rstrip()))
    return listing


def line_of(ptx: str, row: int) -> int | None:
    """The line of the kernel's file that a row of the text, counted from 1, comes from."""
    located = list(_located(repaired(ptx)))[:row]
    return located[-1][0] if located else None


def _located(text: str) -> Iterator[tuple[int | None, str]]:
    """Rows of the text, each with the line of the kernel's file that the last location names."""
    sources = _Sources(text)
    line: int | None = None
    for row in text.split("\n"):
        location = _TOKEN.match(row)
        if location and location["file"]:
            line, _ = sources.locate(location)
        yield line, row


class _Sources:
    """Sources of instructions, by the locations before them."""

    def __init__(self, text: str) -> None:
        self._files = {int(number): f"{folder}/{name}" if name else folder
                       for number, folder, name in _FILE.findall(text)}
        entry = _ENTRY.search(text)
        first = _LOCATION.search(text, entry.start() if entry else 0)
        # the kernel's file: the first that its code refers to
        self._home = self._files.get(int(first[1])) if first else None
        # lines of the kernel's file that inlined code was called from
        self._callers: dict[tuple[int, int, int], int | None] = {}

    def locate(self, token: re.Match[str]) -> tuple[int | None, Place | None]:
        """The line in the kernel's file, and the innermost place, of what follows a location."""
        here = int(token["file"]), int(token["line"]), int(token["column"])
        path = self._files.get(here[0], "")
        place = (path.rpartition("/")[2], here[1], here[2]) if here[1] else None
        line = self._callers[here] = self._line(here, token["more"], path)
        return line, place

    def _line(self, here: tuple[int, int, int], more: str, path: str) -> int | None:
        if self._home is None or here[1] == 0:
            return None
        if path == self._home:
            return here[1]
        # From 3.7 on, a location names its caller, which has been located before; 3.6 names all
        # callers in a comment.
        if inlined := _INLINED.search(more):
            file, line, column = map(int, inlined.groups())
            return self._callers.get((file, line, column))
        own = self._home.rpartition("/")[2]
        return next((int(line) for name, line, _ in _CALLER.findall(more) if name == own), None)


def declared_stack(ptx: str) -> int:
    """Bytes of a thread's stack for variables: those of a print, or the slow path of a sine."""
    return _STACK_UNIT * ceil(sum(map(int, _DEPOT.findall(ptx))) / _STACK_UNIT)


def sha256(ptx: str) -> str:
    """The digest of PTX without paths, lines and comments: equal for the same code anywhere."""
    code = _NOT_CODE.sub("", _DEBUGGING.sub("", _COMMENT.sub("", ptx)))
    return hashlib.sha256(" ".join(code.split()).encode()).hexdigest()
