"""Reach: which parts of a submission a call of one of its functions can run."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import PurePath

from grader import syntax

# What finds a name, or a file, by a text: then any text may name something.
_LOOKS_UP = frozenset((
    "__dict__", "__getattr__", "__import__", "attrgetter", "eval", "exec", "getattr", "globals",
    "import_module", "locals", "methodcaller", "open", "read_bytes", "read_text", "vars", "*"))

_DOCUMENTS = frozenset(("__doc__", "getdoc"))


@dataclass(frozen=True)
class _Piece:
    """A function of a file, or, without a name, all of the file that runs when it is imported."""

    file: str
    name: str
    code: str  # in one spelling, without comments and line numbers
    words: frozenset[str]


def changes(entry: str, before: Mapping[str, str], after: Mapping[str, str],
            roots: Iterable[str]) -> bool:
    """Whether a call of ``entry`` may run anything that differs between two versions.

    A function is reached where something that is reached names it, and so is a file, by its own
    name or that of its package: more is taken for reached than ever runs.

    Args:
        entry: a function of the submission.
        before, after: the files of both versions, as texts by their paths.
        roots: the files that are read first.
    """
    old, new = ({(piece.file, piece.name): piece for name, text in texts.items()
                 for piece in _pieces(name, text)} for texts in (before, after))
    changed = {key for key in {*old, *new}
               if key not in old or key not in new or old[key].code != new[key].code}
    reached = _reached(entry, [*old.values(), *new.values()], set(roots))
    return bool(changed & reached)


def _reached(entry: str, pieces: list[_Piece], roots: set[str]) -> set[tuple[str, str]]:
    found: set[tuple[str, str]] = set()
    words, left = {entry}, pieces
    while True:
        more = [piece for piece in left if (piece.file in roots or _names(words, piece.file))
                and (not piece.name or piece.name in words)]
        if not more:
            return found
        left = [piece for piece in left if piece not in more]
        found |= {(piece.file, piece.name) for piece in more}
        words = words.union(*(piece.words for piece in more))


def _names(words: set[str], file: str) -> bool:
    path = PurePath(file)
    if path.suffix != ".py":
        return bool(words & _LOOKS_UP)
    return (path.parent.name if path.stem == "__init__" else path.stem) in words


@cache
def _pieces(file: str, text: str) -> tuple[_Piece, ...]:
    return tuple(_read(file, text))


def _read(file: str, text: str) -> Iterator[_Piece]:
    tree = _parsed(text) if file.endswith(".py") else None
    if tree is None:
        yield _Piece(file, "", text, frozenset())
        return
    looks_up = bool(_LOOKS_UP & _words(tree, texts=False))
    at_once: list[ast.AST] = []
    functions: dict[str, list[ast.AST]] = {}
    for node in tree.body:
        if isinstance(node, ast.FunctionDef):
            functions.setdefault(node.name, []).append(node)
            at_once += [*node.decorator_list, *node.args.defaults,
                        *filter(None, node.args.kw_defaults)]
        else:
            at_once.append(node)
    for name, nodes in (("", at_once), *functions.items()):
        words = frozenset().union(*(_words(node, texts=looks_up) for node in nodes))
        yield _Piece(file, name, "\n".join(map(ast.dump, nodes)), words)


def _parsed(text: str) -> ast.Module | None:
    """A file without its docstrings, unless something reads them; None where it is no Python."""
    try:
        tree = syntax.parse(text)
    except SyntaxError:
        return None
    if not _DOCUMENTS & _words(tree, texts=False):
        for node in ast.walk(tree):
            if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef) and \
                    ast.get_docstring(node, clean=False) is not None:
                node.body = node.body[1:]
    return tree


def _words(node: ast.AST, *, texts: bool) -> frozenset[str]:
    """The names in a piece of code; with ``texts`` also the words of its constants."""
    found: set[str] = set()
    for inner in ast.walk(node):
        match inner:
            case ast.Name(id=name) | ast.Attribute(attr=name):
                found.add(name)
            case ast.keyword(arg=str(name)):
                found.add(name)
            case ast.alias(name=name):
                found.update(name.split("."))
            case ast.ImportFrom(module=str(name)):
                found.update(name.split("."))
            case ast.Constant(value=str(text)) if texts:
                found.update(text.replace(".", " ").split())
    return frozenset(found)
