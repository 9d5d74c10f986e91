"""`grade --pending`, and how the evidence of a clock is shown and kept."""

from __future__ import annotations

import json

import pytest

from grader.gpu import detect
from grader.report import Verdict
from tests.support import simulated, toy
from tritonlab.grading import gpu_upgrade

EFFICIENT = {"target": "NVIDIA H100 SXM"}
TIMED_SUITE = toy.SUITE.replace("cases=[]", "cases=[performance('p', rand(4), pass_at=0.5)]"
                                ).replace("Suite\n", "Suite\nfrom grader.suite import performance, "
                                          "rand\n")


@pytest.fixture
def passed(run, judge, course_root, monkeypatch):
    """Two modules passed without a GPU; one of them has something to be timed."""
    suites = course_root / "suites" / "missing-elements"
    (suites / "03-softmax" / "suite.py").write_text(TIMED_SUITE)
    judge(toy.PASSING, **EFFICIENT)
    for module in ("copy", "softmax"):
        run("start", module)
        assert run("grade").code == 0
    simulated.install(monkeypatch, simulated.Simulated())


def entry(run, module: str) -> dict:
    made = json.loads(run("certificate", "--json").out)
    return next(one for one in made["modules"] if one["module"] == module)


def test_what_was_passed_without_a_gpu_becomes_fast(run, judge, passed):
    before = entry(run, "track1/softmax")
    judge(toy.FAST, **toy.ON_GPU)

    shown = run("grade", "--pending")

    after = entry(run, "track1/softmax")
    assert shown.code == 0
    assert "PASS  track1/softmax  efficient before, now fast" in shown.out
    assert "16 384 x 4 096 floats: 3.85 TB/s, 90 % of this GPU's copy speed" in shown.out
    assert "1 of 1 shown to be fast." in shown.out
    assert shown.out.endswith("Next: tritonlab certificate\n")
    assert (before["evidence"], before["device"]) == ("efficient", None)
    assert (after["evidence"], after["device"]) == ("fast", "NVIDIA H200")
    assert after["ceilings"]["copy_gb_s"] == 4_282.0
    assert entry(run, "track1/copy")["grades"] == 1  # nothing of it asks for a clock


def test_a_second_time_nothing_is_left(run, judge, passed):
    judge(toy.FAST, **toy.ON_GPU)
    run("grade", "--pending")

    shown = run("grade", "--pending")

    assert shown.code == 0
    assert "Every module that you passed and that asks for speed is shown to be fast." in shown.out


@pytest.mark.parametrize(("timed", "word", "now"), [
    (toy.SLOW, "FAIL", "nothing new"), (toy.NOISY, "NOISY", "efficient")],
    ids=["too slow", "too noisy"])
def test_what_is_not_fast_keeps_what_it_had(run, judge, passed, timed, word, now):
    judge((*toy.FAST[:-1], timed), **toy.ON_GPU)

    shown = run("grade", "--pending")

    assert shown.code == 1
    assert f"{word:<5} track1/softmax  efficient before, now {now}" in shown.out
    assert shown.out.endswith("Next: tritonlab grade track1/softmax\n")
    assert entry(run, "track1/softmax")["evidence"] == "efficient"


def test_as_json(run, judge, passed):
    judge(toy.FAST, **toy.ON_GPU)

    said = json.loads(run("grade", "--pending", "--json").out)

    [one] = said["modules"]
    assert (one["module"], one["before"], one["evidence"], one["saved"], one["gpu"]) == (
        "track1/softmax", "efficient", "fast", True, "NVIDIA H200")
    assert one["cases"][0]["measured"]["share"] == 0.9
    assert said["next"] == "tritonlab certificate"


def test_a_file_that_changed_since_is_graded_as_it_is_and_said(run, judge, passed, home):
    kernel = home / "tritonlab-workspace" / "track1" / "softmax" / "kernel.py"
    kernel.write_text(kernel.read_text() + "# more\n")
    judge(toy.FAST, **toy.ON_GPU)

    assert "the file has changed since it passed" in run("grade", "--pending").out


def test_a_file_that_is_gone_costs_that_module_alone(run, judge, passed, home):
    (home / "tritonlab-workspace" / "track1" / "softmax" / "kernel.py").unlink()
    judge(toy.FAST, **toy.ON_GPU)

    shown = run("grade", "--pending", "--plain")

    assert shown.code == 1
    assert "ERROR track1/softmax" in shown.out


@pytest.mark.parametrize(("names", "driverless", "hidden", "why"), [
    ((), False, "0", "timed on."), ((), True, "0", "timed on: its driver is missing."),
    (("NVIDIA H200",), False, "-1", "timed on: it is hidden by CUDA_VISIBLE_DEVICES."),
], ids=["none", "no driver", "hidden"])
def test_without_a_gpu_it_is_one_sentence_and_exit_code_2(run, passed, monkeypatch, names,
                                                          driverless, hidden, why):
    monkeypatch.setattr(detect, "names", lambda: names)
    monkeypatch.setattr(detect, "without_driver", lambda: driverless)
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", hidden)

    shown = run("grade", "--pending")

    assert (shown.code, shown.out) == (2, "")
    assert f"There is no GPU here that kernels can be {why}" in shown.err


def test_a_gpu_that_runs_no_kernel_is_exit_code_2_too(run, judge, passed):
    judge(toy.PASSING, **EFFICIENT, unusable_gpu="there is no C compiler.")

    shown = run("grade", "--pending")

    assert shown.code == 2
    assert "can be timed on: there is no C compiler. `tritonlab doctor` shows details." in shown.err
    assert entry(run, "track1/softmax")["grades"] == 1


@pytest.mark.parametrize("words", [("softmax",), ("--case", "x"), ("--no-gpu",)],
                         ids=["a module", "a case", "no GPU"])
def test_it_takes_nothing_beside_it(run, passed, words):
    shown = run("grade", "--pending", *words)

    assert shown.code == 2
    assert "--pending takes no module, case, seed or GPU." in shown.err


def test_list_and_status_tell_the_evidence(run, judge, passed):
    judge(toy.FAST, **toy.ON_GPU)
    run("grade", "--pending")

    status = run("status").out
    assert "Stable softmax  fast" in run("list").out
    assert "PASS track1/copy: Copying, 1.5 h, efficient" in run("list", "--plain").out
    assert "Evidence: 1 fast, 1 efficient. On a machine with a GPU, `tritonlab grade" in status
    modules = json.loads(run("list", "--json").out)["tracks"][0]["modules"]
    assert [module["evidence"] for module in modules] == ["efficient", "fast"]


def test_the_certificate_names_gpu_and_ceilings(run, judge, passed):
    judge(toy.FAST, **toy.ON_GPU)
    run("grade", "--pending")

    shown = run("certificate", "--plain").out

    assert ("track1/softmax: ran on NVIDIA H200, which copies 4,282 GB/s and multiplies 790 "
            "TFLOP/s, measured on 2026-11-22") in shown


def test_a_report_shows_times_beside_their_limits(run, judge):
    judge(toy.FAST, **toy.ON_GPU)
    run("start", "softmax")

    shown = run("grade", "--plain", "--verbose").out

    assert "Correctness: PASS the same on the NVIDIA H200" in shown
    assert ("Performance: 16 384 x 4 096 floats: measured 3.85 TB/s, 90 % of this GPU's copy "
            "speed, 75 % is required; 40 repeats, spread 3 %") in shown
    assert "Evidence: fast (interpreter)" in shown


def test_a_noisy_report_says_how_to_repeat(run, judge):
    judge((*toy.FAST[:-1], toy.NOISY), **toy.ON_GPU)
    run("start", "softmax")

    shown = run("grade", "--plain")

    assert shown.code == 0
    assert "NOISY 16 384 x 4 096 floats" in shown.out
    assert "1 too noisy to tell" in shown.out
    assert "Evidence: efficient (interpreter)\n" in shown.out
    assert "The same command times again." in shown.out


@pytest.mark.parametrize(("verdict", "code"), [(Verdict.ERROR, 3), (Verdict.FAILED, 1)])
def test_the_exit_code_is_the_worst(verdict, code):
    fast = gpu_upgrade.Upgrade(None, "efficient", toy.report(toy.FAST, **toy.ON_GPU), None)
    other = gpu_upgrade.Upgrade(None, "efficient", toy.report((toy.case("x", verdict),)), None)

    assert gpu_upgrade.exit_code([fast, other, fast]) == code
