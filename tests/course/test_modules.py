"""Every module proved, check by check, and right solutions that differ from ours accepted.

What was proved before for the same files, by `tritonlab check` too, is not proved again; see
``--no-cache``. That suites tell wrong answers from right ones is proved in
``judge/test_discrimination.py``.
"""

from __future__ import annotations

import subprocess
import sys
import textwrap

import pytest

import grader
from grader import Verdict
from grader.submission import source
from tests.fidelity import variants
from tests.support.shipped import COURSE, MODULES, ROOTS, material_of
from tritonlab.authoring import checks, module_files, proofs, runner

pytestmark = pytest.mark.course

MUTANTS = [(name, mutant.id) for name in MODULES for mutant in material_of(name).suite.mutants]
VARIANTS = [(name, path) for name, module in MODULES.items() for path in variants.of(module.slug)]

SEED = "60d5eed"  # the inputs of right solutions; those of mutants are fresh
for_every_module = pytest.mark.parametrize("name", MODULES)


def test_there_are_modules():
    assert len(MODULES) >= 2


@for_every_module
def test_a_module_has_the_mutants_and_right_variants_that_it_needs(name):
    own = [path for module, path in VARIANTS if module == name]
    if not own:
        pytest.skip(f"{name} has no right variant yet; it needs {module_files.VARIANTS_NEEDED}")

    assert len([one for one, _ in MUTANTS if one == name]) >= module_files.MUTANTS_NEEDED
    assert len(own) >= module_files.VARIANTS_NEEDED
    assert sorted(module_files.variants(MODULES[name])) == sorted(own)


def test_no_suite_imports_the_compiler_of_torch():
    """It takes a second, and arithmetic on tensors without values, say in a view, needs it."""
    script = textwrap.dedent("""
        import sys
        import grader
        from grader.judge import oversized
        from tests.support.shipped import MODULES
        for name, module in MODULES.items():
            oversized.limits(grader.load_suite(module.suite))
            if "torch._dynamo" in sys.modules:
                sys.exit(name)
        """)

    shown = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True,
                           check=False)

    assert (shown.returncode, shown.stderr) == (0, "")


def test_an_overlay_replaces_inserts_and_deletes_statements_by_name():
    base = '"""Ours."""\nimport math\n\nA = 1\n\n\ndef f():\n    return A\n\n\nB = f()\n'
    changes = '"""Theirs."""\ndel A\n\n\ndef g():\n    return math.pi\n\n\nB = g()\nC = 2\n'

    assert variants.overlaid(base, changes) == (
        '"""Theirs."""\nimport math\n\n\ndef f():\n    return A\n\n\ndef g():\n    return math.pi\n'
        '\n\nB = g()\nC = 2\n')


def test_an_overlay_deletes_only_what_the_solution_has():
    with pytest.raises(ValueError, match="'A' is not in list"):
        variants.overlaid("B = 1\n", "del A\n")


def test_an_overlay_imports_statements_from_the_overlays_beside_it(tmp_path):
    (tmp_path / "other.py").write_text("import math\n\nA = 1\n\n\ndef f():\n    return A\n")
    (tmp_path / "this.py").write_text('"""This."""\n\nfrom .other import A, f\n\nB = 2\n')

    assert variants.spelled_out(tmp_path / "this.py") == (
        '"""This."""\n\nA = 1\n\n\ndef f():\n    return A\n\nB = 2\n')


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
def test_the_untouched_exercise_is_imported_and_fails_as_its_track_says(name, sandbox):
    outcomes = runner.check("exercise", material_of(name), sandbox)

    assert [fault for outcome in outcomes for fault in outcome.faults] == []


@pytest.mark.parametrize(("name", "mutant"), MUTANTS,
                         ids=[f"{MODULES[name].slug}-{mutant}" for name, mutant in MUTANTS])
def test_a_mutant_is_killed_with_its_diagnosis(name, mutant, sandbox):
    """What runs nothing of a mutant is left to the solution's own grade, in `test_journey`."""
    killed = runner.kill(material_of(name), mutant, sandbox)

    assert (killed.faults, killed.passed) == ((), True)


@pytest.mark.parametrize(("name", "path"), VARIANTS,
                         ids=[f"{MODULES[name].slug}-{path.stem}" for name, path in VARIANTS])
def test_right_but_different_solutions_pass(name, path, sandbox, tmp_path):
    material = material_of(name)
    kernel = variants.whole(path, MODULES[name].solution, tmp_path)
    suite, effort = material.suite, "uncompiled"  # the rest is in `python -m tests.fidelity`
    submitted = source.read(kernel, suite.files, suite.kernel_file).sha256
    fact = proofs.Fact("a right variant passes", material, ("suites",), (submitted, effort, SEED))

    def failures():
        report = grader.grade(kernel, suite, sandbox=sandbox, effort=effort, seed=SEED)
        assert report.source_sha256 == submitted
        if report.verdict is not Verdict.PASSED:
            yield f"{report.verdict} {report.reason}"
            yield from (f"{r.name}: {f.code} {f.seen}" for r in report.results for f in r.findings)

    assert proofs.faults(fact, failures)[0] == ()
