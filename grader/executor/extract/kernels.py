"""Extracts the kernels of a submission by AST; nothing else of the file ever runs."""

import ast
import linecache
import sys
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from itertools import accumulate
from pathlib import Path
from types import ModuleType
from typing import Any

import triton
from triton.runtime.jit import JITFunction

from grader.engine.interpreter.errors import raised_line
from grader.engine.interpreter.rewrite import assigned
from grader.executor.extract import constant_folding, kernel_subset, named_tuples
from grader.executor.extract import globals as bindings
from grader.finding import fault
from grader.report import Finding, Refusal
from grader.submission import source, syntax
from grader.submission.dataflow import (
    KernelDefinition,
    Scope,
    given_to_jit,
    is_kernel,
    kernel_definitions,
)

_MODULE = "tritonlab_submission"
_TUNERS = frozenset(
    f"{module}.{name}" for module in ("triton", "triton.runtime", "triton.runtime.autotuner")
    for name in ("autotune", "heuristics"))
_OPTIONS = {"do_not_specialize", "do_not_specialize_on_alignment", "noinline", "debug"}
_MAX_FINDINGS = 8  # of one kernel


@dataclass
class Extract(kernel_subset.VisibleNames):
    """The parts of a file that are kept, each on its line, and the problems of its kernels."""

    lines: list[str] = field(default_factory=list)
    source: Sequence[str] = ()  # the lines of the file itself
    kernels: list[KernelDefinition] = field(default_factory=list)
    aliases: dict[str, KernelDefinition] = field(default_factory=dict)  # `name = triton.jit(f)`
    math: dict[str, str] = field(default_factory=dict)  # what stands for Python's module, dotted
    fields: frozenset[str] = frozenset()  # of named tuples
    statements: set[ast.stmt] = field(default_factory=set)  # those that were kept
    scattered: Mapping[str, Sequence[int]] = field(default_factory=dict)  # lines that bind a name
    problems: dict[str, list[Finding]] = field(default_factory=dict)  # by key, where it has any

    @property
    def text(self) -> str:
        return "\n".join(self.lines)

    @property
    def findings(self) -> list[Finding]:
        """All problems, kernel by kernel; those of a helper count once."""
        return list(dict.fromkeys(one for problems in self.problems.values() for one in problems))

    def keep(self, line: int, code: str) -> None:
        there = self.lines[line - 1]
        self.lines[line - 1] = f"{there}; {code}" if there else code


class KernelsRefused(Refusal):
    """No kernel of a file can be used; ``findings`` say why."""


def from_file(path: str) -> Mapping[str, JITFunction[Any] | Finding]:
    """The kernels of a learner's file by name; for one that cannot be used, the finding says why.

    What a kernel may not hold costs this kernel and those that use it, and no others.

    Raises:
        KernelsRefused: no kernel can be used, the file does not parse, or its imports do not work.
        grader.submission.source.UnreadableSubmission: there is no file to read.
    """
    text = source.read(Path(path))
    if text.problem is not None:
        raise KernelsRefused(text.problem)
    kept = extract(text.text)
    if kept.problems and len(kept.problems) == len(kept.kernels):
        raise KernelsRefused(*kept.findings)
    try:
        refused = {name: problems[0] for name, problems in kept.problems.items()}
        return {**load(kept, path), **refused}
    except Exception as error:  # an import or a default that this Triton does not know
        raise KernelsRefused(_import_problem(error, path)) from error


def extract(text: str) -> Extract:
    """Keeps Triton's imports, literal constants and jit functions; blanks out the rest.

    What lies in branches of the file, and in functions around kernels, is kept as if it stood at
    the top of the file: ``bindings`` finds the names for which that makes a difference.

    ``text`` has been parsed before and has ``\\n`` line ends.
    """
    tree = syntax.parse(text)
    lines = text.split("\n")
    kept = Extract(lines=[""] * len(lines), source=lines, fields=named_tuples.declared(tree),
                   math=constant_folding.math_names(tree), bound=kernel_subset.names_bound(tree))
    written = kernel_definitions(tree)
    scopes = {scope for kernel in written for scope in kernel.scopes}
    for node in bindings.statements(tree, scopes):
        if isinstance(node, ast.Import | ast.ImportFrom):
            _keep_import(node, kept, sure=node in tree.body)
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            with suppress(RecursionError):  # nested too deeply: of no use to a kernel
                _keep_constant(node, kept)
    functions = syntax.functions(tree)
    kept.kernels = [one for one in written if _is(one.jit, kernel_subset.JIT, kept)]
    aliases = _aliases(tree, scopes, kept)
    kept.aliases = {name: one for name, (_, one) in aliases.items()}
    kept.statements.update(statement for statement, _ in aliases.values())
    kept.functions = frozenset(node.name for node in functions)
    kept.evaluated = frozenset(
        node.name for node in functions for decorator in node.decorator_list
        if _is(decorator, kernel_subset.CONSTEXPR_FUNCTION, kept))
    kept.scattered = bindings.scattered(
        tree, {*kept.statements, *(one.node for one in kept.kernels)}, scopes)
    for one in kept.kernels:
        if problems := _problems(one, kept)[:_MAX_FINDINGS]:
            kept.problems[one.key] = problems
    _pass_on(kept)
    for one in kept.kernels:
        if one.key not in kept.problems:
            _keep_kernel(one, kept)
    for name, (statement, one) in aliases.items():
        if one.key not in kept.problems:
            kept.keep(statement.lineno, f"{name} = {_plain_jit(one.jit)}({one.node.name})")
    return kept


def load(kept: Extract, path: str) -> Mapping[str, JITFunction[Any]]:
    """Imports the kept text under the learner's file name, so that lines and frames match.

    The text goes to ``linecache``, where ``inspect`` and Triton look for a function's source.
    """
    linecache.cache[path] = (len(kept.text), None, [line + "\n" for line in kept.lines], path)
    module = ModuleType(_MODULE)
    module.__file__ = path
    sys.modules[_MODULE] = module
    loaded: dict[str, JITFunction[Any]] = {}
    by_line = {one.node.lineno: one for one in kept.kernels if one.key not in kept.problems}
    for statement in ast.parse(kept.text, path).body:  # a name may be defined again further down
        exec(compile(ast.Module([statement], []), path, "exec", dont_inherit=True), vars(module))
        if isinstance(statement, ast.FunctionDef):
            one = by_line[statement.lineno]
            function = vars(module)[statement.name]
            loaded[one.key] = function if is_kernel(one.node) else _jitted(function, one)
    return loaded


def _jitted(function: Any, one: KernelDefinition) -> JITFunction[Any]:
    """``triton.jit(function)`` with those options of the learner's call that count here."""
    assert isinstance(one.jit, ast.Call)
    options = {str(word.arg): ast.literal_eval(word.value) for word in _options(one.jit)}
    return triton.jit(**options)(function)


def _import_problem(error: Exception, path: str) -> Finding:
    return Finding("P02", fault("extraction", exception=type(error).__name__,
                                text=str(error)), raised_line(path, error))


# -- imports and constants ----------------------------------------------------------------------


def _keep_import(node: ast.Import | ast.ImportFrom, kept: Extract, *, sure: bool) -> None:
    """Keeps an import of Triton's; of several in branches, the first that works.

    Args:
        sure: the import always runs.
    """
    aliases = []
    for alias, (bound, target) in zip(node.names, syntax.imported(node), strict=False):
        kept.imported.update(accumulate(target.split("."), "{}.{}".format))  # with its packages
        if alias.name == "*":
            continue
        if target.split(".")[0] != "triton":
            kept.libraries[bound] = target
            continue
        works = kernel_subset.resolved(target) is not None
        if sure or bound not in kept.imports:
            if works or sure:
                package = isinstance(node, ast.Import) and not alias.asname
                kept.imports[bound] = "triton" if package else target
            if works and kernel_subset.importable(target):
                aliases.append(alias)
    if aliases:
        if isinstance(node, ast.Import):
            kept.keep(node.lineno, ast.unparse(ast.Import(aliases)))
        else:
            kept.keep(node.lineno, ast.unparse(ast.ImportFrom(node.module, aliases, 0)))


def _keep_constant(node: ast.Assign | ast.AnnAssign, kept: Extract) -> None:
    targets = node.targets if isinstance(node, ast.Assign) else [node.target]
    if node.value is None:
        return
    node.value = constant_folding.folded(node.value, kept.math, kept.constants)
    if _keep_alias(targets, node.value, kept):
        kept.keep(node.lineno, ast.unparse(node))
        kept.statements.add(node)
        return
    if not kernel_subset.is_constant(node.value, kept.imports, kept.constants):
        return
    names = [target.id for target in targets if isinstance(target, ast.Name)]
    if len(names) != len(targets) or any(name.startswith("__") for name in names):
        return
    code = " = ".join([*names, ast.unparse(node.value)])
    if isinstance(node, ast.AnnAssign) and "constexpr" in ast.unparse(node.annotation):
        kept.annotated.update(names)
        code = f"{names[0]}: 'constexpr' = {ast.unparse(node.value)}"
    for name in names:
        kept.constants[name] = node.value
    kept.keep(node.lineno, code)
    kept.statements.add(node)


def _keep_alias(targets: Sequence[ast.expr], value: ast.expr, kept: Extract) -> bool:
    """Whether this is ``exp = tl.exp`` or ``tl = triton.language``: another name for Triton's."""
    target = syntax.dotted(value, kept.imports)
    if target is None or kernel_subset.is_type(value, kept.imports) or not (
            target.startswith("triton.language") or target in kernel_subset.JIT):
        return False
    if len(targets) != 1 or not isinstance(targets[0], ast.Name):
        return False
    kept.imports[targets[0].id] = target
    return True


# -- kernels ------------------------------------------------------------------------------------


def _aliases(tree: ast.Module, scopes: Collection[Scope],
             kept: Extract) -> dict[str, tuple[ast.stmt, KernelDefinition]]:
    """Names that the file gives to kernels in statements like ``add = triton.jit(add_kernel)``."""
    kernels = {one.node.name: one for one in kept.kernels}
    aliases: dict[str, tuple[ast.stmt, KernelDefinition]] = {}
    for statement in bindings.statements(tree, scopes):
        match statement:
            case ast.Assign([ast.Name(name)], value) if (
                    given := given_to_jit(value)) in kernels and not is_kernel(
                        kernels[given].node):
                aliases[name] = statement, kernels[given]
    return aliases


def _is(decorator: ast.expr, which: frozenset[str], kept: Extract) -> bool:
    target = decorator.func if isinstance(decorator, ast.Call) else decorator
    return syntax.dotted(target, kept.imports) in which


def _problems(one: KernelDefinition, kept: Extract) -> list[Finding]:
    """The findings that forbid the use of a kernel."""
    node = one.node
    findings = [Finding("L05", fault("decorator", kernel=node.name,
                                  code=f"{ast.unparse(decorator):.60}"), decorator.lineno)
             for decorator in node.decorator_list
             if not _is(decorator, kernel_subset.JIT, kept) and not _is(decorator, _TUNERS, kept)
             and not (one.scopes and getattr(decorator, "id", "") == "staticmethod")]
    try:
        findings += _forbidden(one, kept)
    except RecursionError:
        findings.append(Finding("L05", fault("nested expression"), node.lineno))
    findings += _of_several(node, kept)
    if node.returns is not None and _arrow(node.returns, kept.source) < 0:
        findings.append(Finding("L05", fault("annotation line", kernel=node.name),
                             node.returns.lineno))
    return findings


def _of_several(node: ast.FunctionDef, kept: Extract) -> Iterator[Finding]:
    """L05 for globals of which the text of the file does not tell the value."""
    local = assigned(node)
    used = {inner.id: inner.lineno for inner in ast.walk(node)
            if isinstance(inner, ast.Name) and inner.id not in local}
    for name in sorted(used.keys() & kept.scattered.keys()):
        yield Finding("L05", fault("bound twice", line=used[name], name=name,
                                   lines=tuple(kept.scattered[name])), used[name])


def _forbidden(one: KernelDefinition, kept: Extract) -> Iterator[Finding]:
    """Checks the body and the signature of a kernel."""
    node = one.node
    visible = {other.node.name for other in kept.kernels if one.sees(other)}
    around = {other.node.name: fault("kernel inside", around=other.scopes[-1].name)
              for other in kept.kernels if not one.sees(other)}
    around |= {scope.name: fault("class") for kernel in kept.kernels for scope in kernel.scopes
               if isinstance(scope, ast.ClassDef)}
    around |= {name: fault("class attribute" if isinstance(scope, ast.ClassDef) else
                           "variable around", around=scope.name)
               for scope in one.scopes for name in bindings.names_in(scope)}
    scope = replace(kept, seen_kernels=frozenset(visible | kept.aliases.keys()), around=around)
    if not kept.fields:
        yield from kernel_subset.check(node, scope)
        return
    read = named_tuples.AsItems(node, kept.fields, kept.imports)
    yield from kernel_subset.check(read.kernel, scope)
    for place in read.modules:
        yield Finding("L05", fault("module value", line=place.lineno,
                                   code=f"{ast.unparse(place):.60}"), place.lineno)


def _pass_on(kept: Extract) -> None:
    """A kernel that uses one with problems has the same problems, however far away it is."""
    keys = {one.node.name: one.key for one in kept.kernels}
    keys |= {name: one.key for name, one in kept.aliases.items()}
    uses: dict[str, set[str]] = {}
    for one in kept.kernels:
        local = assigned(one.node)
        uses[one.key] = {keys[inner.id] for inner in ast.walk(one.node) if isinstance(
            inner, ast.Name) and inner.id in keys and inner.id not in local}
    spread = True
    while spread:
        spread = False
        for key, used in uses.items():
            broken = sorted(used & kept.problems.keys())
            if broken and key not in kept.problems:
                kept.problems[key] = kept.problems[broken[0]]
                spread = True


def _keep_kernel(one: KernelDefinition, kept: Extract) -> None:
    """The text of a kernel, moved to the left where it is indented."""
    node = one.node
    for decorator in node.decorator_list:
        if _is(decorator, kernel_subset.JIT, kept):
            kept.keep(decorator.lineno, f"@{_plain_jit(decorator)}")
    last = node.end_lineno or node.lineno
    body = [line.encode() for line in kept.source[node.lineno - 1:last]]
    for start, end in _annotations(node, kept):
        _blank(body, start, end, node.lineno)
    if node.returns is not None:
        arrow = _arrow(node.returns, kept.source)
        _blank(body, (node.returns.lineno, arrow), _end(node.returns), node.lineno)
    indent = body[0][:node.col_offset]
    kept.lines[node.lineno - 1:last] = [line.removeprefix(indent).decode() for line in body]


def _arrow(returns: ast.expr, source: Sequence[str]) -> int:
    """The byte of its line at which ``->`` stands; below 0 where that is another line."""
    return source[returns.lineno - 1].encode().rfind(b"->", 0, returns.col_offset)


def _plain_jit(decorator: ast.expr) -> str:
    """The decorator with those of its options that are literals and mean something here."""
    if not isinstance(decorator, ast.Call):
        return ast.unparse(decorator)
    return f"{ast.unparse(decorator.func)}({', '.join(map(ast.unparse, _options(decorator)))})"


def _options(jit: ast.Call) -> Iterator[ast.keyword]:
    for keyword in jit.keywords:
        with suppress(ValueError, TypeError, RecursionError):
            ast.literal_eval(keyword.value)
            if keyword.arg in _OPTIONS:
                yield keyword


def _annotations(node: ast.FunctionDef,
                 kept: Extract) -> Iterator[tuple[tuple[int, int], tuple[int, int]]]:
    """Locates annotations that are not Triton types; they are blanked, not evaluated."""
    arguments = node.args
    for argument in [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]:
        annotation = argument.annotation
        if annotation is None or kernel_subset.is_type(annotation, kept.imports):
            continue
        start = (argument.lineno, argument.col_offset + len(argument.arg.encode()))
        yield start, _end(annotation)


def _end(node: ast.expr) -> tuple[int, int]:
    return (node.end_lineno or node.lineno, node.end_col_offset or node.col_offset)


def _blank(lines: list[bytes], start: tuple[int, int], end: tuple[int, int], first: int) -> None:
    """Overwrite with spaces; columns count bytes, as the parser counts them."""
    for number in range(start[0], end[0] + 1):
        line = lines[number - first]
        left = start[1] if number == start[0] else 0
        right = end[1] if number == end[0] else len(line)
        lines[number - first] = line[:left] + b" " * (right - left) + line[right:]
