"""Reads a cubin, the ELF file of a kernel: its code, and the source lines and functions in it.

Lines are in the format of DWARF 2 (section 6.2), with NVIDIA's extension for inlined calls, which
elfutils describes at ``dwarf_linecontext``.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator
from pathlib import PurePath
from typing import NamedTuple

_TEXT = ".text."
_FUNCTION = 2  # STT_FUNC, the type of a symbol


class LineRow(NamedTuple):
    """The place of the instructions from ``address`` on, until the next row's."""

    address: int  # bytes from the beginning of the kernel
    file: str  # without folders
    line: int
    caller: int  # number of the row, from 1, of the call through which it is inlined; or 0


class Cubin:
    """One kernel in an ELF file.

    Attributes:
        code: its instructions, and those of the functions behind it.
        functions: their names, such as those of 64-bit divisions, by address.
        rows: places of the source, in the order of the line program; none without debugging data.

    Raises:
        ValueError: the file is not ELF, is damaged or does not contain the kernel.
    """

    def __init__(self, data: bytes, kernel: str) -> None:
        try:
            sections = dict(_sections(data))
            self.code = sections[f"{_TEXT}{kernel}"]
            self.functions = dict(_functions(sections[".symtab"], sections[".strtab"]))
            program = sections.get(".debug_line", b"")
            self.rows = list(_rows(program)) if program else []
        except (struct.error, LookupError, ArithmeticError, ValueError) as error:
            raise ValueError(f"the code of `{kernel}` cannot be read: {error}") from error


def lines_of(rows: Iterable[LineRow], file: str) -> dict[int, tuple[int, ...]]:
    """Returns the lines of a file in the call stack of the instructions from an address on.

    The innermost line is the first.
    """
    stacks: list[tuple[int, ...]] = []
    by_address = {}
    for row in rows:
        own = (row.line,) if row.file == file else ()
        outer = stacks[row.caller - 1] if 0 < row.caller <= len(stacks) else ()
        stacks.append(own + outer)
        by_address[row.address] = stacks[-1]
    return by_address


def _sections(data: bytes) -> Iterator[tuple[str, bytes]]:
    at, = struct.unpack_from("<Q", data, 0x28)  # e_shoff
    size, count, names = struct.unpack_from("<HHH", data, 0x3A)
    heads = [struct.unpack_from("<IIQQQQ", data, at + number * size) for number in range(count)]
    strings = data[heads[names][4]:]
    for name, _, _, _, offset, length in heads:
        yield _text(strings, name), data[offset:offset + length]


def _functions(symbols: bytes, names: bytes) -> Iterator[tuple[int, str]]:
    for name, kind, _, _, address, _ in struct.iter_unpack("<IBBHQQ", symbols):
        if kind & 15 == _FUNCTION and address:  # the kernel itself is at 0
            yield address, _text(names, name)


def _text(data: bytes, at: int) -> str:
    return data[at:data.index(b"\0", at)].decode("utf-8", "replace")


def _rows(data: bytes) -> Iterator[LineRow]:
    """Runs the line program of a file that has one."""
    length, version, header = struct.unpack_from("<IHI", data)
    unit, _, base, span, first = struct.unpack_from("<BBbBB", data, 10)
    if version != 2:
        raise ValueError(f"lines in version {version} of DWARF")
    operands = data[15:14 + first]  # how many each standard opcode has
    files = [PurePath(name).name for name in _files(data, 14 + first)]
    reader = _Reader(data, 10 + header)
    address, file, line, caller = 0, 1, 1, 0
    while reader.at < length + 4:
        new = False
        match opcode := reader.byte():
            case 0:  # an extended opcode, after its length
                after = reader.unsigned() + reader.at
                match reader.byte():
                    case 1:  # DW_LNE_end_sequence
                        address, file, line, caller = 0, 1, 1, 0
                    case 2:  # DW_LNE_set_address
                        address, = struct.unpack_from("<Q", data, reader.at)
                    case 0x90:  # DW_LNE_NVIDIA_inlined_call
                        caller = reader.unsigned()
                reader.at = after
            case 1:  # DW_LNS_copy
                new = True
            case 2:  # DW_LNS_advance_pc
                address += reader.unsigned() * unit
            case 3:  # DW_LNS_advance_line
                line += reader.signed()
            case 4:  # DW_LNS_set_file
                file = reader.unsigned()
            case 8:  # DW_LNS_const_add_pc
                address += (255 - first) // span * unit
            case 9:  # DW_LNS_fixed_advance_pc
                address += struct.unpack_from("<H", data, reader.at)[0]
                reader.at += 2
            case _ if opcode < first:  # says nothing of lines
                for _ in range(operands[opcode - 1]):
                    reader.unsigned()
            case _:  # a special opcode
                address += (opcode - first) // span * unit
                line += base + (opcode - first) % span
                new = True
        if new:
            yield LineRow(address, files[file - 1], line, caller)


def _files(data: bytes, at: int) -> Iterator[str]:
    """The names of files, which stand behind those of folders."""
    while data[at]:
        at = data.index(b"\0", at) + 1
    at += 1
    while data[at]:
        yield _text(data, at)
        reader = _Reader(data, data.index(b"\0", at) + 1)
        for _ in ("folder", "time", "size"):
            reader.unsigned()
        at = reader.at


class _Reader:
    """Reads numbers one after another."""

    def __init__(self, data: bytes, at: int) -> None:
        self._data, self.at = data, at

    def byte(self) -> int:
        self.at += 1
        return self._data[self.at - 1]

    def unsigned(self) -> int:
        return self._leb128()[0]

    def signed(self) -> int:
        number, bits = self._leb128()
        return number - (1 << bits) if number >> (bits - 1) else number

    def _leb128(self) -> tuple[int, int]:
        """A number of groups of 7 bits, and how many bits those are."""
        number = bits = 0
        while True:
            byte = self.byte()
            number |= (byte & 127) << bits
            bits += 7
            if byte < 128:
                return number, bits
