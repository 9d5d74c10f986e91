"""Kills `tritonlab grade` at random moments and looks whether any acknowledged result is lost.

    python -m tests.fidelity.chaos [--kills 300] [--seed 1]

A result is acknowledged when the command has printed it as saved. After every kill the certificate
has to load and the journal has to hold at least the acknowledged grades. At the end no process and
no temporary folder of the grader may be left.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
SOLUTION = ROOT / "solutions" / "missing-elements" / "03-softmax" / "kernel.py"


@dataclass
class Outcome:
    """What the kills did: grades acknowledged and found again, and everything that is wrong.

    ``kills`` counts those that hit a running grade; ``finished`` came too late.
    """

    kills: int = 0
    finished: int = 0
    acknowledged: int = 0
    recorded: int = 0
    problems: tuple[str, ...] = ()


def torment(kills: int, seed: int, folder: Path) -> Outcome:
    """Kill ``kills`` grades of the softmax solution in a workspace below ``folder``."""
    chance = random.Random(seed)
    temporary = folder / "tmp"
    temporary.mkdir()
    environment = {**os.environ, "TMPDIR": str(temporary), "TRITONLAB_WORKSPACE": str(folder / "w")}
    command = [sys.executable, "-m", "tritonlab"]

    def run(*arguments: str) -> None:
        subprocess.run([*command, *arguments], env=environment, check=True, capture_output=True)

    run("start", "softmax")
    (folder / "w" / "track1" / "softmax" / "kernel.py").write_bytes(SOLUTION.read_bytes())
    whole = 60.0
    for _ in range(2):  # the faster of two: the first one fills the disk's cache
        started = time.monotonic()
        run("grade", "softmax")
        whole = min(whole, time.monotonic() - started)
    outcome = Outcome(acknowledged=2)
    problems: list[str] = []
    while outcome.kills < kills and outcome.finished <= 2 * kills:
        number = outcome.kills
        with (folder / "out").open("w+b") as out:
            process = subprocess.Popen([*command, "grade", "softmax", "--json"], stdout=out,
                                       stderr=subprocess.DEVNULL, env=environment)
            # Half of the kills fall into the last seventh, where the result is written down.
            late = chance.random() < 0.5
            moment = chance.uniform(0.85, 1.0) if late else chance.uniform(0.0, 1.0)
            try:
                process.wait(moment * whole)
                outcome.finished += 1
            except subprocess.TimeoutExpired:
                outcome.kills += 1
            process.send_signal(signal.SIGKILL)
            process.wait()
            out.seek(0)
            with contextlib.suppress(json.JSONDecodeError):
                outcome.acknowledged += bool(json.load(out)["saved"])
        problems += [f"kill {number}: {what}" for what in examine(folder / "w", outcome)]
    time.sleep(2.0)
    problems += leftovers(temporary)
    outcome.problems = tuple(problems)
    return outcome


def examine(workspace: Path, outcome: Outcome) -> list[str]:
    """What is wrong with the record right after a kill."""
    problems = []
    try:
        certificate = json.loads((workspace / ".tritonlab" / "certificate.json").read_text())
        if certificate["totals"]["core"]["passed"] != 1:
            problems.append("the certificate lost the pass")
    except (OSError, ValueError, KeyError) as error:
        problems.append(f"the certificate does not load: {error}")
    lines = (workspace / ".tritonlab" / "journal.jsonl").read_text().splitlines()
    outcome.recorded = sum('"event":"graded"' in line for line in lines)
    if outcome.recorded < outcome.acknowledged:
        problems.append(f"{outcome.acknowledged} acknowledged, {outcome.recorded} recorded")
    return problems


def leftovers(temporary: Path) -> list[str]:
    """Processes that still know the temporary folder, and folders in it."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if str(temporary).encode() in (process / "environ").read_bytes():
                found.append(f"process {process.name} is left")
    return found + [f"{path.name} is left" for path in temporary.iterdir()]


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    options.add_argument("--kills", type=int, default=300)
    options.add_argument("--seed", type=int, default=1)
    chosen = options.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        outcome = torment(chosen.kills, chosen.seed, Path(folder))
    print(f"{outcome.kills} kills, {outcome.finished} more came after the end; "
          f"{outcome.acknowledged} results acknowledged, {outcome.recorded} recorded; "
          f"{len(outcome.problems)} problems")
    for problem in outcome.problems:
        print(problem)
    return 1 if outcome.problems else 0


if __name__ == "__main__":
    raise SystemExit(main())
