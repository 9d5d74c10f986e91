"""Devices to measure on: the interface that `benchmark` uses, a GPU, and a simulated device.

A device has three methods; times are in milliseconds:

    now()          reads the clock of the host
    synchronize()  waits until the device has finished all queued work
    flush_cache()  queues work that overwrites the device's L2 cache

`python devices.py` prints how a simulated device advances the clock.
"""

from __future__ import annotations

import random
import time
from typing import Protocol

import torch


class Device(Protocol):
    """A device that executes queued work asynchronously."""

    def synchronize(self) -> None: ...

    def now(self) -> float: ...

    def flush_cache(self) -> None: ...


class GpuDevice:
    """A GPU through PyTorch, timed with the clock of the host.

    A sample includes the launch overhead of the host, a few microseconds. Time shorter kernels with
    events on the GPU, as `triton.testing.do_bench` does.
    """

    def __init__(self, device: str | torch.device = "cuda") -> None:
        """Raises RuntimeError if there is no GPU."""
        if not torch.cuda.is_available():
            raise RuntimeError(f"device: expected {device}, but torch finds no GPU")
        self._device = torch.device(device)
        l2 = torch.cuda.get_device_properties(self._device).L2_cache_size
        self._scratch = torch.empty(4 * l2, dtype=torch.int8, device=self._device)

    def synchronize(self) -> None:
        torch.cuda.synchronize(self._device)

    def now(self) -> float:
        return 1e3 * time.perf_counter()

    def flush_cache(self) -> None:
        self._scratch.zero_()


class SimulatedDevice:
    """A simulated device whose clock advances by the time that the work would take.

    ``launch`` is the function to measure. It returns as soon as the work is queued, and the work
    takes ``cold_ms``, or ``warm_ms`` if its data are still in the cache. The first call compiles
    before it launches, the next few are slow, and one call in 20 takes 50 times as long as the
    others.
    """

    def __init__(self, cold_ms: float = 0.028, warm_ms: float = 0.015, *, launch_ms: float = 0.002,
                 compile_ms: float = 840.0, slow_calls: int = 5, seed: int = 0) -> None:
        self._cold, self._warm, self._launch = cold_ms, warm_ms, launch_ms
        self._compile, self._slow = compile_ms, slow_calls
        self._random = random.Random(seed)
        self._clock = 0.0  # of the host
        self._free = 0.0  # when the device becomes idle
        self._in_cache = False
        self._calls = 0

    def launch(self) -> None:
        if self._calls == 0:
            self._clock += self._compile
        self._clock += self._launch
        ms = self._warm if self._in_cache else self._cold
        ms *= self._random.uniform(0.99, 1.01)
        if self._calls <= self._slow:
            ms *= 8
        elif self._calls % 20 == 13:
            ms *= 50
        self._asked(ms)
        self._in_cache = True
        self._calls += 1

    def synchronize(self) -> None:
        self._clock = max(self._clock, self._free)

    def now(self) -> float:
        return self._clock

    def flush_cache(self) -> None:
        self._asked(0.1)
        self._in_cache = False

    def _asked(self, ms: float) -> None:
        self._free = max(self._free, self._clock) + ms


if __name__ == "__main__":
    device = SimulatedDevice()
    print("call   returned after   done after")
    for call in range(8):
        start = device.now()
        device.launch()
        returned = device.now()
        device.synchronize()
        print(f"{call:4d} {returned - start:13.3f} ms {device.now() - start:9.3f} ms")
