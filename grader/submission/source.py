"""Reads a submission, and checks syntax, blanks, kernels and signatures without running it."""

import ast
import codecs
import hashlib
import io
import os
import re
import stat
import tokenize
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Self

from grader.finding import fault
from grader.report import Finding
from grader.submission import syntax
from grader.submission.dataflow import is_jit, kernel_definitions
from grader.submission.placeholders import blanks_left, blanks_left_in, bound_names, functions
from grader.submission.todo_regions import Places, numbered_comments, places

KERNEL = "kernel.py"  # what a submission is called by
MAX_BYTES = 1_000_000  # of a submission; an exercise has about 5,000
# Other codecs take long (punycode), raise anything (undefined), or decode to misleading text.
_ENCODINGS = re.compile(r"utf-8(-sig)?|ascii|iso8859-\d+|cp125\d")


Signature = tuple[tuple[str, ...], tuple[str, ...]]  # parameters, and those passed by name only


class UnreadableSubmission(OSError):
    """The file is missing, a folder, a device, too large, or not permitted to read."""


@dataclass(frozen=True)
class Source:
    """A snapshot of a submission; all later steps use this text, not the file.

    Where a submission has several files, ``data`` is the one that is imported, and ``text``,
    ``todos`` and ``tree`` are of ``kernel_file``, from which kernels are taken and whose lines
    findings name.
    """

    text: str
    data: bytes
    sha256: str
    todos: dict[int, int]  # line -> number of its TODO or DECIDE comment, in order
    problem: Finding | None = None  # P02: it does not parse
    tree: ast.Module | None = field(default=None, compare=False, repr=False)  # unless a problem
    files: Mapping[str, bytes] = field(default_factory=dict)  # the others, by their paths
    kernel_file: str = KERNEL
    trees: Mapping[str, ast.Module] = field(default_factory=dict, compare=False, repr=False)

    @property
    def texts(self) -> dict[str, str]:
        """All files as text by path; the imported file is kernel.py."""
        return {name: data.decode("utf-8", "replace")
                for name, data in {KERNEL: self.data, **self.files}.items()}

    def places(self, exercise: str = "") -> Places:
        """The TODO that each line belongs to; ``exercise`` is the file the learner started with."""
        return places(self.tree, self.text, self.todos, exercise)

    def with_text(self, text: str, file: str = "") -> Self:
        """Replaces the text of one file, that with the kernels by default; checks nothing in it."""
        data, file = text.encode(), file or self.kernel_file
        is_imported = file == KERNEL
        other = replace(self, data=data if is_imported else self.data,
                        files=self.files if is_imported else {**self.files, file: data})
        return other if file != self.kernel_file else replace(
            other, text=text, tree=syntax.tree_of(text), todos=numbered_comments(text))

    def with_files(self, files: Mapping[str, str], instead_of: str) -> Self:
        """Replaces further files of the submission; nothing in them is checked.

        Args:
            files: path -> text; they are added.
            instead_of: the folder whose files go.
        """
        kept = {name: data for name, data in self.files.items() if not name.startswith(instead_of)}
        return replace(self, files=kept | {name: text.encode() for name, text in files.items()})


def read(path: Path, files: Sequence[str] = (), kernel_file: str = KERNEL) -> Source:
    """Reads a submission once.

    Args:
        path: of the file that is imported.
        files: paths of further files, as seen from its folder.
        kernel_file: which of all of them holds the kernels.

    Raises:
        UnreadableSubmission: the path is not a readable regular file of at most ``MAX_BYTES``, or
            one of the further files is there and cannot be read.
    """
    first = _read(_content(path), KERNEL)
    if not files:
        return first
    every = {KERNEL: first}
    for name in files:
        data = _further(path.parent, name)
        every[name] = Source("", b"", "", {}, data) if isinstance(data, Finding) else \
            _read(data, name)
    problem = next((one.problem for one in every.values() if one.problem), None)
    size = sum(len(one.data) for one in every.values())
    if problem is None and size > MAX_BYTES:
        problem = Finding("P02", fault("size", n_bytes=size, most=MAX_BYTES))
    held = every[kernel_file]
    return Source(
        held.text, first.data, digest({name: one.data for name, one in every.items()}),
        {} if problem else held.todos, problem, held.tree,
        {name: every[name].data for name in files}, kernel_file,
        {name: one.tree for name, one in every.items() if one.tree is not None})


def digest(contents: Mapping[str, bytes]) -> str:
    """The SHA-256 of a submission; of a single file, its own."""
    if len(contents) == 1:
        return hashlib.sha256(*contents.values()).hexdigest()
    sha256 = hashlib.sha256()
    for name, data in sorted(contents.items()):
        sha256.update(f"{name}\0{len(data)}\0".encode() + data)
    return sha256.hexdigest()


def _further(folder: Path, name: str) -> bytes | Finding:
    """The content of a file of the learner's folder; a link may not lead out of it."""
    path = folder / name
    try:
        inside = path.resolve(strict=True).is_relative_to(folder.resolve())
    except FileNotFoundError:
        return Finding("P02", fault("no file", name=name))
    except (OSError, RuntimeError) as error:
        raise UnreadableSubmission(f"{path} cannot be read: {error}.") from error
    if not inside:
        return Finding("P02", fault("link", name=name))
    return _content(path)


def _read(data: bytes, name: str) -> Source:
    text, parsed = _decoded(data), None
    if isinstance(text, str) and name.endswith(".py"):
        parsed = _parsed(text)
    problem = next((one for one in (text, parsed) if isinstance(one, Finding)), None)
    if problem and name != KERNEL:
        problem = replace(problem.within("file", name=name), line=None)
    if isinstance(text, Finding):
        return Source("", data, digest({name: data}), {}, problem)
    todos = {} if parsed is None else numbered_comments(text)
    return Source(text, data, digest({name: data}), todos, problem,
                  parsed if isinstance(parsed, ast.Module) else None)


def _decoded(data: bytes) -> str | Finding:
    encoding = "UTF-8"
    try:
        encoding, _ = tokenize.detect_encoding(io.BytesIO(data).readline)
        if _ENCODINGS.fullmatch(codecs.lookup(encoding).name):
            return data.decode(encoding).replace("\r\n", "\n").replace("\r", "\n")
        other = encoding
    except SyntaxError as error:
        _, _, other = str(error.msg).partition("unknown encoding: ")
    except UnicodeDecodeError:
        other = ""
    return Finding("P02", fault("encoding", encoding=f"{other:.40}") if other else
                   fault("no text", encoding=encoding.upper()))


def _content(path: Path) -> bytes:
    """All bytes of a regular file; its kind is checked after opening, so no race is possible."""
    def without_waiting(path: str, flags: int) -> int:
        return os.open(path, flags | os.O_NONBLOCK | os.O_NOCTTY)

    try:
        with open(path, "rb", opener=without_waiting) as file:
            status = os.fstat(file.fileno())
            if not stat.S_ISREG(status.st_mode):
                raise UnreadableSubmission(f"{path} is not a regular file.")
            data = file.read(MAX_BYTES + 1)  # it may be growing
    except UnreadableSubmission:
        raise
    except IsADirectoryError as error:
        raise UnreadableSubmission(f"{path} is a folder, not a kernel file.") from error
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise UnreadableSubmission(f"{path} cannot be read: {reason}.") from error
    if len(data) > MAX_BYTES:
        raise UnreadableSubmission(f"{path} has {max(status.st_size, len(data)):,} bytes; a kernel "
                                   f"file may have {MAX_BYTES:,}.")
    return data


def _parsed(text: str) -> ast.Module | Finding:
    """Parses the text. Errors that only Python's compiler reports are left to the worker, where
    time and memory are bounded.
    """
    if "\0" in text:  # of which Python names no line
        line = text[:text.index("\0")].count("\n") + 1
        return Finding("P02", fault("NUL", line=line), line=line)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # they quote the file, to the judge's own output
            return syntax.shared(text)
    except SyntaxError as error:
        return Finding("P02", fault("syntax", line=error.lineno, column=error.offset,
                                    text=error.msg, quoted=_quoted(text, error)), error.lineno)
    except (RecursionError, MemoryError):
        return Finding("P02", fault("nested file"))
    except ValueError as error:
        return Finding("P02", fault("unparsable", text=str(error)))


def _quoted(text: str, error: SyntaxError) -> str:
    """The line, and a caret below the error, each on a line of its own; empty without a line."""
    lines = text.split("\n")
    if not error.lineno or error.lineno > len(lines):
        return ""
    line = lines[error.lineno - 1].expandtabs(4)[:90]
    indent = len(line) - len(line.lstrip())
    place = max(0, min((error.offset or 1) - 1, len(line)) - indent)
    return f"\n{line.strip()}\n{' ' * place}^"


def inspect(source: Source, signatures: Mapping[str, Signature], blanks: int) -> list[Finding]:
    """The finding that forbids a run: the first of P02, P01, P03, P04 that applies, if any.

    Args:
        signatures: of the functions that it has to define.
        blanks: how many the exercise starts with, 0 where it has none.
    """
    if source.problem or source.tree is None:
        return [source.problem] if source.problem else []
    tree = source.tree
    left = blanks_left_in(source.trees, blanks) if source.trees else \
        blanks_left(source.text, numbered_comments(source.text, "TODO"), tree, blanks)
    finding = left or _kernels(tree) or next(
        filter(None, (_signature(_defining(source, entry), entry, *signature)
                      for entry, signature in signatures.items())), None)
    if finding and finding.code == "P04" and source.trees:
        finding = replace(finding, line=None)  # it may be of another file than the kernels'
    return [finding] if finding else []


def _defining(source: Source, entry: str) -> ast.Module:
    """The file that defines a function, if there are several and one does."""
    assert source.tree is not None
    defining = (tree for tree in source.trees.values()
                if any(function.name == entry for function in functions(tree)))
    return next(defining, source.trees.get(KERNEL, source.tree))


# -- P03 and P04 --------------------------------------------------------------------------------


def _kernels(tree: ast.Module) -> Finding | None:
    nodes = list(ast.walk(tree))
    defined = {function.name: function for function in functions(tree)}
    jitted = {kernel.node.name for kernel in kernel_definitions(tree)}
    for node in nodes:
        match node:
            case ast.Call(func=ast.Subscript(value=ast.Name(name))) if (
                    name in defined and name not in jitted):
                return Finding("P03", fault("plain function", name=name), line=defined[name].lineno)
    imports_kernels = any(
        isinstance(node, ast.ImportFrom | ast.Import) for node in tree.body
    ) and any(isinstance(node, ast.Call) and is_jit(node) and node.args for node in nodes)
    if not jitted and not imports_kernels:
        return Finding("P03", fault("no kernels"))
    return None


def _signature(tree: ast.Module, entry: str, parameters: tuple[str, ...],
               keyword_only: tuple[str, ...]) -> Finding | None:
    asked = [*parameters, *(["*", *keyword_only] if keyword_only else [])]
    expected = f"{entry}({', '.join(asked)})"
    function = next((f for f in functions(tree) if f.name == entry), None)
    if function is None:
        # An alias or a decorated object: the call will show what it takes.
        return None if entry in bound_names(tree) else \
            Finding("P04", fault("no function", name=expected))
    arguments = function.args
    names = [a.arg for a in (*arguments.posonlyargs, *arguments.args)]
    by_name = {a.arg: default for a, default in zip(
        arguments.kwonlyargs, arguments.kw_defaults, strict=True)}
    required = names[: len(names) - len(arguments.defaults)]
    required += [name for name, default in by_name.items() if default is None]
    accepted = {*names[len(arguments.posonlyargs):], *by_name}
    if tuple(names[: len(parameters)]) != parameters or set(required) - set(asked) or (
            arguments.kwarg is None and not accepted.issuperset(keyword_only)):
        shown = ", ".join([*names, *(["*", *by_name] if by_name else [])])
        return Finding("P04", fault("signature", name=entry, parameters=shown, expected=expected),
                       line=function.lineno)
    return None
