"""An author's mistakes: each is named with file, line, cause and cure, and without a traceback."""

from __future__ import annotations

import re
import shutil

import pytest

from tests.support import authored
from tritonlab.authoring import module_files, runner
from tritonlab.course import course
from tritonlab.errors import BadCourse

pytestmark = pytest.mark.course

SUITE, MUTANTS, MODULE = "suites/suite.py", "suites/mutants.toml", "tracks/module.toml"
README, KERNEL = "tracks/README.md", "tracks/kernel.py"
PATCH = '[[mutant.patch]]\nfind = "2 * x, mask"\nreplace = "x * x, mask"\n'
REFERENCE = "    reference=lambda x: 2 * x.double(),  # float64, from the inputs as they are\n"
TOLERANCE = "    tolerance=EXACT,  # one multiplication by a power of two: nothing to round\n"
COST = "    cost=lambda x: Cost(bytes=2 * x.nbytes, flops=x.numel()),\n"
GRADED = "## How it is graded\n\n"
LOADED, ANSWERS = "the suite can be loaded", "reference, tolerance and cost answer"

# The check that names it, the file, what is replaced by what, and the message.
MISTAKES = {
    "unknown keyword of a case": (
        LOADED, SUITE, "rand(1_024), public", "rand(1_024), publik",
        "suite.py, line 20: `correctness` has no keyword 'publik'. Did you mean 'public'?"),
    "unknown limit": (
        LOADED, SUITE, "traffic=1.00", "trafic=1.00",
        "suite.py, line 38: `Limits` has no keyword 'trafic'. Did you mean 'traffic'?"),
    "unknown keyword of the suite": (
        LOADED, SUITE, "blanks=4", "blank=4",
        "suite.py, line 13: `Suite` has no keyword 'blank'. Did you mean 'blanks'?"),
    "unknown keyword of an input": (
        LOADED, SUITE, 'rand(37, 53, dtype="float16")', 'rand(37, 53, dytpe="float16")',
        "suite.py, line 25: `rand` has no keyword 'dytpe'. Did you mean 'dtype'?"),
    "unknown dtype": (
        LOADED, SUITE, 'rand(37, 53, dtype="float16")', 'rand(37, 53, dtype="float61")',
        "suite.py, line 25: 'float61' is not a dtype. Did you mean 'float64'?"),
    "missing argument": (
        LOADED, SUITE, 'refuses("x is a list", [1.0, 2.0], raises=TypeError, ',
        'refuses("x is a list", [1.0, 2.0], ',
        "suite.py, line 34: `refuses` is called without 'raises'. Add it"),
    "unknown name of the vocabulary": (
        LOADED, SUITE, "import EXACT,", "import EXAKT,",
        "suite.py, line 7: grader.suite has no 'EXAKT'. Did you mean 'EXACT'?"),
    "name that is not imported": (
        LOADED, SUITE, "performance, rand, refuses", "performance, rand",
        "suite.py, line 34: 'refuses' is not imported. Import it from grader.suite."),
    "misspelled name": (
        LOADED, SUITE, 'correctness("1 024', 'corectness("1 024',
        "suite.py, line 20: 'corectness' is not defined. Did you mean 'correctness'?"),
    "missing tolerance": (
        LOADED, SUITE, TOLERANCE, "",
        "suite.py, line 10: `doubling` has no tolerance. Write tolerance=EXACT"),
    "tolerance that is a number": (
        LOADED, SUITE, "tolerance=EXACT", "tolerance=1e-6",
        "suite.py, line 10: the function `doubling`: tolerance = 1e-06 is not a Tolerance. Write"),
    "missing reference": (
        LOADED, SUITE, REFERENCE, "",
        "suite.py, line 10: `doubling` has no reference. Write reference=lambda …:"),
    "missing cost": (
        LOADED, SUITE, COST, "",
        "suite.py, line 10: `doubling` has no cost, and a case limits its bytes"),
    "forgotten star before cases": (
        LOADED, SUITE, 'edge("no element at all"',
        '[edge("a", rand(1)), edge("b", rand(2))],\n        edge("no element at all"',
        "suite.py, line 31: the function `doubling`: cases contains a list. Write * before"),
    "forgotten star before sizes": (
        LOADED, SUITE, "rand(37, 53), public", "rand((37, 53)), public",
        "suite.py, line 22: an input has the tuple (37, 53) for a size. Write the sizes one by"),
    "forgotten star before inputs": (
        LOADED, SUITE, "rand(37, 53), public", "[rand(37, 53)], public",
        "suite.py, line 22: the case 'a matrix of 37 x 53' has its inputs in a list. Pass them"),
    "star before an input": (
        LOADED, SUITE, "rand(37, 53), public", "*rand(37, 53), public",
        "suite.py, line 22: TypeError: 'Input' object is not iterable. Correct"),
    "something else among the cases": (
        LOADED, SUITE, 'edge("no element at all", rand(0), launches=0)', '"no element at all"',
        "suite.py, line 31: the function `doubling`: cases contains 'no element at all', which"),
    "parameters without a comma": (
        LOADED, SUITE, 'parameters=("x",)', 'parameters=("x")',
        "line 10: the function `doubling`: parameters = 'x' is a text, not a tuple of texts. "
        "Write parameters=('x',) with a comma."),
    "more inputs than parameters": (
        LOADED, SUITE, "rand(37, 53), public", "rand(37, 53), rand(3), public",
        "suite.py, line 22: The case 'a matrix of 37 x 53' has 2 inputs, `doubling` takes 1."),
    "syntax error": (
        LOADED, SUITE, "suite = Suite(", "suite = Suite((",
        "suite.py, line 10: Python cannot parse this: '(' was never closed. Correct the syntax."),
    "import error": (
        LOADED, SUITE, "import torch\n", "import torchy\n",
        "suite.py, line 5: There is no module 'torchy'. Did you mean 'torch'?"),
    "an exception at import": (
        LOADED, SUITE, "import torch\n", "import torch\n\nN = 1 / 0\n",
        "suite.py, line 7: ZeroDivisionError: division by zero. Correct this line"),
    "no suite": (
        LOADED, SUITE, "suite = Suite(", "tests = Suite(",
        "suite.py: The file defines no `suite`. Write suite = Suite(…)."),
    "negative limit": (
        LOADED, SUITE, "traffic=1.00", "traffic=-1.00",
        "suite.py, line 38: a limit: traffic = -1.0 is not a number above 0. Its unit: issued"),
    "share in percent": (
        LOADED, SUITE, "launches=1)", "launches=1, pass_at=60)",
        "suite.py, line 38: a limit: pass_at = 60 is not a number above 0 and at most 1. Its unit"),
    "width in bytes": (
        LOADED, SUITE, "launches=1)", "launches=1, vector=12)",
        "suite.py, line 38: a limit: vector = 12 is not a width in bits. Write one of 8, 16"),
    "count that is not whole": (
        LOADED, SUITE, "launches=1)", "launches=1.0)",
        "suite.py, line 38: a limit: launches = 1.0 is not a whole number of 0 or more."),
    "a case name used twice": (
        LOADED, SUITE, '"1 000 numbers in bfloat16"', '"1 000 numbers in float16"',
        "suite.py, line 24: Several cases are called '1 000 numbers in float16'. Give each"),
    "exception as text": (
        LOADED, SUITE, 'raises=TypeError, mentions=("x", "list")',
        'raises="TypeError", mentions=("x", "list")',
        "suite.py, line 34: the case 'x is a list': raises = 'TypeError' is not an exception"),
    "mentions as text": (
        LOADED, SUITE, 'mentions=("x", "list")', 'mentions="list"',
        "suite.py, line 34: the case 'x is a list': mentions = 'list' is a text, not a tuple"),
    "an exception in the reference": (
        ANSWERS, SUITE, "2 * x.double(),", "2 * x.duble(),",
        "suite.py, line 14: the reference fails: `Tensor` has no attribute 'duble'. Did you"),
    "a reference of other parameters": (
        ANSWERS, SUITE, "reference=lambda x:", "reference=lambda x, y:",
        "suite.py, line 14: the reference fails: TypeError: <lambda>() missing 1 required"),
    "a reference of another shape": (
        ANSWERS, SUITE, "2 * x.double(),", "2 * x.double()[None],",
        "suite.py, line 14: the reference has the shape (1, 1024), and the peer (1024,). Correct"),
    "a reference in float32": (
        ANSWERS, SUITE, "2 * x.double(),  # float64, from the inputs as they are\n    "
        "tolerance=EXACT,",
        "2 * x.float(),\n    tolerance=type(EXACT)(lambda x: None),",
        "suite.py, line 14: the reference is computed in float32. Compute it in float64"),
    "a reference without a tensor": (
        ANSWERS, SUITE, "2 * x.double(),", "2.0,",
        "suite.py, line 14: the reference returns a value of type float. Return a tensor"),
    "a cost of no byte": (
        ANSWERS, SUITE, "Cost(bytes=2 * x.nbytes, flops=x.numel())", "Cost(bytes=0)",
        "suite.py, line 17: the cost of a case is Cost(bytes=0, flops=0). Return Cost(bytes=…)"),
    "cases by their place": (
        LOADED, SUITE, 'entry="doubling",', 'edge("a", rand(3)), edge("b", rand(3)),',
        "suite.py, line 10: `Suite` gets 'parameters' twice: by its place and its name. Pass"),
    "a star and cases by their place": (
        LOADED, SUITE, 'entry="doubling",\n    parameters=("x",),', '*[edge("a", rand(3))],',
        "suite.py, line 10: entry is a Case, not a text. Write the name of the learner's function"),
    "unknown marker": (
        LOADED, SUITE, "blanks=4,", 'blanks=4, marker="FIXME",',
        "suite.py, line 10: the suite: marker = 'FIXME' is neither TODO nor DECIDE. Write"),
    "blanks as text": (
        LOADED, SUITE, "blanks=4,", 'blanks="4",',
        "suite.py, line 10: the suite: blanks = '4' is not a whole number of 0 or more."),
    "cases among the functions": (
        LOADED, SUITE, "blanks=4,", 'blanks=4, functions=[edge("f", rand(3))],',
        "suite.py, line 10: the suite: functions is not a tuple of Functions. Write functions="),
    "depth as text": (
        LOADED, SUITE, "launches=1)", 'launches=1, stages="2")',
        "suite.py, line 38: a limit: stages = '2' is not a whole number of 1 or more."),
    "unknown target": (
        "targets of limits", SUITE, "launches=1)", 'launches=1, target="h1000")',
        "suite.py, line 38: 'h1000' is not a GPU. Did you mean 'h100'? The names are"),
    "a property without a parameter": (
        LOADED, SUITE, "keeps_the_order(submission)", "keeps_the_order()",
        "suite.py, line 43: the property 'doubling keeps the order' does not have one parameter."),
    "a sign that is not a pattern": (
        LOADED, MUTANTS, "todos = [4]", 'todos = [4]\nsign = "("',
        "mutants.toml, line 25: mutant b: the pattern '(' of 'sign' is not a regular expression"),
    "syntax error in the exercise": (
        "signatures of exercise and solution", KERNEL, "def doubling(", "def doubling((",
        "tracks/…/kernel.py, line 44: Python cannot parse this: "),
    "missing key of a mutant": (
        LOADED, MUTANTS, 'title = "the grid is rounded down"\n', "",
        "mutants.toml, line 18: mutant b: 'title' is missing. Add title ="),
    "misspelled key of a mutant": (
        LOADED, MUTANTS, 'meaning = """The double', 'meening = """The double',
        "mutants.toml, line 34: mutant c: 'meening' is not a key. Did you mean 'meaning'?"),
    "mutant without a patch": (
        LOADED, MUTANTS, PATCH, "",
        "mutants.toml, line 30: mutant c: 'patch' is missing. Add [[mutant.patch]]"),
    "patch without a text to find": (
        LOADED, MUTANTS, 'find = "2 * x, mask"\n', "",
        "mutants.toml, line 37: mutant c: a patch has no text 'find'. Write find"),
    "codes as text": (
        LOADED, MUTANTS, 'codes = ["M03"]', 'codes = "M03"',
        "mutants.toml, line 21: mutant b: 'codes' is not a list of texts. Write codes"),
    "misspelled table": (
        LOADED, MUTANTS, "[[mutant]]", "[[mutants]]",
        "mutants.toml, line 6: 'mutants' is not a table of this file. Did you mean 'mutant'?"),
    "mutants that are not TOML": (
        LOADED, MUTANTS, '[[mutant]]\nid = "b"', '[[mutant]\nid = "b"',
        "mutants.toml, line 18: This is not TOML: Expected ']]'"),
    "unknown code of a mutant": (
        "codes of mutants", MUTANTS, '"M03"', '"M33"',
        "mutants.toml, line 21: mutant b: 'M33' is not a code. Did you mean M03? `tritonlab"),
    "misspelled name of a code": (
        "codes of mutants", MUTANTS, '"M03"', '"elements-not-storred"',
        "mutants.toml, line 21: mutant b: 'elements-not-storred' is not a code. Did you mean M03?"),
    "text of a mutant that does not occur": (
        "mutants can be applied", MUTANTS, 'find = "2 * x, mask"', 'find = "3 * x, mask"',
        "mutants.toml, line 38: mutant c: the text to replace occurs 0 times in kernel.py"),
    "text of a mutant that occurs twice": (
        "mutants can be applied", MUTANTS, 'find = "2 * x, mask"', 'find = "mask=mask"',
        "mutants.toml, line 38: mutant c: the text to replace occurs 2 times in kernel.py"),
    "case of a mutant that does not exist": (
        "mutants can be applied", MUTANTS, "todos = [4]", 'todos = [4]\nwrong = ["1024 floats"]',
        "mutants.toml, line 18: mutant b: no case is called '1024 floats'. Did you mean "
        "'1 024 floats'?"),
    "unknown key of a module": (
        "settings of the module", MODULE, "minutes = 120", 'minutes = 120\nbefor = "track1/x"',
        "module.toml, line 5: 'befor' is not a key. Did you mean 'before'? The keys are"),
    "unknown key of hints": (
        "settings of the module", MODULE, "todos = [4]", 'todos = [4]\nfunction = ["f"]',
        "module.toml, line 31: 'function' is not a key. Did you mean 'functions'? The keys are"),
    "unknown prerequisite": (
        "prerequisites", MODULE, "prerequisites = []", 'prerequisites = ["track1/nothing"]',
        "module.toml, line 8: the prerequisite 'track1/nothing' is not the id of a module. Write"),
    "the module as its prerequisite": (
        "prerequisites", MODULE, "prerequisites = []", 'prerequisites = ["track1/doubling"]',
        "module.toml, line 8: the module is its own prerequisite. Remove it"),
    "threshold of the lesson, of a speed": (
        "thresholds of the lesson", README, GRADED, GRADED + "At least 70 % of the copy speed.\n",
        "README.md, line 60: the lesson requires 70 % of a speed, the suite nothing. Correct"),
    "threshold of the lesson, of bytes": (
        "thresholds of the lesson", README, GRADED, GRADED + "At most 1.50x of the minimum.\n",
        "README.md, line 60: the lesson allows 1.50x of the minimum, the suite 1.00x. Correct"),
    "exercise without blanks": (
        "numbers and groups of hints", KERNEL, "# TODO", "# done",
        "kernel.py has no comment `# TODO 1: …`, although its track asks for them: put `..."),
    "missing hints": (
        "numbers and groups of hints", MODULE, "todos = [4]", "todos = []",
        "module.toml: no group of hints is for TODO 4"),
}


@pytest.fixture(scope="module")
def original(tmp_path_factory):
    return authored.make(tmp_path_factory.mktemp("original") / "course").root


@pytest.fixture
def made(original, tmp_path):
    shutil.copytree(original, tmp_path / "mine")
    return authored.make(tmp_path / "mine")


def checked(made: authored.Made) -> dict[str, str]:
    """The faults of the checks that grade nothing, by the check."""
    roots = course.roots_in(made.root)
    the_course = course.load(roots)
    runner._material.cache_clear()
    module = the_course.find(made.module.id)
    done = runner._text(runner.Task(module.id, "text"), the_course, module, made.starter)
    return {outcome.name: "\n".join(outcome.faults) for outcome in done.outcomes
            if outcome.faults}


def test_a_whole_module_has_no_mistake(made):
    assert checked(made) == {}


@pytest.mark.parametrize("name", MISTAKES)
def test_a_mistake_is_named_with_file_line_cause_and_cure(made, name):
    check, file, find, put, message = MISTAKES[name]
    path = made.file(file)
    assert find in path.read_text()
    path.write_text(path.read_text().replace(find, put))

    faults = checked(made)

    assert message in faults.get(check, ""), faults
    assert "Traceback" not in faults[check]


BAD_COURSES = {
    "missing key of module.toml": (
        MODULE, 'title = "Doubling"\n', "",
        "module.toml, line 1: the file cannot be used: 'title' is missing. Write title ="),
    "wrong type in module.toml": (
        MODULE, "minutes = 120", 'minutes = "120"',
        "module.toml, line 4: the file cannot be used: 'minutes' has to be a whole number, not a "
        "text. Write minutes = 60, say."),
    "hints without rungs": (
        MODULE, "rungs = [", "rung = [",
        "module.toml, line 13: the file cannot be used: 'rungs' is missing. Write rungs ="),
    "module.toml that is not TOML": (
        MODULE, "core = true", "core = yes",
        "module.toml, line 3: the file cannot be used, as it is not TOML: Invalid value."),
}


@pytest.mark.parametrize("name", BAD_COURSES)
def test_a_course_that_cannot_be_read_is_named_with_its_line(made, name):
    file, find, put, message = BAD_COURSES[name]
    path = made.file(file)
    path.write_text(path.read_text().replace(find, put))

    with pytest.raises(BadCourse) as failure:
        course.load(course.roots_in(made.root))

    assert message in str(failure.value)


@pytest.mark.parametrize(("make", "message"), [
    ("lambda n: rand(n)", "the function of sizes returns a value of type Input. Return a tuple"),
    ("lambda m: (rand(m),)", "the function of sizes fails: TypeError: <lambda>() got an"),
])
def test_a_function_of_sizes_that_returns_no_inputs_is_named(made, make, message):
    made.edit(SUITE, "rand, refuses\n", "rand, refuses, sizes\n")
    made.edit(SUITE, "    cases=[\n", f"    cases=[\n        sizes({make}, n=(1, 9)),\n")

    assert f"suite.py, line 20: {message}" in checked(made)[ANSWERS]


def test_a_later_prerequisite_is_named(made):
    authored.make(made.root, "track1/tripling")
    made.edit(MODULE, "prerequisites = []", 'prerequisites = ["track1/tripling"]')

    assert checked(made) == {"prerequisites": (
        "module.toml, line 8: the prerequisite 'track1/tripling' comes later in the course. "
        "Remove it, or change the numbers of the folders")}


def test_two_tracks_of_one_number_are_named(made):
    track = made.root / "tracks" / "mastery" / "track.toml"
    track.write_text(track.read_text().replace("number = 4", "number = 1"))

    assert list(module_files.numbers_of_tracks(course.load(course.roots_in(made.root)))) == [
        "tracks/missing-elements/track.toml: number = 1 is that of tracks/mastery too. Give each "
        "track its own number"]


def test_an_error_in_the_reference_is_reported_once_by_a_grade(run, made, home, monkeypatch):
    solution = made.file("solutions/kernel.py").read_text()
    made.edit(SUITE, "2 * x.double(),", "2 * x.duble(),")
    monkeypatch.setenv("TRITONLAB_COURSE", str(made.root))
    run("start", "track1/doubling")
    kernel = home / "tritonlab-workspace" / "track1" / "doubling" / "kernel.py"
    kernel.write_text(solution)

    shown = run("grade", "track1/doubling")

    text = " ".join(shown.out.split())
    assert (shown.code, text.count("the reference fails")) == (3, 1)
    assert re.search(r"suite.py, line 14: the reference fails: `Tensor` has no attribute", text)
    assert "Traceback" not in text


@pytest.mark.parametrize("verb", ["grade", "inspect", "bench"])
def test_a_suite_that_cannot_be_loaded_is_named_to_whoever_grades(run, made, home, monkeypatch,
                                                                  verb):
    made.edit(SUITE, "traffic=1.00", "trafic=1.00")
    monkeypatch.setenv("TRITONLAB_COURSE", str(made.root))
    run("start", "track1/doubling")

    shown = run(verb, "track1/doubling")

    assert (shown.code, shown.out) == (3, "")
    assert "suite.py, line 38: `Limits` has no keyword 'trafic'. Did you mean" in shown.err
    assert shown.err.endswith("`tritonlab check track1/doubling` shows whether the module is "
                              "whole.\n")


def test_right_variants_of_an_own_course_are_graded(run, made):
    folder = module_files.variants_folder(made.module)
    folder.mkdir(parents=True)
    solution = made.file("solutions/kernel.py").read_text()
    (folder / "smaller_tiles.py").write_text(solution.replace("block_size = 1024",
                                                              "block_size = 256"))
    (folder / "wrong.py").write_text(solution.replace("2 * x", "x * x"))

    shown = run("check", "track1/doubling", "--runs", "1", "--plain", "--course", str(made.root))

    assert shown.code == 1
    assert "variants/…/wrong.py: '1 024 floats' fails: N01" in shown.out
    assert "smaller_tiles" not in shown.out
    assert "NOTE 3 mutants and 2 right variants; a module needs 8 and 5" in shown.out


def test_a_module_without_variants_is_proved_with_a_note(run, made):
    shown = run("check", "track1/doubling", "--runs", "1", "--plain", "--course", str(made.root))

    assert (shown.code, "FAIL" in shown.out) == (0, False)
    assert "NOTE 3 mutants and 0 right variants; a module needs 8 and 5" in shown.out
