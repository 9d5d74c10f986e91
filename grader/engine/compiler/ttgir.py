"""Reads Triton's IR (TTIR, TTGIR): pipelines, layouts, products and their places."""

import math
import re
from collections.abc import Callable, Iterator
from typing import Literal, NamedTuple

from grader.engine.compiler.ptx import Place

_ALIAS = re.compile(r"^(#loc\d*) = loc\((.*)\)$", re.MULTILINE)
_TRAILING = re.compile(r"loc\((#loc\d*)\)\s*$")
_NAMED = re.compile(r'"[^"]*"\((#loc\d*)\)$')
_CALLSITE = re.compile(r"callsite\((#loc\d*) at (#loc\d*)\)$")
_SOURCE = re.compile(r'"([^"]*)":(\d+):(\d+)')
_STAGED = re.compile(
    r"ttg\.memdesc_index .* : !ttg\.memdesc<(\d+)x([\dx]*)x(\w+), [^>]*#smem[^>]*> ->")
_ACCESS = re.compile(
    r"\b(tt\.load|tt\.store|tt\.atomic_rmw|tt\.atomic_cas|ttg\.async_copy_global_to_local) ")
_POINTERS = re.compile(  # the first operand's type
    r": \(?(?:tensor<(?P<shape>(?:\d+x)+))?!tt\.ptr<(?P<element>\w+)>")
_DEEPEST = 64  # calls
_DOT = re.compile(r"\btt\.dot(?:_scaled)? ")
_GROUP_DOT = re.compile(  # on tensor cores of Hopper: the sum that it goes on with, and its limit
    r"ttng\.warp_group_dot %[\w#]+, %[\w#]+, (%[\w#]+)(?:, (%\w+))? .*maxNumImpreciseAcc = (\d+)"
    r".* : [^*]*<\d+x(\d+)xf8")
_ZERO = re.compile(r"^\s*(%\w+) = arith\.constant (?:dense<0\.0+e\+00>|false)", re.MULTILINE)
_RESULT = re.compile(r"-> tensor<[^<>]*?, (#\w+)[^<>]*>")
_LAYOUT = re.compile(r"^(#\w+) = #ttg\.blocked<", re.MULTILINE)
_TENSOR = re.compile(r"tensor<((?:\d+x)+)(!tt\.ptr<)?(\w+)")
_LOOP = re.compile(r"\bscf\.(for|while) ")
_VALUE = re.compile(r"%\w+")
_ARGUMENT = re.compile(r"(%\w+) = ")  # of a loop's body, with its first value
_PRODUCT = re.compile(r"\btt\.dot (%\w+), (%\w+), ")
_SPLIT = re.compile(r"inputPrecision = (\w+x\d) : tensor<[\dx]+xf32>")  # sums of smaller types
_TERMS = {"tf32x3": 2}  # that one float32 becomes
_MOST_TERMS = 3
_LOOP_OPTIONS = re.compile(r"^\s*\} \{(.*)\}", re.MULTILINE)
_LOOP_STAGES = re.compile(r"tt\.num_stages = (\d+) : i32")
_ALIGNMENT = 1024  # bytes, of a buffer that tensor cores or TMA access
_SCRATCH = 1.5  # of the size of a tensor that changes its layout, with padding


class PointerAccess(NamedTuple):
    """An operation that accesses global memory by pointers; ``layout`` is empty for a scalar."""

    kind: Literal["load", "store", "atomic"]
    copies: bool  # to shared memory, asynchronously
    line: int | None  # of the kernel's file
    shape: tuple[int, ...]
    element: str
    layout: str


def pointer_accesses(ttgir: str, file: str) -> Iterator[PointerAccess]:
    """The accesses to global memory by pointers, in order.

    Args:
        file: name of the kernel's file.
    """
    locations = dict(_ALIAS.findall(ttgir))
    for row in ttgir.splitlines():
        access = _ACCESS.search(row)
        pointers = _POINTERS.search(row) if access else None
        if access is None or pointers is None:
            continue
        kind: Literal["load", "store", "atomic"] = (
            "store" if access[1] == "tt.store" else "atomic" if "atomic" in access[1] else "load")
        shape = tuple(map(int, pointers["shape"].split("x")[:-1])) if pointers["shape"] else ()
        layout = _closed(row[pointers.end():].removeprefix(", ")) if shape else ""
        trailing = _TRAILING.search(row)
        line = next((line for name, line in _frames(trailing[1] if trailing else "", locations)
                     if name == file), None)
        yield PointerAccess(kind, access[1].startswith("ttg."), line, shape, pointers["element"],
                            layout)


def _closed(text: str) -> str:
    """The text as far as the bracket that closes what is around it."""
    depth = 0
    for at, character in enumerate(text):
        depth += (character in "<{[(") - (character in ">}])")
        if depth < 0:
            return text[:at].strip()
    return text


def _frames(text: str, locations: dict[str, str], depth: int = 0) -> Iterator[tuple[str, int]]:
    """Files and lines of a location, the innermost first."""
    text = locations.get(text, text)
    if depth > _DEEPEST:
        return
    if source := _SOURCE.match(text):
        yield source[1].rpartition("/")[2], int(source[2])
    elif named := _NAMED.match(text):
        yield from _frames(named[1], locations, depth + 1)
    elif call := _CALLSITE.match(text):
        for part in call.groups():
            yield from _frames(part, locations, depth + 1)


def multiplies(ttir: str) -> bool:
    """Whether a kernel holds a matrix product."""
    return _DOT.search(ttir) is not None


def rounds_to_tf32(ttir: str) -> bool:
    """Whether a matrix product may round float32 to TF32 without compensation."""
    return "inputPrecision = tf32 :" in ttir


def imprecise_sums(ttgir: str) -> int:
    """The most float8 products that tensor cores of Hopper sum at reduced precision.

    Returns:
        The depth of the tile where a product starts at zero; else its ``max_num_imprecise_acc``,
        2**30 by default; 0 without such products.
    """
    zeros = set(_ZERO.findall(ttgir))
    return max((min(int(limit), int(depth)) if zeros & {total, goes_on} else int(limit)
                for total, goes_on, limit, depth in _GROUP_DOT.findall(ttgir)), default=0)


def is_special(ttir: str) -> bool:
    """Whether loops have options beside ``num_stages``, or functions are not inlined."""
    return "tt.call " in ttir or any(
        _LOOP_STAGES.sub("", options).strip() for options in _LOOP_OPTIONS.findall(ttir))


def most_shared(ttir: str, num_stages: int) -> int:
    """An upper bound of the shared memory of a kernel in bytes, before layouts are chosen.

    It holds for kernels that are not special. Operands of products and tensors of descriptors have
    buffers; of what a loop loads there is one for each stage of its pipeline and one more. What
    other operations need, such as a conversion of layouts, ends with them. So do buffers of an
    outermost loop for values that it computes; those of other values may be filled before it.
    """
    stages = max([num_stages, *map(int, _LOOP_STAGES.findall(ttir))])
    always, largest = 0, 0
    of_loops = [0]
    loops: list[int] = []  # their indentation
    arguments, computed = set[str](), set[str]()  # in the current outermost loop
    for row in ttir.splitlines():
        indent = len(row) - len(row.lstrip())
        while loops and indent <= loops[-1]:
            loops.pop()
        names = _VALUE.findall(row)
        if loops and names and row.lstrip().startswith(names[0]):
            varies = not (arguments | computed).isdisjoint(names[1:])
            (computed.add if varies else computed.discard)(names[0])
        if loop := _LOOP.search(row):
            if not loops:
                of_loops.append(0)
                arguments, computed = set(), set()
            loops.append(indent)
            if loop[1] == "for":
                arguments.update(_ARGUMENT.findall(row, loop.end()))
        tensors = _TENSOR.findall(row)
        if not tensors:
            continue
        values = [_n_bytes(shape, element) for shape, _, element in tensors]
        largest = max(largest, *(_n_bytes(shape, "i64" if pointer else element)
                                 for shape, pointer, element in tensors))
        pipelined = loops and stages > 1
        buffers: list[tuple[str, int]] = []
        if "tt.descriptor_" in row or (pipelined and "tt.load " in row):
            buffers = [(names[0], max(values) * (stages + 1 if pipelined else 1))]
        elif product := _PRODUCT.search(row):
            split = _SPLIT.search(row)
            terms = _TERMS.get(split[1], _MOST_TERMS) if split else 1
            buffers = [(name, value * terms)
                       for name, value in zip(product.groups(), values, strict=False)]
        elif _DOT.search(row):
            always += sum(values)
        for name, value in buffers:
            if name in computed:
                of_loops[-1] += value
            else:
                always += value
    return always + max(of_loops) + int(_SCRATCH * largest)


def _n_bytes(shape: str, element: str) -> int:
    """The size of a tensor such as "64x16x" of "bf16" in shared memory."""
    bits = re.search(r"\d+", element)
    n_bytes = math.prod(map(int, shape.split("x")[:-1])) * max(1, int(bits[0]) // 8 if bits else 8)
    return -(-n_bytes // _ALIGNMENT) * _ALIGNMENT


def stages(ttgir: str) -> int:
    """The number of stages of the deepest pipeline in shared memory; 0 without one.

    Software pipelining and warp specialization give a loop a ring of buffers. Rings of barriers do
    not count.
    """
    return max((int(count) for count, shape, kind in _STAGED.findall(ttgir)
                if (kind, shape) != ("i64", "1")), default=0)


def conversions(ttgir: str) -> list[Place | None]:
    """The places of layout conversions."""
    return _places(ttgir, lambda line: "ttg.convert_layout " in line)


def products_without_tensor_cores(ttgir: str) -> list[Place | None]:
    """The places of matrix products in a blocked layout, which become multiply-adds."""
    plain = set(_LAYOUT.findall(ttgir))
    return _places(ttgir, lambda line: "tt.dot" in line
                   and not plain.isdisjoint(_RESULT.findall(line)[:1]))


def _places(ttgir: str, selects: Callable[[str], bool]) -> list[Place | None]:
    locations = dict(_ALIAS.findall(ttgir))
    return [_place(line, locations) for line in ttgir.splitlines() if selects(line)]


def _place(line: str, locations: dict[str, str]) -> Place | None:
    """The innermost source of one operation."""
    trailing = _TRAILING.search(line)
    text = trailing[0].strip()[4:-1] if trailing else ""
    for _ in range(len(locations) + 1):
        if source := _SOURCE.match(text):
            return source[1].rpartition("/")[2], int(source[2]), int(source[3])
        inner = _NAMED.match(text) or _CALLSITE.match(text)
        text = locations.get(inner[1] if inner else text, "")
    return None
