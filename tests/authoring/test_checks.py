"""`tritonlab check`: every check fails a module that it must fail and passes one that it must."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import threading
from concurrent.futures.process import BrokenProcessPool
from dataclasses import replace
from pathlib import Path

import pytest

from grader.processes import pool
from grader.report import CaseResult, Finding, Kind, Report, Skip, Verdict
from grader.sandbox.processes import descendants
from grader.suite import (
    Function,
    Limits,
    Mutant,
    Property,
    Suite,
    Tree,
    call,
    rand,
    reads,
    refuses,
    sizes,
)
from grader.suite.mutants import Patch
from tests.support import authored, toy
from tests.support.waiting import wait_until
from tritonlab.authoring import checks, expectations, module_files, runner
from tritonlab.authoring import mutants as mutated
from tritonlab.authoring.worker_pool import WorkerPool
from tritonlab.course import course

pytestmark = pytest.mark.course

ROOMY = 120.0  # seconds, for processes to go where many tests share the machine


@pytest.fixture
def made(tmp_path):
    return authored.make(tmp_path / "course")


def found(check: str, made: authored.Made) -> str:
    return "\n".join(checks.READ[check](made.material))


# ------------------------------------------------------------ what is read


@pytest.mark.parametrize("track", authored.STARTERS)
@pytest.mark.parametrize("check", checks.READ)
def test_a_module_that_new_made_passes_once_its_prompts_are_answered(tmp_path, track, check):
    made = authored.make(tmp_path, f"{track}/doubling")

    assert found(check, made) == ""
    assert list(module_files.files(made.module)) == []


FAULTS = [
    ("nothing left to write", "tracks/README.md", "Words about the story", "WRITE ME: the story",
     "tracks/…/README.md, line 9: the story in five lines"),
    ("nothing left to write", "suites/mutants.toml", "[[mutant]]\nid = \"c\"",
     "# WRITE ME: more\n[[mutant]]\nid = \"c\"", "suites/…/mutants.toml, line"),
    ("headings and diagrams of the lesson", "tracks/README.md", "## Pitfalls", "## Traps",
     "README.md has no section 'Pitfalls'\nREADME.md has a section 'Traps', which is not a "
     "standard section"),
    ("headings and diagrams of the lesson", "tracks/README.md", "## Why it exists\n",
     "## The idea\n\n## Why it exists\n", "the section 'The idea' more than once"),
    ("headings and diagrams of the lesson", "tracks/README.md", "| 0   1   2   3 |", "|" + " " * 60,
     "a line of a diagram has"),
    ("headings and diagrams of the lesson", "tracks/README.md", "```text\n item", "```\n item",
     "'The idea' has no diagram"),
    ("headings and diagrams of the lesson", "tracks/README.md", "# Doubling\n", "\n# Doubling\n",
     "does not begin with a title"),
    ("headings and diagrams of the lesson", "tracks/README.md", "<!-- In words: ", "<!-- ",
     "a diagram without words"),
    ("the lesson is short on grading", "tracks/README.md", "[How kernels",
     "word " * 60 + "[How kernels",
     "of the words, 10% are the most"),
    ("the lesson is short on grading", "tracks/README.md", "grading.md", "graded.md",
     "does not link ../../grading.md"),
    ("the three questions are answered", "solutions/answers.md", "\n2. ", "\n4. ",
     "answers.md is not a list with the numbers 1, 2, 3"),
    ("numbers and groups of hints", "tracks/kernel.py", "# TODO 3:", "# TODO 5:",
     "are numbered 1, 2, 4, 5, not 1 to 4"),
    ("numbers and groups of hints", "tracks/kernel.py", "# TODO 4:", "# which grid",
     "suite.py says blanks=4, kernel.py has 3"),
    ("numbers and groups of hints", "tracks/module.toml", "todos = [1, 2, 3]", "todos = [1, 2]",
     "no group of hints is for TODO 3"),
    ("numbers and groups of hints", "tracks/module.toml", "todos = [4]", "todos = [4, 9]",
     "hints are for TODO 9, which kernel.py does not have"),
    ("numbers and groups of hints", "tracks/module.toml", "todos = [4]", "todos = [3, 4]",
     "two groups of hints are for TODO 3"),
    ("numbers and groups of hints", "suites/suite.py", "blanks=4,", 'blanks=4, marker="DECIDE",',
     'suite.py says marker="DECIDE", the track asks for "TODO"'),
    ("numbers and groups of hints", "tracks/module.toml", "todos = [4]",
     'todos = [4]\nfunctions = ["halving"]', "hints are for `halving`, which no case asks"),
    ("rungs of hints", "tracks/module.toml", "rungs = [\n", 'rungs = [\n    "one more",\n',
     "group A has 4 rungs, not 3"),
    ("rungs of hints", "tracks/module.toml", "Words about a question that points at the idea",
     "mask = offs <n_elements", "holds a line of the solution: `mask = offs < n_elements`"),
    ("rungs of hints", "tracks/module.toml", "Words about a question that points at the idea", "",
     "rung 1 of group A is empty"),
    ("rungs of hints", "tracks/module.toml", "total = tl.sum(", "total = = tl.sum(",
     "the code in rung 3 of group A cannot be parsed: invalid syntax"),
    ("signatures of exercise and solution", "tracks/kernel.py", "def doubling(x:",
     "def doubling(y:", "`doubling` is `(y: torch.Tensor) -> torch.Tensor` in the exercise"),
    ("signatures of exercise and solution", "tracks/kernel.py", "def check_argument(",
     "def inspect_argument(", "the exercise defines `inspect_argument"),
    ("signatures of exercise and solution", "suites/suite.py", 'entry="doubling"',
     'entry="double"', "defines no `double`, which the suite grades"),
    ("signatures of exercise and solution", "tracks/kernel.py", "block_size = 1024",
     "block_size = 2048", "a line that the solution does not have: `block_size = 2048`"),
    ("the exercise can be completed", "solutions/kernel.py", "block_size = 1024",
     "block_size = 512", "`doubling` of the solution is not that of the exercise"),
    ("no blank in the solution", "solutions/kernel.py", "block_size = 1024",
     "block_size = ...", "1 blank is left"),
    ("no blank in the solution", "solutions/kernel.py", "block_size = 1024",
     "block_size = 1024  # TODO 3: why?", "still asks TODO 3"),
    ("public cases", "suites/suite.py", 'rand(1_024), public=True', 'rand(1_024)',
     "2 correctness cases are public, 3 at least should be"),
    ("public cases", "suites/suite.py", '[::2], public=True', '[::2]',
     "0 edge cases are public"),
    ("mutants can be applied", "solutions/kernel.py", "grid = (triton", "grid=(triton",
     "occurs 0 times"),
    ("mutants can be applied", "suites/mutants.toml", 'id = "b"', 'id = "a"',
     "another mutant has this id"),
    ("mutants can be applied", "suites/mutants.toml", "todos = [4]",
     'todos = [4]\nwrong = ["2 000 floats"]', "no case is called '2 000 floats'"),
    ("mutants can be applied", "suites/mutants.toml", "todos = [4]", "todos = [40]",
     "kernel.py has no TODO 40"),
    ("mutants can be applied", "suites/mutants.toml", "todos = [4]",
     "todos = [4]\nsign = { sides = 1, kind = { like = 2 } }",
     "`sign` names like and sides, which no finding has"),
    ("mutants can be applied", "suites/mutants.toml", '"M03"', "", "it names no code"),
    ("mutants can be applied", "suites/mutants.toml", "x * x, mask", "2 * x, mask",
     "it is the solution"),
    ("settings of the module", "tracks/module.toml", "minutes = 120", "minutes = 120\nlevel = 3",
     "module.toml, line 5: 'level' is not a key"),
    ("thresholds of the lesson", "tracks/README.md", "## How it is graded\n",
     "## How it is graded\nIt allows 1.50x of the minimum.\n", "the suite 1.00x"),
    ("targets of limits", "suites/suite.py", "launches=1)", 'launches=1, target="h1000")',
     "'h1000' is not a GPU. Did you mean 'h100'?"),
    ("codes of mutants", "suites/mutants.toml", '"M03"', '"M33"', "'M33' is not a code"),
]


@pytest.mark.parametrize(("check", "name", "find", "put", "said"), FAULTS,
                         ids=[f"{fault[0]}: {fault[-1][:40]}" for fault in FAULTS])
def test_a_check_tells_what_is_wrong(made, check, name, find, put, said):
    broken = made.edit(name, find, put)

    assert said in found(check, broken)


def test_every_check_has_a_module_that_it_must_fail():
    assert {fault[0] for fault in FAULTS} | {"nothing astray"} == set(checks.READ)


@pytest.mark.parametrize("name", [
    "tracks/module.toml", "tracks/README.md", "tracks/lesson.py", "tracks/kernel.py",
    "solutions/kernel.py", "solutions/answers.md", "suites/suite.py", "suites/mutants.toml"])
def test_a_missing_file_is_named(made, name):
    made.file(name).unlink()

    kind, _, rest = name.partition("/")
    assert list(module_files.files(made.module)) == [
        f"{kind}/missing-elements/01-doubling/{rest} is missing"]


@pytest.mark.parametrize("name", ["tracks/notes.txt", "solutions/kernel_old.py", "suites/old.py"])
def test_a_stray_file_is_named_and_what_python_leaves_is_not(made, name):
    made.file("tracks/__pycache__").mkdir()
    made.file(name).write_text("")

    (said,) = checks.READ["nothing astray"](made.material)

    assert made.file(name).name in said


def test_what_lies_beside_a_suite_may_be_named_by_it(made):
    made.file("suites/numbers.py").write_text("")
    made.edit("suites/suite.py", "import torch\n", "import torch\n\nHERE = 'numbers'\n")

    assert found("nothing astray", made) == ""


def test_folders_that_belong_to_no_module_are_named(made):
    for place in ("tracks/missing-elements/halving", "solutions/missing-elements/07-halving",
                  "suites/elsewhere"):
        (made.root / place).mkdir(parents=True)
    roots = course.roots_in(made.root)

    assert list(module_files.strays(course.load(roots), roots)) == [
        "tracks/missing-elements/halving has no module.toml, or no name such as 07-slug",
        "solutions/missing-elements/07-halving belongs to no module",
        "suites/elsewhere belongs to no track",
    ]


def test_a_module_without_mutants_is_not_proved(made):
    material = replace(made.material, suite=replace(made.material.suite, mutants=()))

    [fault] = checks.sound_mutants(material)

    assert fault.startswith(
        "mutants.toml has no mutant: nothing proves that the suite detects a mistake. Write")


def test_what_is_there_twice_or_unknown_is_named(tmp_path):
    root = authored.make(tmp_path).root
    track = root / "tracks" / "missing-elements"
    shutil.copytree(track / "01-doubling", track / "01-halving")
    shutil.copytree(track / "01-doubling", track / "02-doubling")
    (track / "track.toml").write_text((track / "track.toml").read_text().replace("blanks", "gaps"))
    roots = course.roots_in(root)

    said = list(module_files.strays(course.load(roots), roots))

    assert said[:3] == [
        'tracks/missing-elements/track.toml: starter = "gaps" is none of blanks, slow, broken, '
        "specification",
        "two modules of track1 are 1.1: rename the folder of one",
        "two modules of track1 are track1/doubling: rename the folder of one"]


@pytest.mark.parametrize("before", ["track1/nowhere", "track1/doubling", "track2/doubling"])
def test_a_warm_up_of_no_other_module_of_its_track_is_named(made, before):
    module = made.file("tracks/module.toml")
    module.write_text(f'before = "{before}"\n' + module.read_text())
    roots = course.roots_in(made.root)

    assert list(module_files.strays(course.load(roots), roots)) == [
        f'track1/doubling says before = "{before}", which is not another module of track1']


def test_a_number_out_of_the_order_of_the_text_is_named(made):
    for old, new in (("TODO 1:", "TODO 9:"), ("TODO 2:", "TODO 1:"), ("TODO 9:", "TODO 2:")):
        made.edit("tracks/kernel.py", old, new)

    assert found("numbers and groups of hints", made) == "kernel.py: TODO 1 stands after TODO 2"


def test_where_nothing_is_numbered_hints_name_the_functions(tmp_path):
    made = authored.make(tmp_path, "track4/doubling")

    broken = made.edit("tracks/module.toml", 'functions = ["doubling"]', "functions = []")

    assert "no group of hints names `doubling`" in found("numbers and groups of hints", broken)
    assert "says neither `todos` nor `functions`" in found("numbers and groups of hints", broken)


# ------------------------------------------------------------ what runs


def test_a_lesson_has_to_run_and_to_print(made):
    lesson = made.file("tracks/lesson.py")
    said = []
    for text in ("print('a lesson')", "x = 1", "print(1)\nraise ValueError('no')"):
        lesson.write_text(text)
        said.append(" ".join(runner.lesson_runs(made.material)))

    assert said == ["", "lesson.py prints nothing",
                    "lesson.py ended with exit code 1: ValueError: no"]


def test_a_lesson_has_to_end(made, monkeypatch):
    monkeypatch.setattr(runner, "LESSON_S", 0.2)
    made.file("tracks/lesson.py").write_text("while True: pass")

    assert list(runner.lesson_runs(made.material)) == ["lesson.py did not finish within 0 s"]


@pytest.mark.parametrize(("text", "said"), [
    ("", ""), ("pid = # TODO 1\n", "invalid syntax"),
    ("import no_such_thing", "No module named 'no_such_thing'"),
    ("while True:\n    pass\n", "did not finish within 2 s"),
    ("import os\nos._exit(3)\n", "status 3"),
    ("from __future__ import annotations\nfrom dataclasses import dataclass\n\n"
     "@dataclass\nclass A:\n    n: int", ""),
])
def test_an_exercise_has_to_be_importable(made, sandbox, monkeypatch, text, said):
    monkeypatch.setattr(pool, "LOAD_S", 2.0 if "while" in text else ROOMY)
    made.file("tracks/kernel.py").write_text(text)

    faults = list(runner.exercise_imports(made.material, sandbox))

    assert [fault for fault in faults if said in fault] if said else faults == []


def test_a_loose_suite_fails_the_self_test(made):
    broken = made.edit("suites/suite.py", "tolerance=EXACT",
                       "tolerance=Tolerance(lambda x: Amplitude(1e9))")
    broken.edit("suites/suite.py", "import EXACT,", "import EXACT, Amplitude, Tolerance,")

    assert "zeros" in " ".join(runner.self_test(broken.material))
    assert list(runner.self_test(authored.make(made.root, "track2/other").material)) == []


# ------------------------------------------------------------ what a grade shows


def case(code: str = "", kind: Kind = Kind.CORRECTNESS, verdict: Verdict | None = None,
         **more: object) -> CaseResult:
    """A case that gets this code, or passes."""
    finding = Finding(code, f"{code} was seen.", **more)
    verdict = verdict or (Verdict.FAILED if code else Verdict.PASSED)
    return CaseResult(f"a case of {code or verdict}", kind, verdict, (finding,) if code else (),
                      reason="" if code else "why")


def report(*results: CaseResult, **more: object) -> Report:
    return toy.report(results, target="H100", **more)


COUNTED = case(kind=Kind.PERFORMANCE)
BLANK = case("P01", todos=(1, 2, 3, 4))
BROKE = case(verdict=Verdict.ERROR)
EXERCISES = [
    ("blanks", report(BLANK), ""),
    ("gaps", report(BLANK), 'starter = "gaps" is none of'),
    ("blanks", report(case("P01", todos=(1, 2))), "the grader finds TODO 1, 2 in the exercise"),
    ("blanks", report(case("N01")), "the first finding is not P01"),
    ("blanks", report(COUNTED), "fails no case"),
    ("blanks", report(BLANK, BROKE), "broke the grader or the suite: why"),
    ("blanks", report(BLANK, *[BROKE] * 5), "and 4 more broke the grader or the suite: why"),
    ("blanks", report(BLANK, reason="gone"), "the grader could not continue: gone"),
    ("blanks", report(case(verdict=Verdict.FAILED)), "fails without a finding"),
    ("slow", report(case(), case("T01", Kind.PERFORMANCE)), ""),
    ("slow", report(case("N01"), case("T01", Kind.PERFORMANCE)), "has to be right and slow"),
    ("slow", report(case("L05", Kind.PERFORMANCE)), "L05, which is not about speed"),
    ("broken", report(case("M01")), ""),
    ("broken", report(case("P01")), "has blanks, and its track gives broken code"),
    ("broken", report(case("P02")), "cannot be imported"),
    ("broken", report(COUNTED), "fails no case"),
    ("specification", report(case("P01")), ""),
    ("specification", report(case("P03")), "the first finding is not P01"),
]


@pytest.mark.parametrize(("starter", "result", "said"), EXERCISES,
                         ids=[f"{e[0]}: {e[2] or 'as promised'}" for e in EXERCISES])
def test_an_exercise_fails_as_its_track_says(tmp_path, starter, result, said):
    tracks = {known: track for track, known in authored.STARTERS.items()}
    made = authored.make(tmp_path, f"{tracks.get(starter, 'track1')}/doubling")
    material = replace(made.material, starter=starter)

    faults = list(expectations.exercise_as_promised(material, result))

    assert [fault for fault in faults if said in fault] if said else faults == []


def test_a_specification_holds_no_code(tmp_path):
    made = authored.make(tmp_path, "track4/doubling")
    broken = made.edit("tracks/kernel.py", "    ...\n", "    y = 2 * x\n    ...\n")

    faults = list(expectations.exercise_as_promised(broken.material, report(case("P01"))))

    assert faults == ["the body of `doubling` in the exercise is more than `...`"]


SOLUTIONS = [
    (report(case(), COUNTED), ""),
    (report(case(), COUNTED, replace(case(verdict=Verdict.SKIPPED), reason="no GPU was found",
             skipped=Skip.GPU)),
     ""),
    (report(case(), COUNTED, case(verdict=Verdict.SKIPPED)), "was not decided: why"),
    (report(case(), COUNTED, case(verdict=Verdict.INCONCLUSIVE)), "was not decided: why"),
    (report(case("N01"), COUNTED), "'a case of N01' fails: N01 N01 was seen."),
    (report(case(), COUNTED, replace(case("Q01"), advisory=True)), "'a case of Q01' fails"),
    (report(case(), COUNTED, BROKE), "broke the grader or the suite"),
    (report(case()), "the evidence is 'correct', not 'efficient'"),
    (report(), "no case was run"),
]


@pytest.mark.parametrize(("result", "said"), SOLUTIONS, ids=[s[1] or "right" for s in SOLUTIONS])
def test_a_solution_passes_everything(result, said):
    faults = list(expectations.solution_passes(result))

    assert [fault for fault in faults if said in fault] if said else faults == []


MUTANT = Mutant("a", "a title", (), ("N01", "T01"), "a meaning", (2,))
KILLED = case("N01", means="a meaning", todos=(2,))
TRAFFIC = case("T01", Kind.PERFORMANCE)
KILLS = [
    (report(KILLED, TRAFFIC), True, ""),
    (report(KILLED), False, ""),
    (report(KILLED), True, "T01 was not found"),
    (report(case("M01"), TRAFFIC, KILLED), True, "'a case of M01' gives M01 instead of N01"),
    (report(case("M01")), False, "'a case of M01' gives M01 instead of N01"),
    (report(case(), COUNTED), True, "it lives: PASSED"),
    (report(case(), BROKE), True, "broke the grader or the suite"),
    (report(KILLED, TRAFFIC, BROKE), True, "broke the grader or the suite"),
    (report(case("N01", means="another"), TRAFFIC), True, "names another mistake: another"),
    (report(case("N01", means="a meaning", todos=(3,)), TRAFFIC), True,
     "points at 3, not at 2"),
]


def test_one_case_of_a_grade_is_looked_at_alone():
    several = report(KILLED, replace(KILLED, name="again"), replace(case(), name="passed"))

    assert list(expectations.survives(MUTANT, several, case="again")) == []
    assert list(expectations.survives(MUTANT, several, case="passed")) == ["it lives: PASSED"]
    assert list(expectations.survives(MUTANT, several, case="not run")) == ["it lives: SKIPPED"]


@pytest.mark.parametrize(("result", "whole", "said"), KILLS, ids=[k[2] or "killed" for k in KILLS])
def test_a_mutant_is_killed_with_its_codes_and_its_own_diagnosis(result, whole, said):
    faults = list(expectations.survives(MUTANT, result, whole=whole))

    assert [fault for fault in faults if said in fault] if said else faults == []


@pytest.mark.parametrize(("narrow", "grades"), [
    (report(KILLED, TRAFFIC), ["diagnosis"]),
    (report(KILLED), ["diagnosis", "values"]),  # T01 is elsewhere
    (report(case("N01", means="another"), TRAFFIC), ["diagnosis", "values"]),
], ids=["told by what mistakes name", "a further code", "another mistake"])
def test_a_mutant_is_judged_by_the_cases_that_tell_mistakes_and_by_all_where_those_find_fault(
    made, monkeypatch, narrow, grades
):
    material = made.material
    [first] = material.suite.mutants[:1]
    known = replace(MUTANT, id=first.id, patches=first.patches, wrong=("a case of N01",))
    material = replace(material, suite=replace(material.suite, mutants=(known,)))
    asked = []

    def grade(kernel, suite, *, effort, sandbox):
        asked.append(effort)
        return narrow if effort == "diagnosis" else report(KILLED, TRAFFIC)

    monkeypatch.setattr(runner.grader, "grade", grade)

    killed = mutated.kill(material, known.id, None)

    assert (killed, asked) == (("a case of N01", []), grades)


def test_a_mutant_has_to_be_killed_with_its_code_in_each_further_run(made, sandbox):
    """``a`` gets M01 in a case whose size is no multiple of a block, and nothing in others.

    A case that killed it by luck of its inputs leaves it to the others.
    """
    material = made.material
    [first] = material.suite.mutants[:1]
    harmless = replace(first, patches=(Patch("import torch\n", "import torch  # and no more\n"),))
    wrong_code = replace(first, codes=("N01",))

    def found(killer, mutant=first):
        suite = replace(material.suite, mutants=(mutant,))
        return mutated.kill_again(replace(material, suite=suite), "a", killer, 2, sandbox)

    assert found("1 000 floats, less than a tile") == [[], []]
    assert found("1 024 floats") == [[], []]
    assert found("1 024 floats", harmless) == [["it lives: PASSED"]] * 2
    [[said], _] = found("1 024 floats", wrong_code)
    assert "'1 000 floats, less than a tile' gives M01 instead of N01" in said


@pytest.mark.parametrize(("files", "kept"), [
    (["package/api.py"], ["refused", "own"]), (["tests/test_it.py"], ["refused", "own", "others"]),
    (["package/api.py", "kernel.py"], ["refused", "own", "others"])])
def test_what_runs_nothing_of_a_mutant_is_left_to_the_solution(made, files, kept):
    trees = [Tree(name, {"package/api.py": ""}, "package/") for name in ("one", "two")]
    suite = Suite(cases=[refuses("refused", raises=ValueError), call("own", "f", check=print),
                         call("others", "f", check=print, trees=trees)])
    mutant = replace(MUTANT, patches=tuple(Patch("a", "b", file) for file in files))
    material = replace(made.material, suite=suite, solution={
        "kernel.py": "a", "package/api.py": "a", "tests/test_it.py": "a"})

    assert [one.name for one in mutated.concerned(material, mutant).cases] == kept


TWO = "def one(x):\n    return x + 1\n\n\ndef two(x):\n    return x + 2\n"


@pytest.mark.parametrize(("find", "put", "code", "kept"), [
    ("x + 1", "x", "N01", ["one: a", "one: b", "two: b", "asked", "read"]),  # `two: b` tells N01
    ("x + 1", "x", "N02", ["one: a", "one: b", "asked", "read"]),
    ("x + 2", "x", "N02", ["two: a", "two: b", "asked", "read"]),
    ("two(x)", "two(", "N02", ["one: a", "one: b", "two: a", "two: b", "asked", "read"]),
])
def test_functions_that_reach_nothing_of_a_mutant_are_left_to_the_solution(
        made, find, put, code, kept):
    cases = [replace(made.material.suite.all_cases[0], name=name, function="") for name in "ab"]
    known = replace(MUTANT, id="known", codes=("N01",), right=("two: b",))
    suite = Suite(functions=[Function("one", cases=cases), Function("two", cases=cases)],
                  cases=[call("asked", "f", check=print), reads("read", "texts", check=print),
                         sizes(lambda n: (rand(n),), n=(1, 9))],
                  mutants=(known,))
    mutant = replace(MUTANT, codes=(code,), patches=(Patch(find, put),))
    material = replace(made.material, suite=suite, solution={"kernel.py": TWO})

    assert [one.name for one in mutated.concerned(material, mutant).all_cases] == kept


@pytest.mark.parametrize(("track", "effort"), [("track2", "whole"), ("track3", "diagnosis")])
def test_an_exercise_that_is_right_and_slow_has_to_compile(tmp_path, monkeypatch, track, effort):
    asked = []
    monkeypatch.setattr(runner.grader, "grade", lambda kernel, suite, *, effort, sandbox: (
        asked.append(effort) or report(case("M01"))))

    list(runner.exercise_fails(authored.make(tmp_path, f"{track}/doubling").material, None))

    assert asked == [effort]


def test_a_run_that_was_skipped_is_no_run(made, sandbox):
    """A file that cannot be imported is tried once in a grade."""
    material = made.material
    [first] = material.suite.mutants[:1]
    broken = replace(first, codes=("P02",), patches=(Patch("import torch", "import tortch"),))
    material = replace(material, suite=replace(material.suite, mutants=(broken,)))

    killer, _ = mutated.kill(material, first.id, sandbox)

    assert mutated.kill_again(material, first.id, killer, 3, sandbox) == [[], [], []]


@pytest.mark.parametrize(("limits", "grades"), [(None, [3]), (Limits(traffic=1.0), [1, 1, 1])])
def test_what_the_compiler_is_asked_about_is_run_in_a_grade_of_its_own(made, monkeypatch, limits,
                                                                       grades):
    material, asked = made.material, []
    killer = replace(material.suite.all_cases[-1], name="a case", limits=limits)
    material = replace(material, suite=replace(material.suite, cases=[killer], properties=()))

    def grade(kernel, suite, *, effort, sandbox):
        asked.append(len(suite.all_cases))
        return report(*(replace(case("M01"), name=one.name) for one in suite.all_cases))

    monkeypatch.setattr(runner.grader, "grade", grade)

    found = mutated.kill_again(material, "a", "a case", 3, None)

    assert (found, asked) == ([[]] * 3, grades)


def test_a_case_is_repeated_with_the_one_that_shows_its_functions_block(made):
    def doubles(name):
        return replace(made.material.suite.all_cases[0], name=name, function="")

    suite = replace(made.material.suite, cases=(), functions=[
        Function("one", cases=[doubles("a"), doubles("b"), doubles("c")]),
        Function("two", cases=[doubles("a"), doubles("b")])],
        properties=(Property("a law", test=print), Property("another", test=print)))

    chosen = {name: mutated.repeated(suite, name, 2) for name in ("one: c", "two: a", "another")}

    assert {name: [case.name for case in narrow.all_cases] for name, (narrow, _) in
            chosen.items()} == {"one: c": ["one: a", "one: c, time 1", "one: c, time 2"],
                                "two: a": ["two: a, time 1", "two: a, time 2"], "another": []}
    assert [law.name for law in chosen["another"][0].properties] == chosen["another"][1]
    assert all(names == [f"{name}, time 1", f"{name}, time 2"]
               for name, (_, names) in chosen.items())


# ------------------------------------------------------------ all of it


def test_a_course_is_proved_with_a_kill_matrix(run, tmp_path):
    root = authored.make(tmp_path / "mine").root
    authored.make(root, "track2/lazy").edit(  # a mutant that no case can tell from the solution
        "suites/mutants.toml", 'replace = "x * x, mask"', 'replace = "x + x, mask"')

    shown = run("check", "--json", "--runs", "2", "--course", str(root))
    data = json.loads(shown.out)

    assert (shown.code, data["exit_code"], data["passed"]) == (1, 1, False)
    whole, lazy = data["modules"]
    assert (whole["module"], whole["passed"], lazy["passed"]) == ("track1/doubling", True, False)
    assert all(check["passed"] for module in data["modules"] for check in module["checks"])
    assert [check["name"] for check in whole["checks"]] == [
        "files", "prerequisites", *checks.READ, "reference, tolerance and cost answer",
        "the solution passes everything", "the exercise can be imported",
        "the exercise fails as a track of 'blanks' says", "lesson.py runs",
        "the suite tells wrong answers from right ones"]
    assert [(m["id"], m["codes"], m["case"], m["kills"], m["runs"]) for m in whole["mutants"]] == [
        ("a", ["M01"], "1 000 floats, less than a tile", 2, 2),
        ("b", ["M03"], "1 000 floats, less than a tile", 2, 2),
        ("c", ["N01"], "1 024 floats", 2, 2)]
    assert lazy["mutants"][2]["kills"] == 0
    assert lazy["mutants"][2]["faults"] == ["it lives: PASSED"]
    assert data["next"] == f"tritonlab check track2/lazy --course {root}"


def test_a_suite_that_cannot_be_loaded_is_told_and_nothing_else_is_tried(run, tmp_path):
    made = authored.make(tmp_path / "mine")
    made.edit("suites/suite.py", "suite = Suite(", "suite = Sweet(")

    shown = run("check", "--plain", "--course", str(made.root))

    assert shown.code == 1
    assert "FAIL the suite can be loaded" in shown.out
    assert "'Sweet' is not defined." in shown.out
    assert "FAILED 0 of 1 module proved; 0 of 0 mutants" in shown.out


def test_what_is_astray_fails_a_check_of_the_whole_course_alone(run, tmp_path):
    made = authored.make(tmp_path / "mine")
    made.file("suites/suite.py").write_text("")  # so that nothing else is tried
    (made.root / "suites" / "elsewhere").mkdir()

    every, one = (run("check", *ids, "--plain", "--course", str(made.root))
                  for ids in ([], ["doubling"]))

    assert (every.code, one.code) == (1, 1)
    assert "FAIL suites/elsewhere belongs to no track" in every.out
    assert "elsewhere" not in one.out


@pytest.mark.parametrize(("words", "code", "said"), [
    (["check", "sofmax"], 2, "Did you mean track1/softmax?"),
    (["check", "--runs", "0"], 2, ""),
    (["check", "--course", "nowhere"], 2, "There is no course in nowhere"),
    (["check", "--course", "empty"], 2, "There is no module to check."),
    (["check", "--course", "torn"], 1, "the file cannot be used"),
])
def test_bad_input_gets_a_sentence_and_a_stable_exit_code(run, home, words, code, said):
    authored.empty_course(home / "empty")
    torn = authored.make(home / "torn")
    torn.file("tracks/module.toml").write_text("title = ")

    shown = run(*words)

    assert (shown.code, shown.out) == (code, "")
    assert said in shown.err


def test_nothing_is_proved_by_nothing():
    assert not runner.CourseProof(()).passed
    assert not runner.Proof("m", "M").passed
    assert runner.CourseProof((), broken="a traceback").exit_code == 3
    assert not runner.MutantResult("a", "t", ("N01",)).passed


# ------------------------------------------------------------ the workers


class workshop:  # noqa: N801 - a context manager for workers, which import it by its name
    def __init__(self, works: bool = True) -> None:
        self.works = works

    def __enter__(self):
        if not self.works:
            raise OSError("no folder for tools")
        return self.do

    def __exit__(self, *_: object) -> None:
        pass

    def do(self, task: str) -> object:
        if task == "raise":
            raise ValueError("as asked")
        if task == "pid":
            return os.getpid()
        if task == "hang":
            threading.Event().wait()
        if task == "die":
            os._exit(1)
        return threading.Lock() if task == "lock" else task.upper()


def test_a_pool_returns_results_and_raises_why_there_is_none():
    with WorkerPool(1, workshop) as pool:
        one = pool.submit("one").result()
        with pytest.raises(ValueError, match="as asked"):
            pool.submit("raise").result()
        with pytest.raises(BrokenProcessPool):
            pool.submit("die").result()
        two = pool.submit("two").result()

    assert (one, two) == ("ONE", "TWO")  # a process that died was replaced


def test_processes_of_a_pool_work_beside_each_other():
    with WorkerPool(2, workshop) as pool:
        hanging = pool.submit("hang")
        pid = pool.submit("pid").result()
        done = hanging.done()

    assert not done
    assert pid != os.getpid()
    assert alive({pid}) == set()


def test_a_process_that_dies_takes_the_tasks_in_progress_along():
    with WorkerPool(2, workshop) as pool:
        futures = [pool.submit(task) for task in ("hang", "die")]
        errors = [future.exception() for future in futures]

    assert [type(error) for error in errors] == [BrokenProcessPool] * 2


def test_processes_of_a_pool_that_start_while_their_parent_is_killed_end(tmp_path):
    (tmp_path / "killed.py").write_text(
        "import contextlib, multiprocessing, os, signal\n"
        "from tritonlab.authoring.worker_pool import WorkerPool\n"
        "if __name__ == '__main__':\n"
        "    WorkerPool(2, contextlib.nullcontext)\n"
        "    print(*(one.pid for one in multiprocessing.active_children()), flush=True)\n"
        "    os.kill(os.getpid(), signal.SIGKILL)\n")

    done = subprocess.run([sys.executable, str(tmp_path / "killed.py")], capture_output=True,
                          text=True, timeout=60)  # all that have its output end

    pids = {*map(int, done.stdout.split())}
    assert (done.returncode, len(pids)) == (-signal.SIGKILL, 2)
    assert alive(pids) == set()


def test_a_result_that_cannot_be_sent_is_an_error():
    with WorkerPool(1, workshop) as pool, pytest.raises(TypeError, match="cannot pickle"):
        pool.submit("lock").result()


def test_a_pool_without_a_workshop_says_why():
    with WorkerPool(1, workshop, False) as pool, pytest.raises(OSError, match="no folder for too"):
        pool.submit("one").result()


def test_a_check_whose_workers_die_ends_with_3(tmp_path, monkeypatch):
    made = authored.make(tmp_path)
    monkeypatch.setattr(runner, "_workshop", dying)

    proved = runner.prove([made.module], course.roots_in(made.root), workers=2)

    assert (proved.exit_code, proved.passed) == (3, False)
    assert proved.broken == "track1/doubling: text: its worker process ended unexpectedly"


class dying(workshop):  # noqa: N801
    def __init__(self, *_: object) -> None:
        super().__init__()

    def do(self, task: object) -> None:
        os._exit(1)


def alive(pids: set[int]) -> set[int]:
    left = set()
    for pid in pids:
        try:
            state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
        except OSError:
            continue
        left |= {pid} if state != "Z" else set()
    return left


def command_line(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_text()
    except OSError:  # it ended in between
        return ""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_whoever_stops_it_leaves_no_process_behind(tmp_path, number):
    made = authored.make(tmp_path / "mine")
    made.file("tracks/lesson.py").write_text("import time\ntime.sleep(600)\n")
    checking = subprocess.Popen(
        [sys.executable, "-m", "tritonlab", "check", "--course", str(made.root)],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True)
    wait_until(lambda: checking.poll() is not None or any(
        "lesson.py" in command_line(pid) for pid in descendants(checking.pid)), every_s=0.2)
    assert checking.poll() is None
    family = set(descendants(checking.pid))

    checking.send_signal(number)
    out, err = checking.communicate(timeout=ROOMY)
    wait_until(lambda: not alive(family), every_s=0.2)
    if number is signal.SIGINT:
        assert (checking.returncode, out) == (130, "")
        assert "Stopped." in err
