"""`explain` shows what a finding means, and `codes` the table of all."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import grader
from grader.diagnosis.examples import EMITTERS, examples
from grader.finding import NAMES


@pytest.mark.parametrize("word", ["M02", "m02", "store-out-of-bounds", "(store-out-of-bounds)"])
def test_a_code_and_its_name_show_the_meaning_and_wrong_and_repaired_code(run, word):
    shown = run("explain", word)

    assert (shown.code, shown.err) == (0, "")
    assert shown.out.startswith("store-out-of-bounds  M02\nSome indices of the store")
    assert "Wrong:\n    tl.store(out_ptr + offs, 2 * x)\nRepaired:\n" in shown.out
    assert shown.out.endswith("Repair it, then type: tritonlab grade\n")


def test_without_a_code_all_are_listed(run):
    shown, data = run("explain", "--plain"), json.loads(run("explain", "--json").out)

    assert "N04 precision-lost" in shown.out.splitlines()
    assert {one["code"]: one["name"] for one in data["codes"]} == NAMES


def test_a_code_as_json(run):
    data = json.loads(run("explain", "wrong-values", "--json").out)

    assert (data["schema"], data["code"], data["name"]) == (1, "N01", "wrong-values")
    assert data["wrong"] and data["right"] and data["means"]


@pytest.mark.parametrize(("word", "near"), [
    ("store-out-of-bound", "store-out-of-bounds"), ("M2", "store-out-of-bounds"),
    ("wrong-value", "wrong-values")])
def test_an_unknown_code_gets_a_suggestion(run, word, near):
    shown = run("explain", word)

    assert (shown.code, shown.out) == (2, "")
    assert f"No finding is called '{word}'. Did you mean" in shown.err
    assert near in shown.err or word == "M2"
    assert "`tritonlab explain` lists all." in shown.err


FOLDERS = {  # of the parts of the grader that report a code
    "source": ["submission"], "worker": ["worker", "processes"], "sandbox": ["processes"],
    "interpreter": ["engine/interpreter", "executor"], "compiler": ["engine/compiler"],
    "judge": ["judge"], "gpu": ["judge"], "suite": ["suite", "suites"]}


def test_codes_lists_code_name_emitter_and_one_sentence(run):
    shown, data = run("codes", "--plain"), json.loads(run("codes", "--json").out)

    assert ("M02 store-out-of-bounds interpreter Some indices of the store are outside the "
            "tensor, and the mask is missing or wrong.") in shown.out.splitlines()
    assert [one["code"] for one in data["codes"]] == [*NAMES]
    assert all(one["summary"].endswith((".", "?")) for one in data["codes"])
    assert data["next"] == "tritonlab explain CODE"


@pytest.mark.parametrize("word", ["N04", "precision-lost"])
def test_one_code_is_a_table_of_one_row(run, word):
    data = json.loads(run("codes", word, "--json").out)

    assert [(one["code"], one["emitter"]) for one in data["codes"]] == [("N04", "judge")]
    assert data["next"] == "tritonlab explain N04"


def test_an_unknown_code_of_the_table_gets_a_suggestion(run):
    shown = run("codes", "wrong-value")

    assert (shown.code, shown.out) == (2, "")
    assert shown.err == ("No finding is called 'wrong-value'. Did you mean wrong-values? "
                         "`tritonlab codes` lists all.\n")


@pytest.mark.parametrize("code", NAMES)
def test_the_emitter_of_a_code_has_it_in_its_source(code):
    root = Path(grader.__file__).parent
    texts = (path.read_text() for folder in FOLDERS[EMITTERS[code]]
             for path in (root / folder).rglob("*.py"))

    assert any(f'"{code}"' in text for text in texts)
    assert examples()[code].emitter == EMITTERS[code]
