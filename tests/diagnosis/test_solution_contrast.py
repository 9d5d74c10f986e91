"""The statements that decide a failure, found by runs with statements of the solution."""

from __future__ import annotations

import ast

import pytest

import grader
from grader.diagnosis import codes, messages, solution_contrast
from grader.diagnosis.solution_contrast import (
    MOST_RUNS,
    Cause,
    causes,
    repair,
    text_causes,
)
from grader.report import Finding
from grader.submission import dataflow
from grader.suite.mutants import Mutant, Patch
from tests.diagnosis.test_todo_pointers import MODULES
from tests.fidelity import variants
from tests.support.tiers import by_default
from tritonlab.authoring import module_files

RIGHT = "def f(x):\n" + "".join(f"    a{n} = x + {n}\n" for n in range(8)) + "    return a1\n"


def _causes(wrong: str, needed: set[str]) -> tuple[list[tuple[int, str]], int]:
    runs: list[str] = []

    def passes(text: str) -> bool:
        runs.append(text)
        return {line.strip() for line in text.split("\n")} >= needed

    return [(one.line, one.kind) for one in causes(wrong, RIGHT, "", {"f"}, passes)], len(runs)


def test_places_of_two_causes_are_no_alternatives():
    finding = Finding("N01", "4 of 4 elements are wrong.", line=9)
    known = Mutant("m", "", codes=("N01",), meaning="Both.", todos=(3, 2, 7), patches=())
    both = [Cause(4, todo=2), Cause(5, todo=3)]

    two, one, none = (codes.explain(finding, [known], {}, causes=some)
                      for some in (both, both[:1], ()))

    assert (two.where, two.also) == ("Line 4 and line 5, TODO 2 and 3 (seen at line 9)", 5)
    assert one.where == "Line 4, TODO 2 (seen at line 9)"
    assert none.where == "Line 9, TODO 3, 2 or 7"


def test_what_differs_without_effect_is_no_cause():
    wrong = RIGHT.replace("x + 2", "x + 20").replace("x + 5", "x + 50").replace("x + 7", "x + 70")

    named, runs = _causes(wrong, {"a5 = x + 5"})

    assert named == [(7, "number")]
    assert runs <= 6


def test_two_causes_are_named_and_three_are_another_kernel():
    wrong = RIGHT.replace("x + 2", "x + 20").replace("x + 5", "x + 50").replace("x + 7", "x + 70")

    two, _ = _causes(wrong, {"a2 = x + 2", "a7 = x + 7"})
    three, _ = _causes(wrong, {"a2 = x + 2", "a5 = x + 5", "a7 = x + 7"})

    assert [line for line, _ in two] == [4, 9]
    assert three == []


@pytest.mark.parametrize("needed", [{"no such line"}, set[str]()],
                         ids=["the solution fails it too", "the submission passes it"])
def test_a_case_that_tells_nothing_has_no_cause(needed):
    assert _causes(RIGHT.replace("x + 2", "x + 20"), needed)[0] == []


def test_a_name_that_only_the_right_statement_would_use_is_unused():
    right = "def f(x, n):\n    y = x + 1\n    z = y * n\n    return z\n"
    wrong = right.replace("y * n", "x * n")

    [cause] = causes(wrong, right, "", {"f"}, lambda text: "y * n" in text)

    assert (cause.line, cause.part, cause.unused) == (3, "x", ("y",))
    assert messages.mistake(cause.kind, cause.part, cause.unused) == (
        "This statement uses a wrong name. Look at `x`. `y` is not used in this function.")


def test_values_that_the_solution_computes_another_way_name_what_is_read_for_them():
    right = "def f(x, n):\n    begin = x * n\n    inside = begin <= n\n    return inside\n"
    wrong = "def f(x, n):\n    first = x // n\n    last = x + n\n" \
            "    inside = (first <= n) & (n <= last)\n    return inside\n"

    [cause] = causes(wrong, right, "", {"f"},
                     lambda text: "begin = x" in text and "begin <=" in text)

    assert (cause.line, cause.missing, cause.reads) == (4, False, ("first", "last"))
    assert messages.mistake(cause.kind, reads=cause.reads) == (
        "This statement, or one that computes a name it reads, gives a wrong value. Check `first` "
        "and `last` first: nothing else reads them.")


def test_a_value_that_the_solution_names_first_is_one_cause():
    right = "def f(x):\n    middle = median(x)\n    return (max(x) - min(x)) / middle\n"
    wrong = "def f(x):\n    return (max(x) - min(x)) / min(x)\n"

    (cause,) = causes(wrong, right, "", {"f"}, lambda text: "/ middle" in text and "median" in text)

    assert (cause.line, cause.kind) == (2, "values")


def test_names_that_only_the_submission_has_are_no_cause():
    own = RIGHT.replace("    a0 = x + 0\n", "    y = x\n    z = 1\n    a0 = y + 0\n")
    wrong = own.replace("a5 = x + 5", "a5 = y + 50")

    named, runs = _causes(wrong, {"a5 = x + 5"})

    assert [line for line, _ in named] == [9]
    assert runs <= 6


def test_a_statement_in_another_place_is_one_cause():
    without = RIGHT.replace("    a2 = x + 2\n", "")
    wrong = without.replace("    return", "    a2 = x - 2\n    return")

    assert [line for line, _ in _causes(wrong, {"a2 = x + 2"})[0]] == [9]


def test_runs_are_bounded():
    text = "".join(f"    b{n} = x + {n}\n" for n in range(32))
    wrong = "def f(x):\n" + text.replace(" + ", " - ")
    count = 0

    def passes(text: str) -> bool:
        nonlocal count
        count += 1
        return "-" not in text

    assert causes(wrong, "def f(x):\n" + text, "", {"f"}, passes) == []
    assert count <= MOST_RUNS


def test_a_statement_that_stands_around_others_is_one_cause():
    right = "def f(x):\n    a = g()\n    try:\n        yield\n    finally:\n        h(a)\n"
    wrong = "def f(x):\n    a = g()\n    yield\n    h(a)\n"

    (cause,) = causes(wrong, right, "", {"f"}, lambda text: "finally" in text)

    assert (cause.line, cause.missing) == (2, True)


@pytest.mark.parametrize(("old", "new", "line", "missing"), [
    ("# Two\n", "# Too\n", 3, False), ("three\n", "", 3, True),
    ("four\n", "four\nfive\n", 6, False)])
def test_the_line_of_a_text_that_decides_is_named(old, new, line, missing):
    right = "# One\none\n# Two\nthree\nfour\n"
    wrong = right.replace(old, new)

    (cause,) = text_causes(wrong.replace("# One", "# Eins"), right, lambda text: (
        old in text and "five" not in text))

    assert (cause.line, cause.missing) == (line, missing)


def test_of_a_text_that_is_another_one_throughout_the_file_is_known():
    right = "".join(f"right {n}\n" for n in range(99))
    wrong = "".join(f"{'wrong' if n % 2 else 'right'} {n}\n" for n in range(99))

    (cause,) = text_causes(wrong, right, lambda text: "wrong" not in text)

    assert cause.line == 0
    assert text_causes(wrong, right, lambda text: True) == []


# -- in a grade ------------------------------------------------------------------------------------


# (module, a known mistake of it, the place)
IN_FILES = [
    ("production-ready", "f", "Line 69 of package/addrmsnorm/validation.py"),
    ("error-handling", "d", "Line 344"), ("error-handling", "p", "Line 412"),
    ("error-handling", "q", "After line 57"),
    ("shared-memory", "p", "After line 180, DECIDE 7"),
    ("production-ready", "p", "Line 96 of package/addrmsnorm/api.py"),
    ("production-ready", "r", "After line 27 of package/README.md"),
]


@pytest.mark.parametrize(("slug", "mistake", "place"), by_default(2, IN_FILES))
def test_a_mistake_of_host_code_or_of_a_document_has_its_line(
        slug, mistake, place, tmp_path, sandbox):
    module = MODULES[slug]
    suite = grader.load_suite(module.suite, module.folder, module.solution.parent)
    mutant = next(one for one in suite.mutants if one.id == mistake)
    module_files.write(mutant.apply_to(
        {name: (module.solution.parent / name).read_text()
         for name in ("kernel.py", *suite.files)}), tmp_path)

    finding = grader.grade(tmp_path / "kernel.py", suite, sandbox=sandbox,
                           effort="diagnosis").first_failure.findings[0]

    assert finding.where == place


# (module, text of the solution, mistake, place, words of the meaning)
MISTAKES = [
    ("matrix-mul", "dtype=tl.float32)", "dtype=tl.float16)", "TODO", "16 bits"),
    ("matrix-mul", "offs_m[:, None] * stride_am + offs_k[None, :] * stride_ak",
     "offs_m[:, None] * stride_ak + offs_k[None, :] * stride_am", "TODO", ""),
    ("layer-norm", "tl.sum(x, axis=0) / n_cols", "n_cols / tl.sum(x, axis=0)", "TODO 8",
     "are swapped"),
]

# (text of the exercise of tiling with its DECIDE comments and the solution's code, mistake, place)
TILING = [
    ("    batch = tl.program_id(axis=0).to(tl.int64)", "    batch = tl.program_id(axis=0)", 2),
    ("+ rows[:, None] * stride_xm", "+ rows[:, None] * N", 3),
    ("    cols = tile_n * BLOCK_N + tl.arange(0, BLOCK_N)",
     "    cols = tile_n + tl.arange(0, BLOCK_N)", 3),
    ("(rows[:, None] < M) & (cols[None, :] < N)", "(rows[:, None] < N) & (cols[None, :] < M)", 4),
    ("cols[None, :]) * M + rows[:, None]", "cols[None, :]) * N + rows[:, None]", 5),
    ("    tl.store(out_ptrs, tile, mask=mask)",
     "    tl.store(out_ptrs, tl.trans(tile), mask=tl.trans(mask))", 5),
    ("    grid = (n_batch, ", "    grid = (1, ", 6),
    ("    side = max(least, 64 ", "    side = max(least, 128 ", 7),
    ("counted = calls[1:]", "counted = calls", 8),
]


@pytest.fixture(scope="module")
def tiling():
    """The exercise with its comments, and the code of the solution below each."""
    exercise = (MODULES["tiling"].folder / "kernel.py").read_text()
    solution = MODULES["tiling"].solution.read_text()

    def part(text: str, first: str, last: str) -> str:
        return text[text.index(first):text.index(last)]

    for old, new in [
        (part(exercise, "    pid = tl", "\n    # DECIDE 2"),
         "    tile_m = tl.program_id(axis=1)\n    tile_n = tl.program_id(axis=2)\n"),
        ("(pid // n_pieces // N).to", "tl.program_id(axis=0).to"),
        (part(exercise, "    rows = piece", "\n    # DECIDE 4"),
         "    rows = tile_m * BLOCK_M + tl.arange(0, BLOCK_M).to(tl.int64)\n"
         "    cols = tile_n * BLOCK_N + tl.arange(0, BLOCK_N).to(tl.int64)\n"
         "    x_ptrs = (x_ptr + batch * stride_xb + rows[:, None] * stride_xm\n"
         "              + cols[None, :] * stride_xn)\n"),
        ("mask = rows < M\n", "mask = (rows[:, None] < M) & (cols[None, :] < N)\n"),
        ("(batch * N + col) * M + rows", "(batch * N + cols[None, :]) * M + rows[:, None]"),
        ("(n_batch * triton.cdiv(m, block_m) * triton.cdiv(n, block_n),)",
         "(n_batch, triton.cdiv(m, block_m), triton.cdiv(n, block_n))"),
        ("    return min(triton.next_power_of_2(m), 64), 1\n",
         part(solution, "    least = SECTOR", "\n\n@dataclass")),
        (part(exercise, "    times: dict", "\n\ndef check_argument"),
         part(solution, "    times: dict", "\n\ndef check_argument")),
    ]:
        assert exercise.count(old) == 1, old
        exercise = exercise.replace(old, new)
    return exercise


@pytest.mark.parametrize(("old", "new", "decision"), by_default(4, TILING))
def test_a_grade_names_the_decision_that_a_mistake_stands_below(
        old, new, decision, tiling, tmp_path, sandbox, monkeypatch):
    monkeypatch.setattr(solution_contrast, "MOST_S", 60.0)  # other processes may slow this one down
    module = MODULES["tiling"]
    suite = grader.load_suite(module.suite, module.folder, module.solution.parent)
    assert tiling.count(old) == 1
    line = tiling[:tiling.index(old)].count("\n") + 1
    path = tmp_path / "kernel.py"
    path.write_text(tiling.replace(old, new))

    finding = grader.grade(path, suite, sandbox=sandbox,
                           effort="diagnosis").first_failure.findings[0]

    assert (finding.line, finding.todos[0]) == (line, decision)


@pytest.mark.parametrize(("slug", "old", "new", "place", "words"), MISTAKES)
def test_a_grade_names_the_line_and_its_todo(slug, old, new, place, words, tmp_path, sandbox):
    module = MODULES[slug]
    suite = grader.load_suite(module.suite, module.folder, module.solution.parent)
    text = module.solution.read_text()
    assert text.count(old) == 1
    line = text[:text.index(old)].count("\n") + 1
    path = tmp_path / "kernel.py"
    path.write_text(text.replace(old, new))

    report = grader.grade(path, suite, sandbox=sandbox, effort="diagnosis")

    finding = report.first_failure.findings[0]
    assert finding.line == line
    assert f"ine {line}, {place}" in finding.where
    assert words in finding.means


@pytest.mark.parametrize(("slug", "variant", "old", "new", "words"), [
    ("softmax", "heuristics", "x_ptr + row * stride_x + cols, mask", "x_ptr + cols, mask",
     "stand in the wrong places"),
    ("matrix-mul", "wrapped_indices", "tl.cdiv(K, BLOCK_SIZE_K)", "tl.cdiv(BLOCK_SIZE_K, K)",
     "do not advance by a whole block"),
], ids=["other values", "alike values"])
def test_a_known_mistake_explains_another_kernel_that_gets_alike_values_wrong(
        slug, variant, old, new, words, tmp_path, sandbox):
    module = MODULES[slug]
    suite = grader.load_suite(module.suite, module.folder, module.solution.parent)
    right = next(path for path in variants.of(slug) if path.stem == variant)
    path = variants.whole(right, module.solution, tmp_path)
    text = path.read_text()
    assert text.count(old) == 1
    path.write_text(text.replace(old, new))

    finding = grader.grade(path, suite, sandbox=sandbox,
                           effort="diagnosis").first_failure.findings[0]

    assert words in finding.means


OWN = """
    batch = tl.program_id(axis=0).to(tl.int64)
    pid_m = tl.program_id(axis=1).to(tl.int64)
    pid_n = tl.program_id(axis=2).to(tl.int64)
    rows = (pid_m * BLOCK_M + tl.arange(0, BLOCK_M))[:, None]
    cols = (pid_n * BLOCK_N + tl.arange(0, BLOCK_N))[None, :]
    mask = (rows < M) & (cols < N)
    x_ptrs = x_ptr + batch * stride_xb + rows * stride_xm + cols * stride_xn
    tile = tl.load(x_ptrs, mask=mask)
    out_ptrs = out_ptr + batch * N * M + cols * M + rows
    tl.store(out_ptrs, tile, mask=mask)
"""


@pytest.mark.parametrize(("old", "new", "kind"), by_default(1, [
    ("cols < N", "cols < M", "bound"), ("rows < M", "rows < N", "bound"),
    ("cols * M", "cols * N", "stride"), ("cols * M", "cols * stride_xm", "stride"),
]))
def test_a_wrong_bound_or_stride_is_named_in_a_kernel_of_the_learner_s_own(
        old, new, kind, tmp_path, sandbox, monkeypatch):
    monkeypatch.setattr(solution_contrast, "MOST_S", 60.0)
    module = MODULES["tiling"]
    suite = grader.load_suite(module.suite, module.folder, module.solution.parent)
    text = module.solution.read_text()
    before, rest = text.split("    batch = tl.program_id", 1)
    after = rest[rest.index("\n\ndef batched_transpose"):]
    own = before + OWN.replace(old, new).lstrip("\n") + after
    path = tmp_path / "kernel.py"
    path.write_text(own)

    finding = grader.grade(path, suite, sandbox=sandbox,
                           effort="diagnosis").first_failure.findings[0]

    assert own.split("\n")[finding.line - 1].count(new) == 1
    assert finding.means == messages.mistake(kind, new)


def test_a_wrong_bound_is_not_taken_for_a_missing_one(tmp_path, sandbox):
    module = MODULES["tiling"]
    suite = grader.load_suite(module.suite, module.folder, module.solution.parent)
    path = tmp_path / "kernel.py"
    path.write_text(module.solution.read_text().replace("(rows < M)[:, None]",
                                                        "(rows < N)[:, None]"))

    finding = grader.grade(path, suite, sandbox=sandbox,
                           effort="diagnosis").first_failure.findings[0]

    assert finding.means == messages.mistake("bound", "rows < N")


def test_no_repair_is_named_where_none_makes_the_case_pass():
    text = "def f(x_ptr, m, n):\n    mask = x_ptr < m\n    return mask\n"

    assert repair(text, [[2]], lambda text: False) == []
    assert [one.part for one in repair(text, [[2]], lambda text: "< n" in text)] == ["x_ptr < m"]


@pytest.mark.parametrize(("passed", "names"), [
    ("x, bias, weight, n, h, w", "bias, weight"), ("x, weight, bias, n, w, h", "w, h"),
])
def test_swapped_arguments_of_a_launch_are_tried_first_by_their_names(passed, names):
    text = "@triton.jit\ndef k(x_ptr, w_ptr, bias_ptr, N, H, W):\n    pass\n\n\n" \
           f"def f(x, weight, bias, n, h, w):\n    k[(n,)]({passed})\n"
    runs = []

    (cause,) = repair(text, [[3], [7]], lambda text: bool(runs.append(text)) or (
        "(x, weight, bias, n, h, w)" in text))

    assert (cause.line, cause.kind, cause.part, len(runs)) == (7, "arguments", names, 1)


def test_swapped_axes_of_a_grid_are_tried_first():
    text = "def f(x, m, n):\n    grid = (triton.cdiv(n, 32), triton.cdiv(m, 16))\n    k[grid](x)\n"

    (cause,) = repair(text, [[3], [2]],
                      lambda text: "(triton.cdiv(m, 16), triton.cdiv(n, 32))" in text)

    assert (cause.line, cause.kind) == (2, "order")


HOST = """
def positions(size, taps, pad, stride):
    return (size + 2 * pad - taps) // stride + 1


def f(x):
    n, c, h = x.shape
    oh = positions(h, 3, 1, 1)
    out = torch.empty((n, oh))
    grid = (triton.cdiv(n * oh, 32),)
    kernel[grid](x, out, n, c, h, oh)
    return out


@triton.jit
def kernel(x_ptr, out_ptr, C, KH, KW, BLOCK: tl.constexpr):
    for start in range(0, C * KH * KW, BLOCK):
        tl.store(out_ptr, start + KW)
"""


@pytest.mark.parametrize(("old", "new", "lines"), [
    ("n * oh, 32", "oh, 32", [10, 11]), ("n * oh, 32", "n, 32", [10, 11]),
    ("C * KH * KW,", "C * KH,", [17]),
], ids=["n", "oh", "KW"])
def test_a_missing_factor_of_a_grid_or_a_range_is_tried_first(old, new, lines):
    runs = []

    def passes(text):
        runs.append(text)
        terms = (new.split(",")[0] + " * {}" + "," + new.split(",")[1]).format
        return any(terms(name) in text for name in ("n", "oh", "KW") if name not in new)

    (cause,) = repair(HOST.replace(old, new), [[5], lines], passes)

    assert (cause.kind, cause.line) == ("missing factor", lines[0])
    assert len(runs) <= 3


@pytest.mark.parametrize(("old", "new", "kind"), [
    (" // stride + 1", " // stride", "missing term"), ("2 * pad", "pad", "missing factor")])
def test_a_helper_that_computes_a_size_is_tried_for_a_wrong_shape(old, new, kind):
    wrong = HOST.replace(old, new)
    sizes = dataflow.lines_of_results(wrong, "f")
    lines = [one for line in sizes for one in (line, *dataflow.lines_of_operands(wrong, line))]

    assert dataflow.lines_of_helpers(wrong, lines) == (2, 3)
    (cause,) = repair(wrong, [[*lines, *dataflow.lines_of_helpers(wrong, lines)]],
                      lambda text: old in text, likely=(kind,))

    assert (cause.line, cause.kind) == (3, kind)


def test_repairs_are_bounded_in_number():
    runs = []
    terms = " + ".join(f"a{n}" for n in range(50))
    text = f"def f({terms.replace(' + ', ', ')}):\n    return {terms}\n"

    assert repair(text, [[2]], lambda text: bool(runs.append(text))) == []
    assert len(runs) == len({*runs}) == solution_contrast.MOST_REPAIRS


def _repaired(right: str, old: str, new: str) -> tuple[Cause, int]:
    """The cause that is named for a mistake, and the number of runs."""
    assert right.count(old) == 1
    wrong, runs = right.replace(old, new), 0
    wanted = ast.dump(ast.parse(right))

    def passes(text):
        nonlocal runs
        runs += 1
        return ast.dump(ast.parse(text)) == wanted

    every = range(len(wrong.split("\n")))
    near = [line for line in every[1:] if wrong.split("\n")[line - 1] not in right.split("\n")]
    (cause,) = repair(wrong, [near, every], passes)
    return cause, runs


@pytest.mark.parametrize(("old", "new"), [
    ("tl.program_id(0)", "tl.program_id(1)"),
    ("x_ptr + row * stride_xm + offs * stride_xn", "x_ptr + row * stride_xn + offs * stride_xm"),
    ("x_ptr + row * stride_xm + offs", "x_ptr + row + offs"),
    ("row * n_cols + offs, y, mask=mask", "row * n_cols + offs, y"),
    ('other=-float("inf")', "other=0.0"), (', other=-float("inf")', ""),
    ("x - largest", "largest - x"), ("axis=0)\n    y", "axis=1)\n    y"),
    ("offs < n_cols", "offs <= n_cols"), ("tl.max(", "tl.min(")])
def test_a_typical_mistake_is_repaired_in_few_runs(old, new):
    cause, _ = _repaired(OWN_SOFTMAX, old, new)

    wrong = OWN_SOFTMAX.replace(old, new)
    assert wrong.split("\n")[cause.line - 1] not in OWN_SOFTMAX.split("\n")
    assert cause.own


@pytest.mark.parametrize(("old", "new", "kind", "line"), [
    ("        m_i = m_new\n", "", "missing update", 16),
    ("total = total * tl.exp(m_i - m_new) + tl.sum(e, axis=0)", "total = tl.sum(e, axis=0)",
     "overwritten", 16),
    ("range(0, n_cols, BLOCK)", "range(0, n_rows, BLOCK)", "name", 11),
    ("cols = start + lanes", "cols = lanes", "missing term", 12),
    ("x_ptr + cols", "x_ptr + lanes", "name", 13),
    ("tile // n_down", "tile // n_across", "name", 5),
    ("tile * BLOCK + tl", "tile + tl", "missing factor", 8),
])
def test_mistakes_of_loops_and_indices_are_repaired(old, new, kind, line):
    right = OWN_LOOP
    if kind == "overwritten":  # a sum that is not rescaled
        right, old = right.replace(old, "total += tl.sum(e, axis=0)"), "total += tl.sum(e, axis=0)"

    cause, _ = _repaired(right, old, new)

    assert (cause.kind, cause.line) == (kind, line)


@pytest.mark.parametrize(("right", "wrong", "line"), [
    ("out_ptr + batch * n + cols * m + rows", "out_ptr + batch * n + cols + rows * m", 3),
    ("x_ptr + batch * stride_b + rows * stride_m + cols * stride_n",
     "x_ptr + batch * stride_b + rows * n + cols", 3),
    ("x_ptr + rows * n", "x_ptr + rows * BLOCK", 3),
    ("pid // n_heads", "pid % n_heads", 3), ("triton.cdiv(m, BLOCK)", "m // BLOCK", 3),
    ("(tile + 1) * BLOCK", "tile * BLOCK", 3),
])
def test_a_mistake_of_an_address_or_a_quotient_is_repaired(right, wrong, line):
    text = "@triton.jit\ndef kernel(x_ptr, out_ptr, batch, rows, cols, tile, pid, n, m, n_heads, " \
        f"stride_b, stride_m, stride_n, BLOCK):\n    y = {{}}\n    tl.store({'out_ptr'}, y)\n"
    named = "    a = stride_m + stride_n\n" if "stride_m" not in right else ""
    whole = [text.format(one) + named for one in (right, wrong)]

    (cause,) = repair(whole[1], [[3]], lambda other: ast.dump(ast.parse(other)) == ast.dump(
        ast.parse(whole[0])))

    assert cause.line == line


def test_kinds_of_the_known_mistake_that_fails_alike_are_tried_earlier():
    names = [f"a{n}" for n in range(8)]
    text = f"def f({', '.join(names)}):\n    x = a0[:, None] - {' - '.join(names)}\n    return x\n"

    runs: list[str] = []

    def passes(other: str) -> bool:
        runs.append(other)
        return "a0[None, :]" in other

    (cause,) = repair(text, [range(9)], passes, likely={"broadcast"})

    assert (cause.kind, cause.line, len(runs)) == ("broadcast", 2, 6)
    assert repair(text, [range(9)], passes) == []  # too late


def test_a_term_that_counts_twice_and_a_root_are_tried_in_host_code():
    text = "def f(n, pad, k, D):\n    out = n + pad - k\n    scale = 1 / D\n    return out, scale\n"

    twice, root = (repair(text, [[2, 3]], lambda other, wanted=wanted: wanted in other)
                   for wanted in ("n + 2 * pad", "1 / D ** 0.5"))

    assert [one.line for one in (*twice, *root)] == [2, 3]


def test_a_store_without_a_mask_gets_the_bound_of_its_own_index():
    text = "@triton.jit\ndef kernel(x_ptr, y_ptr, n):\n    rows = tl.arange(0, 16)\n" \
        "    rows64 = rows.to(tl.int64)\n    inside = (rows[:, None] < n) & True\n" \
        "    tl.store(y_ptr + rows64, 0.0)\n"

    (cause,) = repair(text, [[6]], lambda other: "mask=rows < n" in other)

    assert (cause.kind, cause.line) == ("no mask", 6)


def test_a_stride_that_nothing_uses_is_named():
    wrong = OWN_SOFTMAX.replace("x_ptr + row * stride_xm + offs", "x_ptr + offs")

    (cause,) = repair(wrong, [range(20)], lambda text: "stride_xn + row * stride_xm" in text)

    assert (cause.kind, cause.line, cause.unused) == ("missing term", 7, ("stride_xm",))


def test_a_launch_and_the_caller_of_a_helper_are_tried():
    text = "@triton.jit\ndef load(x_ptr, offs):\n    return tl.load(x_ptr + offs)\n\n\n" \
        "@triton.jit\ndef kernel(x_ptr, y_ptr):\n    x_ptr += 1\n    x_ptr *= 2\n"

    assert dataflow.lines_of_callers(text, 3) == (8, 9)
    indirect = text.replace("    x_ptr += 1\n", "    step = y_ptr + 1\n    x_ptr += step\n")
    assert dataflow.lines_of_callers(indirect, 3) == (9, 10)
    assert dataflow.lines_of_callers(indirect, 3, far=True) == (8, 9, 10)
    (cause,) = repair("def f(x, y):\n    kernel[(1,)](y, x, 4)\n", [[2]],
                      lambda text: "(x, y, 4)" in text)
    assert (cause.kind, cause.line) == ("arguments", 2)


def test_lines_that_right_results_depend_on_too_are_not_those_of_a_wrong_one():
    text = "@triton.jit\ndef kernel(x_ptr, out_ptr, lse_ptr, BLOCK):\n" \
        "    offs = tl.arange(0, BLOCK)\n    x = tl.load(x_ptr + offs)\n    total = tl.sum(x)\n" \
        "    out_ptrs = out_ptr + offs\n    tl.store(out_ptrs, x / total)\n" \
        "    lse = tl.log(total)\n    tl.store(lse_ptr, lse)\n"

    assert dataflow.lines_of_result(text, {"lse_ptr"}, {"out_ptr"}) == (8, 9)
    assert dataflow.lines_of_result(text, {"out_ptr"}, {"lse_ptr"}) == (6, 7)
    assert dataflow.lines_of_result(text, {"x_ptr"}, set()) == ()


def test_a_maximum_that_a_helper_returns_has_to_be_updated():
    text = "@triton.jit\ndef inner(m_i, x_ptr, n):\n    for start in range(n):\n" \
        "        x = tl.load(x_ptr + start)\n        m_new = tl.maximum(m_i, x)\n    return m_i\n"

    (cause,) = repair(text, [[3]], lambda text: "m_i = m_new" in text)

    assert (cause.kind, cause.line, cause.part) == ("missing update", 5, "m_i")


def test_a_wrong_shape_is_repaired_by_what_changes_shapes():
    text = "def f(a, b, n):\n    mask = n < 4\n    return tl.dot(b, a) + n\n"
    tried: list[str] = []

    repair(text, [[3]], lambda text: bool(tried.append(text)), of_shapes=True)

    assert "tl.dot(a, b)" in tried[0]
    assert all(" + " in one for one in tried)  # the operator stays


def test_a_right_loop_lacks_no_update():
    tried: list[str] = []

    repair(OWN_LOOP, [[11]], lambda text: bool(tried.append(text)))

    assert all(len(text.split("\n")) == len(ast.unparse(ast.parse(OWN_LOOP)).split("\n"))
               for text in tried)


OWN_SOFTMAX = """
@triton.jit
def own_kernel(x_ptr, y_ptr, stride_xm, stride_xn, n_cols, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    offs = tl.arange(0, BLOCK)
    mask = offs < n_cols
    x = tl.load(x_ptr + row * stride_xm + offs * stride_xn, mask=mask, other=-float("inf"))
    largest = tl.max(x, axis=0)
    e = tl.exp(x - largest)
    total = tl.sum(e, axis=0)
    y = e / total
    tl.store(y_ptr + row * n_cols + offs, y, mask=mask)
"""

OWN_LOOP = """@triton.jit
def own_kernel(x_ptr, y_ptr, n_rows, n_cols, BLOCK: tl.constexpr):
    n_down, n_across = tl.cdiv(n_rows, BLOCK), tl.cdiv(n_cols, BLOCK)
    tile = tl.program_id(0)
    number = tile // n_down
    lanes = tl.arange(0, BLOCK)
    m_i = -float("inf")
    rows = tile * BLOCK + tl.arange(0, BLOCK)
    total = 0.0
    tl.device_assert(n_across > 0)
    for start in range(0, n_cols, BLOCK):
        cols = start + lanes
        x = tl.load(x_ptr + cols, mask=cols < n_cols, other=-float("inf"))
        m_new = tl.maximum(m_i, tl.max(x, axis=0))
        e = tl.exp(x - m_new)
        total = total * tl.exp(m_i - m_new) + tl.sum(e, axis=0)
        m_i = m_new
    tl.store(y_ptr + number + rows, total / m_i, mask=rows < n_rows)
"""


def test_another_way_to_write_a_kernel_has_no_line_of_the_solution(tmp_path, sandbox):
    module = MODULES["vector-add"]
    suite = grader.load_suite(module.suite, module.folder, module.solution.parent)
    path = tmp_path / "kernel.py"
    path.write_text(OTHER_WAY)

    report = grader.grade(path, suite, sandbox=sandbox, effort="diagnosis")

    finding = report.first_failure.findings[0]
    assert finding.code == "N01"
    assert "decides the failure" not in finding.means


OTHER_WAY = '''
import torch
import triton
import triton.language as tl


@triton.jit
def add(a, b, c, size, width: tl.constexpr):
    at = tl.program_id(0) * width + tl.arange(0, width)
    inside = at < size
    left = tl.load(a + at, mask=inside)
    right = tl.load(b + at, mask=inside)
    tl.store(c + at, left - right, mask=inside)


def vector_add(x, y):
    result = torch.empty_like(x, memory_format=torch.contiguous_format)
    if x.numel():
        add[(triton.cdiv(x.numel(), 256),)](x.contiguous(), y.contiguous(), result, x.numel(), 256)
    return result
'''


# -- known mistakes ------------------------------------------------------------------------------


@pytest.mark.parametrize(("find", "is_it"), [
    ("@decorated(1)\n", True), ("a + 1", True), ("a + 2", False)])
def test_a_known_mistake_of_another_statement_is_not_the_cause(find, is_it):
    solution = "@decorated(1)\ndef f(a):\n    b = a + 1\n    c = a + 2\n    return b, c\n"
    wrong = solution.replace("decorated(1)", "decorated(2)") if find[0] == "@" else \
        solution.replace("a + 1", "a - 1")
    mutant = Mutant("m", "", (Patch(find, ""),), ("N01",), "")

    (cause,) = causes(wrong, solution, "", {"f"}, lambda text: "2)" not in text and "-" not in text)

    assert cause.may_be(mutant, solution) == is_it
