"""Ways in which a copy is disguised; each leaves a program that computes the same."""

from __future__ import annotations

import ast
import io
import keyword
import random
import re
import tokenize
from collections.abc import Callable

_WORDS = ("value", "alpha", "left", "right", "inner", "outer", "step", "part", "piece", "amount",
          "place", "number", "mine", "other", "next", "last", "width", "count", "data", "block")


def renamed(source: str, draw: random.Random) -> str:
    """Other names for all variables, parameters and kernels; formatting and comments stay."""
    tree = ast.parse(source)
    bound = {node.id for node in ast.walk(tree)
             if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
    parameters = {node.arg for node in ast.walk(tree) if isinstance(node, ast.arg)}
    helpers = {node.name for node in tree.body if isinstance(node, ast.FunctionDef)
               and node.name.endswith("_kernel")}
    new = {name: f"{draw.choice(_WORDS)}_{draw.choice(_WORDS)}_{number}" for number, name in
           enumerate(sorted((bound | parameters | helpers) - {"_"}))}
    tokens = list(tokenize.generate_tokens(io.StringIO(source).readline))
    lines = source.splitlines(keepends=True)
    depth = 0
    changes = []
    for place, token in enumerate(tokens):
        if token.type == tokenize.OP:
            depth += (token.string in "([{") - (token.string in ")]}")
        elif token.type == tokenize.STRING and token.string[0] == "f":
            changes.append((token, re.sub(r"\{[^{}]*\}", lambda place: re.sub(
                r"(?<![.!\w])\w+", lambda name: new.get(name[0], name[0]), place[0]),
                token.string)))
        elif token.type == tokenize.NAME and token.string in new:
            keyword_of_others = (depth and tokens[place + 1].string == "="
                                 and token.string not in parameters)
            if tokens[place - 1].string != "." and not keyword_of_others:
                changes.append((token, new[token.string]))
    for token, text in reversed(changes):
        row, line = token.start[0] - 1, lines[token.start[0] - 1]
        lines[row] = line[:token.start[1]] + text + line[token.end[1]:]
    return "".join(lines)


def reordered(source: str, draw: random.Random) -> str:
    """Statements that do not depend on each other change places, with their comments."""
    lines = source.splitlines(keepends=True)
    for function in ast.walk(ast.parse(source)):
        if not isinstance(function, ast.FunctionDef):
            continue
        movable = [node if isinstance(node, ast.Assign) and node.lineno == node.end_lineno
                   else None for node in function.body]
        place = 0
        while place + 1 < len(movable):
            one, other = movable[place:place + 2]
            if one and other and other.lineno == one.lineno + 1 and _independent(one, other):
                a, b = one.lineno - 1, other.lineno - 1
                lines[a], lines[b] = lines[b], lines[a]
                place += 1
            place += 1
    return "".join(lines)


def _independent(one: ast.stmt, other: ast.stmt) -> bool:
    def names(node: ast.stmt, kind: type) -> set[str]:
        return {name.id for name in ast.walk(node)
                if isinstance(name, ast.Name) and isinstance(name.ctx, kind)}
    stored, stored_too = names(one, ast.Store), names(other, ast.Store)
    return not (stored & stored_too or stored & names(other, ast.Load)
                or stored_too & names(one, ast.Load))


def reformatted(source: str, draw: random.Random) -> str:
    """As another editor writes it: without comments and blank lines, with other quotes."""
    lines = ast.unparse(ast.parse(source)).splitlines()
    return "\n".join(line if "'" in line or '"' in line else
                     line.replace(", ", ",").replace(" = ", "=") for line in lines) + "\n"


def commented(source: str, draw: random.Random) -> str:
    """All comments and docstrings are gone, and others stand in their place."""
    tree = ast.parse(source)
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.Module) and ast.get_docstring(node):
            node.body[0] = ast.Expr(ast.Constant(" ".join(draw.choices(_WORDS, k=6))))
    lines = ast.unparse(tree).splitlines()
    return "\n".join(f"{line}  # {' '.join(draw.choices(_WORDS, k=4))}"
                     if line.strip() and not line.endswith(('"""', "'")) and draw.random() < 0.5
                     and '"""' not in line else line for line in lines) + "\n"


def split(source: str, draw: random.Random) -> str:
    """The longest expressions of kernels are computed by helper functions."""
    tree = ast.parse(source)
    helpers: list[ast.stmt] = []
    for function in [node for node in tree.body if isinstance(node, ast.FunctionDef)]:
        if "jit" not in "".join(map(ast.unparse, function.decorator_list)):
            continue
        constants = {argument.arg for argument in function.args.args if argument.annotation}
        local = {argument.arg for argument in function.args.args} | {
            node.id for node in ast.walk(function)
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
        assigns = sorted((node for node in ast.walk(function) if isinstance(node, ast.Assign)
                          and isinstance(node.value, ast.Call | ast.BinOp)),
                         key=lambda node: -len(ast.unparse(node.value)))[:3]
        for assign in assigns:
            free = sorted({node.id for node in ast.walk(assign.value)
                           if isinstance(node, ast.Name) and node.id in local})
            head = ", ".join(f"{name}: tl.constexpr" if name in constants else name
                             for name in free)
            name = f"{draw.choice(_WORDS)}_of_{len(helpers)}"
            helpers += ast.parse(f"@triton.jit\ndef {name}({head}):\n"
                                 f"    return {ast.unparse(assign.value)}\n").body
            assign.value = ast.parse(f"{name}({', '.join(free)})", mode="eval").body
    first = next(place for place, node in enumerate(tree.body)
                 if isinstance(node, ast.FunctionDef))
    tree.body[first:first] = helpers
    return ast.unparse(ast.fix_missing_locations(tree)) + "\n"


def padded(source: str, draw: random.Random) -> str:
    """Statements that do nothing stand between the others."""
    tree = ast.parse(source)
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef):
            body: list[ast.stmt] = []
            for statement in node.body:
                body.append(statement)
                if isinstance(statement, ast.Assign) and draw.random() < 0.4:
                    name = f"{draw.choice(_WORDS)}_{len(body)}"
                    body += ast.parse(f"{name} = {draw.randrange(100)}").body
            node.body = body
    return ast.unparse(ast.fix_missing_locations(tree)) + "\n"


def everything(source: str, draw: random.Random) -> str:
    """Several disguises, one after the other."""
    for change in (reordered, renamed, split, commented):
        source = change(source, draw)
    return source


DISGUISES: dict[str, Callable[[str, random.Random], str]] = {
    "as it is": lambda source, draw: source, "renamed": renamed, "reordered": reordered,
    "reformatted": reformatted, "comments rewritten": commented, "split into helpers": split,
    "padded": padded, "all of these": everything}

assert not {name for name in _WORDS if keyword.iskeyword(name)}
