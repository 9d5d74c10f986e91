"""With a GPU: all values once more on it, speed by its clock, and where it differs from here."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from grader import Verdict
from grader.judge import gpu_verdicts, large_tensors, perf_bound
from grader.report import Finding
from grader.suite import Amplitude, Tolerance, performance, rand
from tests.judge.test_grade import KERNEL, SUITE, graded  # noqa: F401 - a fixture
from tests.judge.test_perf_bound import FEW
from tests.support import simulated
from tests.support.gpu_differences import differences

N = 1 << 16
FAST = 2 * 4 * N / (0.9 * simulated.CEILINGS.copy_gb_s * 1e6)  # ms, at 90 % of the copy speed
WIDE = KERNEL.replace("64", "1024")
TIMED = performance("65 536 floats", rand(N), pass_at=0.7, stretch=0.95)
WITH_CLOCK = replace(SUITE, cases=[
    *(case for case in SUITE.cases if case.name not in ("every other element", "2**27 elements")),
    TIMED])
VALUES = 4  # cases of it that launch something and give a result


@pytest.fixture
def gpu(monkeypatch):
    def use(*measurements, **more) -> simulated.Simulated:
        return simulated.install(monkeypatch, simulated.Simulated(
            list(measurements) or [simulated.taking(FAST)], **more))

    return use


@pytest.fixture
def on_gpu(graded):  # noqa: F811
    def grade(text: str = WIDE, suite=WITH_CLOCK, **options):
        return graded(text, suite, gpu="found", **options)

    return grade


def result(report, name: str):
    return next(one for one in report.results if one.name == name)


def test_a_right_and_fast_kernel_is_shown_to_be_fast(gpu, on_gpu):
    gpu()

    report = on_gpu()

    assert (report.verdict, report.evidence, report.gpu) == (Verdict.PASSED, "fast", "NVIDIA H200")
    same, timed = report.results[-2:]
    assert (same.name, same.verdict) == ("the same on the NVIDIA H200", Verdict.PASSED)
    assert same.facts["right"].startswith(f"{VALUES} of {VALUES} cases, each run twice")
    assert timed.verdict is Verdict.PASSED
    assert timed.facts["measured"] == ("3.85 TB/s, 90 % of this GPU's copy speed, 70 % is "
                                       "required; 40 repeats, spread 3 %")
    assert timed.facts["stretch goal"] == "95%, not reached"
    assert timed.measured["share"] == pytest.approx(0.9)
    assert report.ceilings["copy_gb_s"] == 4_282.0
    assert report.versions["driver"] == "580.65"
    assert report.target == "NVIDIA H200 SXM"
    assert "GPU-0" not in str(report.to_dict())


def test_cases_run_on_both_poisons_and_are_timed_on_inputs_that_differ(gpu, on_gpu):
    used = gpu()

    on_gpu()

    [[first], [second]] = used.sets
    assert used.poisons[:2 * VALUES] == [0, 1] * VALUES
    assert first.shape == second.shape == (N,)
    assert not torch.equal(first, second)


def test_cuda_starts_while_values_are_judged_once_a_case_has_passed(gpu, on_gpu):
    used = gpu()

    on_gpu(WIDE.replace("x * 2", "x * 3"))
    after_a_failure = used.woken
    on_gpu()

    assert (after_a_failure, used.woken) == (0, 1)


def test_launches_are_compiled_for_the_gpu_before_it_runs_any(gpu, on_gpu):
    used = gpu()

    on_gpu(WIDE.replace("x * 2", "x * 3"))
    after_a_failure = list(used.compiled)
    on_gpu()

    assert after_a_failure == []
    assert used.compiled == [(VALUES, 0), (1, 0)]  # values, and what is timed


def test_without_a_gpu_all_stays_as_it_is(gpu, graded):  # noqa: F811
    gpu()

    report = graded(WIDE, WITH_CLOCK)

    assert (report.evidence, report.gpu, report.on_gpu) == ("efficient", "", ())
    assert report.results[-1].name == "every launch compiles for the NVIDIA H100 SXM"
    assert result(report, TIMED.name).verdict is Verdict.SKIPPED
    assert result(report, TIMED.name).clocked


def test_a_slow_kernel_fails_by_the_clock(gpu, on_gpu):
    gpu(simulated.taking(2 * FAST))

    report = on_gpu()

    slow = result(report, TIMED.name)
    assert (report.verdict, report.evidence) == (Verdict.FAILED, "")
    assert (slow.verdict, slow.findings[0].code) == (Verdict.FAILED, "T07")
    assert slow.findings[0].seen.startswith("1.93 TB/s, 45 % of this GPU's copy speed, 70 % is "
                                            "required")


def test_a_slow_kernel_on_few_sms_is_told_so(gpu, on_gpu):
    gpu(simulated.taking(2 * FAST * 64))
    case = performance("4 194 304 floats", rand(64 * N), pass_at=0.7)

    report = on_gpu(FEW.replace("PROGRAMS", "16"), replace(SUITE, cases=[SUITE.cases[0], case]))

    seen = result(report, case.name).findings[0].seen
    assert "70 % is required" in seen
    assert seen.endswith("16 programs: 16 of 132 SMs (streaming multiprocessors) work, the others "
                         "are idle.")


def test_a_time_that_stays_noisy_decides_nothing(gpu, on_gpu):
    used = gpu(simulated.taking(FAST, spread=0.3))

    report = on_gpu()

    noisy = result(report, TIMED.name)
    assert (report.verdict, report.evidence) == (Verdict.PASSED, "efficient")
    assert noisy.verdict is Verdict.INCONCLUSIVE
    assert "too noisy to tell" in noisy.facts["measured"]
    assert noisy.reason.startswith("no clear time, however often it was taken. Let nothing else")
    assert (used.timed, report.noisy) == (gpu_verdicts.TRIES, (noisy,))


def test_a_noisy_time_is_measured_again(gpu, on_gpu):
    gpu(simulated.taking(FAST, spread=0.3), simulated.taking(FAST))

    assert on_gpu().evidence == "fast"


def test_a_time_that_cannot_be_fails(gpu, on_gpu, monkeypatch):
    gpu(simulated.taking(FAST / 2))
    small = replace(simulated.H200, l2_bytes=0)  # what is written last may still lie in a large one
    monkeypatch.setattr(simulated, "CEILINGS", replace(simulated.CEILINGS, gpu=small))

    found = result(on_gpu(), TIMED.name).findings[0]

    assert found.code == "T08"
    assert "the work was not done during the measurement" in found.seen


def test_a_result_that_only_the_gpu_gets_wrong_is_said_to_be_so(gpu, on_gpu):
    def last_bit(result: torch.Tensor, run: int) -> torch.Tensor:
        return result * (1 + 2e-7) if result.numel() == 1_000 and result.dtype.itemsize == 4 \
            else result

    gpu(change=last_bit)
    report = on_gpu()

    same = report.results[-2]
    assert (report.verdict, same.verdict) == (Verdict.FAILED, Verdict.FAILED)
    assert "Observed on the NVIDIA H200 in the case 'a thousand'. It passes on the CPU." in \
        same.findings[0].seen
    assert same.findings[0].means.startswith("The CPU runs programs one after another")
    assert same.replay == f"--case 'a thousand' --seed {report.seed}"
    assert same.facts["right"].startswith(f"{VALUES - 1} of {VALUES} cases")
    assert [r.verdict for r in report.on_gpu if r.name == "a thousand"] == [Verdict.FAILED]
    assert result(report, TIMED.name).reason.endswith(
        "not timed: a case with wrong values comes first")
    [(name, why)] = differences(report.results, report.on_gpu)
    assert name == "a thousand"
    assert why.startswith("right on the processor, N01 on the GPU")


@pytest.mark.parametrize("leans_here", [False, True])
def test_a_gpu_s_results_may_lean_together_and_a_processor_s_may_not(gpu, on_gpu, leans_here):
    suite = replace(WITH_CLOCK, tolerance=Tolerance(
        lambda x: Amplitude(reduced=2 * x.double().abs(), length=1)))
    gpu(change=lambda result, run: result * (1 + 2.0**-22))

    report = on_gpu(WIDE.replace("x * 2", f"x * {2 + 2.0**-21!r}") if leans_here else WIDE, suite)

    leaning = [finding.seen for one in report.results for finding in one.findings]
    assert report.verdict is (Verdict.FAILED if leans_here else Verdict.PASSED), leaning
    assert all("is biased by more than rounding explains" in seen for seen in leaning)


@pytest.mark.parametrize(("wrong", "code", "says"), [
    (lambda run: run % 2 == 0, "M06", "they depend on uninitialized memory"),
    (lambda run: run == 1, "M09", "the order in which programs run"),
], ids=["follows the garbage", "follows nothing"])
def test_runs_that_differ_name_what_they_depend_on(gpu, on_gpu, wrong, code, says):
    gpu(change=lambda result, run: result + 1 if wrong(run) else result)

    found = on_gpu().on_gpu[0].findings[0]

    assert found.code == code
    assert says in found.seen


def test_a_kernel_that_takes_the_gpu_s_process_with_it_is_a_finding(gpu, on_gpu):
    used = gpu(stops=Finding("R03", "The process ended: an illegal memory access."))

    report = on_gpu()

    assert report.results[-2].findings[0].code == "R03"
    assert used.runs == 3  # then no further one is tried
    assert [r.verdict for r in report.on_gpu][3:] == [Verdict.SKIPPED] * (VALUES - 3)


def test_a_gpu_that_does_not_answer_leaves_the_grade_as_without_one(gpu, on_gpu):
    gpu(missing="no kernel could be compiled: there is no C compiler.")

    report = on_gpu()

    assert (report.verdict, report.evidence, report.gpu) == (Verdict.PASSED, "efficient", "")
    assert result(report, TIMED.name).reason.endswith(
        "the GPU of this machine cannot be used: no kernel could be compiled: there is no C "
        "compiler.")


WRONG = WIDE.replace("x * 2", "x * 4")


def test_what_is_wrong_here_is_not_run_there(gpu, on_gpu):
    used = gpu()

    report = on_gpu(WRONG)

    assert (report.verdict, used.runs, report.gpu) == (Verdict.FAILED, 0, "")


def test_throughout_it_is_and_where_both_differ_is_told(gpu, graded):  # noqa: F811
    gpu(change=lambda result, run: result / 2)

    report = graded(WRONG, WITH_CLOCK, gpu="throughout")

    told = dict(differences(report.results, report.on_gpu))
    assert told["one element"].startswith("N01 on the processor, right on the GPU")


def test_a_result_of_another_shape_breaks_the_contract_there_too(gpu, graded):  # noqa: F811
    gpu()

    report = graded(WIDE.replace("return out", "return out[None]"), WITH_CLOCK, gpu="throughout")

    [one] = [found for found in report.on_gpu if found.name == "one element"]
    assert [finding.code for finding in one.findings] == ["S01"]
    assert not differences(report.results, report.on_gpu)


def test_the_results_of_timed_runs_are_judged(gpu, on_gpu):
    gpu(change=lambda result, run: result * 0 if result.numel() == N else result)

    found = result(on_gpu(), TIMED.name).findings[0]

    assert found.code == "N01"
    assert found.seen.endswith("Observed in a timed run.")


@pytest.mark.parametrize("right", [True, False])
def test_of_results_too_large_to_move_parts_are_judged(gpu, on_gpu, monkeypatch, right):
    used = gpu(change=lambda result, run: result if right or result.numel() < N else result * 0)
    if large_tensors.device() == "cpu":
        monkeypatch.setattr(large_tensors, "device", lambda: "cpu:0")  # and not refused for it
    monkeypatch.setattr(large_tensors, "MOST_MOVED", 1_000)
    monkeypatch.setattr(gpu_verdicts, "LARGE", 1_000)

    timed = result(on_gpu(), TIMED.name)

    assert used.windows > 1
    assert (timed.verdict is Verdict.PASSED) == right


def test_what_nobody_can_draw_in_time_is_left_open(gpu, on_gpu, monkeypatch):
    gpu()
    monkeypatch.setattr(large_tensors, "device", lambda: "cpu")
    monkeypatch.setattr(gpu_verdicts, "LARGE", 1_000)

    assert result(on_gpu(), TIMED.name).reason.startswith("not timed: drawing inputs")


def test_what_does_not_fit_the_gpu_is_left_open(gpu, on_gpu, monkeypatch):
    gpu()
    monkeypatch.setattr(simulated, "H200", replace(simulated.H200, memory_bytes=1 << 20))

    left = result(on_gpu(), TIMED.name)

    assert left.verdict is Verdict.SKIPPED
    assert left.reason.startswith("not timed: it takes 0 GiB")


def test_a_gpu_that_is_hidden_is_not_used(gpu, on_gpu, monkeypatch):
    used = gpu()
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")

    assert (on_gpu().evidence, used.runs) == ("efficient", 0)


def test_every_configuration_of_an_autotuner_is_timed(gpu, on_gpu):
    used = gpu()
    sizes = "triton.Config({'BLOCK': 1024}), triton.Config({'BLOCK': 512})"
    tuned = WIDE.replace("@triton.jit", f"@triton.autotune([{sizes}], key=['n'])\n@triton.jit")
    grid = "(lambda meta: (triton.cdiv(x.numel(), meta['BLOCK']),))"
    tuned = tuned.replace("[(triton.cdiv(x.numel(), 1024),)]", f"[{grid}]").replace(
        ", BLOCK=1024)", ")")

    report = on_gpu(tuned)

    assert result(report, TIMED.name).verdict is Verdict.PASSED
    assert used.configurations == 2


def test_a_bound_that_the_clock_refutes_does_not_fail_a_kernel(gpu, on_gpu, monkeypatch):
    """What is proved without a GPU rests on a model of it; a clock and right values rest on none.
    """
    gpu()
    proved = Finding("T01", "The launches move too many bytes.")
    monkeypatch.setattr(perf_bound, "_bounded", lambda *args: ({}, [proved]))

    timed = result(on_gpu(), TIMED.name)

    assert timed.verdict is Verdict.PASSED
    assert timed.facts["without a GPU"] == "would have failed: The launches move too many bytes."
