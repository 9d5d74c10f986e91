"""Right solutions that differ from ours: whole files, folders of files, and overlays.

An overlay under ``overlays/`` holds the top-level statements in which a variant, or each file of
it, differs from the solution, and ``del name`` for each one that it lacks. Statements are matched
by the names that they bind. What the variants of a module share is an overlay as well,
``_common.py``, which lies under theirs. ``from .other import name`` stands for the statement that
binds the name in the overlay ``other.py`` beside it.
"""

from __future__ import annotations

import ast
import shutil
from pathlib import Path

FOLDERS = tuple(Path(__file__).with_name(name) for name in ("right", "overlays"))


def of(slug: str) -> list[Path]:
    """The variants of a module, by its slug."""
    return sorted((path for folder in FOLDERS for path in (folder / slug).glob("*")
                   if not path.name.startswith("_") and (path.suffix == ".py" or path.is_dir())),
                  key=lambda path: path.stem)


def whole(path: Path, solution: Path, folder: Path) -> Path:
    """The file to grade: a variant's own, or a complete submission that is written to ``folder``.

    Args:
        path: one of ``of``.
        solution: the kernel.py of the module's solution.
        folder: where overlays, and submissions of several files, are written.
    """
    overlay = FOLDERS[1] in path.parents
    if path.is_file() and not overlay:
        return path
    if path.is_dir():
        for source in (solution.parent, path):
            shutil.copytree(source, folder, dirs_exist_ok=True,
                            ignore=shutil.ignore_patterns("__pycache__"))
    folder.mkdir(parents=True, exist_ok=True)
    for changes in (path.rglob("*.py") if path.is_dir() else [path]) if overlay else ():
        name = changes.relative_to(path) if path.is_dir() else solution.name
        base = (solution.parent / name).read_text()
        if (common := path.with_name("_common.py")).exists():
            base = overlaid(base, common.read_text())
        (folder / name).write_text(overlaid(base, spelled_out(changes)))
    return folder / solution.name


def spelled_out(path: Path) -> str:
    """The source of an overlay, with the statements that it imports from those beside it."""
    source = path.read_text()
    texts = [text for _, text in statements(source)]
    for place, node in enumerate(ast.parse(source).body):
        if isinstance(node, ast.ImportFrom) and node.level:
            beside = dict(statements(path.with_name(f"{node.module}.py").read_text()))
            texts[place] = "".join(beside[alias.name] for alias in node.names)
    return "".join(texts)


def overlaid(base: str, changes: str) -> str:
    """The source of ``base`` with the top-level statements of ``changes`` in place of its own.

    A statement whose name the base does not bind is inserted before the next statement of
    ``changes`` that replaces one, or at the end; an import, behind the last import of the base.

    Raises:
        ValueError: ``changes`` deletes a name that the base does not bind.
    """
    parts = statements(base)
    pending: list[tuple[str, str]] = []
    for name, text in statements(changes):
        names = [known for known, _ in parts]
        if name.startswith("del "):
            parts.pop(names.index(name.removeprefix("del ")))
        elif name in names:
            place = names.index(name)
            parts[place:place + 1] = [*pending, (name, text)]
            pending = []
        elif name.startswith(("import ", "from ")):
            imports = [name.startswith(("import ", "from ")) for name in names]
            parts.insert(len(names) - imports[::-1].index(True), (name, text))
        else:
            pending.append((name, text))
    return "".join(text for _, text in [*parts, *pending])


def statements(source: str) -> list[tuple[str, str]]:
    """(name, text with the comments above it) of each top-level statement."""
    lines, start, statements = source.splitlines(keepends=True), 0, []
    for node in ast.parse(source).body:
        statements.append((_name(node), "".join(lines[start:node.end_lineno])))
        start = node.end_lineno or 0
    return statements


def _name(node: ast.stmt) -> str:
    match node:
        case ast.FunctionDef(name=name) | ast.ClassDef(name=name):
            return "|".join([name, *map(ast.unparse, node.decorator_list)]) if name == "_" else name
        case ast.Assign(targets=[target]) | ast.AnnAssign(target=target):
            return ast.unparse(target)
        case ast.Expr(value=ast.Constant()):
            return "docstring"
        case ast.ImportFrom(module=module):
            return f"from {module}"
        case ast.Import(names=names):
            return f"import {names[0].name}"
        case ast.If(test=test):
            return f"if {ast.unparse(test)}"
        case ast.Try(body=[first, *_]):
            return f"try {_name(first)}"
    return ast.unparse(node)
