"""Hidden tests of performance profiling: rates, rooflines, benchmarks, findings, a repair."""

from __future__ import annotations

import json
import math
import statistics
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F  # noqa: N812 - torch's own spelling

from grader.suite import (
    FLOATS,
    Amplitude,
    Bench,
    Case,
    Cost,
    Input,
    Suite,
    Tolerance,
    call,
    correctness,
    edge,
    integers,
    launchable,
    performance,
    rand,
    refuses,
    row,
    row_with,
    rows,
    sizes,
    spike,
)

NAN = math.nan
EPS = 1e-12
FAR = 1 << 30  # elements; the offset of the third row is 2**31
USED = 1 / 0.95  # sectors over the minimum if 95 % of each is used


# ---------------------------------------------------------------------------------------------
# The repair


def reference(x: torch.Tensor, eps: float = EPS) -> torch.Tensor:
    x = x.double()
    return x / (x * x).sum(1, keepdim=True).sqrt().clamp(min=eps)


def peer(x: torch.Tensor, eps: float = EPS) -> torch.Tensor:
    """In float32 like the solution; `F.normalize` has no answer where squares leave the range."""
    wide = x.float()
    largest = wide.abs().amax(1, keepdim=True) if x.shape[1] else wide.new_zeros(len(x), 1)
    scale = torch.where(largest > 0, largest, 1.0)
    share = wide / scale
    norm = (share * share).sum(1, keepdim=True).sqrt()
    return (share / torch.maximum(norm, eps / scale)).to(x.dtype)


def amplitude(x: torch.Tensor, eps: float = EPS) -> Amplitude:
    """Half of the relative error of a sum of squares arrives, and a few roundings of their own."""
    size = reference(x, eps).abs()
    return Amplitude(pointwise=4 * size, reduced=size, length=max(1, x.shape[1]))


def times(factor: float) -> Callable[[torch.Tensor], torch.Tensor]:
    return lambda t: t * factor


def mixed(columns: int) -> Input:
    """Rows of ordinary, huge, tiny and no size, in turn: no row may tell on another."""
    ordinary = row(columns)
    return rows(ordinary, row_with(columns, 1e30, 0, columns), row_with(columns, 0.0, 0, columns),
                row_with(columns, 1e-30, 0, columns), ordinary)


# ---------------------------------------------------------------------------------------------
# Rates and rooflines

BYTES = ((120_000_000, 0.0279), (1_610_612_736, 0.37155), (0, 1.0), (1, 1.0), (1 << 40, 250.0))
FLOPS = ((17_179_869_184, 0.0217), (10_000_000, 0.0279), (0, 2.5), (1 << 50, 1_000.0))

# (flops, bytes, flop/s, bytes/s) and what the job is
JOBS = (
    ((10_000_000, 120_000_000, 67e12, 4.8e12), "10,000,000 additions of float32 on an H200"),
    ((17_179_869_184, 25_165_824, 989e12, 4.8e12), "a product of 2,048**3 in float16 on an H200"),
    ((17_179_869_184, 25_165_824, 312e12, 2.039e12),
     "a product of 2,048**3 in float16 on an A100"),
    ((8_000, 1_000, 67e12, 4.8e12), "8 flop per byte in float32 on an H200"),
    ((20_000, 1_000, 67e12, 4.8e12), "20 flop per byte in float32 on an H200"),
    ((20_000, 1_000, 989e12, 4.8e12), "20 flop per byte in float16 on an H200"),
    ((100, 1_000_000_000, 1e12, 1e12), "a copy that counts a little"),
    ((1_000_000_000, 100, 1e12, 1e12), "arithmetic on 100 bytes"),
)
UNITS = {"t_min_s": "s", "intensity": "flop/byte", "ridge": "flop/byte",
         "attainable_flops": "flop/s"}
FIELDS = ("bound", *UNITS)


def rates_are(unit: str, giga: float, what: str) -> Callable[..., None]:
    """A check of amounts over times; ``giga`` is what the unit counts by."""
    def check(answer: Any, pairs: Sequence[tuple[int, float]]) -> None:
        for (amount, ms), got in zip(pairs, answer, strict=True):
            right = amount / giga / (ms / 1e3)
            said = f"{amount:,} {what} in {ms} ms give {_shown(got)} {unit}"
            assert type(got) in (int, float), f"{said}, which is not a number."
            share = got / right if right else 1.0 + got
            assert math.isclose(share, 1.0, rel_tol=1e-6), f"{said}{_off(share, giga)}."

    return check


def _off(share: float, giga: float) -> str:
    """What a wrong factor looks like."""
    power = round(math.log10(share)) if share > 0 and math.isfinite(share) else 0
    if power and math.isclose(share, 10.0**power, rel_tol=1e-6):
        return (f": off by a factor of exactly 10**{power}. A unit was confused on the "
                f"way, such as ms and s")
    binary = 2.0 ** (30 if giga == 1e9 else 40)
    if math.isclose(share, giga / binary, rel_tol=1e-6):
        return (f", {1 - share:.0%} low: the prefix was taken as a power of two. Bandwidths and "
                f"rates are decimal")
    return _how_far(share)


def _how_far(share: float) -> str:
    return f", {share:.4g} times the right value" if abs(share - 1) > 1e-3 else (
        f", a relative error of {abs(share - 1):.1g}: results are not rounded")


def rooflines_are(field: str) -> Callable[..., None]:
    """A check of one field of all rooflines."""
    at = FIELDS.index(field)

    def check(answer: Any, jobs: Sequence[Sequence[float]]) -> None:
        for (job, name), given in zip(JOBS, answer, strict=True):
            flops, nbytes, peak_flops, peak_bytes = job
            assert isinstance(given, list), (
                f"`roofline` returned {given}, expected a Roofline.")
            got = given[at]
            asked = (f"For {name} ({flops:,} flop, {nbytes:,} bytes, peaks of {peak_flops:.4g} "
                     f"flop/s and {peak_bytes:.4g} bytes/s) `{field}` is {_shown(got)}")
            if field == "bound":
                seconds = {"compute": flops / peak_flops, "memory": nbytes / peak_bytes}
                assert got in seconds, f"{asked}, which is neither 'memory' nor 'compute'."
                assert seconds[got] == max(seconds.values()), (
                    f"{asked}. Alone, the arithmetic takes {seconds['compute'] * 1e6:.4g} µs and "
                    f"the bytes {seconds['memory'] * 1e6:.4g} µs.")
                continue
            assert type(got) in (int, float), f"{asked}, which is not a number."
            right = _roofline(field, *job)
            assert math.isclose(got, right, rel_tol=1e-6), (
                f"{asked} {UNITS[field]}{_confused(field, got, job)}.")

    return check


def _shown(value: Any) -> str:
    return f"{value:.4g}" if type(value) is float else f"{value!r:.40}"


def _roofline(field: str, flops: int, nbytes: int, peak_flops: float, peak_bytes: float) -> float:
    return {"t_min_s": max(flops / peak_flops, nbytes / peak_bytes),
            "intensity": flops / nbytes,
            "ridge": peak_flops / peak_bytes,
            "attainable_flops": min(peak_flops, flops / nbytes * peak_bytes)}[field]


def _confused(field: str, got: float, job: Sequence[float]) -> str:
    """What a wrong field is instead, where it can be told."""
    flops, nbytes, peak_flops, peak_bytes = job
    known = {
        "t_min_s": {
            "the sum of both times: a GPU computes while it moves": (
                flops / peak_flops + nbytes / peak_bytes),
            "the shorter of both times: the job ends with the longer one": min(
                flops / peak_flops, nbytes / peak_bytes),
            "in milliseconds": 1e3 * _roofline("t_min_s", *job),
        },
        "intensity": {"bytes per flop": nbytes / flops},
        "ridge": {"bytes per flop": peak_bytes / peak_flops},
        "attainable_flops": {
            "the compute peak, which needs a higher arithmetic intensity": peak_flops,
            "more than the device can do": flops / nbytes * peak_bytes,
        },
    }[field]
    for words, value in known.items():
        if math.isclose(got, value, rel_tol=1e-6):
            return f": that is {words}"
    return _how_far(got / _roofline(field, *job))


# ---------------------------------------------------------------------------------------------
# Benchmarks

COLD = 0.028  # ms for 120 MB at 4.3 TB/s
MOVED = 120_000_000
NOISY = tuple(COLD * share for share in (1.0, 0.995, 1.006, 1.002, 0.997, 1.004, 0.999, 1.001))
OUTLIERS = (*NOISY, *NOISY, *NOISY[:3], 50 * COLD)  # one call in 20
SPREAD = tuple(1.0 + (37 * n % 100) / 99 for n in range(100))  # 1 to 2 ms, in another order


def measured(name: str, script: Mapping[str, Any], *, warmup: int | None = None,
             repeat: int | None = None, within: float = 0.02, public: bool = False,
             counted: bool = False,
             points: tuple[float, float, float] | None = None) -> Case:
    """A benchmark of a device that follows the script; the 20 %, 50 % and 80 % points are known."""
    options = {key: value for key, value in (("warmup", warmup), ("repeat", repeat))
               if value is not None}
    warm_up, count = 10 if warmup is None else warmup, 100 if repeat is None else repeat
    launching = script.get("launching", 0.002)
    cold = script.get("cold", (1.0,))
    middle = statistics.median(cold) + launching
    p20, right, p80 = points or (middle, middle, middle)

    def check(answer: Mapping[str, Any], *_: Any) -> None:
        assert isinstance(answer["stats"], list), (
            f"`benchmark` returned {answer['stats']}, expected a Stats.")
        median, low, high, n = answer["stats"]
        assert all(type(value) in (int, float) and math.isfinite(value)
                   for value in (median, low, high)), (
            f"median_ms, p20_ms and p80_ms are {median!r:.30}, {low!r:.30} and {high!r:.30}, which "
            "are not three finite numbers.")
        assert n == count and type(n) is int, (
            f"n is {n!r:.30}, expected {count} samples.")
        assert math.isclose(median, right, rel_tol=within), (
            f"The median is {median:.4g} ms, where a call of the device takes {right:.4g} ms"
            f"{_reason(median, right, script, warm_up, count)}.")
        for field, value, wanted in (("p20_ms", low, p20), ("p80_ms", high, p80)):
            assert math.isclose(value, wanted, rel_tol=max(within, 0.03)), (
                f"{field} is {value:.4g} ms; {20 if field == 'p20_ms' else 80} % of the samples "
                f"are below {wanted:.4g} ms.")
        assert not counted or answer["calls"] == warm_up + count, (
            f"The function was called {answer['calls']} times, for warmup {warm_up} and repeat "
            f"{count}.")

    return call(name, "benchmark", dict(script), options, check=check, public=public)


def _reason(median: float, right: float, script: Mapping[str, Any], warm_up: int,
            count: int) -> str:
    """What a wrong median usually is: the number on the device that it is near to."""
    cold = statistics.median(script.get("cold", (1.0,)))
    launching = script.get("launching", 0.002)
    rate = "" if cold != statistics.median(NOISY) else f" ({MOVED / median / 1e6:,.0f} GB/s for " \
        f"{MOVED // 10**6} MB)" if median > 0 else ""
    mean = statistics.fmean(script.get("cold", (1.0,))) + launching
    # Where there is one sample, all the calls before it may still be at work.
    waiting = 0.0
    if warm_up and count == 1:
        waiting = cold * (1 + (warm_up - 1) * script.get("warm", 1.0))
    known = (
        (0.0, ". The clock did not advance between the two readings"),
        (launching, f"{rate}. {launching} ms is the launch alone; the device had not finished when "
                    f"the clock was read"),
        (cold, ". That is its work alone: calls came so close behind each other that the launch of "
               "one hid behind the work of another"),
        (cold * script.get("warm", 1.0) + launching,
         f"{rate}. That is the time of a call with its data in L2"),
        (right + script.get("flushing", 0.0),
         f". The device takes {script.get('flushing', 0.0):.4g} ms to flush its cache, and that "
         f"was still going on while the clock ran"),
        (right * script.get("slower", 1.0) - launching * (script.get("slower", 1.0) - 1),
         f". The first {script.get('slow', 0)} calls take {script.get('slower', 1.0):.4g} times as "
         f"long, and they were counted"),
        (right + script.get("backlog", 0.0),
         f". {script.get('backlog', 0.0):.4g} ms of earlier work were waiting, and the clock ran "
         f"meanwhile"),
        (right + waiting, f". {waiting:.3g} ms of that belong to the calls that warmed up: the "
                          f"device was still at them when the clock started"),
        (right / 1e3, ". That is a number of seconds"),
        (mean, f". One call in 20 takes 50 times as long, and moved the result by "
               f"{median / right - 1:.0%}"),
        (right * count, f". That is the time of all {count} samples together"),
        (mean * count, f". That is about the time of all {count} samples together"),
    )
    for value, words in known:
        if math.isclose(median, value, rel_tol=0.025, abs_tol=1e-9):
            return words
    slowest = script.get("compiling", 0.0)
    if slowest and median > right + slowest / count / 2:
        return (f", {median / right:,.0f} times as long. The first call is compiled for "
                f"{slowest:,.0f} ms, and it was counted")
    return f", {median / right:.4g} times that"


def passes_on(answer: str) -> None:
    assert answer == "KeyError", (
        f"The function that was timed raised KeyError, and {answer or 'nothing'} came out of "
        "`benchmark`: whoever measures has to hear of it.")


# ---------------------------------------------------------------------------------------------
# Findings

EVIDENCE = json.loads(Path(__file__).with_name("profiles.json").read_text(encoding="utf-8"))
GPU, PROFILES = EVIDENCE["gpu"], EVIDENCE["profiles"]
SPEEDUP = 0.25  # how far off a predicted one may be, as a share
BOTTLENECKS = ("uncoalesced", "redundant-traffic", "launch-bound", "spills", "at-roofline",
               "compute-bound")
DERIVED = ("sector_efficiency", "issued_ratio", "share_of_copy", "bandwidth_gbps", "intensity",
           "ms_per_launch")


def copy_ms(profile: Mapping[str, Any]) -> float:
    """What the bytes of the job take at the speed of a copy."""
    return float(profile["compulsory_bytes"] / GPU["copy_gbps"] / 1e6)


def metrics(profile: Mapping[str, Any]) -> dict[str, float]:
    """All numbers of a profile, and those that follow from them."""
    return {**{name: value for name, value in profile.items() if name != "job"},
            "sector_efficiency": profile["issued_bytes"] / profile["sector_bytes"]
            / profile["sectors"],
            "issued_ratio": profile["issued_bytes"] / profile["compulsory_bytes"],
            "share_of_copy": copy_ms(profile) / profile["ms"],
            "bandwidth_gbps": profile["compulsory_bytes"] / profile["ms"] / 1e6,
            "intensity": profile["flops"] / profile["compulsory_bytes"],
            "ms_per_launch": profile["ms"] / profile["launches"]}


def against(bottleneck: str, known: Mapping[str, float]) -> str:
    """The number of a profile that this bottleneck would show in, in words."""
    launches = f"{known['launches']} launch{'es' * (known['launches'] > 1)}"
    ridge = GPU["fp32_tflops"] / GPU["copy_gbps"] * 1e3
    return {
        "uncoalesced": f"{known['sector_efficiency']:.1%} of the sectors that move is used",
        "redundant-traffic": f"its programs ask for {known['issued_ratio']:.2f} bytes for each "
                             "byte of the job",
        "launch-bound": f"its {known['ms']:.4g} ms are those of {launches}, and an empty one takes "
                        f"{GPU['launch_ms']:.2g} ms",
        "spills": f"a thread has {known['stack_bytes']} bytes of stack and "
                  f"{known['registers']} registers, of 255",
        "at-roofline": f"it moves the bytes of its job at {known['share_of_copy']:.1%} of the "
                       "speed of a copy",
        "compute-bound": f"it does {known['intensity']:.2g} flop for each byte, and the ridge of "
                         f"this GPU is at {ridge:.3g}",
    }[bottleneck]


def found(letter: str, bottleneck: str, *evidence: str, speedups: Sequence[float]) -> Case:
    """One entry of FINDINGS.

    Args:
        evidence: the numbers of the profile that show it.
        speedups: what may be derived from them, from several sides.
    """
    profile = PROFILES[letter]
    known = metrics(profile)
    low, high = min(speedups) * (1 - SPEEDUP), max(speedups) * (1 + SPEEDUP)

    def check(answer: Any, _: str) -> None:
        name = f"FINDINGS[{letter!r}]"
        assert answer is not None, f"{name} has no entry."
        assert isinstance(answer, list), f"{name} is {answer}; expected a Finding."
        got, metric, speedup = answer
        assert got in BOTTLENECKS, (
            f"{name}: {got!r:.40} is not one of the six names: {', '.join(BOTTLENECKS)}.")
        assert got == bottleneck, (
            f"{name}: {got!r} does not fit the profile: {against(got, known)}.")
        assert metric in known, (
            f"{name}: {metric!r:.40} is not a metric of the profile or one derived from it: "
            f"{', '.join(DERIVED)}.")
        assert metric in evidence, (
            f"{name}: `{metric}` is {known[metric]:,.4g}. A kernel without this bottleneck could "
            "have the same number.")
        assert type(speedup) in (int, float) and math.isfinite(speedup) and speedup > 0, (
            f"{name}: predicted_speedup is {speedup!r:.40}, expected a finite number above 0.")
        left = profile["ms"] / speedup
        slower = known["ms_per_launch"] / GPU["launch_ms"]
        assert bottleneck != "launch-bound" or not math.isclose(speedup, slower, rel_tol=0.05), (
            f"{name}: {speedup:.4g} is the time of one launch over that of an empty one, "
            f"{GPU['launch_ms']:.2g} ms. There would still be {known['launches']} of them, in "
            f"{left:.3g} ms, and a copy of as many bytes takes {copy_ms(profile):.3g} ms. How many "
            "does the task need?")
        assert speedup <= high, (
            f"{name}: {speedup:.4g} times faster are {left:.3g} ms, and a copy of as many bytes "
            f"takes {copy_ms(profile):.3g} ms on this GPU.")
        assert speedup >= low, (
            f"{name}: {speedup:.4g} times faster are {left:.3g} ms, still "
            f"{left / copy_ms(profile):.3g} times what a copy of as many bytes takes. With this "
            "bottleneck gone, nothing in the profile explains the rest.")

    return call(f"the finding of profile {letter}", "finding", letter, check=check)


def of_time(letter: str, more: float = 0.0) -> float:
    """How many times faster it would be at the speed of a copy, with so many ms besides."""
    return float(PROFILES[letter]["ms"] / (copy_ms(PROFILES[letter]) + more))


FINDINGS = (
    found("A", "uncoalesced", "sector_efficiency", "sectors",
          speedups=(1 / metrics(PROFILES["A"])["sector_efficiency"], of_time("A"))),
    found("B", "redundant-traffic", "issued_ratio", "issued_bytes",
          speedups=(metrics(PROFILES["B"])["issued_ratio"], of_time("B"))),
    found("C", "launch-bound", "launches", "ms_per_launch",
          speedups=(of_time("C", GPU["launch_ms"]), of_time("C"))),
    found("D", "spills", "stack_bytes", "registers", speedups=(of_time("D"),)),
    found("E", "at-roofline", "share_of_copy", "bandwidth_gbps", speedups=(1.0,)),
)


# ---------------------------------------------------------------------------------------------
# Predictions

NEAR = 0.1  # how far off a prediction may be, as a share
ROWS = 16_384  # of the matrix that is predicted


def predicted(name: str, right: float, words: Callable[[float], str]) -> Case:
    """One entry of PREDICTION; ``words`` say of a wrong number what it would mean."""
    def check(answer: Any, _: str) -> None:
        said = f"PREDICTION[{name!r}]"
        assert answer is not None, f"{said} has no number yet. Write one down before you measure."
        assert not isinstance(answer, str), f"{said} is {answer}; expected a number."
        assert math.isfinite(answer), f"{said} is {answer}; expected a finite number."
        assert math.isclose(answer, right, rel_tol=NEAR), (
            f"{said} is {f'{answer:,.0f}' if answer == int(answer) else f'{answer:,.4g}'}. "
            f"{words(answer)}")

    return call(f"the prediction of {name}", "prediction", name, check=check)


def of_bytes(ratio: float) -> str:
    return ("No kernel can move fewer than the compulsory bytes." if ratio < 1 else
            f"For each compulsory byte read and byte written, {2 * ratio:.3g} bytes would be "
            "requested. Which of them twice, by a program that holds its row?")


def of_launches(count: float) -> str:
    if count == ROWS:
        return ("That is the number of rows, and of programs if each owns one row. One launch "
                "starts many programs. How many launches are there?")
    return ("The number of launches is a positive integer." if count != int(count) or count < 1 else
            "Another launch is needed if programs wait for results of others. Does any program "
            "wait if each row has its own?")


def of_sectors(share: float) -> str:
    if 50 <= share <= 100:
        return "It is a fraction from 0 to 1, not a percentage."
    return ("It is a fraction of the moved bytes and cannot exceed 1." if share > 1 else
            f"Of each sector of 32 bytes {32 * share:.3g} would be used. How many contiguous "
            "elements of a row are in one sector, and which program loads them?")


PREDICTIONS = (
    predicted("issued_bytes_ratio", 1.0, of_bytes),
    predicted("launches", 1, of_launches),
    predicted("sector_efficiency", 1.0, of_sectors),
)


def are_frozen(answer: Any) -> None:
    assert answer == [], f"A field of {' and of '.join(answer)} took another value."


# ---------------------------------------------------------------------------------------------
# The suite

suite = Suite(
    entry="row_l2_normalize",
    parameters=("x", "eps"),
    files=("devices.py", "profiles.json"),
    host={"bandwidth_gbps": ("nbytes", "ms"), "tflops": ("flops", "ms"),
          "roofline": ("flops", "nbytes", "peak_flops", "peak_bytes"),
          "benchmark": ("fn", "device")},
    reference=reference,
    tolerance=Tolerance(amplitude),
    contiguous_result=True,
    peer=peer,
    reversed_peer=lambda x, eps=EPS: peer(x.flip(1), eps).flip(1),
    cost=lambda x, eps=EPS: Cost(bytes=2 * x.numel() * x.element_size(), flops=3 * x.numel()),
    bench=Bench("columns", (256, 1_024, 4_096, 16_384), lambda n: (rand(4_096, n),),
                at="4096 rows of float32", peer=lambda x: F.normalize(x),
                peer_name="F.normalize"),
    cases=[
        correctness("20 x 256 floats", rand(20, 256), public=True),
        correctness("37 x 100 floats", rand(37, 100), public=True),
        correctness("37 x 100 in float16", rand(37, 100, dtype="float16"), public=True),
        correctness("33 x 129 in bfloat16", rand(33, 129, dtype="bfloat16")),
        *(correctness(f"{r} x {c:,} floats".replace(",", " "), rand(r, c, mean=0.5))
          for r, c in ((1, 1), (3, 2), (3, 127), (3, 128), (3, 129), (3, 1_000), (1, 4_097))),
        correctness("2 x 16 384 floats, the widest row", rand(2, 16_384)),
        correctness("4 x 2 000 float16 around 300: their squares pass 65 504",
                    rand(4, 2_000, mean=300.0, std=20.0, dtype="float16")),
        correctness("8 x 1 000 float16 whose squares float16 rounds away",
                    rand(8, 1_000, std=1e-4, dtype="float16")),
        correctness("rows near 1e30", rand(5, 200).then(times(1e30))),
        correctness("rows near -3e30, all below 0",
                    rand(5, 200, mean=-3.0, std=0.5).then(times(1e30))),
        correctness("rows near 3e37 of 4 000 numbers", rand(2, 4_000).then(times(3e37))),
        correctness("rows near 1e-30, and an eps of 1e-37",
                    rand(5, 200).then(times(1e-30)), 1e-37),
        correctness("rows near 1e-30, all below eps", rand(5, 200).then(times(1e-30))),
        correctness("rows below and above an eps of 3", rand(64, 9), 3.0),
        correctness("one number far above all others", spike(700)),
        correctness("whole numbers", integers(40, 64)),
        correctness("numbers around 10 000", rand(6, 300, mean=1e4)),

        *(call(f"{unit} of {len(pairs)} pairs", of, pairs,
               check=rates_are(unit, giga, what), public=of == "bandwidth_gbps")
          for of, unit, giga, what, pairs in (
              ("bandwidth_gbps", "GB/s", 1e9, "bytes", BYTES),
              ("tflops", "TFLOP/s", 1e12, "operations", FLOPS))),
        *(call(f"{of} of {amount} in {ms} ms", of, ((amount, ms),), raises=ValueError,
               mentions=(name,))
          for of, name, amount, ms in (
              ("bandwidth_gbps", "ms", 100, 0.0), ("bandwidth_gbps", "ms", 100, -1.0),
              ("bandwidth_gbps", "nbytes", -1, 1.0), ("tflops", "ms", 100, 0.0),
              ("tflops", "flops", -1, 1.0))),
        *(call(f"{field} of rooflines", "roofline", tuple(job for job, _ in JOBS),
               check=rooflines_are(field))
          for field in ("ridge", "intensity", "bound", "t_min_s", "attainable_flops")),
        *(call(f"a roofline with {name} of {value:g}", "roofline",
               (tuple(value if at == place else 1_000 for at in range(4)),), raises=ValueError,
               mentions=(name,))
          for place, name, value in ((0, "flops", 0), (1, "nbytes", 0), (1, "nbytes", -8),
                                     (2, "peak_flops", 0.0), (3, "peak_bytes", -1.0))),

        measured("a device that works while the host goes on", {"cold": NOISY}, public=True),
        measured("one call in 20 takes 50 times as long", {"cold": OUTLIERS}),
        measured("the first calls are compiled and slow",
                 {"cold": NOISY, "compiling": 840.0, "slow": 9, "slower": 8.0}, repeat=12),
        measured("data stay in L2 unless flushed", {"cold": NOISY, "warm": 4.3 / 7.9}),
        measured("flushing takes a while", {"cold": NOISY, "warm": 4.3 / 7.9, "flushing": 0.4}),
        measured("earlier work is still going on", {"backlog": 500.0}, warmup=0, repeat=1),
        measured("the clock only advances when the device is waited for",
                 {"cold": NOISY, "launching": 0.0, "sleepy": True}),
        measured("calls that take from 1 to 2 ms", {"cold": SPREAD}, warmup=0,
                 points=(1.2, 1.502, 1.8)),
        measured("one call after two, whose data are in L2", {"warm": 0.5}, warmup=2, repeat=1),
        measured("7 calls after 3", {"cold": (5.0,)}, warmup=3, repeat=7, counted=True),
        call("a function that raises", "benchmark_raises", check=passes_on),
        call("a warmup of -1", "benchmark", {}, {"warmup": -1}, raises=ValueError,
             mentions=("warmup", "-1")),
        call("a repeat of 0", "benchmark", {}, {"repeat": 0}, raises=ValueError,
             mentions=("repeat", "0")),
        call("results cannot be changed", "frozen", check=are_frozen),

        *FINDINGS,
        *PREDICTIONS,

        edge("rows of zeros between others", mixed(50), public=True),
        edge("nothing but zeros", rand(4, 33).then(times(0.0))),
        edge("no row", rand(0, 40), launches=0),
        launchable("70 000 rows of one column", rand(70_000, 1)),
        edge("no column", rand(40, 0), launches=0),
        edge("NaN stays in its row", rows(row(40), row(40, {7: NAN}), row(40))),
        edge("a transposed view", rand(70, 31).mT),
        edge("every other row of a wider matrix", rand(40, 200)[::2, 30:90]),
        edge("a matrix that starts at the second element of its memory",
             rand(20 * 33 + 1).then(lambda t: t[1:].view(20, 33))),
        edge("one row repeated 40 times", rand(1, 33).then(lambda t: t.expand(40, -1))),
        edge("rows 2**30 elements apart", rand(4, 40, dtype="float16").apart(FAR, 1)),
        refuses("x is a list", [[1.0, 2.0]], raises=TypeError, mentions=("x", "list")),
        refuses("int32 is not supported", rand(4, 4, dtype="int32"), raises=TypeError,
                mentions=("x", "int32")),
        refuses("one dimension", rand(16), raises=ValueError, mentions=("x", "16")),
        refuses("16 385 columns", rand(1, 16_385), raises=ValueError,
                mentions=("x", "16384", "16385")),
        refuses("an eps of 0", rand(4, 4), 0.0, raises=ValueError, mentions=("eps", "0")),

        sizes(lambda rows, columns, dtype: (rand(rows, columns, dtype=dtype),),
              rows=(1, 5), columns=(1, 5_000), dtype=FLOATS),

        performance("256 x 1 024 floats, counted", rand(256, 1_024), traffic=1.0, sectors=USED,
                    launches=1, programs=256, spills=0),
        performance("300 x 1 000 in float16, counted", rand(300, 1_000, dtype="float16"),
                    traffic=1.0, sectors=USED, launches=1, programs=300, spills=0),
        performance("16 384 x 4 096 floats", rand(16_384, 4_096), launches=1, programs=16_384,
                    spills=0, pass_at=0.75, stretch=0.88),
    ],
)


# ---------------------------------------------------------------------------------------------
# Properties


def test_a_power_of_two_changes_no_bit(submission):
    """Multiplying by a power of two is exact and does not change a direction."""
    (x,) = submission.draw(rand(20, 90))

    result, scaled = submission(x), submission(x * 2.0**20)

    off = int((result != scaled).sum())
    assert off == 0, f"{off} of {result.numel()} elements change if x is 2**20 times as large"


def test_normalised_twice_is_normalised_once(submission):
    (x,) = submission.draw(rand(30, 150))

    once = submission(x)
    twice = submission(once)

    furthest = (twice - once).abs().max().item()
    assert furthest <= 1e-6, f"a second call moves an element by {furthest:.3g}"
