"""Cases on which the CPU and the GPU of one report disagree."""

from __future__ import annotations

from collections.abc import Sequence

from grader.diagnosis.gpu_cpu_differences import UNNOTICED
from grader.report import CaseResult, Verdict


def differences(before: Sequence[CaseResult],
                on_gpu: Sequence[CaseResult]) -> list[tuple[str, str]]:
    """Cases on which CPU and GPU disagree: (name, both verdicts and the reason if known)."""
    gpu_results = {result.name: result for result in on_gpu}
    disagreements = []
    for result in before:
        other = gpu_results.get(result.name)
        if other is None or other.verdict is result.verdict or \
                not {result.verdict, other.verdict} <= {Verdict.PASSED, Verdict.FAILED}:
            continue
        if result.verdict is Verdict.FAILED:
            code = result.findings[0].code
            why = UNNOTICED.get(code, "")
            disagreements.append((result.name, f"{code} on the processor, right on the GPU"
                                               f"{f': {why}' if why else ''}"))
        else:
            seen = other.findings[0]
            disagreements.append((result.name, f"right on the processor, {seen.code} on the "
                                               f"GPU: {seen.seen}"))
    return disagreements
