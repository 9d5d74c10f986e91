"""What can be known of a submission without running it: blanks, syntax, kernels, signature."""

from __future__ import annotations

import ast
import hashlib
import io
import os
import re
import stat
import tokenize
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from grader.report import Finding
from grader.words import ranges

MAX_BYTES = 1 << 20  # a kernel file of more than a mebibyte is no kernel file
_TODO = re.compile(r"#\s*TODO\s+(\d+)\b")
_IMPORTED_NAMES = ("torch", "triton", "tl")


class UnreadableSubmission(OSError):
    """There is no file to grade: missing, a folder, a device, too large, or not permitted."""


@dataclass(frozen=True)
class Source:
    """One reading of a submission; everything later works on this text, not on the file."""

    text: str
    data: bytes
    sha256: str
    todos: dict[int, int]  # line -> number of its TODO comment
    problem: Finding | None = None  # P02: it does not parse


def read(path: Path) -> Source:
    """Read a submission once.

    Raises:
        UnreadableSubmission: the path is not a readable regular file of at most ``MAX_BYTES``.
    """
    data = _content(path)
    digest = hashlib.sha256(data).hexdigest()
    try:
        encoding, _ = tokenize.detect_encoding(io.BytesIO(data).readline)
        text = data.decode(encoding).replace("\r\n", "\n").replace("\r", "\n")
    except (SyntaxError, UnicodeDecodeError, LookupError):
        return Source("", data, digest, {}, Finding("P02", "The file is not text in UTF-8."))
    return Source(text, data, digest, _todo_comments(text), _syntax_problem(text))


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


def _syntax_problem(text: str) -> Finding | None:
    try:
        compile(text, "kernel.py", "exec", dont_inherit=True)  # nothing of it runs
    except SyntaxError as error:
        return Finding("P02", syntax_message(text, error), line=error.lineno)
    except (ValueError, RecursionError, MemoryError) as error:
        return Finding("P02", f"Python cannot parse the file: {error}.")
    return None


def syntax_message(text: str, error: SyntaxError) -> str:
    """What Python says, the line, and a caret under the place."""
    lines = text.splitlines()
    column = f", column {error.offset}" if error.offset else ""
    message = f"Python cannot parse line {error.lineno}{column}: {error.msg}."
    if error.lineno and error.lineno <= len(lines):
        line = lines[error.lineno - 1].expandtabs(4)[:90]
        indent = len(line) - len(line.lstrip())
        place = max(0, min((error.offset or 1) - 1, len(line)) - indent)
        message += f"\n{line.strip()}\n{' ' * place}^"
    return message


def _todo_comments(text: str) -> dict[int, int]:
    found = {}
    try:
        for token in tokenize.generate_tokens(io.StringIO(text).readline):
            if token.type == tokenize.COMMENT and (match := _TODO.search(token.string)):
                found[token.start[0]] = int(match[1])
    except (tokenize.TokenError, SyntaxError):
        pass  # half a file: the comments before the fault are enough
    return found


def inspect(source: Source, entry: str, parameters: tuple[str, ...], blanks: int) -> list[Finding]:
    """Findings that forbid a run, the first of P02, P01, P03, P04 that applies.

    ``blanks`` is the number of blanks that the exercise starts with, 0 where it has none.
    """
    if source.problem:
        return [source.problem]
    tree = ast.parse(source.text)
    finding = _blanks(source, tree, blanks) or _kernels(tree) or _signature(tree, entry, parameters)
    return [finding] if finding else []


# ---------------------------------------------------------------------------------------------
# P01: blanks that are left


def _blanks(source: Source, tree: ast.Module, total: int) -> Finding | None:
    numbered: dict[int, int] = {}  # TODO number -> line
    unnumbered: list[int] = []
    for function in _functions(tree):
        for line, statement in _ellipses(function):
            number = _number_of(source, line, statement)
            if number is None:
                unnumbered.append(line)
            else:
                numbered.setdefault(number, line)
    numbered.update(_missing_setup(source, tree))
    count = len(numbered) + len(unnumbered)
    if not count:
        return None
    of_all = f"{count} of {total}" if total else f"{count}"
    left = f"{of_all} {'blank is' if count == 1 else 'blanks are'} left"
    places = [f"TODO {ranges(sorted(numbered))}"] if numbered else []
    if unnumbered:
        places.append("`...` in line " + ", ".join(str(line) for line in sorted(unnumbered)[:8]))
    first = min([*numbered.values(), *unnumbered])
    seen = f"{left}: {' and '.join(places)}."
    return Finding("P01", seen, line=first, todos=tuple(sorted(numbered)))


class _Ellipses(ast.NodeVisitor):
    """Collects every ``...`` that stands for code; ``x[..., 0]`` and ``x[...] = 0`` are indices."""

    def __init__(self) -> None:
        self.found: list[tuple[int, ast.stmt]] = []
        self._statement: ast.stmt | None = None

    def visit(self, node: ast.AST) -> None:
        outer = self._statement
        if isinstance(node, ast.stmt):
            self._statement = node
        super().visit(node)
        self._statement = outer

    def visit_Constant(self, node: ast.Constant) -> None:
        if node.value is Ellipsis and self._statement is not None:
            self.found.append((node.lineno, self._statement))

    def visit_Subscript(self, node: ast.Subscript) -> None:
        self.visit(node.value)
        parts = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
        for part in parts:
            if not isinstance(part, ast.Constant):
                self.visit(part)

    def visit_Call(self, node: ast.Call) -> None:
        if isinstance(node.func, ast.Subscript) and isinstance(node.func.slice, ast.Constant):
            self.visit_Constant(node.func.slice)  # kernel[...](x): the grid is a blank
        self.generic_visit(node)


def _ellipses(function: ast.FunctionDef) -> list[tuple[int, ast.stmt]]:
    visitor = _Ellipses()
    visitor.visit(function)
    return visitor.found


def _number_of(source: Source, line: int, statement: ast.stmt) -> int | None:
    """The TODO number beside a blank: on its line, else in its statement, else alone above it."""
    if line in source.todos:
        return source.todos[line]
    for candidate in range(statement.lineno, (statement.end_lineno or line) + 1):
        if candidate in source.todos and not isinstance(statement, ast.FunctionDef):
            return source.todos[candidate]
    above = source.text.splitlines()[line - 2].strip() if line >= 2 else ""
    return source.todos.get(line - 1) if above.startswith("#") else None


def _missing_setup(source: Source, tree: ast.Module) -> dict[int, int]:
    """TODO number -> line of the comments at module level whose import or decorator is missing."""
    lines = source.text.splitlines()
    alone = [line for line in source.todos if lines[line - 1].startswith("#")]
    missing: dict[int, int] = {}
    for function in _functions(tree):
        above = [n for n in alone if n < function.lineno and _nothing_between(tree, n, function)]
        if above and not function.decorator_list:
            missing[source.todos[max(above)]] = max(above)
    used = {name for name in _IMPORTED_NAMES if _used_anywhere(tree, name)}
    rest = [line for line in alone if line not in missing.values()]
    if rest and used - _bound_names(tree):
        missing[source.todos[rest[0]]] = rest[0]
    return missing


def _nothing_between(tree: ast.Module, line: int, function: ast.FunctionDef) -> bool:
    return not any(line < node.lineno < function.lineno for node in tree.body)


def _bound_names(tree: ast.Module) -> set[str]:
    bound = set()
    for node in tree.body:
        for inner in ast.walk(node) if isinstance(node, ast.Try | ast.If) else [node]:
            if isinstance(inner, ast.Import | ast.ImportFrom):
                bound |= {(a.asname or a.name).split(".")[0] for a in inner.names}
            elif isinstance(inner, ast.Assign):
                bound |= {t.id for t in inner.targets if isinstance(t, ast.Name)}
    return bound


def _used_anywhere(tree: ast.Module, name: str) -> bool:
    return any(isinstance(node, ast.Name) and node.id == name for node in ast.walk(tree))


# ---------------------------------------------------------------------------------------------
# P03 and P04


def _kernels(tree: ast.Module) -> Finding | None:
    functions = {function.name: function for function in _functions(tree)}
    jitted = {name for name, function in functions.items() if is_kernel(function)}
    for node in ast.walk(tree):
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
    ) and any(is_jit_call(node) for node in ast.walk(tree))
    if not jitted and not imports_kernels:
        inside = next((node for node in ast.walk(tree)
                       if isinstance(node, ast.FunctionDef) and is_kernel(node)), None)
        if inside is not None:
            seen = (f"`{inside.name}` is decorated with `@triton.jit` inside a class, a function "
                    f"or a branch; kernels are taken from the top level of the file.")
            return Finding("P03", seen, line=inside.lineno)
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
    """Those at the top of the file; what ``typing.overload`` declares has no body to fill in."""
    return [node for node in tree.body if isinstance(node, ast.FunctionDef)
            and not any(ast.unparse(d).endswith("overload") for d in node.decorator_list)]


def module_level(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    """Statements at the top of a file; of ``try`` and ``if``, the first branch."""
    for node in body:
        if isinstance(node, ast.Try | ast.If):
            yield from module_level(node.body)
        else:
            yield node
