"""Which failures mutants explain, and the mutants that a class asks for."""

import ast
import json
import random
import tomllib

import pytest

import grader
from grader.suite import Mutant, read_mutants
from grader.suite.mutants import Patch
from tests.golden import verdicts
from tritonlab.authoring.checks import PROMPT
from tritonlab.classroom import mistakes
from tritonlab.classroom.mistakes import GradedAnswer, analyze, explanation, toml
from tritonlab.classroom.report.outcomes import FailureView, outcome_of
from tritonlab.course import course

CASES = ("32 x 128", "4 x 127", "4 x 128", "float16", "far apart", "rows sum to one")
SOLUTION = """\
import triton.language as tl

def kernel(x_ptr, n, WIDTH):
    cols = tl.arange(0, WIDTH)
    x = tl.load(x_ptr + cols, mask=cols < n, other=-float("inf"))
    y = tl.exp(x - tl.max(x, axis=0))
    tl.store(x_ptr + cols, y / tl.sum(y, axis=0), mask=cols < n)
"""
LINES = {number: line.strip() for number, line in enumerate(SOLUTION.splitlines(), 1)}


def mutant(name, codes=("N01",), todos=(), wrong=(), right=(), **more):
    return Mutant(name, f"mistake {name}", (Patch("a", "b"),), codes, f"Meaning of {name}.", todos,
                  wrong=wrong, right=right, **more)


MUTANTS = (
    mutant("a", wrong=("4 x 127",), right=("4 x 128",), todos=(2,)),
    mutant("b", ("N02",), todos=(3,)),
    mutant("c", ("M02",), sign={"kind": "past"}, wrong=("4 x 127",)),
)


def report(failed=(), code="N01", means="", todos=(), line=5, skipped=(), steps=(), **more):
    results = [{
        "name": name, "kind": "correctness", "advisory": False, "seconds": 1.0, "reason": "",
        "verdict": "FAILED" if name in failed else "SKIPPED" if name in skipped else "PASSED",
        "findings": [{"code": code, "name": "wrong-values", "seen": f"{name} is wrong.",
                      "line": line, "means": means, "where": "", "next_step": "",
                      "todos": todos, "function": ""}] if name in failed else []}
        for name in CASES]
    return {"verdict": "FAILED" if failed or steps else "PASSED", "results": results,
            "steps": steps, "reason": "", **more}


def answer(student, *arguments, source=SOLUTION, **more):
    return GradedAnswer(student, outcome_of(report(*arguments, **more)), source.splitlines())


def test_a_class_of_300_is_split_into_explained_and_unexplained_failures():
    draw = random.Random(1)
    changed = SOLUTION.replace('-float("inf"))', "-100.0)  # by Ada Lovelace")
    answers = [
        *(answer(f"right{n}") for n in range(180)),
        *(answer(f"a{n}", ["4 x 127"], means="Meaning of a.") for n in range(50)),
        *(answer(f"b{n}", ["float16"], "N02", todos=[3, 4]) for n in range(20)),
        *(answer(f"pad{n}", ["4 x 127", "far apart"], "N03", todos=[2], source=changed)
          for n in range(30)),
        *(answer(f"far{n}", ["far apart"], "M05", line=4, todos=[1]) for n in range(10)),
        *(answer(f"blank{n}", steps=[{"todos": [1], "state": "open"}]) for n in range(7)),
        *(answer(f"refused{n}", ["32 x 128"], "P02") for n in range(2)),
        answer("broken", verdict="ERROR")]
    draw.shuffle(answers)

    result = analyze(answers, MUTANTS, SOLUTION)

    assert (result.graded, result.passed, result.unfinished) == (299, 180, 9)
    assert [(one.mutant.id, len(one.students)) for one in result.explained] == [
        ("a", 50), ("b", 20)]
    assert [(one.code, len(one.students), one.failed) for one in result.unexplained] == [
        ("N03", 30, ("4 x 127", "far apart")), ("M05", 10, ("far apart",))]
    assert result.share_explained == pytest.approx(70 / 110)
    pad = result.unexplained[0]
    assert pad.todos == (2,)
    assert pad.lines == ("x = tl.load(x_ptr + cols, mask=cols < n, other=-100.0)",)
    assert (pad.patch.share, pad.patch.others) == (1, 0)


@pytest.mark.parametrize(("name", "how"), [
    ("a", {"failed": ["4 x 127"]}),
    ("a", {"failed": ["4 x 127", "float16"], "todos": [2, 5]}),
    ("a", {"failed": ["4 x 127", "4 x 128"], "means": "Meaning of a."}),
    ("b", {"failed": ["float16"], "code": "N02"}),
    ("c", {"failed": ["4 x 127"], "code": "M02", "means": "Meaning of c."}),
    ("", {"failed": ["4 x 127"], "todos": [1]}),  # another place
    ("", {"failed": ["float16"]}),  # not the case that a gets wrong
    ("", {"failed": ["4 x 127", "4 x 128"]}),  # nor one that it gets right
    ("", {"failed": ["4 x 127"], "skipped": ["4 x 128"]}),  # which nothing confirms
    ("", {"failed": ["4 x 127"], "code": "N04"}),
    ("", {"failed": ["4 x 127"], "code": "M02"}),  # only the grader can see the sign
])
def test_a_mutant_explains_a_failure_by_code_place_and_cases(name, how):
    result = outcome_of(report(**how))

    explaining = explanation(result.failures[0], *mistakes.judged(result), MUTANTS)

    assert (explaining.id if explaining else "") == name


def test_the_mutant_that_names_most_cases_explains_a_failure():
    mutants = (mutant("a"), mutant("b", wrong=("4 x 127", "float16")),
               mutant("c", wrong=("4 x 127",)))

    explaining = explanation(outcome_of(report(["4 x 127"])).failures[0],
                             frozenset(("4 x 127", "float16")), frozenset(), mutants)

    assert explaining.id == "b"


def test_a_diagnosis_counts_only_where_the_mutant_fails_in_the_same_cases():
    """Measured: `1 / (denominator + 1e-3)` is diagnosed as the division by the maximum."""
    mutants = (mutant("f", wrong=("32 x 128",)),)
    answers = [answer("other", ["32 x 128", "float16"], means="Meaning of f."),
               answer("same", CASES[:-1], means="Meaning of f.")]

    result = analyze(answers, mutants, grades={"f": outcome_of(report(CASES[:-1]))})

    assert [one.students for one in result.explained] == [("same",)]
    assert [one.students for one in result.unexplained] == [("other",)]
    assert len(analyze(answers, mutants).explained[0].students) == 2


def test_every_kept_verdict_of_a_mutant_is_explained_by_one():
    """The kept verdicts are of two mutants of each module; a report without meanings has less."""
    unexplained = []
    for material in verdicts.modules():
        names = {case.name for case in (*material.suite.all_cases, *material.suite.properties)}
        kept = json.loads(verdicts.kept(material).read_text())
        for name in verdicts.mutants_of(verdicts.kept(material).read_text()):
            cases = {case: value for case, value in kept[f"mutant {name}"].items()
                     if case != "verdict" and isinstance(value, list)}
            failed = [case for case, value in cases.items() if value[0] == "FAILED" and value[2:]]
            if not failed:  # only compiled code fails, which kept verdicts do without
                continue
            code = cases[failed[0]][2][0]
            own = next(one for one in material.suite.mutants if one.id == name)
            for means in ("", own.meaning):
                finding = FailureView(failed[0], code, "", "", means, "", "", None, own.todos)
                if (means or not own.sign) and explanation(
                        finding, frozenset(failed), frozenset(names - cases.keys()),
                        material.suite.mutants) is None:
                    unexplained.append((material.module.slug, name, means))

    assert unexplained == []


def test_clusters_with_nearly_the_same_cases_are_one():
    many = [f"case {number}" for number in range(30)]

    def graded(student, failed, skipped=()):
        data = report()
        data["verdict"] = "FAILED"
        data["results"] = [{
            "name": name, "kind": "correctness", "advisory": False, "seconds": 1.0, "reason": "",
            "verdict": "SKIPPED" if name in skipped else "FAILED" if name in failed else "PASSED",
            "findings": [{"code": "N01", "name": "wrong-values", "seen": "", "line": None,
                          "where": "", "next_step": "",
                          "means": "", "todos": [], "function": ""}]} for name in many]
        return GradedAnswer(student, outcome_of(data))

    result = analyze([graded("one", many[:20]), graded("two", many[:20]),
                      graded("three", many[:19]), graded("four", many[:20], many[15:]),
                      graded("five", many[:10])], ())

    assert [one.students for one in result.unexplained] == [
        ("four", "one", "three", "two"), ("five",)]
    assert result.unexplained[0].failed == tuple(many[:15])


def test_a_skeleton_has_the_form_that_authors_use(tmp_path):
    changed = SOLUTION.replace('-float("inf")', "-100.0")
    answers = [*(answer(f"s{n}", ["4 x 127", "float16"], todos=[5], source=changed)
                 for n in range(8)), *(answer(f"right{n}") for n in range(9))]
    (failure,) = analyze(answers, MUTANTS, SOLUTION).unexplained

    text = toml([failure], MUTANTS)

    (tmp_path / "mutants.toml").write_text(text)
    (written,) = read_mutants(tmp_path / "mutants.toml")
    assert (written.id, written.codes, written.todos) == ("d", ("N01",), (5,))
    assert written.wrong == ("4 x 127", "float16")
    assert written.right[0] == "32 x 128"
    assert PROMPT in written.title
    assert PROMPT in written.meaning
    assert written.apply(SOLUTION) == changed
    assert text.startswith("# 8 students fail like this: 4 x 127 is wrong.\n")
    assert "100% of them wrote the replacement below, and 0% of the others." in text


def test_the_skeletons_of_a_class_have_ids_of_their_own():
    answers = [answer("s", ["4 x 127"], todos=[9]), answer("t", ["float16"], "M05")]
    failures = analyze(answers, MUTANTS).unexplained

    written = tomllib.loads(toml(failures, MUTANTS))["mutant"]

    assert [(one["id"], one["codes"]) for one in written] == [("d", ["N01"]), ("e", ["M05"])]


def test_a_skeleton_names_cases_that_tell_it_from_its_rivals():
    rivals = (mutant("a", wrong=("far apart",), right=("float16",)), mutant("b", ("M05",)))
    answers = [answer("s", ["4 x 127", "4 x 128", "float16"], todos=[9])]
    (failure,) = analyze(answers, rivals).unexplained

    written = tomllib.loads(toml([failure], rivals))["mutant"][0]

    assert written["wrong"][0] == "float16"
    assert written["right"][0] == "far apart"
    assert PROMPT in written["patch"][0]["find"]


def test_a_skeleton_is_toml_whatever_is_in_it(tmp_path):
    names = ("it's a \"case\"", "back\\slash", "tab\t and \x7f", "lone \ud800", "'''",
             "two\nlines'")
    failure = mistakes.UnexplainedFailure(
        "N01", "wrong-values", "", ("s",), names, names, (), "seen\nin \x00 two lines",
        ("x = 1\u2028", "# \ud83d"), mistakes.ProposedPatch(
            "if x:\n    y = '''a'''", "if y:\n    x = \"\"\"b\\\"\"\"", 1, 0))

    written = tomllib.loads(toml([failure], ()))["mutant"][0]

    assert written["wrong"] == [*names[:2]]
    assert written["patch"][0]["find"] == failure.patch.find
    assert written["patch"][0]["replace"] == failure.patch.replace
    for name in names:
        assert tomllib.loads(f"a = {mistakes._string(name)}") == {
            "a": name.replace("\ud800", "\ufffd")}


def test_the_proposed_patch_is_the_edit_that_sets_a_cluster_apart():
    """All students write `tl.max(x, 0)`; only those of the cluster divide by the maximum."""
    usual = SOLUTION.replace("tl.max(x, axis=0)", "tl.max(x, 0)")
    wrong = usual.replace("y / tl.sum(y, axis=0)", "y / tl.max(y, axis=0)")
    answers = [*(answer(f"wrong{n}", ["32 x 128"], todos=[9], source=wrong) for n in range(5)),
               *(answer(f"right{n}", source=usual) for n in range(20))]

    (failure,) = analyze(answers, MUTANTS, SOLUTION).unexplained

    assert failure.patch.find == LINES[7]
    assert ast.unparse(ast.parse(failure.patch.replace)) == ast.unparse(ast.parse(
        LINES[7].replace("tl.sum", "tl.max")))


@pytest.mark.parametrize("source", ["", "def kernel(:\n", SOLUTION, "x = 1"])
def test_no_patch_is_proposed_where_no_edit_sets_a_cluster_apart(source):
    answers = [answer("s", ["32 x 128"], todos=[9], source=source), answer("right")]

    (failure,) = analyze(answers, MUTANTS, SOLUTION).unexplained

    assert failure.patch is None


def test_lines_are_shown_masked_without_comments_and_a_masked_patch_is_left_out():
    named = SOLUTION.replace('other=-float("inf"))', 'other=ada("#"))  # Ada Lovelace')
    answers = [answer("s", ["32 x 128"], todos=[9], source=named), answer("right")]

    (failure,) = analyze(answers, (), SOLUTION,
                         masked=lambda text: text.replace("ada", "…")).unexplained

    assert failure.lines == ('x = tl.load(x_ptr + cols, mask=cols < n, other=…("#"))',)
    assert failure.patch is None


def test_a_class_without_failures_has_no_share():
    assert analyze([answer("s")], MUTANTS).share_explained is None
    assert analyze([], MUTANTS).graded == 0


def test_a_mutant_that_is_taken_out_is_asked_for_again():
    """Mutants of softmax as a class: without one of them, its failures are a cluster."""
    module = course.load().find("track1/softmax")
    suite, solution = grader.load_suite(module.suite), module.solution.read_text()
    left_out = next(one for one in suite.mutants if one.id == "b")
    answers = []
    for one in suite.mutants:
        data = report()
        data["verdict"] = "FAILED"
        data["results"] = [{
            "name": case.name, "kind": "correctness", "advisory": False, "seconds": 1.0,
            "reason": "", "verdict": "FAILED" if case.name in one.wrong else "PASSED",
            "findings": [{"code": one.codes[0], "name": "", "seen": "It is wrong.", "line": 45,
                          "where": "", "next_step": "",
                          "means": "" if one is left_out else one.meaning, "todos": one.todos,
                          "function": ""}] if case.name in one.wrong else []}
            for case in suite.all_cases]
        answers += [GradedAnswer(f"{one.id}{n}", outcome_of(data),
                                 one.apply(solution).splitlines())
                    for n in range(10)]
    others = [one for one in suite.mutants if one is not left_out]

    result = analyze(answers, others, solution)

    assert len(result.explained) == len(others)
    (failure,) = result.unexplained
    written = tomllib.loads(toml([failure], others))["mutant"][0]
    assert (written["id"], written["codes"]) == ("b", ["N01"])
    mutated = solution.replace(written["patch"][0]["find"], written["patch"][0]["replace"])
    assert ast.dump(ast.parse(mutated)) == ast.dump(ast.parse(left_out.apply(solution)))
