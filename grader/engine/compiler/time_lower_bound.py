"""The proved lower bound of a launch's time, however good its code is."""

from grader.engine.compiler.targets import Target
from grader.recording.compiled_kernel import Binary
from grader.recording.launch_stats import Survey

MOST_OVER_COPY = 1.17
"""Most that a GPU's bandwidth exceeds that of a copy: datasheet peaks are 1.12 to 1.17 times the
bandwidth of a copy; filling memory on an H200 reached 1.09 times."""
MOST_OVER_PEAK = 1.1
"""Most that a GPU's FLOP/s exceed the datasheet, as its clock may rise above the boost clock."""
HALF_OVER_FP32 = 4
"""Most that float16 without tensor cores is faster than float32: 4 times on an A100, at most twice
on other GPUs."""

SM_BYTES_PER_CYCLE, NEWER_SM_BYTES_PER_CYCLE = 64, 128
"""Most that an SM (streaming multiprocessor) gets from L2, and most that it stores, in a cycle: up
to Hopper, and assumed for newer GPUs."""
MOST_OVER_CLOCK = 1.15
"""Most that the clock of an SM exceeds the target's: 1,980 MHz of an H100 are 1.13 times."""


def least_seconds(survey: Survey, target: Target, binary: Binary | None = None,
                  cold: bool = True) -> float:
    """The least seconds of a launch, from the bytes it must move and the FLOP it must compute.

    Args:
        binary: the compiled kernel. Without one, or where it uses tensor cores, FLOP count at the
            target's fastest format; else at that of its other pipes.
        cold: L2 holds nothing before the launch. Data that fit L2 may stay there afterwards.
    """
    rate = max(target.fp8_tensor, target.fp16_tensor, target.tf32_tensor, target.fp32)
    if binary is not None and not binary.tensor_cores:
        rate = min(rate, HALF_OVER_FP32 * target.fp32)
    return max(moving_seconds(survey, target, cold), survey.flops / (rate * MOST_OVER_PEAK),
               sm_seconds(survey, target, binary))


def used_sms(survey: Survey, target: Target, binary: Binary | None = None) -> int:
    """The most SMs that run programs of a launch: a program runs on one, or on one per CTA."""
    ctas = binary.options.get("num_ctas", 1) if binary else 1
    each = ctas if isinstance(ctas, int) else 1
    return min(target.multiprocessors, survey.programs * max(1, each))


def sm_seconds(survey: Survey, target: Target, binary: Binary | None = None) -> float:
    """The least seconds in which few SMs load and store a launch's bytes; 0 if all SMs do.

    Each byte that DRAM or L2 delivers reaches at least one SM.
    """
    used = used_sms(survey, target, binary)
    if not 0 < used < target.multiprocessors:
        return 0.0
    loaded = survey.loaded.low if survey.surely is None else survey.surely
    each = SM_BYTES_PER_CYCLE if target.capability < 100 else NEWER_SM_BYTES_PER_CYCLE
    return max(loaded, survey.stored.low) / (used * each * target.clock * MOST_OVER_CLOCK)


def moving_seconds(survey: Survey, target: Target, cold: bool = True) -> float:
    """The least seconds that DRAM needs for a launch."""
    loaded = survey.loaded.low if survey.surely is None else survey.surely
    if not cold:
        loaded = max(0, loaded - target.l2)
    stored = max(0, survey.stored.low - target.l2)
    return (loaded + stored) / (target.dram * MOST_OVER_COPY)
