"""What the suite of dynamic shapes takes for Triton's rule, its log, and wrong answers."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import torch
import triton

from grader.engine.compiler.stub_driver import pretending
from grader.engine.compiler.targets import find
from grader.judge.contract import wrong_answer
from grader.recording.host_values import Fields
from grader.suite import load, sibling
from tests.evidence import dynamic_shapes as evidence

pytestmark = pytest.mark.course

ROOT = Path(__file__).parents[2]
MODULE = Path("debugging") / "05-dynamic-shapes"
SUITE_FILE = ROOT / "grader" / "suites" / MODULE / "suite.py"
SUITE = load(SUITE_FILE)
WORDS = sibling(str(SUITE_FILE), "suite")
CASES = {case.name: case for case in SUITE.all_cases}
H100 = find("h100")

VALUES = [0, 1, 2, 15, 16, 17, -1, -16, -17, 4_097, 2**31 - 1, 2**31, 2**31 + 1, -2**31,
          -2**31 - 1, 2**62, 2**63 - 1, 2**63, 2**63 + 1, True, False, 0.0, 1.0, 16.0, None]
TENSORS = [("float32", 0), ("float32", 1), ("float32", 4), ("float16", 8), ("float16", 1),
           ("int64", 1), ("int64", 2)]


@triton.jit
def any_kernel(value):
    pass


@triton.jit(do_not_specialize=["value"])
def fixed_kernel(value):
    pass


@pytest.mark.parametrize("kernel", [any_kernel, fixed_kernel], ids=["specialised", "left alone"])
def test_the_suites_rule_is_that_of_tritons_own_binder(kernel):
    fixed = kernel is fixed_kernel
    given: list[tuple[Any, Any]] = [(value, value) for value in VALUES]
    for dtype, offset in TENSORS:
        tensor = torch.empty(64, dtype=getattr(torch, dtype))[offset:]
        given.append((tensor, {"dtype": dtype, "address": tensor.data_ptr()}))

    with pretending(H100):
        *_, bind = kernel.device_caches[H100.capability]
        theirs = [tuple(bind(value=value)[1]) for value, _ in given]
    ours = [WORDS.known(value, fixed) for _, value in given]

    for first in range(len(given)):
        for second in range(first):
            assert (theirs[first] == theirs[second]) == (ours[first] == ours[second]), (
                given[first], given[second])


def test_the_kept_log_is_what_the_given_kernel_makes_triton_do():
    kept = {path.read_text(encoding="utf-8") for path in evidence.KEPT}

    def by_alignment(text: str) -> str:  # where tensors lie is another matter in every run
        return re.sub(r"@(0x\w+)", lambda found: f"@{int(found[1], 16) % 16}", text)

    assert len(kept) == 1
    assert by_alignment(kept.pop()) == by_alignment(evidence.log())


def test_triton_compiled_as_often_as_the_suite_counts():
    text = evidence.KEPT[0].read_text(encoding="utf-8")

    assert text.count(" compiled ") == WORDS.BEFORE
    assert len({WORDS.BEFORE, WORDS.AFTER, WORDS.SPECIALIZED, len(WORDS.LOG)}) == 4


def found_in(case: str, answer: object) -> str:
    """What the case finds of an answer; nothing where it is right."""
    asked = CASES[case]
    assert asked.call is not None
    findings = wrong_answer(asked.call, answer, asked.inputs)
    return findings[0].seen if findings else ""


def answer(**fields: Any) -> Fields:
    right = {"culprit": WORDS.CULPRIT, "variants_before": WORDS.BEFORE,
             "variants_after": WORDS.AFTER}
    return Fields("StormAnswer", right | fields)


@pytest.mark.parametrize(("case", "fields", "said"), [
    ("culprit", {"culprit": ""}, "is empty"),
    ("culprit", {"culprit": "length"}, "the arguments in the log are x_ptr"),
    ("culprit", {"culprit": "BLOCK_T"}, "one class of values"),
    ("culprit", {"culprit": "x_ptr"}, "only 3 classes of values"),
    ("culprit", {"culprit": None}, "expected a string"),
    ("variants before", {"variants_before": len(WORDS.LOG)}, "the number of lines"),
    ("variants before", {"variants_before": WORDS.BEFORE - 1}, "which gives another number"),
    ("variants before", {"variants_before": "93"}, "expected an int"),
    ("variants after", {"variants_after": WORDS.BEFORE}, "as many as before"),
    ("variants after", {"variants_after": WORDS.SPECIALIZED}, "specialized: 1 and multiples"),
    ("variants after", {"variants_after": 1}, "more than their length"),
    ("variants after", {"variants_after": True}, "expected an int"),
    ("variants after", {"variants_after": WORDS.AFTER + 1}, "make fewer variants"),
])
def test_a_wrong_answer_about_the_log_gets_what_speaks_against_it(case, fields, said):
    seen = found_in(f"STORM: the {case}" if case == "culprit" else f"STORM: {case}",
                    answer(**fields))

    assert said in seen
    assert f" {WORDS.AFTER}" not in seen.replace(f"{fields}", "")
    assert "'T'" not in seen


@pytest.mark.parametrize("case", [name for name in CASES if name.startswith("STORM")])
def test_the_right_answer_about_the_log_passes_and_none_does_not(case):
    assert found_in(case, answer()) == ""
    assert "expected a StormAnswer" in found_in(case, None)


@pytest.mark.parametrize("wrong", [0, 1, None, "3", 3.0, [3], True],
                         ids=["0", "1", "None", "a text", "a float", "a list", "a truth value"])
def test_an_answer_that_is_always_the_same_fails_among_the_keys(wrong):
    keys = [name for name in CASES if name.startswith("specialization_keys: ")
            and CASES[name].call.of == "specialization_keys"]
    wrong_in = [name for name in keys if found_in(name, wrong)]

    assert len(wrong_in) > len(keys) // 2
