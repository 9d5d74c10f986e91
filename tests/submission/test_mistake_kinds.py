"""Kinds of mistakes: what one statement has wrong, beside the right one."""

from __future__ import annotations

import ast

import pytest

from grader.diagnosis import messages
from grader.submission.mistake_kinds import kind_of, part_of

# (the wrong statement, the right one, the kind)
KINDS = [
    ("acc = tl.zeros((M, N), dtype=tl.float16)", "acc = tl.zeros((M, N), dtype=tl.float32)",
     "narrow type"),
    ("p = a + m[:, None] * stride_ak + k[None, :] * stride_am",
     "p = a + m[:, None] * stride_am + k[None, :] * stride_ak", "strides"),
    ("p = x + h * stride_xw + w * stride_xh", "p = x + h * stride_xh + w * stride_xw",
     "height and width"),
    ("mean = a + b / n", "mean = (a + b) / n", "parentheses"),
    ("total = tl.sum(x, axis=0)", "total = tl.sum(x, axis=1)", "reduction axis"),
    ("total = tl.sum(x, 0)", "total = tl.sum(x, 1)", "reduction axis"),
    ("total = tl.sum(x)", "total = tl.sum(x, axis=1)", "reduction axis"),
    ("pid = tl.program_id(1)", "pid = tl.program_id(0)", "axis"),
    ("n = a.stride(0)", "n = a.stride(1)", "axis"),
    ("acc = acc", "acc = acc + bias", "missing term"),
    ("acc = acc", "acc = acc * alpha", "missing factor"),
    ("h = m % W", "h = m // W % H", "missing factor"),
    ("m = i < H", "m = (i >= 0) & (i < H)", "missing condition"),
    ("m = i < H", "m = (i < H) & (j < W)", "missing condition"),
    ("y = s * n", "y = s", "superfluous factor"),
    ("y = tl.max(x, axis=0)", "y = tl.sum(x, axis=0)", "function"),
    ("y = tl.where(x < 0, x, 0.0)", "y = tl.where(x < 0, 0.0, x)", "branches"),
    ("r = 1.0 / tl.sqrt(v) + eps", "r = 1.0 / tl.sqrt(v + eps)", "placement"),
    ("out = acc.to(tl.float16)", "out = (acc + bias).to(tl.float16)", "missing term"),
    ("y = tl.sqrt(s + eps)", "y = tl.sqrt(s)", "root"),
    ("y = tl.exp(s + eps)", "y = tl.exp(s)", "superfluous term"),
    ("k = tl.exp(b - a)", "k = tl.exp(a - b)", "operands"),
    ("k = a * b", "k = a + b", "operator"),
    ("mask = offs <= n", "mask = offs < n", "comparison"),
    ("x = tl.load(p)", "x = tl.load(p, mask=mask)", "no mask"),
    ("x = tl.load(p, mask=mask)", "x = tl.load(p, mask=mask, other=0.0)", "no other"),
    ("x = tl.load(p)", "x = tl.load(p).to(tl.float32)", "no cast"),
    ("x = tl.load(p).to(tl.float16)", "x = tl.load(p)", "needless cast"),
    ("m = a[:, None] & b[:, None]", "m = a[:, None] & b[None, :]", "broadcast"),
    ("f(b, a, c)", "f(a, b, c)", "arguments"),
    ("acc = tl.dot(a, b)", "acc = tl.dot(a, b, acc)", "missing argument"),
    ("acc = tl.dot(a, b)", "acc = tl.dot(a, b, acc, input_precision='ieee')", "missing argument"),
    ("acc = tl.dot(a, b, acc)", "acc = tl.dot(a, b)", "superfluous argument"),
    ("acc = tl.dot(a, b)", "acc = tl.dot(a, b, input_precision='ieee')", "no precision"),
    ("n = pid % height", "n = pid // height", "operator"),
    ("n = a * b + c", "n = a // b - c", "operator"),
    ("n = pid % width", "n = pid // height", "operation"),
    ("block = 1000", "block = 1024", "number"),
    ("x = a", "x = b", "name"),
    ("p = x_ptr + m * sxn + n * sxm", "p = x_ptr + m * sxm + n * sxn", "strides"),
    ("p = x_ptr + m * ab + n * cd", "p = x_ptr + m * cd + n * ab", "names"),
    ("p = x_ptr + m + n * ab", "p = x_ptr + m * ab + n", "terms"),
    (None, "tl.store(p, x)", "no store"),
    (None, "acc *= scale", "missing update"),
    (None, "y = f(x)", "missing statement"),
    ("acc = a * b", "acc += a * b", "overwritten"),
    ("acc += tl.dot(a, b, acc)", "acc = tl.dot(a, b, acc)", "added twice"),
    ("f(a.stride(0), a.stride(1))", "f(c.stride(0), c.stride(1))", "name"),
    ("x = tl.load(p, mask=m, other=0.0)", "x = tl.load(p, mask=m, other=-float('inf'))", "other"),
    ("kernel[grid](x)", None, "superfluous statement"),
    ("x = f(a)", "x = g(h(b), c)", ""),
    ("w = tl.load(w_ptr + row, mask=m, other=0.0)", "w = tl.load(w_ptr + cols, mask=m)", "name"),
    ("tl.store(m_ptr + row + cols, x, mask=m)", "tl.store(m_ptr + row, x)", "superfluous term"),
    ("y = tl.exp(-x)", "y = tl.exp(x)", "sign"),
    ("y = a // b", "y = a * (1.0 / b)", "operation"),
    ("f(x.stride(1), y.stride(1))", "f(x.stride(0), y.stride(0))", "axis"),
    ("f(x, 1e-6)", "f(x, eps)", "constant"),
    ("kernel(x, n)", "kernel[grid](x, n)", "no grid"),
    ("t = p.element_ty", "t = p.dtype.element_ty", "missing attribute"),
    ("tl.store(x, p + offs, mask=m)", "tl.store(p + offs, x, mask=m)", "arguments"),
    ("y = tl.where(x - a, m, 0.0)", "y = tl.where(m, x - a, 0.0)", "arguments"),
    ("tl.store(p + row + cols * s, x)", "tl.store(p + row * s + cols, x)", "terms"),
    ("grid = (cdiv(n, b), cdiv(m, a))", "grid = (cdiv(m, a), cdiv(n, b))", "order"),
    ("offs = tl.arange(1, BLOCK + 1)", "offs = tl.arange(0, BLOCK)", "range"),
]


def _statement(code: str | None) -> ast.stmt | None:
    return ast.parse(code).body[0] if code else None


@pytest.mark.parametrize(("wrong", "right", "kind"), KINDS)
def test_a_statement_differs_by_a_kind_of_mistake(wrong, right, kind):
    assert kind_of(_statement(wrong), _statement(right)) == kind


@pytest.mark.parametrize("kind", sorted({kind for _, _, kind in KINDS}))
def test_the_sentence_of_a_kind_holds_no_code_of_a_solution(kind):
    words = messages.mistake(kind)

    assert words.endswith(".")
    assert "tl." not in words
    assert "stride_" not in words


@pytest.mark.parametrize(("wrong", "right", "part"), [
    ("total = p * n", "total = p * size", "n"),
    ("y = tl.max(x, axis=0)", "y = tl.sum(x, axis=0)", "tl.max"),
    ("mask = offs <= n", "mask = offs < n", "offs <= n"),
    ("k = a * c + b * d", "k = a + c - b * d", "a * c + b * d"),
    ("f(b, a, c)", "f(a, b, c)", "b, a"),
    ("f(c, a, b)", "f(a, b, c)", ""),
    ("f(b, a.stride(0), a.stride(1))", "f(b, c.stride(0), c.stride(1))", "a.stride(0)"),
    ("f(a, a + b)", "f(c, c + b)", "a"),
    ("m = tl.max(x, axis=0)", "m = tl.max(x, axis=1)", "axis=0"),
    ("y = x * 2 + a", "y = x * 3 + a", "x * 2"),
    ("n = 2", "n = 3", "2"),
    ("f(x.stride(1), y.stride(1))", "f(x.stride(0), y.stride(0))", "x.stride(1)"),
    ("f(x, 1e-6)", "f(x, eps)", "1e-6"),
    ("acc *= scale", None, ""),
    (None, "acc *= scale", ""),
    (f"x = {' + '.join('abcdefghijklmnopqrst')} + y", "x = f(y)", ""),
])
def test_the_part_is_the_submission_s_expression_where_a_single_one_differs(wrong, right, part):
    assert part_of(_statement(wrong), _statement(right), wrong) == part


def test_the_other_way_round_is_another_mistake():
    given = {kind_of(_statement(right), _statement(wrong)) for wrong, right, kind in KINDS
             if kind in ("narrow type", "no cast", "missing term", "no mask")}

    assert given.isdisjoint({"narrow type", "no cast", "missing term", "no mask"})
