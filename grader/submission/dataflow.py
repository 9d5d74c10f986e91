"""Dataflow of a file: its kernels, and the statements that a value is computed by."""

import ast
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import NamedTuple, Self, TypeVar

from grader.submission import syntax
from grader.submission.syntax import functions, last_line, last_name, lines_of, names
from grader.submission.todo_regions import numbered_comments

Scope = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef
Lines = tuple[int, ...]

_MASK_POSITION = {"load": 1, "store": 2}
_POINTERS = ("pointer", "ptr")
_LOADS = ("load", "gather", "atomic_add", "atomic_max", "atomic_min", "atomic_cas", "atomic_xchg")
_ACCESSES = (*_LOADS, "store", "scatter", "atomic_and", "atomic_or", "atomic_xor")

_POINTERS_END = ("ptr", "ptrs")

_NEAR = 2  # steps: addresses and mask themselves, then what they are made of
_FAR = 16

_of_file = lru_cache(maxsize=2)  # every finding of a grade asks, of the same file

# -- kernels ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class KernelDefinition:
    """One kernel.

    ``key`` is its name. Of several kernels with one name this is the last; the others have keys
    such as "add_kernel (line 12)". ``jit`` is the decorator, or the call of ``triton.jit`` that has
    its options. ``scopes`` are the functions and classes around the kernel, from the outside in.
    """

    key: str
    node: ast.FunctionDef
    jit: ast.expr
    scopes: tuple[Scope, ...]

    @property
    def first_line(self) -> int:
        """``co_firstlineno`` of the function's code."""
        return syntax.first_line(self.node)

    def sees(self, other: Self) -> bool:
        """Whether this kernel finds the other one under its name: not inside of a class."""
        if not other.scopes:
            return True
        return not isinstance(other.scopes[-1], ast.ClassDef) and \
            self.scopes[:len(other.scopes)] == other.scopes


def kernel_definitions(tree: ast.Module) -> list[KernelDefinition]:
    """All kernels of a file in the order of its lines, at any depth.

    A kernel is a function under ``@triton.jit``, or one that the file gives to ``triton.jit``.
    """
    nodes = list(_with_scopes(tree))
    candidates = [(node, scopes) for node, scopes in nodes if isinstance(node, ast.FunctionDef)]
    jits: dict[ast.FunctionDef, tuple[ast.expr, tuple[Scope, ...]]] = {
        node: (decorator, scopes) for node, scopes in candidates
        for decorator in node.decorator_list if is_jit(decorator)}
    for call, around in nodes:
        name = given_to_jit(call)
        named = [(len(scopes), node.lineno, node, scopes) for node, scopes in candidates
                 if node.name == name and around[:len(scopes)] == scopes] if name else []
        if named:
            *_, node, scopes = max(named, key=lambda one: one[:2])
            assert isinstance(call, ast.Call)
            has_options = call.func if isinstance(call.func, ast.Call) else call
            jits.setdefault(node, (has_options, scopes))
    kernels = [KernelDefinition(node.name, node, jit, scopes) for node, (jit, scopes) in
               sorted(jits.items(), key=lambda one: one[0].lineno)]
    last = {one.node.name: one for one in kernels}
    return [one if last[one.node.name] is one else
            replace(one, key=f"{one.key} (line {one.node.lineno})") for one in kernels]


def host_code(text: str) -> str:
    """What a file is without the bodies of its kernels, comparable with another one's."""
    inside = {line for kernel in kernel_definitions(syntax.tree_of(text))
              for line in range(kernel.node.body[0].lineno, last_line(kernel.node) + 1)}
    return "\n".join(line for number, line in enumerate(text.split("\n"), 1)
                     if number not in inside)


def is_kernel(function: ast.FunctionDef) -> bool:
    """Whether one of the decorators is Triton's ``jit``, called or not."""
    return any(is_jit(decorator) for decorator in function.decorator_list)


def is_jit(decorator: ast.expr) -> bool:
    target = decorator.func if isinstance(decorator, ast.Call) else decorator
    return last_name(target) == "jit"


def given_to_jit(node: ast.AST) -> str:
    """``add`` of ``triton.jit(add)``, ``triton.jit(fn=add)`` and ``triton.jit(debug=True)(add)``.

    Empty for every other expression.
    """
    match node:
        case ast.Call(function, [ast.Name(name)]) if is_jit(function):
            return name
        case ast.Call(function, [], keywords) if is_jit(function):
            return next((word.value.id for word in keywords
                         if word.arg == "fn" and isinstance(word.value, ast.Name)), "")
    return ""


def _with_scopes(tree: ast.Module) -> Iterator[tuple[ast.AST, tuple[Scope, ...]]]:
    """All nodes with the scopes around them, without recursion, so at any depth."""
    pending: list[tuple[ast.AST, tuple[Scope, ...]]] = [(tree, ())]
    while pending:
        node, scopes = pending.pop()
        yield node, scopes
        inner = (*scopes, node) if isinstance(node, Scope) else scopes
        pending += [(child, inner) for child in ast.iter_child_nodes(node)]


# -- assignments, and the names that follow from names ------------------------------------------


@dataclass(frozen=True)
class Assignment:
    """A statement that gives names a value; of a ``for`` loop, the value is what it runs over."""

    statement: ast.Assign | ast.AugAssign | ast.AnnAssign | ast.For
    names: set[str]
    value: ast.expr | None  # None for a declaration


def assignments(node: ast.AST) -> Iterator[Assignment]:
    """All assignments in a node, at any depth."""
    for inner in ast.walk(node):
        match inner:
            case ast.Assign(targets=targets, value=value):
                yield Assignment(inner, names(targets), value)
            case ast.AugAssign(target=target, value=value) | ast.AnnAssign(
                    target=target, value=value) | ast.For(target=target, iter=value):
                yield Assignment(inner, names([target]), value)


@dataclass(frozen=True)
class Piece:
    """Code that is reached once each of ``conditions`` contains a name that is reached."""

    conditions: tuple[frozenset[str], ...]
    names: frozenset[str]  # that are reached with it


_P = TypeVar("_P", bound=Piece)


def reached(roots: Iterable[str], pieces: Iterable[_P]) -> tuple[frozenset[str], list[_P]]:
    """All names, and all pieces, that are reached from the names ``roots``."""
    words, rest, members = frozenset(roots), list(pieces), list[_P]()
    while more := [one for one in rest if all(words & any_of for any_of in one.conditions)]:
        rest = [one for one in rest if one not in more]
        words = words.union(*(one.names for one in more))
        members += more
    return words, members


@lru_cache(maxsize=32)  # every finding of a function asks, of the same file
def names_reached(text: str, roots: frozenset[str]) -> frozenset[str]:
    """All names in what a file defines by the names ``roots``, and in what these name in turn."""
    return reached(roots, _definitions(text))[0]


@_of_file
def _definitions(text: str) -> tuple[Piece, ...]:
    """Functions and classes of a file, and names that it gives values."""
    pieces = []
    for node in syntax.tree_of(text).body:
        match node:
            case ast.FunctionDef(name=name) | ast.ClassDef(name=name):
                defined = {name}
            case ast.Assign(targets=targets):
                defined = names(targets)
            case ast.AnnAssign(target=target):
                defined = names([target])
            case _:
                continue
        attributes = {one.attr for one in ast.walk(node) if isinstance(one, ast.Attribute)}
        pieces.append(Piece((frozenset(defined),), frozenset(names([node]) | attributes)))
    return tuple(pieces)


def lines_elsewhere(text: str, roots: frozenset[str]) -> frozenset[int]:
    """The lines of functions that no function of ``roots`` calls, directly or indirectly.

    A function named ``_`` is called by its decorator, so its lines are never among them. Empty if
    the file defines no function of these names.
    """
    defined = functions(syntax.tree_of(text))
    if roots.isdisjoint(function.name for function in defined):
        return frozenset()
    words = names_reached(text, roots)
    return frozenset(line for function in defined if function.name not in {*words, "_"}
                     for line in _whole(function))


def comment_above(text: str, line: int, marker: str) -> int | None:
    """The line of the last numbered comment above a line in the same function."""
    inside = lines_of(_function_at(text, line))
    return max((one for one in numbered_comments(text, marker) if one in inside and one <= line),
               default=None)


def comments_in(text: str, roots: frozenset[str], marker: str) -> Lines:
    """The lines of numbered comments in functions that those of ``roots`` come to."""
    words, numbered = names_reached(text, roots), numbered_comments(text, marker)
    return tuple(line for function in functions(syntax.tree_of(text)) if function.name in words
                 for line in sorted(numbered) if line in _whole(function))


def _whole(function: ast.FunctionDef) -> range:
    return range(syntax.first_line(function), last_line(function) + 1)


# -- lines of kernels by what depends on them ---------------------------------------------------


def lines_behind(text: str, line: int, *, far: bool = False, mask: bool = True) -> Lines:
    """The lines that give a load or store of a kernel its addresses and its mask, in order.

    Empty where the line has none, or where the text cannot be read.

    Args:
        text: of the file.
        line: of the load or store.
        far: also the lines that these are computed from, up to the program's number.
        mask: False for the lines of addresses only.
    """
    function = _function_at(text, line)
    operands = {name for call in _accesses(function) if line in lines_of(call)
                for name in _address_names(call, mask)}
    lines = _lines_assigning(function, operands, _FAR if far else _NEAR)
    return tuple(sorted(lines - {line}))


def lines_of_callers(text: str, line: int, *, far: bool = False) -> Lines:
    """The lines of other kernels that give a value to a name in the address of a line.

    A kernel that calls another one often gives arguments the names of the parameters.

    Args:
        far: also the lines that these are computed from.
    """
    function = _function_at(text, line)
    operands = {name for call in _accesses(function) if line in lines_of(call)
                for name in _address_names(call, mask=True)}
    parameters = operands.intersection(syntax.parameter_names(function))
    return tuple(sorted(one for kernel in _kernels(text) if kernel is not function
                        for one in _lines_assigning(kernel, parameters, _FAR if far else 1)))


def has_mask(text: str, line: int) -> bool | None:
    """Whether the load or store of a line has a mask; None where the text does not show it."""
    masked = {len(call.args) > _MASK_POSITION[_method(call)]
              or any(one.arg in ("mask", None) for one in call.keywords)
              for call in _accesses(_function_at(text, line)) if line in lines_of(call)}
    return masked.pop() if len(masked) == 1 else None


def parameters_behind(text: str, line: int, *, mask: bool) -> frozenset[str]:
    """The parameters of a kernel from which the mask of an access, or its address, is computed.

    Args:
        text: of the file.
        line: of the load or store.
        mask: True for those of the mask, False for those of the address.
    """
    function = _function_at(text, line)
    calls = [call for call in _accesses(function) if line in lines_of(call)]
    roots = {name for call in calls for name in _address_names(call, mask=False)}
    if mask:
        roots = {name for call in calls for name in _mask_names(call)}
    behind, _ = reached(roots, [
        Piece((frozenset(one.names),), frozenset(names([one.value])))
        for one in assignments(function)
        if one.value is not None and not isinstance(one.statement, ast.For)])
    return behind & {one.arg for one in function.args.args}


@_of_file
def lines_of_values(text: str) -> Lines:
    """The lines of all kernels by which what is loaded becomes what is stored, in order.

    Constants, such as the zeros that a sum begins with, come last.
    """
    lines: set[int] = set()
    constants: set[int] = set()
    for function in _kernels(text):
        accesses = list(_accesses(function))
        addresses = {name for call in accesses for name in _address_names(call, mask=True)}
        stores = [call for call in accesses if _method(call) == "store"]
        stored = names(value for call in stores for value in (
            *call.args[1:2], *(one.value for one in call.keywords if one.arg == "value")))
        computed = _lines_assigning(function, stored - addresses, _FAR, without=addresses)
        loads = {call.lineno for call in accesses if _method(call) == "load"}
        plain = [one for one in assignments(function) if isinstance(one.statement, ast.Assign)]
        assigned = {name for one in plain for name in one.names}
        constants |= {one.statement.lineno for one in plain
                      if one.statement.lineno in computed - loads and one.value is not None
                      and assigned.isdisjoint(names([one.value]))}
        lines |= {call.lineno for call in stores} | computed
    return (*sorted(lines - constants), *sorted(constants))


def lines_of_kernels(text: str) -> Lines:
    """The lines of all functions that Triton compiles."""
    return tuple(line for function in _kernels(text) for line in _whole(function))


@_of_file
def lines_of_stores(text: str) -> Lines:
    return tuple(sorted({call.lineno for function in _kernels(text)
                         for call in _accesses(function) if _method(call) == "store"}))


def lines_of_result(text: str, pointers: Collection[str], right: Collection[str]) -> Lines:
    """The lines that compute what kernels store by some parameters, and nothing that is right.

    Args:
        pointers: names of parameters of kernels by which wrong values are stored.
        right: those by which right ones are.
    """
    wrong_lines, right_lines = set[int](), set[int]()
    for function in _kernels(text):
        pieces = [Piece((frozenset(names([one.value])),), frozenset(one.names))
                  for one in assignments(function) if one.value is not None
                  and any(name.endswith(_POINTERS_END) for name in one.names)]
        for call in _accesses(function):
            if _method(call) == "store":
                lines = {call.lineno} | _lines_assigning(
                    function, _address_names(call, mask=True) | names(call.args[1:2]), _FAR)
                address = _address_names(call, mask=False)
                if address & reached(pointers, pieces)[0]:
                    wrong_lines |= lines
                elif address & reached(right, pieces)[0]:
                    right_lines |= lines
    return tuple(sorted(wrong_lines - right_lines))


def lines_of_loops(text: str, line: int) -> Lines:
    """The heads of the loops and conditions around a line, the innermost first."""
    around = [node for node in ast.walk(_function_at(text, line))
              if isinstance(node, ast.For | ast.While | ast.If) and line in lines_of(node)]
    return tuple(node.lineno for node in sorted(around, key=lambda node: -node.lineno))


def accesses(text: str, method: str) -> dict[int, ast.Call]:
    """The calls of ``load`` or ``store`` in all functions of a file, by their lines."""
    return {call.lineno: call for function in _functions(text) for call in _accesses(function)
            if _method(call) == method}


def lines_of_operands(text: str, line: int) -> Lines:
    """The lines that compute the values which a line of a kernel works on."""
    function = _function_at(text, line)
    here = [node for node in ast.walk(function) if getattr(node, "lineno", 0) == line]
    operands = {node.id for node in here
                if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)}
    operands |= names(node.target for node in here if isinstance(node, ast.AugAssign))
    return tuple(sorted(_lines_assigning(function, operands, 1) - {line}))


@_of_file
def lines_of_addresses(text: str) -> Lines:
    """The lines of all loads of kernels and those that give them their addresses, in order."""
    lines: set[int] = set()
    for function in _kernels(text):
        loads = [call for call in _accesses(function) if _method(call) == "load"]
        addresses = {name for call in loads for name in _address_names(call, mask=False)}
        lines |= {call.lineno for call in loads}
        lines |= _lines_assigning(function, addresses, _FAR)
    return tuple(sorted(lines))


def sizes_in(text: str, line: int) -> set[str]:
    """The constexpr parameters of a kernel that a line names, or all where it names none."""
    function = _function_at(text, line)
    sizes = {one.arg for one in function.args.args
             if one.annotation is not None and "constexpr" in ast.unparse(one.annotation)}
    named = {node.id for node in ast.walk(function)
             if isinstance(node, ast.Name) and node.lineno == line}
    return sizes & named or sizes


def indirect_lines(source: str, kernel: str) -> frozenset[int]:
    """Lines of accesses whose address depends on a load, as in a gather.

    That is their pointer, or their place in a descriptor. A name counts as loaded if any assignment
    to it does, wherever it stands: the order of statements is not followed, and neither are
    functions that the kernel calls.

    Args:
        source: of the file.
        kernel: its name; it stands at the top of the file. Without such a kernel, there are none.
    """
    tree = next((node for node in functions(syntax.shared(source)) if node.name == kernel), None)
    if tree is None:
        return frozenset()
    loaded, _ = reached([_LOAD], [Piece((frozenset(_sources(one.value)),), frozenset(one.names))
                                  for one in assignments(tree) if one.value is not None])
    return frozenset(
        line for node in ast.walk(tree)
        if isinstance(node, ast.Call) and last_name(node.func) in _ACCESSES
        and any(loaded & _sources(part) for part in (
            *node.args[:1], *(word.value for word in node.keywords if word.arg == "pointer")))
        for line in lines_of(node))


_LOAD = ""  # stands among names for a load


def _sources(value: ast.expr) -> set[str]:
    """The names in an expression, and ``_LOAD`` where it loads."""
    loads = any(isinstance(node, ast.Call) and last_name(node.func) in _LOADS
                for node in ast.walk(value))
    return names([value]) | ({_LOAD} if loads else set())


# -- lines of host code by what depends on them -------------------------------------------------


def lines_of_grid(text: str, line: int | None, entry: str = "") -> Lines:
    """The lines that compute the grid of a launch.

    That is the launch in ``line``; without a line the only launch, in the file or in the function
    ``entry``. Where the grid stands in the launch itself, that is its line.
    """
    lines: set[int] = set()
    for launch in _launches(text, line, entry):
        lines |= _lines_assigning(launch.function, names([launch.grid]), 1) or {launch.call.lineno}
    return tuple(sorted(lines))


def lines_of_arguments(text: str, parameters: Iterable[str], line: int | None = None, *,
                       kernel_line: int | None = None) -> Lines:
    """The lines that compute the values which launches pass by name, or else pass them.

    Args:
        text: of the file.
        parameters: the names by which the values are passed.
        line: of the launch. Without it, the only launch counts.
        kernel_line: a line of a kernel, all of whose launches count instead if it has any.
    """
    wanted, lines = set(parameters), set[int]()
    kernel = _function_at(text, kernel_line).name if kernel_line else ""
    own = [launch for launch in _all_launches(text)
           if isinstance(launch.kernel, ast.Name) and launch.kernel.id == kernel]
    for launch in own or _launches(text, line):
        for keyword in launch.call.keywords:
            if keyword.arg in wanted:
                value = keyword.value
                lines |= _lines_assigning(launch.function, names([value]), 1) or {value.lineno}
    return tuple(sorted(lines))


def keywords_of_launches(text: str, line: int | None) -> set[str]:
    """The names by which a launch passes arguments."""
    return {keyword.arg for launch in _launches(text, line) for keyword in launch.call.keywords
            if keyword.arg}


def lines_of_launches(text: str) -> Lines:
    return tuple(launch.call.lineno for launch in _launches(text, None))  # one or none


def lines_of_results(text: str, entry: str) -> Lines:
    """The lines that compute what a function returns."""
    lines: set[int] = set()
    for function in _functions(text):
        if function.name == entry:
            values = [node.value for node in ast.walk(function)
                      if isinstance(node, ast.Return) and node.value is not None]
            lines |= _lines_assigning(function, names(values), 1)
    return tuple(sorted(lines))


def lines_of_helpers(text: str, lines: Iterable[int]) -> Lines:
    """The lines of the host functions that some lines call."""
    here = set(lines)
    called = {node.func.id for node in ast.walk(syntax.tree_of(text)) if isinstance(node, ast.Call)
              and node.lineno in here and isinstance(node.func, ast.Name)}
    return tuple(line for function in _functions(text)
                 if function.name in called and not is_kernel(function)
                 for line in lines_of(function))


# -- accesses, launches and assignments of a function -------------------------------------------


@_of_file
def _functions(text: str) -> tuple[ast.FunctionDef, ...]:
    return tuple(node for node in ast.walk(syntax.tree_of(text))
                 if isinstance(node, ast.FunctionDef))


def _kernels(text: str) -> Iterator[ast.FunctionDef]:
    return filter(is_kernel, _functions(text))


def _function_at(text: str, line: int) -> ast.FunctionDef:
    """The function around a line, the outermost; an empty one where there is none."""
    nowhere = ast.FunctionDef("", ast.arguments([], [], None, [], [], None, []), [], [], lineno=0,
                              end_lineno=0)
    return next((function for function in _functions(text) if line in lines_of(function)), nowhere)


def _accesses(function: ast.FunctionDef) -> Iterator[ast.Call]:
    return (node for node in ast.walk(function)
            if isinstance(node, ast.Call) and _method(node) in _MASK_POSITION)


def _method(call: ast.Call) -> str:
    return call.func.attr if isinstance(call.func, ast.Attribute) else ""


def _address_names(call: ast.Call, mask: bool) -> set[str]:
    """The names in addresses and mask of an access; of one by a descriptor, that of this too."""
    addresses = names([call.func, *call.args[:1],
                       *(one.value for one in call.keywords if one.arg in _POINTERS)])
    return addresses | _mask_names(call) if mask else addresses


def _mask_names(call: ast.Call) -> set[str]:
    position = _MASK_POSITION[_method(call)]
    return names([*call.args[position:position + 1],
                  *(one.value for one in call.keywords if one.arg == "mask")])


class _Launch(NamedTuple):
    """``kernel[grid](…)`` in a function."""

    function: ast.FunctionDef
    call: ast.Call
    kernel: ast.expr
    grid: ast.expr


def _launches(text: str, line: int | None, entry: str = "") -> Sequence[_Launch]:
    """The launch of this line; without one, the launch if there is a single one, in all of the file
    or in the function ``entry``.
    """
    launches = _all_launches(text)
    if line is not None:
        return [launch for launch in launches if line in lines_of(launch.call)]
    if len(launches) > 1:
        launches = tuple(launch for launch in launches if launch.function.name == entry)
    return launches if len(launches) == 1 else ()


@_of_file
def _all_launches(text: str) -> tuple[_Launch, ...]:
    return tuple(_Launch(function, node, node.func.value, node.func.slice)
            for function in _functions(text) if not is_kernel(function)
            for node in ast.walk(function)
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Subscript))


def _lines_assigning(function: ast.FunctionDef, targets: set[str], steps: int,
                     without: Iterable[str] = ()) -> set[int]:
    """The lines of all assignments to names, and to those that their values are made of.

    Args:
        function: whose assignments count; loops do not.
        targets: the names.
        steps: how often names in the values are followed, the first assignments counted.
        without: names that are not followed.
    """
    statements = _assignments(function)
    lines: set[int] = set()
    followed: set[str] = set(without)
    for _ in range(steps):
        followed |= targets
        assigning = [one for one in statements if targets & one.names]
        lines |= {one.statement.lineno for one in assigning}
        targets = names(one.value for one in assigning if one.value is not None) - followed
        if not targets:
            break
    return lines


@lru_cache(maxsize=64)  # functions of ``_functions``, whose trees stay as they are
def _assignments(function: ast.FunctionDef) -> list[Assignment]:
    """The assignments of a function but loops."""
    return [one for one in assignments(function) if not isinstance(one.statement, ast.For)]
