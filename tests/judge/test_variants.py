"""How often Triton would compile for several calls: counted by its own rule, and nothing run."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import pytest

import grader
from grader import Verdict
from grader.processes import session
from grader.processes.replies import Variant, too_many
from grader.recording.model import Recording
from grader.sandbox import NotStarted
from grader.suite import Property, rand
from tests.judge.test_grade import KERNEL, SUITE

LENGTHS = (1, 2, 3, 16, 17, 32, 48, 100)
SIZES = "8 lengths between 1 and 100"
RUN_TIME = KERNEL
CONSTEXPR = KERNEL.replace("x_ptr, out_ptr, n, BLOCK", "x_ptr, out_ptr, n: tl.constexpr, BLOCK")
FIXED = KERNEL.replace("@triton.jit", '@triton.jit(do_not_specialize=["n"])')
IN_VAIN = CONSTEXPR.replace("@triton.jit", '@triton.jit(do_not_specialize=["n"])')
WARPS = KERNEL.replace("BLOCK=64)", "BLOCK=64, num_warps=1 << x.numel() % 4)")


@pytest.fixture
def judged(tmp_path, sandbox):
    """The result of a law that allows so many variants for the eight lengths."""
    def judge(text: str, most: int) -> grader.CaseResult:
        def law(submission) -> None:
            calls = [submission.draw(rand(length)) for length in LENGTHS]
            submission.variants(calls, most=most, of=SIZES)

        path = tmp_path / "kernel.py"
        path.write_text(text)
        suite = replace(SUITE, cases=SUITE.cases[:1],
                        properties=(Property("few variants", test=law),))
        report = grader.grade(path, suite, sandbox=sandbox)
        return next(result for result in report.results if result.name == "few variants")

    return judge


@pytest.mark.parametrize(("text", "exactly"), [
    (RUN_TIME, 3), (CONSTEXPR, 8), (FIXED, 1), (WARPS, 6),
], ids=["run time: 1, multiples of 16, others", "constexpr", "do_not_specialize", "options too"])
def test_variants_are_told_apart_as_tritons_cache_does_it(judged, text, exactly):
    enough, one_less = judged(text, exactly), judged(text, exactly - 1)

    assert enough.verdict is Verdict.PASSED
    assert (one_less.verdict, one_less.findings[0].code) == (Verdict.FAILED, "Q01")
    assert one_less.findings[0].seen.startswith(
        f"{exactly} variants of `double_kernel` are compiled for {SIZES}; {exactly - 1} are enough")


def test_the_argument_that_differs_most_is_named_with_what_is_known_of_it(judged):
    found = judged(CONSTEXPR, 4).findings[0]

    assert "is specialized 8 times on `n`: 1, 2, 3, 16 and so on." in found.seen


def test_a_constexpr_in_do_not_specialize_is_told_as_such(judged):
    found = judged(IN_VAIN, 4).findings[0]

    assert found.code == "L05"
    assert "lists `n` in do_not_specialize, but `n` is a constexpr" in found.seen
    assert "Triton rejects such a kernel" in found.seen


def test_triton_refuses_to_compile_a_constexpr_in_do_not_specialize(tmp_path, sandbox):
    path = tmp_path / "kernel.py"
    path.write_text(IN_VAIN)

    report = grader.grade(path, replace(SUITE, cases=SUITE.cases[:1]), sandbox=sandbox)

    said = [finding.seen for result in report.results for finding in result.findings]
    assert any("n marked as constexpr and listed in do_not_specialize" in seen for seen in said)


def test_variants_are_asked_for_again_if_the_compiler_ended_with_an_earlier_kernel(monkeypatch):
    replies = [NotStarted(), {"status": "done", "variants": []}]

    def reply() -> object:
        answer = replies.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    monkeypatch.setattr(session, "to_json", lambda recording: recording)
    monkeypatch.setattr(session, "form", lambda launch: "a kernel")
    asking = object.__new__(session.Session)
    asking._apart = {}
    asking.processes = SimpleNamespace(ask=lambda *_, **__: reply)

    variants = asking.variants([SimpleNamespace(launches=["a launch"])],
                               SimpleNamespace(name="h100"))

    assert (variants, replies) == ([], [])


def test_without_a_launch_no_compiler_is_asked_for_times():
    """The worker records no launch if host code uses a subclass of the kernel."""
    asking = object.__new__(session.Session)
    asking._kept = SimpleNamespace(read_times=lambda *_: None, write_times=lambda *_: None)

    times = asking.time(Recording((), (), ()), [], SimpleNamespace(name="h100"))

    assert (times.launches, times.whole) == ((), None)


def test_a_call_without_a_launch_proves_nothing(judged):
    found = judged(KERNEL.replace("if x.numel():", "if x.numel() > 5:"), 4).findings[0]

    assert (found.code, "launches no kernel" in found.seen) == ("X01", True)


def test_variants_count_once_however_often_they_are_launched():
    one = Variant("kernel", (("n", "i32"),), "")
    other = replace(one, parts=(("n", "i32, divisible by 16"),))

    assert too_many([one, other] * 50, 2, "100 calls") == []
    assert len(too_many([one, other], 1, "2 calls")) == 1
