"""The matrix as a table for people and as JSON, and whether it is good enough."""

from __future__ import annotations

import argparse
import datetime
import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
import triton

from tests.benchmarks.text import json_text

from . import compiles, running
from .construct import Construct
from .every import CONSTRUCTS
from .running import Row, Settings

LEAST_SHARE = 0.83  # of the constructs must behave like a GPU


@dataclass(frozen=True)
class Asked:
    """What the compiler said about a construct, and whether its table says the same."""

    compiles: bool
    agrees: bool
    said: str


@dataclass(frozen=True)
class Summary:
    """How many constructs got each verdict."""

    counts: Counter[str]

    @property
    def run(self) -> int:
        return sum(self.counts.values()) - self.counts[running.SKIPPED]

    @property
    def share(self) -> float:
        """Of the constructs that were run, those that behave as on a GPU."""
        return sum(self.counts[v] for v in running.LIKE_A_GPU) / max(self.run, 1)

    @property
    def good(self) -> bool:
        return (self.share >= LEAST_SHARE and not self.counts[running.WRONG]
                and not self.counts[running.FAILED])


def summary(rows: Sequence[Row]) -> Summary:
    return Summary(Counter(row.verdict for row in rows))


def main(arguments: Sequence[str] | None = None) -> int:
    options = _options().parse_args(arguments)
    chosen = [c for c in CONSTRUCTS if not options.only or options.only in (c.name, c.theme)]
    asked = _ask(chosen) if options.compile else {}
    settings = Settings(options.chunk, options.order, options.poison)
    rows = _rows(chosen, options.device, settings)
    _print(rows, asked)
    if options.json:
        options.json.write_text(json_text(_as_json(rows, asked, options.device)) + "\n")
    agreed = all(answer.agrees for answer in asked.values())
    return 0 if summary(rows).good and len(rows) == len(chosen) and agreed else 1


def _options() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", default="cpu", help="cuda runs the kernels on the real GPU")
    parser.add_argument("--json", type=Path, help="write the rows there")
    parser.add_argument("--compile", action="store_true", help="ask Triton's compiler as well")
    parser.add_argument("--chunk", type=int, help="programs that the engine runs at once")
    parser.add_argument("--order", choices=("forward", "reverse"), default="forward")
    parser.add_argument("--poison", type=int, choices=(0, 1), default=0)
    parser.add_argument("--only", help="one theme or one construct")
    return parser


def _ask(constructs: Sequence[Construct]) -> dict[str, Asked]:
    asked = {}
    with compiles.warm_compiler():
        for construct in constructs:
            if construct.not_compiled:
                continue
            taken, said = compiles.compiles(construct)
            asked[construct.name] = Asked(taken, taken is not construct.rejected, said)
    return asked


def _rows(constructs: Sequence[Construct], device: str, settings: Settings) -> list[Row]:
    rows: list[Row] = []
    for construct in constructs:
        try:
            rows.append(running.run(construct, device, settings))
        except running.GpuLost as error:
            print(f"The GPU was lost in {construct.theme}, `{construct.name}`: {error}\n"
                  f"{len(constructs) - len(rows)} constructs were not run.", file=sys.stderr)
            break
    return rows


def _print(rows: Sequence[Row], asked: dict[str, Asked]) -> None:
    theme = ""
    for row in rows:
        if row.theme != theme:
            theme = row.theme
            print(f"\n{theme}")
        answer = asked.get(row.name)
        compiler = "" if answer is None else " compiles" if answer.compiles else " rejected"
        print(f"  {row.name:<68} {row.verdict}{compiler}")
        if row.detail and row.verdict != running.REFUSED:
            print(f"      {row.detail[:300]}")
        if answer is not None and not answer.agrees:
            said = answer.said[:300] or "it takes it"
            print(f"      the table is wrong about the compiler: {said}")
    made = summary(rows)
    print(f"\nTriton {triton.__version__}, torch {torch.__version__}, numpy {np.__version__}: "
          f"{made.run} constructs run, {made.share:.1%} behave like a GPU.")
    for verdict, count in made.counts.most_common():
        print(f"  {count:4} {verdict}")
    if asked:
        agreed = sum(answer.agrees for answer in asked.values())
        print(f"  the table agrees with the compiler about {agreed} of {len(asked)}")


def _as_json(rows: Sequence[Row], asked: dict[str, Asked], device: str) -> dict[str, Any]:
    return {
        "triton": triton.__version__,
        "torch": torch.__version__,
        "numpy": np.__version__,
        "device": device if device == "cpu" else torch.cuda.get_device_name(),
        "date": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        "rows": [row.as_dict() | ({"compiles": asked[row.name].compiles}
                                  if row.name in asked else {}) for row in rows],
    }
