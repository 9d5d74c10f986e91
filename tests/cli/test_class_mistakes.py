"""`tritonlab class mistakes`: common failures, and mutants to write."""

from __future__ import annotations

import json

import pytest

from grader.finding import NAMES
from grader.suite import read_mutants
from tests.classroom import support
from tests.classroom.test_mistakes import report
from tests.classroom.test_report import note_grade
from tritonlab.authoring.checks import PROMPT
from tritonlab.course import course

MODULE = "track1/softmax"
RIGHT, WRONG = "numerator * (1.0 / denominator)", "numerator * (1.0 / (denominator + 0.001))"
MEANING = next(one for one in read_mutants(
    course.shipped_roots().suites / "missing-elements" / "03-softmax" / "mutants.toml")
    if not one.sign)


@pytest.fixture
def solution():
    return course.load(course.shipped_roots()).find(MODULE).solution.read_text()


@pytest.fixture
def a_class(home, solution):
    """Six pass, five fail as a mutant does, and four as none does; one has no grade."""
    _, store = support.write(home, support.CLASS.replace('course = "course"', ""))
    (home / "roster.csv").write_text("student,name\n" + "".join(
        f"s{number},Ada Lovelace\n" for number in range(16)))
    wrong = solution.replace(RIGHT, f"{WRONG}  # by Ada Lovelace, not")
    for number in range(16):
        source = f"{wrong if number > 10 else solution}# {number}\n"
        data = report() if number < 6 else \
            report(["4 x 127"], MEANING.codes[0], MEANING.meaning) if number < 11 else \
            report(["far apart", "float16"], "N02", line=1 + source.splitlines().index(next(
                line for line in source.splitlines() if WRONG in line)))
        blob = support.hand_in(store, f"s{number}", source)
        if number < 15:
            store.append(note_grade(store, "hw1", blob, {
                **data, "evidence": "", "isolation": "", "suite_sha256": ""}, MODULE))
    return home


def test_common_failures_are_shown_in_the_words_of_learners(run, a_class):
    result = run("class", "mistakes", "hw1", "--plain")

    assert result.code == 0
    assert "15 graded, 6 passed. Mutants explain 56 % of the failures." in result.out
    assert f"5 students {NAMES[MEANING.codes[0]]}\n4 x 127 is wrong. {MEANING.meaning}\n" in \
        result.out
    assert "4 students" in result.out
    assert "They fail in float16 and far apart." in result.out
    assert WRONG in result.out
    assert "Lovelace" not in result.out
    assert result.out.strip().endswith("Next: tritonlab class mistakes hw1 --toml")


def test_only_failures_without_a_mutant_are_shown(run, a_class):
    result = run("class", "mistakes", "hw1", "--unexplained", "--plain")

    assert MEANING.meaning not in result.out
    assert "4 students" in result.out


def test_mistakes_as_json(run, a_class):
    (module,) = json.loads(run("class", "mistakes", "hw1", "--json").out)["modules"]

    assert [(one["mutant"], one["students"]) for one in module["explained"]] == [
        (MEANING.id, ["s10", "s6", "s7", "s8", "s9"])]
    (cluster,) = module["unexplained"]
    assert (cluster["code"], cluster["students"]) == ("N02", ["s11", "s12", "s13", "s14"])
    assert WRONG in cluster["patch"]["replace"]


def test_a_skeleton_with_its_blanks_filled_is_a_mutant_of_the_suite(run, a_class, solution):
    text = run("class", "mistakes", "hw1", "--toml").out

    shipped = course.load(course.shipped_roots()).find(MODULE).suite.with_name("mutants.toml")
    (a_class / "mutants.toml").write_text(
        f"{shipped.read_text()}\n{text.replace(PROMPT, 'filled in')}")
    *others, mutant = read_mutants(a_class / "mutants.toml")
    assert tuple(others) == read_mutants(shipped)
    assert mutant.id not in {one.id for one in others}
    assert (mutant.codes, mutant.wrong) == (("N02",), ("float16", "far apart"))
    assert WRONG in mutant.apply(solution)
    assert text.startswith("# For ")


def test_a_class_whose_failures_have_mutants_needs_none(run, home, solution):
    _, store = support.write(home, support.CLASS.replace('course = "course"', ""))
    support.hand_in(store, "ada", solution)

    result = run("class", "mistakes", "hw1", "--toml")
    other = run("class", "mistakes", "hw1", "--plain")

    assert (result.code, result.out) == (0, "# A mutant explains each failure.\n")
    assert "0 graded" in other.out
    assert other.out.strip().endswith("Next: tritonlab class grade hw1")


def test_damaged_results_and_submissions_are_left_out(run, a_class):
    for path in a_class.glob(".tritonlab-class/blobs/*/*"):
        path.write_bytes(b"damaged")
    next(a_class.glob(".tritonlab-class/results/*")).write_bytes(b"damaged")

    result = run("class", "mistakes", "hw1", "--plain")

    assert result.code == 0
    assert "14 graded" in result.out


def test_toml_and_json_exclude_each_other(run, a_class):
    result = run("class", "mistakes", "hw1", "--toml", "--json")

    assert (result.code, "exclude each other" in result.err) == (2, True)
