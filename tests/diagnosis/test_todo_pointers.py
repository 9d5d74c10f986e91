"""Which TODO a failure names: of lines with and without comments, and of common mistakes."""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path

import pytest

import grader
from grader import Finding, Verdict
from grader.diagnosis import codes
from grader.diagnosis.case_details import by_argument
from grader.diagnosis.explain import explained, functions_of
from grader.finding import MemoryAccess, Unstored, WrongValues, fault
from grader.recording.model import Argument, Launch, Recording, View
from grader.report import CaseResult, Kind
from grader.submission import dataflow, source
from grader.submission.todo_regions import numbered_comments, places, regions
from grader.suite import EXACT, Function, Mutant, Suite, call, correctness, rand
from tests.support.tiers import by_default
from tritonlab.course import course

ROOT = Path(__file__).parents[2]
MODULES = {module.slug: module for module in course.load(course.Roots(
    ROOT / "tracks", ROOT / "solutions", ROOT / "grader" / "suites")).modules}

# ---------------------------------------------------------------------------------------------
# Lines

EXERCISE = """\
# TODO 1: which lines make the names known?


# TODO 2: what makes it a kernel?
def kernel(x_ptr, y_ptr, n):
    offs = ...  # TODO 3
    x = ...  # TODO 4
    x = ...  # TODO 5
    for step in ...:  # TODO 6
        x = x + step
    ...  # TODO 7


def entry(x):
    block, grid = ...  # TODO 8
    ...  # TODO 9
    return x
"""
BARE = """\
from __future__ import annotations
import triton

@triton.jit
def kernel(x_ptr, y_ptr, n):
    lanes = tl.arange(0, 8)
    offs = lanes
    x = tl.load(
        x_ptr + offs)
    x = x.to(tl.float32)
    for step in range(3):
        x = x + step
    tl.store(y_ptr + offs, x)

def entry(x):
    block = 8
    grid = (1,)
    kernel[grid](
        x, block)
    return x
"""
BELONGING = {2: 1, 4: 2, 5: 2, 6: 3, 7: 3, 8: 4, 9: 4, 10: 5, 11: 6, 13: 7, 16: 8, 17: 8, 18: 9,
             19: 9}


def placed(text: str, exercise: str = "") -> dict[int, int]:
    return dict(places(ast.parse(text), text, numbered_comments(text), exercise).lines)


def test_a_line_without_its_comment_belongs_where_it_stood_in_the_exercise():
    assert placed(BARE, EXERCISE) == BELONGING
    assert placed(BARE) == {}


def test_a_comment_that_is_there_decides():
    moved = BARE.replace("    offs = lanes", "    offs = lanes  # TODO 4: moved here")

    found = placed(moved, EXERCISE)
    assert (found[7], found.get(8)) == (4, None)  # the load has lost its number to another line


@pytest.mark.parametrize(("text", "lines"), [
    ("def f():\n    x = g(\n        1)  # TODO 3\n", {2: 3, 3: 3}),
    ("def f():\n    # TODO 3: why\n    #   and how\n    x = g(\n        1)\n    y = 1\n",
     {2: 3, 4: 3, 5: 3}),
    ("def f():\n    for i in x:  # TODO 3\n        y = 1\n", {2: 3}),
    ("def f():\n    # TODO 3\n    if x:\n        y = 1\n        z = 2  # TODO 4\n",
     {2: 3, 3: 3, 4: 3, 5: 4}),
    ("# TODO 2\n@jit\ndef f(\n    x):\n    y = 1\n", {1: 2, 2: 2, 3: 2, 4: 2}),
    ("def f():\n    # TODO 3\n\n    x = 1\n", {2: 3}),
    ("def f():\n  if x:\n    # DECIDE 3\n    y = 1\n    # so\n    z = 2\n  u = 3\n",
     {3: 3, 4: 3, 6: 3}),
    ("def f():\n    # DECIDE 3\n    y = 1\n    z = 2\n\n    u = 3\n", {2: 3, 3: 3, 4: 3}),
    ("def f():\n    y = 1  # DECIDE 3\n    z = 2\n", {2: 3}),
], ids=["within a statement", "above", "of a loop", "above a body", "of a function", "apart",
        "a decision in a body", "a decision above a paragraph", "a decision in a line"])
def test_a_comment_stands_for_its_whole_statement(text, lines):
    assert regions(ast.parse(text), text, numbered_comments(text)) == lines


DECISIONS = """\
def slow(x_ptr, y_ptr):
    offs = tl.arange(0, 8)
    # DECIDE 1: how wide?
    x = tl.load(x_ptr + offs)
    # DECIDE 2: how often?
    tl.store(y_ptr + offs, x)


def given(x):
    return x
"""
DECIDED = """\
@triton.jit
def slow(x_ptr, y_ptr):
    tl.static_assert(True)
    tl.store(y_ptr, tl.load(x_ptr))
    tl.debug_barrier()


def given(x):
    return x
"""


def test_a_decision_is_about_what_follows_it_where_nothing_better_is_known():
    kept = places(ast.parse(DECISIONS), DECISIONS, numbered_comments(DECISIONS), DECISIONS)
    gone = places(ast.parse(DECIDED), DECIDED, {}, DECISIONS)

    assert (kept.lines, kept.near) == ({3: 1, 4: 1, 5: 2, 6: 2}, {})
    assert (gone.lines, gone.near) == ({4: 2}, {3: 1, 5: 2})


def test_a_new_statement_belongs_to_the_decision_directly_above_it():
    wider = DECIDED.replace("    tl.store(y_ptr, tl.load(x_ptr))\n",
                            "    x = tl.load(x_ptr)\n    y = x + 1\n    tl.store(y_ptr, y)\n\n")

    assert placed(wider, DECISIONS) == {4: 1, 5: 1, 6: 2}


@pytest.mark.parametrize(("line", "where"), [(5, "Line 5, DECIDE 2"), (9, "Line 9")])
def test_a_finding_without_a_place_names_the_decision_before_its_line(tmp_path, line, where):
    path = tmp_path / "kernel.py"
    path.write_text(DECIDED)
    suite = Suite(entry="given", parameters=("x",), reference=lambda x: x, tolerance=EXACT,
                  cases=[correctness("one", rand(1))], exercise=DECISIONS, marker="DECIDE")
    failed = CaseResult("one", Kind.CORRECTNESS, Verdict.FAILED, (Finding("L05", "no", line=line),))

    [told] = explained([failed], suite, source.read(path))

    assert told.findings[0].where == where


def test_imports_have_a_place_of_their_own():
    kept = "# TODO 1: which?\nimport torch\n\n" + BARE

    assert places(ast.parse(BARE), BARE, {}, EXERCISE).imports == 1
    assert places(ast.parse(kept), kept, numbered_comments(kept)).imports == 1
    assert places(ast.parse(BARE), BARE, {}).imports is None
    assert places(None, "x = (", {1: 3}, EXERCISE).lines == {1: 3}


# ---------------------------------------------------------------------------------------------
# What is behind a line

CODE = """\
@triton.jit
def kernel(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    pid = tl.program_id(0)
    start = pid * BLOCK
    offs = start + tl.arange(0, BLOCK)
    mask = offs < n
    acc = tl.zeros((BLOCK,), tl.float32)
    x = tl.load(x_ptr + offs, mask=mask)
    acc += tl.where(mask, x, 0)
    tl.store(y_ptr + offs, acc, mask=mask)


def entry(x):
    block = 8
    out = x.new_empty(x.shape)
    grid = (triton.cdiv(x.numel(), block),)
    kernel[grid](x, out, x.numel(), BLOCK=block, num_warps=4)
    return out
"""


PAST = MemoryAccess("past", "stored", 1, 8, 0, (1, 1, 1), "y_ptr", 8)
TWICE = MemoryAccess("two programs", "stored", 1, 0, 1, (2, 1, 1), "y_ptr", 8)


@pytest.mark.parametrize(("finding", "todos"), [
    (Finding("M02", PAST, line=10), (10, 6)),
    (Finding("M04", TWICE, line=10), (3, 4)),
    (Finding("M03", Unstored(1, 4, (3,), reason="idle programs", idle=1, programs=2), line=10),
     (3, 4)),
    (Finding("M03", Unstored(1, 4, (3,), reason="none left", programs=2), line=10),
     (16, 14)),
    (Finding("M03", Unstored(1, 4, (3,))), (10, 16)),
    (Finding("L01", "The grid of `kernel` is 1, of type int", line=17), (16, 17)),
    (Finding("L03", fault("idle programs", measured=1, programs=3)), (16,)),
    (Finding("T03", fault("programs", measured=3, limit=2)), (16,)),
    (Finding("T03", fault("launches over limit", measured=2, limit=1)), ()),
    (Finding("L05", "arange's range must be a power of 2.", line=5), (14, 5)),
    (Finding("L05", "accumulator shape is incompatible.", line=9), (9, 6)),
    (Finding("L05", "they must have equal reduction dimensions.", line=9), (9, 6)),
    (Finding("L05", "not defined", line=9), (9,)),
    (Finding("R01", "AssertionError: BLOCK must be more", line=17), (14, 17)),
    (Finding("R01", "TypeError: n is missing", line=17), (17,)),
    (Finding("R02", fault("compiling", kernels=("kernel",), seconds=25.0), line=17), (17,)),
    (Finding("R02", fault("no end", task="the kernel", seconds=25.0), line=17), (17,)),
    (Finding("S01", "The result has shape (3,), expected (4,)."), (15,)),
    (Finding("N01", "4 of 4 elements are wrong."), (8, 9)),
    (Finding("N04", "4 of 4 elements are wrong."), (7, 8)),
    (Finding("N01", WrongValues("values", 3, 4, (0,), 1.0, 2.0,
                                region=fault("after program 0", unit="element", block=4))),
     (3, 4)),
    (Finding("M08", "right for a contiguous input"), (3, 4)),
    (Finding("E01", "No exception was raised."), ()),
], ids=lambda value: value if isinstance(value, tuple) else f"{value.code} {value.seen[:24]}")
def test_a_finding_points_at_what_made_it(finding, todos):
    every = {line: line for line in range(1, 19)}

    assert codes.explain(finding, [], every, text=CODE, entry="entry").todos == todos


def test_a_block_size_is_chosen_where_its_own_kernel_is_launched():
    other = CODE + """

def another(x):
    size = 24
    other_kernel[(1,)](x, BLOCK=size)
"""
    numbers = {line: line for line in range(1, len(other.splitlines()) + 1)}
    finding = Finding("L05", "arange's range must be a power of 2.", line=5)

    assert codes.explain(finding, [], numbers, text=other, entry="entry").todos == (14, 5)


@pytest.mark.parametrize("data", [
    fault("compiling", kernels=("kernel",), seconds=25.0),
    fault("compiling given up", kernels=("kernel",), cpu_s=25.0, slowest="", slowest_s=25.0)],
    ids=lambda data: data.kind)
def test_a_slow_compilation_is_sought_where_the_warps_are_chosen(data):
    code = CODE.replace("num_warps=4", "num_warps=warps").replace(
        "    block = 8\n", "    block = 8\n    warps = 4\n")
    numbers = {line: line for line in range(1, len(code.splitlines()) + 1)}
    finding = Finding("R02", data, line=18)

    finding = codes.explain(finding, [], numbers, text=code, entry="entry")

    assert (finding.where, finding.todos) == ("Line 15, TODO 15 (seen at line 18)", (15,))


def test_a_descriptor_is_behind_what_it_loads():
    code = CODE.replace("    x = tl.load(x_ptr + offs, mask=mask)\n",
                        "    x_desc = tl.make_tensor_descriptor(x_ptr, [n], [1], [BLOCK])\n"
                        "    x = x_desc.load([start])\n")

    assert dataflow.lines_behind(code, 9) == (3, 4, 8)
    assert 8 in dataflow.lines_of_addresses(code)


def test_what_cannot_be_parsed_has_no_places():
    deep = f"x = {'-' * 100_000}1\n"

    assert dataflow.lines_of_values(deep) == dataflow.comments_in(
        deep, frozenset("x"), "TODO") == ()


def test_two_launches_have_no_grid_in_common():
    twice = CODE.replace("    return out", "    kernel[(1,)](x, out, 1, BLOCK=8)\n    return out")

    assert dataflow.lines_of_grid(twice, None) == ()
    assert dataflow.lines_of_grid(twice, 17) == (16,)
    assert dataflow.lines_of_grid(twice, 18) == (18,)
    assert dataflow.lines_of_grid("def (", None) == ()


SEVERAL = """
import triton
import triton.language as tl

TILES = (16, 32)


@triton.jit
def helper(x):
    # DECIDE 1: what should it be?
    y = x + 1
    return y * 2


@triton.jit
def one_kernel(x_ptr, out_ptr):
    # DECIDE 2: how much?
    x = tl.load(x_ptr)
    y = helper(x)
    tl.store(out_ptr, y)


def one(x):
    one_kernel[(1,)](x, x)


@triton.jit
def two_kernel(x_ptr, out_ptr):
    x = tl.load(x_ptr)
    # DECIDE 3: in which order?
    first = x * 2
    tl.store(out_ptr, first)


@triton.jit
def three_kernel(x_ptr, out_ptr):
    # DECIDE 5: why so?
    offs = tl.arange(0, 8)
    tl.store(out_ptr + offs, tl.load(x_ptr + offs) * 2)


def three(x):
    three_kernel[(1,)](x, x)


def two(x):
    two_kernel[(1,)](x, x)


def plan(n):
    tile = max(TILES)
    # DECIDE 4: how large?
    return tile
"""


@pytest.mark.parametrize(("code", "seen", "line", "roots", "todos"), [
    ("N01", "4 of 4 elements are wrong.", None, {"two"}, (3,)),  # the first is in one's kernel
    ("N01", "4 of 4 elements are wrong.", None, {"one"}, (2,)),
    ("N01", "4 of 4 elements are wrong.", None, {"three"}, (5,)),  # not right below its comment
    ("N01", "4 of 4 elements are wrong.", None, {"two", "three"}, (3, 5)),
    ("N01", "4 of 4 elements are wrong.", None, {"gone"}, (2, 3)),  # then nothing is known
    ("M09", "Program 8 loaded what program 0 stored.", 32, {"two"}, (3,)),  # below its comment
    ("M01", "Program 8 loaded past the end.", 26, {"two"}, (3,)),  # above it: the function's
    ("M04", "Programs 0 and 1 both stored.", 12, {"one"}, (1,)),
    ("T01", "The kernels moved too much.", None, {"one"}, (1, 2)),
    ("Q01", "The plan is too large.", None, {"plan"}, (4,)),
    ("T06", "The plan is too small.", None, {"plan", "two"}, (3, 4)),
    ("E03", "The message does not mention 7.", 51, {"plan"}, ()),  # what is checked is given
    ("R01", "KeyError: 7", 12, {"one"}, (1,)),
    ("R01", "KeyError: 7", 25, {"two"}, ()),  # above its comment
])
def test_a_place_is_one_that_the_functions_of_the_case_come_to(code, seen, line, roots, todos):
    tree = ast.parse(SEVERAL)
    numbers = regions(tree, SEVERAL, numbered_comments(SEVERAL))
    finding = Finding(code, seen, line=line)

    assert codes.explain(finding, [], numbers, text=SEVERAL, roots=roots).todos == todos


def test_blanks_stand_for_themselves_and_not_for_what_follows():
    text = SEVERAL.replace("DECIDE", "TODO")
    numbers = regions(ast.parse(text), text, numbered_comments(text))
    finding = Finding("M09", "Program 8 loaded what program 0 stored.", line=32)

    assert codes.explain(finding, [], numbers, text=text, roots={"two"}).todos == ()


def test_a_mistake_elsewhere_has_no_place_here():
    tree = ast.parse(SEVERAL)
    numbers = regions(tree, SEVERAL, numbered_comments(SEVERAL))
    known = [Mutant(str(todo), "", codes=("T01",), meaning="", todos=(todo,), patches=())
             for todo in (2, 3)]
    finding = Finding("T01", "The kernels moved too much.")

    told = codes.explain(finding, known, numbers, text=SEVERAL, roots={"two"})

    assert told.todos == (3,)


def test_host_code_is_called_by_way_of_the_suite():
    suite = Suite(host={"plan": ("n",), "other": ()}, functions=[
        Function("two", ("x",), cases=[correctness("a", rand(3))])],
        cases=[call("planned", "plans", check=print)],
        calls="def plans(module, sizes):\n    return [asked(module, n) for n in sizes]\n\n\n"
              "def asked(module, n):\n    return module.plan(n)\n")

    functions = {case.name: functions_of(case, suite) for case in suite.all_cases}

    assert functions == {"two: a": {"two"}, "planned": {"plan"}}
    assert all(map(hash, functions.values()))  # keys of caches


def test_of_several_functions_the_one_that_was_called_has_the_grid():
    other = CODE + "\n\ndef other(x):\n    kernel[(2,)](x, x, 1, BLOCK=8)\n"
    idle = Finding("L03", fault("idle programs", measured=1, programs=3))

    todos = [codes.explain(idle, [], {16: 1, 22: 2}, text=other, entry=entry).todos
             for entry in ("entry", "other", "")]

    assert todos == [(1,), (2,), ()]


@pytest.mark.parametrize(("parameter", "todos"), [("x_ptr", (1, 2)), ("out_ptr", (2, 1))])
def test_an_input_that_is_passed_as_an_output_is_the_launch_s_mistake(parameter, todos):
    view = View(0, "float32", (4,), (1,), 0)
    launch = Launch("k", (1, 1, 1), {parameter: Argument("tensor", view)}, {}, line=9)
    finding = Finding("M07", MemoryAccess("modified", "stored", 4, 0, 0, (1, 1, 1), parameter, 4),
                      line=5)

    told = by_argument(finding, Recording((view,), (launch,), ()), ["x"], {5: 1, 9: 2})

    assert told.todos == todos


# ---------------------------------------------------------------------------------------------
# Mistakes that learners make, in files without any comment: the first TODO chooses the hints

MISTAKES = [
    ("vector-add", "import triton.language as tl\n", "", 1),
    ("vector-add", "@triton.jit\n", "", 2),
    ("vector-add", "pid * BLOCK_SIZE", "pid + BLOCK_SIZE", 3),
    ("vector-add", "tl.load(x_ptr + offs, mask=mask)", "tl.load(x_ptr + offs)", 8),
    ("vector-add", "tl.load(y_ptr + offs, mask=mask)", "tl.load(y_ptr + offs)", 9),
    ("vector-add", "total, mask=mask)", "total)", 11),
    ("vector-add", "block_size = 1024", "block_size = 1000", 12),
    ("vector-add", "(triton.cdiv(n_elements, block_size),)", "(1,)", 14),
    ("vector-add", "(triton.cdiv(n_elements, block_size),)",
     "(triton.cdiv(n_elements, block_size) + 1,)", 14),
    ("matrix-mul", "tl.program_id(axis=0)", "tl.program_id(axis=1)", 3),
    ("matrix-mul", "mask=in_k[:, None] & in_n[None, :], other=0.0", "other=None", 21),
    ("matrix-mul", "torch.empty((M, N), dtype=a.dtype, device=a.device)", "torch.empty_like(a)",
     28),
    ("softmax", "x_ptr + row * stride_x", "x_ptr + row * n_cols", 4),
    ("softmax", "out_ptr + row * stride_out", "out_ptr + row * stride_x", 14),
    ("softmax", "tl.exp(shifted)", "tl.exp2(shifted)", 7),
    ("softmax", "triton.next_power_of_2(n_cols)", "1000", 15),
    ("softmax", "x.new_empty(x.shape)", "torch.empty_like(x)", 16),
    ("softmax", "grid = (n_rows,)", "grid = n_rows", 17),
    ("softmax", "grid = (n_rows,)", "grid = (n_rows + 1,)", 17),
    ("layer-norm", "tl.load(weight_ptr + cols, mask=mask)", "tl.load(weight_ptr + cols)", 13),
    ("layer-norm", "tl.store(mean_ptr + row", "tl.store(mean_ptr + cols", 17),
    ("layer-norm", "x, out, weight", "out, x, weight", 24),
    ("conv2d", "offs_n, mask=offs_n < OC, other=0.0)", "offs_n)", 27),
    ("conv2d", "block_m, block_n, block_k = 64, 64, 16", "block_m, block_n, block_k = 64, 64, 8",
     32),
]


@cache
def suite_of(slug: str) -> grader.Suite:
    return grader.load_suite(MODULES[slug].suite, MODULES[slug].folder)


@pytest.mark.parametrize(("slug", "old", "new", "todo"), by_default(12, MISTAKES),
                         ids=[f"{slug}-{todo}-{new[:20]}" for slug, _, new, todo in MISTAKES])
def test_a_mistake_is_sought_in_its_own_todo(slug, old, new, todo, tmp_path, sandbox):
    solution = MODULES[slug].solution.read_text()
    assert old in solution
    path = tmp_path / "kernel.py"
    path.write_text(solution.replace(old, new))

    report = grader.grade(path, suite_of(slug), sandbox=sandbox, effort="diagnosis")

    assert report.first_failure is not None
    finding = report.first_failure.findings[0]
    assert finding.todos[:1] == (todo,), (finding.code, finding.where, finding.seen)
