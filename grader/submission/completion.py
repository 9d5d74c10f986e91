"""Completes an exercise: code of its solution in place of the blanks that are left."""

import ast
import builtins
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

from grader.submission import syntax
from grader.submission.placeholders import bound_names, ellipses, missing_setup
from grader.submission.todo_regions import numbered_comments, places, regions

_UNWRITTEN = "raise NotImplementedError"  # in a function whose whole body is a blank
_IMPORTS = "imports"  # what their blank has for a function


class NotCompletable(ValueError):
    """A file is not the exercise with some of its blanks filled in."""


@dataclass(frozen=True)
class Blank:
    """A blank of an exercise and the code that its solution has there, on one line.

    ``function`` contains it; ``names`` are those that its statement gives values; ``depth`` counts
    the statements around it. ``number`` is that of its TODO comment, None for a whole body.
    """

    function: str
    number: int | None
    line: str  # of the exercise, without the spaces around it
    head: str  # of its statement
    names: frozenset[str]
    depth: int
    code: str


@dataclass(frozen=True)
class Completed:
    """A file without blanks, whose lines have the numbers of the learner's.

    ``lines`` map those that are not the learner's to their code. ``left`` are the blanks that the
    learner has not filled in.
    """

    text: str
    lines: Mapping[int, str]
    left: tuple[Blank, ...]


@lru_cache(maxsize=4)
def blanks_of(exercise: str, solution: str) -> tuple[Blank, ...]:
    """The blanks of an exercise with the solution's code, in order.

    Raises:
        NotCompletable: the solution is not the exercise with its blanks filled in.
    """
    blanked, full = _parsed(exercise), _parsed(solution)
    comments = numbered_comments(exercise, "TODO")
    numbers, written = regions(blanked, exercise, comments), exercise.split("\n")
    solved = dict(_functions(full))
    blanks: list[Blank] = []
    for number, line in missing_setup(comments, written, blanked).items():
        below = _function_below(blanked, written, line)
        code = _decorators(solved, below) if below else _imports(full)
        blanks.append(Blank(below or _IMPORTS, number, written[line - 1].strip(), "", frozenset(),
                            0, code))
    for name, function in _functions(blanked):
        if not ellipses(function):
            continue
        if _is_unwritten(function):
            blanks.append(Blank(name, None, "...", "...", frozenset(), 1, _UNWRITTEN))
            continue
        if name not in solved:
            raise NotCompletable(f"the solution defines no `{name}`")
        for statement, depth, run in _aligned(_body(function), _body(solved[name]), 1, name):
            line = statement.lineno
            if line not in numbers:
                raise NotCompletable(f"a blank has no TODO comment: `{written[line - 1].strip()}`")
            blanks.append(Blank(name, numbers[line], written[line - 1].strip(), _head(statement),
                                _stored(statement), depth, _one_line(run)))
    return tuple(blanks)


def complete(text: str, exercise: str, solution: str,
             keep: Collection[int] | None = None) -> Completed:
    """Completes a learner's file.

    Args:
        text: of the file.
        exercise: what the learner began with.
        solution: that the exercise was made from.
        keep: the TODO numbers whose code stays the learner's; all without it.

    Raises:
        NotCompletable: a blank that is left is none of the exercise, or code of the solution reads
            a name that the file does not give a value.
    """
    tree, blanks = _parsed(text), blanks_of(exercise, solution)
    written = text.split("\n")
    codes: dict[int, str] = {}  # line -> code
    left: list[Blank] = []
    gone: set[int] = set()  # further lines of what was replaced
    for blank, line in _left(tree, text, written, blanks):
        left.append(blank)
        codes[line] = blank.code
    if keep is not None:
        others = [blank for blank in blanks if blank not in left
                  and blank.number is not None and blank.number not in keep]
        for blank, lines in _filled(tree, text, exercise, others):
            if gone.union(codes).intersection(lines):
                raise NotCompletable("two statements share a line")
            codes[lines[0]] = blank.code
            gone.update(lines[1:])
    completed = list(written)
    for line in gone:
        completed[line - 1] = ""
    for line, code in codes.items():
        old = written[line - 1]
        comment = numbered_comments(old) and old[old.index("#"):]
        indent = old[:len(old) - len(old.lstrip())]
        completed[line - 1] = f"{indent}{code}{f'  {comment}' if comment else ''}"
    result = "\n".join(completed)
    _check_names(_parsed(result), codes)
    return Completed(result, codes | dict.fromkeys(gone, ""), tuple(left))


def _parsed(text: str) -> ast.Module:
    try:
        return syntax.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise NotCompletable(f"it cannot be parsed: {error}") from None


# -- the exercise beside its solution ------------------------------------------------------------


def _functions(tree: ast.Module) -> Iterator[tuple[str, ast.FunctionDef]]:
    """Functions and methods by their qualified names."""
    for node in tree.body:
        if isinstance(node, ast.FunctionDef):
            yield node.name, node
        elif isinstance(node, ast.ClassDef):
            yield from ((f"{node.name}.{one.name}", one) for one in node.body
                        if isinstance(one, ast.FunctionDef))


def _body(function: ast.FunctionDef) -> list[ast.stmt]:
    """The statements of a function without its docstring."""
    return function.body[ast.get_docstring(function) is not None:]


def _is_unwritten(function: ast.FunctionDef) -> bool:
    return [ast.unparse(statement) for statement in _body(function)] == ["..."]


def _inner(statement: ast.stmt) -> list[list[ast.stmt]]:
    """The blocks of a compound statement."""
    return [block for name in ("body", "orelse", "finalbody")
            if (block := getattr(statement, name, None))]


def _head(statement: ast.stmt) -> str:
    """The code of a simple statement, or the first line of a compound one."""
    code = ast.unparse(statement)
    return code.partition("\n")[0] if _inner(statement) else code


def _is_blank(statement: ast.stmt) -> bool:
    """Whether a statement has a blank, inner statements left out."""
    parts = [child for child in ast.iter_child_nodes(statement) if isinstance(child, ast.expr)] \
        if _inner(statement) else [statement]
    return any(map(ellipses, parts))


def _stored(statement: ast.stmt) -> frozenset[str]:
    """The names that a statement gives values; of an ``if``, those that all of it does."""
    nodes: list[ast.AST] = [statement.target] if isinstance(statement, ast.For) else [statement]
    return frozenset(node.id for one in nodes for node in ast.walk(one)
                     if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store))


_Aligned = list[tuple[ast.stmt, int, list[ast.stmt]]]


def _aligned(blanked: Sequence[ast.stmt], full: Sequence[ast.stmt], depth: int,
             name: str) -> _Aligned:
    """Each blank of a block, how deep it is, and the statements that it stands for.

    A blank stands for as few statements as possible, the last of which does what the blank does.
    """
    aligned = _match(tuple(blanked), tuple(full), depth)
    if aligned is None:
        raise NotCompletable(f"`{name}` of the solution is not that of the exercise with its "
                             "blanks filled in")
    return aligned


def _match(blanked: tuple[ast.stmt, ...], full: tuple[ast.stmt, ...],
           depth: int) -> _Aligned | None:
    if not blanked:
        return None if full else []
    first, *others = blanked
    is_blank = _is_blank(first)
    for count in range(1, (len(full) if is_blank else min(len(full), 1)) + 1):
        last = full[count - 1]
        if not (_does_the_same(first, last) if is_blank else _head(first) == _head(last)):
            continue
        own: _Aligned = [(first, depth, list(full[:count]))] if is_blank else []
        ours, theirs = _inner(first), _inner(last) if _inner(first) else []
        inner = [_match(tuple(one), tuple(other), depth + 1)
                 for one, other in zip(ours, theirs, strict=False)]
        if len(ours) != len(theirs) or (ours and count > 1) or None in inner:
            continue
        rest = _match(tuple(others), full[count:], depth)
        if rest is not None:
            return [*own, *(one for block in inner if block for one in block), *rest]
    return None


def _does_the_same(blank: ast.stmt, statement: ast.stmt) -> bool:
    """Whether a statement of the solution can be what a blank asks for."""
    if names := _stored(blank):
        kinds = (type(blank),) if _inner(blank) else (
            ast.Assign, ast.AnnAssign, ast.AugAssign, ast.If)
        return isinstance(statement, kinds) and names == _stored(statement)
    return type(blank) is type(statement)


def _one_line(run: Sequence[ast.stmt]) -> str:
    """Statements as one line of code; of a compound one with blanks in its head, the head.

    Raises:
        NotCompletable: one of them takes several lines.
    """
    parts = [ast.unparse(_conditional(one)) if isinstance(one, ast.If) and len(run) == 1 and
             one.orelse else _head(one) for one in run]
    if any("\n" in part for part in parts) or (len(run) > 1 and any(map(_inner, run))):
        raise NotCompletable(f"a blank stands for several lines: `{parts[0]}`")
    return "; ".join(parts)


def _conditional(choice: ast.If) -> ast.stmt:
    """``if a: x = 1`` with ``else: x = 2`` as ``x = 1 if a else 2``."""
    values = []
    for block in (choice.body, choice.orelse):
        one = _conditional(block[0]) if isinstance(block[0], ast.If) else block[0]
        if len(block) != 1 or not isinstance(one, ast.Assign):
            raise NotCompletable(f"a blank stands for several lines: `{_head(choice)}`")
        values.append(one)
    if len({ast.unparse(target) for one in values for target in one.targets}) != 1:
        raise NotCompletable(f"a blank stands for several lines: `{_head(choice)}`")
    both = ast.IfExp(choice.test, values[0].value, values[1].value)
    return ast.Assign(values[0].targets, both, lineno=choice.lineno)


def _function_below(tree: ast.Module, written: Sequence[str], line: int) -> str:
    """The function that begins behind a line and the comments below it; empty if none does."""
    while line < len(written) and written[line].startswith("#"):
        line += 1
    return next((one.name for one in syntax.functions(tree) if one.lineno == line + 1), "")


def _imports(full: ast.Module) -> str:
    return "; ".join(ast.unparse(node) for node in full.body if isinstance(node, ast.Import) or (
        isinstance(node, ast.ImportFrom) and node.module != "__future__"))


def _decorators(solved: Mapping[str, ast.FunctionDef], name: str) -> str:
    decorators = solved[name].decorator_list if name in solved else []
    if len(decorators) != 1:
        raise NotCompletable(f"`{name}` of the solution does not have one decorator")
    return f"@{ast.unparse(decorators[0])}"


# -- the learner's file beside the exercise ------------------------------------------------------


def _left(tree: ast.Module, text: str, written: Sequence[str],
          blanks: Sequence[Blank]) -> Iterator[tuple[Blank, int]]:
    """The blanks that are left and their lines: those of the exercise with the same line."""
    comments = numbered_comments(text, "TODO")
    setup = {blank.number: blank for blank in blanks if not blank.head}
    for number, line in missing_setup(comments, written, tree).items():
        if number not in setup:
            raise NotCompletable(f"TODO {number} is another one in the exercise")
        yield setup[number], line
    for name, function in _functions(tree):
        own = [blank for blank in blanks if blank.function == name and blank.head]
        remaining = [one for one in ast.walk(function) if isinstance(one, ast.stmt)
                     and one is not function and _is_blank(one)]
        if len(remaining) != len({one.lineno for one in remaining}):
            raise NotCompletable("two blanks share a line")
        groups: dict[str, list[ast.stmt]] = defaultdict(list)
        for one in sorted(remaining, key=lambda one: one.lineno):
            groups[" ".join(written[one.lineno - 1].split())].append(one)
        for line_text, statements in groups.items():
            alike = [blank for blank in own if " ".join(blank.line.split()) == line_text] or \
                [blank for blank in own if blank.head == _head(statements[0])]
            if len(alike) != len(statements) or any(map(_is_long, statements)):
                raise NotCompletable(f"line {statements[0].lineno} is not a blank of the exercise")
            yield from zip(alike, (one.lineno for one in statements), strict=True)


def _is_long(statement: ast.stmt) -> bool:
    return not _inner(statement) and syntax.last_line(statement) != statement.lineno


def _filled(tree: ast.Module, text: str, exercise: str,
            blanks: Sequence[Blank]) -> Iterator[tuple[Blank, list[int]]]:
    """Blanks that were filled in, and the lines of the statement that stands there now."""
    numbers = places(tree, text, numbered_comments(text), exercise).lines
    functions = dict(_functions(tree))
    statements = {name: list(_nested(function.body, 1)) for name, function in functions.items()}
    groups: dict[tuple[str, int | None, frozenset[str], int], list[Blank]] = defaultdict(list)
    for blank in blanks:
        groups[blank.function, blank.number, blank.names, blank.depth].append(blank)
    for (name, number, names, depth), alike in groups.items():
        if name == _IMPORTS:
            imports = [one for one in tree.body if isinstance(one, ast.Import | ast.ImportFrom)]
            lines = [list(syntax.lines_of(imports[-1]))] if imports else []
            own = "; ".join(map(ast.unparse, imports[-1:]))
            future = own.startswith("from __future__")
            alike = [Blank(name, number, "", "", names, 0, f"{own}; {alike[0].code}")] \
                if not future else []
        elif not alike[0].head:
            decorators = functions[name].decorator_list if name in functions else []
            lines = [[line for one in decorators for line in syntax.lines_of(one)]]
        else:
            is_head = alike[0].head.endswith(":")
            lines = [_lines_of(one, is_head) for one, deep in statements.get(name, ())
                     if deep == depth and number in _numbers_of(one, numbers, is_head)
                     and _stored(one) == names]
            if len(alike) == 1:
                lines = [[line for one in lines for line in one]]
        if len(lines) != len(alike) or not all(lines):
            raise NotCompletable(f"TODO {number} is filled in with another number of statements")
        yield from zip(alike, lines, strict=True)


def _nested(block: Sequence[ast.stmt], depth: int) -> Iterator[tuple[ast.stmt, int]]:
    for statement in block:
        yield statement, depth
        for inner in _inner(statement):
            yield from _nested(inner, depth + 1)


def _numbers_of(statement: ast.stmt, numbers: Mapping[int, int], is_head: bool) -> set[int | None]:
    """The TODO numbers of a statement; of all in it unless its head alone is meant."""
    if is_head or not _inner(statement):
        return {numbers.get(statement.lineno)}
    return {numbers[line] for line in syntax.lines_of(statement) if line in numbers}


def _lines_of(statement: ast.stmt, is_head: bool) -> list[int]:
    """The lines of a statement, or of its head alone."""
    inner = _inner(statement)
    if is_head and inner and inner[0][0].lineno == statement.lineno:
        raise NotCompletable(f"line {statement.lineno} has several statements")
    return [statement.lineno] if is_head else list(syntax.lines_of(statement))


def _check_names(tree: ast.Module, codes: Mapping[int, str]) -> None:
    """Raises NotCompletable if code of the solution reads a name that nothing gives a value."""
    outside = bound_names(tree) | {one.name for one in tree.body if isinstance(
        one, ast.FunctionDef | ast.ClassDef)} | {*vars(builtins)}
    for _, function in _functions(tree):
        names = [one for one in ast.walk(function) if isinstance(one, ast.Name)]
        inside = {one.id for one in names if isinstance(one.ctx, ast.Store)}
        missing = {one.id for one in names if one.lineno in codes and one.id not in outside | inside
                   | {*syntax.parameter_names(function)}}
        if missing:
            raise NotCompletable(f"`{min(missing)}` is a name of the exercise that the file does "
                                 "not have")
