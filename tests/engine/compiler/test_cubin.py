"""Cubins: lines of instructions, those of inlined calls too; functions; broken files."""

from __future__ import annotations

import re
import struct
import subprocess
from pathlib import Path

import pytest
import triton

from grader.engine.compiler import cubin
from grader.engine.compiler.cubin import Cubin, LineRow, lines_of
from grader.engine.compiler.ptx import own_file
from tests.support import timed
from tests.support.tiers import by_default

CAPABILITIES = (90, 80, 100, 120)
_HEADER = bytes((1, 1, 0xFB, 14, 10, 0, 1, 1, 1, 1, 0, 0, 0, 1))  # as ptxas writes it
_FILES = b"/home\0\0" + b"kernel.py\0\1\0\0" + b"lib.py\0\1\0\0" + b"\0"


def program(*opcodes: int) -> bytes:
    """A table of lines with these opcodes."""
    tables = _HEADER + _FILES
    body = struct.pack("<HI", 2, len(tables)) + tables + bytes(opcodes)
    return struct.pack("<I", len(body)) + body


def rows(*opcodes: int) -> list[LineRow]:
    return list(cubin._rows(program(*opcodes)))


def table(*rows: tuple[int, str, int, int]) -> list[LineRow]:
    return [LineRow(*row) for row in rows]


def listed_lines(data: bytes, file: str, tmp_path: Path) -> dict[int, int]:
    """The innermost line of a file, by address, in nvdisasm's own listing."""
    path = tmp_path / "kernel.cubin"
    path.write_bytes(data)
    shown = subprocess.run([triton.knobs.nvidia.nvdisasm.path, "-c", "-gi", "-ndf", str(path)],
                           check=True, capture_output=True, text=True).stdout
    lines: dict[int, int] = {}
    frames: list[int] = []
    last: int | None = None
    for row in shown.splitlines():
        if place := re.search(r'//## File "([^"]*)", line (\d+)', row):
            frames += [int(place[2])] if Path(place[1]).name == file else []
        elif step := re.match(r"\s*/\*([0-9a-f]{4,})\*/", row):
            last, frames = frames[0] if frames else last, []
            if last is not None:
                lines[int(step[1], 16)] = last
    return lines


@pytest.mark.parametrize("capability", by_default(1, CAPABILITIES))
@pytest.mark.parametrize("name", ["add", "matmul", "chain", "hashes"])
def test_lines_are_those_that_nvdisasm_shows(name, capability, tmp_path):
    kernel, _ = timed.compiled_call(name, capability)
    file = own_file(kernel.asm["ptx"])
    shown = listed_lines(kernel.asm["cubin"], file, tmp_path)
    read = Cubin(kernel.asm["cubin"], kernel.metadata.name)

    own: tuple[int, ...] = ()
    by_line = lines_of(read.rows, file)
    lines = {}
    for at in range(0, len(read.code), 16):
        own = by_line.get(at, own)
        lines[at] = own[0]

    assert len(shown) == len(read.code) // 16
    assert lines == shown


def test_a_line_program_is_run_as_dwarf_says():
    assert rows(
        0, 9, 2, *bytes(8),  # address 0
        3, 0x89, 1, 1,  # 137 lines more, and a row
        3, 0x7E, 2, 0x20, 1,  # 2 lines less, 32 bytes further
        4, 2, 9, 0x10, 0, 1,  # the other file, 16 bytes further
        8, 1,  # as far as opcode 255: (255 - 10) // 14 bytes
        10 + 14 * 3 + 5 + 4,  # a special opcode: 3 bytes and 4 lines further
        7, 6, 5, 9, 1,  # opcodes that say nothing of lines
        0, 1, 1,  # the end
    ) == [(0, "kernel.py", 138, 0), (32, "kernel.py", 136, 0), (48, "lib.py", 136, 0),
          (65, "lib.py", 136, 0), (68, "lib.py", 140, 0), (68, "lib.py", 140, 0)]


def test_a_row_names_the_row_of_the_call_that_it_is_inlined_in():
    assert rows(1, 4, 2, 0, 3, 0x90, 1, 0, 1, 0, 3, 0x90, 0, 0, 4, 1, 1) == [
        (0, "kernel.py", 1, 0), (0, "lib.py", 1, 1), (0, "kernel.py", 1, 0)]


def test_the_stack_of_calls_holds_the_lines_of_one_file_innermost_first():
    places = table((0, "kernel.py", 30, 0), (0, "kernel.py", 12, 1), (0, "lib.py", 43, 2),
                   (16, "lib.py", 43, 0), (32, "kernel.py", 31, 0))

    assert lines_of(places, "kernel.py") == {0: (12, 30), 16: (), 32: (31,)}
    assert lines_of(places, "lib.py") == {0: (43,), 16: (43,), 32: ()}


def test_the_same_place_in_another_call_is_another_row():
    """Where innermost places are equal, nvdisasm goes on with the call before."""
    places = table((0, "kernel.py", 30, 0), (0, "lib.py", 43, 1),
                   (16, "kernel.py", 20, 0), (16, "lib.py", 43, 3))

    assert lines_of(places, "kernel.py") == {0: (30,), 16: (20,)}


def test_a_row_that_names_no_row_before_it_has_no_caller():
    places = table((0, "kernel.py", 30, 1), (16, "kernel.py", 31, 9))

    assert lines_of(places, "kernel.py") == {0: (30,), 16: (31,)}


def test_a_kernel_without_debugging_data_has_no_lines():
    kernel, _ = timed.compiled_call("add")
    data = kernel.asm["cubin"].replace(b".debug_line\0", b".other_line\0")

    read = Cubin(data, kernel.metadata.name)

    assert lines_of(read.rows, own_file(kernel.asm["ptx"])) == {}


@pytest.mark.parametrize(("damage", "says"), [
    (lambda data: b"", "cannot be read"), (lambda data: b"ELF" * 100, "cannot be read"),
    (lambda data: data[:len(data) // 2], "cannot be read"),
    (lambda data: data.replace(b".symtab\0", b".smytab\0"), "symtab"),
    (lambda data: data.replace(_HEADER, _HEADER[:3] + b"\0" + _HEADER[4:]), "cannot be read"),
], ids=["empty", "another format", "cut", "without symbols", "no span of lines"])
def test_a_broken_file_is_refused(damage, says):
    kernel, _ = timed.compiled_call("add")

    with pytest.raises(ValueError, match=says):
        Cubin(damage(kernel.asm["cubin"]), kernel.metadata.name)


def test_another_version_of_dwarf_is_refused():
    later = program().replace(struct.pack("<H", 2), struct.pack("<H", 5), 1)

    with pytest.raises(ValueError, match="version 5 of DWARF"):
        list(cubin._rows(later))


def test_the_code_of_another_kernel_is_not_there():
    kernel, _ = timed.compiled_call("add")

    with pytest.raises(ValueError, match="no_such_kernel"):
        Cubin(kernel.asm["cubin"], "no_such_kernel")
