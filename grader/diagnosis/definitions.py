"""The functions of a submission that a case is about, with their lines."""

import ast
import re
from functools import lru_cache

from grader.diagnosis import messages
from grader.submission import dataflow, syntax

_MOST = 2
_OF_KERNELS = re.compile("[TNM]|L0[35]")  # codes about what kernels compute and move


@lru_cache(maxsize=64)  # the failures of a function share their place
def place(about: str, code: str, calls: str, texts: tuple[tuple[str, str], ...]) -> str:
    """Names at most two functions, or a file, that a failure without a line may come from.

    They are the function that a case is about, and its kernel if the finding is about kernels and
    the function launches a single one.

    Args:
        about: the function that a case calls or reads, of the learner or of ``calls``.
        code: of the finding.
        calls: text of the suite's ``calls.py``.
        texts: path and text of each Python file of the submission.
    """
    whole = "\n".join(text for _, text in texts)
    defined = {name: (file, node) for file, text in texts
               for node in syntax.tree_of(text).body for name in _names(node)}
    asked = frozenset({about})
    called = dataflow.names_reached(calls, asked) - _of_others(calls)
    meant = asked & defined.keys() or _outermost(called & defined.keys(), whole) or \
        {about.upper()} & defined.keys()  # a constant, such as DESIGN
    functions = [name for name in defined
                 if name in meant and isinstance(defined[name][1], ast.FunctionDef)]
    named = functions or [name for name in defined if name in meant]
    if not named and (file := _file_named(calls, about, texts)):
        return messages.in_file(file)
    if not 1 <= len(named) <= _MOST:
        return ""
    if _OF_KERNELS.match(code):
        reached = dataflow.names_reached(whole, frozenset(named)) - {*named}
        kernels = [kernel.key for kernel in dataflow.kernel_definitions(syntax.tree_of(whole))
                   if kernel.key in reached & defined.keys()]
        named += kernels if len(kernels) == 1 and len(named) < _MOST else []
    return messages.in_definitions(
        [(name, defined[name][1].lineno, defined[name][0] if len(texts) > 1 else "")
         for name in named])


def _file_named(calls: str, about: str, texts: tuple[tuple[str, str], ...]) -> str:
    """The file of the submission whose name a function of ``calls`` has as a string."""
    words = {node.value for function in syntax.functions(syntax.tree_of(calls))
             if function.name == about for node in ast.walk(function)
             if isinstance(node, ast.Constant)}
    return next((file for file, _ in texts if file.rpartition("/")[2] in words), "")


@lru_cache(maxsize=4)
def _of_others(calls: str) -> frozenset[str]:
    """Names that are only attributes of what ``calls`` imports, such as ``run`` of a module."""
    nodes = list(ast.walk(syntax.tree_of(calls)))
    imported = {(one.asname or one.name).partition(".")[0] for node in nodes
                if isinstance(node, ast.Import | ast.ImportFrom) for one in node.names}
    attributes = [(node.attr, syntax.names([node]) <= imported) for node in nodes
                  if isinstance(node, ast.Attribute)]
    own = {node.id for node in nodes if isinstance(node, ast.Name)}
    own |= {name for name, others in attributes if not others}
    return frozenset(name for name, others in attributes if others and name not in own)


def _outermost(names: frozenset[str], text: str) -> frozenset[str]:
    """Drops the names that others of them reach."""
    return names - {name for other in names
                    for name in dataflow.names_reached(text, frozenset({other})) - {other}}


def _names(node: ast.stmt) -> set[str]:
    match node:
        case ast.FunctionDef(name=name) | ast.ClassDef(name=name):
            return {name}
        case ast.Assign(targets=targets):
            return syntax.names(targets)
        case ast.AnnAssign(target=target):
            return syntax.names([target])
    return set()
