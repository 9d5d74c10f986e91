"""Reachability: the parts of a submission that a call of one of its functions can run."""

import ast
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import PurePath

from grader.submission import syntax
from grader.submission.dataflow import Piece, reached

# What finds a name, or a file, by a text: then any text may name something.
_LOOKS_UP = frozenset((
    "__dict__", "__getattr__", "__import__", "attrgetter", "eval", "exec", "getattr", "globals",
    "import_module", "locals", "methodcaller", "open", "read_bytes", "read_text", "vars", "*"))

_DOCUMENTS = frozenset(("__doc__", "getdoc"))


@dataclass(frozen=True)
class _FilePiece(Piece):
    """A function or constant of a file; without a name, all else that runs at its import."""

    file: str
    name: str
    code: str  # in one spelling, without comments and line numbers


def changes(entry: str, before: Mapping[str, str], after: Mapping[str, str],
            roots: Iterable[str]) -> bool:
    """Whether a call of ``entry`` may run anything that differs between two versions.

    A function or a constant is reached where something that is reached names it, and so is a file,
    by its own name or that of its package: more is taken for reached than ever runs.

    Args:
        entry: a function of the submission.
        before, after: the files of both versions, as texts by their paths.
        roots: the files that are read first.
    """
    roots = frozenset(roots)
    old, new = ({(piece.file, piece.name): piece for name, text in texts.items()
                 for piece in _pieces(name, text, name in roots)} for texts in (before, after))
    changed = {key for key in {*old, *new}
               if key not in old or key not in new or old[key].code != new[key].code}
    _, pieces = reached([entry], [*old.values(), *new.values()])
    return any((piece.file, piece.name) in changed for piece in pieces)


def _names(file: str) -> frozenset[str]:
    """The names by which code comes to a file."""
    path = PurePath(file)
    if path.suffix != ".py":
        return _LOOKS_UP
    return frozenset((path.parent.name if path.stem == "__init__" else path.stem,))


@cache
def _pieces(file: str, text: str, root: bool) -> list[_FilePiece]:
    by_file = () if root else (_names(file),)
    try:
        tree = syntax.shared(text) if file.endswith(".py") else None
    except SyntaxError:
        tree = None
    if tree is None:
        return [_FilePiece(by_file, frozenset(), file, "", text)]
    lines = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    codes = ["\n".join(lines[syntax.first_line(node) - 1:syntax.last_line(node)])
             for node in tree.body]
    words = frozenset[str]().union(*(_statement(code)[0] for code in codes))
    documented, looks_up = bool(_DOCUMENTS & words), bool(_LOOKS_UP & words)
    parts: dict[str, list[tuple[frozenset[str], str]]] = {"": []}
    for node, code in zip(tree.body, codes, strict=True):
        name = node.name if isinstance(node, ast.FunctionDef) else _constant(node)
        parts.setdefault(name, []).append(_statement(code, looks_up, documented))
        if isinstance(node, ast.FunctionDef):
            parts[""] += [(_words(one, texts=looks_up), ast.dump(one)) for one in (
                *node.decorator_list, *node.args.defaults, *filter(None, node.args.kw_defaults))]
    return [_FilePiece((*by_file, frozenset((name,))) if name else by_file,
                       frozenset().union(*(words for words, _ in statements)), file, name,
                       "\n".join(code for _, code in statements))
            for name, statements in parts.items()]


@cache  # most statements of a mutant are those of the solution
def _statement(code: str, texts: bool = False,
               documented: bool = False) -> tuple[frozenset[str], str]:
    """The words of a statement, and its code in one spelling.

    Args:
        code: the lines of the statement, those of others beside it included.
        texts: count the words of constants, too.
        documented: something reads docstrings; else there are none in the code.
    """
    try:
        tree = syntax.parse(code)
    except SyntaxError:  # it begins in a line where a text ends
        return frozenset(re.findall(r"\w+", code)), code
    if not documented:
        for node in ast.walk(tree):
            if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef) and \
                    ast.get_docstring(node, clean=False) is not None:
                node.body = node.body[1:]
    return _words(tree, texts=texts), ast.dump(tree)


def _constant(node: ast.stmt) -> str:
    """The name that a statement gives a literal; empty where it does anything else."""
    match node:
        case ast.Assign(targets=[ast.Name(id=name)], value=value) if not name.startswith("__"):
            try:
                ast.literal_eval(value)
            except (ValueError, TypeError, MemoryError, RecursionError):
                return ""
            return name
    return ""


def _words(node: ast.AST, *, texts: bool) -> frozenset[str]:
    """The names in a piece of code; with ``texts`` also the words of its constants."""
    words: set[str] = set()
    for inner in ast.walk(node):
        match inner:
            case ast.Name(id=name) | ast.Attribute(attr=name):
                words.add(name)
            case ast.keyword(arg=str(name)):
                words.add(name)
            case ast.alias(name=name):
                words.update(name.split("."))
            case ast.ImportFrom(module=str(name)):
                words.update(name.split("."))
            case ast.Constant(value=str(text)) if texts:
                words.update(text.replace(".", " ").split())
    return frozenset(words)
