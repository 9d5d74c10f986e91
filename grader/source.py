"""What can be known of a submission without running it: blanks, syntax, kernels, signature."""

from __future__ import annotations

import ast
import codecs
import hashlib
import io
import os
import re
import stat
import tokenize
import warnings
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from grader.report import Finding
from grader.words import ranges

MAX_BYTES = 1 << 20  # a kernel file of more than a mebibyte is no kernel file
MAX_SHOWN = 40  # blanks that are named by their numbers; no exercise has as many
_TODO = re.compile(r"#\s*TODO\s+(\d{1,4})\b")
# Strings are matched so that no comment is seen in one. What is not closed ends with its line or
# with the text: every alternative matches where it begins, so one pass over the text is enough.
_COMMENT = re.compile(
    r"""\'\'\'(?:\\.|.)*?(?:\'\'\'|\Z)|\"\"\"(?:\\.|.)*?(?:\"\"\"|\Z)"""
    r"""|'(?:\\.|[^\\\n'])*'?|"(?:\\.|[^\\\n"])*"?|(?P<comment>\#[^\n]*)""", re.DOTALL)
# Others run long (punycode), raise what they like (undefined) or say another thing than they show.
_ENCODINGS = re.compile(r"utf-8(-sig)?|ascii|iso8859-\d+|cp125\d")
_IMPORTED_NAMES = ("torch", "triton", "tl")


class UnreadableSubmission(OSError):
    """There is no file to grade: missing, a folder, a device, too large, or not permitted."""


@dataclass(frozen=True)
class Source:
    """One reading of a submission; everything later works on this text, not on the file."""

    text: str
    data: bytes
    sha256: str
    todos: dict[int, int]  # line -> number of its TODO comment, the lines in order
    problem: Finding | None = None  # P02: it does not parse
    tree: ast.Module | None = field(default=None, compare=False, repr=False)  # unless a problem


def read(path: Path) -> Source:
    """Read a submission once.

    Raises:
        UnreadableSubmission: the path is not a readable regular file of at most ``MAX_BYTES``.
    """
    data = _content(path)
    digest = hashlib.sha256(data).hexdigest()
    text = _decoded(data)
    if isinstance(text, Finding):
        return Source("", data, digest, {}, text)
    tree = _parsed(text)
    if isinstance(tree, Finding):
        return Source(text, data, digest, _todo_comments(text), tree)
    return Source(text, data, digest, _todo_comments(text), tree=tree)


def _decoded(data: bytes) -> str | Finding:
    encoding = "UTF-8"
    try:
        encoding, _ = tokenize.detect_encoding(io.BytesIO(data).readline)
        if not _ENCODINGS.fullmatch(codecs.lookup(encoding).name):
            return _other_encoding(encoding)
        return data.decode(encoding).replace("\r\n", "\n").replace("\r", "\n")
    except SyntaxError as error:
        _, unknown, name = str(error.msg).partition("unknown encoding: ")
        return _other_encoding(name) if unknown else Finding(
            "P02", "The file is not text in UTF-8.")
    except UnicodeDecodeError:
        return Finding("P02", f"The file is not text in {encoding.upper()}.")


def _other_encoding(name: str) -> Finding:
    return Finding("P02", f"The file declares the encoding `{name:.40}`; a kernel file is text in "
                          f"UTF-8.")


def _content(path: Path) -> bytes:
    """All bytes of a file. What was opened is looked at, so that nothing can take its place."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
        try:
            status = os.fstat(descriptor)
            if stat.S_ISDIR(status.st_mode):
                raise UnreadableSubmission(f"{path} is a folder, not a kernel file.")
            if not stat.S_ISREG(status.st_mode):
                raise UnreadableSubmission(f"{path} is not a regular file.")
            with open(descriptor, "rb", closefd=False) as file:
                data = file.read(MAX_BYTES + 1)  # it may be growing
        finally:
            os.close(descriptor)
    except UnreadableSubmission:
        raise
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise UnreadableSubmission(f"{path} cannot be read: {reason}.") from error
    if len(data) > MAX_BYTES:
        size = f"{max(status.st_size, len(data)) / 1e6:.1f} MB"
        raise UnreadableSubmission(f"{path} has {size}; a kernel file may have 1 MiB.")
    return data


def _parsed(text: str) -> ast.Module | Finding:
    """The syntax tree. What only a compiler finds is left to the process that imports the file:
    there, time and memory are bounded.
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # they quote the file, to the judge's own output
            return ast.parse(text, "kernel.py")
    except SyntaxError as error:
        return Finding("P02", syntax_message(text, error), line=error.lineno)
    except (RecursionError, MemoryError):
        return Finding("P02", "Python cannot parse the file: it is nested too deeply.")
    except ValueError as error:
        return Finding("P02", f"Python cannot parse the file: {error}.")


def syntax_message(text: str, error: SyntaxError) -> str:
    """What Python says, the line, and a caret under the place."""
    lines = text.split("\n")
    column = f", column {error.offset}" if error.offset else ""
    message = f"Python cannot parse line {error.lineno}{column}: {error.msg}."
    if error.lineno and error.lineno <= len(lines):
        line = lines[error.lineno - 1].expandtabs(4)[:90]
        indent = len(line) - len(line.lstrip())
        place = max(0, min((error.offset or 1) - 1, len(line)) - indent)
        message += f"\n{line.strip()}\n{' ' * place}^"
    return message


def _todo_comments(text: str) -> dict[int, int]:
    found: dict[int, int] = {}
    line = end = 0
    if not _TODO.search(text):
        return found
    for match in _COMMENT.finditer(text):
        if match["comment"] and (todo := _TODO.search(match["comment"])):
            line += text.count("\n", end, match.start())
            end = match.start()
            found[line + 1] = int(todo[1])
    return found


def inspect(source: Source, entry: str, parameters: tuple[str, ...], blanks: int) -> list[Finding]:
    """Findings that forbid a run, the first of P02, P01, P03, P04 that applies.

    ``blanks`` is the number of blanks that the exercise starts with, 0 where it has none.
    """
    if source.problem or source.tree is None:
        return [source.problem] if source.problem else []
    tree = source.tree
    nodes = _nodes(tree)
    finding = (_blanks(source, tree, nodes, blanks) or _kernels(tree, nodes)
               or _signature(tree, entry, parameters))
    return [finding] if finding else []


def _nodes(tree: ast.AST) -> list[ast.AST]:
    """All nodes. However deep they are nested, nothing recurs."""
    found = [tree]
    for node in found:  # it grows meanwhile
        for value in vars(node).values():
            if isinstance(value, ast.AST):
                found.append(value)
            elif isinstance(value, list):
                found += [item for item in value if isinstance(item, ast.AST)]
    return found


# ---------------------------------------------------------------------------------------------
# P01: blanks that are left


def _blanks(source: Source, tree: ast.Module, nodes: Sequence[ast.AST],
            total: int) -> Finding | None:
    numbered: dict[int, int] = {}  # TODO number -> line
    unnumbered: list[int] = []
    lines = source.text.split("\n")
    marked = list(source.todos)
    for function in _functions(tree) if "..." in source.text else ():
        for line, statement in _ellipses(function):
            number = _number_of(source.todos, marked, lines, line, statement)
            if number is None:
                unnumbered.append(line)
            else:
                numbered.setdefault(number, line)
    numbered.update(_missing_setup(source.todos, lines, tree, nodes))
    count = len(numbered) + len(unnumbered)
    if not count:
        return None
    first = min([*numbered.values(), *unnumbered])
    seen = f"{_left(count, total)}: {_places(numbered, unnumbered)}."
    return Finding("P01", seen, line=first, todos=tuple(sorted(numbered)[:MAX_SHOWN]))


def _left(count: int, total: int) -> str:
    if count <= total:
        return f"{count} of {total} blanks {'is' if count == 1 else 'are'} left"
    return "1 blank is left" if count == 1 else f"{count} blanks are left"


def _places(numbered: dict[int, int], unnumbered: list[int]) -> str:
    places = []
    if numbered:
        more = " and more" if len(numbered) > MAX_SHOWN else ""
        places.append(f"TODO {ranges(sorted(numbered)[:MAX_SHOWN])}{more}")
    if unnumbered:
        places.append("`...` in line " + ", ".join(str(line) for line in sorted(unnumbered)[:8]))
    return " and ".join(places)


def _ellipses(function: ast.FunctionDef) -> list[tuple[int, ast.stmt]]:
    """Every ``...`` that stands for code, as (line, statement), in order.

    ``x[..., 0]`` and ``x[...] = 0`` are indices; in ``kernel[...](x)`` the grid is a blank.
    """
    found: list[tuple[int, ast.stmt]] = []
    left: list[tuple[ast.AST, ast.stmt]] = [(function, function)]
    while left:
        node, statement = left.pop()
        if isinstance(node, ast.stmt):
            statement = node
        children = list(ast.iter_child_nodes(node))
        if isinstance(node, ast.Subscript):
            parts = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
            children = [node.value, *(p for p in parts if not isinstance(p, ast.Constant))]
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Subscript):
            grid = node.func.slice
            children += [grid] if isinstance(grid, ast.Constant) else []
        elif isinstance(node, ast.Constant) and node.value is Ellipsis:
            found.append((node.lineno, statement))
        left += [(child, statement) for child in children]
    return sorted(found, key=lambda blank: blank[0])


def _number_of(todos: dict[int, int], marked: Sequence[int], lines: Sequence[str], line: int,
               statement: ast.stmt) -> int | None:
    """The TODO number beside a blank: on its line, else in its statement, else alone above it.

    ``marked`` are the lines of ``todos``.
    """
    if line in todos:
        return todos[line]
    if not isinstance(statement, ast.FunctionDef):
        place = bisect_left(marked, statement.lineno)
        if place < len(marked) and marked[place] <= (statement.end_lineno or line):
            return todos[marked[place]]
    above = lines[line - 2].strip() if line >= 2 else ""
    return todos.get(line - 1) if above.startswith("#") else None


def _missing_setup(todos: dict[int, int], lines: Sequence[str], tree: ast.Module,
                   nodes: Sequence[ast.AST]) -> dict[int, int]:
    """TODO number -> line of the comments at module level whose import or decorator is missing."""
    alone = [line for line in todos if lines[line - 1].startswith("#")]
    missing: dict[int, int] = {}
    above = 0  # the line of the statement before
    for node in tree.body:
        if isinstance(node, ast.FunctionDef) and not node.decorator_list:
            place = bisect_left(alone, node.lineno) - 1
            if place >= 0 and alone[place] >= above:
                missing[todos[alone[place]]] = alone[place]
        above = node.lineno
    taken = set(missing.values())
    rest = [line for line in alone if line not in taken]
    used = {node.id for node in nodes if isinstance(node, ast.Name)} if rest else set()
    if used.intersection(_IMPORTED_NAMES) - _bound_names(tree):
        missing[todos[rest[0]]] = rest[0]
    return missing


def _bound_names(tree: ast.Module) -> set[str]:
    bound = set()
    for node in tree.body:
        for inner in ast.walk(node) if isinstance(node, ast.Try | ast.If) else [node]:
            if isinstance(inner, ast.Import | ast.ImportFrom):
                bound |= {(a.asname or a.name).split(".")[0] for a in inner.names}
            elif isinstance(inner, ast.Assign):
                bound |= {t.id for t in inner.targets if isinstance(t, ast.Name)}
    return bound


# ---------------------------------------------------------------------------------------------
# P03 and P04


def _kernels(tree: ast.Module, nodes: Sequence[ast.AST]) -> Finding | None:
    functions = {function.name: function for function in _functions(tree)}
    jitted = {name for name, function in functions.items() if is_kernel(function)}
    for node in nodes:
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Subscript):
            launched = node.func.value
            if (
                isinstance(launched, ast.Name)
                and launched.id in functions
                and launched.id not in jitted
            ):
                seen = f"`{launched.id}` is launched with [grid] and is a plain Python function."
                return Finding("P03", seen, line=functions[launched.id].lineno)
    imports_kernels = any(
        isinstance(node, ast.ImportFrom | ast.Import) for node in tree.body
    ) and any(is_jit_call(node) for node in nodes)
    if not jitted and not imports_kernels:
        return Finding("P03", "No function of the file is decorated with `@triton.jit`.")
    return None


def is_kernel(function: ast.FunctionDef) -> bool:
    """Whether one of the decorators is Triton's ``jit``, called or not."""
    return any(is_jit(decorator) for decorator in function.decorator_list)


def is_jit(decorator: ast.expr) -> bool:
    target = decorator.func if isinstance(decorator, ast.Call) else decorator
    name = target.attr if isinstance(target, ast.Attribute) else getattr(target, "id", "")
    return name == "jit"


def is_jit_call(node: ast.AST) -> bool:
    """``kernel = triton.jit(function)``."""
    return isinstance(node, ast.Call) and is_jit(node) and bool(node.args)


def _signature(tree: ast.Module, entry: str, parameters: tuple[str, ...]) -> Finding | None:
    expected = f"{entry}({', '.join(parameters)})"
    function = next((f for f in _functions(tree) if f.name == entry), None)
    if function is None:
        bound = _bound_names(tree)
        if entry in bound:
            return None  # an alias or a decorated object; the call will show what it takes
        return Finding("P04", f"The file defines no function `{expected}`.")
    arguments = function.args
    names = [a.arg for a in (*arguments.posonlyargs, *arguments.args)]
    required = len(names) - len(arguments.defaults)
    extra_required = [
        a.arg for a, default in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True)
        if default is None
    ]
    required += len(extra_required)
    if tuple(names[: len(parameters)]) != parameters or required > len(parameters):
        shown = ", ".join([*names, *extra_required])
        seen = f"`{entry}` takes ({shown}); the module asks for `{expected}`."
        return Finding("P04", seen, line=function.lineno)
    return None


def _functions(tree: ast.Module) -> list[ast.FunctionDef]:
    return [node for node in tree.body if isinstance(node, ast.FunctionDef)]
