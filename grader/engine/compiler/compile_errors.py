"""Why a kernel does not compile: the compiler's own words, at the place in the learner's file."""

from __future__ import annotations

import ast
import os
import re
import sys
import tempfile
import traceback
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import triton.language as tl
from triton.compiler.errors import CompilationError
from triton.runtime.errors import OutOfResources, PTXASError
from triton.runtime.jit import JITFunction

from grader.engine.compiler.ptx import line_of
from grader.engine.compiler.targets import Target
from grader.finding import fault
from grader.report import Finding
from grader.text import not_found

_LONGEST = 1200  # characters of what the compiler says
_READ = 1 << 20  # bytes of what it prints
_PRINTED = re.compile(r"^(\S.*?):(\d+):(\d+): (error|note): (.*)", re.MULTILINE)
_EMPTY = "Failures have been detected while processing an MLIR pass pipeline"
_ASSERTION = re.compile(r"Assertion `.*' failed")
_ASSEMBLER = re.compile(r"(?:error|fatal)\s*:\s*(.*)")
_OUTSIDE = "`_semantic` argument must be provided"  # said of what only the language's own may call
_ROW = re.compile(r"^\S+ (\S+), line (\d+); error", re.MULTILINE)
_ADDRESS = re.compile(r" at 0x[0-9a-f]+")
# Limits of a launch rather than of the code, by the name of the resource: what a finding calls
# them. Triton's own advice is about shared memory alone.
_LAUNCHED = {"threads": "too many threads", "thread blocks": "too many blocks"}

_Place = tuple[int, str]  # line of the learner's file; that line and a caret below it


@contextmanager
def heard() -> Iterator[list[str]]:
    """Inside, nothing is printed to standard error; after a failure, the list holds its text.

    What is between Python and the GPU's code explains itself there and nowhere else.
    """
    said: list[str] = []
    with tempfile.TemporaryFile() as file:
        sys.stderr.flush()
        before = os.dup(2)
        os.dup2(file.fileno(), 2)
        try:
            yield said
        except BaseException:
            said.append(os.pread(file.fileno(), _READ, 0).decode(errors="replace"))
            raise
        finally:
            sys.stderr.flush()
            os.dup2(before, 2)
            os.close(before)


def finding(error: Exception, printed: str, kernel: Any, target: Target) -> Finding:
    """What to tell of a kernel that does not compile.

    Args:
        error: what the compiler raised.
        printed: what it printed meanwhile.
        kernel: the JITFunction that was launched.
        target: the GPU that it was compiled for.
    """
    name = kernel.fn.__name__
    if isinstance(error, OutOfResources):
        data = fault("too large", kernel=name, target=target.title, text=str(error))
        if error.name in _LAUNCHED:
            data = fault(_LAUNCHED[error.name], kernel=name, target=target.title,
                         count=error.required, most=error.limit)
        return Finding("T05", data, line=_first_line(kernel))
    own, kind = _own(kernel), "refused"
    if isinstance(error, CompilationError):
        kind = "refused by Triton"
        chain = list(_chain(error))
        said = _words(chain)
        place = next((found for one in reversed(chain) if (found := _place(one, own))), None)
        if not said:
            said, _ = _diagnosis(printed, own)
            said = said or _asserted(chain[-1])
    elif isinstance(error, PTXASError):
        said, place = _assembler(str(error), own)
        kind = "refused by the assembler"
    else:
        said, place = _diagnosis(printed, own)
        said = said or f"{type(error).__name__}: {error}"
    line, quoted = place or (_first_line(kernel), "")
    return Finding("L05", fault(kind, kernel=name, target=target.title, text=_short(said, kernel),
                                quoted=quoted), line=line)


def _chain(error: CompilationError) -> Iterator[CompilationError]:
    """From the kernel's own code to that of the helper where it went wrong."""
    step: BaseException | None = error
    while isinstance(step, CompilationError):
        yield step
        step = step.__cause__


def _words(chain: list[CompilationError]) -> str:
    for one in reversed(chain):
        cause = one.__cause__
        said = str(one.error_message or (cause if not isinstance(cause, CompilationError) else "")
                   or "")
        if isinstance(cause, KeyError) and said.strip():  # its text is the key and no more
            return not_found(cause)
        if _OUTSIDE in said and (name := _of_the_host(one.node)):
            return f"`triton.{name}` is for host code; in a kernel it is `tl.{name}`"
        if said.strip() and said != "AssertionError()":
            return said
    return ""


def _of_the_host(node: Any) -> str:
    """The name of a function of ``triton`` that is called, where the language has it too."""
    match node:
        case ast.Call(ast.Attribute(ast.Name("triton"), name)) if hasattr(tl, name):
            return name
    return ""


def _asserted(error: BaseException) -> str:
    """What the compiler takes for granted, where that is all it has to say."""
    steps = traceback.extract_tb((error.__cause__ or error).__traceback__)
    code = steps[-1].line if steps else None
    return f"the compiler has {code!r:.200}" if code and code.startswith("assert ") else ""


def _own(kernel: Any) -> list[Any]:
    """The functions of the kernel's file, itself first."""
    others = [function for function in kernel.fn.__globals__.values()
              if isinstance(function, JITFunction) and function is not kernel
              and function.fn.__globals__ is kernel.fn.__globals__]
    return [kernel, *others]


def _place(error: CompilationError, own: Iterable[Any]) -> _Place | None:
    """Where the learner's file has what the compiler was reading; None if it read other code.

    The text that an error carries may be that of a function whose call is refused.
    """
    node = error.node
    if not hasattr(node, "lineno"):
        return None
    functions = sorted(own, key=lambda function: function.src != error.src)
    function = next((one for one in functions if _holds(one.src, node)), None)
    if function is None:
        return None
    return _marked(function, node.lineno, len(_line(function, node.lineno).encode()
                                              [:node.col_offset].decode(errors="ignore")))


def _holds(text: str, node: ast.AST) -> bool:
    words = _dump(node)
    return any(type(other) is type(node) and _dump(other) == words
               for other in ast.walk(ast.parse(text)))


def _dump(node: ast.AST) -> str:
    try:
        return ast.dump(node, include_attributes=True)
    except ValueError as error:  # Python writes down no integer of more than 4,300 digits
        return str(error)


def _diagnosis(printed: str, own: list[Any]) -> tuple[str, _Place | None]:
    """The first error that was printed, and the first place in the learner's file since then."""
    file = own[0].fn.__code__.co_filename
    said, place = "", None
    for path, line, column, kind, text in _PRINTED.findall(printed):
        if not said and kind == "error" and not text.startswith(_EMPTY):
            said = text.split(": %")[0]
        if said and place is None and path == file:
            place = _at(int(line), int(column), own)
    if not said and (assertion := _ASSERTION.search(printed)):
        said = assertion[0]
    return said, place


def _assembler(log: str, own: list[Any]) -> tuple[str, _Place | None]:
    """What it says, each thing once, and the line whose code it speaks of first."""
    log = log.split("Repro command")[0].split("stderr:")[-1]
    said = "; ".join(dict.fromkeys(_ASSEMBLER.findall(log))) or log
    line = None
    if row := _ROW.search(log):
        with suppress(OSError):  # Triton leaves the text where it was refused
            line = line_of(Path(row[1]).read_text(encoding="utf-8", errors="replace"), int(row[2]))
    return said, _at(line, 0, own) if line else None


def _at(line: int, column: int, own: Iterable[Any]) -> _Place | None:
    for function in own:
        inside = line - _first_line(function) + 1
        if 1 <= inside <= function.src.count("\n") + 1:
            indent = len(function.raw_src[0]) - len(function.raw_src[0].lstrip())
            return _marked(function, inside, max(0, column - 1 - indent))
    return None


def _marked(function: Any, inside: int, column: int) -> _Place:
    """A line of a function, counted from its ``def``, and a caret below a column of it."""
    text = _line(function, inside)
    caret = " " * (column - len(text) + len(text.lstrip())) + "^"
    return _first_line(function) + inside - 1, f"{text.strip()}\n{caret}"


def _line(function: Any, inside: int) -> str:
    return str(function.src.split("\n")[inside - 1])


def _first_line(function: Any) -> int:
    """Where the ``def`` stands, below its decorators."""
    decorators = "".join(function.raw_src).count("\n") - str(function.src).count("\n")
    return int(function.starting_line_number) + decorators


def _short(said: str, kernel: Any) -> str:
    """On one line, without what is different in every run: folders of copies, and addresses."""
    folder = Path(kernel.fn.__code__.co_filename).parent
    for path in (folder, tempfile.gettempdir()):
        said = said.replace(f"{path}/", "")
    return " ".join(_ADDRESS.sub("", said).split())[:_LONGEST]
