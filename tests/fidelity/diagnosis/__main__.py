"""Measures diagnoses: mutants and mechanically planted mistakes, graded to the first failure.

    python -m tests.fidelity.diagnosis [--each 4] [--only SLUG ...]
                                       [--parts mutants planted variants] [--json FILE]

``planted`` mistakes are made in the solutions, ``variants`` in right kernels that differ from them.

A diagnosis is counted as

- catch-all, if it says no more than its code does of any module;
- placed, if the first place that it names contains the planted line: the line, or its TODO;
- without a place, if it names none.

A mistake that no case notices is replaced by the module's next one. The mistakes depend on the
solutions alone. A run takes about half an hour on one core.
"""

from __future__ import annotations

import argparse
import datetime
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import Any

from grader import Sandbox
from tests.benchmarks.checkout import commit
from tests.benchmarks.text import json_text
from tests.fidelity.diagnosis import measure
from tests.fidelity.diagnosis.measure import Diagnosis

PARTS = ("mutants", "planted", "variants")
COLUMNS = ("module", "name", "code", "where", "catch_all", "placed")


def summary(diagnoses: Sequence[Diagnosis]) -> dict[str, float]:
    """Shares, from 0 to 1, of diagnoses of files that fail."""
    failing = [one for one in diagnoses if one.code]
    count = max(1, len(failing))
    return {"count": len(failing),
            "catch_all": round(sum(one.catch_all for one in failing) / count, 4),
            "placed": round(sum(one.placed for one in failing) / count, 4),
            "without_place": round(sum(not one.where for one in failing) / count, 4)}


def show(name: str, diagnoses: Sequence[Diagnosis]) -> None:
    shares = summary(diagnoses)
    print(f"{name:9} {shares['count']:4}: catch-all {shares['catch_all']:.1%}, first place has the "
          f"planted line {shares['placed']:.1%}, without a place {shares['without_place']:.1%}")
    astray = Counter(one.code for one in diagnoses if one.code and not one.placed)
    print("          not placed, by code: " + ", ".join(
        f"{code} {count}" for code, count in astray.most_common()))


def main() -> int:
    options = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    options.add_argument("--each", type=int, default=4, help="planted mistakes of a module")
    options.add_argument("--only", nargs="+", default=[], metavar="SLUG")
    options.add_argument("--parts", nargs="+", choices=PARTS, default=PARTS[:2])
    options.add_argument("--json", type=Path, help="write all diagnoses to this file")
    chosen = options.parse_args()
    parts: dict[str, list[Diagnosis]] = {}

    def rows(box: Sandbox, folder: Path) -> Iterator[tuple[str, Diagnosis]]:
        for module in measure.modules(chosen.only):
            if "mutants" in chosen.parts:
                yield from (("mutants", one) for one in measure.mutants(module, box, folder))
            if "planted" in chosen.parts:
                yield from (("planted", one)
                            for one in measure.mistakes(module, chosen.each, box, folder))
            if "variants" in chosen.parts:
                yield from (("variants", one)
                            for one in measure.in_variants(module, chosen.each, box, folder))

    with Sandbox() as box, tempfile.TemporaryDirectory() as folder:
        for part, row in rows(box, Path(folder)):
            parts.setdefault(part, []).append(row)
            print(f"{part} {row.module} {row.name}: {row.code} {row.where or 'no place'}"
                  f"{'' if row.placed else ' (astray)'}{' (catch-all)' if row.catch_all else ''}",
                  file=sys.stderr, flush=True)
            if chosen.json:  # a run that is interrupted keeps what it has
                chosen.json.write_text(json_text(result(parts)) + "\n")
    for name, diagnoses in (*parts.items(), ("all", list(chain(*parts.values())))):
        show(name, diagnoses)
    return 0


def result(parts: Mapping[str, Sequence[Diagnosis]]) -> dict[str, Any]:
    """What is kept of a run: shares, and a row of ``COLUMNS`` for each diagnosis."""
    return {
        "command": "python -m tests.fidelity.diagnosis --json FILE",
        "date": datetime.date.today().isoformat(), "commit": commit(), "columns": COLUMNS,
        "shares": {name: summary(rows) for name, rows in parts.items()}
        | {"all": summary(list(chain(*parts.values())))},
        "diagnoses": {name: [[getattr(one, column) for column in COLUMNS] for one in rows]
                      for name, rows in parts.items()}}


if __name__ == "__main__":
    raise SystemExit(main())
