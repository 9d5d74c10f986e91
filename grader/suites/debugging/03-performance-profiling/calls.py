"""Asks the tools and reads the findings; holds the devices that benchmarks are tried on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

METRICS = ("bottleneck", "evidence_metric", "predicted_speedup")
ROOFLINE = ("bound", "t_min_s", "intensity", "ridge", "attainable_flops")
STATS = ("median_ms", "p20_ms", "p80_ms", "n")


class Device:
    """Follows a script: how long the work of each call takes, and what happens besides.

    ``cold`` holds the work of each call in ms, counted round; ``warm`` is the share of it that is
    left while the data are in the cache. The first ``slow`` calls take ``slower`` times as long,
    the first of all is compiled for ``compiling`` ms. ``backlog`` ms of work are waiting already.
    With ``sleepy`` the clock is read by `synchronize` alone, and else stands still.
    """

    def __init__(self, script: Mapping[str, Any]) -> None:
        self._script = {"cold": (1.0,), "warm": 1.0, "slow": 0, "slower": 1.0, "compiling": 0.0,
                        "flushing": 0.0, "launching": 0.002, "backlog": 0.0, "sleepy": False,
                        **script}
        self._clock = 7_000_000.0
        self._free = self._clock + self._script["backlog"]
        self._seen = self._clock
        self._cached = False
        self.calls = 0

    def launch(self) -> None:
        script = self._script
        if self.calls == 0:
            self._clock += script["compiling"]
        self._clock += script["launching"]
        ms = script["cold"][self.calls % len(script["cold"])]
        ms *= script["warm"] if self._cached else 1.0
        ms *= script["slower"] if self.calls < script["slow"] else 1.0
        self._free = max(self._free, self._clock) + ms
        self._cached = True
        self.calls += 1

    def synchronize(self) -> None:
        self._clock = max(self._clock, self._free)
        self._seen = self._clock

    def now(self) -> float:
        return self._seen if self._script["sleepy"] else self._clock

    def flush_cache(self) -> None:
        self._free = max(self._free, self._clock) + self._script["flushing"]
        self._cached = False


def fields(answer: Any, names: Sequence[str]) -> list[Any] | str:
    """The fields of an answer; what it is instead, where it lacks one."""
    if not all(hasattr(answer, name) for name in names):
        return f"a {type(answer).__name__}"
    return [getattr(answer, name) for name in names]


def benchmark(module: Any, script: Mapping[str, Any], options: Mapping[str, int]) -> dict[str, Any]:
    """What `benchmark` says of a device that follows the script, and how often it called."""
    device = Device(script)
    stats = module.benchmark(device.launch, device, **options)
    return {"stats": fields(stats, STATS), "calls": device.calls}


def benchmark_raises(module: Any) -> str:
    """What comes out of a benchmark whose function raises."""
    def broken() -> None:
        raise KeyError("no such kernel")

    try:
        module.benchmark(broken, Device({}), warmup=1, repeat=2)
    except BaseException as error:
        return type(error).__name__
    return ""


def bandwidth_gbps(module: Any, pairs: Sequence[tuple[int, float]]) -> list[Any]:
    """What it answers for each (bytes, ms)."""
    return [module.bandwidth_gbps(*pair) for pair in pairs]


def tflops(module: Any, pairs: Sequence[tuple[int, float]]) -> list[Any]:
    """What it answers for each (operations, ms)."""
    return [module.tflops(*pair) for pair in pairs]


def roofline(module: Any, jobs: Sequence[Sequence[float]]) -> list[list[Any]]:
    """The fields of what `roofline` answers for each (flops, bytes, peak flops, peak bytes)."""
    return [fields(module.roofline(*job), ROOFLINE) for job in jobs]


def finding(module: Any, letter: str) -> list[Any] | str | None:
    """The fields of one entry of FINDINGS; None where there is none, else what it is instead."""
    if not isinstance(module.FINDINGS, dict):
        return f"missing, as FINDINGS is a {type(module.FINDINGS).__name__} and no dict"
    entry = module.FINDINGS.get(letter)
    if entry is None:
        return None
    if not all(hasattr(entry, name) for name in METRICS):
        return repr(entry)[:80]
    return [value if isinstance(value, str | int | float) else repr(value)[:80]
            for value in (getattr(entry, name) for name in METRICS)]


def prediction(module: Any, name: str) -> Any:
    """The number that was written down; what is none as text, and None where there is nothing."""
    if not isinstance(module.PREDICTION, dict):
        return f"missing, as PREDICTION is a {type(module.PREDICTION).__name__} and no dict"
    value = module.PREDICTION.get(name)
    return value if value is None or type(value) in (int, float) else repr(value)[:80]


def frozen(module: Any) -> list[str]:
    """The classes of which a field took another value."""
    changed = []
    for value, field in ((module.roofline(1, 1, 1.0, 1.0), "bound"),
                         (module.Stats(1.0, 1.0, 1.0, 1), "n")):
        try:
            setattr(value, field, getattr(value, field))
        except AttributeError:
            continue
        changed.append(type(value).__name__)
    return changed
