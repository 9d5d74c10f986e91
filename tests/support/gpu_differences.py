"""Cases on which the CPU and the GPU of one report disagree."""

from __future__ import annotations

from collections.abc import Sequence

from grader.report import CaseResult, Verdict

# What the grader finds on the processor and a GPU lets pass, by the code of the finding.
UNNOTICED = {
    "M01": "a GPU does not notice loads beyond a tensor, as long as some memory lies there",
    "M02": "a store far beyond a tensor may hit memory that nobody looks at",
    "M03": "memory that was never written may hold the right values by chance",
    "M04": "two programs that store the same element may store the same value, or come in the "
           "right order by chance",
    "M06": "lanes without a value get a zero on a GPU, whatever the grader puts there",
    "M07": "an input may be stored to with the value that it had",
    "M09": "programs, or threads of one, ran in an order that happened to be right",
    "R02": "a GPU runs programs at the same time, so that one may wait for another",
    "R04": "a GPU keeps in its registers what takes memory on the processor",
}


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
