"""What was measured on a GPU beside what is said without one: code, time, and pass or fail."""

from __future__ import annotations

import datetime
import statistics
import sys
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch
import triton

from grader.engine.compiler.compile import DoesNotCompile
from grader.engine.compiler.sass import code_of
from grader.engine.compiler.targets import Target, find
from grader.engine.compiler.timing_model.prediction import Prediction, least_seconds
from grader.recording.launch_stats import Survey
from tests.benchmarks.checkout import commit
from tests.benchmarks.text import json_text
from tests.fidelity.performance.analysing import Analysis, analyse, compiled
from tests.fidelity.performance.case import Case
from tests.fidelity.performance.every import CASES, HELD_OUT
from tests.fidelity.performance.recorded import record
from tests.support.timed import predict_launches

THRESHOLDS = (0.5, 0.7, 0.8)  # of what a copy reaches
_FACTS = ("ptx_sha256", "registers", "shared")


@dataclass(frozen=True)
class Row:
    """One case. Times in ms; ``None`` where one side has nothing to say."""

    case: Case
    equal: dict[str, tuple[int, int]]  # launches that are alike, of all, for each fact
    predicted: float | None
    bound: str
    least: float
    measured: float | None
    found: tuple[str, ...]

    @property
    def ratio(self) -> float | None:
        if self.predicted is None or self.measured is None:
            return None
        return self.predicted / self.measured

    def to_dict(self) -> dict[str, Any]:
        return {"equal": {fact: f"{got} of {of}" for fact, (got, of) in self.equal.items()},
                "predicted_ms": self.predicted, "bound": self.bound, "least_ms": self.least,
                "measured_ms": self.measured, "ratio": self.ratio, "found": list(self.found)}

    def share(self, ms: float, copy: float) -> float:
        return self.case.moves / (ms / 1e3) / copy


def compare(measured: dict[str, Any], only: str = "", out: Path | None = None) -> int:
    """Print the table and the summary; 0 if all code is equal and no bound was undercut.

    ``out`` gets what was measured and what was made of it in one file.
    """
    if triton.__version__ != measured["versions"]["triton"]:
        print(f"The file was made with Triton {measured['versions']['triton']}; this is "
              f"{triton.__version__}, whose code is another.", file=sys.stderr)
        return 2
    target = find(measured["target"])
    copy = measured["calibration"].get("copy", {}).get("bytes_per_second", target.dram)
    rows = []
    for case in (*CASES, *HELD_OUT):
        if only in case.name and case.name in measured["cases"]:
            row = _row(case, measured["cases"][case.name], target)
            rows.append(row)
            print(_line(row, copy, target), flush=True)
    print(f"\nmeasured on {measured['device']} ({measured['date']}, driver {measured['driver']}), "
          f"Triton {triton.__version__}; compiled and predicted with torch {torch.__version__}")
    summary = _summary(rows, copy, target)
    for name, said in summary.items():
        print(f"{name}: {said}")
    if out is not None:
        compared = {"date": datetime.date.today().isoformat(), "commit": commit(),
                    "versions": {"torch": torch.__version__, "triton": triton.__version__},
                    "target": asdict(target), "summary": summary,
                    "cases": {row.case.name: row.to_dict() for row in rows}}
        out.write_text(json_text({**measured, "compared": compared}) + "\n")
    whole = all(row.equal[fact][0] == row.equal[fact][1] for row in rows for fact in _FACTS)
    return 0 if whole and not any(map(_undercut, rows)) else 1


def _row(case: Case, measured: dict[str, Any], target: Target) -> Row:
    ms = (measured.get("ms") or {}).get("median")
    try:
        made = analyse(case, target)
    except DoesNotCompile as error:
        print(f"{case.name}: {error}", file=sys.stderr)
        return Row(case, dict.fromkeys(_FACTS, (0, 1)), None, "", 0.0, ms, ())
    predicted = _predicted(case, made, target)
    known = [o.survey for o in made.launches if o.survey is not None]
    pairs = zip(known, (o.binary for o in made.launches), strict=False)
    least = sum(least_seconds(survey, target, binary, cold=number == 0)
                for number, (survey, binary) in enumerate(pairs))
    return Row(case, _equal(made, measured.get("launches", [])),
               predicted.seconds * 1e3 if predicted else None,
               predicted.unit(predicted.bound) if predicted else "", least * 1e3, ms,
               tuple(sorted(made.names)))


def _equal(made: Analysis, launches: list[dict[str, Any]]) -> dict[str, tuple[int, int]]:
    """For each fact, how many different kernels of the GPU the offline ones agree with."""
    offline = {one.binary.ptx_sha256: one.binary for one in made.launches}
    by_name = {one.binary.kernel: one.binary for one in made.launches}
    pairs = [(real, offline.get(real["ptx_sha256"]) or by_name.get(real["kernel"]))
             for real in launches]
    return {fact: (sum(mine is not None and getattr(mine, fact) == real[fact]
                       for real, mine in pairs), len(pairs)) for fact in _FACTS}


def _predicted(case: Case, made: Analysis, target: Target) -> Prediction | None:
    if any(one.survey is None for one in made.launches):
        return None
    codes = {binary.ptx_sha256: code for code, binary in compiled(record(case), target)}
    read = {key: code_of(code) for key, code in codes.items()}
    known = [(one.binary, read[one.binary.ptx_sha256], one.survey) for one in made.launches
             if isinstance(one.survey, Survey)]
    return predict_launches(known, target)


def _line(row: Row, copy: float, target: Target) -> str:
    same = " ".join(f"{got}/{of}" for got, of in row.equal.values())
    predicted = "-" if row.predicted is None else f"{row.predicted:.4f}"
    measured = "-" if row.measured is None else f"{row.measured:.4f}"
    ratio = "-" if row.ratio is None else f"x{row.ratio:.2f}"
    reached = ""
    if row.measured is not None:
        reached = (f"{row.case.flops / row.measured / 1e9:.0f} TFLOP/s" if row.case.flops
                   else f"{row.share(row.measured, copy):.2f} of copy")
    return (f"{row.case.name:62} {same:12} {predicted:>9} {measured:>9} {ratio:>6} {row.bound:8} "
            f"{reached:14} {', '.join(row.found)}")


def _summary(rows: list[Row], copy: float, target: Target) -> dict[str, str]:
    said = {}
    for fact in _FACTS:
        got, of = (sum(row.equal[fact][n] for row in rows) for n in (0, 1))
        said[f"{fact} equal"] = f"{got} of {of}"
    ratios = [max(row.ratio, 1 / row.ratio) for row in rows if row.ratio]
    if not ratios:
        return {**said, "times": "none were measured"}
    said["predicted against measured"] = (
        f"{len(ratios)} cases: median x{statistics.median(ratios):.2f}, "
        f"within 25 % {_within(ratios, 1.25):.0%}, within 2x {_within(ratios, 2.0):.0%}, "
        f"worst x{max(ratios):.1f}")
    for threshold in THRESHOLDS:
        said[f"at {threshold} of copy"] = _agreement(rows, threshold, copy, target)
    undercut = [row.case.name for row in rows if _undercut(row)]
    return {**said, "faster than their bound": ", ".join(undercut) or "none"}


def _undercut(row: Row) -> bool:
    return row.measured is not None and row.measured < row.least


def _within(ratios: list[float], most: float) -> float:
    return sum(ratio <= most for ratio in ratios) / len(ratios)


def _agreement(rows: list[Row], threshold: float, copy: float, target: Target) -> str:
    """Of the cases that are judged by bandwidth."""
    agree = failed = passed = 0
    for row in rows:
        if row.case.flops or row.predicted is None or row.measured is None:
            continue
        expects = row.share(row.predicted, target.dram) >= threshold
        does = row.share(row.measured, copy) >= threshold
        agree += expects == does
        failed += does and not expects
        passed += expects and not does
    return f"{agree} agree, {failed} wrongly failed, {passed} wrongly passed"
