"""Findings about kernels that do not compile: the compiler's message, at the learner's line."""

import ast
import linecache
import os
import re
import sys
import tempfile
import traceback
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import triton.language as tl
from triton.compiler.errors import CompilationError
from triton.runtime.errors import OutOfResources, PTXASError
from triton.runtime.jit import JITFunction

from grader.engine.compiler.ptx import line_of
from grader.engine.compiler.targets import Target
from grader.finding import fault, looked_up
from grader.report import Finding, words

_LONGEST = 1200  # characters of what the compiler says
_READ = 1 << 20  # bytes of what it prints
_PRINTED = re.compile(r"^(\S.*?):(\d+):(\d+): (error|note): (.*)", re.MULTILINE)
_EMPTY = "Failures have been detected while processing an MLIR pass pipeline"
_ASSERTION = re.compile(r"Assertion `.*' failed")
_ASSEMBLER = re.compile(r"(?:error|fatal)\s*:\s*(.*)")
_OUTSIDE = "`_semantic` argument must be provided"  # of what only the language itself may call
_ROW = re.compile(r"^\S+ (\S+), line (\d+); error", re.MULTILINE)
_ADDRESS = re.compile(r" at 0x[0-9a-f]+")
# Limits of a launch rather than of the code, by the name of the resource: what a finding calls
# them. Triton's own advice is about shared memory alone.
_LAUNCHED = {"threads": "too many threads", "thread blocks": "too many blocks"}

_Place = tuple[int, str]  # line of the learner's file; that line and a caret below it


@contextmanager
def heard() -> Iterator[list[str]]:
    """Redirects standard error; after a failure, the list holds its text.

    MLIR and LLVM explain their errors there and nowhere else.
    """
    printed: list[str] = []
    with tempfile.TemporaryFile() as file:
        sys.stderr.flush()
        before = os.dup(2)
        os.dup2(file.fileno(), 2)
        try:
            yield printed
        except BaseException:
            printed.append(os.pread(file.fileno(), _READ, 0).decode(errors="replace"))
            raise
        finally:
            sys.stderr.flush()
            os.dup2(before, 2)
            os.close(before)


def finding(error: Exception, printed: str, kernel: Any, target: Target) -> Finding:
    """Explains why a JITFunction does not compile; ``printed``: the compiler's standard error."""
    name = kernel.fn.__name__
    if isinstance(error, OutOfResources):
        data = fault("too large", kernel=name, target=target.title, text=str(error))
        if error.name in _LAUNCHED:
            data = fault(_LAUNCHED[error.name], kernel=name, target=target.title,
                         count=error.required, most=error.limit)
        return Finding("T05", data, line=_first_line(kernel))
    own = _own(kernel)
    if isinstance(error, CompilationError):
        kind = "refused by Triton"
        chain = _chain(error)
        text = _words(chain) or _diagnosis(printed, own)[0] or _asserted(chain[0])
        place = next(filter(None, (_place(one, own) for one in chain)), None)
    elif isinstance(error, PTXASError):
        kind = "refused by the assembler"
        text, place = _assembler(str(error), own)
    else:
        kind = "refused"
        text, place = _diagnosis(printed, own)
        text = text or f"{type(error).__name__}: {error}"
    line, quoted = place or (_first_line(kernel), "")
    return Finding("L05", fault(kind, kernel=name, target=target.title, text=_short(text, kernel),
                                quoted=quoted), line=line)


def _chain(error: CompilationError) -> list[CompilationError]:
    """The errors from the helper where it went wrong to the kernel's own code."""
    cause = error.__cause__
    return [*(_chain(cause) if isinstance(cause, CompilationError) else ()), error]


def _words(chain: list[CompilationError]) -> str:
    for one in chain:
        cause = one.__cause__
        text = str(one.error_message or (cause if not isinstance(cause, CompilationError) else "")
                   or "")
        if isinstance(cause, KeyError) and text.strip():  # its text is the key and no more
            return words("look-up failed", **looked_up(cause))
        if _OUTSIDE in text and (name := _of_the_host(one.node)):
            return words("of triton", name=name)
        if text.strip() and text != "AssertionError()":
            return text
    return ""


def _of_the_host(node: Any) -> str:
    """The name of a function of ``triton`` that is called, where the language has it too."""
    match node:
        case ast.Call(ast.Attribute(ast.Name("triton"), name)) if hasattr(tl, name):
            return name
    return ""


def _asserted(error: BaseException) -> str:
    """The assertion of the compiler that failed; empty where another statement did."""
    steps = traceback.extract_tb((error.__cause__ or error).__traceback__)
    code = steps[-1].line if steps else None
    return words("compiler's assertion", code=f"{code!r:.200}") \
        if code and code.startswith("assert ") else ""


def _own(kernel: Any) -> list[Any]:
    """The functions of the kernel's file, itself first."""
    names = kernel.fn.__globals__
    return [kernel, *(one for one in names.values() if isinstance(one, JITFunction)
                      and one is not kernel and one.fn.__globals__ is names)]


def _place(error: CompilationError, own: Iterable[Any]) -> _Place | None:
    """The code that the compiler was reading; None if it is not in the learner's file.

    The text that an error carries may be that of a function whose call is refused.
    """
    node = error.node
    if not hasattr(node, "lineno"):
        return None
    functions = sorted(own, key=lambda function: function.src != error.src)
    function = next((one for one in functions if _holds(one.src, node)), None)
    if function is None:
        return None
    line = _first_line(function) + node.lineno - 1
    indent = len(function.raw_src[0]) - len(function.raw_src[0].lstrip())
    before = _text(function, line).encode()[:indent + node.col_offset]
    return _marked(function, line, len(before.decode(errors="ignore")))


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
    first, place = "", None
    for path, line, column, kind, text in _PRINTED.findall(printed):
        if not first and kind == "error" and not text.startswith(_EMPTY):
            first = text.split(": %")[0]
        if first and place is None and path == file:
            place = _at(int(line), int(column), own)
    if not first and (assertion := _ASSERTION.search(printed)):
        first = assertion[0]
    return first, place


def _assembler(log: str, own: list[Any]) -> tuple[str, _Place | None]:
    """The assembler's messages, each once, and the place of the first."""
    log = log.split("Repro command")[0].split("stderr:")[-1]
    text = "; ".join(dict.fromkeys(_ASSEMBLER.findall(log))) or log
    line = None
    if row := _ROW.search(log):
        with suppress(OSError):  # Triton leaves the text where it was refused
            line = line_of(Path(row[1]).read_text(encoding="utf-8", errors="replace"), int(row[2]))
    return text, _at(line, 0, own) if line else None


def _at(line: int, column: int, own: Sequence[Any]) -> _Place | None:
    inside = any(0 <= line - _first_line(one) <= one.src.count("\n") for one in own)
    return _marked(own[0], line, column - 1) if inside else None


def _marked(function: Any, line: int, column: int) -> _Place:
    """A line of a function's file, and a caret below a column of it."""
    text = _text(function, line)
    caret = " " * (column - len(text) + len(text.lstrip())) + "^"
    return line, f"{text.strip()}\n{caret}"


def _text(function: Any, line: int) -> str:
    return linecache.getline(function.fn.__code__.co_filename, line)


def _first_line(function: Any) -> int:
    """Returns the line of the ``def``, below its decorators."""
    decorators = "".join(function.raw_src).count("\n") - str(function.src).count("\n")
    return int(function.starting_line_number) + decorators


def _short(text: str, kernel: Any) -> str:
    """On one line, without what is different in every run: folders of copies, and addresses."""
    for path in (Path(kernel.fn.__code__.co_filename).parent, tempfile.gettempdir()):
        text = text.replace(f"{path}/", "")
    return " ".join(_ADDRESS.sub("", text).split())[:_LONGEST]
