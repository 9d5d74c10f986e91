"""What `tritonlab bench` finds on a real GPU, module by module; pictures of it, anywhere.

    python -m tests.benchmarks.benches --out FOLDER [--seconds 200] [--quick] [--modules ID ...]
    python -m tests.benchmarks.benches --draw FOLDER

Of each module a right-but-different kernel is timed beside the solution, torch and torch.compile.
A file of JSON is written after each module, so that a run that is cut short leaves what it has;
``--draw`` makes a picture and a page of each. ``--simulate`` tries it where there is no GPU.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
import traceback
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

from grader.bench.bench import bench, benched, measuring
from grader.bench.benchmark import Benchmark, Chart, Contender, Roof, Speed, Without
from grader.suite import Cost, Suite, load
from tests.benchmarks import checkout
from tests.benchmarks.text import json_text
from tests.fidelity import variants

ROOT = checkout.ROOT
MODULES = ("missing-elements/03-softmax", "missing-elements/02-matrix-mul",
           "mastery/01-custom-kernels", "missing-elements/01-vector-add",
           "missing-elements/04-layer-norm", "optimization/01-tiling",
           "missing-elements/05-conv2d", "mastery/05-production-ready",
           "missing-elements/06-libdevice-math", "debugging/01-basic-debugging")
SECONDS = 200.0
QUICK = 2  # modules, with two sizes of one function each


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--out", type=Path, help="the folder for what is found")
    parser.add_argument("--draw", type=Path, help="a folder whose files are drawn")
    parser.add_argument("--seconds", type=float, default=SECONDS)
    parser.add_argument("--modules", nargs="*", default=MODULES)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--simulate", action="store_true")
    chosen = parser.parse_args(arguments)
    if chosen.draw:
        draw(chosen.draw)
    if chosen.out:
        chosen.out.mkdir(parents=True, exist_ok=True)
        modules = chosen.modules[:QUICK] if chosen.quick else chosen.modules
        return time_all(modules, chosen.out, chosen.seconds, chosen.quick, chosen.simulate)
    return 0


def time_all(modules: Sequence[str], out: Path, seconds: float, quick: bool,
             simulate: bool) -> int:
    """Time modules until the time is over; returns how many failed."""
    from grader import Sandbox

    begun, failed = time.monotonic(), 0
    print(checkout.make_known(), flush=True)
    with Sandbox() as box:
        for module in modules:
            started = time.monotonic()
            if started - begun > seconds:
                print(f"{module}: not begun, the time is over", flush=True)
                continue
            try:
                data = {"module": module, **timed(module, box, quick, simulate).to_dict()}
            except Exception:
                failed += 1
                data = {"module": module, "error": traceback.format_exc()}
                print(data["error"], flush=True)
            data["took_s"] = round(time.monotonic() - started, 1)
            (out / f"{module.replace('/', '-')}.json").write_text(json_text(data) + "\n")
            print(f"{module}: {data['took_s']} s", flush=True)
            for line in told(data):
                print(f"  {line}", flush=True)
    return failed


def timed(module: str, box: Any, quick: bool, simulate: bool) -> Benchmark:
    from tests.support.benched import FakeClock

    path = ROOT / "grader" / "suites" / module / "suite.py"
    suite = load(path)
    if quick:
        suite = _shortened(suite)
    solution = ROOT / "solutions" / module / "kernel.py"
    function = benched(suite)[0].entry if quick else ""
    with ExitStack() as resources:
        clock = FakeClock() if simulate else resources.enter_context(measuring(box, path))
        folder = Path(resources.enter_context(tempfile.TemporaryDirectory()))
        return bench(another(module, solution, folder), suite, clock, solution=solution,
                     function=function, sandbox=box, on_event=_progress)


def _progress(what: str) -> None:
    print(f"    {time.strftime('%H:%M:%S')} {what}", file=sys.stderr, flush=True)


def _shortened(suite: Suite) -> Suite:
    """The same with two sizes, so that all that happens happens in seconds."""
    def short(made: Any) -> Any:
        return made and replace(made, sizes=(made.sizes[0], made.sizes[-1]))

    functions = [replace(one, bench=short(one.bench)) for one in suite.functions]
    return replace(suite, bench=short(suite.bench), functions=functions)


def another(module: str, solution: Path, folder: Path) -> Path:
    """A right kernel that is not the solution."""
    return variants.whole(variants.of(module.split("/")[1][3:])[0], solution, folder)


def told(data: dict[str, Any]) -> list[str]:
    """The largest size of each function in a line."""
    lines = []
    for chart in data.get("functions", ()):
        largest = [(one["who"], one["times"][-1]) for one in chart["contenders"] if one["times"]]
        said = ", ".join(f"{who} {last['seconds'] * 1e3:.4g} ms ({last['share']:.0%})"
                         for who, last in largest)
        lines.append(f"{chart['function']}: {said}")
        lines += [f"  {one['who']}: {one['without'] or one['findings']}"
                  for one in chart["contenders"] if one["without"] or one["findings"]]
    return lines


def read(data: dict[str, Any]) -> Benchmark:
    """What ``to_dict`` gave, as far as it is drawn."""
    charts = tuple(Chart(
        one["function"], one["axis"], one["at"], one["peer"], Roof(**one["roof"]),
        {size["size"]: Cost(size["bytes"], size["flops"]) for size in one["sizes"]},
        tuple(Contender(who["who"], {
            at["size"]: Speed(*(at[name] for name in ("seconds", "low", "high", "repeats", "note")))
            for at in who["times"]},
            {int(size): Without(why) for size, why in who["without"].items()})
            for who in one["contenders"])) for one in data["functions"])
    return Benchmark(data["suite"], data["source_sha256"], data["measured"], data["device"],
                     data["of"], charts, (), data["versions"], data["not_measured"])


def draw(folder: Path) -> None:
    from tritonlab.course import course
    from tritonlab.render import charts, pages

    modules = {"/".join(module.suite.parts[-3:-1]): module for module in course.load().modules}
    for path in sorted(folder.glob("*.json")):
        data = json.loads(path.read_text())
        if "error" in data:
            continue
        found, module = read(data), modules[data["suite"]]
        picture = charts.benchmark_png(found, f"{module.id}: {module.title}")
        path.with_suffix(".png").write_bytes(picture)
        path.with_suffix(".html").write_text(pages.benchmark(module, found))
        print(path.with_suffix(".png"))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
