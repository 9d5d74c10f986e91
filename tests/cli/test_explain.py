"""`explain` shows what a finding means, by its name or its code."""

from __future__ import annotations

import json

import pytest

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
