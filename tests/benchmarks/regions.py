"""First call and steady calls of blocks on a GPU: eagerly, as a whole, and by regions.

    python -m tests.benchmarks.regions [--out results.json] [--simulate]

Each way runs in a process of its own with an empty cache, through the reference solution's own
`run_schedule`. The lesson of torch-compile predicts that the first call by regions takes at most
half of that of the whole. `--simulate` interprets, counts graphs and times nothing worth keeping.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import platform
import subprocess
import sys
import tempfile
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch

from tests.benchmarks.text import json_text

WAYS = ("eager", "whole", "regional")
BLOCKS, WIDTH, LENGTHS = 6, 1_024, (2_048, 512)


def measured(way: str, *, simulated: bool) -> dict[str, Any]:
    """What the schedule says of one way, in this process."""
    from grader.engine.interpreter.eager import interpreted
    from tests.benchmarks.modules import solution

    module = solution("torch-compile")
    device, dtype = ("cpu", torch.float32) if simulated else ("cuda", torch.float16)
    width, lengths = (16, (16, 24)) if simulated else (WIDTH, LENGTHS)
    engine = interpreted() if simulated else contextlib.nullcontext()
    with engine, torch.no_grad(), torch.device(device):
        model = torch.nn.Sequential(*(module.Block(width) for _ in range(BLOCKS))).to(dtype)
        backend = "eager" if simulated else "inductor"
        call = model if way == "eager" else getattr(
            module, {"whole": "compile_whole", "regional": "compile_regionally"}[way])(
            model, backend=backend)
        inputs = {length: torch.randn(4, length, width, dtype=dtype) for length in lengths}
        report = module.run_schedule(lambda length: call(inputs[length]), lengths, warmup=10,
                                     iterations=5 if simulated else 50)
    return asdict(report)


def main() -> None:
    options = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    options.add_argument("--out", type=Path)
    options.add_argument("--simulate", action="store_true", help="no GPU: interpreted, not timed")
    options.add_argument("--way", choices=WAYS, help=argparse.SUPPRESS)
    chosen = options.parse_args()
    if chosen.way:
        print(json.dumps(measured(chosen.way, simulated=chosen.simulate)))
        return
    found: dict[str, Any] = {
        "torch": torch.__version__, "python": platform.python_version(),
        "device": "cpu" if chosen.simulate else torch.cuda.get_device_name(0)}
    for way in WAYS:
        with tempfile.TemporaryDirectory() as cache:
            command = [sys.executable, "-m", "tests.benchmarks.regions", "--way", way,
                       *(["--simulate"] if chosen.simulate else [])]
            surroundings = {**os.environ, "TORCHINDUCTOR_CACHE_DIR": cache,
                            "TRITON_CACHE_DIR": str(Path(cache) / "triton")}
            said = subprocess.run(command, env=surroundings, capture_output=True, text=True,
                                  check=True).stdout
        found[way] = json.loads(said.splitlines()[-1])
        print(way, found[way])
    found["first, regional over whole"] = found["regional"]["first_ms"][0] / found["whole"][
        "first_ms"][0]
    print("first call, regional over whole:", round(found["first, regional over whole"], 3))
    if chosen.out:
        chosen.out.write_text(json_text(found) + "\n")


if __name__ == "__main__":
    main()
