"""The part of Python that Triton compiles; the rest is refused when a kernel reaches it.

The compiler refuses a file before anything runs, so whatever it sees is refused. Here a statement
is refused when it is reached: what stands in a branch that a constant switches off is never seen
by the compiler either. The compiler itself says what it knows: a node of the syntax tree is
compiled if its code generator has a method for it.
"""

import ast
from types import ModuleType
from typing import Any

import triton.language as tl
from triton.compiler.code_generator import CodeGenerator
from triton.runtime.jit import JITCallable

from grader.engine.interpreter.errors import NotInAKernel

_CLOSER = {"Dict": "a dictionary", "Set": "a set", "GeneratorExp": "a generator expression",
           "Starred": "a star", "In": "`in`", "NotIn": "`not in`", "NamedExpr": "`:=`"}
PREFIX = "__tritonlab_"  # of the names that rewritten code uses; a kernel cannot spell them
_PARTS = (ast.FormattedValue, ast.Starred)  # looked at with the node that holds them
_BUILTINS = (*CodeGenerator.builtin_namespace, "abs", "tuple", "bool", "True", "False", "None")


def _words(construct: str) -> str:
    from grader.diagnosis import messages  # the process of the learner's code loads it no sooner

    return (messages.CONSTRUCTS | _CLOSER).get(construct, construct)


def call(name: str, *arguments: ast.expr) -> ast.Call:
    """A call of what rewritten code has under a name, at the place of the first argument."""
    node = ast.Call(ast.Name(PREFIX + name, ast.Load()), list(arguments), [])
    where = next((a for a in arguments if hasattr(a, "lineno")), None)
    return ast.copy_location(node, where) if where is not None else node


def refused(message: str, line: int) -> Any:
    """Raises ``NotInAKernel`` in the place of a node that Triton does not compile."""
    raise NotInAKernel(message, line)


def constant(value: Any) -> Any:
    """A part of an f-string.

    Raises:
        NotInAKernel: it is known only when the kernel runs.
    """
    if isinstance(value, tl.tensor):
        raise NotInAKernel("an f-string can only hold constants; values that are known only when "
                           'the kernel runs are printed by `tl.device_print("x", x)`')
    return value


def visible(name: str, value: Any) -> bool:
    """Whether a kernel sees a global."""
    module = getattr(value, "__module__", "") or ""
    return (
        name in CodeGenerator.builtin_namespace or value is None
        or isinstance(value, (ModuleType, JITCallable, tl.constexpr, tl.dtype))
        or getattr(value, "__triton_builtin__", False)
        or getattr(value, "__triton_aggregate__", False)
        or module.startswith(("triton.language", "triton.experimental.gluon.language"))
        or (isinstance(value, type) and issubclass(value, tuple) and hasattr(value, "_fields"))
    )


class Refuser(ast.NodeTransformer):
    """Puts a refusal in the place of every node that Triton does not compile."""

    def __init__(self, visible_globals: dict[str, Any], local: set[str]) -> None:
        self._globals = visible_globals
        self._local = local
        self._loops = 0

    def visit(self, node: ast.AST) -> Any:
        compiled = not isinstance(node, ast.stmt | ast.expr) or isinstance(node, _PARTS) or hasattr(
            CodeGenerator, f"visit_{type(node).__name__}")
        return super().visit(node) if compiled else self._refuse(node)

    def _refuse(self, node: Any, construct: str = "", message: str = "") -> ast.AST:
        kind = type(node).__name__
        message = message or f"Triton does not compile {construct or _words(kind)}"
        raising = call("refused", ast.Constant(message), ast.Constant(node.lineno))
        refusal: ast.AST = ast.Expr(raising) if isinstance(node, ast.stmt) else raising
        return ast.fix_missing_locations(ast.copy_location(refusal, node))

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        return self._refuse(node)

    def visit_For(self, node: ast.For) -> ast.AST:
        if node.orelse:
            return self._refuse(node, "`for` with `else`")
        if not isinstance(node.iter, ast.Call):
            return self._refuse(node, "a loop over anything but a range")
        node.iter = call("iterated", self.visit(node.iter), ast.Constant(node.lineno))
        unrolled = "static_range" in ast.dump(node.iter)
        return self._loop(node, 0 if unrolled else 1)

    def visit_While(self, node: ast.While) -> ast.AST:
        if node.orelse:
            return self._refuse(node, "`while` with `else`")
        node.test = self.visit(node.test)
        return self._loop(node, 1)

    def _loop(self, node: ast.For | ast.While, depth: int) -> ast.AST:
        self._loops += depth
        node.body = [self.visit(statement) for statement in node.body]
        self._loops -= depth
        return node

    def visit_Assign(self, node: ast.Assign) -> ast.AST:
        if any(isinstance(inner, ast.Starred) for t in node.targets for inner in ast.walk(t)):
            return self._refuse(node, "a star among the targets of an assignment")
        return self.generic_visit(node)

    def visit_Return(self, node: ast.Return) -> ast.AST:
        if self._loops:
            return self._refuse(node, "`return` inside a loop")
        return self.generic_visit(node)

    def visit_Compare(self, node: ast.Compare) -> ast.AST:
        for operator in node.ops:
            if isinstance(operator, ast.In | ast.NotIn):
                return self._refuse(node, _words(type(operator).__name__))
        return self.generic_visit(node)

    def visit_List(self, node: ast.List) -> ast.AST:
        """A list is a tuple to the compiler: it cannot grow."""
        self.generic_visit(node)
        if not isinstance(node.ctx, ast.Load):
            return node
        return ast.copy_location(ast.Tuple(node.elts, ast.Load()), node)

    def visit_JoinedStr(self, node: ast.JoinedStr) -> ast.AST:
        self.generic_visit(node)
        for part in node.values:
            if isinstance(part, ast.FormattedValue):
                part.value = call("constant", part.value)
        return node

    def visit_Name(self, node: ast.Name) -> ast.AST:
        if not isinstance(node.ctx, ast.Load) or node.id in self._local:
            return node
        if node.id in self._globals:
            if visible(node.id, self._globals[node.id]):
                return node
            return self._refuse(node, message=f"`{node.id}` is a global that is not a "
                                "tl.constexpr; kernels see only "
                                f"`{node.id} = tl.constexpr(value)`")
        if node.id in _BUILTINS or node.id.startswith(PREFIX):
            return node
        return self._refuse(node, f"the name `{node.id}`, which is not defined in a kernel")
