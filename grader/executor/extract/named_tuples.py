"""Fields of named tuples, which a kernel reads as in ``args.x_ptr``."""

import ast
import copy
from collections.abc import Iterator, Mapping
from functools import cache
from types import FrameType, FunctionType, GeneratorType, ModuleType

import triton.language as tl

from grader.engine.interpreter.rewrite import assigned
from grader.executor.extract import kernel_subset
from grader.recording.model import are_fields
from grader.submission import syntax


def declared(tree: ast.Module) -> frozenset[str]:
    """The fields of all named tuples that a file defines.

    A name by which a block, a type or a kernel gives away something of its own is none of them.
    """
    names = [name for node in ast.walk(tree) for name in _fields(node)]
    return frozenset(name for name in names if are_fields([name])) - _taken()


def _fields(node: ast.AST) -> Iterator[str]:
    match node:
        case ast.ClassDef(bases=bases, body=body) if any(map(_makes_tuples, bases)):
            for statement in body:
                match statement:
                    case ast.AnnAssign(target=ast.Name(name)):
                        yield name
        case ast.Call(function, [_, ast.Constant(str(names)), *_]) if _makes_tuples(function):
            yield from names.replace(",", " ").split()
        case ast.Call(function, [_, ast.List(items) | ast.Tuple(items), *_]) if _makes_tuples(
                function):
            for item in items:
                match item:
                    case ast.Constant(str(name)) | ast.Tuple([ast.Constant(str(name)), *_]):
                        yield name


def _makes_tuples(node: ast.expr) -> bool:
    return syntax.last_name(node) in ("NamedTuple", "namedtuple")


@cache
def _taken() -> frozenset[str]:
    """Attributes of what kernels hold; a field of such a name would open all of these."""
    owners = (tl.tensor, tl.tensor_descriptor, tl.dtype, tl.block_type, tl.constexpr, tl.cdiv,
              type, property, FunctionType, GeneratorType, FrameType)
    inner = ("handle", "handles", "data", "format", "format_map")
    return frozenset((*inner, *(name for owner in owners for name in dir(owner))))


class AsItems(ast.NodeTransformer):
    """Writes ``args.x_ptr`` as ``args[0]``, which asks for as much and needs no name to be known.

    ``modules``: places where a module of Triton is a value. Through it a field could name what
    lies in that module.
    """

    def __init__(self, kernel: ast.FunctionDef, fields: frozenset[str],
                 imports: Mapping[str, str]) -> None:
        self.modules: list[ast.expr] = []
        self._fields = fields
        self._imports = imports
        self._local = assigned(kernel)
        self.kernel: ast.FunctionDef = self.visit(copy.deepcopy(kernel))

    def visit_Name(self, node: ast.Name) -> ast.AST:
        self._triton(node)
        return node

    def visit_Attribute(self, node: ast.Attribute) -> ast.AST:
        if self._triton(node):
            return node
        self.generic_visit(node)
        if node.attr not in self._fields or not isinstance(node.ctx, ast.Load):
            return node
        zero = ast.copy_location(ast.Constant(0), node)
        return ast.copy_location(ast.Subscript(node.value, zero, ast.Load()), node)

    def _triton(self, node: ast.expr) -> bool:
        target = syntax.dotted(node, self._imports, self._local)
        if target is not None and isinstance(kernel_subset.resolved(target), ModuleType | None):
            self.modules.append(node)
        return target is not None
