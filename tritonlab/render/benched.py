"""A benchmark in words: what was timed on what, each time beside its ceiling, what was not."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from grader.bench import REFERENCE, YOURS, Benchmark, Chart, Contender, Speed
from grader.words import sentence
from tritonlab.render import quantities as q

WHO = {YOURS: "Your kernel", REFERENCE: "The reference solution"}
_UNITS = {"fp8": "float8", "fp16": "float16", "tf32": "float32 in TF32", "fp32": "float32"}


@dataclass(frozen=True)
class Line:
    """One row of the table. Percentiles are empty where a time is predicted."""

    size: int
    who: str
    time: str
    low: str
    high: str
    speed: str
    share: str
    repeats: int
    note: str


def promise(found: Benchmark) -> str:
    """What its times are, said wherever one is shown."""
    if found.measured:
        return f"measured on this {found.device}"
    return f"predicted for an {found.device} from compiled code, not measured"


def introduction(found: Benchmark) -> str:
    """The same as a sentence, and what there is besides."""
    said = sentence(promise(found))
    if found.measured:
        return f"{said} Times are medians; 60 % of the repeats lie between p20 and p80."
    if found.why:
        said = f"{said[:-1]}: {found.why.rstrip('.')}."
    return (f"{said} What PyTorch and torch.compile would take cannot be predicted: that needs a "
            "GPU.")


def title(chart: Chart) -> str:
    """Such as ``softmax by columns, 4 096 rows of float32``."""
    return f"by {chart.axis}, {chart.at}"


def peers(chart: Chart) -> str:
    """What torch was asked to do, where it was timed."""
    return f"PyTorch is {chart.peer_name}." if chart.roof.measured else ""


def ceiling(chart: Chart) -> str:
    """The ceiling, named with its device."""
    roof, bounds = chart.roof, {chart.roof.bound(needed) for needed in chart.needed.values()}
    copy = f"copy {q.rate(roof.copy, 'B/s')}"
    product = f"matmul {q.rate(roof.peak, 'FLOP/s')}"
    speeds = " or ".join(text for name, text in (("copy", copy), ("matmul", product))
                         if name in bounds)
    return f"ceiling of the {roof.device}: {speeds}"


def bounded(chart: Chart) -> str:
    """The head of the column with shares."""
    bounds = {chart.roof.bound(needed) for needed in chart.needed.values()}
    return f"of {bounds.pop()}" if len(bounds) == 1 else "of ceiling"


def lines(chart: Chart) -> Iterator[Line]:
    """Every time, size by size."""
    for size in chart.needed:
        for one in chart.timed:
            if size in one.speeds:
                yield _line(chart, size, one.who, one.speeds[size])


def _line(chart: Chart, size: int, who: str, speed: Speed) -> Line:
    low, high = (q.seconds(part) if speed.repeats else "" for part in (speed.low, speed.high))
    return Line(size, who, q.seconds(speed.seconds), low, high,
                q.rate(chart.rate(size, speed.seconds), chart.unit),
                q.share(chart.share(size, speed)), speed.repeats, speed.note)


def notes(chart: Chart) -> Iterator[str]:
    """What is to be known of some of the times, each with whose and which these are."""
    found: dict[str, dict[str, list[str]]] = {}
    for line in lines(chart):
        if line.note:
            found.setdefault(line.note, {}).setdefault(line.who, []).append(f"{line.size:,}")
    for note, whose in found.items():
        yield f"{sentence(note)[:-1]}: " + "; ".join(
            f"{who} at {_list(sizes)}" for who, sizes in whose.items()) + "."


def summary(chart: Chart) -> str:
    """How one's own kernel compares with the best of the others, at the largest size of both."""
    mine = next((one for one in chart.timed if one.who == YOURS), None)
    others = [one for one in chart.timed if one.who != YOURS]
    if mine is None or not others:
        return ""
    shared = [size for size in mine.speeds if any(size in one.speeds for one in others)]
    if not shared:
        return ""
    size = max(shared)
    best = min((one for one in others if size in one.speeds),
               key=lambda one: one.speeds[size].seconds)
    ratio = best.speeds[size].seconds / mine.speeds[size].seconds
    who = "the reference solution" if best.who == REFERENCE else best.who
    than = f"{who}, the fastest of the others" if len(others) > 1 else who
    if 0.995 <= ratio < 1.005:
        verb, said = "be", f"as fast as {than}"
    elif ratio > 1:
        verb, said = "be", f"{ratio:.2f} times as fast as {than}"
    else:
        verb, said = "reach", f"{ratio:.2f} of the speed of {than}"
    does = {"be": "is", "reach": "reaches"}[verb] if chart.roof.measured else \
        f"is predicted to {verb}"
    return f"At {size:,} {chart.axis}, your kernel {does} {said}."


def missing(chart: Chart) -> Iterator[str]:
    """What was not timed, and why; what is wrong in the learner's kernels is said beside it."""
    for one in chart.contenders:
        name = WHO.get(one.who, one.who)
        if one.wrong is not None:
            yield f"{name} was not timed, as its values are wrong: {one.wrong.name}."
        for sizes, reason in _reasons(one):
            yield f"{name} has no time for {sizes} {chart.axis}: {reason}"


def _reasons(one: Contender) -> Iterator[tuple[str, str]]:
    """Each reason once, with the sizes that it is about."""
    found: dict[str, list[int]] = {}
    for size, why in one.without.items():
        reason = why.reason or " ".join(finding.seen for finding in why.findings)
        found.setdefault(reason, []).append(size)
    for reason, sizes in found.items():
        yield _list([f"{size:,}" for size in sizes]), reason


def _list(names: Sequence[str]) -> str:
    return " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)


def nowhere(chart: Chart) -> str:
    """Why a function has no place on the roofline."""
    return f"{chart.function} has no place on the roofline: it only moves, and computes nothing."
