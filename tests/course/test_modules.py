"""Every module proved, check by check, and right solutions that differ from ours accepted.

That suites tell wrong answers from right ones is proved in ``test_selftest.py``.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

import pytest

import grader
from grader import Verdict
from tests.fidelity import variants
from tritonlab.authoring import checks, expectations, module_files, runner
from tritonlab.authoring import mutants as mutated
from tritonlab.course import course

pytestmark = pytest.mark.course
ROOT = Path(__file__).parents[2]
ROOTS = course.Roots(ROOT / "tracks", ROOT / "solutions", ROOT / "grader" / "suites")
COURSE = course.load(ROOTS)
MODULES = {module.id: module for module in COURSE.modules}
STARTERS = {track.folder: track.starter for track in COURSE.tracks}


@cache
def material_of(module_id: str) -> module_files.Material:
    module = MODULES[module_id]
    return module_files.read(module, STARTERS[module.track])


MUTANTS = [(name, mutant.id) for name in MODULES for mutant in material_of(name).suite.mutants]
VARIANTS = [(name, path) for name, module in MODULES.items() for path in variants.of(module.slug)]

SEED = "60d5eed"  # the inputs of every run; `tritonlab check` draws new ones
for_every_module = pytest.mark.parametrize("name", MODULES)


def test_there_are_modules_mutants_and_variants():
    assert len(MODULES) >= 2
    for module in MODULES:
        assert len([name for name, _ in MUTANTS if name == module]) >= 8
        assert len([name for name, _ in VARIANTS if name == module]) >= 5


def test_an_overlay_replaces_inserts_and_deletes_statements_by_name():
    base = '"""Ours."""\nimport math\n\nA = 1\n\n\ndef f():\n    return A\n\n\nB = f()\n'
    changes = '"""Theirs."""\ndel A\n\n\ndef g():\n    return math.pi\n\n\nB = g()\nC = 2\n'

    assert variants.overlaid(base, changes) == (
        '"""Theirs."""\nimport math\n\n\ndef f():\n    return A\n\n\ndef g():\n    return math.pi\n'
        '\n\nB = g()\nC = 2\n')


def test_an_overlay_deletes_only_what_the_solution_has():
    with pytest.raises(ValueError, match="'A' is not in list"):
        variants.overlaid("B = 1\n", "del A\n")


def test_nothing_is_astray_in_the_course():
    assert list(module_files.strays(COURSE, ROOTS)) == []


@for_every_module
def test_the_files_are_complete(name):
    assert list(module_files.files(MODULES[name])) == []


@for_every_module
@pytest.mark.parametrize("check", checks.READ)
def test_what_is_read(check, name):
    assert list(checks.READ[check](material_of(name))) == []


@for_every_module
def test_the_exercise_can_be_imported(name, sandbox):
    assert list(runner.exercise_imports(material_of(name), sandbox)) == []


@for_every_module
def test_the_untouched_exercise_fails_as_its_track_says(name, sandbox):
    assert list(runner.exercise_fails(material_of(name), sandbox)) == []


@pytest.mark.parametrize(("name", "mutant"), MUTANTS,
                         ids=[f"{MODULES[name].slug}-{mutant}" for name, mutant in MUTANTS])
def test_a_mutant_is_killed_with_its_code(name, mutant, sandbox, tmp_path):
    """Up to its first failure; `tritonlab check` asks for the diagnosis too.

    As there, what runs nothing of a mutant is left to the solution's own grade, in `test_journey`.
    """
    material = material_of(name)
    [known] = [one for one in material.suite.mutants if one.id == mutant]
    module_files.write(known.apply_to(material.solution), tmp_path)

    report = grader.grade(tmp_path / module_files.KERNEL, mutated.concerned(material, known),
                          sandbox=sandbox, effort="first", seed=SEED)

    assert list(expectations.survives(known, report, whole=False)) == []


@pytest.mark.parametrize(("name", "path"), VARIANTS,
                         ids=[f"{MODULES[name].slug}-{path.stem}" for name, path in VARIANTS])
def test_right_but_different_solutions_pass(name, path, sandbox, tmp_path):
    kernel = variants.whole(path, MODULES[name].solution, tmp_path)

    # What the compiler reports for each is part of `python -m tests.fidelity`.
    report = grader.grade(kernel, material_of(name).suite, sandbox=sandbox, effort="uncompiled",
                          seed=SEED)

    said = [f"{r.name}: {f.code} {f.seen}" for r in report.results for f in r.findings]
    assert report.verdict is Verdict.PASSED, said or report.reason
