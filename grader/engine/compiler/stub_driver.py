"""A stub of Triton's CUDA driver, with which Triton compiles where there is no GPU."""

from collections.abc import Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from unittest import mock

import torch
import triton
from triton.backends.compiler import GPUTarget
from triton.runtime import cache
from triton.runtime.driver import driver

from grader.engine.compiler.targets import WARP, Target


class Driver(SimpleNamespace):
    """Triton's CUDA driver for one target, without a device.

    The current device is the capability: Triton caches code by device, so each architecture is its
    own.
    """

    def __init__(self, target: Target) -> None:
        capability = target.capability
        properties = {
            "max_shared_mem": target.shared_per_program, "max_num_regs": target.registers,
            "multiprocessor_count": target.multiprocessors, "warpSize": WARP,
            "sm_clock_rate": int(target.clock / 1e3), "mem_clock_rate": 1_000_000,
            "mem_bus_width": int(target.dram * 8 / 2e9),
        }
        super().__init__(
            capability=capability, is_active=lambda: True,
            utils=SimpleNamespace(get_device_properties=lambda device: dict(properties)),
            get_current_device=lambda: capability, set_current_device=lambda device: None,
            get_current_stream=lambda device=0: 0,
            get_current_target=lambda: GPUTarget("cuda", capability, WARP),
            get_device_capability=lambda device=0: divmod(capability, 10),
            get_active_torch_device=lambda: torch.device("cpu"))


@contextmanager
def pretending(target: Target) -> Iterator[None]:
    """Makes Triton compile for ``target``, whatever GPU this machine has.

    Triton's own cache lives as long as the process. So its version stands for the digest of its
    files, which takes 0.3 s to compute.
    """
    before = driver._active
    driver.set_active(Driver(target))
    try:
        with mock.patch.object(cache, "triton_key", lambda: triton.__version__):
            yield
    finally:
        driver._active = before
