"""Honest classes: students who work alone, and the files of the course that are right or wrong."""

from __future__ import annotations

import functools
import random
import tempfile
from pathlib import Path

import grader
from tests.fidelity import variants
from tritonlab.classroom.similarity.compare import ClassSource
from tritonlab.course import course
from tritonlab.course.course import Module

# The answers to the blanks of softmax that students give, the most frequent first.
ANSWERS = {
    1: ["import torch\nimport triton\nimport triton.language as tl",
        "import torch\n\nimport triton\nfrom triton import language as tl",
        "import triton\nimport triton.language as tl\nimport torch"],
    2: ["@triton.jit"],
    3: ["tl.program_id(0).to(tl.int64)", "tl.program_id(axis=0).to(tl.int64)",
        "tl.cast(tl.program_id(0), tl.int64)", "tl.program_id(0)"],
    4: ["x_ptr + row * stride_x", "row * stride_x + x_ptr", "x_ptr + stride_x * row",
        "x_ptr + (row * stride_x)", "x_ptr + row.to(tl.int64) * stride_x"],
    5: ["tl.arange(0, BLOCK_SIZE)"],
    6: ["cols < n_cols", "n_cols > cols", "(cols < n_cols)", "cols <= n_cols - 1"],
    7: ['tl.load(row_start + cols, mask=mask, other=-float("inf"))',
        'tl.load(row_start + cols, mask=mask, other=float("-inf"))',
        "tl.load(row_start + cols, mask, other=-float('inf'))",
        "tl.load(row_start + cols, mask=mask, other=0.0)", "tl.load(row_start + cols, mask=mask)",
        "tl.load(row_start + cols, mask=cols < n_cols, other=-1e30)"],
    8: ["x.to(tl.float32)", "tl.cast(x, tl.float32)", "x.cast(tl.float32)", "x"],
    9: ["tl.max(x, axis=0)", "tl.max(x, 0)", "tl.max(x)", "tl.max(tl.where(mask, x, -1e30), 0)"],
    10: ["x - row_max", "(x - row_max)", "x - tl.max(x, axis=0)", "x"],
    11: ["tl.exp(shifted)", "tl.math.exp(shifted)", "tl.exp2(shifted * 1.4426950408889634)",
         "tl.where(mask, tl.exp(shifted), 0.0)"],
    12: ["tl.sum(numerator, axis=0)", "tl.sum(numerator, 0)", "tl.sum(numerator)",
         "tl.sum(tl.where(mask, numerator, 0.0), axis=0)"],
    13: ["numerator / denominator", "numerator * (1.0 / denominator)",
         "numerator * (1 / denominator)",
         "tl.div_rn(numerator, denominator)", "numerator / row_max"],
    14: ["tl.store(out_ptr + row * stride_out + cols, y, mask=mask)",
         "tl.store(out_ptr + row * stride_out + cols, y.to(out_ptr.dtype.element_ty), mask=mask)",
         "tl.store(out_ptr + stride_out * row + cols, y, mask=mask)",
         "tl.store(out_ptr + row * stride_out + cols, y, mask)",
         "tl.store(out_ptr + row * stride_x + cols, y, mask=mask)",
         "tl.store(out_ptr + row * stride_out + cols, y)"],
    15: ["triton.next_power_of_2(n_cols)", "max(triton.next_power_of_2(n_cols), 16)",
         "triton.next_power_of_2(x.shape[1])", "1 << (n_cols - 1).bit_length()", "n_cols"],
    16: ["torch.empty((n_rows, n_cols), dtype=x.dtype, device=x.device)",
         "torch.empty_like(x)", "x.new_empty(x.shape)", "torch.empty_like(x).contiguous()",
         "torch.empty(x.shape, dtype=x.dtype, device=x.device)",
         "torch.zeros(x.shape, device=x.device, dtype=x.dtype)", "x.new_empty((n_rows, n_cols))"],
    17: ["(n_rows,)", "(n_rows, )", "(n_rows, 1, 1)", "(x.shape[0],)", "(n_rows + 1,)"],
    18: ["4", "8", "4 if block_size < 2048 else 8", "16 if block_size >= 4096 else 8",
         "4 if block_size <= 1024 else 8 if block_size <= 4096 else 16",
         "min(32, max(2, block_size // 1024))", "min(16, max(4, block_size // 512))",
         "max(2, min(16, block_size // 1024))", "2 if block_size < 1024 else 16"],
    19: ["softmax_kernel[grid](x, out, n_cols, x.stride(0), out.stride(0), BLOCK_SIZE=block_size, "
         "num_warps=num_warps)",
         "softmax_kernel[grid](x, out, n_cols, x.stride(0), out.stride(0), block_size, "
         "num_warps=num_warps)",
         "softmax_kernel[grid](\n        x,\n        out,\n        n_cols,\n        x.stride(0),\n"
         "        out.stride(0),\n        BLOCK_SIZE=block_size,\n        num_warps=num_warps,\n"
         "    )",
         "softmax_kernel[grid](x, out, n_cols, x.stride()[0], out.stride()[0], "
         "BLOCK_SIZE=block_size, num_warps=num_warps)"],
}
MISTAKES = {3: 3, 7: 3, 8: 3, 10: 3, 13: 4, 14: 4, 15: 4, 17: 4}  # TODO: first wrong answer
REMARKS = ("from the lesson", "one row per program", "neutral for max", "needed for wide rows",
           "avoid overflow", "as in the tutorial", "power of two", "row is contiguous",
           "float32 for accuracy", "padding", "in elements", "mask off the padding",
           "why 64 bits? big strides", "same shape as x", "tuned by hand", "not sure about this",
           "works for all widths", "see hint 2", "1D grid", "sum is at least 1")


def texts(module: Module) -> tuple[str, str]:
    """The exercise and the solution of a module."""
    return (module.folder / "kernel.py").read_text(), module.solution.read_text()


@functools.cache
def given() -> tuple[str, str]:
    """The exercise and the solution of softmax."""
    return texts(course.load(course.shipped_roots()).find("track1/softmax"))


def student(number: int, blanks: int = 19, seed: int = 1) -> tuple[str, str]:
    """The softmax of a student who works alone: source, and the code of the first failure.

    With fewer ``blanks``, the first ones are given.
    """
    draw = random.Random(f"{seed} {number}")
    exercise = given()[0]
    answers, wrong = {}, []
    careless = draw.random() < 0.5
    habit = draw.choices(range(4), [8, 4, 2, 1])[0]  # of one who writes `axis=0`, and all else so
    for todo, choices in ANSWERS.items():
        weights = [1 / (place + 1) ** 1.5 for place in range(len(choices))]
        if todo in MISTAKES and not careless:
            weights[MISTAKES[todo]:] = [0] * (len(choices) - MISTAKES[todo])
        if todo <= 19 - blanks:
            weights = [1, *[0] * (len(choices) - 1)]
        picked = draw.choices(range(len(choices)), weights)[0]
        if draw.random() < 0.4 and weights[habit % len(choices)]:
            picked = habit % len(choices)
        answers[todo] = choices[picked]
        if todo in MISTAKES and picked >= MISTAKES[todo]:
            wrong.append(f"{todo}.{picked}")
    keeps, remarks = draw.random() < 0.6, draw.random() * 0.3
    lines = []
    for line in exercise.splitlines():
        code, mark, question = line.partition("# TODO ")
        todo = int(question.partition(":")[0]) if mark else 0
        if not mark or not question.partition(":")[0].isdigit():
            lines.append(line)
            continue
        comment = f"  {mark}{question}" if keeps else ""
        if not comment and draw.random() < remarks:
            comment = f"  # {draw.choice(REMARKS)}"
        if code.strip():
            lines.append(code.replace("...", answers[todo], 1).rstrip() + comment)
        else:
            lines += [comment.strip(), answers[todo]] if comment else [answers[todo]]
    source = "\n".join(lines) + "\n"
    return source, " ".join(wrong)


def honest(count: int, blanks: int = 19, seed: int = 1) -> list[ClassSource]:
    """A class of students who work alone."""
    return [ClassSource(f"s{number:03}", *student(number, blanks, seed)) for number in range(count)]


def course_files(module: Module) -> list[ClassSource]:
    """The solution of a module, its right variants and its mutants, as if by as many students."""
    suite = grader.load_suite(module.suite)
    names = ("kernel.py", *(name for name in suite.files if name.endswith(".py")))

    def joined(folder: Path) -> str:
        return "\n".join((folder / name).read_text() for name in names)

    entries = {"solution": ClassSource("solution", joined(module.solution.parent))}
    for path in variants.of(module.slug):
        with tempfile.TemporaryDirectory() as folder:
            kernel = variants.whole(path, module.solution, Path(folder))
            source = joined(kernel.parent) if len(names) > 1 else kernel.read_text()
            entries.setdefault(source, ClassSource(f"variant {path.stem}", source))
    files = {name: (module.solution.parent / name).read_text()
             for name in ("kernel.py", *suite.files)}
    for mutant in suite.mutants:
        source = "\n".join(mutant.apply_to(files)[name] for name in names)
        entries.setdefault(source, ClassSource(f"mutant {mutant.id}", source, " ".join(
            (*mutant.codes, *mutant.wrong))))
    return list(entries.values())


# Softmax as those write it who keep a running maximum: line by line, the most frequent first.
ONLINE = (
    ["row = tl.program_id(0).to(tl.int64)", "pid = tl.program_id(axis=0).to(tl.int64)"],
    ["x_row = x_ptr + row * stride_x", "x_row = x_ptr + stride_x * row", "x_ptr += row * stride_x"],
    ["out_row = out_ptr + row * stride_out", "out_ptr += row * stride_out"],
    ['m = -float("inf")', 'm = float("-inf")', "m = -1e30"],
    ["s = 0.0", "s = tl.zeros((), tl.float32)", "s = 0."],
    ["for start in range(0, n_cols, BLOCK_SIZE):", "for start in tl.range(0, n_cols, BLOCK_SIZE):",
     "for i in range(tl.cdiv(n_cols, BLOCK_SIZE)):"],
    ["    cols = start + tl.arange(0, BLOCK_SIZE)", "    cols = tl.arange(0, BLOCK_SIZE) + start",
     "    cols = i * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)"],
    ["    mask = cols < n_cols", "    ok = cols < n_cols"],
    ['    x = tl.load(x_row + cols, mask=mask, other=-float("inf")).to(tl.float32)',
     '    x = tl.load(x_row + cols, mask=mask, other=float("-inf")).to(tl.float32)',
     "    x = tl.load(x_row + cols, mask=mask, other=-1e30).to(tl.float32)",
     '    x = tl.load(x_row + cols, mask, -float("inf"))'],
    ["    m_new = tl.maximum(m, tl.max(x, axis=0))", "    m_new = tl.maximum(m, tl.max(x, 0))",
     "    block_max = tl.max(x, axis=0)\n        m_new = tl.maximum(block_max, m)",
     "    m_new = max(m, tl.max(x))"],
    ["    s = s * tl.exp(m - m_new) + tl.sum(tl.exp(x - m_new), axis=0)",
     "    s = s * tl.exp(m - m_new) + tl.sum(tl.exp(x - m_new))",
     "    s = tl.exp(m - m_new) * s + tl.sum(tl.exp(x - m_new), axis=0)",
     "    alpha = tl.exp(m - m_new)\n        s = s * alpha + tl.sum(tl.exp(x - m_new), 0)",
     "    s *= tl.exp(m - m_new)\n        s += tl.sum(tl.exp(x - m_new), axis=0)"],
    ["    m = m_new"],
    ["for start in range(0, n_cols, BLOCK_SIZE):", "for start in tl.range(0, n_cols, BLOCK_SIZE):",
     "for i in range(tl.cdiv(n_cols, BLOCK_SIZE)):"],
    ["    cols = start + tl.arange(0, BLOCK_SIZE)", "    cols = tl.arange(0, BLOCK_SIZE) + start",
     "    cols = i * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)"],
    ["    mask = cols < n_cols", "    ok = cols < n_cols"],
    ["    x = tl.load(x_row + cols, mask=mask).to(tl.float32)",
     "    x = tl.load(x_row + cols, mask=mask, other=0.0).to(tl.float32)",
     '    x = tl.load(x_row + cols, mask=mask, other=-float("inf")).to(tl.float32)'],
    ["    y = tl.exp(x - m) / s", "    y = tl.exp(x - m) * (1.0 / s)",
     "    y = tl.exp(x - m)\n        y = y / s"],
    ["    tl.store(out_row + cols, y, mask=mask)",
     "    tl.store(out_row + cols, y.to(out_ptr.dtype.element_ty), mask=mask)",
     "    tl.store(out_row + cols, y, mask)"],
)


def of_family(number: int, seed: int = 1) -> tuple[str, str]:
    """The softmax of one who works alone and keeps a running maximum."""
    draw = random.Random(f"family {seed} {number}")
    source, failure = student(number, 5, seed)
    lines = [draw.choices(one, [1 / (place + 1) ** 1.5 for place in range(len(one))])[0]
             for one in ONLINE]
    head, _, rest = source.partition("    row = ")
    body = "".join(f"    {line}\n" for line in lines)
    return head + body + "\n\n" + rest[rest.index("def softmax("):], failure
