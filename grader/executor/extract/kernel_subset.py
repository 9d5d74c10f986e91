"""The subset of Python that kernels may use: what Triton compiles, and no way out of it."""

import ast
import builtins
import difflib
import importlib
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache
from types import ModuleType
from typing import Any

import triton.language as tl
from triton.runtime.jit import JITCallable

from grader.engine.interpreter.rewrite import assigned
from grader.executor.extract import constant_folding
from grader.finding import Fault, fault
from grader.report import Finding
from grader.submission import triton_namespace
from grader.submission.syntax import bound_name, dotted

_BUILTINS = frozenset((
    "range", "min", "max", "abs", "len", "float", "int", "bool", "print", "tuple", "isinstance"))
JIT = frozenset(("triton.jit", "triton.runtime.jit.jit", "triton.runtime.jit"))
_HOST = frozenset(("triton.cdiv", "triton.next_power_of_2"))
CONSTEXPR_FUNCTION = frozenset((
    "triton.constexpr_function", "triton.runtime.jit.constexpr_function"))
_NOT_RUN = {"globaltimer": "of a GPU", "smid": "of a GPU", "inline_asm_elementwise": "assembly"}

# What a kernel uses for names of torch, NumPy and math that Triton has under another name.
_INSTEAD = {
    "absolute": "tl.abs", "fabs": "tl.abs", "amax": "tl.max", "amin": "tl.min",
    "fmax": "tl.maximum", "fmin": "tl.minimum", "clip": "tl.clamp", "concat": "tl.cat",
    "concatenate": "tl.cat", "stack": "tl.join", "transpose": "tl.trans", "pow": "x ** y",
    "power": "x ** y", "square": "x * x", "matmul": "tl.dot", "mm": "tl.dot", "bmm": "tl.dot",
    "mean": "tl.sum(x, axis=0) / n", "relu": "tl.maximum(x, 0)", "isnan": "x != x",
    "pi": "3.141592653589793", "inf": 'float("inf")', "nan": 'float("nan")',
    "empty": "tl.zeros", "ones": "tl.full", "tensor": "tl.full", "array": "tl.full",
    "bool": "tl.int1", "float": "tl.float32", "double": "tl.float64", "half": "tl.float16",
    "long": "tl.int64", "int": "tl.int32",
}

_REFUSED = (
    ast.Import, ast.ImportFrom, ast.Lambda, ast.ListComp, ast.SetComp, ast.DictComp,
    ast.GeneratorExp, ast.Try, ast.TryStar, ast.With, ast.AsyncWith, ast.Raise, ast.Global,
    ast.Nonlocal, ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Yield, ast.YieldFrom,
    ast.Await, ast.AsyncFor, ast.Delete, ast.Break, ast.Continue, ast.Match, ast.Dict, ast.Set)


@dataclass
class VisibleNames:
    """The global names of a file, and which of them a kernel may see."""

    imports: dict[str, str] = field(default_factory=dict)  # of Triton: what a name stands for
    libraries: dict[str, str] = field(default_factory=dict)  # the same of all other modules
    imported: set[str] = field(default_factory=set)  # modules of Triton, and names of them
    constants: dict[str, ast.expr] = field(default_factory=dict)
    annotated: set[str] = field(default_factory=set)  # constants declared as tl.constexpr
    functions: frozenset[str] = frozenset()  # all at the top of the file
    evaluated: frozenset[str] = frozenset()  # of these, those with @triton.constexpr_function
    bound: frozenset[str] = frozenset()  # all names that the file gives to anything
    seen_kernels: frozenset[str] = frozenset()  # by the kernel in question
    around: Mapping[str, Fault] = field(default_factory=dict)  # why it does not see a name


def check(kernel: ast.FunctionDef, scope: VisibleNames) -> Iterator[Finding]:
    """Yields a finding for every construct that a kernel cannot use."""
    local = assigned(kernel)
    for name in sorted(local):
        if name.startswith("__"):
            yield _finding(kernel, fault("private name", kernel=kernel.name, name=name))
    for node in _annotations(kernel):
        if any(isinstance(inner, ast.NamedExpr) for inner in ast.walk(node)):
            yield _finding(node, fault("walrus"))
    for default in [*kernel.args.defaults, *(d for d in kernel.args.kw_defaults if d is not None)]:
        value = constant_folding.folded(default, {}, scope.constants)
        if not is_constant(value, scope.imports, scope.constants):
            yield _finding(default, fault("default", code=f"{ast.unparse(default):.60}"))
    if kernel.args.vararg or kernel.args.kwarg:
        yield _finding(kernel, fault("star parameters", kernel=kernel.name))
    for statement in kernel.body:
        yield from _check(statement, local, scope)


def _check(node: ast.AST, local: set[str], scope: VisibleNames) -> Iterator[Finding]:
    if isinstance(node, _REFUSED):
        yield _finding(node, fault("construct", line=_line(node), construct=type(node).__name__))
        return
    if isinstance(node, ast.Call):
        problem = _name_problem(node.func, local, scope)
        if problem:
            yield _finding(node, _used(problem, node.func, called=True))
            children: list[ast.AST] = [*node.args, *node.keywords]
        else:
            children = list(ast.iter_child_nodes(node))
        for child in children:
            yield from _check(child, local, scope)
        return
    if isinstance(node, ast.Attribute | ast.Name):
        problem = _name_problem(node, local, scope)
        if problem:
            yield _finding(node, _used(problem, node))
            return
        if isinstance(node, ast.Attribute) and dotted(node, scope.imports, local):
            return
    elif isinstance(node, ast.Subscript) and not isinstance(node.ctx, ast.Load):
        yield _finding(node, fault("item assignment", line=node.lineno,
                                   code=f"{ast.unparse(node):.60}"))
        return
    for child in ast.iter_child_nodes(node):
        if isinstance(node, ast.AnnAssign) and child is node.annotation:
            continue
        yield from _check(child, local, scope)


def _used(problem: Fault, node: ast.expr, *, called: bool = False) -> Fault:
    """The problem of a name with the place where it is used."""
    return fault(problem.kind, line=node.lineno, called=called, code=f"{ast.unparse(node):.60}",
                 **problem.figures)


def _name_problem(node: ast.AST, local: set[str], scope: VisibleNames) -> Fault | None:
    """Returns why a name or an attribute cannot be used; None if it can."""
    if isinstance(node, ast.Name):
        return _plain_name_problem(node, local, scope)
    if not isinstance(node, ast.Attribute):
        return None
    target = dotted(node, scope.imports, local)
    if target is not None:
        return _target_problem(target) or _not_imported(target, scope)
    if not isinstance(node.ctx, ast.Load):
        return fault("attribute assignment")
    root: ast.expr = node
    while isinstance(root, ast.Attribute):
        root = root.value
    if isinstance(root, ast.Name) and root.id in scope.libraries and root.id not in local:
        return _of_the_host(node.attr, scope)
    if isinstance(root, ast.Name) and root.id not in local:
        problem = _plain_name_problem(root, local, scope)
        if problem:
            return problem
    if node.attr.startswith("_") or node.attr not in value_attributes():
        return fault("attribute", nearest=_nearest_of(node.attr, value_attributes()))
    return None


def _plain_name_problem(node: ast.Name, local: set[str], scope: VisibleNames) -> Fault | None:
    name = node.id
    if name.startswith("__"):
        return fault("reserved")
    if name in local or name in scope.seen_kernels or name in _BUILTINS:
        return None
    if name in scope.libraries:
        return _of_the_host(scope.libraries[name].rpartition(".")[2], scope)
    if name in scope.imports:
        return _target_problem(scope.imports[name])
    if name in scope.constants:
        if name in scope.annotated or _is_constexpr(scope.constants[name], scope.imports):
            return None
        return fault("not constexpr")
    if name in scope.evaluated:
        return fault("constexpr function")
    if name in scope.functions:
        return fault("host function")
    if name in scope.around:
        return scope.around[name]
    if name not in scope.bound and not hasattr(builtins, name):
        near = difflib.get_close_matches(name, [*local, *scope.imports], n=1)
        return fault("undefined", name=name, nearest=near[0] if near else "")
    return fault("not visible")


def _of_the_host(name: str, scope: VisibleNames) -> Fault:
    """Explains why a name of another library cannot be used, with Triton's alternative."""
    tl_name = next((n for n, target in scope.imports.items() if target == "triton.language"), "tl")
    instead = _INSTEAD.get(name, "")
    if not instead and name in tl.__all__ and not isinstance(getattr(tl, name), ModuleType):
        instead = f"tl.{name}"
    if not instead and _in_libdevice(name):
        instead = f"libdevice.{name}"
    if not instead.startswith("libdevice."):
        instead = instead.replace("tl.", f"{tl_name}.")
    return fault("of the host", instead=instead)


def _in_libdevice(name: str) -> bool:
    return not name.startswith("_") and hasattr(
        importlib.import_module("triton.language.extra.libdevice"), name)


def names_bound(tree: ast.Module) -> frozenset[str]:
    """All names that a file gives to anything, anywhere."""
    value: set[str] = set()
    for node in ast.walk(tree):
        match node:
            case ast.Name(name, ast.Store()) | ast.FunctionDef(name) | ast.ClassDef(name):
                value.add(name)
            case ast.arg(name):
                value.add(name)
            case ast.alias():
                value.add(bound_name(node))
    return frozenset(value)


def _annotations(kernel: ast.FunctionDef) -> Iterator[ast.expr]:
    """All annotations: of parameters, of the result, of variables in the body."""
    for node in ast.walk(kernel):
        if isinstance(node, ast.arg | ast.AnnAssign) and node.annotation is not None:
            yield node.annotation
        elif isinstance(node, ast.FunctionDef) and node.returns is not None:
            yield node.returns


# -- names of Triton ----------------------------------------------------------------------------


def importable(target: str) -> bool:
    """Whether an import is kept: the language, and the few names of ``triton`` that kernels use."""
    if target.startswith("triton.language") or target == "triton":
        return True
    return target in _HOST or target in JIT


@cache
def resolved(target: str) -> Any:
    """The object behind a dotted name, walking only through Triton's language; None if absent."""
    if any(part.startswith("_") for part in target.split(".")):
        return None
    first, *rest = target.split(".")
    value: Any = importlib.import_module(first)
    walked = first
    for part in rest:
        walked += f".{part}"
        if isinstance(value, ModuleType) and not _in_language(value.__name__):
            return None
        following = getattr(value, part, None)
        if following is None and isinstance(value, ModuleType):
            with suppress(ImportError):
                following = importlib.import_module(walked)
        if following is None:
            return None
        value = following
    return value


def _in_language(module: str) -> bool:
    return module == "triton" or module == "triton.language" or module.startswith(
        "triton.language.")


def _not_imported(target: str, scope: VisibleNames) -> Fault | None:
    """Explains why a name in a module that was never imported cannot be used."""
    names = target.split(".")
    for count in range(2, len(names) + 1):
        module = ".".join(names[:count])
        if isinstance(resolved(module), ModuleType) and not triton_namespace.is_plain(module) and (
                module not in scope.imported):
            return fault("not imported", module=module)
    return None


def _target_problem(target: str) -> Fault | None:
    """Explains why a name of Triton cannot be used."""
    value = resolved(target)
    if value is not None and _usable(value, target):
        return None
    owner, _, name = target.rpartition(".")
    if name in _NOT_RUN:
        return fault(_NOT_RUN[name])
    if owner == "triton.language" and _in_libdevice(name):
        return fault("not offered", instead=f"libdevice.{name}")
    return fault("not offered", nearest=_nearest(owner, name))


def _nearest(owner: str, name: str) -> str:
    """The most similar name where a module of the language has no such one; empty without."""
    module = resolved(owner) if owner else None
    if not isinstance(module, ModuleType) or hasattr(module, name):
        return ""
    names = [one for one in dir(module) if not one.startswith("_")
             and _usable(getattr(module, one), f"{owner}.{one}")]
    return _nearest_of(name, names)


def _nearest_of(name: str, names: Iterable[str]) -> str:
    near = difflib.get_close_matches(name, list(names), n=1, cutoff=0.7)
    return near[0] if near else ""


def _usable(value: Any, target: str) -> bool:
    name = target.rsplit(".", 1)[-1]
    if isinstance(value, ModuleType):
        return _in_language(value.__name__)
    if name in _NOT_RUN:
        return False
    if target in _HOST or isinstance(value, JITCallable | tl.dtype | tl.constexpr | int | float):
        return True
    if isinstance(value, type):
        return value.__module__.startswith(("triton.language", "triton._C"))
    if type(value).__module__.startswith("triton._C"):  # a value of an enumeration
        return True
    module = getattr(value, "__module__", "") or ""
    if module.startswith("triton.language.extra"):
        return callable(value)  # libdevice
    return tl.core.is_builtin(value) or type(value).__name__ == "ConstexprFunction"


@cache
def value_attributes() -> frozenset[str]:
    """Attributes of blocks, scalars, types and descriptors that mean something in a kernel."""
    names = {"dtype", "type", "shape", "numel", "value", "element_ty", "scalar", "T", "block_shape",
             "strides"}
    for owner in (tl.tensor, tl.dtype, tl.tensor_descriptor):
        names |= {name for name in dir(owner) if not name.startswith("_")}
    return frozenset(names - {"handle", "to_ir", "data", "handles", "mangle", "codegen_name"})


# -- constants and types ------------------------------------------------------------------------


def is_constant(node: ast.expr, imports: Mapping[str, str],
                constants: Mapping[str, ast.expr]) -> bool:
    """A number, word or type, or tl.constexpr of one; arithmetic has been folded before."""
    def constant(inner: ast.expr) -> bool:
        return is_constant(inner, imports, constants)

    match node:
        case ast.Constant(value):
            if isinstance(value, int):
                return value.bit_length() <= constant_folding.MOST_BITS
            return value is None or isinstance(value, float | str)
        case ast.UnaryOp(ast.USub() | ast.UAdd(), operand):
            return constant(operand)
        case ast.Name(name):
            return name in constants or is_type(node, imports)
        case ast.Attribute():
            return is_type(node, imports)
        case ast.Call(ast.Name("float"), [ast.Constant(str(word))], []):
            return word.strip().lower().lstrip("+-") in ("inf", "infinity", "nan")
        case ast.Call(function, [argument], []):
            return _is_constexpr(node, imports) and dotted(function, imports) is not None and (
                constant(argument))
        case ast.Tuple(items):
            return all(constant(item) for item in items)
    return False


def _is_constexpr(node: ast.expr, imports: Mapping[str, str]) -> bool:
    """Whether kernels may see a global with this value: a constexpr, or a type of Triton."""
    if isinstance(node, ast.Call):
        return dotted(node.func, imports) in (
            "triton.language.constexpr", "triton.language.core.constexpr")
    return is_type(node, imports)


def is_type(node: ast.expr, imports: Mapping[str, str]) -> bool:
    """``tl.constexpr``, ``tl.float32`` and the like, or a type's name in quotes."""
    if isinstance(node, ast.Constant):
        return isinstance(node.value, str)
    target = dotted(node, imports)
    if target is None or not target.startswith("triton.language"):
        return False
    value = resolved(target)
    return value in (tl.constexpr, tl.const) or isinstance(value, tl.dtype)


def _line(node: ast.AST) -> int:
    return int(getattr(node, "lineno", 0))


def _finding(node: ast.AST, data: Fault) -> Finding:
    return Finding("L05", data, line=_line(node) or None)
