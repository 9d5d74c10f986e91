"""Maps a line to its TODO, by the comments of file or exercise."""

import ast
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache

from grader.submission import syntax

IMPORTED = ("torch", "triton", "tl", "libdevice")  # what the names are that exercises import

_NUMBERED = re.compile(r"#\s*(?P<word>TODO|DECIDE)\s+(?P<number>\d{1,4})\b")
# Strings are matched so that no comment is seen in one. What is not closed ends with its line or
# with the text: every alternative matches where it begins, so one pass over the text is enough.
_COMMENT = re.compile(
    r"""\'\'\'(?:\\.|.)*?(?:\'\'\'|\Z)|\"\"\"(?:\\.|.)*?(?:\"\"\"|\Z)"""
    r"""|'(?:\\.|[^\\\n'])*'?|"(?:\\.|[^\\\n"])*"?|(?P<comment>\#[^\n]*)""", re.DOTALL)


@dataclass(frozen=True)
class Places:
    """The numbered places of a submission: ``lines`` maps lines to them.

    ``imports`` is the number of the place that asks for imports, where there is one. ``near`` maps
    lines without a place to a decision before them, where nothing better is known.
    """

    lines: Mapping[int, int] = field(default_factory=dict)
    imports: int | None = None
    near: Mapping[int, int] = field(default_factory=dict)


def places(tree: ast.Module | None, text: str, comments: Mapping[int, int],
           exercise: str = "") -> Places:
    """The places of a file.

    Args:
        tree: of the file; None where it has none.
        text: of the file.
        comments: line -> number of its TODO or DECIDE comments.
        exercise: the file that the learner began with. A statement whose comment is gone belongs to
            the place that gave the same name a value there, or stood at the same point.
    """
    if tree is None:
        return Places(comments)
    lines = regions(tree, text, comments)
    start = _start(exercise)
    gone = {start.imports}.union(*start.places.values()) - {*comments.values()}
    for line, number in start.belonging(tree, text):
        if number in gone:
            lines.setdefault(line, number)
    for line, number in list(start.following(tree, text, lines)):
        lines.setdefault(line, number)
    for line, number in list(start.helping(tree, text, lines)):
        lines.setdefault(line, number)
    return Places(lines, start.imports or _imports(tree, text, comments),
                  dict(start.decided(tree, lines, comments)))


def numbered_comments(text: str, *words: str) -> dict[int, int]:
    """Line -> number of the comments ``# TODO n: …`` and ``# DECIDE n: …``, or of one such word."""
    comments: dict[int, int] = {}
    line = end = 0
    if not _NUMBERED.search(text):
        return comments
    for match in _COMMENT.finditer(text):
        numbered = match["comment"] and _NUMBERED.search(match["comment"])
        if numbered and (not words or numbered["word"] in words):
            line += text.count("\n", end, match.start())
            end = match.start()
            comments[line + 1] = int(numbered["number"])
    return comments


def regions(tree: ast.Module, text: str, comments: Mapping[int, int]) -> dict[int, int]:
    """Line -> number of all lines of statements with such a comment in them or alone above them.

    Of a statement with a body, a comment in its head stands for the head alone, and one above it
    for every line without a number of its own; above a function, it stands for decorators and head.
    A DECIDE alone in its line stands for the lines below it, up to the next empty line.
    """
    numbers = dict(comments)
    if not comments:
        return numbers
    written = text.split("\n")
    above: list[tuple[int, int, int]] = []  # first and last line, number
    for node in _statements(tree):
        first, last, head = _extent(node, written)
        own = [comments[line] for line in range(first, head + 1) if line in comments]
        if own:
            for line in range(first, head + 1):
                numbers.setdefault(line, own[0])
        elif (number := _alone_above(first, written, comments)) is not None:
            above.append((first, head if isinstance(node, ast.FunctionDef) else last, number))
    for first, last, number in sorted(above, reverse=True):  # the innermost first
        for line in range(first, last + 1):
            numbers.setdefault(line, number)
    for line, number in numbered_comments(text, "DECIDE").items():
        if written[line - 1].lstrip().startswith("#"):
            for below in _below(line, written, comments):
                numbers.setdefault(below, number)
    return numbers


def _below(line: int, written: Sequence[str], comments: Mapping[int, int]) -> Iterator[int]:
    """Lines of code that follow a comment without an empty line, and are not indented less."""
    indent = _indent(written[line - 1])
    for below in range(line + 1, len(written) + 1):
        text = written[below - 1]
        if below in comments or not text.strip() or _indent(text) < indent:
            return
        if not text.lstrip().startswith("#"):
            yield below


def _indent(text: str) -> int:
    return len(text) - len(text.lstrip())


def _statements(tree: ast.AST) -> Iterator[ast.stmt]:
    return (node for node in ast.walk(tree) if isinstance(node, ast.stmt))


def _extent(node: ast.stmt, written: Sequence[str]) -> tuple[int, int, int]:
    """First and last line of a statement, and the last one of its head."""
    first, last = syntax.first_line(node), syntax.last_line(node)
    body = getattr(node, "body", [])
    head = max(node.lineno, body[0].lineno - 1) if body else last
    while head > node.lineno and written[head - 1].lstrip()[:1] in ("", "#"):
        head -= 1  # a comment between head and body is about the body
    return first, last, head


def _alone_above(first: int, written: Sequence[str], comments: Mapping[int, int]) -> int | None:
    line = first - 1
    while line >= 1 and written[line - 1].lstrip().startswith("#"):
        if line in comments:
            return comments[line]
        line -= 1
    return None


def _imports(tree: ast.Module, text: str, comments: Mapping[int, int]) -> int | None:
    """The number of the first comment that stands alone outside of all functions, and above none.
    """
    written = text.split("\n")
    inside = {line for node in tree.body if isinstance(node, ast.FunctionDef | ast.ClassDef)
              for line in syntax.lines_of(node)}
    above = {_alone_above(syntax.first_line(node), written, comments)
             for node in syntax.functions(tree)}
    return next((number for line, number in sorted(comments.items())
                 if line not in inside and number not in above
                 and written[line - 1].startswith("#")), None)


# -- the exercise that a file came from ---------------------------------------------------------

_Key = tuple[str, str]  # function, and what a statement does: the name that it gives a value


@dataclass(frozen=True)
class _Start:
    """The places of an exercise by what stands there: of each key, one for each time it occurs."""

    places: Mapping[_Key, Sequence[int | None]] = field(default_factory=dict)
    imports: int | None = None
    decisions: Mapping[str, int] = field(default_factory=dict)  # function -> the first one in it

    def belonging(self, tree: ast.Module, text: str) -> Iterator[tuple[int, int]]:
        """Lines of a file, and the places that they belong to here."""
        times: Counter[_Key] = Counter()
        for key, first, last, _ in (one for function in syntax.functions(tree)
                                    for one in _keyed(function, text)):
            many = self.places.get(key, ())
            number = many[min(times[key], len(many) - 1)] if many else None
            times[key] += 1
            if number is not None:
                yield from ((line, number) for line in range(first, last + 1))

    def following(self, tree: ast.Module, text: str,
                  lines: Mapping[int, int]) -> Iterator[tuple[int, int]]:
        """Lines of new statements directly below one that is to be decided, and its place."""
        for function in syntax.functions(tree):
            if function.name not in self.decisions:
                continue
            number, end = None, 0
            for key, first, last, _ in _keyed(function, text):
                if first in lines:
                    number = lines[first]
                elif first != end + 1 or key in self.places:
                    number = None
                elif number is not None:
                    yield from ((line, number) for line in range(first, last + 1))
                end = last

    def helping(self, tree: ast.Module, text: str,
                lines: Mapping[int, int]) -> Iterator[tuple[int, int]]:
        """Lines that give a value to a name of the learner's own, and the place that it is for:
        that of the next statement with one which reads the name.
        """
        functions = {name for name, _ in self.places}
        for function in syntax.functions(tree):
            if function.name not in functions:
                continue
            reads: dict[str, int] = {}  # name -> place of the nearest reader further down
            for key, first, last, node in reversed(list(_keyed(function, text))):
                number = lines.get(first)
                if number is None and key not in self.places and key[1] in reads:
                    number = reads[key[1]]
                    yield from ((line, number) for line in range(first, last + 1))
                if number is not None:
                    reads |= {one.id: number for one in ast.walk(node)
                              if isinstance(one, ast.Name) and isinstance(one.ctx, ast.Load)}
        for node in tree.body if self.imports is not None else ():
            if isinstance(node, ast.Import) or (
                    isinstance(node, ast.ImportFrom) and node.module != "__future__"):
                assert self.imports is not None
                yield from ((line, self.imports) for line in syntax.lines_of(node))

    def decided(self, tree: ast.Module, lines: Mapping[int, int],
                comments: Mapping[int, int]) -> Iterator[tuple[int, int]]:
        """Lines without a place of their own that follow one which is to be decided."""
        for function in syntax.functions(tree):
            if function.name not in self.decisions:
                continue
            whole = range(function.body[0].lineno, syntax.last_line(function) + 1)
            kept = any(line in comments for line in whole)
            number = None if kept else self.decisions[function.name]
            for line in whole:
                if line in lines:
                    number = lines[line]
                elif number is not None:
                    yield line, number


@lru_cache(maxsize=4)
def _start(exercise: str) -> _Start:
    try:
        tree = syntax.parse(exercise)
    except SyntaxError:
        return _Start()
    comments = numbered_comments(exercise)
    lines = regions(tree, exercise, comments)
    here: dict[_Key, list[int | None]] = defaultdict(list)
    decisions: dict[str, int] = {}
    to_decide = numbered_comments(exercise, "DECIDE")
    for function in syntax.functions(tree):
        for key, first, _, _ in _keyed(function, exercise):
            here[key].append(lines.get(first))
        if inside := [to_decide[line] for line in syntax.lines_of(function) if line in to_decide]:
            decisions[function.name] = inside[0]
    return _Start(here, _imports(tree, exercise, comments), decisions)


def _keyed(function: ast.FunctionDef, text: str) -> Iterator[tuple[_Key, int, int, ast.stmt]]:
    """Describes the statements of a function, with first and last line of each head."""
    written = text.split("\n")
    inner = sorted((node for part in function.body for node in _statements(part)),
                   key=lambda node: node.lineno)
    for node in (function, *inner):
        first, _, head = _extent(node, written)
        for does in ["def"] if node is function else _does(node):
            yield (function.name, does), first, head, node


def _does(node: ast.stmt) -> Iterable[str]:
    """Identifies a statement by the names it assigns, or by its kind."""
    match node:
        case ast.Assign(targets=targets):
            return [one.id for target in targets for one in ast.walk(target)
                    if isinstance(one, ast.Name)]
        case ast.AugAssign(target=ast.Name(id=name)) | ast.AnnAssign(target=ast.Name(id=name)):
            return [name]
        case ast.For():
            return ["for"]
        case ast.Return():
            return ["return"]
        case ast.Expr(ast.Constant(value=value)) if value is Ellipsis:
            return ["store or launch"]
        case ast.Expr(ast.Call(func=ast.Subscript() | ast.Attribute(attr="store"))):
            return ["store or launch"]
    return ()
