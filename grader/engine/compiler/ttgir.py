"""What Triton's own intermediate code says: pipelines, layouts, products and their places."""

from __future__ import annotations

import re

from grader.engine.compiler.ptx import Place

_ALIAS = re.compile(r"^(#loc\d*) = loc\((.*)\)$", re.MULTILINE)
_TRAILING = re.compile(r"loc\((#loc\d*)\)\s*$")
_NAMED = re.compile(r'"[^"]*"\((#loc\d*)\)$')
_CALLSITE = re.compile(r"callsite\((#loc\d*) at (#loc\d*)\)$")
_SOURCE = re.compile(r'"([^"]*)":(\d+):(\d+)')
_STAGED = re.compile(
    r"ttg\.memdesc_index .* : !ttg\.memdesc<(\d+)x([\dx]*)x(\w+), [^>]*#smem[^>]*> ->")
_DOT = re.compile(r"\btt\.dot(?:_scaled)? ")
_GROUP_DOT = re.compile(  # on tensor cores of Hopper: the sum that it goes on with, and its limit
    r"ttng\.warp_group_dot %[\w#]+, %[\w#]+, (%[\w#]+)(?:, (%\w+))? .*maxNumImpreciseAcc = (\d+)"
    r".* : [^*]*<\d+x(\d+)xf8")
_ZERO = re.compile(r"^\s*(%\w+) = arith\.constant (?:dense<0\.0+e\+00>|false)", re.MULTILINE)
_RESULT = re.compile(r"-> tensor<[^<>]*?, (#\w+)[^<>]*>")
_LAYOUT = re.compile(r"^(#\w+) = #ttg\.blocked<", re.MULTILINE)


def multiplies(ttir: str) -> bool:
    """Whether a kernel holds a matrix product."""
    return _DOT.search(ttir) is not None


def rounds_to_tf32(ttir: str) -> bool:
    """Whether a matrix product may take float32 for TF32, with nothing done against the loss."""
    return "inputPrecision = tf32 :" in ttir


def imprecise_sums(ttgir: str) -> int:
    """How many products of float8 tensor cores of Hopper add up at most before a sum leaves them.

    As many as a product of tiles is deep where it begins at zero; else as its operand
    ``max_num_imprecise_acc`` says, 2**30 where that says nothing; 0 where there is none.
    """
    zeros = set(_ZERO.findall(ttgir))
    most = 0
    for total, goes_on, limit, depth in _GROUP_DOT.findall(ttgir):
        begins = total in zeros or goes_on in zeros
        most = max(most, min(int(limit), int(depth)) if begins else int(limit))
    return most


def stages(ttgir: str) -> int:
    """How many tiles the deepest ring of buffers in shared memory holds; 0 where there is none.

    A ring is what software pipelining and warp specialization make of a loop. Barriers lie in
    rings of their own, which do not count.
    """
    depth = 0
    for count, shape, kind in _STAGED.findall(ttgir):
        if not (kind == "i64" and shape == "1"):
            depth = max(depth, int(count))
    return depth


def conversions(ttgir: str) -> list[Place | None]:
    """Where values change their layout."""
    return _places(ttgir, "ttg.convert_layout ")


def products_without_tensor_cores(ttgir: str) -> list[Place | None]:
    """Where a matrix product keeps a layout of plain threads: it becomes multiply-adds."""
    plain = set(_LAYOUT.findall(ttgir))
    locations = dict(_ALIAS.findall(ttgir))
    return [_place(line, locations) for line in ttgir.splitlines()
            if "tt.dot" in line and (result := _RESULT.search(line)) and result[1] in plain]


def _places(ttgir: str, operation: str) -> list[Place | None]:
    locations = dict(_ALIAS.findall(ttgir))
    return [_place(line, locations) for line in ttgir.splitlines() if operation in line]


def _place(line: str, locations: dict[str, str]) -> Place | None:
    """The innermost source of one operation."""
    found = _TRAILING.search(line)
    text = found[0].strip()[4:-1] if found else ""
    for _ in range(len(locations) + 1):
        if source := _SOURCE.match(text):
            return source[1].rpartition("/")[2], int(source[2]), int(source[3])
        inner = _NAMED.match(text) or _CALLSITE.match(text)
        text = locations.get(inner[1] if inner else text, "")
    return None
