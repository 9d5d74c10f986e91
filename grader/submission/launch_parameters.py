"""Constants and meta-parameters of launches: their names, and the file with other values.

Nothing is run: values are replaced in the text, line for line, where the syntax tree has them. A
parameter is a constant of the module, a ``tl.constexpr`` parameter of a kernel that a launch or a
``triton.Config`` passes, or ``num_warps`` and ``num_stages`` of every launch. Where a launch passes
a variable of its function, the variable gets the value, since the grid may depend on it too.
"""

import ast
import difflib
import io
import tokenize
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from grader.submission import syntax
from grader.submission.dataflow import kernel_definitions
from grader.submission.source import KERNEL, Source
from grader.submission.syntax import last_name

OPTIONS = ("num_warps", "num_stages")
Value = int | float | bool | str | None
_Function = ast.FunctionDef | ast.AsyncFunctionDef
_CONSTANTS = (ast.Constant, ast.UnaryOp, ast.BinOp, ast.Name, ast.IfExp)  # may be numbers


class UnknownParameter(ValueError):
    """No file has a parameter ``name``; ``nearest`` may be meant; ``names`` are all."""

    def __init__(self, name: str, names: Sequence[str]) -> None:
        super().__init__(name)
        self.name = name
        self.names = tuple(names)
        by_case = [one for one in names if one.lower() == name.lower()]
        self.nearest = next(iter(by_case or difflib.get_close_matches(name, names, n=1)), "")


def parameters(*texts: str) -> tuple[str, ...]:
    """The names that can be set: constants of modules first, options of launches last."""
    files = _places_of(texts)
    launches = [launch for places in files for launch in places.launches]
    names = [*(name for places in files for name in places.constants),
             *(name for launch in launches for name in launch.passed),
             *(name for places in files for config in places.configs for name in config.values),
             *(name for launch in launches for name in launch.defaults)]
    return (*dict.fromkeys(name for name in names if name not in OPTIONS),
            *(OPTIONS if launches else ()))


def with_values(submitted: Source, values: Mapping[str, Value]) -> Source:
    """The submission with other values in all of its files.

    Raises:
        UnknownParameter: no file has such a parameter.
    """
    texts = {name: text for name, text in submitted.texts.items() if name.endswith(".py")}
    texts[submitted.kernel_file] = submitted.text
    names = parameters(*texts.values())
    for name in values:
        if name not in names:
            raise UnknownParameter(name, names)
    changed = dict(zip(texts, rewritten(tuple(texts.values()), values), strict=True))
    others = {name: text.encode() for name, text in changed.items() if name != KERNEL}
    return replace(submitted.with_text(changed[submitted.kernel_file]),
                   data=changed[KERNEL].encode(), files={**submitted.files, **others})


def rewritten(texts: Sequence[str], values: Mapping[str, Value]) -> list[str]:
    """The texts of files with other values; each line keeps its number."""
    new = []
    for text, places in zip(texts, _places_of(texts), strict=True):
        edits = _Edits(text)
        for name, value in values.items():
            _set(name, repr(value), places, edits)
        new.append(edits.applied())
    return new


def _places_of(texts: Sequence[str]) -> list["_Places"]:
    trees = [syntax.tree_of(text) for text in texts]
    kernels = {one.node.name: one.node for tree in trees for one in kernel_definitions(tree)}
    return [_Places(tree, kernels) for tree in trees]


@dataclass(frozen=True)
class _Launch:
    """``kernel[grid](…)``: the parameters that it passes, and those left to their defaults."""

    call: ast.Call
    function: _Function | None  # around it
    passed: Mapping[str, ast.expr]
    defaults: frozenset[str]
    tuned: bool  # the kernel has an autotuner


@dataclass(frozen=True)
class _Config:
    """``triton.Config({…}, …)``"""

    call: ast.Call
    values: Mapping[str, ast.expr]


class _Places:
    """The expressions of a file that parameters get their values from."""

    def __init__(self, tree: ast.Module, kernels: Mapping[str, ast.FunctionDef]) -> None:
        self.constants: dict[str, list[tuple[ast.expr, int, int]]] = {}
        for statement in tree.body:
            for name, place in _bound(statement):
                if isinstance(place[0], _CONSTANTS):
                    self.constants.setdefault(name, []).append(place)
        words = {name for node in kernels.values() for name in _constexprs(node)} | {*OPTIONS}
        self.configs = [_Config(node, _of_config(node)) for node in ast.walk(tree)
                        if isinstance(node, ast.Call) and last_name(node.func) == "Config"]
        self.launches = [
            _launch(node, function, kernels) for node, function in _calls(tree)
            if isinstance(node.func, ast.Subscript) and (
                last_name(node.func.value) in kernels
                or any(one.arg in words for one in node.keywords))]


def _launch(call: ast.Call, function: _Function | None,
            kernels: Mapping[str, ast.FunctionDef]) -> _Launch:
    assert isinstance(call.func, ast.Subscript)
    kernel = kernels.get(last_name(call.func.value))
    constexprs = _constexprs(kernel) if kernel else []
    passed = {word.arg: word.value for word in call.keywords if word.arg
              and (kernel is None or word.arg in constexprs or word.arg in OPTIONS)}
    if kernel and not any(isinstance(one, ast.Starred) for one in call.args):
        names = syntax.parameter_names(kernel)
        passed |= {name: value for name, value in zip(names, call.args, strict=False)
                   if name in constexprs}
    defaults = {argument.arg for argument, _ in _with_defaults(kernel)} if kernel else set()
    tuned = kernel is not None and any(
        last_name(one.func if isinstance(one, ast.Call) else one) == "autotune"
        for one in kernel.decorator_list)
    return _Launch(call, function, passed,
                   frozenset(defaults & {*constexprs} - passed.keys()), tuned)


def _set(name: str, value: str, places: _Places, edits: "_Edits") -> None:
    """Edits every place of one parameter."""
    for place in places.constants.get(name, ()):
        edits.replace(place, value)
    for config in places.configs:
        if name in config.values:
            edits.replace((config.values[name], 0, 0), value)
        elif name in OPTIONS:
            edits.add(config.call, name, value)
    for launch in places.launches:
        if name in launch.passed:
            for place in _origins(launch.passed[name], launch.function, places):
                edits.replace(place, value)
        elif name in launch.defaults or (name in OPTIONS and not launch.tuned):
            edits.add(launch.call, name, value)


def _origins(value: ast.expr, function: _Function | None,
             places: _Places) -> list[tuple[ast.expr, int, int]]:
    """Where a passed value is written: the assignments of a variable, or the launch itself."""
    if isinstance(value, ast.Name):
        local = [place for statement in ast.walk(function) if isinstance(statement, ast.stmt)
                 for name, place in _bound(statement) if name == value.id] if function else []
        if origins := local or places.constants.get(value.id, []):
            return origins
    return [(value, 0, 0)]


def _bound(statement: ast.stmt) -> Iterator[tuple[str, tuple[ast.expr, int, int]]]:
    """Names that an assignment binds: the value, which item of it, and of how many (0: all)."""
    match statement:
        case ast.AnnAssign(ast.Name(name), value=ast.expr() as value):
            yield name, (_inside(value), 0, 0)
        case ast.Assign(targets, value):
            for target in targets:
                if isinstance(target, ast.Name):
                    yield target.id, (_inside(value), 0, 0)
                elif isinstance(target, ast.Tuple | ast.List):
                    yield from _items(target.elts, value)


def _items(targets: Sequence[ast.expr],
           value: ast.expr) -> Iterator[tuple[str, tuple[ast.expr, int, int]]]:
    if any(isinstance(one, ast.Starred) for one in targets):
        return
    pairs = isinstance(value, ast.Tuple | ast.List) and len(value.elts) == len(targets)
    for number, target in enumerate(targets):
        if isinstance(target, ast.Name):
            yield target.id, (value.elts[number], 0, 0) if pairs and isinstance(
                value, ast.Tuple | ast.List) else (value, number, len(targets))


def _constexpr(value: ast.expr) -> bool:
    return isinstance(value, ast.Call) and last_name(value.func) == "constexpr" \
        and len(value.args) == 1


def _inside(value: ast.expr) -> ast.expr:
    """``64`` of ``tl.constexpr(64)``."""
    return value.args[0] if isinstance(value, ast.Call) and _constexpr(value) else value


def _of_config(call: ast.Call) -> dict[str, ast.expr]:
    values = {word.arg: word.value for word in call.keywords if word.arg in OPTIONS}
    match call.args:
        case [ast.Dict(keys, items), *_]:
            values |= {key.value: item for key, item in zip(keys, items, strict=True)
                       if isinstance(key, ast.Constant) and isinstance(key.value, str)}
    return values


def _constexprs(kernel: ast.FunctionDef) -> list[str]:
    arguments = kernel.args
    return [one.arg for one in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)
            if one.annotation is not None and "constexpr" in ast.unparse(one.annotation)]


def _with_defaults(kernel: ast.FunctionDef) -> list[tuple[ast.arg, ast.expr]]:
    arguments = kernel.args
    ordinary = [*arguments.posonlyargs, *arguments.args]
    pairs = list(zip(reversed(ordinary), reversed(arguments.defaults), strict=False))
    return pairs + [(one, default) for one, default in zip(
        arguments.kwonlyargs, arguments.kw_defaults, strict=True) if default is not None]


def _calls(tree: ast.Module) -> Iterator[tuple[ast.Call, _Function | None]]:
    """All calls, each with the innermost function around it."""
    pending: list[tuple[ast.AST, _Function | None]] = [(tree, None)]
    while pending:
        node, function = pending.pop()
        if isinstance(node, ast.Call):
            yield node, function
        inner = node if isinstance(node, _Function) else function
        pending += [(child, inner) for child in ast.iter_child_nodes(node)]


# -- edits ----------------------------------------------------------------------------------------


@dataclass
class _Edits:
    """Replacements in a text, by the bytes that they start and end at."""

    text: str
    items: dict[tuple[int, int, int], dict[int, str]] = field(default_factory=dict)
    added: dict[int, dict[str, str]] = field(default_factory=dict)  # by the byte of a call's `)`
    calls: dict[int, tuple[int, int]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._data = self.text.encode()
        self._starts = [0]
        for line in self._data.split(b"\n"):
            self._starts.append(self._starts[-1] + len(line) + 1)

    def _span(self, node: ast.expr) -> tuple[int, int]:
        assert node.end_lineno is not None and node.end_col_offset is not None
        return (self._starts[node.lineno - 1] + node.col_offset,
                self._starts[node.end_lineno - 1] + node.end_col_offset)

    def replace(self, place: tuple[ast.expr, int, int], value: str) -> None:
        """Replaces an expression, or one of the items that it is unpacked into."""
        node, number, count = place
        self.items.setdefault((*self._span(node), count), {})[number] = value

    def add(self, call: ast.Call, name: str, value: str) -> None:
        """Passes a keyword to a call."""
        span = self._span(call)
        self.calls[span[1] - 1] = span
        self.added.setdefault(span[1] - 1, {})[name] = value

    def applied(self) -> str:
        """The text with all replacements, of which an outer one takes the place of inner ones."""
        edits = [(start, end, self._replacement(start, end, count, values))
                 for (start, end, count), values in self.items.items()]
        edits += [(end, end, self._keywords(end, words)) for end, words in self.added.items()]
        data, before = self._data, len(self._data) + 1
        kept: list[tuple[int, int, bytes]] = []
        for start, end, new in sorted(edits, key=lambda edit: (edit[0], -edit[1])):
            if not kept or start >= kept[-1][1]:
                kept.append((start, end, new))
        for start, end, new in reversed(kept):
            assert end <= before
            data, before = data[:start] + new + data[end:], start
        return data.decode()

    def _replacement(self, start: int, end: int, count: int, values: Mapping[int, str]) -> bytes:
        old = self._data[start:end]
        if count:  # of what is unpacked, the other items stay
            items = ", ".join(values.get(number, f"v[{number}]") for number in range(count))
            return b"(lambda v: (%s,))(%s)" % (items.encode(), old)
        new, lines = values[0].encode(), old.count(b"\n")
        return b"(" + new + b"\n" * lines + b")" if lines else new

    def _keywords(self, end: int, words: Mapping[str, str]) -> bytes:
        start, stop = self.calls[end]
        code = f"({self._data[start:stop].decode()})"
        tokens = [token for token in tokenize.generate_tokens(io.StringIO(code).readline)
                  if token.string.strip() and token.type != tokenize.COMMENT]
        comma = "" if tokens[-3].string in (",", "(") else ", "
        return (comma + ", ".join(f"{name}={value}" for name, value in words.items())).encode()
