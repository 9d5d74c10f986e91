"""Recordings of launches on tensors without values, and what the executor tells of them."""

from __future__ import annotations

import itertools
import os
from math import prod
from pathlib import Path
from typing import Any

import torch

from grader.engine.dram_model.sampling import Addresses, Sampler
from grader.executor.binding import Binder
from grader.executor.main import ExecutorHandler
from grader.executor.memory import Storages
from grader.recording import model
from grader.recording.launch_stats import Survey, Unsurveyable
from grader.recording.model import Alloc, Argument, Event, Launch, Recording, View

KERNELS = Path(__file__).with_name("survey_kernels.py")
PAGE = 4096
FIRST = 1000  # storage that is allocated; there are fewer inputs


class Recorded:
    """Records launches by hand; ``virtual`` tensors have a size and no values."""

    def __init__(self, path: Path = KERNELS) -> None:
        self.handler = ExecutorHandler()
        loaded = self.handler.handle({"op": "load", "path": str(path)}, [])
        assert loaded["status"] == "ready", loaded
        self.handler.__exit__()  # the engine stays in its place in a process of its own only
        self.arena = os.memfd_create("surveyed")
        self.layout: list[list[int]] = []
        self.inputs: list[View] = []
        self.events: list[Event] = []
        self.resident: list[int] = []

    def __enter__(self) -> Recorded:
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self.arena)

    def virtual(self, *shape: int, dtype: str = "float32") -> View:
        size = prod(shape) * getattr(torch, dtype).itemsize
        end = sum(-(-nbytes // PAGE) * PAGE for _, nbytes in self.layout)
        self.layout.append([end, size])
        os.ftruncate(self.arena, end + -(-size // PAGE) * PAGE)
        self.inputs.append(_view(len(self.layout) - 1, dtype, shape))
        return self.inputs[-1]

    def real(self, values: torch.Tensor) -> View:
        view = self.virtual(*values.shape, dtype=model.dtype_name(values))
        os.pwrite(self.arena, values.numpy().tobytes(), self.layout[-1][0])
        return view

    def alloc(self, *shape: int, dtype: str = "float32") -> View:
        number = FIRST + sum(isinstance(event, Alloc) for event in self.events)
        self.events.append(Alloc(number, prod(shape) * getattr(torch, dtype).itemsize))
        return _view(number, dtype, shape)

    def launch(self, kernel: str, *grid: int, resident: int = 132 * 8, **arguments: Any) -> None:
        x, y, z = (*grid, 1, 1)[:3]
        bound = {name: _argument(value) for name, value in arguments.items()}
        self.events.append(Launch(kernel, (x, y, z), bound))
        self.resident.append(resident)

    def recorded(self) -> Recording:
        return Recording(tuple(self.inputs), tuple(self.events), ())

    def reply(self, l2_bytes: int = 60 << 20, **more: Any) -> dict[str, Any]:
        return self.handler.handle(self.request(l2_bytes) | more, [self.arena])

    def request(self, l2_bytes: int = 60 << 20) -> dict[str, Any]:
        return {
            "op": "survey", "recording": model.to_json(self.recorded()),
            "layout": self.layout, "resident": self.resident, "l2_bytes": l2_bytes}

    def survey(self, l2_bytes: int = 60 << 20) -> list[Survey | Unsurveyable]:
        reply = self.reply(l2_bytes)
        assert reply["status"] == "done", reply
        assert not reply["findings"], reply["findings"]
        return [Survey.from_dict(made) if "grid" in made else Unsurveyable.from_dict(made)
                for made in reply["launches"]]

    def one(self, l2_bytes: int = 60 << 20) -> Survey:
        (made,) = self.survey(l2_bytes)
        assert isinstance(made, Survey), made
        return made

    def whole(self) -> Sampler:
        """The first launch, ready to run all turns of any of its programs."""
        virtual = {number for number, (offset, size) in enumerate(self.layout)
                   if os.lseek(self.arena, offset, os.SEEK_HOLE) < offset + size}
        storages = Storages(self.arena, self.layout, self.recorded(), 0, virtual)
        memory = Addresses()
        memory.turns_run = 1 << 40
        memory.known = {id(storages.check(view)) for view in self.inputs
                        if view.storage not in virtual}
        for event in self.events:
            if isinstance(event, Alloc):
                storages.allocate(event)
        launch = next(event for event in self.events if isinstance(event, Launch))
        binder = Binder(self.handler.kernels, storages.pointer, storages.descriptor)
        kernel, bound = binder.bind(launch)
        return Sampler(kernel, launch.grid, bound, memory)


def _view(storage: int, dtype: str, shape: tuple[int, ...]) -> View:
    strides = tuple(itertools.accumulate(shape[:0:-1], int.__mul__, initial=1))[::-1]
    return View(storage, dtype, shape, strides, 0)


def _argument(value: Any) -> Argument:
    if isinstance(value, View):
        return Argument("tensor", value)
    return Argument(type(value).__name__, value)
