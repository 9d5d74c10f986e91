"""Submissions of several files: read, copied, imported, and judged with parts of them swapped."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

import pytest

import grader
from grader import Finding, Verdict
from grader.diagnosis import codes
from grader.processes.replies import Answer
from grader.submission.source import MAX_BYTES, UnreadableSubmission, inspect, read
from grader.suite import (
    EXACT,
    Cost,
    Function,
    Suite,
    Tree,
    call,
    correctness,
    load,
    rand,
    reads,
    sibling,
)
from grader.suite.mutants import Mutant, Patch
from grader.worker.fake_driver import NO_LAUNCH
from tritonlab.course import course
from tritonlab.workspace import workspace
from tritonlab.workspace.submission import Submission

pytestmark = pytest.mark.course

ROOT = Path(__file__).parents[2]
MODULES = {module.slug: module for module in course.load(course.Roots(
    ROOT / "tracks", ROOT / "solutions", ROOT / "grader" / "suites")).modules if module.files}

DOOR = """
import sys
from pathlib import Path
sys.path.insert(0, str(Path(__file__).parent / "lib"))
from twice import double
"""
API = """
import torch
from twice.kernel import double_kernel

def double(x):
    y = torch.empty_like(x)
    double_kernel[(1,)](x, y, x.numel(), BLOCK=64)
    return y
"""
KERNEL = """
import triton
import triton.language as tl

@triton.jit
def double_kernel(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    offs = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offs, mask=offs < n)
    tl.store(y_ptr + offs, 2 * x, mask=offs < n)
"""
TESTS = """
import pytest
import torch
from twice import double

@pytest.mark.unit
@pytest.mark.parametrize("n", [8, 5])
def test_values(n):
    x = torch.arange(n, dtype=torch.float32)
    assert torch.equal(double(x), x + x)
"""
FILES = {"kernel.py": DOOR, "lib/twice/__init__.py": "from twice.api import double\n",
         "lib/twice/api.py": API, "lib/twice/kernel.py": KERNEL, "lib/tests/test_twice.py": TESTS,
         "lib/NOTES.md": "It doubles.\n"}
MORE = tuple(name for name in FILES if name != "kernel.py")
HELD = "lib/twice/kernel.py"

CALLS = """
from pathlib import Path

def tests(module, stop):
    from grader.worker import pytest_runner
    return pytest_runner.run(Path(module.__file__).parent / "lib/tests/test_twice.py", stop=stop)

def ends(module, how):
    import os, twice
    if getattr(twice, "HOW", "") == how:
        if how == "dies":
            os._exit(3)
        raise ValueError("no")
    return twice.__name__

def seen(module, path):
    try:
        return Path(path).read_text()[:20]
    except OSError as error:
        return type(error).__name__
"""


def write(folder: Path, changes: Mapping[str, str | None] | None = None) -> Path:
    """The package with some files changed; None leaves one out. Its door."""
    for name, text in {**FILES, **(changes or {})}.items():
        if text is not None:
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_text(text)
    return folder / "kernel.py"


def suite(*cases: object) -> Suite:
    return Suite(
        files=MORE, kernel_file=HELD, name="toy/packages", calls=CALLS, cases=cases,
        functions=[Function("double", ("x",), reference=lambda x: x.double() * 2, tolerance=EXACT,
                            cost=lambda x: Cost(2 * x.nbytes),
                            cases=[correctness("7 floats", rand(7))])])


def graded(path: Path, judged: Suite, sandbox: object) -> grader.Report:
    return grader.grade(path, judged, sandbox=sandbox, effort="values")


def findings(report: grader.Report) -> list[str]:
    assert not [r.reason for r in report.results if r.verdict is Verdict.ERROR]
    return [f"{f.code} {f.seen}" for result in report.results for f in result.findings]


# ---------------------------------------------------------------------------------------------
# Reading


@pytest.mark.parametrize(("changes", "code", "words"), [
    ({}, "", ()),
    ({"lib/NOTES.md": None}, "P02", ("no file lib/NOTES.md",)),
    ({"lib/twice/api.py": "def f(:\n"}, "P02", ("lib/twice/api.py", "line 1")),
    ({"lib/twice/api.py": API + "\ndef g():\n    ...\n"}, "P01", ("lib/twice/api.py line 11",)),
    ({"lib/twice/api.py": API + "\nclass A:\n    def g(self):\n        ...\n"}, "P01",
     ("1 blank is left", "lib/twice/api.py line 12")),
    ({"lib/twice/api.py": API + "\nclass A(Protocol):\n    def g(self): ...\n"}, "", ()),
    ({"lib/twice/kernel.py": KERNEL.replace("@triton.jit", "")}, "P03", ("triton.jit",)),
    ({"lib/twice/api.py": API.replace("double(x)", "double(y)")}, "P04", ("double(x)",)),
    ({"kernel.py": "import torch\n", "lib/twice/api.py": "x = 1\n"}, "P04",
     ("does not define a function",)),
    ({"lib/NOTES.md": "x" * MAX_BYTES}, "P02", ("1,000,000",)),
], ids=["right", "missing", "no Python", "a blank", "a blank method", "a protocol", "no kernel",
        "another signature", "nothing defined", "too large"])
def test_what_is_known_before_anything_runs(tmp_path, changes, code, words):
    submitted = read(write(tmp_path, changes), MORE, HELD)

    found = inspect(submitted, {"double": (("x",), ())}, 0)

    assert [finding.code for finding in found] == ([code] if code else [])
    for word in words:
        assert word in found[0].seen


def test_every_file_belongs_to_the_identity_of_a_submission(tmp_path):
    first = read(write(tmp_path / "a"), MORE, HELD)
    digests = {first.sha256}
    for name in FILES:
        digests.add(read(write(tmp_path / name, {name: FILES[name] + "\n"}), MORE, HELD).sha256)
    moved = {"lib/NOTES.md": TESTS, "lib/tests/test_twice.py": FILES["lib/NOTES.md"]}
    digests.add(read(write(tmp_path / "moved", moved), MORE, HELD).sha256)

    assert len(digests) == len(FILES) + 2
    assert read(write(tmp_path / "same"), MORE, HELD).sha256 == first.sha256


@pytest.mark.parametrize("linked", ["lib/NOTES.md", "lib"])
def test_a_link_out_of_the_folder_is_not_followed(tmp_path, linked):
    door = write(tmp_path / "in")
    write(tmp_path / "out", {"lib/NOTES.md": "secret"})
    inner = tmp_path / "in" / linked
    shutil.rmtree(inner) if inner.is_dir() else inner.unlink()
    inner.symlink_to(tmp_path / "out" / linked)

    submitted = read(door, MORE, HELD)

    assert submitted.problem is not None and "points outside" in submitted.problem.seen
    assert b"secret" not in b"".join(submitted.files.values())


def test_a_folder_in_place_of_a_file_is_refused(tmp_path):
    door = write(tmp_path, {"lib/NOTES.md": None})
    (tmp_path / "lib" / "NOTES.md").mkdir()

    with pytest.raises(UnreadableSubmission, match="folder"):
        read(door, MORE, HELD)


def test_a_mutant_patches_the_file_that_it_names():
    mutant = Mutant("a", "", (Patch("2 * x", "3 * x", HELD),), ("N01",), "")

    mutated = mutant.apply_to(FILES)

    assert [name for name in FILES if mutated[name] != FILES[name]] == [HELD]
    with pytest.raises(ValueError, match=r"0 times in kernel\.py"):
        Mutant("b", "", (Patch("2 * x", "3 * x"),), ("N01",), "").apply_to(FILES)


# ---------------------------------------------------------------------------------------------
# Grading


def test_a_package_passes_and_a_wrong_one_is_told_with_its_line(tmp_path, sandbox):
    right = graded(write(tmp_path / "right"), suite(), sandbox)
    wrong = graded(write(tmp_path / "wrong", {HELD: KERNEL.replace("offs < n)", "offs < n + 1)")}),
                   suite(), sandbox)

    assert right.verdict is Verdict.PASSED, findings(right)
    first = wrong.first_failure
    assert first is not None and first.findings[0].code == "M02"
    assert first.findings[0].where == "Line 9 of lib/twice/kernel.py"


def test_files_are_read_as_texts(tmp_path, sandbox):
    def check(texts: Mapping[str, str]) -> None:
        assert texts["kernel.py"] == DOOR
        if "triples" not in texts["lib/NOTES.md"]:
            raise AssertionError("the notes say nothing of three")

    judged = suite(reads("the notes", "notes", check=check))

    said = findings(graded(write(tmp_path / "no"), judged, sandbox))
    report = graded(write(tmp_path / "yes", {"lib/NOTES.md": "It triples."}), judged, sandbox)

    assert said == ["Q01 The notes say nothing of three."]
    assert report.verdict is Verdict.PASSED


def in_trees(check: Callable[..., None], *, of: str = "tests", inputs: tuple[object, ...] = (True,),
             **inits: str) -> Suite:
    """A suite that asks in trees whose package is replaced; each is the text of its __init__."""
    trees = [Tree(name, {**{name: FILES[name] for name in MORE if name.startswith("lib/twice")},
                         "lib/twice/__init__.py": text}, "lib/twice/")
             for name, text in inits.items()]
    return suite(call("in other trees", of, *inputs, check=check, trees=trees, seconds=20.0))


GOOD = FILES["lib/twice/__init__.py"]
BAD = "def double(x):\n    return x + x * (x.numel() != 8)\n"
FAR = (API + KERNEL).replace("from twice.kernel import double_kernel", "").replace(
    "y_ptr + offs, 2 * x, mask=offs < n", "y_ptr + offs, 2 * x, mask=offs < 8")


def test_tests_meet_other_packages_in_place_of_their_own(tmp_path, sandbox):
    outcomes = {}

    def check(answers: Mapping[str, object], stop: bool) -> None:
        for name, answer in answers.items():
            outcomes[name] = [(test["name"], test["outcome"], test["markers"][-1])
                              for test in answer.value["tests"]]

    report = graded(write(tmp_path), in_trees(check, good=GOOD, bad=BAD, far=FAR), sandbox)

    assert report.verdict is Verdict.PASSED, findings(report)
    assert outcomes == {
        "good": [("test_values[8]", "passed", "unit"), ("test_values[5]", "passed", "unit")],
        "bad": [("test_values[8]", "failed", "unit")],
        "far": [("test_values[8]", "passed", "unit"), ("test_values[5]", "failed", "unit")],
    }


@pytest.mark.parametrize(("effort", "asked"), [
    ("values", ["good", "bad", "far", "late"]), ("diagnosis", ["good", "bad"])])
def test_trees_are_asked_until_the_case_is_settled_where_not_all_is_to_be_told(
    tmp_path, sandbox, monkeypatch, effort, asked
):
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: {0})  # one tree after the other
    seen: list[str] = []

    def check(answers: Mapping[str, object], stop: bool) -> None:
        seen.extend(answers)
        raise AssertionError("bad was seen")

    judged = in_trees(check, good=GOOD, bad=BAD, far=FAR, late=GOOD)
    [case] = judged.cases
    judged = replace(judged, cases=[replace(case, call=replace(
        case.call, settled=lambda answers: "bad" in answers))])
    report = grader.grade(write(tmp_path), judged, sandbox=sandbox, effort=effort)

    assert (report.verdict, seen) == (Verdict.FAILED, asked)


def test_what_a_test_says_names_a_fixture_that_is_missing_and_no_folder(tmp_path, sandbox):
    said = {}

    def check(result: Mapping[str, object], stop: bool) -> None:
        said.update({test["name"]: (test["outcome"], test["why"]) for test in result["tests"]})

    tests = TESTS + """
def test_files(tmp_path):
    pass

def test_paths():
    raise OSError(__file__)
"""
    judged = suite(call("its tests", "tests", False, check=check, seconds=20.0))
    graded(write(tmp_path, {"lib/tests/test_twice.py": tests}), judged, sandbox)

    assert said["test_files"] == ("error", "fixture 'tmp_path' not found")
    assert said["test_paths"] == ("failed", "OSError: test_twice.py")


@pytest.mark.parametrize(("body", "line", "code", "why"), [
    ("    assert double(x).sum() == 7, 'too much'", 14, "assert double(x).sum() == 7, 'too much'",
     "AssertionError: too much; assert tensor(6.) == 7"),
    ("    equal(double(x), 7)", 14, "equal(double(x), 7)",
     "AssertionError: Not equal to tolerance"),
    ("    double(None)", 14, "double(None)", "TypeError: "),
], ids=["a message and a comparison", "another library's", "an exception of the package"])
def test_a_failed_test_names_its_line_and_what_failed(tmp_path, sandbox, body, line, code, why):
    said = {}

    def check(result: Mapping[str, object], stop: bool) -> None:
        said.update({test["name"]: test for test in result["tests"]})

    tests = f"""from numpy.testing import assert_allclose as equal{TESTS}
def test_three():
    x = torch.ones(3)
{body}
"""
    judged = suite(call("its tests", "tests", False, check=check, seconds=20.0))
    graded(write(tmp_path, {"lib/tests/test_twice.py": tests}), judged, sandbox)

    assert (said["test_three"]["line"], said["test_three"]["code"]) == (line, code)
    assert said["test_three"]["why"].startswith(why)
    assert said["test_values[8]"]["line"] is None


def test_a_tree_that_does_not_end_well_is_told_and_stops_no_other(tmp_path, sandbox):
    said = {}

    def check(answers: Mapping[str, object], how: str) -> None:
        said.update({name: answer.other or (answer.error and answer.error.types[0])
                     or answer.value for name, answer in answers.items()})

    judged = in_trees(check, of="ends", inputs=("dies",), dies="HOW = 'dies'\n" + GOOD, good=GOOD,
                      broken="1 / 0\n")
    report = graded(write(tmp_path), judged, sandbox)

    assert report.verdict is Verdict.PASSED, findings(report)
    assert said["good"] == "twice"
    assert "ended the process" in said["dies"]
    assert "ZeroDivisionError" in said["broken"]


def test_a_package_can_read_its_own_files_and_none_of_another_tree(tmp_path, sandbox):
    answers = {}

    def check(answer: str, path: str) -> None:
        answers[path] = answer

    hidden = str(ROOT / "grader" / "suites" / "mastery")
    paths = (str(write(tmp_path)), hidden, "/etc/shadow")
    report = graded(tmp_path / "kernel.py", suite(*(
        call(f"reads {path}", "seen", path, check=check) for path in paths)), sandbox)

    assert not findings(report)
    if "landlock" in report.isolation:
        assert set(answers.values()) == {"PermissionError"}


# ---------------------------------------------------------------------------------------------
# Modules of several files


@pytest.mark.parametrize("slug", MODULES)
def test_module_and_suite_name_the_same_files(slug):
    assert set(MODULES[slug].files) == set(load(MODULES[slug].suite).files)


@pytest.mark.parametrize(("files", "edited"), [
    (("package/one/api.py", "package/README.md"), ["package/"]),
    (("devices.py", "profiles.json", "reports/R1.txt"), ["kernel.py"]),
], ids=["a package", "evidence beside the kernel"])
def test_what_there_is_to_edit_is_the_folder_with_code_or_the_kernel(files, edited, tmp_path,
                                                                     monkeypatch):
    module = replace(MODULES["production-ready"], files=files)
    submission = Submission(module, tmp_path / module.id / "kernel.py", None)
    (tmp_path / module.id).mkdir(parents=True)

    shown = []
    for place in (tmp_path, tmp_path / module.id):
        monkeypatch.chdir(place)
        shown.append(submission.to_edit)

    assert shown == [f"{module.id}/{edited[0]}", *edited]


@pytest.mark.parametrize("slug", MODULES)
def test_start_copies_all_files_and_keeps_what_is_there(slug, tmp_path):
    module = MODULES[slug]
    kept = tmp_path / module.id / module.files[0]
    kept.parent.mkdir(parents=True)
    kept.write_text("mine")

    _, started = workspace.start(module, tmp_path)

    assert kept.read_text() == "mine" and module.files[0] in started.kept
    for name in module.files[1:]:
        assert (tmp_path / module.id / name).read_bytes() == (module.folder / name).read_bytes()


# ---------------------------------------------------------------------------------------------
# The reader of workflows that the suite of production-ready brings along


WORKFLOW = sibling(str(MODULES["production-ready"].suite), "workflow")
assert sys.modules[WORKFLOW.__name__] is WORKFLOW


@pytest.mark.parametrize(("text", "value"), [
    ("", None),
    ("a: 1\nb: x y\n", {"a": 1, "b": "x y"}),
    ("on: [push, 'pull_request']\n", {"on": ["push", "pull_request"]}),
    ("on:\n  push:\n  pull_request: {}\n", {"on": {"push": None, "pull_request": {}}}),
    ("a:\n- b\n- c: 1\n  d: 2\n-\n  - e\n", {"a": ["b", {"c": 1, "d": 2}, ["e"]]}),
    ("a: |\n  one: 1\n\n  # two\nb: true\n", {"a": "one: 1\n\n# two\n", "b": True}),
    ("a: >-\n  one\n  two\n", {"a": "one two\n"}),
    ("a: one\n  two  # three\n", {"a": "one two"}),
    ("a: [1,\n  {b: 'c, d'}]\n", {"a": [1, {"b": "c, d"}]}),
    ("---\n# x\n'a b': \"c # d\"\n", {"a b": "c # d"}),
    ("if: ${{ a == 'b' }}\nurl: https://a.b/c\n", {"if": "${{ a == 'b' }}",
                                                  "url": "https://a.b/c"}),
])
def test_yaml_is_read(text, value):
    assert WORKFLOW.read(text) == value


@pytest.mark.parametrize(("text", "word"), [
    ("a: b: c\n", "quotation"), ("a:\n\tb: 1\n", "tab"), ("a: [1, 2\n", "expected"),
    ("a: 1\n  b: 2\n", "key"), ("a: 'x\n", "closed"), ("- a\nb: 1\n", "indentation"),
    ("a: 1\na: 2\n", "twice"), ("a: *x\n", "alias"), ("a: 1\nb\n", "colon"),
    ("[" * 5_000, "deeply"), ("a: 1\n" * 5_000, "characters"),
])
def test_what_is_no_yaml_is_told(text, word):
    with pytest.raises(WORKFLOW.NotYaml, match=word):
        WORKFLOW.read(text)


# ---------------------------------------------------------------------------------------------
# Its checks of texts, each with a text that it must fail; they all pass the solution


TEXTS = sibling(str(MODULES["production-ready"].suite), "texts")
CI, NOTES, CHANGES = TEXTS.CI, TEXTS.README, "package/CHANGELOG.md"
API_PY, KERNEL_PY, INIT_PY = (f"package/addrmsnorm/{name}.py" for name in (
    "api", "kernel", "__init__"))


def texts_of(slug: str) -> dict[str, str]:
    module = MODULES[slug]
    return {name: (module.solution.parent / name).read_text() for name in module.files}


@pytest.mark.parametrize("check", ["docstrings", "type_hints", "readme", "continuous_integration",
                                   "version", "checklist"])
def test_the_solution_has_all_that_is_asked_of_its_texts(check):
    assert getattr(TEXTS, check)(texts_of("production-ready")) is None  # it raises otherwise


@pytest.mark.parametrize(("check", "file", "find", "put", "word"), [
    ("docstrings", "package/addrmsnorm/errors.py", "class KernelExecutionError",
     "class ExecutionError", "KernelExecutionError"),
    ("docstrings", API_PY, "    Returns:\n", "    Gives:\n", "Returns"),
    ("docstrings", API_PY, "        eps: a positive number that is added to the mean square.\n",
     "", "eps"),
    ("docstrings", API_PY, "        >>> ", "        ", ">>>"),
    ("docstrings", API_PY, "KernelResourceError: the", "MemoryError: the", "KernelResourceError"),
    ("docstrings", KERNEL_PY, "    Computes:\n", "    Makes:\n", "Computes"),
    ("docstrings", KERNEL_PY, "        eps: added", "        eps added", ""),
    ("type_hints", API_PY, "def _warps(block_size: int) -> int:", "def _warps(block_size) -> int:",
     "block_size"),
    ("type_hints", API_PY, "def __post_init__(self) -> None:", "def __post_init__(self):",
     "returns"),
    ("readme", NOTES, "## Limits", "## Bounds", "Limits"),
    ("readme", NOTES, "| eps <= 0 | `InputValidationError`", "| eps <= 0 | `ValueError`", "eps"),
    ("readme", NOTES, "| no rows (R = 0) | two empty results, no launch |", "| no rows | |",
     "R = 0"),
    ("readme", NOTES, ", on device cpu", "", "device"),
    ("continuous_integration", CI, "on: [push, pull_request]", "on: push", "pull_request"),
    ("continuous_integration", CI, "jobs:", "work:", "no jobs"),
    ("continuous_integration", CI, "actions/checkout@v4\n      - uses", "actions/checkout@v2\n"
     "      - uses", "v4"),
    ("continuous_integration", CI, "      - uses: actions/checkout@v4\n      - run: pip install -e "
     "\".[test]\"\n      - run: python -m pytest\n", "      - run: python -m pytest\n", "check"),
    ("continuous_integration", CI, "ubuntu-latest", "gpu-latest", "hosted"),
    ("continuous_integration", CI, "TRITON_INTERPRET: \"1\"", "TRITON_INTERPRET: \"0\"",
     "without a GPU nothing"),
    ("continuous_integration", CI, "python -m pytest -m \"not gpu\"", "pip install pytest",
     "without a GPU nothing"),
    ("continuous_integration", CI, "runs-on: [self-hosted, gpu]", "runs-on: ubuntu-latest",
     "self-hosted"),
    ("continuous_integration", CI, "    steps:\n      - uses: actions/checkout@v4\n      - uses",
     "    steps: [\n      - uses", "as YAML"),
    ("version", INIT_PY, "\"1.0.0\"", "\"1.0\"", "semantic"),
    ("version", INIT_PY, "\"1.0.0\"", "\"0.0.0\"", "no release"),
    ("version", INIT_PY, "__version__ = \"1.0.0\"", "__version__ = str(1)", "__version__"),
    ("version", CHANGES, "## 1.0.0", "## 0.9.0", "latest entry"),
    ("version", CHANGES, "## 1.0.0 - 2026-11-22", "1.0.0", "no entry"),
    ("checklist", NOTES, "- [x] Inputs", "- [ ] Inputs", "not ticked"),
    ("checklist", NOTES, "[errors.py](addrmsnorm/errors.py)", "errors.py", "no link"),
    ("checklist", NOTES, "(benchmarks/bench_add_rms_norm.py)", "(README.md)", "benchmarks/"),
    ("checklist", NOTES, "- [x] Versioned, with a changelog: [CHANGELOG.md](CHANGELOG.md)\n", "",
     "missing"),
    ("checklist", NOTES, "# addrmsnorm", "x" * 100_001, "characters"),
])
def test_what_is_missing_in_a_text_is_named(check, file, find, put, word):
    texts = texts_of("production-ready")
    assert texts[file].count(find) >= 1
    texts[file] = texts[file].replace(find, put)

    if not word:
        getattr(TEXTS, check)(texts)
        return
    with pytest.raises(AssertionError) as caught:
        getattr(TEXTS, check)(texts)
    assert word in str(caught.value)


# What the learner's tests of production-ready did, and what is said of it.

PRODUCTION = load(MODULES["production-ready"].suite)


def told(name: str, answer: object, *inputs: object) -> str:
    """What the check of a case says of an answer; nothing where it is right."""
    [case] = [case for case in PRODUCTION.all_cases if case.name == name]
    try:
        case.call.check(answer, *inputs)
    except AssertionError as error:
        return str(error)
    return ""


def ran(**outcomes: str) -> dict[str, object]:
    """Tests by their markers: each did what it says."""
    return {"problems": [], "tests": [
        {"name": f"test_{marker}", "markers": [marker], "outcome": outcome, "why": "no",
         "line": 7, "code": "assert yes"}
        for marker, outcome in outcomes.items()]}


KINDS = {"unit": "passed", "edge": "passed", "property": "passed", "regression": "passed",
         "gpu": "skipped"}
UNREADABLE = {"tests": [], "problems": ["ImportError: no"]}


@pytest.mark.parametrize(("result", "says"), [
    (ran(**KINDS), ""),
    (ran(**{**KINDS, "regression": "failed"}), ""),
    (ran(**{**KINDS, "regression": "skipped"}), "`regression` was skipped"),
    (ran(**{**KINDS, "gpu": "passed"}), "was not skipped"),
    (ran(**KINDS, parametrize="passed"), "`test_parametrize` has none"),
    (UNREADABLE, "cannot read your tests: ImportError: no"),
], ids=["all kinds", "one fails", "one is skipped", "gpu runs", "without a marker", "unreadable"])
def test_kinds_of_tests_are_told_apart(result, says):
    said = told("your tests are of all five kinds", result)

    assert (said == "") if not says else says in said


@pytest.mark.parametrize(("result", "says"), [
    (UNREADABLE, "your tests cannot be read, so they notice nothing: ImportError: no"),
    (ran(unit="passed"), "your tests notice 0 of 14 mutants"),
    (ran(unit="failed"), ""),
], ids=["unreadable", "blind", "all noticed"])
def test_tests_that_cannot_be_read_are_no_blind_ones(result, says):
    trees = next(case for case in PRODUCTION.all_cases
                 if case.name == "your tests notice wrong packages").call.trees

    said = told("your tests notice wrong packages", {tree.name: Answer(result) for tree in trees})

    assert said.startswith(says) and bool(said) is bool(says)


@pytest.mark.parametrize(("results", "settled"), [
    ([ran(unit="failed"), ran(unit="failed")], False),
    ([ran(unit="failed"), ran(unit="passed")], True),
    ([ran(unit="failed"), UNREADABLE], False),  # with another package they may be read
    ([ran(unit="failed")] * 5 + [ran(unit="passed")], False),  # enough others may be noticed
], ids=["noticed", "a critical one lives", "unreadable", "another lives"])
def test_a_critical_mutant_that_lives_settles_what_tests_are_worth(results, settled):
    case = next(case for case in PRODUCTION.all_cases
                if case.name == "your tests notice wrong packages")
    answers = {tree.name: Answer(result)
               for tree, result in zip(case.call.trees, results, strict=False)}

    assert case.call.settled(answers) is settled
    survives = "critical mutant of the class *divisor* survives"
    assert not settled or survives in told(case.name, answers)


@pytest.mark.parametrize(("result", "says"), [
    (ran(unit="failed"), "your test `test_unit` rejects a right package other than yours (this "
                         "way); line 7, `assert yes`: no"),
    (ran(unit="failed", edge="failed"), "(this way), as does 1 more; line 7"),
    (ran(unit="error"), "`test_unit` could not start; it cannot be set up: line 7, `assert yes`: "
                        "no"),
], ids=["one", "two", "not begun"])
def test_why_a_right_package_was_not_accepted_is_said(result, says):
    assert says in told("your tests pass on other right packages", {"this way": Answer(result)})


CONTRACT = """
import torch
from addrmsnorm import Config, InputTypeError, InputValidationError, add_rms_norm

def refused(call):
    try:
        call()
    except InputValidationError as error:
        return isinstance(error, InputTypeError), [
            name for problem in error.problems
            for name in ("x", "residual", "weight", "eps", "config", "num_warps", "max_columns",
                         "check_outputs") if problem.startswith(name)]

def test_contract():
    x, w, meta = torch.ones(4, 8), torch.ones(8), torch.ones(4, 7, device="meta")
    assert refused(lambda: Config(num_warps=3, max_columns="8", check_outputs=1)) == (
        False, ["num_warps", "max_columns", "check_outputs"])
    assert refused(lambda: Config(num_warps=True, check_outputs=None)) == (
        True, ["num_warps", "check_outputs"])
    assert refused(lambda: Config(num_warps=64, max_columns=0)) == (
        False, ["num_warps", "max_columns"])
    assert refused(lambda: add_rms_norm(x, None, w.half(), "1", config=4)) == (
        True, ["residual", "weight", "eps", "config"])
    assert refused(lambda: add_rms_norm(x, meta, w, config=4)) == (
        False, ["residual", "residual", "config"])
    import numpy
    assert refused(lambda: add_rms_norm(x, x, w, numpy.float64(1e-6))) is None
    y, _ = add_rms_norm(1e10 * x, 0 * x, 1e30 * w)
    assert torch.allclose(y, 1e30 * x)
"""


@pytest.mark.parametrize("name", ["the solution", *(
    tree.name for case in PRODUCTION.cases
    if case.name == "your tests pass on other right packages" for tree in case.call.trees)])
def test_a_package_that_learners_tests_have_to_accept_keeps_the_contract(name, tmp_path):
    folder = ROOT / "solutions" / "mastery" / "05-production-ready" / "package" / "addrmsnorm"
    [case] = [one for one in PRODUCTION.cases
              if one.name == "your tests pass on other right packages"]
    files = next((tree.files for tree in case.call.trees if tree.name == name),
                 {f"package/addrmsnorm/{file.name}": file.read_text()
                  for file in folder.glob("*.py")})
    for path, text in (files | {"package/test_contract.py": CONTRACT}).items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(text)

    ended = on_the_interpreter(tmp_path / "package")

    assert ended.returncode == 0, ended.stdout


def on_the_interpreter(folder: Path) -> subprocess.CompletedProcess[str]:
    """Runs pytest in a folder as a job of CI does, with the grader's interpreter."""
    return subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "tritonlab.interpreter", "-c", os.devnull,
         "--rootdir", folder, folder], env=os.environ | {"TRITON_INTERPRET": "1"},
        cwd=folder, capture_output=True, text=True, timeout=120, check=False)


ROUNDS = """
import os
os.environ.setdefault("TRITON_INTERPRET", "1")
import torch
import triton
import triton.language as tl

@triton.jit
def narrow_kernel(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    offs = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offs, mask=offs < n)
    tl.store(y_ptr + offs, x.to(tl.bfloat16), mask=offs < n)

def narrowed(n):
    x, y = torch.randn(n), torch.empty(n, dtype=torch.bfloat16)
    narrow_kernel[(1,)](x, y, 100, BLOCK=128)
    return x, y

def test_it_rounds():
    x, y = narrowed(100)
    assert torch.equal(y, x.bfloat16())

def test_it_strays():
    narrowed(99)
"""


def test_the_interpreter_for_ci_rounds_bfloat16_and_watches_every_access(tmp_path):
    (tmp_path / "test_rounds.py").write_text(ROUNDS)

    ended = on_the_interpreter(tmp_path)

    assert "1 failed, 1 passed" in ended.stdout
    assert "AssertionError: program 0 loaded 1 element past the end of `x_ptr`" in ended.stdout


def test_a_launch_where_an_error_is_asked_for_is_no_matter_of_this_machine():
    said = told("the classes of the contract and of Python", {
        "types": ["RuntimeError"], "message": f"`add` is launched, but {NO_LAUNCH}: so"})

    assert "reached a launch" in said
    assert NO_LAUNCH not in said


def test_one_wrong_argument_is_not_told_as_several():
    one = Finding("E03", "The message “residual: no” does not mention (4, 8).")
    first = Finding("E03", "For a residual of …, `problems` should begin with residual, weight and "
                           "eps, in this order; it holds ['residual: no'].")

    assert [m and m.id for m in (codes.known_mistake(finding, PRODUCTION.mutants, frozenset())
                                 for finding in (one, first))] == [None, "f"]
